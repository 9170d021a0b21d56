/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-shmimsink
 * @title: shmimsink
 * @short_description: frames or commands into a stream in shared memory
 *
 * Writes each buffer into a stream in the layout of ImageStreamIO, and posts
 * its semaphores. A stream of the name that has as many values of the same type
 * is used as it is, whatever its shape: commands [n] go into a channel of cacao
 * of width x height = n. Otherwise the stream is made. It stays at the end.
 *
 * The time of acquisition in the stream is the reference timestamp of the
 * buffer, or the time of writing.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc is-live=true ! video/x-raw,format=GRAY8 !
 * shmimsink stream=test
 * ]|
 */
#include "gstshmimsink.h"

#include "../picturesink/gstpicturesinkformat.h"
#include "gstimagingpost.h"
#include "gstimagingsettings.h"
#include "gstshmim.h"

GST_DEBUG_CATEGORY_STATIC (shmim_sink_debug);
#define GST_CAT_DEFAULT shmim_sink_debug

typedef struct {
  GRefString *stream, *folder;
  gboolean replace;
  guint axes, semaphores;
} Settings;

static const GstImagingSetting settings[] = {
    GST_IMAGING_STRING ("stream", NEXT_START, 0, Settings, stream,
        "Name of the stream. Its file is FOLDER/STREAM.im.shm"),
    GST_IMAGING_STRING ("folder", NEXT_START, 0, Settings, folder,
        "Folder of the stream. Empty: that of the environment variable "
        "MILK_SHM_DIR, else /milk/shm, else /tmp, as in ImageStreamIO"),
    GST_IMAGING_BOOLEAN ("replace", NEXT_START, 0, Settings, replace,
        "true: a stream of the name that does not fit, or a file that is no "
        "stream, is replaced. false: it is an error"),
    GST_IMAGING_UINT ("axes", NEXT_START, 0, Settings, axes, 1, 3, NULL,
        "The least number of axes of a stream that is made: n commands are "
        "[n, 1] with 2, which milk and cacao expect, and [n] with 1, which "
        "pyRTC expects"),
    GST_IMAGING_UINT ("semaphores", NEXT_START, 0, Settings, semaphores, 1, 100,
        NULL,
        "Semaphores of a stream that is made: the most readers that can wait "
        "for it at a time"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  s->axes = 2;
  s->semaphores = 10;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .timeless = TRUE,
    .init = init_settings,
};

/* Types of arrays, in both worlds */
static const GstShmimType types[] = {
    [GST_IMAGING_ND_ARRAY_TYPE_U8] = GST_SHMIM_TYPE_U8,
    [GST_IMAGING_ND_ARRAY_TYPE_U16] = GST_SHMIM_TYPE_U16,
    [GST_IMAGING_ND_ARRAY_TYPE_I16] = GST_SHMIM_TYPE_I16,
    [GST_IMAGING_ND_ARRAY_TYPE_F32] = GST_SHMIM_TYPE_F32,
    [GST_IMAGING_ND_ARRAY_TYPE_F64] = GST_SHMIM_TYPE_F64,
    [GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64] = GST_SHMIM_TYPE_COMPLEX64,
    [GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128] = GST_SHMIM_TYPE_COMPLEX128,
    [GST_IMAGING_ND_ARRAY_TYPE_I32] = GST_SHMIM_TYPE_I32,
    [GST_IMAGING_ND_ARRAY_TYPE_U32] = GST_SHMIM_TYPE_U32,
    [GST_IMAGING_ND_ARRAY_TYPE_I64] = GST_SHMIM_TYPE_I64,
    [GST_IMAGING_ND_ARRAY_TYPE_F16] = GST_SHMIM_TYPE_F16,
    [GST_IMAGING_ND_ARRAY_TYPE_I8] = GST_SHMIM_TYPE_I8,
    [GST_IMAGING_ND_ARRAY_TYPE_U64] = GST_SHMIM_TYPE_U64,
};

struct _GstShmimSink {
  GstBaseSink parent;

  /* from start to stop; only the streaming thread uses them */
  gchar *path;
  GstPictureSinkFormat format;
  GstShmim *shmim; /* NULL before the first caps */
};

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_SHMIM_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstShmimSink, gst_shmim_sink, GST_TYPE_BASE_SINK,
    GST_DEBUG_CATEGORY_INIT (
        shmim_sink_debug, "shmimsink", 0, "frames into shared memory"))
