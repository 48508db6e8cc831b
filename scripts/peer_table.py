#!/usr/bin/env python3
"""Markdown table of results of suites/peer-h200.json against the peer and the floor.

peer_table.py RESULT.json [NEWER.json ..] PEER.json > docs/performance/h200.md

A layer's rows under one routing are all of the last result that has them: no row of two builds.
"""
import json
import math
import sys

# The peer file's name for a model and scheme, and ours for people.
LAYERS = {
    ("qwen3-30b-a3b", "fp8_block"): ("qwen3-30b-a3b", "Qwen3-30B-A3B, block FP8"),
    ("deepseek-v3", "fp8_block"): ("deepseek-v3", "DeepSeek-V3, block FP8"),
    ("llama-4-scout", "fp8_ptpc"): ("llama-4-scout", "Llama-4-Scout, PTPC FP8"),
    ("mixtral-8x7b", "bf16"): ("mixtral-8x7b", "Mixtral-8x7B, bf16"),
    ("mixtral-8x7b", "w4a16_g128"): ("mixtral-8x7b-w4a16", "Mixtral-8x7B, W4A16 with groups of 128"),
}
HEAD = """# Our layers on an H200, measured by moegauge

Made by `scripts/peer_table.py` from the files named below; do not edit.

{results}
- `{peer}`

Microseconds a call, median. *default*, *tuned*: our configuration where nothing was tuned, and the tuned file's.
*peer*: the better of vLLM's tuned and default Triton layer. *floor*: bytes and arithmetic that no layer can save, at
the rates in the peer's file, for the experts that uniform routing touches on average. *own*: the part of our time that our
own floor takes: the experts that the drawn routings touched, at the rates measured in the same run; where a rank holds few of
the experts it tells luck in the draw from speed. *GEMMs*: the best peer's two GEMM stages alone. *zipf*: the better of ours
under zipf:1.0 routing. Ours are rows between which the card rests as long as it worked, so that its power limit does not
lower its clocks ([method](../method.md#latency)); the peer's and the GEMMs' were replayed without pauses.
*error*: relative L2 against the oracle with the same operands and rounding points, and the worst token's.
"""
COLUMNS = ["M", "default", "tuned", "peer", "peer / ours", "floor", "ours / floor", "own", "GEMMs", "zipf", "error", "worst token"]


def index(cases):
    """{(model, scheme, tp, ep): {tokens: {(routing, config source): case}}} of the cases in their order."""
    layers = {}
    for case in cases:
        layer = (case["model"], case["scheme"], case["tp"], case["ep"])
        row = layers.setdefault(layer, {}).setdefault(case["tokens"], {})
        row[case["routing"], case["config"]["source"]] = case
    return layers


def best(row, routing):
    ok = [c for (r, _), c in row.items() if r == routing and c["status"] == "ok"]
    return min(ok, key=lambda c: c["latency_us"]["median"], default=None)


def median(row, source):
    case = row.get(("uniform", source))
    return "%.1f" % case["latency_us"]["median"] if case and case["status"] == "ok" else ""


def line(tokens, row, peer):
    """The row's cells and peer / ours; no row where ours has no time."""
    ours, zipf = best(row, "uniform"), best(row, "zipf:1.0")
    if ours is None:
        return None, None
    us, error = ours["latency_us"]["median"], ours["error"]["implementation"]
    ratio = peer["peer_us"] / us
    cells = [str(tokens), median(row, "default"), median(row, "tuned"), "%.1f" % peer["peer_us"], "%.2f" % ratio,
             "%.1f" % peer["floor_us"], "%.2f" % (us / peer["floor_us"]),
             "%.0f%%" % (100 * ours["roofline"]["fraction"]), str(peer.get("gemm_sum_us", "")),
             "%.1f" % zipf["latency_us"]["median"] if zipf else "", "%.1e" % error["relative_l2"], "%.1e" % error["worst_token"]]
    return cells, ratio


def table(title, rows, peer):
    out = ["", "## " + title, ""]
    out += ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
    ratios = []
    for tokens in sorted(rows):
        cells, ratio = line(tokens, rows[tokens], peer[str(tokens)])
        if cells is None:
            continue
        ratios.append(ratio)
        out.append("| " + " | ".join(cells) + " |")
    if not ratios:
        return []
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return out + ["", "Geometric mean of peer / ours over %d sizes: %.2f" % (len(ratios), mean)]


def title_of(layer):
    model, scheme, tp, ep = layer
    ranks = "".join(", %s%d" % (kind, n) for kind, n in (("TP", tp), ("EP", ep)) if n > 1)
    return LAYERS[model, scheme][1] + ranks


def report(*paths):
    *result_paths, peer_path = paths
    with open(peer_path) as file:
        peer = json.load(file)["layers"]
    cases, lines = {}, []  # by layer and routing
    for path in result_paths:
        with open(path) as file:
            result = json.load(file)
        own = {}
        for case in result["cases"]:
            layer = (case["model"], case["scheme"], case["tp"], case["ep"])
            if LAYERS.get(layer[:2], (None,))[0] in peer:
                own.setdefault((layer, case["routing"]), []).append(case)
        cases.update(own)
        routings = ", ".join(dict.fromkeys(routing for _, routing in own))
        titles = "; ".join(dict.fromkeys(title_of(layer) for layer, _ in own))
        context = result["context"]
        lines.append("- `%s` (suite `%s`, %s): %s routing of %s" % (path, context["suite"], context["date"][:10], routings, titles))
    layers = index(case for held in cases.values() for case in held)
    out = [HEAD.format(results="\n".join(lines), peer=peer_path)]
    for layer, rows in layers.items():
        out += table(title_of(layer), rows, peer[LAYERS[layer[:2]][0]])
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    sys.stdout.write(report(*sys.argv[1:]))
