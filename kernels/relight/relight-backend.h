/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between relight.c and the backends. What arrives here is valid. */
#pragma once

#include "relight/relight.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unit vectors, y in the sense of the normals. */
typedef struct ImkRelightParams {
  float light[3], halfway[3];
  float ambient, diffuse, specular, shininess;
  float power; /* of the result, 1 / gamma */
} ImkRelightParams;

typedef struct ImkRelightBackend {
  IMK_BACKEND_HEADER;
  /* For pictures of any size. */
  ImkStatus (*create) (uint32_t n_threads, void **state, ImkError *error);
  ImkStatus (*process) (void *state, const ImkRelightParams *params,
      const ImkRelightSource *normals, const ImkRelightSource *albedo,
      ImkImage *out, void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkRelightBackend;

extern const ImkRelightBackend imk_relight_cpu;
extern const ImkRelightBackend imk_relight_cuda;

#ifdef __cplusplus
}
#endif
