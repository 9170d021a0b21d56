/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingformat.h"

#include <json-glib/json-glib.h>

/* json_gvariant_deserialize() takes time by the square of an array's length:
 * minutes for the times of a long recording. */

static GVariant *to_variant (JsonNode *node);

static GVariant *
array_to_variant (JsonArray *array)
{
  guint n = json_array_get_length (array);
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("av"));
  for (guint i = 0; i < n; i++)
    g_variant_builder_add (
        &builder, "v", to_variant (json_array_get_element (array, i)));
  return g_variant_builder_end (&builder);
}

static GVariant *
object_to_variant (JsonObject *object)
{
  GVariantBuilder builder;
  JsonObjectIter iter;
  const gchar *key;
  JsonNode *node;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  json_object_iter_init (&iter, object);
  while (json_object_iter_next (&iter, &key, &node))
    g_variant_builder_add (&builder, "{sv}", key, to_variant (node));
  return g_variant_builder_end (&builder);
}

static GVariant *
value_to_variant (JsonNode *node)
{
  switch (json_node_get_value_type (node)) {
  case G_TYPE_INT64:
    return g_variant_new_int64 (json_node_get_int (node));
  case G_TYPE_DOUBLE:
    return g_variant_new_double (json_node_get_double (node));
  case G_TYPE_BOOLEAN:
    return g_variant_new_boolean (json_node_get_boolean (node));
  default:
    return g_variant_new_string (json_node_get_string (node));
  }
}

/* null is an empty maybe. Returns: (transfer floating) */
static GVariant *
to_variant (JsonNode *node)
{
  switch (json_node_get_node_type (node)) {
  case JSON_NODE_OBJECT:
    return object_to_variant (json_node_get_object (node));
  case JSON_NODE_ARRAY:
    return array_to_variant (json_node_get_array (node));
  case JSON_NODE_VALUE:
    return value_to_variant (node);
  default:
    return g_variant_new_maybe (G_VARIANT_TYPE_VARIANT, NULL);
  }
}

/* Returns: (transfer full) (nullable) */
GVariant *
gst_imaging_format_parse_json (const gchar *text)
{
  g_autoptr (JsonParser) parser = json_parser_new_immutable ();
  JsonNode *root;

  if (!json_parser_load_from_data (parser, text, -1, NULL))
    return NULL;
  root = json_parser_get_root (parser);
  return root ? g_variant_ref_sink (to_variant (root)) : NULL;
}
