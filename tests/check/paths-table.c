/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "paths-table.h"

#include <string.h>

guint64
paths_times (GstImagingStats *stats, GstElement *element, const gchar *name,
    guint64 unit)
{
  guint64 bytes = 0;

  if (stats) {
    g_autoptr (GstStructure) s = gst_imaging_stats_to_structure (stats);

    fail_unless (gst_structure_get_uint64 (s, name, &bytes));
  }
  if (element)
    bytes += check_stat (element, name);
  fail_unless (unit > 0 && bytes % unit == 0,
      "%s: %" G_GUINT64_FORMAT " is not a multiple of %" G_GUINT64_FORMAT, name,
      bytes, unit);
  return bytes / unit;
}

void
paths_check_same (
    const PathsCopies *found, const PathsCopies *first, const gchar *format)
{
  fail_unless (memcmp (found, first, sizeof (*found)) == 0,
      "%s is not copied as often as the formats before it", format);
}

void
paths_add_copies (GString *row, const PathsCopies copies[2], gboolean on_cuda)
{
  for (guint i = 0; i < (on_cuda ? 2 : 1); i++)
    g_string_append_printf (row,
        " %" G_GUINT64_FORMAT " + %" G_GUINT64_FORMAT " + %" G_GUINT64_FORMAT
        " |",
        copies[i].copied, copies[i].uploaded, copies[i].downloaded);
  if (!on_cuda)
    g_string_append (row, " |");
}