GST_ELEMENT_REGISTER_DEFINE (
    shmimsink, "shmimsink", GST_RANK_NONE, GST_TYPE_SHMIM_SINK)

static const Settings *
settings_of (gpointer self)
{
  return gst_imaging_settings_now (gst_imaging_settings_of (self));
}

/* --- the stream ----------------------------------------------------------- */

/* The shape of the caps, fastest axis first. Returns: FALSE for more axes than
 * a stream can have */
static gboolean
fill_shape (GstShmimSink *self, GstShmimHeader *shape)
{
  const GstImagingNdArray *frame = &self->format.frame;
  guint n = frame->n_dims;

  *shape = (GstShmimHeader){.type = types[frame->type], .n_values = 1};
  if (n > G_N_ELEMENTS (shape->size))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    shape->size[i] = (guint32) frame->dims[n - 1 - i];
    shape->n_values *= shape->size[i];
  }
  while (n > 1 && shape->size[n - 1] == 1)
    n--;
  for (; n < settings_of (self)->axes; n++)
    shape->size[n] = 1;
  shape->n_axes = (guint8) n;
  return TRUE;
}

static gboolean
check_fit (const GstShmim *found, const GstShmimHeader *shape, GError **error)
{
  const GstShmimHeader *h = &found->header;
  g_autofree gchar *theirs = gst_shmim_describe (h);
  g_autofree gchar *ours = gst_shmim_describe (shape);

  if (h->type == shape->type && h->n_values == shape->n_values &&
      !gst_shmim_is_ring (h))
    return TRUE;
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
      "Stream \"%s\" exists with %s%s; the frames have %s. Take another name, "
      "or set replace=true.",
      found->name, theirs, gst_shmim_is_ring (h) ? " in time" : "", ours);
  return FALSE;
}

/* Uses the stream of the name, or makes it. */
static gboolean
open_stream (GstShmimSink *self, const GstShmimHeader *shape, GError **error)
{
  const Settings *s = settings_of (self);
  g_autoptr (GError) reason = NULL;
  GstShmim *found = gst_shmim_open (s->stream, self->path, &reason);

  if (found && !check_fit (found, shape, &reason))
    g_clear_pointer (&found, gst_shmim_close);
  if (!found && (s->replace || g_error_matches (reason, GST_RESOURCE_ERROR,
                                   GST_RESOURCE_ERROR_NOT_FOUND)))
    found = gst_shmim_create (s->stream, self->path, shape->type, shape->n_axes,
        shape->size, s->semaphores, error);
  else if (!found)
    g_propagate_error (error, g_steal_pointer (&reason));
  gst_shmim_close (self->shmim);
  self->shmim = found;
  return found != NULL;
}

static gboolean
gst_shmim_sink_set_caps (GstBaseSink *base, GstCaps *caps)
{
  GstShmimSink *self = GST_SHMIM_SINK (base);
  guint32 known = 0;
  GstShmimHeader shape;
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    known |= types[i] ? 1u << i : 0;
  if (gst_picture_sink_format_set_caps (&self->format, caps, known, &error)) {
    if (fill_shape (self, &shape) && open_stream (self, &shape, &error))
      return TRUE;
    if (!error)
      g_set_error (&error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
          "Tensors of %u dimensions do not fit a stream, which has at most 3.",
          self->format.frame.n_dims);
  }
  gst_imaging_post_error (self, error);
  return FALSE;
}

/* Frames may have any stride. */
static gboolean
gst_shmim_sink_propose_allocation (GstBaseSink *base, GstQuery *query)
{
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return TRUE;
}

/* --- frames --------------------------------------------------------------- */

