/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insar-check.h"

#include "gstimagingnpy.h"

/* --- a pair of images in a folder of its own ------------------------------ */

void
insar_write_prm (
    const gchar *name, const gchar *slc, guint height, const gchar *more)
{
  g_autofree gchar *text =
      g_strdup_printf ("SLC_file = %s\nnum_rng_bins = %d\nnum_patches = 1\n"
                       "num_valid_az = %u\nPRF = 1000\n%s",
          slc, WIDTH, height, more);

  check_write_file (name, text, -1);
}

/* A random number of a pixel: all its bits depend on all of @x and @y. */
static guint64
hash (gint x, gint y)
{
  guint64 z = ((guint64) (guint32) x << 32 | (guint32) y) + 0x9e3779b97f4a7c15;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/* Noise that is the same at (x + dx, y + dy). */
void
insar_write_slc (const gchar *name, gint dx, gint dy)
{
  g_autofree gint16 *data = g_new (gint16, 2 * WIDTH * HEIGHT);

  for (gint y = 0; y < HEIGHT; y++)
    for (gint x = 0; x < WIDTH; x++) {
      guint64 random = hash (x - dx, y - dy);

      data[2 * (y * WIDTH + x)] = (gint16) ((random & 0xffff) % 1998) - 999;
      data[2 * (y * WIDTH + x) + 1] = (gint16) ((random >> 32) % 1998) - 999;
    }
  check_write_file (name, data, sizeof (gint16) * 2 * WIDTH * HEIGHT);
}

void
insar_setup (void)
{
  check_make_folder ();
  insar_write_slc ("ref.SLC", 0, 0);
  insar_write_slc ("sec.SLC", SHIFT_X, SHIFT_Y);
  insar_write_prm ("ref.PRM", "ref.SLC", HEIGHT, "");
  insar_write_prm ("sec.PRM", "sec.SLC", HEIGHT, "rshift = 1\n");
}

/* --- pipelines ------------------------------------------------------------ */

void
insar_check_no_error (GstElement *pipeline)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GstMessage *message =
      gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);

  if (message) {
    g_autoptr (GError) error = check_parse (message);

    fail ("%s", error->message);
  }
}

/* Returns: (transfer full): all that comes out of "out" */
GString *
insar_run (const gchar *description)
{
  GstElement *pipeline = check_launch (description);
  GString *text = g_string_new (NULL);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_collect (pipeline, "out", text);
  insar_check_no_error (pipeline);
  check_stop (pipeline);
  return text;
}

static void
save_npy (const gchar *name, GstImagingNdArrayType type, guint n_dims,
    const guint64 *dims, gconstpointer data)
{
  g_autofree gchar *path = check_path_of (name);

  fail_unless (gst_imaging_npy_save (path, type, n_dims, dims, data, NULL));
}

/* 8 x 2 pixels, of which the left half, with the first patch of each row, is 0.
 */
void
insar_write_mask (const gchar *name)
{
  const guint8 mask[] = {0, 0, 0, 0, 1, 1, 255, 2, 0, 0, 0, 0, 1, 1, 1, 1};
  const guint64 dims[] = {2, 8};

  save_npy (name, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, mask);
}

/* The same for all patches of the grid. */
void
insar_write_gross_offsets (const gchar *name, gdouble x, gdouble y)
{
  const guint64 dims[] = {4, 3, 2};
  gdouble offsets[4 * 3 * 2];

  for (guint i = 0; i < G_N_ELEMENTS (offsets); i += 2) {
    offsets[i] = x;
    offsets[i + 1] = y;
  }
  save_npy (name, GST_IMAGING_ND_ARRAY_TYPE_F64, 3, dims, offsets);
}
