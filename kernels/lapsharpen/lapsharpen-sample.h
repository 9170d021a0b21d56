/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arithmetic of one sample. Both backends compile these functions, so that
 * they agree bit for bit. */
#pragma once

#include <math.h>

#include "lapsharpen/lapsharpen-backend.h"
#include "lapsharpen/lapsharpen-smooth.h"

#ifdef __CUDACC__
#define IMK_HOST_DEVICE __host__ __device__
#else
#define IMK_HOST_DEVICE
#endif

/* A configuration in the terms of the pixel loops. */
typedef struct ImkLapsharpenRule {
  uint32_t width, height;
  uint32_t channels;
  uint32_t shift;
  uint32_t maximum;       /* the largest value of depth bits */
  uint32_t filtered;      /* bit c: channel c is sharpened, else copied */
  uint32_t measured;      /* bit c: the focus measure sums channel c */
  int32_t weight_channel; /* neighbours count by this channel, or -1 */
  uint32_t neighbours;
  float amount;
  uint32_t multiple, fraction; /* amount = multiple / 2^fraction; multiple 0:
                                * not in the 16 bits that whole bytes need */
  float threshold;
  double per_sigma; /* the threshold of a noise of 1, 0: not measured */
  bool soft;
  uint32_t reach;       /* pixels from one to its furthest neighbour */
  uint32_t kernel_size; /* 0: no kernel */
  float kernel[IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL];
  ImkLapsharpenSmooth smooth;
  bool adaptive; /* L is multiplied by imk_lapsharpen_gain () */
  bool local, edges;
  uint32_t halo_bright, halo_dark; /* counts beyond the window; for local */
  bool limited;                    /* to low..high of each channel */
  uint32_t low[4], high[4];
  uint32_t noisy; /* bit c: channel c tells the noise */
  uint32_t n_areas;
  ImkLapsharpenArea areas[IMK_LAPSHARPEN_MAX_AREAS];
  bool constant, reflect101, reflect; /* border; none: the nearest sample */
  uint32_t border_value;              /* counts */
} ImkLapsharpenRule;

/* An amount of m / 2^q needs no float on bytes. All of (2^q + k m) v - m sum
 * v_i and half of 2^q fit 16 bits as long as the centre's weight is a signed
 * byte. */
static inline void
imk_lapsharpen_find_fraction (ImkLapsharpenRule *rule)
{
  for (uint32_t q = 0; q <= 6; q++) {
    float multiple = rule->amount * (float) (1u << q);
    float centre = (float) (1u << q) + (float) rule->neighbours * multiple;

    if (centre <= 127 && multiple == (float) (uint32_t) multiple) {
      rule->multiple = (uint32_t) multiple;
      rule->fraction = q;
      return;
    }
  }
}

/* The kernel that mixes what @c's makes with the sample itself. */
static inline void
imk_lapsharpen_set_kernel (
    ImkLapsharpenRule *rule, const ImkLapsharpenConfig *c)
{
  const uint32_t n = c->kernel_size * c->kernel_size;

  rule->kernel_size = c->kernel_size;
  rule->reach = c->kernel_size / 2;
  for (uint32_t i = 0; i < n; i++)
    rule->kernel[i] = (float) (c->amount * (double) c->kernel[i] +
                               (i == n / 2 ? 1 - c->amount : 0));
}

/* Returns: how much larger L makes white noise */
static inline double
imk_lapsharpen_noise_gain (const ImkLapsharpenConfig *c)
{
  const double pi = 3.14159265358979323846, k = c->neighbours;
  const double radius = c->radius > 0.7 ? c->radius : 0.7;
  const uint32_t n = c->kernel_size * c->kernel_size;
  double sum = 0;

  switch (c->method) {
  case IMK_LAPSHARPEN_METHOD_UNSHARP:
    return sqrt (1 - 3 / (4 * pi * radius * radius));
  case IMK_LAPSHARPEN_METHOD_LOG:
    return 1 / (c->radius * sqrt (2 * pi));
  case IMK_LAPSHARPEN_METHOD_KERNEL:
    for (uint32_t i = 0; i < n; i++) {
      double w = (double) c->kernel[i] - (i == n / 2);

      sum += w * w;
    }
    return sqrt (sum);
  default:
    return sqrt (k * k + k);
  }
}

