/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingnvmm.h"

#ifdef HAVE_NVMM

#include <dlfcn.h>

#include "gstimaging-private.h"

/* Rows of the linear copy of a block-linear plane. */
#define SCRATCH_ALIGNMENT 256

/* --- the library --------------------------------------------------------- */

static gpointer
open_library (gpointer data)
{
  /* the first is its soname; the second is a link that packages bring */
  const gchar *names[] = {"libnvbufsurface.so.1.0.0", "libnvbufsurface.so"};
  static GstImagingNvmmLibrary library;
  void *handle = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (names) && !handle; i++)
    handle = dlopen (names[i], RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return NULL;
  library.create =
      (NvBufSurfaceCreateFunc) dlsym (handle, "NvBufSurfaceCreate");
  library.destroy =
      (NvBufSurfaceDestroyFunc) dlsym (handle, "NvBufSurfaceDestroy");
  library.map_egl_image =
      (NvBufSurfaceMapEglImageFunc) dlsym (handle, "NvBufSurfaceMapEglImage");
  library.unmap_egl_image =
      (NvBufSurfaceMapEglImageFunc) dlsym (handle, "NvBufSurfaceUnMapEglImage");
  return library.create && library.destroy ? &library : NULL;
}

const GstImagingNvmmLibrary *
gst_imaging_nvmm_library (ImkError *error)
{
  static GOnce once = G_ONCE_INIT;

  g_once (&once, open_library, NULL);
  if (!once.retval)
    imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "libnvbufsurface.so, which memory:NVMM needs, was not found. It comes "
        "with JetPack and DeepStream; without it, use video/x-raw.");
  return once.retval;
}

/* --- one surface, mapped ------------------------------------------------- */

/* What does not change from frame to frame of a surface. */
typedef struct {
  GstImagingContext *context;
  /* of which surface: a producer may put another one into the same memory */
  NvBufSurface *surface;
  guint64 descriptor;
  gpointer data;

  ImkEglFrame egl;      /* of SURFACE_ARRAY */
  gboolean owns_image;  /* the EGL image was made here */
  gpointer scratch;     /* linear planes, for arrays; NULL until wanted */
  gsize scratch_stride; /* of all planes */
} Mapping;

/* With the memory, from its first frame to its end. */
typedef struct {
  GMutex lock;
  GstImagingContext *context;
  Mapping *mapping; /* NULL until wanted */
} Slot;

static GQuark
slot_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-nvmm-slot");
}

static const ImkDevice *
device_of (const Mapping *m)
{
  return gst_imaging_context_device (m->context);
}

static void
mapping_clear (gpointer data)
{
  Mapping *m = data;

  if (gst_imaging_context_push (m->context, NULL) == IMK_OK) {
    if (m->scratch)
      device_of (m)->free_device (m->scratch);
    if (m->egl.resource)
      device_of (m)->egl_unmap (&m->egl);
    gst_imaging_context_pop (m->context);
  }
  if (m->owns_image)
    gst_imaging_nvmm_library (NULL)->unmap_egl_image (m->surface, 0);
  g_object_unref (m->context);
}

static void
mapping_unref (Mapping *m)
{
  g_atomic_rc_box_release_full (m, mapping_clear);
}

static ImkStatus
map_egl (Mapping *m, ImkError *error)
{
  const GstImagingNvmmLibrary *library = gst_imaging_nvmm_library (error);
  NvBufSurfaceParams *s = &m->surface->surfaceList[0];

  if (!library)
    return IMK_ERROR_UNAVAILABLE;
  if (!s->mappedAddr.eglImage) {
    if (!library->map_egl_image || !library->unmap_egl_image)
      return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
          "libnvbufsurface.so has no NvBufSurfaceMapEglImage: it is not that "
          "of a Jetson, but the frames are.");
    if (library->map_egl_image (m->surface, 0) != 0 || !s->mappedAddr.eglImage)
      return imk_error_set (error, IMK_ERROR_DEVICE,
          "No EGL image could be made of an NVMM surface. Without a display, "
          "unset DISPLAY.");
    m->owns_image = TRUE;
  }
  return device_of (m)->egl_map (s->mappedAddr.eglImage, &m->egl, error);
}

static Mapping *
mapping_new (GstImagingContext *context, NvBufSurface *surface,
    gboolean needs_egl, ImkError *error)
{
  Mapping *m = g_atomic_rc_box_new0 (Mapping);

  m->context = g_object_ref (context);
  m->surface = surface;
  m->descriptor = surface->surfaceList[0].bufferDesc;
  m->data = surface->surfaceList[0].dataPtr;
  if (!needs_egl || map_egl (m, error) == IMK_OK)
    return m;
  mapping_unref (m);
  return NULL;
}

