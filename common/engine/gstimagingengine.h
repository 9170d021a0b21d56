/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingbackend.h"
#include "gstimagingframe.h"
#include "gstimagingorigin.h"

#include "imk/backend.h"

G_BEGIN_DECLS

/**
 * GstImagingEngine: (skip)
 *
 * What an element with a kernel on the CPU or the GPU needs, whatever its base
 * class: the properties of a backend, the device's context and stream, the
 * change to the CPU when the device fails, errors and statistics.
 * #GstImagingFilter has one inside; so has every element that cannot be a
 * #GstImagingFilter.
 *
 * Properties, set_context and queries may come from any thread. All else
 * belongs to one thread at a time, usually the streaming thread.
 */
typedef struct _GstImagingEngine GstImagingEngine;

/* In gstimagingsettings.h. */
typedef struct _GstImagingSettings GstImagingSettings;
typedef struct _GstImagingArray GstImagingArray;

/**
 * GstImagingEngineFuncs: (skip)
 * @open: Required. Makes the kernel for frames of @info on @backend; with
 *   IMK_BACKEND_CUDA the context is current. Fails without leaving anything
 * @close: Required. Frees the kernel; the context is current if it is CUDA's
 * @prefers_cuda: Optional. Whether `auto` takes CUDA for system memory frames
 *   of @info
 * @carrier: Optional. The video that frames of @caps, which are not those of
 *   video, are taken for when they are mapped
 * @opens_ahead: the element calls gst_imaging_engine_open_ahead() in a thread
 * of its own; gst_imaging_engine_start() opens no device
 * @reconfigure: Optional. The backend changes, or tries to, while frames run:
 *   downstream's allocation is to be asked for anew
 *
 * What an element does for its engine. @info is of unknown format when the caps
 * are not video and there is no carrier; the element knows then what they say.
 */
typedef struct {
  ImkStatus (*open) (GstElement *element, ImkBackend backend,
      const GstVideoInfo *info, ImkError *error);
  void (*close) (GstElement *element);
  gboolean (*prefers_cuda) (GstElement *element, const GstVideoInfo *info);
  void (*reconfigure) (GstElement *element);
  ImkStatus (*carrier) (
      GstElement *element, GstCaps *caps, GstVideoInfo *info, ImkError *error);
  gboolean opens_ahead;
} GstImagingEngineFuncs;

/**
 * gst_imaging_engine_new: (skip)
 * @element: the owner, in its init(); not referenced
 * @funcs: static
 *
 * Returns: to be freed in the finalize() of @element
 */
GST_IMAGING_API
GstImagingEngine *gst_imaging_engine_new (
    GstElement *element, const GstImagingEngineFuncs *funcs);

/**
 * gst_imaging_engine_free: (skip)
 * @self: (nullable): an engine that has been stopped
 */
GST_IMAGING_API
void gst_imaging_engine_free (GstImagingEngine *self);

/* --- properties ---------------------------------------------------------- */

/**
 * GST_IMAGING_ENGINE_N_PROPERTIES: (skip)
 *
 * The engine's properties have the ids 1 to this one in the class that
 * installs them; its own ones follow.
 */
#define GST_IMAGING_ENGINE_N_PROPERTIES 6

/**
 * gst_imaging_engine_install_properties: (skip)
 * @klass: of the element, in its class_init()
 *
 * Installs `backend`, `cuda-device-id`, `n-threads`, `active-backend`,
 * `active-memory` and `stats`.
 */
GST_IMAGING_API
void gst_imaging_engine_install_properties (GObjectClass *klass);

/**
 * gst_imaging_engine_set_property: (skip)
 * Returns: %FALSE when @id is none of the engine's
 */
GST_IMAGING_API
gboolean gst_imaging_engine_set_property (
    GstImagingEngine *self, guint id, const GValue *value);

/**
 * gst_imaging_engine_get_property: (skip)
 * Returns: %FALSE when @id is none of the engine's
 */
GST_IMAGING_API
gboolean gst_imaging_engine_get_property (
    GstImagingEngine *self, guint id, GValue *value);

/**
 * gst_imaging_engine_choice: (skip)
 * Returns: the property `backend`
 */
GST_IMAGING_API
GstImagingBackendChoice gst_imaging_engine_choice (GstImagingEngine *self);

/**
 * gst_imaging_engine_n_threads: (skip)
 * Returns: the property `n-threads`
 */
GST_IMAGING_API
guint gst_imaging_engine_n_threads (GstImagingEngine *self);

/* --- from start to stop --------------------------------------------------- */

