/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shcentroid-fit.h"

#include <math.h>
#include <stdlib.h>

#include "core/config.h"
#include "shcentroid/shcentroid-cells.h"
#include "shcentroid/shcentroid-check.h"

enum {
  LEAST_SPOTS = 7, /* as of a lattice */
  SIDE = 12,       /* pixels of a cell, at least, in which a grid is sought */
};

#define LEAST_STRENGTH 0.1 /* of a spot, relative to the median one */
#define APART 0.12         /* rms of a lattice, of its pitch, that is none */
#define AT_EDGE 0.35       /* from the middle of a cell, of its side */
#define TOO_FINE 1.3       /* a lattice over the cells of a grid */

/* --- the lattice ---------------------------------------------------------- */

/* The cells that are not cut by the frame tell how large all are. */
static void
measure_cells (const ImkShcentroidConfig *c, ImkShcentroidFit *fit)
{
  uint32_t n = imk_shcentroid_n_cells (c);

  for (uint32_t i = 0; i < n && fit->cell_width == 0; i++) {
    ImkShcentroidBox box = imk_shcentroid_whole_cell (c, i);

    if (box.left >= 0 && box.top >= 0 && box.right <= c->width &&
        box.bottom <= c->height) {
      fit->cell_width = box.right - box.left;
      fit->cell_height = box.bottom - box.top;
    }
  }
  if (!c->n_cells) {
    fit->cell_width = c->pitch_x;
    fit->cell_height = c->pitch_y;
  }
}

static float
sample_at (const ImkImage *frame, uint32_t x, uint32_t y)
{
  const uint8_t *row = (const uint8_t *) frame->data + y * frame->stride;

  return frame->type == IMK_TYPE_F32   ? ((const float *) row)[x]
         : frame->type == IMK_TYPE_U16 ? ((const uint16_t *) row)[x]
                                       : row[x];
}

/* Means of @factor x @factor samples: the finder takes as long as there are
 * pixels. Returns: [height][width], NULL without memory */
static float *
reduce (const ImkImage *frame, uint32_t factor, ImkImage *to)
{
  float scale = 1.0f / (float) (factor * factor), *pixels;

  *to = (ImkImage){.type = IMK_TYPE_F32,
      .channels = 1,
      .width = frame->width / factor,
      .height = frame->height / factor};
  to->stride = to->width * sizeof (float);
  pixels = malloc (to->stride * to->height);
  to->data = pixels;
  for (uint32_t y = 0; pixels && y < to->height; y++)
    for (uint32_t x = 0; x < to->width; x++) {
      float sum = 0;

      for (uint32_t v = 0; v < factor; v++)
        for (uint32_t u = 0; u < factor; u++)
          sum += sample_at (frame, x * factor + u, y * factor + v);
      pixels[(size_t) y * to->width + x] = sum * scale;
    }
  return pixels;
}

/* From pixels of a reduced frame to those of the frame. */
static void
enlarge (ImkShcentroidGrid *g, double factor)
{
  double *const lengths[] = {
      &g->pitch, &g->column_x, &g->column_y, &g->row_x, &g->row_y, &g->rms};
  double shift = (factor - 1) / 2;

  for (size_t i = 0; i < sizeof (lengths) / sizeof (*lengths); i++)
    *lengths[i] *= factor;
  g->origin_x = g->origin_x * factor + shift;
  g->origin_y = g->origin_y * factor + shift;
  for (uint32_t k = 0; k < g->n_spots; k++) {
    g->spots[k].x = g->spots[k].x * factor + shift;
    g->spots[k].y = g->spots[k].y * factor + shift;
  }
}

static ImkStatus
find_lattice (const ImkImage *frame, uint32_t factor, ImkShcentroidGrid *grid,
    ImkError *error)
{
  ImkImage small;
  float *pixels = reduce (frame, factor, &small);
  ImkStatus status;

  if (!pixels)
    return IMK_NO_MEMORY (error, "to look for the grid of %ux%u pixels.",
        frame->width, frame->height);
  status = imk_shcentroid_find_grid (
      &small, IMK_SHCENTROID_LATTICE_ANY, LEAST_STRENGTH, grid, error);
  free (pixels);
  if (status == IMK_OK)
    enlarge (grid, factor);
  return status;
}

/* --- cells and points ----------------------------------------------------- */

