/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingengine-private.h"

#include <string.h>

#include "gstimaging-private.h"
#include "gstimagingnvmm.h"
#include "gstimagingpost.h"
#include "gstimagingpicture.h"
#include "gstimagingquantity.h"

#define DEFAULT_BACKEND GST_IMAGING_BACKEND_AUTO
#define DEFAULT_CUDA_DEVICE_ID -1
#define DEFAULT_N_THREADS 0

enum {
  PROP_0,
  PROP_BACKEND,
  PROP_CUDA_DEVICE_ID,
  PROP_N_THREADS,
  PROP_ACTIVE_BACKEND,
  PROP_ACTIVE_MEMORY,
  PROP_STATS,
};

G_STATIC_ASSERT (PROP_STATS == GST_IMAGING_ENGINE_N_PROPERTIES);

GstImagingEngine *
gst_imaging_engine_new (GstElement *element, const GstImagingEngineFuncs *funcs)
{
  GstImagingEngine *self = g_new0 (GstImagingEngine, 1);

  self->element = element;
  self->funcs = funcs;
  self->choice = DEFAULT_BACKEND;
  self->device_id = DEFAULT_CUDA_DEVICE_ID;
  self->first_device = -1;
  self->n_threads = DEFAULT_N_THREADS;
  self->stats = gst_imaging_stats_new ();
  return self;
}

void
gst_imaging_engine_free (GstImagingEngine *self)
{
  if (!self)
    return;
  g_clear_object (&self->offered);
  gst_imaging_stats_unref (self->stats);
  g_free (self);
}

/* --- properties ---------------------------------------------------------- */

void
gst_imaging_engine_install_properties (GObjectClass *klass)
{
  const GParamFlags fixed =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;
  const GParamFlags readable = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;

  gst_imaging_init_debug ();
  g_object_class_install_property (klass, PROP_BACKEND,
      g_param_spec_enum ("backend", "Backend",
          "Where frames are processed. auto: on the GPU if frames already are "
          "in GPU memory or the GPU is estimated to be faster; otherwise, or "
          "if the GPU fails, on the CPU",
          GST_TYPE_IMAGING_BACKEND_CHOICE, DEFAULT_BACKEND, fixed));
  g_object_class_install_property (klass, PROP_CUDA_DEVICE_ID,
      g_param_spec_int ("cuda-device-id", "CUDA device ID",
          "Number of the GPU, from 0. -1: the one that the application or a "
          "neighbouring element uses, otherwise the first",
          -1, G_MAXINT, DEFAULT_CUDA_DEVICE_ID, fixed));
  g_object_class_install_property (klass, PROP_N_THREADS,
      g_param_spec_uint ("n-threads", "Threads",
          "Largest number of CPU threads; 0: one per processor. Results do not "
          "depend on it",
          0, 1024, DEFAULT_N_THREADS, fixed));
  g_object_class_install_property (klass, PROP_ACTIVE_BACKEND,
      g_param_spec_string ("active-backend", "Active backend",
          "Where the last frame was processed: cpu or cuda", "cpu", readable));
  g_object_class_install_property (klass, PROP_ACTIVE_MEMORY,
      g_param_spec_string ("active-memory", "Active memory",
          "Memory of the last input frame: system, pinned, device, CUDAMemory, "
          "NVMM, or NVMM-array (which the GPU first copies into linear "
          "memory). none before the first frame",
          "none", readable));
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Counters since the element started: frames, lost-frames, "
          "frames-missing (frames that never arrived), bytes-uploaded, "
          "bytes-downloaded (output, whichever element mapped it), "
          "bytes-copied (host to host); time-p50, time-p99, time-max: time of "
          "a frame in the element in microseconds; replans (kernels made for "
          "new settings) and longest-replan-us",
          GST_TYPE_STRUCTURE, readable));
  gst_type_mark_as_plugin_api (GST_TYPE_IMAGING_BACKEND_CHOICE, 0);
}

