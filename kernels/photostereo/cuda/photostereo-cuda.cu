/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The backend: memory, pictures that come, and the order of all work.
 *
 * Where the samples of a set fit, a picture is copied into a slot on the
 * caller's stream, and when a packet of lights has come, another stream puts it
 * into the store, and, where the solver wants them, adds it to the sums of the
 * first solution; so after the last picture there is one packet to do. It is
 * the caller's thread that waits for a packet, half a packet later: a stream
 * that waits takes turns with the copies, at 17 us a picture. Where they do not
 * fit, pictures stay where they are until they are solved: then they are
 * uploaded strip by strip, each sample once, while the strip before is solved.
 */
#include <cstdlib>
#include <cstring>

#include "photostereo/cuda/photostereo-cuda.cuh"
#include "photostereo/cuda/photostereo-cuda-memory.cuh"

/* ------------------------------------------------------------------------
 * Kernels over the whole picture. */

/* imk_photostereo_colour_at () of all colours, from one look at the pixels. */
static __device__ __forceinline__ void
colours_at (const ImkPhotostereoPlan &p, const float *plane, uint32_t x,
    uint32_t y, bool skip_zero, float values[3])
{
  float sum[3] = {}, n[3] = {};
  uint32_t own = p.site[2 * (y & 1) + (x & 1)];

#pragma unroll
  for (int i = 0; i < 9; i++) {
    uint32_t v = y + i / 3 - 1, u = x + i % 3 - 1; /* wraps below 0 */

    if (v < p.height && u < p.width) {
      uint32_t colour = p.site[2 * (v & 1) + (u & 1)];
      float value = plane[(size_t) v * p.width + u];

#pragma unroll
      for (uint32_t k = 0; k < 3; k++)
        if (colour == k && !(skip_zero && value == 0)) {
          sum[k] += value;
          n[k] += 1;
        }
    }
  }
#pragma unroll
  for (uint32_t k = 0; k < 3; k++)
    values[k] = own == k    ? plane[(size_t) y * p.width + x]
                : n[k] != 0 ? sum[k] / n[k]
                            : 0;
}

/* Colours of a mosaic, once all of it is there. */
static __global__ void
store_mosaic (const __grid_constant__ Arguments a)
{
  uint32_t x = blockIdx.x * THREADS + threadIdx.x, out_y = blockIdx.y;
  const ImkPhotostereoPlan &p = a.plan;
  uint32_t y = p.first_row + out_y;
  float v[3] = {};

  if (x >= p.width)
    return;
  if (a.out.albedo.data) {
    if (a.albedo[(size_t) y * p.width + x] != 0)
      colours_at (p, a.albedo, x, y, true, v);
    imk_photostereo_store_colours (&a.out.albedo, x, out_y, v, 3);
  }
  if (a.out.ambient.data) {
    colours_at (p, a.ambient, x, y, false, v);
    imk_photostereo_store_colours (&a.out.ambient, x, out_y, v, 3);
  }
}

static __global__ void
take_probes (const __grid_constant__ Arguments a, uint32_t step_x,
    uint32_t step_y, uint32_t first, uint32_t columns, float *to)
{
  uint32_t column = blockIdx.x * THREADS + threadIdx.x;
  uint32_t x = step_x / 2 + column * step_x;
  uint32_t y = step_y / 2 + (first + blockIdx.y) * step_y;

  if (column < columns)
    for (int k = 0; k < 3; k++)
      to[3 * ((size_t) blockIdx.y * columns + column) + k] =
          a.normals[3 * ((size_t) y * a.plan.width + x) + k];
}

/* ------------------------------------------------------------------------
 * Pictures that come. */

static uint32_t
lights_of_packet (const Cuda *cuda, uint32_t packet)
{
  const ImkPhotostereoPlan *p = &cuda->arguments.plan;
  uint32_t n = packet_lights (p->type);
  uint32_t left = p->n_lights - packet % cuda->arguments.n_packets * n;

  n = left < n ? left : n;
  return n == 32 ? ~0u : (1u << n) - 1;
}

