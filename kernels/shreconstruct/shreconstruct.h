/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From slopes of a Shack-Hartmann sensor to the commands of a mirror: the
 * product with a control matrix, and a controller for each mode. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/backend.h"
#include "imk/image.h"
#include "imk/shlimits.h"

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
  IMK_SHRECONSTRUCT_INVALID_EXCLUDE, /* it is taken out of the fit of R */
} ImkShreconstructInvalid;

/* What the mirror does where too few cells are valid. */
typedef enum ImkShreconstructDark {
  IMK_SHRECONSTRUCT_DARK_HOLD,      /* it stays as it is */
  IMK_SHRECONSTRUCT_DARK_REFERENCE, /* it takes the reference commands, in
                                     * steps of the slew limit; the controller
                                     * begins anew */
} ImkShreconstructDark;

/* How R is kept. Products add up in float32 in any case. */
typedef enum ImkShreconstructStorage {
  IMK_SHRECONSTRUCT_STORAGE_F32,
  IMK_SHRECONSTRUCT_STORAGE_F16,  /* 11 significant bits, and each row with a
                                   * power of 2 of its own */
  IMK_SHRECONSTRUCT_STORAGE_BF16, /* 8 significant bits */
} ImkShreconstructStorage;

/**
 * ImkShreconstructConfig: (the matrix and the controller)
 * @size: set by imk_shreconstruct_config_init, see imk/api.h
 * @n_cells: cells of the sensor
 * @n_modes: rows of @matrix, 1 to IMK_SHRECONSTRUCT_MAX_COMMANDS
 * @n_commands: of the mirror; @n_modes without @modes
 * @matrix: R [n_modes][2 n_cells], columns of all dx, then of all dy; finite,
 *   and no product of a row with slopes up to 1e6 exceeds a float32
 * @modes: (nullable): M [n_commands][n_modes], finite, n_modes <= n_commands
 * @n_feedback, @feedback: a [n_modes][n_feedback], 0 to
 *   IMK_SHRECONSTRUCT_MAX_TERMS of each
 * @n_forward, @forward: b [n_modes][n_forward], likewise
 * @gain, @leak: the controller where @n_forward is 0: a_1 = 1 - leak, b_0 =
 *   gain; 0 to 10, and 0 to 1
 * @offsets: (nullable): [2 n_cells], subtracted from the slopes
 * @reference: (nullable): c0 [n_commands]; 0 without. Counts within @minimum
 *   and @maximum
 * @minimum, @maximum: of a command; minimum <= maximum, may be infinite
 * @slew: the most that a command changes from frame to frame, above 0, may be
 *   infinite. Limits that are set anew hold at once, also beyond @slew
 * @invalid, @dark: see the enumerations
 * @min_valid: share of valid cells below which @dark counts, 0 to 1
 * @n_threads: CPU threads, 0 for one a processor
 * @interaction: (nullable): D [2 n_cells][n_commands]: slopes of one unit of
 *   each command; read with IMK_SHRECONSTRUCT_INVALID_EXCLUDE, and by
 *   imk_shreconstruct_find_fit()
 * @exclude_cells: the most cells that a frame takes out of the fit or back
 *   into it, 1 or more. It bounds the time of a frame: with n_out cells out, to
 *   take one out costs about 4 n_out n_modes + 4 n_out^2 multiplications, and
 *   to take one back up to 16 n_out^2
 * @dead: (nullable): [n_commands], not 0 where an actuator does not move: its
 *   command is always that of @reference
 * @storage: with 16 bits a GPU reads half as much of its memory for each frame.
 *   A CPU gains nothing. The numbers of R are rounded alike everywhere: by at
 *   most 2^-8 of each with BF16, and by 2^-11 with F16 of those above 2^-28 of
 *   the largest of their row. Not with IMK_SHRECONSTRUCT_INVALID_EXCLUDE, which
 *   needs R as it was made
 * @interaction_is_modal: @interaction is D M [2 n_cells][n_modes], the slopes
 *   of one unit of each mode. If false and there are as many modes as commands,
 *   the shape does not tell: @interaction is taken as D, and if R does not fit
 *   that, as D M
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
  const float *interaction;
  uint32_t exclude_cells;
  const uint8_t *dead;
  ImkShreconstructStorage storage;
  bool interaction_is_modal;
} ImkShreconstructConfig;

/* Returns: command @k of c0: that of @reference, or the nearer of @minimum and
 * @maximum beyond them */
