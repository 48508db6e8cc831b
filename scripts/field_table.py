#!/usr/bin/env python3
"""Markdown tables of results of the suites that ask what the field asks: ptpc-vs-backends, mxfp8-converted,
tuned-vs-default, router-weight-on-input, wna16-expert-scaling; and of schemes-cpu.

field_table.py RESULT.json... > docs/performance/field-cpu.md
"""
import json
import math
import re
import sys

# Per suite: the coordinate in which rivals differ, the one that runs down a table, and what the table says.
SUITES = {
    "ptpc-vs-backends": ("executed_backend", "tokens", "PTPC and per-tensor FP8, by backend"),
    "mxfp8-converted": ("scheme", "tokens", "MXFP8 as it is, and converted to block FP8"),
    "tuned-vs-default": ("config", "tokens", "Tuned against default config"),
    "router-weight-on-input": ("model", "tokens", "Router weight on the input, and on the output"),
    "wna16-expert-scaling": ("config", "experts", "One launch for all experts, and one per expert"),
    "schemes-cpu": ("tokens", "scheme", "Every scheme beside bf16"),
}
# Whose column the others are held against is that of each row's own batch size in this scheme.
BESIDE = {"schemes-cpu": "bf16"}
HEAD = """# What the field asks, on this machine's terms

Made by `scripts/field_table.py` from the files named below; do not edit.

Microseconds a call, median; `~` marks a median whose 95% interval is wider than 1% either way. A ratio is the first column's
time over the other's, with a 95% interval: above 1, the other is faster. It was measured in alternation where rivals share a
point, and else (marked `m`) is that of the medians with the widest interval that theirs allow. *format*, *kernel*: what the number format costs and what
the kernel adds, relative L2. *of floor*: the part of the time that the case's bytes and operations take at the rates measured
in the same run. Each row is a verdict of its own; no mean decides.
"""


def value(case, key):
    """A coordinate as tables show it."""
    if key == "config":
        return case["config"]["asked"] if case["config"]["asked"] in ("default", "tuned") else shown_config(case)
    if key == "experts":
        found = re.search(r"experts-(\d+)", case["model"])
        return int(found.group(1)) if found else case["model"]
    if key == "executed_backend":
        return case.get(key) or case["backend"]
    if key == "model":
        return re.sub(r"^.*/|\.json$", "", case["model"])
    return case[key]


def shown_config(case):
    asked = case["config"]["asked"]
    given = json.loads(asked) if isinstance(asked, str) and asked.startswith("{") else asked
    return ", ".join("%s=%s" % pair for pair in given.items()) if isinstance(given, dict) else str(asked)


def blocks(cases, across, down):
    """{title: {value of `down`: {value of `across`: case}}} of the cases in their order."""
    found = {}
    for case in cases:
        title = []
        for key in ("model", "scheme", "executed_backend", "config"):
            if key in (across, down, "executed_backend") or (key == "model" and down == "experts"):
                continue
            if key == "config" and value(case, key) == "default":
                title.append("default config")
            else:
                title.append(str(value(case, key)))
        title += ["%s%d" % (kind.upper(), case[kind]) for kind in ("tp", "ep") if case[kind] > 1]
        rows = found.setdefault(", ".join(title), {})
        rows.setdefault(value(case, down), {})[value(case, across)] = case
    return found


def time_of(case):
    if case is None:
        return ""
    if case["status"] != "ok":
        return case["status"]
    t = case["latency_us"]
    wide = max(t["ci_high"] - t["median"], t["median"] - t["ci_low"]) > 0.01 * t["median"]
    return ("%.0f%s" if t["median"] >= 1000 else "%.4g%s") % (t["median"], "~" if wide else "")


def ratio_of(first, other, comparisons):
    """(ratio, low, high, whether of medians) of first / other; None where one has no time."""
    if first is None or other is None or "ok" != first["status"] or "ok" != other["status"]:
        return None
    known = comparisons.get((first["id"], other["id"]))
    if known:
        return known["ratio"], known["ci_low"], known["ci_high"], False
    known = comparisons.get((other["id"], first["id"]))
    if known:
        return 1 / known["ratio"], 1 / known["ci_high"], 1 / known["ci_low"], False
    a, b = first["latency_us"], other["latency_us"]
    return a["median"] / b["median"], a["ci_low"] / b["ci_high"], a["ci_high"] / b["ci_low"], True


