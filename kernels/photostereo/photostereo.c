/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "photostereo/photostereo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "photostereo/photostereo-backend.h"

/* Rec.601 */
static const float luma[] = {0.299f, 0.587f, 0.114f};

struct ImkPhotostereo {
  const ImkPhotostereoBackend *backend;
  bool on_device;
  void *state;

  ImkPhotostereoPlan plan; /* without what is valid during create only */
  uint32_t n_colours;
  ImkPhotostereoParams params;
  ImkPhotostereoLamp *lamps;
  bool *present; /* of each light */
  uint32_t n_added;
  bool has_solved; /* since the set began */
  uint32_t *lights;
  ImkPhotostereoRow *rows;
};

void
imk_photostereo_config_init (ImkPhotostereoConfig *config)
{
  *config = (ImkPhotostereoConfig){
      .width = 1,
      .height = 1,
      .type = IMK_TYPE_U8,
      .channels = 1,
      .colours = {0, 1, 2},
      .gamma = 1.0,
      .mm_per_pixel = 1.0,
      .centre_x = NAN,
      .centre_y = NAN,
      .robust = IMK_PHOTOSTEREO_ROBUST_THRESHOLDS,
      .t_min = -1.0,
      .t_max = -1.0,
      .t_res = -1.0,
      .readmit = true,
      .max_iterations = 10,
      .min_condition = 1e-4,
  };
}

uint32_t
imk_photostereo_n_colours (const ImkPhotostereoConfig *c)
{
  return c->channels > 1 || c->pattern != IMK_PHOTOSTEREO_PATTERN_NONE ? 3 : 1;
}

/* ------------------------------------------------------------------------
 * Validation, the same for both backends. The comparisons are written so that
 * a NaN fails them. */

static ImkStatus
check_choice (const char *property, unsigned value, unsigned n, ImkError *error)
{
  if (value < n)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %u; the choices are 0 to %u.", property, value, n - 1);
}

static ImkStatus
check_range (const char *property, double value, double least, double most,
    ImkError *error)
{
  if (value >= least && value <= most)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %g; it must be between %g and %g.", property, value, least, most);
}

static ImkStatus
check_params (const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkStatus status;

  if ((status = check_choice ("robust", c->robust,
           IMK_PHOTOSTEREO_ROBUST_HUBER + 1, error)) != IMK_OK ||
      (status = check_choice ("threshold-mode", c->thresholds,
           IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE + 1, error)) != IMK_OK ||
      (status = check_range ("t-min", c->t_min, -1, 1e6, error)) != IMK_OK ||
      (status = check_range ("t-max", c->t_max, -1, 1e6, error)) != IMK_OK ||
      (status = check_range ("t-res", c->t_res, -1, 1e6, error)) != IMK_OK ||
      (status = check_range ("min-condition", c->min_condition, 0, 1, error)) !=
          IMK_OK ||
      (status = check_range (
           "max-iterations", c->max_iterations, 1, 1000, error)) != IMK_OK)
    return status;
  if (c->t_min >= 0 && c->t_max >= 0 && c->t_min >= c->t_max)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "t-min is %g and t-max %g: no grey value lies between them.", c->t_min,
        c->t_max);
  if (c->robust == IMK_PHOTOSTEREO_ROBUST_HUBER && c->t_res == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "t-res is 0; with robust=huber all weights would be 0.");
  return IMK_OK;
}

static ImkStatus
check_frame (const ImkPhotostereoConfig *c, ImkError *error)
{
  uint32_t maximum = c->type == IMK_TYPE_U8 ? 255 : 65535;

  if (c->width - 1 >= 65535 || c->height - 1 >= 65535)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame is %ux%u; it can have 1 to 65535 pixels a side.", c->width,
        c->height);
  if (c->type != IMK_TYPE_U8 && c->type != IMK_TYPE_U16)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame is of %s samples; only u8 and u16 are supported.",
        imk_type_name (c->type));
  if (c->channels != 1 && c->channels != 3 && c->channels != 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame has %u samples a pixel; it can have 1, 3 or 4.",
        c->channels);
  for (uint32_t i = 0; c->channels > 1 && i < 3; i++)
    if (c->colours[i] >= c->channels)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Colour %u is said to be sample %u of %u.", i, c->colours[i],
          c->channels);
  if (c->channels > 1 && c->pattern != IMK_PHOTOSTEREO_PATTERN_NONE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "bayer-pattern is for frames of one sample a pixel; these have %u.",
        c->channels);
  if (c->full_scale > maximum)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The full scale is %u; samples end at %u.", c->full_scale, maximum);
  if (!(c->gamma >= 0.1 && c->gamma <= 10))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "gamma is %g; it must be between 0.1 and 10.", c->gamma);
  return IMK_OK;
}

