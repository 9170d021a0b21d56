/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-slcresample
 * @title: slcresample
 * @short_description: brings an SLC image into the geometry of another
 *
 * Resamples the lines of a secondary image to the geometry of the reference.
 * The output at column r and line a is the input at
 *
 *   r + shift-r + stretch-r r + a-stretch-r a,
 *   a + shift-a + stretch-a r + a-stretch-a a
 *
 * which is GMTSAR's geometry. The numbers are those of a fit to
 * offsets, from a file with eight lines as insarxcorr's pad `fit` and insarfit
 * write them, or properties.
 *
 * Of the image only a band is kept. docs/reference/slcresample.md has the
 * formulas.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 slcsrc location=sec.PRM ! slcresample fit-location=fit.txt
 * reference-location=ref.PRM ! filesink location=sec.resampled.SLC
 * ]|
 */
#include "gstslcresample.h"

#include <math.h>

#include "gstimagingengine.h"
#include "gstimagingmetadata.h"
#include "insar/gstinsarprm.h"
#include "gstimagingsettings.h"
#include "insar/gstinsarslc.h"
#include "imk/slcresample.h"

GST_DEBUG_CATEGORY_STATIC (slcresample_debug);
#define GST_CAT_DEFAULT slcresample_debug

#define DEFAULT_PROP_TAPS 16
#define DEFAULT_PROP_BANDWIDTH 0.85
#define DEFAULT_PROP_DOPPLER DOPPLER_AUTO

#define BUFFER_SIZE (1 << 20) /* bytes of an output buffer, about */
#define N_REPORTS 10
#define LITTLE 0.1 /* part of the output with data that cannot be intended */
#define MAX_DOPPLER_ERROR 0.1 /* cycles a line */

typedef enum {
  DOPPLER_AUTO,
  DOPPLER_CAPS,
  DOPPLER_DATA,
} Doppler;

#define N_GEOMETRY 6

typedef struct {
  GstImagingFile *fit;       /* GstInsarPrmAlignment */
  GstImagingFile *reference; /* GstInsarPrm */
  guint width, height;
  gdouble geometry[N_GEOMETRY];
  guint taps;
  gdouble bandwidth;
  Doppler doppler;
} Settings;

struct _GstSlcResample {
  GstElement parent;
  GstImagingEngine *engine;
  GstPad *sinkpad, *srcpad;

  GstImagingSettings *settings; /* not owned */

  /* of the streaming thread */
  GstInsarSlcInfo in, out;
  ImkSlcresampleConfig config;
  ImkSlcresample *kernel;
  GstCaps *refused; /* nullable: an error has been posted about them */
  GstBufferPool *pool;
  guint lines_per_buffer;
  gboolean segment_sent, is_discont;
  guint32 seqnum;   /* of the input segment; GST_SEQNUM_INVALID before it */
  GstBuffer *lines; /* (nullable, not owned): those that are taken */
  guint n_reported;
};

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_INSAR_SLC_CAPS ("{ ci16, cf32 }")));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_INSAR_SLC_CAPS ("{ ci16, cf32 }")));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstSlcResample, gst_slc_resample,
    GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        slcresample_debug, "slcresample", 0, "SAR images in another geometry"))
GST_ELEMENT_REGISTER_DEFINE (
    slcresample, "slcresample", GST_RANK_NONE, GST_TYPE_SLC_RESAMPLE)

/* --- properties --------------------------------------------------------------
 */

static const GEnumValue doppler_values[] = {
    {DOPPLER_AUTO, "Of the caps, or else of the data", "auto"},
    {DOPPLER_CAPS, "Of the caps, 0 without", "caps"},
    {DOPPLER_DATA, "Measured on the first lines", "data"},
    {0, NULL, NULL},
};

static void
take_error (GError *why, ImkError *error)
{
  imk_error_set (error, IMK_ERROR_FILE, "%s", why->message);
  g_error_free (why);
}

static gpointer
load_fit (const gchar *location, ImkError *error)
{
  GstInsarPrmAlignment *fit = g_new (GstInsarPrmAlignment, 1);
  GError *why = NULL;

  if (gst_insar_prm_load_alignment (location, fit, &why))
    return fit;
  take_error (why, error);
  g_free (fit);
  return NULL;
}

