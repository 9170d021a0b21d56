/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Noll 1976, JOSA 66, 207, eqs. 1 and 2. The radial part is summed from the
 * Jacobi polynomial of r^2 by its recurrence: powers lose all digits from the
 * order 40 on. */
#include "shreconstruct/wavefront/zernike.h"

#include <math.h>

/* Radial order, and azimuthal order: below 0 for sines */
static void
orders (uint32_t j, int *n, int *m)
{
  int k = (int) j - 1;

  *n = 0;
  while (k > *n)
    k -= ++*n;
  *m = *n % 2 + 2 * ((k + (*n + 1) % 2) / 2);
  if (j % 2)
    *m = -*m;
}

/* R (r) / r^m as a polynomial of t = r^2: R_n^m = r^m (-1)^k P_k^(m,0) (1 - 2
 * t), k = (n - m) / 2. */
static double
radial (int n, int m, double t)
{
  double z = 1 - 2 * t, before = 0, now = 1;
  int k = (n - m) / 2;

  for (int i = 1; i <= k; i++) {
    double a = 2.0 * i * (i + m) * (2 * i + m - 2);
    double b = (2.0 * i + m - 1) * (2 * i + m) * (2 * i + m - 2);
    double c = (2.0 * i + m - 1) * m * m;
    double d = 2.0 * (i + m - 1) * (i - 1) * (2 * i + m);
    double next = i == 1 ? (m + 1) + (m + 2) * (z - 1) / 2
                         : ((b * z + c) * now - d * before) / a;

    before = now;
    now = next;
  }
  return k % 2 ? -now : now;
}

double
imk_zernike (uint32_t j, double x, double y)
{
  double re = 1, im = 0;
  int n, m, order;

  orders (j, &n, &m);
  order = m < 0 ? -m : m;
  for (int i = 0; i < order; i++) { /* (x + i y)^order */
    double before = re;

    re = before * x - im * y;
    im = before * y + im * x;
  }
  return sqrt ((order ? 2 : 1) * (n + 1.0)) * radial (n, order, x * x + y * y) *
         (m < 0 ? im : re);
}

/* P_n (x) and its derivative, by the recurrence of Legendre polynomials */
static double
legendre (uint32_t n, double x, double *derivative)
{
  double before = 1, now = x;

  for (uint32_t i = 2; i <= n; i++) {
    double next = ((2 * i - 1) * x * now - (i - 1) * before) / i;

    before = now;
    now = next;
  }
  *derivative = n * (x * now - before) / (x * x - 1);
  return now;
}

void
imk_zernike_edge_init (ImkZernikeEdge *edge, uint32_t j)
{
  int order, m;

  orders (j, &order, &m);
  edge->n = (uint32_t) order / 2 + 1;
  for (uint32_t i = 0; i < edge->n; i++) {
    double x = cos (M_PI * (i + 0.75) / (edge->n + 0.5)), derivative;

    for (int k = 0; k < 8; k++) { /* Newton, far beyond float64 */
      double value = legendre (edge->n, x, &derivative);

      x -= value / derivative;
    }
    legendre (edge->n, x, &derivative);
    edge->at[i] = x;
    edge->weights[i] = 1 / ((1 - x * x) * derivative * derivative);
  }
}

void
imk_zernike_across (const ImkZernikeEdge *edge, uint32_t j, double x, double y,
    double half, double *dx, double *dy)
{
  *dx = *dy = 0;
  for (uint32_t i = 0; i < edge->n; i++) {
    double along = half * edge->at[i];

    *dx += edge->weights[i] * (imk_zernike (j, x + half, y + along) -
                                  imk_zernike (j, x - half, y + along));
    *dy += edge->weights[i] * (imk_zernike (j, x + along, y + half) -
                                  imk_zernike (j, x + along, y - half));
  }
}
