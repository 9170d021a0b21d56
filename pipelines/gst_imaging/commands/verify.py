# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes a file of picturesink once more, and compares.

Beside the file lies its sidecar, FILE.json: it names the source with its hash, the elements with their settings, and
what changed meanwhile. The same version on the same backend has to give the same bits where docs/explanation/numerics.md
promises them; otherwise the results may differ as far as that page says. Of numbered files give the name with the number
in it, as frame%05d.png; frame00003.png compares this file alone.
"""
import datetime
import json
import os
import re
import shlex
import tempfile

from .. import job, library
from ..command import NO_RESULT, UNREADABLE, Failure

EXAMPLES = [
    ("volume.npy", "plays the source again and compares"),
    ("volume.npy --exact", "on the machine of the recording: the same bits, or exit code 1"),
    ("normals%03d.png --json", "numbered files; the result as JSON"),
]

CODES = "exit codes: 0 the same, 1 it differs, or cannot be made here, 2 wrong use, 3 it cannot be repeated"

# How far two results of an element may differ where bits are not promised: of floats, relative to the largest of a page;
# of whole numbers, relative to the largest of their type, but one step at least; the share of samples that may differ
# more; and how far these may differ. The table of docs/explanation/numerics.md, for two results that each keep to it.
TOLERANCES = {
    "octbscan": (2e-5, 1e-4, 2e-3),
    "octangio": (1e-4, 1e-3, 2.01),
    "photostereo": (2e-4, 1e-3, 0.25),
    "normalintegrate": (1e-4, 0, 1e-4),
    "relight": (1 / 255, 0, 1 / 255),
    "insarform": (1e-5, 1e-4, 2.01),
    "slcresample": (1e-5, 1e-4, 1e-2),
}


def tolerance_of(elements):
    """Returns: limit, share and bound of Difference"""
    return tuple(map(max, zip((0, 0, 0), *(TOLERANCES.get(element, (0, 0, 0)) for element in elements))))


def add_arguments(parser):
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--exact", action="store_true",
                        help="ask for the same bits of every element: on the machine that made the file, with the version of then")


def is_of(value, kinds):
    return type(value) in kinds  # True is no number


def find_strange_item(told, key, texts):
    """@texts: members of each that are a text"""
    for i, item in enumerate(told[key]):
        if not isinstance(item, dict) or not all(isinstance(item.get(member), str) for member in texts):
            return f"{key}[{i}]"
    return None


def find_strange_number(quantity):
    """Of samples or of an axis"""
    for key in "scale", "offset", "step", "origin":
        numbers = quantity.get(key)
        if not all(is_of(number, (int, float, type(None))) for number in (numbers if isinstance(numbers, list) else [numbers])):
            return key
    return None


def find_strange(told):
    """Returns: a member of a sidecar that picturesink does not write so; None for none"""
    needed = {"first": int, "frames": int, "complete": bool, "pipeline": str, "gst-imaging": str, "frame-numbers": list, "sources": list,
              "elements": list, "changes": list}
    for key, kind in {**needed, "folder": str, "flags": str, "pts": list, "quantity": dict}.items():
        if not is_of(told.get(key), (kind,)) and (key in told or key in needed):
            return key
    items = find_strange_item(told, "sources", ("element", "kind")) or find_strange_item(told, "elements", ("name", "element")) \
        or find_strange_item(told, "changes", ("element", "property"))
    if items or not told["elements"]:
        return items or "elements"
    names = {element["name"] for element in told["elements"]}
    for source in told["sources"]:
        if source["kind"] == "file" and not (source["element"] in names and all(
                isinstance(file, dict) and isinstance(file.get("location"), str) for file in (source, source.get("settings", source)))):
            return "sources"
    for change in told["changes"]:
        if change["element"] not in names or not is_of(change.get("frame"), (int,)) or not is_of(change.get("value"), (str, type(None))):
            return "changes"
    quantity = told.get("quantity", {})
    axes = quantity.get("axes", [])
    if not isinstance(axes, list) or not all(is_of(axis, (dict, type(None))) for axis in axes):
        return "quantity.axes"
    return next(filter(None, map(find_strange_number, [quantity, *filter(None, axes)])), None)


def read_sidecar(metadata, path):
    if os.path.exists(f"{path}.json") and not os.path.isfile(f"{path}.json"):
        raise Failure(UNREADABLE, f"{path}.json is no file.")
    try:
        told = metadata.sidecar(path)
    except (OSError, ValueError) as error:
        raise Failure(UNREADABLE, f"{path}.json cannot be read: {error}.") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise Failure(UNREADABLE, f"{path}.json is not as picturesink writes it ({type(error).__name__}: {error}).") from error
    if told is None and (result := job.read_result(path if os.path.isdir(path) else os.path.dirname(path) or ".")):
        words = shlex.join(map(str, result.get("arguments") or ["gst-imaging", str(result.get("command"))]))
        raise Failure(UNREADABLE, f"{path} is a result of the command `{words}`, and has no sidecar of its own. Run it again"
                                  " with another -o, and compare the files.")
    if told is None:
        raise Failure(UNREADABLE, f"{path} has no sidecar {path}.json, which would say how it was made."
                                  " picturesink writes one with sidecar=always.")
    if "pipeline" not in told:
        raise Failure(UNREADABLE, f"{path}.json tells what the samples are, and not how they were made: {path} was converted"
                                  " from a file that does not say.")
    strange = find_strange(told)
    if strange:
        raise Failure(UNREADABLE, f"{path}.json is not as picturesink writes it: look at {strange}.")
    if told["frames"] < 1 or told["frames"] > 2 ** 62:
        raise Failure(UNREADABLE, f'{path}.json speaks of {told["frames"]} frames.')
    if not told["complete"]:
        raise Failure(UNREADABLE, f"{path} was not completed: its sidecar does not know the end of the recording.")
    if told["changes"] and len(told["frame-numbers"]) != told["frames"]:
        raise Failure(UNREADABLE, f"The settings changed while the lines of {path} were recorded: changes between lines"
                                  " cannot be met again.")
    if told.get("previous"):
        raise Failure(UNREADABLE, f"{path} was made in several runs with append=true: only files of one run can be verified.")
    if not all(0 <= change["frame"] - told["first"] < told["frames"] for change in told["changes"]):
        raise Failure(UNREADABLE, f"{path}.json has changes of frames that are not there.")
    return told


def check_frames(arrays, path, told):
    """A file that grows has its frames as the first dimension."""
    _name, shape = arrays.kind(path)
    if told["frames"] > max(1, shape[0] if shape else 1):
        raise Failure(UNREADABLE, f'{path}.json speaks of {told["frames"]} frames, and {path} is {list(shape)}: they do not belong together.')


def numbered(path, told):
    """Returns: the files of a recording"""
    folder, name = os.path.split(path)
    files = library.numbered(name, range(told["first"], told["first"] + told["frames"]))
    return [path] if files is None else [os.path.join(folder, file) for file in files]


class Difference:
    """What was found so far; the first sample that differs, and the largest difference."""

    def __init__(self, limit, share, bound):
        self.limit, self.share, self.bound = limit, share, bound
        self.n = self.n_different = self.n_beyond = self.n_outside = 0
        self.first = self.first_beyond = self.first_outside = None

    def add(self, np, file, shape, start, old, new, is_level):
        self.n += old.size
        as_bytes = [values.view(np.uint8).reshape(values.size, values.itemsize) for values in (old, new)]
        different = np.flatnonzero((as_bytes[0] != as_bytes[1]).any(-1))  # also 0 and -0, and kinds of NaN
        if different.size == 0:
            return
        beyond = different[self.is_beyond(np, old, new, different, is_level, self.limit)]
        outside = beyond[self.is_beyond(np, old, new, beyond, is_level, self.bound)]

        def place(at):
            return {"file": file, "index": [int(i) for i in np.unravel_index(start + at, shape)], "was": str(old[at]), "is": str(new[at])}

        self.first = self.first or place(different[0])
        if beyond.size:
            self.first_beyond = self.first_beyond or place(beyond[0])
        if outside.size:
            self.first_outside = self.first_outside or place(outside[0])
        self.n_different += different.size
        self.n_beyond += beyond.size
        self.n_outside += outside.size

    @staticmethod
    def is_beyond(np, old, new, different, is_level, limit):
        """Returns: for each of the different samples"""
        a, b = old[different], new[different]
        if limit == 0:
            return np.ones(different.size, bool)
        if old.dtype.kind in "iu":
            allowed = max(1, limit * np.iinfo(old.dtype).max)
            return np.abs(a.astype(np.float64) - b.astype(np.float64)) > allowed
        if is_level:  # dB: the amplitudes are what is computed
            new, a, b = (np.power(10, v.astype(float) / 20) for v in (new, a, b))
        largest = np.max(np.abs(new[np.isfinite(new)]), initial=0)  # of what was made just now
        return ~((np.abs(a - b) <= limit * largest) | (a != a) & (b != b))

    @property
    def is_within(self):
        return self.n_beyond <= self.share * self.n and self.n_outside == 0


def compare(arrays, old_files, new_files, told, difference):
    np = library.numpy()
    is_level = told.get("quantity", {}).get("unit") == "dB"
    for old_file, new_file in zip(old_files, new_files):
        new_pages = arrays.pages(new_file)
        for shape, start, old in arrays.pages(old_file):
            new_shape, _start, new = next(new_pages, (None, 0, None))
            if shape != new_shape or old.dtype != new.dtype:
                raise Failure(NO_RESULT, f"{old_file} is {old.dtype} {shape}, and the new one"
                                         f" {'is shorter' if new is None else f'{new.dtype} {new_shape}'}.")
            difference.add(np, os.path.basename(old_file), shape, start, old, new, is_level)


def places_of(repeat, told):
    """Without the hashes of files that settings name, and the places of files that elements write."""
    factories = {element["name"]: element["element"] for element in told["elements"]}

    def value_of(change):
        is_file = change["property"] in repeat.WRITTEN.get(factories[change["element"]], ()) or repeat.is_own_change(told, change)
        return os.path.basename(change["value"]).removeprefix(f'{change["element"]}-') if is_file and change["value"] else change["value"]

    return [(change["frame"], change["element"], change["property"], value_of(change)) for change in told["changes"]]


def repeat_changes(repeat, Gst, told, folder, location, devices):
    """Returns: the sidecar of the second run, in which the same settings counted from the same frames on"""
    for is_after in (False, True):
        new = repeat.run(Gst, told, folder, location, devices, is_after)
        if places_of(repeat, new) == places_of(repeat, told):
            return new
    raise Failure(UNREADABLE, "The settings changed during the recording at moments that cannot be met again.")


def other_settings(told, new):
    """Returns: the elements whose settings are others now, as a file that they name has changed; and their files"""
    now = {element["name"]: element.get("settings-hash") for element in new["elements"][:-1]}
    written = datetime.datetime.fromisoformat(told.get("written", "").replace("Z", "+00:00") or "1970-01-01T00:00:00+00:00").timestamp()
    return {element["name"]: files_of(element, written) for element, name in zip(told["elements"], now)
            if element.get("settings-hash") != now[name]}


def files_of(element, written):
    """Returns: settings of an element that name a file, as "NAME=FILE"; those that changed after the recording, where some did"""
    settings = element.get("settings")
    files = {name: value for name, value in (settings if isinstance(settings, dict) else {}).items()
             if isinstance(value, str) and os.path.isfile(value)}
    newer = {name: value for name, value in files.items() if os.path.getmtime(value) > written}
    return [f"{name}={value}" for name, value in (newer or files).items()]


# Which say nothing of the samples
ORIGIN = ("element", "version", "backend", "settings-hash", "QELEMENT", "QVERSION", "QBACKEND", "QHASH")


# Cards that tell what samples or axes are: nobody adds them to a file.
MEANING = re.compile(r"(CTYPE|CUNIT|CDELT|CRVAL|CRPIX)[0-9]|BUNIT|Q(NAME|UNIT|SCALE|OFFSET)|quantity|unit|scale|offset|axis-[0-9]-[a-z]+"
                     r"|PhysicalSize[XYZ](Unit)?|[XY]Resolution|ResolutionUnit")


def header_of(arrays, file):
    """Returns: cards of a file, and those in its description"""
    cards = dict(arrays.cards_of(file))
    text = cards.pop("ImageDescription", "")
    if text.startswith("<"):
        pixels = re.search(r"<Pixels\b[^>]*>", text)
        cards |= dict(re.findall(r'<M K="([^"]*)">([^<]*)</M>', text)) | dict(re.findall(r'(\w+)="([^"]*)"', pixels[0] if pixels else ""))
    else:
        cards |= dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)
    return {key: value for key, value in cards.items() if key not in ORIGIN}


def is_same_card(was, is_now, exact):
    try:
        a, b = float(was), float(is_now)
    except (TypeError, ValueError):
        return was == is_now
    return was == is_now or not exact and abs(a - b) <= 1e-9 + 1e-4 * abs(b)


def other_cards(arrays, old_files, new_files, exact, same_version):
    """Returns: cards of headers that are not what is written now: "a.fits: CDELT1". Cards that somebody has added may be there."""
    others = []
    for old_file, new_file in zip(old_files, new_files):
        if not library.has_cards(old_file):
            continue
        old, new = header_of(arrays, old_file), header_of(arrays, new_file)
        keys = [key for key in new if (key in old or same_version) and not is_same_card(old.get(key), new[key], exact)]
        keys += [key for key in old if key not in new and MEANING.fullmatch(key)]
        others += [f"{os.path.basename(old_file)}: {', '.join(keys)}"] if keys else []
    return others


def other_quantities(told, new, exact):
    """Returns: what samples or axes mean, where that is not what it was: "axes[1].step"."""
    np = library.numpy()
    others = []
    near = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-4, "atol": 1e-9}

    def compare_members(was, is_now, name):
        if isinstance(was, dict) and isinstance(is_now, dict):
            for key in sorted((was.keys() | is_now.keys()) - set(ORIGIN)):
                compare_members(was.get(key), is_now.get(key), f"{name}.{key}" if name else key)
        elif name.endswith("axes") and isinstance(was, list) and isinstance(is_now, list) and len(was) == len(is_now):
            for i, pair in enumerate(zip(was, is_now)):
                compare_members(*pair, f"{name}[{i}]")
        elif name.rpartition(".")[2] in ("scale", "offset", "step", "origin") and None not in (was, is_now):
            a, b = (np.asarray(value, float) for value in (was, is_now))
            if a.shape != b.shape or not np.allclose(a, b, equal_nan=True, **near):
                others.append(name)
        elif was != is_now:
            others.append(name)

    was, is_now = (side.get("quantity", {}) for side in (told, new))
    if None not in was.get("axes", []):  # versions before 0.2 left out an axis that is not known
        is_now = {**is_now, "axes": list(filter(None, is_now.get("axes", [])))} if "axes" in was else is_now
    compare_members(was, is_now, "")
    return others


def run(options):
    Gst = library.gstreamer()
    library.numpy()
    from .. import metadata, repeat

    arrays = library.Arrays()
    path = os.path.abspath(options.file)
    series = None if os.path.exists(f"{path}.json") else metadata.find_series(path)
    if series:
        path, number = series
    told = read_sidecar(metadata, path)
    if series and not 0 <= number - told["first"] < told["frames"]:
        raise Failure(UNREADABLE, f"{options.file} is none of the {told['frames']} files from number {told['first']} on"
                                  f" of which {path}.json tells.")
    if library.numbered(path) is None:
        check_frames(arrays, path, told)
    folder = os.path.dirname(path)
    devices = json.loads(library.describe(Gst))["cuda"]["devices"]
    with repeat.working_folder(told, folder), tempfile.TemporaryDirectory() as work:
        repeat.check_sources(told, folder)
        location = os.path.join(work, os.path.basename(path))
        new = repeat_changes(repeat, Gst, told, folder, location, devices)
        check_numbers(told, new)
        settings = other_settings(told, new)
        same_backend = all(a.get("active-backend") == b.get("active-backend")
                           for a, b in zip(told["elements"], new["elements"]))
        limits = (0, 0, 0) if options.exact else tolerance_of(element["element"] for element in told["elements"])
        chosen = slice(number - told["first"], number - told["first"] + 1) if series else slice(None)
        difference = Difference(*limits)
        files = numbered(path, told)[chosen], numbered(location, new)[chosen]
        compare(arrays, *files, told, difference)
        cards = other_cards(arrays, *files, options.exact, told["gst-imaging"] == new["gst-imaging"])
        if "flags" in told:
            places = os.path.join(folder, told["flags"]), os.path.join(work, os.path.basename(new.get("flags", "")))
            compare(arrays, *(numbered(place, told)[chosen] for place in places), {}, difference)
    return report(options, told, new, difference, cards, settings, same_backend, 1 if series else told["frames"])


def check_numbers(told, new):
    """Another frame in its place is no difference of samples."""
    for i, (was, is_now) in enumerate(zip(told["frame-numbers"], new["frame-numbers"])):
        if was != is_now:
            raise Failure(UNREADABLE, f"Entry {i} of the recording is frame {was} of its source, and frame {is_now} of it was made now:"
                                      " frames were dropped that cannot be met again.")


def report(options, told, new, difference, cards, settings, same_backend, n_frames):
    result = {"file": options.file, "frames": n_frames, "samples": difference.n,
              "different": int(difference.n_different), "beyond-tolerance": int(difference.n_beyond),
              "first-difference": difference.first, "first-beyond-tolerance": difference.first_beyond, "same-backend": same_backend, "other-settings": list(settings),
              "version": told["gst-imaging"], "version-now": new["gst-imaging"]}
    if settings:
        names = "; ".join(f"{element}: {', '.join(files)}" if files else element for element, files in settings.items())
        raise Failure(NO_RESULT, f"{names}: a setting, or a file that one names, is not that of the recording.")
    quantities = other_quantities(told, new, options.exact)
    if cards:
        raise Failure(NO_RESULT, f'The header is not what is written now: {"; ".join(cards[:3])}.')
    if quantities:
        raise Failure(NO_RESULT, f'{options.file}.json: {", ".join(quantities)} of the quantity is not what it is now.')
    first = difference.first_outside or difference.first_beyond or difference.first
    place = first and f'{first["file"]}{first["index"]}: it was {first["was"]} and is {first["is"]}'
    if not difference.is_within:
        raise Failure(NO_RESULT, f"{difference.n_different} of {difference.n} samples differ, the first at {place}.")
    if not options.json:
        how = "the same bits"
        if difference.n_beyond:
            how = f"{difference.n_different} samples differ, {difference.n_beyond} of them beyond the tolerance, the first at {place};" \
                  f" {difference.share:g} of all samples may. --exact asks for the same bits"
        elif first:
            how = f"{difference.n_different} samples differ within the tolerance, the first at {place}"
        print(f'{options.file}: {n_frames} frame{"s"[:n_frames > 1]}, {how}')
    return result
