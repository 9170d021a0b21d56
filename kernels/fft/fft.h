/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One interface over FFTW (fftw3f, GPL) or KissFFT (BSD), as -Dfft chose; the
 * results agree within the error below. This header and our code are LGPL; a
 * program or plug-in that links imk-fft over FFTW is under the GPL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/status.h"

IMK_BEGIN_DECLS

/* What goes in and comes out; complex is real then imaginary, each float32. */
typedef enum ImkFftKind {
  IMK_FFT_C2C, /* complex to complex */
  IMK_FFT_R2C, /* real to the half spectrum, FORWARD only */
  IMK_FFT_C2R, /* the half spectrum to real, BACKWARD only */
} ImkFftKind;

typedef enum ImkFftDirection {
  IMK_FFT_FORWARD,  /* exponent -i 2 pi k n / N */
  IMK_FFT_BACKWARD, /* exponent +i 2 pi k n / N, the inverse times N */
} ImkFftDirection;

typedef enum ImkFftEffort {
  IMK_FFT_ESTIMATE, /* planned by rule: the same plan, and so the same bytes, in
                     * every run on one machine; planning takes microseconds */
  IMK_FFT_MEASURE,  /* planned by timing: faster, up to seconds to plan, last
                     * bits change from run to run; KissFFT ignores it. FFTW
                     * remembers for the process what it measured, so later
                     * estimates of the same problem change with it */
} ImkFftEffort;

/**
 * ImkFftLayout: (where the elements of one side lie)
 * @step: from one element of a row to the next
 * @pitch: from one row to the next; unused when the height is 1
 * @distance: from one transform to the next; unused when there is one
 *
 * In elements of that side: complex numbers of 8 bytes or real ones of 4. 0
 * is the compact default: step 1, rows without padding, each transform behind
 * all of the one before. The order is free (the columns of an image of W
 * columns are step W, distance 1) as long as no two elements fall on one place.
 */
typedef struct ImkFftLayout {
  size_t step;
  size_t pitch;
  size_t distance;
} ImkFftLayout;

/* The largest width and height. */
#define IMK_FFT_MAX_SIZE 16777216u

/* What data pointers must be a multiple of, in bytes. */
#define IMK_FFT_ALIGNMENT 16u

/**
 * ImkFftConfig: (one problem)
 * @size: set by imk_fft_config_init, see imk/api.h
 * @kind, @direction: see there
 * @width: samples a row, 1..IMK_FFT_MAX_SIZE, any number; products of 2, 3, 5
 *   and 7 are fast, large primes slow (FFTW N log N, KissFFT N squared)
 * @height: rows, 1..IMK_FFT_MAX_SIZE; 1: the transform is one-dimensional
 * @n_transforms: how many an execution does, at least 1
 * @in, @out: the layouts of the two sides
 * @in_place: in and out are the same memory. C2C: equal layouts. R2C and C2R:
 *   step 1 on both sides, pitch and distance of the real side twice those of
 *   the complex one, which is also the default of the real side
 * @effort: see there */
typedef struct ImkFftConfig {
  size_t size;
  ImkFftKind kind;
  ImkFftDirection direction;
  uint32_t width, height;
  uint32_t n_transforms;
  ImkFftLayout in, out;
  bool in_place;
  ImkFftEffort effort;
} ImkFftConfig;

typedef struct ImkFft ImkFft;

/* One forward C2C of 1x1, compact, out of place, by estimate. */
IMK_API void imk_fft_config_init_sized (ImkFftConfig *config, size_t size);
static inline void
imk_fft_config_init (ImkFftConfig *config)
{
  imk_fft_config_init_sized (config, sizeof (*config));
}

/**
 * imk_fft_new: (a plan: make once, execute often)
 * @self: (out): free with imk_fft_free
 *
 * From any thread: FFTW's planner, which is one for the whole process, is
 * locked by fftwf_make_planner_thread_safe, for other users of FFTW as well.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE (FFTW has
 *   no plan for this problem); @self untouched */
IMK_API ImkStatus imk_fft_new (
    const ImkFftConfig *config, ImkFft **self, ImkError *error);

/**
 * imk_fft_execute: (the n_transforms transforms of the plan)
 * @in, @out: the first element of each side; both a multiple of
 *   IMK_FFT_ALIGNMENT. Equal when the plan is in place, else without any
 *   common element
 *
 * For sample (x, y), bin (u, v), N = width x height, s = -1 forward, +1
 * backward:
 *   out(u, v) = sum in(x, y) exp (s i 2 pi (u x / width + v y / height))
 * Nothing is scaled: forward then backward is N times the input. The half
 * spectrum of a real signal is width / 2 + 1 bins a row, in all rows; the
 * others are their conjugates, X(-u, -v) = conj X(u, v). For C2R the bins that
 * are their own partners, (0, 0) and so on, must be real; the imaginary part
 * that rounding leaves there does no harm.
 *
 * Out of place the input is never written, and neither is the space between
 * the elements of the output. In place, what lies between the end of a real
 * row and that of its complex row is undefined.
 * Several threads may execute one plan at a time, on different memory. Nothing
 * is allocated but what more threads at once than ever before need (and what
 * KissFFT allocates for factors above 5). A plan runs on the calling thread;
 * give each thread a part of the batch, with a distance of whole
 * IMK_FFT_ALIGNMENT bytes.
 * Error of float32 against the exact sum, as rms over the output relative to
 * its rms: below 5e-8 (1 + log2 N), and where KissFFT meets a prime factor p
 * above 5, which it sums directly, 2e-8 sqrt (p) more. The bytes depend on
 * library, processor, plan and input alone, not on threads or addresses.
 * Returns: IMK_ERROR_IMAGE when a pointer is unusable, IMK_ERROR_MEMORY; @out
 *   untouched */
IMK_API ImkStatus imk_fft_execute (
    ImkFft *self, const void *in, void *out, ImkError *error);

/* @self may be NULL; nobody may be executing it. */
IMK_API void imk_fft_free (ImkFft *self);

/* Returns: "fftw3f" or "kissfft", what this imk-fft was built over */
IMK_API const char *imk_fft_library_name (void);

IMK_END_DECLS
