/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of files with a number in them. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Where "%05d" is in a name. Other percent signs are letters. */
typedef struct {
  gsize at, size; /* in bytes; a size of 0: nowhere */
  guint width;    /* the fewest digits */
  gboolean zeros; /* before them, else spaces */
} GstPictureSinkNumber;

/* Returns: FALSE with @error set where there are two */
gboolean gst_picture_sink_number_find (
    GstPictureSinkNumber *self, const gchar *location, GError **error);

/* @location, @name: without a folder. Returns: whether @name is a numbered
 * file;
 * @n is its number */
gboolean gst_picture_sink_number_get (const GstPictureSinkNumber *self,
    const gchar *location, const gchar *name, guint64 *n);

/* Returns: (transfer full): the name of file @n */
gchar *gst_picture_sink_number_put (
    const GstPictureSinkNumber *self, const gchar *location, guint64 n);

G_END_DECLS
