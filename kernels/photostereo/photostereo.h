/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Photometric stereo: normals, albedo and ambient image of a matte surface from
 * pictures of one view under one known light each, after Pevar, Verswyvel,
 * Georgoulis, Cornelis, Proesmans and Van Gool, "Real-time Photometric Stereo".
 *
 * The model: a picture p shows G_p = n'.L_p at each pixel, with n' = albedo
 * times the normal and L_p the light vector at that pixel. n' is fitted to all
 * G_p by least squares; shadows and highlights, which do not follow the model,
 * are rejected, and n' is fitted again.
 *
 * Axes: x to the right, y up, z from the object to the camera. Grey values are
 * fractions of the full scale, after dark frame, white frame and gamma, and
 * divided by the intensity of the light. */
#pragma once

#include "imk/backend.h"
#include "imk/image.h"
#include "imk/photostereo-lights.h"

IMK_BEGIN_DECLS

/* The colour filter on a sensor, its top left 2x2 pixels in reading order. */
typedef enum ImkPhotostereoPattern {
  IMK_PHOTOSTEREO_PATTERN_NONE,
  IMK_PHOTOSTEREO_PATTERN_BGGR,
  IMK_PHOTOSTEREO_PATTERN_RGGB,
  IMK_PHOTOSTEREO_PATTERN_GBRG,
  IMK_PHOTOSTEREO_PATTERN_GRBG,
} ImkPhotostereoPattern;

/* What a grey value is made of, where there is a pattern. */
typedef enum ImkPhotostereoGrey {
  IMK_PHOTOSTEREO_GREY_MOSAIC, /* the sample itself: a site sees one colour in
                                * all pictures; nothing is interpolated */
  IMK_PHOTOSTEREO_GREY_LUMA,   /* Rec.601 luma of the interpolated colours, as
                                * the paper */
} ImkPhotostereoGrey;

/* The light vector L at a pixel x of the working plane, with v = s - x, s the
 * position of the light, and R the mean distance of all lights from the centre
 * of the plane. Times max (0, d.(-v) / |v|)^led_lobe for UNIT and
 * INVERSE_SQUARE, d the direction from the lamp to the centre of the plane. */
typedef enum ImkPhotostereoModel {
  IMK_PHOTOSTEREO_MODEL_AUTO,           /* DIRECTIONAL or INVERSE_SQUARE */
  IMK_PHOTOSTEREO_MODEL_DIRECTIONAL,    /* the direction, to unit length; of a
                                         * position, from the centre */
  IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE, /* R^2 v / |v|^3 */
  IMK_PHOTOSTEREO_MODEL_UNIT,           /* v / |v| */
  IMK_PHOTOSTEREO_MODEL_RAW,            /* v / R: the paper's, brighter when
                                         * farther; a direction as it is */
} ImkPhotostereoModel;

typedef enum ImkPhotostereoRobust {
  IMK_PHOTOSTEREO_ROBUST_NONE,       /* least squares of all lights */
  IMK_PHOTOSTEREO_ROBUST_THRESHOLDS, /* the paper's: lights that do not fit are
                                      * left out, and it is solved again */
  IMK_PHOTOSTEREO_ROBUST_HUBER,      /* they weigh t_res / |n'.L - G| */
} ImkPhotostereoRobust;

/* The unit of t_min, t_max and t_res. */
typedef enum ImkPhotostereoThresholds {
  IMK_PHOTOSTEREO_THRESHOLDS_AUTO,     /* ADAPTIVE below 100 lights, else
                                        * RELATIVE */
  IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE, /* grey values */
  IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE, /* |n'| of the pixel: independent of
                                        * exposure, albedo and colour */
  IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE, /* the same, but the first solution
                                        * takes the lights with G > t_min times
                                        * the third largest G of the pixel
                                        * that is not clipped, and a residual
                                        * may be as large as t_res or 2.2
                                        * times the rms residual of the last
                                        * solution, over the lights that are
                                        * darker than predicted, whichever is
                                        * larger.
                                        * With HUBER as RELATIVE */
} ImkPhotostereoThresholds;

