/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/shcentroid-templates.h"

#include <stdlib.h>

#include "core/config.h"
#include "shcentroid/shcentroid-cells.h"
#include "shcentroid/shcentroid-check.h"
#include "shcentroid/arithmetic/correlation.h"

/* Of the smallest cell. */
typedef struct Size {
  uint32_t width, height;
} Size;

static Size
least_cell (const ImkShcentroidConfig *c)
{
  double width = UINT32_MAX, height = UINT32_MAX;

  for (uint32_t i = 0; i < imk_shcentroid_n_cells (c); i++) {
    ImkShcentroidBox box = imk_shcentroid_whole_cell (c, i);

    width = fmin (width, fmax (box.right - box.left, 0.0));
    height = fmin (height, fmax (box.bottom - box.top, 0.0));
  }
  return (Size){(uint32_t) width, (uint32_t) height};
}

/* Of a template that is cut from its cell. */
static Size
cut_size (const ImkShcentroidConfig *c)
{
  Size least = least_cell (c);

  return (Size){least.width - 2 * c->template_margin,
      least.height - 2 * c->template_margin};
}

bool
imk_shcentroid_has_templates (const ImkShcentroidConfig *c)
{
  return !c->pupils && (c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME ||
                           c->n_templates > 0);
}

static ImkStatus
check_source (const ImkShcentroidConfig *c, ImkError *error)
{
  uint32_t n_cells = imk_shcentroid_n_cells (c);

  if (c->template_source > IMK_SHCENTROID_TEMPLATE_FRAME)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "template-source is %u; the choices are 0 to 1.",
        (unsigned) c->template_source);
  if (c->template_cell < -1 || c->template_cell >= (int64_t) n_cells)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "template-cell is %d; it must be one of the %u cells, from 0 on, or -1 "
        "for none.",
        c->template_cell, n_cells);
  if (c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME &&
      c->template_cell < 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "template-source is frame, but template-cell does not say which of the "
        "%u cells is the template. Set it, from 0 on.",
        n_cells);
  return IMK_OK;
}

static ImkStatus
check_size (const ImkShcentroidConfig *c, ImkError *error)
{
  Size least = least_cell (c);

  if (c->template_width == 0 || c->template_height == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The template is %ux%u pixels; it needs at least one.",
        c->template_width, c->template_height);
  if (c->template_width > least.width || c->template_height > least.height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The template of %ux%u pixels is larger than the smallest cell, which "
        "is %ux%u with a margin of %u taken off. Take a smaller template.",
        c->template_width, c->template_height, least.width, least.height,
        c->margin);
  return IMK_OK;
}

/* @has_structure: set when the pixels are not all alike */
static ImkStatus
check_pixels (const ImkShcentroidConfig *c, uint32_t index, bool *has_structure,
    ImkError *error)
{
  size_t n = (size_t) c->template_width * c->template_height;
  const float *pixels = c->templates + index * n;

  for (size_t i = 0; i < n; i++) {
    if (!(pixels[i] >= -1e9f && pixels[i] <= 1e9f))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Template %u has the value %g at (%u, %u); it must be a number from "
          "-1e9 to 1e9.",
          index, pixels[i], (unsigned) (i % c->template_width),
          (unsigned) (i / c->template_width));
    *has_structure |= pixels[i] != pixels[0];
  }
  return IMK_OK;
}

/* A template that is constant is everywhere and nowhere. A dark cell may have
 * such a one: nothing will be found in it. */
static ImkStatus
check_all_pixels (const ImkShcentroidConfig *c, ImkError *error)
{
  bool has_structure = false;

  for (uint32_t i = 0; i < c->n_templates; i++)
    IMK_TRY (check_pixels (c, i, &has_structure, error));
  if (!has_structure)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "All pixels of %s are %g; there must be structure that can be found.",
        c->n_templates == 1 ? "the template" : "each template",
        c->templates[0]);
  return IMK_OK;
}

