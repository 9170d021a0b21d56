/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which pictures of a set do not agree with the others: some pixels of each are
 * kept as grey values, and solved so that no picture has much weight. */
#include "photostereo/photostereo-plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sample.h"

#define REAL double
#define INLINE static inline
#include "photostereo/photostereo-solve.h"

enum {
  MAX_PROBES = 512,
  MIN_PROBES = 32, /* of a picture that is judged */
  MIN_LIGHTS = 6,  /* of a pixel */
  ROUNDS = 12,
};

#define GOLDEN 0.6180339887 /* its multiples are spread evenly */
#define MIN_COSINE 0.3      /* of n' and L: with less, G is mostly noise */
#define MIN_RESIDUAL 1e-3   /* of |n'|: smaller ones weigh the same */

struct ImkPhotostereoProbes {
  uint32_t n, n_lights;
  uint32_t xs[MAX_PROBES], ys[MAX_PROBES]; /* pixels */
  float dark[IMK_PHOTOSTEREO_MAX_PLANES][MAX_PROBES];
  float white[IMK_PHOTOSTEREO_MAX_PLANES][MAX_PROBES];
  float *table;     /* NULL, or that of the plan */
  uint32_t *n_seen; /* [light] pictures that were added */
  float *greys;     /* [light][n]; NaN where a sample is clipped */
};

void
imk_photostereo_probes_free (ImkPhotostereoProbes *self)
{
  if (!self)
    return;
  free (self->table);
  free (self->n_seen);
  free (self->greys);
  free (self);
}

static bool
is_inside (const ImkPhotostereoPlan *p, size_t pixel)
{
  return !p->mask || p->mask[pixel];
}

/* One of each of as many runs of pixels in the mask; at equal distances they
 * might all be of one column. */
static void
choose_pixels (ImkPhotostereoProbes *self, const ImkPhotostereoPlan *p)
{
  size_t n_all = (size_t) p->width * p->height, n_inside = 0, k = 0;
  double run;

  for (size_t i = 0; i < n_all; i++)
    n_inside += is_inside (p, i);
  run = fmax ((double) n_inside / MAX_PROBES, 1);
  for (size_t i = 0; i < n_all && self->n < MAX_PROBES; i++) {
    double place = self->n + fmod (self->n * GOLDEN, 1);

    if (!is_inside (p, i) || (double) k++ < floor (place * run))
      continue;
    self->xs[self->n] = (uint32_t) (i % p->width);
    self->ys[self->n++] = (uint32_t) (i / p->width);
  }
}

/* Of a plane: what mosaics keep of a pixel is the colour of its site. */
static void
copy_calibration (ImkPhotostereoProbes *self, const ImkPhotostereoPlan *p)
{
  size_t size = (size_t) p->width * p->height;

  for (uint32_t plane = 0; plane < p->n_planes; plane++)
    for (uint32_t k = 0; k < self->n; k++) {
      size_t at = plane * size + (size_t) self->ys[k] * p->width + self->xs[k];

      self->dark[plane][k] = p->dark ? p->dark[at] : 0;
      self->white[plane][k] = p->white ? p->white[at] : 1;
    }
}

ImkPhotostereoProbes *
imk_photostereo_probes_new (const ImkPhotostereoPlan *p)
{
  ImkPhotostereoProbes *self = calloc (1, sizeof (*self));
  size_t n_table = p->type == IMK_TYPE_U8 ? 256 : 65536;

  if (!self)
    return NULL;
  self->n_lights = p->n_lights;
  self->table = p->table ? malloc (n_table * sizeof (*self->table)) : NULL;
  self->n_seen = calloc (p->n_lights, sizeof (*self->n_seen));
  self->greys =
      calloc ((size_t) p->n_lights * MAX_PROBES, sizeof (*self->greys));
  if ((p->table && !self->table) || !self->n_seen || !self->greys) {
    imk_photostereo_probes_free (self);
    return NULL;
  }
  if (p->table)
    memcpy (self->table, p->table, n_table * sizeof (*self->table));
  choose_pixels (self, p);
  copy_calibration (self, p);
  return self;
}

void
imk_photostereo_probes_reset (ImkPhotostereoProbes *self)
{
  memset (self->n_seen, 0, self->n_lights * sizeof (*self->n_seen));
  memset (self->greys, 0,
      (size_t) self->n_lights * MAX_PROBES * sizeof (*self->greys));
}

/* Returns: the part of a grey value; NaN where it is clipped */
static float
grey_of (const ImkPhotostereoProbes *self, const ImkPhotostereoPlan *p,
    const ImkPhotostereoLamp *lamp, const ImkImage *frame, uint32_t k,
    uint32_t plane)
{
  bool is_mosaic = p->mosaic || p->interpolate;
  uint32_t x = self->xs[k], y = self->ys[k];
  uint32_t colour = is_mosaic ? p->site[2 * (y & 1) + (x & 1)] : plane;
  uint32_t from = p->interpolate ? colour : plane; /* calibration */
  uint32_t sample =
      imk_sample_get_uint (frame, x, y, is_mosaic ? 0 : p->colours[plane]);
  float value = self->table ? self->table[sample] : (float) sample * p->unit;

  if (sample >= p->saturation)
    return NAN;
  value = fmaxf (value - self->dark[from][k], 0) * self->white[from][k] *
          lamp->gain[colour];
  return p->n_planes > 1 && !is_mosaic ? value * p->weight[plane] : value;
}

