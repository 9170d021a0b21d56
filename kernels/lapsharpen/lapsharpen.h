/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/backend.h"
#include "imk/image.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  IMK_LAPSHARPEN_MAX_KERNEL = 7, /* rows and columns */
  IMK_LAPSHARPEN_MAX_AREAS = 32,
};

/* What is added to a sample, times the amount. */
typedef enum ImkLapsharpenMethod {
  IMK_LAPSHARPEN_METHOD_LAPLACIAN, /* L, the same everywhere */
  IMK_LAPSHARPEN_METHOD_CAS,       /* L times a gain of 0..1 that is small where
                                    * contrast is high or a limit is near */
  IMK_LAPSHARPEN_METHOD_KERNEL,  /* what a kernel of 3x3 to 7x7 weights makes of
                                  * the sample, less the sample */
  IMK_LAPSHARPEN_METHOD_UNSHARP, /* the sample less a Gaussian of the frame */
  IMK_LAPSHARPEN_METHOD_LOG, /* the negative Laplacian of a Gaussian of it */
} ImkLapsharpenMethod;

/* What a neighbour outside the image counts as, for a row a b c d. */
typedef enum ImkLapsharpenBorder {
  IMK_LAPSHARPEN_BORDER_REPLICATE,  /* aa|abcd|dd, no frame around flat areas */
  IMK_LAPSHARPEN_BORDER_ZERO,       /* 00|abcd|00, as the course text */
  IMK_LAPSHARPEN_BORDER_CONSTANT,   /* xx|abcd|xx, x = border_value */
  IMK_LAPSHARPEN_BORDER_REFLECT101, /* cb|abcd|cb, OpenCV's default */
  IMK_LAPSHARPEN_BORDER_REFLECT,    /* ba|abcd|dc */
} ImkLapsharpenBorder;

/* What happens to the alpha channel, and to colours beside transparency. */
typedef enum ImkLapsharpenAlpha {
  IMK_LAPSHARPEN_ALPHA_COPY,     /* alpha is copied */
  IMK_LAPSHARPEN_ALPHA_FILTER,   /* alpha is sharpened like a colour */
  IMK_LAPSHARPEN_ALPHA_WEIGHTED, /* alpha is copied, neighbours count by it */
} ImkLapsharpenAlpha;

typedef enum ImkLapsharpenClamp {
  IMK_LAPSHARPEN_CLAMP_FULL,  /* to 0 and the largest sample */
  IMK_LAPSHARPEN_CLAMP_LOCAL, /* and to the least and largest of the 3x3 window,
                               * border samples included: no halo; edges are
                               * clamped in full */
} ImkLapsharpenClamp;

/* What ImkLapsharpenConfig.threshold counts. */
typedef enum ImkLapsharpenUnit {
  IMK_LAPSHARPEN_UNIT_COUNTS,
  IMK_LAPSHARPEN_UNIT_SIGMA, /* the noise of L, measured in each frame */
} ImkLapsharpenUnit;

/* What is added where |L| is not below the threshold. */
typedef enum ImkLapsharpenCoring {
  IMK_LAPSHARPEN_CORING_HARD, /* all of L */
  IMK_LAPSHARPEN_CORING_SOFT, /* what is beyond the threshold */
} ImkLapsharpenCoring;

typedef enum ImkLapsharpenOutput {
  IMK_LAPSHARPEN_OUTPUT_SHARPENED,
  IMK_LAPSHARPEN_OUTPUT_EDGES, /* |s L|, what sharpening would add */
} ImkLapsharpenOutput;

/* How the samples of an image are stored. */
typedef enum ImkLapsharpenStorage {
  IMK_LAPSHARPEN_STORAGE_NATIVE,     /* in the order of bytes of the machine */
  IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN, /* u16 with the high byte first */
  IMK_LAPSHARPEN_STORAGE_PACKED_10,  /* 32 bits a pixel: from the low bits on,
                                      * three samples of 10 bits, one of 2 */
} ImkLapsharpenStorage;

/* A rectangle of pixels; what is outside the frame does not count. */
typedef struct ImkLapsharpenArea {
  uint32_t x, y, width, height;
} ImkLapsharpenArea;

