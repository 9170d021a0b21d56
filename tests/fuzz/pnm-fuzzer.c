/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of PNM files.
 * sources: common/files/formats/pnm.c common/files/formats/pnmheader.c
 * @format */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_pnm, bytes, size);
}