static inline double
imk_shreconstruct_c0 (const ImkShreconstructConfig *c, uint32_t k)
{
  const ImkShlimits limits = {c->minimum, c->maximum, c->slew};

  return imk_shlimits_clip (&limits, c->reference ? c->reference[k] : 0);
}

/* What a call has done. */
typedef struct ImkShreconstructReport {
  uint32_t n_valid;   /* cells */
  uint32_t n_limited; /* commands at a limit or at the slew limit */
  bool is_dark;       /* too few cells are valid */
  uint32_t n_out;     /* cells that are out of the fit */
} ImkShreconstructReport;

typedef struct ImkShreconstruct ImkShreconstruct;

/* Gain 0.5, no leak, no limits, invalid cells zero, dark hold, min_valid 0,
 * exclude_cells 8. */
IMK_API void imk_shreconstruct_config_init_sized (
    ImkShreconstructConfig *config, size_t size);
static inline void
imk_shreconstruct_config_init (ImkShreconstructConfig *config)
{
  imk_shreconstruct_config_init_sized (config, sizeof (*config));
}

/**
 * imk_shreconstruct_new: (an object with the state of a loop)
 * @backend: with IMK_BACKEND_CUDA the context is current, here and in all calls
 *   that take a stream, update the object or free it
 * @self: (out): free with imk_shreconstruct_free
 *
 * With @modes and limits the pseudo-inverse of M is computed here: about
 * n_modes^2 n_commands multiplications.
 * Returns: IMK_ERROR_CONFIG, also where the columns of M are not independent;
 *   IMK_ERROR_MEMORY, IMK_ERROR_DEVICE; IMK_ERROR_UNAVAILABLE, also for
 *   IMK_SHRECONSTRUCT_INVALID_EXCLUDE on a device; @self untouched */
IMK_API ImkStatus imk_shreconstruct_new (ImkBackend backend,
    const ImkShreconstructConfig *config, ImkShreconstruct **self,
    ImkError *error);

/**
 * imk_shreconstruct_update: (the same matrices with another controller)
 * @config: of the same sizes. Its matrices (matrix, modes, interaction) are
 *   not read, but stay those of imk_shreconstruct_new(); nor are @n_threads,
 *   @invalid and @storage
 *
 * Takes as long as reading the vectors of @config, but for the first limit of
 * an object with modes, and other dead actuators: see imk_shreconstruct_new().
 * Returns: as imk_shreconstruct_new(). After IMK_ERROR_CONFIG nothing has
 *   changed. After another error @self can only be freed, or be the source of
 *   imk_shreconstruct_take_state() */
IMK_API ImkStatus imk_shreconstruct_update (ImkShreconstruct *self,
    const ImkShreconstructConfig *config, ImkError *error);

/**
 * imk_shreconstruct_doubt: (whether invalid cells do harm)
 * Returns: (nullable) (transfer none): a sentence for the user, the same until
 *   @self is freed: with IMK_SHRECONSTRUCT_INVALID_EXCLUDE, why D may not be
 *   what R was made from; with IMK_SHRECONSTRUCT_INVALID_HOLD, from the frame
 *   on in which the slopes of a cell have been held for 100 frames, which cell
 */
IMK_API const char *imk_shreconstruct_doubt (const ImkShreconstruct *self);

