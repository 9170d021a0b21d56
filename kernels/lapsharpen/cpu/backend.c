/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/lapsharpen-backend.h"

#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "lapsharpen/cpu/scratch.h"
#include "lapsharpen/lapsharpen-stage.h"

enum {
  BAND_SIZE = 65536, /* bytes that are worth a thread */
  SMOOTH_ROWS = 16,  /* low rows that are */
};

typedef struct State {
  ImkLapsharpenRule rule;
  ImkLapsharpenProducts products;
  ImkLapsharpenRatio ratio;
  uint32_t n_threads;
  ScratchPool scratch;
  const ImkLapsharpenLoops *loops;
  ImkLapsharpenSums sums;
  ImkLapsharpenMoments *moments; /* of each row, for float32 */

  uint8_t *mask;
  uint16_t *decode, *encode;
  bool staged;
  ImkLapsharpenStage stage;
  ImkImage unpacked, sharpened; /* for staged */
} State;

static ImkStatus
cpu_update (void *state, const void *params, ImkError *error)
{
  State *self = state;
  const ImkLapsharpenStage stage =
      imk_lapsharpen_stage (params, self->decode, self->encode);
  const ImkLapsharpenConfig config =
      self->staged ? imk_lapsharpen_inner (params, &stage, self->decode)
                   : *(const ImkLapsharpenConfig *) params;
  const ImkLapsharpenRule rule = imk_lapsharpen_rule (&config);

  IMK_TRY (imk_lapsharpen_scratch_resize (
      &self->scratch, self->n_threads, &rule, config.type, error));
  if (config.type == IMK_TYPE_U8 &&
      (rule.amount != self->products.amount ||
          rule.neighbours != self->products.neighbours))
    self->products = imk_lapsharpen_find_products (&rule);
  if (config.type == IMK_TYPE_U8 && rule.kernel_size)
    imk_lapsharpen_find_ratio (&rule, &self->ratio);
  self->rule = rule;
  self->stage = stage;
  return IMK_OK;
}

static void
cpu_destroy (void *state)
{
  State *self = state;

  imk_pool_free (self->scratch.pool);
  free (self->moments);
  free (self->mask);
  free (self->decode);
  free (self->encode);
  free (self->unpacked.data);
  free (self->sharpened.data);
  free (self);
}

/* Returns: (nullable): a copy of @n bytes; @failed: set without memory */
static void *
copy (const void *bytes, size_t n, bool *failed)
{
  void *own = bytes ? malloc (n) : NULL;

  if (own)
    memcpy (own, bytes, n);
  else if (bytes)
    *failed = true;
  return own;
}

static ImkImage
make_image (const ImkLapsharpenConfig *c, bool *failed)
{
  ImkImage image = {.width = c->width,
      .height = c->height,
      .channels = c->channels,
      .type = IMK_TYPE_U16};

  image.stride = imk_image_row_size (&image);
  image.data = malloc (image.stride * image.height);
  *failed = *failed || !image.data;
  return image;
}

/* What the plan has pointers to, and what packing needs. */
static ImkStatus
allocate (State *self, const ImkLapsharpenConfig *c, ImkError *error)
{
  bool failed = false;

  self->mask = copy (c->mask, (size_t) c->width * c->height, &failed);
  self->decode =
      copy (c->decode, sizeof (*c->decode) * ((size_t) 1 << c->depth), &failed);
  self->encode = copy (
      c->encode, sizeof (*c->encode) * (IMK_LAPSHARPEN_WHITE + 1), &failed);
  self->staged = imk_lapsharpen_is_staged (c);
  if (self->staged) {
    self->unpacked = make_image (c, &failed);
    self->sharpened = make_image (c, &failed);
  }
  if (c->type == IMK_TYPE_F32) {
    self->moments = calloc (c->height, sizeof (*self->moments));
    failed = failed || !self->moments;
  }
  return failed
             ? IMK_NO_MEMORY (error, "for a CPU sharpener of %u x %u pixels.",
                   c->width, c->height)
             : IMK_OK;
}

static ImkStatus
cpu_create (const void *plan, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  static const void *const u8[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_lapsharpen_u8);
  static const void *const u16[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_lapsharpen_u16);
  static const void *const f32[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_lapsharpen_f32);
  const ImkLapsharpenConfig *config = plan;
  State *self = calloc (1, sizeof (*self));
  const void *loops = NULL;
  ImkStatus status;

  if (!self)
    return IMK_NO_MEMORY (error, "for a CPU sharpener.");
  self->n_threads = n_threads;
  status = allocate (self, config, error);
  if (status == IMK_OK)
    status =
        imk_cpu_choose (config->type == IMK_TYPE_F32                   ? f32
                        : config->type == IMK_TYPE_U8 && !self->staged ? u8
                                                                       : u16,
            &loops, error);
  self->loops = loops;
  if (status == IMK_OK)
    status = cpu_update (self, params, error);
  if (status == IMK_OK)
    *state = self;
  else
    cpu_destroy (self);
  return status;
}

/* --- a frame -------------------------------------------------------------- */

/* Rows to unpack, or to pack. */
typedef struct Packing {
  const ImkLapsharpenStage *stage;
  const ImkImage *in, *unpacked, *sharpened, *out;
} Packing;

