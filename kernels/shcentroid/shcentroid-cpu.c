/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Columns first: a row of cells is summed up vertically, per column of pixels,
 * which is contiguous vector code without cell borders; then the columns, by a
 * factor of the height of a cell fewer than pixels, are summed up to cells. */
#include <stdlib.h>
#include <string.h>

#include "core/parallel.h"
#include "shcentroid/shcentroid-correlation-scratch.h"

enum {
  TILE = 512,          /* columns at a time: their sums stay in the L1 cache */
  N_PIECES = 10,       /* powers of 2 up to that */
  MAX_STRIP_ROWS = 64, /* of all strip_rows */
  CHAIN_TILE = 256,    /* the same for the chain, whose sums are longer */
  CHAIN_ROOM = CHAIN_TILE + IMK_SHCENTROID_LANES, /* with a vector beyond it */
  MOST_KEYS = 4096, /* pixels of a window whose brightest are sought at once */
  STRIP_COLUMNS = 16,       /* of the chain, at a time */
  FOLDED_CELLS = 8,         /* of the chain, at most */
  WORTH_A_THREAD = 1 << 17, /* pixels; about 10 us */
};

/* A rectangle in the frame. */
typedef struct Area {
  const uint8_t *frame;
  size_t stride;
  uint32_t frame_width;
  uint32_t x, y, width, height;
  int32_t below;      /* samples above it take part */
  const void *belows; /* those of each column, lanes; NULL for that one */
} Area;

/* Rows that can be summed up in a lane: 255 (n) (n + 1) / 2 < 2^16 for n = 22,
 * with the second moments 255 n (n + 1) (n + 2) / 6 < 2^16 for n = 10; in 32
 * bits 65535 n (n + 1) (n + 2) / 6 < 2^32 for n = 72. */
static inline uint32_t
strip_rows (size_t lane_size, bool all)
{
  return lane_size == 4 ? MAX_STRIP_ROWS : all ? 10 : 22;
}

/* Dark and flat in 32 bits, half of what they take: numbers that are close to
 * each other differ in few bits. See pack_pixel (). */
typedef struct Packing {
  float dark, unit; /* the least dark; the unit of what is above it */
  uint32_t top;     /* the bits that all flats have in common; */
  uint32_t flat;    /* of flats by which what is unpacked is multiplied */
  /* of bytes, in 16 bits each: of a sample, and of the units of a dark */
  uint32_t factors;
} Packing;

typedef struct Cpu {
  ImkShcentroidPlan plan; /* its rects are ours */
  ImkShcentroidRect *rects;
  ImkShcentroidParams params;
  uint32_t band_cells; /* columns of the grid, or 1: a cell of a map */
  bool narrow;         /* the sums of every cell fit 31 bits */
  bool fresh;          /* nothing is held */
  double *held;        /* x and y of every cell */

  /* of the chain */
  float *dark, *flat, *lut; /* NULL for none; dark and flat only together */
  /* of a grid: dark and flat strip by strip, see make_strips (); or NULL */
  float *dark_strips, *flat_strips;
  uint32_t *packed_strips; /* instead of these, where that is exact */
  Packing packing;
  uint32_t *strips_before; /* the tile that begins with each column of cells */
  uint32_t n_strips;       /* of a row of cells */
  bool bad;                /* some pixel is */
  bool upwards;            /* the next frame, see measure_chain_bands () */
  ImkShcentroidTrack *tracks; /* of every cell */
  ImkShcentroidSlope *slopes; /* of every cell, for their mean */
  bool lost;                  /* nothing is tracked */
  /* of columns (imk_shcentroid_factor) and rows of every cell; NULL: as needed
   */
  double *column_weights, *row_weights;
  uint32_t *columns_at, *rows_at; /* where those of a cell begin */
  double *us; /* of a grid: where a column of the frame stands in its cell */

  Matching matching;
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
  bool leveled;                   /* which the samples of the cell decide */
  double pedestal;                /* of all cells, */
  const double *pedestals;        /* or of each; NULL for that one */
  double min_flux;
} Tile;

/* Samples above it take part under a threshold of @t; no larger than any sample
 * fits the lanes that it is compared in. */
static inline int32_t
sample_below (const Cpu *cpu, double t)
{
  int32_t most = cpu->plan.type == IMK_TYPE_U8 ? 255 : 65535;
  int32_t below = (int32_t) imk_shcentroid_least (t) - 1;

  return below < most ? below : most;
}

static inline uint32_t
widest (const Tile *t)
{
  uint32_t width = 0;

  for (uint32_t i = 0; i < t->n; i++)
    width = t->rects[i].width > width ? t->rects[i].width : width;
  return width;
}

/* Returns: the first cell that the tile from @from on has no room for, or that
 * would be one of too few for a vector of cells (shcentroid-fold-cpu.h) */
