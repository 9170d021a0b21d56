/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures are kept on the device as they come, a plane after another. One
 * launch solves: a thread owns one to four pixels side by side and goes
 * through the lights once a round, for all of them with the same lamp, so that
 * neither sums nor samples leave the registers; a warp ends when its pixels
 * do. Light vectors are computed anew each round: that is cheaper than reading
 * them. Of the arithmetic of the CPU's loops it differs by fused additions and
 * the approximate reciprocal root. */
#include <cstdlib>
#include <cstring>

#include "core/cuda-check.h"
#include "photostereo/photostereo-pixel.h"

enum {
  THREADS = 128,
  PITCH = 128,    /* bytes; rows of samples begin at multiples */
  PIXELS = 2,     /* of a thread; even, for mosaics */
  MAX_LIT = 1024, /* lights that fit into shared memory */
};

/* Sums of a row of pixels; integers, because threads come in any order. */
struct Row {
  unsigned long long n_pixels, n_invalid, n_changes;
  unsigned long long lights, rounds;
  unsigned long long change; /* degrees times CHANGE_UNIT */
};

#define CHANGE_UNIT 4294967296.0

struct Arguments {
  ImkPhotostereoPlan plan; /* its tables are on the device */
  ImkPhotostereoParams params;
  const uint32_t *lights; /* of the set, on the device */
  uint32_t n_lights;
  bool compare, measures;

  const uint8_t *samples;  /* [light][plane][height][pitch] */
  size_t pitch;            /* bytes */
  float *albedo, *ambient; /* [height][width], of a mosaic */
  float *normals;          /* [height][width][3], of the last solution */
  /* which lights may still count where they do not come back, a bit each; two
   * sets, so that a solution that fails leaves the last one:
   * [2][word][height][width] */
  uint32_t *kept;
  Row *rows;
  ImkPhotostereoOutputs out;
};

struct Cuda {
  Arguments arguments;
  uint8_t *samples;
  float *floats;   /* albedo, ambient, normals */
  uint8_t *tables; /* all that create () was given */
  uint32_t *kept;
  uint32_t *lights;
  float *probes;
  Row *host_rows; /* page-locked */
};

#define REAL float
#define NAME(x) x
#define INLINE static __device__ __forceinline__
#include "photostereo/photostereo-solve.h"

/* ------------------------------------------------------------------------
 * From samples to grey values. */

static __device__ __forceinline__ float
decode (const Arguments &a, uint32_t sample)
{
  return a.plan.table ? a.plan.table[sample] : (float) sample * a.plan.unit;
}

template <typename Sample>
static __device__ __forceinline__ const Sample *
samples_at (
    const Arguments &a, uint32_t light, uint32_t plane, uint32_t x, uint32_t y)
{
  size_t row = ((size_t) light * a.plan.n_planes + plane) * a.plan.height + y;

  return (const Sample *) (a.samples + row * a.pitch) + x;
}

/* A calibrated sample of one plane, divided by the intensity of the light. */
template <typename Sample>
static __device__ __forceinline__ float
value_at (const Arguments &a, const ImkPhotostereoLamp &lamp, uint32_t light,
    uint32_t plane, uint32_t x, uint32_t y)
{
  const ImkPhotostereoPlan &p = a.plan;
  size_t at = ((size_t) plane * p.height + y) * p.width + x;
  float v = decode (a, *samples_at<Sample> (a, light, plane, x, y));

  if (p.dark)
    v = fmaxf (v - p.dark[at], 0);
  if (p.white)
    v *= p.white[at];
  return v * lamp.gain[p.mosaic ? p.site[2 * (y & 1) + (x & 1)] : plane];
}

/* ------------------------------------------------------------------------
 * Pixels of a thread. */

/* Which lights count, as on the CPU. */
struct Test {
  float x, y, z;
  float lo, hi, limit;
};

struct State {
  Test test; /* that the solution was found with */
  Solution solution;
  float n, rounds;
  uint32_t set; /* of the two kept sets, the one of the solution */
  bool valid;
};

enum Solver { READMIT, DROP, HUBER };

static __host__ __device__ __forceinline__ Solver
solver_of (const ImkPhotostereoParams &p)
{
  if (p.robust == IMK_PHOTOSTEREO_ROBUST_HUBER)
    return HUBER;
  return p.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS && !p.readmit ? DROP
                                                                     : READMIT;
}

/* The light vector of one lamp at a pixel. */
static __device__ __forceinline__ void
light_vector (const ImkPhotostereoPlan &p, const ImkPhotostereoLamp &lamp,
    float pixel_x, float vy, float yz, float &x, float &y, float &z)
{
  float vx = lamp.x - pixel_x, k = lamp.scale;

  if (p.model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE) {
    float r = rsqrtf (__fmaf_rn (vx, vx, yz));

    k *= r * r * r;
  } else if (p.model == IMK_PHOTOSTEREO_MODEL_UNIT) {
    k *= rsqrtf (__fmaf_rn (vx, vx, yz));
  }
  if (p.led_lobe > 0)
    k *= imk_photostereo_lobe (&lamp, vx, vy, lamp.z, p.led_lobe);
  x = k * vx;
  y = k * vy;
  z = k * lamp.z;
}

/* Samples of N pixels side by side. With FAST there is one plane and no table
 * or frame, and rows are padded: one load does. */
