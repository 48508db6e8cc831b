#!/usr/bin/env python3
"""The shell scripts: bad usage and odd states get a plain line, and the README check sees rot."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("MOEGAUGE_")}


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=options.pop("env", CLEAN), **options)
    return done.returncode, done.stdout + done.stderr


class BadUsage(unittest.TestCase):
    def test_an_unknown_argument_is_named_and_exits_2(self):
        for script in ("setup", "test", "check-clean-clone", "check-bare-machine"):
            code, text = run(SCRIPTS / script, "--bogus")
            self.assertEqual(code, 2, script)
            self.assertIn("'--bogus'", text)
            self.assertIn("usage:", text)

    def test_an_unknown_part_lists_those_there_are(self):
        code, text = run(SCRIPTS / "test", "--part", "unti")
        self.assertEqual(code, 2)
        self.assertIn("no part 'unti'", text)
        self.assertIn("unit", text)

    def test_a_suite_that_is_not_there_is_named(self):
        code, text = run(SCRIPTS / "bench", "suites/none.json")
        self.assertEqual(code, 2)
        self.assertIn("no suite suites/none.json", text)

    def test_a_chart_without_its_library_is_a_line_that_says_how_to_get_it(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "vl_convert.py").write_text("raise ImportError\n")
            code, text = run(SCRIPTS / "python", SCRIPTS / "chart.py", "a.vl.json", "a.svg", env=CLEAN | {"PYTHONPATH": folder})
        self.assertEqual(code, 2)
        self.assertEqual(len(text.splitlines()), 1, text)
        self.assertIn("scripts/setup report", text)

    def test_help_is_no_error(self):
        for script in ("setup", "bench", "test", "check-clean-clone", "check-bare-machine"):
            self.assertEqual(run(SCRIPTS / script, "--help")[0], 0, script)


class Setup(unittest.TestCase):
    """With a PATH of a few tools only, so that nothing can be installed."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tree = Path(self.folder.name, "tree")
        (self.tree / "scripts").mkdir(parents=True)
        for name in ("setup", "lib.sh", "python", "requirements.txt"):
            target = self.tree / "scripts" / name
            target.write_bytes((SCRIPTS / name).read_bytes())
            target.chmod(0o755)
        self.bin = Path(self.folder.name, "bin")
        self.bin.mkdir()
        for tool in ("bash", "env", "cat", "date", "dirname", "id", "mkdir", "nproc", "tr", "sed",
                     "sort", "head", "grep", "cmp"):
            self.link(tool)

    def link(self, tool):
        for folder in ("/usr/bin", "/bin"):
            if Path(folder, tool).exists():
                (self.bin / tool).symlink_to(Path(folder, tool))
                return
        self.fail(f"no {tool} on this machine")

    def fake(self, tool, text):
        path = self.bin / tool
        path.write_text(f"#!{self.bin}/bash\n{text}\n")
        path.chmod(0o755)

    def setup_script(self, *arguments):
        return run("bash", self.tree / "scripts/setup", *arguments,
                   env={"PATH": str(self.bin), "HOME": self.folder.name})

    def test_without_a_compiler_and_apt_it_says_what_to_install(self):
        code, text = self.setup_script()
        self.assertEqual(code, 4, text)
        self.assertIn("this is not Debian or Ubuntu", text)
        self.assertIn("c++ is not there", text)
        self.assertIn("ninja-build", text)

    def test_with_the_tools_there_it_goes_on(self):
        for tool in ("c++", "ninja"):
            self.fake(tool, "exit 0")
        self.fake("cmake", "echo cmake version 3.31.6")
        code, text = self.setup_script()
        self.assertEqual(code, 0, text)

    def test_an_old_cmake_is_refused_with_both_versions(self):
        for tool in ("c++", "ninja"):
            self.fake(tool, "exit 0")
        self.fake("cmake", "echo cmake version 3.22.1")
        code, text = self.setup_script()
        self.assertEqual(code, 4)
        self.assertIn("cmake 3.22.1 is too old; 3.25 or newer", text)

    def test_a_package_that_no_source_has_is_named_and_takes_no_other_along(self):
        self.fake("apt-cache", 'if [ "$2" = ninja-build ]; then echo "  Candidate: (none)"; '
                               'else echo "  Candidate: 1.0"; fi; for i in {1..9999}; do echo "     $i"; done')
        self.fake("apt-get", f'echo "$@" >>{self.folder.name}/apt\n'
                             f'case "$*" in *install*cmake*) for t in c++ cmake; do '
                             f'printf "#!{self.bin}/bash\\necho cmake version 3.31.6\\n" >{self.bin}/$t; '
                             f'chmod +x {self.bin}/$t; done ;; esac')
        self.link("chmod")
        self.fake("sudo", 'if [ "$1" = -n ]; then shift; fi\n"$@"')
        self.fake("true", "exit 0")
        code, text = self.setup_script()
        self.assertEqual(code, 4, text)
        self.assertIn("fetching the package lists", text)
        self.assertIn("not installed: ninja-build", text)
        self.assertIn("ninja is not there", text)
        self.assertTrue((self.bin / "cmake").exists())
        asked = Path(self.folder.name, "apt").read_text()
        self.assertIn("install --no-install-recommends g++ cmake", asked)
        self.assertNotIn("ninja-build", asked)


@unittest.skipUnless(Path("/usr/bin/git").exists(), "git is not installed")
class CleanClone(unittest.TestCase):
    def check(self, readme):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "README.md").write_text(readme)
            git = ("git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org")
            for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "readme")):
                self.assertEqual(run(*git, *command)[0], 0)
            return run(SCRIPTS / "check-clean-clone", folder)

    def test_commands_that_work_pass(self):
        code, text = self.check("# x\n```sh\necho hello from here\ntest -f README.md\n```\n")
        self.assertEqual(code, 0, text)
        self.assertIn("hello from here", text)

    def test_a_command_that_fails_is_shown(self):
        code, text = self.check("```sh\ntrue\n```\n```sh\nfalse\ntrue\n```\n")
        self.assertEqual(code, 1)
        self.assertIn("exit code 1 from the README's block", text)

    def test_other_blocks_are_not_run(self):
        code, text = self.check("```text\nfalse\n```\n```sh\ntrue\n```\n")
        self.assertEqual(code, 0, text)

    def test_a_readme_without_commands_is_no_pass(self):
        self.assertEqual(self.check("# x\n")[0], 2)


if __name__ == "__main__":
    unittest.main()
