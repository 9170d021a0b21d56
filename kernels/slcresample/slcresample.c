/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/slcresample.h"

#include <stdlib.h>

#include "core/config.h"
#include "core/limits.h"
#include "slcresample/slcresample-private.h"

#define DOPPLER_LINES IMK_SLCRESAMPLE_DOPPLER_LINES

enum { SPARE_LINES = 64 }; /* so that threads have several lines to make */

/* Fewer samples, or a weaker turn from line to line relative to their energy,
 * may be chance: that of N white samples is about 1 / sqrt (N), and that of a
 * spectrum of 0.9 of the band 0.11. */
#define MIN_MEASURED 2000
#define MIN_TURN 0.1

typedef struct Lines {
  uint32_t first, end;
} Lines;

struct ImkSlcresample {
  ImkSlcresampleBand band;
  ImkSlcresampleField *field; /* (nullable): that of the config */
  Lines *spans; /* with a field: input lines of each output line */
  double doppler;
  uint32_t line, pushed;
};

void
imk_slcresample_config_init_sized (ImkSlcresampleConfig *config, size_t size)
{
  const ImkSlcresampleConfig defaults = {
      .size = size,
      .type = IMK_TYPE_CI16,
      .taps = 16,
      .bandwidth = 0.85,
      .estimate_doppler = true,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* --- validation: the comparisons are written so that a NaN fails them ----- */

static ImkStatus
check_size (const char *name, uint32_t width, uint32_t height, ImkError *error)
{
  if (width - 1 < 1 << 24 && height - 1 < 1 << 30)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "The %s has %u lines of %u columns; it can have 1 to %u lines of 1 to "
      "%u.",
      name, height, width, 1u << 30, 1u << 24);
}

static ImkStatus
check_geometry (const ImkSlcresampleConfig *c, ImkError *error)
{
  enum { X = IMK_SLCRESAMPLE_RANGE, Y = IMK_SLCRESAMPLE_AZIMUTH };
  const double most = IMK_SLCRESAMPLE_MAX_STRETCH;
  const ImkLimits limits[] = {
      {"shift-r", c->shift[X], -1e6, 1e6},
      {"stretch-r", c->stretch[X], -most, most},
      {"a-stretch-r", c->a_stretch[X], -most, most},
      {"shift-a", c->shift[Y], -1e6, 1e6},
      {"stretch-a", c->stretch[Y], -most, most},
      {"a-stretch-a", c->a_stretch[Y], -most, most},
      {"bandwidth", c->bandwidth, 0.1, 1},
      {NULL},
  };

  return imk_limits_check (limits, error);
}

static ImkStatus
check_config (const ImkSlcresampleConfig *c, ImkError *error)
{
  if (c->type != IMK_TYPE_CI16 && c->type != IMK_TYPE_CF32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Images of %s cannot be resampled; ci16 and cf32 can.",
        imk_type_name (c->type));
  IMK_TRY (check_size ("image", c->width, c->height, error));
  IMK_TRY (check_size ("reference", c->out_width, c->out_height, error));
  IMK_TRY (check_geometry (c, error));
  if (c->taps < 4 || c->taps > IMK_SLCRESAMPLE_MAX_TAPS || c->taps % 2)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "taps is %u; it must be an even number from 4 to %d.", c->taps,
        IMK_SLCRESAMPLE_MAX_TAPS);
  if (!(fabs (c->doppler) <= 2))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The Doppler centroid is %g cycles a line; it can be -2 to 2.",
        c->doppler);
  return c->field ? imk_slcresample_field_check (c->field, error) : IMK_OK;
}

