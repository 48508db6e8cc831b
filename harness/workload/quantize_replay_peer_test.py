"""quantize and activation on tensors of our own, against ml_dtypes and numpy. Argument: moegauge."""

import math
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

FN, FNUZ = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz
EVERY_BF16 = np.arange(65536, dtype=np.uint16).reshape(256, 256).view(ml_dtypes.bfloat16)
EVERY_F16 = np.arange(65536, dtype=np.uint16).reshape(256, 256).view(np.float16)


def saturated(values, form, most):
    with np.errstate(invalid="ignore"):
        return np.clip(values, -most, most).astype(form)


def nearest_int8(values):
    return np.clip(np.rint(np.nan_to_num(values, nan=0.0)), -127, 127).astype(np.int8)


def scales_of(x, width, floor, most, least=0):
    """One per row and group of `width` columns; elements that are not finite count for nothing."""
    wide = np.where(np.isfinite(x), np.abs(x), np.float32(0))
    groups = [wide[:, i:i + width].max(1) for i in range(0, x.shape[1], width)]
    return np.maximum(np.maximum(np.stack(groups, 1), np.float32(floor)) / np.float32(most), np.float32(least))


def spread(scales, width, cols):
    return np.repeat(scales, width, 1)[:, :cols]


class Quantize(OpCase):
    def same_codes(self, found, expected):
        """Any NaN is as good as another."""
        wide = [a.astype(np.float32) for a in (found, expected)]
        self.assertTrue(np.array_equal(np.isnan(wide[0]), np.isnan(wide[1])))
        numbers = ~np.isnan(wide[1])
        self.assertTrue(np.array_equal(found.view(np.uint8)[numbers], expected.view(np.uint8)[numbers]))

    def test_every_16_bit_float_is_cast_as_ml_dtypes_does(self):
        one = np.ones(1, np.float32)
        for x in (EVERY_BF16, EVERY_F16):
            fp32 = x.astype(np.float32)
            for scheme, form, most in (("fp8_tensor_static", FN, 448), ("fp8_tensor_static_fnuz", FNUZ, 240),
                                       ("fp8_tensor_static_fnuz224", FNUZ, 224)):
                dump = self.replayed("quantize", {"x": x, "x_scale": one}, {"scheme": scheme})
                expected = saturated(fp32, form, most)
                for name in ("q", "emulated_q"):
                    self.same_codes(dump[name].view(form), expected)
                self.assertEqual(dump["scale"].tolist(), [1.0])

    def test_scales_and_codes_of_groups_tokens_and_tensors(self):
        x = peer.bf16(self.rng.standard_normal((7, 300)) * np.exp2(self.rng.integers(-9, 9, (7, 300))))
        x[3], x[4, :128] = 0, 0
        x[5] = np.float32(2.0 ** -133)  # denormals
        fp32 = x.astype(np.float32)
        for scheme, form, width, floor, most, least in (
                ("fp8_block", FN, 128, 1e-10, 448, 0), ("fp8_block_fnuz", FNUZ, 128, 1e-10, 240, 0),
                ("fp8_ptpc", FN, 300, 0, 448, 1 / (448 * 512))):
            dump = self.replayed("quantize", {"x": x}, {"scheme": scheme})
            scales = scales_of(fp32, width, floor, most, least)
            np.testing.assert_allclose(dump["scale"].reshape(scales.shape), scales, rtol=2.0 ** -22)
            quotients = fp32 / spread(dump["emulated_scale"].reshape(scales.shape), width, 300)
            self.same_codes(dump["emulated_q"].view(form), saturated(quotients, form, most))
            self.same_codes(dump["q"].view(form), dump["emulated_q"].view(form))
        dump = self.replayed("quantize", {"x": x}, {"scheme": "w8a8_int8"})
        quotients = fp32 / dump["emulated_scale"].reshape(7, 1)
        self.assertTrue(np.array_equal(dump["emulated_q"], nearest_int8(quotients)))
        self.assertTrue(np.isfinite(dump["scale"]).all() and (dump["scale"] > 0).all())

    def test_mx_scales_are_the_least_power_of_two_under_which_nothing_saturates(self):
        x = peer.bf16(self.rng.standard_normal((6, 96)) * np.exp2(self.rng.integers(-20, 20, (6, 96))))
        x[0, :32] = 448  # exactly the maximum
        x[1, :32] = np.float32(450)
        x[2, 32:64] = 0
        fp32 = x.astype(np.float32)
        dump = self.replayed("quantize", {"x": x}, {"scheme": "mxfp8"})
        codes = dump["emulated_scale"]
        for row in range(6):
            for group in range(3):
                amax = float(np.abs(fp32[row, 32 * group:32 * group + 32]).max())
                expected = 0 if amax == 0 else min(max(math.ceil(math.log2(amax / 448)), -127), 127) + 127
                self.assertEqual(codes[row, group], expected, (row, group))
        self.same_bits(dump["scale"], codes)
        scales = np.exp2(codes.astype(np.float32) - 127)
        self.same_codes(dump["q"], saturated(fp32 / spread(scales, 32, 96), FN, 448))

    def test_a_nan_token_and_one_of_infinities_leave_their_neighbours_bit_identical(self):
        x = peer.bf16(self.rng.standard_normal((6, 256)))
        spoilt = x.copy()
        spoilt[1, 7] = np.nan
        spoilt[3] = np.inf
        spoilt[4, :] = -np.inf
        spoilt[4, 9] = np.nan
        others = [0, 2, 5]
        for scheme in ("fp8_ptpc", "fp8_block", "mxfp8", "w8a8_int8", "fp8_ptpc_fnuz", "fp8_tensor_static"):
            static = {"x_scale": np.float32([0.01])} if "static" in scheme else {}
            clean = self.replayed("quantize", {"x": x, **static}, {"scheme": scheme})
            dump = self.replayed("quantize", {"x": spoilt, **static}, {"scheme": scheme})
            for row in others:
                self.same_bits(dump["q"][row], clean["q"][row], (scheme, row))
                if "static" not in scheme:
                    self.same_bits(dump["scale"][row], clean["scale"][row], (scheme, row))
            # The NaN token's own scale is that of its finite elements.
            if "static" not in scheme:
                finite = x.copy()
                finite[1, 7] = 0
                one = self.replayed("quantize", {"x": finite}, {"scheme": scheme})
                self.same_bits(dump["scale"][1], one["scale"][1], scheme)
                self.assertTrue((dump["scale"].view(np.uint8) != 255).any())

    def test_no_rows(self):
        dump = self.replayed("quantize", {"x": peer.bf16(np.zeros((0, 64)))}, {"scheme": "fp8_block"})
        self.assertEqual(dump["q"].shape, (0, 64))

    def test_what_does_not_fit_is_refused_with_both_forms(self):
        x = peer.bf16(np.ones((4, 64)))
        block = {"scheme": "fp8_block"}
        self.refused("quantize", {"x": x.astype(np.float32)}, '"x" is F32 [4, 64]', "BF16 [4, 64]", fields=block)
        self.refused("quantize", {"x": x}, '"x" is BF16 [4, 64]', "BF16 [5, 64]", fields={**block, "tokens": 5})
        self.refused("quantize", {"x": x}, '"x" is BF16 [4, 64]', "BF16 [4, 4096]",
                     fields={**block, "model": "mixtral-8x7b"})
        self.refused("quantize", {"x": x[0]}, '"x" is BF16 [64]', "2 axes", fields=block)
        self.refused("quantize", {"x": x, "xscale": np.ones(1, np.float32)}, '"xscale"', fields=block)
        self.refused("quantize", {"x": x, "x_scale": np.ones(1, np.float32)}, '"x_scale"', fields=block)
        static = {"scheme": "fp8_tensor_static"}
        self.refused("quantize", {"x": x, "x_scale": np.ones(2, np.float32)}, "F32 [2]", "F32 [1]", fields=static)
        self.refused("quantize", {"x": x, "x_scale": np.zeros(1, np.float32)}, "x_scale", "positive", fields=static)
        self.refused("quantize", {"x_scale": np.ones(1, np.float32)}, "hidden size", fields={**static, "tokens": 4})

    def test_a_scheme_that_leaves_activations_alone_says_so(self):
        peer.write(self.path("in.safetensors"), {"x": peer.bf16(np.ones((4, 64)))})
        code, out, _, _ = self.run_cases([{"op": "quantize", "inputs": "file:in.safetensors"}])
        self.assertEqual(code, 4)
        self.assertIn("leaves activations as they are", out)


