/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octangio is its definition on either backend, static tissue has the noise
 * that theory gives, and a vessel its velocity. */
#include "kernel-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/octangio.h"
#include "octangio/octangio-reference.h"

static double
uniform (uint64_t *seed)
{
  return ((double) (test_random (seed) >> 11) + 0.5) / 0x1p53;
}

/* Two numbers of a normal distribution. */
static void
normal (uint64_t *seed, double *x, double *y)
{
  double r = sqrt (-2 * log (uniform (seed))), t = 2 * M_PI * uniform (seed);

  *x = r * cos (t);
  *y = r * sin (t);
}

typedef struct Scans {
  float *data, *repeats[IMK_OCTANGIO_MAX_REPEATS];
  uint32_t n_ascans, n_depths;
} Scans;

static Scans
scans_new (uint32_t n_ascans, uint32_t n_depths, uint32_t n)
{
  size_t size = 2 * (size_t) n_ascans * n_depths;
  Scans s = {calloc (n * size, sizeof (float)), {NULL}, n_ascans, n_depths};

  for (uint32_t r = 0; r < n; r++)
    s.repeats[r] = s.data + r * size;
  return s;
}

static float *
pixel (Scans *s, uint32_t r, uint32_t a, uint32_t z)
{
  return s->repeats[r] + 2 * ((size_t) a * s->n_depths + z);
}

/* A repeat as the kernel takes it. */
static TestImage
image_of (const ImkOctangioConfig *c, const float *repeat)
{
  size_t n = (size_t) c->n_ascans * c->n_depths;
  TestImage t =
      c->is_complex
          ? test_image_new (IMK_TYPE_CF32, c->n_depths, c->n_ascans, 1, 16)
          : test_image_new (IMK_TYPE_F32, c->n_ascans, c->n_depths, 1, 12);
  size_t row = imk_image_row_size (&t.image);

  for (uint32_t y = 0; y < t.image.height; y++)
    memcpy ((uint8_t *) t.image.data + y * t.image.stride,
        (const uint8_t *) repeat + y * row, row);
  test_check (n > 0, "an image without pixels");
  return t;
}

/* Makes the flow of a set, and looks for the surface from depth 0 on where the
 * configuration says so. */
static float *
flow_on (ImkBackend backend, const ImkOctangioConfig *c,
    const float *const *repeats, double *surface)
{
  size_t row = c->n_ascans * sizeof (float);
  float *flow = malloc (row * c->n_depths);
  test_auto (TestImage) out =
      test_image_new (IMK_TYPE_F32, c->n_ascans, c->n_depths, 1, 4);
  ImkImage bscans[IMK_OCTANGIO_MAX_REPEATS], to = out.image;
  TestImage held[IMK_OCTANGIO_MAX_REPEATS];
  ImkOctangio *self = NULL, *smaller = NULL;
  ImkOctangioConfig other = *c;

  other.n_depths = 1;
  for (uint32_t r = 0; r < c->n_repeats; r++) {
    held[r] = image_of (c, repeats[r]);
    bscans[r] =
        backend == IMK_BACKEND_CUDA ? test_to_device (&held[r]) : held[r].image;
  }
  if (backend == IMK_BACKEND_CUDA)
    to = test_to_device (&out);
  test_ok (imk_octangio_new (backend, c, &self, test_new_error ()));
  /* which needs less of what they share */
  test_ok (imk_octangio_new (backend, &other, &smaller, test_new_error ()));
  test_ok (imk_octangio_process (self, bscans, &to, NULL, test_new_error ()));
  if (c->finds_surface)
    test_ok (
        imk_octangio_surface (self, 0, 1, surface, NULL, test_new_error ()));
  if (backend == IMK_BACKEND_CUDA)
    test_from_device (&to, &out);
  imk_octangio_free (self);
  imk_octangio_free (smaller);
  for (uint32_t r = 0; r < c->n_repeats; r++) {
    if (backend == IMK_BACKEND_CUDA)
      test_device_free (&bscans[r]);
    test_image_free (&held[r]);
  }
  if (backend == IMK_BACKEND_CUDA)
    test_device_free (&to);
  test_image_check_canaries (&out, "flow");
  for (uint32_t y = 0; y < c->n_depths; y++)
    memcpy (flow + (size_t) y * c->n_ascans,
        (const uint8_t *) out.image.data + y * out.image.stride, row);
  return flow;
}

