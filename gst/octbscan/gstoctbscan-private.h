/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the element share. */
#pragma once

#include "gstimagingnumbering.h"
#include "gstimagingquantity.h"
#include "gstoctbscan.h"
#include "gstoctbscanenface.h"
#include "gstoctbscangroup.h"
#include "gstoctbscanpad.h"
#include "gstoctbscansettings.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_oct_bscan_debug);
#define GST_CAT_DEFAULT gst_oct_bscan_debug

/* Bytes of the blocks of page-locked memory: the bus is fastest with copies of
 * this size. */
#define GST_OCT_BSCAN_SLAB_SIZE ((gsize) 8 << 20)

/* Outputs, in the order in which they are pushed and preroll. */
enum { LINEAR, COMPLEX, ENFACE, SRC, N_OUTPUTS };

typedef struct _GstOctBscanQueue GstOctBscanQueue;

/* The settings and formats of a number of B-scans. Immutable. */
typedef struct {
  gint ref_count; /* atomic */
  guint changes;  /* n_changes of the settings in use */
  ImkOctbscanConfig config;
  Scaling scaling;
  gboolean auto_range; /* range=auto, also if @config has fixed ends by now */
  guint auto_serial;
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS]; /* of @config, if it has one */
  guint average_bscans;
  GstImagingAxis depth, lateral; /* of images */
  const gchar *element;          /* interned */
  gchar *settings_hash;          /* (nullable) */
  guint pads_serial;             /* of gst_imaging_src_pads_serial () */
  GstOctBscanPad *pads[N_OUTPUTS];
  gboolean is_float[N_OUTPUTS]; /* an image is a tensor */
  GstVideoInfo info[N_OUTPUTS]; /* of an image */
  GstVideoInfo volume;          /* of the image of ENFACE */
} GstOctBscanSnapshot;

/* Of the four numbers of ImkOctbscanJob.track. */
enum { GST_OCT_BSCAN_SHIFT = 3 };

/* Of a line of several B-scans. */
#define GST_OCT_BSCAN_DIFFERENT (-1)

/* What the lines of one B-scan, or of those of a mean, are. */
typedef struct {
  guint n; /* B-scans */
  guint changes;
  gint first_camera, backward; /* or GST_OCT_BSCAN_DIFFERENT */
  gdouble shift;               /* mean, depths */
  guint64 frame, n_missing;    /* of the last; before all of them */
} GstOctBscanLines;

/* A kernel, and what it was made of. */
typedef struct {
  ImkOctbscan *kernel; /* (nullable) */
  ImkBackend backend;
  ImkOctbscanConfig config; /* without its pointers */
  guint n_left_over;        /* calibrated cameras that have no lines */
} GstOctBscanOpen;

/* The images of a mean that is not shown yet, from its B-scans so far. */
typedef struct {
  guint n;               /* B-scans */
  GstClockTime pts, dts; /* of the first */
  GstClockTime duration; /* of all */
  gboolean is_discont;   /* one of them had DISCONT */
  GstBuffer *last;       /* (nullable): metadata of the last */
} GstOctBscanMean;

/* range=auto: the mean of the ends of some B-scans, as in ImkOctbscanJob. */
typedef struct {
  guint n;      /* B-scans in the mean */
  guint serial; /* counts changes */
  gfloat ends[4];
  guint n_noise;        /* B-scans of noise only, up to now */
  gboolean holds_noise; /* atomic: the ends come from such B-scans */
  guint n_with_noise;   /* B-scans with these ends */
} GstOctBscanAutoRange;

struct _GstOctBscan {
  GstElement parent;
  GstPad *sink;
  GstImagingEngine *engine;
  GstImagingSettings *settings;
  GstImagingSrcPads *pads; /* members of a pad: with the engine locked */

  /* Under the object lock. */
  GstClockTime latency; /* of gathering lines */
  GstClockTime period;  /* from B-scan to B-scan */
  GstClockTime wait;    /* of a mean for the last of its B-scans */
  GstOctBscanAutoRange range;

