/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/octbscan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-chain.h"
#include "octbscan/octbscan-check.h"
#include "octbscan/cpu/fft.h"
#include "octbscan/octbscan-grid.h"
#include "octbscan/cpu/picture.h"
#include "octbscan/octbscan-lateral.h"

enum {
  N_LANES = IMK_OCTBSCAN_N_LANES,
  /* Limits up to which auto selects the operator. */
  MOST_DEPTHS_ON_CPU = 96,
  MOST_WEIGHTS_ON_CUDA = 5000000,
};

struct ImkOctbscan {
  const ImkOctbscanBackend *backend;
  bool on_device;
  void *state;
  ImkOctbscanConfig config; /* without its pointers */
  ImkOctbscanParams params;
  uint32_t n_resets;
  bool has_bscan;          /* since the last reset */
  double depth_step;       /* um; 0 when it is not known */
  double wavelengths[2];   /* nm; 0 when they are not known */
  ImkOctbscanChain *chain; /* on a device, for changes of the dispersion */
  ImkOctbscanLateral *lateral;
  bool is_live; /* and its current dispersion: */
  double live[2 * IMK_OCTBSCAN_MAX_CAMERAS];
};

void
imk_octbscan_config_init_sized (ImkOctbscanConfig *config, size_t size)
{
  static const ImkOctbscanCamera linear = {.map = IMK_OCTBSCAN_MAP_NONE};

  const ImkOctbscanConfig defaults = {
      .size = size,
      .width = 2,
      .height = 1,
      .type = IMK_TYPE_U16,
      .n_cameras = 1,
      .cameras = &linear,
      .upsample = 4096,
      .scale = 1,
      .taper_cut = 32,
      .taper_below = 832,
      .background_bscans = 16,
      .background_reach = 32,
      .pattern_segments = 8,
      .average_ascans = 1,
      .tracking_bscans = 16,
      .tracking_reach = 32,
      .max_jobs = 1,
      .range_min = 0.0,
      .range_max = 60.0,
      .linear_min = 0.0,
      .linear_max = 1e6,
      .percent_min = 1.0,
      .percent_max = 99.9,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

static uint64_t
all_depths (const ImkOctbscanConfig *c)
{
  return (uint64_t) c->width * c->scale / 2;
}

uint32_t
imk_octbscan_n_depths (const ImkOctbscanConfig *given)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      imk_octbscan_read_config (given, &own, NULL);
  uint64_t cut, all;

  if (!config)
    return 0;
  cut = (uint64_t) config->crop_top + config->crop_bottom;
  all = all_depths (config);
  return all > cut ? (uint32_t) (all - cut) : 0;
}

uint32_t
imk_octbscan_n_ascans (const ImkOctbscanConfig *given)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      imk_octbscan_read_config (given, &own, NULL);

  return config && config->average_ascans
             ? imk_div_up (config->height, config->average_ascans)
             : 0;
}

bool
imk_octbscan_has_history (const ImkOctbscanConfig *given)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      imk_octbscan_read_config (given, &own, NULL);

  if (!config)
    return false;
  return config->background_mode == IMK_OCTBSCAN_BACKGROUND_RUNNING ||
         config->background_mode == IMK_OCTBSCAN_BACKGROUND_FIRST ||
         config->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_ONCE ||
         config->tracking != IMK_OCTBSCAN_TRACKING_NONE ||
         config->averages_bscans;
}

void
imk_octbscan_size (
    const ImkOctbscanConfig *given, uint32_t *width, uint32_t *height)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      imk_octbscan_read_config (given, &own, NULL);
  bool rows = config && config->orientation == IMK_OCTBSCAN_ORIENTATION_ROWS;
  uint32_t n_depths = imk_octbscan_n_depths (given);

  *width = rows ? n_depths : imk_octbscan_n_ascans (given);
  *height = rows ? imk_octbscan_n_ascans (given) : n_depths;
}

/* ------------------------------------------------------------------------
 * The plan. */

