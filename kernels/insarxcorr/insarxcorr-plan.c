/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the patches are, and which lines and columns of the images they need.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "insarxcorr/insarxcorr-backend.h"

static ImkStatus
no_memory (const ImkInsarxcorrConfig *c, ImkError *error)
{
  return IMK_NO_MEMORY (error, "for %u x %u patches.", c->nx, c->ny);
}

/* --- sizes ---------------------------------------------------------------- */

/* Returns: the first even length from @n on that has no prime factor above 7,
 * as FFTs like it */
static uint32_t
good_length (uint32_t n)
{
  for (n += n % 2;; n += 2) {
    uint32_t rest = n;

    for (uint32_t factor = 2; factor <= 7; factor++)
      while (rest % factor == 0)
        rest /= factor;
    if (rest == 1)
      return n;
  }
}

static void
size_compat (ImkInsarxcorrPlan *plan)
{
  ImkInsarxcorrConfig *c = &plan->config;
  ImkInsarxcorrFine *f = &plan->fine;

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    plan->patch_width[s] = f->width[s] = 4 * c->xsearch;
    plan->patch_height[s] = f->height[s] = 4 * c->ysearch;
  }
  f->interp_x = c->range_interp;
  f->interp_y = 1;
  f->fft_width = 4 * c->xsearch;
  f->fft_height = 4 * c->ysearch;
  f->n_lags_x = 2 * c->xsearch;
  f->n_lags_y = 2 * c->ysearch;
  plan->n_samples = 4.0 * c->xsearch * c->ysearch / c->range_interp;
}

static void
size_precise (ImkInsarxcorrPlan *plan)
{
  ImkInsarxcorrConfig *c = &plan->config;
  ImkInsarxcorrFine *f = &plan->fine;

  c->window_width = c->window_width ? c->window_width : 2 * c->xsearch;
  c->window_height = c->window_height ? c->window_height : 2 * c->ysearch;
  f->interp_x = c->range_interp;
  f->interp_y = c->azimuth_interp;
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    uint32_t width = c->window_width + (s ? 2 * c->xsearch : 0);
    uint32_t height = c->window_height + (s ? 2 * c->ysearch : 0);

    plan->patch_width[s] = good_length (width + 2 * IMK_INSARXCORR_MARGIN);
    plan->patch_height[s] = good_length (height + 2 * IMK_INSARXCORR_MARGIN);
    f->width[s] = width * f->interp_x;
    f->height[s] = height * f->interp_y;
  }
  f->fft_width = good_length (f->width[IMK_INSARXCORR_SECONDARY]);
  f->fft_height = good_length (f->height[IMK_INSARXCORR_SECONDARY]);
  f->n_lags_x = 2 * c->xsearch * f->interp_x + 1;
  f->n_lags_y = 2 * c->ysearch * f->interp_y + 1;
  plan->n_samples = (double) c->window_width * c->window_height;
}

double
imk_insarxcorr_scatter (const ImkInsarxcorrPlan *plan, double band)
{
  return 2 / (3 * band) / sqrt (plan->n_samples);
}

double
imk_insarxcorr_significant (const ImkInsarxcorrPlan *plan, double band)
{
  const double pi = 3.14159265358979323846, chance = 0.01;
  const ImkInsarxcorrFine *f = &plan->fine;
  /* COMPAT accepts negative peaks as well. */
  double sides = plan->config.mode == IMK_INSARXCORR_COMPAT ? 2 : 1;
  double lags = (double) f->n_lags_x / f->interp_x * f->n_lags_y / f->interp_y;
  double rate = sides * lags * pow (2 * pi * band, 2) / 10 / pow (2 * pi, 1.5);
  double z = 3;

  for (int i = 0; i < 20; i++) /* z^2 / 2 = log (rate z / chance) */
    z = sqrt (2 * log (rate * z / chance));
  return 100 * fmin (z * imk_insarxcorr_scatter (plan, band), 0.99);
}

