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

/* Adds the name with @number for the @size bytes at @at, if it gives them. */
static void
guess (GPtrArray *found, const gchar *name, gsize at, gsize size,
    const gchar *number)
{
  g_autofree gchar *pattern =
      g_strdup_printf ("%.*s%s%s", (gint) at, name, number, name + at + size);
  g_autofree gchar *again = NULL;
  GstImagingFileNumber self;
  guint64 n;

  if (!gst_imaging_file_number_find (&self, pattern, NULL) ||
      !gst_imaging_file_number_get (&self, pattern, name, &n))
    return;
  again = gst_imaging_file_number_put (&self, pattern, n);
  if (strcmp (again, name) == 0)
    g_ptr_array_add (found, g_steal_pointer (&pattern));
}

/* @at, @size: digits, and spaces before them */
static void
guess_all (GPtrArray *found, const gchar *name, gsize at, gsize size)
{
  static const gchar letters[] = "du";

  for (guint i = 0; letters[i]; i++) {
    gchar plain[] = {'%', letters[i], '\0'};

    for (gsize width = MIN (size, MAX_DIGITS); width > 0; width--)
      for (guint zeros = 0; zeros < 2; zeros++) {
        g_autofree gchar *number = g_strdup_printf (
            "%%%s%" G_GSIZE_FORMAT "%c", zeros ? "0" : "", width, letters[i]);

        guess (found, name, at, size, number);
      }
    guess (found, name, at, size, plain);
  }
}

gchar **
gst_imaging_file_number_guess (const gchar *name)
{
  GPtrArray *found = g_ptr_array_new ();
  gsize start;

  for (gsize end = strlen (name); end > 0; end = MIN (start, end - 1)) {
    for (start = end; start > 0 && g_ascii_isdigit (name[start - 1]);)
      start--;
    if (start == end)
      continue;
    guess_all (found, name, start, end - start);
    /* spaces before it are part of the number or of the name */
    for (gsize at = start;
         at > 0 && name[at - 1] == ' ' && end - at < MAX_DIGITS; at--)
      guess_all (found, name, at - 1, end - at + 1);
  }
  g_ptr_array_add (found, NULL);
  return (gchar **) g_ptr_array_free (found, FALSE);
}
