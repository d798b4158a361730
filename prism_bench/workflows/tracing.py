"""Timelines of sequences of cases and of scripts, traced in a separate process, or read from a file of nsys."""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.catalogue import Catalogue
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.io.documents import json_line
from prism_bench.io.workers import environment
from prism_bench.profilers import nsys, tools
from prism_bench.profilers import timeline as timeline_file
from prism_bench.profilers.cupti import injection_library
from prism_bench.profilers.timeline import Timeline
from prism_bench.profilers.tools import OTHER, ProfilerFailed, classify, last_words
from prism_bench.workflows.file_kinds import kind_of
from prism_bench.workflows.profile_worker import ProfileOrder
from prism_bench.workflows.trace_worker import TraceOrder

REPEATS = 20
_GRACE = 120.0  # seconds in which nsys may write its report after the program has ended


@dataclass(frozen=True)
class LaunchCost:
    """Host seconds to enqueue a sequence once, `plain` and `watched` by CUPTI."""

    plain: float
    watched: float
    repeats: int


@dataclass(frozen=True)
class TracedRun:
    """A timeline and, if cases were launched, the host's cost of launching each range.

    `left_out` has the reason for each range that this machine cannot launch.
    """

    timeline: Timeline
    costs: Mapping[str, LaunchCost] = field(default_factory=dict[str, LaunchCost])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


def trace_cases(
    catalogue: Catalogue,
    backend: str,
    sequences: Mapping[str, Sequence[str]],
    repeats: int = REPEATS,
    seconds: float = 300.0,
) -> TracedRun:
    """Launch each sequence of cases (by name) `repeats` times in a range of its name, traced by CUPTI."""
    order: TraceOrder = {
        "backend": backend,
        "catalogue": str(catalogue.folder),
        "repeats": repeats,
        "sequences": {name: list(cases) for name, cases in sequences.items()},
    }
    return _traced(order, seconds)


def trace_script(arguments: Sequence[str], seconds: float = 300.0) -> TracedRun:
    """Run a Python script with its arguments, traced by CUPTI with the ranges that it pushes."""
    program = [word for word in arguments if word not in ("python", "python3", sys.executable)]
    if not program or not program[0].endswith(".py"):
        raise UsageError(
            "CUPTI watches Python scripts: give the path of a .py file and its arguments; capture any other "
            "program with nsys, and read its report: prism-bench profile FILE"
        )
    if not Path(program[0]).is_file():
        raise UsageError(f"{program[0]}: no such script")
    return _traced({"script": program}, seconds)


def _traced(order: TraceOrder, seconds: float) -> TracedRun:
    with tempfile.TemporaryDirectory() as folder:
        order_file, path = Path(folder) / "order.json", Path(folder) / "timeline.npz"
        order_file.write_text(json_line({**order, "timeline": str(path)}))
        library = injection_library()
        ranges = {"NVTX_INJECTION64_PATH": library} if library else {}
        command = [sys.executable, "-m", "prism_bench.workflows.trace_worker", str(order_file)]
        log = Path(folder) / "log"
        ended = tools.run(command, log, seconds, lambda: None, PYTHONPATH=environment()["PYTHONPATH"], **ranges)
        if ended.status == 2 and not path.is_file():
            raise BackendUnavailable(last_words(ended.text, lines=1))
        if not path.is_file():
            raise _failure("cupti", ended)
        known = json.loads(path.with_suffix(".json").read_text())
        costs = {name: LaunchCost(**cost) for name, cost in known["costs"].items()}
        return TracedRun(timeline_file.load(path), costs, known["left_out"])


def trace_with_nsys(
    catalogue: Catalogue, backend: str, cases: Sequence[str], folder: Path, seconds: float = 300.0
) -> Timeline:
    """Launch each case once in a range of its name, traced by nsys, whose report stays in `folder`."""
    report = folder / "capture.nsys-rep"
    for old in folder.glob("capture.*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as temporary:
        order_file, events = Path(temporary) / "order.json", Path(temporary) / "events"
        order: ProfileOrder = {
            "backend": backend,
            "catalogue": str(catalogue.folder),
            "cases": list(cases),
            "verify": False,
            "traffic": False,
            "seconds": seconds,
            "case_seconds": seconds,
            "once": True,
        }
        order_file.write_text(json_line(order))
        program = [sys.executable, "-m", "prism_bench.workflows.profile_worker", str(order_file), str(events)]
        command, log = nsys.capture(tools.find("nsys"), report, program), report.with_suffix(".log")
        ended = tools.run(command, log, seconds + _GRACE, PYTHONPATH=environment()["PYTHONPATH"])
    if not report.is_file():
        is_raw = report.with_suffix(".qdstrm").is_file()
        raise _failure("nsys", ended, "\nImportation failed: only a .qdstrm is there" if is_raw else "")
    return _exported(report)


def _failure(tool: str, ended: tools.Ended, more: str = "") -> ProfilerFailed:
    """Return the error of a tool that left no result; `more` is added to the text that is classified."""
    failure = classify(ended.text + more, ended.status, produced=False) or OTHER
    return ProfilerFailed(tool, failure, last_words(ended.text))


def timeline_from(path: Path) -> Timeline:
    """Return the timeline in a file, by its content: an export, CSV trace or report of nsys, or one of Prism Bench."""
    kind = kind_of(path)
    name = kind.name if kind else None
    if name == "timeline":
        return timeline_file.load(path)
    if name == "nsys table":
        return nsys.timeline(nsys.read(path), str(path))
    if name == "nsys report":
        return _exported(path)
    if name == "nsys recording":
        raise UsageError(f"{path}: a raw recording; nsys makes a report of it with QdstrmImporter, then export that")
    return nsys.read_export(path)


def _exported(report: Path) -> Timeline:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "export.sqlite"
        ended = tools.run(nsys.export(tools.find("nsys"), report, database), Path(folder) / "log", 600.0)
        if not database.is_file():
            raise _failure("nsys", ended)
        return nsys.read_export(database)
