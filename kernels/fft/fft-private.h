/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What fft.c and the two libraries share. */
#pragma once

#include "imk/fft.h"

/* What a library may assume of the pointers of an execution. */
typedef enum ImkFftLiberty {
  IMK_FFT_LIBERTY_UNALIGNED = 1, /* they are not multiples of 16 bytes */
  IMK_FFT_LIBERTY_SPOIL = 2,     /* the input may be overwritten */
} ImkFftLiberty;

/* A library as a table. Configs are checked and their layouts filled in. */
typedef struct ImkFftLibrary {
  const char *name;

  /* For a height above 1: true when fft.c shall do rows, then columns, both
   * of which are then problems of height 1. */
  bool (*splits) (const ImkFftConfig *config);
  /* @scratch_size: (out): bytes that each execution needs, 0 for none */
  ImkStatus (*create) (const ImkFftConfig *config, unsigned liberties,
      void **state, size_t *scratch_size, ImkError *error);
  /* @scratch: of this execution alone, aligned to IMK_FFT_SCRATCH_ALIGNMENT */
  void (*execute) (const ImkFftConfig *config, const void *state,
      const void *in, void *out, void *scratch);
  void (*destroy) (void *state);
} ImkFftLibrary;

#define IMK_FFT_SCRATCH_ALIGNMENT 64

extern const ImkFftLibrary imk_fft_fftw3f, imk_fft_kissfft;

/* imk_fft_new over a library of the caller's choice, for tests. */
ImkStatus imk_fft_new_with (const ImkFftLibrary *library,
    const ImkFftConfig *config, ImkFft **self, ImkError *error);

/* Returns: bins a row of a half spectrum */
static inline uint32_t
imk_fft_half (uint32_t width)
{
  return width / 2 + 1;
}

/* Elements a row, and bytes an element, of the two sides. */
static inline uint32_t
imk_fft_row_in (const ImkFftConfig *c)
{
  return c->kind == IMK_FFT_C2R ? imk_fft_half (c->width) : c->width;
}

static inline uint32_t
imk_fft_row_out (const ImkFftConfig *c)
{
  return c->kind == IMK_FFT_R2C ? imk_fft_half (c->width) : c->width;
}

static inline size_t
imk_fft_size_in (const ImkFftConfig *c)
{
  return (c->kind == IMK_FFT_R2C ? 1 : 2) * sizeof (float);
}

static inline size_t
imk_fft_size_out (const ImkFftConfig *c)
{
  return (c->kind == IMK_FFT_C2R ? 1 : 2) * sizeof (float);
}

/* Returns: elements from the first to the last of a side, both included */
static inline size_t
imk_fft_extent (const ImkFftConfig *c, const ImkFftLayout *l, uint32_t row)
{
  return (row - 1) * l->step + (c->height - 1) * l->pitch +
         (c->n_transforms - 1) * l->distance + 1;
}
