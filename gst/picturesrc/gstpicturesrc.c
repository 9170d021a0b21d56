/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-picturesrc
 * @title: picturesrc
 * @short_description: plays pictures and arrays from files
 *
 * Plays pictures and arrays with exactly the samples of their files: one file,
 * a list, a folder or a pattern of them, a file of several pages or frames;
 * also 16-bit colour, which the image decoders of GStreamer 1.22 do not read
 * correctly.
 *
 * | a picture                              | u8    | u16       |
 * | -------------------------------------- | ----- | --------- |
 * | `[height, width]`                      | GRAY8 | GRAY16_LE |
 * | `[height, width, 1]`                   | GRAY8 | GRAY16_LE |
 * | `[height, width, 3]`                   | RGB   | RGBA64_LE |
 * | `[height, width, 4]`                   | RGBA  | RGBA64_LE |
 *
 * GStreamer has no RGB with 16 bits, so three channels of u16 get an alpha of
 * 65535. All other types and shapes are other/tensors, fastest dimension first;
 * so are these if the next element prefers it.
 *
 * Frame n has the buffer offset n, the timestamp n / framerate and the
 * duration 1 / framerate. Files that are missing in a numbered series are
 * counted by the offsets, and named in a warning. Seeking is exact, in time and
 * in frames (format DEFAULT), also backwards. Frames are read one at a time, so
 * the files may be larger than memory.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 picturesrc location=pictures ! videoconvert ! autovideosink
 * gst-launch-1.0 picturesrc location=frames.npy framerate=100/1 loop=true !
 * videoconvert ! autovideosink
 * ]|
 */
#include "gstimagingfilesrc.h"

#include <string.h>

#include <gst/video/video.h>

#include "gstimagingpicture.h"
#include "gstimagingplace.h"
#include "gstimagingquantity.h"
#include "gstimagingsequence.h"

#define GST_TYPE_PICTURE_SRC (gst_picture_src_get_type ())
G_DECLARE_FINAL_TYPE (
    GstPictureSrc, gst_picture_src, GST, PICTURE_SRC, GstImagingFileSrc)

GST_ELEMENT_REGISTER_DECLARE (picturesrc);
GST_ELEMENT_REGISTER_DECLARE (npysrc);

GST_DEBUG_CATEGORY_STATIC (gst_picture_src_debug);
#define GST_CAT_DEFAULT gst_picture_src_debug

/* Where neither the user nor downstream names a rate. */
#define USUAL_RATE 25

typedef struct {
  GstImagingFileSrcSettings file;
  gchar **locations;
  GstImagingFraction framerate;
  gboolean loop;
  GRefString *axes;
  gint part;
} Settings;

static const GstImagingSetting settings[] = {
    GST_IMAGING_PATH ("location", NEXT_START, 0, Settings, file.location, NULL,
        NULL,
        "Path of the file to play: a picture, .npy, or a file with several "
        "pages. A folder, or a name with *, ? or a number such as %05d in its "
        "last part, plays all matching files in natural order"),
    GST_IMAGING_PATHS ("locations", NEXT_START, 0, Settings, locations,
        "Paths to play one after the other, instead of location: "
        "locations='<a.tif, b.tif>'. Each is a file, a folder or a pattern"),
    GST_IMAGING_FRACTION ("framerate", NEXT_START, 0, Settings, framerate, 0,
        "Hz",
        "Frames per second. Frame n has the timestamp n / framerate and the "
        "duration 1 / framerate. 0/1: the rate that downstream requests, "
        "otherwise 25/1"),
    GST_IMAGING_BOOLEAN ("loop", NEXT_START, 0, Settings, loop,
        "Restart after the last frame, endlessly. Offsets and timestamps "
        "continue. num-buffers limits the number of frames"),
    GST_IMAGING_STRING ("axes", NEXT_START, 0, Settings, axes,
        "Meaning of the dimensions of a file that does not declare it (.npy), "
        "one letter each: yx, yxc, nyx or nyxc with n frames, y rows, x "
        "columns, c channels. Empty: three dimensions with 2 to 4 in the last "
        "are yxc; otherwise the first of three or more is n"),
    GST_IMAGING_INT ("part", NEXT_START, 0, Settings, part, -1, G_MAXINT - 1,
        NULL,
        "Number, from 0, of the picture to play: a FITS unit with a picture "
        "(SCI, ERR, DQ), a TIFF page, an OpenEXR part, an array of Thorlabs' "
        ".oct. -1: all pages or parts, of FITS the first unit with a picture, of "
        ".oct the spectra"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  s->framerate = (GstImagingFraction){0, 1};
  s->part = -1;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .init = init_settings,
};

/* What has to be done to the samples of a file */
typedef enum { CHANGE_NONE, CHANGE_ADD_ALPHA, CHANGE_WIDEN } Change;

struct _GstPictureSrc {
  GstImagingFileSrc parent;

  /* from start to stop; only the streaming thread uses them */
  GstImagingSequence *files;
  guint n_notes;                  /* of it that the user has seen */
  const GstImagingNdArray *array; /* the first, without values */
  guint n_dims;                   /* of a page */
  const guint64 *dims;            /* likewise */
  gsize page_size;                /* bytes in the file */
  GstVideoInfo info;              /* UNKNOWN format: no video */
  gboolean is_video;              /* of what was negotiated */
  Change change;
  guint8 *packed; /* a page as it is in the file, if it needs changes */
};

/* values are in the byte order of the machine */
#define VIDEO_FORMATS \
  "{ GRAY8, RGB, RGBA, " GST_VIDEO_NE (GRAY16) ", " GST_VIDEO_NE (RGBA64) " }"
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
        VIDEO_FORMATS) "; "
                       "other/tensors, format = (string) static, num_tensors = (int) 1, "
                       "types = (string) { uint8, int8, uint16, int16, uint32, int32, uint64, "
                       "int64, float16, float32, float64 }, "
                       "framerate = (fraction) [ 0, max ]; "
                       "application/x-slc, format = (string) cf32, "
                       "width = (int) [ 1, 16777216 ], "
                       "height = (int) [ 1, 1073741824 ]"));

