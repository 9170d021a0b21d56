/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/lapsharpen-reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/sample.h"

static int64_t
border_index (int64_t i, int64_t n, ImkLapsharpenBorder border)
{
  if (border == IMK_LAPSHARPEN_BORDER_REFLECT101)
    while (n > 1 && (i < 0 || i >= n))
      i = i < 0 ? -i : 2 * n - 2 - i;
  if (border == IMK_LAPSHARPEN_BORDER_REFLECT)
    while (i < 0 || i >= n)
      i = i < 0 ? -i - 1 : 2 * n - 1 - i;
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}

int64_t
imk_lapsharpen_reference_value (const ImkLapsharpenConfig *k,
    const ImkImage *in, int64_t x, int64_t y, uint32_t channel)
{
  bool outside = x < 0 || y < 0 || x >= k->width || y >= k->height;

  if (outside && k->border == IMK_LAPSHARPEN_BORDER_ZERO)
    return 0;
  if (outside && k->border == IMK_LAPSHARPEN_BORDER_CONSTANT)
    return k->border_value;
  x = border_index (x, k->width, k->border);
  y = border_index (y, k->height, k->border);
  return (int64_t) imk_sample_get (in, (uint32_t) x, (uint32_t) y, channel) >>
         k->shift;
}

typedef struct Window {
  int64_t v, low, high;
  int64_t cross_low, cross_high; /* of the pixel and its 4 neighbours */
  int64_t laplacian;
  int64_t numerator; /* of the weighted Laplacian */
} Window;

static Window
get_window (const ImkLapsharpenConfig *k, const ImkImage *in, uint32_t x,
    uint32_t y, uint32_t channel)
{
  Window w = {.v = imk_lapsharpen_reference_value (k, in, x, y, channel)};

  w.low = w.high = w.cross_low = w.cross_high = w.v;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      int64_t n = imk_lapsharpen_reference_value (
          k, in, (int64_t) x + dx, (int64_t) y + dy, channel);

      w.low = n < w.low ? n : w.low;
      w.high = n > w.high ? n : w.high;
      if (!dx || !dy) {
        w.cross_low = n < w.cross_low ? n : w.cross_low;
        w.cross_high = n > w.cross_high ? n : w.cross_high;
      }
      if (k->neighbours == 4 && dx && dy)
        continue;
      w.laplacian += w.v - n;
      if (k->alpha_channel >= 0)
        w.numerator += imk_lapsharpen_reference_value (k, in, (int64_t) x + dx,
                           (int64_t) y + dy, (uint32_t) k->alpha_channel) *
                       (w.v - n);
    }
  return w;
}

static int64_t
clamp (int64_t value, int64_t low, int64_t high)
{
  return value < low ? low : value > high ? high : value;
}

/* Contrast adaptive sharpening: with little contrast 1, with much 0. */
static float
get_gain (const Window *w, int64_t maximum)
{
  int64_t least = w->cross_low + w->low, most = w->cross_high + w->high;
  int64_t room = 2 * maximum - most;
  volatile float ratio, a, rest;

  if (most == 0 || room <= 0)
    return 0;
  ratio = (float) (least < room ? least : room) / (float) most;
  a = sqrtf (ratio);
  rest = 4 * a;
  rest = 5 - rest;
  return a / rest;
}

/* As far as a sample may go. */
static int64_t
limit (const ImkLapsharpenConfig *k, const Window *w, int64_t out,
    uint32_t channel)
{
  int64_t maximum = (1 << k->depth) - 1;
  bool local = k->clamp == IMK_LAPSHARPEN_CLAMP_LOCAL;
  int64_t dark = local ? 0 : k->halo_dark, bright = local ? 0 : k->halo_bright;

  if (k->output == IMK_LAPSHARPEN_OUTPUT_EDGES)
    return clamp (out, 0, maximum);
  out = clamp (out, w->low - dark, w->high + bright);
  out = clamp (out, 0, maximum);
  if (!k->range_high[channel])
    return out;
  return clamp (out,
      w->v < k->range_low[channel] ? w->v : k->range_low[channel],
      w->v > k->range_high[channel] ? w->v : k->range_high[channel]);
}

