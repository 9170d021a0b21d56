/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* slcsrc: images that GDAL reads, memory that downstream offers, progress. Its
 * lines, seeks and errors of raw files are in insarxcorr.c. */
#include "check-common.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "gstimagingengine.h"
#include "gstimagingmemory.h"
#include "gstimagingnpy.h"
#include "insar/gstinsarprm.h"

#define WIDTH 53
#define HEIGHT 41

/* Real part and imaginary part of sample @i, whole numbers. */
static gint
value_at (guint i)
{
  return (gint) (i * 7919u % 4001u) - 2000;
}

static gint16 *
make_ci16 (void)
{
  gint16 *data = g_new (gint16, 2 * WIDTH * HEIGHT);

  for (guint i = 0; i < 2 * WIDTH * HEIGHT; i++)
    data[i] = (gint16) value_at (i);
  return data;
}

static gfloat *
make_cf32 (void)
{
  gfloat *data = g_new (gfloat, 2 * WIDTH * HEIGHT);

  for (guint i = 0; i < 2 * WIDTH * HEIGHT; i++)
    data[i] = (gfloat) value_at (i);
  return data;
}

static void
setup (void)
{
  g_autofree gint16 *ci16 = make_ci16 ();
  g_autofree gfloat *cf32 = make_cf32 ();

  check_make_folder ();
  check_write_file ("a.slc", ci16, sizeof (gint16) * 2 * WIDTH * HEIGHT);
  check_write_file ("b.slc", cf32, sizeof (gfloat) * 2 * WIDTH * HEIGHT);
}

/* --- pipelines ------------------------------------------------------------ */

static GstElement *
launch (const gchar *name, const gchar *more, const gchar *sink)
{
  g_autofree gchar *text = g_strdup_printf (
      "slcsrc name=s location=\"$/%s\" %s ! %s", name, more, sink);

  return check_launch (text);
}

#if defined HAVE_GDAL
/* Reads all of a file and compares it; @complex32: as cf32, else as ci16 */
static void
check_reads (const gchar *name, const gchar *more, gboolean complex32)
{
  g_autoptr (CheckPipeline) pipeline =
      launch (name, more, "appsink name=out sync=false");
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  g_autofree gchar *caps = g_strdup_printf (
      "application/x-slc, format=(string)%s, width=(int)%d, height=(int)%d, "
      "prf=(double)0, rshift=(int)0, ashift=(int)0",
      complex32 ? "cf32" : "ci16", WIDTH, HEIGHT);
  g_autoptr (GstCaps) expected = gst_caps_from_string (caps);
  g_autofree gpointer data =
      complex32 ? (gpointer) make_cf32 () : (gpointer) make_ci16 ();
  gsize size = (complex32 ? 8 : 4) * WIDTH * HEIGHT, at = 0;
  GstSample *sample;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (;;) {
    gsize n;

    g_signal_emit_by_name (
        sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &sample);
    if (!sample)
      break;
    fail_unless (gst_caps_is_equal (gst_sample_get_caps (sample), expected),
        "%s: %" GST_PTR_FORMAT, name, gst_sample_get_caps (sample));
    n = gst_buffer_get_size (gst_sample_get_buffer (sample));
    fail_unless (at + n <= size);
    fail_unless (gst_buffer_memcmp (gst_sample_get_buffer (sample), 0,
                     (guint8 *) data + at, n) == 0,
        "%s %s: other samples from byte %" G_GSIZE_FORMAT " on", name, more,
        at);
    at += n;
    gst_sample_unref (sample);
  }
  fail_unless_equals_uint64 (at, size);
}
#endif

static void
check_fails (const gchar *name, const gchar *more, GQuark domain, gint code,
    const gchar *words)
{
  g_autofree gchar *text =
      g_strdup_printf ("slcsrc location=\"$/%s\" %s ! fakesink", name, more);

  check_launch_fails (text, domain, code, words);
}

/* --- .npy ----------------------------------------------------------------- */

