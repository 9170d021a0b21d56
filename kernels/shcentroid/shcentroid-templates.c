/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/shcentroid-templates.h"

#include <stdlib.h>

#include "shcentroid/shcentroid-correlation.h"

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
check_size (const ImkShcentroidConfig *c, uint32_t least_width,
    uint32_t least_height, ImkError *error)
{
  if (c->template_width == 0 || c->template_height == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The template is %ux%u pixels; it needs at least one.",
        c->template_width, c->template_height);
  if (c->template_width > least_width || c->template_height > least_height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The template of %ux%u pixels is larger than the smallest cell, which "
        "is %ux%u with a margin of %u taken off. Take a smaller template.",
        c->template_width, c->template_height, least_width, least_height,
        c->margin);
  return IMK_OK;
}

/* A template that is constant is everywhere and nowhere. */
static ImkStatus
check_pixels (const ImkShcentroidConfig *c, uint32_t index, ImkError *error)
{
  size_t n = (size_t) c->template_width * c->template_height;
  const float *pixels = c->templates + index * n;
  bool constant = true;

  for (size_t i = 0; i < n; i++) {
    if (!(pixels[i] >= -1e9f && pixels[i] <= 1e9f))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Template %u has the value %g at (%u, %u); it must be a number from "
          "-1e9 to 1e9.",
          index, pixels[i], (unsigned) (i % c->template_width),
          (unsigned) (i / c->template_width));
    constant = constant && pixels[i] == pixels[0];
  }
  if (constant)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "All pixels of template %u are %g; it needs structure that can be "
        "found.",
        index, pixels[0]);
  return IMK_OK;
}

ImkStatus
imk_shcentroid_check_templates (const ImkShcentroidConfig *c,
    uint32_t least_width, uint32_t least_height, ImkError *error)
{
  uint32_t n_cells = imk_shcentroid_n_cells (c);
  ImkStatus status = check_source (c, error);

  if (status != IMK_OK)
    return status;
  if (c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME) {
    uint32_t most = least_width < least_height ? least_width : least_height;

    if (2 * (uint64_t) c->template_margin + 1 < most)
      return IMK_OK;
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "template-margin is %u, which leaves less than 2 pixels of the "
        "smallest cell, of %ux%u. Take a smaller one.",
        c->template_margin, least_width, least_height);
  }
  if (c->n_templates == 0)
    return IMK_OK;
  if (c->n_templates != 1 && c->n_templates != n_cells)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u templates for %u cells; there must be one for all or one "
        "for each.",
        c->n_templates, n_cells);
  status = check_size (c, least_width, least_height, error);
  for (uint32_t i = 0; i < c->n_templates && status == IMK_OK; i++)
    status = check_pixels (c, i, error);
  return status;
}

ImkStatus
imk_shcentroid_templates_init (ImkShcentroidTemplates *t,
    const ImkShcentroidConfig *c, uint32_t least_width, uint32_t least_height,
    ImkError *error)
{
  size_t n_pixels, n_totals;
  ImkShcentroidTotal *totals;
  float *pixels;

  *t = (ImkShcentroidTemplates){.n = 0};
  if (c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME) {
    t->n = 1;
    t->width = least_width - 2 * c->template_margin;
    t->height = least_height - 2 * c->template_margin;
    t->cell = (uint32_t) c->template_cell;
    return IMK_OK;
  }
  if (c->n_templates == 0)
    return IMK_OK;
  t->n = c->n_templates;
  t->width = c->template_width;
  t->height = c->template_height;
  n_pixels = (size_t) t->width * t->height;
  n_totals = (size_t) (t->width + 1) * (t->height + 1);
  t->pixels = pixels = malloc (t->n * n_pixels * sizeof (*pixels));
  t->totals = totals = malloc (t->n * n_totals * sizeof (*totals));
  if (!pixels || !totals)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for %u templates of %ux%u pixels.", t->n, t->width,
        t->height);
  memcpy (pixels, c->templates, t->n * n_pixels * sizeof (*pixels));
  for (uint32_t i = 0; i < t->n; i++)
    imk_shcentroid_make_template (
        pixels + i * n_pixels, t->width, t->height, totals + i * n_totals);
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
