# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages of insarxcorr, insarfit and insarform."""


class Messages:
    """For play.play(). found: the fields of the message that is wanted; rows: those that are done, and all"""

    def __init__(self, element, wanted=""):
        self.progress, self.wanted, self.found, self.rows = element + "-progress", wanted, {}, (0, 1)

    def take(self, structure):
        if structure.get_name() == self.wanted:
            self.found = {name: structure.get_value(name) for name in map(structure.nth_field_name, range(structure.n_fields()))}
        elif structure.get_name() == self.progress:
            self.rows = structure.get_value("rows"), structure.get_value("of")

    def count(self, _pipeline):
        return self.rows[0] / self.rows[1]
