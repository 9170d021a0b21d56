/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cells of a few pixels on the GPU, of which x and y are wanted: a thread has a
 * cell, and keeps it in registers. There is nothing to share, so there are no
 * barriers, and of so many cells there are threads enough to hide all waiting.
 * The numbers are those of shcentroid-integers.cuh and shcentroid-reals.cuh. */
#pragma once

#include "shcentroid/cuda/shcentroid-integers.cuh"
#include "shcentroid/cuda/shcentroid-reals.cuh"

namespace small
{

/* Columns and rows that are read are LEAST_SIDE or MOST_SIDE each: a thread has
 * registers for so many pixels. */
enum {
  LEAST_SIDE = 3,
  MOST_SIDE = 4,
  THREADS = 128, /* of a block, at most */
};

/* Blocks that share a multiprocessor: where cells are larger, there are fewer.
 */
static constexpr uint32_t
blocks_for (uint32_t side)
{
  return side == LEAST_SIDE ? 8 : 5;
}

/* Where the cells are. */
struct Layout {
  uint32_t side;          /* of the largest; 0 when that is too large */
  uint32_t columns, rows; /* of cells; a map is one row */
  bool even;    /* a grid of cells that are as large as the first, which is: */
  bool regular; /* and all references lie in their cells as it does in that */
  uint32_t x, y, width, height;
  double ref_x, ref_y; /* from the corner of the cell */
};

/* ------------------------------------------------------------------------
 * A cell. */

/* An even grid needs not wait for the geometry, and its cells have nothing of
 * their own but the references, if these. */
static __device__ __forceinline__ ImkShcentroidRect
cell_at (const Arguments &a, const Layout &layout, uint32_t row,
    uint32_t column, uint32_t index)
{
  ImkShcentroidRect cell = {};

  if (!layout.even)
    return a.rects[index];
  cell.x = (uint16_t) (layout.x + column * layout.width);
  cell.y = (uint16_t) (layout.y + row * layout.height);
  cell.width = (uint16_t) layout.width;
  cell.height = (uint16_t) layout.height;
  if (layout.regular) {
    cell.ref_x = cell.x + layout.ref_x;
    cell.ref_y = cell.y + layout.ref_y;
  } else {
    cell.ref_x = a.rects[index].ref_x;
    cell.ref_y = a.rects[index].ref_y;
  }
  cell.min_flux = cell.threshold = imk_shcentroid_nan ();
  return cell;
}

template <typename Sample>
static __device__ __forceinline__ uint32_t
load_sample (const uint8_t *p, bool wanted)
{
  return sizeof (Sample) == 1 ? load_byte (p, wanted) : load_short (p, wanted);
}

/* All reads in flight together; 0 beyond the cell. */
template <typename Sample, uint32_t SIDE>
static __device__ __forceinline__ void
read_samples (const Arguments &a, const ImkShcentroidRect &cell,
    uint32_t samples[SIDE][SIDE])
{
  const uint8_t *from = a.frame + cell.y * a.stride + cell.x * sizeof (Sample);

#pragma unroll
  for (uint32_t i = 0; i < SIDE; i++)
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++)
      samples[i][k] =
          load_sample<Sample> (from + i * a.stride + k * sizeof (Sample),
              i < cell.height && k < cell.width);
}

/* The two numbers of a cell, together where the rows of the output allow it. */
static __device__ __forceinline__ void
store_cell_in (const Output &out, const Arguments &a, uint32_t index,
    const double values[2])
{
  uint8_t *to = (uint8_t *) out.data + index * out.stride;
  uintptr_t size = out.f64 ? sizeof (double2) : sizeof (float2);

  if (a.fields == IMK_SHCENTROID_FIELDS_SLOPES) {
    store_value (out, 0, index, values[0]);
    store_value (out, 0, (size_t) a.n_rects + index, values[1]);
  } else if (((uintptr_t) out.data | out.stride) % size != 0) {
    store_value (out, index, 0, values[0]);
    store_value (out, index, 1, values[1]);
  } else if (out.f64) {
    *(double2 *) to = make_double2 (values[0], values[1]);
  } else {
    *(float2 *) to = make_float2 (
        imk_shcentroid_f32 (values[0]), imk_shcentroid_f32 (values[1]));
  }
}

