/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* dladdr */
#include "gstimagingmodule.h"

#include <dlfcn.h>

#include "files/gstimagingfile.h"

/* Returns: (transfer full) */
static gchar *
path_of (const gchar *file)
{
  Dl_info self;
  g_autofree gchar *folder = NULL, *path = NULL;

  if (!dladdr ((gpointer) path_of, &self) || !self.dli_fname)
    return g_strdup (file);
  folder = g_path_get_dirname (self.dli_fname);
  path = g_build_filename (folder, "gst-imaging", file, NULL);
  return g_file_test (path, G_FILE_TEST_EXISTS)
             ? g_steal_pointer (&path)
             : g_build_filename (folder, file, NULL);
}

gpointer
gst_imaging_module_symbol (const gchar *file, const gchar *symbol, gchar **why)
{
  g_autofree gchar *path = path_of (file);
  gpointer handle = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  gpointer address = handle ? dlsym (handle, symbol) : NULL;

  if (!address)
    *why = gst_imaging_file_escape (dlerror ());
  return address;
}
