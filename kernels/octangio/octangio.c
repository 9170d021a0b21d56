/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread takes A-scans: first what each A-scan says of itself, then the sums
 * over the window, then the image. */
#include "imk/octangio.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "imk/parallel.h"
#include "octangio/octangio-eigen.h"

enum {
  MOST = IMK_OCTANGIO_MAX_REPEATS,
  GRAIN = 4, /* A-scans of a thread */
  LANES = 16,
  CHUNK = 1024, /* products added in float32, before sums in float64 */
};

#define LARGEST 1e15f /* of Z: its products are floats */

struct ImkOctangio {
  ImkOctangioConfig config;
  float *mean;    /* [A][D] intensity */
  float *re, *im; /* [A][D] S of a pixel; re is the result of methods without */
  float *energy;  /* [A][D] E of a pixel */
  float *flow;    /* [A][D] */
  float *work;    /* [A][5][D] of methods of pairs */
  uint32_t *brightest; /* [A] depths */

  /* of a call */
  const float *const *bscans;
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
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* ------------------------------------------------------------------------
 * Checks. */

static bool
needs_phase (ImkOctangioMethod method)
{
  return method == IMK_OCTANGIO_COMPLEX_DECORRELATION ||
         method == IMK_OCTANGIO_DOPPLER || method == IMK_OCTANGIO_EIGEN;
}

static ImkStatus
check_size (const char *what, uint32_t value, uint32_t least, uint32_t most,
    ImkError *error)
{
  if (value >= least && value <= most)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %u; it can be %u to %u.", what, value, least, most);
}

static ImkStatus
check_config (const ImkOctangioConfig *c, ImkError *error)
{
  bool between_ascans = c->pairs == IMK_OCTANGIO_PAIRS_ASCANS;
  uint32_t least = c->method == IMK_OCTANGIO_MEAN ||
                           (c->method == IMK_OCTANGIO_DOPPLER && between_ascans)
                       ? 1
                       : 2;
  ImkStatus status = check_size (
      "The number of A-scans", c->n_ascans, 1, IMK_OCTANGIO_MAX_SIDE, error);

  if (status == IMK_OK)
    status = check_size (
        "The number of depths", c->n_depths, 1, IMK_OCTANGIO_MAX_SIDE, error);
  if (status == IMK_OK)
    status = check_size ("method", c->method, 0, IMK_OCTANGIO_EIGEN, error);
  if (status == IMK_OK)
    status =
        check_size ("pairs", c->pairs, 0, IMK_OCTANGIO_PAIRS_ASCANS, error);
  if (status == IMK_OK)
    status = check_size ("repeats", c->n_repeats, least, MOST, error);
  if (status == IMK_OK)
    status = check_size (
        "lateral-window", c->lateral, 1, IMK_OCTANGIO_MAX_WINDOW, error);
  if (status == IMK_OK)
    status = check_size (
        "depth-window", c->axial, 1, IMK_OCTANGIO_MAX_WINDOW, error);
  if (status == IMK_OK && c->method == IMK_OCTANGIO_EIGEN)
    status = check_size (
        "tissue-components", c->n_tissue, 1, c->n_repeats - 1, error);
  if (status != IMK_OK)
    return status;
  if (needs_phase (c->method) && !c->is_complex)
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

ImkStatus
imk_octangio_check (const ImkOctangioConfig *given, ImkError *error)
{
  ImkOctangioConfig own;
  const ImkOctangioConfig *config;

  imk_octangio_config_init (&own);
  config = imk_config_read (given, &own, "imk_octangio_config_init", error);
  return config ? check_config (config, error) : IMK_ERROR_CONFIG;
}

/* ------------------------------------------------------------------------
 * One A-scan of one repeat. */

typedef struct Pixel {
  float re, im;
} Pixel;

static Pixel
pixel_at (const ImkOctangio *s, uint32_t r, uint32_t a, uint32_t z)
{
  const ImkOctangioConfig *c = &s->config;
  const float *v;

  if (!c->is_complex) {
    float intensity = s->bscans[r][(size_t) z * c->n_ascans + a];

    return (Pixel){
        intensity > 0 && intensity <= LARGEST * LARGEST ? sqrtf (intensity) : 0,
        0};
  }
  v = s->bscans[r] + 2 * ((size_t) a * c->n_depths + z);
  return fabsf (v[0]) <= LARGEST && fabsf (v[1]) <= LARGEST
             ? (Pixel){v[0], v[1]}
             : (Pixel){0, 0};
}

static float
power_of (Pixel p)
{
  return p.re * p.re + p.im * p.im;
}

/* ------------------------------------------------------------------------
 * Methods of amplitudes. */

static void
amplitudes_of (ImkOctangio *s, uint32_t a)
{
  const ImkOctangioConfig *c = &s->config;
  uint32_t n = c->n_repeats;
  size_t at = (size_t) a * c->n_depths;

  for (uint32_t z = 0; z < c->n_depths; z++, at++) {
    float amplitude[MOST], mean = 0, power = 0, result = 0;

    for (uint32_t r = 0; r < n; r++) {
      float p = power_of (pixel_at (s, r, a, z));

      amplitude[r] = sqrtf (p);
      mean += amplitude[r];
      power += p;
    }
    mean /= n;
    s->mean[at] = power / n;
    for (uint32_t r = 0; r < n && c->method == IMK_OCTANGIO_SPECKLE_VARIANCE;
         r++)
      result += (amplitude[r] - mean) * (amplitude[r] - mean) / n;
    for (uint32_t r = 0; r + 1 < n && c->method == IMK_OCTANGIO_DECORRELATION;
         r++) {
      float x = amplitude[r], y = amplitude[r + 1], sum = x * x + y * y;

      /* 1 - 2xy / (x^2 + y^2), without the difference of equal numbers */
      result += sum > 0 ? (x - y) * (x - y) / sum / (n - 1) : 0;
    }
    s->re[at] = c->method == IMK_OCTANGIO_MEAN ? s->mean[at] : result;
  }
}

/* ------------------------------------------------------------------------
 * Methods of pairs. */

/* The two A-scans of pair @k of A-scan @a. */
static void
pair_of (const ImkOctangioConfig *c, uint32_t k, uint32_t a, uint32_t repeat[2],
    uint32_t ascan[2])
{
  bool between_ascans = c->pairs == IMK_OCTANGIO_PAIRS_ASCANS;
  uint32_t first = between_ascans && a + 1 == c->n_ascans ? a - 1 : a;

  repeat[0] = k;
  repeat[1] = between_ascans ? k : k + 1;
  ascan[0] = first;
  ascan[1] = between_ascans ? first + 1 : a;
}

/* p and q: the products Z_r+1 conj (Z_r) of a pair, and its E is added. Numbers
 * that are not finite count as 0: plain selects, so that compilers make
 * vectors. */
static void
multiply (const float *x, const float *y, uint32_t n, float *p, float *q,
    float *energy)
{
  for (uint32_t z = 0; z < n; z++) {
    float a = x[2 * z], b = x[2 * z + 1], c = y[2 * z], d = y[2 * z + 1];
    bool has_x = fabsf (a) <= LARGEST && fabsf (b) <= LARGEST;
    bool has_y = fabsf (c) <= LARGEST && fabsf (d) <= LARGEST;

    a = has_x ? a : 0;
    b = has_x ? b : 0;
    c = has_y ? c : 0;
    d = has_y ? d : 0;
    p[z] = c * a + d * b;
    q[z] = d * a - c * b;
    energy[z] += (a * a + b * b + c * c + d * d) / 2;
  }
}

/* Adds the p and q whose phase is near that of @turn. Lanes, because the order
 * of one sum would be one addition after the other. */
static void
add_near (const float *p, const float *q, uint32_t n, const float turn[2],
    float near, double sum[2])
{
  float re[LANES] = {0}, im[LANES] = {0};
  uint32_t z = 0;

  for (; z + LANES <= n; z += LANES)
    for (uint32_t k = 0; k < LANES; k++) {
      float x = p[z + k], y = q[z + k];
      float along = x * turn[0] + y * turn[1], size = x * x + y * y;
      bool is_near = along * fabsf (along) >= near * size;

      re[k] += is_near ? x : 0;
      im[k] += is_near ? y : 0;
    }
  for (; z < n; z++) {
    float along = p[z] * turn[0] + q[z] * turn[1];
    float size = p[z] * p[z] + q[z] * q[z];

    if (along * fabsf (along) >= near * size) {
      re[0] += p[z];
      im[0] += q[z];
    }
  }
  for (uint32_t k = 0; k < LANES; k++) {
    sum[0] += re[k];
    sum[1] += im[k];
  }
}

/* cos and sin of the phase that most pixels have. */
static void
find_bulk (const float *p, const float *q, uint32_t n, float turn[2])
{
  /* all, then squares of cos (pi / 4), cos (pi / 8) and cos (pi / 16) */
  static const float near[] = {-1.1f, 0.5f, 0.85355339f, 0.96193977f};

  for (int round = 0; round < 4; round++) {
    double sum[2] = {0, 0}, length;

    for (uint32_t z = 0; z < n; z += CHUNK)
      add_near (
          p + z, q + z, n - z < CHUNK ? n - z : CHUNK, turn, near[round], sum);
    length = hypot (sum[0], sum[1]);
    if (!(length > 0))
      return;
    turn[0] = (float) (sum[0] / length);
    turn[1] = (float) (sum[1] / length);
  }
}

/* to[z] = sum of from over the window of depths. */
static void
add_depths (const float *from, uint32_t n, uint32_t window, float *to)
{
  uint32_t before = (window - 1) / 2;

  memset (to, 0, n * sizeof (*to));
  for (uint32_t k = 0; k < window; k++) {
    int64_t shift = (int64_t) k - before;
    uint32_t first = shift < 0 ? (uint32_t) -shift : 0;
    int64_t end = shift > 0 ? (int64_t) n - shift : n;

    for (int64_t z = first; z < end; z++)
      to[z] += from[z + shift];
  }
}

static void
add_mean (ImkOctangio *s, uint32_t a)
{
  const ImkOctangioConfig *c = &s->config;
  float *mean = s->mean + (size_t) a * c->n_depths;

  memset (mean, 0, c->n_depths * sizeof (*mean));
  for (uint32_t r = 0; r < c->n_repeats; r++) {
    const float *v = s->bscans[r] + 2 * (size_t) a * c->n_depths;

    for (uint32_t z = 0; z < c->n_depths; z++) {
      float x = v[2 * z], y = v[2 * z + 1];
      bool is_number = fabsf (x) <= LARGEST && fabsf (y) <= LARGEST;

      mean[z] += is_number ? (x * x + y * y) / c->n_repeats : 0;
    }
  }
}

/* S and E of the window's depths. */
static void
pairs_of (ImkOctangio *s, uint32_t a)
{
  const ImkOctangioConfig *c = &s->config;
  uint32_t n = c->n_depths;
  uint32_t n_pairs =
      c->pairs == IMK_OCTANGIO_PAIRS_ASCANS ? c->n_repeats : c->n_repeats - 1;
  size_t first = (size_t) a * n;
  float *work = s->work + 5 * first;
  float *p = work, *q = p + n, *re = q + n, *im = re + n, *energy = im + n;

  memset (re, 0, 3 * (size_t) n * sizeof (*re));
  add_mean (s, a);
  for (uint32_t k = 0; k < n_pairs; k++) {
    uint32_t repeat[2], ascan[2];
    float turn[2] = {1, 0};

    pair_of (c, k, a, repeat, ascan);
    multiply (s->bscans[repeat[0]] + 2 * (size_t) ascan[0] * n,
        s->bscans[repeat[1]] + 2 * (size_t) ascan[1] * n, n, p, q, energy);
    if (c->bulk_motion)
      find_bulk (p, q, n, turn);
    for (uint32_t z = 0; z < n; z++) {
      re[z] += p[z] * turn[0] + q[z] * turn[1];
      im[z] += q[z] * turn[0] - p[z] * turn[1];
    }
  }
  add_depths (re, n, c->axial, s->re + first);
  add_depths (im, n, c->axial, s->im + first);
  add_depths (energy, n, c->axial, s->energy + first);
}

/* ------------------------------------------------------------------------
 * Eigenvectors. */

static void
range_of (
    uint32_t at, uint32_t window, uint32_t n, uint32_t *first, uint32_t *end)
{
  uint32_t before = (window - 1) / 2;

  *first = at > before ? at - before : 0;
  *end = at + window - before < n ? at + window - before : n;
}

static void
eigen_of (ImkOctangio *s, uint32_t a)
{
  const ImkOctangioConfig *c = &s->config;
  uint32_t n = c->n_repeats, first, end;
  double complex matrix[MOST * MOST] = {0}, vectors[MOST * MOST];
  size_t at = (size_t) a * c->n_depths;

  range_of (a, c->lateral, c->n_ascans, &first, &end);
  for (uint32_t i = first; i < end; i++)
    for (uint32_t z = 0; z < c->n_depths; z++) {
      double complex v[MOST];

      for (uint32_t r = 0; r < n; r++) {
        Pixel p = pixel_at (s, r, i, z);

        v[r] = p.re + I * p.im;
      }
      for (uint32_t r = 0; r < n; r++)
        for (uint32_t t = 0; t <= r; t++)
          matrix[r * n + t] += v[r] * conj (v[t]);
    }
  for (uint32_t r = 0; r < n; r++)
    for (uint32_t t = r + 1; t < n; t++)
      matrix[r * n + t] = conj (matrix[t * n + r]);
  imk_octangio_eigenvectors (matrix, n, c->n_tissue, vectors);
  for (uint32_t z = 0; z < c->n_depths; z++, at++) {
    double complex v[MOST];
    double power = 0, tissue = 0;

    for (uint32_t r = 0; r < n; r++) {
      Pixel p = pixel_at (s, r, a, z);

      v[r] = p.re + I * p.im;
      power += creal (v[r] * conj (v[r]));
    }
    for (uint32_t k = 0; k < c->n_tissue; k++) {
      double complex share = 0;

      for (uint32_t r = 0; r < n; r++)
        share += conj (vectors[k * n + r]) * v[r];
      tissue += creal (share * conj (share));
    }
    s->mean[at] = (float) (power / n);
    s->re[at] = (float) (fmax (power - tissue, 0) / n);
  }
}

static void
look_at_ascans (void *data, uint32_t first, uint32_t end)
{
  ImkOctangio *s = data;

  for (uint32_t a = first; a < end; a++)
    if (s->config.method == IMK_OCTANGIO_EIGEN)
      eigen_of (s, a);
    else if (needs_phase (s->config.method))
      pairs_of (s, a);
    else
      amplitudes_of (s, a);
}

/* ------------------------------------------------------------------------
 * The window, and the image. */

/* The sums over the window's A-scans. */
static void
add_ascans (
    const ImkOctangio *s, uint32_t a, float *re, float *im, float *energy)
{
  const ImkOctangioConfig *c = &s->config;
  size_t n = c->n_depths;
  uint32_t first, end;

  range_of (a, c->lateral, c->n_ascans, &first, &end);
  memset (re, 0, n * sizeof (*re));
  memset (im, 0, n * sizeof (*im));
  memset (energy, 0, n * sizeof (*energy));
  for (uint32_t i = first; i < end; i++)
    for (size_t z = 0; z < n; z++) {
      re[z] += s->re[i * n + z];
      im[z] += s->im[i * n + z];
      energy[z] += s->energy[i * n + z];
    }
}

static void
finish_ascans (void *data, uint32_t first, uint32_t end)
{
  ImkOctangio *s = data;
  const ImkOctangioConfig *c = &s->config;
  bool has_window = needs_phase (c->method) && c->method != IMK_OCTANGIO_EIGEN;
  size_t n = c->n_depths;

  for (uint32_t a = first; a < end; a++) {
    float *flow = s->flow + a * n, *re = s->re + a * n, *im, *energy;

    if (has_window) { /* the first pass needs its work no more */
      re = s->work + 5 * a * n;
      im = re + n;
      energy = im + n;
      add_ascans (s, a, re, im, energy);
    }
    for (size_t z = 0; z < n; z++) {
      flow[z] = 0;
      if (s->mean[a * n + z] < c->floor)
        continue;
      if (!has_window)
        flow[z] = re[z];
      else if (c->method == IMK_OCTANGIO_DOPPLER)
        flow[z] = (float) c->scale * atan2f (im[z], re[z]);
      else if (energy[z] > 0)
        flow[z] = 1 - sqrtf (re[z] * re[z] + im[z] * im[z]) / energy[z];
    }
  }
}

ImkStatus
imk_octangio_new (ImkBackend backend, const ImkOctangioConfig *given,
    ImkOctangio **self, ImkError *error)
{
  ImkOctangioConfig own;
  const ImkOctangioConfig *config;
  ImkOctangio *s;
  ImkStatus status;
  size_t n;

  if (backend != IMK_BACKEND_CPU)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "octangio has no CUDA code; use backend=cpu.");
  imk_octangio_config_init (&own);
  config = imk_config_read (given, &own, "imk_octangio_config_init", error);
  status = config ? check_config (config, error) : IMK_ERROR_CONFIG;
  if (status != IMK_OK)
    return status;
  n = (size_t) config->n_ascans * config->n_depths;
  s = calloc (1, sizeof (*s));
  if (s) {
    s->config = *config;
    s->mean = malloc (n * sizeof (float));
    s->re = malloc (n * sizeof (float));
    s->im = malloc (n * sizeof (float));
    s->energy = malloc (n * sizeof (float));
    s->flow = malloc (n * sizeof (float));
    s->work = malloc (5 * n * sizeof (float));
    s->brightest = malloc (config->n_ascans * sizeof (uint32_t));
  }
  if (!s || !s->mean || !s->re || !s->im || !s->energy || !s->flow ||
      !s->work || !s->brightest) {
    imk_octangio_free (s);
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for %u x %u pixels of flow.", config->n_ascans,
        config->n_depths);
  }
  *self = s;
  return IMK_OK;
}