static float *
flow_of (const ImkOctangioConfig *c, const Scans *s)
{
  return flow_on (IMK_BACKEND_CPU, c, (const float *const *) s->repeats, NULL);
}

/* --- the definition ------------------------------------------------------- */

static void
check_definition (ImkBackend backend, const ImkOctangioConfig *c,
    const Scans *s, const char *what)
{
  size_t n = (size_t) c->n_ascans * c->n_depths;
  double *expected = malloc (n * sizeof (*expected)), largest = 0;
  double *decorrelation = malloc (n * sizeof (*decorrelation));
  double *surface = malloc (c->n_ascans * sizeof (*surface));
  test_autofree float *found =
      flow_on (backend, c, (const float *const *) s->repeats, surface);
  ImkOctangioConfig mean = *c, pairs = *c;

  imk_octangio_reference (c, (const float *const *) s->repeats, expected);
  pairs.method = IMK_OCTANGIO_COMPLEX_DECORRELATION;
  if (c->method == IMK_OCTANGIO_DOPPLER)
    imk_octangio_reference (
        &pairs, (const float *const *) s->repeats, decorrelation);
  for (size_t i = 0; i < n; i++)
    largest = fmax (largest, fabs (expected[i]));
  for (size_t i = 0; i < n; i++)
    /* a phase of next to nothing is any */
    test_check (
        (c->method == IMK_OCTANGIO_DOPPLER && decorrelation[i] > 0.999) ||
            fabs (found[i] - expected[i]) <= 1e-5 * largest + 1e-6,
        "%s: %g at A-scan %zu, depth %zu, expected %g", what, found[i],
        i % c->n_ascans, i / c->n_ascans, expected[i]);
  mean.method = IMK_OCTANGIO_MEAN;
  mean.pairs = IMK_OCTANGIO_PAIRS_BSCANS;
  mean.floor = 0;
  mean.n_bands = 1;
  imk_octangio_reference (&mean, (const float *const *) s->repeats, expected);
  for (uint32_t a = 0; a < c->n_ascans && c->finds_surface; a++) {
    uint32_t best = 0;

    for (uint32_t z = 1; z < c->n_depths; z++)
      if (expected[(size_t) z * c->n_ascans + a] >
          expected[(size_t) best * c->n_ascans + a])
        best = z;
    test_check (surface[a] == best,
        "%s: the surface of A-scan %u is at %g, "
        "expected %u",
        what, a, surface[a], best);
  }
  free (expected);
  free (decorrelation);
  free (surface);
}

/* Numbers that are none, or too large, among those of a set. */
static void
fill (Scans *s, uint32_t n_repeats, uint64_t seed)
{
  size_t n = 2 * (size_t) s->n_ascans * s->n_depths * n_repeats;

  for (size_t i = 0; i < n; i++)
    s->data[i] = (float) (20 * uniform (&seed) - 8);
  s->data[0] = NAN;
  s->data[5] = INFINITY;
  s->data[3] = -1e20f;
}

