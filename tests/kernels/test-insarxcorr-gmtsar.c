/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What GMTSAR printed for real and synthetic pairs: the rows, and the fits to
 * them, on both backends. */
#include "insar-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/insarxcorr-fit.h"

enum { MAX_LINE = 256 };

typedef struct Golden {
  const char *pair, *name, *file;
  uint32_t nx, ny, xsearch, ysearch;
  uint32_t range_interp, interp; /* 0: the default */
  int rshift, ashift;
  double prf;
  ImkInsarxcorrMethod method;
  bool real;
} Golden;

static const Golden goldens[] = {
    {"affine", "base", "freq_xcorr", 12, 14, 64, 64},
    {"affine", "norange", "freq_xcorr", 12, 14, 64, 64, .range_interp = 1},
    {"affine", "ri4", "freq_xcorr", 12, 14, 64, 64, .range_interp = 4},
    {"affine", "if8", "freq_xcorr", 12, 14, 64, 64, .interp = 8},
    {"affine", "if32", "freq_xcorr", 12, 14, 64, 64, .interp = 32},
    {"affine", "shift", "freq_xcorr", 12, 14, 64, 64, .rshift = 4,
        .ashift = -6},
    {"affine", "noshift", "freq_xcorr", 12, 14, 64, 64},
    {"affine", "prf", "freq_xcorr", 12, 14, 64, 64, .prf = 1997.4},
    {"affine", "asym", "freq_xcorr", 12, 14, 32, 128},
    {"affine", "paper", "freq_xcorr", 20, 50, 128, 128},
    {"affine", "small", "freq_xcorr", 24, 30, 32, 32},
    {"affine", "tiny", "freq_xcorr", 24, 30, 16, 16},
    {"affine", "defaults", "freq_xcorr", 16, 32, 64, 64},
    {"affine", "edge", "freq_xcorr", 12, 14, 64, 64, .rshift = -27,
        .ashift = 55},
    {"affine", "eof", "freq_xcorr", 12, 14, 64, 64, .ashift = 60},
    {"affine", "real", "freq_xcorr", 12, 14, 64, 64, .real = true},
    {"affine", "time16", "time_xcorr", 6, 6, 16, 16,
        .method = IMK_INSARXCORR_TIME},
    {"affine", "time4_16", "time_xcorr_Gatelli", 6, 6, 16, 16,
        .method = IMK_INSARXCORR_TIME4},
    {"envisat", "s32", "freq_xcorr", 12, 12, 32, 32},
    {"envisat", "s16", "freq_xcorr", 20, 20, 16, 16},
    {"envisat", "s32norange", "freq_xcorr", 12, 12, 32, 32, .range_interp = 1},
    {"ampcor_wn", "s32", "freq_xcorr", 12, 13, 32, 32},
    {"ampcor_wn", "s16", "freq_xcorr", 16, 16, 16, 16},
    {"ampcor_wn", "s64", "freq_xcorr", 8, 8, 64, 64},
    {"ampcor_wn", "s64y32", "freq_xcorr", 12, 13, 64, 32},
};

/* Amplitudes in place of the samples. */
static void *
to_real (int16_t *data, size_t n)
{
  float *out = malloc (n * sizeof (*out));

  for (size_t i = 0; i < n; i++)
    out[i] = (float) hypot (data[2 * i], data[2 * i + 1]);
  free (data);
  return out;
}

static bool
is_edge_row (const Golden *g, int row)
{
  char name[128];
  FILE *file;
  int n;
  bool found = false;

  snprintf (name, sizeof (name), "expected/%s.edge_rows.txt", g->name);
  file = insar_find_data (g->pair, name);
  while (file && !found && fscanf (file, "%d", &n) == 1)
    found = n == row;
  if (file)
    fclose (file);
  return found;
}

static ImkInsarxcorrConfig
golden_config (const Golden *g)
{
  uint32_t width = 896, height = 1024;
  ImkInsarxcorrConfig c;

  if (g->pair[0] == 'e')
    width = height = 500;
  if (g->pair[1] == 'm')
    width = height = 512;
  c = insar_config (width, height, g->xsearch, g->ysearch, g->nx, g->ny);
  c.range_interp = g->range_interp ? g->range_interp : 2;
  c.interp = g->interp ? g->interp : 16;
  c.rshift = g->rshift;
  c.ashift = g->ashift;
  c.prf_ratio = g->prf > 0 ? (g->prf - 2000) / 2000 : 0;
  c.method = g->method;
  c.type = g->real ? IMK_TYPE_F32 : IMK_TYPE_CI16;
  c.n_threads = 0;
  return c;
}

/* Of one column: eta_2 and eta_inf of the paper, relative norms. */
typedef struct Norms {
  double difference2, value2, difference, value;
} Norms;