/* The rows of the picture that the store needs begin here: with a neighbour
 * above, as below, where pictures are interpolated. */
static uint32_t
first_needed (const Arguments *a)
{
  return a->first_row - (a->plan.interpolate && a->first_row > 0);
}

static ImkStatus
copy_rows (const Cuda *cuda, const ImkImage *frame, uint32_t slot,
    cudaStream_t stream, ImkError *error)
{
  const Arguments *a = &cuda->arguments;
  uint32_t from_row = first_needed (a), end = a->first_row + a->n_rows;
  size_t row_size = imk_image_row_size (frame);
  const uint8_t *from =
      (const uint8_t *) frame->data + from_row * frame->stride;
  uint8_t *to = cuda->slots + slot * cuda->slot_size;

  end += a->plan.interpolate && end < a->plan.height;
  if (frame->stride == row_size) /* a copy by rows is 1 % slower */
    return IMK_CUDA (
        error, cudaMemcpyAsync (to, from, (end - from_row) * row_size,
                   cudaMemcpyDefault, stream));
  return IMK_CUDA (
      error, cudaMemcpy2DAsync (to, row_size, from, frame->stride, row_size,
                 end - from_row, cudaMemcpyDefault, stream));
}

/* What follows on @stream comes after the work of @before so far.
 * @event: of that work afterwards */
static ImkStatus
follow (cudaStream_t stream, cudaEvent_t event, cudaStream_t before,
    ImkError *error)
{
  IMK_TRY (IMK_CUDA (error, cudaEventRecord (event, before)));
  return IMK_CUDA (error, cudaStreamWaitEvent (stream, event, 0));
}

static ImkStatus
forget_seen (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  return IMK_CUDA (
      error, cudaMemsetAsync (cuda->arguments.seen, 0, sizeof (Seen), stream));
}

/* What waits for @packet goes into the store; it has come, or the working
 * stream waits for it. */
static ImkStatus
put_packet (Cuda *cuda, uint32_t packet, ImkError *error)
{
  uint32_t n = packet_lights (cuda->arguments.plan.type);
  ImkStatus status = IMK_OK;
  Put put = {};

  if (cuda->n_puts_of_set++ == 0)
    status = forget_seen (cuda, cuda->work, error);
  put.packet = packet;
  put.from_row = first_needed (&cuda->arguments);
  put.fresh = cuda->waiting[packet];
  put.merge = cuda->stored[packet] != 0;
  cuda->n_puts++;
  for (uint32_t i = 0; i < cuda->n_slots; i++)
    if (cuda->slot_light[i] != NO_LIGHT && cuda->slot_light[i] / n == packet) {
      put.from[cuda->slot_light[i] % n] = cuda->slots + i * cuda->slot_size;
      cuda->slot_light[i] = NO_LIGHT;
      cuda->slot_put[i] = cuda->n_puts;
    }
  cuda->stored[packet] |= put.fresh;
  cuda->waiting[packet] = 0;
  IMK_TRY (status);
  IMK_TRY (
      imk_photostereo_cuda_put (&cuda->arguments, &put, cuda->work, error));
  return IMK_CUDA (
      error, cudaEventRecord (
                 cuda->put_done[cuda->n_puts % cuda->n_slots], cuda->work));
}

/* The sums follow the packets that are complete from the first on: whatever
 * comes first, lights are added in their order. */
static ImkStatus
follow_sums (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  uint32_t end = a->n_summed;

  if (!imk_photostereo_cuda_is_fast (&a->plan, &a->params) ||
      imk_photostereo_cuda_is_matrix (a))
    return IMK_OK;
  /* The solution that follows stores the last packet. */
  while (end + 1 < a->n_packets &&
         cuda->stored[end] == lights_of_packet (cuda, end))
    end++;
  if (end > a->n_summed) {
    a->lit = cuda->lit; /* with all lights */
    IMK_TRY (imk_photostereo_cuda_sum (a, a->n_summed, end, stream, error));
  }
  a->n_summed = end;
  return IMK_OK;
}

