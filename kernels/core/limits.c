/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/limits.h"

ImkStatus
imk_limits_check (const ImkLimits *limits, ImkError *error)
{
  for (; limits->name; limits++)
    if (!(limits->value >= limits->least && limits->value <= limits->most))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "%s is %.10g; it can be %.10g to %.10g.", limits->name, limits->value,
          limits->least, limits->most);
  return IMK_OK;
}

ImkStatus
imk_limits_check_one (
    const char *name, double value, double least, double most, ImkError *error)
{
  const ImkLimits limits[] = {{name, value, least, most}, {NULL}};

  return imk_limits_check (limits, error);
}
