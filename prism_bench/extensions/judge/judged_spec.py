"""The spec of a submission: the task's definition of what is right, launched by the card."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from prism_bench.errors import SpecError, unknown
from prism_bench.extensions.judge.expressions import CardExpression, CardFunction
from prism_bench.extensions.judge.submission import IN_ENTRY, CardLaunch, CardMap, Submission, extents_of
from prism_bench.spec.arguments import Array, Scalar, Scratch
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec, Launch, TensorMap, Zero
from prism_bench.spec.launch import LaunchCard
from prism_bench.units import bytes_text, count_text

LARGEST_GRID = (2**31 - 1, 65_535, 65_535)
LARGEST_SCRATCH, LARGEST_EMULATED = 16 << 30, 1 << 30  # bytes of all scratch of a case
MOST_EXTENTS = 8
_DTYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
)  # fmt: skip


def judged_spec(task: KernelSpec, submission: Submission, cards: tuple[LaunchCard, ...] = ()) -> KernelSpec:
    """Return the spec of a submission to a task: axes, inputs, reference, tolerance and edges are the task's.

    Of its arguments the task's scratch is left out: a submission declares its own. `cards` are of its machine code;
    without them its source is launched, which is for the emulator alone.
    """
    own = _Own(task, submission)
    return replace(
        task, name=submission.name, entry=own.first_entry, arguments=own.arguments, launch=own.launch,
        derived={**task.derived, **own.derived}, source=submission.file, language=submission.language, cards=cards,
        peers={}, variants={}, aliases=(), chains=(), budgets=(), before=None, replaces=(), looked_at={}, requires=None,
        options=() if cards else submission.card.options, callable=None, compile_commands=None, compiler="nvrtc",
    )  # fmt: skip


def check_scratch(case: Case, most: int = LARGEST_SCRATCH) -> None:
    """Raise a SpecError where the scratch of a case takes more bytes than `most`."""
    scratch = [one for one in case.spec.arrays if one.scratch]
    size = sum(prod(case.sizes.shape(one.name)) * np.dtype(one.dtype).itemsize for one in scratch)
    if size > most:
        raise SpecError(f"{case.name}: scratch of {bytes_text(size)}; at most {bytes_text(most)} are given")


class _Own:
    """What a card adds to a task."""

    def __init__(self, task: KernelSpec, submission: Submission) -> None:
        self._task, self._card, self._language = task, submission.card, submission.language
        scratch = {array.name for array in task.arrays if array.scratch}
        given = tuple(one for one in task.arguments if one.name not in scratch)
        self._refuse_doubled({one.name for one in given})
        sizes = tuple(Scalar(name, _checked(size.dtype, name)) for name, size in self._card.sizes.items())
        self.arguments: tuple[Array | Scalar, ...] = (*given, *sizes, *self._scratch())
        self._refuse_unknown()

    @property
    def first_entry(self) -> str:
        return next((launch.entry for launch in self._card.launch if launch.entry), "")

    def _scratch(self) -> tuple[Scratch, ...]:
        for name, one in self._card.scratch.items():
            if len(one.shape) > MOST_EXTENTS:
                raise SpecError(f"scratch.{name}: {count_text(len(one.shape), 'extent')}; at most {MOST_EXTENTS}")
        return tuple(
            Scratch(
                name, " ".join(f"{name}_extent_{index}" for index in range(len(one.shape))), _checked(one.dtype, name)
            )
            for name, one in self._card.scratch.items()
        )

    @property
    def derived(self) -> dict[str, CardFunction]:
        """The card's sizes, and the extents of its scratch."""
        texts = {name: size.value for name, size in self._card.sizes.items()}
        texts |= {
            f"{name}_extent_{index}": text
            for name, one in self._card.scratch.items() for index, text in enumerate(one.shape)
        }  # fmt: skip
        return {name: _function(CardExpression(str(text)), name) for name, text in texts.items()}

    @property
    def launch(self) -> CardFunction:
        """The launches as a function of the axes and the device."""
        asked = tuple(one for place, one in self._card.expressions().items() if place.startswith("launch "))
        device = {"sm_count", "max_shared_bytes"}
        names = tuple(
            CardExpression(" + ".join(name for name in one.names if name not in device) or "0") for one in asked
        )
        return CardFunction(names, self._steps, ("device",))

    def _steps(self, offered: Mapping[str, Any]) -> tuple[Launch | Zero, ...]:
        device: Device = offered["device"]
        known = {**offered, "sm_count": device.sm_count, "max_shared_bytes": device.max_shared_bytes}
        del known["device"]
        return tuple(
            Zero(one.zero) if one.zero else self._step(one, known)
            for one in self._card.launch if CardExpression(str(one.when)).value(known)
        )  # fmt: skip

    def _step(self, launch: CardLaunch, known: Mapping[str, Any]) -> Launch:
        grid, block = (
            tuple(CardExpression(str(text)).value(known) for text in extents_of(extents))
            for extents in (launch.grid, launch.block)
        )
        if any(extent > most for extent, most in zip(grid, LARGEST_GRID, strict=False)):
            raise SpecError(f"'{launch.entry}': a grid of {'x'.join(map(str, grid))} blocks; no device launches that")
        shared = CardExpression(str(launch.shared)).value(known)
        entry = IN_ENTRY.sub(lambda found: str(CardExpression(found[1]).value(known)), launch.entry)
        return Launch(
            grid, block if any(block) else 0, shared, entry=entry, arguments=launch.arguments,
            cooperative=launch.cooperative, constants=launch.constants,
            maps=tuple(_map(one, known) for one in launch.maps),
        )  # fmt: skip

    def _refuse_doubled(self, given: set[str]) -> None:
        taken = given | {axis for one in self._task.workloads.values() for axis in one}
        taken |= {*self._task.parameters, *self._task.derived, "device", "sm_count", "max_shared_bytes"}
        doubled = sorted(taken & {*self._card.sizes, *self._card.scratch})
        if doubled:
            raise SpecError(f"'{doubled[0]}' is a name of the task already; a card's own sizes and scratch have others")

    def _refuse_unknown(self) -> None:
        names = {one.name for one in self.arguments}
        arrays = {one.name for one in self.arguments if isinstance(one, Array)}
        for launch in self._card.launch:
            for name in launch.arguments:
                if name not in names:
                    raise unknown("argument of the task or the card", name, sorted(names))
            for one in launch.maps:
                if self._language != CUDA:
                    raise SpecError(f"'{launch.entry}': tensor maps are for CUDA C++; {self._language} makes its own")
                if one.argument not in launch.arguments or one.argument not in arrays:
                    raise unknown(f"array that '{launch.entry}' takes", one.argument, arrays & {*launch.arguments})
            if launch.zero and launch.zero not in arrays:
                raise unknown("buffer of the task or the card", launch.zero, sorted(arrays))


def _map(one: CardMap, known: Mapping[str, Any]) -> TensorMap:
    lines, *box = (CardExpression(str(text)).value(known) for text in (one.lines, *one.box))
    return TensorMap(one.argument, lines, one.tf32, tuple(box))


def _function(expression: CardExpression, name: str) -> CardFunction:
    def extent(offered: Mapping[str, object]) -> int:
        found = expression.value(offered)
        if found < 0 or found > LARGEST_SCRATCH:
            raise SpecError(f"{name}: '{expression.text}' is {found} here; it is 0 to {LARGEST_SCRATCH}")
        return found

    return CardFunction((expression,), extent)


def _checked(dtype: str, name: str) -> str:
    if dtype not in _DTYPES:
        raise unknown(f"type of '{name}'", dtype, _DTYPES)
    return np.dtype(dtype).name
