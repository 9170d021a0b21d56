/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/octangio.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/limits.h"
#include "octangio/octangio-backend.h"

struct ImkOctangio {
  const ImkOctangioBackend *backend;
  void *state; /* the backend's */
  bool on_device;
  ImkOctangioPlan plan;
  float *taps, *turns;
  uint32_t *brightest; /* [A] depths */
};

void
imk_octangio_config_init_sized (ImkOctangioConfig *config, size_t size)
{
  const ImkOctangioConfig defaults = {
      .size = size,
      .n_ascans = 1,
      .n_depths = 1,
      .n_repeats = 4,
      .is_complex = true,
      .method = IMK_OCTANGIO_DECORRELATION,
      .bulk_motion = true,
      .lateral = 3,
      .axial = 3,
      .n_tissue = 1,
      .scale = 1,
      .n_bands = 1,
      .depth_scale = 1,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* ------------------------------------------------------------------------
 * Checks. */

static ImkStatus
check_limits (const ImkOctangioConfig *c, ImkError *error)
{
  bool eigen = c->method == IMK_OCTANGIO_EIGEN;
  uint32_t least = c->method == IMK_OCTANGIO_MEAN ||
                           (c->method == IMK_OCTANGIO_DOPPLER &&
                               c->pairs == IMK_OCTANGIO_PAIRS_ASCANS)
                       ? 1
                       : 2;
  const ImkLimits limits[] = {
      {"The number of A-scans", c->n_ascans, 1, IMK_OCTANGIO_MAX_SIDE},
      {"The number of depths", c->n_depths, 1, IMK_OCTANGIO_MAX_SIDE},
      {"method", c->method, 0, IMK_OCTANGIO_EIGEN},
      {"pairs", c->pairs, 0, IMK_OCTANGIO_PAIRS_ASCANS},
      {"repeats", c->n_repeats, least, IMK_OCTANGIO_MAX_REPEATS},
      {"lateral-window", c->lateral, 1, IMK_OCTANGIO_MAX_WINDOW},
      {"depth-window", c->axial, 1, IMK_OCTANGIO_MAX_WINDOW},
      {"tissue-components", eigen ? c->n_tissue : 1, 1,
          eigen ? c->n_repeats - 1 : 1},
      {"bands", c->n_bands, 1, IMK_OCTANGIO_MAX_BANDS},
      {"depth-scale", c->depth_scale, 1, IMK_OCTANGIO_MAX_SCALE},
      {NULL},
  };

  return imk_limits_check (limits, error);
}

static ImkStatus
check_config (const ImkOctangioConfig *c, ImkError *error)
{
  bool between_ascans = c->pairs == IMK_OCTANGIO_PAIRS_ASCANS;
  ImkStatus status = check_limits (c, error);

  if (status != IMK_OK)
    return status;
  if (c->n_bands > 1 &&
      (c->method != IMK_OCTANGIO_DECORRELATION || !c->is_complex))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "bands is %u, which is for method=decorrelation of complex B-scans: "
        "take the pad complex of octbscan, or set bands=1.",
        c->n_bands);
  if (imk_octangio_needs_phase (c->method) && !c->is_complex)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "This method needs phases, but the B-scans are intensities. Take the "
        "pad complex of octbscan, or method=decorrelation, speckle-variance or "
        "mean.");
  if (between_ascans && c->method != IMK_OCTANGIO_DOPPLER)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "pairs=ascans is for method=doppler alone. Set pairs=bscans.");
  if (between_ascans && c->n_ascans < 2)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "pairs=ascans needs 2 A-scans a B-scan, but there is 1.");
  if (!(c->floor >= 0 && c->floor <= 1e30) || !(fabs (c->scale) <= 1e30))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "floor is %g and the scale %g; they must be finite, and floor at least "
        "0.",
        c->floor, c->scale);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Bands. */

double
imk_octangio_band_sigma (const ImkOctangioConfig *c)
{
  return c->depth_scale * c->n_bands * sqrt (2 * log (2)) / M_PI;
}

