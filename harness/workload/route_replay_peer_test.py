"""route, align and reduce on tensors of our own, against a few lines of Python. Argument: moegauge."""

import os
import sys
import unittest

try:
    import ml_dtypes
    import numpy as np
    import peer_layer as peer
    from peer_op import OpCase
except ImportError as missing:
    print(f"skipped: the Python package {missing.name} is not installed (scripts/requirements.txt)")
    sys.exit(77)

NAN, INF = np.nan, np.inf


def first_largest(scores, count):
    """Ids of the largest scores, the lower id of equal ones; NaN counts as -infinity."""
    keyed = [(-(-INF if np.isnan(s) else s), i) for i, s in enumerate(scores)]
    return [i for _, i in sorted(keyed)[:count]]


def softmax_route(logits, top_k, renormalize):
    logits = np.where(np.isnan(logits), -INF, logits.astype(np.float64))
    ids = first_largest(logits, top_k)
    largest = logits.max()
    if largest == -INF:
        return ids, [0.0] * top_k
    terms = (logits == INF).astype(float) if largest == INF else np.exp(logits - largest)
    weights = terms[ids]
    return ids, weights / (weights.sum() if renormalize else terms.sum())


def deepseek_route(logits, bias, top_k, groups, top_groups, renormalize, factor):
    """Grouped sigmoid with a correction bias (arXiv:2412.19437)."""
    scores = 1 / (1 + np.exp(-np.where(np.isnan(logits), -INF, logits.astype(np.float64))))
    biased = np.where(np.isnan(logits), -INF, scores + bias)
    of_group = biased.reshape(groups, -1)
    best_two = np.sort(of_group, 1)[:, -2:].sum(1)
    chosen = first_largest(best_two, top_groups)
    allowed = np.full_like(of_group, NAN)
    allowed[chosen] = of_group[chosen]
    # Groups that are not chosen come after everything.
    order = sorted((np.isnan(s), -s if not np.isnan(s) else 0, i) for i, s in enumerate(allowed.reshape(-1)))
    ids = [i for _, _, i in order[:top_k]]
    weights = scores[ids]
    if renormalize:
        weights = weights / weights.sum() if weights.sum() > 0 else weights * 0
    return ids, weights * factor