TEST_BACKENDS (test_each_method_is_the_definition,
    "each method is the definition", .cpu_only = true)
{
  static const uint32_t sizes[][4] = {/* A, D, N, window */
      {7, 13, 2, 1}, {1, 31, 4, 3}, {12, 1, 3, 2}, {9, 17, 8, 5},
      {35, 70, 4, 3}, {3, 300, 16, 2}, {34, 65, 5, 4}, {1, 1100, 9, 3},
      {2, 2100, 3, 3}, {270, 18, 4, 3}, {1100, 5, 4, 3}, {1, 998, 3, 2}};
  char what[80];

  for (uint32_t k = 0; k < sizeof (sizes) / sizeof (sizes[0]); k++) {
    Scans s = scans_new (sizes[k][0], sizes[k][1], sizes[k][2]);

    fill (&s, sizes[k][2], 3 + k);
    for (int method = 0; method <= IMK_OCTANGIO_EIGEN; method++)
      for (int variant = 0; variant < 8; variant++) {
        ImkOctangioConfig c;

        if (!test_takes_case (k < 4 ? 1 : 4))
          continue;
        imk_octangio_config_init (&c);
        c.n_ascans = sizes[k][0];
        c.n_depths = sizes[k][1];
        c.n_repeats = sizes[k][2];
        c.lateral = sizes[k][3];
        c.axial = sizes[k][3] + ((variant ^ variant >> 1) & 1);
        c.method = method;
        /* of many depths the reference would take long */
        c.bulk_motion = variant & 1 && c.n_depths < 1000;
        c.floor = variant & 2 ? 60 : 0;
        c.finds_surface = variant & 1;
        c.pairs =
            variant & 4 && method == IMK_OCTANGIO_DOPPLER && c.n_ascans > 1;
        c.n_tissue = 1 + (variant & 1 && c.n_repeats > 2);
        c.is_complex = method == IMK_OCTANGIO_COMPLEX_DECORRELATION ||
                       method >= IMK_OCTANGIO_DOPPLER || variant & 1;
        snprintf (what, sizeof (what), "size %u method %d variant %d", k,
            method, variant);
        check_definition (backend, &c, &s, what);
      }
    free (s.data);
  }
}

TEST_BACKENDS (test_bands_are_the_definition, "bands are the definition")
{
  static const uint32_t cases[][5] = {/* A, D, N, bands, scale */
      {3, 40, 2, 2, 1}, {5, 33, 4, 4, 1}, {2, 120, 3, 3, 4}, {4, 5, 2, 16, 2},
      {2, 300, 2, 11, 3}, {9, 130, 4, 4, 2}, {17, 200, 3, 8, 1},
      {10, 70, 2, 2, 2}};
  char what[80];

  for (uint32_t k = 0; k < sizeof (cases) / sizeof (cases[0]); k++) {
    Scans s = scans_new (cases[k][0], cases[k][1], cases[k][2]);
    ImkOctangioConfig c;

    fill (&s, cases[k][2], 7 + k);
    imk_octangio_config_init (&c);
    c.n_ascans = cases[k][0];
    c.n_depths = cases[k][1];
    c.n_repeats = cases[k][2];
    c.n_bands = cases[k][3];
    c.depth_scale = cases[k][4];
    for (int variant = 0; variant < 2; variant++) {
      c.floor = variant ? 60 : 0;
      c.finds_surface = variant;
      snprintf (what, sizeof (what), "bands, case %u variant %d", k, variant);
      check_definition (backend, &c, &s, what);
    }
    free (s.data);
  }
}

/* More than CUDA's blocks have shared memory for, with and without asking. */
TEST_BACKENDS (test_many_depths, "many depths are the definition")
{
  static const uint32_t n_depths[] = {3000, 9000};

  for (int k = 0; k < 2; k++) {
    Scans s = scans_new (2, n_depths[k], 2);
    ImkOctangioConfig c;

    fill (&s, 2, 5);
    imk_octangio_config_init (&c);
    c.n_ascans = 2, c.n_depths = n_depths[k], c.n_repeats = 2;
    c.method = IMK_OCTANGIO_COMPLEX_DECORRELATION;
    c.bulk_motion = false; /* the reference would take long */
    check_definition (backend, &c, &s, "pairs of many depths");
    c.method = IMK_OCTANGIO_DECORRELATION;
    c.n_bands = 8;
    check_definition (backend, &c, &s, "bands of many depths");
    free (s.data);
  }
}

