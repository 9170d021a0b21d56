/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the metadata of gst-imaging in C with GStreamer alone: include this
 * file, or copy it into your program. It links to no library of ours.
 *
 * docs/reference/metadata.md says what the members mean. The element that
 * writes the metadata has to be loaded first, as it is in a running pipeline.
 */
#pragma once

#include <gst/gst.h>

#include <string.h>

G_BEGIN_DECLS

/**
 * GstImagingReader: (skip)
 * @structure: all fields, also those that have no member here
 * @fields: names of the columns, or with @by_field of the rows
 * @pts, @timestamp: GST_CLOCK_TIME_NONE where there is none
 * @data: float32 [rows][columns]
 * @n: things measured, for example cells
 * @flags: (nullable): u8 [n]
 * @row_column: (nullable): lenslet row and column: guint32 [n][2]
 * @cells: (nullable): x, y, width, height, x and y of the reference: float32
 *   [n][6]
 *
 * What an element measured in a frame. Texts and numbers are valid until
 * gst_imaging_reader_close(), and as long as the frame.
 */
typedef struct {
  const GstStructure *structure;
  const gchar *id, *fields, *unit;
  const gchar *element, *version, *backend, *settings_hash;
  gint rows, columns, ref_width, ref_height;
  gboolean by_field;
  guint64 frame, frames_missing, pts, timestamp;
  gsize n;
  const gfloat *data;
  const guint8 *flags;
  const guint32 *row_column;
  const gfloat *cells;
  GstBuffer *buffers[4]; /* of these four, where they are mapped */
  GstMapInfo maps[4];
} GstImagingReader;

static inline const GstStructure *
gst_imaging_reader_structure (GstBuffer *buffer, const gchar *name)
{
  GstCustomMeta *meta = gst_meta_get_info (name)
                            ? gst_buffer_get_custom_meta (buffer, name)
                            : NULL;

  return meta ? gst_custom_meta_get_structure (meta) : NULL;
}

/* Returns: (nullable): at least @size bytes */
static inline gconstpointer
gst_imaging_reader_map (
    GstImagingReader *self, guint i, const gchar *field, gsize size)
{
  const GValue *value = gst_structure_get_value (self->structure, field);
  GstBuffer *buffer = value && GST_VALUE_HOLDS_BUFFER (value)
                          ? gst_value_get_buffer (value)
                          : NULL;

  if (!buffer || gst_buffer_get_size (buffer) < size ||
      !gst_buffer_map (buffer, &self->maps[i], GST_MAP_READ))
    return NULL;
  self->buffers[i] = buffer;
  return self->maps[i].data;
}

static inline void
gst_imaging_reader_close (GstImagingReader *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (self->maps); i++)
    if (self->buffers[i])
      gst_buffer_unmap (self->buffers[i], &self->maps[i]);
  memset (self, 0, sizeof (*self));
}

/**
 * gst_imaging_reader_read: (skip)
 * @s: results of one element, a field of the metadata
 *
 * Returns: whether they are complete; then close @self when done
 */
static inline gboolean
gst_imaging_reader_read (GstImagingReader *self, const GstStructure *s)
{
  gsize size;

  memset (self, 0, sizeof (*self));
  self->structure = s;
  self->id = gst_structure_get_string (s, "id");
  self->fields = gst_structure_get_string (s, "fields");
  self->unit = gst_structure_get_string (s, "unit");
  self->element = gst_structure_get_string (s, "element");
  self->version = gst_structure_get_string (s, "version");
  self->backend = gst_structure_get_string (s, "backend");
  self->settings_hash = gst_structure_get_string (s, "settings-hash");
  self->pts = self->timestamp = GST_CLOCK_TIME_NONE;
  gst_structure_get_int (s, "rows", &self->rows);
  gst_structure_get_int (s, "columns", &self->columns);
  gst_structure_get_int (s, "ref-width", &self->ref_width);
  gst_structure_get_int (s, "ref-height", &self->ref_height);
  gst_structure_get_boolean (s, "by-field", &self->by_field);
  gst_structure_get_uint64 (s, "frame", &self->frame);
  gst_structure_get_uint64 (s, "frames-missing", &self->frames_missing);
  gst_structure_get_uint64 (s, "pts", &self->pts);
  gst_structure_get_uint64 (s, "timestamp", &self->timestamp);
  self->n = (gsize) (self->by_field ? self->columns : self->rows);
  size = (gsize) self->rows * (gsize) self->columns * sizeof (gfloat);
  self->data = (const gfloat *) gst_imaging_reader_map (self, 0, "data", size);
  self->flags =
      (const guint8 *) gst_imaging_reader_map (self, 1, "flags", self->n);
  self->row_column = (const guint32 *) gst_imaging_reader_map (
      self, 2, "row-column", 2 * self->n * sizeof (guint32));
  self->cells = (const gfloat *) gst_imaging_reader_map (
      self, 3, "cells", 6 * self->n * sizeof (gfloat));
  if (self->rows >= 0 && self->columns >= 0 && self->data && self->fields)
    return TRUE;
  gst_imaging_reader_close (self);
  return FALSE;
}

