/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* strtod_l */
#include "imk/photostereo-lights.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "photostereo/lights/photostereo-json.h"

enum {
  MAX_TOKENS = 64,
  MAX_NUMBER = 64,
  MAX_COLUMNS = IMK_PHOTOSTEREO_MAX_BANDS, /* 6 of lights */
};

/* Directions are written with two decimals and more. */
#define UNIT_TOLERANCE 0.01

/* A file of lines. */
typedef struct Reader {
  const char *at, *end;
  const char *name;
  uint32_t line;
  locale_t locale; /* with a point as decimal separator */
  ImkError *error;
} Reader;

typedef struct Token {
  const char *text;
  size_t size;
} Token;

/* What a token may look like in a message: no control characters, no broken
 * UTF-8, not too long. */
typedef struct Quote {
  char text[24];
} Quote;

static Quote
quote (const Token *t)
{
  Quote q = {""};
  size_t n = t->size < sizeof (q.text) - 1 ? t->size : sizeof (q.text) - 1;

  for (size_t i = 0; i < n; i++)
    q.text[i] = t->text[i] >= ' ' && t->text[i] <= '~' ? t->text[i] : '?';
  return q;
}

static bool
is_space (char c)
{
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' ||
         c == ';';
}

/* A comma before a space, or in a line without other separators. Elsewhere it
 * may be a decimal sign, which is refused as a part of a number. */
static bool
commas_separate (const char *from, const char *to)
{
  bool tight = false, spaced = false;

  while (from < to && is_space (to[-1]))
    to--;
  while (from < to && is_space (*from))
    from++;
  for (; from < to; from++) {
    tight = tight || (*from == ',' && from + 1 < to && !is_space (from[1]));
    spaced = spaced || is_space (*from);
  }
  return !tight || !spaced;
}

/* Splits a line at white space, commas and semicolons; more than MAX_TOKENS
 * tokens are counted as MAX_TOKENS, the first of which are lost. Returns: the
 * last ones; *n = 0 for an empty line */
static void
split (const char *from, const char *to, Token tokens[MAX_TOKENS], uint32_t *n)
{
  const char *comment = memchr (from, '#', (size_t) (to - from));
  char comma;

  *n = 0;
  if (comment)
    to = comment;
  comma = commas_separate (from, to) ? ',' : ' ';
  while (from < to) {
    const char *start;

    while (from < to && (is_space (*from) || *from == comma))
      from++;
    start = from;
    while (from < to && !is_space (*from) && *from != comma)
      from++;
    if (from == start)
      break;
    if (*n == MAX_TOKENS)
      memmove (tokens, tokens + 1, (MAX_TOKENS - 1) * sizeof (*tokens));
    else
      ++*n;
    tokens[*n - 1] = (Token){start, (size_t) (from - start)};
  }
}

/* Returns: whether there is another line that is not empty */
static bool
next_line (Reader *r, Token tokens[MAX_TOKENS], uint32_t *n)
{
  while (r->at < r->end) {
    const char *end = memchr (r->at, '\n', (size_t) (r->end - r->at));

    if (!end)
      end = r->end;
    r->line++;
    split (r->at, end, tokens, n);
    r->at = end < r->end ? end + 1 : end;
    if (*n)
      return true;
  }
  return false;
}

static ImkStatus
parse_number (const Reader *r, const Token *t, double *value, ImkError *error)
{
  char text[MAX_NUMBER];
  char *end = text;

  if (t->size < sizeof (text)) {
    memcpy (text, t->text, t->size);
    text[t->size] = '\0';
    *value = strtod_l (text, &end, r->locale);
  }
  if (t->size >= sizeof (text) || end != text + t->size)
    return imk_error_set (error, IMK_ERROR_FILE,
        "%s, line %u: \"%s\" is not a number.", r->name, r->line,
        quote (t).text);
  if (!isfinite (*value))
    return imk_error_set (error, IMK_ERROR_FILE,
        "%s, line %u: \"%s\" is not a finite number.", r->name, r->line,
        quote (t).text);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Lists that grow. */

static ImkStatus
append (Reader *r, ImkPhotostereoLights *list, const ImkPhotostereoLight *light)
{
  ImkPhotostereoLight *more;

  if (list->n == IMK_PHOTOSTEREO_MAX_LIGHTS)
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s, line %u: there can be %u lights at most.", r->name, r->line,
        IMK_PHOTOSTEREO_MAX_LIGHTS);
  if ((list->n & (list->n - 1)) == 0) { /* full: a power of 2, or 0 */
    more = realloc (
        list->lights, (list->n ? 2 * list->n : 1) * sizeof (*list->lights));
    if (!more)
      return IMK_NO_MEMORY (r->error, "for the lights of %s.", r->name);
    list->lights = more;
  }
  list->lights[list->n++] = *light;
  return IMK_OK;
}

