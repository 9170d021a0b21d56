/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidkernel.h"

#include "gstshcentroidgeometry.h"

/* @places: (nullable): rows and columns of a map, without which all its cells
 * stand in row 0 */
static void
number_cells (GstShCentroidKernel *self, guint columns, const guint32 *places)
{
  gsize n = 3 * (gsize) self->n_cells;
  guint32 *indices = g_new (guint32, n);

  for (guint32 i = 0; i < self->n_cells; i++) {
    indices[3 * i] = i;
    indices[3 * i + 1] = places ? places[2 * i] : i / columns;
    indices[3 * i + 2] = places ? places[2 * i + 1] : i % columns;
  }
  self->indices = g_bytes_new_take (indices, n * sizeof (*indices));
}

static void
note_edges (GstShCentroidKernel *self, const ImkShcentroidConfig *config)
{
  self->edges = g_new (gfloat, 4 * (gsize) self->n_cells);
  for (guint i = 0; i < self->n_cells; i++) {
    ImkShcentroidCell cell = imk_shcentroid_cell (config, i);
    gfloat *edges = self->edges + 4 * (gsize) i;

    edges[0] = (gfloat) (cell.x - 0.5);
    edges[1] = (gfloat) (cell.y - 0.5);
    edges[2] = (gfloat) (cell.x + cell.width - 0.5);
    edges[3] = (gfloat) (cell.y + cell.height - 0.5);
  }
}

/* Where the kernel of @backend writes @width x @height numbers. */
static ImkStatus
open_table (GstImagingTable **table, GstImagingFilter *filter,
    ImkBackend backend, guint width, guint height, ImkError *error)
{
  *table = gst_imaging_table_new (backend == IMK_BACKEND_CUDA
                                      ? gst_imaging_filter_open_context (filter)
                                      : NULL,
      width, height, error);
  return *table ? IMK_OK : IMK_ERROR_MEMORY;
}

/* A cell without a centroid is NaN there, so that it is not counted; under
 * IMK_SHCENTROID_INVALID_REFERENCE it is counted, as what it reports. */
static ImkShcentroidConfig
config_for_references (const ImkShcentroidConfig *config)
{
  ImkShcentroidConfig xy = *config;

  xy.fields = IMK_SHCENTROID_FIELDS_XY;
  if (xy.invalid_policy != IMK_SHCENTROID_INVALID_REFERENCE)
    xy.invalid_policy = IMK_SHCENTROID_INVALID_NAN;
  return xy;
}

static ImkStatus
open_for_references (GstShCentroidKernel *self, GstImagingFilter *filter,
    ImkBackend backend, const ImkShcentroidConfig *config, ImkError *error)
{
  ImkShcentroidConfig xy = config_for_references (config);

  IMK_TRY (imk_shcentroid_new (backend, &xy, &self->reference_kernel, error));
  self->references = g_new (gdouble, 2 * (gsize) self->n_cells);
  imk_shcentroid_get_references (config, self->references);
  return open_table (
      &self->reference_table, filter, backend, 2, self->n_cells, error);
}

ImkStatus
gst_sh_centroid_kernel_open (GstShCentroidKernel *self,
    GstImagingFilter *filter, ImkBackend backend,
    const ImkShcentroidConfig *config, const guint32 *places,
    gboolean for_references, ImkError *error)
{
  gboolean all = config->fields == IMK_SHCENTROID_FIELDS_ALL;
  gboolean slopes = config->fields == IMK_SHCENTROID_FIELDS_SLOPES;

  IMK_TRY (imk_shcentroid_new (backend, config, &self->kernel, error));
  self->config = *config;
  self->n_cells = imk_shcentroid_n_cells (config);
  number_cells (
      self, config->n_cells ? self->n_cells : config->columns, places);
  note_edges (self, config);
  self->fields = config->fields;
  self->more = gst_sh_centroid_describe_cells (config, self->indices);
  IMK_TRY (open_table (&self->table, filter, backend,
      all      ? IMK_SHCENTROID_N_FIELDS
      : slopes ? 2 * self->n_cells
               : 2,
      slopes ? 1 : self->n_cells, error));
  if (for_references)
    IMK_TRY (open_for_references (self, filter, backend, config, error));
  return IMK_OK;
}

ImkStatus
gst_sh_centroid_kernel_update (GstShCentroidKernel *self,
    const ImkShcentroidConfig *config, ImkError *error)
{
  ImkShcentroidConfig xy = config_for_references (config);
  ImkStatus status = imk_shcentroid_update (self->kernel, config, error);

  return status == IMK_OK && self->reference_kernel
             ? imk_shcentroid_update (self->reference_kernel, &xy, error)
             : status;
}

void
gst_sh_centroid_kernel_clear (GstShCentroidKernel *self)
{
  imk_shcentroid_free (self->kernel);
  gst_clear_buffer (&self->untallied);
  g_clear_pointer (&self->table, gst_imaging_table_free);
  g_clear_pointer (&self->indices, g_bytes_unref);
  g_free (self->edges);
  gst_clear_structure (&self->more);
  imk_shcentroid_free (self->reference_kernel);
  g_clear_pointer (&self->reference_table, gst_imaging_table_free);
  g_free (self->references);
  gst_sh_centroid_tables_clear (&self->tables);
  *self = (GstShCentroidKernel){0};
}