/**
 * ImkLapsharpenConfig: (how to sharpen)
 * @size: set by imk_lapsharpen_config_init, see imk/api.h
 * @width, @height: pixels, 1..65535 each
 * @type: IMK_TYPE_U8, IMK_TYPE_U16 or IMK_TYPE_F32. f32 ignores @depth and
 *   @shift; it has no alpha channel, range, tables, other storage or
 *   METHOD_CAS. Counts are units of the data
 * @channels: interleaved samples a pixel, 1..4
 * @depth: significant bits of a sample, 1..8 for u8, 1..16 for u16; a larger
 *   sample comes out as the largest
 * @shift: unused low bits of a sample (6 for P010), depth + shift at most
 *   the bits of @type; the low bits of the output are 0
 * @channel_mask: bit c set: channel c is a colour to sharpen, else copied
 * @alpha_channel: the channel that @alpha speaks of, or -1; not in the mask
 * @n_threads: CPU threads, 0 for one a processor
 * @amount: s, 0..10
 * @neighbours: 4 or 8
 * @border_value: counts of @depth bits, for BORDER_CONSTANT, every channel
 * @threshold: where |L| is below it the pixel is left as it is, and no edge for
 *   OUTPUT_EDGES; in @threshold_unit
 * @kernel_size: rows and columns of @kernel, 3, 5 or 7, for METHOD_KERNEL
 * @kernel: weights w_i, row by row, from the top left neighbour on; finite
 * @radius: standard deviation of the Gaussian, pixels, 0.3..20, for
 *   METHOD_UNSHARP and METHOD_LOG
 * @measure_focus: also sum up L and its square, see imk_lapsharpen_get_focus
 * @range_low, @range_high: counts of each channel; a sharpened sample stays
 *   within them, and one that was outside goes no further out. A high of 0: no
 *   limit but those of @depth. Not for OUTPUT_EDGES
 * @decode, @encode: (nullable): sharpen in linear light. @decode has a value of
 *   0..65535 for each of the 2^depth counts, @encode a count for each of the
 *   65536 values. Read by imk_lapsharpen_new alone
 * @storage: STORAGE_PACKED_10 is of u16, 4 channels and 10 bits; the fourth
 *   channel counts 0, 341, 682 or 1023, and its images have 2 channels of u16
 * @linear_mask: bit c set: the tables are for channel c; the counts of others
 *   are multiplied by 65535 / the largest
 * @n_areas, @areas: the pixels to sharpen, the others are copied; 0: all
 * @mask: (nullable): height x width weights without padding: 0 copies the
 *   pixel, 255 sharpens it, a weight between mixes the two. Read by
 *   imk_lapsharpen_new alone
 * @threshold_unit, @coring: of @threshold
 * @halo_bright, @halo_dark: counts by which a sharpened sample may leave the
 *   largest and the least of its 3x3 window; CLAMP_LOCAL is 0 for both, from
 *   the largest sample on there is no limit
 *
 * The members from @amount on may change between two frames, but for the tables
 * and the mask; the others are the format and need a new object. */
typedef struct ImkLapsharpenConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  uint32_t channels;
  uint32_t depth, shift;
  uint32_t channel_mask;
  int32_t alpha_channel;
  uint32_t n_threads;

  double amount;
  uint32_t neighbours;
  ImkLapsharpenBorder border;
  uint32_t border_value;
  ImkLapsharpenAlpha alpha;
  double threshold;
  ImkLapsharpenClamp clamp;
  ImkLapsharpenOutput output;
  bool measure_focus;
  ImkLapsharpenMethod method;
  uint32_t kernel_size;
  float kernel[IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL];
  double radius;
  uint32_t range_low[4], range_high[4];
  ImkLapsharpenStorage storage;
  const uint16_t *decode, *encode;
  uint32_t linear_mask;
  uint32_t n_areas;
  ImkLapsharpenArea areas[IMK_LAPSHARPEN_MAX_AREAS];
  const uint8_t *mask;
  ImkLapsharpenUnit threshold_unit;
  ImkLapsharpenCoring coring;
  uint32_t halo_bright, halo_dark;
} ImkLapsharpenConfig;

/**
 * ImkLapsharpenFocus: (how sharp a frame was)
 * @n_samples: samples of the channels in channel_mask
 * @mean, @variance: of the Laplacian L over them, never weighted by alpha, in
 *   counts and counts squared; the variance grows as the picture comes into
 *   focus
 *
 * Computed from exact integer sums: the backends agree bit for bit. Of f32 the
 * sums are float64 in a fixed order, over the L that are finite: n_samples
 * counts these. */
