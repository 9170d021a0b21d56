/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/invert.h"

#include <stdlib.h>

#include "core/config.h"
#include "template/invert-backend.h"

struct ImkInvert {
  const ImkFilterBackend *backend;
  void *state; /* the backend's */
  ImkInvertConfig config;
  bool on_device;
};

void
imk_invert_config_init_sized (ImkInvertConfig *config, size_t size)
{
  const ImkInvertConfig defaults = {
      .size = size,
      .width = 1,
      .height = 1,
      .type = IMK_TYPE_U8,
      .channels = 1,
      .amount = 1,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

static ImkStatus
check_config (const ImkInvertConfig *c, ImkError *error)
{
  if (c->width < 1 || c->width > 65535 || c->height < 1 || c->height > 65535)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A frame of %u x %u pixels cannot be processed; width and height can be "
        "1..65535 each.",
        c->width, c->height);
  if (c->type != IMK_TYPE_U8 && c->type != IMK_TYPE_U16)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Samples of type %s cannot be processed; convert them to u8 or u16.",
        imk_type_name (c->type));
  if (c->channels < 1 || c->channels > 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Pixels of %u channels cannot be processed; there can be 1..4.",
        c->channels);
  if (!(c->amount >= 0 && c->amount <= 1)) /* NaN must fail too */
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "amount is %g; it can be 0 (no change) to 1 (negative).", c->amount);
  return IMK_OK;
}

ImkStatus
imk_invert_new (ImkBackend backend, const ImkInvertConfig *given,
    ImkInvert **self, ImkError *error)
{
  ImkInvertConfig own;
  const ImkInvertConfig *config = IMK_CONFIG_READ (invert, given, &own, error);
  const void *table = NULL;
  ImkInvert *made;
  ImkStatus status;

  IMK_TRY (config ? check_config (config, error) : IMK_ERROR_CONFIG);
  IMK_TRY (
      imk_backend_table (backend, &imk_invert_cpu, "invert", &table, error));
  made = calloc (1, sizeof (*made));
  if (!made)
    return IMK_NO_MEMORY (error, "for the object.");
  made->backend = table;
  made->config = *config;
  made->on_device = backend == IMK_BACKEND_CUDA;
  status = made->backend->create (
      NULL, config, config->n_threads, &made->state, error);
  if (status == IMK_OK)
    *self = made;
  else
    free (made);
  return status;
}

ImkStatus
imk_invert_update (
    ImkInvert *self, const ImkInvertConfig *given, ImkError *error)
{
  ImkInvertConfig own;
  const ImkInvertConfig *config = IMK_CONFIG_READ (invert, given, &own, error);
  const ImkInvertConfig *old = &self->config;

  IMK_TRY (config ? check_config (config, error) : IMK_ERROR_CONFIG);
  if (config->width != old->width || config->height != old->height ||
      config->type != old->type || config->channels != old->channels)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The format cannot change from %u x %u %s to %u x %u %s between two "
        "frames; make a new object.",
        old->width, old->height, imk_type_name (old->type), config->width,
        config->height, imk_type_name (config->type));
  IMK_TRY (self->backend->update (self->state, config, error));
  self->config = *config;
  return IMK_OK;
}

ImkStatus
imk_invert_process (ImkInvert *self, const ImkImage *in, ImkImage *out,
    void *stream, ImkError *error)
{
  const ImkInvertConfig *c = &self->config;

  IMK_TRY (imk_image_check (in, "input", c->type, c->channels, c->width,
      c->height, self->on_device, error));
  IMK_TRY (imk_image_check (out, "output", c->type, c->channels, c->width,
      c->height, self->on_device, error));
  return self->backend->process (self->state, in, out, stream, error);
}

void
imk_invert_free (ImkInvert *self)
{
  if (!self)
    return;
  self->backend->destroy (self->state);
  free (self);
}
