/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinkpipeline.h"

#include <gst/base/gstbasesink.h>
#include <string.h>

#include "gstimagingtap.h"
#include "gstpicturesinksource.h"

/* What an element began to work with, told in its thread by its property
 * settings-hash. Frames with this hash come later, perhaps through a queue. */
typedef struct {
  gchar *hash;
  GHashTable *settings;
} State;

typedef struct {
  GstElement *element;
  gchar *name;
  const gchar *factory;
  GHashTable *settings; /* name -> text of what is not the default */
  gulong handler;
  gint changed;         /* atomic */
  gchar *settings_hash; /* of the last frame, where frames tell it */
  GMutex lock;          /* of the next one */
  GQueue states;        /* that no frame has shown yet */
} Member;

struct _GstPictureSinkPipeline {
  GPtrArray *members;   /* those before a member come before it */
  GPtrArray *links;     /* "a.src ! b.sink" */
  gboolean is_chain;    /* each is linked to the next */
  gboolean is_attached; /* to frames of a pipeline that runs already */
  gchar *launch;        /* with the settings of the first frame */
  GString *changes;     /* JSON: objects of an array */
};

/* --- settings ------------------------------------------------------------- */

/* As gst-launch takes it. Returns: (transfer full) (nullable) */
static gchar *
value_to_text (const GValue *value)
{
  if (G_VALUE_HOLDS_STRING (value))
    return g_value_dup_string (value);
  if (GST_VALUE_HOLDS_CAPS (value))
    return gst_caps_to_string (gst_value_get_caps (value));
  return gst_value_serialize (value);
}

static gboolean
is_setting (const GParamSpec *pspec)
{
  return (pspec->flags & G_PARAM_READWRITE) == G_PARAM_READWRITE &&
         !(pspec->flags & G_PARAM_DEPRECATED) &&
         strcmp (pspec->name, "name") != 0 &&
         strcmp (pspec->name, "parent") != 0 &&
         strcmp (pspec->name, "last-message") != 0;
}

/* Of a sink of ours, what its base class has is not what it writes.
 * Returns: (transfer full): what is not the default */
static GHashTable *
read_settings (GstElement *element)
{
  GHashTable *found =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_free);
  guint n = 0;
  g_autofree GParamSpec **all =
      g_object_class_list_properties (G_OBJECT_GET_CLASS (element), &n);

  for (guint i = 0; i < n; i++) {
    GValue value = G_VALUE_INIT;
    gchar *text;

    if (!is_setting (all[i]) ||
        (GST_IS_BASE_SINK (element) &&
            all[i]->owner_type != G_OBJECT_TYPE (element)))
      continue;
    g_value_init (&value, all[i]->value_type);
    g_object_get_property (G_OBJECT (element), all[i]->name, &value);
    text =
        g_param_value_defaults (all[i], &value) ? NULL : value_to_text (&value);
    if (text)
      g_hash_table_insert (found, (gpointer) all[i]->name, text);
    g_value_unset (&value);
  }
  return found;
}

static void
state_free (gpointer data)
{
  State *self = data;

  g_free (self->hash);
  g_hash_table_unref (self->settings);
  g_free (self);
}

static void
on_notify (GObject *object, GParamSpec *pspec, gpointer data)
{
  Member *self = data;

  if (is_setting (pspec)) {
    g_atomic_int_set (&self->changed, 1);
  } else if (strcmp (pspec->name, "settings-hash") == 0) {
    State *state = g_new0 (State, 1);

    g_object_get (object, "settings-hash", &state->hash, NULL);
    state->settings = read_settings (GST_ELEMENT (object));
    g_mutex_lock (&self->lock);
    g_queue_push_tail (&self->states, state);
    g_mutex_unlock (&self->lock);
  }
}

/* Those before it were of no frame. Returns: (transfer full) (nullable) */
static State *
take_state (Member *self, const gchar *hash)
{
  State *found = NULL;

  GST_IMAGING_HOLD (&self->lock);
  for (GList *at = self->states.head; at && !found; at = at->next)
    if (g_strcmp0 (((State *) at->data)->hash, hash) == 0)
      found = at->data;
  while (found && self->states.head->data != found)
    state_free (g_queue_pop_head (&self->states));
  if (found)
    g_queue_pop_head (&self->states);
  return found;
}

/* --- the elements --------------------------------------------------------- */

/* When no thread is in on_notify () any more. */
static void
member_free (gpointer data, GClosure *closure)
{
  Member *self = data;

  g_hash_table_unref (self->settings);
  g_queue_clear_full (&self->states, state_free);
  g_mutex_clear (&self->lock);
  g_free (self->name);
  g_free (self->settings_hash);
  g_free (self);
}

