/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Correlation on the GPU, for a cell whatever the chain makes of its pixels. A
 * block measures a cell: it lies in shared memory, less its mean, between
 * columns of 0, and a thread adds up the products of a shift. What is ordered
 * (arithmetic/correlation.h) is added up by one thread a column, then by one
 * for all. Cells that are too large for shared memory lie in global memory. */

#pragma once

#include "shcentroid/cuda/shcentroid-chain.cuh"
#include "shcentroid/arithmetic/correlation.h"

enum {
  MATCH_THREADS = CHAIN_THREADS,
  MATCH_BATCH = 4,  /* pixels on their way to a thread */
  MATCH_BLOCKS = 8, /* on a multiprocessor: most of a cell is waiting */
};

struct MatchArguments {
  ChainArguments chain;
  float *patterns; /* of the templates, less their mean */
  ImkShcentroidTotal *totals;
  const ImkShcentroidAnchor *anchors;
  ImkShcentroidTemplates templates; /* without what it points to */
  uint8_t *memory;                  /* of every block, where it is global */
  uint32_t layout_size;
};

/* The memory of a block, for windows of at most width x height. */
struct MatchLayout {
  ImkShcentroidTotal *totals; /* [height + 1][width + 1] */
  double *products;           /* of all shifts */
  double *columns;            /* three numbers of every column */
  float *pixels;              /* rows of stride, column 0 at pad */
  float *pattern;
  uint32_t stride, pad;
};

/* What one thread finds for all. */
struct MatchMeeting {
  Meeting team;
  double best[CHAIN_MAX_WARPS];
  int32_t best_index[CHAIN_MAX_WARPS];
  ImkShcentroidCellSums sums;
  ImkShcentroidPeak peak;
  ImkShcentroidProducts nine[9];
  double scores[9];
  double row[IMK_SHCENTROID_N_FIELDS];
};

/* Bytes of a block; @memory NULL: only that. */
static __host__ __device__ uint32_t
lay_out_match (uint32_t width, uint32_t height, uint32_t search_range,
    uint32_t template_pixels, uint8_t *memory, MatchLayout *to)
{
  uint32_t range_x = min (search_range, width / 2);
  uint32_t range_y = min (search_range, height / 2);
  uint32_t n_totals = (width + 1) * (height + 1);
  uint32_t n_products = (2 * range_x + 1) * (2 * range_y + 1);

  to->pad = 2 * range_x;
  to->stride = width + 2 * to->pad;
  to->totals = (ImkShcentroidTotal *) memory;
  to->products = (double *) (to->totals + n_totals);
  to->columns = to->products + n_products;
  to->pixels = (float *) (to->columns + 3 * width);
  to->pattern = to->pixels + to->stride * height;
  return n_totals * sizeof (ImkShcentroidTotal) +
         (n_products + 3 * width) * sizeof (double) +
         (to->stride * height + template_pixels + 1) / 2 * 8;
}

/* ------------------------------------------------------------------------
 * From the frame to pixels less their mean. */

/* The calibrated values of the window, NaN where bad or not finite, and what
 * needs no order: extremes and counts. */
