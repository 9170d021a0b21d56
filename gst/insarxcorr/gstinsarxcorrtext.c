/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorrtext.h"

#include <string.h>

#include "insarxcorr/insarxcorr-misfit.h"

#include "files/gstimagingfile.h"

/* Pixels: images that are coherent at all are within a fraction of one. */
#define MAX_RMS 0.5

/* Of the image: beyond its points a fit is extrapolated. */
#define MIN_SPAN 0.5

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

static GstStructure *
describe_fit (const ImkInsarxcorrFit *fit, const ImkInsarxcorrMisfit misfits[2],
    const GstInsarFitOrigin *origin)
{
  const ImkInsarxcorrTrend *r = &fit->range, *a = &fit->azimuth;

  return gst_structure_new ("insarxcorr-fit", "n-points", G_TYPE_UINT64,
      (guint64) fit->n_points, "shift-r", G_TYPE_DOUBLE, r->shift, "stretch-r",
      G_TYPE_DOUBLE, r->stretch, "a-stretch-r", G_TYPE_DOUBLE, r->a_stretch,
      "rms-r", G_TYPE_DOUBLE, r->rms, "shift-a", G_TYPE_DOUBLE, a->shift,
      "stretch-a", G_TYPE_DOUBLE, a->stretch, "a-stretch-a", G_TYPE_DOUBLE,
      a->a_stretch, "rms-a", G_TYPE_DOUBLE, a->rms, "misfit-r", G_TYPE_DOUBLE,
      misfits[0].rms, "misfit-a", G_TYPE_DOUBLE, misfits[1].rms,
      "min-correlation", G_TYPE_DOUBLE, origin->min_correlation, "x-least",
      G_TYPE_DOUBLE, fit->x_least, "x-most", G_TYPE_DOUBLE, fit->x_most,
      "y-least", G_TYPE_DOUBLE, fit->y_least, "y-most", G_TYPE_DOUBLE,
      fit->y_most, NULL);
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

static void
warn_of_misfit (GstElement *element, const ImkInsarxcorrMisfit *misfit,
    const gchar *axis, const gchar *unit)
{
  if (misfit->is_local || misfit->is_wide)
    GST_ELEMENT_WARNING (element, STREAM, FAILED,
        ("The fit in %s leaves residuals that are alike beside each other: "
         "%.2f %s around column %.0f of line %.0f, %.2f rms in all. The "
         "interferogram loses coherence there. Causes are terrain and motion, "
         "which shift, stretch and a_stretch cannot follow, and patches that "
         "overlap by most of their size.",
            axis, misfit->worst, unit, misfit->worst_x, misfit->worst_y,
            misfit->rms),
        (NULL));
}

static void
warn_of_span (
    GstElement *element, const ImkInsarxcorrFit *fit, guint width, guint height)
{
  if (fit->x_most - fit->x_least < MIN_SPAN * width ||
      fit->y_most - fit->y_least < MIN_SPAN * height)
    GST_ELEMENT_WARNING (element, STREAM, FAILED,
        ("The patches of the fit span less than half of the image: columns "
         "%.0f to %.0f of %u, lines %.0f to %.0f of %u. Elsewhere the fit is "
         "extrapolated, with larger errors. Take grid=step, a smaller search or "
         "a smaller template.",
            fit->x_least, fit->x_most, width, fit->y_least, fit->y_most,
            height),
        (NULL));
}

void
gst_insar_text_post_fit (GstElement *element, const GArray *points,
    const ImkInsarxcorrFit *fit, const GstInsarFitOrigin *origin)
{
  ImkInsarxcorrMisfit misfits[2] = {{0}};

  imk_insarxcorr_misfit ((const ImkInsarxcorrPoint *) points->data, points->len,
      fit, &misfits[0], &misfits[1], NULL);
  gst_element_post_message (
      element, gst_message_new_element (
                   GST_OBJECT (element), describe_fit (fit, misfits, origin)));
  if (!origin->is_wanted)
    return;
  warn_of_span (element, fit, origin->width, origin->height);
  warn_of_scatter (element, fit);
  warn_of_misfit (element, &misfits[0], "range", "columns");
  warn_of_misfit (element, &misfits[1], "azimuth", "lines");
}