static ImkOctbscanParams
params_of (const ImkOctbscanConfig *c)
{
  return (ImkOctbscanParams){
      .history = c->history,
      .range = c->range,
      .fixed = {(float) c->range_min, (float) c->range_max,
          (float) c->linear_min, (float) c->linear_max},
      .auto_bscans = c->auto_bscans,
      .percent_min = c->percent_min,
      .percent_max = c->percent_max,
      .tracking_lock = c->tracking_lock,
  };
}

static ImkStatus
no_memory (ImkError *error)
{
  return imk_error_set (
      error, IMK_ERROR_MEMORY, "There is no memory for the plan.");
}

/* What column @n + l of the operator of @camera is, for lane l: Z of a spectrum
 * that is 1 there. */
static void
store_columns (const ImkOctbscanPlan *plan, uint32_t camera, uint32_t first,
    uint32_t n, const float *z, float *operators)
{
  size_t width = plan->config->width, depths = plan->n_depths;
  float *to = operators + 2 * depths * width * camera + first;

  for (size_t q = 0; q < depths; q++)
    for (uint32_t l = 0; l < n; l++) {
      to[2 * q * width + l] = z[2 * (l * depths + q)];
      to[(2 * q + 1) * width + l] = z[2 * (l * depths + q) + 1];
    }
}

static ImkStatus
run_columns (const ImkOctbscanPlan *plan, ImkOctbscanFft *fft, float *samples,
    float *z, float *scratch, float *operators, ImkError *error)
{
  uint32_t width = plan->config->width;
  ImkStatus status = IMK_OK;

  for (uint32_t c = 0; c < plan->config->n_cameras; c++)
    for (uint32_t first = 0; first < width && status == IMK_OK;
         first += N_LANES) {
      ImkOctbscanBlock block = {.camera = c, .n = width - first};

      if (block.n > N_LANES)
        block.n = N_LANES;
      for (uint32_t l = 0; l < block.n; l++) {
        samples[(size_t) l * width + first + l] = 1;
        block.samples[l] = samples + (size_t) l * width;
        block.complex[l] = z + 2 * (size_t) l * plan->n_depths;
      }
      status = imk_octbscan_fft_run (fft, &block, scratch, error);
      for (uint32_t l = 0; l < block.n; l++)
        samples[(size_t) l * width + first + l] = 0;
      store_columns (plan, c, first, block.n, z, operators);
    }
  return status;
}

