/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorrtext.h"

#include <string.h>

#include "imk/insarxcorr-misfit.h"
#include "imk/insarxcorr-reach.h"

#include "files/gstimagingfile.h"
#include "gstimagingorigin.h"

/* Pixels: images that are coherent at all are within a fraction of one. */
#define MAX_RMS 0.5

/* Of the image: beyond its points a fit is extrapolated. */
#define MIN_SPAN 0.5

/* The same of a strip of points, which may be a diagonal one. Points all over
 * an image have 0.6 and more, those in a diagonal half of it about 0.4. */
#define MIN_NARROWEST 0.35

/* Pixels, the expected error of a fit at the corners of the image. */
#define MAX_CORNER 0.05

/* What is measured of a fit for message and warnings. */
typedef struct {
  ImkInsarxcorrMisfit misfits[2];
  ImkInsarxcorrReach reach;
} Quality;

/* "%6.3f" with a dot in every locale. */
static void
append_number (GString *text, const gchar *format, gdouble value)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE + 320]; /* %f of the largest double */

  g_string_append_c (text, ' ');
  g_string_append (
      text, g_ascii_formatd (digits, sizeof (digits), format, value));
}

void
gst_insar_text_append_row (GString *text, gdouble x, gdouble dx, gdouble y,
    gdouble dy, gdouble correlation)
{
  g_string_append_printf (text, " %d", (gint) x);
  append_number (text, "%6.3f", dx);
  g_string_append_printf (text, " %d", (gint) y);
  append_number (text, "%6.3f", dy);
  append_number (text, "%6.2f", correlation);
  g_string_append (text, " \n");
}

/* Returns: whether @line has five numbers and nothing else */
static gboolean
parse_row (const gchar *line, gdouble numbers[5])
{
  for (guint i = 0; i < 5; i++) {
    gchar *end;

    numbers[i] = g_ascii_strtod (line, &end);
    if (end == line || (*end && !g_ascii_isspace (*end)))
      return FALSE;
    line = end;
  }
  return line[strspn (line, " \t\r")] == '\0';
}

/* A file system that broke down leaves zeros, and text would end there. */
static gboolean
check_text (const gchar *text, gsize size, ImkError *error)
{
  const gchar *zero = memchr (text, '\0', size);
  guint line = 1;

  if (!zero)
    return TRUE;
  for (; text < zero; text++)
    line += *text == '\n';
  imk_error_set (error, IMK_ERROR_IMAGE,
      "Line %u of the offsets has a zero byte; expected is text, five numbers "
      "a line.",
      line);
  return FALSE;
}

GArray *
gst_insar_text_parse_rows (
    const gchar *text, gsize size, gdouble snr, ImkError *error)
{
  GArray *points;
  g_auto (GStrv) lines = NULL;

  if (!check_text (text, size, error))
    return NULL;
  points = g_array_new (FALSE, FALSE, sizeof (ImkInsarxcorrPoint));
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i]; i++) {
    ImkInsarxcorrPoint point;
    gdouble numbers[5];

    if (lines[i][strspn (lines[i], " \t\r")] == '\0')
      continue;
    if (!parse_row (lines[i], numbers)) {
      g_autofree gchar *shown = gst_imaging_file_quote (lines[i], -1);

      imk_error_set (error, IMK_ERROR_IMAGE,
          "Line %u of the offsets is \"%s\"; expected are five numbers: "
          "x, offset in x, y, offset in y, correlation.",
          i + 1, shown);
      g_array_unref (points);
      return NULL;
    }
    point = (ImkInsarxcorrPoint){
        .x = numbers[0], .dx = numbers[1], .y = numbers[2], .dy = numbers[3]};
    if (numbers[4] > snr) /* not so NaN */
      g_array_append_val (points, point);
  }
  return points;
}

GstBuffer *
gst_insar_text_of_fit (const ImkInsarxcorrFit *fit)
{
  gchar *text = g_malloc (IMK_INSARXCORR_FIT_TEXT_SIZE);
  gsize size = imk_insarxcorr_fit_print (fit, text);

  return gst_buffer_new_wrapped (text, size);
}

/* --- a fit --------------------------------------------------------------- */

GstInsarFitOrigin
gst_insar_text_origin (const ImkInsarxcorrConfig *c)
{
  gdouble image = (gdouble) c->width[0] * c->height[0];
  gdouble area = c->mode == IMK_INSARXCORR_PRECISE
                     ? (gdouble) c->window_width * c->window_height
                     : 4.0 * c->xsearch * c->ysearch / c->range_interp;

  return (GstInsarFitOrigin){
      .width = c->width[0],
      .height = c->height[0],
      .overlap = MAX (1, area * c->nx * c->ny / image),
      .steps = c->grid == IMK_INSARXCORR_GRID_STEP,
      .min_correlation = c->min_correlation,
  };
}

