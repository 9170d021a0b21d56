/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Meshes, for the pad `mesh` and for `mesh-location`. */
#include "gstnormalintegrate-private.h"

#include <math.h>
#include <string.h>

#include "files/gstimagingarrayfile.h"
#include "files/gstimagingfile.h"
#include "files/gstimagingfilenumber.h"

/* What tells our files beside a mesh from those of others. */
#define PNG_MARK "gst-imaging texture of a mesh"
#define PNG_CARD "Software=" PNG_MARK
#define MTL_MARK "# gst-imaging material of a mesh"

/* --- where bytes go ------------------------------------------------------- */

typedef struct {
  guint8 *bytes;
  gsize n, room;
} Memory;

static ImkStatus
write_memory (gpointer data, gconstpointer bytes, gsize size, ImkError *error)
{
  Memory *m = data;

  if (m->n + size > m->room) {
    gsize room = 2 * m->room + size;
    guint8 *more = g_try_realloc (m->bytes, room);

    if (!more)
      return IMK_NO_MEMORY (error,
          "for a mesh of %" G_GSIZE_FORMAT " bytes. Make mesh-step larger.",
          room);
    m->bytes = more;
    m->room = room;
  }
  memcpy (m->bytes + m->n, bytes, size);
  m->n += size;
  return IMK_OK;
}

/* Frees @why. */
static ImkStatus
file_error (GError *why, ImkError *error)
{
  imk_error_set (error, IMK_ERROR_FILE, "mesh-location: %s", why->message);
  g_error_free (why);
  return IMK_ERROR_FILE;
}

static ImkStatus
write_file (gpointer data, gconstpointer bytes, gsize size, ImkError *error)
{
  GError *why = NULL;

  return gst_imaging_saver_write (data, bytes, size, &why)
             ? IMK_OK
             : file_error (why, error);
}

/* --- the albedo ----------------------------------------------------------- */

/* Full scale is 65535; NaN is 0. */
static guint
level_at (const ImkImage *image, guint x, guint y, guint channel)
{
  const guint8 *row = (const guint8 *) image->data + y * image->stride;
  gsize at = (gsize) x * image->channels + channel;
  gfloat v;

  if (image->type == IMK_TYPE_U8)
    return 257u * row[at];
  if (image->type == IMK_TYPE_U16)
    return ((const guint16 *) row)[at];
  v = ((const gfloat *) row)[at];
  return v >= 1 ? 65535 : v > 0 ? (guint) (65535 * v + 0.5f) : 0;
}

/* As screens show linear samples (IEC 61966-2-1). */
static guint8 *
screen_levels (void)
{
  guint8 *levels = g_malloc (65536);

  for (guint i = 0; i < 65536; i++) {
    gdouble v = i / 65535.0;

    v = v <= 0.0031308 ? 12.92 * v : 1.055 * pow (v, 1 / 2.4) - 0.055;
    levels[i] = (guint8) (255 * v + 0.5);
  }
  return levels;
}

/* Returns: (transfer full) (nullable): a picture of u8, 3 channels */
static guint8 *
colours_of (const GstImagingPicture *p, const ImkImage *image, ImkError *error)
{
  guint8 *colours = g_try_malloc ((gsize) 3 * p->width * p->height);
  guint8 *levels = screen_levels (), *to = colours;

  if (!colours)
    IMK_NO_MEMORY (
        error, "for an albedo of %u x %u pixels.", p->width, p->height);
  for (guint y = 0; colours && y < p->height; y++)
    for (guint x = 0; x < p->width; x++)
      for (guint i = 0; i < 3; i++)
        *to++ =
            levels[level_at (image, x, y, p->channels > 2 ? p->colours[i] : 0)];
  g_free (levels);
  return colours;
}

static guint8 *
make_colours (GstNormalIntegrateWork *w, ImkError *error)
{
  const GstImagingPicture *p = &w->albedo_picture;
  GstImagingFrame frame;
  guint8 *colours;
  ImkImage image;

  if (p->width != w->config.width || p->height != w->config.height) {
    imk_error_set (error, IMK_ERROR_IMAGE,
        "The albedo has %u x %u pixels and the normals %u x %u; they have to "
        "be of one size.",
        p->width, p->height, w->config.width, w->config.height);
    return NULL;
  }
  if (gst_imaging_frame_map (w->albedo, &p->carrier, GST_MAP_READ,
          GST_IMAGING_REACH_HOST, NULL, NULL, NULL, &frame, error) != IMK_OK)
    return NULL;
  image = gst_imaging_picture_image (p, &frame.planes[0]);
  colours = colours_of (p, &image, error);
  gst_imaging_frame_unmap (&frame, FALSE, NULL);
  return colours;
}

