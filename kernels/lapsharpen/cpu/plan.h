/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A rule in the terms of vectors, for vectors.h. */
#pragma once

#include "lapsharpen/cpu/floats.h"

#if defined(__AVX2__)
#if IMK_VECTOR_SIZE == 64
typedef __m512i Vector;
typedef __m512 FloatVector;
#define OP(name) _mm512_##name
#else
typedef __m256i Vector;
typedef __m256 FloatVector;
#define OP(name) _mm256_##name
#endif

#if SAMPLE_BITS == 8
#define SAMPLE_OP(name) OP (name##_epu8)
typedef uint8_t Samples __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
#else
#define SAMPLE_OP(name) OP (name##_epu16)
typedef uint16_t Samples __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
#endif

typedef uint8_t Bytes __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef int16_t Words __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

/* Sums of products of two samples each, twice as wide as samples. */
#if SAMPLE_BITS == 8
typedef Words Sums;
#else
typedef Ints Sums;
#endif

enum {
  STEP = IMK_VECTOR_SIZE / sizeof (Sample),
  /* The hardware prefetcher stops at each page; prefetching saves 10 to 20 % of
   * the time of a frame. The addresses may be beyond the end. */
  PREFETCH = 3072 / sizeof (Sample), /* of 1024 to 3072 bytes the fastest */
};

/* ImkLapsharpenRatio in vectors. */
typedef struct Ratio {
  Words centre, rest, start, n, factor;
  int32_t shift;
  bool to_even, by_order;
} Ratio;

/* A kernel whose sums are made in another order than those of the reference,
 * in units of 2^-16 counts. See rows.h. */
typedef struct Kernel {
  bool exact; /* the order of the reference is needed for too many samples */
  float weights[IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL];
  Floats start; /* half a count, and what the sums may differ by */
  /* a sum whose fraction, the low word, is below it may round to another count
   * than the reference */
  Words near;
} Kernel;

/* A rule in the terms of vectors. */
typedef struct Plan {
  ptrdiff_t c;
  bool diagonal, cored, soft, edges, limited;
  Floats amount, threshold;
  Vector maximum, dark, bright;
  bool whole; /* all samples are filtered, up to the largest */
  int16_t fraction;
  Sums half, bits;         /* of 2^q, and q */
  Words over;              /* 2^(15 - q), which mulhrs divides by 2^q with */
  Words least, factor[2];  /* for PRODUCTS: of |L| times the scale, and of L */
  bool two_factors, down;  /* see products.h */
  Vector minus, centre;    /* weights of neighbours and the sample */
  Vector alpha;            /* bytes of a vector that hold alpha */
  Floats reciprocal, rest; /* for WEIGHTED, of the maximum */
  Kernel kernel;           /* for LINES */
  Ratio ratio;             /* for TAPS */
} Plan;

INLINE Vector
load (const Sample *from)
{
  Vector v;

  memcpy (&v, from, sizeof (v));
  return v;
}

/* Returns: the largest error of rounding a float32 of up to @value */
static double
rounding_error (double value)
{
  int exponent;

  frexp (value, &exponent);
  return ldexp (1, exponent - 25);
}

/* The reference rounds each product and each sum, fused multiply-add each sum;
 * both add up in the same order. Only sums of 0 to 255.5 counts matter, as
 * others are 0 or the largest: what is still to be added limits those so far.
 */
static Kernel
make_kernel (const ImkLapsharpenRule *rule)
{
  enum { BITS = 16, FEW_NEAR = 64 };
  const uint32_t n = rule->kernel_size * rule->kernel_size;
  const double most = (Sample) -1;
  double sum[2] = {0, 0}, rest[2] = {0, 0}; /* of weights below and above 0 */
  double error = 0, apart;
  Kernel k = {.exact = true};

  for (uint32_t i = 0; i < n; i++)
    rest[rule->kernel[i] > 0] += most * fabs ((double) rule->kernel[i]);
  if (SAMPLE_BITS == 16 || 1 + rest[0] + rest[1] >= INT16_MAX)
    return k;
  for (uint32_t i = 0; i < n; i++) {
    const double product = most * fabs ((double) rule->kernel[i]);
    double above, below;

    sum[rule->kernel[i] > 0] += product;
    rest[rule->kernel[i] > 0] -= product;
    above = LEAST (sum[1], most + 0.5 + rest[0]);
    below = LEAST (sum[0], rest[1]);
    error += rounding_error (product) +
             2 * rounding_error (MOST (above + 0.5, below) + error);
  }
  apart = ceil (ldexp (error, BITS)) + 1; /* 1: of the conversion to integers */
  if (2 * apart * FEW_NEAR >= 1 << BITS)
    return k;
  k.exact = false;
  for (uint32_t i = 0; i < n; i++)
    k.weights[i] = ldexpf (rule->kernel[i], BITS);
  k.start = (Floats){0} + (float) (ldexp (0.5, BITS) + apart);
  k.near = (Words) ((Ints){0} + (int32_t) (2 * apart));
  return k;
}

static Ratio
make_ratio (const ImkLapsharpenRatio *r)
{
  const Words zero = {0};

  return (Ratio){.centre = zero + (int16_t) r->centre,
      .rest = zero + (int16_t) r->rest,
      .start = zero + (int16_t) (r->rest + r->n / 2),
      .n = zero + (int16_t) r->n,
      .factor = zero + (int16_t) r->factor,
      .shift = r->shift,
      .to_even = r->to_even,
      .by_order = r->by_order};
}