static __device__ __forceinline__ void
store_cell (const Arguments &a, uint32_t index, const double values[2])
{
  store_cell_in (a.out, a, index, values);
  if (a.rounded.data)
    store_cell_in (a.rounded, a, index, values);
}

/* ------------------------------------------------------------------------
 * In integers. */

/* Returns: the threshold of a cell. */
template <uint32_t SIDE>
static __device__ __forceinline__ double
find_threshold (const ImkShcentroidParams &params,
    const ImkShcentroidRect &cell, const uint32_t samples[SIDE][SIDE])
{
  uint32_t least = UINT32_MAX, most = 0;

#pragma unroll
  for (uint32_t i = 0; i < SIDE; i++)
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++)
      if (i < cell.height && k < cell.width) {
        least = min (least, samples[i][k]);
        most = max (most, samples[i][k]);
      }
  return imk_shcentroid_threshold (
      &params, cell.threshold, (double) least, (double) most);
}

template <typename Sample, uint32_t SIDE, bool CUT>
static __global__ void
__launch_bounds__ (THREADS, blocks_for (SIDE)) measure_cells (
    const __grid_constant__ Arguments a, const __grid_constant__ Layout layout)
{
  uint32_t column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  uint32_t index = row * layout.columns + column;
  uint32_t samples[SIDE][SIDE], n = 0, nu = 0, ny = 0, v = 0, vu = 0, vy = 0;
  double t = 0.0, values[2];
  int below = -1;

  let_next_kernel_begin ();
  if (column >= layout.columns)
    return;

  ImkShcentroidRect cell = cell_at (a, layout, row, column, index);

  read_samples<Sample, SIDE> (a, cell, samples);
  if (CUT) {
    t = find_threshold<SIDE> (a.params, cell, samples);
    below = (int) imk_shcentroid_least (t) - 1;
  }
#pragma unroll
  for (uint32_t i = 0; i < SIDE; i++)
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++) {
      bool used = i < cell.height && k < cell.width &&
                  (!CUT || (int) samples[i][k] > below);
      uint32_t value = used ? samples[i][k] : 0;

      n += used;
      nu += used ? k : 0;
      ny += used ? i : 0;
      v += value;
      vu += k * value;
      vy += i * value;
    }

  ImkShcentroidSums sums = {};
  ImkShcentroidRow to;

  sums.n = n;
  sums.nu = nu;
  sums.ny = ny;
  sums.v = v;
  sums.vu = vu;
  sums.vy = vy;
  imk_shcentroid_finish (&to, &sums, &cell, &a.params,
      CUT ? imk_shcentroid_pedestal (&a.params, t) : 0.0,
      IMK_SHCENTROID_FIELDS_XY, a.fresh, a.held + 2 * (size_t) index);
  keep_row<false> (a, to, index, values);
  store_cell (a, index, values);
}

/* ------------------------------------------------------------------------
 * In floating point. */

/* No numbers beyond the cell where anything is cut, else 0. The table comes
 * last: nothing may wait for a sample before all reads are on their way. */
template <typename Sample, uint32_t SIDE, bool CALIBRATED, bool CUT>
static __device__ __forceinline__ void
read_values (const ChainArguments &a, const ImkShcentroidRect &cell,
    float values[SIDE][SIDE])
{
  const ImkShcentroidPixel *from =
      a.pixels + (size_t) cell.y * a.pixel_stride + cell.x;
  uint32_t samples[SIDE][SIDE];
  float2 pixels[SIDE][SIDE];

  read_samples<Sample, SIDE> (a.common, cell, samples);
#pragma unroll
  for (uint32_t i = 0; CALIBRATED && i < SIDE; i++)
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++)
      pixels[i][k] = load_pixel ((const float2 *) from + i * a.pixel_stride + k,
          i < cell.height && k < cell.width);
