/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

/* How slopes become heights. */
typedef enum ImkNormalintegrateMethod {
  IMK_NORMALINTEGRATE_POISSON,           /* least squares of the slopes, free
                                          * borders, holes left out */
  IMK_NORMALINTEGRATE_FRANKOT_CHELLAPPA, /* the nearest periodic surface, holes
                                          * are flat */
  IMK_NORMALINTEGRATE_BILATERAL,         /* cuts where the height jumps: Cao
                                          * et al. 2022; holes left out */
} ImkNormalintegrateMethod;

/* The surface that is taken off the heights. */
typedef enum ImkNormalintegrateFlatten {
  IMK_NORMALINTEGRATE_FLATTEN_NONE,
  IMK_NORMALINTEGRATE_FLATTEN_PLANE,     /* 1, x, y */
  IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC, /* 1, x, y, x^2, x y, y^2 */
  IMK_NORMALINTEGRATE_FLATTEN_RADIAL,    /* 1, x, y, r^2, r^4 */
} ImkNormalintegrateFlatten;

/* The largest width and height. */
#define IMK_NORMALINTEGRATE_MAX_SIZE 65535u

/* The most points of known height. */
#define IMK_NORMALINTEGRATE_MAX_POINTS 64u

/* Terms of a surface: 1, x, y, x^2, x y, y^2, r^4. */
#define IMK_NORMALINTEGRATE_N_TERMS 7

/* A point of known height: pixels, (0, 0) the middle of the upper left one, y
 * down; mm. */
typedef struct ImkNormalintegratePoint {
  double x, y, height;
} ImkNormalintegratePoint;

/**
 * ImkNormalintegrateConfig: (a map of normals, and how it is integrated)
 * @size: set by imk_normalintegrate_config_init, see imk/api.h
 * @width, @height: of the frames, 1..IMK_NORMALINTEGRATE_MAX_SIZE
 * @type, @channels: u8 and u16 have n as 128 + 127 n and 32768 + 32767 n, f32
 *   as it is; x to the right, y up, z from the object to the camera
 * @colours: which channels are x, y and z
 * @y_down: the y of the normals points down
 * @method: see there
 * @pixel_aspect: width of a pixel over its height; 1e-3..1e3
 * @mm_per_pixel: width of a pixel, which gives heights their unit; above 0
 * @max_slope: tangent of the steepest surface that counts, above 0
 * @tolerance, @max_iterations: when the solution around holes is good enough;
 *   0..1, of which 1e-6 is the best there is, and 1..10000. Bilateral: the
 *   relative change of the energy between two rounds, and the most rounds. With
 *   1e-6 each round is exact to float32, else to 0.3 of its first residual
 * @grey_range: mm from the first to the last grey value, 0 for those of the
 *   surface
 * @grey_swapped: grey values in the other byte order than the machine's
 * @n_threads: of the CPU, 0 for one a processor
 * @stiffness: bilateral: k of equation 17 of Cao et al. 2022; 0..1e6, 0 for
 *   no cuts
 * @focal_pixels: focal length of the lens in widths of a pixel, whose axis is
 *   in the middle of the map; 0: all views are parallel. With a lens,
 *   @mm_per_pixel is the width of a pixel at the lowest point
 * @flatten: a surface that is fitted to the heights and taken off them, with
 *   little or no weight where it does not fit
 * @points, @n_points: of known height, to which the heights are moved: by an
 *   offset (1, 2), a plane (3 to 5) or a quadratic surface (from 6 on, to
 *   IMK_NORMALINTEGRATE_MAX_POINTS); by least squares, after @flatten. Copied.
 *   A point without a height in a map is left out there; a simpler surface does
 *   if the others do not tell its terms apart
 *
 * A pixel has no normal, and so no height, when z is not above 0, when it is
 * steeper than @max_slope, when a number is not finite, or shorter than 1e-6
 * (in u8 and u16, all 0 says so). Normals need not have length 1. */
typedef struct ImkNormalintegrateConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  uint32_t channels;
  uint32_t colours[3];
  bool y_down;
  ImkNormalintegrateMethod method;
  double pixel_aspect;
  double mm_per_pixel;
  double max_slope;
  double tolerance;
  uint32_t max_iterations;
  double grey_range;
  bool grey_swapped;
  uint32_t n_threads;
  double stiffness;
  double focal_pixels;
  ImkNormalintegrateFlatten flatten;
  uint32_t n_points;
  const ImkNormalintegratePoint *points;
} ImkNormalintegrateConfig;

/**
 * ImkNormalintegrateOutputs: (where the heights go)
 * @height: f32, 1 channel: mm above the lowest point, or with flatten above the
 *   fitted surface, or with points as they say; NaN where there is none
 * @grey: u16, 1 channel: 1 + (height - lowest) / grey_step, rounded, cut off at
 *   65535; 0 where there is none
 *
 * Those without data are not made. */
typedef struct ImkNormalintegrateOutputs {
  ImkImage height, grey;
} ImkNormalintegrateOutputs;

