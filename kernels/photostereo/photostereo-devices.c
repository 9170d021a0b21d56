/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A backend of several devices. Each device has a band of rows and an object of
 * the CUDA backend, and reads its rows over its own bus. A pixel is solved from
 * its own samples, so bands change no bit.
 *
 * Each device has a stream, which starts after the caller's stream has arrived
 * at the call and which the caller's stream waits for. Results of a band are
 * made in the device's memory and copied to the caller's images. */
#include "photostereo/photostereo-backend.h"

#include <pthread.h>
#include <stdlib.h>

#include "imk/device.h"

/* The outputs are images alone. */
enum { N_OUTPUTS = sizeof (ImkPhotostereoOutputs) / sizeof (ImkImage) };

/* A device and its band. */
typedef struct Part {
  void *context; /* NULL: the context of the caller */
  void *state;
  void *stream, *done;
  uint32_t first_row, n_rows;
  bool keeps_frames;
  uint8_t *results; /* on the device */
  size_t results_size;
} Part;

typedef struct Devices {
  const ImkPhotostereoBackend *backend;
  const ImkDevice *device;
  void *ready; /* event after the earlier work of the caller's stream */
  uint32_t width, height;
  uint32_t n_parts;
  Part parts[IMK_PHOTOSTEREO_MAX_DEVICES];
} Devices;

/* A call that all devices run at once. */
typedef struct Solve {
  Devices *devices;
  Part *part;
  const ImkPhotostereoSet *set;
  bool compare;
  const ImkPhotostereoOutputs *outputs;
  ImkPhotostereoRow *rows;
  ImkStatus status;
  ImkError error;
} Solve;

static ImkStatus
enter (const Devices *d, const Part *part, ImkError *error)
{
  return part->context ? d->device->push (part->context, error) : IMK_OK;
}

static void
leave (const Devices *d, const Part *part)
{
  if (part->context)
    d->device->pop ();
}

/* After a failure the caller's memory is no longer read or written. */
static void
settle (const Devices *d)
{
  for (uint32_t p = 0; p < d->n_parts; p++)
    if (enter (d, &d->parts[p], NULL) == IMK_OK) {
      d->device->stream_synchronize (d->parts[p].stream, NULL);
      leave (d, &d->parts[p]);
    }
}

/* ------------------------------------------------------------------------
 * The object. */

static ImkStatus
fill_part (Devices *d, Part *part, const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, ImkError *error)
{
  ImkPhotostereoPlan band = *plan;
  ImkStatus status = d->device->stream_new (&part->stream, error);

  band.first_row = part->first_row;
  band.n_rows = part->n_rows;
  IMK_TRY (status);
  IMK_TRY (d->device->event_new (&part->done, error));
  IMK_TRY (d->backend->create (&band, params, &part->state, error));
  part->keeps_frames = d->backend->keeps_frames (part->state);
  return IMK_OK;
}

static ImkStatus
open_part (Devices *d, uint32_t p, const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, ImkError *error)
{
  Part *part = &d->parts[p];
  ImkStatus status;

  part->first_row = (uint32_t) ((uint64_t) plan->height * p / d->n_parts);
  part->n_rows = (uint32_t) ((uint64_t) plan->height * (p + 1) / d->n_parts) -
                 part->first_row;
  if (p > 0)
    IMK_TRY (d->device->context (plan->devices[p - 1], &part->context, error));
  IMK_TRY (enter (d, part, error));
  status = fill_part (d, part, plan, params, error);
  leave (d, part);
  return status;
}

/* A lost context has freed the memory of the device, but not the state's memory
 * on the host. */
static void
close_part (const Devices *d, Part *part)
{
  bool entered = enter (d, part, NULL) == IMK_OK;

  if (part->state)
    d->backend->destroy (part->state);
  if (!entered)
    return;
  d->device->free_device (part->results);
  if (part->done)
    d->device->event_free (part->done);
  if (part->stream)
    d->device->stream_free (part->stream);
  leave (d, part);
}

