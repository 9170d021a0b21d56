/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The transaction: what was set, what is tried, what is in use. */
#include "gstimagingsettings-private.h"
#include "gstimagingstream.h"

#include <string.h>

/* Sentences whose last time is remembered; more than a user reads. */
#define MAX_SENTENCES 64

struct _GstImagingSettings {
  GstElement *element;
  const GstImagingSettingsTable *table;
  GstImagingEngine *engine; /* (nullable) */

  /* under the object lock */
  gpointer wanted; /* as the properties say */
  guint *set_at;   /* of each setting: @serial after it was set */
  gboolean valid;

  guint serial; /* atomic; counts changes of @wanted */

  /* of the streaming thread */
  gpointer now;     /* in use, or being tried */
  gboolean in_use;  /* @now has been accepted since the start */
  guint serial_set; /* of @wanted when it was last tried at a new set */
  guint serial_frame;
  guint *taken_at;    /* @set_at when @wanted was last taken */
  guint *rejected_at; /* @set_at of the values that were rejected */
  GstClockTime told;  /* when an accepted change was last posted */
  gboolean told_rejection;
  GstImagingWhen boundary;   /* that begins */
  GstImagingWhen invalid_at; /* values of a set stay wrong until the next */

  GMutex lock;           /* of the sentences */
  GHashTable *sentences; /* text -> GstClockTime when it was last posted */
};

static GQuark
settings_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-settings");
}

#define FOR_EACH(setting, table) \
  for (const GstImagingSetting *setting = (table)->settings; \
       setting < (table)->settings + (table)->n_settings; setting++)

/* --- copies --------------------------------------------------------------- */

static gpointer
copy (const GstImagingSettingsTable *table, gconstpointer from)
{
  gpointer to = g_memdup2 (from, table->size);

  FOR_EACH (setting, table)
  {
    memset ((guint8 *) to + setting->offset, 0, setting->size);
    gst_imaging_setting_copy (setting, to, from);
  }
  return to;
}

static void
free_copy (const GstImagingSettingsTable *table, gpointer settings)
{
  if (!settings)
    return;
  FOR_EACH (setting, table)
  gst_imaging_setting_clear (setting, settings);
  g_free (settings);
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
  gpointer result;

  GST_OBJECT_LOCK (self->element);
  result = copy (self->table, self->wanted);
  GST_OBJECT_UNLOCK (self->element);
  return result;
}

gpointer
gst_imaging_settings_copy_now (GstImagingSettings *self)
{
  return copy (self->table, self->now);
}

void
gst_imaging_settings_free_copy (GstImagingSettings *self, gpointer settings)
{
  free_copy (self->table, settings);
}

gconstpointer
gst_imaging_settings_now (GstImagingSettings *self)
{
  return self->now;
}

/* --- messages ------------------------------------------------------------- */

static void
forget_old_sentences (GstImagingSettings *self, GstClockTime time)
{
  GHashTableIter i;
  gpointer posted;

  g_hash_table_iter_init (&i, self->sentences);
  while (g_hash_table_iter_next (&i, NULL, &posted))
    if (time - *(GstClockTime *) posted > GST_SECOND)
      g_hash_table_iter_remove (&i);
  if (g_hash_table_size (self->sentences) > MAX_SENTENCES)
    g_hash_table_remove_all (self->sentences);
}

/* Returns: whether @text was not posted in the last second */
static gboolean
may_post (GstImagingSettings *self, const gchar *text)
{
  GstClockTime time = gst_util_get_timestamp (), *posted;
  gboolean may;

  g_mutex_lock (&self->lock);
  posted = g_hash_table_lookup (self->sentences, text);
  may = !posted || time - *posted > GST_SECOND;
  if (may) {
    if (g_hash_table_size (self->sentences) >= MAX_SENTENCES)
      forget_old_sentences (self, time);
    g_hash_table_replace (
        self->sentences, g_strdup (text), g_memdup2 (&time, sizeof (time)));
  }
  g_mutex_unlock (&self->lock);
  return may;
}