/* Reads an array and compares its bytes. */
static void
check_array (
    const gchar *more, const gchar *format, gconstpointer values, gsize size)
{
  GstElement *pipeline =
      launch ("a.npy", more, "filesink location=\"$/out\" name=sink");
  g_autofree gchar *path = check_path_of ("out");
  GstBus *bus = gst_element_get_bus (pipeline);
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  GstPad *pad = gst_element_get_static_pad (sink, "sink");
  g_autofree gchar *bytes = NULL;
  GstMessage *message;
  GstCaps *caps;
  gsize n = 0;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (
      bus, CHECK_TIMEOUT, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  caps = gst_pad_get_current_caps (pad);
  fail_unless_equals_string (
      gst_structure_get_string (gst_caps_get_structure (caps, 0), "format"),
      format);
  gst_caps_unref (caps);
  gst_message_unref (message);
  gst_object_unref (bus);
  gst_object_unref (pad);
  gst_object_unref (sink);
  check_stop (pipeline);
  fail_unless (g_file_get_contents (path, &bytes, &n, NULL));
  fail_unless_equals_uint64 (n, size);
  fail_unless (memcmp (bytes, values, n) == 0);
}

CHECK_CASE ("general", setup, check_remove_folder)

/* numpy.save of what numpy.fft.ifft2 returns */
CHECK_TEST (test_arrays_in_fortran_order)
{
  static const gchar header[] =
      "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': True, "
      "'shape': (3, 5), }";
  static const gfloat columns[] = {
      0, 5, 10, 1, 6, 11, 2, 7, 12, 3, 8, 13, 4, 9, 14};
  static const gfloat lines[] = {
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  gchar file[128 + sizeof (columns)];

  memset (file, ' ', 127);
  memcpy (file, header, sizeof (header) - 1);
  file[127] = '\n';
  memcpy (file + 128, columns, sizeof (columns));
  check_write_file ("a.npy", file, sizeof (file));
  check_array ("lines-per-buffer=2", "f32", lines, sizeof (lines));
  check_write_file ("short.npy", file, sizeof (file) - 1);
  check_fails ("short.npy", "", CHECK_CODE (STREAM, FORMAT), "is truncated");
}

CHECK_TEST (test_arrays_of_numpy)
{
  g_autofree gfloat *cf32 = make_cf32 ();
  g_autofree gchar *path = check_path_of ("a.npy");
  const guint64 dims[] = {HEIGHT, WIDTH, 2};
  const gsize size = sizeof (gfloat) * 2 * WIDTH * HEIGHT;

  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64, 2, dims, cf32, NULL));
  check_array ("", "cf32", cf32, size);
  check_array ("format=cf32 lines-per-buffer=3", "cf32", cf32, size);
  check_fails ("a.npy", "format=ci16", CHECK_CODE (RESOURCE, SETTINGS),
      "which format=ci16 contradicts");
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims, cf32, NULL));
  check_array ("", "f32", cf32, size / 2);
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F32, 3, dims, cf32, NULL));
  check_fails ("a.npy", "", CHECK_CODE (STREAM, FORMAT),
      "expected is complex64 or f32 [lines, samples]");
  check_write_file ("a.npy", "no array", -1);
  check_fails ("a.npy", "", CHECK_CODE (STREAM, FORMAT), "a.npy");
  check_fails ("none.npy", "", CHECK_CODE (RESOURCE, NOT_FOUND), "none.npy");
}

/* --- images that GDAL reads ----------------------------------------------- */

#if defined HAVE_GDAL

static void
put (GByteArray *bytes, guint n, guint32 value)
{
  for (guint i = 0; i < n; i++, value >>= 8)
    g_byte_array_append (bytes, &(guint8){value & 255}, 1);
}

/* An uncompressed little-endian TIFF of one strip. @sample_format: 5 for
 * complex integers, 6 for complex floats */
static void
write_tiff (const gchar *name, gconstpointer data, guint bits,
    guint sample_format, guint height)
{
  const guint32 size = WIDTH * HEIGHT * bits / 8;
  const guint32 tags[][2] = {{256, WIDTH}, {257, height}, {258, bits}, {259, 1},
      {262, 1}, {273, 8}, {277, 1}, {278, height}, {279, size},
      {339, sample_format}};
  g_autoptr (GByteArray) bytes = g_byte_array_new ();

  g_byte_array_append (bytes, (const guint8 *) "II*", 4);
  put (bytes, 4, 8 + size);
  g_byte_array_append (bytes, data, size);
  put (bytes, 2, G_N_ELEMENTS (tags));
  for (guint i = 0; i < G_N_ELEMENTS (tags); i++) {
    put (bytes, 2, tags[i][0]);
    put (bytes, 2, 4); /* LONG */
    put (bytes, 4, 1);
    put (bytes, 4, tags[i][1]);
  }
  put (bytes, 4, 0);
  check_write_file (name, bytes->data, bytes->len);
}

