/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the .npy parser: any bytes end in an array that can be
 * read to its last byte, or in a sentence.
 * sources: common/files/gstimagingndarray.c common/files/gstimagingnpy.c
 * common/files/gstimagingnpyheader.c common/files/gstimagingfile.c */
#include <stdlib.h>
#include <string.h>

#include "gstimagingnpy.h"

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

static void
check (gboolean condition)
{
  if (!condition)
    abort ();
}

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GstImagingNdArray) npy = NULL;
  g_autoptr (GstImagingNdArray) copy = NULL;
  g_autofree gdouble *values = NULL;
  g_autofree gchar *text = NULL;
  gsize n_values = 0, value_size;

  npy = gst_imaging_npy_parse (bytes, size, "fuzz.npy", &error);
  check ((npy == NULL) == (error != NULL));
  if (error) {
    check (g_utf8_validate (error->message, -1, NULL));
    check (g_str_has_suffix (error->message, "."));
    return 0;
  }

  value_size = gst_imaging_nd_array_type_size (npy->type);
  check (npy->n_values * value_size + npy->data_offset == size);
  if (value_size == 1 && !npy->fortran_order)
    check (memcmp (npy->data, bytes + npy->data_offset, npy->n_values) == 0);
  copy = gst_imaging_nd_array_copy (npy);
  text = gst_imaging_nd_array_describe (copy);
  values = gst_imaging_nd_array_to_double (npy, &n_values, &error);
  check ((values == NULL) == (error != NULL));
  check (values == NULL || n_values == npy->n_values);
  return 0;
}
