/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every configuration: of an earlier and a later version, and without a size.
 */
#include <stdio.h>
#include <string.h>

#include "imk/insarform.h"
#include "imk/lapsharpen.h"
#include "imk/octangio.h"
#include "imk/photostereo.h"
#include "imk/relight.h"
#include "imk/shcalibration.h"
#include "imk/shcentroid.h"
#include "imk/shreconstruct.h"
#include "imk/shwavefront.h"
#include "imk/slcresample.h"
#include "imk/spherelights.h"
#ifdef HAVE_FFT
#include "imk/fft.h"
#include "imk/insarxcorr.h"
#include "imk/normalintegrate.h"
#include "imk/octbscan.h"
#endif
#include "kernel-test.h"

typedef struct Kind {
  const char *name;
  size_t size;
  void (*init) (void *config, size_t size);
  ImkStatus (*make) (const void *config, ImkError *error);
} Kind;

/* init () and make () of a kernel; @call makes @self of it. */
#define FUNCTIONS(kernel, Kernel, call) \
  static void kernel##_init (void *config, size_t size) \
  { \
    imk_##kernel##_config_init_sized (config, size); \
  } \
\
  static ImkStatus kernel##_make (const void *config, ImkError *error) \
  { \
    Imk##Kernel *self = NULL; \
    ImkStatus status = call; \
\
    imk_##kernel##_free (self); \
    return status; \
  }

#define ROW(kernel, Kernel, call) \
  {#kernel, sizeof (Imk##Kernel##Config), kernel##_init, kernel##_make},

#define ON_CPU(KIND, kernel, Kernel) \
  KIND (kernel, Kernel, \
      imk_##kernel##_new (IMK_BACKEND_CPU, config, &self, error))

#define PLAIN_KINDS(KIND) \
  ON_CPU (KIND, lapsharpen, Lapsharpen) \
  ON_CPU (KIND, insarform, Insarform) \
  ON_CPU (KIND, octangio, Octangio) \
  ON_CPU (KIND, photostereo, Photostereo) \
  ON_CPU (KIND, relight, Relight) \
  ON_CPU (KIND, shcentroid, Shcentroid) \
  ON_CPU (KIND, shreconstruct, Shreconstruct) \
  ON_CPU (KIND, slcresample, Slcresample) \
  KIND (shcalibration, Shcalibration, \
      imk_shcalibration_new (config, &self, error)) \
  KIND (shwavefront, Shwavefront, imk_shwavefront_new (config, &self, error)) \
  KIND (spherelights, Spherelights, imk_spherelights_new (config, &self, error))

#ifdef HAVE_FFT
#define FFT_KINDS(KIND) \
  KIND (fft, Fft, imk_fft_new (config, &self, error)) \
  ON_CPU (KIND, insarxcorr, Insarxcorr) \
  ON_CPU (KIND, normalintegrate, Normalintegrate) \
  ON_CPU (KIND, octbscan, Octbscan)
#else
#define FFT_KINDS(KIND)
#endif

PLAIN_KINDS (FUNCTIONS)
FFT_KINDS (FUNCTIONS)

static const Kind kinds[] = {PLAIN_KINDS (ROW) FFT_KINDS (ROW)};

enum { N_KINDS = sizeof (kinds) / sizeof (kinds[0]), ROOM = 4096 };

/* A new object of the first @size bytes of the defaults, which say @says. */
static ImkStatus
make (const Kind *kind, size_t size, size_t says, ImkError *error)
{
  union {
    size_t size;
    unsigned char bytes[ROOM];
  } config;

  memset (config.bytes, 0xa5, ROOM);
  kind->init (config.bytes, size);
  for (size_t i = size; i < ROOM; i++)
    test_check (config.bytes[i] == 0xa5,
        "%s: byte %zu behind the %zu of the "
        "configuration was written",
        kind->name, i, size);
  test_check (config.size == size, "%s: %zu bytes say %zu", kind->name, size,
      config.size);
  config.size = says;
  snprintf (error->message, sizeof (error->message), "none");
  return kind->make (config.bytes, error);
}

/* Down to the first two words: what it does not have is as in the defaults. */
TEST (test_earlier_version_is_taken,
    "a configuration of an earlier version gets the defaults")
{
  for (int i = 0; i < N_KINDS; i++) {
    ImkError now, then;
    ImkStatus status = make (&kinds[i], kinds[i].size, kinds[i].size, &now);

    for (size_t size = 2 * sizeof (size_t); size < kinds[i].size;
         size += sizeof (size_t)) {
      test_check (make (&kinds[i], size, size, &then) == status,
          "%s: %zu bytes: %s; all: %s", kinds[i].name, size, then.message,
          now.message);
      test_check (strcmp (then.message, now.message) == 0,
          "%s: %zu bytes: %s; all: %s", kinds[i].name, size, then.message,
          now.message);
    }
  }
}

TEST (test_later_version_is_refused, "one of a later version is refused")
{
  for (int i = 0; i < N_KINDS; i++) {
    size_t size = kinds[i].size + sizeof (size_t);

    test_error (make (&kinds[i], size, size, test_new_error ()),
        IMK_ERROR_CONFIG, "later version");
  }
}

TEST (test_sizes_that_cannot_be_are_refused, "sizes that cannot be are refused")
{
  for (int i = 0; i < N_KINDS; i++) {
    const size_t wrong[] = {
        0, 1, sizeof (size_t), kinds[i].size - 1, kinds[i].size + 1, SIZE_MAX};
    char init[64];

    snprintf (init, sizeof (init), "imk_%s_config_init", kinds[i].name);
    for (size_t k = 0; k < sizeof (wrong) / sizeof (wrong[0]); k++) {
      test_error (make (&kinds[i], kinds[i].size, wrong[k], test_new_error ()),
          IMK_ERROR_CONFIG, init);
    }
  }
}
