/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of OpenEXR files.
 * libraries: -lOpenEXRCore -I/usr/include/OpenEXR -I/usr/include/Imath
 * sources: common/files/formats/exr.c common/files/formats/exrio.c
 * common/files/formats/exrwrite.c @format */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_exr, bytes, size);
}
