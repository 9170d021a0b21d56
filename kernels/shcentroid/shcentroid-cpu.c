/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Columns first: a row of cells is summed up vertically, per column of pixels,
 * which is contiguous vector code without cell borders; then the columns, by a
 * factor of the height of a cell fewer than pixels, are summed up to cells. */
#include <stdlib.h>
#include <string.h>

#include "core/parallel.h"
#include "shcentroid/shcentroid-finish.h"

enum {
  TILE = 512,          /* columns at a time: their sums stay in the L1 cache */
  MAX_STRIP_ROWS = 64, /* of all strip_rows */
  WORTH_A_THREAD = 1 << 17, /* pixels; about 10 us */
};

/* A rectangle in the frame. */
typedef struct Area {
  const uint8_t *frame;
  size_t stride;
  uint32_t frame_width;
  uint32_t x, y, width, height;
  uint32_t below; /* samples above it take part */
} Area;

/* Rows that can be summed up in a lane: 255 (n) (n + 1) / 2 < 2^16 for n = 22,
 * with the second moments 255 n (n + 1) (n + 2) / 6 < 2^16 for n = 10; in 32
 * bits 65535 n (n + 1) (n + 2) / 6 < 2^32 for n = 72. */
static inline uint32_t
strip_rows (size_t lane_size, bool all)
{
  return lane_size == 4 ? MAX_STRIP_ROWS : all ? 10 : 22;
}

typedef struct Cpu {
  ImkShcentroidPlan plan; /* its rects are ours */
  ImkShcentroidRect *rects;
  ImkShcentroidParams params;
  uint32_t band_cells; /* columns of the grid, or 1: a cell of a map */
  bool narrow;         /* the sums of every cell fit 31 bits */
  bool fresh;          /* nothing is held */
  double *held;        /* x and y of every cell */
} Cpu;

/* One call of process. */
typedef struct Frame {
  const Cpu *cpu;
  const ImkImage *in;
  const ImkImage *out;
} Frame;

/* Cells side by side, whose columns are summed up together. */
typedef struct Tile {
  uint32_t first, n;              /* cells */
  const ImkShcentroidRect *rects; /* of these cells: x and width */
  Area area;                      /* all of them */
  bool cut;                       /* by a threshold */
  double pedestal, min_flux;
} Tile;

/* What the template makes of one combination of types. */
typedef struct Functions {
  void (*measure_tile) (const Frame *f, const Tile *t);
  void (*measure_wide_cell) (const Frame *f, const Tile *t);
} Functions;

/* ------------------------------------------------------------------------
 * Output. */

static void
store (const ImkImage *out, uint64_t row, uint64_t column, double value)
{
  uint8_t *to = (uint8_t *) out->data + row * out->stride;

  if (out->type == IMK_TYPE_F32)
    ((float *) to)[column] = imk_shcentroid_f32 (value);
  else
    ((double *) to)[column] = value;
}

static void
store_row (const Frame *f, uint32_t cell, const ImkShcentroidRow *row)
{
  const ImkShcentroidPlan *plan = &f->cpu->plan;

  switch (plan->fields) {
  case IMK_SHCENTROID_FIELDS_ALL:
    for (uint32_t i = 0; i < IMK_SHCENTROID_N_FIELDS; i++)
      store (f->out, cell, i, row->field[i]);
    break;
  case IMK_SHCENTROID_FIELDS_XY:
    store (f->out, cell, 0, row->field[IMK_SHCENTROID_X]);
    store (f->out, cell, 1, row->field[IMK_SHCENTROID_Y]);
    break;
  case IMK_SHCENTROID_FIELDS_SLOPES:
    store (f->out, 0, cell, row->field[IMK_SHCENTROID_DX]);
    store (f->out, 0, (uint64_t) plan->n_rects + cell,
        row->field[IMK_SHCENTROID_DY]);
    break;
  }
}

typedef void (*StoreF32) (
    float *to, const double *x, const double *y, uint32_t n);

/* The common case of store_row, for valid cells. */
static void
store_xy (const ImkImage *out, uint32_t first, uint32_t n, const double *x,
    const double *y, StoreF32 store_f32)
{
  uint8_t *to = (uint8_t *) out->data + first * out->stride;

  if (out->type == IMK_TYPE_F32 && out->stride == 2 * sizeof (float))
    store_f32 ((float *) to, x, y, n);
  else
    for (uint32_t i = 0; i < n; i++) {
      store (out, (uint64_t) first + i, 0, x[i]);
      store (out, (uint64_t) first + i, 1, y[i]);
    }
}

