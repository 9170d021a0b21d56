/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A patch is one thread's work, from its lines to its offset, in memory of its
 * own that stays in the cache as far as it can. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/parallel.h"
#include "fft/fft.h"
#include "insarxcorr/insarxcorr-peak.h"

enum {
  CHUNK = 16, /* lines that are interpolated at a time; patches have a multiple
               * of as many */
  ALIGNMENT = 64,
  WINDOW = IMK_INSARXCORR_WINDOW,
};

typedef struct Complex {
  float re, im;
} Complex;

/* What one patch needs; in a list while nobody works in it. */
typedef struct Workspace {
  struct Workspace *next;
  Complex *lines, *spectra, *phases; /* [CHUNK][width] */
  float *even, *odd;                 /* [width] */
  float *a, *b;                      /* [height][width]: amplitudes */
  Complex *a_spectrum;               /* [height][width / 2 + 1] */
  Complex *b_spectrum;    /* the same, and then the surface over it */
  int32_t *a_cut, *b_cut; /* [height][width], for methods of time */
  double *zoomed;         /* [8][8 F], [8 F] */
} Workspace;

typedef struct Cpu {
  const ImkInsarxcorrPlan *plan;
  uint32_t width, height; /* of a patch */
  uint8_t *bands[IMK_INSARXCORR_N_SIDES];
  size_t strides[IMK_INSARXCORR_N_SIDES];

  ImkFft *forward, *backward; /* of CHUNK lines; NULL without interpolation */
  ImkFft *spectrum, *surface; /* of patches */
  Complex *turns; /* [range_interp][width]: to samples m / range_interp later */
  double *tables;
  ImkInsarxcorrZoom zoom;

  uint32_t n_threads;
  pthread_mutex_t lock;
  Workspace *idle;
} Cpu;

/* One call of process. */
typedef struct Row {
  Cpu *cpu;
  const ImkInsarxcorrPatch *patches;
  const ImkImage *out;
  ImkStatus status; /* the first failure, under the lock of the Cpu */
  ImkError error;
} Row;

/* A patch at work. */
typedef struct Work {
  const Cpu *cpu;
  const ImkInsarxcorrPatch *patch;
  Workspace *space;
  ImkInsarxcorrPeak peak;
} Work;

/* ------------------------------------------------------------------------
 * From lines to amplitudes. */

/* Samples that are no numbers would spoil all of the patch. */
static inline bool
is_finite (float value)
{
  return fabsf (value) <= 3.0e38f;
}

/* Returns: samples that are data */
static uint32_t
load_ci16 (const int16_t *restrict in, uint32_t n, Complex *restrict out)
{
  uint32_t n_valid = 0;

  for (uint32_t i = 0; i < n; i++) {
    out[i].re = in[2 * i];
    out[i].im = in[2 * i + 1];
    n_valid += (in[2 * i] | in[2 * i + 1]) != 0;
  }
  return n_valid;
}

static uint32_t
load_cf32 (const float *restrict in, uint32_t n, Complex *restrict out)
{
  uint32_t n_valid = 0;

  for (uint32_t i = 0; i < n; i++) {
    float re = in[2 * i], im = in[2 * i + 1];
    bool valid = is_finite (re) && is_finite (im) && (re != 0 || im != 0);

    out[i].re = valid ? re : 0;
    out[i].im = valid ? im : 0;
    n_valid += valid;
  }
  return n_valid;
}

static uint32_t
load_f32 (const float *restrict in, uint32_t n, Complex *restrict out)
{
  uint32_t n_valid = 0;

  for (uint32_t i = 0; i < n; i++) {
    bool valid = is_finite (in[i]) && in[i] != 0;

    out[i].re = valid ? in[i] : 0;
    out[i].im = 0;
    n_valid += valid;
  }
  return n_valid;
}

static uint32_t
load (ImkType type, const void *in, uint32_t n, Complex *out)
{
  switch (type) {
  case IMK_TYPE_CI16:
    return load_ci16 (in, n, out);
  case IMK_TYPE_CF32:
    return load_cf32 (in, n, out);
  default:
    return load_f32 (in, n, out);
  }
}

