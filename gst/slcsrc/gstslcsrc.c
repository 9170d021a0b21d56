/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-slcsrc
 * @title: slcsrc
 * @short_description: reads a single look complex SAR image by lines
 *
 * Reads a single look complex (SLC) image of a synthetic aperture radar: raw
 * numbers in little endian, line after line, without header. Which numbers, a
 * PRM file of GMTSAR says, or the properties width and format do.
 *
 * | format | a sample                                | GMTSAR         |
 * | ------ | --------------------------------------- | -------------- |
 * | ci16   | real and imaginary part, int16 each     | default        |
 * | cf32   | the same, float32                       |                |
 * | f32    | a real number, float32                  | `xcorr -real`  |
 *
 * A buffer of application/x-slc holds whole lines; its offset is the number of
 * the first, its offset-end that of the next. Seeking goes by lines (format
 * DEFAULT). The file is read as the buffers go, so it may be larger than
 * memory. Every tenth of it an element message "slcsrc-progress" says how far
 * it is; on a terminal, ` ! progressreport format=default ! ` does.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 slcsrc location=ref.PRM ! x.reference slcsrc
 * location=sec.PRM ! x.secondary insarxcorr name=x ! filesink
 * location=freq_xcorr.dat
 * ]|
 */
#include "gstslcsrc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gstimagingprm.h"

GST_DEBUG_CATEGORY_STATIC (gst_slc_src_debug);
#define GST_CAT_DEFAULT gst_slc_src_debug

#define DEFAULT_PROP_LOCATION NULL
#define DEFAULT_PROP_FORMAT FORMAT_AUTO
#define DEFAULT_PROP_WIDTH 0
#define DEFAULT_PROP_LINES_PER_BUFFER 0

#define MAX_WIDTH (1 << 24)
#define MAX_HEIGHT (1 << 30)
#define BUFFER_SIZE (1 << 20) /* bytes, about; stays in the cache */
#define N_REPORTS 10

typedef enum {
  FORMAT_AUTO,
  FORMAT_CI16,
  FORMAT_CF32,
  FORMAT_F32,
} Format;

static const struct {
  const gchar *name;
  gsize size; /* bytes of a sample */
} formats[] = {
    [FORMAT_AUTO] = {"auto", 0},
    [FORMAT_CI16] = {"ci16", 4},
    [FORMAT_CF32] = {"cf32", 8},
    [FORMAT_F32] = {"f32", 4},
};

enum {
  PROP_0,
  PROP_LOCATION,
  PROP_FORMAT,
  PROP_WIDTH,
  PROP_LINES_PER_BUFFER,
};

struct _GstSlcSrc {
  GstPushSrc parent;

  /* under the object lock, as queries come from any thread */
  gchar *location;
  Format format;
  guint width, lines_per_buffer;
  GstCaps *caps;  /* of what is read, NULL when stopped */
  guint64 height; /* lines; 0 when stopped */

  /* from start to stop; only the streaming thread uses them */
  gchar *path; /* of the samples */
  gint fd;
  gsize line_size; /* bytes */
  guint n_lines;   /* a buffer */
  guint64 next_line, stop_line;
  guint n_reported;
};

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS ("application/x-slc, format = (string) { ci16, cf32, "
                         "f32 }, width = (int) [ 1, 16777216 ], height = (int) "
                         "[ 1, 1073741824 ]"));

G_DEFINE_TYPE (GstSlcSrc, gst_slc_src, GST_TYPE_PUSH_SRC)
GST_ELEMENT_REGISTER_DEFINE (slcsrc, "slcsrc", GST_RANK_NONE, GST_TYPE_SLC_SRC);

static GType
gst_slc_src_format_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
      {FORMAT_AUTO, "ci16 of a PRM file", "auto"},
      {FORMAT_CI16, "Complex, int16", "ci16"},
      {FORMAT_CF32, "Complex, float32", "cf32"},
      {FORMAT_F32, "Real, float32", "f32"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, g_enum_register_static ("GstSlcSrcFormat", values));
  return type;
}

/* --- start and stop ---------------------------------------------------------
 */

