/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels of lapsharpen, shcentroid and octangio on the device, beside NPP,
 * copies, reads and empty kernels.
 * Times on the device come from events around batches of launches, around a
 * graph of such a batch, and around single launches; times on the host from
 * the call to the end of cudaStreamSynchronize. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include <cuda_runtime.h>

#include "bench.h"
#include "imk/device.h"
#include "imk/lapsharpen.h"
#include "imk/octangio.h"
#include "plain-loop.h"
#include "imk/shcentroid.h"

enum {
  MAX_ENTRIES = 8,
  ROUND = 500,         /* latencies of one entry before the next entry's */
  N_LATENCIES = 10000, /* of each entry */
};

static const size_t ring_size = (size_t) 240 << 20; /* L2: 50 MB */
static const size_t pinned_size = (size_t) 128 << 20;

/* Launches between two events, enough to go through a whole ring: a graph uses
 * the same buffers in every replay. */
enum { CENTROID_BATCH = 500, SHARPEN_BATCH = 100, LARGE_BATCH = 20 };
enum { OPTION_REPEATS = 30 };

static cudaStream_t stream;
static cudaEvent_t start_event, end_event;

#define CUDA(...) check_cuda ((__VA_ARGS__), #__VA_ARGS__)

static void
check_cuda (cudaError_t result, const char *call)
{
  if (result != cudaSuccess)
    bench_fail ("%s: %s", call, cudaGetErrorString (result));
}

/* @run takes a T. */
template <auto run, typename T>
static BenchEntry
entry (const char *who, T *data, const char *backend = "cuda")
{
  return {backend, who,
      [] (void *data, uint32_t turn) { run ((T *) data, turn); }, data};
}

/* --- buffers -------------------------------------------------------------- */

static BenchRing
device_ring_new (size_t size, size_t total)
{
  BenchRing ring = {};
  void *block;

  ring.size = size;
  ring.stride = (size + 4095) / 4096 * 4096;
  ring.n = (uint32_t) ((total + ring.stride - 1) / ring.stride);
  ring.n = ring.n < 2 ? 2 : ring.n;
  CUDA (cudaMalloc (&block, ring.n * ring.stride));
  ring.block = (uint8_t *) block;
  return ring;
}

/* The same host bytes in every buffer. */
static void
device_ring_fill (const BenchRing *ring, const void *bytes)
{
  for (uint32_t i = 0; i < ring->n; i++)
    CUDA (cudaMemcpyAsync (bench_ring_at (ring, i), bytes, ring->size,
        cudaMemcpyHostToDevice, stream));
  CUDA (cudaStreamSynchronize (stream));
}

static void
device_ring_free (BenchRing *ring)
{
  CUDA (cudaFree (ring->block));
  *ring = {};
}

/* Page-locked, and seen by the device at the same address. */
static uint8_t *
pinned_new (size_t size)
{
  void *host, *mapped;

  CUDA (cudaHostAlloc (&host, size, cudaHostAllocMapped));
  CUDA (cudaHostGetDevicePointer (&mapped, host, 0));
  if (mapped != host)
    bench_fail ("page-locked memory has another address on the device.");
  memset (host, 0, size);
  return (uint8_t *) host;
}

static ImkImage
make_image (uint32_t width, uint32_t height, uint32_t channels, ImkType type,
    ImkLocation location, void *data)
{
  ImkImage image = {};

  image.width = width;
  image.height = height;
  image.channels = channels;
  image.type = type;
  image.location = location;
  image.data = data;
  image.stride = imk_image_row_size (&image);
  return image;
}

/* --- times on the device -------------------------------------------------- */

/* Returns: microseconds between the events */
static double
events_elapsed (void)
{
  float ms;

  CUDA (cudaGetLastError ()); /* of launches */
  CUDA (cudaEventSynchronize (end_event));
  CUDA (cudaEventElapsedTime (&ms, start_event, end_event));
  return ms * 1e3;
}

static double
time_launches (const BenchEntry *e, uint32_t n, uint32_t *turn)
{
  CUDA (cudaEventRecord (start_event, stream));
  for (uint32_t i = 0; i < n; i++)
    e->run (e->data, (*turn)++);
  CUDA (cudaEventRecord (end_event, stream));
  return events_elapsed () / n;
}

/* Returns: a graph of @n launches; NULL when they cannot be captured */
static cudaGraphExec_t
capture (const BenchEntry *e, uint32_t n)
{
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;

  CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
  for (uint32_t i = 0; i < n; i++)
    e->run (e->data, i);
  if (cudaStreamEndCapture (stream, &graph) != cudaSuccess ||
      cudaGraphInstantiate (&exec, graph, 0) != cudaSuccess)
    exec = nullptr;
  cudaGetLastError ();
  if (graph)
    cudaGraphDestroy (graph);
  return exec;
}

static double
time_graph (cudaGraphExec_t graph, uint32_t n)
{
  CUDA (cudaEventRecord (start_event, stream));
  CUDA (cudaGraphLaunch (graph, stream));
  CUDA (cudaEventRecord (end_event, stream));
  return events_elapsed () / n;
}

/* The rows NAME, NAME-graph and NAME-single, entries in turns. @in_graph: none
 * waits for an event of its last call */
static void
device_case (const char *name, const BenchEntry *entries, uint32_t n_entries,
    uint32_t batch, uint32_t n, bool in_graph = true)
{
  uint32_t turns[MAX_ENTRIES] = {};
  cudaGraphExec_t graphs[MAX_ENTRIES] = {};
  double *samples = (double *) malloc (3 * n_entries * n * sizeof (double));
  const char *const suffixes[] = {"", "-graph", "-single"};
  bool wanted = false;

  for (const char *suffix : suffixes) {
    char row[96];

    snprintf (row, sizeof (row), "%s%s", name, suffix);
    wanted |= bench_wants_row (row);
  }
  if (!wanted) {
    free (samples);
    return;
  }
  for (uint32_t e = 0; e < n_entries; e++) {
    time_launches (&entries[e], batch, &turns[e]);
    graphs[e] = in_graph ? capture (&entries[e], batch) : nullptr;
    if (graphs[e])
      time_graph (graphs[e], batch);
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t e = 0; e < n_entries; e++) {
      double *s = samples + 3 * e * n + i;

      s[0] = time_launches (&entries[e], batch, &turns[e]);
      s[n] = graphs[e] ? time_graph (graphs[e], batch) : NAN;
      s[2 * n] = time_launches (&entries[e], 1, &turns[e]);
    }
  for (uint32_t mode = 0; mode < 3; mode++)
    for (uint32_t e = 0; e < n_entries; e++) {
      char row[96];

      if (mode == 1 && !graphs[e])
        continue;
      snprintf (row, sizeof (row), "%s%s", name, suffixes[mode]);
      bench_samples (row, entries[e].backend, entries[e].who,
          samples + (3 * e + mode) * n, n);
    }
  for (uint32_t e = 0; e < n_entries; e++)
    if (graphs[e])
      CUDA (cudaGraphExecDestroy (graphs[e]));
  free (samples);
}

