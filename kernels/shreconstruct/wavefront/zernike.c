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

/* R (r) / r^m as a polynomial p of t = r^2, and dp / dt. R_n^m = r^m (-1)^k
 * P_k^(m,0) (1 - 2 t), k = (n - m) / 2. */
static void
radial (int n, int m, double t, double *p, double *dp)
{
  double z = 1 - 2 * t, before = 0, now = 1, d_before = 0, d_now = 0;
  int k = (n - m) / 2;

  for (int i = 1; i <= k; i++) {
    double a = 2.0 * i * (i + m) * (2 * i + m - 2);
    double b = (2.0 * i + m - 1) * (2 * i + m) * (2 * i + m - 2);
    double c = (2.0 * i + m - 1) * m * m;
    double d = 2.0 * (i + m - 1) * (i - 1) * (2 * i + m);
    double next, d_next;

    if (i == 1) {
      next = (m + 1) + (m + 2) * (z - 1) / 2;
      d_next = (m + 2) / 2.0;
    } else {
      next = ((b * z + c) * now - d * before) / a;
      d_next = (b * now + (b * z + c) * d_now - d * d_before) / a;
    }
    before = now;
    d_before = d_now;
    now = next;
    d_now = d_next;
  }
  *p = k % 2 ? -now : now;
  *dp = (k % 2 ? 2 : -2) * d_now;
}

void
imk_zernike (uint32_t j, double x, double y, double *value,
    double *derivative_x, double *derivative_y)
{
  double p, dp, re = 1, im = 0, re_before = 0, im_before = 0, scale;
  double angular, ax, ay;
  int n, m, order;

  orders (j, &n, &m);
  order = m < 0 ? -m : m;
  radial (n, order, x * x + y * y, &p, &dp);
  for (int i = 0; i < order; i++) { /* (x + i y)^order */
    re_before = re;
    im_before = im;
    re = re_before * x - im_before * y;
    im = re_before * y + im_before * x;
  }
  scale = sqrt ((order ? 2 : 1) * (n + 1.0));
  angular = m < 0 ? im : re;
  ax = order * (m < 0 ? im_before : re_before);
  ay = order * (m < 0 ? re_before : -im_before);
  *value = scale * p * angular;
  *derivative_x = scale * (2 * x * dp * angular + p * ax);
  *derivative_y = scale * (2 * y * dp * angular + p * ay);
}
