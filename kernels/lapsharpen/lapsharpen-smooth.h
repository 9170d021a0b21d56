/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a frame is smoothed with a Gaussian of any width, in as many operations
 * for a wide one as for a narrow one: quadratic B-splines make a sample of
 * `step` (in each direction), a short Gaussian smooths these, and the same
 * B-splines, now read at every pixel, make the frame of them again. The three
 * variances add up to radius^2; imk/lapsharpen.h has the whole formula. */
#pragma once

#include <math.h>
#include <stdbool.h>

enum {
  IMK_LAPSHARPEN_MAX_STEP = 12,
  IMK_LAPSHARPEN_MAX_SHRINK = 17, /* (3 step - 1) / 2 */
  IMK_LAPSHARPEN_MAX_BLUR = 10,
};

/* Weights of a sum w[0] v_0 + w[1] (v_-1 + v_1) + w[2] (v_-2 + v_2) + ..., in
 * float32 and in this order. */
typedef struct ImkLapsharpenSmooth {
  int step;         /* pixels from one low sample to the next; 0: not used */
  int halo;         /* low samples beside the nearest one that a pixel needs */
  int shrink_reach; /* pixels that a low sample reaches to either side */
  int blur_reach;   /* low samples likewise */
  bool is_log;
  float shrink[IMK_LAPSHARPEN_MAX_SHRINK + 1];
  float blur[IMK_LAPSHARPEN_MAX_BLUR + 1];
  float curve[IMK_LAPSHARPEN_MAX_BLUR + 1]; /* radius^2 times the second
                                             * derivative of the blur */
  /* of pixel k step + j - step / 2, of low samples k - 1, k, k + 1 */
  float grow[IMK_LAPSHARPEN_MAX_STEP][3];
} ImkLapsharpenSmooth;

/* A sampled Gaussian of the variance @variance, of sum 1, and a second
 * derivative of the sum 0 that makes 2 @scale of x^2. */
static inline void
imk_lapsharpen_set_blur (ImkLapsharpenSmooth *s, double variance, double scale)
{
  double g[IMK_LAPSHARPEN_MAX_BLUR + 1], sum = 1, m2 = 0, m4 = 0;

  g[0] = 1;
  s->blur_reach = (int) ceil (4 * sqrt (variance));
  for (int j = 1; j <= s->blur_reach; j++) {
    g[j] = exp (-j * j / (2 * variance));
    sum += 2 * g[j];
  }
  for (int j = 0; j <= s->blur_reach; j++) {
    double square = j * j;

    g[j] /= sum;
    s->blur[j] = (float) g[j];
    m2 += 2 * square * g[j];
    m4 += 2 * square * square * g[j];
  }
  for (int j = 0; j <= s->blur_reach; j++)
    s->curve[j] = (float) (scale * 2 / (m4 - m2 * m2) * (j * j - m2) * g[j]);
}

static inline void
imk_lapsharpen_set_smooth (ImkLapsharpenSmooth *s, double radius, bool is_log)
{
  const int wide = (int) (3 * radius / 5),
            d = wide > 1 ? wide : 1 + (radius >= 2.5);
  const double scale = radius * radius / (d * d), whole = 8.0 * d * d;

  s->step = d;
  s->is_log = is_log;
  s->halo = d > 1;
  /* Either B-spline has the variance d^2 / 4. */
  imk_lapsharpen_set_blur (s, d > 1 ? scale - 0.5 : scale, scale);
  s->shrink_reach = d > 1 ? (3 * d - 1) / 2 : 0;
  s->shrink[0] = 1;
  for (int j = 0; j <= s->shrink_reach && d > 1; j++) {
    int a = 3 * d - 2 * j;

    s->shrink[j] =
        (float) ((2 * j <= d ? 6 * d * d - 8 * j * j : a * a) / (whole * d));
  }
  for (int i = 0; i < d; i++) {
    int j = i - d / 2, left = d - 2 * j, right = d + 2 * j;

    s->grow[i][0] = d > 1 ? (float) (left * left / whole) : 0;
    s->grow[i][1] = d > 1 ? (float) ((6 * d * d - 8 * j * j) / whole) : 1;
    s->grow[i][2] = d > 1 ? (float) (right * right / whole) : 0;
  }
}
