"""Measurements behind the policies: forms of a product by shape, windows of an entropy, batches."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from prism_bench.extensions.pipelines.definitions import centres, heated
from prism_bench.io import files
from prism_bench.record import identity
from prism_bench.run import Progress
from prism_bench.spec.case import Case
from prism_bench.workflows.tuning.choice import toolchain_of
from prism_bench.workflows.tuning.crossover import (
    CASTS,
    FORMS,
    HALVES,
    SHAPES,
    Batch,
    CrossoverRow,
    Measured,
    Window,
    path_for,
    write_measured,
)
from prism_bench.workflows.tuning_session import Bench, Trial, Trials, timed_in_turn

# Effect of another entropy window on the result, on a seeded scene and in float64.

USUAL = 16  # the window that others are compared with
_SPOTS, _RADIUS, _HEAT = 6, 6, 0.25
_CUTS = (1.0, 2.0, 3.0)  # bits: where segmentation by entropy cuts around a threshold of 2


def scene(rows: int, cols: int) -> np.ndarray:
    """Return an image in [0, 1): a ramp, noise that grows downwards, and hot spots; float32 [rows, cols]."""
    rng = np.random.default_rng(0)
    down, across = np.mgrid[0:rows, 0:cols] / max(rows, cols)
    image = 0.2 + 0.3 * across + 0.2 * down * rng.random((rows, cols))
    return heated(image, centres(rows, cols, _SPOTS, 3 * _RADIUS), _RADIUS, _HEAT).astype("float32")


def entropies(case: Case) -> np.ndarray:
    """Return the entropies of the scene, in bits, by the reference of a case whose input is the image `x`."""
    return case.correctness.expected({"x": scene(*case.sizes.shape("x"))}, np, None)["entropy"]


def window_row(window: int, seconds: float, by_window: Mapping[int, np.ndarray]) -> Window:
    """Return the effect of the window on the entropies; `by_window` has the entropies of the window and of `USUAL`."""
    entropy, usual = by_window[window], by_window[USUAL]
    moved = np.digitize(entropy, _CUTS) != np.digitize(usual, _CUTS)
    difference = float(np.abs(entropy - usual).mean())
    rows, cols = entropy.shape
    return Window(rows, cols, window, seconds, float(entropy.mean()), difference, float(moved.mean()))


# Measurements behind the policies: forms of a product by shape, entropy windows by image, LSTM batches.

_WINDOWS = (8, 16, 32)
_IMAGES = ((200, 200), (256, 256), (512, 512), (1024, 1024))
_SMALL_SHAPES = SHAPES[:2]  # where a CPU plays the device
_SMALL_IMAGES = ((48, 64),)
_SEQUENCE = {"steps": 128, "inputs": 1024, "hidden": 1024}
_SMALL_SEQUENCE = {"steps": 4, "inputs": 16, "hidden": 16}
_BATCHES = (8, 16, 32, 64)
_MORE_BATCHES = (*_BATCHES, 128, 256, 512)
_Key = TypeVar("_Key", bound=Hashable)


class PolicyMeasurement:
    """Verifies and times cases of the catalogue at chosen sizes; `left` has the reasons of cases without a time.

    A row exists where all of its cases have times.
    """

    def __init__(self, bench: Bench, processes: int, report: Callable[[Progress], None]) -> None:
        self._bench, self._processes, self._report = bench, processes, report
        self.facts: Mapping[str, Any] = {}
        self.left: dict[str, str] = {}

    @property
    def on_device(self) -> bool:
        """Whether times are a device's."""
        return self._bench.backend == "cuda"

    def parts(self, names: Sequence[str], keep: Callable[[Measured], object]) -> tuple[Measured, dict[str, str]]:
        """Return the rows of the parts, and the reasons of cases and parts without times; call `keep` after each part.

        After an interrupt return the parts that are measured by then; KeyboardInterrupt before the first part is.
        """
        parts: Measured | None = None
        for name in names:
            try:
                with files.allowed():
                    measured = self.part(name)
            except KeyboardInterrupt:
                if parts is None:
                    raise
                return parts, {**self.left, name: "interrupted"}
            parts = replace(parts, **{name: getattr(measured, name)}) if parts else measured
            keep(parts)
        if parts is None:
            raise ValueError("no part was chosen")
        return parts, self.left

    def part(self, name: str) -> Measured:
        """Return the rows of the part, with their machine and toolchain."""
        rows: dict[str, Any] = {name: getattr(self, name)()}
        return Measured(
            machine=identity.machine(self.facts)["id"],
            device=self.facts.get("device", ""),
            backend=self._bench.backend,
            toolchain=toolchain_of(self.facts),
            created=identity.timestamp(datetime.now(UTC)),
            **rows,
        )

    def matmul(self) -> tuple[CrossoverRow, ...]:
        """Return a row for every shape."""
        shapes = SHAPES if self.on_device else _SMALL_SHAPES
        kernels = {**FORMS, "casts": CASTS}
        cases: dict[tuple[Any, ...], Case] = {
            (name, *_key(shape)): self._case(kernel, m=shape["m"], n=shape["n"], k=shape["k"])
            for shape in shapes
            for name, kernel in kernels.items()
        }
        counts = {count for shape in shapes for count in _counts(shape)}
        cases |= {("widen", count): self._case("fp16_to_fp32", n=count) for count in sorted(counts)}
        trials, seconds = self._measured(cases)
        return tuple(_row(shape, trials, seconds) for shape in shapes if _needed(shape) <= set(seconds))

    def windows(self) -> tuple[Window, ...]:
        """Return a row for every image and window; entropies are of the float64 reference on a seeded scene."""
        images = _IMAGES if self.on_device else _SMALL_IMAGES
        cases = {
            (rows, cols, w): self._case("pixel_entropy", rows=rows, cols=cols, window=w)
            for rows, cols in images
            for w in _WINDOWS
        }
        _, seconds = self._measured(cases)
        windows: list[Window] = []
        for rows, cols in images:
            by_window = {w: entropies(cases[rows, cols, w]) for w in _WINDOWS}
            timed = [w for w in _WINDOWS if (rows, cols, w) in seconds]
            windows += [window_row(w, seconds[rows, cols, w], by_window) for w in timed]
        return tuple(windows)

    def batches(self) -> tuple[Batch, ...]:
        """Return a row for every batch of a sequence."""
        sizes, batches = (_SEQUENCE, _MORE_BATCHES) if self.on_device else (_SMALL_SEQUENCE, _BATCHES)
        cases = {batch: self._case("lstm_cell:sequence", batch=batch, **sizes) for batch in batches}
        trials, seconds = self._measured(cases)
        return tuple(Batch(batch, sizes["steps"], seconds[batch], _error(trials[batch])) for batch in seconds)

    def _case(self, kernel: str, **axes: int) -> Case:
        return self._bench.catalogue.anywhere(f"{kernel}[{','.join(f'{axis}={size}' for axis, size in axes.items())}]")

    def _measured(self, cases: Mapping[_Key, Case]) -> tuple[dict[_Key, Trial], dict[_Key, float]]:
        """Return the trials that verified the cases, and the medians over new processes of cases with times."""
        total, done = len(cases) * (1 + self._processes), count()

        def report(process: int, case: Case) -> None:
            self._report(Progress(process, next(done), total, case.task))

        trials: dict[_Key, Trial] = {}
        right: list[Case] = []
        with Trials(self._bench, [case.task for case in cases.values()]) as trial:
            for key, case in cases.items():
                report(0, case)
                trials[key] = trial(case)
                self._note(case, trials[key].reason)
                right += [case] if trials[key].seconds is not None else []
            self.facts = trial.facts
        *_, again = timed_in_turn(self._bench, [right], self._processes, report=report)
        for case in right:
            self._note(case, None if case.task in again else "its time of a fresh process cannot be trusted")
        medians = {key: again[case.task].median for key, case in cases.items() if case.task in again}
        return trials, {key: median for key, median in medians.items() if median is not None}

    def _note(self, case: Case, reason: str | None) -> None:
        if reason:
            self.left[case.name] = reason