static gpointer
load_reference (const gchar *location, ImkError *error)
{
  GError *why = NULL;
  GstInsarPrm *prm = gst_insar_prm_load (location, &why);

  if (!prm)
    take_error (why, error);
  return prm;
}

#define KERNEL (1 << 0) /* what makes another kernel */

/* Columns or lines at the first sample, or more a column or line. */
#define GEOMETRY(NAME, I, MOST, UNIT, BLURB) \
  GST_IMAGING_DOUBLE (NAME, NEXT_SET, KERNEL, Settings, geometry[I], -(MOST), \
      MOST, UNIT, BLURB)

static const GstImagingSetting settings[] = {
    GST_IMAGING_PATH ("fit-location", NEXT_SET, KERNEL, Settings, fit, load_fit,
        g_free,
        "Path of a file with the lines rshift, sub_int_r, stretch_r, "
        "a_stretch_r and the same for azimuth, as insarxcorr's pad fit, "
        "insarfit and fitoffset.csh write them; a PRM file with them will do"),
    GST_IMAGING_PATH ("reference-location", NEXT_SET, KERNEL, Settings,
        reference, load_reference, (GDestroyNotify) gst_insar_prm_free,
        "Path of the PRM file of the reference, whose size the image gets"),
    GST_IMAGING_UINT ("width", NEXT_SET, KERNEL, Settings, width, 0, 1 << 24,
        "samples",
        "Columns that the image gets; 0: those of the reference, or as it has"),
    GST_IMAGING_UINT ("height", NEXT_SET, KERNEL, Settings, height, 0, 1 << 30,
        "lines",
        "Lines that the image gets; 0: those of the reference, or as it has"),
    GEOMETRY ("shift-r", 0, 1e6, "columns",
        "Columns that column 0 of line 0 is away; added to those of the fit"),
    GEOMETRY ("stretch-r", 1, IMK_SLCRESAMPLE_MAX_STRETCH, NULL,
        "Columns more, a column; added to that of the fit"),
    GEOMETRY ("a-stretch-r", 2, IMK_SLCRESAMPLE_MAX_STRETCH, NULL,
        "Columns more, a line; added to that of the fit"),
    GEOMETRY ("shift-a", 3, 1e6, "lines",
        "Lines that column 0 of line 0 is away; added to those of the fit"),
    GEOMETRY ("stretch-a", 4, IMK_SLCRESAMPLE_MAX_STRETCH, NULL,
        "Lines more, a column; added to that of the fit"),
    GEOMETRY ("a-stretch-a", 5, IMK_SLCRESAMPLE_MAX_STRETCH, NULL,
        "Lines more, a line; added to that of the fit"),
    GST_IMAGING_UINT ("taps", NEXT_SET, KERNEL, Settings, taps, 4,
        IMK_SLCRESAMPLE_MAX_TAPS, "samples",
        "Samples along each axis that one is made of: an even number. With "
        "bandwidth 0.85 the error is 31 dB below the signal for 8, 50 dB for "
        "16"),
    GST_IMAGING_DOUBLE ("bandwidth", NEXT_SET, KERNEL, Settings, bandwidth, 0.1,
        1, NULL,
        "Part of the sampling rate that the signal fills, along each axis: "
        "the weights are best for a flat spectrum of this width"),
    GST_IMAGING_ENUM ("doppler", NEXT_SET, KERNEL, Settings, doppler,
        "GstSlcResampleDoppler", doppler_values,
        "Where the centre of the spectrum in azimuth is known from: caps: "
        "their doppler (fd1 / PRF of a PRM file); data: the phase between "
        "the first 64 lines that are used; auto: caps that have one, or data"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  s->taps = DEFAULT_PROP_TAPS;
  s->bandwidth = DEFAULT_PROP_BANDWIDTH;
  s->doppler = DEFAULT_PROP_DOPPLER;
}

/* The same image again, after a flush. */
static ImkStatus
apply_settings (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  return gst_imaging_engine_renew (GST_SLC_RESAMPLE (element)->engine, error);
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .timeless = TRUE,
    .replan = KERNEL,
    .has_engine = TRUE,
    .init = init_settings,
    .apply = apply_settings,
};

/* --- the kernel -------------------------------------------------------------
 */

/* The file and the properties add up: what is fitted, and what else is known.
 */
static void
add_geometry (const Settings *s, ImkSlcresampleConfig *c)
{
  const GstInsarPrmAlignment none = {{0}};
  const GstInsarPrmAlignment *fit = gst_imaging_setting_file_data (s->fit);

  fit = fit ? fit : &none;
  for (guint i = 0; i < IMK_SLCRESAMPLE_N_AXES; i++) {
    const gdouble *more = s->geometry + 3 * i;

    c->shift[i] = fit->shift[i] + more[0];
    c->stretch[i] = fit->stretch[i] + more[1];
    c->a_stretch[i] = fit->a_stretch[i] + more[2];
  }
}

/* Properties before the reference before the image itself. */
static GstInsarSlcInfo
make_size (const Settings *s, const GstInsarSlcInfo *in)
{
  const GstInsarPrm *prm = gst_imaging_setting_file_data (s->reference);
  GstInsarSlcInfo out = *in;

  if (prm) {
    out.width = prm->width;
    out.height = prm->height;
    out.prf = prm->prf;
  }
  if (s->width)
    out.width = s->width;
  if (s->height)
    out.height = s->height;
  out.rshift = out.ashift = 0;
  out.line_size = (gsize) out.width * imk_type_size (out.type);
  return out;
}

static ImkSlcresampleConfig
make_config (GstSlcResample *self, const GstInsarSlcInfo *out)
{
  const Settings *s = gst_imaging_settings_now (self->settings);
  const GstInsarSlcInfo *in = &self->in;
  ImkSlcresampleConfig c;

  imk_slcresample_config_init (&c);
  add_geometry (s, &c);
  c.type = in->type;
  c.width = in->width;
  c.height = in->height;
  c.out_width = out->width;
  c.out_height = out->height;
  c.taps = s->taps;
  c.bandwidth = s->bandwidth;
  c.doppler = in->doppler;
  c.estimate_doppler = s->doppler == DOPPLER_DATA ||
                       (s->doppler == DOPPLER_AUTO && !in->has_doppler);
  c.n_threads = gst_imaging_engine_n_threads (self->engine);
  return c;
}

static void
close_kernel (GstElement *element)
{
  g_clear_pointer (&GST_SLC_RESAMPLE (element)->kernel, imk_slcresample_free);
}

/* What is open stays until there is another. */
static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (element);
  GstInsarSlcInfo out =
      make_size (gst_imaging_settings_now (self->settings), &self->in);
  ImkSlcresampleConfig c = make_config (self, &out);
  ImkSlcresample *kernel;
  ImkStatus status = imk_slcresample_new (backend, &c, &kernel, error);

  if (status != IMK_OK)
    return status;
  close_kernel (element);
  self->kernel = kernel;
  self->config = c;
  self->out = out;
  return IMK_OK;
}

