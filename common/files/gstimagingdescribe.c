/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingdescription-private.h"

#include <string.h>

#include "gstimagingquantity.h"
#include "gstimagingformats.h"
#include "gstimagingome.h"

typedef struct {
  GPtrArray *list;
  const GstImagingNdArray *frame;
  const GstStructure *quantity;
  gboolean several;
  const gchar *sidecar; /* (nullable) */
} Cards;

static void
add (Cards *self, const gchar *key, const gchar *value)
{
  if (value && *value)
    g_ptr_array_add (self->list, g_strdup_printf ("%s=%s", key, value));
}

static void
add_number (Cards *self, const gchar *key, gdouble number)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  add (self, key, g_ascii_dtostr (digits, sizeof (digits), number));
}

static gdouble
get_number (const GstStructure *s, const gchar *field, gdouble usual)
{
  gst_structure_get_double (s, field, &usual);
  return usual;
}

/* --- samples -------------------------------------------------------------- */

/* Samples that are the quantity itself stay so. */
static gboolean
is_quantity (const Cards *self)
{
  return get_number (self->quantity, "scale", 1) == 1 &&
         get_number (self->quantity, "offset", 0) == 0;
}

/* --- FITS ----------------------------------------------------------------- */

/* Not as a part of a longer one */
static void
replace_word (GString *text, const gchar *word, const gchar *other)
{
  gsize n = strlen (word);

  for (gsize i = 0; i + n <= text->len; i++)
    if (strncmp (text->str + i, word, n) == 0 &&
        !(i > 0 && g_ascii_isalpha (text->str[i - 1])) &&
        !g_ascii_isalpha (text->str[i + n])) {
      g_string_erase (text, (gssize) i, (gssize) n);
      g_string_insert (text, (gssize) i, other);
      i += strlen (other) - 1;
    }
}

/* What made the samples. FITS has keys of 8 letters. */
static const struct {
  const gchar *key, *member;
} origins[] = {{"QELEMENT", "element"}, {"QVERSION", "version"},
    {"QBACKEND", "backend"}, {"QHASH", "settings-hash"}};

/* As the standard spells units: "counts^2" is "count**2". Returns: (transfer
 * full) (nullable) */
static gchar *
fits_unit (const gchar *unit)
{
  GString *text = unit ? g_string_new (unit) : NULL;

  if (!text)
    return NULL;
  g_string_replace (text, "counts", "count", 0);
  g_string_replace (text, "pixels", "pixel", 0);
  replace_word (text, "px", "pixel");
  g_string_replace (text, "^", "**", 0);
  return g_string_free (text, FALSE);
}

static void
add_fits_unit (Cards *self, const gchar *key, const gchar *field)
{
  g_autofree gchar *unit =
      fits_unit (gst_structure_get_string (self->quantity, field));

  add (self, key, unit);
}

/* The first axis of FITS is that of the channels, if there are any. */
static void
add_fits_axis (Cards *self, guint axis)
{
  guint n = axis + 1 + (self->frame->n_dims > 2);
  const GstStructure *q = self->quantity;
  g_autofree gchar *name = g_strdup_printf ("axis-%u-name", axis);
  g_autofree gchar *unit = g_strdup_printf ("axis-%u-unit", axis);
  g_autofree gchar *step = g_strdup_printf ("axis-%u-step", axis);
  g_autofree gchar *origin = g_strdup_printf ("axis-%u-origin", axis);
  g_autofree gchar *ctype = g_strdup_printf ("CTYPE%u", n);
  g_autofree gchar *cunit = g_strdup_printf ("CUNIT%u", n);
  g_autofree gchar *cdelt = g_strdup_printf ("CDELT%u", n);
  g_autofree gchar *crval = g_strdup_printf ("CRVAL%u", n);
  g_autofree gchar *crpix = g_strdup_printf ("CRPIX%u", n);
  g_autofree gchar *upper = NULL;

  if (!gst_structure_has_field_typed (q, name, G_TYPE_STRING))
    return;
  upper = g_ascii_strup (gst_structure_get_string (q, name), -1);
  add (self, ctype, upper);
  add_fits_unit (self, cunit, unit);
  add_number (self, crpix, 1);
  add_number (self, crval, get_number (q, origin, 0));
  add_number (self, cdelt, get_number (q, step, 1));
}

