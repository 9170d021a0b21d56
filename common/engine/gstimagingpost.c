/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingpost.h"

static void
post (gpointer element, GQuark domain, gint code, const gchar *message)
{
  gst_element_message_full (GST_ELEMENT (element), GST_MESSAGE_ERROR, domain,
      code, g_strdup (message), NULL, __FILE__, GST_FUNCTION, __LINE__);
}

void
gst_imaging_post_error (gpointer element, const GError *error)
{
  post (element, error->domain, error->code, error->message);
}

void
gst_imaging_post_status (
    gpointer element, ImkStatus status, const ImkError *error)
{
  GQuark domain = GST_RESOURCE_ERROR;
  gint code;

  switch (status) {
  case IMK_ERROR_CONFIG:
    domain = GST_LIBRARY_ERROR;
    code = GST_LIBRARY_ERROR_SETTINGS;
    break;
  case IMK_ERROR_IMAGE:
    domain = GST_STREAM_ERROR;
    code = GST_STREAM_ERROR_FORMAT;
    break;
  case IMK_ERROR_MEMORY:
    code = GST_RESOURCE_ERROR_NO_SPACE_LEFT;
    break;
  case IMK_ERROR_FILE:
    code = GST_RESOURCE_ERROR_OPEN_READ;
    break;
  case IMK_ERROR_UNAVAILABLE:
    code = GST_RESOURCE_ERROR_NOT_FOUND;
    break;
  default:
    domain = GST_LIBRARY_ERROR;
    code = GST_LIBRARY_ERROR_FAILED;
    break;
  }
  post (element, domain, code, error->message);
}
