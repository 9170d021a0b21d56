/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* add () only stores a picture, so that the samples of a row of pixels under
 * all lights are adjacent. solve () gives rows to threads, which process 64
 * pixels at a time: grey values and light vectors are computed once and stay in
 * the cache for all rounds. Running sums would save one of these rounds, but
 * cost 80 bytes a pixel to read and write for each picture. */
#define _GNU_SOURCE /* madvise */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/cpu.h"
#include "core/pool.h"
#include "core/sample.h"
#include "imk/parallel.h"
#include "photostereo/cpu/loops.h"

enum {
  ALIGNMENT = 64, /* bytes, of memory and of rows of samples */
  PUT_ROWS = 16,  /* minimum rows for a thread */
  HUGE_PAGE = 1 << 21,
};

static const void *const tables[IMK_CPU_N_LEVELS] =
    IMK_CPU_TABLES (imk_photostereo);

/* ------------------------------------------------------------------------
 * Solution, row by row. */

static void *
lay_out_part (Scratch *s, size_t *at, size_t size)
{
  void *part = s && size ? (uint8_t *) s + *at : NULL;

  *at += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return part;
}

/* The arrays of a block are behind its members.
 * @s: (nullable)
 * Returns: bytes of all */
static size_t
lay_out (const Cpu *cpu, Scratch *s)
{
  const ImkPhotostereoPlan *p = &cpu->plan;
  size_t line = (size_t) p->n_lights * CHUNK * sizeof (float), at = 0;
  Scratch none, *to = s ? s : &none;

  lay_out_part (s, &at, sizeof (*s));
  to->grey = lay_out_part (s, &at, line);
  to->factors = lay_out_part (s, &at, cpu->uniform ? 0 : line);
  to->beams = lay_out_part (
      s, &at, cpu->uniform ? p->n_lights * sizeof (*to->beams) : 0);
  to->used = lay_out_part (s, &at, (size_t) p->n_lights * ALIGNMENT);
  to->dropped = lay_out_part (s, &at, line);
  to->units = lay_out_part (s, &at, p->constant ? line : 0);
  to->colours = lay_out_part (s, &at, p->n_planes > 1 ? p->n_planes * line : 0);
  to->ambient =
      lay_out_part (s, &at, p->n_planes * CHUNK * sizeof (*to->ambient));
  return at;
}

static Scratch *
take_scratch (Cpu *cpu)
{
  Scratch *s = imk_pool_take (cpu->pool);

  lay_out (cpu, s);
  return s;
}

static void
solve_row (const Job *job, Scratch *scratch, uint32_t y)
{
  Cpu *cpu = job->cpu;
  const ImkPhotostereoPlan *p = &cpu->plan;
  ImkPhotostereoRow row = {
      .largest = cpu->scans[y].largest, .n_clipped = cpu->scans[y].n_clipped};
  Chunk c = {
      .cpu = cpu,
      .job = job,
      .scratch = scratch,
      .lights = job->lights,
      .n_lights = job->n_lights,
      .y = y,
      .has_colours = p->n_planes > 1,
      .wants_ambient = !job->for_heights && job->out->ambient.data,
      .measures = !job->for_heights &&
                  imk_photostereo_measures (p, &job->cpu->params, job->out),
      .row = &row,
  };

  cpu->loops->solve_row (&c);
  if (job->rows && !job->for_heights)
    job->rows[y] = row;
}

static void
solve_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  Scratch *scratch = take_scratch (job->cpu);

  for (uint32_t y = first; y < end; y++)
    solve_row (job, scratch, job->first + y);
  imk_pool_give (job->cpu->pool, scratch);
}

static void
solve_rows_for_heights (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  Scratch *scratch = take_scratch (job->cpu);

  for (uint32_t i = first; i < end; i++)
    solve_row (job, scratch, i * job->cpu->heights.step);
  imk_pool_give (job->cpu->pool, scratch);
}

