# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a request cannot have, as a sentence and a status of HTTP."""


class Refusal(Exception):
    def __init__(self, status, sentence, **more):
        """more: members for programs, beside the sentence"""
        super().__init__(sentence)
        self.status, self.told = status, {"error": sentence, **more}
