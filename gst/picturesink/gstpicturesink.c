/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-picturesink
 * @title: picturesink
 * @short_description: writes arrays and pictures to files
 *
 * Writes each frame as it is, without scaling or rounding. The extension of
 * `location` selects the format. A name with a number ("frame%05d.png") gives a
 * file for each frame. Other names are one file: .npy, TIFF and FITS take all
 * frames, one behind the other; PNG, OpenEXR, PNM and PFM take one.
 *
 * A file of one frame appears when it is complete. A file that grows appears
 * with its first frame and is valid after each frame: a crash or a full disk
 * leaves all complete frames.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 picturesrc location=frames ! lapsharpen ! picturesink
 * location=sharp.npy
 * gst-launch-1.0 videotestsrc num-buffers=3 ! picturesink
 * location=frame%05d.png
 * ]|
 */
#include <gst/base/gstbasesink.h>

#include "files/gstimagingfile.h"
#include "gstimagingdescription.h"
#include "gstimagingformats.h"
#include "gstimagingplace.h"
#include "gstimagingpost.h"
#include "gstimagingquantity.h"
#include "gstimagingsettings.h"
#include "gstpicturesinkfile.h"
#include "gstpicturesinkformat.h"
#include "gstpicturesinkrivals.h"
#include "gstpicturesinksidecar.h"

#define GST_TYPE_PICTURE_SINK (gst_picture_sink_get_type ())
G_DECLARE_FINAL_TYPE (
    GstPictureSink, gst_picture_sink, GST, PICTURE_SINK, GstBaseSink)

GST_ELEMENT_REGISTER_DECLARE (picturesink);

#define REPLACES \
  "\"%s\" replaces a file of this name. Set append=true to continue one."

GST_DEBUG_CATEGORY_STATIC (gst_picture_sink_debug);
#define GST_CAT_DEFAULT gst_picture_sink_debug

typedef struct {
  GstImagingFile *location;
  gboolean append;
  guint64 max_frames;
  GstPictureSinkSidecarMode sidecar;
  gint compression_level;
} Settings;

static const GEnumValue sidecar_values[] = {
    {GST_PICTURE_SINK_SIDECAR_AUTO,
        "Where frames have a quantity, results or capture times, or an element "
        "of gst-imaging made them",
        "auto"},
    {GST_PICTURE_SINK_SIDECAR_NONE, "Never", "none"},
    {GST_PICTURE_SINK_SIDECAR_ALWAYS, "Always", "always"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_PATH ("location", NEXT_START, 0, Settings, location, NULL, NULL,
        "Path of the file to write. Its extension selects the format: .npy, "
        ".png, .tif, .fits, .exr, .pgm, .ppm, .pam, .pfm. With a number such "
        "as %05d each frame gets a file, from 0. Without one, .npy, TIFF and "
        "FITS hold all frames, other formats one"),
    GST_IMAGING_BOOLEAN ("append", NEXT_START, 0, Settings, append,
        "false: replace an existing file as soon as the first frame is "
        "complete. true: append to it if the frames have its type and shape; "
        "with a number in the name, keep existing files"),
    GST_IMAGING_UINT64 ("max-frames", NEXT_START, 0, Settings, max_frames, 0,
        G_MAXUINT64, "frames",
        "Number of frames after which the stream ends. 0: no limit. A TIFF "
        "whose size is known to be below 4 GB is a classic TIFF, otherwise "
        "BigTIFF"),
    GST_IMAGING_ENUM ("sidecar", NEXT_START, 0, Settings, sidecar,
        "GstPictureSinkSidecar", sidecar_values,
        "Whether a file location.json is written with quantity, unit, axes, "
        "frame numbers, times, and the pipeline with its settings"),
    GST_IMAGING_INT ("compression-level", NEXT_START, 0, Settings,
        compression_level, -1, 9, NULL,
        "zlib level for PNG and OpenEXR: 0 is fastest and largest, 9 slowest "
        "and smallest. -1: 1 for PNG of 16 bits, 6 for other PNG, 4 for "
        "OpenEXR. Other formats are not compressed"),
};

static void
init_settings (gpointer data)
{
  ((Settings *) data)->compression_level = -1;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .timeless = TRUE,
    .init = init_settings,
};

struct _GstPictureSink {
  GstBaseSink parent;

  /* from start to stop; only the streaming thread uses them */
  GstPictureSinkFile file, flags; /* of the second tensor, while there is one */
  GstPictureSinkFormat format;
  GstPictureSinkSidecar sidecar;
  GstImagingNdArray frame; /* the last one: its shape */
  gint fps_n, fps_d;
  gboolean is_finished;    /* since the last frame */
  gboolean has_failed;     /* a frame is missing at the end */
  gboolean has_lost_place; /* and has been told so */
};

G_DEFINE_TYPE (GstPictureSink, gst_picture_sink, GST_TYPE_BASE_SINK)
GST_ELEMENT_REGISTER_DEFINE (
    picturesink, "picturesink", GST_RANK_NONE, GST_TYPE_PICTURE_SINK);

/* --- errors --------------------------------------------------------------- */

static void
post (GstPictureSink *self, const GError *error)
{
  if (error->domain == GST_STREAM_ERROR ||
      (error->domain == GST_IMAGING_ND_ARRAY_ERROR &&
          error->code != GST_IMAGING_ND_ARRAY_ERROR_WRITE))
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error->message), (NULL));
  else if (error->domain == GST_RESOURCE_ERROR)
    gst_imaging_post_error (self, error);
  else
    GST_ELEMENT_ERROR (self, RESOURCE, WRITE, ("%s", error->message),
        ("complete frames of this run: %" G_GUINT64_FORMAT,
            self->file.n_written));
}

