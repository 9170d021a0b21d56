/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarxcorr.h"

#include <stdlib.h>

#include "core/sample.h"
#include "insar-common.h"
#include "insarxcorr/insarxcorr-reference.h"
#include "variants.h"

enum { OUT, IMAGES, MAX_PATCHES = 3 };

typedef struct Case {
  VariantCase v; /* expects the rows of OUT */
  ImkInsarxcorrConfig config;
  double gross[MAX_PATCHES * MAX_PATCHES * 2];
  uint8_t mask[6];
  double *leads; /* of patches */
  ImkInsarxcorr *kernel;
} Case;

static void
draw_sizes (ImkInsarxcorrConfig *k, uint64_t *seed)
{
  *k = insar_config (variant_between (seed, 100, 180),
      variant_between (seed, 100, 150), variant_between (seed, 4, 9),
      variant_between (seed, 4, 9), variant_between (seed, 1, MAX_PATCHES),
      variant_between (seed, 1, MAX_PATCHES));
  k->mode = (ImkInsarxcorrMode) (test_random (seed) % 2);
  k->grid = (ImkInsarxcorrGrid) (test_random (seed) % 3);
  k->step_x = k->step_y = 40;
  k->interp = variant_between (seed, 1, 8);
  if (k->mode == IMK_INSARXCORR_COMPAT) {
    k->method = (ImkInsarxcorrMethod) (test_random (seed) % 3);
    k->range_interp = variant_between (seed, 1, 4);
  } else {
    k->xsearch = variant_between (seed, 4, 6);
    k->ysearch = variant_between (seed, 4, 6);
    k->window_width = variant_between (seed, 12, 20);
    k->window_height = variant_between (seed, 12, 20);
    k->range_interp = variant_between (seed, 1, 3);
    k->azimuth_interp = variant_between (seed, 1, 3);
  }
}

/* What is known beforehand, half of the time. */
static void
draw_places (Case *c, uint64_t *seed)
{
  ImkInsarxcorrConfig *k = &c->config;

  if (test_random (seed) % 2) {
    k->rshift = (int32_t) variant_between (seed, 0, 40) - 20;
    k->ashift = (int32_t) variant_between (seed, 0, 40) - 20;
    k->prf_ratio = 0.1 * (variant_uniform (seed) - 0.5);
  }
  if (k->grid != IMK_INSARXCORR_GRID_STEP && test_random (seed) % 4 == 0) {
    for (int i = 0; i < 2 * MAX_PATCHES * MAX_PATCHES; i++)
      c->gross[i] = 10 * (variant_uniform (seed) - 0.5);
    k->gross_offsets = c->gross;
  }
  if (test_random (seed) % 4 == 0) {
    for (int i = 0; i < 6; i++)
      c->mask[i] = test_random (seed) % 4 != 0;
    k->mask = c->mask;
    k->mask_width = 3;
    k->mask_height = 2;
  }
}

/* The same scene in both, with noise of their own, on a carrier: up to 2e4, so
 * that a whole number more or less does not matter. Some samples are no data.
 */
