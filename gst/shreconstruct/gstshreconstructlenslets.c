/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructlenslets.h"

struct _GstShReconstructLenslets {
  guint32 *of_matrix; /* (nullable): [n_cells][2] */
  guint n_cells;
  gchar *location;        /* (nullable) */
  GstBuffer *last_places; /* (nullable): of the last frame; shcentroid makes
                           * another one for each grid */
};

GstShReconstructLenslets *
gst_sh_reconstruct_lenslets_new (void)
{
  return g_new0 (GstShReconstructLenslets, 1);
}

void
gst_sh_reconstruct_lenslets_free (GstShReconstructLenslets *self)
{
  gst_sh_reconstruct_lenslets_forget (self);
  g_free (self->of_matrix);
  g_free (self->location);
  g_free (self);
}

gboolean
gst_sh_reconstruct_lenslets_are_known (const guint32 *places, guint n_cells)
{
  for (guint i = 0; places && i < n_cells; i++)
    if (places[2 * i] != 0 || places[2 * i + 1] != i)
      return TRUE;
  return FALSE;
}

static ImkStatus
compare (const guint32 *of_matrix, const guint32 *of_sensor, guint n_cells,
    const gchar *location, ImkError *error)
{
  if (!gst_sh_reconstruct_lenslets_are_known (of_matrix, n_cells) ||
      !gst_sh_reconstruct_lenslets_are_known (of_sensor, n_cells))
    return IMK_OK;
  for (guint i = 0; i < n_cells; i++) {
    const guint32 *expected = of_matrix + 2 * i, *found = of_sensor + 2 * i;

    if (expected[0] != found[0] || expected[1] != found[1])
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The sensor has other lenslets than matrix-location \"%s\" is made "
          "for: cell %u is that of row %u, column %u, and in the matrix that "
          "of row %u, column %u. Use the matrix of this grid, or calibrate "
          "again.",
          location, i, found[0], found[1], expected[0], expected[1]);
  }
  return IMK_OK;
}

ImkStatus
gst_sh_reconstruct_lenslets_check (const GstShReconstructLenslets *self,
    const guint32 *of_matrix, guint n_cells, const gchar *location,
    ImkError *error)
{
  const gsize size = 2 * (gsize) n_cells * sizeof (guint32);
  ImkStatus status = IMK_OK;
  GstMapInfo map;

  if (!of_matrix || !self->last_places ||
      gst_buffer_get_size (self->last_places) != size ||
      !gst_buffer_map (self->last_places, &map, GST_MAP_READ))
    return IMK_OK;
  status = compare (of_matrix, (const guint32 *) (gconstpointer) map.data,
      n_cells, location, error);
  gst_buffer_unmap (self->last_places, &map);
  return status;
}

void
gst_sh_reconstruct_lenslets_take (GstShReconstructLenslets *self,
    const guint32 *of_matrix, guint n_cells, const gchar *location)
{
  g_free (self->of_matrix);
  self->of_matrix =
      g_memdup2 (of_matrix, 2 * (gsize) n_cells * sizeof (*of_matrix));
  self->n_cells = n_cells;
  g_free (self->location);
  self->location = g_strdup (location);
}

ImkStatus
gst_sh_reconstruct_lenslets_follow (GstShReconstructLenslets *self,
    const GstShReconstructSlopes *slopes, ImkError *error)
{
  if (self->last_places == slopes->places_buffer)
    return IMK_OK;
  gst_buffer_replace (&self->last_places, slopes->places_buffer);
  return gst_sh_reconstruct_lenslets_check (
      self, self->of_matrix, self->n_cells, self->location, error);
}

void
gst_sh_reconstruct_lenslets_forget (GstShReconstructLenslets *self)
{
  gst_buffer_replace (&self->last_places, NULL);
}
