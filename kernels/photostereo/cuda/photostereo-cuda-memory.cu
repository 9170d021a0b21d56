/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the backend allocates, and how many rows of samples fit. */
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "photostereo/cuda/photostereo-cuda-memory.cuh"

enum {
  TILE = 1 << 22, /* pixels that are solved at a time where memory is short:
                   * few lanes wait for the last of them, and little scratch */
  GREY_TILE = 1 << 19, /* with grey values for all lights */
};

static size_t
align (size_t size)
{
  return (size + 255) / 256 * 256;
}

static size_t
pixels_of (const ImkPhotostereoPlan *p)
{
  return (size_t) p->width * p->height;
}

/* ------------------------------------------------------------------------
 * Sizes. */

static size_t
rows_size (const ImkPhotostereoPlan *p)
{
  return p->height * sizeof (Row) + sizeof (Seen);
}

/* Whether the fast solver may ever be asked. */
static bool
may_be_fast (const ImkPhotostereoPlan *p)
{
  ImkPhotostereoParams params = {};

  return imk_photostereo_cuda_is_fast (p, &params);
}

static size_t
solved_pixels (const ImkPhotostereoPlan *p)
{
  return (size_t) p->width * (end_solved (p) - first_solved (p));
}

static size_t
n_floats (const ImkPhotostereoPlan *p)
{
  return (p->mosaic ? 2 : 0) + (p->track_change ? 3 : 0);
}

/* Bytes whatever the rows of the store. */
static size_t
fixed_size (const ImkPhotostereoPlan *p)
{
  size_t frames = (p->dark != NULL) + (p->white != NULL);

  return pixels_of (p) *
             (sizeof (float) * frames * p->n_planes + (p->mask != NULL)) +
         solved_pixels (p) * sizeof (float) * n_floats (p) + rows_size (p) +
         p->n_lights * (2 * sizeof (Lit) + sizeof (ImkPhotostereoLamp) + 4);
}

static size_t
store_size (const Arguments *a)
{
  return (size_t) PACKET * a->n_packets * a->plan.n_planes +
         (may_be_fast (&a->plan) ? N_SUMS * sizeof (float) : 0);
}

static size_t
frame_row_size (const ImkPhotostereoPlan *p)
{
  return (size_t) p->width * p->channels * imk_type_size (p->type);
}

/* Bytes of a pixel of a tile. */
static size_t
scratch_size (const Arguments *a)
{
  const ImkPhotostereoPlan *p = &a->plan;
  size_t state = (N_STATES + 3 + 1) * sizeof (float) + sizeof (uint32_t);

  return 2 * a->n_words * sizeof (uint32_t) + (may_be_fast (p) ? state : 0) +
         (p->n_planes > 1 ? p->n_lights : 0) * sizeof (float);
}

static uint32_t
tile_rows_of (const Arguments *a, uint32_t rows)
{
  uint32_t tile = (a->plan.n_planes > 1 ? GREY_TILE : TILE) / a->plan.width;

  tile = tile ? tile : 1;
  return tile < rows ? tile : rows;
}

/* Bytes with a store of @rows rows, of which @tile_rows are solved at a time.
 */
static size_t
total_size (const Cuda *cuda, uint32_t rows, uint32_t tile_rows)
{
  const Arguments *a = &cuda->arguments;
  const ImkPhotostereoPlan *p = &a->plan;
  size_t halo = p->interpolate ? 2 : 0;

  return fixed_size (p) + (size_t) rows * p->width * store_size (a) +
         (size_t) tile_rows * p->width * scratch_size (a) +
         cuda->n_slots * align ((rows + halo) * frame_row_size (p) + PACKET);
}

/* The least that rows of the store need. */
static size_t
least_size (const Cuda *cuda, uint32_t rows)
{
  return total_size (cuda, rows, tile_rows_of (&cuda->arguments, rows));
}

