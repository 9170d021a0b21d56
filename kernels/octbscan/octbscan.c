/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan.h"

#include <math.h>
#include <stdlib.h>

#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-chain.h"
#include "octbscan/octbscan-fft.h"
#include "octbscan/octbscan-grid.h"

enum {
  N_LANES = IMK_OCTBSCAN_N_LANES,
  /* up to which auto takes the operator */
  MOST_DEPTHS_ON_CPU = 32,
  MOST_WEIGHTS_ON_CUDA = 12000000,
};

struct ImkOctbscan {
  const ImkOctbscanBackend *backend;
  bool on_device;
  void *state;
  ImkOctbscanConfig config; /* without its pointers */
};

void
imk_octbscan_config_init (ImkOctbscanConfig *config)
{
  static const ImkOctbscanCamera linear = {.map = IMK_OCTBSCAN_MAP_NONE};

  *config = (ImkOctbscanConfig){
      .width = 2,
      .height = 1,
      .type = IMK_TYPE_U16,
      .n_cameras = 1,
      .cameras = &linear,
      .upsample = 4096,
      .scale = 1,
      .taper_cut = 32,
      .taper_below = 832,
      .max_jobs = 1,
      .range_min = 0.0,
      .range_max = 60.0,
      .percent_min = 1.0,
      .percent_max = 99.9,
  };
}

static uint64_t
all_depths (const ImkOctbscanConfig *c)
{
  return (uint64_t) c->width * c->scale / 2;
}

uint32_t
imk_octbscan_n_depths (const ImkOctbscanConfig *config)
{
  uint64_t cut = (uint64_t) config->crop_top + config->crop_bottom;
  uint64_t all = all_depths (config);

  return all > cut ? (uint32_t) (all - cut) : 0;
}

void
imk_octbscan_size (
    const ImkOctbscanConfig *config, uint32_t *width, uint32_t *height)
{
  bool rows = config->orientation == IMK_OCTBSCAN_ORIENTATION_ROWS;
  uint32_t n_depths = imk_octbscan_n_depths (config);

  *width = rows ? n_depths : config->height;
  *height = rows ? config->height : n_depths;
}

/* ------------------------------------------------------------------------
 * Validation, the same for both backends. The comparisons are written so that
 * a NaN fails them. */

static ImkStatus
check_between (const char *property, uint64_t value, uint64_t least,
    uint64_t most, ImkError *error)
{
  if (value >= least && value <= most)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %llu; it can be %llu to %llu.", property,
      (unsigned long long) value, (unsigned long long) least,
      (unsigned long long) most);
}

/* One after the other, until one is wrong. */
typedef struct Limits {
  const char *property;
  uint64_t value, least, most;
} Limits;

static ImkStatus
check_all (const Limits *limits, ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (; limits->property && status == IMK_OK; limits++)
    status = check_between (
        limits->property, limits->value, limits->least, limits->most, error);
  return status;
}

static ImkStatus
check_sizes (const ImkOctbscanConfig *c, ImkError *error)
{
  const Limits limits[] = {
      {"The number of samples a spectrum", c->width, 2, IMK_OCTBSCAN_MAX_WIDTH},
      {"The number of A-scans a B-scan", c->height, 1, IMK_OCTBSCAN_MAX_HEIGHT},
      {"The number of cameras", c->n_cameras, 1, IMK_OCTBSCAN_MAX_CAMERAS},
      {"scale", c->scale, 1, 64},
      {"max_jobs", c->max_jobs, 1, 65535},
      {NULL},
  };
  ImkStatus status = check_all (limits, error);

  if (status != IMK_OK)
    return status;
  if (c->type > IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Spectra of type %s cannot be processed; u8, u16, i16 and f32 can.",
        imk_type_name (c->type));
  if (c->upsample < c->width || c->upsample < 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "upsample is %u, less than the %u samples of a spectrum. Take at least "
        "%u, and at least 4.",
        c->upsample, c->width, c->width);
  if ((uint64_t) c->upsample * c->scale > IMK_OCTBSCAN_MAX_POINTS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "upsample %u times scale %u is more than %u. Take less of either.",
        c->upsample, c->scale, IMK_OCTBSCAN_MAX_POINTS);
  if (imk_octbscan_n_depths (c) == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "crop-top %u and crop-bottom %u leave none of the %llu depths. Take "
        "less of either.",
        c->crop_top, c->crop_bottom, (unsigned long long) all_depths (c));
  return IMK_OK;
}

/* Before memory is asked for that the system promises and does not have. */
static ImkStatus
check_operators (const ImkOctbscanConfig *c, ImkError *error)
{
  uint64_t size = (uint64_t) imk_octbscan_n_depths (c) * c->width *
                  c->n_cameras * 2 * sizeof (float);

  if (size <= IMK_OCTBSCAN_MAX_OPERATORS)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "strategy=operator needs %llu MiB for %u depths of %u samples of %u "
      "cameras, more than %llu. Crop more, or take a smaller scale or "
      "backend=cpu with strategy=fft.",
      (unsigned long long) size >> 20, imk_octbscan_n_depths (c), c->width,
      c->n_cameras, (unsigned long long) IMK_OCTBSCAN_MAX_OPERATORS >> 20);
}

