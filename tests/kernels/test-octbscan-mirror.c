/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The wavenumbers and the dispersion that were put into the fringes of mirrors
 * are found again, the point spread reaches what the light allows, and fringes
 * that cannot calibrate anything are refused. */
#include "kernel-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/octbscan-mirror.h"

enum { N = 1024 };

static double
uniform (uint64_t *seed)
{
  return (double) (test_random (seed) >> 11) / 0x1p53;
}

/* One mirror. Wavenumbers are k (v), v from -1 to 1 over the pixels. */
typedef struct Mirror {
  double fringes; /* over the spectrum; negative beyond zero delay */
  double bend;    /* k (v) = v + bend (v^2 - 1) + 0.02 (v^3 - v) */
  double d2, d3;  /* psi = d2 u^2 + d3 u^3, u the wavenumbers from -1 to 1 */
  double amplitude, noise, second, clip;
  double phase; /* radians that the mirror moves from line to line */
} Mirror;

static const Mirror plain = {60, -0.1, 0, 0, 2000, 20, 0, 65535, 0};

static double
wavenumber (const Mirror *m, double v)
{
  return v + m->bend * (v * v - 1) + 0.02 * (v * v * v - v);
}

static TestImage
spectra (const ImkOctbscanConfig *c, const Mirror *m, uint32_t n_mirrors,
    uint64_t seed)
{
  TestImage in = test_image_new (IMK_TYPE_U16, c->width, c->height, 1, 6);

  for (uint32_t r = 0; r < c->height; r++) {
    uint16_t *row =
        (uint16_t *) ((uint8_t *) in.image.data + r * in.image.stride);
    const Mirror *mine = &m[r % n_mirrors];

    for (uint32_t i = 0; i < c->width; i++) {
      double v = 2.0 * i / (c->width - 1) - 1, u = wavenumber (mine, v);
      double light = exp (-2.5 * v * v);
      double phase = M_PI * mine->fringes * u + mine->d2 * u * u +
                     mine->d3 * u * u * u + mine->phase * r;
      double s = 1000 + 4000 * light + mine->amplitude * light * cos (phase) +
                 mine->second * light * cos (1.4 * phase + 1) +
                 mine->noise * (uniform (&seed) + uniform (&seed) - 1);

      row[i] = (uint16_t) fmin (fmax (s, 0), mine->clip);
    }
  }
  return in;
}

static ImkOctbscanConfig
base_config (void)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.width = N;
  c.height = 16;
  c.upsample = 2048;
  return c;
}

static ImkOctbscanFringe
measure (const ImkOctbscanConfig *c, const Mirror *m, uint32_t camera)
{
  test_auto (TestImage) in = spectra (c, m, c->n_cameras, 3);
  ImkOctbscanFringe fringe;

  test_ok (imk_octbscan_measure_mirror (
      c, &in.image, 0, camera, &fringe, test_new_error ()));
  return fringe;
}

static void
show (const ImkOctbscanMirrors *m)
{
  printf ("# %u terms, phase error %.4f\n", m->n_k, m->phase_error);
  for (uint32_t i = 0; i < m->n; i++)
    printf ("# depth %.3f (%.2f um), width %.3f to %.3f (limit %.3f), %.1f dB, "
            "noise %.1f dB, error %.4f\n",
        m->positions[i].depth, m->positions[i].depth_um,
        m->positions[i].width_before, m->positions[i].width,
        m->positions[i].width_limit, m->positions[i].level_db,
        m->positions[i].snr_db, m->positions[i].phase_error);
}

static double
polynomial (const double *factors, uint32_t n, double x)
{
  double sum = 0;

  while (n-- > 0)
    sum = sum * x + factors[n];
  return sum;
}

/* Where there is light. */
static void
check_wavenumbers (const Mirror *m, const ImkOctbscanMirrors *found)
{
  double first = wavenumber (m, -1), last = wavenumber (m, 1);

  for (double v = -0.9; v < 0.91; v += 0.1) {
    double expected = 2 * (wavenumber (m, v) - first) / (last - first) - 1;
    double k = polynomial (found->k, found->n_k, v);

    test_check (fabs (k - expected) < 1e-3, "k (%.1f) is %.5f, expected %.5f",
        v, k, expected);
  }
}

TEST (test_one_mirror_gives_the_wavenumbers, "one mirror gives the wavenumbers",
    .cpu_only = true)
{
  static const double bends[] = {0, -0.1, 0.2};

  for (int i = 0; i < 3; i++) {
    ImkOctbscanConfig c = base_config ();
    ImkOctbscanMirrors found;
    ImkOctbscanFringe fringe;
    Mirror m = plain;

    m.bend = bends[i];
    fringe = measure (&c, &m, 0);
    test_ok (imk_octbscan_solve_mirrors (&c, 0, &fringe, 1,
        IMK_OCTBSCAN_MIRROR_FIT_PHASE, &found, test_new_error ()));
    show (&found);
    check_wavenumbers (&m, &found);
    test_check (found.n_dispersion == 0, "there is a dispersion");
    test_check (
        fabs (found.positions[0].depth - m.fringes * 2048 / 2047) < 0.05,
        "depth %.3f", found.positions[0].depth);
    test_check (
        found.positions[0].width < 1.01 * found.positions[0].width_limit,
        "width %.4f", found.positions[0].width);
    test_check (fabs (found.positions[0].level_db) > 0, "no level");
    imk_octbscan_fringe_clear (&fringe);
  }
}

