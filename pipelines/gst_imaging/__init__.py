# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging for Python: metadata of frames, and the commands of `gst-imaging`."""
