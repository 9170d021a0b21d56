/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/api.h"

IMK_BEGIN_DECLS

/* What can go wrong in any imk_ call. */
typedef enum ImkStatus {
  IMK_OK = 0,
  IMK_ERROR_CONFIG, /* a parameter is out of range or contradicts another */
  IMK_ERROR_IMAGE,  /* an image does not fit the configuration */
  IMK_ERROR_MEMORY, /* host or device memory is exhausted */
  IMK_ERROR_UNAVAILABLE, /* no such backend here: module, driver or device */
  IMK_ERROR_DEVICE,      /* a call to the device failed */
  IMK_ERROR_FILE,        /* for callers that read files; no kernel does */
} ImkStatus;

#define IMK_ERROR_MESSAGE_SIZE 512

/**
 * ImkError: (why a call failed, in a sentence for the user)
 * @code: the status that the call returned
 * @message: UTF-8, one or two whole sentences; inside the struct, so that
 *   failing needs no memory
 *
 * Every function that can fail takes an ImkError pointer last; it may be NULL.
 * It is written on failure only. */
typedef struct ImkError {
  ImkStatus code;
  char message[IMK_ERROR_MESSAGE_SIZE];
} ImkError;

/**
 * imk_error_set: (fills @error, printf-like)
 * A message longer than IMK_ERROR_MESSAGE_SIZE - 1 bytes is cut.
 * Returns: @code, so that a failure is one `return` */
IMK_API ImkStatus imk_error_set (ImkError *error, ImkStatus code,
    const char *format, ...) __attribute__ ((format (printf, 3, 4)));

IMK_END_DECLS

/**
 * IMK_TRY: (evaluates a call once, and returns its status unless it is IMK_OK)
 * For functions that return an ImkStatus and have nothing to undo. */
#define IMK_TRY(...) \
  do { \
    ImkStatus imk_try_status = (__VA_ARGS__); \
    if (imk_try_status != IMK_OK) \
      return imk_try_status; \
  } while (0)

/* As imk_error_set (), after "There is no memory ". */
#define IMK_NO_MEMORY(error, ...) \
  imk_error_set ((error), IMK_ERROR_MEMORY, "There is no memory " __VA_ARGS__)
