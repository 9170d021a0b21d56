/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GMTSAR's xcorr: lines to amplitudes, amplitudes to the surface. */
#include "insarxcorr/cpu/patch.h"

enum { MAX_TEMPLATE = 2 * 1024 }; /* columns, of the largest xsearch */

/* ------------------------------------------------------------------------
 * From lines to amplitudes. */

/* Finer column j is sample j / ri; those of [width / 2, 3 width / 2) are kept.
 * Of @in, samples at @phase / ri behind whole ones, they are in turn every
 * ri-th. */
static void
scatter_phase (const ImkInsarxcorrCpu *cpu, uint32_t phase,
    const ImkInsarxcorrComplex *in, float *buffer, float *out)
{
  uint32_t width = cpu->plan->patch_width[0], half = width / 2;
  uint32_t ri = cpu->plan->config.range_interp;
  uint32_t first =
      (phase + ri - half % ri) % ri; /* first of the kept columns */
  uint32_t n = (width - first + ri - 1) / ri;

  imk_insarxcorr_take_amplitudes (in + (half + first) / ri, n, buffer);
  for (uint32_t i = 0; i < n; i++)
    out[first + i * ri] = buffer[i];
}

static void
multiply (const ImkInsarxcorrComplex *restrict spectra,
    const ImkInsarxcorrComplex *restrict turns, uint32_t width,
    ImkInsarxcorrComplex *restrict out)
{
  for (uint32_t y = 0; y < IMK_INSARXCORR_CHUNK; y++)
    for (uint32_t k = 0; k < width; k++) {
      ImkInsarxcorrComplex s = spectra[y * width + k], t = turns[k];

      out[y * width + k] = (ImkInsarxcorrComplex){
          s.re * t.re - s.im * t.im, s.re * t.im + s.im * t.re};
    }
}

/* Computes IMK_INSARXCORR_CHUNK rows of amplitudes at @out from the lines of
 * the workspace. */
static ImkStatus
detect_chunk (const ImkInsarxcorrWork *w, float *out, ImkError *error)
{
  const ImkInsarxcorrCpu *cpu = w->cpu;
  ImkInsarxcorrSpace *s = w->space;
  uint32_t width = cpu->plan->patch_width[0],
           ri = cpu->plan->config.range_interp;

  if (ri == 1) {
    imk_insarxcorr_take_amplitudes (
        s->lines, IMK_INSARXCORR_CHUNK * width, out);
    return IMK_OK;
  }
  for (uint32_t y = 0; y < IMK_INSARXCORR_CHUNK; y++)
    scatter_phase (
        cpu, 0, s->lines + y * width, s->amplitudes, out + y * width);
  IMK_TRY (imk_fft_execute (cpu->forward[0], s->lines, s->spectra, error));
  for (uint32_t m = 1; m < ri; m++) {
    multiply (s->spectra, cpu->turns + m * width, width, s->phases);
    IMK_TRY (imk_fft_execute (cpu->backward[0], s->phases, s->lines, error));
    for (uint32_t y = 0; y < IMK_INSARXCORR_CHUNK; y++)
      scatter_phase (
          cpu, m, s->lines + y * width, s->amplitudes, out + y * width);
  }
  return IMK_OK;
}

static void
subtract (float *out, uint32_t n, float mean)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] -= mean;
}

/* Lines [@first, @first + IMK_INSARXCORR_CHUNK) of the patch of @side; those
 * beyond it are 0. Returns: samples that are data */
static uint32_t
load_chunk (const ImkInsarxcorrWork *w, int side, uint32_t first)
{
  uint32_t width = w->cpu->plan->patch_width[0], n_valid = 0;
  uint32_t height = w->cpu->plan->patch_height[0];

  for (uint32_t i = 0; i < IMK_INSARXCORR_CHUNK; i++) {
    ImkInsarxcorrComplex *line = w->space->lines + (size_t) i * width;

    if (first + i < height)
      n_valid += imk_insarxcorr_load_line (w, side, first + i, line);
    else
      memset (line, 0, width * sizeof (*line));
  }
  return n_valid;
}

/* The patch of @side as amplitudes without their mean. There is room for whole
 * chunks. */
static ImkStatus
detect (ImkInsarxcorrWork *w, int side, float *out, ImkError *error)
{
  const ImkInsarxcorrPlan *plan = w->cpu->plan;
  uint32_t width = plan->patch_width[0], height = plan->patch_height[0];
  uint32_t n = width * height;
  uint64_t n_valid = 0;
  ImkStatus status = IMK_OK;

  for (uint32_t y = 0; y < height && status == IMK_OK;
       y += IMK_INSARXCORR_CHUNK) {
    n_valid += load_chunk (w, side, y);
    status = detect_chunk (w, out + (size_t) y * width, error);
  }
  subtract (out, n, (float) (imk_insarxcorr_sum (out, n) / n));
  imk_insarxcorr_note_valid (w, n_valid, n);
  return status;
}

/* ------------------------------------------------------------------------
 * The surface by FFT. A lag of the transforms is a place modulo their size. */

