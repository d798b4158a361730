"""Results of compute-sanitizer over the catalogue's edges, as a table in reports/sanitizer/<machine>.csv.

The checks are memcheck, racecheck, initcheck and synccheck; checks and kernels are distributed over several processes.
Ends with 0 when every check is clean, 1 when one found an error, 2 when a check could not work, 3 when the time was
over before the end.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, fields
from multiprocessing import get_context
from pathlib import Path

from lab import REPOSITORY
from lab.sanitize_worker import SanitizeOrder, swept_cases
from prism_bench.backends import open_backend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import PrismBenchError
from prism_bench.io.documents import json_line
from prism_bench.io.workers import environment
from prism_bench.profilers import tools
from prism_bench.profilers.tools import CHECKS, OTHER, ProfilerFailed, SanitizerFinding, classify, last_words
from prism_bench.record import identity
from prism_bench.run.precompile import compile_ahead
from prism_bench.spec.case import Device
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

GRACE = 30.0


@dataclass(frozen=True)
class SanitizerRow:
    """The outcome of one check of one kernel: `verdict` is clean, findings, or not finished."""

    check: str
    kernel: str
    cases: int
    finished: int
    findings: int
    verdict: str


@dataclass(frozen=True)
class SanitizerSweep:
    """All rows and findings, the version of the tool, and the seconds it took."""

    rows: tuple[SanitizerRow, ...]
    findings: tuple[SanitizerFinding, ...]
    version: str | None
    seconds: float


@dataclass(frozen=True)
class _Share:
    check: str
    kernels: tuple[str, ...]


def sweep(
    catalogue: Catalogue,
    kernels: Sequence[str],
    *,
    checks: Sequence[str] = CHECKS,
    backend: str = "cuda",
    jobs: int = 4,
    seconds: float = 600.0,
    report: Callable[[str], object] = lambda _: None,
) -> SanitizerSweep:
    """Run every check over the edges of the kernels (`softmax`, `pixel_entropy:naive`), `jobs` processes at a time.

    After `seconds` the rest is reported as not finished, and so is a process that the tool could not watch.
    ProfilerFailed where it could watch none.
    """
    tool, started = tools.find("compute-sanitizer"), time.monotonic()
    shares = [
        _Share(check, tuple(kernels[first :: min(jobs, len(kernels))]))
        for check in checks
        for first in range(min(jobs, len(kernels)))
    ]
    work = _Work(catalogue, tool, backend, started + seconds, report)
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(work.share, shares))
    if work.failures and not any(checked.cases for checked in found):
        raise work.failures[0]
    rows = [row for share, checked in zip(shares, found, strict=True) for row in _rows(catalogue, share, checked)]
    findings = tuple(finding for checked in found for finding in checked.findings)
    rows.sort(key=lambda row: (row.kernel, CHECKS.index(row.check)))
    return SanitizerSweep(tuple(rows), findings, tool.version, round(time.monotonic() - started, 1))


class _Work:
    """Runs shares until the time `end`, and collects the processes that the tool could not watch."""

    def __init__(
        self, catalogue: Catalogue, tool: tools.Tool, backend: str, end: float, report: Callable[[str], object]
    ) -> None:
        self._catalogue, self._tool, self._backend, self._end, self._report = catalogue, tool, backend, end, report
        self.failures: list[ProfilerFailed] = []

    def share(self, share: _Share) -> tools.Checked:
        """Run one process: one check over its kernels, as far as the time goes."""
        left = self._end - time.monotonic()
        if left <= 0:
            return tools.parse("", share.check, {})
        with tempfile.TemporaryDirectory() as folder:
            order, log = Path(folder) / "order.json", Path(folder) / "log"
            plain: SanitizeOrder = {
                "backend": self._backend,
                "catalogue": str(self._catalogue.folder),
                "kernels": list(share.kernels),
                "seconds": left,
                "poison": share.check != "initcheck",
            }
            order.write_text(json_line(plain))
            program = [sys.executable, "-m", "lab.sanitize_worker", str(order)]
            words = f"{share.check}: {', '.join(share.kernels)}"
            try:
                text = self._output(tools.command(self._tool, share.check, program), log, left)
            except ProfilerFailed as error:
                self.failures.append(error)
                text, words = "", f"{words}: {error}"
        self._report(words)
        cases = [case for name in share.kernels for case in swept_cases(self._catalogue, name)]
        return tools.parse(text, share.check, {case.name: case.plan.entries(Device()) for case in cases})

    def _output(self, command: Sequence[str], log: Path, left: float) -> str:
        try:
            ended = tools.run(command, log, left + GRACE, PYTHONPATH=environment()["PYTHONPATH"])
        except ProfilerFailed:
            return log.read_text(errors="replace")
        if tools.BEGIN not in ended.text:
            failure = classify(ended.text, ended.status, produced=False) or OTHER
            raise ProfilerFailed("compute-sanitizer", failure, last_words(ended.text))
        return ended.text


def _rows(catalogue: Catalogue, share: _Share, checked: tools.Checked) -> Iterator[SanitizerRow]:
    for kernel in share.kernels:
        names = [case.name for case in swept_cases(catalogue, kernel)]
        finished = sum(name in checked.cases for name in names)
        findings = sum(finding.case in names for finding in checked.findings)
        verdict = "findings" if findings else "clean" if finished == len(names) else "not finished"
        yield SanitizerRow(share.check, kernel, len(names), finished, findings, verdict)


def device_of(backend: str) -> tuple[str, Device]:
    """Return the name of the device and its limits, from another process: this one must not hold a device."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_device_here, backend).result()


