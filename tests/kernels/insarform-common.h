/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of insarform share: pairs of images with a phase, and running
 * a kernel over them. */
#pragma once

#include "imk/insarform.h"
#include "kernel-test.h"

TEST_DEFINE_AUTO_POINTER (ImkInsarform, imk_insarform_free)

enum { N = IMK_INSARFORM_N_CHANNELS };

/* Two images, and the phase that is removed, f32. */
typedef struct Pair {
  TestImage a, b, phase;
} Pair;

Pair pair_new (ImkType type, uint32_t width, uint32_t height);
void pair_free (Pair *pair);
TEST_DEFINE_AUTO (Pair, pair_free)

/* Defaults for the images of @pair. */
ImkInsarformConfig insarform_config (const Pair *pair);

/* Returns: @n lines from @first on */
ImkImage insarform_lines (const TestImage *image, uint32_t first, uint32_t n);

/* Pushes @n_push lines at most at a time, and all of it twice: a second pair of
 * the same images. */
TestImage insarform_form (const ImkInsarformConfig *c, const Pair *pair,
    bool with_phase, uint32_t n_push);

/* Returns: the definition of the same, in f64 */
TestImage insarform_expected (
    const ImkInsarformConfig *c, const Pair *pair, bool with_phase);

/* Fails unless a new kernel refuses @c with @words. */
void insarform_refuse (const ImkInsarformConfig *c, const char *words);

/* The same for @good with one @change of c. */
#define INSARFORM_REFUSES(good, change, words) \
  do { \
    ImkInsarformConfig c = good; \
\
    change; \
    insarform_refuse (&c, words); \
  } while (0)
