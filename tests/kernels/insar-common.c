/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insar-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sample.h"
#include "insarxcorr/insarxcorr-reference.h"

ImkInsarxcorr *
insar_new (ImkBackend backend, const ImkInsarxcorrConfig *c)
{
  ImkInsarxcorr *self = NULL;

  test_ok (imk_insarxcorr_new (backend, c, &self, test_new_error ()));
  return self;
}

ImkImage
insar_image (const ImkInsarxcorrConfig *c, int side, const void *data)
{
  return (ImkImage){
      .data = (void *) data,
      .stride = c->width[side] * imk_type_size (c->type),
      .width = c->width[side],
      .height = c->height[side],
      .channels = 1,
      .type = c->type,
  };
}

void
insar_push (ImkInsarxcorr *self, const ImkInsarxcorrConfig *c, int side,
    const void *data, uint32_t at_once)
{
  uint32_t room;

  while ((room = imk_insarxcorr_room (self, side)) > 0) {
    ImkImage lines = insar_image (c, side, data);

    lines.data =
        imk_sample_at (&lines, 0, imk_insarxcorr_pushed (self, side), 0);
    lines.height = room < at_once ? room : at_once;
    test_ok (imk_insarxcorr_push (self, side, &lines, test_new_error ()));
  }
}

double *
insar_run_pushing (ImkBackend backend, const ImkInsarxcorrConfig *c,
    const void *ref, const void *sec, uint32_t at_once)
{
  test_autoptr (ImkInsarxcorr) self = insar_new (backend, c);
  size_t row_size = (size_t) c->nx * N_FIELDS;
  double *all = malloc (c->ny * row_size * sizeof (*all));
  test_auto (TestImage) host =
      test_image_new (IMK_TYPE_F64, N_FIELDS, c->nx, 1, 0);
  ImkImage out = host.image;

  if (backend == IMK_BACKEND_CUDA)
    out = test_to_device (&host);
  for (uint32_t row = 0; row < c->ny; row++) {
    insar_push (self, c, 0, ref, at_once);
    insar_push (self, c, 1, sec, at_once);
    test_check (imk_insarxcorr_is_ready (self), "row %u is not ready", row);
    test_check (imk_insarxcorr_row (self) == row, "row %u is not next", row);
    test_ok (imk_insarxcorr_process (self, &out, NULL, test_new_error ()));
    if (backend == IMK_BACKEND_CUDA)
      test_from_device (&out, &host);
    test_image_check_canaries (&host, "offsets");
    memcpy (all + row * row_size, host.image.data, row_size * sizeof (*all));
    imk_insarxcorr_advance (self);
  }
  insar_push (self, c, 0, ref, at_once);
  insar_push (self, c, 1, sec, at_once);
  for (int s = 0; s < 2; s++)
    test_check (imk_insarxcorr_pushed (self, s) == c->height[s],
        "side %d took %u of %u lines", s, imk_insarxcorr_pushed (self, s),
        c->height[s]);
  if (backend == IMK_BACKEND_CUDA)
    test_device_free (&out);
  return all;
}

double *
insar_run (const ImkInsarxcorrConfig *c, const void *ref, const void *sec)
{
  return insar_run_pushing (IMK_BACKEND_CPU, c, ref, sec, 100);
}

ImkInsarxcorrConfig
insar_config (uint32_t width, uint32_t height, uint32_t xsearch,
    uint32_t ysearch, uint32_t nx, uint32_t ny)
{
  ImkInsarxcorrConfig c;

  imk_insarxcorr_config_init (&c);
  c.width[0] = c.width[1] = width;
  c.height[0] = c.height[1] = height;
  c.xsearch = xsearch;
  c.ysearch = ysearch;
  c.nx = nx;
  c.ny = ny;
  c.n_threads = 2;
  return c;
}

double
insar_uniform (uint64_t *seed)
{
  return (double) (test_random (seed) >> 11) / (1ull << 53) - 0.5;
}

void
insar_make_pair (const ImkInsarxcorrConfig *c, int dx, int dy, uint64_t seed,
    int16_t **ref, int16_t **sec)
{
  uint32_t w = c->width[0], h = c->height[0], ww = w + 64, hh = h + 64;
  float *noise = malloc ((size_t) ww * hh * 2 * sizeof (*noise));
  int16_t *out[2];

  for (size_t i = 0; i < (size_t) ww * hh * 2; i++)
    noise[i] = (float) insar_uniform (&seed);
  for (int s = 0; s < 2; s++) {
    out[s] = malloc ((size_t) w * h * 4);
    for (uint32_t y = 0; y < h; y++)
      for (uint32_t x = 0; x < w; x++)
        for (int part = 0; part < 2; part++) {
          size_t sx = x + 32 - (s ? dx : 0), sy = y + 32 - (s ? dy : 0);
          float sum = 0;

          for (size_t i = 0; i < 2; i++)
            for (size_t j = 0; j < 2; j++)
              sum += noise[((sy + i) * ww + sx + j) * 2 + part];
          out[s][((size_t) y * w + x) * 2 + part] = (int16_t) (sum * 800);
        }
  }
  free (noise);
  *ref = out[0];
  *sec = out[1];
}

