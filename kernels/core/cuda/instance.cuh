/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From what is known at run time to the instance of a kernel's template:
 *
 *   instance ([] (auto type, auto all) { return measure<SampleOf<type>, all>;
 * }, OneOf<IMK_TYPE_U8, IMK_TYPE_U16>{in->type}, all)
 *
 * The lambda is compiled for every combination. What makes a combination the
 * same kernel as another belongs into the lambda: each kernel costs seconds of
 * compiling and space in the module. */
#pragma once

#include <cstdint>
#include <type_traits>

#include "imk/image.h"

/* A number or an enumerator among VALUES; all others count as the last. */
template <auto... VALUES> struct OneOf {
  int64_t value;
};

template <ImkType TYPE>
using SampleOf = std::conditional_t<TYPE == IMK_TYPE_U8, uint8_t,
    std::conditional_t<TYPE == IMK_TYPE_U16, uint16_t,
        std::conditional_t<TYPE == IMK_TYPE_I16, int16_t, float>>>;

/* Returns: what @choose returns for these constants */
template <auto... CHOSEN, class Choose>
static auto
instance (Choose choose)
{
  return choose (std::integral_constant<decltype (CHOSEN), CHOSEN> ()...);
}

template <auto... CHOSEN, class Choose, class... Rest>
static auto
instance (Choose choose, bool flag, Rest... rest)
{
  return flag ? instance<CHOSEN..., true> (choose, rest...)
              : instance<CHOSEN..., false> (choose, rest...);
}

template <auto... CHOSEN, class Choose, auto FIRST, auto... OTHERS,
    class... Rest>
static auto
instance (Choose choose, OneOf<FIRST, OTHERS...> among, Rest... rest)
{
  if constexpr (sizeof...(OTHERS) > 0)
    if (among.value != (int64_t) FIRST)
      return instance<CHOSEN...> (
          choose, OneOf<OTHERS...>{among.value}, rest...);
  return instance<CHOSEN..., FIRST> (choose, rest...);
}
