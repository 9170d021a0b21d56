/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of GstImagingFilter share: small subclasses, and an element
 * between two pads. */
#pragma once

#include "check-common.h"
#include "gstimagingfilter.h"
#include "gstimagingquantity.h"

G_BEGIN_DECLS

/* --- subclasses ----------------------------------------------------------- */

/* testinvert: the CPU inverts, the device copies, so that a frame tells who
 * made it. testmeasure: the first two bytes of a frame, without an optional
 * vfunc; testmeasurefast: on the device where there is one. */
typedef struct {
  GstImagingFilter parent;
  gboolean is_open;
  ImkBackend backend;
  gint identity; /* atomic */
} TestFilter;

/* What the subclasses were asked to do; reset by filter_set_up (). */
typedef struct {
  gint n_opened, n_closed, n_processed, n_reset; /* atomic */
  gboolean prefers_cuda;
  ImkStatus open_fails, process_fails; /* on the device only */
  gboolean has_other_fields;
} FilterSeen;

extern FilterSeen filter_seen;

/* Mock objects that were there before the test. */
extern guint filter_n_live_before;

/* The fixture. Nothing of a device outlives the element that opened it and its
 * buffers. */
void filter_set_up (void);
void filter_tear_down (void);

/* For loops. */
static const gchar *const filter_backends[] = {"cpu", "cuda"};

/* --- an element between two pads ------------------------------------------ */

typedef struct {
  GstHarness *h;
  GstElement *element; /* not owned */
  GstBus *bus;
  GstVideoInfo info;
} Stage;

void stage_caps (Stage *s, const gchar *format, gint width, gint height);

/* An element of the launch line between two pads; NULL for no pad. There is no
 * harness when the element cannot be started. */
Stage stage_try (const gchar *launch, const gchar *sink, const gchar *src);

/* The same; fails when it cannot be started. */
Stage stage_new (const gchar *launch, const gchar *sink, const gchar *src);
void stage_free (Stage *s);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Stage, stage_free)

/* Fails unless @found is what testinvert makes of noise number @seed. */
void stage_check_made (
    Stage *s, GstBuffer *found, guint seed, ImkBackend backend);
void stage_push_and_check (Stage *s, guint seed, ImkBackend backend);

/* --- pipelines ------------------------------------------------------------ */

GstElement *filter_launch (const gchar *format, ...) G_GNUC_PRINTF (1, 2);

/* A counter of the element of that name. */
guint64 filter_stat_of (
    GstElement *pipeline, const gchar *element, const gchar *name);
void filter_check_active (
    GstElement *element, const gchar *backend, const gchar *memory);

G_END_DECLS
