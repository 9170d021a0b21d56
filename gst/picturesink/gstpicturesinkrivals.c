/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinkrivals.h"

#include <string.h>
#include <sys/stat.h>

#include "gstimagingfile.h"
#include "gstpicturesinksource.h"

/* --- paths ---------------------------------------------------------------- */

static gboolean
is_same_file (const gchar *a, const gchar *b)
{
  struct stat info_a, info_b;

  return stat (a, &info_a) == 0 && stat (b, &info_b) == 0 &&
         info_a.st_dev == info_b.st_dev && info_a.st_ino == info_b.st_ino;
}

/* Also where neither is there. */
static gboolean
is_same_path (const gchar *a, const gchar *b)
{
  g_autofree gchar *folder_a = g_path_get_dirname (a);
  g_autofree gchar *folder_b = g_path_get_dirname (b);
  g_autofree gchar *base_a = g_path_get_basename (a);
  g_autofree gchar *base_b = g_path_get_basename (b);

  return is_same_file (a, b) ||
         (strcmp (base_a, base_b) == 0 && is_same_file (folder_a, folder_b));
}

/* Is the file at @path, which is there, one that a source takes from
 * @location? */
static gboolean
is_read (const gchar *location, const gchar *path)
{
  g_autofree gchar *folder = g_path_get_dirname (location);
  g_autofree gchar *pattern = g_path_get_basename (location);
  g_autofree gchar *name = g_path_get_basename (path);
  g_autofree gchar *beside = g_path_get_dirname (path);
  GstImagingFileNumber number;
  guint64 n;

  if (is_same_file (location, path) || is_same_file (location, beside))
    return TRUE;
  return !g_file_test (location, G_FILE_TEST_EXISTS) &&
         is_same_file (folder, beside) &&
         (g_pattern_match_simple (pattern, name) ||
             (gst_imaging_file_number_find (&number, pattern, NULL) &&
                 number.size > 0 &&
                 gst_imaging_file_number_get (&number, pattern, name, &n)));
}

/* Returns: (transfer full) (nullable): a file that would be replaced, and is
 * one of @location */
static gchar *
find_read (const GstPictureSinkFile *file, const gchar *location)
{
  g_autofree gchar *folder = g_path_get_dirname (file->location);
  g_autofree gchar *base = g_path_get_basename (file->location);
  g_autoptr (GDir) dir = NULL;
  GstImagingFileNumber number;
  const gchar *name;

  if (file->number.size == 0)
    return g_file_test (file->location, G_FILE_TEST_EXISTS) &&
                   is_read (location, file->location)
               ? g_strdup (file->location)
               : NULL;
  dir = file->append ? NULL : g_dir_open (folder, 0, NULL);
  if (!dir || !gst_imaging_file_number_find (&number, base, NULL) ||
      number.size == 0)
    return NULL;
  while ((name = g_dir_read_name (dir))) {
    g_autofree gchar *path = g_build_filename (folder, name, NULL);
    g_autofree gchar *target = NULL;
    guint64 n;

    if (!gst_imaging_file_number_get (&number, base, name, &n))
      continue;
    target = gst_imaging_file_number_put (&number, base, n);
    if (strcmp (target, name) == 0 && is_read (location, path))
      return g_steal_pointer (&path);
  }
  return NULL;
}

/* --- elements ------------------------------------------------------------- */

static gchar *
describe (GstElement *element, const GstPictureSinkFile *file)
{
  g_autoptr (GPtrArray) locations = gst_picture_sink_source_get_files (element);
  g_autofree gchar *name = gst_imaging_file_name (file->location);

  for (guint i = 0; i < locations->len; i++) {
    const gchar *location = g_ptr_array_index (locations, i);

    if (GST_OBJECT_FLAG_IS_SET (element, GST_ELEMENT_FLAG_SINK) &&
        is_same_path (location, file->location))
      return g_strdup_printf ("\"%s\" is the location of %s, too: one of the "
                              "two would replace what the other has written. "
                              "Give each sink a name of its own.",
          name, GST_ELEMENT_NAME (element));
    if (GST_OBJECT_FLAG_IS_SET (element, GST_ELEMENT_FLAG_SOURCE)) {
      g_autofree gchar *path = find_read (file, location);
      g_autofree gchar *input = path ? gst_imaging_file_name (path) : NULL;

      if (input)
        return g_strdup_printf ("\"%s\" is read by %s and would be %s. Write "
                                "to another name.",
            input, GST_ELEMENT_NAME (element),
            file->append ? "continued with what is made of it" : "replaced");
    }
  }
  return NULL;
}

typedef struct {
  GstElement *sink;
  const GstPictureSinkFile *file;
  gchar *sentence;
} Search;

static void
look (const GValue *item, gpointer data)
{
  GstElement *element = g_value_get_object (item);
  Search *self = data;

  if (element != self->sink && !self->sentence && !GST_IS_BIN (element))
    self->sentence = describe (element, self->file);
}

gchar *
gst_picture_sink_describe_rival (
    GstElement *sink, const GstPictureSinkFile *file)
{
  Search search = {.sink = sink, .file = file};
  GstObject *root = gst_object_ref (sink), *parent;
  GstIterator *all;

  while ((parent = gst_object_get_parent (root))) {
    gst_object_unref (root);
    root = parent;
  }
  if (GST_IS_BIN (root)) {
    all = gst_bin_iterate_recurse (GST_BIN (root));
    while (gst_iterator_foreach (all, look, &search) == GST_ITERATOR_RESYNC)
      gst_iterator_resync (all);
    gst_iterator_free (all);
  }
  gst_object_unref (root);
  return search.sentence;
}
