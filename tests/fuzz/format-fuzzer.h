/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the fuzzers of the formats share: any bytes end in an array whose pages
 * can be read, or in a sentence. */
#pragma once

#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files/formats/gstimagingformat.h"
#include "files/gstimagingndarray-private.h"

#define MAX_VALUES (1 << 22)

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

static inline void
check (gboolean condition)
{
  if (!condition)
    abort ();
}

static inline void
check_error (gboolean ok, const GError *error)
{
  check (ok == (error == NULL));
  if (!error)
    return;
  check (error->domain == GST_IMAGING_ND_ARRAY_ERROR);
  check (g_utf8_validate (error->message, -1, NULL));
  check (g_str_has_prefix (error->message, "\"fuzz\" "));
  check (g_str_has_suffix (error->message, "."));
}

static inline int
fuzz_format (
    const GstImagingFormatTable *table, const guint8 *bytes, gsize size)
{
  g_autoptr (GstImagingNdArray) array = g_new0 (GstImagingNdArray, 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  GstImagingFormatFile file = {.fd = memfd_create ("fuzz", 0),
      .size = size,
      .name = "fuzz",
      .part = size % 3, /* all, the first, the second */
      .parts = parts};
  guint64 n_pages = 0, n_values = 0;
  gpointer reader;

  check (file.fd >= 0 && write (file.fd, bytes, size) == (gssize) size);
  reader = table->open (&file, array, &n_pages, &error);
  check_error (reader != NULL, error);
  if (reader &&
      gst_imaging_nd_array_count_values (file.name, array->type, array->n_dims,
          array->dims, &n_values, NULL) &&
      gst_imaging_format_check_size (&file,
          n_values * gst_imaging_nd_array_types[array->type].size, NULL) &&
      n_values <= MAX_VALUES) {
    gsize page_size = n_values / MAX (n_pages, 1) *
                      gst_imaging_nd_array_types[array->type].size;
    /* as long as a page and no byte longer, so that ASan sees more */
    g_autofree guint8 *values = g_malloc (page_size);

    check (n_pages == 0 || n_values % n_pages == 0);
    for (guint64 i = 0; i < MIN (n_pages, 8) && !error; i++)
      check_error (table->read (reader, i, values, &error), error);
  }
  if (reader)
    table->close (reader);
  close (file.fd);
  return 0;
}
