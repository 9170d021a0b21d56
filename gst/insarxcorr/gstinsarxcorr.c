/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-insarxcorr
 * @title: insarxcorr
 * @short_description: measures the offsets between two SAR images
 *
 * Takes the lines of two single look complex images and measures, for patches
 * on a grid, by how much the secondary is shifted against the reference:
 * incoherent cross-correlation, to 1/32 of a column and 1/16 of a line, as
 * GMTSAR's xcorr does it.
 *
 * Of the images, only a band is kept: a row of patches goes out on `src` as
 * soon as its lines are there. One pad may be ahead of the other by what fits
 * the band; then it waits, so each pad needs a thread of its own: a source for
 * each, or a queue.
 *
 * On `src` the first format that the peer names: text/x-gmtsar-xcorr, byte for
 * byte a freq_xcorr.dat; text/csv with all that is known of a patch;
 * other/tensors with the same as float32. At the end a plane, or another
 * polynomial, is fitted to the offsets, as GMTSAR's fitoffset.csh does, and
 * goes out as eight PRM lines on the request pad `fit` and as a message
 * "insarxcorr-fit".
 *
 * docs/insarxcorr.md has the formulas.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 slcsrc location=ref.PRM ! x.reference slcsrc
 * location=sec.PRM ! x.secondary insarxcorr name=x nx=20 ny=50 xsearch=128
 * ysearch=128 ! filesink location=freq_xcorr.dat
 * ]|
 */
#include "gstinsarxcorr.h"

#include <math.h>

#include "gstimagingengine.h"
#include "gstimagingtable.h"
#include "gstinsarxcorroutput.h"
#include "gstinsarxcorrtext.h"
#include "insarxcorr/insarxcorr.h"

GST_DEBUG_CATEGORY_STATIC (insarxcorr_debug);
#define GST_CAT_DEFAULT insarxcorr_debug

#define DEFAULT_PROP_NX 16
#define DEFAULT_PROP_NY 32
#define DEFAULT_PROP_GRID IMK_INSARXCORR_GRID_GMTSAR
#define DEFAULT_PROP_XSEARCH 64
#define DEFAULT_PROP_YSEARCH 64
#define DEFAULT_PROP_RANGE_INTERP 2
#define DEFAULT_PROP_INTERP 16
#define DEFAULT_PROP_METHOD IMK_INSARXCORR_FREQ
#define DEFAULT_PROP_USE_SHIFT TRUE
#define DEFAULT_PROP_MIN_VALID 0.5
#define DEFAULT_PROP_MEMORY_LIMIT 0
#define DEFAULT_PROP_FIT_RANGE 3
#define DEFAULT_PROP_FIT_AZIMUTH 3
#define DEFAULT_PROP_FIT_SNR 18.0

#define N_REPORTS 10
#define N_SIDES IMK_INSARXCORR_N_SIDES
#define N_FIELDS IMK_INSARXCORR_N_FIELDS

enum {
  PROP_NX = GST_IMAGING_ENGINE_N_PROPERTIES + 1,
  PROP_NY,
  PROP_GRID,
  PROP_XSEARCH,
  PROP_YSEARCH,
  PROP_RANGE_INTERP,
  PROP_INTERP,
  PROP_METHOD,
  PROP_USE_SHIFT,
  PROP_MIN_VALID,
  PROP_MEMORY_LIMIT,
  PROP_FIT_RANGE,
  PROP_FIT_AZIMUTH,
  PROP_FIT_SNR,
};

/* The properties. Of the config, the images come with the caps. */
typedef struct {
  ImkInsarxcorrConfig config;
  gboolean use_shift;
  gint fit_range, fit_azimuth;
} Settings;

/* An input. */
typedef struct {
  GstPad *pad;
  GstCaps *caps; /* NULL before the first */
  ImkType type;
  guint width, height;
  gdouble prf;
  gint rshift, ashift;
  gboolean is_flushing;
  gboolean is_stale; /* its lines are from before a flush of the other side */
  gboolean is_eos;
} Side;

struct _GstInsarXcorr {
  GstElement parent;
  GstImagingEngine *engine;

  Settings settings; /* under the object lock */

  /* Under the lock, which is not held while a row is measured and pushed: the
   * other side may push lines meanwhile, and nothing else happens. */
  GMutex lock;
  GCond changed;
  Side sides[N_SIDES];
  gboolean is_busy; /* one thread measures, pushes, or ends */
  gboolean is_done; /* the end has gone out */
  GstFlowReturn flow;
  ImkInsarxcorr *kernel;
  ImkInsarxcorrConfig config; /* that of the kernel */
  Settings open_settings;     /* as they were when it was opened */
  GstImagingTable *table;
  guint32 *columns; /* 0..nx - 1, as they are told in text */

  /* of the thread that is busy */
  GstInsarOutput src;
  GArray *points; /* ImkInsarxcorrPoint: for the fit */
  guint n_reported;

  /* the pad under the object lock; what it says belongs to who is busy */
  GstInsarOutput *fit;
};

#define SLC_CAPS \
  "application/x-slc, format = (string) { ci16, cf32, f32 }, width = (int) " \
  "[ 1, 16777216 ], height = (int) [ 1, 1073741824 ]"

static GstStaticPadTemplate reference_template = GST_STATIC_PAD_TEMPLATE (
    "reference", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (SLC_CAPS));

