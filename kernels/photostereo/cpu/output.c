/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the results of pixels to pictures. */
#include <string.h>

#include "photostereo/cpu/loops.h"

void
imk_photostereo_store_result (
    const Chunk *c, uint32_t x, uint32_t i, const Result *r)
{
  const Cpu *cpu = c->cpu;
  const ImkPhotostereoOutputs *out = c->job->out;
  size_t at = (size_t) c->y * cpu->plan.width + x;
  const float *ambient = c->scratch->ambient;
  float n = c->n_lights ? (float) c->n_lights : 1;
  bool valid = r->quality[IMK_PHOTOSTEREO_LIGHTS] > 0;
  uint32_t n_planes = cpu->plan.n_planes;
  float mean[IMK_PHOTOSTEREO_MAX_PLANES];

  if (c->job->for_heights) {
    memcpy (cpu->slopes +
                3 * ((size_t) (c->y / cpu->heights.step) * cpu->plan.width + x),
        r->normal, sizeof (r->normal));
    return;
  }

  for (uint32_t k = 0; k < n_planes; k++)
    mean[k] = cpu->plan.constant ? r->constant[k] : ambient[k * CHUNK + i] / n;
  if (out->normal.data)
    imk_photostereo_store_normal (
        &out->normal, x, c->y, r->normal, cpu->params.y_down);
  if (out->quality.data)
    imk_photostereo_store_quality (&out->quality, x, c->y, r->quality);
  if (cpu->plan.mosaic) { /* store_mosaic_rows () needs all neighbours */
    cpu->albedo[at] = r->albedo[0];
    cpu->ambient[at] = mean[0];
  } else {
    if (out->albedo.data)
      imk_photostereo_store_colours (
          &out->albedo, x, c->y, r->albedo, n_planes);
    if (out->ambient.data)
      imk_photostereo_store_colours (&out->ambient, x, c->y, mean, n_planes);
  }

  if (is_wanted (c, x)) {
    c->row->n_pixels++;
    c->row->n_invalid += !valid;
    c->row->lights += r->quality[IMK_PHOTOSTEREO_LIGHTS];
    c->row->rounds += r->quality[IMK_PHOTOSTEREO_ROUNDS];
    c->row->residual += r->quality[IMK_PHOTOSTEREO_RESIDUAL];
    c->row->length += r->length;
  }
  if (cpu->normals) {
    float *last = cpu->normals + 3 * at;
    bool both = valid && (last[0] != 0 || last[1] != 0 || last[2] != 0);

    if (c->job->compare && both) {
      c->row->change += imk_photostereo_angle (r->normal, last);
      c->row->n_changes++;
    }
    memcpy (last, r->normal, sizeof (r->normal));
  }
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
