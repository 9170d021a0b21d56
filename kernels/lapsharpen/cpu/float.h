/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of float.c, which is compiled once for each instruction set. */
#pragma once

#include "lapsharpen/lapsharpen-float.h"

/* One frame, for all threads. */
typedef struct FloatWork {
  const ImkLapsharpenRule *rule;
  const ImkLapsharpenPlan *plan;
  const ImkImage *in;
  ImkImage *out;
  const uint8_t *mask;           /* (nullable) */
  ImkLapsharpenMoments *moments; /* of each row */
} FloatWork;

/* Do the rows @first to @end. @padded: a plane that has them and their
 * neighbours. */
typedef void (*FloatRows) (const FloatWork *work,
    const ImkLapsharpenPlane *padded, int first, int end);

typedef struct ImkLapsharpenFloatLoops {
  FloatRows pad; /* fills these rows of @padded, border included */
  FloatRows sharpen;
  FloatRows measure_noise;
  FloatRows measure_focus;
  void (*pass) (const ImkLapsharpenPass *pass, int first, int end);
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
