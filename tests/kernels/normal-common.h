/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of normalintegrate share: maps of normals in float64, and
 * running a kernel over them. */
#pragma once

#include "kernel-test.h"
#include "imk/normalintegrate.h"

typedef struct Map {
  uint32_t width, height;
  double *n;    /* [height][width][3], y up */
  double *z;    /* [height][width], the truth, in pixels; NaN outside */
  bool *inside; /* where there is a normal */
} Map;

Map map_new (uint32_t width, uint32_t height);
void map_free (Map *m);
TEST_DEFINE_AUTO (Map, map_free)
size_t map_n_pixels (const Map *m);

/* The surface of slopes p = dz/dx and q = dz/dy, y up. */
void map_set (Map *m, uint32_t x, uint32_t y, double p, double q, double z);

Map map_plane (uint32_t width, uint32_t height, double p, double q);

/* The upper half of a sphere in the middle, and nothing around it. */
Map map_sphere (uint32_t width, uint32_t height, double radius);

/* A level plane, and beside it one that rises along y: a step of both signs,
 * and of 0 in the middle. */
Map map_two_planes (uint32_t width, uint32_t height, double slope);

/* The same sphere as map_sphere (), and a plane behind it, which rises to
 * the right by half. */
Map map_sphere_in_front (uint32_t width, uint32_t height, double radius);

/* A sphere as a lens with a focal length of @f pixels shows it from @distance,
 * where the cosines to the view and to the axis are at least @steepest; all in
 * the same unit, also z: above the lowest point. */
Map map_sphere_near (uint32_t width, uint32_t height, double radius,
    double distance, double f, double aspect, double steepest);

/* Likewise a plane at @distance, with @normal, y up. */
Map map_plane_near (uint32_t width, uint32_t height, const double normal[3],
    double distance, double f);

/* A periodic surface of two waves. */
Map map_waves (uint32_t width, uint32_t height);

/* Normals that fit no surface, with a share of holes. */
Map map_noise (uint32_t width, uint32_t height, double holes, uint64_t seed);

/* Makes a hole. */
void map_cut (Map *m, uint32_t x, uint32_t y);

/* As photostereo writes normals; a fourth channel is noise. */
TestImage map_encode (
    const Map *m, ImkType type, uint32_t channels, bool y_down);

typedef struct Result {
  TestImage height, grey;
  ImkNormalintegrateSummary summary;
} Result;

void result_free (Result *r);
TEST_DEFINE_AUTO (Result, result_free)
float result_height (const Result *r, uint32_t x, uint32_t y);
unsigned result_grey (const Result *r, uint32_t x, uint32_t y);

ImkNormalintegrateConfig normal_config (const TestImage *in);

/* Heights and grey of @in, to be freed, with canaries that are whole. */
Result normal_run_on (
    ImkBackend backend, const ImkNormalintegrateConfig *c, const TestImage *in);

/* The same of @m on the CPU. @change: (nullable): what is not the default but
 * for the format */
Result normal_run (
    const Map *m, ImkType type, const ImkNormalintegrateConfig *change);

/* Fails where there is a height without a normal, or the other way round.
 * Returns: the mean of what heights in pixels differ from @z */
double result_mean (const Result *r, const Map *m, const double *z);

/* The rms difference from @z, but for a constant. @largest: (out) (nullable) */
double result_error (
    const Result *r, const Map *m, const double *z, double *largest);
