/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Three passes over a B-scan: means of the cameras, intensities of its A-scans
 * by blocks of spectra of one camera, levels. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/parallel.h"
#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-fft.h"

enum {
  N_LANES = IMK_OCTBSCAN_N_LANES,
  ALIGNMENT = 64,
  SUM_COLUMNS = 256, /* that a thread adds up at a time */
  TILE = 64,         /* A-scans that are turned at a time: a cache line of u8 */
};

/* What one thread works in. */
typedef struct Scratch {
  struct Scratch *next;
  float *samples; /* [N_LANES][N] */
  float *complex; /* [N_LANES][n_depths] */
  float *fft;
  float *values; /* [n_depths] */
  uint8_t *tile; /* [TILE][n_depths] levels */
} Scratch;

typedef struct Cpu {
  const ImkOctbscanLoops *loops;
  ImkOctbscanConfig config; /* without its pointers */
  ImkOctbscanParams params;
  uint32_t n_depths, n_blocks; /* blocks a camera at most */
  ImkOctbscanFft *fft;         /* or else */
  float *operators;
  float *means;         /* [C][N]; for FILE and NONE they stay */
  float *intensity;     /* [H][n_depths] */
  uint32_t *counts;     /* [N_BINS] for percentiles */
  pthread_mutex_t lock; /* of idle */
  Scratch *idle;
} Cpu;

/* One job at work. */
typedef struct Work {
  Cpu *cpu;
  const ImkOctbscanJob *job;
  float low, high; /* intensities */
  atomic_int status;
  ImkError error; /* of the first failure */
} Work;

/* ------------------------------------------------------------------------
 * Scratch. */

static float *
alloc_floats (size_t n)
{
  size_t size = (4 * n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  float *floats = aligned_alloc (ALIGNMENT, size ? size : ALIGNMENT);

  if (floats)
    memset (floats, 0, size);
  return floats;
}

static void
scratch_free (Scratch *s)
{
  free (s->samples);
  free (s->complex);
  free (s->fft);
  free (s->values);
  free (s->tile);
  free (s);
}

static ImkStatus
add_scratch (Cpu *cpu, ImkError *error)
{
  Scratch *s = calloc (1, sizeof (*s));
  size_t n = cpu->n_depths;

  if (s) {
    s->samples = alloc_floats ((size_t) N_LANES * cpu->config.width);
    s->complex = alloc_floats (2 * N_LANES * n);
    s->values = alloc_floats (n);
    s->tile = malloc (TILE * n * sizeof (float));
    s->fft = alloc_floats (
        cpu->fft ? imk_octbscan_fft_scratch_size (cpu->fft) / 4 : 0);
    if (s->samples && s->complex && s->values && s->tile && s->fft) {
      s->next = cpu->idle;
      cpu->idle = s;
      return IMK_OK;
    }
    scratch_free (s);
  }
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory to work on spectra of %u samples.",
      cpu->config.width);
}

/* There is one for each thread that works on a job. */
static Scratch *
take_scratch (Cpu *cpu)
{
  Scratch *s;

  pthread_mutex_lock (&cpu->lock);
  s = cpu->idle;
  cpu->idle = s->next;
  pthread_mutex_unlock (&cpu->lock);
  return s;
}

static void
give_scratch (Cpu *cpu, Scratch *s)
{
  pthread_mutex_lock (&cpu->lock);
  s->next = cpu->idle;
  cpu->idle = s;
  pthread_mutex_unlock (&cpu->lock);
}

/* ------------------------------------------------------------------------
 * Rows and cameras. */

static const uint8_t *
row_of (const ImkImage *image, uint32_t row)
{
  return (const uint8_t *) image->data + image->stride * row;
}

/* The first row of @camera; the next ones are C further each. */
static uint32_t
first_row (const Work *w, uint32_t camera)
{
  uint32_t n = w->cpu->config.n_cameras;

  return (camera + n - w->job->first_camera % n) % n;
}

static uint32_t
count_rows (const Work *w, uint32_t camera)
{
  uint32_t first = first_row (w, camera), height = w->cpu->config.height;

  return first < height ? (height - first - 1) / w->cpu->config.n_cameras + 1
                        : 0;
}

/* ------------------------------------------------------------------------
 * Means. Sums of integers are exact in float64. */

