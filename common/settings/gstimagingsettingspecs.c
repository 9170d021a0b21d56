/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of an element as GObject properties and as JSON. */
#include "gstimagingsettings-private.h"

#include "gstimaging-private.h"
#include "gstimagingenum.h"

/* --- GObject -------------------------------------------------------------- */

static GType
flags_type (const gchar *name, const GFlagsValue *values)
{
  GType type = g_type_from_name (name);

  if (!type) {
    type = g_flags_register_static (name, values);
    gst_type_mark_as_plugin_api (type, 0);
  }
  return type;
}

static guint64
uint64_of (gdouble number)
{
  return number >= 0x1p64 ? G_MAXUINT64 : (guint64) number;
}

static GParamFlags
flags_of (const GstImagingSetting *self, gboolean timeless)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;

  if (self->when == GST_IMAGING_WHEN_NEXT_START)
    return flags | GST_PARAM_MUTABLE_READY;
  /* a GstController has numbers, booleans and enumerations */
  return self->kind <= GST_IMAGING_KIND_ENUM && !timeless
             ? flags | GST_PARAM_MUTABLE_PLAYING | GST_PARAM_CONTROLLABLE
             : flags | GST_PARAM_MUTABLE_PLAYING;
}

static GParamSpec *
make_array_spec (const GstImagingSetting *self, GParamFlags flags)
{
  GParamSpec *element =
      self->kind == GST_IMAGING_KIND_PATHS
          ? g_param_spec_string ("path", "path", "One of them", NULL,
                G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS)
      : self->integers
          ? g_param_spec_int ("value", "value", "One of them",
                (gint) self->minimum, (gint) self->maximum,
                (gint) CLAMP (0, self->minimum, self->maximum),
                G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS)
          : g_param_spec_double ("value", "value", "One of them", self->minimum,
                self->maximum, CLAMP (0, self->minimum, self->maximum),
                G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);

  return gst_param_spec_array (
      self->name, self->name, self->blurb, element, flags);
}

/* @defaults: a structure of the element */
static GParamSpec *
make_spec (
    const GstImagingSetting *self, gconstpointer defaults, gboolean timeless)
{
  const gchar *name = self->name, *blurb = self->blurb;
  gconstpointer m = (const guint8 *) defaults + self->offset;
  GParamFlags flags = flags_of (self, timeless);

  switch (self->kind) {
  case GST_IMAGING_KIND_BOOLEAN:
    return g_param_spec_boolean (name, name, blurb,
        self->size == sizeof (bool) ? *(const bool *) m : *(const gboolean *) m,
        flags);
  case GST_IMAGING_KIND_INT:
    return g_param_spec_int (name, name, blurb, (gint) self->minimum,
        (gint) self->maximum, *(const gint *) m, flags);
  case GST_IMAGING_KIND_UINT:
    return g_param_spec_uint (name, name, blurb, (guint) self->minimum,
        (guint) self->maximum, *(const guint *) m, flags);
  case GST_IMAGING_KIND_UINT64:
    return g_param_spec_uint64 (name, name, blurb, uint64_of (self->minimum),
        uint64_of (self->maximum), *(const guint64 *) m, flags);
  case GST_IMAGING_KIND_DOUBLE:
    return g_param_spec_double (name, name, blurb, self->minimum, self->maximum,
        *(const gdouble *) m, flags);
  case GST_IMAGING_KIND_ENUM:
    return g_param_spec_enum (name, name, blurb,
        gst_imaging_enum_type (self->type_name, self->enum_values),
        *(const gint *) m, flags);
  case GST_IMAGING_KIND_FLAGS:
    return g_param_spec_flags (name, name, blurb,
        flags_type (self->type_name, self->flag_values), *(const guint *) m,
        flags);
  case GST_IMAGING_KIND_FRACTION:
    return gst_param_spec_fraction (name, name, blurb,
        self->minimum > 0 ? 1 : 0, self->minimum > 0 ? G_MAXINT : 1, G_MAXINT,
        1, ((const GstImagingFraction *) m)->n,
        ((const GstImagingFraction *) m)->d, flags);
  case GST_IMAGING_KIND_ARRAY:
  case GST_IMAGING_KIND_PATHS:
    return make_array_spec (self, flags);
  default:
    return g_param_spec_string (
        name, name, blurb, *(const gchar *const *) m, flags);
  }
}

/* --- tables --------------------------------------------------------------- */

static GQuark
table_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-settings-table");
}

/* Returns: (nullable): that of the class or of one of its parents */
static const GstImagingSettingsTable *
table_of (GType type)
{
  const GstImagingSettingsTable *found = NULL;

  for (; type && !found; type = g_type_parent (type))
    found = g_type_get_qdata (type, table_quark ());
  return found;
}

const GstImagingSetting *
gst_imaging_settings_table_find (
    const GstImagingSettingsTable *table, const gchar *name)
{
  for (guint i = 0; table && i < table->n_settings; i++)
    if (g_str_equal (table->settings[i].name, name))
      return &table->settings[i];
  return NULL;
}

