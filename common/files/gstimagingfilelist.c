/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingfilelist.h"

#include <stdlib.h>
#include <string.h>

#include "files/gstimagingfile.h"
#include "gstimagingfilenumber.h"
#include "gstimagingfileseries.h"
#include "gstimagingformats.h"
#include "gstimagingndarray-private.h"

#define MAX_FILES (1 << 22)

void
gst_imaging_file_list_init (GstImagingFileList *self)
{
  self->names = g_ptr_array_new_with_free_func (g_free);
  self->missing = g_array_new (FALSE, TRUE, sizeof (guint64));
  self->notes = g_ptr_array_new_with_free_func (g_free);
}

void
gst_imaging_file_list_clear (GstImagingFileList *self)
{
  g_clear_pointer (&self->names, g_ptr_array_unref);
  g_clear_pointer (&self->missing, g_array_unref);
  g_clear_pointer (&self->notes, g_ptr_array_unref);
}

/* Runs of digits by their number, all else by bytes. */
static gint
compare_naturally (gconstpointer left, gconstpointer right)
{
  const gchar *a = *(const gchar *const *) left;
  const gchar *b = *(const gchar *const *) right;
  const gchar *whole_a = a, *whole_b = b;

  while (*a && *b) {
    if (g_ascii_isdigit (*a) && g_ascii_isdigit (*b)) {
      gsize n_a, n_b;
      gint order;

      a += strspn (a, "0");
      b += strspn (b, "0");
      n_a = strspn (a, "0123456789");
      n_b = strspn (b, "0123456789");
      order = n_a != n_b ? (n_a < n_b ? -1 : 1) : memcmp (a, b, n_a);
      if (order != 0)
        return order;
      a += n_a;
      b += n_b;
    } else if (*a != *b) {
      break;
    } else {
      a++;
      b++;
    }
  }
  return *a || *b ? (guchar) *a - (guchar) *b : strcmp (whole_a, whole_b);
}

static gboolean
fail_none (const gchar *location, const gchar *what, GError **error)
{
  g_autofree gchar *name = gst_imaging_file_name (location);

  return gst_imaging_nd_array_fail (
      error, GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND, "\"%s\" %s.", name, what);
}

/* --- which files ---------------------------------------------------------- */

/* How names are chosen: by @spec, or by @number in @base */
typedef struct {
  GPatternSpec *spec;
  GstImagingFileNumber number;
  const gchar *base;
} Choice;

/* A .json beside a picture is what picturesink says of it. */
static gboolean
is_taken (const gchar *name, const Choice *choice)
{
  g_autofree gchar *valid = g_filename_display_name (name);
  guint64 n;

  return *name != '.' && !g_str_has_suffix (name, ".json") &&
         (choice->spec ? g_pattern_spec_match_string (choice->spec, valid)
                       : gst_imaging_file_number_get (
                             &choice->number, choice->base, name, &n));
}

static void
note_strangers (GstImagingFileList *self, const gchar *location,
    const gchar *first, guint n)
{
  g_autofree gchar *place = gst_imaging_file_name (location);
  g_autofree gchar *base = g_path_get_basename (first);
  g_autofree gchar *name = gst_imaging_file_quote (base, -1);
  g_autofree gchar *more =
      n > 1 ? g_strdup_printf (" and %u more", n - 1) : g_strdup ("");

  g_ptr_array_add (self->notes,
      g_strdup_printf ("Left out of \"%s\", as they have no format that is "
                       "read here: \"%s\"%s. A pattern such as *.png names "
                       "the files to take.",
          place, name, more));
}

/* Removes files without a known format, unless all of them are such. */
static void
leave_out_strangers (
    GstImagingFileList *self, GPtrArray *found, const gchar *location)
{
  g_autofree gchar *stranger = NULL;
  guint n_known = 0, n = found->len;

  for (guint i = 0; i < n; i++) {
    gchar *path = g_ptr_array_index (found, i);

    if (gst_imaging_formats_know (path)) {
      found->pdata[i] = found->pdata[n_known];
      found->pdata[n_known++] = path;
    } else if (!stranger) {
      stranger = g_strdup (path);
    }
  }
  if (n_known == 0 || n_known == n)
    return;
  for (guint i = n_known; i < n; i++)
    g_free (found->pdata[i]);
  g_ptr_array_set_size (found, (gint) n_known);
  note_strangers (self, location, stranger, n - n_known);
}

