# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes normals, albedo, height and a mesh from photographs of one view under known lights.

Give one or more folders of photographs, and the light file of the rig: .lp, .dome, or a list of x y z. The names in it
are matched with the files whatever their case, extension and folder. Directions are right only for lamps farther than ten times
the object; gst-imaging lights --distance-mm makes positions in mm. Without a light file the folder has to have one.
mask.* and dark.* in a folder are used. Each folder gives normals.png (16 bits), albedo.png (16 bits), height.tif (float32),
mesh.glb, confidence.png, mask.png and report.html. JPEG is turned upright and made linear with gamma 2.2. --web adds a page on which visitors move the light.
"""
import argparse
import glob
import os
import re

from .. import chart, curves, flatfield, job, library, photographs, play, rti, scale, shading, strengths, web
from ..command import UNREADABLE, WRONG_USE, Failure, absent
from ..report import plots

EXAMPLES = [
    ("photos/ lights.lp -o out", "one object; the mask is photos/mask.png, if there is one"),
    ("coin-1/ coin-2/ coin-3/ dome.lp -o coins", "one after the other, into coins/coin-1, ..."),
    ("photos/ lights.txt --mm-per-pixel 0.05 -o out", "positions of lamps in mm; heights in mm"),
    ("photos/ lights.lp --extension nef --dark dark.nef -o out", "of RAW and JPEG beside each other the RAW files"),
    ("coin/ dome.lp --mm-per-pixel 0.02 -o out --web --title 'Denarius, 44 BC'", "out/web/index.html opens by double click"),
    ("photos/ lights.lp --scale-ruler 120,900,1620,900,100 -o out", "two points of a ruler that are 100 mm apart; heights in mm"),
    ("photos/ lights.lp --method huber --integration bilateral -o out", "another solver; heights that may jump"),
    ("bearPNG/ -o bear", "a folder of DiLiGenT, with its directions and intensities"),
]

# Limits as docs/reference/photostereo.md explains them under "Is the result right?".
RESIDUAL, USED, INVALID, CLIPPED, CURL = 0.08, 0.5, 0.05, 0.1, 0.4
# Properties that no --set may change, and what changes them.
OWN = {"name": "", "normal-encoding": "", "lights-location": "", "mm-per-pixel": ", by --mm-per-pixel", "gamma": ", by --gamma",
       "curve": ", by --curve", "mask-location": ", by --mask", "dark-location": ", by --dark", "white-location": ", by --white",
       "window": ": all pictures are one set", "set-size": ": all pictures are one set", "stop-below": ": all pictures are used",
       "intensities-location": ", by --intensities", "method": ", by --integration", "stiffness": ", by --stiffness", "mesh-location": ""}
DOWN = "y-axis=down"  # of photostereo, for normals as DirectX has them
LENS = "focal-length-mm", "sensor-width-mm"  # of photostereo and normalintegrate, by one --set
# What sentences of photostereo advise, as it is written here.
IN_OPTIONS = {"Correct it, or leave it out.": "Correct it, or leave it out with --leave-out NAME.", "Set mm-per-pixel;": "Give --mm-per-pixel;",
              "or set light-units=": "or give --set light-units=", "set bit-depth=": "give --set bit-depth=", "leave out by mask-location": "leave out by --mask",
              "white-location is": "The white frame is"}
METHODS = {"none": ["robust=none"], "huber": ["robust=huber"],
           **{mode: ["robust=thresholds", f"threshold-mode={mode}"] for mode in ("absolute", "relative", "adaptive")}}
FAR = 10  # times the object, of lamps whose directions are the same all over it
DISTANCE = "distance of the lamps", "times the object"
NOT_KNOWN = ("the light file has directions, which are right only for lamps farther away. Nearer lamps bend the heights, and no other limit shows it."
             " Positions in mm are right at any distance: gst-imaging lights --distance-mm makes them of the length of a string")
ROOM_LIGHT = ("light that does not come from the lamps flattens the relief, and no other limit shows it. --dark FILE is a picture without lamps;"
              " --set ambient-model=constant measures the room light in the pictures")
BRIGHTEST = 20  # mean intensity, beyond which an albedo of 16 bits has few levels
UPDATES = 8  # results on the way, for the plot of convergence
SAMPLES = 1e9  # of larger sets there is only the last result, for time


def add_arguments(parser):
    parser.add_argument("input", nargs="+", metavar="FOLDER|LIGHTS", help="folders of photographs, and a light file")
    job.add_arguments(parser)
    parser.add_argument("--mask", metavar="FILE", help="white on the object (default: mask.* in the folder)")
    parser.add_argument("--dark", metavar="FILE", help="a picture without light (default: dark.* in the folder)")
    parser.add_argument("--white", metavar="FILE|FOLDER", help="a picture of a white sheet, which pictures are divided by; or a folder"
                        " with one for each light, of the same names")
    parser.add_argument("--chart", metavar="FILE", help="a picture of a chart of 24 patches, for true colours")
    parser.add_argument("--chart-corners", metavar="X,Y", nargs=4, type=point, help="middles of its corner patches, from dark skin clockwise")
    parser.add_argument("--chart-mm", metavar="WIDTHxHEIGHT", type=scale.size, help="distances of those middles in mm: the chart lies where the"
                        " object lies, and is the scale, too")
    parser.add_argument("--scale-ruler", metavar="X1,Y1,X2,Y2,MM", type=scale.ruler, help="two points of a ruler in the upright pictures, and"
                        " the millimetres between them")
    parser.add_argument("--method", choices=METHODS, help="solver (default: as photostereo, adaptive below 100 lights, else relative)")
    parser.add_argument("--integration", choices=("poisson", "frankot-chellappa", "bilateral"), default="poisson",
                        help="how slopes become heights; bilateral lets them jump (default: poisson)")
    parser.add_argument("--stiffness", type=float, metavar="K", help="with --integration bilateral: how readily it cuts (default: 2)")
    parser.add_argument("--intensities", metavar="FILE",
                        help="a line of one or three numbers for each light (default: light_intensities.txt in the folder)")
    curves.add_arguments(parser)
    parser.add_argument("--mm-per-pixel", type=float, metavar="MM",
                        help="width of a pixel; heights are in mm then, and lights with a position need it (default: by the imageWidth"
                        " of a .dome file, else 1)")
    parser.add_argument("--by-order", action="store_true", help="take the pictures in natural order, whatever their names")
    parser.add_argument("--extension", metavar="EXT", help="use the files with this extension alone")
    parser.add_argument("--leave-out", metavar="NAME", action="append", default=[], help="do without this picture, as IMG_7.jpg; may be given several"
                        " times")
    parser.add_argument("--web", action="store_true", help="a page on which visitors move the light, web/index.html")
    parser.add_argument("--rti", action="store_true", help="polynomial texture maps for archives: rti/object.ptm, rti/info.json of Relight")
    parser.add_argument("--title", metavar="TEXT", help="of the page (default: the name of the folder)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another property of photostereo or normalintegrate")


def point(text):
    x, y = text.split(",")
    return float(x), float(y)


def split(given):
    """Returns: the folders, and the light file or None"""
    folders = [path for path in given if os.path.isdir(path)]
    files = [path for path in given if path not in folders]
    gone = [path for path in files if not os.path.isfile(path)]
    if gone:
        raise absent(gone[0], f"{gone[0]} is neither a folder nor a file.")
    if len(files) > 1:
        raise Failure(WRONG_USE, f"{files[0]} and {files[1]} are both files: give folders of photographs and one light file.")
    if not folders:
        raise Failure(WRONG_USE, "Give a folder of photographs.")
    return folders, files[0] if files else None


def find_lights(folder):
    """Returns: the light file of a folder that has one"""
    for pattern in "*.lp", "*.dome", "light_directions.txt", "lights.txt":
        found = sorted(glob.glob(os.path.join(glob.escape(folder), pattern)))
        if len(found) > 1:
            raise Failure(WRONG_USE, f"{folder} has {len(found)} light files, {photographs.listed(map(os.path.basename, found))}:"
                                     " name the one to use.")
        if found:
            return found[0]
    raise Failure(WRONG_USE, f"{folder} has no light file (*.lp, *.dome, light_directions.txt, lights.txt): name one. "
                             "gst-imaging lights makes one of photographs with a mirror sphere.")


def intensities_of(path, lights):
    """Returns: lines of numbers, one for each light"""
    lines = photographs.lines_of(path)
    if len(lines) != len(lights.lines):
        raise Failure(UNREADABLE, f"{path} has {len(lines)} intensities, and {lights.path} has {len(lights.lines)} lights.")
    return lines


def select_intensities(path, lights, chosen, to):
    lines = intensities_of(path, lights)
    with open(to, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(f"{lines[i]}\n" for i in chosen)


def as_frame(np, path, samples, to):
    """Returns: the file of a dark or white frame as picturesrc plays it, which has an alpha where samples have 16 bits."""
    values, picture = samples.convert(np, path), samples.convert(np, samples.paths[0])
    own, usual = (photographs.describe((library.type_name(np, array), array.shape)) for array in (values, picture))
    if own != usual and values.dtype.kind == "u" and values.shape[1:] != picture.shape:  # one of each band
        raise Failure(UNREADABLE, f"{path} is {own}, and the photographs are {usual}: they have to be of one kind.")
    if values.dtype != np.uint16 or values.ndim != 3 or values.shape[2] != 3:
        if samples.are_plain:
            return path
        np.save(to, values)
        return to
    np.save(to, np.concatenate([values, np.full_like(values[..., :1], 65535)], 2))
    return to


def without(pairs, names, folder):
    """Returns: the pairs of a light and a picture, but those of pictures with these names"""
    known = [os.path.basename(path) for _i, path in pairs]
    unknown = next((name for name in names if name not in known), None)
    if unknown:
        raise Failure(WRONG_USE, f"--leave-out {unknown}: {folder} has no such picture with a light.")
    return [pair for pair, name in zip(pairs, known) if name not in names]


class Set:
    """The photographs of one folder, and what was found beside them."""

    def __init__(self, folder, lights, options, made):
        files, beside = photographs.files_of(folder, options.extension, made.warn)
        if not files:
            raise photographs.no_pictures(folder, options.extension)
        self.lights = photographs.Lights(lights or find_lights(folder))
        intensities = os.path.join(folder, "light_intensities.txt")
        self.mask, self.dark = (getattr(options, name) or photographs.only(beside, name, folder) for name in ("mask", "dark"))
        self.white = None if options.white and os.path.isdir(options.white) else options.white
        self.intensities = options.intensities or (intensities if os.path.isfile(intensities) else None)
        self.folder, self.sheets = folder, None
        pairs = without(photographs.match(self.lights, files, options.by_order, made.warn), options.leave_out, folder)
        pairs, self.size = photographs.same_kind(pairs, made.warn)
        self.take(pairs)
        self.given_curve = curves.given(options)
        (self.curve, self.gamma), self.is_curve_guessed = curves.choose(self.samples.paths, folder, options, made.warn)
        known = scale.choose(library.numpy(), self, options, made.warn)
        options.unit, options.mm_per_pixel = ("pixels", 1) if known is None else ("mm", known)
        if known is None and lens_of(options):
            made.warn("There is a lens and no scale: heights are in widths of a pixel at the lowest point, and photostereo takes a pixel for a mm. Give"
                      " --mm-per-pixel, --scale-ruler or --chart-mm.")
        if options.white and not self.white:
            self.sheets = flatfield.FlatFields(self, options, self.make_linear, made.warn)
        self.check_curves(options, made)

    def curve_of(self, path):
        """Returns: what makes the samples of a photograph or of a frame beside them linear, as it is given, or as its file says; else it
        is that of the photographs, as of one camera"""
        return self.given_curve or curves.told(path) or (self.curve, self.gamma)

    def check_curves(self, options, made):
        """Of the files beside the photographs; photostereo has one curve for these and its frames, sheets are made linear here."""
        photos, frames = (self.curve, self.gamma), [path for path in (self.dark, self.white) if path]
        other = None if self.sheets else next((path for path in frames if self.curve_of(path) != photos), None)
        if other:
            raise Failure(WRONG_USE, f"{other} has {shading.in_words(*self.curve_of(other))}, and the photographs have {shading.in_words(*photos)}: all have to have"
                                     " one curve. Take it as the photographs, or give --gamma or --curve for all.")
        beside = [*frames, *([options.chart] if options.chart else []), *(self.sheets.white if self.sheets else [])]
        silent = [] if self.given_curve else [path for path in beside if not curves.told(path)]
        if silent and photos != ("gamma", 1):
            made.warn(f"{silent[0]} does not say what its samples mean (no colour profile, sRGB or gAMA): it is taken to have {shading.in_words(*photos)}, as"
                      " the photographs. --gamma or --curve says it for all.")
        elif silent and not curves.doubt(self.pairs[0][1]):
            for doubt in list(filter(None, map(curves.doubt, silent)))[:1]:
                made.warn(doubt)

    def take(self, pairs):
        """Sets which photographs are used, and under which lights."""
        if len(pairs) < 3:
            raise Failure(UNREADABLE, f"{self.folder} has {len(pairs)} pictures with a light; at least 3 are needed.")
        self.pairs, self.samples = pairs, photographs.Samples([path for _i, path in pairs], unknown_is_clipped=True)
        if self.sheets:
            self.sheets.take(self)

    def leave_out_damaged(self, made):
        """They stay inputs: what is in them decides that they are left out. Returns: whether there are any"""
        good, n = photographs.without_damaged(self.samples.paths, made.warn), len(self.pairs)
        self.take([pair for pair in self.pairs if pair[1] in good])
        return len(good) < n

    def make_linear(self, values, path):
        """u8 or u16 of a file to what photostereo makes of them: 1 is full scale"""
        return shading.linear(library.numpy(), values, *self.curve_of(path))

    def read_chart(self, np, path):
        """Returns: its picture, linear [height, width, 3]"""
        picture = self.samples.integers(np, path)
        if picture.ndim != 3:
            raise Failure(UNREADABLE, f"{path} has to have colours for --chart.")
        return self.make_linear(picture, path)

    def chart_corners(self, np, options):
        """Returns: middles of the corner patches [4, 2], in pixels of the photographs"""
        picture = self.read_chart(np, options.chart)
        if picture.shape[:2] != tuple(self.size):
            raise Failure(UNREADABLE, f"{options.chart} is {picture.shape[1]} x {picture.shape[0]} and the photographs are {self.size[1]} x"
                                      f" {self.size[0]}: for --chart-mm the camera has to be the same, in the same place.")
        if options.chart_corners:
            return np.array(options.chart_corners, float)
        _matrix, corners, _errors = chart.matrix_of(np, picture, options.chart)
        return scale.measured_corners(np, picture, corners, options.chart)

    @property
    def has_intensities(self):
        """Whether the strength of each lamp is known: as numbers, or by its white sheet."""
        return bool(self.intensities or self.sheets) or any(tuple(colour) != (1, 1, 1) for colour in self.lights.colours)

    def read_intensities(self, np, chosen):
        """Returns: red, green, blue of the lights `chosen`"""
        if not self.intensities:
            return self.lights.values(np, chosen)[1]
        lines = intensities_of(self.intensities, self.lights)
        try:
            rows = np.array([lines[i].split() for i in chosen], float)
        except ValueError:
            raise Failure(UNREADABLE, f"{self.intensities} has to have one or three numbers in each line, as many in all.") from None
        return rows[:, :3] if rows.shape[1] >= 3 else np.repeat(rows[:, :1], 3, 1)

    def tell(self, made, options):
        """Inputs and settings, which decide whether there is a result already."""
        for role in "mask", "dark", "white", "intensities":
            if getattr(self, role):
                made.input(getattr(self, role), role)
        if self.sheets:
            self.sheets.tell(made)
        if options.chart:
            made.input(options.chart, "chart")
        made.input(self.lights.path, "lights")
        pictures = [made.input(path, "picture") for _i, path in self.pairs]
        photographs.check_different(pictures, self.folder, made.warn)
        made.setting("gamma", self.gamma, 1)
        made.setting("curve", self.curve, "gamma")
        made.setting("mm-per-pixel", options.mm_per_pixel if options.unit == "mm" else None, unit="mm")
        made.setting("chart-mm", options.chart_mm and "{:g}x{:g}".format(*options.chart_mm), unit="mm")

    def in_own_files(self, made, sentence):
        """Returns: a sentence of photostereo, which gets the lines of lights with a picture, with the user's files and their lines"""
        def own_light(found):
            return self.lights.path if self.lights.form == "dome" else self.lights.place(self.pairs[int(found[1]) - 1 - (self.lights.form == "lp")][0])

        def own_intensity(found):
            numbers = [number for number, _text in photographs.numbered_lines(self.intensities)]
            return f"{self.intensities}, line {numbers[self.pairs[int(found[1]) - 1][0]]}"

        for folder in made.folder, made.target:
            lights, intensities = (os.path.join(folder, name) for name in (f"lights.{self.lights.form}", "intensities.txt"))
            sentence = re.sub(re.escape(lights) + r", line (\d+)", own_light, sentence).replace(lights, self.lights.path)
            if self.intensities:
                sentence = re.sub(re.escape(intensities) + r", line (\d+)", own_intensity, sentence).replace(intensities, self.intensities)
        return sentence

    def words(self, np, made, options):
        """Returns: arguments of photostereo"""
        chosen = [i for i, _path in self.pairs]
        lights = made.path(f"lights.{self.lights.form}")
        self.lights.write(lights, chosen)
        words = ["photostereo", "name=p", "normal-encoding=rgba64", f"lights-location={lights}", *words_of_scale(options)]
        if not self.sheets:  # which are divided in linear light
            words += [f"gamma={self.gamma:.10g}", f"curve={self.curve}"]
        if self.intensities:
            select_intensities(self.intensities, self.lights, chosen, made.path("intensities.txt"))
            words.append(f"intensities-location={made.path('intensities.txt')}")
        if self.mask or self.sheets:
            mask = photographs.read_mask(np, self.mask, self.size) if self.mask else np.ones(self.size, np.uint8)
            np.save(made.path("mask.npy"), self.sheets.leave_out(np, mask, made.warn) if self.sheets else mask)
            words.append(f"mask-location={made.path('mask.npy')}")
        beside = () if self.sheets else (("dark", self.dark), ("white", self.white))
        words += [f"{name}-location={as_frame(np, path, self.samples, made.path(name + '.npy'))}"
                  for name, path in beside if path]
        n = len(self.pairs)
        if n * self.size[0] * self.size[1] <= SAMPLES and n > UPDATES:
            words.append(f"update-interval={-(-n // UPDATES)}")
        return words + METHODS.get(options.method, []) + [word for word in options.set if has_property("photostereo", word)]


