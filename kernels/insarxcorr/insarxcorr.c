/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarxcorr.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/limits.h"
#include "imk/device.h"
#include "insarxcorr/insarxcorr-backend.h"

/* One backend state, and where it lives. */
typedef struct Part {
  void *state;
  void *context; /* NULL: the context of the caller */
  void *stream, *done;
} Part;

struct ImkInsarxcorr {
  const ImkInsarxcorrBackend *backend;
  bool on_device;
  const ImkDevice *device; /* for several devices, else NULL */
  void *ready; /* event after the earlier work of the caller's stream */
  Part parts[IMK_INSARXCORR_MAX_DEVICES];
  ImkInsarxcorrPlan plan;
  /* A side may push while the other side, or a row, changes these. */
  atomic_uint row, pushed[IMK_INSARXCORR_N_SIDES];
  atomic_ullong bytes;
};

void
imk_insarxcorr_config_init_sized (ImkInsarxcorrConfig *config, size_t size)
{
  const ImkInsarxcorrConfig defaults = {
      .size = size,
      .type = IMK_TYPE_CI16,
      .mode = IMK_INSARXCORR_COMPAT,
      .nx = 16,
      .ny = 32,
      .grid = IMK_INSARXCORR_GRID_GMTSAR,
      .step_x = 32,
      .step_y = 32,
      .xsearch = 64,
      .ysearch = 64,
      .range_interp = 2,
      .azimuth_interp = 2,
      .interp = 16,
      .method = IMK_INSARXCORR_FREQ,
      .min_valid = 0.5,
      .min_correlation = 18,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* ------------------------------------------------------------------------
 * Validation, the same for both backends. The comparisons are written so that
 * a NaN fails them. */

static ImkStatus
check_limits (const ImkInsarxcorrConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"nx", c->nx, 1, 1000000},
      {"ny", c->ny, 1, 1000000},
      {"mode", c->mode, 0, IMK_INSARXCORR_PRECISE},
      {"grid", c->grid, 0, IMK_INSARXCORR_GRID_STEP},
      {"step-x", c->step_x, 1, 1 << 24},
      {"step-y", c->step_y, 1, 1 << 30},
      {"method", c->method, 0, IMK_INSARXCORR_TIME4},
      {"range-interp", c->range_interp, 1, 16},
      {"azimuth-interp", c->azimuth_interp, 1, 4},
      {"interp", c->interp, 1, 64},
      {"rshift", c->rshift, -1000000, 1000000},
      {"ashift", c->ashift, -1000000, 1000000},
      {"xsearch", c->xsearch, 4, 1024},
      {"ysearch", c->ysearch, 4, 1024},
      {"window-width", c->window_width ? c->window_width : 8, 8, 2048},
      {"window-height", c->window_height ? c->window_height : 8, 8, 2048},
      {"The number of further devices", c->n_devices, 0,
          IMK_INSARXCORR_MAX_DEVICES - 1},
      {"min-valid", c->min_valid, 0, 1},
      {NULL},
  };

  return imk_limits_check (limits, error);
}

static ImkStatus
check_reals (const ImkInsarxcorrConfig *c, ImkError *error)
{
  if (!(c->prf_ratio > -1 && c->prf_ratio < 1))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The PRF of the secondary differs from that of the reference by a "
        "factor of %g; it must be above 0 and below 2.",
        1 + c->prf_ratio);
  if (!(c->min_correlation >= 0 && c->min_correlation <= 100) &&
      c->min_correlation != IMK_INSARXCORR_SIGNIFICANT)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The least correlation is %g; it can be 0 to 100, or -1 for "
        "what is significant.",
        c->min_correlation);
  return IMK_OK;
}

