/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between invert.c, which validates, and the backends, which compute. */
#pragma once

#include "core/filter-backend.h"
#include "imk/invert.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of no plan and an ImkInvertConfig as params. */
extern const ImkFilterBackend imk_invert_cpu;
extern const ImkFilterBackend imk_invert_cuda;

#ifdef __cplusplus
}
#endif
