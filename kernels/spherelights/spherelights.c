/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/spherelights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/limits.h"
#include "core/sample.h"

enum { MAX_SIZE = 65535 };

#define BACKGROUND 0.1 /* of the brightest, where the sphere is to be found */
#define MISFIT 0.05    /* of the pixels of a circle */
#define FAINT 0.25     /* of the median of all pictures' brightest points */
#define ROUND 0.9      /* length of a highlight's mean reflection; 37 degrees */
#define GLOW 4      /* pixels above the threshold for each of the highlight */
#define SPHERE 0.01 /* and of the sphere */
#define SECOND 0.2  /* of the sum of the largest highlight */
#define APART 0.98  /* cosine of 11 degrees between two highlights */
#define STILL 0.5   /* pixels that a highlight has to move */

/* A pixel of a highlight. */
typedef struct Point {
  uint32_t x, y;
  float weight; /* above the threshold */
} Point;

/* A connected part above the threshold. */
typedef struct Part {
  size_t first; /* of the points */
  uint32_t n;
  double sum; /* of their weights */
} Part;

typedef struct Highlight {
  Part largest, second;
  float brightest;
  uint32_t n_bright; /* pixels above the threshold */
} Highlight;

struct ImkSpherelights {
  ImkSpherelightsConfig config;
  float *linear;  /* of each sample; NULL for themselves */
  float *luma;    /* [height][width] of the picture at hand */
  float *largest; /* likewise, of all pictures; NULL with a known sphere */
  uint8_t *seen;  /* likewise */
  size_t *stack;
  Point *points;
  size_t n_points, room;
  Highlight *highlights;
  uint32_t n_added;
  size_t highlights_room;
};

void
imk_spherelights_config_init_sized (ImkSpherelightsConfig *config, size_t size)
{
  const ImkSpherelightsConfig defaults = {
      .size = size,
      .width = 1,
      .height = 1,
      .type = IMK_TYPE_U8,
      .channels = 1,
      .threshold = 0.8,
      .gamma = 1,
  };

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

static ImkStatus
check_config (const ImkSpherelightsConfig *c, ImkError *error)
{
  const ImkSphere *s = &c->sphere;

  if (c->width < 1 || c->width > MAX_SIZE || c->height < 1 ||
      c->height > MAX_SIZE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "No sphere can be found in a picture of %u x %u pixels; width and "
        "height can be 1..%d each.",
        c->width, c->height, MAX_SIZE);
  if ((c->type != IMK_TYPE_U8 && c->type != IMK_TYPE_U16) ||
      (c->channels != 1 && c->channels != 3 && c->channels != 4))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Pictures of %u channels of %s cannot be read; they can be 1, 3 or 4 "
        "of u8 or u16.",
        c->channels, imk_type_name (c->type));
  for (int i = 0; i < 3; i++)
    if (c->colours[i] >= c->channels)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Colour %d cannot be channel %u, counted from 0: pictures have %u "
          "channels.",
          i, c->colours[i], c->channels);
  if (!(c->threshold > 0 && c->threshold < 1)) /* NaN must fail too */
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "threshold is %g; it has to be above 0 and below 1.", c->threshold);
  if (!(s->radius >= 0 && s->radius <= MAX_SIZE && fabs (s->x) <= MAX_SIZE &&
          fabs (s->y) <= MAX_SIZE))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A sphere of radius %g at (%g, %g) is none.", s->radius, s->x, s->y);
  return imk_limits_check_one ("gamma", c->gamma, 0.1, 10, error);
}

static ImkStatus
no_memory (const ImkSpherelights *s, ImkError *error)
{
  return IMK_NO_MEMORY (error, "for pictures of %u x %u pixels.",
      s->config.width, s->config.height);
}

/* Returns: false without memory */
static bool
make_table (ImkSpherelights *s)
{
  uint32_t full = s->config.type == IMK_TYPE_U8 ? 255 : 65535;

  if (s->config.gamma == 1)
    return true;
  s->linear = malloc ((full + 1) * sizeof (*s->linear));
  for (uint32_t i = 0; s->linear && i <= full; i++)
    s->linear[i] = (float) (full * pow ((double) i / full, s->config.gamma));
  return s->linear != NULL;
}