static GstStaticPadTemplate secondary_template = GST_STATIC_PAD_TEMPLATE (
    "secondary", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (SLC_CAPS));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS ("text/x-gmtsar-xcorr; text/csv; other/tensors, format "
                         "= (string) static, num_tensors = (int) 1, types = "
                         "(string) float32"));

static GstStaticPadTemplate fit_template = GST_STATIC_PAD_TEMPLATE (
    "fit", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS ("text/x-gmtsar-prm"));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstInsarXcorr, gst_insar_xcorr, GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        insarxcorr_debug, "insarxcorr", 0, "offsets between SAR images"))
GST_ELEMENT_REGISTER_DEFINE (
    insarxcorr, "insarxcorr", GST_RANK_NONE, GST_TYPE_INSAR_XCORR)

/* --- enumerations -------------------------------------------------------- */

static GType
grid_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
      {IMK_INSARXCORR_GRID_GMTSAR, "Whole steps, which end early", "gmtsar"},
      {IMK_INSARXCORR_GRID_EVEN, "Over the whole reference", "even"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, g_enum_register_static ("GstInsarXcorrGrid", values));
  return type;
}

static GType
method_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
      {IMK_INSARXCORR_FREQ, "Plain correlation, by FFT", "freq"},
      {IMK_INSARXCORR_TIME, "Normalised correlation", "time"},
      {IMK_INSARXCORR_TIME4, "Normalised correlation of squares", "time4"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, g_enum_register_static ("GstInsarXcorrMethod", values));
  return type;
}

/* --- the kernel ---------------------------------------------------------- */

static Settings
get_settings (GstInsarXcorr *self)
{
  Settings settings;

  GST_OBJECT_LOCK (self);
  settings = self->settings;
  GST_OBJECT_UNLOCK (self);
  settings.config.n_threads = gst_imaging_engine_n_threads (self->engine);
  return settings;
}

static ImkInsarxcorrConfig
make_config (GstInsarXcorr *self)
{
  const Side *ref = &self->sides[IMK_INSARXCORR_REFERENCE];
  const Side *sec = &self->sides[IMK_INSARXCORR_SECONDARY];
  ImkInsarxcorrConfig c = self->open_settings.config;

  for (guint s = 0; s < N_SIDES; s++) {
    c.width[s] = self->sides[s].width;
    c.height[s] = self->sides[s].height;
  }
  c.type = ref->type;
  if (self->open_settings.use_shift) {
    c.rshift = sec->rshift;
    c.ashift = sec->ashift;
  }
  /* a PRF that is not said is the same */
  if (ref->prf > 0 && sec->prf > 0)
    c.prf_ratio = (sec->prf - ref->prf) / ref->prf;
  return c;
}

static void
close_kernel (GstElement *element)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  g_clear_pointer (&self->kernel, imk_insarxcorr_free);
  g_clear_pointer (&self->table, gst_imaging_table_free);
  g_clear_pointer (&self->columns, g_free);
}

static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  ImkStatus status;

  self->open_settings = get_settings (self);
  self->config = make_config (self);
  status = imk_insarxcorr_new (backend, &self->config, &self->kernel, error);
  if (status != IMK_OK)
    return status;
  self->table = gst_imaging_table_new (
      backend == IMK_BACKEND_CUDA ? gst_imaging_engine_context (self->engine)
                                  : NULL,
      N_FIELDS, self->config.nx, error);
  if (!self->table) {
    close_kernel (element);
    return IMK_ERROR_MEMORY;
  }
  self->columns = g_new (guint32, self->config.nx);
  for (guint i = 0; i < self->config.nx; i++)
    self->columns[i] = i;
  return IMK_OK;
}

/* --- the end: the fit ------------------------------------------------------
 */

/* Returns: (transfer full) (nullable) */
static gchar *
get_upstream_id (GstInsarXcorr *self)
{
  gchar *id = gst_pad_get_stream_id (self->sides[IMK_INSARXCORR_REFERENCE].pad);

  return id ? id : g_strdup (GST_OBJECT_NAME (self));
}

/* The reference keeps the pad from being freed while we push. */
static GstInsarOutput *
hold_fit (GstInsarXcorr *self)
{
  GstInsarOutput *fit;

  GST_OBJECT_LOCK (self);
  fit = self->fit ? g_atomic_rc_box_acquire (self->fit) : NULL;
  GST_OBJECT_UNLOCK (self);
  return fit;
}

static void
clear_output (gpointer data)
{
  GstInsarOutput *output = data;

  gst_clear_caps (&output->caps);
  gst_clear_object (&output->pad);
}

static void
release_fit (GstInsarOutput *fit)
{
  if (fit)
    g_atomic_rc_box_release_full (fit, clear_output);
}

/* Its sink need not wait for the end to preroll. */
static void
start_fit (GstInsarXcorr *self)
{
  GstInsarOutput *fit = hold_fit (self);
  g_autofree gchar *id = get_upstream_id (self);

  if (fit && !fit->started) {
    GstCaps *caps = gst_static_pad_template_get_caps (&fit_template);

    gst_insar_output_start (fit, caps, id);
    gst_insar_output_gap (fit);
    gst_caps_unref (caps);
  }
  release_fit (fit);
}