typedef struct ImkLapsharpenFocus {
  uint64_t n_samples;
  double mean;
  double variance;
} ImkLapsharpenFocus;

typedef struct ImkLapsharpen ImkLapsharpen;

/**
 * imk_lapsharpen_config_init: (the defaults)
 * 1x1 u8 of one channel, depth 8, mask 1, no alpha; amount 1, 4 neighbours,
 * replicate, copy, threshold 0, full clamp, sharpened, no focus measure,
 * Laplacian, radius 2, no range, stored light, the whole frame, a hard
 * threshold in counts, no limit of halos. */
IMK_API void imk_lapsharpen_config_init_sized (
    ImkLapsharpenConfig *config, size_t size);
static inline void
imk_lapsharpen_config_init (ImkLapsharpenConfig *config)
{
  imk_lapsharpen_config_init_sized (config, sizeof (*config));
}

/**
 * imk_lapsharpen_new: (an object for frames of one format)
 * @self: (out): free with imk_lapsharpen_free
 *
 * On IMK_BACKEND_CUDA the object belongs to the context that is current.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE,
 *   IMK_ERROR_DEVICE; @self untouched */
IMK_API ImkStatus imk_lapsharpen_new (ImkBackend backend,
    const ImkLapsharpenConfig *config, ImkLapsharpen **self, ImkError *error);

/**
 * imk_lapsharpen_update: (parameters for the frames from now on)
 * Returns: IMK_ERROR_CONFIG, also when the format differs; the old parameters
 *   stay in force */
IMK_API ImkStatus imk_lapsharpen_update (
    ImkLapsharpen *self, const ImkLapsharpenConfig *config, ImkError *error);