void
imk_photostereo_probes_add (ImkPhotostereoProbes *self,
    const ImkPhotostereoPlan *p, const ImkPhotostereoLamp *lamp,
    const ImkImage *frame, uint32_t light, uint32_t band)
{
  float *to = self->greys + (size_t) light * MAX_PROBES;
  uint32_t first = p->bands > 1 ? band : 0;
  uint32_t n = p->bands > 1 || p->interpolate ? 1 : p->n_planes;

  for (uint32_t k = 0; k < self->n; k++)
    for (uint32_t plane = first; plane < first + n; plane++)
      to[k] += grey_of (self, p, lamp, frame, k, plane);
  self->n_seen[light]++;
}

/* --- judging -------------------------------------------------------------- */

/* One pixel under the lights of the set. */
typedef struct Pixel {
  double (*l)[3];
  double *g;
  uint32_t n;
} Pixel;

static double
predict (const Solution *s, const double l[3])
{
  return s->x * l[0] + s->y * l[1] + s->z * l[2];
}

/* A light from behind gives nothing, and so it tells nothing unless the picture
 * is bright: then it counts. */
static double
weight_of (const Solution *s, const double l[3], double g)
{
  double expected = predict (s, l), least = MIN_RESIDUAL * sqrt (s->norm2);

  if (isnan (g) || (expected < 0 && g < least))
    return 0;
  return 1 / fmax (fabs (expected - g), least);
}

/* Least absolute residuals, by weights that are their inverse. */
static bool
solve_pixel (const Pixel *pixel, Solution *s)
{
  for (int round = 0; round < ROUNDS; round++) {
    Sums sums = {0};

    for (uint32_t i = 0; i < pixel->n; i++) {
      const double *l = pixel->l[i], g = pixel->g[i];
      double w = round ? weight_of (s, l, g) : !isnan (g);

      if (!(w > 0))
        continue;
      add_light (&sums, w * l[0], w * l[1], w * l[2], l[0], l[1], l[2], g);
      sums.n += 1;
    }
    *s = solve_sums (&sums);
    if (sums.n < MIN_LIGHTS || !(s->volume > IMK_PHOTOSTEREO_MIN_VOLUME) ||
        !(s->norm2 > 0))
      return false;
  }
  return true;
}

static int
compare (const void *a, const void *b)
{
  float x = *(const float *) a, y = *(const float *) b;

  return (x > y) - (x < y);
}

/* The residuals of one pixel; NaN where they tell nothing. @residuals: [light]
 * [MAX_PROBES] */
static void
judge_pixel (const Pixel *pixel, float *residuals)
{
  Solution s;
  bool is_solved = solve_pixel (pixel, &s);

  for (uint32_t i = 0; i < pixel->n; i++) {
    const double *l = pixel->l[i];
    double size = sqrt (l[0] * l[0] + l[1] * l[1] + l[2] * l[2]);
    double whole = is_solved ? size * sqrt (s.norm2) : 0;
    double expected = is_solved ? predict (&s, l) : 0;

    residuals[(size_t) i * MAX_PROBES] =
        expected > MIN_COSINE * whole && !isnan (pixel->g[i])
            ? (float) (fabs (expected - pixel->g[i]) / whole)
            : NAN;
  }
}

/* Returns: the median; NaN of too few */
static double
median_of (float *values, uint32_t n)
{
  uint32_t known = 0;

  for (uint32_t k = 0; k < n; k++)
    if (!isnan (values[k]))
      values[known++] = values[k];
  if (known < MIN_PROBES)
    return NAN;
  qsort (values, known, sizeof (*values), compare);
  return values[known / 2];
}

ImkStatus
imk_photostereo_probes_judge (const ImkPhotostereoProbes *self,
    const ImkPhotostereoPlan *p, const ImkPhotostereoLamp *lamps,
    const uint32_t *lights, uint32_t n_lights, double *misfits, ImkError *error)
{
  size_t room = n_lights ? n_lights : 1;
  float *residuals = malloc (room * MAX_PROBES * sizeof (*residuals));
  Pixel pixel = {.l = malloc (room * sizeof (*pixel.l)),
      .g = malloc (room * sizeof (*pixel.g)),
      .n = n_lights};
  ImkStatus status = IMK_OK;

  if (residuals && pixel.l && pixel.g) {
    for (uint32_t k = 0; k < self->n; k++) {
      for (uint32_t i = 0; i < n_lights; i++) {
        pixel.g[i] = self->n_seen[lights[i]] == p->bands
                         ? self->greys[(size_t) lights[i] * MAX_PROBES + k]
                         : NAN;
        imk_photostereo_light_vector (p, &lamps[lights[i]],
            (self->xs[k] - (double) p->centre_x) * p->pitch_x,
            (self->ys[k] - (double) p->centre_y) * p->pitch_y, pixel.l[i]);
      }
      judge_pixel (&pixel, residuals + k);
    }
    for (uint32_t i = 0; i < n_lights; i++)
      misfits[lights[i]] =
          median_of (residuals + (size_t) i * MAX_PROBES, self->n);
  } else {
    status = IMK_NO_MEMORY (error, "to compare %u pictures.", n_lights);
  }
  free (residuals);
  free (pixel.l);
  free (pixel.g);
  return status;
}
