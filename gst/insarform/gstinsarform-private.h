/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files of insarform: gstinsarform.c has the element and its
 * kernel, gstinsarformlines.c what happens while lines come. */
#pragma once

#include "gstimagingengine.h"
#include "gstimagingslc.h"
#include "gstinsarform.h"
#include "gstinsarformpicture.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_insar_form_debug);

enum { REFERENCE, SECONDARY, N_SIDES };

/* The properties. Of the config, the images come with the caps. */
typedef struct {
  ImkInsarformConfig config;
  ImkInsarformShade shade;
  gdouble amplitude_max;
} GstInsarFormSettings;

/* An input. */
typedef struct {
  GstPad *pad;
  gboolean has_info;
  GstImagingSlcInfo info;
  ImkImage lines; /* brought and waited for; height 0: none */
  guint n_lines;  /* that have come */
  gboolean is_flushing, is_eos;
  gboolean is_stale; /* its lines are from before a flush of the other side */
} GstInsarFormSide;

struct _GstInsarForm {
  GstElement parent;
  GstImagingEngine *engine;

  GstInsarFormSettings settings;      /* under the object lock */
  GstPad *pads[GST_INSAR_N_PICTURES]; /* the same; NULL when not requested */

  /* Under the lock. A thread that brings lines waits until they are taken; the
   * one that brings the missing ones takes them. */
  GMutex lock;
  GCond changed;
  GstInsarFormSide sides[N_SIDES];
  GstFlowReturn flow;
  gboolean is_done; /* the pictures go out, or have gone */
  gboolean is_busy; /* they go out */
  ImkInsarform *kernel;
  GstInsarFormSettings open_settings;
  GstInsarCells cells;
  guint n_reported;
};

/* Under the lock. Opens the kernel when both sides are known.
 * Returns: FALSE after an error has been posted */
gboolean gst_insar_form_set_caps (
    GstInsarForm *self, guint side, GstCaps *caps);

/* --- gstinsarformlines.c -----------------------------------------------------
 */

GstFlowReturn gst_insar_form_chain (
    GstPad *pad, GstObject *parent, GstBuffer *buffer);
gboolean gst_insar_form_sink_event (
    GstPad *pad, GstObject *parent, GstEvent *event);

/* When states change: lets nobody wait, or everybody. */
void gst_insar_form_set_flushing (GstInsarForm *self, gboolean is_flushing);

/* When nothing streams any more: begins anew. */
void gst_insar_form_forget (GstInsarForm *self);

G_END_DECLS