  /* Of the streaming thread: the input. */
  GstSegment segment;
  GstVideoInfo lines, bscan; /* of an input buffer, and of a B-scan */
  ImkType type;              /* of a sample */
  guint bytes_a_pixel; /* of those infos: tensors are mapped as their bytes */
  guint n_skipped;     /* lines of a B-scan that are left out */
  GstOctBscanGroup *group;
  GstImagingNumbering numbering; /* of the buffers */
  guint64 frame;                 /* the buffer that a B-scan began in */
  guint64 n_missing;             /* buffers before the next B-scan */
  guint next_camera;             /* of the first line of the next B-scan */
  guint n_bscans;                /* since the turns began */
  GstOctBscanMean mean;
  guint history;      /* counts interruptions */
  gint64 next_fringe; /* when to look for one */
  gboolean must_configure;
  GstOctBscanOpen next; /* for the next settings */
  gboolean warned_of_cameras, warned_of_mean, warned_of_gap;

  /* Of the thread that pushes. */
  GstOctBscanEnface *enface;
  GstOctBscanPad *enface_pad; /* the pad of its rows */
  GstOctBscanLines mean_lines, last_lines;
  GstBuffer *last_rows; /* (nullable): of last_lines */

  /* Atomic. */
  gint wants_dispersion;
  gint warned_of_bad, warned_of_mirror;

  /* Of the streaming thread, which changes them with the engine locked. */
  Settings *now;    /* in use, from buffer to buffer */
  guint n_changes;  /* of these */
  gboolean is_live; /* dispersion-2 or -3 is set */
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS];
  gboolean has_caps;

  /* Protects the engine, the outputs and what follows. Held by the streaming
   * thread, and by a thread that finds the last device lost. */
  GMutex engine_lock;
  GstOctBscanOpen open;
  gint width, height;            /* of the images */
  gdouble depth_step;            /* of the kernel, imk_octbscan_depth_step () */
  guint n_full;                  /* B-scans that make an efficient copy */
  GstOctBscanSnapshot *snapshot; /* (nullable): of the last B-scan */
  GstOctBscanQueue *queue; /* freed with the engine and the object locked */
  gboolean host_images;    /* downstream reads images on the CPU */
  gboolean has_shown;      /* the first images have been pushed */
};

/* A B-scan in progress, or several of one buffer that are pushed as one
 * list. */
typedef struct {
  GList link;                /* in the queue */
  guint n;                   /* B-scans, one behind the other in @in and @out */
  GstBuffer *in;             /* NULL: only the images of the current mean */
  GstBuffer *like;           /* (nullable): has their offset and metadata */
  GstBuffer *source;         /* @in or, for a device, a copy of it */
  GstBuffer *out[N_OUTPUTS]; /* an image for each pad that wants one */
  GstOctBscanSnapshot *snapshot;
  GstClockTime pts, dts, duration; /* of the images */
  gboolean is_discont;             /* the images have DISCONT */
  gboolean has_images;             /* FALSE: it is only added to a mean */
  gboolean begins_mean;
  gboolean backward;
  gboolean to_host;         /* images are copied to page-locked memory */
  gboolean may_go_anywhere; /* FALSE: its samples are on the first device */
  gboolean lost;
  gboolean on_cpu; /* the CPU has made the images */
  gfloat *ends;    /* (nullable): [n][4], found in the B-scans */
  gfloat *shifts;  /* (nullable): [n], depths that tracking has moved them */
  gdouble fringe;  /* of the mean, dB; 0 if it was not measured */
  guint n_bad;     /* black A-scans: a sample is not a number */
  guint first_camera;
  guint64 frame, n_missing; /* of the buffer that it began in; before it */
  GstClockTime entered;
} GstOctBscanWork;

/* --- gstoctbscanformat.c -------------------------------------------------- */

/* @lines: tensors as GRAY8 of their bytes; @bytes_a_pixel: then the bytes of a
 * sample, else 1. Returns: FALSE for caps that are not lines of spectra */
