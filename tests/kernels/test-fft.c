/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The FFT against the sum that defines it, in float64, and against the laws by
 * which FFTW verifies itself (libbench2/verify-lib.c; Ergun, "Testing
 * multivariate linear functions", 1995): impulse, shift, linearity, and with
 * them round trip and Parseval. Built once for each library. */
#include "imk/fft.h"

#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fft/fft-private.h"
#include "kernel-test.h"

TEST_DEFINE_AUTO_POINTER (ImkFft, imk_fft_free)

/* A small sum is exact in every bin, of a large one this many are looked at. */
enum { N_PROBES = 64, EXACT_UP_TO = 1100 };

enum { CANARY = 0xa5, MARGIN = 256, MAX_DIMS = 3 };

typedef double complex Sample;

static bool
over_kissfft (void)
{
  return !strcmp (imk_fft_library_name (), "kissfft");
}

/* --- the bound ----------------------------------------------------------- */

static uint32_t
largest_prime (uint32_t n)
{
  uint32_t largest = 1;

  for (uint32_t p = 2; n > 1; p++)
    for (; n % p == 0; n /= p)
      largest = p;
  return largest;
}

static double
prime_bound (uint32_t n)
{
  uint32_t p = largest_prime (n);

  return p > 5 ? 2e-8 * sqrt (p) : 0;
}

/* A float32 rounding is 6e-8 / sqrt (3) = 3.4e-8 at most, rms. Each of log2 N
 * stages rounds a few times, which adds up at worst like log2 N (Gentleman and
 * Sande 1966) and in the mean like its root (Schatzman 1996): 5e-8 a stage
 * leaves a factor of about 2 over the largest error seen, which is that of
 * FFTW's detours for primes; the 1 is for the steps around real rows. KissFFT
 * adds up the p terms of a prime factor one by one: a random walk of p steps,
 * each of a part of a rounding. */
static double
bound (uint32_t width, uint32_t height, bool kissfft)
{
  double e = 5e-8 * (1 + log2 ((double) width * height));

  return kissfft ? e + prime_bound (width) + prime_bound (height) : e;
}

/* --- memory -------------------------------------------------------------- */

/* One side of a plan: elements in a block of canaries. */
typedef struct Side {
  uint8_t *block;
  size_t size;
  float *data;
} Side;

static Side
side_new (size_t bytes)
{
  Side side = {.size = (bytes + 2 * MARGIN + 63) / 64 * 64};

  side.block = aligned_alloc (64, side.size);
  memset (side.block, CANARY, side.size);
  side.data = (float *) (side.block + MARGIN);
  return side;
}

static void
side_free (Side *side)
{
  free (side->block);
}

TEST_DEFINE_AUTO (Side, side_free)

/* Compact rows of the numbers themselves, whatever the layout in memory. */
typedef struct Array {
  uint32_t row, height, n;
  Sample *v;
} Array;

static Array
array_new (uint32_t row, uint32_t height, uint32_t n)
{
  return (Array){
      row, height, n, calloc ((size_t) row * height * n, sizeof (Sample))};
}

static void
array_free (Array *a)
{
  free (a->v);
}

TEST_DEFINE_AUTO (Array, array_free)

static Sample *
at (const Array *a, uint32_t x, uint32_t y, uint32_t i)
{
  return a->v + ((size_t) i * a->height + y) * a->row + x;
}

/* What the plan makes of the zeros in a layout, here once more. */
static ImkFftLayout
filled (const ImkFftConfig *c, bool is_in)
{
  ImkFftLayout l = is_in ? c->in : c->out;
  bool real = c->kind == (is_in ? IMK_FFT_R2C : IMK_FFT_C2R);
  bool half = c->kind == (is_in ? IMK_FFT_C2R : IMK_FFT_R2C);
  size_t row = half ? c->width / 2 + 1 : c->width;

  if (real && c->in_place)
    row = 2 * (c->width / 2 + 1);
  if (!l.step)
    l.step = 1;
  if (!l.pitch)
    l.pitch = row * l.step;
  if (!l.distance)
    l.distance =
        l.pitch * c->height > l.step * row ? l.pitch * c->height : l.step * row;
  return l;
}

static size_t
offset (const ImkFftLayout *l, uint32_t x, uint32_t y, uint32_t i)
{
  return x * l->step + y * l->pitch + i * l->distance;
}

static size_t
side_size (const ImkFftConfig *c, bool is_in)
{
  ImkFftLayout l = filled (c, is_in);
  uint32_t row = is_in ? imk_fft_row_in (c) : imk_fft_row_out (c);
  size_t size = is_in ? imk_fft_size_in (c) : imk_fft_size_out (c);

  return size * (offset (&l, row - 1, c->height - 1, c->n_transforms - 1) + 1);
}

static void
store (const ImkFftConfig *c, const Array *a, Side *side)
{
  ImkFftLayout l = filled (c, true);

  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t y = 0; y < a->height; y++)
      for (uint32_t x = 0; x < a->row; x++) {
        Sample v = *at (a, x, y, i);
        size_t where = offset (&l, x, y, i);

        if (c->kind == IMK_FFT_R2C) {
          side->data[where] = (float) creal (v);
        } else {
          side->data[2 * where] = (float) creal (v);
          side->data[2 * where + 1] = (float) cimag (v);
        }
      }
}