static const uint8_t *
band_line (const Cpu *cpu, int side, int64_t line)
{
  const ImkInsarxcorrBand *band = &cpu->plan->bands[side];
  int64_t last = (int64_t) band->image_height - 1;

  line = line < 0 ? 0 : line > last ? last : line;
  return cpu->bands[side] + (line % band->n_lines) * cpu->strides[side];
}

/* Line @y of the patch of @side. Returns: samples that are data */
static uint32_t
load_line (const Work *w, int side, uint32_t y, Complex *out)
{
  const Cpu *cpu = w->cpu;
  int64_t first = w->patch->column[side], from = first, to;
  const uint8_t *line =
      band_line (cpu, side, (int64_t) w->patch->line[side] + y);
  ImkType type = cpu->plan->config.type;

  from = first < 0 ? 0 : first;
  to = first + cpu->width;
  if (to > cpu->plan->bands[side].width)
    to = cpu->plan->bands[side].width;
  if (from >= to) {
    memset (out, 0, cpu->width * sizeof (*out));
    return 0;
  }
  memset (out, 0, (size_t) (from - first) * sizeof (*out));
  memset (out + (to - first), 0,
      (size_t) (first + cpu->width - to) * sizeof (*out));
  return load (type, line + (size_t) from * imk_type_size (type),
      (uint32_t) (to - from), out + (from - first));
}

static void
take_amplitudes (const Complex *restrict in, uint32_t n, float *restrict out)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = sqrtf (in[i].re * in[i].re + in[i].im * in[i].im);
}

/* Finer column j is sample j / ri; those of [width / 2, 3 width / 2) are kept.
 * Of @in, samples at @phase / ri behind whole ones, they are in turn every
 * ri-th. */
static void
scatter_phase (const Cpu *cpu, uint32_t phase, const Complex *in, float *buffer,
    float *out)
{
  uint32_t ri = cpu->plan->config.range_interp, half = cpu->width / 2;
  uint32_t first = (phase + ri - half % ri) % ri; /* of the kept columns */
  uint32_t n = (cpu->width - first + ri - 1) / ri;

  take_amplitudes (in + (half + first) / ri, n, buffer);
  for (uint32_t i = 0; i < n; i++)
    out[first + i * ri] = buffer[i];
}

static void
multiply (const Complex *restrict spectra, const Complex *restrict turns,
    uint32_t width, Complex *restrict out)
{
  for (uint32_t y = 0; y < CHUNK; y++)
    for (uint32_t k = 0; k < width; k++) {
      Complex s = spectra[y * width + k], t = turns[k];

      out[y * width + k] =
          (Complex){s.re * t.re - s.im * t.im, s.re * t.im + s.im * t.re};
    }
}

/* The lines in the workspace as CHUNK rows of amplitudes at @out. */
static ImkStatus
detect_chunk (const Work *w, float *out, ImkError *error)
{
  const Cpu *cpu = w->cpu;
  Workspace *s = w->space;
  uint32_t width = cpu->width, ri = cpu->plan->config.range_interp;
  ImkStatus status;

  if (ri == 1) {
    take_amplitudes (s->lines, CHUNK * width, out);
    return IMK_OK;
  }
  for (uint32_t y = 0; y < CHUNK; y++)
    scatter_phase (cpu, 0, s->lines + y * width, s->even, out + y * width);
  status = imk_fft_execute (cpu->forward, s->lines, s->spectra, error);
  for (uint32_t m = 1; m < ri && status == IMK_OK; m++) {
    multiply (s->spectra, cpu->turns + m * width, width, s->phases);
    status = imk_fft_execute (cpu->backward, s->phases, s->lines, error);
    for (uint32_t y = 0; y < CHUNK && status == IMK_OK; y++)
      scatter_phase (cpu, m, s->lines + y * width, s->odd, out + y * width);
  }
  return status;
}

static double
sum_of (const float *in, uint32_t n)
{
  double sums[8] = {0}, sum = 0; /* eight, to be added side by side */

  for (uint32_t i = 0; i < n; i += 8)
    for (uint32_t j = 0; j < 8; j++)
      sums[j] += in[i + j];
  for (uint32_t j = 0; j < 8; j++)
    sum += sums[j];
  return sum;
}