/* Without a fit to be had, who asked for it is told why. */
static void
push_fit (GstInsarXcorr *self, GstInsarOutput *pad)
{
  const Settings *settings = &self->open_settings;
  ImkInsarxcorrFit fit;
  ImkError error;

  if (settings->fit_range == 0 || settings->fit_azimuth == 0)
    return;
  if (imk_insarxcorr_fit ((const ImkInsarxcorrPoint *) self->points->data,
          self->points->len, settings->fit_range, settings->fit_azimuth, &fit,
          &error) != IMK_OK) {
    GST_INFO_OBJECT (self, "%s", error.message);
    if (pad)
      GST_ELEMENT_WARNING (self, STREAM, FAILED, ("%s", error.message), (NULL));
    return;
  }
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_element (GST_OBJECT (self),
                              gst_insar_text_describe_fit (&fit)));
  if (pad && gst_pad_is_linked (pad->pad))
    gst_pad_push (pad->pad, gst_insar_text_of_fit (&fit));
}

/* Called by the busy thread, without the lock. @complete: whether all rows were
 * measured; a part of them gives no fit */
static void
push_end (GstInsarXcorr *self, gboolean complete)
{
  GstInsarOutput *fit = hold_fit (self);
  g_autofree gchar *id = get_upstream_id (self);

  start_fit (self);
  if (complete)
    push_fit (self, fit);
  gst_insar_output_eos (&self->src, id);
  if (fit)
    gst_insar_output_eos (fit, id);
  release_fit (fit);
}

/* --- a row of patches -------------------------------------------------------
 */

static void
describe_row (GstInsarXcorr *self, GstImagingResult *result)
{
  static const gchar *const fields[N_FIELDS] = {
      "x", "y", "dx", "dy", "correlation", "valid", "flags"};
  static const gchar *const units[N_FIELDS] = {
      "px", "px", "px", "px", "percent", "1", "flags"};
  static const gchar *const indices[] = {"column"};

  *result = (GstImagingResult){
      .id = "insar-offsets-v1",
      .fields = fields,
      .units = units,
      .n_fields = N_FIELDS,
      .n_rows = self->config.nx,
      .index_names = indices,
      .n_indices = 1,
      .indices = self->columns,
      .ref_width = self->config.width[0],
      .ref_height = self->config.height[0],
      .frame = imk_insarxcorr_row (self->kernel),
  };
}

/* The fit is made from the three decimals that are printed, as GMTSAR's is. */
static gdouble
round_printed (gdouble value)
{
  return rint (value * 1000) / 1000;
}

/* Those that are to be trusted. */
static void
keep_points (GstInsarXcorr *self, const gdouble *values)
{
  for (guint i = 0; i < self->config.nx; i++, values += N_FIELDS) {
    guint flags = (guint) values[IMK_INSARXCORR_FLAGS];
    ImkInsarxcorrPoint point = {
        .x = values[IMK_INSARXCORR_X],
        .y = values[IMK_INSARXCORR_Y],
        .dx = round_printed (values[IMK_INSARXCORR_DX]),
        .dy = round_printed (values[IMK_INSARXCORR_DY]),
    };

    if (!(flags & (IMK_INSARXCORR_INVALID_MASK | IMK_INSARXCORR_LOW)))
      g_array_append_val (self->points, point);
  }
}

/* No GST_MESSAGE_PROGRESS: gst-launch-1.0 does not play until it is complete.
 */
static void
report (GstInsarXcorr *self, guint row)
{
  guint done = (guint) ((guint64) row * N_REPORTS / self->config.ny);

  if (done <= self->n_reported)
    return;
  self->n_reported = done;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("insarxcorr-progress", "rows", G_TYPE_UINT, row,
              "of", G_TYPE_UINT, self->config.ny, NULL)));
}

/* Called by the busy thread, without the lock. */
static ImkStatus
measure_row (GstInsarXcorr *self, GstImagingResult *result, ImkError *error)
{
  gpointer stream = gst_imaging_engine_stream (self->engine);
  ImkStatus status;
  ImkImage image;

  describe_row (self, result);
  status = gst_imaging_table_begin (self->table, stream, TRUE, &image, error);
  if (status != IMK_OK)
    return status;
  status = imk_insarxcorr_process (self->kernel, &image, stream, error);
  if (status == IMK_OK)
    status = gst_imaging_engine_synchronize (self->engine, error);
  result->data = gst_imaging_table_end (self->table, &result->values);
  return status;
}

/* --- taking lines ------------------------------------------------------------
 */

/* Under the lock, which is let go of: measures the next row and sends it on. */
static void
work_row (GstInsarXcorr *self)
{
  GstImagingResult result = {NULL};
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_ERROR;
  ImkError error;
  ImkStatus status;

  self->is_busy = TRUE;
  g_mutex_unlock (&self->lock);
  status = measure_row (self, &result, &error);
  g_mutex_lock (&self->lock);
  if (status == IMK_OK)
    imk_insarxcorr_advance (self->kernel); /* there is room for lines again */
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);

  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
  } else {
    g_autofree gchar *id = get_upstream_id (self);

    keep_points (self, result.values);
    start_fit (self);
    flow = gst_insar_output_push_row (&self->src, &result, id);
    gst_imaging_engine_count_frame (self->engine, entered);
    report (self, (guint) result.frame + 1);
  }
  gst_clear_buffer (&result.data);

  g_mutex_lock (&self->lock);
  if (flow == GST_FLOW_NOT_LINKED && self->fit)
    flow = GST_FLOW_OK; /* somebody wants the fit alone */
  if (self->flow == GST_FLOW_OK)
    self->flow = flow;
  self->is_busy = FALSE;
  g_cond_broadcast (&self->changed);
}

