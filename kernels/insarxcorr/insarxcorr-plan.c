/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the patches are, and which lines and columns of the images they need.
 */
#include <stdlib.h>
#include <string.h>

#include "insarxcorr/insarxcorr-backend.h"

static ImkStatus
no_memory (const ImkInsarxcorrConfig *c, ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory for %u x %u patches.", c->nx, c->ny);
}

/* --- patches -------------------------------------------------------------- */

/* Returns: @i / @n of @length */
static int64_t
grid_step (const ImkInsarxcorrConfig *c, int64_t i, int64_t length, int64_t n)
{
  return c->grid == IMK_INSARXCORR_GRID_EVEN ? i * length / n
                                             : i * (length / n);
}

static bool
is_outside (const ImkInsarxcorrPlan *plan, const ImkInsarxcorrPatch *patch)
{
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    int64_t right = (int64_t) patch->column[s] + plan->patch_width;
    int64_t bottom = (int64_t) patch->line[s] + plan->patch_height;

    if (patch->column[s] < 0 || patch->line[s] < 0 ||
        right > plan->config.width[s] || bottom > plan->config.height[s])
      return true;
  }
  return false;
}

/* Columns are those of the images so far. */
static void
place_patch (const ImkInsarxcorrPlan *plan, uint32_t i, uint32_t j,
    ImkInsarxcorrPatch *patch)
{
  const ImkInsarxcorrConfig *c = &plan->config;
  int64_t free_x = (int64_t) c->width[0] - 6 * (int64_t) c->xsearch;
  int64_t free_y = (int64_t) c->height[0] - 6 * (int64_t) c->ysearch;

  patch->x = (int32_t) (plan->patch_width +
                        grid_step (c, (int64_t) i + 2, free_x, c->nx + 3));
  patch->y = (int32_t) (plan->patch_height +
                        grid_step (c, (int64_t) j + 1, free_y, c->ny + 1));
  patch->shift_x = c->rshift;
  patch->shift_y = c->ashift + (int32_t) (patch->y * c->prf_ratio);
  patch->column[0] = patch->x - (int32_t) plan->patch_width / 2;
  patch->line[0] = patch->y - (int32_t) plan->patch_height / 2;
  patch->column[1] = patch->column[0] + patch->shift_x;
  patch->line[1] = patch->line[0] + patch->shift_y;
  patch->flags = is_outside (plan, patch) ? IMK_INSARXCORR_OUTSIDE : 0;
}

/* --- columns ---------------------------------------------------------------
 */

/* Adds [@from, @to) behind spans that begin further left, or in them. */
static void
add_span (ImkInsarxcorrBand *band, uint32_t from, uint32_t to)
{
  ImkInsarxcorrSpan *last = band->spans + band->n_spans - 1;

  if (band->n_spans && from <= last->column + last->width) {
    if (to > last->column + last->width) {
      band->width += to - (last->column + last->width);
      last->width = to - last->column;
    }
    return;
  }
  band->spans[band->n_spans++] = (ImkInsarxcorrSpan){
      .column = from, .width = to - from, .at = band->width};
  band->width += to - from;
}

static int64_t
clamp (int64_t value, int64_t least, int64_t most)
{
  return value < least ? least : value > most ? most : value;
}

/* All rows have their patches in the columns of the first. A patch lies in one
 * span, but for what is beyond the image, which is beyond the band as well:
 * only a span at the edge of the image has such patches, and it is the first
 * or the last. */
static void
find_spans (ImkInsarxcorrPlan *plan, int side)
{
  ImkInsarxcorrBand *band = &plan->bands[side];
  int64_t width = plan->config.width[side];

  for (uint32_t i = 0; i < plan->config.nx; i++) {
    int64_t left = plan->patches[i].column[side];
    int64_t from = clamp (left, 0, width);
    int64_t to = clamp (left + plan->patch_width, 0, width);

    if (from < to)
      add_span (band, (uint32_t) from, (uint32_t) to);
  }
}

/* Returns: where @column of the image is in the band; beyond it for what is
 * beyond the image */
static int32_t
band_column (const ImkInsarxcorrPlan *plan, int side, int32_t column)
{
  const ImkInsarxcorrBand *band = &plan->bands[side];
  const ImkInsarxcorrSpan *span = band->spans;
  int64_t right = (int64_t) column + plan->patch_width;

  if (!band->n_spans || right <= 0)
    return -(int32_t) plan->patch_width;
  if (column >= (int64_t) plan->config.width[side])
    return (int32_t) band->width;
  for (uint32_t i = 1; i < band->n_spans; i++)
    if ((int64_t) band->spans[i].column <= column)
      span = band->spans + i;
  return (int32_t) (column - (int64_t) span->column + span->at);
}

