/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of float32 frames, compiled once for each instruction set. The loops
 * over a chunk take the steps of lapsharpen-float.h one by one, so that
 * compilers vectorise them; each sample sees the same operations. */
#include "lapsharpen/cpu/float.h"

#include <string.h>

#define INLINE static inline __attribute__ ((always_inline))

typedef float Floats __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

enum {
  CHUNK = 256,
  LANES = IMK_VECTOR_SIZE / sizeof (float),
  SUMS = 4, /* vectors whose sums are made together, in registers: each waits
             * for the addition before */
};

INLINE Floats
load (const float *from)
{
  Floats v;

  memcpy (&v, from, sizeof (v));
  return v;
}

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

/* Sums of lanes. */
typedef struct Lanes {
  double sum[IMK_LAPSHARPEN_LANES], squares[IMK_LAPSHARPEN_LANES];
  int32_t n[IMK_LAPSHARPEN_LANES];
} Lanes;

/* Adds the values of @n samples that are finite and count. What is added for
 * the others, 0, changes no bit of a sum that began at 0. */
INLINE void
add_lanes (const float *v, ptrdiff_t c, ptrdiff_t s, const int32_t *counted,
    int n, bool noise, bool eight, Lanes *lanes)
{
  for (int i = 0; i < n; i++) {
    const float value =
        noise ? imk_lapsharpen_float_noise (v + i, c, s)
              : imk_lapsharpen_float_laplacian (v + i, c, s, eight);
    const bool adds = counted[i] && value - value == 0;
    const double added = adds ? (double) value : 0;

    lanes->sum[i] += added;
    lanes->squares[i] += added * added;
    lanes->n[i] += adds;
  }
}

/* Adds float64 in 32 lanes, then the lanes in their order; so does a warp.
 * @channels: bit c: channel c counts */
