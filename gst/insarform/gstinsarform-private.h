/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files of insarform: gstinsarform.c has the element and its
 * kernel, gstinsarformlines.c what happens while lines come. */
#pragma once

#include "gstimagingsrcpads.h"
#include "gstinsarform.h"
#include "gstinsarformpicture.h"
#include "insar/gstinsarpair.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_insar_form_debug);

/* The properties. Of the config, the images come with the caps. */
typedef struct {
  ImkInsarformConfig config;
  ImkInsarformShade shade;
  gdouble amplitude_max;
} GstInsarFormSettings;

struct _GstInsarForm {
  GstElement parent;
  GstImagingEngine *engine;

  GstImagingSettings *settings; /* not owned */

  GstImagingSrcPads *pictures; /* in the order of GstInsarPicture */
  GstInsarPair pair;

  /* Under the lock of the pair. A thread that brings lines waits until they are
   * taken; the one that brings the missing ones takes them. */
  ImkImage lines[GST_INSAR_N_SIDES]; /* waited for; height 0: none */
  ImkInsarform *kernel;
  GstInsarFormSettings open_settings; /* those of the kernel */
  GstInsarCells cells;
};

/* Opens the kernel for a pair. */
gboolean gst_insar_form_open (GstElement *element, guint side);

/* In gstinsarformlines.c. */
extern const GstInsarPairFuncs gst_insar_form_pair_funcs;

G_END_DECLS
