/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the Header.xml of a Thorlabs .oct: in a ZIP its checksum
 * would keep changes from the parser.
 * sources: common/files/formats/thorlabsheader.c @format */
#include "format-fuzzer.h"

#include "files/formats/thorlabsheader.h"

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  GstImagingFormatFile file = {.fd = -1, .name = "fuzz"};
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = g_strndup ((const gchar *) bytes, size);
  g_autoptr (GstImagingThorlabsHeader) header =
      gst_imaging_thorlabs_header_new (&file, text, size, &error);

  check_error (header != NULL, error);
  if (!header)
    return 0;
  for (guint i = 0; i < header->files->len; i++) {
    const GstImagingThorlabsFile *f =
        &g_array_index (header->files, GstImagingThorlabsFile, i);

    check (f->name && (f->is_raw || f->is_real));
    check (f->at == GST_IMAGING_THORLABS_NONE || f->is_raw);
    for (guint k = 0; k < THORLABS_N_NUMBERS; k++)
      check (f->numbers[k] == GST_IMAGING_THORLABS_NONE ||
             f->numbers[k] <= G_MAXINT32);
  }
  for (guint i = 0; i < header->cards->len; i++)
    check (g_utf8_validate (header->cards->pdata[i], -1, NULL));
  return 0;
}
