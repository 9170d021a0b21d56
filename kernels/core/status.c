/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

ImkStatus
imk_error_set (ImkError *error, ImkStatus code, const char *format, ...)
{
  if (error) {
    va_list args;

    error->code = code;
    va_start (args, format);
    vsnprintf (error->message, sizeof (error->message), format, args);
    va_end (args);
  }
  return code;
}
