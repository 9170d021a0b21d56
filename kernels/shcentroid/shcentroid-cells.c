/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/shcentroid-cells.h"

#include <math.h>

#include "core/config.h"
#include "shcentroid/shcentroid-check.h"

typedef ImkShcentroidBox Box;

uint64_t
imk_shcentroid_count_cells (const ImkShcentroidConfig *c)
{
  return c->n_cells ? c->n_cells : (uint64_t) c->columns * c->rows;
}

uint32_t
imk_shcentroid_n_cells (const ImkShcentroidConfig *given)
{
  ImkShcentroidConfig own;
  const ImkShcentroidConfig *config =
      IMK_CONFIG_READ (shcentroid, given, &own, NULL);
  uint64_t n = config ? imk_shcentroid_count_cells (config) : 0;

  return n < UINT32_MAX ? (uint32_t) n : UINT32_MAX;
}

/* The edges are evaluated from the index and floored once: adjacent cells
 * share an edge, whatever the pitch. */
static double
grid_edge (double origin, double pitch, uint32_t index)
{
  return floor (origin + index * pitch);
}

static double
grid_end (
    const ImkShcentroidConfig *c, double origin, double pitch, uint32_t index)
{
  return c->grid_rule == IMK_SHCENTROID_RULE_PAPER
             ? floor (grid_edge (origin, pitch, index) + pitch)
             : grid_edge (origin, pitch, index + 1);
}

Box
imk_shcentroid_grid_box (
    const ImkShcentroidConfig *c, uint32_t row, uint32_t column)
{
  return (Box){
      .left = grid_edge (c->x0, c->pitch_x, column),
      .top = grid_edge (c->y0, c->pitch_y, row),
      .right = grid_end (c, c->x0, c->pitch_x, column),
      .bottom = grid_end (c, c->y0, c->pitch_y, row),
  };
}

Box
imk_shcentroid_cell_box (const ImkShcentroidCell *cell)
{
  return (Box){
      .left = floor (cell->x),
      .top = floor (cell->y),
      .right = floor (cell->x + cell->width),
      .bottom = floor (cell->y + cell->height),
  };
}

ImkShcentroidBox
imk_shcentroid_whole_cell (const ImkShcentroidConfig *c, uint32_t i)
{
  Box box = c->n_cells
                ? imk_shcentroid_cell_box (&c->cells[i])
                : imk_shcentroid_grid_box (c, i / c->columns, i % c->columns);

  box.left += c->margin;
  box.top += c->margin;
  box.right -= c->margin;
  box.bottom -= c->margin;
  return box;
}

static ImkShcentroidRect
clip (const ImkShcentroidConfig *c, Box box)
{
  double left = fmax (box.left, 0.0), right = fmin (box.right, c->width);
  double top = fmax (box.top, 0.0), bottom = fmin (box.bottom, c->height);
  bool clipped = left != box.left || right != box.right || top != box.top ||
                 bottom != box.bottom;

  /* the margin is taken from the cell, not from what is left of it */
  left = fmin (fmax (left, box.left + c->margin), c->width);
  right = fmax (left, fmin (right, box.right - c->margin));
  top = fmin (fmax (top, box.top + c->margin), c->height);
  bottom = fmax (top, fmin (bottom, box.bottom - c->margin));

  return (ImkShcentroidRect){
      .x = (uint16_t) left,
      .y = (uint16_t) top,
      .width = (uint16_t) (right - left),
      .height = (uint16_t) (bottom - top),
      .flags = clipped ? IMK_SHCENTROID_CLIPPED : 0,
      .min_flux = NAN,
      .threshold = NAN,
  };
}

static ImkShcentroidRect
grid_rect (const ImkShcentroidConfig *c, uint32_t index)
{
  uint32_t row = index / c->columns, column = index % c->columns;
  ImkShcentroidRect rect = clip (c, imk_shcentroid_grid_box (c, row, column));

  rect.ref_x = c->x0 + (column + 0.5) * c->pitch_x - 0.5;
  rect.ref_y = c->y0 + (row + 0.5) * c->pitch_y - 0.5;
  return rect;
}

static ImkShcentroidRect
map_rect (const ImkShcentroidConfig *c, uint32_t index)
{
  const ImkShcentroidCell *cell = &c->cells[index];
  ImkShcentroidRect rect = clip (c, imk_shcentroid_cell_box (cell));

  rect.ref_x =
      isnan (cell->ref_x) ? cell->x + cell->width / 2 - 0.5 : cell->ref_x;
  rect.ref_y =
      isnan (cell->ref_y) ? cell->y + cell->height / 2 - 0.5 : cell->ref_y;
  rect.min_flux = cell->min_flux;
  rect.threshold = cell->threshold;
  return rect;
}

ImkShcentroidRect
imk_shcentroid_cell_rect (const ImkShcentroidConfig *c, uint32_t i)
{
  ImkShcentroidRect rect = c->n_cells ? map_rect (c, i) : grid_rect (c, i);

  if (c->references) {
    rect.ref_x = c->references[2 * i];
    rect.ref_y = c->references[2 * i + 1];
  }
  return rect;
}

ImkShcentroidCell
imk_shcentroid_cell (const ImkShcentroidConfig *given, uint32_t index)
{
  ImkShcentroidConfig own;
  const ImkShcentroidConfig *config =
      IMK_CONFIG_READ (shcentroid, given, &own, NULL);
  ImkShcentroidRect r = {0};

  if (config)
    r = imk_shcentroid_cell_rect (config, index);
  return (ImkShcentroidCell){
      r.x, r.y, r.width, r.height, r.ref_x, r.ref_y, r.min_flux, r.threshold};
}

void
imk_shcentroid_get_references (const ImkShcentroidConfig *given, double *xy)
{
  ImkShcentroidConfig own;
  const ImkShcentroidConfig *config =
      IMK_CONFIG_READ (shcentroid, given, &own, NULL);
  uint32_t n = imk_shcentroid_n_cells (given);

  for (uint32_t i = 0; i < n; i++) {
    ImkShcentroidRect rect = imk_shcentroid_cell_rect (config, i);

    xy[2 * i] = rect.ref_x;
    xy[2 * i + 1] = rect.ref_y;
  }
}
