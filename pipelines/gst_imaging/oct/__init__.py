# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optical coherence tomography: files of spectra, calibrations and images."""
