/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of PNG files.
 * libraries: -lpng
 * sources: common/files/formats/png.c @format */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_png, bytes, size);
}
