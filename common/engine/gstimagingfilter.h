/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstbasetransform.h>

#include "gstimagingbackend.h"
#include "gstimagingframe.h"
#include "gstimagingresults.h"
#include "gstimagingsettings.h"

#include "imk/backend.h"

G_BEGIN_DECLS

#define GST_TYPE_IMAGING_FILTER (gst_imaging_filter_get_type ())
GST_IMAGING_API
G_DECLARE_DERIVABLE_TYPE (
    GstImagingFilter, gst_imaging_filter, GST, IMAGING_FILTER, GstBaseTransform)

/**
 * GstImagingFilterClass: (skip)
 * @measures: frames pass unchanged and results come out; else a new frame of
 *   the same format is made of each
 * @device_reach: how the CUDA kernel of this element takes frames
 * @open: Required. Makes the kernel for frames of @info on @backend; with
 *   IMK_BACKEND_CUDA the context is current. Fails without leaving anything
 * @close: Required. Frees the kernel, if there is one; the context is current
 * @process: Required. Runs the kernel on @in, into @out (%NULL when the class
 *   measures). @buffer is the writable buffer that leaves the element, for
 *   gst_imaging_filter_publish(). May run twice for a frame, when the device
 *   fails and the CPU takes over; so it publishes last. Sets @done when it has
 *   waited for the device
 * @finish: Optional. The frame and its results have left, whatever became of
 *   them: for work that neither has to wait for. The kernel is still that of
 * the frame, if there was one
 * @reset: Optional. Forgets what was remembered of earlier frames; the context
 *   is current, the next frames come on @stream
 * @prefers_cuda: Optional. Whether `auto` takes CUDA for system memory frames
 *   of this size, as docs/explanation/measurements.md shows; no when absent
 * @carrier: Optional. The video that frames of @caps, which are not those of
 *   video, are taken for when they are mapped, and that open() gets
 * @is_identity: Optional. Whether frames come out as they went in, with the
 *   properties as they are: then they pass untouched
 *
 * The base of elements that take one video frame at a time, with a kernel on
 * the CPU or the GPU. It owns backend, memory, events, statistics and the
 * `results` pad; a subclass knows its properties and its kernel. All vfuncs
 * are called from the streaming thread, never two at a time.
 */
struct _GstImagingFilterClass {
  GstBaseTransformClass parent_class;

  gboolean measures;
  GstImagingReach device_reach;

  ImkStatus (*open) (GstImagingFilter *self, ImkBackend backend,
      const GstVideoInfo *info, ImkError *error);
  void (*close) (GstImagingFilter *self);
  ImkStatus (*process) (GstImagingFilter *self, GstImagingFrame *in,
      GstImagingFrame *out, GstBuffer *buffer, gboolean *done, ImkError *error);
  void (*finish) (GstImagingFilter *self);
  void (*reset) (GstImagingFilter *self, gpointer stream);
  gboolean (*prefers_cuda) (GstImagingFilter *self, const GstVideoInfo *info);
  gboolean (*is_identity) (GstImagingFilter *self);
  ImkStatus (*carrier) (GstImagingFilter *self, GstCaps *caps,
      GstVideoInfo *info, ImkError *error);

  /*< private >*/
  gpointer padding[6];
};

/**
 * gst_imaging_filter_use_settings: (skip)
 * @table: what the class has given to gst_imaging_settings_install ()
 *
 * In the init() of a subclass. Settings are taken before each frame.
 * Returns: (transfer none): those of the element
 */
GST_IMAGING_API
GstImagingSettings *gst_imaging_filter_use_settings (
    GstImagingFilter *self, const GstImagingSettingsTable *table);

/**
 * gst_imaging_filter_n_threads: (skip)
 * Returns: the property `n-threads`
 */
GST_IMAGING_API
guint gst_imaging_filter_n_threads (GstImagingFilter *self);

/**
 * gst_imaging_filter_open_context: (skip)
 * Returns: (nullable): the context for which open() with IMK_BACKEND_CUDA is
 *   called
 */
GST_IMAGING_API
GstImagingContext *gst_imaging_filter_open_context (GstImagingFilter *self);

/**
 * gst_imaging_filter_synchronize: (skip)
 *
 * Waits until the device has done what process() put on the frame's stream.
 * Returns: IMK_OK, at once on the CPU, or IMK_ERROR_DEVICE
 */
GST_IMAGING_API
ImkStatus gst_imaging_filter_synchronize (
    GstImagingFilter *self, ImkError *error);

/**
 * gst_imaging_filter_download: (skip)
 * @plane: of a frame that process() was given, wherever it is
 * @host: (out): the same samples for the CPU, valid as long as @plane and @copy
 * @copy: (inout): %NULL, or what @host points to, to be given to g_free()
 *
 * For what a kernel does not do, now and then: it waits for the device.
 *
 * Returns: IMK_OK, or an error with @copy as it was
 */
GST_IMAGING_API
ImkStatus gst_imaging_filter_download (GstImagingFilter *self,
    const ImkImage *plane, ImkImage *host, gpointer *copy, ImkError *error);

/**
 * gst_imaging_filter_peek: (skip)
 *
 * As gst_imaging_filter_download(), but `stats` does not count it: for a look
 * at the first frames, which is no part of what a frame costs.
 */
GST_IMAGING_API
ImkStatus gst_imaging_filter_peek (GstImagingFilter *self,
    const ImkImage *plane, ImkImage *host, gpointer *copy, ImkError *error);

/**
 * gst_imaging_filter_renew: (skip)
 *
 * As gst_imaging_engine_renew().
 */
GST_IMAGING_API
ImkStatus gst_imaging_filter_renew (GstImagingFilter *self, ImkError *error);

/**
 * gst_imaging_filter_frame_number: (skip)
 * Returns: the number of the frame at hand: the offset of its buffer, or how
 *   many came before it where offsets are absent or count bytes
 */
GST_IMAGING_API
guint64 gst_imaging_filter_frame_number (GstImagingFilter *self);

/**
 * gst_imaging_filter_wants_values: (skip)
 * Returns: whether somebody reads results as text, so that a
 *   #GstImagingResult needs its float64 values
 */
GST_IMAGING_API
gboolean gst_imaging_filter_wants_values (GstImagingFilter *self);

/**
 * gst_imaging_filter_publish: (skip)
 * @buffer: the buffer that process() was given
 * @result: a measurement of it
 *
 * Attaches @result to @buffer and pushes it to the `results` pad.
 */
GST_IMAGING_API
void gst_imaging_filter_publish (
    GstImagingFilter *self, GstBuffer *buffer, const GstImagingResult *result);

/**
 * gst_imaging_filter_class_add_results_pad: (skip)
 * @with_flags: results have them, as a second tensor
 *
 * Gives the class the request pad template `results`.
 */
GST_IMAGING_API
void gst_imaging_filter_class_add_results_pad (
    GstImagingFilterClass *klass, gboolean with_flags);

G_END_DECLS