/* The cell of each pixel, from 1 on; 0 for none. @owners: [height][width] */
static void
paint_cells (const ImkShcentroidConfig *c, uint32_t *owners)
{
  uint32_t n = imk_shcentroid_n_cells (c);

  for (uint32_t i = 0; i < n; i++) {
    ImkShcentroidRect r = imk_shcentroid_cell_rect (c, i);

    for (uint32_t y = r.y; y < (uint32_t) r.y + r.height; y++)
      for (uint32_t x = r.x; x < (uint32_t) r.x + r.width; x++)
        owners[(size_t) y * c->width + x] = i + 1;
  }
}

/* Returns: the cell of a lattice point, from 1 on; 0 for none */
static uint32_t
cell_at (
    const ImkShcentroidConfig *c, const uint32_t *owners, double x, double y)
{
  int64_t column = llrint (x), row = llrint (y);

  return column < 0 || row < 0 || column >= c->width || row >= c->height
             ? 0
             : owners[row * c->width + column];
}

static bool
is_at_edge (const ImkShcentroidConfig *c, uint32_t cell, double x, double y)
{
  ImkShcentroidBox box = imk_shcentroid_whole_cell (c, cell);
  double width = box.right - box.left, height = box.bottom - box.top;

  return fabs (x - (box.left + box.right - 1) / 2) > AT_EDGE * width ||
         fabs (y - (box.top + box.bottom - 1) / 2) > AT_EDGE * height;
}

/* @owners: of the frame; @counts: [cells], all 0 */
static void
count_points (const ImkShcentroidConfig *c, const uint32_t *owners,
    uint32_t *counts, ImkShcentroidFit *fit)
{
  const ImkShcentroidGrid *g = &fit->grid;

  for (uint32_t k = 0; k < g->n_spots; k++) {
    uint32_t cell = cell_at (c, owners, g->spots[k].x, g->spots[k].y);

    if (cell > 0)
      counts[cell - 1]++;
  }
  for (uint32_t k = 0; k < g->n_spots; k++) {
    double x = g->spots[k].x, y = g->spots[k].y;
    uint32_t cell = cell_at (c, owners, x, y);

    if (cell == 0)
      continue;
    fit->n_spots++;
    fit->n_misplaced += counts[cell - 1] > 1 || is_at_edge (c, cell - 1, x, y);
  }
}

static ImkStatus
compare (const ImkShcentroidConfig *c, ImkShcentroidFit *fit, ImkError *error)
{
  const ImkShcentroidGrid *g = &fit->grid;
  uint32_t *owners = calloc ((size_t) c->width * c->height, sizeof (*owners));
  uint32_t *counts = calloc (imk_shcentroid_n_cells (c), sizeof (*counts));
  double side = sqrt (fit->cell_width * fit->cell_height);
  bool is_too_fine =
      !c->n_cells && imk_shcentroid_grid_side (g) > TOO_FINE * side;
  ImkStatus status = IMK_OK;

  if (owners && counts) {
    paint_cells (c, owners);
    count_points (c, owners, counts, fit);
    fit->is_off = fit->n_spots >= LEAST_SPOTS &&
                  (is_too_fine || 4 * fit->n_misplaced >= fit->n_spots);
  } else {
    status = IMK_NO_MEMORY (error, "to compare %u cells with the spots.",
        imk_shcentroid_n_cells (c));
  }
  free (owners);
  free (counts);
  return status;
}

/* Aberrations and stray light can look like a lattice that is none. */
static bool
is_certain (const ImkShcentroidGrid *g)
{
  return g->rms <= APART * g->pitch && 4 * g->n_unplaced <= g->n_spots;
}

ImkStatus
imk_shcentroid_check_fit (const ImkShcentroidConfig *given,
    const ImkImage *frame, ImkShcentroidFit *fit, ImkError *error)
{
  ImkShcentroidConfig own;
  const ImkShcentroidConfig *c =
      IMK_CONFIG_READ (shcentroid, given, &own, error);
  ImkShcentroidFit found = {0};
  double factor;
  ImkStatus status;

  if (!c)
    return IMK_ERROR_CONFIG;
  IMK_TRY (imk_image_check (
      frame, "input", c->type, 1, c->width, c->height, false, error));
  measure_cells (c, &found);
  factor = floor (fmin (found.cell_width, found.cell_height) / SIDE);
  status = find_lattice (
      frame, factor > 1 ? (uint32_t) factor : 1, &found.grid, error);
  if (status == IMK_OK && is_certain (&found.grid))
    status = compare (c, &found, error);
  else if (status == IMK_ERROR_IMAGE) /* there is no lattice */
    status = IMK_OK;
  free (found.grid.spots);
  found.grid.spots = NULL;
  if (status == IMK_OK)
    *fit = found;
  return status;
}
