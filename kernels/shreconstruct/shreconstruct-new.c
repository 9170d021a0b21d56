/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects are made and freed here, with the block of their state. */
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "shreconstruct/shreconstruct-object.h"

void
imk_shreconstruct_config_init_sized (
    ImkShreconstructConfig *config, size_t size)
{
  const ImkShreconstructConfig defaults = {
      .size = size,
      .gain = 0.5,
      .minimum = -INFINITY,
      .maximum = INFINITY,
      .slew = INFINITY,
      .exclude_cells = 8,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* --- the state ------------------------------------------------------------ */

/* Gives the host's view of the parts out of one block, whose other view begins
 * at @seen. Returns: bytes of the block */
static size_t
lay_out_state (ImkShreconstruct *s, uint8_t *host, uint8_t *seen)
{
  const ImkShreconstructConfig *c = &s->config;
  const struct {
    void **host;
    uint32_t width, height;
    ImkType type;
  } parts[] = {
      [IMK_SHRECONSTRUCT_Q] = {(void **) &s->q, c->n_modes, TERMS,
          IMK_TYPE_F64},
      [IMK_SHRECONSTRUCT_U] = {(void **) &s->u, c->n_modes, TERMS,
          IMK_TYPE_F64},
      [IMK_SHRECONSTRUCT_SLOPES] = {(void **) &s->slopes, 2 * c->n_cells, 1,
          IMK_TYPE_F32},
      [IMK_SHRECONSTRUCT_COMMANDS] = {(void **) &s->commands, c->n_commands, 1,
          IMK_TYPE_F32},
      [IMK_SHRECONSTRUCT_COUNTS] = {(void **) &s->counts,
          sizeof (ImkShreconstructCounts), 1, IMK_TYPE_U8},
  };
  size_t at = 0;

  for (int i = 0; i < IMK_SHRECONSTRUCT_N_PARTS; i++) {
    ImkImage *image = &s->frame.state[i];

    *image = (ImkImage){.width = parts[i].width,
        .height = parts[i].height,
        .channels = 1,
        .type = parts[i].type,
        .location = s->device ? IMK_LOCATION_HOST_MAPPED : IMK_LOCATION_HOST};
    image->stride = imk_image_row_size (image);
    if (host) {
      *parts[i].host = host + at;
      image->data = seen + at;
    }
    at += (image->stride * image->height + 255) / 256 * 256;
  }
  return at;
}

static ImkStatus
make_state (ImkShreconstruct *s, ImkError *error)
{
  size_t size = lay_out_state (s, NULL, NULL);
  void *host = NULL, *mapped = NULL;

  if (s->device) {
    ImkStatus status = s->device->alloc_pinned (size, &host, &mapped, error);

    if (status != IMK_OK)
      return status;
    memset (host, 0, size);
  } else {
    mapped = host = calloc (1, size);
    if (!host)
      return imk_shreconstruct_no_memory (error);
  }
  s->block = host;
  lay_out_state (s, host, mapped);
  return IMK_OK;
}

/* --- the backend ---------------------------------------------------------- */

/* Returns: (nullable): a copy, to be freed */
static float *
copy_floats (const float *values, size_t n)
{
  float *copy = malloc (n * sizeof (*copy));

  if (copy)
    memcpy (copy, values, n * sizeof (*copy));
  return copy;
}

/* @matrix: R as it is stored */
static ImkStatus
make_backend (ImkShreconstruct *s, const ImkShreconstructConfig *c,
    const float *matrix, ImkError *error)
{
  bool has_limits = imk_shreconstruct_has_limits (c);
  ImkStatus status = IMK_OK;

  if (c->modes && has_limits)
    status = imk_shreconstruct_make_inverse (c, &s->inverse, error);
  if (status == IMK_OK && c->modes) {
    s->modes = copy_floats (c->modes, (size_t) c->n_commands * c->n_modes);
    status = s->modes ? IMK_OK : imk_shreconstruct_no_memory (error);
  }
  s->config.matrix = matrix;
  if (status == IMK_OK)
    status =
        s->backend->create (&s->config, s->inverse, &s->backend_state, error);
  s->config.matrix = s->config.modes = s->config.interaction = NULL;
  return status;
}

/* With R as it is stored. */
static ImkStatus
make_stored (
    ImkShreconstruct *s, const ImkShreconstructConfig *c, ImkError *error)
{
  uint32_t n_slopes = 2 * c->n_cells;
  float *rounded;
  ImkStatus status;

  if (c->storage == IMK_SHRECONSTRUCT_STORAGE_F32)
    return make_backend (s, c, c->matrix, error);
  rounded = copy_floats (c->matrix, (size_t) c->n_modes * n_slopes);
  if (!rounded)
    return imk_shreconstruct_no_memory (error);
  imk_shreconstruct_round (c->storage, rounded, c->n_modes, n_slopes);
  status = make_backend (s, c, rounded, error);
  free (rounded);
  return status;
}

/* @table: of the backend */
static ImkStatus
check_backend (ImkBackend backend, const ImkShreconstructConfig *c,
    const void **table, ImkError *error)
{
  ImkStatus status = imk_backend_table (
      backend, &imk_shreconstruct_cpu, "shreconstruct", table, error);

  if (status == IMK_OK && backend == IMK_BACKEND_CUDA &&
      c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE)
    status = imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "invalid-policy=exclude is computed by the CPU alone: take backend=cpu "
        "or auto, or the policy zero or hold.");
  return status;
}

ImkStatus
imk_shreconstruct_new (ImkBackend backend, const ImkShreconstructConfig *given,
    ImkShreconstruct **self, ImkError *error)
{
  ImkShreconstructConfig own;
  const ImkShreconstructConfig *config;
  const void *table = NULL;
  ImkShreconstruct *s;
  ImkStatus status;

  imk_shreconstruct_config_init (&own);
  config =
      imk_config_read (given, &own, "imk_shreconstruct_config_init", error);
  status = config ? imk_shreconstruct_check_config (config, error)
                  : IMK_ERROR_CONFIG;
  if (status == IMK_OK)
    status = check_backend (backend, config, &table, error);
  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (!s)
    return imk_shreconstruct_no_memory (error);
  s->backend = table;
  s->config = *config; /* but for arrays, which are copied */
  if (backend == IMK_BACKEND_CUDA)
    status = imk_device_get (&s->device, error);
  if (status == IMK_OK)
    status = imk_shreconstruct_choose_loops (&s->loops, error);
  if (status == IMK_OK)
    status = imk_shreconstruct_make_controller (s, config, error);
  if (status == IMK_OK)
    status = make_state (s, error);
  if (status == IMK_OK)
    status = make_stored (s, config, error);
  if (status == IMK_OK && config->invalid == IMK_SHRECONSTRUCT_INVALID_HOLD) {
    s->held = imk_shreconstruct_held_new (config);
    status = s->held ? IMK_OK : imk_shreconstruct_no_memory (error);
  }
  if (status != IMK_OK) {
    imk_shreconstruct_free (s);
    return status;
  }
  imk_shreconstruct_reset (s);
  *self = s;
  return IMK_OK;
}

void
imk_shreconstruct_free (ImkShreconstruct *self)
{
  if (!self)
    return;
  if (self->backend_state)
    self->backend->destroy (self->backend_state);
  if (self->device && self->block)
    self->device->free_pinned (self->block);
  else
    free (self->block);
  free (self->feedback); /* and the rest of the controller */
  free (self->modes);
  free (self->inverse);
  imk_shreconstruct_held_free (self->held);
  free (self);
}

void
imk_shreconstruct_leave_device (ImkShreconstruct *self)
{
  const ImkDevice *device = self->device;
  uint8_t *pinned = self->block, *block;
  size_t size;

  if (!device)
    return;
  self->backend->destroy (self->backend_state);
  self->backend_state = NULL;
  self->device = NULL;
  size = lay_out_state (self, NULL, NULL);
  self->block = block = malloc (size);
  if (block)
    memcpy (block, pinned, size);
  lay_out_state (self, block, block);
  device->free_pinned (pinned);
}
