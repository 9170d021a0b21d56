/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* photostereo on the device: a wavy surface with highlights, shadows and noise
 * under 260 near lamps, u8 mosaic from page-locked memory, beside the copy of
 * the samples alone; and shared by devices, each with its own bus. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#include "bench.h"
#include "imk/photostereo.h"

enum { LIGHTS = 260, BANDS = 10, REPEATS = 7 };

static cudaStream_t stream;

#define CUDA(...) check_cuda ((__VA_ARGS__), #__VA_ARGS__)

static void
check_cuda (cudaError_t result, const char *call)
{
  if (result != cudaSuccess)
    bench_fail ("%s: %s", call, cudaGetErrorString (result));
}

/* --- pictures ------------------------------------------------------------- */

static __device__ float3
unit (float x, float y, float z)
{
  float r = rsqrtf (x * x + y * y + z * z);

  return float3{x * r, y * r, z * r};
}

static __global__ void
render (uint8_t *to, uint32_t width, uint32_t height, float3 l, uint32_t seed)
{
  uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  uint32_t noise = (y * width + x) * 2654435761u + seed * 40503u;

  if (x >= width)
    return;
  float3 n = unit (0.6f * sinf (x * 0.02f), 0.6f * cosf (y * 0.017f), 1);
  float3 h = unit (l.x, l.y, l.z + 1);
  float diffuse = fmaxf (n.x * l.x + n.y * l.y + n.z * l.z, 0);
  float shine = powf (fmaxf (n.x * h.x + n.y * h.y + n.z * h.z, 0), 32);
  float v = 120 * diffuse + (diffuse > 0 ? 100 * shine : 0);

  noise ^= noise >> 15;
  noise *= 2246822519u;
  v += noise >> 28;
  to[(size_t) y * width + x] = (uint8_t) fminf (v, 255);
}

static void
fill_lights (ImkPhotostereoLight *lights, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    double z = (i + 0.5) / (double) n * 0.95 + 0.05;
    double r = sqrt (1 - z * z);

    lights[i] = ImkPhotostereoLight{600 * r * cos (2.399963 * i),
        600 * r * sin (2.399963 * i), 600 * z, {1, 1, 1}};
  }
}

/* @n pictures of a size, one after the other in @pinned. */
static void
fill_pictures (uint8_t *pinned, uint32_t width, uint32_t height,
    const ImkPhotostereoLight *lights, uint32_t n)
{
  size_t size = (size_t) width * height;
  uint8_t *device;

  CUDA (cudaMalloc ((void **) &device, size));
  for (uint32_t i = 0; i < n; i++) {
    float3 l = {(float) lights[i].x / 600, (float) lights[i].y / 600,
        (float) lights[i].z / 600};

    render<<<dim3 ((width + 127) / 128, height), 128, 0, stream>>> (
        device, width, height, l, i);
    CUDA (cudaMemcpyAsync (
        pinned + i * size, device, size, cudaMemcpyDeviceToHost, stream));
  }
  CUDA (cudaStreamSynchronize (stream));
  CUDA (cudaFree (device));
}

/* --- sets ----------------------------------------------------------------- */

struct Case {
  uint32_t width, height;
  size_t size; /* bytes of a picture */
  const uint8_t *pinned;
  uint8_t *device; /* of two pictures */
  ImkPhotostereoConfig config;
  ImkPhotostereoOutputs out;
  ImkPhotostereo *kernel;
};

static ImkImage
image_of (const Case *c, void *data, uint32_t channels, ImkLocation location)
{
  return ImkImage{data, (size_t) c->width * channels, c->width, c->height,
      channels, IMK_TYPE_U8, location};
}

static uint32_t
n_pictures (const Case *c)
{
  return c->config.n_lights * c->config.bands;
}

static void
add_all (Case *c)
{
  ImkError error;

  imk_photostereo_reset (c->kernel);
  for (uint32_t i = 0; i < n_pictures (c); i++) {
    ImkImage frame = image_of (
        c, (void *) (c->pinned + i * c->size), 1, IMK_LOCATION_HOST_MAPPED);

    frame.type = c->config.type;
    frame.stride = c->size / c->height;
    bench_ok (imk_photostereo_add_band (c->kernel, &frame, i / c->config.bands,
                  i % c->config.bands, stream, &error),
        &error);
  }
}