/* --- times on the host ---------------------------------------------------- */

static double
time_latency (const BenchEntry *e, uint32_t turn)
{
  double start = bench_now ();

  e->run (e->data, turn);
  CUDA (cudaStreamSynchronize (stream));
  return bench_now () - start;
}

/* Entries in turns of whole rounds, as a control loop runs one kernel. */
static void
latency_case (
    const char *name, const BenchEntry *entries, uint32_t n_entries, uint32_t n)
{
  if (!bench_wants_row (name))
    return;

  double *samples = (double *) malloc (n_entries * n * sizeof (double));
  uint32_t turns[MAX_ENTRIES] = {};

  for (uint32_t first = 0; first < n; first += ROUND)
    for (uint32_t e = 0; e < n_entries; e++) {
      for (uint32_t i = 0; i < 20; i++)
        time_latency (&entries[e], turns[e]++);
      for (uint32_t i = first; i < n && i < first + ROUND; i++)
        samples[e * n + i] = time_latency (&entries[e], turns[e]++);
    }
  for (uint32_t e = 0; e < n_entries; e++)
    bench_samples (
        name, entries[e].backend, entries[e].who, samples + e * n, n);
  free (samples);
}

static uint32_t
n_latencies (void)
{
  return bench_is_quick () ? N_LATENCIES / 10 : N_LATENCIES;
}

/* --- floors --------------------------------------------------------------- */

static __global__ void
do_nothing (void)
{
}

static __global__ void
copy_vectors (const uint4 *in, uint4 *out, size_t n)
{
  size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x;

  if (i < n)
    out[i] = in[i];
}

/* Reads all of @in and writes two floats a cell: what a centroid kernel cannot
 * do without. */
template <typename Word>
static __global__ void
read_frame (const Word *in, uint32_t n, float2 *out, uint32_t n_cells)
{
  uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t step = gridDim.x * blockDim.x, sum = 0;

  if (first < n) {
    Word word = in[first];
    const uint32_t *parts = (const uint32_t *) &word;

    for (uint32_t i = 0; i < sizeof (Word) / 4; i++)
      sum += parts[i];
  }
  for (uint32_t i = first; i < n_cells; i += step)
    out[i] = make_float2 (__uint_as_float (sum), 0.0f);
  /* or the loads of threads without a cell would be left out */
  if (first >= n_cells && sum == 0x12345678)
    out[0] = make_float2 (0.0f, 0.0f);
}

/* ------------------------------------------------------------------------
 * NPP, if it is installed. Declared here: the build needs no headers of it. */

struct NppSize {
  int width, height;
};

struct NppPoint {
  int x, y;
};

struct NppContext {
  cudaStream_t stream;
  int device, n_multiprocessors, threads_per_multiprocessor, threads_per_block;
  size_t shared_per_block;
  int major, minor;
  unsigned int stream_flags;
  int reserved;
};

/* nppiFilterBorder_8u_C4R_Ctx and _AC4R_Ctx; the kernel lies on the device. */
typedef int (*NppFilter) (const uint8_t *in, int in_stride, NppSize in_size,
    NppPoint in_offset, uint8_t *out, int out_stride, NppSize size,
    const int32_t *kernel, NppSize kernel_size, NppPoint anchor, int divisor,
    int border, NppContext context);
/* nppiFilterSharpenBorder_8u_C4R_Ctx: its own 3x3 kernel */
typedef int (*NppSharpen) (const uint8_t *in, int in_stride, NppSize in_size,
    NppPoint in_offset, uint8_t *out, int out_stride, NppSize size, int border,
    NppContext context);

enum { NPP_REPLICATE = 2 };

static struct {
  NppFilter filter, filter_colours;
  NppSharpen sharpen;
  NppContext context;
  int32_t *kernel;
  bool warned;
} npp;

static void *
open_npp (void)
{
  const char *const names[] = {"libnppif.so.13", "libnppif.so.12",
      "libnppif.so", "/usr/local/cuda/lib64/libnppif.so.13",
      "/usr/local/cuda/lib64/libnppif.so"};

  for (const char *name : names) {
    void *library = dlopen (name, RTLD_NOW);

    if (library)
      return library;
  }
  printf ("no NPP rows: %s\n", dlerror ());
  return nullptr;
}

static void
npp_open (void)
{
  const int32_t kernel[9] = {0, -1, 0, -1, 5, -1, 0, -1, 0};
  void *library = open_npp ();
  cudaDeviceProp p;

  if (!library)
    return;
  npp.filter = (NppFilter) dlsym (library, "nppiFilterBorder_8u_C4R_Ctx");
  npp.filter_colours =
      (NppFilter) dlsym (library, "nppiFilterBorder_8u_AC4R_Ctx");
  npp.sharpen =
      (NppSharpen) dlsym (library, "nppiFilterSharpenBorder_8u_C4R_Ctx");
  CUDA (cudaGetDeviceProperties (&p, 0));
  npp.context.stream = stream;
  npp.context.n_multiprocessors = p.multiProcessorCount;
  npp.context.threads_per_multiprocessor = p.maxThreadsPerMultiProcessor;
  npp.context.threads_per_block = p.maxThreadsPerBlock;
  npp.context.shared_per_block = p.sharedMemPerBlock;
  npp.context.major = p.major;
  npp.context.minor = p.minor;
  CUDA (cudaStreamGetFlags (stream, &npp.context.stream_flags));
  CUDA (cudaMalloc ((void **) &npp.kernel, sizeof (kernel)));
  CUDA (
      cudaMemcpy (npp.kernel, kernel, sizeof (kernel), cudaMemcpyHostToDevice));
}

/* --- lapsharpen, from device memory to device memory ---------------------- */

typedef struct SharpenCase {
  const char *name;
  uint32_t width, height;
  ImkType type;
  uint32_t channels;
  ImkLapsharpenAlpha alpha;
  double amount;
  bool with_npp;
  double radius; /* method=unsharp */
} SharpenCase;

