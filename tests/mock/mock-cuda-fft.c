/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mock's libimk-cuda-fft.so: all that its libimk-cuda.so has, with the same
 * devices, streams and memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "imk/backend.h"

extern ImkModule imk_module;

__attribute__ ((visibility ("default"))) ImkModule imk_module;

__attribute__ ((constructor)) static void
find_neighbour (void)
{
  const ImkModule *found = NULL;
  char path[PATH_MAX];
  Dl_info self;
  void *handle;

  if (!dladdr (&imk_module, &self) || !strrchr (self.dli_fname, '/'))
    return;
  snprintf (path, sizeof (path), "%.*s/%s",
      (int) (strrchr (self.dli_fname, '/') - self.dli_fname), self.dli_fname,
      IMK_MODULE_CUDA);
  handle = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (handle)
    found = dlsym (handle, IMK_MODULE_SYMBOL);
  if (found)
    imk_module = *found;
}
