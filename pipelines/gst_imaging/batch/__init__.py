# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many jobs of one table: its rows, who works on which of them, the processes that do, and what of the machine is theirs."""