static gboolean
is_of (const Mapping *m, const NvBufSurface *surface)
{
  return m->surface == surface &&
         m->descriptor == surface->surfaceList[0].bufferDesc &&
         m->data == surface->surfaceList[0].dataPtr;
}

/* Returns: the mapping of @slot for @surface, with a reference for the caller
 */
static Mapping *
slot_get (
    Slot *slot, NvBufSurface *surface, gboolean needs_egl, ImkError *error)
{
  Mapping *m = NULL;

  GST_IMAGING_HOLD (&slot->lock);
  if (slot->mapping && !is_of (slot->mapping, surface))
    g_clear_pointer (&slot->mapping, mapping_unref);
  if (!slot->mapping)
    slot->mapping = mapping_new (slot->context, surface, needs_egl, error);
  if (slot->mapping)
    m = g_atomic_rc_box_acquire (slot->mapping);
  return m;
}

/* Call before the memory releases its surface. */
static void
slot_free (gpointer data)
{
  Slot *slot = data;

  g_clear_pointer (&slot->mapping, mapping_unref);
  g_object_unref (slot->context);
  g_mutex_clear (&slot->lock);
  g_free (slot);
}

static Slot *
slot_of (GstBuffer *buffer)
{
  GstMemory *memory;

  if (gst_buffer_n_memory (buffer) != 1)
    return NULL;
  memory = gst_buffer_peek_memory (buffer, 0);
  if (memory->parent) /* shared by a copy of the buffer */
    memory = memory->parent;
  return gst_mini_object_get_qdata (GST_MINI_OBJECT (memory), slot_quark ());
}

static void
slot_new (GstBuffer *buffer, GstImagingContext *context)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);
  Slot *slot = g_new0 (Slot, 1);

  g_mutex_init (&slot->lock);
  slot->context = g_object_ref (context);
  if (memory->parent)
    memory = memory->parent;
  gst_mini_object_set_qdata (
      GST_MINI_OBJECT (memory), slot_quark (), slot, slot_free);
}

ImkStatus
gst_imaging_nvmm_adopt (
    GstBuffer *buffer, GstImagingContext *context, ImkError *error)
{
  static GMutex adopting; /* two elements may meet a memory at once */
  Slot *slot;

  if (gst_buffer_n_memory (buffer) != 1)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "An NVMM buffer has %u memories; it must have one, the surface.",
        gst_buffer_n_memory (buffer));
  GST_IMAGING_HOLD (&adopting);
  slot = slot_of (buffer);
  if (!slot)
    slot_new (buffer, context);
  else if (slot->context != context)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "An NVMM surface comes to elements on two CUDA contexts. Give all of "
        "them the same cuda-device-id.");
  return IMK_OK;
}

/* --- what is refused ----------------------------------------------------- */

static const gchar *const memory_names[] = {"default", "cuda-pinned",
    "cuda-device", "cuda-unified", "surface-array", "handle", "system"};

static NvBufSurfaceMemType
memory_type (const NvBufSurface *surface, GstImagingContext *context)
{
  if (surface->memType != NVBUF_MEM_DEFAULT)
    return surface->memType;
  return gst_imaging_context_info (context)->integrated
             ? NVBUF_MEM_SURFACE_ARRAY
             : NVBUF_MEM_CUDA_DEVICE;
}

static gboolean
is_linear (NvBufSurfaceMemType type)
{
  return type == NVBUF_MEM_CUDA_DEVICE || type == NVBUF_MEM_CUDA_PINNED ||
         type == NVBUF_MEM_CUDA_UNIFIED;
}