/* A reflector of 1e4 times the flow beside it leaves nothing of itself. */
TEST_BACKENDS (test_eigen_beside_a_strong_reflector,
    "eigen beside a strong reflector is the definition")
{
  Scans s = scans_new (4, 200, 4);
  uint64_t seed = 3;
  ImkOctangioConfig c;

  for (uint32_t r = 0; r < 4; r++)
    for (uint32_t i = 0; i < 4 * 200; i++) {
      double size = i % 50 == 7 ? 1e4 : 20, phase = 1.3 * i + r;
      float *v = pixel (&s, r, i / 200, i % 200);

      v[0] = (float) (size * cos (phase) + uniform (&seed) - 0.5);
      v[1] = (float) (size * sin (phase) + uniform (&seed) - 0.5);
    }
  imk_octangio_config_init (&c);
  c.n_ascans = 4, c.n_depths = 200;
  c.method = IMK_OCTANGIO_EIGEN;
  check_definition (backend, &c, &s, "a strong reflector");
  free (s.data);
}

/* --- noise ---------------------------------------------------------------- */

enum { A = 60, D = 400, N = 4 };

/* Tissue of the amplitude 20 with noise of the power 8, and a phase of each
 * repeat of each A-scan. */
static Scans
static_tissue (double motion)
{
  Scans s = scans_new (A, D, N);
  uint64_t seed = 11;

  for (uint32_t a = 0; a < A; a++) {
    double turn[N];

    for (uint32_t r = 0; r < N; r++)
      turn[r] = motion * 2 * M_PI * uniform (&seed);
    for (uint32_t z = 0; z < D; z++) {
      double phase = 2 * M_PI * uniform (&seed), x, y;

      for (uint32_t r = 0; r < N; r++) {
        float *v = pixel (&s, r, a, z);

        normal (&seed, &x, &y);
        v[0] = (float) (20 * cos (phase + turn[r]) + 2 * x);
        v[1] = (float) (20 * sin (phase + turn[r]) + 2 * y);
      }
    }
  }
  return s;
}

TEST (test_static_tissue_has_the_noise_of_theory,
    "static tissue has the noise of theory")
{
  static const double power = 8, signal = 400;
  static const struct {
    ImkOctangioMethod method;
    const char *name;
    double expected, tolerance;
  } cases[] = {
      {IMK_OCTANGIO_MEAN, "mean", 408, 0.01},
      {IMK_OCTANGIO_SPECKLE_VARIANCE, "speckle variance", 0.75 * 4, 0.02},
      {IMK_OCTANGIO_DECORRELATION, "decorrelation", 8.0 / 2 / 400, 0.03},
      {IMK_OCTANGIO_COMPLEX_DECORRELATION, "complex decorrelation", 8.0 / 408,
          0.05},
      {IMK_OCTANGIO_EIGEN, "eigen", 0.75 * 8, 0.03},
      {IMK_OCTANGIO_DOPPLER, "doppler", 0, 0},
  };
  Scans s = static_tissue (1);

  for (uint32_t k = 0; k < sizeof (cases) / sizeof (cases[0]); k++) {
    double mean = 0, squares = 0, expected = cases[k].expected;
    double tolerance = cases[k].tolerance;
    ImkOctangioConfig c;
    test_autofree float *flow = NULL;

    imk_octangio_config_init (&c);
    c.n_ascans = A;
    c.n_depths = D;
    c.n_repeats = N;
    c.method = cases[k].method;
    /* many pixels, so that |S| has no noise of its own */
    c.lateral = c.method == IMK_OCTANGIO_DOPPLER ? 1 : 5;
    c.axial = c.method == IMK_OCTANGIO_DOPPLER ? 5 : 9;
    if (c.method == IMK_OCTANGIO_EIGEN)
      c.lateral = 1; /* each A-scan has a phase of its own */
    flow = flow_of (&c, &s);
    for (uint32_t i = 0; i < A * D; i++) {
      mean += flow[i] / (A * D);
      squares += (double) flow[i] * flow[i] / (A * D);
    }
    if (c.method == IMK_OCTANGIO_DOPPLER) {
      expected = sqrt (power / signal / 5) / (N - 1);
      mean = sqrt (squares);
      tolerance = 0.05;
    }
    printf ("# %s: %.5g, theory %.5g\n", cases[k].name, mean, expected);
    test_check (fabs (mean / expected - 1) < tolerance, "%s is %g, expected %g",
        cases[k].name, mean, expected);
  }
  free (s.data);
}

