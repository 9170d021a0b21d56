/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only. */
#pragma once

#include <cstddef>
#include <cstdint>

/* Cuts one block of memory into parts; with a NULL block it only adds up. */
struct Cutter {
  uint8_t *block;
  size_t used;

  template <typename T>
  void
  cut (T **part, size_t n)
  {
    *part = block ? (T *) (block + used) : nullptr;
    used += (n * sizeof (T) + 255) / 256 * 256;
  }
};
