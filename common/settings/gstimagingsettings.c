/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The transaction: properties that were set are tried, then used or rejected.
 */
#include "gstimagingengine-private.h"
#include "gstimagingsettings-private.h"
#include "gstimagingstream.h"

#include <string.h>

static GQuark
settings_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-settings");
}

/* --- copies --------------------------------------------------------------- */

static gpointer
copy (GstImagingSettings *self, gconstpointer from)
{
  gpointer to = g_memdup2 (from, self->table->size);

  FOR_EACH (setting, self)
  {
    memset ((guint8 *) to + setting->offset, 0, setting->size);
    gst_imaging_setting_copy (setting, to, from);
  }
  return to;
}

static gpointer
make_defaults (const GstImagingSettingsTable *table)
{
  gpointer defaults = g_malloc0 (table->size);

  table->init (defaults);
  return defaults;
}

gpointer
gst_imaging_settings_copy (GstImagingSettings *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  return copy (self, self->wanted);
}

gpointer
gst_imaging_settings_copy_now (GstImagingSettings *self)
{
  return copy (self, self->now);
}

void
gst_imaging_settings_free_copy (GstImagingSettings *self, gpointer settings)
{
  if (!settings)
    return;
  FOR_EACH (setting, self)
  gst_imaging_setting_clear (setting, settings);
  g_free (settings);
}

gconstpointer
gst_imaging_settings_now (GstImagingSettings *self)
{
  return self->now;
}

/* --- trying --------------------------------------------------------------- */

static gboolean
is_rejection (ImkStatus status)
{
  return status != IMK_OK && status != IMK_ERROR_DEVICE &&
         status != IMK_ERROR_UNAVAILABLE;
}

ImkStatus
gst_imaging_settings_check_files (
    GstImagingSettings *self, gconstpointer settings, ImkError *error)
{
  FOR_EACH (setting, self)
  {
    const GstImagingFile *file =
        setting->kind == GST_IMAGING_KIND_PATH
            ? G_STRUCT_MEMBER (GstImagingFile *, settings, setting->offset)
            : NULL;

    if (file && file->status != IMK_OK) {
      if (error)
        *error = file->error;
      return file->status;
    }
  }
  return IMK_OK;
}

/* Returns: (transfer full): the settings in use, with those that were set and
 * take effect at @boundary */
static gpointer
take (GstImagingSettings *self, GstImagingWhen boundary)
{
  gpointer result = copy (self, self->now);

  self->boundary = boundary;
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  FOR_EACH (setting, self)
  {
    gsize i = (gsize) (setting - self->table->settings);

    if (setting->when > boundary)
      continue;
    gst_imaging_setting_copy (setting, result, self->wanted);
    self->taken_at[i] = self->set_at[i];
  }
  self->serial_frame = (guint) g_atomic_int_get (&self->serial);
  if (boundary > GST_IMAGING_WHEN_LIVE)
    self->serial_set = self->serial_frame;
  return result;
}

/* Without values that were rejected before, so that one wrong value does not
 * stop the others from changing.
 * @rejected: of take ()
 * Returns: (transfer full) */
static gpointer
take_new (GstImagingSettings *self, gconstpointer rejected)
{
  gpointer result = copy (self, self->now);

  FOR_EACH (setting, self)
  {
    gsize i = (gsize) (setting - self->table->settings);

    if (gst_imaging_setting_is_equal (setting, self->now, rejected))
      continue;
    if (self->taken_at[i] != self->rejected_at[i])
      gst_imaging_setting_copy (setting, result, rejected);
  }
  return result;
}

/* The values of @rejected that are not in use are no longer new. */
static void
note_rejected (GstImagingSettings *self, gconstpointer rejected)
{
  FOR_EACH (setting, self)
  {
    gsize i = (gsize) (setting - self->table->settings);

    if (!gst_imaging_setting_is_equal (setting, self->now, rejected))
      self->rejected_at[i] = self->taken_at[i];
  }
}

static gboolean
differ (GstImagingSettings *self, gconstpointer a, gconstpointer b)
{
  FOR_EACH (setting, self)
  if (!gst_imaging_setting_is_equal (setting, a, b))
    return TRUE;
  return FALSE;
}

guint
gst_imaging_settings_groups_of_change (
    GstImagingSettings *self, gconstpointer a, gconstpointer b)
{
  guint groups = 0;

  FOR_EACH (setting, self)
  if (!gst_imaging_setting_is_equal (setting, a, b))
    groups |= setting->groups;
  return groups;
}

