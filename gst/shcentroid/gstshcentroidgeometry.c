/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidgeometry.h"

#include "gstimagingenum.h"
#include "gstshcentroidfiles.h"

/* Of the spots that are lit, relative to the median one: with less, the arms
 * of bright spots and dust would be cells. */
#define LEAST_STRENGTH 0.1

static const GEnumValue grid_rule_values[] = {
    {IMK_SHCENTROID_RULE_SINGLE_FLOOR,
        "Neighbours share an edge: every pixel belongs to one cell",
        "single-floor"},
    {IMK_SHCENTROID_RULE_PAPER,
        "floor (floor (x0 + c d) + d) ends a cell, as Mocci et al. write it",
        "paper"},
    {0, NULL, NULL},
};

static const GEnumValue slope_unit_values[] = {
    {GST_SH_CENTROID_SLOPE_PX, "Pixels", "px"},
    {GST_SH_CENTROID_SLOPE_RAD,
        "Radians: pixels times pixel-size / focal-length", "rad"},
    {0, NULL, NULL},
};

static const GEnumValue lattice_values[] = {
    {IMK_SHCENTROID_LATTICE_ANY, "Whichever fits more spots", "any"},
    {IMK_SHCENTROID_LATTICE_SQUARE, "Square", "square"},
    {IMK_SHCENTROID_LATTICE_HEXAGONAL, "Hexagonal", "hexagonal"},
    {0, NULL, NULL},
};

static const GParamFlags flags =
    G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

static void
install_length (GObjectClass *klass, guint id, const gchar *name,
    const gchar *nick, const gchar *blurb)
{
  g_object_class_install_property (
      klass, id, g_param_spec_double (name, nick, blurb, 0, 1e9, 0, flags));
}

static void
install_optics (GObjectClass *klass, guint first)
{
  install_length (klass, first + GST_SH_CENTROID_APERTURE, "aperture",
      "Aperture",
      "Diameter of the beam on the lenslets in mm; above 0 it gives the grid, "
      "instead of columns, rows and pitches: floor (aperture / lenslet-pitch) "
      "cells a side, lenslet-pitch / pixel-size pixels each, in the middle of "
      "the frame, moved by x0 and y0");
  install_length (klass, first + GST_SH_CENTROID_LENSLET_PITCH, "lenslet-pitch",
      "Lenslet pitch",
      "From one lenslet to the next in micrometres, for aperture");
  install_length (klass, first + GST_SH_CENTROID_PIXEL_SIZE, "pixel-size",
      "Pixel size",
      "Of the detector in micrometres, for aperture and slope-unit=rad; behind "
      "a relay, divided by its magnification");
  install_length (klass, first + GST_SH_CENTROID_FOCAL_LENGTH, "focal-length",
      "Focal length", "Of the lenslets in mm, for slope-unit=rad");
}

void
gst_sh_centroid_geometry_install (GObjectClass *klass, guint first)
{
  g_object_class_install_property (klass, first + GST_SH_CENTROID_GRID_RULE,
      g_param_spec_enum ("grid-rule", "Grid rule",
          "Which pixels a cell of the grid covers; with a pitch in whole "
          "pixels both are the same",
          gst_imaging_enum_type ("GstShCentroidGridRule", grid_rule_values),
          IMK_SHCENTROID_RULE_SINGLE_FLOOR, flags));
  install_optics (klass, first);
  g_object_class_install_property (klass, first + GST_SH_CENTROID_SLOPE_UNIT,
      g_param_spec_enum ("slope-unit", "Slope unit",
          "Unit of dx and dy; everything else stays in pixels",
          gst_imaging_enum_type ("GstShCentroidSlopeUnit", slope_unit_values),
          GST_SH_CENTROID_SLOPE_PX, flags));
  g_object_class_install_property (klass, first + GST_SH_CENTROID_LATTICE,
      g_param_spec_enum ("lattice", "Lattice",
          "How the lenslets are arranged that find-grid looks for",
          gst_imaging_enum_type ("GstShCentroidLattice", lattice_values),
          IMK_SHCENTROID_LATTICE_ANY, flags));
  g_object_class_install_property (klass,
      first + GST_SH_CENTROID_FIND_GRID_LOCATION,
      g_param_spec_string ("find-grid-location", "Location for find-grid",
          "Finds the grid of lenslets in the next frame, writes it to this "
          ".npy file and measures with it, as the action find-grid does; for "
          "gst-launch-1.0",
          NULL, flags));
}

void
gst_sh_centroid_geometry_set (GstShCentroidGeometry *self,
    GstShCentroidGeometryProperty property, const GValue *value)
{
  switch (property) {
  case GST_SH_CENTROID_GRID_RULE:
    self->grid_rule = g_value_get_enum (value);
    break;
  case GST_SH_CENTROID_APERTURE:
    self->optics.aperture_mm = g_value_get_double (value);
    break;
  case GST_SH_CENTROID_LENSLET_PITCH:
    self->optics.lenslet_pitch_um = g_value_get_double (value);
    break;
  case GST_SH_CENTROID_PIXEL_SIZE:
    self->optics.pixel_size_um = g_value_get_double (value);
    break;
  case GST_SH_CENTROID_FOCAL_LENGTH:
    self->optics.focal_length_mm = g_value_get_double (value);
    break;
  case GST_SH_CENTROID_SLOPE_UNIT:
    self->slope_unit = g_value_get_enum (value);
    break;
  case GST_SH_CENTROID_LATTICE:
    self->lattice = g_value_get_enum (value);
    break;
  case GST_SH_CENTROID_FIND_GRID_LOCATION:
    g_free (self->find_location);
    self->find_location = g_value_dup_string (value);
    if (self->find_location && !*self->find_location)
      g_clear_pointer (&self->find_location, g_free);
    g_free (self->pending);
    self->pending = g_strdup (self->find_location);
    break;
  case GST_SH_CENTROID_N_GEOMETRY:
    break;
  }
}

