"""The report in a real browser: headless Chromium, driven over WebDriver. Arguments: the moegauge
binary, then a result file of this repository."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None
for missing, package in ((webdriver, "python3-selenium"), (CHROMIUM, "chromium"), (DRIVER, "chromium-driver")):
    if not missing:
        print(f"skipped: {package} is not installed; scripts/setup test installs it")
        sys.exit(77)

# All marks of a Vega scene graph that stand for rows, as the rows: what is drawn, not what was asked.
DRAWN = """
const chart = chart_list.find((one) => one.name === arguments[0]);
const rows = [];
(function walk(item) {
  if (Array.isArray(item.items)) for (const inner of item.items) walk(inner);
  if (item.mark && item.mark.marktype === arguments_mark && item.datum && item.datum.id !== undefined)
    rows.push({id: item.datum.id, median: item.datum.median, total: item.datum.total, y: item.y,
               error: item.datum.error, value: item.datum.value, gain: item.datum.gain,
               date: item.datum.date, over_anchor: item.datum.over_anchor, now: item.datum.now});
})(chart.view.view.scenegraph().root);
return rows;
""".replace("arguments_mark", "'symbol'")


def start():
    options = Options()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=options)


def moegauge(*words):
    run = subprocess.run([MOEGAUGE, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stderr


def many_cases(count, out):
    """A result of so many cases, one sample each: those of RESULT again and again, under other models' names."""
    result = json.loads(pathlib.Path(RESULT).read_text())
    templates = [case for case in result["cases"] if case["status"] == "ok"]
    row = next(row for row in result["benchmarks"] if row["run_type"] == "iteration")
    result.update(comparisons=[], cases=[], benchmarks=[])
    for i in range(count):
        case = json.loads(json.dumps(templates[i % len(templates)]))
        model = f"model-{i // len(templates)}"
        case["id"] = case["id"].replace(case["model"], model)
        case["model"] = model
        median = case["latency_us"]["median"]
        case["latency_us"] = {key: median for key in case["latency_us"]} | {"samples": [median]}
        result["cases"].append(case)
        result["benchmarks"].append(row | {
            "name": case["id"], "run_name": case["id"], "family_index": i, "repetitions": 1,
            "per_family_instance_index": 0, "repetition_index": 0, "real_time": median * 1000, "cpu_time": median * 1000})
    out.write_text(json.dumps(result))
    return result