template <typename Sample, bool CALIBRATED>
static __device__ __forceinline__ ImkShcentroidRange
load_match (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, const MatchLayout &m, float *max_sample)
{
  ImkShcentroidRange range = {3e38f, -3e38f, 0};
  uint32_t n = w.width * w.height;
  float most = 0.0f;

  for (uint32_t first = threadIdx.x; first < n;
       first += MATCH_BATCH * blockDim.x) {
    ChainPixel pixels[MATCH_BATCH];

    /* all on their way together; the last again where there are no more */
#pragma unroll
    for (uint32_t k = 0; k < MATCH_BATCH; k++) {
      uint32_t i = min (first + k * blockDim.x, n - 1);

      pixels[k] = fetch_pixel<Sample, CALIBRATED> (
          a, w.x + i % w.width, w.y + i / w.width);
    }
#pragma unroll
    for (uint32_t k = 0; k < MATCH_BATCH; k++) {
      ChainPixel &p = pixels[k];
      uint32_t i = first + k * blockDim.x;

      if (i >= n)
        continue;
      if (p.good)
        most = fmaxf (most, p.sample);
      p.good &= counts<Sample> (p.value);
      m.pixels[i / w.width * m.stride + m.pad + i % w.width] =
          p.good ? p.value : imk_shcentroid_f32 (imk_shcentroid_nan ());
      if (p.good) {
        range.min = p.value < range.min ? p.value : range.min;
        range.max = p.value > range.max ? p.value : range.max;
        range.n++;
      }
    }
  }
  range.min = imk_shcentroid_value_of_key (
      reduce_team<true> (team, LEAST, imk_shcentroid_key (range.min)));
  range.max = imk_shcentroid_value_of_key (
      reduce_team<true> (team, MOST, imk_shcentroid_key (range.max)));
  range.n = reduce_team<true> (team, SUM, range.n);
  *max_sample = imk_shcentroid_value_of_key (
      reduce_team<true> (team, MOST, imk_shcentroid_key (most)));
  return range;
}

struct MatchWeight {
  bool used;
  double x, y; /* its centre, from the corner of the window */
};

static __device__ __noinline__ double
weigh (double x, double y, double sigma)
{
  return imk_shcentroid_weight (x, sigma) * imk_shcentroid_weight (y, sigma);
}

static __device__ __forceinline__ double
weight_at (
    const ChainArguments &a, const MatchWeight &weight, uint32_t x, uint32_t y)
{
  return weight.used ? weigh (weight.x + (double) x, weight.y + (double) y,
                           a.common.params.sigma)
                     : 1.0;
}

/* imk_shcentroid_part (), its power out of line */
static __device__ __forceinline__ float
match_part (const ImkShcentroidParams &params, double v,
    const ImkShcentroidLevel &level, double weight)
{
  bool used = v >= level.least;
  double p = imk_shcentroid_part (v, used, level.pedestal, 1.0, 1.0);

  if (params.power != 1.0)
    p = used ? raise (p, params.power) : 0.0;
  return (float) (p * weight);
}

/* Values become what they count as. Returns, to all: the sums */
static __device__ __forceinline__ void
sum_match (const ChainArguments &a, const ImkShcentroidWindow &w,
    const MatchLayout &m, const ImkShcentroidLevel &level,
    const MatchWeight &weight, MatchMeeting *meeting)
{
  for (uint32_t x = threadIdx.x; x < w.width; x += blockDim.x) {
    double p = 0.0, raw = 0.0;

    for (uint32_t y = 0; y < w.height; y++) {
      float *pixel = m.pixels + y * m.stride + m.pad + x;
      float value = *pixel;

      if (value != value)
        continue;
      raw += value;
      *pixel = match_part (
          a.common.params, value, level, weight_at (a, weight, x, y));
      p += *pixel;
    }
    m.columns[x] = p;
    m.columns[w.width + x] = raw;
  }
  __syncthreads ();
  if (threadIdx.x == 0) {
    double p = 0.0, raw = 0.0;

    for (uint32_t x = 0; x < w.width; x++) {
      p += m.columns[x];
      raw += m.columns[w.width + x];
    }
    meeting->sums.p = p;
    meeting->sums.raw = raw;
  }
  __syncthreads ();
}

/* Less the mean, with 0 beside, and the totals along the rows. */
static __device__ __forceinline__ void
centre_match (const ImkShcentroidWindow &w, const MatchLayout &m, float mean)
{
  uint32_t n = m.stride * w.height;

  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
    uint32_t x = i % m.stride;
    bool inside = x >= m.pad && x < m.pad + w.width;

    m.pixels[i] = inside ? imk_shcentroid_less_mean (m.pixels[i], mean) : 0.0f;
  }
  __syncthreads ();
}

