/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#include "gstimagingengine.h"
#include "insar/gstinsarprm.h"

#include "imk/image.h"

G_BEGIN_DECLS

/**
 * GST_INSAR_SLC_CAPS: (skip)
 * @formats: "{ ci16, cf32 }", a list of formats in caps
 *
 * The lines of an SLC image, for pad templates; a buffer holds whole ones, and
 * its offset is the number of the first.
 */
#define GST_INSAR_SLC_CAPS(formats) \
  "application/x-slc, format = (string) " formats ", width = (int) [ 1, " \
  "16777216 ], height = (int) [ 1, 1073741824 ]"

/**
 * GstInsarSlcInfo: (skip)
 * @type: ci16, cf32 or f32
 * @width: columns
 * @height: lines
 * @line_size: bytes of a line
 * @prf: pulse repetition frequency in Hz, 0 when it is not known
 * @doppler: centre of the spectrum in azimuth, cycles a line
 * @has_doppler: whether the caps say so
 * @rshift: columns that the image is behind its reference
 * @ashift: lines
 *
 * What the caps of an SLC image say.
 */
typedef struct {
  ImkType type;
  guint width, height;
  gsize line_size;
  gdouble prf, doppler;
  gboolean has_doppler;
  gint rshift, ashift;
  GstInsarSpacing spacing;
} GstInsarSlcInfo;

/**
 * gst_insar_slc_info_from_caps: (skip)
 * @info: (out): what they say
 * @caps: fixed, of a pad with GST_INSAR_SLC_CAPS()
 */
void gst_insar_slc_info_from_caps (GstInsarSlcInfo *info, const GstCaps *caps);

/**
 * gst_insar_slc_info_to_caps: (skip)
 * Returns: (transfer full): caps that say all of @info
 */
GstCaps *gst_insar_slc_info_to_caps (const GstInsarSlcInfo *info);

/**
 * gst_insar_slc_check_lines: (skip)
 * @element: posts what is wrong
 * @pad: on which they arrived
 * @info: (nullable): of the image, %NULL before caps
 * @size: bytes of the buffer
 * @offset: of the buffer, or GST_BUFFER_OFFSET_NONE
 * @n_before: lines before it
 *
 * Returns: whether these are the next lines of the image, whole ones and no
 *   more than it has; an error has been posted if not
 */
gboolean gst_insar_slc_check_lines (GstElement *element, GstPad *pad,
    const GstInsarSlcInfo *info, gsize size, guint64 offset, guint n_before);

/**
 * gst_insar_slc_map_lines: (skip)
 * @engine: of @element, which notes the memory
 * @element: posts what is wrong
 * @pad: on which they arrived
 * @buffer: lines
 * @map: (out): to be given to gst_buffer_unmap()
 *
 * Returns: whether the CPU can read them; an error has been posted if not
 */
gboolean gst_insar_slc_map_lines (GstImagingEngine *engine, GstElement *element,
    GstPad *pad, GstBuffer *buffer, GstMapInfo *map);

/**
 * gst_insar_slc_lines: (skip)
 * Returns: the lines in @data, @size bytes of an image that is @info
 */
ImkImage gst_insar_slc_lines (
    const GstInsarSlcInfo *info, gpointer data, gsize size);

/**
 * gst_insar_slc_is_rewind: (skip)
 * @seek: a GST_EVENT_SEEK
 *
 * Returns: whether it flushes, begins with the first line of an image and ends
 *   with the last. Elements that need whole images accept no other
 */
gboolean gst_insar_slc_is_rewind (GstEvent *seek);

/**
 * gst_insar_slc_post_end: (skip)
 * @element: posts that an image ended too early
 * @name: of the image
 * @info: (nullable): of it, %NULL before caps
 * @n_lines: that arrived
 */
void gst_insar_slc_post_end (GstElement *element, const gchar *name,
    const GstInsarSlcInfo *info, guint n_lines);

G_END_DECLS
