/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain on the GPU where shcentroid-reals.cuh cannot do it: windows that
 * move, searches, powers, cells that are too much for a block. A cell is the
 * work of a team: the lanes of a warp, or fewer where no cell is that wide, or,
 * where cells are high, a block, of which each warp takes a band. A lane adds
 * up its columns; the order is that of arithmetic/float-centroid.h. Cells are
 * read again for each thing to be known about them: they are in the L1 cache by
 * then. */
#pragma once

#include "shcentroid/cuda/shcentroid-device.cuh"

enum {
  CHAIN_THREADS = 128, /* a block, at most */
  CHAIN_MAX_WARPS = CHAIN_THREADS / 32,
  CHAIN_MIN_LANES = 4,                     /* of a team */
  CHAIN_BATCH = IMK_SHCENTROID_GROUP_ROWS, /* pixels on their way to a thread */
  WIDE_FROM = 2 * IMK_SHCENTROID_BAND_ROWS, /* rows of the highest cell */
};

/* Where the warps of a block that is one team meet. */
struct Meeting {
  uint32_t words[CHAIN_MAX_WARPS];
  ImkShcentroidReals sums[CHAIN_MAX_WARPS];
  double centre_x, centre_y;
};

struct Team {
  uint32_t lane, lanes;
  uint32_t warp, n_warps; /* 0 and 1 but in a block that is one team */
  double *weights;        /* of the rows of a band, of this warp alone */
  Meeting *meeting;
};

struct ChainPixel {
  float value, flat;
  float sample;
  bool good;
};

template <typename Sample> constexpr bool is_float = false;
template <> constexpr bool is_float<float> = true;

/* Is a calibrated value of a pixel that is not bad finite? */
template <typename Sample>
static __device__ __forceinline__ bool
counts (float value)
{
  return !is_float<Sample> || value <= 3e38f;
}

template <typename Sample, bool CALIBRATED>
static __device__ __forceinline__ ChainPixel
fetch_pixel (const ChainArguments &a, uint32_t x, uint32_t y)
{
  const Sample *row = (const Sample *) (a.common.frame + y * a.common.stride);
  ChainPixel p;

  if constexpr (is_float<Sample>) {
    p.sample = p.value = imk_shcentroid_sample (__ldg (row + x));
  } else {
    uint32_t sample = __ldg (row + x);

    p.sample = (float) sample;
    p.value = a.lut ? __ldg (a.lut + sample) : p.sample;
  }
  p.flat = 1.0f;
  p.good = true;
  if (CALIBRATED) {
    float2 two =
        __ldg ((const float2 *) a.pixels + (size_t) y * a.pixel_stride + x);
    ImkShcentroidPixel pixel = {two.x, two.y};

    p.value = imk_shcentroid_calibrate (p.value, pixel);
    p.flat = pixel.flat;
    p.good = pixel.flat != 0.0f;
  }
  return p;
}

/* @n pixels below each other, all reads in flight together; from @n on the
 * last one again. */
template <typename Sample, bool CALIBRATED>
static __device__ __forceinline__ void
fetch_batch (const ChainArguments &a, uint32_t x, uint32_t y, uint32_t n,
    ChainPixel pixels[CHAIN_BATCH])
{
#pragma unroll
  for (uint32_t i = 0; i < CHAIN_BATCH; i++)
    pixels[i] = fetch_pixel<Sample, CALIBRATED> (a, x, y + min (i, n - 1));
}

/* ------------------------------------------------------------------------
 * What a team finds out together. */

enum Reduction { SUM, LEAST, MOST };

static __device__ __forceinline__ uint32_t
reduce_two (Reduction how, uint32_t a, uint32_t b)
{
  return how == SUM ? a + b : how == LEAST ? min (a, b) : max (a, b);
}

