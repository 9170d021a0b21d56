/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The peer on the GPU: the steps of the thesis, one after the other, with cuFFT
 * and a kernel each, every one of which reads and writes its samples once and
 * in order. One calibration, linear interpolation, the range of each batch. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ThesisConfig {
  unsigned width, lines, upsample, scale;
  unsigned n_bscans; /* that are done at once */
  int both;          /* the linear image as well */
} ThesisConfig;

enum { THESIS_MAX_STEPS = 16 };

typedef struct ThesisStep {
  const char *name;
  double us;    /* of a batch */
  double bytes; /* that it reads and writes, at least */
} ThesisStep;

/* Host to host, three batches at a time on streams of their own.
 * Returns: seconds for @n_batches; negative when there is no GPU */
double thesis_run (const ThesisConfig *config, unsigned n_batches);

/* Each step of one batch, alone. Returns: how many steps */
unsigned thesis_steps (
    const ThesisConfig *config, ThesisStep steps[THESIS_MAX_STEPS]);

#ifdef __cplusplus
}
#endif
