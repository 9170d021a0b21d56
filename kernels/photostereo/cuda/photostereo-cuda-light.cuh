/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernels of the fast solver share: lights, pixels, sums, and which
 * light counts. */
#pragma once

#include "photostereo/cuda/photostereo-cuda.cuh"

enum {
  N_PIXELS = 2,      /* for each thread, to reuse the data of a light */
  SHARED = 48 << 10, /* shared memory that every device has for a block */
};

/* ------------------------------------------------------------------------
 * A light and a pixel. */

struct Place {
  float x, y;
  float length2; /* x^2 + y^2 */
  uint32_t site; /* colour of the pixel, where it is a mosaic */
  float u;       /* pixels to the right of the middle of its segment */
};

/* Which lights count: lo < G < hi and |n'.L - G| <= limit. */
struct Test {
  float x, y, z;
  float offset; /* -n'.x */
  float lo, hi, limit;
};

static __device__ __forceinline__ Place
place_of (const Arguments &a, uint32_t pixel)
{
  const ImkPhotostereoPlan &p = a.plan;
  uint32_t y = pixel / p.width, x = pixel - y * p.width;
  Place place = {};

  y += a.tile_row;
  place.x = ((float) x - p.centre_x) * a.unit_x;
  place.y = ((float) y - p.centre_y) * a.unit_y;
  place.length2 = place.x * place.x + place.y * place.y;
  place.site = p.mosaic ? p.site[2 * (y & 1) + (x & 1)] : 0;
  return place;
}

