/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of insarxcorr share: pairs of images, and running a kernel
 * over them. */
#pragma once

#include <stdio.h>

#include "imk/insarxcorr.h"
#include "kernel-test.h"

TEST_DEFINE_AUTO_POINTER (ImkInsarxcorr, imk_insarxcorr_free)

enum { N_FIELDS = IMK_INSARXCORR_N_FIELDS };

ImkInsarxcorr *insar_new (ImkBackend backend, const ImkInsarxcorrConfig *c);

/* Returns: image @data of @side */
ImkImage insar_image (const ImkInsarxcorrConfig *c, int side, const void *data);

/* Pushes what there is room for of image @data, @at_once lines at most. */
void insar_push (ImkInsarxcorr *self, const ImkInsarxcorrConfig *c, int side,
    const void *data, uint32_t at_once);

/* Pushes whenever there is room, @at_once lines at most.
 * Returns: [ny][nx][N_FIELDS], to be freed */
double *insar_run_pushing (ImkBackend backend, const ImkInsarxcorrConfig *c,
    const void *ref, const void *sec, uint32_t at_once);

/* The same on the CPU. */
double *insar_run (
    const ImkInsarxcorrConfig *c, const void *ref, const void *sec);

/* Both images of @width x @height, two threads. */
ImkInsarxcorrConfig insar_config (uint32_t width, uint32_t height,
    uint32_t xsearch, uint32_t ysearch, uint32_t nx, uint32_t ny);

/* Returns: uniform in -0.5..0.5 */
double insar_uniform (uint64_t *seed);

/* Smooth complex noise as int16, and the same @dx columns and @dy lines later.
 * It comes from a scene of twice the size, so that nothing wraps. */
void insar_make_pair (const ImkInsarxcorrConfig *c, int dx, int dy,
    uint64_t seed, int16_t **ref, int16_t **sec);

enum { INSAR_WORDS = 128 };

/* Returns: by how much a row of results is off, 1 is what is allowed; @words:
 * (out): the worst field of it */
double insar_difference (const ImkInsarxcorrConfig *c, const double *found,
    const double *expected, char words[INSAR_WORDS]);

/* Compares all patches on the CPU with the reference, all fields. */
void insar_check_reference (const ImkInsarxcorrConfig *c, const void *ref,
    const void *sec, const char *where);

/* Returns: a file of the shared data, to be closed; NULL without */
FILE *insar_find_data (const char *pair, const char *name);

/* Both skip the test without the file. */
FILE *insar_open_data (const char *pair, const char *name);
int16_t *insar_read_slc (const char *pair, const char *name, size_t n_samples);

/* Returns: ImkInsarxcorrFlags of a patch */
static inline unsigned
insar_flags (const double *row)
{
  return (unsigned) row[IMK_INSARXCORR_FLAGS];
}