static ImkStatus
check_vector (Reader *r, const ImkPhotostereoLight *l)
{
  if (l->x != 0 || l->y != 0 || l->z != 0)
    return IMK_OK;
  return imk_error_set (r->error, IMK_ERROR_FILE,
      "%s, line %u: the light is at (0, 0, 0), which is no direction and no "
      "place for a lamp.",
      r->name, r->line);
}

static ImkStatus
check_intensity (Reader *r, const double *intensity, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (!(intensity[i] > 0))
      return imk_error_set (r->error, IMK_ERROR_FILE,
          "%s, line %u: the intensity %g is not above 0.", r->name, r->line,
          intensity[i]);
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Text. */

/* The last @n tokens as numbers. */
static ImkStatus
parse_numbers (Reader *r, const Token *tokens, uint32_t n_tokens, uint32_t n,
    double values[MAX_COLUMNS])
{
  for (uint32_t i = 0; i < n; i++)
    IMK_TRY (parse_number (r, &tokens[n_tokens - n + i], &values[i], r->error));
  return IMK_OK;
}

static ImkStatus
parse_light (Reader *r, const Token *tokens, uint32_t n_tokens, uint32_t n,
    ImkPhotostereoLights *list)
{
  double v[MAX_COLUMNS] = {0};
  ImkPhotostereoLight light;

  IMK_TRY (parse_numbers (r, tokens, n_tokens, n, v));
  light = (ImkPhotostereoLight){
      .x = v[0], .y = v[1], .z = v[2], .intensity = {1, 1, 1}};
  for (uint32_t i = 0; i < 3 && n > 3; i++)
    light.intensity[i] = n == 4 ? v[3] : v[3 + i];
  IMK_TRY (check_vector (r, &light));
  IMK_TRY (check_intensity (r, light.intensity, 3));
  return append (r, list, &light);
}

/* How many tokens at the end of a line are numbers, up to 6; the first is a
 * name. */
static uint32_t
count_numbers (
    const Reader *r, const Token *tokens, uint32_t n_tokens, double values[6])
{
  uint32_t n = 0;

  while (n < 6 && n + 1 < n_tokens &&
         parse_number (r, &tokens[n_tokens - n - 1], &values[5 - n], NULL) ==
             IMK_OK)
    n++;
  return n;
}

static bool
is_unit (const double v[3])
{
  return fabs (sqrt (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) - 1) <=
         UNIT_TOLERANCE;
}

static bool
is_digits (const Token *t)
{
  for (size_t i = 0; i < t->size; i++)
    if (t->text[i] < '0' || t->text[i] > '9')
      return false;
  return true;
}

/* Names may end in numbers: "IMG 2024 05 17 x y z" is no "name x y z r g b". An
 * intensity is above 0. Where the last three numbers alone are unit vectors it
 * is these that are the directions; and digits alone whose first number is the
 * same in several lines are a date or a count: so many lamps of one x, all with
 * y and z above 0, tell no normals.
 * Returns: 6 when all lines are "name x y z r g b", else 3; the caller reads
 * the lines again */
static uint32_t
lp_columns (Reader r)
{
  Token tokens[MAX_TOKENS];
  bool all_first = true, all_last = true, is_named = true;
  uint32_t n, n_lines = 0;
  double number = 0;

  while (next_line (&r, tokens, &n)) {
    double v[6] = {0};

    if (count_numbers (&r, tokens, n, v) < 6 || !(v[3] > 0) || !(v[4] > 0) ||
        !(v[5] > 0))
      return 3;
    all_first = all_first && is_unit (v);
    all_last = all_last && is_unit (v + 3);
    for (uint32_t k = 4; k <= 6; k++)
      is_named = is_named && is_digits (&tokens[n - k]);
    is_named = is_named && (n_lines++ == 0 || v[0] == number);
    number = v[0];
  }
  return (all_last && !all_first) || (is_named && n_lines > 1) ? 3 : 6;
}

static ImkStatus
parse_lp (Reader *r, uint32_t count, ImkPhotostereoLights *list)
{
  Token tokens[MAX_TOKENS];
  uint32_t n, columns = lp_columns (*r);

  while (next_line (r, tokens, &n)) {
    if (n < 3) /* three: a list with its count, without names */
      return imk_error_set (r->error, IMK_ERROR_FILE,
          "%s, line %u: %u words; a line of an .lp file is a name and x, y, z, "
          "and may have the intensities of red, green, blue.",
          r->name, r->line, n);
    if (list->n == count)
      return imk_error_set (r->error, IMK_ERROR_FILE,
          "%s, line %u: one light more than the %u that the first line says.",
          r->name, r->line, count);
    IMK_TRY (parse_light (r, tokens, n, columns, list));
  }
  if (list->n != count)
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s ends at line %u with %u lights; the first line says %u.", r->name,
        r->line, list->n, count);
  return IMK_OK;
}

