/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shreconstruct-floors.h"

#include <cuda_runtime.h>

#include "bench.h"

enum { THREADS = 512, PER_THREAD = 8, N_READS = 50 };

static cudaStream_t stream;
static cudaEvent_t from_event, to_event;
static cudaGraph_t graph;
static cudaGraphExec_t empty_graph;
static uint4 *frame_seen, *matrix, *sums;
static void *frame;
static size_t n_frame, n_matrix; /* of 16 bytes */
static int n_processors;

#define CUDA(...) check_cuda ((__VA_ARGS__), #__VA_ARGS__)

static void
check_cuda (cudaError_t result, const char *call)
{
  if (result != cudaSuccess)
    bench_fail ("%s: %s", call, cudaGetErrorString (result));
}

static __global__ void
do_nothing (void)
{
}

/* Many loads in flight, each used once. */
static __global__ void
read_all (const uint4 *from, size_t n, uint4 *sums)
{
  const size_t step = (size_t) gridDim.x * THREADS;
  size_t i = (size_t) blockIdx.x * THREADS + threadIdx.x;
  uint32_t sum = 0;

  for (; i + (PER_THREAD - 1) * step < n; i += PER_THREAD * step) {
    uint4 v[PER_THREAD];

#pragma unroll
    for (int k = 0; k < PER_THREAD; k++)
      v[k] = __ldcs (from + i + k * step);
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++)
      sum ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  for (; i < n; i += step) {
    const uint4 v = __ldcs (from + i);

    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678)
    sums[0].x = sum;
}

static unsigned
blocks_for (size_t n)
{
  const size_t most = (size_t) n_processors * 4;
  const size_t needed = (n + THREADS - 1) / THREADS;

  return (unsigned) (needed < most ? needed : most);
}

void
floors_open (size_t frame_size, size_t matrix_size)
{
  int device;

  CUDA (cudaGetDevice (&device));
  CUDA (cudaDeviceGetAttribute (
      &n_processors, cudaDevAttrMultiProcessorCount, device));
  CUDA (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
  CUDA (cudaEventCreate (&from_event));
  CUDA (cudaEventCreate (&to_event));
  n_frame = frame_size / sizeof (uint4);
  n_matrix = matrix_size / sizeof (uint4);
  CUDA (cudaHostAlloc (&frame, n_frame * sizeof (uint4), cudaHostAllocMapped));
  CUDA (cudaHostGetDevicePointer ((void **) &frame_seen, frame, 0));
  CUDA (cudaMalloc ((void **) &matrix, n_matrix * sizeof (uint4)));
  CUDA (cudaMalloc ((void **) &sums, sizeof (uint4)));
  CUDA (cudaMemset (matrix, 1, n_matrix * sizeof (uint4)));
  CUDA (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
  do_nothing<<<1, 1, 0, stream>>> ();
  CUDA (cudaStreamEndCapture (stream, &graph));
  CUDA (cudaGraphInstantiate (&empty_graph, graph, 0));
  CUDA (cudaDeviceSynchronize ());
}

void
floors_close (void)
{
  CUDA (cudaGraphExecDestroy (empty_graph));
  CUDA (cudaGraphDestroy (graph));
  CUDA (cudaEventDestroy (from_event));
  CUDA (cudaEventDestroy (to_event));
  CUDA (cudaFreeHost (frame));
  CUDA (cudaFree (matrix));
  CUDA (cudaFree (sums));
  CUDA (cudaStreamDestroy (stream));
}

void
floors_graph (void)
{
  CUDA (cudaGraphLaunch (empty_graph, stream));
  CUDA (cudaStreamSynchronize (stream));
}

void
floors_frame (void)
{
  read_all<<<blocks_for (n_frame), THREADS, 0, stream>>> (
      frame_seen, n_frame, sums);
  CUDA (cudaGetLastError ());
  CUDA (cudaStreamSynchronize (stream));
}

void
floors_matrix (void)
{
  read_all<<<blocks_for (n_matrix), THREADS, 0, stream>>> (
      matrix, n_matrix, sums);
  CUDA (cudaGetLastError ());
  CUDA (cudaStreamSynchronize (stream));
}

double
floors_matrix_on_device (void)
{
  float ms;

  CUDA (cudaEventRecord (from_event, stream));
  for (int i = 0; i < N_READS; i++)
    read_all<<<blocks_for (n_matrix), THREADS, 0, stream>>> (
        matrix, n_matrix, sums);
  CUDA (cudaEventRecord (to_event, stream));
  CUDA (cudaStreamSynchronize (stream));
  CUDA (cudaEventElapsedTime (&ms, from_event, to_event));
  return 1000.0 * ms / (double) N_READS;
}
