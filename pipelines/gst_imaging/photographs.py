# SPDX-License-Identifier: LGPL-2.1-or-later
"""The photographs of one view: the files of a folder, and the line of a light file that belongs to each."""
import collections
import json
import os
import re
import unicodedata

from . import library
from .command import UNREADABLE, WRONG_USE, Failure

CURL_BLOCK, FEWEST_BLOCKS = 4, 20  # pixels, whose noise is averaged; blocks
BRIGHT, FAINT = 99.9, 0.01  # percentile of the samples, and the part of full scale below which it is too dark
NOISE = 0.005  # part of the samples of a photograph that read noise may make negative
OF_EACH_LIGHT = "directions", "positionsSphere", "positions3d", "ledAdjust", "images"  # arrays of a .dome file
BESIDE = "mask", "dark", "white"  # files that are found by their name


def stem(name):
    """As names are compared: without folders of either kind, case and extension, and accents composed (NFC), which macOS writes apart."""
    return unicodedata.normalize("NFC", os.path.splitext(re.split(r"[/\\]", name.strip().strip('"'))[-1])[0]).lower()


def listed(names, most=5):
    """Names in a sentence."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def load_text(path):
    """Returns: the bytes of a list of lights or of numbers"""
    content = library.load_text(path)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Failure(UNREADABLE, f"{path} is text in UTF-16. Save it as UTF-8, or as plain text.")
    return content


def numbered_lines(path):
    """Generates the number and the text of each line of a file, without comments and empty lines. Names may be of any encoding"""
    for number, line in enumerate(load_text(path).decode("utf-8-sig", "surrogateescape").splitlines(), 1):
        text = line.split("#")[0].strip()
        if text:
            yield number, text


def lines_of(path):
    return [text for _number, text in numbered_lines(path)]


def extensions():
    """Returns: the extensions of pictures that this build reads"""
    library.functions_of()  # a Failure without the plug-ins
    about = json.loads(library.describe(library.gstreamer()))
    return {extension for form in about["formats"] if form["read"] for extension in form["extensions"].split()}


def files_of(folder, extension=None, warn=None):
    """Returns: the pictures of a folder in natural order, and {name: paths} of the files of BESIDE"""
    try:
        names = sorted((name for name in os.listdir(folder) if not name.startswith(".")), key=library.natural)
    except OSError as error:
        raise Failure(UNREADABLE, f"{folder} cannot be read: {error.strerror}.") from error
    readable = extensions()
    known = {extension.lower().lstrip(".")} if extension else readable
    found, beside = [], {}
    for name in names:
        path, form = os.path.join(folder, name), os.path.splitext(name)[1][1:].lower()
        is_beside = stem(name) in BESIDE and form in readable
        if os.path.isdir(path) or not is_beside and form not in known:
            continue
        if not os.path.isfile(path):
            if warn:
                warn(f"{name} is a pipe, a device or a broken link. It is not used.")
        elif is_beside:
            beside.setdefault(stem(name), []).append(path)
        else:
            found.append(path)
    return found, beside


def no_pictures(folder, extension=None):
    """Returns: the Failure for a folder without pictures, with the kinds of its files"""
    kinds = sorted({os.path.splitext(name)[1].lower() for name in os.listdir(folder) if stem(name) not in BESIDE} - {""}, key=library.natural)
    what = f" {extension}" if extension else " that can be read"
    return Failure(UNREADABLE, f"{folder} has no pictures{what}{f'; its files are {listed(kinds)}' if kinds else ''}.")


def only(beside, name, folder):
    """Returns: the file of this name of files_of(), or None"""
    paths = beside.get(name, [])
    if len(paths) > 1:
        raise Failure(WRONG_USE, f"{folder} has {len(paths)} files that are called {name}, {listed(map(os.path.basename, paths))}: name the one to"
                                 f" use with --{name}.")
    return paths[0] if paths else None


def check_different(entries, folder, warn):
    """Tells of photographs that are one file under two names. entries: of the inputs of a report"""
    by_hash = collections.defaultdict(list)
    for entry in entries:
        by_hash[entry["sha256"]].append(os.path.basename(entry["path"]))
    if len(by_hash) == 1:
        raise Failure(UNREADABLE, f"All {len(entries)} photographs of {folder} are the same picture. Copy those of each light again.")
    for names in by_hash.values():
        if len(names) > 1:
            warn(f"{listed(names)} are the same picture, and have lights of their own, so that all but one are wrong. Copy them again, or leave them out.")


def curl(np, normals):
    """normals: [height, width, 3], y up, 0 where there is none. Returns: the rms of the curl of their slopes, as a part of the rms
    of all changes of the slopes: 0 for a surface, some tenths with noise, above where lights are turned or mirrored, which
    residuals do not show; None for few normals"""
    height, width = (n // CURL_BLOCK for n in normals.shape[:2])
    blocks = normals[:height * CURL_BLOCK, :width * CURL_BLOCK].reshape(height, CURL_BLOCK, width, CURL_BLOCK, 3)
    there = blocks.any(-1).all((1, 3))
    mean = blocks.sum((1, 3), dtype=float)
    there &= mean[..., 2] > 0.1 * np.linalg.norm(mean, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = -mean[..., 0] / mean[..., 2], -mean[..., 1] / mean[..., 2]
    good = there[:-1, :-1] & there[1:, :-1] & there[:-1, 1:] & there[1:, 1:]
    if good.sum() < FEWEST_BLOCKS:
        return None
    along_x = [(f[:-1, 1:] + f[1:, 1:] - f[:-1, :-1] - f[1:, :-1])[good] for f in (p, q)]
    along_y = [(f[:-1, :-1] + f[:-1, 1:] - f[1:, :-1] - f[1:, 1:])[good] for f in (p, q)]
    changes = np.mean([change ** 2 for change in along_x + along_y]) * 4
    return float(np.sqrt(np.mean((along_y[0] - along_x[1]) ** 2) / changes)) if changes > 0 else 0.0


def separated(line):
    """A line of a light file with spaces in the place of semicolons, and of commas where these cannot be decimal signs"""
    line = line.replace(";", " ").strip()
    return line if re.search(r",\S", line) and re.search(r"\s", line) else line.replace(",", " ").strip()


def check_name(path):
    """Fails for a photograph whose name a line of an .lp file cannot have, as it would be read as another"""
    name = os.path.basename(path)
    words = separated(f"{name} 0 0 1".split("#")[0]).split()
    if "\n" in name or stem(" ".join(words[:-3])) != stem(path):
        raise Failure(UNREADABLE, f"The name {name!r} in {os.path.dirname(path)} cannot be in a light file, where a #, a quote, a semicolon, a tab, and spaces in front or"
                                  " one after the other have a meaning of their own. Rename the photograph, also that of the object.")


class Lights:
    """A light file: its lines as they are, and the name of the picture that each is for, where it has names."""

    def __init__(self, path):
        self.path, self.form, self.names = path, os.path.splitext(path)[1][1:].lower(), None
        self.unequal = ""  # how many names and lights there are, where this differs
        content = load_text(path)
        self.vectors, self.colours, self.are_directions = library.parse_lights(content, path)
        text = content.decode("utf-8-sig", "surrogateescape")
        self.is_json = text.lstrip().startswith("{")
        if self.is_json:
            self.take_json(text)
        else:
            self.take_lines(text)

    def take_json(self, text):
        try:
            read = json.loads(text)
            if "lights" in read:  # AliceVision's, in the order of its pictures, which only its project names
                self.form = "txt"
                self.lines = [" ".join(map(repr, [*vector, *colour])) for vector, colour in zip(self.vectors, self.colours)]
                return
            keys = {"spherical": "positionsSphere", "lights3d": "positions3d"}
            self.check_arrays(read)
            self.form, self.dome, self.lines = "dome", read, read[keys.get(read.get("lightConfiguration"), "directions")]
            names = [image.get("filename") if isinstance(image, dict) else image for image in read.get("images") or []]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise Failure(UNREADABLE, f"{self.path} is no .dome file, and none of AliceVision: {type(error).__name__}: {error}.") from error
        nameless = next((i for i, name in enumerate(names) if not isinstance(name, str)), None)
        if nameless is not None:
            raise Failure(UNREADABLE, f'{self.path}, image {nameless + 1} of "images" has no name: it has to be text, or an entry with the text "filename".')
        if names:
            self.names = [[name] for name in names[:len(self.lines)]] + [[]] * (len(self.lines) - len(names))
        if len(names) not in (0, len(self.lines)):
            self.unequal = f"{self.path} has {len(names)} names in \"images\" and {len(self.lines)} lights"

    def check_arrays(self, dome):
        wrong = next((key for key in OF_EACH_LIGHT if not isinstance(dome.get(key) or [], list)), None)
        if wrong:
            raise Failure(UNREADABLE, f'{self.path}: "{wrong}" has to be an array, with an entry for each light. Correct it, or take it out.')

    def take_lines(self, text):
        lines = [line for line in (separated(line.split("#")[0]) for line in text.split("\n")) if line]
        has_count = len(lines[0].split()) == 1
        self.lines = lines[1:] if has_count else lines
        if not has_count or all(len(line.split()) == 3 for line in self.lines):
            self.form, self.names = "txt", self.names_beside()
        else:
            # "name x y z", or "name x y z red green blue": a name may end in numbers, so both are tried
            self.form, self.names = "lp", [[" ".join(line.split()[:-n]) for n in (3, 6) if len(line.split()) > n] for line in self.lines]

    def names_beside(self):
        """DiLiGenT's filenames.txt has the names for its plain lists."""
        path = os.path.join(os.path.dirname(self.path), "filenames.txt")
        if not os.path.isfile(path):
            return None
        names = " ".join(lines_of(path)).split()
        return [[name] for name in names] if len(names) == len(self.lines) else None

    def values(self, np, chosen):
        """Returns: x y z as they are in the file, and red green blue, 1 where the file has none, of the lights `chosen`"""
        return np.array(self.vectors)[chosen], np.array(self.colours)[chosen]

    def mean_distance(self, np, chosen):
        """Returns: of lamps in mm; None of directions"""
        return None if self.are_directions else float(np.linalg.norm(self.values(np, chosen)[0], axis=1).mean())

    def place(self, number):
        """Returns: in words where light `number` stands in the file"""
        if self.is_json:
            return f"{self.path}, light {number + 1}"
        numbers = [line for line, _text in numbered_lines(self.path)][-len(self.lines):]
        return f"{self.path}, line {numbers[number]}"

    def mm_per_pixel(self, width, warn):
        """Returns: of pictures this wide, where a .dome file has their width in mm, and not 0; else None"""
        mm = self.dome.get("imageWidth") if self.form == "dome" else None
        if isinstance(mm, (int, float)) and not isinstance(mm, bool) and 0 < mm < float("inf"):
            return float(mm) / width
        if mm not in (None, 0) or mm is False:
            warn(f'{os.path.basename(self.path)}: the "imageWidth" {json.dumps(mm)} is no number of mm above 0, and is not used. Correct it, or give --mm-per-pixel.')
        return None

    def directions(self, np, chosen):
        """Returns: the same as vectors of length 1"""
        vectors = self.values(np, chosen)[0]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def write(self, path, chosen):
        """Only the lights `chosen`, in their order."""
        if self.form == "dome":
            dome = dict(self.dome)
            for key in OF_EACH_LIGHT:
                if len(dome.get(key) or []) == len(self.lines):
                    dome[key] = [dome[key][i] for i in chosen]
            text = json.dumps(dome)
        else:
            text = "".join(f"{line}\n" for line in ([len(chosen)] if self.form == "lp" else []) + [self.lines[i] for i in chosen])
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)