static void
add_norms (Norms *n, double found, double expected)
{
  n->difference2 += (found - expected) * (found - expected);
  n->value2 += expected * expected;
  n->difference = fmax (n->difference, fabs (found - expected));
  n->value = fmax (n->value, fabs (expected));
}

typedef struct Tally {
  int n, n_same, n_edge;
  Norms norms[3];
} Tally;

static double
round_text (const char *format, double value)
{
  char text[64];

  snprintf (text, sizeof (text), format, value);
  return strtod (text, NULL);
}

static void
compare_row (const Golden *g, const ImkInsarxcorrConfig *c, int row,
    const char *line, const double *found, Tally *tally)
{
  double x, y, e[3], f[3];

  test_check (
      sscanf (line, "%lf %lf %lf %lf %lf", &x, &e[0], &y, &e[1], &e[2]) == 5,
      "row %d of %s is \"%s\"", row, g->name, line);
  test_check (x == found[IMK_INSARXCORR_X] && y == found[IMK_INSARXCORR_Y],
      "%s %s row %d is at (%g, %g), expected (%g, %g)", g->pair, g->name, row,
      found[IMK_INSARXCORR_X], found[IMK_INSARXCORR_Y], x, y);
  f[0] = round_text ("%6.3f", found[IMK_INSARXCORR_DX]);
  f[1] = round_text ("%6.3f", found[IMK_INSARXCORR_DY]);
  f[2] = round_text ("%6.2f", found[IMK_INSARXCORR_CORRELATION]);
  /* a surface of zeros has no peak, and GMTSAR's window is an older one */
  if (e[2] == 0)
    test_check (f[2] == 0 && insar_flags (found) & IMK_INSARXCORR_NO_DATA,
        "%s %s row %d: correlation %.2f, flags %u", g->pair, g->name, row, f[2],
        insar_flags (found));
  if (e[2] == 0 || is_edge_row (g, row)) {
    tally->n_edge++;
    return;
  }
  test_check (
      fabs (f[0] - e[0]) < 1.0 / (c->interp * c->range_interp) + 0.0015 &&
          fabs (f[1] - e[1]) < 1.0 / c->interp + 0.0015,
      "%s %s row %d: offset (%.3f, %.3f), expected (%.3f, %.3f)", g->pair,
      g->name, row, f[0], f[1], e[0], e[1]);
  test_check (fabs (f[2] - e[2]) < 0.0201,
      "%s %s row %d: correlation %.2f, expected %.2f", g->pair, g->name, row,
      f[2], e[2]);
  tally->n++;
  tally->n_same += f[0] == e[0] && f[1] == e[1];
  for (int i = 0; i < 3; i++)
    add_norms (&tally->norms[i], f[i], e[i]);
}

static Tally
compare_golden (
    const Golden *g, const ImkInsarxcorrConfig *c, const double *found)
{
  char name[128], line[MAX_LINE];
  Tally tally = {0};
  int row = 0;
  FILE *file;

  snprintf (name, sizeof (name), "expected/%s.%s.dat", g->name, g->file);
  file = insar_open_data (g->pair, name);
  while (fgets (line, sizeof (line), file) && row < (int) (c->nx * c->ny)) {
    compare_row (g, c, row + 1, line, found + row * N_FIELDS, &tally);
    row++;
  }
  test_check (feof (file) && row == (int) (c->nx * c->ny),
      "%s has more or less than %u rows", name, c->nx * c->ny);
  fclose (file);
  return tally;
}

/* What fitoffset.csh would see of our rows: the printed numbers. */
static size_t
printed_points (
    const double *found, uint32_t n, double snr, ImkInsarxcorrPoint *points)
{
  size_t n_points = 0;

  for (uint32_t i = 0; i < n; i++, found += N_FIELDS)
    if (round_text ("%6.2f", found[IMK_INSARXCORR_CORRELATION]) > snr)
      points[n_points++] = (ImkInsarxcorrPoint){
          found[IMK_INSARXCORR_X],
          found[IMK_INSARXCORR_Y],
          round_text ("%6.3f", found[IMK_INSARXCORR_DX]),
          round_text ("%6.3f", found[IMK_INSARXCORR_DY]),
      };
  return n_points;
}

/* Reads "key = value" lines. Returns: how many */
static int
read_values (const char *text, double values[8])
{
  int n = 0;

  while (n < 8 && (text = strchr (text, '='))) {
    values[n++] = strtod (text + 1, NULL);
    text++;
  }
  return n;
}

/* The fit to our rows against the one to GMTSAR's, where GMTSAR has one. Its
 * rows at the edge are undefined, so then the fit is, too. */
