/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* photostereo with the rows of a picture shared by several devices: the bytes
 * of one. Where there are fewer devices than a test wants, they are named
 * again. */
#include "kernel-test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/device.h"
#include "imk/photostereo.h"
#include "core/failures.h"

enum { N_LIGHTS = 37, WIDTH = 131, MAX_HEIGHT = 70, N_OUTPUTS = 6 };

/* What a set is made of and how it is solved. */
typedef enum Kind {
  KIND_MOSAIC,
  KIND_U16,     /* and a parabola for the factor of a lamp */
  KIND_COLOURS, /* u8 x 4 with dark frame, white frame, lobe and gamma */
  KIND_LUMA,    /* a mosaic that is interpolated */
  KIND_DROP,    /* lights that do not come back; masked */
  KIND_HUBER,
  KIND_ADAPTIVE,
  N_KINDS,
} Kind;

/* A rig, and its pictures in memory that devices reach. */
typedef struct Rig {
  ImkPhotostereoConfig config;
  ImkPhotostereoLight lights[N_LIGHTS];
  TestImage dark, white, mask;
  TestImage frames[N_LIGHTS];
  TestMapped mapped[N_LIGHTS];
  ImkImage device[N_LIGHTS];
} Rig;

/* All that comes out of a set. */
typedef struct Result {
  TestImage images[N_OUTPUTS]; /* in the order of ImkPhotostereoOutputs */
  ImkPhotostereoSummary look, summary;
  uint32_t next;
} Result;

static const ImkDevice *
get_device (void)
{
  const ImkDevice *device = NULL;

  test_ok (imk_device_get (&device, test_new_error ()));
  return device;
}

/* --- rigs ----------------------------------------------------------------- */

static void
fill_lights (Rig *rig)
{
  for (uint32_t i = 0; i < N_LIGHTS; i++) {
    double z = 1 - 0.6 * (i + 0.5) / N_LIGHTS;
    double r = sqrt (1 - z * z), phi = i * 2.399963229728653;

    rig->lights[i] = (ImkPhotostereoLight){
        .x = 200 * r * cos (phi),
        .y = 200 * r * sin (phi),
        .z = 200 * z,
        .intensity = {1, 0.9, 1.1},
    };
  }
}

/* Waves under lamp @light with some noise, so that pixels differ in the lights
 * that they reject, and in their rounds. */
static double
shade (const Rig *rig, uint32_t light, uint32_t x, uint32_t y)
{
  const ImkPhotostereoLight *l = &rig->lights[light];
  double n[] = {0.5 * sin (0.13 * x), 0.5 * cos (0.21 * y), 1};
  double along = (n[0] * l->x + n[1] * l->y + n[2] * l->z) / 200;

  return along > 0 ? 0.5 * along / sqrt (n[0] * n[0] + n[1] * n[1] + 1) : 0;
}

static void
set_sample (TestImage *image, uint32_t x, uint32_t y, uint32_t k, double value)
{
  uint8_t *row = (uint8_t *) image->image.data + y * image->image.stride;
  size_t i = (size_t) x * image->image.channels + k;

  if (image->image.type == IMK_TYPE_U8)
    row[i] = (uint8_t) (255 * value);
  else
    ((uint16_t *) row)[i] = (uint16_t) (65535 * value);
}

static TestImage
frame_new (const Rig *rig, uint32_t light, uint64_t *seed)
{
  const ImkPhotostereoConfig *c = &rig->config;
  TestImage frame =
      test_image_new (c->type, c->width, c->height, c->channels, light % 5);

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t x = 0; x < c->width; x++) {
      double value = test_random (seed) % 6 == 0
                         ? (double) (test_random (seed) % 256) / 256
                         : shade (rig, light, x, y);

      for (uint32_t k = 0; k < c->channels; k++)
        set_sample (&frame, x, y, k, value * (1 - 0.1 * k));
    }
  return frame;
}

/* Pictures of one value everywhere or of noise: dark, white and mask. */
static TestImage
calibration_new (const Rig *rig, uint32_t least, uint32_t most)
{
  const ImkPhotostereoConfig *c = &rig->config;
  TestImage image =
      test_image_new (IMK_TYPE_U8, c->width, c->height, c->channels, 3);
  uint64_t seed = 9;

  for (uint32_t y = 0; y < c->height; y++)
    for (uint32_t i = 0; i < c->width * c->channels; i++)
      ((uint8_t *) image.image.data)[y * image.image.stride + i] =
          (uint8_t) (least + test_random (&seed) % (most - least + 1));
  return image;
}

