/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between photostereo.c and the backends. What arrives here is valid. */
#pragma once

#include "imk/photostereo.h"

IMK_BEGIN_DECLS

enum { IMK_PHOTOSTEREO_MAX_PLANES = IMK_PHOTOSTEREO_MAX_BANDS };

/* det A / (tr A)^3 of lights in one plane, or in one direction, is rounding up
 * to here, whatever their number; a cone of 5 degrees has 3e-6. */
#define IMK_PHOTOSTEREO_MIN_VOLUME 1e-6f

/* With adaptive thresholds, a residual may be as many times the rms residual of
 * the lights that are darker than predicted. In noise both signs are equal, and
 * the limit stays near the 97 % that it keeps at first (factors below 1.75 have
 * no limit above 0 that keeps itself). Highlights are brighter than predicted,
 * and do not raise it. */
#define IMK_PHOTOSTEREO_RESIDUAL_FACTOR 2.2f

/* With light of the room: the round from which on a light that n' turns away
 * from is behind the surface; before, n' has to be sure by the limit of a
 * residual. */
#define IMK_PHOTOSTEREO_SURE_ROUND 3

/* A saturation that no sample has. */
#define IMK_PHOTOSTEREO_NEVER 65536u

/* A light as the loops want it: with v = (x, y, z) - (pixel_x, pixel_y, 0),
 * L = k v, where k is @scale, @scale / |v| or @scale / |v|^3. */
typedef struct ImkPhotostereoLamp {
  float x, y, z;
  float scale;
  float axis[3];                          /* to unit length */
  float gain[IMK_PHOTOSTEREO_MAX_PLANES]; /* 1 / intensity of the plane, or of
                                           * red, green, blue of a mosaic */
} ImkPhotostereoLamp;

/* Geometry and samples. Samples are kept in planes: 1, 3 colours, or one a
 * band.
 *
 * Of a picture shared by devices each has @n_rows rows from @first_row on.
 * Frames come whole, and a row above and one below may be looked at; but
 * outputs, rows and probes are of these rows alone, and begin where they do. */
typedef struct ImkPhotostereoPlan {
  uint32_t width, height;
  uint32_t first_row, n_rows; /* 0 and @height for the CPU */
  ImkType type;
  uint32_t channels;
  uint32_t bands;
  uint32_t n_planes;
  uint32_t colours[IMK_PHOTOSTEREO_MAX_PLANES]; /* channel of each plane */
  bool interpolate; /* a mosaic comes, 3 planes are kept */
  /* colour (0..2) of the pixel (x & 1, y & 1) at [2 * (y & 1) + (x & 1)];
   * where nothing is a mosaic, all 0 */
  uint8_t site[4];
  bool mosaic; /* 1 plane of sites: albedo and ambient are interpolated */
  float weight[IMK_PHOTOSTEREO_MAX_PLANES]; /* of a plane in the grey value */

  /* the value of a sample: @unit times it, or table[sample]; minus dark (at
   * least 0), times white. Tables and frames are valid during create only. */
  float unit;
  uint32_t saturation;       /* samples from here on are clipped, see
                              * IMK_PHOTOSTEREO_NEVER */
  const float *table;        /* NULL, or 256 or 65536 values */
  const float *dark, *white; /* NULL, or [plane][height][width] */
  const uint8_t *mask;       /* NULL, or [height][width] */

  uint32_t n_lights;
  const ImkPhotostereoLamp *lamps; /* valid during create only */
  ImkPhotostereoModel model;       /* not AUTO */
  float led_lobe;                  /* 0 without */
  float pitch_x, pitch_y;          /* mm a pixel; 0 when directional */
  float centre_x, centre_y;        /* pixels */

  bool constant;          /* IMK_PHOTOSTEREO_AMBIENT_CONSTANT; the CPU only */
  uint32_t height_rounds; /* the CPU only, and 0 where they have no effect */
  ImkPhotostereoPlaneAt plane_at;
  float camera_z;       /* mm above the working plane; 0: infinity. Only with
                         * height_rounds */
  float axis_x, axis_y; /* mm, of the camera */
  bool track_change;
  size_t memory_limit;
  uint32_t strip_rows;
  uint32_t n_threads;
  uint32_t n_devices;
  const int *devices; /* valid during create only */
} ImkPhotostereoPlan;

