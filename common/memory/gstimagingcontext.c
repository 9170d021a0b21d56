/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingcontext.h"

#include "gstimaging-private.h"

struct _GstImagingContext {
  GObject parent;
  const ImkDevice *device;
  ImkDeviceInfo info;
  gint device_id;
  gpointer handle;
  GObject *owner; /* keeps the handle valid; NULL for a primary context */
  gpointer stream;
};

G_DEFINE_FINAL_TYPE (GstImagingContext, gst_imaging_context, G_TYPE_OBJECT)

/* CUcontext -> GWeakRef: two elements that meet the same context share one
 * object, and so recognise each other's memory. */
static GMutex contexts_lock;
static GHashTable *contexts;

static void
weak_ref_free (gpointer ref)
{
  g_weak_ref_clear (ref);
  g_free (ref);
}

static GstImagingContext *
find_context (gpointer handle)
{
  GWeakRef *ref = contexts ? g_hash_table_lookup (contexts, handle) : NULL;

  return ref ? g_weak_ref_get (ref) : NULL;
}

static void
remember_context (GstImagingContext *self)
{
  GWeakRef *ref = g_new0 (GWeakRef, 1);

  g_weak_ref_init (ref, self);
  if (!contexts)
    contexts = g_hash_table_new_full (NULL, NULL, NULL, weak_ref_free);
  g_hash_table_replace (contexts, self->handle, ref);
}

static ImkStatus
open_context (GstImagingContext *self, ImkError *error)
{
  IMK_TRY (self->device->info (self->device_id, &self->info, error));
  GST_IMAGING_ENTER (self, error);
  return self->device->stream_new (&self->stream, error);
}

GstImagingContext *
gst_imaging_context_get_for_handle (
    gint device_id, gpointer handle, GObject *owner, ImkError *error)
{
  GstImagingContext *self;
  const ImkDevice *device;

  /* the application may bring its context before anybody has asked for one */
  if (imk_backend_load ("cuda", error) != IMK_OK ||
      imk_device_get (&device, error) != IMK_OK) {
    g_clear_object (&owner);
    return NULL;
  }
  GST_IMAGING_HOLD (&contexts_lock);
  self = find_context (handle);
  if (self) {
    g_clear_object (&owner);
  } else {
    self = g_object_new (GST_TYPE_IMAGING_CONTEXT, NULL);
    self->device = device;
    self->device_id = device_id;
    self->handle = handle;
    self->owner = owner;
    if (open_context (self, error) == IMK_OK)
      remember_context (self);
    else
      g_clear_object (&self);
  }
  return self;
}

GstImagingContext *
gst_imaging_context_get (gint device_id, ImkError *error)
{
  const ImkDevice *device;
  gpointer handle;
  gint n_devices = 0;

  if (imk_backend_load ("cuda", error) != IMK_OK ||
      imk_device_get (&device, error) != IMK_OK ||
      device->count (&n_devices, error) != IMK_OK)
    return NULL;
  if (device_id >= n_devices) {
    imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "cuda-device-id is %d, but this machine has %d CUDA device%s; they "
        "are counted from 0.",
        device_id, n_devices, n_devices == 1 ? "" : "s");
    return NULL;
  }
  device_id = MAX (device_id, 0);
  if (device->context (device_id, &handle, error) != IMK_OK)
    return NULL;
  return gst_imaging_context_get_for_handle (device_id, handle, NULL, error);
}

/* --- lists of devices ---------------------------------------------------- */

static gboolean
contains (const GArray *ids, gint id)
{
  for (guint i = 0; i < ids->len; i++)
    if (g_array_index (ids, gint, i) == id)
      return TRUE;
  return FALSE;
}

GArray *
gst_imaging_context_list_ids (
    const gdouble *wanted, guint n_wanted, ImkError *error)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (gint));
  const ImkDevice *device;
  gint n_devices = 0;
  ImkStatus status = imk_backend_load ("cuda", error);

  if (status == IMK_OK)
    status = imk_device_get (&device, error);
  if (status == IMK_OK)
    status = device->count (&n_devices, error);
  for (guint i = 0; i < n_wanted && status == IMK_OK; i++) {
    gint first = (gint) wanted[i], last = first;

    if (first >= n_devices)
      status = imk_error_set (error, IMK_ERROR_UNAVAILABLE,
          "cuda-devices has %d, but this machine has %d CUDA device%s; they are "
          "counted from 0.",
          first, n_devices, n_devices == 1 ? "" : "s");
    if (first == GST_IMAGING_ALL_DEVICES) {
      first = 0;
      last = n_devices - 1;
    }
    for (gint id = first; id <= last && status == IMK_OK; id++)
      if (!contains (ids, id))
        g_array_append_val (ids, id);
  }
  if (status != IMK_OK)
    g_clear_pointer (&ids, g_array_unref);
  return ids;
}

/* --- the context --------------------------------------------------------- */

ImkStatus
gst_imaging_context_push (GstImagingContext *self, ImkError *error)
{
  return self ? self->device->push (self->handle, error) : IMK_OK;
}

void
gst_imaging_context_pop (GstImagingContext *self)
{
  if (self)
    self->device->pop ();
}

const ImkDevice *
gst_imaging_context_device (GstImagingContext *self)
{
  return self->device;
}

const ImkDeviceInfo *
gst_imaging_context_info (GstImagingContext *self)
{
  return &self->info;
}

gint
gst_imaging_context_device_id (GstImagingContext *self)
{
  return self->device_id;
}

gpointer
gst_imaging_context_handle (GstImagingContext *self)
{
  return self->handle;
}

GObject *
gst_imaging_context_owner (GstImagingContext *self)
{
  return self->owner;
}

gpointer
gst_imaging_context_stream (GstImagingContext *self)
{
  return self->stream;
}

static void
gst_imaging_context_finalize (GObject *object)
{
  GstImagingContext *self = GST_IMAGING_CONTEXT (object);

  if (self->stream && gst_imaging_context_push (self, NULL) == IMK_OK) {
    self->device->stream_free (self->stream);
    gst_imaging_context_pop (self);
  }
  g_clear_object (&self->owner);
  G_OBJECT_CLASS (gst_imaging_context_parent_class)->finalize (object);
}

static void
gst_imaging_context_class_init (GstImagingContextClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_imaging_context_finalize;
}

static void
gst_imaging_context_init (GstImagingContext *self)
{
  gst_imaging_init_debug ();
}
