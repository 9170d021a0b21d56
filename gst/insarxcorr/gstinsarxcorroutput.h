/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What insarxcorr's pad src gives: rows of patches. */
#pragma once

#include "gstimagingsrcpad.h"
#include "gstimagingresults.h"

G_BEGIN_DECLS

/* Pushes a row of patches as the first that the peer takes: GMTSAR's text, CSV
 * or tensor. @header_sent: of CSV, which has one */
GstFlowReturn gst_insar_output_push_row (GstImagingSrcPad *output,
    const GstImagingResult *result, gboolean *header_sent);

G_END_DECLS
