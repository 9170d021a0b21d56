/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructsetup.h"

#include <string.h>

static guint
serial_of (const GstImagingFile *file)
{
  return file ? file->serial : 0;
}

void
gst_sh_reconstruct_setup_init (GstShReconstructSetup *self,
    const GstShReconstructSettings *s, const GstShReconstructSlopes *slopes,
    const gfloat *flat, guint n_commands)
{
  *self = (GstShReconstructSetup){.n_commands = n_commands,
      .flat = g_memdup2 (flat, n_commands * sizeof (*flat)),
      .dead = g_new0 (guint8, n_commands),
      .actuator_map = serial_of (s->actuator_map),
      .input = slopes->input,
      .results = g_strdup (s->results),
      .sensor = g_strdup (gst_sh_reconstruct_slopes_settings (slopes))};
  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++)
    self->mirrors[i] = serial_of (s->mirrors[i]);
  for (guint i = 0; s->dead && i < s->dead->n; i++)
    self->dead[(guint) s->dead->values[i]] = TRUE; /* the plan checked them */
}

void
gst_sh_reconstruct_setup_clear (GstShReconstructSetup *self)
{
  g_clear_pointer (&self->flat, g_free);
  g_clear_pointer (&self->dead, g_free);
  g_clear_pointer (&self->results, g_free);
  g_clear_pointer (&self->sensor, g_free);
}

static gchar *
say (const gchar *what)
{
  return g_strdup_printf (
      "%s changed during the calibration. Emit calibrate again, and change "
      "nothing meanwhile.",
      what);
}

gchar *
gst_sh_reconstruct_setup_compare (
    const GstShReconstructSetup *a, const GstShReconstructSetup *b)
{
  static const gchar *const mirrors[] = {"mirror-0-location",
      "mirror-1-location", "mirror-2-location", "mirror-3-location"};

  if (memcmp (a->dead, b->dead, a->n_commands) != 0)
    return say ("dead-actuators");
  if (memcmp (a->flat, b->flat, a->n_commands * sizeof (*a->flat)) != 0)
    return say ("The reference commands");
  if (a->actuator_map != b->actuator_map)
    return say ("actuator-map-location");
  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++)
    if (a->mirrors[i] != b->mirrors[i])
      return say (mirrors[i]);
  if (a->input != b->input)
    return say ("input-order");
  if (g_strcmp0 (a->results, b->results) != 0)
    return say ("results");
  if (a->sensor && b->sensor && !g_str_equal (a->sensor, b->sensor))
    return say ("The settings of the element that measures the slopes");
  return NULL;
}