static ImkStatus
check_light (const ImkPhotostereoConfig *c, uint32_t i, ImkError *error)
{
  const ImkPhotostereoLight *l = &c->lights[i];
  double r2 = l->x * l->x + l->y * l->y + l->z * l->z;
  double axis2 = l->axis[0] * l->axis[0] + l->axis[1] * l->axis[1] +
                 l->axis[2] * l->axis[2];

  if (!isfinite (r2) || !isfinite (axis2))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Light %u is at (%g, %g, %g) with the axis (%g, %g, %g); these must "
        "be finite numbers.",
        i, l->x, l->y, l->z, l->axis[0], l->axis[1], l->axis[2]);
  if (!c->positions && !(r2 > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Light %u has the direction (0, 0, 0), which is none.", i);
  if (c->positions && !(l->z > c->plane_z))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Light %u is at z = %g mm, not above the working plane at plane-z = %g "
        "mm.",
        i, l->z, c->plane_z);
  for (int k = 0; k < 3; k++)
    if (!(l->intensity[k] > 0) || !isfinite (l->intensity[k]))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Light %u has the intensity (%g, %g, %g); the numbers must be finite "
          "and above 0.",
          i, l->intensity[0], l->intensity[1], l->intensity[2]);
  return IMK_OK;
}

static ImkStatus
check_lights (const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkStatus status = IMK_OK;

  if (c->n_lights == 0 || c->n_lights > IMK_PHOTOSTEREO_MAX_LIGHTS ||
      !c->lights)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u lights; there can be 1 to %u. lights-location names the "
        "file with them.",
        c->n_lights, IMK_PHOTOSTEREO_MAX_LIGHTS);
  for (uint32_t i = 0; i < c->n_lights && status == IMK_OK; i++)
    status = check_light (c, i, error);
  return status;
}

static ImkStatus
check_geometry (const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkStatus status;

  if ((status = check_choice ("bayer-pattern", c->pattern,
           IMK_PHOTOSTEREO_PATTERN_GRBG + 1, error)) != IMK_OK ||
      (status = check_choice ("grey-source", c->grey,
           IMK_PHOTOSTEREO_GREY_LUMA + 1, error)) != IMK_OK ||
      (status = check_choice ("light-model", c->model,
           IMK_PHOTOSTEREO_MODEL_RAW + 1, error)) != IMK_OK ||
      (status = check_range ("led-lobe", c->led_lobe, 0, 100, error)) !=
          IMK_OK ||
      (status = check_range (
           "mm-per-pixel", c->mm_per_pixel, 1e-9, 1e6, error)) != IMK_OK ||
      (status = check_range ("plane-z", c->plane_z, -1e9, 1e9, error)) !=
          IMK_OK)
    return status;
  if (isinf (c->centre_x) || isinf (c->centre_y))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "centre-x is %g and centre-y %g; they must be finite, or NaN for the "
        "middle.",
        c->centre_x, c->centre_y);
  if (!c->positions && (c->model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE ||
                           c->model == IMK_PHOTOSTEREO_MODEL_UNIT))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "light-model=%s needs the positions of the lights, but these are "
        "directions. Take light-model=directional, or light-units=positions "
        "if the file has positions in mm.",
        c->model == IMK_PHOTOSTEREO_MODEL_UNIT ? "unit" : "inverse-square");
  return check_lights (c, error);
}

static ImkStatus
check_images (const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkStatus status = IMK_OK;

  if (c->dark)
    status = imk_image_check (c->dark, "dark", c->type, c->channels, c->width,
        c->height, false, error);
  if (status == IMK_OK && c->white)
    status = imk_image_check (c->white, "white", c->type, c->channels, c->width,
        c->height, false, error);
  if (status == IMK_OK && c->mask)
    status = imk_image_check (
        c->mask, "mask", IMK_TYPE_U8, 1, c->width, c->height, false, error);
  return status;
}