/* Of @height rows of @width pixels, @stride apart. */
static __device__ __forceinline__ void
add_totals (const float *pixels, uint32_t stride, uint32_t width,
    uint32_t height, ImkShcentroidTotal *totals)
{
  for (uint32_t y = threadIdx.x; y < height; y += blockDim.x)
    imk_shcentroid_add_along (
        pixels + y * stride, (int32_t) width, totals + (y + 1) * (width + 1));
  __syncthreads ();
  for (uint32_t x = threadIdx.x; x <= width; x += blockDim.x) {
    ImkShcentroidTotal t = {0.0, 0.0};

    totals[x] = t;
    for (uint32_t y = 1; y <= height; y++) {
      ImkShcentroidTotal *at = totals + y * (width + 1) + x;

      t.sum = at->sum + t.sum;
      t.square = at->square + t.square;
      *at = t;
    }
  }
  __syncthreads ();
}

/* ------------------------------------------------------------------------
 * Shifts. */

static __device__ __forceinline__ double
sum_products (const ImkShcentroidMatch &m, const MatchLayout &layout,
    const float *pattern, int32_t dx, int32_t dy)
{
  /* as on the CPU: beside these columns there is nothing but 0 */
  int32_t from = max (0, -m.left - m.range_x);
  int32_t to = min (m.template_width, m.width - m.left + m.range_x);
  int32_t left = m.left + dx + (int32_t) layout.pad;
  double sum = 0.0;

  for (int32_t y = 0; y < m.template_height; y++) {
    int32_t v = m.top + dy + y;
    const float *a = layout.pixels + v * (int32_t) layout.stride + left;
    const float *b = pattern + y * m.template_width;
    float row = 0.0f;

    if (v < 0 || v >= m.height)
      continue;
#pragma unroll 4
    for (int32_t x = from; x < to; x++)
      row += a[x] * b[x];
    sum += row;
  }
  return sum;
}

/* Is @score at @index better than the best so far? The first of equals is. */
static __device__ __forceinline__ bool
is_better (double score, int32_t index, double best, int32_t best_index)
{
  return score > best || (score == best && index < best_index);
}

/* Returns, to thread 0: the index of the best shift; -1 for none */
static __device__ __forceinline__ int32_t
find_best (const ChainArguments &a, const Team &team,
    const ImkShcentroidMatch &m, const MatchLayout &layout,
    const ImkShcentroidTotal *totals, MatchMeeting *meeting)
{
  int32_t n_x = imk_shcentroid_n_shifts (m.range_x);
  int32_t n = n_x * imk_shcentroid_n_shifts (m.range_y), best_index = -1;
  double best = IMK_SHCENTROID_NO_SCORE;

  for (int32_t i = (int32_t) threadIdx.x; i < n; i += (int32_t) blockDim.x) {
    int32_t dx = i % n_x - m.range_x, dy = i / n_x - m.range_y;
    double ab = sum_products (m, layout, layout.pattern, dx, dy);
    ImkShcentroidProducts p =
        imk_shcentroid_products (&m, dx, dy, layout.totals, totals, ab);
    double score = imk_shcentroid_rank_of (&p, a.common.params.correlation);

    layout.products[i] = ab;
    if (score > best) {
      best = score;
      best_index = i;
    }
  }
  for (uint32_t step = 16; step; step /= 2) {
    double score = __shfl_xor_sync (0xffffffff, best, step);
    int32_t index = __shfl_xor_sync (0xffffffff, best_index, step);

    if (is_better (score, index, best, best_index)) {
      best = score;
      best_index = index;
    }
  }
  if (team.lane == 0) {
    meeting->best[team.warp] = best;
    meeting->best_index[team.warp] = best_index;
  }
  __syncthreads ();
  for (uint32_t i = 0; i < team.n_warps; i++)
    if (is_better (
            meeting->best[i], meeting->best_index[i], best, best_index)) {
      best = meeting->best[i];
      best_index = meeting->best_index[i];
    }
  return best_index;
}

