"""Histories of planted series: each night a record, each case with the values, codes and circumstances it is given."""

import random
from datetime import datetime, timedelta

from prism_bench.record.store.history import History, history_of
from prism_bench.record.store.points import Facts, block

FIRST = datetime(2026, 1, 1, 3)
SOFTWARE = {"python": "3.12", "nvrtc": "13.0", "driver": "570.1", "torch": "2.11", "cupy": "14.2"}


def series(nights=40, level=1e-3, noise=0.002, seed=0, steps=None):
    """Normal nights about a level which `steps`, a factor by night, change."""
    rng, values = random.Random(seed), []
    for night in range(nights):
        level *= (steps or {}).get(night, 1.0)
        values.append(level * (1 + rng.gauss(0, noise)))
    return values


def night_facts(night, **changes):
    fields = {
        "file": f"h200/{night:03d}.json.gz", "machine": "h200", "backend": "cuda",
        "created": (FIRST + timedelta(days=night)).isoformat(), "commit": "aaaaaaaaaa", "dirty": False,
        "complete": True, "device": "GPU-1", "software": SOFTWARE, "protocol": {"version": 1, "processes": 3},
    }  # fmt: skip
    return Facts(**{**fields, **changes})


def points(**columns):
    """One point; the columns that are not given are those of a trusted kernel's cold time."""
    plain = {"case": "k[n=1]", "metric": "cold_time", "subject": "kernel", "code": "c1", "build": "", "doubt": "",
             "board": "GPU-1",              "value": 1e-3, "clock": 1.98e9, "samples": 60, "throttled": 0}  # fmt: skip
    return {**plain, **columns}


def history(nights, *rows, facts=None) -> History:
    """A history of so many nights. Each of `rows` gives a point's columns from the night, or None where there is none.

    `facts` gives what is different about a night's record.
    """
    blocks = []
    for night in range(nights):
        told = [point for row in rows if (point := row(night)) is not None]
        columns = {name: [point[name] for point in told] for name in points()}
        own = night_facts(night, **(facts(night) if facts else {}))
        blocks.append(block(own.file, "", own, columns))
    return history_of(blocks)


def row(values, **columns):
    """A case with these values, one a night, whose other columns may depend on the night."""

    def at(night):
        given = {name: value(night) if callable(value) else value for name, value in columns.items()}
        return points(value=values[night], **given)

    return at
