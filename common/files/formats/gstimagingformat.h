/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a format of files is: a table of functions, and what they share. The
 * formats that need a library are in one module, which is opened at first use;
 * the others (.npy, PNM) are in libgstimaging. */
#pragma once

#include "gstimagingndarray.h"

/* Changes with the structures below: a module of another release is refused. */
#define GST_IMAGING_FORMAT_ABI 6
#define GST_IMAGING_FORMAT_SYMBOL "gst_imaging_format_module"

/* A file that the opener or the saver has opened. It belongs to the caller,
 * and outlives what is made of it. Nothing uses its position. */
typedef struct {
  gint fd;
  guint64 size;          /* of a file that is read */
  const gchar *name;     /* as messages call it */
  const gchar *location; /* its path */

  /* Of a file that is read: 0: all pages, or the first unit; else one of them,
   * which is counted from 1 on. For formats with has_parts. */
  guint part;
  /* (nullable): open () adds what each unit is, if it reads one of several */
  GPtrArray *parts;
  /* (nullable): open () adds sentences for the user, on what may be meant
   * otherwise than it is read */
  GPtrArray *notes;

  /* Of a file that is written: 0: what the format chooses, else zlib's level
   * and 1 */
  guint level;
} GstImagingFormatFile;

typedef struct _GstImagingFormatTable GstImagingFormatTable;

/* A file is read and written page by page: a picture of several, a frame of a
 * cube, or all of it. */
struct _GstImagingFormatTable {
  const gchar *name; /* "TIFF" */

  /* Sets type, n_dims, dims, axes, orientation and cards of @array, and
   * @n_pages, which divides its values. Nothing is allocated after the sizes
   * that the file claims. Returns: what read () and close () take; NULL */
  gpointer (*open) (const GstImagingFormatFile *file, GstImagingNdArray *array,
      guint64 *n_pages, GError **error);
  /* Fills @values with one page, in the byte order of the machine. Any page,
   * any number of times. */
  gboolean (*read) (
      gpointer reader, guint64 page, gpointer values, GError **error);
  void (*close) (gpointer reader);

  /* NULL where files are read alone. @array has no values yet; @n_pages is
   * what write () takes one by one, in order. */
  gpointer (*create) (const GstImagingFormatFile *file,
      const GstImagingNdArray *array, guint64 *n_pages, GError **error);
  gboolean (*write) (gpointer writer, gconstpointer values, GError **error);
  /* After the last page; NULL where nothing is left to write */
  gboolean (*finish) (gpointer writer, GError **error);
  void (*discard) (gpointer writer);

  /* Bit 1 << GstImagingNdArrayType for each type that is written. Others are
   * refused before create () or append () is called, with the sentence @takes:
   * "PNG takes ..." */
  guint32 types;
  const gchar *takes;

  /* NULL where a file holds one picture. write () takes frames, as many as
   * there will be, and after each of them the file is valid: also when the next
   * one does not fit on the disk, or the process ends within it. finish () may
   * come after any number. @frame: without values. @n_expected: frames that
   * will be there at most; 0: not known. @n_frames: (out): those of the file,
   * which may be empty */
  gpointer (*append) (const GstImagingFormatFile *file,
      const GstImagingNdArray *frame, guint64 n_expected, guint64 *n_frames,
      GError **error);
  gboolean has_pages; /* such a frame is a picture, and not any array */
  gboolean has_parts; /* open () heeds GstImagingFormatFile.part */
  gboolean shows_rgb; /* of four channels, the last is opacity */
};

#define GST_IMAGING_FORMAT_TYPE(TYPE) (1u << GST_IMAGING_ND_ARRAY_TYPE_##TYPE)
#define GST_IMAGING_FORMAT_ALL_TYPES \
  ((1u << (GST_IMAGING_ND_ARRAY_TYPE_U64 + 1)) - 1)

typedef struct {
  guint32 abi;
  const GstImagingFormatTable *const *tables; /* NULL ends them */
  /* NULL without json-glib */
  GVariant *(*parse_json) (const gchar *text);
} GstImagingFormatModule;

extern const GstImagingFormatTable gst_imaging_format_exr;
extern const GstImagingFormatTable gst_imaging_format_fits;
extern const GstImagingFormatTable gst_imaging_format_jpeg;
extern const GstImagingFormatTable gst_imaging_format_npy;
extern const GstImagingFormatTable gst_imaging_format_npz;
extern const GstImagingFormatTable gst_imaging_format_octproz;
extern const GstImagingFormatTable gst_imaging_format_pbm;
extern const GstImagingFormatTable gst_imaging_format_pfm;
extern const GstImagingFormatTable gst_imaging_format_png;
extern const GstImagingFormatTable gst_imaging_format_pnm;
extern const GstImagingFormatTable gst_imaging_format_raw;
extern const GstImagingFormatTable gst_imaging_format_thorlabs;
extern const GstImagingFormatTable gst_imaging_format_tiff;
extern const GstImagingFormatTable gst_imaging_format_unp;

