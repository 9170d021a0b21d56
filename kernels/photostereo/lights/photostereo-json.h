/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* As much JSON (RFC 8259) as light files need: all of it can be read, texts are
 * compared only. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/status.h"

typedef enum ImkJsonType {
  IMK_JSON_NULL,
  IMK_JSON_BOOL, /* number 0 or 1 */
  IMK_JSON_NUMBER,
  IMK_JSON_STRING,
  IMK_JSON_ARRAY,
  IMK_JSON_OBJECT,
} ImkJsonType;

/* A value; those of an array or object are its children, in order. */
typedef struct ImkJson {
  ImkJsonType type;
  uint32_t line; /* where it begins, counted from 1 */
  double number;
  const char *text, *key; /* in the file, escapes as they are; not terminated */
  size_t text_size, key_size;
  struct ImkJson *child, *next;
} ImkJson;

/* @json: refers to @text. Returns: IMK_ERROR_FILE with the line; *json is then
 * NULL */
ImkStatus imk_json_parse (const char *text, size_t size, const char *name,
    locale_t c_locale, ImkJson **json, ImkError *error);

/* Returns: the value under @key; NULL when @object has none or is none */
const ImkJson *imk_json_get (const ImkJson *object, const char *key);

/* Returns: whether it is the string @text; not for NULL */
bool imk_json_is (const ImkJson *json, const char *text);

void imk_json_free (ImkJson *json);
