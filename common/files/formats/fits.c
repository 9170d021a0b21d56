/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fits.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include <fitsio.h>

#include "fitsgzip.h"
#include "fitsraw.h"

#define BLOCK GST_IMAGING_FITS_BLOCK
#define CARD GST_IMAGING_FITS_CARD
#define MAX_NAMED 1000 /* units */
#define BLANK_CARD "BLANK"
#define TAKES "FITS takes integers, f32 and f64, of one dimension or more"
#define MAX_KEY 40 /* longer than 8 is HIERARCH, which shares the card */

/* cfitsio keeps a table of open files that has no lock of its own unless it was
 * built with one. */
static GMutex lock;

typedef struct {
  const GstImagingFormatFile *file;
  GstImagingFormatFile unzipped; /* in its place, of .fits.gz */
  fitsfile *fits;
  gint datatype; /* of cfitsio, for what is read and written */
  gint64 n_per_page, next;
  gboolean writes;
  GstImagingNdArrayType type;
  gint n_dims; /* of a picture that is read, with the order of FITS */
  LONGLONG dims[GST_IMAGING_ND_ARRAY_MAX_DIMS];
  gboolean is_compressed, is_raw, has_blank;
  gint64 blank;
  GstImagingFitsRaw raw;
  GstImagingFitsGrowth *growth; /* where frames are appended, without cfitsio */
} Fits;

static const struct {
  GstImagingNdArrayType type;
  gint image, datatype;
} types[] = {
    {GST_IMAGING_ND_ARRAY_TYPE_U8, BYTE_IMG, TBYTE},
    {GST_IMAGING_ND_ARRAY_TYPE_I8, SBYTE_IMG, TSBYTE},
    {GST_IMAGING_ND_ARRAY_TYPE_I16, SHORT_IMG, TSHORT},
    {GST_IMAGING_ND_ARRAY_TYPE_U16, USHORT_IMG, TUSHORT},
    {GST_IMAGING_ND_ARRAY_TYPE_I32, LONG_IMG, TINT},
    {GST_IMAGING_ND_ARRAY_TYPE_U32, ULONG_IMG, TUINT},
    {GST_IMAGING_ND_ARRAY_TYPE_I64, LONGLONG_IMG, TLONGLONG},
    {GST_IMAGING_ND_ARRAY_TYPE_U64, ULONGLONG_IMG, TULONGLONG},
    {GST_IMAGING_ND_ARRAY_TYPE_F32, FLOAT_IMG, TFLOAT},
    {GST_IMAGING_ND_ARRAY_TYPE_F64, DOUBLE_IMG, TDOUBLE},
};

/* What cfitsio has no code for. Returns: FALSE */
static gboolean
fail_compression (Fits *self, GError **error)
{
  gchar name[FLEN_VALUE] = "an unknown algorithm";
  gint status = 0;
  float version;

  fits_read_key (self->fits, TSTRING, "ZCMPTYPE", name, NULL, &status);
  fits_clear_errmsg ();
  return gst_imaging_format_fail (self->file, error,
      GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "is compressed by %s, which cfitsio %.2f does not read. Save it with "
      "RICE_1 or GZIP_2, or not compressed.",
      name, (gdouble) fits_get_version (&version));
}

static gboolean
fail (Fits *self, gint status, GError **error)
{
  gchar text[FLEN_ERRMSG], first[FLEN_ERRMSG];

  if (!fits_read_errmsg (first))
    fits_get_errstatus (status, first);
  while (fits_read_errmsg (text)) /* the list is the process's */
    ;
  if (self->writes)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_WRITE, "cannot be written as FITS: %s.",
        first);
  if (status == NUM_OVERFLOW)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "holds integers that BSCALE and BZERO take out of their range. Save it "
        "as floats.");
  if (strstr (first, "unknown compression algorithm"))
    return fail_compression (self, error);
  return gst_imaging_format_fail_damaged (self->file, error, first);
}

/* By descriptor: the name may have become that of another file, and no name of
 * a user reaches cfitsio, which has a language of names. */
