/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PBM, PGM, PPM (text and binary), PAM and PFM: netpbm.sourceforge.net/doc */
#include "pnm.h"

#include <math.h>
#include <string.h>

gboolean
gst_imaging_pnm_fail (GstImagingPnm *self, const gchar *what, GError **error)
{
  return gst_imaging_format_fail (self->file, error,
      GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
      "is no valid PNM file: at byte %" G_GSIZE_FORMAT " expected is %s.",
      self->at, what);
}

/* Comments go from # to the end of the line. */
static void
skip_space (GstImagingPnm *self)
{
  while (self->at < self->size && (g_ascii_isspace (self->text[self->at]) ||
                                      self->text[self->at] == '#'))
    if (self->text[self->at] == '#')
      self->at += strcspn (self->text + self->at, "\r\n");
    else
      self->at++;
}

static gboolean
scan_number (GstImagingPnm *self, guint64 least, guint64 most, guint64 *value,
    GError **error)
{
  guint64 n = 0;
  gsize first;

  skip_space (self);
  for (first = self->at;
       self->at < self->size && g_ascii_isdigit (self->text[self->at]);
       self->at++) {
    n = 10 * n + (guint64) (self->text[self->at] - '0');
    if (n > most)
      break;
  }
  if (self->at == first || n < least || n > most) {
    g_autofree gchar *what = g_strdup_printf ("a number from %" G_GUINT64_FORMAT
                                              " to %" G_GUINT64_FORMAT,
        least, most);

    return gst_imaging_pnm_fail (self, what, error);
  }
  *value = n;
  return TRUE;
}

static gboolean
scan_sides (GstImagingPnm *self, GError **error)
{
  return scan_number (self, 1, G_MAXINT32, &self->width, error) &&
         scan_number (self, 1, G_MAXINT32, &self->height, error);
}

/* The lines of a PAM */
static gboolean
scan_pam (GstImagingPnm *self, GError **error)
{
  static const gchar *const keys[] = {"WIDTH", "HEIGHT", "DEPTH", "MAXVAL"};
  guint64 *const values[] = {
      &self->width, &self->height, &self->channels, &self->maximum};
  const guint64 limits[] = {G_MAXINT32, G_MAXINT32, G_MAXUINT16, 65535};

  for (;;) {
    gsize n;
    guint i;

    skip_space (self);
    n = strcspn (self->text + self->at, " \t\r\n");
    if (n == 6 && strncmp (self->text + self->at, "ENDHDR", n) == 0) {
      self->at += n;
      break;
    }
    for (i = 0; i < G_N_ELEMENTS (keys); i++)
      if (n == strlen (keys[i]) &&
          strncmp (self->text + self->at, keys[i], n) == 0)
        break;
    if (i < G_N_ELEMENTS (keys)) {
      self->at += n;
      if (!scan_number (self, 1, limits[i], values[i], error))
        return FALSE;
    } else if (n == 8 && strncmp (self->text + self->at, "TUPLTYPE", n) == 0) {
      self->at += strcspn (self->text + self->at, "\r\n");
    } else {
      return gst_imaging_pnm_fail (
          self, "WIDTH, HEIGHT, DEPTH, MAXVAL or ENDHDR", error);
    }
  }
  if (!self->width || !self->height || !self->channels || !self->maximum)
    return gst_imaging_pnm_fail (
        self, "each of WIDTH, HEIGHT, DEPTH and MAXVAL before", error);
  return TRUE;
}

/* The sign of the scale is the byte order. */
static gboolean
scan_pfm (GstImagingPnm *self, GError **error)
{
  gdouble scale;
  gchar *end;

  if (!scan_sides (self, error))
    return FALSE;
  skip_space (self);
  scale = g_ascii_strtod (self->text + self->at, &end);
  if (end == self->text + self->at || scale == 0 || !isfinite (scale))
    return gst_imaging_pnm_fail (self, "a scale that is not 0", error);
  self->at = (gsize) (end - self->text);
  self->swapped = (scale > 0) != (G_BYTE_ORDER == G_BIG_ENDIAN);
  self->channels = self->kind == 'F' ? 3 : 1;
  self->type = GST_IMAGING_ND_ARRAY_TYPE_F32;
  return TRUE;
}

gboolean
gst_imaging_pnm_scan_header (GstImagingPnm *self, GError **error)
{
  gboolean ok;

  self->kind = self->text[1];
  self->at = 2;
  if (self->kind == 'F' || self->kind == 'f')
    return scan_pfm (self, error);
  if (self->kind == '7')
    ok = scan_pam (self, error);
  else {
    gboolean has_maximum = self->kind != '1' && self->kind != '4';

    self->channels = self->kind == '3' || self->kind == '6' ? 3 : 1;
    self->maximum = 1;
    ok = scan_sides (self, error) &&
         (!has_maximum || scan_number (self, 1, 65535, &self->maximum, error));
  }
  self->type = self->kind == '1' || self->kind == '4'
                   ? GST_IMAGING_ND_ARRAY_TYPE_BOOL
               : self->maximum > 255 ? GST_IMAGING_ND_ARRAY_TYPE_U16
                                     : GST_IMAGING_ND_ARRAY_TYPE_U8;
  self->swapped = G_BYTE_ORDER == G_LITTLE_ENDIAN;
  return ok;
}