class Page(unittest.TestCase):
    """A browser, and a folder for pages."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.page = cls.folder / "report.html"
        cls.has_charts = "without the charts" not in cls.write_page()
        cls.browser = start()
        cls.addClassCleanup(cls.browser.quit)

    def open(self, fragment=""):
        self.browser.get("about:blank")
        self.browser.get(self.page.as_uri() + fragment)
        self.wait(lambda: self.browser.execute_script("return document.documentElement.dataset.ready") == "true")

    def wait(self, condition, seconds=20):
        end = time.time() + seconds
        while not condition():
            self.assertLess(time.time(), end, "waited too long")
            time.sleep(0.05)

    def drawn(self, chart):
        if not self.has_charts:
            self.skipTest("built without the charts' JavaScript; scripts/setup report, then build again")
        self.browser.execute_script("document.getElementById('chart-' + arguments[0]).scrollIntoView()", chart)
        self.wait(lambda: self.browser.execute_script(
            "return Boolean(chart_list.find((one) => one.name === arguments[0]).view)", chart))
        return self.browser.execute_script(DRAWN, chart)

    def errors(self):
        return [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


class Phone:
    """For every page with charts."""

    def test_nothing_sticks_out_on_a_phone_in_either_theme(self):
        for theme in ("light", "dark"):
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
            try:
                self.open("#theme=" + theme)
                self.assertEqual(self.browser.execute_script("return document.documentElement.dataset.theme"), theme)
                self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"), 390)
            finally:
                self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


class Report(Phone, Page):
    @classmethod
    def write_page(cls):
        cls.cases = {case["id"]: case for case in json.loads(pathlib.Path(RESULT).read_text())["cases"]}
        return moegauge("report", RESULT, "--out", cls.page)

    def test_every_chart_draws_without_an_error_in_the_console(self):
        self.errors()
        self.open()
        names = self.browser.execute_script(
            "return chart_list.filter((one) => !one.section.hidden).map((one) => one.name)")
        self.assertIn("latency", names)
        self.assertIn("errors", names)
        for name in names:
            self.drawn(name)
            self.assertTrue(self.browser.find_elements(By.CSS_SELECTOR, f"#chart-{name} svg"), name)
        self.assertEqual(self.errors(), [])

    def test_paper_is_light_and_shows_every_chart(self):
        self.errors()
        self.open("#theme=dark")
        self.browser.execute_script("dispatchEvent(new Event('beforeprint'))")
        theme = "return document.documentElement.dataset.theme"
        self.assertEqual(self.browser.execute_script(theme), "light")
        if self.has_charts:
            self.wait(lambda: self.browser.execute_script(
                "return chart_list.every((one) => one.section.hidden || Boolean(one.section.querySelector('svg')))"))
        self.browser.execute_script("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.browser.execute_script(theme), "dark")
        self.assertEqual(self.errors(), [])

    def test_latencies_drawn_are_those_of_the_file(self):
        self.open()
        rows = self.drawn("latency")
        measured = {i: case for i, case in self.cases.items() if case["status"] == "ok" and case["tokens"] > 0}
        self.assertEqual({row["id"] for row in rows}, set(measured))
        for row in rows:
            self.assertEqual(row["median"], measured[row["id"]]["latency_us"]["median"])

    def test_errors_drawn_are_those_of_the_file(self):
        self.open()
        rows = [row for row in self.drawn("errors") if row["error"]]
        self.assertGreater(len(rows), 0)
        for row in rows:
            self.assertEqual(row["value"], self.cases[row["id"]]["error"][row["error"]]["relative_l2"])

    def test_a_filter_narrows_charts_and_tables_and_its_link_restores_the_view(self):
        self.open()
        box = next(b for b in self.browser.find_elements(By.CSS_SELECTOR, ".filter")
                   if b.get_attribute("data-field") == "scheme")
        box.find_element(By.TAG_NAME, "summary").click()
        check = box.find_elements(By.TAG_NAME, "input")[0]
        scheme = check.get_attribute("value")
        check.click()
        expected = {i for i, case in self.cases.items() if case["scheme"] == scheme}
        self.assertLess(len(expected), len(self.cases))

        def ids():
            return self.browser.execute_script("return filtered(tables.cases).map((row) => row.id)")

        self.assertEqual(set(ids()), expected)
        self.assertIn(f"{len(expected)} of {len(self.cases)} cases",
                      self.browser.find_element(By.ID, "shown").text)
        link = self.browser.current_url
        self.assertIn("#scheme=" + scheme, link)
        self.open("#" + link.split("#")[1])
        self.assertEqual(set(ids()), expected)
        checked = self.browser.find_elements(By.CSS_SELECTOR, ".filter input:checked")
        self.assertEqual([c.get_attribute("value") for c in checked], [scheme])
        for row in self.drawn("latency"):
            self.assertIn(row["id"], expected)

    def test_tables_sort_and_copy_as_markdown(self):
        self.open("#sort.cases=median:down&status=ok")
        texts = self.browser.execute_script(
            "return [...document.querySelectorAll('#case-table tbody tr')].map((row) => row.dataset.id)")
        medians = [self.cases[i]["latency_us"]["median"] for i in texts]
        self.assertEqual(medians, sorted(medians, reverse=True))
        text = self.browser.execute_script(
            "return markdown_table(['tokens', 'series', 'median'], filtered(tables.cases).slice(0, 2))")
        lines = text.splitlines()
        self.assertEqual(lines[0], "| tokens | series | median µs |")
        self.assertEqual(lines[1], "|---:|---|---:|")
        self.assertEqual(len(lines), 4)

    def test_everything_is_reached_with_the_keyboard(self):
        self.open()
        wanted = self.browser.execute_script("""
            const all = [...document.querySelectorAll("a[href], button, summary, input, select, [tabindex='0']")];
            window.wanted = all.filter((one) => one.checkVisibility());
            window.reached = new Set();
            document.addEventListener("focusin", (event) => window.reached.add(event.target));
            document.activeElement.blur();
            return window.wanted.length;""")
        self.assertGreater(wanted, 40)
        for _ in range(wanted + 20):
            webdriver.ActionChains(self.browser).send_keys(Keys.TAB).perform()
        missed = self.browser.execute_script(
            "return window.wanted.filter((one) => one.isConnected && !window.reached.has(one)).map((one) => one.outerHTML.slice(0, 120))")
        self.assertEqual(missed, [])

    def test_the_keyboard_skips_to_the_charts_and_opens_and_closes_a_filter(self):
        self.open()
        focused = "return document.activeElement.id || document.activeElement.tagName"
        webdriver.ActionChains(self.browser).send_keys(Keys.TAB).send_keys(Keys.ENTER).perform()
        self.assertEqual(self.browser.execute_script(focused), "charts-start")
        summary = self.browser.find_element(By.CSS_SELECTOR, ".filter summary")
        summary.send_keys(Keys.ENTER)
        box = self.browser.find_element(By.CSS_SELECTOR, ".filter")
        self.assertIsNotNone(box.get_attribute("open"))
        webdriver.ActionChains(self.browser).send_keys(Keys.TAB).send_keys(Keys.SPACE).perform()
        self.assertIn("#" + box.get_attribute("data-field") + "=", self.browser.current_url)
        webdriver.ActionChains(self.browser).send_keys(Keys.ESCAPE).perform()
        self.assertIsNone(box.get_attribute("open"))
        self.assertEqual(self.browser.execute_script(focused), "SUMMARY")


class EndToEnd(Phone, Page):
    FIXTURES = "harness/endtoend/testdata/"

    @classmethod
    def write_page(cls):
        for variant in ("untuned", "tuned"):
            moegauge("ingest", cls.FIXTURES + "tuned_by_length.txt", cls.FIXTURES + "tuned_accuracy.txt", "--questions", "1319",
                     "--variant", variant, "--out", cls.folder / f"{variant}.json")
        return moegauge("report", cls.folder / "tuned.json", "--baseline", cls.folder / "untuned.json", "--out", cls.page)

    def test_gains_drawn_are_those_of_the_files(self):
        self.errors()
        self.open()
        sides = [json.loads((self.folder / f"{v}.json").read_text())["end_to_end"] for v in ("tuned", "untuned")]
        expected = {}
        for now, then in zip(*sides):
            for name, value in now["numbers"].items():
                was = then["numbers"][name]
                if now["op"] == "serve":
                    expected[(now["model"], now["labels"]["input_output"], name)] = 1 - value / was
                elif name == "value":
                    expected[(now["model"], now["labels"]["filter"], "score")] = value - was
        drawn = {}
        for row in self.drawn("end_to_end"):
            op, rest = row["id"].split("/", 1)
            if op == "serve":
                point, _, name = rest.rpartition("/")
                model, _, lengths = point.partition("/input_output=")
                drawn[(model, lengths, name)] = row["gain"]
            else:
                drawn[(rest.partition("/task=")[0], rest.partition("/filter=")[2], "score")] = row["gain"]
        self.assertEqual(set(drawn), set(expected))
        self.assertEqual(len(drawn), 40)
        for key, gain in expected.items():
            self.assertAlmostEqual(drawn[key], gain, places=12)
        self.assertEqual(self.errors(), [])

    def test_its_table_sorts_and_the_filter_narrows_it(self):
        self.open("#sort.end_to_end=gain:up&model=example/qwen3-30b")
        first = self.browser.find_element(By.CSS_SELECTOR, "#end-to-end-table tbody tr")
        self.assertEqual(first.get_attribute("data-id"), "serve/example/qwen3-30b/input_output=16384-2048/ttft_ms.mean")
        self.assertIn("-3.4%", first.text)
        self.assertIn("20 of 40 numbers of serving and scores", self.browser.find_element(By.ID, "shown").text)
        self.assertFalse(self.browser.find_element(By.ID, "all-cases").is_displayed())


def scaled_night(factor, date, out):
    """RESULT as if all had taken so many times as long, measured on that day."""
    result = json.loads(pathlib.Path(RESULT).read_text())
    result["context"]["date"] = date
    for case in result["cases"]:
        if case["status"] == "ok":
            latency = case["latency_us"]
            for key, value in latency.items():
                latency[key] = [sample * factor for sample in value] if key == "samples" else value * factor
    out.write_text(json.dumps(result))
    return result


class History(Phone, Page):
    """Of 30 nights, the last ten 20% slower, and a result that was not added."""

    @classmethod
    def write_page(cls):
        cls.nights, files = [], []
        for n in range(31):
            factor = (1.2 if n >= 20 else 1) * (1 + 0.004 * ((n * 7) % 5 - 2) / 2)
            files.append(cls.folder / f"night{n}.json")
            cls.nights.append(scaled_night(factor, f"2026-10-{n + 1:02}T02:00:00+00:00", files[-1]))
        moegauge("history", "add", *files[:30], "--db", cls.folder / "h.db")
        return moegauge("report", files[30], "--history", cls.folder / "h.db", "--out", cls.page)

    def test_the_trend_draws_the_medians_of_every_night_over_the_first(self):
        self.errors()
        self.open()
        medians = [{case["id"]: case["latency_us"]["median"] for case in night["cases"] if case["status"] == "ok"}
                   for night in self.nights]
        rows = [row for row in self.drawn("history") if row["median"] is not None]
        drawn = {(row["id"], row["median"]) for row in rows}
        self.assertGreaterEqual(len({i for i, _ in drawn}), 12)  # panels, at first
        for i in {i for i, _ in drawn}:
            self.assertEqual({m for j, m in drawn if i == j}, {night[i] for night in medians})
        for row in rows:
            self.assertAlmostEqual(row["over_anchor"], row["median"] / medians[0][row["id"]], delta=1e-5)
        self.assertEqual({row["now"] for row in rows if row["now"]}, {"night30.json"})
        self.assertEqual(self.errors(), [])

    def test_the_change_of_level_is_named_at_its_night(self):
        self.open()
        self.drawn("history")
        labels = [text.text for text in self.browser.find_elements(By.CSS_SELECTOR, "#chart-history svg text") if "▲" in text.text]
        self.assertGreaterEqual(len(labels), 12)
        for label in labels:
            self.assertRegex(label, r"^▲ \+(19|20)\.\d% \(environment\)$")
        dates = self.browser.execute_script("return tables.history.filter((row) => row.change).map((row) => row.date)")
        self.assertEqual(set(dates), {"2026-10-21T02:00:00Z"})
        self.assertIn("FAIL", self.browser.find_element(By.ID, "verdict").text)

    def test_the_page_stays_small(self):
        self.assertLess(self.page.stat().st_size, 3_000_000)


class Hostile(Page):
    """Names that would be tags, entities and Vega's formulas, if anybody let them."""

    NAME = """<img src=x onerror="window.hacked = 1">&lt;b&gt;'"`|\u202e\u2028\u0000\\n${1+1}"""

    @classmethod
    def write_page(cls):
        in_id = cls.NAME.replace(" ", "%20").replace("\0", "%00")

        def hostile(result):
            for case in result["cases"]:
                case["id"] = case["id"].replace(case["model"], in_id)
                case["model"] = cls.NAME
                case["repro"] = "</script>" + cls.NAME
            result["benchmarks"] = [row | {key: row[key].replace("qwen3-30b-a3b", in_id) for key in ("name", "run_name")}
                                    for row in result["benchmarks"]]
            result["comparisons"] = []
            result["end_to_end"] = [{"op": "serve", "model": cls.NAME, "labels": {"note": cls.NAME}, "numbers": {"ttft_ms.mean": value},
                                     "source": {"file": cls.NAME, "sha256": "a" * 64, "tool": cls.NAME}} for value in [value_of]]
            return result

        for name, value_of in (("now.json", 100), ("then.json", 200)):
            (cls.folder / name).write_text(json.dumps(hostile(json.loads(pathlib.Path(RESULT).read_text()))))
        return moegauge("report", cls.folder / "now.json", "--baseline", cls.folder / "then.json", "--out", cls.page)

    def test_names_are_shown_and_do_nothing(self):
        self.errors()
        self.open()
        for name in ("latency", "speedup", "errors", "end_to_end"):
            self.drawn(name)
        points = self.browser.find_elements(By.CSS_SELECTOR, "#chart-latency svg .mark-symbol.role-mark path")
        webdriver.ActionChains(self.browser).move_to_element(points[-1]).perform()
        tip = self.browser.find_element(By.ID, "vg-tooltip-element")
        self.wait(tip.is_displayed)
        self.assertIn("median µs", tip.text)
        self.assertIsNone(self.browser.execute_script("return window.hacked ?? null"))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "img, iframe, object"), [])
        self.assertIn("<img src=x", self.browser.find_element(By.CSS_SELECTOR, "#case-table tbody").text)
        self.assertEqual(self.errors(), [])


