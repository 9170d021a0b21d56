/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between relight.c and the backends. What arrives here is valid. */
#pragma once

#include "core/filter-backend.h"
#include "imk/relight.h"

IMK_BEGIN_DECLS

/* The inputs are the normals and the albedo, which may be absent. There is no
 * plan: pictures may have any size. Vectors have length 1 and the y of the
 * normals. */
typedef struct ImkRelightParams {
  float light[3], halfway[3];
  float ambient, diffuse, specular, shininess;
  float power;                                   /* of the result, 1 / gamma */
  uint32_t normal_colours[3], albedo_colours[3]; /* as in ImkRelightSource */
} ImkRelightParams;

extern const ImkFilterBackend imk_relight_cpu;
extern const ImkFilterBackend imk_relight_cuda;

IMK_END_DECLS
