"""One set of metrics over all profilers: the counters of chips, launches, logical metrics, and numbers as printed."""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError, unknown
from prism_bench.io.documents import table_text_of
from prism_bench.units import count_text

# Counters of each chip, from `metric_support.csv`: a base name per line, a column per chip.

TABLE = "metric_support.csv"
_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]|[A-Z][a-z]+")  # an announced chip has the name of its family


@dataclass(frozen=True)
class Chip:
    """A chip's name (`GH100`), its compute capability (`9.0`) and the base names of its counters."""

    name: str
    capability: str
    counters: frozenset[str]

    def has(self, counter: str) -> bool:
        """Return whether the chip has the counter."""
        return counter in self.counters

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability})"


@cache
def chips() -> dict[str, Chip]:
    """Return every chip of the table by compute capability."""
    with as_file(files("prism_bench.profilers").joinpath(TABLE)) as path:
        return chips_in(path)


def chips_in(path: Path) -> dict[str, Chip]:
    """Return the chips of a table by compute capability; raise ResultsError with the damaged line."""
    try:
        header, *rows = csv.reader(table_text_of(path, "table of counters").splitlines(), strict=True)
    except (csv.Error, ValueError) as error:
        raise ResultsError(f"{path}: not a table of counters ({error}); scripts/metric_table makes it anew") from error
    names: set[str] = set()
    for line, row in enumerate(rows, 2):
        if len(row) != len(header) or not row[0] or row[0] in names:
            raise ResultsError(
                f"{path}: line {line} has {len(row)} of {count_text(len(header), 'cell')}, or a repeated name"
            )
        names.add(row[0])
    by_capability: dict[str, Chip] = {}
    for column, title in enumerate(header[1:], 1):
        name, _, capability = title.partition("_")
        if not (name and _CAPABILITY.fullmatch(capability)) or capability in by_capability:
            raise ResultsError(f"{path}: column '{title:.40}' is no CHIP_CAPABILITY, or a repeated one")
        by_capability[capability] = Chip(name, capability, frozenset(row[0] for row in rows if row[column]))
    return by_capability


def chip_of(capability: str | int) -> Chip:
    """Return the chip of a compute capability written `9.0` or 90; raise UsageError with the known capabilities."""
    text = f"{capability // 10}.{capability % 10}" if isinstance(capability, int) else capability
    if text not in chips():
        raise unknown("compute capability", text, chips())
    return chips()[text]


def counters_of_chip() -> dict[str, tuple[Chip, ...]]:
    """Return every base name of the table with the chips that have it."""
    every = {name for chip in chips().values() for name in chip.counters}
    return {name: tuple(chip for chip in chips().values() if chip.has(name)) for name in sorted(every)}


# Launches as a kernel profiler reports them.

_MISSING = re.compile(r"|n/a|[+-]?(nan|inf|infinity)(\(.*\))?", re.IGNORECASE)  # `-nan(ind)` on Windows


@dataclass(frozen=True)
class ProfiledValue:
    """A metric's value in SI, or None with the tool's `text` if it is not a number (`n/a`, a policy's name)."""

    value: float | None
    unit: str = ""
    text: str = ""

    @property
    def is_missing(self) -> bool:
        """Return whether the tool printed no value: `n/a`, `nan`, `-inf` or nothing; a word is a value."""
        return self.value is None and bool(_MISSING.fullmatch(self.text.strip()))


@dataclass(frozen=True)
class ProfilerAdvice:
    """The tool's advice about a launch, not ours: `speedup` is its estimate in per cent."""

    name: str
    kind: str
    text: str
    speedup_kind: str = ""
    speedup: float | None = None


@dataclass(frozen=True)
class ProfiledLaunch:
    """One launch of a kernel: its device, extents and profiler ranges, and its metrics.

    `metrics` are by the tool's metric name, or by `section: label [unit]` if the file only has labels, which are not
    unique. `capability` is `9.0`; `ranges` are NVTX cells as the tool wrote them.
    """

    id: int
    kernel: str
    metrics: Mapping[str, ProfiledValue]
    process: int | None = None
    device: int | None = None
    capability: str | None = None
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    ranges: tuple[str, ...] = ()
    rules: tuple[ProfilerAdvice, ...] = field(default=())

    def value(self, metric: str) -> float | None:
        """Return the metric's value in SI; None if it was not collected or is not a number."""
        value = self.metrics.get(metric)
        return value.value if value else None


# Logical metrics.
#
# Names of counters are `unit__what.rollup.submetric`. The base names of each chip are in `metric_support.csv`, made by
# `scripts/metric_table` from NVIDIA's tables; names that the tool computes itself (`launch__...`) are on every chip.

