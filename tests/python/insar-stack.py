# SPDX-License-Identifier: LGPL-2.1-or-later
"""gst-imaging insar-stack: baselines of orbits that were displaced by known vectors, networks against their definition, tables of jobs."""
import csv
import datetime
import itertools
import json
import os
import re
import shutil
import sys
import types
import unittest
import unittest.mock
import xml.etree.ElementTree

import numpy as np

from support import SOURCE, FolderCase, main, recipe, result_of, run_command

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import command
from gst_imaging.batch import rows as batch_rows
from gst_imaging.commands import insar_stack
from gst_imaging.sar import network

LIGHT = 299792458.0
# name, days after the first, perpendicular baseline, and what is along the sight and along the orbit: m
SCENES = [("S1_20200105", 0, 0, 0, 0), ("S1_20200117", 12, 120, -30, 0), ("S1_20200129", 24, -80, 12, 0), ("S1_20200222", 48, 40, 5, 0),
          ("S1_20200305", 60, -15, 0, 900), ("S1_20200317", 72, 95, -8, -300), ("S1_20200622", 169, 10, 0, 0)]


def place_of(latitude, longitude):
    """A point on the ellipsoid (WGS 84), m"""
    a, f = 6378137.0, 1 / 298.257223563
    e2, phi, lam = f * (2 - f), np.radians(latitude), np.radians(longitude)
    n = a / np.sqrt(1 - e2 * np.sin(phi) ** 2)
    return np.array([n * np.cos(phi) * np.cos(lam), n * np.cos(phi) * np.sin(lam), n * (1 - e2) * np.sin(phi)])