/* Returns: the noise of a frame, from the sum of |N| over it; the same bits
 * everywhere, as the sum is exact */
static inline double
imk_lapsharpen_noise (const ImkLapsharpenRule *rule, uint64_t sum)
{
  const double n = (double) (rule->width - 2) * (double) (rule->height - 2) *
                   __builtin_popcount (rule->noisy);

  /* sqrt (pi / 2) / 6 */
  return sum ? 0.20888568955258338 * (double) sum / n : 0;
}

/* What limits a sharpened sample. */
static inline void
imk_lapsharpen_set_limits (
    ImkLapsharpenRule *rule, const ImkLapsharpenConfig *c)
{
  const bool window = c->clamp == IMK_LAPSHARPEN_CLAMP_LOCAL;

  rule->halo_bright = window ? 0 : c->halo_bright;
  rule->halo_dark = window ? 0 : c->halo_dark;
  if (rule->halo_bright > rule->maximum)
    rule->halo_bright = rule->maximum;
  if (rule->halo_dark > rule->maximum)
    rule->halo_dark = rule->maximum;
  rule->local = !rule->edges && (rule->halo_bright < rule->maximum ||
                                    rule->halo_dark < rule->maximum);
  for (uint32_t i = 0; i < c->channels; i++) {
    rule->low[i] = c->range_high[i] ? c->range_low[i] : 0;
    rule->high[i] = c->range_high[i] ? c->range_high[i] : rule->maximum;
    if (c->range_high[i] && !rule->edges)
      rule->limited = true;
  }
  rule->n_areas = c->n_areas;
  for (uint32_t i = 0; i < c->n_areas; i++)
    rule->areas[i] = c->areas[i];
}

/* Returns: the largest sample; of floats what is beyond all limits */
static inline uint32_t
imk_lapsharpen_maximum (const ImkLapsharpenConfig *c)
{
  return c->type == IMK_TYPE_F32 ? UINT32_MAX : (1u << c->depth) - 1;
}

static inline ImkLapsharpenRule
imk_lapsharpen_rule (const ImkLapsharpenConfig *c)
{
  uint32_t alpha = c->alpha_channel < 0 ? 0 : 1u << c->alpha_channel;
  bool sigma = c->threshold_unit == IMK_LAPSHARPEN_UNIT_SIGMA;
  ImkLapsharpenRule rule = {};

  rule.width = c->width;
  rule.height = c->height;
  rule.channels = c->channels;
  rule.shift = c->shift;
  rule.maximum = imk_lapsharpen_maximum (c);
  rule.filtered = c->channel_mask;
  rule.edges = c->output == IMK_LAPSHARPEN_OUTPUT_EDGES;
  if (c->alpha == IMK_LAPSHARPEN_ALPHA_FILTER && !rule.edges)
    rule.filtered |= alpha;
  rule.measured = c->measure_focus ? c->channel_mask : 0;
  rule.weight_channel =
      c->alpha == IMK_LAPSHARPEN_ALPHA_WEIGHTED ? c->alpha_channel : -1;
  rule.neighbours = c->neighbours;
  rule.reach = 1;
  if (c->method == IMK_LAPSHARPEN_METHOD_KERNEL)
    imk_lapsharpen_set_kernel (&rule, c);
  if (c->method == IMK_LAPSHARPEN_METHOD_UNSHARP ||
      c->method == IMK_LAPSHARPEN_METHOD_LOG)
    imk_lapsharpen_set_smooth (
        &rule.smooth, c->radius, c->method == IMK_LAPSHARPEN_METHOD_LOG);
  rule.adaptive = c->method == IMK_LAPSHARPEN_METHOD_CAS;
  rule.amount = (float) c->amount;
  rule.threshold = sigma ? 0 : (float) c->threshold;
  rule.per_sigma = sigma ? c->threshold * imk_lapsharpen_noise_gain (c) : 0;
  rule.soft = c->coring == IMK_LAPSHARPEN_CORING_SOFT && c->threshold > 0;
  if (!rule.soft)
    imk_lapsharpen_find_fraction (&rule);
  if (c->width > 2 && c->height > 2)
    rule.noisy = c->channel_mask;
  imk_lapsharpen_set_limits (&rule, c);
  rule.reflect101 = c->border == IMK_LAPSHARPEN_BORDER_REFLECT101;
  rule.reflect = c->border == IMK_LAPSHARPEN_BORDER_REFLECT;
  rule.constant = c->border == IMK_LAPSHARPEN_BORDER_ZERO ||
                  c->border == IMK_LAPSHARPEN_BORDER_CONSTANT;
  rule.border_value =
      c->border == IMK_LAPSHARPEN_BORDER_CONSTANT ? c->border_value : 0;
  return rule;
}

