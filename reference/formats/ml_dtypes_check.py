"""The scalar formats against ml_dtypes, an implementation by others: every code of each format, and
every bf16 value encoded. Argument: the formats_dump binary, which prints what ours give."""

import subprocess
import sys
import unittest

try:
    import ml_dtypes
    import numpy as np
except ImportError as missing:
    print(f"skipped: the Python package {missing.name} is not installed (scripts/requirements.txt)")
    sys.exit(77)


def dump(table):
    """Columns of hexadecimal words."""
    out = subprocess.run([BINARY, table], check=True, capture_output=True, text=True).stdout
    return np.array([int(word, 16) for word in out.split()], dtype=np.uint32)


def bits_of(values):
    """float32 as words, every NaN as one."""
    values = np.asarray(values, dtype=np.float32)
    return np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))


BF16 = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)


class AgainstMlDtypes(unittest.TestCase):
    def assert_decodes(self, table, codes, dtype):
        expected = bits_of(codes.view(dtype).astype(np.float32))
        np.testing.assert_array_equal(bits_of(dump(table).view(np.float32)), expected)

    def assert_encodes(self, table, dtype, maximum):
        # ml_dtypes does not saturate: clamping first makes it do so.
        with np.errstate(invalid="ignore"):
            clamped = np.where(np.isnan(BF16), BF16, np.clip(BF16, -maximum, maximum))
            expected = clamped.astype(dtype).astype(np.float32)
            ours = dump(table).astype(np.uint8).view(dtype).astype(np.float32)
        np.testing.assert_array_equal(bits_of(ours), bits_of(expected))

    def test_every_code_of_e4m3fn(self):
        self.assert_decodes("decode_e4m3fn", np.arange(256, dtype=np.uint8), ml_dtypes.float8_e4m3fn)

    def test_every_code_of_e4m3fnuz(self):
        self.assert_decodes("decode_e4m3fnuz", np.arange(256, dtype=np.uint8), ml_dtypes.float8_e4m3fnuz)

    def test_every_code_of_e8m0(self):
        if not hasattr(ml_dtypes, "float8_e8m0fnu"):
            self.skipTest("this ml_dtypes has no float8_e8m0fnu")
        self.assert_decodes("decode_e8m0", np.arange(256, dtype=np.uint8), ml_dtypes.float8_e8m0fnu)

    def test_every_code_of_e2m1(self):
        if not hasattr(ml_dtypes, "float4_e2m1fn"):
            self.skipTest("this ml_dtypes has no float4_e2m1fn")
        self.assert_decodes("decode_e2m1", np.arange(16, dtype=np.uint8), ml_dtypes.float4_e2m1fn)

    def test_every_code_of_fp16(self):
        self.assert_decodes("decode_fp16", np.arange(65536, dtype=np.uint16), np.float16)

    def test_every_bf16_as_e4m3fn(self):
        self.assert_encodes("encode_e4m3fn", ml_dtypes.float8_e4m3fn, 448)

    def test_every_bf16_as_e4m3fnuz(self):
        self.assert_encodes("encode_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 240)

    def test_every_bf16_as_fp16(self):
        with np.errstate(over="ignore"):
            expected = bits_of(BF16.astype(np.float16).astype(np.float32))
        ours = dump("encode_fp16").astype(np.uint16).view(np.float16).astype(np.float32)
        np.testing.assert_array_equal(bits_of(ours), expected)

    def test_float32_as_bf16(self):
        # Every upper half with lower halves at, below and above the tie.
        high = np.arange(65536, dtype=np.uint32) << 16
        for low in (0x7FFF, 0x8000, 0x8001):
            values = (high | np.uint32(low)).view(np.float32)
            with np.errstate(invalid="ignore"):
                expected = bits_of(values.astype(ml_dtypes.bfloat16).astype(np.float32))
            ours = (dump(f"encode_bf16_{low:x}") << 16).astype(np.uint32).view(np.float32)
            np.testing.assert_array_equal(bits_of(ours), expected)


if __name__ == "__main__":
    BINARY = sys.argv.pop()
    unittest.main()
