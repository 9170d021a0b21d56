/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA backend: what lies on the device, and the kernels of a frame:
 *
 *   take_slopes     slopes less offsets, of valid cells
 *   multiply R      and the controller; without modes also the commands
 *   multiply M      of modes: the commands
 *   multiply pinv   of modes with limits: the controller follows
 *
 * Commands and the newest row of the past go to the host as they are made.
 * There is no graph: the kernels are launched while the device still reads the
 * frame, and a graph would need other arguments for each. */
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/cuda/cuda-check.h"
#include "core/cuda/instance.cuh"
#include "shreconstruct/cuda/shreconstruct-product.cuh"

static_assert (TERMS == IMK_SHRECONSTRUCT_MAX_TERMS);
static_assert (THREADS == (int) IMK_SHRECONSTRUCT_VALID_PARTS);
static_assert (THREADS * THREADS >= IMK_SHRECONSTRUCT_MAX_CELLS);

/* A product of the frame, but for where its vector is. */
struct Step {
  Matrix matrix;
  uint32_t n_blocks, n_rows; /* of the launch; rows that a block has at once */
};

struct Cuda {
  ImkShreconstructConfig config;
  Step reconstruct, mix, follow; /* the last two without rows where not used */
  Control control;
  float *vectors[2]; /* slopes of this frame and of the last, in turn */
  float *modes, *changes;
  float *offsets;
  uint32_t *n_valid;
  uint8_t *dead;
  uint32_t n_processors;
  uint32_t cache_size; /* bytes, of the L2 cache */
  uint32_t turn;       /* of the last frame's vector */
  uint32_t newest;     /* row of the last frame's past */
  bool begins_early;   /* kernels can begin before the last one is done */
};

/* --- memory --------------------------------------------------------------- */

/* Zeros in host memory, for a function. */
template <typename T> struct Scratch {
  T *at;

  explicit Scratch (size_t n) : at ((T *) calloc (n, sizeof (T)))
  {
  }
  ~Scratch ()
  {
    free (at);
  }
};

static ImkStatus
no_memory (ImkError *error)
{
  return imk_error_set (
      error, IMK_ERROR_MEMORY, "There is no memory for the controller.");
}

/* @n zeros on the device, to be freed. */
template <typename T>
static ImkStatus
allocate (T **to, size_t n, ImkError *error)
{
  ImkStatus status =
      IMK_CUDA (error, cudaMalloc ((void **) to, n * sizeof (T)));

  return status != IMK_OK
             ? status
             : IMK_CUDA (error, cudaMemsetAsync (*to, 0, n * sizeof (T),
                                    cudaStreamPerThread));
}

template <typename T>
static ImkStatus
upload (T *to, const T *from, size_t n, ImkError *error)
{
  return IMK_CUDA (error, cudaMemcpyAsync (to, from, n * sizeof (T),
                              cudaMemcpyHostToDevice, cudaStreamPerThread));
}

static ImkStatus
settle (ImkStatus status, ImkError *error)
{
  return status == IMK_OK
             ? IMK_CUDA (error, cudaStreamSynchronize (cudaStreamPerThread))
             : status;
}

/* Rows as they are stored: divided by @scales (nullable), converted, and padded
 * with zeros. */
template <typename Stored>
static ImkStatus
upload_rows (Matrix *matrix, const float *values, uint32_t n_columns,
    Stored (*convert) (float), const float *scales, ImkError *error)
{
  const size_t n = (size_t) matrix->n_rows * matrix->stride;
  /* some rows at a time */
  const uint32_t n_at_once = 1 + (1 << 22) / matrix->stride;
  Stored *to = nullptr;
  Scratch<Stored> rows (n_at_once * (size_t) matrix->stride);
  ImkStatus status = rows.at ? allocate (&to, n, error) : no_memory (error);

  matrix->values = to;
  for (uint32_t row = 0; row < matrix->n_rows && status == IMK_OK;
       row += n_at_once) {
    const uint32_t left = matrix->n_rows - row;
    const uint32_t here = left < n_at_once ? left : n_at_once;

    for (uint32_t r = 0; r < here; r++) {
      const float *from = values + (size_t) (row + r) * n_columns;
      const float scale = scales ? 1.0f / scales[row + r] : 1.0f;

      for (uint32_t i = 0; i < n_columns; i++)
        rows.at[(size_t) r * matrix->stride + i] = convert (from[i] * scale);
    }
    status = settle (upload (to + (size_t) row * matrix->stride, rows.at,
                         (size_t) here * matrix->stride, error),
        error);
  }
  return status;
}

