/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

#include "gstimaging-prelude.h"

/**
 * GST_IMAGING_FILE_ERROR: (skip)
 *
 * Domain of the errors of the functions below; the codes are
 * #GstImagingFileError. Every message is a sentence for the user that names the
 * file and ends with a full stop.
 */
#define GST_IMAGING_FILE_ERROR (gst_imaging_file_error_quark ())
GST_IMAGING_API
GQuark gst_imaging_file_error_quark (void);

/**
 * GstImagingFileError: (skip)
 * @GST_IMAGING_FILE_ERROR_NOT_FOUND: there is no such file
 * @GST_IMAGING_FILE_ERROR_OPEN: no regular file, or no permission
 * @GST_IMAGING_FILE_ERROR_SIZE: larger than a file of this kind can be
 * @GST_IMAGING_FILE_ERROR_READ: the file system failed while reading
 * @GST_IMAGING_FILE_ERROR_WRITE: the file system failed while writing
 */
typedef enum {
  GST_IMAGING_FILE_ERROR_NOT_FOUND,
  GST_IMAGING_FILE_ERROR_OPEN,
  GST_IMAGING_FILE_ERROR_SIZE,
  GST_IMAGING_FILE_ERROR_READ,
  GST_IMAGING_FILE_ERROR_WRITE,
} GstImagingFileError;

/* Bytes that a file of each kind has at most. A larger file was named by
 * mistake, and may be larger than memory. */
#define GST_IMAGING_FILE_MAX_SETTINGS (1 << 20)  /* PRM, fit, calibration */
#define GST_IMAGING_FILE_MAX_NUMBERS (16 << 20)  /* text: chirp, lights */
#define GST_IMAGING_FILE_MAX_SIDECAR (256 << 20) /* a line for each frame */
#define GST_IMAGING_FILE_MAX_ARRAY (G_GUINT64_CONSTANT (8) << 30)
#define GST_IMAGING_FILE_MAX_STREAM G_MAXINT64 /* read piece by piece */

/**
 * gst_imaging_file_open: (skip)
 * @location: path of a file
 * @max_size: the most bytes that it may have
 * @size: (out) (optional): how many it has
 * @error: the reason of a failure
 *
 * Opens a file for reading. Never waits: folders, pipes, sockets and devices,
 * and links to them, are refused before they are opened.
 *
 * Returns: a descriptor, to be closed by the caller; -1 with @error set
 */
GST_IMAGING_API
gint gst_imaging_file_open (
    const gchar *location, guint64 max_size, guint64 *size, GError **error);

/**
 * gst_imaging_file_load: (skip)
 * @location: path of a file
 * @max_size: the most bytes that it may have, a GST_IMAGING_FILE_MAX_*
 * @size: (out): how many it has
 * @error: the reason of a failure
 *
 * gst_imaging_file_open() and reading to the end, which is no further than
 * @max_size also where the file grows meanwhile.
 *
 * Returns: (transfer full): the bytes and a 0 behind them; %NULL with @error
 *   set
 */
GST_IMAGING_API
gchar *gst_imaging_file_load (
    const gchar *location, gsize max_size, gsize *size, GError **error);

/**
 * GstImagingSaver: (skip)
 *
 * A file that is being written. Until gst_imaging_saver_finish() it has another
 * name in the same folder, and what @location names is as it was.
 */
typedef struct _GstImagingSaver GstImagingSaver;

/**
 * gst_imaging_saver_new: (skip)
 * @location: path of the file to write
 * @error: the reason of a failure
 *
 * Folders, pipes, sockets and devices, and links to them, are refused. Of a
 * link to a file, or to a name that is still free, the target is written. The
 * new file gets the mode of the one that it replaces, and its owner where that
 * is allowed. The first saver in a folder removes the files that killed
 * processes of this user left there half written.
 *
 * Returns: (transfer full): to be given to gst_imaging_saver_free(); %NULL with
 *   @error set
 */
GST_IMAGING_API
GstImagingSaver *gst_imaging_saver_new (const gchar *location, GError **error);

