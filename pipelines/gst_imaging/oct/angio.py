# SPDX-License-Identifier: LGPL-2.1-or-later
"""Flow from repeated B-scans, by octangio: its branch of the pipeline, its pictures, and how good the repeats are."""
import itertools
import os

from .. import library
from ..command import UNREADABLE, WRONG_USE, Failure
from ..frames.source import need
from ..report import pictures
from .images import PERCENTILES

METHODS = ("mean", "speckle-variance", "decorrelation", "complex-decorrelation", "doppler", "eigen")
OF_VIEW = ("enface", "surface", "bscans-per-volume")  # properties of the view from above begin so
OWN = {"method": "angio", "repeats": "repeats", "interval-us": "interval-us"}  # properties that options stand for
FLOW, VIEW = "angio.npy", "angio-enface.npy"
LEAST_CORRELATION = 0.5
LESS, MUCH_LESS = 0.9, 0.5  # of the decorrelation of neighbours: repeats further apart have more, unless their order is wrong
TRUE = ("true", "t", "yes", "1")  # as GStreamer reads them
OTHER_PLACE = 1.5  # times the change within a set, from one set to the next
NAMED = 8  # sets, at most, in a sentence


def add_arguments(parser):
    group = parser.add_argument_group("flow from repeated B-scans", "docs/reference/octangio.md has the methods and their formulas.")
    group.add_argument("--angio", choices=METHODS, metavar="METHOD", help=f"also the flow: {', '.join(METHODS)}")
    group.add_argument("--repeats", type=int, metavar="N", help="of --angio: consecutive B-scans of one place")
    group.add_argument("--interval-us", type=float, metavar="US", help="of --angio doppler: time from one repeat to the next, for velocities in mm/s")
    group.add_argument("--angio-set", action="append", default=[], metavar="PROPERTY=VALUE", help="of --angio: a property of octangio")


def check(options):
    if not options.angio:
        for name in "repeats", "interval_us", "angio_set":
            if getattr(options, name):
                raise Failure(WRONG_USE, f"--{name.replace('_', '-')} needs --angio METHOD.")
        return
    if not options.repeats or not 1 <= options.repeats <= 16:
        raise Failure(WRONG_USE, "--angio needs --repeats N, the number of consecutive B-scans of one place, up to 16.")
    if options.interval_us is not None and not options.interval_us > 0:
        raise Failure(WRONG_USE, f"--interval-us is {options.interval_us:g}; it needs more than 0.")
    for text in options.angio_set:
        name, equals, _value = text.partition("=")
        if not equals:
            raise Failure(WRONG_USE, f"--angio-set {text} is no PROPERTY=VALUE.")
        if name in OWN:
            raise Failure(WRONG_USE, f"{name}= of --angio-set is --{OWN[name]} of this command.")
    need("octangio")


def check_sets(source, options, warn):
    """Of sources that know how many B-scans they have"""
    if source.n_bscans and source.n_bscans < options.repeats:
        raise Failure(UNREADABLE, f"{source.name} has {source.n_bscans} B-scans, and --repeats is {options.repeats}.")
    if source.n_bscans % options.repeats:
        warn(f"{source.name} has {source.n_bscans} B-scans, which is no multiple of --repeats {options.repeats}: the last"
             f" {source.n_bscans % options.repeats} are left out. If B-scans were lost, later sets mix places.")


def words_of(source, made, options):
    """Of a pipeline with an octbscan o. A set takes some B-scans, so that its sink must not hold the others until then."""
    words = [f"method={options.angio}", f"repeats={options.repeats}"]
    if options.interval_us:
        words.append(f"interval-us={options.interval_us:g}")
    words += [text for text in options.angio_set if not text.startswith(OF_VIEW)]
    view = [text for text in options.angio_set if text.startswith(OF_VIEW)]
    sink = ["!", "other/tensors", "!", "picturesink", "sidecar=always", "async=false"]
    branch = ["o.complex", "!", "tee", "name=repeats", "!", "queue", *sink, "location=" + made.path("complex.npy"),
              "repeats.", "!", "queue", "!", "octangio", *words, *sink, "location=" + made.path(FLOW)]
    if options.enface:
        branch += ["repeats.", "!", "queue", "!", "octangio", *words, "enface=mean", f"bscans-per-volume={max(1, source.n_bscans // options.repeats)}",
                   *view, *sink, "location=" + made.path(VIEW)]
    return branch


