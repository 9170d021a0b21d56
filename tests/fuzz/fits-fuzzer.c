/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the reader of FITS files.
 * libraries: -lcfitsio
 * sources: common/files/formats/fits.c common/files/formats/fitsgrow.c
 * common/files/formats/fitsraw.c
 * common/files/formats/gstimagingformat.c common/files/gstimagingndarray.c
 * common/files/gstimagingfile.c */
#include "format-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_format (&gst_imaging_format_fits, bytes, size);
}
