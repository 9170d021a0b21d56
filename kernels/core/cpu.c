/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* secure_getenv */
#include "core/cpu.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[IMK_CPU_N_LEVELS] = {
    "scalar", "neon", "avx2", "avx512"};

static bool
processor_has (ImkCpuLevel level)
{
  switch (level) {
  case IMK_CPU_SCALAR:
    return true;
#if defined(__aarch64__)
  case IMK_CPU_NEON:
    return true;
#elif defined(__x86_64__) && defined(__GNUC__)
  case IMK_CPU_AVX2:
    return __builtin_cpu_supports ("avx2") && __builtin_cpu_supports ("fma");
  case IMK_CPU_AVX512:
    return processor_has (IMK_CPU_AVX2) &&
           __builtin_cpu_supports ("avx512bw") &&
           __builtin_cpu_supports ("avx512dq") &&
           __builtin_cpu_supports ("avx512vl");
#endif
  default:
    return false;
  }
}

static ImkCpuLevel
highest (void)
{
  ImkCpuLevel level = IMK_CPU_N_LEVELS - 1;

  while (!processor_has (level))
    level--;
  return level;
}

const char *
imk_cpu_level_name (ImkCpuLevel level)
{
  return level < IMK_CPU_N_LEVELS ? names[level] : "unknown";
}

ImkStatus
imk_cpu_level (ImkCpuLevel *level, ImkError *error)
{
  const char *wanted = secure_getenv ("IMK_CPU");
  ImkCpuLevel i = 0;

  if (!wanted || !wanted[0]) {
    *level = highest ();
    return IMK_OK;
  }
  while (i < IMK_CPU_N_LEVELS && strcmp (wanted, names[i]) != 0)
    i++;
  if (i == IMK_CPU_N_LEVELS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "IMK_CPU is \"%.20s\"; it can be scalar, neon, avx2 or avx512.",
        wanted);
  if (!processor_has (i))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "IMK_CPU is %s, which this processor does not have; its highest level "
        "is %s.",
        wanted, names[highest ()]);
  *level = i;
  return IMK_OK;
}

ImkStatus
imk_cpu_choose (const void *const tables[IMK_CPU_N_LEVELS], const void **table,
    ImkError *error)
{
  ImkCpuLevel level;

  IMK_TRY (imk_cpu_level (&level, error));
  while (level > 0 && !tables[level])
    level--;
  while (!tables[level]) /* arm64 has no table below NEON */
    level++;
  *table = tables[level];
  return IMK_OK;
}
