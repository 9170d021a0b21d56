/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which datagrams of a session came, by their sequence numbers. */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

typedef struct {
  guint64 n_received;  /* each once */
  guint64 n_reordered; /* behind one with a larger number */
  guint64 n_duplicates;
  guint64 first, highest;
  guint64 seen; /* bit i: highest - i came */
} GstAoPayTally;

/* Returns: FALSE for a duplicate. One that is more than 63 behind the highest
 * counts as reordered, whether it came before or not. */
gboolean gst_ao_pay_tally_add (GstAoPayTally *self, guint64 sequence);

/* Returns: how many did not come */
guint64 gst_ao_pay_tally_lost (const GstAoPayTally *self);

G_END_DECLS