template <typename Sample, bool FAST, int N>
static __device__ __forceinline__ void
read_grey (const Arguments &a, const ImkPhotostereoLamp &lamp, uint32_t light,
    uint32_t x, uint32_t y, float grey[N])
{
  const ImkPhotostereoPlan &p = a.plan;

  if constexpr (FAST) {
    struct __align__ (sizeof (Sample) * N) Word
    {
      Sample s[N];
    }
    word = *(const Word *) samples_at<Sample> (a, light, 0, x, y);

#pragma unroll
    for (int i = 0; i < N; i++)
      grey[i] = (float) word.s[i] * p.unit *
                lamp.gain[p.mosaic ? p.site[2 * (y & 1) + ((x + i) & 1)] : 0];
  } else {
    float v[IMK_PHOTOSTEREO_MAX_PLANES];

    for (uint32_t k = 0; k < p.n_planes; k++)
      v[k] = value_at<Sample> (a, lamp, light, k, x, y);
    grey[0] = p.n_planes == 1 ? v[0]
                              : p.weight[0] * v[0] + p.weight[1] * v[1] +
                                    p.weight[2] * v[2];
  }
}

static __device__ __forceinline__ uint32_t *
kept_words (
    const Arguments &a, uint32_t set, uint32_t word, uint32_t x, uint32_t y)
{
  size_t words = (a.plan.n_lights + 31) / 32;

  return a.kept +
         (((size_t) set * words + word) * a.plan.height + y) * a.plan.width + x;
}

/* Returns: the weight of a light, 0 to 1 */
template <Solver SOLVER>
static __device__ __forceinline__ float
weigh (const Test &t, float grey, float residual)
{
  float size = fabsf (residual);

  if (SOLVER == HUBER)
    return t.limit < size ? t.limit / size : 1;
  return grey > t.lo && grey < t.hi && size <= t.limit ? 1 : 0;
}

static __device__ __forceinline__ void
add_to (Sums &s, float w, float x, float y, float z, float grey)
{
  float wx = w * x, wy = w * y, wz = w * z;

  s.xx = __fmaf_rn (wx, x, s.xx);
  s.xy = __fmaf_rn (wx, y, s.xy);
  s.xz = __fmaf_rn (wx, z, s.xz);
  s.yy = __fmaf_rn (wy, y, s.yy);
  s.yz = __fmaf_rn (wy, z, s.yz);
  s.zz = __fmaf_rn (wz, z, s.zz);
  s.x = __fmaf_rn (wx, grey, s.x);
  s.y = __fmaf_rn (wy, grey, s.y);
  s.z = __fmaf_rn (wz, grey, s.z);
  s.n += w > 0;
}

/* A light as all pixels of a row see it, in shared memory: two reads of 16
 * bytes that a warp makes together. */
struct __align__ (16) Lit
{
  float x, y, z; /* of the lamp, y and z from the row */
  float yz;      /* y^2 + z^2 */
  float scale;
  float even, odd; /* what a sample of an even or odd pixel is multiplied by */
  uint32_t light;
};

/* @lit: of the lights of the set, for row @y; by all threads of a block. */
static __device__ __forceinline__ void
fill_lit (const Arguments &a, uint32_t y, Lit *lit)
{
  const ImkPhotostereoPlan &p = a.plan;
  float pixel_y = ((float) y - p.centre_y) * p.pitch_y;

  for (uint32_t j = threadIdx.x; j < a.n_lights; j += THREADS) {
    const ImkPhotostereoLamp &lamp = p.lamps[a.lights[j]];
    float vy = lamp.y - pixel_y;
    const uint8_t *site = p.site + 2 * (y & 1);

    lit[j] = Lit{lamp.x, vy, lamp.z, vy * vy + lamp.z * lamp.z, lamp.scale,
        lamp.gain[p.mosaic ? site[0] : 0] * p.unit,
        lamp.gain[p.mosaic ? site[1] : 0] * p.unit, a.lights[j]};
  }
  __syncthreads ();
}

/* The byte @i of a word as a float: the bits of 2^23 + byte, less 2^23. */
static __device__ __forceinline__ float
byte_of (uint32_t word, int i)
{
  return __uint_as_float (__byte_perm (word, 0x4b000000, 0x7540 + i)) -
         8388608.0f;
}

template <typename Sample, int N>
static __device__ __forceinline__ void
unpack (const Sample *from, float values[N])
{
  if constexpr (sizeof (Sample) == 1 && N == 4) {
    uint32_t word = *(const uint32_t *) from;

#pragma unroll
    for (int i = 0; i < N; i++)
      values[i] = byte_of (word, i);
  } else if constexpr (sizeof (Sample) == 1 && N == 2) {
    uint32_t word = *(const uint16_t *) from;

#pragma unroll
    for (int i = 0; i < N; i++)
      values[i] = byte_of (word, i);
  } else {
#pragma unroll
    for (int i = 0; i < N; i++)
      values[i] = (float) from[i];
  }
}

