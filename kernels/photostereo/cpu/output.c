/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the results of pixels to pictures. */
#include <string.h>

#include "photostereo/cpu/loops.h"

static void
keep_slopes (const Chunk *c)
{
  const Results *r = &c->scratch->results;
  size_t row = (size_t) (c->y / c->cpu->heights.step) * c->cpu->plan.width;
  float *to = c->cpu->slopes + 3 * (row + c->x);

  for (uint32_t i = 0; i < c->n; i++)
    for (int k = 0; k < 3; k++)
      to[3 * i + k] = r->normal[k][i];
}

static void
store_directions (const Chunk *c)
{
  const Results *r = &c->scratch->results;
  const ImkPhotostereoOutputs *out = c->job->out;
  bool trusts = out->quality.data || out->confidence.data || out->mask.data;

  for (uint32_t i = 0; i < c->n && out->normal.data; i++) {
    const float n[] = {r->normal[0][i], r->normal[1][i], r->normal[2][i]};

    imk_photostereo_store_normal (
        &out->normal, c->x + i, c->y, n, c->cpu->params.y_down);
  }
  for (uint32_t i = 0; i < c->n && trusts; i++) {
    const float q[] = {
        r->quality[0][i], r->quality[1][i], r->quality[2][i], r->quality[3][i]};

    imk_photostereo_store_trust (
        out, c->x + i, c->y, q, r->length[i], c->cpu->plan.constant);
  }
}

/* The mean of the pictures, or the light of the room. */
static float
ambient_at (const Chunk *c, uint32_t plane, uint32_t i)
{
  if (c->cpu->plan.constant)
    return c->scratch->results.constant[plane][i];
  return c->scratch->ambient[plane * CHUNK + i] /
         (float) (c->n_lights ? c->n_lights : 1);
}

static void
store_planes (const Chunk *c)
{
  const Results *r = &c->scratch->results;
  const ImkPhotostereoOutputs *out = c->job->out;
  const uint32_t n_planes = c->cpu->plan.n_planes;
  float v[IMK_PHOTOSTEREO_MAX_PLANES];

  for (uint32_t i = 0; i < c->n && out->albedo.data; i++) {
    for (uint32_t k = 0; k < n_planes; k++)
      v[k] = r->albedo[k][i];
    imk_photostereo_store_colours (&out->albedo, c->x + i, c->y, v, n_planes);
  }
  for (uint32_t i = 0; i < c->n && out->ambient.data; i++) {
    for (uint32_t k = 0; k < n_planes; k++)
      v[k] = ambient_at (c, k, i);
    imk_photostereo_store_colours (&out->ambient, c->x + i, c->y, v, n_planes);
  }
}

/* store_mosaic_rows () needs all neighbours. */
static void
keep_mosaic (const Chunk *c)
{
  const Cpu *cpu = c->cpu;
  size_t at = (size_t) c->y * cpu->plan.width + c->x;

  memcpy (cpu->albedo + at, c->scratch->results.albedo[0],
      c->n * sizeof (*cpu->albedo));
  for (uint32_t i = 0; i < c->n && c->job->out->ambient.data; i++)
    cpu->ambient[at + i] = ambient_at (c, 0, i);
}

static void
add_to_row (const Chunk *c)
{
  const Results *r = &c->scratch->results;
  const float *lights = r->quality[IMK_PHOTOSTEREO_LIGHTS];
  ImkPhotostereoRow row = *c->row;

  for (uint32_t i = 0; i < c->n; i++)
    if (is_wanted (c, c->x + i)) {
      row.n_pixels++;
      row.n_invalid += !(lights[i] > 0);
      row.lights += lights[i];
      row.rounds += r->quality[IMK_PHOTOSTEREO_ROUNDS][i];
      row.residual += r->quality[IMK_PHOTOSTEREO_RESIDUAL][i];
      row.length += r->length[i];
    }
  *c->row = row;
}

static void
keep_normals (const Chunk *c)
{
  const Results *r = &c->scratch->results;
  size_t at = (size_t) c->y * c->cpu->plan.width + c->x;

  for (uint32_t i = 0; i < c->n; i++) {
    const float n[] = {r->normal[0][i], r->normal[1][i], r->normal[2][i]};
    float *last = c->cpu->normals + 3 * (at + i);
    bool valid = r->quality[IMK_PHOTOSTEREO_LIGHTS][i] > 0;

    if (c->job->compare && valid &&
        (last[0] != 0 || last[1] != 0 || last[2] != 0)) {
      c->row->change += imk_photostereo_angle (n, last);
      c->row->n_changes++;
    }
    memcpy (last, n, sizeof (n));
  }
}

void
imk_photostereo_store_chunk (const Chunk *c)
{
  if (c->job->for_heights) {
    keep_slopes (c);
    return;
  }
  store_directions (c);
  if (c->cpu->plan.mosaic)
    keep_mosaic (c);
  else
    store_planes (c);
  add_to_row (c);
  if (c->cpu->normals)
    keep_normals (c);
}

void
imk_photostereo_store_mosaic_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  const Cpu *cpu = job->cpu;
  const ImkPhotostereoPlan *p = &cpu->plan;
  float v[3];

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < p->width; x++) {
      bool valid = cpu->albedo[(size_t) y * p->width + x] != 0;

      for (uint32_t k = 0; k < 3 && job->out->albedo.data; k++)
        v[k] = valid ? imk_photostereo_colour_at (cpu->albedo, p->width,
                           p->height, p->site, x, y, k, true)
                     : 0;
      if (job->out->albedo.data)
        imk_photostereo_store_colours (&job->out->albedo, x, y, v, 3);
      for (uint32_t k = 0; k < 3 && job->out->ambient.data; k++)
        v[k] = imk_photostereo_colour_at (
            cpu->ambient, p->width, p->height, p->site, x, y, k, false);
      if (job->out->ambient.data)
        imk_photostereo_store_colours (&job->out->ambient, x, y, v, 3);
    }
}
