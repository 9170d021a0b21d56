/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the two tables of docs/explanation/memory.md share: how often each thing
 * was copied.
 */
#pragma once

#include "check-common.h"

G_BEGIN_DECLS

typedef struct {
  guint64 copied, uploaded, downloaded;
} PathsCopies;

/* Returns: how many times @unit bytes the counters @name of @stats and @element
 * (both nullable) come to; fails when that is no whole number */
guint64 paths_times (GstImagingStats *stats, GstElement *element,
    const gchar *name, guint64 unit);

/* Fails unless the formats of a row are copied alike, @format like the first.
 */
void paths_check_same (
    const PathsCopies *found, const PathsCopies *first, const gchar *format);

/* Two cells: @copies[0] on a card and, @on_cuda, @copies[1] on a GPU that
 * shares its memory. */
void paths_add_copies (
    GString *row, const PathsCopies copies[2], gboolean on_cuda);

G_END_DECLS
