/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output at column r and line a is the input at (x, y), which
 * imk/slcresample.h defines. The image is interpolated in two passes (Catmull
 * and Smith, "3-D transformations of images in scanline order", 1980):
 *
 *   s(x', a)   sum over k of w_k (y - floor (y)) in(x', floor (y) - taps/2 + 1
 *              + k) along each input column x'; output line a crosses it at y
 *   out(r, a)  the same sum along s(., a), at x
 *
 * w are the weights with the least mean square error for a flat spectrum of the
 * bandwidth around the Doppler centroid, R w = p (slcresample.c solves this). A
 * sample is 0 if a tap is outside the image. */
#include "slcresample/slcresample-reference.h"

#include <complex.h>

#include "core/sample.h"
#include "slcresample/slcresample-private.h"

/* Returns: the weight of tap @k at the fraction @f, between those of the
 * table */
static double complex
get_weight (const ImkSlcresampleWeights *w, uint32_t taps, uint32_t k, double f)
{
  double at = f * IMK_SLCRESAMPLE_N_PHASES, part = at - floor (at);
  const float *re = w->re + (uint32_t) at * taps + k;
  double complex weight = re[0] + part * (re[taps] - re[0]);

  if (w->im) {
    const float *im = w->im + (uint32_t) at * taps + k;

    weight += I * (im[0] + part * (im[taps] - im[0]));
  }
  return weight;
}

static double complex
get_sample (const ImkImage *in, int64_t x, int64_t y)
{
  return imk_sample_get (in, (uint32_t) x, (uint32_t) y, 0) +
         I * imk_sample_get (in, (uint32_t) x, (uint32_t) y, 1);
}

/* Returns: the input line where output line @a, straight between the places of
 * its columns, crosses input column @x, near output column @r */
static double
find_crossing (const ImkSlcresampleConfig *c, double x, double r, double a)
{
  double left[2], right[2];

  do
    imk_slcresample_field_at (c, r--, a, left);
  while (left[0] > x);
  r++;
  do {
    imk_slcresample_field_at (c, r, a, left);
    imk_slcresample_field_at (c, ++r, a, right);
  } while (right[0] < x);
  return left[1] + (x - left[0]) / (right[0] - left[0]) * (right[1] - left[1]);
}

/* The first pass: column @x where output line @a crosses it, near output column
 * @r. Returns: whether all taps lie inside */
static bool
cross_column (const ImkSlcresampleConfig *c, const ImkSlcresampleWeights *w,
    const ImkImage *in, int64_t x, double r, double a, double complex *sum)
{
  double y = c->field ? find_crossing (c, (double) x, r, a)
                      : imk_slcresample_y (c, (double) x, a);
  int64_t first = (int64_t) floor (y) - c->taps / 2 + 1;

  *sum = 0;
  if (first < 0 || first + c->taps > c->height)
    return false;
  for (uint32_t k = 0; k < c->taps; k++)
    *sum += get_weight (w, c->taps, k, y - floor (y)) *
            get_sample (in, x, first + k);
  return true;
}

/* The second pass: along the line that the first has made. */
static double complex
resample (const ImkSlcresampleConfig *c, const ImkSlcresampleWeights *w,
    const ImkImage *in, double r, double a)
{
  double x = imk_slcresample_x (c, r, a), at[2];
  double complex sum = 0, crossed;
  int64_t first;

  if (c->field) {
    imk_slcresample_field_at (c, r, a, at);
    x = at[0];
  }
  first = (int64_t) floor (x) - c->taps / 2 + 1;
  if (first < 0 || first + c->taps > c->width)
    return 0;
  for (uint32_t k = 0; k < c->taps; k++) {
    if (!cross_column (
            c, &w[IMK_SLCRESAMPLE_AZIMUTH], in, first + k, r, a, &crossed))
      return 0;
    sum += get_weight (&w[IMK_SLCRESAMPLE_RANGE], c->taps, k, x - floor (x)) *
           crossed;
  }
  return sum;
}

void
imk_slcresample_reference (
    const ImkSlcresampleConfig *c, const ImkImage *in, ImkImage *out)
{
  ImkSlcresampleWeights w[IMK_SLCRESAMPLE_N_AXES];

  imk_slcresample_weights_init (&w[0], c->taps, c->bandwidth, 0, NULL);
  imk_slcresample_weights_init (&w[1], c->taps, c->bandwidth, c->doppler, NULL);
  for (uint32_t a = 0; a < c->out_height; a++)
    for (uint32_t r = 0; r < c->out_width; r++) {
      double complex sum = resample (c, w, in, r, a);

      imk_sample_put (out, r, a, 0, creal (sum));
      imk_sample_put (out, r, a, 1, cimag (sum));
    }
  imk_slcresample_weights_clear (&w[0]);
  imk_slcresample_weights_clear (&w[1]);
}