/* The decorrelation of two independent values is 1 - 2 sqrt (u (1 - u)), u
 * uniform from 0 to 1: its mean is 1 - pi / 4, its variance 2 / 3 - (pi / 4)^2.
 * The mean of B bands has a Bth of the variance. */
TEST (test_bands_lower_the_noise, "bands lower the noise as theory says")
{
  enum { A = 300, D = 512 };
  static const uint32_t n_bands[] = {1, 2, 4, 8};
  Scans s = scans_new (A, D, 2);
  uint64_t seed = 31;

  for (size_t i = 0; i < 2 * (size_t) A * D; i++) {
    double x, y;

    normal (&seed, &x, &y);
    s.data[2 * i] = (float) x;
    s.data[2 * i + 1] = (float) y;
  }
  for (uint32_t k = 0; k < 4; k++) {
    ImkOctangioConfig c;
    double sum = 0, squares = 0, n = (double) A * D, rms;
    double expected = sqrt ((2 / 3.0 - M_PI * M_PI / 16) / n_bands[k]);
    test_autofree float *flow = NULL;

    imk_octangio_config_init (&c);
    c.n_ascans = A;
    c.n_depths = D;
    c.n_repeats = 2;
    c.n_bands = n_bands[k];
    flow = flow_of (&c, &s);
    for (uint32_t i = 0; i < A * D; i++) {
      sum += flow[i] / n;
      squares += (double) flow[i] * flow[i] / n;
    }
    rms = sqrt (squares - sum * sum);
    printf ("# %u bands: mean %.4f, theory %.4f; noise %.4f, theory %.4f\n",
        n_bands[k], sum, 1 - M_PI / 4, rms, expected);
    test_check (fabs (sum / (1 - M_PI / 4) - 1) < 0.01, "the mean is %g", sum);
    test_check (fabs (rms / expected - 1) < 0.03,
        "the noise of %u bands is %g, expected %g", n_bands[k], rms, expected);
  }
  free (s.data);
}

/* --- flow ----------------------------------------------------------------- */

/* A vessel at depth 200 in static tissue, with a parabolic profile of phases:
 * @peak radians from repeat to repeat in its middle. Its scatterers
 * decorrelate; all of it moves. The rms amplitude is 28, that of the noise 1.4
 * times @noise. */
static Scans
vessel (double peak, double radius, double noise)
{
  Scans s = scans_new (A, D, N);
  uint64_t seed = 23;

  for (uint32_t a = 0; a < A; a++) {
    double bulk = 0;
    double at[2 * N];

    for (uint32_t r = 0; r < N; r++, bulk += 4 * uniform (&seed) - 2)
      at[r] = bulk;
    for (uint32_t z = 0; z < D; z++) {
      double d = (z - 200.0) / radius;
      double phase = fabs (d) < 1 ? peak * (1 - d * d) : 0, x, y, nx, ny;

      normal (&seed, &x, &y);
      for (uint32_t r = 0; r < N; r++) {
        double t = at[r] + r * phase;
        float *v = pixel (&s, r, a, z);

        if (r > 0 && fabs (d) < 1) { /* a fifth of it is new */
          normal (&seed, &nx, &ny);
          x = 0.8 * x + 0.6 * nx;
          y = 0.8 * y + 0.6 * ny;
        }
        normal (&seed, &nx, &ny);
        v[0] = (float) (20 * (x * cos (t) - y * sin (t)) + noise * nx);
        v[1] = (float) (20 * (x * sin (t) + y * cos (t)) + noise * ny);
      }
    }
  }
  return s;
}

