/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain on the CPU before it is vector code; a part of shcentroid-cpu.c. */

/* The sums of the chain, as in ImkShcentroidReals; those up to N_CHAIN_XY_SUMS
 * are all that a position needs. */
enum {
  CHAIN_P,
  CHAIN_PU,
  CHAIN_PY,
  N_CHAIN_XY_SUMS,
  CHAIN_Q = N_CHAIN_XY_SUMS,
  CHAIN_QU,
  CHAIN_QY,
  CHAIN_QUU,
  CHAIN_QYY,
  CHAIN_RAW,
  N_CHAIN_SUMS,
};

/* Cells side by side, of one top and one height; or one of any width. */
typedef struct ChainTile {
  const Frame *f;
  uint32_t first, n; /* cells */
  ImkShcentroidWindow windows[CHAIN_TILE];
  ImkShcentroidRange ranges[CHAIN_TILE];
  ImkShcentroidLevel levels[CHAIN_TILE];
  double centre_x[CHAIN_TILE], centre_y[CHAIN_TILE]; /* of the weight */
  double sums[N_CHAIN_SUMS][CHAIN_TILE];
  float max[CHAIN_TILE], max_sample[CHAIN_TILE];
  ImkShcentroidPull pulls[CHAIN_TILE]; /* of all fields only */
} ChainTile;

/* What the loop over pixels has to do; a constant in each of its copies. */
typedef struct ChainWay {
  bool all;      /* IMK_SHCENTROID_FIELDS_ALL */
  bool flat;     /* there are dark and flat, */
  bool packed;   /* in one number: strips only */
  bool floats;   /* samples are float32: strips only */
  bool cut;      /* there are levels, or bad pixels */
  bool weighted; /* there are weights */
  bool rare;     /* a power or a quad cell: slow, and all in one loop */
} ChainWay;

/* SUM_STRIPS with what a ChainWay called way says of cuts and weights, each
 * combination a call of its own with constants. */
#define SUM_CUT_OR_NOT(...) \
  do { \
    if (way->cut) \
      SUM_STRIPS (__VA_ARGS__, .cut = true); \
    else \
      SUM_STRIPS (__VA_ARGS__, .cut = false); \
  } while (0)
#define SUM_WEIGHTED_OR_NOT(...) \
  do { \
    if (way->weighted) \
      SUM_CUT_OR_NOT (__VA_ARGS__, .weighted = true); \
    else \
      SUM_CUT_OR_NOT (__VA_ARGS__, .weighted = false); \
  } while (0)

/* The rows of a group. */
typedef struct ChainRows {
  uint32_t n;
  double first;    /* its row in the window */
  bool begins;     /* its band */
  bool same;       /* weights are those of all cells */
  bool calibrated; /* values are not the samples */
  bool quad;
  double power;
  ImkShcentroidNoise noise;
  double y[IMK_SHCENTROID_GROUP_ROWS]; /* of a quad cell */
  double weight[IMK_SHCENTROID_GROUP_ROWS];
} ChainRows;

static const double lane_numbers[IMK_SHCENTROID_LANES] = {0, 1, 2, 3, 4, 5, 6,
    7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27, 28, 29, 30, 31};

static inline ChainWay
chain_way (const Cpu *cpu)
{
  const ImkShcentroidParams *p = &cpu->params;

  return (ChainWay){
      .all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL,
      .flat = cpu->dark != NULL,
      .cut = p->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE ||
             p->brightest > 0 || cpu->bad,
      .weighted = p->weighting != IMK_SHCENTROID_WEIGHTING_NONE,
      .rare = p->power != 1.0 || p->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD,
  };
}

static inline ChainRows
chain_rows (const ImkShcentroidParams *params, const Cpu *cpu)
{
  return (ChainRows){
      .calibrated = cpu->dark || cpu->lut,
      .quad = params->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD,
      .power = params->power,
      .noise = imk_shcentroid_noise (params),
  };
}

static inline uint32_t
tile_width (const ChainTile *t)
{
  const ImkShcentroidWindow *last = &t->windows[t->n - 1];

  return last->x + last->width - t->windows[0].x;
}

/* Without all fields only what a position needs means something. */
static inline __attribute__ ((always_inline)) ImkShcentroidReals
chain_sums (const ChainTile *t, uint32_t i)
{
  return (ImkShcentroidReals){
      .p = t->sums[CHAIN_P][i],
      .pu = t->sums[CHAIN_PU][i],
      .py = t->sums[CHAIN_PY][i],
      .q = t->sums[CHAIN_Q][i],
      .qu = t->sums[CHAIN_QU][i],
      .qy = t->sums[CHAIN_QY][i],
      .quu = t->sums[CHAIN_QUU][i],
      .qyy = t->sums[CHAIN_QYY][i],
      .raw = t->sums[CHAIN_RAW][i],
      .max = t->max[i],
      .max_sample = t->max_sample[i],
  };
}

/* Where the cells are. All rows of a grid have the columns of the first: a
 * cache full of rects less to read. */
