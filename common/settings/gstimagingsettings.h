/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingengine.h"

G_BEGIN_DECLS

/**
 * SECTION:gstimagingsettings
 *
 * #GstImagingSettings: the properties of an element, declared in one table and
 * changed as one transaction.
 *
 * Values that were set wait in a copy of the element's settings. Before a frame
 * the streaming thread takes the copy. The element's apply() either accepts it
 * as a whole, and it is in use from this frame on. Or it rejects it: then the
 * values that are new are tried without those that were rejected before, and
 * one warning names what is not used. So no value ends a running stream.
 *
 *     typedef struct { gdouble range_min, range_max; GstImagingFile *curve; }
 *         Settings;
 *
 *     static const GstImagingSetting table[] = {
 *         GST_IMAGING_DOUBLE ("range-min", LIVE, 0, Settings, range_min, -200,
 *             300, "dB", "Level that becomes black"),
 *         GST_IMAGING_PATH ("scan-curve", LIVE, PLAN, Settings, curve,
 *             load_curve, g_free, "A .npy file ..."),
 *     };
 *
 * Setting, reading and gst_imaging_settings_describe() may happen in any
 * thread. All else belongs to the streaming thread.
 */

/**
 * GstImagingWhen:
 * @GST_IMAGING_WHEN_LIVE: from the next frame on
 * @GST_IMAGING_WHEN_NEXT_SET: from the next set, volume or pair on
 * @GST_IMAGING_WHEN_NEXT_START: from the next start of the element on
 *
 * When a change counts.
 */
typedef enum {
  GST_IMAGING_WHEN_LIVE,
  GST_IMAGING_WHEN_NEXT_SET,
  GST_IMAGING_WHEN_NEXT_START,
} GstImagingWhen;

/**
 * GstImagingKind: (skip)
 * @GST_IMAGING_KIND_BOOLEAN: gboolean or bool
 * @GST_IMAGING_KIND_INT: gint
 * @GST_IMAGING_KIND_UINT: guint
 * @GST_IMAGING_KIND_UINT64: guint64
 * @GST_IMAGING_KIND_DOUBLE: gdouble
 * @GST_IMAGING_KIND_ENUM: any enumeration of the size of an int
 * @GST_IMAGING_KIND_FLAGS: guint
 * @GST_IMAGING_KIND_STRING: GRefString *, %NULL for ""
 * @GST_IMAGING_KIND_FRACTION: GstImagingFraction
 * @GST_IMAGING_KIND_PATH: GstImagingFile *, %NULL for ""
 * @GST_IMAGING_KIND_ARRAY: GstImagingArray *, %NULL when empty
 * @GST_IMAGING_KIND_PATHS: gchar **, %NULL when empty
 *
 * The C type of a member.
 */
typedef enum {
  GST_IMAGING_KIND_BOOLEAN,
  GST_IMAGING_KIND_INT,
  GST_IMAGING_KIND_UINT,
  GST_IMAGING_KIND_UINT64,
  GST_IMAGING_KIND_DOUBLE,
  GST_IMAGING_KIND_ENUM,
  GST_IMAGING_KIND_FLAGS,
  GST_IMAGING_KIND_STRING,
  GST_IMAGING_KIND_FRACTION,
  GST_IMAGING_KIND_PATH,
  GST_IMAGING_KIND_ARRAY,
  GST_IMAGING_KIND_PATHS,
} GstImagingKind;

/**
 * GstImagingFraction: (skip)
 * @n, @d: numerator and denominator
 */
typedef struct {
  gint n, d;
} GstImagingFraction;

/**
 * GstImagingFile: (skip)
 * @location: as it was set
 * @data: (nullable): what load() made of it; %NULL when it could not be read
 * @status: of load(); @error says why when it is not IMK_OK
 * @hash: of the content, for gst_imaging_settings_hash(); %NULL without one
 *
 * A file that a property names, read in the thread that set the property. It
 * never changes: a property that is set again, also to the same path, has a new
 * one.
 */
typedef struct {
  guint serial; /* another one for each that was made */
  const gchar *location;
  gpointer data;
  GDestroyNotify free_data;
  ImkStatus status;
  ImkError error;
  const gchar *hash;
} GstImagingFile;

/**
 * gst_imaging_setting_file_location: (skip)
 * @file: (nullable): of a path property
 *
 * The path, as it was set.
 *
 * Returns: (nullable): a path
 */
#define gst_imaging_setting_file_location(file) \
  ((file) ? (file)->location : NULL)

