/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between invert.c, which validates, and the backends, which compute. */
#pragma once

#include "core/filter-backend.h"
#include "imk/invert.h"

IMK_BEGIN_DECLS

/* Of no plan and an ImkInvertConfig as params. */
extern const ImkFilterBackend imk_invert_cpu;
extern const ImkFilterBackend imk_invert_cuda;

IMK_END_DECLS
