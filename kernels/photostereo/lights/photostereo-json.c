/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* strtod_l */
#include "photostereo/lights/photostereo-json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deeper files are no light files, and would use up the stack. */
enum { MAX_DEPTH = 32, MAX_NUMBER = 64 };

typedef struct Parser {
  const char *at, *end;
  const char *name;
  uint32_t line;
  locale_t locale;
  ImkError *error;
} Parser;

static ImkStatus parse_value (Parser *p, uint32_t depth, ImkJson **json);

static ImkStatus
fail (Parser *p, const char *what)
{
  return imk_error_set (
      p->error, IMK_ERROR_FILE, "%s, line %u: %s.", p->name, p->line, what);
}

static void
skip_space (Parser *p)
{
  for (; p->at < p->end &&
         (*p->at == ' ' || *p->at == '\t' || *p->at == '\r' || *p->at == '\n');
       p->at++)
    p->line += *p->at == '\n';
}

static bool
take (Parser *p, char c)
{
  skip_space (p);
  if (p->at == p->end || *p->at != c)
    return false;
  p->at++;
  return true;
}

static bool
take_word (Parser *p, const char *word)
{
  size_t size = strlen (word);

  if ((size_t) (p->end - p->at) < size || memcmp (p->at, word, size) != 0)
    return false;
  p->at += size;
  return true;
}

static ImkStatus
parse_string (Parser *p, const char **text, size_t *size)
{
  const char *start;

  if (!take (p, '"'))
    return fail (p, "a text in double quotes is expected here");
  for (start = p->at; p->at < p->end && *p->at != '"'; p->at++) {
    if ((unsigned char) *p->at < ' ')
      return fail (p, "a text has a control character in it");
    if (*p->at == '\\' && ++p->at == p->end)
      break;
  }
  if (p->at == p->end)
    return fail (p, "a text does not end");
  *text = start;
  *size = (size_t) (p->at++ - start);
  return IMK_OK;
}

static ImkStatus
parse_number (Parser *p, double *number)
{
  char text[MAX_NUMBER];
  size_t size = 0;
  char *end;

  while (p->at + size < p->end && size < sizeof (text) - 1 &&
         p->at[size] != '\0' && strchr ("+-.0123456789eE", p->at[size]))
    size++;
  memcpy (text, p->at, size);
  text[size] = '\0';
  *number = strtod_l (text, &end, p->locale);
  if (size == 0 || end != text + size || !isfinite (*number) ||
      text[0] == '+' || text[0] == '.')
    return fail (p, "a value is expected here, or a number is not finite");
  p->at += size;
  return IMK_OK;
}

/* The rest of an array or object; the children are linked as they come, so
 * that a failure leaves nothing behind. */
static ImkStatus
parse_children (Parser *p, uint32_t depth, ImkJson *parent)
{
  bool object = parent->type == IMK_JSON_OBJECT;
  char closing = object ? '}' : ']';
  ImkJson **link = &parent->child;

  if (take (p, closing))
    return IMK_OK;
  do {
    const char *key = NULL;
    size_t key_size = 0;

    if (object) {
      IMK_TRY (parse_string (p, &key, &key_size));
      if (!take (p, ':'))
        return fail (p, "a colon is expected after a name");
    }
    IMK_TRY (parse_value (p, depth + 1, link));
    (*link)->key = key;
    (*link)->key_size = key_size;
    link = &(*link)->next;
  } while (take (p, ','));
  if (!take (p, closing))
    return fail (p, object ? "a comma or } is expected here"
                           : "a comma or ] is expected here");
  return IMK_OK;
}

static ImkStatus
fill_value (Parser *p, uint32_t depth, ImkJson *j)
{
  if (take (p, '{')) {
    j->type = IMK_JSON_OBJECT;
    return parse_children (p, depth, j);
  }
  if (take (p, '[')) {
    j->type = IMK_JSON_ARRAY;
    return parse_children (p, depth, j);
  }
  if (p->at < p->end && *p->at == '"') {
    j->type = IMK_JSON_STRING;
    return parse_string (p, &j->text, &j->text_size);
  }
  if (take_word (p, "null"))
    return IMK_OK;
  j->type = IMK_JSON_BOOL;
  j->number = 1;
  if (take_word (p, "true"))
    return IMK_OK;
  j->number = 0;
  if (take_word (p, "false"))
    return IMK_OK;
  j->type = IMK_JSON_NUMBER;
  return parse_number (p, &j->number);
}

static ImkStatus
parse_value (Parser *p, uint32_t depth, ImkJson **json)
{
  if (depth > MAX_DEPTH)
    return fail (p, "arrays and objects are nested too deeply");
  *json = calloc (1, sizeof (**json));
  if (!*json)
    return IMK_NO_MEMORY (p->error, "to read %s.", p->name);
  skip_space (p);
  (*json)->line = p->line;
  return fill_value (p, depth, *json);
}

ImkStatus
imk_json_parse (const char *text, size_t size, const char *name,
    locale_t c_locale, ImkJson **json, ImkError *error)
{
  Parser p = {
      .at = text,
      .end = text + size,
      .name = name,
      .line = 1,
      .locale = c_locale,
      .error = error,
  };
  ImkStatus status;

  *json = NULL;
  status = parse_value (&p, 0, json);
  skip_space (&p);
  if (status == IMK_OK && p.at != p.end)
    status = fail (&p, "there is more after the end of the object");
  if (status != IMK_OK) {
    imk_json_free (*json);
    *json = NULL;
  }
  return status;
}

const ImkJson *
imk_json_get (const ImkJson *object, const char *key)
{
  size_t size = strlen (key);

  if (!object || object->type != IMK_JSON_OBJECT)
    return NULL;
  for (const ImkJson *j = object->child; j; j = j->next)
    if (j->key_size == size && memcmp (j->key, key, size) == 0)
      return j;
  return NULL;
}

bool
imk_json_is (const ImkJson *json, const char *text)
{
  return json && json->type == IMK_JSON_STRING &&
         json->text_size == strlen (text) &&
         memcmp (json->text, text, json->text_size) == 0;
}

void
imk_json_free (ImkJson *json)
{
  while (json) {
    ImkJson *next = json->next;

    imk_json_free (json->child); /* MAX_DEPTH deep at most */
    free (json);
    json = next;
  }
}