static void
configure (Rig *rig, Kind kind, uint32_t height)
{
  ImkPhotostereoConfig *c = &rig->config;

  imk_photostereo_config_init (c);
  c->type = kind == KIND_U16 ? IMK_TYPE_U16 : IMK_TYPE_U8;
  c->width = WIDTH;
  c->height = height;
  c->channels = kind == KIND_COLOURS ? 4 : 1;
  c->pattern = kind == KIND_COLOURS ? IMK_PHOTOSTEREO_PATTERN_NONE
                                    : IMK_PHOTOSTEREO_PATTERN_GBRG;
  c->grey = kind == KIND_LUMA ? IMK_PHOTOSTEREO_GREY_LUMA
                              : IMK_PHOTOSTEREO_GREY_MOSAIC;
  c->lights = rig->lights;
  c->n_lights = N_LIGHTS;
  c->positions = true;
  c->mm_per_pixel = kind == KIND_U16 ? 0.01 : 0.8;
  c->centre_y = 0.3; /* no float is a whole number of rows from it */
  c->readmit = kind != KIND_DROP;
  c->thresholds = kind == KIND_ADAPTIVE ? IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE
                                        : IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE;
  c->robust = kind == KIND_HUBER ? IMK_PHOTOSTEREO_ROBUST_HUBER
                                 : IMK_PHOTOSTEREO_ROBUST_THRESHOLDS;
  c->track_change = true;
  c->n_threads = 1;
}

static Rig *
rig_new (Kind kind, uint32_t height)
{
  Rig *rig = calloc (1, sizeof (*rig));
  uint64_t seed = 5;

  fill_lights (rig);
  configure (rig, kind, height);
  if (kind == KIND_COLOURS) {
    rig->config.led_lobe = 1;
    rig->config.gamma = 1.8;
    rig->dark = calibration_new (rig, 0, 9);
    rig->white = calibration_new (rig, 150, 250);
    rig->config.dark = &rig->dark.image;
    rig->config.white = &rig->white.image;
  }
  if (kind == KIND_DROP) {
    rig->mask = calibration_new (rig, 0, 3);
    rig->config.mask = &rig->mask.image;
  }
  for (uint32_t i = 0; i < N_LIGHTS; i++) {
    rig->frames[i] = frame_new (rig, i, &seed);
    rig->mapped[i] = test_to_mapped (&rig->frames[i]);
    rig->device[i] = test_to_device (&rig->frames[i]);
  }
  return rig;
}

static void
rig_free (Rig *rig)
{
  for (uint32_t i = 0; i < N_LIGHTS; i++) {
    test_image_free (&rig->frames[i]);
    test_mapped_free (&rig->mapped[i]);
    test_device_free (&rig->device[i]);
  }
  test_image_free (&rig->dark);
  test_image_free (&rig->white);
  test_image_free (&rig->mask);
  free (rig);
}

TEST_DEFINE_AUTO_POINTER (Rig, rig_free)

/* @n devices in all, beginning with the current one. */
static void
share (ImkPhotostereoConfig *c, uint32_t n)
{
  int n_devices;

  test_ok (get_device ()->count (&n_devices, test_new_error ()));
  c->n_devices = n - 1;
  for (uint32_t i = 1; i < n; i++)
    c->devices[i - 1] = (int) i % n_devices;
}

/* --- sets ----------------------------------------------------------------- */

static Result
result_new (const ImkPhotostereoConfig *c)
{
  uint32_t colours = imk_photostereo_n_colours (c);

  return (Result){
      .images = {
          test_image_new (IMK_TYPE_U8, WIDTH, c->height, 3, 5),
          test_image_new (IMK_TYPE_F32, WIDTH, c->height, colours, 4),
          test_image_new (IMK_TYPE_F32, WIDTH, c->height, colours, 0),
          test_image_new (IMK_TYPE_U16, WIDTH, c->height, 4, 8),
          test_image_new (IMK_TYPE_U16, WIDTH, c->height, 1, 4),
          test_image_new (IMK_TYPE_U8, WIDTH, c->height, 1, 0),
      }};
}

