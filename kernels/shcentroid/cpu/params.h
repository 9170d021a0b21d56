/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What follows from the parameters, and not from a frame. */
#pragma once

#include "shcentroid/cpu/state.h"

/* Without memory for a table its numbers are computed when they are needed. */
void imk_shcentroid_take_params (Cpu *cpu, const ImkShcentroidParams *params);
void imk_shcentroid_free_params (Cpu *cpu);