static ImkStatus
make_operators (const ImkOctbscanPlan *plan, float **operators, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  size_t n = 2 * (size_t) c->n_cameras * c->width * plan->n_depths;
  float *samples = NULL, *z = NULL, *scratch = NULL;
  ImkOctbscanFft *fft = NULL;
  ImkStatus status = imk_octbscan_fft_new (c, &fft, error);

  if (status != IMK_OK)
    return status;
  *operators = malloc (n * sizeof (float));
  samples = imk_octbscan_alloc (N_LANES * c->width * sizeof (float));
  z = imk_octbscan_alloc (
      2 * N_LANES * (size_t) plan->n_depths * sizeof (float));
  scratch = imk_octbscan_alloc (imk_octbscan_fft_scratch_size (fft));
  status = *operators && samples && z && scratch
               ? run_columns (plan, fft, samples, z, scratch, *operators, error)
               : no_memory (error);
  free (samples);
  free (z);
  free (scratch);
  imk_octbscan_fft_free (fft);
  return status;
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
  ImkOctbscanConfig chosen = *config;
  ImkOctbscanPlan plan = {&chosen, imk_octbscan_n_depths (config)};
  float *operators = NULL, *pattern = NULL;
  ImkOctbscanChain *chain = NULL;
  ImkStatus status = imk_octbscan_lateral_new (config, &s->lateral, error);

  chosen.strategy = s->config.strategy;
  if (status == IMK_OK &&
      chosen.fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_FILE)
    status = copy_pattern (&plan, &pattern, error);
  if (status == IMK_OK && chosen.strategy == IMK_OCTBSCAN_STRATEGY_OPERATOR)
    status = make_operators (&plan, &operators, error);
  else if (status == IMK_OK && s->on_device)
    status = imk_octbscan_chain_new (&chosen, &chain, error);
  plan.operators = operators;
  plan.pattern = pattern;
  plan.lateral = s->lateral;
  plan.chain = chain;
  if (chosen.background_mode == IMK_OCTBSCAN_BACKGROUND_FILE)
    plan.background = chosen.background;
  if (status == IMK_OK)
    status = s->backend->create (&plan, &s->params, &s->state, error);
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
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      imk_octbscan_read_config (given, &own, error);
  const void *table = NULL;
  ImkOctbscan *s;
  ImkStatus status =
      config ? imk_octbscan_check_config (config, error) : IMK_ERROR_CONFIG;

  if (status == IMK_OK)
    status = imk_backend_table (
        backend, &imk_octbscan_cpu, "octbscan", &table, error);
  if (status != IMK_OK)
    return status;
  s = malloc (sizeof (*s));
  if (!s)
    return no_memory (error);
  *s = (ImkOctbscan){
      .backend = table,
      .on_device = backend == IMK_BACKEND_CUDA,
      .config = imk_octbscan_without_pointers (config),
      .params = params_of (config),
      .depth_step = depth_step_of (config),
  };
  find_wavelengths (config, s->wavelengths);
  s->config.strategy = choose_strategy (backend, config);
  if (s->config.strategy == IMK_OCTBSCAN_STRATEGY_OPERATOR)
    status = imk_octbscan_check_operators (config, error);
  if (status == IMK_OK)
    status = create_state (s, config, error);
  s->is_live = config->live_dispersion &&
               s->config.strategy == IMK_OCTBSCAN_STRATEGY_FFT;
  if (s->is_live)
    memcpy (s->live, config->live_dispersion,
        2 * config->n_cameras * sizeof (*s->live));
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
  ImkStatus status;

  if (!self->is_live || !live || memcmp (live, self->live, size) == 0)
    return IMK_OK;
  if (self->chain)
    imk_octbscan_chain_tune (self->chain, live);
  status = self->backend->tune (self->state, self->chain, live, error);
  if (status == IMK_OK) /* after a failure the next call must set them again */
    memcpy (self->live, live, size);
  return status;
}

ImkStatus
imk_octbscan_update (
    ImkOctbscan *self, const ImkOctbscanConfig *given, ImkError *error)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      imk_octbscan_read_config (given, &own, error);
  ImkStatus status =
      config ? imk_octbscan_check_range (config, error) : IMK_ERROR_CONFIG;

  if (status == IMK_OK)
    status = imk_octbscan_check_live (
        config->live_dispersion, self->config.n_cameras, error);
  if (status == IMK_OK)
    status = tune (self, config->live_dispersion, error);
  if (status != IMK_OK)
    return status;
  self->has_bscan &= self->params.history == config->history + self->n_resets;
  self->params = params_of (config);
  self->params.history += self->n_resets;
  return self->backend->update (self->state, &self->params, error);
}