static float
as_it_is (float value)
{
  return value;
}

static __half
as_f16 (float value)
{
  return __float2half_rn (value);
}

static __nv_bfloat16
as_bf16 (float value)
{
  return __float2bfloat16_rn (value);
}

static ImkStatus
upload_f16 (
    Matrix *matrix, const float *values, uint32_t n_columns, ImkError *error)
{
  Scratch<float> scales (matrix->n_rows);
  float *to = nullptr;
  ImkStatus status =
      scales.at ? allocate (&to, matrix->n_rows, error) : no_memory (error);

  matrix->scales = to;
  for (uint32_t row = 0; row < matrix->n_rows && status == IMK_OK; row++)
    scales.at[row] =
        ldexpf (1.0f, -imk_shreconstruct_f16_exponent (
                          values + (size_t) row * n_columns, n_columns));
  if (status == IMK_OK)
    status = settle (upload (to, scales.at, matrix->n_rows, error), error);
  return status == IMK_OK ? upload_rows<__half> (matrix, values, n_columns,
                                as_f16, scales.at, error)
                          : status;
}

/* Rows of a block are done so many at once, of those that are compiled, that
 * few places stay empty. */
static void
plan_step (Step *step, uint32_t n_processors)
{
  static const uint32_t compiled[] = {1, 2, 3, 4, 5, 6, 8};
  const uint32_t n = step->matrix.n_rows;
  uint32_t most = n_processors * BLOCKS, of_block, n_rounds, i = 0;

  most = most < IMK_SHRECONSTRUCT_LIMITED_PARTS
             ? most
             : (uint32_t) IMK_SHRECONSTRUCT_LIMITED_PARTS;
  step->n_blocks = n < most ? n : most;
  of_block = imk_div_up (n, step->n_blocks);
  n_rounds = imk_div_up (of_block, 8);
  while (compiled[i] < imk_div_up (of_block, n_rounds))
    i++;
  step->n_rows = compiled[i];
}

/* As much as half of the L2 cache: the rest is for what the other kernels read,
 * and for the part of it that is farther away. */
static void
plan_ahead (Matrix *m, ImkShreconstructStorage storage, uint32_t cache_size)
{
  const uint32_t size = storage == IMK_SHRECONSTRUCT_STORAGE_F32 ? 4 : 2;
  const uint32_t row = m->stride * size, share = cache_size / 2 / m->n_rows;

  m->ahead = (row < share ? row : share) / 16 * 16;
}

static ImkStatus
make_step (Step *step, const float *values, uint32_t n_rows, uint32_t n_columns,
    ImkShreconstructStorage storage, const Cuda *cuda, ImkError *error)
{
  step->matrix.n_rows = n_rows;
  step->matrix.stride = imk_div_up (n_columns, VECTOR) * VECTOR;
  plan_step (step, cuda->n_processors);
  plan_ahead (&step->matrix, storage, cuda->cache_size);
  switch (storage) {
  case IMK_SHRECONSTRUCT_STORAGE_F16:
    return upload_f16 (&step->matrix, values, n_columns, error);
  case IMK_SHRECONSTRUCT_STORAGE_BF16:
    return upload_rows<__nv_bfloat16> (
        &step->matrix, values, n_columns, as_bf16, nullptr, error);
  default:
    return upload_rows<float> (
        &step->matrix, values, n_columns, as_it_is, nullptr, error);
  }
}

static void
free_step (Step *step)
{
  cudaFree ((void *) step->matrix.values);
  cudaFree ((void *) step->matrix.scales);
  *step = Step{};
}

/* --- making --------------------------------------------------------------- */

static void
cuda_destroy (void *state)
{
  Cuda *cuda = (Cuda *) state;
  Control *c = &cuda->control;

  free_step (&cuda->reconstruct);
  free_step (&cuda->mix);
  free_step (&cuda->follow);
  cudaFree (cuda->vectors[0]);
  cudaFree (cuda->vectors[1]);
  cudaFree (cuda->modes);
  cudaFree (cuda->changes);
  cudaFree (cuda->offsets);
  cudaFree (cuda->n_valid);
  cudaFree (cuda->dead);
  cudaFree (c->q);
  cudaFree (c->u);
  cudaFree ((void *) c->feedback);
  cudaFree ((void *) c->forward);
  cudaFree ((void *) c->reference);
  cudaFree (c->commands);
  delete cuda;
}

