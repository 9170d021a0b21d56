/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Figures of docs/explanation/benchmarks.md, "What the options of shcentroid
 * cost", "Correlation of shcentroid", and of the paper's grid: one thread of a
 * Xeon with AVX-512, and an H200. */
#include "gstshcentroidcost.h"

/* Nanoseconds a sample and a cell. */
typedef struct {
  gdouble sample, cell;
} Cost;

/* What correlation does in a cell. */
typedef struct {
  gdouble shifts, products;
  gdouble pixels; /* of the template */
} Search;

/* As imk_shcentroid_is_plain () of the kernel, which knows the checked
 * parameters. */
static gboolean
takes_integers (const ImkShcentroidConfig *c, gboolean calibrated)
{
  return !calibrated && !c->remove_tilt && c->brightest == 0 && c->power == 1 &&
         c->weighting == IMK_SHCENTROID_WEIGHTING_NONE &&
         c->window == IMK_SHCENTROID_WINDOW_CELL &&
         c->estimator == IMK_SHCENTROID_ESTIMATOR_COG;
}

static gboolean
is_leveled (const ImkShcentroidConfig *c)
{
  return c->threshold_mode == IMK_SHCENTROID_THRESHOLD_RELATIVE ||
         c->threshold_mode == IMK_SHCENTROID_THRESHOLD_RANGE;
}

/* Of a cell, on the average, less the margin. */
static void
cell_size (const ImkShcentroidConfig *c, gdouble *width, gdouble *height)
{
  *width = *height = 0;
  for (guint i = 0; i < c->n_cells; i++) {
    *width += c->cells[i].width / c->n_cells;
    *height += c->cells[i].height / c->n_cells;
  }
  if (c->n_cells == 0) {
    *width = c->pitch_x;
    *height = c->pitch_y;
  }
  *width = MAX (*width - 2.0 * c->margin, 0);
  *height = MAX (*height - 2.0 * c->margin, 0);
}

/* Returns: pixels in both a cell and a template in its middle, of one axis,
 * over all shifts */
static gdouble
overlap (gdouble cell, gdouble template, guint range)
{
  gdouble sum = 0;

  for (gint s = -(gint) range; s <= (gint) range; s++)
    sum += CLAMP ((cell + template) / 2 - ABS (s), 0, template);
  return sum;
}

static Search
search_of (const ImkShcentroidConfig *c)
{
  gdouble side = 2.0 * c->search_range + 1, width, height, x, y;

  cell_size (c, &width, &height);
  if (c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME) {
    x = MAX (width - 2.0 * c->template_margin, 0);
    y = MAX (height - 2.0 * c->template_margin, 0);
  } else {
    x = c->template_width;
    y = c->template_height;
  }
  return (Search){
      .shifts = side * side,
      .products = overlap (width, x, c->search_range) *
                  overlap (height, y, c->search_range),
      .pixels = x * y,
  };
}

static void
add_correlation (const ImkShcentroidConfig *c, Cost *cost)
{
  Search search = search_of (c);

  cost->sample += 3; /* the totals */
  cost->cell += 12.5 * search.shifts + 0.053 * search.products;
  if (c->fields == IMK_SHCENTROID_FIELDS_ALL)
    cost->cell += 3.7 * search.pixels;
}

static Cost
integer_cost (const ImkShcentroidConfig *c)
{
  gboolean all = c->fields == IMK_SHCENTROID_FIELDS_ALL;
  Cost cost = {all ? 0.15 : 0.046, all ? 25 : 4.2};

  if (c->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE)
    cost.sample += all ? 0.15 : 0.05;
  if (is_leveled (c)) {
    cost.sample += 0.03;
    cost.cell += 10;
  }
  return cost;
}

static Cost
chain_cost (const ImkShcentroidConfig *c, gboolean calibrated)
{
  gboolean all = c->fields == IMK_SHCENTROID_FIELDS_ALL;
  gboolean weighted = c->weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  Cost cost = {all ? 0.45 : 0.17, all ? 25 : 6.5};

  if (calibrated)
    cost.sample += all ? 0.25 : 0.13;
  if (c->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE)
    cost.sample += 0.1;
  if (is_leveled (c))
    cost.sample += calibrated ? 0.45 : 0.2;
  if (c->brightest > 0) /* a search by halves */
    cost.sample += 4.5;
  if (c->power != 1 && c->power != 2) /* exp and log */
    cost.sample += 28;
  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD)
    cost.sample += all ? 0.5 : 0.4;
  if (c->window == IMK_SHCENTROID_WINDOW_TRACKING)
    cost.sample += all ? 1.5 : 0.7;
  if (weighted && c->iterations > 1) {
    /* weights are no longer alike, variances need two passes more */
    guint passes = c->iterations + (all ? 2 : 0);

    cost.sample = (cost.sample + (all ? 1.3 : 0.6)) * passes;
    cost.cell *= passes;
  }
  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    add_correlation (c, &cost);
  return cost;
}

gdouble
gst_sh_centroid_cpu_us (const ImkShcentroidConfig *config, gdouble n_samples,
    gdouble n_cells, gboolean calibrated)
{
  Cost cost = takes_integers (config, calibrated)
                  ? integer_cost (config)
                  : chain_cost (config, calibrated);

  return (n_samples * cost.sample + n_cells * cost.cell) * 1e-3;
}

/* 1225 cells were measured: fewer are taken to need as long, more of them
 * longer in proportion. */
static gdouble
correlation_cuda_us (const ImkShcentroidConfig *c, gdouble n_cells)
{
  Search search = search_of (c);
  gdouble us = 43 * MAX (1, n_cells / 1225);

  us += n_cells * search.products * 0.72e-6;
  if (c->fields == IMK_SHCENTROID_FIELDS_ALL)
    us += n_cells * search.pixels * 0.114e-3;
  return us;
}

/* A launch and the bus; options are hidden behind these, but for searches. */
gdouble
gst_sh_centroid_cuda_us (const ImkShcentroidConfig *config, gdouble n_samples,
    gdouble n_cells, gdouble size)
{
  gdouble us = 12 + size / 45e3;

  if (config->brightest > 0)
    us += 30 + n_samples * 0.05e-3;
  if (config->weighting != IMK_SHCENTROID_WEIGHTING_NONE)
    us += (config->iterations - 1) * 4.0;
  if (config->estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    us += correlation_cuda_us (config, n_cells);
  return us;
}