class ActivationOp(OpCase):
    def check(self, gate_up, expected, fields=None):
        dump = self.replayed("activation", {"gate_up": gate_up}, fields)
        exact = expected.astype(np.float32).astype(gate_up.dtype)
        ulp = np.abs(expected) * 2.0 ** (-7 if gate_up.dtype == ml_dtypes.bfloat16 else -10) + 1e-7
        for name in ("emulated", "output"):
            difference = np.abs(dump[name].astype(np.float64) - exact.astype(np.float64))
            self.assertTrue((difference <= ulp).all(), name)
        np.testing.assert_allclose(dump["unquantized"], expected, rtol=1e-6, atol=1e-9)
        return dump

    def halves(self, rows=9, size=37):
        x = peer.bf16(self.rng.standard_normal((rows, 2 * size)) * 4)
        wide = x.astype(np.float64)
        return x, wide[:, :size], wide[:, size:]

    def test_functions_and_their_parameters(self):
        x, gate, up = self.halves()
        self.check(x, peer.silu(gate, up))
        cdf = np.vectorize(lambda g: 0.5 * math.erfc(-g / math.sqrt(2)))
        self.check(x, gate * cdf(gate) * up, {"activation": "gelu_and_mul"})
        tanh = np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate ** 3))
        self.check(x, gate * 0.5 * (1 + tanh) * up, {"activation": "gelu_tanh_and_mul"})
        clamped = {"kind": "swiglu_clamped", "alpha": 1.5, "beta": 0.5, "limit": 3}
        self.check(x, peer.swiglu_clamped(1.5, 0.5, 3)(gate, up), {"activation": clamped})

    def test_interleaved_and_fp16(self):
        x = (self.rng.standard_normal((5, 64)) * 3).astype(np.float16)
        wide = x.astype(np.float64)
        self.check(x, peer.silu(wide[:, 0::2], wide[:, 1::2]), {"gate_up_order": "interleaved", "scheme": "fp16"})

    def test_a_nan_stays_in_its_place(self):
        x, _, _ = self.halves(rows=5, size=40)
        clean = self.replayed("activation", {"gate_up": x})["output"].view(np.uint16)
        for activation in ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul",
                           {"kind": "swiglu_clamped", "alpha": 1.702, "beta": 1, "limit": 7}):
            fields = {"activation": activation}
            clean = self.replayed("activation", {"gate_up": x}, fields)["output"].view(np.uint16)
            spoilt = x.copy()
            spoilt[1, 3] = np.nan
            spoilt[3] = np.inf
            dump = self.replayed("activation", {"gate_up": spoilt}, fields)["output"]
            self.assertTrue(np.isnan(dump[1, 3].astype(np.float32)), activation)
            self.assertEqual(np.isnan(dump[1].astype(np.float32)).sum(), 1)
            self.assertTrue(np.array_equal(dump.view(np.uint16)[[0, 2, 4]], clean[[0, 2, 4]]))

    def test_what_does_not_fit_is_refused(self):
        x = peer.bf16(np.ones((3, 7)))
        self.refused("activation", {"gate_up": x}, '"gate_up" is BF16 [3, 7]', "BF16 [3, 6]")
        self.refused("activation", {"gate_up": x[:, :6].astype(np.float32)}, "F32 [3, 6]", "BF16 [3, 6]")
        self.refused("activation", {"x": x}, "intermediate size", "gate_up", fields={"tokens": 3})


if __name__ == "__main__":
    OpCase.binary = os.path.abspath(sys.argv.pop(1))
    unittest.main()