static void
load (const ImkFftConfig *c, const Side *side, Array *a)
{
  ImkFftLayout l = filled (c, false);

  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t y = 0; y < a->height; y++)
      for (uint32_t x = 0; x < a->row; x++) {
        size_t where = offset (&l, x, y, i);

        *at (a, x, y, i) =
            c->kind == IMK_FFT_C2R
                ? side->data[where]
                : side->data[2 * where] + I * side->data[2 * where + 1];
      }
}

static const char *
describe (const ImkFftConfig *c)
{
  static const char *kinds[] = {"c2c", "r2c", "c2r"};
  static char text[256];

  snprintf (text, sizeof (text),
      "%s %s %ux%u, %u times, in %zu/%zu/%zu, out %zu/%zu/%zu%s%s",
      kinds[c->kind], c->direction == IMK_FFT_FORWARD ? "forward" : "backward",
      c->width, c->height, c->n_transforms, c->in.step, c->in.pitch,
      c->in.distance, c->out.step, c->out.pitch, c->out.distance,
      c->in_place ? ", in place" : "",
      c->effort == IMK_FFT_MEASURE ? ", measured" : "");
  return text;
}

/* Fails when a byte of @side outside the elements of the output changed. In
 * place, what the input had is part of the elements. */
static void
check_canaries (const ImkFftConfig *c, const Side *side)
{
  uint8_t *seen = calloc (1, side->size);
  size_t bad = side->size;

  for (int is_in = 0; is_in <= c->in_place; is_in++) {
    ImkFftLayout l = filled (c, is_in);
    uint32_t row = is_in ? imk_fft_row_in (c) : imk_fft_row_out (c);
    size_t size = is_in ? imk_fft_size_in (c) : imk_fft_size_out (c);

    for (uint32_t i = 0; i < c->n_transforms; i++)
      for (uint32_t y = 0; y < c->height; y++)
        for (uint32_t x = 0; x < row; x++)
          memset (seen + MARGIN + size * offset (&l, x, y, i), 1, size);
  }
  for (size_t b = 0; b < side->size && bad == side->size; b++)
    if (!seen[b] && side->block[b] != CANARY)
      bad = b;
  free (seen);
  test_check (bad == side->size, "%s: byte %td behind the output was written",
      describe (c), (ptrdiff_t) bad - MARGIN);
}

/* --- running a plan ------------------------------------------------------ */

static ImkFft *
plan (const ImkFftLibrary *library, const ImkFftConfig *c)
{
  ImkFft *fft = NULL;
  ImkStatus status =
      library ? imk_fft_new_with (library, c, &fft, test_new_error ())
              : imk_fft_new (c, &fft, test_new_error ());

  test_check (
      status == IMK_OK, "%s: no plan: %s", describe (c), test_message ());
  return fft;
}

/* Executes on buffers of its own, and checks that nothing else is touched.
 * @library: NULL for the one that imk_fft_new has */
static Array
run (const ImkFftLibrary *library, const ImkFftConfig *c, const Array *in)
{
  test_autoptr (ImkFft) fft = plan (library, c);
  size_t size_in = side_size (c, true), size_out = side_size (c, false);
  Array result = array_new (imk_fft_row_out (c), c->height, c->n_transforms);
  test_auto (Side) from = {0}, before = {0};
  Side to;

  if (c->in_place && size_in < size_out)
    size_in = size_out;
  from = side_new (size_in);
  before = side_new (size_in);
  to = c->in_place ? from : side_new (size_out);
  store (c, in, &from);
  memcpy (before.block, from.block, from.size);
  test_ok (imk_fft_execute (fft, from.data, to.data, test_new_error ()));
  if (!c->in_place)
    test_check (!memcmp (before.block, from.block, from.size),
        "%s: the input changed", describe (c));
  check_canaries (c, &to);
  load (c, &to, &result);
  if (!c->in_place)
    side_free (&to);
  return result;
}

/* --- inputs and expectations --------------------------------------------- */

static double
random_number (uint64_t *seed)
{
  /* a float32 in [-1, 1) */
  return (double) (int64_t) (test_random (seed) >> 40) / (1 << 23) - 1;
}

