/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of camera RAW files.
 * libraries: -lraw_r
 * sources: common/files/formats/raw.c @format */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_raw, bytes, size);
}
