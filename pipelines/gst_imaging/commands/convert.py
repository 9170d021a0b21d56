# SPDX-License-Identifier: LGPL-2.1-or-later
"""Converts an array or a picture to another format, without a change of its samples.

Reads .npy, PNM, PFM, PNG, TIFF, FITS, OpenEXR, JPEG, camera RAW and recordings of OCT; writes all but the last three. What the input holds
decides how it is read, the extension of the output how it is written. Samples are never scaled or rounded: a format
that cannot hold their type or shape is refused with a sentence that names those that can. A folder, or a name with *
or ?, or with a number, as frame%05d.png, in quotes, is taken in natural order as one array; an output with a number in its name, as frame%05d.png, is a file for each frame.
Of a file with several pictures --part takes one.
What the input tells beside its samples (cards of FITS, tags of TIFF, text of PNG, attributes of OpenEXR) is written as far as the
output has a place for it. The rest is named in a warning, and as "lost" with --json. Quantity, unit and axes go with it in the way of the
output's format, and the .json of picturesink beside the input becomes one beside the output; .npy, PNM and PFM get such a file.
"""
import json
import os
import sys

from .. import headers, library
from ..command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure, Stopped, whole
from ..frames.files import is_several

EXAMPLES = [
    ("dark.fits dark.npy", "a FITS frame as NumPy array"),
    ("volume.npy volume.tif", "a cube as TIFF with a page a frame"),
    ("picture.nef picture.tif", "camera RAW as linear 16 bits"),
    ("photographs/ set.npy", "all pictures of a folder as one array"),
    ("volume.tif slice%04d.png", "each page as a file of its own"),
    ("--part 2 mouse.oct chirp.npy", "the chirp in a recording of Thorlabs; without --part the spectra"),
    ("--part 1 image.fits error.fits", "the second picture: ERR of SCI, ERR, DQ"),
]


def add_arguments(parser):
    parser.add_argument("input", metavar="IN")
    parser.add_argument("output", metavar="OUT")
    parser.add_argument("--part", type=int, default=-1, metavar="N", help="the picture to take, from 0 on: of FITS the units"
                        " that have one, of TIFF the pages, of OpenEXR the parts, of .oct and .npz the arrays"
                        " (default: all pages, of FITS the first unit, of .oct the spectra)")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT also where it is a file with the extension of IN")


def is_numbered(path):
    return library.numbered(os.path.basename(path)) is not None


def is_series(path):
    """A name with the place of a number, as picturesink had it"""
    return not os.path.exists(path) and is_numbered(path)


def inputs_of(path):
    """Returns: the files that an input stands for, as picturesrc takes them"""
    files, notes = library.list_files(path)
    for note in notes:
        print(note, file=sys.stderr)
    return files


def check_quantities(quantities, file, first, first_file):
    """The output has one quantity: that of the first page would be wrong for samples of another one."""
    for page, told in enumerate(quantities):
        differ = [member for member in sorted(first | told, key=lambda member: (member != "unit", member)) if first.get(member) != told.get(member)]
        if differ:
            names = [member for member in differ if member.endswith(("name", "unit"))]
            where, member = f"page {page} of {file}" if page else file, (names or differ)[0]
            raise Failure(UNREADABLE, f"{where}: {member} is {told.get(member, 'not known')}, and {first.get(member, 'not known')} in"
                                      f" {first_file}. One array has one quantity: convert each file alone"
                          + (", or use picturesrc ! picturesink, which writes the numbers of each frame." if not names else "."))


def read_all(arrays, np, files, is_one_quantity):
    """Returns: one array; several files are its first dimension"""
    parts, first = [], None
    for file in files:
        quantities = [] if is_one_quantity else None
        pages = []
        for shape, _start, values in arrays.pages(file, quantities):
            if quantities and not pages:
                first = quantities[0] if first is None else first
                check_quantities(quantities, file, first, files[0])
            pages.append((shape, values.copy()))
        parts.append(np.concatenate([values for _shape, values in pages]).reshape(pages[0][0]))
        if (parts[-1].dtype, parts[-1].shape) != (parts[0].dtype, parts[0].shape):
            raise Failure(UNREADABLE, f"{file} is {parts[-1].dtype} {list(parts[-1].shape)}, and {files[0]} is"
                                      f" {parts[0].dtype} {list(parts[0].shape)}: they do not fit into one array.")
    return parts[0] if len(parts) == 1 else np.stack(parts)


