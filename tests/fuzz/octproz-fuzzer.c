/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the settings of recordings of OCTproZ.
 * sources: common/files/formats/octproz.c common/files/formats/rawspectra.c
 * common/files/gstimagingnpy.c common/files/gstimagingnpyheader.c @format */
#include "settings-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_settings (gst_imaging_octproz_parse, bytes, size);
}