class Failures(Page):
    """Two schemes of which every case was inaccurate: there are errors and no latency."""

    @classmethod
    def write_page(cls):
        result = json.loads(pathlib.Path(RESULT).read_text())
        result.update(comparisons=[], benchmarks=[])
        for case in result["cases"]:
            if case["status"] != "ok":
                continue
            case.update(status="inaccurate", reason="too far from the truth")
            for measured in ("latency_us", "stages_us", "roofline", "sampling", "telemetry", "tflops", "gbytes_per_s", "unstable", "suspect"):
                case.pop(measured, None)
        (cls.folder / "failed.json").write_text(json.dumps(result))
        return moegauge("report", cls.folder / "failed.json", "--out", cls.page)

    def test_a_chart_that_would_draw_nothing_is_not_there(self):
        self.open()
        shown = self.browser.execute_script("return chart_list.filter((one) => !one.section.hidden).map((one) => one.name)")
        self.assertEqual(shown, ["errors"])


class Tooltips(Page):
    """Of every chart's points: median, interval, config and error, and nothing that is not there."""

    @classmethod
    def write_page(cls):
        return moegauge("report", RESULT, "--baseline", RESULT, "--out", cls.page)

    def test_each_point_tells_its_median_interval_config_and_error(self):
        self.open()
        for chart in ("latency", "errors", "fraction", "pareto", "speedup"):
            self.drawn(chart)
            marks = self.browser.find_elements(By.CSS_SELECTOR, f"#chart-{chart} svg :is(.mark-symbol, .mark-rect).role-mark path")
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", marks[-1])
            webdriver.ActionChains(self.browser).move_to_element(marks[-1]).perform()
            tip = self.browser.find_element(By.ID, "vg-tooltip-element")
            self.wait(tip.is_displayed)
            for word in ("µs", "error", "config") + (("interval",) if chart == "speedup" else ("median µs", "from", "to")):
                self.assertIn(word, tip.text, chart)
            for nothing in ("undefined", "null", "NaN"):
                self.assertNotIn(nothing, tip.text, chart)