static void
write_envi (const gchar *name, guint type, guint height)
{
  g_autofree gchar *text = g_strdup_printf (
      "ENVI\nsamples = %d\nlines = %u\nbands = 1\nheader offset = 0\n"
      "data type = %u\ninterleave = bsq\nbyte order = 0\n",
      WIDTH, height, type);

  check_write_file (name, text, -1);
}

static void
write_vrt (const gchar *name, const gchar *type, guint size)
{
  g_autofree gchar *text = g_strdup_printf (
      "<VRTDataset rasterXSize=\"%d\" rasterYSize=\"%d\">\n"
      "  <VRTRasterBand band=\"1\" dataType=\"%s\" "
      "subClass=\"VRTRawRasterBand\">\n"
      "    <SourceFilename relativeToVRT=\"1\">%c.slc</SourceFilename>\n"
      "    <ByteOrder>LSB</ByteOrder>\n    <ImageOffset>0</ImageOffset>\n"
      "    <PixelOffset>%u</PixelOffset>\n"
      "    <LineOffset>%u</LineOffset>\n  </VRTRasterBand>\n</VRTDataset>\n",
      WIDTH, HEIGHT, type, size == 4 ? 'a' : 'b', size, size * WIDTH);

  check_write_file (name, text, -1);
}

CHECK_TEST (test_gdal_reads_tiff_envi_and_isce)
{
  g_autofree gint16 *ci16 = make_ci16 ();
  g_autofree gfloat *cf32 = make_cf32 ();

  write_tiff ("a.tiff", ci16, 32, 5, HEIGHT);
  check_reads ("a.tiff", "", FALSE);
  check_reads ("a.tiff", "lines-per-buffer=7", FALSE);
  check_reads ("a.tiff", "format=cf32", TRUE);
  write_tiff ("b.tiff", cf32, 64, 6, HEIGHT);
  check_reads ("b.tiff", "", TRUE);
  check_reads ("b.tiff", "format=ci16", FALSE);
  write_envi ("b.slc.hdr", 6, HEIGHT); /* beside b.slc */
  check_reads ("b.slc", "lines-per-buffer=10", TRUE);
  write_vrt ("a.slc.vrt", "CInt16", 4);
  check_reads ("a.slc.vrt", "", FALSE);
  write_vrt ("b.slc.vrt", "CFloat32", 8);
  check_reads ("b.slc.vrt", "", TRUE);
}

/* A product of Sentinel-1 is a folder; its images are GeoTIFFs of CInt16, one a
 * swath and polarisation. */
CHECK_TEST (test_gdal_reads_a_measurement_of_sentinel_1)
{
  const gchar *product = "S1A_IW_SLC__1SDV_20260101T052633_0572A1.SAFE";
  g_autofree gchar *safe = check_path_of (product);
  g_autofree gchar *measurement = g_build_filename (safe, "measurement", NULL);
  g_autofree gchar *name = g_build_filename (
      product, "measurement", "s1a-iw2-slc-vv-20260101t052633-001.tiff", NULL);
  g_autofree gchar *path = check_path_of (name);
  g_autofree gint16 *ci16 = make_ci16 ();

  fail_unless_equals_int (g_mkdir_with_parents (measurement, 0700), 0);
  write_tiff (name, ci16, 32, 5, HEIGHT);
  check_reads (name, "", FALSE);
  check_fails (product, "", CHECK_CODE (RESOURCE, SETTINGS),
      "is a folder; of a Sentinel-1 product name a .tiff in its folder "
      "measurement");
  g_unlink (path);
  g_rmdir (measurement);
  g_rmdir (safe);
}