static void
solve (Case *c, ImkPhotostereoSummary *summary)
{
  ImkError error;

  bench_ok (imk_photostereo_solve (c->kernel, &c->out, summary, stream, &error),
      &error);
}

static double
copy_all (Case *c)
{
  double start = bench_now ();

  for (uint32_t i = 0; i < n_pictures (c); i++)
    CUDA (cudaMemcpyAsync (c->device + i % 2 * c->size, c->pinned + i * c->size,
        c->size, cudaMemcpyHostToDevice, stream));
  CUDA (cudaStreamSynchronize (stream));
  return bench_now () - start;
}

/* The copy, the set, and what of it is after the last picture, in turns.
 * @with_after: whether the work goes on while pictures come */
template <typename CopySet, typename AddSet>
static void
bench_turns (Case *c, const char *name, CopySet copy_set, AddSet add_set,
    bool with_after)
{
  std::vector<double> copy, all, after;
  cudaEvent_t last, end;
  char row[100];

  CUDA (cudaEventCreate (&last));
  CUDA (cudaEventCreate (&end));
  for (int i = 0; i <= REPEATS; i++) {
    double taken = copy_set (), start = bench_now ();
    float ms;

    add_set ();
    CUDA (cudaEventRecord (last, stream));
    solve (c, NULL);
    CUDA (cudaEventRecord (end, stream));
    CUDA (cudaEventSynchronize (end));
    if (i == 0) /* warm-up */
      continue;
    all.push_back (bench_now () - start);
    copy.push_back (taken);
    CUDA (cudaEventElapsedTime (&ms, last, end));
    after.push_back (ms * 1e3);
  }
  snprintf (row, sizeof (row), "%s-all", name);
  bench_samples (row, "cuda", "ours", all.data (), REPEATS);
  bench_samples (row, "cuda", "copy", copy.data (), REPEATS);
  snprintf (row, sizeof (row), "%s-after", name);
  if (with_after)
    bench_samples (row, "cuda", "ours", after.data (), REPEATS);
  CUDA (cudaEventDestroy (last));
  CUDA (cudaEventDestroy (end));
}

static void
bench_set (Case *c, const char *name)
{
  ImkPhotostereoSummary summary;
  ImkError error;

  bench_ok (
      imk_photostereo_new (IMK_BACKEND_CUDA, &c->config, &c->kernel, &error),
      &error);
  bench_turns (
      c, name, [=] { return copy_all (c); }, [=] { add_all (c); },
      !imk_photostereo_keeps_frames (c->kernel));
  solve (c, &summary);
  fprintf (stderr, "%s: %.2f rounds, %.1f lights, %llu of %llu invalid\n", name,
      summary.mean_rounds, summary.mean_lights,
      (unsigned long long) summary.n_invalid,
      (unsigned long long) summary.n_pixels);
  imk_photostereo_free (c->kernel);
}

/* Samples in the device: solutions of 1, 2, ... rounds at most. */
static void
bench_rounds (Case *c, const char *name)
{
  ImkPhotostereoConfig config = c->config;
  ImkError error;
  char row[100];

  bench_ok (imk_photostereo_new (IMK_BACKEND_CUDA, &config, &c->kernel, &error),
      &error);
  add_all (c);
  for (uint32_t n = 1; n <= 10; n++) {
    double taken[REPEATS];

    config.max_iterations = n;
    bench_ok (imk_photostereo_update (c->kernel, &config, &error), &error);
    solve (c, NULL);
    for (int i = 0; i < REPEATS; i++) {
      double start;

      CUDA (cudaStreamSynchronize (stream));
      start = bench_now ();
      solve (c, NULL);
      CUDA (cudaStreamSynchronize (stream));
      taken[i] = bench_now () - start;
    }
    snprintf (row, sizeof (row), "%s-rounds-%u", name, n);
    bench_samples (row, "cuda", "ours", taken, REPEATS);
  }
  imk_photostereo_free (c->kernel);
}

