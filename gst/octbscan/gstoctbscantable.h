/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of numbers as spectrometers and spreadsheets write them. */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

guint gst_oct_bscan_table_clean (gchar *text);

G_END_DECLS
