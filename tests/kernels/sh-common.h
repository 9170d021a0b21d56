/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of shcentroid share: grids, samples and results, running a
 * kernel on either backend, and the real frames with their table. */
#pragma once

#include "imk/shcentroid.h"
#include "kernel-test.h"

TEST_DEFINE_AUTO_POINTER (ImkShcentroid, imk_shcentroid_free)

enum { N_FIELDS = IMK_SHCENTROID_N_FIELDS };

/* One thread, all else as by default. */
ImkShcentroidConfig sh_grid (ImkType type, uint32_t width, uint32_t height,
    double x0, double y0, double pitch_x, double pitch_y, uint32_t columns,
    uint32_t rows);

/* --- samples and results -------------------------------------------------- */

/* What the type cannot hold is its least or largest sample. */
void sh_set (TestImage *in, uint32_t x, uint32_t y, double value);
double sh_sample (const TestImage *in, int64_t x, int64_t y);

/* A number of an output, float32 or float64. */
double sh_get (const TestImage *out, uint32_t row, uint32_t column);
void sh_near (const TestImage *out, uint32_t cell, uint32_t field,
    double expected, double tolerance);

/* @relative: to @expected, or to 1 where that is larger */
void sh_check_value (const char *name, uint32_t cell, uint32_t field,
    double value, double expected, double relative);
/* All that @out has of all cells, against imk_shcentroid_reference ().
 * @tilt: (nullable): what the slopes of valid cells have less */
void sh_check_reference (const ImkShcentroidConfig *c, const TestImage *in,
    const TestImage *out, double relative, const double tilt[2],
    const char *name);

/* Uniform below 1, and normal; of a stream of test_random (). */
double sh_uniform (uint64_t *seed);
double sh_normal (uint64_t *seed);

/* A frame of the worked examples, 0 but for 4x4 pixels at (@x, @y), which are
 * example A and @pedestal. */
TestImage sh_example (ImkType type, uint32_t width, uint32_t height, uint32_t x,
    uint32_t y, uint32_t pedestal);

/* --- running -------------------------------------------------------------- */

ImkShcentroid *sh_new (ImkBackend backend, const ImkShcentroidConfig *c);
void sh_process (ImkShcentroid *s, const TestImage *in, TestImage *out);

TestImage sh_output (
    const ImkShcentroidConfig *c, ImkType type, uint32_t padding);
/* Returns: of one frame in memory of @backend; canaries are looked after */
TestImage sh_run (ImkBackend backend, const ImkShcentroidConfig *c,
    const TestImage *in, ImkType type, uint32_t padding);

/* Fails unless CPU and CUDA give the same bits in each of @n_frames equal
 * frames, of which what is held and tracked differs. @elsewhere: all but the
 * first are in page-locked memory */
void sh_check_parity (const ImkShcentroidConfig *c, const TestImage *in,
    ImkType type, uint32_t padding, uint32_t n_frames, bool elsewhere,
    const char *name);

/* --- real frames ---------------------------------------------------------- */

/* Frames of 512x512, 16 bits, and their 16x16 cells; the running test is
 * skipped without them. */
ImkShcentroidConfig sh_real_grid (void);
TestImage sh_load_frame (const char *name);

/* The columns of the table of a frame. */
enum {
  CSV_FLUX_RAW = 7,
  CSV_MAX,
  CSV_COG_X,
  CSV_COG_Y,
  CSV_ABSOLUTE_FLUX,
  CSV_ABSOLUTE_X,
  CSV_ABSOLUTE_Y,
  CSV_RELATIVE_X,
  CSV_BRIGHTEST_X = 16,
  CSV_COLUMNS = 18,
};

/* Returns: the table of frame @name, to be closed, after its first line */
FILE *sh_open_table (const char *name);
/* The next cell; what is empty is NaN. Returns: whether there is one */
bool sh_read_cell (FILE *table, double values[CSV_COLUMNS]);