def shown_ratio(found):
    if found is None:
        return "", ""
    ratio, low, high, medians = found
    verdict = "faster" if low > 1 else "slower" if high < 1 else "cannot tell"
    return "%.3f [%.3f, %.3f]%s" % (ratio, low, high, " m" if medians else ""), verdict


def errors_of(case):
    error = (case or {}).get("error")
    if not error or case["status"] != "ok":
        return ["", ""]
    return ["%.2g" % error[kind]["relative_l2"] for kind in ("quantization", "implementation")]


def summary(ratios, name):
    """What counting and averaging say of the same ratios."""
    faster = sum(low > 1 for _, low, _, _ in ratios)
    slower = sum(high < 1 for _, _, high, _ in ratios)
    mean = math.exp(sum(math.log(r[0]) for r in ratios) / len(ratios))
    return "%s: faster at %d, slower at %d of %d; geometric mean of the ratios %.3f." % (name, faster, slower, len(ratios), mean)


def table(title, rows, down, comparisons):
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    if not any(c["status"] == "ok" for row in rows.values() for c in row.values()):
        return ["", "### " + title, "", "Nothing was measured."] + reasons(rows)
    first, others = names[0], names[1:]
    head = ["M" if down == "tokens" else "E"] + ["%s us" % n for n in names]
    for other in others:
        head += ["%s / %s" % (first, other), other]
    head += ["%s %s" % (n, kind) for n in names for kind in ("format", "kernel")]
    out = ["", "### " + title, "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    all_ratios = {other: [] for other in others}
    for key in sorted(rows):
        cells = [str(key)] + [time_of(rows[key].get(n)) for n in names]
        for other in others:
            found = ratio_of(rows[key].get(first), rows[key].get(other), comparisons)
            if found:
                all_ratios[other].append(found)
            cells += shown_ratio(found)
        for n in names:
            cells += errors_of(rows[key].get(n))
        out.append("| " + " | ".join(cells) + " |")
    said = [summary(r, other) for other, r in all_ratios.items() if r]
    return out + ([""] + said if said else []) + reasons(rows)


def table_beside(title, rows, beside, comparisons):
    """A row per scheme: at each batch size its time, how near its floor, and the ratio of the time of `beside` to it."""
    tokens = sorted({m for row in rows.values() for m in row})
    head = ["scheme"]
    for m in tokens:
        head += ["M=%d us" % m, "of floor", "%s / this" % beside]
    head += ["M=%d %s" % (tokens[-1], kind) for kind in ("format", "kernel")]
    out = ["", "### " + title, "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, row in rows.items():
        cells = [name]
        for m in tokens:
            case = row.get(m)
            ok = case is not None and case["status"] == "ok"
            ratio, _ = shown_ratio(ratio_of(rows[beside].get(m), case, comparisons))
            cells += [time_of(case), "%.0f%%" % (100 * case["roofline"]["fraction"]) if ok else "", "" if name == beside else ratio]
        out.append("| " + " | ".join(cells + errors_of(row.get(tokens[-1]))) + " |")
    return out + reasons(rows)


def reasons(rows):
    """Why a case has no time, each reason once."""
    told = {}
    for row in rows.values():
        for name, case in row.items():
            if case["status"] != "ok":
                told.setdefault((name, case["status"], case.get("reason", "")), None)
    return [""] + ["- %s: %s: %s" % reason for reason in told] if told else []


def report(paths):
    out = [HEAD]
    for path in paths:
        with open(path) as file:
            result = json.load(file)
        context, suite = result["context"], result["context"]["suite"]
        if suite not in SUITES:
            raise SystemExit("field_table: %s: there is no table for suite %s; %s" % (path, suite, ", ".join(SUITES)))
        across, down, title = SUITES[suite]
        comparisons = {(c["a"], c["b"]): c for c in result.get("comparisons", [])}
        devices = sorted({c["device"] for c in result["cases"] if c.get("device") and c["status"] == "ok"})
        out += ["", "## " + title, "", "`%s` (suite `%s`, %s, %s)" % (path, suite, context["date"][:10], ", ".join(devices))]
        for name, rows in blocks(result["cases"], across, down).items():
            if suite in BESIDE:
                out += table_beside(name, rows, BESIDE[suite], comparisons)
            else:
                out += table(name, rows, down, comparisons)
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    sys.stdout.write(report(sys.argv[1:]))
