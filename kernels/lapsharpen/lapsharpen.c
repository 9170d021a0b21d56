/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/lapsharpen.h"

#include <math.h>
#include <stdlib.h>

#include "core/config.h"
#include "lapsharpen/lapsharpen-sample.h"

struct ImkLapsharpen {
  const ImkFilterBackend *backend;
  void *state; /* the backend's */
  ImkLapsharpenConfig config;
  bool on_device;
  bool measured; /* the last frame left sums behind */
};

void
imk_lapsharpen_config_init_sized (ImkLapsharpenConfig *config, size_t size)
{
  const ImkLapsharpenConfig defaults = {
      .size = size,
      .width = 1,
      .height = 1,
      .type = IMK_TYPE_U8,
      .channels = 1,
      .depth = 8,
      .channel_mask = 1,
      .alpha_channel = -1,
      .amount = 1,
      .neighbours = 4,
      .radius = 2,
      .halo_bright = UINT32_MAX,
      .halo_dark = UINT32_MAX,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

static ImkStatus
check_choice (const char *property, int value, int last, ImkError *error)
{
  if (value >= 0 && value <= last)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s has no choice of the number %d; there are 0..%d.", property, value,
      last);
}

/* Of what needs a largest sample, which floats do not have. */
static ImkStatus
check_floats (const ImkLapsharpenConfig *c, ImkError *error)
{
  if (c->alpha_channel >= 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The alpha channel is %d; f32 samples have none, as there is no value "
        "for opaque. Set -1.",
        c->alpha_channel);
  if (c->decode || c->encode || c->storage != IMK_LAPSHARPEN_STORAGE_NATIVE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are tables of light or a storage of the number %d; f32 samples "
        "are sharpened as they are. Leave both out.",
        (int) c->storage);
  for (uint32_t i = 0; i < c->channels; i++)
    if (c->range_high[i])
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Channel %u has the range %u to %u; f32 samples have no range. Set "
          "both to 0.",
          i, c->range_low[i], c->range_high[i]);
  return IMK_OK;
}

static ImkStatus
check_samples (const ImkLapsharpenConfig *c, ImkError *error)
{
  uint32_t bits = 8 * (uint32_t) imk_type_size (c->type);

  if (c->type == IMK_TYPE_F32)
    return check_floats (c, error);
  if (c->type != IMK_TYPE_U8 && c->type != IMK_TYPE_U16)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Samples of type %s cannot be sharpened; convert them to u8, u16 or f32.",
        imk_type_name (c->type));
  if (c->depth < 1 || c->depth > bits)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A depth of %u bits does not fit %s samples; it can be 1..%u.",
        c->depth, imk_type_name (c->type), bits);
  if (c->shift > bits - c->depth)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "depth %u and shift %u do not fit the %u bits of a sample; the shift "
        "can be 0..%u.",
        c->depth, c->shift, bits, bits - c->depth);
  if (c->storage == IMK_LAPSHARPEN_STORAGE_PACKED_10 &&
      (bits != 16 || c->channels != 4 || c->depth != 10 || c->shift))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Packed pixels have 4 channels of u16, depth 10 and shift 0; these have "
        "%u of %s, depth %u and shift %u.",
        c->channels, imk_type_name (c->type), c->depth, c->shift);
  return check_choice ("storage", (int) c->storage,
      bits == 8 ? IMK_LAPSHARPEN_STORAGE_NATIVE
                : IMK_LAPSHARPEN_STORAGE_PACKED_10,
      error);
}

