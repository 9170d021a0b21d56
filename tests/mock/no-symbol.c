/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library that is no module of ours, for test-core. */
int not_imk_module (void);

__attribute__ ((visibility ("default"))) int
not_imk_module (void)
{
  return 0;
}
