/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that we read and write: none of them is waited for, none that is no
 * regular file is opened or replaced, and what they hold does no harm in a
 * message. */
#include "check-common.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "files/gstimagingfile.h"
#include "gstimagingnpy.h"

/* --- files that are none -------------------------------------------------- */

typedef struct {
  const gchar *name;
  gboolean (*make) (const gchar *path); /* FALSE where that is not allowed */
  const gchar *words;
} Kind;

static gboolean
make_pipe (const gchar *path)
{
  return mkfifo (path, 0600) == 0;
}

static gboolean
make_folder (const gchar *path)
{
  return g_mkdir (path, 0700) == 0;
}

static gboolean
make_socket (const gchar *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  gint fd = socket (AF_UNIX, SOCK_STREAM, 0);
  gboolean ok;

  g_strlcpy (address.sun_path, path, sizeof (address.sun_path));
  ok = bind (fd, (struct sockaddr *) &address, sizeof (address)) == 0;
  close (fd);
  return ok;
}

/* Zeros without an end; only root may make one. */
static gboolean
make_device (const gchar *path)
{
  return mknod (path, S_IFCHR | 0600, makedev (1, 5)) == 0;
}

static gboolean
make_link_to (const gchar *path, gboolean (*make) (const gchar *path))
{
  g_autofree gchar *target = g_strconcat (path, "-target", NULL);

  return (g_access (target, F_OK) == 0 || make (target)) &&
         symlink (target, path) == 0;
}

static gboolean
make_link_to_pipe (const gchar *path)
{
  return make_link_to (path, make_pipe);
}

static gboolean
make_link_to_device (const gchar *path)
{
  return make_link_to (path, make_device);
}

static const Kind kinds[] = {
    {"pipe", make_pipe, "it is a pipe or device"},
    {"folder", make_folder, "it is a folder"},
    {"socket", make_socket, "it is a pipe or device"},
    {"device", make_device, "it is a pipe or device"},
    {"link-to-pipe", make_link_to_pipe, "it is a pipe or device"},
    {"link-to-device", make_link_to_device, "it is a pipe or device"},
};

/* Returns: (nullable): its path; NULL when it cannot be made here */
static gchar *
make (const Kind *kind)
{
  gchar *path = check_path_of (kind->name);

  if (kind->make (path))
    return path;
  fail_unless (kind->make == make_device || kind->make == make_link_to_device);
  g_printerr ("skipped: no %s without root\n", kind->name);
  g_free (path);
  return NULL;
}

static void
check_error_says (GError *error, gint code, const gchar *words)
{
  fail_unless (error != NULL);
  fail_unless (g_error_matches (error, GST_IMAGING_FILE_ERROR, code), "%s",
      error->message);
  fail_unless (strstr (error->message, words) != NULL, "%s", error->message);
  fail_unless (g_str_has_suffix (error->message, "."));
  g_error_free (error);
}

CHECK_CASE ("broken", check_make_folder, check_remove_folder)

CHECK_TEST (test_only_regular_files_are_opened)
{
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autofree gchar *path = make (&kinds[i]);
    GError *error = NULL;
    gsize size;

    if (!path)
      continue;
    fail_unless (gst_imaging_file_load (path, 100, &size, &error) == NULL);
    check_error_says (error, GST_IMAGING_FILE_ERROR_OPEN, kinds[i].words);
  }
}

CHECK_TEST (test_a_file_is_read_to_its_end_or_its_limit)
{
  g_autofree gchar *path = check_path_of ("file");
  g_autofree gchar *missing = check_path_of ("missing");
  g_autofree gchar *text = NULL;
  GError *error = NULL;
  gsize size = 0;

  check_write_file ("file",
      "12\0"
      "4",
      4);
  text = gst_imaging_file_load (path, 4, &size, &error);
  fail_unless (text && size == 4 &&
               memcmp (text,
                   "12\0"
                   "4",
                   5) == 0);
  fail_unless (gst_imaging_file_load (path, 3, &size, &error) == NULL);
  check_error_says (error, GST_IMAGING_FILE_ERROR_SIZE, "has 4 bytes");
  error = NULL;
  fail_unless (gst_imaging_file_load (missing, 3, &size, &error) == NULL);
  check_error_says (error, GST_IMAGING_FILE_ERROR_NOT_FOUND, "There is no");
}

