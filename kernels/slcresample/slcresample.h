/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

/* Range (columns) and azimuth (lines), in this order. */
typedef enum ImkSlcresampleAxis {
  IMK_SLCRESAMPLE_RANGE,
  IMK_SLCRESAMPLE_AZIMUTH,
  IMK_SLCRESAMPLE_N_AXES,
} ImkSlcresampleAxis;

#define IMK_SLCRESAMPLE_MAX_TAPS 32
#define IMK_SLCRESAMPLE_MAX_STRETCH 0.25

/**
 * ImkSlcresampleField: (offsets that are no plane)
 * @nx, @ny: nodes along range and azimuth
 * @origin: column and line of the output where node (0, 0) is
 * @step: columns and lines from node to node
 * @offsets: for each axis, [ny][nx]: finite, to 1e6; from node to node they
 *   change by at most IMK_SLCRESAMPLE_MAX_STRETCH of the step
 *
 * Between nodes a cubic polynomial through the four nearest along each axis,
 * the line through the last two standing in for one that is missing. Beyond the
 * nodes the offset is that of the nearest place between them. */
typedef struct ImkSlcresampleField {
  uint32_t nx, ny;
  double origin[IMK_SLCRESAMPLE_N_AXES], step[IMK_SLCRESAMPLE_N_AXES];
  const float *offsets[IMK_SLCRESAMPLE_N_AXES];
} ImkSlcresampleField;

/**
 * ImkSlcresampleConfig: (how an SLC image is resampled)
 * @size: set by imk_slcresample_config_init, see imk/api.h
 * @width, @height: of the input, columns and lines
 * @out_width, @out_height: of the output: those of the reference
 * @type: of both: CI16 or CF32
 * @shift, @stretch, @a_stretch: the geometry, for each axis: the output at
 *   column r and line a is the input at
 *     x = r + shift[0] + stretch[0] r + a_stretch[0] a
 *     y = a + shift[1] + stretch[1] r + a_stretch[1] a
 *   Shifts up to 1e6, the others up to IMK_SLCRESAMPLE_MAX_STRETCH
 * @field: (nullable): offsets that are added to x and y; a copy is made
 * @taps: samples that one is made of, along each axis: even, 4 to
 *   IMK_SLCRESAMPLE_MAX_TAPS
 * @bandwidth: of the signal along each axis, as part of the sampling rate, 0.1
 *   to 1
 * @doppler: centre of its spectrum in azimuth, cycles a line, -2 to 2. Whole
 *   cycles make a difference: the phase turns with the way between two lines
 * @estimate_doppler: measure it instead, from -0.5 to 0.5, on the first
 *   IMK_SLCRESAMPLE_DOPPLER_LINES lines that are used
 * @n_threads: CPU threads, 0 for one a processor */
typedef struct ImkSlcresampleConfig {
  size_t size;
  uint32_t width, height, out_width, out_height;
  ImkType type;
  double shift[IMK_SLCRESAMPLE_N_AXES];
  double stretch[IMK_SLCRESAMPLE_N_AXES];
  double a_stretch[IMK_SLCRESAMPLE_N_AXES];
  const ImkSlcresampleField *field;
  uint32_t taps;
  double bandwidth;
  double doppler;
  bool estimate_doppler;
  uint32_t n_threads;
} ImkSlcresampleConfig;

#define IMK_SLCRESAMPLE_DOPPLER_LINES 64

typedef struct ImkSlcresample ImkSlcresample;

/* No shift, 16 taps, bandwidth 0.85, the Doppler estimated; CI16. */
IMK_API void imk_slcresample_config_init_sized (
    ImkSlcresampleConfig *config, size_t size);
static inline void
imk_slcresample_config_init (ImkSlcresampleConfig *config)
{
  imk_slcresample_config_init_sized (config, sizeof (*config));
}

