#!/usr/bin/env python3
"""The tables of field_table.py say what the result says: ratios of the comparisons, verdicts by interval, reasons."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import field_table


def case(us, model="m", scheme="s", config="default", tokens=1, status="ok", wide=0.001, backend="cpu"):
    found = {"id": "/".join(map(str, (model, scheme, backend, config, tokens))), "model": model, "scheme": scheme, "tp": 1, "ep": 1,
             "backend": "auto", "executed_backend": backend, "tokens": tokens, "config": {"asked": config}, "status": status}
    if status != "ok":
        return {**found, "reason": "why not"}
    error = {"quantization": {"relative_l2": 0.05}, "implementation": {"relative_l2": 0.0001}}
    return {**found, "latency_us": {"median": us, "ci_low": us * (1 - wide), "ci_high": us * (1 + wide)}, "error": error}


class FieldTable(unittest.TestCase):
    def report(self, suite, cases, comparisons=()):
        result = {"context": {"suite": suite, "date": "2026-11-30T12:00:00"}, "cases": cases, "comparisons": list(comparisons)}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            path.write_text(json.dumps(result))
            return field_table.report([str(path)])

    def test_a_ratio_is_the_one_that_was_measured_in_alternation(self):
        a, b = case(100.0), case(80.0, config="tuned")
        measured = {"a": a["id"], "b": b["id"], "ratio": 1.3, "ci_low": 1.2, "ci_high": 1.4}
        text = self.report("tuned-vs-default", [a, b], [measured])
        self.assertIn("| 1 | 100 | 80 | 1.300 [1.200, 1.400] | faster |", text)
        turned = {"a": b["id"], "b": a["id"], "ratio": 0.5, "ci_low": 0.4, "ci_high": 0.625}
        self.assertIn("2.000 [1.600, 2.500]", self.report("tuned-vs-default", [a, b], [turned]))

    def test_rivals_of_different_points_have_the_widest_ratio_of_their_medians(self):
        text = self.report("mxfp8-converted", [case(100.0, scheme="mxfp8", wide=0.1), case(100.0, scheme="fp8_block_frommx", wide=0.25)])
        # 90 / 125 to 110 / 75
        self.assertIn("| 1 | 100~ | 100~ | 1.000 [0.720, 1.467] m | cannot tell | 0.05 | 0.0001 | 0.05 | 0.0001 |", text)

    def test_every_row_has_its_verdict_and_the_mean_decides_nothing(self):
        cases = [case(us, config=c, tokens=m) for m, us, c in ((1, 100.0, "default"), (1, 50.0, "tuned"), (2, 100.0, "default"), (2, 800.0, "tuned"))]
        text = self.report("tuned-vs-default", cases)
        self.assertIn("tuned: faster at 1, slower at 1 of 2; geometric mean of the ratios 0.500.", text)  # sqrt(2 / 8)

    def test_experts_run_down_where_the_number_of_them_is_asked(self):
        launch = json.dumps({"launch_per_expert": 1})
        cases = [case(us, model="wna16-expert-scaling/experts-%d.json" % e, config=c)
                 for e, us, c in ((16, 100.0, "default"), (16, 110.0, launch), (8, 100.0, "default"), (8, 90.0, launch))]
        text = self.report("wna16-expert-scaling", cases)
        self.assertIn("| E | default us | launch_per_expert=1 us |", text)
        self.assertLess(text.index("| 8 | 100 | 90 |"), text.index("| 16 | 100 | 110 |"))

    def test_what_has_no_time_has_its_reason(self):
        text = self.report("ptpc-vs-backends", [case(100.0), case(0, status="unsupported", backend="cuda")])
        self.assertIn("| 1 | 100 | unsupported |", text)
        self.assertIn("- cuda: unsupported: why not", text)
        self.assertIn("Nothing was measured.", self.report("ptpc-vs-backends", [case(0, status="unsupported")]))

    def test_schemes_have_a_row_each_and_are_held_against_bf16_at_the_same_batch_size(self):
        cases = [{**case(us, scheme=s, tokens=m), "roofline": {"fraction": f}}
                 for s, m, us, f in (("bf16", 1, 100.0, 0.9), ("bf16", 512, 1000.0, 0.5), ("fp8", 1, 50.0, 0.8), ("fp8", 512, 2000.0, 0.25))]
        text = self.report("schemes-cpu", cases)
        self.assertIn("| scheme | M=1 us | of floor | bf16 / this | M=512 us | of floor | bf16 / this | M=512 format | M=512 kernel |", text)
        self.assertIn("| bf16 | 100 | 90% |  | 1000 | 50% |  | 0.05 | 0.0001 |", text)
        self.assertIn("| fp8 | 50 | 80% | 2.000 [1.996, 2.004] m | 2000 | 25% | 0.500 [0.499, 0.501] m |", text)

    def test_a_suite_without_a_table_is_refused_by_name(self):
        with self.assertRaisesRegex(SystemExit, "no table for suite quick"):
            self.report("quick", [])


if __name__ == "__main__":
    unittest.main()
