/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA backend: what lies on the device, and which kernel a frame takes. */
#include <cstdlib>
#include <cstring>

#include "core/cuda/cuda-check.h"
#include "shcentroid/cuda/shcentroid-choice.cuh"
#include "shcentroid/cuda/shcentroid-tasks.cuh"

/* Correlation, all on the device; nothing of it without templates. */
struct Matching {
  ImkShcentroidTemplates templates; /* without what it points to */
  bool from_frame;
  float *patterns;
  ImkShcentroidTotal *totals;
  ImkShcentroidAnchor *anchors;
  uint32_t width, height; /* of the largest window */
  uint8_t *memory;        /* of blocks that do not fit into shared memory */
  uint32_t n_blocks, layout_size; /* that it is for */
};

struct Cuda {
  Arguments arguments;         /* all but the images and the tasks */
  Tasks integers, fine, reals; /* fine: integers, on more blocks */
  small::Layout layout;
  bool is_map;
  ImkType type;

  /* of the chain */
  ImkShcentroidPixel *pixels; /* on the device; null for none, like lut */
  uint32_t pixel_stride;
  float *lut;
  ImkShcentroidTrack *tracks;
  ImkShcentroidSlope *slopes;
  double *weights;   /* about the references; null until they are needed */
  bool stale;        /* they are of another sigma */
  uint16_t *cell_of; /* column of the grid, of each of the frame; or null */
  bool bad;          /* some pixel is */
  uint32_t width, height; /* of the frame */
  uint8_t *staged;        /* a frame from host memory; null until then */
  size_t staged_stride;
  uint32_t lanes, chain_warps; /* of a team of the chain; warps a block */
  bool wide, lost;
  Matching matching;

  /* of the linear estimators, on the device; null without them */
  float *filter_weights;
  uint64_t *filter_at;
  uint32_t *pupils;
  double *mean;
};

/* ------------------------------------------------------------------------
 * The backend. */

/* @size bytes, uploaded from @from, or zero without. */
static ImkStatus
upload_table (void **to, const void *from, size_t size, ImkError *error)
{
  cudaStream_t stream = cudaStreamPerThread;

  IMK_TRY (IMK_CUDA (error, cudaMalloc (to, size)));
  if (from)
    IMK_TRY (IMK_CUDA (error,
        cudaMemcpyAsync (*to, from, size, cudaMemcpyHostToDevice, stream)));
  else
    IMK_TRY (IMK_CUDA (error, cudaMemsetAsync (*to, 0, size, stream)));
  return IMK_CUDA (error, cudaStreamSynchronize (stream));
}

/* What all kernels need of the cells. */
static ImkStatus
upload_cells (Cuda *cuda, const ImkShcentroidPlan *plan, ImkError *error)
{
  Arguments *a = &cuda->arguments;
  size_t n = plan->n_rects, n_scratch = cuda->integers.n_scratch;

  IMK_TRY (upload_table (
      (void **) &a->rects, plan->rects, n * sizeof (ImkShcentroidRect), error));
  IMK_TRY (upload_table (
      (void **) &a->held, nullptr, n * 2 * sizeof (double), error));
  return n_scratch ? upload_table ((void **) &a->scratch, nullptr,
                         n_scratch * sizeof (Scratch), error)
                   : IMK_OK;
}

/* Rows begin where a vector of two pixels does, and words that reach beyond the
 * last column find something there. */
static ImkStatus
upload_pixels (Cuda *cuda, const ImkShcentroidPlan *plan, ImkError *error)
{
  size_t row = plan->width * sizeof (ImkShcentroidPixel);
  size_t stride, size;
  cudaStream_t stream = cudaStreamPerThread;

  cuda->pixel_stride = imk_div_up (plan->width, 4) * 4;
  stride = cuda->pixel_stride * sizeof (ImkShcentroidPixel);
  size = stride * plan->height;
  for (size_t i = 0; i < (size_t) plan->width * plan->height; i++)
    cuda->bad |= plan->pixels[i].flat == 0.0f;
  IMK_TRY (upload_table ((void **) &cuda->pixels, nullptr, size, error));
  IMK_TRY (IMK_CUDA (
      error, cudaMemcpy2DAsync (cuda->pixels, stride, plan->pixels, row, row,
                 plan->height, cudaMemcpyHostToDevice, stream)));
  return IMK_CUDA (error, cudaStreamSynchronize (stream));
}

