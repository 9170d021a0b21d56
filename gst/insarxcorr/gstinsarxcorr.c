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

#include "gstimagingengine.h"
#include "gstimagingtable.h"
#include "gstimagingallocation.h"
#include "gstinsarxcorrend.h"
#include "gstinsarxcorrsettings.h"
#include "insarxcorr/insarxcorr.h"

GST_DEBUG_CATEGORY_STATIC (insarxcorr_debug);
#define GST_CAT_DEFAULT insarxcorr_debug

#define N_REPORTS 10
#define N_SIDES IMK_INSARXCORR_N_SIDES
#define N_FIELDS IMK_INSARXCORR_N_FIELDS

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
  gboolean is_pushing; /* its thread is in the kernel, without the lock */
} Side;

struct _GstInsarXcorr {
  GstElement parent;
  GstImagingEngine *engine;

  GstInsarSettings settings; /* under the object lock */

  /* Under the lock, which is not held while a row is measured and pushed: the
   * other side may push lines meanwhile, and nothing else happens. */
  GMutex lock;
  GCond changed;
  Side sides[N_SIDES];
  gboolean is_busy; /* one thread measures, pushes, or ends */
  gboolean is_done; /* the end has gone out */
  GstFlowReturn flow;
  ImkInsarxcorr *kernel;
  ImkInsarxcorrConfig config;     /* that of the kernel */
  GstInsarSettings open_settings; /* as they were at the start */
  GstImagingTable *table;
  guint32 *columns; /* 0..nx - 1, as they are told in text */

  /* of the thread that is busy */
  GstInsarOutput src;
  GstInsarEnd *end;
  guint n_reported;
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

G_DEFINE_FINAL_TYPE_WITH_CODE (GstInsarXcorr, gst_insar_xcorr, GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        insarxcorr_debug, "insarxcorr", 0, "offsets between SAR images"))
GST_ELEMENT_REGISTER_DEFINE (
    insarxcorr, "insarxcorr", GST_RANK_NONE, GST_TYPE_INSAR_XCORR)

/* --- the kernel ---------------------------------------------------------- */

/* At the start: the file names and the rest are those of now. */
static void
take_settings (GstInsarXcorr *self)
{
  gst_insar_settings_clear (&self->open_settings);
  GST_OBJECT_LOCK (self);
  self->open_settings = gst_insar_settings_copy (&self->settings);
  GST_OBJECT_UNLOCK (self);
  self->open_settings.config.n_threads =
      gst_imaging_engine_n_threads (self->engine);
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
create_kernel (GstInsarXcorr *self, ImkBackend backend, ImkError *error)
{
  ImkInsarxcorrConfig *c = &self->config;
  GstInsarFiles files = {NULL};
  ImkStatus status;

  *c = make_config (self);
  status = imk_insarxcorr_config_complete (c, error);
  if (status == IMK_OK)
    status = gst_insar_files_load (&files, &self->open_settings, c, error);
  if (status == IMK_OK)
    status = imk_insarxcorr_new (backend, c, &self->kernel, error);
  gst_insar_files_clear (&files);
  c->mask = NULL;
  c->gross_offsets = NULL;
  return status;
}

static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  ImkStatus status = create_kernel (self, backend, error);

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
  gst_insar_end_begin (self->end, &self->config, self->open_settings.fit_range,
      self->open_settings.fit_azimuth);
  return IMK_OK;
}

/* Making a context takes a GPU about as long as the CPU takes for this many
 * samples. */
static gboolean
prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  const guint64 worthwhile = (guint64) 1 << 25;
  ImkInsarxcorrConfig c = make_config (GST_INSAR_XCORR (element));

  return imk_insarxcorr_config_complete (&c, NULL) == IMK_OK &&
         (guint64) c.nx * c.ny * c.xsearch * c.ysearch * 16 >= worthwhile;
}

/* Returns: (transfer full) */
static gchar *
get_upstream_id (GstInsarXcorr *self)
{
  gchar *id = gst_pad_get_stream_id (self->sides[IMK_INSARXCORR_REFERENCE].pad);

  return id ? id : g_strdup (GST_OBJECT_NAME (self));
}