/* A name, and x, y, z behind it. */
static bool
is_named (const Reader *r, const Token *tokens, uint32_t n)
{
  double v[6], first;

  return count_numbers (r, tokens, n, v) >= 3 &&
         parse_number (r, &tokens[0], &first, NULL) != IMK_OK;
}

static ImkStatus
parse_text (Reader *r, ImkPhotostereoLights *list)
{
  Token tokens[MAX_TOKENS];
  uint32_t n = 0, columns = 0;
  double count;

  while (next_line (r, tokens, &n)) {
    if (n == 1 && columns == 0) {
      IMK_TRY (parse_number (r, &tokens[0], &count, r->error));
      if (!(count >= 1 && count <= IMK_PHOTOSTEREO_MAX_LIGHTS) ||
          count != floor (count))
        return imk_error_set (r->error, IMK_ERROR_FILE,
            "%s, line %u: the number of lights is \"%s\"; there can be 1 to %u.",
            r->name, r->line, quote (&tokens[0]).text,
            IMK_PHOTOSTEREO_MAX_LIGHTS);
      return parse_lp (r, (uint32_t) count, list);
    }
    if (columns == 0 && n > 3 && is_named (r, tokens, n))
      return imk_error_set (r->error, IMK_ERROR_FILE,
          "%s, line %u: a list with names begins with a line that says how many "
          "lights it has.",
          r->name, r->line);
    if (n != 3 && n != 4 && n != 6)
      return imk_error_set (r->error, IMK_ERROR_FILE,
          "%s, line %u: %u words; a light is x y z, and may have an intensity "
          "or those of red, green, blue.",
          r->name, r->line, n);
    if (columns && n != columns)
      return imk_error_set (r->error, IMK_ERROR_FILE,
          "%s, line %u: %u numbers, where the lines above have %u.", r->name,
          r->line, n, columns);
    columns = n;
    IMK_TRY (parse_light (r, tokens, n, n, list));
  }
  if (list->n == 0)
    return imk_error_set (
        r->error, IMK_ERROR_FILE, "%s has no lights in it.", r->name);
  return IMK_OK;
}

static ImkPhotostereoLightKind
guess_kind (const ImkPhotostereoLights *list)
{
  uint32_t n_unit = 0;

  for (uint32_t i = 0; i < list->n; i++) {
    const ImkPhotostereoLight *l = &list->lights[i];
    const double v[] = {l->x, l->y, l->z};

    n_unit += is_unit (v);
  }
  return n_unit == list->n ? IMK_PHOTOSTEREO_KIND_DIRECTIONS
         : n_unit == 0     ? IMK_PHOTOSTEREO_KIND_POSITIONS
                           : IMK_PHOTOSTEREO_KIND_UNKNOWN;
}