/* Returns: whether the warning was posted */
static gboolean
warn (GstImagingSettings *self, const gchar *text)
{
  if (!may_post (self, text))
    return FALSE;
  GST_ELEMENT_WARNING (self->element, LIBRARY, SETTINGS, ("%s", text), (NULL));
  return TRUE;
}

static void
post_message (GstImagingSettings *self, gboolean accepted, const gchar *text,
    gconstpointer other)
{
  GValue names = G_VALUE_INIT;
  GstStructure *s = gst_structure_new ("imaging-settings", "accepted",
      G_TYPE_BOOLEAN, accepted, "text", G_TYPE_STRING, text, NULL);

  g_value_init (&names, GST_TYPE_ARRAY);
  FOR_EACH (setting, self->table)
  {
    GValue name = G_VALUE_INIT;

    if (gst_imaging_setting_is_equal (setting, self->now, other))
      continue;
    g_value_init (&name, G_TYPE_STRING);
    g_value_set_static_string (&name, setting->name);
    gst_value_array_append_and_take_value (&names, &name);
  }
  gst_structure_take_value (s, "properties", &names);
  gst_element_post_message (
      self->element, gst_message_new_element (GST_OBJECT (self->element), s));
}

static void
set_valid (GstImagingSettings *self, gboolean valid)
{
  gboolean changed;

  GST_OBJECT_LOCK (self->element);
  changed = self->valid != valid;
  self->valid = valid;
  GST_OBJECT_UNLOCK (self->element);
  if (changed)
    g_object_notify (G_OBJECT (self->element), "settings-valid");
}

static void
note_valid (GstImagingSettings *self)
{
  if (self->boundary < self->invalid_at)
    return;
  self->invalid_at = GST_IMAGING_WHEN_LIVE;
  set_valid (self, TRUE);
}

/* Always reports the first accepted change after a rejection. Other changes,
 * such as those of a GstController before every frame, are reported at most ten
 * times a second. */
static void
tell_accepted (GstImagingSettings *self, gconstpointer before)
{
  GstClockTime time = gst_util_get_timestamp ();

  if (!self->told_rejection && time - self->told < GST_SECOND / 10)
    return;
  self->told = time;
  self->told_rejection = FALSE;
  post_message (self, TRUE, "", before);
}

/* "crop-top=500, upsample=64". The first ones are enough to find the
 * mistake. */
static gchar *
list_differences (GstImagingSettings *self, gconstpointer tried)
{
  GString *list = g_string_new (NULL);
  guint n = 0;

  FOR_EACH (setting, self->table)
  {
    gchar *text;

    if (gst_imaging_setting_is_equal (setting, self->now, tried))
      continue;
    if (n++ < 6) {
      text = gst_imaging_setting_to_text (setting, tried);
      g_string_append_printf (list, "%s%s", list->len ? ", " : "", text);
      g_free (text);
    }
  }
  if (n > 6)
    g_string_append_printf (list, " and %u more", n - 6);
  return g_string_free (list, FALSE);
}

static void
note_invalid (GstImagingSettings *self)
{
  self->invalid_at = self->boundary;
  set_valid (self, FALSE);
}

/* @tried was rejected; @self->now is in use again. */
static void
tell_rejected (
    GstImagingSettings *self, gconstpointer tried, const ImkError *error)
{
  gchar *list = list_differences (self, tried);
  gchar *text =
      g_strdup_printf ("%s Not used until it fits: %s. The settings before "
                       "stay in use.",
          error->message, list);

  note_invalid (self);
  if (warn (self, text)) {
    self->told_rejection = TRUE;
    post_message (self, FALSE, text, tried);
  }
  g_free (text);
  g_free (list);
}

/* --- trying --------------------------------------------------------------- */

static gboolean
is_rejection (ImkStatus status)
{
  return status != IMK_OK && status != IMK_ERROR_DEVICE &&
         status != IMK_ERROR_UNAVAILABLE;
}