/**
 * ImkNormalintegrateSummary: (what came out)
 * @n_pixels, @n_valid: all, and those with a height
 * @n_iterations: of conjugate gradients; 1 where that is exact. Bilateral:
 *   rounds
 * @residual: what was left when they ended, relative to the beginning.
 *   Bilateral: the relative change of the energy in the last round
 * @highest: mm, the largest height
 * @grey_step: mm from one grey value to the next
 * @lowest: mm, the smallest height: 0 without flatten and points
 * @removed: what was taken off heights above the lowest point, by flatten and
 *   points together: mm * (1, x, y, x^2, x y, y^2, r^4) of mm to the right and
 *   up from the middle of the map; with a lens, where the surface is
 * @flatten_share: of the heights that fit the surface to within 4.685
 *   deviations; 0: they do not determine it, and nothing was taken off
 * @flatten_deviation: mm, of those that fit, robust
 * @point_residuals: mm, height less known height of each point; NaN for a point
 *   without a height, which is left out */
typedef struct ImkNormalintegrateSummary {
  uint64_t n_pixels, n_valid;
  uint32_t n_iterations;
  double residual;
  double highest;
  double grey_step;
  double lowest;
  double removed[IMK_NORMALINTEGRATE_N_TERMS];
  double flatten_share, flatten_deviation;
  double point_residuals[IMK_NORMALINTEGRATE_MAX_POINTS];
} ImkNormalintegrateSummary;

typedef struct ImkNormalintegrate ImkNormalintegrate;

/* 1x1 of u8 with 3 channels, Poisson, square pixels of 1 mm, slopes to 100,
 * tolerance 1e-4, 100 iterations, stiffness 2. */
IMK_API void imk_normalintegrate_config_init_sized (
    ImkNormalintegrateConfig *config, size_t size);
static inline void
imk_normalintegrate_config_init (ImkNormalintegrateConfig *config)
{
  imk_normalintegrate_config_init_sized (config, sizeof (*config));
}

/**
 * imk_normalintegrate_new: (for maps of one size)
 * @self: (out): free with imk_normalintegrate_free
 *
 * CUDA: the context is current, here and in all calls.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE,
 *   IMK_ERROR_DEVICE; @self untouched */
IMK_API ImkStatus imk_normalintegrate_new (ImkBackend backend,
    const ImkNormalintegrateConfig *config, ImkNormalintegrate **self,
    ImkError *error);

/* For the next map: all but width, height, type, channels, colours,
 * pixel_aspect and n_threads, which stay as they were. */
IMK_API ImkStatus imk_normalintegrate_update (ImkNormalintegrate *self,
    const ImkNormalintegrateConfig *config, ImkError *error);

/**
 * imk_normalintegrate_process: (heights from normals)
 * @in: as the config says
 * @outputs: of the same size
 * @summary: (out): what came out
 * @stream: cudaStream_t, NULL for cpu; the call waits for the device
 *
 * Poisson: z minimises the sum over neighbours a, b along x (and y likewise) of
 *   (z_b - z_a + (n_a,x + n_b,x) / (n_a,z + n_b,z))^2,
 * over those of which both have a normal; along y times the square of
 * pixel_aspect, with the fraction divided by it. The fraction is the slope of
 * the chord between the two, exact where the section is a circle or a straight
 * line. Its normal equations are a Poisson equation with free borders
 * (Neumann), which the cosine transform diagonalises (Simchony, Chellappa and
 * Shao 1990). With holes they are solved by conjugate gradients with that
 * transform as preconditioner (Ghiglia and Romero 1994): 5 to 10 iterations for
 * holes of any size, until sqrt (r' M r) has fallen by @tolerance. What holes
 * cut off from the rest has a level of its own, which the normals do not tell.
 *
 * Frankot-Chellappa (1988): Z = -i (u P + v Q) / (u^2 + v^2) of the spectra of
 * the slopes p = -n_x / n_z and q, which are 0 in holes. Exact for periodic
 * surfaces; one that is not is bent at the borders.
 *
 * Bilateral (Cao et al. 2022): each pixel has an equation n_z (z_b - z_a) + n_x
 *   for the neighbour before and for the one after, of weights w and 1 - w with
 *   w = 1 / (1 + exp (k (after^2 - before^2))) from the steps n_z (z_b - z_a)
 * of the round before; 1/2 in the first. A millionth of each weight remains, so
 * that a surface that is cut off all around has a level, which means nothing.
 * Rounds begin where the one before ended, with a multigrid cycle as
 * preconditioner.
 *
 * With a lens, z is -focal_pixels log (distance) while it is solved, by any
 * method: its slopes are -n_x / v and -n_y / v, where v is n_z less the share
 * of n that is across the view of the pixel (Quéau, Durou and Aujol 2018,
 * equation 11). Slopes of max_slope are those.
 *
 * Flatten takes some 32768 pixels of a regular grid, starts from the least
 * median of squares (Rousseeuw 1984), so that up to half of them may belong to
 * something else, and ends with Tukey's biweight of 4.685 robust standard
 * deviations. A point has the height between the middles of four pixels.
 *
 * CPU and CUDA agree to 1e-4 of the highest point (bilateral: in the first
 * rounds, as later ones multiply the rounding), and each gives the same
 * bytes every time, for any number of threads.
 * Returns: IMK_ERROR_IMAGE, also for a point without a height, nothing written;
 *   IMK_ERROR_MEMORY, IMK_ERROR_DEVICE, @outputs undefined */
IMK_API ImkStatus imk_normalintegrate_process (ImkNormalintegrate *self,
    const ImkImage *in, ImkNormalintegrateOutputs *outputs,
    ImkNormalintegrateSummary *summary, void *stream, ImkError *error);

/* @self may be NULL. */
IMK_API void imk_normalintegrate_free (ImkNormalintegrate *self);

IMK_END_DECLS
