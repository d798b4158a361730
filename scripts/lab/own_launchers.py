"""Kernels through our launch and through their language's own launcher: times in turn, outputs, machine code."""

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lab import REPOSITORY
from prism_bench.backends import open_backend
from prism_bench.backends.base import Runnable, TimerFactories
from prism_bench.catalogue import discover
from prism_bench.compilation import sass_hash
from prism_bench.compilation.languages.child import real_module
from prism_bench.compilation.languages.language import DeviceLaunch, OwnLaunch, language
from prism_bench.errors import BackendUnavailable, described
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import CUDA, Array, Launch
from prism_bench.spec.peer import LIBRARIES
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

if TYPE_CHECKING:
    from prism_bench.backends.cuda.backend import CudaBackend

MOST = 0.005  # by which the times of one machine code may differ
METRICS = ("cold_time", "hot_time")
_ROUNDS, _SAMPLES = 7, 15
_KEPT = "unknown"  # whether the machine code is the same, of launchers that keep their cubins to themselves


@dataclass(frozen=True)
class LauncherRow:
    """A case's median seconds by our launch and by its language's own, and their ratio with its range over rounds.

    `code` is whether both launched the same machine code: with other code the ratio is of two programs, not of two
    launchers. `outputs` is whether they wrote the same bytes; `problem` is why nothing was compared.
    """

    case: str
    language: str
    compiler: str
    metric: str
    ours: float | None = None
    own: float | None = None
    ratio: float | None = None
    lowest: float | None = None
    highest: float | None = None
    code: str = _KEPT
    outputs: str = _KEPT
    problem: str = ""

    @property
    def differs(self) -> bool:
        """Whether the same machine code took another time, or what may be the same wrote other outputs."""
        slower = self.ratio is not None and self.code == "same" and abs(self.ratio - 1) > MOST
        return slower or (self.outputs == "other" and self.code != "other")

    def rounded(self) -> dict[str, Any]:
        """Return the row with times to the nanosecond and ratios to five digits."""
        digits = {"ours": 9, "own": 9, "ratio": 5, "lowest": 5, "highest": 5}
        row = asdict(self)
        return row | {name: round(row[name], places) for name, places in digits.items() if row[name] is not None}


def comparisons(backend: "CudaBackend", cases: Iterable[Case]) -> Iterator[LauncherRow]:
    """Yield a row for each case and metric; one with its problem where a launcher cannot make the launch."""
    for case in cases:
        spoken = language(case.spec.language)
        compiler = _version(case)
        try:
            yield from _compared(backend, case, compiler)
        except Exception as error:  # whatever another launcher raises is the answer
            yield LauncherRow(case.name, spoken.title, compiler, METRICS[0], problem=described(error)[:300])


def _version(case: Case) -> str:
    try:
        return language(case.spec.language).require_installed()
    except BackendUnavailable:
        return "not installed"


def _compared(backend: "CudaBackend", case: Case, compiler: str) -> Iterator[LauncherRow]:
    spoken = language(case.spec.language)
    with backend.prepare(case, case.inputs(0)) as ours:
        own = _own_launch(backend, case, ours)
        written = "same" if _outputs(ours, case, ours) == _outputs(ours, case, own.call) else "other"
        sass, launched = ours.evidence().get("sass"), [sass_hash(cubin) for cubin in own.cubins()]
        code = ("same" if launched == [sass] else "other") if launched else _KEPT
        theirs = backend.callable_timers(own.call, "torch")
        for metric in METRICS:
            pairs = _in_turn(ours.timers(), theirs, metric)
            ratios = [second / first for first, second in pairs]
            first, second = (statistics.median(side) for side in zip(*pairs, strict=True))
            yield LauncherRow(
                case.name,
                spoken.title,
                compiler,
                metric,
                first,
                second,
                statistics.median(ratios),
                min(ratios),
                max(ratios),
                code,
                written,
            )