class Repeats:
    """Of the complex depths [B-scans, lines, depths] of a run: how alike the repeats of each set are."""

    def __init__(self, path, n_repeats, turns):
        """turns: every second B-scan was taken backwards"""
        self.np = library.numpy()
        self.values = self.np.load(path, mmap_mode="r")
        self.values = self.values.reshape(-1, *self.values.shape[-2:])
        self.turns = turns
        self.n_repeats, self.n = n_repeats, len(self.values) // n_repeats

    def set(self, index):
        first = index * self.n_repeats
        values = self.values[first:first + self.n_repeats]
        if not self.turns:
            return values
        return self.np.stack([bscan[::-1 if (first + i) % 2 else 1] for i, bscan in enumerate(values)])

    def correlations(self, values):
        """values: [N, lines, depths]. Returns: [N, N], of the brighter half of the pixels; the phase by which an A-scan as a whole has moved does not count"""
        np = self.np
        power = (abs(values) ** 2).mean(0)
        values = np.where(power >= np.median(power), values, 0).astype(np.complex128)
        energy = (abs(values) ** 2).sum((1, 2))
        sums = abs(np.einsum("iad,jad->ija", values, values.conj())).sum(2)
        return sums / np.maximum(np.sqrt(energy[:, None] * energy), 1e-30)

    def quality(self):
        """Returns: of each set the least correlation of neighbours [n]; sets whose neighbours are less alike than other repeats, and those
        of two equal B-scans"""
        np, n = self.np, self.n_repeats
        least, mean, worst = np.ones((3, self.n))
        for index in range(self.n):
            c = self.correlations(self.set(index))
            away = np.maximum(1 - c, 1e-4)
            apart = [np.diagonal(away, lag).mean() for lag in range(1, n)]
            least[index] = np.diagonal(c, 1).min()
            mean[index] = min(apart) / apart[0]
            worst[index] = min((away[i, k] / max(away[i, j], away[j, k]) for i, j, k in itertools.combinations(range(n), 3)), default=1)
        is_odd = (mean < LESS) & (4 * (mean < LESS).sum() > 3 * self.n)  # a small difference in one set is noise
        return least, np.nonzero(is_odd | (worst < MUCH_LESS))[0], [index for index in range(self.n) if self.has_copies(index)]

    def change_between(self):
        """Returns: [n - 1], 1 less the correlation of the last B-scan of a set and the first one of the next"""
        ends = range(self.n_repeats, self.n * self.n_repeats, self.n_repeats)
        return self.np.array([1 - self.correlations(self.values[end - 1:end + 1])[0, 1] for end in ends])

    def has_copies(self, index):
        values = self.set(index)
        return any(self.np.array_equal(a, b) for a, b in zip(values, values[1:]))

    def is_dark(self, index):
        """Returns: [depths, lines]: the darkest quarter of the grey values that images.py gives levels"""
        np = self.np
        level = 10 * np.log10(np.maximum((abs(self.set(index)) ** 2).mean(0).T, 1e-20))
        low, high = np.percentile(level, PERCENTILES["level"])
        return level < low + (high - low) / 4


def sets_in_words(sets, n):
    """sets: numbers, from 0, of n"""
    numbers = ", ".join(str(index + 1) for index in sets[:NAMED]) + (", ..." if len(sets) > NAMED else "")
    return f"In {len(sets)} of {n} sets ({numbers})"