static gint
open_file (Fits *self, gint mode)
{
  g_autofree gchar *path = g_strdup_printf ("/proc/self/fd/%d", self->file->fd);
  gint status = 0;

  return fits_open_diskfile (&self->fits, path, mode, &status);
}

static void
fits_close (gpointer fits)
{
  Fits *self = fits;
  gint status = 0;

  g_mutex_lock (&lock);
  if (self->fits)
    fits_close_file (self->fits, &status);
  fits_clear_errmsg ();
  g_mutex_unlock (&lock);
  gst_imaging_fits_growth_free (self->growth);
  if (self->file == &self->unzipped)
    close (self->unzipped.fd);
  g_free (self);
}

/* --- reading -------------------------------------------------------------- */

/* Adds a line on the current unit: SCI f32 [20, 30] */
static void
name_unit (Fits *self, gint image, gint n_dims, const LONGLONG *dims)
{
  gchar name[FLEN_VALUE] = "";
  g_autoptr (GString) text = NULL;
  gint status = 0;

  if (!self->file->parts || self->file->parts->len >= MAX_NAMED)
    return;
  fits_read_key (self->fits, TSTRING, "EXTNAME", name, NULL, &status);
  fits_clear_errmsg ();
  text = g_string_new (name);
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (types[i].image == image)
      g_string_append_printf (text, "%s%s", text->len > 0 ? " " : "",
          gst_imaging_nd_array_type_name (types[i].type));
  for (gint i = n_dims; i > 0; i--)
    g_string_append_printf (text, "%s%lld%s", i == n_dims ? " [" : "",
        (long long) dims[i - 1], i > 1 ? ", " : "]");
  g_ptr_array_add (self->file->parts, g_utf8_make_valid (text->str, -1));
}

/* Moves to a unit. Returns: has it a picture? The primary one may have none. */
static gboolean
read_unit (Fits *self, gint unit, gint *image, gint *n_dims, LONGLONG *dims,
    gint *status)
{
  gint kind = 0;

  *n_dims = 0;
  fits_movabs_hdu (self->fits, unit, &kind, status);
  if (*status != 0 ||
      (kind != IMAGE_HDU && !fits_is_compressed_image (self->fits, status)))
    return FALSE;
  fits_get_img_dim (self->fits, n_dims, status);
  if (*n_dims == 0)
    return FALSE;
  fits_get_img_equivtype (self->fits, image, status);
  if (*n_dims <= GST_IMAGING_ND_ARRAY_MAX_DIMS)
    fits_get_img_sizell (
        self->fits, GST_IMAGING_ND_ARRAY_MAX_DIMS, dims, status);
  return *status == 0;
}

/* To the wanted unit with a picture. @n_found: (out): how many there are */
static gint
find_image (
    Fits *self, gint *image, gint *n_dims, LONGLONG *dims, guint *n_found)
{
  gint status = 0, n_units = 0, chosen = 0;

  fits_get_num_hdus (self->fits, &n_units, &status);
  for (gint i = 1; i <= n_units && status == 0; i++) {
    if (!read_unit (self, i, image, n_dims, dims, &status))
      continue;
    name_unit (self, *image, *n_dims, dims);
    if (++*n_found == MAX (self->file->part, 1))
      chosen = i;
  }
  *n_dims = 0;
  if (chosen > 0) { /* whatever is wrong with a later one */
    status = 0;
    fits_clear_errmsg ();
    read_unit (self, chosen, image, n_dims, dims, &status);
  }
  return status;
}

/* Returns: @usual without such a card */
static gdouble
read_number (Fits *self, const gchar *key, gdouble usual)
{
  gint status = 0;
  gdouble number = usual;

  fits_read_key (self->fits, TDOUBLE, key, &number, NULL, &status);
  fits_clear_errmsg ();
  return status == 0 ? number : usual;
}

static gboolean
read_blank (Fits *self, const gchar *key)
{
  gint status = 0;
  LONGLONG blank = 0;

  fits_read_key (self->fits, TLONGLONG, key, &blank, NULL, &status);
  fits_clear_errmsg ();
  self->blank = blank;
  return status == 0;
}

/* Integers that may be BLANK become floats that hold all of them.
 * @image: cfitsio's type of the values. Returns: the type to read */