/* --- start and stop ------------------------------------------------------- */

static gboolean
check_rivals (GstPictureSink *self, GstPictureSinkFile *file, GError **error)
{
  g_autofree gchar *sentence =
      gst_picture_sink_describe_rival (GST_ELEMENT (self), file);

  if (!sentence)
    return TRUE;
  g_set_error_literal (
      error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, sentence);
  gst_picture_sink_file_close (file);
  return FALSE;
}

static gboolean
gst_picture_sink_start (GstBaseSink *base)
{
  GstPictureSink *self = GST_PICTURE_SINK (base);
  GstImagingSettings *set = gst_imaging_settings_of (self);
  g_autoptr (GError) error = NULL;
  const Settings *s;

  gst_imaging_settings_start (set);
  gst_imaging_settings_update (
      set, GST_IMAGING_WHEN_NEXT_START, GST_CLOCK_TIME_NONE, NULL);
  s = gst_imaging_settings_now (set);
  self->is_finished = self->has_failed = self->has_lost_place = FALSE;
  if (gst_picture_sink_file_open (&self->file,
          gst_imaging_setting_file_location (s->location), s->append,
          s->max_frames, &error) &&
      check_rivals (self, &self->file, &error)) {
    self->file.level = s->compression_level;
    gst_picture_sink_sidecar_start (
        &self->sidecar, s->sidecar, GST_ELEMENT (self));
    return TRUE;
  }
  post (self, error);
  return FALSE;
}

/* Frames are worth more: without a sidecar they are written, too. */
static void
save_sidecar (GstPictureSink *self, gboolean complete)
{
  g_autoptr (GError) error = NULL;

  if (self->file.n_written > 0 &&
      !gst_picture_sink_sidecar_save (
          &self->sidecar, &self->file, &self->frame, complete, &error))
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE, ("%s", error->message), (NULL));
}

static void
warn_of_older (GstPictureSink *self)
{
  g_autofree gchar *sentence =
      gst_picture_sink_file_describe_older (&self->file);

  if (sentence)
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE, ("%s", sentence), (NULL));
}

static gboolean
finish (GstPictureSink *self)
{
  g_autoptr (GError) error = NULL;

  if (self->is_finished)
    return TRUE;
  self->is_finished = TRUE;
  save_sidecar (self, !self->has_failed);
  warn_of_older (self);
  if (gst_picture_sink_file_finish (&self->flags, &error) &&
      gst_picture_sink_file_finish (&self->file, &error))
    return TRUE;
  post (self, error);
  return FALSE;
}