/* Returns, to all of the team: of all their values */
template <bool WIDE>
static __device__ __forceinline__ uint32_t
reduce_team (const Team &team, Reduction how, uint32_t value)
{
  for (uint32_t step = team.lanes / 2; step; step /= 2)
    value = reduce_two (
        how, value, __shfl_xor_sync (0xffffffff, value, step, team.lanes));
  if (WIDE) {
    if (team.lane == 0)
      team.meeting->words[team.warp] = value;
    __syncthreads ();
    value = team.meeting->words[0];
    for (uint32_t i = 1; i < team.n_warps; i++)
      value = reduce_two (how, value, team.meeting->words[i]);
    __syncthreads ();
  }
  return value;
}

/* Calls @visit for each pixel of the window that is this lane's. */
template <typename Sample, bool CALIBRATED, typename Visit>
static __device__ __forceinline__ void
visit_pixels (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, Visit visit)
{
  const uint32_t step = CHAIN_BATCH * team.n_warps;

  for (uint32_t u = team.lane; u < w.width; u += team.lanes)
    for (uint32_t y = CHAIN_BATCH * team.warp; y < w.height; y += step) {
      uint32_t n = min (w.height - y, (uint32_t) CHAIN_BATCH);
      ChainPixel pixels[CHAIN_BATCH];

      fetch_batch<Sample, CALIBRATED> (a, w.x + u, w.y + y, n, pixels);
#pragma unroll
      for (uint32_t i = 0; i < CHAIN_BATCH; i++)
        if (i < n && pixels[i].good && counts<Sample> (pixels[i].value))
          visit (pixels[i].value);
    }
}

template <typename Sample, bool CALIBRATED, bool WIDE>
static __device__ __forceinline__ ImkShcentroidRange
find_range (
    const ChainArguments &a, const Team &team, const ImkShcentroidWindow &w)
{
  ImkShcentroidRange range = {3e38f, -3e38f, 0};

  visit_pixels<Sample, CALIBRATED> (a, team, w, [&] (float value) {
    range.min = value < range.min ? value : range.min;
    range.max = value > range.max ? value : range.max;
    range.n++;
  });
  range.min = imk_shcentroid_value_of_key (
      reduce_team<WIDE> (team, LEAST, imk_shcentroid_key (range.min)));
  range.max = imk_shcentroid_value_of_key (
      reduce_team<WIDE> (team, MOST, imk_shcentroid_key (range.max)));
  range.n = reduce_team<WIDE> (team, SUM, range.n);
  return range;
}

/* A search by halves for the value of a rank: between @low, which at least
 * that many values reach, and @high, which fewer do. */
struct Search {
  uint32_t low, high, rank;
};

static __device__ __forceinline__ Search
begin_search (ImkShcentroidRange range, uint32_t rank)
{
  Search s;

  s.low = imk_shcentroid_key (range.min);
  s.high = imk_shcentroid_key (range.max) + 1;
  s.rank = rank;
  return s;
}

static __device__ __forceinline__ uint32_t
search_key (const Search *s)
{
  return s->low + (s->high - s->low) / 2;
}

/* After the search one more count finds the next lower value: of keys XOR this,
 * whose order is reversed, those that reach lower_key (). */
#define LOWER UINT32_MAX

static __device__ __forceinline__ uint32_t
lower_key (const Search *s)
{
  return ~s->low + 1;
}

/* @smallest: of that count; UINT32_MAX for none: all pixels are as bright as
 * the brightest. Returns: the level of the brightest pixels */
static __device__ __forceinline__ double
lower_level (uint32_t smallest)
{
  return smallest == UINT32_MAX ? -imk_shcentroid_infinity ()
                                : imk_shcentroid_value_of_key (~smallest);
}

/* @n: values that reach the search key, @smallest: the smallest key of them.
 * Returns: whether s->low is it now */
static __device__ __forceinline__ bool
search_step (Search *s, uint32_t n, uint32_t smallest)
{
  if (n < s->rank)
    s->high = search_key (s);
  else
    s->low = smallest;
  return n == s->rank || s->high - s->low <= 1;
}