SETS = ("core", "all", "traffic")  # 3, 10 and 1 passes on a GH100
_ELAPSED = "avg.pct_of_peak_sustained_elapsed"
_ACTIVE = "avg.pct_of_peak_sustained_active"
_COMPUTED = ("launch__", "sm__maximum_warps_per_active_cycle_pct")


@dataclass(frozen=True)
class LogicalMetric:
    """Metric with one name over all tools.

    `sources` are the tool's names, the best first; `combine` combines launches of one case (`sum`, `max`, or `mean`
    weighted by duration); `sets` are the sets of metrics that contain it.
    """

    name: str
    unit: str
    meaning: str
    sources: tuple[str, ...]
    combine: str = "mean"
    sets: tuple[str, ...] = ("core", "all")


LOGICAL = {
    metric.name: metric
    for metric in (
        LogicalMetric("profiler_duration", "s", "device time under the profiler; never a benchmark time",
                      ("gpu__time_duration.sum",), "sum", SETS),
        LogicalMetric("dram_share", "1", "DRAM throughput over its peak",
                      (f"dram__throughput.{_ELAPSED}", f"gpu__dram_throughput.{_ELAPSED}"), sets=SETS),
        LogicalMetric("dram_read_bytes", "B", "bytes read from DRAM",
                      ("dram__bytes_read.sum", "dram__bytes_op_read.sum"), "sum", SETS),
        LogicalMetric("dram_write_bytes", "B", "bytes written to DRAM; what stays in L2 is written later",
                      ("dram__bytes_write.sum", "dram__bytes_op_write.sum"), "sum", SETS),
        LogicalMetric("l2_hit_rate", "1", "sectors found in L2", ("lts__t_sector_hit_rate.pct",)),
        LogicalMetric("l1_hit_rate", "1", "sectors found in L1", ("l1tex__t_sector_hit_rate.pct",)),
        LogicalMetric("l2_share", "1", "sectors through L2 over its peak", (f"lts__t_sectors.{_ELAPSED}",)),
        LogicalMetric("l1_share", "1", "load/store wavefronts through L1 and shared memory over their peak",
                      (f"l1tex__data_pipe_lsu_wavefronts.{_ELAPSED}",)),
        LogicalMetric("memory_share", "1", "the busiest part of the memory system over its peak",
                      (f"gpu__compute_memory_throughput.{_ELAPSED}",), sets=("all",)),
        LogicalMetric("compute_share", "1", "the busiest part of the multiprocessors over its peak",
                      (f"sm__throughput.{_ELAPSED}",), sets=("all",)),
        LogicalMetric("issue_share", "1", "issue slots used", (f"sm__inst_issued.{_ELAPSED}",)),
        LogicalMetric("fp32_share", "1", "FP32 pipe over its peak", (f"sm__pipe_fma_cycles_active.{_ELAPSED}",)),
        LogicalMetric("sfu_share", "1", "special function pipe over its peak",
                      (f"sm__inst_executed_pipe_xu.{_ELAPSED}",)),
        LogicalMetric("tensor_share", "1", "tensor pipe over its peak",
                      (f"sm__pipe_tc_cycles_active.{_ELAPSED}", f"sm__pipe_tensor_cycles_active_v2.{_ELAPSED}",
                       f"sm__pipe_tensor_cycles_active.{_ELAPSED}")),
        LogicalMetric("tensor_instructions", "inst", "instructions on the tensor pipe",
                      ("sm__inst_executed_pipe_tc.sum", "sm__inst_executed_pipe_tensor.sum"), "sum"),
        LogicalMetric("occupancy", "1", "warps resident while a multiprocessor works, over its limit",
                      (f"sm__warps_active.{_ACTIVE}",)),
        LogicalMetric("occupancy_limit", "1", "the occupancy that registers, shared memory and block size allow",
                      ("sm__maximum_warps_per_active_cycle_pct",), "max"),
        LogicalMetric("local_loads", "inst", "loads from local memory: spills and arrays indexed at run time",
                      ("smsp__inst_executed_op_local_ld.sum",), "sum"),
        LogicalMetric("local_stores", "inst", "stores to local memory: spills and arrays indexed at run time",
                      ("smsp__inst_executed_op_local_st.sum",), "sum"),
        LogicalMetric("profiled_registers", "1", "registers of a thread", ("launch__registers_per_thread",), "max"),
        LogicalMetric("profiled_shared_bytes", "B", "shared memory of a block, the driver's part in it",
                      ("launch__shared_mem_per_block",), "max"),
        LogicalMetric("waves", "1", "how often the grid fills it", ("launch__waves_per_multiprocessor",), "max"),
        LogicalMetric("replays", "1", "times the tool ran each launch", ("profiler__replayer_passes",), "max", SETS),
    )
}  # fmt: skip

_BY_SOURCE = {source: metric for metric in LOGICAL.values() for source in metric.sources}
# Units of ncu, in SI, that a metric's value may have; a share without `%` would be read as a hundred times as much.
_UNITS = {"s": ("s",), "B": ("B", "B/block"), "inst": ("inst",), "1": ("1", "", "register/thread", "pass")}

