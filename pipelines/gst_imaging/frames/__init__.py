# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where the frames of a command come from: files of every kind, and cameras."""
