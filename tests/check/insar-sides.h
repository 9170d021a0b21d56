/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What elements with the pads "reference" and "secondary" promise alike. */
#pragma once

#include "check-common.h"

/* A seek flushes one source after the other. Fails unless lines from before it
 * that the other side still brings are dropped, neither waited for nor wrong.
 * @element: not started yet, for images of @width x @height */
void insar_check_flush_of_one_side (
    GstElement *element, guint width, guint height);
