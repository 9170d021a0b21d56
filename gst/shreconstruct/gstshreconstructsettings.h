/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of shreconstruct, and what their files say to the kernel. */
#pragma once

#include "gstimagingsettings.h"
#include "imk/shreconstruct.h"

G_BEGIN_DECLS

typedef enum {
  GST_SH_RECONSTRUCT_LOOP_CLOSED,
  GST_SH_RECONSTRUCT_LOOP_OPEN,
} GstShReconstructLoop;

typedef enum {
  GST_SH_RECONSTRUCT_ORDER_X_THEN_Y,
  GST_SH_RECONSTRUCT_ORDER_INTERLEAVED,
} GstShReconstructOrder;

typedef struct {
  GstImagingFile *matrix, *modes, *controller, *reference, *offsets;
  GstImagingArray *mode_gains;
  GstShReconstructOrder order;
  gdouble gain, leak, minimum, maximum, slew, min_valid;
  ImkShreconstructInvalid invalid;
  ImkShreconstructDark dark;
  GstShReconstructLoop loop;
  gboolean freeze;
  gchar *results;
} GstShReconstructSettings;

/* The group of settings that another kernel is made for. */
#define GST_SH_RECONSTRUCT_KERNEL (1 << 0)

extern const GstImagingSettingsTable gst_sh_reconstruct_table;

/* Of gstshreconstruct.c. */
ImkStatus gst_sh_reconstruct_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);

/* What a configuration refers to. */
typedef struct {
  ImkShreconstructConfig config;
  gfloat *matrix, *modes, *reference, *offsets;
  gdouble *feedback, *forward;
} GstShReconstructPlan;

/* Returns: IMK_OK, or an error that names property and file; @plan is to be
 * cleared in either case */
ImkStatus gst_sh_reconstruct_plan (const GstShReconstructSettings *settings,
    GstShReconstructPlan *plan, ImkError *error);
void gst_sh_reconstruct_plan_clear (GstShReconstructPlan *plan);

G_END_DECLS
