/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructjudgement.h"

#include <math.h>

#include "gstimagingjson.h"

#define NO_SATURATION \
  "It is not known whether spots were saturated, as the slopes have no flag of " \
  "it. Set fields=all on shcentroid for the calibration, and link its pad src."

/* (transfer full): "3, 17": those that are named, of more too */
static gchar *
name_unseen (const ImkShjudgement *self)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < MIN (self->n_unseen, IMK_SHJUDGE_MAX_NAMED); i++)
    g_string_append_printf (text, "%s%u", i ? ", " : "", self->unseen[i]);
  return g_string_free (text, FALSE);
}

void
gst_sh_reconstruct_judgement_describe (
    const ImkShjudgement *self, GstStructure *message)
{
  gchar text[GST_SH_RECONSTRUCT_JUDGEMENT_SIZE];
  g_autofree gchar *unseen = name_unseen (self);

  imk_shjudge_describe (self, text, sizeof (text));
  gst_structure_set (message, "judgement", G_TYPE_STRING, text,
      "commands-unseen", G_TYPE_UINT, self->n_unseen, "unseen", G_TYPE_STRING,
      unseen, "noisy-share", G_TYPE_DOUBLE, self->noisy, "push-pull",
      G_TYPE_DOUBLE, self->push_pull, "superposition", G_TYPE_DOUBLE,
      self->superposition, "drift", G_TYPE_DOUBLE, self->drift,
      "cells-saturated", G_TYPE_UINT, self->n_saturated, "missing-share",
      G_TYPE_DOUBLE, self->missing, NULL);
}

static void
append_number (GString *json, const gchar *key, gdouble value)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append_printf (json, ",\n    \"%s\": %s", key,
      isfinite (value) ? g_ascii_dtostr (digits, sizeof (digits), value)
                       : "null");
}

void
gst_sh_reconstruct_judgement_describe_no_saturation (GstStructure *message)
{
  gst_structure_remove_field (message, "cells-saturated");
  gst_structure_set (message, "saturation", G_TYPE_STRING, NO_SATURATION, NULL);
}

static void
append_saturation (
    GString *json, const ImkShjudgement *self, gboolean knows_saturation)
{
  if (knows_saturation)
    g_string_append_printf (
        json, ",\n    \"cells-saturated\": %u", self->n_saturated);
  else
    g_string_append (json, ",\n    \"cells-saturated\": null,\n"
                           "    \"saturation\": \"" NO_SATURATION "\"");
}

gchar *
gst_sh_reconstruct_judgement_to_json (
    const ImkShjudgement *self, gboolean knows_saturation)
{
  g_autoptr (GString) json =
      g_string_new ("\"calibration\": {\n    \"judgement\": ");
  g_autofree gchar *unseen = name_unseen (self);
  gchar text[GST_SH_RECONSTRUCT_JUDGEMENT_SIZE];

  imk_shjudge_describe (self, text, sizeof (text));
  gst_imaging_json_append_text (json, text);
  g_string_append_printf (json,
      ",\n    \"commands-unseen\": %u,\n    \"unseen\": [%s]", self->n_unseen,
      unseen);
  append_saturation (json, self, knows_saturation);
  append_number (json, "noise", self->noise);
  append_number (json, "noisy-share", self->noisy);
  append_number (json, "missing-share", self->missing);
  append_number (json, "push-pull", self->push_pull);
  append_number (json, "superposition", self->superposition);
  append_number (json, "drift", self->drift);
  g_string_append (json, "}");
  return g_strdup (json->str);
}
