/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/octbscan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-chain.h"
#include "octbscan/octbscan-config.h"
#include "octbscan/octbscan-grid.h"
#include "octbscan/octbscan-lateral.h"

enum {
  /* Limits up to which auto selects the operator. */
  MOST_DEPTHS_ON_CPU = 96,
  MOST_WEIGHTS_ON_CUDA = 5000000,
};

struct ImkOctbscan {
  const ImkOctbscanBackend *backend;
  bool on_device;
  void *state;
  ImkOctbscanConfig config; /* without its pointers */
  uint32_t n_resets;
  bool has_bscan;          /* since the last reset */
  double depth_step;       /* um; 0 when it is not known */
  double wavelengths[2];   /* nm; 0 when they are not known */
  ImkOctbscanChain *chain; /* on a device, for changes of the dispersion */
  ImkOctbscanLateral *lateral;
  bool is_live; /* and its current dispersion: */
  double live[2 * IMK_OCTBSCAN_MAX_CAMERAS];
};

/* ------------------------------------------------------------------------
 * The plan. */

static ImkStatus
no_memory (ImkError *error)
{
  return IMK_NO_MEMORY (error, "for the plan.");
}

static ImkStatus
copy_pattern (const ImkOctbscanPlan *plan, float **pattern, ImkError *error)
{
  size_t n = 2 * (size_t) plan->config->n_cameras * plan->n_depths;

  *pattern = malloc (n * sizeof (float));
  if (!*pattern)
    return no_memory (error);
  for (size_t i = 0; i < n; i++)
    (*pattern)[i] = (float) plan->config->pattern[i];
  return IMK_OK;
}

