/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingorigin.h"

G_BEGIN_DECLS

/**
 * GST_IMAGING_RESULTS_META:
 *
 * The #GstCustomMeta that carries results on the frame they belong to, through
 * converters, scalers and crops. Its structure has one field an element, named
 * as the element, holding a #GstStructure with
 *
 * - `id` (string): what the numbers are, with a version: "shwfs-centroids-v1"
 * - `data` (#GstBuffer): packed float32, machine byte order
 * - `type` (string): "float32"; `dims` (#GstValueArray of int), the slowest
 *   first; `dims-order` (string): "row-major"
 * - `rows`, `columns` (int): the same two numbers for readers without arrays
 * - `flags` (#GstBuffer): u8, one of each thing measured; absent where there
 *   are none
 * - `fields` (string): names of the columns, separated by commas; of the rows
 *   when `by-field` (boolean) is true
 * - `unit` (string): of each field, separated by commas
 * - `ref-width`, `ref-height` (int): the frame that was measured, in pixels,
 *   whatever size the frame has now
 * - `frame` (guint64): offset of the measured buffer, as cameras number their
 *   frames; frames since the element started where buffers have no offset, or
 *   one that counts bytes
 * - `frames-missing` (guint64): frames that did not arrive since the previous
 *   result
 * - `pts` (guint64): of the measured buffer, in nanoseconds; absent without
 * - `element` (string): name of the element's factory, "shcentroid"; `version`
 *   (string): of gst-imaging; `backend` (string): that computed this frame,
 *   "cpu" or "cuda"; `settings-hash` (string): of the settings in use
 * - `timestamp` (guint64), `timestamp-reference` (string): of the first
 *   #GstReferenceTimestampMeta, where a camera has put its own clock; absent
 *   without
 *
 * docs/reference/metadata.md has readers in C and Python.
 */
#define GST_IMAGING_RESULTS_META "GstImagingResults"

/**
 * GstImagingResultsCache: (skip)
 *
 * See gst_imaging_results_cache_new().
 */
typedef struct _GstImagingResultsCache GstImagingResultsCache;

/**
 * GstImagingResult: (skip)
 * @id, @fields, @units, @n_fields: static strings; see
 *   %GST_IMAGING_RESULTS_META; a field whose unit is "flags" is an integer
 * @n_rows: rows of @n_fields numbers
 * @by_field: all numbers of a field stand together: [n_fields][n_rows]
 * @data: float32, in the layout said
 * @flags: (nullable): u8 [n_rows]
 * @values: (nullable): the same in float64, for text
 * @values_buffer: (nullable): holds @values, which do not change while somebody
 *   has it; without it they are valid for the call only
 * @index_names, @n_indices, @indices: integers that tell a row, in text, as
 *   guint32 [n_rows][n_indices]; the bytes are referenced
 * @ref_width, @ref_height: pixels
 * @frame: its number
 * @frames_missing: since the previous result
 * @origin: what measured; gst_imaging_filter_publish() fills it in
 * @more: (nullable): further fields of the structure in the meta
 * @cache: (nullable): of the element: descriptions of earlier frames, which are
 *   used again; @fields and @units have to be static then
 *
 * One measurement of one frame, as an element hands it over.
 */
typedef struct {
  const gchar *id;
  const gchar *const *fields;
  const gchar *const *units;
  guint n_fields;
  guint n_rows;
  gboolean by_field;
  GstBuffer *data;
  GstBuffer *flags;
  const gdouble *values;
  GstBuffer *values_buffer;
  const gchar *const *index_names;
  guint n_indices;
  GBytes *indices;
  guint ref_width, ref_height;
  guint64 frame, frames_missing;
  GstImagingOrigin origin;
  const GstStructure *more;
  GstImagingResultsCache *cache;
} GstImagingResult;

/**
 * gst_imaging_results_cache_new: (skip)
 *
 * For the results of one element. With it a frame whose results differ from
 * those before in numbers only allocates nothing.
 *
 * Returns: (transfer full): an empty one
 */
GST_IMAGING_API
GstImagingResultsCache *gst_imaging_results_cache_new (void);

/**
 * gst_imaging_results_cache_unref: (skip)
 * @self: (nullable): what is not needed any more
 *
 * It stays until the last buffer with a result has gone.
 */
GST_IMAGING_API
void gst_imaging_results_cache_unref (GstImagingResultsCache *self);

/**
 * gst_imaging_results_register:
 *
 * Makes %GST_IMAGING_RESULTS_META known. Loading one of our plug-ins does so.
 */
GST_IMAGING_API
void gst_imaging_results_register (void);

/**
 * gst_imaging_results_attach: (skip)
 * @buffer: a writable buffer
 * @element_name: the element that measured; replaces an older result of that
 * name
 * @result: what was measured; the data is referenced

 *
 * Adds a result to the metadata of a buffer.
 */
GST_IMAGING_API
void gst_imaging_results_attach (GstBuffer *buffer, const gchar *element_name,
    const GstImagingResult *result);

/**
 * gst_imaging_results_get:
 * @buffer: a buffer
 * @element_name: (nullable): whose result; %NULL for the only or any one
 *
 * Finds a result in the metadata of a buffer.
 *
 * Returns: (transfer none) (nullable): the fields that
 *   %GST_IMAGING_RESULTS_META describes, valid as long as @buffer
 */
GST_IMAGING_API
const GstStructure *gst_imaging_results_get (
    GstBuffer *buffer, const gchar *element_name);

/**
 * gst_imaging_results_to_csv: (skip)
 * @result: with values
 * @pts: of the frame, in nanoseconds; empty in the text when invalid
 * @with_header: whether the line of names comes first
 *
 * One line a row, "frame,pts,INDICES,FIELDS", numbers with the fewest digits
 * that give the same float64 when read and a dot in every locale, NaN as "nan",
 * integers as such.
 *
 * Returns: (transfer full): text
 */
GST_IMAGING_API
GstBuffer *gst_imaging_results_to_csv (
    const GstImagingResult *result, GstClockTime pts, gboolean with_header);

/**
 * gst_imaging_results_csv_header: (skip)
 * @result: with its fields
 *
 * The line of names that comes before the rows of numbers.
 *
 * Returns: (transfer full): the line of names
 */
GST_IMAGING_API
gchar *gst_imaging_results_csv_header (const GstImagingResult *result);

/**
 * gst_imaging_results_tensor_caps: (skip)
 * @with_flags: as a second tensor
 * @result: with its shape
 * @fps_n: numerator of the frame rate
 * @fps_d: denominator of the frame rate
 *
 * The caps of a pad that sends results as tensors.
 *
 * Returns: (transfer full): `other/tensors` for the data of @result, with the
 *   frame rate @fps_n / @fps_d
 */
GST_IMAGING_API
GstCaps *gst_imaging_results_tensor_caps (const GstImagingResult *result,
    gboolean with_flags, gint fps_n, gint fps_d);

/**
 * GST_IMAGING_RESULTS_CAPS:
 *
 * The caps of every `results` pad; text comes first because a peer that takes
 * anything is a file.
 */
#define GST_IMAGING_RESULTS_CAPS \
  "text/csv; " \
  "other/tensors, format = (string) static, num_tensors = (int) 1, " \
  "types = (string) float32"

/* The same where results have flags. */
#define GST_IMAGING_RESULTS_CAPS_WITH_FLAGS \
  GST_IMAGING_RESULTS_CAPS \
  "; other/tensors, format = (string) static, num_tensors = (int) 2, " \
  "types = (string) \"float32,uint8\""

G_END_DECLS
