#!/usr/bin/env python3
"""slurm-nightly on a real Slurm of one machine, which this starts: shards of a suite as a job array, and the job
that puts them together and judges them. Skipped, with the reason, where Slurm cannot start.
Argument: the moegauge_with_faults binary."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import slurm_cluster

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = None
CLUSTER = None
MODEL = """{"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "hidden_size": 256,
 "intermediate_size": 128, "hidden_act": "silu"}"""
SUITE = """{"schema": "moegauge.suite/1", "name": "fleet",
 "defaults": {"model": "config.json", "scheme": "bf16", "backend": "noisy"}, "cases": [{"tokens": [1, 2, 4, 8, 16]}]}"""


class SlurmNightly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "config.json").write_text(MODEL)
        self.suite = self.folder / "suite.json"
        self.suite.write_text(SUITE)
        self.history = self.folder / "history.db"
        self.wrapper("")

    def wrapper(self, before):
        """The program that the jobs run, with `before` in front."""
        (self.folder / "built/bin").mkdir(parents=True, exist_ok=True)
        program = self.folder / "built/bin/moegauge"
        # Processes differ by up to 0.4%; each has its own count of loads.
        program.write_text(f"""#!/bin/bash
export MOEGAUGE_TEST_LOADS=$(mktemp -u {self.folder}/loads-XXXXXX)
export MOEGAUGE_TEST_FACTOR=1.00$((RANDOM % 5))$((RANDOM % 1000))
{before}
exec {BINARY} "$@"
""")
        program.chmod(0o755)

    def night(self, out, shards=3):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("MOEGAUGE_", "SLURM_", "SBATCH_"))}
        done = subprocess.run(
            [ROOT / "scripts/ci/slurm-nightly", self.suite, self.history, self.folder / out, str(shards)],
            capture_output=True, text=True, check=False, timeout=240, stdin=subprocess.DEVNULL,
            env=env | CLUSTER.environment | {"MOEGAUGE_CI_BUILT": str(self.folder / "built")})
        self.said = done.stdout + done.stderr
        return done.returncode

    def cases(self, out, name="process1.json"):
        return [case["id"] for case in json.loads((self.folder / out / name).read_text())["cases"]]

    def test_shards_are_measured_merged_judged_and_added(self):
        self.assertEqual(self.night("night0"), 4, self.said)
        self.assertEqual([id.rsplit("/", 1)[1] for id in self.cases("night0")], ["M=1", "M=2", "M=4", "M=8", "M=16"])
        self.assertEqual(len(self.cases("night0", "process2/shard1.json")), 2)
        self.assertIn("added as run 3", self.said)
        self.assertEqual(self.night("night1"), 0, self.said)
        self.assertTrue((self.folder / "night1/gate.xml").is_file())
        self.assertIn("PASS: 5 cases", self.said)
        self.assertEqual(self.night("night1"), 2)
        self.assertIn("holds something already", self.said)

    def test_more_shards_than_points_are_no_error(self):
        self.assertEqual(self.night("night", shards=7), 4, self.said)
        self.assertEqual(len(self.cases("night")), 5)

    def test_a_shard_that_is_lost_is_named_and_nothing_is_added(self):
        self.wrapper('if [[ "$*" == *"--shard 2/3"* ]]; then kill -9 $$; fi')
        self.assertEqual(self.night("night"), 2, self.said)
        self.assertIn("shard 2/3 is missing", self.said)
        self.assertFalse(self.history.exists())
        self.assertFalse((self.folder / "night/process1.json").exists())

    def test_a_shard_that_is_there_twice_is_named(self):
        # A task that wrote another's shard too, as where a folder was copied back from a node.
        self.wrapper('if [[ "$*" == *"--shard 3/3"* ]]; then set -- "${@/3\\/3/1/3}"; fi')
        self.assertEqual(self.night("night"), 2, self.said)
        self.assertIn("shard 1/3 is there twice", self.said)
        self.assertFalse(self.history.exists())

    def test_a_shard_that_slurm_ends_is_no_whole_one(self):
        self.wrapper('if [[ "$*" == *"--shard 1/3"* ]]; then ' + str(BINARY) + ' "$@" & sleep 0.1; kill -TERM $!; '
                     'wait $!; exit $?; fi')
        self.assertEqual(self.night("night"), 2, self.said)
        self.assertRegex(self.said, "shard 1/3 is (missing|not whole)")

    def test_a_task_that_slurm_starts_again_goes_on_where_it_was(self):
        """As after a lost node: scontrol requeue ends the task and starts it anew."""
        started = self.folder / "started"
        # The first time shard 1 measures its first case and then hangs.
        self.wrapper(f'if [[ "$*" == *"--shard 1/2"* && ! -e {started} ]]; then {BINARY} "$@" --tokens 1 --quiet; '
                     f'rm -f "$6"; touch {started}; sleep 300; fi')
        env = os.environ | CLUSTER.environment
        night = subprocess.Popen(
            [ROOT / "scripts/ci/slurm-nightly", self.suite, self.history, self.folder / "night", "2"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
            env=env | {"MOEGAUGE_CI_BUILT": str(self.folder / "built")})
        end = time.monotonic() + 60
        while not started.exists() and time.monotonic() < end:
            time.sleep(0.2)
        self.assertTrue(started.exists())
        jobs = subprocess.run(["squeue", "--noheader", "--array", "--name=moegauge-shard", "--format=%i"], env=env,
                              capture_output=True, text=True, check=True).stdout.split()
        task = [job for job in jobs if job.endswith("_1")]
        self.assertEqual(len(task), 1, jobs)
        subprocess.run(["scontrol", "requeue", task[0]], env=env, check=True)
        said = night.communicate(timeout=240)[0]
        self.assertEqual(night.returncode, 4, said)  # the first night
        self.assertEqual(len(self.cases("night")), 5)


def main():
    global BINARY, CLUSTER
    BINARY = str(pathlib.Path(sys.argv.pop(1)).resolve())
    with tempfile.TemporaryDirectory(prefix="moegauge-slurm-") as folder:
        CLUSTER = slurm_cluster.Cluster(folder)
        try:
            try:
                CLUSTER.start()
            except slurm_cluster.CannotStart as why:
                print(f"skipped: {why}", file=sys.stderr)
                return 77
            return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1
        finally:
            CLUSTER.stop()


if __name__ == "__main__":
    sys.exit(main())
