/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file of a stream of ImageStreamIO, version 2.00, as 64-bit Linux has it
 * in little endian: a header, the values of one frame, and what writers and
 * readers tell each other. Facts of ImageStruct.h (milk-org/ImageStreamIO); no
 * code of it is here. */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_SHMIM_VERSION "2.00"
#define GST_SHMIM_MAX_NAME 79       /* characters */
#define GST_SHMIM_SEMAPHORE_SIZE 32 /* of a sem_t */
#define GST_SHMIM_SEMAPHORE_MAX 10  /* writers do not raise one further */
#define GST_SHMIM_N_TRACES 10       /* of a stream that we make */

/* In TAI, of the Unix epoch. */
typedef struct {
  gint64 seconds, nanoseconds;
} GstShmimTime;

typedef struct {
  gchar version[32]; /* written last, when a stream is made */
  gchar name[80];
  guint8 n_axes;   /* 1 to 3 */
  guint32 size[3]; /* the fastest axis first */
  guint64 n_values;
  guint8 type;  /* GstShmimType */
  guint64 kind; /* bits GST_SHMIM_KIND_* */
  GstShmimTime created, accessed;
  GstShmimTime acquired; /* when the frame was taken */
  GstShmimTime written;
  gint32 creator, owner; /* processes */
  guint8 shared;         /* 1 */
  guint64 inode;
  gint8 location; /* -1: in the file; else a GPU */
  guint8 status;
  guint64 flag;
  guint8 log;
  guint16 n_semaphores, n_traces;
  guint64 count; /* of frames written */
  guint64 slice; /* of a ring of frames, that written last */
  guint64 n_events;
  guint8 is_writing;
  guint16 n_keywords;
  guint32 ring_size, ring_index; /* copies of the last frames */
  guint64 ring_cycle;
  guint64 data_size; /* of the values, in bytes */
  gchar device_handle[64];
} GstShmimHeader;

#define AT(member, place) \
  G_STATIC_ASSERT (G_STRUCT_OFFSET (GstShmimHeader, member) == place)
AT (size, 116);
AT (type, 136);
AT (kind, 144);
AT (acquired, 184);
AT (written, 200);
AT (creator, 216);
AT (inode, 232);
AT (location, 240);
AT (n_semaphores, 258);
AT (count, 264);
AT (is_writing, 288);
AT (ring_index, 296);
AT (data_size, 312);
#undef AT
G_STATIC_ASSERT (sizeof (GstShmimHeader) == 384);
G_STATIC_ASSERT (G_BYTE_ORDER == G_LITTLE_ENDIAN);

typedef enum {
  GST_SHMIM_TYPE_U8 = 1,
  GST_SHMIM_TYPE_I8,
  GST_SHMIM_TYPE_U16,
  GST_SHMIM_TYPE_I16,
  GST_SHMIM_TYPE_U32,
  GST_SHMIM_TYPE_I32,
  GST_SHMIM_TYPE_U64,
  GST_SHMIM_TYPE_I64,
  GST_SHMIM_TYPE_F32,
  GST_SHMIM_TYPE_F64,
  GST_SHMIM_TYPE_COMPLEX64,
  GST_SHMIM_TYPE_COMPLEX128,
  GST_SHMIM_TYPE_F16,
  GST_SHMIM_N_TYPES,
} GstShmimType;

/* The third axis is time: a ring of frames, of which the header names the
 * latest. */
#define GST_SHMIM_KIND_MASK 0xF000F
#define GST_SHMIM_KIND_RING 0x20001

/* Where each part of a file begins, in bytes. */
typedef struct {
  guint64 data, semaphores; /* behind the last one is that of a logger */
  guint64 readers, writers; /* gint32 for each semaphore: its processes */
  guint64 ring;
  guint64 end;
} GstShmimLayout;

/* Returns: bytes of a value, 0 for types that are unknown here */
guint gst_shmim_type_size (guint type);

/* Returns: "float32", for a message or as the type of a tensor; complex values
 * are pairs of these */
const gchar *gst_shmim_type_name (guint type);

/* Returns: "32 x 24 values of uint16" (transfer full) */
gchar *gst_shmim_describe (const GstShmimHeader *header);

gboolean gst_shmim_is_ring (const GstShmimHeader *header);

/* Returns: bytes of one frame */
guint64 gst_shmim_frame_size (const GstShmimHeader *header);

/* @header_size: of the file, sizeof (GstShmimHeader) or more. For a header that
 * was checked. */
GstShmimLayout gst_shmim_layout (
    const GstShmimHeader *header, guint64 header_size);

/* Is this the header of a file of @file_size bytes that can be played? @name:
 * of the file, for the sentence. */
gboolean gst_shmim_check (const GstShmimHeader *header, guint64 file_size,
    const gchar *name, GstShmimLayout *layout, GError **error);

G_END_DECLS