void
gst_sh_centroid_geometry_get (const GstShCentroidGeometry *self,
    GstShCentroidGeometryProperty property, GValue *value)
{
  switch (property) {
  case GST_SH_CENTROID_GRID_RULE:
    g_value_set_enum (value, self->grid_rule);
    break;
  case GST_SH_CENTROID_APERTURE:
    g_value_set_double (value, self->optics.aperture_mm);
    break;
  case GST_SH_CENTROID_LENSLET_PITCH:
    g_value_set_double (value, self->optics.lenslet_pitch_um);
    break;
  case GST_SH_CENTROID_PIXEL_SIZE:
    g_value_set_double (value, self->optics.pixel_size_um);
    break;
  case GST_SH_CENTROID_FOCAL_LENGTH:
    g_value_set_double (value, self->optics.focal_length_mm);
    break;
  case GST_SH_CENTROID_SLOPE_UNIT:
    g_value_set_enum (value, self->slope_unit);
    break;
  case GST_SH_CENTROID_LATTICE:
    g_value_set_enum (value, self->lattice);
    break;
  case GST_SH_CENTROID_FIND_GRID_LOCATION:
    g_value_set_string (value, self->find_location);
    break;
  case GST_SH_CENTROID_N_GEOMETRY:
    break;
  }
}

void
gst_sh_centroid_geometry_clear (GstShCentroidGeometry *self)
{
  g_clear_pointer (&self->find_location, g_free);
  g_clear_pointer (&self->pending, g_free);
}

ImkStatus
gst_sh_centroid_geometry_scale (const GstShCentroidGeometry *self,
    ImkShcentroidConfig *config, ImkError *error)
{
  config->slope_scale = 1;
  return self->slope_unit == GST_SH_CENTROID_SLOPE_PX
             ? IMK_OK
             : imk_shcentroid_optics_slope (
                   &self->optics, &config->slope_scale, error);
}

ImkStatus
gst_sh_centroid_geometry_apply (const GstShCentroidGeometry *self,
    ImkShcentroidConfig *config, ImkError *error)
{
  ImkStatus status = gst_sh_centroid_geometry_scale (self, config, error);

  config->grid_rule = self->grid_rule;
  if (status == IMK_OK && self->optics.aperture_mm > 0 && !config->n_cells)
    status = imk_shcentroid_optics_grid (&self->optics, config, error);
  return status;
}

/* --- finding -------------------------------------------------------------- */

/* x0, y0, pitch-x, pitch-y, columns and rows are what the properties of those
 * names would be: of use when the rotation is small and all cells are lit. */
static GstStructure *
describe (const ImkShcentroidGrid *grid, const gchar *location)
{
  gboolean square = grid->lattice == IMK_SHCENTROID_LATTICE_SQUARE;
  gdouble side = imk_shcentroid_grid_side (grid);

  return gst_structure_new ("shcentroid-grid", "location", G_TYPE_STRING,
      location, "lattice", G_TYPE_STRING, square ? "square" : "hexagonal",
      "cells", G_TYPE_UINT, grid->n_spots, "pitch", G_TYPE_DOUBLE, grid->pitch,
      "rotation", G_TYPE_DOUBLE, grid->rotation * 180 / G_PI, "rms",
      G_TYPE_DOUBLE, grid->rms, "x0", G_TYPE_DOUBLE,
      grid->origin_x + 0.5 - side / 2, "y0", G_TYPE_DOUBLE,
      grid->origin_y + 0.5 - side / 2, "pitch-x", G_TYPE_DOUBLE, grid->column_x,
      "pitch-y", G_TYPE_DOUBLE, grid->row_y, "columns", G_TYPE_UINT,
      grid->columns, "rows", G_TYPE_UINT, grid->rows, NULL);
}

GstStructure *
gst_sh_centroid_find_grid (const ImkImage *frame, ImkShcentroidLattice lattice,
    const gchar *location, ImkError *error)
{
  ImkShcentroidGrid grid = {0};
  GstStructure *report = NULL;
  ImkStatus status =
      imk_shcentroid_find_grid (frame, lattice, LEAST_STRENGTH, &grid, error);

  if (status == IMK_OK)
    status = gst_sh_centroid_save_map (location, &grid, error);
  if (status == IMK_OK)
    report = describe (&grid, location);
  imk_shcentroid_grid_clear (&grid);
  return report;
}

/* --- for viewers ---------------------------------------------------------- */

GstStructure *
gst_sh_centroid_describe_cells (const ImkShcentroidConfig *config)
{
  guint32 n = imk_shcentroid_n_cells (config);
  gfloat *numbers = g_new (gfloat, 6 * (gsize) n);
  GstBuffer *cells;
  GstStructure *more;

  for (guint32 i = 0; i < n; i++) {
    ImkShcentroidCell cell = imk_shcentroid_cell (config, i);
    const gdouble values[6] = {
        cell.x, cell.y, cell.width, cell.height, cell.ref_x, cell.ref_y};

    for (guint k = 0; k < 6; k++)
      numbers[6 * (gsize) i + k] = (gfloat) values[k];
  }
  cells = gst_buffer_new_wrapped (numbers, 6 * (gsize) n * sizeof (gfloat));
  more = gst_structure_new ("cells", "cells", GST_TYPE_BUFFER, cells,
      "slope-scale", G_TYPE_DOUBLE, config->slope_scale, NULL);
  gst_buffer_unref (cells);
  return more;
}