/* --- one mesh ------------------------------------------------------------- */

/* The picture of the colours. */
static GstImagingNdArray
array_of (const ImkMesh *mesh)
{
  return (GstImagingNdArray){.type = GST_IMAGING_ND_ARRAY_TYPE_U8,
      .n_dims = 3,
      .dims = {mesh->config->height, mesh->config->width, 3},
      .axes = "yxc",
      .data = mesh->colour.data};
}

static ImkStatus
write_mesh (const ImkMesh *mesh, ImkMeshFormat format, ImkMeshWrite write,
    gpointer data, ImkError *error)
{
  g_autoptr (GBytes) png = NULL;
  ImkMesh whole = *mesh;
  GError *why = NULL;

  if (format == IMK_MESH_GLB && mesh->colour.data) {
    const GstImagingNdArray array = array_of (mesh);

    png = gst_imaging_array_encode ("albedo.png", &array, &why);
    if (!png)
      return file_error (why, error);
    whole.png = g_bytes_get_data (png, &whole.png_size);
  }
  return imk_normalintegrate_mesh_write (&whole, format, write, data, error);
}

static ImkStatus
make_buffer (GstNormalIntegrateWork *w, const ImkMesh *mesh, ImkError *error)
{
  GstStructure *s =
      gst_caps_get_structure (gst_imaging_src_pad_caps (w->outputs[MESH]), 0);
  ImkMeshFormat format = gst_structure_has_name (s, "model/obj") ? IMK_MESH_OBJ
                         : gst_structure_has_name (s, "model/gltf-binary")
                             ? IMK_MESH_GLB
                             : IMK_MESH_PLY;
  Memory m = {NULL, 0, 0};
  ImkStatus status = write_mesh (mesh, format, write_memory, &m, error);

  if (status == IMK_OK)
    w->mesh = gst_buffer_new_wrapped_full (
        0, m.bytes, m.room, 0, m.n, m.bytes, g_free);
  else
    g_free (m.bytes);
  return status;
}

/* Returns: (transfer full): @location with another extension */
static gchar *
beside (const gchar *location, const gchar *extension)
{
  return g_strdup_printf ("%.*s.%s",
      (gint) (strrchr (location, '.') - location), location, extension);
}

/* Files that others have put there stay: colours of vertices do. */
static gboolean
may_write_texture (GstNormalIntegrate *element, const gchar *png,
    const gchar *mtl, gboolean is_obj)
{
  g_autoptr (GError) why = NULL;

  if (gst_imaging_file_check_beside (png, PNG_MARK, &why) &&
      (!is_obj || gst_imaging_file_check_beside (mtl, MTL_MARK, &why)))
    return TRUE;
  if (!element->has_warned_beside)
    GST_ELEMENT_WARNING (element, RESOURCE, WRITE,
        ("mesh-location: %s The mesh has colours at its vertices and no "
         "picture. Take another mesh-location.",
            why->message),
        (NULL));
  element->has_warned_beside = TRUE;
  return FALSE;
}

/* The picture of a .ply or .obj, and the material of the latter.
 * @has_png: (out): FALSE where PNG cannot be written; colours of vertices do */
static ImkStatus
write_texture (GstNormalIntegrate *element, const gchar *location,
    const ImkMesh *mesh, gboolean is_obj, gboolean *has_png, ImkError *error)
{
  static gchar *cards[] = {(gchar *) PNG_CARD, NULL};
  g_autofree gchar *png = beside (location, "png");
  g_autofree gchar *mtl = beside (location, "mtl");
  g_autofree gchar *name = g_path_get_basename (png);
  g_autofree gchar *text = g_strdup_printf (
      MTL_MARK "\nnewmtl surface\nKd 1 1 1\nKs 0 0 0\nmap_Kd %s\n", name);
  GstImagingNdArray array = array_of (mesh);
  GError *why = NULL;

  if (!may_write_texture (element, png, mtl, is_obj))
    return IMK_OK;
  array.cards = cards;
  *has_png = gst_imaging_nd_array_save (&array, png, &why);
  if (*has_png && is_obj)
    gst_imaging_file_save (mtl, text, strlen (text), &why);
  if (!why)
    return IMK_OK;
  if (!g_error_matches (why, GST_IMAGING_ND_ARRAY_ERROR,
          GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED))
    return file_error (why, error);
  g_error_free (why);
  return IMK_OK;
}

