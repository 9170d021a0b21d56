/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. */
#pragma once

#include <gst/base/gstflowcombiner.h>

#include "gstimagingnumbering.h"
#include "gstoctbscan.h"
#include "gstoctbscanenface.h"
#include "gstoctbscangroup.h"
#include "gstoctbscanoutput.h"
#include "gstoctbscansettings.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_oct_bscan_debug);
#define GST_CAT_DEFAULT gst_oct_bscan_debug

/* Bytes of the blocks of page-locked memory: with copies of this size the bus
 * is as fast as it gets. */
#define GST_OCT_BSCAN_SLAB_SIZE ((gsize) 8 << 20)

/* Outputs, in this order: what is pushed last prerolls last. */
enum { LINEAR, COMPLEX, ENFACE, SRC, N_OUTPUTS };

typedef struct _GstOctBscanQueue GstOctBscanQueue;

/* What B-scans have in common until something changes. Nobody writes to it. */
typedef struct {
  gint ref_count; /* atomic */
  guint changes;  /* of the settings in force */
  ImkOctbscanConfig config;
  Scaling scaling;
  gboolean auto_range; /* @config has its ends, or looks for them */
  guint auto_serial;
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS]; /* of @config, if it has one */
  guint average_bscans;
  GstPad *pads[N_OUTPUTS];
  GstVideoInfo info[N_OUTPUTS]; /* of an image */
  GstVideoInfo volume;          /* of the image of ENFACE */
} GstOctBscanTerms;

struct _GstOctBscan {
  GstElement parent;
  GstPad *sink;
  GstImagingEngine *engine;

  GstImagingSettings *settings;
  GstClockTime latency; /* under the object lock; of gathering lines */
  GstClockTime period;  /* likewise; from B-scan to B-scan */
  GstClockTime wait;    /* likewise; of a mean for the last of its B-scans */

  /* of the streaming thread */
  Settings *now;   /* in force, from buffer to buffer; with the frames locked */
  guint n_changes; /* of these */
  gboolean is_live; /* dispersion-2 or -3 is set; with the frames locked */
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS]; /* likewise */
  /* range=auto, under the object lock: the mean of so many B-scans' ends, as in
   * ImkOctbscanJob; the serial counts changes */
  guint auto_n, auto_serial;
  gfloat auto_ends[4];
  guint auto_noise;     /* B-scans of noise alone, up to now */
  gboolean holds_noise; /* atomic: the ends that are held are of such */
  guint n_with_noise;   /* B-scans with these ends */
  gboolean must_configure;
  ImkOctbscan *next_kernel; /* (nullable): made for settings that come next */
  ImkBackend next_backend;
  ImkOctbscanConfig next_opened; /* of it, without its pointers */
  guint next_left_over;
  GstOctBscanOutput outputs[N_OUTPUTS]; /* with the frames locked, pad and
                                           is_leaving under the object lock */
  GstFlowCombiner *flows;
  gint flows_differ; /* atomic; some pad has said other than OK */
  GstOctBscanGroup *group;
  GstSegment segment;
  GstVideoInfo lines, bscan; /* what comes, and what is a B-scan of it */
  guint n_skipped;           /* lines of a B-scan that are left out */
  ImkType type;              /* of a sample */
  guint bytes_a_pixel; /* of those infos: tensors are mapped as their bytes */
  gboolean has_caps;
  ImkOctbscan *kernel;
  gint width, height;        /* of the images */
  guint next_camera;         /* of the first line of the next B-scan */
  guint n_bscans;            /* since the turns began */
  guint n_added;             /* of them to the mean that is not shown yet */
  guint history;             /* counts interruptions */
  GstOctBscanEnface *enface; /* of the thread that pushes */
  GstPad *enface_pad;        /* likewise; whose rows it has */
  GstClockTime mean_pts, mean_dts; /* of the first that was added */
  GstClockTime mean_duration;
  gboolean mean_is_discont; /* one that was added does not continue the last */
  GstBuffer *mean_last; /* (nullable): what upstream says of the last added */
  guint n_cameras;
  GstOctBscanTerms *terms;  /* (nullable): of the last B-scan */
  gint wants_dispersion;    /* atomic */
  guint max_jobs;           /* B-scans that the kernel takes at once */
  guint n_full;             /* B-scans of which one copy is large enough */
  ImkOctbscanConfig opened; /* without its pointers */
  guint n_left_over;        /* cameras of the calibration that have no turn */
  gboolean warned_of_cameras, warned_of_mean;
  gint warned_of_bad;    /* atomic */
  gint warned_of_mirror; /* atomic */
  gint64 next_fringe;    /* of the streaming thread; when to look for one */
  GstImagingNumbering numbering; /* of the buffers; of the streaming thread */
  gboolean warned_of_gap;        /* likewise */

  /* Who uses the engine, the outputs or the kernel of the CPU holds this: the
   * streaming thread, and whoever finds that the last device is lost. */
  GMutex frames;
  GstOctBscanQueue *queue; /* goes with the frames and the object locked */
  gboolean host_images;    /* somebody downstream reads images on the CPU */
  gboolean has_shown;      /* the first images are out, for all to read */
};

