/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/device.h"

#include <cstdio>
#include <cuda.h>

#include "core/cuda/cuda-check.h"

extern "C" const ImkDevice imk_device_cuda;

/* Driver calls are looked up at run time: this module must load, and say what
 * is missing, where there is no libcuda. */
template <typename Function>
static void
driver_call (const char *name, Function *function)
{
  cudaDriverEntryPointQueryResult found;
  void *entry = nullptr;
  cudaError_t result;

#if CUDART_VERSION >= 12050
  result = cudaGetDriverEntryPointByVersion (
      name, &entry, 12000, cudaEnableDefault, &found);
#else
  result = cudaGetDriverEntryPoint (name, &entry, cudaEnableDefault, &found);
#endif
  if (result == cudaSuccess && found == cudaDriverEntryPointSuccess)
    *function = (Function) entry;
  else
    cudaGetLastError (); /* or the next launch would report this one */
}

/* cudaEGL.h has these, but includes headers of EGL, which need not be there. */
struct EglFrame {
  void *planes[3]; /* CUarray or device pointer */
  unsigned int width, height, depth;
  unsigned int pitch; /* of the first plane, in bytes */
  unsigned int n_planes, n_channels;
  int frame_type; /* CUeglFrameType */
  int color_format, array_format;
};
enum { EGL_FRAME_ARRAY = 0, EGL_FRAME_PITCH = 1 };

struct Driver {
  CUresult (*retain) (CUcontext *, CUdevice) = nullptr;
  CUresult (*push) (CUcontext) = nullptr;
  CUresult (*pop) (CUcontext *) = nullptr;
  CUresult (*enable_peer) (CUcontext, unsigned) = nullptr;
  CUresult (*egl_register) (CUgraphicsResource *, void *, unsigned) = nullptr;
  CUresult (*egl_frame) (
      EglFrame *, CUgraphicsResource, unsigned, unsigned) = nullptr;
  CUresult (*egl_unregister) (CUgraphicsResource) = nullptr;
  CUresult (*copy_2d) (const CUDA_MEMCPY2D *, CUstream) = nullptr;

  Driver ()
  {
    driver_call ("cuDevicePrimaryCtxRetain", &retain);
    driver_call ("cuCtxPushCurrent", &push);
    driver_call ("cuCtxPopCurrent", &pop);
    driver_call ("cuCtxEnablePeerAccess", &enable_peer);
    driver_call ("cuGraphicsEGLRegisterImage", &egl_register);
    driver_call ("cuGraphicsResourceGetMappedEglFrame", &egl_frame);
    driver_call ("cuGraphicsUnregisterResource", &egl_unregister);
    driver_call ("cuMemcpy2DAsync", &copy_2d);
  }
};

static const Driver &
driver (void)
{
  static const Driver d;

  return d;
}

static ImkStatus
device_count (int *n_devices, ImkError *error)
{
  *n_devices = 0;
  return IMK_CUDA (error, cudaGetDeviceCount (n_devices));
}

static ImkStatus
device_info (int device, ImkDeviceInfo *info, ImkError *error)
{
  cudaDeviceProp p;

  IMK_TRY (IMK_CUDA (error, cudaGetDeviceProperties (&p, device)));
  *info = ImkDeviceInfo{};
  snprintf (info->name, sizeof (info->name), "%s", p.name);
  info->compute_major = p.major;
  info->compute_minor = p.minor;
  info->integrated = p.integrated;
  /* Before 7.2 (Xavier) the CPU's view of pinned memory is uncached. */
  info->io_coherent = !p.integrated || p.major * 10 + p.minor >= 72;
  info->total_size = p.totalGlobalMem;
  return IMK_OK;
}

