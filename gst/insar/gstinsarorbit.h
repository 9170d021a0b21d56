/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where an image was taken from, as processors write it: a PRM file of GMTSAR
 * and the LED file that it names, or the XML of a frame or burst of ISCE2. */
#pragma once

#include <glib.h>

#include "imk/insarform-orbit.h"

/**
 * GstInsarOrbit:
 * @orbit: its times count from the midnight that begins the year of the states
 *   (PRM), or from the first one in the file (ISCE)
 * @states: those of @orbit
 * @ellipsoid: of the earth: that of the PRM file, or WGS84
 * @sphere: radius of the sphere that heights of GMTSAR's topo_ra.grd are above
 *   (earth_radius); 0 where there is none */
typedef struct {
  ImkInsarformOrbit orbit;
  GArray *states; /* ImkInsarformState */
  ImkInsarformSurface ellipsoid;
  gdouble sphere;
} GstInsarOrbit;

/* Returns: (transfer full) (nullable): %NULL with @error set, a sentence that
 * names the file */
GstInsarOrbit *gst_insar_orbit_load (const gchar *location, ImkError *error);

/* @self may be NULL. */
void gst_insar_orbit_free (GstInsarOrbit *self);

/* In gstinsarorbitxml.c: what a file of ISCE2 says. */
ImkStatus gst_insar_orbit_parse_isce (GstInsarOrbit *self, const gchar *text,
    gsize size, const gchar *name, ImkError *error);