/* All samples of @c as full complex arrays: real for R2C, with the symmetry of
 * the spectrum of a real signal for C2R. */
static Array
full_input (const ImkFftConfig *c, uint64_t seed)
{
  Array a = array_new (c->width, c->height, c->n_transforms);
  size_t n = (size_t) a.row * a.height * a.n;

  for (size_t i = 0; i < n; i++) {
    double re = random_number (&seed), im = random_number (&seed);

    a.v[i] = c->kind == IMK_FFT_R2C ? re : re + I * im;
  }
  if (c->kind == IMK_FFT_C2R)
    for (uint32_t i = 0; i < a.n; i++)
      for (uint32_t y = 0; y < a.height; y++)
        for (uint32_t x = 0; x < a.row; x++) {
          Sample *one = at (&a, x, y, i);
          Sample *other =
              at (&a, (a.row - x) % a.row, (a.height - y) % a.height, i);

          *one = one == other ? creal (*one) : *one;
          *other = conj (*one);
        }
  return a;
}

/* The part of @full that the plan reads or writes. */
static Array
part (const Array *full, uint32_t row)
{
  Array a = array_new (row, full->height, full->n);

  for (uint32_t i = 0; i < a.n; i++)
    for (uint32_t y = 0; y < a.height; y++)
      for (uint32_t x = 0; x < row; x++)
        *at (&a, x, y, i) = *at (full, x, y, i);
  return a;
}

/* exp (sign i 2 pi k / n), k = 0..n-1 */
static Sample *
roots (uint32_t n, ImkFftDirection direction)
{
  Sample *w = malloc (n * sizeof (*w));
  double sign = direction == IMK_FFT_FORWARD ? -1 : 1;

  for (uint32_t k = 0; k < n; k++)
    w[k] = cexp (I * sign * 2 * M_PI * k / n);
  return w;
}

static Sample
multiply (Sample a, Sample b)
{
  /* without the detour that C's * takes for infinities */
  return creal (a) * creal (b) - cimag (a) * cimag (b) +
         I * (creal (a) * cimag (b) + cimag (a) * creal (b));
}

/* The definition. */
static Sample
sum (const Array *in, uint32_t i, const Sample *wx, const Sample *wy,
    uint32_t u, uint32_t v)
{
  Sample total = 0;

  for (uint32_t y = 0, ky = 0; y < in->height; y++) {
    const Sample *row = at (in, 0, y, i);
    Sample of_row = 0;

    for (uint32_t x = 0, kx = 0; x < in->row; x++) {
      of_row += multiply (row[x], wx[kx]);
      kx = kx + u < in->row ? kx + u : kx + u - in->row;
    }
    total += multiply (of_row, wy[ky]);
    ky = ky + v < in->height ? ky + v : ky + v - in->height;
  }
  return total;
}

static double
rms (const Array *a)
{
  size_t n = (size_t) a->row * a->height * a->n;
  double squares = 0;

  for (size_t i = 0; i < n; i++)
    squares +=
        creal (a->v[i]) * creal (a->v[i]) + cimag (a->v[i]) * cimag (a->v[i]);
  return sqrt (squares / (double) n);
}

/* The largest error of the running test in units of its bound, to be seen in
 * the log. */
static double worst;
static char worst_case[320]; /* a description, and two numbers */

static void
check_relative (const ImkFftConfig *c, const char *what, double error,
    double scale, double limit)
{
  double relative = error == 0 ? 0 : error / scale;

  /* not (relative > limit): NaN must fail too */
  test_check (relative <= limit,
      "%s: %s: relative rms error %.3g, at most %.3g expected", describe (c),
      what, relative, limit);
  if (limit > 0 && relative / limit > worst) {
    worst = relative / limit;
    snprintf (worst_case, sizeof (worst_case), "%.3g (%.2f of the bound), %s",
        relative, worst, describe (c));
  }
}

static void
report_worst (void)
{
  printf ("# %s: largest relative rms error %s\n", imk_fft_library_name (),
      worst_case);
  worst = 0;
}

