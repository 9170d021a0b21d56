/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the object (shreconstruct-object.h), which keeps the state, and the
 * backends, which multiply and control. */
#pragma once

#include <math.h>

#include "imk/image.h"
#include "imk/shlimits.h"
#include "imk/shreconstruct.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of shcentroid: no flux, low flux, no match, outside, not finite. */
enum { IMK_SHRECONSTRUCT_INVALID_FLAGS = 227 };

/* Products of a row with slopes up to this one do not exceed a float32. */
#define IMK_SHRECONSTRUCT_MAX_SLOPE 1e6f

/* A NaN fails. */
IMK_SHLIMITS_FUNCTION bool
imk_shreconstruct_is_valid (float dx, float dy, uint8_t flags)
{
  return (flags & IMK_SHRECONSTRUCT_INVALID_FLAGS) == 0 &&
         fabsf (dx) <= IMK_SHRECONSTRUCT_MAX_SLOPE &&
         fabsf (dy) <= IMK_SHRECONSTRUCT_MAX_SLOPE;
}

/* A device counts in parts, so that each part has one writer. */
enum {
  IMK_SHRECONSTRUCT_VALID_PARTS = 256,
  IMK_SHRECONSTRUCT_LIMITED_PARTS = 1024,
};

typedef struct ImkShreconstructCounts {
  uint32_t n_out;
  uint32_t n_valid[IMK_SHRECONSTRUCT_VALID_PARTS];
  uint32_t n_limited[IMK_SHRECONSTRUCT_LIMITED_PARTS];
} ImkShreconstructCounts;

/* The state of a loop. The object owns it; a backend reads and writes it, a
 * device over the bus. Row (first + i) % MAX_TERMS of q and u is of i frames
 * before. */
typedef enum ImkShreconstructPart {
  IMK_SHRECONSTRUCT_Q,        /* f64 [MAX_TERMS][n_modes] */
  IMK_SHRECONSTRUCT_U,        /* f64 [MAX_TERMS][n_modes] */
  IMK_SHRECONSTRUCT_SLOPES,   /* f32 [2 n_cells], less offsets; a device writes
                               * them only where invalid ones are held */
  IMK_SHRECONSTRUCT_COMMANDS, /* f32 [n_commands]: of the last frame */
  IMK_SHRECONSTRUCT_COUNTS,   /* u8: ImkShreconstructCounts */
  IMK_SHRECONSTRUCT_N_PARTS,
} ImkShreconstructPart;

/**
 * ImkShreconstructFrame: (what becomes of a frame)
 * @slopes: f32 [2 n_cells]
 * @flags: u8 [n_cells], or without data
 * @state: by ImkShreconstructPart
 * @first: the newest row of the past; that of this frame is the one before it,
 *   (first + MAX_TERMS - 1) % MAX_TERMS, unless the frame is dark
 * @is_new: the state is not what the last frame left */
typedef struct ImkShreconstructFrame {
  ImkImage slopes, flags, state[IMK_SHRECONSTRUCT_N_PARTS];
  uint32_t first;
  bool is_new;
} ImkShreconstructFrame;

/* A backend gets a configuration whose terms are those in use, also of gain and
 * leak, [n_modes][MAX_TERMS]; whose offsets and reference are there; and whose
 * arrays live as long as the object, but for the matrices. */
typedef struct ImkShreconstructBackend {
  IMK_BACKEND_HEADER;
  /* @inverse: (nullable): pinv (M) [n_modes][n_commands] */
  ImkStatus (*create) (const ImkShreconstructConfig *config,
      const float *inverse, void **state, ImkError *error);
  /* While no frame is under way. @inverse: NULL: as before */
  ImkStatus (*update) (void *state, const ImkShreconstructConfig *config,
      const float *inverse, ImkError *error);
  /* A dark frame changes nothing but the counts. */
  ImkStatus (*process) (void *state, const ImkShreconstructFrame *frame,
      void *stream, ImkError *error);
  /* Returns: (nullable): why the matrices may not fit each other, a sentence
   * for the user. NULL for a backend that does not compare them. */
  const char *(*doubt) (const void *state);
  void (*destroy) (void *state);
} ImkShreconstructBackend;

extern const ImkShreconstructBackend imk_shreconstruct_cpu;
extern const ImkShreconstructBackend imk_shreconstruct_cuda;

static inline ImkShlimits
imk_shreconstruct_limits (const ImkShreconstructConfig *c)
{
  const ImkShlimits limits = {c->minimum, c->maximum, c->slew};

  return limits;
}

static inline bool
imk_shreconstruct_has_limits (const ImkShreconstructConfig *c)
{
  const ImkShlimits limits = imk_shreconstruct_limits (c);

  return imk_shlimits_has_any (&limits) || c->dead;
}

/* --- numbers of 16 bits: shreconstruct-store.c ---------------------------- */

/* Rounds @values [n_rows][n_columns] to what @storage holds. */
void imk_shreconstruct_round (ImkShreconstructStorage storage, float *values,
    uint32_t n_rows, uint32_t n_columns);

/* Returns: the power of 2 by which F16 holds a row larger than it is: its
 * largest number is then from 2^13 to 2^14 */
static inline int
imk_shreconstruct_f16_exponent (const float *row, uint32_t n)
{
  float most = 0;
  int exponent;

  for (uint32_t i = 0; i < n; i++)
    most = fmaxf (most, fabsf (row[i]));
  frexpf (most, &exponent);
  return most > 0 ? 14 - exponent : 0;
}

#ifdef __cplusplus
}
#endif
