/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarform/insarform-fringes.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/fft.h"
#include "imk/parallel.h"
#include "insarform/insarform-private.h"

enum { MAX_LINES = 32 }; /* that are pulled at a time: threads share them */

struct ImkInsarformFringes {
  ImkInsarformConfig config;
  uint32_t capacity;    /* lines: line y is y % capacity */
  uint8_t *lines[2];    /* of reference and secondary */
  float (*products)[2]; /* s1 conj (s2) without its length; 0 without data */
  size_t line_size;
  uint32_t pushed, pulled;    /* lines */
  uint32_t row;               /* of nodes that is measured next */
  ImkInsarformNodes nodes[2]; /* row r is r % 2 */
  double *scratch;            /* of each line that is pulled, [2 n] */
  double *phase;              /* of these lines, [width] */
  float *wrapped;             /* the same within half a turn */
  ImkFft *fft;
  float *spectra;    /* [n][W][W][2] */
  float (*turns)[2]; /* exp (-i 2 pi k / W), [W] */
};

/* --- nodes ---------------------------------------------------------------- */

static bool
make_nodes (ImkInsarformNodes *self, uint32_t width, uint32_t window)
{
  self->step = window / 2;
  self->n = imk_insarform_n_nodes (width, window);
  self->rate[0] = calloc (3 * (size_t) self->n, sizeof (double));
  self->counts = calloc (self->n, sizeof (bool));
  if (!self->rate[0] || !self->counts)
    return false;
  self->rate[1] = self->rate[0] + self->n;
  self->phase = self->rate[1] + self->n;
  return true;
}

static void
clear_nodes (ImkInsarformNodes *self)
{
  free (self->rate[0]);
  free (self->counts);
}

static uint32_t
step_of (const ImkInsarformFringes *self)
{
  return self->config.fringe_window / 2;
}

/* Returns: the first line that the next row of nodes needs */
static uint32_t
start_of_row (const ImkInsarformFringes *self)
{
  return imk_insarform_node_start (
      self->row, self->config.height, self->config.fringe_window);
}

static uint32_t
n_rows (const ImkInsarformFringes *self)
{
  return imk_insarform_n_nodes (
      self->config.height, self->config.fringe_window);
}

/* --- making --------------------------------------------------------------- */

static ImkStatus
make_fft (ImkInsarformFringes *self, ImkError *error)
{
  ImkFftConfig c;

  imk_fft_config_init (&c);
  c.width = c.height = self->config.fringe_window;
  c.in_place = true;
  return imk_fft_new (&c, &self->fft, error);
}

static bool
make_memory (ImkInsarformFringes *self)
{
  uint32_t window = self->config.fringe_window, width = self->config.width;
  bool is_made = make_nodes (&self->nodes[0], width, window) &&
                 make_nodes (&self->nodes[1], width, window);
  uint32_t n = self->nodes[0].n;

  for (int i = 0; i < 2; i++)
    self->lines[i] = malloc (self->capacity * self->line_size);
  self->products =
      malloc ((size_t) self->capacity * width * sizeof (*self->products));
  self->scratch = malloc (2 * (size_t) MAX_LINES * n * sizeof (double));
  self->phase = malloc ((size_t) MAX_LINES * width * sizeof (double));
  self->wrapped = malloc ((size_t) MAX_LINES * width * sizeof (float));
  self->spectra =
      aligned_alloc (64, 2 * (size_t) n * window * window * sizeof (float));
  self->turns = malloc (window * sizeof (*self->turns));
  if (!is_made || !self->lines[0] || !self->lines[1] || !self->products ||
      !self->scratch || !self->phase || !self->wrapped || !self->spectra ||
      !self->turns)
    return false;
  for (uint32_t k = 0; k < window; k++) {
    self->turns[k][0] = (float) cos (2 * M_PI * k / window);
    self->turns[k][1] = (float) -sin (2 * M_PI * k / window);
  }
  return true;
}

ImkStatus
imk_insarform_fringes_new (const ImkInsarformConfig *config,
    ImkInsarformFringes **self, ImkError *error)
{
  ImkInsarformFringes *s = calloc (1, sizeof (*s));
  uint32_t window = config->fringe_window;
  ImkStatus status = IMK_ERROR_MEMORY;

  if (s) {
    s->config = *config;
    s->capacity = 2 * window;
    s->line_size = imk_type_size (config->type) * config->width;
    if (make_memory (s))
      status = make_fft (s, error);
    else
      IMK_NO_MEMORY (error,
          "for %u lines of two images of %u columns, in "
          "which fringes are measured.",
          s->capacity, config->width);
  } else {
    IMK_NO_MEMORY (error, "for the fringes.");
  }
  if (status == IMK_OK)
    *self = s;
  else
    imk_insarform_fringes_free (s);
  return status;
}

