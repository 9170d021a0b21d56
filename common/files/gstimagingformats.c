/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingformats.h"

#include <string.h>
#include <unistd.h>

#include "files/gstimagingfile.h"
#include "files/gstimagingmodule.h"
#include "formats/rawspectra.h"
#include "gstimaging-private.h"
#include "gstimagingndarray-private.h"

#define MODULE "libgstimaging-formats.so"
#define MAX_SIGNATURE 16

typedef struct {
  const gchar *name;       /* as in its table */
  const gchar *extensions; /* each between spaces */
  const gchar *package;    /* of Debian, with the library; NULL without */
  const GstImagingFormatTable *table; /* NULL: in the module */
  gboolean has_cards; /* a file has a place for units and other cards */
} Format;

enum {
  NPY,
  PNM,
  PBM,
  PFM,
  PNG,
  TIFF,
  FITS,
  EXR,
  JPEG,
  RAW,
  THORLABS,
  NPZ,
  OCTPROZ,
  UNP,
  N_FORMATS
};

static const Format formats[N_FORMATS] = {
    [NPY] = {"npy", " npy ", NULL, &gst_imaging_format_npy},
    [PNM] = {"PNM", " pgm ppm pnm pam ", NULL, &gst_imaging_format_pnm},
    [PBM] = {"PBM", " pbm ", NULL, &gst_imaging_format_pbm},
    [PFM] = {"PFM", " pfm ", NULL, &gst_imaging_format_pfm},
    [PNG] = {"PNG", " png ", "libpng-dev", .has_cards = TRUE},
    [TIFF] = {"TIFF", " tif tiff btf tf8 ", "libtiff-dev", .has_cards = TRUE},
    [FITS] = {"FITS", " fits fit fts ", "libcfitsio-dev", .has_cards = TRUE},
    [EXR] = {"OpenEXR", " exr ", "libopenexr-dev", .has_cards = TRUE},
    [JPEG] = {"JPEG", " jpg jpeg jpe ", "libjpeg-dev"},
    [RAW] = {"camera RAW",
        " dng nef nrw cr2 cr3 crw arw sr2 srf srw pef raf orf rw2 rwl raw 3fr "
        "iiq erf kdc dcr mef mos mrw x3f ",
        "libraw-dev"},
    [THORLABS] = {"Thorlabs OCT", " oct ", "libminizip-dev"},
    [NPZ] = {"npz", " npz ", "libminizip-dev"},
    [OCTPROZ] = {"OCTproZ", " ", NULL, &gst_imaging_format_octproz},
    [UNP] = {"UNP", " unp ", NULL, &gst_imaging_format_unp},
};

/* The first that fits counts. */
static const struct {
  guint format, offset, size;
  const gchar *bytes;
} signatures[] = {
    {NPY, 0, 6, "\223NUMPY"},
    {PNG, 0, 8, "\211PNG\r\n\032\n"},
    {RAW, 8, 3, "CR\2"},
    {TIFF, 0, 4, "II*\0"},
    {TIFF, 0, 4, "MM\0*"},
    {TIFF, 0, 4, "II+\0"},
    {TIFF, 0, 4, "MM\0+"},
    {FITS, 0, 9, "SIMPLE  ="},
    {EXR, 0, 4, "\166\057\061\001"},
    {JPEG, 0, 3, "\377\330\377"},
    {RAW, 0, 15, "FUJIFILMCCD-RAW"},
    {RAW, 4, 8, "ftypcrx "},
    {RAW, 6, 8, "HEAPCCDR"},
    {RAW, 0, 4, "IIU\0"},
    {RAW, 0, 4, "IIRO"},
    {RAW, 0, 4, "IIRS"},
    {RAW, 0, 4, "MMOR"},
    {RAW, 0, 4, "\0MRM"},
    {RAW, 0, 4, "FOVb"},
    {THORLABS, 0, 4, "PK\3\4"},
};

