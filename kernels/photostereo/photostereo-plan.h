/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the files that stand before the backends. */
#pragma once

#include "core/config.h"
#include "photostereo/photostereo-backend.h"

/* --- photostereo-check.c: is this configuration one? */

ImkStatus imk_photostereo_check_config (
    const ImkPhotostereoConfig *config, ImkError *error);
/* What imk_photostereo_update () takes of it. */
ImkStatus imk_photostereo_check_params (
    const ImkPhotostereoConfig *config, ImkError *error);
/* Lights, model and plane. */
ImkStatus imk_photostereo_check_geometry (
    const ImkPhotostereoConfig *config, ImkError *error);

/* --- photostereo-plan.c: of a configuration that is one. */

/* Returns: of all lights, to be freed; NULL with @error set */
ImkPhotostereoLamp *imk_photostereo_make_lamps (
    const ImkPhotostereoConfig *config, ImkError *error);
/* @mean: imk_photostereo_mean_distance () */
ImkPhotostereoLamp imk_photostereo_make_lamp (
    const ImkPhotostereoConfig *config, uint32_t i, double mean);
/* Of the lights from the centre of the working plane. */
double imk_photostereo_mean_distance (const ImkPhotostereoConfig *config);
/* Returns: not AUTO */
ImkPhotostereoModel imk_photostereo_model_of (
    const ImkPhotostereoConfig *config);
/* Returns: the sample that counts as 1 */
uint32_t imk_photostereo_maximum_of (const ImkPhotostereoConfig *config);

/* Without frames and tables. */
ImkPhotostereoPlan imk_photostereo_make_plan (
    const ImkPhotostereoConfig *config, const ImkPhotostereoLamp *lamps);
ImkPhotostereoParams imk_photostereo_params_of (
    const ImkPhotostereoConfig *config, uint32_t n_lights);

/* The light vector at a point of the plane, in float64; for what is not solved
 * but foretold. */
void imk_photostereo_light_vector (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoLamp *lamp, double x, double y, double vector[3]);

/* --- photostereo-frames.c: what is read once, in planes. */

typedef struct ImkPhotostereoFrames {
  float *table, *dark, *white;
  uint8_t *mask;
  double unmeasured; /* see imk_photostereo_unmeasured () */
} ImkPhotostereoFrames;

/* Fills @frames and those members of @plan that point to them. After a failure,
 * too, @frames is to be cleared. */
ImkStatus imk_photostereo_read_frames (const ImkPhotostereoConfig *config,
    ImkPhotostereoPlan *plan, ImkPhotostereoFrames *frames, ImkError *error);
void imk_photostereo_frames_clear (ImkPhotostereoFrames *frames);

/* --- photostereo-judge.c: does each picture agree with the others? */

/* Some pixels of each picture of a set. */
typedef struct ImkPhotostereoProbes ImkPhotostereoProbes;

/* @plan: with its frames, in create () of the object
 * Returns: NULL without memory */
ImkPhotostereoProbes *imk_photostereo_probes_new (
    const ImkPhotostereoPlan *plan);

/* @frame: in host memory, each band of a light once */
void imk_photostereo_probes_add (ImkPhotostereoProbes *self,
    const ImkPhotostereoPlan *plan, const ImkPhotostereoLamp *lamp,
    const ImkImage *frame, uint32_t light, uint32_t band);

/* @misfits: see imk_photostereo_judge (); of @lights alone */
ImkStatus imk_photostereo_probes_judge (const ImkPhotostereoProbes *self,
    const ImkPhotostereoPlan *plan, const ImkPhotostereoLamp *lamps,
    const uint32_t *lights, uint32_t n_lights, double *misfits,
    ImkError *error);

/* A new set begins. */
void imk_photostereo_probes_reset (ImkPhotostereoProbes *self);
void imk_photostereo_probes_free (ImkPhotostereoProbes *self);

/* --- photostereo-next.c: which picture is worth taking next? */

/* @normals: at every @step_x-th pixel of every @step_y-th row, from the middle
 *   of the first step on; (0, 0, 0) where there is none
 * @present: of each light, whether its picture is there; not of all
 * Returns: see imk_photostereo_next_light () */
uint32_t imk_photostereo_choose_light (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoLamp *lamps, const bool *present, float min_condition,
    const float *normals, uint32_t step_x, uint32_t step_y);