/* Numbers are in their ranges: GObject has checked them. */
static ImkStatus
check_files (GstImagingSettings *self, gconstpointer settings, ImkError *error)
{
  FOR_EACH (setting, self->table)
  {
    const GstImagingFile *file =
        setting->kind == GST_IMAGING_KIND_PATH
            ? G_STRUCT_MEMBER (GstImagingFile *, settings, setting->offset)
            : NULL;

    if (file && file->status != IMK_OK) {
      *error = file->error;
      return file->status;
    }
  }
  return IMK_OK;
}

/* The settings in use with those that were set and count from @boundary on.
 * Returns: (transfer full) */
static gpointer
take (GstImagingSettings *self, GstImagingWhen boundary)
{
  gpointer result = copy (self->table, self->now);

  self->boundary = boundary;
  GST_OBJECT_LOCK (self->element);
  FOR_EACH (setting, self->table)
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
  GST_OBJECT_UNLOCK (self->element);
  return result;
}

/* @rejected is what take() returned. Its values that were not in a rejected set
 * before, so that one wrong value does not stop the others from changing.
 * Returns: (transfer full) */
static gpointer
take_new (GstImagingSettings *self, gconstpointer rejected)
{
  gpointer result = copy (self->table, self->now);

  FOR_EACH (setting, self->table)
  {
    gsize i = (gsize) (setting - self->table->settings);

    if (gst_imaging_setting_is_equal (setting, self->now, rejected))
      continue;
    if (self->taken_at[i] != self->rejected_at[i])
      gst_imaging_setting_copy (setting, result, rejected);
  }
  return result;
}

/* From now on the values of @rejected that are not in use are not new. */
static void
note_rejected (GstImagingSettings *self, gconstpointer rejected)
{
  FOR_EACH (setting, self->table)
  {
    gsize i = (gsize) (setting - self->table->settings);

    if (!gst_imaging_setting_is_equal (setting, self->now, rejected))
      self->rejected_at[i] = self->taken_at[i];
  }
}

static guint
groups_of_change (GstImagingSettings *self, gconstpointer a, gconstpointer b,
    gboolean *changed)
{
  guint groups = 0;

  *changed = FALSE;
  FOR_EACH (setting, self->table)
  if (!gst_imaging_setting_is_equal (setting, a, b)) {
    groups |= setting->groups;
    *changed = TRUE;
  }
  return groups;
}

/* Takes @candidate over, or leaves all as it was. */
static ImkStatus
apply (
    GstImagingSettings *self, gpointer candidate, guint groups, ImkError *error)
{
  gpointer before = self->now;
  GstClockTime began = gst_util_get_timestamp ();
  ImkStatus status = check_files (self, candidate, error);

  self->now = candidate;
  if (status == IMK_OK && self->table->apply)
    status = self->table->apply (
        self->element, self->in_use ? before : NULL, groups, error);
  if (status != IMK_OK) {
    self->now = before;
    return status;
  }
  if (self->in_use && self->engine && groups & self->table->replan)
    gst_imaging_stats_add_replan (gst_imaging_engine_stats (self->engine),
        gst_util_get_timestamp () - began);
  if (self->in_use)
    tell_accepted (self, before);
  self->in_use = TRUE;
  free_copy (self->table, before);
  return IMK_OK;
}

/* On the device with its context. */
static ImkStatus
apply_in_context (
    GstImagingSettings *self, gpointer candidate, guint groups, ImkError *error)
{
  GstImagingContext *context =
      self->engine && gst_imaging_engine_is_on_cuda (self->engine)
          ? gst_imaging_engine_context (self->engine)
          : NULL;
  ImkStatus status =
      context ? gst_imaging_context_push (context, error) : IMK_OK;

  if (status != IMK_OK)
    return status;
  status = apply (self, candidate, groups, error);
  if (context)
    gst_imaging_context_pop (context);
  return status;
}