def _device_here(backend: str) -> tuple[str, Device]:
    opened = open_backend(backend)
    limits = {field.name: getattr(opened.device, field.name) for field in fields(Device)}
    return opened.facts()["device"], Device(**limits)


def write(swept: SanitizerSweep, path: Path) -> None:
    """Write a line per kernel and check; findings are in a file next to it, where there are any."""
    for place, rows in ((path, swept.rows), (path.with_suffix(".findings.csv"), swept.findings)):
        place.unlink(missing_ok=True)
        if rows:
            write_csv(rows, place)


def checked_edges(chosen: argparse.Namespace) -> int:
    """Run the checks, write the table and print the findings; return the exit code."""
    catalogue = discover(chosen.catalogue)
    kernels = list(dict.fromkeys(case.kernel for case in catalogue.edges(chosen.kernels)))
    name, device = device_of(chosen.backend)
    if chosen.backend == "cuda":
        compile_ahead(catalogue.edges(chosen.kernels), device)
    swept = sweep(
        catalogue,
        kernels,
        checks=chosen.checks.split(","),
        backend=chosen.backend,
        jobs=chosen.jobs,
        seconds=chosen.limit_seconds,
        report=lambda share: print("done:", share, flush=True),
    )
    write(swept, chosen.output or REPOSITORY / "reports" / "sanitizer" / f"{identity.slug(name)}.csv")
    verdicts = [row.verdict for row in swept.rows]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    for finding in swept.findings:
        print(f"{finding.check}: {finding.case}: {finding.message} ({finding.kernel} {finding.source or ''})")
    print(
        f"compute-sanitizer {swept.version}: {counts} of {count_text(len(kernels), 'kernel')} and variants, "
        f"{swept.seconds} s"
    )
    return 1 if swept.findings else 3 if "not finished" in counts else 0


def main() -> int:
    """Do what the command line demands; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernels", nargs="*", help="kernels, kernel:variant or families; all unless named")
    parser.add_argument("--checks", default=",".join(CHECKS), help="some of " + ", ".join(CHECKS))
    parser.add_argument(
        "--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)), help="processes at a time"
    )
    parser.add_argument("--limit-seconds", type=float, default=600.0, help="later checks are reported as not finished")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--output", type=Path, help="where to write the table")
    chosen = parser.parse_args()
    try:
        return checked_edges(chosen)
    except PrismBenchError as error:
        print(f"sanitize: {error}", file=sys.stderr)
        return error.exit_code