static void
mean_columns (const Work *w, uint32_t camera, uint32_t first, uint32_t n)
{
  const Cpu *cpu = w->cpu;
  const ImkImage *in = w->job->in;
  size_t offset = first * imk_type_size (in->type);
  uint32_t n_rows = count_rows (w, camera), row = first_row (w, camera);
  double sums[SUM_COLUMNS] = {0};

  for (uint32_t i = 0; i < n_rows; i++, row += cpu->config.n_cameras)
    cpu->loops->sum[in->type](row_of (in, row) + offset, n, sums);
  for (uint32_t i = 0; i < n && n_rows > 0; i++)
    cpu->means[(size_t) camera * cpu->config.width + first + i] =
        (float) (sums[i] / n_rows);
}

static void
mean_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  uint32_t width = w->cpu->config.width;
  uint32_t a_row = imk_div_up (width, SUM_COLUMNS);

  for (uint32_t i = first; i < end; i++) {
    uint32_t column = i % a_row * SUM_COLUMNS;
    uint32_t n = width - column;

    mean_columns (w, i / a_row, column, n < SUM_COLUMNS ? n : SUM_COLUMNS);
  }
}

/* ------------------------------------------------------------------------
 * Intensities. */

static void
fail (Work *w, ImkStatus status, const ImkError *error)
{
  int ok = IMK_OK;

  if (atomic_compare_exchange_strong (&w->status, &ok, status))
    w->error = *error;
}

static void
apply_operator (const Cpu *cpu, const ImkOctbscanBlock *block, Scratch *s)
{
  size_t n = cpu->n_depths, size = 2 * n * cpu->config.width;
  float *z[N_LANES];

  for (uint32_t l = 0; l < block->n; l++)
    z[l] = block->complex[l] ? block->complex[l] : s->complex + 2 * n * l;
  cpu->loops->apply (cpu->operators + size * block->camera, cpu->n_depths,
      cpu->config.width, block->samples, block->n, z);
  for (uint32_t l = 0; l < block->n; l++)
    if (block->intensity[l])
      for (uint32_t i = 0; i < n; i++)
        block->intensity[l][i] =
            imk_octbscan_intensity (z[l][2 * i], z[l][2 * i + 1]);
}

/* Rows i0 .. i1 - 1 of those of a camera. */
static void
run_block (Work *w, uint32_t camera, uint32_t i0, uint32_t i1, Scratch *s)
{
  Cpu *cpu = w->cpu;
  const ImkOctbscanJob *job = w->job;
  uint32_t width = cpu->config.width;
  ImkOctbscanBlock block = {.camera = camera, .n = i1 - i0};
  ImkStatus status = IMK_OK;
  ImkError error;

  for (uint32_t l = 0; l < block.n; l++) {
    uint32_t row = first_row (w, camera) + (i0 + l) * cpu->config.n_cameras;
    float *samples = s->samples + (size_t) l * width;

    cpu->loops->load[job->in->type](row_of (job->in, row),
        cpu->means + (size_t) camera * width, width, samples);
    block.samples[l] = samples;
    block.intensity[l] = job->db || job->linear
                             ? cpu->intensity + (size_t) row * cpu->n_depths
                             : NULL;
    block.complex[l] =
        job->complex ? (float *) row_of (job->complex, row) : NULL;
  }
  if (cpu->fft)
    status = imk_octbscan_fft_run (cpu->fft, &block, s->fft, &error);
  else
    apply_operator (cpu, &block, s);
  if (status != IMK_OK)
    fail (w, status, &error);
}

/* Blocks of one camera are of equal size, to one. */
static void
intensity_band (void *data, uint32_t first, uint32_t end)
{
  Work *w = data;
  Scratch *s = take_scratch (w->cpu);

  for (uint32_t i = first; i < end; i++) {
    uint32_t camera = i / w->cpu->n_blocks, block = i % w->cpu->n_blocks;
    uint64_t n = count_rows (w, camera);
    uint32_t i0 = (uint32_t) (n * block / w->cpu->n_blocks);
    uint32_t i1 = (uint32_t) (n * (block + 1) / w->cpu->n_blocks);

    if (i1 > i0)
      run_block (w, camera, i0, i1, s);
  }
  give_scratch (w->cpu, s);
}

/* ------------------------------------------------------------------------
 * Black and white. */