/* Whole amounts in integers, others in float32 with every step rounded.
 * @detail: instead of L, or NULL */
static int64_t
sharpen (const ImkLapsharpenConfig *k, const Window *w, const float *detail)
{
  int64_t maximum = (1 << k->depth) - 1;
  bool edges = k->output == IMK_LAPSHARPEN_OUTPUT_EDGES;
  bool weighted =
      k->alpha == IMK_LAPSHARPEN_ALPHA_WEIGHTED && k->alpha_channel >= 0;
  volatile float l = weighted ? (float) ((double) w->numerator / maximum)
                              : (float) w->laplacian;
  volatile float change, sum;
  int64_t out;
  bool soft = k->coring == IMK_LAPSHARPEN_CORING_SOFT, below;

  if (detail)
    l = *detail;
  if (k->method == IMK_LAPSHARPEN_METHOD_CAS)
    l = l * get_gain (w, maximum);
  below = fabsf (l) < (float) k->threshold;
  change = fabsf (l) - (float) k->threshold;
  if (soft && k->threshold > 0)
    l = l < 0 ? -change : change;
  change = (float) k->amount * l;
  sum = edges ? fabsf (change) + 0.5f : change + ((float) w->v + 0.5f);
  out = (int64_t) floorf (sum);
  if (!weighted && !soft && k->method == IMK_LAPSHARPEN_METHOD_LAPLACIAN &&
      k->amount == floor (k->amount)) {
    int64_t added = (int64_t) k->amount * w->laplacian;

    out = edges ? llabs (added) : w->v + added;
  }
  if (below)
    out = edges ? 0 : w->v;
  return out;
}

/* With a kernel of any weights. */
static int64_t
correlate (const ImkLapsharpenConfig *k, const ImkImage *in, uint32_t x,
    uint32_t y, uint32_t channel, const Window *w)
{
  bool edges = k->output == IMK_LAPSHARPEN_OUTPUT_EDGES;
  int reach = (int) k->kernel_size / 2;
  const float *weight = k->kernel;
  volatile float sum = 0, change, least_change;

  for (int dy = -reach; dy <= reach; dy++)
    for (int dx = -reach; dx <= reach; dx++) {
      double own = dx || dy ? 0 : 1 - k->amount;
      volatile float mixed = (float) (k->amount * (double) *weight++ + own);
      volatile float product =
          mixed * (float) imk_lapsharpen_reference_value (
                      k, in, (int64_t) x + dx, (int64_t) y + dy, channel);

      sum += product;
    }
  change = sum - (float) w->v;
  least_change = (float) k->threshold * (float) k->amount;
  if (fabsf (change) < least_change)
    return edges ? 0 : w->v;
  if (edges)
    sum = fabsf (change);
  if (k->coring == IMK_LAPSHARPEN_CORING_SOFT)
    sum += edges || change >= 0 ? -least_change : least_change;
  return llrintf (sum);
}

static bool
is_filtered (const ImkLapsharpenConfig *k, uint32_t channel)
{
  if ((int32_t) channel == k->alpha_channel)
    return k->alpha == IMK_LAPSHARPEN_ALPHA_FILTER &&
           k->output == IMK_LAPSHARPEN_OUTPUT_SHARPENED;
  return k->channel_mask >> channel & 1;
}

/* The planes of all channels that method=unsharp and method=log need. */
typedef struct Smooth {
  float *planes[4];
} Smooth;

static Smooth
get_smooth (const ImkLapsharpenConfig *k, const ImkImage *in)
{
  Smooth smooth = {0};

  for (uint32_t ch = 0; ch < k->channels; ch++)
    if (k->method == IMK_LAPSHARPEN_METHOD_UNSHARP ||
        k->method == IMK_LAPSHARPEN_METHOD_LOG)
      smooth.planes[ch] = imk_lapsharpen_reference_smooth (k, in, ch);
  return smooth;
}