static ImkStatus
device_context (int device, void **context, ImkError *error)
{
  CUcontext retained, popped;
  int n_devices;
  ImkStatus status;

  /* Not cudaSetDevice (): the current context of this thread is its owner's. */
  IMK_TRY (IMK_CUDA (error, cudaGetDeviceCount (&n_devices)));
  if (device < 0 || device >= n_devices)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "There is no CUDA device %d: there are %d, from 0 on.", device,
        n_devices);
  if (!driver ().retain || !driver ().push || !driver ().pop)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "The CUDA driver has no primary contexts; it is too old.");
  if (driver ().retain (&retained, (CUdevice) device) != CUDA_SUCCESS ||
      driver ().push (retained) != CUDA_SUCCESS)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "CUDA device %d gives no primary context.", device);
  /* The runtime takes the context that is current. */
  status = IMK_CUDA (error, cudaFree (nullptr));
  driver ().pop (&popped);
  if (status != IMK_OK)
    return status;
  *context = retained;
  return IMK_OK;
}

static ImkStatus
device_push (void *context, ImkError *error)
{
  if (driver ().push && driver ().push ((CUcontext) context) == CUDA_SUCCESS)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_DEVICE,
      "The CUDA context %p could not be made current.", context);
}

static void
device_pop (void)
{
  CUcontext popped;

  if (driver ().pop)
    driver ().pop (&popped);
}

static ImkStatus
alloc_device (size_t size, void **device, ImkError *error)
{
  return IMK_CUDA (error, cudaMalloc (device, size));
}

static void
free_device (void *device)
{
  cudaFree (device);
}

static ImkStatus
alloc_pinned (size_t size, void **host, void **mapped, ImkError *error)
{
  void *pointer;
  ImkStatus status;

  IMK_TRY (IMK_CUDA (error, cudaHostAlloc (&pointer, size,
                                cudaHostAllocPortable | cudaHostAllocMapped)));
  status = IMK_CUDA (error, cudaHostGetDevicePointer (mapped, pointer, 0));
  if (status == IMK_OK)
    *host = pointer;
  else
    cudaFreeHost (pointer);
  return status;
}

static void
free_pinned (void *host)
{
  cudaFreeHost (host);
}

/* Without a link, or if it is enabled already, the call fails and changes
 * nothing; cudaMemcpyAsync () finds a way in any case. */
static void
enable_peer (void *context)
{
  if (driver ().enable_peer)
    driver ().enable_peer ((CUcontext) context, 0);
}

static ImkStatus
copy (void *to, size_t to_stride, const void *from, size_t from_stride,
    size_t row_size, size_t height, void *stream, ImkError *error)
{
  /* One long row goes at full speed where many rows of 2D copies do not. */
  if (to_stride == from_stride && to_stride == row_size) {
    row_size *= height;
    height = 1;
  }
  if (height == 1)
    return IMK_CUDA (error, cudaMemcpyAsync (to, from, row_size,
                                cudaMemcpyDefault, (cudaStream_t) stream));
  return IMK_CUDA (
      error, cudaMemcpy2DAsync (to, to_stride, from, from_stride, row_size,
                 height, cudaMemcpyDefault, (cudaStream_t) stream));
}

static ImkStatus
stream_new (void **stream, ImkError *error)
{
  return IMK_CUDA (error, cudaStreamCreateWithFlags (
                              (cudaStream_t *) stream, cudaStreamNonBlocking));
}

static void
stream_free (void *stream)
{
  if (stream)
    cudaStreamDestroy ((cudaStream_t) stream);
}

static ImkStatus
stream_synchronize (void *stream, ImkError *error)
{
  return IMK_CUDA (error, cudaStreamSynchronize ((cudaStream_t) stream));
}

static ImkStatus
event_new (void **event, ImkError *error)
{
  return IMK_CUDA (error,
      cudaEventCreateWithFlags ((cudaEvent_t *) event, cudaEventDisableTiming));
}

static void
event_free (void *event)
{
  if (event)
    cudaEventDestroy ((cudaEvent_t) event);
}