/* Of L = R D M, what a frame makes of the modes; without gain. */
typedef struct ImkShreconstructFit {
  double mean;    /* trace of L for each mode, to about 10 % of @largest; 1 for
                   * the inverse of D, fewer if R leaves modes out */
  double largest; /* size of the largest eigenvalue: 1 for the inverse of D */
  double lowest;  /* the eigenvalue farthest from @largest, which is real */
  bool runs_away; /* @lowest is below 0: no gain makes such a loop stable */
} ImkShreconstructFit;

/**
 * imk_shreconstruct_find_fit: (whether R is an inverse of D, with its sign)
 * @config: as for imk_shreconstruct_new(), with @interaction
 * @fit: (out)
 *
 * Takes about 10 products of each matrix with a vector if R is the inverse of
 * D, and up to 64 if not.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY; @fit undefined
 * Source: Hutchinson 1990, Communications in Statistics 19, 433, for @mean;
 * power iteration for the others */
IMK_API ImkStatus imk_shreconstruct_find_fit (
    const ImkShreconstructConfig *config, ImkShreconstructFit *fit,
    ImkError *error);

/* Takes over the state of @from, where it is of the same size: so that another
 * matrix does not make the mirror jump. With a slew limit the last commands of
 * as many are taken over in any case. All cells are in the fit again, and leave
 * it by @exclude_cells a frame. Returns: whether it is */
IMK_API bool imk_shreconstruct_take_state (
    ImkShreconstruct *self, const ImkShreconstruct *from);

/* Begins anew: no past, the commands are those of the reference. */
IMK_API void imk_shreconstruct_reset (ImkShreconstruct *self);

/* Begins anew, and brings the commands to those of the reference, by at most
 * the slew limit. imk_shreconstruct_commands() tells them. Returns: whether
 * the loop can run in this frame: FALSE if the commands are on their way */
IMK_API bool imk_shreconstruct_rest (ImkShreconstruct *self);

/**
 * imk_shreconstruct_process: (one frame, closed loop)
 * @slopes: f32, 2 n_cells x 1: all dx, then all dy. For a device it is in its
 *   memory, or page-locked
 * @flags: (nullable): u8, n_cells x 1, of shcentroid, likewise; a cell is
 *   invalid if flags & 227 is not 0, or if one of its slopes is NaN or beyond
 *   1e6
 * @commands: (out): [n_commands], in host memory
 * @report: (out) (nullable)
 * @stream: of the device: cudaStream_t, NULL for the CPU. What is on it comes
 *   first
 *
 *   s = slopes - offsets of valid cells
 *   u[t] = -R s                                             float32
 *   q[t] = sum_i=1 a_i q[t-i] + sum_j=0 b_j u[t-j]          float64, each mode
 *   c[t] = c0 + M q[t], without M c0 + q[t]
 *
 * Then c is limited, first to slew from c[t-1], then to [minimum, maximum], and
 * q[t] follows it: q += pinv (M) (c limited - c), which keeps the controller
 * from winding up. Where the other actuators make all modes, rows of M of dead
 * ones are 0 in that fit: what a dead one does not do is no reason to do less
 * of a mode. Another c0 is reached in steps of at most slew, which q does
 * not follow. With IMK_SHRECONSTRUCT_INVALID_EXCLUDE, where S are the
 * cells that are out,
 *
 *   u[t] = -(R s + R_S (I - D_S R_S)^-1 D_S R s),  s = 0 in S
 *
 * with D M in place of D: each slope of S counts as the one that the estimate
 * predicts. For R = P D^T with a symmetric P (least squares, truncated,
 * Tikhonov, or minimum variance with equal noise) that is the least-squares
 * estimate of the other cells (Sherman, Morrison and Woodbury). R may have a
 * gain k, R = k P D^T, also that of a D in another unit: R_S is divided by k.
 * For the first three k is found from D and R; for another P it is the largest
 * eigenvalue of R D, or 1 if that is smaller, and below 0.8 it is doubtful: see
 * imk_shreconstruct_doubt(). An R with the sign of -D is an error. Cells for
 * which D or R has only zeros are never taken out. The Cholesky factor of
 * I - D_S R_S + 0.1 I, with which the system is solved in 8 iterations, follows
 * the cells of S one by one, at most @exclude_cells a frame. Until its turn an
 * invalid cell counts as 0, and one that is valid again stays out; valid cells
 * come back first. Half of the cells can be out, up to 2048. For an eigenvalue
 * e of I - D_S R_S the result has (1 - (1 - 1.15 e / (e + 0.1))^8) / e: a mode
 * that no valid cell sees is not moved, and one that they hardly see is moved
 * less. So the estimate is exact to 1e-6 of each mode whose noise grows by less
 * than 2 times, and noise grows by less than 6 times.
 *
 * On a CPU a product adds up columns in their order, so results depend
 * neither on threads nor on the instruction set. On a GPU it has another order,
 * the same for each frame; commands agree to 1e-5 of their rms.
 * Returns: as imk_shreconstruct_begin() and imk_shreconstruct_end(), which this
 *   is in one call
 * Source: Gendron and Lena 1994, A&A 291, 337 (modal control of an integrator);
 * Astrom and Murray, Feedback Systems, on integrator windup (back-calculation).
 */
