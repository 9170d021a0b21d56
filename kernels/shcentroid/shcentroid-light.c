/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shcentroid-light.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/config.h"
#include "shcentroid/shcentroid-cells.h"
#include "shcentroid/arithmetic/float-centroid.h"
#include "shcentroid/shcentroid-check.h"

/* NaN for a bad pixel, or one that is not finite. */
static float
value_at (
    const ImkShcentroidConfig *c, const ImkImage *frame, uint32_t x, uint32_t y)
{
  const uint8_t *row = (const uint8_t *) frame->data + y * frame->stride;
  size_t at = (size_t) y * c->width + x;
  float v;

  if (c->type == IMK_TYPE_F32) {
    v = ((const float *) row)[x];
  } else {
    uint32_t sample =
        c->type == IMK_TYPE_U8 ? row[x] : ((const uint16_t *) row)[x];

    v = c->lut ? c->lut[sample] : (float) sample;
  }
  if ((c->bad && c->bad[at]) || (c->flat && c->flat[at] == 0.0f) ||
      !(fabsf (v) <= 1e30f))
    return NAN;
  return (v - (c->dark ? c->dark[at] : 0.0f)) * (c->flat ? c->flat[at] : 1.0f);
}

static int
compare_descending (const void *a, const void *b)
{
  float x = *(const float *) a, y = *(const float *) b;

  return (x < y) - (x > y);
}

/* A border has some ten values: qsort () takes three times as long. */
static void
sort (float *values, uint32_t n)
{
  if (n > 200) {
    qsort (values, n, sizeof (*values), compare_descending);
    return;
  }
  for (uint32_t i = 1; i < n; i++) {
    float value = values[i];
    uint32_t k = i;

    for (; k > 0 && values[k - 1] < value; k--)
      values[k] = values[k - 1];
    values[k] = value;
  }
}

/* The largest becomes the first, and the smallest the last. */
static void
put_ends (float *values, uint32_t n)
{
  uint32_t first = 0, last = 0;
  float value;

  for (uint32_t i = 1; i < n; i++) {
    first = values[i] > values[first] ? i : first;
    last = values[i] < values[last] ? i : last;
  }
  if (n < 2 || first == last)
    return;
  value = values[first], values[first] = values[0], values[0] = value;
  last = last == 0 ? first : last;
  value = values[last], values[last] = values[n - 1], values[n - 1] = value;
}

/* @values: the largest is the first and the smallest the last; all in order
 * where the brightest count */
static ImkShcentroidLevel
level_of (
    const ImkShcentroidConfig *c, double own, const float *values, uint32_t n)
{
  ImkShcentroidParams params = imk_shcentroid_params (c, c->fields);
  uint32_t rank = params.brightest ? imk_shcentroid_rank (&params, n) : 0;
  double brightest = -imk_shcentroid_infinity ();

  if (rank > 0) {
    uint32_t k = rank - 1;

    while (params.subtract && k < n && values[k] == values[rank - 1])
      k++;
    brightest = k < n ? values[k] : brightest;
  }
  return imk_shcentroid_level (
      &params, own, values[n - 1], values[0], brightest);
}

static double
part_of (float value, ImkShcentroidLevel level)
{
  return value >= level.least ? value - level.pedestal : 0.0;
}

/* At a higher threshold little is left of a spot. */
#define MOST_FRACTION 0.6

/* --- a cell --------------------------------------------------------------- */

/* Of one cell with a spot. */
typedef struct Cell {
  float share, radius;
  float level, noise; /* L and s */
  float min, max;
  float height, step;
  float min_flux;
  float pedestal; /* what is subtracted of the flux, of what is left */
} Cell;

/* Of one cell, whether it is LIT or not. */
typedef struct Trouble {
  bool hot, uneven, doubled;
} Trouble;

/* Room for the values of a cell: @all as level_of () wants them, the others in
 * order, the largest first. */
typedef struct Room {
  float *all, *border, *steps;
  uint32_t n, n_border, n_steps;
} Room;