static void
subtract (float *out, uint32_t n, float mean)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] -= mean;
}

/* The patch of @side as amplitudes without their mean. */
static ImkStatus
detect (Work *w, int side, float *out, ImkError *error)
{
  const Cpu *cpu = w->cpu;
  uint32_t n = cpu->width * cpu->height;
  uint64_t n_valid = 0;
  ImkStatus status = IMK_OK;
  double valid;

  for (uint32_t y = 0; y < cpu->height && status == IMK_OK; y += CHUNK) {
    for (uint32_t i = 0; i < CHUNK; i++)
      n_valid += load_line (w, side, y + i, w->space->lines + i * cpu->width);
    status = detect_chunk (w, out + (size_t) y * cpu->width, error);
  }
  subtract (out, n, (float) (sum_of (out, n) / n));
  valid = (double) n_valid / n;
  if (valid < w->peak.valid)
    w->peak.valid = valid;
  return status;
}

/* ------------------------------------------------------------------------
 * The surface. A lag of the transforms is a place modulo their size. */

/* Outside the template b is 0. */
static void
mask (const Cpu *cpu, float *b)
{
  uint32_t width = cpu->width, height = cpu->height;
  uint32_t left = width / 4, top = height / 4;

  memset (b, 0, (size_t) top * width * sizeof (*b));
  memset (b + (size_t) (height - top) * width, 0,
      (size_t) top * width * sizeof (*b));
  for (uint32_t y = top; y < height - top; y++) {
    memset (b + (size_t) y * width, 0, left * sizeof (*b));
    memset (b + (size_t) (y + 1) * width - left, 0, left * sizeof (*b));
  }
}

/* @b becomes a conj (b) */
static void
correlate (const Complex *restrict a, Complex *restrict b, size_t n)
{
  for (size_t i = 0; i < n; i++)
    b[i] = (Complex){a[i].re * b[i].re + a[i].im * b[i].im,
        a[i].im * b[i].re - a[i].re * b[i].im};
}

static ImkStatus
make_surface (const Work *w, ImkError *error)
{
  const Cpu *cpu = w->cpu;
  Workspace *s = w->space;
  ImkStatus status =
      imk_fft_execute (cpu->spectrum, s->a, s->a_spectrum, error);

  if (status == IMK_OK)
    status = imk_fft_execute (cpu->spectrum, s->b, s->b_spectrum, error);
  if (status != IMK_OK)
    return status;
  correlate (s->a_spectrum, s->b_spectrum,
      (size_t) (cpu->width / 2 + 1) * cpu->height);
  return imk_fft_execute (cpu->surface, s->b_spectrum, s->b_spectrum, error);
}

/* Where the surface has lag (-xsearch + @v, -ysearch + @u). */
static const float *
surface_at (const Work *w, uint32_t u, uint32_t v)
{
  const Cpu *cpu = w->cpu;
  uint32_t y = (u + cpu->height - cpu->height / 4) % cpu->height;
  uint32_t x = (v + cpu->width - cpu->width / 4) % cpu->width;
  const float *surface = (const float *) w->space->b_spectrum;

  return surface + (size_t) y * (cpu->width + 2) + x;
}

/* A float without its sign, as an integer of the same order. */
static inline uint32_t
magnitude (const float *value)
{
  uint32_t bits;

  memcpy (&bits, value, sizeof (bits));
  return bits & 0x7fffffff;
}

static uint32_t
largest_of (const float *in, uint32_t n)
{
  uint32_t largest = 0;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t m = magnitude (in + i);

    largest = m > largest ? m : largest;
  }
  return largest;
}