static __device__ __forceinline__ float
fast_rsqrt (float x)
{
  float y;

  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* sweep () where it counts: one plane, samples as they are, lamps without a
 * lobe, lights that may come back. FALLOFF: the power of 1 / |v| in k. */
template <typename Sample, int N, int FALLOFF>
static __device__ __forceinline__ void
sweep_fast (const Arguments &a, const Lit *lit, const Test test[N], uint32_t x,
    uint32_t y, Sums sums[N])
{
  const ImkPhotostereoPlan &p = a.plan;
  size_t light_size = (size_t) p.height * a.pitch;
  const uint8_t *column =
      a.samples + (size_t) y * a.pitch + x * sizeof (Sample);
  float pixel_x[N];

#pragma unroll
  for (int i = 0; i < N; i++) {
    sums[i] = Sums{};
    pixel_x[i] = ((float) (x + i) - p.centre_x) * p.pitch_x;
  }
#pragma unroll 4
  for (uint32_t j = 0; j < a.n_lights; j++) {
    const Lit l = lit[j];
    float samples[N];

    unpack<Sample, N> (
        (const Sample *) (column + l.light * light_size), samples);
#pragma unroll
    for (int i = 0; i < N; i++) {
      const Test &t = test[i];
      Sums &s = sums[i];
      float grey = samples[i] * (i & 1 ? l.odd : l.even);
      float vx = l.x - pixel_x[i], k = l.scale, lx, ly, lz, residual;

      if (FALLOFF > 0) {
        float r = fast_rsqrt (__fmaf_rn (vx, vx, l.yz));

        k *= FALLOFF == 3 ? r * r * r : r;
      }
      lx = k * vx;
      ly = k * l.y;
      lz = k * l.z;
      residual =
          __fmaf_rn (t.x, lx, __fmaf_rn (t.y, ly, __fmaf_rn (t.z, lz, -grey)));
      /* no branch: the next lights are on their way meanwhile */
      bool used = grey > t.lo && grey < t.hi && fabsf (residual) <= t.limit;
      float wx = used ? lx : 0, wy = used ? ly : 0, wz = used ? lz : 0;

      s.xx = __fmaf_rn (wx, lx, s.xx);
      s.xy = __fmaf_rn (wx, ly, s.xy);
      s.xz = __fmaf_rn (wx, lz, s.xz);
      s.yy = __fmaf_rn (wy, ly, s.yy);
      s.yz = __fmaf_rn (wy, lz, s.yz);
      s.zz = __fmaf_rn (wz, lz, s.zz);
      s.x = __fmaf_rn (wx, grey, s.x);
      s.y = __fmaf_rn (wy, grey, s.y);
      s.z = __fmaf_rn (wz, grey, s.z);
      s.n += used ? 1 : 0;
    }
  }
}

/* One round of N pixels. @first: no light has been left out yet; @real: the
 * first pixel is one of the picture. */
template <typename Sample, bool FAST, int N, Solver SOLVER>
static __device__ __forceinline__ void
sweep (const Arguments &a, const Test test[N], const State state[N], bool first,
    bool real, uint32_t x, uint32_t y, Sums sums[N])
{
  const ImkPhotostereoPlan &p = a.plan;
  float pixel_y = ((float) y - p.centre_y) * p.pitch_y;
  uint32_t kept[N] = {}, stay[N] = {};

#pragma unroll
  for (int i = 0; i < N; i++)
    sums[i] = Sums{};
  for (uint32_t j = 0; j < a.n_lights; j++) {
    uint32_t light = a.lights[j];
    const ImkPhotostereoLamp &lamp = p.lamps[light];
    float vy = lamp.y - pixel_y, yz = vy * vy + lamp.z * lamp.z, grey[N];

    if (SOLVER == DROP && j % 32 == 0)
#pragma unroll
      for (int i = 0; i < N; i++) {
        kept[i] = first ? ~0u : *kept_words (a, state[i].set, j / 32, x + i, y);
        stay[i] = 0;
      }
    read_grey<Sample, FAST, N> (a, lamp, light, x, y, grey);
#pragma unroll
    for (int i = 0; i < N; i++) {
      const Test &t = test[i];
      float lx, ly, lz, residual, w;

      light_vector (p, lamp, ((float) (x + i) - p.centre_x) * p.pitch_x, vy, yz,
          lx, ly, lz);
      residual = __fmaf_rn (
          t.x, lx, __fmaf_rn (t.y, ly, __fmaf_rn (t.z, lz, -grey[i])));
      w = weigh<SOLVER> (t, grey[i], residual);
      if (SOLVER == DROP) {
        w = kept[i] >> (j % 32) & 1 ? w : 0;
        stay[i] |= (uint32_t) (w > 0) << (j % 32);
      }
      add_to (sums[i], w, lx, ly, lz, grey[i]);
    }
    if (SOLVER == DROP && real && (j % 32 == 31 || j + 1 == a.n_lights))
#pragma unroll
      for (int i = 0; i < N; i++)
        *kept_words (a, !state[i].set, j / 32, x + i, y) = stay[i];
  }
}

static __device__ __forceinline__ Test
first_test (const ImkPhotostereoParams &p)
{
  bool limits = p.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS && !p.relative;
  Test t = {};

  t.lo = limits ? p.t_min : -INFINITY;
  t.hi = limits ? p.t_max : INFINITY;
  t.limit = INFINITY;
  return t;
}

static __device__ __forceinline__ Test
next_test (const ImkPhotostereoParams &p, const Solution &s)
{
  float unit = p.relative ? sqrtf (s.norm2) : 1;

  return Test{s.x, s.y, s.z, p.t_min * unit, p.t_max * unit, p.t_res * unit};
}

static __device__ __forceinline__ bool
is_good (const Solution &s, float n, float min_lights, float min_condition)
{
  return n >= min_lights && s.condition >= min_condition && s.norm2 > 0 &&
         s.norm2 < INFINITY;
}

static __device__ __forceinline__ bool
is_same (const Solution &a, const Solution &b, Solver solver)
{
  float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;

  if (solver == HUBER)
    return x * x + y * y + z * z <= 1e-8f * b.norm2;
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

/* One round, the way that the kernel was made for. */
template <typename Sample, bool FAST, int N, Solver SOLVER>
static __device__ __forceinline__ void
go_round (const Arguments &a, const Lit *lit, const Test test[N],
    const State state[N], bool first, bool real, uint32_t x, uint32_t y,
    Sums sums[N])
{
  if constexpr (FAST && SOLVER == READMIT) {
    if (a.plan.model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE)
      sweep_fast<Sample, N, 3> (a, lit, test, x, y, sums);
    else if (a.plan.model == IMK_PHOTOSTEREO_MODEL_UNIT)
      sweep_fast<Sample, N, 1> (a, lit, test, x, y, sums);
    else
      sweep_fast<Sample, N, 0> (a, lit, test, x, y, sums);
  } else {
    sweep<Sample, FAST, N, SOLVER> (a, test, state, first, real, x, y, sums);
  }
}

/* All rounds of N pixels; a warp stays together. */
template <typename Sample, bool FAST, int N, Solver SOLVER>
static __device__ __forceinline__ void
solve_rounds (const Arguments &a, const Lit *lit, bool real, uint32_t x,
    uint32_t y, const bool wanted[N], State state[N])
{
  const ImkPhotostereoParams &p = a.params;
  float min_lights = (float) min (p.min_lights, a.n_lights);
  bool active[N], any = false;
  Test test[N];
  Sums sums[N];

#pragma unroll
  for (int i = 0; i < N; i++) {
    state[i] = State{};
    state[i].test = test[i] = first_test (p);
    any |= wanted[i];
  }
  if (a.n_lights < 3 || !__any_sync (~0u, any))
    return;
  go_round<Sample, FAST, N, SOLVER> (
      a, lit, test, state, true, real, x, y, sums);
#pragma unroll
  for (int i = 0; i < N; i++) {
    state[i].solution = solve_sums (&sums[i]);
    state[i].n = sums[i].n;
    state[i].rounds = 1;
    state[i].set = 1;
    state[i].valid =
        wanted[i] && is_good (state[i].solution, sums[i].n, 3, p.min_condition);
    active[i] = state[i].valid && p.robust != IMK_PHOTOSTEREO_ROBUST_NONE;
  }
  for (uint32_t round = 1; round < p.max_iterations; round++) {
    any = false;
#pragma unroll
    for (int i = 0; i < N; i++) {
      any |= active[i];
      test[i] = next_test (p, state[i].solution);
    }
    if (!__any_sync (~0u, any))
      break;
    go_round<Sample, FAST, N, SOLVER> (
        a, lit, test, state, false, real, x, y, sums);
#pragma unroll
    for (int i = 0; i < N; i++) {
      Solution s = solve_sums (&sums[i]);
      bool same = is_same (state[i].solution, s, SOLVER);

      active[i] =
          active[i] && is_good (s, sums[i].n, min_lights, p.min_condition);
      if (active[i]) {
        state[i].test = test[i];
        state[i].solution = s;
        state[i].n = sums[i].n;
        state[i].set ^= 1;
        active[i] = !same;
        state[i].rounds += !same;
      }
    }
  }
}

/* ------------------------------------------------------------------------
 * One pixel of a solution. */

struct Result {
  float normal[3];
  float albedo[4], ambient[4]; /* the last is no colour */
  float quality[IMK_PHOTOSTEREO_N_QUALITIES];
};

/* Albedo of colours and the residual: over the lights of the solution. */
template <typename Sample, bool FAST, Solver SOLVER>
static __device__ __noinline__ void
measure (const Arguments &a, const State &s, uint32_t x, uint32_t y, Result &r)
{
  const ImkPhotostereoPlan &p = a.plan;
  float pixel_y = ((float) y - p.centre_y) * p.pitch_y;
  float si[3] = {}, ss = 0, rr = 0, length = sqrtf (s.solution.norm2);

  for (uint32_t j = 0; j < a.n_lights; j++) {
    uint32_t light = a.lights[j];
    const ImkPhotostereoLamp &lamp = p.lamps[light];
    float vy = lamp.y - pixel_y, yz = vy * vy + lamp.z * lamp.z;
    float grey[1], lx, ly, lz, predicted, residual, w;

    read_grey<Sample, FAST, 1> (a, lamp, light, x, y, grey);
    light_vector (
        p, lamp, ((float) x - p.centre_x) * p.pitch_x, vy, yz, lx, ly, lz);
    residual = __fmaf_rn (s.test.x, lx,
        __fmaf_rn (s.test.y, ly, __fmaf_rn (s.test.z, lz, -grey[0])));
    w = weigh<SOLVER> (s.test, grey[0], residual);
    if (SOLVER == DROP)
      w = *kept_words (a, s.set, j / 32, x, y) >> (j % 32) & 1 ? w : 0;
    predicted = s.solution.x * lx + s.solution.y * ly + s.solution.z * lz;
    rr += w * (predicted - grey[0]) * (predicted - grey[0]);
    ss += w * predicted * predicted;
    for (uint32_t k = 0; k < 3 && p.n_planes == 3; k++)
      si[k] += w * predicted * value_at<Sample> (a, lamp, light, k, x, y);
  }
  for (int k = 0; k < 3 && p.n_planes == 3; k++)
    r.albedo[k] = si[k] / ss * length;
  r.quality[IMK_PHOTOSTEREO_RESIDUAL] = sqrtf (rr / s.n);
}

template <typename Sample>
static __device__ __forceinline__ void
find_ambient (const Arguments &a, uint32_t x, uint32_t y, Result &r)
{
  for (uint32_t j = 0; j < a.n_lights; j++)
    for (uint32_t k = 0; k < a.plan.n_planes; k++)
      r.ambient[k] +=
          value_at<Sample> (a, a.plan.lamps[a.lights[j]], a.lights[j], k, x, y);
  for (uint32_t k = 0; k < a.plan.n_planes && a.n_lights; k++)
    r.ambient[k] /= (float) a.n_lights;
}

static __device__ __forceinline__ void
store_result (
    const Arguments &a, uint32_t x, uint32_t y, const Result &r, Row &row)
{
  size_t at = (size_t) y * a.plan.width + x;
  bool valid = r.quality[IMK_PHOTOSTEREO_LIGHTS] > 0;

  if (a.out.normal.data)
    imk_photostereo_store_normal (
        &a.out.normal, x, y, r.normal, a.params.y_down);
  if (a.out.quality.data)
    imk_photostereo_store_quality (&a.out.quality, x, y, r.quality);
  if (a.plan.mosaic) {
    a.albedo[at] = r.albedo[0];
    a.ambient[at] = r.ambient[0];
  } else {
    if (a.out.albedo.data)
      imk_photostereo_store_colours (&a.out.albedo, x, y, r.albedo);
    if (a.out.ambient.data)
      imk_photostereo_store_colours (&a.out.ambient, x, y, r.ambient);
  }
  if (!a.plan.mask || a.plan.mask[at]) {
    row.n_pixels++;
    row.n_invalid += !valid;
    row.lights += (unsigned) r.quality[IMK_PHOTOSTEREO_LIGHTS];
    row.rounds += (unsigned) r.quality[IMK_PHOTOSTEREO_ROUNDS];
  }
  if (a.normals) {
    float *last = a.normals + 3 * at;

    if (a.compare && valid && (last[0] != 0 || last[1] != 0 || last[2] != 0)) {
      row.change +=
          (unsigned long long) (imk_photostereo_angle (r.normal, last) *
                                CHANGE_UNIT);
      row.n_changes++;
    }
    for (int k = 0; k < 3; k++)
      last[k] = r.normal[k];
  }
}

/* Adds the sums of a warp, whose pixels are in one row. */
static __device__ __forceinline__ void
add_row (Row *to, Row row)
{
  unsigned long long *from = (unsigned long long *) &row;

#pragma unroll
  for (uint32_t i = 0; i < sizeof (Row) / sizeof (*from); i++) {
    unsigned long long sum = from[i];

    for (int step = 16; step > 0; step /= 2)
      sum += __shfl_down_sync (~0u, sum, step);
    if (threadIdx.x % 32 == 0 && sum)
      atomicAdd ((unsigned long long *) to + i, sum);
  }
}

template <typename Sample, bool FAST, int N, Solver SOLVER>
static __global__ void
__launch_bounds__ (THREADS, 5)
    solve_pixels (const __grid_constant__ Arguments a)
{
  uint32_t x = (blockIdx.x * THREADS + threadIdx.x) * N, y = blockIdx.y;
  const ImkPhotostereoPlan &p = a.plan;
  uint32_t inside = x < p.width ? x : 0; /* others look at what is there */
  extern __shared__ Lit lit[];
  bool wanted[N];
  State state[N];
  Row row = {};

#pragma unroll
  for (int i = 0; i < N; i++)
    wanted[i] =
        x + i < p.width && (!p.mask || p.mask[(size_t) y * p.width + x + i]);
  if (FAST && SOLVER == READMIT)
    fill_lit (a, y, lit);
  solve_rounds<Sample, FAST, N, SOLVER> (
      a, lit, x < p.width, inside, y, wanted, state);
#pragma unroll
  for (int i = 0; i < N; i++) {
    const State &s = state[i];
    Result r = {};

    if (x + i >= p.width)
      break;
    if (s.valid) {
      float length = sqrtf (s.solution.norm2);

      r.normal[0] = s.solution.x / length;
      r.normal[1] = s.solution.y / length;
      r.normal[2] = s.solution.z / length;
      r.albedo[0] = length;
      r.quality[IMK_PHOTOSTEREO_LIGHTS] = s.n;
      r.quality[IMK_PHOTOSTEREO_ROUNDS] = s.rounds;
      r.quality[IMK_PHOTOSTEREO_CONDITION] = s.solution.condition;
      if (a.measures)
        measure<Sample, FAST, SOLVER> (a, s, x + i, y, r);
    }
    if (a.out.ambient.data)
      find_ambient<Sample> (a, x + i, y, r);
    store_result (a, x + i, y, r, row);
  }
  add_row (&a.rows[y], row);
}

/* Colours of a mosaic, once all of it is there. */
static __global__ void
store_mosaic (const __grid_constant__ Arguments a)
{
  uint32_t x = blockIdx.x * THREADS + threadIdx.x, y = blockIdx.y;
  const ImkPhotostereoPlan &p = a.plan;
  float v[4] = {};

  if (x >= p.width)
    return;
  if (a.out.albedo.data) {
    bool valid = a.albedo[(size_t) y * p.width + x] != 0;

    for (uint32_t k = 0; k < 3; k++)
      v[k] = valid ? imk_photostereo_colour_at (
                         a.albedo, p.width, p.height, p.site, x, y, k, true)
                   : 0;
    imk_photostereo_store_colours (&a.out.albedo, x, y, v);
  }
  if (a.out.ambient.data) {
    for (uint32_t k = 0; k < 3; k++)
      v[k] = imk_photostereo_colour_at (
          a.ambient, p.width, p.height, p.site, x, y, k, false);
    imk_photostereo_store_colours (&a.out.ambient, x, y, v);
  }
}

/* ------------------------------------------------------------------------
 * Pictures that come as colours. */

template <typename Sample>
static __global__ void
put_planes (
    const __grid_constant__ Arguments a, const ImkImage frame, uint32_t light)
{
  uint32_t x = blockIdx.x * THREADS + threadIdx.x, y = blockIdx.y;
  const ImkPhotostereoPlan &p = a.plan;

  if (x >= p.width)
    return;
  for (uint32_t plane = 0; plane < 3; plane++) {
    uint32_t sum = 0, n = 0, value;

    if (!p.interpolate || p.site[2 * (y & 1) + (x & 1)] == plane) {
      const Sample *row =
          (const Sample *) ((const uint8_t *) frame.data + y * frame.stride);

      value = row[(size_t) x * p.channels + p.colours[plane]];
    } else {
      for (uint32_t v = y ? y - 1 : 0; v <= y + 1 && v < p.height; v++)
        for (uint32_t u = x ? x - 1 : 0; u <= x + 1 && u < p.width; u++)
          if (p.site[2 * (v & 1) + (u & 1)] == plane) {
            sum += ((const Sample *) ((const uint8_t *) frame.data +
                                      v * frame.stride))[u];
            n++;
          }
      value = n ? (sum + n / 2) / n : 0;
    }
    *(Sample *) samples_at<Sample> (a, light, plane, x, y) = (Sample) value;
  }
}

static __global__ void
take_probes (const __grid_constant__ Arguments a, uint32_t step_x,
    uint32_t step_y, uint32_t columns, float *to)
{
  uint32_t column = blockIdx.x * THREADS + threadIdx.x;
  uint32_t x = step_x / 2 + column * step_x;
  uint32_t y = step_y / 2 + blockIdx.y * step_y;

  if (column < columns)
    for (int k = 0; k < 3; k++)
      to[3 * ((size_t) blockIdx.y * columns + column) + k] =
          a.normals[3 * ((size_t) y * a.plan.width + x) + k];
}

/* ------------------------------------------------------------------------
 * The backend. */

static size_t
align (size_t size)
{
  return (size + 255) / 256 * 256;
}

static size_t
pixels_of (const ImkPhotostereoPlan *p)
{
  return (size_t) p->width * p->height;
}

static void
cuda_destroy (void *state)
{
  Cuda *cuda = (Cuda *) state;

  if (!cuda)
    return;
  cudaFree (cuda->samples); /* waits for kernels that use it */
  cudaFree (cuda->floats);
  cudaFree (cuda->tables);
  cudaFree (cuda->kept);
  cudaFree (cuda->lights);
  cudaFree (cuda->probes);
  cudaFree (cuda->arguments.rows);
  cudaFreeHost (cuda->host_rows);
  free (cuda);
}

/* One of the tables of the plan goes to the device. */
template <typename T>
static ImkStatus
upload (uint8_t **at, const T **table, size_t size, ImkError *error)
{
  const T *from = *table;

  if (!from)
    return IMK_OK;
  *table = (const T *) *at;
  *at += align (size);
  return IMK_CUDA (error, cudaMemcpyAsync ((void *) *table, from, size,
                              cudaMemcpyHostToDevice, cudaStreamPerThread));
}

static ImkStatus
upload_tables (Cuda *cuda, ImkError *error)
{
  ImkPhotostereoPlan *p = &cuda->arguments.plan;
  size_t lamps = p->n_lights * sizeof (*p->lamps);
  size_t table = (p->type == IMK_TYPE_U8 ? 256 : 65536) * sizeof (float);
  size_t frame = pixels_of (p) * p->n_planes * sizeof (float);
  size_t total = align (lamps) + (p->table ? align (table) : 0) +
                 (p->dark ? align (frame) : 0) +
                 (p->white ? align (frame) : 0) +
                 (p->mask ? align (pixels_of (p)) : 0);
  uint8_t *at;
  ImkStatus status =
      IMK_CUDA (error, cudaMalloc ((void **) &cuda->tables, total));

  at = cuda->tables;
  if (status == IMK_OK)
    status = upload (&at, &p->lamps, lamps, error);
  if (status == IMK_OK)
    status = upload (&at, &p->table, table, error);
  if (status == IMK_OK)
    status = upload (&at, &p->dark, frame, error);
  if (status == IMK_OK)
    status = upload (&at, &p->white, frame, error);
  if (status == IMK_OK)
    status = upload (&at, &p->mask, pixels_of (p), error);
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (cudaStreamPerThread));
  return status;
}

static size_t
kept_size (const ImkPhotostereoPlan *p)
{
  return 2 * pixels_of (p) * imk_div_up (p->n_lights, 32) * sizeof (uint32_t);
}

static size_t
n_floats (const ImkPhotostereoPlan *p)
{
  return (p->mosaic ? 2 : 0) + (p->track_change ? 3 : 0);
}

static ImkStatus
allocate (Cuda *cuda, size_t samples_size, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  const ImkPhotostereoPlan *p = &a->plan;
  size_t pixels = pixels_of (p), rows = p->height * sizeof (Row);
  size_t floats = pixels * n_floats (p) * sizeof (float);
  ImkStatus status =
      IMK_CUDA (error, cudaMalloc ((void **) &cuda->samples, samples_size));

  /* what pads a row is read, and not used */
  if (status == IMK_OK)
    status = IMK_CUDA (error,
        cudaMemsetAsync (cuda->samples, 0, samples_size, cudaStreamPerThread));
  if (status == IMK_OK && floats)
    status = IMK_CUDA (error, cudaMalloc ((void **) &cuda->floats, floats));
  if (status == IMK_OK)
    status = IMK_CUDA (error,
        cudaMalloc ((void **) &cuda->lights, p->n_lights * sizeof (uint32_t)));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaMalloc ((void **) &a->rows, rows));
  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaMallocHost ((void **) &cuda->host_rows, rows));
  a->samples = cuda->samples;
  a->lights = cuda->lights;
  a->albedo = p->mosaic ? cuda->floats : NULL;
  a->ambient = p->mosaic ? cuda->floats + pixels : NULL;
  a->normals =
      p->track_change ? cuda->floats + (p->mosaic ? 2 * pixels : 0) : NULL;
  return status;
}

