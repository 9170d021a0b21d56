# SPDX-License-Identifier: LGPL-2.1-or-later
"""PRM files of GMTSAR, and the eight lines of a fit."""
from ..command import UNREADABLE, Failure

FIT = ["rshift", "sub_int_r", "stretch_r", "a_stretch_r", "ashift", "sub_int_a", "stretch_a", "a_stretch_a"]
SIZE = "num_rng_bins", "PRF", "num_valid_az", "num_lines", "num_patches", "bytes_per_line", "good_bytes_per_line"


def parse_fit(text, name):
    """Returns: a function from (x, y) to the offset that is fitted."""
    try:
        pairs = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        found = {key.strip(): value for key, value in pairs.items()}
        r, r_part, r_x, r_y, a, a_part, a_x, a_y = (float(found[key]) for key in FIT)
    except (KeyError, ValueError):
        raise Failure(UNREADABLE, f'"{name}" does not have the eight lines of a fit.') from None
    return lambda x, y: (r + r_part + r_x * x + r_y * y, a + a_part + a_x * x + a_y * y)


def read_prm(path):
    """Returns: the lines of a PRM file as pairs of a key and a value; None where it is no such file."""
    if not path.lower().endswith(".prm"):
        return None
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return [(key.strip(), value.strip()) for key, equals, value in (line.partition("=") for line in file) if equals]


def write_prm(reference, secondary, slc, path):
    """The PRM file of the resampled secondary, as GMTSAR's resamp writes it: in the geometry of the reference, without
    shifts; its Doppler centroid and the rest are those of the secondary. slc: the name of its image"""
    size = dict(read_prm(reference))
    left = {*FIT, "xshift", "yshift", "SLC_file", *SIZE}
    lines = [(key, value) for key, value in read_prm(secondary) if key not in left]
    lines += [("SLC_file", slc)] + [(key, size[key]) for key in SIZE if key in size] + [(key, "0") for key in FIT]
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(f"{key:<24}= {value}\n" for key, value in lines)


def write_vrt(width, height, sample_format, slc, path, no_data=None, metadata=""):
    """What GDAL, and so slcsrc, opens in the place of samples without a header. sample_format: ci16, cf32, f32, f64 or u32;
    metadata: XML of the whole raster"""
    kind, size = {"ci16": ("CInt16", 4), "cf32": ("CFloat32", 8), "f32": ("Float32", 4), "f64": ("Float64", 8),
                  "u32": ("UInt32", 4)}[sample_format]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}">\n'
                   f'{metadata}  <VRTRasterBand dataType="{kind}" band="1" subClass="VRTRawRasterBand">\n'
                   f'{"" if no_data is None else f"    <NoDataValue>{no_data}</NoDataValue>{chr(10)}"}'
                   f'    <SourceFilename relativeToVRT="1">{slc}</SourceFilename>\n    <ByteOrder>LSB</ByteOrder>\n'
                   f"    <ImageOffset>0</ImageOffset><PixelOffset>{size}</PixelOffset>"
                   f"<LineOffset>{size * width}</LineOffset>\n  </VRTRasterBand>\n</VRTDataset>\n")
