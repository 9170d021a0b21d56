/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

/* What one message has at most: a buffer of parts is that large. */
#define GST_AO_PAY_MAX_SIZE (64u << 20)

#define GST_AO_PAY_CAPS "application/x-gst-imaging-ao"

#define GST_TYPE_AO_PAY (gst_ao_pay_get_type ())
G_DECLARE_FINAL_TYPE (GstAoPay, gst_ao_pay, GST, AO_PAY, GstElement)

GST_ELEMENT_REGISTER_DECLARE (aopay);

G_END_DECLS
