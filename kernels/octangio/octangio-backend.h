/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between octangio.c and the backends. What arrives here is valid. */
#pragma once

#include "imk/octangio.h"

IMK_BEGIN_DECLS

/* Of Z, above which it counts as 0: its products are floats. */
#define IMK_OCTANGIO_LARGEST 1e15f

/* Of the bulk motion: depths that are added up first, and the sums over an
 * A-scan, each of which begins at the phase of the one before. */
enum { IMK_OCTANGIO_BULK_DEPTHS = 8, IMK_OCTANGIO_BULK_ROUNDS = 4 };

/* What stays. The tables live as long as the object. */
typedef struct ImkOctangioPlan {
  ImkOctangioConfig config;
  /* of bands, else NULL: the taps 0..radius of their filter, which is
   * symmetric, and exp (i phase) [n_bands][D][2], which moves the middle of a
   * band to the wavenumber 0 */
  uint32_t radius;
  const float *taps, *turns;
} ImkOctangioPlan;

static inline bool
imk_octangio_needs_phase (ImkOctangioMethod method)
{
  return method == IMK_OCTANGIO_COMPLEX_DECORRELATION ||
         method == IMK_OCTANGIO_DOPPLER || method == IMK_OCTANGIO_EIGEN;
}

/* Returns: the width, in depths, of the filter of a band */
double imk_octangio_band_sigma (const ImkOctangioConfig *config);

typedef struct ImkOctangioBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (
      const ImkOctangioPlan *plan, void **state, ImkError *error);
  /* @bscans: N images, @n_bscans of them */
  ImkStatus (*process) (void *state, const ImkImage *bscans, uint32_t n_bscans,
      const ImkImage *flow, void *stream, ImkError *error);
  /* The depth from @first on where the mean intensity of each A-scan of the
   * last set is largest. Waits. @depths: (out): [A] */
  ImkStatus (*find_brightest) (void *state, uint32_t first, uint32_t *depths,
      void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkOctangioBackend;

extern const ImkOctangioBackend imk_octangio_cpu;
extern const ImkOctangioBackend imk_octangio_cuda;

/* @state: of imk_octangio_cpu */
void imk_octangio_cpu_cancel (void *state, bool cancel);

IMK_END_DECLS
