"""Tracing sequences of cases, scripts, or what nsys kept: a timeline from a process of its own, or from a file."""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.profilers import nsys, nsys_csv, nsys_sqlite, timeline_file, tools
from prism_bench.profilers.cupti import injection_library
from prism_bench.profilers.failures import ProfilerFailed, classify, last_words
from prism_bench.profilers.timeline import Timeline
from prism_bench.strict_json import json_line
from prism_bench.workers.child import environment

REPEATS = 20
GRACE = 120.0  # seconds in which nsys may write its report after the program has ended


@dataclass(frozen=True)
class Cost:
    """Host seconds to enqueue a sequence once, `plain` and `watched` by CUPTI."""

    plain: float
    watched: float
    repeats: int


@dataclass(frozen=True)
class Traced:
    """A timeline, and by range what launching it cost the host, where the cases were ours to launch."""

    timeline: Timeline
    costs: Mapping[str, Cost] = field(default_factory=dict)


def trace_cases(
    catalogue, backend: str, sequences: Mapping[str, Sequence[str]], repeats: int = REPEATS, seconds: float = 300.0
) -> Traced:
    """Launch each sequence of cases (by name) `repeats` times in a range of its name, CUPTI watching."""
    order = {"backend": backend, "catalogue": str(catalogue.folder), "repeats": repeats,
             "sequences": {name: list(cases) for name, cases in sequences.items()}}  # fmt: skip
    return _traced(order, seconds)


def trace_script(words: Sequence[str], seconds: float = 300.0) -> Traced:
    """Run a Python script with its words, CUPTI watching; the ranges that it pushes are seen."""
    program = [word for word in words if word not in ("python", "python3", sys.executable)]
    if not program or not program[0].endswith(".py"):
        raise UsageError("CUPTI watches Python scripts: give the path of a .py file and its words; capture any other "
                         "program with nsys, export it as SQLite, and read it with --from")  # fmt: skip
    if not Path(program[0]).is_file():
        raise UsageError(f"{program[0]}: no such script")
    return _traced({"script": program}, seconds)


def _traced(order, seconds):
    with tempfile.TemporaryDirectory() as folder:
        place, path = Path(folder) / "order.json", Path(folder) / "timeline.npz"
        place.write_text(json_line({**order, "timeline": str(path)}))
        library = injection_library()
        ranges = {"NVTX_INJECTION64_PATH": library} if library else {}
        command = [sys.executable, "-m", "prism_bench.studies.trace_worker", str(place)]
        log = Path(folder) / "log"
        ended = tools.run(command, log, seconds, PYTHONPATH=environment()["PYTHONPATH"], **ranges)
        if ended.status == 2 and not path.is_file():
            raise BackendUnavailable(last_words(ended.text, lines=1))
        if not path.is_file():
            raise ProfilerFailed("cupti", classify(ended.text, ended.status, produced=False), last_words(ended.text))
        costs = json.loads(path.with_suffix(".json").read_text())
        return Traced(timeline_file.load(path), {name: Cost(**cost) for name, cost in costs.items()})


def trace_with_nsys(catalogue, backend: str, cases: Sequence[str], folder: Path, seconds: float = 300.0) -> Timeline:
    """Each case launched once in a range of its name, nsys watching; its report stays in `folder`."""
    report = folder / "capture.nsys-rep"
    for old in folder.glob("capture.*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as place:
        order = Path(place) / "order.json"
        order.write_text(json_line({
            "backend": backend, "catalogue": str(catalogue.folder), "cases": list(cases), "verify": False,
            "traffic": False, "seconds": seconds, "case_seconds": seconds, "once": True,
        }))  # fmt: skip
        program = [sys.executable, "-m", "prism_bench.studies.profile_worker", str(order), str(Path(place) / "events")]
        command, log = nsys.capture(tools.find("nsys"), report, program), report.with_suffix(".log")
        ended = tools.run(command, log, seconds + GRACE, PYTHONPATH=environment()["PYTHONPATH"])
    if not report.is_file():
        words = ended.text + ("\nImportation failed: only a .qdstrm is there" if _raw(report) else "")
        raise ProfilerFailed("nsys", classify(words, ended.status, produced=False), last_words(ended.text))
    return _exported(report)


def _raw(report):
    return report.with_suffix(".qdstrm").is_file()


def timeline_from(path: Path) -> Timeline:
    """The timeline in a file: an SQLite export or a trace's CSV of nsys, its report (which takes nsys), or our own."""
    if path.suffix == ".npz":
        return timeline_file.load(path)
    if path.suffix == ".csv":
        return nsys_csv.timeline(nsys_csv.read(path), str(path))
    if path.suffix == ".nsys-rep":
        return _exported(path)
    if path.suffix == ".qdstrm":
        raise UsageError(f"{path}: a raw recording; nsys makes a report of it with QdstrmImporter, then export that")
    return nsys_sqlite.read(path)


def _exported(report):
    if not report.is_file():
        raise UsageError(f"{report}: no such report")
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "export.sqlite"
        ended = tools.run(nsys.export(tools.find("nsys"), report, database), Path(folder) / "log", 600.0)
        if not database.is_file():
            raise ProfilerFailed("nsys", classify(ended.text, ended.status, produced=False), last_words(ended.text))
        return nsys_sqlite.read(database)
