/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The solver for whatever there is: colours, calibration, lobes, Huber's
 * weights, adaptive thresholds. A thread owns a pixel and goes through all
 * lights in every round; a warp ends when its pixels do. Light vectors are
 * computed anew each round: that is cheaper than reading them. Of the
 * arithmetic of the CPU's loops it differs by fused additions and the
 * approximate reciprocal root. */
#include "core/cuda/instance.cuh"
#include "photostereo/cuda/photostereo-cuda-light.cuh"

/* ------------------------------------------------------------------------
 * From samples to grey values. */

/* A pixel of the picture, and of the store. */
struct Pixel {
  uint32_t x, y;
  size_t stored;
  uint32_t at; /* in the tile */
};

static __device__ __forceinline__ float
decode (const Arguments &a, uint32_t sample)
{
  return a.plan.table ? a.plan.table[sample] : (float) sample * a.plan.unit;
}

template <typename Sample>
static __device__ __forceinline__ uint32_t
sample_at (const Arguments &a, uint32_t light, uint32_t plane, const Pixel &at)
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);
  const Sample *packet =
      (const Sample *) packet_at (a, plane, light / LIGHTS, at.stored);

  return packet[light % LIGHTS];
}

/* A sample of one plane, calibrated and divided by the intensity of the light.
 */
static __device__ __forceinline__ float
value_of (const Arguments &a, const ImkPhotostereoLamp &lamp, uint32_t sample,
    uint32_t plane, const Pixel &at)
{
  const ImkPhotostereoPlan &p = a.plan;
  size_t pixel = ((size_t) plane * p.height + at.y) * p.width + at.x;
  float v = decode (a, sample);

  if (p.dark)
    v = fmaxf (v - p.dark[pixel], 0);
  if (p.white)
    v *= p.white[pixel];
  return v * lamp.gain[p.mosaic ? p.site[2 * (at.y & 1) + (at.x & 1)] : plane];
}

template <typename Sample>
static __device__ __forceinline__ float
value_at (const Arguments &a, const ImkPhotostereoLamp &lamp, uint32_t light,
    uint32_t plane, const Pixel &at)
{
  return value_of (a, lamp, sample_at<Sample> (a, light, plane, at), plane, at);
}

template <typename Sample>
static __device__ __forceinline__ float
find_grey (const Arguments &a, const ImkPhotostereoLamp &lamp, uint32_t light,
    const Pixel &at)
{
  const ImkPhotostereoPlan &p = a.plan;
  bool clipped = false;
  float grey = 0;

  for (uint32_t k = 0; k < p.n_planes; k++) {
    uint32_t sample = sample_at<Sample> (a, light, k, at);

    grey += p.weight[k] * value_of (a, lamp, sample, k, at);
    clipped |= (float) sample > a.clip;
  }
  return clipped ? IMK_PHOTOSTEREO_CLIPPED : grey;
}

/* Of several planes grey values are found once, for all rounds. */
template <typename Sample>
static __device__ __forceinline__ void
fill_grey (const Arguments &a, const Pixel &at)
{
  for (uint32_t j = 0; j < a.n_lights; j++)
    a.grey[j * a.tile_size + at.at] =
        find_grey<Sample> (a, a.plan.lamps[a.lights[j]], a.lights[j], at);
}

/* Of the @j-th light of the set. */
template <typename Sample>
static __device__ __forceinline__ float
grey_at (const Arguments &a, const ImkPhotostereoLamp &lamp, uint32_t j,
    const Pixel &at)
{
  return a.grey ? a.grey[j * a.tile_size + at.at]
                : find_grey<Sample> (a, lamp, a.lights[j], at);
}

/* ------------------------------------------------------------------------
 * Rounds. */

struct State {
  Test test; /* used for this solution */
  Solution solution;
  float n, rounds;
  uint32_t set; /* index of the set of lights of the solution, 0 or 1 */
  bool valid;
};

enum Solver { READMIT, DROP, HUBER };

