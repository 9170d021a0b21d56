/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of spherelights: a mask and pictures of any samples end in
 * directions of length 1, or in a sentence.
 * sources: kernels/spherelights/spherelights.c kernels/core/config.c
 * kernels/core/status.c kernels/core/limits.c
 * kernels/core/image.c */
#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/spherelights.h"

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

enum { MAX_PICTURES = 4 };

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

static void
check_lights (ImkSpherelights *kernel)
{
  ImkSpherelight lights[MAX_PICTURES];
  ImkSphere sphere;
  ImkError error;

  if (imk_spherelights_finish (kernel, lights, &sphere, &error) != IMK_OK) {
    check_sentence (&error);
    return;
  }
  for (guint i = 0; i < imk_spherelights_n_added (kernel); i++) {
    const double *d = lights[i].direction;

    check (fabs (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] - 1) < 1e-6);
    check (isfinite (lights[i].x) && isfinite (lights[i].y));
  }
}

/* Width, height, what is known of the sphere, then mask and pictures. */
int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  ImkSpherelightsConfig config;
  ImkSpherelights *kernel = NULL;
  ImkError error;
  ImkImage image;
  gsize n;

  if (size < 3)
    return 0;
  imk_spherelights_config_init (&config);
  config.width = 1 + bytes[0] % 32;
  config.height = 1 + bytes[1] % 32;
  config.gamma = bytes[2] % 5 == 4 ? 2.2 : 1;
  n = (gsize) config.width * config.height;
  image = (ImkImage){
      .stride = config.width,
      .width = config.width,
      .height = config.height,
      .channels = 1,
      .type = IMK_TYPE_U8,
  };
  if (bytes[2] % 3 == 1) {
    config.sphere.x = config.width / 2.0;
    config.sphere.y = config.height / 2.0;
    config.sphere.radius = bytes[2] / 8.0;
  }
  for (gsize at = 3; at + n <= size; at += n) {
    image.data = (gpointer) (bytes + at);
    if (at == 3 && bytes[2] % 3 == 2) { /* a mask comes first */
      if (imk_spherelights_fit (&image, &config.sphere, &error) == IMK_OK)
        continue;
      check_sentence (&error);
      return 0;
    }
    if (!kernel && imk_spherelights_new (&config, &kernel, &error) != IMK_OK) {
      check_sentence (&error);
      return 0;
    }
    if (imk_spherelights_n_added (kernel) < MAX_PICTURES &&
        imk_spherelights_add (kernel, &image, &error) != IMK_OK)
      check_sentence (&error);
  }
  if (kernel && imk_spherelights_n_added (kernel) > 0)
    check_lights (kernel);
  imk_spherelights_free (kernel);
  return 0;
}