/* The system says that its files have no bytes. */
CHECK_TEST (test_a_file_that_denies_its_size_is_limited)
{
  GError *error = NULL;
  gsize size;

  if (g_access ("/proc/self/maps", R_OK) != 0)
    check_skip ("there is no /proc");
  fail_unless (
      gst_imaging_file_load ("/proc/self/maps", 99, &size, &error) == NULL);
  check_error_says (error, GST_IMAGING_FILE_ERROR_SIZE, "has 9");
}

/* --- text in messages
 * --------------------------------------------------------- */

static void
check_quote (const gchar *text, gssize size, const gchar *expected)
{
  g_autofree gchar *found = gst_imaging_file_quote (text, size);

  fail_unless_equals_string (found, expected);
}

CHECK_TEST (test_quoted_text_is_harmless)
{
  g_autofree gchar *letters = g_strnfill (80, 'a');
  g_autofree gchar *more = g_strnfill (81, 'a');
  g_autofree gchar *cut = g_strnfill (80, 'a');
  g_autofree gchar *bytes = g_strnfill (30, '\xff');
  g_autofree gchar *shown = gst_imaging_file_quote (bytes, -1);
  g_autofree gchar *path = g_strconcat ("/first/", more, "/last", NULL);
  g_autofree gchar *name = gst_imaging_file_name (path);

  memcpy (cut + 77, "...", 3);
  check_quote ("Müller \xe2\x82\xac 5", -1, "Müller \xe2\x82\xac 5");
  check_quote ("a\nb\x1b[2J", -1, "a\\x0ab\\x1b[2J");
  check_quote ("\xe2\x82", -1, "\\xe2\\x82"); /* a character without its end */
  check_quote ("\xed\xa0\x80", -1, "\\xed\\xa0\\x80"); /* a surrogate */
  check_quote ("a\0b", 3, "a\\x00b");
  check_quote ("\xe2\x80\xae"
               "x",
      -1, "\\xe2\\x80\\xaex"); /* right to left */
  check_quote (letters, -1, letters);
  check_quote (more, -1, cut);
  check_quote ("", -1, "");
  fail_unless (strlen (shown) <= 80 && g_str_has_suffix (shown, "\\xff..."));
  fail_unless_equals_int ((gint) strlen (name), 80);
  fail_unless (
      g_str_has_prefix (name, "...a") && g_str_has_suffix (name, "/last"));
}

/* --- files that are written
 * --------------------------------------------------- */

static guint
count_files (void)
{
  g_autoptr (GDir) folder = g_dir_open (check_folder (), 0, NULL);
  guint n = 0;

  while (g_dir_read_name (folder))
    n++;
  return n;
}

static void
check_content (const gchar *path, const gchar *expected)
{
  g_autofree gchar *text = NULL;
  GError *error = NULL;

  fail_unless (g_file_get_contents (path, &text, NULL, &error), "%s",
      error ? error->message : "");
  fail_unless_equals_string (text, expected);
}

static mode_t
mode_of (const gchar *path)
{
  struct stat info;

  fail_unless_equals_int (lstat (path, &info), 0);
  return info.st_mode;
}

CHECK_TEST (test_what_is_no_file_is_not_replaced)
{
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autofree gchar *path = make (&kinds[i]);
    GError *error = NULL;
    mode_t mode;
    guint n;

    if (!path)
      continue;
    mode = mode_of (path);
    n = count_files ();
    fail_if (gst_imaging_file_save (path, "text", 4, &error));
    check_error_says (error, GST_IMAGING_FILE_ERROR_WRITE, kinds[i].words);
    fail_unless_equals_int (mode_of (path), mode);
    fail_unless_equals_int (count_files (), n);
  }
}

