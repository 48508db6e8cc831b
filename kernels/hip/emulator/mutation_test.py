#!/usr/bin/env python3
"""Spoils the sources of the AMD kernels one place at a time, runs the emulator's tests on what was
made of them, and demands that they fail: a lane map, an index of a scale, a step of an epilogue
that could be wrong unseen would not be proven by them. What fails must be the comparison with the
oracle, or a fault that the emulator names; a mutant that does not compile proves nothing.

    mutation_test.py BINARY COMPILER [--part I/N]      BINARY: hip_emulated_test"""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent.parent
DEVICE = ROOT / "kernels/hip/device"
BINARY, COMPILER = Path(), "c++"
PART, PARTS = 0, 1

TILES = "EveryTileAgrees"


class Mutant(NamedTuple):
    name: str
    arch: str
    schemes: str   # the tests' parameter, or several with *
    file: str
    right: str     # once in the file
    wrong: str
    tests: str = TILES


# fmt: off
MUTANTS = [
    # Lane maps: which row of a product a lane's sum is, which part of K a lane holds.
    Mutant("rows of a 16-row MFMA product", "gfx942", "bf16", "matrix.h",
           "C::kSums * (lane / 16) + i", "C::kSums * (lane / 16 ^ 1) + i"),
    Mutant("rows of a 16-row MFMA product, dealt in turn", "gfx950", "fp8_ptpc", "matrix.h",
           "C::kSums * (lane / 16) + i", "C::kLanes / 16 * i + lane / 16"),
    Mutant("rows of a 32-row MFMA product", "gfx942", "fp8_block", "matrix.h",
           "8 * (i / 4) + 4 * (lane / 32) + i % 4", "8 * (i / 4) + 4 * (lane / 32 ^ 1) + i % 4"),
    Mutant("rows of a 32-row MFMA product, in a row", "gfx950", "w8a8_int8", "matrix.h",
           "8 * (i / 4) + 4 * (lane / 32) + i % 4", "16 * (lane / 32) + i"),
    Mutant("rows of a WMMA product", "gfx1201", "fp8_block", "matrix.h",
           "C::kSums * (lane / 16) + i", "C::kLanes / 16 * i + lane / 16"),
    Mutant("K of the tokens' lanes", "gfx942", "fp8_ptpc", "gemm.h",
           "row * kChunks + ((c * C::kGroups + group) ^", "row * kChunks + ((c * C::kGroups + (group ^ 1)) ^"),
    Mutant("K of the tokens' lanes, WMMA", "gfx1201", "w8a8_int8", "gemm.h",
           "row * kChunks + ((c * C::kGroups + group) ^", "row * kChunks + ((group * C::kLaneChunks + c) ^"),
    Mutant("K of the weights' lanes", "gfx950", "fp16", "tiles.h",
           "at + c * C::kGroups * kTileRows * kChunkBytes", "at + (C::kLaneChunks - 1 - c) * C::kGroups * kTileRows * kChunkBytes"),
    Mutant("rows of the weights' lanes", "gfx942", "fp8_block", "tiles.h",
           "group * kTileRows + row % kTileRows", "group * kTileRows + (row ^ 1) % kTileRows"),
    Mutant("tile of the weights' rows", "gfx950", "bf16", "tiles.h",
           "first + row / kTileRows;", "first + row / kTileRows % 1;"),
    Mutant("swizzle of the tokens", "gfx1201", "bf16", "tiles.h",
           "((at % kChunks) ^ (row & 7))", "((at % kChunks) ^ (row & 3))"),
    # Indices of scales.
    Mutant("weights' scale of the step before", "gfx942", "fp8_block", "tiles.h",
           "(p * kTiles16 + t) * steps + step]", "(p * kTiles16 + t) * steps + (step == 0 ? 0 : step - 1)]"),
    Mutant("weights' scale of the first tile", "gfx1201", "fp8_block", "tiles.h",
           "scale[half] = scales + first * steps", "scale[half] = scales + (first & ~7) * steps"),
    Mutant("weights' scale of an instruction's other rows", "gfx950", "fp8_block", "gemm.h",
           "C::kDim == 32 ? i / 8 : 0", "C::kDim == 32 ? 1 - i / 8 : 0"),
    Mutant("tokens' scale of another step", "gfx942", "fp8_block", "tiles.h",
           "scales[static_cast<i64>(step) * pitch_scales]", "scales[0]"),
    Mutant("tokens' scale of another token", "gfx1201", "fp8_block", "gemm.h",
           "lds.scale[buffer][row]", "lds.scale[buffer][row ^ 1]"),
    Mutant("tokens' scale of the other buffer", "gfx950", "fp8_block", "tiles.h",
           "lds.scale[buffer][thread] = scale_ahead", "lds.scale[0][thread] = scale_ahead"),
    Mutant("channel's scale of the neighbour", "gfx942", "fp8_ptpc", "epilogue.h",
           "half * (rows / 2) + tile.weight_tile * C::kColumns + column", "half * (rows / 2) + tile.weight_tile * C::kColumns + (column ^ 1)"),
    Mutant("channel's scale of the other half", "gfx1201", "w8a8_int8", "epilogue.h",
           "half * (rows / 2) + tile.weight_tile", "(1 - half) * (rows / 2) + tile.weight_tile"),
    Mutant("channel's scale of another tile, down", "gfx950", "w8a8_int8", "epilogue.h",
           "(2 * tile.weight_tile + half) * C::kColumns + column;", "half * C::kColumns + column;"),
    Mutant("channel's scale in a run of four, down", "gfx942", "w8a8_int8", "epilogue.h",
           "tile, half, column + j)", "tile, half, column)"),
    Mutant("x's scale of the row", "gfx1201", "fp8_ptpc", "epilogue.h",
           "args.x_scale[source]", "args.x_scale[token]"),
    Mutant("h's scale left out", "gfx950", "fp8_ptpc", "epilogue.h",
           "source < 0 ? 0.0f : args.h_scale[source]", "source < 0 ? 0.0f : args.h_scale[tile.row]"),
    Mutant("h's scale kept under another tile", "gfx942", "fp8_block", "epilogue.h",
           "static_cast<i64>(tile.weight_tile) * args.pairs + tile.row + thread", "static_cast<i64>(tile.weight_tile) * args.pairs + tile.row"),
    Mutant("group of columns that share a scale", "gfx1201", "fp8_block", "quantise_rows.h",
           "for (int d = 1; d < 16; d *= 2) finite", "for (int d = 1; d < 8; d *= 2) finite"),
    Mutant("where a group's scale is kept", "gfx950", "fp8_block", "quantise_rows.h",
           "static_cast<i64>(k / 128) * at.rows + at.row", "static_cast<i64>(k / 128) * at.rows"),
    Mutant("a row's scale from a part of it", "gfx942", "fp8_ptpc", "quantise_rows.h",
           "w < kPrepareThreads / A::kLanes", "w < 1", "RowsMayBeWider"),
    Mutant("a tensor's scale from one row", "gfx1201", "fp8_tensor", "quantise_rows.h",
           "if (gpu::thread() == 0) atomicMax", "if (gpu::thread() == 0 && at.row == 0) atomicMax"),
    Mutant("FNUZ as OCP", "gfx942", "fp8_block*", "formats.h",
           "maximum) * (kFnuz ? 2.0f : 1.0f)", "maximum) * 1.0f"),
    Mutant("rounding half up", "gfx950", "fp8_block", "formats.h",
           "mag + 0x7ffffu + ((mag >> 20) & 1u)", "mag + 0x80000u", "EveryTileAgrees"),
    # Epilogues.
    Mutant("up as gate", "gfx942", "bf16", "epilogue.h",
           "up = static_cast<float>(totals.at[1][p][t].v[i])", "up = static_cast<float>(totals.at[0][p][t].v[i])"),
    Mutant("column of a wave's tile", "gfx950", "fp16", "epilogue.h",
           "(wave * C::kPairTiles + p) * C::kDim", "(p * C::kWaves + wave) * C::kDim"),
    Mutant("gate's bias for up", "gfx1201", "bf16", "epilogue.h",
           "up_bias[i] = bias[args.inter]", "up_bias[i] = bias[0]", "EveryActivation"),
    Mutant("bias of another expert", "gfx942", "fp8_block", "epilogue.h",
           "static_cast<i64>(tile.expert) * 2 * args.inter + n", "static_cast<i64>(tile.expert) * args.inter + n", "EveryActivation"),
    Mutant("bias in front of the scale", "gfx950", "fp8_ptpc", "epilogue.h",
           "gate += gate_bias[i];", "gate += gate_bias[i] * gate_scale[i];", "EveryActivation"),
    Mutant("no bias of the down projection", "gfx942", "w8a8_int8", "epilogue.h",
           "if (args.w2_bias != nullptr &&", "if (args.w2_bias != nullptr && thread < 0 &&", "EveryActivation"),
    Mutant("router weight on gate only", "gfx1201", "fp8_block", "epilogue.h",
           "          up *= lds.factor[token];\n", "", "TheRouterWeightMay"),
    Mutant("router weight twice", "gfx950", "bf16", "gemm.h",
           "kPhase == Phase::gate_up ? C::kOnInput : args.on_input == 0", "kPhase == Phase::gate_up ? C::kOnInput : true", "TheRouterWeightMay"),
    Mutant("no router weight", "gfx942", "fp8_tensor", "epilogue.h",
           "v *= lds.factor[token];", ""),
    Mutant("gelu without its tail's sign", "gfx950", "fp16", "formats.h",
           "return v >= 0.0f ? tail : 2.0f - tail;", "return tail;", "EveryActivation"),
    Mutant("tanh's cubic term", "gfx1201", "fp16", "formats.h",
           "0.044715f * gate * gate * gate", "0.044715f * gate * gate", "EveryActivation"),
    Mutant("no clamp of up from below", "gfx942", "fp16", "formats.h",
           "up < -args.limit ? -args.limit : up", "up", "EveryActivation"),
    Mutant("no clamp of gate", "gfx1201", "bf16", "formats.h",
           "gate > args.limit ? args.limit : gate;", "gate;", "EveryActivation"),
    Mutant("staging's swizzle", "gfx942", "fp8_ptpc", "epilogue.h",
           "*reinterpret_cast<const Chunk*>(chunk(token, i));", "*reinterpret_cast<const Chunk*>(chunk(token ^ 1, i));"),
    Mutant("a tile's last columns", "gfx1201", "fp16", "epilogue.h",
           "token < rows && i * kChunkBytes < bytes", "token < rows && (i + 1) * kChunkBytes < bytes"),
    Mutant("the second half of a down tile", "gfx950", "fp8_tensor", "epilogue.h",
           "if (first >= args.hidden) break;", "if (half == 1) break;"),
    Mutant("quantised with the neighbour's scale", "gfx950", "fp8_block", "epilogue.h",
           "divide_by_scale(v[j], lds.h_scale[token], lds.inverse[token])", "divide_by_scale(v[j], lds.h_scale[token ^ 1], lds.inverse[token ^ 1])"),
    Mutant("maximum of one wave", "gfx942", "fp8_block", "epilogue.h",
           "for (int w = 0; w < C::kWaves; ++w) amax", "for (int w = 0; w < 1; ++w) amax"),
    # What the layer is around them.
    Mutant("pairs of earlier chunks", "gfx1201", "bf16", "group_rows.h",
           "before += c < chunk ? n : 0;", "before += c <= chunk ? n : 0;"),
    Mutant("a choice left out of the sum", "gfx942", "fp16", "combine.h",
           "for (int t = 0; t < args.top_k; ++t)", "for (int t = 1; t < args.top_k; ++t)"),
    Mutant("tile of another die", "gfx950", "fp8_block", "tiles.h",
           "min(die, blocks % kDies) + of_die", "of_die"),
    Mutant("NaN of an int8 token", "gfx942", "w8a8_int8", "quantise_rows.h",
           "is_int8 && all > 0x7f800000u", "is_int8 && all > 0xff800000u", "ANaNInAToken"),
    # Barriers: found by another order of the threads, or by what nobody has written yet.
    Mutant("no barrier of a step", "gfx942", "bf16", "gemm.h",
           "tokens.store(lds, (step + 1) & 1, thread);\n      gpu::sync_shared();",
           "tokens.store(lds, (step + 1) & 1, thread);", "*"),
    Mutant("no barrier in front of the rows' way out", "gfx1201", "fp16", "epilogue.h",
           "    gpu::sync_shared();\n    staging.copy_out(", "    staging.copy_out(", "*"),
    Mutant("a barrier for some", "gfx950", "fp8_block", "gemm.h",
           "  name_rows<C, kPhase>(args, tile, lds, thread);\n  gpu::sync();",
           "  name_rows<C, kPhase>(args, tile, lds, thread);\n  if (wave == 0) gpu::sync();"),
]
# fmt: on

