"""A measurement as a page's figures and pictures have it.

The record has every sample; a page that repeated them would be as heavy as the record.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy

from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import encode_measurement

_QUARTILES = (0, 0.25, 0.5, 0.75, 1)
_DIGITS = 3  # after the first one of a sample


def measurement_views(measurements: Iterable[Measurement]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return measurements as plain values, by subject and metric."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for one in measurements:
        found.setdefault(one.subject, {})[one.metric] = _view(one)
    return found


def _view(one: Measurement) -> dict[str, Any]:
    """Return the measurement without what is empty; `valid` only where it is false.

    `samples` is their number. The kernel has the median of each of its `processes`, others the `spread` of theirs.
    """
    bare = encode_measurement(replace(one, evidence=(), processes=(), clocks=()))
    plain = {name: value for name, value in bare.items() if value and name not in ("subject", "metric", "valid")}
    plain |= {"median": one.median, "samples": len(one.samples)}
    if not one.valid:
        plain["valid"] = False
    if one.subject != "kernel":
        return plain | {"spread": one.spread}
    return plain | {"processes": [median(process) if process else None for process in one.processes]}


def drawn_measurement(one: Measurement) -> dict[str, Any]:
    """Return what pictures draw of one of the kernel's measurements.

    `processes` holds for each process the number of its samples and, if there are any, a power of ten, and the lowest,
    the quartiles and the highest in units of it; `clocks` the median SM clock of each in MHz. `refused` is the reason
    why the samples cannot be trusted, or why there are none.
    """
    found: dict[str, Any] = {"metric": one.metric, "median": one.median and float(f"{one.median:.6g}")}
    found["processes"] = [_band(process) for process in one.processes]
    if any(one.clocks):
        found["clocks"] = [round(median(process) / 1e6) if process else None for process in one.clocks]
    if not one.valid:
        found["refused"] = one.reason or "the record gives no reason"
    return found


def _band(samples: Sequence[float]) -> list[int]:
    if not samples:
        return [0]
    quartiles = numpy.quantile(samples, _QUARTILES)
    lowest = min((float(one) for one in quartiles if one > 0), default=1.0)  # a damaged record may have a time of zero
    power = math.floor(math.log10(lowest)) - _DIGITS
    return [len(samples), power, *(round(float(one) / 10.0**power) for one in quartiles)]
