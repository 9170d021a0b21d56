/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lapsharpen in a C program: appsrc -> lapsharpen -> appsink, with the focus
 * measure read from the meta. Needs GStreamer alone, no header of ours:
 * cc lapsharpen.c -o lapsharpen $(pkg-config --cflags --libs \
 *   gstreamer-app-1.0 gstreamer-video-1.0) */
#include <gst/app/app.h>
#include <gst/video/video.h>

enum { WIDTH = 61, HEIGHT = 40, DARK = 100, BRIGHT = 150 };

/* A dark half and a bright half. @info has the stride: 64 bytes for 61. */
static GstBuffer *
make_frame (const GstVideoInfo *info)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info->size, NULL);
  GstVideoFrame frame;

  if (!gst_video_frame_map (&frame, info, buffer, GST_MAP_WRITE))
    g_error ("the new buffer cannot be written");
  for (int y = 0; y < HEIGHT; y++) {
    guint8 *row = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0) +
                  y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0);

    for (int x = 0; x < WIDTH; x++)
      row[x] = x < WIDTH / 2 ? DARK : BRIGHT;
  }
  gst_video_frame_unmap (&frame);
  return buffer;
}

/* Half of the step of 50 counts is taken from one side and given to the other:
 * 100 100 150 150 becomes 100 75 175 150. */
static gboolean
check_frame (GstSample *sample)
{
  GstVideoInfo info;
  GstVideoFrame frame;
  const guint8 *edge;
  gboolean right;

  if (!gst_video_info_from_caps (&info, gst_sample_get_caps (sample)) ||
      !gst_video_frame_map (
          &frame, &info, gst_sample_get_buffer (sample), GST_MAP_READ))
    return FALSE;
  edge = (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0) + WIDTH / 2;
  g_print ("before: 100 100 150 150, after: %u %u %u %u\n", edge[-2], edge[-1],
      edge[0], edge[1]);
  right = edge[-2] == 100 && edge[-1] == 75 && edge[0] == 175 && edge[1] == 150;
  gst_video_frame_unmap (&frame);
  return right;
}

/* The fields are "variance,mean", one row of float32. */
static gboolean
print_focus (GstBuffer *buffer, const gchar *element)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, "GstImagingResults");
  GstStructure *result = NULL;
  GstBuffer *data = NULL;
  gfloat variance = 0;

  if (meta)
    gst_structure_get (gst_custom_meta_get_structure (meta), element,
        GST_TYPE_STRUCTURE, &result, NULL);
  if (!result)
    return FALSE;
  gst_structure_get (result, "data", GST_TYPE_BUFFER, &data, NULL);
  gst_buffer_extract (data, 0, &variance, sizeof (variance));
  g_print ("variance of the Laplacian: %.2f counts^2\n", variance);
  gst_buffer_unref (data);
  gst_structure_free (result);
  return TRUE;
}

/* Returns: what went wrong, or NULL */
static gchar *
take_error (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  GError *error = NULL;
  gchar *text = NULL;

  if (message) {
    gst_message_parse_error (message, &error, NULL);
    text = g_strdup (error->message);
    g_error_free (error);
    gst_message_unref (message);
  }
  gst_object_unref (bus);
  return text;
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  GstElement *pipeline, *source, *sink;
  GstVideoInfo info;
  GstCaps *caps;
  GstSample *sample;
  gboolean right = FALSE;

  gst_init (&argc, &argv);
  pipeline = gst_parse_launch (
      "appsrc name=in format=time ! lapsharpen name=sharpen amount=0.5 "
      "focus-measure=true ! appsink name=out sync=false",
      &error);
  if (error) { /* no such element: are the plug-ins installed? */
    g_printerr ("%s\n", error->message);
    g_error_free (error);
    return 1;
  }
  source = gst_bin_get_by_name (GST_BIN (pipeline), "in");
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");

  gst_video_info_set_format (&info, GST_VIDEO_FORMAT_GRAY8, WIDTH, HEIGHT);
  caps = gst_video_info_to_caps (&info);
  gst_app_src_set_caps (GST_APP_SRC (source), caps);
  gst_caps_unref (caps);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  gst_app_src_push_buffer (GST_APP_SRC (source), make_frame (&info));
  gst_app_src_end_of_stream (GST_APP_SRC (source));
  sample = gst_app_sink_try_pull_sample (GST_APP_SINK (sink), 5 * GST_SECOND);
  if (sample) {
    right = check_frame (sample) &&
            print_focus (gst_sample_get_buffer (sample), "sharpen");
    gst_sample_unref (sample);
  } else {
    gchar *text = take_error (pipeline);

    g_printerr ("%s\n", text ? text : "no frame came out");
    g_free (text);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (source);
  gst_object_unref (sink);
  gst_object_unref (pipeline);
  return right ? 0 : 1;
}
