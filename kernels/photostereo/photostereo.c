/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/photostereo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "photostereo/photostereo-plan.h"

struct ImkPhotostereo {
  const ImkPhotostereoBackend *backend;
  bool on_device;
  void *state;

  ImkPhotostereoPlan
      plan; /* without the pointers that are valid only during create () */
  uint32_t n_colours;
  ImkPhotostereoParams params;
  ImkPhotostereoLamp *lamps;
  bool *present;   /* [light] all bands were added */
  uint32_t *bands; /* [light] one bit for each added band */
  uint32_t n_added, n_complete;
  double unmeasured;
  bool has_solved; /* in this set */
  uint32_t *lights;
  ImkPhotostereoRow *rows;
  ImkPhotostereoProbes *probes; /* (nullable) */
};

void
imk_photostereo_config_init_sized (ImkPhotostereoConfig *config, size_t size)
{
  const ImkPhotostereoConfig defaults = {
      .size = size,
      .width = 1,
      .height = 1,
      .type = IMK_TYPE_U8,
      .channels = 1,
      .colours = {0, 1, 2},
      .bands = 1,
      .gamma = 1.0,
      .mm_per_pixel = 1.0,
      .pixel_aspect = 1.0,
      .centre_x = NAN,
      .centre_y = NAN,
      .robust = IMK_PHOTOSTEREO_ROBUST_THRESHOLDS,
      .t_min = -1.0,
      .t_max = -1.0,
      .t_res = -1.0,
      .readmit = true,
      .max_iterations = 10,
      .min_condition = 1e-4,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* ------------------------------------------------------------------------
 * The object. */

static ImkStatus
create_state (ImkPhotostereo *s, const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkPhotostereoFrames frames = {0};
  ImkStatus status;

  s->lamps = imk_photostereo_make_lamps (c, error);
  if (!s->lamps)
    return IMK_ERROR_MEMORY;
  s->plan = imk_photostereo_make_plan (c, s->lamps);
  s->params = imk_photostereo_params_of (c, c->n_lights);
  s->n_colours = imk_photostereo_n_colours (c);
  s->present = calloc (c->n_lights, sizeof (*s->present));
  s->bands = calloc (c->n_lights, sizeof (*s->bands));
  s->lights = calloc (c->n_lights, sizeof (*s->lights));
  s->rows = calloc (c->height, sizeof (*s->rows));
  if (!s->present || !s->bands || !s->lights || !s->rows)
    return IMK_NO_MEMORY (error, "for %u lights.", c->n_lights);
  status = imk_photostereo_read_frames (c, &s->plan, &frames, error);
  s->unmeasured = frames.unmeasured;
  if (status == IMK_OK && !s->plan.constant) {
    s->probes = imk_photostereo_probes_new (&s->plan);
    if (!s->probes)
      status = IMK_NO_MEMORY (error, "for probes of %u lights.", c->n_lights);
  }
  if (status == IMK_OK)
    status = s->backend->create (&s->plan, &s->params, &s->state, error);
  imk_photostereo_frames_clear (&frames);
  s->plan.table = s->plan.dark = s->plan.white = NULL;
  s->plan.mask = NULL;
  s->plan.lamps = NULL;
  s->plan.devices = NULL;
  return status;
}

/* What the CPU alone solves. */
static ImkStatus
refuse_device (const ImkPhotostereoConfig *c, ImkError *error)
{
  if (c->ambient_model == IMK_PHOTOSTEREO_AMBIENT_CONSTANT)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "ambient-model=constant is solved by the CPU alone: take backend=cpu or "
        "auto, or a dark frame with ambient-model=mean.");
  if (c->height_rounds > 0)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "height-rounds=%u is solved by the CPU alone: take backend=cpu or auto, "
        "or height-rounds=0.",
        c->height_rounds);
  return IMK_OK;
}

