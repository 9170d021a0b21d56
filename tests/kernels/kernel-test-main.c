/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The main () of a program whose tests list themselves. */
#include "kernel-test.h"

int
main (void)
{
  return test_main (NULL);
}
