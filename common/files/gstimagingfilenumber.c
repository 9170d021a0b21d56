/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingfilenumber.h"

#include <gst/gst.h>
#include <string.h>

#include "gstimagingfile.h"

#define MAX_DIGITS 20

/* "%05d" at @text. Returns: its bytes; 0 for anything else */
static gsize
scan (const gchar *text, GstImagingFileNumber *number)
{
  const gchar *at = text + 1;

  *number = (GstImagingFileNumber){.zeros = *at == '0'};
  for (; g_ascii_isdigit (*at); at++)
    number->width = MIN (10 * number->width + (guint) (*at - '0'), MAX_DIGITS);
  return *at == 'd' || *at == 'u' ? (gsize) (at + 1 - text) : 0;
}

gboolean
gst_imaging_file_number_find (
    GstImagingFileNumber *self, const gchar *location, GError **error)
{
  *self = (GstImagingFileNumber){0};
  for (const gchar *at = strchr (location, '%'); at;
       at = strchr (at + 1, '%')) {
    GstImagingFileNumber found;

    found.size = scan (at, &found);
    found.at = (gsize) (at - location);
    if (found.size > 0 && self->size > 0) {
      g_autofree gchar *name = gst_imaging_file_name (location);

      g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
          "\"%s\" has two places for a number, expected is one, such "
          "as %%05d.",
          name);
      return FALSE;
    }
    if (found.size > 0)
      *self = found;
  }
  return TRUE;
}

gboolean
gst_imaging_file_number_get (const GstImagingFileNumber *self,
    const gchar *location, const gchar *name, guint64 *n)
{
  const gchar *suffix = location + self->at + self->size, *end = NULL;

  if (strncmp (name, location, self->at) != 0)
    return FALSE;
  name += self->at;
  while (*name == ' ')
    name++;
  if (!g_ascii_isdigit (*name))
    return FALSE;
  *n = g_ascii_strtoull (name, (gchar **) &end, 10);
  return strcmp (end, suffix) == 0;
}

gchar *
gst_imaging_file_number_put (
    const GstImagingFileNumber *self, const gchar *location, guint64 n)
{
  GString *name = g_string_new_len (location, (gssize) self->at);
  g_autofree gchar *digits = g_strdup_printf ("%" G_GUINT64_FORMAT, n);

  for (gsize i = strlen (digits); i < self->width; i++)
    g_string_append_c (name, self->zeros ? '0' : ' ');
  g_string_append (name, digits);
  g_string_append (name, location + self->at + self->size);
  return g_string_free (name, FALSE);
}
