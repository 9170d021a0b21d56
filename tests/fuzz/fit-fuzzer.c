/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of fit-location of slcresample: any file ends in a field
 * that the kernel covers an image with or refuses, or in a sentence.
 * sources: gst/insar/gstinsarprm.c common/files/gstimagingfile.c
 * kernels/slcresample/slcresample.c kernels/slcresample/cpu/resample.c
 * kernels/slcresample/slcresample-field.c
 * kernels/slcresample/slcresample-weights.c kernels/core/config.c
 * kernels/core/status.c kernels/core/limits.c
 * kernels/core/image.c kernels/core/parallel.c kernels/core/backend.c
 * kernels/core/cpu.c */
#include <stdlib.h>
#include <string.h>

#include "files/gstimagingfile.h"
#include "insar/gstinsarprm.h"
#include "imk/slcresample.h"

#define IMK_ISA_TABLE imk_slcresample_scalar
#include "slcresample/cpu/loops.c"

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

static void
check (gboolean condition)
{
  if (!condition)
    abort ();
}

static const gchar *
get_path (void)
{
  static gchar *path;
  g_autofree gchar *folder = NULL;

  if (!path) {
    folder = g_dir_make_tmp ("fit-fuzz-XXXXXX", NULL);
    path = g_build_filename (folder, "fit.txt", NULL);
  }
  return path;
}

static void
check_kernel (const GstInsarPrmAlignment *fit)
{
  ImkSlcresampleConfig config;
  ImkSlcresample *kernel = NULL;
  ImkError error;
  gdouble covered;

  imk_slcresample_config_init (&config);
  config.width = config.out_width = 16;
  config.height = config.out_height = 16;
  config.n_threads = 1;
  memcpy (config.shift, fit->shift, sizeof (config.shift));
  memcpy (config.stretch, fit->stretch, sizeof (config.stretch));
  memcpy (config.a_stretch, fit->a_stretch, sizeof (config.a_stretch));
  if (imk_slcresample_new (IMK_BACKEND_CPU, &config, &kernel, &error) !=
      IMK_OK) {
    check (g_utf8_validate (error.message, -1, NULL));
    check (g_str_has_suffix (error.message, "."));
    return;
  }
  covered = imk_slcresample_covered (&config);
  check (covered >= 0 && covered <= 1);
  imk_slcresample_free (kernel);
}

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  const gchar *path = get_path ();
  GstInsarPrmAlignment fit = {{0}};
  g_autoptr (GError) error = NULL;

  /* without waiting for the disk */
  check (g_file_set_contents_full (path, (const gchar *) bytes, (gssize) size,
      G_FILE_SET_CONTENTS_NONE, 0600, NULL));
  if (gst_insar_prm_load_alignment (path, &fit, &error)) {
    check_kernel (&fit);
    return 0;
  }
  check (error && g_utf8_validate (error->message, -1, NULL));
  check (g_str_has_suffix (error->message, "."));
  return 0;
}