/* [mode][term] to [term][mode] */
static ImkStatus
upload_terms (
    const double *to, const double *terms, uint32_t n_modes, ImkError *error)
{
  const size_t n = (size_t) n_modes * TERMS;
  Scratch<double> turned (n);

  if (!turned.at)
    return no_memory (error);
  for (size_t m = 0; m < n_modes; m++)
    for (size_t i = 0; i < TERMS; i++)
      turned.at[i * n_modes + m] = terms[m * TERMS + i];
  return settle (upload ((double *) to, turned.at, n, error), error);
}

static ImkStatus
take_controller (Cuda *cuda, const ImkShreconstructConfig *c, ImkError *error)
{
  Control *to = &cuda->control;
  ImkStatus status =
      upload_terms (to->feedback, c->feedback, c->n_modes, error);

  if (status == IMK_OK)
    status = upload_terms (to->forward, c->forward, c->n_modes, error);
  if (status == IMK_OK)
    status =
        upload ((float *) to->reference, c->reference, c->n_commands, error);
  if (status == IMK_OK)
    status = upload (cuda->offsets, c->offsets, 2 * (size_t) c->n_cells, error);
  if (status == IMK_OK && c->dead)
    status = upload (cuda->dead, c->dead, c->n_commands, error);
  status = settle (status, error);
  if (status != IMK_OK)
    return status;
  to->dead = c->dead ? cuda->dead : nullptr;
  to->limits = imk_shreconstruct_limits (c);
  to->n_feedback = c->n_feedback;
  to->n_forward = c->n_forward;
  to->has_limits = imk_shreconstruct_has_limits (c);
  cuda->config = *c;
  return IMK_OK;
}

static ImkStatus
make_control (Cuda *cuda, const ImkShreconstructConfig *c, ImkError *error)
{
  Control *to = &cuda->control;
  const size_t past = (size_t) c->n_modes * TERMS;
  ImkStatus status = allocate (&to->q, past, error);

  to->n_modes = c->n_modes;
  if (status == IMK_OK)
    status = allocate (&to->u, past, error);
  if (status == IMK_OK)
    status = allocate ((double **) &to->feedback, past, error);
  if (status == IMK_OK)
    status = allocate ((double **) &to->forward, past, error);
  if (status == IMK_OK)
    status = allocate ((float **) &to->reference, c->n_commands, error);
  if (status == IMK_OK)
    status = allocate (&to->commands, c->n_commands, error);
  if (status == IMK_OK)
    status = allocate (&cuda->dead, c->n_commands, error);
  if (status == IMK_OK)
    status = allocate (&cuda->offsets, 2 * (size_t) c->n_cells, error);
  if (status == IMK_OK)
    status = allocate (&cuda->n_valid, IMK_SHRECONSTRUCT_VALID_PARTS, error);
  return status == IMK_OK ? take_controller (cuda, c, error) : status;
}

static ImkStatus
take_inverse (Cuda *cuda, const float *inverse, ImkError *error)
{
  const uint32_t n = cuda->config.n_commands;
  ImkStatus status = IMK_OK;

  free_step (&cuda->follow);
  status = make_step (&cuda->follow, inverse, cuda->config.n_modes, n,
      IMK_SHRECONSTRUCT_STORAGE_F32, cuda, error);
  if (status == IMK_OK && !cuda->changes)
    status = settle (
        allocate (&cuda->changes, cuda->follow.matrix.stride, error), error);
  return status;
}

static ImkStatus
make_matrices (Cuda *cuda, const ImkShreconstructConfig *c,
    const float *inverse, ImkError *error)
{
  ImkStatus status = make_step (&cuda->reconstruct, c->matrix, c->n_modes,
      2 * c->n_cells, c->storage, cuda, error);

  for (int i = 0; i < 2 && status == IMK_OK; i++)
    status =
        allocate (&cuda->vectors[i], cuda->reconstruct.matrix.stride, error);
  if (status == IMK_OK && c->modes)
    status = make_step (&cuda->mix, c->modes, c->n_commands, c->n_modes,
        IMK_SHRECONSTRUCT_STORAGE_F32, cuda, error);
  if (status == IMK_OK && c->modes)
    status = allocate (&cuda->modes, cuda->mix.matrix.stride, error);
  if (status == IMK_OK && inverse)
    status = take_inverse (cuda, inverse, error);
  return settle (status, error);
}

