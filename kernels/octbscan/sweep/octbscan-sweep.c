/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/octbscan-sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/limits.h"
#include "core/sample.h"

enum { PASSES = 2, LEAST_SAMPLES = 4 };

#define LEAST_COEFFICIENT 0.5

struct ImkOctbscanSweep {
  ImkOctbscanSweepConfig config;
  double *record;  /* samples of one, from R + 1 before the window on */
  double *mean;    /* [C][window] */
  double *squares; /* [C]: of the mean without its own mean, summed */
  uint32_t *n;     /* [C]: records in the mean; of one that stays none */
  bool *stays;     /* [C]: the mean is that of an earlier B-scan */
  int32_t *shifts; /* [H] */
};

/* ------------------------------------------------------------------------
 * Configuration. */

void
imk_octbscan_sweep_config_init_sized (
    ImkOctbscanSweepConfig *config, size_t size)
{
  const ImkOctbscanSweepConfig defaults = {
      .size = size,
      .width = 2,
      .height = 1,
      .type = IMK_TYPE_U16,
      .n_cameras = 1,
      .jitter_first = 16,
      .jitter_samples = 128,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

static ImkStatus
check_window (const ImkOctbscanSweepConfig *c, ImkError *error)
{
  uint64_t end = (uint64_t) c->jitter_first + c->jitter_samples;

  if (c->jitter_samples < LEAST_SAMPLES)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "jitter-samples is %u; a calibration window needs at least %d samples.",
        c->jitter_samples, LEAST_SAMPLES);
  if (c->jitter_first <= c->jitter_reach || end + c->jitter_reach >= c->width)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The calibration window has the samples %u to %llu of %u (jitter-first, "
        "jitter-samples), and more than jitter-reach=%u samples are needed "
        "before it and behind it. Take another window or a smaller reach.",
        c->jitter_first, (unsigned long long) end - 1, c->width,
        c->jitter_reach);
  return IMK_OK;
}

static ImkStatus
check_config (const ImkOctbscanSweepConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"The number of samples a record", c->width, 2, IMK_OCTBSCAN_MAX_WIDTH},
      {"The number of records a B-scan", c->height, 1, IMK_OCTBSCAN_MAX_HEIGHT},
      {"cameras", c->n_cameras, 1, IMK_OCTBSCAN_MAX_CAMERAS},
      {"sweeps", c->sweeps, 0, IMK_OCTBSCAN_SWEEPS_ALTERNATING_BACK},
      {NULL},
  };

  IMK_TRY (imk_limits_check (limits, error));
  if (c->type > IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Samples of type %s cannot be corrected; convert them to i16 or f32.",
        imk_type_name (c->type));
  return c->jitter_reach > 0 ? check_window (c, error) : IMK_OK;
}

ImkStatus
imk_octbscan_sweep_check (const ImkOctbscanSweepConfig *given, ImkError *error)
{
  ImkOctbscanSweepConfig own;
  const ImkOctbscanSweepConfig *config =
      IMK_CONFIG_READ (octbscan_sweep, given, &own, error);

  return config ? check_config (config, error) : IMK_ERROR_CONFIG;
}

/* ------------------------------------------------------------------------
 * Samples. */

static void
reverse (uint8_t *samples, uint32_t n, size_t size)
{
  uint8_t kept[8];

  for (uint32_t i = 0; i < n / 2; i++) {
    uint8_t *one = samples + i * size, *other = samples + (n - 1 - i) * size;

    memcpy (kept, one, size);
    memcpy (one, other, size);
    memcpy (other, kept, size);
  }
}

/* y[n] = x[n + @by] */
static void
shift (uint8_t *samples, uint32_t n, size_t size, int32_t by)
{
  uint32_t n_new = (uint32_t) abs (by), n_kept = n - n_new;

  if (by > 0)
    memmove (samples, samples + n_new * size, n_kept * size);
  else
    memmove (samples + n_new * size, samples, n_kept * size);
  for (uint32_t i = 0; i < n_new; i++)
    if (by > 0)
      memcpy (
          samples + (n_kept + i) * size, samples + (n_kept - 1) * size, size);
    else
      memcpy (samples + i * size, samples + n_new * size, size);
}

/* ------------------------------------------------------------------------
 * Jitter. */

static uint8_t *
record_at (const ImkImage *records, uint32_t r)
{
  return (uint8_t *) records->data + (size_t) r * records->stride;
}

