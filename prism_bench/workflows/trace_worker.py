"""Program that traces itself with CUPTI: sequences of cases, or a Python script.

    python -m prism_bench.workflows.trace_worker ORDER

ORDER is a JSON file with a `TraceOrder`. A sequence's cases are launched repeatedly in order, as a caller without a
CUDA graph would; its host cost is measured without CUPTI first, then with it.
"""

import json
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

from prism_bench.backends import Backend, Runnable, open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable, PrismBenchError
from prism_bench.io.documents import json_line
from prism_bench.profilers.cupti import ActivityCollector
from prism_bench.profilers.timeline import save
from prism_bench.spec.case import Case


class TraceOrder(TypedDict, total=False):
    """Order of a trace into the file `timeline`: a `script` (path and arguments), or sequences of cases by range."""

    timeline: str
    script: list[str]
    backend: str
    catalogue: str
    sequences: dict[str, list[str]]
    repeats: int


def main() -> None:
    """Carry out the order; exit with 2 and the error as the last line if that fails."""
    try:
        _work(json.loads(Path(sys.argv[1]).read_text()))
    except PrismBenchError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def _work(order: TraceOrder) -> None:
    """Write the timeline, and next to it as JSON the costs, and why a sequence was left out."""
    path, script = Path(order.get("timeline", "")), order.get("script")
    costs: dict[str, dict[str, float]] = {}
    left_out: dict[str, str] = {}
    if script:
        collector = ActivityCollector(runtime=True)
        sys.argv = list(script)
        with collector:
            try:  # as `python` would run it; the trace is kept however the script ends
                runpy.run_path(script[0], run_name="__main__")
            except SystemExit as ended:
                if ended.code:
                    print(f"traced: {script[0]} ended with {ended.code}", file=sys.stderr)
    else:
        backend, catalogue = open_backend(order.get("backend", "")), discover(order.get("catalogue", ""))
        collector, repeats = ActivityCollector(), order.get("repeats", 1)
        for name, cases in order.get("sequences", {}).items():
            try:
                costs[name] = _sequence(backend, collector, name, [catalogue.case(case) for case in cases], repeats)
            except BackendUnavailable as error:
                left_out[name] = str(error)
        if left_out and not costs:
            raise BackendUnavailable(next(iter(left_out.values())))
    save(collector.timeline(), path)
    path.with_suffix(".json").write_text(json_line({"costs": costs, "left_out": left_out}))


def _sequence(
    backend: Backend, collector: ActivityCollector, name: str, cases: Sequence[Case], repeats: int
) -> dict[str, float]:
    """Return host seconds of launching per repeat, without and with CUPTI, not waiting for the device.

    Both are preceded by the same number of repeats: CUPTI allocates its buffers when it sees the first launches.
    """
    wait = getattr(backend.xp, "cuda", None)
    synchronize = wait.runtime.deviceSynchronize if wait else lambda: None
    with ExitStack() as stack:
        runnables = [stack.enter_context(backend.prepare(case, case.inputs())) for case in cases]
        _launch(runnables, repeats, synchronize)
        plain = _launch(runnables, repeats, synchronize)
        with collector:
            with collector.warm_up():
                _launch(runnables, repeats, synchronize)
            with collector.range(name):
                watched = _launch(runnables, repeats, synchronize)
    return {"plain": plain / repeats, "watched": watched / repeats, "repeats": repeats}


def _launch(runnables: Sequence[Runnable], repeats: int, synchronize: Callable[[], object]) -> float:
    before = time.perf_counter()
    for _ in range(repeats):
        for runnable in runnables:
            runnable()
    seconds = time.perf_counter() - before
    synchronize()
    return seconds


if __name__ == "__main__":
    main()