/* What is to be read, from the PRM file or the properties. */
typedef struct {
  gchar *path;
  Format format;
  guint width, height; /* height 0: what the file has */
  gdouble prf;
  gint rshift, ashift;
} Source;

static gboolean
load_prm (GstSlcSrc *self, const gchar *location, Source *source)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GstImagingPrm) prm = gst_imaging_prm_load (location, &error);

  if (!prm) {
    if (g_error_matches (
            error, GST_IMAGING_PRM_ERROR, GST_IMAGING_PRM_ERROR_NOT_FOUND))
      GST_ELEMENT_ERROR (
          self, RESOURCE, NOT_FOUND, ("%s", error->message), (NULL));
    else if (g_error_matches (
                 error, GST_IMAGING_PRM_ERROR, GST_IMAGING_PRM_ERROR_READ))
      GST_ELEMENT_ERROR (
          self, RESOURCE, OPEN_READ, ("%s", error->message), (NULL));
    else
      GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error->message), (NULL));
    return FALSE;
  }
  source->path = gst_imaging_prm_find_slc (prm);
  if (source->format == FORMAT_AUTO)
    source->format = FORMAT_CI16;
  source->width = prm->width;
  source->height = prm->height;
  source->prf = prm->prf;
  source->rshift = prm->rshift;
  source->ashift = prm->ashift;
  return TRUE;
}

static gboolean
describe_source (GstSlcSrc *self, Source *source)
{
  g_autofree gchar *location = NULL;

  GST_OBJECT_LOCK (self);
  location = g_strdup (self->location);
  source->format = self->format;
  source->width = self->width;
  GST_OBJECT_UNLOCK (self);

  if (!location || !*location) {
    GST_ELEMENT_ERROR (self, RESOURCE, NOT_FOUND,
        ("No image to read: set the property location to a PRM file, or to "
         "raw samples with width and format."),
        (NULL));
    return FALSE;
  }
  if (g_str_has_suffix (location, ".PRM") ||
      g_str_has_suffix (location, ".prm"))
    return load_prm (self, location, source);
  if (source->width == 0 || source->format == FORMAT_AUTO) {
    GST_ELEMENT_ERROR (self, RESOURCE, SETTINGS,
        ("\"%s\" is no .PRM file, so it is read as raw samples, and these need "
         "the properties width (columns) and format (ci16, cf32 or f32).",
            location),
        (NULL));
    return FALSE;
  }
  source->path = g_steal_pointer (&location);
  return TRUE;
}

static gboolean
open_file (GstSlcSrc *self, const gchar *path, guint64 *size)
{
  struct stat status;
  gint number;

  self->fd = open (path, O_RDONLY | O_CLOEXEC);
  number = errno;
  if (self->fd < 0 && number == ENOENT) {
    GST_ELEMENT_ERROR (
        self, RESOURCE, NOT_FOUND, ("There is no file \"%s\".", path), (NULL));
    return FALSE;
  }
  if (self->fd < 0 || fstat (self->fd, &status) != 0) {
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_READ,
        ("\"%s\" cannot be read: %s.", path, g_strerror (number)), (NULL));
    return FALSE;
  }
  if (!S_ISREG (status.st_mode)) {
    GST_ELEMENT_ERROR (self, RESOURCE, OPEN_READ,
        ("\"%s\" is no regular file.", path), (NULL));
    return FALSE;
  }
  posix_fadvise (self->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  *size = status.st_size;
  return TRUE;
}

/* A PRM file says how many lines there are; more may follow, as GMTSAR's tools
 * leave some. Raw samples are all there is. */
static gboolean
check_size (GstSlcSrc *self, Source *source, guint64 size)
{
  guint64 line_size = (guint64) source->width * formats[source->format].size;
  guint64 height = source->height ? source->height : size / line_size;

  if (source->height && size / line_size < height) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("\"%s\" has %" G_GUINT64_FORMAT " bytes; %u lines of %u samples (%s) "
         "take %" G_GUINT64_FORMAT
         ". It is cut short, or the PRM file is another image's.",
            source->path, size, source->height, source->width,
            formats[source->format].name, line_size * source->height),
        (NULL));
    return FALSE;
  }
  if (!source->height &&
      (height < 1 || height > MAX_HEIGHT || size % line_size)) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("\"%s\" has %" G_GUINT64_FORMAT
         " bytes; expected are 1 to %d lines of %u samples (%s), of %" G_GUINT64_FORMAT
         " bytes each.",
            source->path, size, MAX_HEIGHT, source->width,
            formats[source->format].name, line_size),
        (NULL));
    return FALSE;
  }
  source->height = (guint) height;
  return TRUE;
}