/* How many values of the window, their keys turned around by @turn, reach @key,
 * and the smallest that does. */
template <typename Sample, bool CALIBRATED, bool WIDE>
static __device__ __forceinline__ uint32_t
count_keys (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, uint32_t turn, uint32_t key,
    uint32_t *smallest)
{
  uint32_t n = 0, least = UINT32_MAX;

  visit_pixels<Sample, CALIBRATED> (a, team, w, [&] (float value) {
    uint32_t k = imk_shcentroid_key (value) ^ turn;

    n += k >= key;
    least = k >= key ? min (k, least) : least;
  });
  *smallest = reduce_team<WIDE> (team, LEAST, least);
  return reduce_team<WIDE> (team, SUM, n);
}

/* All teams of a warp go on until the last has found its value: they shuffle
 * together. */
template <typename Sample, bool CALIBRATED, bool WIDE>
static __device__ __noinline__ double
find_brightest (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, ImkShcentroidRange range)
{
  const ImkShcentroidParams &params = a.common.params;
  uint32_t rank = imk_shcentroid_rank (&params, range.n), smallest;
  Search search = begin_search (range, rank);
  bool found = rank == 0 || search.high - search.low <= 1;

  while (__any_sync (0xffffffff, !found)) {
    uint32_t n = count_keys<Sample, CALIBRATED, WIDE> (
        a, team, w, 0, search_key (&search), &smallest);

    if (!found)
      found = search_step (&search, n, smallest);
  }
  if (params.subtract)
    count_keys<Sample, CALIBRATED, WIDE> (
        a, team, w, LOWER, lower_key (&search), &smallest);
  return rank == 0         ? -imk_shcentroid_infinity ()
         : params.subtract ? lower_level (smallest)
                           : (double) imk_shcentroid_value_of_key (search.low);
}

template <typename Sample, bool CALIBRATED, bool WIDE, bool RARE>
static __device__ __forceinline__ ImkShcentroidLevel
find_level (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, double own_threshold)
{
  const ImkShcentroidParams &params = a.common.params;
  ImkShcentroidRange range = {0.0f, 0.0f, 0};
  double brightest = -imk_shcentroid_infinity ();

  if (imk_shcentroid_needs_range (&params))
    range = find_range<Sample, CALIBRATED, WIDE> (a, team, w);
  if (RARE && params.brightest > 0)
    brightest = find_brightest<Sample, CALIBRATED, WIDE> (a, team, w, range);
  return imk_shcentroid_level (
      &params, own_threshold, range.min, range.max, brightest);
}

/* ------------------------------------------------------------------------
 * Sums. */

static __device__ __noinline__ double
raise (double value, double power)
{
  return imk_shcentroid_power (value, power);
}

/* Where the weight has its centre. */
struct ChainWeight {
  double x, y;
};

/* A pixel of row @y of the window, added to the group of its column. */
template <bool ALL, bool RARE>
static __device__ __forceinline__ void
add_pixel (const ChainArguments &a, const ChainPixel &pixel,
    const ImkShcentroidLevel &level, double y, double weight,
    ImkShcentroidGroup *g, ImkShcentroidReals *c)
{
  const ImkShcentroidParams &params = a.common.params;
  bool quad = RARE && params.estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  double v = pixel.value;
  bool used = v >= level.least;
  double p = imk_shcentroid_part (v, used, level.pedestal, 1.0, 1.0);

  if (RARE && params.power != 1.0)
    p = used ? raise (p, params.power) : 0.0;
  p *= weight;
  imk_shcentroid_add_part (g, p, quad, y);
  if (ALL) {
    double q = imk_shcentroid_spread (v, pixel.flat, used, level.pedestal,
        weight, RARE ? params.power : 1.0, p, &a.noise);

    imk_shcentroid_add_spread (g, q, quad, y);
    g->raw += pixel.good ? v : 0.0;
    c->max = pixel.value > c->max ? pixel.value : c->max;
    c->max_sample = fmaxf (c->max_sample, pixel.good ? pixel.sample : 0.0f);
  }
}