CHECK_TEST (test_a_saved_file_keeps_its_mode)
{
  g_autofree gchar *path = check_path_of ("file");
  mode_t mask = umask (022);

  fail_unless (gst_imaging_file_save (path, "new", 3, NULL));
  fail_unless_equals_int (mode_of (path), S_IFREG | 0644);
  fail_unless_equals_int (g_chmod (path, 0600), 0);
  fail_unless (gst_imaging_file_save (path, "newer", 5, NULL));
  fail_unless_equals_int (mode_of (path), S_IFREG | 0600);
  fail_unless_equals_int (g_chmod (path, 0666), 0);
  fail_unless (gst_imaging_file_save (path, "newest", 6, NULL));
  fail_unless_equals_int (mode_of (path), S_IFREG | 0666);
  check_content (path, "newest");
  fail_unless_equals_int (count_files (), 1);
  umask (mask);
}

/* Also one of a link, and one whose target is not there yet. */
CHECK_TEST (test_a_save_follows_links)
{
  g_autofree gchar *folder = check_path_of ("folder");
  g_autofree gchar *target = check_path_of ("folder/target");
  g_autofree gchar *near_link = check_path_of ("folder/near");
  g_autofree gchar *far_link = check_path_of ("far");
  g_autofree gchar *circle = check_path_of ("circle");
  GError *error = NULL;

  fail_unless_equals_int (g_mkdir (folder, 0700), 0);
  fail_unless_equals_int (symlink ("target", near_link), 0);
  fail_unless_equals_int (symlink ("folder/near", far_link), 0);
  for (guint i = 0; i < 2; i++) {
    fail_unless (gst_imaging_file_save (far_link, "text", 4, NULL));
    fail_unless (S_ISLNK (mode_of (far_link)) && S_ISLNK (mode_of (near_link)));
    check_content (target, "text");
  }
  fail_unless_equals_int (symlink ("circle", circle), 0);
  fail_if (gst_imaging_file_save (circle, "text", 4, &error));
  check_error_says (error, GST_IMAGING_FILE_ERROR_WRITE, "cannot be written");
  fail_unless (S_ISLNK (mode_of (circle)));
  g_unlink (target);
  g_unlink (near_link);
}

