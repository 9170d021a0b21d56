/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In a running stream an element allocates no more for a frame than identity
 * does with the same metadata. */
#include "check-common.h"

#include <stdatomic.h>
#include <stdlib.h>

/* The program's own malloc () comes before that of the C library; a sanitizer
 * has one of its own. */
#define HAVE_COUNTER !CHECK_IS_SANITIZED

enum { N_WARM_UP = 50, N_FRAMES = 200 };

static atomic_ulong n_allocations;

#if HAVE_COUNTER
void *__libc_malloc (size_t size);
void *__libc_calloc (size_t n, size_t size);
void *__libc_realloc (void *pointer, size_t size);

void *
malloc (size_t size)
{
  n_allocations++;
  return __libc_malloc (size);
}

void *
calloc (size_t n, size_t size)
{
  n_allocations++;
  return __libc_calloc (n, size);
}

void *
realloc (void *pointer, size_t size)
{
  n_allocations++;
  return __libc_realloc (pointer, size);
}
#endif

typedef struct Case {
  const gchar *line, *format;
  gint width, height;
} Case;

/* On the CPU: the mock of a device allocates for each call. */
static const Case cases[] = {
    {"lapsharpen backend=cpu", "RGBA", 322, 102},
    {"lapsharpen backend=cpu amount=1.3 border=zero focus-measure=true",
        "GRAY16_LE", 322, 102},
    {"shcentroid backend=cpu columns=8 rows=8 pitch-x=8 pitch-y=8", "GRAY8", 64,
        64},
    {"shcentroid backend=cpu columns=8 rows=8 pitch-x=8 pitch-y=8 fields=slopes "
     "threshold=0.2 brightest=20",
        "GRAY8", 64, 64},
    {"octbscan backend=cpu range=fixed", "GRAY16_LE", 512, 64},
    {"octbscan backend=cpu range=percentile background=running tracking=contour",
        "GRAY16_LE", 512, 64},
};

/* --- frames --------------------------------------------------------------- */

static GstHarness *
harness_new (const gchar *line, const Case *c)
{
  GstHarness *h = gst_harness_new_parse (line);
  GstVideoInfo info = check_info (c->format, c->width, c->height);

  gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
  gst_harness_set_drop_buffers (h, FALSE);
  return h;
}

/* @last: (out) (optional) (transfer full): the last frame that came
 * Returns: allocations a frame */
static gdouble
play (GstHarness *h, GstBuffer *frame, GstBuffer **last)
{
  gulong before = 0;

  for (guint i = 0; i < N_WARM_UP + N_FRAMES; i++) {
    GstBuffer *out;

    if (i == N_WARM_UP)
      before = n_allocations;
    check_push (h, gst_buffer_ref (frame), GST_FLOW_OK);
    while ((out = gst_harness_try_pull (h))) {
      if (last)
        gst_buffer_replace (last, out);
      gst_buffer_unref (out);
    }
  }
  return (gdouble) (n_allocations - before) / N_FRAMES;
}

/* --- identity with the same metadata
 * ------------------------------------------
 */

static gboolean
copy_field (GQuark name, const GValue *value, gpointer to)
{
  gst_structure_id_set_value (to, name, value);
  return TRUE;
}

/* What an element outputs of its own: its frames and their numbers. */
static GstPadProbeReturn
add_the_same (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *made = data, *out = gst_buffer_new ();
  gpointer state = NULL;
  GstMeta *meta;

  gst_buffer_copy_into (out, GST_PAD_PROBE_INFO_BUFFER (info),
      GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS |
          GST_BUFFER_COPY_MEMORY,
      0, -1);
  while ((meta = gst_buffer_iterate_meta (made, &state)))
    if (gst_meta_info_is_custom (meta->info)) {
      GstCustomMeta *copy = gst_buffer_add_custom_meta (
          out, gst_structure_get_name (
                   gst_custom_meta_get_structure ((GstCustomMeta *) meta)));

      gst_structure_foreach (
          gst_custom_meta_get_structure ((GstCustomMeta *) meta), copy_field,
          gst_custom_meta_get_structure (copy));
    }
  gst_buffer_unref (GST_PAD_PROBE_INFO_BUFFER (info));
  GST_PAD_PROBE_INFO_DATA (info) = out;
  return GST_PAD_PROBE_OK;
}

static gdouble
play_identity (const Case *c, GstBuffer *frame, GstBuffer *made)
{
  g_autoptr (CheckHarness) h = harness_new ("identity", c);
  g_autoptr (GstPad) src = gst_element_get_static_pad (h->element, "src");
  gdouble each;

  if (!src) {
    g_autoptr (GstElement) identity =
        gst_bin_get_by_name (GST_BIN (h->element), "identity0");

    src = gst_element_get_static_pad (identity, "src");
  }
  gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_BUFFER, add_the_same, made, NULL);
  each = play (h, frame, NULL);
  return each;
}

CHECK_LOOP_TEST (
    test_a_frame_costs_no_allocation, HAVE_COUNTER ? G_N_ELEMENTS (cases) : 0)
{
  const Case *c = &cases[__i__];
  GstVideoInfo info = check_info (c->format, c->width, c->height);
  g_autoptr (GstBuffer) frame = check_noise (&info, 1), made = NULL;
  g_autoptr (CheckHarness) h = harness_new (c->line, c);
  gdouble ours = play (h, frame, &made), theirs;

  fail_unless (made != NULL, "%s gives nothing", c->line);
  theirs = play_identity (c, frame, made);
  fail_unless (ours <= theirs,
      "%s: %.2f allocations a frame, identity with the same metadata %.2f",
      c->line, ours, theirs);
}

/* --- results -------------------------------------------------------------- */

/* A frame that is freed gives back what describes its results, and what is made
 * of it refers to the same: more results cost what their metas do. */
CHECK_TEST (test_results_are_described_once)
{
  static const gchar line[] =
      "shcentroid backend=cpu columns=8 rows=8 pitch-x=8 pitch-y=8 "
      "fields=slopes";
  static const Case c = {line, "GRAY8", 64, 64};
  GstVideoInfo info = check_info (c.format, c.width, c.height);
  g_autoptr (GstBuffer) frame = check_noise (&info, 1);
  g_autoptr (CheckHarness) one = harness_new (line, &c);
  g_autofree gchar *behind = g_strconcat (line, " ! ", line, NULL);
  g_autoptr (CheckHarness) two = harness_new (behind, &c);
  gdouble first = play (one, frame, NULL), both = play (two, frame, NULL);

  fail_unless (!HAVE_COUNTER || both - first <= 1,
      "%.2f allocations a frame, %.2f with a second element", first, both);
}