#define IMK_PHOTOSTEREO_AUTO_LIGHTS 100

/* The light of the room, which all pictures have in common. */
typedef enum ImkPhotostereoAmbient {
  IMK_PHOTOSTEREO_AMBIENT_MEAN,     /* none, or in the dark frame; the output
                                     * ambient is the mean over all lights */
  IMK_PHOTOSTEREO_AMBIENT_CONSTANT, /* G = max (0, n'.L) + c / intensity, with
                                     * a c of the pixel: the output ambient, in
                                     * each channel. Thresholds are of G - c /
                                     * intensity, from the second solution on.
                                     * With ADAPTIVE the first one takes the
                                     * lights with G above the smallest G plus
                                     * t_min times the distance to the third
                                     * largest, and the smallest as c. Lights
                                     * behind the surface measure c alone. The
                                     * first solution needs 4 lights, which
                                     * must not all have one height. CPU only */
} ImkPhotostereoAmbient;

/* Which height lies on the working plane. */
typedef enum ImkPhotostereoPlaneAt {
  IMK_PHOTOSTEREO_PLANE_AT_MEAN,
  IMK_PHOTOSTEREO_PLANE_AT_LOWEST,
} ImkPhotostereoPlaneAt;

/* How samples become linear. */
typedef enum ImkPhotostereoCurve {
  IMK_PHOTOSTEREO_CURVE_GAMMA, /* (sample / full_scale)^gamma */
  IMK_PHOTOSTEREO_CURVE_SRGB,  /* IEC 61966-2-1: v / 12.92 up to 0.04045, then
                                * ((v + 0.055) / 1.055)^2.4; gamma stays 1 */
} ImkPhotostereoCurve;

/* CUDA devices that can share a picture. */
#define IMK_PHOTOSTEREO_MAX_DEVICES 16