/* A B-scan on its way; or several that came in one buffer and leave in one
 * list. */
typedef struct {
  GList link;        /* in what waits */
  guint n;           /* B-scans, one behind the other in @in and @out */
  GstBuffer *in;     /* NULL: images of what has been added to the mean */
  GstBuffer *like;   /* (nullable): has their offset and metadata */
  GstBuffer *source; /* @in or, for a device, a copy of it */
  GstBuffer *out[N_OUTPUTS]; /* an image for each pad that wants one */
  GstOctBscanTerms *terms;
  GstClockTime pts, dts, duration; /* of the images */
  gboolean is_discont;             /* they do not continue those before */
  gboolean has_images; /* or it is added to a mean, and the next one has */
  gboolean backward;
  gboolean to_host; /* images are in page-locked memory, to be copied to */
  gboolean may_go_anywhere; /* not what is on a device: that is the first's */
  gboolean lost;
  gfloat *ends;   /* (nullable): [n][4], where they are found in the B-scans */
  gdouble fringe; /* of the mean, dB; 0 where nobody has looked */
  guint n_bad;    /* A-scans that are black: a sample is not a number */
  guint first_camera;
  GstClockTime entered;
} GstOctBscanWork;

/* @lines: tensors as GRAY8 of their bytes; @bytes_a_pixel: then the bytes of a
 * sample, else 1. Returns: FALSE for what are no lines of spectra */
gboolean gst_oct_bscan_parse_caps (const GstCaps *caps, GstVideoInfo *lines,
    ImkType *type, guint *bytes_a_pixel);

/* The plane of a B-scan as kernels take it, without lines that are skipped. */
void gst_oct_bscan_input_image (const GstOctBscan *self, ImkImage *plane);

/* Returns: the camera of the first line of the next B-scan that is not skipped
 */
guint gst_oct_bscan_first_camera (const GstOctBscan *self);

GstPad *gst_oct_bscan_request_new_pad (GstElement *element,
    GstPadTemplate *template, const gchar *name, const GstCaps *caps);
void gst_oct_bscan_release_pad (GstElement *element, GstPad *pad);

/* For the lines that come and the settings in force. Call with the frames
 * locked. */
void gst_oct_bscan_update_latency (GstOctBscan *self);
gboolean gst_oct_bscan_src_query (
    GstPad *pad, GstObject *parent, GstQuery *query);

/* Returns: (transfer full) (nullable): the pad of an output */
GstPad *gst_oct_bscan_ref_pad (GstOctBscan *self, guint output);