static void
add_fits (Cards *self)
{
  const GstStructure *q = self->quantity;

  add (self, "QNAME", gst_structure_get_string (q, "name"));
  if (is_quantity (self)) {
    add_fits_unit (self, "BUNIT", "unit");
  } else {
    add_fits_unit (self, "QUNIT", "unit");
    if (!self->several) {
      add_number (self, "QSCALE", get_number (q, "scale", 1));
      add_number (self, "QOFFSET", get_number (q, "offset", 0));
    }
  }
  for (guint axis = 0; axis < GST_IMAGING_MAX_AXES; axis++)
    add_fits_axis (self, axis);
  for (guint i = 0; i < G_N_ELEMENTS (origins); i++)
    add (self, origins[i].key, gst_structure_get_string (q, origins[i].member));
}

/* --- names as in the meta: PNG, OpenEXR, stacks of TIFF ------------------- */

static gboolean
add_field (GQuark field, const GValue *value, gpointer data)
{
  Cards *self = data;
  const gchar *name = g_quark_to_string (field);

  if (G_VALUE_HOLDS_STRING (value))
    add (self, strcmp (name, "name") == 0 ? "quantity" : name,
        g_value_get_string (value));
  else if (G_VALUE_HOLDS_DOUBLE (value) &&
           (!self->several || is_quantity (self) ||
               g_str_has_prefix (name, "axis-")))
    add_number (self, name, g_value_get_double (value));
  return TRUE;
}

/* --- which ---------------------------------------------------------------- */

static gboolean
is_format (const gchar *location, const gchar *name)
{
  return g_strcmp0 (gst_imaging_formats_get_name (location), name) == 0;
}

#define SCALES "Scale and offset of each frame are in:"
#define NO_SCALES "Scale and offset of the frames were not written."
#define AXES "The axes here are those of the first frame; those of each are in:"
#define NO_AXES "The axes here are those of the first frame."

/* The header of several frames is written before the others are known. */
static void
add_notes (Cards *self, const gchar *key)
{
  gboolean is_scaled =
      gst_structure_has_field (self->quantity, "scale") && !is_quantity (self);
  gboolean has_axes = gst_structure_has_field (self->quantity, "axis-0-name");

  if (!self->several)
    return;
  if (is_scaled)
    add (self, key, self->sidecar ? SCALES : NO_SCALES);
  if (has_axes)
    add (self, key, self->sidecar ? AXES : NO_AXES);
  if (is_scaled || has_axes)
    add (self, key, self->sidecar);
}

static GPtrArray *
make_cards (const gchar *location, const GstImagingNdArray *frame,
    const GstStructure *quantity, gchar *ome, gboolean several,
    const gchar *sidecar)
{
  Cards self = {.list = g_ptr_array_new_with_free_func (g_free),
      .frame = frame,
      .quantity = quantity,
      .several = several,
      .sidecar = sidecar};

  if (ome) {
    g_ptr_array_add (self.list, ome);
  } else if (is_format (location, "FITS")) {
    add_fits (&self);
    add_notes (&self, "COMMENT");
  } else {
    gst_structure_foreach (quantity, add_field, &self);
    add_notes (&self, "comment");
  }
  return self.list;
}

GPtrArray *
gst_imaging_description_make_cards (const gchar *location,
    const GstImagingNdArray *frame, const GstStructure *quantity,
    GstClockTime pts, gboolean several, const gchar *sidecar)
{
  gchar *ome = !several && is_format (location, "TIFF")
                   ? gst_imaging_ome_make (frame, 1, quantity, pts)
                   : NULL;

  return make_cards (location, frame, quantity, ome, several, sidecar);
}

/* --- from one format to another ------------------------------------------- */