G_DEFINE_TYPE (GstPictureSrc, gst_picture_src, GST_TYPE_IMAGING_FILE_SRC)
GST_ELEMENT_REGISTER_DEFINE (
    picturesrc, "picturesrc", GST_RANK_NONE, GST_TYPE_PICTURE_SRC)

/* --- start and stop --- */

static void
post_load_error (GstPictureSrc *self, const GError *error)
{
  switch (error->code) {
  case GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND:
    GST_ELEMENT_ERROR (
        self, RESOURCE, NOT_FOUND, ("%s", error->message), (NULL));
    break;
  case GST_IMAGING_ND_ARRAY_ERROR_OPEN:
    GST_ELEMENT_ERROR (
        self, RESOURCE, OPEN_READ, ("%s", error->message), (NULL));
    break;
  case GST_IMAGING_ND_ARRAY_ERROR_READ:
    GST_ELEMENT_ERROR (self, RESOURCE, READ, ("%s", error->message), (NULL));
    break;
  default:
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error->message), (NULL));
    break;
  }
}

static GstVideoFormat
video_format (GstImagingNdArrayType type, guint64 n_channels)
{
  static const struct {
    GstImagingNdArrayType type;
    guint n_channels;
    const gchar *name;
  } formats[] = {
      {GST_IMAGING_ND_ARRAY_TYPE_BOOL, 1, "GRAY8"}, /* 0 and 1 */
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 1, "GRAY8"},
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 3, "RGB"},
      {GST_IMAGING_ND_ARRAY_TYPE_U8, 4, "RGBA"},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 1, GST_VIDEO_NE (GRAY16)},
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 3, GST_VIDEO_NE (RGBA64)}, /* no RGB48 */
      {GST_IMAGING_ND_ARRAY_TYPE_U16, 4, GST_VIDEO_NE (RGBA64)},
  };

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    if (formats[i].type == type && formats[i].n_channels == n_channels)
      return gst_video_format_from_string (formats[i].name);
  return GST_VIDEO_FORMAT_UNKNOWN;
}

/* --- what a page is --- */

/* Fills the members that describe a page, posts the error. */
static gboolean
describe_page (GstPictureSrc *self)
{
  const GstImagingNdArray *array = self->array;
  guint first = gst_imaging_sequence_get_first_dim (self->files);
  g_autofree gchar *found = gst_imaging_nd_array_describe (array);

  if (array->n_values == 0) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("\"%s\" holds %s: there is nothing to play, expected is at least one "
         "frame of at least one pixel.",
            array->name, found),
        (NULL));
    return FALSE;
  }
  self->n_dims = array->n_dims - first;
  self->dims = array->dims + first;
  self->page_size = gst_imaging_nd_array_type_size (array->type);
  for (guint i = 0; i < self->n_dims; i++) {
    if (self->dims[i] > G_MAXUINT / self->page_size) {
      GST_ELEMENT_ERROR (self, STREAM, FORMAT,
          ("\"%s\" holds %s: a frame has 4 GiB or more, expected is less. "
           "Save it in parts.",
              array->name, found),
          (NULL));
      return FALSE;
    }
    self->page_size *= self->dims[i];
  }
  return TRUE;
}