/* The first of the largest, row by row. Returns: its magnitude */
static float
find_peak (const Work *w, uint32_t *u, uint32_t *v)
{
  const ImkInsarxcorrConfig *c = &w->cpu->plan->config;
  uint32_t best = 0;
  float value;

  *u = *v = 0;
  for (uint32_t i = 0; i < 2 * c->ysearch; i++) {
    /* negative lags are at the end of a row */
    uint32_t left = largest_of (surface_at (w, i, 0), c->xsearch);
    uint32_t right = largest_of (surface_at (w, i, c->xsearch), c->xsearch);
    uint32_t largest = left > right ? left : right;

    if (largest > best) {
      best = largest;
      *u = i;
    }
  }
  while (best && magnitude (surface_at (w, *u, *v)) != best)
    ++*v;
  memcpy (&value, &best, sizeof (value));
  return value;
}

/* ------------------------------------------------------------------------
 * The correlation at one lag, in integers. */

typedef struct Sums {
  int64_t ab, aa, bb;
} Sums;

static void
add_products (
    const float *restrict a, const float *restrict b, uint32_t n, Sums *sums)
{
  int64_t ab = 0, aa = 0, bb = 0;

  for (uint32_t i = 0; i < n; i++) {
    int32_t p = imk_insarxcorr_cut (a[i]), q = imk_insarxcorr_cut (b[i]);

    ab += (int64_t) p * q;
    aa += (int64_t) p * p;
    bb += (int64_t) q * q;
  }
  sums->ab += ab;
  sums->aa += aa;
  sums->bb += bb;
}

static double
correlation_at (const Work *w, uint32_t u, uint32_t v)
{
  const Cpu *cpu = w->cpu;
  uint32_t left = cpu->width / 4, top = cpu->height / 4;
  Sums sums = {0};

  for (uint32_t y = 0; y < 2 * top; y++)
    add_products (w->space->a + (size_t) (y + u) * cpu->width + v,
        w->space->b + (size_t) (top + y) * cpu->width + left, 2 * left, &sums);
  return imk_insarxcorr_correlation (sums.ab, sums.aa, sums.bb);
}

/* --- methods of time: the same at every lag --------------------------------
 */

static void
cut_all (const float *restrict in, uint32_t n, int32_t *restrict out)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = imk_insarxcorr_cut (in[i]);
}

static void
add_cut_products (const int32_t *restrict a, const int32_t *restrict b,
    uint32_t n, Sums *sums)
{
  int64_t ab = 0, aa = 0, bb = 0;

  for (uint32_t i = 0; i < n; i++) {
    ab += (int64_t) a[i] * b[i];
    aa += (int64_t) a[i] * a[i];
    bb += (int64_t) b[i] * b[i];
  }
  sums->ab += ab;
  sums->aa += aa;
  sums->bb += bb;
}

/* Fourth powers do not fit 64 bits. */
typedef struct Squares {
  double aabb, aaaa, bbbb;
} Squares;

static void
add_squares (const int32_t *a, const int32_t *b, uint32_t n, Squares *sums)
{
  for (uint32_t i = 0; i < n; i++) {
    double p = (double) a[i] * a[i], q = (double) b[i] * b[i];

    sums->aabb += p * q;
    sums->aaaa += p * p;
    sums->bbbb += q * q;
  }
}

static double
gatelli (const Squares *s)
{
  double norm = sqrt (s->aaaa * s->bbbb);
  double gamma = norm > 0 ? s->aabb / norm : 0;

  return gamma > 0.5 ? 100 * sqrt (2 * gamma - 1) : 0;
}

static float
time_correlation (const Work *w, uint32_t u, uint32_t v)
{
  const Cpu *cpu = w->cpu;
  uint32_t left = cpu->width / 4, top = cpu->height / 4;
  bool fourth = cpu->plan->config.method == IMK_INSARXCORR_TIME4;
  Sums sums = {0};
  Squares squares = {0};

  for (uint32_t y = 0; y < 2 * top; y++) {
    const int32_t *a = w->space->a_cut + (size_t) (y + u) * cpu->width + v;
    const int32_t *b = w->space->b_cut + (size_t) (top + y) * cpu->width + left;

    if (fourth)
      add_squares (a, b, 2 * left, &squares);
    else
      add_cut_products (a, b, 2 * left, &sums);
  }
  return (float) (fourth
                      ? gatelli (&squares)
                      : imk_insarxcorr_correlation (sums.ab, sums.aa, sums.bb));
}