static const SharpenCase sharpen_cases[] = {
    {"lapsharpen-7680x4320-rgba", 7680, 4320, IMK_TYPE_U8, 4,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.0, true},
    {"lapsharpen-7680x4320-rgba-filter", 7680, 4320, IMK_TYPE_U8, 4,
        IMK_LAPSHARPEN_ALPHA_FILTER, 1.0, true},
    {"lapsharpen-2580x1319-rgba", 2580, 1319, IMK_TYPE_U8, 4,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.0, true},
    {"lapsharpen-1920x1080-rgba", 1920, 1080, IMK_TYPE_U8, 4,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.0, true},
    {"lapsharpen-7680x4320-gray8", 7680, 4320, IMK_TYPE_U8, 1,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.0, false},
    {"lapsharpen-7680x4320-rgba64", 7680, 4320, IMK_TYPE_U16, 4,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.0, false},
    {"lapsharpen-7680x4320-rgba-1.5", 7680, 4320, IMK_TYPE_U8, 4,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.5, false},
    {"lapsharpen-7680x4320-rgba-0.3", 7680, 4320, IMK_TYPE_U8, 4,
        IMK_LAPSHARPEN_ALPHA_COPY, 0.3, false},
    {"lapsharpen-7680x4320-gray8-1.5", 7680, 4320, IMK_TYPE_U8, 1,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.5, false},
    {"lapsharpen-7680x4320-gray16", 7680, 4320, IMK_TYPE_U16, 1,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.0, false},
    {"lapsharpen-7680x4320-rgba64-1.5", 7680, 4320, IMK_TYPE_U16, 4,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.5, false},
    {"lapsharpen-7680x4320-weighted", 7680, 4320, IMK_TYPE_U8, 4,
        IMK_LAPSHARPEN_ALPHA_WEIGHTED, 1.0, false},
    {"lapsharpen-7680x4320-unsharp-5", 7680, 4320, IMK_TYPE_U8, 4,
        IMK_LAPSHARPEN_ALPHA_COPY, 1.0, false, 5},
};

typedef struct Sharpen {
  ImkLapsharpen *kernel;
  ImkImage in, out;
  BenchRing ins, outs;
} Sharpen;

static void
sharpen_ours (Sharpen *s, uint32_t turn)
{
  ImkError error;

  s->in.data = bench_ring_at (&s->ins, turn);
  s->out.data = bench_ring_at (&s->outs, turn);
  bench_ok (imk_lapsharpen_process (s->kernel, &s->in, &s->out, stream, &error),
      &error);
}

static void
sharpen_copy (Sharpen *s, uint32_t turn)
{
  CUDA (cudaMemcpyAsync (bench_ring_at (&s->outs, turn),
      bench_ring_at (&s->ins, turn), s->ins.size, cudaMemcpyDeviceToDevice,
      stream));
}

static void
sharpen_copy_kernel (Sharpen *s, uint32_t turn)
{
  size_t n = s->ins.size / sizeof (uint4);

  copy_vectors<<<(uint32_t) ((n + 255) / 256), 256, 0, stream>>> (
      (const uint4 *) bench_ring_at (&s->ins, turn),
      (uint4 *) bench_ring_at (&s->outs, turn), n);
}

static void
npp_filter (NppFilter filter, Sharpen *s, uint32_t turn)
{
  NppSize size = {(int) s->in.width, (int) s->in.height};
  int status = filter (bench_ring_at (&s->ins, turn), (int) s->in.stride, size,
      {0, 0}, bench_ring_at (&s->outs, turn), (int) s->out.stride, size,
      npp.kernel, {3, 3}, {1, 1}, 1, NPP_REPLICATE, npp.context);

  if (status != 0 && !npp.warned) {
    printf ("NPP returned status %d in some call.\n", status);
    npp.warned = true;
  }
}

static void
sharpen_npp (Sharpen *s, uint32_t turn)
{
  npp_filter (npp.filter, s, turn);
}

static void
sharpen_npp_colours (Sharpen *s, uint32_t turn)
{
  npp_filter (npp.filter_colours, s, turn);
}

static void
sharpen_npp_fixed (Sharpen *s, uint32_t turn)
{
  NppSize size = {(int) s->in.width, (int) s->in.height};

  npp.sharpen (bench_ring_at (&s->ins, turn), (int) s->in.stride, size, {0, 0},
      bench_ring_at (&s->outs, turn), (int) s->out.stride, size, NPP_REPLICATE,
      npp.context);
}

/* Runs @run over a poisoned output and brings it to the host. */
static void
sharpen_fetch (Sharpen *s, void (*run) (Sharpen *, uint32_t), uint8_t *bytes)
{
  CUDA (cudaMemsetAsync (
      bench_ring_at (&s->outs, 0), 0xa5, s->outs.size, stream));
  run (s, 0);
  CUDA (cudaMemcpyAsync (bytes, bench_ring_at (&s->outs, 0), s->outs.size,
      cudaMemcpyDeviceToHost, stream));
  CUDA (cudaStreamSynchronize (stream));
}

/* The CPU's answer. */
static void
sharpen_reference (
    const ImkLapsharpenConfig *config, const ImkImage *in, uint8_t *bytes)
{
  ImkLapsharpen *kernel;
  ImkImage out = *in;
  ImkError error;

  out.data = bytes;
  bench_ok (
      imk_lapsharpen_new (IMK_BACKEND_CPU, config, &kernel, &error), &error);
  bench_ok (imk_lapsharpen_process (kernel, in, &out, nullptr, &error), &error);
  imk_lapsharpen_free (kernel);
}

static void
check_ours (const SharpenCase *c, const uint8_t *expected,
    const uint8_t *actual, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if (expected[i] != actual[i])
      bench_fail (
          "%s: byte %zu: cpu %u, cuda %u", c->name, i, expected[i], actual[i]);
}

/* Inside the border; prints what differs and how the border fares. */
static void
check_npp (const char *who, const SharpenCase *c, const uint8_t *expected,
    const uint8_t *actual, uint32_t n_channels)
{
  size_t n_inside = 0, n_border = 0;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++)
      for (uint32_t ch = 0; ch < n_channels; ch++) {
        size_t i = ((size_t) y * c->width + x) * 4 + ch;
        bool inside = x > 0 && y > 0 && x < c->width - 1 && y < c->height - 1;

        if (expected[i] != actual[i])
          ++*(inside ? &n_inside : &n_border);
      }
  printf ("%s: %s differs from ours in %zu samples inside the border and %zu "
          "on it\n",
      c->name, who, n_inside, n_border);
}

static void
sharpen_check (Sharpen *s, const SharpenCase *c, ImkLapsharpenConfig config,
    const uint8_t *frame)
{
  uint8_t *expected = (uint8_t *) malloc (s->ins.size);
  uint8_t *actual = (uint8_t *) malloc (s->ins.size);
  ImkImage in = s->in;

  in.data = (void *) frame;
  in.location = IMK_LOCATION_HOST;
  sharpen_reference (&config, &in, expected);
  sharpen_fetch (s, sharpen_ours, actual);
  check_ours (c, expected, actual, s->ins.size);
  if (c->with_npp && npp.filter) {
    config.alpha = IMK_LAPSHARPEN_ALPHA_FILTER;
    sharpen_reference (&config, &in, expected);
    sharpen_fetch (s, sharpen_npp, actual);
    check_npp ("npp", c, expected, actual, 4);
  }
  if (c->with_npp && npp.filter_colours) {
    sharpen_fetch (s, sharpen_npp_colours, actual);
    check_npp ("npp-ac4", c, expected, actual, 3);
  }
  free (expected);
  free (actual);
}

