/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What limits of further mirrors leave of the commands, in coefficients: the
 * controller is to know it, or it winds up. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "imk/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ImkShwindupMirror: (a mirror that is sent T c)
 * @n_outputs: its commands
 * @matrix: T [n_commands][n_outputs], transposed
 * @lack: [n_outputs]: what limits have added to T c */
typedef struct ImkShwindupMirror {
  uint32_t n_outputs;
  const float *matrix, *lack;
} ImkShwindupMirror;

/**
 * imk_shwindup_find: (back-calculation through several mirrors)
 * @mirrors: [n_mirrors]
 * @modes: (nullable): M [n_commands][n_modes]; without it modes are commands
 * @change: (out): [n_modes]: toward x of the least squares
 *   sum over the mirrors |T M x - lack|^2
 *
 * Three steps of conjugate gradients on the normal equations: up to 6 products
 * with T and M. What they leave is taken back after the next frames. So with up
 * to three different singular values of T M they are the solution, which has
 * the least norm.
 * Source: Bjorck, Numerical Methods for Least Squares Problems, algorithm
 * 7.4.1.
 * Returns: whether @change is complete and finite; false also without memory */
IMK_API bool imk_shwindup_find (const ImkShwindupMirror *mirrors,
    uint32_t n_mirrors, const float *modes, uint32_t n_commands,
    uint32_t n_modes, float *change);

#ifdef __cplusplus
}
#endif
