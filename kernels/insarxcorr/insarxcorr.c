/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarxcorr/insarxcorr.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "insarxcorr/insarxcorr-backend.h"

struct ImkInsarxcorr {
  const ImkInsarxcorrBackend *backend;
  bool on_device;
  void *state;
  ImkInsarxcorrPlan plan;
  uint32_t row;
  atomic_uint pushed[IMK_INSARXCORR_N_SIDES]; /* also while a row is measured */
};

void
imk_insarxcorr_config_init (ImkInsarxcorrConfig *config)
{
  *config = (ImkInsarxcorrConfig){
      .type = IMK_TYPE_CI16,
      .nx = 16,
      .ny = 32,
      .grid = IMK_INSARXCORR_GRID_GMTSAR,
      .xsearch = 64,
      .ysearch = 64,
      .range_interp = 2,
      .interp = 16,
      .method = IMK_INSARXCORR_FREQ,
      .min_valid = 0.5,
      .min_correlation = 18,
  };
}

/* ------------------------------------------------------------------------
 * Validation, the same for both backends. The comparisons are written so that
 * a NaN fails them. */

static ImkStatus
check_range (const char *property, int64_t value, int64_t least, int64_t most,
    ImkError *error)
{
  if (value >= least && value <= most)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %lld; it can be %lld to %lld.", property, (long long) value,
      (long long) least, (long long) most);
}

static ImkStatus
check_search (const char *property, uint32_t value, ImkError *error)
{
  if (value >= 4 && value <= 1024 && (value & (value - 1)) == 0)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %u; it must be a power of two from 4 to 1024.", property, value);
}

static ImkStatus
check_params (const ImkInsarxcorrConfig *c, ImkError *error)
{
  ImkStatus status;

  if ((status = check_range ("nx", c->nx, 1, 1000000, error)) != IMK_OK ||
      (status = check_range ("ny", c->ny, 1, 1000000, error)) != IMK_OK ||
      (status = check_range (
           "grid", c->grid, 0, IMK_INSARXCORR_GRID_EVEN, error)) != IMK_OK ||
      (status = check_range (
           "method", c->method, 0, IMK_INSARXCORR_TIME4, error)) != IMK_OK ||
      (status = check_range ("range-interp", c->range_interp, 1, 16, error)) !=
          IMK_OK ||
      (status = check_range ("interp", c->interp, 1, 64, error)) != IMK_OK ||
      (status = check_range ("rshift", c->rshift, -1000000, 1000000, error)) !=
          IMK_OK ||
      (status = check_range ("ashift", c->ashift, -1000000, 1000000, error)) !=
          IMK_OK ||
      (status = check_search ("xsearch", c->xsearch, error)) != IMK_OK ||
      (status = check_search ("ysearch", c->ysearch, error)) != IMK_OK)
    return status;
  if (c->xsearch * c->ysearch > 1 << 18)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "xsearch %u and ysearch %u make patches of %u x %u samples; the "
        "product of the searches can be %u at most.",
        c->xsearch, c->ysearch, 4 * c->xsearch, 4 * c->ysearch, 1u << 18);
  if (!(c->prf_ratio > -1 && c->prf_ratio < 1))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The PRF of the secondary differs from that of the reference by a "
        "factor of %g; it must be above 0 and below 2.",
        1 + c->prf_ratio);
  if (!(c->min_valid >= 0 && c->min_valid <= 1))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "min-valid is %g; it can be 0 to 1.", c->min_valid);
  if (!(c->min_correlation >= 0 && c->min_correlation <= 100))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The least correlation is %g; it can be 0 to 100.", c->min_correlation);
  return IMK_OK;
}

static ImkStatus
check_images (const ImkInsarxcorrConfig *c, ImkError *error)
{
  static const char *const names[] = {"reference", "secondary"};
  uint32_t width = 6 * c->xsearch, height = 6 * c->ysearch;

  if (c->type != IMK_TYPE_CI16 && c->type != IMK_TYPE_CF32 &&
      c->type != IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Images of %s cannot be correlated; ci16, cf32 and f32 can.",
        imk_type_name (c->type));
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    if (c->width[s] - 1 >= 1 << 24 || c->height[s] - 1 >= 1 << 30)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The %s has %u lines of %u columns; it can have 1 to %u lines of 1 "
          "to %u.",
          names[s], c->height[s], c->width[s], 1u << 30, 1u << 24);
  if (c->width[0] < width || c->height[0] < height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The reference has %u lines of %u columns; xsearch %u and ysearch %u "
        "need at least %u lines of %u. Take a smaller search.",
        c->height[0], c->width[0], c->xsearch, c->ysearch, height, width);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Making. */

static ImkStatus
find_backend (
    ImkBackend backend, const ImkInsarxcorrBackend **table, ImkError *error)
{
  if (backend == IMK_BACKEND_CPU) {
    *table = &imk_insarxcorr_cpu;
    return IMK_OK;
  }
  if (backend == IMK_BACKEND_CUDA) {
    const void *found = NULL;
    ImkStatus status =
        imk_backend_find (IMK_MODULE_CUDA_FFT, "insarxcorr", &found, error);

    *table = found;
    return status;
  }
  return imk_error_set (
      error, IMK_ERROR_CONFIG, "There is no backend %d.", (int) backend);
}