static uint32_t
add_npp (const SharpenCase *c, Sharpen *s, BenchEntry *entries, uint32_t n)
{
  if (!c->with_npp)
    return n;
  if (npp.filter)
    entries[n++] = entry<sharpen_npp> ("npp", s);
  if (npp.filter_colours)
    entries[n++] = entry<sharpen_npp_colours> ("npp-ac4", s);
  if (npp.sharpen)
    entries[n++] = entry<sharpen_npp_fixed> ("npp-sharpen", s);
  return n;
}

static void
run_sharpen (const SharpenCase *c)
{
  ImkLapsharpenConfig config;
  Sharpen s = {};
  BenchRing frame;
  BenchEntry entries[MAX_ENTRIES] = {
      entry<sharpen_ours> ("ours", &s),
      entry<sharpen_copy> ("device-copy", &s),
      entry<sharpen_copy_kernel> ("copy-kernel", &s),
  };
  ImkError error;

  imk_lapsharpen_config_init (&config);
  config.width = c->width;
  config.height = c->height;
  config.type = c->type;
  config.channels = c->channels;
  config.depth = c->type == IMK_TYPE_U8 ? 8 : 16;
  config.channel_mask = c->channels == 4 ? 7 : 1;
  config.alpha_channel = c->channels == 4 ? 3 : -1;
  config.alpha = c->alpha;
  config.amount = c->amount;
  if (c->radius) {
    config.method = IMK_LAPSHARPEN_METHOD_UNSHARP;
    config.radius = c->radius;
  }

  s.in = make_image (
      c->width, c->height, c->channels, c->type, IMK_LOCATION_DEVICE, nullptr);
  s.out = s.in;
  s.ins = device_ring_new (s.in.stride * c->height, ring_size / 2);
  s.outs = device_ring_new (s.in.stride * c->height, ring_size / 2);
  frame = bench_ring_new (s.ins.size, 1);
  bench_ring_noise (&frame, 1);
  device_ring_fill (&s.ins, frame.block);
  bench_ok (imk_lapsharpen_new (IMK_BACKEND_CUDA, &config, &s.kernel, &error),
      &error);
  sharpen_check (&s, c, config, frame.block);

  device_case (c->name, entries, add_npp (c, &s, entries, 3),
      c->width > 4000 ? LARGE_BATCH : SHARPEN_BATCH, bench_repeats (),
      c->radius == 0);
  imk_lapsharpen_free (s.kernel);
  device_ring_free (&s.ins);
  device_ring_free (&s.outs);
  bench_ring_free (&frame);
}

/* --- shcentroid ----------------------------------------------------------- */

typedef struct Centroids {
  ImkShcentroidConfig config;
  ImkShcentroid *cuda, *cpu;
  uint32_t n_cells;
  BenchRing pinned;    /* frames where a camera writes them */
  BenchRing device;    /* frames that have been copied */
  ImkImage in, out;    /* as the kernel of the entry takes them */
  uint8_t *mapped_out; /* where the host reads */
  uint8_t *device_out;
  uint8_t *cpu_out;
  float *plain;
} Centroids;

static uint8_t *pinned_frames;

static void
centroids_open (Centroids *c, uint32_t roi, uint32_t pitch,
    ImkShcentroidFields fields, ImkType type = IMK_TYPE_U8)
{
  size_t out_size;
  ImkError error;

  *c = {};
  imk_shcentroid_config_init (&c->config);
  c->config.width = c->config.height = roi;
  c->config.x0 = c->config.y0 = 0.0;
  c->config.pitch_x = c->config.pitch_y = pitch;
  c->config.columns = c->config.rows = roi / pitch;
  c->config.fields = fields;
  c->config.type = type;
  c->config.n_threads = 1;
  c->n_cells = imk_shcentroid_n_cells (&c->config);
  bench_ok (imk_shcentroid_new (IMK_BACKEND_CUDA, &c->config, &c->cuda, &error),
      &error);
  bench_ok (imk_shcentroid_new (IMK_BACKEND_CPU, &c->config, &c->cpu, &error),
      &error);

  c->pinned.size = (size_t) roi * roi * imk_type_size (type);
  c->pinned.stride = (c->pinned.size + 4095) / 4096 * 4096;
  c->pinned.n = (uint32_t) (pinned_size / c->pinned.stride);
  c->pinned.block = pinned_frames;
  c->in =
      make_image (roi, roi, 1, type, IMK_LOCATION_HOST_MAPPED, pinned_frames);
  c->out = make_image (fields == IMK_SHCENTROID_FIELDS_ALL
                           ? (uint32_t) IMK_SHCENTROID_N_FIELDS
                           : 2,
      c->n_cells, 1, IMK_TYPE_F32, IMK_LOCATION_HOST_MAPPED, nullptr);
  out_size = c->out.stride * c->n_cells;
  c->mapped_out = pinned_new (out_size);
  CUDA (cudaMalloc ((void **) &c->device_out, out_size));
  c->cpu_out = (uint8_t *) malloc (out_size);
  c->plain = (float *) malloc (2 * sizeof (float) * c->n_cells);
}

/* Frames also in memory of the device. */
static void
centroids_upload (Centroids *c)
{
  c->device = device_ring_new (c->pinned.size, ring_size);
  for (uint32_t i = 0; i < c->device.n; i++)
    CUDA (cudaMemcpyAsync (bench_ring_at (&c->device, i),
        bench_ring_at (&c->pinned, i), c->pinned.size, cudaMemcpyHostToDevice,
        stream));
  CUDA (cudaStreamSynchronize (stream));
}

static void
centroids_close (Centroids *c)
{
  imk_shcentroid_free (c->cuda);
  imk_shcentroid_free (c->cpu);
  CUDA (cudaFreeHost (c->mapped_out));
  CUDA (cudaFree (c->device_out));
  if (c->device.block)
    device_ring_free (&c->device);
  free (c->cpu_out);
  free (c->plain);
}

static void
centroids_process (Centroids *c, ImkShcentroid *kernel, const void *frame,
    void *out, ImkLocation location)
{
  ImkImage in = c->in, to = c->out;
  ImkError error;

  in.data = (void *) frame;
  to.data = out;
  in.location = to.location = location;
  bench_ok (imk_shcentroid_process (kernel, &in, &to,
                location == IMK_LOCATION_HOST ? nullptr : stream, &error),
      &error);
}

