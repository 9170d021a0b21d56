/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the gst-check programs share. None of them can hang: whatever waits,
 * waits CHECK_TIMEOUT at most. */
#pragma once

#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include "gstimagingmemory.h"

/* With a sanitizer of addresses or threads, which has an allocator of its own.
 * gcc has a macro, clang a feature. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECK_IS_SANITIZED 1
#endif
#endif
#ifndef CHECK_IS_SANITIZED
#define CHECK_IS_SANITIZED 0
#endif

G_BEGIN_DECLS

#define CHECK_TIMEOUT (20 * GST_SECOND)

/* Fails with the sentence of an ImkError when @status is not IMK_OK. */
#define check_ok(status, error) \
  fail_unless ((status) == IMK_OK, "%s", (error)->message)

/* libcheck cannot skip; this says so where it can be read, and the test
 * returns. */
#define check_skip(...) \
  do { \
    g_printerr ("skipped: %s: ", G_STRFUNC); \
    g_printerr (__VA_ARGS__); \
    g_printerr ("\n"); \
    return; \
  } while (0)

/* --- tests that list themselves ------------------------------------------- */

/* Begins a test, which needs no place in a list and whose program needs no
 * main (): tests run in the order of their file.
 *
 *   CHECK_TEST (test_a_flat_frame_stays_flat)
 *   {
 *   } */
#define CHECK_TEST(test) CHECK_TEST_ADDED (test, tcase_add_test (tcase, test))

