/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The results of cells in the output image. */
#pragma once

#include <string.h>

#include "shcentroid/cpu/state.h"

INLINE void
store (const ImkImage *out, uint64_t row, uint64_t column, double value)
{
  uint8_t *to = (uint8_t *) out->data + row * out->stride;

  if (out->type == IMK_TYPE_F32)
    ((float *) to)[column] = imk_shcentroid_f32 (value);
  else
    ((double *) to)[column] = value;
}

INLINE void
store_row_in (const ImkImage *out, const ImkShcentroidPlan *plan, uint32_t cell,
    const ImkShcentroidRow *row)
{
  switch (plan->fields) {
  case IMK_SHCENTROID_FIELDS_ALL:
    for (uint32_t i = 0; i < IMK_SHCENTROID_N_FIELDS; i++)
      store (out, cell, i, row->field[i]);
    break;
  case IMK_SHCENTROID_FIELDS_XY:
    store (out, cell, 0, row->field[IMK_SHCENTROID_X]);
    store (out, cell, 1, row->field[IMK_SHCENTROID_Y]);
    break;
  case IMK_SHCENTROID_FIELDS_SLOPES:
    store (out, 0, cell, row->field[IMK_SHCENTROID_DX]);
    store (
        out, 0, (uint64_t) plan->n_rects + cell, row->field[IMK_SHCENTROID_DY]);
    break;
  }
}

/* Out of line, and the row by value: its fields are in registers where there is
 * one output. */
static __attribute__ ((noinline)) void
store_row_again (const Frame *f, uint32_t cell, ImkShcentroidRow row)
{
  store_row_in (&f->out[1], &f->cpu->plan, cell, &row);
}

INLINE void
store_row (const Frame *f, uint32_t cell, const ImkShcentroidRow *row)
{
  store_row_in (&f->out[0], &f->cpu->plan, cell, row);
  if (__builtin_expect (f->n_out > 1, false))
    store_row_again (f, cell, *row);
  if (f->flags)
    f->flags[cell] = imk_shcentroid_flag_byte (
        row, f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL);
}

/* What becomes of a cell that is dark beside the others; the rest stays. */
static inline void
store_dark (const Frame *f, uint32_t cell, const ImkShcentroidRow *row)
{
  static const ImkShcentroidField fields[] = {IMK_SHCENTROID_X,
      IMK_SHCENTROID_Y, IMK_SHCENTROID_DX, IMK_SHCENTROID_DY,
      IMK_SHCENTROID_VAR_X, IMK_SHCENTROID_VAR_Y, IMK_SHCENTROID_FLAGS};
  bool all = f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;

  for (uint32_t k = 0; k < f->n_out; k++)
    if (!all)
      store_row_in (&f->out[k], &f->cpu->plan, cell, row);
    else
      for (uint32_t i = 0; i < sizeof (fields) / sizeof (fields[0]); i++)
        store (&f->out[k], cell, fields[i], row->field[fields[i]]);
  if (f->flags)
    f->flags[cell] = imk_shcentroid_flag_byte (row, all);
}

/* @n pairs. */
static inline void
store_f32 (float *restrict to, const double *restrict x,
    const double *restrict y, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    to[2 * i] = (float) x[i];
    to[2 * i + 1] = (float) y[i];
  }
}

/* The common case of store_row, for valid cells. */
static inline void
store_xy (const ImkImage *out, uint32_t first, uint32_t n, const double *x,
    const double *y)
{
  uint8_t *to = (uint8_t *) out->data + first * out->stride;

  if (out->type == IMK_TYPE_F32 && out->stride == 2 * sizeof (float))
    store_f32 ((float *) to, x, y, n);
  else
    for (uint32_t i = 0; i < n; i++) {
      store (out, (uint64_t) first + i, 0, x[i]);
      store (out, (uint64_t) first + i, 1, y[i]);
    }
}

static inline void
store_slopes (const ImkImage *out, const Cpu *cpu, uint32_t first, uint32_t n,
    const double *x, const double *y)
{
  const ImkShcentroidRect *rects = cpu->rects + first;
  double scale = cpu->params.slope_scale;

  for (uint32_t i = 0; i < n; i++) {
    store (out, 0, (uint64_t) first + i, (x[i] - rects[i].ref_x) * scale);
    store (out, 0, (uint64_t) cpu->plan.n_rects + first + i,
        (y[i] - rects[i].ref_y) * scale);
  }
}

static inline void
store_centres (const Frame *f, uint32_t first, uint32_t n, const double *x,
    const double *y)
{
  for (uint32_t k = 0; k < f->n_out; k++)
    if (f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_XY)
      store_xy (&f->out[k], first, n, x, y);
    else
      store_slopes (&f->out[k], f->cpu, first, n, x, y);
  if (f->flags)
    memset (f->flags + first, 0, n);
}

/* The numbers of cells, field by field. */
typedef double ChainFields[IMK_SHCENTROID_N_FIELDS][CHAIN_ROOM];

/* Rows of IMK_SHCENTROID_N_FIELDS numbers. */
static inline void
store_rows (const ImkImage *out, uint32_t first, uint32_t n, ChainFields fields)
{
  float singles[IMK_SHCENTROID_N_FIELDS][CHAIN_ROOM];

  for (uint32_t k = 0; k < IMK_SHCENTROID_N_FIELDS; k++)
    for (uint32_t i = 0; i < n; i++)
      singles[k][i] = imk_shcentroid_f32 (fields[k][i]);
  for (uint32_t i = 0; i < n; i++) {
    uint8_t *to = (uint8_t *) out->data + ((uint64_t) first + i) * out->stride;

    for (uint32_t k = 0; k < IMK_SHCENTROID_N_FIELDS; k++)
      if (out->type == IMK_TYPE_F32)
        ((float *) to)[k] = singles[k][i];
      else
        ((double *) to)[k] = fields[k][i];
  }
}

static inline void
store_fields (const Frame *f, uint32_t first, uint32_t n, ChainFields fields)
{
  for (uint32_t k = 0; k < f->n_out; k++)
    store_rows (&f->out[k], first, n, fields);
  for (uint32_t i = 0; f->flags && i < n; i++)
    f->flags[first + i] = (uint8_t) fields[IMK_SHCENTROID_FLAGS][i];
}