/* Also one that fills 40 % of an A-scan, in noise. */
TEST (test_a_vessel_has_its_velocity, "a vessel has its velocity")
{
  static const double peaks[] = {1.5, -0.6, 1.5}, radii[] = {40, 40, 80};
  static const double noise[] = {1, 1, 3};

  for (int k = 0; k < 3; k++) {
    Scans s = vessel (peaks[k], radii[k], noise[k]);
    ImkOctangioConfig c;
    double sum = 0, truth = 0, outside = 0, worst = 0;
    float *flow;

    imk_octangio_config_init (&c);
    c.n_ascans = A;
    c.n_depths = D;
    c.n_repeats = N;
    c.method = IMK_OCTANGIO_DOPPLER;
    c.lateral = 15;
    c.axial = 5;
    c.scale = 2; /* mm/s a radian */
    flow = flow_of (&c, &s);
    for (uint32_t z = 0; z < D; z++) {
      double d = (z - 200.0) / radii[k], row = 0, expected;

      for (uint32_t a = 0; a < A; a++)
        row += flow[z * A + a] / A;
      expected = fabs (d) < 1 ? 2 * peaks[k] * (1 - d * d) : 0;
      if (fabs (d) > 1.2)
        outside = fmax (outside, fabs (row));
      if (fabs (d) >= 0.9)
        continue;
      sum += row;
      truth += expected;
      worst = fmax (worst, fabs (row - expected));
    }
    printf ("# flow %.4f of the truth, worst row %.3f of %.1f, tissue %.4f\n",
        sum / truth, worst, 2 * peaks[k], outside);
    test_check (fabs (sum / truth - 1) < 0.03, "the flow is %.3f of the truth",
        sum / truth);
    test_check (
        outside < 0.01 * fabs (2 * peaks[k]), "tissue moves by %g", outside);
    free (flow);
    free (s.data);
  }
}

/* Flow is where the vessel is, for every method of angiography. */
TEST (test_a_vessel_stands_out, "a vessel stands out")
{
  static const ImkOctangioMethod methods[] = {IMK_OCTANGIO_SPECKLE_VARIANCE,
      IMK_OCTANGIO_DECORRELATION, IMK_OCTANGIO_COMPLEX_DECORRELATION,
      IMK_OCTANGIO_EIGEN};
  Scans s = vessel (1.2, 40, 1);

  for (int k = 0; k < 4; k++) {
    double inside = 0, outside = 0;
    ImkOctangioConfig c;
    test_autofree float *flow = NULL;

    imk_octangio_config_init (&c);
    c.n_ascans = A;
    c.n_depths = D;
    c.n_repeats = N;
    c.method = methods[k];
    if (c.method == IMK_OCTANGIO_EIGEN)
      c.lateral = 1;
    flow = flow_of (&c, &s);
    for (uint32_t i = 0; i < A * D; i++) {
      double d = fabs (i / A - 200.0) / 40;

      inside += d < 0.8 ? flow[i] / (A * 63) : 0;
      outside += d > 1.2 ? flow[i] / (A * (D - 97)) : 0;
    }
    printf ("# method %d: %.4g in the vessel, %.4g beside it\n", methods[k],
        inside, outside);
    test_check (inside > 5 * outside, "method %d: %g and %g", methods[k],
        inside, outside);
  }
  free (s.data);
}