/* The same set on two threads of the host. */
static void
bench_cpu (Case *c, const char *name)
{
  ImkPhotostereoConfig config = c->config;
  std::vector<uint8_t> normal (3 * (size_t) c->width * c->height);
  double all[2], after[2];
  ImkError error;
  char row[100];

  config.n_threads = 2;
  bench_ok (imk_photostereo_new (IMK_BACKEND_CPU, &config, &c->kernel, &error),
      &error);
  for (int i = 0; i < 2; i++) {
    ImkPhotostereoOutputs out = {};
    double spent = 0, start;

    out.normal = image_of (c, normal.data (), 3, IMK_LOCATION_HOST);
    imk_photostereo_reset (c->kernel);
    for (uint32_t j = 0; j < LIGHTS; j++) {
      ImkImage frame =
          image_of (c, (void *) (c->pinned + (size_t) j * c->width * c->height),
              1, IMK_LOCATION_HOST);

      start = bench_now ();
      bench_ok (
          imk_photostereo_add (c->kernel, &frame, j, NULL, &error), &error);
      spent += bench_now () - start;
    }
    start = bench_now ();
    bench_ok (
        imk_photostereo_solve (c->kernel, &out, NULL, NULL, &error), &error);
    after[i] = bench_now () - start;
    all[i] = spent + after[i];
  }
  imk_photostereo_free (c->kernel);
  snprintf (row, sizeof (row), "%s-2-threads-all", name);
  bench_samples (row, "cpu", "ours", all, 2);
  snprintf (row, sizeof (row), "%s-2-threads-after", name);
  bench_samples (row, "cpu", "ours", after, 2);
}

/* @device: for 8 pictures: those that are copied, normals, albedo */
static Case
make_case (uint8_t *pinned, uint8_t *device, uint32_t width, uint32_t height,
    ImkPhotostereoLight *lights, uint32_t n)
{
  size_t size = (size_t) width * height;
  uint8_t *out = device + 2 * size;
  Case c = {};

  fill_lights (lights, n);
  c.width = width;
  c.height = height;
  c.size = size;
  c.pinned = pinned;
  c.device = device;
  fill_pictures (pinned, width, height, lights, n);
  imk_photostereo_config_init (&c.config);
  c.config.width = width;
  c.config.height = height;
  c.config.pattern = IMK_PHOTOSTEREO_PATTERN_RGGB;
  c.config.lights = lights;
  c.config.n_lights = n;
  c.config.positions = true;
  c.config.mm_per_pixel = 100.0 / width;
  c.out.normal = image_of (&c, out, 3, IMK_LOCATION_DEVICE);
  c.out.albedo = image_of (&c, out + 3 * size, 3, IMK_LOCATION_DEVICE);
  return c;
}

/* What tensor cores are not for: lamps that are not equally bright, samples of
 * 16 bits (pairs of pixels of wider pictures). */
static void
bench_scalar (Case c, ImkPhotostereoLight lights[LIGHTS])
{
  char name[80];

  for (int i = 0; i < LIGHTS; i++)
    for (double &intensity : lights[i].intensity)
      intensity = 1 + 0.001 * i;
  snprintf (name, sizeof (name), "%ux%ux%u-uneven", c.width, c.height, LIGHTS);
  bench_set (&c, name);
  if (c.width != 2048) /* page-locked memory has no room for larger ones */
    return;
  fill_lights (lights, LIGHTS);
  fill_pictures ((uint8_t *) c.pinned, 2 * c.width, c.height, lights, LIGHTS);
  c.size *= 2;
  c.config.type = IMK_TYPE_U16;
  snprintf (name, sizeof (name), "%ux%ux%u-u16", c.width, c.height, LIGHTS);
  bench_set (&c, name);
  fill_pictures ((uint8_t *) c.pinned, c.width, c.height, lights, LIGHTS);
}

/* As many pictures, ten a light. */
static void
bench_bands (Case *c, ImkPhotostereoLight lights[LIGHTS])
{
  char name[80];

  for (int i = 0; i < LIGHTS; i++)
    lights[i] = lights[i - i % BANDS];
  fill_pictures ((uint8_t *) c->pinned, c->width, c->height, lights, LIGHTS);
  for (int i = 0; i < LIGHTS / BANDS; i++)
    lights[i] = lights[i * BANDS];
  c->config.n_lights = LIGHTS / BANDS;
  c->config.bands = BANDS;
  c->config.pattern = IMK_PHOTOSTEREO_PATTERN_NONE;
  c->config.robust = IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
  c->out.albedo = {};
  snprintf (name, sizeof (name), "%ux%ux%u-bands-%u", c->width, c->height,
      LIGHTS / BANDS, BANDS);
  bench_set (c, name);
}

