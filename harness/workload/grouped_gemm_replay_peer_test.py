"""grouped_gemm on tensors of our own against numpy, and dumps of every single op replayed. Argument:
moegauge."""

import os
import shutil
import sys
import unittest

try:
    import ml_dtypes
    import numpy as np
    import peer_layer as peer
    from peer_op import OpCase
    from route_replay_peer_test import aligned
except ImportError as missing:
    print(f"skipped: the Python package {missing.name} is not installed (scripts/requirements.txt)")
    sys.exit(77)

FN = ml_dtypes.float8_e4m3fn


def grouped(rows, matrices, experts):
    """Each row times its expert's matrix, fp64."""
    return np.stack([matrices[e] @ row for row, e in zip(rows, experts)]) if len(rows) else np.zeros((0, matrices.shape[1]))


class GroupedGemm(OpCase):
    def right(self, dump, exact, rows=np.s_[:], limit=3e-3):
        """output and emulated where rows are used; the others are not defined."""
        rounded = peer.bf16(exact).astype(np.float64)
        self.assertLess(peer.relative(dump["emulated"][rows], rounded), 1e-4)
        self.assertLess(peer.relative(dump["output"][rows].astype(np.float64), rounded), limit)
        self.assertLess(peer.relative(dump["unquantized"][rows], exact), 1e-6)

    def matrices(self, experts=3, columns=48, contracted=160):
        return self.rng.standard_normal((experts, columns, contracted)) / 12

    def test_rows_of_each_expert_in_turn(self):
        b, counts = peer.bf16(self.matrices()), np.int32([4, 0, 7])
        a = peer.bf16(self.rng.standard_normal((11, 160)))
        exact = grouped(a.astype(np.float64), b.astype(np.float64), [0] * 4 + [2] * 7)
        tensors = {"a": a, "b": b, "rows_per_expert": counts}
        for fields in ({}, {"layout": "contiguous"}, {"layout": "contiguous", "gemm": "down"}):
            dump = self.replayed("grouped_gemm", tensors, fields)
            self.right(dump, exact)
        # Rows beyond those that the counts name are nobody's.
        dump = self.replayed("grouped_gemm", {**tensors, "rows_per_expert": np.int32([4, 0, 3])})
        self.right(dump, exact[:7], np.s_[:7])
        self.assertTrue(np.isnan(dump["emulated"][7:]).all())

    def test_an_odd_number_of_columns(self):
        b, a = peer.bf16(self.matrices(2, 5, 6)), peer.bf16(self.rng.standard_normal((3, 6)))
        dump = self.replayed("grouped_gemm", {"a": a, "b": b, "rows_per_expert": np.int32([1, 2])})
        self.right(dump, grouped(a.astype(np.float64), b.astype(np.float64), [0, 1, 1]))

    def test_batches_with_counts(self):
        b, counts = peer.bf16(self.matrices()), np.int32([2, 0, 5])
        a = peer.bf16(self.rng.standard_normal((3, 5, 160)))
        for fields in ({}, {"layout": "batched"}):
            dump = self.replayed("grouped_gemm", {"a": a, "b": b, "rows_per_expert": counts}, fields)
            self.assertEqual(dump["output"].shape, (3, 5, 48))
            self.assertEqual(dump["emulated"].shape, (3, 5, 48))
            for expert, count in enumerate(counts):
                if count == 0:
                    continue
                rows = a[expert, :count].astype(np.float64)
                self.right(dump, grouped(rows, b.astype(np.float64), [expert] * count), np.s_[expert, :count])

    def sorted_case(self, gemm, tokens=6, experts=3, top_k=2, block=4):
        ids = np.stack([self.rng.permutation(experts)[:top_k] for _ in range(tokens)])
        entries, blocks, count = aligned(ids, experts, block)
        room = min(ids.size + experts * (block - 1), ids.size * block)
        fill = [ids.size] * (room - count)
        tensors = {"sorted_token_ids": np.int32(entries + fill),
                   "expert_ids": np.int32(blocks + [-1] * (-(-room // block) - len(blocks))),
                   "num_tokens_post_padded": np.int32([count])}
        rows = tokens if gemm == "gate_up" else tokens * top_k
        a = peer.bf16(self.rng.standard_normal((rows, 160)))
        source = a.astype(np.float64)
        if gemm == "gate_up":
            source = np.repeat(source, top_k, 0)
        return a, tensors, source, ids.reshape(-1), {"gemm": gemm, "top_k": top_k, "block_size": block}

    def test_sorted_with_indices(self):
        b = peer.bf16(self.matrices())
        for gemm in ("gate_up", "down"):
            a, tensors, source, experts, fields = self.sorted_case(gemm)
            dump = self.replayed("grouped_gemm", {"a": a, "b": b, **tensors}, fields)
            self.right(dump, grouped(source, b.astype(np.float64), experts))

    def block_fp8(self, rows):
        """Codes, scales and values of activations per row and 128 columns."""
        wide = rows.astype(np.float32)
        codes, scales = np.zeros(wide.shape, FN), []
        for begin in range(0, wide.shape[1], 128):
            group = wide[:, begin:begin + 128]
            scale = (np.maximum(np.abs(group).max(1), np.float32(1e-10)) / np.float32(448)).astype(np.float32)
            codes[:, begin:begin + 128] = np.clip(group / scale[:, None], -448, 448).astype(FN)
            scales.append(scale)
        scales = np.stack(scales, 1)
        return codes, scales, codes.astype(np.float64) * np.repeat(scales, 128, 1)[:, :wide.shape[1]]

    def test_block_fp8_operands(self):
        codes, scales, values = self.block_fp8(self.rng.standard_normal((9, 160)))
        blocks = [peer.block_scales(m) for m in self.matrices()]
        b = np.stack([x[2] for x in blocks])
        tensors = {"a": codes, "a_scale": scales, "b": ("F8_E4M3", np.stack([x[0] for x in blocks])),
                   "b_scale": np.stack([x[1] for x in blocks]), "rows_per_expert": np.int32([3, 4, 2])}
        exact = grouped(values, b, [0] * 3 + [1] * 4 + [2] * 2)
        dump = self.replayed("grouped_gemm", tensors, {"scheme": "fp8_block"})
        self.right(dump, exact)
        batched = {**tensors, "a": codes[:, None], "a_scale": scales[:, None],
                   "rows_per_expert": np.int32([1] * 9)}
        batched["b"] = ("F8_E4M3", np.concatenate([batched["b"][1]] * 3))
        batched["b_scale"] = np.concatenate([batched["b_scale"]] * 3)
        dump = self.replayed("grouped_gemm", batched, {"scheme": "fp8_block"})
        self.right(dump, grouped(values, np.concatenate([b] * 3), range(9))[:, None])

    def test_operands_of_other_schemes(self):
        rows, counts = self.rng.standard_normal((7, 160)), np.int32([3, 4])
        experts = [0] * 3 + [1] * 4
        # int4 codes less 8, a scale per row and 32 columns
        codes = self.rng.integers(0, 16, (2, 48, 160))
        scales = peer.bf16(self.rng.random((2, 48, 5)) / 30)
        b = (codes - 8) * np.repeat(scales.astype(np.float64), 32, 2)
        a = peer.bf16(rows)
        dump = self.replayed("grouped_gemm", {"a": a, "b": peer.nibbles(codes), "b_scale": scales,
                                              "rows_per_expert": counts}, {"scheme": "w4a16_g32"})
        self.right(dump, grouped(a.astype(np.float64), b, experts))
        # int8 per channel and token
        codes = self.rng.integers(-127, 128, (2, 48, 160)).astype(np.int8)
        scales = (self.rng.random((2, 48)) / 900).astype(np.float32)
        b = codes * scales[:, :, None].astype(np.float64)
        a_codes = self.rng.integers(-127, 128, (7, 160)).astype(np.int8)
        a_scale = (self.rng.random((7, 1)) / 50).astype(np.float32)
        dump = self.replayed("grouped_gemm", {"a": a_codes, "a_scale": a_scale, "b": codes, "b_scale": scales,
                                              "rows_per_expert": counts}, {"scheme": "w8a8_int8"})
        self.right(dump, grouped(a_codes * a_scale.astype(np.float64), b, experts))
        # E4M3 per expert and tensor
        codes = peer.bf16(self.matrices(2)).astype(np.float32) * 100
        codes = np.clip(codes, -448, 448).astype(FN)
        a_codes = np.clip(rows * 50, -448, 448).astype(FN)
        dump = self.replayed("grouped_gemm", {
            "a": a_codes, "a_scale": np.float32([0.02]), "b": codes, "b_scale": np.float32([0.01, 0.03]),
            "rows_per_expert": counts}, {"scheme": "fp8_tensor"})
        b = codes.astype(np.float64) * np.float32([0.01, 0.03]).astype(np.float64)[:, None, None]
        self.right(dump, grouped(a_codes.astype(np.float64) * float(np.float32(0.02)), b, experts))

    def test_a_nan_row_leaves_its_neighbours_bit_identical(self):
        b = peer.bf16(self.matrices())
        a = peer.bf16(self.rng.standard_normal((11, 160)))
        spoilt = a.copy()
        spoilt[1, 5], spoilt[6] = np.nan, np.inf
        others = [0, 2, 3, 4, 5, 7, 8, 9, 10]
        tensors = {"b": b, "rows_per_expert": np.int32([4, 2, 5])}
        outputs = [self.replayed("grouped_gemm", {**tensors, "a": x})["output"] for x in (a, spoilt)]
        self.same_bits(outputs[1].view(np.uint16)[others], outputs[0].view(np.uint16)[others])
        self.assertTrue(np.isnan(outputs[1][1].astype(np.float32)).all())
        codes, scales, _ = self.block_fp8(self.rng.standard_normal((11, 160)))
        blocks = [peer.block_scales(m) for m in self.matrices()]
        tensors = {"a_scale": scales, "b": ("F8_E4M3", np.stack([x[0] for x in blocks])),
                   "b_scale": np.stack([x[1] for x in blocks]), "rows_per_expert": np.int32([4, 2, 5])}
        spoilt = codes.copy()
        spoilt[1, 5] = np.nan
        outputs = [self.replayed("grouped_gemm", {**tensors, "a": x}, {"scheme": "fp8_block"})["output"]
                   for x in (codes, spoilt)]
        self.assertTrue(np.isnan(outputs[1][1].astype(np.float32)).all())
        others = [0, *range(2, 11)]
        self.same_bits(outputs[1].view(np.uint16)[others], outputs[0].view(np.uint16)[others])

    def test_missing_rows_and_weights_are_generated(self):
        counts = np.int32([3, 0, 2])
        fields = {"layout": "contiguous", "scheme": "fp8_block", "model": "config.json", "tokens": 5}
        with open(self.path("config.json"), "w") as file:
            file.write('{"model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 1, "hidden_size": 160,'
                       '"intermediate_size": 24, "hidden_act": "silu"}')
        dump = self.replayed("grouped_gemm", {"rows_per_expert": counts}, fields)
        self.assertTrue((np.abs(dump["a"][:5].astype(np.float32)).max(1) > 0).all())
        again = self.replayed("grouped_gemm", {k: dump[k] for k in ("a", "a_scale", "rows_per_expert")}, fields)
        self.same_bits(dump["output"], again["output"])

    def test_what_does_not_fit_is_refused(self):
        a, b = peer.bf16(np.ones((5, 16))), peer.bf16(np.ones((2, 8, 16)))
        counts = np.int32([2, 3])
        fits = {"a": a, "b": b, "rows_per_expert": counts}
        self.refused("grouped_gemm", {**fits, "b": b[:, :, :12]}, '"b" is BF16 [2, 8, 12]', "BF16 [2, 8, 16]")
        self.refused("grouped_gemm", {**fits, "a": a.astype(np.float32)}, '"a" is F32 [5, 16]', "BF16 [5, 16]")
        self.refused("grouped_gemm", {**fits, "rows_per_expert": counts + 9}, "rows_per_expert", "11 rows")
        self.refused("grouped_gemm", {**fits, "rows_per_expert": counts.astype(np.int64)}, "I64 [2]", "I32 [2]")
        self.refused("grouped_gemm", {**fits, "rows_per_expert": np.int32([1, 1, 1])}, "[2, 8, 16]", "[3, 8, 16]")
        self.refused("grouped_gemm", {**fits, "a_scale": np.ones((5, 1), np.float32)}, "a_scale")
        self.refused("grouped_gemm", {**fits, "b_scale": np.ones((2, 1, 1), np.float32), "a": ("F8_E4M3", np.ones((5, 16), np.uint8)),
                                      "b": ("F8_E4M3", np.ones((2, 8, 16), np.uint8)), "a_scale": np.ones((5, 2), np.float32)},
                     "F32 [5, 2]", "F32 [5, 1]", fields={"scheme": "fp8_block"})
        self.refused("grouped_gemm", {"b": b, "rows_per_expert": counts}, "tokens")


CONFIG = ('{"model_type": "deepseek_v3", "n_routed_experts": 8, "num_experts_per_tok": 3, "hidden_size": 160,'
          '"moe_intermediate_size": 72, "n_group": 4, "topk_group": 2, "topk_method": "noaux_tc", "norm_topk_prob": true,'
          '"routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "n_shared_experts": 1, "hidden_act": "silu"}')


class Dumps(OpCase):
    def cases(self):
        return [{"op": "quantize", "scheme": s} for s in ("fp8_ptpc_fnuz", "mxfp8", "fp8_tensor_static")] + [
            {"op": "route", "shared_experts": "appended"}, {"op": "align"},
            {"op": "align", "ep": 2, "remote_experts": "skipped", "block_size": 4},
            {"op": "activation"}, {"op": "reduce"}, {"op": "reduce", "pair_out": "fp32"},
            {"op": "grouped_gemm", "ep": 4},
            {"op": "grouped_gemm", "scheme": "fp8_block"},
            {"op": "grouped_gemm", "gemm": "down"},
            {"op": "grouped_gemm", "scheme": "fp8_block", "layout": "contiguous", "gemm": "down"},
            {"op": "grouped_gemm", "scheme": "fp8_block", "layout": "batched"},
            {"op": "grouped_gemm", "scheme": "fp8_tensor", "layout": "batched", "gemm": "down"},
        ] + [{"op": "grouped_gemm", "scheme": s, "layout": "contiguous"}
             for s in ("w4a16_g32_zp_actorder", "w8a16_g64", "mxfp4")]

    def test_a_dump_replays_to_the_same_bits(self):
        with open(self.path("config.json"), "w") as file:
            file.write(CONFIG)
        cases = [{**case, "model": "config.json", "tokens": 9, "inputs": "heavy_tail"} for case in self.cases()]
        code, err, records, folder = self.run_cases(cases, ("--seed", "9"))
        self.assertEqual(code, 0, f"{err} {[r.get('reason') for r in records if r['status'] != 'ok']}")
        shutil.move(folder, self.path("first"))
        for model in ("config.json", "replay"):
            replays = []
            for i, case in enumerate(cases):
                replay = {k: v for k, v in case.items() if model != "replay" or k not in ("ep", "tokens")}
                replays.append({**replay, "model": model, "inputs": "file:first/" + peer.dump_name(records[i]["id"])})
            code, err, again, folder = self.run_cases(replays)
            self.assertEqual(code, 0, f"{model}: {err} {again and [r.get('reason') for r in again if r['status'] != 'ok']}")
            for i, case in enumerate(cases):
                (first, metadata), (second, _) = (peer.read(os.path.join(f, peer.dump_name(of[i]["id"])))
                                                  for f, of in ((self.path("first"), records), (folder, again)))
                self.assertEqual(metadata["case"], records[i]["id"])
                self.assertEqual(metadata["inputs"], "heavy_tail")
                self.assertEqual(first.keys(), second.keys(), case)
                for name in first:
                    # What weights and rows were before quantisation, no file of codes says.
                    if name == "unquantized" and case["op"] == "grouped_gemm":
                        continue
                    self.assertEqual(first[name].tobytes(), second[name].tobytes(), (model, case, name))

    def test_what_a_dump_leaves_out_is_generated_again(self):
        with open(self.path("config.json"), "w") as file:
            file.write(CONFIG)
        case = {"op": "grouped_gemm", "scheme": "fp8_block", "model": "config.json", "tokens": 9, "layout": "contiguous"}
        code, err, records, folder = self.run_cases([{**case, "inputs": "gaussian"}], ("--seed", "5"))
        self.assertEqual(code, 0, err)
        first, metadata = peer.read(os.path.join(folder, peer.dump_name(records[0]["id"])))
        kept = {name: array for name, array in first.items() if name not in ("b", "b_scale", "emulated", "unquantized", "output")}
        again = self.replayed("grouped_gemm", kept, {k: v for k, v in case.items() if k != "op"}, metadata)
        for name in ("b", "b_scale", "output", "emulated"):
            self.assertEqual(first[name].tobytes(), again[name].tobytes(), name)


if __name__ == "__main__":
    OpCase.binary = os.path.abspath(sys.argv.pop(1))
    unittest.main()