/* Cells may reach far beyond the frame, where there is nothing to look for. */
static ImkStatus
check_cut (const ImkShcentroidConfig *c, ImkError *error)
{
  Size least = least_cell (c), cut = cut_size (c);
  uint32_t side = least.width < least.height ? least.width : least.height;

  if (2 * (uint64_t) c->template_margin + 1 >= side)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "template-margin is %u, which leaves less than 2 pixels of the "
        "smallest cell, of %ux%u. Take a smaller one.",
        c->template_margin, least.width, least.height);
  if (cut.width > c->width || cut.height > c->height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A template of %ux%u pixels, as the smallest cell gives it less "
        "template-margin, is larger than the frame of %ux%u. Take smaller "
        "cells or a larger template-margin.",
        cut.width, cut.height, c->width, c->height);
  return IMK_OK;
}

ImkStatus
imk_shcentroid_check_templates (const ImkShcentroidConfig *c, ImkError *error)
{
  uint32_t n_cells = imk_shcentroid_n_cells (c);

  if (c->pupils) /* whose cells are none for templates */
    return IMK_OK;
  IMK_TRY (check_source (c, error));
  if (c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME)
    return check_cut (c, error);
  if (c->n_templates == 0)
    return IMK_OK;
  if (c->n_templates != 1 && c->n_templates != n_cells)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u templates for %u cells; there must be one for all or one "
        "for each.",
        c->n_templates, n_cells);
  IMK_TRY (check_size (c, error));
  return check_all_pixels (c, error);
}

/* ------------------------------------------------------------------------
 * Templates in their cells. */

/* The middle of the cell as it would be without the edges of the frame, rounded
 * down; zero is the centre of the cell, which is not in the middle of its
 * pixels. */
static ImkShcentroidAnchor
cell_anchor (const ImkShcentroidConfig *c, Size size, uint32_t i)
{
  ImkShcentroidBox box = imk_shcentroid_whole_cell (c, i);
  ImkShcentroidConfig own = *c;
  ImkShcentroidCell cell;

  own.references = NULL;
  cell = imk_shcentroid_cell (&own, i);
  return (ImkShcentroidAnchor){
      .x = (int32_t) floor ((box.left + box.right - size.width) / 2),
      .y = (int32_t) floor ((box.top + box.bottom - size.height) / 2),
      .zero_x = cell.ref_x,
      .zero_y = cell.ref_y,
  };
}

/* One template for all cells is in all of them what it is in its own. */
static void
place_templates (const ImkShcentroidConfig *c, const ImkShcentroidTemplates *t,
    ImkShcentroidAnchor *anchors)
{
  uint32_t n_cells = imk_shcentroid_n_cells (c);
  Size size = {t->width, t->height};
  double x = (t->width - 1) / 2.0, y = (t->height - 1) / 2.0;

  for (uint32_t i = 0; i < n_cells; i++)
    anchors[i] = cell_anchor (c, size, i);
  if (t->n > 1)
    return;
  if (c->template_cell >= 0) {
    const ImkShcentroidAnchor *own = &anchors[c->template_cell];

    x = own->zero_x - own->x;
    y = own->zero_y - own->y;
  }
  for (uint32_t i = 0; i < n_cells; i++) {
    anchors[i].zero_x = anchors[i].x + x;
    anchors[i].zero_y = anchors[i].y + y;
  }
}

/* Pixels and totals of the stored ones. */
static bool
prepare_templates (ImkShcentroidTemplates *t, const float *from)
{
  size_t n_pixels = (size_t) t->width * t->height;
  size_t n_totals = (size_t) (t->width + 1) * (t->height + 1);
  float *pixels = malloc (t->n * n_pixels * sizeof (*pixels));
  ImkShcentroidTotal *totals = malloc (t->n * n_totals * sizeof (*totals));

  t->pixels = pixels;
  t->totals = totals;
  if (!pixels || !totals)
    return false;
  memcpy (pixels, from, t->n * n_pixels * sizeof (*pixels));
  for (uint32_t i = 0; i < t->n; i++)
    imk_shcentroid_make_template (
        pixels + i * n_pixels, t->width, t->height, totals + i * n_totals);
  return true;
}

