/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The main () of a program whose tests list themselves. */
#include "check-common.h"

/* What a file lists, in its order: a case, or a test of the case before. */
typedef struct {
  const gchar *name;
  SFun set_up, tear_down;
  void (*add) (TCase *tcase); /* NULL of a case */
} Entry;

static Entry entries[256];
static guint n_entries;

static void
list (Entry entry)
{
  g_assert (n_entries < G_N_ELEMENTS (entries));
  entries[n_entries++] = entry;
}

void
check_list_case (const gchar *name, SFun set_up, SFun tear_down)
{
  list ((Entry){name, set_up, tear_down, NULL});
}

void
check_list_test (void (*add) (TCase *tcase))
{
  list ((Entry){"all", NULL, NULL, add});
}

/* Not where the list is made: @n may be up to the device. */
int
check_n_cases (gsize n, const gchar *test)
{
  if (n == 0)
    g_printerr ("skipped: %s: it has no case here\n", test);
  return (int) n;
}

static TCase *
case_new (Suite *suite, const Entry *entry)
{
  TCase *tcase = tcase_create (entry->name);

  tcase_add_checked_fixture (tcase, entry->set_up, entry->tear_down);
  suite_add_tcase (suite, tcase);
  return tcase;
}

int
main (int argc, char **argv)
{
  g_autofree gchar *name = g_path_get_basename (argv[0]);
  g_autoptr (GHashTable) cases = g_hash_table_new (g_str_hash, g_str_equal);
  Suite *suite = suite_create (name);
  TCase *tcase = NULL;
  int status;

  g_setenv ("CK_DEFAULT_TIMEOUT", "60", FALSE);
  gst_check_init (&argc, &argv);
  for (guint i = 0; i < n_entries; i++) {
    const Entry *entry = &entries[i];

    if (!tcase || !entry->add) {
      tcase = g_hash_table_lookup (cases, entry->name);
      if (!tcase)
        tcase = case_new (suite, entry);
      g_hash_table_insert (cases, (gpointer) entry->name, tcase);
    }
    if (entry->add)
      entry->add (tcase);
  }
  check_begin_folders ();
  status = gst_check_run_suite (suite, name, name);
  check_end_folders (status != 0);
  return status;
}
