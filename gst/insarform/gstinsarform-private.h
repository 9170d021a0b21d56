/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files of insarform: gstinsarform.c has the element and its
 * kernel, gstinsarformsettings.c the properties, gstinsarformlines.c what
 * happens while lines come. */
#pragma once

#include "gstimagingelement.h"
#include "gstinsarformpicture.h"
#include "insar/gstinsarpair.h"

#define GST_TYPE_INSAR_FORM (gst_insar_form_get_type ())
G_DECLARE_FINAL_TYPE (
    GstInsarForm, gst_insar_form, GST, INSAR_FORM, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (insarform);

GST_DEBUG_CATEGORY_EXTERN (gst_insar_form_debug);

typedef enum {
  GST_INSAR_FORM_FLATTEN_NONE,
  GST_INSAR_FORM_FLATTEN_MEASURED,
  GST_INSAR_FORM_FLATTEN_ORBIT,
  GST_INSAR_FORM_FLATTEN_DEM,
} GstInsarFormFlatten;

typedef enum {
  GST_INSAR_FORM_DEM_ELLIPSOID,
  GST_INSAR_FORM_DEM_SPHERE,
} GstInsarFormDemSurface;

typedef enum {
  GST_INSAR_FORM_FILTER_NONE,
  GST_INSAR_FORM_FILTER_GOLDSTEIN,
} GstInsarFormFilter;

/* The properties. Of the config, the images come with the caps; fringe_window
 * and filter_alpha are those of the kernel only where they are wanted. */
typedef struct {
  ImkInsarformConfig config;
  GstInsarFormFlatten flatten;
  guint fringe_window;
  GstImagingFile *orbits[GST_INSAR_N_SIDES]; /* GstInsarOrbit */
  GstImagingFile *grid; /* GstInsarOrbit, nullable: that of the reference */
  GstImagingFile *dem;  /* GstInsarPlane */
  GstInsarFormDemSurface dem_surface;
  GstInsarFormFilter filter;
  gdouble filter_alpha;
  ImkInsarformShade shade;
  gdouble amplitude_max;
  GstImagingFile *locations[GST_INSAR_N_PICTURES]; /* of rasters */
} GstInsarFormSettings;

/* Of the properties, in gstinsarformsettings.c. */
extern const GstImagingSettingsTable gst_insar_form_table;

typedef struct _GstInsarFormFlat GstInsarFormFlat;

/* Sums, until the end. */
typedef struct {
  gdouble amplitude, coherence;
  guint64 n; /* cells with data */
} GstInsarFormMeans;

struct _GstInsarForm {
  GstImagingElement base; /* its outputs in the order of GstInsarPicture */
  GstInsarPair pair;

  /* Under the lock of the pair. A thread that brings lines waits until they are
   * taken; the one that brings the missing ones takes them. */
  ImkImage lines[GST_INSAR_N_SIDES]; /* waited for; height 0: none */
  ImkInsarform *kernel;
  GstInsarFormFlat *flat; /* (nullable): what it removes from lines */
  GstInsarFormSettings open_settings; /* those of the kernel */
  GstInsarCells cells;
  GstInsarFormMeans means; /* of the rows so far */

  /* Of the thread that takes lines, or finishes. */
  GstInsarRaster *rasters[GST_INSAR_N_PICTURES];
  gfloat *row;          /* of one of them */
  GError *raster_error; /* (nullable): why one was given up */
};

/* Opens the kernel for a pair. */
gboolean gst_insar_form_open (GstElement *element, guint side);

/* Returns: whether rows of cells are needed until the end */
gboolean gst_insar_form_has_pads (GstInsarForm *self);

/* In gstinsarformlines.c. */
extern const GstInsarPairFuncs gst_insar_form_pair_funcs;

/* --- gstinsarformflat.c --------------------------------------------------- */

enum { GST_INSAR_FORM_FLAT_LINES = 32 };

/* For flatten=orbit and flatten=dem, and images of @width x @height. */
ImkStatus gst_insar_form_flat_new (const GstInsarFormSettings *now, guint width,
    guint height, guint n_threads, GstInsarFormFlat **self, ImkError *error);
void gst_insar_form_flat_free (GstInsarFormFlat *self);

/* The phases of lines @first to @first + @n, at most GST_INSAR_FORM_FLAT_LINES,
 * until the next call. */
ImkImage gst_insar_form_flat_lines (
    GstInsarFormFlat *self, guint first, guint n);

/* --- gstinsarformrasters.c ------------------------------------------------ */

/* Before the first row of cells: those of an earlier pair are given up. */
ImkStatus gst_insar_form_rasters_open (GstInsarForm *self, ImkError *error);

/* A file that cannot be written is given up. @row: as GstInsarCells.values */
void gst_insar_form_rasters_write (GstInsarForm *self, const gfloat *row);

/* After the last row. */
void gst_insar_form_rasters_finish (GstInsarForm *self);

void gst_insar_form_rasters_clear (GstInsarForm *self);
