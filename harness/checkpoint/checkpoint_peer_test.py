"""Checkpoints in every naming scheme and packing, written by numpy, against the same layers computed in
numpy; and some that the package compressed-tensors wrote, against what it says that they stand for
(compressed_tensors_files.py). Arguments: a moegauge whose backend `honest` answers with the oracle's own bits;
the folder of those files [fixtures/compressed-tensors]."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workload"))
try:
    import ml_dtypes
    import numpy as np
    import peer_layer as peer
except ImportError as missing:
    print(f"skipped: the Python package {missing.name} is not installed (scripts/requirements.txt)")
    sys.exit(77)

E, K, N, TOP, L = 4, 256, 64, 2, 3
MIXTRAL = {"model_type": "mixtral", "num_local_experts": E, "num_experts_per_tok": TOP, "hidden_size": K,
           "intermediate_size": N, "hidden_act": "silu", "torch_dtype": "bfloat16"}
QWEN = {"model_type": "qwen3_moe", "num_experts": E, "num_experts_per_tok": TOP, "hidden_size": K,
        "moe_intermediate_size": N, "norm_topk_prob": True, "hidden_act": "silu", "torch_dtype": "bfloat16"}
DEEPSEEK = {"model_type": "deepseek_v3", "n_routed_experts": E, "num_experts_per_tok": TOP, "hidden_size": K,
            "moe_intermediate_size": N, "n_group": 2, "topk_group": 1, "norm_topk_prob": True,
            "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "n_shared_experts": 1, "hidden_act": "silu",
            "torch_dtype": "bfloat16"}
LLAMA = {"model_type": "llama4", "text_config": {
    "num_local_experts": E, "num_experts_per_tok": 1, "hidden_size": K, "intermediate_size": N,
    "hidden_act": "silu"}, "torch_dtype": "bfloat16"}
GPT_OSS = {"model_type": "gpt_oss", "num_local_experts": E, "num_experts_per_tok": TOP, "hidden_size": K,
           "intermediate_size": N, "swiglu_limit": 7.0, "torch_dtype": "bfloat16"}
PROJECTIONS = (("gate_proj", N, K), ("up_proj", N, K), ("down_proj", K, N))
FUSED = {"model": "deepseek-v3", "shared_experts": "fused"}  # --weights takes its place, and what it fuses
W = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
QWEN_NAME = "model.layers.{}.mlp.experts.{}.{}."


def words(codes, bits, axis):
    """32-bit words along `axis`, the lowest bits first."""
    codes = np.moveaxis(np.asarray(codes, np.uint32), axis, -1)
    per = 32 // bits
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % per)])
    codes = codes.reshape(codes.shape[:-1] + (-1, per))
    packed = np.bitwise_or.reduce(codes << (np.arange(per, dtype=np.uint32) * bits), -1)
    return np.moveaxis(packed, -1, axis).view(np.int32)


def awq_words(codes):
    """8 codes of the last axis to a word, in AWQ's order."""
    codes = np.asarray(codes, np.uint32).reshape(codes.shape[:-1] + (-1, 8))
    ordered = codes[..., [0, 2, 4, 6, 1, 3, 5, 7]]
    return np.bitwise_or.reduce(ordered << (np.arange(8, dtype=np.uint32) * 4), -1).view(np.int32)