static gboolean
gst_picture_sink_stop (GstBaseSink *base)
{
  GstPictureSink *self = GST_PICTURE_SINK (base);

  finish (self);
  gst_picture_sink_sidecar_clear (&self->sidecar);
  gst_picture_sink_file_close (&self->file);
  gst_picture_sink_file_close (&self->flags);
  gst_picture_sink_format_clear (&self->format);
  return TRUE;
}

/* --- caps ----------------------------------------------------------------- */

/* What the format of `location` can hold. */
static GstCaps *
gst_picture_sink_get_caps (GstBaseSink *base, GstCaps *filter)
{
  GstImagingSettings *set = gst_imaging_settings_of (base);
  Settings *s = gst_imaging_settings_copy (set);
  const gchar *location = gst_imaging_setting_file_location (s->location);
  GstImagingFileNumber number;
  guint32 types = 0;
  GstImagingArrayAppends appends;
  GstCaps *caps;

  if (location && gst_imaging_file_number_find (&number, location, NULL) &&
      gst_imaging_array_writer_find (location, &types, &appends, NULL))
    caps = gst_picture_sink_format_caps (
        types, appends == GST_IMAGING_ARRAY_APPENDS_ARRAYS && number.size == 0);
  else
    caps = gst_pad_get_pad_template_caps (GST_BASE_SINK_PAD (base));
  gst_imaging_settings_free_copy (set, s);
  if (filter) {
    GstCaps *both =
        gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST);

    gst_caps_unref (caps);
    caps = both;
  }
  return caps;
}

/* Whoever has made a file of that name for something else keeps it. */
static gboolean
check_old_flags (GstPictureSink *self, GError **error)
{
  const gchar *location = self->flags.location;
  g_autoptr (GstImagingArrayReader) reader = NULL;

  if (self->flags.number.size > 0 ||
      !g_file_test (location, G_FILE_TEST_EXISTS))
    return TRUE;
  reader = gst_imaging_array_reader_new (location, G_MAXINT64, NULL);
  if (reader && gst_imaging_array_reader_get_array (reader)->type ==
                    GST_IMAGING_ND_ARRAY_TYPE_U8)
    return TRUE;
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
      "\"%s\" is there and holds no flags, which the second tensor would write "
      "to this name. Move it, or take another location.",
      location);
  return FALSE;
}

/* The file of the second tensor */
static gboolean
open_flags (GstPictureSink *self, GError **error)
{
  g_autofree gchar *location = NULL;

  if (self->format.flags_size == 0 || self->flags.location)
    return TRUE;
  location = gst_picture_sink_file_name_flags (&self->file);
  if (!gst_picture_sink_file_open (&self->flags, location, self->file.append,
          self->file.max_frames, error))
    return FALSE;
  if (!check_old_flags (self, error)) {
    gst_picture_sink_file_close (&self->flags);
    return FALSE;
  }
  if (!check_rivals (self, &self->flags, error))
    return FALSE;
  self->sidecar.flags = g_path_get_basename (location);
  return TRUE;
}

static gboolean
gst_picture_sink_set_caps (GstBaseSink *base, GstCaps *caps)
{
  GstPictureSink *self = GST_PICTURE_SINK (base);
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  g_autoptr (GError) error = NULL;

  self->fps_n = self->fps_d = 0;
  gst_structure_get_fraction (s, "framerate", &self->fps_n, &self->fps_d);
  if (gst_picture_sink_format_set_caps (
          &self->format, caps, self->file.types, &error) &&
      open_flags (self, &error))
    return TRUE;
  post (self, error);
  return FALSE;
}

/* Frames may have any stride. */
static gboolean
gst_picture_sink_propose_allocation (GstBaseSink *base, GstQuery *query)
{
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return TRUE;
}

/* --- frames --------------------------------------------------------------- */

static gboolean
is_full (const GstPictureSink *self)
{
  return self->file.max_frames > 0 &&
         self->file.n_written >= self->file.max_frames;
}