static void
member_release (gpointer data)
{
  Member *self = data;
  GstElement *element = self->element;

  g_signal_handler_disconnect (element, self->handler);
  gst_object_unref (element);
}

static Member *
member_new (GstElement *element)
{
  GstElementFactory *factory = gst_element_get_factory (element);
  Member *self = g_new0 (Member, 1);

  g_mutex_init (&self->lock);
  g_queue_init (&self->states);
  self->element = gst_object_ref (element);
  self->name = gst_element_get_name (element);
  self->factory = g_intern_string (
      factory ? GST_OBJECT_NAME (factory) : G_OBJECT_TYPE_NAME (element));
  /* before it is read: what changes meanwhile is read again */
  self->handler = g_signal_connect_data (
      element, "notify", G_CALLBACK (on_notify), self, member_free, 0);
  self->settings = read_settings (element);
  return self;
}

static Member *
find (const GstPictureSinkPipeline *self, const GstElement *element)
{
  for (guint i = 0; i < self->members->len; i++) {
    Member *member = g_ptr_array_index (self->members, i);

    if (member->element == element)
      return member;
  }
  return NULL;
}

/* Through the pads of bins. Returns: (transfer full) (nullable): the pad of an
 * element that is none */
static GstPad *
find_source_of (GstPad *sink)
{
  GstPad *pad = gst_imaging_tap_get_followed (sink);

  if (!pad) /* not attached */
    pad = gst_pad_get_peer (sink);
  while (pad && GST_IS_PROXY_PAD (pad)) {
    GstPad *next;

    if (GST_IS_GHOST_PAD (pad)) {
      next = gst_ghost_pad_get_target (GST_GHOST_PAD (pad));
    } else { /* the inner side of a bin's sink pad */
      GstProxyPad *outer = gst_proxy_pad_get_internal (GST_PROXY_PAD (pad));

      next = outer ? gst_pad_get_peer (GST_PAD (outer)) : NULL;
      gst_clear_object (&outer);
    }
    gst_object_unref (pad);
    pad = next;
  }
  return pad;
}

static void add (GstPictureSinkPipeline *self, GstElement *element);

static void
add_before (GstPictureSinkPipeline *self, GstElement *element, GstPad *sink)
{
  g_autoptr (GstPad) pad = find_source_of (sink);
  GstElement *before = pad ? gst_pad_get_parent_element (pad) : NULL;

  if (before) {
    add (self, before);
    g_ptr_array_add (
        self->links, g_strdup_printf ("%s.%s ! %s.%s",
                         GST_ELEMENT_NAME (before), GST_PAD_NAME (pad),
                         GST_ELEMENT_NAME (element), GST_PAD_NAME (sink)));
    self->is_chain = self->is_chain &&
                     strcmp (GST_PAD_NAME (pad), "src") == 0 &&
                     strcmp (GST_PAD_NAME (sink), "sink") == 0;
    gst_object_unref (before);
  }
}

/* Those before it first. Pipelines have no loops of pads. */
static void
add (GstPictureSinkPipeline *self, GstElement *element)
{
  GList *pads;

  if (find (self, element))
    return;
  GST_OBJECT_LOCK (element);
  pads = g_list_copy_deep (
      element->sinkpads, (GCopyFunc) (gpointer) gst_object_ref, NULL);
  GST_OBJECT_UNLOCK (element);
  for (GList *at = pads; at; at = at->next)
    add_before (self, element, at->data);
  g_list_free_full (pads, gst_object_unref);
  g_ptr_array_add (self->members, member_new (element));
}

gboolean
gst_picture_sink_pipeline_has_grown (
    const GstPictureSinkPipeline *self, GstElement *sink)
{
  GstPictureSinkPipeline *now = gst_picture_sink_pipeline_new (sink);
  gboolean has_grown = now->members->len != self->members->len;

  gst_picture_sink_pipeline_free (now);
  return has_grown;
}

gboolean
gst_picture_sink_pipeline_is_ours (const GstPictureSinkPipeline *self)
{
  for (guint i = 0; i + 1 < self->members->len; i++) {
    const Member *member = g_ptr_array_index (self->members, i);
    GstElementFactory *factory = gst_element_get_factory (member->element);
    g_autoptr (GstPlugin) plugin =
        factory ? gst_plugin_feature_get_plugin (GST_PLUGIN_FEATURE (factory))
                : NULL;

    if (plugin && member->element->numsinkpads > 0 &&
        g_strcmp0 (gst_plugin_get_package (plugin), "gst-imaging") == 0)
      return TRUE;
  }
  return FALSE;
}

/* --- changes -------------------------------------------------------------- */

