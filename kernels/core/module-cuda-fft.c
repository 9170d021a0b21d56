/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The contents of libimk-cuda-fft.so: what needs cuFFT or cuBLAS. */
#include "normalintegrate/normalintegrate-backend.h"
#include "octbscan/octbscan-backend.h"

extern const ImkModule imk_module;

__attribute__ ((visibility ("default"))) const ImkModule imk_module = {
    .abi = IMK_BACKEND_ABI,
    .entries =
        (const ImkModuleEntry[]){
            {"normalintegrate", &imk_normalintegrate_cuda},
            {"octbscan", &imk_octbscan_cuda},
            {NULL, NULL},
        },
};