def choose_one(names, by_stem):
    """Returns: the file for a light of one of these names; None, or a Failure where two have an equal right"""
    for name in names:
        found = by_stem.get(stem(name), [])
        exact = [path for path in found if os.path.basename(path).lower() == re.split(r"[/\\]", name)[-1].lower()]
        if len(found) == 1 or len(exact) == 1:
            return (exact or found)[0]
        if found:
            forms = ", ".join(os.path.splitext(path)[1] for path in found)
            raise Failure(WRONG_USE, f"{os.path.dirname(found[0])} has {stem(name)} as {forms}: --extension chooses one,"
                                     f" as --extension {os.path.splitext(found[0])[1][1:]}.")
    return None


def match(lights, files, by_order, warn):
    """Returns: [(index of the light, path)] in the order of the lights"""
    folder = os.path.dirname(files[0]) if files else "the folder"
    if by_order or not lights.names:
        if len(files) != len(lights.lines):
            raise Failure(UNREADABLE, f"{folder} has {len(files)} pictures, and {lights.path} has {len(lights.lines)} lights"
                                      f"{'' if by_order else ' without names'}: which belong together cannot be told.")
        return list(enumerate(files))
    by_stem = collections.defaultdict(list)
    for path in files:
        by_stem[stem(path)].append(path)
    pairs = [(i, choose_one(names, by_stem)) for i, names in enumerate(lights.names)]
    missing = [lights.names[i][0] if lights.names[i] else f"light {i + 1}" for i, path in pairs if not path]
    pairs = [(i, path) for i, path in pairs if path]
    if not pairs:
        raise Failure(UNREADABLE, f"No picture of {folder} has a name of {lights.path}, as {lights.names[0][0]}."
                                  " With --by-order the pictures are taken in natural order.")
    used = [path for _i, path in pairs]
    twice = next((path for path in used if used.count(path) > 1), None)
    if twice:
        raise Failure(UNREADABLE, f"{lights.path} has two lights for {os.path.basename(twice)}.")
    extra = [os.path.basename(path) for path in files if path not in used]
    if extra and lights.unequal:
        raise Failure(UNREADABLE, f"{listed(extra)} of {folder} {'has' if len(extra) == 1 else 'have'} no light, because {lights.unequal}. Correct the file, move"
                                  " the photographs away, or give --by-order.")
    if lights.unequal:
        warn(f"{lights.unequal}: each name is taken to be of the light at the same place.")
    if missing:
        warn(f"{len(missing)} of {len(lights.lines)} lights {'has' if len(missing) == 1 else 'have'} no picture: {listed(missing)}. The others are used.")
    if extra:
        lack = "1 picture has" if len(extra) == 1 else f"{len(extra)} pictures have"
        warn(f"{lack} no light in {os.path.basename(lights.path)} and {'is' if len(extra) == 1 else 'are'} not used: {listed(extra)}.")
    return pairs


