/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The object of the backend, and what it allocates. */
#pragma once

#include "photostereo/cuda/photostereo-cuda.cuh"

#define NO_LIGHT UINT32_MAX
#define NO_PACKET UINT32_MAX

struct Cuda {
  Arguments arguments;
  bool in_strips; /* pictures are not copied before solve () */
  /* Stores pictures while others arrive; uploads strips. */
  cudaStream_t work;
  cudaEvent_t ready; /* between work and the caller's stream */

  /* pictures that wait for the rest of their packet. An event between every two
   * copies would cost the bus a twentieth, so there is one a packet */
  uint8_t *slots;
  size_t slot_size;
  uint32_t n_slots, next_slot;
  uint32_t *slot_light;  /* see virtual_light (), or NO_LIGHT */
  uint64_t *slot_put;    /* number of the last put that reads it */
  uint64_t n_puts;       /* puts started so far */
  cudaEvent_t *put_done; /* events; put i uses the entry i % n_slots */
  cudaStream_t stream;   /* the stream of the last picture */
  cudaEvent_t left;      /* event for a change of stream */
  uint64_t n_puts_of_set;
  uint64_t n_waited;          /* puts that this stream already waits for */
  uint32_t complete;          /* the next packet to be stored, or NO_PACKET */
  uint32_t n_since_complete;  /* pictures */
  cudaEvent_t filled;         /* event: the pictures are on the device */
  uint32_t *waiting, *stored; /* lights of each packet, of all bands */
  ImkImage *frames;           /* of each virtual light, in strips */

  float *floats;   /* albedo, ambient, normals */
  uint8_t *tables; /* copies of the tables passed to create () */
  uint8_t *scratch;
  uint32_t *lights;
  Lit *lit; /* for all lights; for the lights of the set */
  Lit *host_lit, *host_set;
  float *probes;
  Row *host_rows; /* page-locked */
};

/* Entries of Arguments.lit. */
static inline uint32_t
n_lit_of (const Arguments *a)
{
  return a->n_packets * packet_lights (a->plan.type);
}

/* Packets of all bands, as Put.packet counts them. */
static inline uint32_t
n_packets_of (const Arguments *a)
{
  return a->n_packets * a->plan.bands;
}

/* A light in a band: its packet, counted so, times the lights of a packet, and
 * its place in it. */
static inline uint32_t
virtual_light (const Arguments *a, uint32_t light, uint32_t band)
{
  return band * n_lit_of (a) + light;
}

/* The rows that are solved: those of the device, and of a mosaic, which is
 * interpolated then, one more on each side. */
static inline uint32_t
first_solved (const ImkPhotostereoPlan *p)
{
  return p->first_row - (p->mosaic && p->first_row > 0);
}

static inline uint32_t
end_solved (const ImkPhotostereoPlan *p)
{
  uint32_t end = p->first_row + p->n_rows;

  return end + (p->mosaic && end < p->height);
}

static inline Lit
absent_lit (const Lit *lit)
{
  Lit absent = *lit;

  absent.length2 = absent.z2 = NAN;
  return absent;
}

/* The parameters, and what follows from them. */
static inline void
take_params (Arguments *a, const ImkPhotostereoParams *params)
{
  bool all = params->robust == IMK_PHOTOSTEREO_ROBUST_NONE ||
             a->plan.saturation == IMK_PHOTOSTEREO_NEVER;

  a->params = *params;
  a->clip = all ? INFINITY : (float) a->plan.saturation - 0.5f;
  a->clip_grey = a->one_gain ? a->clip * a->gain : INFINITY;
}

ImkStatus imk_photostereo_cuda_create (const ImkPhotostereoPlan *plan,
    const ImkPhotostereoParams *params, void **state, ImkError *error);
void imk_photostereo_cuda_destroy (void *state);
