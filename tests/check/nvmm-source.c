/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nvmm-source.h"

#include <gst/base/gstpushsrc.h>

/* --- buffers ------------------------------------------------------------- */

gchar *
check_nvmm_caps (const gchar *format, gint width, gint height)
{
  return g_strdup_printf (
      "video/x-raw(memory:NVMM),format=%s,width=%d,height=%d,framerate=25/1",
      format, width, height);
}

static NvBufSurfaceColorFormat
color_format (const GstVideoInfo *info)
{
  switch (GST_VIDEO_INFO_FORMAT (info)) {
  case GST_VIDEO_FORMAT_GRAY8:
    return NVBUF_COLOR_FORMAT_GRAY8;
  case GST_VIDEO_FORMAT_NV12:
    return NVBUF_COLOR_FORMAT_NV12;
  case GST_VIDEO_FORMAT_P010_10LE:
    return NVBUF_COLOR_FORMAT_NV12_10LE;
  case GST_VIDEO_FORMAT_NV16:
    return NVBUF_COLOR_FORMAT_NV16;
  default:
    return NVBUF_COLOR_FORMAT_RGBA;
  }
}

static NvBufSurface *
surface_new (const GstVideoInfo *info, NvBufSurfaceMemType memory)
{
  NvBufSurfaceCreateParams params = {
      .width = info->width,
      .height = info->height,
      .colorFormat = color_format (info),
      .layout = NVBUF_LAYOUT_PITCH,
      .memType = memory,
  };
  NvBufSurface *surface = NULL;

  fail_unless_equals_int (NvBufSurfaceCreate (&surface, 1, &params), 0);
  surface->numFilled = 1;
  return surface;
}

static void
surface_free (gpointer surface)
{
  NvBufSurfaceDestroy (surface);
}

static void
fill_with_noise (NvBufSurface *surface, const GstVideoInfo *info, guint seed)
{
  g_autoptr (GstBuffer) noise = check_noise (info, seed);
  GstVideoFrame frame;

  fail_unless (
      gst_video_frame_map (&frame, (GstVideoInfo *) info, noise, GST_MAP_READ));
  for (guint i = 0; i < GST_VIDEO_FRAME_N_PLANES (&frame); i++)
    imk_mock_surface_write (surface, i, GST_VIDEO_FRAME_PLANE_DATA (&frame, i),
        GST_VIDEO_FRAME_PLANE_STRIDE (&frame, i));
  gst_video_frame_unmap (&frame);
}

static GstBuffer *
wrap (NvBufSurface *surface)
{
  return gst_buffer_new_wrapped_full (0, surface, sizeof (*surface), 0,
      sizeof (*surface), surface, surface_free);
}

GstBuffer *
check_nvmm_noise (
    const GstVideoInfo *info, guint seed, NvBufSurfaceMemType memory)
{
  NvBufSurface *surface = surface_new (info, memory);
  GstBuffer *buffer;

  fill_with_noise (surface, info, seed);
  buffer = wrap (surface);
  GST_BUFFER_PTS (buffer) = seed * 40 * GST_MSECOND;
  return buffer;
}

NvBufSurface *
check_nvmm_surface (GstBuffer *buffer)
{
  NvBufSurface *surface;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

  fail_unless_equals_uint64 (map.size, sizeof (NvBufSurface));
  surface = (NvBufSurface *) map.data;
  return surface;
}

GstBuffer *
check_nvmm_read (GstBuffer *buffer, const GstVideoInfo *info)
{
  NvBufSurface *surface = check_nvmm_surface (buffer);
  GstBuffer *copy = gst_buffer_new_allocate (NULL, info->size, NULL);
  GstVideoFrame frame;

  fail_unless (
      gst_video_frame_map (&frame, (GstVideoInfo *) info, copy, GST_MAP_WRITE));
  for (guint i = 0; i < GST_VIDEO_FRAME_N_PLANES (&frame); i++)
    imk_mock_surface_read (surface, i, GST_VIDEO_FRAME_PLANE_DATA (&frame, i),
        GST_VIDEO_FRAME_PLANE_STRIDE (&frame, i));
  gst_video_frame_unmap (&frame);
  return copy;
}

/* --- the camera ----------------------------------------------------------- */