/* All rows of a grid have the columns of the first. */
static ImkStatus
upload_columns (Cuda *cuda, const ImkShcentroidPlan *plan, ImkError *error)
{
  size_t size = plan->width * sizeof (uint16_t);
  uint16_t *cell_of = (uint16_t *) calloc (1, size);
  ImkStatus status;

  if (!cell_of)
    return IMK_NO_MEMORY (error, "to plan %u cells.", plan->n_rects);
  for (uint32_t i = 0; i < plan->columns; i++)
    for (uint32_t k = 0; k < plan->rects[i].width; k++)
      cell_of[plan->rects[i].x + k] = (uint16_t) i;
  status = upload_table ((void **) &cuda->cell_of, cell_of, size, error);
  free (cell_of);
  return status;
}

/* What only the chain needs. */
static ImkStatus
upload_chain (Cuda *cuda, const ImkShcentroidPlan *plan, ImkError *error)
{
  size_t n_samples = plan->type == IMK_TYPE_U8 ? 256 : 65536;

  IMK_TRY (upload_table ((void **) &cuda->tracks, nullptr,
      plan->n_rects * sizeof (ImkShcentroidTrack), error));
  IMK_TRY (upload_table ((void **) &cuda->slopes, nullptr,
      plan->n_rects * sizeof (ImkShcentroidSlope), error));
  if (plan->columns)
    IMK_TRY (upload_columns (cuda, plan, error));
  if (plan->pixels)
    IMK_TRY (upload_pixels (cuda, plan, error));
  return plan->lut ? upload_table ((void **) &cuda->lut, plan->lut,
                         n_samples * sizeof (float), error)
                   : IMK_OK;
}

/* Blocks whose cells do not fit into shared memory are as many as keep the
 * device busy, and each has memory for the largest search range. */
static ImkStatus
upload_match_memory (Matching *m, uint32_t n_cells, ImkError *error)
{
  MatchLayout layout;
  int device = 0, n_processors = 1;

  m->layout_size =
      lay_out_match (m->width, m->height, IMK_SHCENTROID_MAX_SEARCH_RANGE,
          m->templates.width * m->templates.height, nullptr, &layout);
  IMK_TRY (IMK_CUDA (error, cudaGetDevice (&device)));
  IMK_TRY (IMK_CUDA (error, cudaDeviceGetAttribute (&n_processors,
                                cudaDevAttrMultiProcessorCount, device)));
  m->n_blocks = 4 * (uint32_t) n_processors;
  if (m->n_blocks > n_cells)
    m->n_blocks = n_cells;
  if (m->layout_size <= MAX_SHARED)
    m->n_blocks = 1; /* of the template from the frame */
  return upload_table ((void **) &m->memory, nullptr,
      (size_t) m->n_blocks * m->layout_size, error);
}

static ImkStatus
upload_match (Cuda *cuda, const ImkShcentroidPlan *plan, ImkError *error)
{
  const ImkShcentroidTemplates *t = &plan->templates;
  Matching *m = &cuda->matching;
  size_t n_totals = t->n * ((size_t) t->width + 1) * ((size_t) t->height + 1);

  if (t->n == 0)
    return IMK_OK;
  m->templates = *t;
  m->from_frame = t->pixels == nullptr;
  for (uint32_t i = 0; i < plan->n_rects; i++) {
    const ImkShcentroidRect *rect = &plan->rects[i];

    m->width = rect->width > m->width ? rect->width : m->width;
    m->height = rect->height > m->height ? rect->height : m->height;
  }
  IMK_TRY (upload_table ((void **) &m->patterns, t->pixels,
      (size_t) t->n * t->width * t->height * sizeof (float), error));
  IMK_TRY (upload_table ((void **) &m->totals, t->totals,
      n_totals * sizeof (ImkShcentroidTotal), error));
  IMK_TRY (upload_table ((void **) &m->anchors, t->anchors,
      plan->n_rects * sizeof (ImkShcentroidAnchor), error));
  return upload_match_memory (m, plan->n_rects, error);
}

