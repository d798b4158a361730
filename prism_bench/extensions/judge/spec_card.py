"""A kernel of a catalogue as a submission: its source, and a card with the launches of the cases that a judge runs.

A card has no functions, so each launch holds for one workload, named in its `when`; launches that are the same for all
workloads need none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path

import msgspec

from prism_bench.errors import SpecError
from prism_bench.extensions.judge.submission import (
    MOST_LAUNCHES,
    CardLaunch,
    CardMap,
    CardScratch,
    SubmissionCard,
)
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec, Launch, Zero
from prism_bench.units import count_text

_OTHER_KERNEL = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*\.cu)".*$', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once.*$", re.MULTILINE)


def spec_card(spec: KernelSpec, cases: Sequence[Case], device: Device | None = None) -> SubmissionCard:
    """Return the card of a spec for these cases as launched on an emulator, and on `device` where that is another way.

    A SpecError where a card cannot have what the spec has.
    """
    if spec.callable is not None:
        raise SpecError("it is a callable of Python, whose launches nobody sees")
    scratch = {
        one.name: CardScratch(tuple(_extent(word) for word in one.shape.split()), one.dtype)
        for one in spec.arrays if one.scratch
    }  # fmt: skip
    axes = sorted({axis for case in cases for axis in case.workload})
    by_condition: dict[str, tuple[CardLaunch, ...]] = {}
    for case in cases:
        for condition, steps in _on_both(case, _condition(case, axes), device):
            if by_condition.setdefault(condition, steps) != steps:
                raise SpecError("its launches differ by an axis that is neither a whole number nor a text")
    if len({msgspec.json.encode(steps) for steps in by_condition.values()}) == 1:
        launches = next(iter(by_condition.values()))
    else:
        launches = tuple(
            msgspec.structs.replace(launch, when=condition)
            for condition, steps in by_condition.items() for launch in steps
        )  # fmt: skip
    if not launches:
        raise SpecError("it launches nothing at sizes that a CPU can run")
    if len(launches) > MOST_LAUNCHES:
        raise SpecError(
            f"its cases have {count_text(len(launches), 'launch', 'launches')}; a card has at most {MOST_LAUNCHES}"
        )
    return SubmissionCard(launches, source=spec.source_file.name, options=spec.options, scratch=scratch)


def write_submission(folder: Path, spec: KernelSpec, card: SubmissionCard) -> Path:
    """Write the card and a copy of the source to a folder, in one file with other kernels' that it includes.

    Return the card's file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    is_cuda = spec.language == CUDA
    text = _in_one_file(spec.source_file, set()) if is_cuda else spec.source_file.read_text()
    (folder / card.source).write_text(text)
    file = folder / f"{Path(card.source).stem}.toml"
    file.write_text("\n".join(_toml(card)) + "\n")
    return file


def _in_one_file(source: Path, seen: set[Path]) -> str:
    """Return the text of a source with other kernels' sources in the place of their `#include`, each once."""
    seen.add(source.resolve())

    def text_of(include: re.Match[str]) -> str:
        other = (source.parent / include[1]).resolve()
        return "" if other in seen else _in_one_file(other, seen)

    text = source.read_text()
    return _ONCE.sub("", _OTHER_KERNEL.sub(text_of, text)) if _OTHER_KERNEL.search(text) or len(seen) > 1 else text


def _on_both(case: Case, condition: str, device: Device | None) -> Iterator[tuple[str, tuple[CardLaunch, ...]]]:
    """Yield the launches on an emulator and on the device, each with its condition; once where they are the same."""
    found = {one.sm_count: tuple(_launches(case, one)) for one in (Device(), device or Device())}
    first, *others = found.values()
    if all(one == first for one in others):
        yield condition, first
    else:
        yield from ((f"{condition} and sm_count == {count}", steps) for count, steps in found.items())


def _launches(case: Case, device: Device) -> Iterable[CardLaunch]:
    spec = case.spec
    for step in case.plan.steps(device):
        if isinstance(step, Zero):
            yield CardLaunch(zero=step.name)
        elif not step.is_empty:
            yield _launch(step, spec)


def _launch(step: Launch, spec: KernelSpec) -> CardLaunch:
    return CardLaunch(
        step.entry or spec.entry, _whole(step.grid), _whole(step.block), step.shared,
        step.arguments or tuple(one.name for one in spec.arguments), cooperative=step.cooperative,
        constants=dict(map(_constant, step.constants.items())),
        maps=tuple(CardMap(one.name, one.lines, one.box, one.tf32) for one in step.maps),
    )  # fmt: skip


def _constant(constant: tuple[str, object]) -> tuple[str, bool | int | float | str]:
    name, value = constant
    if not isinstance(value, bool | int | float | str) or (isinstance(value, float) and not isfinite(value)):
        raise SpecError(f"its constant {name} is {value!r}, which a card does not write")
    return name, value


def _whole(extents: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return tuple(map(int, extents)) if isinstance(extents, tuple) else int(extents)


def _extent(word: str) -> int | str:
    return int(word) if word.isdigit() else word


def _condition(case: Case, axes: Iterable[str]) -> str:
    """Return the expression that holds at the case's axes, as far as they are whole numbers and texts."""
    values = {axis: case.axes.get(axis) for axis in axes}
    plain = {axis: repr(value) if isinstance(value, str) else int(value) for axis, value in values.items()
             if isinstance(value, int | str)}  # fmt: skip
    return " and ".join(f"{axis} == {value}" for axis, value in plain.items()) or "1"


def _toml(card: SubmissionCard) -> Iterable[str]:
    yield f"source = {_value(card.source)}"
    if card.options:
        yield f"options = {_value(card.options)}"
    for launch in card.launch:
        yield "\n[[launch]]"
        yield from (f"{name} = {_value(value)}" for name, value in _changed(launch).items())
    for name, scratch in card.scratch.items():
        yield f"\n[scratch.{name}]\nshape = {_value(scratch.shape)}\ndtype = {_value(scratch.dtype)}"


def _changed(table: msgspec.Struct) -> dict[str, object]:
    """Return the members that differ from what a card has without them."""
    values = ((one, getattr(table, one.name)) for one in msgspec.structs.fields(table))
    return {one.name: value for one, value in values if value not in (one.default, {})}


def _value(value: object) -> str:
    """Return a value as TOML writes it, which is JSON's way for texts, numbers, truth values and lists of them."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, msgspec.Struct):
        value = _changed(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_value(name)} = {_value(one)}" for name, one in value.items()) + " }"
    return msgspec.json.encode(value).decode()
