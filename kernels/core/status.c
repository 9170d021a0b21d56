/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of text that was cut, perhaps in the middle of a UTF-8 sequence. */
static void
drop_last_character (char *text)
{
  size_t end = strlen (text);

  while (end > 0 && ((unsigned char) text[end - 1] & 0xc0) == 0x80)
    end--;
  text[end > 0 ? end - 1 : 0] = '\0';
}

ImkStatus
imk_error_set (ImkError *error, ImkStatus code, const char *format, ...)
{
  if (error) {
    va_list args;
    int length;

    error->code = code;
    va_start (args, format);
    length = vsnprintf (error->message, sizeof (error->message), format, args);
    va_end (args);
    if (length >= (int) sizeof (error->message))
      drop_last_character (error->message);
  }
  return code;
}
