"""Layers written by numpy, replayed through the command line, against the same layers computed in
numpy. Argument: a moegauge whose backend `honest` answers with the oracle's own bits."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import ml_dtypes
    import numpy as np
    import peer_layer as peer
except ImportError as missing:
    print(f"skipped: the Python package {missing.name} is not installed (scripts/requirements.txt)")
    sys.exit(77)

MIXTRAL = {"model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2, "hidden_size": 160,
           "intermediate_size": 72, "hidden_act": "silu"}


class Replay(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = self.temporary.name
        self.rng = np.random.default_rng(5)

    def tearDown(self):
        self.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_case(self, fields, tensors=None, metadata=None, options=(), case_file="in.safetensors"):
        """(exit code, stderr, the result's case, the dump)."""
        if tensors is not None:
            peer.write(self.path(case_file), tensors, metadata)
        case = {"backend": "honest", "cache": "hot", "inputs": "file:" + case_file, **fields}
        with open(self.path("suite.json"), "w") as file:
            json.dump({"schema": "moegauge.suite/1", "name": "s", "cases": [case]}, file)
        done = subprocess.run(
            [BINARY, "run", self.path("suite.json"), "--out", self.path("r.json"), "--quiet",
             "--dump", self.path("dump"), *options], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            return done.returncode, done.stderr, None, None
        with open(self.path("r.json")) as file:
            record = json.load(file)["cases"][0]
        self.assertIn(record["status"], ("ok", "inaccurate"), record.get("reason"))
        return done.returncode, done.stderr, record, peer.read(self.path("dump/" + peer.dump_name(record["id"])))[0]

    def rows(self, tokens=5, experts=3, top_k=2, hidden=160):
        ids = np.stack([self.rng.permutation(experts)[:top_k] for _ in range(tokens)]).astype(np.int32)
        weights = self.rng.random((tokens, top_k)).astype(np.float32)
        return {"x": peer.bf16(self.rng.standard_normal((tokens, hidden))), "topk_ids": ids, "topk_weights": weights}

    def weights(self, experts=3, hidden=160, size=72):
        return (self.rng.standard_normal((experts, 2 * size, hidden)) / 13, self.rng.standard_normal((experts, hidden, size)) / 9)

    def check(self, dump, unquantized, emulated):
        self.assertLess(peer.relative(dump["unquantized"], unquantized), 1e-6)
        # Both are rounded to bf16 at the end; an intermediate that falls on a rounding boundary may differ.
        self.assertLess(peer.relative(dump["emulated"], peer.bf16(emulated).astype(np.float64)), 1e-3)
        self.assertTrue(np.array_equal(dump["output"].astype(np.float64), dump["emulated"]))

    def test_bf16_weights_as_they_are(self):
        rows, (w13, w2) = self.rows(), self.weights()
        w13, w2 = peer.bf16(w13), peer.bf16(w2)
        code, err, record, dump = self.run_case({"model": "replay", "scheme": "bf16"}, {**rows, "w13": w13, "w2": w2})
        self.assertEqual(code, 0, err)
        args = rows["x"], w13, w2, rows["topk_ids"], rows["topk_weights"]
        self.check(dump, peer.layer(*args), peer.layer(*args, quantise=peer.half))
        self.assertEqual(record["tokens"], 5)
        self.assertEqual(record["error"]["quantization_of"], "weights and activations before quantisation")

    def test_block_fp8_in_its_canonical_form(self):
        rows, originals = self.rows(), self.weights()
        tensors, exact = dict(rows), []
        for name, weight in zip(("w13", "w2"), originals):
            blocks = [peer.block_scales(expert) for expert in weight]
            tensors[name] = ("F8_E4M3", np.stack([b[0] for b in blocks]))
            tensors[name + "_scale"] = np.stack([b[1] for b in blocks])
            exact.append(np.stack([b[2] for b in blocks]))
        code, err, record, dump = self.run_case({"model": "replay", "scheme": "fp8_block", "tokens": 5}, tensors)
        self.assertEqual(code, 0, err)
        args = rows["x"], *exact, rows["topk_ids"], rows["topk_weights"]
        self.check(dump, peer.layer(*args), peer.layer(*args, quantise=peer.fp8_groups(128)))
        self.assertIn("dequantised", record["error"]["quantization_of"])

    def test_originals_are_quantised_by_the_scheme(self):
        rows, (w13, w2) = self.rows(), self.weights()
        w13, w2 = w13.astype(np.float32), w2.astype(np.float16)
        code, err, record, dump = self.run_case({"model": "replay", "scheme": "fp8_block"}, {**rows, "w13": w13, "w2": w2})
        self.assertEqual(code, 0, err)
        quantised = [np.stack([peer.block_scales(e)[2] for e in w]) for w in (w13, w2)]
        self.check(dump, peer.layer(rows["x"], w13, w2, rows["topk_ids"], rows["topk_weights"]),
                   peer.layer(rows["x"], *quantised, rows["topk_ids"], rows["topk_weights"], quantise=peer.fp8_groups(128)))
        self.assertGreater(record["error"]["quantization"]["relative_l2"], 0.02)

    def test_int4_with_zero_points_and_shuffled_groups(self):
        rows = self.rows()
        tensors, exact = dict(rows), []
        for name, out, cols in (("w13", 144, 160), ("w2", 160, 72)):
            groups = -(-cols // 32)
            codes = self.rng.integers(0, 16, (3, out, cols))
            zeros = self.rng.integers(0, 16, (3, out, groups))
            scales = peer.bf16(self.rng.random((3, out, groups)) / 40)
            index = np.stack([self.rng.permutation(np.arange(cols) // 32) for _ in range(3)]).astype(np.int32)
            tensors[name] = peer.nibbles(codes)
            tensors[name + "_scale"] = scales
            tensors[name + "_zero_point"] = peer.nibbles(zeros.transpose(0, 2, 1)).transpose(0, 2, 1)
            tensors[name + "_g_idx"] = index
            at = np.broadcast_to(index[:, None, :], codes.shape)
            exact.append((codes - np.take_along_axis(zeros, at, 2)) * np.take_along_axis(scales.astype(np.float64), at, 2))
        code, err, _, dump = self.run_case({"model": "replay", "scheme": "w4a16_g32_zp_actorder"}, tensors)
        self.assertEqual(code, 0, err)
        args = rows["x"], *exact, rows["topk_ids"], rows["topk_weights"]
        self.check(dump, peer.layer(*args), peer.layer(*args, quantise=peer.half))

    def test_mxfp4_interleaved_with_biases_and_clamped_swiglu(self):
        rows = self.rows()
        tensors, exact = dict(rows), []
        for name, out, cols in (("w13", 144, 160), ("w2", 160, 72)):
            codes = self.rng.integers(0, 16, (3, out, cols))
            scales = self.rng.integers(120, 125, (3, out, -(-cols // 32))).astype(np.uint8)
            tensors[name], tensors[name + "_scale"] = peer.nibbles(codes), ("F8_E8M0", scales)
            exact.append(peer.E2M1[codes] * np.exp2(np.repeat(scales - 127.0, 32, 2)[:, :, :cols]))
        b13, b2 = (self.rng.standard_normal((3, n)).astype(np.float32) for n in (144, 160))
        fields = {"model": "replay", "scheme": "mxfp4", "gate_up_order": "interleaved",
                  "activation": {"kind": "swiglu_clamped", "alpha": 1.702, "beta": 1, "limit": 7}}
        code, err, record, dump = self.run_case(fields, {**tensors, "w13_bias": b13, "w2_bias": b2})
        self.assertEqual(code, 0, err)
        args = rows["x"], *exact, rows["topk_ids"], rows["topk_weights"]
        layer = {"act": peer.swiglu_clamped(1.702, 1, 7), "b13": b13, "b2": b2, "interleaved": True}
        self.check(dump, peer.layer(*args, **layer), peer.layer(*args, quantise=peer.half, **layer))
        self.assertEqual(record["fields"]["gate_up_order"], "interleaved")

    def test_a_scale_of_gate_and_one_of_up_become_the_larger(self):
        """fp8_tensor has one scale for w13; by hand: the up half, scale 1, is requantised to gate's, 3."""
        rows = self.rows()
        for scheme, form in (("fp8_tensor", ml_dtypes.float8_e4m3fn), ("fp8_tensor_fnuz", ml_dtypes.float8_e4m3fnuz)):
            for order in ("concatenated", "interleaved"):
                codes = [self.rng.standard_normal((3, *shape)).astype(form) for shape in ((144, 160), (160, 72))]
                scales = np.float32([[.03, .01], [.02, .02], [.01, .03]]), np.float32([.01, .02, .03])
                up = np.arange(144) % 2 if order == "interleaved" else np.arange(144) // 72
                of_row = scales[0][:, up][:, :, None]
                w13 = codes[0].astype(np.float64) * of_row
                w2 = codes[1].astype(np.float64) * scales[1][:, None, None]
                larger = scales[0].max(1)
                merged = np.where(of_row == larger[:, None, None], codes[0],
                                  (codes[0].astype(np.float32) * of_row / larger[:, None, None]).astype(form))
                tensors = {**rows, "w13": ("U8", codes[0].view(np.uint8)), "w13_scale": scales[0],
                           "w2": ("U8", codes[1].view(np.uint8)), "w2_scale": scales[1]}
                code, err, _, dump = self.run_case({"model": "replay", "scheme": scheme, "gate_up_order": order}, tensors)
                self.assertEqual(code, 0, err)
                self.assertTrue(np.array_equal(dump["w13_scale"].reshape(3), larger))
                self.assertEqual(dump["w13"].tobytes(), merged.tobytes())
                args = rows["x"], w13, w2, rows["topk_ids"], rows["topk_weights"]
                truth = peer.layer(*args, interleaved=order == "interleaved")
                self.assertLess(peer.relative(dump["unquantized"], truth), 1e-6)
        self.refused({"w13_scale": np.ones((3, 3), np.float32)}, "F32 [3, 3]", "F32 [8, 1, 1], or F32 [8, 2]",
                     fields={"scheme": "fp8_tensor", "model": "mixtral-8x7b", "tp": 1, "tokens": 5})

    def test_a_ranks_act_order_keeps_the_groups_of_the_whole(self):
        """72 of 216 columns of w2, scattered over the 7 groups of 32 that those have."""
        rows, exact, tensors = self.rows(), [], self.rows()
        for name, out, cols, groups in (("w13", 144, 160, 5), ("w2", 160, 72, 7)):
            codes = self.rng.integers(0, 16, (3, out, cols))
            scales = peer.bf16(self.rng.random((3, out, groups)) / 30 + .01)
            index = np.stack([self.rng.permutation(np.arange(cols) * groups // cols) for _ in range(3)]).astype(np.int32)
            tensors.update({name: peer.nibbles(codes), name + "_scale": scales, name + "_g_idx": index})
            exact.append((codes - 8) * np.take_along_axis(
                scales.astype(np.float64), np.broadcast_to(index[:, None], codes.shape), 2))
        code, err, _, dump = self.run_case({"model": "replay", "scheme": "w4a16_g32_actorder"}, {**tensors, **rows})
        self.assertEqual(code, 0, err)
        args = rows["x"], *exact, rows["topk_ids"], rows["topk_weights"]
        self.check(dump, peer.layer(*args), peer.layer(*args, quantise=peer.half))
        self.assertEqual(dump["w2_scale"].tobytes(), tensors["w2_scale"].tobytes())

    def test_router_logits_take_the_place_of_ids_and_weights(self):
        rows, (w13, w2) = self.rows(), self.weights()
        logits = self.rng.standard_normal((5, 3)).astype(np.float32)
        tensors = {"x": rows["x"], "w13": peer.bf16(w13), "w2": peer.bf16(w2), "router_logits": logits}
        with open(self.path("config.json"), "w") as file:
            json.dump(MIXTRAL, file)
        routed = np.argsort(-logits, 1, kind="stable")[:, :2]
        chosen = np.exp(np.take_along_axis(logits, routed, 1).astype(np.float64))
        chosen /= chosen.sum(1, keepdims=True)
        for fields in ({"model": "config.json"},
                       {"model": "replay", "top_k": 2, "routing_rule": {"rule": "softmax", "renormalize": True}}):
            code, err, _, dump = self.run_case({"scheme": "bf16", **fields}, tensors)
            self.assertEqual(code, 0, err)
            self.assertTrue(np.array_equal(dump["topk_ids"], routed))
            np.testing.assert_allclose(dump["topk_weights"], chosen, rtol=1e-6)

    def test_an_expert_map_leaves_other_ranks_experts_out(self):
        rows, (w13, w2) = self.rows(), self.weights(experts=2)
        w13, w2 = peer.bf16(w13), peer.bf16(w2)
        expert_map = np.array([1, -1, 0], np.int32)
        code, err, _, dump = self.run_case({"model": "replay", "scheme": "bf16"},
                                           {**rows, "w13": w13, "w2": w2, "expert_map": expert_map})
        self.assertEqual(code, 0, err)
        args = rows["x"], w13, w2, rows["topk_ids"], rows["topk_weights"]
        self.check(dump, peer.layer(*args, expert_map=expert_map),
                   peer.layer(*args, expert_map=expert_map, quantise=peer.half))

    def test_a_nan_token_leaves_its_neighbours_bit_identical(self):
        rows, (w13, w2) = self.rows(), self.weights()
        tensors = {**rows, "w13": w13.astype(np.float32), "w2": w2.astype(np.float32)}
        fields = {"model": "replay", "scheme": "fp8_block"}
        finite = self.run_case(fields, tensors)[3]["output"].view(np.uint16)
        x = rows["x"].copy()
        x[2, 7] = np.nan
        code, err, record, dump = self.run_case(fields, {**tensors, "x": x})
        self.assertEqual(code, 0, err)
        self.assertEqual(record["status"], "ok")
        self.assertTrue(np.isnan(dump["output"][2].astype(np.float32)).all())
        others = [0, 1, 3, 4]
        self.assertTrue(np.array_equal(dump["output"].view(np.uint16)[others], finite[others]))

    def test_a_dump_replays_to_the_same_bits(self):
        with open(self.path("config.json"), "w") as file:
            json.dump(MIXTRAL, file)
        for scheme, inputs in (("fp8_block", "heavy_tail"), ("w4a16_g32", "gaussian"), ("fp8_tensor_static", "exact")):
            fields = {"scheme": scheme, "tokens": 40}
            code, err, record, first = self.run_case({"model": "config.json", "inputs": inputs, **fields}, options=("--seed", "9"))
            self.assertEqual(code, 0, err)
            name = self.path("dump/" + peer.dump_name(record["id"]))
            os.rename(name, self.path("in.safetensors"))
            self.assertEqual(peer.read(self.path("in.safetensors"))[1]["case"], record["id"])
            for model in ("config.json", "replay"):
                code, err, _, again = self.run_case({"model": model, **fields})
                self.assertEqual(code, 0, err)
                for tensor in first:
                    self.assertEqual(first[tensor].tobytes(), again[tensor].tobytes(), (scheme, model, tensor))

    def deepseek(self, shared=1):
        with open(self.path("config.json"), "w") as file:
            json.dump({"model_type": "deepseek_v3", "n_routed_experts": 6, "num_experts_per_tok": 2, "hidden_size": 160,
                       "moe_intermediate_size": 72, "n_group": 3, "topk_group": 2, "topk_method": "noaux_tc",
                       "norm_topk_prob": True, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
                       "n_shared_experts": shared, "hidden_act": "silu"}, file)

    def test_fused_shared_experts_are_every_tokens_last_slots_at_weight_1(self):
        for shared in (1, 2):
            self.deepseek(shared)
            fields = {"model": "config.json", "scheme": "fp8_block", "tokens": 7, "shared_experts": "fused"}
            code, err, record, dump = self.run_case({**fields, "inputs": "gaussian"}, options=("--seed", "3"))
            self.assertEqual(code, 0, err)
            self.assertTrue(record["id"].startswith("fused_moe:shared_experts=fused/"))
            self.assertEqual(dump["topk_ids"][:, 2:].tolist(), [list(range(6, 6 + shared))] * 7)
            self.assertTrue((dump["topk_ids"][:, :2] < 6).all())
            self.assertTrue((dump["topk_weights"][:, 2:] == 1).all())
            np.testing.assert_allclose(dump["topk_weights"][:, :2].sum(1), 1, rtol=1e-6)
            self.assertEqual(dump["w13"].shape[0], 6 + shared)
            # The routed layer and the shared experts' own answers, added up.
            both = dump["w13"].astype(np.float64), dump["w2"].astype(np.float64)
            exact = peer.layer(dump["x"], *both, dump["topk_ids"][:, :2], dump["topk_weights"][:, :2])
            for expert in range(6, 6 + shared):
                exact += peer.layer(dump["x"], *both, np.full((7, 1), expert), np.ones((7, 1)))
            self.assertLess(peer.relative(dump["unquantized"], exact), 1e-6)
            # The dump is a layer of more experts, and still the same case.
            os.rename(self.path("dump/" + peer.dump_name(record["id"])), self.path("in.safetensors"))
            for replay in (fields, {"model": "replay", "scheme": "fp8_block"}):
                code, err, _, again = self.run_case(replay)
                self.assertEqual(code, 0, err)
                for tensor in dump:
                    self.assertEqual(dump[tensor].tobytes(), again[tensor].tobytes(), tensor)

    def test_router_logits_choose_beside_fused_shared_experts(self):
        self.deepseek()
        logits = self.rng.standard_normal((5, 6)).astype(np.float32)
        fields = {"model": "config.json", "scheme": "bf16", "shared_experts": "fused"}
        code, err, _, dump = self.run_case(fields, {"router_logits": logits})
        self.assertEqual(code, 0, err)
        self.assertEqual(dump["topk_ids"][:, 2].tolist(), [6] * 5)
        self.assertEqual(dump["topk_weights"][:, 2].tolist(), [1] * 5)
        np.testing.assert_allclose(dump["topk_weights"][:, :2].sum(1), 2.5, rtol=1e-6)
        self.refused({"router_logits": np.zeros((5, 7), np.float32)}, "F32 [5, 7]", "[5, 6]", fields=fields)
        self.refused({"topk_ids": np.zeros((5, 2), np.int32)}, "I32 [5, 2]", "I32 [5, 3]", fields=fields)

    def test_experts_elsewhere_and_fused_ones_here(self):
        self.deepseek()
        fields = {"model": "config.json", "scheme": "bf16", "tokens": 9, "ep": 3, "shared_experts": "fused"}
        code, err, _, dump = self.run_case({**fields, "inputs": "gaussian"})
        self.assertEqual(code, 0, err)
        self.assertEqual(dump["expert_map"].tolist(), [0, 1, -1, -1, -1, -1, 2])
        self.assertEqual(dump["w13"].shape[0], 3)
        exact = peer.layer(dump["x"], dump["w13"], dump["w2"], dump["topk_ids"], dump["topk_weights"],
                           expert_map=dump["expert_map"])
        self.assertLess(peer.relative(dump["unquantized"], exact), 1e-6)

    def test_nothing_to_fuse_is_refused(self):
        for model in ("mixtral-8x7b", "replay"):
            with open(self.path("suite.json"), "w") as file:
                json.dump({"schema": "moegauge.suite/1", "name": "s", "cases": [
                    {"model": model, "scheme": "bf16", "tokens": 1, "shared_experts": "fused",
                     "inputs": "file:in.safetensors" if model == "replay" else "gaussian"}]}, file)
            peer.write(self.path("in.safetensors"), self.rows())
            done = subprocess.run([BINARY, "run", self.path("suite.json")], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("shared_experts", done.stderr)

    def refused(self, tensors, *words, fields=None):
        code, err, _, _ = self.run_case({"model": "config.json", "scheme": "fp8_block", "tokens": 5, **(fields or {})}, tensors)
        self.assertEqual(code, 2, err)
        self.assertEqual(err.count("\n"), 1, err)
        for word in ("in.safetensors", *words):
            self.assertIn(word, err)

    def test_what_does_not_fit_is_refused_with_both_forms(self):
        with open(self.path("config.json"), "w") as file:
            json.dump(MIXTRAL, file)
        rows = self.rows()
        codes = np.zeros((3, 144, 160), np.uint8)
        self.refused({"x": rows["x"].astype(np.float32)}, '"x" is F32 [5, 160]', "BF16 [5, 160]")
        self.refused({"x": rows["x"][:4]}, '"x" is BF16 [4, 160]', "BF16 [5, 160]")
        self.refused({"topk_ids": rows["topk_ids"].astype(np.int64)}, '"topk_ids" is I64 [5, 2]', "I32 [5, 2]")
        self.refused({"topk_weights": rows["topk_weights"][:, :1]}, "F32 [5, 1]", "F32 [5, 2]")
        self.refused({"w13": ("F8_E4M3", codes[:, :, :96])}, "F8_E4M3 [3, 144, 96]", "F8_E4M3 or U8 [3, 144, 160]")
        self.refused({"w2": ("I8", codes)}, "I8 [3, 144, 160]", "F8_E4M3 or U8 [3, 160, 72]")
        self.refused({"w13_scale": np.zeros((3, 1, 2), np.float32)}, "F32 [3, 1, 2]", "F32 [3, 2, 2]")
        self.refused({"w13_zero_point": codes}, "w13_zero_point", "fp8_block")
        self.refused({"x_scale": np.ones(1, np.float32)}, "x_scale", "fp8_block")
        self.refused({"w13": np.zeros((3, 144, 160), np.float32), "w13_scale": np.ones((3, 2, 2), np.float32)},
                     "w13_scale", "before quantisation")
        self.refused({"w13_scales": np.ones((3, 2, 2), np.float32)}, "w13_scales", "w13_scale")
        self.refused({"topk_ids": np.full((5, 2), 3, np.int32)}, "holds 3 at [0, 0]", "-1 to 2")
        self.refused({"expert_map": np.array([0, 0, -1], np.int32)}, "expert_map", "once")
        self.refused({"correction_bias": np.zeros(3, np.float32)}, "correction_bias", "router_logits")
        self.refused({"w13": ("F8_E4M3", np.zeros((2, 1 << 22, 0), np.uint8)), "w2": ("F8_E4M3", np.zeros((2, 160, 0), np.uint8)),
                      "topk_ids": rows["topk_ids"]}, "an intermediate size of 2097152", "1 to 1048576", fields={"model": "replay"})
        self.refused({"x": rows["x"]}, "intermediate size", "w13", fields={"model": "replay"})

    def test_what_is_missing_is_generated_as_ever(self):
        with open(self.path("config.json"), "w") as file:
            json.dump(MIXTRAL, file)
        fields = {"model": "config.json", "scheme": "fp8_block", "tokens": 5}
        generated = self.run_case({**fields, "inputs": "gaussian"}, options=("--seed", "4"))[3]
        code, err, _, replayed = self.run_case(fields, {"w2": generated["w2"]}, options=("--seed", "4"))
        self.assertEqual(code, 0, err)
        for tensor in generated:
            self.assertEqual(generated[tensor].tobytes(), replayed[tensor].tobytes(), tensor)


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
