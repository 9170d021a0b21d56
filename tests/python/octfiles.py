# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes recordings of OCT spectra as the programs of instruments do, for the tests."""
import os
import zipfile

import numpy as np

TYPES = {"u1": ("1", "False"), "i1": ("1", "True"), "u2": ("2", "False"), "i2": ("2", "True"), "u4": ("4", "False")}


def thorlabs(path, spectra, apodization=None, chirp=None, *, header=None, separator="\\", each=1, more=None, changes=(), averaging=(1, 1),
             compression=zipfile.ZIP_DEFLATED):
    """A Thorlabs .oct. spectra [B-scans, lines, samples]; apodization [B-scans, lines, samples]; each: B-scans of a file;
    more: float32 arrays by name; changes: texts of the header that are replaced"""
    n, lines, samples = spectra.shape
    apo = 0 if apodization is None else apodization.shape[1]
    size, signed = TYPES[spectra.dtype.str[1:]]
    files, entries = {}, []
    for at in range(0, n, each):
        name = f"data{separator}Spectral{at // each}.data"
        frames = [spectra[i] if apodization is None else np.concatenate([apodization[i], spectra[i]]) for i in range(at, at + each)]
        files[name] = np.concatenate(frames).astype(spectra.dtype.newbyteorder("<")).tobytes()
        regions = f' ApoRegionStart0="0" ApoRegionEnd0="{apo}"' if apo else ""
        entries.append(f'<DataFile Type="Raw" SizeZ="{samples}" SizeX="{apo + lines}" SizeY="{each}" BytesPerPixel="{size}"{regions}'
                       f' ScanRegionStart0="{apo}" ScanRegionEnd0="{apo + lines}">data\\Spectral{at // each}.data</DataFile>')
    for name, values in {**({"Chirp": chirp} if chirp is not None else {}), **(more or {})}.items():
        files[f"data{separator}{name}.data"] = values.astype("<f4").tobytes()
        entries.append(f'<DataFile Type="Real" SizeZ="{values.shape[-1]}" BytesPerPixel="4">data\\{name}.data</DataFile>')
    text = f"""<?xml version="1.0" encoding="utf-8"?>
<Ocity version="1.0">
 <Acquisition><IntensityAveraging><Spectra>1</Spectra><AScans>{averaging[0]}</AScans></IntensityAveraging>
  <SpeckleAveraging><SlowAxis>{averaging[1]}</SlowAxis></SpeckleAveraging><RefractiveIndex>1.000000</RefractiveIndex></Acquisition>
 <Instrument><Model>Ganymede</Model><BytesPerPixel>{size}</BytesPerPixel><RawDataIsSigned>{signed}</RawDataIsSigned>
  <BinaryToElectronCountScaling>4.0</BinaryToElectronCountScaling></Instrument>
 <DataFiles><DataFile Type="Colored" SizeZ="480" SizeX="640">data\\VideoImage.data</DataFile>{''.join(entries)}</DataFiles>
</Ocity>"""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("Header.xml", text if header is None else header)
        for name, content in files.items():
            archive.writestr(name, content)


def octproz(path, spectra, *, bits=12, buffer=None, processing=(), changes=()):
    """NAME_raw.raw and NAME_meta.txt of OCTproZ. buffer: B-scans of a buffer, all of them without; processing: lines"""
    n, lines, samples = spectra.shape
    spectra.astype(spectra.dtype.newbyteorder("<")).tofile(path)
    text = "\r\n".join([
        "[General]", "timestamp=20250427_153045123", "", "[processing]", "flip_bscans=false", "resampling=false", *processing, "",
        "[Virtual%20OCT%20System]", f"bit_depth={bits}", "buffers_from_file=1", "buffers_per_volume=1", f"depth={buffer or n}",
        "file_path=C:/volume.raw", f"height={lines}", f"width={samples}", ""])
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    settings = path[:-len("_raw.raw")] + "_meta.txt"
    with open(settings, "w", encoding="ascii", newline="") as file:
        file.write(text)
    return settings


def unp(path, spectra, *, volumes=1, changes=()):
    """NAME.unp and NAME.xml"""
    n, lines, samples = spectra.shape
    spectra.astype("<u2").tofile(path)
    text = f"""<?xml version="1.0" encoding="utf-8"?>
<MonsterList><Monster><Time Data_Acquired_at="11/17/2015 4:21:01 PM" />
 <Volume_Size Width="{samples}" Height="{lines}" Number_of_Frames="{n // volumes}" Number_of_Volumes="{volumes}" />
 <Dispersion_Parameters C2="1.3E-05" C3="0" /></Monster></MonsterList>"""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    settings = os.path.splitext(path)[0] + ".xml"
    with open(settings, "w", encoding="utf-8") as file:
        file.write(text)
    return settings