static void
chain_windows (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidRect *rect = &cpu->rects[t->first];
  const ImkShcentroidRect *columns =
      cpu->rects + t->first % (cpu->plan.columns ? cpu->plan.columns : 1);

  if (!cpu->plan.columns)
    columns = rect;
  for (uint32_t i = 0; i < t->n; i++) {
    t->windows[i].x = columns[i].x;
    t->windows[i].y = rect->y;
    t->windows[i].width = columns[i].width;
    t->windows[i].height = rect->height;
    t->windows[i].at_edge = false;
  }
}

/* The same, where they follow their spots. */
static void
chain_moving_windows (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;

  for (uint32_t i = 0; i < t->n; i++)
    t->windows[i] =
        imk_shcentroid_window (&cpu->rects[t->first + i], &cpu->params,
            &cpu->tracks[t->first + i], cpu->plan.width, cpu->plan.height);
}

static void
chain_centres (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  bool tracking = cpu->params.weighting == IMK_SHCENTROID_WEIGHTING_TRACKING;

  for (uint32_t i = 0; i < t->n; i++) {
    const ImkShcentroidRect *rect = &cpu->rects[t->first + i];
    const ImkShcentroidTrack *track = &cpu->tracks[t->first + i];

    t->centre_x[i] = tracking ? track->x : rect->ref_x;
    t->centre_y[i] = tracking ? track->y : rect->ref_y;
  }
}

static void
chain_begin (ChainTile *t, const Frame *f, uint32_t first, uint32_t n)
{
  const Cpu *cpu = f->cpu;

  t->f = f;
  t->first = first;
  t->n = n;
  for (uint32_t i = first; cpu->lost && i < first + n; i++)
    cpu->tracks[i] =
        (ImkShcentroidTrack){cpu->rects[i].ref_x, cpu->rects[i].ref_y, 0};
  if (cpu->params.window == IMK_SHCENTROID_WINDOW_TRACKING)
    chain_moving_windows (t);
  else
    chain_windows (t);
  if (cpu->params.weighting != IMK_SHCENTROID_WEIGHTING_NONE)
    chain_centres (t);
  if (cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL)
    memset (t->pulls, 0, n * sizeof (*t->pulls));
}

static inline __attribute__ ((always_inline)) void
chain_end (const ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidNoise noise = imk_shcentroid_noise (&cpu->params);

  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t cell = t->first + i;
    ImkShcentroidReals sums = chain_sums (t, i);
    ImkShcentroidRow row = {{0}};

    bool valid = imk_shcentroid_finish_real (&row, &sums, &t->pulls[i],
        &cpu->rects[cell], &t->windows[i], &cpu->params, &noise,
        cpu->plan.fields, cpu->fresh, cpu->held + 2 * (size_t) cell,
        &cpu->tracks[cell]);

    if (cpu->params.remove_tilt)
      cpu->slopes[cell] =
          imk_shcentroid_slope (&row, valid, cpu->params.invalid_policy);
    store_row (t->f, cell, &row);
  }
}

/* Of the columns of all cells of a tile. */
static inline const double *
cached_columns (const ChainTile *t)
{
  return t->f->cpu->column_weights + t->f->cpu->columns_at[t->first];
}

/* Weights of @n columns of cell @i, from its column @u on. */
static inline __attribute__ ((always_inline)) void
weight_columns (
    const ChainTile *t, uint32_t i, uint32_t u, uint32_t n, double *weights)
{
  double from = t->windows[i].x - t->centre_x[i];
  double sigma = t->f->cpu->params.sigma;

  for (uint32_t k = 0; k < n; k++)
    weights[k] = imk_shcentroid_weight (from + (double) (u + k), sigma);
}

/* The weights of the rows of a group, some beyond the cell. */
static inline __attribute__ ((always_inline)) void
weight_rows (const ChainTile *t, uint32_t i, uint32_t y, bool cached,
    double weights[IMK_SHCENTROID_GROUP_ROWS])
{
  const Cpu *cpu = t->f->cpu;
  double from = t->windows[i].y - t->centre_y[i];

  if (cached)
    memcpy (weights, cpu->row_weights + cpu->rows_at[t->first + i] + y,
        IMK_SHCENTROID_GROUP_ROWS * sizeof (*weights));
  else
    for (uint32_t k = 0; k < IMK_SHCENTROID_GROUP_ROWS; k++)
      weights[k] =
          imk_shcentroid_weight (from + (double) (y + k), cpu->params.sigma);
}

/* The weight goes to what was found. */
static inline __attribute__ ((always_inline)) void
move_weights (ChainTile *t)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;

  for (uint32_t i = 0; i < t->n; i++) {
    ImkShcentroidReals sums = chain_sums (t, i);
    ImkShcentroidCentre centre =
        imk_shcentroid_real_centre (&sums, &t->windows[i], params, 0.0);

    if (centre.valid) {
      t->centre_x[i] = t->windows[i].x + centre.x;
      t->centre_y[i] = t->windows[i].y + centre.y;
    }
  }
}