static void
result_free (Result *r)
{
  for (int i = 0; i < N_OUTPUTS; i++)
    test_image_free (&r->images[i]);
}

TEST_DEFINE_AUTO (Result, result_free)

static void
solve (ImkPhotostereo *s, Result *to, bool into_mapped,
    ImkPhotostereoSummary *summary)
{
  TestMapped mapped[N_OUTPUTS] = {{{0}}};
  ImkImage images[N_OUTPUTS];
  ImkPhotostereoOutputs out;

  for (int i = 0; i < N_OUTPUTS; i++)
    if (into_mapped) {
      mapped[i] = test_to_mapped (&to->images[i]);
      images[i] = mapped[i].image;
    } else {
      images[i] = test_to_device (&to->images[i]);
    }
  out = (ImkPhotostereoOutputs){
      images[0], images[1], images[2], images[3], images[4], images[5]};
  test_ok (imk_photostereo_solve (s, &out, summary, NULL, test_new_error ()));
  for (int i = 0; i < N_OUTPUTS; i++)
    if (into_mapped) {
      test_from_mapped (&mapped[i], &to->images[i]);
      test_mapped_free (&mapped[i]);
    } else {
      test_from_device (&images[i], &to->images[i]);
      test_device_free (&images[i]);
    }
  for (int i = 0; i < N_OUTPUTS; i++)
    test_image_check_canaries (&to->images[i], "an output");
}

/* Nothing is left of the set before. */
static void
check_empty_set (ImkPhotostereo *s, Result *to, bool mapped)
{
  ImkPhotostereoSummary summary;

  imk_photostereo_reset (s);
  solve (s, to, mapped, &summary);
  test_check (summary.n_samples == 0 && summary.n_clipped == 0 &&
                  summary.largest == 0 && summary.n_invalid == summary.n_pixels,
      "a set without pictures has %llu samples, %llu are clipped, one is %u",
      (unsigned long long) summary.n_samples,
      (unsigned long long) summary.n_clipped, summary.largest);
  imk_photostereo_reset (s);
}

/* A set, the second of the object, with a look at it after two thirds.
 * @mapped: pictures and results are in page-locked memory */
static Result
run (const Rig *rig, bool mapped)
{
  ImkPhotostereo *s = NULL;
  Result result = result_new (&rig->config);

  test_ok (imk_photostereo_new (
      IMK_BACKEND_CUDA, &rig->config, &s, test_new_error ()));
  for (uint32_t i = 0; i < 2 * N_LIGHTS; i++) {
    uint32_t light = i * 7 % N_LIGHTS;

    if (i == N_LIGHTS - 3)
      check_empty_set (s, &result, mapped);
    if (i >= N_LIGHTS - 3 && i < N_LIGHTS)
      continue;
    test_ok (imk_photostereo_add (s,
        mapped ? &rig->mapped[light].image : &rig->device[light], light, NULL,
        test_new_error ()));
    if (i == N_LIGHTS + N_LIGHTS * 2 / 3) {
      solve (s, &result, mapped, &result.look);
      test_ok (imk_photostereo_next_light (
          s, &result.next, NULL, test_new_error ()));
    }
  }
  solve (s, &result, mapped, &result.summary);
  imk_photostereo_free (s);
  return result;
}

static bool
same_summary (const ImkPhotostereoSummary *a, const ImkPhotostereoSummary *b)
{
  return memcmp (a, b, sizeof (*a)) == 0;
}

static void
check_same (const Result *a, const Result *b, const char *where)
{
  for (int i = 0; i < N_OUTPUTS; i++)
    test_image_same (&a->images[i], &b->images[i], where);
  test_check (same_summary (&a->look, &b->look), "%s: another look", where);
  test_check (
      same_summary (&a->summary, &b->summary), "%s: another summary", where);
  test_check (a->next == b->next, "%s: the next light is %u and %u", where,
      a->next, b->next);
}

/* --- tests ---------------------------------------------------------------- */

