/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-filter.h"

#include <stdlib.h>

#include "mock-object.h"

/* The state of an object. */
typedef struct Filter {
  const ImkFilterBackend *cpu;
  void *state; /* of @cpu */
} Filter;

static void
destroy_filter (void *state)
{
  Filter *f = state;

  f->cpu->destroy (f->state);
  free (f);
}

ImkStatus
mock_filter_create (const char *algorithm, const ImkFilterBackend *cpu,
    const void *plan, const void *params, void **state, ImkError *error)
{
  MockObject *o;
  Filter *f;
  ImkStatus status = mock_object_new (algorithm, destroy_filter, &o, error);

  if (status != IMK_OK)
    return status;
  f = calloc (1, sizeof (*f));
  if (!f)
    return mock_object_made (o, mock_no_memory (error), state);
  f->cpu = cpu;
  o->state = f;
  /* one thread: every stream of the mock is a thread already */
  status = cpu->create (plan, params, 1, &f->state, error);
  if (status != IMK_OK)
    free (f);
  return mock_object_made (o, status, state);
}

static Filter *
filter_of (MockObject *object)
{
  return object->state;
}

ImkStatus
mock_filter_update (void *state, const void *params, ImkError *error)
{
  return mock_object_update (
      state, params, filter_of (state)->cpu->params_size, error);
}

static ImkStatus
run_process (MockObjectJob *job, ImkError *error)
{
  Filter *f = filter_of (job->object);
  ImkStatus status = IMK_OK;

  if (job->params)
    status = f->cpu->update (f->state, job->params, error);
  return status == IMK_OK
             ? f->cpu->process (f->state, job->in, job->out, NULL, error)
             : status;
}

ImkStatus
mock_filter_process (void *state, const ImkImage *in, ImkImage *out,
    void *stream, ImkError *error)
{
  const ImkFilterBackend *cpu = filter_of (state)->cpu;
  MockRequest request = {
      .verb = "process", .run = run_process, .takes_params = true};

  for (uint32_t i = 0; i < cpu->n_inputs; i++)
    request.in[i] = mock_image_or_none (&in[i]);
  for (uint32_t i = 0; i < cpu->n_outputs; i++)
    request.out[i] = mock_image_or_none (&out[i]);
  return mock_object_submit (state, &request, stream, error);
}

static ImkStatus
run_reset (MockObjectJob *job, ImkError *error)
{
  Filter *f = filter_of (job->object);

  return f->cpu->reset (f->state, NULL, error);
}

ImkStatus
mock_filter_reset (void *state, void *stream, ImkError *error)
{
  MockRequest request = {.verb = "reset", .run = run_reset};

  return mock_object_submit (state, &request, stream, error);
}

ImkStatus
mock_filter_get_result (void *state, void *result, ImkError *error)
{
  Filter *f = filter_of (state);
  ImkStatus status = mock_object_begin (state, "get_result", error);

  if (status != IMK_OK)
    return status;
  mock_object_wait (state);
  return f->cpu->get_result (f->state, result, error);
}

void
mock_filter_destroy (void *state)
{
  mock_object_destroy (state);
}