class Watch:
    """Only the last result of the set goes on; the messages of those before are the curve of convergence."""

    def __init__(self, n):
        self.n, self.interval, self.progress, self.counts, self.quality = n, 0, [], {}, b""
        self.misfits = []  # index and residual of pictures that contradict the others

    def prepare(self, pipeline):
        Gst = library.gstreamer()
        solver = pipeline.get_by_name("p")
        play.set_list(pipeline.get_by_name("in"), "locations", self.files)
        self.interval = solver.get_property("update-interval") or self.n
        for pad in solver.srcpads:
            pad.add_probe(Gst.PadProbeType.BUFFER, self.on_buffer)

    def on_buffer(self, pad, info):
        Gst = library.gstreamer()
        count = self.counts[pad.get_name()] = self.counts.get(pad.get_name(), 0) + 1
        if count * self.interval < self.n:
            return Gst.PadProbeReturn.DROP
        if pad.get_name() == "quality":
            buffer = info.get_buffer()
            self.quality = buffer.extract_dup(0, buffer.get_size())
        return Gst.PadProbeReturn.OK

    def take(self, structure):
        if structure.get_name() == "photostereo-progress":
            names = ("lights", "pixels", "invalid", "invalid-share", "clipped-share", "change", "mean-lights", "mean-residual")
            self.progress.append({name: structure.get_value(name) for name in names})
        elif structure.get_name() == "photostereo-misfit":
            self.misfits.append((structure.get_value("index"), structure.get_value("residual")))

    def read_quality(self, np, size):
        return np.frombuffer(self.quality, np.float32).reshape(*size, 4)