class Checkpoint(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = self.temporary.name
        self.rng = np.random.default_rng(11)

    def tearDown(self):
        self.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, config, tensors, quantization=None, shards=2):
        """A folder ckpt with config.json and so many shards."""
        os.makedirs(self.path("ckpt"), exist_ok=True)
        for old in os.listdir(self.path("ckpt")):
            os.remove(self.path("ckpt/" + old))
        with open(self.path("ckpt/config.json"), "w") as file:
            json.dump({**config, **({"quantization_config": quantization} if quantization else {})}, file)
        names, where = sorted(tensors), {}
        for shard in range(shards):
            name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            peer.write(self.path("ckpt/" + name), {n: tensors[n] for n in names[shard::shards]})
            where.update({n: name for n in names[shard::shards]})
        with open(self.path("ckpt/model.safetensors.index.json"), "w") as file:
            json.dump({"metadata": {}, "weight_map": where}, file)

    def run_layer(self, scheme="bf16", layer=L, weights=None, **fields):
        case = {"model": "mixtral-8x7b", "scheme": scheme, "tokens": 6, "backend": "honest", "cache": "hot", **fields}
        with open(self.path("suite.json"), "w") as file:
            json.dump({"schema": "moegauge.suite/1", "name": "s", "cases": [case]}, file)
        return subprocess.run(
            [BINARY, "run", self.path("suite.json"), "--out", self.path("r.json"), "--quiet", "--dump",
             self.path("dump"), "--weights", weights or self.path("ckpt"), "--layer", str(layer)],
            capture_output=True, text=True, check=False)

    def measure(self, **fields):
        done = self.run_layer(**fields)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("r.json")) as file:
            record = json.load(file)["cases"][0]
        self.assertEqual(record["layer"], fields.get("layer", L))
        return record, peer.read(self.path("dump/" + peer.dump_name(record["id"])))[0]

    def hold(self, dump, w13, w2, emulated=None, quantise=peer.half, **layer):
        """The dump against numpy: truth of `w13` and `w2`, and of `emulated` as a kernel has them."""
        args = dump["topk_ids"], dump["topk_weights"]
        self.assertLess(peer.relative(dump["unquantized"], peer.layer(dump["x"], w13, w2, *args, **layer)), 1e-6)
        seen = peer.layer(dump["x"], *(emulated or (w13, w2)), *args, quantise=quantise, **layer)
        self.assertLess(peer.relative(dump["emulated"], peer.bf16(seen).astype(np.float64)), 1e-3)

    def normal(self, rows, cols):
        return (self.rng.standard_normal((rows, cols)) / np.sqrt(cols)).astype(np.float32)

    def per_expert(self, make, name=QWEN_NAME):
        """Tensors of make(projection, rows, cols) -> (suffix -> tensor, what they stand for), and w13, w2."""
        tensors, w13, w2 = {}, [], []
        for expert in range(E):
            stands = {}
            for projection, rows, cols in PROJECTIONS:
                made, stands[projection] = make(projection, rows, cols)
                word = W[projection] if "block_sparse" in name else projection
                tensors.update({name.format(L, expert, word) + suffix: t for suffix, t in made.items()})
            w13.append(np.concatenate([stands["gate_proj"], stands["up_proj"]]))
            w2.append(stands["down_proj"])
        return tensors, np.stack(w13), np.stack(w2)

    def bf16(self, _, rows, cols):
        weight = peer.bf16(self.normal(rows, cols))
        return {"weight": weight}, weight.astype(np.float64)

    def test_bf16_under_the_names_of_mixtral_qwen_and_deepseek(self):
        for config, name in ((MIXTRAL, "model.layers.{}.block_sparse_moe.experts.{}.{}."), (QWEN, QWEN_NAME), (DEEPSEEK, QWEN_NAME)):
            tensors, w13, w2 = self.per_expert(self.bf16, name)
            self.save(config, tensors)
            record, dump = self.measure()
            self.hold(dump, w13, w2)
            self.assertEqual(record["error"]["quantization_of"], "weights and activations before quantisation")

    def test_bf16_weights_may_be_quantised_by_any_scheme(self):
        tensors, w13, w2 = self.per_expert(self.bf16)
        self.save(QWEN, tensors)
        record, dump = self.measure(scheme="fp8_block")
        quantised = [np.stack([peer.block_scales(e)[2] for e in w]) for w in (w13, w2)]
        self.hold(dump, w13, w2, quantised, peer.fp8_groups(128))
        self.assertGreater(record["error"]["quantization"]["relative_l2"], 0.02)

    def test_llama4_has_fused_transposed_experts_and_weighs_the_input(self):
        w13, w2 = (peer.bf16(np.stack([self.normal(*s) for _ in range(E)])) for s in ((2 * N, K), (K, N)))
        at = f"language_model.model.layers.{L}.feed_forward.experts."
        self.save(LLAMA, {at + "gate_up_proj": w13.transpose(0, 2, 1), at + "down_proj": w2.transpose(0, 2, 1)})
        self.hold(self.measure()[1], w13, w2, on_input=True)

    def blocks(self, _, rows, cols):
        codes, scales, exact = peer.block_scales(self.normal(rows, cols) * self.rng.choice([.5, 1, 3]))
        return {"weight": ("F8_E4M3", codes), "weight_scale_inv": scales}, exact

    BLOCK = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}

    def merged(self, exact):
        """w13 of fp8_block where one block holds gate and up rows (N = 64): requantised to the larger scale."""
        out = []
        for both in exact:
            rows = np.zeros_like(both)
            for j in range(0, K, 128):
                scales = [np.abs(half[:, j:j + 128]).max() / 448 for half in (both[:N], both[N:])]
                largest = np.float32(max(scales))
                block = both[:, j:j + 128].astype(np.float32) / largest
                codes = np.clip(block, -448, 448).astype(ml_dtypes.float8_e4m3fn)
                rows[:, j:j + 128] = codes.astype(np.float64) * largest
            out.append(rows)
        return np.stack(out)

    def test_block_fp8_of_deepseek_keeps_the_checkpoints_truth_where_a_block_straddles(self):
        tensors, w13, w2 = self.per_expert(self.blocks)
        self.save(DEEPSEEK, tensors, self.BLOCK)
        record, dump = self.measure()
        self.assertEqual(record["scheme"], "fp8_block")
        self.assertIn("requantised", record["error"]["quantization_of"])
        self.hold(dump, w13, w2, (self.merged(w13), w2), peer.fp8_groups(128))

    def test_block_fp8_is_kept_bit_by_bit_where_no_block_straddles(self):
        global N, PROJECTIONS
        kept, N = (N, PROJECTIONS), 128
        PROJECTIONS = (("gate_proj", N, K), ("up_proj", N, K), ("down_proj", K, N))
        try:
            tensors, w13, w2 = self.per_expert(self.blocks)
            self.save({**QWEN, "moe_intermediate_size": N}, tensors, self.BLOCK)
            record, dump = self.measure()
            self.hold(dump, w13, w2, quantise=peer.fp8_groups(128))
            self.assertEqual(record["error"]["quantization_of"],
                             "dequantised checkpoint weights, activations before quantisation")
            codes = np.concatenate([tensors[QWEN_NAME.format(L, 0, p) + "weight"][1] for p in ("gate_proj", "up_proj")])
            self.assertEqual(dump["w13"][0].tobytes(), codes.tobytes())
        finally:
            N, PROJECTIONS = kept

    def test_tensor_and_expert_parallel_ranks_have_the_first_part(self):
        tensors, w13, w2 = self.per_expert(self.bf16)
        self.save(QWEN, tensors)
        half = N // 2
        w13 = np.concatenate([w13[:, :half], w13[:, N:N + half]], 1)
        self.hold(self.measure(tp=2)[1], w13, w2[:, :, :half])
        self.hold(self.measure(tp=2, ep=2)[1], w13[:2], w2[:2, :, :half], expert_map=[0, 1, -1, -1])

    def compressed(self, weights, activations=None):
        return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
            "weights": weights, "input_activations": activations}}}

    def test_fp8_per_channel_and_per_tensor(self):
        def channel(_, rows, cols):
            codes, scales, exact = peer.block_scales(self.normal(rows, cols), 1, cols)
            half = peer.bf16(scales)
            exact = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64) * half.astype(np.float64)
            return {"weight": ("F8_E4M3", codes), "weight_scale": half}, exact
        tensors, w13, w2 = self.per_expert(channel)
        self.save(QWEN, tensors, self.compressed({"type": "float", "num_bits": 8, "strategy": "channel"},
                                                 {"type": "float", "num_bits": 8, "strategy": "token", "dynamic": True}))
        record, dump = self.measure()
        self.assertEqual(record["scheme"], "fp8_ptpc")
        self.hold(dump, w13, w2, quantise=peer.fp8_groups(1 << 20))

        def tensor(projection, rows, cols):
            factor = 4 if projection == "up_proj" else 1
            codes, scales, exact = peer.block_scales(self.normal(rows, cols) * factor, rows, cols)
            return {"weight": ("F8_E4M3", codes), "weight_scale": scales.reshape(1), "input_scale": np.float32([.02])}, exact
        tensors, w13, w2 = self.per_expert(tensor)
        self.save(QWEN, tensors, self.compressed({"type": "float", "num_bits": 8, "strategy": "tensor"},
                                                 {"type": "float", "num_bits": 8, "strategy": "tensor", "dynamic": False}))
        record, dump = self.measure()
        self.assertEqual(record["scheme"], "fp8_tensor_static")
        self.assertEqual(dump["x_scale"], np.float32([.02]))
        larger = [np.abs(e).max() / 448 for e in w13]
        np.testing.assert_allclose(dump["w13_scale"].reshape(E), larger, rtol=1e-6)
        self.assertLess(peer.relative(dump["unquantized"], peer.layer(
            dump["x"], w13, w2, dump["topk_ids"], dump["topk_weights"])), 1e-6)

    def grouped(self, group, order=False, bits=4):
        def make(rows, cols):
            groups = -(-cols // group)
            index = np.arange(cols) // group
            if order:
                index = np.random.default_rng(cols).permutation(index)
            codes = self.rng.integers(0, 1 << bits, (rows, cols))
            zeros = self.rng.integers(0, 1 << bits, (rows, groups))
            scales = (self.rng.random((rows, groups)) / 60 + .004).astype(np.float16)
            return codes, zeros, scales, index.astype(np.int32)
        return make

    def stands(self, codes, zeros, scales, index):
        """In bf16 layers kernels have the scales rounded to bf16; the truth has them as they are."""
        return (codes - zeros[:, index]) * scales.astype(np.float64)[:, index]

    def check_integers(self, scheme, record, dump, w13, w2, **layer):
        self.assertEqual(record["scheme"], scheme)
        args = dump["topk_ids"], dump["topk_weights"]
        self.assertLess(peer.relative(dump["unquantized"], peer.layer(dump["x"], w13, w2, *args, **layer)), 1e-6)
        self.assertLess(record["error"]["quantization"]["relative_l2"], 1e-2)

    def test_compressed_int4_symmetric_and_with_zero_points(self):
        for symmetric in (True, False):
            def packed(_, rows, cols, symmetric=symmetric):
                codes, zeros, scales, index = self.grouped(32)(rows, cols)
                if symmetric:
                    zeros[:] = 8
                made = {"weight_packed": words(codes, 4, 1), "weight_scale": peer.bf16(scales),
                        "weight_shape": np.array([rows, cols], np.int64)}
                if not symmetric:
                    made["weight_zero_point"] = words(zeros, 4, 0)
                return made, self.stands(codes, zeros, peer.bf16(scales), index)
            tensors, w13, w2 = self.per_expert(packed)
            self.save(QWEN, tensors, self.compressed({"type": "int", "num_bits": 4, "strategy": "group", "group_size": 32,
                                                      "symmetric": symmetric}))
            record, dump = self.measure()
            self.check_integers("w4a16_g32" + ("" if symmetric else "_zp"), record, dump, w13, w2)
            self.assertLess(record["error"]["quantization"]["relative_l2"], 3e-3)

    def test_files_that_compressed_tensors_wrote_stand_for_what_it_says(self):
        schemes = {"int4-group32": "w4a16_g32", "int4-group32-zero-points": "w4a16_g32_zp",
                   "int8-channel-weights": "w8a16_channel", "int8-channel-token": "w8a8_int8",
                   "fp8-channel-token": "fp8_ptpc", "fp8-tensor-static": "fp8_tensor_static"}
        folders = sorted(name for name in os.listdir(FIXTURES) if os.path.isdir(os.path.join(FIXTURES, name)))
        self.assertEqual(folders, sorted(schemes))
        for name, scheme in schemes.items():
            dense = peer.read(os.path.join(FIXTURES, name + ".dense.safetensors"))[0]
            parts = [[dense[f"model.layers.0.mlp.experts.{e}.{p}.weight"] for e in range(2)]
                     for p in ("gate_proj", "up_proj", "down_proj")]
            w13, w2 = np.concatenate([np.stack(parts[0]), np.stack(parts[1])], 1), np.stack(parts[2])
            record, dump = self.measure(weights=os.path.join(FIXTURES, name), layer=0)
            self.assertEqual(record["scheme"], scheme)
            truth = peer.layer(dump["x"], w13, w2, dump["topk_ids"], dump["topk_weights"])
            self.assertLess(peer.relative(dump["unquantized"], truth), 1e-6, name)

    def test_gptq_with_its_zero_points_less_one_and_act_order(self):
        for bits, order, version in ((4, False, "gptq"), (4, True, "gptq"), (8, True, "gptq_v2")):
            def packed(_, rows, cols, bits=bits, order=order, version=version):
                codes, zeros, scales, index = self.grouped(32, order, bits)(rows, cols)
                stored = zeros if version == "gptq_v2" else (zeros - 1) % (1 << bits)
                return {"qweight": words(codes.T, bits, 0), "qzeros": words(stored.T, bits, 1),
                        "scales": scales.T.copy(), "g_idx": index}, self.stands(codes, zeros, scales, index)
            tensors, w13, w2 = self.per_expert(packed)
            self.save({**QWEN, "torch_dtype": "float16"}, tensors,
                      {"quant_method": "gptq", "bits": bits, "group_size": 32, "sym": False, "desc_act": order,
                       "checkpoint_format": version})
            record, dump = self.measure()
            scheme = f"w{bits}a16_g32_zp" + ("_actorder" if order else "")
            self.check_integers(scheme, record, dump, w13, w2)
            # A rank's columns of w2 keep the groups of the whole, of which there are 2 of 32.
            half = N // 2
            record, dump = self.measure(tp=2)
            rank = np.concatenate([w13[:, :half], w13[:, N:N + half]], 1), w2[:, :, :half]
            self.check_integers(scheme, record, dump, *rank)
            self.assertEqual(dump["w2_scale"].shape, (E, K, 2 if order else 1))
            if order:
                self.assertEqual(set(dump["w2_g_idx"].flat), {0, 1})

    def test_awq_in_its_order(self):
        def packed(_, rows, cols):
            codes, zeros, scales, index = self.grouped(64)(rows, cols)
            return {"qweight": awq_words(codes.T), "qzeros": awq_words(zeros.T), "scales": scales.T.copy()}, \
                self.stands(codes, zeros, scales, index)
        tensors, w13, w2 = self.per_expert(packed)
        self.save({**QWEN, "torch_dtype": "float16"}, tensors,
                  {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"})
        record, dump = self.measure()
        self.check_integers("w4a16_g64_zp", record, dump, w13, w2)
        np.testing.assert_array_equal(dump["w13_scale"][0, :N], tensors[QWEN_NAME.format(L, 0, "gate_proj") + "scales"].T)

    def test_gpt_oss_mxfp4_interleaved_with_biases(self):
        tensors, exact = {}, []
        at = f"model.layers.{L}.mlp.experts."
        for name, rows, cols in (("gate_up_proj", 2 * N, K), ("down_proj", K, N)):
            codes = self.rng.integers(0, 16, (E, rows, cols))
            scales = self.rng.integers(118, 123, (E, rows, cols // 32)).astype(np.uint8)
            tensors[at + name + "_blocks"] = peer.nibbles(codes).reshape(E, rows, cols // 32, 16)
            tensors[at + name + "_scales"] = scales
            tensors[at + name + "_bias"] = peer.bf16(self.rng.standard_normal((E, rows)))
            exact.append(peer.E2M1[codes] * np.exp2(np.repeat(scales - 127.0, 32, 2)))
        self.save(GPT_OSS, tensors, {"quant_method": "mxfp4"})
        biases = [tensors[at + n + "_bias"].astype(np.float64) for n in ("gate_up_proj", "down_proj")]
        layer = {"act": peer.swiglu_clamped(1.702, 1, 7), "interleaved": True}
        self.hold(self.measure()[1], *exact, b13=biases[0], b2=biases[1], **layer)
        n = N // 2
        self.hold(self.measure(tp=2)[1], exact[0][:, :2 * n], exact[1][:, :, :n], b13=biases[0][:, :2 * n], b2=biases[1], **layer)

    SHARED = "model.layers.{}.mlp.shared_experts.{}."

    def with_shared(self, make, name=SHARED):
        """per_expert, and the shared expert behind: what they stand for in a layer that fuses it."""
        tensors, w13, w2 = self.per_expert(make)
        made = {p: make(p, rows, cols) for p, rows, cols in PROJECTIONS}
        tensors.update({name.format(L, p) + suffix: t for p in made for suffix, t in made[p][0].items()})
        shared = np.concatenate([made["gate_proj"][1], made["up_proj"][1]])
        return tensors, np.concatenate([w13, shared[None]]), np.concatenate([w2, made["down_proj"][1][None]])

    def test_a_fused_shared_expert_is_the_checkpoints(self):
        tensors, w13, w2 = self.with_shared(self.bf16)
        self.save(DEEPSEEK, tensors)
        record, dump = self.measure(**FUSED)
        self.assertEqual(dump["topk_ids"].shape, (6, TOP + 1))
        self.assertTrue((dump["topk_ids"][:, TOP] == E).all() and (dump["topk_weights"][:, TOP] == 1).all())
        self.hold(dump, w13, w2)
        self.assertEqual(record["error"]["quantization_of"], "weights and activations before quantisation")
        # Of a rank: its part of every expert that it has, and of the shared one.
        half = N // 2
        rank = np.concatenate([w13[:, :half], w13[:, N:N + half]], 1)[[0, 1, E]], w2[[0, 1, E], :, :half]
        self.hold(self.measure(tp=2, ep=2, **FUSED)[1], *rank, expert_map=[0, 1, -1, -1, 2])

    def test_a_fused_shared_expert_has_the_scales_of_its_blocks(self):
        tensors, w13, w2 = self.with_shared(self.blocks)
        self.save(DEEPSEEK, tensors, self.BLOCK)
        record, dump = self.measure(**FUSED)
        self.assertEqual(record["scheme"], "fp8_block")
        self.hold(dump, w13, w2, (self.merged(w13), w2), peer.fp8_groups(128))

    def test_shared_experts_that_cannot_be_fused_are_refused_by_name(self):
        routed, _, _ = self.per_expert(self.bf16)
        self.save(DEEPSEEK, routed)
        self.refused("no shared expert under a known name", "shared_experts.gate_proj.weight", **FUSED)
        tensors, _, _ = self.with_shared(self.bf16)
        self.save({**DEEPSEEK, "n_shared_experts": 2}, tensors)
        self.refused("2 shared experts are one matrix", **FUSED)
        up = self.SHARED.format(L, "up_proj") + "weight"
        self.save(DEEPSEEK, {**tensors, up: np.concatenate([tensors[up]] * 2)})
        self.refused(up, "BF16 [128, 256]", "[64, 256]", **FUSED)
        self.save(DEEPSEEK, {**tensors, **{n: t.astype(np.float32) for n, t in tensors.items() if "shared" in n}})
        self.refused("another element type", **FUSED)
        gated, _, _ = self.with_shared(self.bf16, "model.layers.{}.mlp.shared_expert.{}.")
        gate = f"model.layers.{L}.mlp.shared_expert_gate.weight"
        self.save(DEEPSEEK, {**gated, gate: peer.bf16(self.normal(1, K))})
        self.refused(gate, "weighs the shared expert", **FUSED)

    def refused(self, *words_, layer=L, **fields):
        done = self.run_layer(layer=layer, **fields)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words_:
            self.assertIn(word, done.stderr)

    def test_what_does_not_fit_is_refused_by_name(self):
        tensors, _, _ = self.per_expert(self.bf16)
        gate = QWEN_NAME.format(L, 1, "gate_proj") + "weight"
        self.save(QWEN, tensors, self.BLOCK)
        self.refused("config.json", "fp8_block", "BF16 [64, 256]", "must agree")
        self.save(QWEN, {n: t for n, t in tensors.items() if n != gate})
        self.refused("there is no tensor", gate)
        self.save(QWEN, {**tensors, gate: tensors[gate][:, :128]})
        self.refused(gate, "BF16 [64, 128]", "[64, 256]")
        self.save(QWEN, {**tensors, gate: np.zeros((N, K), np.int32)})
        self.refused(gate, "I32 [64, 256]", "F32 [64, 256]")
        self.save(QWEN, tensors)
        self.refused("layer 7 has no experts", layer=7)
        os.remove(self.path("ckpt/model-00002-of-00002.safetensors"))
        self.refused("model-00002-of-00002.safetensors", "missing")
        self.save(QWEN, tensors)
        peer.write(self.path("ckpt/model-00001-of-00002.safetensors"), tensors)
        self.refused("model-0000", "and so does")
        blocks, _, _ = self.per_expert(self.blocks)
        self.save(QWEN, blocks)
        self.refused("not quantised", "F8_E4M3 [64, 256]")
        scale = QWEN_NAME.format(L, 2, "up_proj") + "weight_scale_inv"
        self.save(QWEN, {**blocks, scale: np.ones((N, 1), np.float32)}, self.BLOCK)
        self.refused(scale, "F32 [64, 1]", "F32 [1, 2]", "fp8_block")

    def test_scales_that_cannot_be_are_refused_by_name(self):
        def tensor(_, rows, cols):
            codes, scales, exact = peer.block_scales(self.normal(rows, cols), rows, cols)
            return {"weight": ("F8_E4M3", codes), "weight_scale": scales.reshape(1), "input_scale": np.float32([.02])}, exact
        tensors, _, _ = self.per_expert(tensor)
        static = {"quant_method": "fp8", "activation_scheme": "static"}
        self.save(QWEN, tensors, static)
        self.assertEqual(self.run_layer().returncode, 0)
        for part, values, needed in (("weight_scale", (-1, np.nan, np.inf), "finite scales that are not negative"),
                                     ("input_scale", (0, -1, np.nan, np.inf), "a positive number")):
            name = QWEN_NAME.format(L, 2, "up_proj") + part
            for value in values:
                self.save(QWEN, {**tensors, name: np.float32([value])}, static)
                self.refused(name, needed)

    def test_nan_weights_are_no_measurement(self):
        tensors, _, _ = self.per_expert(self.bf16)
        for name in tensors:
            if "up_proj" in name:
                tensors[name] = tensors[name].copy()
                tensors[name][5, 7] = np.nan
        self.save(QWEN, tensors)
        done = self.run_layer()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("weights, their scales or their biases hold what is not finite", " ".join(done.stdout.split()))

    def test_an_index_that_leads_nowhere_is_refused(self):
        tensors, _, _ = self.per_expert(self.bf16)
        self.save(QWEN, tensors)
        index = self.path("ckpt/model.safetensors.index.json")
        os.remove(index)
        os.symlink("model.safetensors.index.json", index)
        self.refused("model.safetensors.index.json", "symbolic links")
        self.refused("--layer", layer=-1)

    def test_a_group_index_must_agree_with_what_config_says(self):
        def packed(_, rows, cols):
            codes, zeros, scales, index = self.grouped(32, True)(rows, cols)
            return {"qweight": words(codes.T, 4, 0), "qzeros": words((zeros * 0 + 7).T, 4, 1), "scales": scales.T.copy(),
                    "g_idx": index}, self.stands(codes, zeros, scales, index)
        tensors, _, _ = self.per_expert(packed)
        quantization = {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True, "desc_act": False}
        self.save(QWEN, tensors, quantization)
        self.refused("g_idx", "in the order of their columns")
        bad = QWEN_NAME.format(L, 0, "up_proj") + "g_idx"
        self.save(QWEN, {**tensors, bad: np.full(K, 99, np.int32)}, {**quantization, "desc_act": True})
        self.refused(bad, "holds 99", "0 to 7")
        zeros = QWEN_NAME.format(L, 3, "gate_proj") + "qzeros"
        self.save(QWEN, {**tensors, zeros: tensors[zeros] + 1}, {**quantization, "desc_act": True})
        self.refused(zeros, "zero point 9", "8 only")


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    HERE = os.path.dirname(os.path.abspath(__file__))
    FIXTURES = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else os.path.join(HERE, "fixtures", "compressed-tensors")
    unittest.main()