/**
 * gst_imaging_engine_choose_devices: (skip)
 * @list: (nullable): a property cuda-devices, for an element that works on
 *   several; %NULL for none
 * @others: (out) (optional) (transfer full) (element-type gint): those behind
 *   the first; none where @list does not count
 *
 * Before each gst_imaging_engine_start(). The first device of @list takes the
 * place of cuda-device-id until the next call. Where the CPU is going to be
 * taken, or there is no CUDA, @list is not looked at.
 * Returns: %FALSE for devices that are not there; an error has been posted, and
 *   @others is not set
 */
GST_IMAGING_API
gboolean gst_imaging_engine_choose_devices (
    GstImagingEngine *self, const GstImagingArray *list, GArray **others);

/**
 * gst_imaging_engine_start: (skip)
 *
 * Forgets the last run; with `backend=cuda` opens the device, unless the
 * element opens it ahead.
 * Returns: %FALSE when there is none; an error has been posted, and there is
 *   nothing to stop
 */
GST_IMAGING_API
gboolean gst_imaging_engine_start (GstImagingEngine *self);

/**
 * gst_imaging_engine_stop: (skip)
 *
 * Closes kernel, stream and context.
 */
GST_IMAGING_API
void gst_imaging_engine_stop (GstImagingEngine *self);

/**
 * gst_imaging_engine_set_context: (skip)
 * @message: what the set_context() of the element is given, before it gives it
 *   to its parent class
 *
 * Takes the application's or a neighbour's context.
 */
GST_IMAGING_API
void gst_imaging_engine_set_context (
    GstImagingEngine *self, GstContext *message);

/**
 * gst_imaging_engine_query: (skip)
 * @query: any query that one of the element's pads is asked
 *
 * Returns: whether it was one for a context, and has been answered
 */
GST_IMAGING_API
gboolean gst_imaging_engine_query (GstImagingEngine *self, GstQuery *query);

/**
 * gst_imaging_engine_will_open_device: (skip)
 *
 * Returns: whether gst_imaging_engine_set_caps() with frames in system memory
 * is going to open the device, which takes a third of a second; %FALSE if it is
 *   open
 */
GST_IMAGING_API
gboolean gst_imaging_engine_will_open_device (GstImagingEngine *self);

/**
 * gst_imaging_engine_open_ahead: (skip)
 *
 * Opens the device before the caps are set, in a thread of the element; no
 * other thread uses the engine meanwhile, but for properties, contexts, queries
 * and notes of memory. The next gst_imaging_engine_set_caps() reports a
 * failure, or falls back to the CPU.
 */
GST_IMAGING_API
void gst_imaging_engine_open_ahead (GstImagingEngine *self);

/* --- the kernel ----------------------------------------------------------- */

/**
 * gst_imaging_engine_usable_caps: (skip)
 * @caps: of a pad template, with memory of every kind that the element knows
 *
 * Returns: (transfer full): those of @caps that the element accepts. Device
 *   memory is left out with backend=cpu, which would only download it, and
 *   where this library is built without its kind
 */
GST_IMAGING_API
GstCaps *gst_imaging_engine_usable_caps (GstImagingEngine *self, GstCaps *caps);

/**
 * gst_imaging_engine_set_caps: (skip)
 * @in_caps: of the frames that the kernel takes
 * @out_caps: (nullable): of those that it makes
 *
 * Chooses the backend for these frames and opens the kernel on it.
 * Returns: %FALSE when it could not be opened; an error has been posted
 */
GST_IMAGING_API
gboolean gst_imaging_engine_set_caps (
    GstImagingEngine *self, GstCaps *in_caps, GstCaps *out_caps);

/**
 * gst_imaging_engine_info: (skip)
 * Returns: what was made of @in_caps
 */
GST_IMAGING_API
const GstVideoInfo *gst_imaging_engine_info (GstImagingEngine *self);

/**
 * gst_imaging_engine_follow: (skip)
 * @input: the next frame
 *
 * `auto` follows the data: opens the kernel on the device when @input is
 * there, and so far the CPU was chosen.
 * Returns: %FALSE when there is no kernel now; an error has been posted
 */
GST_IMAGING_API
gboolean gst_imaging_engine_follow (GstImagingEngine *self, GstBuffer *input);

/**
 * gst_imaging_engine_ensure_open: (skip)
 *
 * Before a frame: opens the kernel where the last attempt has failed, as the
 * properties may be better by now.
 * Returns: IMK_OK, or an error that has not been posted
 */
GST_IMAGING_API
ImkStatus gst_imaging_engine_ensure_open (
    GstImagingEngine *self, ImkError *error);

/**
 * gst_imaging_engine_renew: (skip)
 *
 * Opens on the same backend without closing first, for an element whose open()
 * leaves what there is in place until it has something new.
 * Returns: IMK_OK, or an error that has not been posted: nothing has changed
 */
GST_IMAGING_API
ImkStatus gst_imaging_engine_renew (GstImagingEngine *self, ImkError *error);

/**
 * gst_imaging_engine_is_open: (skip)
 * Returns: whether there is a kernel
 */
