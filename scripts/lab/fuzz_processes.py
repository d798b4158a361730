"""Fuzz of every command that reads records, in several processes: damaged records, and reports/robustness/records.csv.

No answer may be a traceback or a wrong number; reports/robustness/README.md explains the table. The seed is fixed; one
core takes about half an hour for 10,000 records. Ends with 1 where an answer was wrong.
"""

import argparse
import gc
import io
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from lab import REPOSITORY
from lab.record_fuzz import Answer, Ask, Findings, FuzzBench, fuzz
from prism_bench.io.documents import json_text
from prism_bench.io.files import SHARED, default_folder
from prism_bench.record import store
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv
from prism_bench.workflows.exported import exported

KERNELS = ("softmax", "vector_add")
_RULERS = ("copy", "fma", "null", "read")
_SAMPLES = 5  # of each process


def bench_in(folder: Path, source: RunRecord, profiled: RunRecord) -> FuzzBench:
    """Lay down what the commands read: a few cases of `source`, with the counters that `profiled` has of them."""
    profiles = {case.name: case.profile for case in profiled.cases}
    timed = [case for case in source.cases if case.measurements and case.kernel in KERNELS and case.label == "S1"]
    rulers = {case.kernel: case for case in source.cases if case.measurements and case.kernel in _RULERS}
    edges = {case.kernel: case for case in source.cases if case.is_edge and case.kernel in KERNELS}
    chosen = [*edges.values(), *timed, *rulers.values()]  # the largest of the ceilings, and one edge of each kernel
    cases = [replace(_short(case), profile=profiles.get(case.name, {})) for case in chosen]
    record = replace(source, cases=tuple(cases))
    runs = folder / "runs"
    old = store.RecordPlace(runs).save(replace(_slower(record), created="2026-11-01T00:00:00"))
    store.RecordPlace(runs).save(replace(_slower(record), created="2026-11-02T00:00:00"))
    part = store.save(_other_part(record), folder / "part.json.gz")
    outputs = folder / "outputs"
    outputs.mkdir()
    return FuzzBench(folder, runs, old, part, _catalogue(outputs / "kernels"))


def _short(case: CaseResult) -> CaseResult:
    shorter = [
        replace(
            one,
            processes=tuple(group[:_SAMPLES] for group in one.processes),
            clocks=tuple(group[:_SAMPLES] for group in one.clocks),
        )
        for one in case.measurements
    ]
    return replace(case, measurements=tuple(shorter), verification=case.verification[:2])


def _slower(record: RunRecord) -> RunRecord:
    """Return the record with times twice as long, so that no record is taken for another one."""
    return replace(
        record,
        cases=tuple(
            replace(
                case,
                measurements=tuple(
                    replace(one, processes=tuple(tuple(2 * sample for sample in group) for group in one.processes))
                    for one in case.measurements
                ),
            )
            for case in record.cases
        ),
    )


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
        if source.is_file() and source.parent.name not in SHARED:
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


COLUMNS = ("of", "name", "asked", "refused", "ended_with_0", "ended_with_1", "ended_with_3", "tracebacks", "wrong")


def table(findings: Findings) -> Iterator[dict[str, object]]:
    """Yield a line for each kind of damage, where `asked` counts records, and for each command."""
    lines = [
        ("damage", kind, count, findings.refused[kind], "", "", "") for kind, count in sorted(findings.records.items())
    ]
    lines += [
        ("command", name, count, *(findings.codes[name, code] for code in (2, 0, 1, 3)))
        for name, count in findings.asked.items()
    ]
    for line in lines:
        place = ("command", "damage").index(line[0])
        odd = [sum(one[place] == line[1] for one in found) for found in (findings.crashes, findings.wrong)]
        yield dict(zip(COLUMNS, (*line, *odd), strict=True))


def main(command_line: Callable[[], None]) -> int:
    """Fuzz the command line and write the table; return the exit code.

    Every process imports `command_line` by its name, so it is a function of a module.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes, each with a different seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no record later")
    parser.add_argument("--seed", type=int, default=17, help="of the first process")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "reports" / "robustness" / "records.csv")
    chosen = parser.parse_args()
    count = -(-chosen.records // chosen.jobs)
    work = partial(fuzz_with_seed, command_line=command_line, count=count, seconds=chosen.seconds)
    found = Findings()
    with get_context("spawn").Pool(chosen.jobs) as pool:
        for one in pool.imap_unordered(work, range(chosen.seed, chosen.seed + chosen.jobs)):
            found.add(one)
        pool.close()
        pool.join()
    write_csv(table(found), chosen.output.resolve(), COLUMNS)
    for one in [*found.crashes[:20], *found.wrong[:20]]:
        print(*one, sep="\n  ", end="\n\n")
    print(
        f"{sum(found.records.values())} damaged records, {count_text(sum(found.asked.values()), 'question')}: "
        f"{count_text(len(found.crashes), 'traceback')}, {len(found.wrong)} wrong answers"
    )
    return 1 if found.crashes or found.wrong else 0


def fuzz_with_seed(seed: int, command_line: Callable[[], None], count: int, seconds: float) -> Findings:
    """Fuzz the command line in this process, in a temporary folder; return the findings."""
    path = store.newest(REPOSITORY / "reports" / "runs")
    if path is None:
        raise FileNotFoundError("reports/runs has no record")
    newest = store.read(path)
    profiled = store.read(max((REPOSITORY / "reports" / "profiles").glob("*/*.json.gz")))
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / "fuzz"
        folder.mkdir()
        os.environ["PRISM_BENCH_CACHE"] = str(folder / "cache")
        os.chdir(folder)
        bench = bench_in(folder, newest, profiled)
        ask = asking(command_line, lambda: json_text(vars(exported(bench.runs, bench.catalogue))))
        found = fuzz(bench, ask, seed=seed, count=count, seconds=seconds)
        os.chdir(REPOSITORY)
    return found
