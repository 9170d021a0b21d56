/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the variants of the fast solver share: lights, pixels, sums, and which
 * light counts. */
#pragma once

#include "photostereo/cuda/photostereo-cuda.cuh"

/* Shared memory of a block: what every device has, and with which it still has
 * room for two. */
enum { SHARED = 48 << 10, MAX_SHARED = 96 << 10 };

/* ------------------------------------------------------------------------
 * A light and a pixel. */

struct Place {
  float x, y;
  uint32_t site; /* colour of the pixel, where it is a mosaic */
};

/* Which lights count: lo < G < hi and |n'.L - G| <= limit. */
struct Test {
  float x, y, z; /* n' */
  float lo, hi, limit;
};

static __device__ __forceinline__ Place
place_of (const Arguments &a, uint32_t x, uint32_t y)
{
  const ImkPhotostereoPlan &p = a.plan;

  return Place{((float) x - p.centre_x) * a.unit_x,
      ((float) y - p.centre_y) * a.unit_y,
      p.mosaic ? p.site[2 * (y & 1) + (x & 1)] : 0u};
}

static __device__ __forceinline__ float
fast_rsqrt (float x)
{
  float y;

  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* L = k (s - x). */
template <int FALLOFF>
static __device__ __forceinline__ float3
light_vector (const float4 &lamp, float z2, const Place &p)
{
  float x = lamp.x - p.x, y = lamp.y - p.y, k = 1;

  if (FALLOFF > 0) {
    float r = fast_rsqrt (__fmaf_rn (x, x, __fmaf_rn (y, y, z2)));

    k = FALLOFF == 3 ? r * r * r : r;
  }
  return float3{k * x, k * y, k * lamp.z};
}

/* 2^23 as a float, which biased_of () takes from a register: an instruction has
 * room for one constant, and what the compiler knows to be one it would move
 * into a register for each sample anew. */
static __device__ __forceinline__ uint32_t
load_bias (const Arguments &a)
{
  return 0x4b000000u + *a.zero;
}

/* The sample @i of 4 bytes, as 2^23 + sample. */
template <typename Sample>
static __device__ __forceinline__ float
biased_of (uint32_t word, int i, uint32_t bias)
{
  return __uint_as_float (__byte_perm (
      word, bias, sizeof (Sample) == 1 ? 0x7540 + i : 0x7610 + 0x22 * i));
}

/* Of a sample as biased_of () has it. */
template <bool ONE_GAIN>
static __device__ __forceinline__ float
grey_of (const Arguments &a, const Lit &lit, const Place &p, float biased)
{
  /* The product is exact before rounding, with or without the bias. */
  return ONE_GAIN ? __fmaf_rn (biased, a.gain, -8388608.0f * a.gain)
                  : (biased - 8388608.0f) * lit.gain[p.site];
}

/* |n'.L - G|; NaN for a light that is not in the set. */
template <int FALLOFF>
static __device__ __forceinline__ float
misfit_of (const Test &t, const float3 &l, float grey, const float4 &lamp)
{
  float misfit = fabsf (
      __fmaf_rn (t.x, l.x, __fmaf_rn (t.y, l.y, __fmaf_rn (t.z, l.z, -grey))));

  return FALLOFF > 0 || lamp.w >= 0 ? misfit : NAN;
}

/* @t.hi, or where samples of the light are clipped. */
template <bool ONE_GAIN>
static __device__ __forceinline__ float
upper_of (const Arguments &a, const Lit &lit, const Place &p, const Test &t)
{
  return ONE_GAIN ? t.hi : fminf (t.hi, a.clip * lit.gain[p.site]);
}

static __device__ __forceinline__ Test
first_test (const Arguments &a)
{
  const ImkPhotostereoParams &p = a.params;
  bool limits = p.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS && !p.relative;
  Test t = {};

  t.lo = limits ? p.t_min : -INFINITY;
  t.hi = fminf (limits ? p.t_max : INFINITY, a.clip_grey);
  t.limit = INFINITY;
  return t;
}

static __device__ __forceinline__ Test
next_test (const Arguments &a, float x, float y, float z)
{
  const ImkPhotostereoParams &p = a.params;
  float unit = p.relative ? sqrtf (x * x + y * y + z * z) : 1;

  return Test{x, y, z, p.t_min * unit, fminf (p.t_max * unit, a.clip_grey),
      p.t_res * unit};
}

/* Whether there are rounds after the first. */
static __host__ __device__ __forceinline__ bool
rejects (const Arguments &a)
{
  return a.params.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS &&
         a.params.max_iterations > 1;
}

/* The set of lights of the solution after @f. */
static __device__ __forceinline__ uint32_t
next_set (const Found &f)
{
  return f.set == 0;
}

/* The first of the words of a set, a tile_size apart; @at: in the tile */
static __device__ __forceinline__ uint32_t *
words_of (const Arguments &a, uint32_t set, uint32_t at)
{
  return a.words + (size_t) set * a.n_words * a.tile_size + at;
}

/* Of a packet, that have lights: the last one has few. */
template <typename Sample>
static __device__ __forceinline__ int
halves_of (const Arguments &a, uint32_t packet)
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);

  return a.plan.n_lights - packet * LIGHTS > LIGHTS / 2 ? 2 : 1;
}

