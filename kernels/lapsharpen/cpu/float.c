/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of float32 frames, compiled once for each instruction set. The loops
 * over a chunk take the steps of lapsharpen-float.h one by one, so that
 * compilers vectorise them; each sample sees the same operations. */
#include "lapsharpen/cpu/float.h"

#include <string.h>

#define INLINE static inline __attribute__ ((always_inline))

enum { CHUNK = 256 };

/* --- the border ----------------------------------------------------------- */

static void
pad_pixels (
    const FloatWork *w, const ImkLapsharpenPlane *p, int y, int x0, int x1)
{
  float *to = imk_lapsharpen_pixel (p, x0, y);

  for (int x = x0; x < x1; x++)
    for (int i = 0; i < p->channels; i++)
      *to++ =
          imk_lapsharpen_padded (w->rule, w->in->data, w->in->stride, x, y, i);
}

static void
pad (const FloatWork *w, const ImkLapsharpenPlane *p, int first, int end)
{
  const int width = (int) w->rule->width, height = (int) w->rule->height;

  for (int y = first; y < end; y++) {
    const int from = imk_lapsharpen_inside (y, height, w->rule);
    const uint8_t *row =
        (const uint8_t *) w->in->data + (size_t) from * w->in->stride;

    if (from != y && w->rule->constant) {
      pad_pixels (w, p, y, p->x0, p->x1);
      continue;
    }
    pad_pixels (w, p, y, p->x0, 0);
    memcpy (imk_lapsharpen_pixel (p, 0, y), row, imk_image_row_size (w->in));
    pad_pixels (w, p, y, width, p->x1);
  }
}

/* --- sums ----------------------------------------------------------------- */

/* Adds float64 in 32 lanes, then the lanes in their order; so does a warp.
 * @channels: bit c: channel c counts */
INLINE ImkLapsharpenMoments
sum_row (const float *v, ptrdiff_t c, ptrdiff_t s, int n, uint32_t channels,
    bool noise, bool eight)
{
  double sum[IMK_LAPSHARPEN_LANES] = {0}, squares[IMK_LAPSHARPEN_LANES] = {0};
  ImkLapsharpenMoments m = {0};

  for (int i = 0; i < n; i++) {
    const float value =
        noise ? imk_lapsharpen_float_noise (v + i, c, s)
              : imk_lapsharpen_float_laplacian (v + i, c, s, eight);
    const int lane = i % IMK_LAPSHARPEN_LANES;

    if (value - value != 0 || !(channels >> i % c & 1))
      continue;
    sum[lane] += (double) value;
    squares[lane] += (double) value * (double) value;
    m.n++;
  }
  for (int i = 0; i < IMK_LAPSHARPEN_LANES; i++) {
    m.sum += sum[i];
    m.squares += squares[i];
  }
  return m;
}

static void
measure_noise (
    const FloatWork *w, const ImkLapsharpenPlane *p, int first, int end)
{
  const int c = p->channels, n = ((int) w->rule->width - 2) * c;

  for (int y = first; y < end; y++)
    w->moments[y] =
        y > 0 && y + 1 < (int) w->rule->height
            ? sum_row (imk_lapsharpen_pixel (p, 1, y), c,
                  imk_lapsharpen_row_floats (p), n, w->rule->noisy, true, false)
            : (ImkLapsharpenMoments){0};
}

static void
measure_focus (
    const FloatWork *w, const ImkLapsharpenPlane *p, int first, int end)
{
  const int c = p->channels, n = (int) w->rule->width * c;

  for (int y = first; y < end; y++)
    w->moments[y] = sum_row (imk_lapsharpen_pixel (p, 0, y), c,
        imk_lapsharpen_row_floats (p), n, w->rule->measured, false,
        w->rule->neighbours == 8);
}

/* --- smoothing ------------------------------------------------------------ */

INLINE void
fold_chunk (const float *v, ptrdiff_t distance, const ImkLapsharpenPass *p,
    int n, float *restrict out)
{
  float sum[CHUNK];

  for (int i = 0; i < n; i++)
    sum[i] = p->w[0] * v[i];
  for (int j = 1; j <= p->reach; j++)
    for (int i = 0; i < n; i++)
      sum[i] += p->w[j] * (v[i - j * distance] + v[i + j * distance]);
  for (int i = 0; i < n; i++)
    out[i] = p->add ? out[i] + sum[i] : sum[i];
}

INLINE void
grow_chunk (const float *v, ptrdiff_t distance, const float *w, int n,
    float *restrict out)
{
  for (int i = 0; i < n; i++)
    out[i] = (w[0] * v[i - distance] + w[1] * v[i]) + w[2] * v[i + distance];
}

