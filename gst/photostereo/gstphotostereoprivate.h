/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element, for its own files. */
#pragma once

#include "gstimagingnumbering.h"
#include "gstimagingsrcpads.h"
#include "gstimagingelement.h"
#include "gstphotostereosettings.h"

#define GST_TYPE_PHOTO_STEREO (gst_photo_stereo_get_type ())
G_DECLARE_FINAL_TYPE (
    GstPhotoStereo, gst_photo_stereo, GST, PHOTO_STEREO, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (photostereo);

/* In the order of the pads. */
enum { NORMAL, ALBEDO, AMBIENT, QUALITY, CONFIDENCE, MASK, N_OUTPUTS };

/* Which light a picture was taken under, and in which band. */
typedef struct {
  guint32 light, band;
} GstPhotoStereoIndex;

/* A picture that is read when the set is solved. */
typedef struct {
  GstBuffer *buffer;
  GstImagingFrame frame;
} Held;

/* So many pictures are on their way to devices before the first is waited for.
 */
enum { N_GATES = 8 };

struct _GstPhotoStereo {
  GstImagingElement base;

  GstPad *sink;
  gboolean finish; /* under the object lock: finish-set was emitted and the set
                      has not ended yet */

  /* under the stream lock of the sink pad */
  GstCaps *caps;
  ImkPhotostereoPattern caps_pattern; /* of video/x-bayer */
  ImkPhotostereo *kernel;
  gboolean tracks; /* the kernel keeps normals to measure their change */
  guint n_lights, n_colours;
  guint bands, set_size; /* pictures a light, lights a set */
  GstPhotoStereoBandOrder band_order;
  guint n_looked;              /* lights of the last result of the set */
  guint full_scale;            /* of bit-depth; 0: that of the format */
  gboolean warned_of_depth;    /* since the kernel was opened */
  gboolean warned_of_clipping; /* in this set */
  gboolean is_changed;         /* the geometry, since the start */
  gboolean warned_of_place;    /* since the last picture that had a place */
  GArray *held; /* of Held: where a set does not fit the device */
  guint n_skip; /* pictures left of a set that ended early */

  /* of pictures in order */
  GstImagingNumbering numbering;
  guint64 n_steps, n_gaps; /* pictures since the start without a gap before */
  guint n_missing;         /* of the set, up to the next picture */
  gboolean warned_of_gap;  /* since the start */
  guint64 number, next_number; /* of @last, and of the picture that comes */
  guint64 n_lost;              /* pictures, since the last result */

  /* of window=sliding */
  GArray *window;    /* of GstBuffer: the last picture of each light and band */
  guint n_in_window; /* of them that there are */
  guint newest;      /* of them, which the kernel has */
  guint place;       /* in the turn of lights, by order, of the next picture */
  guint n_since_result; /* pictures */
  gboolean was_full;    /* there was a result */

  GstBuffer *last; /* (nullable): times and metadata of the last picture */

  /* of several devices */
  GArray *others; /* of gint: those beside the engine's, since the start */
  /* Streams that pictures come on in turn, as a stream goes on when all devices
   * have read its picture. */
  guint n_gates, next_gate;
  gpointer gates[N_GATES];
};

/* Under the stream lock: the settings in use, until the next picture. */
static inline const GstPhotoStereoSettings *
gst_photo_stereo_now (GstPhotoStereo *self)
{
  return gst_imaging_settings_now (self->base.settings);
}

static inline gboolean
gst_photo_stereo_is_sliding (GstPhotoStereo *self)
{
  return gst_photo_stereo_now (self)->window == GST_PHOTO_STEREO_WINDOW_SLIDING;
}

/* Each part below uses those above it.
 * --- gstphotostereoindex.c, under the stream lock */

/* The light and the band of @buffer, the next picture. */
ImkStatus gst_photo_stereo_get_index (GstPhotoStereo *self, GstBuffer *buffer,
    GstPhotoStereoIndex *index, ImkError *error);
/* Returns: places of the set from that of the next picture on, by order */
guint gst_photo_stereo_n_left (GstPhotoStereo *self);

/* --- gstphotostereopicture.c, under the stream lock */

/* The streams of pictures, with several devices. */
ImkStatus gst_photo_stereo_open_gates (GstPhotoStereo *self, ImkError *error);
void gst_photo_stereo_close_gates (GstPhotoStereo *self);
/* Gives the kernel the picture of a light that is known. */
ImkStatus gst_photo_stereo_add_at (GstPhotoStereo *self, GstBuffer *buffer,
    GstPhotoStereoIndex index, ImkError *error);
/* Pictures that were kept for strips. */
void gst_photo_stereo_release_pictures (GstPhotoStereo *self);

/* --- gstphotostereopublish.c, under the stream lock */

/* Negotiates all outputs before the first result. The kernel must be open. */
void gst_photo_stereo_negotiate (GstPhotoStereo *self);
/* What is there so far, to all pads and the bus.
 * @judge: warn of what makes the result doubtful
 * @change: (out): of the normals in degrees, NaN when not known */
GstFlowReturn gst_photo_stereo_publish (
    GstPhotoStereo *self, gboolean final, gboolean judge, gdouble *change);

/* --- gstphotostereowindow.c, under the stream lock */

GArray *gst_photo_stereo_window_new (void);
/* The next picture begins another window. */
void gst_photo_stereo_window_clear (GstPhotoStereo *self);
/* @buffer, which was added, stays until the next picture of its light. */
void gst_photo_stereo_window_take (
    GstPhotoStereo *self, GstBuffer *buffer, GstPhotoStereoIndex index);
/* The places of @n pictures that are missing. */
void gst_photo_stereo_window_skip (GstPhotoStereo *self, guint64 n);
/* After a picture: a result, if all lights have had one. */
GstFlowReturn gst_photo_stereo_window_check (GstPhotoStereo *self);
/* A result of the pictures that there are. */
GstFlowReturn gst_photo_stereo_window_publish (
    GstPhotoStereo *self, gboolean final);

/* --- gstphotostereokernel.c */

/* Of GstImagingEngineFuncs. */
ImkStatus gst_photo_stereo_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error);
void gst_photo_stereo_close (GstElement *element);
gboolean gst_photo_stereo_prefers_cuda (
    GstElement *element, const GstVideoInfo *info);

/* What was set: changes of the solver at once, all others with a new set.
 * @buffer: (nullable): the picture that comes */
ImkStatus gst_photo_stereo_follow_settings (
    GstPhotoStereo *self, GstBuffer *buffer, ImkError *error);

/* --- gstphotostereoset.c, under the stream lock */

ImkStatus gst_photo_stereo_add_picture (
    GstPhotoStereo *self, GstBuffer *buffer, ImkError *error);
/* Returns: whether a picture that could not be added is left out with a
 * warning: a value that was set while playing must not end the stream */
gboolean gst_photo_stereo_leave_out (
    GstPhotoStereo *self, ImkStatus status, const ImkError *error);
/* To be called before a picture: skips the places of lost pictures. The set may
 * end with them. */
GstFlowReturn gst_photo_stereo_follow_gap (
    GstPhotoStereo *self, GstBuffer *buffer);
/* After a picture: the set is complete, or it is time for a look. */
GstFlowReturn gst_photo_stereo_check_set (GstPhotoStereo *self);
/* Solves and pushes the pictures so far. */
GstFlowReturn gst_photo_stereo_end_set (GstPhotoStereo *self);
/* Likewise, for a set that may be incomplete. */
GstFlowReturn gst_photo_stereo_cut_set (GstPhotoStereo *self);
void gst_photo_stereo_forget_set (GstPhotoStereo *self);