static void
check_devices (Kind kind, uint32_t height, uint32_t n)
{
  static const uint32_t strips[] = {0, 1, 16};
  test_autoptr (Rig) rig = rig_new (kind, height);
  test_auto (Result) expected = run (rig, false);
  char where[80];

  test_check (expected.summary.n_invalid < expected.summary.n_pixels,
      "kind %d: nothing was solved", kind);
  share (&rig->config, n);
  for (uint32_t k = 0; k < 6; k++) {
    test_auto (Result) result;

    rig->config.strip_rows = strips[k / 2];
    result = run (rig, k % 2);
    snprintf (where, sizeof (where), "kind %d, height %u on %u%s, strips of %u",
        kind, height, n, k % 2 ? ", mapped" : "", strips[k / 2]);
    check_same (&expected, &result, where);
  }
}

static void
test_devices_change_no_bit (void)
{
  test_need_cuda ();
  for (Kind kind = 0; kind < N_KINDS; kind++)
    for (uint32_t n = 2; n <= 4; n++)
      if (test_takes_case (1))
        check_devices (kind, MAX_HEIGHT - 1 - kind % 2, n);
}

static void
test_bands_of_a_row_and_fewer_rows_than_devices (void)
{
  static const uint32_t heights[] = {1, 2, 3, 5};

  test_need_cuda ();
  for (uint32_t i = 0; i < 4; i++) {
    check_devices (KIND_MOSAIC, heights[i], 3);
    check_devices (KIND_LUMA, heights[i], 3);
  }
}

/* As an element with several devices adds them. */
static void
test_pictures_may_come_on_streams_in_turn (void)
{
  const ImkDevice *device;
  test_autoptr (Rig) rig = NULL;
  test_auto (Result) expected, result;
  ImkPhotostereo *s = NULL;
  void *streams[3];

  test_need_cuda ();
  device = get_device ();
  rig = rig_new (KIND_MOSAIC, MAX_HEIGHT);
  expected = run (rig, true);
  result = result_new (&rig->config);
  share (&rig->config, 3);
  for (int i = 0; i < 3; i++)
    test_ok (device->stream_new (&streams[i], test_new_error ()));
  test_ok (imk_photostereo_new (
      IMK_BACKEND_CUDA, &rig->config, &s, test_new_error ()));
  for (uint32_t i = 0; i < N_LIGHTS; i++)
    test_ok (imk_photostereo_add (
        s, &rig->mapped[i].image, i, streams[i % 3], test_new_error ()));
  solve (s, &result, true, &result.summary);
  for (int i = 0; i < N_OUTPUTS; i++)
    test_image_same (&expected.images[i], &result.images[i], "in turn");
  imk_photostereo_free (s);
  for (int i = 0; i < 3; i++)
    device->stream_free (streams[i]);
}

/* Frames that are made on a slow stream of the caller's, in a set that is
 * solved in strips on another one, by one device or two. */
static void
check_strips_follow (const Rig *rig, const Result *expected)
{
  const ImkDevice *device = get_device ();
  test_auto (Result) result = result_new (&rig->config);
  ImkPhotostereo *s = NULL;
  ImkImage frames[N_LIGHTS];
  void *stream;

  setenv ("IMK_MOCK_DELAY_US", "3000", 1);
  test_ok (device->stream_new (&stream, test_new_error ()));
  unsetenv ("IMK_MOCK_DELAY_US");
  test_ok (imk_photostereo_new (
      IMK_BACKEND_CUDA, &rig->config, &s, test_new_error ()));
  test_check (imk_photostereo_keeps_frames (s), "it is not solved in strips");
  for (uint32_t i = 0; i < N_LIGHTS; i++) {
    const ImkImage *from = &rig->mapped[i].image;

    frames[i] = test_to_device (&rig->frames[(i + 1) % N_LIGHTS]);
    test_ok (device->copy (frames[i].data, frames[i].stride, from->data,
        from->stride, imk_image_row_size (from), from->height, stream,
        test_new_error ()));
    test_ok (imk_photostereo_add (s, &frames[i], i, stream, test_new_error ()));
  }
  solve (s, &result, true, &result.summary);
  for (int i = 0; i < N_OUTPUTS; i++)
    test_image_same (&expected->images[i], &result.images[i],
        rig->config.n_devices ? "strips of two devices" : "strips");
  imk_photostereo_free (s);
  for (uint32_t i = 0; i < N_LIGHTS; i++)
    test_device_free (&frames[i]);
  device->stream_free (stream);
}

