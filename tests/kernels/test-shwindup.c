/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tolerance: 1e-5 of the largest number: sums of some 40 products in float32.
 */
#include "imk/shwindup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel-test.h"

enum { N_MODES = 12, N_COMMANDS = 20, N_FIRST = 15, N_SECOND = 9 };
enum { N_OUTPUTS = N_FIRST + N_SECOND };

typedef struct Case {
  float modes[N_COMMANDS][N_MODES];
  float first[N_COMMANDS][N_FIRST], second[N_COMMANDS][N_SECOND];
  float lack[N_OUTPUTS];
} Case;

static void
draw (float *values, size_t n, uint32_t *seed)
{
  for (size_t i = 0; i < n; i++) {
    *seed = *seed * 1664525 + 1013904223;
    values[i] = (float) (*seed >> 8) / (1 << 23) - 1;
  }
}

static Case
draw_case (uint32_t seed)
{
  Case c;

  draw (c.modes[0], N_COMMANDS * N_MODES, &seed);
  draw (c.first[0], N_COMMANDS * N_FIRST, &seed);
  draw (c.second[0], N_COMMANDS * N_SECOND, &seed);
  draw (c.lack, N_OUTPUTS, &seed);
  return c;
}

static bool
find (const Case *c, bool with_modes, uint32_t n_mirrors, float *change)
{
  const ImkShwindupMirror mirrors[] = {{N_FIRST, c->first[0], c->lack},
      {N_SECOND, c->second[0], c->lack + N_FIRST}};

  return imk_shwindup_find (mirrors, n_mirrors, with_modes ? c->modes[0] : NULL,
      N_COMMANDS, with_modes ? N_MODES : N_COMMANDS, change);
}

/* --- the definition, in float64 ------------------------------------------- */

/* Row @i, column @m of T M, of both mirrors below each other */
static double
element (const Case *c, bool with_modes, int i, int m)
{
  double sum = 0;

  for (int k = 0; k < N_COMMANDS; k++)
    sum += (i < N_FIRST ? c->first[k][i] : c->second[k][i - N_FIRST]) *
           (with_modes ? (double) c->modes[k][m] : k == m);
  return sum;
}

/* Three steps of conjugate gradients on A^T A x = A^T lack. */
static void
define (const Case *c, bool with_modes, int n_outputs, double *x)
{
  const int n = with_modes ? N_MODES : N_COMMANDS;
  double a[N_OUTPUTS][N_COMMANDS], rest[N_OUTPUTS], p[N_COMMANDS];
  double before = 0;

  for (int i = 0; i < n_outputs; i++) {
    rest[i] = c->lack[i];
    for (int m = 0; m < n; m++)
      a[i][m] = element (c, with_modes, i, m);
  }
  memset (x, 0, n * sizeof (*x));
  for (int step = 0; step < 3; step++) {
    double g[N_COMMANDS] = {0}, size = 0, image[N_OUTPUTS] = {0}, squares = 0;

    for (int m = 0; m < n; m++) {
      for (int i = 0; i < n_outputs; i++)
        g[m] += a[i][m] * rest[i];
      size += g[m] * g[m];
    }
    for (int m = 0; m < n; m++)
      p[m] = g[m] + (step ? size / before * p[m] : 0);
    for (int i = 0; i < n_outputs; i++) {
      for (int m = 0; m < n; m++)
        image[i] += a[i][m] * p[m];
      squares += image[i] * image[i];
    }
    for (int m = 0; m < n; m++)
      x[m] += size / squares * p[m];
    for (int i = 0; i < n_outputs; i++)
      rest[i] -= size / squares * image[i];
    before = size;
  }
}

TEST (test_it_is_the_definition, "three steps toward the least squares")
{
  for (uint32_t seed = 1; seed <= 20; seed++)
    for (int with_modes = 0; with_modes < 2; with_modes++)
      for (uint32_t n_mirrors = 1; n_mirrors <= 2; n_mirrors++) {
        const Case c = draw_case (seed);
        const int n = with_modes ? N_MODES : N_COMMANDS;
        float change[N_COMMANDS];
        double expected[N_COMMANDS], most = 0, worst = 0;

        test_check (find (&c, with_modes, n_mirrors, change), "is not finite");
        define (&c, with_modes, n_mirrors == 1 ? N_FIRST : N_OUTPUTS, expected);
        for (int m = 0; m < n; m++) {
          most = fmax (most, fabs (expected[m]));
          worst = fmax (worst, fabs (change[m] - expected[m]));
        }
        test_check (worst <= 1e-5 * most,
            "seed %u, %d modes, %u mirrors: differs by %g of %g", seed, n,
            n_mirrors, worst, most);
      }
}

/* Of two mirrors that show the same, what they lack is lacking on average. */
TEST (test_equal_mirrors_share, "equal mirrors share what they lack")
{
  const float unit[2][2] = {{1, 0}, {0, 1}};
  const float lack[] = {1, 0, 3, -2};
  const ImkShwindupMirror mirrors[] = {
      {2, unit[0], lack}, {2, unit[0], lack + 2}};
  float change[2];

  test_check (imk_shwindup_find (mirrors, 2, NULL, 2, 2, change), "not found");
  test_check (change[0] == 2 && change[1] == -1, "the change is %g, %g",
      (double) change[0], (double) change[1]);
}

TEST (test_nothing_lacks, "nothing that lacks changes nothing")
{
  Case c = draw_case (1);
  float change[N_MODES];

  memset (c.lack, 0, sizeof (c.lack));
  test_check (find (&c, true, 2, change), "not found");
  for (int m = 0; m < N_MODES; m++)
    test_check (change[m] == 0, "mode %d changes", m);
}

TEST (test_what_is_not_finite_is_told, "what is not finite is told")
{
  Case c = draw_case (1);
  float change[N_MODES];

  c.lack[3] = INFINITY;
  test_check (!find (&c, true, 2, change), "inf is taken");
}
