/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshoverlaydraw.h"

#include <cairo.h>
#include <math.h>

#include "gstimagingreader.h"

/* docs/reference/shcentroid.md: flags, from bit 0 on */
static const struct {
  const gchar *letter, *name;
} flag_names[] = {{"N", "no flux"}, {"L", "low flux"}, {"S", "saturated"},
    {"C", "clipped"}, {"E", "at the edge"}, {"M", "no match"}, {"O", "outside"},
    {"I", "not finite"}};

enum { INVALID = 1 | 2 | 32 | 64 | 128 };

/* Fields of each cell. */
enum { X, Y, DX, DY, FLAGS, N_FIELDS };

typedef struct {
  GstImagingReader reader;
  gint fields[N_FIELDS]; /* their numbers; -1 for none */
  gdouble slope_scale;
} Results;

typedef struct {
  cairo_t *cr;
  Results r;
  const GstShOverlayStyle *style;
  guint width, height;
  gdouble scale_x, scale_y; /* from the frame that was measured to this one */
} Drawing;

static gboolean
has (const Results *r, guint field)
{
  return r->fields[field] >= 0;
}

static gfloat
number (const Results *r, guint cell, guint field)
{
  return gst_imaging_reader_value (&r->reader, cell, r->fields[field]);
}

/* x, y, width, height, x and y of the reference */
static const gfloat *
cell_of (const Results *r, guint cell)
{
  return r->reader.cells ? r->reader.cells + 6 * (gsize) cell : NULL;
}

static guint
flags_of (const Results *r, guint cell)
{
  gfloat value = has (r, FLAGS) ? number (r, cell, FLAGS) : 0;

  return value > 0 && value < 65536 ? (guint) value : 0;
}

static gboolean
is_valid (const Results *r, guint cell)
{
  return !(flags_of (r, cell) & INVALID);
}

/* Where the spot is and where it should be, in pixels of the frame that was
 * measured. Returns: whether both are known and finite */
static gboolean
places_of (const Results *r, guint cell, gdouble *x, gdouble *y, gdouble *ref_x,
    gdouble *ref_y)
{
  const gfloat *c = cell_of (r, cell);

  if (has (r, X) && has (r, Y)) {
    *x = number (r, cell, X);
    *y = number (r, cell, Y);
    *ref_x = c ? c[4] : *x;
    *ref_y = c ? c[5] : *y;
  } else if (c && has (r, DX) && has (r, DY)) {
    *ref_x = c[4];
    *ref_y = c[5];
    *x = c[4] + number (r, cell, DX) / r->slope_scale;
    *y = c[5] + number (r, cell, DY) / r->slope_scale;
  } else {
    return FALSE;
  }
  return isfinite (*x) && isfinite (*y) && isfinite (*ref_x) &&
         isfinite (*ref_y);
}

/* --- pens ----------------------------------------------------------------- */

static void
set_colour (const Drawing *d, guint32 argb)
{
  gdouble red = (argb >> 16 & 255) / 255.0, blue = (argb & 255) / 255.0;

  cairo_set_source_rgba (d->cr, d->style->swapped ? blue : red,
      (argb >> 8 & 255) / 255.0, d->style->swapped ? red : blue,
      (argb >> 24) / 255.0);
}

/* A place in results, whose (0, 0) is the centre of a pixel, on the picture,
 * where cairo's (0, 0) is a corner. */
static void
to_picture (const Drawing *d, gdouble *x, gdouble *y)
{
  *x = (*x + 0.5) * d->scale_x;
  *y = (*y + 0.5) * d->scale_y;
}

/* The size of a mark that suits most cells, in pixels of the picture. */
static gdouble
mark_size (const Drawing *d)
{
  gdouble side = 12;

  if (d->r.reader.cells)
    side = fmin (
        d->r.reader.cells[2] * d->scale_x, d->r.reader.cells[3] * d->scale_y);
  return CLAMP (side / 5, 1.5, 8);
}