/* As on a full disk. */
CHECK_TEST (test_a_save_that_fails_leaves_the_old_file)
{
  g_autofree gchar *path = check_path_of ("file");
  g_autofree gchar *much = g_malloc0 (100000);
  struct rlimit old, small;
  GError *error = NULL;
  gboolean ok;

  check_write_file ("file", "old", -1);
  signal (SIGXFSZ, SIG_IGN);
  fail_unless_equals_int (getrlimit (RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 50000;
  setrlimit (RLIMIT_FSIZE, &small);
  ok = gst_imaging_file_save (path, much, 100000, &error);
  setrlimit (RLIMIT_FSIZE, &old);
  fail_if (ok);
  check_error_says (error, GST_IMAGING_FILE_ERROR_WRITE, "cannot be written");
  check_content (path, "old");
  fail_unless_equals_int (count_files (), 1);
}

/* --- elements that read
 * --------------------------------------------------------- */

#define OCT \
  "videotestsrc num-buffers=1 ! " \
  "video/x-raw,format=GRAY16_LE,width=64,height=4 ! octbscan "
#define SPOTS \
  "videotestsrc num-buffers=1 pattern=ball ! " \
  "video/x-raw,format=GRAY8,width=64,height=64 " \
  "! shcentroid columns=2 rows=2 pitch-x=30 pitch-y=30 "
#define STEREO \
  "videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8,width=64,height=64 " \
  "! photostereo "
#define LIGHTS "lights-location=$/lights.txt "
#define PAIR \
  "slcsrc location=$/ref.PRM ! x.reference slcsrc location=$/ref.PRM ! " \
  "x.secondary insarxcorr nx=2 ny=2 xsearch=8 ysearch=8 name=x "

typedef enum { ANY_SIZE, ARRAY, TEXT } Limit;

/* @file: where the pipe stands; @description: what reads it */
static const struct {
  const gchar *element, *file;
  Limit limit;
  const gchar *description;
} readers[] = {
    {"octbscan", "x.ini", TEXT, OCT "calibration=$/x.ini ! fakesink"},
    {"octbscan", "x.txt", TEXT, OCT "calibration=$/chirp.ini ! fakesink"},
    {"octbscan", "x.npy", ARRAY, OCT "calibration=$/curve.ini ! fakesink"},
    {"octbscan", "x.npy", ARRAY,
        OCT "background=file background-location=$/x.npy ! fakesink"},
    {"octbscan", "x.npy", ARRAY,
        OCT "fixed-pattern=file pattern-location=$/x.npy ! fakesink"},
    {"octbscan", "x.npy", ARRAY,
        OCT "window=file window-location=$/x.npy ! fakesink"},
    {"shcentroid", "x.npy", ARRAY, SPOTS "map-location=$/x.npy ! fakesink"},
    {"shcentroid", "x.npy", ARRAY,
        SPOTS "reference-location=$/x.npy ! fakesink"},
    {"shcentroid", "x.npy", ARRAY, SPOTS "dark-location=$/x.npy ! fakesink"},
    {"shcentroid", "x.npy", ARRAY, SPOTS "flat-location=$/x.npy ! fakesink"},
    {"shcentroid", "x.npy", ARRAY, SPOTS "lut-location=$/x.npy ! fakesink"},
    {"shcentroid", "x.npy", ARRAY,
        SPOTS "bad-pixels-location=$/x.npy ! fakesink"},
    {"shcentroid", "x.npy", ARRAY,
        SPOTS "estimator=correlation template-location=$/x.npy ! fakesink"},
    {"photostereo", "x.lp", TEXT, STEREO "lights-location=$/x.lp ! fakesink"},
    {"photostereo", "x.txt", TEXT,
        STEREO LIGHTS "intensities-location=$/x.txt ! fakesink"},
    {"photostereo", "x.npy", ARRAY,
        STEREO LIGHTS "dark-location=$/x.npy ! fakesink"},
    {"photostereo", "x.npy", ARRAY,
        STEREO LIGHTS "white-location=$/x.npy ! fakesink"},
    {"photostereo", "x.npy", ARRAY,
        STEREO LIGHTS "mask-location=$/x.npy ! fakesink"},
    {"spherelights", "x.npy", ARRAY,
        "videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8 ! "
        "spherelights mask-location=$/x.npy ! fakesink"},
    {"picturesrc", "x.npy", ANY_SIZE, "picturesrc location=$/x.npy ! fakesink"},
    {"slcsrc", "x.PRM", TEXT, "slcsrc location=$/x.PRM ! fakesink"},
    {"slcsrc", "x.SLC", ANY_SIZE, "slcsrc location=$/x-of.PRM ! fakesink"},
    {"slcsrc", "x.raw", ANY_SIZE,
        "slcsrc location=$/x.raw width=4 format=ci16 ! fakesink"},
    {"slcresample", "x.txt", TEXT,
        "slcsrc location=$/ref.PRM ! slcresample fit-location=$/x.txt ! "
        "fakesink"},
    {"slcresample", "x.PRM", TEXT,
        "slcsrc location=$/ref.PRM ! slcresample reference-location=$/x.PRM ! "
        "fakesink"},
    {"insarxcorr", "x.npy", ARRAY, PAIR "mask-location=$/x.npy ! fakesink"},
    {"insarxcorr", "x.npy", ARRAY,
        PAIR "gross-offsets-location=$/x.npy ! fakesink"},
};

/* What they need besides. */
static void
write_companions (void)
{
  g_autofree gint16 *samples = g_new0 (gint16, 2 * 64 * 64);

  check_write_file ("chirp.ini", "[camera]\nchirp=x.txt\n", -1);
  check_write_file ("curve.ini", "[camera]\nwavelengths=x.npy\n", -1);
  check_write_file ("lights.txt", "0 0 1\n", -1);
  check_write_file ("ref.SLC", samples, 4 * 64 * 64);
  check_write_file ("ref.PRM",
      "SLC_file = ref.SLC\nnum_rng_bins = 64\nnum_valid_az = 64\n", -1);
  check_write_file ("x-of.PRM",
      "SLC_file = x.SLC\nnum_rng_bins = 64\nnum_valid_az = 64\n", -1);
}

/* Plays @description until it says something; that it says @words. */
static void
check_reader_says (const gchar *description, const gchar *words)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (description);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autofree gchar *debug = NULL;
  g_autoptr (GstMessage) message = NULL;
  g_autoptr (GError) error = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = check_message (bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, &debug);
  else
    gst_message_parse_warning (message, &error, &debug);
  fail_unless (g_utf8_validate (error->message, -1, NULL));
  fail_unless (strstr (error->message, words) != NULL, "%s: %s", description,
      error->message);
}

static void
check_reader (guint i, const Kind *kind)
{
  g_autofree gchar *path = check_path_of (readers[i].file);

  if (!kind->make (path))
    return; /* the first test says so */
  check_reader_says (readers[i].description, kind->words);
  fail_unless_equals_int (g_remove (path), 0);
}

CHECK_LOOP_TEST (
    test_no_element_waits_for_a_pipe_or_reads_a_device, G_N_ELEMENTS (readers))
{
  if (!check_have_element (readers[__i__].element))
    return;
  write_companions ();
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    check_reader (__i__, &kinds[k]);
}

/* The file is a hole and takes no room on the disk. */
CHECK_LOOP_TEST (test_no_element_reads_more_than_a_file_of_its_kind_has,
    G_N_ELEMENTS (readers))
{
  static const guint64 sizes[] = {
      0, GST_IMAGING_FILE_MAX_ARRAY + 128, GST_IMAGING_FILE_MAX_NUMBERS + 1};
  g_autofree gchar *path = check_path_of (readers[__i__].file);
  gboolean is_prm = g_str_has_suffix (path, ".PRM") ||
                    strstr (readers[__i__].description, "fit-location");

  if (readers[__i__].limit == ANY_SIZE ||
      !check_have_element (readers[__i__].element))
    return;
  write_companions ();
  check_write_file (readers[__i__].file, "", 0);
  if (truncate (path, (off_t) sizes[readers[__i__].limit]) < 0)
    check_skip ("%s", g_strerror (errno));
  check_reader_says (
      readers[__i__].description, is_prm ? "is no PRM file" : " at most.");
}

/* --- elements that write
 * --------------------------------------------------------- */

static const struct {
  const gchar *element, *description;
  const gchar *action; /* NULL where a property does it */
  gboolean of_frames;  /* the action takes a number of frames, too */
} writers[] = {
    {"octbscan", OCT "name=e dispersion=0;0;1 ! fakesink", "save-calibration",
        FALSE},
    {"spherelights",
        "videotestsrc num-buffers=1 pattern=ball ! "
        "video/x-raw,format=GRAY8 ! spherelights name=e centre-x=160 "
        "centre-y=120 radius=400 location=$/out ! fakesink",
        NULL, FALSE},
    {"shcentroid", SPOTS "name=e ! fakesink", "capture-dark", TRUE},
    {"shcentroid", SPOTS "name=e ! fakesink", "capture-flat", TRUE},
    {"shcentroid", SPOTS "name=e ! fakesink", "capture-reference", TRUE},
};

/* Returns: whether it ended without a warning or an error */
static gboolean
write_to (guint i, const gchar *path)
{
  g_autoptr (CheckPipeline) pipeline = check_launch (writers[i].description);
  g_autoptr (GstElement) element =
      gst_bin_get_by_name (GST_BIN (pipeline), "e");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  gboolean done = TRUE, ended = FALSE;

  if (writers[i].action && writers[i].of_frames)
    g_signal_emit_by_name (element, writers[i].action, 1, path, &done);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (!ended) {
    g_autoptr (GstMessage) message = check_message (
        bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING | GST_MESSAGE_EOS);

    done = done && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS;
    ended = GST_MESSAGE_TYPE (message) != GST_MESSAGE_WARNING;
  }
  if (writers[i].action && !writers[i].of_frames)
    g_signal_emit_by_name (element, writers[i].action, path, &done);
  return done;
}

CHECK_LOOP_TEST (
    test_no_element_replaces_a_pipe_or_device, G_N_ELEMENTS (writers))
{
  g_autofree gchar *path = check_path_of ("out");

  if (!check_have_element (writers[__i__].element))
    return;
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++) {
    mode_t mode;

    if (!kinds[k].make (path))
      continue;
    mode = mode_of (path);
    fail_if (write_to (__i__, path), "%s, %s", writers[__i__].description,
        kinds[k].name);
    fail_unless_equals_int (mode_of (path), mode);
    fail_unless_equals_int (g_remove (path), 0);
  }
}

