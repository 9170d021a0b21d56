/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of photostereo share: lights, samples, and the four images of
 * a solution. */
#pragma once

#include "kernel-test.h"
#include "imk/photostereo.h"

TEST_DEFINE_AUTO_POINTER (ImkPhotostereo, imk_photostereo_free)

/* Lights on a dome, from the zenith down to @lowest (z of the unit vector). */
void photo_fill_dome (
    ImkPhotostereoLight *lights, uint32_t n, double radius, double lowest);

void photo_set (
    TestImage *image, uint32_t x, uint32_t y, uint32_t channel, uint32_t value);
double photo_get (
    const TestImage *image, uint32_t x, uint32_t y, uint32_t channel);

/* Returns: degrees between @a and @b */
double photo_angle (const double a[3], const double b[3]);

/* Fails unless there is no object of @c on the CPU, with these words. */
void photo_refuse (
    const ImkPhotostereoConfig *c, ImkStatus expected, const char *words);

enum { NORMAL, ALBEDO, AMBIENT, QUALITY, CONFIDENCE, MASK, N_OUTPUTS };

/* All outputs, with canaries. */
typedef struct Solved {
  union {
    struct {
      TestImage normal, albedo, ambient, quality, confidence, mask;
    };
    TestImage image[N_OUTPUTS];
  };
  ImkPhotostereoSummary summary;
  bool kept; /* the pictures were, until they were solved */
} Solved;

/* @type: f32, or what video has; bands are then below each other */
Solved solved_new (const ImkPhotostereoConfig *c, ImkType type);
void solved_free (Solved *s);
TEST_DEFINE_AUTO (Solved, solved_free)

/* Solves what @s has into @to; on the device by way of its memory. */
void solved_fill (Solved *to, ImkPhotostereo *s, bool on_device);

/* Fails with the first sample that differs. */
void solved_same (const Solved *a, const Solved *b, const char *where);

/* @n: (out): all 0 where there is none */
void solved_normal (const Solved *s, uint32_t x, uint32_t y, double n[3]);
