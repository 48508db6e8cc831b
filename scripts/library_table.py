#!/usr/bin/env python3
"""Markdown tables of results of suites/library-h200.json and suites/wna16-expert-scaling-h200.json: a layer of our own
kernels beside one library GEMM for each expert, and both stage by stage.

library_table.py RESULT.json ... > docs/performance/library-h200.md
"""
import json
import re
import sys

HEAD = """# One launch for all experts, and one library GEMM for each

Made by `scripts/library_table.py` from the files named below; do not edit.

{results}

Microseconds a call, median; `~` marks a median whose 95% interval is wider than 1% either way, `-` a case that was not measured
or has no latency. *cuda*: our kernels. *cublaslt*: kernels of ours around one cuBLASLt GEMM for each expert that has rows, twice
a layer. *graph*: the library's launches were captured for the routing of each call, as if the host had known it, which favours the
library; *eager*: the host reads each call's counts back and launches. *library / cuda*: above 1 our kernels are faster; both by
graph. *kernel error*: relative L2 against the oracle with the same operands and declared rounding points; the library's.

Stages: events between launches in a run of its own, eager and without overlap, so that they add up to more than a call takes;
of `cuda` one kernel does both GEMMs and what is between them, of `cublaslt` *prepare* holds the host's wait for the counts.
"""
BACKENDS = ("cuda", "cublaslt")


def layer_name(case):
    name = re.sub(r"^.*/|\.json$", "", case["model"])
    ranks = "".join(" %s %d" % (key.upper(), case[key]) for key in ("tp", "ep") if case[key] != 1)
    return "%s%s, %s" % (name, ranks, case["scheme"])


def experts(case):
    found = re.search(r"experts-(\d+)", case["model"])
    return int(found.group(1)) if found else None


def tables(cases):
    """{title: (what runs down, {its value: {(backend, launch): case}})} in the cases' order."""
    found = {}
    for case in cases:
        count = experts(case)
        if count is None:
            title, down, row = layer_name(case), "M", case["tokens"]
        else:
            title = "Expert scaling, %s, M = %d" % (case["scheme"], case["tokens"])
            down, row = "experts", count
        rows = found.setdefault(title, (down, {}))[1]
        rows.setdefault(row, {})[case["backend"], case["launch"]] = case
    return found


def is_ok(case):
    return case is not None and case["status"] == "ok"


def shown(case):
    if not is_ok(case):
        return "-"
    return "%s%.4g" % ("~" if case.get("unstable") else "", case["latency_us"]["median"])


def median(case):
    return case["latency_us"]["median"] if is_ok(case) else None


def stages(case):
    if not is_ok(case) or not case.get("stages_us"):
        return "-"
    order = ["layer", "prepare", "gemm1", "activation", "gemm1 to gemm2", "gemm2", "reduce"]
    return ", ".join("%s %.3g" % (name, case["stages_us"][name]) for name in order if name in case["stages_us"])


def table(title, down, rows):
    eager = [b for b in BACKENDS if any((b, "eager") in row for row in rows.values())]
    head = [down, "cuda", "cublaslt", "library / cuda"] + [b + " eager" for b in eager]
    head += ["kernel error", "cuda stages", "cublaslt stages"]
    lines = ["## " + title, "", "| %s |" % " | ".join(head), "|" + " --- |" * len(head)]
    for key, row in rows.items():
        own, library = (row.get((backend, "graph")) for backend in BACKENDS)
        times = median(own), median(library)
        cells = [str(key), shown(own), shown(library), "%.2f" % (times[1] / times[0]) if all(times) else "-"]
        cells += [shown(row.get((backend, "eager"))) for backend in eager]
        cells += ["%.1e" % library["error"]["implementation"]["relative_l2"] if is_ok(library) else "-"]
        lines.append("| %s |" % " | ".join(cells + [stages(own), stages(library)]))
    return lines + [""]


def page(results):
    """Lines of the page of {file name: result}."""
    lines = [HEAD.format(results="\n".join("- `%s`" % name for name in results))]
    for result in results.values():
        for title, (down, rows) in tables(result["cases"]).items():
            lines += table(title, down, rows)
    return lines


def text(files):
    results = {}
    for name in files:
        with open(name, encoding="utf-8") as file:
            results[name] = json.load(file)
    return "\n".join(page(results)).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(text(sys.argv[1:]))