/* All that was set was rejected for @why: uses what is new in it, if that fits.
 * Returns: IMK_OK, or how the device failed */
static ImkStatus
apply_new (GstImagingSettings *self, gconstpointer rejected, ImkError *why)
{
  gpointer candidate = take_new (self, rejected);
  gboolean is_new, is_less;
  guint groups = groups_of_change (self, self->now, candidate, &is_new);
  ImkStatus status = why->code;

  groups_of_change (self, candidate, rejected, &is_less);
  note_invalid (self);
  if (is_new && is_less)
    status = apply_in_context (self, candidate, groups, why);
  if (status == IMK_OK || is_rejection (status))
    note_rejected (self, rejected);
  if (is_new && status == IMK_OK)
    return IMK_OK;
  if (is_new && is_rejection (status))
    tell_rejected (self, candidate, why);
  free_copy (self->table, candidate);
  return is_rejection (status) ? IMK_OK : status;
}

ImkStatus
gst_imaging_settings_update (GstImagingSettings *self, GstImagingWhen boundary,
    GstClockTime time, ImkError *error)
{
  guint *seen = boundary == GST_IMAGING_WHEN_LIVE ? &self->serial_frame
                                                  : &self->serial_set;
  gpointer candidate;
  gboolean changed;
  guint groups;
  ImkStatus status;
  ImkError why;

  if (GST_CLOCK_TIME_IS_VALID (time))
    gst_object_sync_values (GST_OBJECT (self->element), time);
  if (self->in_use ? *seen == (guint) g_atomic_int_get (&self->serial)
                   : self->engine != NULL)
    return IMK_OK; /* an engine opens with new caps */
  candidate =
      take (self, self->in_use ? boundary : GST_IMAGING_WHEN_NEXT_START);
  groups = groups_of_change (self, self->now, candidate, &changed);
  if (self->in_use && !changed) {
    note_valid (self); /* set back to what is in use */
    free_copy (self->table, candidate);
    return IMK_OK;
  }
  status = apply_in_context (self, candidate, groups, &why);
  if (status == IMK_OK) {
    note_valid (self);
    return IMK_OK;
  }
  if (self->in_use && is_rejection (status))
    status = apply_new (self, candidate, &why);
  if (status != IMK_OK) {
    g_atomic_int_inc (&self->serial); /* to be tried again */
    if (error)
      *error = why;
  }
  free_copy (self->table, candidate);
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
  GstEvent *event = gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  GstClockTime time = GST_CLOCK_TIME_NONE;
  const GstSegment *segment;

  if (!event)
    return time;
  gst_event_parse_segment (event, &segment);
  time = gst_imaging_stream_time (segment, buffer);
  gst_event_unref (event);
  return time;
}

/* With @candidate as the settings. */
static ImkStatus
open_with (GstImagingSettings *self, gpointer candidate,
    ImkStatus (*open) (gpointer data, ImkError *error), gpointer data,
    ImkError *error)
{
  ImkStatus status = check_files (self, candidate, error);
  gpointer before = self->now;

  if (status != IMK_OK)
    return status;
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
  gboolean changed;

  if (status != IMK_OK) {
    free_copy (self->table, candidate);
    return status;
  }
  groups_of_change (self, before, candidate, &changed);
  self->now = candidate;
  if (self->in_use && changed)
    tell_accepted (self, before);
  self->in_use = TRUE;
  free_copy (self->table, before);
  return IMK_OK;
}