static ImkStatus
create_state (ImkOctbscan *s, const ImkOctbscanConfig *config, ImkError *error)
{
  ImkOctbscanPlan plan = {config, imk_octbscan_n_depths (config)};
  float *operators = NULL, *pattern = NULL;
  ImkOctbscanChain *chain = NULL;
  ImkStatus status = imk_octbscan_lateral_new (config, &s->lateral, error);

  if (status == IMK_OK &&
      config->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_FILE)
    status = copy_pattern (&plan, &pattern, error);
  if (status == IMK_OK && config->strategy == IMK_OCTBSCAN_STRATEGY_OPERATOR)
    status = imk_octbscan_make_operators (&plan, &operators, error);
  else if (status == IMK_OK && s->on_device)
    status = imk_octbscan_chain_new (config, &chain, error);
  plan.operators = operators;
  plan.pattern = pattern;
  plan.lateral = s->lateral;
  plan.chain = chain;
  if (status == IMK_OK)
    status = s->backend->create (&plan, &s->state, error);
  if (status == IMK_OK && chain && chain->tuners)
    s->chain = chain;
  else
    imk_octbscan_chain_free (chain);
  free (operators);
  free (pattern);
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

static double
depth_step_of (const ImkOctbscanConfig *c)
{
  double step = imk_octbscan_grid_depth_step (c, 0);

  for (uint32_t i = 1; i < c->n_cameras; i++)
    if (!(fabs (imk_octbscan_grid_depth_step (c, i) - step) <= 1e-3 * step))
      return 0;
  return step;
}

double
imk_octbscan_depth_step (const ImkOctbscan *self)
{
  return self->depth_step;
}

static void
find_wavelengths (const ImkOctbscanConfig *c, double nm[2])
{
  double others[2];

  for (uint32_t i = 0; i < c->n_cameras; i++) {
    bool known = imk_octbscan_grid_wavelengths (c, i, i > 0 ? others : nm);

    if (!known || (i > 0 && (others[0] < others[1]) != (nm[0] < nm[1]))) {
      nm[0] = nm[1] = 0;
      return;
    }
  }
}

bool
imk_octbscan_wavelengths (const ImkOctbscan *self, double nm[2])
{
  if (self->wavelengths[0] == 0)
    return false;
  memcpy (nm, self->wavelengths, sizeof (self->wavelengths));
  return true;
}

/* docs/explanation/measurements.md: what a matrix costs is N times the depths.
 * On the CPU it is worth it for a few depths, on tensor cores until there are
 * millions. */
static ImkOctbscanStrategy
choose_strategy (ImkBackend backend, const ImkOctbscanConfig *c)
{
  uint64_t n_depths = imk_octbscan_n_depths (c);
  bool small = backend == IMK_BACKEND_CPU
                   ? n_depths <= MOST_DEPTHS_ON_CPU
                   : n_depths * c->width <= MOST_WEIGHTS_ON_CUDA;

  if (c->strategy != IMK_OCTBSCAN_STRATEGY_AUTO)
    return c->strategy;
  if (c->live_dispersion)
    return IMK_OCTBSCAN_STRATEGY_FFT;
  return small ? IMK_OCTBSCAN_STRATEGY_OPERATOR : IMK_OCTBSCAN_STRATEGY_FFT;
}

ImkStatus
imk_octbscan_new (ImkBackend backend, const ImkOctbscanConfig *given,
    ImkOctbscan **self, ImkError *error)
{
  ImkOctbscanConfig config;
  const void *table = NULL;
  ImkOctbscan *s;
  ImkStatus status = IMK_OK;

  IMK_TRY (imk_octbscan_take_config (given, &config, error));
  IMK_TRY (imk_backend_table (
      backend, &imk_octbscan_cpu, "octbscan", &table, error));
  s = malloc (sizeof (*s));
  if (!s)
    return no_memory (error);
  config.strategy = choose_strategy (backend, &config);
  *s = (ImkOctbscan){
      .backend = table,
      .on_device = backend == IMK_BACKEND_CUDA,
      .config = imk_octbscan_without_pointers (&config),
      .depth_step = depth_step_of (&config),
  };
  find_wavelengths (&config, s->wavelengths);
  if (config.strategy == IMK_OCTBSCAN_STRATEGY_OPERATOR)
    status = imk_octbscan_check_operators (&config, error);
  if (status == IMK_OK)
    status = create_state (s, &config, error);
  s->is_live =
      config.live_dispersion && config.strategy == IMK_OCTBSCAN_STRATEGY_FFT;
  if (s->is_live)
    memcpy (s->live, config.live_dispersion,
        2 * config.n_cameras * sizeof (*s->live));
  if (status == IMK_OK) {
    *self = s;
    return status;
  }
  imk_octbscan_lateral_free (s->lateral);
  free (s);
  return status;
}

static ImkStatus
tune (ImkOctbscan *self, const double *live, ImkError *error)
{
  size_t size = 2 * self->config.n_cameras * sizeof (*live);

  if (!self->is_live || !live || memcmp (live, self->live, size) == 0)
    return IMK_OK;
  if (self->chain)
    imk_octbscan_chain_tune (self->chain, live);
  IMK_TRY (self->backend->tune (self->state, self->chain, live, error));
  /* after a failure the next call must set them again */
  memcpy (self->live, live, size);
  return IMK_OK;
}

ImkStatus
imk_octbscan_update (
    ImkOctbscan *self, const ImkOctbscanConfig *given, ImkError *error)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      IMK_CONFIG_READ (octbscan, given, &own, error);

  IMK_TRY (
      config ? imk_octbscan_check_range (config, error) : IMK_ERROR_CONFIG);
  IMK_TRY (imk_octbscan_check_live (
      config->live_dispersion, self->config.n_cameras, error));
  IMK_TRY (tune (self, config->live_dispersion, error));
  self->has_bscan &= self->config.history == config->history + self->n_resets;
  imk_octbscan_take_live (&self->config, config);
  self->config.history += self->n_resets;
  return self->backend->update (self->state, &self->config, error);
}

