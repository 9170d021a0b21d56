/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arithmetic of one sample. Both backends compile it, so that they agree
 * bit for bit. */
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define IMK_HOST_DEVICE __host__ __device__
#else
#define IMK_HOST_DEVICE
#endif

/* The conversion cuts off, which is floor () as nothing here is negative. */
static inline IMK_HOST_DEVICE uint16_t
imk_invert_sample (float v, float maximum, float amount)
{
  return (uint16_t) (int32_t) (v + amount * (maximum - 2 * v) + 0.5f);
}
