/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two passes over a B-scan: means of the cameras, then Z or intensities of its
 * A-scans by blocks of spectra of one camera. finish.c does the rest. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "imk/parallel.h"
#include "octbscan/octbscan-backend.h"
#include "octbscan/cpu/fft.h"
#include "octbscan/cpu/finish.h"
#include "octbscan/octbscan-rows.h"

enum {
  N_LANES = IMK_OCTBSCAN_N_LANES,
  SUM_COLUMNS = 256, /* summed by a thread at a time */
};

/* The buffers of one thread, a block of the pool. */
typedef struct Scratch {
  float *samples; /* [N_LANES][N] */
  float *complex; /* [N_LANES][n_depths] */
  float *fft;
  double *sums;      /* [N + 1] */
  float *high, *low; /* [N] a mean in two parts */
} Scratch;

typedef struct Cpu {
  ImkOctbscanFinish *finish;
  const ImkOctbscanConfig *config; /* of finish */
  uint32_t n_blocks;               /* maximum blocks of a camera */
  ImkOctbscanFft *fft;             /* NULL if operators is set */
  float *operators;
  double *followed;                              /* [C][N] running means */
  uint32_t n_followed[IMK_OCTBSCAN_MAX_CAMERAS]; /* B-scans so far */
  float *high, *low; /* [C][N] means in two parts; constant for FILE and NONE */
  size_t fft_size;   /* bytes */
  ImkPool *pool;
} Cpu;

/* One job at work. */
typedef struct Work {
  Cpu *cpu;
  const ImkOctbscanJob *job;
  uint8_t *is_bad; /* [H] of finish, or NULL: none is */
  uint32_t n_bad[IMK_OCTBSCAN_MAX_CAMERAS];
  atomic_int status;
  ImkError error; /* of the first failure */
} Work;

/* ------------------------------------------------------------------------
 * Scratch. */

static size_t
round_up (size_t n)
{
  return (n + 15) / 16 * 16;
}

/* Floats for one thread; each part starts at a cache line. */
static size_t
scratch_floats (const Cpu *cpu)
{
  size_t n = cpu->config->width;

  return round_up (N_LANES * n) +
         round_up (2 * N_LANES * cpu->finish->n_depths) +
         round_up (cpu->fft_size / 4) + round_up (2 * (n + 1)) +
         2 * round_up (n);
}

static Scratch
cut (const Cpu *cpu, void *block)
{
  size_t n = cpu->config->width;
  Scratch s = {.samples = block};

  s.complex = s.samples + round_up (N_LANES * n);
  s.fft = s.complex + round_up (2 * N_LANES * cpu->finish->n_depths);
  s.sums = (double *) (s.fft + round_up (cpu->fft_size / 4));
  s.high = (float *) s.sums + round_up (2 * (n + 1));
  s.low = s.high + round_up (n);
  return s;
}

/* ------------------------------------------------------------------------
 * Rows and cameras. */

static const uint8_t *
row_of (const ImkImage *image, uint32_t row)
{
  return (const uint8_t *) image->data + image->stride * row;
}

static ImkOctbscanRows
rows_of (const Work *w, uint32_t camera)
{
  const ImkOctbscanConfig *c = w->cpu->config;

  return imk_octbscan_rows_of (
      camera, c->n_cameras, w->job->first_camera, c->height);
}

/* ------------------------------------------------------------------------
 * A spectrum with a sample that is not a number has no A-scan and is left out
 * of all means and ranges. Integers need no check. */

static void
sound_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  const ImkOctbscanLoops *loops = w->cpu->finish->loops;

  for (uint32_t row = first; row < end; row++)
    w->is_bad[row] = !loops->is_sound (
        (const float *) (const void *) row_of (w->job->in, row),
        w->cpu->config->width);
}

static void
find_bad (Work *w)
{
  const ImkOctbscanConfig *c = w->cpu->config;
  uint32_t n_bad = 0;

  if (w->is_bad)
    imk_parallel_for (c->n_threads, c->height, 16, sound_band, w);
  for (uint32_t row = 0; w->is_bad && row < c->height; row++) {
    n_bad += w->is_bad[row];
    w->n_bad[imk_octbscan_camera_of (
        row, c->n_cameras, w->job->first_camera)] += w->is_bad[row];
  }
  if (w->job->n_bad)
    *w->job->n_bad = n_bad;
}