turned_as_others = {}  # orientations after reading, of photographs whose own is not that of their set


def orientation(path):
    """Returns: how a picture must be turned, 1 to 8 as in EXIF; 1 where it need not be, or was on reading"""
    own = library.Arrays().orientation(path) if path.lower().endswith((".tif", ".tiff")) else 1
    return turned_as_others.get(path, own)


def told_orientation(path):
    """Returns: what the EXIF data of a photograph say, 1 to 8; 0 where they say nothing"""
    return library.Arrays().about(path)[2] or orientation(path)


def turn_as_others(kinds, warn):
    """Turns photographs of one set as most of them are: its camera does not move, but one that looks down may take any side for the top.
    kinds: of each path; a photograph that another program turned has another size in its file, and stays as it is"""
    for path in kinds:
        turned_as_others.pop(path, None)
    told = {path: told_orientation(path) for path in kinds}
    applied = {path: n if orientation(path) == 1 else 1 for path, n in told.items()}
    stored = {path: upright_kind(kind, applied[path]) for path, kind in kinds.items()}
    (usual, size), n = collections.Counter((told[path], stored[path]) for path in kinds).most_common(1)[0]
    others = [path for path in kinds if told[path] != usual and stored[path] == size]
    if not others or 2 * n <= len(kinds):
        return
    square = library.numpy().arange(4).reshape(2, 2)
    for path in others:
        turned_as_others[path] = next(turn for turn in range(1, 9) if (
            upright(upright(square, applied[path]), turn) == upright(square, usual)).all())
    words = [f"{os.path.basename(path)} ({told[path]})" for path in others]
    warn(f"{len(others)} of {len(kinds)} pictures have another EXIF orientation than the others, which have {usual}: {listed(words)}. They are turned"
         " as the others, because the camera must not move. If it did, leave them out.")


