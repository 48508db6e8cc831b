#!/usr/bin/env python3
"""Proves what docs/adding.md promises, by counting: a scheme is one file and one line in
reference/schemes (and one file and one line in each backend that serves it), a backend one folder
and one line, a model one file. Whoever makes a second place necessary fails here."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Read the names that other people's checkpoints give to number formats, and so must know ours; or
# take the name of what they write as an option's value; or have an option that is what another scheme becomes.
TRANSLATES_NAMES = {"harness/suite/hf_config.cc", "harness/commands/convert.cc",
                    "reference/convert/mxfp8_to_block.cc", "reference/schemes/fp8_block.cc"}
# Also element types, which options and files spell the same way.
ELEMENT_TYPES = {"bf16", "fp16"}


def cmake_list(file, name):
    """The entries of set(NAME ...) in a CMakeLists.txt, one a line."""
    text = (ROOT / file).read_text()
    return re.search(rf"^set\({name}\n(.*?)\)", text, re.M | re.S)[1].split()


def code():
    """Every source and CMake file that serves no test alone, as {path: text}."""
    files = {}
    for folder in ("reference", "kernels", "harness"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in {".h", ".cc", ".cu", ".cuh", ".in", ".txt"} or "/build/" in name:
                continue
            if re.search(r"(_test\.|_testing\.|_bench\.|/bench/|/fake_|/mutants/|/testdata/)", name):
                continue
            text = path.read_text()
            files[name] = text if path.suffix == ".txt" else re.sub(r"//.*", "", text)
    return files


def places(files, pattern, own):
    """Files that match, without those that `own` matches."""
    return sorted(n for n, text in files.items() if re.search(pattern, text) and not re.search(own, n))


class Adding(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = code()

    def test_a_scheme_is_one_file_and_one_line(self):
        families = cmake_list("reference/schemes/CMakeLists.txt", "families")
        self.assertGreater(len(families), 1)
        self.assertEqual(len(families), len(set(families)))
        for family in families:
            self.assertTrue((ROOT / f"reference/schemes/{family}.cc").is_file(), family)
            if family in ELEMENT_TYPES:
                continue
            # As a string, or as the function that the file defines.
            pattern = rf'"{family}[_"]|\b{family}_family\b'
            own = rf"(^|/){family}\.(cc|h)$"
            self.assertEqual([p for p in places(self.files, pattern, own) if p not in TRANSLATES_NAMES], [],
                             f"{family} is known outside its own file")

    def test_a_scheme_in_a_backend_is_one_file_and_one_line(self):
        backends = [b for b in cmake_list("kernels/CMakeLists.txt", "backends") if (ROOT / f"kernels/{b}/schemes").is_dir()]
        self.assertIn("cpu", backends)
        for backend in backends:
            for scheme in cmake_list(f"kernels/{backend}/CMakeLists.txt", "schemes"):
                self.assertTrue((ROOT / f"kernels/{backend}/schemes/{scheme}.cc").is_file(), scheme)
                # Another backend may have a function of that name, in a namespace of its own.
                elsewhere = rf"^kernels/(?!{backend}/)\w+/|/schemes/{scheme}\.cc$"
                self.assertEqual(places(self.files, rf"\b{scheme}_scheme\b", elsewhere), [])

    def test_an_op_is_one_file_and_one_line_here_and_in_each_backend(self):
        ops = cmake_list("reference/ops/CMakeLists.txt", "ops")
        self.assertGreater(len(ops), 1)
        for op in ops:
            self.assertTrue((ROOT / f"reference/ops/{op}.cc").is_file(), op)
            self.assertTrue((ROOT / f"reference/ops/{op}_test.cc").is_file(), op)
            pattern = rf'\b{op}_op\b|op == "{op}"|"{op}" =='
            self.assertEqual(places(self.files, pattern, rf"/ops/{op}\.cc$"), [], f"{op} is known outside its own file")
        for op in cmake_list("kernels/cpu/CMakeLists.txt", "ops"):
            self.assertIn(op, ops)
            self.assertTrue((ROOT / f"kernels/cpu/ops/{op}.cc").is_file(), op)

    def test_a_backend_is_one_folder_and_one_line(self):
        backends = cmake_list("kernels/CMakeLists.txt", "backends")
        self.assertIn("cpu", backends)
        for backend in backends:
            self.assertTrue((ROOT / f"kernels/{backend}/CMakeLists.txt").is_file(), backend)
            pattern = rf'\b{backend}_backend\b|kernels_{backend}\b|"kernels/{backend}/'
            self.assertEqual(places(self.files, pattern, rf"^kernels/{backend}/"), [],
                             f"{backend} is known outside its own folder")

    def test_a_model_is_one_file(self):
        models = sorted(path.stem for path in (ROOT / "suites/models").glob("*.json"))
        self.assertGreater(len(models), 1)
        for model in models:
            self.assertEqual(places(self.files, rf'"{re.escape(model)}"', r"^$"), [], model)

    def test_the_counting_finds_a_second_place(self):
        planted = dict(self.files, **{"harness/x.cc": 'if (name == "fp8_block") return cpu_backend();'})
        self.assertEqual(places(planted, r'"fp8_block[_"]', r"(^|/)fp8_block\.cc$|hf_config|convert"), ["harness/x.cc"])
        self.assertEqual(places(planted, r"\bcpu_backend\b", r"^kernels/cpu/"), ["harness/x.cc"])


if __name__ == "__main__":
    unittest.main()