/**
 * gst_imaging_setting_file_data: (skip)
 * @file: (nullable): of a path property
 *
 * The content, as load() returned it.
 *
 * Returns: (nullable): data
 */
#define gst_imaging_setting_file_data(file) ((file) ? (file)->data : NULL)

/**
 * GstImagingFileLoad: (skip)
 * @property: its name, for the sentence of @error
 * @location: a path, not empty
 * @error: the reason of a failure
 *
 * Reads the file of a path property, in the thread that sets it.
 *
 * Returns: (nullable): the file's content in the form the element needs, or
 *   %NULL with @error set, whose sentence names @location
 */
typedef gpointer (*GstImagingFileLoad) (
    const gchar *property, const gchar *location, ImkError *error);

/**
 * gst_imaging_setting_load_array: (skip)
 * @property: its name, for the sentence of @error
 * @location: a path, not empty
 * @error: the reason of a failure
 *
 * A #GstImagingFileLoad of any array file.
 *
 * Returns: (nullable): a #GstImagingNdArray, for gst_imaging_nd_array_free()
 */
GST_IMAGING_API
gpointer gst_imaging_setting_load_array (
    const gchar *property, const gchar *location, ImkError *error);

/**
 * _GstImagingArray: (skip)
 *
 * An array of numbers, which never changes.
 */
struct _GstImagingArray {
  guint n;
  gdouble values[];
};

/**
 * GstImagingSetting: (skip)
 * @groups: bits of the element; apply() receives those of all settings that
 *   changed, so that it knows what to make anew
 * @offset: in the element's structure
 * @size: of that member
 * @unit: (nullable): "dB", "px", "counts", ...
 *
 * One property. Its default is what the init() of the #GstImagingSettingsTable
 * left in the member, so that a kernel's config_init() stays the only place of
 * defaults.
 */
typedef struct {
  const gchar *name;
  GstImagingKind kind;
  GstImagingWhen when;
  guint groups;
  gsize offset, size;
  gdouble minimum, maximum; /* of numbers, also of those in an array */
  const gchar *unit;
  const gchar *blurb;
  const gchar *type_name;         /* of an enumeration */
  const GEnumValue *enum_values;  /* likewise */
  const GFlagsValue *flag_values; /* likewise */
  GstImagingFileLoad load;        /* of a path; %NULL: it is only a name */
  GDestroyNotify free_data;       /* what load() returns */
  gboolean integers;              /* an array of integers */
  gboolean written;               /* a path of a file to write */
} GstImagingSetting;

/**
 * GST_IMAGING_NEUTRAL: (skip)
 * A bit of the groups: the property says how or where work is done, and results
 * do not depend on it. It takes no part in gst_imaging_settings_hash().
 */
#define GST_IMAGING_NEUTRAL (1u << 31)

#define GST_IMAGING_SETTING(NAME, KIND, WHEN, GROUPS, TYPE, MEMBER, BLURB) \
  .name = NAME, .kind = GST_IMAGING_KIND_##KIND, \
  .when = GST_IMAGING_WHEN_##WHEN, .groups = GROUPS, \
  .offset = G_STRUCT_OFFSET (TYPE, MEMBER), \
  .size = sizeof (((TYPE *) NULL)->MEMBER), .blurb = BLURB

/**
 * GST_IMAGING_BOOLEAN: (skip)
 * @NAME: of the property
 * @WHEN: LIVE, NEXT_SET or NEXT_START
 * @GROUPS: bits of the element
 * @TYPE: the element's structure
 * @MEMBER: the member of it
 * @BLURB: the meaning
 *
 * A line of a table. Numbers, enumerations and the others have macros alike.
 */
#define GST_IMAGING_BOOLEAN(NAME, WHEN, GROUPS, TYPE, MEMBER, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, BOOLEAN, WHEN, GROUPS, TYPE, MEMBER, BLURB) \
  }
#define GST_IMAGING_NUMBER( \
    KIND, NAME, WHEN, GROUPS, TYPE, MEMBER, MIN, MAX, UNIT, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, KIND, WHEN, GROUPS, TYPE, MEMBER, BLURB), \
        .minimum = MIN, .maximum = (gdouble) (MAX), .unit = UNIT \
  }
