/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingorigin.h"

#include "gstimagingresults-private.h"
#include "imk/version.h"

enum { ELEMENT, VERSION, BACKEND, HASH, N_FIELDS };

/* By numbers: each frame of a fast element has them. */
static const GQuark *
get_fields (void)
{
  static GQuark fields[N_FIELDS];
  static gsize once;

  if (g_once_init_enter (&once)) {
    fields[ELEMENT] = g_quark_from_static_string ("element");
    fields[VERSION] = g_quark_from_static_string ("version");
    fields[BACKEND] = g_quark_from_static_string ("backend");
    fields[HASH] = g_quark_from_static_string ("settings-hash");
    g_once_init_leave (&once, 1);
  }
  return fields;
}

const gchar *
gst_imaging_origin_element (GstElement *element)
{
  GstElementFactory *factory = gst_element_get_factory (element);

  return g_intern_string (
      factory ? GST_OBJECT_NAME (factory) : G_OBJECT_TYPE_NAME (element));
}

/* A buffer of a pool has that of its last frame. */
static gboolean
has (const GstStructure *s, GQuark field, const gchar *text)
{
  const GValue *value = gst_structure_id_get_value (s, field);
  const gchar *old = value ? g_value_get_string (value) : NULL;

  return old == text || g_strcmp0 (old, text) == 0;
}

static void
set_static (GstStructure *s, GQuark field, const gchar *text)
{
  if (!has (s, field, text))
    gst_imaging_results_set_static (s, field, text);
}

void
gst_imaging_origin_set (GstStructure *s, const GstImagingOrigin *origin)
{
  const GQuark *fields = get_fields ();

  if (!origin->element)
    return;
  set_static (s, fields[ELEMENT], origin->element);
  set_static (s, fields[VERSION], IMK_VERSION);
  set_static (s, fields[BACKEND], origin->backend);
  if (!has (s, fields[HASH], origin->settings_hash))
    gst_structure_id_set (
        s, fields[HASH], G_TYPE_STRING, origin->settings_hash, NULL);
}

/* Returns: (transfer full) (nullable) */
static gchar *
get_property (GstElement *element, const gchar *name)
{
  GObjectClass *klass = G_OBJECT_GET_CLASS (element);
  gchar *text = NULL;

  if (g_object_class_find_property (klass, name))
    g_object_get (element, name, &text, NULL);
  return text;
}

void
gst_imaging_origin_set_of (GstStructure *s, GstElement *element)
{
  g_autofree gchar *hash = get_property (element, "settings-hash");
  g_autofree gchar *backend = get_property (element, "active-backend");
  const GstImagingOrigin origin = {
      .element = gst_imaging_origin_element (element),
      .backend = g_strcmp0 (backend, "cuda") == 0 ? "cuda" : "cpu",
      .settings_hash = hash};

  gst_imaging_origin_set (s, &origin);
}