static void
note (GstPictureSinkPipeline *self, const Member *member, guint64 frame,
    const gchar *name, const gchar *text)
{
  GstPictureSinkJson json = {self->changes, 2};

  gst_picture_sink_json_open (&json, NULL, '{');
  gst_picture_sink_json_integer (&json, "frame", frame);
  gst_picture_sink_json_text (&json, "element", member->name);
  gst_picture_sink_json_text (&json, "property", name);
  gst_picture_sink_json_text (&json, "value", text); /* null: the default */
  if (member->settings_hash)
    gst_picture_sink_json_text (&json, "settings-hash", member->settings_hash);
  gst_picture_sink_json_close (&json, '}');
}

/* @now: (transfer full) */
static void
note_changes (GstPictureSinkPipeline *self, Member *member, GHashTable *now,
    guint64 frame)
{
  GHashTableIter iter;
  gpointer name, text;

  g_hash_table_iter_init (&iter, now);
  while (g_hash_table_iter_next (&iter, &name, &text))
    if (g_strcmp0 (g_hash_table_lookup (member->settings, name), text) != 0)
      note (self, member, frame, name, text);
  g_hash_table_iter_init (&iter, member->settings);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    if (!g_hash_table_contains (now, name))
      note (self, member, frame, name, NULL);
  g_hash_table_unref (member->settings);
  member->settings = now;
}

/* Of several such elements the last one, which made the frame. */
static Member *
find_maker (const GstPictureSinkPipeline *self, const GstStructure *origin)
{
  const gchar *factory =
      origin ? gst_structure_get_string (origin, "element") : NULL;

  for (guint i = self->members->len; i-- > 0 && factory;) {
    Member *member = g_ptr_array_index (self->members, i);

    if (strcmp (member->factory, factory) == 0)
      return member;
  }
  return NULL;
}

static void
look_at_hash (GstPictureSinkPipeline *self, Member *member, guint64 frame,
    const gchar *hash)
{
  const gboolean is_first = member->settings_hash == NULL;
  State *state;

  if (g_strcmp0 (member->settings_hash, hash) == 0)
    return;
  g_free (member->settings_hash);
  member->settings_hash = g_strdup (hash);
  state = take_state (member, hash);
  /* The element ran before the start, with the settings that were read then:
   * those of now may be of a later frame. */
  if (!state && is_first)
    return;
  note_changes (self, member,
      state ? g_hash_table_ref (state->settings)
            : read_settings (member->element),
      frame);
  if (state)
    state_free (state);
}

void
gst_picture_sink_pipeline_look (
    GstPictureSinkPipeline *self, guint64 frame, const GstStructure *origin)
{
  const gchar *hash =
      origin ? gst_structure_get_string (origin, "settings-hash") : NULL;
  Member *maker = hash ? find_maker (self, origin) : NULL;

  for (guint i = 0; i < self->members->len; i++) {
    Member *member = g_ptr_array_index (self->members, i);

    if (member == maker)
      look_at_hash (self, member, frame, hash);
    else if (g_atomic_int_compare_and_exchange (&member->changed, 1, 0))
      note_changes (self, member, read_settings (member->element), frame);
  }
}

/* --- as text -------------------------------------------------------------- */

/* gst-launch removes the quotes, and backslashes between them. */
static void
append_quoted (GString *s, const gchar *text)
{
  static const gchar plain[] =
      G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-+./:,%";

  if (*text && text[strspn (text, plain)] == '\0') {
    g_string_append (s, text);
    return;
  }
  g_string_append_c (s, '"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      g_string_append_c (s, '\\');
    g_string_append_c (s, *text);
  }
  g_string_append_c (s, '"');
}

/* "photostereo3": a name that GStreamer gave. */
static gboolean
has_usual_name (const Member *member)
{
  gsize n = strlen (member->factory);

  return g_str_has_prefix (member->name, member->factory) && member->name[n] &&
         member->name[n + strspn (member->name + n, G_CSET_DIGITS)] == '\0';
}

static void
append_member (GString *s, const Member *member, gboolean with_name)
{
  GList *names = g_list_sort (g_hash_table_get_keys (member->settings),
      (GCompareFunc) (gpointer) strcmp);

  g_string_append (s, member->factory);
  if (with_name) {
    g_string_append (s, " name=");
    append_quoted (s, member->name);
  }
  for (GList *at = names; at; at = at->next) {
    g_string_append_printf (s, " %s=", (const gchar *) at->data);
    append_quoted (s, g_hash_table_lookup (member->settings, at->data));
  }
  g_list_free (names);
}

