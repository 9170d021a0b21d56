/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanmirror.h"

/* Times, travels by the wavelengths and as they are told: a warning, and the
 * end. Fringes give the travel to 0.1 % of the scale of the wavelengths. 2 nm
 * wrong at either end of 100 nm make 4 %, wavelengths that are not on a line
 * 0.5 %. */
#define FAR_OFF 1.05
#define ABSURD 3.0

static gboolean
is_within (gdouble ratio, gdouble times)
{
  return ratio < times && ratio > 1 / times;
}

static ImkStatus
check (
    const ImkOctbscanMirrors *found, guint camera, gdouble travel, ImkError *e)
{
  if (!(travel > 0 && travel < G_MAXDOUBLE))
    return imk_error_set (e, IMK_ERROR_CONFIG,
        "The travel of the mirror is %g um; it needs a distance above 0.",
        travel);
  if (found->n < 2)
    return imk_error_set (e, IMK_ERROR_CONFIG,
        "The travel of the mirror needs two positions or more, and there is "
        "one.");
  if (found->n_k == 0)
    return imk_error_set (e, IMK_ERROR_CONFIG,
        "The travel of the mirror changes the wavenumbers, which "
        "mirror-fit=map keeps: use one of them.");
  if (found->positions[0].depth_um == 0)
    return imk_error_set (e, IMK_ERROR_CONFIG,
        "The travel of the mirror corrects depths in micrometres, and camera "
        "%u has no wavelengths: give them approximately.",
        camera);
  return IMK_OK;
}

/* @moved, @other: micrometres, with the sides as they are named, and with one
 * of them the other way round */
static ImkStatus
refuse (guint camera, gdouble travel, gdouble moved, gdouble other,
    gboolean on_one_side, ImkError *error)
{
  if (is_within (travel / other, ABSURD))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "By the wavelengths of camera %u the mirror has moved by %.4g um, and "
        "the travel is %g um. With the first and the last position on %s of "
        "zero delay it would be about %.3g um: name each mirror beyond zero "
        "delay, and no other one.",
        camera, moved, travel, on_one_side ? "different sides" : "one side",
        other);
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "By the wavelengths of camera %u the mirror has moved by %.4g um, and "
      "the travel is %g um. Is it in micrometres?",
      camera, moved, travel);
}

ImkStatus
gst_oct_bscan_scale_by_travel (ImkOctbscanMirrors *found,
    const ImkOctbscanFringe *fringes, guint camera, gdouble travel,
    gdouble *factor, gchar **doubt, ImkError *error)
{
  gdouble first, last, moved, other;
  gboolean on_one_side;

  IMK_TRY (check (found, camera, travel, error));
  first = found->positions[0].depth_um;
  last = found->positions[found->n - 1].depth_um;
  on_one_side = fringes[0].side == fringes[found->n - 1].side;
  moved = on_one_side ? ABS (last - first) : first + last;
  other = on_one_side ? first + last : ABS (last - first);
  *factor = travel / moved;
  if (!is_within (*factor, ABSURD))
    return refuse (camera, travel, moved, other, on_one_side, error);
  if (!is_within (*factor, FAR_OFF))
    *doubt = g_strdup_printf (
        "By the wavelengths of camera %u the mirror has moved by %.4g um, and "
        "not by %g um. Are the wavelengths or the travel wrong, or is a mirror "
        "on the other side of zero delay than named, which would be about %.3g um?",
        camera, moved, travel, other);
  for (guint i = 1; i < found->n_k; i++)
    found->k[i] /= *factor; /* the middle stays, the ends move */
  for (guint i = 0; i < found->n; i++)
    found->positions[i].depth_um *= *factor;
  return IMK_OK;
}