class Large(Page):
    """Sizes and times that a page of a nightly, and of far more, keeps."""

    @classmethod
    def write_page(cls):
        many_cases(20_000, cls.folder / "many.json")
        return moegauge("report", cls.folder / "many.json", "--out", cls.page)

    def mark(self, name):
        return self.browser.execute_script("return performance.getEntriesByName(arguments[0])[0].startTime", name) / 1000

    def test_a_page_of_500_cases_is_under_3_megabytes(self):
        many_cases(500, self.folder / "nightly.json")
        moegauge("report", self.folder / "nightly.json", "--out", self.folder / "nightly.html")
        self.assertLess((self.folder / "nightly.html").stat().st_size, 3_000_000)

    def test_a_page_of_20000_cases_opens_in_under_3_seconds_and_works(self):
        # By the page's own clock, and the best of three: other programs share this machine.
        times = []
        for _ in range(3):
            self.open()
            times.append(self.mark("ready"))
        print(f"20,000 cases: {self.page.stat().st_size / 1e6:.1f} MB, opened in {min(times):.2f} s", file=sys.stderr)
        self.assertLess(min(times), 3)
        self.assertIn("20,000 of 20,000 cases", self.browser.find_element(By.ID, "shown").text)
        self.open("#model=model-7&sort.cases=median:down")
        self.assertTrue(self.browser.find_elements(By.CSS_SELECTOR, "#case-table tbody tr"))
        if self.has_charts:
            self.assertTrue(self.drawn("latency"))


if __name__ == "__main__":
    MOEGAUGE = sys.argv.pop(1)
    RESULT = sys.argv.pop(1)
    unittest.main()