/* Returns: whether all that is asked for is clamp (v + s L) on whole bytes with
 * an s of few bits, the case that the CUDA backend has a fast path for */
static inline bool
imk_lapsharpen_is_plain (const ImkLapsharpenRule *rule, ImkType type)
{
  return type == IMK_TYPE_U8 && rule->maximum == 255 && rule->multiple &&
         !rule->measured && rule->weight_channel < 0 && !rule->edges &&
         !rule->adaptive && !rule->kernel_size && !rule->smooth.step &&
         !rule->per_sigma &&
         rule->threshold <= 1; /* |L| < 1 is L = 0, which changes nothing */
}

/* Returns: the index of 0..n-1 that stands for index @i, where the border is
 * not constant */
IMK_HOST_DEVICE static inline int
imk_lapsharpen_inside (int i, int n, const ImkLapsharpenRule *rule)
{
  int period = rule->reflect101 ? 2 * n - 2 : 2 * n;

  if (i >= 0 && i < n)
    return i;
  if ((!rule->reflect && !rule->reflect101) || n == 1)
    return i < 0 ? 0 : n - 1;
  i %= period;
  i = i < 0 ? i + period : i;
  return i < n ? i : rule->reflect101 ? period - i : period - 1 - i;
}

/* Returns: the weighted L from sum a_i (v - v_i), which double holds exactly */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_weighted (double numerator, uint32_t maximum)
{
  return (float) (numerator / (double) maximum);
}

/* The same without a division, for devices. float64 lies between the quotient
 * and its float32, but a quotient by 2^d - 1, whose bits repeat after d, is
 * never so near the middle of two float32 that rounding twice, or an error of
 * float64's last bit, would change the outcome. @reciprocal: 1 / maximum */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_weighted_by (double numerator, double reciprocal)
{
  return (float) (numerator * reciprocal);
}

/* The same in float32 for u8, with numerators below 2^20: @reciprocal + @rest
 * is 1 / maximum to 48 bits. The tests compare all numerators. */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_weighted_u8 (float numerator, float reciprocal, float rest)
{
  return fmaf (numerator, reciprocal, numerator * rest);
}

/* Returns: the rest of a @reciprocal of @maximum */
static inline float
imk_lapsharpen_rest (uint32_t maximum, float reciprocal)
{
  return (float) (1.0 / maximum - (double) reciprocal);
}

/* Returns: what stands for a sample @v with alpha @a where it is smoothed and
 * alpha counts. The alpha channel itself holds what is transparent, so that
 * opaque frames give what they give without alpha. */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_visible (
    const ImkLapsharpenRule *rule, uint32_t v, uint32_t a, bool is_alpha)
{
  float opacity = (float) a / (float) rule->maximum;

  return is_alpha ? 1.0f - opacity : (float) v * opacity;
}

/* Returns: L of the sample @v that smoothing makes @smooth; @transparent: what
 * it makes of the pixel's alpha channel, 0 where alpha does not count */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_detail (
    const ImkLapsharpenRule *rule, int32_t v, float smooth, float transparent)
{
  float own = rule->smooth.is_log ? 0.0f : 1.0f;

  return (float) v * (own - transparent) - smooth;
}