static gint
find_image_type (Fits *self, gint image)
{
  LONGLONG data = 0;
  gint status = 0, bits = 0;

  self->is_compressed = fits_is_compressed_image (self->fits, &status);
  self->has_blank = read_blank (self, "BLANK") ||
                    (self->is_compressed && read_blank (self, "ZBLANK"));
  fits_get_img_type (self->fits, &bits, &status);
  fits_get_hduaddrll (self->fits, NULL, &data, NULL, &status);
  self->raw = (GstImagingFitsRaw){.data = (guint64) data,
      .bits = bits,
      .scale = read_number (self, "BSCALE", 1),
      .zero = read_number (self, "BZERO", 0),
      .blank = self->has_blank ? &self->blank : NULL};
  self->is_raw = !self->is_compressed && (bits < 0 || bits == LONGLONG_IMG);
  if (self->is_raw) {
    GstImagingNdArrayType type =
        gst_imaging_fits_raw_find_type (&self->raw, self->has_blank);

    for (guint i = 0; i < G_N_ELEMENTS (types); i++)
      if (types[i].type == type)
        return types[i].image;
  }
  if (!self->has_blank)
    return image;
  return image == LONG_IMG || image == ULONG_IMG ? DOUBLE_IMG
         : image == BYTE_IMG || image == SBYTE_IMG || image == SHORT_IMG ||
                 image == USHORT_IMG
             ? FLOAT_IMG
             : image;
}

/* Does a card tell how samples are stored? They are not any more. */
static gboolean
is_of_storage (Fits *self, const gchar *key)
{
  gchar card[FLEN_CARD];
  gint class;

  if (strlen (key) > 8)
    return FALSE;
  g_snprintf (card, sizeof (card), "%-8s=", key);
  class = fits_get_keyclass (card);
  return class == TYP_STRUC_KEY || class == TYP_CMPRS_KEY ||
         class == TYP_SCAL_KEY || class == TYP_CKSUM_KEY ||
         class == TYP_NULL_KEY;
}

/* There is no NaN of 64-bit integers, and floats do not hold them: the number
 * that stands for no value is told. */
static void
add_blank (Fits *self, GPtrArray *cards)
{
  g_autofree gchar *text =
      self->type == GST_IMAGING_ND_ARRAY_TYPE_U64
          ? g_strdup_printf (
                "%" G_GUINT64_FORMAT, (guint64) self->blank ^ (guint64) 1 << 63)
          : g_strdup_printf ("%" G_GINT64_FORMAT, self->blank);

  if (self->has_blank && (self->type == GST_IMAGING_ND_ARRAY_TYPE_U64 ||
                             self->type == GST_IMAGING_ND_ARRAY_TYPE_I64))
    gst_imaging_format_add_card (cards, BLANK_CARD, text);
}

/* Also as they are in the file, with their comments: "CARD\nRECORDS" */
static void
read_cards (Fits *self, GstImagingNdArray *array)
{
  GPtrArray *cards = g_ptr_array_new (), *records = g_ptr_array_new ();
  gint n = 0, status = 0;

  fits_get_hdrspace (self->fits, &n, NULL, &status);
  for (gint i = 1; i <= n && status == 0; i++) {
    gchar key[FLEN_KEYWORD], value[FLEN_VALUE], comment[FLEN_COMMENT];
    gchar record[FLEN_CARD], *text = NULL;

    fits_read_record (self->fits, i, record, &status);
    fits_read_keyn (self->fits, i, key, value, comment, &status);
    if (status == 0 && strcmp (key, "CONTINUE") == 0 && records->len > 0) {
      gchar **last = (gchar **) &records->pdata[records->len - 1];
      g_autofree gchar *before = *last;

      *last = g_strdup_printf ("%s%-80s", before, record);
      continue;
    }
    if (status != 0 || !*key || is_of_storage (self, key))
      continue;
    if (*value == '\'')
      fits_read_key_longstr (self->fits, key, &text, NULL, &status);
    /* COMMENT and HISTORY have a comment alone */
    gst_imaging_format_add_card (cards, key,
        text     ? text
        : *value ? value
                 : comment);
    if (text)
      fits_free_memory (text, &status);
    g_ptr_array_add (
        records, g_strdup_printf ("%s\n%-80s",
                     (gchar *) cards->pdata[cards->len - 1], record));
  }
  add_blank (self, cards);
  g_ptr_array_add (records, NULL);
  g_strfreev (array->records);
  array->records = (gchar **) g_ptr_array_free (records, FALSE);
  gst_imaging_format_take_cards (array, cards);
}