ImkStatus
imk_spherelights_new (
    const ImkSpherelightsConfig *given, ImkSpherelights **self, ImkError *error)
{
  ImkSpherelightsConfig own;
  const ImkSpherelightsConfig *config =
      IMK_CONFIG_READ (spherelights, given, &own, error);
  ImkStatus status = IMK_OK;
  ImkSpherelights *s;
  size_t n;

  IMK_TRY (config ? check_config (config, error) : IMK_ERROR_CONFIG);
  s = calloc (1, sizeof (*s));
  if (!s)
    return IMK_NO_MEMORY (error, "for the object.");
  s->config = *config;
  n = (size_t) config->width * config->height;
  s->luma = malloc (n * sizeof (*s->luma));
  s->seen = malloc (n);
  s->stack = malloc (n * sizeof (*s->stack));
  if (config->sphere.radius == 0)
    s->largest = calloc (n, sizeof (*s->largest));
  if (!make_table (s) || !s->luma || !s->seen || !s->stack ||
      (config->sphere.radius == 0 && !s->largest)) {
    status = no_memory (s, error);
    imk_spherelights_free (s);
    return status;
  }
  *self = s;
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * One picture. */

static float
luma_of (const float colours[3])
{
  return 0.299f * colours[0] + 0.587f * colours[1] + 0.114f * colours[2];
}

static bool
is_inside (const ImkSphere *s, uint32_t x, uint32_t y)
{
  double dx = x - s->x, dy = y - s->y;

  return dx * dx + dy * dy < s->radius * s->radius;
}

/* Returns: the brightest luma that may be of a highlight; what may not be has
 * none */
static float
read_luma (ImkSpherelights *s, const ImkImage *in)
{
  const ImkSpherelightsConfig *c = &s->config;
  float brightest = 0;
  size_t at = 0;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++, at++) {
      float samples[3], light[3], luma;

      for (int i = 0; i < 3; i++) {
        samples[i] = (float) imk_sample_get_uint (in, x, y, c->colours[i]);
        light[i] = s->linear ? s->linear[(uint32_t) samples[i]] : samples[i];
      }
      luma = luma_of (light);
      if (s->largest)
        s->largest[at] = fmaxf (s->largest[at], luma_of (samples));
      else if (!is_inside (&c->sphere, x, y))
        luma = 0;
      s->luma[at] = luma;
      brightest = fmaxf (brightest, luma);
    }
  return brightest;
}

/* Returns: @array with room for more than @n members; NULL without memory */
static void *
make_room (void *array, size_t n, size_t *room, size_t size)
{
  size_t more = *room ? 2 * *room : 64;
  void *larger = array;

  if (n == *room && (larger = realloc (array, more * size)))
    *room = more;
  return larger;
}

static bool
add_point (ImkSpherelights *s, size_t at, float weight)
{
  Point *points =
      make_room (s->points, s->n_points, &s->room, sizeof (*points));

  if (!points)
    return false;
  s->points = points;
  s->points[s->n_points++] = (Point){
      .x = (uint32_t) (at % s->config.width),
      .y = (uint32_t) (at / s->config.width),
      .weight = weight,
  };
  return true;
}

/* Appends the points above @limit that hang together with @from, by sides and
 * corners. Returns: the sum of their weights, -1 without memory */
static double
grow (ImkSpherelights *s, size_t from, float limit)
{
  uint32_t width = s->config.width, height = s->config.height;
  size_t n = 0;
  double sum = 0;

  s->stack[n++] = from;
  s->seen[from] = 1;
  while (n > 0) {
    size_t at = s->stack[--n];
    uint32_t x = (uint32_t) (at % width), y = (uint32_t) (at / width);

    if (!add_point (s, at, s->luma[at] - limit))
      return -1;
    sum += s->luma[at] - limit;
    for (uint32_t v = y ? y - 1 : 0; v <= y + 1 && v < height; v++)
      for (uint32_t u = x ? x - 1 : 0; u <= x + 1 && u < width; u++) {
        size_t next = (size_t) v * width + u;

        if (!s->seen[next] && s->luma[next] > limit) {
          s->seen[next] = 1;
          s->stack[n++] = next;
        }
      }
  }
  return sum;
}

