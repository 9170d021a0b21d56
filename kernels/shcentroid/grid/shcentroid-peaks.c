/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/grid/shcentroid-peaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_PEAKS = 1 << 17, /* a lattice of 4 pixels in 1400x1400 */
  MAX_TAPS = 3 * 20 + 1,
  MAX_SAMPLES = 1 << 16,
};

/* Below the level of the band a maximum is none, nor below this part of the
 * largest, where there is no noise. */
#define LEAST_PART 2e-3

/* What is not finite becomes the smallest value: there is no peak. */
static void
load_floats (ImkPeaks *p, const ImkImage *frame)
{
  size_t n = (size_t) p->width * p->height;
  float least = 0;
  bool any = false;

  for (uint32_t y = 0; y < p->height; y++)
    memcpy (p->pixels + (size_t) y * p->width,
        (const uint8_t *) frame->data + y * frame->stride,
        p->width * sizeof (float));
  for (size_t i = 0; i < n; i++) {
    float value = p->pixels[i];

    if (fabsf (value) <= 1e30f && (!any || value < least)) {
      least = value;
      any = true;
    }
  }
  for (size_t i = 0; i < n; i++)
    p->pixels[i] = fabsf (p->pixels[i]) <= 1e30f ? p->pixels[i] : least;
}

static void
load (ImkPeaks *p, const ImkImage *frame)
{
  if (frame->type == IMK_TYPE_F32) {
    load_floats (p, frame);
    return;
  }
  for (uint32_t y = 0; y < p->height; y++) {
    const uint8_t *row = (const uint8_t *) frame->data + y * frame->stride;
    float *to = p->pixels + (size_t) y * p->width;

    if (frame->type == IMK_TYPE_U8)
      for (uint32_t x = 0; x < p->width; x++)
        to[x] = row[x];
    else
      for (uint32_t x = 0; x < p->width; x++)
        to[x] = ((const uint16_t *) row)[x];
  }
}

int
imk_peaks_compare_floats (const void *a, const void *b)
{
  float x = *(const float *) a, y = *(const float *) b;

  return (x > y) - (x < y);
}

/* The median of the neighbours takes the place of a hot pixel: one that stands
 * out ten times as far as the largest of them. A spot of sigma 0.6 does not. */
static void
remove_hot_pixels (const ImkPeaks *p, const float *from, float *to)
{
  memcpy (to, from, (size_t) p->width * p->height * sizeof (*to));
  for (uint32_t y = 1; y + 1 < p->height; y++)
    for (uint32_t x = 1; x + 1 < p->width; x++) {
      const float *at = from + (size_t) y * p->width + x;
      const float *above = at - p->width, *below = at + p->width;
      float near[8] = {above[-1], above[0], above[1], at[-1], at[1], below[-1],
          below[0], below[1]};
      float largest = near[0], middle;

      for (int k = 1; k < 8; k++)
        largest = fmaxf (largest, near[k]);
      if (*at <= largest) /* nearly always */
        continue;
      qsort (near, 8, sizeof (*near), imk_peaks_compare_floats);
      middle = (near[3] + near[4]) / 2;
      if (*at - middle > 10 * (largest - middle))
        to[at - from] = middle;
    }
}

ImkStatus
imk_peaks_init (ImkPeaks *self, const ImkImage *frame, ImkError *error)
{
  size_t size = (size_t) frame->width * frame->height * sizeof (float);

  *self = (ImkPeaks){
      .width = frame->width,
      .height = frame->height,
      .pixels = malloc (size),
      .narrow = malloc (size),
      .wide = malloc (size),
      .scratch = malloc (size),
  };
  if (!self->pixels || !self->narrow || !self->wide || !self->scratch)
    return IMK_NO_MEMORY (error, "to look for spots in %ux%u pixels.",
        frame->width, frame->height);
  load (self, frame);
  remove_hot_pixels (self, self->pixels, self->scratch);
  memcpy (self->pixels, self->scratch, size);
  return IMK_OK;
}

void
imk_peaks_clear (ImkPeaks *self)
{
  free (self->pixels);
  free (self->narrow);
  free (self->wide);
  free (self->scratch);
  free (self->peaks);
  *self = (ImkPeaks){0};
}

/* ------------------------------------------------------------------------
 * Gaussian blur; beyond the edge the last pixel goes on. */

static uint32_t
make_taps (double sigma, float taps[MAX_TAPS])
{
  uint32_t radius = (uint32_t) ceil (3 * sigma);
  double sum = 0;

  if (radius > MAX_TAPS - 1)
    radius = MAX_TAPS - 1;
  for (uint32_t i = 0; i <= radius; i++)
    sum += (i ? 2 : 1) * exp (-0.5 * i * i / (sigma * sigma));
  for (uint32_t i = 0; i <= radius; i++)
    taps[i] = (float) (exp (-0.5 * i * i / (sigma * sigma)) / sum);
  return radius;
}

static uint32_t
clamp (int64_t at, uint32_t size)
{
  return at < 0 ? 0 : at >= size ? size - 1 : (uint32_t) at;
}

static void
blur_rows (const ImkPeaks *p, const float *taps, uint32_t radius,
    const float *from, float *to)
{
  for (uint32_t y = 0; y < p->height; y++) {
    const float *in = from + (size_t) y * p->width;
    float *out = to + (size_t) y * p->width;

    for (uint32_t x = 0; x < p->width; x++) {
      float sum = taps[0] * in[x];

      for (uint32_t i = 1; i <= radius; i++)
        sum += taps[i] * (in[clamp ((int64_t) x - i, p->width)] +
                             in[clamp ((int64_t) x + i, p->width)]);
      out[x] = sum;
    }
  }
}

