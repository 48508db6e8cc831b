#!/usr/bin/env python3
"""Each rule of check_tree.py must see a breach that is planted, and must let its neighbour pass."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_tree import check_tree  # noqa: E402


class Tree(unittest.TestCase):
    def findings(self, **files):
        """Breaches in a tree that holds `files` (path: text), besides a minimal sound one."""
        base = {
            "reference/layer.h": "#pragma once\n",
            "reference/oracle.h": "#pragma once\n",
            "reference/schemes/fp8_block.cc": "",
            "kernels/backend.h": "#pragma once\n",
            "kernels/cpu/cpu.cc": "",
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**base, **files}.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check_tree(folder)

    def breach(self, name, text):
        breaches, _ = self.findings(**{name: text})
        self.assertEqual(len(breaches), 1, breaches)
        return breaches[0]

    def sound(self, name, text):
        self.assertEqual(self.findings(**{name: text})[0], [])

    def test_a_sound_tree_has_no_breach(self):
        self.assertEqual(self.findings(), ([], []))

    def test_unfinished_work_is_named_with_its_line(self):
        self.assertIn("harness/a.cc:2: the word 'TODO'", self.breach("harness/a.cc", "\n// TODO later\n"))
        self.sound("harness/a.cc", "int hackneyed;\n")

    def test_a_path_of_one_machine_is_refused_and_a_relative_one_is_not(self):
        self.assertIn("path of one machine", self.breach("docs/a.md", "see /home/me/file\n"))
        self.sound("docs/a.md", "see suites/home/quick.json\n")

    def test_an_unknown_host_is_refused(self):
        self.assertIn("unknown host mirror.example", self.breach("a.md", "https://mirror.example/x\n"))
        self.sound("a.md", "https://arxiv.org/abs/1606.08415\n")

    def test_dependency_goes_one_way(self):
        self.assertIn("reference must not include kernels/backend.h",
                      self.breach("reference/a.cc", '#include "kernels/backend.h"\n'))
        self.assertIn("kernels must not include harness/a.h",
                      self.breach("kernels/cpu/b.cc", "#include <harness/a.h>\n"))
        self.sound("harness/a.cc", '#include "kernels/backend.h"\n#include "reference/layer.h"\n')

    def test_kernels_never_see_the_oracle_but_their_tests_do(self):
        text = '#include "reference/oracle.h"\n'
        self.assertIn("must not include the oracle", self.breach("kernels/cpu/cpu.cc", text))
        self.sound("kernels/cpu/cpu_test.cc", text)

    def test_the_seam_includes_no_device_header(self):
        self.assertIn("the seam must not include cuda.h",
                      self.breach("kernels/backend.h", "#pragma once\n#include <cuda.h>\n"))

    def test_includes_are_written_from_the_root(self):
        self.assertIn("is no path from the root", self.breach("reference/a.cc", '#include "layer.h"\n'))
        generated = {"reference/a.cc": '#include "reference/made.inc"\n',
                     "reference/CMakeLists.txt": "file(CONFIGURE OUTPUT reference/made.inc)\n"}
        self.assertEqual(self.findings(**generated)[0], [])

    def test_a_header_has_its_guard(self):
        self.assertIn("without #pragma once", self.breach("harness/a.h", "int x;\n"))
        self.sound("harness/a.h", "// Included once per instruction set.\nint x;\n")

    def test_a_scheme_is_compared_in_its_own_files_only(self):
        for text in ('if (name == "fp8_block") {}', 'if ("fp8_block" != name) {}',
                     'if (name.starts_with("fp8_block")) {}'):
            self.assertIn("'fp8_block' is compared outside", self.breach("harness/a.cc", text + "\n"))
            self.sound("kernels/cpu/fp8_block.cc", text + "\n")
            self.sound("harness/a_test.cc", text + "\n")
        self.sound("harness/a.cc", 'auto s = make_scheme("fp8_block");\n')

    def test_a_backend_is_compared_in_its_own_folder_only(self):
        text = 'if (backend.name() == "cpu") {}\n'
        self.assertIn("'cpu' is compared outside", self.breach("harness/a.cc", text))
        self.sound("kernels/cpu/a.cc", text)
        self.sound("harness/a.cc", 'if (key == "cpu_name") {}\n'.replace("cpu_name", "number_of_cpus"))

    def test_library_code_does_not_print_or_exit(self):
        self.assertIn("must not print or exit", self.breach("reference/a.cc", 'std::cout << "x";\n'))
        self.assertIn("must not print or exit", self.breach("kernels/cpu/a.cc", "std::exit(1);\n"))
        self.sound("reference/a.cc", "// unlike printf(...)\nsnprintf(b, n, f);\n")
        self.sound("reference/dump.cc", 'int main() {\n  printf("1");\n}\n')

    def test_a_type_has_its_name_for_itself(self):
        text = "#pragma once\nnamespace moegauge {\nstruct Candidate {\n};\n}\n"
        breaches, _ = self.findings(**{"harness/a/a.h": text, "harness/b/b.h": text})
        self.assertEqual(len(breaches), 1, breaches)
        self.assertIn("harness/b/b.h:3: harness/a/a.h has a type moegauge::Candidate too", breaches[0])
        other = text.replace("moegauge {", "moegauge::b {")
        self.assertEqual(self.findings(**{"harness/a/a.h": text, "harness/b/b.h": other})[0], [])
        self.sound("harness/a/a.h", text + text)  # under conditions, say

    def test_json_is_strict(self):
        self.assertIn("suites/a.json:2", self.breach("suites/a.json", '{"a": 1,\n}\n'))
        self.assertIn("key 'a' twice", self.breach("suites/a.json", '{"a": 1, "a": 2}\n'))
        self.assertIn("NaN is not JSON", self.breach("suites/a.json", '{"a": NaN}\n'))

    def test_a_model_is_called_as_its_file(self):
        self.assertIn("call it 'qwen'", self.breach("suites/models/qwen.json", '{"name": "owen"}\n'))
        self.sound("suites/models/qwen.json", '{"name": "qwen"}\n')

    def test_a_link_in_the_docs_leads_somewhere(self):
        self.assertIn("README.md:1: the link to docs/gone.md", self.breach("README.md", "[x](docs/gone.md)\n"))
        self.sound("README.md", "[x](reference/layer.h#top) [y](https://arxiv.org/abs/1)\n")

    def test_a_long_file_is_listed_and_no_breach(self):
        breaches, long = self.findings(**{"harness/a.cc": "\n" * 401})
        self.assertEqual((breaches, long), ([], ["harness/a.cc: 401 lines"]))


if __name__ == "__main__":
    unittest.main()
