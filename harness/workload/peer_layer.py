"""A Mixture-of-Experts layer in numpy, and safetensors files byte by byte, for the tests that hold our
oracle and readers against them. Nothing of ours takes part."""

import json
import re
import struct

import ml_dtypes
import numpy as np

DTYPES = {
    "BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32, "F64": np.float64, "I32": np.int32,
    "I64": np.int64, "U8": np.uint8, "I8": np.int8, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E8M0": np.uint8,
}


def dump_name(case_id):
    """The file that `run --dump` writes for a case, from its id: as docs/replay.md says it."""
    value = 0xcbf29ce484222325
    for byte in case_id.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"case-{re.sub('[^A-Za-z0-9.=-]', '_', case_id[-180:])}-{value:016x}"[:-8] + ".safetensors"


def write(path, tensors, metadata=None):
    """tensors: name -> array, or (dtype name, array of its bytes' type)."""
    names = {np.dtype(v): k for k, v in reversed(DTYPES.items())}
    names[np.dtype(np.uint8)] = "U8"
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, value in tensors.items():
        dtype, array = value if isinstance(value, tuple) else (names[value.dtype], value)
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """(name -> array, metadata)."""
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__", {})
    body = raw[8 + size:]
    return {name: np.frombuffer(body[t["data_offsets"][0]:t["data_offsets"][1]], DTYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}, metadata


def bf16(values):
    return np.asarray(values, np.float32).astype(ml_dtypes.bfloat16)


def silu(gate, up):
    return gate / (1 + np.exp(-gate)) * up


def swiglu_clamped(alpha, beta, limit):
    def act(gate, up):
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
        return (up + beta) * gate / (1 + np.exp(-alpha * gate))
    return act


def same(values):
    return values


def half(values):
    """What 16-bit activations are on their way into a product."""
    return bf16(values).astype(np.float64)


def fp8_groups(width):
    """E4M3 per row and group of `width` columns, as fp8_block quantises activations."""
    def quantise(values):
        values = np.asarray(values, np.float32)
        out = np.zeros(values.shape, np.float64)
        for begin in range(0, values.shape[1], width):
            group = values[:, begin:begin + width]
            amax = np.maximum(np.abs(group).max(1, keepdims=True), np.float32(1e-10))
            scale = amax / np.float32(448)
            codes = np.clip(group / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn)
            out[:, begin:begin + width] = codes.astype(np.float64) * scale
        return out
    return quantise


def layer(x, w13, w2, ids, weights, act=silu, b13=None, b2=None, interleaved=False, on_input=False,
          quantise=same, expert_map=None):
    """y in fp64. `quantise` is what a kernel makes of activations before each product."""
    x = np.asarray(x, np.float64)
    w13, w2 = np.asarray(w13, np.float64), np.asarray(w2, np.float64)
    y = np.zeros((x.shape[0], w2.shape[1]))
    xq = quantise(x)
    n = w13.shape[1] // 2
    for m in range(x.shape[0]):
        for slot, expert in enumerate(ids[m]):
            local = expert if expert < 0 or expert_map is None else expert_map[expert]
            if local < 0:
                continue
            weight = float(weights[m, slot])
            both = w13[local] @ xq[m] + (0 if b13 is None else b13[local])
            if on_input:
                both = both * weight
            gate, up = (both[0::2], both[1::2]) if interleaved else (both[:n], both[n:])
            h = quantise(act(gate, up)[None, :])[0]
            y[m] += (w2[local] @ h + (0 if b2 is None else b2[local])) * (1 if on_input else weight)
    return y


def block_scales(values, rows=128, cols=128):
    """(codes, scales) of E4M3 with a scale per block, and the values that they stand for."""
    values = np.asarray(values, np.float32)
    down, across = -(-values.shape[0] // rows), -(-values.shape[1] // cols)
    scales = np.zeros((down, across), np.float32)
    codes = np.zeros(values.shape, np.uint8)
    for i in range(down):
        for j in range(across):
            at = np.s_[i * rows:(i + 1) * rows, j * cols:(j + 1) * cols]
            scales[i, j] = np.abs(values[at]).max() / np.float32(448)
            codes[at] = np.clip(values[at] / scales[i, j], -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    return codes, scales, from_blocks(codes, scales, rows, cols)


def from_blocks(codes, scales, rows=128, cols=128):
    grid = np.repeat(np.repeat(np.asarray(scales, np.float64), rows, 0), cols, 1)[:codes.shape[0], :codes.shape[1]]
    return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64) * grid


E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def nibbles(codes):
    """Packs the last axis, low nibble first."""
    codes = np.asarray(codes, np.uint8)
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros(codes.shape[:-1] + (1,), np.uint8)], -1)
    return codes[..., 0::2] | codes[..., 1::2] << 4


def relative(a, b):
    return np.linalg.norm(np.asarray(a, np.float64) - b) / np.linalg.norm(b)