/* Returns: patches @step apart in @length */
static uint32_t
count_steps (uint32_t length, uint32_t patch, uint32_t step)
{
  return length > patch ? (length - patch) / step + 1 : 1;
}

void
imk_insarxcorr_plan_sizes (
    ImkInsarxcorrPlan *plan, const ImkInsarxcorrConfig *config)
{
  ImkInsarxcorrConfig *c = &plan->config;

  *plan = (ImkInsarxcorrPlan){.config = *config};
  if (c->mode == IMK_INSARXCORR_COMPAT)
    size_compat (plan);
  else
    size_precise (plan);
  if (c->grid == IMK_INSARXCORR_GRID_STEP) {
    c->nx = count_steps (c->width[0], plan->patch_width[1], c->step_x);
    c->ny = count_steps (c->height[0], plan->patch_height[1], c->step_y);
  }
  if (c->min_correlation == IMK_INSARXCORR_SIGNIFICANT)
    c->min_correlation =
        imk_insarxcorr_significant (plan, IMK_INSARXCORR_ASSUMED_BAND);
}

/* --- patches -------------------------------------------------------------- */

/* Returns: the centre of patch @i of @n */
static int32_t
grid_place (const ImkInsarxcorrConfig *c, int64_t i, uint32_t patch,
    uint32_t length, int64_t n, uint32_t step)
{
  int64_t room = (int64_t) length - 3 * (int64_t) patch / 2;

  switch (c->grid) {
  case IMK_INSARXCORR_GRID_STEP:
    return (int32_t) (patch / 2 + (i - 1) * step);
  case IMK_INSARXCORR_GRID_EVEN:
    return (int32_t) (patch + i * room / n);
  default:
    return (int32_t) (patch + i * (room / n));
  }
}

static bool
is_outside (const ImkInsarxcorrPlan *plan, const ImkInsarxcorrPatch *patch)
{
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    int64_t right = (int64_t) patch->column[s] + plan->patch_width[s];
    int64_t bottom = (int64_t) patch->line[s] + plan->patch_height[s];

    if (patch->column[s] < 0 || patch->line[s] < 0 ||
        right > plan->config.width[s] || bottom > plan->config.height[s])
      return true;
  }
  return false;
}

/* Lines beyond the last repeat it, and would correlate by chance. COMPAT gives
 * GMTSAR's numbers for them. */
static bool
has_no_line (const ImkInsarxcorrPlan *plan, const ImkInsarxcorrPatch *patch)
{
  int64_t first = patch->line[IMK_INSARXCORR_SECONDARY];

  return plan->config.mode == IMK_INSARXCORR_PRECISE &&
         (first >= plan->config.height[IMK_INSARXCORR_SECONDARY] ||
             first + plan->patch_height[IMK_INSARXCORR_SECONDARY] <= 0);
}

/* The mask covers the reference, whatever its own size. */
static bool
is_masked (const ImkInsarxcorrConfig *c, const ImkInsarxcorrPatch *patch)
{
  uint64_t x, y;

  if (!c->mask || patch->x < 0 || patch->y < 0 ||
      (uint32_t) patch->x >= c->width[0] || (uint32_t) patch->y >= c->height[0])
    return false;
  x = (uint64_t) patch->x * c->mask_width / c->width[0];
  y = (uint64_t) patch->y * c->mask_height / c->height[0];
  return c->mask[y * c->mask_width + x] == 0;
}

