/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/normalintegrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/limits.h"
#include "normalintegrate/normalintegrate-correct.h"

struct ImkNormalintegrate {
  const ImkNormalintegrateBackend *backend;
  void *state; /* the backend's */
  bool on_device;
  ImkNormalintegratePlan plan;
  ImkNormalintegrateParams params;
  ImkNormalintegrateCorrection correction;
  float mm_per_pixel, grey_range;
  bool grey_swapped;
  float *tables; /* of both axes of the plan */
};

void
imk_normalintegrate_config_init_sized (
    ImkNormalintegrateConfig *config, size_t size)
{
  const ImkNormalintegrateConfig defaults = {
      .size = size,
      .width = 1,
      .height = 1,
      .type = IMK_TYPE_U8,
      .channels = 3,
      .colours = {0, 1, 2},
      .pixel_aspect = 1,
      .mm_per_pixel = 1,
      .max_slope = 100,
      .tolerance = 1e-4,
      .max_iterations = 100,
      .stiffness = 2,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

static ImkStatus
check_format (const ImkNormalintegrateConfig *c, ImkError *error)
{
  const uint32_t largest = IMK_NORMALINTEGRATE_MAX_SIZE;

  if (c->width < 1 || c->width > largest || c->height < 1 ||
      c->height > largest)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A map of %u x %u normals cannot be integrated; width and height can "
        "be 1..%u each.",
        c->width, c->height, largest);
  if (c->type != IMK_TYPE_U8 && c->type != IMK_TYPE_U16 &&
      c->type != IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Normals of type %s cannot be integrated; they can be u8, u16 or f32.",
        imk_type_name (c->type));
  if (c->channels < 3 || c->channels > 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A normal in %u channels cannot be read; there can be 3 or 4.",
        c->channels);
  for (int i = 0; i < 3; i++)
    if (c->colours[i] >= c->channels)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The %c of normals cannot be channel %u, counted from 0: the image "
          "has %u channels.",
          "xyz"[i], c -> colours[i], c -> channels);
  return IMK_OK;
}

static ImkStatus
check_params (const ImkNormalintegrateConfig *c,
    const ImkNormalintegratePlan *plan, ImkError *error)
{
  const struct {
    const char *property;
    double value;
    bool above_0;
  } numbers[] = {
      {"mm-per-pixel", c->mm_per_pixel, true},
      {"max-slope", c->max_slope, true},
      {"height-range", c->grey_range, false},
  };
  const ImkLimits limits[] = {
      {"stiffness", c->stiffness, 0, 1e6},
      {"tolerance", c->tolerance, 0, 1},
      {"max-iterations", c->max_iterations, 1, 10000},
      {NULL},
  };

  IMK_TRY (imk_limits_check_one (
      "method", c->method, 0, IMK_NORMALINTEGRATE_BILATERAL, error));
  for (size_t i = 0; i < sizeof (numbers) / sizeof (*numbers); i++) {
    double v = numbers[i].value;

    /* what float32 holds; NaN must fail too */
    if (!(numbers[i].above_0 ? v >= 1e-30 : v == 0 || v >= 1e-30) ||
        !(v <= 1e30))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "%s is %g; it has to be a number above 0%s.", numbers[i].property, v,
          numbers[i].above_0 ? "" : ", or 0");
  }
  /* of fewer pixels than 1/10 of the width is no lens */
  if (!(c->focal_pixels == 0 ||
          (c->focal_pixels >= 0.1 * plan->width && c->focal_pixels <= 1e9)))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The focal length is %g pixels, with a width of %u; it can be 0, or a "
        "tenth of the width to 1e9. Check focal-length-mm and sensor-width-mm.",
        c->focal_pixels, plan->width);
  IMK_TRY (imk_limits_check (limits, error));
  if (!(c->pixel_aspect >= 1e-3 && c->pixel_aspect <= 1e3))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The pixel-aspect-ratio is %g; it can be 1/1000 to 1000/1.",
        c->pixel_aspect);
  return imk_normalintegrate_check_correction (c, plan, error);
}