gboolean
gst_imaging_engine_set_property (
    GstImagingEngine *self, guint id, const GValue *value)
{
  const gchar *changed = NULL;
  gboolean known = TRUE, late;

  GST_OBJECT_LOCK (self->element);
  switch (id) {
  case PROP_BACKEND:
    if ((gint) self->choice != g_value_get_enum (value))
      changed = "backend";
    self->choice = g_value_get_enum (value);
    break;
  case PROP_CUDA_DEVICE_ID:
    if (self->device_id != g_value_get_int (value))
      changed = "cuda-device-id";
    self->device_id = g_value_get_int (value);
    break;
  case PROP_N_THREADS:
    if (self->n_threads != g_value_get_uint (value))
      changed = "n-threads";
    self->n_threads = g_value_get_uint (value);
    break;
  default:
    known = FALSE;
    break;
  }
  late = changed && !self->said_late &&
         GST_STATE (self->element) > GST_STATE_READY;
  self->said_late |= late;
  GST_OBJECT_UNLOCK (self->element);
  if (late)
    GST_ELEMENT_WARNING (self->element, LIBRARY, SETTINGS,
        ("%s was set after the start; it counts for certain only from the next "
         "one. Set it in the state NULL or READY.",
            changed),
        (NULL));
  return known;
}

gboolean
gst_imaging_engine_get_property (
    GstImagingEngine *self, guint id, GValue *value)
{
  gboolean known = TRUE;

  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  switch (id) {
  case PROP_BACKEND:
    g_value_set_enum (value, self->choice);
    break;
  case PROP_CUDA_DEVICE_ID:
    g_value_set_int (value, self->device_id);
    break;
  case PROP_N_THREADS:
    g_value_set_uint (value, self->n_threads);
    break;
  case PROP_ACTIVE_BACKEND:
    g_value_set_static_string (
        value, self->active == IMK_BACKEND_CUDA ? "cuda" : "cpu");
    break;
  case PROP_ACTIVE_MEMORY:
    g_value_set_static_string (
        value, self->active_memory ? self->active_memory : "none");
    break;
  case PROP_STATS:
    g_value_take_boxed (value, gst_imaging_stats_to_structure (self->stats));
    break;
  default:
    known = FALSE;
    break;
  }
  return known;
}

GstImagingBackendChoice
gst_imaging_engine_choice (GstImagingEngine *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  return self->choice;
}

guint
gst_imaging_engine_n_threads (GstImagingEngine *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  return self->n_threads;
}

/* --- the kernel ---------------------------------------------------------- */

GstImagingContext *
gst_imaging_engine_kernel_context (GstImagingEngine *self)
{
  return gst_imaging_engine_is_on_cuda (self) ? self->context : NULL;
}

static void
close_kernel (GstImagingEngine *self)
{
  GstImagingContext *context = gst_imaging_engine_kernel_context (self);
  gboolean pushed = gst_imaging_context_push (context, NULL) == IMK_OK;

  if (self->is_open)
    self->funcs->close (self->element);
  GST_OBJECT_LOCK (self->element);
  self->is_open = FALSE;
  GST_OBJECT_UNLOCK (self->element);
  if (pushed)
    gst_imaging_context_pop (context);
}

typedef struct {
  GstImagingEngine *engine;
  ImkBackend backend;
} Opening;

static ImkStatus
call_open (gpointer data, ImkError *error)
{
  const Opening *opening = data;
  GstImagingEngine *self = opening->engine;

  return self->funcs->open (
      self->element, opening->backend, &self->format.info, error);
}

static ImkStatus
open_kernel (GstImagingEngine *self, ImkBackend backend, ImkError *error)
{
  Opening opening = {self, backend};
  GstImagingContext *context = NULL;
  ImkStatus status = IMK_OK;

  close_kernel (self);
  if (backend == IMK_BACKEND_CUDA) {
    status = gst_imaging_engine_open_device (self, error);
    context = self->context;
  }
  if (status == IMK_OK)
    status = gst_imaging_context_push (context, error);
  if (status != IMK_OK)
    return status;
  status = self->settings ? gst_imaging_settings_try (
                                self->settings, call_open, &opening, error)
                          : call_open (&opening, error);
  gst_imaging_context_pop (context);
  if (status != IMK_OK)
    return status;

  g_atomic_int_set (&self->has_posted, FALSE);
  GST_OBJECT_LOCK (self->element);
  self->is_open = TRUE;
  self->active = backend;
  GST_OBJECT_UNLOCK (self->element);
  GST_INFO_OBJECT (self->element,
      "frames of %" GST_PTR_FORMAT " are processed on %s", self->format.caps,
      context ? gst_imaging_context_info (context)->name : "the CPU");
  return IMK_OK;
}