/* Columns are those of the images so far. */
static void
place_patch (const ImkInsarxcorrPlan *plan, uint32_t i, uint32_t j,
    ImkInsarxcorrPatch *patch)
{
  const ImkInsarxcorrConfig *c = &plan->config;
  /* GMTSAR skips the first column of its grid. */
  uint32_t skipped = c->grid == IMK_INSARXCORR_GRID_STEP ? 0 : 1;

  patch->x = grid_place (c, (int64_t) i + 1 + skipped, plan->patch_width[1],
      c->width[0], (int64_t) c->nx + 3, c->step_x);
  patch->y = grid_place (c, (int64_t) j + 1, plan->patch_height[1],
      c->height[0], (int64_t) c->ny + 1, c->step_y);
  patch->shift_x = c->rshift;
  patch->shift_y = c->ashift + (int32_t) (patch->y * c->prf_ratio);
  if (c->gross_offsets) {
    const double *gross = c->gross_offsets + 2 * ((size_t) j * c->nx + i);

    patch->shift_x += (int32_t) lrint (gross[0]);
    patch->shift_y += (int32_t) lrint (gross[1]);
  }
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    patch->column[s] = patch->x - (int32_t) plan->patch_width[s] / 2;
    patch->line[s] = patch->y - (int32_t) plan->patch_height[s] / 2;
  }
  patch->column[IMK_INSARXCORR_SECONDARY] += patch->shift_x;
  patch->line[IMK_INSARXCORR_SECONDARY] += patch->shift_y;
  if (is_masked (c, patch))
    patch->flags = IMK_INSARXCORR_MASKED | IMK_INSARXCORR_NO_DATA;
  else if (is_outside (plan, patch))
    patch->flags = IMK_INSARXCORR_OUTSIDE |
                   (has_no_line (plan, patch) ? IMK_INSARXCORR_NO_DATA : 0);
}

static int64_t
clamp (int64_t value, int64_t least, int64_t most)
{
  return value < least ? least : value > most ? most : value;
}

/* --- columns -------------------------------------------------------------- */

/* The columns of the image that @patch of @side covers are [from, to). */
static bool
covered (const ImkInsarxcorrPlan *plan, int side,
    const ImkInsarxcorrPatch *patch, uint32_t *from, uint32_t *to)
{
  int64_t width = plan->config.width[side], left = patch->column[side];

  *from = (uint32_t) clamp (left, 0, width);
  *to = (uint32_t) clamp (left + plan->patch_width[side], 0, width);
  return *from < *to && !(patch->flags & IMK_INSARXCORR_MASKED);
}

/* Makes spans of the columns that any patch covers. @starts: [width + 1]:
 * patches that begin at a column, less those that end before it; @spans may be
 * NULL to count them alone */
static void
gather_spans (const int32_t *starts, uint32_t width, ImkInsarxcorrBand *band)
{
  int64_t n_covering = 0;
  uint32_t first = 0;

  band->n_spans = band->width = 0;
  for (uint32_t x = 0; x <= width; x++) {
    int64_t next = n_covering + starts[x];

    if (n_covering == 0 && next > 0)
      first = x;
    if (n_covering > 0 && next == 0) {
      if (band->spans)
        band->spans[band->n_spans] = (ImkInsarxcorrSpan){
            .column = first, .width = x - first, .at = band->width};
      band->n_spans++;
      band->width += x - first;
    }
    n_covering = next;
  }
}

static ImkStatus
find_spans (const ImkInsarxcorrPlan *plan, ImkInsarxcorrPart *part, int side,
    ImkError *error)
{
  ImkInsarxcorrBand *band = &part->bands[side];
  uint32_t width = plan->config.width[side], from, to;
  int32_t *starts = calloc ((size_t) width + 1, sizeof (*starts));

  if (!starts)
    return no_memory (&plan->config, error);
  for (uint32_t j = 0; j < plan->config.ny; j++)
    for (uint32_t i = part->first; i < part->first + part->n; i++)
      if (covered (plan, side, &plan->patches[(size_t) j * plan->config.nx + i],
              &from, &to)) {
        starts[from]++;
        starts[to]--;
      }
  gather_spans (starts, width, band);
  band->spans = calloc (band->n_spans + 1, sizeof (*band->spans));
  if (band->spans)
    gather_spans (starts, width, band);
  free (starts);
  return band->spans ? IMK_OK : no_memory (&plan->config, error);
}