/* As RGBA black ink would be opacity: they are played as tensors alone. */
static gboolean
has_inks (const GstImagingNdArray *array)
{
  for (gchar **card = array->cards; card && *card; card++)
    if (g_str_has_prefix (*card, "PhotometricInterpretation=CMYK"))
      return TRUE;
  return FALSE;
}

/* Leaves the format UNKNOWN where no video is. */
static void
find_video (GstPictureSrc *self)
{
  const guint64 *size = self->dims;
  GstVideoFormat format =
      (self->n_dims == 2 || self->n_dims == 3) && !has_inks (self->array)
          ? video_format (self->array->type, self->n_dims == 3 ? size[2] : 1)
          : GST_VIDEO_FORMAT_UNKNOWN;

  gst_video_info_init (&self->info);
  if (format == GST_VIDEO_FORMAT_UNKNOWN || MAX (size[0], size[1]) > G_MAXINT ||
      !gst_imaging_video_info_set_format (
          &self->info, format, (guint) size[1], (guint) size[0]))
    gst_video_info_init (&self->info);
}

/* Three channels of a .npy file may as well be frames of three columns. */
static void
tell_of_colour (GstPictureSrc *self)
{
  const GstImagingNdArray *array = self->array;
  const Settings *s = gst_imaging_settings_now (gst_imaging_settings_of (self));

  if (!*array->axes && !s->axes && array->n_dims == 3 && self->n_dims == 3)
    GST_ELEMENT_INFO (self, STREAM, FORMAT,
        ("\"%s\" is played as pictures of %" G_GUINT64_FORMAT
         " x %" G_GUINT64_FORMAT " pixels and %" G_GUINT64_FORMAT
         " channels. If its first axis is frames, set axes=nyx.",
            array->name, self->dims[1], self->dims[0], self->dims[2]),
        (NULL));
}

static void
gst_picture_src_close (GstImagingFileSrc *src)
{
  GstPictureSrc *self = GST_PICTURE_SRC (src);

  g_clear_pointer (&self->files, gst_imaging_sequence_free);
  g_clear_pointer (&self->packed, g_free);
  self->array = NULL;
}

/* Returns: location or locations; NULL after an error. @one: room for both */
static const gchar *const *
choose_locations (
    GstPictureSrc *self, const gchar *location, const gchar *one[2])
{
  const Settings *s = gst_imaging_settings_now (gst_imaging_settings_of (self));
  const gchar *const *locations = (const gchar *const *) s->locations;

  if (location && *location && locations) {
    GST_ELEMENT_ERROR (self, RESOURCE, SETTINGS,
        ("Both location (\"%s\") and locations (%u) are set; set one of them.",
            location, g_strv_length (s->locations)),
        (NULL));
    return NULL;
  }
  if (location && *location) {
    one[0] = location;
    return one;
  }
  if (!locations)
    GST_ELEMENT_ERROR (self, RESOURCE, NOT_FOUND,
        ("No file to play: set the property location to a file, a folder or "
         "a pattern, or locations to several."),
        (NULL));
  return locations;
}

static void
warn (GstPictureSrc *self)
{
  const GPtrArray *notes = gst_imaging_sequence_get_notes (self->files);

  for (; self->n_notes < notes->len; self->n_notes++)
    GST_ELEMENT_WARNING (self, RESOURCE, READ,
        ("%s", (const gchar *) g_ptr_array_index (notes, self->n_notes)),
        (NULL));
}

/* Others that are not asked for */
static void
tell_of_parts (GstPictureSrc *self)
{
  g_autofree gchar *parts = gst_imaging_sequence_describe_parts (self->files);
  const Settings *s = gst_imaging_settings_now (gst_imaging_settings_of (self));

  if (parts && s->part < 0) /* gst-launch-1.0 shows the second text alone */
    GST_ELEMENT_INFO (self, STREAM, FORMAT,
        ("The first of several pictures in \"%s\" is played; set part to play "
         "another one: %s.",
            self->array->name, parts),
        ("set part to play another picture: %s", parts));
}

