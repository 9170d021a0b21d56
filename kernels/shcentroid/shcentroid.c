/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shcentroid.h"

#include <math.h>
#include <stdlib.h>

#include "core/config.h"
#include "shcentroid/shcentroid-cells.h"
#include "shcentroid/shcentroid-check.h"
#include "shcentroid/shcentroid-filter.h"
#include "shcentroid/shcentroid-templates.h"

struct ImkShcentroid {
  const ImkFilterBackend *backend;
  bool on_device;
  void *state;

  uint32_t width, height; /* what process checks images against */
  ImkType type;
  ImkShcentroidFields fields;
  uint32_t n_cells;
  bool has_templates, has_pupils, has_filter;
};

void
imk_shcentroid_config_init_sized (ImkShcentroidConfig *config, size_t size)
{
  const ImkShcentroidConfig defaults = {
      .size = size,
      .width = 1,
      .height = 1,
      .type = IMK_TYPE_U8,
      .pitch_x = 1.0,
      .pitch_y = 1.0,
      .columns = 1,
      .rows = 1,
      .fields = IMK_SHCENTROID_FIELDS_ALL,
      .threshold_mode = IMK_SHCENTROID_THRESHOLD_NONE,
      .threshold_action = IMK_SHCENTROID_ACTION_SUBTRACT,
      .sigma = 1.0,
      .iterations = 1,
      .power = 1.0,
      .quad_gain = 1.0,
      .template_cell = -1,
      .search_range = 4,
      .min_correlation = 0.25,
      .tracking_gain = 1.0,
      .gain = 1.0,
      .invalid_policy = IMK_SHCENTROID_INVALID_ZERO,
      .slope_scale = 1.0,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* ------------------------------------------------------------------------
 * The plan. */

static ImkStatus
check_rects (const ImkShcentroidConfig *c, const ImkShcentroidRect *rects,
    uint32_t n, ImkError *error)
{
  for (uint32_t i = 0; i < n; i++)
    if (rects[i].width == 0 || rects[i].height == 0)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "margin is %u pixels, which leaves nothing of cell %u inside the "
          "frame. Take a smaller margin.",
          c->margin, i);
  return IMK_OK;
}

/* Returns: (nullable): dark, flat and bad pixels in one */
static ImkShcentroidPixel *
make_pixels (const ImkShcentroidConfig *c)
{
  size_t n = (size_t) c->width * c->height;
  ImkShcentroidPixel *pixels = malloc (n * sizeof (*pixels));

  for (size_t i = 0; pixels && i < n; i++) {
    pixels[i].flat = c->bad && c->bad[i] ? 0.0f : c->flat ? c->flat[i] : 1.0f;
    pixels[i].dark = pixels[i].flat == 0.0f ? NAN : c->dark ? c->dark[i] : 0.0f;
  }
  return pixels;
}

/* The paper's cells need not touch. */
static bool
is_partition (const ImkShcentroidConfig *c)
{
  return !c->n_cells && c->grid_rule == IMK_SHCENTROID_RULE_SINGLE_FLOOR;
}

static ImkStatus
create_with (ImkShcentroid *s, const ImkShcentroidConfig *c,
    ImkShcentroidRect *rects, const ImkShcentroidPixel *pixels,
    const ImkShcentroidTemplates *templates, ImkShcentroidFilter *filter,
    ImkError *error)
{
  /* cells with a margin do not touch */
  bool is_grid = is_partition (c) && c->margin == 0;
  ImkShcentroidParams params = imk_shcentroid_params (c, c->fields);
  ImkShcentroidPlan plan = {
      .width = c->width,
      .height = c->height,
      .type = c->type,
      .columns = is_grid ? c->columns : 0,
      .rows = is_grid ? c->rows : 0,
      .n_rects = s->n_cells,
      .rects = rects,
      .pixels = pixels,
      .lut = c->lut,
      .templates = *templates,
      .pupils = c->pupils,
      .fields = c->fields,
  };

  for (uint32_t i = 0; i < s->n_cells; i++)
    rects[i] = imk_shcentroid_cell_rect (c, i);
  IMK_TRY (check_rects (c, rects, s->n_cells, error));
  s->has_templates = templates->n > 0;
  s->has_pupils = c->pupils != NULL;
  s->has_filter = c->estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED;
  if (s->has_filter)
    IMK_TRY (imk_shcentroid_filter_init (
        filter, c, rects, pixels, templates->anchors, error));
  plan.filter = *filter;
  return s->backend->create (&plan, &params, c->n_threads, &s->state, error);
}

static ImkStatus
create_state (ImkShcentroid *s, const ImkShcentroidConfig *c, ImkError *error)
{
  bool calibrated = c->dark || c->flat || c->bad;
  ImkShcentroidRect *rects = calloc (s->n_cells, sizeof (*rects));
  ImkShcentroidPixel *pixels = calibrated ? make_pixels (c) : NULL;
  ImkShcentroidTemplates templates = {.n = 0};
  ImkShcentroidFilter filter = {.n_weights = 0};
  ImkStatus status = imk_shcentroid_templates_init (&templates, c, error);

  if (status == IMK_OK && (!rects || (calibrated && !pixels)))
    status = IMK_NO_MEMORY (error, "for the geometry of %u cells.", s->n_cells);
  if (status == IMK_OK)
    status = create_with (s, c, rects, pixels, &templates, &filter, error);
  free (rects);
  free (pixels);
  imk_shcentroid_templates_clear (&templates);
  imk_shcentroid_filter_clear (&filter);
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

ImkStatus
imk_shcentroid_new (ImkBackend backend, const ImkShcentroidConfig *given,
    ImkShcentroid **self, ImkError *error)
{
  ImkShcentroidConfig own;
  const ImkShcentroidConfig *config =
      IMK_CONFIG_READ (shcentroid, given, &own, error);
  const void *table = NULL;
  ImkShcentroid *s;
  ImkStatus status;

  if (!config)
    return IMK_ERROR_CONFIG;
  IMK_TRY (imk_shcentroid_check_config (config, error));
  IMK_TRY (imk_backend_table (
      backend, &imk_shcentroid_cpu, "shcentroid", &table, error));
  s = malloc (sizeof (*s));
  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  *s = (ImkShcentroid){
      .backend = table,
      .on_device = backend == IMK_BACKEND_CUDA,
      .width = config->width,
      .height = config->height,
      .type = config->type,
      .fields = config->fields,
      .n_cells = imk_shcentroid_n_cells (config),
  };
  status = create_state (s, config, error);
  if (status == IMK_OK)
    *self = s;
  else
    free (s);
  return status;
}

ImkStatus
imk_shcentroid_update (
    ImkShcentroid *self, const ImkShcentroidConfig *given, ImkError *error)
{
  ImkShcentroidConfig own;
  const ImkShcentroidConfig *config =
      IMK_CONFIG_READ (shcentroid, given, &own, error);
  ImkShcentroidParams params;

  if (!config)
    return IMK_ERROR_CONFIG;
  IMK_TRY (imk_shcentroid_check_params (config, error));
  IMK_TRY (imk_shcentroid_check_has (
      config, self->has_templates, self->has_filter, self->has_pupils, error));
  params = imk_shcentroid_params (config, self->fields);
  return self->backend->update (self->state, &params, error);
}

static ImkStatus
check_output (const ImkShcentroid *s, const ImkImage *out, const char *role,
    ImkType type, ImkError *error)
{
  bool slopes = s->fields == IMK_SHCENTROID_FIELDS_SLOPES;
  bool all = s->fields == IMK_SHCENTROID_FIELDS_ALL;
  uint32_t columns = slopes ? 2 * s->n_cells
                     : all  ? (uint32_t) IMK_SHCENTROID_N_FIELDS
                            : 2;

  return imk_image_check (out, role, type, 1, columns, slopes ? 1 : s->n_cells,
      s->on_device, error);
}

ImkStatus
imk_shcentroid_process_flags (ImkShcentroid *self, const ImkImage *in,
    ImkImage *out, ImkImage *rounded, ImkImage *flags, void *stream,
    ImkError *error)
{
  /* without a second one, f32 is the other choice */
  bool f64 = rounded || (out && out->type == IMK_TYPE_F64);
  ImkImage images[IMK_FILTER_MAX_OUTPUTS] = {{0}};

  IMK_TRY (imk_image_check (in, "input", self->type, 1, self->width,
      self->height, self->on_device, error));
  IMK_TRY (check_output (
      self, out, "output", f64 ? IMK_TYPE_F64 : IMK_TYPE_F32, error));
  if (rounded)
    IMK_TRY (check_output (self, rounded, "rounded", IMK_TYPE_F32, error));
  if (flags)
    IMK_TRY (imk_image_check (flags, "flags", IMK_TYPE_U8, 1, self->n_cells, 1,
        self->on_device, error));
  images[0] = *out;
  if (rounded)
    images[1] = *rounded;
  if (flags)
    images[2] = *flags;
  return self->backend->process (self->state, in, images, stream, error);
}

ImkStatus
imk_shcentroid_process (ImkShcentroid *self, const ImkImage *in, ImkImage *out,
    void *stream, ImkError *error)
{
  return imk_shcentroid_process_flags (
      self, in, out, NULL, NULL, stream, error);
}

ImkStatus
imk_shcentroid_reset (ImkShcentroid *self, void *stream, ImkError *error)
{
  return self->backend->reset (self->state, stream, error);
}

void
imk_shcentroid_free (ImkShcentroid *self)
{
  if (!self)
    return;
  self->backend->destroy (self->state);
  free (self);
}