/* A patch lies in one span, but for what is beyond the image, which is beyond
 * the band as well: only a span at the edge of the image has such patches, and
 * it is the first or the last.
 * Returns: where @column of the image is in the band; beyond it for what is
 * beyond the image */
static int32_t
band_column (const ImkInsarxcorrPlan *plan, const ImkInsarxcorrBand *band,
    int side, int32_t column)
{
  int64_t right = (int64_t) column + plan->patch_width[side];
  uint32_t low = 0, high = band->n_spans;

  if (!band->n_spans || right <= 0)
    return -(int32_t) plan->patch_width[side];
  if (column >= (int64_t) plan->config.width[side])
    return (int32_t) band->width;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;

    if ((int64_t) band->spans[middle].column <= column)
      low = middle;
    else
      high = middle;
  }
  return (int32_t) (column - (int64_t) band->spans[low].column +
                    band->spans[low].at);
}

static void
move_to_band (ImkInsarxcorrPlan *plan, const ImkInsarxcorrPart *part, int side)
{
  for (uint32_t j = 0; j < plan->config.ny; j++)
    for (uint32_t i = part->first; i < part->first + part->n; i++) {
      ImkInsarxcorrPatch *patch =
          &plan->patches[(size_t) j * plan->config.nx + i];

      patch->column[side] =
          band_column (plan, &part->bands[side], side, patch->column[side]);
    }
}

static ImkStatus
make_parts (ImkInsarxcorrPlan *plan, ImkError *error)
{
  uint32_t nx = plan->config.nx, wanted = 1 + plan->config.n_devices;

  plan->n_parts = wanted < nx ? wanted : nx;
  for (uint32_t p = 0; p < plan->n_parts; p++) {
    ImkInsarxcorrPart *part = &plan->parts[p];

    part->first = (uint32_t) ((uint64_t) nx * p / plan->n_parts);
    part->n =
        (uint32_t) ((uint64_t) nx * (p + 1) / plan->n_parts) - part->first;
    for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
      part->bands[s].image_height = plan->config.height[s];
      IMK_TRY (find_spans (plan, part, s, error));
      move_to_band (plan, part, s);
    }
  }
  return IMK_OK;
}

/* --- lines ---------------------------------------------------------------- */

static ImkInsarxcorrLines
lines_of_row (const ImkInsarxcorrPlan *plan, int side, uint32_t row)
{
  const ImkInsarxcorrPatch *patches =
      &plan->patches[(size_t) row * plan->config.nx];
  int64_t most = (int64_t) plan->config.height[side] - 1;
  ImkInsarxcorrLines lines = {UINT32_MAX, 0};

  for (uint32_t i = 0; i < plan->config.nx; i++) {
    int64_t first = patches[i].line[side];
    int64_t last = first + plan->patch_height[side] - 1;

    if (patches[i].flags & IMK_INSARXCORR_MASKED)
      continue;
    first = clamp (first, 0, most);
    last = clamp (last, 0, most);
    if (first < lines.first)
      lines.first = (uint32_t) first;
    if (last + 1 > lines.end)
      lines.end = (uint32_t) last + 1;
  }
  return lines;
}

/* Keeps lines that a later row reads. */
static ImkStatus
find_lines (ImkInsarxcorrPlan *plan, int side, ImkError *error)
{
  uint32_t ny = plan->config.ny;
  ImkInsarxcorrLines *lines = calloc (ny, sizeof (*lines));

  plan->lines[side] = lines;
  if (!lines)
    return no_memory (&plan->config, error);
  for (uint32_t row = ny; row-- > 0;) {
    lines[row] = lines_of_row (plan, side, row);
    if (row + 1 < ny && lines[row + 1].first < lines[row].first)
      lines[row].first = lines[row + 1].first;
  }
  for (uint32_t row = 0; row < ny; row++) {
    if (lines[row].first > plan->config.height[side])
      lines[row].first = plan->config.height[side];
    if (lines[row].end > plan->end[side])
      plan->end[side] = lines[row].end;
  }
  return IMK_OK;
}

