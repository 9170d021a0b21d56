/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The C API of libimk and libimk-fft: what is true of all headers under imk/.
 *
 * Configurations (Imk...Config) may get members in later versions. The first
 * member, size, says which version of the structure a program was compiled for;
 * members that an earlier version does not have get their defaults. So:
 *
 * - call imk_..._config_init first, then set members. In C and C++ it is an
 *   inline function that passes sizeof of the structure on. From another
 *   language call imk_..._config_init_sized, with the size of your declaration
 *   of the structure; it may end early, after any member before a multiple of
 *   8 bytes.
 * - do not build one as {0} or member by member: a size of 0 is refused. */
#pragma once

/* What the libraries export; all else in them is hidden. */
#define IMK_API __attribute__ ((visibility ("default")))

/* Around the declarations of a header, which C++ may include. */
#ifdef __cplusplus
#define IMK_BEGIN_DECLS extern "C" {
#define IMK_END_DECLS }
#else
#define IMK_BEGIN_DECLS
#define IMK_END_DECLS
#endif
