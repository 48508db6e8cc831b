#!/usr/bin/env python3
"""Writes wgmma.cuh: one wrapper for each tile width, since PTX names every register."""
import sys

WIDTHS = [8, 16, 24, 32, 48, 64, 80, 96, 128, 144, 160, 176, 192]
WIDEST_REGISTERS = 96  # of the tiles whose weights come through registers
WIDTH_E4M3_REGISTERS = 64  # of those whose tokens do

HEAD = """// Written by gen_wgmma.py; do not edit.
// Warpgroup matrix multiply, D[64, N] += A[64, k] * B[N, k]^T, both operands in
// shared memory, K-major, 128-byte swizzle. Lane l of warp w holds, for each
// group j of 8 columns, D[16w + l/4 + 8i][8j + 2(l%4) + c] in d[4j + 2i + c].
// bf16_registers, f16_registers: A[16w + l/4 + 8(i%2)][8(i/2) + 2(l%4) + c] in half c of a[i] instead.
// e4m3_registers: A[16w + l/4 + 8(i%2)][16(i/2) + 4(l%4) + c] in byte c of a[i]. s8: sums are 32-bit integers.
#pragma once
#include "kernels/device/platform.h"

namespace moe {

// Descriptor of a K-major tile with 128-byte rows: in the low word the start address
// in units of 16 bytes, which is all that moves; in the high word, the same for all,
// the stride between groups of 8 rows (64 units) and swizzle mode 1 (128 bytes).
MOE_DEVICE u32 wgmma_descriptor(u32 smem) { return ((smem & 0x3ffffu) >> 4) | (1u << 16); }
constexpr u32 kWgmmaDescriptorHigh = 64u | (1u << 30);
MOE_DEVICE void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
MOE_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending>
MOE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving accesses of d across the point.
template <int kCount>
MOE_DEVICE void wgmma_pin(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int kCount>
MOE_DEVICE void wgmma_pin(int (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

template <int kCount>
MOE_DEVICE void wgmma_pin(u32 (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

template <int kN>
struct Wgmma;
"""

# Name, type of sums in C++ and PTX, k of an instruction, types of the operands, what follows the predicate.
KINDS = [
    ("e4m3", "float", "f32", 32, "e4m3.e4m3", ", 1, 1"),
    ("bf16", "float", "f32", 16, "bf16.bf16", ", 1, 1, 0, 0"),
    ("f16", "float", "f32", 16, "f16.f16", ", 1, 1, 0, 0"),
    ("s8", "int", "s32", 32, "s8.s8", ""),
]

def body(n, sums, k, types, tail, halves=False):
    regs = n // 2
    bind = "+r" if sums == "s32" else "+f"
    outputs = ['"%s"(d%d[%d])' % (bind, i // (regs // 2), i % (regs // 2)) if halves else '"%s"(d[%d])' % (bind, i) for i in range(regs)]
    names = ", ".join("%%%d" % i for i in range(regs))
    lines = [
        '    asm volatile(',
        '        "{\\n.reg .pred p;\\n.reg .b64 da, db;\\nsetp.ne.b32 p, %%%d, 0;\\n"' % (regs + 2),
        '        "mov.b64 da, {%%%d, %%%d};\\nmov.b64 db, {%%%d, %%%d};\\n"' % (regs, regs + 3, regs + 1, regs + 3),
        '        "wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s "' % (n, k, sums, types),
        '        "{%s}, "' % names,
        '        "da, db, p%s;\\n}\\n"' % tail,
        '        : %s' % ", ".join(outputs),
        '        : "r"(a), "r"(b), "r"(accumulate), "r"(kWgmmaDescriptorHigh));',
    ]
    return "\n".join(lines)

def body_registers(n, types, k=16, tail=", 1, 1, 0"):
    regs = n // 2
    return "\n".join([
        '    asm volatile(',
        '        "{\\n.reg .pred p;\\n.reg .b64 db;\\nsetp.ne.b32 p, %%%d, 0;\\n"' % (regs + 5),
        '        "mov.b64 db, {%%%d, %%%d};\\n"' % (regs + 4, regs + 6),
        '        "wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s "' % (n, k, types),
        '        "{%s}, "' % ", ".join("%%%d" % i for i in range(regs)),
        '        "{%s}, db, p%s;\\n}\\n"' % (", ".join("%%%d" % (regs + i) for i in range(4)), tail),
        '        : %s' % ", ".join('"+f"(d[%d])' % i for i in range(regs)),
        '        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(accumulate), "r"(kWgmmaDescriptorHigh));',
    ])

def main():
    out = [HEAD]
    for n in WIDTHS:
        out.append("template <>\nstruct Wgmma<%d> {" % n)
        for name, sum_type, sums, k, types, tail in KINDS:
            out.append("  static MOE_DEVICE void %s(%s (&d)[%d], u32 a, u32 b, int accumulate) {" % (name, sum_type, n // 2))
            out.append(body(n, sums, k, types, tail))
            out.append("  }")
        for name in ("bf16", "f16") if n <= WIDEST_REGISTERS else ():
            out.append("  static MOE_DEVICE void %s_registers(float (&d)[%d], const u32 (&a)[4], u32 b, int accumulate) {" % (name, n // 2))
            out.append(body_registers(n, "%s.%s" % (name, name)))
            out.append("  }")
        if n == WIDTH_E4M3_REGISTERS:
            out.append("  static MOE_DEVICE void e4m3_registers(float (&d)[%d], const u32 (&a)[4], u32 b, int accumulate) {" % (n // 2))
            out.append(body_registers(n, "e4m3.e4m3", 32, ", 1, 1"))
            out.append("  }")
        out.append("};\n")
    out.append("// Two tiles of 128 columns whose rows of B follow each other: A is read once for both.\nstruct WgmmaTwice128 {")
    for name, sum_type, sums, k, types, tail in KINDS:
        out.append("  static MOE_DEVICE void %s(%s (&d0)[64], %s (&d1)[64], u32 a, u32 b, int accumulate) {" % (name, sum_type, sum_type))
        out.append(body(256, sums, k, types, tail, halves=True))
        out.append("  }")
    out.append("};\n")
    out.append("}  // namespace moe\n")
    sys.stdout.write("\n".join(out))

main()