/* What is left out for good has to be remembered. */
static ImkStatus
allocate_kept (Cuda *cuda, ImkError *error)
{
  ImkStatus status = IMK_OK;

  if (solver_of (cuda->arguments.params) == DROP && !cuda->kept)
    status = IMK_CUDA (error,
        cudaMalloc ((void **) &cuda->kept, kept_size (&cuda->arguments.plan)));
  cuda->arguments.kept = cuda->kept;
  return status;
}

static ImkStatus
check_memory (const Cuda *cuda, size_t samples_size, ImkError *error)
{
  const ImkPhotostereoPlan *p = &cuda->arguments.plan;
  size_t frames = (p->dark != NULL) + (p->white != NULL);
  size_t total =
      samples_size +
      pixels_of (p) * sizeof (float) * (n_floats (p) + frames * p->n_planes) +
      (solver_of (cuda->arguments.params) == DROP ? kept_size (p) : 0);

  if (!p->memory_limit || total <= p->memory_limit)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%u pictures of %ux%u need %zu MiB of device memory, of which %zu MiB "
      "are their samples; memory-limit allows %zu MiB.",
      p->n_lights, p->width, p->height, (total >> 20) + 1, samples_size >> 20,
      p->memory_limit >> 20);
}

static ImkStatus
cuda_create (const ImkPhotostereoPlan *plan, const ImkPhotostereoParams *params,
    void **state, ImkError *error)
{
  Cuda *cuda = (Cuda *) calloc (1, sizeof (*cuda));
  size_t row_size = plan->width * imk_type_size (plan->type), size;
  ImkStatus status;

  if (!cuda)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  cuda->arguments.plan = *plan;
  cuda->arguments.params = *params;
  cuda->arguments.pitch = (row_size + PITCH - 1) / PITCH * PITCH;
  size = cuda->arguments.pitch * plan->height * plan->n_planes * plan->n_lights;
  status = check_memory (cuda, size, error);
  if (status == IMK_OK)
    status = allocate (cuda, size, error);
  if (status == IMK_OK)
    status = allocate_kept (cuda, error);
  if (status == IMK_OK)
    status = upload_tables (cuda, error);
  if (status == IMK_OK)
    *state = cuda;
  else
    cuda_destroy (cuda);
  return status;
}

