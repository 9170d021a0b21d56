/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tags of TIFF that are cards of an array: texts, resolution, and what places
 * a picture on the ground. */
#include "tiff.h"

#include <string.h>

/* What libtiff does not know has no name in its headers. */
static const struct {
  guint32 tag;
  TIFFDataType type;
  const gchar *key;
  gboolean is_known; /* to libtiff */
} tags[] = {
    {TIFFTAG_IMAGEDESCRIPTION, TIFF_ASCII, "ImageDescription", TRUE},
    {TIFFTAG_MAKE, TIFF_ASCII, "Make", TRUE},
    {TIFFTAG_MODEL, TIFF_ASCII, "Model", TRUE},
    {TIFFTAG_SOFTWARE, TIFF_ASCII, "Software", TRUE},
    {TIFFTAG_DATETIME, TIFF_ASCII, "DateTime", TRUE},
    {TIFFTAG_ARTIST, TIFF_ASCII, "Artist", TRUE},
    {TIFFTAG_COPYRIGHT, TIFF_ASCII, "Copyright", TRUE},
    {TIFFTAG_XRESOLUTION, TIFF_RATIONAL, "XResolution", TRUE},
    {TIFFTAG_YRESOLUTION, TIFF_RATIONAL, "YResolution", TRUE},
    {TIFFTAG_RESOLUTIONUNIT, TIFF_SHORT, "ResolutionUnit", TRUE},
    {TIFFTAG_ORIENTATION, TIFF_SHORT, "Orientation", TRUE},
    {33550, TIFF_DOUBLE, "ModelPixelScaleTag", FALSE},
    {33922, TIFF_DOUBLE, "ModelTiepointTag", FALSE},
    {34264, TIFF_DOUBLE, "ModelTransformationTag", FALSE},
    {34735, TIFF_SHORT, "GeoKeyDirectoryTag", FALSE},
    {34736, TIFF_DOUBLE, "GeoDoubleParamsTag", FALSE},
    {34737, TIFF_ASCII, "GeoAsciiParamsTag", FALSE},
    {42112, TIFF_ASCII, "GDAL_METADATA", FALSE},
    {GST_IMAGING_TIFF_NODATA, TIFF_ASCII, "GDAL_NODATA", FALSE},
};

/* --- reading -------------------------------------------------------------- */

static void
append_number (GString *text, gdouble number)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  if (text->len > 0)
    g_string_append_c (text, ' ');
  g_string_append (text, g_ascii_dtostr (digits, sizeof (digits), number));
}

/* Returns: the values of a tag that libtiff keeps as they are; NULL without it,
 * or where the file has it in another type */
static gpointer
get_values (TIFF *tiff, guint32 tag, TIFFDataType type, guint32 *n)
{
  const TIFFField *field = TIFFFindField (tiff, tag, TIFF_ANY);
  gpointer values = NULL;
  guint16 few = 0;
  gboolean ok;

  if (!field || TIFFFieldDataType (field) != type)
    return NULL;
  *n = G_MAXUINT32; /* a text that libtiff has ended */
  if (!TIFFFieldPassCount (field))
    return type == TIFF_ASCII && TIFFGetField (tiff, tag, &values) ? values
                                                                   : NULL;
  if (TIFFFieldReadCount (field) == TIFF_VARIABLE2) {
    ok = TIFFGetField (tiff, tag, n, &values);
  } else {
    ok = TIFFGetField (tiff, tag, &few, &values);
    *n = few;
  }
  return ok ? values : NULL;
}

/* Returns: (transfer full) (nullable) */
static gchar *
read_unknown (TIFF *tiff, guint32 tag, TIFFDataType type)
{
  GString *text;
  guint32 n = 0;
  gconstpointer values = get_values (tiff, tag, type, &n);

  if (!values || n == 0)
    return NULL;
  if (type == TIFF_ASCII)
    return n == G_MAXUINT32 || memchr (values, '\0', n) ? g_strdup (values)
                                                        : NULL;
  text = g_string_new (NULL);
  for (guint32 i = 0; i < n; i++)
    append_number (text, type == TIFF_DOUBLE ? ((const gdouble *) values)[i]
                                             : ((const guint16 *) values)[i]);
  return g_string_free (text, FALSE);
}