static ImkStatus
check_config (const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkStatus status = check_frame (c, error);

  if (status == IMK_OK)
    status = check_geometry (c, error);
  if (status == IMK_OK)
    status = check_images (c, error);
  return status != IMK_OK ? status : check_params (c, error);
}

/* ------------------------------------------------------------------------
 * Lights. */

static ImkPhotostereoModel
model_of (const ImkPhotostereoConfig *c)
{
  if (c->model != IMK_PHOTOSTEREO_MODEL_AUTO)
    return c->model;
  return c->positions ? IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE
                      : IMK_PHOTOSTEREO_MODEL_DIRECTIONAL;
}

/* Of the light from the centre of the working plane. */
static double
distance (const ImkPhotostereoConfig *c, const ImkPhotostereoLight *l)
{
  double z = l->z - (c->positions ? c->plane_z : 0);

  return sqrt (l->x * l->x + l->y * l->y + z * z);
}

static double
mean_distance (const ImkPhotostereoConfig *c)
{
  double sum = 0;

  for (uint32_t i = 0; i < c->n_lights; i++)
    sum += distance (c, &c->lights[i]);
  return sum / c->n_lights;
}

static void
fill_axis (
    const ImkPhotostereoLight *l, double z, double r, ImkPhotostereoLamp *lamp)
{
  double x = l->axis[0], y = l->axis[1], w = l->axis[2];
  double length = sqrt (x * x + y * y + w * w);

  if (length == 0) {
    x = -l->x;
    y = -l->y;
    w = -z;
    length = r;
  }
  lamp->axis[0] = (float) (x / length);
  lamp->axis[1] = (float) (y / length);
  lamp->axis[2] = (float) (w / length);
}

static ImkPhotostereoLamp
make_lamp (const ImkPhotostereoConfig *c, uint32_t i, double mean)
{
  const ImkPhotostereoLight *l = &c->lights[i];
  bool colours = imk_photostereo_n_colours (c) == 3;
  double z = l->z - (c->positions ? c->plane_z : 0);
  double r = distance (c, l), grey = 0, scale = 1;
  ImkPhotostereoLamp lamp = {
      .x = (float) l->x, .y = (float) l->y, .z = (float) z};

  fill_axis (l, z, r, &lamp);
  for (int k = 0; k < 3; k++)
    grey += luma[k] * l->intensity[k];
  for (int k = 0; k < 3; k++)
    lamp.gain[k] = (float) (1 / (colours ? l->intensity[k] : grey));
  switch (model_of (c)) {
  case IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE:
    scale = mean * mean;
    break;
  case IMK_PHOTOSTEREO_MODEL_RAW:
    scale = c->positions ? 1 / mean : 1;
    break;
  case IMK_PHOTOSTEREO_MODEL_DIRECTIONAL:
    scale = 1 / r;
    break;
  default:
    break;
  }
  lamp.scale = (float) scale;
  return lamp;
}

static ImkPhotostereoLamp *
make_lamps (const ImkPhotostereoConfig *c, ImkError *error)
{
  ImkPhotostereoLamp *lamps = calloc (c->n_lights, sizeof (*lamps));
  double mean = mean_distance (c);

  if (!lamps)
    imk_error_set (error, IMK_ERROR_MEMORY, "There is no memory for %u lights.",
        c->n_lights);
  for (uint32_t i = 0; lamps && i < c->n_lights; i++)
    lamps[i] = make_lamp (c, i, mean);
  return lamps;
}

/* The light vector at a point of the plane, in float64; for what is not solved
 * but foretold. */
static void
light_vector (const ImkPhotostereoPlan *plan, const ImkPhotostereoLamp *lamp,
    double x, double y, double vector[3])
{
  double v[] = {lamp->x - x, lamp->y - y, lamp->z};
  double r2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2], r = sqrt (r2);
  double k = lamp->scale;

  if (plan->model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE)
    k /= r2 * r;
  else if (plan->model == IMK_PHOTOSTEREO_MODEL_UNIT)
    k /= r;
  if (plan->led_lobe > 0) {
    double cosine =
        -(lamp->axis[0] * v[0] + lamp->axis[1] * v[1] + lamp->axis[2] * v[2]) /
        r;

    k *= pow (fmax (cosine, 0), plan->led_lobe);
  }
  for (int i = 0; i < 3; i++)
    vector[i] = k * v[i];
}

