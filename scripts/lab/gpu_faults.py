"""Faults that a GPU stops, or that are wrong there: what finds each of them, without a GPU and on one.

`faults/` is a catalogue with 40 faults, each with the form that is right. Without a GPU they are given to the emulator
(`prism-bench verify`) and the compiler (`prism-bench compile`). With `--gpu` each form is launched in a separate
process, since a fault may make the device useless for its process; where a launch ends as if nothing were wrong,
compute-sanitizer repeats it. Both write their columns of the same table.
"""

import argparse
import csv
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from lab import REPOSITORY, printed_json
from lab.sanitize_worker import allocate_each_buffer
from prism_bench.backends import open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.io.workers import environment
from prism_bench.profilers import tools
from prism_bench.profilers.tools import BEGIN, END, FAILED, ProfilerFailed
from prism_bench.run.verification import complaint, passed, verify
from prism_bench.spec.case import Case, Device
from prism_bench.workflows.compile_table import write_csv

FAULTS = REPOSITORY / "scripts" / "lab" / "faults"
TABLE = REPOSITORY / "reports" / "robustness" / "gpu-faults.csv"
FAULT = "_fault"  # ends the name of the variant that has the fault
KINDS = ("misaligned", "limits", "barriers", "bounds")
# The checks of compute-sanitizer that may find a kind of fault, the most likely first.
CHECKS = {
    "misaligned": ("memcheck",),
    "limits": (),
    "barriers": ("racecheck", "synccheck", "memcheck"),
    "bounds": ("memcheck", "racecheck"),
}
ARCHITECTURE = "90"
PASSES = "passes"
_ANSWER = "@@ answer "  # begins the line with the answer of a launch in a separate process
_LONGEST = 300


@dataclass(frozen=True)
class FaultRow:
    """A fault, and what finds it: `found_by` names the command or check, the next column has what it prints.

    `right` is what the form without the fault gets, `passes` if nothing is wrong with it. The columns of a side that
    was not asked are empty.
    """

    kind: str
    fault: str
    meaning: str
    found_by: str = ""
    without_gpu: str = ""
    right: str = ""
    gpu_found_by: str = ""
    gpu: str = ""
    gpu_right: str = ""

    @property
    def is_held(self) -> bool:
        """Whether the fault is found and the right form passes, on each side that answered."""
        return all(
            bool(found) and right == PASSES
            for found, right in ((self.found_by, self.right), (self.gpu_found_by, self.gpu_right))
            if right
        )


@dataclass(frozen=True)
class Answer:
    """What found a fault (`by`, empty where nothing did), and its words."""

    by: str = ""
    words: str = PASSES


def planted(catalogue: Catalogue) -> list[FaultRow]:
    """Return a row for each fault, without answers."""
    specs = [catalogue.kernels[kind] for kind in KINDS]
    return [
        FaultRow(spec.name, name.removesuffix(FAULT), spec.variants[name].meaning)
        for spec in specs
        for name in spec.variants
        if name.endswith(FAULT)
    ]


def without_gpu(rows: Sequence[FaultRow], kinds: Sequence[str] = KINDS) -> list[FaultRow]:
    """Return the rows of these kinds with the answers of the emulator, and of the compiler where that finds nothing."""
    chosen = [row for row in rows if row.kind in kinds]
    of_faults = ("--catalogue", str(FAULTS))
    verified = printed_json(REPOSITORY, "verify", *kinds, "--backend", "emulator", *of_faults)
    compiled = printed_json(REPOSITORY, "compile", *kinds, "--arch", ARCHITECTURE, *of_faults)["complaints"]
    filled: list[FaultRow] = []
    for row in chosen:
        fault, right = (
            _verified(verified, f"{row.kind}:{row.fault}{end}") or _compiled(compiled, row, end) or Answer()
            for end in (FAULT, "")
        )
        filled.append(replace(row, found_by=fault.by, without_gpu=fault.words, right=right.words))
    return filled


