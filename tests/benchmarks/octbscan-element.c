/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* octbscan from host to host: how many A-scans a second with as many B-scans as
 * it takes, and how long one is inside when they come one at a time. */
#include <math.h>
#include <stdio.h>

#include "imk/backend.h"
#include "oct-stream.h"

enum {
  N_WARM = 6000,
  N_LATENCIES = 2000,
  PAUSE_US = 500,
  MOST_US = 4000000, /* of a rate */
};

static guint
n_frames (const gchar *backend)
{
  guint n = g_str_equal (backend, "cuda") ? 100000 : 2000;

  return bench_is_quick () ? n / 5 : n;
}

/* After a warm-up, in which pools grow, to some hundreds of B-scans, and
 * readers are noticed. */
static void
rate_case (const gchar *backend, guint scale, gboolean linear,
    gboolean has_sample, guint in_flight)
{
  guint n = n_frames (backend), warm = MIN (N_WARM, n / 4), i;
  gchar *calibration = oct_calibration (1);
  gchar *properties =
      g_strdup_printf ("backend=%s calibration=%s scale=%u max-in-flight=%u",
          backend, calibration, scale, in_flight);
  gchar *name = g_strdup_printf ("832-to-%u-%s%s-in-flight-%u", 4096 * scale,
      linear ? "both" : "one", has_sample ? "" : "-noise", in_flight);
  double start = 0, busy = 0, us;
  OctStream s;

  if (!bench_wants_row (name))
    goto out;
  oct_stream_open (&s, properties, OCT_LINES, 4200, linear, has_sample, 0);
  for (i = 0; i < n + warm; i++) {
    if (i == warm) {
      start = bench_now ();
      busy = oct_stream_busy ();
    }
    if (i > warm && bench_now () - start > MOST_US)
      break;
    oct_stream_push (&s, i);
  }
  busy = oct_stream_busy () - busy;
  oct_stream_end (&s, i);
  n = i - warm;
  us = (bench_now () - start) / n;
  bench_row (name, backend, "ours", us, NAN, NAN, NAN, n);
  printf ("%s %s: %.2f M A-scans/s, the camera's thread %.1f of %.1f us busy, "
          "%" G_GUINT64_FORMAT " out of order\n",
      name, backend, OCT_LINES / us, busy / n, us,
      s.viewers[0].n_out_of_order + s.viewers[s.n_viewers - 1].n_out_of_order);
  oct_stream_close (&s);
out:
  oct_calibration_free (calibration);
  g_free (properties);
  g_free (name);
}

/* From the push to where the image can be read. */
static void
latency_case (const gchar *backend, guint scale)
{
  guint n = bench_is_quick () ? N_LATENCIES / 4 : N_LATENCIES, warm = 50;
  gchar *calibration = oct_calibration (1);
  gchar *properties = g_strdup_printf (
      "backend=%s calibration=%s scale=%u", backend, calibration, scale);
  gchar *name = g_strdup_printf ("832-to-%u-latency", 4096 * scale);
  double *sent = g_new0 (double, n + warm);
  OctStream s;

  if (!bench_wants_row (name))
    goto out;
  oct_stream_open (&s, properties, OCT_LINES, 4200, FALSE, TRUE, 0);
  s.arrivals = g_new0 (double, n + warm);
  for (guint i = 0; i < n + warm; i++) {
    sent[i] = bench_now ();
    oct_stream_push (&s, i);
    while (__atomic_load_n (&s.viewers[0].n_received, __ATOMIC_ACQUIRE) <= i)
      ;
    g_usleep (PAUSE_US);
  }
  oct_stream_end (&s, n + warm);
  for (guint i = 0; i < n; i++)
    sent[i] = s.arrivals[i + warm] - sent[i + warm];
  bench_samples (name, backend, "ours", sent, n);
  printf ("%s %s: median %.1f us, 99 %% below %.1f us\n", name, backend,
      bench_find (name, "ours").median, bench_find (name, "ours").p99);
  g_free (s.arrivals);
  oct_stream_close (&s);
out:
  oct_calibration_free (calibration);
  g_free (sent);
  g_free (properties);
  g_free (name);
}

int
main (int argc, char **argv)
{
  ImkError error;

  bench_open (argc, argv, "octbscan-element");
  gst_init (NULL, NULL);
  if (bench_is_gpu ()) {
    bench_ok (imk_backend_load ("cuda", &error), &error);
    for (guint scale = 1; scale <= 4; scale *= 2)
      for (guint linear = 0; linear < 2; linear++)
        rate_case ("cuda", scale, linear, TRUE, 3);
    rate_case ("cuda", 1, FALSE, FALSE, 3);
    for (guint n = 1; n <= 8; n *= 2)
      rate_case ("cuda", 4, FALSE, TRUE, n);
    for (guint scale = 1; scale <= 4; scale *= 4)
      latency_case ("cuda", scale);
  } else {
    rate_case ("cpu", 4, TRUE, TRUE, 3);
    latency_case ("cpu", 4);
  }
  return bench_close ();
}