static ImkStatus
look_at_device (Cuda *cuda, ImkError *error)
{
  int device = 0, n_processors = 1, cache_size = 0, major = 0;
  ImkStatus status = IMK_CUDA (error, cudaGetDevice (&device));

  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaDeviceGetAttribute (&n_processors,
                                  cudaDevAttrMultiProcessorCount, device));
  if (status == IMK_OK)
    status = IMK_CUDA (error,
        cudaDeviceGetAttribute (&cache_size, cudaDevAttrL2CacheSize, device));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaDeviceGetAttribute (&major,
                                  cudaDevAttrComputeCapabilityMajor, device));
  cuda->n_processors = (uint32_t) n_processors;
  cuda->cache_size = (uint32_t) cache_size;
  cuda->begins_early = major >= 9;
  return status;
}

static ImkStatus
cuda_create (const ImkShreconstructConfig *config, const float *inverse,
    void **state, ImkError *error)
{
  Cuda *cuda = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!cuda)
    return no_memory (error);
  cuda->config = *config;
  status = look_at_device (cuda, error);
  if (status == IMK_OK)
    status = make_control (cuda, config, error);
  if (status == IMK_OK)
    status = make_matrices (cuda, config, inverse, error);
  if (status == IMK_OK)
    *state = cuda;
  else
    cuda_destroy (cuda);
  return status;
}

static ImkStatus
cuda_update (void *state, const ImkShreconstructConfig *config,
    const float *inverse, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  ImkStatus status = inverse ? take_inverse (cuda, inverse, error) : IMK_OK;

  return status == IMK_OK ? take_controller (cuda, config, error) : status;
}

/* --- a frame -------------------------------------------------------------- */

template <typename T>
static T *
part_of (const ImkShreconstructFrame *frame, ImkShreconstructPart part)
{
  return (T *) frame->state[part].data;
}

/* @part of the state, as the host has it. */
static ImkStatus
renew (void *to, const ImkShreconstructFrame *frame, ImkShreconstructPart part,
    cudaStream_t stream, ImkError *error)
{
  const ImkImage *from = &frame->state[part];

  return IMK_CUDA (
      error, cudaMemcpyAsync (to, from->data, from->stride * from->height,
                 cudaMemcpyDefault, stream));
}

static ImkStatus
renew_all (Cuda *cuda, const ImkShreconstructFrame *frame, cudaStream_t stream,
    ImkError *error)
{
  Control *c = &cuda->control;
  ImkStatus status = renew (c->q, frame, IMK_SHRECONSTRUCT_Q, stream, error);

  if (status == IMK_OK)
    status = renew (c->u, frame, IMK_SHRECONSTRUCT_U, stream, error);
  if (status == IMK_OK)
    status =
        renew (c->commands, frame, IMK_SHRECONSTRUCT_COMMANDS, stream, error);
  if (status == IMK_OK)
    status = renew (cuda->vectors[cuda->turn], frame, IMK_SHRECONSTRUCT_SLOPES,
        stream, error);
  return status;
}

template <ImkShreconstructStorage STORAGE>
using StoredOf =
    std::conditional_t<STORAGE == IMK_SHRECONSTRUCT_STORAGE_F16, __half,
        std::conditional_t<STORAGE == IMK_SHRECONSTRUCT_STORAGE_BF16,
            __nv_bfloat16, float>>;

static auto
choose (ImkShreconstructStorage storage, uint32_t n_rows)
{
  return instance (
      [] (auto storage, auto n_rows) {
        return multiply<StoredOf<storage>, n_rows>;
      },
      OneOf<IMK_SHRECONSTRUCT_STORAGE_F16, IMK_SHRECONSTRUCT_STORAGE_BF16,
          IMK_SHRECONSTRUCT_STORAGE_F32>{storage},
      OneOf<1, 2, 3, 4, 5, 6, 8>{n_rows});
}

/* What a frame is launched with. */
struct Launch {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute early;
};

static void
begin (Launch *launch, const Cuda *cuda, bool is_new, cudaStream_t stream)
{
  *launch = Launch{};
  launch->config.blockDim = dim3 (THREADS);
  launch->config.stream = stream;
  launch->early = early_begin ();
  launch->config.attrs = &launch->early;
  /* a copy of the past shall be there before a kernel recalls it */
  launch->config.numAttrs = cuda->begins_early && !is_new ? 1 : 0;
}