static void
compare_fit (const Golden *g, const ImkInsarxcorrConfig *c, const double *found,
    const Tally *t)
{
  char name[128], text[IMK_INSARXCORR_FIT_TEXT_SIZE], expected[1024] = "";
  test_autofree ImkInsarxcorrPoint *points =
      calloc (c->nx * c->ny, sizeof (*points));
  size_t n = printed_points (found, c->nx * c->ny, 18, points);
  double ours[8], theirs[8];
  ImkInsarxcorrFit fit;
  FILE *file;

  snprintf (name, sizeof (name), "expected/%s.fit.txt", g->name);
  file = insar_find_data (g->pair, name);
  if (file && fread (expected, 1, sizeof (expected) - 1, file) > 0 &&
      n >= IMK_INSARXCORR_FIT_MIN_POINTS) {
    test_ok (imk_insarxcorr_fit (points, n, 3, 3, &fit, test_new_error ()));
    imk_insarxcorr_fit_print (&fit, text);
    test_check (
        read_values (text, ours) == 8 && read_values (expected, theirs) == 8,
        "%s has other than 8 values", name);
    printf ("#   fit, errors of 8 values:");
    for (int i = 0; i < 8; i++)
      printf (" %.1e", fabs (ours[i] - theirs[i]));
    printf ("\n");
    test_check (t->n_edge || strcmp (text, expected) == 0,
        "%s %s: the fit is\n%s# expected:\n%s", g->pair, g->name, text,
        expected);
  }
  if (file)
    fclose (file);
}

static void
print_norms (const Norms norms[3])
{
  for (int i = 0; i < 3; i++)
    printf (" %s %.1e %.1e", ((const char *[]){"x", "y", "corr"})[i],
        norms[i].value2 > 0 ? sqrt (norms[i].difference2 / norms[i].value2) : 0,
        norms[i].value > 0 ? norms[i].difference / norms[i].value : 0);
  printf ("\n");
}

static void
add_tally (Tally *sum, const Tally *t)
{
  sum->n += t->n;
  sum->n_same += t->n_same;
  sum->n_edge += t->n_edge;
  for (int i = 0; i < 3; i++) {
    Norms *to = &sum->norms[i];
    const Norms *from = &t->norms[i];

    to->difference2 += from->difference2;
    to->value2 += from->value2;
    to->difference = fmax (to->difference, from->difference);
    to->value = fmax (to->value, from->value);
  }
}

static void
run_golden (ImkBackend backend, const Golden *g, Tally *sum)
{
  ImkInsarxcorrConfig c = golden_config (g);
  size_t n = (size_t) c.width[0] * c.height[0];
  test_autofree void *ref = insar_read_slc (g->pair, "ref.SLC", n);
  test_autofree void *sec = insar_read_slc (g->pair, "sec.SLC", n);
  test_autofree double *found = NULL;
  Tally t;

  if (g->real) {
    ref = to_real (ref, n);
    sec = to_real (sec, n);
  }
  found = insar_run_pushing (backend, &c, ref, sec, 128);
  t = compare_golden (g, &c, found);
  printf ("# %s %s: %d of %d rows identical, %d edge;", g->pair, g->name,
      t.n_same, t.n, t.n_edge);
  print_norms (t.norms);
  test_check (t.n_same >= 0.995 * t.n,
      "%s %s: only %d of %d rows are identical", g->pair, g->name, t.n_same,
      t.n);
  compare_fit (g, &c, found, &t);
  add_tally (sum, &t);
}

/* The largest norms of the paper's table of eight pairs, ScanSAR left out:
 * eta_2 and eta_inf of its program against GMTSAR's. */
static void
check_norms (const Tally *t)
{
  static const double largest[3][2] = {
      {3.6e-4, 8.7e-4}, {2.2e-4, 4.9e-4}, {1.9e-5, 1.6e-4}};

  printf ("# all: %d of %d rows identical;", t->n_same, t->n);
  print_norms (t->norms);
  for (int i = 0; i < 3; i++) {
    const Norms *n = &t->norms[i];

    test_check (sqrt (n->difference2 / n->value2) <= largest[i][0] &&
                    n->difference / n->value <= largest[i][1],
        "column %d: eta_2 %.1e, eta_inf %.1e", i,
        sqrt (n->difference2 / n->value2), n->difference / n->value);
  }
}

static void
run_goldens (ImkBackend backend)
{
  Tally sum = {0};

  printf ("# run: rows; eta_2 and eta_inf of x, y, correlation\n");
  for (size_t i = 0; i < sizeof (goldens) / sizeof (goldens[0]); i++)
    run_golden (backend, &goldens[i], &sum);
  check_norms (&sum);
}

TEST (test_gmtsar, "rows are those of GMTSAR", .cpu_only = true)
{
  run_goldens (IMK_BACKEND_CPU);
}

TEST (test_gmtsar_on_the_device, "so they are on the device")
{
  test_need_cuda ();
  run_goldens (IMK_BACKEND_CUDA);
}