ImkStatus
imk_octbscan_reset (ImkOctbscan *self, ImkError *error)
{
  self->n_resets++;
  self->config.history++;
  self->has_bscan = false;
  return self->backend->update (self->state, &self->config, error);
}

ImkStatus
imk_octbscan_get_pattern (ImkOctbscan *self, float *pattern, ImkError *error)
{
  if (self->config.fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_NONE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no fixed pattern, as fixed-pattern is none.");
  return self->backend->get_pattern (self->state, pattern, error);
}

ImkStatus
imk_octbscan_get_background (
    ImkOctbscan *self, double *background, ImkError *error)
{
  ImkOctbscanBackground mode = self->config.background_mode;

  if (mode == IMK_OCTBSCAN_BACKGROUND_NONE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no background, as background is none.");
  if (mode == IMK_OCTBSCAN_BACKGROUND_ROLLING)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Each spectrum has its own background, as background is rolling. Take "
        "running or first.");
  if (mode == IMK_OCTBSCAN_BACKGROUND_FILE || self->has_bscan)
    return self->backend->get_background (self->state, background, error);
  memset (background, 0,
      (size_t) self->config.n_cameras * self->config.width *
          sizeof (*background));
  return IMK_OK;
}

/* An image of levels may be of three types. */
static ImkType
level_type (const ImkImage *image)
{
  return image && (image->type == IMK_TYPE_U16 || image->type == IMK_TYPE_F32)
             ? image->type
             : IMK_TYPE_U8;
}

static ImkStatus
check_job (const ImkOctbscan *s, const ImkOctbscanJob *job, ImkError *error)
{
  const ImkOctbscanConfig *c = &s->config;
  uint32_t width, height, n_ascans = imk_octbscan_n_ascans (c);
  ImkStatus status = IMK_OK;

  imk_octbscan_size (c, &width, &height);
  const struct {
    const ImkImage *image;
    const char *role;
    ImkType type;
    uint32_t width, height;
  } outputs[] = {
      {job->db, "dB output", level_type (job->db), width, height},
      {job->linear, "linear output", level_type (job->linear), width, height},
      {job->complex, "complex output", IMK_TYPE_CF32, imk_octbscan_n_depths (c),
          c->height},
      {job->enface, "en-face output", IMK_TYPE_F32, n_ascans, 1},
      {job->track, "track", IMK_TYPE_F32, 4, 1},
  };

  if (job->backward && !c->bidirectional)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A B-scan has the flag backward, but bidirectional is false.");
  if (job->in || !c->averages_bscans)
    status = imk_image_check (
        job->in, "input", c->type, 1, c->width, c->height, s->on_device, error);
  for (size_t i = 0; i < sizeof (outputs) / sizeof (outputs[0]); i++)
    if (status == IMK_OK && outputs[i].image)
      status =
          imk_image_check (outputs[i].image, outputs[i].role, outputs[i].type,
              1, outputs[i].width, outputs[i].height, s->on_device, error);
  return status;
}

ImkStatus
imk_octbscan_process (ImkOctbscan *self, const ImkOctbscanJob *jobs,
    uint32_t n_jobs, void *stream, ImkError *error)
{
  IMK_TRY (imk_limits_check_one (
      "The number of B-scans", n_jobs, 1, self->config.max_jobs, error));
  for (uint32_t i = 0; i < n_jobs; i++)
    IMK_TRY (check_job (self, &jobs[i], error));
  for (uint32_t i = 0; i < n_jobs; i++)
    self->has_bscan |= jobs[i].in != NULL;
  return self->backend->process (self->state, jobs, n_jobs, stream, error);
}

ImkOctbscanStrategy
imk_octbscan_strategy (const ImkOctbscan *self)
{
  return self->config.strategy;
}

void
imk_octbscan_free (ImkOctbscan *self)
{
  if (!self)
    return;
  self->backend->destroy (self->state);
  imk_octbscan_chain_free (self->chain);
  imk_octbscan_lateral_free (self->lateral);
  free (self);
}