static gboolean
add_card (GQuark field, const GValue *value, gpointer cards)
{
  if (G_VALUE_HOLDS_STRING (value))
    g_ptr_array_add (cards, g_strdup_printf ("%s=%s", g_quark_to_string (field),
                                g_value_get_string (value)));
  return TRUE;
}

/* GeoTIFF is TIFF alone. */
static void
add_place (GstPictureSink *self, GstBuffer *buffer, GPtrArray *cards)
{
  const GstStructure *place = gst_imaging_place_get (buffer);
  g_autofree gchar *name = NULL;

  if (!place)
    return;
  if (g_strcmp0 (gst_imaging_formats_get_name (self->file.location), "TIFF") ==
      0) {
    gst_structure_foreach (place, add_card, cards);
    return;
  }
  if (self->has_lost_place)
    return;
  self->has_lost_place = TRUE;
  name = gst_imaging_file_name (self->file.location);
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("The source tells where the picture is on a map (GeoTIFF), and \"%s\" "
       "has no place for it. Write .tif to keep it.",
          name),
      (NULL));
}

/* Of a file of one frame, or of the first of several. Returns: (transfer full)
 */
static gchar **
make_cards (GstPictureSink *self, GstBuffer *buffer)
{
  const GstPictureSinkFormat *format = &self->format;
  GstCustomMeta *meta =
      gst_meta_get_info (GST_IMAGING_QUANTITY_META)
          ? gst_buffer_get_custom_meta (buffer, GST_IMAGING_QUANTITY_META)
          : NULL;
  g_autofree gchar *name = g_path_get_basename (self->file.location);
  g_autofree gchar *sidecar = g_strconcat (name, ".json", NULL);
  GPtrArray *cards =
      meta ? gst_imaging_description_make_cards (self->file.location,
                 &format->frame, gst_custom_meta_get_structure (meta),
                 GST_BUFFER_PTS (buffer),
                 gst_picture_sink_file_grows (&self->file),
                 self->sidecar.mode == GST_PICTURE_SINK_SIDECAR_NONE ? NULL
                                                                     : sidecar)
           : g_ptr_array_new_with_free_func (g_free);
  gboolean is_ome =
      cards->len == 1 && *(gchar *) g_ptr_array_index (cards, 0) == '<';

  if (!is_ome && format->bits > 0 && format->bits < 16)
    g_ptr_array_add (cards, g_strdup_printf ("BITS=%u", format->bits));
  if (!is_ome && format->bayer) {
    g_autofree gchar *pattern = g_ascii_strup (format->bayer, -1);

    g_ptr_array_add (cards, g_strconcat ("BAYERPAT=", pattern, NULL));
  }
  add_place (self, buffer, cards);
  g_ptr_array_add (cards, NULL);
  g_ptr_array_set_free_func (cards, NULL);
  return (gchar **) g_ptr_array_free (cards, FALSE);
}

/* The file of the flags has no fewer frames than that of the numbers. */
static gboolean
write_flags (GstPictureSink *self, const GstImagingNdArray *frame,
    const GstPictureSinkView *view, GError **error)
{
  static gchar *const cards[] = {"QNAME=flags", NULL};
  GstImagingNdArray flags = self->format.flags;

  flags.cards = (gchar **) cards;
  if (!gst_picture_sink_file_prepare (&self->file, frame, error) ||
      !gst_picture_sink_file_prepare (&self->flags, &flags, error))
    return FALSE;
  if (self->file.first + self->file.n_written !=
      self->flags.first + self->flags.n_written) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" has %" G_GUINT64_FORMAT
        " frames, and its flags in \"%s\" are of %" G_GUINT64_FORMAT
        ": they cannot be continued together. Take another location.",
        self->file.location, self->file.first, self->flags.location,
        self->flags.first);
    return FALSE;
  }
  return gst_picture_sink_file_write (&self->flags, &flags, view->flags, error);
}

