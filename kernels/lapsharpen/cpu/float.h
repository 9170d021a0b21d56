/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of float.c, which is compiled once for each instruction set. */
#pragma once

#include "lapsharpen/lapsharpen-float.h"

/* One frame, for all threads. */
typedef struct FloatWork {
  const ImkLapsharpenRule *rule;
  const ImkImage *in;
  ImkImage *out;
  const uint8_t *mask;           /* (nullable) */
  ImkLapsharpenMoments *moments; /* of each row */
} FloatWork;

/* Returns: rows of a frame, without memory yet, with the pixels beside them
 * that a window or a kernel reaches */
static inline ImkLapsharpenPlane
imk_lapsharpen_strip (const ImkLapsharpenRule *rule)
{
  const int reach = (int) rule->reach;

  return (ImkLapsharpenPlane){.x0 = -reach,
      .x1 = (int) rule->width + reach,
      .channels = (int) rule->channels};
}

/* Do the rows @first to @end. @padded: a plane that has them and their
 * neighbours. */
typedef void (*FloatRows) (const FloatWork *work,
    const ImkLapsharpenPlane *padded, int first, int end);

typedef struct ImkLapsharpenFloatLoops {
  FloatRows pad;     /* fills these rows of @padded, border included */
  FloatRows sharpen; /* without smoothing */
  FloatRows measure_noise;
  FloatRows measure_focus;
  /* @memory: room for 3 padded rows and for smooth_sizes () */
  void (*smooth) (const FloatWork *work, float *memory, int first, int end);
} ImkLapsharpenFloatLoops;

extern const ImkLapsharpenFloatLoops imk_lapsharpen_f32_scalar,
    imk_lapsharpen_f32_neon, imk_lapsharpen_f32_avx2, imk_lapsharpen_f32_avx512;

/* What the CPU backend has for float32 frames. */
typedef struct FloatFrames FloatFrames;

ImkStatus imk_lapsharpen_float_frames_new (const ImkLapsharpenConfig *config,
    const uint8_t *mask, FloatFrames **self, ImkError *error);
ImkStatus imk_lapsharpen_float_frames_update (
    FloatFrames *self, const ImkLapsharpenRule *rule, ImkError *error);
void imk_lapsharpen_float_frames_process (
    FloatFrames *self, const ImkImage *in, ImkImage *out);
ImkLapsharpenMoments imk_lapsharpen_float_frames_focus (
    const FloatFrames *self);
void imk_lapsharpen_float_frames_free (FloatFrames *self);