/* Appends the points of @part, which begin at the end or behind it. */
static void
keep_part (ImkSpherelights *s, Part *part)
{
  memmove (s->points + s->n_points, s->points + part->first,
      part->n * sizeof (*s->points));
  part->first = s->n_points;
  s->n_points += part->n;
}

/* The points of the two parts with the largest sums stay. */
static ImkStatus
find_highlight (
    ImkSpherelights *s, float brightest, Highlight *highlight, ImkError *error)
{
  size_t n = (size_t) s->config.width * s->config.height, first = s->n_points;
  float limit = (float) s->config.threshold * brightest;
  Part *a = &highlight->largest, *b = &highlight->second;
  bool b_first;

  *highlight = (Highlight){.brightest = brightest};
  memset (s->seen, 0, n);
  for (size_t at = 0; at < n; at++) {
    Part part = {.first = s->n_points};

    highlight->n_bright += s->luma[at] > limit;
    if (s->seen[at] || s->luma[at] <= limit)
      continue;
    part.sum = grow (s, at, limit);
    if (part.sum < 0)
      return no_memory (s, error);
    part.n = (uint32_t) (s->n_points - part.first);
    if (part.sum > a->sum) {
      *b = *a;
      *a = part;
    } else if (part.sum > b->sum) {
      *b = part;
    }
  }
  /* in the order in which they were found, so that neither is overwritten */
  b_first = b->n > 0 && b->first < a->first;
  s->n_points = first;
  keep_part (s, b_first ? b : a);
  keep_part (s, b_first ? a : b);
  return IMK_OK;
}

ImkStatus
imk_spherelights_add (
    ImkSpherelights *self, const ImkImage *in, ImkError *error)
{
  const ImkSpherelightsConfig *c = &self->config;
  size_t n_points = self->n_points;
  Highlight *highlights;
  float brightest;
  ImkStatus status;

  IMK_TRY (imk_image_check (
      in, "input", c->type, c->channels, c->width, c->height, false, error));
  highlights = make_room (self->highlights, self->n_added,
      &self->highlights_room, sizeof (*highlights));
  if (!highlights)
    return no_memory (self, error);
  self->highlights = highlights;
  brightest = read_luma (self, in);
  if (!(brightest > 0))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Picture %u, counted from 0, shows no highlight: it is black where the "
        "sphere is. Check centre-x, centre-y and radius; or take it again, or "
        "leave it out here and among the pictures of the object.",
        self->n_added);
  status =
      find_highlight (self, brightest, &self->highlights[self->n_added], error);
  if (status == IMK_OK)
    self->n_added++;
  else
    self->n_points = n_points;
  return status;
}

uint32_t
imk_spherelights_n_added (const ImkSpherelights *self)
{
  return self->n_added;
}

void
imk_spherelights_free (ImkSpherelights *self)
{
  if (!self)
    return;
  free (self->linear);
  free (self->luma);
  free (self->largest);
  free (self->seen);
  free (self->stack);
  free (self->points);
  free (self->highlights);
  free (self);
}

/* ------------------------------------------------------------------------
 * The circle. */

