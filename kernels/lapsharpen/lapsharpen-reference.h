/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition: the formula of imk/lapsharpen.h, one sample at a time. The
 * tests compare every backend with it. */
#pragma once

#include "imk/lapsharpen.h"

/* @in, @out: as imk_lapsharpen_process () takes them, in host memory */
void imk_lapsharpen_reference (
    const ImkLapsharpenConfig *config, const ImkImage *in, ImkImage *out);

/* Returns: what imk_lapsharpen_get_focus () gives for @in */
ImkLapsharpenFocus imk_lapsharpen_reference_focus (
    const ImkLapsharpenConfig *config, const ImkImage *in);

/* Returns: (transfer full): the plane of @channel smoothed for METHOD_UNSHARP
 * or METHOD_LOG, row by row */
float *imk_lapsharpen_reference_smooth (
    const ImkLapsharpenConfig *config, const ImkImage *in, uint32_t channel);

/* Returns: the counts of a sample, which may be outside the image */
int64_t imk_lapsharpen_reference_value (const ImkLapsharpenConfig *config,
    const ImkImage *in, int64_t x, int64_t y, uint32_t channel);

/* --- of samples that are not stored as they are sharpened ------------------
 */

/* Returns: what u16 stand for the samples to sharpen, as @config says */
ImkLapsharpenConfig imk_lapsharpen_reference_unpacked_config (
    const ImkLapsharpenConfig *config);

/* Returns: the u16 of a sample: its count, or its linear light */
uint16_t imk_lapsharpen_reference_unpacked (const ImkLapsharpenConfig *config,
    const ImkImage *in, uint32_t x, uint32_t y, uint32_t channel);

/* Stores a pixel of @sharpened as that of @in is stored. */
void imk_lapsharpen_reference_pack (const ImkLapsharpenConfig *config,
    const ImkImage *in, const ImkImage *sharpened, uint32_t x, uint32_t y,
    ImkImage *out);