#pragma unroll
  for (uint32_t i = 0; i < SIDE; i++)
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++)
      values[i][k] = (float) samples[i][k];
  if (a.lut)
#pragma unroll
    for (uint32_t i = 0; i < SIDE; i++)
#pragma unroll
      for (uint32_t k = 0; k < SIDE; k++)
        if (i < cell.height && k < cell.width)
          values[i][k] = __ldg (a.lut + samples[i][k]);
#pragma unroll
  for (uint32_t i = 0; i < SIDE; i++)
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++) {
      if (CALIBRATED)
        values[i][k] = imk_shcentroid_calibrate (
            values[i][k], {pixels[i][k].x, pixels[i][k].y});
      if (CUT && !(i < cell.height && k < cell.width))
        values[i][k] = (float) imk_shcentroid_nan ();
    }
}

template <uint32_t SIDE>
static __device__ __forceinline__ reals::Level
find_level (const ImkShcentroidParams &params, const ImkShcentroidRect &cell,
    const float values[SIDE][SIDE])
{
  float least = 3e38f, most = -3e38f;

#pragma unroll
  for (uint32_t i = 0; i < SIDE; i++)
#pragma unroll
    for (uint32_t k = 0; k < SIDE; k++) {
      least = fminf (least, values[i][k]);
      most = fmaxf (most, values[i][k]);
    }
  return reals::level_of (imk_shcentroid_level (
      &params, cell.threshold, least, most, -imk_shcentroid_infinity ()));
}

/* Column @u. @weights: of the columns, then of the rows */
template <uint32_t SIDE, bool WEIGHTED, bool CUT>
static __device__ __forceinline__ ImkShcentroidReals
sum_column (const float values[SIDE][SIDE], const double weights[2 * SIDE],
    const reals::Level &level, uint32_t u)
{
  ImkShcentroidReals c = no_sums ();
  ImkShcentroidGroup g = {};

#pragma unroll
  for (int i = SIDE - 1; i >= 0; i--) {
    float value = values[i][u];

    imk_shcentroid_add_part (&g,
        imk_shcentroid_part (value, CUT ? value >= level.least : true,
            CUT ? level.pedestal : 0.0, WEIGHTED ? weights[SIDE + i] : 1.0,
            1.0),
        false, 0.0);
  }
  imk_shcentroid_add_group (&c, &g, false, 0.0);
  imk_shcentroid_end_column (&c, WEIGHTED, WEIGHTED ? weights[u] : 1.0, u);
  return c;
}

/* Columns go to the lanes of arithmetic/float-centroid.h, of which the last
 * step adds up two: the even and the odd columns, where there are four. Weights
 * are in planes of one number a cell, so that neighbours read neighbouring
 * ones. */
template <typename Sample, uint32_t SIDE, bool CALIBRATED, bool WEIGHTED,
    bool CUT>
static __global__ void
__launch_bounds__ (THREADS, blocks_for (SIDE))
    measure_reals (const __grid_constant__ ChainArguments a,
        const __grid_constant__ Layout layout)
{
  uint32_t column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  uint32_t index = row * layout.columns + column;
  ImkShcentroidReals lanes[2] = {no_sums (), no_sums ()};
  double weights[2 * SIDE], position[2];
  float values[SIDE][SIDE];
  reals::Level level = {};
  uint32_t like =
      layout.regular ? 0 : index; /* the cell that has its weights */

  if (column >= layout.columns)
    return;

  ImkShcentroidRect cell = cell_at (a.common, layout, row, column, index);

#pragma unroll
  for (uint32_t i = 0; WEIGHTED && i < 2 * SIDE; i++)
    weights[i] = __ldg (a.weights + i * (size_t) a.common.n_rects + like);
  read_values<Sample, SIDE, CALIBRATED, CUT> (a, cell, values);
  if (CUT)
    level = find_level<SIDE> (a.common.params, cell, values);
#pragma unroll
  for (uint32_t u = 0; u < SIDE; u++)
    add_reals<false> (
        sum_column<SIDE, WEIGHTED, CUT> (values, weights, level, u),
        &lanes[u % 2]);
  lanes[0].p += lanes[1].p;
  lanes[0].pu += lanes[1].pu;
  lanes[0].py += lanes[1].py;
  reals::finish_cell<false> (a, index, cell, lanes[0], position);
  store_cell (a.common, index, position);
}

