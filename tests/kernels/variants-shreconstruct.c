/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shreconstruct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shreconstruct/shreconstruct-private.h"
#include "shreconstruct/shreconstruct-reference.h"
#include "variants.h"

enum { OUT, SLOPES, FLAGS, N_FRAMES = 12 };

typedef struct Case {
  VariantCase v;
  ImkShreconstructConfig config;
  float *matrix, *modes, *offsets, *reference, *interaction;
  uint8_t *dead;
  double *feedback, *forward;
  double scale; /* k of R = k P D^T */
  ImkShreconstruct *kernel;
  float *commands; /* [N_FRAMES][n_commands]: what came out */
} Case;

static float *
draw_floats (uint64_t *seed, size_t n, double most)
{
  float *values = malloc (n * sizeof (*values));

  for (size_t i = 0; i < n; i++)
    values[i] = (float) (most * (2 * variant_uniform (seed) - 1));
  return values;
}

/* Feedback whose absolute values add up to less than 1 is stable. */
static double *
draw_terms (uint64_t *seed, uint32_t n_modes, uint32_t n_terms, double most)
{
  double *terms = malloc (n_modes * (n_terms + 1) * sizeof (*terms));

  for (uint32_t i = 0; i < n_modes * n_terms; i++)
    terms[i] = most / n_terms * (2 * variant_uniform (seed) - 1);
  return terms;
}

static void
draw_control (Case *c, uint64_t *seed)
{
  ImkShreconstructConfig *k = &c->config;
  const ImkShreconstructInvalid policies[] = {
      IMK_SHRECONSTRUCT_INVALID_ZERO, IMK_SHRECONSTRUCT_INVALID_HOLD};

  k->gain = variant_uniform (seed);
  k->leak = 0.5 * variant_uniform (seed);
  if (variant_between (seed, 0, 1)) {
    k->n_feedback = variant_between (seed, 0, IMK_SHRECONSTRUCT_MAX_TERMS);
    k->n_forward = variant_between (seed, 1, IMK_SHRECONSTRUCT_MAX_TERMS);
    k->feedback = c->feedback =
        draw_terms (seed, k->n_modes, k->n_feedback, 0.95);
    k->forward = c->forward = draw_terms (seed, k->n_modes, k->n_forward, 1);
  }
  if (variant_between (seed, 0, 1))
    k->slew = 0.2;
  if (variant_between (seed, 0, 1)) {
    k->minimum = -0.3;
    k->maximum = 0.4;
  }
  k->invalid = policies[variant_between (seed, 0, 1)];
  k->storage = (ImkShreconstructStorage) variant_between (
      seed, IMK_SHRECONSTRUCT_STORAGE_F32, IMK_SHRECONSTRUCT_STORAGE_BF16);
  k->dark = variant_between (seed, 0, 1) ? IMK_SHRECONSTRUCT_DARK_HOLD
                                         : IMK_SHRECONSTRUCT_DARK_REFERENCE;
  k->min_valid = variant_between (seed, 0, 1) ? 0.7 : 0;
}

/* Returns: D M [2 n_cells][n_modes], to be freed */
static float *
interaction_of_modes (const ImkShreconstructConfig *k)
{
  size_t n_slopes = 2 * (size_t) k->n_cells, n = k->n_modes;
  float *values = calloc (n_slopes * n, sizeof (*values));

  for (size_t i = 0; i < n_slopes; i++)
    for (size_t m = 0; m < n; m++) {
      double sum = 0;

      for (size_t j = 0; k->modes && j < k->n_commands; j++)
        sum += (double) k->interaction[i * k->n_commands + j] *
               k->modes[j * n + m];
      values[i * n + m] = k->modes ? (float) sum : k->interaction[i * n + m];
    }
  return values;
}

/* R = k (D^T D + a I)^-1 D^T, which is the pseudo-inverse of D above sqrt (a)
 * I without its last columns. a is 0 where D has many more slopes than modes.
 */
static void
invert_interaction (Case *c, const float *d)
{
  const ImkShreconstructConfig *k = &c->config;
  size_t n_slopes = 2 * (size_t) k->n_cells, n = k->n_modes;
  size_t n_rows = n_slopes + n;
  float *rows = calloc (n_rows * n, sizeof (*rows));
  double *inverse = malloc (n_rows * n * sizeof (*inverse)), squares = 0;
  const ImkShreconstructConfig above = {
      .n_modes = k->n_modes, .n_commands = (uint32_t) n_rows, .modes = rows};

  memcpy (rows, d, n_slopes * n * sizeof (*rows));
  for (size_t i = 0; i < n_slopes * n; i++)
    squares += (double) d[i] * d[i];
  for (size_t m = 0; n > k->n_cells && m < n; m++)
    rows[(n_slopes + m) * n + m] = (float) sqrt (squares / n);
  test_check (imk_shreconstruct_invert (&above, inverse), "D is dependent");
  for (size_t m = 0; m < n; m++)
    for (size_t i = 0; i < n_slopes; i++)
      c->matrix[m * n_slopes + i] =
          (float) (c->scale * inverse[m * n_rows + i]);
  free (inverse);
  free (rows);
}