static void *
row_of (const ImkImage *image, uint32_t y)
{
  return (uint8_t *) image->data + y * image->stride;
}

/* With constants for @type and @channels all decisions are made before a row;
 * that takes two thirds of the time. @type: of native samples */
static inline __attribute__ ((always_inline)) void
unpack_row (const ImkLapsharpenStage *given, ImkType type, uint32_t channels,
    const void *in, uint32_t width, uint16_t *restrict unpacked)
{
  ImkLapsharpenStage stage = *given;

  stage.type = type;
  stage.channels = channels;
  for (uint32_t x = 0; x < width; x++)
    imk_lapsharpen_unpack_pixel (&stage, in, x, unpacked);
}

static inline __attribute__ ((always_inline)) void
pack_row (const ImkLapsharpenStage *given, ImkType type, uint32_t channels,
    const void *in, uint32_t width, const uint16_t *sharpened,
    void *restrict out)
{
  ImkLapsharpenStage stage = *given;

  stage.type = type;
  stage.channels = channels;
  for (uint32_t x = 0; x < width; x++)
    imk_lapsharpen_pack_pixel (&stage, in, sharpened, x, out);
}

static void
unpack_rows (void *data, uint32_t first, uint32_t end)
{
  const Packing *p = data;
  const ImkLapsharpenStage *s = p->stage;

  for (uint32_t y = first; y < end; y++) {
    const void *in = row_of (p->in, y);
    uint16_t *to = row_of (p->unpacked, y);

    if (s->type == IMK_TYPE_U8 && s->channels == 4)
      unpack_row (s, IMK_TYPE_U8, 4, in, p->in->width, to);
    else if (s->type == IMK_TYPE_U8 && s->channels == 1)
      unpack_row (s, IMK_TYPE_U8, 1, in, p->in->width, to);
    else
      unpack_row (s, s->type, s->channels, in, p->in->width, to);
  }
}

static void
pack_rows (void *data, uint32_t first, uint32_t end)
{
  const Packing *p = data;
  const ImkLapsharpenStage *s = p->stage;

  for (uint32_t y = first; y < end; y++) {
    const void *in = row_of (p->in, y);
    const uint16_t *from = row_of (p->sharpened, y);
    void *out = row_of (p->out, y);

    if (s->type == IMK_TYPE_U8 && s->channels == 4)
      pack_row (s, IMK_TYPE_U8, 4, in, p->in->width, from, out);
    else if (s->type == IMK_TYPE_U8 && s->channels == 1)
      pack_row (s, IMK_TYPE_U8, 1, in, p->in->width, from, out);
    else
      pack_row (s, s->type, s->channels, in, p->in->width, from, out);
  }
}

static float
measure_threshold (State *self, Work *work, uint32_t band)
{
  const ImkLapsharpenRule *rule = work->rule;

  if (self->moments) /* of rows without neighbours */
    self->moments[0] = self->moments[rule->height - 1] =
        (ImkLapsharpenMoments){0};
  imk_parallel_for (self->n_threads, rule->height - 2, band,
      self->loops->measure_noise, work);
  return self->moments ? imk_lapsharpen_float_threshold (rule, self->moments)
                       : (float) (rule->per_sigma *
                                  imk_lapsharpen_noise (rule, work->noise));
}

static void
sharpen (State *self, const ImkImage *in, ImkImage *out, uint32_t band)
{
  ImkLapsharpenRule rule = self->rule;
  Work work = {.rule = &rule,
      .products = &self->products,
      .ratio = &self->ratio,
      .in = in,
      .out = out,
      .pool = self->scratch.pool,
      .mask = self->mask,
      .moments = self->moments};
  /* A band makes what its first row needs anew. */
  const uint32_t smooth = SMOOTH_ROWS * (uint32_t) rule.smooth.step;

  if (rule.per_sigma > 0 && rule.noisy)
    rule.threshold = measure_threshold (self, &work, band);
  imk_parallel_for (self->n_threads, rule.height, band > smooth ? band : smooth,
      self->loops->sharpen_rows, &work);
  self->sums = work.sums;
  if (self->moments && rule.measured)
    self->sums.moments =
        imk_lapsharpen_add_moments (self->moments, rule.height);
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  State *self = state;
  const uint32_t band = 1 + (uint32_t) (BAND_SIZE / imk_image_row_size (in));
  Packing packing = {&self->stage, in, &self->unpacked, &self->sharpened, out};

  if (!self->staged) {
    sharpen (self, in, out, band);
    return IMK_OK;
  }
  imk_parallel_for (self->n_threads, in->height, band, unpack_rows, &packing);
  sharpen (self, &self->unpacked, &self->sharpened, band);
  imk_parallel_for (self->n_threads, in->height, band, pack_rows, &packing);
  return IMK_OK;
}

static ImkStatus
cpu_get_result (void *state, void *result, ImkError *error)
{
  State *self = state;

  *(ImkLapsharpenSums *) result = self->sums;
  return IMK_OK;
}

const ImkFilterBackend imk_lapsharpen_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .params_size = sizeof (ImkLapsharpenConfig),
    .n_inputs = 1,
    .n_outputs = 1,
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .get_result = cpu_get_result,
    .destroy = cpu_destroy,
};
