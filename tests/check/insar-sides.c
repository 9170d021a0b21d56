/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insar-sides.h"

typedef struct {
  GstPad *pad;
  guint width, first, n; /* in lines, the latter */
  gint is_done;          /* atomic */
  GstFlowReturn flow;
} Push;

static gpointer
push_lines (gpointer data)
{
  Push *push = data;
  GstBuffer *buffer =
      gst_buffer_new_allocate (NULL, push->n * 4 * push->width, NULL);

  gst_buffer_memset (buffer, 0, 1, push->n * 4 * push->width);
  GST_BUFFER_OFFSET (buffer) = push->first;
  push->flow = gst_pad_chain (push->pad, buffer);
  g_atomic_int_set (&push->is_done, 1);
  return NULL;
}

static void
start_side (GstElement *element, const gchar *name, guint width, guint height)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, name);
  g_autoptr (GstCaps) caps = gst_caps_new_simple ("application/x-slc", "format",
      G_TYPE_STRING, "ci16", "width", G_TYPE_INT, (gint) width, "height",
      G_TYPE_INT, (gint) height, NULL);
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_DEFAULT);
  gst_pad_send_event (pad, gst_event_new_stream_start (name));
  gst_pad_send_event (pad, gst_event_new_caps (caps));
  gst_pad_send_event (pad, gst_event_new_segment (&segment));
}

static void
flush_side (GstElement *element, const gchar *name)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, name);
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_DEFAULT);
  gst_pad_send_event (pad, gst_event_new_flush_start ());
  gst_pad_send_event (pad, gst_event_new_flush_stop (TRUE));
  gst_pad_send_event (pad, gst_event_new_segment (&segment));
}

void
insar_check_flush_of_one_side (GstElement *element, guint width, guint height)
{
  g_autoptr (CheckBus) bus = gst_bus_new ();
  Push waiting = {.width = width, .n = height - 7};
  Push late = {.width = width, .first = height - 7, .n = 7};
  GThread *thread;
  GstMessage *error;

  gst_element_set_bus (element, bus);
  gst_element_set_state (element, GST_STATE_PLAYING);
  start_side (element, "reference", width, height);
  start_side (element, "secondary", width, height);
  waiting.pad = late.pad = gst_element_get_static_pad (element, "reference");
  thread = g_thread_new ("reference", push_lines, &waiting);
  g_usleep (50000); /* it waits for the secondary */
  fail_if (g_atomic_int_get (&waiting.is_done));

  flush_side (element, "secondary");
  for (guint i = 0; i < 500 && !g_atomic_int_get (&waiting.is_done); i++)
    g_usleep (10000);
  fail_unless (g_atomic_int_get (&waiting.is_done), "it still waits");
  g_thread_join (thread);
  fail_unless_equals_int (waiting.flow, GST_FLOW_OK);
  push_lines (&late);
  fail_unless_equals_int (late.flow, GST_FLOW_OK);
  error = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  fail_unless (error == NULL);

  flush_side (element, "reference"); /* from its first line on */
  late.first = 0;
  thread = g_thread_new ("reference", push_lines, &late);
  g_usleep (20000);
  error = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  fail_unless (error == NULL);
  gst_element_set_state (element, GST_STATE_NULL);
  g_thread_join (thread);
  gst_object_unref (late.pad);
}