static void
test_strips_come_after_their_pictures (void)
{
  test_autoptr (Rig) rig = NULL;
  test_auto (Result) expected;

  test_need_cuda ();
  rig = rig_new (KIND_MOSAIC, MAX_HEIGHT);
  expected = run (rig, true);
  rig->config.memory_limit = 600000;
  check_strips_follow (rig, &expected);
  share (&rig->config, 2);
  check_strips_follow (rig, &expected);
}

/* Returns: whether a set on three devices came through; *told: with whose
 * error it did not */
static bool
try_set (const Rig *rig, const ImkPhotostereoOutputs *outputs, ImkStatus *told)
{
  ImkPhotostereoOutputs out = *outputs;
  ImkPhotostereoSummary summary;
  ImkPhotostereo *s = NULL;
  uint32_t next;
  ImkStatus status = imk_photostereo_new (
      IMK_BACKEND_CUDA, &rig->config, &s, test_new_error ());

  for (uint32_t i = 0; i < 5 && status == IMK_OK; i++)
    status = imk_photostereo_add (
        s, &rig->mapped[i].image, i, NULL, test_new_error ());
  if (status == IMK_OK)
    status = imk_photostereo_update (s, &rig->config, test_new_error ());
  if (status == IMK_OK)
    status = imk_photostereo_solve (s, &out, &summary, NULL, test_new_error ());
  if (status == IMK_OK)
    status = imk_photostereo_next_light (s, &next, NULL, test_new_error ());
  if (status == IMK_OK)
    status = get_device ()->stream_synchronize (NULL, test_new_error ());
  test_check (status == IMK_OK || strlen (test_message ()) > 10, "no sentence");
  imk_photostereo_free (s);
  *told = status;
  return status == IMK_OK;
}

/* Once and for good, each of the calls of a set. */
static void
test_a_failure_of_any_device_is_told (void)
{
  test_autoptr (Rig) rig = NULL;
  test_auto (TestMapped) normal;
  ImkPhotostereoOutputs out = {{0}};
  ImkStatus told = IMK_OK;
  test_auto (Result) result;

  test_need_cuda ();
  rig = rig_new (KIND_MOSAIC, 9);
  result = result_new (&rig->config);
  normal = test_to_mapped (&result.images[0]);
  share (&rig->config, 3);
  out.normal = normal.image;
  test_check (try_set (rig, &out, &told), "without a failure it fails");
  for (int forever = 0; forever < 2; forever++) {
    unsigned long n = 0;
    bool ok = false;

    while (!ok) {
      imk_inject_failure (++n, forever);
      ok = try_set (rig, &out, &told);
      imk_inject_failure (0, false);
      test_check (ok || told == IMK_ERROR_DEVICE || told == IMK_ERROR_MEMORY,
          "call %lu ends with status %d", n, told);
      test_check (n < 2000, "no end to calls");
    }
    test_check (n > 50, "%lu calls for three devices", n);
  }
  test_check (try_set (rig, &out, &told), "after all failures it fails");
}

static void
test_devices_that_are_not_there_are_refused (void)
{
  ImkPhotostereo *s = NULL;
  test_autoptr (Rig) rig = NULL;

  test_need_cuda ();
  rig = rig_new (KIND_MOSAIC, 9);
  rig->config.n_devices = 1;
  rig->config.devices[0] = 99;
  test_check (imk_photostereo_new (IMK_BACKEND_CUDA, &rig->config, &s,
                  test_new_error ()) != IMK_OK &&
                  !s && strlen (test_message ()) > 10,
      "device 99 was found");
  rig->config.n_devices = IMK_PHOTOSTEREO_MAX_DEVICES;
  test_error (imk_photostereo_new (
                  IMK_BACKEND_CUDA, &rig->config, &s, test_new_error ()),
      IMK_ERROR_CONFIG, "16 further devices");
}

int
main (void)
{
  static const Test tests[] = {
      {"devices change no bit", test_devices_change_no_bit},
      {"bands of a row, and fewer rows than devices",
          test_bands_of_a_row_and_fewer_rows_than_devices},
      {"pictures may come on streams in turn",
          test_pictures_may_come_on_streams_in_turn},
      {"strips come after their pictures",
          test_strips_come_after_their_pictures},
      {"a failure of any device is told", test_a_failure_of_any_device_is_told},
      {"devices that are not there are refused",
          test_devices_that_are_not_there_are_refused},
      {0},
  };

  setenv ("IMK_MOCK_DEVICES", "3", 1);
  return test_main (tests);
}