/**
 * ImkPhotostereoConfig: (what comes in, from where it is lit, how to solve)
 * @size: set by imk_photostereo_config_init, see imk/api.h
 * @width, @height: pixels of a frame, 1..65535 each
 * @type: IMK_TYPE_U8 or IMK_TYPE_U16
 * @channels: samples a pixel: 1 (grey or a mosaic), 3 or 4 (colours)
 * @colours: with 3 or 4 @channels, which of them is red, green, blue
 * @bands: pictures a light, of 1 channel and without @pattern:
 *   1..IMK_PHOTOSTEREO_MAX_BANDS, each seen through another filter, or lit by
 *   another colour. A pixel has one normal, and an albedo of each band; a grey
 *   value is the mean of the bands. Lights may have an intensity each; three
 *   are those of 3 bands, and of other numbers of bands their luma is one
 * @pattern: with 1 channel, of a mosaic
 * @grey: see ImkPhotostereoGrey; only with a @pattern
 * @full_scale: the sample that counts as 1; 0 for 255 or 65535
 * @gamma: the exponent that makes samples linear: (sample / full_scale)^gamma
 * @dark: NULL or a picture without light, of type and size of the frames, in
 *   host memory; it is subtracted, what would be negative is 0. With several
 *   @bands, one picture for all, or one each: all in one image of @bands times
 *   @height rows
 * @white: NULL or a picture of a white plane, likewise; samples are divided by
 *   it and multiplied by its mean, for each colour. Pixels where it is black or
 *   clipped are not solved, see imk_photostereo_unmeasured ()
 * @mask: NULL or u8, 1 channel, 0 where nothing is to be solved
 *   (@dark, @white and @mask are read by imk_photostereo_new () only)
 * @n_lights, @lights: 1..IMK_PHOTOSTEREO_MAX_LIGHTS; read during the call
 * @positions: the @lights are positions in mm, not directions
 * @model: see ImkPhotostereoModel; all but DIRECTIONAL and RAW need positions
 * @led_lobe: exponent of the lamps' lobe, 0..100; 0 shines equally in all
 *   directions, 1 is a Lambertian LED
 * @mm_per_pixel: width of a pixel on the working plane; above 0. The default,
 * 1, has to be set for positions; DIRECTIONAL does not use it
 * @pixel_aspect: width of a pixel over its height, 1e-3..1e3
 * @centre_x, @centre_y: the pixel above which x = y = 0; NaN for the middle
 * @plane_z: mm, where the working plane is; a position has to lie above it
 * @saturation: counts at and above which a raw sample is clipped; 0 for the
 *   full scale, negative for never. With a clipped sample in any channel a
 *   light does not count at that pixel, whatever the thresholds. Of a mosaic
 *   that is interpolated, the three values of the pixel are checked. With
 *   IMK_PHOTOSTEREO_ROBUST_NONE clipped samples count like others
 * @robust, @thresholds: see there
 * @t_min, @t_max: a light counts where t_min < G < t_max; negative for the
 *   default: 0.04 and 0.98 absolute, 0.1 and 1.3 relative and adaptive
 * @t_res: and where |n'.L - G| <= t_res (the paper compares squares); negative
 *   for the default: 0.03 absolute, 0.15 relative, 0.05 adaptive, and for HUBER
 *   0.02
 *   HUBER has no t_min and t_max
 * @readmit: a light that was left out may come back; the paper says no
 * @max_iterations: solutions at most, the first one included; at least 1
 * @min_lights: a later solution needs as many, or the last good one stays; 0
 *   for 3 absolute, 6 relative, 4 adaptive. The first needs 3
 * @min_condition: of a solution, 0..1: see IMK_PHOTOSTEREO_CONDITION; 1e-4 lies
 *   between coplanar lights (3e-6) and 12 lights near the camera (1e-2)
 * @y_down: the y of normals that come out points down
 * @track_change: keep the normals of a solution for ImkPhotostereoSummary
 * @memory_limit: bytes that the object may allocate where it works, on the
 *   device or the host; 0 for what is free there. On a device what does not fit
 *   is solved in strips, see imk_photostereo_keeps_frames ()
 * @strip_rows: rows solved at a time, at most; 0 for as many as is good;
 *   without influence on the result
 * @n_threads: CPU threads, 0 for one a processor; without influence, too
 * @n_devices, @devices: CUDA: devices that take a part of the rows beside that
 *   of the current context, each over its own bus; without influence as well.
 *   @memory_limit is of each. A device may be named again
 * @ambient_model, @curve: see there
 * @height_rounds: 0..10; for lamps that are near: how often the normals are
 *   integrated, and the pixels solved again from where they are: v = s - x with
 *   the height of the pixel above the plane. Heights are means over at most 64
 *   blocks along the longer side. No effect with DIRECTIONAL. CPU only
 * @plane_at: the height that lies at @plane_z, of each part of the picture that
 *   is connected
 * @focal_length_mm, @sensor_width_mm: of a pinhole camera above the middle of
 *   the picture, at D = @mm_per_pixel @width focal length / sensor width from
 *   the working plane; the width is that of the part that the @width pixels
 *   are of. With @height_rounds a pixel of height h is then 1 - h / D times as
 *   far from the axis, and slopes are integrated along the rays. On the plane
 *   a pixel is where it is without. 0 and 0: parallel rays */
typedef struct ImkPhotostereoConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  uint32_t channels;
  uint32_t colours[3];
  uint32_t bands;
  ImkPhotostereoPattern pattern;
  ImkPhotostereoGrey grey;
  uint32_t full_scale;
  double gamma;
  const ImkImage *dark, *white, *mask;

  uint32_t n_lights;
  const ImkPhotostereoLight *lights;
  bool positions;
  ImkPhotostereoModel model;
  double led_lobe;
  double mm_per_pixel;
  double pixel_aspect;
  double centre_x, centre_y;
  double plane_z;

  double saturation;
  ImkPhotostereoRobust robust;
  ImkPhotostereoThresholds thresholds;
  double t_min, t_max, t_res;
  bool readmit;
  uint32_t max_iterations;
  uint32_t min_lights;
  double min_condition;

  bool y_down;
  bool track_change;
  size_t memory_limit;
  uint32_t strip_rows;
  uint32_t n_threads;
  uint32_t n_devices;
  int devices[IMK_PHOTOSTEREO_MAX_DEVICES - 1];
  ImkPhotostereoAmbient ambient_model;
  ImkPhotostereoCurve curve;
  uint32_t height_rounds;
  ImkPhotostereoPlaneAt plane_at;
  double focal_length_mm, sensor_width_mm;
} ImkPhotostereoConfig;

