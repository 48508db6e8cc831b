"""Exports in the eyes of the tools that read them: Google Benchmark's compare.py, Apache Otava, vl-convert,
Python's csv. Arguments: the moegauge binary, the result_sample binary."""

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

COMPARE = os.environ.get("MOEGAUGE_COMPARE_PY", "/usr/share/benchmark/compare.py")
PYTHON = "/usr/bin/python3" if COMPARE.startswith("/usr/") else sys.executable
OTAVA = shutil.which("otava", path=os.path.dirname(sys.executable)) or shutil.which("otava")
try:
    import vl_convert
except ImportError:
    vl_convert = None


def runs(command):
    return subprocess.run(command, capture_output=True).returncode == 0


class Readers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def sample(self, name, factor="1", date=None):
        path = self.folder / name
        subprocess.run([SAMPLE, path, factor], check=True)
        if date:
            result = json.loads(path.read_text())
            result["context"]["date"] = date
            path.write_text(json.dumps(result))
        return path

    def export(self, form, *results, options=(), code=0):
        run = subprocess.run([MOEGAUGE, "export", *results, "--format", form, *options], capture_output=True, text=True)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout

    def ingested(self, name, text, date=None):
        """A result of pasted text."""
        (self.folder / (name + ".txt")).write_text(text)
        path = self.folder / (name + ".json")
        subprocess.run([MOEGAUGE, "ingest", self.folder / (name + ".txt"), "--out", path], check=True, capture_output=True)
        if date:
            result = json.loads(path.read_text())
            result["context"]["date"] = date
            path.write_text(json.dumps(result))
        return path

    def cases(self, path):
        return {c["id"]: c for c in json.loads(path.read_text())["cases"]}

    def compared(self, form):
        if not os.path.isfile(COMPARE) or not runs([PYTHON, "-c", "import scipy"]):
            self.skipTest(f"no {COMPARE}, or no scipy for it (libbenchmark-tools, python3-scipy)")
        for name, factor in (("old", "1"), ("new", "0.5")):
            (self.folder / f"{name}.gb").write_text(self.export(form, self.sample(name + ".json", factor)))
        run = subprocess.run([PYTHON, COMPARE, "--no-color", "-d", self.folder / "dump.json", "benchmarks",
                              self.folder / "old.gb", self.folder / "new.gb"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return {row["name"]: row for row in json.loads((self.folder / "dump.json").read_text())}

    def ok_ids(self):
        return [i for i, case in self.cases(self.sample("ok.json")).items() if case["status"] == "ok"]

    def test_compare_py_finds_every_case_and_its_change(self):
        rows = self.compared("google-benchmark")
        for name in self.ok_ids():
            self.assertEqual([m["time"] for m in rows[name]["measurements"]], [-0.5] * 11)

    def test_compare_py_reads_medians_alone(self):
        rows = self.compared("google-benchmark-median")
        for name in self.ok_ids():
            (measurement,) = rows[name + "_median"]["measurements"]
            self.assertAlmostEqual(measurement["time"], -0.5)
            self.assertNotIn(name, rows)

    def test_compare_py_finds_a_change_of_serving(self):
        if not os.path.isfile(COMPARE) or not runs([PYTHON, "-c", "import scipy"]):
            self.skipTest(f"no {COMPARE}, or no scipy for it (libbenchmark-tools, python3-scipy)")
        for form, name in (("google-benchmark", "ttft_ms.mean"), ("google-benchmark-median", "ttft_ms.mean_median")):
            for variant, ms in (("old", 200), ("new", 150)):
                text = f"TTFT (ms)\n\nISL-OSL\tall\n512-512\t{ms}\n1024-1024\t{2 * ms}\n"
                (self.folder / f"{variant}.gb").write_text(self.export(form, self.ingested(variant, text)))
            run = subprocess.run([PYTHON, COMPARE, "--no-color", "-d", self.folder / "dump.json", "benchmarks",
                                  self.folder / "old.gb", self.folder / "new.gb"], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            rows = {row["name"]: row for row in json.loads((self.folder / "dump.json").read_text())}
            (measurement,) = rows["serve/-/input_output=512-512/" + name]["measurements"]
            self.assertAlmostEqual(measurement["time"], -0.25)
            self.assertEqual(measurement["real_time"], 200)

    def test_csv_holds_the_numbers_of_the_file(self):
        result = self.sample("r.json")
        cases = self.cases(result)
        wide = list(csv.DictReader(io.StringIO(self.export("csv-wide", result))))
        wide, served = wide[:len(cases)], wide[len(cases):]
        self.assertEqual([row["id"] for row in wide], list(cases))
        self.assertEqual([(row["id"], row["ttft_ms.mean"], row["value"], row["stderr"]) for row in served],
                         [("serve/org/model/input_output=512-512/concurrency=8", "982.67", "", ""), ("eval/-/task=t", "", "-0.5", "0.25")])
        long = {}
        for row in csv.DictReader(io.StringIO(self.export("csv", result))):
            long[row["id"], row["number"]] = row["value"]
        for row in wide:
            case = cases[row["id"]]
            self.assertEqual(row["status"], case["status"])
            if case["status"] != "ok":
                self.assertEqual(row["median_us"], "")
                self.assertEqual(row["reason"], case["reason"])
                continue
            self.assertEqual(float(row["median_us"]), case["latency_us"]["median"])
            self.assertEqual(float(row["error_total"]), case["error"]["total"]["relative_l2"])
            self.assertEqual(long[row["id"], "median_us"], row["median_us"])
            self.assertEqual(long[row["id"], "error_total"], row["error_total"])

    def otava_changes(self, metric, column, direction):
        """What Otava finds in history.csv: time, metric, percent."""
        (self.folder / "otava.yaml").write_text(f"""tests:
  nightly:
    type: csv
    file: {self.folder / 'history.csv'}
    time_column: time
    attributes: [result]
    metrics:
      {metric}: {{column: "{column}", direction: {direction}}}
""")
        run = subprocess.run([OTAVA, "analyze", "nightly", "--output", "json", "--since", "2026-10-01"], capture_output=True,
                             text=True, env={**os.environ, "OTAVA_CONFIG": str(self.folder / "otava.yaml")})
        self.assertEqual(run.returncode, 0, run.stderr)
        found = json.loads(run.stdout[run.stdout.index("{"):])["nightly"]
        return [(point["time"], change["metric"], float(change["forward_change_percent"]))
                for point in found for change in point["changes"]]

    def test_otava_finds_the_night_on_which_latency_rose(self):
        if not OTAVA:
            self.skipTest("apache-otava is not installed; scripts/setup test installs it")
        # 24 nights with half a percent of wander; from the 13th on everything takes 20% longer.
        nights = [self.sample(f"{n:02}.json", str((1.2 if n > 12 else 1.0) * (1 + 0.005 * ((n * 7) % 5 - 2) / 2)),
                              f"2026-11-{n:02}T01:00:00+00:00") for n in range(1, 25)]
        name = self.ok_ids()[0]
        (self.folder / "history.csv").write_text(self.export("csv-otava", *reversed(nights)))
        changes = self.otava_changes("latency", name, -1)
        self.assertEqual(len(changes), 1)
        self.assertEqual(changes[0][1], "latency")
        self.assertAlmostEqual(changes[0][2], 20, delta=2)

    def test_otava_finds_the_night_on_which_throughput_fell(self):
        if not OTAVA:
            self.skipTest("apache-otava is not installed; scripts/setup test installs it")
        nights = []
        for n in range(1, 25):
            rate = (400 if n > 12 else 500) * (1 + 0.005 * ((n * 7) % 5 - 2) / 2)
            nights.append(self.ingested(f"{n:02}", f"Throughput: 2.5 requests/s, 900 total tokens/s, {rate} output tokens/s\n",
                                        f"2026-11-{n:02}T01:00:00+00:00"))
        (self.folder / "history.csv").write_text(self.export("csv-otava", *nights))
        head = next(csv.reader(io.StringIO((self.folder / "history.csv").read_text())))
        name = next(column for column in head if column.endswith("/output_tokens_per_s"))
        changes = self.otava_changes("throughput", name, 1)
        self.assertEqual(len(changes), 1)
        self.assertAlmostEqual(changes[0][2], -20, delta=2)

    def test_github_action_benchmark_gets_what_its_documentation_asks_for(self):
        result = self.sample("r.json")
        cases = self.cases(result)
        rows = json.loads(self.export("github-action-benchmark", result))
        ok = [i for i, c in cases.items() if c["status"] == "ok"]
        rows, served = rows[:len(ok)], rows[len(ok):]
        self.assertEqual([row["name"] for row in rows], ok)
        for row in rows:
            self.assertEqual(row["value"], cases[row["name"]]["latency_us"]["median"])
            self.assertEqual(row["unit"], "us")
            self.assertTrue(row["range"].startswith("± "))
            self.assertEqual(set(row), {"name", "unit", "value", "range", "extra"})
        self.assertEqual([(row["name"], row["unit"], row["value"], row.get("range")) for row in served],
                         [("serve/org/model/input_output=512-512/concurrency=8/ttft_ms.mean", "ms", 982.67, None),
                          ("eval/-/task=t", "score", -0.5, "± 0.25")])

    def test_vl_convert_draws_the_numbers_of_the_file(self):
        if vl_convert is None:
            self.skipTest("vl-convert-python is not installed; scripts/setup report installs it")
        result = self.sample("r.json")
        cases = {i: c for i, c in self.cases(result).items() if c["status"] == "ok" and c["tokens"] > 0}
        spec = self.export("vega", result, options=("--chart", "latency"))
        scene = vl_convert.vegalite_to_scenegraph(json.loads(spec))
        self.assertTrue(scene)
        drawn = {row["id"]: row["median"] for row in json.loads(spec)["datasets"]["cases"]}
        self.assertEqual(drawn, {i: c["latency_us"]["median"] for i, c in cases.items()})
        for picture in ("chart.svg", "chart.png"):
            (self.folder / "spec.json").write_text(spec)
            run = subprocess.run([sys.executable, CHART, self.folder / "spec.json", self.folder / picture],
                                 capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertGreater((self.folder / picture).stat().st_size, 1000)
        self.assertIn("<svg", (self.folder / "chart.svg").read_text())

    def test_every_chart_of_the_report_is_a_specification_that_vega_lite_accepts(self):
        if vl_convert is None:
            self.skipTest("vl-convert-python is not installed; scripts/setup report installs it")
        result, before = self.sample("r.json"), self.sample("before.json", "1.1")
        drawn = set()
        for chart in sorted(pathlib.Path("harness/report/charts").glob("*.json")):
            command = [MOEGAUGE, "export", result, "--baseline", before, "--format", "vega", "--chart", chart.stem]
            run = subprocess.run(command, capture_output=True, text=True)
            self.assertIn(run.returncode, (0, 4), run.stderr)
            spec = json.loads(run.stdout)
            rows = next(iter(spec["datasets"].values()))
            self.assertEqual(run.returncode, 0 if rows else 4, chart.stem)
            if rows:
                drawn.add(chart.stem)
            self.assertIn("<svg", vl_convert.vegalite_to_svg(spec), chart.stem)
        self.assertLessEqual({"latency", "errors", "speedup", "end_to_end"}, drawn)

    def test_an_unknown_format_or_chart_is_refused_with_those_there_are(self):
        result = self.sample("r.json")
        for options, name in ((["--format", "xls"], "csv-wide"), (["--format", "vega", "--chart", "pie"], "pareto")):
            run = subprocess.run([MOEGAUGE, "export", result, *options], capture_output=True, text=True)
            self.assertEqual(run.returncode, 2)
            self.assertIn(name, run.stderr)
            self.assertEqual(run.stderr.count("\n"), 1)


if __name__ == "__main__":
    MOEGAUGE = sys.argv.pop(1)
    SAMPLE = sys.argv.pop(1)
    CHART = pathlib.Path("scripts/chart.py").resolve()
    unittest.main()