static ImkStatus
check_format (const ImkLapsharpenConfig *c, ImkError *error)
{
  if (c->width < 1 || c->width > 65535 || c->height < 1 || c->height > 65535)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A frame of %u x %u pixels cannot be sharpened; width and height can "
        "be 1..65535 each.",
        c->width, c->height);
  if (c->channels < 1 || c->channels > 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Pixels of %u channels cannot be sharpened; there can be 1..4.",
        c->channels);
  if (c->channel_mask >> c->channels)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The channel mask 0x%x names channels that a pixel of %u channels "
        "does not have; it can be 0..0x%x.",
        c->channel_mask, c->channels, (1u << c->channels) - 1);
  if (c->alpha_channel < -1 || c->alpha_channel >= (int32_t) c->channels)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The alpha channel %d is none of the %u channels; it can be 0..%u, or "
        "-1 for no alpha.",
        c->alpha_channel, c->channels, c->channels - 1);
  if (c->alpha_channel >= 0 && c->channel_mask >> c->alpha_channel & 1)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Channel %d is the alpha channel and also a colour of the channel "
        "mask 0x%x; take it out of the mask.",
        c->alpha_channel, c->channel_mask);
  return check_samples (c, error);
}

static ImkStatus
check_kernel (const ImkLapsharpenConfig *c, ImkError *error)
{
  if (c->kernel_size == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "method=kernel has no kernel. Set kernel-location to an array file of "
        "3x3, 5x5 or 7x7 weights.");
  if (c->kernel_size != 3 && c->kernel_size != 5 && c->kernel_size != 7)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The kernel has %u rows and columns; it can have 3, 5 or 7.",
        c->kernel_size);
  for (uint32_t i = 0; i < c->kernel_size * c->kernel_size; i++)
    if (!(fabsf (c->kernel[i]) <= 65536)) /* NaN must fail too */
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Weight %u of row %u of the kernel is %g; it can be -65536 to 65536.",
          i % c->kernel_size, i / c->kernel_size, (double) c->kernel[i]);
  if (c->alpha == IMK_LAPSHARPEN_ALPHA_WEIGHTED && c->alpha_channel >= 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "alpha=weighted does not go with method=kernel; take alpha=copy or "
        "alpha=filter.");
  return IMK_OK;
}

static ImkStatus
check_parameters (const ImkLapsharpenConfig *c, ImkError *error)
{
  uint32_t maximum = imk_lapsharpen_maximum (c);

  if (!(c->amount >= 0 && c->amount <= 10)) /* NaN must fail too */
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "amount is %g; it can be 0 (no change) to 10.", c->amount);
  if (!(c->radius >= 0.3 && c->radius <= 20))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "radius is %g pixels; it can be 0.3 to 20.", c->radius);
  if (c->neighbours != 4 && c->neighbours != 8)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "neighbours is %u; a pixel has 4 (beside and above) or 8 (also "
        "diagonal).",
        c->neighbours);
  IMK_TRY (check_choice (
      "border", (int) c->border, IMK_LAPSHARPEN_BORDER_REFLECT, error));
  IMK_TRY (check_choice (
      "alpha", (int) c->alpha, IMK_LAPSHARPEN_ALPHA_WEIGHTED, error));
  IMK_TRY (check_choice (
      "clamp", (int) c->clamp, IMK_LAPSHARPEN_CLAMP_LOCAL, error));
  IMK_TRY (check_choice (
      "output", (int) c->output, IMK_LAPSHARPEN_OUTPUT_EDGES, error));
  IMK_TRY (check_choice (
      "method", (int) c->method, IMK_LAPSHARPEN_METHOD_LOG, error));
  IMK_TRY (check_choice ("threshold-unit", (int) c->threshold_unit,
      IMK_LAPSHARPEN_UNIT_SIGMA, error));
  IMK_TRY (check_choice (
      "coring", (int) c->coring, IMK_LAPSHARPEN_CORING_SOFT, error));
  if (c->method == IMK_LAPSHARPEN_METHOD_KERNEL)
    IMK_TRY (check_kernel (c, error));
  if (c->method == IMK_LAPSHARPEN_METHOD_CAS && c->type == IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "method=cas needs to know black and white, which float32 samples do "
        "not have. Take another method, or convert the frames to 16 bits.");
  if (c->border == IMK_LAPSHARPEN_BORDER_CONSTANT && c->border_value > maximum)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "border-value %u is beyond %u, the largest sample of %u bits. Take a "
        "smaller border-value.",
        c->border_value, maximum, c->depth);
  return IMK_OK;
}