static float
get_detail (const ImkLapsharpenConfig *k, const Smooth *smooth, int64_t v,
    size_t pixel, uint32_t channel)
{
  bool weighted =
      k->alpha == IMK_LAPSHARPEN_ALPHA_WEIGHTED && k->alpha_channel >= 0;
  float own = k->method == IMK_LAPSHARPEN_METHOD_LOG ? 0 : 1;
  volatile float rest =
      own - (weighted ? smooth->planes[k->alpha_channel][pixel] : 0);
  volatile float product = (float) v * rest;

  return product - smooth->planes[channel][pixel];
}

/* The noise of the frame, as the header defines it. */
static double
get_noise (const ImkLapsharpenConfig *k, const ImkImage *in)
{
  static const int mask[3][3] = {{1, -2, 1}, {-2, 4, -2}, {1, -2, 1}};
  double sum = 0, n = 0;

  for (uint32_t y = 1; y + 1 < k->height; y++)
    for (uint32_t x = 1; x + 1 < k->width; x++)
      for (uint32_t ch = 0; ch < k->channels; ch++) {
        int64_t total = 0;

        if (!(k->channel_mask >> ch & 1))
          continue;
        for (int i = 0; i < 9; i++)
          total += mask[i / 3][i % 3] * imk_lapsharpen_reference_value (k, in,
                                            x + i % 3 - 1, y + i / 3 - 1, ch);
        sum += (double) llabs (total);
        n++;
      }
  return n > 0 ? 0.20888568955258338 * sum / n : 0; /* sqrt (pi / 2) / 6 */
}

/* How much larger L makes white noise: the root of the sum of its squared
 * weights, of smoothing as an integral over Gaussians. */
static double
get_noise_gain (const ImkLapsharpenConfig *k)
{
  const double pi = 3.14159265358979323846;
  const double n = k->neighbours, radius = fmax (k->radius, 0.7);
  const uint32_t n_weights = k->kernel_size * k->kernel_size;
  double sum = 0;

  if (k->method == IMK_LAPSHARPEN_METHOD_UNSHARP)
    return sqrt (1 - 3 / (4 * pi * radius * radius));
  if (k->method == IMK_LAPSHARPEN_METHOD_LOG)
    return 1 / (k->radius * sqrt (2 * pi));
  if (k->method != IMK_LAPSHARPEN_METHOD_KERNEL)
    return sqrt (n * n + n);
  for (uint32_t i = 0; i < n_weights; i++) {
    double own = i == n_weights / 2; /* L is without the sample itself */
    double weight = (double) k->kernel[i] - own;

    sum += weight * weight;
  }
  return sqrt (sum);
}

/* One sample as it is to be stored. */
static double
get_mixed (const ImkLapsharpenConfig *k, const ImkImage *in, uint32_t x,
    uint32_t y, uint32_t channel, int64_t value)
{
  double old = imk_sample_get (in, x, y, channel);
  int64_t v = (int64_t) old >> k->shift;
  uint32_t weight = k->mask ? k->mask[y * k->width + x] : 255;
  bool inside = k->n_areas == 0;

  for (uint32_t i = 0; i < k->n_areas; i++)
    inside = inside || (x >= k->areas[i].x && y >= k->areas[i].y &&
                           x < (uint64_t) k->areas[i].x + k->areas[i].width &&
                           y < (uint64_t) k->areas[i].y + k->areas[i].height);
  if (!inside || weight == 0)
    return old;
  return (double) ((v + llround ((double) (weight * (value - v)) / 255))
                   << k->shift);
}