/* Channels of the quality image. */
typedef enum ImkPhotostereoQuality {
  IMK_PHOTOSTEREO_LIGHTS,    /* that the solution is made of; 0: invalid */
  IMK_PHOTOSTEREO_ROUNDS,    /* solutions until it no longer changed */
  IMK_PHOTOSTEREO_RESIDUAL,  /* rms of n'.L - G of those lights, grey value */
  IMK_PHOTOSTEREO_CONDITION, /* det A / (tr A tr adj A), A = sum L L': 1/9 to 1
                              * times smallest over largest eigenvalue */
  IMK_PHOTOSTEREO_N_QUALITIES,
} ImkPhotostereoQuality;

/**
 * ImkPhotostereoOutputs: (what is wanted of a solution)
 * @normal: width x height, f32 x 3: x, y, z of a unit vector, (0, 0, 0) where
 *   there is none; or u8 x 3: 128 + 127 n, (0, 0, 0) where there is none; or
 *   u16 x 4: 32768 + 32767 n and 65535, all 0 where there is none
 * @albedo: f32, 1 channel for grey frames, 3 for colours (red, green, blue), or
 *   one a band; 1 is a surface that shines back at full scale when it faces a
 *   light of intensity 1; 0 where there is no normal. Or u8 x 1 or 3, 255 times
 *   that; or u16 x 1 or 4 (the last 65535), 65535 times that. What is above
 *   ends there. 3 bands are like colours in all of these; 2, 4 and more are in
 *   u8 and u16 1 channel of bands times height rows, one band below the other
 * @ambient: likewise: the mean over all lights, as if all were on, which is
 *   always there; or the light of the room, see ImkPhotostereoAmbient
 * @quality: f32 x 4, see ImkPhotostereoQuality; or u16 x 4: lights, rounds,
 *   65535 times residual and condition
 * @confidence: f32, 1 channel: 1 / (1 + e), where e is the angle in degrees by
 *   which the normal is expected to be wrong: r / (|n'| sqrt ((n - u) c)) in
 *   radians, with the residual r, the n lights and the condition c of quality,
 *   and u = 3, or 4 with AMBIENT_CONSTANT. That is the covariance of least
 *   squares, r^2 n / (n - u) A^-1, where the trace of A is n. 0 where there is
 *   no normal, and where n = u. Or u8 or u16, 255 or 65535 times that
 * @mask: likewise: 1 where there is a normal, 0 where there is none
 *
 * An image without data is not wanted. */
typedef struct ImkPhotostereoOutputs {
  ImkImage normal, albedo, ambient, quality, confidence, mask;
} ImkPhotostereoOutputs;

/**
 * ImkPhotostereoSummary: (a solution in a few numbers)
 * @n_lights: that count: those of which all pictures were there
 * @largest: sample in the mask, of all pictures and colours
 * @n_pixels, @n_invalid: in the mask; of those, without normal
 * @n_samples, @n_clipped: in the mask, of all pictures and colours; of those,
 *   at and above saturation
 * @mean_lights, @mean_rounds: over the valid ones; 0 when there is none
 * @mean_residual: mean rms residual of the lights that count over the mean
 * |n'|, so that a dark background adds little: 0.01 to 0.03 is usual. NaN when
 * it is not known: with one plane and thresholds that are not adaptive it takes
 * the output of quality or confidence
 * @change_deg: mean angle between the normals of this solution and of the last
 *   of the same set, where both are valid; NaN without a last, or without
 *   track_change */
typedef struct ImkPhotostereoSummary {
  uint32_t n_lights, largest;
  uint64_t n_pixels, n_invalid, n_samples, n_clipped;
  double mean_lights, mean_rounds, mean_residual;
  double change_deg;
} ImkPhotostereoSummary;

