"""Running single ops on tensors of our own through the command line, for tests that hold them against
numpy. Nothing of ours takes part in what they expect."""

import json
import os
import subprocess
import tempfile
import unittest

import numpy as np
import peer_layer as peer


class OpCase(unittest.TestCase):
    binary = ""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = self.temporary.name
        self.rng = np.random.default_rng(7)

    def tearDown(self):
        self.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_suite(self, cases):
        with open(self.path("suite.json"), "w") as file:
            json.dump({"schema": "moegauge.suite/1", "name": "s", "seconds_per_case": 0.02, "cases": cases}, file)

    def run_cases(self, cases, options=()):
        """(exit code, stderr, the result's cases, the folder of dumps)."""
        defaults = {"backend": "cpu", "cache": "hot", "model": "replay", "scheme": "bf16"}
        self.write_suite([{**defaults, **case} for case in cases])
        if os.path.exists(self.path("r.json")):
            os.remove(self.path("r.json"))
        done = subprocess.run(
            [self.binary, "run", self.path("suite.json"), "--out", self.path("r.json"), "--quiet",
             "--dump", self.path("dump"), *options], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            return done.returncode, done.stderr + done.stdout, None, None
        with open(self.path("r.json")) as file:
            return done.returncode, done.stderr, json.load(file)["cases"], self.path("dump")

    def replayed(self, op, tensors, fields=None, metadata=None, options=()):
        """The dump of one case that is right: its kernel gave what the oracle says."""
        peer.write(self.path("in.safetensors"), tensors, metadata)
        case = {"op": op, "inputs": "file:in.safetensors", **(fields or {})}
        code, err, cases, folder = self.run_cases([case], options)
        self.assertEqual(code, 0, f"{err} {cases and cases[0].get('reason')}")
        self.assertEqual(cases[0]["status"], "ok", cases[0].get("reason"))
        self.record = cases[0]
        return peer.read(os.path.join(folder, peer.dump_name(cases[0]["id"])))[0]

    def refused(self, op, tensors, *words, fields=None):
        peer.write(self.path("in.safetensors"), tensors)
        code, err, _, _ = self.run_cases([{"op": op, "inputs": "file:in.safetensors", **(fields or {})}])
        self.assertEqual(code, 2, err)
        self.assertEqual(err.count("\n"), 1, err)
        for word in ("in.safetensors", *words):
            self.assertIn(word, err)

    def same_bits(self, a, b, what=""):
        self.assertEqual(a.dtype, b.dtype, what)
        self.assertEqual(a.shape, b.shape, what)
        self.assertEqual(a.tobytes(), b.tobytes(), what)
