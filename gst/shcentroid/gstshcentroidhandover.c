/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidhandover.h"

#define NAME "shcentroid-handover"

gboolean
gst_sh_centroid_handover_ask (
    GstPad *pad, GstImagingContext *context, gpointer stream)
{
  g_autoptr (GstQuery) query = gst_query_new_custom (GST_QUERY_CUSTOM,
      gst_structure_new (NAME, "pad", G_TYPE_POINTER, pad, "context",
          G_TYPE_POINTER, context, "stream", G_TYPE_POINTER, stream, NULL));

  return gst_pad_peer_query (pad, query);
}

/* Elements in between pass queries on, some from other threads; only who is
 * linked directly may answer. */
gboolean
gst_sh_centroid_handover_is_asked (
    GstPad *pad, GstQuery *query, GstImagingContext **context, gpointer *stream)
{
  const GstStructure *s = gst_query_get_structure (query);
  gpointer asking = NULL;
  g_autoptr (GstPad) peer = NULL;

  if (GST_QUERY_TYPE (query) != GST_QUERY_CUSTOM || !s ||
      !gst_structure_has_name (s, NAME) ||
      !gst_structure_get (s, "pad", G_TYPE_POINTER, &asking, "context",
          G_TYPE_POINTER, context, "stream", G_TYPE_POINTER, stream, NULL))
    return FALSE;
  peer = gst_pad_get_peer (pad);
  return peer && peer == asking;
}
