# SPDX-License-Identifier: LGPL-2.1-or-later
"""One module for each command of gst-imaging; see command.py for what a module has."""
