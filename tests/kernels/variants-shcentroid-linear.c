/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "variants-shcentroid-linear.h"

#include <stdlib.h>
#include <string.h>

#include "core/sample.h"
#include "shcentroid/shcentroid-cells.h"
#include "shcentroid/shcentroid-filter.h"
#include "shcentroid/shcentroid-templates.h"
#include "variants.h"

enum { N_FIELDS = IMK_SHCENTROID_N_FIELDS, N_PUPILS = 4 };

/* --- cases ---------------------------------------------------------------- */

/* A spot of any width, between whole pixels. */
static void
draw_template (const ImkShcentroidConfig *c, float *to, uint64_t *seed)
{
  double x = 0.5 * c->template_width + variant_uniform (seed) - 1;
  double y = 0.5 * c->template_height + variant_uniform (seed) - 1;
  double sigma = 0.9 + variant_uniform (seed);

  for (uint32_t v = 0; v < c->template_height; v++)
    for (uint32_t u = 0; u < c->template_width; u++)
      *to++ = (float) (90 * exp (-((u - x) * (u - x) + (v - y) * (v - y)) /
                                 (2 * sigma * sigma)));
}

static void
draw_matched (VariantsLinear *self, ImkShcentroidConfig *c, uint64_t *seed)
{
  uint32_t pitch = variant_between (seed, 6, 15);
  uint32_t n;

  c->columns = variant_between (seed, 1, 6);
  c->rows = variant_between (seed, 1, 4);
  c->pitch_x = c->pitch_y = pitch;
  c->width = c->columns * pitch + variant_between (seed, 0, 5);
  c->height = c->rows * pitch + variant_between (seed, 0, 5);
  c->template_width = variant_between (seed, 5, pitch);
  c->template_height = variant_between (seed, 5, pitch);
  c->n_templates = test_random (seed) % 2 ? 1 : c->columns * c->rows;
  n = c->template_width * c->template_height;
  c->templates = self->templates = malloc (c->n_templates * n * sizeof (float));
  for (uint32_t i = 0; i < c->n_templates; i++)
    draw_template (c, self->templates + (size_t) i * n, seed);
}

/* Images of the same pixels, some of them missing, in the quarters. */
static void
draw_pupils (VariantsLinear *self, ImkShcentroidConfig *c, uint64_t *seed)
{
  static const uint8_t quarters[2][2] = {{1, 4}, {2, 3}};
  uint32_t width = variant_between (seed, 3, 60);
  uint32_t height = variant_between (seed, 2, 30);
  uint8_t *numbers;

  c->width = 2 * width + variant_between (seed, 0, 5);
  c->height = 2 * height + variant_between (seed, 0, 5);
  numbers = calloc ((size_t) c->width * c->height, 1);
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      if (x + y == 0 || test_random (seed) % 5)
        for (uint32_t k = 0; k < N_PUPILS; k++)
          numbers[(k / 2 * height + y) * c->width + k % 2 * width + x] =
              quarters[k / 2][k % 2];
  test_ok (imk_shcentroid_find_pupils (numbers, c->width, c->height, c,
      &self->cells, &self->pupils, test_new_error ()));
  free (numbers);
  c->normalisation = (ImkShcentroidNormalisation) (test_random (seed) % 2);
}

void
variants_linear_draw (
    VariantsLinear *self, ImkShcentroidConfig *c, uint64_t *seed)
{
  c->margin = 0;
  if (test_random (seed) % 2) {
    c->estimator = IMK_SHCENTROID_ESTIMATOR_MATCHED;
    draw_matched (self, c, seed);
  } else {
    c->estimator = IMK_SHCENTROID_ESTIMATOR_PUPILS;
    draw_pupils (self, c, seed);
  }
}

void
variants_linear_clear (VariantsLinear *self)
{
  free (self->templates);
  free (self->cells);
  free (self->pupils);
}

void
variants_linear_light (
    const ImkShcentroidConfig *c, TestImage *in, uint64_t *seed)
{
  uint32_t pitch = (uint32_t) c->pitch_x;

  if (c->estimator != IMK_SHCENTROID_ESTIMATOR_MATCHED)
    return;
  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double u = x % pitch - 0.5 * pitch, v = y % pitch - 0.5 * pitch;

      imk_sample_put (&in->image, x, y, 0,
          floor (
              150 * exp (-(u * u + v * v) / 4) + 20 * variant_uniform (seed)));
    }
}

