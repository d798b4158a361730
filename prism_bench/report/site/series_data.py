"""The runs of every series as script files, which a page from disk may load where it may fetch nothing.

The runs are cut into chunks of a fixed length, and a file is named after what it holds. So a new run makes one new
file for each kernel, and the files of all full chunks stay as they are, however long the history grows.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy
import orjson

from prism_bench.analysis.compare.noise import Noise
from prism_bench.analysis.trend import Course, windows
from prism_bench.record.store.points import Facts
from prism_bench.report.site.context import SiteContext
from prism_bench.report.site.page import file_name

CHUNK = 128  # runs; a window of a trend has a whole number of them
FOLDER = "data"


@dataclass(frozen=True)
class Data:
    """One file: its place in the site and what is in it. `first` is the number of its first run."""

    name: str
    content: bytes
    first: int


def nights_data(own: Sequence[Facts], sides: Sequence[str | None]) -> list[Data]:
    """Return when each run was, its commit, and its record's side: `[[created, commit, side], ...]`, chunk by chunk."""
    runs = [[facts.created, (facts.commit or "")[:8], side] for facts, side in zip(own, sides, strict=True)]
    return [_data("nights", first, runs[first : first + CHUNK]) for first in range(0, len(runs), CHUNK)]


def noise_data(noise: Noise) -> Data:
    """Return the noise floors: whose they are, and `{case: {metric: [variance, freedom, variance in cycles]}}`."""
    floors: dict[str, dict[str, list[float | None]]] = {}
    for (case, metric), floor in noise.floors.items():
        in_cycles = floor.spread_in_cycles
        variances = floor.spread.variance, in_cycles.variance if in_cycles else None
        floors.setdefault(case, {})[metric] = [variances[0], floor.freedom, variances[1]]
    plain = {"device": noise.device, "backend": noise.backend, "protocol": noise.protocol, "floors": floors}
    return _data("noise", 0, plain)


def series_data(context: SiteContext, kernels: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Data]]:
    """Yield the runs of every kernel's cases in chunks, each with its kernel; window is read after window.

    A chunk is `{case: {"metric subject": [seconds or null, ...]}}`, one for each run.
    """
    places = numpy.array([*context.nights])
    for number, window in enumerate(context.past.windows()):
        begin = number * windows.LENGTH
        nights = range(begin, min(begin + windows.LENGTH, len(context.own)))
        columns: dict[str, dict[str, numpy.ndarray]] = {}
        for one in window:
            name = f"{one.key.metric} {one.key.subject}"
            columns.setdefault(one.key.case, {})[name] = _by_night(one, places[nights.start : nights.stop])
        for kernel, cases in kernels.items():
            own = {case: columns[case] for case in cases if case in columns}
            for first in nights[::CHUNK]:
                cut = {case: _cut(known, slice(first - begin, first - begin + CHUNK)) for case, known in own.items()}
                cut = {case: known for case, known in cut.items() if known}
                if cut:
                    yield kernel, _data(file_name(kernel), first, cut)


def _by_night(series: Course, places: numpy.ndarray) -> numpy.ndarray:
    """Return the values of the runs at these places of the history, NaN where one has none that can be trusted."""
    values = numpy.full(len(places), numpy.nan)
    values[numpy.searchsorted(places, series.records)] = _short(series.values)
    return values


def _short(values: numpy.ndarray) -> numpy.ndarray:
    """Return the values with four digits, as many as samples have."""
    scale = 10.0 ** (3 - numpy.floor(numpy.log10(values)))
    return numpy.round(values * scale) / scale


def _cut(columns: Mapping[str, numpy.ndarray], chunk: slice) -> dict[str, numpy.ndarray]:
    parts = {name: values[chunk] for name, values in columns.items()}
    return {name: values for name, values in parts.items() if not numpy.isnan(values).all()}


def _data(name: str, first: int, plain: object) -> Data:
    text = orjson.dumps(plain, option=orjson.OPT_SERIALIZE_NUMPY)
    content = b"prism.give(%s, %d, %s);\n" % (orjson.dumps(name), first, text)
    digest = hashlib.sha256(content).hexdigest()[:10]
    return Data(f"{FOLDER}/{name}/{first:06}-{digest}.js", content, first)