static void
sharpen_frame (
    const ImkLapsharpenConfig *config, const ImkImage *in, ImkImage *out)
{
  ImkLapsharpenConfig own = *config;
  const ImkLapsharpenConfig *k = &own;
  Smooth smooth = get_smooth (k, in);

  if (k->threshold_unit == IMK_LAPSHARPEN_UNIT_SIGMA)
    own.threshold =
        (float) (config->threshold * get_noise_gain (k) * get_noise (k, in));
  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++)
      for (uint32_t ch = 0; ch < k->channels; ch++) {
        Window w = get_window (k, in, x, y, ch);
        int64_t value = w.v;

        if (is_filtered (k, ch) && k->method == IMK_LAPSHARPEN_METHOD_KERNEL)
          value = correlate (k, in, x, y, ch, &w);
        else if (is_filtered (k, ch) && smooth.planes[ch]) {
          float detail =
              get_detail (k, &smooth, w.v, (size_t) y * k->width + x, ch);

          value = sharpen (k, &w, &detail);
        } else if (is_filtered (k, ch))
          value = sharpen (k, &w, NULL);
        if (is_filtered (k, ch))
          value = limit (k, &w, value, ch);
        imk_sample_put (out, x, y, ch, get_mixed (k, in, x, y, ch, value));
      }
  for (uint32_t ch = 0; ch < k->channels; ch++)
    free (smooth.planes[ch]);
}

static ImkImage
new_image (const ImkLapsharpenConfig *k)
{
  ImkImage image = {.stride = sizeof (uint16_t) * k->channels * k->width,
      .width = k->width,
      .height = k->height,
      .channels = k->channels,
      .type = IMK_TYPE_U16};

  image.data = malloc (image.stride * image.height);
  return image;
}

static bool
is_unpacked (const ImkLapsharpenConfig *k)
{
  return !k->decode && k->storage == IMK_LAPSHARPEN_STORAGE_NATIVE;
}

static ImkImage
unpack (const ImkLapsharpenConfig *k, const ImkImage *in)
{
  ImkImage unpacked = new_image (k);

  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++)
      for (uint32_t ch = 0; ch < k->channels; ch++)
        imk_sample_put (&unpacked, x, y, ch,
            imk_lapsharpen_reference_unpacked (k, in, x, y, ch));
  return unpacked;
}

void
imk_lapsharpen_reference (
    const ImkLapsharpenConfig *k, const ImkImage *in, ImkImage *out)
{
  ImkLapsharpenConfig own;
  ImkImage unpacked, sharpened;

  if (is_unpacked (k)) {
    sharpen_frame (k, in, out);
    return;
  }
  own = imk_lapsharpen_reference_unpacked_config (k);
  unpacked = unpack (k, in);
  sharpened = new_image (k);
  sharpen_frame (&own, &unpacked, &sharpened);
  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++)
      imk_lapsharpen_reference_pack (k, in, &sharpened, x, y, out);
  free (unpacked.data);
  free (sharpened.data);
}

ImkLapsharpenFocus
imk_lapsharpen_reference_focus (
    const ImkLapsharpenConfig *k, const ImkImage *in)
{
  ImkLapsharpenFocus focus = {0};
  __extension__ __int128 squares = 0, sum = 0, n;

  if (!is_unpacked (k)) {
    ImkLapsharpenConfig own = imk_lapsharpen_reference_unpacked_config (k);
    ImkImage unpacked = unpack (k, in);

    focus = imk_lapsharpen_reference_focus (&own, &unpacked);
    free (unpacked.data);
    return focus;
  }
  for (uint32_t y = 0; y < k->height; y++)
    for (uint32_t x = 0; x < k->width; x++)
      for (uint32_t ch = 0; ch < k->channels; ch++)
        if (k->channel_mask >> ch & 1) {
          int64_t l = get_window (k, in, x, y, ch).laplacian;

          focus.n_samples++;
          sum += l;
          squares += l * l;
        }
  n = focus.n_samples;
  focus.mean = n ? (double) sum / (double) n : 0;
  focus.variance =
      n ? (double) (n * squares - sum * sum) / (double) (n * n) : 0;
  return focus;
}
