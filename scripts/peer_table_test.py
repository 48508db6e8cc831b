#!/usr/bin/env python3
"""The table names what it was made from, and its ratios are those of the medians."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import peer_table


def case(tokens, source, us, routing="uniform", status="ok"):
    error = {"relative_l2": 0.004, "worst_token": 0.012}
    return {"model": "mixtral-8x7b", "scheme": "bf16", "tp": 2, "ep": 1, "tokens": tokens, "routing": routing,
            "config": {"source": source}, "status": status, "latency_us": {"median": us}, "roofline": {"fraction": 0.75},
            "error": {"implementation": error}}


class PeerTable(unittest.TestCase):
    def report(self, *runs):
        peer = {"layers": {"mixtral-8x7b": {str(m): {"peer_us": 100.0, "floor_us": 40.0} for m in (1, 2)}}}
        context = {"suite": "peer-h200", "date": "2026-11-30T12:00:00"}
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / ("r%d.json" % i) for i in range(len(runs))] + [pathlib.Path(folder) / "p.json"]
            for path, content in zip(paths, [{"context": context, "cases": cases} for cases in runs] + [peer]):
                path.write_text(json.dumps(content))
            return peer_table.report(*map(str, paths))

    def test_ours_is_the_better_of_default_and_tuned(self):
        text = self.report([case(1, "default", 80.0), case(1, "tuned", 50.0), case(1, "default", 60.0, "zipf:1.0")])
        self.assertIn("| 1 | 80.0 | 50.0 | 100.0 | 2.00 | 40.0 | 1.25 | 75% |  | 60.0 | 4.0e-03 | 1.2e-02 |", text)

    def test_the_mean_is_geometric_and_over_what_was_measured(self):
        text = self.report([case(1, "default", 50.0), case(2, "default", 25.0), case(1, "tuned", 0, status="skipped")])
        self.assertIn("over 2 sizes: 2.83", text)  # sqrt(2 * 4)

    def test_a_newer_result_replaces_a_layer_whole(self):
        text = self.report([case(1, "default", 50.0), case(2, "default", 50.0)], [case(1, "default", 25.0)])
        self.assertIn("over 1 sizes: 4.00", text)
        self.assertRegex(text, r"r1.json. \(suite .peer-h200., 2026-11-30\): uniform routing of Mixtral-8x7B, bf16, TP2\n")

    def test_the_routings_of_a_layer_may_come_from_two_files(self):
        text = self.report([case(1, "default", 80.0)], [case(1, "default", 60.0, "zipf:1.0")])
        self.assertIn("| 1 | 80.0 |  | 100.0 | 1.25 | 40.0 | 2.00 | 75% |  | 60.0 | 4.0e-03 | 1.2e-02 |", text)

    def test_a_layer_without_a_time_has_no_table(self):
        self.assertNotIn("## Mixtral", self.report([case(1, "default", 0, status="inaccurate")]))


if __name__ == "__main__":
    unittest.main()
