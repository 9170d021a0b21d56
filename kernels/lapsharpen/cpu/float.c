/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of float32 frames, compiled once for each instruction set. The loops
 * over a chunk take the steps of lapsharpen-float.h one by one, so that
 * compilers vectorise them; each sample sees the same operations. */
#include "lapsharpen/cpu/smooth.h"

/* --- the border ----------------------------------------------------------- */

static void
pad_pixels (const Work *w, const ImkLapsharpenPlane *p, int y, int x0, int x1)
{
  float *to = imk_lapsharpen_pixel (p, x0, y);

  for (int x = x0; x < x1; x++)
    for (int i = 0; i < p->channels; i++)
      *to++ =
          imk_lapsharpen_padded (w->rule, w->in->data, w->in->stride, x, y, i);
}

static void
pad (const Work *w, const ImkLapsharpenPlane *p, int first, int end)
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

/* Of rows that have rows on either side. */
static void
measure_noise_of_rows (
    const Work *w, const ImkLapsharpenPlane *p, int first, int end)
{
  const int c = p->channels, n = ((int) w->rule->width - 2) * c;

  for (int y = first; y < end; y++)
    w->moments[y] = sum_row (imk_lapsharpen_pixel (p, 1, y), c,
        imk_lapsharpen_row_floats (p), n, w->rule->noisy, true, false);
}

static void
measure_focus_of_rows (
    const Work *w, const ImkLapsharpenPlane *p, int first, int end)
{
  const int c = p->channels, n = (int) w->rule->width * c;

  for (int y = first; y < end; y++)
    w->moments[y] = sum_row (imk_lapsharpen_pixel (p, 0, y), c,
        imk_lapsharpen_row_floats (p), n, w->rule->measured, false,
        w->rule->neighbours == 8);
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
        sums[k] += *weight * load_floats (v + k * LANES + dy * s + dx * c);
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
restore (const Work *w, const float *v, int y, float *out)
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

/* Sharpens row @y, whose samples and their neighbours are at @v. @smooth: the
 * same row smoothed, for rules that smooth */
static void
make_row (
    const Work *w, const float *v, ptrdiff_t s, const float *smooth, int y)
{
  const ImkLapsharpenRule *rule = w->rule;
  const ptrdiff_t c = rule->channels;
  float *out = (float *) (void *) ((uint8_t *) w->out->data +
                                   (size_t) y * w->out->stride);

  sharpen_row (rule, v, c, s, smooth, (ptrdiff_t) rule->width * c, out);
  if (w->mask || rule->n_areas > 0 ||
      rule->filtered != (1u << rule->channels) - 1)
    restore (w, v, y, out);
}

static void
sharpen_strip (const Work *w, const ImkLapsharpenPlane *p, int first, int end)
{
  for (int y = first; y < end; y++) {
    const float *v = imk_lapsharpen_pixel (p, 0, y);

    make_row (w, v, imk_lapsharpen_row_floats (p), v, y);
  }
}

/* Returns: the smoothed row, which holds until the next one is made */
static const float *
add_grown (const Smoother *s, const Grown *g)
{
  const size_t n = (size_t) s->rule->channels * s->rule->width;
  float *restrict sum = s->wide;

  if (s->smooth->step == 1)
    return g->row[1];
  for (size_t i = 0; i < n; i++)
    sum[i] = (g->weight[0] * g->row[0][i] + g->weight[1] * g->row[1][i]) +
             g->weight[2] * g->row[2][i];
  return sum;
}

/* Smooths and sharpens. Only limits need the neighbours of a sample. @memory:
 * room for 3 padded rows and for smooth_sizes () */
static void
smooth_rows (const Work *w, float *memory, int first, int end)
{
  ImkLapsharpenPlane window = strip_of (w->rule);
  const ptrdiff_t s = imk_lapsharpen_row_floats (&window);
  Smoother smoother;
  Grown grown;

  window.values = memory;
  start_smoother (&smoother, w, (uint32_t) first, memory + 3 * s);
  for (int y = first; y < end; y++) {
    const float *v = get_row (w, y);

    if (w->rule->local) {
      window.y0 = y - 1;
      window.y1 = y + 2;
      pad (w, &window, window.y0, window.y1);
      v = imk_lapsharpen_pixel (&window, 0, y);
    }
    smooth_row (&smoother, (uint32_t) y, &grown);
    make_row (w, v, s, add_grown (&smoother, &grown), y);
  }
}

/* --- bands ---------------------------------------------------------------- */

/* Does the rows @first to @end. @padded: has them and their neighbours */
typedef void (*StripFunc) (
    const Work *work, const ImkLapsharpenPlane *padded, int first, int end);

static void
for_strips (const Work *work, float *memory, int y, int last, StripFunc func)
{
  ImkLapsharpenPlane strip = strip_of (work->rule);
  const int reach = (int) work->rule->reach, n = strip_rows (work->rule);

  strip.values = memory;
  for (; y < last; y += n) {
    const int below = LEAST (y + n, last);

    strip.y0 = y - reach;
    strip.y1 = below + reach;
    pad (work, &strip, strip.y0, strip.y1);
    func (work, &strip, y, below);
  }
}

static void
measure_noise (void *data, uint32_t first, uint32_t end)
{
  const Work *work = data;
  float *memory = imk_pool_take (work->pool);

  for_strips (
      work, memory, (int) first + 1, (int) end + 1, measure_noise_of_rows);
  imk_pool_give (work->pool, memory);
}

static void
sharpen_rows (void *data, uint32_t first, uint32_t end)
{
  const Work *work = data;
  float *memory = imk_pool_take (work->pool);
  const int y = (int) first, last = (int) end;

  if (work->rule->measured)
    for_strips (work, memory, y, last, measure_focus_of_rows);
  if (work->rule->smooth.step)
    smooth_rows (work, memory, y, last);
  else
    for_strips (work, memory, y, last, sharpen_strip);
  imk_pool_give (work->pool, memory);
}

const ImkLapsharpenLoops IMK_ISA_TABLE = {
    .sharpen_rows = sharpen_rows,
    .measure_noise = measure_noise,
};