static gboolean
gst_slc_src_stop (GstBaseSrc *base)
{
  GstSlcSrc *self = GST_SLC_SRC (base);

  GST_OBJECT_LOCK (self);
  gst_clear_caps (&self->caps);
  self->height = 0;
  GST_OBJECT_UNLOCK (self);
  g_clear_pointer (&self->path, g_free);
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
  return TRUE;
}

static void
begin (GstSlcSrc *self, const Source *source)
{
  guint wanted;

  self->path = g_strdup (source->path);
  self->line_size = source->width * formats[source->format].size;
  self->next_line = self->n_reported = 0;
  self->stop_line = source->height;

  GST_OBJECT_LOCK (self);
  wanted = self->lines_per_buffer ? self->lines_per_buffer
                                  : MAX (BUFFER_SIZE / self->line_size, 1);
  /* the size of a buffer is an unsigned int in GstBaseSrc */
  wanted = MIN (wanted, MAX (G_MAXINT / self->line_size, 1));
  self->n_lines = MIN (wanted, source->height);
  self->height = source->height;
  self->caps = gst_caps_new_simple ("application/x-slc", "format",
      G_TYPE_STRING, formats[source->format].name, "width", G_TYPE_INT,
      source->width, "height", G_TYPE_INT, source->height, "prf", G_TYPE_DOUBLE,
      source->prf, "rshift", G_TYPE_INT, source->rshift, "ashift", G_TYPE_INT,
      source->ashift, NULL);
  GST_OBJECT_UNLOCK (self);
  gst_base_src_set_blocksize (
      GST_BASE_SRC (self), self->n_lines * self->line_size);
  GST_INFO_OBJECT (self, "reading %u lines of %u samples from %s",
      source->height, source->width, source->path);
}

static gboolean
gst_slc_src_start (GstBaseSrc *base)
{
  GstSlcSrc *self = GST_SLC_SRC (base);
  Source source = {NULL};
  guint64 size;
  gboolean ok;

  ok = describe_source (self, &source) &&
       open_file (self, source.path, &size) && check_size (self, &source, size);
  if (ok)
    begin (self, &source);
  else
    gst_slc_src_stop (base);
  g_free (source.path);
  return ok;
}

/* --- negotiation -------------------------------------------------------------
 */

static GstCaps *
gst_slc_src_get_caps (GstBaseSrc *base, GstCaps *filter)
{
  GstSlcSrc *self = GST_SLC_SRC (base);
  GstCaps *caps, *result;

  GST_OBJECT_LOCK (self);
  caps = self->caps ? gst_caps_ref (self->caps) : NULL;
  GST_OBJECT_UNLOCK (self);

  if (!caps)
    caps = gst_pad_get_pad_template_caps (GST_BASE_SRC_PAD (base));
  if (!filter)
    return caps;
  result = gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (caps);
  return result;
}

/* Memory of this size fresh from the system costs more than reading into it,
 * so buffers come from a pool, downstream's or our own. */
static gboolean
gst_slc_src_decide_allocation (GstBaseSrc *base, GstQuery *query)
{
  guint size = gst_base_src_get_blocksize (base), offered = 0, min = 0, max = 0;
  GstBufferPool *pool = NULL;
  GstStructure *config;
  GstCaps *caps;

  gst_query_parse_allocation (query, &caps, NULL);
  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, &offered, &min, &max);
  if (pool && offered < size)
    gst_clear_object (&pool);
  if (!pool) {
    pool = gst_buffer_pool_new ();
    config = gst_buffer_pool_get_config (pool);
    gst_buffer_pool_config_set_params (config, caps, size, 0, 0);
    gst_buffer_pool_set_config (pool, config);
    offered = size;
    min = max = 0;
  }
  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_set_nth_allocation_pool (query, 0, pool, offered, min, max);
  else
    gst_query_add_allocation_pool (query, pool, offered, min, max);
  gst_object_unref (pool);
  return GST_BASE_SRC_CLASS (gst_slc_src_parent_class)
      ->decide_allocation (base, query);
}