INLINE ImkLapsharpenMoments
sum_row (const float *v, ptrdiff_t c, ptrdiff_t s, int n, uint32_t channels,
    bool noise, bool eight)
{
  enum { ALL = IMK_LAPSHARPEN_LANES, PERIOD = 3 * ALL }; /* of 1..4 channels */
  int32_t counted[PERIOD];
  Lanes lanes = {0};
  ImkLapsharpenMoments m = {0};
  int i = 0;

  for (int j = 0; j < PERIOD; j++)
    counted[j] = channels >> j % c & 1;
  for (; i + ALL <= n; i += ALL)
    add_lanes (v + i, c, s, counted + i % PERIOD, ALL, noise, eight, &lanes);
  add_lanes (v + i, c, s, counted + i % PERIOD, n - i, noise, eight, &lanes);
  for (int j = 0; j < ALL; j++) {
    m.sum += lanes.sum[j];
    m.squares += lanes.squares[j];
    m.n += (uint64_t) lanes.n[j];
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

/* imk_lapsharpen_fold () of @n vectors, a constant. */
INLINE void
fold_vectors (const float *v, ptrdiff_t distance, const ImkLapsharpenPass *p,
    int n, float *out)
{
  Floats sums[SUMS];

  for (int k = 0; k < n; k++)
    sums[k] = p->w[0] * load (v + k * LANES);
  for (ptrdiff_t j = 1; j <= p->reach; j++)
    for (int k = 0; k < n; k++)
      sums[k] += p->w[j] * (load (v + k * LANES - j * distance) +
                               load (v + k * LANES + j * distance));
  for (int k = 0; k < n; k++) {
    if (p->add)
      sums[k] = load (out + k * LANES) + sums[k];
    memcpy (out + k * LANES, &sums[k], sizeof (sums[k]));
  }
}

INLINE void
fold_row (const float *v, ptrdiff_t distance, const ImkLapsharpenPass *p,
    ptrdiff_t n, float *out)
{
  ptrdiff_t i = 0;

  for (; i + SUMS * LANES <= n; i += SUMS * LANES)
    fold_vectors (v + i, distance, p, SUMS, out + i);
  for (; i + LANES <= n; i += LANES)
    fold_vectors (v + i, distance, p, 1, out + i);
  for (; i < n; i++) {
    const float sum = imk_lapsharpen_fold (v + i, distance, p->w, p->reach);

    out[i] = p->add ? out[i] + sum : sum;
  }
}

INLINE void
grow_row (const float *v, ptrdiff_t distance, const float *w, ptrdiff_t n,
    float *restrict out)
{
  for (ptrdiff_t i = 0; i < n; i++)
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

  if (p->grow)
    grow_row (v, distance, p->grown[(y + d / 2) % d], n, out);
  else
    fold_row (v, distance, p, n, out);
}

/* Copies every @d-th pixel. */
INLINE void
gather (const float *from, int d, int c, int n, float *restrict to)
{
  for (int x = 0; x < n; x++)
    for (int i = 0; i < c; i++)
      to[x * c + i] = from[x * d * c + i];
}

/* Low pixels @x to @end of a row, a chunk. Pixels whose numbers have the same
 * rest by the step lie side by side in a line, so that vectors can be used. */
INLINE void
shrink_chunk (
    const ImkLapsharpenPass *p, const int c, int y, int x, int end, float *out)
{
  enum { BESIDE = 2 }; /* low pixels that the furthest one is away */
  const int d = p->step, n = (end - x) * c;
  float lines[IMK_LAPSHARPEN_MAX_STEP][CHUNK + 2 * 4 * BESIDE];

  for (int j = -p->reach; j < d - p->reach; j++) {
    const float *from = imk_lapsharpen_pixel (&p->in, x * d + j, y);
    const int at = j + BESIDE * d, more = (p->reach - j) / d;

    gather (from, d, c, end - x + more, lines[at % d] + at / d * c);
  }
  for (int i = 0; i < n; i++)
    out[i] = p->w[0] * lines[0][BESIDE * c + i];
  for (int j = 1; j <= p->reach; j++) {
    const int before = BESIDE * d - j, after = BESIDE * d + j;
    const float *v = lines[before % d] + before / d * c;
    const float *w = lines[after % d] + after / d * c;

    for (int i = 0; i < n; i++)
      out[i] += p->w[j] * (v[i] + w[i]);
  }
}

INLINE void
shrink_row (const ImkLapsharpenPass *p, const int c, int y)
{
  const int chunk = CHUNK / c;

  for (int x = p->out.x0; x < p->out.x1; x += chunk) {
    const int end = x + chunk < p->out.x1 ? x + chunk : p->out.x1;
    float made[CHUNK];

    shrink_chunk (p, c, y, x, end, made);
    memcpy (imk_lapsharpen_pixel (&p->out, x, y), made,
        sizeof (*made) * (size_t) ((end - x) * c));
  }
}

/* What the low pixels @k to @end, a chunk, are the nearest ones of. */
INLINE void
grow_chunk (const ImkLapsharpenPass *p, const int c, int y, int k, int end)
{
  const int d = p->step, n = (end - k) * c;
  const float *v = imk_lapsharpen_pixel (&p->in, k, y);
  float *out = imk_lapsharpen_pixel (&p->out, 0, y);

  for (int rest = 0; rest < d; rest++) {
    int x = k * d - d / 2 + rest, i = 0;
    float made[CHUNK];

    grow_row (v, c, p->grown[rest], n, made);
    if (x < 0) {
      x += d;
      i += c;
    }
    for (; i < n && x < p->out.x1; i += c, x += d)
      for (int j = 0; j < c; j++)
        out[x * c + j] = made[i + j];
  }
}

INLINE void
grow_along_row (const ImkLapsharpenPass *p, const int c, int y)
{
  const int last = (p->out.x1 - 1 + p->step / 2) / p->step + 1;
  const int chunk = CHUNK / c;

  for (int k = 0; k < last; k += chunk)
    grow_chunk (p, c, y, k, k + chunk < last ? k + chunk : last);
}

/* @c: the channels, a constant */
INLINE void
pass_by (const ImkLapsharpenPass *p, const int c, int y)
{
  if (!p->along_row || p->step == 1)
    pass_row (p, y);
  else if (p->grow)
    grow_along_row (p, c, y);
  else
    shrink_row (p, c, y);
}

static void
pass (const ImkLapsharpenPass *p, int first, int end)
{
  for (int y = first; y < end; y++)
    if (p->in.channels == 1)
      pass_by (p, 1, y);
    else
      pass_by (p, p->in.channels, y);
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

/* imk_lapsharpen_float_correlate () of @n vectors, a constant. */
INLINE void
correlate_vectors (const ImkLapsharpenRule *rule, const float *v, ptrdiff_t c,
    ptrdiff_t s, int n, float *made)
{
  const int reach = (int) rule->reach;
  const float *weight = rule->kernel;
  Floats sums[SUMS] = {0};

  for (int dy = -reach; dy <= reach; dy++)
    for (int dx = -reach; dx <= reach; dx++, weight++)
      for (int k = 0; k < n; k++)
        sums[k] += *weight * load (v + k * LANES + dy * s + dx * c);
  memcpy (made, sums, sizeof (*sums) * (size_t) n);
}

INLINE void
correlate (const ImkLapsharpenRule *rule, const float *v, ptrdiff_t c,
    ptrdiff_t s, int n, float *restrict added, float *restrict made)
{
  int i = 0;

  for (; i + SUMS * LANES <= n; i += SUMS * LANES)
    correlate_vectors (rule, v + i, c, s, SUMS, made + i);
  for (; i + LANES <= n; i += LANES)
    correlate_vectors (rule, v + i, c, s, 1, made + i);
  for (; i < n; i++)
    made[i] = imk_lapsharpen_float_correlate (rule, v + i, c, s);
  for (i = 0; i < n; i++)
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

/* Takes @n into the least and the largest of a window. A NaN is neither. */
INLINE void
take (float n, float *low, float *high)
{
  *low = n < *low ? n : *low;
  *high = n > *high ? n : *high;
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

  for (int i = 0; i < n; i++) {
    const float *at = v + i;
    float low = *at, high = *at, value = made[i];

    take (at[-s - c], &low, &high);
    take (at[-s], &low, &high);
    take (at[-s + c], &low, &high);
    take (at[-c], &low, &high);
    take (at[c], &low, &high);
    take (at[s - c], &low, &high);
    take (at[s], &low, &high);
    take (at[s + c], &low, &high);
    low -= below;
    high += above;
    value = value < low ? low : value;
    made[i] = value > high ? high : value;
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

/* What L is of. */
typedef enum Kind { CROSS, SQUARE, UNSHARP, LOG } Kind;

INLINE float
detail_at (Kind kind, const float *v, ptrdiff_t c, ptrdiff_t s, float smooth)
{
  return kind == LOG ? 0.0f - smooth
         : kind == UNSHARP
             ? *v - smooth
             : imk_lapsharpen_float_laplacian (v, c, s, kind == SQUARE);
}

/* The same at once for what most frames need: v + s L where |L| reaches the
 * threshold. @kind: a constant */
INLINE void
sharpen_plain (const ImkLapsharpenRule *rule, const float *v, ptrdiff_t c,
    ptrdiff_t s, const float *smooth, Kind kind, ptrdiff_t n,
    float *restrict out)
{
  const float amount = rule->amount, least = rule->threshold * amount;

  for (ptrdiff_t i = 0; i < n; i++) {
    const float added = amount * detail_at (kind, v + i, c, s, smooth[i]);
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
  if (rule->kernel_size || rule->edges || rule->soft || rule->local)
    for (ptrdiff_t i = 0; i < n; i += CHUNK) {
      const int m = (int) (n - i < CHUNK ? n - i : CHUNK);
      float made[CHUNK];

      sharpen_chunk (rule, v + i, c, s, smooth + i, m, made);
      for (int j = 0; j < m; j++)
        out[i + j] = made[j] == made[j] ? made[j] : NAN;
    }
  else if (rule->smooth.is_log)
    sharpen_plain (rule, v, c, s, smooth, LOG, n, out);
  else if (rule->smooth.step)
    sharpen_plain (rule, v, c, s, smooth, UNSHARP, n, out);
  else if (rule->neighbours == 8)
    sharpen_plain (rule, v, c, s, smooth, SQUARE, n, out);
  else
    sharpen_plain (rule, v, c, s, smooth, CROSS, n, out);
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
