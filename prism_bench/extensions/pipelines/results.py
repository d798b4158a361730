"""Results of pipelines in a record, compared with the CPU and the published times."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prism_bench.extensions.pipelines.session import FAMILY
from prism_bench.measure.plausibility import valid_median
from prism_bench.record.run_record import CaseResult, RunRecord
from prism_bench.units import bytes_text, ratio_text, share_text, time_text

# Results of pipelines in a record, compared with the CPU and the published goals.
#
# Latency, throughput, overlap and copies of every form, and the two phases of the LSTM.

_ASKED_PER_SECOND = 50  # operations; the documents' goal for their pipelines
_PUBLISHED_FRAMES = 191  # a second; the documents' result for their images
_GOALS = {"together:graph": 2000.0}  # evaluations a second at S0
_LSTM_GOAL = 50.0  # times the CPU reference, state on the device, from host to host
_STATUS_BAD = ("wrong", "crashed", "timed out", "failed")


@dataclass(frozen=True)
class PipelineRow:
    """One form of a pipeline; times in seconds of one evaluation, None with the reason in `missing`.

    `latency` is from the host's memory to the host's memory, `steady` without waiting, `launch` the host's part of it;
    `cpu` is the time of the float64 references on the CPU. `overlap` is the share of the device's busy time in which
    two or more pieces of work ran, `traced` has the tracer's counts of one evaluation on the device (kernels, copies,
    times); `moved` counts copies between host and device where they are enqueued. On a CPU `latency` is the wall time.
    """

    pipeline: str
    form: str
    status: str
    reason: str | None
    latency: float | None
    steady: float | None
    launch: float | None
    cpu: float | None
    overlap: float | None
    launches: int | None
    lanes: int | None
    moved: dict[str, int] = field(default_factory=dict[str, int])
    traced: dict[str, float] = field(default_factory=dict[str, float])
    missing: str | None = None

    @property
    def task(self) -> str:
        """The task `pipeline:form`."""
        return f"{self.pipeline}:{self.form}"

    @property
    def per_second(self) -> float | None:
        """Evaluations a second: without waiting if measured so, else one by one."""
        seconds = self.steady or self.latency
        return 1 / seconds if seconds else None

    @property
    def against_cpu(self) -> float | None:
        """The CPU's time divided by the latency from host to host."""
        return self.cpu / self.latency if self.cpu and self.latency else None

    @property
    def goal(self) -> float | None:
        """The goal in evaluations a second."""
        return _GOALS.get(self.task)


def rows(record: RunRecord) -> tuple[PipelineRow, ...]:
    """Return a row for every form of the record; a record of kernels has no rows."""
    on_cpu = {case.kernel: seconds for case in record.cases if (seconds := valid_median(case, "wall_time", "cpu"))}
    return tuple(_row(case, on_cpu.get(case.kernel)) for case in record.cases if case.family == FAMILY)


def _row(case: CaseResult, cpu: float | None) -> PipelineRow:
    latency = valid_median(case, "end_to_end_time") or valid_median(case, "wall_time")
    values = case.profile.get("values", {})
    overlap = values.get("overlap_share", {})
    return PipelineRow(
        pipeline=case.kernel,
        form=case.variant or "",
        status=case.status,
        reason=case.reason,
        latency=latency,
        steady=valid_median(case, "steady_time"),
        launch=valid_median(case, "launch_time"),
        cpu=cpu,
        overlap=overlap.get("value"),
        launches=case.code.get("launches"),
        lanes=case.code.get("lanes"),
        moved=case.code.get("transfers", {}),
        traced={name: entry["value"] for name, entry in values.items() if entry.get("value") is not None},
        missing=overlap.get("reason"),
    )


@dataclass(frozen=True)
class Phase:
    """A way to run a sequence through the LSTM.

    Seconds, copies and bytes are of one step, from host to host; `against_cpu` is the CPU's time divided by its time.
    """

    name: str
    row: PipelineRow
    step: float | None
    copies: float
    bytes: float
    against_cpu: float | None


_PHASES = (
    ("phase 1: every call brings and takes everything", "lstm:per_call"),
    ("phase 2: state and weights stay, a launch a step", "lstm:one_stream"),
    ("the same as one graph", "lstm:graph"),
    ("the whole sequence in one launch", "lstm_sequence:one_stream"),
)


def phases(rows: Sequence[PipelineRow], steps: int) -> tuple[Phase, ...]:
    """Return the phases of a sequence of `steps` that the rows hold, in the published order.

    The CPU's time is the better one of its two ways to compute the sequence.
    """
    by_task = {row.task: row for row in rows if row.status == "ok"}
    cpu = min((row.cpu for row in rows if row.pipeline in ("lstm", "lstm_sequence") and row.cpu), default=None)
    return tuple(_phase(name, by_task[task], steps, cpu) for name, task in _PHASES if task in by_task)