static void
make_time_surface (const Work *w)
{
  const Cpu *cpu = w->cpu;
  Workspace *s = w->space;

  cut_all (s->a, cpu->width * cpu->height, s->a_cut);
  cut_all (s->b, cpu->width * cpu->height, s->b_cut);
  for (uint32_t u = 0; u < cpu->height / 2; u++)
    for (uint32_t v = 0; v < cpu->width / 2; v++)
      *(float *) surface_at (w, u, v) = time_correlation (w, u, v);
}

/* ------------------------------------------------------------------------
 * The fine peak. */

static void
take_window (const Work *w, uint32_t u, uint32_t v, double largest,
    double window[WINDOW][WINDOW])
{
  const Cpu *cpu = w->cpu;

  for (uint32_t i = 0; i < WINDOW; i++)
    for (uint32_t j = 0; j < WINDOW; j++) {
      /* below 0 they wrap to large numbers */
      uint32_t y = u + i - WINDOW / 2, x = v + j - WINDOW / 2;
      bool inside = y < cpu->height / 2 && x < cpu->width / 2;

      window[i][j] =
          inside ? imk_insarxcorr_weigh (fabsf (*surface_at (w, y, x)), largest)
                 : 0;
    }
}

/* @rows[i]: row i of the window, interpolated; returns sum (-1)^(i+j) W(i,j) */
static double
zoom_rows (
    const ImkInsarxcorrZoom *zoom, double window[WINDOW][WINDOW], double *rows)
{
  uint32_t n_fine = WINDOW * zoom->interp;
  double alternating = 0;

  for (uint32_t i = 0; i < WINDOW; i++) {
    for (uint32_t n = 0; n < n_fine; n++) {
      double sum = 0;

      for (uint32_t j = 0; j < WINDOW; j++)
        sum += zoom->real[n * WINDOW + j] * window[i][j];
      rows[i * n_fine + n] = sum;
    }
    for (uint32_t j = 0; j < WINDOW; j++)
      alternating += (i + j) % 2 ? -window[i][j] : window[i][j];
  }
  return alternating;
}

static void
zoom_column (const ImkInsarxcorrZoom *zoom, uint32_t g, double alternating,
    const double *restrict rows, double *restrict out)
{
  uint32_t n_fine = WINDOW * zoom->interp;
  const double *weights = zoom->real + g * WINDOW;
  double sine = zoom->sines[g] * alternating;

  for (uint32_t n = 0; n < n_fine; n++) {
    double sum = 0;

    for (uint32_t i = 0; i < WINDOW; i++)
      sum += weights[i] * rows[i * n_fine + n];
    out[n] = sum - sine * zoom->sines[n];
  }
}

/* The first of the largest of the finer window, row by row, as float32: that
 * two of them are equal is part of GMTSAR's result. */
static void
find_fine_peak (
    const Work *w, double window[WINDOW][WINDOW], uint32_t *g, uint32_t *h)
{
  const ImkInsarxcorrZoom *zoom = &w->cpu->zoom;
  uint32_t n_fine = WINDOW * zoom->interp;
  double *rows = w->space->zoomed, *line = rows + WINDOW * n_fine;
  double alternating = zoom_rows (zoom, window, rows);
  float best = -INFINITY;

  for (uint32_t i = 0; i < n_fine; i++) {
    zoom_column (zoom, i, alternating, rows, line);
    for (uint32_t j = 0; j < n_fine; j++)
      if ((float) line[j] > best) {
        best = (float) line[j];
        *g = i;
        *h = j;
      }
  }
}

/* ------------------------------------------------------------------------
 * A patch, a row of them. */

