"""Program that CUPTI watches from inside: sequences of cases, or a Python script.

    python -m prism_bench.workflows.trace_worker ORDER

ORDER is a JSON file with a `TraceOrder`. A sequence's cases are launched one after the
other, again and again, as a caller without a CUDA graph would; its host cost is taken without CUPTI first, then with
it.
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
from prism_bench.errors import PrismBenchError
from prism_bench.io.documents import json_line
from prism_bench.profilers.cupti import ActivityCollector
from prism_bench.profilers.timeline import save
from prism_bench.spec.case import Case


class TraceOrder(TypedDict, total=False):
    """What to trace into the file `timeline`: a `script` (its path and words), or sequences of cases by range name."""

    timeline: str
    script: list[str]
    backend: str
    catalogue: str
    sequences: dict[str, list[str]]
    repeats: int


def main() -> None:
    """Carry out the order; exit status 2, with the error as the last line, where it cannot be done."""
    try:
        _work(json.loads(Path(sys.argv[1]).read_text()))
    except PrismBenchError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def _work(order: TraceOrder) -> None:
    """Write the timeline, and next to it the costs as JSON."""
    path, script = Path(order.get("timeline", "")), order.get("script")
    if script:
        collector, costs = ActivityCollector(runtime=True), {}
        _script(script, collector)
    else:
        backend, catalogue = open_backend(order.get("backend", "")), discover(order.get("catalogue", ""))
        collector, repeats = ActivityCollector(), order.get("repeats", 1)
        costs = {
            name: _sequence(backend, collector, name, [catalogue.case(one) for one in cases], repeats)
            for name, cases in order.get("sequences", {}).items()
        }
    save(collector.timeline(), path)
    path.with_suffix(".json").write_text(json_line(costs))


def _script(words: Sequence[str], collector: ActivityCollector) -> None:
    """Run the script as `python` would, CUPTI watching; what was seen is kept, however it ends."""
    sys.argv = list(words)
    with collector:
        try:
            runpy.run_path(words[0], run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                print(f"traced: {words[0]} ended with {ended.code}", file=sys.stderr)


def _sequence(
    backend: Backend, collector: ActivityCollector, name: str, cases: Sequence[Case], repeats: int
) -> dict[str, float]:
    """Return host seconds per repeat without and with CUPTI: launching alone, without waiting for the device.

    Either is preceded by as many repeats again: CUPTI allocates its buffers while it sees the first work launched.
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