/* Are the samples in the file as many as it says? A compressed picture has
 * fewer bytes. */
static gboolean
check_length (Fits *self, GstImagingNdArray *array, GError **error)
{
  gint bits = self->raw.bits;
  guint64 size = 1;

  if (self->is_compressed)
    return TRUE;
  for (guint i = 0; i < array->n_dims; i++)
    if (!g_uint64_checked_mul (&size, size, array->dims[i]))
      size = G_MAXUINT64 / 8;
  if (size <= self->file->size / (guint64) MAX (ABS (bits) / 8, 1))
    return TRUE;
  return gst_imaging_format_fail (self->file, error,
      GST_IMAGING_ND_ARRAY_ERROR_SIZE,
      "is truncated: it has %" G_GUINT64_FORMAT
      " bytes, and its header says %" G_GUINT64_FORMAT
      " samples of %d bits. Copy it again.",
      self->file->size, size, ABS (bits));
}

static gboolean
describe (Fits *self, GstImagingNdArray *array, GError **error)
{
  guint n_found = 0;
  gint n_dims = 0, image = 0;
  gint status = find_image (self, &image, &n_dims, self->dims, &n_found);

  if (status != 0)
    return fail (self, status, error);
  if (n_found > 0 && self->file->part > n_found)
    return gst_imaging_format_fail_part (self->file, n_found, error);
  if (n_dims == 0 || n_dims > GST_IMAGING_ND_ARRAY_MAX_DIMS)
    return gst_imaging_format_fail (self->file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "holds %s, expected is a picture of 1 to %d dimensions.",
        n_dims == 0 ? "no picture" : "a picture of more dimensions",
        GST_IMAGING_ND_ARRAY_MAX_DIMS);
  array->n_dims = (guint) n_dims;
  self->n_dims = n_dims;
  for (gint i = 0; i < n_dims; i++)
    array->dims[i] = (guint64) self->dims[n_dims - 1 - i];
  image = find_image_type (self, image);
  if (!check_length (self, array, error))
    return FALSE;
  g_strlcpy (array->axes,
      n_dims == 3   ? "nyx"
      : n_dims == 2 ? "yx"
                    : "",
      sizeof (array->axes));
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    if (types[i].image == image) {
      array->type = self->type = types[i].type;
      self->datatype = types[i].datatype;
      read_cards (self, array);
      return TRUE;
    }
  return gst_imaging_format_fail (self->file, error,
      GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "holds samples of FITS' type %d, expected is 8, 16, 32, 64, -32 or -64.",
      image);
}

static gpointer
fits_open (const GstImagingFormatFile *file, GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  Fits *self = g_new0 (Fits, 1);
  gint status;
  gboolean ok;

  self->file = file;
  if (gst_imaging_fits_is_gzip (file)) {
    self->unzipped = *file;
    ok = gst_imaging_fits_gunzip (file, &self->unzipped, error);
    self->file = self->unzipped.fd < 0 ? file : &self->unzipped;
    if (!ok) {
      fits_close (self);
      return NULL;
    }
  }
  g_mutex_lock (&lock);
  status = open_file (self, READONLY);
  ok = status == 0 ? describe (self, array, error) : fail (self, status, error);
  g_mutex_unlock (&lock);
  if (!ok) {
    fits_close (self);
    return NULL;
  }
  *n_pages = array->n_dims > 2 ? array->dims[0] : 1;
  self->n_per_page = *n_pages > 0;
  for (guint i = array->n_dims > 2; i < array->n_dims; i++)
    self->n_per_page *= (gint64) array->dims[i];
  return self;
}

/* cfitsio takes boxes of compressed pictures of any dimensions, and rows of
 * samples of three at most. */
