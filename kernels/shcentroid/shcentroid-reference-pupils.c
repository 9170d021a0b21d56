/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pupil images 1 to 4 of a pyramid, v1 to v4 the values of a cell in them. The
 * formulas are at imk_shcentroid_process () in imk/shcentroid.h.
 *
 *   s_x = (v1 + v2 - v3 - v4) / I      s_y = (v1 - v2 - v3 + v4) / I
 *   I: the flux of the cell (local), or the mean of the valid cells (global)
 *   var = sum (+-1 - s)^2 var (v) / I^2; global: sum var (v) / I^2
 *
 * A cell with a bad pixel has no flux. The last function is a cell from
 * beginning to end. */
#include "shcentroid/shcentroid-reference.h"

#include <math.h>
#include <string.h>

enum { N_PUPILS = 4 };

static void
get_values (const ImkShcentroidConfig *c, const ImkImage *in, uint32_t cell,
    double v[N_PUPILS], double flat[N_PUPILS])
{
  for (uint32_t k = 0; k < N_PUPILS; k++) {
    uint32_t at = c->pupils[N_PUPILS * cell + k];

    v[k] = imk_shcentroid_reference_pixel (c, in, at % c->width, at / c->width);
    flat[k] = c->flat ? c->flat[at] : 1;
  }
}

static double
flux_of (const ImkShcentroidConfig *c, const ImkImage *in, uint32_t cell)
{
  double v[N_PUPILS], flat[N_PUPILS], sum;

  get_values (c, in, cell, v, flat);
  sum = v[0] + v[1] + v[2] + v[3];
  return isnan (sum) ? 0 : sum;
}

/* Returns: the least flux of a valid cell, which is not 0 */
static double
least_flux (const ImkShcentroidConfig *c, const ImkImage *in)
{
  double most = 0;

  for (uint32_t i = 0; i < c->n_cells; i++)
    most = fmax (most, flux_of (c, in, i));
  return fmax (c->min_flux, c->min_illumination * most);
}

static double
mean_flux (const ImkShcentroidConfig *c, const ImkImage *in, double least)
{
  double sum = 0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < c->n_cells; i++) {
    double flux = flux_of (c, in, i);

    if (flux > 0 && flux >= least) {
      sum += flux;
      n++;
    }
  }
  return sum / n;
}

void
imk_shcentroid_reference_pupils (const ImkShcentroidConfig *c,
    const ImkImage *in, uint32_t cell, double row[IMK_SHCENTROID_N_FIELDS])
{
  bool local = c->normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL;
  double v[N_PUPILS], flat[N_PUPILS], flux = flux_of (c, in, cell);
  double least = least_flux (c, in);
  double norm = local ? flux : mean_flux (c, in, least);
  double at[2] = {c->cells[cell].x, c->cells[cell].y}, s[2];
  uint32_t flags = (flux > 0 ? 0 : IMK_SHCENTROID_NO_FLUX) |
                   (flux < least ? IMK_SHCENTROID_LOW_FLUX : 0);

  get_values (c, in, cell, v, flat);
  memset (row, 0, IMK_SHCENTROID_N_FIELDS * sizeof (*row));
  s[0] = (v[0] + v[1] - v[2] - v[3]) / norm;
  s[1] = (v[0] - v[1] - v[2] + v[3]) / norm;
  for (int f = 0; f < 2; f++) {
    row[IMK_SHCENTROID_DX + f] = flags ? 0 : s[f];
    row[IMK_SHCENTROID_X + f] = at[f] + row[IMK_SHCENTROID_DX + f];
    for (int k = 0; k < N_PUPILS && !flags; k++) {
      double noise = flat[k] * fmax (v[k], 0) / c->gain +
                     flat[k] * flat[k] * c->read_noise * c->read_noise;
      double side = (f ? k % 3 == 0 : k < 2) ? 1 : -1;
      double weight = (side - (local ? s[f] : 0)) / norm;

      row[IMK_SHCENTROID_VAR_X + f] += weight * weight * noise;
    }
  }
  row[IMK_SHCENTROID_FLUX] = flux;
  row[IMK_SHCENTROID_FLAGS] = flags;
}
