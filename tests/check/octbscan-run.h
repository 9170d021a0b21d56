/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run of octbscan with any of its pads, and what its kernel gives for them.
 */
#pragma once

#include "check-common.h"

#include "imk/octbscan.h"

G_BEGIN_DECLS

enum { WIDTH = 60, HEIGHT = 11, DEPTHS = 30, MAX_BSCANS = 12, VOLUME = 2 };
enum { SRC, LINEAR, COMPLEX, ENFACE, N_PADS };

extern const gchar *const pad_names[];

/* Each test runs with either backend, __i__ says which. */
extern gboolean on_cuda;

/* --- what is expected ----------------------------------------------------- */

/* What a stream of B-scans gives; of those without images NULL. */
typedef struct {
  guint n, n_ascans, n_images, n_volumes;
  guint8 *db[MAX_BSCANS], *linear[MAX_BSCANS];
  gfloat *complex[MAX_BSCANS];
  guint8 *enface[MAX_BSCANS];
  gfloat *floats[N_PADS][MAX_BSCANS]; /* images before the range */
  gfloat shifts[MAX_BSCANS];          /* of each B-scan, by tracking */
} Expected;

/* B-scan @i of a stream, of u16. */
GstBuffer *bscan_new (guint i);

/* That of the element, and the element's properties. */
ImkOctbscanConfig base_config (void);

#define CAPS "video/x-raw,format=GRAY16_LE,width=60,height=11,framerate=100/1"
#define ELEMENT "octbscan taper-cut=7 upsample=128 range-max=90 "

/* In host memory, rows close to each other. */
ImkImage image_of (gpointer data, guint width, guint height, ImkType type);

/* What @n B-scans give. @every: B-scans a mean, the last of which may have
 * fewer */
Expected expect (ImkOctbscanConfig *c, guint n, guint every);
void expected_free (Expected *e);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Expected, expected_free)

/* --- what comes ----------------------------------------------------------- */

/* An element with some of its pads linked. */
typedef struct {
  GstElement *element;
  GstHarness *pads[N_PADS]; /* the first has the sink pad as well */
  gboolean has_src;
  gboolean has_floats; /* images are tensors */
  GstBus *bus;
} Run;

/* @pads: bits, 1 << SRC ... */
Run run_new (const gchar *launch, guint pads);

/* The same, with peers that take tensors. */
Run run_new_floats (const gchar *launch, guint pads);
void run_free (Run *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_free)

/* B-scans @first .. @end - 1. */
void push_all (Run *r, guint first, guint end);

/* Image @k of the pad @what. */
void check_levels (GstBuffer *buffer, const guint8 *expected, guint width,
    guint height, const gchar *what, guint k);

/* Is its time that of B-scans @from .. @from + @n - 1? */
void check_time (GstBuffer *buffer, guint from, guint n);

/* All that has come, and nothing more. */
void check_run (Run *r, const Expected *e, guint every);

G_END_DECLS