ImkStatus
imk_shcentroid_templates_init (
    ImkShcentroidTemplates *t, const ImkShcentroidConfig *c, ImkError *error)
{
  bool from_frame = c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME;
  ImkShcentroidAnchor *anchors;

  *t = (ImkShcentroidTemplates){.n = 0};
  if (!imk_shcentroid_has_templates (c))
    return IMK_OK;
  t->n = from_frame ? 1 : c->n_templates;
  t->width = from_frame ? cut_size (c).width : c->template_width;
  t->height = from_frame ? cut_size (c).height : c->template_height;
  t->cell = from_frame ? (uint32_t) c->template_cell : 0;
  t->anchors = anchors =
      malloc (imk_shcentroid_n_cells (c) * sizeof (*anchors));
  if (!anchors || (!from_frame && !prepare_templates (t, c->templates)))
    return IMK_NO_MEMORY (
        error, "for %u templates of %ux%u pixels.", t->n, t->width, t->height);
  place_templates (c, t, anchors);
  return IMK_OK;
}

void
imk_shcentroid_templates_clear (ImkShcentroidTemplates *t)
{
  free ((void *) t->pixels);
  free ((void *) t->totals);
  free ((void *) t->anchors);
  *t = (ImkShcentroidTemplates){.n = 0};
}

/* ------------------------------------------------------------------------
 * Templates out of a picture. */

/* Pixels outside the frame, and bad ones, become the mean of the others. */
static void
cut_template (const ImkShcentroidConfig *c, const float *frame,
    ImkShcentroidAnchor corner, Size size, float *to)
{
  double sum = 0.0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < size.width * size.height; i++) {
    int64_t x = corner.x + (int64_t) (i % size.width);
    int64_t y = corner.y + (int64_t) (i / size.width);
    bool inside = x >= 0 && y >= 0 && x < c->width && y < c->height;

    to[i] = inside ? frame[y * c->width + x] : NAN;
    if (to[i] == to[i]) {
      sum += to[i];
      n++;
    }
  }
  for (uint32_t i = 0; i < size.width * size.height; i++)
    if (to[i] != to[i])
      to[i] = imk_shcentroid_mean (sum, n);
}

ImkStatus
imk_shcentroid_cut_templates (const ImkShcentroidConfig *given,
    const float *frame, ImkShcentroidConfig *to, float **templates,
    ImkError *error)
{
  ImkShcentroidConfig own;
  const ImkShcentroidConfig *c =
      IMK_CONFIG_READ (shcentroid, given, &own, error);
  bool one;
  uint32_t n;
  Size size;

  if (!c)
    return IMK_ERROR_CONFIG;
  IMK_TRY (imk_shcentroid_check_cells (c, error));
  IMK_TRY (check_source (c, error));
  IMK_TRY (check_cut (c, error));
  one = c->template_cell >= 0;
  n = one ? 1 : imk_shcentroid_n_cells (c);
  size = cut_size (c);
  *templates =
      malloc ((size_t) n * size.width * size.height * sizeof (**templates));
  if (!*templates)
    return IMK_NO_MEMORY (
        error, "for %u templates of %ux%u pixels.", n, size.width, size.height);
  for (uint32_t i = 0; i < n; i++)
    cut_template (c, frame,
        cell_anchor (c, size, one ? (uint32_t) c->template_cell : i), size,
        *templates + (size_t) i * size.width * size.height);
  to->templates = *templates;
  to->n_templates = n;
  to->template_width = size.width;
  to->template_height = size.height;
  return IMK_OK;
}
