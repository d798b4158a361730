"""How results show themselves at a prompt and in a notebook: one short line, a small HTML view, a plot.

The functions are methods of `Measurement`, `CaseResult` and `RunRecord`, which import them.
"""

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from prism_bench import display
from prism_bench.errors import UsageError
from prism_bench.io.extras import extras_named
from prism_bench.units import count_text, time_text

if TYPE_CHECKING:
    from prism_bench.record.measurement import Measurement
    from prism_bench.record.run_record import CaseResult, RunRecord

PLOTTED = 30  # cases of one plot at most: more rows cannot be read
_PEER = "peer:"


def measurement_line(self: "Measurement") -> str:
    """Return one line: `<Measurement kernel cold_time: 12.3 us (n=72)>`."""
    return f"<{type(self).__name__} {self}>"


def measurement_html(self: "Measurement") -> str:
    """Return the line of the measurement over a picture of its samples, one line of dots per process."""
    groups = [(f"process {number}", process) for number, process in enumerate(self.processes, 1)]
    samples = self.samples
    ends = (time_text(min(samples)), time_text(max(samples))) if samples else None
    return display.view(str(self), display.dots(groups, ends))


def case_line(self: "CaseResult") -> str:
    """Return one line: `<CaseResult softmax[rows=32,cols=1000] ok, 5.31 us>`."""
    seconds = _main_seconds(self)
    return f"<CaseResult {self.name} {self.status}{f', {time_text(seconds)}' if seconds else ''}>"


def case_html(self: "CaseResult") -> str:
    """Return the case's status, bars of its main time and its peers', and a table of what else was measured."""
    metric = self.main_metric
    raced = [one for one in self.measurements if one.metric == metric and one.median]
    rows = [(one.subject.removeprefix(_PEER), one.median or 0.0, time_text(one.median)) for one in raced]
    others = [[one.metric, time_text(one.median), one.reason or ""] for one in self.measurements
              if one.subject == "kernel"]  # fmt: skip
    heading = f"{self.name}: {self.status}" + (f" ({self.reason})" if self.reason else "")
    return display.view(heading, display.bars(rows), display.table(["metric", "median", "reason"], others))


def record_line(self: "RunRecord") -> str:
    """Return one line: `<RunRecord 279 cases, NVIDIA H200, cuda, 2026-11-22T23:05:46, commit 2034ef74>`."""
    device = self.machine.get("name") or "unknown machine"
    commit = f", commit {self.commit[:8]}" if self.commit else ""
    return f"<RunRecord {count_text(len(self.cases), 'case')}, {device}, {self.backend}, {self.created}{commit}>"


def record_html(self: "RunRecord") -> str:
    """Return how many cases have each status, the main times of every label, and the cases that are not ok."""
    counted = Counter(case.status for case in self.cases)
    heading = ", ".join(f"{count} {status}" for status, count in counted.most_common()) or "no cases"
    groups = [(label, _main_times(self, label)) for label in sorted({case.label for case in self.cases})]
    every = [value for _, values in groups for value in values]
    ends = (time_text(min(every)), time_text(max(every))) if every else None
    bad = [[case.name, case.status, case.reason or ""] for case in self.cases if case.status not in ("ok", "skipped")]
    return display.view(record_line(self)[1:-1] + ": " + heading, display.dots(groups, ends),
                         display.table(["case", "status", "reason"], bad))  # fmt: skip


def record_plot(self: "RunRecord", pattern: str = "*", label: str | None = None) -> Any:
    """Return a Matplotlib figure of the main time of each case and of its peers, the slowest case first.

    `pattern` selects cases by name or kernel, as a shell does; `label` is S0, S1 or S2. At most 30 cases are drawn, and
    the title has their number. Raise a UsageError where no case with a time fits.
    """
    cases = [case for case in self.cases if _main_seconds(case) and (label is None or case.label == label)
             and (fnmatchcase(case.kernel, pattern) or fnmatchcase(case.name, pattern))]  # fmt: skip
    if not cases:
        wanted = f"'{pattern}'" + (f" at {label}" if label else "")
        raise UsageError(f"no case with a time fits {wanted}; the record has {count_text(len(self.cases), 'case')}")
    return _figure(sorted(cases, key=lambda case: _main_seconds(case) or 0.0, reverse=True))


def _figure(cases: "Sequence[CaseResult]") -> Any:
    with extras_named():
        from matplotlib.figure import Figure

    shown = cases[:PLOTTED]
    figure = Figure(figsize=(9, 1.2 + 0.28 * len(shown)), layout="constrained")
    axes: Any = figure.add_subplot()
    for row, case in enumerate(shown):
        axes.plot([_main_seconds(case) or 0.0], [row], "o", color="C0", label="kernel" if row == 0 else None)
        peers = _peer_times(case)
        axes.plot(peers, [row] * len(peers), "|", color="C1", markersize=10, label="peers" if row == 0 else None)
    axes.set(xscale="log", xlabel="seconds", yticks=range(len(shown)), yticklabels=[case.name for case in shown])
    axes.invert_yaxis()
    axes.legend()
    axes.set_title(
        f"{len(shown)} of {count_text(len(cases), 'case')}"
        if len(shown) < len(cases)
        else count_text(len(cases), "case")
    )
    return figure


def _peer_times(case: "CaseResult") -> list[float]:
    metric = case.main_metric
    peers = (one for one in case.measurements if one.metric == metric and one.subject.startswith(_PEER) and one.valid)
    return [one.median for one in peers if one.median]


def _main_seconds(case: "CaseResult") -> float | None:
    found = case.measurement(case.main_metric)
    return found.median if found and found.valid else None


def _main_times(record: "RunRecord", label: str) -> list[float]:
    return [seconds for case in record.cases if case.label == label and (seconds := _main_seconds(case))]