ImkStatus
imk_spherelights_fit (const ImkImage *mask, ImkSphere *sphere, ImkError *error)
{
  double n = 0, x_sum = 0, y_sum = 0, outside = 0;
  ImkSphere s;

  IMK_TRY (imk_image_check (mask, "mask", mask->type, mask->channels,
      mask->width, mask->height, false, error));
  if (mask->type != IMK_TYPE_U8 && mask->type != IMK_TYPE_U16)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A mask of %s cannot be read; it can be u8 or u16.",
        imk_type_name (mask->type));
  for (uint32_t y = 0; y < mask->height; y++)
    for (uint32_t x = 0; x < mask->width; x++)
      if (imk_sample_get_uint (mask, x, y, 0) > 0) {
        n++;
        x_sum += x;
        y_sum += y;
      }
  if (n == 0)
    return imk_error_set (
        error, IMK_ERROR_IMAGE, "The mask of the sphere is empty.");
  s = (ImkSphere){x_sum / n, y_sum / n, sqrt (n / M_PI)};
  for (uint32_t y = 0; y < mask->height; y++)
    for (uint32_t x = 0; x < mask->width; x++)
      outside +=
          imk_sample_get_uint (mask, x, y, 0) > 0 && !is_inside (&s, x, y);
  /* the areas are equal, so as much of the circle is outside of the mask */
  if (outside > MISFIT * n + 1)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The sphere is no circle: %.0f of its %.0f pixels are outside of the "
        "one at (%.1f, %.1f) of radius %.1f.",
        outside, n, s.x, s.y, s.radius);
  *sphere = s;
  return IMK_OK;
}

static ImkStatus
find_sphere (ImkSpherelights *s, ImkSphere *sphere, ImkError *error)
{
  size_t n = (size_t) s->config.width * s->config.height;
  ImkImage mask = imk_image_of_rows (
      s->seen, IMK_TYPE_U8, s->config.width, s->config.height);
  float brightest = 0;

  for (size_t at = 0; at < n; at++)
    brightest = fmaxf (brightest, s->largest[at]);
  for (size_t at = 0; at < n; at++)
    s->seen[at] = s->largest[at] > (float) BACKGROUND * brightest;
  if (imk_spherelights_fit (&mask, sphere, NULL) == IMK_OK)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "The sphere could not be found: what is brighter than %g times the "
      "brightest point is no circle. Set mask-location, or centre-x, centre-y "
      "and radius.",
      BACKGROUND);
}

/* ------------------------------------------------------------------------
 * The lights. */

/* The direction that the sphere reflects at a point inside its circle. */
static void
reflect (const ImkSphere *s, uint32_t x, uint32_t y, double r[3])
{
  double nx = (x - s->x) / s->radius, ny = (s->y - y) / s->radius;
  double nz = sqrt (1 - nx * nx - ny * ny);

  r[0] = 2 * nz * nx;
  r[1] = 2 * nz * ny;
  r[2] = 2 * nz * nz - 1;
}

/* Returns: the length of the mean reflection, 0 to 1; 0 when the part is
 * outside of the sphere, and there is no direction */
static double
solve_part (const ImkSpherelights *s, const Part *part, const ImkSphere *sphere,
    ImkSpherelight *light)
{
  double sum[3] = {0, 0, 0}, weights = 0, x = 0, y = 0, length;

  for (uint32_t k = 0; k < part->n; k++) {
    const Point *p = &s->points[part->first + k];
    double r[3];

    x += p->x * (double) p->weight;
    y += p->y * (double) p->weight;
    weights += p->weight;
    if (!is_inside (sphere, p->x, p->y))
      continue;
    reflect (sphere, p->x, p->y, r);
    for (int c = 0; c < 3; c++)
      sum[c] += p->weight * r[c];
  }
  length = sqrt (sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2]);
  *light = (ImkSpherelight){
      .x = x / weights,
      .y = y / weights,
      .n_pixels = part->n,
  };
  if (!(length > 1e-6 * weights))
    return 0;
  for (int c = 0; c < 3; c++)
    light->direction[c] = sum[c] / length;
  return length / weights;
}

