/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of TIFF files.
 * libraries: -ltiff
 * sources: common/files/formats/tiff.c common/files/formats/tiffio.c
 * common/files/formats/tiffplanes.c common/files/formats/tifftags.c
 * common/files/formats/tiffwrite.c @format */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_tiff, bytes, size);
}