def words_of_scale(options):
    return [f"mm-per-pixel={options.mm_per_pixel:.10g}"] if options.unit == "mm" else []


def has_property(element, word):
    return bool(library.gstreamer().ElementFactory.make(element).find_property(word.split("=")[0]))


def lens_of(options):
    """Returns: words for normalintegrate, which photostereo gets as well"""
    words = [word for word in options.set if word.split("=")[0] in LENS]
    return [] if f"{LENS[0]}=0" in words else words


def upright(np, made, options):
    """Returns: normals.png, 16 bits, whose y is up, as the page and the curl have it"""
    normals = photographs.read(made.path("normals.png"))
    if DOWN in options.set:
        normals[..., 1] = np.where(normals[..., 3] > 0, np.uint16(65535) - normals[..., 1] + np.uint16(1), normals[..., 1])
    return normals


def words_of_heights(made, options, mm, more):
    """mm: width of a pixel, with a lens at the lowest point"""
    stiffness = [] if options.stiffness is None else [f"stiffness={options.stiffness:.10g}"]
    scaled = [f"mm-per-pixel={mm:.10g}"] if options.unit == "mm" else []
    down = [DOWN] if DOWN in options.set else []
    return ["normalintegrate", "name=i", f"method={options.integration}", *stiffness, *scaled, *lens_of(options), *down, *more,
            "i.tensor", "!", "queue", "!", "picturesink", "sidecar=none", f"location={made.path('height.tif')}"]


