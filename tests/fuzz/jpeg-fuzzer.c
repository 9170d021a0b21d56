/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of JPEG files.
 * libraries: -ljpeg -lexif -DHAVE_EXIF
 * sources: common/files/formats/jpeg.c @format */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_jpeg, bytes, size);
}