GST_IMAGING_API
gboolean gst_imaging_engine_is_open (GstImagingEngine *self);

/**
 * gst_imaging_engine_is_on_cuda: (skip)
 * Returns: whether there is one, and it is CUDA's
 */
GST_IMAGING_API
gboolean gst_imaging_engine_is_on_cuda (GstImagingEngine *self);

/**
 * gst_imaging_engine_context: (skip)
 * Returns: (nullable): the context of the device, in open() with
 *   IMK_BACKEND_CUDA and from then on until stop
 */
GST_IMAGING_API
GstImagingContext *gst_imaging_engine_context (GstImagingEngine *self);

/**
 * gst_imaging_engine_kernel_context: (skip)
 * Returns: (nullable): that of the open kernel; %NULL for that of the CPU
 */
GST_IMAGING_API
GstImagingContext *gst_imaging_engine_kernel_context (GstImagingEngine *self);

/**
 * gst_imaging_engine_ref_context: (skip)
 *
 * For queries, which a pad passes on even while its element stops.
 * Returns: (transfer full) (nullable): the context of the kernel; NULL where
 *   there is none, or it is the CPU's
 */
GST_IMAGING_API
GstImagingContext *gst_imaging_engine_ref_context (GstImagingEngine *self);

/**
 * gst_imaging_engine_stream: (skip)
 * Returns: (nullable): the stream of the element, as long as its context
 */
GST_IMAGING_API
gpointer gst_imaging_engine_stream (GstImagingEngine *self);

/**
 * gst_imaging_engine_synchronize: (skip)
 *
 * Waits until the device has done what was put on the stream.
 * Returns: IMK_OK, at once on the CPU, or IMK_ERROR_DEVICE
 */
GST_IMAGING_API
ImkStatus gst_imaging_engine_synchronize (
    GstImagingEngine *self, ImkError *error);

/**
 * gst_imaging_engine_origin: (skip)
 *
 * Of the thread that takes settings.
 * Returns: what a frame is computed with now: element, backend and settings;
 *   valid until the next settings
 */
GST_IMAGING_API
GstImagingOrigin gst_imaging_engine_origin (GstImagingEngine *self);

/**
 * gst_imaging_engine_sign: (skip)
 * @image: a writable buffer that the kernel has made
 *
 * gst_imaging_quantity_sign() with gst_imaging_engine_origin().
 */
GST_IMAGING_API
void gst_imaging_engine_sign (GstImagingEngine *self, GstBuffer *image);

/* --- frames --------------------------------------------------------------- */

/**
 * gst_imaging_engine_reachable: (skip)
 * @buffer: a frame of the caps set
 * @reach: how the kernel takes it
 *
 * Returns: @buffer itself, not referenced, because it has to stay writable; or
 *   a copy of it that the kernel reaches, to be unreferenced; or %NULL with
 *   @error set
 */
GST_IMAGING_API
GstBuffer *gst_imaging_engine_reachable (GstImagingEngine *self,
    GstBuffer *buffer, GstImagingReach reach, ImkError *error);

/**
 * GstImagingEngineProcess: (skip)
 * @in: the frame, where the kernel can read it
 * @reach: how outputs have to be mapped
 * @again: the device failed and may still write to outputs that exist: replace
 *   their memory
 */
typedef ImkStatus (*GstImagingEngineProcess) (gpointer data, GstBuffer *in,
    GstImagingReach reach, gboolean again, ImkError *error);

/**
 * gst_imaging_engine_process: (skip)
 * @reach: of the kernel on a device
 *
 * Calls @process with the kernel open, and with the context of the device
 * current. With `backend=auto` calls it again on the CPU when the device fails.
 *
 * Returns: GST_FLOW_OK; GST_FLOW_CUSTOM_SUCCESS when @in was lost with the
 *   device, which has been counted; GST_FLOW_ERROR when an error was posted
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_engine_process (GstImagingEngine *self, GstBuffer *in,
    GstImagingReach reach, GstImagingEngineProcess process, gpointer data);

/**
 * gst_imaging_engine_map: (skip)
 *
 * gst_imaging_frame_map() with the context, the stream and the statistics of
 * the element.
 * Returns: IMK_OK, or an error and nothing to unmap
 */
GST_IMAGING_API
ImkStatus gst_imaging_engine_map (GstImagingEngine *self, GstBuffer *buffer,
    const GstVideoInfo *info, GstMapFlags access, GstImagingReach reach,
    GstImagingFrame *frame, ImkError *error);

/**
 * gst_imaging_engine_map_on: (skip)
 * @stream: of the context of the element, for an element with several
 *
 * gst_imaging_engine_map() for work on @stream. Any thread.
 */
GST_IMAGING_API
ImkStatus gst_imaging_engine_map_on (GstImagingEngine *self, GstBuffer *buffer,
    const GstVideoInfo *info, GstMapFlags access, GstImagingReach reach,
    gpointer stream, GstImagingFrame *frame, ImkError *error);