/* ------------------------------------------------------------------------
 * Means. Sums of integers are exact in float64. */

/* Updates m_c with the mean of @n samples of one B-scan. */
static void
follow (Cpu *cpu, uint32_t camera, uint32_t first, uint32_t n,
    const double *sums, uint32_t n_rows)
{
  const ImkOctbscanConfig *c = cpu->config;
  size_t at = (size_t) camera * c->width + first;
  uint32_t seen = cpu->n_followed[camera] + 1;
  uint32_t share = seen < c->background_bscans ? seen : c->background_bscans;

  if (c->background_mode == IMK_OCTBSCAN_BACKGROUND_FIRST &&
      seen > c->background_bscans)
    return;
  for (uint32_t i = 0; i < n; i++) {
    double mean = sums[i] / n_rows;

    if (cpu->followed) {
      double *m = &cpu->followed[at + i];

      mean = *m = imk_octbscan_background (*m, mean, share);
    }
    imk_octbscan_split (mean, &cpu->high[at + i], &cpu->low[at + i]);
  }
}

static void
mean_columns (const Work *w, uint32_t camera, uint32_t first, uint32_t n)
{
  Cpu *cpu = w->cpu;
  const ImkImage *in = w->job->in;
  size_t offset = first * imk_type_size (in->type);
  ImkOctbscanRows rows = rows_of (w, camera);
  double sums[SUM_COLUMNS] = {0};

  for (uint32_t i = 0, row = rows.first; i < rows.n; i++, row += rows.step)
    if (!w->is_bad || !w->is_bad[row])
      cpu->finish->loops->sum[in->type](row_of (in, row) + offset, n, sums);
  if (rows.n > w->n_bad[camera])
    follow (cpu, camera, first, n, sums, rows.n - w->n_bad[camera]);
}

static void
mean_band (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;
  uint32_t width = w->cpu->config->width;
  uint32_t a_row = imk_div_up (width, SUM_COLUMNS);

  for (uint32_t i = first; i < end; i++) {
    uint32_t column = i % a_row * SUM_COLUMNS;
    uint32_t n = width - column;

    mean_columns (w, i / a_row, column, n < SUM_COLUMNS ? n : SUM_COLUMNS);
  }
}

