/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A datagram of slopes or commands, as aopay makes it and aodepay reads it.
 *
 * This header needs nothing but a C compiler: include it or copy it into the
 * program that drives the mirror. All numbers are little endian; on another
 * machine swap them. A datagram is this header and, from @header_size on, a
 * part of a message. A message is what one frame gave: @size bytes, which are
 * @dims[0] * @dims[1] * @dims[2] * @dims[3] float32, and @n_flags bytes of
 * flags behind them.
 *
 * Part i of a message has its bytes from i * @part_size on: @part_size of them,
 * the last one what is left. With @n_parts = 1 a datagram is the whole
 * message. */
#pragma once

#include <stdint.h>

#define GST_IMAGING_AO_PACKET_MAGIC "GAOP"
#define GST_IMAGING_AO_PACKET_VERSION 1
#define GST_IMAGING_AO_PACKET_FLOAT32 1 /* the only type */

/* Bits of @flags. Those of the loop are of shreconstruct. */
#define GST_IMAGING_AO_PACKET_DISCONT 1u     /* frames before it are missing */
#define GST_IMAGING_AO_PACKET_CLOSED 2u      /* the loop is closed */
#define GST_IMAGING_AO_PACKET_LOW_LIGHT 4u   /* fewer cells than min-valid */
#define GST_IMAGING_AO_PACKET_CALIBRATING 8u /* the mirror is poked */

#define GST_IMAGING_AO_PACKET_NO_FRAME UINT64_MAX

typedef struct {
  char magic[4];        /* "GAOP" */
  uint16_t version;     /* 1; another one may differ in all that follows */
  uint16_t header_size; /* 88; what a later version appends is skipped */
  uint32_t session;     /* a random number of each start of the sender */
  uint32_t flags;
  uint64_t sequence; /* of the datagram, from 0 in each session */
  uint64_t message;  /* number of the message, from 0 in each session */
  uint64_t frame;    /* as the camera counts; GST_IMAGING_AO_PACKET_NO_FRAME */
  uint64_t time_ns;  /* acquisition, of the Unix epoch; 0: not known */
  uint16_t type;     /* GST_IMAGING_AO_PACKET_FLOAT32 */
  uint16_t reserved; /* 0 */
  uint16_t n_parts, part;
  uint32_t dims[4]; /* the fastest first; slopes: cells, 2, 1, 1 (x, then y) */
  uint32_t n_flags; /* u8 of each cell; 0: none */
  uint32_t size;    /* of the message, in bytes */
  uint32_t part_size;
  uint32_t reserved_too; /* 0 */
} GstImagingAoPacket;

#ifdef __cplusplus
static_assert (sizeof (GstImagingAoPacket) == 88, "no padding");
#else
_Static_assert(sizeof (GstImagingAoPacket) == 88, "no padding");
#endif