static void
move_to_band (ImkInsarxcorrPlan *plan, int side)
{
  const ImkInsarxcorrConfig *c = &plan->config;

  for (uint32_t i = 0; i < c->nx; i++) {
    int32_t column = band_column (plan, side, plan->patches[i].column[side]);

    for (uint32_t j = 0; j < c->ny; j++)
      plan->patches[(size_t) j * c->nx + i].column[side] = column;
  }
}

/* --- lines -----------------------------------------------------------------
 */

ImkInsarxcorrLines
imk_insarxcorr_plan_lines (
    const ImkInsarxcorrPlan *plan, ImkInsarxcorrSide side, uint32_t row)
{
  const ImkInsarxcorrPatch *patch =
      &plan->patches[(size_t) row * plan->config.nx];
  int64_t first = patch->line[side];
  int64_t last = first + plan->patch_height - 1;
  int64_t most = (int64_t) plan->config.height[side] - 1;

  return (ImkInsarxcorrLines){
      .first = (uint32_t) clamp (first, 0, most),
      .end = (uint32_t) clamp (last, 0, most) + 1,
  };
}

/* A band holds the lines of a row, @least, and, where memory allows, those that
 * the next row wants beyond, @most. */
static void
count_lines (const ImkInsarxcorrPlan *plan, ImkInsarxcorrSide side,
    uint32_t *least, uint32_t *most)
{
  *least = *most = 1;
  for (uint32_t row = 0; row < plan->config.ny; row++) {
    uint32_t next = row + 1 < plan->config.ny ? row + 1 : row;
    ImkInsarxcorrLines lines = imk_insarxcorr_plan_lines (plan, side, row);
    ImkInsarxcorrLines more = imk_insarxcorr_plan_lines (plan, side, next);

    if (lines.end - lines.first > *least)
      *least = lines.end - lines.first;
    /* lines between two rows are not kept */
    if (more.first >= lines.end)
      more.end -= more.first - lines.end;
    if (more.end - lines.first > *most)
      *most = more.end - lines.first;
  }
}

static uint64_t
line_size (const ImkInsarxcorrPlan *plan, int side)
{
  return (uint64_t) plan->bands[side].width * imk_type_size (plan->config.type);
}

/* Gives each band its lines; half of what the limit leaves is for work. */
static ImkStatus
share_memory (ImkInsarxcorrPlan *plan, ImkError *error)
{
  uint64_t limit = plan->config.memory_limit, needed = 0, wanted = 0;
  uint32_t least[IMK_INSARXCORR_N_SIDES], most[IMK_INSARXCORR_N_SIDES];

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    count_lines (plan, s, &least[s], &most[s]);
    needed += least[s] * line_size (plan, s);
    wanted += most[s] * line_size (plan, s);
    plan->bands[s].n_lines = most[s];
  }
  if (!limit)
    return IMK_OK;
  if (needed >= limit)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "memory-limit is %llu bytes; the lines of one row of patches take "
        "%llu, and the work on them more. Raise it, or take fewer patches a "
        "row (nx), or a smaller search.",
        (unsigned long long) limit, (unsigned long long) needed);
  if (wanted > needed + (limit - needed) / 2)
    for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
      plan->bands[s].n_lines =
          least[s] + (uint32_t) ((uint64_t) (most[s] - least[s]) *
                                 ((limit - needed) / 2) / (wanted - needed));
  plan->work_limit = limit;
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    plan->work_limit -= plan->bands[s].n_lines * line_size (plan, s);
  return IMK_OK;
}

/* --- the plan --------------------------------------------------------------
 */

ImkStatus
imk_insarxcorr_plan_init (
    ImkInsarxcorrPlan *plan, const ImkInsarxcorrConfig *config, ImkError *error)
{
  const ImkInsarxcorrConfig *c = config;

  *plan = (ImkInsarxcorrPlan){
      .config = *c,
      .patch_width = 4 * c->xsearch,
      .patch_height = 4 * c->ysearch,
  };
  plan->patches = calloc ((size_t) c->nx * c->ny, sizeof (*plan->patches));
  if (!plan->patches)
    return no_memory (c, error);
  for (uint32_t j = 0; j < c->ny; j++)
    for (uint32_t i = 0; i < c->nx; i++)
      place_patch (plan, i, j, &plan->patches[(size_t) j * c->nx + i]);

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    plan->bands[s].image_height = c->height[s];
    plan->bands[s].spans = calloc (c->nx, sizeof (*plan->bands[s].spans));
    if (!plan->bands[s].spans)
      return no_memory (c, error);
    find_spans (plan, s);
    move_to_band (plan, s);
  }
  return share_memory (plan, error);
}

void
imk_insarxcorr_plan_clear (ImkInsarxcorrPlan *plan)
{
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    free (plan->bands[s].spans);
  free (plan->patches);
}