static ImkStatus
event_record (void *event, void *stream, ImkError *error)
{
  return IMK_CUDA (
      error, cudaEventRecord ((cudaEvent_t) event, (cudaStream_t) stream));
}

static ImkStatus
event_wait (void *event, void *stream, ImkError *error)
{
  return IMK_CUDA (error,
      cudaStreamWaitEvent ((cudaStream_t) stream, (cudaEvent_t) event, 0));
}

static ImkStatus
event_synchronize (void *event, ImkError *error)
{
  return IMK_CUDA (error, cudaEventSynchronize ((cudaEvent_t) event));
}

/* --- EGL images ----------------------------------------------------------- */

static ImkStatus
egl_check (CUresult result, const char *call, ImkError *error)
{
  if (result == CUDA_SUCCESS)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_DEVICE,
      "CUDA says: error %d in %s. EGL images can be mapped on a Jetson only.",
      (int) result, call);
}

static ImkStatus
egl_map (void *image, ImkEglFrame *frame, ImkError *error)
{
  const Driver &d = driver ();
  CUgraphicsResource resource;
  EglFrame mapped = {};
  ImkStatus status;

  if (!d.egl_register || !d.egl_frame || !d.egl_unregister || !d.copy_2d)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "The CUDA driver cannot map EGL images; that of a Jetson can.");
  /* no flags: a read-only registration is refused by some drivers */
  IMK_TRY (egl_check (d.egl_register (&resource, image, 0),
      "cuGraphicsEGLRegisterImage", error));
  status = egl_check (d.egl_frame (&mapped, resource, 0, 0),
      "cuGraphicsResourceGetMappedEglFrame", error);
  if (status == IMK_OK && mapped.frame_type != EGL_FRAME_ARRAY &&
      mapped.frame_type != EGL_FRAME_PITCH)
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "An EGL image has a frame of the unknown type %d.", mapped.frame_type);
  if (status != IMK_OK) {
    d.egl_unregister (resource);
    return status;
  }
  *frame = ImkEglFrame{};
  frame->resource = resource;
  frame->is_array = mapped.frame_type == EGL_FRAME_ARRAY;
  frame->n_planes = mapped.n_planes < 3 ? mapped.n_planes : 3;
  for (unsigned i = 0; i < frame->n_planes; i++)
    frame->planes[i] = mapped.planes[i];
  frame->stride = frame->is_array ? 0 : mapped.pitch;
  return IMK_OK;
}

static void
egl_unmap (ImkEglFrame *frame)
{
  if (frame->resource)
    driver ().egl_unregister ((CUgraphicsResource) frame->resource);
  *frame = ImkEglFrame{};
}

static ImkStatus
copy_array (void *array, void *memory, size_t stride, size_t row_size,
    size_t height, bool to_array, void *stream, ImkError *error)
{
  CUDA_MEMCPY2D c = {};

  c.srcMemoryType = to_array ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_ARRAY;
  c.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
  if (to_array) {
    c.srcDevice = (CUdeviceptr) memory;
    c.srcPitch = stride;
    c.dstArray = (CUarray) array;
  } else {
    c.srcArray = (CUarray) array;
    c.dstDevice = (CUdeviceptr) memory;
    c.dstPitch = stride;
  }
  c.WidthInBytes = row_size;
  c.Height = height;
  return egl_check (
      driver ().copy_2d (&c, (CUstream) stream), "cuMemcpy2DAsync", error);
}

const ImkDevice imk_device_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .count = device_count,
    .info = device_info,
    .context = device_context,
    .push = device_push,
    .pop = device_pop,
    .alloc_device = alloc_device,
    .free_device = free_device,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .enable_peer = enable_peer,
    .copy = copy,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_synchronize = stream_synchronize,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_synchronize = event_synchronize,
    .egl_map = egl_map,
    .egl_unmap = egl_unmap,
    .copy_array = copy_array,
};