static void
find_means (Work *w)
{
  Cpu *cpu = w->cpu;
  const ImkOctbscanConfig *c = cpu->config;

  if (c->background_mode != IMK_OCTBSCAN_BACKGROUND_MEAN && !cpu->followed)
    return;
  imk_parallel_for (c->n_threads,
      c->n_cameras * imk_div_up (c->width, SUM_COLUMNS), 1, mean_band, w);
  for (uint32_t i = 0; i < c->n_cameras; i++)
    if (rows_of (w, i).n > w->n_bad[i] && cpu->n_followed[i] < UINT32_MAX)
      cpu->n_followed[i]++;
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
apply_operator (const Cpu *cpu, const ImkOctbscanBlock *block, const Scratch *s)
{
  size_t n = cpu->finish->n_depths, size = 2 * n * cpu->config->width;
  float *z[N_LANES];

  for (uint32_t l = 0; l < block->n; l++)
    z[l] = block->complex[l] ? block->complex[l] : s->complex + 2 * n * l;
  cpu->finish->loops->apply (cpu->operators + size * block->camera,
      cpu->finish->n_depths, cpu->config->width, block->samples, block->n, z);
  for (uint32_t l = 0; l < block->n; l++)
    if (block->intensity[l])
      for (uint32_t i = 0; i < n; i++)
        block->intensity[l][i] =
            imk_octbscan_intensity (z[l][2 * i], z[l][2 * i + 1]);
}

/* The other spectrum of the transform leaves a rounding error in a spectrum of
 * zeros. */
static void
blacken (const Work *w, const ImkOctbscanRows *rows, uint32_t i0,
    const ImkOctbscanBlock *block)
{
  size_t size = w->cpu->finish->n_depths * sizeof (float);

  for (uint32_t l = 0; l < block->n; l++) {
    uint32_t row = rows->first + (i0 + l) * rows->step;

    if (w->is_bad[row] && block->complex[l])
      memset (block->complex[l], 0, 2 * size);
    if (w->is_bad[row] && block->intensity[l])
      memset (block->intensity[l], 0, size);
  }
}

/* Rows i0 .. i1 - 1 of those of a camera. */
static void
run_block (Work *w, uint32_t camera, uint32_t i0, uint32_t i1, const Scratch *s)
{
  Cpu *cpu = w->cpu;
  const ImkOctbscanFinish *finish = cpu->finish;
  const ImkOctbscanLoops *loops = finish->loops;
  const ImkOctbscanJob *job = w->job;
  ImkOctbscanRows rows = rows_of (w, camera);
  uint32_t width = cpu->config->width;
  bool rolls = cpu->config->background_mode == IMK_OCTBSCAN_BACKGROUND_ROLLING;
  ImkOctbscanBlock block = {.camera = camera, .n = i1 - i0};
  ImkStatus status = IMK_OK;
  ImkError error;

  for (uint32_t l = 0; l < block.n; l++) {
    uint32_t row = rows.first + (i0 + l) * rows.step;
    float *samples = s->samples + (size_t) l * width;
    size_t mean = (size_t) camera * width;

    block.samples[l] = samples;
    if (w->is_bad && w->is_bad[row]) {
      memset (samples, 0, width * sizeof (*samples));
    } else {
      if (rolls)
        loops->roll[job->in->type](row_of (job->in, row), width,
            cpu->config->background_reach, s->sums, s->high, s->low);
      loops->load[job->in->type](row_of (job->in, row),
          rolls ? s->high : cpu->high + mean, rolls ? s->low : cpu->low + mean,
          width, samples);
    }
    if (finish->z) {
      block.complex[l] = finish->z + 2 * (size_t) row * finish->n_depths;
      continue;
    }
    block.intensity[l] = finish->intensity + (size_t) row * finish->n_depths;
    block.complex[l] =
        job->complex ? (float *) row_of (job->complex, row) : NULL;
  }
  if (cpu->fft)
    status = imk_octbscan_fft_run (cpu->fft, &block, s->fft, &error);
  else
    apply_operator (cpu, &block, s);
  if (status != IMK_OK)
    fail (w, status, &error);
  if (w->is_bad)
    blacken (w, &rows, i0, &block);
}

/* The sizes of the blocks of one camera differ by at most one. */
static void
intensity_band (void *data, uint32_t first, uint32_t end)
{
  Work *w = data;
  void *memory = imk_pool_take (w->cpu->pool);
  Scratch s = cut (w->cpu, memory);

  for (uint32_t i = first; i < end; i++) {
    uint32_t camera = i / w->cpu->n_blocks, block = i % w->cpu->n_blocks;
    uint64_t n = rows_of (w, camera).n;
    uint32_t i0 = (uint32_t) (n * block / w->cpu->n_blocks);
    uint32_t i1 = (uint32_t) (n * (block + 1) / w->cpu->n_blocks);

    if (i1 > i0)
      run_block (w, camera, i0, i1, &s);
  }
  imk_pool_give (w->cpu->pool, memory);
}

/* ------------------------------------------------------------------------
 * The table. */

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  imk_pool_free (cpu->pool);
  imk_octbscan_finish_free (cpu->finish);
  imk_octbscan_fft_free (cpu->fft);
  free (cpu->operators);
  free (cpu->followed);
  free (cpu->high);
  free (cpu->low);
  free (cpu);
}

static bool
follows (const ImkOctbscanConfig *c)
{
  return c->background_mode == IMK_OCTBSCAN_BACKGROUND_RUNNING ||
         c->background_mode == IMK_OCTBSCAN_BACKGROUND_FIRST;
}