/* ------------------------------------------------------------------------
 * .dome */

/* The numbers of an array of objects that have them under @names. */
static ImkStatus
parse_triples (Reader *r, const ImkJson *array, const char *what,
    const char *const names[3], uint32_t n, double (*values)[3])
{
  const ImkJson *item = array->child;

  for (uint32_t i = 0; i < n; i++, item = item->next)
    for (int k = 0; k < 3; k++) {
      const ImkJson *v = imk_json_get (item, names[k]);

      if (!v || v->type != IMK_JSON_NUMBER)
        return imk_error_set (r->error, IMK_ERROR_FILE,
            "%s, line %u: entry %u of \"%s\" has no number \"%s\".", r->name,
            item->line, i, what, names[k]);
      values[i][k] = v->number;
    }
  return IMK_OK;
}

static ImkStatus
find_array (Reader *r, const ImkJson *dome, const char *key, uint32_t *n,
    const ImkJson **array)
{
  *array = imk_json_get (dome, key);
  *n = 0;
  if (!*array || (*array)->type != IMK_JSON_ARRAY)
    return imk_error_set (
        r->error, IMK_ERROR_FILE, "%s has no array \"%s\".", r->name, key);
  for (const ImkJson *item = (*array)->child; item; item = item->next)
    ++*n;
  return IMK_OK;
}

static ImkStatus
add_dome_lights (Reader *r, const ImkJson *dome, const char *key, uint32_t n,
    const ImkJson *array, double (*values)[3], ImkPhotostereoLights *list)
{
  static const char *const xyz[] = {"x", "y", "z"};
  static const char *const rgb[] = {"r", "g", "b"};
  const ImkJson *adjust = imk_json_get (dome, "ledAdjust");
  uint32_t n_adjust = 0;
  const ImkJson *item = array->child;

  IMK_TRY (parse_triples (r, array, key, xyz, n, values));
  for (uint32_t i = 0; i < n; i++, item = item->next) {
    ImkPhotostereoLight light = {.x = values[i][0],
        .y = values[i][1],
        .z = values[i][2],
        .intensity = {1, 1, 1}};

    r->line = item->line;
    IMK_TRY (check_vector (r, &light));
    IMK_TRY (append (r, list, &light));
  }
  if (!adjust || !adjust->child)
    return IMK_OK;
  IMK_TRY (find_array (r, dome, "ledAdjust", &n_adjust, &adjust));
  if (n_adjust != n)
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s, line %u: \"ledAdjust\" has %u entries for %u lights.", r->name,
        adjust->line, n_adjust, n);
  IMK_TRY (parse_triples (r, adjust, "ledAdjust", rgb, n, values));
  item = adjust->child;
  for (uint32_t i = 0; i < n; i++, item = item->next) {
    r->line = item->line;
    IMK_TRY (check_intensity (r, values[i], 3));
    memcpy (list->lights[i].intensity, values[i], sizeof (values[i]));
  }
  return IMK_OK;
}

static ImkStatus
read_dome (Reader *r, const ImkJson *dome, ImkPhotostereoLights *list)
{
  const ImkJson *configuration = imk_json_get (dome, "lightConfiguration");
  const ImkJson *array = NULL;
  const char *key = "directions";
  double (*values)[3];
  uint32_t n = 0;
  ImkStatus status;

  list->kind = IMK_PHOTOSTEREO_KIND_POSITIONS;
  if (imk_json_is (configuration, "spherical"))
    key = "positionsSphere";
  else if (imk_json_is (configuration, "lights3d"))
    key = "positions3d";
  else if (!configuration || imk_json_is (configuration, "directional"))
    list->kind = IMK_PHOTOSTEREO_KIND_DIRECTIONS;
  else
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s, line %u: \"lightConfiguration\" is none of directional, "
        "spherical, lights3d.",
        r->name, configuration->line);
  IMK_TRY (find_array (r, dome, key, &n, &array));
  if (n == 0 || n > IMK_PHOTOSTEREO_MAX_LIGHTS)
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s, line %u: \"%s\" has %u entries; there can be 1 to %u lights.",
        r->name, array->line, key, n, IMK_PHOTOSTEREO_MAX_LIGHTS);
  values = calloc (n, sizeof (*values));
  if (!values)
    return IMK_NO_MEMORY (r->error, "for the lights of %s.", r->name);
  status = add_dome_lights (r, dome, key, n, array, values, list);
  free (values);
  return status;
}