/* Agrees with downstream of one pad. Call with the frames locked, which are let
 * go of meanwhile.
 * Returns: GST_FLOW_NOT_LINKED when there is none */
GstFlowReturn gst_oct_bscan_negotiate (
    GstOctBscan *self, guint output, GstPad *pad);

/* What is done with the settings as a configuration of the kernel, whose
 * pointers are valid until it returns. */
typedef ImkStatus (*GstOctBscanUse) (
    const ImkOctbscanConfig *config, gpointer data, ImkError *error);

/* With the files of @settings, for B-scans of @info.
 * @n_left_over: (out): cameras of the calibration that have no turn */
ImkStatus gst_oct_bscan_use_config (GstOctBscan *self, const Settings *settings,
    const GstVideoInfo *info, GstOctBscanUse use, gpointer data,
    guint *n_left_over, ImkError *error);

/* Whether @settings go together, with the lines that come.
 * @info: (out): of a B-scan
 * @live: (out): pairs of d2 and d3, for all cameras
 * @is_live: (out): whether there are any */
ImkStatus gst_oct_bscan_check_settings (GstOctBscan *self,
    const Settings *settings, GstVideoInfo *info, gdouble *live,
    gboolean *is_live, ImkError *error);

/* The action signals. */
void gst_oct_bscan_install_actions (GObjectClass *klass);

/* What an action has asked for, with the B-scan @in. */
void gst_oct_bscan_follow_actions (GstOctBscan *self, GstBuffer *in);

/* Makes a kernel for B-scans of @info and the settings in force; with CUDA the
 * context is current. */
ImkStatus gst_oct_bscan_kernel_new (GstOctBscan *self, ImkBackend backend,
    const GstVideoInfo *info, ImkOctbscan **kernel, ImkError *error);

/* Makes the next kernel, for @settings, while the one that is open stays. */
ImkStatus gst_oct_bscan_prepare_kernel (GstOctBscan *self,
    const Settings *settings, const GstVideoInfo *info, ImkError *error);
void gst_oct_bscan_forget_next_kernel (GstOctBscan *self);

/* Takes the @n B-scans of @in (transfer full); @entered: when the last line
 * came. */
GstFlowReturn gst_oct_bscan_process (
    GstOctBscan *self, GstBuffer *in, guint n, GstClockTime entered);

/* Says what makes a wrong image of good spectra, when it begins to hold. */
void gst_oct_bscan_warn_of_settings (GstOctBscan *self);

/* Waits until all B-scans that were taken have been pushed. */
void gst_oct_bscan_drain (GstOctBscan *self);

/* Opens the devices for the kernel that is open on CUDA; the first B-scan would
 * do so. Call with the frames locked. */
ImkStatus gst_oct_bscan_need_devices (GstOctBscan *self, ImkError *error);

/* Before the properties or the format change, and at the end: lets go of the
 * devices. Drained, or flushing. */
void gst_oct_bscan_release_devices (GstOctBscan *self);

/* The device has failed with @why before it had @w (nullable). Returns: whether
 * the CPU takes over; if not, an error has been posted */
gboolean gst_oct_bscan_leave_device (GstOctBscan *self,
    const GstOctBscanWork *w, ImkStatus status, const ImkError *why);

/* Gives a work ordinary memory for its images: a device that has failed may
 * still write to what they had, or has taken it along. */
void gst_oct_bscan_work_renew (GstOctBscanWork *work);

/* Makes images of one B-scan on the CPU. Call with the frames locked. */
ImkStatus gst_oct_bscan_run_on_cpu (
    GstOctBscan *self, GstOctBscanWork *work, ImkError *error);

/* A plane of @output as kernels take it: video is how its bytes are mapped. */
void gst_oct_bscan_work_image (guint output, ImkImage *plane);

/* What is wanted of B-scan @k of @work as a job of the kernel; @in: NULL as
 * that of @work, @images: of the outputs */