static ImkStatus
launch_slopes (Launch *launch, Cuda *cuda, const ImkShreconstructFrame *frame,
    ImkError *error)
{
  const ImkShreconstructConfig *c = &cuda->config;
  Slopes s = {};

  s.slopes = (const float *) frame->slopes.data;
  s.flags = (const uint8_t *) frame->flags.data;
  s.offsets = cuda->offsets;
  s.before = cuda->vectors[cuda->turn];
  s.vector = cuda->vectors[1 - cuda->turn];
  s.n_cells = c->n_cells;
  s.hold = c->invalid == IMK_SHRECONSTRUCT_INVALID_HOLD;
  s.n_valid = cuda->n_valid;
  s.n_valid_host =
      part_of<ImkShreconstructCounts> (frame, IMK_SHRECONSTRUCT_COUNTS)
          ->n_valid;
  launch->config.gridDim = dim3 (imk_div_up (c->n_cells, THREADS));
  return IMK_CUDA_LAUNCH (error, launch->config, take_slopes, s);
}

static ImkStatus
launch_step (Launch *launch, const Cuda *cuda, const Step *step,
    ImkShreconstructStorage storage, Product *p, const Control *c, End end,
    ImkError *error)
{
  p->matrix = step->matrix;
  p->n_valid = cuda->n_valid;
  p->n_valid_parts = imk_div_up (cuda->config.n_cells, THREADS);
  p->least_valid = cuda->config.min_valid * cuda->config.n_cells;
  launch->config.gridDim = dim3 (step->n_blocks);
  return IMK_CUDA_LAUNCH (
      error, launch->config, choose (storage, step->n_rows), *p, *c, end);
}

static ImkStatus
launch_products (Launch *launch, const Cuda *cuda,
    const ImkShreconstructFrame *frame, const Control *c, ImkError *error)
{
  const bool has_modes = cuda->mix.n_blocks > 0;
  Product p = {}, mix = {}, follow = {};
  ImkStatus status;

  p.vector = cuda->vectors[1 - cuda->turn];
  p.next = cuda->modes;
  if (cuda->config.invalid == IMK_SHRECONSTRUCT_INVALID_HOLD) {
    p.vector_host = part_of<float> (frame, IMK_SHRECONSTRUCT_SLOPES);
    p.n_vector_host = 2 * cuda->config.n_cells;
  }
  status = launch_step (launch, cuda, &cuda->reconstruct, cuda->config.storage,
      &p, c, has_modes ? END_MODES : END_COMMANDS, error);
  if (status != IMK_OK || !has_modes)
    return status;
  mix.vector = cuda->modes;
  mix.next = c->has_limits ? cuda->changes : nullptr;
  status = launch_step (launch, cuda, &cuda->mix, IMK_SHRECONSTRUCT_STORAGE_F32,
      &mix, c, END_MIX, error);
  if (status != IMK_OK || !c->has_limits)
    return status;
  follow.vector = cuda->changes;
  return launch_step (launch, cuda, &cuda->follow,
      IMK_SHRECONSTRUCT_STORAGE_F32, &follow, c, END_FOLLOW, error);
}

static ImkStatus
cuda_process (void *state, const ImkShreconstructFrame *frame, void *stream,
    ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  Control c;
  Launch launch;
  ImkStatus status = IMK_OK;

  /* the last frame was not dark */
  if (!frame->is_new && frame->first != cuda->newest)
    cuda->turn = 1 - cuda->turn;
  cuda->newest = frame->first;
  if (frame->is_new)
    status = renew_all (cuda, frame, (cudaStream_t) stream, error);
  c = cuda->control;
  c.q_host = part_of<double> (frame, IMK_SHRECONSTRUCT_Q);
  c.u_host = part_of<double> (frame, IMK_SHRECONSTRUCT_U);
  c.commands_host = part_of<float> (frame, IMK_SHRECONSTRUCT_COMMANDS);
  c.n_limited_host =
      part_of<ImkShreconstructCounts> (frame, IMK_SHRECONSTRUCT_COUNTS)
          ->n_limited;
  c.newest = (frame->first + TERMS - 1) % TERMS;
  begin (&launch, cuda, frame->is_new, (cudaStream_t) stream);
  if (status == IMK_OK)
    status = launch_slopes (&launch, cuda, frame, error);
  if (status == IMK_OK)
    status = launch_products (&launch, cuda, frame, &c, error);
  return status;
}

const ImkShreconstructBackend imk_shreconstruct_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .destroy = cuda_destroy,
};
