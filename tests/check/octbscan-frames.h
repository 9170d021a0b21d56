/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames of noise for octbscan with several batches at a time, and on several
 * devices, which the mock stands in for. */
#pragma once

#include "check-common.h"

G_BEGIN_DECLS

#define WIDTH 60
#define LINES 17
#define DEPTHS 30
#define N_FRAMES 150

#define ELEMENT "octbscan strategy=fft taper-cut=7 upsample=128 range-max=90 "

/* --- the mock ------------------------------------------------------------- */

/* Holds both devices, or lets go of them. */
void hold (gboolean yes);

/* A fixture. */
void setup (void);
void teardown (void);

/* --- frames --------------------------------------------------------------- */

guint16 noise_at (guint line, guint x);

/* @n frames in a buffer; @offered: in the memory that the element offers, else
 * in ordinary memory */
GstBuffer *noise_frames (GstHarness *h, guint frame, guint n, gboolean offered);
GstBuffer *noise_lines (GstHarness *h, guint frame, gboolean offered);

/* @lines: of a buffer */
GstHarness *harness_with_lines (const gchar *launch, guint lines);
GstHarness *harness_new (const gchar *launch);

void unwatch (GstHarness *h, GstBus *bus);

/* --- images --------------------------------------------------------------- */

/* What the CPU makes of frames 0 .. N_FRAMES - 1, from setup () on. */
extern GPtrArray *expected;
void make_expected (void);

/* These let go of @found. */
void check_pixels (GstBuffer *found, GstBuffer *other, guint frame);
void check_image (GstBuffer *found, guint frame);

/* --- streams -------------------------------------------------------------- */

/* Pushes frames, as fast as they are taken. */
void push_frames (GstHarness *h, guint first, guint end, gboolean offered);
void pull_frames (GstHarness *h, guint first, guint end);

/* The first two: then the element knows of a reader on the CPU. */
void push_until_read (GstHarness *h);

/* Returns: how many B-scans the device @name has made */
guint64 share_of (GstElement *element, const gchar *name);

G_END_DECLS