gboolean gst_oct_bscan_parse_caps (const GstCaps *caps, GstVideoInfo *lines,
    ImkType *type, guint *bytes_a_pixel);

/* Makes of the mapped plane of a B-scan the image that kernels take, without
 * the lines of skip-first-line. */
void gst_oct_bscan_input_image (const GstOctBscan *self, ImkImage *plane);

/* Returns: the camera of the first line of the next B-scan that is not skipped
 */
guint gst_oct_bscan_first_camera (const GstOctBscan *self);

/* --- gstoctbscankernel.c -------------------------------------------------- */

/* Called with the settings as a configuration of the kernel; its pointers are
 * valid until the function returns. */
typedef ImkStatus (*GstOctBscanUse) (
    const ImkOctbscanConfig *config, gpointer data, ImkError *error);

/* With the files of @settings, for B-scans of @info.
 * @n_left_over: (out): cameras of the calibration that have no turn */
ImkStatus gst_oct_bscan_use_config (GstOctBscan *self, const Settings *settings,
    const GstVideoInfo *info, GstOctBscanUse use, gpointer data,
    guint *n_left_over, ImkError *error);

/* Checks @settings as a whole, with the input caps.
 * @info: (out): of a B-scan
 * @live: (out): pairs of d2 and d3, for all cameras
 * @is_live: (out): whether there are any */
ImkStatus gst_oct_bscan_check_settings (GstOctBscan *self,
    const Settings *settings, GstVideoInfo *info, gdouble *live,
    gboolean *is_live, ImkError *error);

/* Makes a kernel for B-scans of @info and the settings in use. With CUDA the
 * context must be current. */
ImkStatus gst_oct_bscan_kernel_new (GstOctBscan *self, ImkBackend backend,
    const GstVideoInfo *info, ImkOctbscan **kernel, ImkError *error);

/* Makes the next kernel, for @settings; the open one stays in use. */
ImkStatus gst_oct_bscan_prepare_kernel (GstOctBscan *self,
    const Settings *settings, const GstVideoInfo *info, ImkError *error);
void gst_oct_bscan_forget_next_kernel (GstOctBscan *self);

/* Warns of settings that make a wrong image of good spectra. */
void gst_oct_bscan_warn_of_settings (GstOctBscan *self);

/* --- gstoctbscanconfigure.c ----------------------------------------------- */

/* The settings @next (transfer full) are in use from now on. */
void gst_oct_bscan_take_settings (GstOctBscan *self, Settings *next);

/* Opens the kernel for @caps. Returns: FALSE after an error was posted */
gboolean gst_oct_bscan_set_caps (GstOctBscan *self, GstCaps *caps);

/* Takes properties that were set since the last buffer. Returns: FALSE after an
 * error was posted */
gboolean gst_oct_bscan_follow_settings (GstOctBscan *self, GstBuffer *buffer);

void gst_oct_bscan_negotiate_all (GstOctBscan *self);

/* Makes all pads negotiate caps and memory again. */
void gst_oct_bscan_reconfigure (GstElement *element);

/* --- gstoctbscaninput.c --------------------------------------------------- */

void gst_oct_bscan_set_sink_functions (GstPad *sink);

/* Makes the queue drop its B-scans, or accept them again. Any thread. */
void gst_oct_bscan_set_flushing (GstOctBscan *self, gboolean flushing);

/* Drops the lines of an incomplete B-scan, with a warning of @why. */
void gst_oct_bscan_forget_lines (GstOctBscan *self, const gchar *why);

/* Outputs all images, and drops what is incomplete with a warning of @why. */
void gst_oct_bscan_end_run (GstOctBscan *self, const gchar *why);

/* The next line is that of first-camera. */
void gst_oct_bscan_begin_turns (GstOctBscan *self);

/* --- gstoctbscanlatency.c ------------------------------------------------- */

/* Computes the latency of the input caps and the settings in use. Call with the
 * engine locked. */
