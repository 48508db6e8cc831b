#!/usr/bin/env python3
"""check_std_includes.py must see a header that is missing, and only that."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_std_includes import check_std_includes  # noqa: E402


class StdIncludes(unittest.TestCase):
    def breaches(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                Path(folder, name).write_text(text)
            return check_std_includes(folder)

    def test_a_name_without_its_header_is_named_with_its_line(self):
        self.assertEqual(self.breaches(**{"a.cc": "#include <vector>\n\nstd::uint8_t x;\n"}),
                         ["a.cc:3: std::uint8_t without #include <cstdint>"])
        self.assertEqual(self.breaches(**{"a.cc": "auto f() { return std::ranges::sort(v); }\n"}),
                         ["a.cc:1: std::ranges::sort without #include <algorithm>"])

    def test_another_standard_header_does_not_count_for_it(self):
        self.assertEqual(len(self.breaches(**{"a.cc": "#include <string>\nstd::vector<int> v;\n"})), 1)

    def test_a_header_of_the_tree_does(self):
        self.assertEqual(self.breaches(**{"a.h": "#pragma once\n#include <vector>\n",
                                          "b.h": "#pragma once\n#include \"a.h\"\n",
                                          "b.cc": "#include \"b.h\"\nstd::vector<int> v;\n"}), [])

    def test_what_is_no_code_needs_nothing(self):
        text = "// std::vector\nconst char* s = \"std::map \\\" std::set\";\n/* std::pair\n*/ int n = 1'000;\n"
        self.assertEqual(self.breaches(**{"a.cc": text}), [])

    def test_a_piece_of_other_files_takes_theirs(self):
        self.assertEqual(self.breaches(**{"body.h": "// Included once per set.\nstd::int8_t x;\n"}), [])


if __name__ == "__main__":
    unittest.main()
