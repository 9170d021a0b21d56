/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The contents of libimk-cuda.so. */
#include "core/device.h"
#include "insarxcorr/insarxcorr-backend.h"
#include "lapsharpen/lapsharpen-backend.h"
#include "photostereo/photostereo-backend.h"
#include "relight/relight-backend.h"
#include "shcentroid/shcentroid-backend.h"

extern const ImkDevice imk_device_cuda;

extern const ImkModule imk_module;

__attribute__ ((visibility ("default"))) const ImkModule imk_module = {
    .abi = IMK_BACKEND_ABI,
    .entries =
        (const ImkModuleEntry[]){
            {"device", &imk_device_cuda},
            {"insarxcorr", &imk_insarxcorr_cuda},
            {"lapsharpen", &imk_lapsharpen_cuda},
            {"photostereo", &imk_photostereo_cuda},
            {"relight", &imk_relight_cuda},
            {"shcentroid", &imk_shcentroid_cuda},
            {NULL, NULL},
        },
};