/* xx, xy, xz, yy, yz, zz of a sum of L L'. */
typedef double Matrix[6];

static void
add_light (Matrix a, const double l[3])
{
  a[0] += l[0] * l[0];
  a[1] += l[0] * l[1];
  a[2] += l[0] * l[2];
  a[3] += l[1] * l[1];
  a[4] += l[1] * l[2];
  a[5] += l[2] * l[2];
}

/* Returns: the determinant */
static double
adjugate (const Matrix a, Matrix adj)
{
  adj[0] = a[3] * a[5] - a[4] * a[4];
  adj[1] = a[2] * a[4] - a[1] * a[5];
  adj[2] = a[1] * a[4] - a[2] * a[3];
  adj[3] = a[0] * a[5] - a[2] * a[2];
  adj[4] = a[1] * a[2] - a[0] * a[4];
  adj[5] = a[0] * a[3] - a[1] * a[1];
  return a[0] * adj[0] + a[1] * adj[1] + a[2] * adj[2];
}

static double
condition_of (const Matrix a)
{
  Matrix adj;
  double det = adjugate (a, adj);
  double trace = (a[0] + a[3] + a[5]) * (adj[0] + adj[3] + adj[5]);

  return trace > 0 && det > 0 ? det / trace : 0;
}

double
imk_photostereo_lights_condition (const ImkPhotostereoConfig *c)
{
  ImkPhotostereoPlan plan = {
      .model = model_of (c), .led_lobe = (float) c->led_lobe};
  double mean, l[3];
  Matrix a = {0};

  if (check_geometry (c, NULL) != IMK_OK)
    return 0;
  mean = mean_distance (c);
  for (uint32_t i = 0; i < c->n_lights; i++) {
    ImkPhotostereoLamp lamp = make_lamp (c, i, mean);

    light_vector (&plan, &lamp, 0, 0, l);
    add_light (a, l);
  }
  return condition_of (a);
}

/* ------------------------------------------------------------------------
 * The plan. */

static uint32_t
maximum_of (const ImkPhotostereoConfig *c)
{
  return c->full_scale ? c->full_scale : c->type == IMK_TYPE_U8 ? 255 : 65535;
}

static void
plan_samples (const ImkPhotostereoConfig *c, ImkPhotostereoPlan *p)
{
  /* the colours of the sites of each ImkPhotostereoPattern */
  static const uint8_t sites[][4] = {
      {0, 0, 0, 0}, {2, 1, 1, 0}, {0, 1, 1, 2}, {1, 2, 0, 1}, {1, 0, 2, 1}};
  bool pattern = c->pattern != IMK_PHOTOSTEREO_PATTERN_NONE;

  p->interpolate = pattern && c->grey == IMK_PHOTOSTEREO_GREY_LUMA;
  p->mosaic = pattern && !p->interpolate;
  p->n_planes = c->channels > 1 || p->interpolate ? 3 : 1;
  for (uint32_t i = 0; i < p->n_planes; i++) {
    p->colours[i] = c->channels > 1 ? c->colours[i] : 0;
    p->weight[i] = p->n_planes == 3 ? luma[i] : 1;
  }
  memcpy (p->site, sites[c->pattern], sizeof (p->site));
  p->unit = (float) (1.0 / maximum_of (c));
}

static ImkPhotostereoPlan
make_plan (const ImkPhotostereoConfig *c, const ImkPhotostereoLamp *lamps)
{
  ImkPhotostereoPlan p = {
      .width = c->width,
      .height = c->height,
      .type = c->type,
      .channels = c->channels,
      .n_lights = c->n_lights,
      .lamps = lamps,
      .model = model_of (c),
      .led_lobe = (float) c->led_lobe,
      .centre_x =
          (float) (isnan (c->centre_x) ? (c->width - 1) / 2.0 : c->centre_x),
      .centre_y =
          (float) (isnan (c->centre_y) ? (c->height - 1) / 2.0 : c->centre_y),
      .track_change = c->track_change,
      .memory_limit = c->memory_limit,
      .strip_rows = c->strip_rows,
      .n_threads = c->n_threads,
  };

  if (p.model == IMK_PHOTOSTEREO_MODEL_DIRECTIONAL ||
      p.model == IMK_PHOTOSTEREO_MODEL_RAW)
    p.led_lobe = 0;
  if (p.model != IMK_PHOTOSTEREO_MODEL_DIRECTIONAL && c->positions) {
    p.pitch_x = (float) c->mm_per_pixel;
    p.pitch_y = (float) -c->mm_per_pixel; /* rows go down, y goes up */
  }
  plan_samples (c, &p);
  return p;
}