/* The packet that is complete, when it has come. */
static ImkStatus
put_complete (Cuda *cuda, ImkError *error)
{
  uint32_t packet = cuda->complete;

  cuda->complete = NO_PACKET;
  IMK_TRY (IMK_CUDA (error, cudaEventSynchronize (cuda->filled)));
  IMK_TRY (put_packet (cuda, packet, error));
  return follow_sums (cuda, cuda->work, error);
}

/* Its pictures are under way. */
static ImkStatus
complete_packet (Cuda *cuda, uint32_t packet, ImkError *error)
{
  if (cuda->complete != NO_PACKET)
    IMK_TRY (put_complete (cuda, error));
  IMK_TRY (IMK_CUDA (error, cudaEventRecord (cuda->filled, cuda->stream)));
  cuda->complete = packet;
  cuda->n_since_complete = 0;
  return IMK_OK;
}

static ImkStatus
put_all (Cuda *cuda, ImkError *error)
{
  bool waits = false;

  cuda->complete = NO_PACKET;
  for (uint32_t i = 0; i < n_packets_of (&cuda->arguments); i++) {
    if (!cuda->waiting[i])
      continue;
    if (!waits)
      IMK_TRY (follow (cuda->work, cuda->filled, cuda->stream, error));
    waits = true;
    IMK_TRY (put_packet (cuda, i, error));
  }
  return follow_sums (cuda, cuda->work, error);
}

/* Pictures may come on another stream than before. */
static ImkStatus
follow_stream (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  if (stream == cuda->stream)
    return IMK_OK;
  IMK_TRY (follow (stream, cuda->left, cuda->stream, error));
  cuda->stream = stream;
  cuda->n_waited = 0;
  return IMK_OK;
}

/* Returns: in *slot, one that is free; if all wait for the rest of their
 * packets, these are put as they are */
static ImkStatus
take_slot (Cuda *cuda, uint32_t *slot, ImkError *error)
{
  for (int again = 0; again < 2; again++) {
    for (uint32_t i = 0; i < cuda->n_slots; i++) {
      *slot = cuda->next_slot;
      cuda->next_slot = (cuda->next_slot + 1) % cuda->n_slots;
      if (cuda->slot_light[*slot] == NO_LIGHT)
        return IMK_OK;
    }
    IMK_TRY (put_all (cuda, error));
  }
  return IMK_OK;
}

static ImkStatus
cuda_add (void *state, const ImkImage *frame, uint32_t real_light,
    uint32_t band, void *stream, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  uint32_t light = virtual_light (&cuda->arguments, real_light, band);
  uint32_t n = packet_lights (cuda->arguments.plan.type), packet = light / n;
  uint32_t slot = 0;

  IMK_TRY (follow_stream (cuda, (cudaStream_t) stream, error));
  if (cuda->in_strips) {
    cuda->frames[light] = *frame;
    return IMK_OK;
  }
  IMK_TRY (take_slot (cuda, &slot, error));
  /* Puts complete in order, so the event of a later put is also valid. */
  if (cuda->slot_put[slot] > cuda->n_waited) {
    cuda->n_waited = cuda->slot_put[slot];
    IMK_TRY (IMK_CUDA (
        error, cudaStreamWaitEvent (cuda->stream,
                   cuda->put_done[cuda->n_waited % cuda->n_slots], 0)));
  }
  IMK_TRY (copy_rows (cuda, frame, slot, cuda->stream, error));
  cuda->slot_light[slot] = light;
  cuda->waiting[packet] |= 1u << light % n;
  if ((cuda->stored[packet] | cuda->waiting[packet]) ==
      lights_of_packet (cuda, packet))
    return complete_packet (cuda, packet, error);
  return cuda->complete != NO_PACKET && ++cuda->n_since_complete >= n / 2
             ? put_complete (cuda, error)
             : IMK_OK;
}