static ImkStatus
fill (Cpu *cpu, const ImkOctbscanPlan *plan, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  size_t n_means = (size_t) c->n_cameras * c->width;
  size_t n_operators = 2 * n_means * plan->n_depths;
  const ImkOctbscanLoops *loops;
  ImkStatus status = IMK_OK;

  IMK_TRY (imk_octbscan_choose_loops (&loops, error));
  IMK_TRY (imk_octbscan_finish_new (plan, loops, &cpu->finish, error));
  cpu->config = &cpu->finish->config;
  cpu->high = imk_pool_alloc (n_means * sizeof (float));
  cpu->low = imk_pool_alloc (n_means * sizeof (float));
  if (follows (c))
    cpu->followed = imk_pool_alloc (n_means * sizeof (double));
  if (plan->operators)
    cpu->operators = malloc (n_operators * sizeof (float));
  if (!cpu->high || !cpu->low || (follows (c) && !cpu->followed) ||
      (plan->operators && !cpu->operators))
    return IMK_NO_MEMORY (error, "for spectra of %u samples and %u depths.",
        c->width, plan->n_depths);
  if (c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE)
    for (size_t i = 0; i < n_means; i++)
      imk_octbscan_split (c->background[i], &cpu->high[i], &cpu->low[i]);
  if (plan->operators)
    memcpy (cpu->operators, plan->operators, n_operators * sizeof (float));
  else
    status = imk_octbscan_fft_new (c, &cpu->fft, error);
  if (cpu->fft)
    cpu->fft_size = imk_octbscan_fft_scratch_size (cpu->fft);
  IMK_TRY (status);
  return imk_pool_new (imk_parallel_threads (c->n_threads),
      scratch_floats (cpu) * sizeof (float), &cpu->pool, error);
}

static ImkStatus
cpu_create (const ImkOctbscanPlan *plan, void **state, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  Cpu *cpu = calloc (1, sizeof (*cpu));
  ImkStatus status;

  if (!cpu)
    return IMK_NO_MEMORY (error, "for the object.");
  cpu->n_blocks = imk_div_up (imk_div_up (c->height, c->n_cameras), N_LANES);
  status = fill (cpu, plan, error);
  if (status == IMK_OK)
    *state = cpu;
  else
    cpu_destroy (cpu);
  return status;
}

static ImkStatus
cpu_update (void *state, const ImkOctbscanConfig *config, ImkError *error)
{
  Cpu *cpu = state;

  if (config->history != cpu->config->history) {
    memset (cpu->n_followed, 0, sizeof (cpu->n_followed));
    imk_octbscan_finish_reset (cpu->finish);
  }
  cpu->finish->config = *config;
  return IMK_OK;
}

static ImkStatus
find_z (Work *w, ImkError *error)
{
  const ImkOctbscanConfig *c = w->cpu->config;
  ImkStatus status;

  find_bad (w);
  find_means (w);
  imk_parallel_for (
      c->n_threads, c->n_cameras * w->cpu->n_blocks, 1, intensity_band, w);
  status = (ImkStatus) atomic_load (&w->status);
  return status == IMK_OK
             ? IMK_OK
             : imk_error_set (error, status, "%s", w->error.message);
}

static ImkStatus
process_job (Cpu *cpu, const ImkOctbscanJob *job, ImkError *error)
{
  Work w = {.cpu = cpu, .job = job, .is_bad = cpu->finish->bad};

  IMK_TRY (job->in ? find_z (&w, error) : IMK_OK);
  imk_octbscan_finish_run (cpu->finish, job);
  return IMK_OK;
}

static ImkStatus
cpu_process (void *state, const ImkOctbscanJob *jobs, uint32_t n_jobs,
    void *stream, ImkError *error)
{
  for (uint32_t i = 0; i < n_jobs; i++)
    IMK_TRY (process_job (state, &jobs[i], error));
  return IMK_OK;
}

static ImkStatus
cpu_tune (void *state, const struct ImkOctbscanChain *chain, const double *live,
    ImkError *error)
{
  imk_octbscan_fft_tune (((Cpu *) state)->fft, live);
  return IMK_OK;
}

static ImkStatus
cpu_get_pattern (void *state, float *pattern, ImkError *error)
{
  const Cpu *cpu = state;

  memcpy (pattern, cpu->finish->pattern,
      2 * (size_t) cpu->config->n_cameras * cpu->finish->n_depths *
          sizeof (*pattern));
  return IMK_OK;
}

static ImkStatus
cpu_get_background (void *state, double *background, ImkError *error)
{
  const Cpu *cpu = state;
  size_t n = (size_t) cpu->config->n_cameras * cpu->config->width;

  for (size_t i = 0; i < n; i++)
    background[i] = (double) cpu->high[i] + cpu->low[i];
  return IMK_OK;
}

const ImkOctbscanBackend imk_octbscan_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .tune = cpu_tune,
    .get_pattern = cpu_get_pattern,
    .get_background = cpu_get_background,
    .destroy = cpu_destroy,
};
