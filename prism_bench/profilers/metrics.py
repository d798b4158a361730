"""One set of metrics over all tools: what each is called by whom, on which chip, and how several launches add up.

Names of counters are `unit__what.rollup.submetric`. The base names of each chip are in `metric_support.csv`, made by
`scripts/metric_table` from NVIDIA's own tables; names that the tool computes itself (`launch__...`) are on every chip.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism_bench.profilers.chips import Chip
from prism_bench.profilers.launches import ProfiledLaunch, ProfiledValue

SETS = ("core", "all", "traffic")  # 3, 10 and 1 passes on a GH100
_ELAPSED = "avg.pct_of_peak_sustained_elapsed"
_ACTIVE = "avg.pct_of_peak_sustained_active"
_COMPUTED = ("launch__", "sm__maximum_warps_per_active_cycle_pct")


@dataclass(frozen=True)
class LogicalMetric:
    """Metric with one name over all tools.

    `sources` are the tool's names, the best first; `combine` defines how launches of one case add up (`sum`, `max`, or
    `mean` weighted by duration); `sets` are the choices of metrics that contain it.
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
# Units of ncu, in SI, that a metric's value may be in; a share without `%` would be read as a hundred times as much.
_UNITS = {"s": ("s",), "B": ("B", "B/block"), "inst": ("inst",), "1": ("1", "", "register/thread", "pass")}

# What the seed documents and older profilers call things, and what answers today.
REPLACED = {
    "sm__occupancy": f"sm__warps_active.{_ACTIVE}",
    "achieved_occupancy": f"sm__warps_active.{_ACTIVE}",
    "tensor_precision_fu_utilization": f"sm__pipe_tensor_cycles_active.{_ACTIVE}",
    "dram_utilization": f"dram__throughput.{_ELAPSED}",
    "sm_efficiency": f"sm__cycles_active.{_ELAPSED}",
}


def base(name: str) -> str:
    """Return the part of a metric's name that a chip has or has not: `dram__bytes_read` of `dram__bytes_read.sum`."""
    return name.split(".")[0]


def computed_by_tool(name: str) -> bool:
    """Whether ncu derives the metric from the launch instead of counting it."""
    return name.startswith((*_COMPUTED, "profiler__"))


def source_on(metric: LogicalMetric, chip: Chip) -> str | None:
    """Return the first of the metric's sources that the chip has; None where it has none."""
    return next((one for one in metric.sources if computed_by_tool(one) or chip.has(base(one))), None)


def counters(chip: Chip, chosen: str = "core") -> tuple[str, ...]:
    """Return the names to ask the profiler for on this chip, for the metrics of the set `chosen`."""
    wanted = [source_on(metric, chip) for metric in LOGICAL.values() if chosen in metric.sets]
    return tuple(name for name in wanted if name and not computed_by_tool(name))


def combined(launches: Sequence[ProfiledLaunch], chip: Chip, chosen: str = "core") -> dict[str, dict]:
    """Every logical metric over the launches of one case: `{value, unit, source}`, or `{value: None, reason}`."""
    return {name: _one(metric, launches, chip, chosen) for name, metric in LOGICAL.items()}


def _one(metric: LogicalMetric, launches: Sequence[ProfiledLaunch], chip: Chip, chosen: str) -> dict[str, Any]:
    source = source_on(metric, chip)
    if source is None:
        return _none(metric, f"{chip} has none of {', '.join(metric.sources)}")
    if chosen not in metric.sets:
        return _none(metric, f"not in the set '{chosen}'; --set {metric.sets[-1]} counts it")
    present = [name for name in metric.sources if any(name in one.metrics for one in launches)]
    if not present:
        return _none(metric, f"{source} was not collected")
    counted = [one.metrics.get(present[0]) for one in launches]
    reasons = [why_missing(present[0], quantity, chip) if quantity else "not of every launch" for quantity in counted]
    if any(reasons):
        return _none(metric, f"{present[0]}: {next(filter(None, reasons))}")
    values = [quantity.value for quantity in counted if quantity and quantity.value is not None]
    return {"value": _together(metric, values, launches), "unit": metric.unit, "source": present[0]}


def why_missing(name: str, quantity: ProfiledValue, chip: Chip | None) -> str | None:
    """Return why a launch's quantity is no value of the metric `name`; None where it is one."""
    if quantity.value is not None:
        metric = _BY_SOURCE.get(name)
        units = () if metric is None else ("1",) if "pct" in name else _UNITS[metric.unit]
        if metric is None or quantity.unit in units:
            return None
        return f"{quantity.text} is in '{quantity.unit}', which is no unit of it"
    answer, word = f"the profiler answers '{quantity.text}'", quantity.text.lower()
    if chip and "__" in name and not (computed_by_tool(name) or chip.has(base(name))):
        return f"{answer}, {chip} has no such counter"
    if "nan" in word or "inf" in word:
        return f"{answer}, not collected or divided by zero"
    return answer


def _none(metric: LogicalMetric, reason: str) -> dict[str, Any]:
    return {"value": None, "unit": metric.unit, "reason": reason}


def _together(metric: LogicalMetric, values: list[float], launches: Sequence[ProfiledLaunch]) -> float:
    if metric.combine != "mean":
        return {"sum": sum, "max": max}[metric.combine](values)
    weights = [one.value("gpu__time_duration.sum") or 0.0 for one in launches]
    if not sum(weights):
        return sum(values) / len(values)
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def advice(name: str, known: Mapping[str, object]) -> str:
    """Return what to ask for instead of a name that no chip has: its replacement, or the nearest names."""
    from difflib import get_close_matches

    if base(name) in REPLACED:
        return f"'{base(name)}' is not a metric of ncu; ask for {REPLACED[base(name)]}"
    near = get_close_matches(base(name), list(known), n=3, cutoff=0.6)
    return f"no metric is called '{base(name)}'" + (f"; near it are {', '.join(near)}" if near else "")