static uint32_t
camera_at (const ImkOctbscanSweep *self, uint64_t line, uint32_t r)
{
  return (uint32_t) ((line + r) % self->config.n_cameras);
}

/* Samples of a record, from jitter_reach + 1 before the window to as many
 * behind it. Returns: whether all of them are finite */
static bool
load_record (ImkOctbscanSweep *self, const ImkImage *records, uint32_t r)
{
  const ImkOctbscanSweepConfig *c = &self->config;
  uint32_t margin = c->jitter_reach + 1;
  bool ok = true;

  for (uint32_t i = 0; i < c->jitter_samples + 2 * margin; i++) {
    self->record[i] =
        imk_sample_get (records, c->jitter_first - margin + i, r, 0);
    ok = ok && isfinite (self->record[i]);
  }
  return ok;
}

/* The mean of each camera's records as they are shifted so far, without the
 * mean of its own samples. One that stays is as it was. */
static void
find_means (ImkOctbscanSweep *self, const ImkImage *records, uint64_t line)
{
  const ImkOctbscanSweepConfig *c = &self->config;
  uint32_t n = c->jitter_samples;

  for (uint32_t camera = 0; camera < c->n_cameras; camera++)
    if (!self->stays[camera])
      memset (self->mean + (size_t) camera * n, 0, sizeof (double) * n);
  memset (self->n, 0, sizeof (uint32_t) * c->n_cameras);
  for (uint32_t r = 0; r < c->height; r++) {
    uint32_t camera = camera_at (self, line, r);
    double *mean = self->mean + (size_t) camera * n;

    if (self->stays[camera] || !load_record (self, records, r))
      continue;
    for (uint32_t i = 0; i < n; i++)
      mean[i] +=
          self->record[(int32_t) (i + c->jitter_reach + 1) + self->shifts[r]];
    self->n[camera]++;
  }
  for (uint32_t camera = 0; camera < c->n_cameras; camera++) {
    double *mean = self->mean + (size_t) camera * n, sum = 0, squares = 0;

    if (self->stays[camera])
      continue;
    for (uint32_t i = 0; i < n; i++)
      sum += mean[i] /= self->n[camera] > 0 ? self->n[camera] : 1;
    for (uint32_t i = 0; i < n; i++) {
      mean[i] -= sum / n;
      squares += mean[i] * mean[i];
    }
    self->squares[camera] = squares;
  }
}

/* Returns: the correlation coefficient; 0 if one side is even */
static double
correlate (
    const double *samples, const double *mean, double squares, uint32_t n)
{
  double sum = 0, products = 0, own = 0;

  for (uint32_t i = 0; i < n; i++)
    sum += samples[i];
  sum /= n;
  for (uint32_t i = 0; i < n; i++) {
    double x = samples[i] - sum;

    products += x * mean[i];
    own += x * x;
  }
  return own > 0 && squares > 0 ? products / sqrt (own * squares) : 0;
}

/* Of the record that is loaded. Returns: FALSE where none fits */
static bool
find_shift (const ImkOctbscanSweep *self, uint32_t camera, int32_t *found)
{
  const ImkOctbscanSweepConfig *c = &self->config;
  const double *mean = self->mean + (size_t) camera * c->jitter_samples;
  int32_t margin = (int32_t) c->jitter_reach + 1, best = 0;
  double most = LEAST_COEFFICIENT;
  bool fits = false;

  for (int32_t i = 0; i <= 2 * margin; i++) {
    int32_t by = i % 2 ? -(i + 1) / 2 : i / 2; /* 0, -1, 1, -2, 2, ... */
    double coefficient = correlate (self->record + margin + by, mean,
        self->squares[camera], c->jitter_samples);

    if (fits ? coefficient > most : coefficient >= most) {
      most = coefficient;
      best = by;
      fits = true;
    }
  }
  fits = fits && abs (best) < margin;
  *found = fits ? best : 0;
  return fits;
}

/* One pass, with the means as they are. @n_fit: (out): [C]
 * Returns: how many records have no shift */
