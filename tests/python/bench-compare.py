# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/benchmarks/run --compare: ratios that became worse by 10 % are named, times are not looked at."""
import csv
import os
import subprocess
import sys
import tempfile
import unittest

from support import SOURCE, main

REPORT = os.path.join(SOURCE, "tests", "benchmarks", "report.py")
RUN = os.path.join(SOURCE, "tests", "benchmarks", "run")
COLUMNS = ["group", "case", "backend", "peer_or_floor", "median_us", "p99_us", "min_us", "repeats", "max_us"]
CASES = {("lapsharpen", "hd", "ours"): 100.0, ("lapsharpen", "hd", "memcpy"): 80.0, ("lapsharpen", "hd", "opencv"): 500.0,
         ("shcentroid", "700-d10-of", "ours"): 50.0, ("shcentroid", "700-d10-of-power", "ours"): 150.0,
         ("shcentroid", "700-d10-of-u16-all", "ours"): 60.0, ("shcentroid", "700-d10-of-u16-all-quad", "ours"): 120.0}


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, changes=None, factor=1.0):
        path = os.path.join(self.folder, name)
        with open(path, "w", newline="", encoding="ascii") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for (group, case, who), time in {**CASES, **(changes or {})}.items():
                time *= factor
                writer.writerow([group, case, "cpu", who, time, 1.2 * time, 0.9 * time, 30, 2 * time])
        return path

    def compare(self, before, now):
        out = os.path.join(self.folder, "out")
        os.makedirs(out, exist_ok=True)
        return subprocess.run([sys.executable, REPORT, "--compare", before, out, now], capture_output=True, text=True, check=False)

    def test_the_same_run_is_not_worse(self):
        path = self.write("same.csv")
        found = self.compare(path, path)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertIn("0 of 4 ratios are worse", found.stdout)

    def test_a_slower_machine_is_not_worse(self):
        found = self.compare(self.write("before.csv"), self.write("now.csv", factor=3.0))
        self.assertEqual(found.returncode, 0, found.stdout)
        self.assertIn("0 of 4", found.stdout)

    def test_a_ratio_that_is_worse_is_named_with_both_values(self):
        now = self.write("now.csv", {("lapsharpen", "hd", "ours"): 111.0})
        found = self.compare(self.write("before.csv"), now)
        self.assertEqual(found.returncode, 1)
        self.assertIn("2 of 4", found.stdout)
        self.assertIn("lapsharpen hd cpu beside memcpy: 0.80 before, 0.72 now (0.80, 0.72)", found.stdout)
        self.assertIn("lapsharpen hd cpu beside opencv: 5.00 before, 4.50 now", found.stdout)

    def test_nine_percent_and_a_gain_are_not_worse(self):
        now = self.write("now.csv", {("lapsharpen", "hd", "ours"): 109.0, ("shcentroid", "700-d10-of-power", "ours"): 60.0})
        found = self.compare(self.write("before.csv"), now)
        self.assertEqual(found.returncode, 0, found.stdout)

    def test_an_option_is_beside_the_same_without_it(self):
        now = self.write("now.csv", {("shcentroid", "700-d10-of-u16-all-quad", "ours"): 180.0})
        found = self.compare(self.write("before.csv"), now)
        self.assertEqual(found.returncode, 1)
        self.assertIn("shcentroid 700-d10-of-u16-all-quad cpu beside 700-d10-of-u16-all: 0.50 before, 0.33 now", found.stdout)

    def test_what_is_gone_is_told(self):
        before = self.write("before.csv", {("lapsharpen", "hd", "npp"): 90.0})
        found = self.compare(before, self.write("now.csv"))
        self.assertEqual(found.returncode, 0)
        self.assertIn("not measured now: lapsharpen hd cpu beside npp", found.stdout)

    def test_another_file_is_refused(self):
        path = os.path.join(self.folder, "other.csv")
        with open(path, "w", encoding="ascii") as file:
            file.write("x,y\n1,2\n")
        found = self.compare(path, self.write("now.csv"))
        self.assertNotEqual(found.returncode, 0)
        self.assertIn("other.csv is no results.csv", found.stderr)
        gone = subprocess.run([RUN, "--compare", os.path.join(self.folder, "none.csv")], capture_output=True, text=True, check=False)
        self.assertEqual(gone.returncode, 2)
        self.assertIn("none.csv cannot be read", gone.stderr)


main()