/* The pixel @k of the way around a cell, or along one of one row or column. */
static void
walk (const ImkShcentroidRect *r, uint32_t k, uint32_t *u, uint32_t *v)
{
  uint32_t right = r->width - 1, bottom = r->height - 1;

  if (right == 0 || bottom == 0) {
    *u = right ? k : 0;
    *v = bottom ? k : 0;
  } else if (k < right) {
    *u = k, *v = 0;
  } else if (k < right + bottom) {
    *u = right, *v = k - right;
  } else if (k < 2 * right + bottom) {
    *u = 2 * right + bottom - k, *v = bottom;
  } else {
    *u = 0, *v = 2 * (right + bottom) - k;
  }
}

static uint32_t
way_around (const ImkShcentroidRect *r)
{
  return r->width == 1 || r->height == 1
             ? (uint32_t) r->width * r->height
             : 2u * (r->width - 1u + r->height - 1u);
}

/* Of one side of a cell. */
static float
median_of_side (const ImkShcentroidConfig *c, const ImkImage *frame,
    const ImkShcentroidRect *r, bool upright, bool last, float *values)
{
  uint32_t length = upright ? r->height : r->width, n = 0;

  for (uint32_t k = 0; k < length; k++) {
    uint32_t x = r->x + (upright ? (last ? r->width - 1u : 0) : k);
    uint32_t y = r->y + (upright ? k : (last ? r->height - 1u : 0));
    float value = value_at (c, frame, x, y);

    if (!isnan (value))
      values[n++] = value;
  }
  sort (values, n);
  return n ? values[n / 2] : NAN;
}

/* Does the background rise in x and y by more than half of @height? */
static bool
is_uneven (const ImkShcentroidConfig *c, const ImkImage *frame,
    const ImkShcentroidRect *r, float height, float *room)
{
  float rise = 0.0f;

  for (int upright = 0; upright < 2; upright++)
    rise += fabsf (median_of_side (c, frame, r, upright, true, room) -
                   median_of_side (c, frame, r, upright, false, room));
  return rise > 0.5f * height;
}

/* The first pixel with the value @max in a cell that has one. */
static void
find_peak (const ImkShcentroidConfig *c, const ImkImage *frame,
    const ImkShcentroidRect *r, float max, uint32_t *left, uint32_t *top)
{
  for (uint32_t v = 0; v < r->height; v++)
    for (uint32_t u = 0; u < r->width; u++)
      if (value_at (c, frame, r->x + u, r->y + v) == max) {
        *left = r->x + u;
        *top = r->y + v;
        return;
      }
}

/* Is the largest of a cell a single pixel, ten times as far above the median
 * of its neighbours as any of them, and as noise? A spot of sigma 0.6 is none.
 */
static bool
is_hot (const ImkShcentroidConfig *c, const ImkImage *frame, uint32_t left,
    uint32_t top, float max, float noise)
{
  uint32_t n = 0;
  float near[9];

  for (uint32_t y = top ? top - 1 : 0; y <= top + 1 && y < c->height; y++)
    for (uint32_t x = left ? left - 1 : 0; x <= left + 1 && x < c->width; x++)
      if ((x != left || y != top) && !isnan (value_at (c, frame, x, y)))
        near[n++] = value_at (c, frame, x, y);
  sort (near, n);
  return n >= 3 &&
         max - near[n / 2] > 10 * fmaxf (near[0] - near[n / 2], noise);
}

/* Of the frame: neighbours may be in another cell. */
static bool
is_peak (const ImkShcentroidConfig *c, const ImkImage *frame, uint32_t left,
    uint32_t top)
{
  float value = value_at (c, frame, left, top);

  for (uint32_t y = top ? top - 1 : 0; y <= top + 1 && y < c->height; y++)
    for (uint32_t x = left ? left - 1 : 0; x <= left + 1 && x < c->width; x++)
      if (value_at (c, frame, x, y) > value)
        return false;
  return true;
}

