/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

/**
 * ImkInvertConfig: (the format and the amount)
 * @size: set by imk_invert_config_init, see imk/api.h
 * @width, @height: pixels, 1..65535 each
 * @type: IMK_TYPE_U8 or IMK_TYPE_U16
 * @channels: interleaved samples a pixel, 1..4
 * @n_threads: CPU threads, 0 for one a processor
 * @amount: a, 0..1
 *
 * @amount may change between two frames; the others need a new object. */
typedef struct ImkInvertConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  uint32_t channels;
  uint32_t n_threads;

  double amount;
} ImkInvertConfig;

typedef struct ImkInvert ImkInvert;

/* The defaults: 1x1 u8 of one channel, amount 1. */
IMK_API void imk_invert_config_init_sized (
    ImkInvertConfig *config, size_t size);
static inline void
imk_invert_config_init (ImkInvertConfig *config)
{
  imk_invert_config_init_sized (config, sizeof (*config));
}

/**
 * imk_invert_new: (an object for frames of one format)
 * @self: (out): free with imk_invert_free
 *
 * On IMK_BACKEND_CUDA the object belongs to the context that is current.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE,
 *   IMK_ERROR_DEVICE; @self untouched */
IMK_API ImkStatus imk_invert_new (ImkBackend backend,
    const ImkInvertConfig *config, ImkInvert **self, ImkError *error);

/**
 * imk_invert_update: (the amount for the frames from now on)
 * Returns: IMK_ERROR_CONFIG, also when the format differs; the old amount stays
 *   in use */
IMK_API ImkStatus imk_invert_update (
    ImkInvert *self, const ImkInvertConfig *config, ImkError *error);

/**
 * imk_invert_process: (computes one plane)
 * @in, @out: of the configured size, type and channels, with any stride that is
 *   a multiple of the sample; @out may be @in
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU is
 *   done
 *
 * For each sample v, with m = 255 for u8 and 65535 for u16:
 *   out = floor (v + a (m - 2 v) + 0.5)
 * in float32, each operation rounded once. The backends give the same bytes;
 * a = 1 gives exactly m - v.
 * Returns: IMK_ERROR_IMAGE, @out untouched; IMK_ERROR_DEVICE, @out undefined */
IMK_API ImkStatus imk_invert_process (ImkInvert *self, const ImkImage *in,
    ImkImage *out, void *stream, ImkError *error);

/* @self may be NULL. Waits for the GPU. */
IMK_API void imk_invert_free (ImkInvert *self);

IMK_END_DECLS
