"""Series of latencies over runs with known changes, for the tests of `moegauge history trend`: writes
results/series/latency.json. The tests read the file; run this only to change what it holds.

A value is a latency in units of 1/10000 of the case's own level."""

import json
import pathlib
import random

RUNS = 120
AT = 80  # the first run of the new level
random.seed(2014)


def normal(spread):
    return lambda: random.gauss(1, spread)


def heavy_tail(spread):
    """Student's t with three degrees of freedom, scaled to a standard deviation of `spread`."""
    return lambda: 1 + spread * random.gauss(0, 1) / random.gammavariate(1.5, 2 / 3) ** 0.5 / 3 ** 0.5


def bimodal(spread):
    """Two clocks, 3% apart, either of them in any run."""
    return lambda: (1.03 if random.random() < 0.3 else 1) * random.gauss(1, spread)


NOISE = {"normal 1.4%": normal(0.014), "normal 0.3%": normal(0.003), "heavy tail 1.4%": heavy_tail(0.014),
         "bimodal 3%": bimodal(0.003)}


def series(kind, noise, change=lambda run: 1, **more):
    values = [round(10000 * NOISE[noise]() * change(run)) for run in range(more.pop("runs", RUNS))]
    return {"kind": kind, "noise": noise, **more, "values": values}


def step(percent):
    return lambda run: 1 + percent / 100 if run >= AT else 1


def all_series():
    for noise in NOISE:
        for _ in range(40):
            yield series("quiet", noise)
    for noise, count in [("normal 1.4%", 12), ("normal 0.3%", 4)]:
        for percent in range(1, 11):
            for _ in range(count):
                yield series("step", noise, step(percent), percent=percent, at=AT)
    for _ in range(10):
        yield series("drift", "normal 1.4%", lambda run: 1 + max(0, run - 40) * 0.001, percent=8)
    for at in [0, 1, 17, 40, 60, 61, 100, 118, 119] * 3:
        factor = random.choice([0.5, 1.2, 2, 10])
        yield series("spike", "normal 1.4%", lambda run, at=at, factor=factor: factor if run == at else 1, at=at)
    for _ in range(6):
        yield series("renamed", "normal 1.4%", step(6), percent=6, at=AT, renamed_at=60)
    for _ in range(6):
        yield series("vanished", "normal 1.4%", runs=90)


lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in all_series())
pathlib.Path("results/series/latency.json").write_text(
    '{"schema": "moegauge.series/1", "series": [\n' + lines + "\n]}\n")