static void
read_box (
    Fits *self, guint64 page, gpointer blank, gpointer values, gint *status)
{
  long first[GST_IMAGING_ND_ARRAY_MAX_DIMS];
  long last[GST_IMAGING_ND_ARRAY_MAX_DIMS];
  long step[GST_IMAGING_ND_ARRAY_MAX_DIMS];
  gint any_blank = 0;

  for (gint i = 0; i < self->n_dims; i++) {
    gboolean is_page = i > 1 && i == self->n_dims - 1;

    first[i] = is_page ? (long) page + 1 : 1;
    last[i] = is_page ? first[i] : (long) self->dims[i];
    step[i] = 1;
  }
  fits_read_subset (self->fits, self->datatype, first, last, step, blank,
      values, &any_blank, status);
}

/* BLANK becomes NaN where samples are floats. */
static gboolean
fits_read (gpointer reader, guint64 page, gpointer values, GError **error)
{
  Fits *self = reader;
  gfloat nan_float = NAN;
  gdouble nan_double = NAN;
  gpointer blank = self->datatype == TFLOAT    ? &nan_float
                   : self->datatype == TDOUBLE ? (gpointer) &nan_double
                                               : NULL;
  gint status = 0, any_blank = 0;

  if (self->n_per_page == 0)
    return TRUE;
  if (self->is_raw)
    return gst_imaging_fits_raw_read (&self->raw, self->file, self->type,
        page * (guint64) self->n_per_page, (gsize) self->n_per_page, values,
        error);
  g_mutex_lock (&lock);
  if (self->is_compressed)
    read_box (self, page, blank, values, &status);
  else
    fits_read_img (self->fits, self->datatype,
        (LONGLONG) page * self->n_per_page + 1, self->n_per_page, blank, values,
        &any_blank, &status);
  if (status != 0)
    fail (self, status, error);
  g_mutex_unlock (&lock);
  return status == 0;
}

/* --- writing -------------------------------------------------------------- */

/* cfitsio creates no file from a descriptor; it changes one. With EXTEND,
 * readers do not take for granted that what a crash left behind the last frame
 * is another HDU. */
static gboolean
write_empty (const GstImagingFormatFile *file, GError **error)
{
  static const gchar *const cards[] = {"SIMPLE  =                    T",
      "BITPIX  =                    8", "NAXIS   =                    0",
      "EXTEND  =                    T", "END"};
  gchar block[BLOCK];

  memset (block, ' ', sizeof (block));
  for (guint i = 0; i < G_N_ELEMENTS (cards); i++)
    memcpy (block + i * CARD, cards[i], strlen (cards[i]));
  return gst_imaging_format_write_at (file, block, sizeof (block), 0, error);
}

/* Returns: (nullable): what a file of FITS had for this card */
static const gchar *
find_record (const gchar *card, gchar **records)
{
  gsize n = strlen (card);

  for (; records && *records; records++)
    if (strncmp (*records, card, n) == 0 && (*records)[n] == '\n')
      return *records + n + 1;
  return NULL;
}

/* Cards of the array's own kind and shape are cfitsio's to write. */
static void
write_card (Fits *self, const gchar *text, gint *status)
{
  g_auto (GStrv) pair = g_strsplit (text, "=", 2);
  gchar card[FLEN_CARD], *end;

  if (!pair[0] || !pair[1] || !*pair[0] || !g_str_is_ascii (text) ||
      strlen (pair[0]) > MAX_KEY || is_of_storage (self, pair[0]))
    return;
  g_ascii_strtod (pair[1], &end);
  if (g_ascii_strcasecmp (pair[0], "COMMENT") == 0) {
    fits_write_comment (self->fits, pair[1], status);
  } else if (g_ascii_strcasecmp (pair[0], "HISTORY") == 0) {
    fits_write_history (self->fits, pair[1], status);
  } else if (*pair[1] && !*end && strlen (pair[0]) + strlen (pair[1]) < 65) {
    if (strlen (pair[0]) > 8)
      g_snprintf (card, sizeof (card), "HIERARCH %s = %s", pair[0], pair[1]);
    else
      g_snprintf (card, sizeof (card), "%-8s= %20s", pair[0], pair[1]);
    fits_write_record (self->fits, card, status);
  } else if (strcmp (pair[1], "T") == 0 || strcmp (pair[1], "F") == 0) {
    fits_write_key_log (self->fits, pair[0], *pair[1] == 'T', NULL, status);
  } else {
    fits_write_key_longstr (self->fits, pair[0], pair[1], NULL, status);
  }
}