ImkStatus
gst_imaging_engine_ensure_open (GstImagingEngine *self, ImkError *error)
{
  if (!self->format.caps)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "No caps have been accepted yet.");
  return self->is_open ? IMK_OK : open_kernel (self, self->active, error);
}

ImkStatus
gst_imaging_engine_renew (GstImagingEngine *self, ImkError *error)
{
  Opening opening = {self, self->active};

  if (!self->is_open)
    return IMK_OK; /* the next frame opens it */
  GST_IMAGING_ENTER (gst_imaging_engine_kernel_context (self), error);
  return call_open (&opening, error);
}

gboolean
gst_imaging_engine_is_open (GstImagingEngine *self)
{
  return self->is_open;
}

gboolean
gst_imaging_engine_is_on_cuda (GstImagingEngine *self)
{
  return self->is_open && self->active == IMK_BACKEND_CUDA;
}

GstImagingOrigin
gst_imaging_engine_origin (GstImagingEngine *self)
{
  return (GstImagingOrigin){
      .element = self->element_name,
      .backend = gst_imaging_engine_is_on_cuda (self) ? "cuda" : "cpu",
      .settings_hash =
          self->settings ? gst_imaging_settings_hash (self->settings) : NULL,
  };
}

void
gst_imaging_engine_sign (GstImagingEngine *self, GstBuffer *image)
{
  const GstImagingOrigin origin = gst_imaging_engine_origin (self);

  gst_imaging_quantity_sign (image, &origin);
}

/* --- failures ------------------------------------------------------------ */

void
gst_imaging_engine_post_error (
    GstImagingEngine *self, ImkStatus status, const ImkError *error)
{
  if (g_atomic_int_compare_and_exchange (&self->has_posted, FALSE, TRUE))
    gst_imaging_post_status (self->element, status, error);
}

static gboolean
is_device_failure (ImkStatus status)
{
  return status == IMK_ERROR_DEVICE || status == IMK_ERROR_MEMORY ||
         status == IMK_ERROR_UNAVAILABLE;
}

static gboolean
is_nvmm (GstImagingEngine *self)
{
  return self->format.in_memory == GST_IMAGING_CAPS_NVMM ||
         self->format.out_memory == GST_IMAGING_CAPS_NVMM;
}

/* The CPU cannot make frames in memory of a device, and cannot read NVMM. */
static gboolean
may_use_cpu (GstImagingEngine *self)
{
  return gst_imaging_engine_choice (self) == GST_IMAGING_BACKEND_AUTO &&
         self->format.out_memory == GST_IMAGING_CAPS_SYSTEM && !is_nvmm (self);
}

gboolean
gst_imaging_engine_can_fall_back (GstImagingEngine *self, ImkStatus status)
{
  return self->active == IMK_BACKEND_CUDA && is_device_failure (status) &&
         may_use_cpu (self);
}

static void
reconfigure (GstImagingEngine *self)
{
  if (self->funcs->reconfigure)
    self->funcs->reconfigure (self->element);
}

ImkStatus
gst_imaging_engine_fall_back (GstImagingEngine *self, ImkError *error)
{
  self->gave_up = TRUE;
  reconfigure (self);
  return open_kernel (self, IMK_BACKEND_CPU, error);
}

void
gst_imaging_engine_post_fall_back (
    GstImagingEngine *self, const ImkError *why, gboolean frame_lost)
{
  GST_ELEMENT_WARNING (self->element, LIBRARY, FAILED,
      ("CUDA cannot be used any more, the CPU goes on.%s %s",
          frame_lost ? " One frame that was only on the device is lost." : "",
          why->message),
      (NULL));
}

/* @error: (inout) */
static ImkStatus
go_on_without_device (GstImagingEngine *self, ImkError *error)
{
  const ImkError why = *error;
  ImkStatus status = gst_imaging_engine_fall_back (self, error);

  gst_imaging_engine_post_fall_back (self, &why, FALSE);
  return status;
}

ImkStatus
gst_imaging_engine_try_cpu (
    GstImagingEngine *self, ImkStatus status, ImkError *error)
{
  return gst_imaging_engine_can_fall_back (self, status)
             ? go_on_without_device (self, error)
             : status;
}