/* Of what says where, and how far, samples may change. */
static ImkStatus
check_limits (const ImkLapsharpenConfig *c, ImkError *error)
{
  uint32_t maximum = imk_lapsharpen_maximum (c);

  if (!(c->threshold >= 0 && c->threshold <= 8 * 65535.0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "threshold is %g; it can be 0 to %d.", c->threshold, 8 * 65535);
  if (c->n_areas > IMK_LAPSHARPEN_MAX_AREAS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u areas to sharpen; there can be %d.", c->n_areas,
        IMK_LAPSHARPEN_MAX_AREAS);
  for (uint32_t i = 0; i < c->channels; i++)
    if (c->range_high[i] &&
        (c->range_low[i] > c->range_high[i] || c->range_high[i] > maximum))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Channel %u has the range %u to %u; samples of %u bits can have 0 to "
          "%u.",
          i, c->range_low[i], c->range_high[i], c->depth, maximum);
  return IMK_OK;
}

static ImkStatus
check_config (const ImkLapsharpenConfig *config, ImkError *error)
{
  IMK_TRY (check_format (config, error));
  IMK_TRY (check_parameters (config, error));
  return check_limits (config, error);
}

static ImkStatus
check_tables (const ImkLapsharpenConfig *c, ImkError *error)
{
  if (!c->decode != !c->encode)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is a table for one of decode and encode; linear light needs "
        "both.");
  for (uint32_t i = 0; c->encode && i <= 65535; i++)
    if (c->encode[i] >> c->depth)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The table encode gives %u for the value %u, which is beyond %u, the "
          "largest sample of %u bits.",
          c->encode[i], i, (1u << c->depth) - 1, c->depth);
  return IMK_OK;
}

static ImkStatus
check_same_format (const ImkLapsharpenConfig *old,
    const ImkLapsharpenConfig *now, ImkError *error)
{
  const struct {
    const char *name;
    int64_t old, now;
  } members[] = {
      {"width", old->width, now->width},
      {"height", old->height, now->height},
      {"type", old->type, now->type},
      {"channels", old->channels, now->channels},
      {"depth", old->depth, now->depth},
      {"shift", old->shift, now->shift},
      {"channel mask", old->channel_mask, now->channel_mask},
      {"alpha channel", old->alpha_channel, now->alpha_channel},
      {"storage", old->storage, now->storage},
      {"linear mask", old->linear_mask, now->linear_mask},
      {"n-threads", old->n_threads, now->n_threads},
  };

  for (size_t i = 0; i < sizeof (members) / sizeof (members[0]); i++)
    if (members[i].old != members[i].now)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The %s cannot change from %lld to %lld between two frames; make a "
          "new object.",
          members[i].name, (long long) members[i].old,
          (long long) members[i].now);
  return IMK_OK;
}

ImkStatus
imk_lapsharpen_new (ImkBackend backend, const ImkLapsharpenConfig *given,
    ImkLapsharpen **self, ImkError *error)
{
  ImkLapsharpenConfig own;
  const ImkLapsharpenConfig *config =
      IMK_CONFIG_READ (lapsharpen, given, &own, error);
  const void *table = NULL;
  ImkLapsharpen *made;
  ImkStatus status;

  if (!config)
    return IMK_ERROR_CONFIG;
  IMK_TRY (check_config (config, error));
  IMK_TRY (check_tables (config, error));
  IMK_TRY (imk_backend_table (
      backend, &imk_lapsharpen_cpu, "lapsharpen", &table, error));
  made = calloc (1, sizeof (*made));
  if (!made)
    return IMK_NO_MEMORY (error, "for a sharpener.");
  made->backend = table;
  made->config = *config;
  made->config.decode = made->config.encode = NULL; /* readable until now */
  made->config.mask = NULL;
  made->on_device = backend == IMK_BACKEND_CUDA;
  status = made->backend->create (
      config, config, config->n_threads, &made->state, error);
  if (status == IMK_OK)
    *self = made;
  else
    free (made);
  return status;
}