/* Numbers of files that are missing, from the first one on. */
static void
find_missing (GstImagingFileList *self, GPtrArray *found)
{
  guint begin = self->missing->len;
  guint64 n = begin > 0 ? g_array_index (self->missing, guint64, begin - 1) : 0;
  gchar *note;

  g_array_set_size (self->missing, begin + found->len);
  note =
      gst_imaging_file_series_find_missing ((const gchar *const *) found->pdata,
          found->len, &g_array_index (self->missing, guint64, begin));
  for (guint i = begin; i < self->missing->len; i++)
    g_array_index (self->missing, guint64, i) += n;
  if (note)
    g_ptr_array_add (self->notes, note);
}

/* Adds the files of @folder that are chosen; @none: what to say if there are
 * none. */
static gboolean
add_files (GstImagingFileList *self, const gchar *location, const gchar *folder,
    const Choice *choice, const gchar *none, GError **error)
{
  g_autoptr (GPtrArray) found = g_ptr_array_new ();
  GDir *dir = g_dir_open (folder, 0, NULL);
  const gchar *name;

  if (!dir)
    return fail_none (folder,
        g_file_test (folder, G_FILE_TEST_EXISTS)
            ? "is a folder that cannot be listed"
            : "is not there: there is no such folder",
        error);
  while ((name = g_dir_read_name (dir)) &&
         self->names->len + found->len < MAX_FILES) {
    g_autofree gchar *path = g_build_filename (folder, name, NULL);

    if (is_taken (name, choice) && !g_file_test (path, G_FILE_TEST_IS_DIR))
      g_ptr_array_add (found, g_steal_pointer (&path));
  }
  g_dir_close (dir);
  if (found->len == 0)
    return fail_none (location, none, error);
  leave_out_strangers (self, found, location);
  qsort (found->pdata, found->len, sizeof (gpointer), compare_naturally);
  find_missing (self, found);
  g_ptr_array_extend (self->names, found, NULL, NULL);
  return TRUE;
}

static gboolean
add_pattern (GstImagingFileList *self, const gchar *location,
    const gchar *folder, const gchar *pattern, const gchar *none,
    GError **error)
{
  g_autoptr (GPatternSpec) spec = g_pattern_spec_new (pattern);

  return add_files (
      self, location, folder, &(Choice){.spec = spec}, none, error);
}

static void
add_one (GstImagingFileList *self, const gchar *location)
{
  guint64 n = self->missing->len > 0 ? g_array_index (self->missing, guint64,
                                           self->missing->len - 1)
                                     : 0;

  g_ptr_array_add (self->names, g_strdup (location));
  g_array_append_val (self->missing, n);
}

gboolean
gst_imaging_file_list_add (
    GstImagingFileList *self, const gchar *location, GError **error)
{
  g_autofree gchar *folder = g_path_get_dirname (location);
  g_autofree gchar *base = g_path_get_basename (location);
  Choice choice = {.base = base};

  if (g_file_test (location, G_FILE_TEST_IS_DIR))
    return add_pattern (self, location, location, "*",
        "cannot be read: it is a folder without files", error);
  if (!g_file_test (location, G_FILE_TEST_EXISTS) && strpbrk (base, "*?"))
    return add_pattern (
        self, location, folder, base, "is a pattern that fits no file", error);
  if (!g_file_test (location, G_FILE_TEST_EXISTS) &&
      gst_imaging_file_number_find (&choice.number, base, NULL) &&
      choice.number.size > 0)
    return add_files (self, location, folder, &choice,
        "fits no file, whatever the number. A series is read by such a name, "
        "by a pattern with * in place of the number, or by its folder",
        error);
  add_one (self, location);
  return TRUE;
}
