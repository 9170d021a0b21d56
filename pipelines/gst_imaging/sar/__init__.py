# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the commands for SAR images share: xcorr, fitoffset, offsets and coregister."""
