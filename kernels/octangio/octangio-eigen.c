/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Jacobi's rotations (G. H. Golub and C. F. Van Loan, Matrix
 * Computations, 8.5): each makes one element 0; some sweeps over all of them
 * leave the eigenvalues. */
#include "octangio/octangio-eigen.h"

#include <math.h>
#include <string.h>

enum { SWEEPS = 12, MOST = IMK_OCTANGIO_MAX_REPEATS };

/* Columns p and q of a row: x cos - y conj (e) sin, x e sin + y cos. */
static void
turn (double complex *x, double complex *y, double c, double complex s)
{
  double complex p = *x, q = *y;

  *x = c * p - conj (s) * q;
  *y = s * p + c * q;
}

static void
rotate (
    double complex *a, double complex *v, uint32_t n, uint32_t p, uint32_t q)
{
  double complex apq = a[p * n + q], s;
  double size = cabs (apq), tau, t, c;

  if (size == 0)
    return;
  tau = (creal (a[q * n + q]) - creal (a[p * n + p])) / (2 * size);
  t = (tau >= 0 ? 1 : -1) / (fabs (tau) + sqrt (1 + tau * tau));
  c = 1 / sqrt (1 + t * t);
  s = t * c * (apq / size);
  for (uint32_t i = 0; i < n; i++) { /* A J, V J */
    turn (&a[i * n + p], &a[i * n + q], c, s);
    turn (&v[i * n + p], &v[i * n + q], c, s);
  }
  for (uint32_t i = 0; i < n; i++) /* J* A J */
    turn (&a[p * n + i], &a[q * n + i], c, conj (s));
  a[p * n + q] = a[q * n + p] = 0;
}

void
imk_octangio_eigenvectors (
    double complex *a, uint32_t n, uint32_t n_wanted, double complex *vectors)
{
  double complex v[MOST * MOST] = {0};
  bool is_taken[MOST] = {false};

  for (uint32_t i = 0; i < n; i++)
    v[i * n + i] = 1;
  for (int k = 0; k < SWEEPS; k++)
    for (uint32_t p = 0; p + 1 < n; p++)
      for (uint32_t q = p + 1; q < n; q++)
        rotate (a, v, n, p, q);
  for (uint32_t k = 0; k < n_wanted; k++) {
    uint32_t best = n;

    for (uint32_t i = 0; i < n; i++)
      if (!is_taken[i] &&
          (best == n || creal (a[i * n + i]) > creal (a[best * n + best])))
        best = i;
    is_taken[best] = true;
    for (uint32_t i = 0; i < n; i++)
      vectors[k * n + i] = v[i * n + best];
  }
}