CHECK_LOOP_TEST (
    test_elements_write_behind_links_and_keep_the_mode, G_N_ELEMENTS (writers))
{
  g_autofree gchar *path = check_path_of ("out");
  g_autofree gchar *target = check_path_of ("target");
  struct stat info;

  if (!check_have_element (writers[__i__].element))
    return;
  check_write_file ("target", "", 0);
  fail_unless_equals_int (g_chmod (target, 0640), 0);
  fail_unless_equals_int (symlink ("target", path), 0);
  fail_unless (write_to (__i__, path), "%s", writers[__i__].description);
  fail_unless (S_ISLNK (mode_of (path)));
  fail_unless_equals_int (mode_of (target), S_IFREG | 0640);
  fail_unless_equals_int (stat (target, &info), 0);
  fail_unless (info.st_size > 0 || writers[__i__].action == NULL);
}

/* --- damaged files
 * ---------------------------------------------------------------- */

/* Bytes of @text are replaced by any, also by those that begin or continue
 * characters of UTF-8 and by the ends of lines. */
static void
damage (gchar *text, gsize size, GRand *rand)
{
  static const gchar bytes[] = "\xff\xc3\x80\xe2\n[]=;\x1b\"%s\\";

  for (guint n = (guint) g_rand_int_range (rand, 1, 8); n; n--) {
    gchar *at = text + g_rand_int_range (rand, 0, (gint32) size);

    *at = g_rand_boolean (rand)
              ? bytes[g_rand_int_range (rand, 0, sizeof (bytes) - 1)]
              : (gchar) g_rand_int_range (rand, 0, 256);
  }
}

