/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain on the CPU before it is vector code; a part of shcentroid-cpu.c. */

/* Cells side by side, of one top and one height; or one of any width. */
typedef struct ChainTile {
  const Frame *f;
  uint32_t first, n; /* cells */
  ImkShcentroidWindow windows[CHAIN_TILE];
  ImkShcentroidRange ranges[CHAIN_TILE];
  ImkShcentroidLevel levels[CHAIN_TILE];
  double centre_x[CHAIN_TILE], centre_y[CHAIN_TILE]; /* of the weight */
  ImkShcentroidReals sums[CHAIN_TILE];
  ImkShcentroidPull pulls[CHAIN_TILE];
} ChainTile;

/* The sums of the chain; those up to N_CHAIN_XY_SUMS are all that a position
 * needs. */
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

/* What the loop over pixels has to do; a constant in each of its copies. */
typedef struct ChainWay {
  bool all;      /* IMK_SHCENTROID_FIELDS_ALL */
  bool flat;     /* there are dark and flat */
  bool cut;      /* there are levels, or bad pixels */
  bool weighted; /* there are weights */
  bool rare;     /* a power or a quad cell: slow, and all in one loop */
} ChainWay;

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

static void
chain_begin (ChainTile *t, const Frame *f, uint32_t first, uint32_t n)
{
  const Cpu *cpu = f->cpu;

  t->f = f;
  t->first = first;
  t->n = n;
  memset (t->pulls, 0, n * sizeof (*t->pulls));
  for (uint32_t i = 0; i < n; i++) {
    const ImkShcentroidRect *rect = &cpu->rects[first + i];
    ImkShcentroidTrack *track = &cpu->tracks[first + i];

    if (cpu->lost)
      *track = (ImkShcentroidTrack){rect->ref_x, rect->ref_y, 0};
    t->windows[i] = imk_shcentroid_window (
        rect, &cpu->params, track, cpu->plan.width, cpu->plan.height);
    t->centre_x[i] = rect->ref_x;
    t->centre_y[i] = rect->ref_y;
    if (cpu->params.weighting == IMK_SHCENTROID_WEIGHTING_TRACKING) {
      t->centre_x[i] = track->x;
      t->centre_y[i] = track->y;
    }
  }
}

static inline __attribute__ ((always_inline)) void
chain_end (const ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidNoise noise = imk_shcentroid_noise (&cpu->params);

  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t cell = t->first + i;
    ImkShcentroidRow row = {{0}};

    bool valid = imk_shcentroid_finish_real (&row, &t->sums[i], &t->pulls[i],
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
    ImkShcentroidCentre centre =
        imk_shcentroid_real_centre (&t->sums[i], &t->windows[i], params, 0.0);

    if (centre.valid) {
      t->centre_x[i] = t->windows[i].x + centre.x;
      t->centre_y[i] = t->windows[i].y + centre.y;
    }
  }
}
