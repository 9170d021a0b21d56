/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of results share and do not show. */
#pragma once

#include "gstimagingresults.h"

/* The structure that describes one result. It does not change while a buffer
 * refers to it; then it waits in the cache for the next result. */
typedef struct _GstImagingSharedResult GstImagingSharedResult;

/* Of @result of @buffer. Returns: (transfer full) */
GstImagingSharedResult *gst_imaging_shared_result_new (
    const GstImagingResult *result, GstBuffer *buffer);
GstImagingSharedResult *gst_imaging_shared_result_ref (
    GstImagingSharedResult *self);
/* Any thread. */
void gst_imaging_shared_result_unref (GstImagingSharedResult *self);
GstStructure *gst_imaging_shared_result_structure (
    const GstImagingSharedResult *self);

/* Returns: @element_name as a number, which it remembers. @self: (nullable) */
GQuark gst_imaging_results_cache_name (
    GstImagingResultsCache *self, const gchar *element_name);

/* Returns: that of GST_IMAGING_RESULTS_META */
const GstMetaInfo *gst_imaging_results_info (void);

/* Adds the results of @from to those of @to. */
void gst_imaging_results_copy (GstBuffer *to, GstBuffer *from);

/* @text: static; readers compare its address */
void gst_imaging_results_set_static (
    GstStructure *s, GQuark field, const gchar *text);

/* Returns: (transfer full): @names with commas between them */
gchar *gst_imaging_results_join (const gchar *const *names, guint n);
