/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingresults-private.h"

#include <string.h>

/* More are freed: they were of a burst. */
#define MOST_IDLE 16

enum { DATA, FLAGS, FRAME, MISSING, PTS, TIMESTAMP, N_FIELDS };

/* A further field. */
typedef struct {
  GQuark name;
  GValue *value; /* in the structure */
} More;

struct _GstImagingSharedResult {
  gint n_refs;
  /* what does not change from frame to frame: those of the last one */
  GstImagingResult result; /* its buffers are not kept */
  GstCaps *reference;      /* (nullable): of the timestamp of the camera */
  gboolean has_pts;
  gint n_more;
  gchar *hash; /* (nullable): that of the origin */
  GstStructure *structure;
  GValue *values[N_FIELDS];      /* (nullable): in @structure */
  More *more;                    /* [n_more]: in the order of the result */
  GstImagingResultsCache *cache; /* (nullable): while it is referred to */
  GstImagingSharedResult *next;  /* (nullable): that is idle, too */
};

struct _GstImagingResultsCache {
  gint n_refs;
  GQuark element;               /* its name, when it was used last */
  GMutex lock;                  /* of what follows */
  GstImagingSharedResult *idle; /* (nullable): the first */
  guint n_idle;
};

/* By numbers: each name that is looked up costs as much as setting the field.
 */
static const GQuark *
get_fields (void)
{
  static const gchar *const names[N_FIELDS] = {
      "data", "flags", "frame", "frames-missing", "pts", "timestamp"};
  static GQuark fields[N_FIELDS];
  static gsize once;

  if (g_once_init_enter (&once)) {
    for (guint i = 0; i < N_FIELDS; i++)
      fields[i] = g_quark_from_static_string (names[i]);
    g_once_init_leave (&once, 1);
  }
  return fields;
}

/* --- one structure -------------------------------------------------------- */

static void
set_dims (GstStructure *s, gint slow, gint fast)
{
  GValue array = G_VALUE_INIT, value = G_VALUE_INIT;

  gst_value_array_init (&array, 2);
  g_value_init (&value, G_TYPE_INT);
  g_value_set_int (&value, slow);
  gst_value_array_append_value (&array, &value);
  g_value_set_int (&value, fast);
  gst_value_array_append_value (&array, &value);
  gst_structure_take_value (s, "dims", &array);
}

/* What readers look for in each frame is first: fields are searched in order.
 */
static GstStructure *
describe_shape (const GstImagingResult *r, gint rows, gint columns)
{
  g_autofree gchar *fields = gst_imaging_results_join (r->fields, r->n_fields);

  return gst_structure_new ("result", "id", G_TYPE_STRING, r->id, "rows",
      G_TYPE_INT, rows, "columns", G_TYPE_INT, columns, "by-field",
      G_TYPE_BOOLEAN, r->by_field, "fields", G_TYPE_STRING, fields, NULL);
}

static void
describe_rest (GstStructure *s, const GstImagingResult *r, gint rows,
    gint columns, const GstCaps *reference)
{
  g_autofree gchar *units = gst_imaging_results_join (r->units, r->n_fields);
  g_autofree gchar *camera = reference ? gst_caps_to_string (reference) : NULL;

  gst_structure_set (s, "type", G_TYPE_STRING, "float32", "dims-order",
      G_TYPE_STRING, "row-major", "ref-width", G_TYPE_INT, r->ref_width,
      "ref-height", G_TYPE_INT, r->ref_height, "unit", G_TYPE_STRING, units,
      NULL);
  set_dims (s, rows, columns);
  if (camera)
    gst_structure_set (s, "timestamp-reference", G_TYPE_STRING, camera, NULL);
  gst_imaging_origin_set (s, &r->origin);
}

static gboolean
set_field (GQuark name, const GValue *value, gpointer to)
{
  gst_structure_id_set_value (to, name, value);
  return TRUE;
}