static void
install_own (GObjectClass *klass)
{
  g_object_class_install_property (klass, GST_IMAGING_SETTINGS_ID_SETTINGS,
      g_param_spec_boxed ("settings", "Settings",
          "Sets several properties at once: \"settings, range-min=70., "
          "range-max=100.\". No frame sees some of them without the others; "
          "when one cannot be set none is",
          GST_TYPE_STRUCTURE,
          G_PARAM_WRITABLE | G_PARAM_STATIC_STRINGS |
              GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (klass, GST_IMAGING_SETTINGS_ID_VALID,
      g_param_spec_boolean ("settings-valid", "Settings valid",
          "Whether all values that were set are in use. FALSE: some contradict "
          "each other or the stream, as a warning says, and are not used "
          "until they fit",
          TRUE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  g_object_class_install_property (klass, GST_IMAGING_SETTINGS_ID_HASH,
      g_param_spec_string ("settings-hash", "Settings hash",
          "SHA-256 of the settings in use, with the content of the files that "
          "they name: equal settings have equal hashes, also on other hosts and "
          "backends. NULL before the first frame",
          NULL, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

void
gst_imaging_settings_install (
    GObjectClass *klass, const GstImagingSettingsTable *table)
{
  gpointer defaults = g_malloc0 (table->size);

  table->init (defaults);
  klass->set_property = gst_imaging_settings_set_property;
  klass->get_property = gst_imaging_settings_get_property;
  if (table->has_engine)
    gst_imaging_engine_install_properties (klass);
  for (guint i = 0; i < table->n_settings; i++)
    g_object_class_install_property (klass, GST_IMAGING_SETTINGS_FIRST_ID + i,
        make_spec (&table->settings[i], defaults, table->timeless));
  install_own (klass);
  g_type_set_qdata (
      G_OBJECT_CLASS_TYPE (klass), table_quark (), (gpointer) table);
  for (guint i = 0; i < table->n_settings; i++)
    gst_imaging_setting_clear (&table->settings[i], defaults);
  g_free (defaults);
}

/* --- JSON ----------------------------------------------------------------- */

/* @key: what @type is of */
static void
add_limits (GString *json, const gchar *key, const gchar *type, gdouble minimum,
    gdouble maximum)
{
  gst_imaging_json_add_text (json, key, type);
  gst_imaging_json_add_number (json, "minimum", minimum);
  gst_imaging_json_add_number (json, "maximum", maximum);
}

static void
add_range (GString *json, const gchar *type, gdouble minimum, gdouble maximum,
    gdouble value)
{
  add_limits (json, "type", type, minimum, maximum);
  gst_imaging_json_add_number (json, "default", value);
}

static void
add_choice (GString *json, gdouble value, const gchar *nick, const gchar *blurb)
{
  g_string_append (json, json->str[json->len - 1] == '[' ? "{" : ",{");
  gst_imaging_json_add_number (json, "value", value);
  gst_imaging_json_add_text (json, "nick", nick);
  gst_imaging_json_add_text (json, "blurb", blurb);
  g_string_append_c (json, '}');
}

static void
add_enum (GString *json, GParamSpecEnum *spec)
{
  GEnumClass *klass = spec->enum_class;
  GEnumValue *value = g_enum_get_value (klass, spec->default_value);

  gst_imaging_json_add_text (json, "type", "enum");
  gst_imaging_json_add_text (json, "default", value ? value->value_nick : "");
  g_string_append (json, ",\"values\":[");
  for (guint i = 0; i < klass->n_values; i++)
    add_choice (json, klass->values[i].value, klass->values[i].value_nick,
        klass->values[i].value_name);
  g_string_append_c (json, ']');
}

static void
add_flags (GString *json, GParamSpecFlags *spec)
{
  GFlagsClass *klass = spec->flags_class;

  gst_imaging_json_add_text (json, "type", "flags");
  gst_imaging_json_add_number (json, "default", spec->default_value);
  g_string_append (json, ",\"values\":[");
  for (guint i = 0; i < klass->n_values; i++)
    add_choice (json, klass->values[i].value, klass->values[i].value_nick,
        klass->values[i].value_name);
  g_string_append_c (json, ']');
}

static void
add_array (GString *json, GParamSpec *element)
{
  gst_imaging_json_add_text (
      json, "type", G_IS_PARAM_SPEC_STRING (element) ? "paths" : "array");
  g_string_append (json, ",\"default\":[]");
  if (G_IS_PARAM_SPEC_INT (element))
    add_limits (json, "items", "int", G_PARAM_SPEC_INT (element)->minimum,
        G_PARAM_SPEC_INT (element)->maximum);
  else if (G_IS_PARAM_SPEC_DOUBLE (element))
    add_limits (json, "items", "double", G_PARAM_SPEC_DOUBLE (element)->minimum,
        G_PARAM_SPEC_DOUBLE (element)->maximum);
}

static void
add_fraction (GString *json, GstParamSpecFraction *spec)
{
  g_autofree gchar *text =
      g_strdup_printf ("%d/%d", spec->def_num, spec->def_den);

  gst_imaging_json_add_text (json, "type", "fraction");
  gst_imaging_json_add_text (json, "default", text);
}

static void
add_string (
    GString *json, GParamSpecString *spec, const GstImagingSetting *setting)
{
  gboolean is_path = setting && setting->kind == GST_IMAGING_KIND_PATH;

  gst_imaging_json_add_text (json, "type", is_path ? "path" : "string");
  gst_imaging_json_add_text (
      json, "default", spec->default_value ? spec->default_value : "");
}

static void
add_type (GString *json, GParamSpec *spec, const GstImagingSetting *setting)
{
  if (G_IS_PARAM_SPEC_BOOLEAN (spec)) {
    gst_imaging_json_add_text (json, "type", "boolean");
    g_string_append_printf (json, ",\"default\":%s",
        G_PARAM_SPEC_BOOLEAN (spec)->default_value ? "true" : "false");
  } else if (G_IS_PARAM_SPEC_INT (spec)) {
    GParamSpecInt *s = G_PARAM_SPEC_INT (spec);

    add_range (json, "int", s->minimum, s->maximum, s->default_value);
  } else if (G_IS_PARAM_SPEC_UINT (spec)) {
    GParamSpecUInt *s = G_PARAM_SPEC_UINT (spec);

    add_range (json, "int", s->minimum, s->maximum, s->default_value);
  } else if (G_IS_PARAM_SPEC_UINT64 (spec)) {
    GParamSpecUInt64 *s = G_PARAM_SPEC_UINT64 (spec);

    gst_imaging_json_add_text (json, "type", "int");
    g_string_append_printf (json,
        ",\"minimum\":%" G_GUINT64_FORMAT ",\"maximum\":%" G_GUINT64_FORMAT
        ",\"default\":%" G_GUINT64_FORMAT,
        s->minimum, s->maximum, s->default_value); /* a double is too short */
  } else if (G_IS_PARAM_SPEC_DOUBLE (spec)) {
    GParamSpecDouble *s = G_PARAM_SPEC_DOUBLE (spec);

    add_range (json, "double", s->minimum, s->maximum, s->default_value);
  } else if (G_IS_PARAM_SPEC_ENUM (spec)) {
    add_enum (json, G_PARAM_SPEC_ENUM (spec));
  } else if (G_IS_PARAM_SPEC_FLAGS (spec)) {
    add_flags (json, G_PARAM_SPEC_FLAGS (spec));
  } else if (GST_IS_PARAM_SPEC_FRACTION (spec)) {
    add_fraction (json, GST_PARAM_SPEC_FRACTION (spec));
  } else if (GST_IS_PARAM_SPEC_ARRAY_LIST (spec)) {
    add_array (json, GST_PARAM_SPEC_ARRAY_LIST (spec)->element_spec);
  } else if (G_IS_PARAM_SPEC_STRING (spec)) {
    add_string (json, G_PARAM_SPEC_STRING (spec), setting);
  } else {
    gst_imaging_json_add_text (json, "type", "structure");
  }
}

static const gchar *
when_of (GParamSpec *spec, const GstImagingSetting *setting)
{
  if (!(spec->flags & G_PARAM_WRITABLE))
    return "read";
  if (setting && setting->when == GST_IMAGING_WHEN_NEXT_SET)
    return "set";
  return spec->flags & (GST_PARAM_MUTABLE_PLAYING | GST_PARAM_MUTABLE_PAUSED)
             ? "frame"
             : "start";
}

/* Those of GstObject, GstBaseTransform and so on are no settings. */
static gboolean
is_ours (GParamSpec *spec, GType type)
{
  return spec->owner_type == type ||
         g_str_has_prefix (g_type_name (spec->owner_type), "GstImaging") ||
         g_type_get_qdata (spec->owner_type, table_quark ());
}

gchar *
gst_imaging_settings_describe (GType type)
{
  const GstImagingSettingsTable *table;
  GObjectClass *klass;
  GParamSpec **specs;
  GString *json;
  guint n;

  if (!g_type_is_a (type, GST_TYPE_ELEMENT))
    return NULL;
  klass = g_type_class_ref (type);
  table = table_of (type);
  specs = g_object_class_list_properties (klass, &n);
  json = g_string_new ("[");
  for (guint i = 0; table && i < n; i++) {
    const GstImagingSetting *setting =
        gst_imaging_settings_table_find (table, specs[i]->name);

    if (!is_ours (specs[i], type))
      continue;
    g_string_append_printf (
        json, "%s\n{\"name\":\"%s\"", json->len > 1 ? "," : "", specs[i]->name);
    add_type (json, specs[i], setting);
    gst_imaging_json_add_text (json, "when", when_of (specs[i], setting));
    if (setting && setting->unit)
      gst_imaging_json_add_text (json, "unit", setting->unit);
    if (setting && setting->written)
      g_string_append (json, ",\"written\":true");
    gst_imaging_json_add_text (
        json, "blurb", g_param_spec_get_blurb (specs[i]));
    g_string_append_c (json, '}');
  }
  g_string_append (json, "]\n");
  g_free (specs);
  g_type_class_unref (klass);
  return g_string_free (json, table == NULL);
}