/* Returns: how much of L contrast adaptive sharpening adds
 * @least: sum of the least sample of the cross and that of the 3x3 window
 * @most: likewise of the largest samples
 * Square roots and divisions are rounded alike everywhere. */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_gain (int32_t least, int32_t most, int32_t maximum)
{
  int32_t room = 2 * maximum - most;
  int32_t distance = least < room ? least : room;
  float ratio =
      (float) (distance > 0 ? distance : 0) / (float) (most > 0 ? most : 1);
  float a = sqrtf (ratio);

  return a / (5.0f - 4.0f * a);
}

/* Returns: the new value of a sample @v with Laplacian @l, kept in @low..@high.
 *
 * One float32 formula is right for whole amounts as well: |s L| < 2^23 - 2^16,
 * so the product, its sum with v + 0.5 and the conversions are exact then.
 * Clamping before the conversion makes it a floor. */
IMK_HOST_DEVICE static inline int32_t
imk_lapsharpen_sample (float amount, float threshold, bool soft, bool edges,
    float l, int32_t v, int32_t low, int32_t high)
{
  float magnitude = l < 0 ? -l : l;
  float factor = magnitude < threshold ? 0.0f : amount;
  float rest = soft ? magnitude - threshold : magnitude;
  float cored = soft ? (l < 0 ? -rest : rest) : l;
  float change = factor * (edges ? rest : cored);
  float sum = change + ((float) (edges ? 0 : v) + 0.5f);

  sum = sum < (float) low ? (float) low : sum;
  sum = sum > (float) high ? (float) high : sum;
  return (int32_t) sum;
}

/* Returns: the new value of a sample @v for which the kernel has made @sum,
 * kept in @low..@high. 3 * 2^22 leaves no bits for a fraction: adding it rounds
 * to the nearest integer, halves to even. */
IMK_HOST_DEVICE static inline int32_t
imk_lapsharpen_correlated (const ImkLapsharpenRule *rule, float sum, int32_t v,
    int32_t low, int32_t high)
{
  const float whole = 12582912.0f;
  float base = (float) v;
  float change = sum - base;
  float magnitude = change < 0 ? -change : change;
  float least = rule->threshold * rule->amount;
  float less = rule->soft ? least : 0.0f;
  float made = rule->edges  ? magnitude - less
               : change < 0 ? sum + less
                            : sum - less;

  made = made < (float) low ? (float) low : made;
  made = made > (float) high ? (float) high : made;
  made = (made + whole) - whole;
  if (magnitude < least)
    made = rule->edges ? 0.0f : base;
  made = made > (float) high ? (float) high : made;
  return (int32_t) made;
}

/* Returns: @value, but no further outside of the range of its channel than the
 * sample @v was */
IMK_HOST_DEVICE static inline int32_t
imk_lapsharpen_limited (
    const ImkLapsharpenRule *rule, int32_t v, int32_t value, uint32_t channel)
{
  const int32_t low = (int32_t) rule->low[channel];
  const int32_t high = (int32_t) rule->high[channel];
  const int32_t least = low < v ? low : v, most = high > v ? high : v;

  return value < least ? least : value > most ? most : value;
}

/* Returns: whether pixel (@x, @y) is to be sharpened */
IMK_HOST_DEVICE static inline bool
imk_lapsharpen_in_areas (const ImkLapsharpenRule *rule, uint32_t x, uint32_t y)
{
  for (uint32_t i = 0; i < rule->n_areas; i++) {
    const ImkLapsharpenArea *a = &rule->areas[i];

    if (x >= a->x && x - a->x < a->width && y >= a->y && y - a->y < a->height)
      return true;
  }
  return rule->n_areas == 0;
}

/* Returns: a sample as it is stored, mixed of @v and the sharpened @value */
IMK_HOST_DEVICE static inline uint32_t
imk_lapsharpen_mixed (
    const ImkLapsharpenRule *rule, uint32_t v, uint32_t value, uint32_t weight)
{
  const int32_t counts = (int32_t) (v >> rule->shift);
  const int32_t more =
      ((int32_t) (value >> rule->shift) - counts) * (int32_t) weight;

  if (weight == 0)
    return v;
  return (uint32_t) (counts + (more + (more < 0 ? -127 : 127)) / 255)
         << rule->shift;
}