/* --- output
 * ------------------------------------------------------------------- */

static void
drop_pool (GstSlcResample *self)
{
  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  gst_clear_object (&self->pool);
}

/* Memory of this size fresh from the system costs more than writing it. */
static gboolean
make_pool (GstSlcResample *self, GstCaps *caps)
{
  GstStructure *config;

  drop_pool (self);
  self->lines_per_buffer =
      (guint) CLAMP (BUFFER_SIZE / self->out.line_size, 1, self->out.height);
  self->pool = gst_buffer_pool_new ();
  config = gst_buffer_pool_get_config (self->pool);
  gst_buffer_pool_config_set_params (config, caps,
      (guint) (self->lines_per_buffer * self->out.line_size), 0, 0);
  return gst_buffer_pool_set_config (self->pool, config) &&
         gst_buffer_pool_set_active (self->pool, TRUE);
}

static gboolean
is_complete (GstSlcResample *self)
{
  return !self->kernel ||
         imk_slcresample_pushed (self->kernel) == self->in.height ||
         imk_slcresample_line (self->kernel) == self->out.height;
}

/* Returns: FALSE after an error, when lines that are wanted are missing */
static gboolean
check_complete (GstSlcResample *self)
{
  if (is_complete (self))
    return TRUE;
  gst_insar_slc_post_end (GST_ELEMENT (self), "image", &self->in,
      imk_slcresample_pushed (self->kernel));
  return FALSE;
}

