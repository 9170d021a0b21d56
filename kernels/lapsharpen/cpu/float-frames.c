/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/cpu/float.h"

#include <stdlib.h>

#include "core/cpu.h"
#include "imk/parallel.h"

enum {
  STRIP_SIZE = 1 << 19, /* bytes of rows that are padded and used at a time: of
                         * the cache */
  BAND_SIZE = 1 << 16,  /* bytes that are worth a thread */
};

struct FloatFrames {
  const ImkLapsharpenFloatLoops *loops;
  ImkLapsharpenRule rule;
  ImkLapsharpenPlan plan;
  uint32_t n_threads;
  const uint8_t *mask;
  float *arena; /* the planes of smoothing, or a strip for each slot */
  size_t n_arena;
  ImkLapsharpenMoments *moments; /* of each row */
  ImkLapsharpenMoments focus;
};

/* What all threads do with the rows of a frame. */
typedef struct Job {
  FloatFrames *self;
  const FloatWork *work;
  FloatRows rows;
  const ImkLapsharpenPass *pass;
  uint32_t n_slots;
} Job;

/* Rows of the frame that a strip has. */
static int
strip_rows (const ImkLapsharpenPlan *plan)
{
  const size_t row =
      sizeof (float) * (size_t) imk_lapsharpen_row_floats (&plan->frame);

  return (int) (STRIP_SIZE / row < 8 ? 8 : STRIP_SIZE / row);
}

static size_t
strip_floats (const ImkLapsharpenPlan *plan)
{
  return (size_t) (strip_rows (plan) - 2 * plan->frame.y0) *
         (size_t) imk_lapsharpen_row_floats (&plan->frame);
}

static uint32_t
count_slots (const FloatFrames *self)
{
  const size_t size = sizeof (float) * self->rule.width * self->rule.channels *
                      (size_t) self->rule.height;
  const uint32_t n = imk_parallel_threads (self->n_threads);

  return size / BAND_SIZE < 1   ? 1
         : size / BAND_SIZE < n ? (uint32_t) (size / BAND_SIZE)
                                : n;
}

ImkStatus
imk_lapsharpen_float_frames_update (
    FloatFrames *self, const ImkLapsharpenRule *rule, ImkError *error)
{
  const ImkLapsharpenPlan size = imk_lapsharpen_plan (rule, NULL);
  size_t n = size.n_floats;

  if (!rule->smooth.step)
    n = strip_floats (&size) * imk_parallel_threads (self->n_threads);
  if (n > self->n_arena) {
    float *arena = malloc (n * sizeof (*arena));

    if (!arena)
      return imk_error_set (error, IMK_ERROR_MEMORY,
          "There is no memory to sharpen a float32 frame of %u x %u pixels.",
          rule->width, rule->height);
    free (self->arena);
    self->arena = arena;
    self->n_arena = n;
  }
  self->rule = *rule;
  self->plan = imk_lapsharpen_plan (rule, self->arena);
  return IMK_OK;
}

ImkStatus
imk_lapsharpen_float_frames_new (const ImkLapsharpenConfig *config,
    const uint8_t *mask, FloatFrames **self, ImkError *error)
{
  static const void *const tables[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_lapsharpen_f32);
  FloatFrames *made = calloc (1, sizeof (*made));
  const void *loops = NULL;
  ImkStatus status = imk_cpu_choose (tables, &loops, error);

  if (made)
    made->moments = calloc (config->height, sizeof (*made->moments));
  if (status == IMK_OK && (!made || !made->moments))
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for a CPU sharpener of float32 frames.");
  if (status != IMK_OK) {
    imk_lapsharpen_float_frames_free (made);
    return status;
  }
  made->loops = loops;
  made->mask = mask;
  made->n_threads = config->n_threads;
  *self = made;
  return IMK_OK;
}

void
imk_lapsharpen_float_frames_free (FloatFrames *self)
{
  if (!self)
    return;
  free (self->arena);
  free (self->moments);
  free (self);
}

/* --- a frame -------------------------------------------------------------- */

/* A slot has memory of its own for strips of its rows. */
static void
run_slots (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  const FloatFrames *self = job->self;
  const uint64_t height = self->rule.height;
  const int reach = -self->plan.frame.y0, n = strip_rows (&self->plan);

  for (uint32_t i = first; i < end; i++) {
    const int last = (int) ((i + 1) * height / job->n_slots);
    ImkLapsharpenPlane strip = self->plan.frame;

    strip.values = self->arena + i * strip_floats (&self->plan);
    for (int y = (int) (i * height / job->n_slots); y < last; y += n) {
      const int below = y + n < last ? y + n : last;

      strip.y0 = y - reach;
      strip.y1 = below + reach;
      self->loops->pad (job->work, &strip, strip.y0, strip.y1);
      job->rows (job->work, &strip, y, below);
    }
  }
}

/* Rows of the padded frame, counted from its first one. */
static void
pad_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  const ImkLapsharpenPlane *frame = &job->self->plan.frame;

  job->self->loops->pad (
      job->work, frame, frame->y0 + (int) first, frame->y0 + (int) end);
}

static void
pass_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  const int y0 = job->pass->out.y0;

  job->self->loops->pass (job->pass, y0 + (int) first, y0 + (int) end);
}

static void
use_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;

  job->rows (job->work, &job->self->plan.frame, (int) first, (int) end);
}

static uint32_t
rows_of (const ImkLapsharpenPlane *p)
{
  return (uint32_t) (p->y1 - p->y0);
}

/* Where a frame is smoothed it has been padded before. */
static void
run (FloatFrames *self, const FloatWork *work, FloatRows rows)
{
  Job job = {self, work, rows, NULL, count_slots (self)};
  const uint32_t height = self->rule.height;

  if (self->rule.smooth.step)
    imk_parallel_for (self->n_threads, height, imk_div_up (height, job.n_slots),
        use_rows, &job);
  else
    imk_parallel_for (self->n_threads, job.n_slots, 1, run_slots, &job);
}

static void
smooth (FloatFrames *self, const FloatWork *work)
{
  Job job = {self, work, NULL, NULL, count_slots (self)};
  uint32_t n = rows_of (&self->plan.frame);

  imk_parallel_for (
      self->n_threads, n, imk_div_up (n, job.n_slots), pad_rows, &job);
  for (uint32_t i = 0; i < self->plan.n_passes; i++) {
    job.pass = &self->plan.passes[i];
    n = rows_of (&job.pass->out);
    imk_parallel_for (
        self->n_threads, n, imk_div_up (n, job.n_slots), pass_rows, &job);
  }
}

void
imk_lapsharpen_float_frames_process (
    FloatFrames *self, const ImkImage *in, ImkImage *out)
{
  ImkLapsharpenRule rule = self->rule;
  const FloatWork work = {
      &rule, &self->plan, in, out, self->mask, self->moments};

  if (rule.smooth.step)
    smooth (self, &work);
  if (rule.per_sigma > 0 && rule.noisy) {
    run (self, &work, self->loops->measure_noise);
    rule.threshold = imk_lapsharpen_float_threshold (&rule, self->moments);
  }
  if (rule.measured) {
    run (self, &work, self->loops->measure_focus);
    self->focus = imk_lapsharpen_add_moments (self->moments, rule.height);
  }
  run (self, &work, self->loops->sharpen);
}

ImkLapsharpenMoments
imk_lapsharpen_float_frames_focus (const FloatFrames *self)
{
  return self->focus;
}
