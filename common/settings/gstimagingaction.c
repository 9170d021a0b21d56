/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingaction.h"

#include "gstimaging-private.h"

static GQuark
actions_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-actions");
}

/* What an argument can be */
static const struct {
  GstImagingKind kind;
  GType type;
  const gchar *name;
} kinds[] = {
    {GST_IMAGING_KIND_UINT, G_TYPE_UINT, "int"},
    {GST_IMAGING_KIND_DOUBLE, G_TYPE_DOUBLE, "double"},
    {GST_IMAGING_KIND_STRING, G_TYPE_STRING, "string"},
    {GST_IMAGING_KIND_PATH, G_TYPE_STRING, "path"},
};

static guint
find_kind (GstImagingKind kind)
{
  guint i = 0;

  while (i < G_N_ELEMENTS (kinds) && kinds[i].kind != kind)
    i++;
  return i;
}

void
gst_imaging_actions_install (
    GObjectClass *klass, const GstImagingAction *actions)
{
  const GType type = G_OBJECT_CLASS_TYPE (klass);

  for (const GstImagingAction *action = actions; action->name; action++) {
    GType types[GST_IMAGING_MAX_ARGUMENTS];
    guint n = 0;

    for (; n < GST_IMAGING_MAX_ARGUMENTS && action->arguments[n].name; n++) {
      const guint i = find_kind (action->arguments[n].kind);

      g_return_if_fail (i < G_N_ELEMENTS (kinds));
      types[n] = kinds[i].type;
    }
    g_signal_newv (action->name, type, G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION,
        g_cclosure_new (action->handler, NULL, NULL), NULL, NULL, NULL,
        action->result, n, types);
  }
  g_type_set_qdata (type, actions_quark (), (gpointer) actions);
}

static void
add_action (GString *json, const GstImagingAction *action)
{
  g_string_append_printf (json, "\n{\"name\":\"%s\"", action->name);
  gst_imaging_json_add_text (json, "blurb", action->blurb);
  g_string_append (json, ",\"arguments\":[");
  for (guint i = 0; i < GST_IMAGING_MAX_ARGUMENTS; i++) {
    if (!action->arguments[i].name)
      break;
    g_string_append_printf (json, "%s{\"name\":\"%s\",\"type\":\"%s\"}",
        i ? "," : "", action->arguments[i].name,
        kinds[find_kind (action->arguments[i].kind)].name);
  }
  g_string_append (json, "],\"files\":[");
  for (guint i = 0; i < G_N_ELEMENTS (action->files) && action->files[i]; i++)
    g_string_append_printf (json, "%s\"%s\"", i ? "," : "", action->files[i]);
  g_string_append (json, "]}");
}

gchar *
gst_imaging_actions_describe (GType type)
{
  GString *json = g_string_new ("[");
  gpointer klass =
      g_type_is_a (type, GST_TYPE_ELEMENT) ? g_type_class_ref (type) : NULL;
  const GstImagingAction *action =
      klass ? g_type_get_qdata (type, actions_quark ()) : NULL;

  for (; action && action->name; action++) {
    if (json->len > 1)
      g_string_append_c (json, ',');
    add_action (json, action);
  }
  g_clear_pointer (&klass, g_type_class_unref);
  g_string_append (json, "]\n");
  return g_string_free (json, FALSE);
}