/* Returns: whether an image has begun that has not ended */
static gboolean
is_in_the_middle (GstSlcResample *self)
{
  return !is_complete (self) && imk_slcresample_pushed (self->kernel) > 0;
}

/* A fit of another pair, say. */
static void
warn_of_little (GstSlcResample *self)
{
  gdouble covered = imk_slcresample_covered (&self->config);

  if (covered < LITTLE)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("%.0f %% of the output, %u x %u, lie inside the input, %u x %u, "
         "with shifts of %g columns and %g lines; the rest is 0. Is "
         "the fit that of this pair?",
            100 * covered, self->config.out_width, self->config.out_height,
            self->config.width, self->config.height, self->config.shift[0],
            self->config.shift[1]),
        (NULL));
}

/* Another image's fd1, or one in other units, costs coherence. Whole cycles are
 * not seen in samples. */
static void
warn_of_doppler (GstSlcResample *self)
{
  gdouble measured, off;

  if (self->config.estimate_doppler ||
      !imk_slcresample_measure_doppler (self->kernel, &measured))
    return;
  off = self->config.doppler - measured;
  if (fabs (off - rint (off)) > MAX_DOPPLER_ERROR)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("The Doppler centroid is %.2f cycles a line by the caps (fd1 / PRF of a "
         "PRM file) and %.2f by the first lines of the image. A wrong one costs "
         "coherence: correct fd1, or take doppler=data.",
            self->config.doppler, measured),
        (NULL));
}

/* Output caps and buffers for what the kernel makes. */
static gboolean
begin_output (GstSlcResample *self)
{
  GstCaps *out = gst_insar_slc_info_to_caps (&self->out);
  gboolean ok;

  warn_of_little (self);
  self->n_reported = 0;
  ok = make_pool (self, out) &&
       gst_pad_push_event (self->srcpad, gst_event_new_caps (out));
  gst_caps_unref (out);
  return ok;
}

/* After a flush, settings made meanwhile apply to the repeated image. */
static void
begin_again (GstSlcResample *self)
{
  const ImkSlcresample *before = self->kernel;

  if (gst_imaging_settings_take (
          self->settings, GST_IMAGING_WHEN_NEXT_SET, GST_CLOCK_TIME_NONE) &&
      self->kernel != before)
    begin_output (self);
}

static gboolean
set_caps (GstSlcResample *self, GstCaps *caps)
{
  gboolean ok;

  if (is_in_the_middle (self)) {
    GstCaps *before = gst_pad_get_current_caps (self->sinkpad);

    ok = gst_caps_is_equal (before, caps); /* sent again */
    gst_caps_unref (before);
    return ok || check_complete (self);
  }
  if (self->refused && gst_caps_is_equal (self->refused, caps))
    return FALSE; /* sent again with each buffer */
  gst_insar_slc_info_from_caps (&self->in, caps);
  if (gst_imaging_engine_set_caps (self->engine, caps, NULL))
    return begin_output (self);
  gst_caps_replace (&self->refused, caps);
  return FALSE;
}

/* Once, and never before caps, which are missing when an image was refused. */
static void
send_segment (GstSlcResample *self)
{
  GstSegment segment;
  GstEvent *event;

  if (self->segment_sent || !gst_pad_has_current_caps (self->srcpad))
    return;
  gst_segment_init (&segment, GST_FORMAT_DEFAULT);
  segment.duration = self->out.height;
  event = gst_event_new_segment (&segment);
  if (self->seqnum != GST_SEQNUM_INVALID)
    gst_event_set_seqnum (event, self->seqnum);
  gst_pad_push_event (self->srcpad, event);
  self->segment_sent = self->is_discont = TRUE;
}

/* No GST_MESSAGE_PROGRESS: gst-launch-1.0 does not play until it is complete.
 */
static void
report (GstSlcResample *self)
{
  guint line = imk_slcresample_line (self->kernel);
  guint done = (guint) ((guint64) line * N_REPORTS / self->out.height);

  if (done <= self->n_reported)
    return;
  self->n_reported = done;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("slcresample-progress", "lines", G_TYPE_UINT, line,
              "of", G_TYPE_UINT, self->out.height, "doppler", G_TYPE_DOUBLE,
              imk_slcresample_doppler (self->kernel), NULL)));
}