def _verified(results: Sequence[dict[str, Any]], kernel: str) -> Answer | None:
    """Return the first complaint about a kernel's cases; of those that were skipped only if all were."""
    cases = [case for case in results if case["name"].partition("[")[0] == kernel]
    # The edge has the mode that watches each access; the input regimes and the workload only repeat what is computed.
    cases.sort(key=lambda case: (case["label"] != "edge" or ":" in case["name"].partition("[")[2], case["name"]))
    bad = next((case for case in cases if case["status"] not in ("ok", "skipped")), None)
    if bad:
        return Answer("emulator", _short(bad["reason"].replace(f"{bad['name']} on ", "").removeprefix(bad["name"])))
    if all(case["status"] == "skipped" for case in cases):
        return Answer("", _short(cases[0]["reason"]))
    return None


def _compiled(complaints: Sequence[dict[str, str]], row: FaultRow, end: str) -> Answer | None:
    """Return the compiler's complaint about one form of a fault."""
    instance = f"{row.fault}ILb{int(bool(end))}E", f"{row.fault}<{str(bool(end)).lower()}>"
    names = (f"{row.kind}:{row.fault}{end}[", f"{row.kind}:{row.fault}{end}:", *instance)
    for complaint_of in complaints:
        text = f"{complaint_of['kernel']}: {complaint_of['message']}"
        if any(name in text for name in names):
            return Answer("compile", _short(text))
    return None


def _short(text: str | None) -> str:
    words = (text or "").replace(f"{REPOSITORY}/", "").strip(" :").split()
    return "".join(letter for letter in " ".join(words) if letter.isprintable())[:_LONGEST]


# On a GPU: one process for each launch.


def on_gpu(rows: Sequence[FaultRow], backend: str, jobs: int, seconds: float) -> list[FaultRow]:
    """Return the rows with what the device answers to each form, `jobs` launches at a time of `seconds` at most."""
    cases = {case.name.partition("[")[0]: case for case in _edges(discover(FAULTS))}
    with ThreadPoolExecutor(jobs) as pool:
        ask: Callable[[FaultRow, str], Answer] = lambda row, end: _asked(  # noqa: E731 - two rounds of the same call
            cases[f"{row.kind}:{row.fault}{end}"], backend, CHECKS[row.kind], seconds
        )
        faults, rights = (pool.map(lambda row, end=end: ask(row, end), rows) for end in (FAULT, ""))
        return [
            replace(row, gpu_found_by=fault.by, gpu=fault.words, gpu_right=right.words)
            for row, fault, right in zip(rows, faults, rights, strict=True)
        ]


def _edges(catalogue: Catalogue) -> Iterator[Case]:
    return (case for kind in KINDS for case in catalogue.edges([kind]) if not case.is_regime)


def _asked(case: Case, backend: str, checks: Sequence[str], seconds: float) -> Answer:
    """Return what finds a fault of a case: its launch, its outputs, or the first check that has a finding."""
    program = [sys.executable, "-m", "lab.gpu_faults", "--backend", backend, "--launch", case.name]
    with tempfile.TemporaryDirectory(prefix="prism-faults-") as folder:
        log = Path(folder) / "log"
        answer = _launched(program, log, seconds)
        for check in checks if answer == Answer() else ():
            answer = _checked(program, check, case, log, 3 * seconds)
            if answer != Answer():
                break
    return answer


def _launched(program: Sequence[str], log: Path, seconds: float) -> Answer:
    """Return the answer of a launch in a separate process."""
    try:
        ended = tools.run(program, log, seconds, PYTHONPATH=environment()["PYTHONPATH"])
    except ProfilerFailed:
        return Answer("launch", f"no answer within {seconds:g} s")
    lines = [line.removeprefix(_ANSWER) for line in ended.text.splitlines() if line.startswith(_ANSWER)]
    if lines:
        return Answer(*json.loads(lines[-1]))
    return Answer("launch", f"the process ended with {ended.status}: {_short(tools.last_words(ended.text))}")


