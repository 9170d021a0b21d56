/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/status.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of UTF-8 that was cut, perhaps in the middle of a character. */
static void
drop_part_of_character (char *text)
{
  size_t end = strlen (text), lead = end;
  unsigned char first;

  while (lead > 0 && ((unsigned char) text[lead - 1] & 0xc0) == 0x80)
    lead--;
  if (lead == 0)
    return;
  first = text[--lead];
  if (end - lead < (first >= 0xf0      ? 4u
                       : first >= 0xe0 ? 3u
                       : first >= 0xc0 ? 2u
                                       : 1u))
    text[lead] = '\0';
}

ImkStatus
imk_error_set (ImkError *error, ImkStatus code, const char *format, ...)
{
  if (error) {
    /* Numbers are written as properties take them, with a point. */
    locale_t plain = newlocale (LC_ALL_MASK, "C", (locale_t) 0);
    locale_t users = plain ? uselocale (plain) : (locale_t) 0;
    va_list args;
    int length;

    error->code = code;
    va_start (args, format);
    length = vsnprintf (error->message, sizeof (error->message), format, args);
    va_end (args);
    if (plain) {
      uselocale (users);
      freelocale (plain);
    }
    if (length >= (int) sizeof (error->message))
      drop_part_of_character (error->message);
  }
  return code;
}
