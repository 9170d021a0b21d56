/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstaopaytally.h"

#define WINDOW 64

/* Returns: FALSE for a duplicate */
static gboolean
add_behind (GstAoPayTally *self, guint64 sequence)
{
  const guint64 distance = self->highest - sequence;

  if (distance < WINDOW) {
    if (self->seen >> distance & 1) {
      self->n_duplicates++;
      return FALSE;
    }
    self->seen |= G_GUINT64_CONSTANT (1) << distance;
  }
  self->first = MIN (self->first, sequence);
  self->n_reordered++;
  return TRUE;
}

gboolean
gst_ao_pay_tally_add (GstAoPayTally *self, guint64 sequence)
{
  const gboolean is_first = self->n_received == 0;
  guint64 step;

  if (!is_first && sequence <= self->highest) {
    if (!add_behind (self, sequence))
      return FALSE;
  } else {
    step = is_first ? WINDOW : sequence - self->highest;
    self->seen = (step < WINDOW ? self->seen << step : 0) | 1;
    self->highest = sequence;
    if (is_first)
      self->first = sequence;
  }
  self->n_received++;
  return TRUE;
}

guint64
gst_ao_pay_tally_lost (const GstAoPayTally *self)
{
  const guint64 n = self->highest - self->first + 1;

  return self->n_received > 0 && n > self->n_received ? n - self->n_received
                                                      : 0;
}