/* Under the lock. Returns: whether nothing is left to do */
static gboolean
has_ended (GstInsarXcorr *self)
{
  return self->kernel && imk_insarxcorr_row (self->kernel) == self->config.ny;
}

/* Under the lock. Returns: why @side takes no more lines, or GST_FLOW_OK */
static GstFlowReturn
side_flow (GstInsarXcorr *self, const Side *side)
{
  if (side->is_flushing)
    return GST_FLOW_FLUSHING;
  if (self->flow != GST_FLOW_OK)
    return self->flow;
  return has_ended (self) && !self->is_busy ? GST_FLOW_EOS : GST_FLOW_OK;
}

/* Under the lock. Returns: lines of @side that can be taken now; 0 when work
 * was done instead, or there was nothing to do but wait */
static guint
wait_for_room (GstInsarXcorr *self, guint side)
{
  gboolean both = self->kernel && !self->sides[!side].is_stale;
  guint room = self->kernel ? imk_insarxcorr_room (self->kernel, side) : 0;

  if (both && !self->is_busy && imk_insarxcorr_is_ready (self->kernel))
    work_row (self);
  else if (room > 0)
    return room;
  else
    g_cond_wait (&self->changed, &self->lock);
  return 0;
}

/* Under the lock. */
static GstFlowReturn
take_lines (GstInsarXcorr *self, guint side, ImkImage lines)
{
  GstFlowReturn flow;
  ImkError error;

  while ((flow = side_flow (self, &self->sides[side])) == GST_FLOW_OK &&
         lines.height > 0) {
    guint room = wait_for_room (self, side);
    ImkImage part = lines;
    ImkStatus status;

    if (room == 0)
      continue;
    part.height = MIN (room, lines.height);
    status = imk_insarxcorr_push (self->kernel, side, &part,
        gst_imaging_engine_stream (self->engine), &error);
    if (status != IMK_OK) {
      gst_imaging_engine_post_error (self->engine, status, &error);
      return self->flow = GST_FLOW_ERROR;
    }
    lines.data = (guint8 *) lines.data + part.height * lines.stride;
    lines.height -= part.height;
    g_cond_broadcast (&self->changed);
  }
  /* what is ready is not left for the next buffer */
  while (flow == GST_FLOW_OK && self->kernel && !self->is_busy &&
         !self->sides[!side].is_stale &&
         imk_insarxcorr_is_ready (self->kernel)) {
    work_row (self);
    flow = side_flow (self, &self->sides[side]);
  }
  return flow;
}

/* Under the lock. @offset: number of the first line, or GST_BUFFER_OFFSET_NONE.
 * Returns: FALSE after an error has been posted */
static gboolean
check_lines (GstInsarXcorr *self, guint side, gsize size, guint64 offset)
{
  const Side *s = &self->sides[side];
  gsize line_size = s->width * imk_type_size (s->type);
  guint pushed = self->kernel ? imk_insarxcorr_pushed (self->kernel, side) : 0;

  if (!s->caps) {
    GST_ELEMENT_ERROR (self, CORE, NEGOTIATION,
        ("Lines come on the pad %s before it was said what they are.",
            GST_PAD_NAME (s->pad)),
        (NULL));
    return FALSE;
  }
  if (size == 0 || size % line_size) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("A buffer of %" G_GSIZE_FORMAT
         " bytes came on the pad %s; expected are whole lines of %" G_GSIZE_FORMAT
         " bytes.",
            size, GST_PAD_NAME (s->pad), line_size),
        (NULL));
    return FALSE;
  }
  if (offset != GST_BUFFER_OFFSET_NONE && offset != pushed) {
    GST_ELEMENT_ERROR (self, STREAM, FAILED,
        ("Line %" G_GUINT64_FORMAT
         " came on the pad %s; expected is line %u. Images are read from their "
         "first line on, without gaps.",
            offset, GST_PAD_NAME (s->pad), pushed),
        (NULL));
    return FALSE;
  }
  if (size / line_size > s->height - pushed) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("More than the %u lines that were announced came on the pad %s.",
            s->height, GST_PAD_NAME (s->pad)),
        (NULL));
    return FALSE;
  }
  return TRUE;
}

static guint
side_of (GstInsarXcorr *self, GstPad *pad)
{
  return pad == self->sides[IMK_INSARXCORR_SECONDARY].pad
             ? IMK_INSARXCORR_SECONDARY
             : IMK_INSARXCORR_REFERENCE;
}

static GstFlowReturn
gst_insar_xcorr_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (parent);
  guint side = side_of (self, pad);
  Side *s = &self->sides[side];
  GstFlowReturn flow;
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    GST_ELEMENT_ERROR (self, RESOURCE, READ,
        ("The memory of lines of the %s cannot be read.", GST_PAD_NAME (pad)),
        (NULL));
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  g_mutex_lock (&self->lock);
  flow = side_flow (self, s);
  if (flow == GST_FLOW_OK && !s->is_stale) {
    if (check_lines (self, side, map.size, GST_BUFFER_OFFSET (buffer))) {
      gsize line_size = s->width * imk_type_size (s->type);
      ImkImage lines = {
          .data = map.data,
          .stride = line_size,
          .width = s->width,
          .height = (guint) (map.size / line_size),
          .channels = 1,
          .type = s->type,
      };

      flow = take_lines (self, side, lines);
    } else {
      flow = self->flow = GST_FLOW_ERROR;
      g_cond_broadcast (&self->changed);
    }
  }
  g_mutex_unlock (&self->lock);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return flow;
}

