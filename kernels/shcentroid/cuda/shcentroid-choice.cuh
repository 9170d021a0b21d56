/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which instance of a kernel's template a frame takes. */
#pragma once

#include "shcentroid/cuda/shcentroid-chain.cuh"
#include "shcentroid/cuda/shcentroid-correlation.cuh"
#include "shcentroid/cuda/shcentroid-integers.cuh"
#include "shcentroid/cuda/shcentroid-linear.cuh"
#include "shcentroid/cuda/shcentroid-reals.cuh"
#include "shcentroid/cuda/shcentroid-small.cuh"

/* What decides about it. */
struct Choice {
  ImkType type;
  bool all;
  bool calibrated, weighted;
  bool cut;     /* there are pixels that do not take part */
  bool leveled; /* and those of a cell decide which */
  bool wide, rare;
  bool global;   /* templates and cells do not fit into shared memory */
  uint32_t side; /* of small cells */
};

/* ------------------------------------------------------------------------
 * Integers. */

typedef void (*Kernel) (const Arguments);

template <typename Sample, bool ALL>
static Kernel
choose_kernel (const Choice &c)
{
  return c.leveled ? integers::measure_cells<Sample, ALL, true, true>
         : c.cut   ? integers::measure_cells<Sample, ALL, true, false>
                   : integers::measure_cells<Sample, ALL, false, false>;
}

static Kernel
choose_kernel (const Choice &c)
{
  if (c.type == IMK_TYPE_U8)
    return c.all ? choose_kernel<uint8_t, true> (c)
                 : choose_kernel<uint8_t, false> (c);
  return c.all ? choose_kernel<uint16_t, true> (c)
               : choose_kernel<uint16_t, false> (c);
}

static Kernel
choose_extremes_kernel (const Choice &c)
{
  return c.type == IMK_TYPE_U8 ? integers::find_piece_extremes<uint8_t>
                               : integers::find_piece_extremes<uint16_t>;
}

typedef void (*SmallKernel) (const Arguments, const small::Layout);

template <typename Sample, uint32_t SIDE>
static SmallKernel
choose_small_kernel (const Choice &c)
{
  return c.cut || c.leveled ? small::measure_cells<Sample, SIDE, true>
                            : small::measure_cells<Sample, SIDE, false>;
}

static SmallKernel
choose_small_kernel (const Choice &c)
{
  if (c.side == small::LEAST_SIDE)
    return c.type == IMK_TYPE_U8
               ? choose_small_kernel<uint8_t, small::LEAST_SIDE> (c)
               : choose_small_kernel<uint16_t, small::LEAST_SIDE> (c);
  return c.type == IMK_TYPE_U8
             ? choose_small_kernel<uint8_t, small::MOST_SIDE> (c)
             : choose_small_kernel<uint16_t, small::MOST_SIDE> (c);
}

/* ------------------------------------------------------------------------
 * The chain. */

typedef void (*ChainKernel) (const ChainArguments);

template <typename Sample, bool CALIBRATED, bool RARE>
static ChainKernel
choose_chain_kernel (const Choice &c)
{
  if (c.all)
    return c.wide ? measure_chain<Sample, CALIBRATED, true, true, RARE>
                  : measure_chain<Sample, CALIBRATED, true, false, RARE>;
  return c.wide ? measure_chain<Sample, CALIBRATED, false, true, RARE>
                : measure_chain<Sample, CALIBRATED, false, false, RARE>;
}

template <typename Sample>
static ChainKernel
choose_chain_kernel (const Choice &c)
{
  if (c.rare)
    return c.calibrated ? choose_chain_kernel<Sample, true, true> (c)
                        : choose_chain_kernel<Sample, false, true> (c);
  return c.calibrated ? choose_chain_kernel<Sample, true, false> (c)
                      : choose_chain_kernel<Sample, false, false> (c);
}

static ChainKernel
choose_chain_kernel (const Choice &c)
{
  return c.type == IMK_TYPE_U8    ? choose_chain_kernel<uint8_t> (c)
         : c.type == IMK_TYPE_U16 ? choose_chain_kernel<uint16_t> (c)
                                  : choose_chain_kernel<float> (c);
}

template <typename Sample, bool CALIBRATED, bool CUT>
static ChainKernel
choose_reals_kernel (const Choice &c)
{
  if (c.all)
    return c.weighted
               ? reals::measure_reals<Sample, CALIBRATED, true, true, CUT>
               : reals::measure_reals<Sample, CALIBRATED, true, false, CUT>;
  return c.weighted
             ? reals::measure_reals<Sample, CALIBRATED, false, true, CUT>
             : reals::measure_reals<Sample, CALIBRATED, false, false, CUT>;
}

template <typename Sample>
static ChainKernel
choose_reals_kernel (const Choice &c)
{
  if (c.calibrated)
    return c.cut ? choose_reals_kernel<Sample, true, true> (c)
                 : choose_reals_kernel<Sample, true, false> (c);
  return c.cut ? choose_reals_kernel<Sample, false, true> (c)
               : choose_reals_kernel<Sample, false, false> (c);
}