static uint32_t
align (ImkOctbscanSweep *self, const ImkImage *records, uint64_t line,
    uint32_t n_fit[IMK_OCTBSCAN_MAX_CAMERAS])
{
  uint32_t n_unaligned = 0;

  memset (n_fit, 0, sizeof (uint32_t) * IMK_OCTBSCAN_MAX_CAMERAS);
  for (uint32_t r = 0; r < self->config.height; r++) {
    uint32_t camera = camera_at (self, line, r);
    bool fits = load_record (self, records, r) &&
                find_shift (self, camera, &self->shifts[r]);

    if (!fits)
      self->shifts[r] = 0;
    n_fit[camera] += fits;
    n_unaligned += !fits;
  }
  return n_unaligned;
}

/* Returns: how many records have no shift */
static uint32_t
find_shifts (ImkOctbscanSweep *self, const ImkImage *records, uint64_t line)
{
  uint32_t n_unaligned = 0, n_fit[IMK_OCTBSCAN_MAX_CAMERAS];

  memset (self->shifts, 0, sizeof (int32_t) * self->config.height);
  for (int pass = 0; pass < PASSES; pass++) {
    find_means (self, records, line);
    n_unaligned = align (self, records, line, n_fit);
  }
  for (uint32_t camera = 0; camera < self->config.n_cameras; camera++)
    if (self->n[camera] > 0 && 2 * (uint64_t) n_fit[camera] >= self->n[camera])
      self->stays[camera] = true;
  return n_unaligned;
}

/* ------------------------------------------------------------------------
 * The object. */

ImkStatus
imk_octbscan_sweep_new (const ImkOctbscanSweepConfig *given,
    ImkOctbscanSweep **self, ImkError *error)
{
  ImkOctbscanSweepConfig own;
  const ImkOctbscanSweepConfig *c =
      IMK_CONFIG_READ (octbscan_sweep, given, &own, error);
  ImkOctbscanSweep *made;
  size_t n_record;

  IMK_TRY (c ? check_config (c, error) : IMK_ERROR_CONFIG);
  n_record = (size_t) c->jitter_samples + 2 * ((size_t) c->jitter_reach + 1);
  made = calloc (1, sizeof (*made));
  if (made) {
    made->config = *c;
    made->record = malloc (sizeof (double) * n_record);
    made->mean = malloc (sizeof (double) * c->n_cameras *
                         (c->jitter_samples > 0 ? c->jitter_samples : 1));
    made->squares = malloc (sizeof (double) * c->n_cameras);
    made->n = malloc (sizeof (uint32_t) * c->n_cameras);
    made->stays = calloc (c->n_cameras, sizeof (bool));
    made->shifts = calloc (c->height, sizeof (int32_t));
  }
  if (!made || !made->record || !made->mean || !made->squares || !made->n ||
      !made->stays || !made->shifts) {
    imk_octbscan_sweep_free (made);
    return IMK_NO_MEMORY (error, "to correct the records of a B-scan.");
  }
  *self = made;
  return IMK_OK;
}

ImkStatus
imk_octbscan_sweep_process (ImkOctbscanSweep *self, ImkImage *records,
    uint64_t line, int32_t *shifts, uint32_t *n_unaligned, ImkError *error)
{
  const ImkOctbscanSweepConfig *c = &self->config;
  size_t size = imk_type_size (c->type);
  uint32_t back = c->sweeps == IMK_OCTBSCAN_SWEEPS_ALTERNATING ? 1 : 0;
  uint32_t n = 0;

  IMK_TRY (imk_image_check (
      records, "records", c->type, 1, c->width, c->height, false, error));
  for (uint32_t r = 0;
       c->sweeps != IMK_OCTBSCAN_SWEEPS_FORWARD && r < c->height; r++)
    if ((line + r) / c->n_cameras % 2 == back)
      reverse (record_at (records, r), c->width, size);
  if (c->jitter_reach > 0) {
    n = find_shifts (self, records, line);
    for (uint32_t r = 0; r < c->height; r++)
      if (self->shifts[r] != 0)
        shift (record_at (records, r), c->width, size, self->shifts[r]);
  }
  if (shifts)
    memcpy (shifts, self->shifts, sizeof (int32_t) * c->height);
  if (n_unaligned)
    *n_unaligned = n;
  return IMK_OK;
}

void
imk_octbscan_sweep_reset (ImkOctbscanSweep *self)
{
  if (self)
    memset (self->stays, 0, sizeof (bool) * self->config.n_cameras);
}

void
imk_octbscan_sweep_free (ImkOctbscanSweep *self)
{
  if (!self)
    return;
  free (self->record);
  free (self->mean);
  free (self->squares);
  free (self->n);
  free (self->stays);
  free (self->shifts);
  free (self);
}