/* The mesh last: when it is there, all of it is. */
static ImkStatus
save (GstNormalIntegrate *element, const gchar *location, ImkMeshFormat format,
    const ImkMesh *mesh, ImkError *error)
{
  g_autofree gchar *png = beside (location, "png");
  g_autofree gchar *mtl = beside (location, "mtl");
  g_autofree gchar *texture = g_path_get_basename (png);
  g_autofree gchar *material = g_path_get_basename (mtl);
  g_autoptr (GstImagingSaver) saver = NULL;
  ImkMesh whole = *mesh;
  ImkStatus status = IMK_OK;
  gboolean has_png = FALSE;
  GError *why = NULL;

  if (mesh->colour.data && format != IMK_MESH_GLB)
    status = write_texture (
        element, location, mesh, format == IMK_MESH_OBJ, &has_png, error);
  whole.texture = has_png ? texture : NULL;
  whole.material = has_png ? material : NULL;
  if (status == IMK_OK && !(saver = gst_imaging_saver_new (location, &why)))
    return file_error (why, error);
  if (status == IMK_OK)
    status = write_mesh (&whole, format, write_file, saver, error);
  if (status == IMK_OK && !gst_imaging_saver_finish (saver, &why))
    return file_error (why, error);
  return status;
}

static ImkStatus
make_both (GstNormalIntegrateWork *w, const ImkMesh *mesh, ImkError *error)
{
  ImkStatus status = IMK_OK;

  if (w->flows[MESH] == GST_FLOW_OK)
    status = make_buffer (w, mesh, error);
  if (status == IMK_OK && w->mesh_file) {
    const gchar *pattern = w->mesh_file->location;
    g_autofree gchar *location = NULL;
    GstImagingFileNumber number;
    ImkMeshFormat format;

    status = gst_normal_integrate_mesh_format (pattern, &format, error);
    gst_imaging_file_number_find (&number, pattern, NULL);
    location = number.size > 0 ? gst_imaging_file_number_put (
                                     &number, pattern, w->element->n_maps)
                               : g_strdup (pattern);
    if (status == IMK_OK)
      status = save (w->element, location, format, mesh, error);
  }
  return status;
}

/* @mesh: with colours */
static ImkStatus
make_mapped (GstNormalIntegrateWork *w, GstBuffer *normals, ImkMesh *mesh,
    ImkError *error)
{
  const GstImagingPicture *p = &w->element->picture;
  GstImagingFrame heights, frame;
  ImkStatus status;

  IMK_TRY (gst_imaging_frame_map (w->heights, &w->heights_info, GST_MAP_READ,
      GST_IMAGING_REACH_HOST, NULL, NULL, NULL, &heights, error));
  mesh->height = heights.planes[0];
  mesh->height.type = IMK_TYPE_F32;
  mesh->height.width = p->width;
  status = gst_imaging_frame_map (normals, &p->carrier, GST_MAP_READ,
      GST_IMAGING_REACH_HOST, NULL, NULL, NULL, &frame, error);
  if (status == IMK_OK) {
    mesh->normal = gst_imaging_picture_image (p, &frame.planes[0]);
    status = make_both (w, mesh, error);
    status = gst_imaging_frame_end (&frame, status == IMK_OK, status, error);
  }
  return gst_imaging_frame_end (&heights, status == IMK_OK, status, error);
}

ImkStatus
gst_normal_integrate_make_mesh (
    GstNormalIntegrateWork *w, GstBuffer *normals, ImkError *error)
{
  gboolean is_corrected = w->config.flatten || w->config.n_points > 0;
  ImkMesh mesh = {.config = &w->config,
      .step = w->mesh_step,
      .removed = is_corrected ? w->summary.removed : NULL};
  g_autofree guint8 *colours = NULL;

  if (w->flows[MESH] != GST_FLOW_OK && !w->mesh_file)
    return IMK_OK;
  if (w->albedo) {
    colours = make_colours (w, error);
    if (!colours)
      return error->code;
    mesh.colour = (ImkImage){.data = colours,
        .type = IMK_TYPE_U8,
        .width = w->config.width,
        .height = w->config.height,
        .channels = 3,
        .stride = (gsize) 3 * w->config.width};
  }
  return make_mapped (w, normals, &mesh, error);
}
