"""Google Benchmark's own compare.py on two results of ours, unchanged: it must find every measured
case by name and the change between them. Argument: the result_sample binary."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest

COMPARE = os.environ.get("MOEGAUGE_COMPARE_PY", "/usr/share/benchmark/compare.py")
if not pathlib.Path(COMPARE).is_file():
    print(f"skipped: no {COMPARE} (package libbenchmark-tools; or name one in MOEGAUGE_COMPARE_PY)")
    sys.exit(77)
# The distribution's tool goes with the distribution's Python: the packages of a virtual environment
# (a newer NumPy) do not fit its SciPy.
PYTHON = "/usr/bin/python3" if COMPARE.startswith("/usr/") else sys.executable
if subprocess.run([PYTHON, "-c", "import scipy"], capture_output=True).returncode != 0:
    print("skipped: the Python package scipy is not installed (python3-scipy)")
    sys.exit(77)


class Compare(unittest.TestCase):
    def compare(self, *options, old="1", new="0.5", samples="11"):
        with tempfile.TemporaryDirectory() as folder:
            for name, factor in (("old", old), ("new", new)):
                subprocess.run([SAMPLE, f"{folder}/{name}.json", factor, samples], check=True)
            run = subprocess.run(
                [PYTHON, COMPARE, "--no-color", "-d", f"{folder}/dump.json", *options, "benchmarks",
                 f"{folder}/old.json", f"{folder}/new.json"], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stderr, "")
            old_result = json.loads(pathlib.Path(folder, "old.json").read_text())
            report = json.loads(pathlib.Path(folder, "dump.json").read_text())
            self.cases = [case for case in old_result["cases"] if case["status"] == "ok"]
            names = [case["id"] for case in self.cases]
            return run.stdout, report, names

    def test_finds_every_measured_case_and_its_change(self):
        _, report, names = self.compare()
        self.assertEqual(len(names), 3)
        for name in names:
            row = next(row for row in report if row["name"] == name)
            self.assertEqual(row["time_unit"], "ns")
            self.assertEqual(len(row["measurements"]), 11)  # one per sample
            for measurement in row["measurements"]:
                self.assertAlmostEqual(measurement["time"], -0.5)
            self.assertEqual(row["measurements"][0]["real_time"], 120000)
            # Two samples of 11 without overlap: the smallest p that the rank test can give.
            self.assertLess(row["utest"]["time_pvalue"], 1e-4)
            self.assertTrue(row["utest"]["have_optimal_repetitions"])
        overall = next(row for row in report if row["name"] == "OVERALL_GEOMEAN")
        self.assertAlmostEqual(overall["measurements"][0]["time"], -0.5)

    def test_shows_the_aggregates_alone(self):
        text, report, names = self.compare("-a")
        for name in names:
            for aggregate in ("mean", "median", "stddev", "cv"):
                self.assertIn(f"{name}_{aggregate}", text)
            median = next(row for row in report if row["name"] == name + "_median")
            self.assertEqual(median["aggregate_name"], "median")
            self.assertEqual(median["measurements"][0]["real_time"], 120500)

    def test_sees_no_change_between_equal_results(self):
        _, report, names = self.compare(new="1")
        for name in names:
            row = next(row for row in report if row["name"] == name)
            self.assertTrue(all(measurement["time"] == 0 for measurement in row["measurements"]))
            self.assertGreater(row["utest"]["time_pvalue"], 0.5)

    def test_gives_the_same_answer_on_the_rows_of_many_samples(self):
        _, report, names = self.compare(new="0.999", samples="200")
        for name, case in zip(names, self.cases):
            samples = case["latency_us"]["samples"]
            self.assertEqual(len(samples), 200)
            row = next(row for row in report if row["name"] == name)
            self.assertEqual(len(row["measurements"]), 15)
            times = sorted(measurement["real_time"] / 1e3 for measurement in row["measurements"])
            self.assertAlmostEqual(times[7], statistics.median_high(samples))
            # 2.75 us of scatter against a change of 0.12: nothing at 200 samples, nor at 15 rows.
            self.assertGreater(row["utest"]["time_pvalue"], 0.05)
        _, report, names = self.compare(new="0.98", samples="200")
        for name in names:
            row = next(row for row in report if row["name"] == name)
            self.assertLess(row["utest"]["time_pvalue"], 0.001)


if __name__ == "__main__":
    SAMPLE = sys.argv.pop(1)
    unittest.main()
