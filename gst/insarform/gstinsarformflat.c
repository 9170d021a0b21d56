/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The phase that flatten=orbit and flatten=dem remove, line by line. */
#include "gstinsarform-private.h"

#include "imk/insarform-orbit.h"
#include "insar/gstinsarorbit.h"
#include "insar/gstinsarplane.h"

struct _GstInsarFormFlat {
  ImkInsarformEarth *earth;
  GstInsarPlane plane; /* of the heights; its values belong to the settings */
  gfloat *heights;     /* (nullable): of a line */
  gfloat *phases;      /* [GST_INSAR_FORM_FLAT_LINES][width] */
  guint width, n_threads;
};

void
gst_insar_form_flat_free (GstInsarFormFlat *self)
{
  if (!self)
    return;
  imk_insarform_earth_free (self->earth);
  g_free (self->heights);
  g_free (self->phases);
  g_free (self);
}

/* Those that are named have been read. */
static ImkStatus
check_files (const GstInsarFormSettings *now, ImkError *error)
{
  gboolean with_dem = now->flatten == GST_INSAR_FORM_FLATTEN_DEM;

  if (!now->orbits[0] || !now->orbits[1])
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "flatten=%s needs %s-orbit: a PRM file of GMTSAR whose led_file is "
        "there, or XML of ISCE2.",
        with_dem ? "dem" : "orbit", now->orbits[0] ? "secondary" : "reference");
  if (with_dem && !now->dem)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "flatten=dem needs dem-location: a raster with the heights in m, in "
        "the radar coordinates of the reference.");
  return IMK_OK;
}

static ImkStatus
get_surface (const GstInsarFormSettings *now, const GstInsarOrbit *orbit,
    ImkInsarformSurface *surface, ImkError *error)
{
  const GstImagingFile *file = now->grid ? now->grid : now->orbits[0];
  gdouble sphere = orbit->sphere;

  *surface = orbit->ellipsoid;
  if (now->flatten == GST_INSAR_FORM_FLATTEN_ORBIT ||
      now->dem_surface == GST_INSAR_FORM_DEM_ELLIPSOID)
    return IMK_OK;
  if (!(sphere > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "dem-surface=sphere needs earth_radius in the PRM file of %s, and "
        "\"%s\" has none. Take dem-surface=ellipsoid for heights above the "
        "ellipsoid.",
        now->grid ? "grid-orbit" : "reference-orbit", file->location);
  *surface = (ImkInsarformSurface){sphere, sphere};
  return IMK_OK;
}

ImkStatus
gst_insar_form_flat_new (const GstInsarFormSettings *now, guint width,
    guint height, guint n_threads, GstInsarFormFlat **self, ImkError *error)
{
  ImkStatus status = check_files (now, error);
  const GstInsarOrbit *orbits[2] = {
      gst_imaging_setting_file_data (now->orbits[0]),
      gst_imaging_setting_file_data (now->orbits[1])};
  const GstInsarOrbit *grid =
      now->grid ? gst_imaging_setting_file_data (now->grid) : orbits[0];
  const GstInsarPlane *dem = gst_imaging_setting_file_data (now->dem);
  gboolean with_dem = now->flatten == GST_INSAR_FORM_FLATTEN_DEM;
  ImkInsarformSurface surface;
  GstInsarFormFlat *s;

  if (status == IMK_OK)
    status = get_surface (now, grid, &surface, error);
  if (status != IMK_OK)
    return status;
  s = g_new0 (GstInsarFormFlat, 1);
  s->width = width;
  s->n_threads = n_threads;
  if (with_dem) {
    s->plane = *dem;
    s->heights = g_new (gfloat, width);
    status = gst_insar_plane_fit (&s->plane, width, height, error);
  }
  s->phases = g_new (gfloat, (gsize) width * GST_INSAR_FORM_FLAT_LINES);
  if (status == IMK_OK)
    status = imk_insarform_earth_new (&grid->orbit,
        now->grid ? &orbits[0]->orbit : NULL, &orbits[1]->orbit, &surface,
        width, height, &s->earth, error);
  if (status == IMK_OK)
    *self = s;
  else
    gst_insar_form_flat_free (s);
  return status;
}

ImkImage
gst_insar_form_flat_lines (GstInsarFormFlat *self, guint first, guint n)
{
  for (guint i = 0; i < n; i++) {
    if (self->heights)
      gst_insar_plane_line (
          &self->plane, first + i, self->width, self->heights);
    imk_insarform_earth_line (self->earth, first + i, self->heights,
        self->n_threads, self->phases + (gsize) i * self->width);
  }
  return imk_image_of_rows (self->phases, IMK_TYPE_F32, self->width, n);
}