static void
take_params (ImkNormalintegrate *s, const ImkNormalintegrateConfig *c)
{
  s->mm_per_pixel = (float) c->mm_per_pixel;
  s->grey_range = (float) c->grey_range;
  s->grey_swapped = c->grey_swapped;
  s->correction.flatten = c->flatten;
  s->correction.n_points = c->n_points;
  if (c->n_points > 0)
    memcpy (s->correction.points, c->points, c->n_points * sizeof (*c->points));
  s->params = (ImkNormalintegrateParams){
      .method = c->method,
      .y_sign = c->y_down ? 1 : -1,
      .max_slope = (float) c->max_slope,
      .tolerance =
          fmaxf ((float) c->tolerance, IMK_NORMALINTEGRATE_LEAST_TOLERANCE),
      .max_iterations = c->max_iterations,
      .stiffness = (float) c->stiffness,
      .focal_pixels = (float) c->focal_pixels,
  };
}

/* ------------------------------------------------------------------------
 * Tables. */

static size_t
axis_size (uint32_t n) /* floats */
{
  return 2 * (size_t) (n / 2 + 1) + (n + 1) + n;
}

/* @pitch: pixels of this axis in the width of one
 * Returns: what follows the tables of this axis */
static float *
fill_axis (uint32_t n, double pitch, float *table, ImkNormalintegrateAxis *axis)
{
  ImkNormalintegrateComplex *turn = (ImkNormalintegrateComplex *) table;
  float *lambda = table + 2 * (size_t) (n / 2 + 1), *wave = lambda + n + 1;

  for (uint32_t k = 0; k <= n / 2; k++) {
    double angle = M_PI * k / (2.0 * n);

    turn[k] =
        (ImkNormalintegrateComplex){(float) cos (angle), -(float) sin (angle)};
  }
  for (uint32_t k = 0; k <= n; k++) {
    double sine = pitch * sin (M_PI * k / (2.0 * n));

    lambda[k] = (float) (4 * sine * sine);
  }
  for (uint32_t k = 0; k < n; k++) {
    double signed_k = k <= n / 2 ? k : (double) k - n;

    /* at n / 2 a wave and its mirror image are one; its slope is neither's */
    wave[k] = 2 * k == n ? 0 : (float) (2 * M_PI * pitch * signed_k / n);
  }
  *axis = (ImkNormalintegrateAxis){
      .n = n, .turn = turn, .lambda = lambda, .wave = wave};
  return wave + n;
}

static ImkNormalintegratePlan
plan_of (const ImkNormalintegrateConfig *c)
{
  return (ImkNormalintegratePlan){
      .width = c->width,
      .height = c->height,
      .type = c->type,
      .channels = c->channels,
      .colours = {c->colours[0], c->colours[1], c->colours[2]},
      .aspect = (float) c->pixel_aspect,
      .n_threads = c->n_threads,
  };
}