static void
locate_peak (Work *w)
{
  const ImkInsarxcorrConfig *c = &w->cpu->plan->config;
  double window[WINDOW][WINDOW];
  uint32_t u, v, g = 0, h = 0;
  float largest = find_peak (w, &u, &v);

  if (!(largest > 0) || !isfinite (largest)) {
    imk_insarxcorr_no_peak (c, &w->peak);
    return;
  }
  w->peak.correlation = c->method == IMK_INSARXCORR_FREQ
                            ? correlation_at (w, u, v)
                            : (double) largest;
  if (u < WINDOW / 2 || v < WINDOW / 2 || u + WINDOW / 2 > 2 * c->ysearch ||
      v + WINDOW / 2 > 2 * c->xsearch)
    w->peak.flags |= IMK_INSARXCORR_EDGE;
  take_window (w, u, v, largest, window);
  find_fine_peak (w, window, &g, &h);
  w->peak.dy = (double) u - c->ysearch + (double) g / c->interp - WINDOW / 2;
  w->peak.dx = (double) v - c->xsearch + (double) h / c->interp - WINDOW / 2;
}

static ImkStatus
measure_patch (Work *w, ImkError *error)
{
  const Cpu *cpu = w->cpu;
  ImkStatus status;

  w->peak = (ImkInsarxcorrPeak){.valid = 1};
  status = detect (w, IMK_INSARXCORR_REFERENCE, w->space->a, error);
  if (status == IMK_OK)
    status = detect (w, IMK_INSARXCORR_SECONDARY, w->space->b, error);
  if (status != IMK_OK)
    return status;
  mask (cpu, w->space->b);
  if (cpu->plan->config.method == IMK_INSARXCORR_FREQ)
    status = make_surface (w, error);
  else
    make_time_surface (w);
  if (status == IMK_OK)
    locate_peak (w);
  return status;
}

static Workspace *
take_workspace (Cpu *cpu)
{
  Workspace *space;

  pthread_mutex_lock (&cpu->lock);
  space = cpu->idle;
  cpu->idle = space->next;
  pthread_mutex_unlock (&cpu->lock);
  return space;
}

static void
give_workspace (Cpu *cpu, Workspace *space)
{
  pthread_mutex_lock (&cpu->lock);
  space->next = cpu->idle;
  cpu->idle = space;
  pthread_mutex_unlock (&cpu->lock);
}

static void
note_failure (Row *row, ImkStatus status, const ImkError *error)
{
  pthread_mutex_lock (&row->cpu->lock);
  if (row->status == IMK_OK) {
    row->status = status;
    row->error = *error;
  }
  pthread_mutex_unlock (&row->cpu->lock);
}

static void
measure_patches (void *data, uint32_t first, uint32_t end)
{
  Row *row = data;
  Workspace *space = take_workspace (row->cpu);

  for (uint32_t i = first; i < end; i++) {
    Work work = {.cpu = row->cpu, .patch = row->patches + i, .space = space};
    ImkError error;
    ImkStatus status = measure_patch (&work, &error);

    if (status != IMK_OK) {
      note_failure (row, status, &error);
      break;
    }
    imk_insarxcorr_finish (&row->cpu->plan->config, work.patch, &work.peak,
        (double *) ((uint8_t *) row->out->data + i * row->out->stride));
  }
  give_workspace (row->cpu, space);
}

/* ------------------------------------------------------------------------
 * The backend. */

static size_t
round_up (size_t size)
{
  return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Takes @size bytes from @block, or only counts them when that is NULL. */
static void *
carve (uint8_t *block, size_t *used, size_t size)
{
  void *at = block ? block + *used : NULL;

  *used += round_up (size);
  return at;
}

/* Lays a workspace out over @block. Returns: bytes that it takes */
static size_t
lay_out (const Cpu *cpu, uint8_t *block, Workspace *s)
{
  size_t chunk = (size_t) CHUNK * cpu->width * sizeof (Complex);
  size_t patch = (size_t) cpu->height * cpu->width * sizeof (float);
  size_t spectrum =
      (size_t) cpu->height * (cpu->width / 2 + 1) * sizeof (Complex);
  size_t n_fine = (size_t) WINDOW * cpu->plan->config.interp;
  bool in_time = cpu->plan->config.method != IMK_INSARXCORR_FREQ;
  size_t used = round_up (sizeof (Workspace));

  s->lines = carve (block, &used, chunk);
  s->spectra = carve (block, &used, chunk);
  s->phases = carve (block, &used, chunk);
  s->even = carve (block, &used, cpu->width * sizeof (float));
  s->odd = carve (block, &used, cpu->width * sizeof (float));
  s->a = carve (block, &used, patch);
  s->b = carve (block, &used, patch);
  s->b_spectrum = carve (block, &used, spectrum);
  s->a_spectrum = carve (block, &used, in_time ? 0 : spectrum);
  s->a_cut = carve (block, &used, in_time ? patch : 0);
  s->b_cut = carve (block, &used, in_time ? patch : 0);
  s->zoomed = carve (block, &used, (WINDOW + 1) * n_fine * sizeof (double));
  return used;
}

static ImkStatus
no_memory (uint64_t size, ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory for the correlation: %llu bytes were asked for.",
      (unsigned long long) size);
}

