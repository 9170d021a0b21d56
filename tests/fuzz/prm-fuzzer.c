/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the PRM parser: any bytes end in sizes and shifts within
 * their limits, or in a sentence.
 * sources: gst/insar/gstinsarprm.c common/files/gstimagingfile.c */
#include <math.h>
#include <stdlib.h>

#include "insar/gstinsarprm.h"

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

static void
check (gboolean condition)
{
  if (!condition)
    abort ();
}

/* The eight lines of a fit, which may be a file of their own. */
static void
check_alignment (const guint8 *bytes, gsize size)
{
  g_autoptr (GError) error = NULL;
  GstInsarPrmAlignment found = {{0}};

  if (!gst_insar_prm_parse_alignment (
          (const gchar *) bytes, size, "fuzz.txt", &found, &error)) {
    check (error && g_str_has_suffix (error->message, "."));
    return;
  }
  check (error == NULL);
  for (guint i = 0; i < 2; i++) {
    check (ABS (found.shift[i]) <= 2000000);
    check (ABS (found.stretch[i]) <= 1 && ABS (found.a_stretch[i]) <= 1);
  }
}

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GstInsarPrm) prm = NULL;

  check_alignment (bytes, size);
  prm = gst_insar_prm_parse ((const gchar *) bytes, size, "fuzz.PRM", &error);
  check ((prm == NULL) == (error != NULL));
  if (error) {
    check (g_utf8_validate (error->message, -1, NULL));
    check (g_str_has_suffix (error->message, "."));
    return 0;
  }
  check (prm->slc_file && *prm->slc_file);
  check (prm->width >= 1 && prm->width <= 1 << 24);
  check (prm->height >= 1 && prm->height <= 1 << 30);
  check (isfinite (prm->prf) && prm->prf >= 0);
  check (isfinite (prm->fd1));
  check (ABS (prm->rshift) <= 1000000 && ABS (prm->ashift) <= 1000000);
  return 0;
}