typedef struct ImkPhotostereo ImkPhotostereo;

/**
 * imk_photostereo_config_init: (1x1 u8 grey, no lights)
 * Thresholds auto with readmission, 10 iterations, gamma 1. */
IMK_API void imk_photostereo_config_init_sized (
    ImkPhotostereoConfig *config, size_t size);
static inline void
imk_photostereo_config_init (ImkPhotostereoConfig *config)
{
  imk_photostereo_config_init_sized (config, sizeof (*config));
}

/* Returns: channels of albedo and ambient: 3 for colours, 1 for grey frames, or
 * bands */
IMK_API uint32_t imk_photostereo_n_colours (const ImkPhotostereoConfig *config);

/**
 * imk_photostereo_lights_condition: (are the lights enough, from all sides?)
 * Returns: the condition (IMK_PHOTOSTEREO_CONDITION) at the centre of the plane
 *   with all lights, less what a constant takes: an upper bound in practice.
 * Below min_condition nothing can be solved: fewer than 3 lights, or all of
 * them in one plane */
IMK_API double imk_photostereo_lights_condition (
    const ImkPhotostereoConfig *config);

/**
 * imk_photostereo_new:
 * @config: checked here, once for both backends
 * @self: (out): untouched on failure
 *
 * Makes room for the samples of all lights: bytes as they come, for the rounds
 * of the robust solvers.
 * Returns: IMK_ERROR_CONFIG (also where the memory limit does not do, with the
 *   figure that would), IMK_ERROR_IMAGE (dark, white, mask), IMK_ERROR_MEMORY,
 *   IMK_ERROR_UNAVAILABLE, IMK_ERROR_DEVICE */
IMK_API ImkStatus imk_photostereo_new (ImkBackend backend,
    const ImkPhotostereoConfig *config, ImkPhotostereo **self, ImkError *error);

/**
 * imk_photostereo_update: (other parameters of the solver, from the next
 *   solution on)
 * @config: from @robust to @min_condition, and @y_down; the rest is not read
 * Returns: IMK_ERROR_CONFIG, and nothing has changed */
IMK_API ImkStatus imk_photostereo_update (
    ImkPhotostereo *self, const ImkPhotostereoConfig *config, ImkError *error);

/**
 * imk_photostereo_add: (the picture under one light)
 * @frame: of the configuration; host memory for the CPU
 * @light: its index, each once a set, in any order; with several bands, as
 *   imk_photostereo_add_band () of the first
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU has
 *   read @frame, though it may wait for one that came 16 pictures before (8 of
 *   16 bits; with several bands, or in another order, the last one); see
 *   imk_photostereo_keeps_frames () for how long it has to stay. Pictures may
 *   come on several streams; each has to exist until one has come on another,
 *   or the object is freed
 *
 * With further devices, @stream goes on when all have read @frame, so that they
 * wait for each other unless pictures come on several streams in turn. A frame
 * in the memory of one device is copied from there by the others.
 * Returns: IMK_ERROR_IMAGE: another frame than configured, an index beyond the
 *   lights, or one that was there already; the set is as before */
IMK_API ImkStatus imk_photostereo_add (ImkPhotostereo *self,
    const ImkImage *frame, uint32_t light, void *stream, ImkError *error);

/**
 * imk_photostereo_add_band: (likewise, of one band)
 * @band: 0 to bands - 1, each once a light and set, in any order. A light
 *   counts when all its bands are there */
IMK_API ImkStatus imk_photostereo_add_band (ImkPhotostereo *self,
    const ImkImage *frame, uint32_t light, uint32_t band, void *stream,
    ImkError *error);

/**
 * imk_photostereo_keeps_frames: (do the pictures have to stay?)
 * Returns: true when the samples of a set do not fit the device. Then
 *   imk_photostereo_add () reads nothing, and a picture has to stay as it is,
 *   where it is, until the set is reset; imk_photostereo_solve () uploads it
 *   strip by strip, so that page-locked memory is what counts */