/* One a thread, and as many threads as memory is allowed for. */
static ImkStatus
create_workspaces (Cpu *cpu, ImkError *error)
{
  Workspace sizes;
  size_t size = lay_out (cpu, NULL, &sizes);
  uint64_t limit = cpu->plan->work_limit;
  uint32_t n = imk_parallel_threads (cpu->plan->config.n_threads);

  n = n < cpu->plan->config.nx ? n : cpu->plan->config.nx;
  if (limit && limit / size < n)
    n = (uint32_t) (limit / size);
  if (n == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "memory-limit leaves %llu bytes for the work on patches of %u x %u "
        "samples, which takes %zu at least. Raise it, or take a smaller "
        "search.",
        (unsigned long long) limit, cpu->width, cpu->height, size);
  cpu->n_threads = n;
  for (uint32_t i = 0; i < n; i++) {
    uint8_t *block = aligned_alloc (ALIGNMENT, size);

    if (!block)
      return no_memory (size, error);
    lay_out (cpu, block, (Workspace *) block);
    give_workspace (cpu, (Workspace *) block);
  }
  return IMK_OK;
}

static ImkStatus
create_plan (ImkFft **fft, ImkFftKind kind, ImkFftDirection direction,
    uint32_t width, uint32_t height, uint32_t n, ImkError *error)
{
  ImkFftConfig c;

  imk_fft_config_init (&c);
  c.kind = kind;
  c.direction = direction;
  c.width = width;
  c.height = height;
  c.n_transforms = n;
  c.in_place = kind == IMK_FFT_C2R;
  return imk_fft_new (&c, fft, error);
}

static ImkStatus
create_plans (Cpu *cpu, ImkError *error)
{
  bool interpolates = cpu->plan->config.range_interp > 1;
  bool transforms = cpu->plan->config.method == IMK_INSARXCORR_FREQ;
  ImkStatus status = IMK_OK;

  if (interpolates)
    status = create_plan (&cpu->forward, IMK_FFT_C2C, IMK_FFT_FORWARD,
        cpu->width, 1, CHUNK, error);
  if (interpolates && status == IMK_OK)
    status = create_plan (&cpu->backward, IMK_FFT_C2C, IMK_FFT_BACKWARD,
        cpu->width, 1, CHUNK, error);
  if (transforms && status == IMK_OK)
    status = create_plan (&cpu->spectrum, IMK_FFT_R2C, IMK_FFT_FORWARD,
        cpu->width, cpu->height, 1, error);
  if (transforms && status == IMK_OK)
    status = create_plan (&cpu->surface, IMK_FFT_C2R, IMK_FFT_BACKWARD,
        cpu->width, cpu->height, 1, error);
  return status;
}

/* Bins from width / 2 on are negative frequencies; the transform back divides
 * by nothing. */
static void
fill_turns (Cpu *cpu)
{
  const double pi = 3.14159265358979323846;
  uint32_t width = cpu->width, ri = cpu->plan->config.range_interp;

  for (uint32_t m = 0; m < ri; m++)
    for (uint32_t k = 0; k < width; k++) {
      double frequency = k < width / 2 ? (double) k : (double) k - width;
      double angle = 2 * pi * frequency * m / ((double) ri * width);

      cpu->turns[m * width + k] = (Complex){
          (float) (cos (angle) / width), (float) (sin (angle) / width)};
    }
}

