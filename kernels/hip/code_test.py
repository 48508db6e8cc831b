#!/usr/bin/env python3
"""Checks the device code that was compiled ahead: every GEMM kernel multiplies with the matrix
instruction that is meant for its format and architecture and with no other, and nothing is spilled.
The resources of every kernel are kept in results/hip-kernels.csv: a change is shown; fewer waves
than there fails. With --write the table is written anew.

    code_test.py FOLDER [--write]      FOLDER holds moegauge_hip_*.co"""

import csv
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "results/hip-kernels.csv"
FOLDER = Path()
COLUMNS = ["arch", "kernel", "vgpr", "sgpr", "lds_bytes", "waves_per_simd"]

# By format and rows of an instruction, as the disassembler spells them. Written down apart from the
# kernels' own choice (device/matrix.h).
MFMA = {("bf16", 16): "v_mfma_f32_16x16x16_bf16", ("fp16", 16): "v_mfma_f32_16x16x16_f16",
        ("bf16", 32): "v_mfma_f32_32x32x8_bf16", ("fp16", 32): "v_mfma_f32_32x32x8_f16",
        ("block_fp8", 16): "v_mfma_f32_16x16x32_fp8_fp8", ("block_fp8", 32): "v_mfma_f32_32x32x16_fp8_fp8",
        ("channel_fp8", 16): "v_mfma_f32_16x16x32_fp8_fp8", ("channel_fp8", 32): "v_mfma_f32_32x32x16_fp8_fp8",
        ("int8_channels", 16): "v_mfma_i32_16x16x32_i8", ("int8_channels", 32): "v_mfma_i32_32x32x16_i8"}
INSTRUCTIONS = {
    "gfx942": MFMA,
    "gfx950": MFMA | {("bf16", 16): "v_mfma_f32_16x16x32_bf16", ("fp16", 16): "v_mfma_f32_16x16x32_f16",
                      ("bf16", 32): "v_mfma_f32_32x32x16_bf16", ("fp16", 32): "v_mfma_f32_32x32x16_f16"},
    "gfx1201": {("bf16", 16): "v_wmma_f32_16x16x16_bf16", ("fp16", 16): "v_wmma_f32_16x16x16_f16",
                ("block_fp8", 16): "v_wmma_f32_16x16x16_fp8_fp8", ("channel_fp8", 16): "v_wmma_f32_16x16x16_fp8_fp8",
                ("int8_channels", 16): "v_wmma_i32_16x16x16_iu8"},
}
# Registers of a SIMD a lane, what they are given out in, most waves; memory of what shares it, in
# bytes, and the SIMDs there. From the instruction set manuals and LLVM's AMDGPU usage guide.
LIMITS = {"gfx942": (512, 8, 8, 65536, 4), "gfx950": (512, 8, 8, 163840, 4), "gfx1201": (1536, 24, 16, 131072, 4)}
LANES = {"gfx942": 64, "gfx950": 64, "gfx1201": 32}


def tool(name):
    found = shutil.which(name + "-22") or shutil.which(name)
    if not found:
        print(f"{name} is not installed (llvm-22 of Debian has it)")
        sys.exit(77)
    return found


def occupancy(arch, vgpr, lds, threads):
    registers, granule, most, memory, simds = LIMITS[arch]
    waves = min(most, registers // (-(-max(vgpr, 1) // granule) * granule))
    if lds:
        waves = min(waves, memory // lds * (threads // LANES[arch]) // simds)
    return waves


def kernels(arch):
    """Of one code object: {kernel: {field: number}} from its metadata."""
    notes = subprocess.run([tool("llvm-readelf"), "--notes", FOLDER / f"moegauge_hip_{arch}.co"], check=True,
                           capture_output=True, text=True).stdout
    found = {}
    for part in re.split(r"\n  - (?=\.)", notes):
        name = re.search(r"^ *\.name: +(\w+)$", part, re.M)
        if name and ".vgpr_count" in part:
            found[name[1]] = {f: int(n) for f, n in re.findall(r"\.(\w+): +(\d+)$", part, re.M)}
    return found


def matrix_instructions(arch):
    """{kernel: set of matrix instructions}, from the disassembly."""
    lines = subprocess.run([tool("llvm-objdump"), "-d", FOLDER / f"moegauge_hip_{arch}.co"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    found, name = {}, None
    for line in lines:
        if m := re.match(r"[0-9a-f]+ <(\w+)>:", line):
            name = m[1]
            found[name] = set()
        elif m := re.search(r"\b(v_(?:mfma|smfmac|wmma|swmmac)\w*)", line):
            found[name].add(re.sub(r"_e64$", "", m[1]))
    return found


def table():
    rows = []
    for arch in INSTRUCTIONS:
        for name, k in sorted(kernels(arch).items()):
            lds = k["group_segment_fixed_size"]
            waves = occupancy(arch, k["vgpr_count"], lds, k["max_flat_workgroup_size"])
            rows.append([arch, name, *map(str, (k["vgpr_count"], k["sgpr_count"], lds, waves))])
    return rows


class DeviceCode(unittest.TestCase):
    def test_every_gemm_uses_the_instruction_that_is_meant(self):
        for arch, meant in INSTRUCTIONS.items():
            seen = matrix_instructions(arch)
            gemms = {n: re.match(r"(?:gate_up|down)_(\w+)_t\d+_c\d+_w\d+_d(\d+)_", n) for n in seen}
            self.assertEqual({(m[1], int(m[2])) for m in gemms.values() if m} - set(meant), set())
            self.assertEqual({m[1] for m in gemms.values() if m}, {f for f, _ in meant})
            for name, instructions in seen.items():
                m = gemms[name]
                with self.subTest(arch=arch, kernel=name):
                    self.assertEqual(instructions, {meant[m[1], int(m[2])]} if m else set())

    def test_nothing_is_spilled(self):
        for arch in INSTRUCTIONS:
            for name, k in kernels(arch).items():
                with self.subTest(arch=arch, kernel=name):
                    self.assertEqual([k["private_segment_fixed_size"], k["vgpr_spill_count"], k["sgpr_spill_count"]],
                                     [0, 0, 0])

    def test_no_kernel_lost_waves(self):
        if not TABLE.is_file():
            self.skipTest(f"there is no {TABLE.name}: run this script with --write and commit it")
        with TABLE.open() as table_file:
            kept = {(r["arch"], r["kernel"]): r for r in csv.DictReader(table_file)}
        now = {(r[0], r[1]): dict(zip(COLUMNS, r)) for r in table()}
        self.assertEqual(set(kept), set(now), f"run this script with --write and commit {TABLE.name}")
        for key, row in now.items():
            if row != kept[key]:
                print("changed:", " ".join(key), *(f"{c} {kept[key][c]} -> {row[c]}"
                                                   for c in COLUMNS[2:] if row[c] != kept[key][c]))
            with self.subTest(kernel=key):
                self.assertGreaterEqual(int(row["waves_per_simd"]), int(kept[key]["waves_per_simd"]))


if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    if "--write" in sys.argv:
        with TABLE.open("w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows([COLUMNS, *table()])
        sys.exit()
    unittest.main(argv=sys.argv[:1])
