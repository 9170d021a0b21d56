/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscancalibration.h"

#include <string.h>

#define SEPARATORS " \t\r\n;,"

/* Blanks what stands behind a #, and the mark that some write before UTF-8. */
static void
remove_comments (gchar *text)
{
  gboolean is_comment = FALSE;

  if (g_str_has_prefix (text, "\xef\xbb\xbf"))
    memset (text, ' ', 3);
  for (gchar *c = text; *c; c++) {
    is_comment = *c != '\n' && (is_comment || *c == '#');
    if (is_comment)
      *c = ' ';
  }
}

/* Blanks the first line with something in it, if that begins with no number
 * and others follow. */
static void
remove_header (gchar *text)
{
  gchar *line = text + strspn (text, " \t\r\n"), *end;
  gsize length = strcspn (line, "\n");

  g_ascii_strtod (line, &end);
  if (end == line && line[length + strspn (line + length, " \t\r\n")])
    memset (line, ' ', length);
}

/* Of one line. Returns: whether its commas can be decimal points: between
 * digits, one in a number, and no point beside them */
static gboolean
can_be_decimal (const gchar *line, gsize length, guint *n_commas)
{
  gboolean has_comma = FALSE;

  *n_commas = 0;
  for (gsize i = 0; i < length; i++) {
    if (line[i] == '.')
      return FALSE;
    if (strchr (" \t\r;", line[i]))
      has_comma = FALSE;
    if (line[i] != ',')
      continue;
    if (has_comma || i == 0 || !g_ascii_isdigit (line[i - 1]) ||
        !g_ascii_isdigit (line[i + 1]))
      return FALSE;
    has_comma = TRUE;
    (*n_commas)++;
  }
  return TRUE;
}

/* "12,5" on each line is a number, or a sample and its value: samples count
 * on by one. */
static gboolean
has_decimal_commas (const gchar *text)
{
  gboolean is_decimal = FALSE;
  gdouble before = 0;
  guint n_lines = 0, n_all = 0;

  while (*text) {
    const gchar *line = text + strspn (text, " \t\r");
    gsize length = strcspn (line, "\n");
    gsize n = strcspn (line, " \t\r\n;"); /* the first number */
    gdouble whole = g_ascii_strtod (line, NULL);
    guint n_commas;

    if (!can_be_decimal (line, length, &n_commas))
      return FALSE;
    if (length > 0) {
      is_decimal = is_decimal || n_commas == 0 ||
                   n + strspn (line + n, " \t\r;") < length ||
                   (n_lines > 0 && whole != before + 1);
      before = whole;
      n_lines++;
      n_all += n_commas;
    }
    text = line + length + (line[length] == '\n');
  }
  return is_decimal && n_all > 0 && n_lines > 1;
}

guint
gst_oct_bscan_table_clean (gchar *text)
{
  guint n_lines = 0;

  remove_comments (text);
  remove_header (text);
  if (has_decimal_commas (text))
    for (gchar *c = text; *c; c++)
      *c = *c == ',' ? '.' : *c;
  for (const gchar *c = text; *c; c += strcspn (c, "\n")) {
    c += strspn (c, SEPARATORS);
    n_lines += *c != '\0';
  }
  return n_lines;
}
