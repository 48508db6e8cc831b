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
               error: item.datum.error, value: item.datum.value});
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


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.page = pathlib.Path(cls.folder.name, "report.html")
        run = subprocess.run([MOEGAUGE, "report", RESULT, "--out", cls.page], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        cls.has_charts = "without the charts" not in run.stderr
        cls.cases = {case["id"]: case for case in json.loads(pathlib.Path(RESULT).read_text())["cases"]}
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


if __name__ == "__main__":
    MOEGAUGE = sys.argv.pop(1)
    RESULT = sys.argv.pop(1)
    unittest.main()