static ImkPhotostereoParams
params_of (const ImkPhotostereoConfig *c, uint32_t n_lights)
{
  static const float defaults[2][3] = {
      {0.04f, 0.98f, 0.03f}, {0.1f, 1.3f, 0.15f}};
  bool relative = c->thresholds == IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE ||
                  (c->thresholds == IMK_PHOTOSTEREO_THRESHOLDS_AUTO &&
                      n_lights >= IMK_PHOTOSTEREO_AUTO_LIGHTS);
  const float *t = defaults[relative];

  return (ImkPhotostereoParams){
      .robust = c->robust,
      .relative = relative,
      .t_min = c->t_min < 0 ? t[0] : (float) c->t_min,
      .t_max = c->t_max < 0 ? t[1] : (float) c->t_max,
      .t_res = c->t_res >= 0                               ? (float) c->t_res
               : c->robust == IMK_PHOTOSTEREO_ROBUST_HUBER ? 0.02f
                                                           : t[2],
      .readmit = c->readmit,
      .max_iterations = c->max_iterations,
      .min_lights = c->min_lights ? c->min_lights
                    : relative    ? 6
                                  : 3,
      .min_condition = (float) c->min_condition,
      .y_down = c->y_down,
  };
}

/* What is read once: decoded calibration frames, in planes. */
typedef struct Frames {
  float *table, *dark, *white;
  uint8_t *mask;
} Frames;

static void
frames_clear (Frames *f)
{
  free (f->table);
  free (f->dark);
  free (f->white);
  free (f->mask);
}

static uint32_t
sample_at (const ImkImage *image, uint32_t x, uint32_t y, uint32_t channel)
{
  const uint8_t *row = (const uint8_t *) image->data + y * image->stride;
  size_t i = (size_t) x * image->channels + channel;

  return image->type == IMK_TYPE_U8 ? row[i] : ((const uint16_t *) row)[i];
}

static float
decode (const ImkPhotostereoPlan *p, uint32_t sample)
{
  return p->table ? p->table[sample] : (float) sample * p->unit;
}

/* A mosaic that is interpolated has its calibration interpolated likewise:
 * the mean of the sites of the colour in 3x3 pixels. */
static float
calibration_at (const ImkPhotostereoPlan *p, const ImkImage *image, uint32_t x,
    uint32_t y, uint32_t plane)
{
  float sum = 0;
  uint32_t n = 0;

  if (!p->interpolate)
    return decode (p, sample_at (image, x, y, p->colours[plane]));
  for (uint32_t v = y ? y - 1 : 0; v <= y + 1 && v < p->height; v++)
    for (uint32_t u = x ? x - 1 : 0; u <= x + 1 && u < p->width; u++)
      if (p->site[2 * (v & 1) + (u & 1)] == plane) {
        sum += decode (p, sample_at (image, u, v, 0));
        n++;
      }
  return n ? sum / (float) n : 0;
}

static float *
decode_frame (const ImkPhotostereoPlan *p, const ImkImage *image)
{
  float *values =
      calloc ((size_t) p->width * p->height * p->n_planes, sizeof (*values));
  float *to = values;

  for (uint32_t plane = 0; values && plane < p->n_planes; plane++)
    for (uint32_t y = 0; y < p->height; y++)
      for (uint32_t x = 0; x < p->width; x++)
        *to++ = calibration_at (p, image, x, y, plane);
  return values;
}

/* @white becomes the mean over it, for each colour; a pixel that saw nothing
 * keeps its value. */
static void
invert_white (const ImkPhotostereoPlan *p, float *white, const float *dark)
{
  size_t n = (size_t) p->width * p->height;
  double sum[3] = {0};
  uint64_t count[3] = {0};

  for (size_t i = 0; i < n * p->n_planes; i++) {
    uint32_t x = (uint32_t) (i % n % p->width);
    uint32_t y = (uint32_t) (i % n / p->width);
    uint32_t colour =
        p->mosaic ? p->site[2 * (y & 1) + (x & 1)] : (uint32_t) (i / n);

    white[i] = fmaxf (white[i] - (dark ? dark[i] : 0), 0);
    sum[colour] += white[i];
    count[colour]++;
  }
  for (size_t i = 0; i < n * p->n_planes; i++) {
    uint32_t x = (uint32_t) (i % n % p->width);
    uint32_t y = (uint32_t) (i % n / p->width);
    uint32_t colour =
        p->mosaic ? p->site[2 * (y & 1) + (x & 1)] : (uint32_t) (i / n);
    double mean = sum[colour] / (double) count[colour];

    white[i] = white[i] > 0 ? (float) (mean / white[i]) : 1;
  }
}