/* On one side, and on both: the dispersion is told from the wavenumbers. */
TEST (test_two_mirrors_give_the_dispersion, "two mirrors give the dispersion",
    .cpu_only = true)
{
  for (int other = 0; other < 2; other++) {
    ImkOctbscanConfig c = base_config ();
    ImkOctbscanMirrors found;
    ImkOctbscanFringe fringes[2];
    Mirror m = plain;

    m.d2 = 9;
    m.d3 = -2;
    fringes[0] = measure (&c, &m, 0);
    m.fringes = other ? -130 : 150;
    fringes[1] = measure (&c, &m, 0);
    fringes[1].side = other ? -1 : 1;
    test_ok (imk_octbscan_solve_mirrors (&c, 0, fringes, 2,
        IMK_OCTBSCAN_MIRROR_FIT_PHASE, &found, test_new_error ()));
    show (&found);
    check_wavenumbers (&m, &found);
    printf ("# d2 %.3f d3 %.3f\n", found.dispersion[2], found.dispersion[3]);
    for (double u = -0.8; u < 0.81; u += 0.1) {
      double wanted = -m.d2 * u * u - m.d3 * u * u * u;
      double rest =
          polynomial (found.dispersion, found.n_dispersion, u) - wanted;
      /* a shift in depth is no error */
      double at0 = polynomial (found.dispersion, found.n_dispersion, 0);
      double line =
          (polynomial (found.dispersion, found.n_dispersion, 0.8) -
              polynomial (found.dispersion, found.n_dispersion, -0.8) -
              2 * -m.d3 * 0.8 * 0.8 * 0.8) /
          1.6;

      rest -= at0 + line * u;
      test_check (
          fabs (rest) < 0.12, "dispersion is %.3f off at %.1f", rest, u);
    }
    for (int j = 0; j < 2; j++) {
      test_check (
          found.positions[j].width < 1.01 * found.positions[j].width_limit,
          "width %.4f", found.positions[j].width);
      imk_octbscan_fringe_clear (&fringes[j]);
    }
  }
}

/* Wavelengths of a lamp stay, and one mirror gives the dispersion. The depth in
 * um is that of the fringes between the two wavelengths. */
TEST (test_known_wavelengths_stay, "known wavelengths stay", .cpu_only = true)
{
  static const double ends[] = {806, 675};
  ImkOctbscanCamera camera = {IMK_OCTBSCAN_MAP_RANGE, ends, 2};
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U16, N, c.height, 1, 0);
  const double k0 = 1 / 806.0, k1 = 1 / 675.0, z_um = 150;
  ImkOctbscanMirrors found;
  ImkOctbscanFringe fringe;

  c.cameras = &camera;
  for (uint32_t r = 0; r < c.height; r++)
    for (uint32_t i = 0; i < N; i++) {
      double k = 1 / (806 - 131.0 * i / (N - 1));
      double v = 2.0 * i / (N - 1) - 1, u = 2 * (k - k0) / (k1 - k0) - 1;

      ((uint16_t *) ((uint8_t *) in.image.data + r * in.image.stride))[i] =
          (uint16_t) (20000 +
                      8000 * exp (-2 * v * v) *
                          cos (4 * M_PI * k * z_um * 1000 + 12 * u * u));
    }
  test_ok (imk_octbscan_measure_mirror (
      &c, &in.image, 0, 0, &fringe, test_new_error ()));
  test_ok (imk_octbscan_solve_mirrors (&c, 0, &fringe, 1,
      IMK_OCTBSCAN_MIRROR_FIT_MAP, &found, test_new_error ()));
  show (&found);
  test_check (found.n_k == 0, "wavenumbers are replaced");
  test_check (fabs (found.dispersion[2] + 12) < 0.05,
      "d2 is %.3f, expected -12", found.dispersion[2]);
  test_check (fabs (found.positions[0].depth_um - z_um) < 0.05,
      "depth is %.3f um, expected %.1f", found.positions[0].depth_um, z_um);
  imk_octbscan_fringe_clear (&fringe);
}

/* Each camera has a fringe of its own, and lines of one camera need not have
 * one phase. */
