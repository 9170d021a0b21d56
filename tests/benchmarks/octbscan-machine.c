/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine of the thesis: live, as fast as its four cameras were; and its
 * data set, on as many GPUs as there are, beside a chain of its own steps over
 * cuFFT. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "imk/device.h"
#include "oct-stream.h"
#ifdef HAVE_CUDA
#include "octbscan-thesis.h"
#endif

enum {
  RATE = 4200,     /* B-scans a second of the four cameras together */
  N_BUFFERS = 256, /* that they have */
  N_VOLUME = 240,  /* B-scans */
  N_SET = N_VOLUME * 11,
  /* sets, until the pools have all that the devices hold at once: to lock the
   * pages of another 8 MB takes 5 ms */
  N_WARM = 8,
  N_BATCH = 60, /* B-scans of the peer */
};

/* --- live ----------------------------------------------------------------- */

static double
resident_mib (void)
{
  unsigned long all, resident = 0;
  FILE *file = fopen ("/proc/self/statm", "r");

  if (!file || fscanf (file, "%lu %lu", &all, &resident) != 2)
    resident = 0;
  if (file)
    fclose (file);
  return resident * (double) sysconf (_SC_PAGESIZE) / (1 << 20);
}

static void
sleep_until (double us)
{
  struct timespec t = {(time_t) (us / 1e6), (long) (fmod (us, 1e6) * 1e3)};

  clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Where in a run it went wrong. */
typedef struct {
  guint n_lost, first_lost, last_lost;
  double longest, latest; /* us: a push, and behind the clock before one */
  guint longest_at, latest_at;
} Trouble;

static void
note_lost (Trouble *t, guint i)
{
  if (t->n_lost++ == 0)
    t->first_lost = i;
  t->last_lost = i;
}

static void
note_push (Trouble *t, guint i, double due, double begun, double done)
{
  if (begun - due > t->latest) {
    t->latest = begun - due;
    t->latest_at = i;
  }
  if (done - begun > t->longest) {
    t->longest = done - begun;
    t->longest_at = i;
  }
}

static void
print_trouble (const gchar *name, const gchar *backend, const Trouble *t)
{
  printf ("%s %s: the longest push took %.0f us, of B-scan %u; the camera was "
          "%.0f us late at B-scan %u\n",
      name, backend, t->longest, t->longest_at, t->latest, t->latest_at);
  if (t->n_lost > 0)
    printf ("%s %s: lost from B-scan %u to %u\n", name, backend, t->first_lost,
        t->last_lost);
}

/* A camera waits for nobody. */
static void
live_case (const gchar *name, const gchar *backend, gdouble rate, guint seconds)
{
  guint n = (guint) (rate * seconds), n_pushed = 0;
  gchar *calibration = oct_calibration (4);
  gchar *properties = g_strdup_printf (
      "backend=%s cameras=4 calibration=%s scale=4", backend, calibration);
  double start, early = 0, late;
  Trouble trouble = {0};
  OctStream s;

  oct_stream_open (&s, properties, OCT_LINES, rate, TRUE, TRUE, N_BUFFERS);
  start = bench_now ();
  for (guint i = 0; i < n; i++) {
    double due = start + i * 1e6 / rate, begun;

    sleep_until (due);
    begun = bench_now ();
    if (oct_stream_push (&s, n_pushed))
      n_pushed++;
    else
      note_lost (&trouble, i);
    note_push (&trouble, i, due, begun, bench_now ());
    if (i == n / 4)
      early = resident_mib ();
  }
  late = resident_mib ();
  oct_stream_end (&s, n_pushed);
  printf ("%s %s: %u s, %u B-scans, %u lost, %" G_GUINT64_FORMAT
          " images out of order; resident %.0f MiB after a quarter, %.0f at "
          "the end\n",
      name, backend, seconds, n, trouble.n_lost,
      s.viewers[0].n_out_of_order + s.viewers[1].n_out_of_order, early, late);
  print_trouble (name, backend, &trouble);
  {
    GstStructure *stats = NULL;
    double p50 = NAN, p99 = NAN, longest = NAN;

    g_object_get (s.element, "stats", &stats, NULL);
    gst_structure_get (stats, "time-p50", G_TYPE_DOUBLE, &p50, "time-p99",
        G_TYPE_DOUBLE, &p99, "time-max", G_TYPE_DOUBLE, &longest, NULL);
    gst_structure_free (stats);
    bench_row (name, backend, "ours", p50, p99, NAN, longest, n);
  }
  oct_stream_close (&s);
  oct_calibration_free (calibration);
  g_free (properties);
}

/* --- the link ------------------------------------------------------------- */

/* As many A-scans as do not stay in a processor's cache: spectra and images
 * come from memory and go there. */
enum {
  LINK_ASCANS = 16384,
  LINK_ALL = 16 * LINK_ASCANS,
  LINK_COPIES = 48,
  LINK_TURNS = 11
};

/* Blocks that go to a device and from it at the same time. */
typedef struct {
  void *context, *up, *down; /* streams */
  void *in, *out, *device_in, *device_out;
  guint n_blocks; /* of @in and @out */
} Link;

static void
link_open (Link *l, const ImkDevice *d, gint id, gsize in, gsize out)
{
  void *mapped;
  ImkError error;

  bench_ok (d->context (id, &l->context, &error), &error);
  bench_ok (d->push (l->context, &error), &error);
  bench_ok (d->stream_new (&l->up, &error), &error);
  bench_ok (d->stream_new (&l->down, &error), &error);
  bench_ok (
      d->alloc_pinned (l->n_blocks * in, &l->in, &mapped, &error), &error);
  bench_ok (
      d->alloc_pinned (l->n_blocks * out, &l->out, &mapped, &error), &error);
  bench_ok (d->alloc_device (in, &l->device_in, &error), &error);
  bench_ok (d->alloc_device (out, &l->device_out, &error), &error);
  d->pop ();
}

static void
link_copy (Link *l, const ImkDevice *d, gsize in, gsize out, guint turn)
{
  guint8 *from = (guint8 *) l->in + turn % l->n_blocks * in;
  guint8 *to = (guint8 *) l->out + turn % l->n_blocks * out;
  ImkError error;

  bench_ok (d->push (l->context, &error), &error);
  bench_ok (d->copy (l->device_in, in, from, in, in, 1, l->up, &error), &error);
  bench_ok (
      d->copy (to, out, l->device_out, out, out, 1, l->down, &error), &error);
  d->pop ();
}

static void
link_wait (Link *l, const ImkDevice *d)
{
  ImkError error;

  bench_ok (d->push (l->context, &error), &error);
  bench_ok (d->stream_synchronize (l->up, &error), &error);
  bench_ok (d->stream_synchronize (l->down, &error), &error);
  d->pop ();
}

static void
link_close (Link *l, const ImkDevice *d)
{
  ImkError error;

  bench_ok (d->push (l->context, &error), &error);
  d->stream_free (l->up);
  d->stream_free (l->down);
  d->free_pinned (l->in);
  d->free_pinned (l->out);
  d->free_device (l->device_in);
  d->free_device (l->device_out);
  d->pop ();
}

/* How many A-scans a second @n_devices could make if all that had to be done
 * were to copy the spectra to them and the images from them.
 * @n_ascans: that are copied at once */
static void
run_link (const gchar *name, guint scale, gboolean both, guint n_devices,
    guint n_ascans)
{
  gsize in = (gsize) n_ascans * OCT_SAMPLES * 2;
  gsize out = (gsize) n_ascans * OCT_SAMPLES / 2 * scale * (both ? 2 : 1);
  guint n_copies = LINK_COPIES * LINK_ASCANS / n_ascans;
  const ImkDevice *device;
  Link *links = g_new0 (Link, n_devices);
  double us[LINK_TURNS];
  ImkError error;

  bench_ok (imk_device_get (&device, &error), &error);
  for (guint i = 0; i < n_devices; i++) {
    links[i].n_blocks = LINK_ALL / n_ascans;
    link_open (&links[i], device, (gint) i, in, out);
  }
  for (guint turn = 0; turn < LINK_TURNS; turn++) {
    us[turn] = bench_now ();
    for (guint k = 0; k < n_copies; k++)
      for (guint i = 0; i < n_devices; i++)
        link_copy (&links[i], device, in, out, k);
    for (guint i = 0; i < n_devices; i++)
      link_wait (&links[i], device);
    us[turn] = (bench_now () - us[turn]) / n_copies;
  }
  bench_samples (name, "cuda", "copies", us + 1, LINK_TURNS - 1); /* warm */
  us[0] = bench_find (name, "copies").median;
  printf ("%s: %.1f M A-scans/s, %.1f GB/s up, %.1f GB/s down\n", name,
      n_devices * n_ascans / us[0], n_devices * in / us[0] / 1e3,
      n_devices * out / us[0] / 1e3);
  for (guint i = 0; i < n_devices; i++)
    link_close (&links[i], device);
  g_free (links);
}

static void
link_case (const gchar *name, guint scale, gboolean both, guint n_devices)
{
  run_link (name, scale, both, n_devices, LINK_ASCANS);
}

/* Each B-scan and its images by a copy of their own. */
static void
link_bscans_case (
    const gchar *name, guint scale, gboolean both, guint n_devices)
{
  run_link (name, scale, both, n_devices, OCT_LINES);
}

/* --- the data set --------------------------------------------------------- */

static void
wait_for (OctStream *s, guint64 n)
{
  for (guint i = 0; i < s->n_viewers; i++)
    while (__atomic_load_n (&s->viewers[i].n_received, __ATOMIC_ACQUIRE) < n)
      g_usleep (20);
}

static gchar *
list_devices (guint n)
{
  GString *list = g_string_new ("<0");

  for (guint i = 1; i < n; i++)
    g_string_append_printf (list, ",%u", i);
  g_string_append_c (list, '>');
  return g_string_free (list, FALSE);
}

/* A data set for each device: a single one ends while the last batches are on
 * their way. @n_together: B-scans that a buffer has */
static void
run_set (const gchar *name, guint scale, gboolean both, guint n_devices,
    guint n_together)
{
  gchar *calibration = oct_calibration (1);
  gchar *devices = list_devices (n_devices);
  gchar *properties =
      g_strdup_printf ("backend=cuda cuda-devices=%s calibration=%s scale=%u "
                       "ascans-per-bscan=%d",
          devices, calibration, scale, OCT_LINES);
  guint repeats = 10, n_set = N_SET * n_devices, n_warm = N_WARM * n_set;
  GstStructure *shares = NULL;
  double seconds[10], busy = 0;
  gchar *text;
  OctStream s;

  oct_stream_open (&s, properties, n_together * OCT_LINES,
      RATE / (double) n_together, both, TRUE, 0);
  for (guint i = 0; i < n_warm; i += n_together)
    oct_stream_push (&s, i);
  wait_for (&s, n_warm);
  for (guint r = 0; r < repeats; r++) {
    guint first = n_warm + r * n_set;

    seconds[r] = bench_now ();
    busy -= oct_stream_busy ();
    for (guint i = 0; i < n_set; i += n_together)
      oct_stream_push (&s, first + i);
    busy += oct_stream_busy ();
    wait_for (&s, first + n_set);
    seconds[r] = bench_now () - seconds[r];
  }
  g_object_get (s.element, "shares", &shares, NULL);
  oct_stream_end (&s, n_warm + repeats * n_set);
  bench_samples (name, "cuda", "ours", seconds, repeats);
  text = gst_structure_to_string (shares);
  printf ("%s: %.4f s, %.2f M A-scans/s, the camera's thread %.4f s busy; %s\n",
      name, bench_find (name, "ours").median / 1e6,
      (double) n_set * OCT_LINES / bench_find (name, "ours").median,
      busy / repeats / 1e6, text);
  gst_structure_free (shares);
  oct_stream_close (&s);
  oct_calibration_free (calibration);
  g_free (text);
  g_free (devices);
  g_free (properties);
}

/* As cameras bring it. */
static void
set_case (const gchar *name, guint scale, gboolean both, guint n_devices)
{
  run_set (name, scale, both, n_devices, 1);
}

/* As it is on disk. */
static void
volumes_case (const gchar *name, guint scale, gboolean both, guint n_devices)
{
  run_set (name, scale, both, n_devices, N_VOLUME);
}

static guint
count_devices (void)
{
  const ImkDevice *device;
  int n = 0;
  ImkError error;

  bench_ok (imk_backend_load ("cuda", &error), &error);
  bench_ok (imk_device_get (&device, &error), &error);
  bench_ok (device->count (&n, &error), &error);
  return (guint) n;
}

#ifdef HAVE_CUDA
/* --- the peer ------------------------------------------------------------- */

static void
thesis_case (guint scale, gboolean both)
{
  const ThesisConfig c = {OCT_SAMPLES, OCT_LINES, 4096, scale, N_BATCH, both};
  gchar *name =
      g_strdup_printf ("set-832-to-%u-%s", 4096 * scale, both ? "both" : "one");
  double seconds = thesis_run (&c, N_SET / N_BATCH);

  bench_row (name, "cuda", "thesis", seconds * 1e6, NAN, NAN, NAN, 1);
  printf ("%s cuFFT chain: %.4f s, %.2f M A-scans/s\n", name, seconds,
      N_SET * OCT_LINES / seconds / 1e6);
  g_free (name);
}

static void
thesis_step_case (guint scale)
{
  const ThesisConfig c = {OCT_SAMPLES, OCT_LINES, 4096, scale, N_BATCH, TRUE};
  ThesisStep steps[THESIS_MAX_STEPS];
  guint n = thesis_steps (&c, steps);

  for (guint i = 0; i < n; i++)
    printf ("  scale %u, %s: %.0f us, %.0f GB/s\n", scale, steps[i].name,
        steps[i].us, steps[i].bytes / steps[i].us / 1e3);
}
#endif

/* The data set, and what the link alone would take. */
static void
each_way (guint scale, gboolean both, guint n_devices)
{
  static const struct {
    const gchar *name;
    void (*run) (
        const gchar *name, guint scale, gboolean both, guint n_devices);
  } ways[] = {{"link", link_case}, {"link-bscans", link_bscans_case},
      {"set", set_case}, {"volumes", volumes_case}};

  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    gchar *name = g_strdup_printf ("%s-832-to-%u-%s-gpus-%u", ways[i].name,
        4096 * scale, both ? "both" : "one", n_devices);

    if (bench_wants_row (name))
      ways[i].run (name, scale, both, n_devices);
    g_free (name);
  }
}

static void
cuda_cases (void)
{
  guint n_devices = count_devices ();

  if (bench_wants_row ("live-4200"))
    live_case ("live-4200", "cuda", RATE, bench_is_quick () ? 5 : 60);
  for (guint scale = 1; scale <= 4; scale *= 2)
    for (guint both = 0; both < 2; both++)
      for (guint n = 1; n <= n_devices && n <= 4; n *= 2)
        each_way (scale, both, n);
#ifdef HAVE_CUDA
  for (guint scale = 1; scale <= 4; scale *= 2) {
    if (!bench_wants_row ("thesis"))
      break;
    thesis_case (scale, FALSE);
    thesis_case (scale, TRUE);
    thesis_step_case (scale);
  }
#endif
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "octbscan-machine");
  gst_init (NULL, NULL);
  if (bench_is_gpu ())
    cuda_cases ();
  else
    live_case ("live-250", "cpu", 250, bench_is_quick () ? 2 : 10);
  return bench_close ();
}