def _phase(name: str, row: PipelineRow, steps: int, cpu: float | None) -> Phase:
    moved = row.moved
    return Phase(
        name=name,
        row=row,
        step=row.latency / steps if row.latency else None,
        copies=(moved.get("up", 0) + moved.get("down", 0)) / steps,
        bytes=(moved.get("up_bytes", 0) + moved.get("down_bytes", 0)) / steps,
        against_cpu=cpu / row.latency if cpu and row.latency else None,
    )


def exit_code(rows: Sequence[PipelineRow]) -> int:
    """Return 1 where a form is wrong or broke, 2 where no form could run, else 0."""
    if any(row.status in _STATUS_BAD for row in rows):
        return 1
    return 0 if any(row.status == "ok" for row in rows) else 2


# Reports of pipelines in the terminal and as JSON: every form, the published goals, the phases of the LSTM.

_STYLES = {"ok": "green", "skipped": "yellow"}


def pipelines_view(rows: Sequence[PipelineRow], phases: Sequence[Phase]) -> RenderableType:
    """Return the output of `pipeline` for a Rich console."""
    parts = [_table(rows)]
    parts += [Text(f"  {row.task}: {row.reason}", style="yellow") for row in rows if row.reason]
    missing = dict.fromkeys(row.missing for row in rows if row.missing)
    parts += [Text(f"  overlap: {reason}", style="dim") for reason in missing]
    legend = (
        f"  the documents ask for {_ASKED_PER_SECOND} operations a second and report {_PUBLISHED_FRAMES} frames; "
        "latency is from the host's memory to the host's memory, CPU is the float64 references on NumPy"
    )
    parts += [Text(legend, style="dim")]
    return Group(*parts, *([Text(), _phases(phases)] if phases else []))


def _grid(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", collapse_padding=True)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", overflow="fold")
    return table


def _table(rows: Sequence[PipelineRow]) -> Table:
    table = _grid(
        "pipeline",
        "right",
        "latency",
        "steady",
        "a second",
        "host",
        "launches",
        "overlap",
        "copies up",
        "copies down",
        "CPU",
        "times",
    )
    for row in rows:
        verdict = Text("yes" if row.status == "ok" else row.status, style=_STYLES.get(row.status, "bold red"))
        table.add_row(
            row.task,
            verdict,
            time_text(row.latency),
            time_text(row.steady),
            _per_second(row),
            time_text(row.launch),
            "-" if row.launches is None else str(row.launches),
            share_text(row.overlap),
            _copies(row, "up"),
            _copies(row, "down"),
            time_text(row.cpu),
            ratio_text(row.against_cpu),
        )
    return table


def _per_second(row: PipelineRow) -> str | Text:
    if row.per_second is None:
        return "-"
    text = Text(f"{row.per_second:,.0f}")
    if row.goal:
        met = row.per_second >= row.goal
        text.append(f" (asked {row.goal:,.0f})", style="green" if met else "bold red")
    return text


def _copies(row: PipelineRow, way: str) -> str:
    return f"{row.moved[way]} ({bytes_text(row.moved[f'{way}_bytes'])})" if way in row.moved else "-"


def _phases(phases: Sequence[Phase]) -> Table:
    table = _grid("the LSTM's phases, of one step", "from host to host", "copies", "bytes", "times the CPU")
    for phase in phases:
        times = Text(ratio_text(phase.against_cpu))
        if phase.row.task == "lstm:one_stream" and phase.against_cpu:
            met = phase.against_cpu >= _LSTM_GOAL
            times.append(f" (asked {ratio_text(_LSTM_GOAL)})", style="green" if met else "bold red")
        table.add_row(phase.name, time_text(phase.step), f"{phase.copies:.3g}", bytes_text(phase.bytes), times)
    return table


def pipelines_json(rows: Sequence[PipelineRow], phases: Sequence[Phase]) -> dict[str, Any]:
    """Return rows and phases as plain JSON values; unmeasured values are null."""
    return {
        "asked_per_second": _ASKED_PER_SECOND,
        "published_frames_per_second": _PUBLISHED_FRAMES,
        "pipelines": [
            {**asdict(row), "per_second": row.per_second, "against_cpu": row.against_cpu, "goal": row.goal}
            for row in rows
        ],
        "lstm_phases": [
            {
                "name": phase.name,
                "form": phase.row.task,
                "step_seconds": phase.step,
                "copies": phase.copies,
                "bytes": phase.bytes,
                "against_cpu": phase.against_cpu,
            }
            for phase in phases
        ],
    }