/* The sums of a column, added to those of its lane; or of a band, to the cell.
 */
template <bool ALL>
static __device__ __forceinline__ void
add_reals (const ImkShcentroidReals &more, ImkShcentroidReals *to)
{
  to->p += more.p;
  to->pu += more.pu;
  to->py += more.py;
  if (ALL) {
    to->q += more.q;
    to->qu += more.qu;
    to->quu += more.quu;
    to->qy += more.qy;
    to->qyy += more.qyy;
    to->raw += more.raw;
    to->max = more.max > to->max ? more.max : to->max;
    to->max_sample = fmaxf (to->max_sample, more.max_sample);
  }
}

static __device__ __forceinline__ ImkShcentroidReals
no_sums (void)
{
  ImkShcentroidReals s = {};

  s.max = -3.4e38f;
  return s;
}

/* The rows [@y, @y + @n) of column @u of the window, added to @lane. */
template <typename Sample, bool CALIBRATED, bool ALL, bool RARE>
static __device__ __forceinline__ void
sum_column (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, const ImkShcentroidLevel &level,
    bool weighted, double weight_x, uint32_t u, uint32_t y, uint32_t n,
    ImkShcentroidReals *lane)
{
  const ImkShcentroidParams &params = a.common.params;
  bool quad = RARE && params.estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  const uint32_t group_rows = imk_shcentroid_group_rows (w.height);
  ImkShcentroidReals c = no_sums ();
  double coordinate = u;

  for (uint32_t k = 0; k < n; k += group_rows) {
    uint32_t n_rows = min (group_rows, n - k);
    ChainPixel pixels[CHAIN_BATCH];
    ImkShcentroidGroup g = {};

    fetch_batch<Sample, CALIBRATED> (a, w.x + u, w.y + y + k, n_rows, pixels);
#pragma unroll
    for (int i = CHAIN_BATCH - 1; i >= 0; i--)
      if (i < n_rows)
        add_pixel<ALL, RARE> (a, pixels[i], level,
            quad ? imk_shcentroid_coordinate (&params, y + k + i, w.height) : 0,
            weighted ? team.weights[k + i] : 1.0, &g, &c);
    imk_shcentroid_add_group (&c, &g, quad, y + k);
    if (ALL)
      imk_shcentroid_add_group_spread (&c, &g, quad, y + k);
  }
  if (quad)
    coordinate = imk_shcentroid_coordinate (&params, u, w.width);
  imk_shcentroid_end_column (&c, weighted, weight_x, coordinate);
  if (ALL)
    imk_shcentroid_end_column_spread (&c, weighted, weight_x, coordinate);
  add_reals<ALL> (c, lane);
}

static __device__ __forceinline__ void
halve (double &sum, uint32_t lanes)
{
  for (uint32_t step = lanes / 2; step; step /= 2)
    sum += __shfl_down_sync (0xffffffff, sum, step, lanes);
}

/* Lane 0 gets the sums of all. */
template <bool ALL>
static __device__ __forceinline__ void
halve_all (ImkShcentroidReals *s, uint32_t lanes)
{
  halve (s->p, lanes);
  halve (s->pu, lanes);
  halve (s->py, lanes);
  if (ALL) {
    halve (s->q, lanes);
    halve (s->qu, lanes);
    halve (s->quu, lanes);
    halve (s->qy, lanes);
    halve (s->qyy, lanes);
    halve (s->raw, lanes);
    for (uint32_t step = lanes / 2; step; step /= 2) {
      float other = __shfl_down_sync (0xffffffff, s->max, step, lanes);

      s->max = other > s->max ? other : s->max;
      s->max_sample = fmaxf (s->max_sample,
          __shfl_down_sync (0xffffffff, s->max_sample, step, lanes));
    }
  }
}