static void
check_sum (const ImkFftConfig *c, uint64_t seed)
{
  test_auto (Array) full = full_input (c, seed);
  test_auto (Array) in = part (&full, imk_fft_row_in (c));
  test_auto (Array) out = run (NULL, c, &in);
  test_autofree Sample *wx = roots (c->width, c->direction);
  test_autofree Sample *wy = roots (c->height, c->direction);
  size_t n_bins = (size_t) out.row * out.height;
  bool all = (size_t) c->width * c->height <= EXACT_UP_TO;
  size_t n_probes = all ? n_bins : N_PROBES;
  double squares = 0;

  for (uint32_t i = 0; i < c->n_transforms; i++)
    for (size_t p = 0; p < n_probes; p++) {
      size_t bin = all ? p : test_random (&seed) % n_bins;
      uint32_t u = (uint32_t) (bin % out.row), v = (uint32_t) (bin / out.row);
      double e = cabs (*at (&out, u, v, i) - sum (&full, i, wx, wy, u, v));

      squares += e * e;
    }
  /* Parseval: the rms of the spectrum, sqrt (N) times that of the signal */
  check_relative (c, "against the sum",
      sqrt (squares / (double) (n_probes * c->n_transforms)),
      rms (&full) * sqrt ((double) c->width * c->height),
      bound (c->width, c->height, over_kissfft ()));
}

static ImkFftConfig
config (ImkFftKind kind, uint32_t width, uint32_t height, uint32_t n)
{
  ImkFftConfig c;

  imk_fft_config_init (&c);
  c.kind = kind;
  c.direction = kind == IMK_FFT_C2R ? IMK_FFT_BACKWARD : IMK_FFT_FORWARD;
  c.width = width;
  c.height = height;
  c.n_transforms = n;
  return c;
}

/* All kinds, both directions, in and out of place. */
static void
check_size (uint32_t width, uint32_t height)
{
  for (int kind = IMK_FFT_C2C; kind <= IMK_FFT_C2R; kind++)
    for (int place = 0; place < 2; place++) {
      ImkFftConfig c = config (kind, width, height, 1);

      c.in_place = place;
      check_sum (&c, width * 31 + height);
      if (kind == IMK_FFT_C2C) {
        c.direction = IMK_FFT_BACKWARD;
        check_sum (&c, width * 37 + height);
      }
    }
}

/* --- tests --------------------------------------------------------------- */

TEST (test_small_sizes, "the sizes 1 to 64 are the sum")
{
  for (uint32_t n = 1; n <= 64; n++)
    check_size (n, 1);
  report_worst ();
}

TEST (test_primes, "the primes 97, 509 and 1009 are the sum")
{
  static const uint32_t primes[] = {97, 509, 1009};

  for (size_t i = 0; i < sizeof (primes) / sizeof (primes[0]); i++)
    check_size (primes[i], 1);
  report_worst ();
}

TEST (test_powers_of_two, "the powers of two to 16384 are the sum")
{
  for (uint32_t n = 128; n <= 16384; n *= 2)
    check_size (n, 1);
  report_worst ();
}

TEST (test_spectrometer_sizes, "the sizes 832, 1664 and 4992 are the sum")
{
  check_size (832, 1);
  check_size (1664, 1);
  check_size (3 * 1664, 1);
  report_worst ();
}

TEST (test_two_dimensions, "two dimensions are the sum")
{
  static const uint32_t sizes[][2] = {{1, 1}, {8, 8}, {7, 12}, {12, 7}, {2, 3},
      {1, 9}, {9, 2}, {13, 17}, {64, 64}, {96, 40}, {512, 512}};

  for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++)
    check_size (sizes[i][0], sizes[i][1]);
  report_worst ();
}

TEST (test_layouts, "batches, steps and pitches: the sum, the gaps untouched")
{
  static const struct {
    uint32_t width, height, n;
    ImkFftLayout in, out;
  } cases[] = {
      {16, 1, 3, {0, 0, 21}, {0, 0, 37}},      /* gaps between transforms */
      {15, 1, 5, {3, 0, 0}, {2, 0, 31}},       /* every third sample */
      {12, 1, 7, {7, 0, 1}, {9, 0, 1}},        /* the columns of images */
      {9, 1, 7, {0, 0, 0}, {7, 0, 1}},         /* rows to columns */
      {6, 5, 3, {0, 9, 50}, {0, 11, 61}},      /* rows with padding */
      {5, 3, 4, {0, 0, 0}, {0, 0, 0}},         /* odd alignment of the second */
      {6, 5, 2, {5, 1, 0}, {5, 1, 0}},         /* transposed */
      {6, 5, 2, {2, 12, 1}, {2, 14, 1}},       /* interleaved */
      {10, 4, 2, {3, 40, 200}, {2, 24, 1000}}, /* all at once */
      {24, 13, 2, {4, 100, 0}, {1, 0, 999}},
      /* beyond the cache, columns collide, odd alignment of the second */
      {192, 131, 2, {0, 192, 25345}, {0, 192, 25345}},
  };

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
    for (int kind = IMK_FFT_C2C; kind <= IMK_FFT_C2R; kind++) {
      ImkFftConfig c =
          config (kind, cases[i].width, cases[i].height, cases[i].n);

      c.in = cases[i].in;
      c.out = cases[i].out;
      check_sum (&c, i);
      c.in_place = true;
      c.out = c.in;
      if (kind == IMK_FFT_C2R)
        c.out = (ImkFftLayout){1, 2 * c.in.pitch, 2 * c.in.distance};
      if (kind == IMK_FFT_R2C)
        c.in = (ImkFftLayout){1, 2 * c.out.pitch, 2 * c.out.distance};
      if (kind == IMK_FFT_C2C || c.out.step == c.in.step)
        check_sum (&c, i);
    }
  report_worst ();
}

