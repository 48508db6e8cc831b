#!/usr/bin/env python3
"""The recipes of this folder. Their YAML is read, and every line of shell in it is run, word for word, in a
clone of this tree, with a build that is there already and a suite of scripted kernels. What only the
service itself knows (its schema, its runners, its actions) is not checked: docs/ci.md says so.
Argument: the moegauge_with_faults binary."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import yaml
except ImportError:
    print("PyYAML is not installed", file=sys.stderr)
    sys.exit(77)

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = None

# The layer of harness/testing/command.cc's suites.
MODEL = """{"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "hidden_size": 256,
 "intermediate_size": 128, "hidden_act": "silu"}"""
SUITE = """{"schema": "moegauge.suite/1", "name": "recipe",
 "defaults": {"model": "config.json", "scheme": "bf16", "backend": "%s"}, "cases": [{"tokens": [1, 2, 4]}]}"""


def yaml_of(name):
    return yaml.safe_load((ROOT / "scripts/ci" / name).read_text())


class Clone(unittest.TestCase):
    """A clone with two commits, and an environment in which nothing of the machine's CI shows."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.tree = self.folder / "tree"
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("MOEGAUGE_", "GITHUB_", "CI_", "BUILDKITE", "GIT_"))}
        self.git("clone", "--quiet", "--no-checkout", "--shared", str(ROOT), str(self.tree), cwd=self.folder)
        self.git("checkout", "--quiet", "HEAD", "--", "scripts", "CMakePresets.json")
        # As they stand here, committed or not.
        for file in (ROOT / "scripts/ci").iterdir():
            if file.is_file():
                target = self.tree / "scripts/ci" / file.name
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(file.read_bytes())
                target.chmod(file.stat().st_mode)
        self.built = self.build("1")
        self.history = self.folder / "history/history.db"
        self.suite = self.folder / "suite.json"
        (self.folder / "config.json").write_text(MODEL)
        self.suite.write_text(SUITE % "noisy")
        self.env |= {"SUITE": str(self.suite), "BACKEND": "noisy", "HOME": str(self.folder), "MOEGAUGE_CI_BUILT": str(self.built),
                     "MOEGAUGE_CI_BASE_BUILT": str(self.built), "MOEGAUGE_HISTORY": str(self.history)}

    def git(self, *words, cwd=None):
        done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
                              cwd=cwd or self.tree, capture_output=True, text=True, check=False, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def build(self, factor):
        """A build folder whose kernels take `factor` times as long as those of another."""
        folder = self.folder / f"built{factor}"
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        program = folder / "bin/moegauge"
        # Processes differ by up to 0.4%.
        program.write_text(f"""#!/bin/sh
n=$(($(cat {folder}/count) + 1)); echo $n >{folder}/count; rm -f {folder}/loads
MOEGAUGE_TEST_FACTOR=$(awk "BEGIN {{print $(cat {folder}/factor) * (1 + 0.002 * ($n * 7 % 5 % 3) + 0.00001 * $n)}}")
export MOEGAUGE_TEST_FACTOR MOEGAUGE_TEST_LOADS={folder}/loads
exec {BINARY} "$@"
""")
        (folder / "count").write_text("0")
        program.chmod(0o755)
        (folder / "factor").write_text(factor)
        return folder

    def shell(self, line, **env):
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", line], cwd=self.tree, capture_output=True,
                              text=True, check=False, env=self.env | env, stdin=subprocess.DEVNULL, timeout=300)
        self.said = done.stdout + done.stderr
        return done.returncode

    def nightly(self, out, *more):
        return self.shell(f"scripts/ci/nightly {self.suite} {self.history} {out} {' '.join(more) or 3}")


