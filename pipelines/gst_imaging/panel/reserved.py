# SPDX-License-Identifier: LGPL-2.1-or-later
"""The name of a file that is written later, taken at the command: an empty file, so that nobody else's is replaced."""
import contextlib
import os

from .refusal import Refusal


class Reserved:
    def __init__(self, path):
        self.path, self.made = path, None
        try:
            with open(path, "xb") as file:
                self.made = os.fstat(file.fileno())
        except FileExistsError as error:
            raise Refusal(409, f"There is {os.path.basename(path)} already: choose another name, or set replace.", exists=True) from error
        except OSError:  # the element that writes it refuses it in a sentence
            pass

    def is_untouched(self):
        """Whether nobody has written the file so far."""
        with contextlib.suppress(OSError):
            now = os.stat(self.path, follow_symlinks=False)
            return now.st_size == 0 and os.path.samestat(now, self.made)
        return False

    def release(self):
        """Removes what is still empty."""
        if self.made and self.is_untouched():
            with contextlib.suppress(OSError):
                os.remove(self.path)
        self.made = None