/* Is there another peak of at least the value @least, a third of the cell from
 * the one at (@left, @top)? */
static bool
is_doubled (const ImkShcentroidConfig *c, const ImkImage *frame,
    const ImkShcentroidRect *r, uint32_t left, uint32_t top, float least)
{
  for (uint32_t y = r->y; y < (uint32_t) r->y + r->height; y++)
    for (uint32_t x = r->x; x < (uint32_t) r->x + r->width; x++) {
      uint32_t dx = x > left ? x - left : left - x;
      uint32_t dy = y > top ? y - top : top - y;

      if ((3 * dx > r->width || 3 * dy > r->height) &&
          value_at (c, frame, x, y) >= least && is_peak (c, frame, x, y))
        return true;
    }
  return false;
}

/* All of a cell, its border, and the differences of neighbours there. */
static void
gather (const ImkShcentroidConfig *c, const ImkImage *frame,
    const ImkShcentroidRect *rect, Room *room)
{
  float before = NAN;

  room->n = room->n_border = room->n_steps = 0;
  for (uint32_t v = 0; v < rect->height; v++)
    for (uint32_t u = 0; u < rect->width; u++) {
      float value = value_at (c, frame, rect->x + u, rect->y + v);

      if (!isnan (value))
        room->all[room->n++] = value;
    }
  for (uint32_t k = 0; k < way_around (rect); k++) {
    uint32_t u, v;
    float value;

    walk (rect, k, &u, &v);
    value = value_at (c, frame, rect->x + u, rect->y + v);
    if (!isnan (value))
      room->border[room->n_border++] = value;
    if (!isnan (value - before))
      room->steps[room->n_steps++] = fabsf (value - before);
    before = value;
  }
  if (c->brightest > 0)
    sort (room->all, room->n);
  else
    put_ends (room->all, room->n);
  sort (room->border, room->n_border);
  sort (room->steps, room->n_steps);
}

/* Quantised noise has ties: from this share of steps of 0 on, the smallest
 * other step is the quantum of values of unknown origin. Shifted bits and
 * integers in float32 have one. */
#define TIES 0.1f

/* The distance of neighbouring values: 0 where they are continuous. */
static float
quantum_of (const ImkShcentroidConfig *c, const Room *room)
{
  float least = c->type == IMK_TYPE_F32 || c->lut ? 0.0f : 1.0f;
  uint32_t n = room->n_steps;

  while (n > 0 && room->steps[n - 1] == 0.0f)
    n--;
  if (n == 0 || (float) (room->n_steps - n) < TIES * (float) room->n_steps)
    return least;
  return fmaxf (least, room->steps[n - 1]);
}

/* The value that @part of @values, in descending order, exceed, each of them
 * spread evenly over @quantum. So it is continuous in the noise, and in the
 * place of the mean between two integers. */