static void
draw_cells (const Drawing *d)
{
  set_colour (d, d->style->cell_colour);
  for (guint i = 0; i < d->r.reader.n && d->r.reader.cells; i++) {
    const gfloat *c = cell_of (&d->r, i);

    cairo_rectangle (d->cr, c[0] * d->scale_x, c[1] * d->scale_y,
        c[2] * d->scale_x, c[3] * d->scale_y);
  }
  cairo_stroke (d->cr);
}

static void
draw_references (const Drawing *d)
{
  gdouble x, y, ref_x, ref_y, radius = fmax (mark_size (d) / 3, 1);

  set_colour (d, d->style->reference_colour);
  for (guint i = 0; i < d->r.reader.n; i++)
    if (places_of (&d->r, i, &x, &y, &ref_x, &ref_y)) {
      to_picture (d, &ref_x, &ref_y);
      cairo_new_sub_path (d->cr);
      cairo_arc (d->cr, ref_x, ref_y, radius, 0, 2 * G_PI);
    }
  cairo_stroke (d->cr);
}

static void
draw_centroids (const Drawing *d)
{
  gdouble x, y, ref_x, ref_y, size = mark_size (d) / 1.5;

  set_colour (d, d->style->centroid_colour);
  for (guint i = 0; i < d->r.reader.n; i++)
    if (is_valid (&d->r, i) && places_of (&d->r, i, &x, &y, &ref_x, &ref_y)) {
      to_picture (d, &x, &y);
      cairo_move_to (d->cr, x - size, y);
      cairo_line_to (d->cr, x + size, y);
      cairo_move_to (d->cr, x, y - size);
      cairo_line_to (d->cr, x, y + size);
    }
  cairo_stroke (d->cr);
}

static void
draw_arrow (cairo_t *cr, gdouble x, gdouble y, gdouble dx, gdouble dy)
{
  gdouble length = hypot (dx, dy), head = fmin (0.4 * length, 6);
  gdouble back_x, back_y;

  if (!(length >= 0.5) || length > 1e5) /* no arrow to be seen */
    return;
  back_x = -dx / length * head;
  back_y = -dy / length * head;
  cairo_move_to (cr, x, y);
  cairo_line_to (cr, x + dx, y + dy);
  cairo_move_to (
      cr, x + dx + back_x + back_y / 2, y + dy + back_y - back_x / 2);
  cairo_line_to (cr, x + dx, y + dy);
  cairo_line_to (
      cr, x + dx + back_x - back_y / 2, y + dy + back_y + back_x / 2);
}

/* The slope in pixels: what is reported as such, where it is, as it may have
 * lost its mean. Returns: whether it is known and finite */
static gboolean
slope_of (const Results *r, guint cell, gdouble *dx, gdouble *dy,
    gdouble *ref_x, gdouble *ref_y)
{
  gdouble x, y;

  if (!is_valid (r, cell) || !places_of (r, cell, &x, &y, ref_x, ref_y))
    return FALSE;
  *dx = has (r, DX) ? number (r, cell, DX) / r->slope_scale : x - *ref_x;
  *dy = has (r, DY) ? number (r, cell, DY) / r->slope_scale : y - *ref_y;
  return isfinite (*dx) && isfinite (*dy);
}

static void
draw_arrows (const Drawing *d)
{
  gdouble dx, dy, ref_x, ref_y, scale = d->style->arrow_scale;

  set_colour (d, d->style->arrow_colour);
  for (guint i = 0; i < d->r.reader.n; i++)
    if (slope_of (&d->r, i, &dx, &dy, &ref_x, &ref_y)) {
      to_picture (d, &ref_x, &ref_y);
      draw_arrow (d->cr, ref_x, ref_y, scale * dx * d->scale_x,
          scale * dy * d->scale_y);
    }
  cairo_stroke (d->cr);
}

/* --- text ----------------------------------------------------------------- */