def words_of_mesh(made, options, mm):
    """The same with the mesh and all that was set."""
    return words_of_heights(made, options, mm, [*(word for word in options.set if not has_property("photostereo", word)),
                                                f"mesh-location={made.path('mesh.glb')}"])


def mm_at_lowest(np, photos, made, options):
    """Of photostereo's mm-per-pixel, which is that of the mean height, the one of the lowest point: the distance of the camera, f pixels
    wide, grows by the mean height, which is proportional to it."""
    play.play(play.parse(["picturesrc", f"location={made.path('normals.png')}", "!", *words_of_heights(made, options, options.mm_per_pixel, [])]))
    height = photographs.read(made.path("height.tif"))
    mean = height[np.isfinite(height)].sum() / max(np.isfinite(height).sum(), 1) / options.mm_per_pixel
    given = dict(word.split("=", 1) for word in lens_of(options))
    focal = float(given[LENS[0]]) / float(given[LENS[1]]) * photos.size[1]
    return options.mm_per_pixel * focal / (focal - min(mean, focal / 2))  # a mean beyond is none of photographs


def picture_words(made, pad, form):
    return [f"p.{pad}", "!", f"video/x-raw,format={form}", "!", "queue", "!", "picturesink", "sidecar=none", f"location={made.path(pad + '.png')}"]