ImkStatus
imk_photostereo_new (ImkBackend backend, const ImkPhotostereoConfig *given,
    ImkPhotostereo **self, ImkError *error)
{
  ImkPhotostereoConfig own;
  const ImkPhotostereoConfig *config =
      IMK_CONFIG_READ (photostereo, given, &own, error);
  const void *table = NULL;
  ImkPhotostereo *s;
  ImkStatus status;

  IMK_TRY (
      config ? imk_photostereo_check_config (config, error) : IMK_ERROR_CONFIG);
  IMK_TRY (imk_backend_table (
      backend, &imk_photostereo_cpu, "photostereo", &table, error));
  if (backend == IMK_BACKEND_CUDA)
    IMK_TRY (refuse_device (config, error));
  s = calloc (1, sizeof (*s));
  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  s->on_device = backend == IMK_BACKEND_CUDA;
  s->backend =
      s->on_device && config->n_devices > 0 ? &imk_photostereo_devices : table;
  status = create_state (s, config, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_photostereo_free (s);
  return status;
}

ImkStatus
imk_photostereo_update (
    ImkPhotostereo *self, const ImkPhotostereoConfig *given, ImkError *error)
{
  ImkPhotostereoConfig own;
  const ImkPhotostereoConfig *config =
      IMK_CONFIG_READ (photostereo, given, &own, error);
  ImkStatus status =
      config ? imk_photostereo_check_params (config, error) : IMK_ERROR_CONFIG;
  ImkPhotostereoParams params;

  IMK_TRY (status);
  params = imk_photostereo_params_of (config, self->plan.n_lights);
  IMK_TRY (self->backend->update (self->state, &params, error));
  self->params = params;
  return IMK_OK;
}

ImkStatus
imk_photostereo_add (ImkPhotostereo *self, const ImkImage *frame,
    uint32_t light, void *stream, ImkError *error)
{
  return imk_photostereo_add_band (self, frame, light, 0, stream, error);
}

ImkStatus
imk_photostereo_add_band (ImkPhotostereo *self, const ImkImage *frame,
    uint32_t light, uint32_t band, void *stream, ImkError *error)
{
  const ImkPhotostereoPlan *p = &self->plan;

  IMK_TRY (imk_image_check (frame, "input", p->type, p->channels, p->width,
      p->height, self->on_device, error));
  if (light >= p->n_lights)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A picture cannot be of light %u, counted from 0: there are %u lights.",
        light, p->n_lights);
  if (band >= p->bands)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A picture cannot be of band %u, counted from 0: bands is %u.", band,
        p->bands);
  if (self->bands[light] >> band & 1)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        p->bands > 1 ? "The set has a second picture of light %u in band %u."
                     : "The set has a second picture of light %u.",
        light, band);
  IMK_TRY (self->backend->add (self->state, frame, light, band, stream, error));
  if (self->probes && !self->on_device)
    imk_photostereo_probes_add (
        self->probes, p, &self->lamps[light], frame, light, band);
  self->bands[light] |= 1u << band;
  self->present[light] = self->bands[light] == (1u << p->bands) - 1;
  self->n_complete += self->present[light];
  self->n_added++;
  return IMK_OK;
}

bool
imk_photostereo_keeps_frames (const ImkPhotostereo *self)
{
  return self->backend->keeps_frames (self->state);
}

uint32_t
imk_photostereo_n_added (const ImkPhotostereo *self)
{
  return self->n_added;
}

uint32_t
imk_photostereo_n_complete (const ImkPhotostereo *self)
{
  return self->n_complete;
}

double
imk_photostereo_unmeasured (const ImkPhotostereo *self)
{
  return self->unmeasured;
}

/* An output of f32 with @channels, or encoded in u8 or u16. */
static ImkStatus
check_output (const ImkPhotostereo *self, const ImkImage *out, const char *role,
    uint32_t f32, uint32_t u8, uint32_t u16, ImkError *error)
{
  uint32_t channels = out->type == IMK_TYPE_U8    ? u8
                      : out->type == IMK_TYPE_U16 ? u16
                                                  : f32;
  ImkType type = channels == u8 && out->type == IMK_TYPE_U8 ? IMK_TYPE_U8
                 : out->type == IMK_TYPE_U16                ? IMK_TYPE_U16
                                                            : IMK_TYPE_F32;

  if (!out->data)
    return IMK_OK;
  return imk_image_check (out, role, type, channels, self->plan.width,
      self->plan.height, self->on_device, error);
}

/* Albedo or ambient: of colours, or of bands that are no three colours. */
static ImkStatus
check_colours (const ImkPhotostereo *self, const ImkImage *out,
    const char *role, ImkError *error)
{
  uint32_t c = self->n_colours;

  if (c == 1 || c == 3 || !out->data || out->type == IMK_TYPE_F32)
    return check_output (self, out, role, c, c, c == 3 ? 4 : 1, error);
  return imk_image_check (out, role,
      out->type == IMK_TYPE_U16 ? IMK_TYPE_U16 : IMK_TYPE_U8, 1,
      self->plan.width, c * self->plan.height, self->on_device, error);
}

static ImkStatus
check_outputs (
    const ImkPhotostereo *self, const ImkPhotostereoOutputs *o, ImkError *error)
{
  IMK_TRY (check_output (self, &o->normal, "normal", 3, 3, 4, error));
  IMK_TRY (check_colours (self, &o->albedo, "albedo", error));
  IMK_TRY (check_colours (self, &o->ambient, "ambient", error));
  IMK_TRY (check_output (self, &o->quality, "quality", 4, 0, 4, error));
  IMK_TRY (check_output (self, &o->confidence, "confidence", 1, 1, 1, error));
  return check_output (self, &o->mask, "mask", 1, 1, 1, error);
}

