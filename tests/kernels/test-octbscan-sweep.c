/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records of a swept source: jitter that was put in is taken out, sweeps back
 * are reversed, and records without a calibration signal stay as they are. */
#include "kernel-test.h"

#include <math.h>
#include <string.h>

#include "imk/octbscan-sweep.h"

enum { N = 240, H = 24, FIRST = 40, SAMPLES = 48, REACH = 6 };

static ImkOctbscanSweepConfig
base_config (ImkType type)
{
  ImkOctbscanSweepConfig c;

  imk_octbscan_sweep_config_init (&c);
  c.width = N;
  c.height = H;
  c.type = type;
  c.jitter_first = FIRST;
  c.jitter_samples = SAMPLES;
  c.jitter_reach = REACH;
  return c;
}

/* The calibration signal, and a fringe of the sample that differs from record
 * to record. */
static double
signal_at (int n, uint32_t r)
{
  double peak = 90 * exp (-0.02 * (n - 60) * (n - 60)) * cos (0.4 * n);

  return 100 + peak + (n > 110 ? 20 * cos (0.4 * n + r) : 0);
}

static void
put (const TestImage *in, uint32_t r, uint32_t n, double v)
{
  uint8_t *row = (uint8_t *) in->image.data + r * in->image.stride;

  switch (in->image.type) {
  case IMK_TYPE_U8:
    row[n] = (uint8_t) v;
    break;
  case IMK_TYPE_U16:
    ((uint16_t *) row)[n] = (uint16_t) v;
    break;
  case IMK_TYPE_I16:
    ((int16_t *) row)[n] = (int16_t) (v - 100);
    break;
  default:
    ((float *) row)[n] = (float) v;
  }
}

/* Less than half a period of the calibration signal. */
static int32_t
jitter_of (uint32_t r)
{
  static const int32_t jitter[] = {0, 3, 0, -2, 1, 0, -4, 0, 2, 0, -1, 0};

  return jitter[r % 12];
}

static TestImage
records_new (ImkType type, bool jitters, bool alternates, uint32_t n_cameras)
{
  TestImage in = test_image_new (type, N, H, 1, 8);

  for (uint32_t r = 0; r < H; r++)
    for (uint32_t n = 0; n < N; n++) {
      bool back = alternates && r / n_cameras % 2 == 1;
      int at = (int) (back ? N - 1 - n : n);
      int from = jitters ? at - jitter_of (r / n_cameras) : at;

      from = from < 0 ? 0 : from > N - 1 ? N - 1 : from;
      put (&in, r, n, signal_at (from, r));
    }
  return in;
}

static const ImkType types[] = {
    IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_I16, IMK_TYPE_F32};

static ImkOctbscanSweep *
sweep_new (const ImkOctbscanSweepConfig *c)
{
  ImkOctbscanSweep *self = NULL;

  test_ok (imk_octbscan_sweep_new (c, &self, test_new_error ()));
  return self;
}

static void
check_same (const TestImage *a, const TestImage *b, uint32_t margin)
{
  size_t size = imk_type_size (a->image.type);

  for (uint32_t r = 0; r < H; r++)
    test_check (
        memcmp ((uint8_t *) a->image.data + r * a->image.stride + margin * size,
            (uint8_t *) b->image.data + r * b->image.stride + margin * size,
            (N - 2 * margin) * size) == 0,
        "record %u differs", r);
}

TEST (jitter_is_taken_out, "jitter is taken out of every type, for each camera",
    .cpu_only = true)
{
  for (uint32_t t = 0; t < 4; t++)
    for (uint32_t n_cameras = 1; n_cameras < 4; n_cameras++) {
      ImkOctbscanSweepConfig c = base_config (types[t]);
      bool alternates = n_cameras != 2;
      test_auto (TestImage) in =
          records_new (types[t], true, alternates, n_cameras);
      test_auto (TestImage) still =
          records_new (types[t], false, false, n_cameras);
      int32_t shifts[H];
      uint32_t n = 99;
      ImkOctbscanSweep *self;

      c.n_cameras = n_cameras;
      if (alternates)
        c.sweeps = IMK_OCTBSCAN_SWEEPS_ALTERNATING;
      self = sweep_new (&c);
      test_ok (imk_octbscan_sweep_process (
          self, &in.image, 6 * n_cameras, shifts, &n, test_new_error ()));
      test_check (n == 0, "%u records are unaligned", n);
      for (uint32_t r = 0; r < H; r++)
        test_check (shifts[r] == jitter_of (r / n_cameras),
            "record %u: %d, not %d", r, shifts[r], jitter_of (r / n_cameras));
      check_same (&in, &still, REACH);
      imk_octbscan_sweep_free (self);
    }
}

/* Every record of the second B-scan comes two samples later, of the third one
 * as in the first. */
TEST (bscans_share_one_reference, "all B-scans are aligned to the first one",
    .cpu_only = true)
{
  ImkOctbscanSweepConfig c = base_config (IMK_TYPE_F32);
  ImkOctbscanSweep *self;

  c.n_cameras = 2;
  self = sweep_new (&c);
  for (uint32_t b = 0; b < 4; b++) {
    test_auto (TestImage) in = test_image_new (IMK_TYPE_F32, N, H, 1, 0);
    int32_t shifts[H], late = b == 1 || b == 3 ? 2 : 0;
    uint32_t n = 99;

    if (b == 3)
      imk_octbscan_sweep_reset (self);
    for (uint32_t r = 0; r < H; r++)
      for (uint32_t i = 0; i < N; i++)
        put (&in, r, i, b == 0 && r == 0 ? 0 : signal_at ((int) i - late, r));
    test_ok (imk_octbscan_sweep_process (
        self, &in.image, b * H, shifts, &n, test_new_error ()));
    test_check (n == (b == 0), "B-scan %u: %u records are unaligned", b, n);
    for (uint32_t r = 0; r < H; r++)
      test_check (shifts[r] == (b == 1 ? 2 : 0), "B-scan %u, record %u: %d", b,
          r, shifts[r]);
  }
  imk_octbscan_sweep_reset (NULL);
  imk_octbscan_sweep_free (self);
}