def correct_colours(np, photos, made, options):
    """Changes albedo.png by the matrix of the chart."""
    picture = photos.read_chart(np, options.chart)
    albedo = photographs.read(made.path("albedo.png"))
    if albedo.ndim != 3:
        raise Failure(UNREADABLE, "The photographs have to have colours for --chart.")
    matrix, corners, (before, after) = chart.matrix_of(np, picture, options.chart, options.chart_corners)
    colours = np.rint(np.clip(albedo[..., :3] @ matrix.T, 0, 65535))
    library.Arrays().save_values(np, made.path("albedo.png"), np.concatenate([colours, albedo[..., 3:]], 2).astype(np.uint16))
    clipped = chart.n_clipped(np, picture, corners)
    if clipped:
        made.warn(f"Clipped patches of the chart in {options.chart}: {clipped} of 24, so that the colours and the brightness of white are wrong. Photograph"
                  " the chart with a shorter exposure.")
    made.report.figure("colour error of the chart", after, "CIE 1976", at_most=6, about=f"mean of the 24 patches; {before:.1f} before")
    made.report.table("Colours", ("", "red", "green", "blue"), [(name, *map(float, row)) for name, row in zip(("red", "green", "blue"), matrix)])
    made.report.fact("chart", f"{options.chart}, corners {', '.join(f'{x:.0f},{y:.0f}' for x, y in corners)}")


def named(sentence, files):
    """Returns: a sentence of photostereo with the names of photographs in the place of the numbers of lights"""
    def name(number):
        return os.path.basename(files[number])

    for properties, words in IN_OPTIONS.items():
        sentence = sentence.replace(properties, words)
    contradict = r"(?<=contradict the others: )of light (\d+ \(\d+ %\)(?:, \d+ \(\d+ %\))*)"
    sentence = re.sub(contradict, lambda m: re.sub(r"(\d+)(?= \()", lambda n: name(int(n[1]) - 1), m[1]), sentence)
    sentence = re.sub(r"light (\d+), counted from 0\)", lambda m: f"that of {name(int(m[1]))})", sentence)
    return re.sub(r"^Light (\d+) (is at|has) ", lambda m: f"The light of {name(int(m[1]))} {m[2]} ", sentence)


