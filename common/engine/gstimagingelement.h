/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingsettings.h"
#include "gstimagingsrcpads.h"

G_BEGIN_DECLS

/**
 * GstImagingElement: (skip)
 * @engine: made by gst_imaging_element_set_up()
 * @settings: not owned; the same
 * @outputs: (nullable): made by gst_imaging_element_add_outputs()
 *
 * The base class of an element with a kernel that is no #GstImagingFilter, as
 * it has other pads or other caps than one picture in and one out. It owns
 * engine, settings and the pads of @outputs, gives the engine its contexts and
 * queries, and starts and stops it. Pads, caps and buffers are the element's.
 *
 * An element whose settings are not those of the engine, or whose outputs are
 * of a class of its own, makes them itself in its init().
 */
typedef struct {
  GstElement parent;

  GstImagingEngine *engine;
  GstImagingSettings *settings;
  GstImagingSrcPads *outputs;
} GstImagingElement;

/**
 * GstImagingElementClass: (skip)
 * @start: from READY to PAUSED, before pads are active; by default
 *   gst_imaging_engine_start(), which an element calls in its place. Returns
 *   %FALSE after an error has been posted, and nothing is to be stopped
 * @stop: after pads are inactive; by default gst_imaging_engine_stop()
 *
 * Both are the whole of what is started and stopped.
 */
typedef struct {
  GstElementClass parent_class;

  gboolean (*start) (GstElement *element);
  void (*stop) (GstElement *element);
  gpointer padding[4];
} GstImagingElementClass;

#define GST_TYPE_IMAGING_ELEMENT (gst_imaging_element_get_type ())
GST_IMAGING_API
GType gst_imaging_element_get_type (void);

#define GST_IMAGING_ELEMENT_CLASS(klass) \
  (G_TYPE_CHECK_CLASS_CAST ( \
      (klass), GST_TYPE_IMAGING_ELEMENT, GstImagingElementClass))

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstImagingElement, gst_object_unref)

/**
 * gst_imaging_element_set_up: (skip)
 * @funcs: static
 * @table: what the class has given to gst_imaging_settings_install ()
 *
 * First in the init() of a subclass: makes engine and settings.
 */
GST_IMAGING_API
void gst_imaging_element_set_up (GstImagingElement *self,
    const GstImagingEngineFuncs *funcs, const GstImagingSettingsTable *table);

/**
 * gst_imaging_element_add_pad: (skip)
 * @pad_template: of a pad that is always there
 *
 * Adds the pad, with gst_imaging_element_query().
 * Returns: (transfer none): the pad, for its other functions
 */
GST_IMAGING_API
GstPad *gst_imaging_element_add_pad (
    GstImagingElement *self, GstStaticPadTemplate *pad_template);

/**
 * gst_imaging_element_add_outputs: (skip)
 * @names: see gst_imaging_src_pads_new()
 * @event: (nullable): for events from downstream
 *
 * Makes the @outputs, of #GstImagingSrcPad, that are requested by the names of
 * their templates.
 */
GST_IMAGING_API
void gst_imaging_element_add_outputs (GstImagingElement *self,
    const gchar *const *names, guint n, GstPadEventFunction event);

/**
 * gst_imaging_element_query: (skip)
 *
 * A query function: contexts are answered by the engine, all else as by
 * default.
 */
GST_IMAGING_API
gboolean gst_imaging_element_query (
    GstPad *pad, GstObject *parent, GstQuery *query);

/**
 * gst_imaging_element_set_sink: (skip)
 * @is_sink: whether nothing is linked behind the element
 *
 * In start(): a pipeline that ends here waits for
 * gst_imaging_element_post_eos().
 */
GST_IMAGING_API
void gst_imaging_element_set_sink (GstImagingElement *self, gboolean is_sink);

/**
 * gst_imaging_element_post_eos: (skip)
 * @eos: (transfer none): whose message it is
 *
 * Where the element is a sink, after all has been made.
 */
GST_IMAGING_API
void gst_imaging_element_post_eos (GstImagingElement *self, GstEvent *eos);

G_END_DECLS