/* --- the reference -------------------------------------------------------- */

/* Float32 transforms leave 1e-3 samples and 0.01 of 100. In COMPAT offsets are
 * points of a grid, and CORRELATION is of whole numbers: amplitudes of float32
 * that lie on the other side of one make up to 0.02 of 100, 0.05 under the
 * root of -time4. SNR divides by
 * what is 1 / sqrt (SNR) of that, variances have the factor 1 - CORRELATION /
 * 100, and those of several samples are of a peak that is flat. */
double
insar_difference (const ImkInsarxcorrConfig *c, const double *found,
    const double *expected, char words[INSAR_WORDS])
{
  bool compat = c->mode == IMK_INSARXCORR_COMPAT;
  bool fourth = compat && c->method == IMK_INSARXCORR_TIME4;
  double offset = compat ? 0 : 1e-3;
  double percent = fourth ? 0.05 : compat ? 0.02 : 0.01;
  double rest = 1 - expected[IMK_INSARXCORR_CORRELATION] / 100;
  double slack = compat ? 1e-2 * percent / rest : 0;
  double flat = compat ? 1e-3 * fmax (expected[IMK_INSARXCORR_COV_XX],
                                    expected[IMK_INSARXCORR_COV_YY])
                       : 0;
  const double absolute[N_FIELDS] = {
      [IMK_INSARXCORR_DX] = offset,
      [IMK_INSARXCORR_DY] = offset,
      [IMK_INSARXCORR_CORRELATION] = percent,
      [IMK_INSARXCORR_PEAK] = percent,
      [IMK_INSARXCORR_COV_XX] = compat ? 1e-8 : 0,
      [IMK_INSARXCORR_COV_YY] = compat ? 1e-8 : 0,
      [IMK_INSARXCORR_COV_XY] = 1e-6,
  };
  const double relative[N_FIELDS] = {
      [IMK_INSARXCORR_SNR] =
          1e-3 + (compat ? 1e-4 * sqrt (expected[IMK_INSARXCORR_SNR]) : 0),
      [IMK_INSARXCORR_COV_XX] = 1e-3 + slack + flat,
      [IMK_INSARXCORR_COV_YY] = 1e-3 + slack + flat,
      [IMK_INSARXCORR_COV_XY] = 1e-2 + slack + flat,
  };
  double worst = 0;

  words[0] = 0;
  for (int f = 0; f < N_FIELDS; f++) {
    double off = fabs (found[f] - expected[f]);
    double allowed = absolute[f] + relative[f] * fabs (expected[f]);
    double share = off == 0 ? 0 : off / allowed;

    if (!(share <= worst)) {
      worst = isnan (share) ? INFINITY : share;
      snprintf (words, INSAR_WORDS,
          "patch (%g, %g) field %d: %.9g, expected %.9g",
          expected[IMK_INSARXCORR_X], expected[IMK_INSARXCORR_Y], f, found[f],
          expected[f]);
    }
  }
  return worst;
}

void
insar_check_reference (const ImkInsarxcorrConfig *given, const void *ref,
    const void *sec, const char *where)
{
  ImkInsarxcorrConfig c = *given;
  ImkImage images[] = {insar_image (&c, 0, ref), insar_image (&c, 1, sec)};
  double *found = insar_run (&c, ref, sec), expected[N_FIELDS];
  char words[INSAR_WORDS];

  test_ok (imk_insarxcorr_config_complete (&c, test_new_error ()));
  for (uint32_t i = 0; i < c.nx * c.ny; i++) {
    imk_insarxcorr_reference (&c, images, i % c.nx, i / c.nx, expected);
    test_check (
        insar_difference (&c, found + i * N_FIELDS, expected, words) <= 1,
        "%s %s", where, words);
  }
  free (found);
}

/* --- the shared data ------------------------------------------------------ */

static void
data_name (const char *pair, const char *name, char path[1024])
{
  snprintf (path, 1024, "insarxcorr/%s/%s", pair, name);
}

FILE *
insar_find_data (const char *pair, const char *name)
{
  char path[1024];

  data_name (pair, name, path);
  return test_find_data (path);
}

FILE *
insar_open_data (const char *pair, const char *name)
{
  char path[1024];

  data_name (pair, name, path);
  return test_open_data (path);
}

int16_t *
insar_read_slc (const char *pair, const char *name, size_t n_samples)
{
  FILE *file = insar_open_data (pair, name);
  int16_t *data = malloc (n_samples * 4);
  size_t n;

  n = fread (data, 4, n_samples, file);
  fclose (file);
  test_check (n == n_samples, "%s/%s has %zu samples", pair, name, n);
  return data;
}
