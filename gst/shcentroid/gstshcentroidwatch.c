/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidwatch.h"

#include <math.h>

enum {
  DEPTH_FRAMES = 100,
  FLAT_FRAMES = 10, /* after which a largest sample is hardly exceeded */
  SEVERAL = 3,      /* samples that one hot pixel of a still is not */
  MOST_LIGHTS = 10, /* a controller may change settings with every frame */
  WAIT_FRAMES = 100,
  MOST_DOUBLINGS = 10,
  SELDOM = 8,
  LEAST_UNEVEN = 3, /* cells; a test picture may have one by chance */
  LEAST_FIT = 7,    /* cells with light; a lattice needs as many spots */
};

/* Steps of a sample: with fewer, a spot is rounded to a few values. */
#define LEAST_HEIGHT 10

/* A rotation that columns, rows and pitches do not hide. */
#define LARGE_ROTATION 0.01

/* From here on slopes are a tenth too small. */
#define LARGE_SHARE 0.1

/* --- bit depth ------------------------------------------------------------ */

/* Returns: the bits of a camera whose largest sample that is; 0 for none */
static guint
bits_of (guint most)
{
  return most == 1023 ? 10 : most == 4095 ? 12 : most == 16383 ? 14 : 0;
}

gboolean
gst_sh_centroid_watch_wants_depth (const GstShCentroidWatch *self,
    const GstShCentroidSettings *settings, ImkType type)
{
  return type == IMK_TYPE_U16 && settings->bit_depth == 0 &&
         settings->saturation == 0 && !self->told_depth &&
         self->n_frames < DEPTH_FRAMES && self->most < G_MAXUINT16;
}

static const guint16 *
row_of (const ImkImage *frame, guint y)
{
  return (const guint16 *) ((const guint8 *) frame->data + y * frame->stride);
}

/* The tops of spots are round; those that are cut off are flat. */
static guint
count_flat (const ImkImage *frame, guint y, guint most)
{
  const guint16 *row = row_of (frame, y);
  guint n = 0;

  if (y == 0 || y + 1 == frame->height)
    return 0;
  for (guint x = 1; x + 1 < frame->width; x++)
    n += row[x] == most && row[x - 1] == most && row[x + 1] == most &&
         row_of (frame, y - 1)[x] == most && row_of (frame, y + 1)[x] == most;
  return n;
}

void
gst_sh_centroid_watch_depth (GstShCentroidWatch *self, const ImkImage *frame)
{
  for (guint y = 0; y < frame->height; y++) {
    const guint16 *row = row_of (frame, y);
    guint most = 0;

    for (guint x = 0; x < frame->width; x++)
      most = MAX (most, row[x]);
    if (most < self->most)
      continue;
    if (most > self->most)
      self->n_most = self->n_flat = 0;
    self->most = most;
    for (guint x = 0; x < frame->width; x++)
      self->n_most += row[x] == most;
    self->n_flat += count_flat (frame, y, most);
  }
  self->n_samples += (guint64) frame->width * frame->height;
  self->n_frames++;
}

/* An even frame is flat, but not saturated. */
static gboolean
has_cut_tops (const GstShCentroidWatch *self)
{
  return self->n_flat >= SEVERAL && self->n_most <= self->n_samples / 4 &&
         self->most < G_MAXUINT16;
}

/* Of any largest sample: bits in the upper ones of a sample, or less a dark. */
static gchar *
tell_flat (const GstShCentroidWatch *self)
{
  return g_strdup_printf (
      "The largest sample of the first %u frames is %u, %" G_GUINT64_FORMAT
      " times, and side by side, as the cut tops of saturated spots: saturated "
      "cells are not flagged. Set saturation=%u, or saturation=-1 if that is "
      "no limit of the camera.",
      self->n_frames, self->most, self->n_most, self->most);
}

gchar *
gst_sh_centroid_watch_tell_depth (GstShCentroidWatch *self, gboolean at_end)
{
  guint bits = bits_of (self->most);
  gboolean is_cut = has_cut_tops (self);
  guint n_needed = !is_cut ? DEPTH_FRAMES : bits ? 1 : FLAT_FRAMES;

  if (self->told_depth || (!at_end && self->n_frames < n_needed))
    return NULL;
  self->told_depth = TRUE;
  if (bits == 0)
    return is_cut ? tell_flat (self) : NULL;
  if (self->n_most < SEVERAL)
    return NULL;
  return g_strdup_printf (
      "The largest sample of the first %u frames is %u, %" G_GUINT64_FORMAT
      " times, as of a camera of %u bits: saturated cells are not flagged. Set "
      "bit-depth=%u, or saturation.",
      self->n_frames, self->most, self->n_most, bits, bits);
}

