/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mock-object.h"

#include <stdio.h>
#include <stdlib.h>

/* Of a sentence: "lapsharpen process" */
typedef struct Call {
  char text[64];
} Call;

static Call
call_name (const char *algorithm, const char *verb)
{
  Call call;

  snprintf (call.text, sizeof (call.text), "%s %s", algorithm, verb);
  return call;
}

const ImkImage *
mock_image_or_none (const ImkImage *image)
{
  return image->data ? image : NULL;
}

static void
object_free (MockObject *o)
{
  mock_handle_remove (&o->handle);
  pthread_mutex_destroy (&o->busy);
  pthread_mutex_destroy (&o->lock);
  pthread_cond_destroy (&o->changed);
  free (o->params);
  free (o);
}

ImkStatus
mock_object_new (const char *algorithm, void (*destroy_state) (void *state),
    MockObject **object, ImkError *error)
{
  ImkStatus status = mock_begin (call_name (algorithm, "create").text, error);
  MockObject *o;

  /* a real one makes several calls: memory, an event */
  if (status == IMK_OK)
    status = mock_begin (call_name (algorithm, "memory").text, error);
  if (status != IMK_OK)
    return status;
  o = calloc (1, sizeof (*o));
  if (!o)
    return mock_no_memory (error);
  o->algorithm = algorithm;
  o->destroy_state = destroy_state;
  pthread_mutex_init (&o->busy, NULL);
  pthread_mutex_init (&o->lock, NULL);
  pthread_cond_init (&o->changed, NULL);
  mock_handle_add (&o->handle, MOCK_OBJECT);
  *object = o;
  return IMK_OK;
}

ImkStatus
mock_object_made (MockObject *o, ImkStatus status, void **state)
{
  if (status == IMK_OK)
    *state = o;
  else
    object_free (o);
  return status;
}

void
mock_object_destroy (void *object)
{
  MockObject *o = object;

  if (!o)
    return;
  mock_need_context ("destroy");
  mock_handle_check (o, MOCK_OBJECT, "destroy");
  mock_object_wait (o);
  o->destroy_state (o->state);
  object_free (o);
}

ImkStatus
mock_object_begin (MockObject *o, const char *verb, ImkError *error)
{
  Call call = call_name (
      ((MockObject *) mock_handle_check (o, MOCK_OBJECT, verb))->algorithm,
      verb);
  ImkStatus status = mock_begin (call.text, error);

  o->n_calls++;
  if (status == IMK_OK && o->handle.device != mock_current_device ())
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "%s: the object belongs to device %d, current is device %d.", call.text,
        o->handle.device, mock_current_device ());
  return status;
}

void
mock_object_wait (MockObject *o)
{
  pthread_mutex_lock (&o->lock);
  while (o->n_queued)
    pthread_cond_wait (&o->changed, &o->lock);
  pthread_mutex_unlock (&o->lock);
}

ImkStatus
mock_object_update (
    MockObject *o, const void *params, size_t size, ImkError *error)
{
  ImkStatus status = mock_object_begin (o, "update", error);
  void *copy = status == IMK_OK ? malloc (size) : NULL;

  if (status != IMK_OK)
    return status;
  if (!copy)
    return mock_no_memory (error);
  memcpy (copy, params, size);
  pthread_mutex_lock (&o->lock);
  free (o->params);
  o->params = copy;
  pthread_mutex_unlock (&o->lock);
  return IMK_OK;
}

/* --- jobs ----------------------------------------------------------------- */

static void
object_job_clear (MockJob *job)
{
  MockObjectJob *j = (MockObjectJob *) job;

  for (int i = 0; i < MOCK_MAX_INPUTS + MOCK_MAX_OUTPUTS; i++)
    mock_span_release (&j->spans[i]);
  free (j->params);
  free (j->call);
  /* without an object it was never queued */
  if (j->object) {
    pthread_mutex_lock (&j->object->lock);
    j->object->n_queued--;
    pthread_cond_broadcast (&j->object->changed);
    pthread_mutex_unlock (&j->object->lock);
  }
}

