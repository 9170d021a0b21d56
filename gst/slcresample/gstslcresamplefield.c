/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Offsets that are no plane, of rasters and polynomials, as nodes. */
#include "gstslcresample-private.h"

#include "insar/gstinsarplane.h"

/* Rasters with finer pixels are thinned: offsets of orbits and terrain are
 * smooth, and an image of offsets would be larger than the SLC. */
#define FINEST 8
#define N_NODES 8 /* along each axis, of polynomials alone */
#define BEYOND 48 /* samples around the image that a polynomial is for, too */

void
gst_slc_resample_field_clear (ImkSlcresampleField *self)
{
  for (guint i = 0; i < IMK_SLCRESAMPLE_N_AXES; i++)
    g_free ((gfloat *) self->offsets[i]);
}

/* --- nodes ---------------------------------------------------------------- */

/* A node is in the middle of a pixel. */
static void
take_grid (ImkSlcresampleField *self, const GstInsarPlane *plane)
{
  guint *n[] = {&self->nx, &self->ny};
  const guint size[] = {plane->width, plane->height};

  for (guint i = 0; i < IMK_SLCRESAMPLE_N_AXES; i++) {
    gdouble step = ABS (plane->step[i]);
    gdouble first = plane->step[i] > 0 ? plane->origin[i]
                                       : plane->origin[i] - size[i] * step;
    guint thin = (guint) MAX (1, FINEST / step);

    thin = MIN (thin, MAX (size[i] / 4, 1));
    *n[i] = (size[i] - 1) / thin + 1;
    self->step[i] = step * thin;
    self->origin[i] = first + step / 2 - 0.5;
  }
}

static void
copy_nodes (
    const ImkSlcresampleField *self, const GstInsarPlane *plane, gfloat *to)
{
  guint thin_x = (guint) (self->step[0] / ABS (plane->step[0]) + 0.5);
  guint thin_y = (guint) (self->step[1] / plane->step[1] + 0.5);

  for (guint j = 0; j < self->ny; j++)
    for (guint i = 0; i < self->nx; i++) {
      guint x = i * thin_x, y = j * thin_y;

      if (plane->step[0] < 0)
        x = plane->width - 1 - x;
      to[(gsize) j * self->nx + i] =
          plane->values[(gsize) y * plane->width + x];
    }
}

static ImkStatus
check_pair (
    const GstInsarPlane *range, const GstInsarPlane *azimuth, ImkError *error)
{
  for (guint i = 0; range && azimuth && i < IMK_SLCRESAMPLE_N_AXES; i++)
    if (range->width != azimuth->width || range->height != azimuth->height ||
        range->origin[i] != azimuth->origin[i] ||
        range->step[i] != azimuth->step[i])
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "\"%s\" has %u x %u pixels and \"%s\" %u x %u; both must cover the "
          "same places of the reference.",
          range->name, range->width, range->height, azimuth->name,
          azimuth->width, azimuth->height);
  return IMK_OK;
}

/* --- polynomials ---------------------------------------------------------- */

static void
cover_image (ImkSlcresampleField *self, const GstInsarSlcInfo *out)
{
  const gdouble size[] = {out->width, out->height};

  self->nx = self->ny = N_NODES;
  for (guint i = 0; i < IMK_SLCRESAMPLE_N_AXES; i++) {
    self->origin[i] = -BEYOND;
    self->step[i] = (size[i] + 2 * BEYOND) / (N_NODES - 1);
  }
}

static gdouble
evaluate (const GstImagingArray *p, gdouble r, gdouble a)
{
  const gdouble terms[GST_SLC_RESAMPLE_N_TERMS] = {
      1, r, a, r * a, r * r, a * a, r * r * r, r * r * a, r * a * a, a * a * a};
  gdouble sum = 0;

  for (guint i = 0; i < p->n; i++)
    sum += p->values[i] * terms[i];
  return sum;
}

static void
add_polynomial (
    const ImkSlcresampleField *f, const GstImagingArray *p, gfloat *to)
{
  for (guint j = 0; p && j < f->ny; j++)
    for (guint i = 0; i < f->nx; i++)
      to[(gsize) j * f->nx + i] += (gfloat) evaluate (
          p, f->origin[0] + i * f->step[0], f->origin[1] + j * f->step[1]);
}

/* --- both ----------------------------------------------------------------- */

static ImkStatus
check_settings (const GstSlcResampleSettings *s, ImkError *error)
{
  for (guint i = 0; i < IMK_SLCRESAMPLE_N_AXES; i++)
    if (s->polynomials[i] && s->polynomials[i]->n > GST_SLC_RESAMPLE_N_TERMS)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "%s-polynomial has %u numbers; it can have %d, of 1, r, a, ra, rr, "
          "aa, rrr, rra, raa and aaa.",
          i ? "azimuth" : "range", s->polynomials[i]->n,
          GST_SLC_RESAMPLE_N_TERMS);
  return IMK_OK;
}

ImkStatus
gst_slc_resample_field_make (const GstSlcResampleSettings *s,
    const GstInsarSlcInfo *out, ImkSlcresampleField *self, ImkError *error)
{
  GstInsarPlane planes[IMK_SLCRESAMPLE_N_AXES] = {{0}};
  const GstInsarPlane *used[IMK_SLCRESAMPLE_N_AXES] = {0}, *any = NULL;
  ImkStatus status = check_settings (s, error);

  *self = (ImkSlcresampleField){0};
  for (guint i = 0; i < IMK_SLCRESAMPLE_N_AXES && status == IMK_OK; i++)
    if (s->offsets[i]) {
      planes[i] = *(const GstInsarPlane *) s->offsets[i]->data;
      any = used[i] = &planes[i];
      status = gst_insar_plane_fit (&planes[i], out->width, out->height, error);
    }
  if (status == IMK_OK)
    status = check_pair (used[0], used[1], error);
  if (status != IMK_OK || (!any && !s->polynomials[0] && !s->polynomials[1]))
    return status;
  if (any)
    take_grid (self, any);
  else
    cover_image (self, out);
  for (guint i = 0; i < IMK_SLCRESAMPLE_N_AXES; i++) {
    gfloat *offsets = g_new0 (gfloat, (gsize) self->nx * self->ny);

    if (used[i])
      copy_nodes (self, used[i], offsets);
    add_polynomial (self, s->polynomials[i], offsets);
    self->offsets[i] = offsets;
  }
  return IMK_OK;
}