/* --- light outside the spots ---------------------------------------------- */

/* A correlation takes means away, and a matched filter the background; pupil
 * images have no spots. */
gboolean
gst_sh_centroid_watch_wants_light (GstShCentroidWatch *self,
    const GstShCentroidSettings *settings, gboolean is_new)
{
  const ImkShcentroidConfig *c = &settings->config;
  gboolean is_due = self->n_waits > 0 && --self->n_waits == 0;

  return (is_new || is_due) && !(self->told_light && self->told_fit) &&
         self->n_lights < MOST_LIGHTS &&
         c->estimator < IMK_SHCENTROID_ESTIMATOR_CORRELATION;
}

/* Returns: (transfer full): what helps against it */
static gchar *
advice (const ImkShcentroidConfig *c, gint mode, const ImkShcentroidLight *l)
{
  switch (mode) {
  case GST_SH_CENTROID_THRESHOLD_AUTO:
    return g_strdup_printf (
        "The spots stand too little above it for threshold-mode=auto (T is at "
        "least %.4g). Set brightest to the pixels of a spot, as brightest=20, "
        "subtract a dark frame, or expose longer.",
        c->threshold_least);
  case IMK_SHCENTROID_THRESHOLD_RANGE:
    return g_strdup_printf (
        "threshold=%.2g is too low for it. Set threshold-mode=auto, or "
        "threshold=%.2f and threshold-least=%.4g.",
        c->threshold, l->fraction, l->least);
  default:
    return g_strdup ("Set threshold-mode=auto, or subtract a dark frame "
                     "(dark-location, capture-dark).");
  }
}

void
gst_sh_centroid_watch_note (
    GstShCentroidWatch *self, const ImkShcentroidLight *light)
{
  self->n_lights++;
  self->is_dark = light->n_lit == 0;
  self->n_waits = 0;
  if (self->is_dark)
    gst_sh_centroid_watch_wait (self);
  else
    self->n_dark = 0;
}

gchar *
gst_sh_centroid_watch_light (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, gint mode,
    const ImkShcentroidLight *light)
{
  g_autofree gchar *remedy = NULL;

  /* where spots are cut the light at the borders is theirs */
  if (self->told_light || light->n_lit == 0 || light->share <= LARGE_SHARE ||
      light->n_cut > light->n_lit / 4)
    return NULL;
  self->told_light = TRUE;
  remedy = advice (config, mode, light);
  return g_strdup_printf (
      "%.0f %% of the flux of the median cell is light outside its spot: "
      "shifts are measured so much too small. %s",
      100 * light->share, remedy);
}

gboolean
gst_sh_centroid_watch_wants_fit (const GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, const ImkShcentroidLight *light)
{
  guint n = light->n_lit + light->n_cut;
  guint n_odd = light->n_cut + light->n_doubled + light->n_between;

  return !self->told_fit && self->n_fits < MOST_LIGHTS && n >= LEAST_FIT &&
         8 * n_odd >= n;
}

/* Returns: (transfer full): what helps; a grid that is turned has no numbers */
static gchar *
fitting_grid (const ImkShcentroidConfig *c, const ImkShcentroidGrid *g)
{
  if (c->n_cells > 0 || g->lattice != IMK_SHCENTROID_LATTICE_SQUARE ||
      fabs (g->rotation) > LARGE_ROTATION)
    return g_strdup ("Find the grid in a frame of a flat wavefront (find-grid, "
                     "find-grid-location)");
  return g_strdup_printf (
      "Set columns=%u rows=%u pitch-x=%.2f pitch-y=%.2f x0=%.1f y0=%.1f, or "
      "find the grid in a frame of a flat wavefront (find-grid, "
      "find-grid-location)",
      g->columns, g->rows, g->column_x, g->row_y,
      g->origin_x + 0.5 - g->column_x / 2, g->origin_y + 0.5 - g->row_y / 2);
}