/* Makes @n lines into a buffer of their own. */
static GstFlowReturn
push_lines (GstSlcResample *self, guint n)
{
  GstClockTime entered = gst_util_get_timestamp ();
  guint line = imk_slcresample_line (self->kernel);
  GstBuffer *buffer = NULL;
  GstFlowReturn flow;
  ImkStatus status;
  GstMapInfo map;
  ImkImage image;
  ImkError error;

  flow = gst_buffer_pool_acquire_buffer (self->pool, &buffer, NULL);
  if (flow != GST_FLOW_OK)
    return flow;
  gst_buffer_set_size (buffer, (gssize) (n * self->out.line_size));
  gst_buffer_map (buffer, &map, GST_MAP_WRITE); /* is of our own */
  image = (ImkImage){
      .data = map.data,
      .stride = self->out.line_size,
      .width = self->out.width,
      .height = n,
      .channels = 1,
      .type = self->out.type,
  };
  if (line == 0)
    warn_of_doppler (self);
  status = imk_slcresample_process (self->kernel, &image, &error);
  gst_buffer_unmap (buffer, &map);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  gst_imaging_metadata_copy (buffer, self->lines, FALSE);
  GST_BUFFER_OFFSET (buffer) = line;
  GST_BUFFER_OFFSET_END (buffer) = line + n;
  gst_imaging_engine_count_frame (self->engine, entered);
  send_segment (self);
  if (self->is_discont)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  self->is_discont = FALSE;
  report (self);
  return gst_pad_push (self->srcpad, buffer);
}

/* Whole buffers, and what is left when nothing more fits the band. */
static GstFlowReturn
push_ready (GstSlcResample *self)
{
  GstFlowReturn flow = GST_FLOW_OK;

  while (flow == GST_FLOW_OK) {
    guint n = imk_slcresample_ready (self->kernel, self->lines_per_buffer);
    guint left = self->out.height - imk_slcresample_line (self->kernel);

    if (n == 0 || (n < MIN (self->lines_per_buffer, left) &&
                      imk_slcresample_room (self->kernel) > 0))
      break;
    flow = push_lines (self, n);
  }
  return flow;
}

/* --- input
 * -------------------------------------------------------------------- */

static GstFlowReturn
take_lines (GstSlcResample *self, ImkImage lines)
{
  GstFlowReturn flow = GST_FLOW_OK;
  ImkError error;

  while (flow == GST_FLOW_OK && lines.height > 0) {
    guint room = imk_slcresample_room (self->kernel);
    ImkImage part = lines;
    ImkStatus status;

    part.height = MIN (room, lines.height);
    status = imk_slcresample_push (self->kernel, &part, &error);
    if (status != IMK_OK) {
      gst_imaging_engine_post_error (self->engine, status, &error);
      return GST_FLOW_ERROR;
    }
    lines.data = (guint8 *) lines.data + part.height * lines.stride;
    lines.height -= part.height;
    flow = push_ready (self);
  }
  if (flow == GST_FLOW_OK &&
      imk_slcresample_line (self->kernel) == self->out.height)
    flow = GST_FLOW_EOS; /* the rest of the image is not wanted */
  return flow;
}

static GstFlowReturn
gst_slc_resample_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (parent);
  GstFlowReturn flow = GST_FLOW_ERROR;
  GstMapInfo map;

  if (!gst_insar_slc_map_lines (
          self->engine, GST_ELEMENT (self), pad, buffer, &map)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  if (gst_insar_slc_check_lines (GST_ELEMENT (self), pad,
          self->kernel ? &self->in : NULL, map.size, GST_BUFFER_OFFSET (buffer),
          self->kernel ? imk_slcresample_pushed (self->kernel) : 0)) {
    self->lines = buffer;
    flow =
        take_lines (self, gst_insar_slc_lines (&self->in, map.data, map.size));
    self->lines = NULL;
  }
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return flow;
}