/* ------------------------------------------------------------------------
 * Variances. */

template <typename Sample, bool CALIBRATED>
static __device__ __forceinline__ double
spread_of_pixel (const ChainArguments &a, const ImkShcentroidWindow &w,
    const ImkShcentroidLevel &level, const MatchWeight &weight, uint32_t x,
    uint32_t y)
{
  const ImkShcentroidParams &params = a.common.params;
  ChainPixel pixel = fetch_pixel<Sample, CALIBRATED> (a, w.x + x, w.y + y);
  double v = pixel.value, by = weight_at (a, weight, x, y);
  bool used = pixel.good && v >= level.least;
  float p = match_part (params, v, level, by);

  return a.noise.per_count * imk_shcentroid_spread (v, pixel.flat, used,
                                 level.pedestal, by, params.power,
                                 used ? p : 0.0, &a.noise);
}

/* Thread 0 gets the sums. */
template <typename Sample, bool CALIBRATED>
static __device__ __forceinline__ ImkShcentroidSpreads
spread_match (const ChainArguments &a, const ImkShcentroidWindow &w,
    const ImkShcentroidMatch &m, const MatchLayout &layout,
    const ImkShcentroidLevel &level, const MatchWeight &weight,
    const MatchMeeting &meeting, ImkShcentroidResponse *responses)
{
  ImkShcentroidSpreads spreads = {0.0, 0.0, 0.0};

  if (threadIdx.x < 9)
    responses[threadIdx.x] =
        imk_shcentroid_response (&m, &meeting.peak, (int32_t) threadIdx.x,
            &meeting.nine[threadIdx.x], a.common.params.correlation);
  __syncthreads ();
  for (uint32_t x = threadIdx.x; x < w.width; x += blockDim.x) {
    ImkShcentroidSpreads column = {0.0, 0.0, 0.0};

    for (uint32_t y = 0; y < w.height; y++) {
      double q =
          spread_of_pixel<Sample, CALIBRATED> (a, w, level, weight, x, y);
      float pixel = layout.pixels[y * layout.stride + layout.pad + x];
      double in_x = 0.0, in_y = 0.0;

      for (int32_t k = 0; k < 9; k++) {
        const ImkShcentroidResponse &r = responses[k];
        int32_t u = (int32_t) x - r.left, v = (int32_t) y - r.top;

        if (u >= r.overlap.x0 && u < r.overlap.x1 && v >= r.overlap.y0 &&
            v < r.overlap.y1)
          imk_shcentroid_respond (&r, pixel,
              layout.pattern[v * m.template_width + u], &in_x, &in_y);
      }
      column.xx += in_x * in_x * q;
      column.xy += in_x * in_y * q;
      column.yy += in_y * in_y * q;
    }
    layout.columns[x] = column.xx;
    layout.columns[w.width + x] = column.xy;
    layout.columns[2 * w.width + x] = column.yy;
  }
  __syncthreads ();
  for (uint32_t x = 0; threadIdx.x == 0 && x < w.width; x++) {
    spreads.xx += layout.columns[x];
    spreads.xy += layout.columns[w.width + x];
    spreads.yy += layout.columns[2 * w.width + x];
  }
  return spreads;
}

/* ------------------------------------------------------------------------
 * The kernels. */

static __device__ __forceinline__ Team
block_team (MatchMeeting *meeting)
{
  Team team = {};

  team.lanes = 32;
  team.lane = threadIdx.x % 32;
  team.warp = threadIdx.x / 32;
  team.n_warps = blockDim.x / 32;
  team.meeting = &meeting->team;
  return team;
}

/* Where a cell is, and which of its pixels count. */
struct MatchCell {
  ImkShcentroidTrack track;
  ImkShcentroidWindow window;
  ImkShcentroidLevel level;
  MatchWeight weight;
};

/* The pixels of a cell after threshold, weight and power, and their sums in
 * the meeting; NaN where bad. */
