"""Journal of a session: settings of the plugin, and the record that a session writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pytest

from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import PrismBenchError
from prism_bench.io import project
from prism_bench.io.documents import json_line
from prism_bench.pytest_plugin.measuring import FunctionClock, Measuring, copy_ceiling, kernel_tested, open_clock
from prism_bench.pytest_plugin.outcome import TestedTime, TimedTest
from prism_bench.record import store
from prism_bench.record.run_record import CaseResult, decode_case, encode_case
from prism_bench.record.schema import JsonTable
from prism_bench.run.settings import PROTOCOL, RecordBuilder, RunClock

# Settings of the plugin: flags of the command line, else `[tool.prism-bench.pytest]` of the project.

_NOISE = 0.01  # the largest relative excess that is not called missed


@dataclass(frozen=True)
class _PytestKeys:
    """Keys of `[tool.prism-bench.pytest]`: skip all, the backend, the folder of records, the noise."""

    off: bool = False
    backend: str | None = None
    records: str | None = None
    noise: float = _NOISE

    def __post_init__(self) -> None:
        if not 0 <= self.noise < 1:
            raise ValueError(f"noise: {self.noise}; give a share from 0 to 1, such as 0.01")


@dataclass(frozen=True)
class PluginSettings:
    """Settings of a session.

    `root` is pytest's root folder, `records` the folder of run records, `catalogue` that of the named kernels; `noise`
    the smallest relative excess over a limit that fails a test.
    """

    root: Path
    records: Path
    backend: str = "cuda"
    off: bool = False
    noise: float = _NOISE
    catalogue: Path | None = None


def settings_of(config: pytest.Config) -> PluginSettings:
    """Return the settings of a session; raise a UsageError for an invalid configuration of the project."""
    configured = project.current(config.rootpath)
    keys = configured.section("pytest", _PytestKeys) if configured else _PytestKeys()
    records = config.getoption("--prism-records") or keys.records
    storage = configured.storage if configured else config.rootpath / project.STORAGE
    return PluginSettings(
        config.rootpath,
        config.rootpath / str(records) if records else storage / "runs",
        str(config.getoption("--prism-backend") or keys.backend or "cuda"),
        bool(config.getoption("--prism-off")) or keys.off,
        keys.noise,
        configured.catalogue if configured else None,
    )


# Journal of a session: measures each test, keeps its case, and writes one run record at the end.

# Times of functions in one process are a separate series: `by` distinguishes them from those of `prism-bench run`.
_PROTOCOL: Mapping[str, object] = {"version": PROTOCOL, "by": "pytest"}


class Journal:
    """Measured cases of a session; `lines` are those of its summary."""

    def __init__(self, settings: PluginSettings) -> None:
        self.settings = settings
        self.lines: list[str] = []
        self._clock = RunClock()
        self._cases: list[CaseResult] = []
        self._facts: Mapping[str, Any] | None = None

    def require_backend(self) -> None:
        """Raise BackendUnavailable if the backend cannot time functions here."""
        _ = self._function_clock

    def tested(self, case: str, test: TimedTest) -> TestedTime:
        """Verify and time the function or kernel of a test, and keep it as the case of that name."""
        if isinstance(test.function, str):
            tested = kernel_tested(case, test, self._catalogue, self._measuring)
        else:
            tested = self._measuring.tested(case, test)
        self._cases.append(tested.case)
        self.lines.append(tested.line)
        return tested

    def packed(self) -> str:
        """Return the journal as text, for the process that writes the record of a session with several workers."""
        cases = [encode_case(case) for case in self._cases]
        return json_line({"cases": cases, "facts": dict(self._facts or {}), "lines": self.lines})

    def unpack(self, packed: str) -> None:
        """Add the journal of another process of this session."""
        table = cast("JsonTable", json.loads(packed))
        known = {case.name for case in self._cases}
        self._cases += [case for case in map(decode_case, table["cases"]) if case.name not in known]
        self._facts = self._facts or table["facts"]
        self.lines += table["lines"]

    def close(self) -> bool:
        """Write the record; return whether that failed, with the reason among the lines."""
        if not self._cases or self._facts is None:
            return False
        folder = self.settings.catalogue or self.settings.root
        builder = RecordBuilder(Catalogue(folder, {}), self.settings.backend, self._facts)
        record = builder.build(self._clock.span(complete=True), self._cases, protocol=_PROTOCOL)
        try:
            self.lines.append(f"record: {store.RecordPlace(self.settings.records).save(record)}")
        except PrismBenchError as error:
            self.lines.append(f"no record: {error}")
            return True
        return False

    @cached_property
    def _function_clock(self) -> FunctionClock:
        return open_clock(self.settings.backend)

    @cached_property
    def _catalogue(self) -> Catalogue:
        return discover(self.settings.catalogue)

    @cached_property
    def _measuring(self) -> Measuring:
        self._facts = self._function_clock.facts()
        device = f"{self._facts.get('device', 'unknown')}, backend {self.settings.backend}"
        return Measuring(self._function_clock, device, self.settings.noise, lambda: self._copy_ceiling)

    @cached_property
    def _copy_ceiling(self) -> float | None:
        """The copy ceiling in bytes per second, measured once; its cases are kept in the record."""
        rate, cases = copy_ceiling(self.settings.backend)
        self._cases += cases
        return rate