void gst_oct_bscan_update_latency (GstOctBscan *self);
gboolean gst_oct_bscan_src_query (
    GstPad *pad, GstObject *parent, GstQuery *query);

/* --- gstoctbscanactions.c ------------------------------------------------- */

void gst_oct_bscan_install_actions (GObjectClass *klass);

/* Runs requested actions on the B-scan @in. */
void gst_oct_bscan_follow_actions (GstOctBscan *self, GstBuffer *in);

/* --- gstoctbscansnapshot.c ------------------------------------------------ */

/* Returns: (transfer full): the current snapshot. Locks the engine. */
GstOctBscanSnapshot *gst_oct_bscan_get_snapshot (GstOctBscan *self);
void gst_oct_bscan_snapshot_unref (GstOctBscanSnapshot *snapshot);

/* Replaces *@snapshot by one with the formats that the pads have now. Call with
 * the engine locked. */
void gst_oct_bscan_renew_formats (
    GstOctBscan *self, GstOctBscanSnapshot **snapshot);

/* Releases the pads that the current snapshot holds. */
void gst_oct_bscan_forget_snapshot (GstOctBscan *self);

/* --- gstoctbscanrange.c --------------------------------------------------- */

/* B-scans whose ends range=auto takes a mean of. */
enum { GST_OCT_BSCAN_AUTO = 8 };

/* Searches the ends of range=auto again. Any thread. */
void gst_oct_bscan_reset_range (GstOctBscan *self);

/* Call with each new work item: after some B-scans with the ends of noise,
 * searches the ends again, as there may be a sample by now. */
void gst_oct_bscan_look_again (GstOctBscan *self, GstOctBscanWork *work);

/* Allocates @ends of a new work item, unless range=fixed. */
void gst_oct_bscan_need_ends (GstOctBscanWork *work);

/* Returns: whether range=auto still searches its ends */
gboolean gst_oct_bscan_is_settling (GstOctBscan *self);

/* Takes the ends that @work has found. One thread at a time. */
void gst_oct_bscan_note_ends (GstOctBscan *self, const GstOctBscanWork *work);

/* --- gstoctbscanruns.c ---------------------------------------------------- */

/* Returns: (transfer none) (nullable): the only memory of @buffer, if it is a
 * GstImagingMemory */
GstMemory *gst_oct_bscan_peek_ours (GstBuffer *buffer);

/* Returns: how many B-scans of @buffer may be one work item */
guint gst_oct_bscan_most_at_once (GstOctBscan *self, GstBuffer *buffer);

/* Returns: bytes from one B-scan of a work item to the next */
gsize gst_oct_bscan_work_in_step (const GstOctBscan *self);

/* Pushes the images of a work item of several B-scans. One thread at a time. */
GstFlowReturn gst_oct_bscan_push_images_of_run (
    GstOctBscan *self, const GstOctBscanWork *work);

/* --- gstoctbscanframes.c -------------------------------------------------- */

/* Negotiates a pad. Call with the engine locked; it is unlocked during the
 * allocation query.
 * @pad: (nullable): of @output */
GstFlowReturn gst_oct_bscan_negotiate (
    GstOctBscan *self, guint output, GstOctBscanPad *pad);

/* Posts an error. Locks the engine. Returns: GST_FLOW_ERROR */
GstFlowReturn gst_oct_bscan_post_error (
    GstOctBscan *self, const ImkError *error);

/* Processes the @n B-scans of @in (transfer full); @frame: number of the buffer
 * with the first line; @entered: arrival of the last line. */
GstFlowReturn gst_oct_bscan_process (GstOctBscan *self, GstBuffer *in, guint n,
    guint64 frame, GstClockTime entered);

/* Waits until all accepted B-scans have been pushed. */
void gst_oct_bscan_drain (GstOctBscan *self);

/* Opens the devices for the kernel on CUDA; otherwise the first B-scan does so.
 * Call with the engine locked. */
ImkStatus gst_oct_bscan_need_devices (GstOctBscan *self, ImkError *error);

