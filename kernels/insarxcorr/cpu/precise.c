/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The precise mode: both axes become finer before detection, as detection
 * doubles the bandwidth; before that, the spectrum is turned so that its middle
 * lies at 0, or zeros would be put into it. The surface is the normalised
 * correlation. */
#include "insarxcorr/cpu/patch.h"

typedef ImkInsarxcorrComplex Complex;

/* Returns: samples that are data */
static uint64_t
load_patch (const ImkInsarxcorrWork *w, int side)
{
  const ImkInsarxcorrPlan *plan = w->cpu->plan;
  uint32_t width = plan->patch_width[side];
  uint64_t n_valid = 0;

  for (uint32_t y = 0; y < plan->patch_height[side]; y++)
    n_valid += imk_insarxcorr_load_line (
        w, side, y, w->space->lines + (size_t) y * width);
  return n_valid;
}

typedef ImkInsarxcorrTurns Turns;

static void
add_turns (const Complex *in, uint32_t width, uint32_t height, Turns *turns)
{
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      const Complex *p = in + (size_t) y * width + x, *q;

      turns->energy += (double) p->re * p->re + (double) p->im * p->im;
      if (x + 1 < width) {
        q = p + 1;
        turns->x_re += (double) q->re * p->re + (double) q->im * p->im;
        turns->x_im += (double) q->im * p->re - (double) q->re * p->im;
      }
      if (y + 1 < height) {
        q = p + width;
        turns->y_re += (double) q->re * p->re + (double) q->im * p->im;
        turns->y_im += (double) q->im * p->re - (double) q->re * p->im;
      }
    }
  turns->n_samples += (double) width * height;
}

/* Of both sides together, so that the same band is cut from both spectra. */
static Turns
find_turns (ImkInsarxcorrWork *w)
{
  const ImkInsarxcorrPlan *plan = w->cpu->plan;
  Turns turns = {0};

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    uint32_t width = plan->patch_width[s], height = plan->patch_height[s];

    imk_insarxcorr_note_valid (w, load_patch (w, s), (uint64_t) width * height);
    add_turns (w->space->lines, width, height, &turns);
  }
  return turns;
}

/* The spectrum of a patch, turned and with zeros in its middle. */
static void
widen (
    const ImkInsarxcorrWork *w, int side, uint32_t centre_x, uint32_t centre_y)
{
  const ImkInsarxcorrPlan *plan = w->cpu->plan;
  uint32_t width = plan->patch_width[side], height = plan->patch_height[side];
  uint32_t wide = width * plan->fine.interp_x;
  uint32_t high = height * plan->fine.interp_y;

  memset (w->space->phases, 0, (size_t) wide * high * sizeof (Complex));
  for (uint32_t y = 0; y < height; y++) {
    uint32_t to_y = y < height / 2 ? y : y + high - height;
    const Complex *from =
        w->space->spectra + (size_t) ((y + centre_y) % height) * width;
    Complex *to = w->space->phases + (size_t) to_y * wide;

    for (uint32_t x = 0; x < width; x++)
      to[x < width / 2 ? x : x + wide - width] = from[(x + centre_x) % width];
  }
}

/* The amplitudes at @out, rows of @stride, without their mean. */
static void
detect (const ImkInsarxcorrWork *w, int side, float *out, uint32_t stride)
{
  const ImkInsarxcorrPlan *plan = w->cpu->plan;
  const ImkInsarxcorrFine *f = &plan->fine;
  uint32_t width = f->width[side], height = f->height[side];
  uint32_t wide = plan->patch_width[side] * f->interp_x;
  uint32_t left = imk_insarxcorr_fine_start (plan, side, true);
  uint32_t top = imk_insarxcorr_fine_start (plan, side, false);
  float scale = imk_insarxcorr_fine_scale (plan, side), mean;
  double sum = 0;

  for (uint32_t y = 0; y < height; y++) {
    float *row = out + (size_t) y * stride;

    imk_insarxcorr_take_amplitudes (
        w->space->phases + (size_t) (top + y) * wide + left, width, row);
    for (uint32_t x = 0; x < width; x++)
      row[x] *= scale;
    memset (row + width, 0, (stride - width) * sizeof (*row));
    sum += imk_insarxcorr_sum (row, width);
  }
  mean = (float) (sum / ((double) width * height));
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      out[(size_t) y * stride + x] -= mean;
}