/* What laws are checked on. */
static const uint32_t law_sizes[][2] = {{1, 1}, {2, 1}, {3, 1}, {30, 1},
    {97, 1}, {832, 1}, {1664, 1}, {4096, 1}, {8, 8}, {7, 12}, {64, 64}};
enum { N_LAW_SIZES = sizeof (law_sizes) / sizeof (law_sizes[0]) };

/* Calls @check for the kinds @first to @last of each, @n transforms. */
static void
check_law (void (*check) (ImkFftConfig c), int first, int last, uint32_t n)
{
  for (size_t i = 0; i < N_LAW_SIZES; i++)
    for (int kind = first; kind <= last; kind++)
      check (config (kind, law_sizes[i][0], law_sizes[i][1], n));
  report_worst ();
}

/* Begins a test of c, as check_law () has it. */
#define LAW_TEST(test, sentence, first, last, n) \
  static void test##_of (ImkFftConfig c); \
  TEST (test, sentence) \
  { \
    check_law (test##_of, IMK_FFT_##first, IMK_FFT_##last, n); \
  } \
  static void test##_of (ImkFftConfig c)

static void
check_same (const ImkFftConfig *c, const char *what, const Array *expected,
    const Array *actual, double factor)
{
  size_t n = (size_t) actual->row * actual->height * actual->n;
  double squares = 0;

  for (size_t i = 0; i < n; i++) {
    double e = cabs (actual->v[i] - expected->v[i]);

    squares += e * e;
  }
  check_relative (c, what, sqrt (squares / (double) n), rms (expected),
      factor * bound (c->width, c->height, over_kissfft ()));
}

LAW_TEST (test_impulse, "an impulse becomes a wave", C2C, C2C, 1)
{
  uint32_t x = c.width * 2 / 3, y = c.height / 3;
  test_auto (Array) in = array_new (c.width, c.height, 1), out = {0};
  test_auto (Array) expected = array_new (c.width, c.height, 1);
  test_autofree Sample *wx = roots (c.width, c.direction);
  test_autofree Sample *wy = roots (c.height, c.direction);

  *at (&in, x, y, 0) = 1;
  out = run (NULL, &c, &in);
  for (uint32_t v = 0; v < c.height; v++)
    for (uint32_t u = 0; u < c.width; u++)
      *at (&expected, u, v, 0) =
          wx[(uint64_t) u * x % c.width] * wy[(uint64_t) v * y % c.height];
  check_same (&c, "of an impulse", &expected, &out, 1);
}

LAW_TEST (test_constant, "a constant becomes an impulse", C2C, R2C, 1)
{
  test_auto (Array) in = array_new (c.width, c.height, 1), out = {0};
  test_auto (Array) expected = array_new (imk_fft_row_out (&c), c.height, 1);

  for (size_t s = 0; s < (size_t) c.width * c.height; s++)
    in.v[s] = 1;
  *at (&expected, 0, 0, 0) = (double) c.width * c.height;
  out = run (NULL, &c, &in);
  check_same (&c, "of a constant", &expected, &out, 1);
}

LAW_TEST (test_shift, "a shift turns the phases", C2C, R2C, 1)
{
  uint32_t dx = c.width * 2 / 5, dy = c.height / 2;
  test_auto (Array) in = full_input (&c, 11), expected = run (NULL, &c, &in),
                    out = {0};
  test_auto (Array) moved = array_new (c.width, c.height, 1);
  test_autofree Sample *wx = roots (c.width, c.direction);
  test_autofree Sample *wy = roots (c.height, c.direction);

  for (uint32_t y = 0; y < c.height; y++)
    for (uint32_t x = 0; x < c.width; x++)
      *at (&moved, (x + dx) % c.width, (y + dy) % c.height, 0) =
          *at (&in, x, y, 0);
  out = run (NULL, &c, &moved);
  for (uint32_t v = 0; v < expected.height; v++)
    for (uint32_t u = 0; u < expected.row; u++)
      *at (&expected, u, v, 0) *=
          wx[(uint64_t) u * dx % c.width] * wy[(uint64_t) v * dy % c.height];
  check_same (&c, "shifted", &expected, &out, 2); /* two transforms */
}

LAW_TEST (test_linearity, "the transform is linear", C2C, R2C, 1)
{
  test_auto (Array) a = full_input (&c, 3), b = full_input (&c, 4);
  test_auto (Array) of_a = run (NULL, &c, &a), of_b = run (NULL, &c, &b),
                    of_sum = {0};
  size_t n = (size_t) of_a.row * of_a.height;

  for (size_t s = 0; s < (size_t) c.width * c.height; s++)
    a.v[s] = 0.5 * a.v[s] - 2 * b.v[s]; /* rounded once, when stored */
  of_sum = run (NULL, &c, &a);
  for (size_t s = 0; s < n; s++)
    of_a.v[s] = 0.5 * of_a.v[s] - 2 * of_b.v[s];
  check_same (&c, "of a combination", &of_a, &of_sum, 3);
}

LAW_TEST (test_round_trip_and_parseval,
    "forward and backward is N times, energy is kept", C2C, R2C, 1)
{
  ImkFftConfig back = config (
      c.kind == IMK_FFT_R2C ? IMK_FFT_C2R : c.kind, c.width, c.height, 1);
  test_auto (Array) in = full_input (&c, 5), out = run (NULL, &c, &in),
                    again = {0};
  size_t n = (size_t) c.width * c.height;

  back.direction = IMK_FFT_BACKWARD;
  again = run (NULL, &back, &out);
  if (c.kind == IMK_FFT_C2C)
    check_relative (&c, "Parseval",
        fabs (rms (&out) - sqrt ((double) n) * rms (&in)), rms (&out),
        bound (c.width, c.height, over_kissfft ()));
  for (size_t s = 0; s < n; s++)
    in.v[s] *= (double) n;
  check_same (&c, "forward and backward", &in, &again, 2);
}

LAW_TEST (test_real_is_complex_without_imaginary_part,
    "a real signal is a complex one without imaginary part", R2C, R2C, 1)
{
  ImkFftConfig as = config (IMK_FFT_C2C, c.width, c.height, 1);
  test_auto (Array) in = full_input (&c, 6), half = run (NULL, &c, &in);
  test_auto (Array) all = run (NULL, &as, &in),
                    expected = part (&all, half.row);

  check_same (&c, "against c2c", &expected, &half, 2);
  /* the bins that are their own partners: exactly real */
  for (uint32_t v = 0; v < c.height; v++)
    for (uint32_t u = 0; u < half.row; u++)
      if (2 * u % c.width == 0 && 2 * v % c.height == 0)
        test_check (cimag (*at (&half, u, v, 0)) == 0,
            "%s: bin (%u, %u) has the imaginary part %g", describe (&c), u, v,
            cimag (*at (&half, u, v, 0)));
}

/* The imaginary part that rounding leaves on a bin that must be real. */
TEST (test_c2r_takes_rounding_noise, "rounding noise on real bins does no harm")
{
  static const uint32_t sizes[][2] = {
      {1, 1}, {2, 1}, {15, 1}, {16, 1}, {1664, 1}, {8, 6}, {5, 7}};

  for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++) {
    ImkFftConfig c = config (IMK_FFT_C2R, sizes[i][0], sizes[i][1], 1);
    test_auto (Array) full = full_input (&c, 8),
                      in = part (&full, imk_fft_row_in (&c));
    test_auto (Array) clean = run (NULL, &c, &in), noisy = {0};

    *at (&in, 0, 0, 0) += I * 1e-6;
    if (c.width % 2 == 0)
      *at (&in, c.width / 2, 0, 0) -= I * 1e-6;
    noisy = run (NULL, &c, &in);
    for (size_t s = 0; s < (size_t) c.width * c.height; s++)
      test_check (cabs (noisy.v[s] - clean.v[s]) <= 1e-5,
          "%s: sample %zu is %g, without the noise %g", describe (&c), s,
          creal (noisy.v[s]), creal (clean.v[s]));
  }
}