def _checked(program: Sequence[str], check: str, case: Case, log: Path, seconds: float) -> Answer:
    """Return the first finding of one check of compute-sanitizer; its failure is no finding, and no pass."""
    try:
        watched = tools.command(tools.find("compute-sanitizer"), check, program)
        ended = tools.run(watched, log, seconds, PYTHONPATH=environment()["PYTHONPATH"])
    except ProfilerFailed as error:
        return Answer("", f"{check} did not work: {_short(str(error))}")
    result = tools.parse(ended.text, check, {case.name: case.plan.entries(Device())})
    if result.findings:
        finding = result.findings[0]
        return Answer(check, _short(f"{finding.message} {finding.source or ''}"))
    if result.counted is None:
        return Answer("", f"{check} did not work: {_short(tools.last_words(ended.text))}")
    return Answer(check, f"{result.counted} errors") if result.counted else Answer()


def _launch(name: str, backend_name: str) -> int:
    """Launch one case in this process and print the answer; return 0 if it passes, else 1."""
    case = next(case for case in _edges(discover(FAULTS)) if case.name == name)
    backend = open_backend(backend_name)
    allocate_each_buffer(backend, poison=True)
    print(f"{BEGIN}{name}", flush=True)
    try:
        entries = verify(backend, case, seeds=(0,))
        answer = Answer() if passed(entries) else Answer("result", complaint(case, backend_name, entries))
    except Exception as error:  # the error is the answer
        answer = Answer("launch", f"{type(error).__name__}: {error}")
    print(f"{_ANSWER}{json.dumps([answer.by, _short(answer.words)])}", flush=True)
    print(f"{END if answer == Answer() else FAILED}{name}", flush=True)
    return int(answer != Answer())


# The table.


def read_rows(path: Path) -> dict[tuple[str, str], FaultRow]:
    """Return the stored rows by kind and fault; empty without a table."""
    if not path.is_file():
        return {}
    with path.open(newline="") as file:
        rows = [FaultRow(**line) for line in csv.DictReader(file)]
    return {(row.kind, row.fault): row for row in rows}


def merged(rows: Sequence[FaultRow], stored: dict[tuple[str, str], FaultRow], *, gpu: bool) -> list[FaultRow]:
    """Return the rows with the stored answers of the other side."""
    kept = ("found_by", "without_gpu", "right") if gpu else ("gpu_found_by", "gpu", "gpu_right")
    empty = FaultRow("", "", "")
    return [
        replace(row, **{name: getattr(stored.get((row.kind, row.fault), empty), name) for name in kept}) for row in rows
    ]


def main() -> int:
    """Ask about every fault and write the table; return 1 where a fault is not found or a right form does not pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="launch every form on the GPU of this machine")
    parser.add_argument("--output", type=Path, default=TABLE, help="the table to write")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    parser.add_argument("--seconds", type=float, default=30.0, help="of a launch; a check has three times that")
    parser.add_argument("--backend", default="cuda", help=argparse.SUPPRESS)
    parser.add_argument("--launch", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.launch:
        return _launch(chosen.launch, chosen.backend)
    stored = read_rows(chosen.output) or read_rows(TABLE)
    rows = planted(discover(FAULTS))
    asked = on_gpu(rows, chosen.backend, chosen.jobs, chosen.seconds) if chosen.gpu else without_gpu(rows)
    whole = merged(asked, stored, gpu=chosen.gpu)
    write_csv(whole, chosen.output, [field.name for field in fields(FaultRow)])
    bad = [row for row in whole if not row.is_held]
    for row in bad:
        print(f"{row.kind} {row.fault}: {row.without_gpu} / {row.right}; on a GPU {row.gpu} / {row.gpu_right}")
    held = f"{len(whole) - len(bad)} of {len(whole)}"
    print(f"{held} faults are found where asked, and their right forms pass; {chosen.output}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