static void
draw_letters (const Drawing *d, guint cell, guint flags, gdouble size)
{
  const gfloat *c = cell_of (&d->r, cell);
  g_autoptr (GString) letters = g_string_new (NULL);

  for (guint bit = 0; flags >> bit; bit++)
    if (flags >> bit & 1)
      g_string_append (letters,
          bit < G_N_ELEMENTS (flag_names) ? flag_names[bit].letter : "?");
  cairo_move_to (d->cr, c[0] * d->scale_x + 2, c[1] * d->scale_y + size);
  cairo_show_text (d->cr, letters->str);
}

/* A cell without a valid centroid is crossed out; letters say what any flag
 * means, where they have room. */
static void
draw_flags (const Drawing *d)
{
  set_colour (d, d->style->flag_colour);
  for (guint i = 0; i < d->r.reader.n && d->r.reader.cells; i++) {
    const gfloat *c = cell_of (&d->r, i);
    gdouble left = c[0] * d->scale_x, top = c[1] * d->scale_y;
    gdouble width = c[2] * d->scale_x, height = c[3] * d->scale_y;
    gdouble size = fmin (height * 0.45, 11);
    guint flags = flags_of (&d->r, i);

    if (flags & INVALID) {
      cairo_move_to (d->cr, left + width * 0.35, top + height * 0.35);
      cairo_line_to (d->cr, left + width * 0.65, top + height * 0.65);
      cairo_move_to (d->cr, left + width * 0.65, top + height * 0.35);
      cairo_line_to (d->cr, left + width * 0.35, top + height * 0.65);
      cairo_stroke (d->cr);
    }
    if (flags && size >= 6) {
      cairo_set_font_size (d->cr, size);
      draw_letters (d, i, flags, size);
    }
  }
}

static gchar *
summary (const Results *r)
{
  GString *text = g_string_new (NULL);
  guint counts[G_N_ELEMENTS (flag_names)] = {0}, n_valid = 0;

  for (guint i = 0; i < r->reader.n; i++) {
    guint flags = flags_of (r, i);

    n_valid += is_valid (r, i);
    for (guint bit = 0; bit < G_N_ELEMENTS (flag_names); bit++)
      counts[bit] += flags >> bit & 1;
  }
  g_string_printf (text, "frame %" G_GUINT64_FORMAT ": ", r->reader.frame);
  if (!has (r, FLAGS))
    g_string_append_printf (text, "%u cells", (guint) r->reader.n);
  else
    g_string_append_printf (
        text, "%u of %u cells valid", n_valid, (guint) r->reader.n);
  for (guint bit = 0; bit < G_N_ELEMENTS (flag_names); bit++)
    if (counts[bit])
      g_string_append_printf (text, ", %u %s (%s)", counts[bit],
          flag_names[bit].name, flag_names[bit].letter);
  return g_string_free (text, FALSE);
}

/* On a dark bar, to be read on any picture. */
static void
draw_text (const Drawing *d)
{
  gdouble size = CLAMP (d->height / 30.0, 8, 18);
  cairo_text_extents_t extents;
  g_autofree gchar *text = summary (&d->r);

  cairo_set_font_size (d->cr, size);
  cairo_text_extents (d->cr, text, &extents);
  if (extents.x_advance > d->width - 8) { /* smaller, so that all is in it */
    size = fmax (size * (d->width - 8) / extents.x_advance, 5);
    cairo_set_font_size (d->cr, size);
    cairo_text_extents (d->cr, text, &extents);
  }
  cairo_set_source_rgba (d->cr, 0, 0, 0, 0.6);
  cairo_rectangle (
      d->cr, 0, d->height - 1.6 * size, extents.x_advance + 8, 1.6 * size);
  cairo_fill (d->cr);
  set_colour (d, d->style->text_colour);
  cairo_move_to (d->cr, 4, d->height - 0.5 * size);
  cairo_show_text (d->cr, text);
}

/* --- all ------------------------------------------------------------------ */