template <typename Sample, bool CALIBRATED>
static __device__ __forceinline__ MatchCell
read_match (const ChainArguments &a, const Team &team, uint32_t index,
    const MatchLayout &layout, MatchMeeting *meeting)
{
  const ImkShcentroidParams &params = a.common.params;
  const ImkShcentroidRect &rect = a.common.rects[index];
  bool tracking = params.weighting == IMK_SHCENTROID_WEIGHTING_TRACKING;
  double brightest = -imk_shcentroid_infinity ();
  ImkShcentroidRange range;
  float max_sample;
  MatchCell c;

  c.track = track_of (a, index);
  c.window =
      imk_shcentroid_window (&rect, &params, &c.track, a.width, a.height);
  c.weight.used = params.weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  c.weight.x = c.window.x - (tracking ? c.track.x : rect.ref_x);
  c.weight.y = c.window.y - (tracking ? c.track.y : rect.ref_y);
  range =
      load_match<Sample, CALIBRATED> (a, team, c.window, layout, &max_sample);
  if (params.brightest > 0)
    brightest =
        find_brightest<Sample, CALIBRATED, true> (a, team, c.window, range);
  c.level = imk_shcentroid_level (
      &params, rect.threshold, range.min, range.max, brightest);
  if (threadIdx.x == 0) {
    meeting->sums = imk_shcentroid_no_sums ();
    meeting->sums.max = range.n > 0 ? range.max : meeting->sums.max;
    meeting->sums.max_sample = max_sample;
    meeting->sums.n = range.n;
  }
  __syncthreads ();
  sum_match (a, c.window, layout, c.level, c.weight, meeting);
  return c;
}

template <typename Sample, bool CALIBRATED, bool ALL>
static __device__ __forceinline__ void
measure_match_cell (const MatchArguments &a, const Team &team, uint32_t index,
    uint8_t *memory, MatchMeeting *meeting, ImkShcentroidResponse *responses)
{
  const ChainArguments &chain = a.chain;
  const ImkShcentroidParams &params = chain.common.params;
  const ImkShcentroidRect &rect = chain.common.rects[index];
  const ImkShcentroidTemplates &t = a.templates;
  uint32_t which = t.n > 1 ? index : 0, n_pattern = t.width * t.height;
  const float *pattern = a.patterns + (size_t) which * n_pattern;
  const ImkShcentroidTotal *totals =
      a.totals + (size_t) which * (t.width + 1) * (t.height + 1);
  ImkShcentroidSpreads spreads = {0.0, 0.0, 0.0};
  ImkShcentroidMatch m;
  ImkShcentroidPeak peak;
  MatchLayout layout;
  MatchCell c;
  int32_t best;

  lay_out_match (
      rect.width, rect.height, params.search_range, n_pattern, memory, &layout);
  for (uint32_t i = threadIdx.x; i < n_pattern; i += blockDim.x)
    layout.pattern[i] = pattern[i];
  c = read_match<Sample, CALIBRATED> (chain, team, index, layout, meeting);
  m = imk_shcentroid_match (
      &c.window, &rect, &a.anchors[index], &t, params.search_range);
  centre_match (
      c.window, layout, imk_shcentroid_mean (meeting->sums.p, meeting->sums.n));
  add_totals (layout.pixels + layout.pad, layout.stride, c.window.width,
      c.window.height, layout.totals);
  best = find_best (chain, team, m, layout, totals, meeting);
  peak = imk_shcentroid_peak_at (&m, best);
  if (peak.found && threadIdx.x < 9)
    meeting->scores[threadIdx.x] = imk_shcentroid_score_near (&m, &peak,
        (int32_t) threadIdx.x, layout.products, layout.totals, totals,
        params.correlation, &meeting->nine[threadIdx.x]);
  __syncthreads ();
  if (threadIdx.x == 0) {
    for (int32_t k = 0; k < 9; k++)
      peak.score[k] = meeting->scores[k];
    imk_shcentroid_finish_peak (&peak, &meeting->nine[4], &params);
    meeting->peak = peak;
  }
  __syncthreads ();
  if (ALL && meeting->peak.found)
    spreads = spread_match<Sample, CALIBRATED> (
        chain, c.window, m, layout, c.level, c.weight, *meeting, responses);
  if (threadIdx.x == 0) {
    double *held = chain.common.held + 2 * (size_t) index;
    ImkShcentroidRow row;

    imk_shcentroid_finish_match (&row, &meeting->sums, &meeting->peak, &spreads,
        &rect, &a.anchors[index], &c.window, &params, chain.common.fresh, held,
        &c.track, &chain.slopes[index]);
    if (imk_shcentroid_tracks (&params))
      chain.tracks[index] = c.track;
    keep_row<ALL> (chain.common, row, index, meeting->row);
  }
  __syncthreads ();
  store_rows<ALL> (chain.common, index, 1, meeting->row);
}