static ImkStatus
check_choices (const ImkOctbscanConfig *c, ImkError *error)
{
  const Limits limits[] = {
      {"interpolation", c->interpolation, 0, IMK_OCTBSCAN_INTERPOLATION_THESIS},
      {"grid", c->grid, 0, IMK_OCTBSCAN_GRID_THESIS},
      {"taper", c->taper, 0, IMK_OCTBSCAN_TAPER_NONE},
      {"window", c->window, 0, IMK_OCTBSCAN_WINDOW_GAUSS},
      {"background", c->background_mode, 0, IMK_OCTBSCAN_BACKGROUND_NONE},
      {"orientation", c->orientation, 0, IMK_OCTBSCAN_ORIENTATION_ROWS},
      {"strategy", c->strategy, 0, IMK_OCTBSCAN_STRATEGY_OPERATOR},
      {NULL},
  };
  bool tapers =
      c->taper != IMK_OCTBSCAN_TAPER_NONE && c->width < c->taper_below;
  ImkStatus status = check_all (limits, error);

  if (status == IMK_OK && tapers && c->width < 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Spectra of %u samples are too short to be tapered. Set taper to none.",
        c->width);
  if (status == IMK_OK && tapers)
    status =
        check_between ("taper-cut", c->taper_cut, 1, c->width / 2 - 1, error);
  return status;
}

static ImkStatus
check_background (const ImkOctbscanConfig *c, ImkError *error)
{
  size_t n = (size_t) c->n_cameras * c->width;

  if (c->background_mode != IMK_OCTBSCAN_BACKGROUND_FILE)
    return IMK_OK;
  if (!c->background)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "background is file, but there is none. Set background-location.");
  for (size_t i = 0; i < n; i++)
    if (!(fabs (c->background[i]) <= 1e30))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Sample %zu of the background of camera %zu is %g; it must be a "
          "finite number.",
          i % c->width, i / c->width, c->background[i]);
  return IMK_OK;
}

static ImkStatus
check_range (const ImkOctbscanConfig *c, ImkError *error)
{
  ImkStatus status =
      check_between ("range", c->range, 0, IMK_OCTBSCAN_RANGE_MINMAX, error);

  if (status != IMK_OK)
    return status;
  if (!(c->range_min >= -200 && c->range_max <= 300 &&
          c->range_min <= c->range_max))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "range-min is %g dB and range-max %g dB; they must lie in -200 to 300, "
        "and range-max not below range-min.",
        c->range_min, c->range_max);
  if (!(c->percent_min >= 0 && c->percent_max <= 100 &&
          c->percent_min <= c->percent_max))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "percent-min is %g and percent-max %g; they must lie in 0 to 100, and "
        "percent-max not below percent-min.",
        c->percent_min, c->percent_max);
  return IMK_OK;
}

static ImkStatus
check_config (const ImkOctbscanConfig *c, ImkError *error)
{
  ImkStatus status = check_sizes (c, error);

  if (status == IMK_OK)
    status = check_choices (c, error);
  for (uint32_t i = 0; status == IMK_OK && i < c->n_cameras; i++)
    status = imk_octbscan_grid_check (c, i, error);
  if (status == IMK_OK)
    status = check_background (c, error);
  return status != IMK_OK ? status : check_range (c, error);
}

/* ------------------------------------------------------------------------
 * The plan. */