/* Some rows of each block do: heights are coarse. */
static void
find_heights (const Job *all)
{
  Cpu *cpu = all->cpu;
  const ImkPhotostereoPlan *p = &cpu->plan;
  Job job = *all;

  if (p->height_rounds == 0)
    return;
  job.for_heights = true;
  imk_photostereo_heights_reset (&cpu->heights);
  for (uint32_t i = 0; i < p->height_rounds; i++) {
    imk_parallel_for (cpu->n_threads, imk_div_up (p->height, cpu->heights.step),
        1, solve_rows_for_heights, &job);
    imk_photostereo_heights_integrate (&cpu->heights, cpu->slopes, p);
  }
}

/* ------------------------------------------------------------------------
 * Input. */

typedef struct Put {
  const Cpu *cpu;
  const ImkImage *frame;
  uint32_t light, band;
} Put;

/* imk_photostereo_colour_at () for samples, rounded. */
static uint32_t
interpolate (const Put *put, uint32_t x, uint32_t y, uint32_t colour)
{
  const ImkPhotostereoPlan *p = &put->cpu->plan;
  uint32_t sum = 0, n = 0;

  if (p->site[2 * (y & 1) + (x & 1)] == colour)
    return imk_sample_get_uint (put->frame, x, y, 0);
  for (uint32_t v = y ? y - 1 : 0; v <= y + 1 && v < p->height; v++)
    for (uint32_t u = x ? x - 1 : 0; u <= x + 1 && u < p->width; u++)
      if (p->site[2 * (v & 1) + (u & 1)] == colour) {
        sum += imk_sample_get_uint (put->frame, u, v, 0);
        n++;
      }
  return n ? (sum + n / 2) / n : 0;
}

static void
put_plane_row (const Put *put, uint32_t y, uint32_t plane, uint8_t *to)
{
  const ImkPhotostereoPlan *p = &put->cpu->plan;
  const uint8_t *bytes = (const uint8_t *) put->frame->data;
  const uint32_t width = p->width, step = p->channels;
  uint16_t *words = (uint16_t *) to;

  bytes += y * put->frame->stride;
  bytes += p->colours[plane] * imk_type_size (p->type);
  for (uint32_t x = 0; p->interpolate && x < width; x++)
    if (p->type == IMK_TYPE_U8)
      to[x] = (uint8_t) interpolate (put, x, y, plane);
    else
      words[x] = (uint16_t) interpolate (put, x, y, plane);
  if (p->interpolate)
    return;
  if (p->type == IMK_TYPE_U8)
    for (size_t x = 0; x < width; x++)
      to[x] = bytes[step * x];
  else
    for (size_t x = 0; x < width; x++)
      words[x] = ((const uint16_t *) bytes)[step * x];
}

static void
put_rows (void *data, uint32_t first, uint32_t end)
{
  const Put *put = data;
  const ImkPhotostereoPlan *p = &put->cpu->plan;
  size_t row_size = p->width * imk_type_size (p->type);
  uint32_t planes = put->band + p->n_planes / p->bands;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t plane = put->band; plane < planes; plane++) {
      uint8_t *to = samples_row (put->cpu, y, put->light, plane);

      if (p->n_planes == p->bands)
        memcpy (to, (const uint8_t *) put->frame->data + y * put->frame->stride,
            row_size);
      else
        put_plane_row (put, y, plane, to);
      /* Chunks are read completely. */
      memset (to + row_size, 0, put->cpu->stride - row_size);
      put->cpu->loops->scan_row (put->cpu, y, to);
    }
}

/* ------------------------------------------------------------------------
 * The backend. */

/* Huge pages, if the system has them: the samples of a row are spread over
 * hundreds of small ones. */
static void *
allocate (size_t size)
{
  size_t alignment = size >= HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
  void *memory = NULL;

  if (posix_memalign (&memory, alignment, size) != 0)
    return NULL;
  if (size >= HUGE_PAGE)
    madvise (memory, size, MADV_HUGEPAGE);
  return memory;
}

static void *
duplicate (const void *data, size_t size)
{
  void *copy = data ? malloc (size) : NULL;

  if (copy)
    memcpy (copy, data, size);
  return copy;
}

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  if (!cpu)
    return;
  imk_pool_free (cpu->pool);
  free (cpu->lamps);
  free (cpu->table);
  free (cpu->dark);
  free (cpu->white);
  free (cpu->mask);
  free (cpu->samples);
  free (cpu->scans);
  free (cpu->albedo);
  free (cpu->ambient);
  free (cpu->normals);
  free (cpu->slopes);
  imk_photostereo_heights_clear (&cpu->heights);
  free (cpu);
}

