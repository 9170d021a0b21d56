/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of FITS files.
 * libraries: -lcfitsio -lgio-2.0
 * sources: common/files/formats/fits.c common/files/formats/fitsgrow.c
 * common/files/formats/fitsgzip.c common/files/formats/fitsraw.c @format */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_fits, bytes, size);
}
