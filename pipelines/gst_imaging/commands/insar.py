# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two SLC images into an interferogram that is flattened, filtered, and if wanted unwrapped and in map coordinates.

FOLDER gets interferogram.cf32, coherence.img, amplitude.img, phase.img and removed.img (the phase that was removed) with a .hdr of
ENVI and a .vrt of GDAL (QGIS, GMT),
snaphu.conf with mask.byte, pictures, and report.html with all figures of quality. --unwrap runs snaphu, which the user installs,
and adds unwrapped.img and components.img. --geocode adds geo-NAME.tif in longitude and latitude.

The offsets are those of gst-imaging coregister. The phase of the earth is removed by the orbits where PRM files name a LED file
or --orbits gives them, and by the heights of --dem. Else the fringes are measured, removed before the looks, and put back.
--coregistered takes images in one geometry already (merged/SLC of topsStack, CSLC of COMPASS, secondary.SLC of coregister). --grid
names the image whose geometry that is, if it is a third one, as in a stack.
"""
import os

from .. import job, library
from ..command import NOT_WRITTEN, UNREADABLE, WRONG_USE, Failure, explain
from ..sar import agreement, arguments, fringes, geocode, grids, ground, orbit, rasters, relief, told, unwrap
from ..sar import places as geolocation
from ..sar.alignment import Alignment, report
from ..sar.images import check_complex, file_of, find_led, led_of
from ..sar.interferogram import form
from ..sar.pair import Work

EXAMPLES = [
    ("ref.PRM sec.PRM -o pair --looks 4 8 --dem topo_ra.grd --dem-surface sphere --unwrap", "files of GMTSAR"),
    ("ref.slc.vrt sec.slc.vrt -o pair --coregistered --looks 9 3 --geocode lat.rdr lon.rdr", "a stack of ISCE2"),
    ("ref.npy sec.npy -o pair --warp", "no orbits: fringes are measured"),
]


def add_arguments(parser):
    arguments.add_pairs(parser)
    whole_number = arguments.whole_number
    parser.add_argument("--looks", nargs=2, type=whole_number(1, 256), default=(4, 4), metavar=("X", "Y"), help="samples of a cell (4 4)")
    parser.add_argument("--window", nargs=2, type=whole_number(1, 63, 2), default=(5, 5), metavar=("X", "Y"), help="cells of the coherence (5 5)")
    parser.add_argument("--taps", type=whole_number(4, 32, 2), default=16, help="of the interpolation (16)")
    parser.add_argument("--warp", action="store_true", help="follow offsets that are no plane, as coregister")
    parser.add_argument("--coregistered", action="store_true", help="the images are in one geometry: no offsets, no resampling")
    parser.add_argument("--flatten", choices=["auto", "none", "measured", "orbit", "dem"], default="auto",
                        help="phase that is removed; auto: dem with --dem, else orbit where there are orbits, else measured (auto)")
    parser.add_argument("--orbits", nargs=2, metavar=("REF", "SEC"), help="PRM files with LED files, or XML of ISCE2")
    parser.add_argument("--grid", metavar="FILE", help="with --coregistered and orbits: PRM or XML file of a third image in whose columns and "
                        "lines both are. --dem, --mask and --geocode are in its columns and lines, too")
    parser.add_argument("--dem", metavar="RASTER", help="heights in m in the radar coordinates of the reference")
    parser.add_argument("--dem-surface", choices=["ellipsoid", "sphere"], default="ellipsoid",
                        help="what heights are above; sphere: topo_ra.grd of GMTSAR (ellipsoid)")
    parser.add_argument("--common-band", nargs=2, type=float, metavar=("RANGE", "AZIMUTH"), help="widths of the spectra, 0 to 1 of the sampling "
                        "rate: what only one image sees is left out; 0: not along this axis")
    parser.add_argument("--filter", type=float, default=0.5, metavar="ALPHA", help="exponent of the Goldstein filter; 0: none (0.5)")
    parser.add_argument("--mask", metavar="FILE", help="raster or array over the whole reference; 0 or NaN: water or layover, left out")
    parser.add_argument("--unwrap", action="store_true", help="run snaphu, if it is installed")
    parser.add_argument("--geocode", nargs="+", metavar="FILE", help="rasters with LAT and LON of the reference, or trans.dat of GMTSAR, or "
                        "the word orbit: by the PRM file of the orbit and --dem, or the ellipsoid without it")


def check_options(options):
    if not 0 <= options.filter <= 1:
        raise Failure(WRONG_USE, f"--filter is {options.filter:g}; it can be 0 to 1.")
    if options.common_band and not all(0 <= width <= 1 for width in options.common_band):
        raise Failure(WRONG_USE, f"--common-band is {' '.join(f'{width:g}' for width in options.common_band)}; both can be 0 to 1.")
    if options.geocode:
        if len(options.geocode) > 2:
            raise Failure(WRONG_USE, f"--geocode has {len(options.geocode)} files; give LAT and LON, or trans.dat.")
        if len(options.geocode) == 1 and is_raster(options.geocode[0]):
            raise Failure(WRONG_USE, f'--geocode has one raster, "{options.geocode[0]}"; give LAT and LON, or trans.dat.')
        geocode.check()
    if options.coregistered and options.warp:
        raise Failure(WRONG_USE, "--warp measures offsets, and --coregistered says that there are none. Leave one of them out.")
    if options.grid and not options.coregistered:
        raise Failure(WRONG_USE, "--grid is for --coregistered images: both have to be in its columns and lines already.")
    if options.grid and options.flatten in ("none", "measured"):
        raise Failure(WRONG_USE, f"--grid is for a phase from orbits, and --flatten is {options.flatten}. Leave one of them out.")
    if options.flatten == "dem" and not options.dem:
        raise Failure(WRONG_USE, "--flatten dem needs --dem with the heights.")


def is_raster(path):
    """For --geocode: no trans.dat, nor the word orbit?"""
    return bool(library.format_of(path)) or path.lower().endswith((".npy", ".vrt", ".rdr", ".tif", ".grd"))


def check_product(path):
    """SAFE folders of Sentinel-1 are refused with what to do."""
    if path.rstrip(os.sep).upper().endswith(".SAFE") or os.path.exists(os.path.join(path, "manifest.safe")):
        raise Failure(UNREADABLE, f'"{path}" is a product of Sentinel-1, whose bursts have to be deramped and merged first. Make a '
                                  "coregistered stack with topsStack of ISCE2 (merged/SLC) or COMPASS (CSLC), and give its images with "
                                  "--coregistered.")


def find_orbits(options, pair):
    """Returns: two files, or None"""
    if options.orbits:
        return options.orbits
    images = pair.reference, pair.secondary
    if all(path.lower().endswith(".prm") and find_led(path) for path in images):
        return images
    return None


def flattening(options, pair):
    """Returns: the properties of insarform"""
    orbits = find_orbits(options, pair)
    kind = options.flatten
    if kind == "auto":
        kind = "measured" if not orbits else "dem" if options.dem else "orbit"
        if options.dem and not orbits:
            raise Failure(WRONG_USE, "--dem needs the orbits: PRM files that name a LED file, or --orbits.")
    if options.grid and not orbits:
        raise Failure(WRONG_USE, "--grid needs the orbits: PRM files that name a LED file, or --orbits.")
    if options.dem and kind != "dem":
        raise Failure(WRONG_USE, f"--dem is for --flatten dem, and --flatten is {kind}. Leave one of them out.")
    if kind in ("none", "measured"):
        return kind, ["flatten=" + kind, "restore-phase=true"]
    if not orbits:
        raise Failure(WRONG_USE, f"--flatten {kind} needs the orbits: PRM files that name a LED file, or --orbits.")
    words = ["flatten=" + kind, "reference-orbit=" + orbits[0], "secondary-orbit=" + orbits[1]]
    words += ["grid-orbit=" + options.grid] if options.grid else []
    return kind, words + (["dem-location=" + options.dem, "dem-surface=" + options.dem_surface] if kind == "dem" else [])


def mask_of_cells(wanted, summary):
    """wanted: of a mask over the whole image, or None. Returns: that of cells"""
    if wanted is None:
        return None
    np = library.numpy()
    rows, columns = (((np.arange(n) + 0.5) * size / n).astype(int)
                     for n, size in zip((summary["height"], summary["width"]), wanted.shape))
    return wanted[rows][:, columns]


def find_image(options, pair):
    """Returns: the orbit.Image in whose columns and lines the images are, for --geocode orbit; None without"""
    if options.geocode != ["orbit"]:
        return None
    orbits = find_orbits(options, pair)
    if not orbits:
        raise Failure(WRONG_USE, "--geocode orbit needs the orbits: PRM files that name a LED file, or --orbits.")
    path = options.grid or orbits[0]
    if not path.lower().endswith(".prm"):
        raise Failure(WRONG_USE, f'--geocode orbit needs a PRM file of GMTSAR, and "{path}" is none. Give LAT and LON, as lat.rdr and lon.rdr'
                                 " of ISCE2.")
    return orbit.Image(path)


def check_rasters(options, this, made):
    """Before hours of work: DEM, mask, LAT and LON are of this image. Returns: the mask, and the paths of latitude and longitude; None without them"""
    size = this.images[0].width, this.images[0].height
    found = rasters.read_mask(options.mask, size, options.looks, this.scratch, made.warn)
    if found is not None and not any(word.startswith("mask-location=") for word in this.properties):  # nor for the offsets
        path = os.path.join(this.scratch, "mask.npy")
        library.numpy().save(path, found)
        this.properties = [*this.properties, "mask-location=" + path]
    if options.dem:
        rasters.check_dem(options.dem, size, options.looks, this.scratch, made.warn)
    if not options.geocode or options.geocode == ["orbit"]:
        return found, None
    orbits = find_orbits(options, this.pair)
    path = options.grid or (orbits[0] if orbits else "")
    image = orbit.Image(path) if path.lower().endswith(".prm") else None
    return found, geolocation.prepare(options.geocode, image, size, options.looks, this.scratch, made.warn)


def find_places(options, this, summary, image):
    """Returns: paths of latitude and longitude, by the orbit"""
    size = this.images[0].width, this.images[0].height
    seen = ground.of_cells(image, options.looks, (summary["height"], summary["width"]), size, options.dem, options.dem_surface, this.scratch)
    longitude = geocode.continued(seen.longitude, library.numpy().nanmax(seen.longitude))
    return [geocode.write_array(geocode.fill(values), name, this.scratch) for name, values in (("latitude", seen.latitude), ("longitude", longitude))]


def check_sizes(images):
    a, b = images
    if (a.width, a.height) != (b.width, b.height):
        raise Failure(UNREADABLE, f"The reference has {a.height} lines of {a.width} columns and the secondary {b.height} of {b.width}: they"
                                  " are not in one geometry. Leave --coregistered out.")


def warn_of_third(made, pair, orbit):
    third = grids.third(pair.reference, orbit)
    if third:
        made.warn(f"The images are in the columns and lines of {third}, and the phase was computed for those of {orbit}: it can be wrong by some "
                  f"rad. --grid {third} is right.")


class Late:
    """For with: a step behind the interferogram, which stays where the step fails. outputs: beginnings of the names of what the step writes"""

    def __init__(self, made, missing, outputs, how):
        """missing: what is not there without the step; how: to go on"""
        self.made, self.missing, self.outputs, self.how, self.failure = made, missing, outputs, how, None

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        if not isinstance(error, (Failure, OSError)):
            return False
        self.failure = error if isinstance(error, Failure) else Failure(*explain(error))
        folder = self.made.path("")
        for name in os.listdir(folder):
            if name.startswith(self.outputs):
                os.remove(os.path.join(folder, name))
        self.made.settings.setdefault(job.PARTIAL, []).append(self.missing)  # another run begins anew
        self.made.report.warning(f"Not complete: {self.sentence()}")
        return True

    def sentence(self):
        return f"{str(self.failure).replace(self.made.path(''), '')} Missing: {self.missing}. {self.how}"


def finish(options, this, made, summary, image, found):
    """Files of snaphu, unwrapping, map coordinates. found: as check_rasters(). Returns: figures for result.json, and the Late steps"""
    names, figures = ["coherence", "amplitude", "phase"], {}
    unwrapping = Late(made, "the unwrapped phase", ("unwrapped.", "components."), "snaphu -f snaphu.conf in the folder of the result unwraps it.")
    geocoding = Late(made, "the map", "geo-", "The same command makes all again.")
    known = unwrap.write_files(made, summary, options.looks, options.window, mask_of_cells(found[0], summary))
    if options.mask and not known.any():
        made.warn(f"No cell is left: {options.mask} leaves out all that have data in both images.")
    if options.unwrap:
        with unwrapping:
            phase, figures["unwrapped"] = unwrap.run(made, options.program, summary, known)
            names.append("unwrapped")
            add_unwrapped(made, options, phase, figures["unwrapped"], known)
    if options.geocode:
        with geocoding:
            geocode.geocode(made, names, found[1] or find_places(options, this, summary, image), summary, known, this.scratch)
    return figures, [step for step in (unwrapping, geocoding) if step.failure]


def add_unwrapped(made, options, phase, part, known):
    made.report.figure("unwrapped cells", 100 * part, "%", about=f"{100 * known.mean():.1f} % of all cells have data and are not masked")
    axes = [{"name": name, "unit": unit, "step": n} for name, unit, n in zip(("range", "azimuth"), ("columns", "lines"), options.looks)]
    made.report.picture("Unwrapped phase", phase, {"name": "phase", "unit": "rad", "axes": axes}, "unwrapped.img", colours="height")


def run(options):
    check_options(options)
    options.rasters, options.interferogram, options.slc, options.shade = "img", True, False, "coherence"

    def work(pair, properties, made):
        for path in pair.reference, pair.secondary:
            check_product(path)
        kind, flat = flattening(options, pair)
        image = find_image(options, pair)
        this = Work(pair, properties, made)
        made.setting("flattening", kind, "measured")
        orbits = [file for word in flat if "-orbit=" in word for file in (word.split("=", 1)[1], *led_of(word.split("=", 1)[1]))]
        for role, paths in ("orbit", orbits), ("dem", [options.dem]), ("mask", [options.mask]), (
                "geolocation", [image.path, *led_of(image.path)] if image else options.geocode):
            for path in filter(None, paths or []):
                made.input(file_of(path), role)
        if options.coregistered:
            grids.check((pair.reference, pair.secondary), made.report.inputs, options.grid)
        if made.is_complete():
            return made.result
        if options.coregistered and not options.grid and kind in ("orbit", "dem"):
            warn_of_third(made, pair, find_orbits(options, pair)[0])
        options.program = unwrap.find_snaphu() if options.unwrap else None
        paths = find_orbits(options, pair)
        is_gmtsar = paths and all(path.lower().endswith(".prm") for path in paths)
        places = agreement.read(paths, kind in ("orbit", "dem"), made.warn) if is_gmtsar else None
        if places:
            agreement.check(places, made.warn)
        this.open(check_complex)
        found = check_rasters(options, this, made)
        if options.coregistered:
            check_sizes(this.images)
        aligned = None if options.coregistered else Alignment(options, this, places=places)
        more = [*flat, *(["filter=goldstein", f"filter-alpha={options.filter}"] if options.filter > 0 else [])]
        if options.common_band:
            more += [f"{name}-bandwidth={width}" for name, width in zip(("range", "azimuth"), options.common_band)]
        if kind != "none":
            more.append("removed-location=" + made.path("removed.img"))
        summary = form(options, this.images, aligned.words if aligned else [], this, more)
        if kind != "none" and not os.path.exists(made.path("removed.img")):  # a warning has told why
            raise Failure(NOT_WRITTEN, '"removed.img" could not be written.')
        made.report.fact("flattening", kind)
        if places:
            told.add_baseline(made, places, kind)
        if kind in ("orbit", "dem"):
            fringes.check(made, summary, kind)
        if kind == "dem":
            told.add_heights(made, options.dem, this.images[0], this.scratch)
            if places and not options.grid:
                relief.check(made, summary, options.looks, places, options.dem)
        report(options, this, summary, aligned)
        figures, failed = finish(options, this, made, summary, image, found)
        this.end()
        result = made.finish(summary=summary, flattening=kind, **figures)
        if failed:
            raise Failure(failed[0].failure.code, " ".join(step.sentence() for step in failed) + " The interferogram, the coherence and the report are in "
                          f"{made.target}.", result)
        made.lines.append(f"flattening {kind}, mean coherence {summary['mean-coherence']:.4f}, {summary['width']} x {summary['height']} cells")
        return result

    return arguments.run_all(options, "insar", work)