/* Returns: the part of the output that lies inside the input, from a grid of 64
 * x 64 of its samples: 0 when the geometry is that of another image */
IMK_API double imk_slcresample_covered (const ImkSlcresampleConfig *config);

/**
 * imk_slcresample_new: (an object for one image)
 * @self: (out): free with imk_slcresample_free
 *
 * Only a band of the input is kept, as high as an output line is inclined in
 * it, and some more. Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY,
 * IMK_ERROR_UNAVAILABLE; @self untouched */
IMK_API ImkStatus imk_slcresample_new (ImkBackend backend,
    const ImkSlcresampleConfig *config, ImkSlcresample **self, ImkError *error);

/* Back to the first line; estimates are made again. */
IMK_API void imk_slcresample_rewind (ImkSlcresample *self);

/* Returns: how many lines can be pushed now; 0 when lines have to be made
 *   first, or when all are there */
IMK_API uint32_t imk_slcresample_room (const ImkSlcresample *self);

/* Returns: lines that have been pushed */
IMK_API uint32_t imk_slcresample_pushed (const ImkSlcresample *self);

/**
 * imk_slcresample_push: (the next lines of the image)
 * @lines: of the width and the type of the config, 1 channel, at most
 *   imk_slcresample_room lines; may be written again after the call. Samples
 *   that are not finite count as 0
 * Returns: IMK_ERROR_IMAGE, nothing was pushed */
IMK_API ImkStatus imk_slcresample_push (
    ImkSlcresample *self, const ImkImage *lines, ImkError *error);

/* Returns: lines that have been made, out_height after the last */
IMK_API uint32_t imk_slcresample_line (const ImkSlcresample *self);

/* Returns: how many lines, at most @most, can be made of what was pushed */
IMK_API uint32_t imk_slcresample_ready (
    const ImkSlcresample *self, uint32_t most);

/**
 * imk_slcresample_process: (makes the next lines)
 * @out: out_width x n of the type of the config, n at most
 *   imk_slcresample_ready; ci16 is rounded and clamped
 *
 * Two passes, which are exact for this geometry: along each input column, at
 * the place where the output line crosses it, then along that line. With a
 * field the output line is straight between the places of its samples. The
 * second pass sees a spectrum that is wider by the frequencies in azimuth times
 * stretch[1], or the slope of the line, which is nothing but for large ones.
 * The weights of @taps samples are those with the least mean square error for a
 * signal whose spectrum is flat over
 * @bandwidth and 0 elsewhere: R w = p, R_ij = sinc (bandwidth (i - j)), p_i =
 * sinc (bandwidth (i - f)) at the fraction f, interpolated between 256
 * fractions; in azimuth w_i times exp (i 2 pi doppler (f - i)). A sample is 0
 * where one that it is made of lies outside the image, and where in one of the
 * passes both samples around its place are 0: no data stays no data. Results do
 * not depend on n_threads, or on how lines are pushed. Returns:
 * IMK_ERROR_IMAGE, @out untouched */
IMK_API ImkStatus imk_slcresample_process (
    ImkSlcresample *self, ImkImage *out, ImkError *error);

/**
 * imk_slcresample_measure_doppler: (the centroid of the data, to check
 *   another)
 * @doppler: (out): -0.5 to 0.5 cycles a line
 *
 * Of the lines pushed, up to IMK_SLCRESAMPLE_DOPPLER_LINES; to be called before
 * the first line is made.
 * Returns: false, @doppler untouched, when the spectrum of these lines has no
 *   middle: they are white, empty or few */
IMK_API bool imk_slcresample_measure_doppler (
    const ImkSlcresample *self, double *doppler);

/* Returns: the Doppler that is used, in cycles a line; an estimated one from
 * the first lines made on */
IMK_API double imk_slcresample_doppler (const ImkSlcresample *self);

/* @self may be NULL. */
IMK_API void imk_slcresample_free (ImkSlcresample *self);

IMK_END_DECLS