static uint32_t
end_of_tile (const ImkShcentroidRect *rects, uint32_t from, uint32_t last)
{
  uint32_t width = rects[from].width, to = from + 1;

  while (to < last && width + rects[to].width <= CHAIN_TILE)
    width += rects[to++].width;
  return to < last && to - from > FOLDED_CELLS ? to - (to - from) % FOLDED_CELLS
                                               : to;
}

/* What the template makes of one combination of types. */
typedef struct Functions {
  void (*measure_tile) (const Frame *f, const Tile *t);
  void (*measure_wide_cell) (const Frame *f, const Tile *t);
  void (*measure_chain) (const Frame *f, uint32_t first, uint32_t n);
  void (*measure_match) (const Frame *f, uint32_t cell, MatchScratch *s);
  void (*take_template) (const Frame *f, MatchScratch *s);
} Functions;

/* ------------------------------------------------------------------------
 * Output. */

static inline __attribute__ ((always_inline)) void
store (const ImkImage *out, uint64_t row, uint64_t column, double value)
{
  uint8_t *to = (uint8_t *) out->data + row * out->stride;

  if (out->type == IMK_TYPE_F32)
    ((float *) to)[column] = imk_shcentroid_f32 (value);
  else
    ((double *) to)[column] = value;
}

static inline __attribute__ ((always_inline)) void
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

/* Inline, as vector code around it must not meet code of another kind. */
static inline __attribute__ ((always_inline)) void
finish_cell (const Frame *f, uint32_t cell, const ImkShcentroidSums *sums,
    double pedestal)
{
  const Cpu *cpu = f->cpu;
  ImkShcentroidRow row;

  imk_shcentroid_finish (&row, sums, &cpu->rects[cell], &cpu->params, pedestal,
      cpu->plan.fields, cpu->fresh, cpu->held + 2 * (size_t) cell);
  store_row (f, cell, &row);
}

/* Where every sample takes part, the sums over 1, u and y are geometry. */
static inline __attribute__ ((always_inline)) void
finish_sums (const Frame *f, const Tile *t, uint32_t i, ImkShcentroidSums *s)
{
  if (!t->cut) {
    imk_shcentroid_fill_geometry (s, t->rects[i].width, t->area.height);
    s->raw = s->v;
  }
  finish_cell (
      f, t->first + i, s, t->pedestals ? t->pedestals[i] : t->pedestal);
}

#include "shcentroid/shcentroid-chain-tile.h"
#include "shcentroid/shcentroid-calibration-cpu.h"

/* Lanes of two vectors, by number; gcc wants these in a vector, too. */
#ifdef __clang__
#define SHUFFLE(Numbers, a, b, ...) __builtin_shufflevector (a, b, __VA_ARGS__)
#else
#define SHUFFLE(Numbers, a, b, ...) \
  __builtin_shuffle (a, b, (Numbers){__VA_ARGS__})
#endif