static float *
make_table (const ImkPhotostereoConfig *c)
{
  uint32_t n = c->type == IMK_TYPE_U8 ? 256 : 65536;
  float *table = malloc (n * sizeof (*table));

  for (uint32_t i = 0; table && i < n; i++)
    table[i] = (float) pow ((double) i / maximum_of (c), c->gamma);
  return table;
}

static uint8_t *
pack_mask (const ImkImage *mask)
{
  uint8_t *packed = malloc ((size_t) mask->width * mask->height);

  for (uint32_t y = 0; packed && y < mask->height; y++)
    memcpy (packed + (size_t) y * mask->width,
        (const uint8_t *) mask->data + y * mask->stride, mask->width);
  return packed;
}

static ImkStatus
read_frames (const ImkPhotostereoConfig *c, ImkPhotostereoPlan *p, Frames *f,
    ImkError *error)
{
  bool ok = true;

  if (c->gamma != 1.0)
    ok = (p->table = f->table = make_table (c)) != NULL;
  if (ok && c->dark)
    ok = (p->dark = f->dark = decode_frame (p, c->dark)) != NULL;
  if (ok && c->white)
    ok = (p->white = f->white = decode_frame (p, c->white)) != NULL;
  if (ok && c->mask)
    ok = (p->mask = f->mask = pack_mask (c->mask)) != NULL;
  if (!ok)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for the calibration of %ux%u pixels.", c->width,
        c->height);
  if (f->white)
    invert_white (p, f->white, f->dark);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The object. */

static ImkStatus
find_backend (
    ImkBackend backend, const ImkPhotostereoBackend **table, ImkError *error)
{
  const void *found;
  ImkStatus status = IMK_OK;

  switch (backend) {
  case IMK_BACKEND_CPU:
    *table = &imk_photostereo_cpu;
    return IMK_OK;
  case IMK_BACKEND_CUDA:
    status = imk_backend_find (IMK_MODULE_CUDA, "photostereo", &found, error);
    if (status == IMK_OK)
      *table = found;
    return status;
  }
  return imk_error_set (
      error, IMK_ERROR_CONFIG, "There is no backend %d.", (int) backend);
}

static void
forget_call (ImkPhotostereoPlan *plan)
{
  plan->table = plan->dark = plan->white = NULL;
  plan->mask = NULL;
  plan->lamps = NULL;
}

static ImkStatus
create_state (ImkPhotostereo *s, const ImkPhotostereoConfig *c, ImkError *error)
{
  Frames frames = {0};
  ImkStatus status;

  s->lamps = make_lamps (c, error);
  if (!s->lamps)
    return IMK_ERROR_MEMORY;
  s->plan = make_plan (c, s->lamps);
  s->params = params_of (c, c->n_lights);
  s->n_colours = imk_photostereo_n_colours (c);
  s->present = calloc (c->n_lights, sizeof (*s->present));
  s->lights = calloc (c->n_lights, sizeof (*s->lights));
  s->rows = calloc (c->height, sizeof (*s->rows));
  if (!s->present || !s->lights || !s->rows)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for %u lights.", c->n_lights);
  status = read_frames (c, &s->plan, &frames, error);
  if (status == IMK_OK)
    status = s->backend->create (&s->plan, &s->params, &s->state, error);
  frames_clear (&frames);
  forget_call (&s->plan);
  return status;
}