static ImkStatus
cuda_update (void *state, const ImkPhotostereoParams *params, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;

  cuda->arguments.params = *params;
  return allocate_kept (cuda, error);
}

static ImkStatus
cuda_add (void *state, const ImkImage *frame, uint32_t light, void *stream,
    ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  const ImkPhotostereoPlan *p = &cuda->arguments.plan;
  size_t pitch = cuda->arguments.pitch;
  cudaLaunchConfig_t launch = {};

  if (p->n_planes == 1) /* by a copy engine, while kernels run */
    return IMK_CUDA (error,
        cudaMemcpy2DAsync (cuda->samples + (size_t) light * p->height * pitch,
            pitch, frame->data, frame->stride, imk_image_row_size (frame),
            p->height, cudaMemcpyDefault, (cudaStream_t) stream));
  launch.gridDim = dim3 (imk_div_up (p->width, THREADS), p->height);
  launch.blockDim = dim3 (THREADS);
  launch.stream = (cudaStream_t) stream;
  if (p->type == IMK_TYPE_U8)
    return IMK_CUDA_LAUNCH (
        error, launch, put_planes<uint8_t>, cuda->arguments, *frame, light);
  return IMK_CUDA_LAUNCH (
      error, launch, put_planes<uint16_t>, cuda->arguments, *frame, light);
}