CHECK_TEST (test_gdal_says_what_is_wrong)
{
  g_autofree gint16 *ci16 = make_ci16 ();

  check_fails ("a.slc", "", CHECK_CODE (RESOURCE, SETTINGS),
      "without a header beside it, they need the properties width");
  check_fails (
      "no.tiff", "", CHECK_CODE (RESOURCE, NOT_FOUND), "There is no file");
  write_tiff ("a.tiff", ci16, 32, 5, HEIGHT);
  check_fails ("a.tiff", "band=2", CHECK_CODE (RESOURCE, SETTINGS),
      "has 1 bands, and band is 2");
  check_fails ("a.tiff", "format=f32", CHECK_CODE (RESOURCE, SETTINGS),
      "of which format=f32 would read the real parts alone");
  /* cut short: the strip ends before the image */
  write_tiff ("long.tiff", ci16, 32, 5, 3 * HEIGHT);
  check_fails ("long.tiff", "", CHECK_CODE (RESOURCE, READ), "cannot be read");
  /* the source of a VRT is missing */
  write_vrt ("a.slc.vrt", "CInt16", 4);
  {
    g_autofree gchar *path = check_path_of ("a.slc");

    g_unlink (path);
  }
  check_fails ("a.slc.vrt", "", CHECK_CODE (RESOURCE, SETTINGS),
      "GDAL does not read it either");
}

#else

CHECK_TEST (test_without_gdal_that_is_said)
{
  check_fails (
      "a.slc", "", CHECK_CODE (RESOURCE, SETTINGS), "This build has no GDAL");
  g_printerr ("skipped: images that GDAL reads: this build has no GDAL\n");
}

#endif

/* --- files that are none
 * ------------------------------------------------------
 */

/* A pipe without a writer would be waited for, in the change of state. */
CHECK_TEST (test_a_pipe_is_no_image)
{
  static const gchar prm[] =
      "SLC_file = pipe\nnum_rng_bins = 4\nnum_valid_az = 4\n";
  g_autofree gchar *pipe = check_path_of ("pipe");

  fail_unless_equals_int (mkfifo (pipe, 0600), 0);
  check_write_file ("pipe.PRM", prm, sizeof (prm) - 1);
  check_fails ("pipe", "width=4 format=ci16", CHECK_CODE (RESOURCE, OPEN_READ),
      "is no regular file");
  check_fails (
      "pipe.PRM", "", CHECK_CODE (RESOURCE, OPEN_READ), "is no regular file");
#if defined HAVE_GDAL
  check_fails (
      "pipe", "", CHECK_CODE (RESOURCE, OPEN_READ), "is no regular file");
#endif
}

/* Nor is it read into memory. */
CHECK_TEST (test_an_image_is_no_prm)
{
  g_autofree gchar *path = check_path_of ("image.PRM");

  check_write_file ("image.PRM", "SLC_file = image.PRM\n", -1);
  if (truncate (path, G_GINT64_CONSTANT (1) << 42) != 0) {
    g_printerr ("skipped: no file here can have 4 TiB\n");
    return;
  }
  check_fails ("image.PRM", "", CHECK_CODE (STREAM, FORMAT), "is no PRM file");
}

/* --- memory --------------------------------------------------------------- */

typedef struct {
  guint n, n_ours;
  GHashTable *memories;
} Seen;

static void
look (GstElement *sink, GstBuffer *buffer, GstPad *pad, Seen *seen)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  seen->n++;
  seen->n_ours += gst_is_imaging_memory (memory);
  g_hash_table_add (seen->memories, memory);
}

CHECK_TEST (test_lines_are_read_into_a_few_buffers_of_the_memory_offered)
{
  g_autoptr (GstImagingContext) context = check_context (0);
  g_autoptr (GstAllocator) allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_PINNED, NULL);
  g_autoptr (CheckPipeline) pipeline =
      launch ("a.slc", "width=53 format=ci16 lines-per-buffer=2",
          "fakesink name=sink signal-handoffs=true sync=false");
  g_autoptr (GstElement) sink =
      gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_autoptr (GstPad) pad = gst_element_get_static_pad (sink, "sink");
  Seen seen = {0, 0, g_hash_table_new (NULL, NULL)};

  g_signal_connect (sink, "handoff", G_CALLBACK (look), &seen);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM,
      check_offer_allocator, allocator, NULL);
  check_play (pipeline);
  fail_unless_equals_int (seen.n, 21);
  fail_unless_equals_int (seen.n_ours, 21);
  fail_unless (g_hash_table_size (seen.memories) <= 4, "%u buffers",
      g_hash_table_size (seen.memories));
  g_hash_table_unref (seen.memories);
}

/* --- progress and PRM ----------------------------------------------------- */

