/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernels of a frame are given. */
#pragma once

#include <cstddef>
#include <cstdint>

#include "shreconstruct/shreconstruct-backend.h"

enum {
  THREADS = 256,
  WARPS = THREADS / 32,
  BLOCKS = 4, /* of a processor: what hides the latency of its memory */
  TERMS = 8,  /* IMK_SHRECONSTRUCT_MAX_TERMS */
  VECTOR = 8, /* columns are padded to whole ones */
};

/* A matrix, its rows of @stride numbers behind each other; @scales: (nullable):
 * what a product with each row is multiplied with. */
struct Matrix {
  const void *values;
  const float *scales;
  uint32_t n_rows, stride;
  uint32_t ahead; /* bytes of a row that a kernel asks for before the vector */
};

/* Where the first kernel finds slopes, and the vector that it makes of them:
 * @before is that of the last frame. */
struct Slopes {
  const float *slopes, *offsets, *before;
  const uint8_t *flags; /* (nullable) */
  float *vector;
  uint32_t n_cells;
  bool hold;
  uint32_t *n_valid, *n_valid_host; /* of each block */
};

/* Of a mode or command; what is called _host is written over the bus. */
struct Control {
  /* rings of TERMS rows; @newest is that of this frame */
  double *q, *u, *q_host, *u_host;
  const double *feedback, *forward; /* [term][mode] */
  const float *reference;
  const uint8_t *dead; /* (nullable) */
  float *commands, *commands_host;
  uint32_t *n_limited_host; /* of each block */
  ImkShlimits limits;
  uint32_t n_modes, n_feedback, n_forward, newest;
  bool has_limits;
};

/* What becomes of a product. */
enum End {
  END_COMMANDS, /* R s: of each mode, which is a command */
  END_MODES,    /* R s: of each mode, @next is its q */
  END_MIX,      /* M q: of each command, @next is by how much it is limited */
  END_FOLLOW,   /* pinv (M) of that: of each mode */
};

struct Product {
  Matrix matrix;
  const float *vector; /* [stride] */
  float *next;         /* (nullable): the vector of the product that follows */
  const uint32_t *n_valid; /* of @n_valid_parts blocks */
  uint32_t n_valid_parts;
  double least_valid; /* cells below which nothing is done */
  /* (nullable): where @vector is to be copied to, for the host */
  float *vector_host;
  uint32_t n_vector_host;
};
