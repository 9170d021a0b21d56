/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/cpu/float.h"

#include <stdlib.h>

#include "core/cpu.h"
#include "imk/parallel.h"
#include "lapsharpen/cpu/scratch.h"

enum {
  STRIP_SIZE = 1 << 19, /* bytes of rows that are padded and used at a time: of
                         * the cache */
  MIN_STRIP = 8,        /* rows of it */
  BAND_SIZE = 1 << 16,  /* bytes that are worth a thread */
  SMOOTH_ROWS = 16,     /* low rows that are */
};

struct FloatFrames {
  const ImkLapsharpenFloatLoops *loops;
  ImkLapsharpenRule rule;
  uint32_t n_threads;
  const uint8_t *mask;
  float *arena;   /* for each slot a strip, and rows of smoothing */
  size_t n_slot;  /* floats of a slot */
  size_t n_arena; /* of all */
  ImkLapsharpenMoments *moments; /* of each row */
  ImkLapsharpenMoments focus;
};

/* What all threads do with the rows of a frame. */
typedef struct Job {
  FloatFrames *self;
  const FloatWork *work;
  FloatRows rows; /* (nullable): to smooth and sharpen them */
  uint32_t n_slots;
} Job;

/* Rows of the frame that a strip has. */
static int
strip_rows (const ImkLapsharpenPlane *strip)
{
  const int n = STRIP_SIZE / (int) (sizeof (float) *
                                    (size_t) imk_lapsharpen_row_floats (strip));

  return n < MIN_STRIP ? MIN_STRIP : n;
}

static uint32_t
count_slots (const FloatFrames *self)
{
  const ImkLapsharpenRule *rule = &self->rule;
  const size_t size =
      sizeof (float) * rule->width * rule->channels * (size_t) rule->height;
  const uint32_t rows = SMOOTH_ROWS * (uint32_t) rule->smooth.step;
  size_t n = imk_parallel_threads (self->n_threads);

  n = size / BAND_SIZE < n ? size / BAND_SIZE : n;
  n = rows && rule->height / rows < n ? rule->height / rows : n;
  return n < 1 ? 1 : (uint32_t) n;
}

/* Returns: row of the frame at which slot @i of @n begins */
static int
slot_row (const FloatFrames *self, uint32_t i, uint32_t n)
{
  return (int) ((uint64_t) i * self->rule.height / n);
}

/* Floats that each slot needs. */
static size_t
slot_floats (const ImkLapsharpenRule *rule)
{
  const ImkLapsharpenPlane strip = imk_lapsharpen_strip (rule);
  const int rows = strip_rows (&strip) + 2 * (int) rule->reach;

  return (size_t) rows * (size_t) imk_lapsharpen_row_floats (&strip) +
         (rule->smooth.step ? smooth_sizes (rule).total : 0);
}

ImkStatus
imk_lapsharpen_float_frames_update (
    FloatFrames *self, const ImkLapsharpenRule *rule, ImkError *error)
{
  FloatFrames next = *self;
  size_t n;

  next.rule = *rule;
  next.n_slot = slot_floats (rule);
  n = next.n_slot * count_slots (&next);
  if (n > self->n_arena) {
    float *arena = calloc (n, sizeof (*arena));

    if (!arena)
      return IMK_NO_MEMORY (error,
          "to sharpen a float32 frame of %u x %u pixels.", rule->width,
          rule->height);
    free (self->arena);
    next.arena = arena;
    next.n_arena = n;
  }
  *self = next;
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

/* --- a slot --------------------------------------------------------------- */

/* Uses strips of the rows @y to @last. */
static void
run_strips (const Job *job, float *memory, int y, int last)
{
  const FloatFrames *self = job->self;
  ImkLapsharpenPlane strip = imk_lapsharpen_strip (&self->rule);
  const int reach = (int) self->rule.reach, n = strip_rows (&strip);

  strip.values = memory;
  for (; y < last; y += n) {
    const int below = y + n < last ? y + n : last;

    strip.y0 = y - reach;
    strip.y1 = below + reach;
    self->loops->pad (job->work, &strip, strip.y0, strip.y1);
    job->rows (job->work, &strip, y, below);
  }
}

/* A slot has memory of its own for its rows. */
static void
run_slots (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  const FloatFrames *self = job->self;

  for (uint32_t i = first; i < end; i++) {
    const int y = slot_row (self, i, job->n_slots);
    const int last = slot_row (self, i + 1, job->n_slots);
    float *memory = self->arena + i * self->n_slot;

    if (!job->rows)
      self->loops->smooth (job->work, memory, y, last);
    else
      run_strips (job, memory, y, last);
  }
}

/* --- a frame -------------------------------------------------------------- */

static void
run (FloatFrames *self, const FloatWork *work, FloatRows rows)
{
  Job job = {self, work, rows, count_slots (self)};

  imk_parallel_for (self->n_threads, job.n_slots, 1, run_slots, &job);
}

void
imk_lapsharpen_float_frames_process (
    FloatFrames *self, const ImkImage *in, ImkImage *out)
{
  ImkLapsharpenRule rule = self->rule;
  const FloatWork work = {&rule, in, out, self->mask, self->moments};

  if (rule.per_sigma > 0 && rule.noisy) {
    run (self, &work, self->loops->measure_noise);
    rule.threshold = imk_lapsharpen_float_threshold (&rule, self->moments);
  }
  if (rule.measured) {
    run (self, &work, self->loops->measure_focus);
    self->focus = imk_lapsharpen_add_moments (self->moments, rule.height);
  }
  run (self, &work, rule.smooth.step ? NULL : self->loops->sharpen);
}

ImkLapsharpenMoments
imk_lapsharpen_float_frames_focus (const FloatFrames *self)
{
  return self->focus;
}