static gboolean
is_on_device (GstBuffer *buffer)
{
  GstMemory *memory = gst_imaging_buffer_peek_memory (buffer);

  return memory && gst_imaging_memory_is_on_device (memory);
}

gboolean
gst_imaging_engine_is_lost (
    GstImagingEngine *self, GstBuffer *input, ImkStatus status)
{
  return is_device_failure (status) && self->gave_up && is_on_device (input);
}

/* --- the choice of a backend --------------------------------------------- */

static gboolean
should_use_cuda (GstImagingEngine *self)
{
  switch (gst_imaging_engine_choice (self)) {
  case GST_IMAGING_BACKEND_CPU:
    return FALSE;
  case GST_IMAGING_BACKEND_CUDA:
    return TRUE;
  default:
    break;
  }
  if (self->format.in_memory != GST_IMAGING_CAPS_SYSTEM ||
      self->format.out_memory != GST_IMAGING_CAPS_SYSTEM)
    return TRUE;
  return !self->gave_up && self->funcs->prefers_cuda &&
         self->funcs->prefers_cuda (self->element, &self->format.info) &&
         (self->ahead != IMK_OK || /* a failure to be reported */
             imk_backend_load ("cuda", NULL) == IMK_OK);
}

gboolean
gst_imaging_engine_will_open_device (GstImagingEngine *self)
{
  return !self->stream && should_use_cuda (self);
}

/* Device memory in the caps leaves no choice of a backend. */
static void
mend_advice (GstImagingEngine *self, ImkError *error)
{
  gchar *at = strstr (error->message, "use backend=cpu.");

  if (at && (self->format.in_memory != GST_IMAGING_CAPS_SYSTEM ||
                self->format.out_memory != GST_IMAGING_CAPS_SYSTEM))
    g_strlcpy (at,
        is_nvmm (self) ? "take memory:NVMM out of the caps."
                       : "take memory:CUDAMemory out of the caps.",
        sizeof (error->message) - (at - error->message));
}

/* Opens the kernel for new caps where it should be, or else may be. */
static gboolean
open_for_caps (GstImagingEngine *self)
{
  ImkBackend backend =
      should_use_cuda (self) ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU;
  ImkError error;
  ImkStatus status = open_kernel (self, backend, &error);

#ifdef HAVE_NVMM
  /* now, and not when there is no frame to put a result into */
  if (status == IMK_OK && self->format.out_memory == GST_IMAGING_CAPS_NVMM &&
      self->format.in_memory != GST_IMAGING_CAPS_NVMM &&
      !gst_imaging_nvmm_library (&error))
    status = IMK_ERROR_UNAVAILABLE;
#endif
  if (backend == IMK_BACKEND_CUDA && is_device_failure (status) &&
      may_use_cpu (self))
    status = go_on_without_device (self, &error);
  if (status != IMK_OK) {
    mend_advice (self, &error);
    gst_imaging_engine_post_error (self, status, &error);
  }
  return status == IMK_OK;
}

GstCaps *
gst_imaging_engine_usable_caps (GstImagingEngine *self, GstCaps *caps)
{
  return gst_imaging_engine_choice (self) == GST_IMAGING_BACKEND_CPU
             ? gst_imaging_caps_keep_system (caps)
             : gst_imaging_caps_keep_built (caps);
}

