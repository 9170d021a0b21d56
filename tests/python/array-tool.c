/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reader and the writer of arrays as a program:
 *   array-tool IN OUT   converts a file; OUT's extension selects the format
 *   array-tool IN       prints type and shape, the axes, and a card a line
 * What fails is a sentence on stderr and exit status 1. */
#include "gstimagingarrayfile.h"

#include <stdio.h>

int
main (int argc, char **argv)
{
  g_autoptr (GstImagingNdArray) array = NULL;
  g_autoptr (GError) error = NULL;

  if (argc < 2 || argc > 3)
    return 2;
  array = gst_imaging_nd_array_load (argv[1], &error);
  if (array && argc == 3)
    gst_imaging_nd_array_save (array, argv[2], &error);
  if (error) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  if (argc == 2) {
    g_autofree gchar *text = gst_imaging_nd_array_describe (array);

    printf ("%s\n%s\norientation %u\n", text, array->axes, array->orientation);
    for (gchar **card = array->cards; card && *card; card++)
      printf ("%s\n", *card);
  }
  return 0;
}
