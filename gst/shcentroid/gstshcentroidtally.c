/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidtally.h"

/* Of the radius of a spot above the threshold. A spot as near to an edge has
 * lost some per cent of its light, and seems nearer to the middle. */
#define NEAR 0.75
/* Of the mean flux of a frame: cells with less may have no spot. */
#define FAINT 0.25

enum {
  LEAST_DARK = 3, /* cells; faint spots may be taken for noise */
  DARK_PART = 20,
};

typedef struct {
  guint n_valid, n_not_finite;
  gdouble flux; /* of all valid cells */
} Valid;

static Valid
count_flags (GstShCentroidTally *self, const gfloat *numbers, guint n_cells)
{
  Valid valid = {0};

  for (guint i = 0; i < n_cells; i++) {
    const gfloat *cell = numbers + i * (gsize) IMK_SHCENTROID_N_FIELDS;
    guint flags = (guint) cell[IMK_SHCENTROID_FLAGS];
    gboolean is_invalid = (flags & IMK_SHCENTROID_INVALID_MASK) != 0;

    self->n_invalid += is_invalid;
    for (guint k = 0; is_invalid && k < G_N_ELEMENTS (self->n_of_flag); k++)
      self->n_of_flag[k] += (flags & IMK_SHCENTROID_INVALID_MASK) >> k & 1;
    valid.n_not_finite += (flags & IMK_SHCENTROID_NOT_FINITE) != 0;
    self->n_saturated += (flags & IMK_SHCENTROID_SATURATED) != 0;
    valid.n_valid += !is_invalid;
    valid.flux += is_invalid ? 0 : cell[IMK_SHCENTROID_FLUX];
  }
  self->n_frames++;
  self->n_cells += n_cells;
  return valid;
}

static guint
count_cut (const GstShCentroidTally *self, const GstShCentroidKernel *kernel,
    const gfloat *numbers, const Valid *valid)
{
  gdouble least = FAINT * valid->flux / MAX (valid->n_valid, 1);
  gfloat reach = (gfloat) (NEAR * self->radius);
  guint n = 0;

  for (guint i = 0; i < kernel->n_cells; i++) {
    const gfloat *cell = numbers + i * (gsize) IMK_SHCENTROID_N_FIELDS;
    const gfloat *edges = kernel->edges + 4 * (gsize) i;
    gfloat x = cell[IMK_SHCENTROID_X], y = cell[IMK_SHCENTROID_Y];
    guint flags = (guint) cell[IMK_SHCENTROID_FLAGS];
    gboolean is_inside = x - edges[0] >= reach && y - edges[1] >= reach &&
                         edges[2] - x >= reach && edges[3] - y >= reach;
    /* in a cell that small every spot is near its edge */
    gboolean is_small =
        edges[2] - edges[0] < 4 * reach || edges[3] - edges[1] < 4 * reach;

    n += !is_inside && !is_small &&
         (flags & IMK_SHCENTROID_INVALID_MASK) == 0 &&
         cell[IMK_SHCENTROID_FLUX] >= least;
  }
  return n;
}

static gchar *
tell_cut (GstShCentroidTally *self, guint n_cut, guint n_cells)
{
  if (n_cut == 0 || self->told_cut)
    return NULL;
  self->told_cut = TRUE;
  return g_strdup_printf (
      "The spots of %u of %u cells are cut by the edge of their cell, or lie in "
      "that of a neighbour: their shifts are wrong by up to a pitch. %s",
      n_cut, n_cells,
      self->has_hot
          ? "Name hot pixels in bad-pixels-location first: they do the same."
          : "Set window=tracking and begin with a frame of a flatter "
            "wavefront, or find the grid anew.");
}

static gchar *
tell_not_finite (GstShCentroidTally *self, guint n_not_finite, guint n_cells)
{
  if (n_not_finite == 0 || self->told_not_finite)
    return NULL;
  self->told_not_finite = TRUE;
  return g_strdup_printf (
      "%u of %u cells have a sample that is NaN or infinite and are invalid "
      "(flag 128, not finite). Name such pixels in bad-pixels-location: the "
      "rest of the cell is measured then.",
      n_not_finite, n_cells);
}