/* --- streaming ---------------------------------------------------------------
 */

/* Returns: 0, or the errno of the failure; ENODATA when the file ended */
static gint
read_lines (GstSlcSrc *self, guint8 *data, gsize size)
{
  off_t offset = (off_t) (self->next_line * self->line_size);
  gsize n = 0;

  while (n < size) {
    gssize got = pread (self->fd, data + n, size - n, offset + (off_t) n);

    if (got == 0)
      return ENODATA;
    if (got < 0 && errno != EINTR)
      return errno;
    n += MAX (got, 0);
  }
  return 0;
}

/* No GST_MESSAGE_PROGRESS: gst-launch-1.0 does not play until it is complete.
 */
static void
report (GstSlcSrc *self)
{
  guint done = (guint) (self->next_line * N_REPORTS / self->height);

  if (done <= self->n_reported)
    return;
  self->n_reported = done;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("slcsrc-progress", "lines", G_TYPE_UINT64,
              self->next_line, "of", G_TYPE_UINT64, self->height, NULL)));
}

static GstFlowReturn
gst_slc_src_fill (GstPushSrc *push, GstBuffer *buffer)
{
  GstSlcSrc *self = GST_SLC_SRC (push);
  guint64 left = self->stop_line - MIN (self->next_line, self->stop_line);
  gsize size = MIN (left, self->n_lines) * self->line_size;
  GstMapInfo map;
  gint number;

  if (left == 0)
    return GST_FLOW_EOS;
  gst_buffer_set_size (buffer, size);
  if (!gst_buffer_map (buffer, &map, GST_MAP_WRITE))
    goto map_failed;
  number = read_lines (self, map.data, size);
  gst_buffer_unmap (buffer, &map);
  if (number)
    goto read_failed;

  GST_BUFFER_OFFSET (buffer) = self->next_line;
  self->next_line += size / self->line_size;
  GST_BUFFER_OFFSET_END (buffer) = self->next_line;
  GST_BUFFER_PTS (buffer) = GST_BUFFER_DTS (buffer) = GST_CLOCK_TIME_NONE;
  GST_BUFFER_DURATION (buffer) = GST_CLOCK_TIME_NONE;
  report (self);
  return GST_FLOW_OK;

map_failed:
  GST_ELEMENT_ERROR (self, RESOURCE, WRITE,
      ("The memory for line %" G_GUINT64_FORMAT " of \"%s\" cannot be written.",
          self->next_line, self->path),
      ("mapping %" GST_PTR_FORMAT, buffer));
  return GST_FLOW_ERROR;
read_failed:
  GST_ELEMENT_ERROR (self, RESOURCE, READ,
      ("Line %" G_GUINT64_FORMAT " of \"%s\" cannot be read: %s.",
          self->next_line, self->path,
          number == ENODATA ? "the file has become shorter"
                            : g_strerror (number)),
      (NULL));
  return GST_FLOW_ERROR;
}

/* --- seeking -----------------------------------------------------------------
 */

static gboolean
gst_slc_src_is_seekable (GstBaseSrc *base)
{
  return TRUE;
}

static gboolean
gst_slc_src_do_seek (GstBaseSrc *base, GstSegment *segment)
{
  GstSlcSrc *self = GST_SLC_SRC (base);

  if (segment->rate < 0)
    return FALSE;
  segment->time = segment->start;
  self->next_line = MIN (segment->start, self->height);
  self->stop_line = MIN (segment->stop, self->height); /* -1 is the largest */
  self->n_reported = (guint) (self->next_line * N_REPORTS / self->height);
  return TRUE;
}

static gboolean
gst_slc_src_query (GstBaseSrc *base, GstQuery *query)
{
  GstSlcSrc *self = GST_SLC_SRC (base);
  GstFormat format;
  guint64 height;

  GST_OBJECT_LOCK (self);
  height = self->height;
  GST_OBJECT_UNLOCK (self);

  if (height > 0 && GST_QUERY_TYPE (query) == GST_QUERY_DURATION) {
    gst_query_parse_duration (query, &format, NULL);
    if (format == GST_FORMAT_DEFAULT) {
      gst_query_set_duration (query, format, (gint64) height);
      return TRUE;
    }
  }
  return GST_BASE_SRC_CLASS (gst_slc_src_parent_class)->query (base, query);
}