static void
devices_destroy (void *state)
{
  Devices *d = state;

  /* A device that failed to open owns nothing. */
  for (uint32_t p = 0; p < d->n_parts; p++)
    if (p == 0 || d->parts[p].context)
      close_part (d, &d->parts[p]);
  if (d->ready)
    d->device->event_free (d->ready);
  free (d);
}

static ImkStatus
devices_create (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, void **state, ImkError *error)
{
  Devices *d = calloc (1, sizeof (*d));
  const void *backend = NULL;
  ImkStatus status;

  if (!d)
    return IMK_NO_MEMORY (error, "for the object.");
  status = imk_backend_find ("photostereo", &backend, error);
  d->backend = backend;
  d->width = plan->width;
  d->height = plan->height;
  if (status == IMK_OK)
    status = imk_device_get (&d->device, error);
  if (status == IMK_OK)
    status = d->device->event_new (&d->ready, error);
  if (status == IMK_OK)
    d->n_parts =
        plan->n_devices < plan->height ? plan->n_devices + 1 : plan->height;
  for (uint32_t p = 0; p < d->n_parts && status == IMK_OK; p++)
    status = open_part (d, p, plan, params, error);
  if (status == IMK_OK)
    *state = d;
  else
    devices_destroy (d);
  return status;
}

static ImkStatus
devices_update (
    void *state, const ImkPhotostereoParams *params, ImkError *error)
{
  Devices *d = state;
  ImkStatus status = IMK_OK;

  for (uint32_t p = 0; p < d->n_parts && status == IMK_OK; p++) {
    status = enter (d, &d->parts[p], error);
    if (status != IMK_OK)
      break;
    status = d->backend->update (d->parts[p].state, params, error);
    leave (d, &d->parts[p]);
  }
  return status;
}

static void
devices_reset (void *state)
{
  Devices *d = state;

  for (uint32_t p = 0; p < d->n_parts; p++)
    d->backend->reset (d->parts[p].state);
}

/* ------------------------------------------------------------------------
 * Pictures. */

static bool
devices_keep_frames (void *state)
{
  const Devices *d = state;

  for (uint32_t p = 0; p < d->n_parts; p++)
    if (d->parts[p].keeps_frames)
      return true;
  return false;
}

/* Pictures that are read when the set is solved are there, too. */
static ImkStatus
add_to_part (Devices *d, Part *part, const ImkImage *frame, uint32_t light,
    uint32_t band, ImkError *error)
{
  IMK_TRY (d->device->event_wait (d->ready, part->stream, error));
  IMK_TRY (
      d->backend->add (part->state, frame, light, band, part->stream, error));
  return d->device->event_record (part->done, part->stream, error);
}

/* Makes @stream wait for all work of the parts so far. */
static ImkStatus
wait_for_parts (Devices *d, void *stream, ImkError *error)
{
  for (uint32_t p = 0; p < d->n_parts; p++)
    IMK_TRY (d->device->event_wait (d->parts[p].done, stream, error));
  return IMK_OK;
}

static ImkStatus
devices_add (void *state, const ImkImage *frame, uint32_t light, uint32_t band,
    void *stream, ImkError *error)
{
  Devices *d = state;
  ImkStatus status = d->device->event_record (d->ready, stream, error);

  for (uint32_t p = 0; p < d->n_parts && status == IMK_OK; p++) {
    status = enter (d, &d->parts[p], error);
    if (status != IMK_OK)
      break;
    status = add_to_part (d, &d->parts[p], frame, light, band, error);
    leave (d, &d->parts[p]);
  }
  if (status == IMK_OK)
    status = wait_for_parts (d, stream, error);
  if (status != IMK_OK)
    settle (d);
  return status;
}

/* ------------------------------------------------------------------------
 * Solutions. */

