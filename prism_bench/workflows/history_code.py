"""Code of a case at every commit of a history, compiled on all cores.

The checkouts of commits whose source is new are kept until there is one for every core, and are compiled together.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.io.workers.child import usable_cores
from prism_bench.units import count_text
from prism_bench.workflows.case_code import CaseCode, CodeJob, CodeReader, Outcome, compiled_jobs, machine_code
from prism_bench.workflows.history_nodes import case_in

_FEWEST, _MOST = 8, 32  # checkouts that are kept at once: fewer do not pay for the processes, more fill the disk


@dataclass(frozen=True)
class _ReadCode:
    """What a commit's files show of the case without a compiler, and the `job` that gives its machine code."""

    code: CaseCode
    job: CodeJob | None


class HistoryCode:
    """Reads the case `name` at commits: `opened` yields a commit's catalogue, `reader` makes what reads its code."""

    def __init__(
        self, name: str, opened: Callable[[str], AbstractContextManager[Path]], reader: Callable[[], CodeReader]
    ) -> None:
        self._name, self._opened, self._reader = name, opened, reader
        self._read: dict[str, _ReadCode | None] = {}
        self._compiled: dict[CodeJob, Outcome] = {}
        self._hashes: dict[CodeJob, str] = {}

    def at(self, commits: Sequence[str], end: float | None = None) -> dict[str, CaseCode | None]:
        """Return the code at each commit; None where the case does not exist or does not build there.

        Raise a UsageError where time.monotonic() reaches `end` before all are compiled.
        """
        left = iter(commits)
        while len(self._read) < len(commits):
            self._read_some(left, end, len(commits))
        return {commit: self._code(self._read[commit]) for commit in commits}

    def _read_some(self, left: Iterator[str], end: float | None, whole: int) -> None:
        """Read commits until enough of them have another source, and compile those."""
        new: list[CodeJob] = []
        with ExitStack() as kept:
            for commit in left:
                if end is not None and time.monotonic() >= end:
                    raise UsageError(
                        f"the time limit ended after {len(self._read)} of {count_text(whole, 'commit')} were read and "
                        "compiled: begin again with a longer one; what is compiled is not compiled again"
                    )
                with ExitStack() as tree:
                    found = self._read[commit] = self._read_at(tree.enter_context(self._opened(commit)))
                    if found and found.job and found.job not in self._compiled and found.job not in new:
                        new.append(found.job)
                        kept.enter_context(tree.pop_all())
                if len(new) >= min(max(usable_cores(), _FEWEST), _MOST):
                    break
            self._compiled |= compiled_jobs(new)

    def _read_at(self, catalogue: Path) -> _ReadCode | None:
        reader = self._reader()
        try:
            case = case_in(discover(catalogue), self._name)
        except PrismBenchError:
            return None
        code = reader.code(case) if case else None
        if case is None or code is None or code.problem:
            return None
        try:
            return _ReadCode(code, reader.job(case) if reader.is_compiled(case) else None)
        except Exception:  # a spec may raise anything
            return None

    def _code(self, read: _ReadCode | None) -> CaseCode | None:
        built = self._compiled[read.job] if read and read.job else None
        if read is None or isinstance(built, str):
            return None
        if read.job is None or built is None:
            return read.code
        if read.job not in self._hashes:
            self._hashes[read.job] = machine_code(built)
        return replace(read.code, code=self._hashes[read.job], compiled=built)