/* --- the object --------------------------------------------------------------
 */

static void
gst_slc_src_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstSlcSrc *self = GST_SLC_SRC (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_LOCATION:
    g_free (self->location);
    self->location = g_value_dup_string (value);
    break;
  case PROP_FORMAT:
    self->format = g_value_get_enum (value);
    break;
  case PROP_WIDTH:
    self->width = g_value_get_uint (value);
    break;
  case PROP_LINES_PER_BUFFER:
    self->lines_per_buffer = g_value_get_uint (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_slc_src_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstSlcSrc *self = GST_SLC_SRC (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_LOCATION:
    g_value_set_string (value, self->location);
    break;
  case PROP_FORMAT:
    g_value_set_enum (value, self->format);
    break;
  case PROP_WIDTH:
    g_value_set_uint (value, self->width);
    break;
  case PROP_LINES_PER_BUFFER:
    g_value_set_uint (value, self->lines_per_buffer);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_slc_src_finalize (GObject *object)
{
  g_free (GST_SLC_SRC (object)->location);
  G_OBJECT_CLASS (gst_slc_src_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *object_class)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;

  g_object_class_install_property (object_class, PROP_LOCATION,
      g_param_spec_string ("location", "Location",
          "Path of the image: a .PRM file of GMTSAR, whose SLC_file is looked "
          "for in the working folder and then beside it; or raw samples, which "
          "need width and format",
          DEFAULT_PROP_LOCATION, flags));
  g_object_class_install_property (object_class, PROP_FORMAT,
      g_param_spec_enum ("format", "Format",
          "What a sample is, little endian; auto: ci16, for PRM files alone",
          gst_slc_src_format_get_type (), DEFAULT_PROP_FORMAT, flags));
  g_object_class_install_property (object_class, PROP_WIDTH,
      g_param_spec_uint ("width", "Width",
          "Columns (samples a line) of raw samples; a PRM file says its own", 0,
          MAX_WIDTH, DEFAULT_PROP_WIDTH, flags));
  g_object_class_install_property (object_class, PROP_LINES_PER_BUFFER,
      g_param_spec_uint ("lines-per-buffer", "Lines per buffer",
          "Whole lines that a buffer holds, the last one fewer; 0 for as many "
          "as make 1 MiB",
          0, MAX_HEIGHT, DEFAULT_PROP_LINES_PER_BUFFER, flags));
  gst_type_mark_as_plugin_api (gst_slc_src_format_get_type (), 0);
}

static void
gst_slc_src_class_init (GstSlcSrcClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseSrcClass *base_class = GST_BASE_SRC_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (
      gst_slc_src_debug, "slcsrc", 0, "single look complex SAR images");

  object_class->set_property = gst_slc_src_set_property;
  object_class->get_property = gst_slc_src_get_property;
  object_class->finalize = gst_slc_src_finalize;
  install_properties (object_class);

  gst_element_class_set_static_metadata (element_class, "SLC source",
      "Source/File", "Reads a single look complex SAR image by lines",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &src_template);

  base_class->start = gst_slc_src_start;
  base_class->stop = gst_slc_src_stop;
  base_class->get_caps = gst_slc_src_get_caps;
  base_class->decide_allocation = gst_slc_src_decide_allocation;
  base_class->is_seekable = gst_slc_src_is_seekable;
  base_class->do_seek = gst_slc_src_do_seek;
  base_class->query = gst_slc_src_query;
  GST_PUSH_SRC_CLASS (klass)->fill = gst_slc_src_fill;
}

static void
gst_slc_src_init (GstSlcSrc *self)
{
  self->fd = -1;
  self->format = DEFAULT_PROP_FORMAT;
  self->width = DEFAULT_PROP_WIDTH;
  self->lines_per_buffer = DEFAULT_PROP_LINES_PER_BUFFER;
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_DEFAULT);
}