ImkStatus
imk_octbscan_reset (ImkOctbscan *self, ImkError *error)
{
  self->n_resets++;
  self->params.history++;
  self->has_bscan = false;
  return self->backend->update (self->state, &self->params, error);
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

static ImkStatus
check_image (const ImkOctbscan *s, const ImkImage *image, const char *role,
    ImkError *error)
{
  uint32_t width, height;
  ImkType type;

  if (!image)
    return IMK_OK;
  imk_octbscan_size (&s->config, &width, &height);
  type = image->type == IMK_TYPE_U16 || image->type == IMK_TYPE_F32
             ? image->type
             : IMK_TYPE_U8;
  return imk_image_check (
      image, role, type, 1, width, height, s->on_device, error);
}

/* A row of numbers. */
static ImkStatus
check_row (const ImkOctbscan *s, const ImkImage *image, const char *role,
    uint32_t width, ImkError *error)
{
  return image ? imk_image_check (image, role, IMK_TYPE_F32, 1, width, 1,
                     s->on_device, error)
               : IMK_OK;
}

static ImkStatus
check_job (const ImkOctbscan *s, const ImkOctbscanJob *job, ImkError *error)
{
  const ImkOctbscanConfig *c = &s->config;
  ImkStatus status = IMK_OK;

  if (job->backward && !c->bidirectional)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A B-scan has the flag backward, but bidirectional is false.");
  if (job->in || !c->averages_bscans)
    status = imk_image_check (
        job->in, "input", c->type, 1, c->width, c->height, s->on_device, error);
  if (status == IMK_OK)
    status = check_image (s, job->db, "dB output", error);
  if (status == IMK_OK)
    status = check_image (s, job->linear, "linear output", error);
  if (status == IMK_OK && job->complex)
    status = imk_image_check (job->complex, "complex output", IMK_TYPE_CF32, 1,
        imk_octbscan_n_depths (c), c->height, s->on_device, error);
  if (status == IMK_OK)
    status = check_row (
        s, job->enface, "en-face output", imk_octbscan_n_ascans (c), error);
  return status != IMK_OK ? status
                          : check_row (s, job->track, "track", 4, error);
}

ImkStatus
imk_octbscan_process (ImkOctbscan *self, const ImkOctbscanJob *jobs,
    uint32_t n_jobs, void *stream, ImkError *error)
{
  ImkStatus status = imk_octbscan_check_between (
      "The number of B-scans", n_jobs, 1, self->config.max_jobs, error);

  for (uint32_t i = 0; i < n_jobs && status == IMK_OK; i++)
    status = check_job (self, &jobs[i], error);
  if (status != IMK_OK)
    return status;
  for (uint32_t i = 0; i < n_jobs; i++)
    self->has_bscan |= jobs[i].in != NULL;
  return self->backend->process (self->state, jobs, n_jobs, stream, error);
}

/* Pixels without an A-scan are 0; they say nothing about the others.
 * @lit: room for @n */
static void
find_lit_range (const float *intensity, size_t n, float *lit,
    const ImkOctbscanParams *params, uint32_t *counts, float ends[4])
{
  ImkOctbscanPicture picture = {.intensity = lit, .n_ascans = 1};

  for (size_t i = 0; i < n; i++)
    if (intensity[i] > 0)
      lit[picture.n_depths++] = intensity[i];
  imk_octbscan_picture_range (&picture, params, counts, ends);
}

/* As rows of intensities, which need no turning. */
ImkStatus
imk_octbscan_level_image (const ImkOctbscanConfig *given, bool db,
    const ImkImage *in, ImkImage *out, float *ends, ImkError *error)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      imk_octbscan_read_config (given, &own, error);
  ImkOctbscanParams params;
  ImkOctbscanPicture picture = {.n_ascans = in->height, .n_depths = in->width};
  size_t n = (size_t) in->width * in->height;
  ImkOctbscanPool *pool = NULL;
  uint32_t *counts;
  float *intensity, found[4];
  ImkStatus status;

  if (!config)
    return IMK_ERROR_CONFIG;
  params = params_of (config);
  counts = malloc (IMK_OCTBSCAN_N_BINS * sizeof (*counts));
  intensity = malloc (2 * n * sizeof (*intensity) + 1);
  status = imk_octbscan_check_range (config, error);
  if (status == IMK_OK)
    status = imk_image_check (in, "en-face rows", IMK_TYPE_F32, 1, in->width,
        in->height, false, error);
  if (status == IMK_OK)
    status = imk_image_check (out, "en-face image", out->type, 1, in->width,
        in->height, false, error);
  if (status == IMK_OK && (!counts || !intensity))
    status = no_memory (error);
  if (status == IMK_OK)
    status = imk_octbscan_choose_loops (&picture.loops, error);
  if (status == IMK_OK)
    status = imk_octbscan_pool_new (
        1, imk_octbscan_picture_scratch_size (in->width), &pool, error);
  if (status == IMK_OK) {
    for (uint32_t y = 0; y < in->height; y++)
      memcpy (intensity + (size_t) y * in->width,
          (const uint8_t *) in->data + y * in->stride,
          in->width * sizeof (*intensity));
    picture.intensity = intensity;
    find_lit_range (intensity, n, intensity + n, &params, counts, found);
    imk_octbscan_picture_write (
        &picture, db, found[db ? 0 : 2], found[db ? 1 : 3], out, pool, 1);
    if (ends)
      memcpy (ends, found, sizeof (found));
  }
  imk_octbscan_pool_free (pool);
  free (counts);
  free (intensity);
  return status;
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
