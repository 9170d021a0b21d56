/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarform.h"

#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/cpu.h"
#include "insarform/insarform-private.h"

struct ImkInsarform {
  ImkInsarformCells cells;
  uint32_t pushed; /* lines */
  uint32_t row;    /* that is made next */
};

void
imk_insarform_config_init_sized (ImkInsarformConfig *config, size_t size)
{
  const ImkInsarformConfig defaults = {
      .size = size,
      .type = IMK_TYPE_CI16,
      .looks_x = 1,
      .looks_y = 1,
      .window_x = 5,
      .window_y = 5,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* Returns: as imk_config_read () */
static const ImkInsarformConfig *
read_config (
    const ImkInsarformConfig *config, ImkInsarformConfig *own, ImkError *error)
{
  imk_insarform_config_init (own);
  return imk_config_read (config, own, "imk_insarform_config_init", error);
}

/* --- validation
 * --------------------------------------------------------------- */

static ImkStatus
check_looks (
    const char *property, uint32_t looks, uint32_t size, ImkError *error)
{
  uint32_t most =
      size < IMK_INSARFORM_MAX_LOOKS ? size : IMK_INSARFORM_MAX_LOOKS;

  if (looks >= 1 && looks <= most)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %u; it can be 1 to %u for these images.", property, looks, most);
}

static ImkStatus
check_window (const char *property, uint32_t window, ImkError *error)
{
  if (window % 2 && window <= IMK_INSARFORM_MAX_WINDOW)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %u; it must be an odd number from 1 to %d.", property, window,
      IMK_INSARFORM_MAX_WINDOW);
}

static ImkStatus
check_config (const ImkInsarformConfig *c, ImkError *error)
{
  ImkStatus status;

  if (c->type != IMK_TYPE_CI16 && c->type != IMK_TYPE_CF32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Images of %s make no interferogram; ci16 and cf32 do.",
        imk_type_name (c->type));
  if (c->width - 1 >= 1 << 24 || c->height - 1 >= 1 << 30)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The images have %u lines of %u columns; they can have 1 to %u lines "
        "of 1 to %u.",
        c->height, c->width, 1u << 30, 1u << 24);
  if ((status = check_looks ("looks-x", c->looks_x, c->width, error)) !=
          IMK_OK ||
      (status = check_looks ("looks-y", c->looks_y, c->height, error)) !=
          IMK_OK ||
      (status = check_window ("window-x", c->window_x, error)) != IMK_OK)
    return status;
  return check_window ("window-y", c->window_y, error);
}

/* --- making
 * --------------------------------------------------------------------- */

ImkStatus
imk_insarform_new (ImkBackend backend, const ImkInsarformConfig *given,
    ImkInsarform **self, ImkError *error)
{
  ImkInsarformConfig own;
  const ImkInsarformConfig *config = read_config (given, &own, error);
  ImkStatus status = config ? check_config (config, error) : IMK_ERROR_CONFIG;
  ImkCpuLevel level;
  ImkInsarform *s;

  if (status != IMK_OK)
    return status;
  if (backend != IMK_BACKEND_CPU)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "Interferograms are formed on the CPU alone.");
  status = imk_cpu_level (&level, error);
  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  s->cells.config = *config;
  s->cells.width = config->width / config->looks_x;
  s->cells.height = config->height / config->looks_y;
  s->cells.n_rows = config->window_y + 1;
  s->cells.sums = calloc (
      (size_t) s->cells.n_rows * s->cells.width, sizeof (ImkInsarformSums));
  s->cells.columns = calloc (s->cells.width, sizeof (ImkInsarformSums));
  if (!s->cells.sums || !s->cells.columns) {
    imk_insarform_free (s);
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for %u rows of %u cells.", config->window_y + 1,
        config->width / config->looks_x);
  }
  *self = s;
  return IMK_OK;
}

void
imk_insarform_free (ImkInsarform *self)
{
  if (!self)
    return;
  free (self->cells.sums);
  free (self->cells.columns);
  free (self);
}

void
imk_insarform_rewind (ImkInsarform *self)
{
  self->pushed = self->row = 0;
}

/* --- lines
 * ------------------------------------------------------------------------ */

/* Row r of cells is row r % n_rows of the sums; those of the window of the next
 * row, and one being filled, have room. */
uint32_t
imk_insarform_room (const ImkInsarform *self)
{
  const ImkInsarformCells *c = &self->cells;
  uint64_t first = self->row > c->config.window_y / 2
                       ? self->row - c->config.window_y / 2
                       : 0;
  uint64_t rows = first + c->n_rows;
  uint64_t lines = (rows < c->height ? rows : c->height) * c->config.looks_y;

  return (uint32_t) (lines - self->pushed);
}

uint32_t
imk_insarform_pushed (const ImkInsarform *self)
{
  return self->pushed;
}

ImkStatus
imk_insarform_push (ImkInsarform *self, const ImkImage *reference,
    const ImkImage *secondary, ImkError *error)
{
  const ImkInsarformConfig *c = &self->cells.config;
  uint32_t room = imk_insarform_room (self);
  uint32_t n = reference ? reference->height : 0;
  ImkStatus status = imk_image_check (
      reference, "reference", c->type, 1, c->width, n, false, error);

  if (status == IMK_OK)
    status = imk_image_check (
        secondary, "secondary", c->type, 1, c->width, n, false, error);
  if (status != IMK_OK)
    return status;
  if (n > room)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "%u lines come, and there is room for %u.", n, room);
  imk_insarform_cpu_add (&self->cells, self->pushed, reference, secondary);
  self->pushed += n;
  return IMK_OK;
}

/* --- rows
 * ------------------------------------------------------------------------- */

uint32_t
imk_insarform_row (const ImkInsarform *self)
{
  return self->row;
}

bool
imk_insarform_is_ready (const ImkInsarform *self)
{
  const ImkInsarformCells *c = &self->cells;
  uint32_t last = self->row + c->config.window_y / 2;

  if (last >= c->height)
    last = c->height - 1;
  return self->row < c->height && self->pushed / c->config.looks_y > last;
}

ImkStatus
imk_insarform_process (ImkInsarform *self, ImkImage *out, ImkError *error)
{
  ImkStatus status = imk_image_check (out, "output", IMK_TYPE_F32,
      IMK_INSARFORM_N_CHANNELS, self->cells.width, 1, false, error);

  if (status != IMK_OK)
    return status;
  if (!imk_insarform_is_ready (self))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Row %u of %u rows of cells is not ready.", self->row,
        self->cells.height);
  imk_insarform_cpu_process (&self->cells, self->row, out->data);
  self->row++;
  return IMK_OK;
}
