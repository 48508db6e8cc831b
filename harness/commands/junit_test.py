"""`moegauge gate --junit` in the eyes of the programs that read it: a parser by others, and the rules
of the schema that Jenkins publishes for JUnit files (jenkinsci/xunit-plugin, junit-10.xsd), written
down here. Arguments: the moegauge and result_sample binaries."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

# Element: (attributes it must have, those it may have, children it may have).
RULES = {
    "testsuites": ({"tests", "failures", "errors"}, {"name", "time", "disabled"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped"},
                  {"time", "timestamp", "hostname", "id", "package", "disabled", "file", "log", "url"},
                  {"properties", "testcase", "system-out", "system-err"}),
    "testcase": ({"name", "classname"}, {"time", "assertions", "status", "group"},
                 {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": ({"message", "type"}, set(), set()),
    "error": ({"message", "type"}, set(), set()),
    "skipped": ({"message"}, {"type"}, set()),
}


def check_element(test, element):
    must, may, children = RULES[element.tag]
    test.assertLessEqual(must, set(element.attrib), element.tag)
    test.assertLessEqual(set(element.attrib), must | may, element.tag)
    for child in element:
        test.assertIn(child.tag, children)
        check_element(test, child)


def outcomes(suite, tag):
    return [case for case in suite.iter("testcase") if case.find(tag) is not None]


class Junit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.now, self.then = self.path("now.json"), self.path("then.json")
        subprocess.run([SAMPLE, self.then, "1"], check=True)
        with open(self.then) as file:
            self.sample = json.load(file)
        # One case has a model that is nobody's; the gate would ask for its limits.
        known = [case for case in self.sample["cases"] if case["model"] == "qwen3-30b-a3b"]
        self.write(self.then, known)
        self.cases = known

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, path, cases):
        ids = {case["id"] for case in cases if case["status"] == "ok"}
        rows = [row for row in self.sample["benchmarks"] if row["run_name"] in ids]
        with open(path, "w") as file:
            json.dump({**self.sample, "comparisons": [], "cases": cases, "benchmarks": rows}, file)

    def gate(self, *options):
        report = self.path("report.xml")
        done = subprocess.run([MOEGAUGE, "gate", self.now, "--baseline", self.then, "--junit", report,
                               *options], capture_output=True, text=True)
        root = ElementTree.parse(report).getroot()
        self.assertEqual(root.tag, "testsuites")
        check_element(self, root)
        for suite in root:
            names = [case.get("name") for case in suite.iter("testcase")]
            self.assertEqual(len(names), len(set(names)), "names within a suite differ")
            self.assertEqual(int(suite.get("tests")), len(names))
            for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
                self.assertEqual(int(suite.get(count)), len(outcomes(suite, tag)), tag)
        for count in ("tests", "failures", "errors"):
            self.assertEqual(int(root.get(count)), sum(int(suite.get(count)) for suite in root))
        return done.returncode, root

    def test_every_verdict_is_where_readers_look_for_it(self):
        ok = next(case for case in self.cases if case["status"] == "ok")
        reason = "a \"b\" <c> & 'd' ]]> \x01\x1b\ufffe\U0001F600\n"
        renamed = {**ok, "routing": "balanced", "id": ok["id"].replace("/uniform/", "/balanced/")}
        cases = [renamed if case is ok else
                 {**case, "reason": reason} if case["status"] == "crashed" else case
                 for case in self.cases]
        sample_rows = [{**row, "run_name": renamed["id"], "name": row["name"].replace("/uniform/", "/balanced/")}
                       for row in self.sample["benchmarks"] if row["run_name"] == ok["id"]]
        self.sample["benchmarks"] += sample_rows
        self.write(self.now, cases)
        code, root = self.gate()
        self.assertEqual(code, 1)
        suite = root.find("testsuite")
        failed = {case.get("name") for case in outcomes(suite, "failure")}
        self.assertEqual(failed, {case["id"] for case in self.cases if case["status"] in
                                  ("crashed", "timeout", "out_of_memory", "error", "inaccurate")})
        self.assertIn(renamed["id"], {case.get("name") for case in outcomes(suite, "error")})
        crash = next(case for case in outcomes(suite, "failure") if "M=104" in case.get("name"))
        self.assertIn("a \"b\" <c> & 'd' ]]>", crash.find("failure").get("message"))

    def test_a_pass_has_no_failure_and_no_error(self):
        # The sample's latencies are marked as under the floor, which has no verdict.
        ok = [{**case, "suspect": False} for case in self.cases if case["status"] == "ok"]
        self.write(self.now, ok)
        self.write(self.then, ok)
        code, root = self.gate()
        self.assertEqual(code, 0)
        self.assertEqual((root.get("failures"), root.get("errors")), ("0", "0"))
        # And one number of serving, one score.
        self.assertEqual(root.get("tests"), str(len(ok) + len(self.sample["end_to_end"])))

    def test_nothing_judged_is_no_green_report(self):
        self.write(self.now, self.cases)
        code, root = self.gate("--filter", "nothing")
        self.assertEqual(code, 4)
        self.assertEqual((root.get("tests"), root.get("errors")), ("1", "1"))


if __name__ == "__main__":
    MOEGAUGE, SAMPLE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