/* One row whose samples are made of samples that lie as they do. */
static void
pass_row (const ImkLapsharpenPass *p, int y)
{
  const int d = p->step, k = p->grow ? (y + d / 2) / d : y * d;
  const float *v =
      imk_lapsharpen_pixel (&p->in, p->out.x0, p->along_row ? y : k);
  const ptrdiff_t n = imk_lapsharpen_row_floats (&p->out);
  const ptrdiff_t distance =
      p->along_row ? p->in.channels : imk_lapsharpen_row_floats (&p->in);
  float *out = imk_lapsharpen_pixel (&p->out, p->out.x0, y);

  for (ptrdiff_t i = 0; i < n; i += CHUNK) {
    const int m = (int) (n - i < CHUNK ? n - i : CHUNK);

    if (p->grow)
      grow_chunk (v + i, distance, p->grown[(y + d / 2) % d], m, out + i);
    else
      fold_chunk (v + i, distance, p, m, out + i);
  }
}

static void
pass (const ImkLapsharpenPass *p, int first, int end)
{
  for (int y = first; y < end; y++) {
    float *out = imk_lapsharpen_pixel (&p->out, p->out.x0, y);

    if (!p->along_row || p->step == 1) {
      pass_row (p, y);
      continue;
    }
    for (int x = p->out.x0; x < p->out.x1; x++)
      for (int i = 0; i < p->out.channels; i++)
        *out++ = imk_lapsharpen_passed (p, x, y, i);
  }
}

/* --- sharpening ----------------------------------------------------------- */

/* Makes s L, and what it and the sample make, of a chunk. */
INLINE void
add_laplacian (float amount, const float *v, ptrdiff_t c, ptrdiff_t s,
    bool eight, int n, float *restrict added, float *restrict made)
{
  for (int i = 0; i < n; i++) {
    added[i] = amount * imk_lapsharpen_float_laplacian (v + i, c, s, eight);
    made[i] = v[i] + added[i];
  }
}

INLINE void
add_detail (float amount, const float *v, const float *smooth, bool is_log,
    int n, float *restrict added, float *restrict made)
{
  for (int i = 0; i < n; i++) {
    added[i] = amount * ((is_log ? 0.0f : v[i]) - smooth[i]);
    made[i] = v[i] + added[i];
  }
}

INLINE void
correlate (const ImkLapsharpenRule *rule, const float *v, ptrdiff_t c,
    ptrdiff_t s, int n, float *restrict added, float *restrict made)
{
  const int size = (int) rule->kernel_size, reach = (int) rule->reach;

  memset (made, 0, sizeof (*made) * (size_t) n);
  for (int k = 0; k < size * size; k++) {
    const float *from = v + (k / size - reach) * s + (k % size - reach) * c;
    const float weight = rule->kernel[k];

    for (int i = 0; i < n; i++)
      made[i] += weight * from[i];
  }
  for (int i = 0; i < n; i++)
    added[i] = made[i] - v[i];
}

INLINE void
core (float least, bool soft, bool edges, const float *v, const float *added,
    int n, float *restrict made)
{
  for (int i = 0; i < n; i++)
    made[i] = imk_lapsharpen_float_cored (
        v[i], added[i], made[i], least, soft, edges);
}

/* As imk_lapsharpen_float_limited () for a chunk. Compilers do not vectorise
 * that one. */
INLINE void
limit (const ImkLapsharpenRule *rule, const float *v, ptrdiff_t c, ptrdiff_t s,
    int n, float *restrict made)
{
  const bool dark = rule->halo_dark < UINT32_MAX;
  const bool bright = rule->halo_bright < UINT32_MAX;
  const float below = dark ? (float) rule->halo_dark : INFINITY;
  const float above = bright ? (float) rule->halo_bright : INFINITY;
  float low[CHUNK], high[CHUNK];

  memcpy (low, v, sizeof (*low) * (size_t) n);
  memcpy (high, v, sizeof (*high) * (size_t) n);
  for (int k = 0; k < 9; k++) {
    const float *from = v + (k / 3 - 1) * s + (k % 3 - 1) * c;

    for (int i = 0; i < n; i++) {
      low[i] = from[i] < low[i] ? from[i] : low[i];
      high[i] = from[i] > high[i] ? from[i] : high[i];
    }
  }
  for (int i = 0; i < n; i++) {
    const float least = low[i] - below, most = high[i] + above;
    float value = made[i] < least ? least : made[i];

    made[i] = value > most ? most : value;
  }
}

