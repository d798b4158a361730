"""Launches of a capture of ncu: what limits each kernel, and ncu's advice by the time that it may save."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from prism_bench.analysis.bounds.bottleneck import BUSY
from prism_bench.profilers.metrics import LOGICAL, ProfiledLaunch, ProfilerAdvice, chips, why_missing
from prism_bench.units import rate_text, share_text

# Names of values by their labels on the details page, where the file has no names of metrics. A unit follows a label.
_SPEED, _OCCUPANCY, _MEMORY = "GPU Speed Of Light Throughput", "Occupancy", "Memory Workload Analysis"
_LABELS = {
    f"{_SPEED}: Duration": "profiler_duration",
    f"{_SPEED}: Memory Throughput": "memory_share",
    f"{_SPEED}: Compute (SM) Throughput": "compute_share",
    f"{_SPEED}: DRAM Throughput": "dram_share",
    f"{_SPEED}: L2 Cache Throughput": "l2_share",
    f"{_SPEED}: L1/TEX Cache Throughput": "l1_share",
    f"{_MEMORY}: L2 Hit Rate": "l2_hit_rate",
    f"{_MEMORY}: L1/TEX Hit Rate": "l1_hit_rate",
    f"{_OCCUPANCY}: Achieved Occupancy": "occupancy",
    f"{_OCCUPANCY}: Theoretical Occupancy": "occupancy_limit",
    "Launch Statistics: Waves Per SM": "waves",
    "Launch Statistics: Registers Per Thread": "profiled_registers",
}
DURATION = "profiler_duration"
_SUMS = tuple(name for name, metric in LOGICAL.items() if metric.combine == "sum")
_BUSIEST_MEMORY = ("memory_share", "dram_share", "l2_share", "l1_share")
_BUSIEST_COMPUTE = ("compute_share", "fp32_share", "tensor_share", "sfu_share", "issue_share")
Limit = Literal["memory", "compute", "latency"]


@dataclass(frozen=True)
class CapturedKernel:
    """Launches of one kernel, of one process on one device: `launches` of them in `seconds`, None if not counted.

    `share` is that of the capture's time, `limit` the bottleneck in the words `verdict`; it is None where the counters
    leave it open. `advice` is ncu's on the longest launch, what may save most time first. `waves` is how often the grid
    fills the device.
    """

    kernel: str
    launches: int
    seconds: float | None
    share: float | None
    limit: Limit | None
    verdict: str
    advice: tuple[ProfilerAdvice, ...]
    waves: float | None = None
    process: int | None = None
    device: int | None = None


def captured_kernels(launches: Sequence[ProfiledLaunch], *, by_name: bool) -> list[CapturedKernel]:
    """Return a row for each launch, or for each kernel `by_name`; what took longest first."""
    groups: dict[object, list[tuple[ProfiledLaunch, dict[str, float]]]] = {}
    for place, launch in enumerate(launches):
        key = (launch.kernel, launch.process, launch.device) if by_name else place
        groups.setdefault(key, []).append((launch, launch_values(launch)))
    total = sum(values.get(DURATION, 0.0) for group in groups.values() for _, values in group)
    kernels = [_kernel(group, total) for group in groups.values()]
    return sorted(kernels, key=lambda kernel: -(kernel.seconds or 0.0))


def _kernel(group: Sequence[tuple[ProfiledLaunch, Mapping[str, float]]], total: float) -> CapturedKernel:
    first, _ = group[0]
    longest, _ = max(group, key=lambda pair: pair[1].get(DURATION, 0.0))
    together = _together([values for _, values in group])
    seconds = together.get(DURATION)
    limit, verdict = _limit(together)
    return CapturedKernel(
        kernel=first.kernel,
        launches=len(group),
        seconds=seconds,
        share=seconds / total if seconds and total else None,
        limit=limit,
        verdict=verdict,
        advice=ordered_advice(longest.rules),
        waves=together.get("waves"),
        process=first.process,
        device=first.device,
    )


def launch_values(launch: ProfiledLaunch) -> dict[str, float]:
    """Return the logical metrics that the launch has, by the names of counters or the labels of the details page."""
    values: dict[str, float] = {}
    chip = chips().get(launch.capability or "")
    for name, metric in LOGICAL.items():
        source = next((source for source in metric.sources if source in launch.metrics), None)
        quantity = launch.metrics[source] if source else None
        if source and quantity and quantity.value is not None and not why_missing(source, quantity, chip):
            values[name] = quantity.value
    for key, quantity in launch.metrics.items():
        name = _LABELS.get(key.partition(" [")[0])
        if name and quantity.value is not None:
            values.setdefault(name, quantity.value)
    return values


def _together(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the metrics of several launches: sums, else means by duration; only what every launch has."""
    names = [name for name in values[0] if all(name in launch for launch in values)]
    weights = [launch.get(DURATION) or 1.0 for launch in values]
    return {
        name: sum(launch[name] for launch in values)
        if name in _SUMS
        else sum(launch[name] * weight for launch, weight in zip(values, weights, strict=True)) / sum(weights)
        for name in names
    }