def upright_kind(kind, turn):
    dtype, shape = kind
    return dtype, (shape[1], shape[0], *shape[2:]) if turn >= 5 and len(shape) > 1 else shape


def upright(values, turn):
    """[height, width(, channels)], turned as an orientation of EXIF says"""
    values = values.swapaxes(0, 1) if turn >= 5 else values
    values = values[:, ::-1] if turn in (2, 3, 6, 7) else values
    return values[::-1] if turn in (3, 4, 7, 8) else values


def same_kind(pairs, warn):
    """Returns: (pairs of the most usual size and type, its height and width)"""
    arrays, kinds, faults = library.Arrays(), {}, collections.defaultdict(list)
    for _i, path in pairs:
        try:
            kind = arrays.kind(path)
            if len(kind[1]) > 3 or kind[1][2:] > (4,):
                raise Failure(UNREADABLE, f"{path} holds {kind[1][0]} pictures, and a photograph is one: write each to a file of its own.")
            check_channels(path, kind[1])
            kinds[path] = kind
        except Failure as failure:
            faults[str(failure).replace(path, "")].append((path, failure))
    for (_path, failure), *same in faults.values():
        others = f" The same holds for {len(same)} more: {listed(os.path.basename(path) for path, _failure in same)}. They are" if same else " It is"
        warn(f"{failure}{others} not used.")
    if not kinds:
        raise Failure(UNREADABLE, "None of the pictures can be read.")
    turn_as_others(kinds, warn)
    kinds = {path: upright_kind(kind, orientation(path)) for path, kind in kinds.items()}
    usual = collections.Counter(kinds.values()).most_common(1)[0][0]
    others = [path for path, kind in kinds.items() if kind != usual]
    if others:
        words = [f"{os.path.basename(path)} ({describe(kinds[path])})" for path in others]
        differ = "1 picture differs" if len(others) == 1 else f"{len(others)} pictures differ"
        warn(f"{differ} from the others, which are {describe(usual)}, and {'is' if len(others) == 1 else 'are'} not used: {listed(words)}.")
    return [pair for pair in pairs if kinds.get(pair[1]) == usual], usual[1][:2]


