/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/cpu/float.h"

#include <stdlib.h>

#include "core/cpu.h"
#include "imk/parallel.h"

enum {
  STRIP_SIZE = 1 << 19, /* bytes of rows that are padded and used at a time: of
                         * the cache */
  MIN_STRIP = 8,        /* rows of it */
  PLANES = 4,           /* of smoothing, which share the cache */
  BAND_SIZE = 1 << 16,  /* bytes that are worth a thread */
  SMOOTH_ROWS = 16,     /* low rows that are */
};

struct FloatFrames {
  const ImkLapsharpenFloatLoops *loops;
  ImkLapsharpenRule rule;
  ImkLapsharpenPlan plan;
  uint32_t n_threads;
  const uint8_t *mask;
  float *arena;   /* for each slot the planes of smoothing, or a strip */
  size_t n_slot;  /* floats of a slot */
  size_t n_arena; /* of all */
  ImkLapsharpenMoments *moments; /* of each row */
  ImkLapsharpenMoments focus;
};

/* What all threads do with the rows of a frame. */
typedef struct Job {
  FloatFrames *self;
  const FloatWork *work;
  FloatRows rows;
  bool is_smooth; /* what @rows do needs the smoothed rows */
  uint32_t n_slots;
} Job;

static int
row_size (const ImkLapsharpenPlane *p)
{
  return (int) (sizeof (float) * (size_t) imk_lapsharpen_row_floats (p));
}

/* Rows of the frame that a strip has. */
static int
strip_rows (const ImkLapsharpenPlan *plan)
{
  const int n = STRIP_SIZE / row_size (&plan->frame);

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
slot_floats (const FloatFrames *self)
{
  const uint32_t n = count_slots (self);
  size_t most =
      (size_t) (strip_rows (&self->plan) + 2 * (int) self->rule.reach) *
      (size_t) imk_lapsharpen_row_floats (&self->plan.frame);

  for (uint32_t i = 0; i < n && self->rule.smooth.step; i++) {
    const ImkLapsharpenPlan plan = imk_lapsharpen_plan_rows (
        &self->rule, NULL, slot_row (self, i, n), slot_row (self, i + 1, n));

    most = plan.n_floats > most ? plan.n_floats : most;
  }
  return most;
}

ImkStatus
imk_lapsharpen_float_frames_update (
    FloatFrames *self, const ImkLapsharpenRule *rule, ImkError *error)
{
  FloatFrames next = *self;
  size_t n;

  next.rule = *rule;
  next.plan = imk_lapsharpen_plan (rule, NULL);
  next.n_slot = slot_floats (&next);
  n = next.n_slot * count_slots (&next);
  if (n > self->n_arena) {
    float *arena = malloc (n * sizeof (*arena));

    if (!arena)
      return imk_error_set (error, IMK_ERROR_MEMORY,
          "There is no memory to sharpen a float32 frame of %u x %u pixels.",
          rule->width, rule->height);
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
  const int reach = (int) self->rule.reach, n = strip_rows (&self->plan);
  ImkLapsharpenPlane strip = self->plan.frame;

  strip.values = memory;
  for (; y < last; y += n) {
    const int below = y + n < last ? y + n : last;

    strip.y0 = y - reach;
    strip.y1 = below + reach;
    self->loops->pad (job->work, &strip, strip.y0, strip.y1);
    job->rows (job->work, &strip, y, below);
  }
}

/* Returns: the end of the rows of its input that @pass needs for rows up to
 * @end */
static int
input_end (const ImkLapsharpenPass *pass, int end)
{
  if (pass->along_row)
    return end;
  if (pass->grow)
    return (end - 1 + pass->step / 2) / pass->step + 2;
  return (end - 1) * pass->step + pass->reach + 1;
}

/* Returns: the end of the rows of plane @p that the passes from @i on need.
 * @ends: of their outputs */
static int
needed_end (const ImkLapsharpenPlan *plan, const ImkLapsharpenPlane *p,
    uint32_t i, const int *ends)
{
  int end = p->y0;

  for (; i < plan->n_passes; i++) {
    const ImkLapsharpenPass *pass = &plan->passes[i];
    int needed = p->y0;

    if (pass->in.values == p->values)
      needed = input_end (pass, ends[i]);
    else if (pass->add && pass->out.values == p->values)
      needed = ends[i];
    end = needed > end ? needed : end;
  }
  return end;
}

/* Smooths and uses the rows @y to @last. All passes of a few rows follow each
 * other, while these are in the cache. */
static void
smooth_rows (const Job *job, float *memory, int y, int last)
{
  const FloatFrames *self = job->self;
  const ImkLapsharpenPlan plan =
      imk_lapsharpen_plan_rows (&self->rule, memory, y, last);
  const int strip = strip_rows (&plan) / PLANES;
  const int n = strip < MIN_STRIP ? MIN_STRIP : strip;
  FloatWork work = *job->work;
  int padded = plan.frame.y0, done[IMK_LAPSHARPEN_MAX_PASSES];
  int ends[IMK_LAPSHARPEN_MAX_PASSES];

  work.plan = &plan;
  for (uint32_t i = 0; i < plan.n_passes; i++)
    done[i] = plan.passes[i].out.y0;
  for (; y < last; y += n) {
    const int below = y + n < last ? y + n : last;
    int frame;

    ends[plan.n_passes - 1] = below;
    for (uint32_t i = plan.n_passes - 1; i-- > 0;)
      ends[i] = needed_end (&plan, &plan.passes[i].out, i + 1, ends);
    frame = needed_end (&plan, &plan.frame, 0, ends);
    frame = frame < below + 1 ? below + 1 : frame; /* for a 3x3 window */
    self->loops->pad (&work, &plan.frame, padded, frame);
    padded = frame;
    for (uint32_t i = 0; i < plan.n_passes; i++) {
      self->loops->pass (&plan.passes[i], done[i], ends[i]);
      done[i] = ends[i];
    }
    job->rows (&work, &plan.frame, y, below);
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

    if (job->is_smooth)
      smooth_rows (job, memory, y, last);
    else
      run_strips (job, memory, y, last);
  }
}

/* --- a frame -------------------------------------------------------------- */

static void
run (FloatFrames *self, const FloatWork *work, FloatRows rows, bool is_smooth)
{
  Job job = {self, work, rows, is_smooth, count_slots (self)};

  imk_parallel_for (self->n_threads, job.n_slots, 1, run_slots, &job);
}

void
imk_lapsharpen_float_frames_process (
    FloatFrames *self, const ImkImage *in, ImkImage *out)
{
  ImkLapsharpenRule rule = self->rule;
  const FloatWork work = {
      &rule, &self->plan, in, out, self->mask, self->moments};

  if (rule.per_sigma > 0 && rule.noisy) {
    run (self, &work, self->loops->measure_noise, false);
    rule.threshold = imk_lapsharpen_float_threshold (&rule, self->moments);
  }
  if (rule.measured) {
    run (self, &work, self->loops->measure_focus, false);
    self->focus = imk_lapsharpen_add_moments (self->moments, rule.height);
  }
  run (self, &work, self->loops->sharpen, rule.smooth.step > 0);
}

ImkLapsharpenMoments
imk_lapsharpen_float_frames_focus (const FloatFrames *self)
{
  return self->focus;
}