typedef struct {
  GstPushSrc parent;
  GstVideoInfo info;
  GstBufferPool *pool;
  guint number;
  gint sensor_id;
} TestCamera;

typedef GstPushSrcClass TestCameraClass;

static GType test_camera_get_type (void);
G_DEFINE_TYPE (TestCamera, test_camera, GST_TYPE_PUSH_SRC)

/* Surfaces that go round, as those of a camera. */
typedef GstBufferPool TestPool;
typedef GstBufferPoolClass TestPoolClass;

static GType test_pool_get_type (void);
G_DEFINE_TYPE (TestPool, test_pool, GST_TYPE_BUFFER_POOL)

static GstFlowReturn
test_pool_alloc (
    GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *params)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstCaps *caps = NULL;
  GstVideoInfo info;

  gst_buffer_pool_config_get_params (config, &caps, NULL, NULL, NULL);
  fail_unless (gst_video_info_from_caps (&info, caps));
  gst_structure_free (config);
  *buffer = wrap (surface_new (&info, NVBUF_MEM_DEFAULT));
  return GST_FLOW_OK;
}

static void
test_pool_class_init (TestPoolClass *klass)
{
  klass->alloc_buffer = test_pool_alloc;
}

static void
test_pool_init (TestPool *self)
{
}

static gboolean
test_camera_set_caps (GstBaseSrc *base, GstCaps *caps)
{
  TestCamera *self = (TestCamera *) base;
  GstStructure *config;

  self->pool = g_object_new (test_pool_get_type (), NULL);
  config = gst_buffer_pool_get_config (self->pool);
  gst_buffer_pool_config_set_params (config, caps, sizeof (NvBufSurface), 4, 4);
  return gst_video_info_from_caps (&self->info, caps) &&
         gst_buffer_pool_set_config (self->pool, config) &&
         gst_buffer_pool_set_active (self->pool, TRUE);
}

static gboolean
test_camera_stop (GstBaseSrc *base)
{
  TestCamera *self = (TestCamera *) base;

  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  gst_clear_object (&self->pool);
  self->number = 0;
  return TRUE;
}

static GstFlowReturn
test_camera_create (GstPushSrc *push, GstBuffer **buffer)
{
  TestCamera *self = (TestCamera *) push;
  GstFlowReturn flow =
      gst_buffer_pool_acquire_buffer (self->pool, buffer, NULL);

  if (flow != GST_FLOW_OK)
    return flow;
  fill_with_noise (check_nvmm_surface (*buffer), &self->info, self->number);
  GST_BUFFER_PTS (*buffer) = self->number * 40 * GST_MSECOND;
  GST_BUFFER_DURATION (*buffer) = 40 * GST_MSECOND;
  GST_BUFFER_OFFSET (*buffer) = self->number++;
  return GST_FLOW_OK;
}

static void
test_camera_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  ((TestCamera *) object)->sensor_id = g_value_get_int (value);
}

static void
test_camera_class_init (TestCameraClass *klass)
{
  static GstStaticPadTemplate template =
      GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
          GST_STATIC_CAPS (
              GST_VIDEO_CAPS_MAKE_WITH_FEATURES ("memory:NVMM", "NV12")));

  gst_element_class_add_static_pad_template (
      GST_ELEMENT_CLASS (klass), &template);
  gst_element_class_set_static_metadata (GST_ELEMENT_CLASS (klass),
      "Test camera", "Source/Video", "Stands in for Jetson's", "gst-imaging");
  G_OBJECT_CLASS (klass)->set_property = test_camera_set_property;
  g_object_class_install_property (G_OBJECT_CLASS (klass), 1,
      g_param_spec_int ("sensor-id", "Sensor", "Not used", 0, 7, 0,
          G_PARAM_WRITABLE | G_PARAM_STATIC_STRINGS));
  GST_BASE_SRC_CLASS (klass)->set_caps = test_camera_set_caps;
  GST_BASE_SRC_CLASS (klass)->stop = test_camera_stop;
  klass->create = test_camera_create;
}

static void
test_camera_init (TestCamera *self)
{
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_TIME);
}

void
check_nvmm_register_camera (void)
{
  fail_unless (gst_element_register (
      NULL, "nvarguscamerasrc", GST_RANK_NONE, test_camera_get_type ()));
}
