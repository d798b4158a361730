"""A slowdown planted on purpose: a copy of a catalogue whose kernels take a known share longer, to see who notices.

The block that ends last does not end yet: it waits, so that the launch takes that much longer, however its blocks share
the work. How long depends on the launch: the share of that case's own time, split among its launches. On the emulator
nothing waits; the copy computes what the original does.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from prism_bench.catalogue import Catalogue
from prism_bench.errors import ResultsError
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import Launch

_HEADER = """#pragma once
// The block that ends last waits until `cycles` of the SM clock are over: a slowdown planted on purpose.
#define PLANTED_BLOCKS ((unsigned long long)gridDim.x * gridDim.y * gridDim.z)
#define PLANTED_RESIDENT 8192ull  // blocks, more than run at once: who ends last is one of that many started last

struct PlantedEnd {
    long long cycles;
    unsigned* ended;

#ifndef CPU_CUDA
    // A block ends with its first thread, nearly; a barrier here could meet one that other threads still wait at.
    __device__ __forceinline__ ~PlantedEnd() {
        if (cycles == 0 || threadIdx.x + threadIdx.y + threadIdx.z != 0) return;
        const long long start = clock64();
        const unsigned long long blocks = PLANTED_BLOCKS;
        const unsigned long long counted = blocks < PLANTED_RESIDENT ? blocks : PLANTED_RESIDENT;
        const unsigned long long row = blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z;
        if (blockIdx.x + gridDim.x * row + counted < blocks) return;
        if (atomicAdd(ended, 1u) + 1u != counted) return;
        *ended = 0u;
        while (clock64() - start < cycles) {
        }
    }
#endif
};
"""
_ENTRY = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\(")
_GUARD = " __device__ static unsigned planted_ended; const PlantedEnd planted{{{}, &planted_ended}};"
_DELAY = """
#ifndef CPU_CUDA
    if (blockIdx.x % 64 == 0) {{
        for (const long long from = clock64(); clock64() - from < {}ll;) {{
        }}
    }}
#endif
"""
_ALIKE = 0.1  # cases that share a launch may want waits that differ by this much


@dataclass(frozen=True)
class Wait:
    """How long a launch of `entry` in so many `blocks` waits before it ends, in cycles."""

    entry: str
    blocks: int
    cycles: int


def plant(catalogue: Catalogue, record: RunRecord, share: float, folder: Path, device: Device) -> list[str]:
    """Copy the catalogue to `folder` with every case of the record slower by `share` of its cold time.

    Return the names of the cases that got it. Those are left out whose launches look like another case's with another
    time, or whose entries are in a header.
    """
    shutil.copytree(catalogue.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "include").mkdir(exist_ok=True)
    (folder / "include" / "planted.cuh").write_text(_HEADER)
    cases = {case.name: case for case in catalogue.cases()}
    wanted: dict[str, float] = {}
    by_source: dict[Path, list[Case]] = {}
    for result in record.cases:
        cycles = _cycles(result, share) if result.name in cases else None
        if cycles:
            wanted[result.name] = cycles
            by_source.setdefault(cases[result.name].spec.source_file, []).append(cases[result.name])
    copies = {folder / source.relative_to(catalogue.folder): those for source, those in by_source.items()}
    return [name for copy, those in copies.items() for name in _plant_source(copy, those, wanted, device)]


def _cycles(result: CaseResult, share: float) -> float | None:
    """Return the cycles that the case's launches wait together; None where the record has no cold time of it."""
    cold = result.measurement("cold_time")
    if result.status != "ok" or cold is None or not cold.valid:
        return None
    median, clock = cold.median, cold.clock
    return share * median * clock if median and clock else None


def _plant_source(copy: Path, cases: list[Case], wanted: Mapping[str, float], device: Device) -> list[str]:
    """Write the waits into the source; return the names of the cases whose every launch waits as it should."""
    text = copy.read_text()
    waits = _waits(cases, wanted, device)
    there = set(_ENTRY.findall(text))
    copy.write_text('#include "planted.cuh"\n' + planted_text(text, waits))
    kept = {(wait.entry, wait.blocks): wait.cycles for wait in waits if wait.entry in there}
    found = []
    for case in cases:
        waiting = [kept.get(launch) for launch in _launches(case, device)]
        total = sum(cycles or 0 for cycles in waiting)
        if waiting and None not in waiting and abs(total / wanted[case.name] - 1) <= _ALIKE:
            found.append(case.name)
    return found


def _waits(cases: list[Case], wanted: Mapping[str, float], device: Device) -> list[Wait]:
    """Return one wait per entry and number of blocks: that of the case that asks for the longest."""
    longest: dict[tuple[str, int], float] = {}
    for case in cases:
        launches = _launches(case, device)
        for launch in launches:
            longest[launch] = max(longest.get(launch, 0), wanted[case.name] / len(launches))
    return [Wait(entry, blocks, round(cycles)) for (entry, blocks), cycles in longest.items()]


def _launches(case: Case, device: Device) -> list[tuple[str, int]]:
    """Return entry and number of blocks of every launch of the case."""
    steps = [step for step in case.plan.steps(device) if isinstance(step, Launch) and not step.is_empty]
    grids = [step.grid if isinstance(step.grid, tuple) else (step.grid,) for step in steps]
    entries = [(step.entry or case.spec.entry).partition("<")[0] for step in steps]
    return [(entry, prod(map(int, grid))) for entry, grid in zip(entries, grids, strict=True)]


def planted_text(text: str, waits: list[Wait]) -> str:
    """Return the source with a guard at the start of every entry that has waits; it ends when a thread returns."""
    pieces, done = [], 0
    for entry in _ENTRY.finditer(text):
        own = [wait for wait in waits if wait.entry == entry[1]]
        body = _body(text, entry.end())
        if own and body:
            waiting = "".join(f"PLANTED_BLOCKS == {wait.blocks}ull ? {wait.cycles}ll : " for wait in own)
            pieces += [text[done:body], _GUARD.format(f"{waiting}0ll")]
            done = body
    return "".join([*pieces, text[done:]])


def delayed_text(text: str, cycles: int) -> str:
    """Return the source with a wait at the start of every entry, in one block of 64; the emulator does not wait.

    Raise a ResultsError where the source has no entry.
    """
    pieces, done = list[str](), 0
    for entry in _ENTRY.finditer(text):
        body = _body(text, entry.end())
        if body:
            pieces += [text[done:body], _DELAY.format(cycles)]
            done = body
    if not pieces:
        raise ResultsError("the source has no __global__ function to slow: its entries are in a header")
    return "".join([*pieces, text[done:]])


def _body(text: str, position: int) -> int | None:
    """Return where the body of a function begins whose parameters begin at `position`; None for a declaration."""
    depth = 1
    while depth and position < len(text):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        position += 1
    brace = re.match(r"\s*\{", text[position:])
    return position + brace.end() if brace else None