static void
measure_quality (const GArray *points, const ImkInsarxcorrFit *fit,
    const GstInsarFitOrigin *origin, Quality *q)
{
  const ImkInsarxcorrPoint *data = (const ImkInsarxcorrPoint *) points->data;
  const ImkInsarxcorrArea image = {
      0, origin->width, 0, origin->height, origin->overlap};

  *q = (Quality){0};
  imk_insarxcorr_misfit (
      data, points->len, fit, &q->misfits[0], &q->misfits[1], NULL);
  imk_insarxcorr_reach (
      data, points->len, fit, origin->width ? &image : NULL, &q->reach, NULL);
}

static GstStructure *
describe_fit (const ImkInsarxcorrFit *fit, const Quality *q,
    const GstInsarFitOrigin *origin)
{
  const ImkInsarxcorrTrend *r = &fit->range, *a = &fit->azimuth;

  return gst_structure_new ("insarxcorr-fit", "n-points", G_TYPE_UINT64,
      (guint64) fit->n_points, "shift-r", G_TYPE_DOUBLE, r->shift, "stretch-r",
      G_TYPE_DOUBLE, r->stretch, "a-stretch-r", G_TYPE_DOUBLE, r->a_stretch,
      "rms-r", G_TYPE_DOUBLE, r->rms, "shift-a", G_TYPE_DOUBLE, a->shift,
      "stretch-a", G_TYPE_DOUBLE, a->stretch, "a-stretch-a", G_TYPE_DOUBLE,
      a->a_stretch, "rms-a", G_TYPE_DOUBLE, a->rms, "misfit-r", G_TYPE_DOUBLE,
      q->misfits[0].rms, "misfit-a", G_TYPE_DOUBLE, q->misfits[1].rms,
      "corner-r", G_TYPE_DOUBLE, r->rms * q->reach.leverage, "corner-a",
      G_TYPE_DOUBLE, a->rms * q->reach.leverage, "span", G_TYPE_DOUBLE,
      q->reach.span, "gain", G_TYPE_DOUBLE, q->reach.gain, "min-correlation",
      G_TYPE_DOUBLE, origin->min_correlation, "x-least", G_TYPE_DOUBLE,
      fit->x_least, "x-most", G_TYPE_DOUBLE, fit->x_most, "y-least",
      G_TYPE_DOUBLE, fit->y_least, "y-most", G_TYPE_DOUBLE, fit->y_most, NULL);
}

static void
warn_of_scatter (GstElement *element, const ImkInsarxcorrFit *fit)
{
  if (MAX (fit->range.rms, fit->azimuth.rms) > MAX_RMS)
    GST_ELEMENT_WARNING (element, STREAM, FAILED,
        ("The offsets do not agree: %" G_GUINT64_FORMAT
         " of them lie %.1f columns and %.1f lines (rms) from their fit, and "
         "those of one scene within a part of one. Are these images of one "
         "scene? A larger search, or rshift and ashift, may help.",
            (guint64) fit->n_points, fit->range.rms, fit->azimuth.rms),
        (NULL));
}

/* Returns: whether there was a warning */
static gboolean
warn_of_misfit (GstElement *element, const ImkInsarxcorrMisfit *misfit,
    const gchar *axis, const gchar *unit)
{
  if (!misfit->is_local && !misfit->is_wide)
    return FALSE;
  GST_ELEMENT_WARNING (element, STREAM, FAILED,
      ("The fit in %s leaves residuals that are alike beside each other: "
       "%.2f %s around column %.0f of line %.0f, %.2f rms in all. The "
       "interferogram loses coherence there. Causes are terrain and motion, "
       "which shift, stretch and a_stretch cannot follow, and patches that "
       "overlap by most of their size.",
          axis, misfit->worst, unit, misfit->worst_x, misfit->worst_y,
          misfit->rms),
      (NULL));
  return TRUE;
}

static void
warn_of_curve (GstElement *element, const ImkInsarxcorrCurve *curve,
    const gchar *axis, const gchar *unit)
{
  if (curve->is_curved)
    GST_ELEMENT_WARNING (element, STREAM, FAILED,
        ("The offsets in %s lie on a curve, not on the plane that is fitted: a "
         "quadratic field through the residuals has %.2f %s (rms) at the patches "
         "and up to %.2f in the image. shift, stretch and a_stretch cannot "
         "follow it.",
            axis, curve->rms, unit, curve->largest),
        (NULL));
}

