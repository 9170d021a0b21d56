/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingfileseries.h"

#include <string.h>

#include "files/gstimagingfile.h"

#define MAX_DIGITS 18
#define MAX_NAMED 8       /* gaps in the sentence */
#define MAX_LOOKED_FOR 64 /* files of a gap: a pattern may leave them out */

/* The names are @prefix, a number, and what is at @suffix of the first. */
typedef struct {
  gsize prefix;
  const gchar *suffix;
  guint64 *numbers;
  guint64 step;
} Series;

/* --- numbers -------------------------------------------------------------- */

static gsize
count_digits (const gchar *text)
{
  return strspn (text, "0123456789");
}

/* Do all names differ only in the number at @at of the first? */
static gboolean
read_numbers (Series *self, const gchar *const *names, guint n, gsize at)
{
  self->prefix = at;
  self->suffix = names[0] + at + count_digits (names[0] + at);
  for (guint i = 0; i < n; i++) {
    gsize n_digits;

    if (strncmp (names[i], names[0], at) != 0)
      return FALSE;
    n_digits = count_digits (names[i] + at);
    if (n_digits == 0 || n_digits > MAX_DIGITS ||
        strcmp (names[i] + at + n_digits, self->suffix) != 0)
      return FALSE;
    self->numbers[i] = g_ascii_strtoull (names[i] + at, NULL, 10);
  }
  return TRUE;
}

/* Wavelengths or angles in the names have no step. */
static gboolean
find_step (Series *self, guint n)
{
  guint64 step = G_MAXUINT64;
  guint n_equal = 0;

  for (guint i = 1; i < n; i++)
    if (self->numbers[i] <= self->numbers[i - 1])
      return FALSE;
    else
      step = MIN (step, self->numbers[i] - self->numbers[i - 1]);
  for (guint i = 1; i < n; i++) {
    if ((self->numbers[i] - self->numbers[i - 1]) % step != 0)
      return FALSE;
    n_equal += self->numbers[i] - self->numbers[i - 1] == step;
  }
  self->step = step;
  return 2 * n_equal >= n - 1;
}

static gboolean
find_series (Series *self, const gchar *const *names, guint n)
{
  const gchar *base = strrchr (names[0], '/');

  base = base ? base + 1 : names[0];
  for (const gchar *at = base; *at; at += MAX (count_digits (at), 1))
    if (g_ascii_isdigit (*at) &&
        read_numbers (self, names, n, (gsize) (at - names[0])))
      return find_step (self, n);
  return FALSE;
}

/* --- gaps ----------------------------------------------------------------- */

static gboolean
has_file (const Series *self, const gchar *like, guint64 number)
{
  gint width = (gint) count_digits (like + self->prefix);
  g_autofree gchar *path = g_strdup_printf ("%.*s%0*" G_GUINT64_FORMAT "%s",
      (gint) self->prefix, like, width, number, self->suffix);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

/* Is there a file that the caller has left out? */
static gboolean
is_left_out (const Series *self, const gchar *const *names, guint i)
{
  guint64 number = self->numbers[i - 1] + self->step;

  for (guint n = 0; n < MAX_LOOKED_FOR && number < self->numbers[i];
       n++, number += self->step)
    if (has_file (self, names[i - 1], number) ||
        has_file (self, names[i], number))
      return TRUE;
  return FALSE;
}

static void
name_gap (const Series *self, GString *text, guint i)
{
  guint64 first = self->numbers[i - 1] + self->step;
  guint64 last = self->numbers[i] - self->step;

  g_string_append_printf (
      text, "%s%" G_GUINT64_FORMAT, text->len > 0 ? ", " : "", first);
  if (last > first)
    g_string_append_printf (text, " to %" G_GUINT64_FORMAT, last);
}

/* Returns: (transfer full) */
static gchar *
make_sentence (const gchar *const *names, guint n, guint64 n_missing,
    guint n_gaps, const gchar *gaps)
{
  g_autofree gchar *first = g_path_get_basename (names[0]);
  g_autofree gchar *last = g_path_get_basename (names[n - 1]);
  g_autofree gchar *shown_first = gst_imaging_file_quote (first, -1);
  g_autofree gchar *shown_last = gst_imaging_file_quote (last, -1);

  return g_strdup_printf ("From \"%s\" to \"%s\" %" G_GUINT64_FORMAT
                          " file%s missing: %s%s. They count as frames that "
                          "are missing.",
      shown_first, shown_last, n_missing, n_missing == 1 ? " is" : "s are",
      gaps, n_gaps > MAX_NAMED ? " and more" : "");
}

static gchar *
find_gaps (
    const Series *self, const gchar *const *names, guint n, guint64 *missing)
{
  g_autoptr (GString) gaps = g_string_new (NULL);
  guint n_gaps = 0;

  for (guint i = 1; i < n; i++) {
    guint64 here = (self->numbers[i] - self->numbers[i - 1]) / self->step - 1;

    if (here > 0 && is_left_out (self, names, i)) {
      memset (missing, 0, n * sizeof (missing[0]));
      return NULL;
    }
    missing[i] = missing[i - 1] + here;
    n_gaps += here > 0;
    if (here > 0 && n_gaps <= MAX_NAMED)
      name_gap (self, gaps, i);
  }
  return n_gaps == 0
             ? NULL
             : make_sentence (names, n, missing[n - 1], n_gaps, gaps->str);
}

gchar *
gst_imaging_file_series_find_missing (
    const gchar *const *names, guint n, guint64 *missing)
{
  Series self = {.numbers = NULL};
  gchar *note = NULL;

  memset (missing, 0, n * sizeof (missing[0]));
  if (n < 3)
    return NULL;
  self.numbers = g_new (guint64, n);
  if (find_series (&self, names, n))
    note = find_gaps (&self, names, n, missing);
  g_free (self.numbers);
  return note;
}