/* ------------------------------------------------------------------------
 * AliceVision, whose numbers may be in quotes. */

/* Returns: how many numbers @array has, up to 4; 0 if one is none */
static uint32_t
read_numbers (const Reader *r, const ImkJson *array, double values[4])
{
  uint32_t n = 0;

  if (!array || array->type != IMK_JSON_ARRAY)
    return 0;
  for (const ImkJson *v = array->child; v && n < 4; v = v->next, n++) {
    const Token token = {v->text, v->text_size};

    if (v->type == IMK_JSON_NUMBER)
      values[n] = v->number;
    else if (v->type != IMK_JSON_STRING || v->text_size == 0 ||
             parse_number (r, &token, &values[n], NULL) != IMK_OK)
      return 0;
  }
  return n;
}

/* Its y points down, and its z away from the camera. */
static ImkStatus
read_view (
    Reader *r, const ImkJson *item, uint32_t i, ImkPhotostereoLights *list)
{
  const ImkJson *type = imk_json_get (item, "type");
  const ImkJson *intensity = imk_json_get (item, "intensity");
  ImkPhotostereoLight light = {.intensity = {1, 1, 1}};
  double v[4] = {0};
  uint32_t n;

  r->line = item->line;
  if (type && !imk_json_is (type, "directional"))
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s, line %u: the type of entry %u of \"lights\" is not "
        "\"directional\". Calibrate the lights as directions.",
        r->name, item->line, i);
  if (read_numbers (r, imk_json_get (item, "direction"), v) != 3)
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s, line %u: entry %u of \"lights\" has no \"direction\" of three "
        "numbers.",
        r->name, item->line, i);
  light.x = v[0];
  light.y = -v[1];
  light.z = -v[2];
  n = read_numbers (r, intensity, v);
  if (intensity && n != 3)
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s, line %u: the \"intensity\" of entry %u of \"lights\" is not three "
        "numbers.",
        r->name, item->line, i);
  if (n == 3)
    memcpy (light.intensity, v, 3 * sizeof (*v));
  IMK_TRY (check_vector (r, &light));
  IMK_TRY (check_intensity (r, light.intensity, 3));
  return append (r, list, &light);
}

static ImkStatus
read_views (Reader *r, const ImkJson *json, ImkPhotostereoLights *list)
{
  const ImkJson *array;
  uint32_t n;

  IMK_TRY (find_array (r, json, "lights", &n, &array));
  if (n == 0)
    return imk_error_set (
        r->error, IMK_ERROR_FILE, "%s has no lights in it.", r->name);
  list->kind = IMK_PHOTOSTEREO_KIND_DIRECTIONS;
  n = 0;
  for (const ImkJson *item = array ? array->child : NULL; item;
       item = item->next)
    IMK_TRY (read_view (r, item, n++, list));
  return IMK_OK;
}

static ImkStatus
parse_json (Reader *r, ImkPhotostereoLights *list)
{
  ImkJson *json = NULL;
  ImkStatus status = imk_json_parse (
      r->at, (size_t) (r->end - r->at), r->name, r->locale, &json, r->error);

  if (status == IMK_OK)
    status = imk_json_get (json, "lights") ? read_views (r, json, list)
                                           : read_dome (r, json, list);
  imk_json_free (json);
  return status;
}

/* ------------------------------------------------------------------------ */

