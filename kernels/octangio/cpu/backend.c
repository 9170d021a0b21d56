/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread takes A-scans: first what each A-scan says of itself, then the sums
 * over the window, then the image. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "imk/parallel.h"
#include "octangio/octangio-backend.h"
#include "octangio/octangio-eigen.h"

enum {
  MOST = IMK_OCTANGIO_MAX_REPEATS,
  GRAIN = 4, /* A-scans of a thread */
  LANES = 16,
  TILE = 16,    /* pixels a side: a line of the cache */
  CHUNK = 1024, /* products added in float32, before sums in float64 */
};

#define LARGEST IMK_OCTANGIO_LARGEST

typedef struct Cpu {
  ImkOctangioPlan plan;
  float *mean;    /* [A][D] intensity */
  float *re, *im; /* [A][D] S of a pixel; re is the result of methods without */
  float *energy;  /* [A][D] E of a pixel */
  float *flow;    /* [A][D] */
  float *work;    /* [A][5][D] of all methods but EIGEN and bands */
  size_t n_work;  /* floats of @work for each A-scan */

  atomic_bool is_cancelled;

  /* of a call */
  const ImkImage *bscans, *to;
} Cpu;

/* ------------------------------------------------------------------------
 * One A-scan of one repeat. */

/* Row @y of repeat @r: an A-scan of complex B-scans, else a depth. */
static const float *
row_of (const Cpu *s, uint32_t r, uint32_t y)
{
  const ImkImage *image = &s->bscans[r];

  return (const float *) (const void *) ((const uint8_t *) image->data +
                                         y * image->stride);
}

typedef struct Pixel {
  float re, im;
} Pixel;

