"""What CUPTI watches from inside: sequences of cases, or a Python script; run as a program of its own.

    python -m prism_bench.studies.trace_worker ORDER

ORDER is a JSON file with `timeline` (the file to write) and either `script` (a path and its words) or backend,
catalogue, sequences (lists of case names by range name) and repeats. A sequence's cases are launched one after the
other, again and again, as a caller without a CUDA graph would; its host cost is taken without CUPTI first, then with
it.
"""

import json
import runpy
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError
from prism_bench.profilers.cupti import Collector
from prism_bench.profilers.timeline_file import save
from prism_bench.strict_json import json_line


def main() -> None:
    """Do what the order says; exit status 2, with the error as the last line, where it cannot be done."""
    try:
        _work(json.loads(Path(sys.argv[1]).read_text()))
    except PrismBenchError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def _work(order):
    """The costs go beside the timeline, as JSON."""
    path = Path(order["timeline"])
    if order.get("script"):
        collector, costs = Collector(runtime=True), {}
        _script(order["script"], collector)
    else:
        backend, catalogue = open_backend(order["backend"]), discover(order["catalogue"])
        collector = Collector()
        costs = {
            name: _sequence(backend, collector, name, [catalogue.case(one) for one in cases], order["repeats"])
            for name, cases in order["sequences"].items()
        }
    save(collector.timeline(), path)
    path.with_suffix(".json").write_text(json_line(costs))


def _script(words, collector):
    """Run the script as `python` would, CUPTI watching; however it ends, what was seen is kept."""
    sys.argv = list(words)
    with collector:
        try:
            runpy.run_path(words[0], run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                print(f"traced: {words[0]} ended with {ended.code}", file=sys.stderr)


def _sequence(backend, collector, name, cases, repeats):
    """Host seconds per repeat without and with CUPTI: launching alone, the device's work not waited for.

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


def _launch(runnables, repeats, synchronize):
    before = time.perf_counter()
    for _ in range(repeats):
        for runnable in runnables:
            runnable()
    seconds = time.perf_counter() - before
    synchronize()
    return seconds


if __name__ == "__main__":
    main()