/**
 * imk_lapsharpen_process: (sharpens one plane)
 * @in, @out: width x height of the configured type and channels, any stride
 *   that is a multiple of the sample; they must not overlap
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU is
 *   done
 *
 * With v the sample without its @shift low bits, v_i its k = 4 or 8 neighbours
 * of the same channel and s the amount:
 *   L = k v - sum v_i                   (exact integer)
 *   out = clamp (floor (v + s L + 0.5))
 * the negative Laplacian of Bulic and Sluga's course text; border = zero and
 * alpha = filter with s = 1 are its kernel to the byte.
 * ALPHA_WEIGHTED: L = sum a_i (v - v_i) / a_max, with a_i the alpha of
 * neighbour i, outside pixels by the border rule; equals L when all is opaque.
 * METHOD_CAS: L is multiplied by g = a / (5 - 4 a), a = sqrt (clamp (
 *   min (m, 2 max - M) / M, 0, 1)), max the largest sample, m the sum of the
 *   least sample of the pixel with its 4 neighbours and the least of the 3x3
 *   window, M likewise of the largest; M = 0 gives g = 0. Each step is rounded
 *   to float32. With 4 neighbours and s = 1 this is AMD's contrast adaptive
 *   sharpening (FidelityFX CAS 1.0) at its sharpness 1, one channel at a time:
 *   (v + w sum v_i) / (1 + 4 w), w = -a / 5, is v + g L.
 * METHOD_KERNEL: t = sum w'_i v_i in float32, row by row, each product and sum
 *   rounded; w' = s w + (1 - s) d, rounded to float32, where d is 1 for the
 *   pixel itself. out = clamp (t rounded to an integer, halves to even), as
 *   OpenCV's filter2D with s = 1. s L is t - v: it is compared with s times the
 *   threshold, and is |t - v| rounded for OUTPUT_EDGES. Not ALPHA_WEIGHTED.
 * METHOD_UNSHARP: L = v - G, G being the frame smoothed by a Gaussian of the
 * standard deviation radius. METHOD_LOG: L = -radius^2 (G_xx + G_yy). Both are
 * made in six steps of float32; the step d is 1 for radii below 2.5, 2 below 5,
 * else floor (3 radius / 5), and B the quadratic B-spline:
 *   B(u) = 3/4 - u^2 for |u| <= 1/2, else (3/2 - |u|)^2 / 2 for |u| < 3/2
 *   1, 2. shrink along columns, then rows: sum_j B (j / d) / d v_(k d + j)
 *   3, 4. blur along columns, then rows: sum_j g_j low_(k + j)
 *   5, 6. grow along rows, then columns: sum_k B ((x - k d) / d) low_k
 * Steps 1 to 4 begin with j = 0 and add w_j (v_-j + v_j) for j = 1, 2, ...; 5
 * and 6 add in the order of k. d = 1 leaves out shrink and grow.
 * g is a sampled Gaussian of the sum 1, cut off at 4 standard deviations, of
 * the variance radius^2 / d^2 - 1/2, or radius^2 with d = 1. METHOD_LOG takes
 * c (j^2 - m) g_j instead of g in each direction in turn and adds the two; m is
 * the variance of g, and the sum of j^2 times it is 2 radius^2 / d^2.
 * ALPHA_WEIGHTED: L = v (o - T) - S, where T and S are 1 - a / a_max and
 * v a / a_max so smoothed, and o is 1 for METHOD_UNSHARP, 0 for METHOD_LOG.
 *
 * OUTPUT_EDGES: out = clamp (floor (|s L| + 0.5)), alpha copied.
 * CORING_SOFT: L is sign (L) (|L| - threshold) where |L| is not below the
 * threshold; of METHOD_KERNEL t is s times the threshold nearer to v.
 * UNIT_SIGMA: the threshold is that many times sigma times g. sigma is
 * the noise of the frame after Immerkaer (1996): sqrt (pi / 2) / 6 times the
 * mean of |N| over the samples of channel_mask that have 8 neighbours, N =
 * 4 v - 2 (those sharing a side) + (those sharing a corner); a frame of less
 * than 3x3 has none. g is how much larger L makes white noise: sqrt (k^2 + k),
 * of METHOD_KERNEL the root of the sum of (w - d)^2, of METHOD_UNSHARP
 * sqrt (1 - 3 / (4 pi r^2)), r the radius but at least 0.7, of METHOD_LOG
 * 1 / (radius sqrt (2 pi)). A frame on the GPU waits for its noise.
 * With decode the formulas are for 16-bit values in linear light, to which the
 * threshold and the halos are scaled by 65535 / the largest count; border_value
 * is decoded. Where sharpening changes no value, the count stays, too. Of
 * OUTPUT_EDGES, and of channels without a table, a value l gives
 * floor (l max / 65535 + 0.5).
 * With a mask out = v + w (out - v) / 255 for a weight w, rounded to the
 * nearest. How a fraction is rounded, the same on both backends and all
 * processors: the weighted L is divided in float64, s and L are rounded to
 * float32, s L is rounded to float32, then v + 0.5 is added and the sum rounded
 * to float32, then floor. So every amount gives equal bytes on the CPU and the
 * GPU, and whole amounts are exact.
 * IMK_TYPE_F32: out = v + s L, all in float32, each step rounded, on both
 * backends the same bits; neither rounded to whole numbers nor clamped, but for
 * CLAMP_LOCAL and the halos. The sum of the 4 neighbours is (above + below) +
 * (left + right), to which that of the corners is added likewise. |s L| is
 * compared with s times the threshold. out is NaN where L is not finite; NaN in
 * a window are no limit. The sigma is a mean over the N that are finite. With a
 * mask out = v + (out - v) w / 255; what is copied keeps its bits.
 * Returns: IMK_ERROR_IMAGE, @out untouched; IMK_ERROR_DEVICE, @out undefined */
IMK_API ImkStatus imk_lapsharpen_process (ImkLapsharpen *self,
    const ImkImage *in, ImkImage *out, void *stream, ImkError *error);

/**
 * imk_lapsharpen_get_focus: (of the frame last processed)
 * Waits for the GPU to finish that frame.
 * Returns: IMK_ERROR_CONFIG when measure_focus was off or no frame was
 *   processed; IMK_ERROR_DEVICE */
IMK_API ImkStatus imk_lapsharpen_get_focus (
    ImkLapsharpen *self, ImkLapsharpenFocus *focus, ImkError *error);

/* @self may be NULL. Waits for the GPU. */
IMK_API void imk_lapsharpen_free (ImkLapsharpen *self);

#ifdef __cplusplus
}
#endif
