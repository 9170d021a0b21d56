# SPDX-License-Identifier: LGPL-2.1-or-later
import sys

from .command import main

sys.exit(main())