/* The solver; thresholds with their defaults filled in. */
typedef struct ImkPhotostereoParams {
  ImkPhotostereoRobust robust;
  bool relative; /* thresholds are fractions of |n'| */
  bool adaptive; /* relative, and see IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE; only
                  * with ROBUST_THRESHOLDS */
  float t_min, t_max, t_res;
  bool readmit;
  uint32_t max_iterations, min_lights;
  float min_condition;
  bool y_down;
} ImkPhotostereoParams;

/* Sums over the pixels of a row; a summary adds them up in order. What is known
 * of samples since the set began may be in any of the rows. */
typedef struct ImkPhotostereoRow {
  uint32_t n_pixels, n_invalid, n_changes;
  uint32_t largest;              /* sample in the mask */
  uint64_t n_clipped;            /* samples in the mask */
  double lights, rounds, change; /* change in degrees */
  double residual, length;       /* rms residual if measured, |n'| */
} ImkPhotostereoRow;

/* What has come of a set. @lights: the indices of @n_lights of which all bands
 * are there, rising. @bands: of each of plan.n_lights, a bit for each that is
 */
typedef struct ImkPhotostereoSet {
  const uint32_t *lights;
  uint32_t n_lights;
  const uint32_t *bands;
} ImkPhotostereoSet;

/* Whether a solution measures residuals, which takes one more pass over the
 * lights: adaptive thresholds take one a round anyway. */
static inline bool
imk_photostereo_measures (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, const ImkPhotostereoOutputs *outputs)
{
  return plan->n_planes > 1 || params->adaptive || outputs->quality.data ||
         outputs->confidence.data;
}

typedef struct ImkPhotostereoBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (const ImkPhotostereoPlan *plan,
      const ImkPhotostereoParams *params, void **state, ImkError *error);
  ImkStatus (*update) (
      void *state, const ImkPhotostereoParams *params, ImkError *error);
  /* Whether pictures are read by solve (), not by add (). */
  bool (*keeps_frames) (void *state);
  ImkStatus (*add) (void *state, const ImkImage *frame, uint32_t light,
      uint32_t band, void *stream, ImkError *error);
  /* @rows: plan.n_rows of them, or NULL; the call waits for them. @compare:
   * with the normals of the last solve */
  ImkStatus (*solve) (void *state, const ImkPhotostereoSet *set, bool compare,
      ImkPhotostereoOutputs *outputs, ImkPhotostereoRow *rows, void *stream,
      ImkError *error);
  /* A new set begins. */
  void (*reset) (void *state);
  /* Every @step_x-th normal of every @step_y-th row of the picture in the last
   * solution, from the middle of the first step on: [rows][columns][3], those
   * rows that are in the band; to host memory; waits. Only with
   * plan.track_change. */
  ImkStatus (*probe) (void *state, uint32_t step_x, uint32_t step_y,
      float *normals, void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkPhotostereoBackend;

extern const ImkPhotostereoBackend imk_photostereo_cpu;
extern const ImkPhotostereoBackend imk_photostereo_cuda;
/* CUDA on the current device and plan.devices, each with a band. */
extern const ImkPhotostereoBackend imk_photostereo_devices;

/* The first probe at or behind row @row, counted from that of the picture's
 * first step: see probe (). */
static inline uint32_t
imk_photostereo_probes_before (uint32_t row, uint32_t step_y)
{
  return row > step_y / 2 ? imk_div_up (row - step_y / 2, step_y) : 0;
}

IMK_END_DECLS