LAW_TEST (
    test_plans_are_reproducible, "two plans give the same bytes", C2C, C2R, 2)
{
  test_auto (Array) full = full_input (&c, 9),
                    in = part (&full, imk_fft_row_in (&c));
  test_auto (Array) a = run (NULL, &c, &in), b = run (NULL, &c, &in);
  size_t n = (size_t) a.row * a.height * a.n;

  test_check (!memcmp (a.v, b.v, n * sizeof (*a.v)),
      "%s: a second plan gives other bytes", describe (&c));
}

#ifdef OTHER_LIBRARY
static void
check_other_library (ImkFftConfig c)
{
  test_auto (Array) full = full_input (&c, 10),
                    in = part (&full, imk_fft_row_in (&c));
  test_auto (Array) ours = run (NULL, &c, &in),
                    theirs = run (&OTHER_LIBRARY, &c, &in);

  check_same (&c, "against the other library", &theirs, &ours, 2);
}
#endif

TEST (test_other_library, "FFTW and KissFFT agree")
{
#ifdef OTHER_LIBRARY
  check_law (check_other_library, IMK_FFT_C2C, IMK_FFT_C2R, 2);
  test_check (strcmp (OTHER_LIBRARY.name, imk_fft_library_name ()),
      "both libraries are %s", OTHER_LIBRARY.name);
#else
  test_skip ("the other FFT library is not installed");
#endif
}

