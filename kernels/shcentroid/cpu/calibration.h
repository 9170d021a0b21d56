/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Dark, flat and the look-up table as the CPU keeps them. */
#pragma once

#include "shcentroid/cpu/state.h"

/* Returns: false without memory; then free it, too */
bool imk_shcentroid_copy_calibration (Cpu *cpu, const ImkShcentroidPlan *plan);
void imk_shcentroid_free_calibration (Cpu *cpu);