/* @GLOBAL: the memory of a block is not shared memory */
template <typename Sample, bool CALIBRATED, bool ALL, bool GLOBAL>
static __global__ void
__launch_bounds__ (MATCH_THREADS, MATCH_BLOCKS)
    measure_matches (const __grid_constant__ MatchArguments a)
{
  extern __shared__ double memory[];
  __shared__ MatchMeeting meeting;
  __shared__ ImkShcentroidResponse responses[9];
  Team team = block_team (&meeting);

  for (uint32_t i = blockIdx.x; i < a.chain.common.n_rects; i += gridDim.x) {
    measure_match_cell<Sample, CALIBRATED, ALL> (a, team, i,
        GLOBAL ? a.memory + (size_t) blockIdx.x * a.layout_size
               : (uint8_t *) memory,
        &meeting, responses);
    __syncthreads ();
  }
}

/* One block: the template is a cell of this frame. */
template <typename Sample, bool CALIBRATED>
static __global__ void
__launch_bounds__ (MATCH_THREADS)
    take_template (const __grid_constant__ MatchArguments a)
{
  __shared__ MatchMeeting meeting;
  const ImkShcentroidTemplates &t = a.templates;
  const ImkShcentroidRect &rect = a.chain.common.rects[t.cell];
  uint32_t n = t.width * t.height, n_good = 0;
  Team team = block_team (&meeting);
  ImkShcentroidMatch m;
  MatchLayout layout;
  MatchCell c;
  float mean;

  lay_out_match (rect.width, rect.height, 0, n, a.memory, &layout);
  c = read_match<Sample, CALIBRATED> (a.chain, team, t.cell, layout, &meeting);
  m = imk_shcentroid_match (&c.window, &rect, &a.anchors[t.cell], &t, 0);
  for (uint32_t x = threadIdx.x; x < t.width; x += blockDim.x) {
    double column = 0.0;

    for (uint32_t y = 0; y < t.height; y++) {
      int32_t u = m.left + (int32_t) x, v = m.top + (int32_t) y;
      bool inside = u >= 0 && v >= 0 && u < m.width && v < m.height;
      float pixel = imk_shcentroid_f32 (imk_shcentroid_nan ());

      if (inside)
        pixel =
            layout
                .pixels[v * (int32_t) layout.stride + (int32_t) layout.pad + u];
      a.patterns[y * t.width + x] = pixel;
      if (pixel == pixel) {
        column += pixel;
        n_good++;
      }
    }
    layout.columns[x] = column;
  }
  n_good = reduce_team<true> (team, SUM, n_good);
  if (threadIdx.x == 0) {
    double sum = 0.0;

    for (uint32_t x = 0; x < t.width; x++)
      sum += layout.columns[x];
    meeting.best[0] = sum;
  }
  __syncthreads ();
  mean = imk_shcentroid_mean (meeting.best[0], n_good);
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    a.patterns[i] = imk_shcentroid_less_mean (a.patterns[i], mean);
  __syncthreads ();
  add_totals (a.patterns, t.width, t.width, t.height, a.totals);
}
