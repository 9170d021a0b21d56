/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sh-check.h"

#include "gstimagingresults.h"
#include "imk/shcentroid.h"

Sh
sh_open (const gchar *backend, const gchar *grid, const gchar *properties,
    gint width, gint height, guint n_cells)
{
  g_autofree gchar *launch = g_strdup_printf (
      "shcentroid name=sh backend=%s %s %s", backend, grid, properties);
  g_autofree gchar *caps = check_caps_string ("GRAY16_LE", width, height);
  Sh sh = {.element = check_launch (launch), .n_cells = n_cells};

  sh.bus = check_watch (sh.element);
  sh.h = gst_harness_new_with_element (sh.element, "sink", "src");
  gst_harness_set_src_caps_str (sh.h, caps);
  return sh;
}

void
sh_free (Sh *sh)
{
  check_take_down (sh->element, sh->bus, &sh->h, 1);
}

gfloat *
sh_measure (Sh *sh, GstBuffer *in, gsize *n)
{
  const GstStructure *s;
  g_autoptr (GstBuffer) out = NULL, data = NULL;
  gfloat *numbers;

  check_push (sh->h, in, GST_FLOW_OK);
  out = check_pull (sh->h);
  s = gst_imaging_results_get (out, "sh");
  fail_unless (
      s && gst_structure_get (s, "data", GST_TYPE_BUFFER, &data, NULL));
  *n = gst_buffer_get_size (data) / sizeof (gfloat);
  numbers = g_new (gfloat, *n);
  gst_buffer_extract (data, 0, numbers, -1);
  return numbers;
}

gdouble
sh_value (Sh *sh, GstBuffer *in, guint cell, guint field)
{
  gsize n;
  g_autofree gfloat *numbers = sh_measure (sh, in, &n);
  gdouble value = numbers[cell * IMK_SHCENTROID_N_FIELDS + field];

  fail_unless_equals_int (n, sh->n_cells * IMK_SHCENTROID_N_FIELDS);
  return value;
}

gboolean
sh_capture (Sh *sh, const gchar *what, guint n_frames, const gchar *location)
{
  g_autofree gchar *signal = g_strconcat ("capture-", what, NULL);
  gboolean begun = -1;

  g_signal_emit_by_name (sh->element, signal, n_frames, location, &begun);
  return begun;
}

void
sh_check_captured (
    Sh *sh, const gchar *kind, guint n_frames, const gchar *location)
{
  g_autoptr (GstMessage) message =
      check_element_message (sh->bus, "shcentroid-captured");
  const GstStructure *s = gst_message_get_structure (message);
  guint frames = 0;

  fail_unless_equals_string (gst_structure_get_string (s, "kind"), kind);
  fail_unless (gst_structure_get_uint (s, "frames", &frames));
  fail_unless_equals_int (frames, n_frames);
  fail_unless_equals_string (
      gst_structure_get_string (s, "location"), location);
}