static ImkStatus
check_surface (const GstMapInfo *map, GstImagingContext *context,
    const GstVideoInfo *info, ImkError *error)
{
  const NvBufSurface *surface = (const NvBufSurface *) map->data;
  const NvBufSurfaceParams *s;

  if (map->size < sizeof (NvBufSurface) || !surface->surfaceList ||
      surface->batchSize < 1)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "An NVMM buffer of %" G_GSIZE_FORMAT " bytes holds no surface.",
        map->size);
  if (surface->numFilled > 1)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "An NVMM buffer holds a batch of %u frames; one frame a buffer is "
        "needed. Put nvstreamdemux before.",
        surface->numFilled);
  s = &surface->surfaceList[0];
  if (s->width != (guint) info->width || s->height != (guint) info->height ||
      s->planeParams.num_planes != GST_VIDEO_INFO_N_PLANES (info))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "An NVMM surface is %ux%u with %u planes, its caps say %dx%d %s with "
        "%u.",
        s->width, s->height, s->planeParams.num_planes, info->width,
        info->height, info->finfo->name, GST_VIDEO_INFO_N_PLANES (info));
  if (is_linear (memory_type (surface, context)) &&
      surface->gpuId != (guint) gst_imaging_context_device_id (context))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "An NVMM surface is on GPU %u, this element on GPU %d. Set "
        "cuda-device-id=%u.",
        surface->gpuId, gst_imaging_context_device_id (context),
        surface->gpuId);
  return IMK_OK;
}

static ImkStatus
check_linear (
    const GstImagingFrame *frame, const NvBufSurfaceParams *s, ImkError *error)
{
  if (!s->dataPtr || s->layout != NVBUF_LAYOUT_PITCH)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "An NVMM surface in memory of CUDA is %s.",
        s->dataPtr ? "block-linear" : "without an address");
  for (guint i = 0; i < frame->n_planes; i++) {
    const ImkImage *plane = &frame->planes[i];
    guint64 end = (guint64) s->planeParams.offset[i] +
                  (guint64) (plane->height - 1) * s->planeParams.pitch[i] +
                  imk_image_row_size (plane);

    if (s->planeParams.pitch[i] < imk_image_row_size (plane) ||
        (s->dataSize && end > s->dataSize))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "Plane %u of an NVMM surface, %u rows of %" G_GSIZE_FORMAT
          " bytes, %u bytes apart, from byte %u on, does not fit into its %u "
          "bytes.",
          i, plane->height, imk_image_row_size (plane), s->planeParams.pitch[i],
          s->planeParams.offset[i], s->dataSize);
  }
  return IMK_OK;
}

/* --- planes -------------------------------------------------------------- */

static ImkStatus
set_linear (GstImagingFrame *frame, const NvBufSurfaceParams *s,
    ImkLocation location, ImkError *error)
{
  IMK_TRY (check_linear (frame, s, error));
  for (guint i = 0; i < frame->n_planes; i++) {
    frame->planes[i].data = (guint8 *) s->dataPtr + s->planeParams.offset[i];
    frame->planes[i].stride = s->planeParams.pitch[i];
    frame->planes[i].location = location;
  }
  return IMK_OK;
}

static ImkStatus
set_pitch (GstImagingFrame *frame, const Mapping *m, ImkError *error)
{
  const NvBufSurfaceParams *s = &m->surface->surfaceList[0];

  for (guint i = 0; i < frame->n_planes; i++) {
    ImkImage *plane = &frame->planes[i];

    plane->data = m->egl.planes[i];
    plane->stride = i == 0 ? m->egl.stride : s->planeParams.pitch[i];
    plane->location = IMK_LOCATION_DEVICE;
    if (plane->stride < imk_image_row_size (plane))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "Plane %u of an NVMM surface has rows of %" G_GSIZE_FORMAT
          " bytes, too short for %u pixels.",
          i, plane->stride, plane->width);
  }
  return IMK_OK;
}