def _limit(values: Mapping[str, float]) -> tuple[Limit | None, str]:
    """Return the bottleneck and its words; None where the counters leave it open.

    The busiest part is the bottleneck from 60 % on, as in ncu's rule SOLBottleneck; below that no part is, if both
    memory and compute were counted as a whole.
    """
    memory, compute = _busiest(values, _BUSIEST_MEMORY), _busiest(values, _BUSIEST_COMPUTE)
    if memory is not None and memory >= max(BUSY, compute or 0.0):
        return "memory", f"memory-bound {share_text(memory)}"
    if compute is not None and compute >= BUSY:
        return "compute", f"compute-bound {share_text(compute)}"
    both = f"compute {share_text(compute)}" if compute is not None else ""
    if memory is not None and compute is not None and {"memory_share", "compute_share"} <= values.keys():
        return "latency", f"latency-bound (memory {share_text(memory)}, {both})"
    if "dram_share" in values and compute is not None:
        return None, f"not busy: DRAM {share_text(values['dram_share'])}, {both}"
    moved, seconds = values.get("dram_read_bytes", 0.0) + values.get("dram_write_bytes", 0.0), values.get(DURATION)
    rate = f"{rate_text(moved / seconds, 'B/s')} (of a peak not counted)" if moved and seconds else ""
    known = {"memory": share_text(memory) if memory is not None else "", "DRAM": rate}
    parts = [f"{name} {text}" for name, text in known.items() if text]
    return None, ", ".join([both, *parts] if both else parts) or "its counters show no bottleneck"


def _busiest(values: Mapping[str, float], names: Sequence[str]) -> float | None:
    return max((values[name] for name in names if name in values), default=None)


# Advice of ncu: its estimate is the share of the kernel's run time that a fix may save (`global`), or of one unit's
# (`local`), which shows little about the kernel. The SM that works 6.2 % longer than the average costs 5.8 %.


def ordered_advice(rules: Sequence[ProfilerAdvice]) -> tuple[ProfilerAdvice, ...]:
    """Return the rules, those that may save most of the run time first; then those of one unit, then the others."""

    def rank(rule: ProfilerAdvice) -> tuple[int, float]:
        kinds = ("global", "local") if rule.speedup is not None else ()
        kind = rule.speedup_kind.lower()
        return (kinds.index(kind) if kind in kinds else len(("global", "local")), -(rule.speedup or 0.0))

    return tuple(sorted(rules, key=rank))


def faster(rule: ProfilerAdvice) -> float | None:
    """Return how many times as fast the kernel may become by the rule at most; None without an estimate of that."""
    if rule.speedup is None or rule.speedup_kind.lower() != "global" or not 0 < rule.speedup < 100:
        return None
    return 1 / (1 - rule.speedup / 100)


