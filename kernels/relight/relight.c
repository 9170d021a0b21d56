/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/relight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/limits.h"
#include "relight/relight-backend.h"

struct ImkRelight {
  const ImkFilterBackend *backend;
  void *state; /* the backend's */
  bool on_device;
  uint32_t width, height;
  ImkRelightParams params;
};

void
imk_relight_config_init_sized (ImkRelightConfig *config, size_t size)
{
  const ImkRelightConfig defaults = {
      .size = size,
      .width = 1,
      .height = 1,
      .azimuth = 135,
      .elevation = 45,
      .diffuse = 1,
      .shininess = 30,
      .gamma = 1,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

static ImkStatus
check_config (const ImkRelightConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"azimuth", c->azimuth, -1e6, 1e6},
      {"elevation", c->elevation, -1e6, 1e6},
      {"ambient", c->ambient, 0, 1000},
      {"diffuse", c->diffuse, 0, 1000},
      {"specular", c->specular, 0, 1000},
      {"shininess", c->shininess, 0.1, 10000},
      {"gamma", c->gamma, 0.1, 10},
      {NULL},
  };

  if (c->width < 1 || c->width > IMK_RELIGHT_MAX_SIZE || c->height < 1 ||
      c->height > IMK_RELIGHT_MAX_SIZE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A picture of %u x %u pixels cannot be lit; width and height can be "
        "1..%u each.",
        c->width, c->height, IMK_RELIGHT_MAX_SIZE);
  return imk_limits_check (limits, error);
}

static ImkRelightParams
params_of (const ImkRelightConfig *c)
{
  double azimuth = c->azimuth * M_PI / 180,
         elevation = c->elevation * M_PI / 180;
  double l[] = {cos (elevation) * cos (azimuth),
      cos (elevation) * sin (azimuth), sin (elevation)};
  double length;
  ImkRelightParams p = {
      .ambient = (float) c->ambient,
      .diffuse = (float) c->diffuse,
      .specular = (float) c->specular,
      .shininess = (float) c->shininess,
      .power = (float) (1 / c->gamma),
  };

  if (c->y_down)
    l[1] = -l[1];
  length = sqrt (l[0] * l[0] + l[1] * l[1] + (l[2] + 1) * (l[2] + 1));
  for (int i = 0; i < 3; i++) {
    p.light[i] = (float) l[i];
    /* of a light behind the object there is none */
    p.halfway[i] = length > 1e-9 ? (float) ((l[i] + (i == 2)) / length) : 0;
  }
  return p;
}

ImkStatus
imk_relight_new (ImkBackend backend, const ImkRelightConfig *given,
    ImkRelight **self, ImkError *error)
{
  ImkRelightConfig own;
  const ImkRelightConfig *config =
      IMK_CONFIG_READ (relight, given, &own, error);
  const void *table = NULL;
  ImkRelight *s;
  ImkStatus status;

  IMK_TRY (config ? check_config (config, error) : IMK_ERROR_CONFIG);
  IMK_TRY (
      imk_backend_table (backend, &imk_relight_cpu, "relight", &table, error));
  s = calloc (1, sizeof (*s));
  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  *s = (ImkRelight){
      .backend = table,
      .on_device = backend == IMK_BACKEND_CUDA,
      .width = config->width,
      .height = config->height,
      .params = params_of (config),
  };
  status = s->backend->create (
      NULL, &s->params, config->n_threads, &s->state, error);
  if (status == IMK_OK)
    *self = s;
  else
    free (s);
  return status;
}

ImkStatus
imk_relight_update (
    ImkRelight *self, const ImkRelightConfig *given, ImkError *error)
{
  ImkRelightConfig own;
  const ImkRelightConfig *config =
      IMK_CONFIG_READ (relight, given, &own, error);

  IMK_TRY (config ? check_config (config, error) : IMK_ERROR_CONFIG);
  self->params = params_of (config);
  return IMK_OK;
}

/* @least: channels */
static ImkStatus
check_source (const ImkRelight *self, const ImkRelightSource *source,
    const char *role, uint32_t least, ImkError *error)
{
  const ImkImage *i = &source->image;

  if (i->type != IMK_TYPE_U8 && i->type != IMK_TYPE_U16 &&
      i->type != IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The %s is of type %s; it can be u8, u16 or f32.", role,
        imk_type_name (i->type));
  if (i->channels < least || i->channels == 2 || i->channels > 4)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The %s has %u channels; there can be %s3 or 4.", role, i->channels,
        least == 1 ? "1, " : "");
  for (int k = 0; k < 3; k++)
    if (source->colours[k] >= i->channels)
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "Colour %d of the %s cannot be channel %u, counted from 0: it has %u "
          "channels.",
          k, role, source->colours[k], i->channels);
  return imk_image_check (i, role, i->type, i->channels, self->width,
      self->height, self->on_device, error);
}

ImkStatus
imk_relight_process (ImkRelight *self, const ImkRelightSource *normals,
    const ImkRelightSource *albedo, ImkImage *out, void *stream,
    ImkError *error)
{
  IMK_TRY (check_source (self, normals, "normals", 3, error));
  if (albedo->image.data)
    IMK_TRY (check_source (self, albedo, "albedo", 1, error));
  IMK_TRY (imk_image_check (out, "output", IMK_TYPE_U8, 3, self->width,
      self->height, self->on_device, error));
  memcpy (
      self->params.normal_colours, normals->colours, sizeof (normals->colours));
  memcpy (
      self->params.albedo_colours, albedo->colours, sizeof (albedo->colours));
  IMK_TRY (self->backend->update (self->state, &self->params, error));
  return self->backend->process (self->state,
      (ImkImage[]){normals->image, albedo->image}, out, stream, error);
}

void
imk_relight_free (ImkRelight *self)
{
  if (!self)
    return;
  self->backend->destroy (self->state);
  free (self);
}