class Geometry:
    """A satellite at S that sees P, on the ellipsoid, at its right; its orbit is a circle around the centre of the earth"""

    def __init__(self):
        self.point = place_of(37.3, 14.1)
        up = self.point / np.linalg.norm(self.point)
        east = np.cross([0, 0, 1], up) / np.linalg.norm(np.cross([0, 0, 1], up))
        self.start = self.point + 693e3 * up - 480e3 * (0.98 * east + 0.2 * np.cross(up, east))
        sight = self.point - self.start
        self.range = np.linalg.norm(sight)
        self.sight = sight / self.range
        self.along = np.cross(self.start, self.sight)
        self.along *= -1 / np.linalg.norm(self.along)
        if np.cross(-up, self.along) @ self.sight < 0:  # it would see P at its left
            self.along = -self.along
        self.across = np.cross(self.sight, self.along)

    def state(self, t):
        radius, speed = np.linalg.norm(self.start), 7500.0
        angle = speed * t / radius
        return (self.start * np.cos(angle) + radius * self.along * np.sin(angle),
                speed * (self.along * np.cos(angle) - self.start / radius * np.sin(angle)))

    def write(self, folder, name, days, across, sight, along):
        """PRM and LED of an image whose middle is where the satellite is at S"""
        day = datetime.date(2020, 1, 5) + datetime.timedelta(days)
        year_day = (day - datetime.date(day.year, 1, 1)).days + 1
        middle = 17 * 3600 + 1.5  # seconds of the day
        moved = across * self.across + sight * self.sight + along * self.along
        lines = [f"15 {day.year} {year_day} {middle - 70:.6f} 10"]
        for k in range(-7, 8):
            position, velocity = self.state(10.0 * k)
            lines.append(" ".join([str(day.year), str(year_day), f"{middle + 10 * k:.6f}",
                                   *(f"{n:.6f}" for n in [*(position + moved), *velocity])]))
        with open(os.path.join(folder, f"{name}.LED"), "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        step = LIGHT / 2 / 64e6
        with open(os.path.join(folder, f"{name}.PRM"), "w", encoding="ascii") as file:
            file.write(f"SC_clock_start = {day.year * 1000 + year_day + (middle - 2000 / 1500) / 86400:.12f}\n"
                       f"PRF = 1500\nnum_lines = 4000\nnear_range = {self.range - 3000 * step:.6f}\n"
                       f"num_rng_bins = 6000\nrng_samp_rate = 64000000\nradar_wavelength = 0.0555\nled_file = {name}.LED\n"
                       "lookdir = R\nSC_identity = 10\n")


class Folder(FolderCase):
    def run_stack(self, *words, status=0):
        done = run_command("insar-stack", *words, folder=self.folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def read(self, *names):
        with open(self.path(*names), encoding="utf-8") as file:
            return list(csv.DictReader(file))


class Stack(Folder):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("slc"))
        for scene in SCENES:
            Geometry().write(self.path("slc"), *scene)

    def pairs(self, *words):
        shutil.rmtree(self.path("stack"), ignore_errors=True)
        self.run_stack("slc", "-o", "stack", *words)
        return [(row["reference"][3:], row["secondary"][3:]) for row in self.read("stack", "pairs.csv")]

    def test_days_and_baselines(self):
        self.run_stack("slc", "-o", "stack")
        for row, (name, days, across, _sight, along) in zip(self.read("stack", "scenes.csv"), SCENES, strict=True):
            self.assertEqual((row["name"], row["date"]), (name, name[3:]))
            self.assertAlmostEqual(float(row["days"]), days, delta=0.0011)
            # moved along itself a circle has other places, too
            self.assertAlmostEqual(float(row["baseline_m"]), across, delta=0.3 if along else 0.011)
        told = {scene[0]: scene for scene in SCENES}
        for row in self.read("stack", "pairs.csv"):
            one, other = told[row["reference"]], told[row["secondary"]]
            self.assertAlmostEqual(float(row["days"]), other[1] - one[1], delta=0.0011)
            self.assertAlmostEqual(float(row["baseline_m"]), other[2] - one[2], delta=0.6)

    def test_long_baselines(self):
        """Beyond 1000 m they are as exact, and the row of each pair is there; beyond the critical one there is a warning."""
        truth = Geometry()
        os.mkdir(self.path("far"))
        for scene in SCENES[0], ("S1_20200117", 12, 2500, 40, 0), ("S1_20200129", 24, 11000, 0, 0):
            truth.write(self.path("far"), *scene)
        told = self.run_stack("far", "-o", "stack", "--network", "sequential")
        self.assertEqual([round(float(row["baseline_m"])) for row in self.read("stack", "scenes.csv")], [0, 2500, 11000])
        self.assertEqual(len(self.read("stack", "jobs.csv")), 2)
        earth, criticals = np.linalg.norm(truth.point), []  # as a sphere
        for across in 2500, 11000:
            cosine = (np.sum((truth.start + across * truth.across) ** 2) - earth ** 2 - truth.range ** 2) / (2 * earth * truth.range)
            criticals.append(0.0555 * truth.range * np.sqrt(1 / cosine ** 2 - 1) / (2 * LIGHT / 2 / 64e6))
        found = re.search("1 of 2 pairs have a perpendicular baseline above the critical one of ([0-9]+) m.* S1_20200117 and S1_20200129, has 8500 m", told)
        self.assertTrue(found, told)
        self.assertAlmostEqual(float(found[1]) / min(criticals), 1, delta=0.01)
        self.assertNotIn("critical", self.run_stack("far", "-o", "near", "--network", "sequential", "--max-baseline", "3000"))

    def test_the_smaller_critical_baseline_counts(self):
        """Two images of one stack may differ in their sampling rate."""
        for critical in (1000, 5000), (5000, 1000):
            scenes = [types.SimpleNamespace(name=str(i), baseline=2000 * i, critical=value) for i, value in enumerate(critical)]
            told = unittest.mock.Mock()
            insar_stack.warn_of_far(told, scenes, [(0, 1)])
            self.assertIn("1 of 1 pairs have a perpendicular baseline above the critical one of 1000 m", told.warn.call_args.args[0])

    def test_networks(self):
        dates = [scene[0][3:] for scene in SCENES]
        self.assertEqual(self.pairs("--network", "sequential"), list(zip(dates, dates[1:])))
        two = [(dates[i], dates[k]) for i in range(7) for k in range(i + 1, min(i + 3, 7))]
        self.assertEqual(self.pairs("--network", "sequential", "--connections", "2"), two)
        star = [tuple(sorted((dates[3], date))) for date in dates if date != dates[3]]
        self.assertEqual(self.pairs("--network", "star", "--centre", "S1_20200222"), star)
        self.assertEqual(self.pairs("--network", "star"), star)  # the one in the middle
        limited = self.pairs("--network", "sequential", "--connections", "2", "--max-days", "36", "--max-baseline", "130")
        self.assertEqual(limited, [(dates[i], dates[k]) for i, k in ((0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5))])
        self.assertIn("2 parts", self.run_stack("slc", "-o", "two", "--network", "sequential", "--max-days", "36"))
        delaunay = self.pairs()
        for name, met in ("stack", True), ("two", False):
            figure, = (figure for figure in result_of(self.path(name))["figures"] if figure["name"] == "parts of the network")
            self.assertEqual(figure["met"], met)
        self.assertEqual(len(network.parts(7, [(dates.index(a), dates.index(b)) for a, b in delaunay])), 1)
        plot = xml.etree.ElementTree.parse(self.path("stack", "network.svg"))
        self.assertEqual(len(plot.findall(".//{*}circle")), 7)
        self.assertEqual(len(plot.findall(".//{*}path[@stroke='#2563eb']")), len(delaunay))
        text = xml.etree.ElementTree.tostring(plot.getroot(), encoding="unicode")  # not every program knows variables of CSS
        self.assertNotIn("var(", text)
        self.assertNotIn("currentColor", text)

    def test_rows_of_jobs(self):
        for words, sentence in ((("--centre", "S1_20200222"), "--centre is for --network star"), (("--", "--loks", "4"), "Unrecognized arguments"),
                                (("--", "--coregistered"), "--coregistered is not for the rows of a stack"),
                                (("--", "--orbits", "a", "b"), "--orbits is not for the rows"), (("--", "--grid", "a"), "--grid is not for the rows"),
                                (("--", "--pairs", "a"), "--pairs is not for the rows"), (("--", "--war"), "Unrecognized arguments: --war"),
                                (("--", "--flatten", "none"), "--grid is for a phase from orbits, and --flatten is none"),
                                (("--", "--flatten", "orbit", "--dem", "a"), "--dem is for --flatten dem"), (("--", "third"), "there are 3 here"),
                                (("--", "--filter", "2"), "can be 0 to 1"), (("--grid", "x"), 'There is no scene "x"'),
                                (("--table", "--series", "mintpy"), "no other action")):
            self.assertIn(sentence, self.run_stack("slc", "-o", "stack", *words, status=2))
        self.run_stack("slc", "-o", "stack", "--network", "star", "--centre", "S1_20200222", "--", "--looks", "20", "4", "--warp", "xsearch=32",
                       "--dem", "dem.npy")
        rows = self.read("stack", "jobs.csv")
        self.assertEqual(rows[0], {
            "command": "insar", "input": "stack-images/S1_20200105/secondary.PRM slc/S1_20200222.PRM",
            "output": "stack-pairs/S1_20200105-S1_20200222",
            "arguments": "--coregistered --orbits slc/S1_20200105.PRM slc/S1_20200222.PRM --grid slc/S1_20200222.PRM --looks 20 4 --dem dem.npy"})
        self.assertEqual(len(rows), 6)
        images = self.read("stack", "images.csv")
        self.assertEqual(images[0], {
            "command": "coregister", "input": "slc/S1_20200222.PRM slc/S1_20200105.PRM", "output": "stack-images/S1_20200105",
            "arguments": "--slc --flatten measured --taps 16 --warp xsearch=32"})
        self.assertEqual(len(images), 6)
        self.run_stack("slc", "-o", "looks", "--network", "star", "--centre", "S1_20200222", "--results", "looks/../stack-pairs", "--", "--looks", "8", "8",
                       "--warp", "xsearch=32", "--unwrap")
        self.assertEqual(self.read("looks", "images.csv"), images)  # an image depends on neither
        self.assertEqual([row["output"] for row in self.read("looks", "jobs.csv")], [row["output"] for row in rows])
        self.run_stack("slc", "-o", "other", "--network", "sequential", "--connections", "3", "--grid", "S1_20200105")
        self.assertEqual({row["input"].split()[0] for row in self.read("other", "images.csv")}, {"slc/S1_20200105.PRM"})
        if "insar" in command.names():  # the rows are calls that it takes
            for row in (*batch_rows.read(self.path("stack", "jobs.csv")), *batch_rows.read(self.path("stack", "images.csv"))):
                parser = batch_rows.parser_of(row)
                parser.parse_intermixed_args([*row.words(parser), f"--output={row.output}"])
        os.makedirs(self.path(rows[0]["output"]))  # a result that no row has made
        with open(self.path(rows[0]["output"], "result.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "gst-imaging-result-v1", "outputs": [], "figures": []}, file)
        self.assertIn("6 of 6 pairs have no result", self.run_stack("stack", "--table", "-o", "table"))
        table = self.read("table", "table.csv")
        self.assertEqual([row["state"] for row in table], ["stale"] + ["missing"] * 5)
        self.assertEqual(table[0]["days"], "48.000")

    def test_a_new_scene_keeps_the_grid(self):
        """Images on the grid of the plan before need not be made again."""
        for name in (scene[0] for scene in SCENES[4:]):
            for kind in "PRM", "LED":
                os.rename(self.path("slc", f"{name}.{kind}"), self.path(f"{name}.{kind}"))
        self.assertNotIn("plan before", self.run_stack("slc", "-o", "stack"))
        before = self.read("stack", "images.csv")
        grid = before[0]["input"].split()[0]
        for name in (scene[0] for scene in SCENES[4:]):
            for kind in "PRM", "LED":
                os.rename(self.path(f"{name}.{kind}"), self.path("slc", f"{name}.{kind}"))
        self.run_stack("slc", "-o", "fresh")
        self.assertNotEqual(self.read("fresh", "images.csv")[0]["input"].split()[0], grid)  # else this shows nothing
        self.assertIn("another result", self.run_stack("slc", "-o", "stack", status=4))
        self.assertIn(f"grid {grid[4:-4]} (that of the plan before", self.run_stack("slc", "-o", "stack", "--overwrite"))
        after = self.read("stack", "images.csv")
        self.assertEqual([row for row in after if row in before], before)
        self.assertEqual({row["input"].split()[0] for row in after}, {grid})
        self.assertIn(f"--grid {grid}", self.read("stack", "jobs.csv")[0]["arguments"])
        self.run_stack("slc", "-o", "stack", "--overwrite", "--grid", "S1_20200622")
        self.assertEqual({row["input"].split()[0] for row in self.read("stack", "images.csv")}, {"slc/S1_20200622.PRM"})
        os.remove(self.path("slc", "S1_20200622.PRM"))
        self.assertIn("was S1_20200622, which is no scene any more", self.run_stack("slc", "-o", "stack", "--overwrite"))

    def test_pairs_that_are_left_out(self):
        dates = [scene[0][3:] for scene in SCENES]
        two = "--network", "sequential", "--connections", "2"
        whole, left = self.pairs(*two), ("S1_20200117", "S1_20200105")
        call = "slc", "-o", "stack", *two, "--leave-out", *left
        self.assertEqual(self.pairs(*call[3:]), whole[1:])  # in any order
        self.assertEqual(len(self.read("stack", "jobs.csv")), len(whole) - 1)
        self.run_stack(*call)  # complete
        self.assertIn("another result", self.run_stack("slc", "-o", "stack", *two, status=4))  # the pair does not come back unasked
        self.assertEqual(self.pairs(*call[3:], "--leave-out", *SCENES[2][:1], SCENES[4][0]), [pair for pair in whole[1:] if pair != (dates[2], dates[4])])
        self.assertIn("2 parts", self.run_stack("slc", "-o", "cut", "--network", "sequential", "--leave-out", *left))
        self.assertIn("the network has no pair of these", self.run_stack("slc", "-o", "none", *two, "--leave-out", SCENES[0][0], SCENES[6][0]))
        self.assertIn('there is no scene "x"', self.run_stack("slc", "-o", "other", "--leave-out", "x", left[0], status=2))

    def test_images_that_are_not_there(self):
        for scene in SCENES[:4]:
            with open(self.path("slc", f"{scene[0]}.PRM"), "a", encoding="ascii") as file:
                file.write(f"SLC_file = {scene[0]}.SLC\n")
        for scene in SCENES[1:3]:
            with open(self.path("slc", f"{scene[0]}.SLC"), "wb"):
                pass
        told = self.run_stack("slc", "-o", "stack")
        self.assertIn("5 of 7 PRM files name no SLC_file that is there: slc/S1_20200105.PRM, slc/S1_20200222.PRM, ", told)
        for scene in SCENES:
            with open(self.path("slc", f"{scene[0]}.PRM"), "a", encoding="ascii") as file:
                file.write(f"SLC_file = {SCENES[1][0]}.SLC\n")
        self.assertNotIn("SLC_file", self.run_stack("slc", "-o", "stack2"))

    def test_an_orbit_of_another_day(self):
        """The states of one LED file with the days of another one"""
        self.assertNotIn("state vectors", self.run_stack("slc", "-o", "stack"))
        with open(self.path("slc", "S1_20200222.LED"), encoding="ascii") as file:
            text = file.read()
        with open(self.path("slc", "S1_20200305.LED"), "w", encoding="ascii") as file:
            file.write(text.replace("2020 53 ", "2020 65 "))
        self.assertIn("S1_20200222, S1_20200305 have the same state vectors", self.run_stack("slc", "-o", "stack2"))
        with open(self.path("slc", "S1_20200305.PRM"), "w", encoding="ascii") as file:  # two frames of one pass
            with open(self.path("slc", "S1_20200222.PRM"), encoding="ascii") as other:
                file.write(other.read())
        self.assertNotIn("state vectors", self.run_stack("slc", "-o", "stack3"))

    def test_what_is_no_stack(self):
        os.mkdir(self.path("one"))
        Geometry().write(self.path("one"), *SCENES[0])
        self.assertIn("1 PRM files", self.run_stack("one", "-o", "stack", status=3))
        Geometry().write(self.path("one"), *SCENES[1])
        os.remove(self.path("one", f"{SCENES[1][0]}.LED"))
        self.assertIn("S1_20200117.PRM names the LED file one/S1_20200117.LED, which cannot be read: No such file", self.run_stack("one", "-o", "stack", status=3))
        with open(self.path("one", f"{SCENES[1][0]}.PRM"), "w", encoding="ascii") as file:
            file.write("PRF = 1500\n")
        self.assertIn("SC_clock_start", self.run_stack("one", "-o", "stack", status=3))
        self.assertIn("no scene", self.run_stack("slc", "-o", "stack", "--network", "star", "--centre", "x", status=2))
        self.assertIn("None of", self.run_stack("slc", "-o", "stack", "--max-days", "1", status=2))
        self.assertIn("no stack", self.run_stack("slc", "--table", "-o", "table", status=3))
        self.assertEqual([name for name in os.listdir(self.folder) if name in ("stack", "table")], [])


@unittest.skipUnless("insar" in command.names(), "gst-imaging is built without insar")
class TopsStack(Folder):
    PHASES = {"20200105": 0.0, "20200117": 0.5, "20200129": 1.2}  # rad

    def write(self, name, image):
        """An image as ISCE2 has it: samples, and a .vrt of GDAL"""
        os.makedirs(os.path.dirname(self.path(name)))
        image.astype("<c8").tofile(self.path(name))
        height, width = image.shape
        with open(self.path(name + ".vrt"), "w", encoding="utf-8") as file:
            file.write(f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}"><VRTRasterBand dataType="CFloat32" band="1" subClass="VRTRawRasterBand">'
                       f'<SourceFilename relativeToVRT="1">{os.path.basename(name)}</SourceFilename><ByteOrder>LSB</ByteOrder><ImageOffset>0</ImageOffset>'
                       f"<PixelOffset>8</PixelOffset><LineOffset>{8 * width}</LineOffset></VRTRasterBand></VRTDataset>\n")

    def test_the_table_of_the_page_makes_pairs_of_merged_images(self):
        rng = np.random.default_rng(3)
        ground = rng.standard_normal((96, 270)) + 1j * rng.standard_normal((96, 270))
        for date, phase in self.PHASES.items():
            self.write(f"merged/SLC/{date}/{date}.slc.full", ground * np.exp(-1j * phase))
        with open(self.path("jobs.csv"), "w", encoding="utf-8") as file:
            file.write(recipe("stacks", "text", "merged/SLC"))
        done = run_command("batch", "jobs.csv", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        pairs = list(itertools.combinations(self.PHASES, 2))
        self.assertEqual(sorted(os.listdir(self.path("pairs"))), ["-".join(pair) for pair in pairs])
        for one, other in pairs:
            found = np.fromfile(self.path("pairs", f"{one}-{other}", "phase.img"), "<f4")
            self.assertEqual(found.size, 32 * 30)
            self.assertLess(np.abs(found - (self.PHASES[other] - self.PHASES[one])).max(), 1e-3)


class Delaunay(unittest.TestCase):
    def test_circles_are_empty_and_the_triangulation_is_whole(self):
        for n, seed in itertools.product((3, 5, 12, 40), range(4)):
            points = np.random.default_rng(seed).uniform(-100, 100, (n, 2))
            edges = network.delaunay(points)
            found = set()  # the definition: triangles whose circle has no other point in it
            for triangle in itertools.combinations(range(n), 3):
                a, b, c = points[list(triangle)]
                matrix = np.array([b - a, c - a])
                centre = np.linalg.solve(2 * matrix, (matrix ** 2).sum(1))
                others = np.delete(points, triangle, axis=0) - a - centre
                if ((others ** 2).sum(1) > centre @ centre).all():
                    found |= set(itertools.combinations(triangle, 2))
            self.assertEqual(set(edges), found)

    def test_points_without_a_triangle(self):
        self.assertEqual(network.delaunay([(0, 0), (12, 5)]), [(0, 1)])
        self.assertEqual(network.delaunay([(12 * i, 0) for i in range(5)]), [(i, i + 1) for i in range(4)])
        self.assertEqual(network.delaunay([(0, 0), (1, 0), (0, 1), (1, 1)]), [(0, 1), (0, 2), (1, 3), (2, 3)])  # on one circle


main()