static void
store_slopes (const Frame *f, uint32_t first, uint32_t n, const double *x,
    const double *y)
{
  const ImkShcentroidRect *rects = f->cpu->rects + first;
  double scale = f->cpu->params.slope_scale;

  for (uint32_t i = 0; i < n; i++) {
    store (f->out, 0, (uint64_t) first + i, (x[i] - rects[i].ref_x) * scale);
    store (f->out, 0, (uint64_t) f->cpu->plan.n_rects + first + i,
        (y[i] - rects[i].ref_y) * scale);
  }
}

static void
store_centres (const Frame *f, uint32_t first, uint32_t n, const double *x,
    const double *y, StoreF32 store_f32)
{
  if (f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_XY)
    store_xy (f->out, first, n, x, y, store_f32);
  else
    store_slopes (f, first, n, x, y);
}

static void
finish_cell (const Frame *f, uint32_t cell, const ImkShcentroidSums *sums)
{
  const Cpu *cpu = f->cpu;
  ImkShcentroidRow row;

  imk_shcentroid_finish (&row, sums, &cpu->rects[cell], &cpu->params,
      cpu->plan.fields, cpu->fresh, cpu->held + 2 * (size_t) cell);
  store_row (f, cell, &row);
}

/* Where every sample takes part, the sums over 1, u and y are geometry. */
static void
finish_sums (const Frame *f, const Tile *t, uint32_t i, ImkShcentroidSums *s)
{
  if (!t->cut) {
    imk_shcentroid_fill_geometry (s, t->rects[i].width, t->area.height);
    s->raw = s->v;
  }
  finish_cell (f, t->first + i, s);
}

/* One binary for all x86-64; elsewhere 16 bytes are what vector units have. */
#define ISA_NAME(x) x##_base
#define VECTOR_SIZE 16
#define TARGET
#include "shcentroid/shcentroid-cpu-isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86_ISAS 1

#define ISA_NAME(x) x##_avx2
#define VECTOR_SIZE 32
#define TARGET __attribute__ ((target ("avx2")))
#include "shcentroid/shcentroid-cpu-isa.h"

#define ISA_NAME(x) x##_avx512
#define VECTOR_SIZE 64
#define TARGET \
  __attribute__ ((target ("avx2,avx512f,avx512bw,avx512dq,avx512vl")))
#include "shcentroid/shcentroid-cpu-isa.h"
#endif

/* ------------------------------------------------------------------------
 * From the frame to tiles. */

static const Functions *
isa_functions (void)
{
#ifdef HAVE_X86_ISAS
  if (__builtin_cpu_supports ("avx512bw") &&
      __builtin_cpu_supports ("avx512dq") &&
      __builtin_cpu_supports ("avx512vl"))
    return functions_avx512;
  if (__builtin_cpu_supports ("avx2"))
    return functions_avx2;
#endif
  return functions_base;
}

static const Functions *
get_functions (const Cpu *cpu)
{
  return isa_functions () + 2 * (cpu->plan.type == IMK_TYPE_U16) + !cpu->narrow;
}

/* A band without its cells: one threshold, one top, one height. */
static Tile
band_tile (const Frame *f, uint32_t band)
{
  const Cpu *cpu = f->cpu;
  uint32_t first = band * cpu->band_cells;
  const ImkShcentroidRect *rect = &cpu->rects[first];
  uint32_t maximum = cpu->plan.type == IMK_TYPE_U8 ? 255 : 65535;
  uint32_t least = imk_shcentroid_least (&cpu->params, rect->threshold);

  return (Tile){
      .first = first,
      .area =
          {
              .frame = f->in->data,
              .stride = f->in->stride,
              .frame_width = f->in->width,
              .y = rect->y,
              .height = rect->height,
              .below = least > maximum ? maximum : least - 1,
          },
      .cut = least > 0,
      .pedestal = imk_shcentroid_pedestal (&cpu->params, rect->threshold),
      .min_flux = imk_shcentroid_min_flux (&cpu->params, rect->min_flux),
  };
}

/* Appends to @tile the cells of its band from @i on that fit; at least one.
 * Returns: the first that did not */