/* Returns: FALSE where the buffer has no time of the Unix epoch */
static gboolean
find_acquired (GstBuffer *buffer, GstShmimTime *acquired)
{
  static GstStaticCaps clock = GST_STATIC_CAPS ("timestamp/x-unix");
  GstCaps *caps = gst_static_caps_get (&clock);
  GstReferenceTimestampMeta *meta =
      gst_buffer_get_reference_timestamp_meta (buffer, caps);
  GstClockTimeDiff tai;

  gst_caps_unref (caps);
  if (!meta)
    return FALSE;
  tai = (GstClockTimeDiff) meta->timestamp + gst_shmim_tai_offset ();
  *acquired = (GstShmimTime){tai / GST_SECOND, tai % GST_SECOND};
  return TRUE;
}

/* Somebody may have made the stream anew meanwhile: readers are there. */
static gboolean
follow_stream (GstShmimSink *self, GError **error)
{
  const GstShmimState state = gst_shmim_state (self->shmim);
  GstShmimHeader shape;

  if (state != GST_SHMIM_STATE_REPLACED && state != GST_SHMIM_STATE_REMOVED)
    return TRUE;
  return fill_shape (self, &shape) && open_stream (self, &shape, error);
}

static GstFlowReturn
gst_shmim_sink_render (GstBaseSink *base, GstBuffer *buffer)
{
  GstShmimSink *self = GST_SHMIM_SINK (base);
  g_autoptr (GError) error = NULL;
  GstPictureSinkView view = {NULL};
  GstShmimTime acquired;
  gboolean ok;

  if (!self->shmim)
    return GST_FLOW_NOT_NEGOTIATED;
  ok = follow_stream (self, &error) &&
       gst_picture_sink_format_map (&self->format, buffer, &view, &error) &&
       gst_shmim_publish (self->shmim, view.values,
           find_acquired (buffer, &acquired) ? &acquired : NULL, &error);
  gst_picture_sink_view_unmap (&view);
  if (ok)
    return GST_FLOW_OK;
  gst_imaging_post_error (self, error);
  return GST_FLOW_ERROR;
}

/* --- start and stop ------------------------------------------------------- */

static gboolean
gst_shmim_sink_start (GstBaseSink *base)
{
  GstShmimSink *self = GST_SHMIM_SINK (base);
  GstImagingSettings *set = gst_imaging_settings_of (self);
  g_autoptr (GError) error = NULL;

  gst_imaging_settings_start (set);
  gst_imaging_settings_update (
      set, GST_IMAGING_WHEN_NEXT_START, GST_CLOCK_TIME_NONE, NULL);
  self->path = gst_shmim_path (
      settings_of (self)->stream, settings_of (self)->folder, &error);
  if (self->path)
    return TRUE;
  gst_imaging_post_error (self, error);
  return FALSE;
}

static gboolean
gst_shmim_sink_stop (GstBaseSink *base)
{
  GstShmimSink *self = GST_SHMIM_SINK (base);

  g_clear_pointer (&self->shmim, gst_shmim_close);
  g_clear_pointer (&self->path, g_free);
  gst_picture_sink_format_clear (&self->format);
  return TRUE;
}

/* --- the object ----------------------------------------------------------- */

static void
gst_shmim_sink_class_init (GstShmimSinkClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSinkClass *sink_class = GST_BASE_SINK_CLASS (klass);

  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);
  gst_element_class_set_static_metadata (element_class, "Shared memory sink",
      "Sink/Video",
      "Writes streams of milk, cacao and pyRTC (ImageStreamIO) in shared "
      "memory",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);

  sink_class->start = gst_shmim_sink_start;
  sink_class->stop = gst_shmim_sink_stop;
  sink_class->set_caps = gst_shmim_sink_set_caps;
  sink_class->propose_allocation = gst_shmim_sink_propose_allocation;
  sink_class->render = gst_shmim_sink_render;
}

static void
gst_shmim_sink_init (GstShmimSink *self)
{
  GstBaseSink *base = GST_BASE_SINK (self);

  gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  gst_base_sink_set_sync (base, FALSE);
  gst_base_sink_set_last_sample_enabled (base, FALSE);
}
