/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An ImkFilterBackend of the mock: its CPU backend, on the mock's memory. */
#pragma once

#include "core/filter-backend.h"

/* Makes an object that runs @cpu with one thread. */
ImkStatus mock_filter_create (const char *algorithm,
    const ImkFilterBackend *cpu, const void *plan, const void *params,
    void **state, ImkError *error);

/* The slots of the table. */
ImkStatus mock_filter_update (void *state, const void *params, ImkError *error);
ImkStatus mock_filter_process (void *state, const ImkImage *in, ImkImage *out,
    void *stream, ImkError *error);
ImkStatus mock_filter_reset (void *state, void *stream, ImkError *error);
ImkStatus mock_filter_get_result (void *state, void *result, ImkError *error);
void mock_filter_destroy (void *state);
