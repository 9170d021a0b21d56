/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* dladdr */
#include "imk/backend.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "imk/device.h"

/* A module is looked for once; the outcome, good or bad, is kept. */
typedef struct LoadedModule {
  const char *name;
  bool tried;
  const ImkModule *module;
  ImkError error;
} LoadedModule;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LoadedModule modules[] = {
    {.name = "libimk-cuda.so"},
    {.name = "libimk-cuda-fft.so"}, /* what needs cuFFT or cuBLAS */
};
#define N_MODULES (sizeof (modules) / sizeof (modules[0]))

/* Only absolute folders: a relative one would load what lies in the working
 * folder of whoever started the process. */
static ImkStatus
module_path (const char *name, char path[PATH_MAX], ImkError *error)
{
  const char *folder = secure_getenv ("IMK_MODULE_PATH"), *below = "";
  int length = 0;
  Dl_info self;

  if (folder && folder[0] == '/') {
    length = (int) strlen (folder);
  } else if (dladdr ((void *) module_path, &self) && self.dli_fname &&
             self.dli_fname[0] == '/') { /* of a program it may be argv[0] */
    const char *slash = strrchr (self.dli_fname, '/');

    folder = self.dli_fname;
    length = slash ? (int) (slash - self.dli_fname) : 0;
    below = "gst-imaging/"; /* as they are installed */
  }
  if (!length || snprintf (path, PATH_MAX, "%.*s/%s%s", length, folder, below,
                     name) >= PATH_MAX)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "The folder of libimk, where %s belongs, could not be found. Set "
        "IMK_MODULE_PATH to the absolute folder of that file.",
        name);
  return IMK_OK;
}

static ImkStatus
load (const char *name, const ImkModule **module, ImkError *error)
{
  char path[PATH_MAX];
  void *handle;
  const ImkModule *found = NULL;

  IMK_TRY (module_path (name, path, error));
  handle = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "The CUDA backend is not installed: %s. Build with the CUDA toolkit, "
        "or use backend=cpu.",
        dlerror ());
  found = dlsym (handle, IMK_MODULE_SYMBOL);
  if (!found)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "%s is not a module of this project: it has no symbol %s.", path,
        IMK_MODULE_SYMBOL);
  if (found->abi != IMK_BACKEND_ABI)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "%s was built for backend ABI %u, this library has %u. Install both "
        "from the same release.",
        path, found->abi, IMK_BACKEND_ABI);
  *module = found;
  return IMK_OK;
}

static ImkStatus
get_module (LoadedModule *m, const ImkModule **module, ImkError *error)
{
  ImkStatus status = IMK_OK;

  pthread_mutex_lock (&lock);
  if (!m->tried)
    load (m->name, &m->module, &m->error);
  m->tried = true;
  if (m->module)
    *module = m->module;
  else
    status = imk_error_set (error, m->error.code, "%s", m->error.message);
  pthread_mutex_unlock (&lock);
  return status;
}

ImkStatus
imk_backend_find (const char *algorithm, const void **table, ImkError *error)
{
  for (size_t i = 0; i < N_MODULES; i++) {
    const ImkModule *found = NULL;

    IMK_TRY (get_module (&modules[i], &found, error));
    for (const ImkModuleEntry *e = found->entries; e->algorithm; e++)
      if (strcmp (e->algorithm, algorithm) == 0) {
        *table = e->table;
        return IMK_OK;
      }
  }
  return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
      "No CUDA module brings \"%s\". Install all parts from the same release.",
      algorithm);
}

ImkStatus
imk_backend_table (ImkBackend backend, const void *cpu, const char *algorithm,
    const void **table, ImkError *error)
{
  ImkCpuLevel level;

  switch (backend) {
  case IMK_BACKEND_CPU:
    *table = cpu;
    return imk_cpu_level (&level, error); /* also of kernels with one level */
  case IMK_BACKEND_CUDA:
    return imk_backend_find (algorithm, table, error);
  }
  return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
      "There is no backend of the number %d.", (int) backend);
}

ImkStatus
imk_device_get (const ImkDevice **device, ImkError *error)
{
  const void *table = NULL;

  IMK_TRY (imk_backend_find ("device", &table, error));
  *device = table;
  return IMK_OK;
}

ImkStatus
imk_backend_load (const char *name, ImkError *error)
{
  const ImkDevice *device = NULL;
  int n_devices = 0;

  if (strcmp (name, "cpu") == 0)
    return IMK_OK;
  if (strcmp (name, "cuda") != 0)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "There is no backend \"%s\"; there are \"cpu\" and \"cuda\".", name);

  IMK_TRY (imk_device_get (&device, error));
  IMK_TRY (device->count (&n_devices, error));
  if (n_devices == 0)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "No CUDA device is visible to this process. Check nvidia-smi and "
        "CUDA_VISIBLE_DEVICES, or use backend=cpu.");
  return IMK_OK;
}