/* --- caps
 * ---------------------------------------------------------------------- */

static ImkType
type_of (const gchar *format)
{
  if (g_strcmp0 (format, "cf32") == 0)
    return IMK_TYPE_CF32;
  return g_strcmp0 (format, "f32") == 0 ? IMK_TYPE_F32 : IMK_TYPE_CI16;
}

static void
read_caps (Side *side, GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gint width = 0, height = 0;

  gst_caps_replace (&side->caps, caps);
  side->prf = 0;
  side->rshift = side->ashift = 0;
  gst_structure_get_int (s, "width", &width);
  gst_structure_get_int (s, "height", &height);
  gst_structure_get_double (s, "prf", &side->prf);
  gst_structure_get_int (s, "rshift", &side->rshift);
  gst_structure_get_int (s, "ashift", &side->ashift);
  side->width = (guint) width;
  side->height = (guint) height;
  side->type = type_of (gst_structure_get_string (s, "format"));
}

/* Under the lock. Opens the kernel when both sides are known. */
static gboolean
set_caps (GstInsarXcorr *self, guint side, GstCaps *caps)
{
  const Side *ref = &self->sides[IMK_INSARXCORR_REFERENCE];
  const Side *sec = &self->sides[IMK_INSARXCORR_SECONDARY];

  if (self->sides[side].caps &&
      gst_caps_is_equal (self->sides[side].caps, caps))
    return TRUE;
  if (self->kernel) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("Another image came on the pad %s in the middle of a run; stop the "
         "pipeline before.",
            GST_PAD_NAME (self->sides[side].pad)),
        (NULL));
    return FALSE;
  }
  read_caps (&self->sides[side], caps);
  if (!ref->caps || !sec->caps)
    return TRUE;
  if (ref->type != sec->type) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("The reference has samples of %s and the secondary of %s; both must "
         "be the same.",
            imk_type_name (ref->type), imk_type_name (sec->type)),
        (NULL));
    return FALSE;
  }
  return gst_imaging_engine_set_caps (self->engine, caps, NULL);
}

/* --- events
 * ---------------------------------------------------------------------- */

/* Under the lock. Waits until nobody else measures or pushes; others see that
 * something is up. */
static void
begin_work (GstInsarXcorr *self)
{
  while (self->is_busy)
    g_cond_wait (&self->changed, &self->lock);
  self->is_busy = TRUE;
}

static void
end_work (GstInsarXcorr *self)
{
  self->is_busy = FALSE;
  g_cond_broadcast (&self->changed);
}

/* Under the lock. Returns: whether lines of @side are missing, which has been
 * posted then */
static gboolean
is_cut_short (GstInsarXcorr *self, guint side)
{
  const Side *s = &self->sides[side];
  guint pushed = self->kernel ? imk_insarxcorr_pushed (self->kernel, side) : 0;

  if (self->flow != GST_FLOW_OK || has_ended (self) || s->is_flushing ||
      s->is_stale || !s->caps || pushed == s->height)
    return FALSE;
  GST_ELEMENT_ERROR (self, STREAM, FAILED,
      ("The %s ended after %u of %u lines.", GST_PAD_NAME (s->pad), pushed,
          s->height),
      (NULL));
  return TRUE;
}

/* Under the lock, which is let go of: the end of a side, and with it, or when
 * nothing is left to do, of all. */
static void
finish_side (GstInsarXcorr *self, guint side)
{
  gboolean ends, complete;

  self->sides[side].is_eos = TRUE;
  if (is_cut_short (self, side))
    self->flow = GST_FLOW_ERROR;
  g_cond_broadcast (&self->changed);
  begin_work (self);
  complete = has_ended (self);
  ends = !self->is_done &&
         (self->sides[!side].is_eos || complete || self->flow != GST_FLOW_OK);
  self->is_done = self->is_done || ends;
  g_mutex_unlock (&self->lock);
  if (ends)
    push_end (self, complete);
  g_mutex_lock (&self->lock);
  end_work (self);
}

static void
push_to_outputs (GstInsarXcorr *self, GstEvent *event)
{
  GstInsarOutput *fit = hold_fit (self);

  gst_pad_push_event (self->src.pad, gst_event_ref (event));
  if (fit)
    gst_pad_push_event (fit->pad, gst_event_ref (event));
  release_fit (fit);
}

