/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

/* The channels of the results. Sums run over the samples of a cell where both
 * images have data, neither 0 nor not finite; n is how many there are. */
typedef enum ImkInsarformChannel {
  IMK_INSARFORM_RE, /* interferogram: sum s1 conj (s2) / n, 0 for n = 0 */
  IMK_INSARFORM_IM,
  IMK_INSARFORM_AMPLITUDE, /* (sum |s1|^2 sum |s2|^2)^(1/4) / sqrt (n) */
  IMK_INSARFORM_COHERENCE, /* |sum s1 conj (s2)| / sqrt (sum |s1|^2 sum |s2|^2)
                            * over the cells of the window, which ends where the
                            * image does; 0..1, 0 for n = 0 */
  IMK_INSARFORM_REMOVED,   /* the phase that was removed, in the middle of the
                            * cell: rad, within half a turn of 0; 0 if none was */
  IMK_INSARFORM_N_CHANNELS,
} ImkInsarformChannel;

#define IMK_INSARFORM_MAX_LOOKS 256
#define IMK_INSARFORM_MAX_WINDOW 63
#define IMK_INSARFORM_MAX_TRANSFORM 128

/**
 * ImkInsarformConfig: (how an interferogram is formed)
 * @size: set by imk_insarform_config_init, see imk/api.h
 * @width, @height: of both images, columns and lines
 * @type: of both: CI16 or CF32
 * @looks_x, @looks_y: samples of a cell, 1 to IMK_INSARFORM_MAX_LOOKS, at most
 *   as many as there are. There are width / looks_x by height / looks_y cells;
 *   samples that fill none are left out
 * @window_x, @window_y: cells of the window of the coherence, odd, 1 to
 *   IMK_INSARFORM_MAX_WINDOW; the cell is its middle
 * @n_threads: CPU threads, 0 for one a processor
 * @fringe_window: 0, or the samples of the window in which fringe rates are
 *   measured: 16, 32, 64 or IMK_INSARFORM_MAX_TRANSFORM, at most the size of
 *   the images. See insarform-fringes.h
 * @restore: the phase that was removed from the samples is put back into the
 *   cells: that of the middle of the cell
 * @unbias: coherences are those of sqrt (max (0, (n g^2 - 1) / (n - 1))) for a
 *   coherence g of n samples, which are taken for independent
 * @range_band, @azimuth_band: 0, or the width of the spectra of the images
 * along x and y, up to 1 cycle a sample: what only one of the images sees is
 * left out. See insarform-band.h
 * @filter_alpha: 0, or the exponent of the filter of phases, up to 1. See
 *   insarform-filter.h
 * @filter_window: cells of its window: 8, 16, 32, 64 or
 *   IMK_INSARFORM_MAX_TRANSFORM */
typedef struct ImkInsarformConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  uint32_t looks_x, looks_y;
  uint32_t window_x, window_y;
  uint32_t n_threads;
  uint32_t fringe_window;
  bool restore, unbias;
  double filter_alpha;
  uint32_t filter_window;
  double range_band, azimuth_band;
} ImkInsarformConfig;

typedef struct ImkInsarform ImkInsarform;

/* 1 x 1 looks, window 5 x 5, CI16; no phase is removed and none filtered, the
 * window of a filter is 32. */
IMK_API void imk_insarform_config_init_sized (
    ImkInsarformConfig *config, size_t size);
static inline void
imk_insarform_config_init (ImkInsarformConfig *config)
{
  imk_insarform_config_init_sized (config, sizeof (*config));
}

/**
 * imk_insarform_new: (an object for one pair of images in one geometry)
 * @self: (out): free with imk_insarform_free
 *
 * Of the images, the sums of window_y rows of cells and of 32 lines are kept;
 * with a fringe_window 2 of it of lines, with a band 64 lines, with a filter
 * filter_window rows of cells.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE; @self
 *   untouched */
IMK_API ImkStatus imk_insarform_new (ImkBackend backend,
    const ImkInsarformConfig *config, ImkInsarform **self, ImkError *error);

/* Back to the first line. */
IMK_API void imk_insarform_rewind (ImkInsarform *self);

/* Returns: how many lines can be pushed now; 0 when rows have to be made first,
 *   or when all that cells are made of are there */
IMK_API uint32_t imk_insarform_room (const ImkInsarform *self);

/* Returns: lines that have been pushed */
IMK_API uint32_t imk_insarform_pushed (const ImkInsarform *self);

/**
 * imk_insarform_push: (the next lines of both images)
 * @reference, @secondary: of the width and the type of the config, 1 channel,
 *   equally many, at most imk_insarform_room lines
 * @phase: (nullable): to be removed: f32, 1 channel, of the size of the lines:
 *   rad. The product s1 conj (s2) of each sample is multiplied by exp (-i
 *   @phase) before any sum. Not finite: the sample counts as one without data.
 *   NULL with a fringe_window, which measures that phase
 * Returns: IMK_ERROR_IMAGE, nothing was pushed */
IMK_API ImkStatus imk_insarform_push (ImkInsarform *self,
    const ImkImage *reference, const ImkImage *secondary, const ImkImage *phase,
    ImkError *error);

/* Returns: rows of cells that have been made */
IMK_API uint32_t imk_insarform_row (const ImkInsarform *self);

/* Returns: whether the next row can be made */
IMK_API bool imk_insarform_is_ready (const ImkInsarform *self);

/**
 * imk_insarform_process: (makes the next row of cells)
 * @out: f32, IMK_INSARFORM_N_CHANNELS channels, width / looks_x x 1
 *
 * Sums are in float64; results do not depend on n_threads, or on how lines are
 * pushed.
 * Returns: IMK_ERROR_IMAGE, @out untouched */
IMK_API ImkStatus imk_insarform_process (
    ImkInsarform *self, ImkImage *out, ImkError *error);

/* @self may be NULL. */
IMK_API void imk_insarform_free (ImkInsarform *self);

/* --- pictures ------------------------------------------------------------- */

/* What dims the colours of a phase. */
typedef enum ImkInsarformShade {
  IMK_INSARFORM_SHADE_NONE,      /* full colours */
  IMK_INSARFORM_SHADE_COHERENCE, /* times the coherence */
  IMK_INSARFORM_SHADE_AMPLITUDE, /* times min (1, amplitude / @full) */
} ImkInsarformShade;

/**
 * imk_insarform_phase_to_rgb: (a row of phases as colours)
 * @row: as imk_insarform_process makes it
 * @full: the amplitude that is brightest, for IMK_INSARFORM_SHADE_AMPLITUDE
 * @rgb: u8, 3 a cell
 *
 * The phase of the interferogram, reference minus secondary, is the hue: 0 red,
 * 60 degrees yellow, 120 green, 180 cyan, -120 blue, -60 magenta. Cells without
 * data are black. */
IMK_API void imk_insarform_phase_to_rgb (const float *row, uint32_t n,
    ImkInsarformShade shade, float full, uint8_t *rgb);

/* A channel as levels: the whole number next to value / @full times 255 or
 * 65535, clamped. */
IMK_API void imk_insarform_to_u8 (const float *row, uint32_t n,
    ImkInsarformChannel channel, float full, uint8_t *to);
/* The same in 16 bits. */
IMK_API void imk_insarform_to_u16 (const float *row, uint32_t n,
    ImkInsarformChannel channel, float full, uint16_t *to);

IMK_END_DECLS