static size_t
pixel_size (const ImkPhotostereoPlan *p)
{
  return (p->mosaic ? 2 * sizeof (float) : 0) +
         (p->track_change ? 3 * sizeof (float) : 0) +
         (p->height_rounds ? 3 * sizeof (float) : 0) +
         (p->dark ? p->n_planes * sizeof (float) : 0) +
         (p->white ? p->n_planes * sizeof (float) : 0) + (p->mask ? 1 : 0);
}

static ImkStatus
check_memory (const Cpu *cpu, size_t samples_size, ImkError *error)
{
  const ImkPhotostereoPlan *p = &cpu->plan;
  size_t pixels = (size_t) p->width * p->height;
  size_t total = samples_size + pixels * pixel_size (p) +
                 cpu->n_threads * lay_out (cpu, NULL);

  if (!p->memory_limit || total <= p->memory_limit)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%u pictures of %ux%u need %zu MiB, of which %zu MiB are their samples; "
      "memory-limit allows %zu MiB.",
      p->n_lights * p->bands, p->width, p->height, (total >> 20) + 1,
      samples_size >> 20, p->memory_limit >> 20);
}

/* The caller's tables and frames are valid during create () only. */
static bool
copy_plan (Cpu *cpu, const ImkPhotostereoPlan *plan)
{
  size_t pixels = (size_t) plan->width * plan->height;
  size_t table = plan->type == IMK_TYPE_U8 ? 256 : 65536;
  size_t frame = pixels * plan->n_planes * sizeof (float);

  cpu->lamps = duplicate (plan->lamps, plan->n_lights * sizeof (*cpu->lamps));
  cpu->table = duplicate (plan->table, table * sizeof (float));
  cpu->dark = duplicate (plan->dark, frame);
  cpu->white = duplicate (plan->white, frame);
  cpu->mask = plan->mask ? calloc (pixels + CHUNK, 1) : NULL;
  if (cpu->mask) /* Chunks are read completely. */
    memcpy (cpu->mask, plan->mask, pixels);
  cpu->plan.lamps = cpu->lamps;
  cpu->plan.table = cpu->table;
  cpu->plan.dark = cpu->dark;
  cpu->plan.white = cpu->white;
  cpu->plan.mask = cpu->mask;
  return cpu->lamps && !cpu->table == !plan->table &&
         !cpu->dark == !plan->dark && !cpu->white == !plan->white &&
         !cpu->mask == !plan->mask;
}

static bool
allocate_all (Cpu *cpu, const ImkPhotostereoPlan *plan, size_t samples_size)
{
  size_t pixels = (size_t) plan->width * plan->height;

  cpu->samples = allocate (samples_size);
  cpu->scans = calloc (plan->height, sizeof (*cpu->scans));
  if (plan->mosaic) {
    cpu->albedo = calloc (pixels, sizeof (float));
    cpu->ambient = calloc (pixels, sizeof (float));
  }
  if (plan->track_change)
    cpu->normals = calloc (pixels, 3 * sizeof (float));
  if (plan->height_rounds > 0) {
    if (!imk_photostereo_heights_init (
            &cpu->heights, plan->width, plan->height))
      return false;
    cpu->slopes = calloc (
        (size_t) plan->width * imk_div_up (plan->height, cpu->heights.step),
        3 * sizeof (float));
    if (!cpu->slopes)
      return false;
  }
  return cpu->samples && cpu->scans &&
         (!plan->mosaic || (cpu->albedo && cpu->ambient)) &&
         (!plan->track_change || cpu->normals) && copy_plan (cpu, plan);
}

