/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies from global to shared memory that the device does on its own, and
 * barriers in shared memory that count their bytes, each for one use; compute
 * capability 9.0. */
#pragma once

#include <cuda_runtime.h>

typedef unsigned long long CopyBarrier;

static __device__ __forceinline__ unsigned
shared_address (const void *shared)
{
  return (unsigned) __cvta_generic_to_shared (shared);
}

/* By one thread; the others may use them after a __syncthreads (). */
static __device__ __forceinline__ void
init_barriers (CopyBarrier *barriers, unsigned n)
{
#if __CUDA_ARCH__ >= 900
  for (unsigned i = 0; i < n; i++)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
                 :
                 : "r"(shared_address (&barriers[i]))
                 : "memory");
  /* the copies see them */
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* @barrier opens when @n bytes have arrived. */
static __device__ __forceinline__ void
expect_bytes (CopyBarrier *barrier, unsigned n)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(shared_address (barrier)), "r"(n)
               : "memory");
#endif
}

/* @to, @from, @n: multiples of 16 bytes */
static __device__ __forceinline__ void
copy_bulk (void *to, const void *from, unsigned n, CopyBarrier *barrier)
{
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
               "bytes [%0], [%1], %2, [%3];"
               :
               : "r"(shared_address (to)), "l"(__cvta_generic_to_global (from)),
               "r"(n), "r"(shared_address (barrier))
               : "memory");
#endif
}

static __device__ __forceinline__ void
wait_for_bytes (CopyBarrier *barrier)
{
#if __CUDA_ARCH__ >= 900
  unsigned is_open;

  do
    asm volatile("{\n"
                 ".reg .pred open;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 open, [%1], 0;\n"
                 "selp.u32 %0, 1, 0, open;\n"
                 "}"
                 : "=r"(is_open)
                 : "r"(shared_address (barrier))
                 : "memory");
  while (!is_open);
#endif
}