static gboolean
open_files (GstPictureSrc *self, const gchar *location)
{
  const Settings *s = gst_imaging_settings_now (gst_imaging_settings_of (self));
  const gchar *one[2] = {NULL};
  const gchar *const *locations = choose_locations (self, location, one);
  g_autoptr (GError) error = NULL;

  if (!locations)
    return FALSE;
  self->files = gst_imaging_sequence_new (locations, s->axes, s->part, &error);
  if (!self->files) {
    post_load_error (self, error);
    return FALSE;
  }
  self->array = gst_imaging_sequence_get_array (self->files);
  self->n_notes = 0;
  warn (self);
  tell_of_parts (self);
  return TRUE;
}

/* --- caps --- */

static gboolean
is_complex (GstPictureSrc *self)
{
  return self->array->type == GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64 ||
         self->array->type == GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128;
}

/* Are its dimensions rows and columns, with or without one channel? */
static gboolean
is_plane (GstPictureSrc *self)
{
  return self->n_dims == 2 || (self->n_dims == 3 && self->dims[2] == 1);
}

/* The fastest dimension first, and at least four: a plane is width:height:1:1.
 * @inner: one more before them, 0 for none. Returns: (transfer full) */
static gchar *
tensor_dimensions (GstPictureSrc *self, guint inner)
{
  guint n = is_plane (self) ? 2 : self->n_dims, n_written = 0;
  GString *text = g_string_new (NULL);

  if (inner > 0) {
    g_string_append_printf (text, "%u:", inner);
    n_written++;
  }
  for (; n > 0; n--, n_written++)
    g_string_append_printf (text, "%" G_GUINT64_FORMAT ":", self->dims[n - 1]);
  for (; n_written < 4; n_written++)
    g_string_append (text, "1:");
  g_string_truncate (text, text->len - 1);
  return g_string_free (text, FALSE);
}

static void
add_tensor (GstPictureSrc *self, GstCaps *caps, const gchar *type, guint inner)
{
  g_autofree gchar *dimensions = tensor_dimensions (self, inner);

  gst_caps_append (
      caps, gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
                "static", "num_tensors", G_TYPE_INT, 1, "types", G_TYPE_STRING,
                type, "dimensions", G_TYPE_STRING, dimensions, NULL));
}

/* Elements of pictures call a plane 1:width:height:1, those of lines and
 * results width:height:1:1. */
static void
add_tensors (GstPictureSrc *self, GstCaps *caps, const gchar *type)
{
  add_tensor (self, caps, type, is_complex (self) ? 2 : 0);
  if (is_plane (self) && !is_complex (self))
    add_tensor (self, caps, type, 1);
}

/* One complex picture is lines of a radar image, all in one buffer. */
static void
add_lines (GstPictureSrc *self, GstCaps *caps)
{
  if (self->array->type == GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64 &&
      self->n_dims == 2 && self->dims[0] <= 1 << 30 &&
      self->dims[1] <= 1 << 24 &&
      gst_imaging_sequence_get_n_pages (self->files) == 1)
    gst_caps_append (
        caps, gst_caps_new_simple ("application/x-slc", "format", G_TYPE_STRING,
                  "cf32", "width", G_TYPE_INT, (gint) self->dims[1], "height",
                  G_TYPE_INT, (gint) self->dims[0], NULL));
}

/* All that a page can be played as, the best first; without a frame rate where
 * @rate_n is 0. */
static GstCaps *
make_caps (GstPictureSrc *self, gint rate_n, gint rate_d)
{
  const GstVideoInfo *info = &self->info;
  GstCaps *caps = gst_caps_new_empty ();

  if (GST_VIDEO_INFO_FORMAT (info) != GST_VIDEO_FORMAT_UNKNOWN)
    gst_caps_append (
        caps, gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
                  gst_video_format_to_string (GST_VIDEO_INFO_FORMAT (info)),
                  "width", G_TYPE_INT, GST_VIDEO_INFO_WIDTH (info), "height",
                  G_TYPE_INT, GST_VIDEO_INFO_HEIGHT (info),
                  "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1,
                  "interlace-mode", G_TYPE_STRING, "progressive", NULL));
  add_tensors (
      self, caps, gst_imaging_nd_array_type_to_tensor (self->array->type));
  if (self->array->type == GST_IMAGING_ND_ARRAY_TYPE_F16)
    add_tensors (self, caps, "float32");
  if (rate_n > 0)
    gst_caps_set_simple (
        caps, "framerate", GST_TYPE_FRACTION, rate_n, rate_d, NULL);
  add_lines (self, caps);
  return caps;
}