static void
write_blank (Fits *self, const GstImagingNdArray *array, gint *status)
{
  const gchar *text = gst_imaging_format_find_card (array->cards, BLANK_CARD);
  gboolean is_unsigned = array->type == GST_IMAGING_ND_ARRAY_TYPE_U64;
  LONGLONG blank;

  if (!text || (!is_unsigned && array->type != GST_IMAGING_ND_ARRAY_TYPE_I64))
    return;
  blank =
      is_unsigned
          ? (LONGLONG) (g_ascii_strtoull (text, NULL, 10) ^ (guint64) 1 << 63)
          : (LONGLONG) g_ascii_strtoll (text, NULL, 10);
  fits_write_key_lng (self->fits, BLANK_CARD, blank, NULL, status);
}

/* @array: what was read from FITS is written as it was. */
static void
write_cards (Fits *self, const GstImagingNdArray *array, gint *status)
{
  write_blank (self, array, status);
  for (gchar **text = array->cards; text && *text && *status == 0; text++) {
    const gchar *records = find_record (*text, array->records);
    gchar card[FLEN_CARD];

    if (!records)
      write_card (self, *text, status);
    for (; records && *records && *status == 0; records += CARD) {
      g_strlcpy (card, records, CARD + 1);
      fits_write_record (self->fits, card, status);
    }
    if (*status == BAD_KEYCHAR) { /* of another format: FITS cannot have it */
      fits_clear_errmsg ();
      *status = 0;
    }
  }
}

static gpointer
fits_create (const GstImagingFormatFile *file, const GstImagingNdArray *array,
    guint64 *n_pages, GError **error)
{
  Fits *self;
  LONGLONG dims[GST_IMAGING_ND_ARRAY_MAX_DIMS];
  gint status;
  guint i;

  for (i = 0; types[i].type != array->type; i++)
    ;
  if (array->n_dims == 0) {
    gst_imaging_format_refuse_type (file, array, TAKES, error);
    return NULL;
  }
  if (!write_empty (file, error))
    return NULL;
  self = g_new0 (Fits, 1);
  self->file = file;
  self->writes = TRUE;
  self->datatype = types[i].datatype;
  for (guint d = 0; d < array->n_dims; d++)
    dims[d] = (LONGLONG) array->dims[array->n_dims - 1 - d];
  *n_pages = array->n_dims > 2 ? array->dims[0] : 1;
  self->n_per_page = (gint64) (array->n_values / MAX (*n_pages, 1));
  g_mutex_lock (&lock);
  status = open_file (self, READWRITE);
  if (status == 0)
    fits_resize_imgll (
        self->fits, types[i].image, (gint) array->n_dims, dims, &status);
  write_cards (self, array, &status);
  if (status != 0)
    fail (self, status, error);
  g_mutex_unlock (&lock);
  if (status == 0)
    return self;
  fits_close (self);
  return NULL;
}

static gboolean
fits_write (gpointer writer, gconstpointer values, GError **error)
{
  Fits *self = writer;
  gint status = 0;

  if (self->growth)
    return gst_imaging_fits_growth_write (self->growth, values, error);
  g_mutex_lock (&lock);
  if (self->n_per_page > 0)
    fits_write_img (self->fits, self->datatype, self->next + 1,
        self->n_per_page, (gpointer) values, &status);
  self->next += self->n_per_page;
  if (status != 0)
    fail (self, status, error);
  g_mutex_unlock (&lock);
  return status == 0;
}

static gboolean
fits_finish (gpointer writer, GError **error)
{
  Fits *self = writer;
  gint status = 0;

  if (self->growth)
    return TRUE;
  g_mutex_lock (&lock);
  fits_close_file (self->fits, &status);
  self->fits = NULL;
  if (status != 0)
    fail (self, status, error);
  g_mutex_unlock (&lock);
  return status == 0;
}