/* In place, over the bus. */
static void
centroids_mapped (Centroids *c, uint32_t turn)
{
  centroids_process (c, c->cuda, bench_ring_at (&c->pinned, turn),
      c->mapped_out, IMK_LOCATION_HOST_MAPPED);
}

/* Upload, kernel, download. */
static void
centroids_copied (Centroids *c, uint32_t turn)
{
  uint8_t *frame = bench_ring_at (&c->device, turn);

  CUDA (cudaMemcpyAsync (frame, bench_ring_at (&c->pinned, turn),
      c->pinned.size, cudaMemcpyHostToDevice, stream));
  centroids_process (c, c->cuda, frame, c->device_out, IMK_LOCATION_DEVICE);
  CUDA (cudaMemcpyAsync (c->mapped_out, c->device_out,
      c->out.stride * c->n_cells, cudaMemcpyDeviceToHost, stream));
}

static void
centroids_on_device (Centroids *c, uint32_t turn)
{
  centroids_process (c, c->cuda, bench_ring_at (&c->device, turn),
      c->device_out, IMK_LOCATION_DEVICE);
}

static void
launch_nothing (Centroids *c, uint32_t turn)
{
  do_nothing<<<1, 32, 0, stream>>> ();
}

template <typename Word>
static void
launch_read (Centroids *c, const uint8_t *frame, uint8_t *out)
{
  uint32_t n = (uint32_t) (c->pinned.size / sizeof (Word));

  read_frame<Word><<<(n + 255) / 256, 256, 0, stream>>> (
      (const Word *) frame, n, (float2 *) out, c->n_cells);
}

static void
read_mapped_words (Centroids *c, uint32_t turn)
{
  launch_read<uint32_t> (c, bench_ring_at (&c->pinned, turn), c->mapped_out);
}

static void
read_mapped_vectors (Centroids *c, uint32_t turn)
{
  launch_read<uint4> (c, bench_ring_at (&c->pinned, turn), c->mapped_out);
}

static void
read_device_vectors (Centroids *c, uint32_t turn)
{
  launch_read<uint4> (c, bench_ring_at (&c->device, turn), c->device_out);
}

/* On the CPU two frames in turn, as in shcentroid-bench. */
static void
centroids_cpu (Centroids *c, uint32_t turn)
{
  centroids_process (c, c->cpu, bench_ring_at (&c->pinned, turn % 2),
      c->cpu_out, IMK_LOCATION_HOST);
}

static void
centroids_plain (Centroids *c, uint32_t turn)
{
  plain_centroids (bench_ring_at (&c->pinned, turn % 2), c->config.width,
      c->config.columns, c->config.rows, (uint32_t) c->config.pitch_x,
      c->plain);
}

static void
centroids_compare (Centroids *c, const char *what)
{
  size_t size = c->out.stride * c->n_cells;

  CUDA (cudaStreamSynchronize (stream));
  if (memcmp (c->cpu_out, c->mapped_out, size) != 0)
    bench_fail ("RoI %u, pitch %g: %s differs from the CPU", c->config.width,
        c->config.pitch_x, what);
  memset (c->mapped_out, 0xa5, size);
}

static void
centroids_check (Centroids *c)
{
  centroids_cpu (c, 1);
  centroids_mapped (c, 1);
  centroids_compare (c, "mapped memory");
  if (!c->device.block)
    return;
  centroids_cpu (c, 1); /* the frame after it, of what follows spots */
  centroids_copied (c, 1);
  centroids_compare (c, "device memory");
}

/* The mapped frame, floors, and the kernel alone. */
static void
run_centroids (
    const char *name, uint32_t roi, uint32_t pitch, ImkShcentroidFields fields)
{
  if (!bench_wants (name))
    return;

  Centroids c;
  BenchEntry mapped[] = {
      entry<centroids_mapped> ("ours", &c),
      entry<launch_nothing> ("launch", &c),
      entry<read_mapped_words> ("read-words", &c),
      entry<read_mapped_vectors> ("read-vectors", &c),
      entry<centroids_copied> ("copies", &c),
  };
  BenchEntry device[] = {
      entry<centroids_on_device> ("ours", &c),
      entry<read_device_vectors> ("read-vectors", &c),
      entry<launch_nothing> ("launch", &c),
  };
  char row[96];

  centroids_open (&c, roi, pitch, fields);
  centroids_upload (&c);
  centroids_check (&c);
  snprintf (row, sizeof (row), "%s-mapped", name);
  latency_case (row, mapped, 5, n_latencies ());
  snprintf (row, sizeof (row), "%s-device", name);
  device_case (row, device, 3, CENTROID_BATCH, bench_repeats ());
  centroids_close (&c);
}

/* What an option costs beside the plain centre of gravity. */
struct CentroidOption {
  const char *name;
  void (*set) (ImkShcentroidConfig *config);
};

static float *dark_frame, *flat_frame; /* as large as the largest RoI */

static const CentroidOption centroid_options[] = {
    {"absolute",
        [] (ImkShcentroidConfig *c) {
          c->threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
          c->threshold = 30.0;
        }},
    {"relative",
        [] (ImkShcentroidConfig *c) {
          c->threshold_mode = IMK_SHCENTROID_THRESHOLD_RELATIVE;
          c->threshold = 0.3;
        }},
    {"dark-flat",
        [] (ImkShcentroidConfig *c) {
          c->dark = dark_frame;
          c->flat = flat_frame;
        }},
    {"weight",
        [] (ImkShcentroidConfig *c) {
          c->weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
          c->sigma = 3.0;
        }},
    {"brightest", [] (ImkShcentroidConfig *c) { c->brightest = 20; }},
    {"iterations",
        [] (ImkShcentroidConfig *c) {
          c->weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
          c->sigma = 3.0;
          c->iterations = 3;
        }},
    {"power", [] (ImkShcentroidConfig *c) { c->power = 1.5; }},
    {"tracking",
        [] (ImkShcentroidConfig *c) {
          c->window = IMK_SHCENTROID_WINDOW_TRACKING;
        }},
};

static void
make_calibration (uint32_t roi)
{
  size_t n = (size_t) roi * roi;

  dark_frame = (float *) malloc (n * sizeof (float));
  flat_frame = (float *) malloc (n * sizeof (float));
  for (size_t i = 0; i < n; i++) {
    dark_frame[i] = 2.0f + 0.25f * (float) (i % 13);
    flat_frame[i] = 0.9f + 0.01f * (float) (i % 17);
  }
}

/* Device memory to device memory, in turns with the plain centroid; and mapped
 * memory, in turns with an upload first. */