static void
add_frame (GstStructure *s, const GstImagingResult *r, GstClockTime pts,
    const GstReferenceTimestampMeta *camera)
{
  const GQuark *fields = get_fields ();

  gst_structure_id_set (s, fields[DATA], GST_TYPE_BUFFER, r->data, NULL);
  if (r->flags)
    gst_structure_id_set (s, fields[FLAGS], GST_TYPE_BUFFER, r->flags, NULL);
  gst_structure_id_set (s, fields[FRAME], G_TYPE_UINT64, r->frame, NULL);
  gst_structure_id_set (
      s, fields[MISSING], G_TYPE_UINT64, r->frames_missing, NULL);
  /* the metadata outlives the times of its buffer, which muxers and encoders
   * change */
  if (GST_CLOCK_TIME_IS_VALID (pts))
    gst_structure_id_set (s, fields[PTS], G_TYPE_UINT64, pts, NULL);
  if (camera)
    gst_structure_id_set (
        s, fields[TIMESTAMP], G_TYPE_UINT64, camera->timestamp, NULL);
  if (r->more)
    gst_structure_foreach (r->more, set_field, s);
}

/* --- results -------------------------------------------------------------- */

static gint
n_more_of (const GstImagingResult *r)
{
  return r->more ? gst_structure_n_fields (r->more) : 0;
}

/* Names are static: compared by address. */
static gboolean
is_alike (const GstImagingSharedResult *self, const GstImagingResult *b,
    GstClockTime pts, const GstReferenceTimestampMeta *camera)
{
  const GstImagingResult *a = &self->result;

  return a->id == b->id && a->fields == b->fields && a->units == b->units &&
         a->n_fields == b->n_fields && a->n_rows == b->n_rows &&
         a->ref_width == b->ref_width && a->ref_height == b->ref_height &&
         a->by_field == b->by_field && !a->flags == !b->flags &&
         self->has_pts == GST_CLOCK_TIME_IS_VALID (pts) &&
         self->n_more == n_more_of (b) &&
         a->origin.element == b->origin.element &&
         a->origin.backend == b->origin.backend &&
         g_strcmp0 (self->hash, b->origin.settings_hash) == 0 &&
         self->reference == (camera ? camera->reference : NULL);
}

static void
clear (GstImagingSharedResult *self)
{
  g_clear_pointer (&self->structure, gst_structure_free);
  gst_clear_caps (&self->reference);
  g_clear_pointer (&self->hash, g_free);
  g_clear_pointer (&self->more, g_free);
}

/* Notes where values are. They stay there while no field is added or removed.
 */
static gboolean
note_value (GQuark name, GValue *value, gpointer to)
{
  GstImagingSharedResult *self = to;

  for (guint i = 0; i < N_FIELDS; i++)
    if (name == get_fields ()[i])
      self->values[i] = value;
  for (gint i = 0; i < self->n_more; i++)
    if (name == self->more[i].name)
      self->more[i].value = value;
  return TRUE;
}

static gboolean
note_name (GQuark name, const GValue *value, gpointer to)
{
  More **next = to;

  *(*next)++ = (More){.name = name};
  return TRUE;
}

static void
note_values (GstImagingSharedResult *self, const GstStructure *more)
{
  More *next = self->more = g_new (More, self->n_more);

  if (more)
    gst_structure_foreach (more, note_name, &next);
  memset (self->values, 0, sizeof (self->values));
  gst_structure_map_in_place (self->structure, note_value, self);
}

static void
describe (GstImagingSharedResult *self, const GstImagingResult *r,
    GstClockTime pts, const GstReferenceTimestampMeta *camera)
{
  gint rows = r->by_field ? r->n_fields : r->n_rows;
  gint columns = r->by_field ? r->n_rows : r->n_fields;

  clear (self);
  self->result = *r;
  self->reference =
      camera && camera->reference ? gst_caps_ref (camera->reference) : NULL;
  self->has_pts = GST_CLOCK_TIME_IS_VALID (pts);
  self->n_more = n_more_of (r);
  self->hash = g_strdup (r->origin.settings_hash);
  self->structure = describe_shape (r, rows, columns);
  add_frame (self->structure, r, pts, camera);
  describe_rest (self->structure, r, rows, columns, self->reference);
  note_values (self, r->more);
}

/* Numbers and pointers; a copied string is taken for another one. */
static gboolean
is_same (const GValue *a, const GValue *b)
{
  return a->data[0].v_uint64 == b->data[0].v_uint64;
}

/* Stops at another field than before. */
static gboolean
update_more (GQuark name, const GValue *value, gpointer to)
{
  More **next = to, *more = (*next)++;

  if (more->name != name || G_VALUE_TYPE (value) != G_VALUE_TYPE (more->value))
    return FALSE;
  if (!is_same (more->value, value))
    g_value_copy (value, more->value);
  return TRUE;
}

