/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* libFuzzer target of the light file readers: any bytes end in lights that a
 * kernel may have, or in a sentence.
 * sources: kernels/photostereo/lights/photostereo-lights.c
 * kernels/photostereo/lights/photostereo-json.c kernels/core/status.c */
#include <glib.h>
#include <math.h>
#include <stdlib.h>

#include "imk/photostereo-lights.h"

int LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size);

static void
check (gboolean condition)
{
  if (!condition)
    abort ();
}

static void
check_error (ImkStatus status, const ImkError *error)
{
  check (status == IMK_ERROR_FILE && error->code == status);
  check (g_utf8_validate (error->message, -1, NULL));
  check (g_str_has_suffix (error->message, "."));
}

static void
check_lights (const ImkPhotostereoLights *lights)
{
  check (lights->n >= 1 && lights->n <= IMK_PHOTOSTEREO_MAX_LIGHTS);
  for (guint i = 0; i < lights->n; i++) {
    const ImkPhotostereoLight *l = &lights->lights[i];

    check (isfinite (l->x) && isfinite (l->y) && isfinite (l->z));
    check (l->x != 0 || l->y != 0 || l->z != 0);
    check (l->n_bands <= IMK_PHOTOSTEREO_MAX_BANDS);
    check (l->n_bands == lights->lights[0].n_bands);
    for (guint k = 0; k < (l->n_bands ? l->n_bands : 3); k++)
      check (l->intensity[k] > 0 && isfinite (l->intensity[k]));
  }
}

int
LLVMFuzzerTestOneInput (const guint8 *bytes, gsize size)
{
  ImkPhotostereoLight light = {.z = 1, .intensity = {1, 1, 1}};
  ImkPhotostereoLight pair[] = {light, light};
  ImkPhotostereoLights lights = {0}, two = {.n = 2, .lights = pair};
  ImkError error;
  ImkStatus status = imk_photostereo_lights_parse (
      (const char *) bytes, size, "fuzz.lp", &lights, &error);

  if (status == IMK_OK)
    check_lights (&lights);
  else
    check_error (status, &error);
  imk_photostereo_lights_clear (&lights);

  status = imk_photostereo_lights_parse_intensities (
      (const char *) bytes, size, "fuzz.txt", &two, &error);
  if (status != IMK_OK)
    check_error (status, &error);
  check_lights (&two);
  return 0;
}
