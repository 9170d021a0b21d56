/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/cpu/picture.h"

#include <string.h>

#include "imk/parallel.h"

enum {
  TILE = 64 /* A-scans transposed at a time: a cache line of u8 */
};

/* ------------------------------------------------------------------------
 * Black and white. */

static bool
is_dead (const ImkOctbscanPicture *picture, uint32_t ascan)
{
  return picture->dead && picture->dead[ascan];
}

static void
find_ends (const ImkOctbscanPicture *picture, float *low, float *high)
{
  bool found = false;

  *low = *high = 0;
  for (uint32_t row = 0; row < picture->n_ascans; row++) {
    const float *v = picture->intensity + (size_t) row * picture->n_depths;

    if (is_dead (picture, row))
      continue;
    for (uint32_t i = 0; i < picture->n_depths; i++) {
      *low = !found || v[i] < *low ? v[i] : *low;
      *high = !found || v[i] > *high ? v[i] : *high;
      found = true;
    }
  }
}

/* Returns: how many intensities were counted */
static uint64_t
count_bins (const ImkOctbscanPicture *picture, uint32_t *counts)
{
  uint64_t n = 0;

  memset (counts, 0, IMK_OCTBSCAN_N_BINS * sizeof (*counts));
  for (uint32_t row = 0; row < picture->n_ascans; row++) {
    const float *v = picture->intensity + (size_t) row * picture->n_depths;

    if (is_dead (picture, row))
      continue;
    for (uint32_t i = 0; i < picture->n_depths; i++)
      counts[imk_octbscan_bin (v[i])]++;
    n += picture->n_depths;
  }
  return n;
}

/* The start of the bin of the value of that rank. */
static float
find_rank (const uint32_t *counts, uint64_t rank)
{
  uint64_t seen = 0;
  uint32_t bin = 0;

  while ((seen += counts[bin]) <= rank)
    bin++;
  return imk_octbscan_bin_start (bin);
}

void
imk_octbscan_picture_range (const ImkOctbscanPicture *picture,
    const ImkOctbscanConfig *config, uint32_t *counts, float ends[4])
{
  float found[3] = {0};
  uint64_t n, ranks[3];

  imk_octbscan_fixed_ends (config, ends);
  if (config->range == IMK_OCTBSCAN_RANGE_FIXED)
    return;
  if (config->range == IMK_OCTBSCAN_RANGE_MINMAX) {
    find_ends (picture, &found[0], &found[1]);
    found[2] = found[1];
  } else if ((n = count_bins (picture, counts)) > 0) {
    imk_octbscan_ranks (config, n, ranks);
    for (int i = 0; i < 3; i++)
      found[i] = find_rank (counts, ranks[i]);
  }
  imk_octbscan_ends (config, found, ends);
}

/* ------------------------------------------------------------------------
 * Levels. */

/* One picture at work. */
typedef struct Work {
  const ImkOctbscanPicture *picture;
  const ImkImage *image;
  ImkPool *pool;
  bool db;
  ImkOctbscanLevels levels;
} Work;

/* The buffers of one thread, behind each other: values and flipped values,
 * [n_depths], and a tile of levels, [TILE][n_depths]. */
size_t
imk_octbscan_picture_scratch_size (uint32_t n_depths)
{
  return (2 + TILE) * (size_t) n_depths * sizeof (float);
}

static uint8_t *
row_of (const ImkImage *image, uint32_t row)
{
  return (uint8_t *) image->data + image->stride * row;
}

/* One A-scan as samples of the image. */
static void
write_line (const Work *w, uint32_t row, float *values, void *to)
{
  uint32_t n = w->picture->n_depths;
  const float *v = w->picture->intensity + (size_t) row * n;

  if (w->picture->flips_depth) {
    for (uint32_t i = 0; i < n; i++)
      values[n + i] = v[n - 1 - i];
    v = values + n;
  }
  if (w->db) {
    w->picture->loops->db (v, n, values);
    v = values;
  }
  if (w->image->type == IMK_TYPE_U8)
    w->picture->loops->levels_u8 (v, n, w->levels, to);
  else if (w->image->type == IMK_TYPE_U16)
    w->picture->loops->levels_u16 (v, n, w->levels, to);
  else
    memcpy (to, v, n * sizeof (float));
}

#define DEFINE_TURN(Sample) \
  static void turn_##Sample (const Sample *tile, uint32_t n_lines, \
      uint32_t n_depths, const ImkImage *image, uint32_t x) \
  { \
    for (uint32_t d = 0; d < n_depths; d++) { \
      Sample *to = (Sample *) row_of (image, d) + x; \
\
      for (uint32_t i = 0; i < n_lines; i++) \
        to[i] = tile[(size_t) i * n_depths + d]; \
    } \
  }

DEFINE_TURN (uint8_t)
DEFINE_TURN (uint16_t)
DEFINE_TURN (uint32_t)

/* Transposes: A-scans become columns. */
static void
write_tile (const Work *w, uint32_t row, uint32_t n_lines, float *values)
{
  size_t size = imk_type_size (w->image->type);
  uint32_t n = w->picture->n_depths;
  void *tile = values + 2 * (size_t) n;

  for (uint32_t i = 0; i < n_lines; i++)
    write_line (w, row + i, values, (uint8_t *) tile + i * n * size);
  if (size == 1)
    turn_uint8_t (tile, n_lines, n, w->image, row);
  else if (size == 2)
    turn_uint16_t (tile, n_lines, n, w->image, row);
  else
    turn_uint32_t (tile, n_lines, n, w->image, row);
}

static void
write_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  uint32_t height = w->picture->n_ascans;
  float *values = imk_pool_take (w->pool);

  for (uint32_t row = first * TILE; row < height && row < end * TILE;
       row += TILE) {
    uint32_t n = height - row < TILE ? height - row : TILE;

    if (w->picture->depth_down)
      write_tile (w, row, n, values);
    else
      for (uint32_t i = 0; i < n; i++)
        write_line (w, row + i, values, row_of (w->image, row + i));
  }
  imk_pool_give (w->pool, values);
}

void
imk_octbscan_picture_write (const ImkOctbscanPicture *picture, bool db,
    float low, float high, const ImkImage *image, ImkPool *pool,
    uint32_t n_threads)
{
  Work w = {picture, image, pool, db};

  if (!image)
    return;
  w.levels = imk_octbscan_levels (low, high, image->type);
  imk_parallel_for (
      n_threads, imk_div_up (picture->n_ascans, TILE), 1, write_band, &w);
}