static Solver
solver_of (const ImkPhotostereoParams &p)
{
  if (p.robust == IMK_PHOTOSTEREO_ROBUST_HUBER)
    return HUBER;
  return p.robust == IMK_PHOTOSTEREO_ROBUST_NONE || p.readmit
             ? READMIT /* without thresholds of one round */
             : DROP;
}

/* The light vector of one lamp at a pixel. */
static __device__ __forceinline__ void
light_vector (const ImkPhotostereoPlan &p, const ImkPhotostereoLamp &lamp,
    const Pixel &at, float &x, float &y, float &z)
{
  float vx = lamp.x - ((float) at.x - p.centre_x) * p.pitch_x;
  float vy = lamp.y - ((float) at.y - p.centre_y) * p.pitch_y;
  float yz = vy * vy + lamp.z * lamp.z, k = lamp.scale;

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

/* Returns: the weight of a light, 0 to 1 */
template <Solver SOLVER>
static __device__ __forceinline__ float
weigh (const Test &t, float grey, float residual)
{
  float size = fabsf (residual);

  if (SOLVER == HUBER)
    return grey >= IMK_PHOTOSTEREO_CLIPPED ? 0
           : t.limit < size                ? t.limit / size
                                           : 1;
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

/* One round. @first: no light has been left out yet */
template <typename Sample, Solver SOLVER>
static __device__ __forceinline__ Sums
sweep (const Arguments &a, const Test &t, uint32_t set, bool first,
    const Pixel &at)
{
  uint32_t kept = ~0u, stay = 0;
  Sums sums = {};

  for (uint32_t j = 0; j < a.n_lights; j++) {
    uint32_t light = a.lights[j];
    const ImkPhotostereoLamp &lamp = a.plan.lamps[light];
    float grey = grey_at<Sample> (a, lamp, j, at), x, y, z, w;

    if (SOLVER == DROP && j % 32 == 0) {
      kept = first ? ~0u : words_of (a, set, at.at)[j / 32 * a.tile_size];
      stay = 0;
    }
    light_vector (a.plan, lamp, at, x, y, z);
    w = weigh<SOLVER> (t, grey,
        __fmaf_rn (t.x, x, __fmaf_rn (t.y, y, __fmaf_rn (t.z, z, -grey))));
    if (SOLVER == DROP) {
      w = kept >> (j % 32) & 1 ? w : 0;
      stay |= (uint32_t) (w > 0) << (j % 32);
      if (j % 32 == 31 || j + 1 == a.n_lights)
        words_of (a, !set, at.at)[j / 32 * a.tile_size] = stay;
    }
    add_to (sums, w, x, y, z, grey);
  }
  return sums;
}

/* Returns: the weight of the @j-th light of the set in the solution
 * @x, @y, @z: its light vector */
template <Solver SOLVER>
static __device__ __forceinline__ float
weigh_solution (const Arguments &a, const State &s, uint32_t j, const Pixel &at,
    float grey, float x, float y, float z)
{
  const Test &t = s.test;
  float w = weigh<SOLVER> (t, grey,
      __fmaf_rn (t.x, x, __fmaf_rn (t.y, y, __fmaf_rn (t.z, z, -grey))));
  bool counts =
      SOLVER != DROP ||
      words_of (a, s.set, at.at)[j / 32 * a.tile_size] >> (j % 32) & 1;

  return counts ? w : 0;
}

/* Returns: the mean square residual of the solution, of the lights that are
 * darker than predicted */
template <typename Sample, Solver SOLVER>
static __device__ __noinline__ float
mean_square (const Arguments &a, const State &s, const Pixel &at)
{
  float rr = 0, n = 0;

  for (uint32_t j = 0; j < a.n_lights; j++) {
    const ImkPhotostereoLamp &lamp = a.plan.lamps[a.lights[j]];
    float grey = grey_at<Sample> (a, lamp, j, at), x, y, z, w, r;

    light_vector (a.plan, lamp, at, x, y, z);
    w = weigh_solution<SOLVER> (a, s, j, at, grey, x, y, z);
    r = s.solution.x * x + s.solution.y * y + s.solution.z * z - grey;
    w = r > 0 ? w : 0;
    n += w;
    rr += w * r * r;
  }
  return rr / fmaxf (n, 1);
}

/* Of the grey values that are not clipped, as on the CPU. */
template <typename Sample>
static __device__ __noinline__ float
third_brightest (const Arguments &a, const Pixel &at)
{
  float first = 0, second = 0, third = 0;

  for (uint32_t j = 0; j < a.n_lights; j++) {
    float v = grey_at<Sample> (a, a.plan.lamps[a.lights[j]], j, at), less;

    v = v < IMK_PHOTOSTEREO_CLIPPED ? v : 0;
    less = fminf (v, first);
    first = fmaxf (v, first);
    third = fmaxf (fminf (less, second), third);
    second = fmaxf (less, second);
  }
  return third;
}

template <typename Sample>
static __device__ __forceinline__ Test
first_test (const Arguments &a, const Pixel &at)
{
  const ImkPhotostereoParams &p = a.params;
  bool limits = p.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS && !p.relative;
  Test t = {};

  t.lo = p.adaptive ? p.t_min * third_brightest<Sample> (a, at)
         : limits   ? p.t_min
                    : -INFINITY;
  t.hi = limits ? p.t_max : IMK_PHOTOSTEREO_CLIPPED;
  t.limit = INFINITY;
  return t;
}

template <typename Sample, Solver SOLVER>
static __device__ __forceinline__ Test
next_test (const Arguments &a, const State &state, const Pixel &at)
{
  const ImkPhotostereoParams &p = a.params;
  const Solution &s = state.solution;
  float unit = p.relative ? sqrtf (s.norm2) : 1;
  Test t = {s.x, s.y, s.z, p.t_min * unit, p.t_max * unit, p.t_res * unit};

  if (SOLVER != HUBER && p.adaptive)
    t.limit =
        fmaxf (t.limit, IMK_PHOTOSTEREO_RESIDUAL_FACTOR *
                            sqrtf (mean_square<Sample, SOLVER> (a, state, at)));
  return t;
}

static __device__ __forceinline__ bool
is_same (const Solution &a, const Solution &b, Solver solver)
{
  float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;

  if (solver == HUBER)
    return x * x + y * y + z * z <= 1e-8f * b.norm2;
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

template <typename Sample, Solver SOLVER>
static __device__ __forceinline__ State
solve_rounds (const Arguments &a, const Pixel &at)
{
  const ImkPhotostereoParams &p = a.params;
  float min_lights = (float) min (p.min_lights, a.n_lights);
  State state = {};
  bool active;
  Sums sums;

  if (a.n_lights < 3 || !is_wanted (a, at.x, at.y))
    return state;
  if (a.grey)
    fill_grey<Sample> (a, at);
  state.test = first_test<Sample> (a, at);
  sums = sweep<Sample, SOLVER> (a, state.test, 0, true, at);
  state.solution = solve_sums (&sums);
  state.n = sums.n;
  state.rounds = 1;
  state.set = 1;
  state.valid = is_good (state.solution, sums.n, 3, p.min_condition);
  active = state.valid && p.robust != IMK_PHOTOSTEREO_ROBUST_NONE;
  for (uint32_t round = 1; round < p.max_iterations && active; round++) {
    Test test = next_test<Sample, SOLVER> (a, state, at);
    Solution s;

    sums = sweep<Sample, SOLVER> (a, test, state.set, false, at);
    s = solve_sums (&sums);
    active = is_good (s, sums.n, min_lights, p.min_condition);
    if (active) {
      active = !is_same (state.solution, s, SOLVER);
      state.test = test;
      state.solution = s;
      state.n = sums.n;
      state.set ^= 1;
      state.rounds += active;
    }
  }
  return state;
}

/* ------------------------------------------------------------------------
 * One pixel of a solution. */

/* Albedo of colours and the residual: over the lights of the solution. */
template <typename Sample, Solver SOLVER, int PLANES>
static __device__ __noinline__ void
measure (
    const Arguments &a, const State &s, const Pixel &at, ResultOf<PLANES> &r)
{
  const ImkPhotostereoPlan &p = a.plan;
  float si[PLANES] = {}, ss = 0, rr = 0, length = sqrtf (s.solution.norm2);

  for (uint32_t j = 0; j < a.n_lights; j++) {
    uint32_t light = a.lights[j];
    const ImkPhotostereoLamp &lamp = p.lamps[light];
    float grey = grey_at<Sample> (a, lamp, j, at);
    float x, y, z, predicted, w;

    light_vector (p, lamp, at, x, y, z);
    w = weigh_solution<SOLVER> (a, s, j, at, grey, x, y, z);
    predicted = s.solution.x * x + s.solution.y * y + s.solution.z * z;
    rr += w * (predicted - grey) * (predicted - grey);
    ss += w * predicted * predicted;
    for (uint32_t k = 0; k < PLANES && k < p.n_planes && p.n_planes > 1; k++)
      si[k] += w * predicted * value_at<Sample> (a, lamp, light, k, at);
  }
  for (uint32_t k = 0; k < PLANES && k < p.n_planes && p.n_planes > 1; k++)
    r.albedo[k] = si[k] / ss * length;
  r.quality[IMK_PHOTOSTEREO_RESIDUAL] = sqrtf (rr / s.n);
}

template <typename Sample, int PLANES>
static __device__ __forceinline__ void
find_ambient (const Arguments &a, const Pixel &at, ResultOf<PLANES> &r)
{
  for (uint32_t j = 0; j < a.n_lights; j++)
    for (uint32_t k = 0; k < PLANES && k < a.plan.n_planes; k++)
      r.ambient[k] +=
          value_at<Sample> (a, a.plan.lamps[a.lights[j]], a.lights[j], k, at);
  for (uint32_t k = 0; k < PLANES && k < a.plan.n_planes && a.n_lights; k++)
    r.ambient[k] /= (float) a.n_lights;
}

template <typename Sample, Solver SOLVER, int PLANES>
static __global__ void
__launch_bounds__ (THREADS) solve_pixels (const __grid_constant__ Arguments a)
{
  uint32_t x = blockIdx.x * THREADS + threadIdx.x;
  uint32_t y = a.tile_row + blockIdx.y;
  Row row = {};

  if (x < a.plan.width) {
    Pixel at = {x, y, (size_t) (y - a.first_row) * a.plan.width + x,
        blockIdx.y * a.plan.width + x};
    State s = solve_rounds<Sample, SOLVER> (a, at);
    ResultOf<PLANES> r = {};

    if (s.valid) {
      const float n[] = {s.solution.x, s.solution.y, s.solution.z};

      fill_result (n, s.n, s.rounds, s.solution.condition, r);
      if (a.measures)
        measure<Sample, SOLVER> (a, s, at, r);
    }
    if (a.out.ambient.data)
      find_ambient<Sample> (a, at, r);
    store_result (a, x, y, r, row);
  }
  add_row (&a.rows[y], row);
}

ImkStatus
imk_photostereo_cuda_solve_general (
    const Arguments *a, cudaStream_t stream, ImkError *error)
{
  const auto kernel = instance (
      [] (auto type, auto solver, auto planes) {
        return solve_pixels<SampleOf<type>, solver, planes>;
      },
      OneOf<IMK_TYPE_U8, IMK_TYPE_U16>{a->plan.type},
      OneOf<HUBER, DROP, READMIT>{solver_of (a->params)},
      OneOf<3, IMK_PHOTOSTEREO_MAX_PLANES>{
          a->plan.n_planes <= 3 ? 3 : IMK_PHOTOSTEREO_MAX_PLANES});
  cudaLaunchConfig_t launch = launch_of (a->plan.width, a->tile_rows, stream);

  return IMK_CUDA_LAUNCH (error, launch, kernel, *a);
}