static void
run_option (const char *name, Centroids *plain, const CentroidOption *option)
{
  Centroids c = *plain;
  BenchEntry entries[] = {
      entry<centroids_on_device> ("ours", &c),
      entry<centroids_on_device> ("plain", plain),
  };
  BenchEntry mapped[] = {
      entry<centroids_mapped> ("ours", &c),
      entry<centroids_copied> ("copies", &c),
  };
  char row[96];
  ImkError error;

  snprintf (row, sizeof (row), "%s-%s", name, option->name);
  if (!bench_wants (row))
    return;
  option->set (&c.config);
  bench_ok (imk_shcentroid_new (IMK_BACKEND_CUDA, &c.config, &c.cuda, &error),
      &error);
  bench_ok (
      imk_shcentroid_new (IMK_BACKEND_CPU, &c.config, &c.cpu, &error), &error);
  centroids_check (&c);
  /* many rows, of which a batch of launches takes milliseconds */
  device_case (row, entries, 2, CENTROID_BATCH, OPTION_REPEATS);
  snprintf (row, sizeof (row), "%s-%s-mapped", name, option->name);
  latency_case (row, mapped, 2, n_latencies () / 10);
  imk_shcentroid_free (c.cuda);
  imk_shcentroid_free (c.cpu);
}

struct OptionBase {
  const char *name;
  uint32_t roi, pitch;
  ImkShcentroidFields fields;
  ImkType type;
};

static const OptionBase option_bases[] = {
    {"shcentroid-700-d10-xy", 700, 10, IMK_SHCENTROID_FIELDS_XY, IMK_TYPE_U8},
    {"shcentroid-700-d20-xy", 700, 20, IMK_SHCENTROID_FIELDS_XY, IMK_TYPE_U8},
    {"shcentroid-1000-d28-xy", 1000, 28, IMK_SHCENTROID_FIELDS_XY, IMK_TYPE_U8},
    {"shcentroid-700-d10-all", 700, 10, IMK_SHCENTROID_FIELDS_ALL, IMK_TYPE_U8},
    {"shcentroid-700-d20-all", 700, 20, IMK_SHCENTROID_FIELDS_ALL, IMK_TYPE_U8},
    {"shcentroid-1000-d28-all", 1000, 28, IMK_SHCENTROID_FIELDS_ALL,
        IMK_TYPE_U8},
    {"shcentroid-700-d10-u16-xy", 700, 10, IMK_SHCENTROID_FIELDS_XY,
        IMK_TYPE_U16},
    {"shcentroid-700-d10-u16-all", 700, 10, IMK_SHCENTROID_FIELDS_ALL,
        IMK_TYPE_U16},
    {"shcentroid-1000-d3-xy", 1000, 3, IMK_SHCENTROID_FIELDS_XY, IMK_TYPE_U8},
    {"shcentroid-1000-d100-xy", 1000, 100, IMK_SHCENTROID_FIELDS_XY,
        IMK_TYPE_U8},
};

static void
run_options (const OptionBase *base)
{
  Centroids plain;

  if (!bench_wants (base->name))
    return;
  centroids_open (&plain, base->roi, base->pitch, base->fields, base->type);
  centroids_upload (&plain);
  for (const CentroidOption &option : centroid_options)
    run_option (base->name, &plain, &option);
  centroids_close (&plain);
}

static const uint32_t rois[] = {100, 200, 500, 700, 1000};
static const uint32_t pitches[] = {3, 5, 10, 20, 28};

static void
grid_name (char *name, size_t size, uint32_t roi, uint32_t pitch)
{
  snprintf (name, size, "shcentroid-%u-d%u-grid", roi, pitch);
}

/* The paper's grid: mapped memory to mapped memory, against one CPU thread. */
static void
run_grid (uint32_t roi, uint32_t pitch)
{
  Centroids c;
  BenchEntry cuda[] = {entry<centroids_mapped> ("ours", &c)};
  BenchEntry cpu[] = {
      entry<centroids_cpu> ("ours-cpu", &c, "cpu"),
      entry<centroids_plain> ("plain-loop", &c, "cpu"),
  };
  char name[64];

  grid_name (name, sizeof (name), roi, pitch);
  if (!bench_wants (name))
    return;
  centroids_open (&c, roi, pitch, IMK_SHCENTROID_FIELDS_XY);
  centroids_check (&c);
  latency_case (name, cuda, 1, n_latencies () / 5);
  bench_case (name, cpu, 2);
  centroids_close (&c);
}

/* --- what the machine can do ---------------------------------------------- */

typedef struct Copy {
  uint8_t *to, *from;
  size_t size;
} Copy;

static void
run_copy (Copy *c, uint32_t turn)
{
  CUDA (cudaMemcpyAsync (c->to, c->from, c->size, cudaMemcpyDefault, stream));
}

static void
run_copies (void)
{
  size_t size = (size_t) 16 << 20, large = (size_t) 512 << 20;
  uint8_t *host = pinned_frames, *device;
  CUDA (cudaMalloc ((void **) &device, 2 * large));
  CUDA (cudaMemset (device, 1, 2 * large));
  Copy up = {device, host, size}, down = {host, device, size};
  Copy across = {device + large, device, large};
  BenchEntry entries[] = {
      entry<run_copy> ("upload", &up),
      entry<run_copy> ("download", &down),
  };
  BenchEntry inside[] = {entry<run_copy> ("device-copy", &across)};

  latency_case ("pcie-16MiB", entries, 2, 200);
  latency_case ("device-512MiB", inside, 1, 200);
  CUDA (cudaFree (device));
}

/* --- the table ------------------------------------------------------------ */

static double
median_of (const char *name, const char *suffix, const char *who)
{
  char row[128];

  snprintf (row, sizeof (row), "%s%s", name, suffix);
  return bench_find (row, who).median;
}

static void
print_sharpen (void)
{
  printf ("\n%-33s %8s %8s %6s %8s %8s %8s | graph: ours, copy | single: ours, "
          "copy\n",
      "device to device, us a frame", "ours", "copy", "ratio", "npp", "npp-ac4",
      "sharpen");
  for (const SharpenCase &c : sharpen_cases) {
    double ours = median_of (c.name, "", "ours");
    double copy = median_of (c.name, "", "device-copy");

    printf ("%-33s %8.2f %8.2f %6.2f", c.name, ours, copy, ours / copy);
    for (const char *who : {"npp", "npp-ac4", "npp-sharpen"})
      printf (" %8.2f", median_of (c.name, "", who));
    for (const char *suffix : {"-graph", "-single"})
      printf (" | %8.2f %8.2f", median_of (c.name, suffix, "ours"),
          median_of (c.name, suffix, "device-copy"));
    printf ("\n");
  }
}

