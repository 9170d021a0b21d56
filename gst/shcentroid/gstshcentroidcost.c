/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Figures of docs/benchmarks.md, "What the options of shcentroid cost", and of
 * the paper's grid: one thread of a Xeon with AVX-512, and an H200. */
#include "gstshcentroidcost.h"

/* Nanoseconds a sample and a cell. */
typedef struct {
  gdouble sample, cell;
} Cost;

static gboolean
takes_integers (const ImkShcentroidConfig *c, gboolean calibrated)
{
  return !calibrated && c->brightest == 0 && c->power == 1 &&
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

static Cost
integer_cost (const ImkShcentroidConfig *c)
{
  gboolean all = c->fields == IMK_SHCENTROID_FIELDS_ALL;
  Cost cost = {all ? 0.15 : 0.046, all ? 25 : 4.2};

  if (c->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE)
    cost.sample += all ? 0.15 : 0.05;
  if (is_leveled (c)) {
    cost.sample += 0.03;
    cost.cell += 12;
  }
  return cost;
}

static Cost
chain_cost (const ImkShcentroidConfig *c, gboolean calibrated)
{
  gboolean all = c->fields == IMK_SHCENTROID_FIELDS_ALL;
  gboolean weighted = c->weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  Cost cost = {all ? 0.45 : 0.22, all ? 45 : 12};

  if (calibrated)
    cost.sample += all ? 0.5 : 0.2;
  if (c->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE)
    cost.sample += 0.1;
  if (is_leveled (c))
    cost.sample += calibrated ? 0.45 : 0.2;
  if (c->brightest > 0) /* a search by halves */
    cost.sample += 10;
  if (c->power != 1 && c->power != 2) /* exp and log */
    cost.sample += 10;
  if (weighted && c->iterations > 1) {
    cost.sample *= c->iterations;
    cost.cell *= c->iterations;
  }
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

/* A launch and the bus; options are hidden behind these, but for the search. */
gdouble
gst_sh_centroid_cuda_us (
    const ImkShcentroidConfig *config, gdouble n_samples, gdouble size)
{
  gdouble us = 12 + size / 45e3;

  if (config->brightest > 0)
    us += 30 + n_samples * 0.05e-3;
  if (config->weighting != IMK_SHCENTROID_WEIGHTING_NONE)
    us += (config->iterations - 1) * 4.0;
  return us;
}
