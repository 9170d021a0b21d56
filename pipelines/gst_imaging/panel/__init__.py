# SPDX-License-Identifier: LGPL-2.1-or-later
"""The panel: a pipeline, and a server for browsers and scripts that look at it and set it. docs/reference/panel.md is its protocol."""