typedef void (*Kernel) (const Arguments);

template <typename Sample, bool FAST, int N>
static Kernel
choose_solver (Solver solver)
{
  if (solver == HUBER)
    return solve_pixels<Sample, FAST, N, HUBER>;
  if (solver == DROP)
    return solve_pixels<Sample, FAST, 1, DROP>;
  return solve_pixels<Sample, FAST, N, READMIT>;
}

/* @n: out: pixels a thread */
static Kernel
choose_kernel (const Arguments *a, uint32_t *n)
{
  const ImkPhotostereoPlan *p = &a->plan;
  bool u8 = p->type == IMK_TYPE_U8;
  bool fast = p->n_planes == 1 && !p->table && !p->dark && !p->white &&
              p->led_lobe == 0 && p->n_lights <= MAX_LIT;
  Solver solver = solver_of (a->params);

  *n = fast && solver != DROP ? PIXELS : 1;
  if (!fast)
    return u8 ? choose_solver<uint8_t, false, 1> (solver)
              : choose_solver<uint16_t, false, 1> (solver);
  return u8 ? choose_solver<uint8_t, true, PIXELS> (solver)
            : choose_solver<uint16_t, true, PIXELS> (solver);
}

static ImkStatus
fetch_rows (
    Cuda *cuda, ImkPhotostereoRow *rows, cudaStream_t stream, ImkError *error)
{
  uint32_t height = cuda->arguments.plan.height;
  ImkStatus status = IMK_CUDA (
      error, cudaMemcpyAsync (cuda->host_rows, cuda->arguments.rows,
                 height * sizeof (Row), cudaMemcpyDeviceToHost, stream));

  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (stream));
  for (uint32_t y = 0; y < height && status == IMK_OK; y++) {
    const Row *from = &cuda->host_rows[y];

    rows[y].n_pixels = (uint32_t) from->n_pixels;
    rows[y].n_invalid = (uint32_t) from->n_invalid;
    rows[y].n_changes = (uint32_t) from->n_changes;
    rows[y].lights = (double) from->lights;
    rows[y].rounds = (double) from->rounds;
    rows[y].change = (double) from->change / CHANGE_UNIT;
  }
  return status;
}

