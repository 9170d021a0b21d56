# SPDX-License-Identifier: LGPL-2.1-or-later
"""Adaptive optics: bases of wavefronts on a lenslet grid, and inverses of interaction matrices."""