static ChainKernel
choose_reals_kernel (const Choice &c)
{
  return c.type == IMK_TYPE_U8 ? choose_reals_kernel<uint8_t> (c)
                               : choose_reals_kernel<uint16_t> (c);
}

typedef void (*SmallRealsKernel) (const ChainArguments, const small::Layout);

template <typename Sample, uint32_t SIDE, bool CALIBRATED>
static SmallRealsKernel
choose_small_reals_kernel (const Choice &c)
{
  if (c.weighted)
    return c.cut ? small::measure_reals<Sample, SIDE, CALIBRATED, true, true>
                 : small::measure_reals<Sample, SIDE, CALIBRATED, true, false>;
  return c.cut ? small::measure_reals<Sample, SIDE, CALIBRATED, false, true>
               : small::measure_reals<Sample, SIDE, CALIBRATED, false, false>;
}

template <typename Sample, uint32_t SIDE>
static SmallRealsKernel
choose_small_reals_kernel (const Choice &c)
{
  return c.calibrated ? choose_small_reals_kernel<Sample, SIDE, true> (c)
                      : choose_small_reals_kernel<Sample, SIDE, false> (c);
}

static SmallRealsKernel
choose_small_reals_kernel (const Choice &c)
{
  if (c.side == small::LEAST_SIDE)
    return c.type == IMK_TYPE_U8
               ? choose_small_reals_kernel<uint8_t, small::LEAST_SIDE> (c)
               : choose_small_reals_kernel<uint16_t, small::LEAST_SIDE> (c);
  return c.type == IMK_TYPE_U8
             ? choose_small_reals_kernel<uint8_t, small::MOST_SIDE> (c)
             : choose_small_reals_kernel<uint16_t, small::MOST_SIDE> (c);
}

/* ------------------------------------------------------------------------
 * Correlation. */

typedef void (*MatchKernel) (const MatchArguments);

template <typename Sample, bool CALIBRATED>
static MatchKernel
choose_match_kernel (const Choice &c)
{
  if (c.all)
    return c.global ? measure_matches<Sample, CALIBRATED, true, true>
                    : measure_matches<Sample, CALIBRATED, true, false>;
  return c.global ? measure_matches<Sample, CALIBRATED, false, true>
                  : measure_matches<Sample, CALIBRATED, false, false>;
}

template <typename Sample>
static MatchKernel
choose_match_kernel_of (const Choice &c)
{
  return c.calibrated ? choose_match_kernel<Sample, true> (c)
                      : choose_match_kernel<Sample, false> (c);
}

static MatchKernel
choose_match_kernel (const Choice &c)
{
  return c.type == IMK_TYPE_U8    ? choose_match_kernel_of<uint8_t> (c)
         : c.type == IMK_TYPE_U16 ? choose_match_kernel_of<uint16_t> (c)
                                  : choose_match_kernel_of<float> (c);
}

template <typename Sample>
static MatchKernel
choose_template_kernel (const Choice &c)
{
  return c.calibrated ? take_template<Sample, true>
                      : take_template<Sample, false>;
}

static MatchKernel
choose_template_kernel (const Choice &c)
{
  return c.type == IMK_TYPE_U8    ? choose_template_kernel<uint8_t> (c)
         : c.type == IMK_TYPE_U16 ? choose_template_kernel<uint16_t> (c)
                                  : choose_template_kernel<float> (c);
}

/* ------------------------------------------------------------------------
 * The linear estimators. */

typedef void (*LinearKernel) (const LinearArguments);

template <typename Sample, bool CALIBRATED>
static LinearKernel
choose_linear_kernel (const Choice &c, bool pupils)
{
  if (pupils)
    return c.all ? measure_pupils<Sample, CALIBRATED, true>
                 : measure_pupils<Sample, CALIBRATED, false>;
  return c.all ? filter_cells<Sample, CALIBRATED, true>
               : filter_cells<Sample, CALIBRATED, false>;
}

template <typename Sample>
static LinearKernel
choose_linear_kernel (const Choice &c, bool pupils)
{
  return c.calibrated ? choose_linear_kernel<Sample, true> (c, pupils)
                      : choose_linear_kernel<Sample, false> (c, pupils);
}

static LinearKernel
choose_linear_kernel (const Choice &c, bool pupils)
{
  return c.type == IMK_TYPE_U8    ? choose_linear_kernel<uint8_t> (c, pupils)
         : c.type == IMK_TYPE_U16 ? choose_linear_kernel<uint16_t> (c, pupils)
                                  : choose_linear_kernel<float> (c, pupils);
}

template <typename Sample>
static LinearKernel
choose_mean_kernel (const Choice &c)
{
  return c.calibrated ? find_mean<Sample, true> : find_mean<Sample, false>;
}

static LinearKernel
choose_mean_kernel (const Choice &c)
{
  return c.type == IMK_TYPE_U8    ? choose_mean_kernel<uint8_t> (c)
         : c.type == IMK_TYPE_U16 ? choose_mean_kernel<uint16_t> (c)
                                  : choose_mean_kernel<float> (c);
}