/* Constants for what decides let compilers vectorise. @smooth: of the same
 * samples */
INLINE void
sharpen_chunk (const ImkLapsharpenRule *rule, const float *v, ptrdiff_t c,
    ptrdiff_t s, const float *smooth, int n, float *restrict made)
{
  const float amount = rule->amount, least = rule->threshold * amount;
  float added[CHUNK];

  if (rule->kernel_size)
    correlate (rule, v, c, s, n, added, made);
  else if (rule->smooth.step)
    add_detail (amount, v, smooth, rule->smooth.is_log, n, added, made);
  else if (rule->neighbours == 8)
    add_laplacian (amount, v, c, s, true, n, added, made);
  else
    add_laplacian (amount, v, c, s, false, n, added, made);
  if (rule->edges)
    core (least, rule->soft, true, v, added, n, made);
  else if (rule->soft)
    core (least, true, false, v, added, n, made);
  else
    core (least, false, false, v, added, n, made);
  if (rule->local)
    limit (rule, v, c, s, n, made);
}

/* The same at once for what most frames need: v + s L where |L| reaches the
 * threshold. */
INLINE void
sharpen_plain (float amount, float least, const float *v, ptrdiff_t c,
    ptrdiff_t s, bool eight, ptrdiff_t n, float *restrict out)
{
  for (ptrdiff_t i = 0; i < n; i++) {
    const float added =
        amount * imk_lapsharpen_float_laplacian (v + i, c, s, eight);
    const float value = imk_lapsharpen_float_cored (
        v[i], added, v[i] + added, least, false, false);

    out[i] = value == value ? value : NAN;
  }
}

/* Gives back what of a row of @out is not to change. */
static void
restore (const FloatWork *w, const float *v, int y, float *out)
{
  const ImkLapsharpenRule *rule = w->rule;
  const uint32_t c = rule->channels;
  const uint32_t width = rule->width;

  for (uint32_t x = 0; x < width; x++) {
    uint32_t weight = 255;

    if (!imk_lapsharpen_in_areas (rule, x, (uint32_t) y))
      weight = 0;
    else if (w->mask)
      weight = w->mask[(size_t) y * width + x];
    for (uint32_t i = 0; i < c; i++)
      out[x * c + i] = imk_lapsharpen_float_mixed (
          v[x * c + i], out[x * c + i], rule->filtered >> i & 1 ? weight : 0);
  }
}

static void
sharpen_row (const ImkLapsharpenRule *rule, const float *v, ptrdiff_t c,
    ptrdiff_t s, const float *smooth, ptrdiff_t n, float *out)
{
  const float amount = rule->amount, least = rule->threshold * amount;
  const bool plain = !rule->kernel_size && !rule->smooth.step && !rule->edges &&
                     !rule->soft && !rule->local;

  if (plain && rule->neighbours == 4)
    sharpen_plain (amount, least, v, c, s, false, n, out);
  else if (plain)
    sharpen_plain (amount, least, v, c, s, true, n, out);
  for (ptrdiff_t i = 0; i < n && !plain; i += CHUNK) {
    const int m = (int) (n - i < CHUNK ? n - i : CHUNK);
    float made[CHUNK];

    sharpen_chunk (rule, v + i, c, s, smooth + i, m, made);
    for (int j = 0; j < m; j++)
      out[i + j] = made[j] == made[j] ? made[j] : NAN;
  }
}

static void
sharpen (const FloatWork *w, const ImkLapsharpenPlane *p, int first, int end)
{
  const ImkLapsharpenRule *rule = w->rule;
  const ptrdiff_t c = p->channels, s = imk_lapsharpen_row_floats (p);
  const ptrdiff_t n = (ptrdiff_t) rule->width * c;
  const bool whole = !w->mask && rule->n_areas == 0 &&
                     rule->filtered == (1u << rule->channels) - 1;

  for (int y = first; y < end; y++) {
    const float *v = imk_lapsharpen_pixel (p, 0, y);
    const float *smooth =
        rule->smooth.step ? imk_lapsharpen_pixel (&w->plan->smooth, 0, y) : v;
    float *out = (float *) (void *) ((uint8_t *) w->out->data +
                                     (size_t) y * w->out->stride);

    sharpen_row (rule, v, c, s, smooth, n, out);
    if (!whole)
      restore (w, v, y, out);
  }
}

const ImkLapsharpenFloatLoops IMK_ISA_TABLE = {
    .pad = pad,
    .sharpen = sharpen,
    .measure_noise = measure_noise,
    .measure_focus = measure_focus,
    .pass = pass,
};
