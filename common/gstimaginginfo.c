/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimaginginfo.h"

#include "core/cpu.h"
#include "files/gstimagingformats.h"
#include "gstimaging-private.h"
#include "imk/backend.h"
#include "imk/device.h"
#include "imk/version.h"

static void
add_cpu (GString *json)
{
  ImkCpuLevel level;
  ImkError error;

  g_string_append_printf (
      json, ",\"cpu\":{\"threads\":%u", g_get_num_processors ());
  if (imk_cpu_level (&level, &error) == IMK_OK)
    gst_imaging_json_add_text (json, "level", imk_cpu_level_name (level));
  else
    gst_imaging_json_add_text (json, "reason", error.message);
  g_string_append_c (json, '}');
}

/* Returns: whether there is this device */
static ImkStatus
add_device (GString *json, const ImkDevice *device, gint id, ImkError *error)
{
  g_autofree gchar *compute = NULL;
  ImkDeviceInfo info;

  IMK_TRY (device->info (id, &info, error));
  compute = g_strdup_printf ("%d.%d", info.compute_major, info.compute_minor);
  g_string_append_printf (json,
      "%s{\"id\":%d,\"memory\":%" G_GSIZE_FORMAT ",\"integrated\":%s",
      id > 0 ? "," : "", id, info.total_size,
      info.integrated ? "true" : "false");
  gst_imaging_json_add_text (json, "name", info.name);
  gst_imaging_json_add_text (json, "compute", compute);
  g_string_append_c (json, '}');
  return IMK_OK;
}

static void
add_cuda (GString *json)
{
  const ImkDevice *device = NULL;
  ImkError error;
  ImkStatus status = imk_backend_load ("cuda", &error);
  gint n = 0;

  g_string_append (json, ",\"cuda\":{\"devices\":[");
  if (status == IMK_OK)
    status = imk_device_get (&device, &error);
  if (status == IMK_OK)
    status = device->count (&n, &error);
  for (gint i = 0; i < n && status == IMK_OK; i++)
    status = add_device (json, device, i, &error);
  g_string_append_c (json, ']');
  if (status != IMK_OK)
    gst_imaging_json_add_text (json, "reason", error.message);
  g_string_append_c (json, '}');
}

gchar *
gst_imaging_describe (void)
{
  GString *json = g_string_new ("{\"version\":\"" IMK_VERSION "\"");

  add_cpu (json);
  add_cuda (json);
  gst_imaging_formats_describe (json);
  g_string_append_c (json, '}');
  return g_string_free (json, FALSE);
}
