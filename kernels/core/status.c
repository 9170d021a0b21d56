/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/status.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of text that was cut, perhaps in the middle of a UTF-8 sequence, whose first
 * byte has as many leading ones as the sequence has bytes. */
static void
drop_broken_character (char *text)
{
  size_t end = strlen (text), first = end;
  unsigned char lead;
  size_t n_bytes = 1;

  while (first > 0 && ((unsigned char) text[first - 1] & 0xc0) == 0x80)
    first--;
  if (first == 0)
    return;
  lead = (unsigned char) text[--first];
  if (lead >= 0xc0)
    n_bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (end - first < n_bytes)
    text[first] = '\0';
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
      drop_broken_character (error->message);
  }
  return code;
}
