/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A module of another release, for test-core. */
#include <stddef.h>

#include "imk/backend.h"

extern const ImkModule imk_module;

__attribute__ ((visibility ("default"))) const ImkModule imk_module = {
    .abi = IMK_BACKEND_ABI + 41,
    .entries = (const ImkModuleEntry[]){{NULL, NULL}},
};
