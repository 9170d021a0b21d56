/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Code that needs a large library is in a module, which the first use of it
 * opens, so that no scan of the registry loads that library. */
#pragma once

#include <glib.h>

#include "gstimaging-prelude.h"

/**
 * gst_imaging_module_symbol: (skip)
 * @file: name of the module, without a folder
 * @symbol: what is wanted of it
 * @why: (out) (transfer full): what is wrong, for a message
 *
 * The module stays in memory. It is in gst-imaging/ beside libgstimaging, or
 * beside libgstimaging itself, where it is built.
 *
 * Returns: (nullable): the address; %NULL with @why set
 */
GST_IMAGING_API
gpointer gst_imaging_module_symbol (
    const gchar *file, const gchar *symbol, gchar **why);