ImkStatus
imk_insarxcorr_new (ImkBackend backend, const ImkInsarxcorrConfig *config,
    ImkInsarxcorr **self, ImkError *error)
{
  const ImkInsarxcorrBackend *table = NULL;
  ImkInsarxcorr *s;
  ImkStatus status = check_params (config, error);

  if (status == IMK_OK)
    status = check_images (config, error);
  if (status == IMK_OK)
    status = find_backend (backend, &table, error);
  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  s->backend = table;
  s->on_device = backend == IMK_BACKEND_CUDA;
  status = imk_insarxcorr_plan_init (&s->plan, config, error);
  if (status == IMK_OK)
    status = table->create (&s->plan, &s->state, error);
  if (status != IMK_OK) {
    imk_insarxcorr_plan_clear (&s->plan);
    free (s);
    return status;
  }
  *self = s;
  return IMK_OK;
}

void
imk_insarxcorr_free (ImkInsarxcorr *self)
{
  if (!self)
    return;
  self->backend->destroy (self->state);
  imk_insarxcorr_plan_clear (&self->plan);
  free (self);
}

/* ------------------------------------------------------------------------
 * Lines. */

/* Returns: the first line of @side that is still wanted; past the last row
 * none is */
static uint32_t
first_wanted (const ImkInsarxcorr *s, ImkInsarxcorrSide side)
{
  return s->row < s->plan.config.ny
             ? imk_insarxcorr_plan_lines (&s->plan, side, s->row).first
             : s->plan.config.height[side];
}

static uint32_t
smaller (uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

void
imk_insarxcorr_rewind (ImkInsarxcorr *self, ImkInsarxcorrSide side)
{
  self->row = 0;
  self->pushed[side] = 0;
}

/* Lines before the first wanted one pass through, but for those in a gap
 * between two rows: their row's lines are still in use. */
uint32_t
imk_insarxcorr_room (const ImkInsarxcorr *self, ImkInsarxcorrSide side)
{
  uint32_t end = first_wanted (self, side) + self->plan.bands[side].n_lines;

  end = smaller (end, self->plan.config.height[side]);
  return end > self->pushed[side] ? end - self->pushed[side] : 0;
}

uint32_t
imk_insarxcorr_pushed (const ImkInsarxcorr *self, ImkInsarxcorrSide side)
{
  return self->pushed[side];
}

ImkStatus
imk_insarxcorr_push (ImkInsarxcorr *self, ImkInsarxcorrSide side,
    const ImkImage *lines, void *stream, ImkError *error)
{
  const ImkInsarxcorrConfig *c = &self->plan.config;
  uint32_t room = imk_insarxcorr_room (self, side);
  uint32_t first = self->pushed[side], skipped;
  uint32_t wanted = first_wanted (self, side);
  ImkStatus status = imk_image_check (lines, "input", c->type, 1,
      c->width[side], lines ? lines->height : 0, false, error);
  ImkImage rest;

  if (status != IMK_OK)
    return status;
  if (lines->height > room)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "%u lines come, and there is room for %u.", lines->height, room);
  skipped = wanted > first ? smaller (wanted - first, lines->height) : 0;
  rest = *lines;
  rest.data = (uint8_t *) lines->data + skipped * lines->stride;
  rest.height -= skipped;
  if (rest.height)
    status = self->backend->push (
        self->state, side, first + skipped, &rest, stream, error);
  if (status == IMK_OK)
    self->pushed[side] += lines->height;
  return status;
}

/* ------------------------------------------------------------------------
 * Rows. */

uint32_t
imk_insarxcorr_row (const ImkInsarxcorr *self)
{
  return self->row;
}

bool
imk_insarxcorr_is_ready (const ImkInsarxcorr *self)
{
  if (self->row >= self->plan.config.ny)
    return false;
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    if (self->pushed[s] <
        imk_insarxcorr_plan_lines (&self->plan, s, self->row).end)
      return false;
  return true;
}

ImkStatus
imk_insarxcorr_process (
    ImkInsarxcorr *self, ImkImage *out, void *stream, ImkError *error)
{
  ImkStatus status = imk_image_check (out, "output", IMK_TYPE_F64, 1,
      IMK_INSARXCORR_N_FIELDS, self->plan.config.nx, self->on_device, error);

  if (status != IMK_OK)
    return status;
  if (!imk_insarxcorr_is_ready (self))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Row %u of %u rows of patches is not ready.", self->row,
        self->plan.config.ny);
  return self->backend->process (self->state, self->row, out, stream, error);
}

void
imk_insarxcorr_advance (ImkInsarxcorr *self)
{
  if (self->row < self->plan.config.ny)
    self->row++;
}