/* The band that begins at row @y of the window: what lane 0 gets. Nothing of
 * it for the warps beyond the last band. */
template <typename Sample, bool CALIBRATED, bool ALL, bool RARE>
static __device__ __forceinline__ ImkShcentroidReals
sum_band (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, const ImkShcentroidLevel &level,
    const ChainWeight &centre, uint32_t y)
{
  const ImkShcentroidParams &params = a.common.params;
  bool weighted = params.weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  uint32_t n = y < w.height
                   ? min (w.height - y, (uint32_t) IMK_SHCENTROID_BAND_ROWS)
                   : 0;
  ImkShcentroidReals lane = no_sums ();

  __syncwarp ();
  for (uint32_t k = team.lane; weighted && k < n; k += team.lanes)
    team.weights[k] =
        imk_shcentroid_weight (w.y - centre.y + (double) (y + k), params.sigma);
  __syncwarp ();
  for (uint32_t u = team.lane; n && u < w.width; u += team.lanes) {
    double weight_x = 1.0;

    if (weighted)
      weight_x =
          imk_shcentroid_weight (w.x - centre.x + (double) u, params.sigma);
    sum_column<Sample, CALIBRATED, ALL, RARE> (
        a, team, w, level, weighted, weight_x, u, y, n, &lane);
  }
  halve_all<ALL> (&lane, team.lanes);
  return lane;
}

/* Returns: the sums of the cell, to lane 0 of warp 0. @height: of the highest
 * cell of the warp, since teams shuffle together */
template <typename Sample, bool CALIBRATED, bool ALL, bool WIDE, bool RARE>
static __device__ __forceinline__ ImkShcentroidReals
sum_window (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, const ImkShcentroidLevel &level,
    const ChainWeight &centre, uint32_t height)
{
  const uint32_t step = team.n_warps * IMK_SHCENTROID_BAND_ROWS;
  ImkShcentroidReals sums = no_sums ();

  for (uint32_t y = 0; y < height; y += step) {
    ImkShcentroidReals band = sum_band<Sample, CALIBRATED, ALL, RARE> (
        a, team, w, level, centre, y + team.warp * IMK_SHCENTROID_BAND_ROWS);

    if (!WIDE) {
      add_reals<true> (band, &sums);
      continue;
    }
    if (team.lane == 0)
      team.meeting->sums[team.warp] = band;
    __syncthreads ();
    if (threadIdx.x == 0)
      for (uint32_t i = 0; i < team.n_warps; i++)
        add_reals<true> (team.meeting->sums[i], &sums);
    __syncthreads ();
  }
  return sums;
}

/* The weight goes to what lane 0 of warp 0 has found. */
template <bool WIDE>
static __device__ __forceinline__ void
move_weight (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, const ImkShcentroidReals &sums,
    ChainWeight *weight)
{
  ImkShcentroidCentre centre =
      imk_shcentroid_real_centre (&sums, &w, &a.common.params, 0.0);
  double x = centre.valid ? w.x + centre.x : weight->x;
  double y = centre.valid ? w.y + centre.y : weight->y;

  if (WIDE) {
    if (threadIdx.x == 0) {
      team.meeting->centre_x = x;
      team.meeting->centre_y = y;
    }
    __syncthreads ();
    weight->x = team.meeting->centre_x;
    weight->y = team.meeting->centre_y;
    __syncthreads ();
  } else {
    weight->x = __shfl_sync (0xffffffff, x, 0, team.lanes);
    weight->y = __shfl_sync (0xffffffff, y, 0, team.lanes);
  }
}

/* ------------------------------------------------------------------------
 * The kernel. */

/* What a team leaves for the thread that finishes its cell. */
struct ChainCell {
  ImkShcentroidReals sums;
  ImkShcentroidPull pull;
  ImkShcentroidWindow window;
};

