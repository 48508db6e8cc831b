#!/usr/bin/env python3
"""Markdown table of a result of suites/ops-cpu.json: the one in docs/ops.md.

ops_table.py RESULT.json
"""
import json
import sys


def shown(us):
    return "%.1f" % us if us < 100 else "%.0f" % us


def table(path):
    with open(path) as file:
        cases = json.load(file)["cases"]
    cases = [c for c in cases if c["status"] == "ok" and c["inputs"] == "gaussian"]
    tokens = sorted({c["tokens"] for c in cases})
    rows = {}
    for c in cases:
        label = c["id"].split("/")[0]
        ranks = "".join(", %s %d" % (kind, c[kind]) for kind in ("tp", "ep") if c[kind] > 1)
        rows.setdefault((label, c["model"] + ranks, c["scheme"]), {})[c["tokens"]] = shown(c["latency_us"]["median"])
    head = ["op", "model", "scheme"] + ["M=%d" % m for m in tokens]
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (label, model, scheme), row in rows.items():
        out.append("| `%s` | %s | %s | " % (label, model, scheme) + " | ".join(row.get(m, "") for m in tokens) + " |")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sys.stdout.write(table(sys.argv[1]))
