/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What shreconstruct does to the thread of its frames, which is that of the
 * test, where that is permitted, and what it says where it is not. */
#define _GNU_SOURCE /* cpu_set_t */
#include "check-common.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static GstHarness *
harness_new (const gchar *settings)
{
  g_autofree gchar *launch =
      g_strdup_printf ("shreconstruct commands=2 %s", settings);
  GstElement *element = gst_parse_launch (launch, NULL);
  GstHarness *h = gst_harness_new_with_element (element, "sink", "src");

  gst_object_unref (element);
  gst_harness_set_src_caps_str (h,
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=(string)2:2:1:1,framerate=1000/1");
  return h;
}

static void
step (GstHarness *h)
{
  const gfloat slopes[4] = {0};

  check_push (h, gst_buffer_new_memdup (slopes, sizeof (slopes)), GST_FLOW_OK);
  gst_buffer_unref (check_pull (h));
}

static int
policy (void)
{
  return sched_getscheduler (0) & ~SCHED_RESET_ON_FORK;
}

static guint
n_cpus (void)
{
  cpu_set_t cpus;

  fail_unless_equals_int (sched_getaffinity (0, sizeof (cpus), &cpus), 0);
  return (guint) CPU_COUNT (&cpus);
}

static gint
first_cpu (void)
{
  cpu_set_t cpus;
  gint i = 0;

  fail_unless_equals_int (sched_getaffinity (0, sizeof (cpus), &cpus), 0);
  while (!CPU_ISSET (i, &cpus))
    i++;
  return i;
}

/* Takes capabilities of this thread, and what limits permit, away. */
static void
permit_nothing (void)
{
  struct __user_cap_header_struct header = {
      .version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  const struct rlimit none = {0};

  fail_unless_equals_int (syscall (SYS_capget, &header, data), 0);
  data[0].effective &= ~(1u << CAP_SYS_NICE | 1u << CAP_IPC_LOCK);
  fail_unless_equals_int (syscall (SYS_capset, &header, data), 0);
  fail_unless_equals_int (setrlimit (RLIMIT_RTPRIO, &none), 0);
  fail_unless_equals_int (setrlimit (RLIMIT_MEMLOCK, &none), 0);
}

CHECK_CASE ("shreconstruct-realtime", NULL, NULL)

CHECK_TEST (test_the_priority_is_that_of_the_thread_until_the_stop)
{
  const struct sched_param param = {.sched_priority = 7}, normal = {0};
  struct sched_param now;
  g_autoptr (CheckHarness) h = harness_new ("realtime-priority=7");
  g_autoptr (CheckBus) bus = check_watch (h->element);

  if (sched_setscheduler (0, SCHED_FIFO, &param) != 0)
    check_skip ("SCHED_FIFO is not permitted.");
  sched_setscheduler (0, SCHED_OTHER, &normal);
  step (h);
  fail_unless_equals_int (policy (), SCHED_FIFO);
  sched_getparam (0, &now);
  fail_unless_equals_int (now.sched_priority, 7);
  g_object_set (h->element, "realtime-priority", 3, NULL);
  step (h);
  sched_getparam (0, &now);
  fail_unless_equals_int (now.sched_priority, 3);
  g_object_set (h->element, "realtime-priority", 0, NULL);
  step (h);
  fail_unless_equals_int (sched_getscheduler (0), SCHED_OTHER);
  g_object_set (h->element, "realtime-priority", 9, NULL);
  step (h);
  fail_unless_equals_int (policy (), SCHED_FIFO);
  gst_element_set_state (h->element, GST_STATE_NULL);
  fail_unless_equals_int (sched_getscheduler (0), SCHED_OTHER);
  check_no_messages (bus, GST_MESSAGE_WARNING);
}

CHECK_TEST (test_the_processor_is_that_of_the_thread_until_the_stop)
{
  const guint before = n_cpus ();
  const gint cpu = first_cpu ();
  g_autoptr (CheckHarness) h = harness_new ("");

  g_object_set (h->element, "cpu", cpu, NULL);
  step (h);
  fail_unless_equals_int (n_cpus (), 1);
  fail_unless_equals_int (first_cpu (), cpu);
  step (h);
  g_object_set (h->element, "cpu", -1, NULL);
  step (h);
  fail_unless_equals_int (n_cpus (), before);
  g_object_set (h->element, "cpu", cpu, NULL);
  step (h);
  gst_element_set_state (h->element, GST_STATE_NULL);
  fail_unless_equals_int (n_cpus (), before);
}

static gpointer
count_cpus_of_step (gpointer h)
{
  step (h);
  return GUINT_TO_POINTER (n_cpus ());
}

/* Its GThread may lie where that of the one before was. */
CHECK_TEST (test_each_thread_is_a_new_one)
{
  g_autoptr (CheckHarness) h = harness_new ("");

  g_object_set (h->element, "cpu", first_cpu (), NULL);
  for (guint i = 0; i < 4; i++)
    fail_unless_equals_int (GPOINTER_TO_UINT (g_thread_join (
                                g_thread_new (NULL, count_cpus_of_step, h))),
        1);
}

CHECK_TEST (test_what_another_has_set_stays)
{
  const guint before = n_cpus ();
  g_autoptr (CheckHarness) h = harness_new ("");
  cpu_set_t others;

  if (before < 2)
    check_skip ("There is one processor alone.");
  sched_getaffinity (0, sizeof (others), &others);
  CPU_CLR (first_cpu (), &others);
  g_object_set (h->element, "cpu", first_cpu (), NULL);
  step (h);
  sched_setaffinity (0, sizeof (others), &others);
  gst_element_set_state (h->element, GST_STATE_NULL);
  fail_unless_equals_int (n_cpus (), before - 1);
}

/* Returns: KiB that this process has locked */
static guint64
locked (void)
{
  g_autofree gchar *text = NULL;
  const gchar *line;

  fail_unless (g_file_get_contents ("/proc/self/status", &text, NULL, NULL));
  line = strstr (text, "VmLck:");
  fail_unless (line != NULL);
  return g_ascii_strtoull (line + strlen ("VmLck:"), NULL, 10);
}

CHECK_TEST (test_memory_is_locked)
{
  g_autoptr (CheckHarness) h = harness_new ("lock-memory=true");
  g_autoptr (CheckBus) bus = check_watch (h->element);

  if (mlockall (MCL_CURRENT) != 0 || locked () == 0)
    check_skip ("Memory cannot be locked here, or a sanitizer forbids it.");
  munlockall ();
  fail_unless_equals_uint64 (locked (), 0);
  step (h);
  if (check_count_messages (bus, GST_MESSAGE_WARNING) == 0)
    fail_unless (locked () > 1024);
  munlockall ();
}

CHECK_TEST (test_what_is_not_permitted_is_said_once)
{
  g_autoptr (CheckHarness) h = harness_new ("cpu=1023 realtime-priority=7");
  g_autoptr (CheckBus) bus = check_watch (h->element);
  const guint before = n_cpus ();

  permit_nothing ();
  step (h);
  check_warning (bus, RESOURCE, SETTINGS, "cpu is 1023");
  check_warning (bus, RESOURCE, SETTINGS, "realtime-priority is 7");
  fail_unless_equals_int (policy (), SCHED_OTHER);
  fail_unless_equals_int (n_cpus (), before);
  step (h);
  check_no_messages (bus, GST_MESSAGE_WARNING);
  g_object_set (h->element, "lock-memory", TRUE, NULL);
  step (h);
  check_warning (bus, RESOURCE, SETTINGS, "lock-memory is true");
  step (h);
  check_no_messages (bus, GST_MESSAGE_WARNING);
  fail_unless_equals_uint64 (locked (), 0);
}