TEST (sweeps_back_are_counted_from_the_line,
    "sweeps back are counted from the line on", .cpu_only = true)
{
  for (uint32_t line = 0; line < 4; line++)
    for (uint32_t s = 0; s < 3; s++) {
      ImkOctbscanSweepConfig c = base_config (IMK_TYPE_I16);
      test_auto (TestImage) in = test_image_new (IMK_TYPE_I16, N, H, 1, 0);
      ImkOctbscanSweep *self;

      c.sweeps = (ImkOctbscanSweeps) s;
      c.jitter_reach = 0;
      for (uint32_t r = 0; r < H; r++)
        for (uint32_t n = 0; n < N; n++)
          put (&in, r, n, 100 + n);
      self = sweep_new (&c);
      test_ok (imk_octbscan_sweep_process (
          self, &in.image, line, NULL, NULL, test_new_error ()));
      for (uint32_t r = 0; r < H; r++) {
        bool odd = (line + r) % 2 != 0;
        bool back = (s == IMK_OCTBSCAN_SWEEPS_ALTERNATING && odd) ||
                    (s == IMK_OCTBSCAN_SWEEPS_ALTERNATING_BACK && !odd);
        int16_t first =
            *(int16_t *) ((uint8_t *) in.image.data + r * in.image.stride);

        test_check (
            first == (back ? N - 1 : 0), "record %u begins with %d", r, first);
      }
      imk_octbscan_sweep_free (self);
    }
}

/* An even window, a jump beyond the reach, NaN: these stay, and the others are
 * aligned. */
TEST (records_without_a_signal_stay, "records without a signal stay",
    .cpu_only = true)
{
  ImkOctbscanSweepConfig c = base_config (IMK_TYPE_F32);
  test_auto (TestImage) in = records_new (IMK_TYPE_F32, true, false, 1);
  test_auto (TestImage) before = records_new (IMK_TYPE_F32, true, false, 1);
  ImkOctbscanSweep *self = sweep_new (&c);
  size_t stride = in.image.stride;
  int32_t shifts[H];
  uint32_t n = 0;

  for (uint32_t i = 0; i < N; i++) {
    put (&in, 3, i, 100);
    put (&in, 8, i, signal_at ((int) i - REACH - 1, 8));
  }
  put (&in, 13, 50, NAN);
  for (uint32_t r = 3; r < 14; r += 5)
    memcpy ((uint8_t *) before.image.data + r * stride,
        (uint8_t *) in.image.data + r * stride, N * sizeof (float));
  test_ok (imk_octbscan_sweep_process (
      self, &in.image, 0, shifts, &n, test_new_error ()));
  test_check (n == 3, "%u records are unaligned", n);
  for (uint32_t r = 0; r < H; r++)
    if (r == 3 || r == 8 || r == 13)
      test_check (
          shifts[r] == 0 && memcmp ((uint8_t *) before.image.data + r * stride,
                                (uint8_t *) in.image.data + r * stride,
                                N * sizeof (float)) == 0,
          "record %u has changed", r);
    else
      test_check (shifts[r] == jitter_of (r), "record %u: %d, not %d", r,
          shifts[r], jitter_of (r));
  imk_octbscan_sweep_free (self);
}

TEST (
    wrong_settings_are_refused, "wrong settings are refused", .cpu_only = true)
{
  ImkOctbscanSweepConfig c = base_config (IMK_TYPE_I16);

  c.jitter_first = REACH;
  test_error (imk_octbscan_sweep_check (&c, test_new_error ()),
      IMK_ERROR_CONFIG, "jitter-reach=6 samples are needed");
  c.jitter_first = N - SAMPLES - REACH;
  test_error (imk_octbscan_sweep_check (&c, test_new_error ()),
      IMK_ERROR_CONFIG,
      "The calibration window has the samples 186 to 233 of 240");
  c.jitter_first = UINT32_MAX;
  test_error (imk_octbscan_sweep_check (&c, test_new_error ()),
      IMK_ERROR_CONFIG, "Take another window");
  c.jitter_reach = UINT32_MAX;
  test_error (imk_octbscan_sweep_check (&c, test_new_error ()),
      IMK_ERROR_CONFIG, "Take another window");
  c = base_config (IMK_TYPE_I16);
  c.jitter_samples = 3;
  test_error (imk_octbscan_sweep_check (&c, test_new_error ()),
      IMK_ERROR_CONFIG, "at least 4 samples");
  c = base_config (IMK_TYPE_I16);
  c.sweeps = (ImkOctbscanSweeps) 3;
  test_error (imk_octbscan_sweep_check (&c, test_new_error ()),
      IMK_ERROR_CONFIG, "sweeps is 3");
  c = base_config (IMK_TYPE_F64);
  test_error (imk_octbscan_sweep_check (&c, test_new_error ()),
      IMK_ERROR_CONFIG, "convert them to i16 or f32");
}