_SHORT = (  # by the rule's name: the figures of its text, and the words for them
    ("UncoalescedGlobalAccess", r"\((\d+)% of the total", "uncoalesced accesses, {0} % of the sectors are excess"),
    (
        "MemoryCacheAccessPattern",
        r"pattern for (?:\w+ )?(loads|stores).*?only ([\d.]+?)(?:\.0)? of the (\d+) bytes",
        "uncoalesced {0}, {1} of {2} B used",
    ),
    ("CPIStall", r"scoreboard dependency on a L1TEX", "warps wait for loads from memory"),
    ("CPIStall", r"L1 instruction queue for local and global", "warps wait for a full queue of loads and stores"),
    ("CPIStall", r"stalled waiting for (?:an? |the )?(.*?)(?: operation)?\.", "warps wait for {0}"),
    ("TheoreticalOccupancy", r"limited by (?:the )?(?:number of )?(?:required )?(.*)\.", "occupancy is limited by {0}"),
    ("AchievedOccupancy", r"", "fewer warps than the launch allows"),
    ("LaunchConfiguration", r"(\d+) full waves and a partial wave of (\d+)", "a last wave of only {1} blocks"),
    ("LaunchConfiguration", r"at least two blocks per multiprocessor", "fewer than two blocks a multiprocessor"),
    ("WorkloadImbalance", r"One or more (.*?) have a much", "uneven work over {0}"),
    ("SharedMemoryConflicts", r"([\d.]+) ?- way bank conflict", "{0}-way bank conflicts in shared memory"),
    ("HighPipeUtilization", r"All compute pipelines are under-utilized", "no compute pipe is busy"),
    ("IssueSlotUtilization", r"an instruction every ([\d.]+) cycles", "one instruction in {0} cycles"),
)
_FIRST_SENTENCE = re.compile(r".*?[.:](?=\s|$)", re.DOTALL)
_LONGEST = 90


def worthwhile(advice: Sequence[ProfilerAdvice]) -> list[ProfilerAdvice]:
    """Return the rules that estimate what a fix saves; without such an estimate the first that is advice."""
    estimated = [rule for rule in advice if faster(rule)]
    named = [rule for rule in advice if rule.kind.upper() == "OPT" and rule.name != "SOLBottleneck"]
    return estimated or named[:1]


def short_advice(rule: ProfilerAdvice) -> str:
    """Return the rule in a few words: its figures where its text is known, else its first sentence."""
    for name, pattern, template in _SHORT:
        match = re.search(pattern, rule.text, re.DOTALL) if name in rule.name else None
        if match:
            return template.format(*match.groups()).replace("the required amount of", "").replace("  ", " ")
    sentence = _FIRST_SENTENCE.match(rule.text)
    text = " ".join((sentence[0] if sentence else rule.text).split()).rstrip(".:")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} ..."


# Names of kernels, as short as they are unambiguous.


def short_names(kernels: Sequence[str]) -> dict[str, str]:
    """Return a short name of each kernel: without type, namespaces, template and arguments where that is unique."""
    names = {kernel: _plain_name(kernel) for kernel in kernels}
    taken: dict[str, set[str]] = {}
    for kernel, name in names.items():
        taken.setdefault(name, set()).add(kernel)
    return {kernel: name if len(taken[name]) == 1 else _with_template(kernel, name) for kernel, name in names.items()}


def _plain_name(kernel: str) -> str:
    if mangled := re.match(r"_Z(N?)", kernel):
        name, rest = "", kernel[mangled.end() :]
        while size := re.match(r"\d+", rest):
            end = size.end() + int(size[0])
            name, rest = rest[size.end() : end], rest[end:] if mangled[1] else ""
        return name or kernel
    text = re.sub(r"(\(anonymous namespace\)|<?unnamed>)::", "", kernel)
    depth, plain = 0, ""
    for sign in text:
        if sign in "<[":
            depth += 1
        elif sign in ">]" and depth:
            depth -= 1
        elif sign == "(" and not depth:
            break
        elif not depth:
            plain += sign
    name = plain.split()[-1].rpartition("::")[2] if plain.split() else ""
    return name if re.fullmatch(r"[\w$.]+", name) and not name.startswith("operator") else kernel


def _with_template(kernel: str, name: str) -> str:
    """Return the name with what follows it, its template and arguments."""
    return kernel[kernel.find(name) :] if name in kernel else kernel
