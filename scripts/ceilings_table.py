#!/usr/bin/env python3
"""Would latencies of several processes agree better if each were divided by the ceilings that its own process
measured? Prints docs/method.md's table from results. With --keep OUT FILE...: writes OUT, what is looked at of
result files of one suite (the medians, the ceilings, which of them bounds the case), so that it can be kept
where the whole files are too large."""

import argparse
import fnmatch
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ["results/baselines/NVIDIA_H200/ceilings-leases.json", "results/baselines/CPU_avx512_bf16/ceilings-processes.json"]
SINGLE = "results/baselines/NVIDIA_H200"


def seen(path):
    """(case, kernel): latency and the two rates of one process."""
    data = json.loads(Path(path).read_text())
    for case in data["cases"]:
        telemetry = case.get("telemetry") or {}
        if case["status"] != "ok" or "read_gbytes_per_s" not in telemetry:
            continue
        yield (case["id"], case["config"].get("hash", "")), {
            "median_us": case["latency_us"]["median"], "read_gbytes_per_s": telemetry["read_gbytes_per_s"],
            "dot_tflops": telemetry["dot_tflops"]}


def keep(out, files, only):
    """Cases that match `only` and that every file has with the same compiled kernel."""
    processes = [dict(seen(file)) for file in files]
    common = [key for key in processes[0]
              if fnmatch.fnmatchcase(key[0], only) and all(key in process for process in processes)]
    data = json.loads(Path(files[0]).read_text())
    devices = {case["device"] for case in data["cases"] if case["status"] == "ok"}
    dates = [json.loads(Path(file).read_text())["context"]["date"] for file in files]
    rows = [{"id": key[0], "kernel": key[1], "processes": [process[key] for process in processes]} for key in common]
    head = json.dumps({"what": "medians of the same kernels in several processes, with the ceilings each measured",
                       "suite": data["context"]["suite"], "device": sorted(devices)[0], "dates": dates})
    lines = ",\n".join(json.dumps(row) for row in rows)
    Path(out).write_text(f"{head[:-1]}, \"cases\": [\n{lines}\n]}}\n")


def spread(values):
    """Of processes, within each case: the root of the mean variance of ln."""
    logs = [[math.log(value) for value in case] for case in values]
    return math.sqrt(statistics.mean(statistics.variance(case) for case in logs))


def normalised(case, rate):
    """A time that follows the rate is inversely proportional to it."""
    return [process["median_us"] * process[rate] for process in case["processes"]]


def rows_of(path):
    data = json.loads((ROOT / path).read_text())
    cases = data["cases"]
    raw = spread([[process["median_us"] for process in case["processes"]] for case in cases])
    rates = {rate: spread([[process[rate] for process in case["processes"]] for case in cases])
             for rate in ("read_gbytes_per_s", "dot_tflops")}
    divided = {rate: spread([normalised(case, rate) for case in cases]) for rate in rates}
    # The best that any choice between the two, case by case, could do.
    either = math.sqrt(statistics.mean(
        min(statistics.variance(math.log(value) for value in normalised(case, rate)) for rate in rates)
        for case in cases))
    name = f"{data['device'].split('/')[0]}, `{data['suite']}`, {len(cases)} cases in {len(data['dates'])} processes"
    cells = [raw, rates["read_gbytes_per_s"], rates["dot_tflops"], divided["read_gbytes_per_s"], divided["dot_tflops"],
             either]
    return f"| {name} | " + " | ".join(f"{100 * cell:.2f}%" for cell in cells) + " |"


def rates_of_workers(folder):
    """How much a ceiling differs between processes of one device: of every scheme, all result files together that
    were written since the ceilings are measured as now (their telemetry holds clocks)."""
    rates = defaultdict(lambda: defaultdict(set))
    for file in sorted((ROOT / folder).glob("*.json")):
        data = json.loads(file.read_text())
        if not isinstance(data, dict) or "context" not in data or "cases" not in data:
            continue
        for case in data["cases"]:
            telemetry = case.get("telemetry") or {}
            if case["status"] == "ok" and "clock_mhz" in telemetry and "dot_tflops" in telemetry:
                for rate in ("read_gbytes_per_s", "dot_tflops"):
                    rates[rate][case["scheme"]].add(telemetry[rate])
    return rates


def worker_rows(folder):
    rates = rates_of_workers(folder)
    for scheme in sorted(rates["dot_tflops"]):
        read, dot = (sorted(rates[rate][scheme]) for rate in ("read_gbytes_per_s", "dot_tflops"))
        if min(len(read), len(dot)) >= 4:
            yield f"| {scheme} | {len(dot)} | {100 * spread([read]):.2f}% | {100 * spread([dot]):.2f}% |"


def table():
    lines = ["| what was measured | latency | read rate | dot rate | latency x read rate | latency x dot rate | the better of both |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    lines += [rows_of(path) for path in KEPT if (ROOT / path).exists()]
    lines += ["", "| scheme | processes | read rate | dot rate |", "| --- | --- | --- | --- |", *worker_rows(SINGLE)]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", metavar="OUT")
    parser.add_argument("--only", metavar="GLOB", default="*", help="of --keep: cases whose id matches")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    if arguments.keep:
        keep(arguments.keep, arguments.files, arguments.only)
    else:
        print(table())