double
imk_slcresample_covered (const ImkSlcresampleConfig *config)
{
  enum { GRID = 64 };
  ImkSlcresampleConfig own;
  const ImkSlcresampleConfig *c =
      IMK_CONFIG_READ (slcresample, config, &own, NULL);
  double before, behind;
  uint32_t n = 0;

  if (!c)
    return 0;
  before = c->taps / 2 - 1;
  behind = c->taps / 2;
  for (int i = 0; i < GRID; i++)
    for (int j = 0; j < GRID; j++) {
      double r = (j + 0.5) / GRID * c->out_width - 0.5;
      double a = (i + 0.5) / GRID * c->out_height - 0.5;
      double x = imk_slcresample_x (c, r, a);
      double y = imk_slcresample_y (c, x, a), at[2];

      if (c->field) {
        imk_slcresample_field_at (c, r, a, at);
        x = at[0];
        y = at[1];
      }
      n += x >= before && x < c->width - behind && y >= before &&
           y < c->height - behind;
    }
  return (double) n / (GRID * GRID);
}

/* --- making --------------------------------------------------------------- */

static ImkStatus
make_azimuth_weights (ImkSlcresample *s, double doppler, ImkError *error)
{
  const ImkSlcresampleConfig *c = &s->band.config;

  s->doppler = doppler;
  return imk_slcresample_weights_init (
      &s->band.weights[IMK_SLCRESAMPLE_AZIMUTH], c->taps, c->bandwidth,
      s->doppler, error);
}

static uint32_t
clamp_line (double line, uint32_t height)
{
  if (line < 0)
    return 0;
  return line < height ? (uint32_t) line : height;
}

/* Farther than rounding takes a position. */
#define MARGIN 1e-6

/* Returns: the lines that are taken between @least and @most */
static Lines
lines_between (const ImkSlcresampleConfig *c, double least, double most)
{
  double half = c->taps / 2;

  return (Lines){
      .first = clamp_line (floor (least - MARGIN) - half + 1, c->height),
      .end = clamp_line (floor (most + MARGIN) + half + 1, c->height),
  };
}

/* Returns: the input lines of output line @a. Both ends rise with @a, as no
 * stretch is large. */
static Lines
plane_lines (const ImkSlcresampleConfig *c, uint32_t a)
{
  double last = c->width - 1, half = c->taps / 2;
  double left = imk_slcresample_x (c, 0, a) - half;
  double right = imk_slcresample_x (c, c->out_width - 1, a) + half;
  double y1 = imk_slcresample_y (c, fmax (0, fmin (left, last)), a);
  double y2 = imk_slcresample_y (c, fmax (0, fmin (right, last)), a);

  return lines_between (c, fmin (y1, y2), fmax (y1, y2));
}

static Lines
lines_of (const ImkSlcresample *s, uint32_t a)
{
  return s->spans ? s->spans[a] : plane_lines (&s->band.config, a);
}

/* Lines are wanted as long as a later line needs them, so both ends rise. */
static ImkStatus
make_spans (ImkSlcresample *s, ImkError *error)
{
  const ImkSlcresampleConfig *c = &s->band.config;
  uint32_t n = c->out_height;

  s->spans = malloc (n * sizeof (*s->spans));
  if (!s->spans)
    return IMK_NO_MEMORY (error, "for %u lines.", n);
  for (uint32_t a = 0; a < n; a++) {
    double least, most;

    imk_slcresample_field_span (c, a, &least, &most);
    s->spans[a] = lines_between (c, least, most);
    if (a > 0 && s->spans[a].end < s->spans[a - 1].end)
      s->spans[a].end = s->spans[a - 1].end;
  }
  for (uint32_t a = n - 1; a-- > 0;)
    if (s->spans[a].first > s->spans[a + 1].first)
      s->spans[a].first = s->spans[a + 1].first;
  return IMK_OK;
}

/* Returns: input lines that an output line is inclined over, its taps, and some
 * to spare */
static uint32_t
band_height (const ImkSlcresample *s)
{
  const ImkSlcresampleConfig *c = &s->band.config;
  double columns =
      fmin (c->width, (1 + c->stretch[0]) * c->out_width + c->taps);
  double inclined = fabs (c->stretch[1] / (1 + c->stretch[0])) * columns;
  double lines = ceil (inclined) + c->taps + 2;
  uint32_t most = 0;

  for (uint32_t a = 0; s->spans && a < c->out_height; a++) {
    uint32_t span = s->spans[a].end - s->spans[a].first;

    most = span > most ? span : most;
  }
  lines = fmax (lines, most);
  lines += SPARE_LINES + DOPPLER_LINES;
  return (uint32_t) fmin (lines, c->height);
}