static const struct {
  const gchar *element, *file, *description, *text;
} damaged[] = {
    {"octbscan", "d.ini", OCT "calibration=$/d.ini ! fakesink",
        "[camera 0]\nlambda-first=700\nlambda-last=800\ndispersion=0;1e-3\n"
        "phase-domain=spectrum\ngain=2\n"},
    {"octbscan", "d.txt", OCT "calibration=$/damaged.ini ! fakesink",
        "0 1.5 2.5 4; 5, 6\n7 8\n"},
    {"photostereo", "d.lp", STEREO "lights-location=$/d.lp ! fakesink",
        "2\nfirst.png 0 0 1\nsecond.png 0.5 0 0.8\n"},
    {"slcsrc", "d.PRM", "slcsrc location=$/d.PRM ! fakesink",
        "SLC_file = ref.SLC\nnum_rng_bins = 64\nnum_valid_az = 64\nPRF = 100\n"},
    {"slcresample", "d.txt",
        "slcsrc location=$/ref.PRM ! slcresample fit-location=$/d.txt ! "
        "fakesink",
        "rshift = 1\nsub_int_r = 0.5\nstretch_r = 0\na_stretch_r = 0\n"
        "ashift = 2\nsub_int_a = 0.5\nstretch_a = 0\na_stretch_a = 0\n"},
};