ImkStatus
imk_lapsharpen_update (
    ImkLapsharpen *self, const ImkLapsharpenConfig *given, ImkError *error)
{
  ImkLapsharpenConfig own;
  const ImkLapsharpenConfig *config =
      IMK_CONFIG_READ (lapsharpen, given, &own, error);

  if (!config)
    return IMK_ERROR_CONFIG;
  IMK_TRY (check_config (config, error));
  IMK_TRY (check_same_format (&self->config, config, error));
  IMK_TRY (self->backend->update (self->state, config, error));
  self->config = *config;
  return IMK_OK;
}

static ImkStatus
check_apart (const ImkImage *in, const ImkImage *out, ImkError *error)
{
  uintptr_t in_first = (uintptr_t) in->data;
  uintptr_t out_first = (uintptr_t) out->data;
  uintptr_t in_end =
      in_first + (in->height - 1) * in->stride + imk_image_row_size (in);
  uintptr_t out_end =
      out_first + (out->height - 1) * out->stride + imk_image_row_size (out);

  if (in_end <= out_first || out_end <= in_first)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "The output image overlaps the input image; sharpening needs the old "
      "neighbours. Take another buffer for the output.");
}

ImkStatus
imk_lapsharpen_process (ImkLapsharpen *self, const ImkImage *in, ImkImage *out,
    void *stream, ImkError *error)
{
  const ImkLapsharpenConfig *c = &self->config;
  const uint32_t channels =
      c->storage == IMK_LAPSHARPEN_STORAGE_PACKED_10 ? 2 : c->channels;
  ImkStatus status;

  IMK_TRY (imk_image_check (in, "input", c->type, channels, c->width, c->height,
      self->on_device, error));
  IMK_TRY (imk_image_check (out, "output", c->type, channels, c->width,
      c->height, self->on_device, error));
  IMK_TRY (check_apart (in, out, error));
  status = self->backend->process (self->state, in, out, stream, error);
  self->measured = status == IMK_OK && c->measure_focus;
  return status;
}

__extension__ typedef unsigned __int128 Uint128;

/* n sum L^2 - (sum L)^2 is exact, whatever the mean: at most 2^106. */
static double
variance (const ImkLapsharpenSums *sums, uint64_t n)
{
  Uint128 squares = ((Uint128) sums->square_high << 32) + sums->square_low;
  uint64_t sum = (uint64_t) (sums->sum < 0 ? -sums->sum : sums->sum);

  return (double) (squares * n - (Uint128) sum * sum) /
         (double) ((Uint128) n * n);
}

static ImkLapsharpenFocus
float_focus (const ImkLapsharpenMoments *m)
{
  const double n = (double) m->n, mean = m->n ? m->sum / n : 0;
  const double variance = m->n ? m->squares / n - mean * mean : 0;

  return (ImkLapsharpenFocus){m->n, mean, variance > 0 ? variance : 0};
}

ImkStatus
imk_lapsharpen_get_focus (
    ImkLapsharpen *self, ImkLapsharpenFocus *focus, ImkError *error)
{
  const ImkLapsharpenConfig *c = &self->config;
  uint64_t n = (uint64_t) c->width * c->height *
               (uint64_t) __builtin_popcount (c->channel_mask);
  ImkLapsharpenSums sums;

  if (!self->measured)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "No frame was measured. Switch measure-focus on and process a frame "
        "before asking for the focus.");
  IMK_TRY (self->backend->get_result (self->state, &sums, error));
  if (c->type == IMK_TYPE_F32) {
    *focus = float_focus (&sums.moments);
    return IMK_OK;
  }
  *focus = (ImkLapsharpenFocus){
      .n_samples = n,
      .mean = n ? (double) sums.sum / (double) n : 0,
      .variance = n ? variance (&sums, n) : 0,
  };
  return IMK_OK;
}

void
imk_lapsharpen_free (ImkLapsharpen *self)
{
  if (!self)
    return;
  self->backend->destroy (self->state);
  free (self);
}