/* --- frames that are appended --- */

/* Of the type as it is, and nothing behind it. */
static gboolean
check_cube (Fits *self, const GstImagingNdArray *cube,
    const GstImagingNdArray *frame, GError **error)
{
  gint status = 0, n_units = 0;
  gint bits = 8 * (gint) gst_imaging_nd_array_type_size (cube->type);
  gboolean is_scaled =
      self->raw.scale != 1 || self->has_blank ||
      (self->raw.zero != 0 && fabs (self->raw.zero) != ldexp (1, bits - 1));

  if (!gst_imaging_format_has_frames (cube, frame))
    return gst_imaging_format_fail_other_frames (
        self->file, cube, frame, error);
  fits_get_num_hdus (self->fits, &n_units, &status);
  if (status == 0 && n_units == 1 && ABS (self->raw.bits) == bits &&
      !is_scaled && !self->is_compressed)
    return TRUE;
  return gst_imaging_format_fail (self->file, error,
      GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "cannot be appended to: it has several units, or its samples are scaled "
      "or compressed. Choose another name.");
}

/* Closes the file, which has a header and maybe frames. */
static gboolean
start_growth (Fits *self, const GstImagingNdArray *frame, guint64 n_frames,
    GError **error)
{
  LONGLONG data = 0;
  gint status = 0;

  g_mutex_lock (&lock);
  fits_get_hduaddrll (self->fits, NULL, &data, NULL, &status);
  fits_close_file (self->fits, &status);
  self->fits = NULL;
  if (status != 0)
    fail (self, status, error);
  g_mutex_unlock (&lock);
  if (status == 0)
    self->growth = gst_imaging_fits_growth_new (
        self->file, frame, (guint64) data, n_frames, error);
  return self->growth != NULL;
}

/* A file that is there: as a reader finds it. */
static Fits *
open_cube (const GstImagingFormatFile *file, const GstImagingNdArray *frame,
    guint64 *n_frames, GError **error)
{
  GstImagingNdArray found = {.name = NULL};
  guint64 n_pages = 0;
  Fits *self = fits_open (file, &found, &n_pages, error);
  gboolean ok;

  if (!self)
    return NULL;
  g_mutex_lock (&lock);
  ok = check_cube (self, &found, frame, error);
  g_mutex_unlock (&lock);
  *n_frames = found.dims[0];
  g_strfreev (found.cards);
  g_strfreev (found.records);
  if (ok)
    return self;
  fits_close (self);
  return NULL;
}

static gpointer
fits_append (const GstImagingFormatFile *file, const GstImagingNdArray *frame,
    guint64 n_expected, guint64 *n_frames, GError **error)
{
  GstImagingNdArray cube = *frame;
  guint64 n_pages = 0;
  Fits *self;

  *n_frames = 0;
  if (file->size > 0) {
    self = open_cube (file, frame, n_frames, error);
  } else {
    memcpy (cube.dims + 1, frame->dims, sizeof (cube.dims) - sizeof (guint64));
    cube.dims[0] = 0;
    cube.n_dims++;
    self = fits_create (file, &cube, &n_pages, error);
  }
  if (self && !start_growth (self, frame, *n_frames, error)) {
    fits_close (self);
    return NULL;
  }
  return self;
}

const GstImagingFormatTable gst_imaging_format_fits = {
    .name = "FITS",
    .open = fits_open,
    .read = fits_read,
    .close = fits_close,
    .create = fits_create,
    .write = fits_write,
    .finish = fits_finish,
    .discard = fits_close,
    .types = GST_IMAGING_FORMAT_ALL_TYPES &
             ~(GST_IMAGING_FORMAT_TYPE (BOOL) | GST_IMAGING_FORMAT_TYPE (F16) |
                 GST_IMAGING_FORMAT_TYPE (COMPLEX64) |
                 GST_IMAGING_FORMAT_TYPE (COMPLEX128)),
    .takes = TAKES,
    .append = fits_append,
    .has_parts = TRUE,
};