/* Returns: (transfer full): what gst-launch takes */
static gchar *
to_launch (const GstPictureSinkPipeline *self)
{
  GString *s = g_string_new (NULL);

  for (guint i = 0; i < self->members->len; i++) {
    const Member *member = g_ptr_array_index (self->members, i);

    if (i > 0)
      g_string_append (s, self->is_chain ? " ! " : " ");
    append_member (s, member, !self->is_chain || !has_usual_name (member));
  }
  for (guint i = 0; i < self->links->len && !self->is_chain; i++)
    g_string_append_printf (
        s, " %s", (const gchar *) g_ptr_array_index (self->links, i));
  return g_string_free (s, FALSE);
}

static gboolean
is_attached (GstElement *sink)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (sink, "sink");
  g_autoptr (GstPad) followed = gst_imaging_tap_get_followed (pad);

  return followed != NULL;
}

GstPictureSinkPipeline *
gst_picture_sink_pipeline_new (GstElement *sink)
{
  GstPictureSinkPipeline *self = g_new0 (GstPictureSinkPipeline, 1);

  self->members = g_ptr_array_new_with_free_func (member_release);
  self->links = g_ptr_array_new_with_free_func (g_free);
  self->is_chain = TRUE;
  self->changes = g_string_new (NULL);
  add (self, sink);
  self->is_attached = is_attached (sink);
  self->launch = to_launch (self);
  return self;
}

static void
write_property (
    GstPictureSinkJson *json, const Member *member, const gchar *name)
{
  GObjectClass *klass = G_OBJECT_GET_CLASS (member->element);
  GValue value = G_VALUE_INIT;
  GParamSpec *pspec = g_object_class_find_property (klass, name);
  g_autofree gchar *text = NULL;

  if (!pspec || !(pspec->flags & G_PARAM_READABLE))
    return;
  g_value_init (&value, pspec->value_type);
  g_object_get_property (G_OBJECT (member->element), name, &value);
  text = value_to_text (&value);
  g_value_unset (&value);
  if (text && *text)
    gst_picture_sink_json_text (json, name, text);
}

static void
write_member (GstPictureSinkJson *json, const Member *member)
{
  GstElementFactory *factory = gst_element_get_factory (member->element);
  g_autoptr (GstPlugin) plugin =
      factory ? gst_plugin_feature_get_plugin (GST_PLUGIN_FEATURE (factory))
              : NULL;
  GList *names = g_list_sort (g_hash_table_get_keys (member->settings),
      (GCompareFunc) (gpointer) strcmp);

  gst_picture_sink_json_open (json, NULL, '{');
  gst_picture_sink_json_text (json, "name", member->name);
  gst_picture_sink_json_text (json, "element", member->factory);
  if (plugin) {
    gst_picture_sink_json_text (
        json, "package", gst_plugin_get_package (plugin));
    gst_picture_sink_json_text (
        json, "version", gst_plugin_get_version (plugin));
  }
  write_property (json, member, "active-backend");
  if (member->settings_hash)
    gst_picture_sink_json_text (json, "settings-hash", member->settings_hash);
  else
    write_property (json, member, "settings-hash");
  gst_picture_sink_json_open (json, "settings", '{');
  for (GList *at = names; at; at = at->next)
    gst_picture_sink_json_text (
        json, at->data, g_hash_table_lookup (member->settings, at->data));
  gst_picture_sink_json_close (json, '}');
  gst_picture_sink_json_close (json, '}');
  g_list_free (names);
}

void
gst_picture_sink_pipeline_write (const GstPictureSinkPipeline *self,
    GstPictureSinkJson *json, gboolean hashes)
{
  g_autofree gchar *folder = g_get_current_dir ();

  gst_picture_sink_json_text (json, "pipeline", self->launch);
  if (self->is_attached)
    gst_picture_sink_json_raw (json, "attached", "true");
  gst_picture_sink_json_text (json, "folder", folder);
  gst_picture_sink_json_open (json, "sources", '[');
  for (guint i = 0; i < self->members->len; i++) {
    const Member *member = g_ptr_array_index (self->members, i);

    if (member->element->numsinkpads == 0)
      gst_picture_sink_source_write (
          json, member->element, member->name, hashes);
  }
  gst_picture_sink_json_close (json, ']');
  gst_picture_sink_json_open (json, "elements", '[');
  for (guint i = 0; i < self->members->len; i++)
    write_member (json, g_ptr_array_index (self->members, i));
  gst_picture_sink_json_close (json, ']');
  gst_picture_sink_json_open (json, "changes", '[');
  g_string_append_len (
      json->text, self->changes->str, (gssize) self->changes->len);
  gst_picture_sink_json_close (json, ']');
}

void
gst_picture_sink_pipeline_free (GstPictureSinkPipeline *self)
{
  if (!self)
    return;
  g_ptr_array_unref (self->members);
  g_ptr_array_unref (self->links);
  g_string_free (self->changes, TRUE);
  g_free (self->launch);
  g_free (self);
}