static ImkStatus
check_sizes (const ImkInsarxcorrPlan *plan, ImkError *error)
{
  const ImkInsarxcorrConfig *c = &plan->config;
  const ImkInsarxcorrFine *f = &plan->fine;

  if (c->mode == IMK_INSARXCORR_COMPAT) {
    if (c->xsearch * c->ysearch > 1 << 18)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "xsearch %u and ysearch %u make patches of %u x %u samples; the "
          "product of the searches can be %u at most.",
          c->xsearch, c->ysearch, 4 * c->xsearch, 4 * c->ysearch, 1u << 18);
    return IMK_OK;
  }
  if (f->width[1] > 4096 || f->height[1] > 4096 ||
      (uint64_t) f->width[1] * f->height[1] > 1 << 22)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A window of %u x %u samples and a search of %u x %u either way, %u "
        "and %u times finer, make %u x %u samples; 4096 either way and %u in "
        "all are the most. Take a smaller window or search.",
        c->window_width, c->window_height, c->xsearch, c->ysearch, f->interp_x,
        f->interp_y, f->width[1], f->height[1], 1u << 22);
  return IMK_OK;
}

static ImkStatus
check_gross_offsets (const ImkInsarxcorrConfig *c, ImkError *error)
{
  for (size_t i = 0; c->gross_offsets && i < (size_t) c->nx * c->ny; i++)
    for (int axis = 0; axis < 2; axis++) {
      double value = c->gross_offsets[2 * i + axis];

      if (!(value >= -1000000 && value <= 1000000))
        return imk_error_set (error, IMK_ERROR_CONFIG,
            "The gross offset in %s of patch %zu of row %zu is %g; it can be "
            "-1000000 to 1000000.",
            axis ? "lines" : "columns", i % c->nx, i / c->nx, value);
    }
  return IMK_OK;
}

static ImkStatus
check_images (const ImkInsarxcorrPlan *plan, ImkError *error)
{
  static const char *const names[] = {"reference", "secondary"};
  const ImkInsarxcorrConfig *c = &plan->config;
  bool steps = c->grid == IMK_INSARXCORR_GRID_STEP;
  uint32_t width = plan->patch_width[1], height = plan->patch_height[1];

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
  width = steps ? width : 3 * width / 2;
  height = steps ? height : 3 * height / 2;
  if (c->width[0] < width || c->height[0] < height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The reference has %u lines of %u columns; xsearch %u and ysearch %u "
        "need at least %u lines of %u. Take a smaller search%s.",
        c->height[0], c->width[0], c->xsearch, c->ysearch, height, width,
        c->mode == IMK_INSARXCORR_PRECISE ? " or window" : "");
  if (c->mask && (c->mask_width == 0 || c->mask_height == 0))
    return imk_error_set (error, IMK_ERROR_CONFIG, "The mask is empty.");
  return IMK_OK;
}

/* A valid plan of sizes. */
static ImkStatus
make_sizes (
    ImkInsarxcorrPlan *plan, const ImkInsarxcorrConfig *config, ImkError *error)
{
  ImkInsarxcorrConfig own;

  config = IMK_CONFIG_READ (insarxcorr, config, &own, error);
  IMK_TRY (config ? check_limits (config, error) : IMK_ERROR_CONFIG);
  IMK_TRY (check_reals (config, error));
  imk_insarxcorr_plan_sizes (plan, config);
  IMK_TRY (check_sizes (plan, error));
  IMK_TRY (check_images (plan, error));
  /* nx and ny as grid=step has computed them. */
  IMK_TRY (imk_limits_check_one ("nx", plan->config.nx, 1, 1000000, error));
  return imk_limits_check_one ("ny", plan->config.ny, 1, 1000000, error);
}

