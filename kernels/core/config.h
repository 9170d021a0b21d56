/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Configurations that grow, see imk/api.h. A new member goes to the end of its
 * structure, and not into padding that the structure had there before. */
#pragma once

#include <stddef.h>

#include "imk/status.h"

IMK_BEGIN_DECLS

/* What a config_init_sized does: @config, of @size bytes, becomes as much of
 * @defaults as it has room for. */
IMK_API void imk_config_init (
    void *config, size_t size, const void *defaults, size_t defaults_size);

/**
 * imk_config_read: (a configuration as this version knows it)
 * @config: of the caller, perhaps of an earlier version
 * @own: the defaults of this version
 * @init: the name of the function that the caller should have called
 *
 * Returns: @config if it is of this version; else @own with all that @config
 *   has. NULL, and IMK_ERROR_CONFIG in @error, if its size cannot be right */
IMK_API const void *imk_config_read (
    const void *config, void *own, const char *init, ImkError *error);

/* The same with the defaults of imk_<name>_config_init (). */
#define IMK_CONFIG_READ(name, config, own, error) \
  (imk_##name##_config_init (own), \
      imk_config_read ((config), (own), "imk_" #name "_config_init", (error)))

IMK_END_DECLS