#define GST_IMAGING_INT(...) GST_IMAGING_NUMBER (INT, __VA_ARGS__)
#define GST_IMAGING_UINT(...) GST_IMAGING_NUMBER (UINT, __VA_ARGS__)
/* A maximum of G_MAXUINT64 stands for all 64 bits. */
#define GST_IMAGING_UINT64(...) GST_IMAGING_NUMBER (UINT64, __VA_ARGS__)
#define GST_IMAGING_DOUBLE(...) GST_IMAGING_NUMBER (DOUBLE, __VA_ARGS__)
#define GST_IMAGING_ARRAY(...) GST_IMAGING_NUMBER (ARRAY, __VA_ARGS__)
#define GST_IMAGING_ENUM( \
    NAME, WHEN, GROUPS, TYPE, MEMBER, ENUM_NAME, VALUES, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, ENUM, WHEN, GROUPS, TYPE, MEMBER, BLURB), \
        .type_name = ENUM_NAME, .enum_values = VALUES \
  }
#define GST_IMAGING_FLAGS( \
    NAME, WHEN, GROUPS, TYPE, MEMBER, FLAGS_NAME, VALUES, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, FLAGS, WHEN, GROUPS, TYPE, MEMBER, BLURB), \
        .type_name = FLAGS_NAME, .flag_values = VALUES \
  }
#define GST_IMAGING_STRING(NAME, WHEN, GROUPS, TYPE, MEMBER, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, STRING, WHEN, GROUPS, TYPE, MEMBER, BLURB) \
  }
/* From 0/1 or 1/G_MAXINT, as MIN says, to G_MAXINT/1. */
#define GST_IMAGING_FRACTION( \
    NAME, WHEN, GROUPS, TYPE, MEMBER, MIN, UNIT, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, FRACTION, WHEN, GROUPS, TYPE, MEMBER, BLURB), \
        .minimum = MIN, .unit = UNIT \
  }
#define GST_IMAGING_PATH( \
    NAME, WHEN, GROUPS, TYPE, MEMBER, LOAD, FREE_DATA, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, PATH, WHEN, GROUPS, TYPE, MEMBER, BLURB), \
        .load = LOAD, .free_data = FREE_DATA \
  }
/* The path of a file that the element writes. */
#define GST_IMAGING_OUTPUT(NAME, WHEN, GROUPS, TYPE, MEMBER, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, PATH, WHEN, GROUPS, TYPE, MEMBER, BLURB), \
        .written = TRUE \
  }
/* Names of files, which are read elsewhere: an array of strings. */
#define GST_IMAGING_PATHS(NAME, WHEN, GROUPS, TYPE, MEMBER, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, PATHS, WHEN, GROUPS, TYPE, MEMBER, BLURB) \
  }
#define GST_IMAGING_INT_ARRAY( \
    NAME, WHEN, GROUPS, TYPE, MEMBER, MIN, MAX, UNIT, BLURB) \
  { \
    GST_IMAGING_SETTING (NAME, ARRAY, WHEN, GROUPS, TYPE, MEMBER, BLURB), \
        .minimum = MIN, .maximum = MAX, .unit = UNIT, .integers = TRUE \
  }

/**
 * GstImagingSettingsTable: (skip)
 * @settings: the properties, @n_settings of them
 * @size: of the element's structure
 * @replan: the groups of which a change makes a new kernel; such changes are
 *   counted and timed in `stats`
 * @timeless: properties are not controllable, as the element has no stream time
 * @has_engine: the class has a #GstImagingEngine of its own, whose properties
 *   are installed as well. Not for subclasses of #GstImagingFilter, which has
 *   them already
 * @init: Fills a zeroed structure with the defaults
 * @apply: (nullable): by default, with @has_engine, gst_imaging_engine_renew().
 *   Settings that changed are to be used from this frame on:
 *   gst_imaging_settings_now() returns them. @before: those in use so far,
 *   %NULL before the first frame after a start; @groups: of what changed.
 *   Checks everything first, and keeps what there is until something new is
 *   complete. An error rejects the settings, with a sentence that names
 *   properties and values; but IMK_ERROR_DEVICE and IMK_ERROR_UNAVAILABLE are
 *   failures of the device
 * @prepare: (nullable): in the thread that sets values, before they count:
 * makes what @apply would need long for, so that no frame waits for it.
 * @candidate: (transfer full): what was set last together with the new values,
 * with files that were all read; @groups: of the new values. @apply may get
 * other settings, or come without it
 *
 * What a class declares. Static.
 */
typedef struct {
  const GstImagingSetting *settings;
  guint n_settings;
  gsize size;
  guint replan;
  gboolean timeless;
  gboolean has_engine;
  void (*init) (gpointer settings);
  ImkStatus (*apply) (
      GstElement *element, gconstpointer before, guint groups, ImkError *error);
  void (*prepare) (GstElement *element, gpointer candidate, guint groups);
} GstImagingSettingsTable;