ImkStatus
imk_slcresample_new (ImkBackend backend, const ImkSlcresampleConfig *given,
    ImkSlcresample **self, ImkError *error)
{
  ImkSlcresampleConfig own;
  const ImkSlcresampleConfig *config =
      IMK_CONFIG_READ (slcresample, given, &own, error);
  ImkStatus status;
  ImkSlcresample *s;

  IMK_TRY (config ? check_config (config, error) : IMK_ERROR_CONFIG);
  if (backend != IMK_BACKEND_CPU)
    return imk_error_set (
        error, IMK_ERROR_UNAVAILABLE, "Images are resampled on the CPU alone.");
  s = calloc (1, sizeof (*s));
  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  status = imk_slcresample_cpu_init (&s->band, error);
  s->band.config = *config;
  if (status == IMK_OK && config->field) {
    status = imk_slcresample_field_copy (config->field, &s->field, error);
    s->band.config.field = s->field;
    if (status == IMK_OK)
      status = make_spans (s, error);
  }
  s->band.n_lines = band_height (s);
  s->band.samples = calloc (
      (size_t) s->band.n_lines * config->width * 2 + IMK_SLCRESAMPLE_PADDING,
      sizeof (float));
  if (status == IMK_OK && !s->band.samples)
    status = IMK_NO_MEMORY (
        error, "for %u lines of %u samples.", s->band.n_lines, config->width);
  if (status == IMK_OK)
    status =
        imk_slcresample_weights_init (&s->band.weights[IMK_SLCRESAMPLE_RANGE],
            config->taps, config->bandwidth, 0, error);
  if (status == IMK_OK && !config->estimate_doppler)
    status = make_azimuth_weights (s, config->doppler, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_slcresample_free (s);
  return status;
}

void
imk_slcresample_free (ImkSlcresample *self)
{
  if (!self)
    return;
  for (int i = 0; i < IMK_SLCRESAMPLE_N_AXES; i++)
    imk_slcresample_weights_clear (&self->band.weights[i]);
  free (self->band.samples);
  free (self->field);
  free (self->spans);
  free (self);
}

/* --- the band ------------------------------------------------------------- */

/* Returns: the first line that is still wanted */
static uint32_t
first_wanted (const ImkSlcresample *s)
{
  return s->line < s->band.config.out_height ? lines_of (s, s->line).first
                                             : s->band.config.height;
}

void
imk_slcresample_rewind (ImkSlcresample *self)
{
  self->line = self->pushed = 0;
  if (self->band.config.estimate_doppler) /* of the next image */
    imk_slcresample_weights_clear (
        &self->band.weights[IMK_SLCRESAMPLE_AZIMUTH]);
}

uint32_t
imk_slcresample_room (const ImkSlcresample *self)
{
  uint64_t end = (uint64_t) first_wanted (self) + self->band.n_lines;

  if (end > self->band.config.height)
    end = self->band.config.height;
  return end > self->pushed ? (uint32_t) end - self->pushed : 0;
}

uint32_t
imk_slcresample_pushed (const ImkSlcresample *self)
{
  return self->pushed;
}

uint32_t
imk_slcresample_line (const ImkSlcresample *self)
{
  return self->line;
}

double
imk_slcresample_doppler (const ImkSlcresample *self)
{
  return self->doppler;
}

static float
finite_or_0 (float value)
{
  return isfinite (value) ? value : 0;
}

static void
store_line (ImkSlcresample *s, uint32_t line, const void *from)
{
  uint32_t width = s->band.config.width;
  float *re = s->band.samples + (size_t) (line % s->band.n_lines) * 2 * width;
  float *im = re + width;
  const int16_t *i16 = from;
  const float *f = from;

  if (s->band.config.type == IMK_TYPE_CI16) {
    for (uint32_t i = 0; i < width; i++) {
      re[i] = i16[2 * i];
      im[i] = i16[2 * i + 1];
    }
    return;
  }
  for (uint32_t i = 0; i < width; i++) {
    re[i] = finite_or_0 (f[2 * i]);
    im[i] = finite_or_0 (f[2 * i + 1]);
  }
}

ImkStatus
imk_slcresample_push (
    ImkSlcresample *self, const ImkImage *lines, ImkError *error)
{
  const ImkSlcresampleConfig *c = &self->band.config;
  uint32_t room = imk_slcresample_room (self), wanted = first_wanted (self);

  IMK_TRY (imk_image_check (lines, "input", c->type, 1, c->width,
      lines ? lines->height : 0, false, error));
  if (lines->height > room)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "%u lines come, and there is room for %u.", lines->height, room);
  for (uint32_t i = 0; i < lines->height; i++, self->pushed++)
    if (self->pushed >= wanted)
      store_line (self, self->pushed,
          (const uint8_t *) lines->data + i * lines->stride);
  return IMK_OK;
}