static void
start_flush (GstInsarXcorr *self, guint side)
{
  g_mutex_lock (&self->lock);
  self->sides[side].is_flushing = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* All begins anew. A flush concerns both sides: until the other has had its
 * own, its lines are old ones. */
static void
stop_flush (GstInsarXcorr *self, guint side)
{
  Side *s = &self->sides[side], *other = &self->sides[!side];
  GstInsarOutput *fit = hold_fit (self);

  g_mutex_lock (&self->lock);
  begin_work (self);
  if (self->kernel)
    imk_insarxcorr_rewind (self->kernel, side);
  other->is_stale = !s->is_stale;
  s->is_stale = s->is_flushing = s->is_eos = FALSE;
  self->is_done = FALSE;
  self->flow = GST_FLOW_OK;
  g_array_set_size (self->points, 0);
  self->n_reported = 0;
  gst_insar_output_reset (&self->src, FALSE);
  if (fit)
    gst_insar_output_reset (fit, FALSE);
  end_work (self);
  g_mutex_unlock (&self->lock);
  release_fit (fit);
}

static gboolean
gst_insar_xcorr_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (parent);
  guint side = side_of (self, pad);
  gboolean done = TRUE;
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    g_mutex_lock (&self->lock);
    done = set_caps (self, side, caps);
    if (!done)
      self->flow = GST_FLOW_NOT_NEGOTIATED;
    g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
    break;
  case GST_EVENT_FLUSH_START:
    start_flush (self, side);
    push_to_outputs (self, event);
    break;
  case GST_EVENT_FLUSH_STOP:
    push_to_outputs (self, event);
    stop_flush (self, side);
    break;
  case GST_EVENT_EOS:
    g_mutex_lock (&self->lock);
    finish_side (self, side);
    g_mutex_unlock (&self->lock);
    break;
  case GST_EVENT_TAG:
    done = gst_pad_push_event (self->src.pad, gst_event_ref (event));
    break;
  default: /* the streams that come in are not those that go out */
    break;
  }
  gst_event_unref (event);
  return done;
}

static gboolean
gst_insar_xcorr_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (parent);

  return gst_imaging_engine_query (self->engine, query) ||
         gst_pad_query_default (pad, parent, query);
}

/* --- pads
 * ------------------------------------------------------------------------ */

static GstPad *
gst_insar_xcorr_request_new_pad (GstElement *element, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  GstInsarOutput *fit = g_atomic_rc_box_new0 (GstInsarOutput);
  gboolean taken;

  gst_insar_output_init (fit, template, "fit");
  gst_object_ref_sink (fit->pad);
  GST_OBJECT_LOCK (self);
  taken = self->fit != NULL;
  if (!taken)
    self->fit = fit;
  GST_OBJECT_UNLOCK (self);
  if (taken) { /* there is one fit */
    release_fit (fit);
    return NULL;
  }
  gst_element_add_pad (element, fit->pad);
  return fit->pad;
}

static void
gst_insar_xcorr_release_pad (GstElement *element, GstPad *pad)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  GstInsarOutput *fit;

  GST_OBJECT_LOCK (self);
  fit = g_steal_pointer (&self->fit);
  GST_OBJECT_UNLOCK (self);
  gst_pad_set_active (pad, FALSE);
  gst_element_remove_pad (element, pad);
  release_fit (fit);
}

static void
add_sink (GstInsarXcorr *self, guint side, GstStaticPadTemplate *template)
{
  GstPad *pad =
      gst_pad_new_from_static_template (template, template->name_template);

  gst_pad_set_chain_function (pad, gst_insar_xcorr_chain);
  gst_pad_set_event_function (pad, gst_insar_xcorr_sink_event);
  gst_pad_set_query_function (pad, gst_insar_xcorr_query);
  self->sides[side].pad = pad;
  gst_element_add_pad (GST_ELEMENT (self), pad);
}

/* --- states
 * ------------------------------------------------------------------------ */

static void
set_flushing (GstInsarXcorr *self, gboolean is_flushing)
{
  g_mutex_lock (&self->lock);
  for (guint s = 0; s < N_SIDES; s++)
    self->sides[s].is_flushing = is_flushing;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* Nothing streams any more. */
static void
stop (GstInsarXcorr *self)
{
  GstInsarOutput *fit = hold_fit (self);

  gst_imaging_engine_stop (self->engine);
  for (guint s = 0; s < N_SIDES; s++) {
    gst_clear_caps (&self->sides[s].caps);
    self->sides[s].is_eos = self->sides[s].is_stale = FALSE;
  }
  self->flow = GST_FLOW_OK;
  self->is_done = FALSE;
  self->n_reported = 0;
  g_array_set_size (self->points, 0);
  gst_insar_output_reset (&self->src, TRUE);
  if (fit)
    gst_insar_output_reset (fit, TRUE);
  release_fit (fit);
}

static GstStateChangeReturn
gst_insar_xcorr_change_state (GstElement *element, GstStateChange transition)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    if (!gst_imaging_engine_start (self->engine))
      return GST_STATE_CHANGE_FAILURE;
    set_flushing (self, FALSE);
  }
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    set_flushing (self, TRUE);
  result = GST_ELEMENT_CLASS (gst_insar_xcorr_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED &&
          result == GST_STATE_CHANGE_FAILURE))
    stop (self);
  return result;
}

static void
gst_insar_xcorr_set_context (GstElement *element, GstContext *context)
{
  gst_imaging_engine_set_context (GST_INSAR_XCORR (element)->engine, context);
  GST_ELEMENT_CLASS (gst_insar_xcorr_parent_class)
      ->set_context (element, context);
}

/* --- the object
 * --------------------------------------------------------------------- */