/* Takes @candidate over, or leaves all as it was. */
static ImkStatus
apply (GstImagingSettings *self, gpointer candidate, ImkError *error)
{
  guint groups =
      gst_imaging_settings_groups_of_change (self, self->now, candidate);
  gpointer before = self->now;
  GstClockTime began = gst_util_get_timestamp ();
  ImkStatus status = gst_imaging_settings_check_files (self, candidate, error);

  self->now = candidate;
  if (status == IMK_OK && self->table->apply)
    status = self->table->apply (
        self->element, self->in_use ? before : NULL, groups, error);
  else if (status == IMK_OK && self->table->has_engine)
    status = gst_imaging_engine_renew (self->engine, error);
  if (status != IMK_OK) {
    self->now = before;
    return status;
  }
  if (self->in_use && self->engine && groups & self->table->replan)
    gst_imaging_stats_add_replan (gst_imaging_engine_stats (self->engine),
        gst_util_get_timestamp () - began);
  if (self->in_use)
    gst_imaging_settings_tell_accepted (self, before);
  self->in_use = TRUE;
  gst_imaging_settings_free_copy (self, before);
  gst_imaging_settings_update_hash (self);
  return IMK_OK;
}

static ImkStatus
apply_in_context (GstImagingSettings *self, gpointer candidate, ImkError *error)
{
  GstImagingContext *context =
      self->engine ? gst_imaging_engine_kernel_context (self->engine) : NULL;

  GST_IMAGING_ENTER (context, error);
  return apply (self, candidate, error);
}

/* After a rejection for @why: applies only the new values of @rejected.
 * Returns: IMK_OK, or the failure of the device */
static ImkStatus
apply_new (GstImagingSettings *self, gconstpointer rejected, ImkError *why)
{
  gpointer candidate = take_new (self, rejected);
  gboolean is_new = differ (self, self->now, candidate);
  ImkStatus status = why->code;

  gst_imaging_settings_note_invalid (self);
  if (is_new && differ (self, candidate, rejected))
    status = apply_in_context (self, candidate, why);
  if (status == IMK_OK || is_rejection (status))
    note_rejected (self, rejected);
  if (is_new && status == IMK_OK)
    return IMK_OK;
  if (is_new && is_rejection (status))
    gst_imaging_settings_tell_rejected (self, candidate, why);
  gst_imaging_settings_free_copy (self, candidate);
  return is_rejection (status) ? IMK_OK : status;
}

ImkStatus
gst_imaging_settings_update (GstImagingSettings *self, GstImagingWhen boundary,
    GstClockTime time, ImkError *error)
{
  guint *seen = boundary == GST_IMAGING_WHEN_LIVE ? &self->serial_frame
                                                  : &self->serial_set;
  gpointer candidate;
  ImkStatus status;
  ImkError why;

  if (GST_CLOCK_TIME_IS_VALID (time))
    gst_object_sync_values (GST_OBJECT (self->element), time);
  if (self->in_use ? *seen == (guint) g_atomic_int_get (&self->serial)
                   : self->engine != NULL)
    return IMK_OK; /* an engine opens with new caps */
  candidate =
      take (self, self->in_use ? boundary : GST_IMAGING_WHEN_NEXT_START);
  if (self->in_use && !differ (self, self->now, candidate)) {
    gst_imaging_settings_note_valid (self); /* the old value was set again */
    gst_imaging_settings_free_copy (self, candidate);
    return IMK_OK;
  }
  status = apply_in_context (self, candidate, &why);
  if (status == IMK_OK) {
    gst_imaging_settings_note_valid (self);
    return IMK_OK;
  }
  if (self->in_use && is_rejection (status))
    status = apply_new (self, candidate, &why);
  if (status != IMK_OK) {
    g_atomic_int_inc (&self->serial); /* try again */
    if (error)
      *error = why;
  }
  gst_imaging_settings_free_copy (self, candidate);
  return status;
}

gboolean
gst_imaging_settings_take (
    GstImagingSettings *self, GstImagingWhen boundary, GstClockTime time)
{
  ImkError error;
  ImkStatus status = gst_imaging_settings_update (self, boundary, time, &error);

  status = gst_imaging_engine_try_cpu (self->engine, status, &error);
  if (status != IMK_OK)
    gst_imaging_engine_post_error (self->engine, status, &error);
  return status == IMK_OK;
}

GstClockTime
gst_imaging_settings_stream_time (GstPad *pad, GstBuffer *buffer)
{
  g_autoptr (GstEvent) event =
      gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  const GstSegment *segment;

  if (!event)
    return GST_CLOCK_TIME_NONE;
  gst_event_parse_segment (event, &segment);
  return gst_imaging_stream_time (segment, buffer);
}

/* @now is @candidate during the call. */
static ImkStatus
open_with (GstImagingSettings *self, gpointer candidate,
    ImkStatus (*open) (gpointer data, ImkError *error), gpointer data,
    ImkError *error)
{
  ImkStatus status;
  gpointer before = self->now;

  IMK_TRY (gst_imaging_settings_check_files (self, candidate, error));
  self->now = candidate;
  status = open (data, error);
  self->now = before;
  return status;
}

