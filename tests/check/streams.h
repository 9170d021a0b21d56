/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every element that has sink pads, with all its pads linked: its input and
 * output. */
#pragma once

#include "check-common.h"

G_BEGIN_DECLS

enum { STREAMS_MAX_SINKS = 2, STREAMS_MAX_SRCS = 4 };

/* Input of a sink pad: @n buffers of @size bytes. */
typedef struct {
  const gchar *name, *caps;
  gsize size;
} StreamsSink;

typedef struct {
  const gchar *launch; /* $ is check_folder () */
  StreamsSink sinks[STREAMS_MAX_SINKS];
  guint n; /* buffers for each sink pad */
  const gchar *srcs[STREAMS_MAX_SRCS];
  gboolean is_lines;         /* not video: a buffer is an image without times */
  gboolean keeps;            /* outputs are new buffers with the metadata */
  const gchar *geometry;     /* src pads that have the geometry of the input */
  gboolean gap_is_forwarded; /* a gap is an event of each src pad */
} StreamsCase;

extern const StreamsCase streams_cases[];
extern const guint streams_n_cases;

/* A fixture: the folder with the files of the launch lines. */
void streams_setup (void);

typedef struct {
  const StreamsCase *c;
  GstElement *element;
  GstBus *bus;
  guint n_sinks, n_srcs;
  GstPad *sinks[STREAMS_MAX_SINKS]; /* linked to sink pads */
  GstPad *srcs[STREAMS_MAX_SRCS];   /* linked to src pads */
  GMutex lock;
  GPtrArray *received[STREAMS_MAX_SRCS]; /* GstMiniObject; under the lock */
} Streams;

/* Returns: NULL where the element is not built */
Streams *streams_new (const StreamsCase *c);
void streams_free (Streams *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Streams, streams_free)

/* Calls @feed for all sink pads, each in a thread of its own, and waits. */
typedef void (*StreamsFeed) (Streams *s, guint sink, gpointer data);
void streams_feed (Streams *s, StreamsFeed feed, gpointer data);

void streams_send (Streams *s, guint sink, GstEvent *event, guint32 seqnum);

/* Sends caps, after a stream-start and before a segment. */
void streams_send_caps (Streams *s, guint sink);

/* Returns: (transfer full): buffer @i, marked DISCONT where it is the first, as
 * sources do */
GstBuffer *streams_buffer (Streams *s, guint sink, guint i);
void streams_push (Streams *s, guint sink, GstBuffer *buffer);

/* Waits until src pad @src has got an event of @type. */
void streams_wait (Streams *s, guint src, GstEventType type);

/* Forgets what has been received. */
void streams_clear (Streams *s);

G_END_DECLS