/**
 * gst_imaging_saver_continue: (skip)
 * @location: path of a file that exists
 * @size: (out): its bytes
 *
 * A saver that changes the file itself: nothing is taken back.
 *
 * Returns: as gst_imaging_saver_new()
 */
GST_IMAGING_API
GstImagingSaver *gst_imaging_saver_continue (
    const gchar *location, guint64 *size, GError **error);

/**
 * gst_imaging_saver_lock: (skip)
 * @error: the reason of a failure
 *
 * For a file that is written for long: nobody else who calls this writes it
 * until the saver is finished or freed.
 *
 * Returns: %FALSE with @error set if somebody does
 */
GST_IMAGING_API
gboolean gst_imaging_saver_lock (GstImagingSaver *self, GError **error);

/**
 * gst_imaging_saver_give_name: (skip)
 *
 * Waits for the disk and gives the file its name, from now on and for what is
 * still written: it is valid already. Once.
 */
GST_IMAGING_API
gboolean gst_imaging_saver_give_name (GstImagingSaver *self, GError **error);

/**
 * gst_imaging_saver_write: (skip)
 *
 * Appends @size bytes.
 */
GST_IMAGING_API
gboolean gst_imaging_saver_write (
    GstImagingSaver *self, gconstpointer data, gsize size, GError **error);

/**
 * gst_imaging_saver_get_fd: (skip)
 *
 * Returns: the file, for reading and writing, until
 *   gst_imaging_saver_finish(), which closes it
 */
GST_IMAGING_API
gint gst_imaging_saver_get_fd (const GstImagingSaver *self);

/**
 * gst_imaging_saver_get_path: (skip)
 *
 * Returns: (transfer none): the name of the file until
 *   gst_imaging_saver_finish(), for libraries that take no descriptor
 */
GST_IMAGING_API
const gchar *gst_imaging_saver_get_path (const GstImagingSaver *self);

/**
 * gst_imaging_saver_finish: (skip)
 *
 * Waits for the disk, then gives the file its name if it has none: a reader
 * sees the old file or the whole new one.
 */
GST_IMAGING_API
gboolean gst_imaging_saver_finish (GstImagingSaver *self, GError **error);

/**
 * gst_imaging_saver_free: (skip)
 * @self: (nullable): without gst_imaging_saver_finish() before, nothing of it
 *   stays
 */
GST_IMAGING_API
void gst_imaging_saver_free (GstImagingSaver *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstImagingSaver, gst_imaging_saver_free)

/**
 * gst_imaging_file_save: (skip)
 *
 * #GstImagingSaver for @size bytes that are in memory.
 */
GST_IMAGING_API
gboolean gst_imaging_file_save (
    const gchar *location, gconstpointer data, gsize size, GError **error);

/**
 * gst_imaging_file_check_beside: (skip)
 * @location: path of a file that stands beside the one that the user has named
 * @mark: what such a file of ours has in its first 64 KiB
 * @error: a sentence: the file stays; it is for the caller to say what follows
 *
 * Returns: whether @location is free, or a file of ours that may be replaced
 */
GST_IMAGING_API
gboolean gst_imaging_file_check_beside (
    const gchar *location, const gchar *mark, GError **error);

/**
 * gst_imaging_file_name: (skip)
 * @location: path of a file
 *
 * Returns: (transfer full): @location for a message: UTF-8 without control
 *   characters; its last 80 characters, for names may come from files
 */
GST_IMAGING_API
gchar *gst_imaging_file_name (const gchar *location);

/**
 * gst_imaging_file_escape: (skip)
 * @text: what another library says of a file, in any encoding
 *
 * Returns: (transfer full): @text for a message: UTF-8 without control
 *   characters
 */
GST_IMAGING_API
gchar *gst_imaging_file_escape (const gchar *text);

/**
 * gst_imaging_file_quote: (skip)
 * @text: what a file holds, in any encoding
 * @size: bytes; -1 when a 0 ends it
 *
 * Returns: (transfer full): @text for a message: UTF-8 without control
 *   characters, at most 80 characters; longer text ends with three points
 */
GST_IMAGING_API
gchar *gst_imaging_file_quote (const gchar *text, gssize size);
