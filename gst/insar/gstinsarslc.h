/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lines of an SLC image, application/x-slc: a buffer holds whole ones, and
 * its offset is the number of the first. */
#pragma once

#include <gst/gst.h>

#include "gstimagingengine.h"
#include "insar/gstinsarprm.h"

#include "imk/image.h"

/* Caps for pad templates. @formats: "{ ci16, cf32 }", a list of formats */
#define GST_INSAR_SLC_CAPS(formats) \
  "application/x-slc, format = (string) " formats ", width = (int) [ 1, " \
  "16777216 ], height = (int) [ 1, 1073741824 ]"

/**
 * GstInsarSlcInfo: what the caps of an SLC image say
 * @type: ci16, cf32 or f32
 * @width, @height: columns, lines
 * @line_size: bytes of a line
 * @prf: pulse repetition frequency in Hz, 0 when it is not known
 * @doppler: centre of the spectrum in azimuth, cycles a line
 * @has_doppler: whether the caps say so
 * @rshift, @ashift: columns and lines that the image is behind its reference */
typedef struct {
  ImkType type;
  guint width, height;
  gsize line_size;
  gdouble prf, doppler;
  gboolean has_doppler;
  gint rshift, ashift;
  GstInsarSpacing spacing;
} GstInsarSlcInfo;

/* @info: (out): what @caps say, which are fixed */
void gst_insar_slc_info_from_caps (GstInsarSlcInfo *info, const GstCaps *caps);

/* Returns: (transfer full): caps that say all of @info */
GstCaps *gst_insar_slc_info_to_caps (const GstInsarSlcInfo *info);

/**
 * gst_insar_slc_check_lines:
 * @pad: on which they arrived; its element posts what is wrong
 * @info: (nullable): of the image, %NULL before caps
 * @size: bytes of the buffer
 * @offset: of the buffer, or GST_BUFFER_OFFSET_NONE
 * @n_before: lines before it
 *
 * Returns: whether these are the next lines of the image, whole ones and no
 *   more than it has; an error has been posted if not */
gboolean gst_insar_slc_check_lines (GstPad *pad, const GstInsarSlcInfo *info,
    gsize size, guint64 offset, guint n_before);

/**
 * gst_insar_slc_map_lines:
 * @engine: of the element of @pad, which notes the memory
 * @buffer: lines that arrived on @pad
 * @map: (out): to be given to gst_buffer_unmap()
 *
 * Returns: whether the CPU can read them; an error has been posted if not */
gboolean gst_insar_slc_map_lines (
    GstImagingEngine *engine, GstPad *pad, GstBuffer *buffer, GstMapInfo *map);

/* Returns: the lines in @data, @size bytes of an image that is @info */
ImkImage gst_insar_slc_lines (
    const GstInsarSlcInfo *info, gpointer data, gsize size);

/* @seek: a GST_EVENT_SEEK
 * Returns: whether it flushes, begins with the first line of an image and ends
 *   with the last. Elements that need whole images accept no other */
gboolean gst_insar_slc_is_rewind (GstEvent *seek);

/* Posts that the image @name ended too early, after @n_lines. @info:
 * (nullable): of it, %NULL before caps */
void gst_insar_slc_post_end (GstElement *element, const gchar *name,
    const GstInsarSlcInfo *info, guint n_lines);
