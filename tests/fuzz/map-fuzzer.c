/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of map-location of shcentroid: any file ends in cells that
 * lie in a frame or are refused in a sentence, or in a sentence.
 * sources: @files gst/shcentroid/gstshcentroidfiles.c
 * kernels/shcentroid/shcentroid-check.c
 * kernels/shcentroid/shcentroid-cells.c
 * kernels/shcentroid/grid/shcentroid-grid.c
 * kernels/shcentroid/grid/shcentroid-lattice.c
 * kernels/shcentroid/shcentroid-filter.c
 * kernels/shcentroid/shcentroid-light.c
 * kernels/shcentroid/grid/shcentroid-peaks.c
 * kernels/shcentroid/shcentroid-optics.c
 * kernels/shcentroid/grid/shcentroid-proposals.c
 * kernels/shcentroid/shcentroid-templates.c kernels/shcentroid/shcentroid.c
 * kernels/core/config.c kernels/core/status.c kernels/core/image.c
 * kernels/core/parallel.c
 * kernels/core/backend.c
 * kernels/core/cpu.c */
#include <stdlib.h>

#include "../../gst/shcentroid/gstshcentroidfiles.h"
#include "shcentroid/shcentroid-check.h"

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

/* in the place of the kernels, none of which runs */
const ImkFilterBackend imk_shcentroid_cpu = {.abi = IMK_BACKEND_ABI};

static void
check (gboolean condition)
{
  if (!condition)
    abort ();
}

static void
check_sentence (const ImkError *error)
{
  check (g_utf8_validate (error->message, -1, NULL));
  check (g_str_has_suffix (error->message, "."));
}

static const gchar *
get_path (void)
{
  static gchar *path;
  g_autofree gchar *folder = NULL;

  if (!path) {
    folder = g_dir_make_tmp ("map-fuzz-XXXXXX", NULL);
    path = g_build_filename (folder, "map.npy", NULL);
  }
  return path;
}

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  const gchar *path = get_path ();
  g_autofree GstShCentroidMap *map = NULL;
  ImkShcentroidConfig config;
  ImkError error;

  /* without waiting for the disk */
  check (g_file_set_contents_full (path, (const gchar *) bytes, (gssize) size,
      G_FILE_SET_CONTENTS_NONE, 0600, NULL));
  map = gst_sh_centroid_map_load ("map-location", path, &error);
  if (!map) {
    check_sentence (&error);
    return 0;
  }
  check (map->n_cells > 0);
  imk_shcentroid_config_init (&config);
  config.width = config.height = 64;
  config.cells = map->cells;
  config.n_cells = map->n_cells;
  if (imk_shcentroid_check_cells (&config, &error) != IMK_OK)
    check_sentence (&error);
  return 0;
}
