/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "thorlabsheader.h"

#include <string.h>

#include "files/gstimagingfile.h"

#define MAX_NUMBER G_MAXINT32
#define SPECTRAL "data/Spectral"
#define CAMERA "_Cam"
#define END ".data"

const gchar *const gst_imaging_thorlabs_numbers[THORLABS_N_NUMBERS] = {"SizeZ",
    "SizeX", "SizeY", "BytesPerPixel", "ApoRegionStart0", "ApoRegionEnd0",
    "ScanRegionStart0", "ScanRegionEnd0"};

static void
clear_file (gpointer data)
{
  g_free (((GstImagingThorlabsFile *) data)->name);
}

/* --- files ---------------------------------------------------------------- */

static gboolean
take_number (GstImagingThorlabsHeader *self, GstImagingThorlabsFile *file,
    const gchar *key, const gchar *value, GError **error)
{
  for (guint i = 0; i < THORLABS_N_NUMBERS; i++)
    if (strcmp (key, gst_imaging_thorlabs_numbers[i]) == 0 &&
        !g_ascii_string_to_unsigned (
            value, 10, 0, MAX_NUMBER, &file->numbers[i], NULL)) {
      g_set_error (error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
          "%s=\"%s\" is no whole number from 0 to %d", key, value, MAX_NUMBER);
      return FALSE;
    }
  self->has_several_regions |= strcmp (key, "ScanRegionStart1") == 0;
  return TRUE;
}

static void
begin_file (GstImagingThorlabsHeader *self, const gchar **keys,
    const gchar **values, GError **error)
{
  GstImagingThorlabsFile file = {.at = GST_IMAGING_THORLABS_NONE};
  const gchar *type = NULL;

  for (guint i = 0; i < THORLABS_N_NUMBERS; i++)
    file.numbers[i] = GST_IMAGING_THORLABS_NONE;
  for (guint i = 0; keys[i]; i++)
    if (strcmp (keys[i], "Type") == 0)
      type = values[i];
  file.is_raw = g_strcmp0 (type, "Raw") == 0;
  file.is_real = g_strcmp0 (type, "Real") == 0;
  for (; (file.is_raw || file.is_real) && *keys; keys++, values++)
    if (!take_number (self, &file, *keys, *values, error))
      return;
  g_array_append_val (self->files, file);
}

/* data/Spectral12.data, data/Spectral12_Cam1.data */
static void
find_place (GstImagingThorlabsFile *file)
{
  const gchar *at = file->name + strlen (SPECTRAL);
  gchar *end;
  guint64 number, camera = 0;

  if (!file->is_raw || !g_str_has_prefix (file->name, SPECTRAL) ||
      !g_ascii_isdigit (*at))
    return;
  number = g_ascii_strtoull (at, &end, 10);
  if (g_str_has_prefix (end, CAMERA) && g_ascii_isdigit (end[strlen (CAMERA)]))
    camera = g_ascii_strtoull (end + strlen (CAMERA), &end, 10);
  if (strcmp (end, END) != 0 || number > MAX_NUMBER || camera > MAX_NUMBER)
    return;
  file->at = number;
  file->camera = (guint) camera;
}

/* --- elements ------------------------------------------------------------- */

static void
start_element (GMarkupParseContext *context, const gchar *element,
    const gchar **keys, const gchar **values, gpointer data, GError **error)
{
  if (strcmp (element, "DataFile") == 0)
    begin_file (data, keys, values, error);
}

static void
take_name (GstImagingThorlabsHeader *self, gchar *name)
{
  GstImagingThorlabsFile *last =
      self->files->len > 0 ? &g_array_index (self->files,
                                 GstImagingThorlabsFile, self->files->len - 1)
                           : NULL;

  if (last && !last->name) {
    last->name = g_strdelimit (g_strdup (name), "\\", '/');
    find_place (last);
  }
}

/* Without the root. Returns: (transfer full) */
static gchar *
path_of (GMarkupParseContext *context)
{
  const GSList *stack = g_markup_parse_context_get_element_stack (context);
  GString *path = g_string_new (stack->data);

  for (stack = stack->next; stack && stack->next; stack = stack->next) {
    g_string_prepend_c (path, '/');
    g_string_prepend (path, stack->data);
  }
  return g_string_free (path, FALSE);
}

static void
take_text (GMarkupParseContext *context, const gchar *bytes, gsize size,
    gpointer data, GError **error)
{
  GstImagingThorlabsHeader *self = data;
  const gchar *element = g_markup_parse_context_get_element (context);
  g_autofree gchar *text = g_strstrip (g_strndup (bytes, size)), *path = NULL;

  if (!*text || !element)
    return;
  if (strcmp (element, "DataFile") == 0) {
    take_name (self, text);
    return;
  }
  path = path_of (context);
  gst_imaging_format_add_card (self->cards, path, text);
  if (strcmp (path, "Instrument/RawDataIsSigned") == 0)
    self->is_signed = g_ascii_strcasecmp (text, "True") == 0;
  if (strcmp (path, "Instrument/BytesPerPixel") == 0)
    self->bytes = (guint) MIN (g_ascii_strtoull (text, NULL, 10), 8);
}

/* --- the header ----------------------------------------------------------- */

/* Pictures of the video camera and texts are no samples. */
static void
drop_others (GArray *files)
{
  g_autoptr (GArray) all = g_array_copy (files);

  g_array_set_clear_func (files, NULL);
  g_array_set_size (files, 0);
  for (guint i = 0; i < all->len; i++) {
    GstImagingThorlabsFile *file =
        &g_array_index (all, GstImagingThorlabsFile, i);

    if (file->name && (file->is_raw || file->is_real))
      g_array_append_val (files, *file);
    else
      clear_file (file);
  }
  g_array_set_clear_func (files, clear_file);
}

GstImagingThorlabsHeader *
gst_imaging_thorlabs_header_new (const GstImagingFormatFile *file,
    const gchar *text, gsize size, GError **error)
{
  static const GMarkupParser markup = {
      .start_element = start_element, .text = take_text};
  g_autoptr (GstImagingThorlabsHeader) self =
      g_new0 (GstImagingThorlabsHeader, 1);
  g_autoptr (GMarkupParseContext) context =
      g_markup_parse_context_new (&markup, 0, self, NULL);
  g_autofree gchar *valid = g_utf8_make_valid (text, (gssize) size);
  const gchar *start =
      g_str_has_prefix (valid, "\357\273\277") ? valid + 3 : valid;
  g_autoptr (GError) why = NULL;

  self->bytes = 2;
  self->cards = g_ptr_array_new_with_free_func (g_free);
  self->files = g_array_new (FALSE, FALSE, sizeof (GstImagingThorlabsFile));
  g_array_set_clear_func (self->files, clear_file);
  if (!g_markup_parse_context_parse (context, start, -1, &why) ||
      !g_markup_parse_context_end_parse (context, &why)) {
    g_autofree gchar *shown = gst_imaging_file_quote (why->message, -1);

    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "has a Header.xml that cannot be used: %s.", shown);
    return NULL;
  }
  drop_others (self->files);
  return g_steal_pointer (&self);
}

void
gst_imaging_thorlabs_header_free (GstImagingThorlabsHeader *self)
{
  if (!self)
    return;
  g_array_unref (self->files);
  if (self->cards)
    g_ptr_array_unref (self->cards);
  g_free (self);
}