/* Outside the template b is 0. */
static void
mask (uint32_t width, uint32_t height, float *b)
{
  uint32_t left = width / 4, top = height / 4;

  memset (b, 0, (size_t) top * width * sizeof (*b));
  memset (b + (size_t) (height - top) * width, 0,
      (size_t) top * width * sizeof (*b));
  for (uint32_t y = top; y < height - top; y++) {
    memset (b + (size_t) y * width, 0, left * sizeof (*b));
    memset (b + (size_t) (y + 1) * width - left, 0, left * sizeof (*b));
  }
}

static void
take_magnitudes (const float *restrict in, uint32_t n, float *restrict out)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = fabsf (in[i]);
}

static ImkStatus
make_surface (const ImkInsarxcorrWork *w, ImkError *error)
{
  const ImkInsarxcorrCpu *cpu = w->cpu;
  ImkInsarxcorrSpace *s = w->space;
  uint32_t width = cpu->plan->patch_width[0], n = width / 2;
  uint32_t height = cpu->plan->patch_height[0];
  const float *real = (const float *) s->b_spectrum;

  IMK_TRY (imk_fft_execute (cpu->spectrum, s->a, s->a_spectrum, error));
  IMK_TRY (imk_fft_execute (cpu->spectrum, s->b, s->b_spectrum, error));
  imk_insarxcorr_multiply (
      s->a_spectrum, s->b_spectrum, (size_t) (width / 2 + 1) * height);
  IMK_TRY (imk_fft_execute (cpu->surface, s->b_spectrum, s->b_spectrum, error));
  for (uint32_t u = 0; u < height / 2; u++) {
    uint32_t y = (u + height - height / 4) % height;
    const float *line = real + (size_t) y * (width + 2);

    /* Negative lags are at the end of a row. */
    take_magnitudes (line + width - n / 2, n / 2, s->surface + (size_t) u * n);
    take_magnitudes (line, n / 2, s->surface + (size_t) u * n + n / 2);
  }
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The correlation at one lag, in integers. */

typedef struct Sums {
  int64_t ab, aa, bb;
} Sums;

static void
cut_all (const float *restrict in, uint32_t n, int32_t *restrict out)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = imk_insarxcorr_cut (in[i]);
}

static void
add_products (const int32_t *restrict a, const int32_t *restrict b, uint32_t n,
    Sums *sums)
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

double
imk_insarxcorr_compat_correlation (
    const ImkInsarxcorrWork *w, uint32_t v, uint32_t u)
{
  uint32_t width = w->cpu->plan->patch_width[0], left = width / 4;
  uint32_t top = w->cpu->plan->patch_height[0] / 4;
  int32_t a[MAX_TEMPLATE], b[MAX_TEMPLATE];
  Sums sums = {0};

  for (uint32_t y = 0; y < 2 * top; y++) {
    cut_all (w->space->a + (size_t) (y + u) * width + v, 2 * left, a);
    cut_all (w->space->b + (size_t) (top + y) * width + left, 2 * left, b);
    add_products (a, b, 2 * left, &sums);
  }
  return imk_insarxcorr_correlation (sums.ab, sums.aa, sums.bb);
}

/* --- methods of time: the same at every lag ------------------------------- */

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

static float
time_correlation (const ImkInsarxcorrWork *w, uint32_t u, uint32_t v)
{
  uint32_t width = w->cpu->plan->patch_width[0], left = width / 4;
  uint32_t top = w->cpu->plan->patch_height[0] / 4;
  bool fourth = w->cpu->plan->config.method == IMK_INSARXCORR_TIME4;
  Sums sums = {0};
  Squares squares = {0};

  for (uint32_t y = 0; y < 2 * top; y++) {
    const int32_t *a = w->space->a_cut + (size_t) (y + u) * width + v;
    const int32_t *b = w->space->b_cut + (size_t) (top + y) * width + left;

    if (fourth)
      add_squares (a, b, 2 * left, &squares);
    else
      add_products (a, b, 2 * left, &sums);
  }
  return (float) (fourth
                      ? imk_insarxcorr_gatelli (
                            squares.aabb, squares.aaaa, squares.bbbb)
                      : imk_insarxcorr_correlation (sums.ab, sums.aa, sums.bb));
}

static void
make_time_surface (const ImkInsarxcorrWork *w)
{
  uint32_t width = w->cpu->plan->patch_width[0];
  uint32_t height = w->cpu->plan->patch_height[0];
  ImkInsarxcorrSpace *s = w->space;

  cut_all (s->a, width * height, s->a_cut);
  cut_all (s->b, width * height, s->b_cut);
  for (uint32_t u = 0; u < height / 2; u++)
    for (uint32_t v = 0; v < width / 2; v++)
      s->surface[(size_t) u * (width / 2) + v] = time_correlation (w, u, v);
}

ImkStatus
imk_insarxcorr_compat (ImkInsarxcorrWork *w, ImkError *error)
{
  const ImkInsarxcorrPlan *plan = w->cpu->plan;

  IMK_TRY (detect (w, IMK_INSARXCORR_REFERENCE, w->space->a, error));
  IMK_TRY (detect (w, IMK_INSARXCORR_SECONDARY, w->space->b, error));
  mask (plan->patch_width[0], plan->patch_height[0], w->space->b);
  if (plan->config.method == IMK_INSARXCORR_FREQ)
    return make_surface (w, error);
  make_time_surface (w);
  return IMK_OK;
}