static ImkStatus
upload_linear (Cuda *cuda, const ImkShcentroidPlan *plan, ImkError *error)
{
  const ImkShcentroidFilter *f = &plan->filter;
  size_t n = plan->n_rects;

  if (f->n_weights > 0) {
    IMK_TRY (upload_table ((void **) &cuda->filter_weights, f->weights,
        f->n_weights * sizeof (float), error));
    IMK_TRY (upload_table (
        (void **) &cuda->filter_at, f->at, n * sizeof (*f->at), error));
  }
  if (!plan->pupils)
    return IMK_OK;
  IMK_TRY (upload_table ((void **) &cuda->pupils, plan->pupils,
      n * IMK_SHCENTROID_N_PUPILS * sizeof (*plan->pupils), error));
  return upload_table (
      (void **) &cuda->mean, nullptr, sizeof (*cuda->mean), error);
}

/* Teams as wide as the widest cell, as high as the highest. */
static void
plan_chain (Cuda *cuda, const ImkShcentroidPlan *plan)
{
  uint32_t width = 1, height = 1, warps;

  for (uint32_t i = 0; i < plan->n_rects; i++) {
    if (plan->rects[i].width > width)
      width = plan->rects[i].width;
    if (plan->rects[i].height > height)
      height = plan->rects[i].height;
  }
  cuda->width = plan->width;
  cuda->height = plan->height;
  cuda->lost = true;
  cuda->lanes = CHAIN_MIN_LANES;
  while (cuda->lanes < width && cuda->lanes < 32)
    cuda->lanes *= 2;
  cuda->wide = height > WIDE_FROM;
  warps = imk_div_up (height, IMK_SHCENTROID_BAND_ROWS);
  cuda->chain_warps = !cuda->wide               ? CHAIN_THREADS / 32
                      : warps < CHAIN_MAX_WARPS ? warps
                                                : CHAIN_MAX_WARPS;
}

static void
cuda_destroy (void *state)
{
  Cuda *cuda = (Cuda *) state;

  if (!cuda)
    return;
  cudaFree ((void *) cuda->arguments.rects); /* waits for kernels that use it */
  cudaFree (cuda->arguments.held);
  cudaFree (cuda->arguments.scratch);
  cudaFree (cuda->integers.tasks);
  cudaFree (cuda->fine.tasks);
  cudaFree (cuda->reals.tasks);
  cudaFree (cuda->cell_of);
  cudaFree (cuda->pixels);
  cudaFree (cuda->lut);
  cudaFree (cuda->tracks);
  cudaFree (cuda->slopes);
  cudaFree (cuda->weights);
  cudaFree (cuda->staged);
  cudaFree (cuda->matching.patterns);
  cudaFree (cuda->matching.totals);
  cudaFree (cuda->matching.anchors);
  cudaFree (cuda->matching.memory);
  cudaFree (cuda->filter_weights);
  cudaFree (cuda->filter_at);
  cudaFree (cuda->pupils);
  cudaFree (cuda->mean);
  free (cuda);
}

/* Twice through the plan: to count tasks, then to note them down. */
static ImkStatus
plan_and_upload (Planner planner, Tasks *to, ImkError *error)
{
  ImkStatus status;

  plan_tasks (&planner);
  planner.tasks = (Task *) malloc (planner.needs.n_tasks * sizeof (Task));
  if (!planner.tasks)
    return IMK_NO_MEMORY (error, "to plan %u cells.", planner.plan->n_rects);
  plan_tasks (&planner);
  *to = planner.needs;
  status = upload_table (
      (void **) &to->tasks, planner.tasks, to->n_tasks * sizeof (Task), error);
  free (planner.tasks);
  return status;
}

/* Is a frame in host memory better copied to the device first? The plain
 * centroid and thresholds in counts read it once, in large pieces, as fast as a
 * copy would; a copy ahead of the others costs less than what their smaller
 * pieces, or reading again, do (rows -mapped of gpu-bench). Templates are not
 * known to gain by it. */