/* Called by the busy thread, without the lock. */
static void
push_end (GstInsarXcorr *self, gboolean complete)
{
  g_autofree gchar *id = get_upstream_id (self);

  gst_insar_end_push (self->end, complete, id);
  gst_insar_output_eos (&self->src, id);
}

/* --- a row of patches -------------------------------------------------------
 */

static void
describe_row (GstInsarXcorr *self, GstImagingResult *result)
{
  static const gchar *const fields[N_FIELDS] = {"x", "y", "dx", "dy",
      "correlation", "peak", "snr", "cov_xx", "cov_yy", "cov_xy", "valid",
      "flags"};
  static const gchar *const units[N_FIELDS] = {"px", "px", "px", "px",
      "percent", "percent", "1", "px2", "px2", "px2", "1", "flags"};
  static const gchar *const indices[] = {"column"};

  *result = (GstImagingResult){
      .id = "insar-offsets-v2",
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

/* Around calls of the kernel. */
static ImkStatus
enter_context (GstInsarXcorr *self, ImkError *error)
{
  return gst_imaging_engine_is_on_cuda (self->engine)
             ? gst_imaging_context_push (
                   gst_imaging_engine_context (self->engine), error)
             : IMK_OK;
}

static void
leave_context (GstInsarXcorr *self)
{
  if (gst_imaging_engine_is_on_cuda (self->engine))
    gst_imaging_context_pop (gst_imaging_engine_context (self->engine));
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
  status = enter_context (self, error);
  if (status == IMK_OK) {
    status = imk_insarxcorr_process (self->kernel, &image, stream, error);
    if (status == IMK_OK)
      status = gst_imaging_engine_synchronize (self->engine, error);
    leave_context (self);
  }
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

    gst_insar_end_take_row (self->end, result.values);
    gst_insar_end_start (self->end, id);
    flow = gst_insar_output_push_row (&self->src, &result, id);
    gst_imaging_engine_count_frame (self->engine, entered);
    report (self, (guint) result.frame + 1);
  }
  gst_clear_buffer (&result.data);

  g_mutex_lock (&self->lock);
  if (flow == GST_FLOW_NOT_LINKED && gst_insar_end_is_wanted (self->end))
    flow = GST_FLOW_OK; /* somebody wants the fit or the rasters alone */
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

/* Under the lock, which is let go of: the other side may do the same. */
static ImkStatus
push_lines (
    GstInsarXcorr *self, guint side, const ImkImage *lines, ImkError *error)
{
  ImkStatus status;

  self->sides[side].is_pushing = TRUE;
  g_mutex_unlock (&self->lock);
  status = enter_context (self, error);
  if (status == IMK_OK) {
    status = imk_insarxcorr_push (self->kernel, side, lines, error);
    leave_context (self);
  }
  g_mutex_lock (&self->lock);
  self->sides[side].is_pushing = FALSE;
  g_cond_broadcast (&self->changed);
  return status;
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
    status = push_lines (self, side, &part, &error);
    if (status != IMK_OK) {
      gst_imaging_engine_post_error (self->engine, status, &error);
      return self->flow = GST_FLOW_ERROR;
    }
    lines.data = (guint8 *) lines.data + part.height * lines.stride;
    lines.height -= part.height;
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
  if (!gst_imaging_engine_set_caps (self->engine, caps, NULL))
    return FALSE;
  /* who was first could not be told yet what memory is best */
  if (gst_imaging_engine_is_on_cuda (self->engine))
    gst_pad_push_event (self->sides[!side].pad, gst_event_new_reconfigure ());
  return TRUE;
}

/* --- events
 * ---------------------------------------------------------------------- */

/* Under the lock. Waits until nobody else measures or brings lines; others see
 * that something is up. */
static void
begin_work (GstInsarXcorr *self)
{
  while (
      self->is_busy || self->sides[0].is_pushing || self->sides[1].is_pushing)
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
  gst_pad_push_event (self->src.pad, gst_event_ref (event));
  gst_insar_end_push_event (self->end, event);
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

  g_mutex_lock (&self->lock);
  begin_work (self);
  if (self->kernel)
    imk_insarxcorr_rewind (self->kernel, side);
  other->is_stale = !s->is_stale;
  s->is_stale = s->is_flushing = s->is_eos = FALSE;
  self->is_done = FALSE;
  self->flow = GST_FLOW_OK;
  self->n_reported = 0;
  gst_insar_output_reset (&self->src, FALSE);
  gst_insar_end_reset (self->end, FALSE);
  end_work (self);
  g_mutex_unlock (&self->lock);
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

  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION) {
    /* a source then writes where the GPU reads */
    gst_imaging_allocation_propose (self->engine, query);
    return TRUE;
  }
  return gst_imaging_engine_query (self->engine, query) ||
         gst_pad_query_default (pad, parent, query);
}

/* --- pads
 * ------------------------------------------------------------------------ */

static GstPad *
gst_insar_xcorr_request_new_pad (GstElement *element, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  return gst_insar_end_request (GST_INSAR_XCORR (element)->end, template);
}

static void
gst_insar_xcorr_release_pad (GstElement *element, GstPad *pad)
{
  gst_insar_end_release (GST_INSAR_XCORR (element)->end, pad);
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
  gst_imaging_engine_stop (self->engine);
  for (guint s = 0; s < N_SIDES; s++) {
    gst_clear_caps (&self->sides[s].caps);
    self->sides[s].is_eos = self->sides[s].is_stale = FALSE;
  }
  self->flow = GST_FLOW_OK;
  self->is_done = FALSE;
  self->n_reported = 0;
  gst_insar_output_reset (&self->src, TRUE);
  gst_insar_end_reset (self->end, TRUE);
}

/* The first of cuda-devices is the one that the engine opens. */
static gboolean
start (GstInsarXcorr *self)
{
  ImkError error;
  gint first;

  take_settings (self);
  if (gst_insar_settings_read_devices (&self->open_settings, &first, &error) !=
      IMK_OK) {
    GST_ELEMENT_ERROR (self, RESOURCE, SETTINGS, ("%s", error.message), (NULL));
    return FALSE;
  }
  if (first >= 0)
    g_object_set (self, "cuda-device-id", first, NULL);
  return gst_imaging_engine_start (self->engine);
}

static GstStateChangeReturn
gst_insar_xcorr_change_state (GstElement *element, GstStateChange transition)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    if (!start (self))
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
  gboolean known = gst_imaging_engine_set_property (self->engine, id, value);

  if (known)
    return;
  GST_OBJECT_LOCK (self);
  known = gst_insar_settings_set (&self->settings, id, value);
  GST_OBJECT_UNLOCK (self);
  if (!known)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gst_insar_xcorr_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (object);
  gboolean known = gst_imaging_engine_get_property (self->engine, id, value);

  if (known)
    return;
  GST_OBJECT_LOCK (self);
  known = gst_insar_settings_get (&self->settings, id, value);
  GST_OBJECT_UNLOCK (self);
  if (!known)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gst_insar_xcorr_finalize (GObject *object)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (object);

  gst_imaging_engine_free (self->engine);
  gst_insar_end_free (self->end);
  gst_insar_settings_clear (&self->settings);
  gst_insar_settings_clear (&self->open_settings);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (gst_insar_xcorr_parent_class)->finalize (object);
}

static void
gst_insar_xcorr_class_init (GstInsarXcorrClass *klass)
{
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
  gst_insar_settings_install (object_class);

  gst_element_class_set_static_metadata (element_class, "SAR image offsets",
      "Filter/Analyzer",
      "Measures the offsets between two SAR images by cross-correlation",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (
      element_class, &reference_template);
  gst_element_class_add_static_pad_template (
      element_class, &secondary_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_insar_end_add_templates (element_class);
}

static void
gst_insar_xcorr_init (GstInsarXcorr *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
      .prefers_cuda = prefers_cuda,
  };
  GstElementClass *element_class = GST_ELEMENT_GET_CLASS (self);

  self->engine = gst_imaging_engine_new (GST_ELEMENT (self), &funcs);
  self->end = gst_insar_end_new (GST_ELEMENT (self));
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);

  gst_insar_settings_init (&self->settings);
  add_sink (self, IMK_INSARXCORR_REFERENCE, &reference_template);
  add_sink (self, IMK_INSARXCORR_SECONDARY, &secondary_template);
  gst_insar_output_init (&self->src,
      gst_element_class_get_pad_template (element_class, "src"), "src");
  gst_element_add_pad (GST_ELEMENT (self), self->src.pad);
}
