/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the filters of overlapping patches share. */
#pragma once

#include "imk/fft.h"

/* The transforms of a patch of @n x @n, in place. @fft: (out): forward and
 * backward; what was made is there to be freed also after a failure */
static inline ImkStatus
imk_insarform_make_ffts (uint32_t n, ImkFft *fft[2], ImkError *error)
{
  ImkStatus status = IMK_OK;
  ImkFftConfig c;

  imk_fft_config_init (&c);
  c.width = c.height = n;
  c.in_place = true;
  for (int i = 0; i < 2 && status == IMK_OK; i++) {
    c.direction = i ? IMK_FFT_BACKWARD : IMK_FFT_FORWARD;
    status = imk_fft_new (&c, &fft[i], error);
  }
  return status;
}