/* --- class and object ----------------------------------------------------- */

/**
 * gst_imaging_settings_install: (skip)
 * @klass: of the element, in its class_init()
 * @table: what the class declares
 *
 * Installs the properties of @table, `settings` (GstStructure, write-only:
 * several values at once), `settings-valid` and `settings-hash` (read-only,
 * with notify), and the engine's with has_engine; sets set_property() and
 * get_property().
 *
 * A class with further properties installs them with ids from
 * GST_IMAGING_SETTINGS_FIRST_FREE_ID on after this call, has functions of its
 * own for them, and hands on other ids to gst_imaging_settings_set_property ()
 * and gst_imaging_settings_get_property ().
 */
GST_IMAGING_API
void gst_imaging_settings_install (
    GObjectClass *klass, const GstImagingSettingsTable *table);

/**
 * GST_IMAGING_SETTINGS_FIRST_FREE_ID: (skip)

 *
 * The first id for properties that a class installs itself.
 */
#define GST_IMAGING_SETTINGS_FIRST_FREE_ID 10000

/**
 * gst_imaging_settings_set_property: (skip)
 * @object: the element
 * @id: of the property
 * @value: the new value
 * @pspec: its specification

 *
 * The set_property() of a class with a table.
 */
GST_IMAGING_API
void gst_imaging_settings_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec);
/**
 * gst_imaging_settings_get_property: (skip)
 * @object: the element
 * @id: of the property
 * @value: (out): the value
 * @pspec: its specification

 *
 * The get_property() of a class with a table.
 */
GST_IMAGING_API
void gst_imaging_settings_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec);

/**
 * gst_imaging_settings_new: (skip)
 * @element: the owner, in its init(); not referenced. The settings are freed
 *   with it
 * @table: that of its class
 * @engine: (nullable): the engine of @element. It uses the settings from now
 *   on: gst_imaging_engine_set_caps () tries those that were set, then those in
 *   use, and gst_imaging_engine_start () begins a run
 *
 * Makes the settings of an element.
 *
 * Returns: (transfer none): with the defaults
 */
GST_IMAGING_API
GstImagingSettings *gst_imaging_settings_new (GstElement *element,
    const GstImagingSettingsTable *table, GstImagingEngine *engine);

/**
 * gst_imaging_settings_of: (skip)
 * @element: any element
 *
 * Finds the settings of an element.
 *
 * Returns: (nullable) (transfer none): the settings of @element
 */
GST_IMAGING_API
GstImagingSettings *gst_imaging_settings_of (gpointer element);

/* --- of the streaming thread ---------------------------------------------- */

/**
 * gst_imaging_settings_start: (skip)
 * @self: the settings
 *
 * Begins a run: nothing is in use, and files that could not be read are read
 * again. Without an engine, call it where the element starts.
 */
GST_IMAGING_API
void gst_imaging_settings_start (GstImagingSettings *self);

/**
 * gst_imaging_settings_now: (skip)
 * @self: the settings
 *
 * Of the streaming thread.
 *
 * Returns: (transfer none): the element's structure: the settings in use, in
 *   apply() and open() those to be used. Valid until the next update
 */
GST_IMAGING_API
gconstpointer gst_imaging_settings_now (GstImagingSettings *self);

/**
 * gst_imaging_settings_update: (skip)
 * @self: the settings
 * @boundary: what begins: a frame (LIVE) or a set, volume or pair (NEXT_SET)
 * @time: stream time of the frame, for values of a GstController;
 *   GST_CLOCK_TIME_NONE for none
 * @error: (out): the reason of a failure
 *
 * Before a frame: takes what was set. Without a change it costs one atomic
 * read.
 *
 * Returns: IMK_OK, also when settings were rejected and a warning posted; an
 *   error, not yet posted, at the first frame of a run, or when the device
 *   failed
 */
GST_IMAGING_API
ImkStatus gst_imaging_settings_update (GstImagingSettings *self,
    GstImagingWhen boundary, GstClockTime time, ImkError *error);

/**
 * gst_imaging_settings_stream_time: (skip)
 * @pad: a sink pad
 * @buffer: a frame of @pad
 *
 * The time at which a GstController gives its values.
 *
 * Returns: the stream time of @buffer, for gst_imaging_settings_update ()
 */
GST_IMAGING_API
GstClockTime gst_imaging_settings_stream_time (GstPad *pad, GstBuffer *buffer);