ImkStatus
gst_imaging_settings_try (GstImagingSettings *self,
    ImkStatus (*open) (gpointer data, ImkError *error), gpointer data,
    ImkError *error)
{
  gpointer all = take (self,
      self->in_use ? GST_IMAGING_WHEN_NEXT_SET : GST_IMAGING_WHEN_NEXT_START);
  gboolean changed, is_new, is_less;
  ImkError first, why, ignored;
  ImkStatus status, last;
  gpointer tried;

  groups_of_change (self, self->now, all, &changed);
  status = try_one (self, copy (self->table, all), open, data, &first);
  if (status == IMK_OK) {
    note_valid (self);
  } else if (self->in_use && changed && is_rejection (status)) {
    why = first;
    tried = take_new (self, all);
    groups_of_change (self, self->now, tried, &is_new);
    groups_of_change (self, tried, all, &is_less);
    last = is_less ? try_one (self, copy (self->table, tried), open, data, &why)
                   : status;
    if (last == IMK_OK) {
      note_invalid (self);
    } else if (is_new) {
      last =
          try_one (self, copy (self->table, self->now), open, data, &ignored);
      if (last == IMK_OK)
        tell_rejected (self, tried, &why);
    }
    if (last == IMK_OK)
      note_rejected (self, all);
    free_copy (self->table, tried);
    status = last == IMK_OK ? IMK_OK : status;
  }
  if (status != IMK_OK) {
    if (error)
      *error = first;
    set_valid (self, !is_rejection (status));
  }
  free_copy (self->table, all);
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
  FOR_EACH (setting, self->table)
  if (setting->kind == GST_IMAGING_KIND_PATH)
    retry_file (self, setting);
  g_mutex_lock (&self->lock);
  g_hash_table_remove_all (self->sentences);
  g_mutex_unlock (&self->lock);
}

/* --- setting -------------------------------------------------------------- */

/* Call without the object lock. @staged: a structure whose values of the given
 * settings are put in force together. */
static void
put (GstImagingSettings *self, gpointer staged, const gboolean *given)
{
  GString *late = NULL;

  GST_OBJECT_LOCK (self->element);
  for (guint i = 0; i < self->table->n_settings; i++) {
    const GstImagingSetting *setting = &self->table->settings[i];

    if (!given[i])
      continue;
    if (setting->when == GST_IMAGING_WHEN_NEXT_START &&
        GST_STATE (self->element) > GST_STATE_READY &&
        !gst_imaging_setting_is_equal (setting, self->wanted, staged)) {
      late = late ? g_string_append (late, ", ") : g_string_new (NULL);
      g_string_append (late, setting->name);
    }
    gst_imaging_setting_copy (setting, self->wanted, staged);
    self->set_at[i] = (guint) g_atomic_int_get (&self->serial) + 1;
  }
  g_atomic_int_inc (&self->serial);
  GST_OBJECT_UNLOCK (self->element);
  if (late) {
    g_string_append (late,
        " was set after the start; it counts from the next start on. Set it in "
        "the state NULL or READY.");
    warn (self, late->str);
    g_string_free (late, TRUE);
  }
}

/* Puts setting @index of @staged (transfer full) in force. */
static void
put_at (GstImagingSettings *self, gsize index, gpointer staged)
{
  gboolean *given = g_new0 (gboolean, self->table->n_settings);

  given[index] = TRUE;
  put (self, staged, given);
  gst_imaging_setting_clear (&self->table->settings[index], staged);
  g_free (given);
  g_free (staged);
}

static void
put_one (GstImagingSettings *self, guint index, const GValue *value)
{
  gpointer staged = g_malloc0 (self->table->size);

  gst_imaging_setting_from_value (&self->table->settings[index], staged, value);
  put_at (self, index, staged);
}

void
gst_imaging_settings_put_file (GstImagingSettings *self, const gchar *name,
    const gchar *location, gpointer data)
{
  const GstImagingSetting *setting =
      gst_imaging_settings_table_find (self->table, name);
  gpointer staged;

  g_return_if_fail (setting != NULL);
  staged = g_malloc0 (self->table->size);
  G_STRUCT_MEMBER (GstImagingFile *, staged, setting->offset) =
      gst_imaging_setting_file_new (location, data, setting->free_data);
  put_at (self, (gsize) (setting - self->table->settings), staged);
}

/* A value of any type that the property can be made of.
 * Returns: FALSE with a sentence in @why */