static void
bench_size (
    uint8_t *pinned, uint32_t width, uint32_t height, size_t limit, bool rounds)
{
  ImkPhotostereoLight lights[LIGHTS];
  uint8_t *device;
  char name[80];
  Case c;

  snprintf (name, sizeof (name), "%ux%ux%u%s", width, height, LIGHTS,
      limit ? "-strips" : "");
  if (!bench_wants (name))
    return;
  CUDA (cudaMalloc ((void **) &device, 8 * (size_t) width * height));
  c = make_case (pinned, device, width, height, lights, LIGHTS);
  c.config.memory_limit = limit;
  bench_set (&c, name);
  if (rounds)
    bench_rounds (&c, name);
  if (width == 2048 && !bench_is_quick ())
    bench_cpu (&c, name);
  if (!limit) {
    bench_scalar (c, lights);
    fill_lights (lights, LIGHTS);
    c.config.robust = IMK_PHOTOSTEREO_ROBUST_NONE;
    snprintf (
        name, sizeof (name), "%ux%ux%u-least-squares", width, height, LIGHTS);
    bench_set (&c, name);
  }
  if (!limit && width == 2048)
    bench_bands (&c, lights);
  CUDA (cudaFree (device));
}

/* Sets of few lights, in each unit of thresholds: adaptive ones are solved
 * without tensor cores. */
static void
bench_few (uint8_t *pinned, uint32_t width, uint32_t height)
{
  static const uint32_t n_lights[] = {12, 19, 40, 96};
  static const struct {
    const char *name;
    ImkPhotostereoThresholds thresholds;
  } modes[] = {
      {"absolute", IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE},
      {"relative", IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE},
      {"adaptive", IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE},
  };
  ImkPhotostereoLight lights[LIGHTS];
  uint8_t *device;

  if (!bench_wants ("few-"))
    return;
  CUDA (cudaMalloc ((void **) &device, 8 * (size_t) width * height));
  for (uint32_t n : n_lights)
    for (const auto &mode : modes) {
      Case c = make_case (pinned, device, width, height, lights, n);
      char name[80];

      c.config.thresholds = mode.thresholds;
      snprintf (
          name, sizeof (name), "few-%ux%ux%u-%s", width, height, n, mode.name);
      bench_set (&c, name);
    }
  CUDA (cudaFree (device));
}

/* --- devices that share the rows ------------------------------------------ */

enum { GATES = 8, MAX_DEVICES = 16 };

/* Each picture's rows on the stream and in the memory of each device. */
struct Links {
  int n;
  cudaStream_t streams[MAX_DEVICES];
  uint8_t *memory[MAX_DEVICES];
};

static Links
links_new (int n, size_t size)
{
  Links links = {};

  links.n = n;
  for (int i = 0; i < n; i++) {
    CUDA (cudaSetDevice (i));
    CUDA (cudaStreamCreateWithFlags (&links.streams[i], cudaStreamNonBlocking));
    CUDA (cudaMalloc ((void **) &links.memory[i], 2 * size));
  }
  CUDA (cudaSetDevice (0));
  return links;
}

static void
links_free (const Links *links)
{
  for (int i = 0; i < links->n; i++) {
    CUDA (cudaFree (links->memory[i]));
    CUDA (cudaStreamDestroy (links->streams[i]));
  }
}

/* The floor: all samples, each over the link of the device that needs it. */
static double
copy_over_links (const Case *c, const Links *links)
{
  size_t size = (size_t) c->width * c->height, part = size / links->n;
  double start = bench_now ();

  for (uint32_t i = 0; i < LIGHTS; i++)
    for (int k = 0; k < links->n; k++)
      CUDA (cudaMemcpyAsync (links->memory[k] + i % 2 * part,
          c->pinned + i * size + k * part, part, cudaMemcpyHostToDevice,
          links->streams[k]));
  for (int k = 0; k < links->n; k++)
    CUDA (cudaStreamSynchronize (links->streams[k]));
  return bench_now () - start;
}

