/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidpupils.h"

#include <stdlib.h>

#include "gstshcentroidfiles.h"

enum { N_PUPILS = 4 };

static gboolean
check_shape (
    const GstShCentroidArray *a, const gchar *location, ImkError *error)
{
  guint first = a->n_dims == 3;

  if ((a->n_dims == 2 || (first && a->dims[0] == N_PUPILS)) && a->n > 0 &&
      a->dims[first] <= G_MAXUINT16 && a->dims[first + 1] <= G_MAXUINT16)
    return TRUE;
  imk_error_set (error, IMK_ERROR_FILE,
      "pupils-location \"%s\" is %s; it has to be [height, width] with the "
      "numbers 1 to 4 in the pupil images, or [4, height, width] with a mask "
      "for each.",
      location, a->text);
  return FALSE;
}

/* Returns: (transfer full) (nullable): 1 to 4 in the pixels of a pupil image */
static guint8 *
number_pixels (
    const GstShCentroidArray *a, const gchar *location, ImkError *error)
{
  gboolean masks = a->n_dims == 3;
  gsize n = masks ? a->n / N_PUPILS : a->n;
  guint64 width = a->dims[a->n_dims - 1];
  g_autofree guint8 *numbers = g_malloc0 (n);

  for (gsize i = 0; i < a->n; i++) {
    gdouble value = a->values[i];
    guint8 *to = &numbers[i % n];

    if (!masks && (value < 0 || value > N_PUPILS || value != (guint) value)) {
      imk_error_set (error, IMK_ERROR_FILE,
          "pupils-location \"%s\" has %g at (%u, %u); a pixel has the number of "
          "its pupil image, 1 to 4, or 0.",
          location, value, (guint) (i % width), (guint) (i / width));
      return NULL;
    }
    if (value != 0 && *to != 0) {
      imk_error_set (error, IMK_ERROR_FILE,
          "pupils-location \"%s\" has the pixel (%u, %u) in the masks of two "
          "pupil images, %u and %u.",
          location, (guint) (i % n % width), (guint) (i % n / width), *to,
          (guint) (i / n) + 1);
      return NULL;
    }
    if (value != 0)
      *to = masks ? (guint8) (i / n + 1) : (guint8) value;
  }
  return g_steal_pointer (&numbers);
}

/* Counted from the first row and column of pupil image 1. */
static void
number_places (GstShCentroidPupils *self)
{
  gdouble left = G_MAXDOUBLE, top = G_MAXDOUBLE;

  self->places = g_new (guint32, 2 * (gsize) self->config.n_cells);
  for (guint32 i = 0; i < self->config.n_cells; i++) {
    left = MIN (left, self->cells[i].x);
    top = MIN (top, self->cells[i].y);
  }
  for (guint32 i = 0; i < self->config.n_cells; i++) {
    self->places[2 * (gsize) i] = (guint32) (self->cells[i].y - top);
    self->places[2 * (gsize) i + 1] = (guint32) (self->cells[i].x - left);
  }
}

gpointer
gst_sh_centroid_pupils_load (
    const gchar *property, const gchar *location, ImkError *error)
{
  g_autofree GstShCentroidArray *a =
      gst_sh_centroid_array_load_finite (property, location, error);
  g_autofree guint8 *numbers = NULL;
  g_autofree GstShCentroidPupils *self = g_new0 (GstShCentroidPupils, 1);
  ImkError why;

  if (!a || !check_shape (a, location, error))
    return NULL;
  numbers = number_pixels (a, location, error);
  if (!numbers)
    return NULL;
  self->width = (guint32) a->dims[a->n_dims - 1];
  self->height = (guint32) a->dims[a->n_dims - 2];
  if (imk_shcentroid_find_pupils (numbers, self->width, self->height,
          &self->config, &self->cells, &self->pupils, &why) != IMK_OK) {
    imk_error_set (error, IMK_ERROR_FILE, "pupils-location \"%s\": %s",
        location, why.message);
    return NULL;
  }
  number_places (self);
  return g_steal_pointer (&self);
}

void
gst_sh_centroid_pupils_free (gpointer pupils)
{
  GstShCentroidPupils *self = pupils;

  free (self->cells);
  free (self->pupils);
  g_free (self->places);
  g_free (self);
}

ImkStatus
gst_sh_centroid_pupils_use (
    const GstImagingFile *file, ImkShcentroidConfig *config, ImkError *error)
{
  const GstShCentroidPupils *self = gst_imaging_setting_file_data (file);

  if (!self)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "estimator is pupils, but there are no pupil images. Set "
        "pupils-location to a file with the number of each of their pixels.");
  if (self->width != config->width || self->height != config->height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "pupils-location \"%s\" is of frames of %ux%u pixels; these are %ux%u.",
        file->location, self->width, self->height, config->width,
        config->height);
  config->cells = self->config.cells;
  config->n_cells = self->config.n_cells;
  config->pupils = self->config.pupils;
  return IMK_OK;
}