/* The filter of a band and the phases of all, from the header's formulas. */
static ImkStatus
plan_bands (ImkOctangio *s, ImkError *error)
{
  const ImkOctangioConfig *c = &s->plan.config;
  double sigma = imk_octangio_band_sigma (c);
  uint32_t radius = (uint32_t) ceil (4 * sigma);
  float *turn;

  s->taps = malloc ((radius + 1) * sizeof (*s->taps));
  s->turns =
      malloc (2 * (size_t) c->n_bands * c->n_depths * sizeof (*s->turns));
  if (!s->taps || !s->turns)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for the phases of %u bands.", c->n_bands);
  for (uint32_t k = 0; k <= radius; k++)
    s->taps[k] = (float) exp (-0.5 * k * k / (sigma * sigma));
  turn = s->turns;
  for (uint32_t band = 0; band < c->n_bands; band++)
    for (uint32_t z = 0; z < c->n_depths; z++) {
      double phase =
          2 * M_PI * (band + 0.5) * z / (c->n_bands * c->depth_scale);

      *turn++ = (float) cos (phase);
      *turn++ = (float) sin (phase);
    }
  s->plan.radius = radius;
  s->plan.taps = s->taps;
  s->plan.turns = s->turns;
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The object. */

ImkStatus
imk_octangio_new (ImkBackend backend, const ImkOctangioConfig *given,
    ImkOctangio **self, ImkError *error)
{
  ImkOctangioConfig own;
  const ImkOctangioConfig *config;
  const void *table = NULL;
  ImkOctangio *s;
  ImkStatus status;

  imk_octangio_config_init (&own);
  config = imk_config_read (given, &own, "imk_octangio_config_init", error);
  status = config ? check_config (config, error) : IMK_ERROR_CONFIG;
  if (status == IMK_OK)
    status = imk_backend_table (
        backend, &imk_octangio_cpu, "octangio", &table, error);
  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  s->backend = table;
  s->on_device = backend == IMK_BACKEND_CUDA;
  s->plan.config = *config;
  s->brightest = malloc (config->n_ascans * sizeof (uint32_t));
  status = s->brightest ? IMK_OK
                        : imk_error_set (error, IMK_ERROR_MEMORY,
                              "There is no memory for the object.");
  if (status == IMK_OK && config->n_bands > 1)
    status = plan_bands (s, error);
  if (status == IMK_OK)
    status = s->backend->create (&s->plan, &s->state, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_octangio_free (s);
  return status;
}

ImkStatus
imk_octangio_process (ImkOctangio *self, const ImkImage *bscans,
    const ImkImage *flow, void *stream, ImkError *error)
{
  const ImkOctangioConfig *c = &self->plan.config;
  ImkStatus status = imk_image_check (flow, "flow", IMK_TYPE_F32, 1,
      c->n_ascans, c->n_depths, self->on_device, error);

  for (uint32_t r = 0; r < c->n_repeats && status == IMK_OK; r++)
    status = c->is_complex
                 ? imk_image_check (&bscans[r], "B-scan", IMK_TYPE_CF32, 1,
                       c->n_depths, c->n_ascans, self->on_device, error)
                 : imk_image_check (&bscans[r], "B-scan", IMK_TYPE_F32, 1,
                       c->n_ascans, c->n_depths, self->on_device, error);
  return status == IMK_OK ? self->backend->process (self->state, bscans,
                                c->n_repeats, flow, stream, error)
                          : status;
}

static uint32_t
median (const uint32_t *values, uint32_t n)
{
  uint32_t sorted[IMK_OCTANGIO_MAX_WINDOW];

  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = i;

    for (; k > 0 && sorted[k - 1] > values[i]; k--)
      sorted[k] = sorted[k - 1];
    sorted[k] = values[i];
  }
  return sorted[(n - 1) / 2];
}

ImkStatus
imk_octangio_surface (ImkOctangio *self, uint32_t first, uint32_t window,
    double *surface, void *stream, ImkError *error)
{
  const ImkOctangioConfig *c = &self->plan.config;
  uint32_t before = (window - 1) / 2;
  ImkStatus status;

  if (!c->finds_surface)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A surface is found by an object whose configuration has "
        "finds_surface.");
  status = self->backend->find_brightest (
      self->state, first, self->brightest, stream, error);
  for (uint32_t a = 0; a < c->n_ascans && status == IMK_OK; a++) {
    uint32_t from = a > before ? a - before : 0;
    uint32_t end = a + window - before;

    end = end < c->n_ascans ? end : c->n_ascans;
    surface[a] = median (self->brightest + from, end - from);
  }
  return status;
}

void
imk_octangio_project (const float *flow, uint32_t n_ascans, uint32_t n_depths,
    const double *top, const double *bottom, ImkOctangioProjection projection,
    float *row)
{
  for (uint32_t a = 0; a < n_ascans; a++) {
    double first = fmin (fmax (floor (top[a] + 0.5), 0), n_depths);
    double end = fmin (fmax (floor (bottom[a] + 0.5), 0), n_depths);
    double sum = 0, most = -INFINITY;

    for (uint32_t z = (uint32_t) first; z < end; z++) {
      double v = flow[(size_t) z * n_ascans + a];

      sum += v;
      most = fmax (most, v);
    }
    row[a] = !(end > first) || isnan (top[a]) || isnan (bottom[a]) ? 0
             : projection == IMK_OCTANGIO_PROJECTION_MAXIMUM
                 ? (float) most
                 : (float) (sum / (end - first));
  }
}

void
imk_octangio_cancel (ImkOctangio *self, bool cancel)
{
  if (self->backend == &imk_octangio_cpu)
    imk_octangio_cpu_cancel (self->state, cancel);
}

void
imk_octangio_free (ImkOctangio *self)
{
  if (!self)
    return;
  if (self->state)
    self->backend->destroy (self->state);
  free (self->taps);
  free (self->turns);
  free (self->brightest);
  free (self);
}