static ImkStatus
cuda_solve (void *state, const uint32_t *lights, uint32_t n_lights,
    bool compare, ImkPhotostereoOutputs *outputs, ImkPhotostereoRow *rows,
    void *stream, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  Arguments *a = &cuda->arguments;
  const ImkPhotostereoPlan *p = &a->plan;
  uint32_t n;
  Kernel kernel = choose_kernel (a, &n);
  cudaLaunchConfig_t launch = {};
  ImkStatus status;

  launch.gridDim = dim3 (imk_div_up (p->width, THREADS * n), p->height);
  launch.blockDim = dim3 (THREADS);
  launch.dynamicSmemBytes = n > 1 ? n_lights * sizeof (Lit) : 0;
  launch.stream = (cudaStream_t) stream;
  a->n_lights = n_lights;
  a->compare = compare;
  a->measures = outputs->quality.data || p->n_planes == 3;
  a->out = *outputs;
  /* pageable memory has been read when the call returns */
  status = IMK_CUDA (
      error, cudaMemcpyAsync (cuda->lights, lights, n_lights * sizeof (*lights),
                 cudaMemcpyHostToDevice, launch.stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error,
        cudaMemsetAsync (a->rows, 0, p->height * sizeof (Row), launch.stream));
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, launch, kernel, *a);
  if (status == IMK_OK && p->mosaic &&
      (outputs->albedo.data || outputs->ambient.data)) {
    launch.gridDim = dim3 (imk_div_up (p->width, THREADS), p->height);
    launch.dynamicSmemBytes = 0;
    status = IMK_CUDA_LAUNCH (error, launch, store_mosaic, *a);
  }
  if (status == IMK_OK && rows)
    status = fetch_rows (cuda, rows, launch.stream, error);
  return status;
}