ImkOctbscanJob gst_oct_bscan_work_job (const GstOctBscan *self,
    const GstOctBscanWork *work, guint k, const ImkImage *in, ImkImage *images);

/* Returns: (transfer none) (nullable): the memory of @buffer, when it is one of
 * ours and all that there is */
GstMemory *gst_oct_bscan_peek_ours (GstBuffer *buffer);

/* Returns: how many B-scans of @buffer may be one work */
guint gst_oct_bscan_most_at_once (GstOctBscan *self, GstBuffer *buffer);

/* Returns: bytes from a B-scan to the next one of a work */
gsize gst_oct_bscan_work_in_step (const GstOctBscan *self);

/* Pushes the images of a work of several B-scans. Any one thread. */
GstFlowReturn gst_oct_bscan_push_run (
    GstOctBscan *self, const GstOctBscanWork *work);

/* Images of what has been added to a mean, if anything. */
GstFlowReturn gst_oct_bscan_show_mean (GstOctBscan *self);

/* Says that @n rows do not fill an en-face image, unless there are none. */
void gst_oct_bscan_warn_of_rows (GstOctBscan *self, guint n, const gchar *why);

/* Returns: (transfer full): those of now. Locks the frames. */
GstOctBscanTerms *gst_oct_bscan_get_terms (GstOctBscan *self);
void gst_oct_bscan_terms_unref (GstOctBscanTerms *terms);

/* The outputs have agreed with downstream anew. */
void gst_oct_bscan_renew_formats (GstOctBscan *self, GstOctBscanTerms **terms);

/* The pads are not kept any longer. */
void gst_oct_bscan_forget_terms (GstOctBscan *self);

/* B-scans whose ends range=auto takes a mean of. */
enum { GST_OCT_BSCAN_AUTO = 8 };

/* B-scans until ends that are of noise alone are sought again. */
enum { GST_OCT_BSCAN_NOISE = 64 };

/* The ends of range=auto are sought anew. Any thread. */
void gst_oct_bscan_reset_range (GstOctBscan *self);

/* @work is to come: there may be a sample by now. */
void gst_oct_bscan_look_again (GstOctBscan *self, GstOctBscanWork *work);

/* Room for the ends of a new work, where they are not known. */
void gst_oct_bscan_need_ends (GstOctBscanWork *work);

/* Whether range=auto still looks for its ends. */
gboolean gst_oct_bscan_is_settling (GstOctBscan *self);

/* What a work has found becomes a part of them. Any one thread. */
void gst_oct_bscan_note_ends (GstOctBscan *self, const GstOctBscanWork *work);

/* Attaches to an image what its samples are. @ends: as in ImkOctbscanJob */
void gst_oct_bscan_attach_ends (GstBuffer *image, const GstVideoInfo *info,
    gboolean db, const gfloat ends[4]);

/* The same to image @k of @work. */
void gst_oct_bscan_describe_image (
    const GstOctBscanWork *work, guint output, guint k, GstBuffer *image);

/* In the statistics. Any one thread. */
void gst_oct_bscan_count (
    GstOctBscan *self, const GstOctBscanWork *work, gboolean lost);

/* Returns: the flow of all outputs after @pad has had @flow, which does not
 * count when it is being released, or has been */
GstFlowReturn gst_oct_bscan_combine (
    GstOctBscan *self, GstPad *pad, GstFlowReturn flow);

/* Marks @buffer, which is about to leave by @output, where it does not continue
 * what was. Any one thread. */
void gst_oct_bscan_mark (GstOctBscan *self, guint output, GstBuffer *buffer);

/* The next image of each output does not continue what was. Any thread. */
void gst_oct_bscan_begin_streams (GstOctBscan *self);

/* Pushes the images of a B-scan. Any one thread. */
GstFlowReturn gst_oct_bscan_push (GstOctBscan *self, GstOctBscanWork *work);

void gst_oct_bscan_work_free (GstOctBscanWork *work);

G_END_DECLS
