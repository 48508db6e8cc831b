"""`moegauge convert` against the same arithmetic in numpy and ml_dtypes, its files read by the format's
own library. Argument: the moegauge binary."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import ml_dtypes
    import numpy as np
    import safetensors
except ImportError as missing:
    print(f"skipped: the Python package {missing.name} is not installed (scripts/requirements.txt)")
    sys.exit(77)

EXPERTS, ROWS, COLS = 3, 200, 416  # neither a multiple of 128


def mxfp8():
    rng = np.random.default_rng(7)
    groups = rng.standard_normal((EXPERTS, ROWS, COLS // 32, 32)).astype(np.float32) * 0.02
    scales = np.ceil(np.log2(np.abs(groups).max(-1) / 448)).astype(np.int32) + 127
    values = groups / np.exp2(scales - 127.0).astype(np.float32)[..., None]
    codes = values.astype(ml_dtypes.float8_e4m3fn).view(np.uint8).reshape(EXPERTS, ROWS, COLS)
    return codes, scales.astype(np.uint8)


def block_fp8(codes, scales):
    """Padded 128x128 blocks, as the field does it: a second derivation, whole tensors at a time."""
    units = np.repeat(np.exp2(scales.astype(np.float32) - 127), 32, axis=-1)
    values = (codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * units)
    values = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    padded = np.pad(values, ((0, 0), (0, -ROWS % 128), (0, -COLS % 128)))
    blocks = padded.reshape(EXPERTS, padded.shape[1] // 128, 128, padded.shape[2] // 128, 128)
    block_scales = (np.abs(blocks).max((2, 4)) / np.float32(448)).astype(np.float32)
    quotients = np.clip(blocks / block_scales[:, :, None, :, None], -448, 448)
    q = quotients.astype(ml_dtypes.float8_e4m3fn)
    restored = q.astype(np.float64) * block_scales[:, :, None, :, None]
    error = np.linalg.norm(restored - blocks) / np.linalg.norm(blocks.astype(np.float64))
    return q.view(np.uint8).reshape(padded.shape)[:, :ROWS, :COLS], block_scales, error


class Peers(unittest.TestCase):
    def convert(self, flavor):
        codes, scales = mxfp8()
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
            header = json.dumps({
                "w": {"dtype": "F8_E4M3", "shape": codes.shape, "data_offsets": [0, codes.size]},
                "w_scale": {"dtype": "F8_E8M0", "shape": scales.shape,
                            "data_offsets": [codes.size, codes.size + scales.size]}}).encode()
            with open(source, "wb") as file:
                file.write(struct.pack("<Q", len(header)) + header + codes.tobytes() + scales.tobytes())
            out = subprocess.run([BINARY, "convert", source, target, "--to", "fp8_block", "--flavor", flavor],
                                 check=True, capture_output=True, text=True).stdout
            with open(target, "rb") as file:
                tensors = dict(safetensors.deserialize(file.read()))
        self.assertEqual(tensors["w"]["dtype"], "F8_E4M3")
        self.assertEqual(tensors["w_scale_inv"]["dtype"], "F32")
        q = np.frombuffer(bytes(tensors["w"]["data"]), np.uint8).reshape(tensors["w"]["shape"])
        s = np.frombuffer(bytes(tensors["w_scale_inv"]["data"]), np.float32)
        return out, q, s.reshape(tensors["w_scale_inv"]["shape"])

    def test_ocp(self):
        out, q, s = self.convert("ocp")
        expected_q, expected_s, error = block_fp8(*mxfp8())
        np.testing.assert_array_equal(q, expected_q)
        np.testing.assert_array_equal(s, expected_s)
        self.assertIn(f"total: relative error {error:.6f}", out)
        self.assertLess(error, 0.05)

    def test_fnuz_holds_the_same_values(self):
        _, q, s = self.convert("fnuz")
        ocp_q, ocp_s, _ = block_fp8(*mxfp8())
        np.testing.assert_array_equal(s, 2 * ocp_s)
        np.testing.assert_array_equal(2 * q.view(ml_dtypes.float8_e4m3fnuz).astype(np.float32),
                                      ocp_q.view(ml_dtypes.float8_e4m3fn).astype(np.float32))


if __name__ == "__main__":
    BINARY = sys.argv.pop()
    unittest.main()