static size_t
align (size_t size)
{
  return (size + 255) / 256 * 256;
}

/* Returns: how many pictures an output has below each other: one for each band
 * of colour, or 1 */
static uint32_t
n_stacked (const Devices *d, const ImkImage *image)
{
  return image->height / d->height;
}

/* The rows of a band, of the @i-th picture. */
static ImkImage
band_of (const Devices *d, const ImkImage *image, const Part *part, uint32_t i)
{
  ImkImage band = *image;

  band.data = (uint8_t *) image->data +
              (i * d->height + part->first_row) * image->stride;
  band.height = part->n_rows;
  return band;
}

/* A device writes in place only in its own memory: single samples over the bus
 * would be slow. */
static bool
is_in_place (const Part *part, const ImkImage *image)
{
  return !part->context && image->location == IMK_LOCATION_DEVICE;
}

/* Memory for results that are not written in place. */
static ImkStatus
need_results (const Devices *d, Part *part,
    const ImkPhotostereoOutputs *outputs, ImkError *error)
{
  const ImkImage *images = (const ImkImage *) outputs;
  size_t size = 0;

  for (int i = 0; i < N_OUTPUTS; i++)
    if (images[i].data && !is_in_place (part, &images[i]))
      size += align (imk_image_row_size (&images[i]) * part->n_rows *
                     n_stacked (d, &images[i]));
  if (size <= part->results_size)
    return IMK_OK;
  d->device->free_device (
      part->results); /* blocks until their readers are done */
  part->results = NULL;
  part->results_size = 0;
  IMK_TRY (d->device->alloc_device (size, (void **) &part->results, error));
  part->results_size = size;
  return IMK_OK;
}

/* The images that the device writes. */
static ImkPhotostereoOutputs
place_results (
    const Devices *d, const Part *part, const ImkPhotostereoOutputs *outputs)
{
  ImkPhotostereoOutputs placed = *outputs;
  ImkImage *images = (ImkImage *) &placed;
  uint8_t *at = part->results;

  for (int i = 0; i < N_OUTPUTS; i++) {
    bool in_place = is_in_place (part, &images[i]);
    uint32_t n = n_stacked (d, &images[i]);

    if (!images[i].data)
      continue;
    if (!in_place ||
        n == 1) /* the rows of the first device are already in place */
      images[i] = band_of (d, &images[i], part, 0);
    if (in_place)
      continue;
    images[i].data = at;
    images[i].height = part->n_rows * n;
    images[i].stride = imk_image_row_size (&images[i]);
    images[i].location = IMK_LOCATION_DEVICE;
    at += align (images[i].stride * images[i].height);
  }
  return placed;
}

static ImkStatus
copy_result (const Devices *d, const Part *part, const ImkImage *from,
    const ImkImage *image, ImkError *error)
{
  for (uint32_t i = 0; i < n_stacked (d, image); i++) {
    ImkImage to = band_of (d, image, part, i);

    IMK_TRY (d->device->copy (to.data, to.stride,
        (const uint8_t *) from->data + i * part->n_rows * from->stride,
        from->stride, from->stride, to.height, part->stream, error));
  }
  return IMK_OK;
}

static ImkStatus
copy_results (const Devices *d, const Part *part,
    const ImkPhotostereoOutputs *placed, const ImkPhotostereoOutputs *outputs,
    ImkError *error)
{
  const ImkImage *from = (const ImkImage *) placed;
  const ImkImage *images = (const ImkImage *) outputs;

  for (int i = 0; i < N_OUTPUTS; i++)
    if (images[i].data && !is_in_place (part, &images[i]))
      IMK_TRY (copy_result (d, part, &from[i], &images[i], error));
  return IMK_OK;
}

