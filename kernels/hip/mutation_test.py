#!/usr/bin/env python3
"""Spoils the AMD kernels' source in one place at a time, compiles it for the emulator and runs it: what
is wrong with a lane map, a scale's index or an epilogue must come out beyond the limits, or as a fault
of the emulator. The kernels as they are must pass.

    mutation_test.py COMPILER BIN OBJECT...    BIN: where programs find the modules that they open; the
                                               probe's objects and libraries"""

import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEVICE = "kernels/hip/device"
COMPILER, BIN, OBJECTS = "c++", Path(), []
# The tiles that the probe asks for.
TILES = {("mfma", "fp8_blocks", 16, 32, 16), ("mfma", "fp8_blocks", 32, 128, 16), ("mfma", "fp8_blocks", 64, 128, 32),
         ("mfma", "fp8_channels", 16, 32, 16)}

# (name, file, what is there, what is put in its place)
MUTANTS = [
    ("rows of a product of 16", "matrix.h", "C::kSums * (lane / 16) + i", "C::kSums * (lane / 16) + (i ^ 1)"),
    ("rows of a product of 32", "matrix.h", "4 * (lane / 32)", "4 * (1 - lane / 32)"),
    ("columns of a product", "gemm.h", "const int row = t * C::kDim + column;",
     "const int row = t * C::kDim + (column ^ 1);"),
    ("chunks of the weights", "tiles.h", "at + c * C::kGroups *", "at + (c ^ 1) * C::kGroups *"),
    ("chunks of the tokens", "gemm.h", "(c * C::kGroups + group)", "(c + group * C::kLaneChunks)"),
    ("halves of an operand", "matrix.h", "Instruction::run(a.half[1], b.half[1], sums);",
     "Instruction::run(a.half[1], b.half[0], sums);"),
    ("a weight scale's half", "gemm.h", "weights.scale[half][p]", "weights.scale[1 - half][p]"),
    ("a weight scale's step", "tiles.h", "(p * kTiles16 + t) * steps + step]", "(p * kTiles16 + t) * steps]"),
    ("a weight scale's tile", "gemm.h", "C::kDim == 32 ? i / 8 : 0", "C::kDim == 32 ? 1 - i / 8 : 0"),
    ("a token scale's step", "tiles.h", "scales[static_cast<i64>(step) * pitch_scales]", "scales[0]"),
    ("a channel's scale", "epilogue.h", "gate *= gate_scale[i] * token_scale;", "gate *= up_scale[i] * token_scale;"),
    ("a channel's scale, down", "epilogue.h", "half, column + j) * token_scale", "half, column) * token_scale"),
    ("the group's maximum", "quantise_rows.h", "for (int d = 1; d < 16; d *= 2)", "for (int d = 1; d < 8; d *= 2)"),
    ("the waves' maximum", "epilogue.h", "for (int w = 0; w < C::kWaves; ++w)", "for (int w = 1; w < C::kWaves; ++w)"),
    ("gate and up", "epilogue.h", "activate(args, gate, up)", "activate(args, up, gate)"),
    ("the bias of up", "epilogue.h", "up_bias[i] = bias[args.inter];", "up_bias[i] = bias[0];"),
    ("the router weight", "epilogue.h", "v *= lds.factor[token];", ""),
    ("the last row of a tile", "epilogue.h", "token < rows && i", "token < rows - 1 && i"),
    ("rows of earlier chunks", "group_rows.h", "lds.first_row[e] + lds.before[e]", "lds.first_row[e]"),
    ("the last choice", "combine.h", "t < args.top_k", "t + 1 < args.top_k"),
    ("the last step", "gemm.h", "const int steps = stream.steps;", "const int steps = stream.steps - 1;"),
    ("the barrier of a step", "gemm.h", "(step + 1) & 1, thread);\n      gpu::sync_shared();",
     "(step + 1) & 1, thread);"),
]



def replaced(text, old, new):
    """`old` once in `text`, whatever the white space; None where it is not there exactly once."""
    pattern = r"\s*".join(re.escape(part) for part in re.findall(r"\w+|\S", old))
    found = re.findall(pattern, text)
    return text.replace(found[0], new) if len(found) == 1 else None


def probe(folder, mutant=None):
    """The probe's exit code with the kernels spoiled by `mutant`, and what it printed."""
    device = folder / DEVICE
    device.mkdir(parents=True)
    lines = (ROOT / DEVICE / "kernel_list.inc").read_text().splitlines()
    kept = [line for line in lines if (m := re.match(r"MOE_GEMM\((\w+), (\w+), (\d+), (\d+), \d+, (\d+), \d+\)", line))
            and (m[1], m[2], int(m[3]), int(m[4]), int(m[5])) in TILES]
    assert len(kept) == len(TILES), kept
    (device / "kernel_list.inc").write_text("\n".join(kept) + "\n")
    if mutant:
        _, file, old, new = mutant
        spoiled = replaced((ROOT / DEVICE / file).read_text(), old, new)
        assert spoiled is not None, f"'{old}' is not in {file} exactly once"
        (device / file).write_text(spoiled)
    program = BIN / f"hip_mutant_{folder.name}"
    subprocess.run([COMPILER, "-std=c++20", "-O1", "-w", "-ffp-contract=off", f"-I{folder}", f"-I{ROOT}",
                    ROOT / "kernels/hip/emulator/kernels_gfx942.cc", "-o", program,
                    "-Wl,--start-group", *OBJECTS, "-Wl,--end-group", "-pthread", "-ldl"], check=True)
    try:
        done = subprocess.run([program], capture_output=True, text=True, timeout=300)
    finally:
        program.unlink()
    return done.returncode, done.stdout


class Mutants(unittest.TestCase):
    def run_one(self, mutant):
        with tempfile.TemporaryDirectory() as folder:
            return probe(Path(folder), mutant)

    def test_the_kernels_as_they_are_pass(self):
        self.assertEqual(self.run_one(None), (0, ""))

    def test_every_mutant_is_caught(self):
        with ThreadPoolExecutor(2) as pool:
            for mutant, (code, said) in zip(MUTANTS, pool.map(self.run_one, MUTANTS)):
                with self.subTest(mutant[0]):
                    self.assertEqual(code, 1, said)
                    self.assertNotEqual(said, "")


if __name__ == "__main__":
    COMPILER, BIN, OBJECTS = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    unittest.main(argv=sys.argv[:1])