static void
find_ends (Work *w)
{
  const float *v = w->cpu->intensity;
  size_t n = (size_t) w->cpu->config.height * w->cpu->n_depths;

  w->low = w->high = v[0];
  for (size_t i = 1; i < n; i++) {
    w->low = v[i] < w->low ? v[i] : w->low;
    w->high = v[i] > w->high ? v[i] : w->high;
  }
}

/* The start of the bin of the value of rank @percent of @n. */
static float
find_rank (const uint32_t *counts, uint64_t n, double percent)
{
  uint64_t rank = (uint64_t) (percent / 100 * (double) (n - 1) + 0.5);
  uint64_t seen = 0;
  uint32_t bin = 0;

  while ((seen += counts[bin]) <= rank)
    bin++;
  return imk_octbscan_bin_start (bin);
}

static void
find_percentiles (Work *w)
{
  Cpu *cpu = w->cpu;
  size_t n = (size_t) cpu->config.height * cpu->n_depths;

  memset (cpu->counts, 0, IMK_OCTBSCAN_N_BINS * sizeof (*cpu->counts));
  for (size_t i = 0; i < n; i++)
    cpu->counts[imk_octbscan_bin (cpu->intensity[i])]++;
  w->low = find_rank (cpu->counts, n, cpu->params.percent_min);
  w->high = find_rank (cpu->counts, n, cpu->params.percent_max);
}

static void
find_range (Work *w)
{
  switch (w->cpu->params.range) {
  case IMK_OCTBSCAN_RANGE_FIXED:
    w->low = w->cpu->params.intensity_min;
    w->high = w->cpu->params.intensity_max;
    break;
  case IMK_OCTBSCAN_RANGE_PERCENTILE:
    find_percentiles (w);
    break;
  case IMK_OCTBSCAN_RANGE_MINMAX:
    find_ends (w);
    break;
  }
}

/* ------------------------------------------------------------------------
 * Images. */

/* One A-scan as samples of the image. */
static void
write_line (const Work *w, const ImkImage *image, bool db, uint32_t row,
    float *values, void *to)
{
  const Cpu *cpu = w->cpu;
  const float *v = cpu->intensity + (size_t) row * cpu->n_depths;
  float low = db ? imk_octbscan_db (w->low) : w->low;
  float high = db ? imk_octbscan_db (w->high) : w->high;
  ImkOctbscanLevels levels = imk_octbscan_levels (
      low, high, image->type == IMK_TYPE_U8 ? 255.0f : 65535.0f);

  if (db) {
    cpu->loops->db (v, cpu->n_depths, values);
    v = values;
  }
  if (image->type == IMK_TYPE_U8)
    cpu->loops->levels_u8 (v, cpu->n_depths, levels, to);
  else if (image->type == IMK_TYPE_U16)
    cpu->loops->levels_u16 (v, cpu->n_depths, levels, to);
  else
    memcpy (to, v, cpu->n_depths * sizeof (float));
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

/* A-scans become columns. */
static void
write_tile (const Work *w, const ImkImage *image, bool db, uint32_t row,
    uint32_t n_lines, Scratch *s)
{
  size_t size = imk_type_size (image->type);
  uint32_t n = w->cpu->n_depths;

  for (uint32_t i = 0; i < n_lines; i++)
    write_line (w, image, db, row + i, s->values, s->tile + i * n * size);
  if (size == 1)
    turn_uint8_t (s->tile, n_lines, n, image, row);
  else if (size == 2)
    turn_uint16_t ((uint16_t *) s->tile, n_lines, n, image, row);
  else
    turn_uint32_t ((uint32_t *) s->tile, n_lines, n, image, row);
}

static void
write_image (const Work *w, const ImkImage *image, bool db, uint32_t row,
    uint32_t n_lines, Scratch *s)
{
  if (!image)
    return;
  if (w->cpu->config.orientation == IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN) {
    write_tile (w, image, db, row, n_lines, s);
    return;
  }
  for (uint32_t i = 0; i < n_lines; i++)
    write_line (
        w, image, db, row + i, s->values, (void *) row_of (image, row + i));
}

static void
image_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  uint32_t height = w->cpu->config.height;
  Scratch *s = take_scratch (w->cpu);

  for (uint32_t row = first * TILE; row < height && row < end * TILE;
       row += TILE) {
    uint32_t n = height - row < TILE ? height - row : TILE;

    write_image (w, w->job->db, true, row, n, s);
    write_image (w, w->job->linear, false, row, n, s);
  }
  give_scratch (w->cpu, s);
}

