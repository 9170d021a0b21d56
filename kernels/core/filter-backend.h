/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The backend table of an algorithm that makes one image, or one in two
 * precisions, from one or two. An algorithm with other calls declares a table
 * of its own. */
#pragma once

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

enum { IMK_FILTER_MAX_INPUTS = 2, IMK_FILTER_MAX_OUTPUTS = 3 };

/**
 * ImkFilterBackend: (between <name>.c, which validates, and the backends)
 * @params_size: bytes of the params
 * @n_inputs: images that process takes, at most IMK_FILTER_MAX_INPUTS
 * @n_outputs: images that it makes, at most IMK_FILTER_MAX_OUTPUTS
 *
 * <name>-backend.h defines what plan, params and result point to. They are
 * valid and the images checked when they arrive here. */
typedef struct ImkFilterBackend {
  IMK_BACKEND_HEADER;
  size_t params_size;
  uint32_t n_inputs, n_outputs;
  /* @plan: what stays the same, readable during the call only; NULL where the
   * params are enough. @params: copied; what may change between two frames.
   * @n_threads: on the CPU, 0 for one a processor */
  ImkStatus (*create) (const void *plan, const void *params, uint32_t n_threads,
      void **state, ImkError *error);
  ImkStatus (*update) (void *state, const void *params, ImkError *error);
  /* @in: n_inputs images; @out: n_outputs; an optional one that is absent has
   * no data */
  ImkStatus (*process) (void *state, const ImkImage *in, ImkImage *out,
      void *stream, ImkError *error);
  /* Forgets earlier frames. NULL for an algorithm that remembers none. */
  ImkStatus (*reset) (void *state, void *stream, ImkError *error);
  /* What the last frame gave beside its image; waits for that frame. NULL for
   * an algorithm that gives the image alone. */
  ImkStatus (*get_result) (void *state, void *result, ImkError *error);
  void (*destroy) (void *state);
} ImkFilterBackend;

IMK_END_DECLS
