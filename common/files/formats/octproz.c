/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings of OCTproZ: NAME_raw.raw, and NAME_meta.txt with the settings of
 * the program. The group of the acquisition system has width (samples), height
 * (A-scans of a B-scan), depth (B-scans of a buffer) and bit_depth; whole
 * buffers are recorded. */
#include "rawspectra.h"

#include <string.h>

#include "files/gstimagingfile.h"

#define RAW "_raw.raw"
#define PROCESSED "_processed.raw"
#define SETTINGS "_meta.txt"
#define MAX_NUMBER G_MAXUINT32

enum { WIDTH, HEIGHT, DEPTH, BIT_DEPTH, N_KEYS };

static const gchar *const keys[N_KEYS] = {
    "width", "height", "depth", "bit_depth"};

/* Returns: (transfer full) (nullable): the path of the settings */
gchar *
gst_imaging_octproz_find_settings (const gchar *location)
{
  static const gchar *const ends[] = {RAW, PROCESSED};

  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_has_suffix (location, ends[i])) {
      gsize n = strlen (location) - strlen (ends[i]);

      return g_strdup_printf ("%.*s" SETTINGS, (int) n, location);
    }
  return NULL;
}

gboolean
gst_imaging_octproz_is (const gchar *location)
{
  g_autofree gchar *settings = gst_imaging_octproz_find_settings (location);

  return settings && g_file_test (settings, G_FILE_TEST_EXISTS);
}

static gboolean
has_keys (GKeyFile *ini, const gchar *group)
{
  for (guint i = 0; i < N_KEYS; i++)
    if (!g_key_file_has_key (ini, group, keys[i], NULL))
      return FALSE;
  return TRUE;
}

static gboolean
get_numbers (const GstImagingFormatFile *file, const gchar *told, GKeyFile *ini,
    const gchar *group, guint64 *numbers, GError **error)
{
  for (guint i = 0; i < N_KEYS; i++) {
    g_autofree gchar *text = g_key_file_get_value (ini, group, keys[i], NULL);

    if (!g_ascii_string_to_unsigned (
            text, 10, 1, MAX_NUMBER, &numbers[i], NULL)) {
      g_autofree gchar *shown = gst_imaging_file_quote (text, -1);

      return gst_imaging_format_fail (file, error,
          GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
          "has settings in \"%s\" with %s=%s; expected is a whole number from "
          "1 to %u.",
          told, keys[i], shown, MAX_NUMBER);
    }
  }
  return TRUE;
}

static gboolean
find_type (const GstImagingFormatFile *file, const gchar *told, guint64 bits,
    GstImagingNdArrayType *type, GError **error)
{
  if (bits <= 8)
    *type = GST_IMAGING_ND_ARRAY_TYPE_U8;
  else if (bits <= 16)
    *type = GST_IMAGING_ND_ARRAY_TYPE_U16;
  else if (bits > 24 && bits <= 32)
    *type = GST_IMAGING_ND_ARRAY_TYPE_U32;
  else
    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has settings in \"%s\" with bit_depth=%" G_GUINT64_FORMAT
        "; samples of 1 to 16 and of 25 to 32 bits are read here.",
        told, bits);
  return TRUE;
}

/* @as: the group of the cards: that of a system is called after it. Paths are
 * of another machine. */
static void
add_cards (GKeyFile *ini, const gchar *group, const gchar *as, GPtrArray *cards)
{
  g_auto (GStrv) names = g_key_file_get_keys (ini, group, NULL, NULL);

  for (gchar **name = names; name && *name; name++) {
    g_autofree gchar *value = g_key_file_get_value (ini, group, *name, NULL);
    g_autofree gchar *key = g_strdup_printf ("%s/%s", as, *name);

    if (value && *value && !strstr (*name, "path"))
      gst_imaging_format_add_card (cards, key, value);
  }
}

/* Of several systems in the settings, the one whose buffers fit is the one that
 * recorded. Returns: whether the size of @file is whole buffers */
static gboolean
fits (const GstImagingFormatFile *file, const guint64 *n)
{
  guint64 line = n[WIDTH] * ((n[BIT_DEPTH] + 7) / 8), size;

  return g_uint64_checked_mul (&size, line, n[HEIGHT]) &&
         g_uint64_checked_mul (&size, size, n[DEPTH]) && file->size > 0 &&
         file->size % size == 0;
}

gboolean
gst_imaging_octproz_parse (const GstImagingFormatFile *file, const gchar *told,
    const gchar *text, gsize size, GstImagingRawLayout *layout, GError **error)
{
  g_autoptr (GKeyFile) ini = g_key_file_new ();
  g_auto (GStrv) groups = NULL;
  g_autoptr (GError) why = NULL;
  guint64 n[N_KEYS], found[N_KEYS] = {0};
  const gchar *system = NULL;

  if (!g_key_file_load_from_data (ini, text, size, G_KEY_FILE_NONE, &why)) {
    g_autofree gchar *shown = gst_imaging_file_quote (why->message, -1);

    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "has settings in \"%s\" that are none of OCTproZ (%s).", told, shown);
  }
  groups = g_key_file_get_groups (ini, NULL);
  for (gchar **group = groups; *group; group++) {
    if (!has_keys (ini, *group))
      continue;
    if (!get_numbers (file, told, ini, *group, n, error))
      return FALSE;
    if (!system || fits (file, n)) {
      memcpy (found, n, sizeof (found));
      system = *group;
    }
    if (fits (file, n))
      break;
  }
  if (!system)
    return gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "has settings in \"%s\" without the group of an acquisition system "
        "with width, height, depth and bit_depth. Add one, or give --samples "
        "and --lines to gst-imaging oct.",
        told);
  layout->n_samples = found[WIDTH];
  layout->n_lines = found[HEIGHT];
  layout->n_together = found[DEPTH];
  add_cards (ini, "processing", "processing", layout->cards);
  add_cards (ini, system, "system", layout->cards);
  return find_type (file, told, found[BIT_DEPTH], &layout->type, error);
}

static gpointer
octproz_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  g_autofree gchar *settings =
      gst_imaging_octproz_find_settings (file->location);

  if (g_str_has_suffix (file->location, PROCESSED)) {
    gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "has images that OCTproZ has processed, and not the raw spectra. "
        "Record the raw buffers as well, and take NAME" RAW ".");
    return NULL;
  }
  return gst_imaging_raw_spectra_open (
      file, settings, gst_imaging_octproz_parse, array, n_pages, error);
}

const GstImagingFormatTable gst_imaging_format_octproz = {
    .name = "OCTproZ",
    .open = octproz_open,
    .read = gst_imaging_raw_spectra_read,
    .close = gst_imaging_raw_spectra_close,
};
