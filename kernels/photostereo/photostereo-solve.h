/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The 3x3 solution, written once for both backends: included with
 * REAL: float, or a vector of floats with the operators of C
 * INLINE: what begins a function */

/* Over the lights of a pixel, with weights w of 0 to 1: A = sum w L L',
 * b = sum w G L. */
typedef struct Sums {
  REAL xx, xy, xz, yy, yz, zz;
  REAL x, y, z;
  REAL n; /* lights with a weight above 0 */
} Sums;

typedef struct Solution {
  REAL x, y, z;   /* n' = A^-1 b */
  REAL norm2;     /* n'.n' */
  REAL condition; /* det A / (tr A tr adj A); NaN when A is 0, and rounding
                   * divided by rounding when @volume is */
  REAL volume;    /* det A / (tr A)^3 */
} Solution;

/* Adds a light, but for n. @wx, @wy, @wz: w L */
INLINE void
add_light (Sums *s, REAL wx, REAL wy, REAL wz, REAL x, REAL y, REAL z, REAL g)
{
  s->xx += wx * x;
  s->xy += wx * y;
  s->xz += wx * z;
  s->yy += wy * y;
  s->yz += wy * z;
  s->zz += wz * z;
  s->x += wx * g;
  s->y += wy * g;
  s->z += wz * g;
}

INLINE Solution
solve_sums (const Sums *s)
{
  REAL cxx = s->yy * s->zz - s->yz * s->yz;
  REAL cxy = s->xz * s->yz - s->xy * s->zz;
  REAL cxz = s->xy * s->yz - s->xz * s->yy;
  REAL cyy = s->xx * s->zz - s->xz * s->xz;
  REAL cyz = s->xy * s->xz - s->xx * s->yz;
  REAL czz = s->xx * s->yy - s->xy * s->xy;
  REAL det = s->xx * cxx + s->xy * cxy + s->xz * cxz;
  REAL trace = s->xx + s->yy + s->zz;
  Solution r;

  r.x = (cxx * s->x + cxy * s->y + cxz * s->z) / det;
  r.y = (cxy * s->x + cyy * s->y + cyz * s->z) / det;
  r.z = (cxz * s->x + cyz * s->y + czz * s->z) / det;
  r.norm2 = r.x * r.x + r.y * r.y + r.z * r.z;
  r.condition = det / (trace * (cxx + cyy + czz));
  r.volume = det / (trace * trace * trace);
  return r;
}