/* --- what they give ------------------------------------------------------- */

typedef struct Pixel {
  float value;
  double flat, sample;
  bool good;
} Pixel;

static Pixel
get_pixel (
    const ImkShcentroidConfig *c, const ImkImage *in, uint32_t x, uint32_t y)
{
  size_t at = (size_t) y * c->width + x;
  Pixel p = {.sample = imk_sample_get (in, x, y, 0)};
  float flat = c->flat ? c->flat[at] : 1, dark = c->dark ? c->dark[at] : 0;

  p.value = ((float) p.sample - dark) * flat;
  p.flat = flat;
  p.good = flat != 0 && !(c->bad && c->bad[at]);
  return p;
}

/* A pixel and its weights. */
typedef struct Term {
  Pixel pixel;
  double w, w_x, w_y;
} Term;

/* The row of a cell of @n terms. (@zero_x, @zero_y): where sums of 0 are, in
 * the frame; @mean: that by which it is divided, 0 for its flux */
static void
measure (const ImkShcentroidConfig *c, const ImkShcentroidRect *r,
    const Term *terms, uint32_t n, double zero_x, double zero_y, double mean,
    double row[N_FIELDS])
{
  bool is_cell = c->estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED;
  long double p = 0, pu = 0, py = 0, raw = 0, x, y, by, var[2] = {0, 0};
  double max = -INFINITY, max_sample = 0;
  uint32_t flags = r->flags;

  memset (row, 0, N_FIELDS * sizeof (*row));
  for (uint32_t i = 0; i < n; i++) {
    const Pixel *k = &terms[i].pixel;

    if (!k->good)
      continue;
    p += (long double) terms[i].w * k->value;
    pu += (long double) terms[i].w_x * k->value;
    py += (long double) terms[i].w_y * k->value;
    raw += k->value;
    max = fmax (max, k->value);
    max_sample = fmax (max_sample, k->sample);
  }
  for (uint32_t i = 0; i < n && !is_cell; i++)
    if (!terms[i].pixel.good)
      p = raw = 0; /* a cell needs all four */
  by = mean > 0 ? mean : p;
  x = zero_x + pu / by;
  y = zero_y + py / by;
  if (!(p > 0))
    flags |= IMK_SHCENTROID_NO_FLUX;
  else if (is_cell && (x < r->x - 0.5 || x > r->x + r->width - 0.5 ||
                          y < r->y - 0.5 || y > r->y + r->height - 0.5))
    flags |= IMK_SHCENTROID_OUTSIDE;
  if (c->saturation > 0 && max_sample >= c->saturation)
    flags |= IMK_SHCENTROID_SATURATED;
  row[IMK_SHCENTROID_FLUX] = fmax ((double) p, 0);
  row[IMK_SHCENTROID_FLUX_RAW] = (double) raw;
  row[IMK_SHCENTROID_MAX] = isfinite (max) ? max : 0;
  row[IMK_SHCENTROID_FLAGS] = flags;
  row[IMK_SHCENTROID_X] = r->ref_x;
  row[IMK_SHCENTROID_Y] = r->ref_y;
  if (flags & IMK_SHCENTROID_INVALID_MASK)
    return;
  row[IMK_SHCENTROID_X] = (double) x;
  row[IMK_SHCENTROID_Y] = (double) y;
  if (is_cell) {
    row[IMK_SHCENTROID_X] = fmin (fmax ((double) x, r->x), r->x + r->width - 1);
    row[IMK_SHCENTROID_Y] =
        fmin (fmax ((double) y, r->y), r->y + r->height - 1);
  }
  row[IMK_SHCENTROID_DX] = (row[IMK_SHCENTROID_X] - r->ref_x) * c->slope_scale;
  row[IMK_SHCENTROID_DY] = (row[IMK_SHCENTROID_Y] - r->ref_y) * c->slope_scale;
  for (uint32_t i = 0; i < n; i++) {
    const Pixel *k = &terms[i].pixel;
    long double noise = k->flat * fmax (k->value, 0) / c->gain +
                        k->flat * k->flat * c->read_noise * c->read_noise;
    /* a known divisor has no noise */
    long double d_x = terms[i].w_x - (mean > 0 ? 0 : terms[i].w * pu / p);
    long double d_y = terms[i].w_y - (mean > 0 ? 0 : terms[i].w * py / p);

    if (!k->good)
      continue;
    var[0] += d_x * d_x * noise / (by * by);
    var[1] += d_y * d_y * noise / (by * by);
  }
  row[IMK_SHCENTROID_VAR_X] = fmin ((double) var[0], 3e38);
  row[IMK_SHCENTROID_VAR_Y] = fmin ((double) var[1], 3e38);
}