/**
 * gst_imaging_settings_take: (skip)
 * @self: the settings
 * @boundary: as for gst_imaging_settings_update()
 * @time: likewise
 *
 * gst_imaging_settings_update() for an element with an engine: when the device
 * fails meanwhile, `backend=auto` changes to the CPU, as it does for a frame.
 *
 * Returns: %FALSE after an error, which has been posted
 */
GST_IMAGING_API
gboolean gst_imaging_settings_take (
    GstImagingSettings *self, GstImagingWhen boundary, GstClockTime time);

/**
 * gst_imaging_settings_try: (skip)
 * @self: the settings
 * @open: opens what depends on the format, with gst_imaging_settings_now ()
 * @data: for @open
 * @error: the reason of a failure
 *
 * For new caps: calls @open with the settings that were set. When these are
 * rejected, and others are in use, posts the warning and calls it with those.
 * gst_imaging_engine_set_caps () does so for an element with an engine.
 *
 * Returns: the status of the last @open
 */
GST_IMAGING_API
ImkStatus gst_imaging_settings_try (GstImagingSettings *self,
    ImkStatus (*open) (gpointer data, ImkError *error), gpointer data,
    ImkError *error);

/**
 * gst_imaging_settings_hash: (skip)
 * @self: the settings
 *
 * What the settings in use are, in 64 digits: SHA-256 of a text that has the
 * factory of the element and a line `name=value` for each property of the
 * table, ordered by name. Numbers are written with all their digits, files as
 * SHA-256 of their content. Paths that are only names, and properties of
 * GST_IMAGING_NEUTRAL, are left out, so the same settings have the same hash in
 * every run, on every host, and on every backend.
 *
 * Returns: (nullable) (transfer none): valid until the next update; %NULL
 *   before settings are in use
 */
GST_IMAGING_API
const gchar *gst_imaging_settings_hash (GstImagingSettings *self);

/* --- copies, for other threads ------------------------------------------- */

/**
 * gst_imaging_settings_copy: (skip)
 * @self: the settings
 *
 * For any thread.
 *
 * Returns: (transfer full): what was set last, as g_object_get () returns it,
 *   whether it is in use or not
 */
GST_IMAGING_API
gpointer gst_imaging_settings_copy (GstImagingSettings *self);

/**
 * gst_imaging_settings_copy_now: (skip)
 * @self: the settings
 *
 * For a thread that works on frames later.
 *
 * Returns: (transfer full): of the streaming thread: gst_imaging_settings_now
 *   (), to be kept
 */
GST_IMAGING_API
gpointer gst_imaging_settings_copy_now (GstImagingSettings *self);

/**
 * gst_imaging_settings_groups_of_change: (skip)
 * @self: the settings
 * @a: settings
 * @b: other settings
 *
 * For any thread.
 *
 * Returns: the groups of the properties in which @a differs from @b
 */
GST_IMAGING_API
guint gst_imaging_settings_groups_of_change (
    GstImagingSettings *self, gconstpointer a, gconstpointer b);

/**
 * gst_imaging_settings_free_copy: (skip)
 * @self: the settings
 * @copy: (nullable) (transfer full): of one of the above

 *
 * Frees a copy of settings.
 */
GST_IMAGING_API
void gst_imaging_settings_free_copy (GstImagingSettings *self, gpointer copy);

/* --- for elements that set their own properties --------------------------- */

/**
 * gst_imaging_settings_put_file: (skip)
 * @self: the settings
 * @name: of a path property
 * @location: (nullable): where the data was saved
 * @data: (transfer full): in the form that load() returns
 * @numbers: content of @data, for gst_imaging_settings_hash(), where it was not
 * saved
 * @n: how many
 *
 * Sets a path property to data that the element made itself, as a capture.
 * Any thread.
 */
GST_IMAGING_API
void gst_imaging_settings_put_file (GstImagingSettings *self, const gchar *name,
    const gchar *location, gpointer data, const gdouble *numbers, gsize n);

/* --- for user interfaces and documentation -------------------------------- */

/**
 * gst_imaging_settings_describe:
 * @type: of an element of gst-imaging
 *
 * The properties of an element as JSON: an array of objects with `name`,
 * `type`, `default`, `when` ("frame", "set", "start", or "read" for properties
 * that cannot be set), `blurb`, and where they apply `minimum`, `maximum`,
 * `unit`, `values` (of an enumeration: objects with `nick` and `blurb`) and
 * `written` (true: the path of a file that the element writes).
 *
 * Returns: (transfer full) (nullable): JSON; %NULL for types that are not
 *   elements of gst-imaging
 */
GST_IMAGING_API
gchar *gst_imaging_settings_describe (GType type);

G_END_DECLS