static gboolean
gst_slc_resample_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (parent);
  GstCaps *caps;
  gboolean ok;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    gst_event_unref (event);
    return ok;
  case GST_EVENT_SEGMENT: /* the output has a segment of its own */
    self->seqnum = gst_event_get_seqnum (event);
    self->segment_sent = FALSE;
    gst_event_unref (event);
    return TRUE;
  case GST_EVENT_FLUSH_STOP:
    if (self->kernel)
      imk_slcresample_rewind (self->kernel);
    self->segment_sent = FALSE;
    self->n_reported = 0;
    ok = gst_pad_event_default (pad, parent, event);
    begin_again (self);
    return ok;
  case GST_EVENT_EOS:
    check_complete (self);
    send_segment (self);
    break;
  case GST_EVENT_GAP: /* must follow the segment, which follows the caps */
    if (!gst_pad_has_current_caps (self->srcpad)) {
      gst_event_unref (event);
      return TRUE;
    }
    send_segment (self);
    break;
  default:
    break;
  }
  return gst_pad_event_default (pad, parent, event);
}

/* Output lines differ from input lines, and start with the first. */
static gboolean
gst_slc_resample_src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) != GST_EVENT_SEEK ||
      gst_insar_slc_is_rewind (event))
    return gst_pad_event_default (pad, parent, event);
  gst_event_unref (event);
  return FALSE;
}

static gboolean
gst_slc_resample_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (parent);
  GstPadTemplate *template = gst_pad_get_pad_template (pad);
  GstCaps *filter, *caps, *found;

  if (gst_imaging_engine_query (self->engine, query)) {
    gst_object_unref (template);
    return TRUE;
  }
  if (GST_QUERY_TYPE (query) == GST_QUERY_CAPS) { /* sizes change */
    gst_query_parse_caps (query, &filter);
    caps = gst_pad_template_get_caps (template);
    found = filter ? gst_caps_intersect_full (
                         filter, caps, GST_CAPS_INTERSECT_FIRST)
                   : gst_caps_ref (caps);
    gst_query_set_caps_result (query, found);
    gst_caps_unref (found);
    gst_caps_unref (caps);
    gst_object_unref (template);
    return TRUE;
  }
  gst_object_unref (template);
  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION)
    return FALSE; /* lines are copied into the band, so any memory will do */
  return gst_pad_query_default (pad, parent, query);
}

/* --- states
 * --------------------------------------------------------------------- */

static GstStateChangeReturn
gst_slc_resample_change_state (GstElement *element, GstStateChange transition)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED &&
      !gst_imaging_engine_start (self->engine))
    return GST_STATE_CHANGE_FAILURE;
  result = GST_ELEMENT_CLASS (gst_slc_resample_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED &&
          result == GST_STATE_CHANGE_FAILURE)) {
    gst_imaging_engine_stop (self->engine);
    gst_clear_caps (&self->refused);
    drop_pool (self);
    self->segment_sent = FALSE;
  }
  return result;
}

static void
gst_slc_resample_set_context (GstElement *element, GstContext *context)
{
  gst_imaging_engine_set_context (GST_SLC_RESAMPLE (element)->engine, context);
  GST_ELEMENT_CLASS (gst_slc_resample_parent_class)
      ->set_context (element, context);
}

/* --- the object
 * ------------------------------------------------------------------- */

static void
gst_slc_resample_finalize (GObject *object)
{
  GstSlcResample *self = GST_SLC_RESAMPLE (object);

  gst_imaging_engine_free (self->engine);
  G_OBJECT_CLASS (gst_slc_resample_parent_class)->finalize (object);
}

static void
gst_slc_resample_class_init (GstSlcResampleClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_slc_resample_finalize;
  element_class->change_state = gst_slc_resample_change_state;
  element_class->set_context = gst_slc_resample_set_context;

  gst_imaging_settings_install (object_class, &table);

  gst_element_class_set_static_metadata (element_class, "SAR image resampler",
      "Filter/Converter",
      "Brings a SAR image into the geometry of its reference",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
}

static void
gst_slc_resample_init (GstSlcResample *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
  };

  self->engine = gst_imaging_engine_new (GST_ELEMENT (self), &funcs);
  self->settings =
      gst_imaging_settings_new (GST_ELEMENT (self), &table, self->engine);

  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, gst_slc_resample_chain);
  gst_pad_set_event_function (self->sinkpad, gst_slc_resample_sink_event);
  gst_pad_set_query_function (self->sinkpad, gst_slc_resample_query);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);

  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_use_fixed_caps (self->srcpad);
  gst_pad_set_event_function (self->srcpad, gst_slc_resample_src_event);
  gst_pad_set_query_function (self->srcpad, gst_slc_resample_query);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
}