/* Returns: (transfer full) (nullable) */
static gchar *
read_known (TIFF *tiff, guint32 tag, TIFFDataType type)
{
  gchar *text = NULL;
  float number = 0;
  guint16 code = 0;
  GString *digits;

  if (type == TIFF_ASCII)
    return TIFFGetField (tiff, tag, &text) ? g_strdup (text) : NULL;
  if (type == TIFF_SHORT ? !TIFFGetField (tiff, tag, &code)
                         : !TIFFGetField (tiff, tag, &number))
    return NULL;
  if (tag == TIFFTAG_ORIENTATION && code == ORIENTATION_TOPLEFT)
    return NULL; /* as all others are */
  digits = g_string_new (NULL);
  append_number (digits, type == TIFF_SHORT ? code : (gdouble) number);
  return g_string_free (digits, FALSE);
}

void
gst_imaging_tiff_read_tags (TIFF *tiff, GPtrArray *cards)
{
  for (guint i = 0; i < G_N_ELEMENTS (tags); i++) {
    g_autofree gchar *text =
        tags[i].is_known ? read_known (tiff, tags[i].tag, tags[i].type)
                         : read_unknown (tiff, tags[i].tag, tags[i].type);

    if (text)
      gst_imaging_format_add_card (cards, tags[i].key, text);
  }
}

/* --- writing -------------------------------------------------------------- */

gboolean
gst_imaging_tiff_is_tag (const gchar *card)
{
  for (guint i = 0; i < G_N_ELEMENTS (tags); i++) {
    gsize n = strlen (tags[i].key);

    if (strncmp (card, tags[i].key, n) == 0 && card[n] == '=')
      return tags[i].type != TIFF_SHORT || tags[i].tag > 0x8000 ||
             g_ascii_isdigit (card[n + 1]);
  }
  return FALSE;
}

static void
set_numbers (TIFF *tiff, guint32 tag, TIFFDataType type, const gchar *text)
{
  g_autoptr (GArray) doubles = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_autoptr (GArray) shorts = g_array_new (FALSE, FALSE, sizeof (guint16));
  gchar *end;

  for (;; text = end) {
    gdouble number = g_ascii_strtod (text, &end);
    guint16 code = (guint16) CLAMP (number, 0, G_MAXUINT16);

    if (end == text)
      break;
    g_array_append_val (doubles, number);
    g_array_append_val (shorts, code);
  }
  if (doubles->len > 0)
    TIFFSetField (tiff, tag, doubles->len,
        type == TIFF_DOUBLE ? doubles->data : shorts->data);
}

static void
set_tag (TIFF *tiff, guint i, const gchar *text)
{
  guint32 tag = tags[i].tag;
  TIFFFieldInfo info = {.field_tag = tag,
      .field_readcount =
          tags[i].type == TIFF_ASCII ? TIFF_VARIABLE : TIFF_VARIABLE2,
      .field_writecount =
          tags[i].type == TIFF_ASCII ? TIFF_VARIABLE : TIFF_VARIABLE2,
      .field_type = tags[i].type,
      .field_bit = FIELD_CUSTOM,
      .field_oktochange = TRUE,
      .field_passcount = tags[i].type != TIFF_ASCII,
      .field_name = (char *) tags[i].key};

  if (!tags[i].is_known)
    TIFFMergeFieldInfo (tiff, &info, 1);
  if (tags[i].type == TIFF_ASCII)
    TIFFSetField (tiff, tag, text);
  else if (!tags[i].is_known)
    set_numbers (tiff, tag, tags[i].type, text);
  else if (tags[i].type == TIFF_SHORT)
    TIFFSetField (tiff, tag, (guint) g_ascii_strtoull (text, NULL, 10));
  else
    TIFFSetField (tiff, tag, MAX (g_ascii_strtod (text, NULL), 0));
}

void
gst_imaging_tiff_set_tags (TIFF *tiff, gchar **cards, gboolean is_first)
{
  for (; cards && *cards; cards++)
    for (guint i = 0; i < G_N_ELEMENTS (tags); i++) {
      gsize n = strlen (tags[i].key);

      if (tags[i].tag != TIFFTAG_IMAGEDESCRIPTION &&
          (is_first || (tags[i].is_known && tags[i].type != TIFF_ASCII)) &&
          strncmp (*cards, tags[i].key, n) == 0 && (*cards)[n] == '=' &&
          gst_imaging_tiff_is_tag (*cards))
        set_tag (tiff, i, *cards + n + 1);
    }
}
