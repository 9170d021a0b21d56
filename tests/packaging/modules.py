#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each algorithm that is declared with a CUDA part is found in the modules that
were built. That needs no device: a table is only code.
Usage: modules.py BUILD ALGORITHM..."""
import ctypes
import os
import sys

build, names = sys.argv[1], sys.argv[2:]
os.environ['IMK_MODULE_PATH'] = f'{build}/kernels/cuda'
libimk = ctypes.CDLL(f'{build}/kernels/libimk.so')

print(f'1..{len(names)}')
failed = 0
for i, name in enumerate(names, 1):
    table = ctypes.c_void_p()
    error = ctypes.create_string_buffer(4096)  # an ImkError: status, then its sentence
    status = libimk.imk_backend_find(name.encode(), ctypes.byref(table), error)
    found = status == 0 and table.value
    failed += not found
    print(f'{"ok" if found else "not ok"} {i} - {name}')
    if not found:
        print('#', error.raw[4:].split(b'\0')[0].decode())
sys.exit(failed > 0)