static ImkStatus
cuda_probe (void *state, uint32_t step_x, uint32_t step_y, float *normals,
    void *stream, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  const ImkPhotostereoPlan *p = &cuda->arguments.plan;
  uint32_t columns = imk_div_up (p->width - step_x / 2, step_x);
  uint32_t rows = imk_div_up (p->height - step_y / 2, step_y);
  size_t size = (size_t) columns * rows * 3 * sizeof (float);
  cudaLaunchConfig_t launch = {};
  ImkStatus status = IMK_OK;

  launch.gridDim = dim3 (imk_div_up (columns, THREADS), rows);
  launch.blockDim = dim3 (THREADS);
  launch.stream = (cudaStream_t) stream;
  if (!cuda->probes)
    status = IMK_CUDA (error, cudaMalloc ((void **) &cuda->probes, size));
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, launch, take_probes, cuda->arguments,
        step_x, step_y, columns, cuda->probes);
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaMemcpyAsync (normals, cuda->probes, size,
                                  cudaMemcpyDeviceToHost, launch.stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (launch.stream));
  return status;
}

const ImkPhotostereoBackend imk_photostereo_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .update = cuda_update,
    .add = cuda_add,
    .solve = cuda_solve,
    .probe = cuda_probe,
    .destroy = cuda_destroy,
};