static gboolean
append_member (GQuark field, const GValue *value, gpointer data)
{
  g_autofree gchar *number = NULL;

  if (G_VALUE_HOLDS_DOUBLE (value)) {
    number = g_malloc (G_ASCII_DTOSTR_BUF_SIZE);
    g_ascii_dtostr (
        number, G_ASCII_DTOSTR_BUF_SIZE, g_value_get_double (value));
  }
  g_ptr_array_add (data, g_strdup_printf ("%s=%s", g_quark_to_string (field),
                             number ? number : g_value_get_string (value)));
  return TRUE;
}

/* The .json of another file is none of this one: it is that of @to where
 * @has_sidecar, else there is none. A frame alone needs no note. Changes
 * @cards. */
static void
translate_notes (
    gchar **cards, const gchar *to, gboolean has_sidecar, gboolean is_frame)
{
  g_autofree gchar *name = g_path_get_basename (to);
  gboolean is_told = FALSE; /* that a name of a .json follows */
  gchar **out = cards;

  for (; cards && *cards; cards++) {
    const gchar *sign = strchr (*cards, '=');
    const gchar *text = sign ? sign + 1 : "";
    gboolean is_axes = strcmp (text, AXES) == 0;
    gboolean is_note = is_axes || strcmp (text, SCALES) == 0;
    gboolean is_name = is_told && g_str_has_suffix (text, ".json");
    g_autofree gchar *old = *cards;
    gint n_key = (gint) (text - old);

    is_told = is_note || (is_told && !is_name);
    if (is_frame && (is_note || is_name))
      continue;
    if (has_sidecar && is_name)
      *out++ = g_strdup_printf ("%.*s%s.json", n_key, old, name);
    else if (!has_sidecar && is_note)
      *out++ =
          g_strdup_printf ("%.*s%s", n_key, old, is_axes ? NO_AXES : NO_SCALES);
    else if (!is_name)
      *out++ = g_steal_pointer (&old);
  }
  if (out)
    *out = NULL;
}

static gboolean
is_one_of (const gchar *card, const gchar *const *keys, guint n)
{
  gsize size = strcspn (card, "=");

  for (; *keys; keys++) {
    g_autofree gchar *key =
        n > 0 ? g_strdup_printf ("%s%u", *keys, n) : g_strdup (*keys);

    if (strlen (key) == size && strncmp (card, key, size) == 0)
      return TRUE;
  }
  return FALSE;
}

/* Is it a card of FITS about what is told? */
static gboolean
is_told_by_fits (const gchar *card, const GstStructure *told, guint shift)
{
  static const gchar *const samples[] = {
      "BUNIT", "QNAME", "QUNIT", "QSCALE", "QOFFSET", NULL};
  static const gchar *const of_axis[] = {
      "CTYPE", "CUNIT", "CRPIX", "CRVAL", "CDELT", NULL};

  for (guint axis = 0; axis < GST_IMAGING_MAX_AXES; axis++) {
    g_autofree gchar *name = g_strdup_printf ("axis-%u-name", axis);

    if (gst_structure_has_field (told, name) &&
        is_one_of (card, of_axis, axis + 1 + shift))
      return TRUE;
  }
  return gst_structure_has_field (told, "unit") && is_one_of (card, samples, 0);
}

/* Other formats have the members of the meta. Returns: (transfer full) */
static gchar **
translate_from_fits (const GstImagingNdArray *array, const GstStructure *told)
{
  GPtrArray *all = g_ptr_array_new ();
  guint shift =
      gst_imaging_description_fits_shift (array->cards, array->n_dims);

  for (gchar **cards = array->cards; *cards; cards++) {
    gchar *card = NULL;

    for (guint i = 0; i < G_N_ELEMENTS (origins) && !card; i++)
      if (is_one_of (*cards, (const gchar *const[]){origins[i].key, NULL}, 0))
        card = g_strconcat (
            origins[i].member, *cards + strlen (origins[i].key), NULL);
    if (!is_told_by_fits (*cards, told, shift))
      g_ptr_array_add (all, card ? card : g_strdup (*cards));
  }
  g_ptr_array_add (all, NULL);
  return (gchar **) g_ptr_array_free (all, FALSE);
}