WRAPPER = """#define MOE_ARCH {arch}
#include "kernels/hip/emulator/kernels.inc"
extern "C" const std::vector<moegauge::emulator::Kernel>* moegauge_mutant_kernels() {{
  static const std::vector<moegauge::emulator::Kernel> kernels = moe::all();
  return &kernels;
}}
extern "C" const char* moegauge_mutant_architecture() {{ return "{name}"; }}
"""


def compiled(folder, arch, file=None, text=None, formats=None):
    """The kernels of an architecture as a shared object, `file` of the device sources being `text`."""
    device = folder / "kernels/hip/device"
    device.mkdir(parents=True)
    if file:
        (device / file).write_text(text)
    if formats:  # the others' kernels would only be compiled
        lines = (DEVICE / "kernel_list.inc").read_text().splitlines()
        (device / "kernel_list.inc").write_text("\n".join(
            l for l in lines if (m := re.match(r"MOE_GEMM\(\w+, (\w+)", l)) and m[1] in formats) + "\n")
    (folder / "mutant.cc").write_text(WRAPPER.format(arch=arch.capitalize(), name=arch))
    # -Bsymbolic: its own functions and not those of the same names in the tests.
    done = subprocess.run([COMPILER, "-std=c++20", "-O1", "-ffp-contract=off", "-w", "-fPIC", "-shared",
                           "-Wl,-Bsymbolic", f"-I{folder}", f"-I{ROOT}", "mutant.cc", "-o", "mutant.so"],
                          cwd=folder, capture_output=True, text=True)
    return folder / "mutant.so" if done.returncode == 0 else done.stderr