static ImkStatus
create_tables (Cpu *cpu, ImkError *error)
{
  const ImkInsarxcorrConfig *c = &cpu->plan->config;

  cpu->turns =
      malloc ((size_t) c->range_interp * cpu->width * sizeof (*cpu->turns));
  cpu->tables = malloc (imk_insarxcorr_zoom_size (c->interp));
  if (!cpu->turns || !cpu->tables)
    return no_memory (imk_insarxcorr_zoom_size (c->interp), error);
  fill_turns (cpu);
  imk_insarxcorr_zoom_init (&cpu->zoom, c->interp, cpu->tables);
  return IMK_OK;
}

static ImkStatus
create_bands (Cpu *cpu, ImkError *error)
{
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    const ImkInsarxcorrBand *band = &cpu->plan->bands[s];
    size_t size;

    cpu->strides[s] =
        round_up (band->width * imk_type_size (cpu->plan->config.type));
    size = cpu->strides[s] * band->n_lines;
    cpu->bands[s] = malloc (size ? size : 1);
    if (!cpu->bands[s])
      return no_memory (size, error);
  }
  return IMK_OK;
}

static void
cpu_destroy (void *state)
{
  Cpu *cpu = state;

  if (!cpu)
    return;
  for (Workspace *next, *s = cpu->idle; s; s = next) {
    next = s->next;
    free (s);
  }
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    free (cpu->bands[s]);
  imk_fft_free (cpu->forward);
  imk_fft_free (cpu->backward);
  imk_fft_free (cpu->spectrum);
  imk_fft_free (cpu->surface);
  free (cpu->turns);
  free (cpu->tables);
  pthread_mutex_destroy (&cpu->lock);
  free (cpu);
}

static ImkStatus
cpu_create (const ImkInsarxcorrPlan *plan, void **state, ImkError *error)
{
  Cpu *cpu = calloc (1, sizeof (*cpu));
  ImkStatus status;

  if (!cpu)
    return no_memory (sizeof (*cpu), error);
  cpu->plan = plan;
  cpu->width = plan->patch_width;
  cpu->height = plan->patch_height;
  pthread_mutex_init (&cpu->lock, NULL);
  status = create_bands (cpu, error);
  if (status == IMK_OK)
    status = create_tables (cpu, error);
  if (status == IMK_OK)
    status = create_plans (cpu, error);
  if (status == IMK_OK)
    status = create_workspaces (cpu, error);
  if (status == IMK_OK)
    *state = cpu;
  else
    cpu_destroy (cpu);
  return status;
}

static ImkStatus
cpu_push (void *state, ImkInsarxcorrSide side, uint32_t line,
    const ImkImage *lines, void *stream, ImkError *error)
{
  Cpu *cpu = state;
  const ImkInsarxcorrBand *band = &cpu->plan->bands[side];
  size_t size = imk_type_size (lines->type);

  for (uint32_t i = 0; i < lines->height; i++) {
    const uint8_t *from = (const uint8_t *) lines->data + i * lines->stride;
    uint8_t *to =
        cpu->bands[side] + (line + i) % band->n_lines * cpu->strides[side];

    for (uint32_t j = 0; j < band->n_spans; j++)
      memcpy (to + band->spans[j].at * size,
          from + band->spans[j].column * size, band->spans[j].width * size);
  }
  return IMK_OK;
}

static ImkStatus
cpu_process (
    void *state, uint32_t row, ImkImage *out, void *stream, ImkError *error)
{
  Cpu *cpu = state;
  uint32_t nx = cpu->plan->config.nx;
  Row data = {
      .cpu = cpu,
      .patches = cpu->plan->patches + (size_t) row * nx,
      .out = out,
  };

  imk_parallel_for (cpu->n_threads, nx, 1, measure_patches, &data);
  if (data.status != IMK_OK && error)
    *error = data.error;
  return data.status;
}

const ImkInsarxcorrBackend imk_insarxcorr_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .push = cpu_push,
    .process = cpu_process,
    .destroy = cpu_destroy,
};
