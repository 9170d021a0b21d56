/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of a configuration, and what they can be. */
#pragma once

#include <stddef.h>

#include "imk/status.h"

/* A choice is a number, too: 0 to the last of its enumeration. */
typedef struct ImkLimits {
  const char *name; /* of the property, or the beginning of a sentence */
  double value, least, most;
} ImkLimits;

/* @limits: up to one without a name
 * Returns: IMK_ERROR_CONFIG with the first that is not within; a NaN never is
 */
IMK_API ImkStatus imk_limits_check (const ImkLimits *limits, ImkError *error);

/* The same for one number. */
IMK_API ImkStatus imk_limits_check_one (
    const char *name, double value, double least, double most, ImkError *error);
