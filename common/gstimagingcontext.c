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
  ImkStatus status = self->device->info (self->device_id, &self->info, error);

  if (status == IMK_OK)
    status = gst_imaging_context_push (self, error);
  if (status != IMK_OK)
    return status;
  status = self->device->stream_new (&self->stream, error);
  gst_imaging_context_pop (self);
  return status;
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
  g_mutex_lock (&contexts_lock);
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
  g_mutex_unlock (&contexts_lock);
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

static ImkStatus
parse_id (const gchar *word, gint n_devices, gint *id, ImkError *error)
{
  gchar *end;
  gint64 value = g_ascii_strtoll (word, &end, 10);

  if (end == word || *end)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "cuda-devices has \"%s\"; write numbers of devices, as 0;1, or all.",
        word);
  if (value < 0 || value >= n_devices)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "cuda-devices has %s, but this machine has %d CUDA device%s; they are "
        "counted from 0.",
        word, n_devices, n_devices == 1 ? "" : "s");
  *id = (gint) value;
  return IMK_OK;
}

GArray *
gst_imaging_context_parse_ids (const gchar *list, ImkError *error)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (gint));
  gchar **words = g_strsplit_set (list, ";,", -1);
  gboolean all = g_ascii_strcasecmp (list, "all") == 0;
  const ImkDevice *device;
  gint n_devices = 0;
  ImkStatus status = imk_backend_load ("cuda", error);

  if (status == IMK_OK)
    status = imk_device_get (&device, error);
  if (status == IMK_OK)
    status = device->count (&n_devices, error);
  for (gint id = 0; all && id < n_devices; id++)
    g_array_append_val (ids, id);
  for (guint i = 0; !all && words[i] && status == IMK_OK; i++) {
    gint id = 0;

    status = parse_id (g_strstrip (words[i]), n_devices, &id, error);
    if (status == IMK_OK && !contains (ids, id))
      g_array_append_val (ids, id);
  }
  g_strfreev (words);
  if (status != IMK_OK)
    g_clear_pointer (&ids, g_array_unref);
  return ids;
}

/* --- the context --------------------------------------------------------- */

ImkStatus
gst_imaging_context_push (GstImagingContext *self, ImkError *error)
{
  return self->device->push (self->handle, error);
}

void
gst_imaging_context_pop (GstImagingContext *self)
{
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
