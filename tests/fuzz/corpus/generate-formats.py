#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the seeds of the fuzzers of formats: small files of other programs. Needs NumPy, Pillow, tifffile and
OpenEXR. Usage: tests/fuzz/corpus/generate-formats.py"""
import os
import sys
import zipfile

import numpy as np
import OpenEXR
import tifffile
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
import octfiles


def path(name):
    folder = os.path.join(HERE, name.rsplit("/")[0])
    os.makedirs(folder, exist_ok=True)
    return os.path.join(HERE, name)


rng = np.random.default_rng(1)
grey = rng.integers(0, 256, (6, 7)).astype("u1")
colour = rng.integers(0, 256, (6, 7, 3)).astype("u1")

Image.fromarray(grey).save(path("png/grey.png"))
Image.fromarray(grey.astype("u2") * 257).save(path("png/grey16.png"))
Image.fromarray(colour).quantize(4).save(path("png/palette.png"))
Image.fromarray(grey > 99).save(path("png/mask.png"))

exif = Image.new("L", (1, 1)).getexif()
exif[0x0112], exif[0x010F] = 6, "maker"
Image.fromarray(colour).save(path("jpeg/colour.jpg"), exif=exif)
Image.fromarray(grey).save(path("jpeg/progressive.jpg"), progressive=True)

tifffile.imwrite(path("tiff/pages.tif"), np.stack([grey, grey]), photometric="minisblack", metadata=None)
tifffile.imwrite(path("tiff/tiles.tif"), np.tile(colour, (4, 4, 1)), tile=(16, 16), compression="zlib", photometric="rgb")
tifffile.imwrite(path("tiff/float.tif"), grey.astype("f4"), bigtiff=True, byteorder=">", metadata=None)
tifffile.imwrite(path("tiff/planes.tif"), np.moveaxis(colour, 2, 0), photometric="rgb", planarconfig="separate", metadata=None)
tifffile.imwrite(path("tiff/mask.tif"), grey > 99, metadata=None)

Image.fromarray(grey).save(path("pnm/grey.pgm"))
Image.fromarray(grey > 99).save(path("pnm/mask.pbm"))
for name, content in {"text.pgm": b"P2 # c\n2 1 15\n3 4\n", "text.pbm": b"P1 2 1 10", "float.pfm": b"Pf\n1 2\n-1.0\n12345678",
                      "alpha.pam": b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n1234"}.items():
    with open(path("pnm/" + name), "wb") as file:
        file.write(content)


def write_fits(name, *cards, data):
    """Without the padding of 2880 bytes a header is too large for a fuzzer: libFuzzer cuts at 4096."""
    text = b"".join(card.encode("ascii").ljust(80) for card in (*cards, "END"))
    with open(path("fits/" + name), "wb") as file:
        file.write(text.ljust(2880) + data)


SIMPLE = "SIMPLE  =                    T"
write_fits("u16.fits", SIMPLE, "BITPIX  =                   16", "NAXIS   =                    2",
           "NAXIS1  =                    7", "NAXIS2  =                    6", "BZERO   =                32768",
           "OBJECT  = 'Vega'", "HISTORY none", data=grey.astype(">i2").tobytes())
write_fits("cube.fits", SIMPLE, "BITPIX  =                  -32", "NAXIS   =                    3",
           "NAXIS1  =                    2", "NAXIS2  =                    2", "NAXIS3  =                    2",
           data=np.arange(8, dtype=">f4").tobytes())
write_fits("scaled.fits", SIMPLE, "BITPIX  =                    8", "NAXIS   =                    1",
           "NAXIS1  =                    7", "BSCALE  =                  0.5", "BLANK   =                    3",
           data=bytes(range(7)))

for name, compression in ("none", OpenEXR.NO_COMPRESSION), ("zip", OpenEXR.ZIP_COMPRESSION), ("piz", OpenEXR.PIZ_COMPRESSION):
    header = {"compression": compression, "type": OpenEXR.scanlineimage}
    with OpenEXR.File(header, {name: grey.astype("f2") for name in "RGB"}) as file:
        file.write(path(f"exr/{name}.exr"))

mosaic = np.full((16, 16), 700, "u2")
tags = [(33421, 3, 2, (2, 2)), (33422, 1, 4, b"\0\1\1\2"), (50706, 1, 4, b"\1\4\0\0"), (50708, 2, 0, "Test"),
        (50714, 4, 1, 256), (50717, 4, 1, 4095)]
tifffile.imwrite(path("raw/mosaic.dng"), mosaic, photometric=32803, extratags=tags, metadata=None)


# with their settings, 3 lines of 8 samples; the first byte of a seed of settings is the size of the samples, in 16 bytes
spectra = rng.integers(0, 4096, (2, 3, 8)).astype("u2")
curve = {"Chirp": np.arange(8, dtype="f4")}
for name, compression in ("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED):
    octfiles.thorlabs(path(f"thorlabs/{name}.oct"), spectra, spectra[:, :1], more=curve, compression=compression)
with zipfile.ZipFile(path("thorlabs/stored.oct")) as archive, open(path("thorlabsheader/Header.xml"), "wb") as file:
    file.write(archive.read("Header.xml"))
np.savez(path("npz/stored.npz"), spectra)
np.savez_compressed(path("npz/deflated.npz"), spectra)
for name, write in ("octproz/a_raw.raw", octfiles.octproz), ("unp/a.unp", octfiles.unp):
    settings = write(path(name), spectra)
    with open(settings, "rb") as file:
        text = file.read()
    with open(settings, "wb") as file:
        file.write(bytes([spectra.nbytes // 16]) + text)
    os.remove(path(name))
