/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The strategy operator: the response of fft to unit vectors. */
#include <stdlib.h>

#include "octbscan/cpu/fft.h"
#include "core/pool.h"
#include "octbscan/octbscan-backend.h"

enum { N_LANES = IMK_OCTBSCAN_N_LANES };

/* What column @n + l of the operator of @camera is, for lane l: Z of a spectrum
 * that is 1 there. */
static void
store_columns (const ImkOctbscanPlan *plan, uint32_t camera, uint32_t first,
    uint32_t n, const float *z, float *operators)
{
  size_t width = plan->config->width, depths = plan->n_depths;
  float *to = operators + 2 * depths * width * camera + first;

  for (size_t q = 0; q < depths; q++)
    for (uint32_t l = 0; l < n; l++) {
      to[2 * q * width + l] = z[2 * (l * depths + q)];
      to[(2 * q + 1) * width + l] = z[2 * (l * depths + q) + 1];
    }
}

static ImkStatus
run_columns (const ImkOctbscanPlan *plan, ImkOctbscanFft *fft, float *samples,
    float *z, float *scratch, float *operators, ImkError *error)
{
  uint32_t width = plan->config->width;
  ImkStatus status = IMK_OK;

  for (uint32_t c = 0; c < plan->config->n_cameras; c++)
    for (uint32_t first = 0; first < width && status == IMK_OK;
         first += N_LANES) {
      ImkOctbscanBlock block = {.camera = c, .n = width - first};

      if (block.n > N_LANES)
        block.n = N_LANES;
      for (uint32_t l = 0; l < block.n; l++) {
        samples[(size_t) l * width + first + l] = 1;
        block.samples[l] = samples + (size_t) l * width;
        block.complex[l] = z + 2 * (size_t) l * plan->n_depths;
      }
      status = imk_octbscan_fft_run (fft, &block, scratch, error);
      for (uint32_t l = 0; l < block.n; l++)
        samples[(size_t) l * width + first + l] = 0;
      store_columns (plan, c, first, block.n, z, operators);
    }
  return status;
}

ImkStatus
imk_octbscan_make_operators (
    const ImkOctbscanPlan *plan, float **operators, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  size_t n = 2 * (size_t) c->n_cameras * c->width * plan->n_depths;
  float *samples = NULL, *z = NULL, *scratch = NULL;
  ImkOctbscanFft *fft = NULL;
  ImkStatus status;

  IMK_TRY (imk_octbscan_fft_new (c, &fft, error));
  *operators = malloc (n * sizeof (float));
  samples = imk_pool_alloc (N_LANES * c->width * sizeof (float));
  z = imk_pool_alloc (2 * N_LANES * (size_t) plan->n_depths * sizeof (float));
  scratch = imk_pool_alloc (imk_octbscan_fft_scratch_size (fft));
  status = *operators && samples && z && scratch
               ? run_columns (plan, fft, samples, z, scratch, *operators, error)
               : IMK_NO_MEMORY (error, "for the plan.");
  free (samples);
  free (z);
  free (scratch);
  imk_octbscan_fft_free (fft);
  return status;
}