gboolean
gst_imaging_engine_set_caps (
    GstImagingEngine *self, GstCaps *in_caps, GstCaps *out_caps)
{
  const gchar *name =
      gst_structure_get_name (gst_caps_get_structure (in_caps, 0));
  Format before = self->format;
  ImkStatus status = IMK_OK;
  ImkError error;
  gboolean ok;

  close_kernel (self);
  gst_video_info_init (&self->format.info); /* what is no video has none */
  if (g_str_has_prefix (name, "video/")) {
    if (!gst_imaging_video_info_from_caps (&self->format.info, in_caps))
      status = imk_error_set (&error, IMK_ERROR_IMAGE,
          "The caps are not those of video, or frames have 4 GiB or more, "
          "which cannot be taken. Use smaller frames.");
  } else if (self->funcs->carrier) {
    status = self->funcs->carrier (
        self->element, in_caps, &self->format.info, &error);
  }
  if (status != IMK_OK) {
    GST_INFO_OBJECT (self->element, "refused: %" GST_PTR_FORMAT, in_caps);
    gst_imaging_engine_post_error (self, status, &error);
    self->format = before;
    return FALSE;
  }
  self->format.caps = gst_caps_ref (in_caps);
  self->format.in_memory = gst_imaging_caps_memory (in_caps);
  self->format.out_memory =
      out_caps ? gst_imaging_caps_memory (out_caps) : GST_IMAGING_CAPS_SYSTEM;
  gst_imaging_engine_close_import_pool (self);
  if (is_nvmm (self))
    gst_imaging_engine_prefer_primary (self);
  ok = open_for_caps (self);
  /* Caps that are refused leave those before in force: the base class does not
   * set them again. */
  if (!ok) {
    gst_caps_unref (self->format.caps);
    self->format = before;
  } else if (before.caps) {
    gst_caps_unref (before.caps);
  }
  return ok;
}

const GstVideoInfo *
gst_imaging_engine_info (GstImagingEngine *self)
{
  return &self->format.info;
}

gboolean
gst_imaging_engine_follow (GstImagingEngine *self, GstBuffer *input)
{
  ImkError error;
  ImkStatus status;

  if (!self->is_open || self->active == IMK_BACKEND_CUDA || self->gave_up ||
      gst_imaging_engine_choice (self) != GST_IMAGING_BACKEND_AUTO ||
      !is_on_device (input))
    return TRUE;
  gst_imaging_engine_adopt_context (self, input);
  status = open_kernel (self, IMK_BACKEND_CUDA, &error);
  if (is_device_failure (status))
    status = go_on_without_device (self, &error);
  reconfigure (self);
  if (status != IMK_OK)
    gst_imaging_engine_post_error (self, status, &error);
  return status == IMK_OK;
}

/* --- counting ------------------------------------------------------------ */

void
gst_imaging_engine_note_memory (
    GstImagingEngine *self, const gchar *memory_name)
{
  gboolean changed;

  GST_OBJECT_LOCK (self->element);
  changed = g_strcmp0 (self->active_memory, memory_name) != 0;
  self->active_memory = memory_name;
  GST_OBJECT_UNLOCK (self->element);
  if (changed)
    GST_INFO_OBJECT (
        self->element, "input frames are in %s memory", memory_name);
}

GstImagingStats *
gst_imaging_engine_stats (GstImagingEngine *self)
{
  return self->stats;
}

void
gst_imaging_engine_count_frame (GstImagingEngine *self, GstClockTime entered)
{
  /* what fails next has another cause */
  g_atomic_int_set (&self->has_posted, FALSE);
  gst_imaging_stats_add_frame (
      self->stats, gst_util_get_timestamp () - entered);
}

void
gst_imaging_engine_count_lost (GstImagingEngine *self)
{
  gst_imaging_stats_add_lost (self->stats);
}

/* --- start and stop ------------------------------------------------------ */

gboolean
gst_imaging_engine_start (GstImagingEngine *self)
{
  ImkError error;
  ImkStatus status;

  self->element_name = gst_imaging_origin_element (self->element);
  gst_imaging_stats_reset (self->stats);
  self->gave_up = FALSE;
  self->ahead = IMK_OK;
  g_atomic_int_set (&self->has_posted, FALSE);
  GST_OBJECT_LOCK (self->element); /* properties may be asked for */
  self->said_late = FALSE;
  self->active_memory = NULL;
  GST_OBJECT_UNLOCK (self->element);
  if (self->settings)
    gst_imaging_settings_start (self->settings);
  if (gst_imaging_engine_choice (self) != GST_IMAGING_BACKEND_CUDA ||
      self->funcs->opens_ahead)
    return TRUE;
  /* Report a missing device before the first frame. */
  status = gst_imaging_engine_open_device (self, &error);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self, status, &error);
    gst_imaging_engine_close_device (
        self); /* nobody stops what did not start */
  }
  return status == IMK_OK;
}

void
gst_imaging_engine_stop (GstImagingEngine *self)
{
  close_kernel (self);
  gst_imaging_engine_close_device (self);
  gst_clear_caps (&self->format.caps);
}