static __host__ __device__ uint32_t
chain_shared_size (uint32_t n_teams, uint32_t n_weights, bool all)
{
  return n_teams * (sizeof (ChainCell) + row_length (all) * sizeof (double)) +
         n_weights * IMK_SHCENTROID_BAND_ROWS * sizeof (double);
}

static __device__ __forceinline__ ImkShcentroidTrack
track_of (const ChainArguments &a, uint32_t index)
{
  const ImkShcentroidRect &cell = a.common.rects[index];
  ImkShcentroidTrack track = {cell.ref_x, cell.ref_y, 0};

  return a.lost || !imk_shcentroid_tracks (&a.common.params) ? track
                                                             : a.tracks[index];
}

/* What a shift of the weight does to the centroid; of lane 0 of warp 0. */
template <typename Sample, bool CALIBRATED, bool WIDE>
static __device__ __forceinline__ ImkShcentroidPull
find_pull (const ChainArguments &a, const Team &team,
    const ImkShcentroidWindow &w, const ImkShcentroidLevel &level,
    const ChainWeight &weight, uint32_t height, const ImkShcentroidReals &sums)
{
  const ImkShcentroidParams &params = a.common.params;
  ImkShcentroidPull pull;

#pragma unroll 1
  for (int y = 0; y < 2; y++) {
    ChainWeight nudged = weight;

    if (y)
      nudged.y += imk_shcentroid_nudge (&params);
    else
      nudged.x += imk_shcentroid_nudge (&params);

    ImkShcentroidReals moved =
        sum_window<Sample, CALIBRATED, true, WIDE, true> (
            a, team, w, level, nudged, height);

    imk_shcentroid_see_pull (&pull, y, &sums, &moved, &w, &params);
  }
  return pull;
}

/* One cell. A team without one has an empty window and does as the others. */
template <typename Sample, bool CALIBRATED, bool ALL, bool WIDE, bool RARE>
static __device__ __forceinline__ void
measure_chain_cell (const ChainArguments &a, const Team &team, uint32_t index,
    bool real, ChainCell *to)
{
  const ImkShcentroidParams &params = a.common.params;
  const ImkShcentroidRect &cell = a.common.rects[real ? index : 0];
  ImkShcentroidTrack track = track_of (a, real ? index : 0);
  ImkShcentroidWindow w =
      imk_shcentroid_window (&cell, &params, &track, a.width, a.height);
  bool tracking = params.weighting == IMK_SHCENTROID_WEIGHTING_TRACKING;
  ChainWeight weight = {
      tracking ? track.x : cell.ref_x, tracking ? track.y : cell.ref_y};

  if (!real)
    w.width = w.height = 0;
  uint32_t height = w.height;

  for (uint32_t step = 16; !WIDE && step; step /= 2)
    height = max (height, __shfl_xor_sync (0xffffffff, height, step));

  ImkShcentroidLevel level =
      find_level<Sample, CALIBRATED, WIDE, RARE> (a, team, w, cell.threshold);
  ImkShcentroidReals sums = sum_window<Sample, CALIBRATED, ALL, WIDE, RARE> (
      a, team, w, level, weight, height);

  for (uint32_t i = 1; RARE && i < params.iterations; i++) {
    move_weight<WIDE> (a, team, w, sums, &weight);
    sums = sum_window<Sample, CALIBRATED, ALL, WIDE, RARE> (
        a, team, w, level, weight, height);
  }

  ImkShcentroidPull pull = {};

  if constexpr (RARE && ALL)
    if (imk_shcentroid_pulls (&params, IMK_SHCENTROID_FIELDS_ALL))
      pull = find_pull<Sample, CALIBRATED, WIDE> (
          a, team, w, level, weight, height, sums);
  if (team.lane == 0 && team.warp == 0) {
    to->sums = sums;
    to->pull = pull;
    to->window = w;
  }
}

