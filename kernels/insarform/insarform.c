/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarform.h"

#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/cpu.h"
#include "core/image.h"
#include "insarform/insarform-band.h"
#include "insarform/insarform-filter.h"
#include "insarform/insarform-fringes.h"
#include "insarform/insarform-private.h"

enum { LINES_AT_A_TIME = 32 }; /* about: less work is not worth a thread */

/* Lines -> fringes, if measured -> common band, if any -> cells -> filter, if
 * any. Each stage keeps
 * what it needs, and advance () moves on what the next one has room for. */
struct ImkInsarform {
  ImkInsarformCells cells;
  ImkType type;                 /* of the lines that are pushed */
  ImkInsarformFringes *fringes; /* nullable */
  ImkInsarformBand *band;       /* nullable */
  ImkInsarformFilter *filter;   /* nullable */
  float *raw;                   /* a row for the filter */
  uint32_t pushed, added;       /* lines: by the caller, to the cells */
  uint32_t made, row;           /* rows: of the cells, of the caller */
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
      .filter_window = 32,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* --- validation ----------------------------------------------------------- */

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

static bool
is_transform (uint32_t window, uint32_t least)
{
  return window >= least && window <= IMK_INSARFORM_MAX_TRANSFORM &&
         (window & (window - 1)) == 0;
}

static ImkStatus
check_transforms (const ImkInsarformConfig *c, ImkError *error)
{
  uint32_t size = c->width < c->height ? c->width : c->height;

  if (c->fringe_window && !is_transform (c->fringe_window, 16))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "fringe-window is %u; it must be 16, 32, 64 or 128.", c->fringe_window);
  if (c->fringe_window > size)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "fringe-window is %u, and the images have %u lines of %u columns. Take "
        "a smaller window, or flatten=none.",
        c->fringe_window, c->height, c->width);
  if (!(c->filter_alpha >= 0 && c->filter_alpha <= 1))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "filter-alpha is %g; it must be a number from 0 to 1.",
        c->filter_alpha);
  if (!(c->range_band >= 0 && c->range_band <= 1 && c->azimuth_band >= 0 &&
          c->azimuth_band <= 1))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "range-bandwidth is %g and azimuth-bandwidth %g; both must be numbers "
        "from 0 to 1, parts of the sampling rate.",
        c->range_band, c->azimuth_band);
  if (!is_transform (c->filter_window, 8))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "filter-window is %u; it must be 8, 16, 32, 64 or 128.",
        c->filter_window);
  return IMK_OK;
}

static ImkStatus
check_config (const ImkInsarformConfig *c, ImkError *error)
{
  if (c->type != IMK_TYPE_CI16 && c->type != IMK_TYPE_CF32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Images of %s make no interferogram; ci16 and cf32 do.",
        imk_type_name (c->type));
  if (c->width - 1 >= 1 << 24 || c->height - 1 >= 1 << 30)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The images have %u lines of %u columns; they can have 1 to %u lines "
        "of 1 to %u.",
        c->height, c->width, 1u << 30, 1u << 24);
  IMK_TRY (check_looks ("looks-x", c->looks_x, c->width, error));
  IMK_TRY (check_looks ("looks-y", c->looks_y, c->height, error));
  IMK_TRY (check_window ("window-x", c->window_x, error));
  IMK_TRY (check_window ("window-y", c->window_y, error));
  return check_transforms (c, error);
}

/* --- making --------------------------------------------------------------- */

ImkStatus
imk_insarform_new (ImkBackend backend, const ImkInsarformConfig *config,
    ImkInsarform **self, ImkError *error)
{
  ImkInsarformConfig own;
  ImkCpuLevel level;
  ImkInsarform *s;
  ImkStatus status = IMK_OK;

  config = IMK_CONFIG_READ (insarform, config, &own, error);
  IMK_TRY (config ? check_config (config, error) : IMK_ERROR_CONFIG);
  if (backend != IMK_BACKEND_CPU)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "Interferograms are formed on the CPU alone.");
  IMK_TRY (imk_cpu_level (&level, error));
  s = calloc (1, sizeof (*s));
  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  s->cells.config = *config;
  s->type = config->type;
  s->cells.width = config->width / config->looks_x;
  s->cells.height = config->height / config->looks_y;
  s->cells.n_rows =
      config->window_y + imk_div_up (LINES_AT_A_TIME, config->looks_y);
  s->cells.sums = calloc (
      (size_t) s->cells.n_rows * s->cells.width, sizeof (ImkInsarformSums));
  s->cells.columns = calloc (s->cells.width, sizeof (ImkInsarformSums));
  s->raw = calloc (
      (size_t) s->cells.width * IMK_INSARFORM_N_CHANNELS, sizeof (float));
  if (!s->cells.sums || !s->cells.columns || !s->raw) {
    imk_insarform_free (s);
    return IMK_NO_MEMORY (error, "for %u rows of %u cells.", s->cells.n_rows,
        config->width / config->looks_x);
  }
  if (config->fringe_window)
    status = imk_insarform_fringes_new (config, &s->fringes, error);
  if (status == IMK_OK &&
      (config->range_band > 0 || config->azimuth_band > 0)) {
    status = imk_insarform_band_new (config, &s->band, error);
    s->cells.config.type = IMK_TYPE_CF32; /* what it makes */
  }
  if (status == IMK_OK && config->filter_alpha > 0)
    status = imk_insarform_filter_new (config, &s->filter, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_insarform_free (s);
  return status;
}

void
imk_insarform_free (ImkInsarform *self)
{
  if (!self)
    return;
  imk_insarform_fringes_free (self->fringes);
  imk_insarform_band_free (self->band);
  imk_insarform_filter_free (self->filter);
  free (self->raw);
  free (self->cells.sums);
  free (self->cells.columns);
  free (self);
}

