#!/usr/bin/env python3
"""The page of the library baseline, on results made up here."""
import unittest

import library_table


def case(backend, launch, median, model="mixtral-8x7b", tokens=4, **more):
    made = {"model": model, "scheme": "bf16", "tp": 2, "ep": 1, "tokens": tokens, "backend": backend, "launch": launch,
            "status": "ok", "latency_us": {"median": median}, "error": {"implementation": {"relative_l2": 2e-4}}}
    return dict(made, **more)


class LibraryTable(unittest.TestCase):
    def page(self, *cases):
        return library_table.page({"a.json": {"cases": list(cases)}})

    def test_sets_the_library_beside_our_kernels(self):
        lines = self.page(case("cuda", "graph", 100.0, stages_us={"reduce": 1.0, "prepare": 3.25}),
                          case("cublaslt", "graph", 250.0, unstable=True), case("cublaslt", "eager", 300.0))
        self.assertIn("## mixtral-8x7b TP 2, bf16", lines)
        self.assertIn("| 4 | 100 | ~250 | 2.50 | 300 | 2.0e-04 | prepare 3.25, reduce 1 | - |", lines)

    def test_experts_run_down_where_models_differ_in_them(self):
        names = ["x/experts-8.json", "x/experts-512.json"]
        lines = self.page(*(case("cuda", "graph", 10.0, model=name, tokens=1) for name in names))
        self.assertIn("## Expert scaling, bf16, M = 1", lines)
        self.assertIn("| 8 | 10 | - | - | - | - | - |", lines)
        self.assertIn("| 512 | 10 | - | - | - | - | - |", lines)

    def test_a_case_without_latency_has_none(self):
        wrong = case("cublaslt", "graph", 1.0, status="inaccurate")
        self.assertIn("| 4 | 100 | - | - | - | - | - |", self.page(case("cuda", "graph", 100.0), wrong))


if __name__ == "__main__":
    unittest.main()
