/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarplace.h"

#include <math.h>

#define N_OF_POINT (sizeof (GstInsarPoint) / sizeof (gdouble))

void
gst_insar_place_clear (GstInsarPlace *self)
{
  g_free (self->crs);
  g_clear_pointer (&self->points, g_array_unref);
  *self = (GstInsarPlace){NULL};
}

/* --- caps ----------------------------------------------------------------- */

void
gst_insar_place_append_number (
    GString *text, const gchar *before, gdouble value)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  /* most numbers need fewer digits than all 17 */
  g_ascii_formatd (digits, sizeof (digits), "%.15g", value);
  if (g_ascii_strtod (digits, NULL) != value)
    g_ascii_dtostr (digits, sizeof (digits), value);
  g_string_append (text, before);
  g_string_append (text, digits);
}

static void
set_numbers (GstCaps *caps, const gchar *field, const gdouble *numbers, gsize n)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (gsize i = 0; i < n; i++)
    gst_insar_place_append_number (text, i ? " " : "", numbers[i]);
  gst_caps_set_simple (caps, field, G_TYPE_STRING, text->str, NULL);
}

void
gst_insar_place_to_caps (const GstInsarPlace *self, GstCaps *caps)
{
  if (self->crs)
    gst_caps_set_simple (caps, "crs", G_TYPE_STRING, self->crs, NULL);
  if (self->has_transform)
    set_numbers (caps, "geotransform", self->transform, 6);
  else if (self->points)
    set_numbers (caps, "gcps", (const gdouble *) self->points->data,
        N_OF_POINT * self->points->len);
}

/* Returns: (transfer full) (nullable): the numbers of @field */
static GArray *
get_numbers (const GstCaps *caps, const gchar *field)
{
  const gchar *text =
      gst_structure_get_string (gst_caps_get_structure (caps, 0), field);
  GArray *numbers = g_array_new (FALSE, FALSE, sizeof (gdouble));

  while (text && *text) {
    gchar *end;
    gdouble number = g_ascii_strtod (text, &end);

    if (end == text || (*end && *end != ' ') || !isfinite (number))
      break;
    g_array_append_val (numbers, number);
    text = *end ? end + 1 : end;
  }
  if (text && *text == '\0' && numbers->len > 0)
    return numbers;
  g_array_unref (numbers);
  return NULL;
}

void
gst_insar_place_from_caps (GstInsarPlace *self, const GstCaps *caps)
{
  g_autoptr (GArray) transform = get_numbers (caps, "geotransform");
  g_autoptr (GArray) points = get_numbers (caps, "gcps");

  *self = (GstInsarPlace){.crs = g_strdup (gst_structure_get_string (
                              gst_caps_get_structure (caps, 0), "crs"))};
  if (transform && transform->len == 6) {
    self->has_transform = TRUE;
    memcpy (self->transform, transform->data, sizeof (self->transform));
  } else if (points && points->len % N_OF_POINT == 0) {
    self->points = g_array_new (FALSE, FALSE, sizeof (GstInsarPoint));
    g_array_append_vals (
        self->points, points->data, points->len / (guint) N_OF_POINT);
  }
}

/* --- rasters -------------------------------------------------------------- */

void
gst_insar_place_rescale (GstInsarPlace *self, const GstInsarGrid *grid)
{
  const gdouble *o = grid->origin, *s = grid->step;
  gdouble *t = self->transform;

  for (guint i = 0; self->points && i < self->points->len; i++) {
    GstInsarPoint *p = &g_array_index (self->points, GstInsarPoint, i);

    p->column = (p->column - o[0]) / s[0];
    p->line = (p->line - o[1]) / s[1];
  }
  if (self->points)
    return;
  if (!self->has_transform) {
    self->has_transform = TRUE;
    t[1] = t[5] = 1;
  }
  for (guint i = 0; i < 6; i += 3) {
    t[i] += o[0] * t[i + 1] + o[1] * t[i + 2];
    t[i + 1] *= s[0];
    t[i + 2] *= s[1];
  }
}
