/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of coherence-location and its like. They are written as rows of
 * cells come, whatever the pads do; a file that cannot be written ends neither
 * the pads nor the other files. */
#include "gstinsarform-private.h"

#include <math.h>

#include "files/gstimagingfile.h"

#define GST_CAT_DEFAULT gst_insar_form_debug

void
gst_insar_form_rasters_clear (GstInsarForm *self)
{
  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++)
    g_clear_pointer (&self->rasters[i], gst_insar_raster_free);
  g_clear_error (&self->raster_error);
}

/* Returns: an earlier property with the file of @i; NULL: there is none */
static const gchar *
find_twin (const GstInsarFormSettings *now, guint i)
{
  const gchar *location = gst_imaging_setting_file_location (now->locations[i]);
  g_autofree gchar *path = g_canonicalize_filename (location, NULL);

  for (guint k = 0; k < i; k++) {
    const gchar *other = gst_imaging_setting_file_location (now->locations[k]);
    g_autofree gchar *other_path =
        other ? g_canonicalize_filename (other, NULL) : NULL;

    if (g_strcmp0 (path, other_path) == 0)
      return gst_insar_picture_bands[k].name;
  }
  return NULL;
}

static ImkStatus
open_raster (GstInsarForm *self, guint i, ImkError *error)
{
  const GstInsarFormSettings *now =
      gst_imaging_settings_now (self->base.settings);
  const gchar *location = gst_imaging_setting_file_location (now->locations[i]);
  g_autoptr (GError) why = NULL;
  gboolean is_phase =
      i == GST_INSAR_PICTURE_PHASE || i == GST_INSAR_PICTURE_REMOVED;
  const gchar *twin;

  if (!location)
    return IMK_OK;
  twin = find_twin (now, i);
  if (twin) {
    g_autofree gchar *name = gst_imaging_file_name (location);

    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%s-location and %s-location are both \"%s\", and only one of them "
        "would stay. Give each a name of its own.",
        twin, gst_insar_picture_bands[i].name, name);
  }
  self->rasters[i] = gst_insar_raster_new (location,
      &(GstInsarRasterInfo){
          .element = "insarform",
          .settings_hash = gst_imaging_settings_hash (self->base.settings),
          .width = self->cells.width,
          .height = self->cells.height,
          .is_complex = i == GST_INSAR_PICTURE_INTERFEROGRAM,
          .bands = &gst_insar_picture_bands[i],
          .n_bands = 1,
          .no_data = is_phase ? NAN : 0,
          .image = self->pair.sides[GST_INSAR_REFERENCE].caps,
      },
      &why);
  return self->rasters[i]
             ? IMK_OK
             : imk_error_set (error, IMK_ERROR_CONFIG, "%s-location: %s",
                   gst_insar_picture_bands[i].name, why->message);
}

ImkStatus
gst_insar_form_rasters_open (GstInsarForm *self, ImkError *error)
{
  gst_insar_form_rasters_clear (self);
  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++)
    IMK_TRY (open_raster (self, i, error));
  return IMK_OK;
}

/* The first failure is the one that is told. */
static void
fail (GstInsarForm *self, guint i, GError *error)
{
  if (self->raster_error)
    g_error_free (error);
  else
    self->raster_error = error;
  g_clear_pointer (&self->rasters[i], gst_insar_raster_free);
}

void
gst_insar_form_rasters_write (GstInsarForm *self, const gfloat *row)
{
  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++) {
    GError *error = NULL;

    if (!self->rasters[i])
      continue;
    gst_insar_picture_put_floats (i, row, self->cells.width, self->row);
    if (!gst_insar_raster_write (self->rasters[i], self->row, &error))
      fail (self, i, error);
  }
}

void
gst_insar_form_rasters_finish (GstInsarForm *self)
{
  const ImkInsarformConfig *c = &self->open_settings.config;
  const GstInsarGrid grid = {.step = {c->looks_x, c->looks_y}};

  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++) {
    GError *error = NULL;

    if (self->rasters[i] &&
        !gst_insar_raster_finish (self->rasters[i], &grid, &error))
      fail (self, i, error);
    g_clear_pointer (&self->rasters[i], gst_insar_raster_free);
  }
}
