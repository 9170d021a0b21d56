/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/cpu.h"
#include "octbscan/cpu/loops.h"

ImkStatus
imk_octbscan_choose_loops (const ImkOctbscanLoops **loops, ImkError *error)
{
  static const void *const tables[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_octbscan);
  const void *table = NULL;
  ImkStatus status = imk_cpu_choose (tables, &table, error);

  *loops = table;
  return status;
}