def keep(measured: Measured, folder: Path) -> Path:
    """Store the measured policies and return their path."""
    return write_measured(measured, path_for(measured.machine, folder))


def _key(shape: Mapping[str, int]) -> tuple[int, int, int]:
    return shape["m"], shape["k"], shape["n"]


def _counts(shape: Mapping[str, int]) -> tuple[int, int]:
    """Return the elements of both operands."""
    return shape["m"] * shape["k"], shape["k"] * shape["n"]


def _needed(shape: Mapping[str, int]) -> set[tuple[Any, ...]]:
    """Return the cases that a shape's row is made of."""
    return {(name, *_key(shape)) for name in (*FORMS, "casts")} | {("widen", count) for count in _counts(shape)}


def _row(shape: Mapping[str, int], trials: Mapping[Any, Trial], seconds: Mapping[Any, float]) -> CrossoverRow:
    key = _key(shape)
    by_casts = _error(trials["casts", *key])
    errors = {form: by_casts if form in HALVES else _error(trials[form, *key]) for form in FORMS}
    return CrossoverRow(
        shape=shape,
        seconds={form: seconds[form, *key] for form in FORMS},
        narrow=max(seconds["casts", *key] - seconds["f16", *key], 0.0),
        widen=sum(seconds["widen", count] for count in _counts(shape)),
        errors=errors,
    )


def _error(trial: Trial) -> float:
    """Return the largest error of an output relative to its largest element."""
    return max(float(entry.get("norm_error", 0.0)) for entry in trial.result.verification)
