/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Slopes and flags, from tensors or from the metadata of a frame. */
#pragma once

#include "gstimaging-prelude.h"
#include "imk/image.h"

G_BEGIN_DECLS

typedef enum {
  GST_SH_RECONSTRUCT_INPUT_METADATA,
  GST_SH_RECONSTRUCT_INPUT_X_THEN_Y, /* a tensor, then perhaps flags */
  GST_SH_RECONSTRUCT_INPUT_INTERLEAVED,
} GstShReconstructInput;

/* @told: (nullable): the metadata that has them
 * @slopes_buffer, @flags_buffer, @places_buffer: of the frame, which keeps
 * them; the last two (nullable)
 * @has_all_flags: also those of valid cells, such as saturated
 * @slopes, @flags: (nullable): once they are mapped, until
 *   gst_sh_reconstruct_slopes_close () */
typedef struct {
  GstShReconstructInput input;
  const GstStructure *told;
  GstBuffer *slopes_buffer, *flags_buffer, *places_buffer;
  gsize slopes_size;         /* bytes of @slopes_buffer that are read */
  gsize slopes_at, flags_at; /* where slopes begin, and flags */
  guint n_cells;
  gboolean has_all_flags;
  /* from one cell to the next; 0: the slopes are [2][n_cells] */
  guint cell_step;
  gsize dx, dy;

  const gfloat *slopes; /* [2][n_cells] */
  const guint8 *flags;
  GstBuffer *mapped[3];
  GstMapInfo maps[3];
  gfloat *gathered; /* (nullable): where they had to be gathered */
} GstShReconstructSlopes;

typedef enum {
  GST_SH_RECONSTRUCT_SHAPE_TWO_ROWS, /* [2, cells]: x-then-y */
  GST_SH_RECONSTRUCT_SHAPE_ROW,      /* [2 cells], in either order */
  /* only a matrix tells whether these have slopes: */
  GST_SH_RECONSTRUCT_SHAPE_PAIRS, /* [cells, 2]: interleaved */
  GST_SH_RECONSTRUCT_SHAPE_IMAGE, /* [y, x], in either order */
} GstShReconstructShape;

/* @shape: (out)
 * Returns: cells of slopes as tensors; 0 for other caps */
guint gst_sh_reconstruct_cells_of_caps (
    GstCaps *caps, GstShReconstructShape *shape);

/* Returns: cells of the slopes in the metadata of a frame; 0 without */
guint gst_sh_reconstruct_cells_of_frame (
    GstBuffer *buffer, const gchar *element);

/* @element: (nullable): whose metadata has them
 * Finds them, wherever their memory is. Returns: IMK_OK, then close; or an
 * error with nothing to close */
ImkStatus gst_sh_reconstruct_slopes_open (GstShReconstructSlopes *self,
    GstBuffer *buffer, GstShReconstructInput input, const gchar *element,
    guint n_cells, ImkError *error);
/* For the CPU, once or more. Waits for a device that makes them. */
ImkStatus gst_sh_reconstruct_slopes_map (
    GstShReconstructSlopes *self, ImkError *error);
/* As a kernel takes them, but for memory of a device: without data where they
 * are not mapped, or there are no flags. */
void gst_sh_reconstruct_slopes_images (
    const GstShReconstructSlopes *self, ImkImage *slopes, ImkImage *flags);
/* Returns: (nullable): row and column of each lenslet, [n_cells][2]; until
 * close. The wavefront and the file of a calibration need them. */
const guint32 *gst_sh_reconstruct_slopes_places (GstShReconstructSlopes *self);
/* Returns: (nullable): hash of the settings of what has measured them; until
 * close */
const gchar *gst_sh_reconstruct_slopes_settings (
    const GstShReconstructSlopes *self);
void gst_sh_reconstruct_slopes_close (GstShReconstructSlopes *self);

G_END_DECLS