def check_copy(options):
    """Of two photographs that a shell makes of *.png, the second would be replaced by the first."""
    form = os.path.splitext(options.output)[1].lower()
    if not options.overwrite and os.path.isfile(options.output) and os.path.splitext(options.input)[1].lower() == form:
        raise Failure(WRONG_USE, f"{options.output} is there, and a copy of {options.input} would replace it. Was OUT forgotten?"
                                 " --overwrite replaces it.")


def later_of_series(options, names):
    """Returns: files with the next numbers, of an earlier series, that are read as frames of this one"""
    folder, name = os.path.split(options.output)
    later = []
    while os.path.isfile(path := os.path.join(folder, library.numbered(name, [len(names) + len(later)])[0])):
        later.append(path)
    return later


def check_series(options, files, names):
    """Returns: files of an earlier series to remove"""
    later = later_of_series(options, names)
    if later and not options.overwrite:
        raise Failure(WRONG_USE, f"{later[0]}{f' and {len(later) - 1} more' if len(later) > 1 else ''} would be read as frames of this series, which has"
                                 f" {len(names)}. --overwrite removes them.")
    there = next(filter(os.path.isfile, names), None)
    same = os.path.splitext(files[0])[1].lower() == os.path.splitext(options.output)[1].lower()
    if there and same and is_series(options.input) and not options.overwrite:
        raise Failure(WRONG_USE, f"{there} is there, and a copy of {files[0]} would replace it. --overwrite replaces it.")
    return later


def outputs_of(options, files, n):
    """Returns: the names to write. None of them may be read."""
    folder, name = os.path.split(options.output)
    names = [options.output]
    if is_numbered(options.output):
        names = [os.path.join(folder, file) for file in library.numbered(name, range(n))]
    for name in names:
        for file in files:
            if os.path.exists(name) and os.path.samefile(name, file):
                raise Failure(WRONG_USE, f"{name} is an input and would be replaced: write to another folder or name.")
    return names


def name_lost(options, result, lost):
    """Adds to a result which cards are not in the output, and warns."""
    if lost:
        result["lost"] = sorted(set(lost))
        shown = ", ".join(result["lost"][:12]) + (f' and {len(result["lost"]) - 12} more' if len(result["lost"]) > 12 else "")
        print(f"{options.output} does not carry over from {options.input}: {shown}. Keep the input, too.", file=sys.stderr)


def with_origin(told, cards):
    """What made the samples is told as well, where the quantity is."""
    from .. import metadata

    return told | {key: value for key, value in cards if key in metadata.ORIGIN} if told else told


def quantity_of(told):
    """Returns: members of the meta as a sidecar has them"""
    from .. import metadata

    quantity = {key: told[key] for key in ("name", "unit") if key in told}
    quantity |= {key: float(told[key]) for key in ("scale", "offset") if key in told}
    quantity |= {key: told[key] for key in metadata.ORIGIN if key in told}
    quantity["axes"] = metadata.axes_of(told)
    return quantity


