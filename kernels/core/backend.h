/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/status.h"

IMK_BEGIN_DECLS

/* Where an algorithm runs. */
typedef enum ImkBackend {
  IMK_BACKEND_CPU,  /* built in, always there */
  IMK_BACKEND_CUDA, /* in modules that are loaded on first use */
} ImkBackend;

/* Changes with every incompatible change of any backend table. */
#define IMK_BACKEND_ABI 16

/* The first members of every backend table. */
#define IMK_BACKEND_HEADER \
  unsigned abi;    /* IMK_BACKEND_ABI of the day it was compiled */ \
  const char *name /* "cpu", "cuda" */

/* One algorithm that a module brings. */
typedef struct ImkModuleEntry {
  const char *algorithm; /* "lapsharpen"; NULL ends the list */
  const void *table;     /* its Imk<Algorithm>Backend */
} ImkModuleEntry;

/* What a module exports, under the name IMK_MODULE_SYMBOL. */
typedef struct ImkModule {
  unsigned abi;
  const ImkModuleEntry *entries;
} ImkModule;

#define IMK_MODULE_SYMBOL "imk_module"

/**
 * imk_backend_load: (is this backend there, with at least one device?)
 * @name: "cpu" or "cuda"
 *
 * Loads the modules at the first call and never unloads them. A module lies
 * in gst-imaging/ beside libimk, or, when the environment variable
 * IMK_MODULE_PATH names an absolute folder, there (builds and tests). Safe from
 * any thread.
 * Returns: IMK_ERROR_UNAVAILABLE and what to install or check */
IMK_API ImkStatus imk_backend_load (const char *name, ImkError *error);

/**
 * imk_backend_find: (the table of one algorithm, from the CUDA modules)
 * @algorithm: "lapsharpen"
 * @table: (out): valid for the life of the process
 *
 * Needs no device: a table is only code.
 * Returns: IMK_ERROR_UNAVAILABLE: module absent, of another ABI, or without
 *   this algorithm */
IMK_API ImkStatus imk_backend_find (
    const char *algorithm, const void **table, ImkError *error);

/**
 * imk_backend_table: (the table of one algorithm, of any backend)
 * @cpu: that for IMK_BACKEND_CPU
 * @algorithm: found by name for IMK_BACKEND_CUDA, as naming its table would
 *   link against CUDA
 * @table: (out): as imk_backend_find (); an Imk<Algorithm>Backend
 *
 * Returns: IMK_ERROR_UNAVAILABLE, also where there is no @backend;
 *   IMK_ERROR_CONFIG: the environment variable IMK_CPU is wrong */
IMK_API ImkStatus imk_backend_table (ImkBackend backend, const void *cpu,
    const char *algorithm, const void **table, ImkError *error);

IMK_END_DECLS