static void
draw_images (Case *c, uint64_t *seed)
{
  ImkInsarxcorrConfig *k = &c->config;
  int dx = (int) variant_between (seed, 0, 6) - 3;
  int dy = (int) variant_between (seed, 0, 6) - 3;
  double turn_x = variant_uniform (seed), turn_y = variant_uniform (seed);
  bool has_gaps = test_random (seed) % 4 == 0;
  int16_t *scene[2];

  insar_make_pair (k, dx, dy, *seed, &scene[0], &scene[1]);
  for (int s = 0; s < 2; s++) {
    const ImkImage *image = &c->v.host[IMAGES + s].image;

    for (uint32_t y = 0; y < image->height; y++)
      for (uint32_t x = 0; x < image->width; x++) {
        const int16_t *z = scene[s] + 2 * ((size_t) y * image->width + x);
        double angle = 2 * M_PI * (turn_x * x + turn_y * y);
        double re = 12 * (z[0] + 300 * (variant_uniform (seed) - 0.5));
        double im = 12 * (z[1] + 300 * (variant_uniform (seed) - 0.5));
        bool gap = has_gaps && test_random (seed) % 16 == 0;

        if (k->type == IMK_TYPE_F32) {
          imk_sample_put (image, x, y, 0, gap ? NAN : hypot (re, im));
          continue;
        }
        if (gap)
          re = im = k->type == IMK_TYPE_CF32 ? NAN : 0;
        test_image_put_complex (&c->v.host[IMAGES + s], x, y,
            re * cos (angle) - im * sin (angle),
            re * sin (angle) + im * cos (angle));
      }
    free (scene[s]);
  }
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  static const ImkType types[] = {IMK_TYPE_CI16, IMK_TYPE_CF32, IMK_TYPE_F32};
  Case *c = data;
  ImkInsarxcorrConfig *k = &c->config;
  uint32_t n;

  draw_sizes (k, seed);
  draw_places (c, seed);
  k->type = types[test_random (seed) % 3];
  if (typical) {
    *k = insar_config (600, 500, 16, 16, 8, 4);
    k->mode = IMK_INSARXCORR_PRECISE;
  }
  k->n_threads = 1;
  test_ok (imk_insarxcorr_config_complete (k, test_new_error ()));
  n = k->nx * k->ny;
  c->v.host[OUT] = test_image_new (IMK_TYPE_F64, N_FIELDS, n, 1, 0);
  c->v.expected = test_image_new (IMK_TYPE_F64, N_FIELDS, n, 1, 0);
  c->leads = calloc (n, sizeof (*c->leads));
  for (int s = 0; s < 2; s++)
    c->v.host[IMAGES + s] =
        test_image_new (k->type, k->width[s], k->height[s], 1, 0);
  draw_images (c, seed);
  snprintf (name, VARIANT_MAX_NAME,
      "%s %ux%u, mode %d method %d, grid %d of %ux%u, search %ux%u, window "
      "%ux%u, interp %u %u %u, shift %d %d%s%s",
      imk_type_name (k->type), k->width[0], k->height[0], k->mode, k->method,
      k->grid, k->nx, k->ny, k->xsearch, k->ysearch, k->window_width,
      k->window_height, k->range_interp, k->azimuth_interp, k->interp,
      k->rshift, k->ashift, k->gross_offsets ? ", gross offsets" : "",
      k->mask ? ", mask" : "");
}

static void
expect (void *data)
{
  Case *c = data;
  const ImkInsarxcorrConfig *k = &c->config;
  const ImkImage images[] = {
      c->v.host[IMAGES].image, c->v.host[IMAGES + 1].image};

  for (uint32_t i = 0; i < k->nx * k->ny; i++)
    c->leads[i] = imk_insarxcorr_reference (k, images, i % k->nx, i / k->nx,
        imk_sample_at (&c->v.expected.image, 0, i, 0));
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;
  const ImkInsarxcorrConfig *k = &c->config;
  ImkStatus status = IMK_OK;

  for (int s = 0; s < 2; s++)
    imk_insarxcorr_rewind (c->kernel, s);
  for (uint32_t row = 0; row < k->ny && status == IMK_OK; row++) {
    ImkImage out = c->v.at[OUT];

    out.data = imk_sample_at (&out, 0, row * k->nx, 0);
    out.height = k->nx;
    for (int s = 0; s < 2; s++)
      insar_push (c->kernel, k, s, c->v.host[IMAGES + s].image.data, 64);
    status = imk_insarxcorr_process (c->kernel, &out, NULL, error);
    if (out.location == IMK_LOCATION_DEVICE)
      test_device_wait ();
    imk_insarxcorr_advance (c->kernel);
  }
  return status;
}

/* As insar_difference () has it. Where two samples of a surface are equal to
 * float32, or to what whole numbers are off, either may be the peak; likewise a
 * correlation at its limit. */
static double
difference (void *data)
{
  Case *c = data;
  bool in_time = c->config.mode == IMK_INSARXCORR_COMPAT &&
                 c->config.method != IMK_INSARXCORR_FREQ;
  double worst = 0;

  for (uint32_t i = 0; i < c->config.nx * c->config.ny; i++) {
    double *found = imk_sample_at (&c->v.host[OUT].image, 0, i, 0);
    const double *e = imk_sample_at (&c->v.expected.image, 0, i, 0);
    double off = e[IMK_INSARXCORR_CORRELATION] - c->config.min_correlation,
           share;
    char words[INSAR_WORDS];

    if (c->leads[i] < (in_time ? 1e-4 : 1e-5) || fabs (off) < 0.03)
      continue;
    share = insar_difference (&c->config, found, e, words);
    if (share > fmax (worst, 1))
      printf ("# %s\n", words);
    worst = variant_larger (worst, share);
  }
  return worst;
}

static void
clear (void *data)
{
  free (((Case *) data)->leads);
}

VARIANT_KERNEL (insarxcorr,
    .promise = "0.001 samples, 0.01 of 100, see insar-common.c", .cuda = true,
    .n_cases = 60, .clear = clear)