template <bool ALL>
static __device__ __forceinline__ void
finish_chain_cell (
    const ChainArguments &a, uint32_t index, const ChainCell &from, double *to)
{
  const ImkShcentroidParams &params = a.common.params;
  const ImkShcentroidRect cell = a.common.rects[index];
  ImkShcentroidTrack track = track_of (a, index);
  double *held = a.common.held + 2 * (size_t) index;
  ImkShcentroidRow row;

  imk_shcentroid_finish_real (&row, &from.sums, &from.pull, &cell, &from.window,
      &params, &a.noise,
      ALL ? IMK_SHCENTROID_FIELDS_ALL : IMK_SHCENTROID_FIELDS_XY,
      a.common.fresh, held, &track, &a.slopes[index]);
  if (imk_shcentroid_tracks (&params))
    a.tracks[index] = track;
  keep_row<ALL> (a.common, row, index, to);
}

/* Are there calls in the loop over pixels, or searches, or more than sums? A
 * kernel without them needs a third fewer registers. */
static bool
chain_is_rare (const ImkShcentroidParams *params)
{
  return params->brightest > 0 || params->power != 1.0 ||
         params->iterations > 1 ||
         params->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
}

/* Cells are finished by threads side by side: a division costs a warp as much
 * for one of them as for all. */
template <typename Sample, bool CALIBRATED, bool ALL, bool WIDE, bool RARE>
static __global__ void
__launch_bounds__ (CHAIN_THREADS)
    measure_chain (const __grid_constant__ ChainArguments a)
{
  extern __shared__ double memory[];
  __shared__ Meeting meeting;
  uint32_t n_teams = WIDE ? 1 : blockDim.x / a.lanes;
  uint32_t me = WIDE ? 0 : threadIdx.x / a.lanes;
  uint32_t first = blockIdx.x * n_teams;
  uint32_t n = min (n_teams, a.common.n_rects - first);
  double *rows = memory;
  ChainCell *cells = (ChainCell *) (rows + n_teams * row_length (ALL));
  Team team;

  team.lanes = WIDE ? 32 : a.lanes;
  team.lane = threadIdx.x % team.lanes;
  team.warp = WIDE ? threadIdx.x / 32 : 0;
  team.n_warps = WIDE ? blockDim.x / 32 : 1;
  team.weights = (double *) (cells + n_teams) +
                 (WIDE ? team.warp : me) * IMK_SHCENTROID_BAND_ROWS;
  team.meeting = &meeting;
  measure_chain_cell<Sample, CALIBRATED, ALL, WIDE, RARE> (
      a, team, first + me, me < n, cells + me);
  __syncthreads ();
  if (threadIdx.x < n)
    finish_chain_cell<ALL> (a, first + threadIdx.x, cells[threadIdx.x],
        rows + threadIdx.x * row_length (ALL));
  __syncthreads ();
  store_rows<ALL> (a.common, first, n, rows);
}

/* What becomes of a cell that is dark beside the others; the rest stays. */
static __device__ __forceinline__ void
store_dark (const Arguments &a, uint32_t index, const ImkShcentroidRow &row)
{
  bool all = a.fields == IMK_SHCENTROID_FIELDS_ALL;
  bool slopes = a.fields == IMK_SHCENTROID_FIELDS_SLOPES;
  uint32_t end = all ? (uint32_t) IMK_SHCENTROID_N_FIELDS : 2;

  if (a.flags)
    a.flags[index] = imk_shcentroid_flag_byte (&row, all);
  for (uint32_t k = 0; k < (a.rounded.data ? 2 : 1); k++) {
    const Output &out = k == 0 ? a.out : a.rounded;

    for (uint32_t i = 0; i < end; i++)
      if (slopes)
        store_value (out, 0, i * (size_t) a.n_rects + index,
            row.field[IMK_SHCENTROID_DX + i]);
      else if (i != IMK_SHCENTROID_FLUX && i != IMK_SHCENTROID_FLUX_RAW &&
               i != IMK_SHCENTROID_MAX)
        store_value (out, index, i, row.field[i]);
  }
}