def load_sidecar(path):
    """Returns: what picturesink wrote there; {} for no file, None for one of somebody else"""
    from .. import metadata

    try:
        sidecar = metadata.read_json(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return sidecar if isinstance(sidecar, dict) and sidecar.get("schema") == library.SIDECAR_SCHEMA else None


def sidecar_of_input(arrays, array, options, file):
    """Damaged numbers are not told of the output, either."""
    note = arrays.note(array, file)
    if note:
        print(note, file=sys.stderr)
    return load_sidecar(f"{options.input}.json") or {} if options.part < 0 and not note else {}


def of_frames(sidecar, kind, array):
    """Returns: the sidecar of a stack as that of numbered files with a frame each; {} for one of another array"""
    def lengths(shape):
        return [n for n in shape if n != 1]
    quantity = sidecar.get("quantity", {})
    is_about = sidecar.get("complete") is True and sidecar.get("type") == kind and lengths(sidecar.get("shape", ())) == lengths(array.shape)
    if not is_about or sidecar.get("frames") != len(array) or not isinstance(quantity, dict):
        return {}
    if isinstance(quantity.get("axes"), list):
        quantity = {**quantity, "axes": quantity["axes"][:array.ndim - 1]}
    return {**sidecar, "shape": list(array.shape[1:]), "first": 0, **({"quantity": quantity} if quantity else {})}


class Output:
    """For with: the files of the output, which have a sidecar. An older one is removed before the first file is written, so that
    new samples never have older units, and is there again where none was written. A signal tells what is complete."""

    def __init__(self, options, n_files=1):
        self.path, self.sidecar, self.n_files = options.output, f"{options.output}.json", n_files
        self.n_written, self.is_complete = 0, False

    def __enter__(self):
        return self

    def remove_sidecar(self):
        """Returns: what it held; None where none of ours is there"""
        try:
            if not load_sidecar(self.sidecar):
                return None
            with open(self.sidecar, "rb") as file:
                before = file.read()
            os.remove(self.sidecar)
            return before
        except OSError as error:
            raise Failure(NOT_WRITTEN, f"{self.sidecar} cannot be removed: {error.strerror}. Nothing is written, as new samples"
                                       " would have its units.") from error

    def save(self, arrays, array, name):
        with whole():
            before = None if self.n_written else self.remove_sidecar()
            try:
                arrays.save(array, name)
            except Failure:
                if before is not None:
                    with open(self.sidecar, "wb") as file:
                        file.write(before)
                raise
            self.n_written += 1

    def __exit__(self, _kind, error, _place):
        if isinstance(error, Stopped):
            if self.is_complete:
                error.sentence = f"Complete: {self.path}."
            elif self.n_written:
                error.sentence = f"{self.n_written} of {self.n_files} files are written, without {self.sidecar}: run the command again."
            else:
                error.sentence = "Nothing was written."


def write_sidecar(options, sidecar, told, result, n_files):
    """@sidecar: that of the input, which is about the same samples; else what the header tells where the output has no place for it.
    @n_files: numbered ones; 0 for one file. Returns: is it there?"""
    if not sidecar and told and not library.has_cards(options.output):
        frames = n_files or (result["shape"][0] if len(result["shape"]) > 2 else 1)
        sidecar = {"schema": library.SIDECAR_SCHEMA, "file": "", "type": result["type"], "shape": result["shape"], "first": 0, "frames": frames,
                   "complete": True, "quantity": quantity_of(told)}
    path = f"{options.output}.json"
    if sidecar and load_sidecar(path) is None:
        print(f"{path} is there and no sidecar of picturesink: it stays.", file=sys.stderr)
        return False
    if sidecar:
        sidecar["file"] = os.path.basename(options.output)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(sidecar, file, indent=2)
            file.write("\n")
    return bool(sidecar)


def name_flags(output):
    """Returns: the file of flags that picturesink would write beside this one"""
    base, extension = os.path.splitext(output)
    return f"{base}-flags{'.npy' if extension.lower() in ('.exr', '.pfm') else extension}"


def convert_flags(options, sidecar):
    """Slopes without their flags have no bad cells. Returns: a list with "flags" where they are not beside the output"""
    if not isinstance(sidecar.get("flags"), str):
        return []
    flags = os.path.join(os.path.dirname(options.input), os.path.basename(sidecar.pop("flags")))
    target = name_flags(options.output)
    if is_numbered(options.output) or not os.path.isfile(flags):
        return ["flags"]
    arrays = library.Arrays()
    if os.path.exists(target) and (os.path.samefile(target, flags) or arrays.kind(target)[0] != "u8"):
        print(f"{target} is there and holds no flags, which would be written to this name: it stays.", file=sys.stderr)
        return ["flags"]
    array = arrays.load(flags)
    try:
        arrays.translate(array, flags, target)
        arrays.save(array, target)
    finally:
        arrays.free(array)
    sidecar["flags"] = os.path.basename(target)
    return []


def tell_of_file(arrays, options, file, result):
    """Names the pictures of a file when one of them was taken without being asked for, and what it may be meant as."""
    doubt = arrays.doubt(file)
    if doubt:
        print(doubt, file=sys.stderr)
    parts = arrays.parts(file) if options.part < 0 else None
    if parts:
        result["parts"] = parts.split("; ")
        print(f"{options.output} has the first picture of {file}; --part takes another one: {parts}", file=sys.stderr)


def has_changes(quantities):
    return any(told != quantities[0] for told in quantities)


def save_frame(arrays, options, output, name, values, i):
    """With the quantity of this frame, which is not that of the others."""
    with arrays.reader(options.input) as (_reader, like):
        arrays.translate(like, options.input, options.output, i)
        arrays.replace_values(like, values)
        output.save(arrays, like, name)


def convert_several(options):
    np = library.numpy()
    arrays = library.Arrays(options.part)
    files = inputs_of(options.input)
    array = read_all(arrays, np, files, is_several(options.input) or is_series(options.input))
    if is_numbered(options.output) and array.ndim < 2:
        raise Failure(WRONG_USE, f"{options.input} is {list(array.shape)} and has no frames to number.")
    names = outputs_of(options, files, len(array))
    later = check_series(options, files, names) if is_numbered(options.output) else []
    frames = array if is_numbered(options.output) else [array]
    result = {"output": options.output, "files": len(names), "type": array.dtype.name, "shape": list(array.shape)}
    tell_of_file(arrays, options, files[0], result)
    like = arrays.load(files[0])
    try:
        before = arrays.cards(like)
        beside = sidecar_of_input(arrays, like, options, files[0])  # which may be that of the output
        if is_numbered(options.output):
            beside = of_frames(beside, library.type_name(np, array), array)
        else:
            arrays.replace_values(like, array)
        told = arrays.translate(like, files[0], options.output, 0 if is_numbered(options.output) else -1)
        cards = arrays.cards(like)
        told = with_origin(told, cards)
        changes = len(files) == 1 and is_numbered(options.output) and has_changes(arrays.quantities_of(files[0]))
        with Output(options, len(names)) as output:
            for i, (name, values) in enumerate(zip(names, map(np.ascontiguousarray, frames))):
                if changes:
                    save_frame(arrays, options, output, name, values, i)
                else:
                    arrays.replace_values(like, values)
                    output.save(arrays, like, name)
            with whole():
                for path in later:
                    os.remove(path)
                lost = convert_flags(options, beside)
                about = {"type": library.type_name(np, array), "shape": list(np.shape(frames[0]))}
                has_sidecar = write_sidecar(options, beside, told, about, len(names))
                output.is_complete = True
    finally:
        arrays.free(like)
    after = library.Arrays().cards_of(names[0])
    name_lost(options, result, lost + headers.find_lost(cards, after, headers.kept_elsewhere(told, has_sidecar, after), options.output)
              + headers.lost_step(before, told, options.output))
    if not options.json:
        print(f'{options.output}: {len(names)} file{"s"[:len(names) > 1]}, {result["type"]} {result["shape"]}')
    return result


def run(options):
    if is_several(options.input) or is_series(options.input) or is_numbered(options.output):
        return convert_several(options)
    arrays = library.Arrays(options.part)
    array = arrays.load(options.input)
    try:
        outputs_of(options, [options.input], 1)
        check_copy(options)
        result = {"output": options.output, "type": arrays.type_name(array),
                  "shape": list(array.contents.dims[:array.contents.n_dims])}
        before = arrays.cards(array)
        beside = sidecar_of_input(arrays, array, options, options.input)  # which may be that of the output
        told = arrays.translate(array, options.input, options.output)
        cards = arrays.cards(array)
        told = with_origin(told, cards)
        with Output(options) as output, whole():  # samples and sidecar: both or none
            output.save(arrays, array, options.output)
            lost = convert_flags(options, beside)
            has_sidecar = write_sidecar(options, beside, told, result, 0)
            output.is_complete = True
    finally:
        arrays.free(array)
    tell_of_file(arrays, options, options.input, result)
    if cards:
        after = library.Arrays().cards_of(options.output)
        lost += headers.find_lost(cards, after, headers.kept_elsewhere(told, has_sidecar, after), options.output) + headers.lost_step(before, told, options.output)
    name_lost(options, result, lost)
    if not options.json:
        print(f'{options.output}: {result["type"]}, {" x ".join(map(str, result["shape"])) or "one value"}')
    return result