static ImkOctbscanParams
params_of (const ImkOctbscanConfig *c)
{
  return (ImkOctbscanParams){
      .range = c->range,
      .intensity_min = (float) pow (10, c->range_min / 10),
      .intensity_max = (float) pow (10, c->range_max / 10),
      .percent_min = c->percent_min,
      .percent_max = c->percent_max,
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

static void *
alloc_zeroed (size_t size)
{
  void *memory;

  if (posix_memalign (&memory, 64, size))
    return NULL;
  for (size_t i = 0; i < size / sizeof (float); i++)
    ((float *) memory)[i] = 0;
  return memory;
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
  samples = alloc_zeroed (N_LANES * c->width * sizeof (float));
  z = alloc_zeroed (2 * N_LANES * (size_t) plan->n_depths * sizeof (float));
  scratch = alloc_zeroed (imk_octbscan_fft_scratch_size (fft));
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
copy_background (
    const ImkOctbscanConfig *c, float **background, ImkError *error)
{
  size_t n = (size_t) c->n_cameras * c->width;

  if (c->background_mode != IMK_OCTBSCAN_BACKGROUND_FILE)
    return IMK_OK;
  *background = malloc (n * sizeof (float));
  if (!*background)
    return no_memory (error);
  for (size_t i = 0; i < n; i++)
    (*background)[i] = (float) c->background[i];
  return IMK_OK;
}

static ImkStatus
create_state (ImkOctbscan *s, const ImkOctbscanConfig *config, ImkError *error)
{
  ImkOctbscanConfig chosen = *config;
  ImkOctbscanPlan plan = {&chosen, imk_octbscan_n_depths (config)};
  ImkOctbscanParams params = params_of (config);
  float *operators = NULL, *background = NULL;
  ImkOctbscanChain *chain = NULL;
  ImkStatus status;

  chosen.strategy = s->config.strategy;
  status = copy_background (config, &background, error);
  if (status == IMK_OK && chosen.strategy == IMK_OCTBSCAN_STRATEGY_OPERATOR)
    status = make_operators (&plan, &operators, error);
  else if (status == IMK_OK && s->on_device)
    status = imk_octbscan_chain_new (&chosen, &chain, error);
  plan.chain = chain;
  plan.operators = operators;
  plan.background = background;
  if (status == IMK_OK)
    status = s->backend->create (&plan, &params, &s->state, error);
  imk_octbscan_chain_free (chain);
  free (operators);
  free (background);
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

static ImkStatus
find_backend (
    ImkBackend backend, const ImkOctbscanBackend **table, ImkError *error)
{
  const void *found;
  ImkStatus status = IMK_OK;

  switch (backend) {
  case IMK_BACKEND_CPU:
    *table = &imk_octbscan_cpu;
    return IMK_OK;
  case IMK_BACKEND_CUDA:
    status = imk_backend_find (IMK_MODULE_CUDA_FFT, "octbscan", &found, error);
    if (status == IMK_OK)
      *table = found;
    return status;
  }
  return imk_error_set (
      error, IMK_ERROR_CONFIG, "There is no backend %d.", (int) backend);
}

/* docs/benchmarks.md: what a matrix costs is N times the depths. On the CPU it
 * is worth it for a few depths, on tensor cores until there are millions. */
static ImkOctbscanStrategy
choose_strategy (ImkBackend backend, const ImkOctbscanConfig *c)
{
  uint64_t n_depths = imk_octbscan_n_depths (c);
  bool small = backend == IMK_BACKEND_CPU
                   ? n_depths <= MOST_DEPTHS_ON_CPU
                   : n_depths * c->width <= MOST_WEIGHTS_ON_CUDA;

  if (c->strategy != IMK_OCTBSCAN_STRATEGY_AUTO)
    return c->strategy;
  return small ? IMK_OCTBSCAN_STRATEGY_OPERATOR : IMK_OCTBSCAN_STRATEGY_FFT;
}

ImkStatus
imk_octbscan_new (ImkBackend backend, const ImkOctbscanConfig *config,
    ImkOctbscan **self, ImkError *error)
{
  const ImkOctbscanBackend *table = NULL;
  ImkOctbscan *s;
  ImkStatus status = check_config (config, error);

  if (status == IMK_OK)
    status = find_backend (backend, &table, error);
  if (status != IMK_OK)
    return status;
  s = malloc (sizeof (*s));
  if (!s)
    return no_memory (error);
  *s = (ImkOctbscan){
      .backend = table,
      .on_device = backend == IMK_BACKEND_CUDA,
      .config = *config,
  };
  s->config.strategy = choose_strategy (backend, config);
  if (s->config.strategy == IMK_OCTBSCAN_STRATEGY_OPERATOR)
    status = check_operators (config, error);
  if (status == IMK_OK)
    status = create_state (s, config, error);
  s->config.cameras = NULL;
  s->config.background = NULL;
  if (status == IMK_OK)
    *self = s;
  else
    free (s);
  return status;
}

ImkStatus
imk_octbscan_update (
    ImkOctbscan *self, const ImkOctbscanConfig *config, ImkError *error)
{
  ImkStatus status = check_range (config, error);
  ImkOctbscanParams params;

  if (status != IMK_OK)
    return status;
  params = params_of (config);
  return self->backend->update (self->state, &params, error);
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

static ImkStatus
check_job (const ImkOctbscan *s, const ImkOctbscanJob *job, ImkError *error)
{
  const ImkOctbscanConfig *c = &s->config;
  ImkStatus status = imk_image_check (
      job->in, "input", c->type, 1, c->width, c->height, s->on_device, error);

  if (status == IMK_OK)
    status = check_image (s, job->db, "dB output", error);
  if (status == IMK_OK)
    status = check_image (s, job->linear, "linear output", error);
  if (status == IMK_OK && job->complex)
    status = imk_image_check (job->complex, "complex output", IMK_TYPE_CF32, 1,
        imk_octbscan_n_depths (c), c->height, s->on_device, error);
  return status;
}

ImkStatus
imk_octbscan_process (ImkOctbscan *self, const ImkOctbscanJob *jobs,
    uint32_t n_jobs, void *stream, ImkError *error)
{
  ImkStatus status = check_between (
      "The number of B-scans", n_jobs, 1, self->config.max_jobs, error);

  for (uint32_t i = 0; i < n_jobs && status == IMK_OK; i++)
    status = check_job (self, &jobs[i], error);
  return status != IMK_OK ? status
                          : self->backend->process (
                                self->state, jobs, n_jobs, stream, error);
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
  free (self);
}