/* @lanes: of the block, which all get the largest @most of all threads */
static __device__ __forceinline__ double
find_most (double *lanes, double most)
{
  lanes[threadIdx.x] = most;
  __syncthreads ();
  for (uint32_t step = IMK_SHCENTROID_TILT_LANES / 2; step; step /= 2) {
    if (threadIdx.x < step)
      lanes[threadIdx.x] = fmax (lanes[threadIdx.x], lanes[threadIdx.x + step]);
    __syncthreads ();
  }
  most = lanes[0];
  __syncthreads ();
  return most;
}

static __device__ __forceinline__ void
darken_cells (const ChainArguments &a, double *lanes)
{
  const ImkShcentroidParams &params = a.common.params;
  double most = 0.0;

  for (uint32_t i = threadIdx.x; i < a.common.n_rects;
       i += IMK_SHCENTROID_TILT_LANES)
    most = fmax (most, imk_shcentroid_light_of (&a.slopes[i]));
  most = find_most (lanes, most);
  for (uint32_t i = threadIdx.x; i < a.common.n_rects;
       i += IMK_SHCENTROID_TILT_LANES) {
    ImkShcentroidRow row;

    if (imk_shcentroid_darken (&a.slopes[i], &row,
            params.min_illumination * most, &a.common.rects[i], &params,
            a.common.fresh, a.common.held + 2 * (size_t) i, &a.tracks[i]))
      store_dark (a.common, i, row);
  }
}

/* Returns, to all threads: the mean over their @sums */
static __device__ __forceinline__ ImkShcentroidTiltSums
add_lanes (ImkShcentroidTiltSums *lanes, ImkShcentroidTiltSums sums)
{
  lanes[threadIdx.x] = sums;
  __syncthreads ();
  for (uint32_t step = IMK_SHCENTROID_TILT_LANES / 2; step; step /= 2) {
    if (threadIdx.x < step)
      imk_shcentroid_add_tilt (&lanes[threadIdx.x], &lanes[threadIdx.x + step]);
    __syncthreads ();
  }
  sums = lanes[0];
  imk_shcentroid_find_tilt (&sums);
  return sums;
}

static __device__ __forceinline__ void
remove_tilt (const ChainArguments &a, ImkShcentroidTiltSums *lanes)
{
  bool all = a.common.fields == IMK_SHCENTROID_FIELDS_ALL;
  uint32_t n = a.common.n_rects, me = threadIdx.x;
  ImkShcentroidTiltSums sums = {};

  for (uint32_t i = me; i < n; i += IMK_SHCENTROID_TILT_LANES)
    imk_shcentroid_add_slope (&sums, &a.slopes[i]);
  sums = add_lanes (lanes, sums);
  for (uint32_t i = me; i < n; i += IMK_SHCENTROID_TILT_LANES) {
    ImkShcentroidSlope slope = a.slopes[i];

    if (slope.tilt == IMK_SHCENTROID_TILT_APART)
      continue;
    for (uint32_t k = 0; k < (a.common.rounded.data ? 2 : 1); k++) {
      const Output &out = k == 0 ? a.common.out : a.common.rounded;

      store_value (
          out, all ? i : 0, all ? IMK_SHCENTROID_DX : i, slope.x - sums.x);
      store_value (out, all ? i : 0, all ? IMK_SHCENTROID_DY : (size_t) n + i,
          slope.y - sums.y);
    }
  }
}

/* One block, after all cells. A thread has the same cells in both steps. */
static __global__ void
__launch_bounds__ (IMK_SHCENTROID_TILT_LANES)
    join_cells (const __grid_constant__ ChainArguments a)
{
  __shared__ ImkShcentroidTiltSums lanes[IMK_SHCENTROID_TILT_LANES];

  if (a.common.params.min_illumination > 0.0)
    darken_cells (a, (double *) lanes);
  if (a.common.params.remove_tilt)
    remove_tilt (a, lanes);
}
