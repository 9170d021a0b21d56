/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Dark frame, white frame, mask and gamma, as the backends want them. */
#include "photostereo/photostereo-plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sample.h"
#include "photostereo/photostereo-pixel.h"

/* Of the pixels, in which a white frame may lack a measurement. */
#define MAX_UNMEASURED 0.5

void
imk_photostereo_frames_clear (ImkPhotostereoFrames *f)
{
  free (f->table);
  free (f->dark);
  free (f->white);
  free (f->mask);
}

static float
decode (const ImkPhotostereoPlan *p, uint32_t sample)
{
  return p->table ? p->table[sample] : (float) sample * p->unit;
}

/* Returns: NaN where the sample measures nothing, black or clipped */
static float
decode_white (const ImkPhotostereoPlan *p, uint32_t sample)
{
  return sample > 0 && sample < p->saturation ? decode (p, sample) : NAN;
}

typedef float (*Decode) (const ImkPhotostereoPlan *p, uint32_t sample);

/* @to: [height][width] */
static void
decode_plane (const ImkPhotostereoPlan *p, const ImkImage *image,
    uint32_t plane, Decode value_of, float *to)
{
  uint32_t channel = p->interpolate ? 0 : p->colours[plane];
  uint32_t top = image->height > p->height ? plane * p->height : 0; /* bands */

  for (uint32_t y = 0; y < p->height; y++)
    for (uint32_t x = 0; x < p->width; x++)
      *to++ = value_of (p, imk_sample_get_uint (image, x, top + y, channel));
}

/* As the pictures are interpolated. */
static void
interpolate (const ImkPhotostereoPlan *p, const float *mosaic, float *to)
{
  for (uint32_t plane = 0; plane < p->n_planes; plane++)
    for (uint32_t y = 0; y < p->height; y++)
      for (uint32_t x = 0; x < p->width; x++)
        *to++ = imk_photostereo_colour_at (
            mosaic, p->width, p->height, p->site, x, y, plane, false);
}

static float *
decode_frame (
    const ImkPhotostereoPlan *p, const ImkImage *image, Decode value_of)
{
  size_t n = (size_t) p->width * p->height;
  float *values = malloc (n * p->n_planes * sizeof (*values));
  float *mosaic = p->interpolate ? malloc (n * sizeof (*mosaic)) : NULL;

  if (!values || (p->interpolate && !mosaic)) {
    free (values);
    free (mosaic);
    return NULL;
  }
  if (p->interpolate) {
    decode_plane (p, image, 0, value_of, mosaic);
    interpolate (p, mosaic, values);
  } else {
    for (uint32_t k = 0; k < p->n_planes; k++)
      decode_plane (p, image, k, value_of, values + k * n);
  }
  free (mosaic);
  return values;
}

/* Returns: the colour of value @i of a frame in planes */
static uint32_t
colour_at (const ImkPhotostereoPlan *p, size_t i)
{
  size_t n = (size_t) p->width * p->height;
  uint32_t x = (uint32_t) (i % n % p->width);
  uint32_t y = (uint32_t) (i % n / p->width);

  return p->mosaic ? p->site[2 * (y & 1) + (x & 1)] : (uint32_t) (i / n);
}

/* @white becomes the mean over it, for each colour; 0 where it measured
 * nothing. */
static void
invert_white (const ImkPhotostereoPlan *p, float *white, const float *dark)
{
  size_t n = (size_t) p->width * p->height * p->n_planes;
  double sum[IMK_PHOTOSTEREO_MAX_PLANES] = {0};
  uint64_t count[IMK_PHOTOSTEREO_MAX_PLANES] = {0};

  for (size_t i = 0; i < n; i++) {
    uint32_t colour = colour_at (p, i);

    white[i] = fmaxf (white[i] - (dark ? dark[i] : 0), 0); /* 0 for NaN, too */
    sum[colour] += white[i];
    count[colour] += white[i] > 0;
  }
  for (size_t i = 0; i < n; i++) {
    uint32_t colour = colour_at (p, i);

    if (white[i] > 0)
      white[i] = (float) (sum[colour] / (double) count[colour] / white[i]);
  }
}

/* A pixel that the white frame does not measure is none of the mask.
 * Returns: which part of the mask these are */
static double
mask_unmeasured (const ImkPhotostereoPlan *p, const float *white, uint8_t *mask)
{
  size_t n = (size_t) p->width * p->height;
  uint64_t n_pixels = 0, n_unmeasured = 0;

  for (size_t i = 0; i < n; i++)
    n_pixels += mask[i] != 0;
  for (size_t i = 0; i < n * p->n_planes; i++)
    if (!(white[i] > 0) && mask[i % n]) {
      mask[i % n] = 0;
      n_unmeasured++;
    }
  return n_pixels ? (double) n_unmeasured / (double) n_pixels : 0;
}

static float *
make_table (const ImkPhotostereoConfig *c)
{
  uint32_t n = c->type == IMK_TYPE_U8 ? 256 : 65536;
  float *table = malloc (n * sizeof (*table));

  for (uint32_t i = 0; table && i < n; i++) {
    double v = (double) i / imk_photostereo_maximum_of (c);

    if (c->curve != IMK_PHOTOSTEREO_CURVE_SRGB)
      v = pow (v, c->gamma);
    else
      v = v <= 0.04045 ? v / 12.92 : pow ((v + 0.055) / 1.055, 2.4);
    table[i] = (float) v;
  }
  return table;
}

/* Returns: all pixels without a @mask */
static uint8_t *
pack_mask (const ImkPhotostereoPlan *p, const ImkImage *mask)
{
  size_t n = (size_t) p->width * p->height;
  uint8_t *packed = malloc (n);

  if (packed && !mask)
    return memset (packed, 1, n);
  for (uint32_t y = 0; packed && y < mask->height; y++)
    memcpy (packed + (size_t) y * mask->width,
        (const uint8_t *) mask->data + y * mask->stride, mask->width);
  return packed;
}

ImkStatus
imk_photostereo_read_frames (const ImkPhotostereoConfig *c,
    ImkPhotostereoPlan *p, ImkPhotostereoFrames *f, ImkError *error)
{
  bool ok = true;

  if (c->gamma != 1.0 || c->curve != IMK_PHOTOSTEREO_CURVE_GAMMA)
    ok = (p->table = f->table = make_table (c)) != NULL;
  if (ok && c->dark)
    ok = (p->dark = f->dark = decode_frame (p, c->dark, decode)) != NULL;
  if (ok && c->white)
    ok = (p->white = f->white = decode_frame (p, c->white, decode_white)) !=
         NULL;
  if (ok && (c->mask || c->white))
    ok = (p->mask = f->mask = pack_mask (p, c->mask)) != NULL;
  if (!ok)
    return IMK_NO_MEMORY (
        error, "for the calibration of %ux%u pixels.", c->width, c->height);
  if (f->white) {
    invert_white (p, f->white, f->dark);
    f->unmeasured = mask_unmeasured (p, f->white, f->mask);
  }
  if (!c->mask && f->unmeasured == 0)
    p->mask = NULL;
  if (f->unmeasured <= MAX_UNMEASURED)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "The white frame is black or clipped at %.3g %% of the pixels, where "
      "nothing can be divided by it. Take it again, exposed so that the sheet "
      "is neither black nor clipped; or leave out by mask-location what is not "
      "the object.",
      100 * f->unmeasured);
}