static void
cuda_reset (void *state)
{
  Cuda *cuda = (Cuda *) state;

  for (uint32_t i = 0; i < cuda->n_slots; i++)
    cuda->slot_light[i] = NO_LIGHT;
  for (uint32_t i = 0; i < n_packets_of (&cuda->arguments); i++)
    cuda->waiting[i] = cuda->stored[i] = 0;
  cuda->arguments.n_summed = 0;
  cuda->n_puts_of_set = 0;
  cuda->complete = NO_PACKET;
}

static bool
cuda_keeps_frames (void *state)
{
  return ((Cuda *) state)->in_strips;
}

/* ------------------------------------------------------------------------
 * Solutions. */

/* The lights of the set; those that are not in it count nowhere. */
static ImkStatus
upload_lights (Cuda *cuda, const uint32_t *lights, uint32_t n,
    cudaStream_t stream, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  uint32_t n_lit = n_lit_of (a);

  /* Pageable memory has been read when these calls return. */
  if (n)
    IMK_TRY (IMK_CUDA (
        error, cudaMemcpyAsync (cuda->lights, lights, n * sizeof (*lights),
                   cudaMemcpyHostToDevice, stream)));
  for (uint32_t i = 0; i < n_lit; i++)
    cuda->host_set[i] = absent_lit (&cuda->host_lit[i]);
  for (uint32_t i = 0; i < n; i++)
    cuda->host_set[lights[i]] = cuda->host_lit[lights[i]];
  a->lights = cuda->lights;
  a->n_lights = n;
  return IMK_CUDA (
      error, cudaMemcpyAsync (cuda->lit + n_lit, cuda->host_set,
                 n_lit * sizeof (Lit), cudaMemcpyHostToDevice, stream));
}

/* All rows of the store, tile by tile. */
static ImkStatus
solve_tiles (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  Arguments a = cuda->arguments;
  bool fast = imk_photostereo_cuda_is_fast (&a.plan, &a.params);
  uint32_t end = a.first_row + a.n_rows;
  uint32_t rows = (uint32_t) (a.tile_size / a.plan.width);

  a.lit = cuda->lit + n_lit_of (&a);
  for (a.tile_row = a.first_row; a.tile_row < end; a.tile_row += rows) {
    a.tile_rows = end - a.tile_row < rows ? end - a.tile_row : rows;
    IMK_TRY (fast ? imk_photostereo_cuda_solve_fast (&a, stream, error)
                  : imk_photostereo_cuda_solve_general (&a, stream, error));
  }
  return IMK_OK;
}

static ImkStatus
solve_whole (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  IMK_TRY (put_all (cuda, error));
  if (cuda->n_puts_of_set == 0) /* without pictures */
    IMK_TRY (forget_seen (cuda, cuda->work, error));
  IMK_TRY (follow (stream, cuda->ready, cuda->work, error));
  return solve_tiles (cuda, stream, error);
}

/* One packet of a strip: uploaded into half of the slots, while the other half
 * and the strip before are worked on. @bands: see ImkPhotostereoSet; what
 * belongs to no complete light is looked at all the same */
