#!/usr/bin/env python3
"""What a page shows in a console block is what the commands print: each `$ ` line is run in the root of the tree.
Argument: the moegauge binary."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["docs/evidence.md"]
BINARY = None


def printed(command):
    path = f"{pathlib.Path(BINARY).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False,
                          env=dict(os.environ, PATH=path))
    return done.stdout + (f"(exit code {done.returncode})\n" if done.returncode else "")


class DocsCommands(unittest.TestCase):
    maxDiff = None

    def test_pages_show_what_the_commands_print(self):
        (ROOT / "build").mkdir(exist_ok=True)
        for page in PAGES:
            blocks = re.findall(r"^(`{3,})console\n(.*?)^\1\n", (ROOT / page).read_text(), re.S | re.M)
            self.assertGreater(len(blocks), 3, page)
            for _, block in blocks:
                for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                    command, _, shown = part.partition("\n")
                    with self.subTest(page=page, command=command):
                        self.assertEqual(printed(command), shown)


if __name__ == "__main__":
    BINARY = sys.argv.pop(1)
    unittest.main()