CHECK_TEST (test_progress_is_told_ten_times)
{
  g_autoptr (CheckPipeline) pipeline =
      launch ("a.slc", "width=53 format=ci16 lines-per-buffer=1", "fakesink");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  guint64 last = 0, lines, of;
  guint n = 0;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (n < 10) {
    g_autoptr (GstMessage) message = check_message (bus, GST_MESSAGE_ELEMENT);
    const GstStructure *s = gst_message_get_structure (message);

    fail_unless (gst_structure_has_name (s, "slcsrc-progress"));
    fail_unless (gst_structure_get (
        s, "lines", G_TYPE_UINT64, &lines, "of", G_TYPE_UINT64, &of, NULL));
    fail_unless (of == HEIGHT && lines > last);
    last = lines;
    n++;
  }
  fail_unless_equals_uint64 (last, HEIGHT);
}

/* Returns: whether the caps of a PRM file @name with these @lines have it */
static gboolean
find_doppler (const gchar *name, const gchar *lines, gdouble *doppler)
{
  g_autofree gchar *text = g_strconcat (
      "SLC_file = a.slc\nnum_rng_bins = 53\nnum_valid_az = 41\n", lines, NULL);
  g_autoptr (GstElement) source = NULL;
  g_autoptr (GstPad) pad = NULL;
  g_autoptr (GstCaps) caps = NULL;
  GstElement *pipeline;
  gboolean has_doppler;

  check_write_file (name, text, -1);
  pipeline = launch (name, "", "fakesink name=sink");
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT);
  source = gst_bin_get_by_name (GST_BIN (pipeline), "s");
  pad = gst_element_get_static_pad (source, "src");
  caps = gst_pad_get_current_caps (pad);
  has_doppler = gst_structure_get_double (
      gst_caps_get_structure (caps, 0), "doppler", doppler);
  check_stop (pipeline);
  return has_doppler;
}

CHECK_TEST (test_doppler_is_that_of_the_prm)
{
  gdouble doppler;

  fail_unless (find_doppler ("some.PRM", "PRF = 2000\nfd1 = -300\n", &doppler));
  fail_unless_equals_float (doppler, -0.15);
  fail_unless (find_doppler ("zero.PRM", "PRF = 2000\nfd1 = 0\n", &doppler));
  fail_unless_equals_float (doppler, 0);
  fail_unless (!find_doppler ("no-fd1.PRM", "PRF = 2000\n", &doppler));
  fail_unless (!find_doppler ("no-prf.PRM", "fd1 = -300\n", &doppler));
}

CHECK_TEST (test_alignment_is_that_of_the_prm)
{
  static const gchar fit[] =
      "rshift =  -3 \nsub_int_r =  0.25 \nstretch_r =  0.001 \n"
      "a_stretch_r =  -0.0007 \nashift =  5 \nsub_int_a =  0.5 \n"
      "stretch_a =  2e-05 \na_stretch_a =  0 \n";
  GstInsarPrmAlignment alignment;
  g_autoptr (GError) error = NULL;

  fail_unless (gst_insar_prm_parse_alignment (
      fit, strlen (fit), "fit.txt", &alignment, &error));
  fail_unless_equals_float (alignment.shift[0], -2.75);
  fail_unless_equals_float (alignment.shift[1], 5.5);
  fail_unless_equals_float (alignment.stretch[0], 0.001);
  fail_unless_equals_float (alignment.a_stretch[0], -0.0007);
  fail_unless_equals_float (alignment.stretch[1], 2e-5);
  fail_unless (
      !gst_insar_prm_parse_alignment (fit, 20, "fit.txt", &alignment, &error));
  fail_unless (strstr (error->message, "has no line \"ashift = ...\"") != NULL,
      "%s", error->message);
}

/* --- strangers' files ----------------------------------------------------- */

