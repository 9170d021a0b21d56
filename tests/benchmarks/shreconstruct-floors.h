/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a device needs at least for a frame, in microseconds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* @frame_size, @matrix_size: bytes, in page-locked memory and on the device */
void floors_open (size_t frame_size, size_t matrix_size);
void floors_close (void);

/* From the call to the end of the wait. */
void floors_graph (void);  /* a graph with one empty kernel */
void floors_frame (void);  /* a kernel that reads the frame over the bus */
void floors_matrix (void); /* a kernel that reads the matrix once */

/* Returns: the time on the device of a read of the matrix, of 50 behind each
 * other; bytes that the caches keep are not read again from memory */
double floors_matrix_on_device (void);

#ifdef __cplusplus
}
#endif