static void
draw_interaction (Case *c, uint64_t *seed)
{
  const double scales[] = {1, 0.4, 3};
  ImkShreconstructConfig *k = &c->config;
  size_t n_slopes = 2 * (size_t) k->n_cells;
  float *of_modes;

  k->invalid = IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
  k->storage = IMK_SHRECONSTRUCT_STORAGE_F32;
  k->exclude_cells = 2 * k->n_cells;
  c->scale = scales[variant_between (seed, 0, 2)];
  k->interaction = c->interaction =
      draw_floats (seed, n_slopes * k->n_commands, 1);
  of_modes = interaction_of_modes (k);
  invert_interaction (c, of_modes);
  k->interaction_is_modal = k->modes && variant_between (seed, 0, 1);
  if (k->interaction_is_modal)
    memcpy (
        c->interaction, of_modes, n_slopes * k->n_modes * sizeof (*of_modes));
  free (of_modes);
}

static void
draw_dead (Case *c, uint64_t *seed)
{
  c->config.dead = c->dead = malloc (c->config.n_commands);
  for (uint32_t i = 0; i < c->config.n_commands; i++)
    c->dead[i] = variant_between (seed, 0, 9) == 0;
}

static void
draw_frames (Case *c, uint64_t *seed)
{
  const ImkShreconstructConfig *k = &c->config;

  for (uint32_t t = 0; t < N_FRAMES; t++) {
    float *slopes =
        (float *) (void *) ((uint8_t *) c->v.host[SLOPES].image.data +
                            t * c->v.host[SLOPES].image.stride);
    uint8_t *flags = (uint8_t *) c->v.host[FLAGS].image.data +
                     t * c->v.host[FLAGS].image.stride;
    uint32_t bad = variant_between (seed, 0, 50); /* percent of cells */
    uint32_t left = k->interaction ? k->n_cells / 2 : k->n_cells;

    for (uint32_t i = 0; i < 2 * k->n_cells; i++)
      slopes[i] = (float) (2 * variant_uniform (seed) - 1);
    for (uint32_t i = 0; i < k->n_cells; i++) {
      bool is_bad = variant_between (seed, 0, 99) < bad && left > 0;

      flags[i] = is_bad ? 2 : 4;
      left -= is_bad;
      if (is_bad && variant_between (seed, 0, 9) == 0)
        slopes[i] = NAN;
    }
  }
}

static void
draw (void *data, uint64_t *seed, bool typical, char *name)
{
  Case *c = data;
  ImkShreconstructConfig *k = &c->config;
  double most;

  imk_shreconstruct_config_init (k);
  k->n_cells = typical ? 1024 : variant_between (seed, 1, 150);
  k->n_commands = typical ? 1000 : variant_between (seed, 1, 150);
  k->n_modes = k->n_commands;
  most = 1 / sqrt (k->n_cells);
  if (!typical && variant_between (seed, 0, 1))
    k->n_modes = variant_between (seed, 1, k->n_commands);
  k->matrix = c->matrix =
      draw_floats (seed, (size_t) k->n_modes * 2 * k->n_cells, most);
  if (k->n_modes < k->n_commands)
    k->modes = c->modes = draw_floats (
        seed, (size_t) k->n_commands * k->n_modes, 1 / sqrt (k->n_modes));
  if (!typical)
    draw_control (c, seed);
  if (!typical && variant_between (seed, 0, 1))
    draw_interaction (c, seed);
  if (!typical && variant_between (seed, 0, 3) == 0)
    draw_dead (c, seed);
  k->offsets = c->offsets = draw_floats (seed, 2 * k->n_cells, 0.1);
  k->reference = c->reference = draw_floats (seed, k->n_commands, 0.1);
  k->n_threads = 1;
  c->v.host[OUT] = test_image_new (IMK_TYPE_F32, k->n_commands, N_FRAMES, 1, 4);
  c->v.host[SLOPES] =
      test_image_new (IMK_TYPE_F32, 2 * k->n_cells, N_FRAMES, 1, 0);
  c->v.host[FLAGS] = test_image_new (IMK_TYPE_U8, k->n_cells, N_FRAMES, 1, 0);
  c->v.expected = test_image_new (IMK_TYPE_F32, k->n_commands, N_FRAMES, 1, 0);
  draw_frames (c, seed);
  snprintf (name, VARIANT_MAX_NAME,
      "%u cells, %u of %u modes, %u + %u terms, limits %g to %g, slew %g, "
      "invalid %d, dark %d below %g, storage %d%s",
      k->n_cells, k->n_modes, k->n_commands, k->n_feedback, k->n_forward,
      k->minimum, k->maximum, k->slew, k->invalid, k->dark, k->min_valid,
      k->storage, k->dead ? ", dead ones" : "");
}