ImkStatus
imk_photostereo_new (ImkBackend backend, const ImkPhotostereoConfig *config,
    ImkPhotostereo **self, ImkError *error)
{
  const ImkPhotostereoBackend *table = NULL;
  ImkPhotostereo *s;
  ImkStatus status = check_config (config, error);

  if (status == IMK_OK)
    status = find_backend (backend, &table, error);
  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  s->backend = table;
  s->on_device = backend == IMK_BACKEND_CUDA;
  status = create_state (s, config, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_photostereo_free (s);
  return status;
}

ImkStatus
imk_photostereo_update (
    ImkPhotostereo *self, const ImkPhotostereoConfig *config, ImkError *error)
{
  ImkStatus status = check_params (config, error);
  ImkPhotostereoParams params = params_of (config, self->plan.n_lights);

  if (status == IMK_OK)
    status = self->backend->update (self->state, &params, error);
  if (status == IMK_OK)
    self->params = params;
  return status;
}

ImkStatus
imk_photostereo_add (ImkPhotostereo *self, const ImkImage *frame,
    uint32_t light, void *stream, ImkError *error)
{
  const ImkPhotostereoPlan *p = &self->plan;
  ImkStatus status = imk_image_check (frame, "input", p->type, p->channels,
      p->width, p->height, self->on_device, error);

  if (status != IMK_OK)
    return status;
  if (light >= p->n_lights)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A picture is said to be lit by light %u, counted from 0; there are %u "
        "lights.",
        light, p->n_lights);
  if (self->present[light])
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A second picture of the set is said to be lit by light %u.", light);
  status = self->backend->add (self->state, frame, light, stream, error);
  if (status == IMK_OK) {
    self->present[light] = true;
    self->n_added++;
  }
  return status;
}

uint32_t
imk_photostereo_n_added (const ImkPhotostereo *self)
{
  return self->n_added;
}

/* An output of f32 with @channels, or encoded in u8 or u16. */
static ImkStatus
check_output (const ImkPhotostereo *self, const ImkImage *out, const char *role,
    uint32_t f32, uint32_t u8, uint32_t u16, ImkError *error)
{
  uint32_t channels = out->type == IMK_TYPE_U8    ? u8
                      : out->type == IMK_TYPE_U16 ? u16
                                                  : f32;
  ImkType type = channels == u8 && out->type == IMK_TYPE_U8 ? IMK_TYPE_U8
                 : out->type == IMK_TYPE_U16                ? IMK_TYPE_U16
                                                            : IMK_TYPE_F32;

  if (!out->data)
    return IMK_OK;
  return imk_image_check (out, role, type, channels, self->plan.width,
      self->plan.height, self->on_device, error);
}

static ImkStatus
check_outputs (
    const ImkPhotostereo *self, const ImkPhotostereoOutputs *o, ImkError *error)
{
  uint32_t c = self->n_colours, u16 = c == 3 ? 4 : 1;
  ImkStatus status = check_output (self, &o->normal, "normal", 3, 3, 4, error);

  if (status == IMK_OK)
    status = check_output (self, &o->albedo, "albedo", c, c, u16, error);
  if (status == IMK_OK)
    status = check_output (self, &o->ambient, "ambient", c, c, u16, error);
  if (status == IMK_OK)
    status = check_output (self, &o->quality, "quality", 4, 0, 4, error);
  return status;
}

static ImkPhotostereoSummary
sum_up (const ImkPhotostereo *self, bool compare)
{
  ImkPhotostereoSummary s = {
      .n_lights = self->n_added, .change_deg = compare ? 0 : NAN};
  uint64_t n_changes = 0, n_valid;

  for (uint32_t y = 0; y < self->plan.height; y++) {
    const ImkPhotostereoRow *row = &self->rows[y];

    s.n_pixels += row->n_pixels;
    s.n_invalid += row->n_invalid;
    s.mean_lights += row->lights;
    s.mean_rounds += row->rounds;
    s.change_deg += row->change;
    n_changes += row->n_changes;
  }
  n_valid = s.n_pixels - s.n_invalid;
  s.mean_lights = n_valid ? s.mean_lights / (double) n_valid : 0;
  s.mean_rounds = n_valid ? s.mean_rounds / (double) n_valid : 0;
  s.change_deg = n_changes ? s.change_deg / (double) n_changes : NAN;
  return s;
}

ImkStatus
imk_photostereo_solve (ImkPhotostereo *self, ImkPhotostereoOutputs *outputs,
    ImkPhotostereoSummary *summary, void *stream, ImkError *error)
{
  bool compare = self->plan.track_change && self->has_solved;
  uint32_t n = 0;
  ImkStatus status = check_outputs (self, outputs, error);

  if (status != IMK_OK)
    return status;
  for (uint32_t i = 0; i < self->plan.n_lights; i++)
    if (self->present[i])
      self->lights[n++] = i;
  status = self->backend->solve (self->state, self->lights, n, compare, outputs,
      summary ? self->rows : NULL, stream, error);
  if (status != IMK_OK)
    return status;
  self->has_solved = true;
  if (summary)
    *summary = sum_up (self, compare);
  return IMK_OK;
}

