"""Sweep of compute-sanitizer over the catalogue's edges: checks and kernels distributed over several processes."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from prism_bench.case import Device
from prism_bench.catalogue import Catalogue
from prism_bench.profilers import sanitizer, tools
from prism_bench.profilers.failures import OTHER, ProfilerFailed, classify, last_words
from prism_bench.profilers.sanitizer import CHECKS, SanitizerFinding
from prism_bench.strict_json import json_line
from prism_bench.studies.sanitize_worker import SanitizeOrder, swept_cases
from prism_bench.workers.child import environment

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
    catalogue: Catalogue, kernels: Sequence[str], *, checks: Sequence[str] = CHECKS, backend: str = "cuda",
    jobs: int = 4, seconds: float = 600.0, report: Callable[[str], object] = lambda _: None,
) -> SanitizerSweep:  # fmt: skip
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

    def share(self, share: _Share) -> sanitizer.Checked:
        """Run one process: one check over its kernels, as far as the time goes."""
        left = self._end - time.monotonic()
        if left <= 0:
            return sanitizer.parse("", share.check, {})
        with tempfile.TemporaryDirectory() as folder:
            order, log = Path(folder) / "order.json", Path(folder) / "log"
            plain: SanitizeOrder = {
                "backend": self._backend, "catalogue": str(self._catalogue.folder), "kernels": list(share.kernels),
                "seconds": left, "poison": share.check != "initcheck",
            }  # fmt: skip
            order.write_text(json_line(plain))
            program = [sys.executable, "-m", "prism_bench.studies.sanitize_worker", str(order)]
            words = f"{share.check}: {', '.join(share.kernels)}"
            try:
                text = self._output(sanitizer.command(self._tool, share.check, program), log, left)
            except ProfilerFailed as error:
                self.failures.append(error)
                text, words = "", f"{words}: {error}"
        self._report(words)
        return sanitizer.parse(text, share.check, self._entries(share.kernels))

    def _output(self, command: Sequence[str], log: Path, left: float) -> str:
        try:
            ended = tools.run(command, log, left + GRACE, PYTHONPATH=environment()["PYTHONPATH"])
        except ProfilerFailed:
            return log.read_text(errors="replace")
        if sanitizer.BEGIN not in ended.text:
            failure = classify(ended.text, ended.status, produced=False) or OTHER
            raise ProfilerFailed("compute-sanitizer", failure, last_words(ended.text))
        return ended.text

    def _entries(self, kernels: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {
            case.name: case.plan.entries(Device()) for name in kernels for case in swept_cases(self._catalogue, name)
        }


def _rows(catalogue: Catalogue, share: _Share, checked: sanitizer.Checked) -> Iterator[SanitizerRow]:
    for kernel in share.kernels:
        names = [case.name for case in swept_cases(catalogue, kernel)]
        finished = sum(name in checked.cases for name in names)
        findings = sum(finding.case in names for finding in checked.findings)
        verdict = "findings" if findings else "clean" if finished == len(names) else "not finished"
        yield SanitizerRow(share.check, kernel, len(names), finished, findings, verdict)


def cores() -> int:
    """Return how many processes at a time are sensible: a check needs a core of the host and the device."""
    return max(1, min(8, (os.cpu_count() or 2) // 2))