/* One binary for all x86-64; elsewhere 16 bytes are what vector units have. */
#define ISA_NAME(x) x##_base
#define VECTOR_SIZE 16
#define TARGET
#include "shcentroid/shcentroid-cpu-isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86_ISAS 1
#include <immintrin.h>

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
  const ImkShcentroidParams *params = &cpu->params;
  bool any = params->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE;
  bool leveled = any && imk_shcentroid_is_leveled (params);
  double t = any && !leveled
                 ? imk_shcentroid_threshold (params, rect->threshold, 0, 0)
                 : 0.0;

  return (Tile){
      .first = first,
      .area =
          {
              .frame = f->in->data,
              .stride = f->in->stride,
              .frame_width = f->in->width,
              .y = rect->y,
              .height = rect->height,
              .below = sample_below (cpu, t),
          },
      .cut = leveled || t > 0.0,
      .leveled = leveled,
      .pedestal = imk_shcentroid_pedestal (params, t),
      .min_flux = imk_shcentroid_min_flux (params, rect->min_flux),
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

/* Cells that stay beside each other go through the chain together. Frames go
 * downwards and upwards in turn: where dark and flat are more than a cache
 * holds, it is what came last that it has when the next frame begins. */
static void
measure_chain_bands (void *data, uint32_t first, uint32_t end)
{
  const Frame *f = data;
  const Cpu *cpu = f->cpu;
  const Functions *functions = get_functions (cpu);
  bool together = cpu->params.window == IMK_SHCENTROID_WINDOW_CELL;
  uint32_t n_bands = cpu->plan.n_rects / cpu->band_cells;

  for (uint32_t i = first; i < end; i++) {
    uint32_t band = cpu->upwards ? n_bands - 1 - i : i;
    uint32_t from = band * cpu->band_cells, last = from + cpu->band_cells;

    while (from < last) {
      uint32_t to = together ? end_of_tile (cpu->rects, from, last) : from + 1;

      functions->measure_chain (f, from, to - from);
      from = to;
    }
  }
}

/* Cell by cell, each looked for its template. */
static void
measure_matches (void *data, uint32_t first, uint32_t end)
{
  const Frame *f = data;
  const Functions *functions = get_functions (f->cpu);
  MatchScratch *scratch = matching_take ((Matching *) &f->cpu->matching);

  for (uint32_t i = first; i < end; i++)
    functions->measure_match (f, i, scratch);
  matching_give_back (scratch);
}

static void
take_template (const Frame *f)
{
  MatchScratch *scratch = matching_take ((Matching *) &f->cpu->matching);

  get_functions (f->cpu)->take_template (f, scratch);
  matching_give_back (scratch);
}

/* When all slopes are known. */
static void
remove_tilt (const Frame *f)
{
  const Cpu *cpu = f->cpu;
  bool all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  uint32_t n = cpu->plan.n_rects;
  ImkShcentroidTiltSums lanes[IMK_SHCENTROID_TILT_LANES] = {{0}};

  for (uint32_t i = 0; i < n; i++)
    imk_shcentroid_add_slope (
        &lanes[i % IMK_SHCENTROID_TILT_LANES], &cpu->slopes[i]);
  for (uint32_t step = IMK_SHCENTROID_TILT_LANES / 2; step; step /= 2)
    for (uint32_t i = 0; i < step; i++)
      imk_shcentroid_add_tilt (&lanes[i], &lanes[i + step]);
  imk_shcentroid_find_tilt (&lanes[0]);
  for (uint32_t i = 0; i < n; i++) {
    double dx = cpu->slopes[i].x - lanes[0].x;
    double dy = cpu->slopes[i].y - lanes[0].y;

    if (cpu->slopes[i].tilt == IMK_SHCENTROID_TILT_APART)
      continue;
    store (f->out, all ? i : 0, all ? IMK_SHCENTROID_DX : i, dx);
    store (f->out, all ? i : 0, all ? IMK_SHCENTROID_DY : (uint64_t) n + i, dy);
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
free_weights (Cpu *cpu)
{
  free (cpu->column_weights);
  free (cpu->row_weights);
  free (cpu->columns_at);
  free (cpu->rows_at);
  cpu->column_weights = cpu->row_weights = NULL;
  cpu->columns_at = cpu->rows_at = NULL;
}

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  if (!cpu)
    return;
  free (cpu->rects);
  free (cpu->held);
  free (cpu->dark);
  free (cpu->flat);
  free (cpu->dark_strips);
  free (cpu->flat_strips);
  free (cpu->packed_strips);
  free (cpu->strips_before);
  free (cpu->lut);
  free (cpu->tracks);
  free (cpu->slopes);
  free (cpu->us);
  free_weights (cpu);
  matching_clear (&cpu->matching);
  free (cpu);
}

/* All rows of a grid have the columns of the first. A vector reaches beyond. */
static bool
number_columns (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  if (!plan->columns)
    return true;
  cpu->us = calloc (plan->width + IMK_SHCENTROID_LANES, sizeof (*cpu->us));
  for (uint32_t i = 0; cpu->us && i < plan->columns; i++)
    for (uint32_t k = 0; k < plan->rects[i].width; k++)
      cpu->us[plan->rects[i].x + k] = k;
  return cpu->us != NULL;
}

static bool
allocate (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  cpu->rects = calloc (plan->n_rects, sizeof (*cpu->rects));
  cpu->held = calloc (plan->n_rects, 2 * sizeof (*cpu->held));
  cpu->tracks = calloc (plan->n_rects, sizeof (*cpu->tracks));
  cpu->slopes = calloc (plan->n_rects, sizeof (*cpu->slopes));
  return cpu->rects && cpu->held && cpu->tracks && cpu->slopes &&
         copy_calibration (cpu, plan) && make_strips (cpu, plan) &&
         number_columns (cpu, plan) && matching_init (&cpu->matching, plan);
}

/* Where those of the cells begin; they fit 32 bits when the cells do, and it is
 * better without a table when they do not. Returns: whether there is one */
static bool
allocate_weights (Cpu *cpu)
{
  uint64_t n_columns = 0, n_rows = 0;
  uint32_t n = cpu->plan.n_rects;

  cpu->columns_at = malloc (n * sizeof (*cpu->columns_at));
  cpu->rows_at = malloc (n * sizeof (*cpu->rows_at));
  for (uint32_t i = 0; cpu->columns_at && cpu->rows_at && i < n; i++) {
    cpu->columns_at[i] = (uint32_t) n_columns;
    cpu->rows_at[i] = (uint32_t) n_rows;
    n_columns += cpu->rects[i].width;
    n_rows += cpu->rects[i].height;
  }
  if (n_columns > 0 && n_columns < UINT32_MAX && n_rows < UINT32_MAX) {
    cpu->column_weights =
        calloc (n_columns + IMK_SHCENTROID_LANES, sizeof (double));
    cpu->row_weights =
        calloc (n_rows + IMK_SHCENTROID_GROUP_ROWS, sizeof (double));
  }
  return cpu->column_weights && cpu->row_weights;
}

/* The weights about the references, which are the same in every frame. Without
 * memory for them they are computed when they are needed. */
static void
make_weights (Cpu *cpu)
{
  double sigma = cpu->params.sigma, power = cpu->params.power;
  double *column, *row;

  if (!cpu->column_weights && !allocate_weights (cpu)) {
    free_weights (cpu);
    return;
  }
  column = cpu->column_weights;
  row = cpu->row_weights;
  for (uint32_t i = 0; i < cpu->plan.n_rects; i++) {
    const ImkShcentroidRect *rect = &cpu->rects[i];
    double x = rect->x - rect->ref_x, y = rect->y - rect->ref_y;

    for (uint32_t k = 0; k < rect->width; k++)
      *column++ = imk_shcentroid_factor (
          imk_shcentroid_weight (x + (double) k, sigma), power);
    for (uint32_t k = 0; k < rect->height; k++)
      *row++ = imk_shcentroid_weight (y + (double) k, sigma);
  }
}

static void
take_params (Cpu *cpu, const ImkShcentroidParams *params)
{
  bool same = cpu->column_weights && cpu->params.sigma == params->sigma &&
              cpu->params.power == params->power;

  cpu->params = *params;
  if (params->weighting == IMK_SHCENTROID_WEIGHTING_GAUSSIAN &&
      params->window == IMK_SHCENTROID_WINDOW_CELL && !same)
    make_weights (cpu);
}

static ImkStatus
cpu_create (const ImkShcentroidPlan *plan, const ImkShcentroidParams *params,
    void **state, ImkError *error)
{
  Cpu *cpu = calloc (1, sizeof (*cpu));

  if (!cpu || !allocate (cpu, plan)) {
    cpu_destroy (cpu);
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for %u cells.", plan->n_rects);
  }
  memcpy (cpu->rects, plan->rects, plan->n_rects * sizeof (*cpu->rects));
  cpu->plan = *plan;
  cpu->plan.rects = cpu->rects;
  cpu->plan.pixels = NULL;
  cpu->plan.lut = cpu->lut;
  cpu->plan.templates = cpu->matching.templates;
  cpu->band_cells = plan->columns ? plan->columns : 1;
  cpu->narrow = sums_are_narrow (plan);
  cpu->fresh = cpu->lost = true;
  take_params (cpu, params);
  *state = cpu;
  return IMK_OK;
}

static ImkStatus
cpu_update (void *state, const ImkShcentroidParams *params, ImkError *error)
{
  Cpu *cpu = state;

  /* what was held or tracked before something else came in between is out of
   * date */
  if (cpu->params.invalid_policy != params->invalid_policy)
    cpu->fresh = true;
  if (imk_shcentroid_tracks (&cpu->params) != imk_shcentroid_tracks (params))
    cpu->lost = true;
  take_params (cpu, params);
  return IMK_OK;
}

static void
measure_frame (const Frame *frame)
{
  const Cpu *cpu = frame->cpu;
  bool plain = imk_shcentroid_is_plain (
      &cpu->params, cpu->plan.type, cpu->dark || cpu->lut);
  uint32_t n_bands = cpu->plan.n_rects / cpu->band_cells;
  uint64_t band_pixels = 0;

  for (uint32_t i = 0; i < cpu->band_cells; i++)
    band_pixels += (uint64_t) cpu->rects[i].width * cpu->rects[i].height;
  imk_parallel_for (cpu->plan.n_threads, n_bands,
      1 + (uint32_t) (WORTH_A_THREAD / band_pixels),
      plain ? measure_bands : measure_chain_bands, (void *) frame);
}

/* A cell is work enough for a thread to begin with. */
static void
match_frame (const Frame *frame)
{
  const ImkShcentroidPlan *plan = &frame->cpu->plan;

  if (frame->cpu->matching.from_frame)
    take_template (frame);
  imk_parallel_for (
      plan->n_threads, plan->n_rects, 1, measure_matches, (void *) frame);
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  Cpu *cpu = state;
  Frame frame = {.cpu = cpu, .in = in, .out = out};

  if (cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    match_frame (&frame);
  else
    measure_frame (&frame);
  if (cpu->params.remove_tilt)
    remove_tilt (&frame);
  cpu->fresh = cpu->lost = false;
  cpu->upwards = !cpu->upwards;
  return IMK_OK;
}

static ImkStatus
cpu_reset (void *state, void *stream, ImkError *error)
{
  Cpu *cpu = state;

  cpu->fresh = cpu->lost = true;
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