/* --- threads ------------------------------------------------------------- */

enum { N_THREADS = 4, N_ROUNDS = 20 };

typedef struct Worker {
  pthread_t thread;
  ImkFft *fft; /* NULL: plans for itself */
  ImkFftConfig config;
  const Side *in;
  Side out;
  ImkError error;
  bool ok;
} Worker;

static void *
work (void *data)
{
  Worker *w = data;

  w->ok = true;
  for (int i = 0; i < N_ROUNDS && w->ok; i++) {
    test_autoptr (ImkFft) own = NULL;

    if (!w->fft)
      w->ok = imk_fft_new (&w->config, &own, &w->error) == IMK_OK;
    w->ok = w->ok && imk_fft_execute (w->fft ? w->fft : own, w->in->data,
                         w->out.data, &w->error) == IMK_OK;
  }
  return NULL;
}

static void
check_threads (const ImkFftConfig *c, bool share)
{
  test_auto (Array) full = full_input (c, 12),
                    in = part (&full, imk_fft_row_in (c));
  test_auto (Side) from = side_new (side_size (c, true));
  test_auto (Side) expected = side_new (side_size (c, false));
  test_autoptr (ImkFft) fft = plan (NULL, c);
  Worker workers[N_THREADS];

  store (c, &in, &from);
  test_ok (imk_fft_execute (fft, from.data, expected.data, test_new_error ()));
  for (int i = 0; i < N_THREADS; i++) {
    workers[i] = (Worker){.fft = share ? fft : NULL,
        .config = *c,
        .in = &from,
        .out = side_new (side_size (c, false))};
    pthread_create (&workers[i].thread, NULL, work, &workers[i]);
  }
  for (int i = 0; i < N_THREADS; i++)
    pthread_join (workers[i].thread, NULL);
  for (int i = 0; i < N_THREADS; i++) {
    test_check (workers[i].ok, "%s: thread %d: %s", describe (c), i,
        workers[i].error.message);
    test_check (!memcmp (expected.block, workers[i].out.block, expected.size),
        "%s: thread %d has other bytes", describe (c), i);
    side_free (&workers[i].out);
  }
}

static void
check_threads_of_all_kinds (bool share)
{
  static const uint32_t sizes[][2] = {
      {1664, 1}, {97, 1}, {64, 48}, {15, 9}, {160, 144}};

  for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++)
    for (int kind = IMK_FFT_C2C; kind <= IMK_FFT_C2R; kind++) {
      ImkFftConfig c = config (kind, sizes[i][0], sizes[i][1], 3);

      check_threads (&c, share);
    }
}

TEST (
    test_threads_share_a_plan, "threads that share a plan give the same bytes")
{
  check_threads_of_all_kinds (true);
}

TEST (test_threads_plan, "threads can plan at the same time")
{
  check_threads_of_all_kinds (false);
}

/* --- sentences ----------------------------------------------------------- */

static void
check_refused (ImkFftConfig c, const char *words)
{
  ImkFft *fft = (ImkFft *) &c;
  ImkError error = {.message = ""};

  test_error_of (
      imk_fft_new (&c, &fft, &error), &error, IMK_ERROR_CONFIG, words);
  test_check (fft == (ImkFft *) &c, "a refused config has left a plan");
  test_check (imk_fft_new (&c, &fft, NULL) == IMK_ERROR_CONFIG,
      "refused with an error, but not without");
}

