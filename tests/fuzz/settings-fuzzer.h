/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the fuzzers of settings beside raw samples share: any text ends in a
 * layout that the size of the file fits, or in a sentence. */
#pragma once

#include "format-fuzzer.h"

#include <string.h>

#include "files/formats/rawspectra.h"

/* The first byte is the size of the file of samples. */
static inline int
fuzz_settings (GstImagingRawParser parse, const guint8 *bytes, gsize size)
{
  g_autoptr (GstImagingNdArray) array = g_new0 (GstImagingNdArray, 1);
  g_autoptr (GError) error = NULL;
  /* what follows settings in memory is no part of them */
  g_autofree gchar *text = g_malloc (MAX (size, 1));
  GstImagingFormatFile file = {.fd = memfd_create ("fuzz", 0),
      .size = size > 0 ? 16 * bytes[0] : 0,
      .name = "fuzz"};
  GstImagingRawLayout layout = {
      .n_together = 1, .cards = g_ptr_array_new_with_free_func (g_free)};
  guint64 n_pages = 0;
  gpointer reader = NULL;
  gboolean ok;

  if (size > 1)
    memcpy (text, bytes + 1, size - 1);
  check (file.fd >= 0 && ftruncate (file.fd, file.size) == 0);
  ok = parse (&file, "settings", text, MAX (size, 1) - 1, &layout, &error);
  check_error (ok, error);
  if (ok) {
    reader = gst_imaging_raw_spectra_open_layout (
        &file, "settings", &layout, array, &n_pages, &error);
    check_error (reader != NULL, error);
  } else {
    g_ptr_array_unref (layout.cards);
  }
  if (reader) {
    guint64 page_size = file.size / n_pages;
    g_autofree guint8 *values = g_malloc (page_size);

    check (n_pages > 0 && file.size % n_pages == 0);
    for (gchar **card = array->cards; *card; card++)
      check (g_utf8_validate (*card, -1, NULL) && strchr (*card, '='));
    for (guint64 i = 0; i < MIN (n_pages, 8); i++)
      check_error (
          gst_imaging_raw_spectra_read (reader, i, values, &error), error);
    gst_imaging_raw_spectra_close (reader);
  }
  close (file.fd);
  return 0;
}