static void *
row (const TestImage *image, uint32_t y)
{
  return (uint8_t *) image->image.data + y * image->image.stride;
}

/* Expected is what the rounded matrix gives. */
static void
expect (void *data)
{
  Case *c = data;
  const ImkShreconstructConfig *k = &c->config;
  size_t past = (IMK_SHRECONSTRUCT_MAX_TERMS + 1) * (size_t) k->n_modes;
  double *inverse =
      calloc ((size_t) k->n_modes * k->n_commands, sizeof (double));
  double *commands = calloc (k->n_commands, sizeof (double));
  ImkShreconstructPast p = {.q = calloc (past, sizeof (double)),
      .u = calloc (past, sizeof (double)),
      .slopes_before = calloc (2 * k->n_cells, sizeof (double)),
      .commands_before = calloc (k->n_commands, sizeof (double)),
      .c0_before = calloc (k->n_commands, sizeof (double)),
      .inverse = inverse,
      .scale = c->scale};

  imk_shreconstruct_round (k->storage, c->matrix, k->n_modes, 2 * k->n_cells);
  if (k->modes)
    imk_shreconstruct_reference_invert (k, inverse);
  for (uint32_t i = 0; i < k->n_commands; i++)
    p.commands_before[i] = p.c0_before[i] = k->reference[i];
  for (uint32_t t = 0; t < N_FRAMES; t++) {
    float *out = row (&c->v.expected, t);

    imk_shreconstruct_reference (k, &p, row (&c->v.host[SLOPES], t),
        row (&c->v.host[FLAGS], t), commands);
    for (uint32_t i = 0; i < k->n_commands; i++)
      out[i] = (float) commands[i];
  }
  free (inverse);
  free (commands);
  free (p.q);
  free (p.u);
  free (p.slopes_before);
  free (p.commands_before);
  free (p.c0_before);
}

/* A row of images that lie behind each other. */
static ImkImage
row_image (const ImkImage *image, uint32_t y)
{
  ImkImage one = *image;

  one.data = (uint8_t *) image->data + y * image->stride;
  one.height = 1;
  return one;
}

static ImkStatus
process (void *data, ImkError *error)
{
  Case *c = data;
  ImkStatus status = IMK_OK;

  imk_shreconstruct_reset (c->kernel);
  for (uint32_t t = 0; t < N_FRAMES && status == IMK_OK; t++) {
    const ImkImage slopes = row_image (&c->v.at[SLOPES], t);
    const ImkImage flags = row_image (&c->v.at[FLAGS], t);

    float *commands = c->commands + (size_t) t * c->config.n_commands;

    status = imk_shreconstruct_process (
        c->kernel, &slopes, &flags, commands, NULL, NULL, error);
    memcpy (row (&c->v.host[OUT], t), commands,
        c->config.n_commands * sizeof (*commands));
  }
  return status;
}

/* A device refuses to take cells out. */
static ImkStatus
open (void *data, ImkBackend backend, ImkError *error)
{
  Case *c = data;

  if (!c->commands)
    c->commands = calloc (
        (size_t) N_FRAMES * c->config.n_commands, sizeof (*c->commands));
  if (backend == IMK_BACKEND_CUDA &&
      c->config.invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE) {
    test_error (imk_shreconstruct_new (
                    backend, &c->config, &c->kernel, test_new_error ()),
        IMK_ERROR_UNAVAILABLE, "invalid-policy=exclude");
    c->config.invalid = IMK_SHRECONSTRUCT_INVALID_ZERO;
    expect (c);
  }
  return imk_shreconstruct_new (backend, &c->config, &c->kernel, error);
}

static double
difference (void *data)
{
  Case *c = data;
  double worst = 0, squares = 0;

  for (uint32_t t = 0; t < N_FRAMES; t++) {
    const float *out = c->commands + (size_t) t * c->config.n_commands;
    const float *expected = row (&c->v.expected, t);

    for (uint32_t i = 0; i < c->config.n_commands; i++) {
      worst = variant_larger (worst, fabs ((double) out[i] - expected[i]));
      squares += (double) expected[i] * expected[i];
    }
  }
  return worst /
         (1e-5 * sqrt (squares / (N_FRAMES * c->config.n_commands)) + 1e-12);
}

static void
clear (void *data)
{
  Case *c = data;

  free (c->commands);
  free (c->matrix);
  free (c->modes);
  free (c->offsets);
  free (c->reference);
  free (c->interaction);
  free (c->dead);
  free (c->feedback);
  free (c->forward);
}

VARIANT_TABLE (shreconstruct, .promise = "1e-5 of the rms of the commands",
    .cuda = true, .same_bytes = true, .n_cases = 100, .clear = clear)
