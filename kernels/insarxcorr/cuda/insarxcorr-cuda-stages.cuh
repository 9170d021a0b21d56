/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For benchmarks, with IMK_INSARXCORR_STAGES=1 in the environment: how long
 * each kernel takes, by an event behind each. */
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/cuda/cuda-check.h"

namespace insar
{

class Stages
{
public:
  /* Returns: NULL without the variable, and without memory */
  static Stages *
  create ()
  {
    const char *wanted = secure_getenv ("IMK_INSARXCORR_STAGES");

    return wanted && strcmp (wanted, "1") == 0 ? new (std::nothrow) Stages{}
                                               : nullptr;
  }

  ~Stages ()
  {
    collect ();
    report ();
    for (cudaEvent_t event : events)
      if (event)
        cudaEventDestroy (event);
  }

  /* The next batch, after the last one has been waited for. */
  ImkStatus
  begin (cudaStream_t stream, ImkError *error)
  {
    collect ();
    return mark ("", stream, error);
  }

  ImkStatus
  mark (const char *name, cudaStream_t stream, ImkError *error)
  {
    ImkStatus status = IMK_OK;

    if (n == MOST)
      return IMK_OK;
    if (!events[n])
      status = IMK_CUDA (error, cudaEventCreate (&events[n]));
    if (status == IMK_OK)
      status = IMK_CUDA (error, cudaEventRecord (events[n], stream));
    if (status == IMK_OK)
      names[n++] = name;
    return status;
  }

private:
  enum { MOST = 32 };

  /* Stages are in the same order in all batches. */
  void
  collect ()
  {
    if (n > 0)
      n_batches++;
    for (uint32_t i = 1; i < n; i++) {
      float ms = 0;

      cudaEventSynchronize (events[i]);
      if (cudaEventElapsedTime (&ms, events[i - 1], events[i]) == cudaSuccess)
        sums[i] += ms;
      most = most > i ? most : i;
    }
    n = 0;
  }

  void
  report () const
  {
    double all = 0;

    for (uint32_t i = 1; i <= most; i++) {
      fprintf (stderr, "insarxcorr stage %-12s %8.3f us a batch\n", names[i],
          1000 * sums[i] / n_batches);
      all += sums[i];
    }
    fprintf (stderr, "insarxcorr stage %-12s %8.3f us a batch, %u batches\n",
        "all", n_batches ? 1000 * all / n_batches : 0, n_batches);
  }

  cudaEvent_t events[MOST] = {};
  const char *names[MOST] = {};
  double sums[MOST] = {};
  uint32_t n = 0, most = 0, n_batches = 0;
};

} // namespace insar