/* Takes @candidate (transfer full) if @open accepts it. */
static ImkStatus
try_one (GstImagingSettings *self, gpointer candidate,
    ImkStatus (*open) (gpointer data, ImkError *error), gpointer data,
    ImkError *error)
{
  ImkStatus status = open_with (self, candidate, open, data, error);
  gpointer before = self->now;

  if (status != IMK_OK) {
    gst_imaging_settings_free_copy (self, candidate);
    return status;
  }
  self->now = candidate;
  if (self->in_use && differ (self, before, candidate))
    gst_imaging_settings_tell_accepted (self, before);
  self->in_use = TRUE;
  gst_imaging_settings_free_copy (self, self->before);
  self->before = before;
  gst_imaging_settings_update_hash (self);
  return IMK_OK;
}

ImkStatus
gst_imaging_settings_try (GstImagingSettings *self,
    ImkStatus (*open) (gpointer data, ImkError *error), gpointer data,
    ImkError *error)
{
  gpointer all = take (self,
      self->in_use ? GST_IMAGING_WHEN_NEXT_SET : GST_IMAGING_WHEN_NEXT_START);
  gboolean changed = differ (self, self->now, all);
  ImkError first, why, ignored;
  ImkStatus status, last;
  gpointer tried;

  status = try_one (self, copy (self, all), open, data, &first);
  if (status == IMK_OK) {
    gst_imaging_settings_note_valid (self);
  } else if (self->in_use && changed && is_rejection (status)) {
    why = first;
    tried = take_new (self, all);
    last = differ (self, tried, all)
               ? try_one (self, copy (self, tried), open, data, &why)
               : status;
    if (last == IMK_OK) {
      gst_imaging_settings_note_invalid (self);
    } else if (differ (self, self->now, tried)) {
      last = try_one (self, copy (self, self->now), open, data, &ignored);
      if (last == IMK_OK)
        gst_imaging_settings_tell_rejected (self, tried, &why);
    }
    if (last == IMK_OK)
      note_rejected (self, all);
    gst_imaging_settings_free_copy (self, tried);
    status = last == IMK_OK ? IMK_OK : status;
  }
  if (status != IMK_OK) {
    if (error)
      *error = first;
    gst_imaging_settings_set_valid (self, !is_rejection (status));
  }
  gst_imaging_settings_free_copy (self, all);
  return status;
}

/* Without the object lock: reading may take a while. */
static void
retry_file (GstImagingSettings *self, const GstImagingSetting *setting)
{
  gpointer staged = g_malloc0 (self->table->size), old;

  GST_OBJECT_LOCK (self->element);
  gst_imaging_setting_copy (setting, staged, self->wanted);
  GST_OBJECT_UNLOCK (self->element);
  old = G_STRUCT_MEMBER (gpointer, staged, setting->offset);
  if (gst_imaging_setting_retry (setting, staged)) {
    GST_OBJECT_LOCK (self->element);
    /* unless another path was set meanwhile */
    if (G_STRUCT_MEMBER (gpointer, self->wanted, setting->offset) == old)
      gst_imaging_setting_copy (setting, self->wanted, staged);
    GST_OBJECT_UNLOCK (self->element);
  }
  gst_imaging_setting_clear (setting, staged);
  g_free (staged);
}

void
gst_imaging_settings_start (GstImagingSettings *self)
{
  self->in_use = FALSE;
  self->told_rejection = FALSE;
  FOR_EACH (setting, self)
  if (setting->kind == GST_IMAGING_KIND_PATH)
    retry_file (self, setting);
  GST_IMAGING_HOLD (&self->lock);
  g_hash_table_remove_all (self->sentences);
}

/* --- the object ----------------------------------------------------------- */

static void
settings_free (gpointer data)
{
  GstImagingSettings *self = data;

  gst_imaging_settings_free_copy (self, self->wanted);
  gst_imaging_settings_free_copy (self, self->now);
  gst_imaging_settings_free_copy (self, self->before);
  g_free (self->hash);
  g_free (self->set_at);
  g_free (self->taken_at);
  g_free (self->rejected_at);
  g_hash_table_unref (self->sentences);
  g_mutex_clear (&self->lock);
  g_free (self);
}

GstImagingSettings *
gst_imaging_settings_new (GstElement *element,
    const GstImagingSettingsTable *table, GstImagingEngine *engine)
{
  GstImagingSettings *self = g_new0 (GstImagingSettings, 1);

  self->element = element;
  self->table = table;
  self->engine = engine;
  self->wanted = make_defaults (table);
  self->now = make_defaults (table);
  self->set_at = g_new0 (guint, table->n_settings);
  self->taken_at = g_new0 (guint, table->n_settings);
  self->rejected_at = g_new0 (guint, table->n_settings);
  self->valid = TRUE;
  self->serial = 1;
  g_mutex_init (&self->lock);
  self->sentences =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  if (engine)
    engine->settings = self;
  g_object_set_qdata_full (
      G_OBJECT (element), settings_quark (), self, settings_free);
  return self;
}

GstImagingSettings *
gst_imaging_settings_of (gpointer element)
{
  return g_object_get_qdata (G_OBJECT (element), settings_quark ());
}
