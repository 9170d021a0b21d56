/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of fit-location of slcresample: any bytes in a file end in a
 * field that the kernel takes or refuses in a sentence, or in a sentence.
 * sources: common/gstimagingprm.c common/files/gstimagingfile.c
 * kernels/slcresample/slcresample.c kernels/slcresample/slcresample-cpu.c
 * kernels/slcresample/slcresample-weights.c kernels/core/status.c
 * kernels/core/image.c */
#include <stdlib.h>

#include "gstimagingprm.h"

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

static void
check (gboolean condition)
{
  if (!condition)
    abort ();
}