static guint
count_dark (const gfloat *numbers, guint n_cells, gdouble dark)
{
  guint n = 0;

  for (guint i = 0; i < n_cells; i++) {
    const gfloat *cell = numbers + i * (gsize) IMK_SHCENTROID_N_FIELDS;
    guint flags = (guint) cell[IMK_SHCENTROID_FLAGS];

    n += (flags & IMK_SHCENTROID_INVALID_MASK) == 0 &&
         cell[IMK_SHCENTROID_MAX] < dark;
  }
  return n;
}

/* Of a frame whose light is known; others have other light. */
static gchar *
tell_dark (GstShCentroidTally *self, const gfloat *numbers, guint n_valid,
    guint n_cells)
{
  guint n_dark = count_dark (numbers, n_cells, self->dark);

  self->dark = 0;
  if (self->told_dark || n_dark < MAX (LEAST_DARK, n_cells / DARK_PART))
    return NULL;
  self->told_dark = TRUE;
  return g_strdup_printf (
      "%u of %u cells are valid, and %u of them have no spot: they measure "
      "noise. Set threshold-mode=auto, which makes cells without light "
      "invalid, or fewer columns and rows.",
      n_valid, n_cells, n_dark);
}

/* With fewer fields there is no more to count. */
static gchar *
add_flags (GstShCentroidTally *self, guint n_cells, GstBuffer *flags)
{
  GstMapInfo map;
  guint n = 0;

  if (self->told_not_finite || !gst_buffer_map (flags, &map, GST_MAP_READ))
    return NULL;
  for (gsize i = 0; i < map.size; i++)
    n += (map.data[i] & IMK_SHCENTROID_NOT_FINITE) != 0;
  gst_buffer_unmap (flags, &map);
  return tell_not_finite (self, n, n_cells);
}

gchar *
gst_sh_centroid_tally_add (GstShCentroidTally *self,
    const GstShCentroidKernel *kernel, gboolean cells_stay, GstBuffer *numbers)
{
  GstMapInfo map;
  Valid valid;
  gchar *text, *dark;
  guint n_cut = 0;

  if (!kernel->provisional && kernel->fields != IMK_SHCENTROID_FIELDS_ALL)
    return add_flags (self, kernel->n_cells, numbers);
  if (kernel->provisional || !gst_buffer_map (numbers, &map, GST_MAP_READ))
    return NULL;
  valid = count_flags (self, (const gfloat *) map.data, kernel->n_cells);
  dark = tell_dark (
      self, (const gfloat *) map.data, valid.n_valid, kernel->n_cells);
  if (cells_stay && self->radius > 0)
    n_cut = count_cut (self, kernel, (const gfloat *) map.data, &valid);
  gst_buffer_unmap (numbers, &map);
  self->n_cut += n_cut;
  text = tell_not_finite (self, valid.n_not_finite, kernel->n_cells);
  if (text) /* both are hardly at once */
    g_free (dark);
  else
    text = dark;
  return text ? text : tell_cut (self, n_cut, kernel->n_cells);
}

GstStructure *
gst_sh_centroid_tally_describe (const GstShCentroidTally *self)
{
  static const gchar *const names[G_N_ELEMENTS (self->n_of_flag)] = {"no-flux",
      "low-flux", NULL, NULL, NULL, "no-match", "outside", "not-finite"};
  GstStructure *summary;

  if (self->n_cells == 0)
    return NULL;
  summary = gst_structure_new ("shcentroid-summary", "frames", G_TYPE_UINT64,
      self->n_frames, "cells", G_TYPE_UINT64, self->n_cells, "invalid",
      G_TYPE_UINT64, self->n_invalid, "saturated", G_TYPE_UINT64,
      self->n_saturated, "cut", G_TYPE_UINT64, self->n_cut, NULL);
  for (guint k = 0; k < G_N_ELEMENTS (names); k++)
    if (names[k])
      gst_structure_set (
          summary, names[k], G_TYPE_UINT64, self->n_of_flag[k], NULL);
  return summary;
}