static const char *const centroid_names[] = {
    "shcentroid-700-d10-xy", "shcentroid-700-d10-all", "shcentroid-1000-d3-xy"};

static void
print_centroids (void)
{
  const char *const peers[] = {
      "ours", "launch", "read-words", "read-vectors", "copies"};

  printf ("\nmapped host memory to mapped host memory, us: median/p99/max\n");
  for (const char *name : centroid_names) {
    printf ("%-22s", name);
    for (const char *who : peers) {
      char row[96];
      BenchFigures f;

      snprintf (row, sizeof (row), "%s-mapped", name);
      f = bench_find (row, who);
      printf (" %s %.1f/%.1f/%.0f", who, f.median, f.p99, f.max);
    }
    printf (
        "\n%-22s kernel alone, frame in device memory, and an empty one:", "");
    for (const char *suffix : {"", "-graph", "-single"}) {
      char row[32];

      snprintf (row, sizeof (row), "-device%s", suffix);
      printf (" %s %.2f, %.2f", *suffix ? suffix + 1 : "batch",
          median_of (name, row, "ours"), median_of (name, row, "launch"));
    }
    printf ("\n");
  }
}

static void
print_options (void)
{
  printf ("\nkernel alone, frame in device memory, us (times the plain "
          "centroid)\n");
  for (const OptionBase &base : option_bases) {
    printf ("%-27s", base.name);
    for (const CentroidOption &option : centroid_options) {
      char row[96];
      double ours;

      snprintf (row, sizeof (row), "%s-%s", base.name, option.name);
      ours = bench_find (row, "ours").median;
      printf (" %s %.2f (%.2f)", option.name, ours,
          ours / bench_find (row, "plain").median);
    }
    printf ("\n");
  }
}

static void
print_grid (void)
{
  printf (
      "\nthe paper's grid, mapped: us on the GPU (times faster than our CPU "
      "thread, than the plain loop)\n%-6s",
      "RoI");
  for (uint32_t pitch : pitches)
    printf ("    d=%-18u", pitch);
  for (uint32_t roi : rois) {
    printf ("\n%-6u", roi);
    for (uint32_t pitch : pitches) {
      char name[64];
      double gpu;

      grid_name (name, sizeof (name), roi, pitch);
      gpu = bench_find (name, "ours").median;
      printf (" %6.1f (%6.2f, %6.2f)", gpu,
          bench_find (name, "ours-cpu").median / gpu,
          bench_find (name, "plain-loop").median / gpu);
    }
  }
  printf ("\n");
}

/* --- octangio, from device memory to device memory ------------------------ */

enum { ANGIO_REPEATS = 4, ANGIO_BATCH = 50 };

struct AngioMethod {
  const char *name;
  ImkOctangioMethod method;
  uint32_t n_bands;
  double tolerance; /* of the largest value, beside the CPU */
  bool keeps_bulk;  /* without bulk_motion */
};

static const AngioMethod angio_methods[] = {
    {"mean", IMK_OCTANGIO_MEAN, 1, 1e-5},
    {"speckle-variance", IMK_OCTANGIO_SPECKLE_VARIANCE, 1, 1e-5},
    {"decorrelation", IMK_OCTANGIO_DECORRELATION, 1, 1e-5},
    {"complex-decorrelation", IMK_OCTANGIO_COMPLEX_DECORRELATION, 1, 1e-5},
    {"complex-no-bulk", IMK_OCTANGIO_COMPLEX_DECORRELATION, 1, 1e-5, true},
    {"doppler", IMK_OCTANGIO_DOPPLER, 1, 0}, /* phases of noise wrap */
    {"eigen", IMK_OCTANGIO_EIGEN, 1, 1e-5},
    {"decorrelation-4-bands", IMK_OCTANGIO_DECORRELATION, 4, 1e-4},
};

struct AngioSize {
  uint32_t n_ascans, n_depths;
};

static const AngioSize angio_sizes[] = {{240, 832}, {1024, 1024}};

struct Angio {
  ImkOctangio *kernel;
  BenchRing sets, flows;
  ImkImage bscans[ANGIO_REPEATS], flow;
};

static void
angio_ours (void *data, uint32_t turn)
{
  Angio *a = (Angio *) data;
  uint8_t *set = bench_ring_at (&a->sets, turn);
  ImkError error;

  for (uint32_t r = 0; r < ANGIO_REPEATS; r++)
    a->bscans[r].data = set + r * a->bscans[r].stride * a->bscans[r].height;
  a->flow.data = bench_ring_at (&a->flows, turn);
  bench_ok (
      imk_octangio_process (a->kernel, a->bscans, &a->flow, stream, &error),
      &error);
}

/* Reads all of @in; a grid of a few blocks for each multiprocessor. */
static __global__ void
read_all (const uint4 *in, size_t n, uint32_t *out)
{
  size_t step = (size_t) gridDim.x * blockDim.x;
  uint32_t sum = 0;

#pragma unroll 8
  for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < n;
       i += step) {
    uint4 v = in[i];

    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678) /* or the loads would be left out */
    *out = sum;
}

static void
angio_read (void *data, uint32_t turn)
{
  Angio *a = (Angio *) data;

  read_all<<<2112, 256, 0, stream>>> (
      (const uint4 *) bench_ring_at (&a->sets, turn),
      a->sets.size / sizeof (uint4),
      (uint32_t *) bench_ring_at (&a->flows, turn));
}

static void
angio_launch (void *data, uint32_t turn)
{
  do_nothing<<<1, 32, 0, stream>>> ();
}

/* Returns: numbers in host memory, a set */
static float *
angio_open (Angio *a, const AngioSize *size)
{
  size_t n = 2 * (size_t) size->n_ascans * size->n_depths * ANGIO_REPEATS;
  float *set = (float *) malloc (n * sizeof (float));
  uint64_t state = 1;

  *a = {};
  for (size_t i = 0; i < n; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    set[i] = (float) (int32_t) (state >> 32) * 0x1p-31f;
  }
  a->sets = device_ring_new (n * sizeof (float), ring_size);
  a->flows = device_ring_new (
      sizeof (float) * size->n_ascans * size->n_depths, ring_size / 8);
  device_ring_fill (&a->sets, set);
  for (uint32_t r = 0; r < ANGIO_REPEATS; r++)
    a->bscans[r] = make_image (size->n_depths, size->n_ascans, 1, IMK_TYPE_CF32,
        IMK_LOCATION_DEVICE, nullptr);
  a->flow = make_image (size->n_ascans, size->n_depths, 1, IMK_TYPE_F32,
      IMK_LOCATION_DEVICE, nullptr);
  return set;
}