/* A test that runs for __i__ from 0 to @n - 1; where @n is 0 it is skipped. */
#define CHECK_LOOP_TEST(test, n) \
  CHECK_TEST_ADDED ( \
      test, tcase_add_loop_test (tcase, test, 0, check_n_cases (n, #test)))

/* A test that runs twice; the variable on_cuda of its program is FALSE, then
 * TRUE. */
#define CHECK_BACKENDS_TEST(test) \
  static void test##_there (void); \
  CHECK_LOOP_TEST (test, 2) \
  { \
    on_cuda = __i__; \
    test##_there (); \
  } \
  static void test##_there (void)

/* A test that tells the mock what to be. */
#define CHECK_MOCK_TEST(test) \
  CHECK_TEST_ADDED (test, check_add_mock_test (tcase, test))

/* Runs a test of above in this case as well. */
#define CHECK_TEST_AGAIN(test) \
  static void __attribute__ ((constructor)) G_PASTE (again_, __LINE__) (void) \
  { \
    check_list_test (test##_add); \
  }

/* Before the first test, or between two: those behind it are of this case,
 * which may have begun above, with a fixture of its own. @set_up, @tear_down:
 * may be NULL */
#define CHECK_CASE(name, set_up, tear_down) \
  static void __attribute__ ((constructor)) G_PASTE (case_, __LINE__) (void) \
  { \
    check_list_case (name, set_up, tear_down); \
  }

/* Behind CHECK_CASE (): its tests may take @seconds each, and not 60. */
#define CHECK_CASE_TAKES(seconds) \
  static void takes (TCase *tcase) \
  { \
    tcase_set_timeout (tcase, seconds); \
  } \
  static void __attribute__ ((constructor)) takes_list (void) \
  { \
    check_list_test (takes); \
  }

/* @add: adds @test to tcase. The wrapper has what GST_END_TEST cleans up. */
#define CHECK_TEST_ADDED(test, add) \
  static void test##_body (int __i__); \
  GST_START_TEST (test) test##_body (__i__); \
  GST_END_TEST \
  static void test##_add (TCase *tcase) \
  { \
    add; \
  } \
  static void __attribute__ ((constructor)) test##_list (void) \
  { \
    check_list_test (test##_add); \
  } \
  static void test##_body (G_GNUC_UNUSED int __i__)

void check_list_case (const gchar *name, SFun set_up, SFun tear_down);
void check_list_test (void (*add) (TCase *tcase));
int check_n_cases (gsize n, const gchar *test);

/* Sets @pipeline (transfer full) to NULL. */
void check_stop (GstElement *pipeline);

/* Drops the messages on @bus (transfer full), and those that come. */
void check_unwatch (GstBus *bus);

/* --- variables that end with their block ---------------------------------- */

/* As in g_autoptr (CheckHarness) h = gst_harness_new (...); */
typedef GstHarness CheckHarness;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CheckHarness, gst_harness_teardown)

/* An element or pipeline of its own, which is stopped first. */
typedef GstElement CheckPipeline;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CheckPipeline, check_stop)

/* A bus that an element keeps: it holds no message any more. */
typedef GstBus CheckBus;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CheckBus, check_unwatch)

/* Returns: (transfer full): a new bus, which @element has from now on */
GstBus *check_watch (GstElement *element);

/* Frees @element, the @bus of check_watch () and, before, @n harnesses at its
 * pads, which may be NULL. */
void check_take_down (
    GstElement *element, GstBus *bus, GstHarness *const *harnesses, guint n);

/* --- the device ---------------------------------------------------------- */

/* Returns: whether IMK_MODULE_PATH leads to the mock, which can be told to have
 * two devices, none, or little memory; tests/gpu runs these programs with CUDA
 */
gboolean check_is_mock (void);

/* For a test that tells the mock what to be. */
#define check_add_mock_test(tcase, test) \
  do { \
    if (check_is_mock ()) \
      tcase_add_test (tcase, test); \
    else \
      g_printerr ("skipped: %s: this device is real\n", #test); \
  } while (0)

/* Returns: the table of the device; the test fails when there is none */
const ImkDevice *check_device (void);

/* Returns: (transfer full): the context of mock device @device_id */
GstImagingContext *check_context (gint device_id);

/* Asked in a test: what knows CUDA must not fork. Returns: how many devices
 * there are, 0 without the module as well */
guint check_n_devices (void);

/* Returns: what @ask returns. A process that has asked CUDA cannot fork as the
 * tests do, so a child asks. */
gboolean check_ask_child (gboolean (*ask) (void));

/* For check_ask_child (). Returns: whether there are several devices */
gboolean check_has_two_devices (void);

/* What @element says of lists of devices that are none. The CPU needs none, and
 * an empty list is no list. */
void check_wrong_devices (const gchar *element);

/* Returns: memory blocks, streams, events and kernels of the mock that were
 * made and not freed; 0 with CUDA itself, where compute-sanitizer counts */
guint check_n_live (void);

/* Returns: page-locked blocks of the mock that were made and not freed */
guint check_n_page_locked (void);

/* Returns: copies of the mock since the last time */
guint check_n_copies (void);

/* Mock device @device_id fails from now on; -1: none does any more */
void check_lose_device (gint device_id);

/* While @hold no stream of mock device @device_id begins a job. */
void check_hold_device (gint device_id, gboolean hold);

/* While @hold a context of the mock is being made and not done. To be called
 * after check_n_devices () */
void check_hold_context (gboolean hold);

/* The context of mock device @device_id cannot be entered; -1: all can be */
void check_close_device (gint device_id);

/* --- frames -------------------------------------------------------------- */

GstVideoInfo check_info (const gchar *format, gint width, gint height);

/* "video/x-raw,format=...", to be given to g_free () */
gchar *check_caps_string (const gchar *format, gint width, gint height);

/* Returns: (transfer full): noise in system memory with default strides; the
 * same for the same @seed. PTS is 40 ms a frame, counted by @seed */
GstBuffer *check_noise (const GstVideoInfo *info, guint seed);

/* As check_noise (), each row @padding bytes longer and with a GstVideoMeta. */
GstBuffer *check_noise_padded (
    const GstVideoInfo *info, guint seed, guint padding);

/* Fails with the first sample that differs; padding does not count. */
void check_same_pixels (
    GstBuffer *found, GstBuffer *expected, const GstVideoInfo *info);

/* Returns: (transfer full): what @plain (transfer full) holds, and its times,
 * in memory of ours; @stats (nullable) counts what is copied of it. On the
 * device, nothing is on the host. */
GstBuffer *check_ours (
    GstImagingMemoryMode mode, GstImagingStats *stats, GstBuffer *plain);

/* Fails unless @table is what the page @path has between "made by @maker" and
 * the mark of its end, but for lines with the words @not_built (nullable),
 * which this build does not make. With IMAGING_UPDATE_DOCS set it writes the
 * page. */
void check_table (const gchar *path, const gchar *maker, const gchar *table,
    const gchar *not_built);

/* What a buffer holds, as in g_auto (CheckMap) map = check_map (...). */
typedef struct {
  guint8 *data;
  gsize size;
  GstBuffer *buffer;
  GstMapInfo info;
} CheckMap;

/* Maps @buffer, and fails if that cannot be. */
CheckMap check_map (GstBuffer *buffer, GstMapFlags flags);
void check_unmap (CheckMap *map);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CheckMap, check_unmap)

/* --- real data ------------------------------------------------------------ */

/* Returns: the folder that IMAGING_TEST_DATA names, ../shared/data where it
 * names none */
const gchar *check_data_folder (void);

/* --- a folder of its own -------------------------------------------------- */

/* For main (): the folder of the program, in which those of its tests are, and
 * its end. With @failed, the files of failed tests are kept, and it says where.
 */
void check_begin_folders (void);
void check_end_folders (gboolean failed);

/* A fixture: the folder, new and empty, and its end with the files in it. */
void check_make_folder (void);
void check_remove_folder (void);

/* Returns: (transfer none) (nullable): where it is */
const gchar *check_folder (void);

/* Returns: (transfer full): the path of the file @name there */
gchar *check_path_of (const gchar *name);

/* Writes a file there; @size: bytes, -1 for a string */
void check_write_file (const gchar *name, gconstpointer data, gssize size);

/* Returns: the number in the environment variable @name, @usual without */
gdouble check_number (const gchar *name, gdouble usual);

/* --- elements and pipelines ----------------------------------------------- */

/* Returns: whether the element is installed; if not, prints that a test is
 * skipped */
gboolean check_have_element (const gchar *name);

/* Returns: (transfer full): names of the raw formats that the template of the
 * sink pad of @element has in memory of @feature, NULL for system memory */
GPtrArray *check_formats (const gchar *element, const gchar *feature);

/* Returns: (transfer full): the next buffer; of text, the line of names and the
 * rows behind it; fails when none comes */
GstBuffer *check_pull (GstHarness *h);

/* Pushes @buffer (transfer full) and fails unless that gives @flow. */
void check_push (GstHarness *h, GstBuffer *buffer, GstFlowReturn flow);

/* A probe: offers @allocator, as an element on CUDA does. */
GstPadProbeReturn check_offer_allocator (
    GstPad *pad, GstPadProbeInfo *info, gpointer allocator);

/* A flush, and a new segment in time. */
void check_flush (GstHarness *h);

/* A counter from the property `stats`. */
guint64 check_stat (GstElement *element, const gchar *name);

/* Returns: (transfer full): the next message of @types on @bus; fails when
 * none comes */
GstMessage *check_message (GstBus *bus, GstMessageType types);

/* Fails unless @message (transfer full) is an error or warning of @domain and
 * @code whose text contains @words. */
void check_message_says (
    GstMessage *message, GQuark domain, gint code, const gchar *words);

/* Returns: (transfer full): that of an error or a warning */
GError *check_parse (GstMessage *message);

/* Fails unless the next message of @types, which are errors or warnings,
 * contains @words. */
void check_says (GstBus *bus, GstMessageType types, const gchar *words);

/* Fails unless the next error or warning on @bus is the one that
 * GST_ELEMENT_ERROR (element, domain, code, ...) posts, and contains @words. */
#define check_error(bus, domain, code, words) \
  check_message_says (check_message (bus, GST_MESSAGE_ERROR), \
      GST_##domain##_ERROR, GST_##domain##_ERROR_##code, words)
#define check_warning(bus, domain, code, words) \
  check_message_says (check_message (bus, GST_MESSAGE_WARNING), \
      GST_##domain##_ERROR, GST_##domain##_ERROR_##code, words)

/* Domain and code, for what takes both: CHECK_CODE (STREAM, FORMAT) */
#define CHECK_CODE(domain, code) \
  GST_##domain##_ERROR, GST_##domain##_ERROR_##code

/* The next message of an element of its own, named @name; those that settings
 * changed are passed over. */
GstMessage *check_element_message (GstBus *bus, const gchar *name);

/* Returns: how many messages of @types wait on @bus, which is then empty */
guint check_count_messages (GstBus *bus, GstMessageType types);

/* Fails when there is one. */
void check_no_messages (GstBus *bus, GstMessageType types);

/* A push that waits at a pad, as at a sink that has prerolled. */
typedef struct {
  GstPad *pad;
  gulong probe;
  GThread *thread;
  gint waiting; /* atomic */
} CheckWaiting;

/* Calls @push with @data in a thread, until its first buffer waits at the
 * source pad @name of @element. */
void check_wait_at (CheckWaiting *self, GstElement *element, const gchar *name,
    GThreadFunc push, gpointer data);

/* Lets it go, and waits until @push returns. */
void check_release (CheckWaiting *self);

/* Who asks a sink pad for memory again and again, whatever its element does: a
 * pad passes queries on even while it is not active. */
typedef struct {
  GstPad *pad;
  GstCaps *caps;
  GThread *thread;
  gint stop; /* atomic */
} CheckAsking;

/* For buffers of @caps, of the pad @name of @element. */
void check_begin_asking (CheckAsking *self, GstElement *element,
    const gchar *name, const gchar *caps);
void check_end_asking (CheckAsking *self);

/* Returns: (transfer full): the pipeline @description, in which every $ is
 * check_folder (); fails when it cannot be made */
GstElement *check_launch (const gchar *description);

/* Plays check_launch (@description) to its end, which must give exactly one
 * warning, as check_message_says (); with @words NULL none. */
void check_launch_warns (
    const gchar *description, GQuark domain, gint code, const gchar *words);

/* Plays check_launch (@description) until it fails as check_message_says (). */
void check_launch_fails (
    const gchar *description, GQuark domain, gint code, const gchar *words);

/* Appends to @bytes what comes out of the appsink @name, until the end. */
void check_collect (GstElement *pipeline, const gchar *name, GString *bytes);

/* Sets @pipeline to PLAYING, waits for EOS and fails on an error. */
void check_play (GstElement *pipeline);

G_END_DECLS