static ImkStatus
run_object_job (MockJob *job, ImkError *error)
{
  MockObjectJob *j = (MockObjectJob *) job;
  MockObject *o = j->object;
  ImkStatus status;

  /* whatever stream it is on: a real one waits for an event */
  pthread_mutex_lock (&o->lock);
  while (j->in_turn && o->n_taken != j->turn)
    pthread_cond_wait (&o->changed, &o->lock);
  pthread_mutex_unlock (&o->lock);
  pthread_mutex_lock (&o->busy);
  status = j->run (j, error);
  pthread_mutex_unlock (&o->busy);
  if (j->in_turn) {
    pthread_mutex_lock (&o->lock);
    o->n_taken++;
    pthread_cond_broadcast (&o->changed);
    pthread_mutex_unlock (&o->lock);
  }
  return status;
}

/* @image, as the device would find it: in its own memory or mapped. */
static ImkStatus
take_image (const ImkImage *image, int device, bool copied, const char *role,
    MockSpan *span, ImkImage *taken, ImkError *error)
{
  ImkStatus status = mock_span_take (image->data,
      mock_rows_size (image->stride, imk_image_row_size (image), image->height),
      role, span, error);
  bool mapped = image->location == IMK_LOCATION_HOST_MAPPED;

  if (status != IMK_OK)
    return status;
  if (!span->block || span->bytes == image->data)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "The %s is at %p, an address of the CPU; the device cannot reach it.",
        role, image->data);
  if (span->block->pinned != mapped)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "The %s does not lie in %s memory, as its place says.", role,
        mapped ? "page-locked" : "device");
  if (!mapped && !copied && span->block->device != device)
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "The %s lies in memory of device %d, the stream is of device %d.", role,
        span->block->device, device);
  *taken = *image;
  taken->data = span->bytes;
  taken->location = IMK_LOCATION_HOST;
  return IMK_OK;
}

/* All that @request names, for @job alone. */
static ImkStatus
take_request (
    MockObjectJob *job, const MockRequest *request, int device, ImkError *error)
{
  ImkStatus status = IMK_OK;

  job->run = request->run;
  job->in_turn = request->in_turn;
  if (request->call) {
    job->call = malloc (request->call_size);
    if (!job->call)
      return mock_no_memory (error);
    memcpy (job->call, request->call, request->call_size);
  }
  for (int i = 0; i < MOCK_MAX_INPUTS && status == IMK_OK; i++)
    if (request->in[i])
      status = take_image (request->in[i], device, request->copies_input,
          "input image", &job->spans[i], &job->in[i], error);
  for (int i = 0; i < MOCK_MAX_OUTPUTS && status == IMK_OK; i++)
    if (request->out[i])
      status = take_image (request->out[i], device, false, "output image",
          &job->spans[MOCK_MAX_INPUTS + i], &job->out[i], error);
  return status;
}

ImkStatus
mock_object_submit (
    MockObject *o, const MockRequest *request, void *stream, ImkError *error)
{
  ImkStatus status = mock_object_begin (o, request->verb, error);
  MockObjectJob *job;

  if (status == IMK_OK)
    status = mock_begin ("a launch", error);
  if (status == IMK_OK &&
      mock_stream_device (stream, request->verb) != o->handle.device)
    status = imk_error_set (error, IMK_ERROR_DEVICE,
        "%s %s: the stream is not of device %d, where the object is.",
        o->algorithm, request->verb, o->handle.device);
  if (status != IMK_OK)
    return status;
  job = mock_job_new (sizeof (*job), run_object_job, object_job_clear);
  if (!job)
    return mock_no_memory (error);
  status = take_request (job, request, o->handle.device, error);
  if (status != IMK_OK) {
    mock_job_free (&job->job);
    return status;
  }
  job->object = o;
  pthread_mutex_lock (&o->lock);
  o->n_queued++;
  if (job->in_turn)
    job->turn = o->n_given++;
  if (request->takes_params) {
    job->params = o->params;
    o->params = NULL;
  }
  pthread_mutex_unlock (&o->lock);
  return mock_submit (&job->job, stream, request->verb, error);
}