/* Returns: (transfer full): a member that tells what made the samples, as FITS
 * has it */
static gchar *
origin_to_fits (const gchar *card)
{
  for (guint i = 0; i < G_N_ELEMENTS (origins); i++)
    if (is_one_of (card, (const gchar *const[]){origins[i].member, NULL}, 0))
      return g_strconcat (
          origins[i].key, card + strlen (origins[i].member), NULL);
  return g_strdup (card);
}

/* A card that tells the quantity in the way of another format */
static gboolean
is_ours (const gchar *card, const GstStructure *quantity)
{
  const gchar *sign = strchr (card, '=');
  g_autofree gchar *key = g_strndup (card, sign ? (gsize) (sign - card) : 0);

  return strcmp (key, "quantity") == 0 ||
         gst_structure_has_field (quantity, key);
}

/* Lines of a description become cards, and our members those of FITS. */
static gchar **
translate_to_fits (gchar **cards, const GstStructure *told)
{
  const gchar *text = gst_imaging_description_find (cards, "ImageDescription");
  gboolean is_lines = text && *text != '<' && strchr (text, '=') &&
                      !g_str_has_prefix (text, "ImageJ=");
  gboolean drops_text =
      told && text && *text == '<' && gst_imaging_ome_is_ours (text);
  g_auto (GStrv) flat =
      is_lines ? gst_imaging_description_flatten (cards) : g_strdupv (cards);
  GPtrArray *all = g_ptr_array_new ();

  for (gchar **card = flat; card && *card; card++)
    if (!(told && is_ours (*card, told)) &&
        !(drops_text && g_str_has_prefix (*card, "ImageDescription=")))
      g_ptr_array_add (all, origin_to_fits (*card));
  g_ptr_array_add (all, NULL);
  return (gchar **) g_ptr_array_free (all, FALSE);
}

/* The first dimension of several may be frames. */
static GstImagingNdArray
frame_of (const GstImagingNdArray *array)
{
  GstImagingNdArray frame = *array;
  gboolean is_colour = !*array->axes && array->n_dims == 3 &&
                       array->dims[2] >= 2 && array->dims[2] <= 4;

  if (*array->axes == 'n' ||
      (!*array->axes && array->n_dims > 2 && !is_colour)) {
    frame.n_dims--;
    memmove (frame.dims, array->dims + 1, frame.n_dims * sizeof (*frame.dims));
  }
  return frame;
}

/* @told: of the first frame, of all where nothing @changes
 * @constant: (nullable): what all frames share
 * @is_frame: a frame of @array is saved, and not all of it */
static void
add_quantity (GstImagingNdArray *array, const GstStructure *told,
    const GstStructure *constant, gboolean changes, gboolean is_frame,
    const gchar *to)
{
  GstImagingNdArray frame = frame_of (array);
  guint n_dims = is_frame ? frame.n_dims : array->n_dims;
  gboolean has_cards = array->cards && *array->cards;
  g_autofree gchar *name = g_path_get_basename (to);
  g_autofree gchar *sidecar = g_strconcat (name, ".json", NULL);
  gboolean is_ome = gst_imaging_ome_is_promised (to) ||
                    (!has_cards && n_dims == 2 && is_format (to, "TIFF"));
  guint64 n_frames = frame.n_dims < n_dims ? array->dims[0] : 1;
  gchar *ome = is_ome ? gst_imaging_ome_make (&frame, n_frames,
                            changes ? constant : told, GST_CLOCK_TIME_NONE)
                      : NULL;
  GPtrArray *all = make_cards (to, &frame, told, ome, changes, sidecar);

  for (gchar **card = array->cards; card && *card; card++)
    if (!ome || !g_str_has_prefix (*card, "ImageDescription="))
      g_ptr_array_add (all, g_strdup (*card));
  g_ptr_array_add (all, NULL);
  g_ptr_array_set_free_func (all, NULL);
  g_strfreev (array->cards);
  array->cards = (gchar **) g_ptr_array_free (all, FALSE);
}