/* What many files of matrices are, and no format here. */
static const struct {
  const gchar *bytes, *name, *remedy;
} of_others[] = {
    {"MATLAB 5.0", "a MATLAB file of version 5 to 7",
        "Save the matrix as .npy: numpy.save (\"ONE.npy\", "
        "scipy.io.loadmat (FILE)[NAME])."},
    {"MATLAB 7.3", "a MATLAB file of version 7.3 (HDF5)",
        "Save the matrix as .npy: numpy.save (\"ONE.npy\", h5py.File (FILE)"
        "[NAME][()].T)."},
    {"\211HDF\r\n\032\n", "HDF5",
        "Save the array as .npy: numpy.save (\"ONE.npy\", h5py.File (FILE)"
        "[NAME][()])."},
};

/* --- the module ----------------------------------------------------------- */

/* It is looked for once, and stays. Returns: NULL with @why set */
static const GstImagingFormatModule *
get_module (const gchar **why)
{
  static gsize once;
  static const GstImagingFormatModule *module;
  static gchar *reason;

  if (g_once_init_enter (&once)) {
    const GstImagingFormatModule *found =
        gst_imaging_module_symbol (MODULE, GST_IMAGING_FORMAT_SYMBOL, &reason);

    if (found && found->abi == GST_IMAGING_FORMAT_ABI)
      module = found;
    else if (found)
      reason = g_strdup_printf ("%s has the version %u and this library %u",
          MODULE, found->abi, GST_IMAGING_FORMAT_ABI);
    g_once_init_leave (&once, 1);
  }
  *why = reason;
  return module;
}

/* @why: (out): set where there is no module */
static const GstImagingFormatTable *
get_table (const Format *format, const gchar **why)
{
  const GstImagingFormatModule *module;

  *why = NULL;
  if (format->table)
    return format->table;
  module = get_module (why);
  for (guint i = 0; module && module->tables[i]; i++)
    if (strcmp (module->tables[i]->name, format->name) == 0)
      return module->tables[i];
  return NULL;
}

static const GstImagingFormatTable *
find_table (
    const GstImagingFormatFile *file, const Format *format, GError **error)
{
  const gchar *why;
  const GstImagingFormatTable *table = get_table (format, &why);

  if (table)
    return table;
  if (!why)
    gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "is %s, and this build is without it. Install %s and build again, or "
        "use .npy.",
        format->name, format->package);
  else
    gst_imaging_format_fail (file, error,
        GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
        "is %s, and the module of formats is not there: %s. Install all parts "
        "of the same release, or use .npy.",
        format->name, why);
  return NULL;
}

/* --- which format --------------------------------------------------------- */

/* Returns: (transfer full): in lower case; "" without one */
static gchar *
get_extension (const gchar *location)
{
  g_autofree gchar *name = g_path_get_basename (location);
  const gchar *dot = strrchr (name, '.');

  return dot && dot > name ? g_ascii_strdown (dot + 1, -1) : g_strdup ("");
}

static gboolean
has_extension (const Format *format, const gchar *extension)
{
  g_autofree gchar *word = g_strdup_printf (" %s ", extension);

  return *extension && strstr (format->extensions, word);
}

/* "a.fits.gz" */
static gboolean
is_fits_gz (const gchar *location)
{
  g_autofree gchar *last = get_extension (location);
  gsize n = strlen (location) - strlen (last);
  g_autofree gchar *stem = g_strndup (location, n - (n > 0));
  g_autofree gchar *extension = get_extension (stem);

  return strcmp (last, "gz") == 0 && has_extension (&formats[FITS], extension);
}