def _own_launch(backend: "CudaBackend", case: Case, ours: Runnable) -> OwnLaunch:
    """Return the launch by the language's own launcher, on the buffers of our runnable."""
    from prism_bench.backends.cuda.timers import adopted_arrays, library_module

    steps = case.plan.steps(backend.device)
    launches = [step for step in steps if isinstance(step, Launch)]
    if len(steps) != 1 or not launches:
        raise BackendUnavailable(f"{count_text(len(steps), 'step')}; a launcher makes one launch")
    library_module(LIBRARIES["torch"], backend.harness)  # works on the timed stream from here on
    (step,) = launches
    names = step.arguments or tuple(argument.name for argument in case.spec.arguments)
    tensors = adopted_arrays(LIBRARIES["torch"], ours.arrays(one.name for one in case.spec.arrays), case.spec)
    values = [_value(case, name, tensors) for name in names]
    grid, block = (_triple(one) for one in (step.grid, step.block))
    launch = DeviceLaunch(case.plan.instance(step), grid, block, values, backend.harness.stream.ptr)
    return language(case.spec.language).own_launch(real_module(case.spec.source_file), launch)


def _value(case: Case, name: str, tensors: Mapping[str, Any]) -> Any:
    argument = case.spec.argument(name)
    return tensors[name] if isinstance(argument, Array) else argument.value(case.axes)


def _triple(extent: int | tuple[int, ...]) -> tuple[int, int, int]:
    numbers = (*(extent if isinstance(extent, tuple) else (extent,)), 1, 1)
    return numbers[0], numbers[1], numbers[2]


def _outputs(ours: Runnable, case: Case, call: Callable[[], object]) -> list[bytes]:
    """Return what a call writes into poisoned outputs."""
    ours.reset(ours.inputs)
    call()
    found = ours.arrays(output.name for output in case.spec.outputs)
    return [array.get().tobytes() for array in found.values()]


def _in_turn(ours: TimerFactories, theirs: TimerFactories, metric: str) -> list[tuple[float, float]]:
    """Return the medians of both for each round; the order within a round alternates."""
    clocks = ours[metric](), theirs[metric]()
    for clock in clocks:
        clock()  # the first one loads and compiles
    pairs: list[tuple[float, float]] = []
    for number in range(_ROUNDS):
        medians = [0.0, 0.0]
        for side in (0, 1) if number % 2 else (1, 0):
            medians[side] = statistics.median(clocks[side]().seconds for _ in range(_SAMPLES))
        pairs.append((medians[0], medians[1]))
    return pairs


def _text(row: LauncherRow) -> str:
    if row.ratio is None:
        return f"{row.case}: not compared: {row.problem}"
    of_what = ", so that two programs are compared, not two launchers" if row.code == "other" else ""
    return (
        f"{row.case} {row.metric}: ours {1e6 * (row.ours or 0):.2f} us, own {1e6 * (row.own or 0):.2f} us, "
        f"{row.ratio - 1:+.2%} ({row.lowest:.4f} to {row.highest:.4f}), code {row.code}, outputs {row.outputs}{of_what}"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Compare the launchers and write a table; return 1 where the same machine code differs by more than MOST."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="kernels, kernel:variant or case names; all without")
    parser.add_argument("--label", action="append", help="S1 unless given")
    parser.add_argument("--catalogue", type=Path, default=REPOSITORY / "kernels")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args(words)
    found = discover(chosen.catalogue).cases(chosen.cases, tuple(chosen.label or ("S1",)))
    cases = [case for case in found if case.spec.language != CUDA]
    rows: list[LauncherRow] = []
    for row in comparisons(cast("CudaBackend", open_backend("cuda")), cases):
        print(_text(row), flush=True)
        rows.append(row)
        if chosen.output:
            write_csv((one.rounded() for one in rows), chosen.output)
    return int(any(row.differs for row in rows))