ImkStatus
imk_insarxcorr_config_complete (ImkInsarxcorrConfig *config, ImkError *error)
{
  ImkInsarxcorrPlan plan;

  IMK_TRY (make_sizes (&plan, config, error));
  plan.config.size = config->size;
  memcpy (config, &plan.config, config->size);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Making. */

static ImkStatus
enter (const ImkInsarxcorr *s, const Part *part, ImkError *error)
{
  return part->context ? s->device->push (part->context, error) : IMK_OK;
}

static void
leave (const ImkInsarxcorr *s, const Part *part)
{
  if (part->context)
    s->device->pop ();
}

/* A further device has a stream of its own. */
static ImkStatus
open_part (ImkInsarxcorr *s, uint32_t p, ImkError *error)
{
  Part *part = &s->parts[p];
  void *context = NULL;
  ImkStatus status = IMK_OK;

  if (p > 0)
    status =
        s->device->context (s->plan.config.devices[p - 1], &context, error);
  part->context = context;
  if (status == IMK_OK)
    status = enter (s, part, error);
  if (status != IMK_OK) {
    part->context = NULL;
    return status;
  }
  if (p > 0)
    status = s->device->stream_new (&part->stream, error);
  if (status == IMK_OK && p > 0)
    status = s->device->event_new (&part->done, error);
  if (status == IMK_OK)
    status = s->backend->create (&s->plan, p, &part->state, error);
  leave (s, part);
  return status;
}

static ImkStatus
open_parts (ImkInsarxcorr *s, ImkError *error)
{
  if (s->plan.n_parts > 1)
    IMK_TRY (imk_device_get (&s->device, error));
  if (s->device)
    IMK_TRY (s->device->event_new (&s->ready, error));
  for (uint32_t p = 0; p < s->plan.n_parts; p++)
    IMK_TRY (open_part (s, p, error));
  return IMK_OK;
}

/* A context that is gone has taken along what is on the device, but not what
 * the state has on the host. */
static void
close_parts (ImkInsarxcorr *s)
{
  for (uint32_t p = 0; p < s->plan.n_parts; p++) {
    Part *part = &s->parts[p];
    bool entered = enter (s, part, NULL) == IMK_OK;

    if (part->state)
      s->backend->destroy (part->state);
    if (!entered)
      continue;
    if (part->done)
      s->device->event_free (part->done);
    if (part->stream)
      s->device->stream_free (part->stream);
    leave (s, part);
  }
  if (s->ready)
    s->device->event_free (s->ready);
}

ImkStatus
imk_insarxcorr_new (ImkBackend backend, const ImkInsarxcorrConfig *config,
    ImkInsarxcorr **self, ImkError *error)
{
  ImkInsarxcorr *s = calloc (1, sizeof (*s));
  const void *table = NULL;
  ImkStatus status;

  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  status = make_sizes (&s->plan, config, error);
  if (status == IMK_OK)
    status = check_gross_offsets (&s->plan.config, error);
  if (status == IMK_OK)
    status = imk_backend_table (
        backend, &imk_insarxcorr_cpu, "insarxcorr", &table, error);
  if (status == IMK_OK) {
    s->backend = table;
    s->on_device = backend == IMK_BACKEND_CUDA;
    if (!s->on_device)
      s->plan.config.n_devices = 0;
    status = imk_insarxcorr_plan_patches (&s->plan, error);
  }
  if (status == IMK_OK)
    status = open_parts (s, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_insarxcorr_free (s);
  return status;
}

void
imk_insarxcorr_free (ImkInsarxcorr *self)
{
  if (!self)
    return;
  close_parts (self);
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
  uint32_t row = s->row; /* imk_insarxcorr_advance () may change it meanwhile */

  return row < s->plan.config.ny ? s->plan.lines[side][row].first
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
  uint32_t end =
      first_wanted (self, side) + self->plan.parts[0].bands[side].n_lines;

  end = smaller (end, self->plan.config.height[side]);
  return end > self->pushed[side] ? end - self->pushed[side] : 0;
}

uint32_t
imk_insarxcorr_pushed (const ImkInsarxcorr *self, ImkInsarxcorrSide side)
{
  return self->pushed[side];
}

uint64_t
imk_insarxcorr_bytes (const ImkInsarxcorr *self)
{
  return self->bytes;
}

static ImkStatus
push_to_parts (ImkInsarxcorr *s, ImkInsarxcorrSide side, uint32_t line,
    const ImkImage *lines, ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (uint32_t p = 0; p < s->plan.n_parts && status == IMK_OK; p++) {
    status = enter (s, &s->parts[p], error);
    if (status != IMK_OK)
      break;
    status = s->backend->push (s->parts[p].state, side, line, lines, error);
    leave (s, &s->parts[p]);
    s->bytes += (unsigned long long) lines->height *
                s->plan.parts[p].bands[side].width *
                imk_type_size (lines->type);
  }
  return status;
}

ImkStatus
imk_insarxcorr_push (ImkInsarxcorr *self, ImkInsarxcorrSide side,
    const ImkImage *lines, ImkError *error)
{
  const ImkInsarxcorrConfig *c = &self->plan.config;
  uint32_t room = imk_insarxcorr_room (self, side);
  uint32_t first = self->pushed[side], skipped, end = self->plan.end[side];
  uint32_t wanted = first_wanted (self, side);
  ImkStatus status = imk_image_check (lines, "input", c->type, 1,
      c->width[side], lines ? lines->height : 0, false, error);
  ImkImage rest;

  IMK_TRY (status);
  if (lines->height > room)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "%u lines come, and there is room for %u.", lines->height, room);
  skipped = wanted > first ? smaller (wanted - first, lines->height) : 0;
  rest = *lines;
  rest.data = (uint8_t *) lines->data + skipped * lines->stride;
  rest.height -= skipped;
  first += skipped;
  rest.height = first < end ? smaller (rest.height, end - first) : 0;
  if (rest.height)
    IMK_TRY (push_to_parts (self, side, first, &rest, error));
  self->pushed[side] += lines->height;
  return IMK_OK;
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
    if (self->pushed[s] < self->plan.lines[s][self->row].end)
      return false;
  return true;
}

/* Between what the caller's stream has done and what it does next. */
static ImkStatus
process_part (
    ImkInsarxcorr *s, Part *part, ImkImage *out, void *stream, ImkError *error)
{
  ImkStatus status;

  if (!part->context)
    return s->backend->process (part->state, s->row, out, stream, error);
  IMK_TRY (enter (s, part, error));
  status = s->device->event_wait (s->ready, part->stream, error);
  if (status == IMK_OK)
    status =
        s->backend->process (part->state, s->row, out, part->stream, error);
  if (status == IMK_OK)
    status = s->device->event_record (part->done, part->stream, error);
  leave (s, part);
  return status;
}

/* The other devices work while the caller's own does. */
static ImkStatus
process_parts (ImkInsarxcorr *s, ImkImage *out, void *stream, ImkError *error)
{
  if (s->plan.n_parts > 1)
    IMK_TRY (s->device->event_record (s->ready, stream, error));
  for (uint32_t p = s->plan.n_parts; p-- > 0;)
    IMK_TRY (process_part (s, &s->parts[p], out, stream, error));
  for (uint32_t p = 1; p < s->plan.n_parts; p++)
    IMK_TRY (s->device->event_wait (s->parts[p].done, stream, error));
  return IMK_OK;
}

ImkStatus
imk_insarxcorr_process (
    ImkInsarxcorr *self, ImkImage *out, void *stream, ImkError *error)
{
  IMK_TRY (imk_image_check (out, "output", IMK_TYPE_F64, 1,
      IMK_INSARXCORR_N_FIELDS, self->plan.config.nx, self->on_device, error));
  if (self->plan.n_parts > 1 && out->location != IMK_LOCATION_HOST_MAPPED)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The output lies on one device, and %u write it; it must be in "
        "page-locked memory.",
        self->plan.n_parts);
  if (!imk_insarxcorr_is_ready (self))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Row %u of %u rows of patches is not ready.", self->row,
        self->plan.config.ny);
  return process_parts (self, out, stream, error);
}

void
imk_insarxcorr_advance (ImkInsarxcorr *self)
{
  if (self->row < self->plan.config.ny)
    self->row++;
}

void
imk_insarxcorr_cancel (ImkInsarxcorr *self, bool cancel)
{
  if (self->backend == &imk_insarxcorr_cpu)
    imk_insarxcorr_cpu_cancel (self->parts[0].state, cancel);
}