void
imk_octangio_process (
    ImkOctangio *self, const float *const *bscans, float *flow)
{
  const ImkOctangioConfig *c = &self->config;

  self->bscans = bscans;
  imk_parallel_for (c->n_threads, c->n_ascans, GRAIN, look_at_ascans, self);
  imk_parallel_for (c->n_threads, c->n_ascans, GRAIN, finish_ascans, self);
  for (uint32_t z = 0; z < c->n_depths; z++)
    for (uint32_t a = 0; a < c->n_ascans; a++)
      flow[(size_t) z * c->n_ascans + a] =
          self->flow[(size_t) a * c->n_depths + z];
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

void
imk_octangio_surface (
    ImkOctangio *self, uint32_t first, uint32_t window, double *surface)
{
  const ImkOctangioConfig *c = &self->config;
  uint32_t before = (window - 1) / 2;

  for (uint32_t a = 0; a < c->n_ascans; a++) {
    const float *mean = self->mean + (size_t) a * c->n_depths;
    uint32_t best = first;

    for (uint32_t z = first + 1; z < c->n_depths; z++)
      if (mean[z] > mean[best])
        best = z;
    self->brightest[a] = best;
  }
  for (uint32_t a = 0; a < c->n_ascans; a++) {
    uint32_t from = a > before ? a - before : 0;
    uint32_t end = a + window - before;

    end = end < c->n_ascans ? end : c->n_ascans;
    surface[a] = median (self->brightest + from, end - from);
  }
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
    row[a] = !(end > first) ? 0
             : projection == IMK_OCTANGIO_PROJECTION_MAXIMUM
                 ? (float) most
                 : (float) (sum / (end - first));
  }
}

void
imk_octangio_free (ImkOctangio *self)
{
  if (!self)
    return;
  free (self->mean);
  free (self->re);
  free (self->im);
  free (self->energy);
  free (self->flow);
  free (self->work);
  free (self->brightest);
  free (self);
}
