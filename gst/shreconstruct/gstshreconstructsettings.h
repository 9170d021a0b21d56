/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of shreconstruct, and what their files say to the kernel. */
#pragma once

#include "gstimagingsettings.h"
#include "imk/shcalibration.h"
#include "imk/shlimits.h"
#include "imk/shreconstruct.h"
#include "imk/shwavefront.h"

G_BEGIN_DECLS

typedef enum {
  GST_SH_RECONSTRUCT_LOOP_CLOSED,
  GST_SH_RECONSTRUCT_LOOP_OPEN,
} GstShReconstructLoopState;

typedef enum {
  GST_SH_RECONSTRUCT_ORDER_AUTO,
  GST_SH_RECONSTRUCT_ORDER_X_THEN_Y,
  GST_SH_RECONSTRUCT_ORDER_INTERLEAVED,
} GstShReconstructOrder;

enum { GST_SH_RECONSTRUCT_N_MIRRORS = 4 };

typedef struct {
  GstImagingFile *matrix, *modes, *controller, *reference, *offsets,
      *interaction, *actuator_map, *mirrors[GST_SH_RECONSTRUCT_N_MIRRORS];
  GstImagingArray *mode_gains, *dead;
  GstShReconstructOrder order, input_order;
  /* no limit is +-G_MAXDOUBLE, and a slew of 0 */
  gdouble gain, leak, minimum, maximum, slew, min_valid;
  ImkShlimits mirror_limits[GST_SH_RECONSTRUCT_N_MIRRORS];
  ImkShreconstructInvalid invalid;
  ImkShreconstructDark dark;
  ImkShreconstructStorage storage;
  GstShReconstructLoopState loop;
  gboolean freeze;
  gchar *results;
  guint exclude_cells, n_commands;
  ImkShwavefrontMethod wavefront_method;
  guint wavefront_modes, wavefront_columns;
  gdouble wavefront_scale;
  ImkShcalibrationMethod calibration_method;
  gdouble calibration_poke;
  guint calibration_repeats, calibration_frames;
  guint realtime_priority;
  gint cpu;
  gboolean lock_memory;
} GstShReconstructSettings;

/* Groups: what another kernel is made for; what changes its controller; what
 * becomes of its commands; the wavefront; for which pinv (M) is another one. */
#define GST_SH_RECONSTRUCT_KERNEL (1 << 0)
#define GST_SH_RECONSTRUCT_CONTROL (1 << 1)
#define GST_SH_RECONSTRUCT_OUTPUT (1 << 2)
#define GST_SH_RECONSTRUCT_WAVEFRONT (1 << 3)
#define GST_SH_RECONSTRUCT_INVERSE (1 << 4)

extern const GstImagingSettingsTable gst_sh_reconstruct_table;

/* Returns: those of the pad src; no limit is infinite */
ImkShlimits gst_sh_reconstruct_limits (
    const GstShReconstructSettings *settings);

/* Of gstshreconstruct.c. */
ImkStatus gst_sh_reconstruct_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);
void gst_sh_reconstruct_prepare (
    GstElement *element, gpointer candidate, guint groups);

/* What a configuration refers to.
 * @has_matrices: those of @config are there, and @modes
 * @is_idle: there is no control matrix, but the number of commands
 * @order: of the columns of the file of the control matrix
 * @fit: of both matrices; NaN is its largest where it was not found
 * @map: (nullable): [n_outputs] of the command of each, -1 for none
 * @mirrors: (nullable): files [commands of the mirror, n_commands], which the
 *   settings own: a mirror copies its matrix only where the file is another */
typedef struct {
  ImkShreconstructConfig config;
  gboolean has_matrices, is_idle;
  GstShReconstructOrder order;
  ImkShreconstructFit fit;
  gfloat *matrix, *modes, *reference, *offsets, *interaction;
  gdouble *feedback, *forward;
  guint8 *dead;
  guint n_outputs;
  gint *map;
  const GstImagingFile *mirrors[GST_SH_RECONSTRUCT_N_MIRRORS];
  ImkShlimits mirror_limits[GST_SH_RECONSTRUCT_N_MIRRORS];
} GstShReconstructPlan;

/* @with_matrices: FALSE for imk_shreconstruct_update (), which reads none
 * @n_cells: of the sensor, 0 where they are not known; read without a matrix
 * Returns: IMK_OK, or an error that names property and file; @plan is to be
 * cleared in either case */
ImkStatus gst_sh_reconstruct_plan (const GstShReconstructSettings *settings,
    gboolean with_matrices, guint n_cells, GstShReconstructPlan *plan,
    ImkError *error);
/* Fills in @fit of a plan with matrices, if it has both. */
void gst_sh_reconstruct_plan_find_fit (GstShReconstructPlan *plan);
void gst_sh_reconstruct_plan_clear (GstShReconstructPlan *plan);

G_END_DECLS