/* Returns: N_FORMATS for none */
static guint
find_format (const gchar *head, gsize n, const gchar *location)
{
  g_autofree gchar *extension = get_extension (location);
  gboolean is_raw = has_extension (&formats[RAW], extension);

  /* samples without a header may begin with anything */
  if (has_extension (&formats[UNP], extension))
    return UNP;
  if (gst_imaging_octproz_is (location))
    return OCTPROZ;
  if (n >= 2 && memcmp (head, "PK", 2) == 0 &&
      has_extension (&formats[NPZ], extension))
    return NPZ;
  for (guint i = 0; i < G_N_ELEMENTS (signatures); i++)
    if (signatures[i].offset + signatures[i].size <= n &&
        memcmp (head + signatures[i].offset, signatures[i].bytes,
            signatures[i].size) == 0)
      return signatures[i].format == TIFF && is_raw ? RAW
                                                    : signatures[i].format;
  if (n >= 3 && head[0] == 'P' && strchr ("1234567Ff", head[1]) && head[1] &&
      g_ascii_isspace (head[2]))
    return strchr ("14", head[1]) ? PBM : strchr ("Ff", head[1]) ? PFM : PNM;
  if (is_raw)
    return RAW;
  if (n > 2 && memcmp (head, "\037\213", 2) == 0 && is_fits_gz (location))
    return FITS;
  /* its reader says what is wrong with it */
  return has_extension (&formats[NPY], extension) ? NPY : N_FORMATS;
}

/* Returns: (transfer full) (nullable): the file that describes raw samples of
 * ENVI or GDAL, where it is beside them */
static gchar *
find_description (const gchar *location)
{
  static const gchar *const extensions[] = {".vrt", ".hdr"};

  for (guint i = 0; i < G_N_ELEMENTS (extensions); i++) {
    gchar *path = g_strconcat (location, extensions[i], NULL);

    if (g_file_test (path, G_FILE_TEST_EXISTS))
      return path;
    g_free (path);
  }
  return NULL;
}

const GstImagingFormatTable *
gst_imaging_formats_find_reader (
    const GstImagingFormatFile *file, const gchar *location, GError **error)
{
  g_autofree gchar *found = NULL, *description = NULL;
  gchar head[MAX_SIGNATURE];
  gssize n = gst_imaging_format_read_at (file, head, sizeof (head), 0);
  g_autofree gchar *start = g_strndup (head, (gsize) MAX (n, 0));
  guint format = find_format (head, (gsize) MAX (n, 0), location);

  if (format < N_FORMATS)
    return find_table (file, &formats[format], error);
  if (n <= 0) {
    gst_imaging_format_fail (file, error,
        n < 0 ? GST_IMAGING_ND_ARRAY_ERROR_READ
              : GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        n < 0 ? "cannot be read." : "is empty.");
    return NULL;
  }
  if (n > 2 && memcmp (head, "\037\213", 2) == 0) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "is compressed by gzip as a whole, which is read of .fits.gz alone. "
        "Decompress it with gunzip, or use compression within the format.");
    return NULL;
  }
  description = find_description (location);
  if (description) {
    gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
        "has raw samples, which \"%s\" describes. slcsrc reads SAR images so; "
        "\"gdal_translate %s OUT.tif\" makes a file that is read here.",
        description, description);
    return NULL;
  }
  for (guint i = 0; i < G_N_ELEMENTS (of_others); i++)
    if (g_str_has_prefix (start, of_others[i].bytes)) {
      gst_imaging_format_fail (file, error,
          GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
          "is %s, which is not read. %s", of_others[i].name,
          of_others[i].remedy);
      return NULL;
    }
  found = gst_imaging_file_quote (head, MIN (n, 8));
  gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
      "starts with \"%s\", which no format does that is read here: .npy, PNG, "
      "TIFF, FITS, OpenEXR, PNM, PFM, JPEG, camera RAW, Thorlabs .oct, .npz. Save it "
      "as one of these.",
      found);
  return NULL;
}

gboolean
gst_imaging_formats_know (const gchar *location)
{
  g_autofree gchar *extension = get_extension (location);
  GstImagingFormatFile file = {.name = location};
  gchar head[MAX_SIGNATURE];
  gssize n;

  for (guint i = 0; i < N_FORMATS; i++)
    if (has_extension (&formats[i], extension))
      return TRUE;
  file.fd = gst_imaging_file_open (
      location, GST_IMAGING_FILE_MAX_STREAM, &file.size, NULL);
  if (file.fd < 0)
    return TRUE; /* who opens it says why it cannot */
  n = gst_imaging_format_read_at (&file, head, sizeof (head), 0);
  close (file.fd);
  return find_format (head, (gsize) MAX (n, 0), location) < N_FORMATS;
}