def play_set(photos, made, words, watch):
    """Plays the set; its warnings and errors name photographs."""
    files = [path for _i, path in photos.pairs]

    def told(sentence):
        return photos.in_own_files(made, named(sentence, files))

    try:
        made.play(words, "pictures", len(files), watch.take, prepare=watch.prepare, warn=lambda sentence: made.warn(told(sentence)))
    except Failure as failure:
        sentence = told(str(failure))
        if photos.white and sentence.startswith("The white frame is "):
            raise Failure(UNREADABLE, sentence.replace("frame", f"frame {photos.white}", 1)) from failure
        raise Failure(failure.code, sentence) from failure


def solve(np, photos, made, options):
    """Returns: what the pipeline told, and the quality [height, width, 4]"""
    watch = Watch(len(photos.pairs))
    samples = photos.sheets or photos.samples
    watch.files = samples.playable(np, made)
    channels = "RGBA64_LE" if len(library.Arrays().kind(photos.pairs[0][1])[1]) == 3 else "GRAY16_LE"
    is_at_mean = bool(lens_of(options)) and options.unit == "mm" and "plane-at=lowest" not in options.set
    later = options.chart or is_at_mean
    play_set(photos, made, [
        "picturesrc", "name=in", "!", *photos.words(np, made, options),
        "p.normal", "!", "tee", "name=n", "n.", "!", "queue", "!", "picturesink", "sidecar=none", f"location={made.path('normals.png')}",
        "p.albedo", "!", f"video/x-raw,format={channels}", "!", "tee", "name=a",
        "a.", "!", "queue", "!", "picturesink", "sidecar=none", f"location={made.path('albedo.png')}",
        "p.quality", "!", "other/tensors", "!", "queue", "!", "fakesink",
        *picture_words(made, "confidence", "GRAY16_LE"), *picture_words(made, "mask", "GRAY8"),
        *([] if later else ["n.", "!", "queue", "!", "i.sink", "a.", "!", "queue", "!", "i.albedo",
                            *words_of_mesh(made, options, options.mm_per_pixel)])], watch)
    if watch.misfits:
        made.report.fact("pictures that contradict the others", ", ".join(
            f"{os.path.basename(photos.pairs[i][1])} ({100 * residual:.0f} %)" for i, residual in watch.misfits))
    if options.chart:  # the mesh has the colours that come of it
        correct_colours(np, photos, made, options)
    if later:
        mm = mm_at_lowest(np, photos, made, options) if is_at_mean else options.mm_per_pixel
        made.play(["picturesrc", f"location={made.path('normals.png')}", "!", "i.sink", "picturesrc", f"location={made.path('albedo.png')}", "!",
                   "i.albedo", *words_of_mesh(made, options, mm)])
    samples.remove(made)
    for name in "mask.npy", "intensities.txt", "dark.npy", "white.npy":  # of the pipeline
        if os.path.exists(made.path(name)):
            os.remove(made.path(name))
    return watch, watch.read_quality(np, photos.size)


def tell_figures(made, told, misfits, n):
    report = made.report
    report.figure("lights", n, at_least=3, about="pictures with a light that were used; 12 and more are usual")
    residual = told["mean-residual"]  # -1 without a pixel
    report.figure("mean residual", residual if residual >= 0 else None, at_most=RESIDUAL,
                  about="rms of the lights used, as a part of the albedo. Beyond: pictures and lights in another order, noise")
    report.figure("lights used", told["mean-lights"] / n if residual >= 0 else None, at_least=USED,
                  about="mean of the pixels. Below: the same; cast shadows; t-res too small for a glossy surface")
    report.figure("pixels without a normal", told["invalid-share"], at_most=INVALID,
                  about="part of the mask. Beyond: too dark, clipped, or a background that is not masked")
    report.figure("clipped samples", told["clipped-share"], at_most=CLIPPED, about="part of all. Beyond: exposed too long")
    if residual > RESIDUAL:
        made.warn(f"The mean residual is {residual:.3g}, and should be at most {RESIDUAL}. Are the lights in the order of the pictures? Lamps of"
                  " unequal strength (lights --card measures it), noise and a surface that is not matte raise it, too.")
    report.figure("pictures that contradict the others", len(misfits), at_most=0, about="turned, moved, of another exposure or of another light."
                  " They still count where they fit; --leave-out NAME does without them")
    if told["change"] >= 0:
        report.figure("last change", told["change"], "degrees", about="mean angle to the result before the last pictures")


def has_directions(photos, options):
    """As photostereo decides it."""
    told = dict(word.split("=", 1) for word in options.set).get("light-units", "auto")
    return told == "directions" or told == "auto" and photos.lights.are_directions


