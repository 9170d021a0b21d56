/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Uses both libraries of the subproject: sharpens an edge of four pixels, and
 * prints what gst-imaging has here. */
#include <stdio.h>

#include "gstimaginginfo.h"
#include "imk/lapsharpen.h"

int
main (void)
{
  uint8_t from[] = {10, 10, 20, 20}, to[4];
  ImkImage in = {.data = from, .stride = 4, .width = 4, .height = 1};
  ImkImage out = {.data = to, .stride = 4, .width = 4, .height = 1};
  g_autofree char *description = gst_imaging_describe ();
  ImkLapsharpenConfig config;
  ImkLapsharpen *sharpen;
  ImkError error;

  in.channels = out.channels = 1;
  in.type = out.type = IMK_TYPE_U8;
  imk_lapsharpen_config_init (&config);
  config.width = 4;
  config.height = 1;
  config.type = IMK_TYPE_U8;
  config.channels = 1;
  config.depth = 8;
  config.channel_mask = 1;
  if (imk_lapsharpen_new (IMK_BACKEND_CPU, &config, &sharpen, &error) !=
          IMK_OK ||
      imk_lapsharpen_process (sharpen, &in, &out, NULL, &error) != IMK_OK) {
    fprintf (stderr, "%s\n", error.message);
    return 1;
  }
  imk_lapsharpen_free (sharpen);
  printf ("%s\n%d %d %d %d\n", description, to[0], to[1], to[2], to[3]);
  return 0;
}