/* Returns: whether it has the fields that it had */
static gboolean
update (GstImagingSharedResult *self, const GstImagingResult *r,
    GstClockTime pts, const GstReferenceTimestampMeta *camera)
{
  GValue **values = self->values;
  More *next = self->more;

  g_value_set_boxed (values[DATA], r->data);
  if (values[FLAGS])
    g_value_set_boxed (values[FLAGS], r->flags);
  g_value_set_uint64 (values[FRAME], r->frame);
  g_value_set_uint64 (values[MISSING], r->frames_missing);
  if (values[PTS])
    g_value_set_uint64 (values[PTS], pts);
  if (values[TIMESTAMP])
    g_value_set_uint64 (values[TIMESTAMP], camera->timestamp);
  return !r->more || gst_structure_foreach (r->more, update_more, &next);
}

/* Returns: (nullable) */
static GstImagingSharedResult *
take_idle (GstImagingResultsCache *cache)
{
  GstImagingSharedResult *self;

  GST_IMAGING_HOLD (&cache->lock);
  self = cache->idle;
  if (self) {
    cache->idle = self->next;
    cache->n_idle--;
  }
  return self;
}

/* Returns: whether there was room */
static gboolean
give_idle (GstImagingResultsCache *cache, GstImagingSharedResult *self)
{
  gboolean has_room;

  GST_IMAGING_HOLD (&cache->lock);
  has_room = cache->n_idle < MOST_IDLE;
  if (has_room) {
    self->next = cache->idle;
    cache->idle = self;
    cache->n_idle++;
  }
  return has_room;
}

/* @cache: (nullable) */
static GstImagingSharedResult *
take_or_make (GstImagingResultsCache *cache)
{
  GstImagingSharedResult *self = cache ? take_idle (cache) : NULL;

  if (!self)
    self = g_new0 (GstImagingSharedResult, 1);
  self->n_refs = 1;
  if (cache) {
    g_atomic_int_inc (&cache->n_refs);
    self->cache = cache;
  }
  return self;
}

GstImagingSharedResult *
gst_imaging_shared_result_new (
    const GstImagingResult *result, GstBuffer *buffer)
{
  GstImagingSharedResult *self = take_or_make (result->cache);
  const GstReferenceTimestampMeta *camera =
      gst_buffer_get_reference_timestamp_meta (buffer, NULL);
  GstClockTime pts = GST_BUFFER_PTS (buffer);

  if (!self->structure || !is_alike (self, result, pts, camera) ||
      !update (self, result, pts, camera))
    describe (self, result, pts, camera);
  return self;
}

GstStructure *
gst_imaging_shared_result_structure (const GstImagingSharedResult *self)
{
  return self->structure;
}

GstImagingSharedResult *
gst_imaging_shared_result_ref (GstImagingSharedResult *self)
{
  g_atomic_int_inc (&self->n_refs);
  return self;
}

static void
free_shared (GstImagingSharedResult *self)
{
  clear (self);
  g_free (self);
}

void
gst_imaging_shared_result_unref (GstImagingSharedResult *self)
{
  GstImagingResultsCache *cache = self->cache;

  if (!g_atomic_int_dec_and_test (&self->n_refs))
    return;
  /* the numbers go back to their pool at once */
  g_value_set_boxed (self->values[DATA], NULL);
  if (self->values[FLAGS])
    g_value_set_boxed (self->values[FLAGS], NULL);
  if (!cache || !give_idle (cache, self))
    free_shared (self);
  gst_imaging_results_cache_unref (cache);
}

/* --- the cache ------------------------------------------------------------ */

GstImagingResultsCache *
gst_imaging_results_cache_new (void)
{
  GstImagingResultsCache *self = g_new0 (GstImagingResultsCache, 1);

  self->n_refs = 1;
  g_mutex_init (&self->lock);
  return self;
}

GQuark
gst_imaging_results_cache_name (
    GstImagingResultsCache *self, const gchar *element_name)
{
  if (!self)
    return g_quark_from_string (element_name);
  if (g_strcmp0 (g_quark_to_string (self->element), element_name) != 0)
    self->element = g_quark_from_string (element_name);
  return self->element;
}

void
gst_imaging_results_cache_unref (GstImagingResultsCache *self)
{
  GstImagingSharedResult *idle;

  if (!self || !g_atomic_int_dec_and_test (&self->n_refs))
    return;
  while ((idle = take_idle (self)))
    free_shared (idle);
  g_mutex_clear (&self->lock);
  g_free (self);
}