/* As in the folder of somebody else's product. */
CHECK_TEST (test_two_files_of_one_name_are_warned_of)
{
  static const gchar prm[] =
      "SLC_file = two.SLC\nnum_rng_bins = 4\nnum_valid_az = 4\n";
  g_autofree gchar *folder = check_path_of ("product");
  g_autofree gchar *beside = check_path_of ("product/two.SLC");
  g_autofree gchar *path = check_path_of ("product/two.PRM");
  g_autofree gchar *before = g_get_current_dir ();
  gchar samples[64] = {0};
  GstElement *pipeline;
  GstBus *bus;

  fail_unless_equals_int (g_mkdir (folder, 0700), 0);
  check_write_file ("two.SLC", samples, sizeof (samples));
  fail_unless (g_file_set_contents (beside, samples, sizeof (samples), NULL));
  fail_unless (g_file_set_contents (path, prm, -1, NULL));
  fail_unless_equals_int (g_chdir (check_folder ()), 0);
  pipeline = check_launch ("slcsrc location=$/product/two.PRM ! fakesink");
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  check_message_says (
      check_message (bus, GST_MESSAGE_WARNING | GST_MESSAGE_EOS),
      CHECK_CODE (RESOURCE, OPEN_READ),
      "two.SLC\" of the working folder is read, and not");
  check_stop (pipeline);
  /* one of them alone, or both the same, is no question */
  fail_unless_equals_int (g_unlink (beside), 0);
  fail_unless_equals_int (symlink ("../two.SLC", beside), 0);
  pipeline = check_launch ("slcsrc location=$/product/two.PRM ! fakesink");
  gst_object_unref (bus);
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  gst_message_unref (check_message (bus, GST_MESSAGE_EOS));
  check_no_messages (bus, GST_MESSAGE_WARNING);
  gst_object_unref (bus);
  check_stop (pipeline);
  fail_unless_equals_int (g_chdir (before), 0);
  g_unlink (beside);
  g_unlink (path);
}

#if defined HAVE_GDAL
typedef struct {
  gint fd, n; /* n: atomic */
} Server;

static gpointer
serve (gpointer data)
{
  Server *self = data;
  gint fd;

  while ((fd = accept (self->fd, NULL, NULL)) >= 0) {
    g_atomic_int_inc (&self->n);
    close (fd);
  }
  return NULL;
}

static guint
count_threads (void)
{
  g_autoptr (GDir) tasks = g_dir_open ("/proc/self/task", 0, NULL);
  guint n = 0;

  while (tasks && g_dir_read_name (tasks))
    n++;
  return n;
}

/* OpenSSL, which GDAL brings for URLs, frees the data of all threads at exit(),
 * also of one that frees them itself at that moment: none may end later. */
static void
wait_for_threads (guint n_before)
{
  gint i;

  g_thread_pool_set_max_unused_threads (0);
  for (i = 0; i < 1000 && count_threads () > n_before; i++)
    g_usleep (10000);
}

/* Returns: how often somebody came to the server that @format names in a .vrt,
 * %u being its port */
static gint
count_visits (const gchar *format, const gchar *properties)
{
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof (address);
  Server server = {socket (AF_INET, SOCK_STREAM, 0), 0};
  g_autofree gchar *vrt = NULL, *launch = NULL;
  guint n_threads = count_threads ();
  GstElement *pipeline;
  GThread *thread;
  GstBus *bus;

  address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  fail_unless (
      bind (server.fd, (struct sockaddr *) &address, size) == 0 &&
      listen (server.fd, 9) == 0 &&
      getsockname (server.fd, (struct sockaddr *) &address, &size) == 0);
  thread = g_thread_new ("server", serve, &server);
  vrt = g_strdup_printf (format, ntohs (address.sin_port));
  check_write_file ("url.vrt", vrt, -1);
  launch =
      g_strdup_printf ("slcsrc location=$/url.vrt %s ! fakesink", properties);
  pipeline = check_launch (launch);
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  gst_message_unref (check_message (bus, GST_MESSAGE_ERROR | GST_MESSAGE_EOS));
  gst_object_unref (bus);
  check_stop (pipeline);
  shutdown (server.fd, SHUT_RDWR);
  g_thread_join (thread);
  wait_for_threads (n_threads);
  close (server.fd);
  return g_atomic_int_get (&server.n);
}

#define VRT(name) \
  "<VRTDataset rasterXSize=\"4\" rasterYSize=\"4\">" \
  "<VRTRasterBand dataType=\"CInt16\" band=\"1\"><SimpleSource>" \
  "<SourceFilename relativeToVRT=\"0\">" name "</SourceFilename>" \
  "<SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>"

CHECK_LOOP_TEST (test_urls_in_files_are_opened_where_they_are_allowed, 3)
{
  static const gchar *const files[] = {
      VRT ("/vsicurl/http://127.0.0.1:%u/a.tif"),
      VRT ("/vsicurl_streaming/http://127.0.0.1:%u/b.tif"),
      VRT ("http://127.0.0.1:%u/c.tif")};

  fail_unless_equals_int (count_visits (files[__i__], ""), 0);
  fail_unless (count_visits (files[__i__], "allow-urls=true") > 0);
}
#endif
