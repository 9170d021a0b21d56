/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstpushsrc.h>

#include "gstimagingsettings.h"

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

#define GST_TYPE_IMAGING_FILE_SRC (gst_imaging_file_src_get_type ())
GST_IMAGING_API
G_DECLARE_DERIVABLE_TYPE (
    GstImagingFileSrc, gst_imaging_file_src, GST, IMAGING_FILE_SRC, GstPushSrc)

/**
 * GstImagingFileSrcInfo: (skip)
 * @caps: (transfer full): of what is read, one or more ways to describe it, the
 *   best first; each is fixed
 * @unit_name: what a unit is, in the plural: "frames", "lines"; static
 * @n_units: how many there are, at least 1
 * @unit_size: bytes of one, unless set_caps() changes it
 * @n_per_buffer: how many a buffer holds; the last one may hold fewer
 * @rate_n: units a second, with @rate_d; 0 when units have no time. Units with
 *   a time are one a buffer, and can be played backwards
 * @rate_d: denominator of the rate
 * @loop: begins again after the last unit, without end; numbers and times go on
 *
 * What a file holds: units of one size, frames or lines, that can be read in
 * any order.
 */
typedef struct {
  GstCaps *caps;
  const gchar *unit_name;
  guint64 n_units;
  gsize unit_size;
  guint n_per_buffer;
  gint rate_n, rate_d;
  gboolean loop;
} GstImagingFileSrcInfo;

/* How the settings of a subclass begin. */
typedef struct {
  GstImagingFile *location;
} GstImagingFileSrcSettings;

/**
 * GstImagingFileSrcClass: (skip)
 * @open: Required. Opens @location (which may be %NULL) and says what
 *   is there; or posts an error and leaves the rest to @close
 * @set_caps: Optional. One of several caps was negotiated
 *   Returns: bytes of a unit
 * @read: Required. Writes units @first to @first + @n - 1 into @buffer. What
 *   fails is posted with the text of @error, as an error of writing when it is
 *   GST_RESOURCE_ERROR_WRITE (the memory), else of reading
 * @number: Optional. What a unit is counted as: greater than itself where some
 *   before it are missing in the file. Seeks count those that are there
 * @close: Required. Frees what @open made, all of it or a part
 *
 * The base of sources that read whole units from a file, as picturesrc and
 * slcsrc: it owns negotiation, the pool, segments, seeking by units (format
 * DEFAULT) and by time, queries and progress. Buffers come from downstream's
 * pool where it is large enough, or from one of our own over the allocator that
 * downstream offers.
 *
 * Every tenth of the file it posts an element message "FACTORY-progress" (the
 * name of the type where there is no factory) with the units that were read,
 * named as the units are, and `of` how many.
 *
 * A subclass has settings (gst_imaging_settings_new()) whose structure begins
 * with a #GstImagingFileSrcSettings. All of them count from the next start on.
 * It sets the format of its segments, TIME or DEFAULT, in its init ().
 * @open, @read and @close are called by one thread at a time.
 */
struct _GstImagingFileSrcClass {
  GstPushSrcClass parent_class;

  gboolean (*open) (GstImagingFileSrc *self, const gchar *location,
      GstImagingFileSrcInfo *info);
  gsize (*set_caps) (GstImagingFileSrc *self, const GstCaps *caps);
  gboolean (*read) (GstImagingFileSrc *self, guint64 first, guint n,
      GstBuffer *buffer, GError **error);
  void (*close) (GstImagingFileSrc *self);
  guint64 (*number) (GstImagingFileSrc *self, guint64 unit);

  /*< private >*/
  gpointer padding[7];
};

G_END_DECLS