/* Refuses a picture whose brightest part is not a lamp, or that shows two. */
static ImkStatus
solve_light (const ImkSpherelights *s, uint32_t i, const ImkSphere *sphere,
    float median, ImkSpherelight *light, ImkError *error)
{
  const Highlight *h = &s->highlights[i];
  double area = M_PI * sphere->radius * sphere->radius;
  ImkSpherelight other = {.n_pixels = 0};
  double length = solve_part (s, &h->largest, sphere, light);

  if (h->brightest < (float) FAINT * median)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Picture %u, counted from 0, shows no highlight: its brightest point "
        "is %.0f, that of the other pictures %.0f (median). Was the lamp off? "
        "Take it again, or leave it out here and among the pictures of the "
        "object.",
        i, h->brightest, median);
  if (length == 0)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The highlight of picture %u, at (%.1f, %.1f), is outside of the "
        "sphere at (%.1f, %.1f) of radius %.1f.",
        i, light->x, light->y, sphere->x, sphere->y, sphere->radius);
  if (length < ROUND || h->n_bright > GLOW * h->largest.n + SPHERE * area)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Picture %u, counted from 0, shows no highlight: %u pixels are "
        "brighter than threshold=%g of the brightest point, and they are no "
        "small spot. Either the lamp was off or hidden, or the sphere mirrors something "
        "as bright as the lamp: a table, the object, a lit room. Expose less "
        "and lay black paper around the sphere; or raise threshold.",
        i, h->n_bright, s->config.threshold);
  if (h->second.sum < SECOND * h->largest.sum ||
      solve_part (s, &h->second, sphere, &other) == 0 ||
      light->direction[0] * other.direction[0] +
              light->direction[1] * other.direction[1] +
              light->direction[2] * other.direction[2] >
          APART)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "Picture %u, counted from 0, shows two highlights, at (%.1f, %.1f) of %u "
      "pixels and at (%.1f, %.1f) of %u: only one lamp may be on, and a "
      "polished table mirrors it in the sphere, too (lay black paper around "
      "the sphere). Take it again, or leave it out here and among the pictures "
      "of the object.",
      i, light->x, light->y, light->n_pixels, other.x, other.y, other.n_pixels);
}

/* Of the brightest points of all pictures. */
static float
median_brightness (const ImkSpherelights *s)
{
  for (uint32_t i = 0; i < s->n_added; i++) {
    uint32_t n_darker = 0, n_equal = 0;

    for (uint32_t k = 0; k < s->n_added; k++) {
      n_darker += s->highlights[k].brightest < s->highlights[i].brightest;
      n_equal += s->highlights[k].brightest == s->highlights[i].brightest;
    }
    if (n_darker <= s->n_added / 2 && s->n_added / 2 < n_darker + n_equal)
      return s->highlights[i].brightest;
  }
  return 0;
}

bool
imk_spherelights_is_same (const ImkSpherelight *a, const ImkSpherelight *b)
{
  return hypot (a->x - b->x, a->y - b->y) < STILL;
}

/* The highlight of a window or a room lamp does not move. That of a rig does,
 * though a lamp may have been taken twice. */
static ImkStatus
check_moves (
    const ImkSpherelights *s, const ImkSpherelight *lights, ImkError *error)
{
  for (uint32_t i = 0; i < s->n_added; i++) {
    uint32_t same[3], n = 0;

    for (uint32_t k = i; k < s->n_added; k++)
      if (imk_spherelights_is_same (&lights[k], &lights[i])) {
        if (n < 3)
          same[n] = k;
        n++;
      }
    if (n >= 3)
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "The highlight does not move: in pictures %u, %u and %u, counted "
          "from 0, and in %u of %u in all, it is at (%.1f, %.1f). It is of a "
          "window or a room lamp, or the lamp of the rig did not change. Take "
          "these pictures again without other lights.",
          same[0], same[1], same[2], n, s->n_added, lights[i].x, lights[i].y);
  }
  return IMK_OK;
}

ImkStatus
imk_spherelights_finish (ImkSpherelights *self, ImkSpherelight *lights,
    ImkSphere *sphere, ImkError *error)
{
  ImkSphere s = self->config.sphere;
  float median = median_brightness (self);

  if (self->n_added == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no picture of the sphere to take lights from.");
  if (self->largest)
    IMK_TRY (find_sphere (self, &s, error));
  for (uint32_t i = 0; i < self->n_added; i++)
    IMK_TRY (solve_light (self, i, &s, median, &lights[i], error));
  IMK_TRY (check_moves (self, lights, error));
  *sphere = s;
  return IMK_OK;
}
