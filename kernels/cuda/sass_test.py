#!/usr/bin/env python3
"""The layer kernels' machine code has the matrix instruction that is meant, and the copy engine's.

Compiles every kind of tile of every scheme with NVRTC, as the backend does, and disassembles it. Skipped, with
the reason, where NVRTC or nvdisasm (of the toolkit, or the Python package nvidia-cuda-nvdisasm) is missing.
"""
import ctypes
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Experts, K, N, top_k, router weight on input; then tile, stages, promote, split, tokens as M, pairs, dealt.
SHAPE = "8, 512, 256, 2, false"
KINDS = {
    "split": "8, 4, {promote}, true, false, false, 2",
    "whole": "80, 4, {promote}, false, false, false, 1",
    "paired": "80, 4, {promote}, false, false, true, 1",
    "token_rows": "128, 4, {promote}, false, true, false, 1",
    "pairs": "128, 4, {promote}, false, true, true, 1",
}
# Scheme, whether sums are promoted, the instruction.
MEANT = [("fp8_block", True, "QGMMA"), ("fp8_ptpc", True, "QGMMA"), ("fp8_ptpc", False, "QGMMA"), ("half", False, "HGMMA"), ("mxfp8", True, "QGMMA"),
         ("w8a8_int8", False, "IGMMA"), ("e2m1", False, "HGMMA")]
# Kinds of tile that a scheme does not have.
WITHOUT = {"mxfp8": ("whole", "paired", "token_rows", "pairs"), "e2m1": ("paired", "token_rows", "pairs")}
# What follows a tile's parameters: columns of a scale, zero points.
WITH = {"e2m1": ", 32, false"}
# Warp-level matrix instructions: what a kernel off the fast path would use.
SLOW = re.compile(r"\b(HMMA|IMMA|QMMA)\b")


def find_nvdisasm():
    if shutil.which("nvdisasm"):
        return shutil.which("nvdisasm")
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else []:
        for found in pathlib.Path(folder).glob("*/bin/nvdisasm"):
            return str(found)
    return None


def open_nvrtc():
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


NVRTC, NVDISASM = open_nvrtc(), find_nvdisasm()


def compile_layer(config):
    source = '#include "kernels/cuda/device/layer.cuh"\nusing C = moe::LayerConfig<moe::Scheme::%s>;\n' % config
    source += "template __global__ void moe::layer_kernel<C>(const __grid_constant__ moe::LayerArgs);\n"
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    NVRTC.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"layer.cu", 0, None, None)
    options = [b"-std=c++17", b"-arch=sm_90a", b"-I" + str(ROOT).encode()]
    result = NVRTC.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if result != 0:
        NVRTC.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        NVRTC.nvrtcGetProgramLog(program, log)
        raise AssertionError(log.value.decode())
    NVRTC.nvrtcGetCUBINSize(program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    NVRTC.nvrtcGetCUBIN(program, image)
    NVRTC.nvrtcDestroyProgram(ctypes.byref(program))
    return image.raw


def disassemble(image):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        return subprocess.run([NVDISASM, file.name], check=True, capture_output=True, text=True).stdout


class Sass(unittest.TestCase):
    def test_every_kind_of_tile_multiplies_with_the_instruction_meant(self):
        for scheme, promote, instruction in MEANT:
            for kind, tile in KINDS.items():
                if kind in WITHOUT.get(scheme, ()):
                    continue
                with self.subTest(scheme=scheme, promote=promote, kind=kind):
                    code = disassemble(compile_layer("%s, %s, %s" % (scheme, SHAPE, tile.format(promote=str(promote).lower()) + WITH.get(scheme, ""))))
                    self.assertRegex(code, r"\b%s\b" % instruction)
                    self.assertRegex(code, r"\bUTMALDG\b")  # tokens
                    self.assertRegex(code, r"\bUBLKCP\b")  # weights
                    self.assertNotRegex(code, SLOW)


if __name__ == "__main__":
    if NVRTC is None or NVDISASM is None:
        print("skipped: %s not found" % ("NVRTC" if NVRTC is None else "nvdisasm (package nvidia-cuda-nvdisasm)"))
        sys.exit(77)
    unittest.main()
