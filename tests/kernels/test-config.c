/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every configuration: of an earlier and a later version, and without a size.
 */
#include <stdio.h>
#include <string.h>

#include "imk/insarform.h"
#include "imk/lapsharpen.h"
#include "imk/photostereo.h"
#include "imk/relight.h"
#include "imk/shcentroid.h"
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

static void
lapsharpen_init (void *config, size_t size)
{
  imk_lapsharpen_config_init_sized (config, size);
}

static ImkStatus
lapsharpen_make (const void *config, ImkError *error)
{
  ImkLapsharpen *self = NULL;
  ImkStatus status = imk_lapsharpen_new (IMK_BACKEND_CPU, config, &self, error);

  imk_lapsharpen_free (self);
  return status;
}

static void
insarform_init (void *config, size_t size)
{
  imk_insarform_config_init_sized (config, size);
}

static ImkStatus
insarform_make (const void *config, ImkError *error)
{
  ImkInsarform *self = NULL;
  ImkStatus status = imk_insarform_new (IMK_BACKEND_CPU, config, &self, error);

  imk_insarform_free (self);
  return status;
}

static void
photostereo_init (void *config, size_t size)
{
  imk_photostereo_config_init_sized (config, size);
}

static ImkStatus
photostereo_make (const void *config, ImkError *error)
{
  ImkPhotostereo *self = NULL;
  ImkStatus status =
      imk_photostereo_new (IMK_BACKEND_CPU, config, &self, error);

  imk_photostereo_free (self);
  return status;
}

static void
relight_init (void *config, size_t size)
{
  imk_relight_config_init_sized (config, size);
}

static ImkStatus
relight_make (const void *config, ImkError *error)
{
  ImkRelight *self = NULL;
  ImkStatus status = imk_relight_new (IMK_BACKEND_CPU, config, &self, error);

  imk_relight_free (self);
  return status;
}

static void
shcentroid_init (void *config, size_t size)
{
  imk_shcentroid_config_init_sized (config, size);
}

static ImkStatus
shcentroid_make (const void *config, ImkError *error)
{
  ImkShcentroid *self = NULL;
  ImkStatus status = imk_shcentroid_new (IMK_BACKEND_CPU, config, &self, error);

  imk_shcentroid_free (self);
  return status;
}

static void
slcresample_init (void *config, size_t size)
{
  imk_slcresample_config_init_sized (config, size);
}

static ImkStatus
slcresample_make (const void *config, ImkError *error)
{
  ImkSlcresample *self = NULL;
  ImkStatus status =
      imk_slcresample_new (IMK_BACKEND_CPU, config, &self, error);

  imk_slcresample_free (self);
  return status;
}

static void
spherelights_init (void *config, size_t size)
{
  imk_spherelights_config_init_sized (config, size);
}

static ImkStatus
spherelights_make (const void *config, ImkError *error)
{
  ImkSpherelights *self = NULL;
  ImkStatus status = imk_spherelights_new (config, &self, error);

  imk_spherelights_free (self);
  return status;
}

#ifdef HAVE_FFT
static void
fft_init (void *config, size_t size)
{
  imk_fft_config_init_sized (config, size);
}

static ImkStatus
fft_make (const void *config, ImkError *error)
{
  ImkFft *self = NULL;
  ImkStatus status = imk_fft_new (config, &self, error);

  imk_fft_free (self);
  return status;
}

static void
insarxcorr_init (void *config, size_t size)
{
  imk_insarxcorr_config_init_sized (config, size);
}

static ImkStatus
insarxcorr_make (const void *config, ImkError *error)
{
  ImkInsarxcorr *self = NULL;
  ImkStatus status = imk_insarxcorr_new (IMK_BACKEND_CPU, config, &self, error);

  imk_insarxcorr_free (self);
  return status;
}

static void
normalintegrate_init (void *config, size_t size)
{
  imk_normalintegrate_config_init_sized (config, size);
}

static ImkStatus
normalintegrate_make (const void *config, ImkError *error)
{
  ImkNormalintegrate *self = NULL;
  ImkStatus status =
      imk_normalintegrate_new (IMK_BACKEND_CPU, config, &self, error);

  imk_normalintegrate_free (self);
  return status;
}

static void
octbscan_init (void *config, size_t size)
{
  imk_octbscan_config_init_sized (config, size);
}

static ImkStatus
octbscan_make (const void *config, ImkError *error)
{
  ImkOctbscan *self = NULL;
  ImkStatus status = imk_octbscan_new (IMK_BACKEND_CPU, config, &self, error);

  imk_octbscan_free (self);
  return status;
}

#endif

static const Kind kinds[] = {
    {"lapsharpen", sizeof (ImkLapsharpenConfig), lapsharpen_init,
        lapsharpen_make},
    {"insarform", sizeof (ImkInsarformConfig), insarform_init, insarform_make},
    {"photostereo", sizeof (ImkPhotostereoConfig), photostereo_init,
        photostereo_make},
    {"relight", sizeof (ImkRelightConfig), relight_init, relight_make},
    {"shcentroid", sizeof (ImkShcentroidConfig), shcentroid_init,
        shcentroid_make},
    {"slcresample", sizeof (ImkSlcresampleConfig), slcresample_init,
        slcresample_make},
    {"spherelights", sizeof (ImkSpherelightsConfig), spherelights_init,
        spherelights_make},
#ifdef HAVE_FFT
    {"fft", sizeof (ImkFftConfig), fft_init, fft_make},
    {"insarxcorr", sizeof (ImkInsarxcorrConfig), insarxcorr_init,
        insarxcorr_make},
    {"normalintegrate", sizeof (ImkNormalintegrateConfig), normalintegrate_init,
        normalintegrate_make},
    {"octbscan", sizeof (ImkOctbscanConfig), octbscan_init, octbscan_make},
#endif
};

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
    ImkError error;

    test_error (make (&kinds[i], size, size, &error), &error, IMK_ERROR_CONFIG,
        "later version");
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
      ImkError error;

      test_error (make (&kinds[i], kinds[i].size, wrong[k], &error), &error,
          IMK_ERROR_CONFIG, init);
    }
  }
}