static __device__ __forceinline__ float
fast_rsqrt (float x)
{
  float y;

  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* k of L = k (s - x). */
template <int FALLOFF>
static __device__ __forceinline__ float
factor_of (const float4 &lamp, const Place &p)
{
  if constexpr (FALLOFF == 0)
    return 1;
  /* |s|^2 - 2 s.x + |x|^2 */
  float r = fast_rsqrt (__fmaf_rn (
      -2 * p.x, lamp.x, __fmaf_rn (-2 * p.y, lamp.y, lamp.w + p.length2)));

  return FALLOFF == 3 ? r * r * r : r;
}

/* 2^23 as a float, which biased_of () takes from a register: an instruction has
 * room for one constant, and what the compiler knows to be one it would move
 * into a register for each sample anew. */
static __device__ __forceinline__ uint32_t
load_bias (const Arguments &a)
{
  return 0x4b000000u + a.counters[ZERO];
}

/* k over a segment of a row: c.x + c.y u + c.z u^2, in a third of the
 * instructions. */
static __device__ __forceinline__ float
smooth_factor (const float4 &c, const Place &p)
{
  return __fmaf_rn (p.u, __fmaf_rn (p.u, c.z, c.y), c.x);
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
misfit_of (
    const Test &t, float x, float y, float z, float grey, const float4 &lamp)
{
  float misfit =
      fabsf (__fmaf_rn (t.x, x, __fmaf_rn (t.y, y, __fmaf_rn (t.z, z, -grey))));

  return FALLOFF > 0 || lamp.w >= 0 ? misfit : NAN;
}

/* The same, with @along = n'.(s - x). */
template <int FALLOFF>
static __device__ __forceinline__ float
misfit_of (float along, float grey, float k, const float4 &lamp)
{
  if (FALLOFF == 0)
    along = lamp.w >= 0 ? along : NAN;
  return fabsf (__fmaf_rn (k, along, -grey));
}

/* @t.hi, or where samples of the light are clipped. */
template <bool ONE_GAIN>
static __device__ __forceinline__ float
upper_of (const Arguments &a, const Lit &lit, const Place &p, const Test &t)
{
  return ONE_GAIN ? t.hi : fminf (t.hi, a.clip * lit.gain[p.site]);
}

/* Sets bit @j of @bits where a light counts. By hand: of && the compiler makes
 * branches, of & bytes. @hi: upper_of () */
static __device__ __forceinline__ void
mark (const Test &t, float hi, float grey, float misfit, uint32_t j,
    uint32_t &bits)
{
  asm("{\n\t.reg .pred p;\n\t"
      "setp.gt.f32 p, %1, %2;\n\t"
      "setp.lt.and.f32 p, %1, %3, p;\n\t"
      "setp.le.and.f32 p, %4, %5, p;\n\t"
      "@p or.b32 %0, %0, %6;\n\t}"
      : "+r"(bits)
      : "f"(grey), "f"(t.lo), "f"(hi), "f"(misfit), "f"(t.limit), "r"(1u << j));
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
next_test (const Arguments &a, const Solution &s, const Place &place)
{
  const ImkPhotostereoParams &p = a.params;
  float unit = p.relative ? sqrtf (s.norm2) : 1;

  return Test{s.x, s.y, s.z, -(s.x * place.x + s.y * place.y), p.t_min * unit,
      fminf (p.t_max * unit, a.clip_grey), p.t_res * unit};
}

/* Of a packet, that have lights: the last one has few. */
template <typename Sample>
static __device__ __forceinline__ int
halves_of (const Arguments &a, uint32_t packet)
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);

  return a.plan.n_lights - packet * LIGHTS > LIGHTS / 2 ? 2 : 1;
}

/* @lit: in shared memory, by all threads of a block. */
static __device__ __forceinline__ void
load_lit (const Arguments &a, float4 *lit)
{
  uint32_t n = a.n_packets * packet_lights (a.plan.type) *
               (uint32_t) (sizeof (Lit) / sizeof (float4));

  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
    lit[i] = ((const float4 *) a.lit)[i];
  __syncthreads ();
}

static __device__ __forceinline__ const Lit *
shared_lit ()
{
  extern __shared__ float4 lit[];

  return (const Lit *) lit;
}

/* ------------------------------------------------------------------------
 * Sums over the lights of a packet. */

struct LightSums {
  float xx, xy, xz, yy, yz, zz;
  float x, y, z;
};

/* mark (), and adds a light that counts. The first test has no limit, and as
 * misfit what is NaN of a light that is not in the set. */
static __device__ __forceinline__ void
add_light (LightSums &s, const Test &t, float hi, float x, float y, float z,
    float grey, float misfit, uint32_t j, uint32_t &bits)
{
  asm("{\n\t.reg .pred p;\n\t"
      "setp.gt.f32 p, %13, %14;\n\t"
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
      : "f"(x), "f"(y), "f"(z), "f"(grey), "f"(t.lo), "f"(hi), "f"(misfit),
      "f"(t.limit), "r"(1u << j));
}

static __device__ __forceinline__ void
load_sums (const float *from, size_t stride, LightSums &s)
{
  float *to = (float *) &s;

#pragma unroll
  for (int i = 0; i < 9; i++)
    to[i] = from[i * stride];
}

template <typename Real>
static __device__ __forceinline__ void
store_sums (Real *to, size_t stride, const LightSums &s)
{
  const float *from = (const float *) &s;

#pragma unroll
  for (int i = 0; i < 9; i++)
    to[i * stride] = from[i];
}

static __device__ __forceinline__ Solution
solve_light_sums (const LightSums &s)
{
  Sums all = {s.xx, s.xy, s.xz, s.yy, s.yz, s.zz, s.x, s.y, s.z, 0};

  return solve_sums (&all);
}

static __device__ __forceinline__ void
store_state (const Arguments &a, size_t at, const Solution &s, const Found &f)
{
  a.states[at] = s.x;
  a.states[a.tile_size + at] = s.y;
  a.states[2 * a.tile_size + at] = s.z;
  a.states[3 * a.tile_size + at] = s.condition;
  a.found[at] = found_pack (f);
}

/* Appends @at to the list, for the lanes with @more. */
static __device__ __forceinline__ void
append (const Arguments &a, bool more, uint32_t at)
{
  uint32_t lanes = __ballot_sync (~0u, more), base = 0;

  if (threadIdx.x % 32 == 0 && lanes)
    base = atomicAdd (&a.counters[LISTED], __popc (lanes));
  base = __shfl_sync (~0u, base, 0);
  if (more)
    a.list[base + __popc (lanes & ((1u << threadIdx.x % 32) - 1))] = at;
}