def check_colours(path, shape):
    """Fails for samples that are neither grey nor RGB."""
    if shape[2:] == (4,) and path.lower().endswith((".jpg", ".jpeg", ".jpe")):
        raise Failure(UNREADABLE, f"{path} is CMYK. Save it as RGB.")
    if path.lower().endswith((".tif", ".tiff")):
        colours = dict(library.Arrays().cards_of(path)).get("PhotometricInterpretation")
        if colours == "WhiteIsZero":
            raise Failure(UNREADABLE, f"{path} is a negative, whose 0 is white (WhiteIsZero). Save it so that 0 is black.")
        if colours:
            raise Failure(UNREADABLE, f"{path} is {colours}. Save it as RGB.")


def check_channels(path, shape):
    """Fails for what no video holds, for samples that are neither grey nor RGB, and for an animation."""
    if shape[2:] == (2,):
        raise Failure(UNREADABLE, f"{path} is grey with alpha. Save it without alpha.")
    check_colours(path, shape)
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    if head.startswith(b"\x89PNG") and b"acTL" in head.split(b"IDAT")[0]:
        raise Failure(UNREADABLE, f"{path} is animated, and a photograph is one picture: write each to a file of its own.")


def without_damaged(paths, warn):
    """Returns: the pictures that can be read to their end; same_kind() reads the beginning only, which takes less time"""
    arrays, good = library.Arrays(), []
    for path in paths:
        try:
            arrays.read(path)
            good.append(path)
        except Failure as failure:
            warn(f"{failure} It is not used.")
    return good


def describe(kind):
    dtype, shape = kind
    return f"{dtype} {shape[1]} x {shape[0]}" + (f" with {shape[2]} channels" if len(shape) > 2 else "") if len(shape) > 1 \
        else f"{dtype} {list(shape)}"


def read(path):
    """Returns: all of an array or a picture, upright"""
    return upright(library.Arrays().read(path), orientation(path))


