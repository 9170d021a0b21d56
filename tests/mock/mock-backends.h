/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mock's tables, one a file. */
#pragma once

#include "lapsharpen/lapsharpen-backend.h"
#include "photostereo/photostereo-backend.h"
#include "relight/relight-backend.h"
#include "shcentroid/shcentroid-backend.h"
#ifdef HAVE_FFT
#include "insarxcorr/insarxcorr-backend.h"
#include "normalintegrate/normalintegrate-backend.h"
#include "octbscan/octbscan-backend.h"
#endif

extern const ImkLapsharpenBackend mock_lapsharpen;
extern const ImkPhotostereoBackend mock_photostereo;
extern const ImkRelightBackend mock_relight;
extern const ImkShcentroidBackend mock_shcentroid;
#ifdef HAVE_FFT
extern const ImkInsarxcorrBackend mock_insarxcorr;
extern const ImkNormalintegrateBackend mock_normalintegrate;
extern const ImkOctbscanBackend mock_octbscan;
#endif
