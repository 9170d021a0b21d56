/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingquantity.h"
#include "gstimagingresults-private.h"

#include <gst/video/video.h>

/* By numbers: an element may attach a hundred thousand a second, and each name
 * that is looked up costs as much as the rest. */
enum { NAME, UNIT, SCALE, OFFSET, N_FIELDS };
enum { STEP = SCALE, ORIGIN = OFFSET }; /* of an axis */

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

/* Returns: (nullable): what was registered. The tags tell elements that
 * convert, scale, turn or crop that it is not true of what they make. */
static const GstMetaInfo *
get_info (void)
{
  static const gchar *const tags[] = {GST_META_TAG_VIDEO_STR,
      GST_META_TAG_VIDEO_COLORSPACE_STR, GST_META_TAG_VIDEO_SIZE_STR,
      GST_META_TAG_VIDEO_ORIENTATION_STR, NULL};
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

void
gst_imaging_results_set_static (
    GstStructure *s, GQuark field, const gchar *text)
{
  GValue value = G_VALUE_INIT;

  g_value_init (&value, G_TYPE_STRING);
  g_value_set_static_string (&value, text);
  gst_structure_id_take_value (s, field, &value);
}

/* The quantity and the axes, in four fields each. */
typedef struct {
  const GstImagingAxis *parts[1 + GST_IMAGING_MAX_AXES];
  guint n;    /* of these */
  guint seen; /* fields */
} Wanted;

static const GQuark *
names_of (guint part)
{
  return part == 0 ? fields : axis_fields[part - 1];
}

static gboolean
is_wanted (GQuark field, const GValue *value, gpointer data)
{
  Wanted *w = data;
  guint part = w->seen / N_FIELDS, i = w->seen++ % N_FIELDS;
  const GstImagingAxis *axis;

  if (part >= w->n) /* what made the image, but no axis more */
    return w->n > GST_IMAGING_MAX_AXES || field != names_of (w->n)[NAME];
  axis = w->parts[part];
  if (field != names_of (part)[i])
    return FALSE;
  return i <= UNIT ? g_value_get_string (value) ==
                         (i == NAME ? axis->name : axis->unit)
                   : g_value_get_double (value) ==
                         (i == STEP ? axis->step : axis->origin);
}

static void
set_part (GstStructure *s, const GQuark *names, const GstImagingAxis *axis)
{
  gst_imaging_results_set_static (s, names[NAME], axis->name);
  gst_imaging_results_set_static (s, names[UNIT], axis->unit);
  gst_structure_id_set (s, names[STEP], G_TYPE_DOUBLE, axis->step,
      names[ORIGIN], G_TYPE_DOUBLE, axis->origin, NULL);
}

/* A buffer that comes back from its pool has mostly the same, of the time
 * before: to look takes half the time of setting it. */
static void
set_parts (GstStructure *s, Wanted *w)
{
  if (gst_structure_foreach (s, is_wanted, w) && w->seen >= w->n * N_FIELDS)
    return;
  for (guint k = 0; k < w->n; k++)
    set_part (s, names_of (k), w->parts[k]);
  for (guint k = w->n; k <= GST_IMAGING_MAX_AXES; k++)
    if (gst_structure_id_has_field (s, names_of (k)[NAME]))
      for (guint i = 0; i < N_FIELDS; i++)
        gst_structure_remove_field (s, g_quark_to_string (names_of (k)[i]));
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

  const GstImagingAxis quantity = {name, unit, scale, offset};
  Wanted wanted = {.parts = {&quantity}, .n = 1};

  for (guint i = 0; i < MIN (n_axes, GST_IMAGING_MAX_AXES); i++)
    wanted.parts[wanted.n++] = &axes[i];
  if (s)
    set_parts (s, &wanted);
}

static gboolean
set_field (GQuark field, const GValue *value, gpointer data)
{
  gst_structure_id_set_value (data, field, value);
  return TRUE;
}

void
gst_imaging_quantity_take (GstBuffer *buffer, GstStructure *told)
{
  GstStructure *s = told ? get_structure (buffer, GST_META_FLAG_NONE) : NULL;

  if (s) {
    gst_structure_remove_all_fields (s);
    gst_structure_foreach (told, set_field, s);
  }
  g_clear_pointer (&told, gst_structure_free);
}

void
gst_imaging_quantity_sign (GstBuffer *buffer, const GstImagingOrigin *origin)
{
  GstStructure *s = get_structure (buffer, GST_META_FLAG_NONE);

  if (s)
    gst_imaging_origin_set (s, origin);
}

void
gst_imaging_quantity_keep (GstBuffer *buffer)
{
  const GstMetaInfo *info = get_info ();
  GstMeta *meta = info ? gst_buffer_get_meta (buffer, info->api) : NULL;

  if (meta)
    GST_META_FLAG_SET (meta, GST_META_FLAG_POOLED);
}