# Names of the seed documents and older profilers, with today's names.
REPLACED = {
    "sm__occupancy": f"sm__warps_active.{_ACTIVE}",
    "achieved_occupancy": f"sm__warps_active.{_ACTIVE}",
    "tensor_precision_fu_utilization": f"sm__pipe_tensor_cycles_active.{_ACTIVE}",
    "dram_utilization": f"dram__throughput.{_ELAPSED}",
    "sm_efficiency": f"sm__cycles_active.{_ELAPSED}",
}


def base(name: str) -> str:
    """Return the base name, by which chips list counters: `dram__bytes_read` of `dram__bytes_read.sum`."""
    return name.split(".")[0]


def computed_by_tool(name: str) -> bool:
    """Return whether ncu derives the metric from the launch instead of counting it."""
    return name.startswith((*_COMPUTED, "profiler__"))


def source_on(metric: LogicalMetric, chip: Chip) -> str | None:
    """Return the first of the metric's sources that the chip has, or None."""
    return next((name for name in metric.sources if computed_by_tool(name) or chip.has(base(name))), None)


def counters(chip: Chip, chosen: str = "core") -> tuple[str, ...]:
    """Return the counters to request from the profiler on this chip for the set `chosen`."""
    wanted = [source_on(metric, chip) for metric in LOGICAL.values() if chosen in metric.sets]
    return tuple(name for name in wanted if name and not computed_by_tool(name))


def combined(launches: Sequence[ProfiledLaunch], chip: Chip, chosen: str = "core") -> dict[str, dict]:
    """Return every logical metric over the launches of one case: `{value, unit, source}` or `{value: None, reason}`."""
    return {name: _combined(metric, launches, chip, chosen) for name, metric in LOGICAL.items()}


def _combined(metric: LogicalMetric, launches: Sequence[ProfiledLaunch], chip: Chip, chosen: str) -> dict[str, Any]:
    source = source_on(metric, chip)
    if source is None:
        return _missing(metric, f"{chip} has none of {', '.join(metric.sources)}")
    if chosen not in metric.sets:
        return _missing(metric, f"not in the set '{chosen}'; --counters {metric.sets[-1]} counts it")
    present = [name for name in metric.sources if any(name in launch.metrics for launch in launches)]
    if not present:
        return _missing(metric, f"{source} was not collected")
    counted = [launch.metrics.get(present[0]) for launch in launches]
    reasons = [why_missing(present[0], quantity, chip) if quantity else "not of every launch" for quantity in counted]
    if any(reasons):
        return _missing(metric, f"{present[0]}: {next(filter(None, reasons))}")
    values = [quantity.value for quantity in counted if quantity and quantity.value is not None]
    if metric.combine != "mean":
        value = {"sum": sum, "max": max}[metric.combine](values)
    else:
        weights = [launch.value("gpu__time_duration.sum") or 0.0 for launch in launches]
        weights = weights if sum(weights) else [1.0] * len(values)
        value = sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)
    return {"value": value, "unit": metric.unit, "source": present[0]}


def why_missing(name: str, quantity: ProfiledValue, chip: Chip | None) -> str | None:
    """Return why a launch's quantity is not a value of the metric `name`; None if it is a value."""
    if quantity.value is not None:
        metric = _BY_SOURCE.get(name)
        units = () if metric is None else ("1",) if "pct" in name else _UNITS[metric.unit]
        if metric is None or quantity.unit in units:
            return None
        return f"{quantity.text} is in '{quantity.unit}', which is no unit of it"
    answer, text = f"the profiler answers '{quantity.text}'", quantity.text.lower()
    if chip and "__" in name and not (computed_by_tool(name) or chip.has(base(name))):
        return f"{answer}, {chip} has no such counter"
    if "nan" in text or "inf" in text:
        return f"{answer}, not collected or divided by zero"
    return answer


def _missing(metric: LogicalMetric, reason: str) -> dict[str, Any]:
    return {"value": None, "unit": metric.unit, "reason": reason}


def advice(name: str, known: Mapping[str, object]) -> str:
    """Return a sentence on a name that no chip has: its replacement, or the nearest names."""
    from difflib import get_close_matches

    if base(name) in REPLACED:
        return f"'{base(name)}' is not a metric of ncu; ask for {REPLACED[base(name)]}"
    near = get_close_matches(base(name), list(known), n=3, cutoff=0.6)
    return f"no metric is called '{base(name)}'" + (f"; near it are {', '.join(near)}" if near else "")


# Numbers and units as profilers print them, in the locale of their process, converted to SI.
#
# `117.344` is a hundred and seventeen nanoseconds in one locale and a thousand times that in another. A table is read
# only if some number in it shows the locale, or if no number in it depends on the locale.

