/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A stream of ImageStreamIO that is open: one reader or one writer.
 *
 * Another program can cut the file at any time, and who then touches a mapping
 * of it dies by SIGBUS. So no code of ours touches the mapping. Frames and
 * counts are read and written with pread() and pwrite(), which are coherent
 * with the mappings of others, and the words that must change atomically are
 * changed by the kernel (futex operations). A cut file is then a failed call.
 */
#pragma once

#include "gstshmimlayout.h"

G_BEGIN_DECLS

/* What both elements have; the source adds the framerate of tensors. */
#define GST_SHMIM_CAPS \
  GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }") \
  "; other/tensors, format = (string) static, num_tensors = (int) 1, " \
  "types = (string) { uint8, int8, uint16, int16, uint32, int32, " \
  "uint64, int64, float16, float32, float64 }"

typedef struct {
  gchar *name, *path; /* of the stream, of its file */
  gint fd;
  GstShmimHeader header; /* as it was when the file was opened */
  GstShmimLayout layout;
  guint8 *map; /* of the whole file; for the kernel alone */
  gint slot;   /* number of the semaphore of this reader; -1: none */
} GstShmim;

/* @folder: (nullable): NULL or "": as the library chooses it
 * Returns: (transfer full): FOLDER/NAME.im.shm; NULL with @error where @name
 * cannot be the name of a stream */
gchar *gst_shmim_path (const gchar *name, const gchar *folder, GError **error);

/* Opens the file @path of the stream @name. */
GstShmim *gst_shmim_open (const gchar *name, const gchar *path, GError **error);

/* Gives the semaphore back, too. @self: (nullable) */
void gst_shmim_close (GstShmim *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstShmim, gst_shmim_close)

typedef enum {
  GST_SHMIM_STATE_CURRENT,
  GST_SHMIM_STATE_REPLACED, /* the name has another file */
  GST_SHMIM_STATE_REMOVED,  /* the name has no file */
  GST_SHMIM_STATE_CUT,      /* the file has another size */
} GstShmimState;

GstShmimState gst_shmim_state (const GstShmim *self);

/* What the header says now. Returns: FALSE with @error when the file was cut */
gboolean gst_shmim_read_header (
    const GstShmim *self, GstShmimHeader *header, GError **error);

/* Reads @size bytes of the file. */
gboolean gst_shmim_read (const GstShmim *self, guint64 place, gpointer data,
    gsize size, GError **error);
gboolean gst_shmim_write (const GstShmim *self, guint64 place,
    gconstpointer data, gsize size, GError **error);

/* A file that was cut. */
void gst_shmim_set_cut_error (const GstShmim *self, GError **error);

/* Returns: how far TAI, which streams have, is ahead of the Unix epoch. 0 on a
 * machine that no time server has told. */
GstClockTimeDiff gst_shmim_tai_offset (void);

/* --- making and writing (gstshmimcreate.c) ---------------------------------
 */

/* Makes the stream anew. Whoever reads one of this name keeps the file that it
 * has. @size: the fastest axis first */
GstShmim *gst_shmim_create (const gchar *name, const gchar *path,
    GstShmimType type, guint n_axes, const guint32 size[3], guint n_semaphores,
    GError **error);

/* Writes a frame and tells the readers. @acquired: (nullable): NULL for
 * the present time */
gboolean gst_shmim_publish (GstShmim *self, gconstpointer frame,
    const GstShmimTime *acquired, GError **error);

/* --- waiting (gstshmimwait.c) ----------------------------------------------
 */

typedef enum {
  GST_SHMIM_WAIT_POSTED,
  GST_SHMIM_WAIT_TIMEOUT,
  GST_SHMIM_WAIT_CUT,
} GstShmimWait;

/* Takes a semaphore that nobody reads. */
gboolean gst_shmim_claim (GstShmim *self, GError **error);

/* Until somebody posts the semaphore, at most @timeout. All posts so far are
 * taken at once: the count in the header says how many frames there were.
 * @spin: how long it looks again and again before it sleeps */
GstShmimWait gst_shmim_wait (
    GstShmim *self, GstClockTime spin, GstClockTime timeout);

/* Ends a wait of another thread, or the next one. */
void gst_shmim_wake (GstShmim *self);

/* Posts the semaphore at @place as sem_post () does. */
void gst_shmim_post (GstShmim *self, guint64 place);

/* Adds 1 to the count of frames. */
void gst_shmim_count (GstShmim *self);

/* For a reader. Returns: the process that wrote last, else that which made the
 * stream, 0 when nobody knows */
gint gst_shmim_writer (const GstShmim *self);

/* Has this process ended? FALSE also for one in another PID namespace, whose
 * number may be that of another process here. */
gboolean gst_shmim_has_ended (gint process);

G_END_DECLS