static void
draw_parts (const Drawing *d)
{
  static const struct {
    GstShOverlayParts part;
    void (*draw) (const Drawing *d);
  } parts[] = {
      {GST_SH_OVERLAY_CELLS, draw_cells},
      {GST_SH_OVERLAY_REFERENCES, draw_references},
      {GST_SH_OVERLAY_ARROWS, draw_arrows},
      {GST_SH_OVERLAY_CENTROIDS, draw_centroids},
      {GST_SH_OVERLAY_FLAGS, draw_flags},
      {GST_SH_OVERLAY_TEXT, draw_text},
  };

  cairo_set_line_width (d->cr, d->style->line_width);
  cairo_select_font_face (
      d->cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (d->style->parts & parts[i].part)
      parts[i].draw (d);
}

/* Returns: whether there is something to draw */
static gboolean
find_fields (Results *r)
{
  static const gchar *const names[] = {"x", "y", "dx", "dy", "flags"};
  const GstImagingReader *reader = &r->reader;
  const gint n = reader->by_field ? reader->rows : reader->columns;

  for (guint i = 0; i < N_FIELDS; i++) {
    r->fields[i] = gst_imaging_reader_field (reader, names[i]);
    if (r->fields[i] >= n)
      return FALSE; /* a name of a column that is not there */
  }
  if (!gst_structure_get_double (
          reader->structure, "slope-scale", &r->slope_scale) ||
      r->slope_scale == 0)
    r->slope_scale = 1; /* an older shcentroid says nothing of it */
  return reader->rows > 0 && reader->columns > 0 && reader->ref_width > 0 &&
         reader->ref_height > 0 && reader->id &&
         g_str_has_prefix (reader->id, "shwfs-centroids-v1");
}

static gboolean
draw_result (cairo_t *cr, const GstStructure *result, guint width, guint height,
    const GstShOverlayStyle *style)
{
  Drawing d = {.cr = cr, .style = style, .width = width, .height = height};
  gboolean done;

  if (!gst_imaging_reader_read (&d.r.reader, result))
    return FALSE;
  done = find_fields (&d.r);
  if (done) {
    d.scale_x = (gdouble) width / d.r.reader.ref_width;
    d.scale_y = (gdouble) height / d.r.reader.ref_height;
    draw_parts (&d);
  }
  gst_imaging_reader_close (&d.r.reader);
  return done;
}

/* The largest picture that cairo takes. */
enum { TILE = 32767 };

/* Draws into the part of @frame that begins at (@x, @y). */
static gboolean
draw_tile (GstVideoFrame *frame, gint x, gint y, const GstStructure *result,
    const GstShOverlayStyle *style)
{
  gint width = GST_VIDEO_FRAME_WIDTH (frame);
  gint height = GST_VIDEO_FRAME_HEIGHT (frame);
  gint stride = GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);
  guint8 *pixels = GST_VIDEO_FRAME_PLANE_DATA (frame, 0);
  cairo_surface_t *surface = cairo_image_surface_create_for_data (
      pixels + (gsize) y * stride + 4 * (gsize) x, CAIRO_FORMAT_RGB24,
      MIN (width - x, TILE), MIN (height - y, TILE), stride);
  cairo_t *cr = cairo_create (surface);
  gboolean done;

  cairo_translate (cr, -x, -y);
  done = draw_result (cr, result, width, height, style);
  cairo_destroy (cr);
  cairo_surface_destroy (surface);
  return done;
}

/* GST_SH_OVERLAY_SYMBOL, a GstShOverlayDraw */
GST_IMAGING_API gboolean gst_sh_overlay_draw (GstVideoFrame *frame,
    const GstStructure *result, const GstShOverlayStyle *style);

gboolean
gst_sh_overlay_draw (GstVideoFrame *frame, const GstStructure *result,
    const GstShOverlayStyle *style)
{
  gboolean done = FALSE;

  for (gint y = 0; y < GST_VIDEO_FRAME_HEIGHT (frame); y += TILE)
    for (gint x = 0; x < GST_VIDEO_FRAME_WIDTH (frame); x += TILE)
      done = draw_tile (frame, x, y, result, style);
  return done;
}