static void
gst_insar_xcorr_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (object);
  Settings *settings = &self->settings;
  ImkInsarxcorrConfig *c = &settings->config;

  if (gst_imaging_engine_set_property (self->engine, id, value))
    return;
  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_NX:
    c->nx = g_value_get_uint (value);
    break;
  case PROP_NY:
    c->ny = g_value_get_uint (value);
    break;
  case PROP_GRID:
    c->grid = g_value_get_enum (value);
    break;
  case PROP_XSEARCH:
    c->xsearch = g_value_get_uint (value);
    break;
  case PROP_YSEARCH:
    c->ysearch = g_value_get_uint (value);
    break;
  case PROP_RANGE_INTERP:
    c->range_interp = g_value_get_uint (value);
    break;
  case PROP_INTERP:
    c->interp = g_value_get_uint (value);
    break;
  case PROP_METHOD:
    c->method = g_value_get_enum (value);
    break;
  case PROP_USE_SHIFT:
    settings->use_shift = g_value_get_boolean (value);
    break;
  case PROP_MIN_VALID:
    c->min_valid = g_value_get_double (value);
    break;
  case PROP_MEMORY_LIMIT:
    c->memory_limit = g_value_get_uint64 (value);
    break;
  case PROP_FIT_RANGE:
    settings->fit_range = g_value_get_int (value);
    break;
  case PROP_FIT_AZIMUTH:
    settings->fit_azimuth = g_value_get_int (value);
    break;
  case PROP_FIT_SNR:
    c->min_correlation = g_value_get_double (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_insar_xcorr_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (object);
  const Settings *settings = &self->settings;
  const ImkInsarxcorrConfig *c = &settings->config;

  if (gst_imaging_engine_get_property (self->engine, id, value))
    return;
  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_NX:
    g_value_set_uint (value, c->nx);
    break;
  case PROP_NY:
    g_value_set_uint (value, c->ny);
    break;
  case PROP_GRID:
    g_value_set_enum (value, c->grid);
    break;
  case PROP_XSEARCH:
    g_value_set_uint (value, c->xsearch);
    break;
  case PROP_YSEARCH:
    g_value_set_uint (value, c->ysearch);
    break;
  case PROP_RANGE_INTERP:
    g_value_set_uint (value, c->range_interp);
    break;
  case PROP_INTERP:
    g_value_set_uint (value, c->interp);
    break;
  case PROP_METHOD:
    g_value_set_enum (value, c->method);
    break;
  case PROP_USE_SHIFT:
    g_value_set_boolean (value, settings->use_shift);
    break;
  case PROP_MIN_VALID:
    g_value_set_double (value, c->min_valid);
    break;
  case PROP_MEMORY_LIMIT:
    g_value_set_uint64 (value, c->memory_limit);
    break;
  case PROP_FIT_RANGE:
    g_value_set_int (value, settings->fit_range);
    break;
  case PROP_FIT_AZIMUTH:
    g_value_set_int (value, settings->fit_azimuth);
    break;
  case PROP_FIT_SNR:
    g_value_set_double (value, c->min_correlation);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
install_grid_properties (GObjectClass *klass, GParamFlags flags)
{
  g_object_class_install_property (klass, PROP_NX,
      g_param_spec_uint ("nx", "Patches in range",
          "Patches a row. Their centres are at x = 4 xsearch + i X / (nx + 3), "
          "i = 2..nx + 1, X = width - 6 xsearch",
          1, 1000000, DEFAULT_PROP_NX, flags));
  g_object_class_install_property (klass, PROP_NY,
      g_param_spec_uint ("ny", "Patches in azimuth",
          "Rows of patches. Their centres are at y = 4 ysearch + j Y / (ny + "
          "1), j = 1..ny, Y = height - 6 ysearch",
          1, 1000000, DEFAULT_PROP_NY, flags));
  g_object_class_install_property (klass, PROP_GRID,
      g_param_spec_enum ("grid", "Grid",
          "gmtsar: the steps X / (nx + 3) and Y / (ny + 1) are cut to whole "
          "numbers, so that dense grids end before the image; even: they are "
          "not",
          grid_get_type (), DEFAULT_PROP_GRID, flags));
  g_object_class_install_property (klass, PROP_XSEARCH,
      g_param_spec_uint ("xsearch", "Search in range",
          "Columns (finer ones, see range-interp) that are searched either way: "
          "a power of two. A patch is 4 of it wide, the template 2",
          4, 1024, DEFAULT_PROP_XSEARCH, flags));
  g_object_class_install_property (klass, PROP_YSEARCH,
      g_param_spec_uint ("ysearch", "Search in azimuth",
          "Lines that are searched either way: a power of two. A patch is 4 of "
          "it high, the template 2",
          4, 1024, DEFAULT_PROP_YSEARCH, flags));
}

static void
install_method_properties (GObjectClass *klass, GParamFlags flags)
{
  g_object_class_install_property (klass, PROP_RANGE_INTERP,
      g_param_spec_uint ("range-interp", "Range interpolation",
          "Finer columns a column, by FFT, before the amplitude is taken; 1 for "
          "none",
          1, 16, DEFAULT_PROP_RANGE_INTERP, flags));
  g_object_class_install_property (klass, PROP_INTERP,
      g_param_spec_uint ("interp", "Interpolation of the peak",
          "Steps a sample in which the peak of the correlation is found: "
          "offsets are multiples of 1 / (range-interp interp) columns and 1 / "
          "interp lines; 1 for none",
          1, 64, DEFAULT_PROP_INTERP, flags));
  g_object_class_install_property (klass, PROP_METHOD,
      g_param_spec_enum ("method", "Method",
          "What is largest at the offset: freq: the plain correlation; time: "
          "the normalised one, as GMTSAR's -time; time4: of squares, as -time4. "
          "The last two take xsearch ysearch times as long",
          method_get_type (), DEFAULT_PROP_METHOD, flags));
  g_object_class_install_property (klass, PROP_USE_SHIFT,
      g_param_spec_boolean ("use-shift", "Use shift",
          "Whether the search begins at the rshift and ashift of the secondary",
          DEFAULT_PROP_USE_SHIFT, flags));
  g_object_class_install_property (klass, PROP_MIN_VALID,
      g_param_spec_double ("min-valid", "Least data",
          "Part of the samples of a patch that must be data, neither 0 nor not "
          "finite, in both images; patches with less are flagged and take no "
          "part in the fit",
          0.0, 1.0, DEFAULT_PROP_MIN_VALID, flags));
  g_object_class_install_property (klass, PROP_MEMORY_LIMIT,
      g_param_spec_uint64 ("memory-limit", "Memory limit",
          "Bytes that lines and the work on them may take at most; 0 for as "
          "many as are of use. Results do not depend on it",
          0, G_MAXUINT64, DEFAULT_PROP_MEMORY_LIMIT, flags));
}

static void
install_fit_properties (GObjectClass *klass, GParamFlags flags)
{
  g_object_class_install_property (klass, PROP_FIT_RANGE,
      g_param_spec_int ("fit-range", "Range terms",
          "Terms of the polynomial that is fitted to the offsets in range: 1 "
          "shift, 2 and stretch along range, 3 and along azimuth, up to 10 for "
          "cubic ones; 0 for no fit at all",
          0, IMK_INSARXCORR_FIT_MAX_TERMS, DEFAULT_PROP_FIT_RANGE, flags));
  g_object_class_install_property (klass, PROP_FIT_AZIMUTH,
      g_param_spec_int ("fit-azimuth", "Azimuth terms",
          "Terms of the polynomial in azimuth, as fit-range", 0,
          IMK_INSARXCORR_FIT_MAX_TERMS, DEFAULT_PROP_FIT_AZIMUTH, flags));
  g_object_class_install_property (klass, PROP_FIT_SNR,
      g_param_spec_double ("fit-snr", "Least correlation",
          "Patches whose correlation, 0 to 100, is above it take part in the "
          "fit; the others are flagged",
          0.0, 100.0, DEFAULT_PROP_FIT_SNR, flags));
}

static void
gst_insar_xcorr_finalize (GObject *object)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (object);

  gst_imaging_engine_free (self->engine);
  g_array_unref (self->points);
  release_fit (self->fit);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (gst_insar_xcorr_parent_class)->finalize (object);
}