class Route(OpCase):
    def check(self, logits, rule, top_k, expected, bias=None):
        tensors = {"router_logits": logits}
        if bias is not None:
            tensors["correction_bias"] = bias
        dump = self.replayed("route", tensors, {"top_k": top_k, "routing_rule": rule})
        for token, row in enumerate(logits):
            ids, weights = expected(row)
            for prefix in ("", "emulated_"):
                self.assertEqual(dump[prefix + "topk_ids"][token].tolist(), list(ids), (prefix, token))
                np.testing.assert_allclose(dump[prefix + "topk_weights"][token], weights, rtol=1e-5, atol=1e-30,
                                           err_msg=f"{prefix} token {token}")
        self.assertFalse(np.isnan(dump["topk_weights"]).any())
        return dump

    def logits(self, tokens, experts):
        return self.rng.standard_normal((tokens, experts)).astype(np.float32) * 2

    def test_softmax_with_and_without_renormalisation(self):
        logits = self.logits(9, 13)
        for renormalize in (True, False):
            self.check(logits, {"rule": "softmax", "renormalize": renormalize}, 3,
                       lambda row, r=renormalize: softmax_route(row, 3, r))
        self.check(logits, {"rule": "softmax_after_topk"}, 3, lambda row: softmax_route(row, 3, True))

    def test_corners_of_softmax(self):
        logits = self.logits(9, 6)
        logits[0] = -INF
        logits[1] = NAN
        logits[2] = [NAN, 1, 1, NAN, 1, 0]  # ties go to the lower id
        logits[3] = 0
        logits[4] = [INF, 0, INF, -INF, INF, 1]
        logits[5] = [-INF, -INF, 3, -INF, -INF, -INF]
        logits[6] = [NAN, NAN, NAN, NAN, NAN, -2]
        logits[7] = [3e38, -3e38, 3e38, 0, 0, 0]
        for renormalize in (True, False):
            dump = self.check(logits, {"rule": "softmax", "renormalize": renormalize}, 3,
                              lambda row, r=renormalize: softmax_route(row, 3, r))
            self.assertEqual(dump["topk_weights"][0].tolist(), [0, 0, 0])
            self.assertEqual(dump["topk_weights"][1].tolist(), [0, 0, 0])
            self.assertEqual(dump["topk_ids"][3].tolist(), [0, 1, 2])

    def deepseek(self, logits, bias, top_k, groups, top_groups, renormalize=True, factor=2.5):
        rule = {"rule": "grouped_sigmoid", "groups": groups, "top_groups": top_groups, "renormalize": renormalize,
                "scaling_factor": factor, "correction_bias": bias is not None}
        zero = np.zeros(logits.shape[1]) if bias is None else bias
        return self.check(logits, rule, top_k, lambda row: deepseek_route(
            row, zero, top_k, groups, top_groups, renormalize, factor), bias)

    def test_groups_bias_and_factor(self):
        bias = (self.rng.standard_normal(32) / 5).astype(np.float32)
        for renormalize in (True, False):
            self.deepseek(self.logits(20, 32), bias, 6, 8, 4, renormalize)
        self.deepseek(self.logits(20, 32), None, 6, 8, 4)

    def test_as_many_groups_as_experts(self):
        logits, bias = self.logits(12, 16), (self.rng.standard_normal(16) / 5).astype(np.float32)
        self.deepseek(logits, bias, 4, 16, 4)
        self.deepseek(logits, bias, 4, 16, 16)
        self.deepseek(logits, bias, 4, 1, 1)

    def test_sums_of_zero_give_weights_of_zero(self):
        logits = self.logits(6, 16)
        logits[0] = -INF
        logits[1] = -1000  # sigmoid is 0 in any format
        logits[2] = NAN
        logits[3, 1:] = -INF
        bias = np.linspace(0, 1, 16, dtype=np.float32)
        for given in (None, bias):
            dump = self.deepseek(logits, given, 4, 4, 2)
            for token in (0, 1, 2):
                self.assertEqual(dump["topk_weights"][token].tolist(), [0, 0, 0, 0])
        # Where fp32's own sigmoid ends, too.
        logits[1] = -100
        dump = self.replayed("route", {"router_logits": logits}, {"top_k": 4, "routing_rule": {
            "rule": "grouped_sigmoid", "groups": 4, "top_groups": 2, "renormalize": True}})
        for prefix in ("", "emulated_"):
            self.assertEqual(dump[prefix + "topk_weights"][1].tolist(), [0, 0, 0, 0])

    def test_ties_go_to_the_lower_id_across_groups(self):
        logits = np.zeros((3, 16), np.float32)
        logits[1, [5, 9]] = 1
        dump = self.deepseek(logits, None, 4, 4, 2)
        self.assertEqual(dump["topk_ids"][0].tolist(), [0, 1, 2, 3])
        self.assertEqual(dump["topk_ids"][1].tolist(), [5, 9, 4, 6])

    def test_top1_by_sigmoid(self):
        logits = self.logits(6, 5)
        logits[0] = -INF
        logits[1] = [NAN, 2, 2, -1, NAN]

        def top1(row):
            row = np.where(np.isnan(row), -INF, row.astype(np.float64))
            expert = first_largest(row, 1)
            return expert, 1 / (1 + np.exp(-row[expert]))

        self.check(logits, {"rule": "sigmoid_top1"}, 1, top1)

    def test_a_nan_token_leaves_its_neighbours_bit_identical(self):
        logits = self.logits(5, 16)
        rule = {"top_k": 4, "routing_rule": {"rule": "softmax", "renormalize": True}}
        clean = self.replayed("route", {"router_logits": logits}, rule)
        spoilt = logits.copy()
        spoilt[1], spoilt[3, 2] = NAN, NAN
        dump = self.replayed("route", {"router_logits": spoilt}, rule)
        for row in (0, 2, 4):
            self.same_bits(dump["topk_ids"][row], clean["topk_ids"][row])
            self.same_bits(dump["topk_weights"][row], clean["topk_weights"][row])

    def test_logits_of_16_bits_and_shared_experts(self):
        logits = peer.bf16(self.logits(5, 8))
        expected = [softmax_route(row, 2, True) for row in logits.astype(np.float32)]
        dump = self.replayed("route", {"router_logits": logits}, {
            "top_k": 2, "routing_rule": {"rule": "softmax", "renormalize": True}, "shared_experts": "appended"})
        for token, (ids, weights) in enumerate(expected):
            self.assertEqual(dump["topk_ids"][token].tolist(), [*ids, 8])
            np.testing.assert_allclose(dump["topk_weights"][token], [*weights, 1], rtol=1e-5)

    def test_what_does_not_fit_is_refused(self):
        logits = self.logits(4, 8)
        rule = {"routing_rule": {"rule": "softmax"}}
        self.refused("route", {"router_logits": logits}, "top_k", fields=rule)
        self.refused("route", {"router_logits": logits}, "routing_rule", fields={"top_k": 2})
        self.refused("route", {"router_logits": logits.astype(np.float64)}, "F64 [4, 8]", "F32 or BF16 or F16 [4, 8]",
                     fields={**rule, "top_k": 2})
        self.refused("route", {"router_logits": logits, "correction_bias": np.zeros(8, np.float32)}, "grouped_sigmoid",
                     fields={**rule, "top_k": 2})
        grouped = {"routing_rule": {"rule": "grouped_sigmoid"}, "top_k": 2}
        self.refused("route", {"router_logits": logits, "correction_bias": np.zeros(7, np.float32)}, "F32 [7]",
                     "F32 [8]", fields=grouped)
        self.refused("route", {"router_logits": logits}, "top_k 9", fields={**rule, "top_k": 9})
        self.refused("route", {"router_logits": logits}, '"router_logits" is F32 [4, 8]', "[4, 256]",
                     fields={"model": "deepseek-v3"})