/* The most rows that fit into @limit, 0 when none does. */
static uint32_t
rows_that_fit (const Cuda *cuda, size_t limit)
{
  const ImkPhotostereoPlan *p = &cuda->arguments.plan;
  uint32_t least = 0, most = end_solved (p) - first_solved (p);

  while (least < most) {
    uint32_t rows = least + (most - least + 1) / 2;

    if (least_size (cuda, rows) <= limit)
      least = rows;
    else
      most = rows - 1;
  }
  return least;
}

/* The rows of the store: all of them, or a strip. */
static ImkStatus
choose_rows (Cuda *cuda, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  const ImkPhotostereoPlan *p = &a->plan;
  size_t limit = p->memory_limit, free_size = 0, all_size;
  uint32_t all_rows = end_solved (p) - first_solved (p), rows;

  if (!limit) { /* leave memory for the output pictures */
    IMK_TRY (IMK_CUDA (error, cudaMemGetInfo (&free_size, &all_size)));
    limit = free_size / 10 * 9;
  }
  rows = rows_that_fit (cuda, limit);
  if (rows == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%u pictures of %ux%u need %zu MiB of device memory for one row at a "
        "time, and %zu MiB for all; %s %zu MiB.",
        p->n_lights * p->bands, p->width, all_rows,
        (least_size (cuda, 1) >> 20) + 1,
        (least_size (cuda, all_rows) >> 20) + 1,
        p->memory_limit ? "memory-limit allows" : "there are", limit >> 20);
  if (p->strip_rows && p->strip_rows < rows)
    rows = p->strip_rows;
  a->first_row = first_solved (p);
  a->n_rows = rows;
  cuda->in_strips = rows < all_rows;
  /* the last pixels of a tile are solved by few lanes: so one tile, if it may,
   * but of what has no such list */
  a->tile_size = (size_t) p->width *
                 (p->n_planes == 1 && total_size (cuda, rows, rows) <= limit
                         ? rows
                         : tile_rows_of (a, rows));
  cuda->slot_size =
      align ((rows + (p->interpolate ? 2 : 0)) * frame_row_size (p) + PACKET);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Lights. */

/* Whether a parabola is 1e-5 or less off k over a segment: half of it is h, the
 * lamp at least d away, the third derivative of |s - x|^-3 at most 60 d^-6, and
 * through three points of Chebyshev the error is h^3 / 24 of that. */
static bool
is_smooth (const ImkPhotostereoPlan *p, const ImkPhotostereoLamp *lamps)
{
  double h = (double) THREADS * p->pitch_x, left = -p->centre_x * p->pitch_x;
  double right = (p->width - 1 - p->centre_x) * p->pitch_x;
  double top = -p->centre_y * p->pitch_y;
  double bottom = (p->height - 1 - p->centre_y) * p->pitch_y;

  for (uint32_t i = 0; i < p->n_lights; i++) {
    double x = fmin (fmax (lamps[i].x, left), right) - lamps[i].x;
    double y = fmin (fmax (lamps[i].y, bottom), top) - lamps[i].y;
    double d2 = x * x + y * y + (double) lamps[i].z * lamps[i].z;

    if (!(60 * pow (h * h / d2, 1.5) <= 24e-5))
      return false;
  }
  return true;
}

/* Of the lamp's light vectors, in the picture. */
static double
longest_light (const ImkPhotostereoPlan *p, const ImkPhotostereoLamp *lamp)
{
  double x[] = {
      -p->centre_x * p->pitch_x, (p->width - 1 - p->centre_x) * p->pitch_x};
  double y[] = {
      -p->centre_y * p->pitch_y, (p->height - 1 - p->centre_y) * p->pitch_y};
  bool near = p->model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE;
  double dx = near ? lamp->x - fmin (fmax (lamp->x, x[0]), x[1])
                   : fmax (fabs (lamp->x - x[0]), fabs (lamp->x - x[1]));
  double dy = near ? lamp->y - fmin (fmax (lamp->y, y[0]), y[1])
                   : fmax (fabs (lamp->y - y[0]), fabs (lamp->y - y[1]));
  double d2 = dx * dx + dy * dy + (double) lamp->z * lamp->z;

  return p->model == IMK_PHOTOSTEREO_MODEL_UNIT ? lamp->scale
         : near                                 ? lamp->scale / d2
                                                : lamp->scale * sqrt (d2);
}

/* In the unit of length in which scales are 1. */
static void
fill_lit (Cuda *cuda, const ImkPhotostereoLamp *lamps)
{
  Arguments *a = &cuda->arguments;
  const ImkPhotostereoPlan *p = &a->plan;
  double unit = 1, longest = 0;

  a->one_gain = true;
  for (uint32_t i = 0; i < n_lit_of (a); i++) {
    const ImkPhotostereoLamp *lamp = &lamps[i < p->n_lights ? i : 0];
    Lit *lit = &cuda->host_lit[i];

    unit = p->model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE
               ? 1 / sqrt ((double) lamp->scale)
           : p->model == IMK_PHOTOSTEREO_MODEL_UNIT ? 1
                                                    : (double) lamp->scale;
    *lit = Lit{(float) (lamp->x * unit), (float) (lamp->y * unit),
        (float) (lamp->z * unit)};
    lit->length2 =
        (float) (unit * unit *
                 ((double) lamp->x * lamp->x + (double) lamp->y * lamp->y +
                     (double) lamp->z * lamp->z));
    lit->z2 = lit->z * lit->z;
    longest = fmax (longest, longest_light (p, lamp));
    for (int k = 0; k < 3; k++) {
      lit->gain[k] = lamp->gain[k] * p->unit;
      a->one_gain = a->one_gain && lit->gain[k] == cuda->host_lit[0].gain[0];
    }
    if (i >= p->n_lights)
      *lit = absent_lit (lit);
  }
  a->smooth = p->pitch_x > 0 && is_smooth (p, lamps);
  a->gain = cuda->host_lit[0].gain[0];
  a->unit_x = (float) (p->pitch_x * unit);
  a->unit_y = (float) (p->pitch_y * unit);
  a->shrink = longest > 0 ? (float) exp2 (-ceil (log2 (longest))) : 0;
  a->has_matrix = imk_photostereo_cuda_has_matrix (a);
}

/* One of the tables of the plan goes to the device. */
template <typename T>
static ImkStatus
upload (uint8_t **at, const T **table, size_t size, ImkError *error)
{
  const T *from = *table;

  if (!from)
    return IMK_OK;
  *table = (const T *) *at;
  *at += align (size);
  return IMK_CUDA (error, cudaMemcpyAsync ((void *) *table, from, size,
                              cudaMemcpyHostToDevice, cudaStreamPerThread));
}

/* Lamps and frames of the plan. */
static ImkStatus
upload_tables (Cuda *cuda, ImkError *error)
{
  ImkPhotostereoPlan *p = &cuda->arguments.plan;
  size_t lamps = p->n_lights * sizeof (*p->lamps);
  size_t table = (p->type == IMK_TYPE_U8 ? 256 : 65536) * sizeof (float);
  size_t frame = pixels_of (p) * p->n_planes * sizeof (float);
  size_t total = align (lamps) + (p->table ? align (table) : 0) +
                 (p->dark ? align (frame) : 0) +
                 (p->white ? align (frame) : 0) +
                 (p->mask ? align (pixels_of (p)) : 0);
  uint8_t *at;

  IMK_TRY (IMK_CUDA (error, cudaMalloc ((void **) &cuda->tables, total)));
  at = cuda->tables;
  IMK_TRY (upload (&at, &p->lamps, lamps, error));
  IMK_TRY (upload (&at, &p->table, table, error));
  IMK_TRY (upload (&at, &p->dark, frame, error));
  IMK_TRY (upload (&at, &p->white, frame, error));
  IMK_TRY (upload (&at, &p->mask, pixels_of (p), error));
  return IMK_CUDA (error, cudaStreamSynchronize (cudaStreamPerThread));
}

/* ------------------------------------------------------------------------
 * The object. */

static ImkStatus
allocate (Cuda *cuda, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  const ImkPhotostereoPlan *p = &a->plan;
  size_t pixels = solved_pixels (p), rows = rows_size (p);
  size_t before = (size_t) first_solved (p) * p->width;
  size_t floats = pixels * n_floats (p) * sizeof (float);
  size_t stored = store_pixels (*a), n = cuda->n_slots;
  const struct {
    void **to;
    size_t size; /* 0: it is not needed */
  } blocks[] = {
      {(void **) &a->samples, stored * PACKET * a->n_packets * p->n_planes},
      {(void **) &cuda->slots, n * cuda->slot_size},
      {(void **) &a->sums,
          may_be_fast (p) ? stored * N_SUMS * sizeof (float) : 0},
      {(void **) &cuda->floats, floats},
      {(void **) &cuda->lights, p->n_lights * sizeof (uint32_t)},
      {(void **) &cuda->lit, 2 * n_lit_of (a) * sizeof (Lit)},
      {(void **) &cuda->scratch,
          a->tile_size * scratch_size (a) + sizeof (uint32_t)},
      {(void **) &a->rows, rows},
  };

  for (const auto &block : blocks)
    if (block.size)
      IMK_TRY (IMK_CUDA (error, cudaMalloc (block.to, block.size)));
  IMK_TRY (IMK_CUDA (error, cudaMallocHost ((void **) &cuda->host_rows, rows)));
  a->seen = (Seen *) (a->rows + p->height);
  a->albedo = p->mosaic ? cuda->floats - before : NULL;
  a->ambient = p->mosaic ? cuda->floats + pixels - before : NULL;
  a->normals = p->track_change
                   ? cuda->floats + (p->mosaic ? 2 * pixels : 0) - 3 * before
                   : NULL;
  return IMK_OK;
}

/* Scratch is one block. */
static void
divide_scratch (Cuda *cuda)
{
  Arguments *a = &cuda->arguments;

  a->zero = (uint32_t *) cuda->scratch;
  a->words = a->zero + 1;
  a->states = (float *) (a->words + 2 * a->n_words * a->tile_size);
  a->last = a->states + N_STATES * a->tile_size;
  a->ambients = a->last + 3 * a->tile_size;
  a->found = (uint32_t *) (a->ambients + a->tile_size);
  a->grey = a->plan.n_planes > 1 ? a->states : NULL; /* never fast */
}

static ImkStatus
make_events (Cuda *cuda, ImkError *error)
{
  IMK_TRY (IMK_CUDA (
      error, cudaStreamCreateWithFlags (&cuda->work, cudaStreamNonBlocking)));
  for (cudaEvent_t *event : {&cuda->ready, &cuda->filled, &cuda->left})
    IMK_TRY (IMK_CUDA (
        error, cudaEventCreateWithFlags (event, cudaEventDisableTiming)));
  for (uint32_t i = 0; i < cuda->n_slots; i++)
    IMK_TRY (IMK_CUDA (error,
        cudaEventCreateWithFlags (&cuda->put_done[i], cudaEventDisableTiming)));
  return IMK_OK;
}

static bool
allocate_host (Cuda *cuda)
{
  const Arguments *a = &cuda->arguments;
  uint32_t n = cuda->n_slots;

  cuda->slot_light = (uint32_t *) malloc (n * sizeof (uint32_t));
  cuda->slot_put = (uint64_t *) calloc (n, sizeof (uint64_t));
  cuda->put_done = (cudaEvent_t *) calloc (n, sizeof (cudaEvent_t));
  cuda->waiting = (uint32_t *) calloc (2 * n_packets_of (a), sizeof (uint32_t));
  cuda->stored = cuda->waiting + n_packets_of (a);
  cuda->frames = (ImkImage *) calloc (
      virtual_light (a, 0, a->plan.bands), sizeof (ImkImage));
  cuda->host_lit = (Lit *) calloc (2 * n_lit_of (a), sizeof (Lit));
  cuda->host_set = cuda->host_lit + n_lit_of (a);
  for (uint32_t i = 0; cuda->slot_light && i < n; i++)
    cuda->slot_light[i] = NO_LIGHT;
  return cuda->slot_light && cuda->slot_put && cuda->put_done &&
         cuda->waiting && cuda->frames && cuda->host_lit;
}

static ImkStatus
fill (Cuda *cuda, const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, ImkError *error)
{
  IMK_TRY (choose_rows (cuda, error));
  IMK_TRY (allocate (cuda, error));
  IMK_TRY (make_events (cuda, error));
  divide_scratch (cuda);
  fill_lit (cuda, plan->lamps);
  take_params (&cuda->arguments, params);
  IMK_TRY (IMK_CUDA (error, cudaMemcpyAsync (cuda->lit, cuda->host_lit,
                                n_lit_of (&cuda->arguments) * sizeof (Lit),
                                cudaMemcpyHostToDevice, cudaStreamPerThread)));
  IMK_TRY (IMK_CUDA (error, cudaMemsetAsync (cuda->arguments.seen, 0,
                                sizeof (Seen), cudaStreamPerThread)));
  IMK_TRY (IMK_CUDA (error, cudaMemsetAsync (cuda->arguments.zero, 0,
                                sizeof (uint32_t), cudaStreamPerThread)));
  return upload_tables (cuda, error);
}

ImkStatus
imk_photostereo_cuda_create (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, void **state, ImkError *error)
{
  Cuda *cuda = (Cuda *) calloc (1, sizeof (*cuda));
  Arguments *a = cuda ? &cuda->arguments : NULL;
  ImkStatus status;

  if (!cuda)
    return IMK_NO_MEMORY (error, "for the object.");
  a->plan = *plan;
  a->n_packets = imk_div_up (plan->n_lights, packet_lights (plan->type));
  a->n_words = a->n_packets;
  cuda->n_slots = 2 * packet_lights (plan->type);
  cuda->complete = NO_PACKET;
  if (allocate_host (cuda))
    status = fill (cuda, plan, params, error);
  else
    status = IMK_NO_MEMORY (error, "for %u lights.", plan->n_lights);
  if (status == IMK_OK)
    *state = cuda;
  else
    imk_photostereo_cuda_destroy (cuda);
  return status;
}

void
imk_photostereo_cuda_destroy (void *state)
{
  Cuda *cuda = (Cuda *) state;

  if (!cuda)
    return;
  /* the first waits for kernels that use it */
  for (void *memory :
      std::initializer_list<void *>{cuda->arguments.samples,
          cuda->arguments.sums, cuda->arguments.rows, cuda->slots, cuda->floats,
          cuda->tables, cuda->scratch, cuda->lights, cuda->lit, cuda->probes})
    cudaFree (memory);
  cudaFreeHost (cuda->host_rows);
  for (uint32_t i = 0; cuda->put_done && i < cuda->n_slots; i++)
    if (cuda->put_done[i])
      cudaEventDestroy (cuda->put_done[i]);
  for (cudaEvent_t event : {cuda->ready, cuda->filled, cuda->left})
    if (event)
      cudaEventDestroy (event);
  if (cuda->work)
    cudaStreamDestroy (cuda->work);
  for (void *memory :
      std::initializer_list<void *>{cuda->slot_light, cuda->slot_put,
          cuda->put_done, cuda->waiting, cuda->frames, cuda->host_lit, cuda})
    free (memory);
}