INLINE Way
choose_way (const Work *work)
{
  const ImkLapsharpenRule *rule = work->rule;

  if (rule->measured || rule->adaptive || rule->smooth.step)
    return CHUNKS;
  if (rule->kernel_size && (rule->edges || rule->threshold > 0))
    return CHUNKS;
  if (rule->kernel_size)
    return SAMPLE_BITS == 8 && work->ratio->n ? TAPS : LINES;
  if (rule->weight_channel >= 0)
    return SAMPLE_BITS == 8 && rule->channels == 4 ? WEIGHTED : CHUNKS;
  if (rule->multiple && !rule->edges && rule->threshold <= 1)
    return FEW; /* |L| < 1 is L = 0 */
  if (SAMPLE_BITS == 8 && work->products->scale && !rule->edges && !rule->soft)
    return rule->threshold > 0 ? CORED : PRODUCTS;
  return rule->edges || rule->threshold > 0 ? FLOATS : PLAIN;
}

/* PLAIN and FLOATS of bytes have L times 2^16, which costs nothing and is
 * exact. */
static Plan
make_plan (const Work *work, Way way)
{
  const ImkLapsharpenRule *rule = work->rule;
  const ImkLapsharpenProducts *products = work->products;
  const bool scaled = SAMPLE_BITS == 8 && (way == PLAIN || way == FLOATS);
  const float scale = scaled ? 65536.0f : 1.0f;
  const uint32_t one = 1u << rule->fraction;
  const int32_t times = way == FEW ? (int32_t) rule->multiple
                        : way == PRODUCTS || way == CORED ? products->scale
                                                          : 1;
  Plan p = {.c = rule->channels,
      .diagonal = rule->neighbours == 8,
      .cored = rule->threshold > 0,
      .soft = rule->soft,
      .edges = rule->edges,
      .limited = rule->limited};
  Bytes alpha = {0};

  p.amount = (Floats){0} + rule->amount / scale;
  p.threshold = (Floats){0} + rule->threshold * scale;
  p.maximum = (Vector) ((Samples){0} + (Sample) rule->maximum);
  p.dark = (Vector) ((Samples){0} + (Sample) rule->halo_dark);
  p.bright = (Vector) ((Samples){0} + (Sample) rule->halo_bright);
  p.whole = rule->filtered == (1u << rule->channels) - 1 &&
            rule->maximum == (Sample) -1;
  p.fraction = (int16_t) rule->fraction;
  p.half = (Sums){0} + (int16_t) (one / 2);
  p.bits = (Sums){0} + (int16_t) rule->fraction;
  p.over = (Words){0} + (int16_t) ((1 << 15) >> rule->fraction);
  for (int i = 0; i < 2; i++)
    p.factor[i] = (Words){0} + products->factor[i];
  p.least = (Words){0} +
            (int16_t) LEAST (ceilf (rule->threshold) * (float) -products->scale,
                INT16_MAX); /* > |L| */
  p.two_factors = products->factor[0] != products->factor[1];
  p.down = products->down;
  p.minus = (Vector) ((Samples){0} - (Sample) times);
  p.centre = (Vector) ((Sums){0} + (int16_t) ((way == FEW ? one : 0) +
                                              times * rule->neighbours));
  for (int i = 0; i < IMK_VECTOR_SIZE; i++) /* of 16 bytes each */
    alpha[i] = (uint8_t) ((i % 16 & ~3) + (rule->weight_channel & 3));
  p.alpha = (Vector) alpha;
  p.reciprocal = (Floats){0} + (float) (1 / (double) rule->maximum);
  p.rest = (Floats){0} + imk_lapsharpen_rest (rule->maximum, p.reciprocal[0]);
  if (way == TAPS)
    p.ratio = make_ratio (work->ratio);
  if (way == LINES)
    p.kernel = make_kernel (rule);
  return p;
}

/* --- the new samples ------------------------------------------------------ */

/* The high half of the float 2^23 + v, whose low half is v of 16 bits. */
enum { TWO_23 = 0x4b00 };

/* imk_lapsharpen_sample () but for the limits: conversion rounds negative
 * values up, but not above 0. @v: as floats 2^23 + v */
INLINE Ints
sharpen_floats (const Plan *p, Floats l, Vector v)
{
  const Ints sign = (Ints){0} + INT32_MIN;
  Floats base = (Floats) v - 8388607.5f; /* v + 0.5, exactly */

  if (p->edges)
    base = (Floats){0} + 0.5f;
  if (p->soft) {
    Floats rest = (Floats) ((Ints) l & ~sign) - p->threshold;

    rest = (Floats) OP (max_ps) ((FloatVector) rest, (FloatVector){0});
    l = (Floats) ((Ints) rest | ((Ints) l & sign));
  } else if (p->cored)
    l = (Floats) ((Ints) l & ((Floats) ((Ints) l & ~sign) >= p->threshold));
  if (p->edges)
    l = (Floats) ((Ints) l & ~sign);
  l = p->amount * l + base;
  return (Ints) OP (cvttps_epi32) ((FloatVector) l);
}

INLINE Floats
to_floats (Vector v)
{
  return __builtin_convertvector((Ints) v, Floats);
}

#endif