void
imk_insarform_rewind (ImkInsarform *self)
{
  self->pushed = self->added = self->made = self->row = 0;
  if (self->fringes)
    imk_insarform_fringes_rewind (self->fringes);
  if (self->band)
    imk_insarform_band_rewind (self->band);
  if (self->filter)
    imk_insarform_filter_rewind (self->filter);
}

/* --- stages --------------------------------------------------------------- */

/* Row r of cells is row r % n_rows of the sums; those of the window of the next
 * row, and some being filled, have room. */
static uint32_t
cells_room (const ImkInsarform *self)
{
  const ImkInsarformCells *c = &self->cells;
  uint64_t first = self->made > c->config.window_y / 2
                       ? self->made - c->config.window_y / 2
                       : 0;
  uint64_t rows = first + c->n_rows;
  uint64_t lines = (rows < c->height ? rows : c->height) * c->config.looks_y;

  return (uint32_t) (lines - self->added);
}

static bool
cells_are_ready (const ImkInsarform *self)
{
  const ImkInsarformCells *c = &self->cells;
  uint32_t last = self->made + c->config.window_y / 2;

  if (last >= c->height)
    last = c->height - 1;
  return self->made < c->height && self->added / c->config.looks_y > last;
}

static void
add_lines (ImkInsarform *self, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase)
{
  imk_insarform_cpu_add (
      &self->cells, self->added, reference, secondary, phase);
  self->added += reference->height;
}

/* Lines for the stage behind the fringes. */
static uint32_t
next_room (const ImkInsarform *self)
{
  return self->band ? imk_insarform_band_room (self->band) : cells_room (self);
}

static void
pass_lines (ImkInsarform *self, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase)
{
  if (self->band)
    imk_insarform_band_push (self->band, reference, secondary, phase);
  else
    add_lines (self, reference, secondary, phase);
}

static void
make_row (ImkInsarform *self, float *out)
{
  imk_insarform_cpu_process (&self->cells, self->made, out);
  self->made++;
}

/* Moves lines and rows on until the caller has to push, or to process. */
static void
advance (ImkInsarform *self)
{
  bool moves = true;

  while (moves) {
    ImkImage reference, secondary, phase;

    moves = false;
    if (self->filter && cells_are_ready (self) &&
        !imk_insarform_filter_is_ready (self->filter)) {
      make_row (self, self->raw);
      imk_insarform_filter_push (self->filter, self->raw);
      moves = true;
    }
    if (self->band && cells_room (self) > 0 &&
        imk_insarform_band_pull (self->band, &reference, &secondary, &phase)) {
      add_lines (self, &reference, &secondary, &phase);
      moves = true;
    }
    if (self->fringes && next_room (self) > 0 &&
        imk_insarform_fringes_is_ready (self->fringes)) {
      imk_insarform_fringes_pull (
          self->fringes, next_room (self), &reference, &secondary, &phase);
      pass_lines (self, &reference, &secondary, &phase);
      moves = true;
    }
  }
}

/* --- lines ---------------------------------------------------------------- */

/* Lines below the last row of cells are not needed. */
uint32_t
imk_insarform_room (const ImkInsarform *self)
{
  const ImkInsarformCells *c = &self->cells;

  if (self->added >= c->height * c->config.looks_y)
    return 0;
  return self->fringes ? imk_insarform_fringes_room (self->fringes)
                       : next_room (self);
}

uint32_t
imk_insarform_pushed (const ImkInsarform *self)
{
  return self->pushed;
}

static ImkStatus
check_lines (const ImkInsarform *self, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase, ImkError *error)
{
  const ImkInsarformConfig *c = &self->cells.config;
  uint32_t n = reference ? reference->height : 0;

  IMK_TRY (imk_image_check (
      reference, "reference", self->type, 1, c->width, n, false, error));
  IMK_TRY (imk_image_check (
      secondary, "secondary", self->type, 1, c->width, n, false, error));
  if (phase)
    IMK_TRY (imk_image_check (
        phase, "phase", IMK_TYPE_F32, 1, c->width, n, false, error));
  if (phase && self->fringes)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The phase to remove is measured (fringe-window is %u), so none can "
        "be given.",
        c->fringe_window);
  if (n > imk_insarform_room (self))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "%u lines come, and there is room for %u.", n,
        imk_insarform_room (self));
  return IMK_OK;
}

ImkStatus
imk_insarform_push (ImkInsarform *self, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase, ImkError *error)
{
  IMK_TRY (check_lines (self, reference, secondary, phase, error));
  self->pushed += reference->height;
  if (self->fringes)
    imk_insarform_fringes_push (self->fringes, reference, secondary);
  else
    pass_lines (self, reference, secondary, phase);
  advance (self);
  return IMK_OK;
}

/* --- rows ----------------------------------------------------------------- */

uint32_t
imk_insarform_row (const ImkInsarform *self)
{
  return self->row;
}

bool
imk_insarform_is_ready (const ImkInsarform *self)
{
  return self->filter ? imk_insarform_filter_is_ready (self->filter)
                      : cells_are_ready (self);
}

ImkStatus
imk_insarform_process (ImkInsarform *self, ImkImage *out, ImkError *error)
{
  IMK_TRY (imk_image_check (out, "output", IMK_TYPE_F32,
      IMK_INSARFORM_N_CHANNELS, self->cells.width, 1, false, error));
  if (!imk_insarform_is_ready (self))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Row %u of %u rows of cells is not ready.", self->row,
        self->cells.height);
  if (self->filter)
    imk_insarform_filter_pull (self->filter, out->data);
  else
    make_row (self, out->data);
  self->row++;
  advance (self);
  return IMK_OK;
}