def tell_places(made, times):
    """Smooth layers look alike in two places: where sets are of one place each, B-scans change more from set to set than within one"""
    name, unit = "change from set to set", "times that within a set"
    if times >= OTHER_PLACE:
        made.report.figure(name, times, unit, at_least=OTHER_PLACE, about="the median of the sets, as 1 less the correlation")
    else:
        made.report.not_checked(name, unit, at_least=OTHER_PLACE, about=f"it is {times:.2g} times that within a set. If the sets show different places,"
                                " --repeats is wrong, or the sample moves, and so is the flow")


def tell_quality(made, options, repeats):
    np = library.numpy()
    least, odd, copied = repeats.quality()
    correlation, mixed = float(np.median(least)), np.nonzero(least < LEAST_CORRELATION)[0]
    made.report.figure("correlation of repeats", correlation, at_least=LEAST_CORRELATION,
                       about="the least of neighbouring repeats of a set, the median of the sets; B-scans of two places of tissue with speckle are below the limit")
    if repeats.n > 1:
        tell_places(made, float(np.median(repeats.change_between())) / max(1 - correlation, 1e-4))
    if len(mixed):
        made.warn(f"{sets_in_words(mixed, repeats.n)}, the correlation of neighbouring repeats is below {LEAST_CORRELATION}: they show two places, because"
                  " --repeats is wrong or a B-scan was lost, or the sample has moved. Their flow is wrong.")
    if len(odd):
        wrap = " Or did the sample move, or is the flow so fast that its phase wraps?" if options.angio == "doppler" else " Or did the sample move?"
        made.warn(f"{sets_in_words(odd, repeats.n)}, neighbouring repeats are less alike than others. Are the B-scans in the order of time,"
                  f" is --repeats right, and does the file begin with a whole set? If not, the flow and its sign are wrong.{wrap}")
    if copied:
        made.warn(f"{sets_in_words(copied, repeats.n)}, two neighbouring repeats are equal bit for bit, as from a camera or a program that repeats a"
                  " frame for one that it has lost. The flow is too small there.")
    return correlation


def show(made, options, name, title, dark=None):
    """The picture of @name, and in the report."""
    from .. import metadata

    np, told = library.numpy(), metadata.sidecar(made.path(name)) or {}
    values = np.load(made.path(name), mmap_mode="r")
    values = values.reshape(-1, *values.shape[-2:])
    n = len(values)
    image = np.array(values[n // 2], float)
    quantity = told.get("quantity", {})
    shown = image if dark is None else image[~dark]
    if options.angio == "doppler":
        high = float(np.percentile(abs(shown), 99.8)) or 1.0
        low, colours = -high, "both-signs"
    else:
        low, high = map(float, np.percentile(shown, (1, 99.8)))
        colours = "grey"
    high = high if high > low else low + 1
    if dark is not None:
        image[dark] = 0 if options.angio == "doppler" else low
    file = os.path.splitext(name)[0] + ".png"
    with open(made.path(file), "wb") as out:
        out.write(pictures.png(np, pictures.colour(np, image, low, high, colours)[..., :3]))
    made.report.picture(title.format(n // 2, n), image, quantity, file, low=low, high=high, colours=colours,
                        caption="" if dark is None else "Pixels in the darkest quarter of the grey values of bscan.png, which may be noise, are shown as no flow.")
    return n, quantity.get("unit", "")


def finish(made, options, given):
    """Returns: what result.json has of the flow"""
    repeats = Repeats(made.path("complex.npy"), options.repeats, given.get("bidirectional", "").lower() in TRUE)
    found = {}
    if options.repeats > 1:
        found["repeat-correlation"] = tell_quality(made, options, repeats)
    dark = repeats.is_dark(repeats.n // 2)
    found["sets"], found["flow-unit"] = show(made, options, FLOW, f"Flow: {options.angio}, set {{}} of {{}}", dark)
    if options.enface:
        show(made, options, VIEW, "Flow from above")
    if not options.complex:
        os.remove(made.path("complex.npy"))
        os.remove(made.path("complex.npy.json"))
    return found
