#!/usr/bin/env python3
"""Markdown table of bench results against the peer and the floor.

table.py UNIFORM.json[,..] ZIPF.json[,..] PEER.json > docs/performance/cuda-h200.md
"""
import json
import math
import sys

LAYERS = [("qwen3-30b-a3b", "Qwen3-30B-A3B, block FP8"), ("deepseek-v3", "DeepSeek-V3 EP8, block FP8"),
          ("llama-4-scout", "Llama-4-Scout TP4, PTPC FP8"), ("mixtral-8x7b", "Mixtral-8x7B TP2, bf16"),
          ("mixtral-8x7b-w4a16", "Mixtral-8x7B TP2, W4A16 with groups of 128")]


def best(rows):
    table = {}
    for r in rows:
        key = (r["layer"], r["tokens"])
        slot = table.setdefault(key, {"best": None, "default": None})
        if not r["ok"] or not r["median_us"]:
            continue
        if slot["best"] is None or r["median_us"] < slot["best"]["median_us"]:
            slot["best"] = r
        if r["default"]:
            slot["default"] = r
    return table


def main(uniform_path, zipf_path, peer_path):
    uniform, zipf = (best([r for p in paths.split(",") for r in json.load(open(p))["rows"]]) for paths in (uniform_path, zipf_path))
    peer = json.load(open(peer_path))["layers"]
    print("# Our CUDA layers on an H200\n")
    print("Made by `kernels/cuda/bench/table.py` from the files named below; do not edit.\n")
    for paths in (uniform_path, zipf_path, peer_path):
        for p in paths.split(","):
            print("- `%s`" % p)
    print("\nMicroseconds a call. *best*: the fastest configuration measured; *default*: the one taken untuned. *peer*: the"
          "\nbetter of vLLM's tuned and default Triton layer. *GEMMs*: the best peer's two GEMM stages alone. *error*: relative"
          "\nL2 against the fp64 layer with the same operands and rounding points, and the worst token's.\n")
    for layer, title in LAYERS:
        print("## %s\n" % title)
        print("| M | best | configuration | default | peer | peer / best | floor | best / floor | GEMMs | zipf:1.0 | error | worst token |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        ratios = []
        for tokens in sorted(t for l, t in uniform if l == layer):
            u = uniform[layer, tokens]
            b, d, p = u["best"], u["default"], peer[layer][str(tokens)]
            z = zipf.get((layer, tokens), {}).get("best")
            ratios.append(p["peer_us"] / b["median_us"])
            print("| %d | %.1f | %s | %s | %.1f | %.2f | %.1f | %.2f | %s | %s | %s | %s |" % (
                tokens, b["median_us"], b["variant"], "%.1f" % d["median_us"] if d else "", p["peer_us"], ratios[-1], p["floor_us"],
                b["median_us"] / p["floor_us"], p.get("gemm_sum_us", ""), "%.1f" % z["median_us"] if z else "",
                *("%.1e" % b[k] if b["checked"] else "not checked" for k in ("relative_l2", "worst_token"))))
        print("\nGeometric mean of peer / best over %d sizes: %.2f\n" % (len(ratios), math.exp(sum(map(math.log, ratios)) / len(ratios))))


main(*sys.argv[1:4])