TEST (test_each_camera_has_its_own, "each camera has its own", .cpu_only = true)
{
  ImkOctbscanCamera cameras[2] = {{IMK_OCTBSCAN_MAP_NONE}};
  ImkOctbscanConfig c = base_config ();
  Mirror m[2] = {plain, plain};

  m[1].fringes = 90;
  m[1].bend = 0.15;
  m[0].phase = m[1].phase = 0.7;
  c.n_cameras = 2;
  c.cameras = cameras;
  for (uint32_t camera = 0; camera < 2; camera++) {
    ImkOctbscanFringe fringe = measure (&c, m, camera);
    ImkOctbscanMirrors found;

    test_ok (imk_octbscan_solve_mirrors (&c, camera, &fringe, 1,
        IMK_OCTBSCAN_MIRROR_FIT_PHASE, &found, test_new_error ()));
    show (&found);
    check_wavenumbers (&m[camera], &found);
    imk_octbscan_fringe_clear (&fringe);
  }
}

static void
check_refused (const Mirror *m, const char *words)
{
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in = spectra (&c, m, 1, 5);
  ImkOctbscanFringe fringe = {.width = 7};
  ImkOctbscanMirrors found = {.n = 7};
  ImkStatus status = imk_octbscan_measure_mirror (
      &c, &in.image, 0, 0, &fringe, test_new_error ());

  if (status == IMK_OK) {
    status = imk_octbscan_solve_mirrors (&c, 0, &fringe, 1,
        IMK_OCTBSCAN_MIRROR_FIT_PHASE, &found, test_new_error ());
    imk_octbscan_fringe_clear (&fringe);
  } else {
    test_check (fringe.width == 7, "the fringe has been touched");
  }
  test_error (status, IMK_ERROR_IMAGE, words);
  test_check (found.n == 7, "the result has been touched");
}

TEST (test_fringes_that_tell_nothing_are_refused,
    "fringes that tell nothing are refused", .cpu_only = true)
{
  Mirror m = plain;

  m.amplitude = 2;
  check_refused (&m, "weak");
  m = plain;
  m.clip = 6000;
  check_refused (&m, "clipped");
  m = plain;
  m.second = 1200;
  check_refused (&m, "two reflectors");
  m.bend = 0; /* their fringes are apart */
  check_refused (&m, "second fringe");
  m = plain;
  m.fringes = 2.5;
  check_refused (&m, "zero delay");
  m = plain;
  m.fringes = 490;
  check_refused (&m, "too far");
}

TEST (test_positions_too_close_are_refused, "positions too close are refused",
    .cpu_only = true)
{
  ImkOctbscanConfig c = base_config ();
  ImkOctbscanMirrors found;
  ImkOctbscanFringe fringes[2];
  Mirror m = plain;

  fringes[0] = measure (&c, &m, 0);
  m.fringes = 62;
  fringes[1] = measure (&c, &m, 0);
  test_error (imk_octbscan_solve_mirrors (&c, 0, fringes, 2,
                  IMK_OCTBSCAN_MIRROR_FIT_PHASE, &found, test_new_error ()),
      IMK_ERROR_IMAGE, "too close");
  test_error (imk_octbscan_solve_mirrors (&c, 0, fringes, 1,
                  IMK_OCTBSCAN_MIRROR_FIT_MAP, &found, test_new_error ()),
      IMK_ERROR_CONFIG, "no wavelengths");
  imk_octbscan_fringe_clear (&fringes[0]);
  imk_octbscan_fringe_clear (&fringes[1]);
}

static ImkOctbscanFringe
read_mirror (const ImkOctbscanConfig *c, FILE *file)
{
  test_auto (TestImage) in = test_image_new (IMK_TYPE_F32, N, 1, 1, 0);
  ImkOctbscanFringe fringe;
  size_t n;

  fseek (file, 128, SEEK_SET); /* the header of .npy */
  n = fread (in.image.data, sizeof (float), N, file);
  fclose (file);
  test_check (n == N, "%zu samples", n);
  test_ok (imk_octbscan_measure_mirror (
      c, &in.image, 0, 0, &fringe, test_new_error ()));
  return fringe;
}

/* Two mirrors on either side of zero delay: within 5 % of what the light
 * allows, and without any calibration 5 and 9 times as wide. */
TEST (test_real_mirrors_reach_the_limit, "real mirrors reach the limit",
    .cpu_only = true)
{
  FILE *first = test_open_data ("octbscan/octcal/mirror1.npy");
  FILE *second = test_open_data ("octbscan/octcal/mirror2.npy");
  ImkOctbscanConfig c = base_config ();
  ImkOctbscanMirrors found;
  ImkOctbscanFringe fringes[2];

  c.height = 1;
  c.type = IMK_TYPE_F32;
  fringes[0] = read_mirror (&c, first);
  fringes[1] = read_mirror (&c, second);
  fringes[1].side = -1;
  test_ok (imk_octbscan_solve_mirrors (&c, 0, fringes, 2,
      IMK_OCTBSCAN_MIRROR_FIT_PHASE, &found, test_new_error ()));
  show (&found);
  for (int j = 0; j < 2; j++) {
    const ImkOctbscanMirrorPosition *p = &found.positions[j];

    test_check (p->width < 1.05 * p->width_limit, "width %.3f, limit %.3f",
        p->width, p->width_limit);
    test_check (p->width_before > 4 * p->width, "it was as narrow before");
    imk_octbscan_fringe_clear (&fringes[j]);
  }
}