void
imk_insarform_fringes_free (ImkInsarformFringes *self)
{
  if (!self)
    return;
  for (int i = 0; i < 2; i++) {
    clear_nodes (&self->nodes[i]);
    free (self->lines[i]);
  }
  free (self->products);
  free (self->scratch);
  free (self->phase);
  free (self->wrapped);
  free (self->spectra);
  free (self->turns);
  imk_fft_free (self->fft);
  free (self);
}

void
imk_insarform_fringes_rewind (ImkInsarformFringes *self)
{
  self->pushed = self->pulled = self->row = 0;
}

/* --- products ------------------------------------------------------------- */

/* In float64, where a product of two floats is neither too large nor too small.
 */
static inline void
multiply (bool is_float, const void *reference, const void *secondary,
    uint32_t x, float *p)
{
  double a, b, c, d, re, im, power;

  imk_insarform_load (is_float, reference, x, &a, &b);
  imk_insarform_load (is_float, secondary, x, &c, &d);
  re = a * c + b * d;
  im = b * c - a * d;
  power = re * re + im * im;
  power = power > 0 && power < INFINITY ? 1 / sqrt (power) : 0;
  p[0] = power > 0 ? (float) (re * power) : 0; /* NaN is no data */
  p[1] = power > 0 ? (float) (im * power) : 0;
}

static const float (*products_of (
    const ImkInsarformFringes *self, const uint32_t *at, uint32_t y))[2]
{
  return self->products +
         (size_t) ((at[1] + y) % self->capacity) * self->config.width + at[0];
}

/* --- one node ------------------------------------------------------------- */

/* Returns: samples with data; @to: [W][W] */
static uint32_t
load_window (const ImkInsarformFringes *self, const uint32_t *at, float *to)
{
  uint32_t window = self->config.fringe_window, n = 0;

  for (uint32_t y = 0; y < window; y++, to += 2 * (size_t) window) {
    const float (*p)[2] = products_of (self, at, y);

    memcpy (to, p, window * sizeof (*p));
    for (uint32_t x = 0; x < window; x++)
      n += p[x][0] != 0 || p[x][1] != 0;
  }
  return n;
}

static uint32_t
find_peak (const float *spectrum, uint32_t n, float *power)
{
  uint32_t best = 0;

  *power = -1;
  for (uint32_t i = 0; i < n; i++) {
    float re = spectrum[2 * i], im = spectrum[2 * i + 1];

    if (re * re + im * im > *power) {
      *power = re * re + im * im;
      best = i;
    }
  }
  return best;
}

/* @bin: column and line of the spectrum; @rate: (out): rad a sample */
static void
refine (const ImkInsarformFringes *self, const uint32_t *at,
    const uint32_t *bin, double *rate)
{
  uint32_t window = self->config.fringe_window;
  double complex q[2][2] = {{0}}, turn[2]; /* [lower half][right half] */

  for (uint32_t y = 0; y < window; y++) {
    const float (*p)[2] = products_of (self, at, y);

    for (uint32_t half = 0; half < 2; half++) {
      double re = 0, im = 0;

      for (uint32_t x = half * window / 2; x < (half + 1) * window / 2; x++) {
        const float *t = self->turns[(bin[0] * x + bin[1] * y) % window];

        re += (double) p[x][0] * t[0] - (double) p[x][1] * t[1];
        im += (double) p[x][0] * t[1] + (double) p[x][1] * t[0];
      }
      q[2 * y >= window][half] += re + I * im;
    }
  }
  turn[0] = conj (q[0][0]) * q[0][1] + conj (q[1][0]) * q[1][1];
  turn[1] = conj (q[0][0]) * q[1][0] + conj (q[0][1]) * q[1][1];
  for (int axis = 0; axis < 2; axis++) {
    double whole =
        bin[axis] <= window / 2 ? bin[axis] : (double) bin[axis] - window;

    rate[axis] = 2 * M_PI * whole / window + carg (turn[axis]) / (window / 2);
  }
}

static void
measure_nodes (void *data, uint32_t first, uint32_t end)
{
  ImkInsarformFringes *self = data;
  ImkInsarformNodes *nodes = &self->nodes[self->row % 2];
  uint32_t window = self->config.fringe_window;

  for (uint32_t i = first; i < end; i++) {
    const uint32_t at[2] = {
        imk_insarform_node_start (i, self->config.width, window),
        start_of_row (self)};
    float *spectrum = self->spectra + 2 * (size_t) i * window * window;
    uint32_t n = load_window (self, at, spectrum);
    double rate[2];
    float power;
    uint32_t peak;
    ImkError error;

    nodes->counts[i] =
        imk_fft_execute (self->fft, spectrum, spectrum, &error) == IMK_OK;
    peak = find_peak (spectrum, window * window, &power);
    nodes->counts[i] &= n > 0 && power > (float) IMK_INSARFORM_SIGNIFICANT * n;
    if (!nodes->counts[i])
      continue;
    refine (self, at, (uint32_t[]){peak % window, peak / window}, rate);
    nodes->rate[0][i] = rate[0];
    nodes->rate[1][i] = rate[1];
  }
}