/* What downstream wants that is nearest to the default, or the default. */
static void
ask_rate (GstPictureSrc *self, gint *rate_n, gint *rate_d)
{
  g_autoptr (GstCaps) ours = make_caps (self, 0, 1);
  GstCaps *common =
      gst_pad_peer_query_caps (GST_BASE_SRC_PAD (GST_BASE_SRC (self)), ours);
  gint n = 0, d = 1;

  if (!gst_caps_is_empty (common) && !gst_caps_is_any (common)) {
    GstStructure *wanted;

    common = gst_caps_make_writable (common);
    wanted = gst_caps_get_structure (common, 0);
    if (gst_structure_has_field (wanted, "framerate"))
      gst_structure_fixate_field_nearest_fraction (
          wanted, "framerate", *rate_n, *rate_d);
    gst_structure_get_fraction (wanted, "framerate", &n, &d);
  }
  if (n > 0 && d > 0) {
    *rate_n = n;
    *rate_d = d;
  }
  gst_caps_unref (common);
}

static gboolean
gst_picture_src_open (
    GstImagingFileSrc *src, const gchar *location, GstImagingFileSrcInfo *info)
{
  GstPictureSrc *self = GST_PICTURE_SRC (src);
  const Settings *s = gst_imaging_settings_now (gst_imaging_settings_of (self));
  gboolean has_rate = s->framerate.n > 0;

  info->rate_n = has_rate ? s->framerate.n : USUAL_RATE;
  info->rate_d = has_rate ? s->framerate.d : 1;
  if (!open_files (self, location) || !describe_page (self))
    return FALSE;
  find_video (self);
  tell_of_colour (self);
  if (!has_rate)
    ask_rate (self, &info->rate_n, &info->rate_d);
  info->caps = make_caps (self, info->rate_n, info->rate_d);
  info->unit_name = "frames";
  info->n_units = gst_imaging_sequence_get_n_pages (self->files);
  info->n_per_buffer = 1;
  info->loop = s->loop;
  return TRUE;
}

static gsize
gst_picture_src_set_caps (GstImagingFileSrc *src, const GstCaps *caps)
{
  GstPictureSrc *self = GST_PICTURE_SRC (src);
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gboolean is_half = self->array->type == GST_IMAGING_ND_ARRAY_TYPE_F16;

  self->is_video = gst_structure_has_name (s, "video/x-raw");
  self->change = CHANGE_NONE;
  if (self->is_video) {
    if (self->array->type == GST_IMAGING_ND_ARRAY_TYPE_U16 &&
        self->n_dims == 3 && self->dims[2] == 3)
      self->change = CHANGE_ADD_ALPHA;
    return GST_VIDEO_INFO_SIZE (&self->info);
  }
  if (is_half &&
      g_strcmp0 (gst_structure_get_string (s, "types"), "float32") == 0)
    self->change = CHANGE_WIDEN;
  return self->change == CHANGE_WIDEN ? 2 * self->page_size : self->page_size;
}

/* --- streaming --- */

static void
add_alpha (guint16 *rgba, const guint16 *rgb, guint width)
{
  for (guint x = 0; x < width; x++) {
    rgba[4 * x] = rgb[3 * x];
    rgba[4 * x + 1] = rgb[3 * x + 1];
    rgba[4 * x + 2] = rgb[3 * x + 2];
    rgba[4 * x + 3] = 65535;
  }
}

/* Reads a page as it is in the file into memory of our own. */
static gboolean
read_packed (GstPictureSrc *self, guint64 index, GError **error)
{
  if (!self->packed)
    self->packed = g_try_malloc (self->page_size);
  if (self->packed)
    return gst_imaging_sequence_read (self->files, index, self->packed, error);
  g_set_error (error, GST_IMAGING_ND_ARRAY_ERROR,
      GST_IMAGING_ND_ARRAY_ERROR_MEMORY,
      "\"%s\" does not fit in memory: a frame takes %" G_GSIZE_FORMAT " bytes.",
      self->array->name, self->page_size);
  return FALSE;
}