def show(np, photos, made, options, watch, quality):
    report, told = made.report, watch.progress[-1]
    tell_figures(made, told, watch.misfits, len(photos.pairs))
    if has_directions(photos, options):
        report.not_checked(*DISTANCE, at_least=FAR, about=NOT_KNOWN)
    if photos.is_curve_guessed:
        curves.tell_guess(report)
    if not photos.dark and "ambient-model=constant" not in options.set:
        report.not_checked("room light", "% of the lamps", at_most=curves.FAINT, about=ROOM_LIGHT)
    unit = options.unit
    axes = [{"name": name, "unit": unit, "step": options.mm_per_pixel, "origin": 0} for name in "xy"]
    normals = upright(np, made, options)
    solved = normals[..., 3] > 0
    turned = photographs.curl(np, np.where(solved[..., None], normals[..., :3] / 32767 - 32768 / 32767, 0))
    if turned is not None and turned > CURL:
        made.warn(f"The curl of the slopes is {turned:.2g}, and should be at most {CURL}: the lights may be turned, mirrored or in another order, or"
                  " there is much noise.")
    if turned is not None:
        report.figure("curl of the slopes", turned, at_most=CURL, about="part of their changes, 0 for a surface. Beyond: the lights"
                      " are turned, or their y goes down, which the residuals do not show; much noise")
    if not photos.has_intensities:
        strengths.tell(np, photos, options, made, solved)
    report.picture("Normals", normals[..., :3], {"axes": axes}, "normals.png",
                   "A ball is red on the right, green at the top, and blue in the middle.")
    albedo = photographs.read(made.path("albedo.png")).astype(np.float32) / 65535
    albedo = albedo[..., :3] if albedo.ndim == 3 else albedo
    clipped = (albedo.reshape(*photos.size, -1).max(-1) >= 1)[solved].mean() if solved.any() else float("nan")
    intensity = float(photos.read_intensities(np, [i for i, _path in photos.pairs]).mean())
    if intensity > BRIGHTEST:
        made.warn(f"The intensities of the lights are {intensity:.4g} on average, so that albedo.png is dark and has about {65535 / intensity:.0f} levels."
                  f" Divide them by {intensity:.4g}: their mean should be near 1.")
    if not solved.any():
        made.nothing = "No pixel has a normal: the photographs are too dark or clipped, or the mask leaves nothing."
    report.figure("albedo beyond 1", float(clipped), at_most=0.02, about="part of the pixels, cut off in albedo.png."
                  " Beyond: intensities of the lights that are too small")
    shown = albedo if albedo.ndim == 3 else np.where(solved, albedo, np.nan)
    report.picture("Albedo", np.clip(shown, 0, 1) ** (1 / 2.2), {"name": "albedo^(1/2.2)", "unit": "", "axes": axes}, "albedo.png",
                   "Shown as on a screen; the file is linear.")
    height = photographs.read(made.path("height.tif")).reshape(photos.size)
    if solved.any() and not np.isfinite(height).any():
        made.nothing = "No pixel has a height: no normal has z above 0, or max-slope leaves none. Do the lights shine from behind the object (z below 0)?"
    report.picture("Height", height, {"name": "height", "unit": unit, "axes": axes}, "height.tif", colours="height")
    residual = np.where(solved, quality[..., 2], np.nan)
    report.picture("Residual", residual, {"name": "residual", "unit": "", "axes": axes}, colours="height", low=0,
                   caption="rms of the lights used, as a part of full scale.")
    report.picture("Lights used", np.where(solved, quality[..., 0], np.nan), {"name": "lights", "unit": "", "axes": axes},
                   colours="height", low=0, high=len(photos.pairs))
    confidence = photographs.read(made.path("confidence.png")).reshape(photos.size).astype(float) / 65535
    judged = confidence[confidence > 0]
    if judged.size:
        report.figure("expected error", float(1 / np.median(judged) - 1), "degrees", about="median of the pixels, of noise and of lights that"
                      " do not fit; not of wrong lights")
    report.picture("Confidence", np.where(solved, confidence, np.nan), {"name": "confidence", "unit": "", "axes": axes},
                   "confidence.png", "1 / (1 + expected error in degrees): 0.5 is one degree.", colours="height", low=0, high=1)
    show_plots(np, photos, made, watch, residual[solved], quality[..., 0][solved])
    return float(np.nanmax(height)) if np.isfinite(height).any() else None


def show_plots(np, photos, made, watch, residual, used):
    report = made.report
    steps = [told for told in watch.progress if told["change"] >= 0]
    if steps:
        report.plot("Convergence", plots.lines(("pictures", ""), ("change of the normals", "degrees"), {
            "": ([told["lights"] for told in steps], [told["change"] for told in steps])}),
            "Mean angle to the result before. It should become small.")
    if residual.size:
        counts, edges = np.histogram(residual, 60, (0, float(np.percentile(residual, 99.5)) or 1))
        report.plot("Residuals", plots.histogram(("residual", ""), edges, counts), "Of the pixels, up to the 99.5th percentile.")
        counts, edges = np.histogram(used, np.arange(len(photos.pairs) + 2) - 0.5)
        report.plot("Lights used", plots.histogram(("lights", ""), edges, counts))
    lights = photos.lights.directions(np, [i for i, _path in photos.pairs])
    report.plot("Lights", plots.sky({os.path.basename(path): light[:2] for (_i, path), light in zip(photos.pairs, lights.tolist())}),
                "Directions from the camera: x to the right, y up; the outer circle is the horizon.")