const GstImagingFormatTable *
gst_imaging_formats_find_writer (
    const GstImagingFormatFile *file, const gchar *location, GError **error)
{
  g_autofree gchar *extension = get_extension (location);
  const GstImagingFormatTable *table;

  if (!*extension)
    return &gst_imaging_format_npy;
  for (guint i = 0; i < N_FORMATS; i++)
    if (has_extension (&formats[i], extension)) {
      table = find_table (file, &formats[i], error);
      if (!table || table->create)
        return table;
    }
  gst_imaging_format_fail (file, error, GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
      "cannot be written: no format that is written here has the extension "
      ".%s. Use .npy, .png, .tif, .fits, .exr, .pgm, .ppm, .pam, .pbm or .pfm.",
      extension);
  return NULL;
}

const gchar *
gst_imaging_formats_get_name (const gchar *location)
{
  g_autofree gchar *extension = get_extension (location);

  for (guint i = 0; i < N_FORMATS; i++)
    if (has_extension (&formats[i], extension))
      return formats[i].name;
  return NULL;
}

gboolean
gst_imaging_formats_have_cards (const gchar *location)
{
  g_autofree gchar *extension = get_extension (location);

  for (guint i = 0; i < N_FORMATS; i++)
    if (has_extension (&formats[i], extension))
      return formats[i].has_cards;
  return FALSE;
}

gchar *
gst_imaging_formats_find_settings (const gchar *location)
{
  g_autofree gchar *extension = get_extension (location);
  g_autofree gchar *found = has_extension (&formats[UNP], extension)
                                ? gst_imaging_unp_find_settings (location)
                                : gst_imaging_octproz_find_settings (location);

  return found && g_file_test (found, G_FILE_TEST_IS_REGULAR)
             ? g_steal_pointer (&found)
             : NULL;
}

gboolean
gst_imaging_formats_finish (const GstImagingFormatTable *table, gpointer writer,
    GstImagingSaver *saver, GError **error)
{
  GError *why = NULL;

  return (!table->finish || table->finish (writer, error)) &&
         (gst_imaging_saver_finish (saver, &why) ||
             gst_imaging_nd_array_take_file_error (why, error));
}

void
gst_imaging_formats_close (const GstImagingFormatTable *table, gpointer writer,
    GstImagingSaver *saver, const GstImagingFormatFile *file)
{
  if (writer)
    table->discard (writer);
  gst_imaging_saver_free (saver);
  g_free ((gchar *) file->name);
}

GVariant *
gst_imaging_formats_parse_json (const gchar *text)
{
  const gchar *why;
  const GstImagingFormatModule *module = get_module (&why);

  return module && module->parse_json ? module->parse_json (text) : NULL;
}

void
gst_imaging_formats_describe (GString *json)
{
  g_string_append (json, ",\"formats\":[");
  for (guint i = 0; i < N_FORMATS; i++) {
    const gchar *why;
    const GstImagingFormatTable *table = get_table (&formats[i], &why);
    g_autofree gchar *extensions = g_strdup (formats[i].extensions);

    g_string_append_printf (json, "%s{\"read\":%s,\"write\":%s",
        i > 0 ? "," : "", table ? "true" : "false",
        table && table->create ? "true" : "false");
    gst_imaging_json_add_text (json, "name", formats[i].name);
    gst_imaging_json_add_text (json, "extensions", g_strstrip (extensions));
    if (!table)
      gst_imaging_json_add_text (json, "needs", why ? why : formats[i].package);
    g_string_append_c (json, '}');
  }
  g_string_append_c (json, ']');
}