static uint32_t
fill_tile (const Cpu *cpu, Tile *tile, uint32_t band, uint32_t i)
{
  /* the columns of all rows of a grid are those of the first: a cache full of
   * rects less to read */
  uint32_t column_of = cpu->plan.columns ? 0 : band;
  const ImkShcentroidRect *rects = cpu->rects + column_of;

  tile->first = band * cpu->band_cells + i;
  tile->rects = rects + i;
  tile->n = 0;
  tile->area.x = rects[i].x;
  tile->area.width = 0;
  while (i < cpu->band_cells &&
         (tile->n == 0 || tile->area.width + rects[i].width <= TILE)) {
    tile->area.width += rects[i++].width;
    tile->n++;
  }
  return i;
}

static void
measure_bands (void *data, uint32_t first, uint32_t end)
{
  const Frame *f = data;
  const Functions *functions = get_functions (f->cpu);

  for (uint32_t band = first; band < end; band++) {
    Tile tile = band_tile (f, band);

    for (uint32_t i = 0; i < f->cpu->band_cells;) {
      i = fill_tile (f->cpu, &tile, band, i);
      if (tile.area.width > TILE)
        functions->measure_wide_cell (f, &tile);
      else
        functions->measure_tile (f, &tile);
    }
  }
}

/* ------------------------------------------------------------------------
 * The backend. */

/* The largest sum of a cell is that of v u^2 or v y^2, without FIELDS_ALL that
 * of v u or v y. 31 bits, because vector units convert signed integers. */
static bool
sums_are_narrow (const ImkShcentroidPlan *plan)
{
  bool all = plan->fields == IMK_SHCENTROID_FIELDS_ALL;
  double maximum = plan->type == IMK_TYPE_U8 ? 255.0 : 65535.0;

  for (uint32_t i = 0; i < plan->n_rects; i++) {
    double w = plan->rects[i].width, h = plan->rects[i].height;
    double side = w > h ? w : h;
    double most = maximum * w * h * (all ? side * side / 3 : side / 2);

    if (most >= 2147483648.0)
      return false;
  }
  return true;
}

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  if (!cpu)
    return;
  free (cpu->rects);
  free (cpu->held);
  free (cpu);
}

static ImkStatus
cpu_create (const ImkShcentroidPlan *plan, const ImkShcentroidParams *params,
    void **state, ImkError *error)
{
  Cpu *cpu = calloc (1, sizeof (*cpu));

  if (cpu) {
    cpu->rects = calloc (plan->n_rects, sizeof (*cpu->rects));
    cpu->held = calloc (plan->n_rects, 2 * sizeof (*cpu->held));
  }
  if (!cpu || !cpu->rects || !cpu->held) {
    cpu_destroy (cpu);
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for %u cells.", plan->n_rects);
  }
  memcpy (cpu->rects, plan->rects, plan->n_rects * sizeof (*cpu->rects));
  cpu->plan = *plan;
  cpu->plan.rects = cpu->rects;
  cpu->params = *params;
  cpu->band_cells = plan->columns ? plan->columns : 1;
  cpu->narrow = sums_are_narrow (plan);
  cpu->fresh = true;
  *state = cpu;
  return IMK_OK;
}

static ImkStatus
cpu_update (void *state, const ImkShcentroidParams *params, ImkError *error)
{
  Cpu *cpu = state;

  /* what was held before another policy came in between is out of date */
  if (cpu->params.invalid_policy != params->invalid_policy)
    cpu->fresh = true;
  cpu->params = *params;
  return IMK_OK;
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  Cpu *cpu = state;
  Frame frame = {.cpu = cpu, .in = in, .out = out};
  uint32_t n_bands = cpu->plan.n_rects / cpu->band_cells;
  uint64_t band_pixels = 0;

  for (uint32_t i = 0; i < cpu->band_cells; i++)
    band_pixels += (uint64_t) cpu->rects[i].width * cpu->rects[i].height;
  imk_parallel_for (cpu->plan.n_threads, n_bands,
      1 + (uint32_t) (WORTH_A_THREAD / band_pixels), measure_bands, &frame);
  cpu->fresh = false;
  return IMK_OK;
}

static ImkStatus
cpu_reset (void *state, void *stream, ImkError *error)
{
  ((Cpu *) state)->fresh = true;
  return IMK_OK;
}

const ImkShcentroidBackend imk_shcentroid_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .reset = cpu_reset,
    .destroy = cpu_destroy,
};