static ImkPhotostereoSummary
sum_up (const ImkPhotostereo *self, bool compare, bool measures)
{
  const ImkPhotostereoPlan *p = &self->plan;
  ImkPhotostereoSummary s = {
      .n_lights = self->n_complete, .change_deg = compare ? 0 : NAN};
  uint64_t n_changes = 0, n_valid;
  double length = 0;

  for (uint32_t y = 0; y < self->plan.height; y++) {
    const ImkPhotostereoRow *row = &self->rows[y];

    s.n_pixels += row->n_pixels;
    s.n_invalid += row->n_invalid;
    s.mean_lights += row->lights;
    s.mean_rounds += row->rounds;
    s.mean_residual += row->residual;
    length += row->length;
    s.n_clipped += row->n_clipped;
    s.largest = row->largest > s.largest ? row->largest : s.largest;
    s.change_deg += row->change;
    n_changes += row->n_changes;
  }
  s.n_samples = s.n_pixels * self->n_added * (p->n_planes / p->bands);
  n_valid = s.n_pixels - s.n_invalid;
  s.mean_lights = n_valid ? s.mean_lights / (double) n_valid : 0;
  s.mean_rounds = n_valid ? s.mean_rounds / (double) n_valid : 0;
  s.mean_residual = measures && length > 0 ? s.mean_residual / length : NAN;
  s.change_deg = n_changes ? s.change_deg / (double) n_changes : NAN;
  return s;
}

/* Returns: how many lights have all their pictures */
static uint32_t
list_lights (const ImkPhotostereo *self, uint32_t *lights)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < self->plan.n_lights; i++)
    if (self->present[i])
      lights[n++] = i;
  return n;
}

ImkStatus
imk_photostereo_solve (ImkPhotostereo *self, ImkPhotostereoOutputs *outputs,
    ImkPhotostereoSummary *summary, void *stream, ImkError *error)
{
  bool compare = self->plan.track_change && self->has_solved;
  ImkPhotostereoSet set = {.lights = self->lights, .bands = self->bands};

  IMK_TRY (check_outputs (self, outputs, error));
  set.n_lights = list_lights (self, self->lights);
  IMK_TRY (self->backend->solve (self->state, &set, compare, outputs,
      summary ? self->rows : NULL, stream, error));
  self->has_solved = true;
  if (summary)
    *summary = sum_up (self, compare,
        imk_photostereo_measures (&self->plan, &self->params, outputs));
  return IMK_OK;
}

ImkStatus
imk_photostereo_probe (ImkPhotostereo *self, const ImkImage *frame,
    uint32_t light, uint32_t band, ImkError *error)
{
  const ImkPhotostereoPlan *p = &self->plan;

  IMK_TRY (imk_image_check (
      frame, "input", p->type, p->channels, p->width, p->height, false, error));
  if (light >= p->n_lights || band >= p->bands)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "There is no light %u with a band %u; both count from 0.", light, band);
  if (self->probes && self->on_device)
    imk_photostereo_probes_add (
        self->probes, p, &self->lamps[light], frame, light, band);
  return IMK_OK;
}

ImkStatus
imk_photostereo_judge (
    const ImkPhotostereo *self, double *misfits, ImkError *error)
{
  uint32_t n = list_lights (self, self->lights);

  for (uint32_t i = 0; i < self->plan.n_lights; i++)
    misfits[i] = NAN;
  return self->probes ? imk_photostereo_probes_judge (self->probes, &self->plan,
                            self->lamps, self->lights, n, misfits, error)
                      : IMK_OK;
}

void
imk_photostereo_reset (ImkPhotostereo *self)
{
  if (self->probes)
    imk_photostereo_probes_reset (self->probes);
  memset (self->present, 0, self->plan.n_lights * sizeof (*self->present));
  memset (self->bands, 0, self->plan.n_lights * sizeof (*self->bands));
  self->n_added = self->n_complete = 0;
  self->has_solved = false;
  self->backend->reset (self->state);
}

void
imk_photostereo_free (ImkPhotostereo *self)
{
  if (!self)
    return;
  if (self->state)
    self->backend->destroy (self->state);
  free (self->lamps);
  free (self->present);
  free (self->bands);
  free (self->lights);
  free (self->rows);
  imk_photostereo_probes_free (self->probes);
  free (self);
}

/* ------------------------------------------------------------------------
 * The next light. */

enum { PROBES = 64 }; /* pixels a side that are looked at */

ImkStatus
imk_photostereo_next_light (
    ImkPhotostereo *self, uint32_t *light, void *stream, ImkError *error)
{
  const ImkPhotostereoPlan *p = &self->plan;
  uint32_t step_x = imk_div_up (p->width, PROBES);
  uint32_t step_y = imk_div_up (p->height, PROBES);
  float *normals; /* at the probes; zeros where there are none */
  ImkStatus status = IMK_OK;

  if (self->n_complete == p->n_lights)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "All %u lights are in the set; none is left to be the next.",
        p->n_lights);
  normals = calloc (PROBES * PROBES, 3 * sizeof (*normals));
  if (!normals)
    return IMK_NO_MEMORY (error, "for %u normals.", PROBES * PROBES);
  if (p->track_change && self->has_solved)
    status = self->backend->probe (
        self->state, step_x, step_y, normals, stream, error);
  if (status == IMK_OK)
    *light = imk_photostereo_choose_light (p, self->lamps, self->present,
        self->params.min_condition, normals, step_x, step_y);
  free (normals);
  return status;
}