CURE = "run the profiler with LC_ALL=C"
# Separators of groups as C libraries write them; `\xa0` and `\x92` are those of a Windows code page after decoding.
_SPACE = re.compile("[\u0020\u00a0\u2007\u2009\u202f]|" + r"\\xa0")
_APOSTROPHE = re.compile("[\u2018\u2019]|" + r"\\x92")
_LOCALES = tuple((group, mark) for mark in ".," for group in ".,' " if group != mark)


def _numbers_of(group: str, mark: str) -> re.Pattern[str]:
    """Return the pattern of a number in the locale; Indian groups (`1,23,45,678.9`) only come with commas."""
    inner = r"\d{2,3}" if group == "," else r"\d{3}"
    grouped = rf"[1-9]\d{{0,2}}({group}{inner})*{group}\d{{3}}".replace(".", r"\.")
    point = re.escape(mark)
    return re.compile(rf"-?(\d+({point}\d+)?(e[+-]?\d+)?|{grouped}({point}\d+)?)", re.IGNORECASE | re.ASCII)


_PATTERNS = {locale: _numbers_of(*locale) for locale in _LOCALES}
_NUMERIC = re.compile(r"-?\d[\d .,'\u066b\u066c\u2212\u00b7]*")  # digits of any script
_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
             "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip
_BASES = {"s": "s", "second": "s", "byte": "B", "hz": "Hz", "Hz": "Hz"}
_UNIT = re.compile(rf"(?P<prefix>[KMGT]i(?=byte)|[numkKMGT]?)(?P<base>{'|'.join(_BASES)})(?P<per>/.+)?")


def is_number(text: str) -> bool:
    """Return whether the text is a number in some locale: `12`, `1,234.5`, `2.508.800`, `1\u202f234,5`, `1e-05`."""
    return bool(_locales_of(text))


def looks_numeric(text: str) -> bool:
    """Return whether the text has only digits and separators, so that a reader expects a number."""
    return bool(_NUMERIC.fullmatch(_normalised(text)))


def decimal_mark(texts: Iterable[str], origin: str) -> str:
    """Return the decimal mark, `.` or `,`, of the numbers among `texts`, which come from one process and so share it.

    Raise ResultsError naming `origin` if two numbers contradict each other, or if the mark matters and stays unknown.
    """
    possible, deciding, doubtful = frozenset(_LOCALES), "", ""
    for text in texts:
        locales = _locales_of(text)
        if not locales or len(locales) == len(_LOCALES):
            continue
        if not possible & locales:
            raise ResultsError(f"{origin}: '{deciding}' and '{text}' cannot come from one locale; {CURE}")
        if not possible <= locales:
            possible, deciding = possible & locales, text
        if not doubtful and ("." in text or "," in text):
            doubtful = text
    marks = {mark for _, mark in possible}
    if doubtful and len(marks) > 1:
        raise ResultsError(
            f"{origin}: '{doubtful}' may be a fraction or a thousand times as much, and no other number "
            f"of the table decides; {CURE}"
        )
    return "." if "." in marks else ","


def _locales_of(text: str) -> frozenset[tuple[str, str]]:
    """Return the locales, by separator of groups and decimal mark, in which the text is a number."""
    if text.isascii() and text.isdigit():
        return frozenset(_LOCALES)
    if not any(map(str.isdigit, text[:2])):  # neither sign and digit nor digit: most cells of text end here
        return frozenset()
    text = _normalised(text)
    return frozenset(locale for locale, pattern in _PATTERNS.items() if pattern.fullmatch(text))


def _normalised(text: str) -> str:
    """Return the text with every kind of space, apostrophe and minus in ASCII."""
    return _APOSTROPHE.sub("'", _SPACE.sub(" ", text)).replace("\u2212", "-")


def number(text: str, mark: str = ".") -> float:
    """Return the number in `text` with the decimal mark `mark`; raise ResultsError if it is too large for a float."""
    other = "," if mark == "." else "."
    digits = _normalised(text).translate(str.maketrans("", "", f"{other}' "))
    value = float(digits.replace(mark, "."))
    if not math.isfinite(value):
        raise ResultsError(f"{text!r:.40} is larger than any number that a profiler prints")
    return value


def to_si(value: float, unit: str) -> tuple[float, str]:
    """Return the value in SI and its unit: seconds, bytes, hertz, shares of one; an unknown unit is not converted."""
    if unit == "%":
        return value / 100, "1"
    match = _UNIT.fullmatch(unit)
    if not match:
        return value, unit
    per = (match["per"] or "").replace("/second", "/s")
    value *= _PREFIXES[match["prefix"]]
    if not math.isfinite(value):
        raise ResultsError(f"a value in {unit} is larger than any number that a profiler prints")
    return value, _BASES[match["base"]] + per
