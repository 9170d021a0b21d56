/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "template/invert-reference.h"

#include "template/invert-sample.h"

static void
invert_row_u8 (const uint8_t *in, uint8_t *out, uint32_t n, float amount)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = (uint8_t) imk_invert_sample (in[i], UINT8_MAX, amount);
}

static void
invert_row_u16 (const uint16_t *in, uint16_t *out, uint32_t n, float amount)
{
  for (uint32_t i = 0; i < n; i++)
    out[i] = imk_invert_sample (in[i], UINT16_MAX, amount);
}

void
imk_invert_reference (const ImkInvertConfig *config, const ImkImage *in,
    ImkImage *out, uint32_t first, uint32_t end)
{
  uint32_t n = in->width * in->channels;
  float amount = (float) config->amount;

  for (uint32_t y = first; y < end; y++) {
    const void *from = (const uint8_t *) in->data + y * in->stride;
    void *to = (uint8_t *) out->data + y * out->stride;

    if (in->type == IMK_TYPE_U8)
      invert_row_u8 (from, to, n, amount);
    else
      invert_row_u16 (from, to, n, amount);
  }
}
