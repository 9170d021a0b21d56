/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which instance of a kernel's template a frame takes. */
#pragma once

#include "core/cuda/instance.cuh"
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

typedef OneOf<IMK_TYPE_U8, IMK_TYPE_U16> IntegerType;
typedef OneOf<IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_F32> AnyType;
typedef OneOf<small::LEAST_SIDE, small::MOST_SIDE> SmallSide;

/* ------------------------------------------------------------------------
 * Integers. */

static auto
choose_kernel (const Choice &c)
{
  return instance (
      [] (auto type, auto all, auto cut, auto leveled) {
        constexpr bool CUT = cut || leveled;

        return integers::measure_cells<SampleOf<type>, all, CUT, leveled>;
      },
      IntegerType{c.type}, c.all, c.cut, c.leveled);
}

static auto
choose_extremes_kernel (const Choice &c)
{
  return instance (
      [] (auto type) { return integers::find_piece_extremes<SampleOf<type>>; },
      IntegerType{c.type});
}

static auto
choose_small_kernel (const Choice &c)
{
  return instance (
      [] (auto type, auto side, auto cut) {
        return small::measure_cells<SampleOf<type>, side, cut>;
      },
      IntegerType{c.type}, SmallSide{c.side}, c.cut || c.leveled);
}

/* ------------------------------------------------------------------------
 * The chain. */

static auto
choose_chain_kernel (const Choice &c)
{
  return instance (
      [] (auto type, auto calibrated, auto all, auto wide, auto rare) {
        return measure_chain<SampleOf<type>, calibrated, all, wide, rare>;
      },
      AnyType{c.type}, c.calibrated, c.all, c.wide, c.rare);
}

static auto
choose_reals_kernel (const Choice &c)
{
  return instance (
      [] (auto type, auto calibrated, auto all, auto weighted, auto cut) {
        return reals::measure_reals<SampleOf<type>, calibrated, all, weighted,
            cut>;
      },
      IntegerType{c.type}, c.calibrated, c.all, c.weighted, c.cut);
}

static auto
choose_small_reals_kernel (const Choice &c)
{
  return instance (
      [] (auto type, auto side, auto calibrated, auto weighted, auto cut) {
        return small::measure_reals<SampleOf<type>, side, calibrated, weighted,
            cut>;
      },
      IntegerType{c.type}, SmallSide{c.side}, c.calibrated, c.weighted, c.cut);
}

/* ------------------------------------------------------------------------
 * Correlation. */

static auto
choose_match_kernel (const Choice &c)
{
  return instance (
      [] (auto type, auto calibrated, auto all, auto global) {
        return measure_matches<SampleOf<type>, calibrated, all, global>;
      },
      AnyType{c.type}, c.calibrated, c.all, c.global);
}

static auto
choose_template_kernel (const Choice &c)
{
  return instance (
      [] (auto type, auto calibrated) {
        return take_template<SampleOf<type>, calibrated>;
      },
      AnyType{c.type}, c.calibrated);
}

/* ------------------------------------------------------------------------
 * The linear estimators. */

static auto
choose_linear_kernel (const Choice &c, bool pupils)
{
  return instance (
      [pupils] (auto type, auto calibrated, auto all) {
        return pupils ? measure_pupils<SampleOf<type>, calibrated, all>
                      : filter_cells<SampleOf<type>, calibrated, all>;
      },
      AnyType{c.type}, c.calibrated, c.all);
}

static auto
choose_mean_kernel (const Choice &c)
{
  return instance (
      [] (auto type, auto calibrated) {
        return find_mean<SampleOf<type>, calibrated>;
      },
      AnyType{c.type}, c.calibrated);
}