static gboolean
write_frames (GstPictureSink *self, GstBuffer *buffer,
    const GstPictureSinkView *view, GError **error)
{
  const guint8 *values = view->values;
  gboolean grows = gst_picture_sink_file_grows (&self->file);
  GstImagingNdArray frame = self->format.frame;
  gboolean ok = TRUE;

  if (!grows || self->file.n_written == 0)
    frame.cards = make_cards (self, buffer);
  if (view->flags)
    ok = write_flags (self, &frame, view, error);
  for (guint64 i = 0; ok && i < view->n_frames && !is_full (self); i++)
    ok = gst_picture_sink_file_write (
        &self->file, &frame, values + i * self->format.size, error);
  g_strfreev (frame.cards);
  return ok;
}

/* What the frames of a buffer are, @n_before others. */
static void
tell (GstPictureSink *self, GstBuffer *buffer, guint64 n_before)
{
  self->frame = self->format.frame;
  gst_picture_sink_sidecar_add (&self->sidecar, &self->file, buffer,
      self->file.n_written - n_before, self->fps_n, self->fps_d);
  if (n_before > 0) {
    gst_picture_sink_sidecar_extend (&self->sidecar, &self->file, &self->frame);
    return;
  }
  /* for a reader who does not wait for the end, or when there is none */
  save_sidecar (self, FALSE);
  if (self->file.replaces)
    /* gst-launch-1.0 prints the debug text of an INFO message alone */
    GST_ELEMENT_INFO (self, RESOURCE, WRITE, (REPLACES, self->file.location),
        (REPLACES, self->file.location));
}

static GstFlowReturn
gst_picture_sink_render (GstBaseSink *base, GstBuffer *buffer)
{
  GstPictureSink *self = GST_PICTURE_SINK (base);
  g_autoptr (GError) error = NULL;
  guint64 n_before = self->file.n_written;
  GstPictureSinkView view;
  gboolean ok;

  if (self->format.size == 0)
    return GST_FLOW_NOT_NEGOTIATED;
  if (is_full (self))
    return GST_FLOW_EOS;
  ok = gst_picture_sink_format_map (&self->format, buffer, &view, &error) &&
       write_frames (self, buffer, &view, &error);
  gst_picture_sink_view_unmap (&view);
  self->is_finished = FALSE;
  if (self->file.n_written > n_before)
    tell (self, buffer, n_before);
  if (!ok) {
    self->has_failed = TRUE;
    post (self, error);
    return GST_FLOW_ERROR;
  }
  return is_full (self) ? GST_FLOW_EOS : GST_FLOW_OK;
}

/* The message follows when all is on the disk. */
static gboolean
gst_picture_sink_event (GstBaseSink *base, GstEvent *event)
{
  GstPictureSink *self = GST_PICTURE_SINK (base);

  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS && !finish (self)) {
    gst_event_unref (event);
    return FALSE;
  }
  return GST_BASE_SINK_CLASS (gst_picture_sink_parent_class)
      ->event (base, event);
}

/* --- the object ----------------------------------------------------------- */

static void
gst_picture_sink_class_init (GstPictureSinkClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSinkClass *sink_class = GST_BASE_SINK_CLASS (klass);
  g_autoptr (GstCaps) caps = gst_picture_sink_format_caps (G_MAXUINT32, TRUE);

  GST_DEBUG_CATEGORY_INIT (
      gst_picture_sink_debug, "picturesink", 0, "arrays and pictures in files");

  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);
  gst_element_class_set_static_metadata (element_class,
      "Array and picture file sink", "Sink/File/Video",
      "Writes arrays and pictures to files", "gst-imaging contributors");
  gst_element_class_add_pad_template (element_class,
      gst_pad_template_new ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));

  sink_class->start = gst_picture_sink_start;
  sink_class->stop = gst_picture_sink_stop;
  sink_class->get_caps = gst_picture_sink_get_caps;
  sink_class->set_caps = gst_picture_sink_set_caps;
  sink_class->propose_allocation = gst_picture_sink_propose_allocation;
  sink_class->render = gst_picture_sink_render;
  sink_class->event = gst_picture_sink_event;
}

static void
gst_picture_sink_init (GstPictureSink *self)
{
  GstBaseSink *base = GST_BASE_SINK (self);

  gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  gst_base_sink_set_sync (base, FALSE);
  gst_base_sink_set_last_sample_enabled (base, FALSE);
}