gchar *
gst_sh_centroid_watch_fit (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, const ImkShcentroidFit *fit)
{
  const ImkShcentroidGrid *g = &fit->grid;
  g_autofree gchar *remedy = NULL;

  self->n_fits++;
  self->told_fit = TRUE; /* it takes long: one search for the same cells */
  if (!fit->is_off)
    return NULL;
  remedy = fitting_grid (config, g);
  return g_strdup_printf (
      "The cells do not fit the spots: this frame has %u spots of a pitch of "
      "%.2f x %.2f pixels, turned by %.1f degrees, and the cells are %.2f x "
      "%.2f; %u spots are at the edge of a cell or share one. Valid cells may "
      "have parts of spots, or those of neighbours. %s.",
      g->n_spots, hypot (g->column_x, g->column_y), hypot (g->row_x, g->row_y),
      g->rotation * 180 / G_PI, fit->cell_width, fit->cell_height,
      fit->n_misplaced, remedy);
}

gboolean
gst_sh_centroid_watch_is_dim (const ImkShcentroidLight *light)
{
  return light->n_lit > 0 && light->height < LEAST_HEIGHT * light->step;
}

gchar *
gst_sh_centroid_watch_dim (
    GstShCentroidWatch *self, const ImkShcentroidLight *light)
{
  if (self->told_dim)
    return NULL;
  self->told_dim = TRUE;
  return g_strdup_printf (
      "The light is too low: the median spot rises %.3g counts above its "
      "surroundings, and samples have steps of %.3g. Rounding and noise move "
      "such centroids. Expose longer, raise the gain of the camera, or send "
      "more bits (GRAY16_LE).",
      light->height, light->step);
}

/* Where T is at its limit, or the sides of cells differ by half a spot. */
gchar *
gst_sh_centroid_watch_background (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, gint mode,
    const ImkShcentroidLight *light)
{
  guint n = light->n_lit + light->n_cut;
  gboolean is_auto = mode == GST_SH_CENTROID_THRESHOLD_AUTO;
  guint n_uneven = MAX (light->n_uneven, is_auto ? light->n_at_most : 0);
  guint least = MIN (LEAST_UNEVEN, imk_shcentroid_n_cells (config));

  if (self->told_background || self->told_light || 4 * n_uneven < n ||
      n_uneven < least)
    return NULL;
  self->told_background = TRUE;
  return g_strdup_printf (
      "In %u of %u cells with light the background is uneven: it rises from "
      "side to side by about half the height of the spot or more (threshold="
      "%.2g, which threshold-mode=auto sets to 0.6 at most). Centroids are "
      "drawn towards its bright side. Subtract a dark frame with this "
      "background (dark-location, capture-dark), or set brightest to the "
      "pixels of a spot, as brightest=20.",
      n_uneven, n, config->threshold);
}

/* Spots as sharp as that in nearly all cells are what the optics make. */
gchar *
gst_sh_centroid_watch_hot (
    GstShCentroidWatch *self, const ImkShcentroidLight *light)
{
  guint n = light->n_lit + light->n_cut;

  if (self->told_hot || light->n_hot == 0 || 10 * light->n_hot > 9 * n)
    return NULL;
  self->told_hot = TRUE;
  return g_strdup_printf (
      "In %u of %u cells with light a single pixel is far above all its "
      "neighbours, as hot pixels and cosmic rays are: centroids are drawn to "
      "it. Name hot pixels in bad-pixels-location.",
      light->n_hot, n);
}

/* Only of those who set what var_x and var_y need. */
gchar *
gst_sh_centroid_watch_pedestal (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, const ImkShcentroidLight *light)
{
  if (self->told_pedestal || light->n_lit == 0 || light->pedestal < 1 ||
      config->fields != IMK_SHCENTROID_FIELDS_ALL ||
      (config->gain == 1 && config->read_noise == 0))
    return NULL;
  self->told_pedestal = TRUE;
  return g_strdup_printf (
      "var_x and var_y count a pedestal of about %.4g counts as photons, and "
      "are up to %.0f times too large. Subtract a dark frame (dark-location, "
      "capture-dark).",
      light->least, 1 + light->pedestal);
}

gboolean
gst_sh_centroid_watch_looks (GstShCentroidWatch *self)
{
  guint n = self->n_looks++;

  return n < WAIT_FRAMES || n % SELDOM == 0;
}

gboolean
gst_sh_centroid_watch_stays_dark (GstShCentroidWatch *self,
    const ImkShcentroidConfig *config, const ImkImage *frame)
{
  bool has_spots = true;

  return self->is_dark &&
         imk_shcentroid_glance (
             config, frame, self->n_glances++, &has_spots, NULL) == IMK_OK &&
         !has_spots;
}

void
gst_sh_centroid_watch_wait (GstShCentroidWatch *self)
{
  self->n_waits = WAIT_FRAMES << MIN (self->n_dark, MOST_DOUBLINGS);
  self->n_dark++;
}