class Yaml(Clone):
    """The recipes, as the service would start them."""

    def lines(self, lines, env, codes):
        for line in lines:
            code = self.shell(line, **{k: str(v) for k, v in env.items()})
            self.assertIn(code, codes, f"{line}\n{self.said}")

    def test_github_actions(self):
        recipe = yaml_of("github-actions.yml")
        self.assertEqual(set(recipe[True]), {"pull_request", "schedule", "workflow_dispatch"})  # `on`
        self.assertEqual(recipe["permissions"], {"contents": "read"})
        self.assertTrue((ROOT / recipe["env"]["SUITE"]).is_file())
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        actions = set()
        summary = self.folder / "summary.md"
        env = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": summary}
        for name, job in recipe["jobs"].items():
            self.assertIn("self-hosted", job["runs-on"])
            self.assertLessEqual(set(job), {"if", "runs-on", "timeout-minutes", "concurrency", "steps"})
            actions |= {step["uses"] for step in job["steps"] if "uses" in step}
            # The first night has nothing to compare with.
            self.lines([step["run"] for step in job["steps"] if "run" in step], env, {0, 4})
            self.assertIn("moegauge gate", summary.read_text(), name)
            kept = [step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
            self.assertEqual(kept, ["moegauge-out"])
            self.assertTrue((self.tree / "moegauge-out/gate.xml").is_file(), name)
        self.assertEqual(actions, {"actions/checkout@v4", "actions/upload-artifact@v4"})

    def test_gitlab(self):
        recipe = yaml_of("gitlab-ci.yml")
        common = recipe[".moegauge"]
        self.assertTrue((ROOT / common["variables"]["SUITE"]).is_file())
        env = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": self.git("rev-parse", "HEAD")}
        for name in ("moegauge-pull-request", "moegauge-nightly"):
            job = recipe[name]
            self.assertEqual(job["extends"], ".moegauge")
            self.lines(common["before_script"] + job["script"], env, {0, *common["allow_failure"]["exit_codes"]})
            self.assertTrue((self.tree / common["artifacts"]["reports"]["junit"]).is_file(), name)
        self.assertTrue(self.history.is_file())

    def test_buildkite(self):
        recipe = yaml_of("buildkite.yml")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        agent = self.folder / "bin/buildkite-agent"
        agent.parent.mkdir()
        agent.write_text(f"#!/bin/sh\necho \"$@\" >>{self.folder}/annotations\ncat >>{self.folder}/annotations\n")
        agent.chmod(0o755)
        env = {"BUILDKITE": "true", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main",
               "PATH": f"{agent.parent}:{self.env['PATH']}"}
        self.assertTrue((ROOT / recipe["env"]["SUITE"]).is_file())
        for step in recipe["steps"]:
            soft = {each["exit_status"] for each in step["soft_fail"]}
            # The agent leaves $$ to the shell as $, and replaces $ itself.
            self.assertFalse([c for c in step["commands"] if re.search(r"(?<!\$)\$(?!\$)", c)])
            commands = [command.replace("$$", "$").replace("/var/lib/moegauge", str(self.folder / "history"))
                        for command in step["commands"]]
            self.lines(commands, env, {0, *soft})
        said = (self.folder / "annotations").read_text()
        self.assertIn("annotate --style", said)
        self.assertIn("moegauge gate", said)


class Scripts(Clone):
    """What becomes of changes."""

    def test_a_pull_request_that_is_slower_fails_and_one_that_is_not_passes(self):
        slower = self.build("1.2")
        line = f"scripts/ci/pull-request HEAD {self.suite} out --pairs 4"
        self.assertEqual(self.shell(line, MOEGAUGE_CI_BUILT=str(slower)), 1, self.said)
        self.assertIn("FAILED: a case is slower", self.said)
        self.assertIn("<failure", (self.tree / "out/gate.xml").read_text())
        self.assertIn("### moegauge gate", (self.tree / "out/gate.md").read_text())
        self.assertEqual(self.shell(line), 2)
        self.assertIn("out holds something already", self.said)
        self.assertEqual(self.shell(line.replace(" out ", " out2 ")), 0, self.said)

    def test_a_base_without_a_common_commit_is_bad_usage(self):
        self.assertEqual(self.shell(f"scripts/ci/pull-request origin/none {self.suite} out"), 2)
        self.assertIn("fetch the whole history", self.said)

    def test_nights_are_judged_and_added_and_a_bad_one_is_no_baseline(self):
        self.assertEqual(self.nightly("night0"), 4, self.said)
        self.assertIn("NO VERDICT", self.said)
        for night in range(1, 4):
            self.assertEqual(self.nightly(f"night{night}"), 0, self.said)
        (self.built / "factor").write_text("1.3")
        for night in range(4, 6):
            self.assertEqual(self.nightly(f"night{night}"), 1, self.said)
            self.assertIn("held back", self.said)
        (self.built / "factor").write_text("1")
        self.assertEqual(self.nightly("night6"), 0, self.said)

    def test_a_runner_without_its_device_is_neither_passed_nor_failed(self):
        self.suite.write_text(SUITE % "gone")
        self.assertEqual(self.nightly("night0"), 4, self.said)
        self.assertIn("NO VERDICT: neither passed nor failed", self.said)

    def test_bad_usage_is_named(self):
        for script in ("pull-request", "nightly", "slurm-nightly"):
            self.assertEqual(self.shell(f"scripts/ci/{script}"), 2, script)
            self.assertIn("usage: scripts/ci/", self.said)
            self.assertEqual(self.shell(f"scripts/ci/{script} --help"), 0, script)
        self.assertEqual(self.nightly("out", "0"), 2)
        self.assertIn("PROCESSES is '0'", self.said)
        self.assertEqual(self.shell(f"scripts/ci/slurm-nightly {self.suite} h.db out none"), 2)
        self.assertIn("SHARDS is 'none'", self.said)
        for script in ("slurm-shard", "slurm-gate"):
            self.assertEqual(self.shell(f"scripts/ci/{script}"), 2, script)

    def test_a_tree_that_does_not_build_shows_the_compilers_words(self):
        (self.tree / "CMakePresets.json").write_text("{}")
        self.assertEqual(self.shell(f"scripts/ci/nightly {self.suite} h.db out", MOEGAUGE_CI_BUILT=""), 4)
        self.assertIn("could not be built", self.said)


if __name__ == "__main__":
    BINARY = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
