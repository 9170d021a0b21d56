/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of .npz, and of the ZIP in it.
 * libraries: -lminizip
 * sources: -I/usr/include/minizip common/files/formats/npz.c
 * common/files/formats/zip.c common/files/gstimagingnpy.c
 * common/files/gstimagingnpyheader.c @format */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_npz, bytes, size);
}