static ImkStatus
load_packet (Cuda *cuda, uint32_t packet, const uint32_t *bands,
    uint32_t first_slot, cudaStream_t stream, ImkError *error)
{
  const Arguments *a = &cuda->arguments;
  uint32_t size = packet_lights (a->plan.type), band = packet / a->n_packets;
  uint32_t first = packet % a->n_packets * size;
  Put put = {};

  IMK_TRY (IMK_CUDA (
      error, cudaStreamWaitEvent (cuda->work, cuda->put_done[first_slot], 0)));
  put.packet = packet;
  put.from_row = first_needed (&cuda->arguments);
  for (uint32_t i = 0; i < size && first + i < a->plan.n_lights; i++) {
    uint32_t light = first + i, slot = first_slot + i;

    if (!(bands[light] >> band & 1))
      continue;
    put.fresh |= 1u << i;
    put.from[i] = cuda->slots + slot * cuda->slot_size;
    IMK_TRY (copy_rows (cuda, &cuda->frames[virtual_light (a, light, band)],
        slot, cuda->work, error));
  }
  cuda->stored[packet] = put.fresh;
  IMK_TRY (follow (stream, cuda->filled, cuda->work, error));
  IMK_TRY (imk_photostereo_cuda_put (&cuda->arguments, &put, stream, error));
  return IMK_CUDA (error, cudaEventRecord (cuda->put_done[first_slot], stream));
}

static ImkStatus
solve_strip (
    Cuda *cuda, const uint32_t *bands, cudaStream_t stream, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  uint32_t size = packet_lights (a->plan.type);

  a->n_summed = 0;
  memset (cuda->stored, 0, n_packets_of (a) * sizeof (*cuda->stored));
  for (uint32_t packet = 0; packet < n_packets_of (a); packet++) {
    IMK_TRY (load_packet (
        cuda, packet, bands, cuda->next_slot ? 0 : size, stream, error));
    cuda->next_slot = !cuda->next_slot;
    IMK_TRY (follow_sums (cuda, stream, error));
  }
  return solve_tiles (cuda, stream, error);
}

static ImkStatus
solve_strips (
    Cuda *cuda, const uint32_t *bands, cudaStream_t stream, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  uint32_t end = end_solved (&a->plan), rows = a->n_rows;
  ImkStatus status = IMK_OK;

  /* pictures are there when the caller's stream comes here, or the last of
   * those that they came on */
  IMK_TRY (follow (cuda->work, cuda->ready, stream, error));
  IMK_TRY (follow (cuda->work, cuda->filled, cuda->stream, error));
  IMK_TRY (forget_seen (cuda, stream, error));
  for (a->first_row = first_solved (&a->plan);
       a->first_row < end && status == IMK_OK; a->first_row += rows) {
    uint32_t left = end - a->first_row;

    a->n_rows = left < rows ? left : rows;
    status = solve_strip (cuda, bands, stream, error);
  }
  a->n_rows = rows;
  return status;
}

static ImkStatus
fetch_rows (
    Cuda *cuda, ImkPhotostereoRow *rows, cudaStream_t stream, ImkError *error)
{
  const ImkPhotostereoPlan *p = &cuda->arguments.plan;
  Seen *seen = (Seen *) (cuda->host_rows + p->n_rows);

  IMK_TRY (IMK_CUDA (error,
      cudaMemcpyAsync (cuda->host_rows, cuda->arguments.rows + p->first_row,
          p->n_rows * sizeof (Row), cudaMemcpyDeviceToHost, stream)));
  IMK_TRY (
      imk_cuda_read (seen, cuda->arguments.seen, sizeof (Seen), stream, error));
  for (uint32_t y = 0; y < p->n_rows; y++) {
    const Row *from = &cuda->host_rows[y];

    rows[y] = ImkPhotostereoRow{};
    rows[y].n_pixels = (uint32_t) from->n_pixels;
    rows[y].n_invalid = (uint32_t) from->n_invalid;
    rows[y].n_changes = (uint32_t) from->n_changes;
    rows[y].lights = (double) from->lights;
    rows[y].rounds = (double) from->rounds;
    rows[y].change = (double) from->change / CHANGE_UNIT;
    rows[y].residual = (double) from->residual / GREY_UNIT;
    rows[y].length = (double) from->length / GREY_UNIT;
  }
  rows[0].largest = seen->largest;
  rows[0].n_clipped = seen->n_clipped;
  return IMK_OK;
}