static ImkStatus
take_side (const ImkInsarxcorrWork *w, int side, const Turns *turns, float *out,
    ImkError *error)
{
  const ImkInsarxcorrPlan *plan = w->cpu->plan;
  uint32_t width = plan->patch_width[side], height = plan->patch_height[side];
  size_t stride = plan->fine.fft_width;
  size_t n = stride * plan->fine.fft_height;
  ImkInsarxcorrSpace *s = w->space;

  load_patch (w, side);
  IMK_TRY (
      imk_fft_execute (w->cpu->forward[side], s->lines, s->spectra, error));
  widen (w, side,
      imk_insarxcorr_centre_bin (turns, turns->x_re, turns->x_im, width),
      imk_insarxcorr_centre_bin (turns, turns->y_re, turns->y_im, height));
  IMK_TRY (
      imk_fft_execute (w->cpu->backward[side], s->phases, s->phases, error));
  detect (w, side, out, (uint32_t) stride);
  memset (out + stride * plan->fine.height[side], 0,
      (n - stride * plan->fine.height[side]) * sizeof (*out));
  return IMK_OK;
}

/* Adds line @y of the search area, times @sign, to the sums of the columns. */
static void
add_line (const ImkInsarxcorrWork *w, uint32_t y, double sign)
{
  const ImkInsarxcorrFine *f = &w->cpu->plan->fine;
  const float *line = w->space->b + (size_t) y * f->fft_width;

  for (uint32_t x = 0; x < f->width[1]; x++) {
    double value = line[x];

    w->space->sums[x] += sign * value;
    w->space->squares[x] += sign * (value * value);
  }
}

/* One line of lags: the sums of the columns under the template, which slides
 * over them. @row: of template times search, not normalised by @scale */
static void
normalise_line (const ImkInsarxcorrWork *w, const float *row, double scale,
    double tt, float *out)
{
  const ImkInsarxcorrFine *f = &w->cpu->plan->fine;
  uint32_t width = f->width[0];
  double n = (double) width * f->height[0], s = 0, ss = 0;

  for (uint32_t x = 0; x < width; x++) {
    s += w->space->sums[x];
    ss += w->space->squares[x];
  }
  for (uint32_t v = 0; v < f->n_lags_x; v++) {
    out[v] = imk_insarxcorr_normalise (row[v] * scale, tt, s, ss, n);
    if (v + 1 < f->n_lags_x) {
      s += w->space->sums[v + width] - w->space->sums[v];
      ss += w->space->squares[v + width] - w->space->squares[v];
    }
  }
}

static double
sum_squares (const ImkInsarxcorrWork *w)
{
  const ImkInsarxcorrFine *f = &w->cpu->plan->fine;
  double sum = 0;

  for (uint32_t y = 0; y < f->height[0]; y++)
    for (uint32_t x = 0; x < f->width[0]; x++) {
      double value = w->space->a[(size_t) y * f->fft_width + x];

      sum += value * value;
    }
  return sum;
}

static void
normalise (const ImkInsarxcorrWork *w)
{
  const ImkInsarxcorrFine *f = &w->cpu->plan->fine;
  const float *products = (const float *) w->space->a_spectrum;
  size_t stride = 2 * (f->fft_width / 2 + 1); /* C2R, in place */
  double scale = 1.0 / ((double) f->fft_width * f->fft_height);
  double tt = sum_squares (w);

  memset (w->space->sums, 0, f->width[1] * sizeof (double));
  memset (w->space->squares, 0, f->width[1] * sizeof (double));
  for (uint32_t y = 0; y < f->height[0]; y++)
    add_line (w, y, 1);
  for (uint32_t u = 0; u < f->n_lags_y; u++) {
    normalise_line (w, products + u * stride, scale, tt,
        w->space->surface + (size_t) u * f->n_lags_x);
    if (u + 1 < f->n_lags_y) {
      add_line (w, u, -1);
      add_line (w, u + f->height[0], 1);
    }
  }
}

ImkStatus
imk_insarxcorr_precise (ImkInsarxcorrWork *w, ImkError *error)
{
  const ImkInsarxcorrFine *f = &w->cpu->plan->fine;
  ImkInsarxcorrSpace *s = w->space;
  const Turns turns = find_turns (w);

  IMK_TRY (take_side (w, IMK_INSARXCORR_REFERENCE, &turns, s->a, error));
  IMK_TRY (take_side (w, IMK_INSARXCORR_SECONDARY, &turns, s->b, error));
  IMK_TRY (imk_fft_execute (w->cpu->spectrum, s->a, s->a_spectrum, error));
  IMK_TRY (imk_fft_execute (w->cpu->spectrum, s->b, s->b_spectrum, error));
  /* b conj (a): at lag d, sum b (n + d) a (n) */
  imk_insarxcorr_multiply (s->b_spectrum, s->a_spectrum,
      (size_t) (f->fft_width / 2 + 1) * f->fft_height);
  IMK_TRY (
      imk_fft_execute (w->cpu->surface, s->a_spectrum, s->a_spectrum, error));
  normalise (w);
  return IMK_OK;
}