/**
 * gst_imaging_engine_note_memory: (skip)
 * @memory_name: of a mapped input frame; static
 *
 * Says where the frame came from in `active-memory`.
 */
GST_IMAGING_API
void gst_imaging_engine_note_memory (
    GstImagingEngine *self, const gchar *memory_name);

/**
 * gst_imaging_engine_allocator_new: (skip)
 * Returns: (transfer full): an allocator in the context of the element, which
 *   counts transfers in its statistics
 */
GST_IMAGING_API
GstAllocator *gst_imaging_engine_allocator_new (
    GstImagingEngine *self, GstImagingMemoryMode mode);

/**
 * gst_imaging_engine_allocator_new_in: (skip)
 * @context: that of gst_imaging_engine_ref_context()
 * Returns: (transfer full): the same, in @context
 */
GST_IMAGING_API
GstAllocator *gst_imaging_engine_allocator_new_in (GstImagingEngine *self,
    GstImagingContext *context, GstImagingMemoryMode mode);

/**
 * gst_imaging_engine_use_slabs: (skip)
 * @size: see gst_imaging_allocator_use_slabs(); 0 for none
 *
 * For allocators that are made from now on: of the pool that upstream is
 * offered, of copies of frames, and those of the element.
 */
GST_IMAGING_API
void gst_imaging_engine_use_slabs (GstImagingEngine *self, gsize size);

/**
 * gst_imaging_engine_stats: (skip)
 * Returns: (transfer none): what `stats` shows, to be added to
 */
GST_IMAGING_API
GstImagingStats *gst_imaging_engine_stats (GstImagingEngine *self);

/**
 * gst_imaging_engine_count_frame: (skip)
 * @entered: gst_util_get_timestamp() when the frame arrived
 *
 * Counts a frame that the element is done with. Any thread, one at a time,
 * whatever others do with the engine.
 */
GST_IMAGING_API
void gst_imaging_engine_count_frame (
    GstImagingEngine *self, GstClockTime entered);

/**
 * gst_imaging_engine_count_lost: (skip)
 *
 * Counts a frame for which gst_imaging_engine_is_lost() holds; as
 * gst_imaging_engine_count_frame().
 */
GST_IMAGING_API
void gst_imaging_engine_count_lost (GstImagingEngine *self);

/* --- failures ------------------------------------------------------------- */

/**
 * gst_imaging_engine_can_fall_back: (skip)
 * @status: what work on the kernel's backend has ended with
 *
 * Returns: whether it was the device that failed, and the CPU may go on:
 *   `backend` is `auto`, and downstream does not wait for CUDAMemory
 */
GST_IMAGING_API
gboolean gst_imaging_engine_can_fall_back (
    GstImagingEngine *self, ImkStatus status);

/**
 * gst_imaging_engine_fall_back: (skip)
 *
 * Opens the kernel on the CPU, which stays so until the next start.
 * gst_imaging_engine_post_fall_back() goes with it.
 * Returns: IMK_OK, or an error that has not been posted
 */
GST_IMAGING_API
ImkStatus gst_imaging_engine_fall_back (
    GstImagingEngine *self, ImkError *error);

/**
 * gst_imaging_engine_try_cpu: (skip)
 * @status: of work between frames, such as new settings
 * @error: (inout): its error
 *
 * If gst_imaging_engine_can_fall_back(), opens the kernel on the CPU and posts
 * the warning.
 * Returns: @status, or that of the CPU; an error has not been posted
 */
GST_IMAGING_API
ImkStatus gst_imaging_engine_try_cpu (
    GstImagingEngine *self, ImkStatus status, ImkError *error);

/**
 * gst_imaging_engine_post_fall_back: (skip)
 * @why: how the device failed
 * @frame_lost: whether the frame at hand is lost
 *
 * Posts the warning, once with every gst_imaging_engine_fall_back().
 */
GST_IMAGING_API
void gst_imaging_engine_post_fall_back (
    GstImagingEngine *self, const ImkError *why, gboolean frame_lost);

/**
 * gst_imaging_engine_is_lost: (skip)
 * @input: a frame
 * @status: what the work on it has ended with
 *
 * Returns: whether nobody can read it any more: a frame of a device that was
 *   given up
 */
GST_IMAGING_API
gboolean gst_imaging_engine_is_lost (
    GstImagingEngine *self, GstBuffer *input, ImkStatus status);

/**
 * gst_imaging_engine_post_error: (skip)
 *
 * Posts @error, once for one cause, as upstream retries what failed to
 * negotiate.
 */
GST_IMAGING_API
void gst_imaging_engine_post_error (
    GstImagingEngine *self, ImkStatus status, const ImkError *error);

G_END_DECLS