static Pixel
pixel_at (const Cpu *s, uint32_t r, uint32_t a, uint32_t z)
{
  const ImkOctangioConfig *c = &s->plan.config;
  const float *v;

  if (!c->is_complex) {
    float intensity = row_of (s, r, z)[a];

    return (Pixel){
        intensity > 0 && intensity <= LARGEST * LARGEST ? sqrtf (intensity) : 0,
        0};
  }
  v = row_of (s, r, a) + 2 * (size_t) z;
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

/* Of one A-scan of one repeat. Plain selects, so that compilers make vectors.
 */
static void
load_powers (const Cpu *s, uint32_t r, uint32_t a, float *powers)
{
  const ImkOctangioConfig *c = &s->plan.config;
  const float *v;

  if (!c->is_complex) {
    for (uint32_t z = 0; z < c->n_depths; z++)
      powers[z] = power_of (pixel_at (s, r, a, z));
    return;
  }
  v = row_of (s, r, a);
  for (uint32_t z = 0; z < c->n_depths; z++) {
    float x = v[2 * z], y = v[2 * z + 1];
    bool is_number = fabsf (x) <= LARGEST && fabsf (y) <= LARGEST;

    powers[z] = is_number ? x * x + y * y : 0;
  }
}

static void
add_variances (const float *powers, const float *middle, uint32_t n,
    float share, float *result)
{
  for (uint32_t z = 0; z < n; z++) {
    float d = sqrtf (powers[z]) - middle[z];

    result[z] += d * d * share;
  }
}

/* 1 - 2xy / (x^2 + y^2), without the difference of equal numbers. */
static void
add_changes (const float *last, const float *powers, uint32_t n, float share,
    float *result)
{
  for (uint32_t z = 0; z < n; z++) {
    float sum = last[z] + powers[z];
    float d = sqrtf (last[z]) - sqrtf (powers[z]);

    result[z] += sum > 0 ? d * d / sum * share : 0;
  }
}

static void
amplitudes_of (Cpu *s, uint32_t a)
{
  const ImkOctangioConfig *c = &s->plan.config;
  uint32_t n = c->n_depths, n_repeats = c->n_repeats;
  size_t first = (size_t) a * n;
  float *powers = s->work + 5 * first, *last = powers + n, *middle = last + n;
  float *mean = s->mean + first, *result = s->re + first;
  float share = 1.0f / (float) n_repeats;

  memset (mean, 0, n * sizeof (*mean));
  memset (middle, 0, n * sizeof (*middle));
  memset (result, 0, n * sizeof (*result));
  for (uint32_t r = 0; r < n_repeats; r++) {
    float *before = powers;

    powers = last;
    last = before; /* of the repeat before */
    load_powers (s, r, a, powers);
    for (uint32_t z = 0; z < n; z++)
      mean[z] += powers[z] * share;
    if (c->method == IMK_OCTANGIO_SPECKLE_VARIANCE)
      for (uint32_t z = 0; z < n; z++)
        middle[z] += sqrtf (powers[z]) * share;
    if (c->method == IMK_OCTANGIO_DECORRELATION && r > 0)
      add_changes (last, powers, n, 1.0f / (float) (n_repeats - 1), result);
  }
  for (uint32_t r = 0;
       r < n_repeats && c->method == IMK_OCTANGIO_SPECKLE_VARIANCE; r++) {
    load_powers (s, r, a, powers);
    add_variances (powers, middle, n, share, result);
  }
  if (c->method == IMK_OCTANGIO_MEAN)
    memcpy (result, mean, n * sizeof (*result));
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

/* Sums of a few depths each.
 * Returns: the largest */
static float
add_neighbours (const float *from, uint32_t n, float *to)
{
  enum { MANY = IMK_OCTANGIO_BULK_DEPTHS };
  float largest = 0;
  uint32_t i = 0;

  for (; i < n / MANY; i++) {
    const float *v = from + i * MANY;

    to[i] = (v[0] + v[1]) + (v[2] + v[3]) + ((v[4] + v[5]) + (v[6] + v[7]));
    largest = fmaxf (largest, fabsf (to[i]));
  }
  if (n % MANY > 0) {
    to[i] = 0;
    for (uint32_t z = i * MANY; z < n; z++)
      to[i] += from[z];
    largest = fmaxf (largest, fabsf (to[i]));
  }
  return largest;
}

/* Adds p and q, times @scale, with the weights of imk/octangio.h around the
 * phase of @turn. 1 - cos d, which would lose digits, is half the square of the
 * chord of d. Lanes, because the order of one sum would be one addition after
 * the other.
 * @share: 1 / (2 (1 - cos L)) */
static void
add_near (const float *p, const float *q, uint32_t n, float scale,
    const float turn[2], float share, double sum[2])
{
  float re[LANES] = {0}, im[LANES] = {0};

  for (uint32_t z = 0; z < n; z += LANES)
    for (uint32_t k = 0; k < LANES && z + k < n; k++) {
      float x = p[z + k] * scale, y = q[z + k] * scale;
      float size = sqrtf (x * x + y * y), length = size > 0 ? 1 / size : 0;
      float dx = x * length - turn[0], dy = y * length - turn[1];
      float weight = 1 - (dx * dx + dy * dy) * share;

      weight = weight > 0 ? weight : 0;
      re[k] += weight * x;
      im[k] += weight * y;
    }
  for (uint32_t k = 0; k < LANES; k++) {
    sum[0] += re[k];
    sum[1] += im[k];
  }
}

/* cos and sin of the phase that most depths have.
 * @re, @im: (out): room for D numbers */
static void
find_bulk (const float *p, const float *q, uint32_t n, float *re, float *im,
    float turn[2])
{
  uint32_t n_sums = imk_div_up (n, IMK_OCTANGIO_BULK_DEPTHS);
  float largest = add_neighbours (p, n, re);
  /* so that squares are numbers */
  float scale = 1 / fmaxf (fmaxf (largest, add_neighbours (q, n, im)), FLT_MIN);

  for (int round = 0; round < IMK_OCTANGIO_BULK_ROUNDS; round++) {
    /* the weight of the first round is 1 */
    float share =
        round > 0 ? (float) (0.5 / (1 - cos (M_PI / (2 << round)))) : 0;
    double sum[2] = {0, 0}, length;

    for (uint32_t i = 0; i < n_sums; i += CHUNK)
      add_near (re + i, im + i, n_sums - i < CHUNK ? n_sums - i : CHUNK, scale,
          turn, share, sum);
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

/* @work: [D] */
static void
add_mean (Cpu *s, uint32_t a, float *work)
{
  const ImkOctangioConfig *c = &s->plan.config;
  float *mean = s->mean + (size_t) a * c->n_depths;

  memset (mean, 0, c->n_depths * sizeof (*mean));
  for (uint32_t r = 0; r < c->n_repeats; r++) {
    load_powers (s, r, a, work);
    for (uint32_t z = 0; z < c->n_depths; z++)
      mean[z] += work[z] / c->n_repeats;
  }
}

/* S and E of the window's depths. */
static void
pairs_of (Cpu *s, uint32_t a)
{
  const ImkOctangioConfig *c = &s->plan.config;
  uint32_t n = c->n_depths;
  uint32_t n_pairs =
      c->pairs == IMK_OCTANGIO_PAIRS_ASCANS ? c->n_repeats : c->n_repeats - 1;
  size_t first = (size_t) a * n;
  float *work = s->work + 5 * first;
  float *p = work, *q = p + n, *re = q + n, *im = re + n, *energy = im + n;

  memset (re, 0, 3 * (size_t) n * sizeof (*re));
  add_mean (s, a, p);
  for (uint32_t k = 0; k < n_pairs; k++) {
    uint32_t repeat[2], ascan[2];
    float turn[2] = {1, 0};

    pair_of (c, k, a, repeat, ascan);
    multiply (row_of (s, repeat[0], ascan[0]), row_of (s, repeat[1], ascan[1]),
        n, p, q, energy);
    if (c->bulk_motion)
      find_bulk (p, q, n, s->re + first, s->im + first, turn);
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
 * Bands. */

/* The middle of the band goes to the wavenumber 0. */
static void
move_band (const float *z, const float *turn, uint32_t n, float *re, float *im)
{
  for (uint32_t i = 0; i < n; i++) {
    float x = z[2 * i], y = z[2 * i + 1], c = turn[2 * i], d = turn[2 * i + 1];
    bool is_number = fabsf (x) <= LARGEST && fabsf (y) <= LARGEST;

    x = is_number ? x : 0;
    y = is_number ? y : 0;
    re[i] = x * c - y * d;
    im[i] = x * d + y * c;
  }
}

/* The powers of LANES depths. @re and @im point to the first of them and have
 * radius numbers more on either side. Sums stay in registers: to add up one tap
 * after the other in memory took several times as long. */
static void
filter_band (const ImkOctangioPlan *plan, const float *re, const float *im,
    float *powers)
{
  const float *taps = plan->taps;
  float x[LANES], y[LANES];

  for (uint32_t i = 0; i < LANES; i++) {
    x[i] = taps[0] * re[i];
    y[i] = taps[0] * im[i];
  }
  for (ptrdiff_t k = 1; k <= plan->radius; k++)
    for (uint32_t i = 0; i < LANES; i++) {
      x[i] += taps[k] * (re[i + k] + re[i - k]);
      y[i] += taps[k] * (im[i + k] + im[i - k]);
    }
  for (uint32_t i = 0; i < LANES; i++)
    powers[i] = x[i] * x[i] + y[i] * y[i];
}

/* The mean decorrelation of all bands. Beyond the ends of an A-scan are zeros.
 */
static void
bands_of (Cpu *s, uint32_t a)
{
  const ImkOctangioConfig *c = &s->plan.config;
  uint32_t n = c->n_depths, radius = s->plan.radius;
  size_t n_rounded = (size_t) imk_div_up (n, LANES) * LANES;
  float *re = s->work + a * s->n_work + radius;
  float *im = re + n_rounded + 2 * radius;
  float *powers = im + n_rounded + radius, *last = powers + n_rounded;
  float *result = s->re + (size_t) a * n;
  float share = 1.0f / (float) (c->n_bands * (c->n_repeats - 1));

  add_mean (s, a, powers);
  memset (s->work + a * s->n_work, 0, s->n_work * sizeof (*re));
  memset (result, 0, n * sizeof (*result));
  for (uint32_t band = 0; band < c->n_bands; band++)
    for (uint32_t r = 0; r < c->n_repeats && !s->is_cancelled; r++) {
      const float *turns = s->plan.turns + 2 * (size_t) band * n;
      float *before = powers;

      powers = last;
      last = before; /* of the repeat before */
      move_band (row_of (s, r, a), turns, n, re, im);
      for (uint32_t z = 0; z < n; z += LANES)
        filter_band (&s->plan, re + z, im + z, powers + z);
      if (r > 0)
        add_changes (last, powers, n, share, result);
    }
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
eigen_of (Cpu *s, uint32_t a)
{
  const ImkOctangioConfig *c = &s->plan.config;
  uint32_t n = c->n_repeats, first, end;
  double complex matrix[MOST * MOST] = {0}, vectors[MOST * MOST];
  size_t at = (size_t) a * c->n_depths;

  range_of (a, c->lateral, c->n_ascans, &first, &end);
  for (uint32_t i = first; i < end && !s->is_cancelled; i++)
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
  Cpu *s = data;

  for (uint32_t a = first; a < end && !s->is_cancelled; a++)
    if (s->plan.config.method == IMK_OCTANGIO_EIGEN)
      eigen_of (s, a);
    else if (imk_octangio_needs_phase (s->plan.config.method))
      pairs_of (s, a);
    else if (s->plan.taps)
      bands_of (s, a);
    else
      amplitudes_of (s, a);
}

/* ------------------------------------------------------------------------
 * The window, and the image. */

/* The sums over the window's A-scans. */
static void
add_ascans (const Cpu *s, uint32_t a, float *re, float *im, float *energy)
{
  const ImkOctangioConfig *c = &s->plan.config;
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
  Cpu *s = data;
  const ImkOctangioConfig *c = &s->plan.config;
  bool has_window =
      imk_octangio_needs_phase (c->method) && c->method != IMK_OCTANGIO_EIGEN;
  size_t n = c->n_depths;

  for (uint32_t a = first; a < end && !s->is_cancelled; a++) {
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
        flow[z] =
            1 - (float) sqrt ((double) re[z] * re[z] + (double) im[z] * im[z]) /
                    energy[z];
    }
  }
}

/* From A-scans to an image, in tiles that stay in the cache. */
static void
turn_tiles (void *data, uint32_t first, uint32_t end)
{
  const Cpu *s = data;
  const ImkOctangioConfig *c = &s->plan.config;

  for (uint32_t z0 = first * TILE; z0 < end * TILE; z0 += TILE)
    for (uint32_t a0 = 0; a0 < c->n_ascans; a0 += TILE)
      for (uint32_t z = z0; z < z0 + TILE && z < c->n_depths; z++) {
        float *row =
            (float *) (void *) ((uint8_t *) s->to->data + z * s->to->stride);

        for (uint32_t a = a0; a < a0 + TILE && a < c->n_ascans; a++)
          row[a] = s->flow[(size_t) a * c->n_depths + z];
      }
}

static ImkStatus
cpu_process (void *state, const ImkImage *bscans, uint32_t n_bscans,
    const ImkImage *flow, void *stream, ImkError *error)
{
  Cpu *s = state;
  const ImkOctangioConfig *c = &s->plan.config;

  s->bscans = bscans;
  s->to = flow;
  imk_parallel_for (c->n_threads, c->n_ascans, GRAIN, look_at_ascans, s);
  imk_parallel_for (c->n_threads, c->n_ascans, GRAIN, finish_ascans, s);
  imk_parallel_for (
      c->n_threads, imk_div_up (c->n_depths, TILE), GRAIN, turn_tiles, s);
  return IMK_OK;
}

static ImkStatus
cpu_find_brightest (void *state, uint32_t first, uint32_t *depths, void *stream,
    ImkError *error)
{
  const Cpu *s = state;
  const ImkOctangioConfig *c = &s->plan.config;

  for (uint32_t a = 0; a < c->n_ascans; a++) {
    const float *mean = s->mean + (size_t) a * c->n_depths;
    uint32_t best = first;

    for (uint32_t z = first + 1; z < c->n_depths; z++)
      if (mean[z] > mean[best])
        best = z;
    depths[a] = best;
  }
  return IMK_OK;
}

void
imk_octangio_cpu_cancel (void *state, bool cancel)
{
  Cpu *s = state;

  s->is_cancelled = cancel;
}

static void
cpu_destroy (void *state)
{
  Cpu *s = state;

  if (!s)
    return;
  free (s->mean);
  free (s->re);
  free (s->im);
  free (s->energy);
  free (s->flow);
  free (s->work);
  free (s);
}

static ImkStatus
cpu_create (const ImkOctangioPlan *plan, void **state, ImkError *error)
{
  const ImkOctangioConfig *c = &plan->config;
  size_t n = (size_t) c->n_ascans * c->n_depths;
  size_t n_rounded = (size_t) imk_div_up (c->n_depths, LANES) * LANES;
  Cpu *s = calloc (1, sizeof (*s));

  if (s) {
    s->plan = *plan;
    s->n_work =
        plan->taps ? 4 * (n_rounded + plan->radius) : 5 * (size_t) c->n_depths;
    s->mean = calloc (n, sizeof (float));
    s->re = malloc (n * sizeof (float));
    s->im = malloc (n * sizeof (float));
    s->energy = malloc (n * sizeof (float));
    s->flow = malloc (n * sizeof (float));
    s->work = malloc (c->n_ascans * s->n_work * sizeof (float));
  }
  if (s && s->mean && s->re && s->im && s->energy && s->flow && s->work) {
    *state = s;
    return IMK_OK;
  }
  cpu_destroy (s);
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory for %u x %u pixels of flow.", c->n_ascans,
      c->n_depths);
}

const ImkOctangioBackend imk_octangio_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .process = cpu_process,
    .find_brightest = cpu_find_brightest,
    .destroy = cpu_destroy,
};