/* Returns: (transfer full) (nullable) */
GVariant *gst_imaging_format_parse_json (const gchar *text);

/* --- what formats share --------------------------------------------------- */

/* Sets a sentence that begins with the name of the file.
 * Returns: FALSE, so that a failure is one `return` */
gboolean gst_imaging_format_fail (const GstImagingFormatFile *file,
    GError **error, GstImagingNdArrayError code, const gchar *format, ...)
    G_GNUC_PRINTF (4, 5);

/* "has no part P: it has ...". Returns: FALSE */
gboolean gst_imaging_format_fail_part (
    const GstImagingFormatFile *file, guint64 n_parts, GError **error);

/* "is damaged: TEXT.", where @text is a library's. */
gboolean gst_imaging_format_fail_damaged (
    const GstImagingFormatFile *file, GError **error, const gchar *text);

/* Returns: bytes read, fewer than @size at the end of the file; -1 with errno
 */
gssize gst_imaging_format_read_at (
    const GstImagingFormatFile *file, gpointer to, gsize size, guint64 offset);
gboolean gst_imaging_format_write_at (const GstImagingFormatFile *file,
    gconstpointer from, gsize size, guint64 offset, GError **error);

/* A frame was not written: the file ends where it did before. */
void gst_imaging_format_cut (const GstImagingFormatFile *file, guint64 size);

/* "has frames of FOUND, and those to be appended have FRAME. ..." */
gboolean gst_imaging_format_fail_other_frames (const GstImagingFormatFile *file,
    const GstImagingNdArray *found, const GstImagingNdArray *frame,
    GError **error);

/* Is @found an array of @frame, the first dimension counting them? */
gboolean gst_imaging_format_has_frames (
    const GstImagingNdArray *found, const GstImagingNdArray *frame);

/* Returns: (transfer full): all of it; NULL with @error set */
guint8 *gst_imaging_format_load (
    const GstImagingFormatFile *file, GError **error);

/* Would @size bytes of values be more than a file of this size can hold,
 * whatever its compression? Called before they are allocated. */
gboolean gst_imaging_format_check_size (
    const GstImagingFormatFile *file, guint64 size, GError **error);

/* Adds "KEY=value" to @cards; @value in any encoding. */
void gst_imaging_format_add_card (
    GPtrArray *cards, const gchar *key, const gchar *value);
/* Frees @cards. */
void gst_imaging_format_take_cards (GstImagingNdArray *array, GPtrArray *cards);

/* Sets the dimensions of pictures. A single page or channel is no dimension. */
void gst_imaging_format_set_dims (GstImagingNdArray *array, guint64 n_pages,
    guint64 height, guint64 width, guint channels);

/* An array as pictures */
typedef struct {
  guint64 n_pages;
  guint width, height, channels;
} GstImagingFormatLayout;

/* As @axes tell; without them, a last of three dimensions is channels if it is
 * 2 to 4. Both sides of a picture are below 2^31. */
gboolean gst_imaging_format_get_layout (const GstImagingFormatFile *file,
    const GstImagingNdArray *array, GstImagingFormatLayout *layout,
    GError **error);

/* "cannot be written with TYPE without loss: TAKES." Returns: FALSE */
gboolean gst_imaging_format_refuse_type (const GstImagingFormatFile *file,
    const GstImagingNdArray *array, const gchar *takes, GError **error);

/* Is the type one of the table's, and are the colours those that it shows? */
gboolean gst_imaging_format_check_type (const GstImagingFormatTable *table,
    const GstImagingFormatFile *file, const GstImagingNdArray *array,
    GError **error);

/* A card with what samples mean as colours, where that is not grey, or red,
 * green and blue: INKS of four channels, WHITE where 0 is white */
#define GST_IMAGING_FORMAT_COLOURS "PhotometricInterpretation"
#define GST_IMAGING_FORMAT_WHITE "WhiteIsZero"
#define GST_IMAGING_FORMAT_INKS "CMYK"
#define GST_IMAGING_FORMAT_INKS_INVERTED "CMYK, 0 is all ink"

/* Returns: (nullable): the value of the first card of this key */
const gchar *gst_imaging_format_find_card (gchar **cards, const gchar *key);

/* Turns a picture of @width x @height pixels of @size bytes upright.
 * @orientation: of EXIF, 1 to 8; from 5 on @to is @height wide */
void gst_imaging_format_orient (const guint8 *from, guint width, guint height,
    gsize size, guint orientation, guint8 *to);