/* As the element does it: on streams in turn. */
static void
add_in_turn (Case *c, cudaStream_t gates[GATES], cudaEvent_t event)
{
  ImkError error;

  imk_photostereo_reset (c->kernel);
  for (uint32_t i = 0; i < LIGHTS; i++) {
    ImkImage frame =
        image_of (c, (void *) (c->pinned + (size_t) i * c->width * c->height),
            1, IMK_LOCATION_HOST_MAPPED);

    bench_ok (
        imk_photostereo_add (c->kernel, &frame, i, gates[i % GATES], &error),
        &error);
  }
  for (int i = 0; i < GATES; i++) {
    CUDA (cudaEventRecord (event, gates[i]));
    CUDA (cudaStreamWaitEvent (stream, event, 0));
  }
}

static void
bench_shared (Case *c, const char *name, int n)
{
  Links links = links_new (n, (size_t) c->width * c->height / n);
  cudaStream_t gates[GATES];
  cudaEvent_t event;
  ImkError error;

  CUDA (cudaEventCreateWithFlags (&event, cudaEventDisableTiming));
  for (int i = 0; i < GATES; i++)
    CUDA (cudaStreamCreateWithFlags (&gates[i], cudaStreamNonBlocking));
  c->config.n_devices = n - 1;
  for (int i = 1; i < n; i++)
    c->config.devices[i - 1] = i;
  bench_ok (
      imk_photostereo_new (IMK_BACKEND_CUDA, &c->config, &c->kernel, &error),
      &error);
  bench_turns (
      c, name, [&] { return copy_over_links (c, &links); },
      [&] { add_in_turn (c, gates, event); }, true);
  imk_photostereo_free (c->kernel);
  links_free (&links);
  for (int i = 0; i < GATES; i++)
    CUDA (cudaStreamDestroy (gates[i]));
  CUDA (cudaEventDestroy (event));
}

/* On 1, 2, 4, ... devices: results in the memory of the first, and in
 * page-locked memory. */
static void
bench_devices (uint8_t *pinned, uint32_t width, uint32_t height)
{
  ImkPhotostereoLight lights[LIGHTS];
  size_t size = (size_t) width * height;
  uint8_t *device, *host;
  int n_devices;
  char name[80];
  Case c;

  CUDA (cudaGetDeviceCount (&n_devices));
  if (!bench_wants ("gpus-"))
    return;
  CUDA (cudaMalloc ((void **) &device, 8 * size));
  CUDA (cudaHostAlloc (
      (void **) &host, 6 * size, cudaHostAllocMapped | cudaHostAllocPortable));
  c = make_case (pinned, device, width, height, lights, LIGHTS);
  for (int n = 1; n <= n_devices && n <= MAX_DEVICES; n *= 2) {
    snprintf (
        name, sizeof (name), "gpus-%d-%ux%ux%u", n, width, height, LIGHTS);
    bench_shared (&c, name, n);
  }
  c.out.normal = image_of (&c, host, 3, IMK_LOCATION_HOST_MAPPED);
  c.out.albedo = image_of (&c, host + 3 * size, 3, IMK_LOCATION_HOST_MAPPED);
  for (int n = 2; n <= n_devices && n <= MAX_DEVICES; n *= 2) {
    snprintf (
        name, sizeof (name), "gpus-%d-host-%ux%ux%u", n, width, height, LIGHTS);
    bench_shared (&c, name, n);
  }
  CUDA (cudaFree (device));
  CUDA (cudaFreeHost (host));
}

int
main (int argc, char **argv)
{
  uint8_t *pinned;

  bench_open (argc, argv, "photostereo");
  CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
  CUDA (cudaHostAlloc ((void **) &pinned,
      (bench_is_quick () ? (size_t) 5472 * 3648 : (size_t) 6528 * 4290) *
          LIGHTS,
      cudaHostAllocMapped | cudaHostAllocPortable));
  bench_size (pinned, 2048, 1500, 0, true);
  bench_size (pinned, 5472, 3648, 0, true);
  if (!bench_is_quick ()) {
    bench_size (pinned, 5472, 3648, (size_t) 2 << 30, false);
    bench_size (pinned, 6528, 4290, (size_t) 2 << 30, false);
  }
  bench_few (pinned, 2048, 1500);
  bench_few (pinned, 5472, 3648);
  bench_devices (pinned, 2048, 1500);
  bench_devices (pinned, 5472, 3648);
  CUDA (cudaFreeHost (pinned));
  return bench_close ();
}
