/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The centroids of one frame in plain C, without GStreamer:
 *   cc kernels-shcentroid.c -o kernels-shcentroid \
 *     $(pkg-config --cflags --libs gst-imaging-kernels) -lm
 * docs/reference/c-api.md explains the calls. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <imk/shcentroid.h>

enum { COLUMNS = 8, ROWS = 6, N_CELLS = COLUMNS * ROWS, PITCH = 20 };
enum { WIDTH = COLUMNS * PITCH, HEIGHT = ROWS * PITCH };
enum { DARK = 100 }; /* counts of a camera without light */

static uint16_t frame[HEIGHT][WIDTH];
static float centroids[N_CELLS][2];

/* A spot in each cell, (@dx, @dy) pixels from the middle. */
static void
make_frame (double dx, double dy)
{
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) {
      double u = x % PITCH - (PITCH / 2 - 0.5) - dx;
      double v = y % PITCH - (PITCH / 2 - 0.5) - dy;

      frame[y][x] = (uint16_t) (DARK + 4000 * exp (-(u * u + v * v) / 4.5));
    }
}

int
main (void)
{
  const ImkImage in = {.data = frame,
      .stride = sizeof (frame[0]),
      .width = WIDTH,
      .height = HEIGHT,
      .channels = 1,
      .type = IMK_TYPE_U16,
      .location = IMK_LOCATION_HOST};
  ImkImage out = {.data = centroids,
      .stride = sizeof (centroids[0]),
      .width = 2,
      .height = N_CELLS,
      .channels = 1,
      .type = IMK_TYPE_F32,
      .location = IMK_LOCATION_HOST};
  ImkShcentroidConfig config;
  ImkShcentroid *self = NULL;
  ImkError error;
  double worst = 0;

  /* First the defaults, then what differs. */
  imk_shcentroid_config_init (&config);
  config.width = WIDTH;
  config.height = HEIGHT;
  config.type = IMK_TYPE_U16;
  config.columns = COLUMNS;
  config.rows = ROWS;
  config.pitch_x = config.pitch_y = PITCH;
  config.fields = IMK_SHCENTROID_FIELDS_XY;
  config.threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
  config.threshold = DARK + 20;

  /* Once: this checks the configuration. Then as many frames as there are. */
  make_frame (1.25, -0.5);
  if (imk_shcentroid_new (IMK_BACKEND_CPU, &config, &self, &error) != IMK_OK ||
      imk_shcentroid_process (self, &in, &out, NULL, &error) != IMK_OK) {
    fprintf (stderr, "%s\n", error.message);
    imk_shcentroid_free (self);
    return 1;
  }
  imk_shcentroid_free (self);

  for (int i = 0; i < N_CELLS; i++) {
    double x = i % COLUMNS * PITCH + PITCH / 2 - 0.5 + 1.25;
    double y = i / COLUMNS * PITCH + PITCH / 2 - 0.5 - 0.5;

    printf ("%2d: (%.3f, %.3f)\n", i, centroids[i][0], centroids[i][1]);
    worst = fmax (worst, hypot (centroids[i][0] - x, centroids[i][1] - y));
  }
  printf ("largest error: %.4f pixels\n", worst);
  return worst > 0.01;
}