def aligned(ids, experts, block, expert_map=None, skip=False):
    """sorted ids, experts of blocks and the padded count, as vLLM's moe_align_block_size lays them out."""
    flat, padding = ids.reshape(-1), ids.size
    entries, blocks = [], []
    for expert in range(experts):
        local = expert if expert_map is None else int(expert_map[expert])
        pairs = np.flatnonzero(flat == expert).tolist()
        if not pairs or (skip and local < 0):
            continue
        pairs += [padding] * (-len(pairs) % block)
        entries += pairs
        blocks += [local] * (len(pairs) // block)
    return entries, blocks, len(entries)


class Align(OpCase):
    def check(self, ids, experts, block, expert_map=None, skip=False, fields=None):
        tensors = {"topk_ids": ids.astype(np.int32)}
        if expert_map is not None:
            tensors["expert_map"] = np.int32(expert_map)
        case = {"block_size": block, **(fields or {})}
        if skip:
            case["remote_experts"] = "skipped"
        dump = self.replayed("align", tensors, case)
        entries, blocks, count = aligned(ids, experts, block, expert_map, skip)
        for prefix in ("", "emulated_"):
            found = dump[prefix + "sorted_token_ids"]
            self.assertEqual(dump[prefix + "num_tokens_post_padded"].tolist(), [count])
            self.assertTrue((found[count:] == ids.size).all())
            self.assertEqual(dump[prefix + "expert_ids"][:len(blocks)].tolist(), blocks)
            for at in range(0, count, block):  # any order within an expert, padding last
                self.assertEqual(sorted(found[at:at + block]), sorted(entries[at:at + block])
                                 if len(blocks) < 2 or prefix else sorted(found[at:at + block]))
            self.assertEqual(sorted(found[:count]), sorted(entries))
        self.assertEqual(dump["emulated_sorted_token_ids"][:count].tolist(), entries)
        return dump

    def test_blocks_of_any_size(self):
        for experts, top_k, tokens in ((8, 2, 17), (5, 5, 3), (1, 1, 9)):
            ids = np.stack([self.rng.permutation(experts)[:top_k] for _ in range(tokens)])
            for block in (1, 4, 16):
                self.check(ids, experts, block)

    def test_thousands_of_experts(self):
        ids = np.stack([self.rng.permutation(4096)[:8] for _ in range(64)])
        self.check(ids, 4096, 16)
        self.check(np.full((3, 1), 4095), 4096, 64)

    def test_dropped_pairs_and_experts_elsewhere(self):
        ids = np.array([[0, 3], [-1, 2], [5, -1], [-1, -1], [2, 5], [4, 4]])
        self.check(ids, 6, 4)
        expert_map = [1, -1, 0, -1, 2, -1]
        self.check(ids, 6, 4, expert_map)
        self.check(ids, 6, 4, expert_map, skip=True)
        self.check(np.full((4, 2), -1), 6, 4, expert_map)

    def test_no_tokens(self):
        self.check(np.zeros((0, 2), int), 2, 16, fields={"experts": 2})

    def test_what_does_not_fit_is_refused(self):
        ids = np.zeros((4, 2), np.int32)
        self.refused("align", {"topk_ids": ids.astype(np.int64)}, '"topk_ids" is I64 [4, 2]', "I32 [4, 2]",
                     fields={"experts": 4})
        self.refused("align", {"topk_ids": ids}, "[4, 2]", "[4, 8]", fields={"model": "qwen3-30b-a3b"})
        self.refused("align", {"topk_ids": ids + 9}, "topk_ids", "9", "-1 to 3", fields={"experts": 4})
        self.refused("align", {"topk_ids": ids - 2}, "topk_ids", "-2")
        self.refused("align", {"topk_ids": ids, "expert_map": np.int32([0, 0, 1])}, "expert_map", "once")
        self.refused("align", {"topk_ids": ids, "expert_mapp": np.int32([0, 1])}, '"expert_mapp"', "expert_map")
        self.refused("align", {"expert_map": np.int32([0, 1])}, "top_k", fields={"tokens": 3})


class Reduce(OpCase):
    def check(self, pairs, weights, fields=None, on_input=False):
        dump = self.replayed("reduce", {"pairs": pairs, "topk_weights": weights}, fields)
        exact = (pairs.astype(np.float64) * (1 if on_input else weights[:, :, None].astype(np.float64))).sum(1)
        np.testing.assert_allclose(dump["unquantized"], exact, rtol=1e-12, atol=1e-12)
        rounded = peer.bf16(exact).astype(np.float64)
        self.assertLess(peer.relative(dump["emulated"], rounded), 1e-4)
        self.assertLess(peer.relative(dump["output"].astype(np.float64), rounded), 1e-3)
        return dump

    def test_weighted_sums(self):
        pairs = self.rng.standard_normal((7, 3, 45))
        weights = self.rng.random((7, 3)).astype(np.float32)
        self.check(peer.bf16(pairs), weights)
        self.check(pairs.astype(np.float32), weights, {"pair_out": "fp32"})
        self.check(peer.bf16(pairs[:, :1]), weights[:, :1], {"router_weight_on_input": True}, on_input=True)

    def test_a_sum_by_hand(self):
        pairs = peer.bf16([[[1, 2], [3, -4]], [[0.5, 0], [0, 0.25]]])
        weights = np.float32([[0.25, 0.75], [2, 4]])
        dump = self.check(pairs, weights)
        self.assertEqual(dump["output"].astype(np.float32).tolist(), [[2.5, -2.5], [1, 1]])

    def test_a_nan_token_leaves_its_neighbours_bit_identical(self):
        pairs = peer.bf16(self.rng.standard_normal((5, 2, 40)))
        weights = self.rng.random((5, 2)).astype(np.float32)
        clean = self.check(pairs, weights)["output"].view(np.uint16)
        spoilt = pairs.copy()
        spoilt[1, 0, 3], spoilt[3] = np.nan, np.inf
        dump = self.replayed("reduce", {"pairs": spoilt, "topk_weights": weights})["output"]
        self.assertTrue(np.isnan(dump[1, 3].astype(np.float32)))
        self.assertTrue(np.array_equal(dump.view(np.uint16)[[0, 2, 4]], clean[[0, 2, 4]]))

    def test_missing_weights_are_generated_and_a_dump_holds_them(self):
        pairs = peer.bf16(self.rng.standard_normal((5, 2, 40)))
        dump = self.replayed("reduce", {"pairs": pairs}, options=("--seed", "3"))
        again = self.replayed("reduce", {"pairs": pairs, "topk_weights": dump["topk_weights"]})
        self.same_bits(dump["output"], again["output"])

    def test_what_does_not_fit_is_refused(self):
        pairs, weights = peer.bf16(np.ones((4, 2, 8))), np.ones((4, 2), np.float32)
        self.refused("reduce", {"pairs": pairs, "topk_weights": weights[:, :1]}, "F32 [4, 1]", "F32 [4, 2]")
        self.refused("reduce", {"pairs": pairs.astype(np.float32), "topk_weights": weights}, "F32 [4, 2, 8]",
                     "BF16 [4, 2, 8]")
        self.refused("reduce", {"pairs": pairs[0], "topk_weights": weights}, "BF16 [2, 8]", "3 axes")
        self.refused("reduce", {"topk_weights": weights}, "hidden size", "pairs")


if __name__ == "__main__":
    OpCase.binary = os.path.abspath(sys.argv.pop(1))
    unittest.main()