static void
expect_matched (
    const ImkShcentroidConfig *c, const ImkImage *in, ImkImage *rows)
{
  uint32_t n_cells = imk_shcentroid_n_cells (c);
  size_t n_pixels = (size_t) c->width * c->height;
  ImkShcentroidRect *rects = calloc (n_cells, sizeof (*rects));
  ImkShcentroidPixel *pixels = calloc (n_pixels, sizeof (*pixels));
  Term *terms = calloc (n_pixels, sizeof (*terms));
  ImkShcentroidTemplates templates;
  ImkShcentroidFilter filter;

  for (uint32_t i = 0; i < n_cells; i++)
    rects[i] = imk_shcentroid_cell_rect (c, i);
  for (size_t i = 0; i < n_pixels; i++)
    pixels[i].flat = c->bad && c->bad[i] ? 0 : c->flat ? c->flat[i] : 1;
  test_ok (imk_shcentroid_templates_init (&templates, c, test_new_error ()));
  test_ok (imk_shcentroid_filter_init (
      &filter, c, rects, pixels, templates.anchors, test_new_error ()));
  for (uint32_t i = 0; i < n_cells; i++) {
    const ImkShcentroidRect *r = &rects[i];
    const ImkShcentroidAnchor *anchor = &templates.anchors[i];
    const float *weights = filter.weights + filter.at[i];
    uint32_t n = (uint32_t) (r->width * r->height);
    size_t stride = (n + IMK_SHCENTROID_FILTER_LANES - 1) /
                    IMK_SHCENTROID_FILTER_LANES * IMK_SHCENTROID_FILTER_LANES;

    for (uint32_t k = 0; k < n; k++)
      terms[k] = (Term){get_pixel (c, in, (uint32_t) r->x + k % r->width,
                            (uint32_t) r->y + k / r->width),
          weights[k], weights[stride + k], weights[2 * stride + k]};
    measure (c, r, terms, n, anchor->zero_x, anchor->zero_y, 0,
        imk_sample_at (rows, 0, i, 0));
  }
  imk_shcentroid_templates_clear (&templates);
  imk_shcentroid_filter_clear (&filter);
  free (rects);
  free (pixels);
  free (terms);
}

/* Of the mean flux, where it is needed: the second time. */
static void
measure_pupils (const ImkShcentroidConfig *c, const ImkImage *in, double mean,
    ImkImage *rows)
{
  static const double w_x[] = {1, 1, -1, -1}, w_y[] = {1, -1, -1, 1};

  for (uint32_t i = 0; i < c->n_cells; i++) {
    ImkShcentroidRect r = imk_shcentroid_cell_rect (c, i);
    Term terms[N_PUPILS];

    for (uint32_t k = 0; k < N_PUPILS; k++) {
      uint32_t at = c->pupils[N_PUPILS * i + k];

      terms[k] = (Term){
          get_pixel (c, in, at % c->width, at / c->width), 1, w_x[k], w_y[k]};
    }
    measure (
        c, &r, terms, N_PUPILS, r.x, r.y, mean, imk_sample_at (rows, 0, i, 0));
  }
}

static double
mean_flux (const ImkShcentroidConfig *c, const ImkImage *rows)
{
  double most = 0, sum = 0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < c->n_cells; i++)
    most = fmax (most, imk_sample_get (rows, IMK_SHCENTROID_FLUX, i, 0));
  for (uint32_t i = 0; i < c->n_cells; i++) {
    double flux = imk_sample_get (rows, IMK_SHCENTROID_FLUX, i, 0);

    if (flux > 0 && flux >= c->min_illumination * most) {
      sum += flux;
      n++;
    }
  }
  return n ? sum / n : 0;
}

void
variants_linear_expect (
    const ImkShcentroidConfig *c, const ImkImage *in, ImkImage *rows)
{
  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED) {
    expect_matched (c, in, rows);
    return;
  }
  measure_pupils (c, in, 0, rows);
  if (c->normalisation == IMK_SHCENTROID_NORMALISATION_GLOBAL)
    measure_pupils (c, in, mean_flux (c, rows), rows);
}