void
imk_photostereo_reset (ImkPhotostereo *self)
{
  memset (self->present, 0, self->plan.n_lights * sizeof (*self->present));
  self->n_added = 0;
  self->has_solved = false;
}

void
imk_photostereo_free (ImkPhotostereo *self)
{
  if (!self)
    return;
  if (self->state)
    self->backend->destroy (self->state);
  free (self->lamps);
  free (self->present);
  free (self->lights);
  free (self->rows);
  free (self);
}

/* ------------------------------------------------------------------------
 * The next light. */

enum { PROBES = 64 }; /* pixels a side that are looked at */

/* Adds to each gain[light] what its picture would tell about one pixel. */
static void
add_gains (const ImkPhotostereo *self, const float n[3], double x, double y,
    double *gain)
{
  const ImkPhotostereoPlan *p = &self->plan;
  bool known = n[0] != 0 || n[1] != 0 || n[2] != 0;
  Matrix a = {0}, adj;
  double l[3], det;

  for (uint32_t i = 0; i < p->n_lights; i++)
    if (self->present[i]) {
      light_vector (p, &self->lamps[i], x, y, l);
      if (!known || n[0] * l[0] + n[1] * l[1] + n[2] * l[2] > 0)
        add_light (a, l);
    }
  if (!known || condition_of (a) < self->params.min_condition) {
    a[0] += 1e-3;
    a[3] += 1e-3;
    a[5] += 1e-3;
  }
  det = adjugate (a, adj);
  for (uint32_t i = 0; i < p->n_lights; i++) {
    if (self->present[i])
      continue;
    light_vector (p, &self->lamps[i], x, y, l);
    if (known && !(n[0] * l[0] + n[1] * l[1] + n[2] * l[2] > 0))
      continue;
    gain[i] += log1p ((l[0] * (adj[0] * l[0] + 2 * adj[1] * l[1]) +
                          l[1] * (adj[3] * l[1] + 2 * adj[4] * l[2]) +
                          l[2] * (adj[5] * l[2] + 2 * adj[2] * l[0])) /
                      det);
  }
}

/* The normals at the probes; zeros where there are none. */
static float *
probe_normals (ImkPhotostereo *self, uint32_t step_x, uint32_t step_y,
    void *stream, ImkStatus *status, ImkError *error)
{
  float *normals = calloc (PROBES * PROBES, 3 * sizeof (*normals));

  *status = IMK_OK;
  if (!normals)
    *status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for %u normals.", PROBES * PROBES);
  else if (self->plan.track_change && self->has_solved)
    *status = self->backend->probe (
        self->state, step_x, step_y, normals, stream, error);
  if (*status == IMK_OK)
    return normals;
  free (normals);
  return NULL;
}

ImkStatus
imk_photostereo_next_light (
    ImkPhotostereo *self, uint32_t *light, void *stream, ImkError *error)
{
  const ImkPhotostereoPlan *p = &self->plan;
  uint32_t step_x = imk_div_up (p->width, PROBES);
  uint32_t step_y = imk_div_up (p->height, PROBES);
  double gain[IMK_PHOTOSTEREO_MAX_LIGHTS] = {0}, best = -1;
  float *normals;
  const float *n;
  ImkStatus status;

  if (self->n_added == p->n_lights)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "All %u lights are in the set; none is left to be the next.",
        p->n_lights);
  normals = probe_normals (self, step_x, step_y, stream, &status, error);
  if (!normals)
    return status;
  n = normals;
  for (uint32_t y = step_y / 2; y < p->height; y += step_y)
    for (uint32_t x = step_x / 2; x < p->width; x += step_x, n += 3)
      add_gains (self, n, (x - p->centre_x) * p->pitch_x,
          (y - p->centre_y) * p->pitch_y, gain);
  for (uint32_t i = 0; i < p->n_lights; i++)
    if (!self->present[i] && gain[i] > best) {
      best = gain[i];
      *light = i;
    }
  free (normals);
  return IMK_OK;
}