/* Between neighbouring A-scans of one B-scan. */
TEST (test_pairs_of_ascans, "pairs of A-scans")
{
  Scans s = scans_new (20, 30, 1);
  ImkOctangioConfig c;
  float *flow;

  for (uint32_t a = 0; a < 20; a++)
    for (uint32_t z = 0; z < 30; z++) {
      double phase = a * (z < 10 ? 0.7 : 0.2) + z;

      pixel (&s, 0, a, z)[0] = (float) (3 * cos (phase));
      pixel (&s, 0, a, z)[1] = (float) (3 * sin (phase));
    }
  imk_octangio_config_init (&c);
  c.n_ascans = 20;
  c.n_depths = 30;
  c.n_repeats = 1;
  c.method = IMK_OCTANGIO_DOPPLER;
  c.pairs = IMK_OCTANGIO_PAIRS_ASCANS;
  c.axial = 1;
  for (int bulk = 0; bulk < 2; bulk++) {
    c.bulk_motion = bulk;
    flow = flow_of (&c, &s);
    for (uint32_t i = 0; i < 600; i++) {
      double expected = i / 20 < 10 ? (bulk ? 0.5 : 0.7) : (bulk ? 0 : 0.2);

      /* a third of the pixels moves by less than pi / 4 more than the others */
      test_check (fabs (flow[i] - expected) < (bulk ? 0.2 : 1e-5),
          "%g at depth %u, expected %g", flow[i], i / 20, expected);
    }
    free (flow);
  }
  free (s.data);
}

TEST (test_projection_follows_the_surfaces, "a projection follows the surfaces")
{
  static const float flow[] = {
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; /* [4][3] */
  static const double top[] = {0, 1.4, 3}, bottom[] = {2, 99, 3};
  static const double no_top[] = {NAN, 0, 2}, no_bottom[] = {2, NAN, 3};
  float mean[3], most[3];

  imk_octangio_project (
      flow, 3, 4, top, bottom, IMK_OCTANGIO_PROJECTION_MEAN, mean);
  imk_octangio_project (
      flow, 3, 4, top, bottom, IMK_OCTANGIO_PROJECTION_MAXIMUM, most);
  test_check (mean[0] == 2.5f && mean[1] == 8 && mean[2] == 0, "%g %g %g",
      mean[0], mean[1], mean[2]);
  test_check (most[0] == 4 && most[1] == 11 && most[2] == 0, "%g %g %g",
      most[0], most[1], most[2]);
  imk_octangio_project (
      flow, 3, 4, no_top, no_bottom, IMK_OCTANGIO_PROJECTION_MEAN, mean);
  test_check (mean[0] == 0 && mean[1] == 0 && mean[2] == 9, "%g %g %g", mean[0],
      mean[1], mean[2]);
}

/* Also with single pixels that are brighter than the surface. */
TEST_BACKENDS (test_surface_is_where_ascans_are_brightest,
    "the surface is where A-scans are brightest")
{
  enum { A = 40, D = 64, N = 2 };
  Scans s = scans_new (A, D, N);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_F32, A, D, 1, 0);
  TestImage held[N];
  ImkImage bscans[N], flow = out.image;
  double plain[A], smooth[A];
  ImkOctangioConfig c;
  ImkOctangio *self = NULL;

  for (uint32_t r = 0; r < N; r++)
    for (uint32_t a = 0; a < A; a++) {
      pixel (&s, r, a, 2)[0] = 100; /* what lies above surface-top */
      pixel (&s, r, a, 20 + a / 4)[1] = -10;
      pixel (&s, r, a, 50)[0] = a % 10 == 5 ? 20 : 5;
    }
  imk_octangio_config_init (&c);
  c.n_ascans = A, c.n_depths = D, c.n_repeats = N, c.finds_surface = true;
  for (uint32_t r = 0; r < N; r++) {
    held[r] = image_of (&c, s.repeats[r]);
    bscans[r] =
        backend == IMK_BACKEND_CUDA ? test_to_device (&held[r]) : held[r].image;
  }
  if (backend == IMK_BACKEND_CUDA)
    flow = test_to_device (&out);
  test_ok (imk_octangio_new (backend, &c, &self, test_new_error ()));
  test_ok (imk_octangio_process (self, bscans, &flow, NULL, test_new_error ()));
  test_ok (imk_octangio_surface (self, 3, 1, plain, NULL, test_new_error ()));
  test_ok (imk_octangio_surface (self, 3, 5, smooth, NULL, test_new_error ()));
  for (uint32_t a = 0; a < A; a++) {
    double truth = 20 + a / 4;

    test_check (
        plain[a] == (a % 10 == 5 ? 50 : truth), "A-scan %u: %g", a, plain[a]);
    test_check (fabs (smooth[a] - truth) <= 1, "A-scan %u: %g, expected %g", a,
        smooth[a], truth);
  }
  test_ok (imk_octangio_surface (self, 0, 64, smooth, NULL, test_new_error ()));
  test_check (
      smooth[0] == 2 && smooth[A - 1] == 2, "%g, %g", smooth[0], smooth[A - 1]);
  imk_octangio_free (self);
  for (uint32_t r = 0; r < N; r++) {
    if (backend == IMK_BACKEND_CUDA)
      test_device_free (&bscans[r]);
    test_image_free (&held[r]);
  }
  if (backend == IMK_BACKEND_CUDA)
    test_device_free (&flow);
  free (s.data);
}