static ImkStatus
solve_band (Solve *s, ImkError *error)
{
  Devices *d = s->devices;
  Part *part = s->part;
  ImkPhotostereoOutputs placed;

  IMK_TRY (d->device->event_wait (d->ready, part->stream, error));
  IMK_TRY (need_results (d, part, s->outputs, error));
  placed = place_results (d, part, s->outputs);
  IMK_TRY (d->backend->solve (part->state, s->set, s->compare, &placed,
      s->rows ? s->rows + part->first_row : NULL, part->stream, error));
  IMK_TRY (copy_results (d, part, &placed, s->outputs, error));
  IMK_TRY (d->device->event_record (part->done, part->stream, error));
  if (s->rows) /* the caller's stream waits for all devices */
    IMK_TRY (d->device->stream_synchronize (part->stream, error));
  return IMK_OK;
}

static void *
solve_part (void *data)
{
  Solve *s = data;

  s->status = enter (s->devices, s->part, &s->error);
  if (s->status != IMK_OK)
    return NULL;
  s->status = solve_band (s, &s->error);
  leave (s->devices, s->part);
  return NULL;
}

/* One thread for each device: a device with a full queue blocks its caller, and
 * so does one whose sums are read. */
static void
solve_parts (Solve *solves, uint32_t n)
{
  pthread_t threads[IMK_PHOTOSTEREO_MAX_DEVICES];
  bool started[IMK_PHOTOSTEREO_MAX_DEVICES] = {false};

  for (uint32_t p = 1; p < n; p++)
    started[p] =
        pthread_create (&threads[p], NULL, solve_part, &solves[p]) == 0;
  for (uint32_t p = 0; p < n; p++) {
    if (!started[p])
      solve_part (&solves[p]);
  }
  for (uint32_t p = 1; p < n; p++)
    if (started[p])
      pthread_join (threads[p], NULL);
}

static ImkStatus
devices_solve (void *state, const ImkPhotostereoSet *set, bool compare,
    ImkPhotostereoOutputs *outputs, ImkPhotostereoRow *rows, void *stream,
    ImkError *error)
{
  Devices *d = state;
  Solve solves[IMK_PHOTOSTEREO_MAX_DEVICES];
  ImkStatus status = IMK_OK;

  IMK_TRY (d->device->event_record (d->ready, stream, error));
  for (uint32_t p = 0; p < d->n_parts; p++)
    solves[p] = (Solve){.devices = d,
        .part = &d->parts[p],
        .set = set,
        .compare = compare,
        .outputs = outputs,
        .rows = rows};
  solve_parts (solves, d->n_parts);
  for (uint32_t p = 0; p < d->n_parts && status == IMK_OK; p++) {
    status = solves[p].status;
    if (status != IMK_OK)
      imk_error_set (error, status, "%s", solves[p].error.message);
  }
  if (status == IMK_OK)
    status = wait_for_parts (d, stream, error);
  if (status != IMK_OK)
    settle (d);
  return status;
}

static ImkStatus
devices_probe (void *state, uint32_t step_x, uint32_t step_y, float *normals,
    void *stream, ImkError *error)
{
  Devices *d = state;
  uint32_t columns = imk_div_up (d->width - step_x / 2, step_x);
  ImkStatus status = IMK_OK;

  for (uint32_t p = 0; p < d->n_parts && status == IMK_OK; p++) {
    Part *part = &d->parts[p];
    uint32_t row = imk_photostereo_probes_before (part->first_row, step_y);

    status = enter (d, part, error);
    if (status != IMK_OK)
      break;
    status = d->backend->probe (part->state, step_x, step_y,
        normals + 3 * (size_t) row * columns, part->stream, error);
    leave (d, part);
  }
  return status;
}

const ImkPhotostereoBackend imk_photostereo_devices = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = devices_create,
    .update = devices_update,
    .keeps_frames = devices_keep_frames,
    .add = devices_add,
    .solve = devices_solve,
    .reset = devices_reset,
    .probe = devices_probe,
    .destroy = devices_destroy,
};