def write_page(np, photos, made, options):
    """The folder web, whose index.html opens by double click."""
    normals, albedo = upright(np, made, options), photographs.read(made.path("albedo.png"))
    maps = web.Maps(normals[..., :3], albedo[..., :3] if albedo.ndim == 3 else albedo,
                    photographs.read(made.path("height.tif")).reshape(photos.size))
    web.write(np, made.path("web"), options.title or made.name, maps, options.mm_per_pixel, options.unit,
              shading.strength(np, albedo))
    made.report.fact("page", "web/index.html")


def check_options(given):
    if given.mm_per_pixel == 0:
        raise Failure(WRONG_USE, "--mm-per-pixel is 0; it has to be above 0. Leave it out where the scale is not known.")
    if given.title and not given.web:
        raise Failure(WRONG_USE, "--title is the title of the page: give --web as well.")
    if given.title and not given.title.isprintable():
        raise Failure(WRONG_USE, "--title has a line break or another control character, or is not UTF-8.")
    if given.chart_corners and not given.chart:
        raise Failure(WRONG_USE, "--chart-corners are of the picture of the chart: give it with --chart.")
    curves.given(given)
    if given.chart_mm and not given.chart:
        raise Failure(WRONG_USE, "--chart-mm is the size of the chart: give its picture with --chart.")
    if given.stiffness is not None and given.integration != "bilateral":
        raise Failure(WRONG_USE, f"--stiffness is of --integration bilateral, not of {given.integration}.")
    check_properties(given)


def property_of(word):
    """Returns: the name of a property as GLib has it, which takes _ for -"""
    return word.split("=")[0].replace("_", "-")


def check_properties(given):
    """Fails for words of --set that no element takes, and for those that go around another option."""
    names = {property_of(word) for word in METHODS.get(given.method, [])}
    for word in given.set:
        name = property_of(word)
        if name in names:
            raise Failure(WRONG_USE, f"--set {word} and --method {given.method} set the same: leave one of them out.")
        if name in OWN:
            raise Failure(WRONG_USE, f"--set {word}: the command sets {name} itself{OWN[name]}.")
        if name == "settings":
            raise Failure(WRONG_USE, f"--set {word}: settings has several properties in it. Give each of them with a --set of its own.")
        if "=" not in word:
            raise Failure(WRONG_USE, f"--set {word}: it takes NAME=VALUE, as --set robust=huber.")
        elements = "photostereo", "normalintegrate"
        if not any(has_property(element, word) for element in elements):
            sentence = f'photostereo and normalintegrate have no property "{name}"'
            raise Failure(WRONG_USE, f"--set {word}: {sentence}{play.meant(library.gstreamer(), elements, sentence) or '.'}")
    if len({property_of(word) for word in given.set}.intersection(LENS)) == 1:
        raise Failure(WRONG_USE, "--set focal-length-mm and --set sensor-width-mm belong together: a camera needs both.")


def settled(words):
    """Returns: the words of --set as the elements take them, one for each property: the last of several, y-axis=down for y-axis=1"""
    last = {property_of(word): word.partition("=")[2] for word in words}
    for name, value in last.items():
        try:
            element = play.parse(["photostereo" if has_property("photostereo", name) else "normalintegrate", f"{name}={value}"])
        except Failure as failure:  # GLib wraps negative numbers
            wrapped = str(int(value) % (1 << 32)) if re.fullmatch(r"-\d+", value) else value
            raise Failure(failure.code, str(failure).replace(f"{name} is {wrapped},", f"{name} is {value},")) from failure
        taken = play.text_of(element, name)[0] if play.what_it_takes(element, name) else None
        last[name] = value if taken is None else taken  # of a text or a list
    return [f"{name}={value}" for name, value in last.items()]


def run(given):
    np = library.numpy()
    check_options(given)
    given.set = settled(given.set)
    folders, lights = split(given.input)

    def work(folder, made):
        options = argparse.Namespace(**vars(given))  # the scale may be that of its lights
        photos = Set(folder, lights, options, made)
        photos.tell(made, options)
        if made.is_complete():
            return made.result
        try:
            watch, quality = solve(np, photos, made, options)
        except Failure as failure:
            if failure.code != UNREADABLE or not photos.leave_out_damaged(made):
                raise
            watch, quality = solve(np, photos, made, options)
        highest = show(np, photos, made, options, watch, quality)
        if options.web:
            write_page(np, photos, made, options)
        if options.rti:
            rti.write(np, made, photos, made.path("rti"))
        return made.finish(size=[int(n) for n in photos.size[::-1]], pictures=len(photos.pairs), highest=highest)

    return job.run_all(given, "photostereo", folders, work)
