#!/usr/bin/env python3
"""Tables in the docs are those that the scripts make of the result files beside them: no figure that no file holds."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ceilings_table
import field_table
import library_table
import ops_table

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPU = "results/baselines/CPU_avx512/%s.json"


class DocsTables(unittest.TestCase):
    def setUp(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(ROOT)  # pages name files from here

    def test_the_fields_tables(self):
        page = pathlib.Path("docs/performance/field-cpu.md").read_text()
        made = field_table.report([CPU % suite for suite in field_table.SUITES])
        self.assertEqual(page, made, "make it anew: scripts/field_table.py (its files in the order of the page)")

    def test_the_library_baseline(self):
        files = ["results/baselines/NVIDIA_H200/%s.json" % suite for suite in ("library-h200", "wna16-expert-scaling-h200")]
        page = pathlib.Path("docs/performance/library-h200.md").read_text()
        self.assertEqual(page, library_table.text(files), "make it anew: scripts/library_table.py")

    def test_the_ceilings_of_several_processes(self):
        made = ceilings_table.table()
        self.assertIn(made, pathlib.Path("docs/method.md").read_text(), "make it anew: scripts/ceilings_table.py")

    def test_the_table_of_single_ops(self):
        made = ops_table.table(CPU % "ops-cpu")
        self.assertIn(made, pathlib.Path("docs/ops.md").read_text(), "make it anew: scripts/ops_table.py")


if __name__ == "__main__":
    unittest.main()