/* --- lines ---------------------------------------------------------------- */

uint32_t
imk_insarform_fringes_room (const ImkInsarformFringes *self)
{
  uint32_t oldest = start_of_row (self);
  uint32_t left = self->config.height - self->pushed, room;

  if (self->row >= n_rows (self) || self->pulled < oldest)
    oldest = self->pulled;
  room = oldest + self->capacity - self->pushed;
  return room < left ? room : left;
}

/* A phase needs the nodes above and below: of lines up to the last row that has
 * been measured, whose number is row - 1. */
static uint32_t
n_ready (const ImkInsarformFringes *self)
{
  uint32_t end = self->row == n_rows (self) ? self->config.height
                                            : self->row * step_of (self);

  return end > self->pulled ? end - self->pulled : 0;
}

bool
imk_insarform_fringes_is_ready (const ImkInsarformFringes *self)
{
  return n_ready (self) > 0;
}

/* Rows of nodes as far as there are lines, and two rows are enough. */
static void
measure (ImkInsarformFringes *self)
{
  while (!imk_insarform_fringes_is_ready (self) && self->row < n_rows (self) &&
         start_of_row (self) + self->config.fringe_window <= self->pushed) {
    imk_parallel_for (
        self->config.n_threads, self->nodes[0].n, 1, measure_nodes, self);
    imk_insarform_nodes_integrate (&self->nodes[self->row % 2],
        self->row ? &self->nodes[(self->row + 1) % 2] : NULL, self->scratch);
    self->row++;
  }
}

typedef struct Push {
  ImkInsarformFringes *fringes;
  const ImkImage *images[2];
} Push;

/* Windows overlap: a product is part of four. */
static void
take_lines (void *data, uint32_t first, uint32_t end)
{
  const Push *push = data;
  const ImkInsarformFringes *self = push->fringes;
  bool is_float = self->config.type == IMK_TYPE_CF32;

  for (uint32_t i = first; i < end; i++) {
    const uint32_t at[2] = {0, self->pushed + i};
    float (*p)[2] = (float (*)[2]) products_of (self, at, 0);
    uint8_t *lines[2];

    for (int k = 0; k < 2; k++) {
      lines[k] = self->lines[k] + at[1] % self->capacity * self->line_size;
      memcpy (lines[k],
          (const uint8_t *) push->images[k]->data + i * push->images[k]->stride,
          self->line_size);
    }
    for (uint32_t x = 0; x < self->config.width; x++)
      multiply (is_float, lines[0], lines[1], x, p[x]);
  }
}

void
imk_insarform_fringes_push (ImkInsarformFringes *self,
    const ImkImage *reference, const ImkImage *secondary)
{
  Push push = {self, {reference, secondary}};

  imk_parallel_for (
      self->config.n_threads, reference->height, 1, take_lines, &push);
  self->pushed += reference->height;
  measure (self);
}

/* Phases of the lines that are pulled next. */
static void
make_phases (void *data, uint32_t first, uint32_t end)
{
  const ImkInsarformFringes *self = data;
  uint32_t width = self->config.width;

  for (uint32_t k = first; k < end; k++) {
    double at = (double) (self->pulled + k) / step_of (self) - 1; /* in rows */
    double above = fmax (fmin (floor (at), self->row - 2.0), 0);
    uint32_t i = (uint32_t) above;
    bool is_only = self->row == 1;
    double *phase = self->phase + (size_t) k * width;
    float *wrapped = self->wrapped + (size_t) k * width;

    imk_insarform_nodes_interpolate (&self->nodes[i % 2],
        &self->nodes[(i + !is_only) % 2],
        is_only && at >= 0 ? at + 1 : at - above,
        self->scratch + 2 * (size_t) k * self->nodes[0].n, width, phase);
    for (uint32_t x = 0; x < width; x++)
      wrapped[x] =
          (float) (phase[x] - 2 * M_PI * round (phase[x] / (2 * M_PI)));
  }
}

void
imk_insarform_fringes_pull (ImkInsarformFringes *self, uint32_t n,
    ImkImage *reference, ImkImage *secondary, ImkImage *phase)
{
  uint32_t width = self->config.width, y = self->pulled % self->capacity;
  uint32_t ready = n_ready (self);
  ImkImage *images[2] = {reference, secondary};

  n = n < ready ? n : ready;
  n = n < MAX_LINES ? n : MAX_LINES;
  n = n < self->capacity - y ? n : self->capacity - y;
  imk_parallel_for (self->config.n_threads, n, 1, make_phases, self);
  for (int i = 0; i < 2; i++)
    *images[i] = imk_image_of_rows (
        self->lines[i] + y * self->line_size, self->config.type, width, n);
  *phase = imk_image_of_rows (self->wrapped, IMK_TYPE_F32, width, n);
  self->pulled += n;
  measure (self);
}
