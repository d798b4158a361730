"""Sound records and a small catalogue for commands that read damaged records, and how the commands are called."""

import gc
import io
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

from prism_bench import store
from prism_bench.files import default_folder
from prism_bench.run_record import CaseResult, RunRecord
from prism_bench.studies.record_fuzz import Answer, Ask, FuzzBench

KERNELS = ("softmax", "vector_add")
_RULERS = ("copy", "fma", "null", "read")
_SAMPLES = 5  # of each process


def bench_in(folder: Path, source: RunRecord, profiled: RunRecord) -> FuzzBench:
    """Lay down what the commands read: a few cases of `source`, with the counters that `profiled` has of them."""
    profiles = {case.name: case.profile for case in profiled.cases}
    cases = [replace(_short(case), profile=profiles.get(case.name, {})) for case in _chosen(source)]
    record = replace(source, cases=tuple(cases))
    runs = folder / "runs"
    old = store.RecordPlace(runs).save(replace(_slower(record), created="2026-11-01T00:00:00"))
    store.RecordPlace(runs).save(replace(_slower(record), created="2026-11-02T00:00:00"))
    part = store.save(_other_part(record), folder / "part.json.gz")
    outputs = folder / "outputs"
    outputs.mkdir()
    return FuzzBench(folder, runs, old, part, _catalogue(outputs / "kernels"))


def _chosen(source: RunRecord) -> list[CaseResult]:
    """Return the timed cases of the kernels with the largest of the ceiling benchmarks, and one edge of each kernel."""
    timed = [case for case in source.cases if case.measurements and case.kernel in KERNELS and case.label == "S1"]
    rulers = {case.kernel: case for case in source.cases if case.measurements and case.kernel in _RULERS}
    edges = {case.kernel: case for case in source.cases if case.is_edge and case.kernel in KERNELS}
    return [*edges.values(), *timed, *rulers.values()]


def _short(case: CaseResult) -> CaseResult:
    shorter = [
        replace(one, processes=tuple(group[:_SAMPLES] for group in one.processes),
                clocks=tuple(group[:_SAMPLES] for group in one.clocks))
        for one in case.measurements
    ]  # fmt: skip
    return replace(case, measurements=tuple(shorter), verification=case.verification[:2])


def _slower(record: RunRecord) -> RunRecord:
    """Return the record with times twice as long, so that no record is taken for another one."""
    return replace(record, cases=tuple(
        replace(case, measurements=tuple(
            replace(one, processes=tuple(tuple(2 * sample for sample in group) for group in one.processes))
            for one in case.measurements
        ))
        for case in record.cases
    ))  # fmt: skip


def _other_part(record: RunRecord) -> RunRecord:
    """Return a part of the same run with own kernels, from another device."""
    cases = [
        replace(case, kernel=f"{case.kernel}_2", name=f"{case.kernel}_2{case.name[len(case.kernel) :]}")
        for case in record.cases
        if not case.ceiling
    ]
    return replace(record, cases=tuple(cases), machine={**record.machine, "uuid": "GPU-2"}, parts=())


def _catalogue(folder: Path) -> Path:
    """Return a catalogue of the chosen kernels only, which is read quickly."""
    built_in = default_folder()
    for source in [*built_in.glob("machine/*"), *(path for name in KERNELS for path in built_in.glob(f"*/{name}.*"))]:
        if source.is_file() and source.parent.name != "include":
            place = folder / source.relative_to(built_in)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
    return folder


def asking(main: Callable[[], None], exporter: Callable[[], str]) -> Ask:
    """Return a bench that runs the command line `main` in this process, and the exporter by what returns its text."""

    def ask(words: Sequence[object]) -> Answer:
        out, err, before, code = io.StringIO(), io.StringIO(), sys.argv, 0
        try:
            sys.argv = ["prism-bench", *map(str, words)]
            with redirect_stdout(out), redirect_stderr(err):
                print(exporter()) if words[0] == "exporter" else main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except Exception:
            return Answer(1, out.getvalue(), err.getvalue(), traceback.format_exc())
        finally:
            sys.argv = before
            gc.unfreeze()
        return Answer(code, out.getvalue(), err.getvalue())

    return ask