static ImkStatus
cpu_create (const ImkPhotostereoPlan *plan, const ImkPhotostereoParams *params,
    void **state, ImkError *error)
{
  size_t row_size = plan->width * imk_type_size (plan->type);
  /* whole chunks, and an odd number of cache lines, so that the lights of a
   * pixel fall into different sets of the cache */
  size_t chunk = CHUNK * imk_type_size (plan->type);
  size_t stride = (row_size + chunk - 1) / chunk * chunk;
  Cpu *cpu = calloc (1, sizeof (*cpu));
  const void *loops = NULL;
  size_t size;
  ImkStatus status;

  if (!cpu)
    return IMK_NO_MEMORY (error, "for the object.");
  if (stride / ALIGNMENT % 2 == 0)
    stride += ALIGNMENT;
  size = stride * plan->n_planes * plan->n_lights * plan->height;
  cpu->plan = *plan;
  cpu->params = *params;
  cpu->stride = stride;
  cpu->uniform = plan->pitch_x == 0 && !plan->constant;
  cpu->n_threads = imk_parallel_threads (plan->n_threads);
  status = imk_cpu_choose (tables, &loops, error);
  cpu->loops = loops;
  if (status == IMK_OK)
    status = check_memory (cpu, size, error);
  if (status == IMK_OK && !allocate_all (cpu, plan, size))
    status = IMK_NO_MEMORY (error, "for %u pictures of %ux%u, %zu MiB.",
        plan->n_lights * plan->bands, plan->width, plan->height, size >> 20);
  if (status == IMK_OK)
    status =
        imk_pool_new (cpu->n_threads, lay_out (cpu, NULL), &cpu->pool, error);
  if (status == IMK_OK)
    *state = cpu;
  else
    cpu_destroy (cpu);
  return status;
}

static ImkStatus
cpu_update (void *state, const ImkPhotostereoParams *params, ImkError *error)
{
  ((Cpu *) state)->params = *params;
  return IMK_OK;
}

static bool
cpu_keeps_frames (void *state)
{
  return false;
}

static ImkStatus
cpu_add (void *state, const ImkImage *frame, uint32_t light, uint32_t band,
    void *stream, ImkError *error)
{
  Cpu *cpu = state;
  Put put = {.cpu = cpu, .frame = frame, .light = light, .band = band};

  imk_parallel_for (cpu->n_threads, cpu->plan.height, PUT_ROWS, put_rows, &put);
  return IMK_OK;
}

static ImkStatus
cpu_solve (void *state, const ImkPhotostereoSet *set, bool compare,
    ImkPhotostereoOutputs *outputs, ImkPhotostereoRow *rows, void *stream,
    ImkError *error)
{
  Cpu *cpu = state;
  uint32_t height = cpu->plan.height;
  uint32_t strip = cpu->plan.strip_rows && cpu->plan.strip_rows < height
                       ? cpu->plan.strip_rows
                       : height;
  Job job = {
      .cpu = cpu,
      .lights = set->lights,
      .n_lights = set->n_lights,
      .compare = compare,
      .out = outputs,
      .rows = rows,
  };

  find_heights (&job);
  for (job.first = 0; job.first < height; job.first += strip) {
    uint32_t left = height - job.first;

    imk_parallel_for (
        cpu->n_threads, left < strip ? left : strip, 1, solve_rows, &job);
  }
  if (cpu->plan.mosaic && (outputs->albedo.data || outputs->ambient.data))
    imk_parallel_for (cpu->n_threads, height, PUT_ROWS,
        imk_photostereo_store_mosaic_rows, &job);
  return IMK_OK;
}

/* The samples stay: those of lights that are not in the set are never read. */
static void
cpu_reset (void *state)
{
  Cpu *cpu = state;

  memset (cpu->scans, 0, cpu->plan.height * sizeof (*cpu->scans));
}

static ImkStatus
cpu_probe (void *state, uint32_t step_x, uint32_t step_y, float *normals,
    void *stream, ImkError *error)
{
  const Cpu *cpu = state;
  uint32_t width = cpu->plan.width;

  for (uint32_t y = step_y / 2; y < cpu->plan.height; y += step_y)
    for (uint32_t x = step_x / 2; x < width; x += step_x, normals += 3)
      memcpy (normals, cpu->normals + 3 * ((size_t) y * width + x),
          3 * sizeof (*normals));
  return IMK_OK;
}

const ImkPhotostereoBackend imk_photostereo_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .update = cpu_update,
    .keeps_frames = cpu_keeps_frames,
    .add = cpu_add,
    .solve = cpu_solve,
    .reset = cpu_reset,
    .probe = cpu_probe,
    .destroy = cpu_destroy,
};
