/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/config.h"

#include <string.h>

/* A larger one is what was in memory before. */
enum { LARGEST = 65536 };

void
imk_config_init (
    void *config, size_t size, const void *defaults, size_t defaults_size)
{
  memset (config, 0, size);
  memcpy (config, defaults, size < defaults_size ? size : defaults_size);
}

const void *
imk_config_read (
    const void *config, void *own, const char *init, ImkError *error)
{
  size_t size = *(const size_t *) config, known = *(const size_t *) own;

  if (size == known)
    return config;
  if (size <= sizeof (size) || size % sizeof (size) != 0 || size > LARGEST) {
    imk_error_set (error, IMK_ERROR_CONFIG,
        "A configuration cannot have %zu bytes: call %s before you set its "
        "members.",
        size, init);
    return NULL;
  }
  if (size > known) {
    imk_error_set (error, IMK_ERROR_CONFIG,
        "The configuration has %zu bytes, this version of the library knows "
        "%zu: the program was compiled for a later version (%s). Install that "
        "version of the library, or compile the program again.",
        size, known, init);
    return NULL;
  }
  memcpy (own, config, size);
  *(size_t *) own = known;
  return own;
}