/* Releases the devices, before properties or caps change and at the end. The
 * queue is drained or flushing. */
void gst_oct_bscan_release_devices (GstOctBscan *self);

/* Handles a failure of the device before it received @w (nullable). Returns:
 * whether the CPU continues; if not, an error has been posted */
gboolean gst_oct_bscan_leave_device (GstOctBscan *self,
    const GstOctBscanWork *w, ImkStatus status, const ImkError *why);

/* Gives a work item ordinary memory for its images: a failed device may still
 * write to the old memory, or has freed it. */
void gst_oct_bscan_work_renew (GstOctBscanWork *work);

/* Computes one B-scan of a lost device on the CPU. Call with the engine
 * locked. */
ImkStatus gst_oct_bscan_redo_on_cpu (
    GstOctBscan *self, GstOctBscanWork *work, ImkError *error);

/* Moves @image to the next of its B-scans, @bytes further. */
void gst_oct_bscan_advance (ImkImage *image, gsize bytes);

/* Makes of the mapped bytes of @output the image that kernels take. */
void gst_oct_bscan_work_image (
    const GstOctBscanWork *work, guint output, ImkImage *plane);

/* @in: (nullable): NULL for images of the mean; @images: of the outputs
 * Returns: the kernel's job for B-scan @k of @work */
ImkOctbscanJob gst_oct_bscan_work_job (const GstOctBscan *self,
    const GstOctBscanWork *work, guint k, const ImkImage *in, ImkImage *images);

/* Pushes the images of an incomplete mean, if there is one. */
GstFlowReturn gst_oct_bscan_show_mean (GstOctBscan *self);

/* Warns that @n rows do not fill an en-face image, unless @n is 0. */
void gst_oct_bscan_warn_of_rows (GstOctBscan *self, guint n, const gchar *why);

/* Counts @work in the statistics. One thread at a time. */
void gst_oct_bscan_count (
    GstOctBscan *self, const GstOctBscanWork *work, gboolean lost);

/* Returns: the combined flow of all pads after @output has returned @flow */
GstFlowReturn gst_oct_bscan_combine (GstOctBscan *self,
    const GstOctBscanSnapshot *snapshot, guint output, GstFlowReturn flow);

/* Pushes the images of a work item. One thread at a time. */
GstFlowReturn gst_oct_bscan_push_images (
    GstOctBscan *self, GstOctBscanWork *work);

void gst_oct_bscan_work_free (GstOctBscanWork *work);

/* --- gstoctbscanlines.c --------------------------------------------------- */

/* Allocates @shifts of a new work item with tracking. */
void gst_oct_bscan_need_shifts (GstOctBscanWork *work);

/* Adds the lines of a work item of one B-scan to those of its mean. One thread
 * at a time. */
void gst_oct_bscan_add_lines (GstOctBscan *self, const GstOctBscanWork *work);

/* Attaches camera and shift of each line to image @k, with several cameras or
 * tracking. */
void gst_oct_bscan_attach_lines (GstOctBscan *self, const GstOctBscanWork *work,
    guint output, guint k, GstBuffer *image);

/* --- gstoctbscanquantity.c ------------------------------------------------ */

/* Of an image, from the kernel and the settings in use. Call with the engine
 * locked. */
GstImagingAxis gst_oct_bscan_depth_axis (const GstOctBscan *self);
GstImagingAxis gst_oct_bscan_lateral_axis (const GstOctBscan *self);

/* Returns: what made the images of @work; valid as long as @work */
GstImagingOrigin gst_oct_bscan_origin (const GstOctBscanWork *work);

/* Attaches to an en-face image what its samples are, and what made it.
 * @ends: as in ImkOctbscanJob */
void gst_oct_bscan_describe_volume (const GstOctBscanWork *work,
    GstBuffer *image, gboolean db, const gfloat ends[4]);

/* The same for image @k of @work. */
void gst_oct_bscan_describe_image (
    const GstOctBscanWork *work, guint output, guint k, GstBuffer *image);

G_END_DECLS
