/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of arrays against what `dd bs=1M` does with as many bytes: 256 MB of
 * 64 frames of u16. Read from the page cache, frame after frame, and as a whole
 * into new memory; written with fsync at the end, as one array whose length is
 * known, and by picturesink, whose file is valid after each frame. */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gst/gst.h>

#include "bench-element.h"
#include "gstimagingarrayfile.h"

enum { N_FRAMES = 64, HEIGHT = 1000, WIDTH = 2000, BLOCK = 1 << 20 };
#define FRAME_SIZE ((size_t) HEIGHT * WIDTH * 2)

typedef struct {
  char *path, *plain;
  uint8_t *frames, *buffer;
  uint8_t *block; /* of dd: it begins with a page, which halves its time */
} Work;

static void
must (gboolean ok, GError *error)
{
  if (!ok)
    bench_fail ("%s", error ? error->message : "A file failed.");
}

static void
read_frames (void *data, uint32_t turn)
{
  Work *w = data;
  GError *error = NULL;
  GstImagingArrayReader *reader =
      gst_imaging_array_reader_new (w->path, G_MAXINT64, &error);

  must (reader != NULL, error);
  for (guint i = 0; i < N_FRAMES; i++)
    must (gst_imaging_array_reader_read (reader, i, w->buffer, &error), error);
  gst_imaging_array_reader_free (reader);
}

static void
load_array (void *data, uint32_t turn)
{
  Work *w = data;
  GError *error = NULL;
  GstImagingNdArray *array = gst_imaging_nd_array_load (w->path, &error);

  must (array != NULL, error);
  gst_imaging_nd_array_free (array);
}

static void
dd_read (void *data, uint32_t turn)
{
  Work *w = data;
  int fd = open (w->path, O_RDONLY);

  must (fd >= 0, NULL);
  while (read (fd, w->block, BLOCK) > 0)
    ;
  close (fd);
}

static void
write_frames (void *data, uint32_t turn)
{
  Work *w = data;
  GError *error = NULL;
  GstImagingNdArray shape = {.type = GST_IMAGING_ND_ARRAY_TYPE_U16,
      .n_dims = 3,
      .dims = {N_FRAMES, HEIGHT, WIDTH},
      .data = w->frames};

  must (gst_imaging_nd_array_save (&shape, w->path, &error), error);
}

static void
push_frames (void *data, uint32_t turn)
{
  Work *w = data;
  GstElement *sink = gst_element_factory_make ("picturesink", NULL);
  GstPad *camera = gst_pad_new ("camera", GST_PAD_SRC), *pad;
  GstCaps *caps;

  if (!sink)
    bench_fail ("There is no element picturesink in GST_PLUGIN_PATH.");
  caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      G_BYTE_ORDER == G_LITTLE_ENDIAN ? "GRAY16_LE" : "GRAY16_BE", "width",
      G_TYPE_INT, WIDTH, "height", G_TYPE_INT, HEIGHT, NULL);
  g_object_set (sink, "location", w->path, NULL);
  pad = gst_element_get_static_pad (sink, "sink");
  gst_pad_set_active (camera, TRUE);
  bench_link (camera, pad);
  bench_play (sink, camera, caps);
  for (guint i = 0; i < N_FRAMES; i++)
    must (gst_pad_push (
              camera, gst_buffer_new_wrapped_full (GST_MEMORY_FLAG_READONLY,
                          w->frames + i * FRAME_SIZE, FRAME_SIZE, 0, FRAME_SIZE,
                          NULL, NULL)) == GST_FLOW_OK,
        NULL);
  must (gst_pad_push_event (camera, gst_event_new_eos ()), NULL);
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_pad_set_active (camera, FALSE);
  gst_caps_unref (caps);
  gst_object_unref (pad);
  gst_object_unref (camera);
  gst_object_unref (sink);
}

/* Into a new file, as a file that was saved is. */
static void
dd_write (void *data, uint32_t turn)
{
  Work *w = data;
  int fd;

  g_unlink (w->plain);
  fd = open (w->plain, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  must (fd >= 0, NULL);
  for (size_t at = 0; at < N_FRAMES * FRAME_SIZE; at += BLOCK) {
    size_t size = MIN (BLOCK, N_FRAMES * FRAME_SIZE - at);

    must (write (fd, w->frames + at, size) == (ssize_t) size, NULL);
  }
  must (fsync (fd) == 0, NULL);
  close (fd);
}

static void
measure (const char *folder, const char *extension, Work *w)
{
  g_autofree char *name = g_strdup_printf ("frames.%s", extension);
  g_autofree char *write_row = g_strdup_printf ("write %s", extension);
  g_autofree char *read_row = g_strdup_printf ("read %s", extension);
  g_autofree char *sink_row = g_strdup_printf ("picturesink %s", extension);
  g_autofree char *load_row = g_strdup_printf ("load %s", extension);

  w->path = g_build_filename (folder, name, NULL);
  write_frames (w, 0);
  bench_case (read_row,
      (BenchEntry[]){
          {"cpu", "ours", read_frames, w}, {"cpu", "dd", dd_read, w}},
      2);
  bench_case (load_row,
      (BenchEntry[]){{"cpu", "ours", load_array, w}, {"cpu", "dd", dd_read, w}},
      2);
  bench_case (write_row,
      (BenchEntry[]){
          {"cpu", "ours", write_frames, w}, {"cpu", "dd", dd_write, w}},
      2);
  bench_case (sink_row,
      (BenchEntry[]){
          {"cpu", "ours", push_frames, w}, {"cpu", "dd", dd_write, w}},
      2);
  g_unlink (w->path);
  g_unlink (w->plain);
  g_free (w->path);
}

int
main (int argc, char **argv)
{
  g_autofree char *folder = g_dir_make_tmp ("files-bench-XXXXXX", NULL);
  g_autofree char *plain = NULL;
  Work w;

  gst_init (&argc, &argv);
  bench_open (argc, argv, "files");
  bench_limit (15);
  must (folder != NULL, NULL);
  plain = g_build_filename (folder, "plain", NULL);
  w = (Work){.plain = plain,
      .frames = g_malloc (N_FRAMES * FRAME_SIZE),
      .buffer = g_malloc (FRAME_SIZE),
      .block = aligned_alloc (4096, BLOCK)};
  for (size_t i = 0; i < N_FRAMES * FRAME_SIZE; i++)
    w.frames[i] = (uint8_t) (i * 2654435761u >> 13);
  measure (folder, "npy", &w);
  measure (folder, "tif", &w);
  measure (folder, "fits", &w);
  g_rmdir (folder);
  g_free (w.frames);
  g_free (w.buffer);
  free (w.block);
  return bench_close ();
}