static void
gst_insar_xcorr_class_init (GstInsarXcorrClass *klass)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->set_property = gst_insar_xcorr_set_property;
  object_class->get_property = gst_insar_xcorr_get_property;
  object_class->finalize = gst_insar_xcorr_finalize;
  element_class->change_state = gst_insar_xcorr_change_state;
  element_class->set_context = gst_insar_xcorr_set_context;
  element_class->request_new_pad = gst_insar_xcorr_request_new_pad;
  element_class->release_pad = gst_insar_xcorr_release_pad;

  gst_imaging_engine_install_properties (object_class);
  install_grid_properties (object_class, flags);
  install_method_properties (object_class, flags);
  install_fit_properties (object_class, flags);
  gst_type_mark_as_plugin_api (grid_get_type (), 0);
  gst_type_mark_as_plugin_api (method_get_type (), 0);

  gst_element_class_set_static_metadata (element_class, "SAR image offsets",
      "Filter/Analyzer",
      "Measures the offsets between two SAR images by cross-correlation",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (
      element_class, &reference_template);
  gst_element_class_add_static_pad_template (
      element_class, &secondary_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_add_static_pad_template (element_class, &fit_template);
}

static void
gst_insar_xcorr_init (GstInsarXcorr *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
  };
  GstElementClass *element_class = GST_ELEMENT_GET_CLASS (self);
  Settings *settings = &self->settings;
  ImkInsarxcorrConfig *c = &settings->config;

  self->engine = gst_imaging_engine_new (GST_ELEMENT (self), &funcs);
  self->points = g_array_new (FALSE, FALSE, sizeof (ImkInsarxcorrPoint));
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);

  imk_insarxcorr_config_init (c);
  c->nx = DEFAULT_PROP_NX;
  c->ny = DEFAULT_PROP_NY;
  c->grid = DEFAULT_PROP_GRID;
  c->xsearch = DEFAULT_PROP_XSEARCH;
  c->ysearch = DEFAULT_PROP_YSEARCH;
  c->range_interp = DEFAULT_PROP_RANGE_INTERP;
  c->interp = DEFAULT_PROP_INTERP;
  c->method = DEFAULT_PROP_METHOD;
  c->min_valid = DEFAULT_PROP_MIN_VALID;
  c->min_correlation = DEFAULT_PROP_FIT_SNR;
  c->memory_limit = DEFAULT_PROP_MEMORY_LIMIT;
  settings->use_shift = DEFAULT_PROP_USE_SHIFT;
  settings->fit_range = DEFAULT_PROP_FIT_RANGE;
  settings->fit_azimuth = DEFAULT_PROP_FIT_AZIMUTH;

  add_sink (self, IMK_INSARXCORR_REFERENCE, &reference_template);
  add_sink (self, IMK_INSARXCORR_SECONDARY, &secondary_template);
  gst_insar_output_init (&self->src,
      gst_element_class_get_pad_template (element_class, "src"), "src");
  gst_element_add_pad (GST_ELEMENT (self), self->src.pad);
}