/**
 * gst_imaging_reader_open: (skip)
 * @element: the name of the element: "sh" for `shcentroid name=sh`
 *
 * Returns: whether it has measured @buffer; then close @self when done
 */
static inline gboolean
gst_imaging_reader_open (
    GstImagingReader *self, GstBuffer *buffer, const gchar *element)
{
  const GstStructure *all =
      gst_imaging_reader_structure (buffer, "GstImagingResults");
  const GValue *value = all ? gst_structure_get_value (all, element) : NULL;

  return value && GST_VALUE_HOLDS_STRUCTURE (value) &&
         gst_imaging_reader_read (self, gst_value_get_structure (value));
}

/* Returns: the number of the field @name, from 0; -1 without such a field */
static inline gint
gst_imaging_reader_field (const GstImagingReader *self, const gchar *name)
{
  const gsize size = strlen (name);
  const gchar *at = self->fields;

  for (gint field = 0; at; field++) {
    const gchar *end = strchr (at, ',');

    if ((end ? (gsize) (end - at) : strlen (at)) == size &&
        strncmp (at, name, size) == 0)
      return field;
    at = end ? end + 1 : NULL;
  }
  return -1;
}

/* Returns: the field @field, from 0, of the thing @i, from 0 to before n */
static inline gfloat
gst_imaging_reader_value (const GstImagingReader *self, gsize i, gint field)
{
  const gsize columns = (gsize) self->columns, f = (gsize) field;

  return self->data[self->by_field ? f * columns + i : i * columns + f];
}

/* --- what the samples of an image are ------------------------------------- */

typedef struct {
  const gchar *name, *unit;
  gdouble step, origin; /* sample i is at origin + i * step */
} GstImagingReaderAxis;

/**
 * GstImagingReaderQuantity: (skip)
 * @name: (nullable): without one the samples stand for no quantity
 * @axes: the first along a row; one before the last that is known may be
 *   unknown, and has no name
 *
 * quantity = @offset + @scale * sample. Texts are valid as long as the image.
 */
typedef struct {
  const gchar *name, *unit;
  gdouble scale, offset;
  guint n_axes;
  GstImagingReaderAxis axes[4];
  const gchar *element, *version, *backend, *settings_hash;
} GstImagingReaderQuantity;

/**
 * gst_imaging_reader_quantity: (skip)
 * Returns: whether @image tells what made it
 */
static inline gboolean
gst_imaging_reader_quantity (GstImagingReaderQuantity *self, GstBuffer *image)
{
  static const gchar *const names[4][4] = {
      {"axis-0-name", "axis-0-unit", "axis-0-step", "axis-0-origin"},
      {"axis-1-name", "axis-1-unit", "axis-1-step", "axis-1-origin"},
      {"axis-2-name", "axis-2-unit", "axis-2-step", "axis-2-origin"},
      {"axis-3-name", "axis-3-unit", "axis-3-step", "axis-3-origin"}};
  const GstStructure *s =
      gst_imaging_reader_structure (image, "GstImagingQuantity");

  memset (self, 0, sizeof (*self));
  if (!s)
    return FALSE;
  self->name = gst_structure_get_string (s, "name");
  self->unit = gst_structure_get_string (s, "unit");
  gst_structure_get_double (s, "scale", &self->scale);
  gst_structure_get_double (s, "offset", &self->offset);
  self->element = gst_structure_get_string (s, "element");
  self->version = gst_structure_get_string (s, "version");
  self->backend = gst_structure_get_string (s, "backend");
  self->settings_hash = gst_structure_get_string (s, "settings-hash");
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    GstImagingReaderAxis *axis = &self->axes[i];

    if (!gst_structure_has_field (s, names[i][0]))
      continue;
    axis->name = gst_structure_get_string (s, names[i][0]);
    axis->unit = gst_structure_get_string (s, names[i][1]);
    gst_structure_get_double (s, names[i][2], &axis->step);
    gst_structure_get_double (s, names[i][3], &axis->origin);
    self->n_axes = i + 1;
  }
  return TRUE;
}

G_END_DECLS