/* ------------------------------------------------------------------------
 * The table. */

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  while (cpu->idle) {
    Scratch *next = cpu->idle->next;

    scratch_free (cpu->idle);
    cpu->idle = next;
  }
  pthread_mutex_destroy (&cpu->lock);
  imk_octbscan_fft_free (cpu->fft);
  free (cpu->operators);
  free (cpu->means);
  free (cpu->intensity);
  free (cpu->counts);
  free (cpu);
}

static ImkStatus
fill (Cpu *cpu, const ImkOctbscanPlan *plan, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  size_t n_means = (size_t) c->n_cameras * c->width;
  size_t n_operators = 2 * n_means * plan->n_depths;
  uint32_t n_threads = imk_parallel_threads (c->n_threads);
  ImkStatus status = IMK_OK;

  cpu->means = alloc_floats (n_means);
  cpu->intensity = alloc_floats ((size_t) c->height * plan->n_depths);
  cpu->counts = calloc (IMK_OCTBSCAN_N_BINS, sizeof (*cpu->counts));
  if (plan->operators)
    cpu->operators = malloc (n_operators * sizeof (float));
  if (!cpu->means || !cpu->intensity || !cpu->counts ||
      (plan->operators && !cpu->operators))
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for B-scans of %u A-scans and %u depths.",
        c->height, plan->n_depths);
  if (plan->background)
    memcpy (cpu->means, plan->background, n_means * sizeof (float));
  if (plan->operators)
    memcpy (cpu->operators, plan->operators, n_operators * sizeof (float));
  else
    status = imk_octbscan_fft_new (c, &cpu->fft, error);
  for (uint32_t i = 0; i < n_threads && status == IMK_OK; i++)
    status = add_scratch (cpu, error);
  return status;
}

static ImkStatus
cpu_create (const ImkOctbscanPlan *plan, const ImkOctbscanParams *params,
    void **state, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  Cpu *cpu = calloc (1, sizeof (*cpu));
  ImkStatus status;

  if (!cpu)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  pthread_mutex_init (&cpu->lock, NULL);
  cpu->loops = imk_octbscan_loops ();
  cpu->config = *c;
  cpu->config.cameras = NULL;
  cpu->config.background = NULL;
  cpu->params = *params;
  cpu->n_depths = plan->n_depths;
  cpu->n_blocks = imk_div_up (imk_div_up (c->height, c->n_cameras), N_LANES);
  status = fill (cpu, plan, error);
  if (status == IMK_OK)
    *state = cpu;
  else
    cpu_destroy (cpu);
  return status;
}

static ImkStatus
cpu_update (void *state, const ImkOctbscanParams *params, ImkError *error)
{
  ((Cpu *) state)->params = *params;
  return IMK_OK;
}

static ImkStatus
process_job (Cpu *cpu, const ImkOctbscanJob *job, ImkError *error)
{
  const ImkOctbscanConfig *c = &cpu->config;
  Work w = {.cpu = cpu, .job = job};
  ImkStatus status;

  if (c->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN)
    imk_parallel_for (c->n_threads,
        c->n_cameras * imk_div_up (c->width, SUM_COLUMNS), 1, mean_band, &w);
  imk_parallel_for (
      c->n_threads, c->n_cameras * cpu->n_blocks, 1, intensity_band, &w);
  status = (ImkStatus) atomic_load (&w.status);
  if (status != IMK_OK)
    return imk_error_set (error, status, "%s", w.error.message);
  if (!job->db && !job->linear)
    return IMK_OK;
  find_range (&w);
  imk_parallel_for (
      c->n_threads, imk_div_up (c->height, TILE), 1, image_band, &w);
  return IMK_OK;
}

static ImkStatus
cpu_process (void *state, const ImkOctbscanJob *jobs, uint32_t n_jobs,
    void *stream, ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (uint32_t i = 0; i < n_jobs && status == IMK_OK; i++)
    status = process_job (state, &jobs[i], error);
  return status;
}

const ImkOctbscanBackend imk_octbscan_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .destroy = cpu_destroy,
};
