/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From slopes of a Shack-Hartmann sensor to the commands of a mirror: the
 * product with a control matrix, and a controller for each mode. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IMK_SHRECONSTRUCT_MAX_TERMS 8
#define IMK_SHRECONSTRUCT_MAX_CELLS 65536
#define IMK_SHRECONSTRUCT_MAX_COMMANDS 65536

/* What an invalid cell counts as. */
typedef enum ImkShreconstructInvalid {
  IMK_SHRECONSTRUCT_INVALID_ZERO, /* a slope of 0: it moves nothing */
  IMK_SHRECONSTRUCT_INVALID_HOLD, /* its last valid slope, 0 before the first */
} ImkShreconstructInvalid;

/* What the mirror does where too few cells are valid. */
typedef enum ImkShreconstructDark {
  IMK_SHRECONSTRUCT_DARK_HOLD,      /* it stays as it is */
  IMK_SHRECONSTRUCT_DARK_REFERENCE, /* it takes the reference commands; the
                                     * controller begins anew */
} ImkShreconstructDark;

/**
 * ImkShreconstructConfig: (the matrix and the controller)
 * @size: set by imk_shreconstruct_config_init, see imk/api.h
 * @n_cells: cells of the sensor
 * @n_modes: rows of @matrix, 1 to IMK_SHRECONSTRUCT_MAX_COMMANDS
 * @n_commands: of the mirror; @n_modes without @modes
 * @matrix: R [n_modes][2 n_cells], columns of all dx, then of all dy; finite
 * @modes: (nullable): M [n_commands][n_modes], finite, n_modes <= n_commands
 * @n_feedback, @feedback: a [n_modes][n_feedback], 0 to
 *   IMK_SHRECONSTRUCT_MAX_TERMS of each
 * @n_forward, @forward: b [n_modes][n_forward], likewise
 * @gain, @leak: the controller where @n_forward is 0: a_1 = 1 - leak, b_0 =
 *   gain; 0 to 10, and 0 to 1
 * @offsets: (nullable): [2 n_cells], subtracted from the slopes
 * @reference: (nullable): c0 [n_commands]; 0 without
 * @minimum, @maximum: of a command; minimum <= maximum, may be infinite
 * @slew: the most that a command changes from frame to frame, above 0, may be
 *   infinite
 * @invalid, @dark: see the enumerations
 * @min_valid: share of valid cells below which @dark counts, 0 to 1
 * @n_threads: CPU threads, 0 for one a processor
 *
 * Arrays belong to the caller. imk_shreconstruct_new() copies them. */
typedef struct ImkShreconstructConfig {
  size_t size;
  uint32_t n_cells, n_modes, n_commands;
  const float *matrix, *modes;
  uint32_t n_feedback, n_forward;
  const double *feedback, *forward;
  double gain, leak;
  const float *offsets, *reference;
  double minimum, maximum, slew;
  ImkShreconstructInvalid invalid;
  ImkShreconstructDark dark;
  double min_valid;
  uint32_t n_threads;
} ImkShreconstructConfig;

/* What a call has done. */
typedef struct ImkShreconstructReport {
  uint32_t n_valid;   /* cells */
  uint32_t n_limited; /* commands at a limit or at the slew limit */
  bool is_dark;       /* too few cells are valid */
} ImkShreconstructReport;

typedef struct ImkShreconstruct ImkShreconstruct;

/* Gain 0.5, no leak, no limits, invalid cells zero, dark hold, min_valid 0. */
IMK_API void imk_shreconstruct_config_init_sized (
    ImkShreconstructConfig *config, size_t size);
static inline void
imk_shreconstruct_config_init (ImkShreconstructConfig *config)
{
  imk_shreconstruct_config_init_sized (config, sizeof (*config));
}

/**
 * imk_shreconstruct_new: (an object with the state of a loop)
 * @self: (out): free with imk_shreconstruct_free
 *
 * With @modes and limits the pseudo-inverse of M is computed here: about
 * n_modes^2 n_commands multiplications.
 * Returns: IMK_ERROR_CONFIG, also where the columns of M are not independent;
 *   IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE; @self untouched */
IMK_API ImkStatus imk_shreconstruct_new (ImkBackend backend,
    const ImkShreconstructConfig *config, ImkShreconstruct **self,
    ImkError *error);

/* Takes over the state of @from, where it is of the same size: so that another
 * matrix does not make the mirror jump. Returns: whether it is */
IMK_API bool imk_shreconstruct_take_state (
    ImkShreconstruct *self, const ImkShreconstruct *from);

/* Begins anew: no past, the commands are those of the reference. */
IMK_API void imk_shreconstruct_reset (ImkShreconstruct *self);

/**
 * imk_shreconstruct_process: (one frame, closed loop)
 * @slopes: [2][n_cells]: all dx, then all dy
 * @flags: (nullable): [n_cells] of shcentroid; a cell is invalid if flags & 227
 *   is not 0, or if one of its slopes is not finite
 * @commands: (out): [n_commands]
 * @report: (out) (nullable)
 *
 *   s = slopes - offsets of valid cells
 *   u[t] = -R s                                             float32
 *   q[t] = sum_i=1 a_i q[t-i] + sum_j=0 b_j u[t-j]          float64, each mode
 *   c[t] = c0 + M q[t], without M c0 + q[t]
 *
 * Then c is limited, first to slew from c[t-1], then to [minimum, maximum], and
 * q[t] follows it: q += pinv (M) (c limited - c), which keeps the controller
 * from winding up. A product adds up columns in their order, so results depend
 * neither on threads nor on the instruction set.
 * Source: Gendron and Lena 1994, A&A 291, 337 (modal control of an integrator);
 * Astrom and Murray, Feedback Systems, on integrator windup (back-calculation).
 */
IMK_API void imk_shreconstruct_process (ImkShreconstruct *self,
    const float *slopes, const uint8_t *flags, float *commands,
    ImkShreconstructReport *report);

/* The commands of the last frame, or of the reference: where the loop is open
 * or frozen. */
IMK_API void imk_shreconstruct_commands (
    const ImkShreconstruct *self, float *commands);

/* Returns: (transfer none): q of the last frame, n_modes */
IMK_API const double *imk_shreconstruct_coefficients (
    const ImkShreconstruct *self);

/* @self may be NULL. */
IMK_API void imk_shreconstruct_free (ImkShreconstruct *self);

#ifdef __cplusplus
}
#endif
