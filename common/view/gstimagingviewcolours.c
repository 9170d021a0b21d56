/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewcolours.h"

#include "gstimaging-private.h"

/* Knots of each map at equal distances, 0xRRGGBB, from low to high. */
#define MAX_KNOTS 52

static const struct {
  const gchar *name;
  guint n;
  guint32 knots[MAX_KNOTS];
} maps[GST_IMAGING_VIEW_N_COLOURS] = {
    {"grey", 2, {0x000000, 0xffffff}},
    /* each fifth colour of matplotlib's, which are in the public domain (CC0):
     * those between are off by 1 of 255 at most */
    {"viridis", 52,
        {0x440154, 0x46085c, 0x471063, 0x481769, 0x481d6f, 0x482475, 0x472a7a,
            0x46307e, 0x453781, 0x433d84, 0x414287, 0x3f4889, 0x3d4e8a,
            0x3a538b, 0x38598c, 0x355e8d, 0x33638d, 0x31688e, 0x2e6d8e,
            0x2c718e, 0x2a768e, 0x297b8e, 0x27808e, 0x25848e, 0x23898e,
            0x218e8d, 0x20928c, 0x1f978b, 0x1e9c89, 0x1fa188, 0x21a585,
            0x24aa83, 0x28ae80, 0x2eb37c, 0x35b779, 0x3dbc74, 0x46c06f,
            0x50c46a, 0x5ac864, 0x65cb5e, 0x70cf57, 0x7cd250, 0x89d548,
            0x95d840, 0xa2da37, 0xb0dd2f, 0xbddf26, 0xcae11f, 0xd8e219,
            0xe5e419, 0xf1e51d, 0xfde725}},
    {"inferno", 52,
        {0x000004, 0x02020c, 0x050417, 0x0a0722, 0x10092d, 0x160b39, 0x1e0c45,
            0x260c51, 0x2f0a5b, 0x380962, 0x400a67, 0x490b6a, 0x510e6c,
            0x59106e, 0x61136e, 0x69166e, 0x71196e, 0x781c6d, 0x801f6c,
            0x88226a, 0x902568, 0x982766, 0xa02a63, 0xa82e5f, 0xb0315b,
            0xb73557, 0xbf3952, 0xc63d4d, 0xcc4248, 0xd34743, 0xd94d3d,
            0xdf5337, 0xe45a31, 0xe9612b, 0xed6925, 0xf1711f, 0xf47918,
            0xf78212, 0xf98b0b, 0xfa9407, 0xfb9d07, 0xfca60c, 0xfcb014,
            0xfbba1f, 0xfac42a, 0xf8cd37, 0xf6d746, 0xf4e156, 0xf2ea69,
            0xf2f27d, 0xf5f992, 0xfcffa4}},
    {"turbo", 15,
        {0x30123b, 0x4145ab, 0x4675ed, 0x39a2fc, 0x1bcfd4, 0x24eca6, 0x61fc6c,
            0xa4fc3b, 0xd1e834, 0xf3c63a, 0xfe9b2d, 0xf36315, 0xd93806,
            0xb11901, 0x7a0402}},
    /* cyclic: the ends are one. "twilight" of matplotlib (CC0), within 3 of
     * 255: equal steps of an angle look alike, which those of a colour wheel do
     * not */
    {"phase", 52,
        {0xe2d9e2, 0xdcd9df, 0xd2d5db, 0xc5cfd5, 0xb6c8cf, 0xa7c0cb, 0x99b8c8,
            0x8cafc5, 0x80a6c3, 0x779cc2, 0x6f92c0, 0x6888be, 0x647ebc,
            0x6173ba, 0x6067b6, 0x5f5cb2, 0x5e50ac, 0x5e44a5, 0x5c389c,
            0x5a2c91, 0x562183, 0x501973, 0x481462, 0x3f1252, 0x381144,
            0x32123b, 0x321237, 0x39113a, 0x43123e, 0x4e1444, 0x5b1749,
            0x681a4d, 0x751e4f, 0x822450, 0x8d2b50, 0x973450, 0xa13e50,
            0xa94850, 0xb05352, 0xb75f54, 0xbc6a59, 0xc1765f, 0xc48367,
            0xc78f72, 0xca9b7f, 0xcda78e, 0xd0b39e, 0xd4beaf, 0xd9c8c0,
            0xddd0cf, 0xe0d7db, 0xe2d9e2}},
    {"blue-red", 5, {0x053061, 0x4393c3, 0xf7f7f7, 0xd6604d, 0x67001f}},
};

/* Of a NaN: a colour that the map does not have */
guint32
gst_imaging_view_colours_nan (guint colours)
{
  return colours == 0 ? 0x604080 : 0x808080;
}

const gchar *
gst_imaging_view_colours_name (guint colours)
{
  return colours < G_N_ELEMENTS (maps) ? maps[colours].name : NULL;
}

gboolean
gst_imaging_view_colours_is_cyclic (guint colours)
{
  return maps[colours].knots[0] == maps[colours].knots[maps[colours].n - 1];
}

void
gst_imaging_view_colours_fill (guint colours, guint8 table[256][3])
{
  for (guint i = 0; i < 256; i++) {
    const guint at = i * (maps[colours].n - 1);
    const guint knot = MIN (at / 255, maps[colours].n - 2);
    const guint fraction = at - knot * 255;

    for (guint c = 0; c < 3; c++) {
      const guint low = maps[colours].knots[knot] >> (16 - 8 * c) & 255;
      const guint high = maps[colours].knots[knot + 1] >> (16 - 8 * c) & 255;

      table[i][c] =
          (guint8) ((low * (255 - fraction) + high * fraction + 127) / 255);
    }
  }
}

void
gst_imaging_view_colours_describe (GString *json, guint colours)
{
  guint8 table[256][3];
  g_autofree gchar *text = NULL;

  gst_imaging_view_colours_fill (colours, table);
  text = g_base64_encode (table[0], sizeof (table));
  gst_imaging_json_add_text (json, "table", text);
}