static float
exceeded_evenly (const float *values, uint32_t n, float part, float quantum)
{
  uint32_t k = (uint32_t) (part * (float) n), first = k, end = k;
  float low = values[k] - quantum / 2, high = values[k] + quantum / 2;

  /* the others count as 1 or 0 in each round */
  while (first > 0 && values[first - 1] - high < quantum)
    first--;
  while (end < n && low - values[end] < quantum)
    end++;
  for (int round = 0; quantum > 0.0f && round < 12; round++) {
    float middle = (low + high) / 2, above = (float) first;

    for (uint32_t i = first; i < end; i++) {
      float share = (values[i] - middle) / quantum + 0.5f;

      above += share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share;
    }
    if (above > part * (float) n)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

/* The rms of the steps, none of them more than @most, as of one value. */
static float
rms_step (const Room *room, float most, float quantum)
{
  float sum = 0.0f;

  for (uint32_t k = 0; k < room->n_steps; k++) {
    float step = fminf (room->steps[k], most);

    sum += step * step;
  }
  return sqrtf (
      sum / (2.0f * (float) room->n_steps) + quantum * quantum / 12.0f);
}

/* Of values of which a part f was raised to the smallest one: the rms of what
 * is left is (1 - f)^0.75 of the noise, to 5 % for f up to 0.9. One value above
 * the others is no noise. Returns: 0 for values that were not cut off */
static float
noise_of_clipped (const Room *room, float quantum)
{
  const float *border = room->border;
  uint32_t n = room->n_border, n_above = n;
  float range = border[0] - border[n - 1], most, noise;

  while (n_above > 0 && border[n_above - 1] == border[n - 1])
    n_above--;
  if (n_above < 2 || 4 * (n - n_above) < n || room->n_steps == 0)
    return 0.0f;
  most = 3.0f * room->steps[room->n_steps / 10];
  noise = rms_step (room, most > 0.0f ? most : range, quantum) *
          powf ((float) n / (float) n_above, 0.75f);
  return fminf (noise, 0.7f * range);
}

/* The median of steps up to a quantum would be one of few values, and so their
 * rms counts there, too. */
static float
noise_of (const Room *room, float quantum)
{
  float noise = 0.0f;

  if (room->n_steps > 0)
    noise = fmaxf (
        1.0483f * exceeded_evenly (room->steps, room->n_steps, 0.5f, quantum),
        rms_step (room, quantum, quantum));
  return fmaxf (noise, noise_of_clipped (room, quantum));
}

typedef enum { DARK, CUT, LIT } Kind;

/* @cell is filled where it is LIT. */
static Kind
look_at (const ImkShcentroidConfig *c, const ImkShcentroidRect *rect,
    const Room *room, Cell *cell)
{
  ImkShcentroidLevel level;
  double flux = 0.0, border = 0.0, share, n = room->n;
  float middle, quantum;
  uint32_t n_above = 0;

  if (room->n_border == 0)
    return DARK;
  quantum = quantum_of (c, room);
  cell->noise = noise_of (room, quantum);
  cell->level = exceeded_evenly (room->border, room->n_border, 0.1f, quantum) +
                1.72f * cell->noise;
  cell->max = room->all[0];
  cell->min = room->all[room->n - 1];
  middle = room->border[room->n_border / 2];
  cell->height = cell->max - middle;
  cell->step = quantum;
  if (!(cell->max > cell->level + 2.4f * cell->noise))
    return DARK;
  if (room->border[0] - middle > 0.5f * (cell->max - middle))
    return CUT;
  level = level_of (c, rect->threshold, room->all, room->n);
  for (uint32_t i = 0; i < room->n; i++) {
    flux += part_of (room->all[i], level);
    n_above += room->all[i] >= level.least;
  }
  for (uint32_t i = 0; i < room->n_border; i++)
    border += part_of (room->border[i], level);
  if (!(flux > 0.0))
    return DARK;
  share = border / room->n_border * n / flux;
  cell->share = (float) (share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share);
  cell->radius = sqrtf ((float) n_above / 3.14159265f);
  cell->pedestal = fmaxf (middle, 0.0f) * (float) (n_above / flux);
  cell->min_flux = cell->noise * (float) (1.0 + 0.001 * n + 0.12 * sqrt (n));
  return LIT;
}

/* Of a cell that is not DARK. */
static Trouble
trouble_of (const ImkShcentroidConfig *c, const ImkImage *frame,
    const ImkShcentroidRect *rect, float noise, Room *room)
{
  float max = room->all[0], middle = room->border[room->n_border / 2];
  float half = fmaxf ((max + middle) / 2, middle + 5 * noise);
  uint32_t left = 0, top = 0;
  Trouble trouble = {false};

  find_peak (c, frame, rect, max, &left, &top);
  trouble.hot = is_hot (c, frame, left, top, max, noise);
  trouble.doubled = is_doubled (c, frame, rect, left, top, half);
  trouble.uneven =
      !trouble.hot && is_uneven (c, frame, rect, max - middle, room->steps);
  return trouble;
}

/* --- all cells ------------------------------------------------------------ */

/* Returns: the value that @part of those of the cells exceed; the member at
 * @offset */
static double
exceeded_by (
    const Cell *cells, uint32_t n, size_t offset, double part, float *room)
{
  for (uint32_t i = 0; i < n; i++)
    room[i] = *(const float *) ((const char *) &cells[i] + offset);
  qsort (room, n, sizeof (*room), compare_descending);
  return room[(uint32_t) (part * (n - 1))];
}

/* The fraction of the range at which T is L, of cells whose L is higher than
 * @least. */
static double
fraction_of (const Cell *cells, uint32_t n, double least, float *room,
    uint32_t *n_at_most)
{
  uint32_t n_higher = 0;
  double fraction;

  for (uint32_t i = 0; i < n; i++) {
    const Cell *c = &cells[i];

    if (c->level > least + c->noise)
      room[n_higher++] = (c->level - c->min) / (c->max - c->min);
  }
  if (n_higher == 0)
    return IMK_SHCENTROID_FIRST_FRACTION;
  qsort (room, n_higher, sizeof (*room), compare_descending);
  fraction = room[n_higher / 4];
  *n_at_most = fraction > MOST_FRACTION ? n_higher : 0;
  return fraction < IMK_SHCENTROID_FIRST_FRACTION
             ? IMK_SHCENTROID_FIRST_FRACTION
         : fraction > MOST_FRACTION ? MOST_FRACTION
                                    : fraction;
}

/* Puts cells whose border tells of noise first: of a frame that was cut off
 * above its noise many borders are even. Returns: how many these are; @n where
 * nearly all are even */
static uint32_t
put_noisy_first (Cell *cells, uint32_t n)
{
  uint32_t n_noisy = 0;

  for (uint32_t i = 0; i < n; i++)
    if (cells[i].noise > 0.0f) {
      Cell cell = cells[i];

      cells[i] = cells[n_noisy];
      cells[n_noisy++] = cell;
    }
  return 4 * n_noisy < n ? n : n_noisy;
}

static ImkShcentroidLight
sum_up (Cell *cells, uint32_t n, float *room)
{
  ImkShcentroidLight light = {.n_lit = n};
  uint32_t n_noisy;
  double least;

  if (n == 0)
    return light;
  light.share = exceeded_by (cells, n, offsetof (Cell, share), 0.5, room);
  light.radius = exceeded_by (cells, n, offsetof (Cell, radius), 0.5, room);
  light.height = exceeded_by (cells, n, offsetof (Cell, height), 0.5, room);
  light.step = exceeded_by (cells, n, offsetof (Cell, step), 0.5, room);
  n_noisy = put_noisy_first (cells, n);
  light.min_flux =
      exceeded_by (cells, n_noisy, offsetof (Cell, min_flux), 0.5, room);
  least = exceeded_by (cells, n_noisy, offsetof (Cell, level), 0.9, room);
  light.fraction = fraction_of (cells, n, least, room, &light.n_at_most);
  light.pedestal = exceeded_by (cells, n, offsetof (Cell, pedestal), 0.5, room);
  light.least = least > 0.0 ? least : 0.0;
  return light;
}

/* --- a frame -------------------------------------------------------------- */

/* One look at cells of a frame, and room for it. */
typedef struct Look {
  ImkShcentroidConfig own;
  const ImkShcentroidConfig *c;
  const ImkImage *frame;
  uint32_t n; /* cells */
  Room room;
  Cell *cells;    /* (nullable) */
  bool *has_spot; /* (nullable): [n] */
} Look;

static ImkStatus
open_look (Look *look, const ImkShcentroidConfig *given, const ImkImage *frame,
    ImkError *error)
{
  const ImkShcentroidConfig *c =
      IMK_CONFIG_READ (shcentroid, given, &look->own, error);
  size_t most;

  if (!c)
    return IMK_ERROR_CONFIG;
  IMK_TRY (imk_image_check (
      frame, "input", c->type, 1, c->width, c->height, false, error));
  look->c = c;
  look->frame = frame;
  most = look->n = imk_shcentroid_n_cells (c);
  for (uint32_t i = 0; i < look->n; i++) {
    ImkShcentroidRect rect = imk_shcentroid_cell_rect (c, i);
    size_t size = (size_t) rect.width * rect.height;

    most = size > most ? size : most;
  }
  look->room.all = malloc (3 * most * sizeof (float));
  look->cells = malloc ((size_t) look->n * sizeof (*look->cells));
  look->has_spot = calloc (look->n, sizeof (*look->has_spot));
  if (!look->room.all || !look->cells || !look->has_spot)
    return IMK_NO_MEMORY (error, "to look at the light of %u cells.", look->n);
  look->room.border = look->room.all + most;
  look->room.steps = look->room.border + most;
  return IMK_OK;
}

static void
close_look (Look *look)
{
  free (look->room.all);
  free (look->cells);
  free (look->has_spot);
}

/* @cell is filled where it is LIT. */
static Kind
look_at_cell (Look *look, const ImkShcentroidRect *rect, Cell *cell)
{
  if (rect->width == 0 || rect->height == 0)
    return DARK;
  gather (look->c, look->frame, rect, &look->room);
  return look_at (look->c, rect, &look->room, cell);
}

/* Cells without a spot between two with one, as of a grid that is too fine. */
static uint32_t
count_between (const Look *look)
{
  const bool *lit = look->has_spot;
  uint32_t columns = look->c->columns, n = 0;

  if (look->c->n_cells > 0)
    return 0;
  for (uint32_t i = 0; i < look->n; i++) {
    uint32_t column = i % columns;
    bool in_row =
        column > 0 && column + 1 < columns && lit[i - 1] && lit[i + 1];
    bool in_column = i >= columns && i + columns < look->n &&
                     lit[i - columns] && lit[i + columns];

    n += !lit[i] && (in_row || in_column);
  }
  return n;
}

ImkStatus
imk_shcentroid_look (const ImkShcentroidConfig *config, const ImkImage *frame,
    ImkShcentroidLight *light, ImkError *error)
{
  uint32_t n_lit = 0, n_cut = 0, n_hot = 0, n_uneven = 0, n_doubled = 0;
  Look look = {0};
  ImkStatus status = open_look (&look, config, frame, error);

  for (uint32_t i = 0; status == IMK_OK && i < look.n; i++) {
    ImkShcentroidRect rect = imk_shcentroid_cell_rect (look.c, i);
    Cell *cell = &look.cells[n_lit];
    Kind kind = look_at_cell (&look, &rect, cell);

    if (kind != DARK) {
      Trouble trouble =
          trouble_of (look.c, frame, &rect, cell->noise, &look.room);

      n_hot += trouble.hot;
      n_uneven += trouble.uneven;
      n_doubled += trouble.doubled;
    }
    look.has_spot[i] = kind != DARK;
    n_lit += kind == LIT;
    n_cut += kind == CUT;
  }
  if (status == IMK_OK) {
    *light = sum_up (look.cells, n_lit, look.room.all);
    light->n_cut = n_cut;
    light->n_hot = n_hot;
    light->n_uneven = n_uneven;
    light->n_doubled = n_doubled;
    light->n_between = count_between (&look);
  }
  close_look (&look);
  return status;
}

ImkStatus
imk_shcentroid_glance (const ImkShcentroidConfig *config, const ImkImage *frame,
    uint32_t turn, bool *has_spots, ImkError *error)
{
  Look look = {0};
  ImkStatus status = open_look (&look, config, frame, error);
  uint32_t step = (look.n + IMK_SHCENTROID_GLANCE - 1) / IMK_SHCENTROID_GLANCE;
  bool found = false;

  for (uint32_t i = step ? turn % step : 0;
       status == IMK_OK && i < look.n && !found; i += step) {
    ImkShcentroidRect rect = imk_shcentroid_cell_rect (look.c, i);

    found = look_at_cell (&look, &rect, look.cells) != DARK;
  }
  if (status == IMK_OK)
    *has_spots = found;
  close_look (&look);
  return status;
}
