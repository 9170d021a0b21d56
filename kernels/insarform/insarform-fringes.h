/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The local fringe rate of two images, and a smooth phase with that rate.
 *
 * Nodes are every W / 2 samples of both axes, from W / 2 to the first whose
 * window of W x W samples around it reaches the end of the image; W is the
 * fringe_window. The last windows are moved into the image. Of p = s1 conj (s2)
 * / |s1 s2| there (0 without data) the rate (u, v), cycles a sample, is the
 * largest bin of the transform, P = |sum p exp (-i 2 pi (u x + v y))|^2. It is
 * refined by the phases between the sums Q of the four quarters of the window,
 * turned by that bin: u += arg (conj (Q00) Q10 + conj (Q01) Q11) / (2 pi W /
 * 2), v likewise. A node counts where P > 20 n for n samples with data: noise
 * has P > 20 n in one window of 10^5 for W = 64. Other nodes have the rate
 * between those to the left and right that count, that of the node above where
 * none does. Rows before the first with a node that counts have its rates.
 * Rates are known up to whole cycles a sample: they get those that bring them
 * nearest to the mean of the node to the left that counts and of the three
 * above.
 *
 * The phases f of a row of nodes are those with the least
 *   sum (f_i - above_i)^2 + sum (f_(i+1) - f_i - step_i)^2,
 * above_i and step_i being the integral of the rate from the node above and
 * from node to node (mean of both ends). Between nodes the phase is a Ferguson
 * patch: cubic Hermite of the phases and rates of the four nodes, without
 * twist. Outside the nodes it is linear. */
#pragma once

#include "imk/insarform.h"

enum { IMK_INSARFORM_SIGNIFICANT = 20 };

typedef struct ImkInsarformFringes ImkInsarformFringes;

/* @config: checked */
ImkStatus imk_insarform_fringes_new (const ImkInsarformConfig *config,
    ImkInsarformFringes **self, ImkError *error);
void imk_insarform_fringes_free (ImkInsarformFringes *self);
void imk_insarform_fringes_rewind (ImkInsarformFringes *self);

/* Returns: lines that can be pushed now */
uint32_t imk_insarform_fringes_room (const ImkInsarformFringes *self);

/* Copies lines, no more than there is room for, and measures. */
void imk_insarform_fringes_push (ImkInsarformFringes *self,
    const ImkImage *reference, const ImkImage *secondary);

/* Returns: whether the next line has a phase */
bool imk_insarform_fringes_is_ready (const ImkInsarformFringes *self);

/* Up to @n of the next lines of both images and their phases, valid until the
 * next push or pull. */
void imk_insarform_fringes_pull (ImkInsarformFringes *self, uint32_t n,
    ImkImage *reference, ImkImage *secondary, ImkImage *phase);

/* --- shared with the reference -------------------------------------------- */

/* A row of nodes: rates in rad a sample along x and y, whether they count, and
 * phases. */
typedef struct ImkInsarformNodes {
  uint32_t n, step; /* nodes, samples from one to the next */
  double *rate[2], *phase;
  bool *counts;
  bool is_known; /* a node of this row or of one above counts */
} ImkInsarformNodes;

/* Gives whole cycles to rates, rates to nodes that do not count, then phases to
 * all.
 * @above: (nullable); gets the rates of @self if none counted so far;
 * @scratch: n numbers */
void imk_insarform_nodes_integrate (
    ImkInsarformNodes *self, ImkInsarformNodes *above, double *scratch);

/* Returns: how many nodes an axis of @size samples has */
static inline uint32_t
imk_insarform_n_nodes (uint32_t size, uint32_t window)
{
  return (size - window + window / 2 - 1) / (window / 2) + 1;
}

/* Returns: the first sample of the window of node @i */
static inline uint32_t
imk_insarform_node_start (uint32_t i, uint32_t size, uint32_t window)
{
  uint32_t at = i * (window / 2);

  return at < size - window ? at : size - window;
}

/* The phases of a line at the share @t of the way from @above to @below, which
 * are equal where there is one row: then @t is below 0 or above 1.
 * @scratch: 2 n numbers; @to: @width phases */
void imk_insarform_nodes_interpolate (const ImkInsarformNodes *above,
    const ImkInsarformNodes *below, double t, double *scratch, uint32_t width,
    double *to);
