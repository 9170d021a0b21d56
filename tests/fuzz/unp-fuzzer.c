/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the settings of .unp files.
 * sources: common/files/formats/unp.c common/files/formats/rawspectra.c
 * common/files/gstimagingnpy.c common/files/gstimagingnpyheader.c @format */
#include "settings-fuzzer.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  return fuzz_settings (gst_imaging_unp_parse, bytes, size);
}
