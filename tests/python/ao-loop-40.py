# SPDX-License-Identifier: LGPL-2.1-or-later
"""ao-loop.py at 40 x 40 lenslets over a pupil of 8 m: minutes."""
import os
import sys

os.environ["AO_LOOP_LENSLETS"] = "40"
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
with open(os.path.join(here, "ao-loop.py"), encoding="utf-8") as file:
    exec(compile(file.read(), file.name, "exec"))