def format_names(schemes):
    """moe::Format's enumerators of the schemes, for kernel_list.inc."""
    named = {"bf16": "bf16", "fp16": "fp16", "w8a8_int8": "int8_channels", "fp8_ptpc": "channel_fp8",
             "fp8_tensor": "channel_fp8", "fp8_block": "block_fp8"}
    return {named[schemes.rstrip("*")]}


def run(mutant_object, arch, schemes, tests):
    return subprocess.run(
        [BINARY, f"--gtest_filter=Hip/Emulated.{tests}*/{arch}_{schemes}", "--gtest_fail_fast"], cwd=ROOT,
        env=os.environ | {"MOEGAUGE_HIP_MUTANT": str(mutant_object)}, capture_output=True, text=True)


def verdict(mutant):
    """Nothing, or why the mutant proves nothing."""
    source = (DEVICE / mutant.file).read_text()
    if source.count(mutant.right) != 1:
        return f"{mutant.file} holds '{mutant.right}' {source.count(mutant.right)} times: bring this list up to date"
    with tempfile.TemporaryDirectory() as folder:
        made = compiled(Path(folder), mutant.arch, mutant.file, source.replace(mutant.right, mutant.wrong),
                        format_names(mutant.schemes))
        if isinstance(made, str):
            return "does not compile:\n" + made
        done = run(made, mutant.arch, mutant.schemes, mutant.tests)
    # A signal: an index far out of its buffer, where the address sanitiser would name it.
    if done.returncode < 0 or (done.returncode == 1 and "[  FAILED  ]" in done.stdout):
        return None
    return f"not caught (exit code {done.returncode}):\n{done.stdout[-600:]}{done.stderr[-600:]}"


class SpoiledKernels(unittest.TestCase):
    def test_the_sources_as_they_are_pass(self):
        for arch, scheme in ("gfx942", "fp8_block"), ("gfx1201", "w8a8_int8"):
            with tempfile.TemporaryDirectory() as folder:
                made = compiled(Path(folder), arch, formats=format_names(scheme))
                self.assertIsInstance(made, Path, made)
                done = run(made, arch, scheme, TILES)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("[  PASSED  ] 1 test.", done.stdout)

    def test_every_mutant_is_caught(self):
        mine = MUTANTS[PART::PARTS]
        with concurrent.futures.ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool:
            for mutant, problem in zip(mine, pool.map(verdict, mine)):
                with self.subTest(mutant=mutant.name, arch=mutant.arch, scheme=mutant.schemes):
                    self.assertIsNone(problem, problem)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--part" in arguments:
        at = arguments.index("--part")
        PART, PARTS = (int(n) for n in arguments[at + 1].split("/"))
        del arguments[at:at + 2]
    BINARY, COMPILER = Path(arguments[0]), arguments[1]
    unittest.main(argv=sys.argv[:1])
