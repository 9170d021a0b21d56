/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* .unp: 16-bit samples of spectra, and an .xml with their layout, as the
 * programs around Bioptigen's instruments and of UC Davis write them: the
 * element Volume_Size has the attributes Width (samples), Height (A-scans),
 * Number_of_Frames and Number_of_Volumes. */
#include "rawspectra.h"

#include <string.h>

#include "files/gstimagingfile.h"

#define EXTENSION ".unp"
#define MAX_NUMBER G_MAXUINT32

enum { WIDTH, HEIGHT, FRAMES, VOLUMES, N_NUMBERS };

static const gchar *const names[N_NUMBERS] = {
    "Width", "Height", "Number_of_Frames", "Number_of_Volumes"};

typedef struct {
  GPtrArray *cards;
  guint64 numbers[N_NUMBERS];
  gboolean found;
} Parser;

static gboolean
take_size (
    Parser *self, const gchar **keys, const gchar **values, GError **error)
{
  self->numbers[VOLUMES] = 1;
  self->found = TRUE;
  for (; *keys; keys++, values++)
    for (guint i = 0; i < N_NUMBERS; i++)
      if (g_ascii_strcasecmp (*keys, names[i]) == 0 &&
          !g_ascii_string_to_unsigned (
              *values, 10, 1, MAX_NUMBER, &self->numbers[i], NULL)) {
        g_set_error (error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
            "%s=\"%s\" is no whole number from 1 to %u", names[i], *values,
            MAX_NUMBER);
        return FALSE;
      }
  for (guint i = 0; i < N_NUMBERS; i++)
    if (self->numbers[i] == 0) {
      g_set_error (error, G_MARKUP_ERROR, G_MARKUP_ERROR_MISSING_ATTRIBUTE,
          "Volume_Size has no %s", names[i]);
      return FALSE;
    }
  return TRUE;
}

static void
start_element (GMarkupParseContext *context, const gchar *element,
    const gchar **keys, const gchar **values, gpointer data, GError **error)
{
  Parser *self = data;

  for (guint i = 0; keys[i]; i++) {
    g_autofree gchar *key = g_strdup_printf ("%s/%s", element, keys[i]);

    gst_imaging_format_add_card (self->cards, key, values[i]);
  }
  if (g_ascii_strcasecmp (element, "Volume_Size") == 0)
    take_size (self, keys, values, error);
}

gboolean
gst_imaging_unp_parse (const GstImagingFormatFile *file, const gchar *told,
    const gchar *text, gsize size, GstImagingRawLayout *layout, GError **error)
{
  static const GMarkupParser markup = {.start_element = start_element};
  Parser self = {.cards = layout->cards};
  g_autoptr (GMarkupParseContext) context =
      g_markup_parse_context_new (&markup, 0, &self, NULL);
  g_autoptr (GError) why = NULL;

  if (!g_markup_parse_context_parse (context, text, (gssize) size, &why) ||
      !g_markup_parse_context_end_parse (context, &why)) {
    g_autofree gchar *shown = gst_imaging_file_quote (why->message, -1);

    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "has settings in \"%s\" that cannot be used: %s.", told, shown);
  }
  if (!self.found)
    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "has settings in \"%s\" without the element Volume_Size, which tells "
        "Width, Height and Number_of_Frames. Add it.",
        told);
  layout->type = GST_IMAGING_ND_ARRAY_TYPE_U16;
  layout->n_samples = self.numbers[WIDTH];
  layout->n_lines = self.numbers[HEIGHT];
  layout->n_bscans = self.numbers[FRAMES] * self.numbers[VOLUMES];
  return TRUE;
}

/* That of its name, or of the name without the last parts behind _: volume.xml
 * is for volume_1.unp and volume_2.unp. Returns: (transfer full): the first of
 * them, where there is none */
gchar *
gst_imaging_unp_find_settings (const gchar *location)
{
  gsize n = strlen (location);
  g_autofree gchar *stem =
      g_strndup (location, n - MIN (n, strlen (EXTENSION)));
  gchar *slash = strrchr (stem, G_DIR_SEPARATOR), *cut;
  gchar *first = g_strconcat (stem, ".xml", NULL);
  g_autofree gchar *path = g_strdup (first);

  while (!g_file_test (path, G_FILE_TEST_EXISTS)) {
    cut = strrchr (slash ? slash : stem, '_');
    if (!cut)
      return first;
    *cut = '\0';
    g_free (path);
    path = g_strconcat (stem, ".xml", NULL);
  }
  g_free (first);
  return g_steal_pointer (&path);
}

static gpointer
unp_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  g_autofree gchar *settings = gst_imaging_unp_find_settings (file->location);

  return gst_imaging_raw_spectra_open (
      file, settings, gst_imaging_unp_parse, array, n_pages, error);
}

const GstImagingFormatTable gst_imaging_format_unp = {
    .name = "UNP",
    .open = unp_open,
    .read = gst_imaging_raw_spectra_read,
    .close = gst_imaging_raw_spectra_close,
};