static ImkStatus
reader_init (
    Reader *r, const char *text, size_t size, const char *name, ImkError *error)
{
  static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark */

  *r = (Reader){.at = text, .end = text + size, .name = name, .error = error};
  if (size >= 3 && memcmp (text, mark, 3) == 0)
    r->at += 3;
  r->locale = newlocale (LC_ALL_MASK, "C", (locale_t) 0);
  if (r->locale == (locale_t) 0)
    return IMK_NO_MEMORY (error, "to read %s.", name);
  return IMK_OK;
}

ImkStatus
imk_photostereo_lights_parse (const char *text, size_t size, const char *name,
    ImkPhotostereoLights *lights, ImkError *error)
{
  ImkPhotostereoLights list = {0};
  Reader reader;
  ImkStatus status = IMK_OK;
  const char *first;

  IMK_TRY (reader_init (&reader, text, size, name, error));
  first = reader.at;
  while (first < reader.end && (is_space (*first) || *first == '\n'))
    first++;
  if (first < reader.end && *first == '{') {
    status = parse_json (&reader, &list);
  } else {
    status = parse_text (&reader, &list);
    list.kind = guess_kind (&list);
  }
  freelocale (reader.locale);
  if (status == IMK_OK)
    *lights = list;
  else
    free (list.lights);
  return status;
}

static ImkStatus
read_intensity (
    Reader *r, const Token *tokens, uint32_t n, ImkPhotostereoLight *light)
{
  double v[MAX_COLUMNS];

  if (n > IMK_PHOTOSTEREO_MAX_BANDS)
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s, line %u: %u words; the intensity of a light is one number, three "
        "(red, green, blue), or one a band, of which there can be %u.",
        r->name, r->line, n, IMK_PHOTOSTEREO_MAX_BANDS);
  IMK_TRY (parse_numbers (r, tokens, n, n, v));
  IMK_TRY (check_intensity (r, v, n));
  for (uint32_t k = 0; k < n || k < 3; k++)
    light->intensity[k] = n == 1 ? v[0] : k < n ? v[k] : 0;
  light->n_bands = n == 1 || n == 3 ? 0 : n;
  return IMK_OK;
}

/* Only the intensities of @lights change. */
static ImkStatus
read_intensities (Reader *r, uint32_t n_lights, ImkPhotostereoLight *lights)
{
  Token tokens[MAX_TOKENS];
  uint32_t n, i = 0;

  for (; next_line (r, tokens, &n); i++) {
    if (i == n_lights)
      return imk_error_set (r->error, IMK_ERROR_FILE,
          "%s, line %u: one intensity more than the %u lights.", r->name,
          r->line, n_lights);
    IMK_TRY (read_intensity (r, tokens, n, &lights[i]));
    if (lights[i].n_bands != lights[0].n_bands)
      return imk_error_set (r->error, IMK_ERROR_FILE,
          "%s, line %u: %u numbers, where the first line has %s.", r->name,
          r->line, n, lights[0].n_bands ? "those of bands" : "one or three");
  }
  if (i != n_lights)
    return imk_error_set (r->error, IMK_ERROR_FILE,
        "%s ends at line %u with the intensities of %u lights; there are %u.",
        r->name, r->line, i, n_lights);
  return IMK_OK;
}

ImkStatus
imk_photostereo_lights_parse_intensities (const char *text, size_t size,
    const char *name, ImkPhotostereoLights *lights, ImkError *error)
{
  ImkPhotostereoLight *read = calloc (lights->n, sizeof (*read));
  Reader reader;
  ImkStatus status;

  if (!read)
    return IMK_NO_MEMORY (error, "to read %s.", name);
  memcpy (read, lights->lights, lights->n * sizeof (*read));
  status = reader_init (&reader, text, size, name, error);
  if (status == IMK_OK) {
    status = read_intensities (&reader, lights->n, read);
    freelocale (reader.locale);
  }
  if (status == IMK_OK)
    memcpy (lights->lights, read, lights->n * sizeof (*read));
  free (read);
  return status;
}

void
imk_photostereo_lights_clear (ImkPhotostereoLights *lights)
{
  free (lights->lights);
  *lights = (ImkPhotostereoLights){0};
}