void
gst_imaging_description_add (
    GstImagingNdArray *array, const GstStructure *quantity, const gchar *to)
{
  add_quantity (array, quantity, quantity, FALSE, FALSE, to);
}

/* A picture has two axes. */
static void
drop_other_axes (GstStructure *told)
{
  for (guint axis = 2; axis < GST_IMAGING_MAX_AXES; axis++) {
    g_autofree gchar *field = g_strdup_printf ("axis-%u-name", axis);

    gst_imaging_description_drop (told, field);
  }
}

gchar **
gst_imaging_description_translate (
    GstImagingNdArray *array, const gchar *from, const gchar *to, gint64 frame)
{
  gboolean is_frame = frame >= 0;
  g_autoptr (GstImagingDescription) self =
      gst_imaging_description_new (array, from);
  gboolean changes = !is_frame && frame_of (array).n_dims < array->n_dims &&
                     gst_imaging_description_changes (self);
  GstStructure *told =
      gst_imaging_description_at (self, is_frame ? (guint64) frame : 0);
  GstStructure *constant = gst_imaging_description_get_constant (self);
  GstStructure *in_cards = gst_imaging_description_from_cards (array);
  gboolean is_fits = is_format (to, "FITS");
  gboolean has_fits = gst_imaging_description_find (array->cards, "BUNIT") ||
                      gst_imaging_description_find (array->cards, "QUNIT") ||
                      gst_imaging_description_find (array->cards, "CDELT1");
  const gchar *text =
      gst_imaging_description_find (array->cards, "ImageDescription");
  gboolean is_ome = gst_imaging_ome_is_promised (to) &&
                    !(text && *text == '<' && strstr (text, "<OME"));
  gboolean has_names =
      !has_fits && /* of axes without a step */
      (gst_imaging_description_find (array->cards, "CTYPE1") ||
          gst_imaging_description_find (array->cards, "CTYPE2"));
  gboolean is_from_fits = told && ((has_fits && !is_fits) || has_names);
  gboolean is_from_gdal =
      told && !is_format (to, "TIFF") &&
      gst_imaging_description_find (array->cards, "GDAL_METADATA");
  gboolean adds =
      told && (is_fits ? !has_fits : !in_cards || is_from_fits || is_from_gdal);
  g_autofree gchar *sidecar = g_strconcat (from, ".json", NULL);
  GPtrArray *members = g_ptr_array_new ();

  if (told && is_frame && frame_of (array).n_dims == 2)
    drop_other_axes (told);
  translate_notes (
      array->cards, to, g_file_test (sidecar, G_FILE_TEST_EXISTS), is_frame);
  if (is_from_fits) {
    gchar **cards = translate_from_fits (array, told);

    g_strfreev (array->cards);
    array->cards = cards;
  }
  if (is_fits) {
    gchar **cards = translate_to_fits (array->cards, adds ? told : NULL);

    g_strfreev (array->cards);
    array->cards = cards;
    has_fits = has_fits || gst_imaging_description_find (cards, "BUNIT") ||
               gst_imaging_description_find (cards, "CDELT1");
    adds = adds && !has_fits;
  }
  if (adds || (is_ome && told)) {
    add_quantity (array, told, constant, changes, is_frame, to);
  } else if (is_ome) {
    g_autoptr (GstStructure) nothing = gst_structure_new_empty ("quantity");

    add_quantity (array, nothing, nothing, FALSE, is_frame, to);
  }
  if (told)
    gst_structure_foreach (told, append_member, members);
  g_ptr_array_add (members, NULL);
  g_clear_pointer (&told, gst_structure_free);
  g_clear_pointer (&constant, gst_structure_free);
  g_clear_pointer (&in_cards, gst_structure_free);
  return (gchar **) g_ptr_array_free (members, FALSE);
}