/* About the references, where measure_reals () looks for them; 0 beyond the
 * cell. */
static __global__ void
__launch_bounds__ (THREADS) make_weights (const ImkShcentroidRect *rects,
    uint32_t n_rects, uint32_t side, double sigma, double *weights)
{
  uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;

  if (index >= n_rects)
    return;

  ImkShcentroidRect cell = rects[index];
  double x = cell.x - cell.ref_x, y = cell.y - cell.ref_y;
  double *to = weights + index;

  for (uint32_t i = 0; i < side; i++) {
    to[i * (size_t) n_rects] =
        i < cell.width ? imk_shcentroid_weight (x + (double) i, sigma) : 0.0;
    to[(side + i) * (size_t) n_rects] =
        i < cell.height ? imk_shcentroid_weight (y + (double) i, sigma) : 0.0;
  }
}

/* ------------------------------------------------------------------------
 * On the host. */

/* To the last bit, for the place and for its distance. */
static bool
refers_alike (double corner, double reference, double first_corner,
    double first_reference)
{
  return corner + (first_reference - first_corner) == reference &&
         corner - reference == first_corner - first_reference;
}

static Layout
lay_out (const ImkShcentroidPlan *plan)
{
  const ImkShcentroidRect *first = plan->rects;
  Layout layout = {};

  if (plan->fields == IMK_SHCENTROID_FIELDS_ALL)
    return layout;
  layout.columns = plan->columns ? plan->columns : plan->n_rects;
  layout.rows = plan->columns ? plan->rows : 1;
  layout.even = layout.regular = plan->columns != 0;
  layout.x = first->x;
  layout.y = first->y;
  layout.width = first->width;
  layout.height = first->height;
  layout.ref_x = first->ref_x - first->x;
  layout.ref_y = first->ref_y - first->y;
  layout.side = LEAST_SIDE;
  for (uint32_t i = 0; i < plan->n_rects; i++) {
    const ImkShcentroidRect *rect = &plan->rects[i];
    uint32_t side = rect->width > rect->height ? rect->width : rect->height;

    layout.side = side > layout.side ? side : layout.side;
    layout.even &= rect->width == first->width &&
                   rect->height == first->height &&
                   rect->x == first->x + i % layout.columns * first->width &&
                   rect->y == first->y + i / layout.columns * first->height;
    layout.regular &=
        refers_alike (rect->x, rect->ref_x, first->x, first->ref_x) &&
        refers_alike (rect->y, rect->ref_y, first->y, first->ref_y);
  }
  layout.regular &= layout.even;
  if (layout.side > MOST_SIDE)
    layout.side = 0;
  return layout;
}

/* Numbers in the table of weights. */
static uint64_t
n_weights (const Layout *layout)
{
  return 2 * layout->side * (uint64_t) layout->columns * layout->rows;
}

/* Blocks of about as many warps each. */
static void
configure (const Layout *layout, cudaLaunchConfig_t *launch)
{
  uint32_t warps = imk_div_up (layout->columns, 32);
  uint32_t blocks = imk_div_up (warps, THREADS / 32);

  launch->gridDim = dim3 (blocks, layout->rows);
  launch->blockDim = dim3 (32 * imk_div_up (warps, blocks));
}

} /* namespace small */