static uint32_t
n_read (ImkInsarxcorrLines lines)
{
  return lines.end > lines.first ? lines.end - lines.first : 0;
}

/* A band holds the lines of a row, @least, and, where memory allows, those that
 * the next row wants beyond, @most. */
static void
count_lines (const ImkInsarxcorrPlan *plan, ImkInsarxcorrSide side,
    uint32_t *least, uint32_t *most)
{
  uint32_t ny = plan->config.ny;

  *least = *most = 1;
  for (uint32_t row = 0; row < ny; row++) {
    ImkInsarxcorrLines lines = plan->lines[side][row];
    ImkInsarxcorrLines more = plan->lines[side][row + 1 < ny ? row + 1 : row];

    if (n_read (lines) > *least)
      *least = n_read (lines);
    /* Lines between two rows of patches are dropped. */
    if (more.first >= lines.end)
      more.end -= more.end > more.first ? more.first - lines.end : 0;
    if (more.end > lines.first && more.end - lines.first > *most)
      *most = more.end - lines.first;
  }
  *most = *most > *least ? *most : *least;
}

/* Returns: bytes of a line in the bands of all parts */
static uint64_t
line_size (const ImkInsarxcorrPlan *plan, int side)
{
  uint64_t width = 0;

  for (uint32_t p = 0; p < plan->n_parts; p++)
    width += plan->parts[p].bands[side].width;
  return width * imk_type_size (plan->config.type);
}

static void
give_lines (ImkInsarxcorrPlan *plan, int side, uint32_t n_lines)
{
  for (uint32_t p = 0; p < plan->n_parts; p++)
    plan->parts[p].bands[side].n_lines = n_lines;
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
    give_lines (plan, s, most[s]);
  }
  if (!limit)
    return IMK_OK;
  if (needed >= limit)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "memory-limit is %llu bytes; the lines of one row of patches take "
        "%llu, and the work on them more. Raise it, or take fewer patches a "
        "row (nx), or a smaller search.",
        (unsigned long long) limit, (unsigned long long) needed);
  plan->work_limit = limit;
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    uint32_t n_lines = most[s];

    if (wanted > needed + (limit - needed) / 2)
      n_lines =
          least[s] + (uint32_t) ((uint64_t) (most[s] - least[s]) *
                                 ((limit - needed) / 2) / (wanted - needed));
    give_lines (plan, s, n_lines);
    plan->work_limit -= n_lines * line_size (plan, s);
  }
  plan->work_limit /= plan->n_parts;
  return IMK_OK;
}

/* --- the plan ------------------------------------------------------------- */

ImkStatus
imk_insarxcorr_plan_patches (ImkInsarxcorrPlan *plan, ImkError *error)
{
  ImkInsarxcorrConfig *c = &plan->config;

  plan->patches = calloc ((size_t) c->nx * c->ny, sizeof (*plan->patches));
  if (!plan->patches)
    return no_memory (c, error);
  for (uint32_t j = 0; j < c->ny; j++)
    for (uint32_t i = 0; i < c->nx; i++)
      place_patch (plan, i, j, &plan->patches[(size_t) j * c->nx + i]);
  c->mask = NULL;
  c->gross_offsets = NULL;

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    IMK_TRY (find_lines (plan, s, error));
  IMK_TRY (make_parts (plan, error));
  return share_memory (plan, error);
}

void
imk_insarxcorr_plan_clear (ImkInsarxcorrPlan *plan)
{
  for (uint32_t p = 0; p < plan->n_parts; p++)
    for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
      free (plan->parts[p].bands[s].spans);
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++)
    free (plan->lines[s]);
  free (plan->patches);
}