/* The CPU's answer. */
static void
angio_check (
    Angio *a, const ImkOctangioConfig *c, const AngioMethod *method, float *set)
{
  size_t n = (size_t) c->n_ascans * c->n_depths;
  float *found = (float *) malloc (n * sizeof (float));
  float *expected = (float *) malloc (n * sizeof (float));
  ImkImage bscans[ANGIO_REPEATS], flow = a->flow;
  double largest = 0;
  ImkOctangio *cpu = nullptr;
  ImkError error;

  for (uint32_t r = 0; r < ANGIO_REPEATS; r++) {
    bscans[r] = a->bscans[r];
    bscans[r].data = set + 2 * n * r;
    bscans[r].location = IMK_LOCATION_HOST;
  }
  flow.data = expected;
  flow.location = IMK_LOCATION_HOST;
  bench_ok (imk_octangio_new (IMK_BACKEND_CPU, c, &cpu, &error), &error);
  bench_ok (imk_octangio_process (cpu, bscans, &flow, nullptr, &error), &error);
  imk_octangio_free (cpu);
  angio_ours (a, 0);
  CUDA (cudaMemcpyAsync (
      found, a->flow.data, n * sizeof (float), cudaMemcpyDeviceToHost, stream));
  CUDA (cudaStreamSynchronize (stream));
  for (size_t i = 0; i < n; i++)
    largest = fmax (largest, fabs (expected[i]));
  for (size_t i = 0; i < n && method->tolerance > 0; i++)
    if (!(fabs (found[i] - expected[i]) <= method->tolerance * largest))
      bench_fail ("octangio %s: %g at pixel %zu, the CPU has %g", method->name,
          found[i], i, expected[i]);
  free (found);
  free (expected);
}

static void
run_angio (const AngioSize *size, const AngioMethod *method)
{
  Angio a;
  BenchEntry entries[] = {
      {"cuda", "ours", angio_ours, &a},
      {"cuda", "read", angio_read, &a},
      {"cuda", "launch", angio_launch, &a},
  };
  ImkOctangioConfig c;
  ImkError error;
  char name[80];
  float *set;

  snprintf (name, sizeof (name), "octangio-%ux%ux%u-%s", size->n_ascans,
      size->n_depths, ANGIO_REPEATS, method->name);
  if (!bench_wants (name))
    return;
  imk_octangio_config_init (&c);
  c.n_ascans = size->n_ascans;
  c.n_depths = size->n_depths;
  c.n_repeats = ANGIO_REPEATS;
  c.method = method->method;
  c.n_bands = method->n_bands;
  c.bulk_motion = !method->keeps_bulk;
  set = angio_open (&a, size);
  bench_ok (imk_octangio_new (IMK_BACKEND_CUDA, &c, &a.kernel, &error), &error);
  angio_check (&a, &c, method, set);
  device_case (name, entries, 3, ANGIO_BATCH, bench_repeats ());
  imk_octangio_free (a.kernel);
  device_ring_free (&a.sets);
  device_ring_free (&a.flows);
  free (set);
}

static void
print_angio (void)
{
  char name[80];

  printf ("\noctangio on the device, %u repeats, launches in a graph: us for a "
          "set, us to read it once, the ratio, us for an empty launch\n",
      ANGIO_REPEATS);
  for (const AngioSize &size : angio_sizes)
    for (const AngioMethod &method : angio_methods) {
      double ours, read;

      snprintf (name, sizeof (name), "octangio-%ux%ux%u-%s-graph",
          size.n_ascans, size.n_depths, ANGIO_REPEATS, method.name);
      ours = bench_find (name, "ours").median;
      read = bench_find (name, "read").median;
      if (std::isnan (ours)) /* not asked for */
        continue;
      printf ("%-50s %7.2f %7.2f %6.2f %6.2f\n", name, ours, read, ours / read,
          bench_find (name, "launch").median);
    }
}

static void
print_table (void)
{
  cudaDeviceProp p;
  int driver, runtime;

  CUDA (cudaGetDeviceProperties (&p, 0));
  CUDA (cudaDriverGetVersion (&driver));
  CUDA (cudaRuntimeGetVersion (&runtime));
  printf (
      "\n%s, %d multiprocessors, L2 %d MB; CUDA driver API %d, runtime %d\n",
      p.name, p.multiProcessorCount, p.l2CacheSize / 1000000, driver, runtime);
  print_sharpen ();
  print_centroids ();
  print_options ();
  print_grid ();
  printf ("\npinned 16 MiB: up %.1f GB/s, down %.1f GB/s; device copy of 512 "
          "MiB %.0f GB/s read and written\n",
      16777216.0 / bench_find ("pcie-16MiB", "upload").median / 1e3,
      16777216.0 / bench_find ("pcie-16MiB", "download").median / 1e3,
      1073741824.0 / bench_find ("device-512MiB", "device-copy").median / 1e3);
}

/* The primary context, for this program's CUDA runtime and the module's. */
static void
enter_context (void)
{
  const ImkDevice *device;
  void *context;
  ImkError error;

  CUDA (cudaSetDevice (0));
  bench_ok (imk_device_get (&device, &error), &error);
  bench_ok (device->context (0, &context, &error), &error);
  bench_ok (device->push (context, &error), &error);
}

int
main (int argc, char **argv)
{
  BenchRing noise = {};

  bench_open (argc, argv, "gpu");
  enter_context ();
  CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
  CUDA (cudaEventCreate (&start_event));
  CUDA (cudaEventCreate (&end_event));
  npp_open ();
  pinned_frames = pinned_new (pinned_size);
  noise.block = pinned_frames;
  noise.n = 1;
  noise.size = noise.stride = pinned_size;
  bench_ring_noise (&noise, 1);

  if (bench_wants ("pcie") || bench_wants ("device"))
    run_copies ();
  bench_ring_noise (&noise, 1); /* the download overwrote some */
  run_centroids (centroid_names[0], 700, 10, IMK_SHCENTROID_FIELDS_XY);
  run_centroids (centroid_names[1], 700, 10, IMK_SHCENTROID_FIELDS_ALL);
  run_centroids (centroid_names[2], 1000, 3, IMK_SHCENTROID_FIELDS_XY);
  make_calibration (1000);
  for (const OptionBase &base : option_bases)
    run_options (&base);
  for (uint32_t roi : rois)
    for (uint32_t pitch : pitches)
      run_grid (roi, pitch);
  for (const SharpenCase &c : sharpen_cases)
    if (bench_wants (c.name))
      run_sharpen (&c);
  for (const AngioSize &size : angio_sizes)
    for (const AngioMethod &method : angio_methods)
      run_angio (&size, &method);
  CUDA (cudaDeviceSynchronize ());
  if (bench_wants_row ("")) /* all of them */
    print_table ();
  if (bench_wants ("octangio"))
    print_angio ();
  return bench_close ();
}