static ImkStatus
cuda_solve (void *state, const ImkPhotostereoSet *set, bool compare,
    ImkPhotostereoOutputs *outputs, ImkPhotostereoRow *rows, void *stream,
    ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  Arguments *a = &cuda->arguments;
  const ImkPhotostereoPlan *p = &a->plan;
  cudaLaunchConfig_t launch =
      launch_of (p->width, p->n_rows, (cudaStream_t) stream);

  a->compare = compare;
  a->measures = imk_photostereo_measures (p, &a->params, outputs);
  a->out = *outputs;
  /* The previous solution may still run on another stream. */
  IMK_TRY (
      IMK_CUDA (error, cudaStreamWaitEvent (launch.stream, cuda->ready, 0)));
  IMK_TRY (
      upload_lights (cuda, set->lights, set->n_lights, launch.stream, error));
  IMK_TRY (IMK_CUDA (error,
      cudaMemsetAsync (a->rows, 0, p->height * sizeof (Row), launch.stream)));
  IMK_TRY (cuda->in_strips
               ? solve_strips (cuda, set->bands, launch.stream, error)
               : solve_whole (cuda, launch.stream, error));
  if (p->mosaic && (outputs->albedo.data || outputs->ambient.data))
    IMK_TRY (IMK_CUDA_LAUNCH (error, launch, store_mosaic, *a));
  /* The store must not change before that. */
  IMK_TRY (follow (cuda->work, cuda->ready, launch.stream, error));
  if (rows)
    IMK_TRY (fetch_rows (cuda, rows, launch.stream, error));
  return IMK_OK;
}

static ImkStatus
cuda_probe (void *state, uint32_t step_x, uint32_t step_y, float *normals,
    void *stream, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  const ImkPhotostereoPlan *p = &cuda->arguments.plan;
  uint32_t columns = imk_div_up (p->width - step_x / 2, step_x);
  uint32_t first = imk_photostereo_probes_before (p->first_row, step_y);
  uint32_t rows =
      imk_photostereo_probes_before (p->first_row + p->n_rows, step_y) - first;
  size_t size = (size_t) columns * rows * 3 * sizeof (float);
  cudaLaunchConfig_t launch = {};

  launch.gridDim = dim3 (imk_div_up (columns, THREADS), rows);
  launch.blockDim = dim3 (THREADS);
  launch.stream = (cudaStream_t) stream;
  if (rows == 0) /* a band of few */
    return IMK_OK;
  if (!cuda->probes)
    IMK_TRY (IMK_CUDA (error, cudaMalloc ((void **) &cuda->probes, size)));
  IMK_TRY (IMK_CUDA_LAUNCH (error, launch, take_probes, cuda->arguments, step_x,
      step_y, first, columns, cuda->probes));
  return imk_cuda_read (normals, cuda->probes, size, launch.stream, error);
}

/* ------------------------------------------------------------------------
 * The backend. */

/* The sums know absolute limits of the grey value. Field by field, as what lies
 * between the fields may be anything, and updates come with each picture. */
static bool
has_same_sums (const ImkPhotostereoParams *a, const ImkPhotostereoParams *b)
{
  return a->robust == b->robust && a->relative == b->relative &&
         a->t_min == b->t_min && a->t_max == b->t_max;
}

static ImkStatus
cuda_update (void *state, const ImkPhotostereoParams *params, ImkError *error)
{
  Arguments *a = &((Cuda *) state)->arguments;

  if (!has_same_sums (params, &a->params))
    a->n_summed = 0;
  take_params (a, params);
  return IMK_OK;
}

const ImkPhotostereoBackend imk_photostereo_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = imk_photostereo_cuda_create,
    .update = cuda_update,
    .keeps_frames = cuda_keeps_frames,
    .add = cuda_add,
    .solve = cuda_solve,
    .reset = cuda_reset,
    .probe = cuda_probe,
    .destroy = imk_photostereo_cuda_destroy,
};