/* Of an object, of images. */
TEST (test_wrong_images_are_refused, "wrong images are refused")
{
  test_auto (TestImage) z = test_image_new (IMK_TYPE_CF32, 5, 4, 1, 0);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_F32, 4, 5, 1, 0);
  ImkImage bscans[] = {z.image, z.image};
  ImkOctangio *self = NULL;
  ImkOctangioConfig c;
  double surface[4];

  imk_octangio_config_init (&c);
  c.n_ascans = 4, c.n_depths = 5, c.n_repeats = 2;
  test_ok (imk_octangio_new (IMK_BACKEND_CPU, &c, &self, test_new_error ()));
  test_error (
      imk_octangio_surface (self, 0, 1, surface, NULL, test_new_error ()),
      IMK_ERROR_CONFIG, "finds_surface");
  test_error (
      imk_octangio_process (self, bscans, &z.image, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "flow");
  bscans[1] = out.image;
  test_error (
      imk_octangio_process (self, bscans, &out.image, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "B-scan");
  imk_octangio_free (self);
}

static void
check_refused (ImkOctangioConfig c, const char *words)
{
  ImkOctangio *self = NULL;

  test_error (imk_octangio_new (IMK_BACKEND_CPU, &c, &self, test_new_error ()),
      IMK_ERROR_CONFIG, words);
  test_check (!self, "there is an object");
}

#define CHECK_REFUSED(member, value, words) \
  do { \
    ImkOctangioConfig wrong_; \
\
    imk_octangio_config_init (&wrong_); \
    wrong_.member = value; \
    check_refused (wrong_, words); \
  } while (0)

TEST (test_wrong_configurations_are_refused, "wrong configurations are refused")
{
  ImkOctangioConfig c;

  CHECK_REFUSED (n_repeats, 1, "repeats is 1; it can be 2 to 16");
  CHECK_REFUSED (n_repeats, 17, "repeats is 17");
  CHECK_REFUSED (n_ascans, 0, "A-scans is 0");
  CHECK_REFUSED (n_depths, 70000, "depths is 70000");
  CHECK_REFUSED (method, 9, "method is 9");
  CHECK_REFUSED (lateral, 0, "lateral-window is 0");
  CHECK_REFUSED (axial, 65, "depth-window is 65");
  CHECK_REFUSED (pairs, IMK_OCTANGIO_PAIRS_ASCANS, "for method=doppler alone");
  CHECK_REFUSED (floor, NAN, "floor is nan");
  CHECK_REFUSED (scale, INFINITY, "scale inf");
  CHECK_REFUSED (n_bands, 0, "bands is 0; it can be 1 to 16");
  CHECK_REFUSED (depth_scale, 65, "depth-scale is 65");
  imk_octangio_config_init (&c);
  c.method = IMK_OCTANGIO_EIGEN;
  c.n_tissue = 4;
  check_refused (c, "tissue-components is 4; it can be 1 to 3");
  c.n_tissue = 1;
  c.is_complex = false;
  check_refused (c, "needs phases");
  c.method = IMK_OCTANGIO_DECORRELATION;
  c.n_bands = 4;
  check_refused (c, "bands is 4, which is for method=decorrelation");
}