/* Returns: what helps when the points span little of the image */
static const gchar *
advise_on_span (const GstInsarFitOrigin *origin)
{
  if (origin->grid_width >= MIN_SPAN * origin->width &&
      origin->grid_height >= MIN_SPAN * origin->height)
    return "The other patches have no data, or a correlation that is not above "
           "the threshold. If the coherence is low there, larger templates help.";
  return origin->steps
             ? "Take a smaller search or a smaller template."
             : "Take grid=step, a smaller search or a smaller template.";
}

/* Of insarxcorr alone, which knows the size of the image.
 * Returns: whether there was a warning */
static gboolean
warn_of_span (GstElement *element, const ImkInsarxcorrFit *fit,
    const ImkInsarxcorrReach *reach, const GstInsarFitOrigin *origin)
{
  if (fit->x_most - fit->x_least >= MIN_SPAN * origin->width &&
      fit->y_most - fit->y_least >= MIN_SPAN * origin->height)
    return FALSE;
  GST_ELEMENT_WARNING (element, STREAM, FAILED,
      ("The patches of the fit span less than half of the image: columns "
       "%.0f to %.0f of %u, lines %.0f to %.0f of %u. Elsewhere the fit is "
       "extrapolated, and at the corners of the image its error is %.0f times "
       "that in the middle of the patches. %s",
          fit->x_least, fit->x_most, origin->width, fit->y_least, fit->y_most,
          origin->height, reach->gain, advise_on_span (origin)),
      (NULL));
  return TRUE;
}

/* Returns: whether there was a warning */
static gboolean
warn_of_strip (GstElement *element, const ImkInsarxcorrFit *fit,
    const ImkInsarxcorrReach *reach, const GstInsarFitOrigin *origin)
{
  const gchar *whole = origin->width ? "image" : "rectangle around them";

  if (reach->span >= MIN_NARROWEST)
    return FALSE;
  GST_ELEMENT_WARNING (element, STREAM, FAILED,
      ("The %" G_GUINT64_FORMAT
       " patches of the fit lie in a strip or an island: in its narrowest "
       "direction it is %.0f %% of the %s. Beyond it the fit is extrapolated, and at the corners "
       "of the %s its error is %.0f times that in the middle of the patches; the "
       "rms does not show it. Larger templates find more patches where the "
       "coherence is low.",
          (guint64) fit->n_points, 100 * reach->span, whole, whole,
          reach->gain),
      (NULL));
  return TRUE;
}

static void
warn_of_corners (GstElement *element, const ImkInsarxcorrFit *fit,
    const ImkInsarxcorrReach *reach, const GstInsarFitOrigin *origin)
{
  gdouble range = fit->range.rms * reach->leverage;
  gdouble azimuth = fit->azimuth.rms * reach->leverage;

  /* offsets that do not agree have a warning of their own */
  if (MAX (range, azimuth) > MAX_CORNER &&
      MAX (fit->range.rms, fit->azimuth.rms) <= MAX_RMS)
    GST_ELEMENT_WARNING (element, STREAM, FAILED,
        ("The fit of %" G_GUINT64_FORMAT
         " patches, with an rms of %.3f columns and %.3f lines, has errors of "
         "about %.2f columns and %.2f lines at the corners of the %s. Larger "
         "templates find more patches where the coherence is low.",
            (guint64) fit->n_points, fit->range.rms, fit->azimuth.rms, range,
            azimuth, origin->width ? "image" : "rectangle around them"),
        (NULL));
}

void
gst_insar_text_post_fit (GstElement *element, const GArray *points,
    const ImkInsarxcorrFit *fit, const GstInsarFitOrigin *origin)
{
  gboolean reaches, is_plane;
  GstStructure *message;
  Quality q;

  measure_quality (points, fit, origin, &q);
  message = describe_fit (fit, &q, origin);
  gst_imaging_origin_set_of (message, element);
  gst_element_post_message (
      element, gst_message_new_element (GST_OBJECT (element), message));
  if (!origin->is_wanted)
    return;
  reaches = !warn_of_span (element, fit, &q.reach, origin) &&
            !warn_of_strip (element, fit, &q.reach, origin);
  warn_of_scatter (element, fit);
  is_plane = !warn_of_misfit (element, &q.misfits[0], "range", "columns");
  is_plane &= !warn_of_misfit (element, &q.misfits[1], "azimuth", "lines");
  if (!reaches || !is_plane)
    return;
  warn_of_corners (element, fit, &q.reach, origin);
  warn_of_curve (element, &q.reach.range, "range", "columns");
  warn_of_curve (element, &q.reach.azimuth, "azimuth", "lines");
}