static ImkStatus
need_scratch (Mapping *m, const GstImagingFrame *frame, ImkError *error)
{
  gsize stride = 0, height = 0;

  if (m->scratch)
    return IMK_OK;
  for (guint i = 0; i < frame->n_planes; i++) {
    stride = MAX (stride, imk_image_row_size (&frame->planes[i]));
    height += frame->planes[i].height;
  }
  m->scratch_stride =
      (stride + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
  return device_of (m)->alloc_device (
      m->scratch_stride * height, &m->scratch, error);
}

static ImkStatus
copy_planes (const GstImagingFrame *frame, const Mapping *m, gboolean to_array,
    ImkError *error)
{
  for (guint i = 0; i < frame->n_planes; i++) {
    const ImkImage *plane = &frame->planes[i];

    IMK_TRY (device_of (m)->copy_array (m->egl.planes[i], plane->data,
        plane->stride, imk_image_row_size (plane), plane->height, to_array,
        frame->stream, error));
  }
  return IMK_OK;
}

/* No kernel walks block-linear memory; a linear copy is made on the device.
 * Two elements that read a frame at once make the same copy twice. */
static ImkStatus
set_array (GstImagingFrame *frame, Mapping *m, Slot *slot, ImkError *error)
{
  ImkStatus status;
  guint8 *row;

  g_mutex_lock (&slot->lock);
  status = need_scratch (m, frame, error);
  g_mutex_unlock (&slot->lock);
  row = m->scratch;
  for (guint i = 0; i < frame->n_planes && status == IMK_OK; i++) {
    ImkImage *plane = &frame->planes[i];

    plane->data = row;
    plane->stride = m->scratch_stride;
    plane->location = IMK_LOCATION_DEVICE;
    row += plane->height * plane->stride;
  }
  if (status == IMK_OK && frame->access & GST_MAP_READ)
    status = copy_planes (frame, m, FALSE, error);
  return status;
}

static ImkStatus
set_planes (GstImagingFrame *frame, Mapping *m, Slot *slot, ImkError *error)
{
  const NvBufSurfaceParams *s = &m->surface->surfaceList[0];
  NvBufSurfaceMemType type = memory_type (m->surface, m->context);

  frame->memory_name = m->egl.is_array ? "NVMM-array" : "NVMM";
  if (is_linear (type))
    return set_linear (frame, s,
        type == NVBUF_MEM_CUDA_PINNED ? IMK_LOCATION_HOST_MAPPED
                                      : IMK_LOCATION_DEVICE,
        error);
  if (m->egl.n_planes != frame->n_planes)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The EGL image of an NVMM surface has %u planes instead of %u.",
        m->egl.n_planes, frame->n_planes);
  return m->egl.is_array ? set_array (frame, m, slot, error)
                         : set_pitch (frame, m, error);
}

/* --- the mapper ---------------------------------------------------------- */

static gboolean
nvmm_can_map (
    GstBuffer *buffer, GstImagingContext *context, GstImagingReach reach)
{
  Slot *slot = reach == GST_IMAGING_REACH_HOST ? NULL : slot_of (buffer);

  return slot && slot->context == context;
}

/* @frame->mapping when all went well. */
static ImkStatus
map_surface (GstImagingFrame *frame, const GstVideoInfo *info,
    const GstMapInfo *map, ImkError *error)
{
  Slot *slot = slot_of (frame->buffer);
  NvBufSurface *surface = (NvBufSurface *) map->data;
  ImkStatus status;
  NvBufSurfaceMemType type;
  Mapping *m;

  IMK_TRY (check_surface (map, slot->context, info, error));
  type = memory_type (surface, slot->context);
  if (!is_linear (type) && type != NVBUF_MEM_SURFACE_ARRAY)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "An NVMM surface is in memory of type %d (%s), which CUDA cannot "
        "reach.",
        type,
        type < (gint) G_N_ELEMENTS (memory_names) ? memory_names[type]
                                                  : "unknown");
  m = slot_get (slot, surface, type == NVBUF_MEM_SURFACE_ARRAY, error);
  if (!m)
    return error->code;
  status = set_planes (frame, m, slot, error);
  if (status == IMK_OK)
    frame->mapping = m;
  else
    mapping_unref (m);
  return status;
}

static ImkStatus
nvmm_map (GstImagingFrame *frame, const GstVideoInfo *info,
    GstImagingReach reach, GstImagingStats *stats, ImkError *error)
{
  GstMapInfo *map = &frame->video.map[0];
  ImkError own; /* the caller may want no sentence, we want the code */
  ImkStatus status;

  /* to read: what is written is not the handle but what it leads to */
  if (!gst_buffer_map (frame->buffer, map, GST_MAP_READ))
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "An NVMM buffer cannot be mapped to find its surface.");
  status = map_surface (frame, info, map, &own);
  if (status == IMK_OK)
    return status;
  gst_buffer_unmap (frame->buffer, map);
  return imk_error_set (error, status, "%s", own.message);
}

/* Nobody waits for streams of others here: the work has to be finished when
 * the frame goes on or back to its pool. */
static ImkStatus
nvmm_unmap (GstImagingFrame *frame, gboolean done, ImkError *error)
{
  Mapping *m = frame->mapping;
  gboolean copies = m->egl.is_array && frame->access & GST_MAP_WRITE;
  ImkStatus status = copies ? copy_planes (frame, m, TRUE, error) : IMK_OK;

  if (status == IMK_OK && (copies || !done))
    status = device_of (m)->stream_synchronize (frame->stream, error);
  gst_buffer_unmap (frame->buffer, &frame->video.map[0]);
  mapping_unref (m);
  return status;
}

const GstImagingMapper gst_imaging_nvmm_mapper = {
    nvmm_can_map, nvmm_map, nvmm_unmap};

#endif