class Samples:
    """Pictures that no video holds as they are: other types than u8 and u16 are scaled to u16, and all are turned upright."""

    def __init__(self, paths, unknown_is_clipped=False):
        """unknown_is_clipped: what is no number (NaN) is full scale, which photostereo leaves out; else it is black"""
        self.paths, kinds = paths, {library.Arrays().kind(path)[0] for path in paths}
        self.is_scaled = not kinds <= {"u8", "u16"}
        self.are_plain = not self.is_scaled and all(orientation(path) == 1 and path.isprintable() for path in paths)  # as a pipeline holds them
        self.largest, self.unknown_is_clipped, self.doubts = None, unknown_is_clipped, []

    def find_largest(self, np):
        """Sets what becomes 65535: 1 of floats that stay below it, else the largest sample of all pictures."""
        parts = []
        for path in self.paths:
            values = read(path)
            if values.dtype.kind not in "fiu":
                raise Failure(UNREADABLE, f"{path} has samples of {values.dtype}: pictures have whole or real numbers.")
            finite = np.append(values[np.isfinite(values)], 0)
            negative = (values < 0).mean()
            parts.append((float(finite.max()), float(np.percentile(finite, BRIGHT)), np.isnan(values).mean(), negative * (negative > NOISE)))
        largest, bright, unknown, negative = np.array(parts).T
        self.largest = 1.0 if values.dtype.kind == "f" and largest.max() <= 1 else float(largest.max())
        black = "become black. If the files have an offset, add a constant to all photographs and the dark frame, so that no sample is negative."
        for shares, what in ((unknown, f"are no numbers (NaN), and count as {'clipped' if self.unknown_is_clipped else 'black'}."),
                             (negative, f"are negative, and {black}")):
            if shares.any():
                self.doubts.append(f"{100 * shares.mean():.3g} % of the samples of the photographs, {100 * shares.max():.3g} % of those of"
                                   f" {os.path.basename(self.paths[shares.argmax()])}, {what}")
        if self.largest > 1 and np.median(bright) < FAINT * self.largest:
            self.doubts.append(f"The largest sample of {os.path.basename(self.paths[largest.argmax()])} is {self.largest:g}, which becomes full scale, and"
                               f" {BRIGHT} % of the samples of most photographs are below {np.median(bright):.3g}, so that they are dark. Set hot or damaged pixels"
                               " to the values beside them, or leave out the photograph.")

    def tell(self, made):
        """What was found on scaling."""
        for doubt in self.doubts:
            made.warn(doubt)
        if self.largest is not None:
            made.report.fact("full scale", f"{self.largest:g}, the sample that becomes 65535")

    def convert(self, np, path):
        """Returns: u8 or u16. What is negative is black."""
        values = read(path)
        check_channels(path, values.shape)  # also of sheets and frames
        if values.dtype in (np.uint8, np.uint16) or not self.is_scaled:
            return values
        if self.largest is None:
            self.find_largest(np)
        unknown = self.largest if self.unknown_is_clipped else 0
        scaled = np.nan_to_num(values.astype(float), nan=unknown, posinf=self.largest, neginf=0) * (65535 / (self.largest or 1))
        return np.rint(np.clip(scaled, 0, 65535)).astype(np.uint16)

    def integers(self, np, path):
        """Returns: as convert(), for what counts in full scales of the photographs"""
        values = self.convert(np, path)
        if values.dtype.kind != "u":
            raise Failure(UNREADABLE, f"{path} has samples of {values.dtype}, whose full scale nobody knows beside photographs of 8 or 16"
                                      " bits. Write it in their type.")
        return values

    def playable(self, np, made):
        """Returns: files for picturesrc, those of the Job for pictures that are not plain; remove() deletes these"""
        if self.are_plain:
            return [os.path.abspath(path) for path in self.paths]
        doubt = library.Arrays().doubt(self.paths[0])  # which picturesrc tells of plain ones
        if doubt:
            made.warn(doubt)
        for i, path in enumerate(self.paths):
            np.save(made.path(f"picture{i}.npy"), np.ascontiguousarray(self.convert(np, path)))
        self.tell(made)
        return [made.path(f"picture{i}.npy") for i in range(len(self.paths))]

    def remove(self, made):
        for i in range(0 if self.are_plain else len(self.paths)):
            os.remove(made.path(f"picture{i}.npy"))


def read_mask(np, path, size):
    """Returns: u8 [height, width], 1 where any colour of a picture is not 0, in JPEG above half of its largest sample; alpha is no colour"""
    values = read(path)
    check_colours(path, values.shape)
    if values.ndim == 3:
        values = values[..., :values.shape[2] - (values.shape[2] in (2, 4))].max(-1)
    if values.shape != tuple(size):
        raise Failure(UNREADABLE, f"The mask {path} is {values.shape[-1]} x {values.shape[0]}, and the pictures are"
                                  f" {size[1]} x {size[0]}. It has to have their size.")
    if not values.any():
        raise Failure(UNREADABLE, f"The mask {path} is black: it should be white on the object.")
    if path.lower().endswith((".jpg", ".jpeg", ".jpe")):  # whose edges ring in the black beside them
        return (values > values.max() / 2).astype(np.uint8)
    return (np.nan_to_num(values) != 0).astype(np.uint8)