IMK_API bool imk_photostereo_keeps_frames (const ImkPhotostereo *self);

/* Returns: how many pictures are in the set */
IMK_API uint32_t imk_photostereo_n_added (const ImkPhotostereo *self);

/* Returns: of how many lights, with all their bands */
IMK_API uint32_t imk_photostereo_n_complete (const ImkPhotostereo *self);

/* Returns: which part of the pixels of the mask are not solved because the
 * white frame is black or clipped there, in any colour or band. Above a half,
 * imk_photostereo_new () fails */
IMK_API double imk_photostereo_unmeasured (const ImkPhotostereo *self);

/**
 * imk_photostereo_solve: (from the pictures that are there)
 * @outputs: host memory for the CPU, else memory that the device reaches; what
 *   further devices found is copied there
 * @summary: (out): or NULL, which on a GPU saves waiting for it
 *
 * May be called after any number of pictures, none included. The result is a
 * function of the set of pictures alone: their order, earlier solutions,
 * strips, threads and devices change no bit. CPU and CUDA agree to 0.01 degree
 * at 99.9 % of pixels; the rest are those where a light is at a threshold.
 * Returns: IMK_ERROR_IMAGE, outputs untouched; IMK_ERROR_DEVICE, undefined */
IMK_API ImkStatus imk_photostereo_solve (ImkPhotostereo *self,
    ImkPhotostereoOutputs *outputs, ImkPhotostereoSummary *summary,
    void *stream, ImkError *error);

/**
 * imk_photostereo_judge: (does each picture agree with the others?)
 * @misfits: (out): [n_lights]: the median of |n'.L - G| / (|n'| |L|) over up to
 *   512 pixels of the mask that light lights, n'.L > 0.3 |n'| |L|. NaN where
 *   fewer than 32 of them are not clipped, and without a picture
 *
 * n' is fitted to all pictures of a pixel with least absolute residuals, so
 * that a few wrong ones hardly move it; robust and thresholds are not used. A
 * picture that is turned, has another exposure or another light has 0.1 to 1,
 * others 0.005 to 0.05. The CPU alone looks at pictures when they are added;
 * for the backend cuda see imk_photostereo_probe (). All are NaN with
 * IMK_PHOTOSTEREO_AMBIENT_CONSTANT.
 * Returns: IMK_ERROR_MEMORY */
IMK_API ImkStatus imk_photostereo_judge (
    const ImkPhotostereo *self, double *misfits, ImkError *error);

/**
 * imk_photostereo_probe: (keeps of a picture what imk_photostereo_judge ()
 * needs)
 * @frame: in host memory, as it was added: once after each
 *   imk_photostereo_add_band () with the backend cuda, if it is at hand there
 * Returns: IMK_ERROR_IMAGE; does nothing with the backend cpu, which has it */
IMK_API ImkStatus imk_photostereo_probe (ImkPhotostereo *self,
    const ImkImage *frame, uint32_t light, uint32_t band, ImkError *error);

/* Forgets all pictures: the next one begins a new set. */
IMK_API void imk_photostereo_reset (ImkPhotostereo *self);

/**
 * imk_photostereo_next_light: (which picture is worth taking next?)
 * @light: (out): the index of the light that is not in the set and whose
 *   picture would narrow down n' most: over some thousand pixels, and of those
 *   that light them (n.L > 0), the mean of ln (1 + L' A^-1 L), A = sum L L' of
 *   the pictures there that light the pixel; where A is singular or there is
 *   no normal yet, with A + 1e-3 I
 *
 * Goes by the normals of the last solution, if track_change keeps them; waits
 * for the device.
 * Returns: IMK_ERROR_CONFIG when no light is left; IMK_ERROR_MEMORY,
 *   IMK_ERROR_DEVICE */
IMK_API ImkStatus imk_photostereo_next_light (
    ImkPhotostereo *self, uint32_t *light, void *stream, ImkError *error);

/* Ends the work of @self, which may be NULL, and frees it. */
IMK_API void imk_photostereo_free (ImkPhotostereo *self);

IMK_END_DECLS
