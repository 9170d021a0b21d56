/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "oct-common.h"

const Way cpu_ways[] = {
    {"cpu fft", IMK_BACKEND_CPU, IMK_OCTBSCAN_STRATEGY_FFT},
    {"cpu operator", IMK_BACKEND_CPU, IMK_OCTBSCAN_STRATEGY_OPERATOR},
    {NULL},
};

void
oct_refused (const ImkOctbscanConfig *c, const char *words)
{
  ImkOctbscan *s = NULL;

  test_error (imk_octbscan_new (IMK_BACKEND_CPU, c, &s, test_new_error ()),
      IMK_ERROR_CONFIG, words);
  test_check (!s, "\"%s\": an object came out", words);
}

double
oct_uniform (uint64_t *seed)
{
  return (double) (test_random (seed) >> 11) / 0x1p53;
}
