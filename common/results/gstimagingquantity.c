/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingquantity.h"

/* By numbers: an element may attach a hundred thousand a second, and each name
 * that is looked up costs as much as the rest. */
enum { NAME, UNIT, SCALE, OFFSET, N_FIELDS };
enum { STEP = 2, ORIGIN }; /* of an axis, behind NAME and UNIT */

static GQuark fields[N_FIELDS];
static GQuark axis_fields[GST_IMAGING_MAX_AXES][N_FIELDS];

static void
make_fields (void)
{
  static const gchar *const names[] = {"name", "unit", "scale", "offset"};
  static const gchar *const of_axis[] = {"name", "unit", "step", "origin"};

  for (guint i = 0; i < N_FIELDS; i++) {
    fields[i] = g_quark_from_static_string (names[i]);
    for (guint k = 0; k < GST_IMAGING_MAX_AXES; k++) {
      g_autofree gchar *name = g_strdup_printf ("axis-%u-%s", k, of_axis[i]);

      axis_fields[k][i] = g_quark_from_string (name);
    }
  }
}

/* Returns: (nullable): what was registered */
static const GstMetaInfo *
get_info (void)
{
  static const gchar *const tags[] = {NULL};
  static const GstMetaInfo *info;
  static gsize once;

  if (g_once_init_enter (&once)) {
    info = gst_meta_get_info (GST_IMAGING_QUANTITY_META);
    if (!info)
      info = gst_meta_register_custom (
          GST_IMAGING_QUANTITY_META, (const gchar **) tags, NULL, NULL, NULL);
    make_fields ();
    g_once_init_leave (&once, 1);
  }
  return info;
}

static void
set_string (GstStructure *s, GQuark field, const gchar *text)
{
  GValue value = G_VALUE_INIT;

  g_value_init (&value, G_TYPE_STRING);
  g_value_set_static_string (&value, text);
  gst_structure_id_take_value (s, field, &value);
}

static void
set_double (GstStructure *s, GQuark field, gdouble number)
{
  GValue value = G_VALUE_INIT;

  g_value_init (&value, G_TYPE_DOUBLE);
  g_value_set_double (&value, number);
  gst_structure_id_take_value (s, field, &value);
}

/* A buffer that comes back from its pool has the axes of the time before. */
static gboolean
has_axis (GstStructure *s, const GQuark *names, const GstImagingAxis *axis)
{
  const GValue *name = gst_structure_id_get_value (s, names[NAME]);

  return name && g_value_get_string (name) == axis->name &&
         g_value_get_string (gst_structure_id_get_value (s, names[UNIT])) ==
             axis->unit &&
         g_value_get_double (gst_structure_id_get_value (s, names[STEP])) ==
             axis->step &&
         g_value_get_double (gst_structure_id_get_value (s, names[ORIGIN])) ==
             axis->origin;
}

static void
set_axes (GstStructure *s, const GstImagingAxis *axes, guint n)
{
  for (guint k = 0; k < n; k++) {
    const GQuark *names = axis_fields[k];

    if (has_axis (s, names, &axes[k]))
      continue;
    set_string (s, names[NAME], axes[k].name);
    set_string (s, names[UNIT], axes[k].unit);
    set_double (s, names[STEP], axes[k].step);
    set_double (s, names[ORIGIN], axes[k].origin);
  }
  for (guint k = n; k < GST_IMAGING_MAX_AXES; k++)
    if (gst_structure_id_has_field (s, axis_fields[k][NAME]))
      for (guint i = 0; i < N_FIELDS; i++)
        gst_structure_remove_field (s, g_quark_to_string (axis_fields[k][i]));
}

/* Returns: (nullable): that of the meta, which is added where it is missing.
 * @flags: of a new one */
static GstStructure *
get_structure (GstBuffer *buffer, GstMetaFlags flags)
{
  const GstMetaInfo *info = get_info ();
  GstMeta *meta;

  if (!info)
    return NULL;
  meta = gst_buffer_get_meta (buffer, info->api);
  if (!meta) {
    meta = gst_buffer_add_meta (buffer, info, NULL);
    GST_META_FLAG_SET (meta, flags);
  }
  return gst_custom_meta_get_structure ((GstCustomMeta *) meta);
}

void
gst_imaging_quantity_attach (GstBuffer *buffer, const gchar *name,
    const gchar *unit, gdouble scale, gdouble offset,
    const GstImagingAxis *axes, guint n_axes)
{
  /* kept when the buffer returns to its pool */
  GstStructure *s = get_structure (buffer, GST_META_FLAG_POOLED);

  if (!s)
    return;
  set_string (s, fields[NAME], name);
  set_string (s, fields[UNIT], unit);
  set_double (s, fields[SCALE], scale);
  set_double (s, fields[OFFSET], offset);
  set_axes (s, axes, MIN (n_axes, GST_IMAGING_MAX_AXES));
}

void
gst_imaging_quantity_sign (GstBuffer *buffer, const GstImagingOrigin *origin)
{
  GstStructure *s = get_structure (buffer, GST_META_FLAG_NONE);

  if (s)
    gst_imaging_origin_set (s, origin);
}