/* --- output lines --------------------------------------------------------- */

/* Returns: the end of the lines that the Doppler is measured on */
static uint32_t
doppler_end (const ImkSlcresample *s)
{
  uint64_t end = (uint64_t) lines_of (s, 0).first + DOPPLER_LINES;

  return end < s->band.config.height ? (uint32_t) end : s->band.config.height;
}

/* How lines turn from each to the next, as sums over samples. */
typedef struct Turns {
  double re, im, energy;
  uint64_t n_samples;
} Turns;

static Turns
add_turns (const ImkSlcresample *s)
{
  uint32_t first = lines_of (s, 0).first, end = doppler_end (s);
  uint32_t width = s->band.config.width;
  Turns turns = {0};

  end = end < s->pushed ? end : s->pushed;
  for (uint32_t l = first; l + 1 < end; l++) {
    const float *a =
        s->band.samples + (size_t) (l % s->band.n_lines) * 2 * width;
    const float *b =
        s->band.samples + (size_t) ((l + 1) % s->band.n_lines) * 2 * width;

    for (uint32_t i = 0; i < width; i++) {
      turns.re += (double) b[i] * a[i] + (double) b[width + i] * a[width + i];
      turns.im += (double) b[width + i] * a[i] - (double) b[i] * a[width + i];
      turns.energy +=
          (double) a[i] * a[i] + (double) a[width + i] * a[width + i];
    }
    turns.n_samples += width;
  }
  return turns;
}

/* The phase from line to line (Madsen 1989): the centre of the spectrum. */
static double
centre_of (const Turns *turns)
{
  return atan2 (turns->im, turns->re) / (2 * M_PI);
}

bool
imk_slcresample_measure_doppler (const ImkSlcresample *self, double *doppler)
{
  const Turns turns = add_turns (self);

  if (turns.n_samples < MIN_MEASURED ||
      !(hypot (turns.re, turns.im) > MIN_TURN * turns.energy))
    return false;
  *doppler = centre_of (&turns);
  return true;
}

uint32_t
imk_slcresample_ready (const ImkSlcresample *self, uint32_t most)
{
  const ImkSlcresampleConfig *c = &self->band.config;
  uint32_t n = 0;

  if (c->estimate_doppler && self->line == 0 &&
      self->pushed < doppler_end (self))
    return 0;
  while (n < most && n < c->out_height - self->line &&
         self->pushed >= lines_of (self, self->line + n).end)
    n++;
  return n;
}

ImkStatus
imk_slcresample_process (ImkSlcresample *self, ImkImage *out, ImkError *error)
{
  const ImkSlcresampleConfig *c = &self->band.config;
  uint32_t n = out ? out->height : 0;

  IMK_TRY (imk_image_check (
      out, "output", c->type, 1, c->out_width, n, false, error));
  if (imk_slcresample_ready (self, n) < n)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "%u lines from line %u on are not ready.", n, self->line);
  if (!self->band.weights[IMK_SLCRESAMPLE_AZIMUTH].re) {
    const Turns turns = add_turns (self);

    IMK_TRY (make_azimuth_weights (self, centre_of (&turns), error));
  }
  imk_slcresample_cpu_process (&self->band, self->line, out);
  self->line += n;
  return IMK_OK;
}