static bool
wants_staging (const Cuda *cuda, const ImkShcentroidParams *params)
{
  if (params->estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    return false;
  return imk_shcentroid_is_leveled (params) ||
         !imk_shcentroid_is_plain (
             params, cuda->type, cuda->pixels || cuda->lut);
}

static ImkStatus
make_room (Cuda *cuda, ImkError *error)
{
  size_t row = cuda->arguments.row_size;

  if (cuda->staged)
    return IMK_OK;
  cuda->staged_stride = (row + 127) / 128 * 128;
  return IMK_CUDA (error,
      cudaMalloc ((void **) &cuda->staged, cuda->staged_stride * cuda->height));
}

/* The weights about the references are in a table, made by the next frame. */
static ImkStatus
take_params (Cuda *cuda, const ImkShcentroidParams *params, ImkError *error)
{
  bool weighted = params->weighting == IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
  uint64_t n = cuda->layout.side > 0 ? small::n_weights (&cuda->layout)
                                     : cuda->reals.n_weights;
  size_t size = n * sizeof (double);

  if (wants_staging (cuda, params))
    IMK_TRY (make_room (cuda, error));
  if (weighted && !cuda->weights && size > 0) {
    IMK_TRY (IMK_CUDA (error, cudaMalloc ((void **) &cuda->weights, size)));
    cuda->stale = true;
  }
  cuda->stale |= params->sigma != cuda->arguments.params.sigma;
  cuda->arguments.params = *params;
  return IMK_OK;
}

static ImkStatus
set_up (Cuda *cuda, const ImkShcentroidPlan *plan,
    const ImkShcentroidParams *params, ImkError *error)
{
  Planner planner = {};

  planner.plan = plan;
  planner.all = plan->fields == IMK_SHCENTROID_FIELDS_ALL;
  planner.sample_size = (uint32_t) imk_type_size (plan->type);
  cuda->is_map = plan->columns == 0;
  cuda->type = plan->type;
  cuda->arguments.row_size = plan->width * planner.sample_size;
  cuda->arguments.n_rects = plan->n_rects;
  cuda->arguments.fields = plan->fields;
  cuda->arguments.fresh = true;
  cuda->layout = small::lay_out (plan);
  plan_chain (cuda, plan);
  IMK_TRY (plan_and_upload (planner, &cuda->integers, error));
  planner.fine = true;
  IMK_TRY (plan_and_upload (planner, &cuda->fine, error));
  planner.reals = true;
  IMK_TRY (plan_and_upload (planner, &cuda->reals, error));
  IMK_TRY (upload_cells (cuda, plan, error));
  IMK_TRY (upload_chain (cuda, plan, error));
  IMK_TRY (upload_match (cuda, plan, error));
  IMK_TRY (upload_linear (cuda, plan, error));
  return take_params (cuda, params, error);
}

static ImkStatus
cuda_create (const void *data, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  const ImkShcentroidPlan *plan = (const ImkShcentroidPlan *) data;
  Cuda *cuda = (Cuda *) calloc (1, sizeof (*cuda));
  ImkStatus status;

  if (!cuda)
    return IMK_NO_MEMORY (error, "to plan %u cells.", plan->n_rects);
  status = set_up (cuda, plan, (const ImkShcentroidParams *) params, error);
  if (status == IMK_OK)
    *state = cuda;
  else
    cuda_destroy (cuda);
  return status;
}

static ImkStatus
cuda_update (void *state, const void *data, ImkError *error)
{
  const ImkShcentroidParams *params = (const ImkShcentroidParams *) data;
  Cuda *cuda = (Cuda *) state;
  Arguments *a = &cuda->arguments;

  /* what was held or tracked before something else came in between is out of
   * date */
  if (a->params.invalid_policy != params->invalid_policy)
    a->fresh = true;
  if (imk_shcentroid_tracks (&a->params) != imk_shcentroid_tracks (params))
    cuda->lost = true;
  return take_params (cuda, params, error);
}

/* What is the same for all estimators. */
static Choice
make_choice (const Cuda *cuda)
{
  const ImkShcentroidParams *params = &cuda->arguments.params;
  Choice choice = {};

  choice.type = cuda->type;
  choice.all = cuda->arguments.fields == IMK_SHCENTROID_FIELDS_ALL;
  choice.calibrated = cuda->pixels != nullptr;
  choice.weighted = params->weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  choice.cut =
      cuda->bad || params->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE;
  choice.leveled = imk_shcentroid_is_leveled (params);
  choice.wide = cuda->wide;
  choice.rare = chain_is_rare (params);
  choice.side = cuda->layout.side;
  return choice;
}

/* Can the kernels of the common case do it? They read words of integers. */
static bool
takes_reals (const Cuda *cuda)
{
  const ImkShcentroidParams *params = &cuda->arguments.params;

  return cuda->type != IMK_TYPE_F32 && cuda->reals.n_scratch == 0 &&
         !chain_is_rare (params) && !imk_shcentroid_tracks (params);
}

static ChainArguments
chain_arguments (const Cuda *cuda)
{
  ChainArguments a = {};

  a.common = cuda->arguments;
  a.pixels = cuda->pixels;
  a.pixel_stride = cuda->pixel_stride;
  a.lut = cuda->lut;
  a.tracks = cuda->tracks;
  a.slopes = cuda->slopes;
  a.weights = cuda->weights;
  a.cell_of = cuda->cell_of;
  a.width = cuda->width;
  a.height = cuda->height;
  a.lanes = cuda->lanes;
  a.lost = cuda->lost;
  a.noise = imk_shcentroid_noise (&cuda->arguments.params);
  return a;
}

/* When all cells are measured. */
static ImkStatus
launch_join (const ChainArguments *a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = {};

  if (!imk_shcentroid_joins (&a->common.params))
    return IMK_OK;
  launch.gridDim = dim3 (1);
  launch.blockDim = dim3 (IMK_SHCENTROID_TILT_LANES);
  launch.stream = stream;
  return IMK_CUDA_LAUNCH (error, launch, join_cells, *a);
}

static ImkStatus
launch_reals (Cuda *cuda, const Choice &choice, ChainArguments *a,
    cudaLaunchConfig_t *launch, ImkError *error)
{
  const Tasks *tasks = &cuda->reals;

  launch->gridDim = dim3 (tasks->n_tasks);
  if (choice.weighted && cuda->stale) {
    launch->blockDim = dim3 (CHAIN_THREADS);
    IMK_TRY (IMK_CUDA_LAUNCH (error, *launch, reals::make_weights,
        (const Task *) tasks->tasks, cuda->arguments.rects,
        cuda->arguments.params.sigma, cuda->weights));
    cuda->stale = false;
  }
  a->common.tasks = tasks->tasks;
  launch->blockDim = dim3 (tasks->n_threads);
  launch->dynamicSmemBytes = tasks->shared_size;
  return IMK_CUDA_LAUNCH (error, *launch, choose_reals_kernel (choice), *a);
}

static ImkStatus
launch_small_reals (Cuda *cuda, const Choice &choice, ChainArguments *a,
    cudaLaunchConfig_t *launch, ImkError *error)
{
  uint32_t n = a->common.n_rects;

  if (choice.weighted && cuda->stale) {
    launch->gridDim = dim3 (imk_div_up (n, (uint32_t) small::THREADS));
    launch->blockDim = dim3 (small::THREADS);
    IMK_TRY (IMK_CUDA_LAUNCH (error, *launch, small::make_weights,
        cuda->arguments.rects, n, cuda->layout.side,
        cuda->arguments.params.sigma, cuda->weights));
    cuda->stale = false;
  }
  small::configure (&cuda->layout, launch);
  return IMK_CUDA_LAUNCH (
      error, *launch, choose_small_reals_kernel (choice), *a, cuda->layout);
}

static ImkStatus
launch_teams (Cuda *cuda, const Choice &choice, ChainArguments *a,
    cudaLaunchConfig_t *launch, ImkError *error)
{
  uint32_t threads = 32 * cuda->chain_warps;
  uint32_t n_teams = cuda->wide ? 1 : threads / cuda->lanes;

  launch->gridDim = dim3 (imk_div_up (a->common.n_rects, n_teams));
  launch->blockDim = dim3 (threads);
  launch->dynamicSmemBytes = chain_shared_size (n_teams,
      !choice.weighted ? 0
      : cuda->wide     ? cuda->chain_warps
                       : n_teams,
      choice.all);
  return IMK_CUDA_LAUNCH (error, *launch, choose_chain_kernel (choice), *a);
}

static ImkStatus
launch_chain (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  ChainArguments a = chain_arguments (cuda);
  Choice choice = make_choice (cuda);
  cudaLaunchConfig_t launch = {};

  launch.stream = stream;
  if (!takes_reals (cuda))
    IMK_TRY (launch_teams (cuda, choice, &a, &launch, error));
  else if (choice.side > 0)
    IMK_TRY (launch_small_reals (cuda, choice, &a, &launch, error));
  else
    IMK_TRY (launch_reals (cuda, choice, &a, &launch, error));
  return launch_join (&a, stream, error);
}

/* A thread for every shift, as far as they go. */
static uint32_t
match_threads (const Matching *m, uint32_t search_range)
{
  uint32_t x = search_range < m->width / 2 ? search_range : m->width / 2;
  uint32_t y = search_range < m->height / 2 ? search_range : m->height / 2;
  uint32_t n = (2 * x + 1) * (2 * y + 1);

  return n > 64 ? MATCH_THREADS : n > 32 ? 64 : 32;
}

static ImkStatus
launch_match (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  const Matching *m = &cuda->matching;
  uint32_t range = cuda->arguments.params.search_range;
  cudaLaunchConfig_t launch = {};
  MatchArguments a = {};
  MatchLayout layout;
  Choice choice = make_choice (cuda);

  a.chain = chain_arguments (cuda);
  a.patterns = m->patterns;
  a.totals = m->totals;
  a.anchors = m->anchors;
  a.templates = m->templates;
  a.memory = m->memory;
  a.layout_size = lay_out_match (m->width, m->height, range,
      m->templates.width * m->templates.height, nullptr, &layout);
  choice.global = a.layout_size > MAX_SHARED;
  launch.stream = stream;
  if (m->from_frame) {
    launch.gridDim = dim3 (1);
    launch.blockDim = dim3 (MATCH_THREADS);
    IMK_TRY (
        IMK_CUDA_LAUNCH (error, launch, choose_template_kernel (choice), a));
  }
  launch.gridDim = dim3 (choice.global ? m->n_blocks : a.chain.common.n_rects);
  launch.blockDim = dim3 (match_threads (m, range));
  launch.dynamicSmemBytes = choice.global ? 0 : a.layout_size;
  IMK_TRY (IMK_CUDA_LAUNCH (error, launch, choose_match_kernel (choice), a));
  return launch_join (&a.chain, stream, error);
}

static ImkStatus
launch_linear (Cuda *cuda, cudaStream_t stream, ImkError *error)
{
  const ImkShcentroidParams *params = &cuda->arguments.params;
  bool pupils = params->estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS;
  bool local = params->normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL;
  cudaLaunchConfig_t launch = {};
  LinearArguments a = {};
  Choice choice = make_choice (cuda);

  a.chain = chain_arguments (cuda);
  a.weights = cuda->filter_weights;
  a.at = cuda->filter_at;
  a.anchors = cuda->matching.anchors;
  a.pupils = cuda->pupils;
  a.mean = cuda->mean;
  launch.stream = stream;
  if (pupils && !local) {
    launch.gridDim = dim3 (1);
    launch.blockDim = dim3 (IMK_SHCENTROID_TILT_LANES);
    IMK_TRY (IMK_CUDA_LAUNCH (error, launch, choose_mean_kernel (choice), a));
  }
  launch.gridDim = dim3 (imk_div_up (a.chain.common.n_rects,
      pupils ? (uint32_t) LINEAR_THREADS : (uint32_t) LINEAR_WARPS));
  launch.blockDim = dim3 (LINEAR_THREADS);
  IMK_TRY (IMK_CUDA_LAUNCH (
      error, launch, choose_linear_kernel (choice, pupils), a));
  return launch_join (&a.chain, stream, error);
}

/* Coarse tasks where the frame comes over a bus, and none where a thread can
 * have a cell; what is leveled is never read over it. */
static ImkStatus
launch_plain (Cuda *cuda, bool on_device, cudaStream_t stream, ImkError *error)
{
  Arguments a = cuda->arguments;
  Choice choice = make_choice (cuda);
  cudaLaunchConfig_t launch = {};
  const Tasks *tasks;

  on_device |= choice.leveled;
  choice.cut &= cuda->is_map || a.params.threshold > 0.0;
  launch.stream = stream;
  if (on_device && choice.side > 0) {
    small::configure (&cuda->layout, &launch);
    return IMK_CUDA_LAUNCH (
        error, launch, choose_small_kernel (choice), a, cuda->layout);
  }
  tasks = on_device && (choice.leveled || choice.cut) ? &cuda->fine
                                                      : &cuda->integers;
  a.tasks = tasks->tasks;
  launch.gridDim = dim3 (tasks->n_tasks);
  launch.blockDim = dim3 (tasks->n_threads);
  if (choice.leveled && tasks->n_scratch > 0)
    IMK_TRY (
        IMK_CUDA_LAUNCH (error, launch, choose_extremes_kernel (choice), a));
  launch.dynamicSmemBytes = tasks->shared_size;
  return IMK_CUDA_LAUNCH (error, launch, choose_kernel (choice), a);
}

/* The frame is read where it is, or a copy of it is. */
static ImkStatus
place_frame (
    Cuda *cuda, const ImkImage *in, cudaStream_t stream, ImkError *error)
{
  Arguments *a = &cuda->arguments;

  a->frame = (const uint8_t *) in->data;
  a->stride = in->stride;
  if (in->location == IMK_LOCATION_HOST_MAPPED &&
      wants_staging (cuda, &a->params)) {
    IMK_TRY (IMK_CUDA (error,
        cudaMemcpy2DAsync (cuda->staged, cuda->staged_stride, in->data,
            in->stride, a->row_size, in->height, cudaMemcpyDefault, stream)));
    a->frame = cuda->staged;
    a->stride = cuda->staged_stride;
  }
  a->aligned = ((uintptr_t) a->frame | a->stride) % 4 == 0;
  return IMK_OK;
}

static Output
output_of (const ImkImage *image)
{
  return {image->data, image->stride, image->type == IMK_TYPE_F64};
}

static ImkStatus
cuda_process (
    void *state, const ImkImage *in, ImkImage *out, void *data, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;
  Arguments *a = &cuda->arguments;
  cudaStream_t stream = (cudaStream_t) data;

  IMK_TRY (place_frame (cuda, in, stream, error));
  a->out = output_of (&out[0]);
  a->rounded = output_of (&out[1]);
  a->flags = (uint8_t *) out[2].data;
  if (a->params.estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    IMK_TRY (launch_match (cuda, stream, error));
  else if (a->params.estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED ||
           a->params.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS)
    IMK_TRY (launch_linear (cuda, stream, error));
  else if (imk_shcentroid_is_plain (
               &a->params, cuda->type, cuda->pixels || cuda->lut))
    IMK_TRY (launch_plain (
        cuda, in->location == IMK_LOCATION_DEVICE, stream, error));
  else
    IMK_TRY (launch_chain (cuda, stream, error));
  a->fresh = cuda->lost = false;
  return IMK_OK;
}

/* The next launch takes nothing as held, and holds what it finds: no call to
 * the device is needed. */
static ImkStatus
cuda_reset (void *state, void *stream, ImkError *error)
{
  Cuda *cuda = (Cuda *) state;

  cuda->arguments.fresh = cuda->lost = true;
  return IMK_OK;
}

const ImkFilterBackend imk_shcentroid_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .params_size = sizeof (ImkShcentroidParams),
    .n_inputs = 1,
    .n_outputs = 3,
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .reset = cuda_reset,
    .destroy = cuda_destroy,
};