TEST (test_configs_are_refused, "impossible configurations are refused")
{
  const ImkFftConfig good = config (IMK_FFT_C2C, 8, 1, 1);
  ImkFftConfig c;

#define REFUSED(words, ...) \
  do { \
    c = good; \
    __VA_ARGS__; \
    check_refused (c, words); \
  } while (0)

  REFUSED ("kind of transform of the number 3", c.kind = 3);
  REFUSED ("kind of transform of the number -1", c.kind = -1);
  REFUSED ("direction of the number 2", c.direction = 2);
  REFUSED ("effort of the number 7", c.effort = 7);
  REFUSED ("only goes forward", c.kind = IMK_FFT_R2C,
      c.direction = IMK_FFT_BACKWARD);
  REFUSED ("only goes backward", c.kind = IMK_FFT_C2R);
  REFUSED ("0 x 1 samples", c.width = 0);
  REFUSED ("8 x 0 samples", c.height = 0);
  REFUSED ("16777217 x 1 samples", c.width = IMK_FFT_MAX_SIZE + 1);
  REFUSED ("8 x 16777217 samples", c.height = IMK_FFT_MAX_SIZE + 1);
  REFUSED ("0 transforms", c.n_transforms = 0);
  REFUSED ("input has a distance of 7 elements", c.n_transforms = 2,
      c.in.distance = 7);
  REFUSED ("distance of at least 8", c.n_transforms = 2, c.out.distance = 7);
  REFUSED ("output has a step of 2 elements", c.n_transforms = 3,
      c.out.step = 2, c.out.distance = 1);
  REFUSED (
      "pitch of at least 15", c.height = 2, c.in.step = 2, c.in.pitch = 14);
  REFUSED ("input does not fit", c.in.step = SIZE_MAX / 4);
  REFUSED ("output does not fit", c.out.step = SIZE_MAX / 4);
  REFUSED ("input does not fit", c.height = 3, c.in.pitch = SIZE_MAX / 4 + 1,
      c.out.distance = 24);
  REFUSED ("input does not fit", c.n_transforms = 3,
      c.in.distance = SIZE_MAX / 2 + 1);
  REFUSED ("output does not fit", c.n_transforms = 2,
      c.out.distance = (size_t) 1 << 60); /* elements fit, bytes do not */
  REFUSED ("input does not fit", c.width = c.height = IMK_FFT_MAX_SIZE,
      c.n_transforms = UINT32_MAX);
#undef REFUSED
}

TEST (test_configs_in_place_are_refused,
    "impossible configurations in place are refused")
{
  ImkFftConfig c = config (IMK_FFT_C2C, 8, 3, 2);

  c.in_place = true;
  c.in.step = 2;
  check_refused (c, "step of 2 in the input and 1 in the output; take equal");
  c.in.step = 0;
  c.out.pitch = 9;
  check_refused (c, "pitch 8 and distance 24 in the input, 9 and 27 in the");
  c = config (IMK_FFT_R2C, 8, 3, 2);
  c.in_place = true;
  c.in.step = c.out.step = 2;
  check_refused (c, "take 1 in both");
  c.in.step = c.out.step = 0;
  c.in.pitch = 8;
  check_refused (c, "twice those of the complex side");
  c.in.pitch = 11;
  check_refused (c, "twice those of the complex side");
}

TEST (test_pointers_are_refused, "unusable pointers are refused")
{
  ImkFftConfig c = config (IMK_FFT_C2C, 4, 1, 1);
  test_autoptr (ImkFft) fft = plan (NULL, &c);
  test_auto (Side) in = side_new (64), out = side_new (64);

  test_error (imk_fft_execute (fft, NULL, out.data, test_new_error ()),
      IMK_ERROR_IMAGE, "input of the FFT is NULL");
  test_error (imk_fft_execute (fft, in.data, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "output of the FFT is NULL");
  test_error (imk_fft_execute (fft, in.data + 1, out.data, test_new_error ()),
      IMK_ERROR_IMAGE, "input of the FFT lies 4 bytes behind");
  test_error (imk_fft_execute (fft, in.data, out.data + 2, test_new_error ()),
      IMK_ERROR_IMAGE, "output of the FFT lies 8 bytes behind");
  test_error (imk_fft_execute (fft, in.data, in.data, test_new_error ()),
      IMK_ERROR_IMAGE, "not planned in place");
  check_canaries (&c, &in); /* the elements are fresh, and so is the rest */
  imk_fft_free (fft);
  c.in_place = true;
  fft = plan (NULL, &c);
  test_error (imk_fft_execute (fft, in.data, out.data, test_new_error ()),
      IMK_ERROR_IMAGE, "planned in place, and");
  imk_fft_free (NULL);
}

/* The last: what FFTW measures, its later estimates know. */
TEST (test_measured_plans, "measured plans are the sum")
{
  static const uint32_t sizes[][2] = {{1, 1}, {45, 1}, {1664, 1}, {24, 10}};

  for (size_t i = 0; i < sizeof (sizes) / sizeof (sizes[0]); i++)
    for (int kind = IMK_FFT_C2C; kind <= IMK_FFT_C2R; kind++) {
      ImkFftConfig c = config (kind, sizes[i][0], sizes[i][1], 2);

      c.effort = IMK_FFT_MEASURE;
      check_sum (&c, i);
      c.in_place = true;
      check_sum (&c, i);
    }
  report_worst ();
}