/* All lights into shared memory, by all threads of a block. */
static __device__ __forceinline__ void
load_lit (const Arguments &a, uint4 *shared)
{
  uint32_t n = a.n_packets * packet_lights (a.plan.type) *
               (uint32_t) (sizeof (Lit) / sizeof (*shared));

  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    shared[i] = ((const uint4 *) a.lit)[i];
  __syncthreads ();
}

/* ------------------------------------------------------------------------
 * Sums over the lights of a packet. */

struct LightSums {
  float xx, xy, xz, yy, yz, zz;
  float x, y, z;
};

/* Adds a light that counts, and sets its bit: it has it in @kept, and lo <
 * @grey < @hi, @misfit <= limit. By hand: of && the compiler makes branches, of
 * & bytes. The first test has no limit, and as misfit what is NaN of a light
 * that is not in the set. */
static __device__ __forceinline__ void
add_light (LightSums &s, const Test &t, float hi, const float3 &l, float grey,
    float misfit, uint32_t kept, uint32_t bit, uint32_t &bits)
{
  asm("{\n\t.reg .pred p;\n\t.reg .b32 k;\n\t"
      "and.b32 k, %19, %18;\n\t"
      "setp.ne.u32 p, k, 0;\n\t"
      "setp.gt.and.f32 p, %13, %14, p;\n\t"
      "setp.lt.and.f32 p, %13, %15, p;\n\t"
      "setp.le.and.f32 p, %16, %17, p;\n\t"
      "@p or.b32 %9, %9, %18;\n\t"
      "@p fma.rn.f32 %0, %10, %10, %0;\n\t"
      "@p fma.rn.f32 %1, %10, %11, %1;\n\t"
      "@p fma.rn.f32 %2, %10, %12, %2;\n\t"
      "@p fma.rn.f32 %3, %11, %11, %3;\n\t"
      "@p fma.rn.f32 %4, %11, %12, %4;\n\t"
      "@p fma.rn.f32 %5, %12, %12, %5;\n\t"
      "@p fma.rn.f32 %6, %10, %13, %6;\n\t"
      "@p fma.rn.f32 %7, %11, %13, %7;\n\t"
      "@p fma.rn.f32 %8, %12, %13, %8;\n\t}"
      : "+f"(s.xx), "+f"(s.xy), "+f"(s.xz), "+f"(s.yy), "+f"(s.yz), "+f"(s.zz),
      "+f"(s.x), "+f"(s.y), "+f"(s.z), "+r"(bits)
      : "f"(l.x), "f"(l.y), "f"(l.z), "f"(grey), "f"(t.lo), "f"(hi),
      "f"(misfit), "f"(t.limit), "r"(bit), "r"(kept));
}

static __device__ __forceinline__ Solution
solve_light_sums (const LightSums &s)
{
  Sums all = {s.xx, s.xy, s.xz, s.yy, s.yz, s.zz, s.x, s.y, s.z, 0};

  return solve_sums (&all);
}
