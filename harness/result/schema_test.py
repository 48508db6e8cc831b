"""Every kind of file of this project against its JSON Schema in results/schema, with a validator by
others; and each schema against broken files, so that a schema that lets anything pass is caught.
Argument: the result_sample binary."""

import copy
import functools
import glob
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    print("skipped: the Python package jsonschema is not installed (python3-jsonschema)")
    sys.exit(77)

SCHEMAS = pathlib.Path("results/schema")
# What not every source of a serving or accuracy row has.
END_TO_END_OPTIONAL = ("end_to_end", "lower_is_better", "questions", "unknown", "note", "lines", "pointer", "stderr", "samples",
                       "input_output", "concurrency", "task", "ttft_ms.mean")


def refuse_constant(word):
    raise ValueError(f"{word} is no JSON")


def unique(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise ValueError(f"duplicate keys in {keys}")
    return dict(pairs)


def load(path):
    return json.loads(pathlib.Path(path).read_text(), parse_constant=refuse_constant, object_pairs_hook=unique)


@functools.lru_cache
def validator(kind):
    schema = load(SCHEMAS / f"{kind}.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def places(value, path=()):
    """Every place in a document: (path, value)."""
    yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, path + (key,))


def changed(document, path, change):
    document = copy.deepcopy(document)
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    return document


def replaced(document, path, value):
    return changed(document, path, lambda parent, key: parent.__setitem__(key, value))


class Schemas(unittest.TestCase):
    maxDiff = None

    def accepts(self, kind, document, what):
        errors = sorted(validator(kind).iter_errors(document), key=str)
        self.assertEqual([f"{list(e.absolute_path)}: {e.message[:200]}" for e in errors[:3]], [], what)

    def test_every_shipped_suite_is_valid(self):
        files = glob.glob("suites/*.json")
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            self.accepts("suite", load(file), file)

    def test_every_shipped_model_is_valid(self):
        files = glob.glob("suites/models/*.json")
        self.assertEqual(len(files), 13)
        for file in files:
            self.accepts("model", load(file), file)

    def test_every_shipped_config_table_is_valid(self):
        for file in glob.glob("kernels/**/E=*.json", recursive=True):
            self.accepts("config", load(file), file)

    def test_a_written_result_is_valid(self):
        self.accepts("result", RESULT, "result_sample")
        statuses = {case["status"] for case in RESULT["cases"]}
        self.assertEqual(len(statuses), 10)  # the sample leaves none out

    def breakable(self):
        """The validator of results and a result to break, which it is known to accept: of each kind of case
        and row one."""
        small = copy.deepcopy(RESULT)
        kinds = {case["status"]: case for case in small["cases"]}
        small["cases"] = [kinds["ok"], kinds["crashed"], kinds["inaccurate"]]
        kinds["ok"]["latency_us"]["samples"] = kinds["ok"]["latency_us"]["samples"][:1]
        small["benchmarks"] = list({row["run_type"]: row for row in small["benchmarks"]}.values())
        self.accepts("result", small, "a part of result_sample")
        return validator("result"), small

    def test_a_missing_key_is_caught(self):
        optional = {
            "executed_backend", "file", "key", "hash", "stale", "stages_us", "telemetry", "suspect_reason", "attempts",
            "cpu_scaling_enabled", "json_schema_version", "clock_mhz", "gemm1", "quantize", "BLOCK_SIZE_M",
            "num_threads"}
        (checker, good), checked = self.breakable(), 0
        for path, _ in places(good):
            if not path or isinstance(path[-1], int) or path[-1] in optional:
                continue
            if path[0] == "context" and path[-1] in ("suite", "seed", "note"):
                continue
            if path[0] == "end_to_end" and path[-1] in END_TO_END_OPTIONAL:
                continue
            if "error" in path and "reason" in path:
                continue  # that a null has its reason is the loader's to check
            checked += 1
            self.assertFalse(checker.is_valid(changed(good, path, lambda parent, key: parent.pop(key))), path)
        self.assertGreater(checked, 150)

    def test_a_wrong_type_is_caught(self):
        (checker, good), checked = self.breakable(), 0
        for path, value in places(good):
            if not path or "telemetry" in path or path[0] == "end_to_end" and path[-1] in ("note", "unknown"):
                continue
            wrong = [1] if isinstance(value, (str, dict, bool)) or value is None else {"x": "y"}
            checked += 1
            self.assertFalse(checker.is_valid(replaced(good, path, wrong)), (path, wrong))
        self.assertGreater(checked, 200)

    def test_an_unknown_key_is_caught(self):
        open_objects = ("context", "values", "asked", "stages_us", "telemetry", "labels", "numbers", "unknown")
        (checker, good), checked = self.breakable(), 0
        for path, value in places(good):
            if not isinstance(value, dict) or any(key in open_objects for key in path):
                continue
            broken = copy.deepcopy(good)
            parent = broken
            for key in path:
                parent = parent[key]
            parent["latncy"] = "x"
            checked += 1
            self.assertFalse(checker.is_valid(broken), path)
        self.assertGreater(checked, 20)

    def test_contradictions_between_status_and_latency_are_caught(self):
        checker, good = self.breakable()
        cases = {case["status"]: index for index, case in enumerate(good["cases"])}
        self.assertFalse(checker.is_valid(replaced(good, ("cases", cases["ok"], "status"), "crashed")))
        self.assertFalse(checker.is_valid(replaced(good, ("cases", cases["crashed"], "status"), "ok")))
        self.assertFalse(checker.is_valid(replaced(good, ("cases", cases["ok"], "reason"), "x")))
        self.assertFalse(checker.is_valid(replaced(good, ("cases", cases["ok"], "status"), "okay")))
        self.assertFalse(checker.is_valid(replaced(good, ("cases", cases["ok"], "latency_us", "median"), -1)))
        self.assertFalse(checker.is_valid(replaced(good, ("cases", cases["ok"], "latency_us", "median"), None)))
        self.assertFalse(checker.is_valid(replaced(good, ("schema",), "moegauge.result/2")))

    def test_broken_suites_are_caught(self):
        good = load("suites/quick.json")
        self.accepts("suite", good, "quick")
        for path, value in [
                (("schema",), "moegauge.suite/2"), (("name",), ""), (("cases",), []), (("defaults", "tokens"), [-1]),
                (("defaults", "tokens"), []), (("defaults", "tokens"), 1048577), (("defaults", "tp"), 0),
                (("defaults", "tokens"), 1.5), (("defaults", "token"), 1), (("defaults", "config"), "tunned"),
                (("defaults", "config"), {}), (("defaults", "config"), {"BLOCK_SIZE_M": "16"}),
                (("defaults", "config"), {"BLOCK_SIZE_M": -1}), (("defaults", "inputs"), "gauss"),
                (("defaults", "cache"), "warm"), (("defaults", "launch"), True), (("defaults", "op"), "moe"),
                (("defaults", "scheme"), [""]), (("extra",), 1)]:
            self.assertFalse(validator("suite").is_valid(replaced(good, path, value)), (path, value))
        for key in ("schema", "name", "cases"):
            self.assertFalse(validator("suite").is_valid(changed(good, (key,), lambda parent, k: parent.pop(k))), key)
        for key, value in [("config", {"BLOCK_SIZE_M": 16}), ("config", ["file:x.json", "default"]), ("tokens", 0),
                           ("op", ["route", "align"])]:
            self.accepts("suite", replaced(good, ("defaults", key), value), key)

    def test_broken_models_are_caught(self):
        good = load("suites/models/gpt-oss-20b.json")
        self.accepts("model", good, "gpt-oss-20b")
        for path, value in [
                (("schema",), "moegauge.model/2"), (("experts",), 0), (("experts",), 1.5), (("top_k",), "4"),
                (("activation",), "swiglu_clamped"), (("activation", "kind"), "silu_and_mul"),
                (("activation", "kind"), "silu"), (("activation", "limt"), 7), (("routing", "rule"), "soft"),
                (("routing", "renormalise"), True), (("gate_up_order",), "mixed"), (("dtype",), "fp32"),
                (("served_as",), "bf16"), (("num_experts",), 32)]:
            self.assertFalse(validator("model").is_valid(replaced(good, path, value)), (path, value))
        for key in ("schema", "name", "experts", "top_k", "hidden_size", "moe_intermediate_size", "activation",
                    "routing", "served_as"):
            self.assertFalse(validator("model").is_valid(changed(good, (key,), lambda parent, k: parent.pop(k))), key)
        self.assertFalse(validator("model").is_valid(
            changed(good, ("activation", "alpha"), lambda parent, k: parent.pop(k))))

    def test_config_tables(self):
        entry = {"BLOCK_SIZE_M": 16, "num_warps": 4}
        for table in [{"1": entry}, {"1": entry, "triton_version": "3.6.0", "hidden_size": 2048}, {"16": {"tile_m": 64}}]:
            self.accepts("config", table, table)
        for table in [{}, {"triton_version": "3.6.0"}, {"1": {}}, {"1": 16}, {"0": entry}, {"016": entry},
                      {"-16": entry, "1": entry}, {"1O24": entry, "1": entry}, {"1": {"BLOCK_SIZE_M": 1.5}},
                      {"1": {"BLOCK_SIZE_M": -1}}, {"1": {"BLOCK_SIZE_M": "16"}}, {" 16": 1, "1": entry}, [], {"1": {"": 1}}]:
            self.assertFalse(validator("config").is_valid(table), table)


if __name__ == "__main__":
    sample = sys.argv.pop(1)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sample, f"{folder}/r.json", "1"], check=True)
        RESULT = load(f"{folder}/r.json")
        unittest.main()
