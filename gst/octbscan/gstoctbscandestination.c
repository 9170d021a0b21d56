/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscandestination.h"

#include <glib/gstdio.h>

#include "gstimagingndarray.h"
#include "gstoctbscancalibration.h"

/* More bytes than an array [cameras, n] in any format. */
#define MOST_BYTES (64 << 20)

/* Of pipes and folders the saver has a sentence of its own. */
static gboolean
has_content (const gchar *location, GStatBuf *info)
{
  return g_stat (location, info) == 0 && S_ISREG (info->st_mode) &&
         info->st_size > 0;
}

static gboolean
stays (const gchar *what, GError **error)
{
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
      "the file is there and holds no %s, so it stays. Choose another name, or "
      "remove the file.",
      what);
  return FALSE;
}

gboolean
gst_oct_bscan_destination_of_calibration (const gchar *location, GError **error)
{
  g_autoptr (GKeyFile) file = NULL;
  g_auto (GStrv) groups = NULL;
  gboolean ok = FALSE;
  GStatBuf info;

  if (!has_content (location, &info))
    return TRUE;
  file = gst_oct_bscan_calibration_read (location, G_KEY_FILE_NONE, NULL);
  groups = file ? g_key_file_get_groups (file, NULL) : NULL;
  for (gchar **g = groups; g && *g; g++)
    ok = ok || g_str_has_prefix (*g, "camera");
  return ok || stays ("calibration", error);
}

static gboolean
is_array_of_cameras (const gchar *location)
{
  GstImagingNdArray *array = gst_imaging_nd_array_load (location, NULL);
  gboolean ok = array && array->n_dims == 2 &&
                array->dims[0] <= IMK_OCTBSCAN_MAX_CAMERAS &&
                (array->type == GST_IMAGING_ND_ARRAY_TYPE_F64 ||
                    array->type == GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64);

  g_clear_pointer (&array, gst_imaging_nd_array_free);
  return ok;
}

gboolean
gst_oct_bscan_destination_of_array (const gchar *location, GError **error)
{
  GStatBuf info;

  return !has_content (location, &info) ||
         (info.st_size <= MOST_BYTES && is_array_of_cameras (location)) ||
         stays ("background or fixed pattern", error);
}