IMK_API ImkStatus imk_shreconstruct_process (ImkShreconstruct *self,
    const ImkImage *slopes, const ImkImage *flags, float *commands,
    ImkShreconstructReport *report, void *stream, ImkError *error);

/**
 * imk_shreconstruct_begin: (begins a frame)
 * @slopes, @flags, @stream: as of imk_shreconstruct_process()
 *
 * A device works when the call returns. imk_shreconstruct_end() is next, and
 * nothing else of @self before it.
 * Returns: IMK_ERROR_IMAGE, and nothing has changed; IMK_ERROR_DEVICE, and the
 *   state is that before the frame; nothing is to be ended */
IMK_API ImkStatus imk_shreconstruct_begin (ImkShreconstruct *self,
    const ImkImage *slopes, const ImkImage *flags, void *stream,
    ImkError *error);

/**
 * imk_shreconstruct_end: (waits for the frame)
 * @commands, @report: as of imk_shreconstruct_process()
 * @stream: that of imk_shreconstruct_begin()
 *
 * Returns: IMK_ERROR_DEVICE, and the state is that before the frame or the one
 *   after it */
IMK_API ImkStatus imk_shreconstruct_end (ImkShreconstruct *self,
    float *commands, ImkShreconstructReport *report, void *stream,
    ImkError *error);

/* The commands of the last frame, or of the reference: where the loop is open
 * or frozen. */
IMK_API void imk_shreconstruct_commands (
    const ImkShreconstruct *self, float *commands);

/* The mirror was sent @commands in place of those of the last frame, such as a
 * poke: the next ones are within the slew limit of them. */
IMK_API void imk_shreconstruct_set_commands (
    ImkShreconstruct *self, const float *commands);

/* Returns: (transfer none): q of the last frame, n_modes */
IMK_API const double *imk_shreconstruct_coefficients (
    const ImkShreconstruct *self);

/* Adds to q of the last frame, so that the next one begins there: what further
 * mirrors were not sent because of limits of their own.
 * @change: [n_modes] */
IMK_API void imk_shreconstruct_add (
    ImkShreconstruct *self, const float *change);

/* @coefficients: (out): q of the last frame, rounded to float32: n_modes
 *
 * Returns: whether they and the commands are finite */
IMK_API bool imk_shreconstruct_get_coefficients (
    const ImkShreconstruct *self, float *coefficients);

/* Frees what @self has on a device, also on one that has failed. Does nothing
 * on a CPU. Only the state is left: then @self can only be the source of
 * imk_shreconstruct_take_state(), and be freed. Neither needs a context. */
IMK_API void imk_shreconstruct_leave_device (ImkShreconstruct *self);

/* @self may be NULL. */
IMK_API void imk_shreconstruct_free (ImkShreconstruct *self);

#ifdef __cplusplus
}
#endif
