/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An object of imk/shreconstruct.h, as the files of its functions share it. */
#pragma once

#include "imk/device.h"
#include "shreconstruct/cpu/loops.h"
#include "shreconstruct/shreconstruct-private.h"

enum { TERMS = IMK_SHRECONSTRUCT_MAX_TERMS };

struct ImkShreconstruct {
  const ImkShreconstructBackend *backend;
  const ImkDevice *device; /* NULL: the CPU, or a device that was left */
  void *backend_state;     /* NULL: a device that was left */
  const ImkShreconstructLoops *loops;
  ImkShreconstructConfig config; /* as a backend takes it */
  float *modes;                  /* (nullable): M, for its pseudo-inverse */
  float *inverse; /* (nullable): pinv (M), where commands have limits */
  ImkShreconstructHeld *held; /* (nullable): where invalid cells are held */

  /* of the controller, in one block that begins at @feedback */
  double *feedback, *forward; /* [mode][term], also those of gain and leak */
  float *offsets;
  float *sent; /* [n_commands]: the last ones that left */
  float *c0;   /* [n_commands]: the reference commands within the limits */
  float *c0_of_frame; /* of the frame at hand, on the way to @c0 */
  float *c0_of_sent;  /* that @sent is about */
  bool c0_is_moving;  /* one of these two is not @c0 yet */
  uint8_t *dead;

  /* the state, in one block: page-locked for a device */
  uint8_t *block;
  ImkShreconstructFrame frame; /* the state as the backend sees it */
  double *q, *u;               /* as the host does, like the next ones */
  float *slopes, *commands;
  ImkShreconstructCounts *counts;
};

/* --- what is refused: shreconstruct-check.c ------------------------------- */

ImkStatus imk_shreconstruct_check_config (
    const ImkShreconstructConfig *config, ImkError *error);
/* What imk_shreconstruct_update () takes. */
ImkStatus imk_shreconstruct_check_controller (
    const ImkShreconstructConfig *config, ImkError *error);

/* --- the controller: shreconstruct-controller.c --------------------------- */

/* Makes room for the controller of @config, and copies it. */
ImkStatus imk_shreconstruct_make_controller (ImkShreconstruct *self,
    const ImkShreconstructConfig *config, ImkError *error);
/* @inverse: (out): pinv (M) [n_modes][n_commands], to be freed
 * Returns: IMK_ERROR_CONFIG where the modes are not independent */
ImkStatus imk_shreconstruct_make_inverse (
    const ImkShreconstructConfig *config, float **inverse, ImkError *error);

/* --- the commands that were sent, and the way to c0: shreconstruct-c0.c --- */

/* What was sent under other limits is the last command within these. */
void imk_shreconstruct_set_sent (ImkShreconstruct *self, const float *sent);

/* The way to c0 begins at @from, about which commands were sent. */
void imk_shreconstruct_begin_way_to_c0 (
    ImkShreconstruct *self, const float *from);
/* Before a frame. */
ImkStatus imk_shreconstruct_step_to_c0 (
    ImkShreconstruct *self, ImkError *error);
/* After a frame that was sent. */
void imk_shreconstruct_end_step_to_c0 (ImkShreconstruct *self);

/* Takes the steps of dead actuators, for which backends have none. */
void imk_shreconstruct_step_dead_to_c0 (ImkShreconstruct *self);

/* A dark frame on the way to c0. */
void imk_shreconstruct_rest_in_the_dark (ImkShreconstruct *self);
