# SPDX-License-Identifier: LGPL-2.1-or-later
"""Starts the command."""
import signal
import sys

if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a traceback while modules are loaded is no answer to Ctrl-C
from .command import main

if __name__ == "__main__":
    sys.exit(main())