static ImkStatus
make_tables (
    ImkNormalintegrate *s, const ImkNormalintegrateConfig *c, ImkError *error)
{
  s->tables =
      malloc ((axis_size (c->width) + axis_size (c->height)) * sizeof (float));
  if (!s->tables)
    return IMK_NO_MEMORY (
        error, "for the tables of %u x %u normals.", c->width, c->height);
  fill_axis (c->height, c->pixel_aspect,
      fill_axis (c->width, 1, s->tables, &s->plan.x), &s->plan.y);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The object. */

ImkStatus
imk_normalintegrate_new (ImkBackend backend,
    const ImkNormalintegrateConfig *given, ImkNormalintegrate **self,
    ImkError *error)
{
  ImkNormalintegrateConfig own;
  const ImkNormalintegrateConfig *config =
      IMK_CONFIG_READ (normalintegrate, given, &own, error);
  const void *table = NULL;
  ImkNormalintegrate *s;
  ImkNormalintegratePlan plan;
  ImkStatus status;

  IMK_TRY (config ? check_format (config, error) : IMK_ERROR_CONFIG);
  plan = plan_of (config);
  IMK_TRY (check_params (config, &plan, error));
  IMK_TRY (imk_backend_table (
      backend, &imk_normalintegrate_cpu, "normalintegrate", &table, error));
  s = calloc (1, sizeof (*s));
  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  s->backend = table;
  s->on_device = backend == IMK_BACKEND_CUDA;
  s->plan = plan;
  take_params (s, config);
  status = make_tables (s, config, error);
  if (status == IMK_OK)
    status = s->backend->create (&s->plan, &s->state, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_normalintegrate_free (s);
  return status;
}

ImkStatus
imk_normalintegrate_update (ImkNormalintegrate *self,
    const ImkNormalintegrateConfig *given, ImkError *error)
{
  ImkNormalintegrateConfig own;
  const ImkNormalintegrateConfig *config =
      IMK_CONFIG_READ (normalintegrate, given, &own, error);

  IMK_TRY (
      config ? check_params (config, &self->plan, error) : IMK_ERROR_CONFIG);
  take_params (self, config);
  return IMK_OK;
}

static ImkStatus
check_output (const ImkNormalintegrate *self, const ImkImage *image,
    const char *role, ImkType type, ImkError *error)
{
  if (!image->data)
    return IMK_OK;
  return imk_image_check (image, role, type, 1, self->plan.width,
      self->plan.height, self->on_device, error);
}

/* The heights of the lowest and the highest point, and the grey values between
 * them. */
static void
set_extremes (const ImkNormalintegrate *self,
    const ImkNormalintegrateRange *range, ImkNormalintegrateScale *scale,
    ImkNormalintegrateSummary *s)
{
  double above, grey_range;

  if (scale->is_corrected) {
    s->lowest = scale->datum = range->lowest;
    s->highest = range->highest;
  } else if (s->n_valid > 0) { /* the range is in pixels */
    above = range->highest - range->lowest;
    if (scale->focal > 0)
      above = -scale->focal * expm1 (-above / scale->focal);
    s->highest = above * scale->mm;
  }
  grey_range = self->grey_range > 0 ? self->grey_range : s->highest - s->lowest;
  s->grey_step = grey_range / 65534;
  scale->per_grey = grey_range > 0 ? (float) (65534 / grey_range) : 0;
}

static ImkStatus
choose_scale (ImkNormalintegrate *self, ImkNormalintegrateScale *scale,
    ImkNormalintegrateSummary *s, void *stream, ImkError *error)
{
  const ImkNormalintegrateCorrection *c = &self->correction;
  const ImkNormalintegrateScale as_it_is = {.mm = 1};
  ImkNormalintegrateRange range = {0, 0};
  ImkStatus status =
      self->backend->find_range (self->state, &as_it_is, &range, stream, error);

  *scale = (ImkNormalintegrateScale){.lowest = range.lowest,
      .mm = self->mm_per_pixel,
      .focal = self->params.focal_pixels,
      .is_bent = self->params.focal_pixels > 0,
      .swapped = self->grey_swapped};
  for (uint32_t i = 0; i < c->n_points; i++)
    s->point_residuals[i] = NAN;
  IMK_TRY (status);
  if ((c->flatten || c->n_points > 0) && s->n_valid > 0) {
    IMK_TRY (imk_normalintegrate_correct (
        c, &self->plan, self->backend, self->state, scale, s, stream, error));
    if (scale->is_corrected)
      IMK_TRY (self->backend->find_range (
          self->state, scale, &range, stream, error));
  }
  set_extremes (self, &range, scale, s);
  return IMK_OK;
}

ImkStatus
imk_normalintegrate_process (ImkNormalintegrate *self, const ImkImage *in,
    ImkNormalintegrateOutputs *outputs, ImkNormalintegrateSummary *summary,
    void *stream, ImkError *error)
{
  const ImkNormalintegratePlan *p = &self->plan;
  ImkNormalintegrateScale scale;
  ImkNormalintegrateSummary s = {.n_pixels = (uint64_t) p->width * p->height};

  IMK_TRY (imk_image_check (in, "input", p->type, p->channels, p->width,
      p->height, self->on_device, error));
  IMK_TRY (
      check_output (self, &outputs->height, "height", IMK_TYPE_F32, error));
  IMK_TRY (check_output (self, &outputs->grey, "grey", IMK_TYPE_U16, error));
  IMK_TRY (self->backend->integrate (
      self->state, &self->params, in, &s, stream, error));
  IMK_TRY (choose_scale (self, &scale, &s, stream, error));
  IMK_TRY (self->backend->store (self->state, &scale, outputs, stream, error));
  *summary = s;
  return IMK_OK;
}

void
imk_normalintegrate_free (ImkNormalintegrate *self)
{
  if (!self)
    return;
  if (self->state)
    self->backend->destroy (self->state);
  free (self->tables);
  free (self);
}
