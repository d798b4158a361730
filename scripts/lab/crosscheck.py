"""Compare our clock with two others on one kernel, `vector_add`, at several sizes.

CUPTI's activity records have the time that the device worked on each kernel of a graph's replay; nvbench (cuda-bench)
times a cold launch behind its own blocking kernel. Its flush leaves L2 full of dirty lines, which are written back
inside its window; `dirty` is our cold clock with such a flush. Each clock runs in a separate process. A clock that is
not installed is reported and left out. Prints a Markdown table, or JSON.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from prism_bench.backends import Backend, Runnable, open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError
from prism_bench.io.documents import json_line, json_text
from prism_bench.io.workers import environment
from prism_bench.measure import ClockGate
from prism_bench.run.measuring import measure_metric
from prism_bench.run.settings import Settings
from prism_bench.spec.case import Case
from prism_bench.spec.workload import Workload

SIZES = (100_000, 1 << 20, 16 << 20, 64 << 20, 256 << 20)
NEEDS = {"cupti": "cupti-python", "nvbench": "cuda-bench"}
MODULES = {"cupti": "cupti", "nvbench": "cuda.bench"}
COLUMNS = ("hot", "cupti", "cold", "dirty", "nvbench")

ClockTimes = dict[str, dict[int, float | None]]  # seconds by clock and size
SizeRow = dict[str, float | None]


def runnable(size: int) -> tuple[Backend, Runnable]:
    """Return `vector_add` at `size` elements, prepared, with its backend."""
    backend = open_backend("cuda")
    case = Case(discover().kernel("vector_add"), Workload(n=size), "S1")
    return backend, backend.prepare(case, case.inputs())


def ours() -> ClockTimes:
    """Return our cold and hot medians."""
    found: ClockTimes = {"hot": {}, "cold": {}, "dirty": {}}
    for size in SIZES:
        backend, prepared = runnable(size)
        for name, metric in (("cold", "cold_time"), ("hot", "hot_time"), ("dirty", "cold_time")):
            getattr(backend, "harness").leave_dirty = name == "dirty"  # noqa: B009 - of the CUDA backend alone
            once = prepared.timers()[metric]()
            measured = measure_metric(metric, "kernel", once, Settings().criteria[metric], ClockGate())[0]
            found[name][size] = measured.median
        prepared.__exit__(None, None, None)
    return found


def cupti() -> ClockTimes:
    """Return CUPTI's kernel durations in replays of the hot clock's own graph."""
    from cupti import cupti as api

    records: list[Any] = []
    _, first = runnable(SIZES[0])
    api.activity_register_callbacks(lambda: (8 << 20, 0), records.extend)
    api.activity_enable(api.ActivityKind.CONCURRENT_KERNEL)
    found: dict[int, float | None] = {}
    for size in SIZES:
        _, prepared = runnable(size)
        replay = prepared.timers()["hot_time"]()
        records.clear()
        for _ in range(5):
            replay()
        api.activity_flush_all(1)
        found[size] = median((r.end - r.start) * 1e-9 for r in records if "vector_add" in r.name)
        records.clear()
        prepared.__exit__(None, None, None)
    del first
    return {"cupti": found}


def nvbench() -> ClockTimes:
    """Return nvbench's cold medians, its blocking kernel on."""
    import cuda.bench as bench
    import cupy

    prepared: dict[int, Runnable] = {}

    def vector_add(state: Any) -> None:
        size = state.get_int64("n")
        prepared.clear()
        prepared[size] = runnable(size)[1]

        def launch(context: Any) -> None:
            with cupy.cuda.Stream.from_external(context.get_stream()):
                prepared[size]()

        state.exec(launch, batched=False)

    bench.register(vector_add).add_int64_axis("n", SIZES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        bench.run_all_benchmarks(["nvbench", "--json", str(path)])
        states = json.loads(path.read_text())["benchmarks"][0]["states"]
    return {"nvbench": {int(s["axis_values"][0]["value"]): cold_median(s) for s in states}}


def cold_median(state: Mapping[str, Any]) -> float:
    """Return the median cold GPU time of one nvbench state in seconds, or the mean where nvbench gives no median."""
    summaries = {one["tag"]: one for one in state["summaries"]}
    for tag in ("nv/cold/time/gpu/median", "nv/cold/time/gpu/q2", "nv/cold/time/gpu/mean"):
        if tag in summaries:
            return float(summaries[tag]["data"][0]["value"])
    raise SystemExit(f"nvbench gave no cold time; its tags: {', '.join(sorted(summaries))}")


CLOCKS: dict[str, Callable[[], ClockTimes]] = {"ours": ours, "cupti": cupti, "nvbench": nvbench}


def measure(clock: str) -> dict[str, dict[str, float | None]]:
    """Return the clock's times from a separate process; nothing, with the reason on standard error, without it."""
    module = MODULES.get(clock)
    if module and not (find_spec(module.partition(".")[0]) and find_spec(module)):
        print(f"crosscheck: {clock} left out; it needs the package {NEEDS[clock]}", file=sys.stderr)
        return {}
    command = [sys.executable, "-m", "lab.crosscheck", "--clock", clock]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment())
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        print(f"crosscheck: {clock} failed with exit status {done.returncode}", file=sys.stderr)
        return {}
    return json.loads(lines[-1])


def rows(times: Mapping[str, Mapping[str, float | None]]) -> Iterator[SizeRow]:
    """Yield one row per size: seconds by clock and our clock over each peer."""
    for size in SIZES:
        row = {name: times.get(name, {}).get(str(size)) for name in COLUMNS}
        for one, other in (("hot", "cupti"), ("dirty", "nvbench")):
            time, peer = row[one], row[other]
            row[f"{one}/{other}"] = time / peer if time and peer else None
        yield {"n": size, **row}


def table(found: Iterable[SizeRow]) -> Iterator[str]:
    """Yield the rows as Markdown, in microseconds."""
    names = ("n", *COLUMNS[:2], "hot/cupti", *COLUMNS[2:], "dirty/nvbench")
    yield "| elements | hot | CUPTI | hot / CUPTI | cold | cold, L2 left dirty | nvbench, cold | dirty / nvbench |"
    yield "|" + "---:|" * len(names)
    for row in found:
        cells = {
            name: "-" if value is None else f"{value:.3f}" if "/" in name else f"{value * 1e6:.4g}"
            for name, value in row.items()
        }
        yield "| " + " | ".join((cells | {"n": f"{row['n']:,}"})[name] for name in names) + " |"


def main() -> None:
    """Print the times of every clock, or, in a child process, those of one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print seconds as JSON")
    parser.add_argument("--clock", choices=tuple(CLOCKS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.clock:
        print("\n" + json_line(CLOCKS[options.clock]()))
        return
    try:
        open_backend("cuda")
    except PrismBenchError as error:
        sys.exit(f"crosscheck: {error}")
    times = {}
    for clock in CLOCKS:
        times |= measure(clock)
    found = list(rows(times))
    print(json_text(found, indent=1) if options.json else "\n".join(table(found)))


if __name__ == "__main__":
    main()
