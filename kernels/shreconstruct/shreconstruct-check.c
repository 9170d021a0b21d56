/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is refused. Comparisons are written so that a NaN fails them. */
#include <float.h>

#include "core/limits.h"
#include "shreconstruct/shreconstruct-object.h"

static ImkStatus
check_numbers (
    const char *name, const float *numbers, size_t n, ImkError *error)
{
  for (size_t i = 0; numbers && i < n; i++)
    if (!isfinite (numbers[i]))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Number %zu of the %s is %g; all must be finite.", i, name,
          (double) numbers[i]);
  return IMK_OK;
}

static ImkStatus
check_terms (const char *name, const double *terms, uint32_t n,
    uint32_t n_modes, ImkError *error)
{
  if (n > TERMS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The controller has %u %s terms; it can have up to %d.", n, name,
        TERMS);
  for (size_t i = 0; i < (size_t) n * n_modes; i++)
    if (!isfinite (terms[i]))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The %s term %zu of mode %zu is %g; all must be finite.", name, i % n,
          i / n, terms[i]);
  return IMK_OK;
}

static ImkStatus
check_sizes (const ImkShreconstructConfig *c, ImkError *error)
{
  if (c->n_cells - 1 >= IMK_SHRECONSTRUCT_MAX_CELLS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u cells; there can be 1 to %d.", c->n_cells,
        IMK_SHRECONSTRUCT_MAX_CELLS);
  if (c->n_commands - 1 >= IMK_SHRECONSTRUCT_MAX_COMMANDS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u commands; there can be 1 to %d.", c->n_commands,
        IMK_SHRECONSTRUCT_MAX_COMMANDS);
  if (c->n_modes == 0 || c->n_modes > c->n_commands ||
      (!c->modes && c->n_modes != c->n_commands))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u modes and %u commands; %s.", c->n_modes, c->n_commands,
        c->modes ? "there can be 1 mode to as many as commands"
                 : "without a matrix of modes both are the same");
  if (!c->matrix)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "There is no control matrix.");
  if ((unsigned) c->storage > IMK_SHRECONSTRUCT_STORAGE_BF16)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no storage of the number %d.", (int) c->storage);
  if ((unsigned) c->invalid > IMK_SHRECONSTRUCT_INVALID_EXCLUDE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no policy of the number %d for invalid cells.",
        (int) c->invalid);
  if ((unsigned) c->dark > IMK_SHRECONSTRUCT_DARK_REFERENCE)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no policy of the number %d for low light.", (int) c->dark);
  return IMK_OK;
}

static ImkStatus
check_control (const ImkShreconstructConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"gain", c->gain, 0, 10},
      {"leak", c->leak, 0, 1},
      {"min-valid", c->min_valid, 0, 1},
      {NULL},
  };
  ImkStatus status =
      check_terms ("feedback", c->feedback, c->n_feedback, c->n_modes, error);

  if (status == IMK_OK)
    status =
        check_terms ("forward", c->forward, c->n_forward, c->n_modes, error);
  if (status == IMK_OK)
    status = imk_limits_check (limits, error);
  if (status != IMK_OK)
    return status;
  if (!(c->minimum <= c->maximum))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The smallest command is %g and the largest %g; the smallest cannot be "
        "above the largest.",
        c->minimum, c->maximum);
  if (c->minimum > FLT_MAX || c->maximum < -FLT_MAX)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "No command of 32 bits is between minimum, %g, and maximum, %g.",
        c->minimum, c->maximum);
  if (!(c->slew > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The slew limit is %g; it must be above 0.", c->slew);
  if (c->exclude_cells == 0)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "exclude-cells is 0; it must be 1 or more.");
  return IMK_OK;
}

ImkStatus
imk_shreconstruct_check_controller (
    const ImkShreconstructConfig *c, ImkError *error)
{
  ImkStatus status = check_control (c, error);

  if (status == IMK_OK)
    status = check_numbers (
        "slope offsets", c->offsets, 2 * (size_t) c->n_cells, error);
  if (status == IMK_OK)
    status = check_numbers (
        "reference commands", c->reference, c->n_commands, error);
  return status;
}

/* A valid slope makes no inf, and so no NaN of inf and -inf. */
static ImkStatus
check_sums (const ImkShreconstructConfig *c, ImkError *error)
{
  const uint32_t n_slopes = 2 * c->n_cells;

  for (uint32_t m = 0; m < c->n_modes; m++) {
    const float *row = c->matrix + (size_t) m * n_slopes;
    double sum = 0;

    for (uint32_t i = 0; i < n_slopes; i++)
      sum += fabs ((double) row[i]);
    if (sum * IMK_SHRECONSTRUCT_MAX_SLOPE > FLT_MAX)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Row %u of the control matrix has numbers of %g in sum; products "
          "with slopes would be too large for a float32. Check the scale of "
          "the matrix.",
          m, sum);
  }
  return IMK_OK;
}

ImkStatus
imk_shreconstruct_check_config (
    const ImkShreconstructConfig *c, ImkError *error)
{
  size_t n_slopes = 2 * (size_t) c->n_cells;
  ImkStatus status = check_sizes (c, error);

  if (status == IMK_OK)
    status = imk_shreconstruct_check_controller (c, error);
  if (status == IMK_OK)
    status = check_numbers (
        "control matrix", c->matrix, n_slopes * c->n_modes, error);
  if (status == IMK_OK)
    status = check_sums (c, error);
  if (status == IMK_OK)
    status = check_numbers ("matrix of modes", c->modes,
        (size_t) c->n_commands * c->n_modes, error);
  if (status == IMK_OK)
    status = check_numbers ("interaction matrix", c->interaction,
        n_slopes * (c->interaction_is_modal ? c->n_modes : c->n_commands),
        error);
  if (status == IMK_OK && c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE &&
      !c->interaction)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "invalid-policy=exclude needs the interaction matrix that the control "
        "matrix was made from. Set interaction-location, or use the policy "
        "zero or hold.");
  if (status == IMK_OK && c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE &&
      c->storage != IMK_SHRECONSTRUCT_STORAGE_F32)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "invalid-policy=exclude needs the control matrix as it was made, not "
        "rounded to 16 bits. Set matrix-storage=f32, or use the policy zero or "
        "hold.");
  return status;
}