static void
blur_columns (const ImkPeaks *p, const float *taps, uint32_t radius,
    const float *from, float *to)
{
  for (uint32_t y = 0; y < p->height; y++) {
    const float *middle = from + (size_t) y * p->width;
    float *out = to + (size_t) y * p->width;

    for (uint32_t x = 0; x < p->width; x++)
      out[x] = taps[0] * middle[x];
    for (uint32_t i = 1; i <= radius; i++) {
      const float *above =
          from + (size_t) clamp ((int64_t) y - i, p->height) * p->width;
      const float *below =
          from + (size_t) clamp ((int64_t) y + i, p->height) * p->width;

      for (uint32_t x = 0; x < p->width; x++)
        out[x] += taps[i] * (above[x] + below[x]);
    }
  }
}

static void
blur (ImkPeaks *p, double sigma, float *to)
{
  float taps[MAX_TAPS];
  uint32_t radius = make_taps (sigma, taps);

  blur_rows (p, taps, radius, p->pixels, p->scratch);
  blur_columns (p, taps, radius, p->scratch, to);
}

/* ------------------------------------------------------------------------
 * Maxima. */

/* The sigma of the band, from the median of |band|, of evenly spread samples
 * of it. That is noise where spots are few, but light where they are dense, so
 * no more can be asked for here. */
static float
least_strength (const float *band, size_t n, float *samples)
{
  size_t step = n / MAX_SAMPLES + 1, count = 0;
  float largest = 0;

  for (size_t i = 0; i < n; i++)
    largest = fmaxf (largest, band[i]);
  for (size_t i = 0; i < n; i += step)
    samples[count++] = fabsf (band[i]);
  qsort (samples, count, sizeof (float), imk_peaks_compare_floats);
  return fmaxf (1.4826f * samples[count / 2], (float) LEAST_PART * largest);
}

/* Of equal neighbours the first one is the maximum. */
static bool
is_maximum (const float *at, size_t stride)
{
  const float *above = at - stride, *below = at + stride;

  return *at > above[-1] && *at > above[0] && *at > above[1] && *at > at[-1] &&
         *at >= at[1] && *at >= below[-1] && *at >= below[0] && *at >= below[1];
}

/* Where the parabola through three values has its top. */
static double
top_of (double left, double middle, double right)
{
  double bend = left - 2 * middle + right;

  return bend < 0 ? 0.5 * (left - right) / bend : 0;
}

static ImkStatus
add_peak (ImkPeaks *p, ImkPeak peak, ImkError *error)
{
  if (p->n == p->room) {
    uint32_t room = p->room ? 2 * p->room : 1024;
    ImkPeak *peaks = realloc (p->peaks, room * sizeof (*peaks));

    if (!peaks)
      return IMK_NO_MEMORY (error, "for %u spots.", room);
    p->peaks = peaks;
    p->room = room;
  }
  p->peaks[p->n++] = peak;
  return IMK_OK;
}

static int
compare_peaks (const void *a, const void *b)
{
  const ImkPeak *x = a, *y = b;

  if (x->strength != y->strength)
    return x->strength < y->strength ? 1 : -1;
  if (x->y != y->y) /* the order of equal ones must not depend on qsort */
    return x->y < y->y ? -1 : 1;
  return (x->x > y->x) - (x->x < y->x);
}

static ImkStatus
find_maxima (ImkPeaks *p, const float *band, float least, ImkError *error)
{
  size_t stride = p->width;

  p->n = 0;
  for (uint32_t y = 1; y + 1 < p->height; y++)
    for (uint32_t x = 1; x + 1 < p->width; x++) {
      const float *at = band + y * stride + x;

      if (*at > least && is_maximum (at, stride))
        IMK_TRY (add_peak (p,
            (ImkPeak){x + top_of (at[-1], at[0], at[1]),
                y + top_of (at[-(ptrdiff_t) stride], at[0], at[stride]), *at},
            error));
    }
  if (p->n)
    qsort (p->peaks, p->n, sizeof (*p->peaks), compare_peaks);
  if (p->n > MAX_PEAKS)
    p->n = MAX_PEAKS;
  return IMK_OK;
}

ImkStatus
imk_peaks_next (ImkPeaks *self, ImkError *error)
{
  size_t n = (size_t) self->width * self->height;
  float *band = self->scratch, *samples;
  float *narrow = self->wide;
  ImkStatus status;

  if (self->sigma == 0) {
    self->sigma = IMK_PEAKS_FIRST_SIGMA;
    blur (self, self->sigma, self->narrow);
  } else {
    self->sigma *= 2;
    self->wide = self->narrow; /* the wide one of before is the narrow one */
    self->narrow = narrow;
  }
  blur (self, 2 * self->sigma, self->wide);
  for (size_t i = 0; i < n; i++)
    band[i] = self->narrow[i] - self->wide[i];
  samples = malloc (MAX_SAMPLES * sizeof (float));
  if (!samples)
    return IMK_NO_MEMORY (error, "to look for spots.");
  status = find_maxima (self, band, least_strength (band, n, samples), error);
  free (samples);
  return status;
}