static gboolean
stage_field (GstImagingSettings *self, const gchar *name, const GValue *value,
    gpointer staged, gboolean *given, gchar **why)
{
  GObjectClass *klass = G_OBJECT_GET_CLASS (self->element);
  const GstImagingSetting *setting =
      gst_imaging_settings_table_find (self->table, name);
  GParamSpec *spec = g_object_class_find_property (klass, name);
  GValue converted = G_VALUE_INIT;
  gboolean ok;

  if (!setting) {
    *why = g_strdup_printf (
        "settings has \"%s\", which is not a property that settings can change.",
        name);
    return FALSE;
  }
  g_value_init (&converted, spec->value_type);
  ok = G_VALUE_HOLDS_STRING (value) && spec->value_type != G_TYPE_STRING
           ? gst_value_deserialize (&converted, g_value_get_string (value))
           : g_value_transform (value, &converted);
  if (ok && g_param_value_validate (spec, &converted))
    ok = FALSE; /* it was out of range */
  if (ok) {
    gst_imaging_setting_from_value (setting, staged, &converted);
    given[setting - self->table->settings] = TRUE;
  } else {
    gchar *text = gst_value_serialize (value);

    *why = g_strdup_printf (
        "settings has %s=%s, which is out of range or of another type.", name,
        text ? text : "?");
    g_free (text);
  }
  g_value_unset (&converted);
  return ok;
}

static void
put_structure (GstImagingSettings *self, const GstStructure *s)
{
  gpointer staged = g_malloc0 (self->table->size);
  gboolean *given = g_new0 (gboolean, self->table->n_settings);
  gchar *why = NULL, *text;

  for (gint i = 0; s && i < gst_structure_n_fields (s) && !why; i++) {
    const gchar *name = gst_structure_nth_field_name (s, (guint) i);

    stage_field (
        self, name, gst_structure_get_value (s, name), staged, given, &why);
  }
  if (!why) {
    put (self, staged, given);
  } else {
    text = g_strconcat (why, " None of the settings was changed.", NULL);
    warn (self, text);
    g_free (text);
  }
  g_free (why);
  g_free (given);
  free_copy (self->table, staged);
}

void
gst_imaging_settings_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstImagingSettings *self = gst_imaging_settings_of (object);
  guint index = id - GST_IMAGING_SETTINGS_FIRST_ID;

  if (id == GST_IMAGING_SETTINGS_ID_SETTINGS)
    put_structure (self, g_value_get_boxed (value));
  else if (index < self->table->n_settings)
    put_one (self, index, value);
  else if (!self->engine ||
           !gst_imaging_engine_set_property (self->engine, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

void
gst_imaging_settings_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstImagingSettings *self = gst_imaging_settings_of (object);
  guint index = id - GST_IMAGING_SETTINGS_FIRST_ID;

  if (id == GST_IMAGING_SETTINGS_ID_VALID) {
    GST_OBJECT_LOCK (object);
    g_value_set_boolean (value, self->valid);
    GST_OBJECT_UNLOCK (object);
  } else if (index < self->table->n_settings) {
    GST_OBJECT_LOCK (object);
    gst_imaging_setting_to_value (
        &self->table->settings[index], self->wanted, value);
    GST_OBJECT_UNLOCK (object);
  } else if (!self->engine ||
             !gst_imaging_engine_get_property (self->engine, id, value)) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

/* --- the object ----------------------------------------------------------- */

static void
settings_free (gpointer data)
{
  GstImagingSettings *self = data;

  free_copy (self->table, self->wanted);
  free_copy (self->table, self->now);
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
    gst_imaging_engine_use_settings (engine, self);
  g_object_set_qdata_full (
      G_OBJECT (element), settings_quark (), self, settings_free);
  return self;
}

GstImagingSettings *
gst_imaging_settings_of (gpointer element)
{
  return g_object_get_qdata (G_OBJECT (element), settings_quark ());
}