/* PyGObject fails at a message that is not UTF-8. */
static void
check_messages (GstBus *bus, const gchar *text)
{
  GstMessage *message;

  while ((message = gst_bus_pop_filtered (
              bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING))) {
    g_autofree gchar *debug = NULL;
    g_autoptr (GError) error = NULL;

    if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
      gst_message_parse_error (message, &error, &debug);
    else
      gst_message_parse_warning (message, &error, &debug);
    fail_unless (g_utf8_validate (error->message, -1, NULL) &&
                     (!debug || g_utf8_validate (debug, -1, NULL)),
        "%s", text);
    for (const gchar *c = error->message; *c; c++)
      fail_unless ((guchar) *c >= ' ', "%s", error->message);
    gst_message_unref (message);
  }
}

CHECK_LOOP_TEST (
    test_messages_of_damaged_files_are_utf8, G_N_ELEMENTS (damaged))
{
  GRand *rand = g_rand_new_with_seed (17 + (guint32) __i__);
  gsize size = strlen (damaged[__i__].text);
  guint n_failed = 0;

  if (!check_have_element (damaged[__i__].element))
    return;
  write_companions ();
  check_write_file ("damaged.ini", "[camera]\nchirp=d.txt\n", -1);
  for (guint n = 0; n < 100; n++) {
    g_autofree gchar *text = g_strdup (damaged[__i__].text);
    g_autoptr (CheckPipeline) pipeline =
        check_launch (damaged[__i__].description);
    g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
    GstMessage *message;

    damage (text, size, rand);
    check_write_file (damaged[__i__].file, text, (gssize) size);
    gst_element_set_state (pipeline, GST_STATE_PAUSED);
    message = gst_bus_timed_pop_filtered (
        bus, CHECK_TIMEOUT, GST_MESSAGE_ERROR | GST_MESSAGE_ASYNC_DONE);
    fail_unless (message != NULL);
    n_failed += GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR;
    gst_bus_post (bus, message); /* to be looked at with the others */
    check_messages (bus, text);
  }
  fail_unless (n_failed > 20, "%u", n_failed);
  g_rand_free (rand);
}

/* As that of a process of this host. Returns: (transfer full) */
static gchar *
left_name (const gchar *folder)
{
  g_autofree gchar *name = g_strdup_printf (
      ".gst-imaging-%08x-123abc", g_str_hash (g_get_host_name ()));

  return g_build_filename (folder, name, NULL);
}

/* The first saver in a folder removes what killed processes left there: a file
 * without a lock. */
CHECK_TEST (test_a_file_that_is_being_written_has_a_lock)
{
  g_autofree gchar *location = check_path_of ("saved/a.txt");
  g_autofree gchar *folder = g_path_get_dirname (location);
  g_autofree gchar *left = left_name (folder);
  g_autoptr (GError) error = NULL;
  GstImagingSaver *saver;
  gint fd;

  g_assert_cmpint (g_mkdir (folder, 0777), ==, 0);
  fail_unless (g_file_set_contents (left, "half", -1, NULL));
  saver = gst_imaging_saver_new (location, &error);
  fail_unless (saver != NULL, "%s", error ? error->message : "");
  fail_unless (!g_file_test (left, G_FILE_TEST_EXISTS));
  fd = open (gst_imaging_saver_get_path (saver), O_RDONLY | O_CLOEXEC);
  fail_unless (fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) < 0);
  gst_imaging_saver_free (saver);
  fail_unless (flock (fd, LOCK_EX | LOCK_NB) == 0);
  close (fd);
  fail_unless_equals_int (g_rmdir (folder), 0);
}