static gboolean
read_video (
    GstPictureSrc *self, guint64 index, GstVideoFrame *frame, GError **error)
{
  guint width = GST_VIDEO_FRAME_WIDTH (frame);
  guint height = GST_VIDEO_FRAME_HEIGHT (frame);
  gsize stride = GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);
  guint8 *out = GST_VIDEO_FRAME_PLANE_DATA (frame, 0);
  gsize row_size = self->page_size / height;

  if (stride == row_size && self->change == CHANGE_NONE)
    return gst_imaging_sequence_read (self->files, index, out, error);
  if (!read_packed (self, index, error))
    return FALSE;
  for (guint y = 0; y < height; y++) {
    const guint8 *in = self->packed + y * row_size;

    if (self->change == CHANGE_ADD_ALPHA)
      add_alpha ((guint16 *) (out + y * stride), (const guint16 *) in, width);
    else
      memcpy (out + y * stride, in, row_size);
  }
  return TRUE;
}

static gboolean
read_tensor (
    GstPictureSrc *self, guint64 index, gpointer values, GError **error)
{
  if (self->change != CHANGE_WIDEN)
    return gst_imaging_sequence_read (self->files, index, values, error);
  if (!read_packed (self, index, error))
    return FALSE;
  for (gsize i = 0; i < self->page_size / sizeof (guint16); i++)
    ((gfloat *) values)[i] = (gfloat) gst_imaging_half_to_double (
        ((const guint16 *) self->packed)[i]);
  return TRUE;
}

/* What the samples of a frame stand for. Returns: TRUE */
static gboolean
tell (GstPictureSrc *self, guint64 index, GstBuffer *buffer)
{
  gst_imaging_quantity_take (
      buffer, gst_imaging_sequence_describe (self->files, index));
  gst_imaging_place_attach (
      buffer, gst_imaging_sequence_get_cards (self->files));
  warn (self);
  return TRUE;
}

static gboolean
gst_picture_src_read (GstImagingFileSrc *src, guint64 first, guint n,
    GstBuffer *buffer, GError **error)
{
  GstPictureSrc *self = GST_PICTURE_SRC (src);
  GstVideoFrame frame;
  GstMapInfo map;
  gboolean ok;

  if (self->is_video &&
      gst_video_frame_map (&frame, &self->info, buffer, GST_MAP_WRITE)) {
    ok = read_video (self, first, &frame, error);
    gst_video_frame_unmap (&frame);
    return ok && tell (self, first, buffer);
  }
  if (!self->is_video && gst_buffer_map (buffer, &map, GST_MAP_WRITE)) {
    ok = read_tensor (self, first, map.data, error);
    gst_buffer_unmap (buffer, &map);
    return ok && tell (self, first, buffer);
  }
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE,
      "The memory for frame %" G_GUINT64_FORMAT
      " of \"%s\" cannot be written; the next element offers memory that is "
      "too small or not accessible.",
      first, self->array->name);
  return FALSE;
}

static guint64
gst_picture_src_number (GstImagingFileSrc *src, guint64 unit)
{
  return gst_imaging_sequence_get_number (GST_PICTURE_SRC (src)->files, unit);
}

/* --- the object --- */

static void
gst_picture_src_class_init (GstPictureSrcClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFileSrcClass *file_class = GST_IMAGING_FILE_SRC_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (
      gst_picture_src_debug, "picturesrc", 0, "pictures and arrays from files");

  gst_imaging_settings_install (object_class, &table);
  gst_element_class_set_static_metadata (element_class, "Picture source",
      "Source/File/Video",
      "Plays pictures and arrays from files as video or tensors",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &src_template);

  file_class->open = gst_picture_src_open;
  file_class->set_caps = gst_picture_src_set_caps;
  file_class->read = gst_picture_src_read;
  file_class->number = gst_picture_src_number;
  file_class->close = gst_picture_src_close;
}

static void
gst_picture_src_init (GstPictureSrc *self)
{
  gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_TIME);
}

/* --- its older name --- */

typedef GstPictureSrc GstNpySrc;
typedef GstPictureSrcClass GstNpySrcClass;

GType gst_npy_src_get_type (void);
G_DEFINE_TYPE (GstNpySrc, gst_npy_src, GST_TYPE_PICTURE_SRC)
GST_ELEMENT_REGISTER_DEFINE (
    npysrc, "npysrc", GST_RANK_NONE, gst_npy_src_get_type ())

static void
gst_npy_src_class_init (GstNpySrcClass *klass)
{
  gst_element_class_set_static_metadata (GST_ELEMENT_CLASS (klass),
      "Picture source", "Source/File/Video", "The older name of picturesrc",
      "gst-imaging contributors");
}

static void
gst_npy_src_init (GstNpySrc *self)
{
}
