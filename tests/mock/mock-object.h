/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the mocks of the algorithms share: an object has the state of the CPU
 * backend, which the streams run on the mock's device memory. */
#pragma once

#include <string.h>

#include "mock-cuda.h"

enum { MOCK_MAX_INPUTS = 16, MOCK_MAX_OUTPUTS = 8 };

typedef struct MockObject {
  MockHandle handle;
  const char *algorithm;
  void *state;
  void (*destroy_state) (void *state);
  unsigned n_calls; /* without a lock: an object has one caller at a time, and
                       the thread sanitizer sees two */
  pthread_mutex_t busy; /* one job at a time */
  pthread_mutex_t lock; /* of these: */
  pthread_cond_t changed;
  unsigned n_queued;
  unsigned n_given, n_taken; /* turns of jobs that remember those before */
  void *params;              /* those that @state has not got yet, or NULL */
} MockObject;

/* As it is when the stream comes to it. */
typedef struct MockObjectJob {
  MockJob job;
  MockObject *object;
  ImkStatus (*run) (struct MockObjectJob *job, ImkError *error);
  void *params; /* to update the state with first, or NULL */
  void *call;
  bool in_turn;
  unsigned turn;
  /* as the CPU backend takes them; without data where none was given */
  ImkImage in[MOCK_MAX_INPUTS], out[MOCK_MAX_OUTPUTS];
  MockSpan spans[MOCK_MAX_INPUTS + MOCK_MAX_OUTPUTS];
} MockObjectJob;

/* What a stream is to do with an object. */
typedef struct MockRequest {
  const char *verb; /* "process": for sentences */
  ImkStatus (*run) (MockObjectJob *job, ImkError *error);
  const ImkImage *in[MOCK_MAX_INPUTS], *out[MOCK_MAX_OUTPUTS]; /* or NULL */
  const void *call; /* what else it needs; copied */
  size_t call_size;
  bool copies_input; /* which may lie on another device then */
  bool takes_params; /* the object's, if they are newer than its state's */
  bool in_turn;      /* jobs run in the order of their requests on any stream */
} MockRequest;

/* Returns: @image, NULL when it has no data */
const ImkImage *mock_image_or_none (const ImkImage *image);

/* Returns: an object without a state */
ImkStatus mock_object_new (const char *algorithm,
    void (*destroy_state) (void *state), MockObject **object, ImkError *error);
/* Gives @object out as @state when @status, that of making its state, is
 * IMK_OK; ends it otherwise. Returns: @status */
ImkStatus mock_object_made (MockObject *object, ImkStatus status, void **state);
/* The slot "destroy" of every table. */
void mock_object_destroy (void *object);

/* A call that asks the device for something: can it, here? */
ImkStatus mock_object_begin (
    MockObject *object, const char *verb, ImkError *error);
/* Until nothing is queued. */
void mock_object_wait (MockObject *object);
/* Keeps a copy of @params for the next job that takes them. */
ImkStatus mock_object_update (
    MockObject *object, const void *params, size_t size, ImkError *error);
ImkStatus mock_object_submit (MockObject *object, const MockRequest *request,
    void *stream, ImkError *error);
