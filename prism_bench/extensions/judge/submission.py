"""Submissions: device code with a launch card, and the spec that both make.

A submission is a TOML file, the card, with a source or a cubin next to it. Nothing of it runs on the host:

    source = "softmax.cu"            # or "softmax.triton.py", or cubin = "softmax.cubin"

    [[launch]]
    entry = "softmax<256>"           # of a cubin its symbol; "softmax<{4 * warps}>" has an expression in it
    grid = "ceil_div(rows, 4)"       # expressions over the axes of the case and `sm_count`; a list for more dimensions
    block = 256
    shared = "4 * cols"
    arguments = ["x", "y", "cols"]   # the task's arguments, own sizes and own scratch, in order
    when = "cols > 32"               # left out where this is 0
    maps = [{ argument = "x", lines = 64 }]  # arguments passed as tensor maps: box = [...], tf32 = true

    [sizes.parts]                    # numbers that the kernel takes
    value = "ceil_div(cols, 8192)"
    dtype = "int32"

    [scratch.partial]                # working memory, zero at first
    shape = ["rows", "parts"]
    dtype = "float32"
"""

import ast
import errno
import hashlib
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from inspect import Parameter, Signature
from math import isfinite, prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from prism_bench.compilation.languages.language import language_in, names
from prism_bench.errors import SpecError, UsageError, unknown
from prism_bench.extensions.judge.verdict import printable, readable
from prism_bench.spec.arguments import Array, Scalar, Scratch
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec, Launch, TensorMap, Zero
from prism_bench.spec.launch import LARGEST_GRID, LaunchCard
from prism_bench.units import bytes_text, count_text

# Expressions of a launch card: whole numbers from the axes of a case, without code of the submission's author
#
# They have numbers, names, `+ - * // %`, comparisons, `and`, `or`, `not`, `a if b else c`, and the functions `min`,
# `max`, `ceil_div` and `next_power_of_2`. A text axis can be compared with a text: `kind == 'clipped'`.

_LONGEST, _DEEPEST = 500, 200  # characters, and parts within parts
_LARGEST = (1 << 64) - 1  # an axis may be a seed of 64 bits
_OPERATORS: Mapping[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "ceil_div": lambda a, b: -(-a // b),
    "next_power_of_2": lambda a: 1 << max(0, a - 1).bit_length(),
}
_ARITY = {"min": (2, 8), "max": (2, 8), "ceil_div": (2, 2), "next_power_of_2": (1, 1)}


@dataclass(frozen=True)
class CardExpression:
    """Expression by its text; raises a SpecError for anything that a card may not have."""

    text: str

    def __post_init__(self) -> None:
        for name in self.names:  # checks the text
            if name in _FUNCTIONS:
                raise SpecError(f"'{self.text}': {name} is a function")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names in the expression, sorted."""
        names: set[str] = set()
        _check(_tree(self.text), self.text, names)
        return tuple(sorted(names))

    def value(self, offered: Mapping[str, object]) -> int:
        """Return the value; raise a SpecError for an unknown name, a division by 0 or a number out of range."""
        missing = [name for name in self.names if name not in offered]
        if missing:
            raise SpecError(f"'{self.text}' asks for '{missing[0]}', which is none of {', '.join(sorted(offered))}")
        try:
            return _value_of(_tree(self.text), offered, self.text)
        except ZeroDivisionError:
            raise SpecError(f"'{self.text}' divides by 0") from None


class CardFunction:
    """Function of the names in some expressions, which are its keyword parameters."""

    def __init__(
        self,
        expressions: tuple[CardExpression, ...],
        compute: Callable[[Mapping[str, object]], object],
        others: tuple[str, ...] = (),
    ) -> None:
        names = sorted({name for expression in expressions for name in expression.names} | set(others))
        self.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in names])
        self._compute = compute

    def __call__(self, **offered: object) -> object:
        return self._compute(offered)

    def __repr__(self) -> str:
        return "the card"


@lru_cache(maxsize=1024)
def _tree(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise SpecError(f"an expression of {len(text)} characters; it has at most {_LONGEST}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpecError(
            f"'{text}' is no expression: {error.msg if isinstance(error, SyntaxError) else error}"
        ) from None


def _check(node: ast.AST, text: str, names: set[str], depth: int = 1) -> None:
    """Refuse all but the allowed syntax, and add the names of the expression to `names`."""
    if depth > _DEEPEST:
        raise SpecError(f"an expression of more than {_DEEPEST} parts within parts")
    match node:
        case ast.Constant(value=value) if type(value) is int and value <= _LARGEST:
            return
        case ast.Name(id=name):
            names.add(name)
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            parts: list[ast.expr] = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            parts = [operand]
        case ast.BoolOp(values=values):
            parts = values
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str())]):
            names.add(name)
            return
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            parts = [left, right]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            parts = [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            least, most = _ARITY[name]
            if not least <= len(args) <= most:
                raise SpecError(f"'{text}': {name} takes {least if least == most else f'{least} to {most}'} numbers")
            parts = args
        case _:
            what = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            raise SpecError(f"'{text}': '{what}' is nothing that an expression of a card has")
    for part in parts:
        _check(part, text, names, depth + 1)


def _value_of(node: ast.AST, offered: Mapping[str, object], text: str) -> int:
    def inner(part: ast.AST) -> int:
        return _value_of(part, offered, text)

    match node:
        case ast.Constant(value=value) if isinstance(value, int):
            result = value
        case ast.Name(id=name):
            result = _whole_number(offered[name], name, text)
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=str(word))]):
            result = int((offered[name] == word) == isinstance(op, ast.Eq))
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq() | ast.NotEq() as op]) if isinstance(offered[name], str):
            result = int(isinstance(op, ast.NotEq))  # a text is no number
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            result = int(_OPERATORS[type(op)](inner(left), inner(right)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            result = -inner(operand)
        case ast.UnaryOp(operand=operand):
            result = int(not inner(operand))
        case ast.BoolOp(op=op, values=values):
            result = int((all if isinstance(op, ast.And) else any)(map(inner, values)))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            result = inner(body) if inner(test) else inner(orelse)
        case ast.Call(func=ast.Name(id=name), args=args):
            result = _FUNCTIONS[name](*map(inner, args))
        case _:
            raise AssertionError("checked before")
    if not -_LARGEST <= result <= _LARGEST:
        raise SpecError(f"'{text}' is {result:.3g}, too large a number")
    return result


def _whole_number(value: object, name: str, text: str) -> int:
    if not isinstance(value, int | float) or int(value) != value:
        raise SpecError(f"'{text}' asks for '{name}', which is {value!r} here and no whole number")
    return int(value)


# The card and the files of a submission

_LARGEST_CARD, _LARGEST_SOURCE = 1 << 20, 4 << 20  # bytes
LARGEST_CUBIN = 64 << 20
_MOST_LAUNCHES, _MOST_DECLARED = 1024, 256  # launches; sizes, and scratch buffers, that a card declares
_LONGEST_ENTRY = 4000  # characters
_MOST_DOTS = 200  # of a line: Python's reader takes hours for a key of very many parts
_LONGEST_ERROR = 1000  # characters of an error about a card, which may quote it
_IN_ENTRY = re.compile(r"\{([^{}]*)\}")  # an expression in the template arguments of an entry
Extents = int | str | tuple[int | str, ...]


class CardMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Array that a launch passes as a tensor map, by value (`prism_bench.spec.kernel.TensorMap`)."""

    argument: str
    lines: int | str = 64
    box: tuple[int | str, ...] = ()
    tf32: bool = False


class CardLaunch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Launch, or a fill of the buffer `zero` with zeros. `constants` are for Python's languages."""

    entry: str = ""
    grid: Extents = 1
    block: Extents = 0
    shared: int | str = 0
    arguments: tuple[str, ...] = ()
    when: int | str = 1
    zero: str = ""
    cooperative: bool = False
    constants: Mapping[str, bool | int | float | str] = {}
    maps: tuple[CardMap, ...] = ()

    def expressions(self) -> dict[str, int | str]:
        """Return the texts of the launch's expressions by their place."""
        extents = {"grid": _extents_of(self.grid), "block": _extents_of(self.block)}
        extents |= {f"map of {tensor.argument}": (tensor.lines, *tensor.box) for tensor in self.maps}
        texts = {f"{what}[{index}]": text for what, texts in extents.items() for index, text in enumerate(texts)}
        texts |= {"shared": self.shared, "when": self.when}
        return texts | {f"entry {{{text}}}": text for text in _IN_ENTRY.findall(self.entry)}


class CardSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whole number that the kernel takes in addition to the task's arguments."""

    value: int | str
    dtype: str = "int32"


class CardScratch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Working memory of the kernel: its extents and the type of its elements."""

    shape: tuple[int | str, ...]
    dtype: str = "float32"


class SubmissionCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a submission's TOML file."""

    launch: tuple[CardLaunch, ...]
    source: str = ""
    cubin: str = ""
    options: tuple[str, ...] = ()
    sizes: Mapping[str, CardSize] = {}
    scratch: Mapping[str, CardScratch] = {}
    author: str = ""

    def expressions(self) -> dict[str, CardExpression]:
        """Return every expression of the card by its place; raise a SpecError for one that is not allowed."""
        texts: dict[str, int | str] = {f"sizes.{name}": size.value for name, size in self.sizes.items()}
        for name, scratch in self.scratch.items():
            texts |= {f"scratch.{name}[{index}]": text for index, text in enumerate(scratch.shape)}
        for number, launch in enumerate(self.launch, 1):
            texts |= {f"launch {number}: {place}": text for place, text in launch.expressions().items()}
        expressions: dict[str, CardExpression] = {}
        for place, text in texts.items():
            try:
                expressions[place] = CardExpression(str(text))
            except SpecError as error:
                raise SpecError(f"{place}: {error}") from None
        return expressions


class Submission(msgspec.Struct, frozen=True):
    """Card and its code: `file` is the source or the cubin; `name` is the card's file name without its suffix."""

    name: str
    card: SubmissionCard
    file: Path
    is_cubin: bool
    content: bytes

    @property
    def language(self) -> str:
        """Language of the source, by its name; CUDA for machine code."""
        return language_in(self.file) or CUDA


def _extents_of(extents: Extents) -> tuple[int | str, ...]:
    """Return one to three extents as a tuple."""
    return extents if isinstance(extents, tuple) else (extents,)


def read_submission(path: Path) -> Submission:
    """Return the submission of a card, or of a folder with one card.

    UsageError if it cannot be read, SpecError for a card with anything that is not allowed.
    """
    card_file = _card_in(path)
    try:
        if card_file.exists() and not card_file.is_file():
            raise SpecError("it is no ordinary file")
        if card_file.stat().st_size > _LARGEST_CARD:
            raise SpecError(f"it has {card_file.stat().st_size:,} bytes; at most {_LARGEST_CARD:,} are taken")
        if not _is_at_home(card_file, card_file):
            raise SpecError("it is a link to a file in another folder")
        text = card_file.read_bytes()
        if any(line.count(b".") > _MOST_DOTS for line in text.splitlines()):
            raise SpecError(f"a line has more than {_MOST_DOTS} dots, more than any card needs")
    except OSError as error:
        raise UsageError(f"{card_file}: {error.strerror}") from None
    except SpecError as error:
        raise SpecError(f"{card_file}: {error}") from None
    try:
        return _with_code(card_file, msgspec.toml.decode(text, type=SubmissionCard))
    except RecursionError:
        raise SpecError(f"{card_file}: lists within lists, more than any card has") from None
    except (SpecError, msgspec.DecodeError, ValueError, OSError) as error:  # of impossible numbers and names
        raise SpecError(f"{card_file}: {str(error)[:_LONGEST_ERROR]}") from None


def identity_of(submission: Submission) -> tuple[str, str]:
    """Return the SHA-256 of the code and of the card."""
    contents = submission.content, msgspec.json.encode(submission.card)
    code, card = (hashlib.sha256(content).hexdigest() for content in contents)
    return code, card


def _card_in(path: Path) -> Path:
    if not path.is_dir():
        if path.is_file() and path.suffix != ".toml":
            raise UsageError(
                f"{path}: a submission is given by its card, a TOML file next to the code, or by the folder"
            )
        return path
    cards = sorted(path.glob("*.toml"))
    if len(cards) != 1:
        names = printable(", ".join(card.name for card in cards)) or "none"
        raise UsageError(f"{path}: a submission has one card, a TOML file; here are {names}")
    return cards[0]


def _with_code(card_file: Path, card: SubmissionCard) -> Submission:
    if bool(card.source) == bool(card.cubin):
        raise SpecError("it names a source or a cubin, one of the two")
    if not 1 <= len(card.launch) <= _MOST_LAUNCHES:
        raise SpecError(
            f"it has {count_text(len(card.launch), 'launch', 'launches')}; a card has 1 to {_MOST_LAUNCHES}"
        )
    _check_launches(card)
    card.expressions()
    file = card_file.parent / (card.source or card.cubin)
    if not _is_at_home(file, card_file):
        raise SpecError(f"'{card.source or card.cubin}' is not in the card's folder")
    if card.source and file.suffix != ".cu" and language_in(file) is None:
        known = ", ".join(f".{name}.py" for name in names())
        raise SpecError(f"{file.name} is no CUDA C++ (.cu) by its name, nor {known}: host programs are not taken")
    most = LARGEST_CUBIN if card.cubin else _LARGEST_SOURCE
    if not file.is_file():
        raise SpecError(f"there is no file {file.name}")
    if file.stat().st_size > most:
        raise SpecError(f"{file.name} has {file.stat().st_size:,} bytes; at most {most:,} are taken")
    return Submission(readable(card_file.stem), card, file, bool(card.cubin), file.read_bytes())


def _is_at_home(file: Path, card_file: Path) -> bool:
    """Return whether a file is in the card's folder after following links; raise an OSError for circular links."""
    try:
        return file.resolve().is_relative_to(card_file.parent.resolve())
    except RuntimeError as error:  # of Python before 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(file)) from error


def _check_launches(card: SubmissionCard) -> None:
    for what, declared in (("sizes", card.sizes), ("scratch buffers", card.scratch)):
        if len(declared) > _MOST_DECLARED:
            raise SpecError(f"it has {len(declared):,} {what}; a card has at most {_MOST_DECLARED}")
    for number, launch in enumerate(card.launch, 1):
        if len(launch.entry) > _LONGEST_ENTRY:
            raise SpecError(f"launch {number}: an entry of {len(launch.entry):,} characters; at most {_LONGEST_ENTRY}")
        if bool(launch.entry) == bool(launch.zero):
            raise SpecError(f"launch {number}: it has an entry, or a buffer to zero, one of the two")
        for what, extents in (("grid", launch.grid), ("block", launch.block)):
            if not 1 <= len(_extents_of(extents)) <= 3:
                raise SpecError(f"launch {number}: {what} has one to three extents")


# A kernel of a catalogue as a submission: its source, and a card with the launches of the judged cases
#
# A card has no functions, so each launch holds for the workload in its `when`. Launches that are equal for all
# workloads have no `when`.

_OTHER_KERNEL = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*\.cu)".*$', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once.*$", re.MULTILINE)


def spec_card(spec: KernelSpec, cases: Sequence[Case], device: Device | None = None) -> SubmissionCard:
    """Return the card of a spec for these cases, with launches for the emulator and, if they differ, for `device`.

    A SpecError if a card cannot express the spec.
    """
    if spec.callable is not None:
        raise SpecError("it is a callable of Python, whose launches nobody sees")
    scratch = {
        array.name: CardScratch(
            tuple(int(extent) if extent.isdigit() else extent for extent in array.shape.split()), array.dtype
        )
        for array in spec.arrays
        if array.scratch
    }
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
            for condition, steps in by_condition.items()
            for launch in steps
        )
    if not launches:
        raise SpecError("it launches nothing at sizes that a CPU can run")
    if len(launches) > _MOST_LAUNCHES:
        raise SpecError(
            f"its cases have {count_text(len(launches), 'launch', 'launches')}; a card has at most {_MOST_LAUNCHES}"
        )
    return SubmissionCard(launches, source=spec.source_file.name, options=spec.options, scratch=scratch)


def write_submission(folder: Path, spec: KernelSpec, card: SubmissionCard) -> Path:
    """Write the card and the source, with included kernels in its text, to a folder; return the card's file."""
    folder.mkdir(parents=True, exist_ok=True)
    is_cuda = spec.language == CUDA
    text = _in_one_file(spec.source_file, set()) if is_cuda else spec.source_file.read_text()
    (folder / card.source).write_text(text)
    file = folder / f"{Path(card.source).stem}.toml"
    file.write_text("\n".join(_toml(card)) + "\n")
    return file


def _in_one_file(source: Path, seen: set[Path]) -> str:
    """Return the text of a source with each `#include` of another kernel replaced by that kernel's text, once."""
    seen.add(source.resolve())

    def text_of(include: re.Match[str]) -> str:
        other = (source.parent / include[1]).resolve()
        return "" if other in seen else _in_one_file(other, seen)

    text = source.read_text()
    return _ONCE.sub("", _OTHER_KERNEL.sub(text_of, text)) if _OTHER_KERNEL.search(text) or len(seen) > 1 else text


def _on_both(case: Case, condition: str, device: Device | None) -> Iterator[tuple[str, tuple[CardLaunch, ...]]]:
    """Yield the launches on an emulator and on the device, each with its condition; once if they are equal."""
    by_count = {kind.sm_count: tuple(_launches(case, kind)) for kind in (Device(), device or Device())}
    emulated, *others = by_count.values()
    if all(steps == emulated for steps in others):
        yield condition, emulated
    else:
        yield from ((f"{condition} and sm_count == {count}", steps) for count, steps in by_count.items())


def _launches(case: Case, device: Device) -> Iterable[CardLaunch]:
    spec = case.spec
    for step in case.plan.steps(device):
        if isinstance(step, Zero):
            yield CardLaunch(zero=step.name)
        elif not step.is_empty:
            yield _launch(step, spec)


def _launch(step: Launch, spec: KernelSpec) -> CardLaunch:
    return CardLaunch(
        step.entry or spec.entry,
        _whole(step.grid),
        _whole(step.block),
        step.shared,
        spec.passed(step),
        cooperative=step.cooperative,
        constants=dict(map(_constant, step.constants.items())),
        maps=tuple(CardMap(tensor.name, tensor.lines, tensor.box, tensor.tf32) for tensor in step.maps),
    )


def _constant(constant: tuple[str, object]) -> tuple[str, bool | int | float | str]:
    name, value = constant
    if not isinstance(value, bool | int | float | str) or (isinstance(value, float) and not isfinite(value)):
        raise SpecError(f"its constant {name} is {value!r}, which a card does not write")
    return name, value


def _whole(extents: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return tuple(map(int, extents)) if isinstance(extents, tuple) else int(extents)


def _condition(case: Case, axes: Iterable[str]) -> str:
    """Return the expression that holds at the case's axes, of those that are whole numbers or texts."""
    values = {axis: case.axes.get(axis) for axis in axes}
    plain = {
        axis: repr(value) if isinstance(value, str) else int(value)
        for axis, value in values.items()
        if isinstance(value, int | str)
    }
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
    """Return the members that differ from their defaults."""
    values = ((member, getattr(table, member.name)) for member in msgspec.structs.fields(table))
    return {member.name: value for member, value in values if value not in (member.default, {})}


def _value(value: object) -> str:
    """Return a value as TOML, which equals JSON for texts, numbers, truth values and lists of them."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, msgspec.Struct):
        value = _changed(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_value(name)} = {_value(entry)}" for name, entry in value.items()) + " }"
    return msgspec.json.encode(value).decode()


# The spec of a submission: the task's reference and tolerance, with the launches of the card

_LARGEST_SCRATCH, LARGEST_EMULATED = 16 << 30, 1 << 30  # bytes of all scratch of a case
_MOST_EXTENTS = 8
_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")


def judged_spec(task: KernelSpec, submission: Submission, cards: tuple[LaunchCard, ...] = ()) -> KernelSpec:
    """Return the spec of a submission to a task: axes, inputs, reference, tolerance and edges are the task's.

    The task's scratch is no argument: a submission declares its own. `cards` are of its machine code; without them its
    source is launched, which only the emulator does.
    """
    additions = _CardAdditions(task, submission)
    return replace(
        task,
        name=submission.name,
        entry=next((launch.entry for launch in submission.card.launch if launch.entry), ""),
        arguments=additions.arguments,
        launch=additions.launch,
        derived={**task.derived, **additions.derived},
        source=submission.file,
        language=submission.language,
        cards=cards,
        peers={},
        variants={},
        aliases=(),
        chains=(),
        budgets=(),
        before=None,
        replaces=(),
        looked_at={},
        requires=None,
        options=() if cards else submission.card.options,
        callable=None,
        compile_commands=None,
        compiler="nvrtc",
    )


def check_scratch(case: Case, most: int = _LARGEST_SCRATCH) -> None:
    """Raise a SpecError if the scratch of a case takes more bytes than `most`."""
    scratch = [array for array in case.spec.arrays if array.scratch]
    size = sum(prod(case.sizes.shape(array.name)) * array.storage.itemsize for array in scratch)
    if size > most:
        raise SpecError(f"{case.name}: scratch of {bytes_text(size)}; at most {bytes_text(most)} are given")


class _CardAdditions:
    """Arguments, sizes, scratch and launches that a card adds to a task."""

    def __init__(self, task: KernelSpec, submission: Submission) -> None:
        self._task, self._card, self._language = task, submission.card, submission.language
        scratch = {array.name for array in task.arrays if array.scratch}
        arguments = tuple(argument for argument in task.arguments if argument.name not in scratch)
        self._refuse_doubled({argument.name for argument in arguments})
        sizes = tuple(Scalar(name, _checked(size.dtype, name)) for name, size in self._card.sizes.items())
        self.arguments: tuple[Array | Scalar, ...] = (*arguments, *sizes, *self._scratch())
        self._refuse_unknown()

    def _scratch(self) -> tuple[Scratch, ...]:
        for name, scratch in self._card.scratch.items():
            if len(scratch.shape) > _MOST_EXTENTS:
                raise SpecError(f"scratch.{name}: {count_text(len(scratch.shape), 'extent')}; at most {_MOST_EXTENTS}")
        return tuple(
            Scratch(
                name,
                " ".join(f"{name}_extent_{index}" for index in range(len(scratch.shape))),
                _checked(scratch.dtype, name),
            )
            for name, scratch in self._card.scratch.items()
        )

    @property
    def derived(self) -> dict[str, CardFunction]:
        """The card's sizes, and the extents of its scratch."""
        texts = {name: size.value for name, size in self._card.sizes.items()}
        texts |= {
            f"{name}_extent_{index}": text
            for name, scratch in self._card.scratch.items()
            for index, text in enumerate(scratch.shape)
        }
        return {name: _function(CardExpression(str(text)), name) for name, text in texts.items()}

    @property
    def launch(self) -> CardFunction:
        """The launches as a function of the axes and the device."""
        device = {"sm_count", "max_shared_bytes"}
        names = tuple(
            CardExpression(" + ".join(name for name in expression.names if name not in device) or "0")
            for place, expression in self._card.expressions().items()
            if place.startswith("launch ")
        )
        return CardFunction(names, self._steps, ("device",))

    def _steps(self, offered: Mapping[str, Any]) -> tuple[Launch | Zero, ...]:
        device: Device = offered["device"]
        known = {**offered, "sm_count": device.sm_count, "max_shared_bytes": device.max_shared_bytes}
        del known["device"]
        return tuple(
            Zero(launch.zero) if launch.zero else self._step(launch, known)
            for launch in self._card.launch
            if CardExpression(str(launch.when)).value(known)
        )

    def _step(self, launch: CardLaunch, known: Mapping[str, Any]) -> Launch:
        grid, block = (
            tuple(CardExpression(str(text)).value(known) for text in _extents_of(extents))
            for extents in (launch.grid, launch.block)
        )
        if any(extent > most for extent, most in zip(grid, LARGEST_GRID, strict=False)):
            raise SpecError(f"'{launch.entry}': a grid of {'x'.join(map(str, grid))} blocks; no device launches that")
        shared = CardExpression(str(launch.shared)).value(known)
        entry = _IN_ENTRY.sub(lambda match: str(CardExpression(match[1]).value(known)), launch.entry)
        return Launch(
            grid,
            block if any(block) else 0,
            shared,
            entry=entry,
            arguments=launch.arguments,
            cooperative=launch.cooperative,
            constants=launch.constants,
            maps=tuple(_tensor_map(tensor, known) for tensor in launch.maps),
        )

    def _refuse_doubled(self, arguments: set[str]) -> None:
        taken = arguments | {axis for workload in self._task.workloads.values() for axis in workload}
        taken |= {*self._task.parameters, *self._task.derived, "device", "sm_count", "max_shared_bytes"}
        doubled = sorted(taken & {*self._card.sizes, *self._card.scratch})
        if doubled:
            raise SpecError(f"'{doubled[0]}' is a name of the task already; a card's own sizes and scratch have others")

    def _refuse_unknown(self) -> None:
        names = {argument.name for argument in self.arguments}
        arrays = {argument.name for argument in self.arguments if isinstance(argument, Array)}
        for launch in self._card.launch:
            for name in launch.arguments:
                if name not in names:
                    raise unknown("argument of the task or the card", name, sorted(names))
            for tensor in launch.maps:
                if self._language != CUDA:
                    raise SpecError(f"'{launch.entry}': tensor maps are for CUDA C++; {self._language} makes its own")
                if tensor.argument not in launch.arguments or tensor.argument not in arrays:
                    raise unknown(f"array that '{launch.entry}' takes", tensor.argument, arrays & {*launch.arguments})
            if launch.zero and launch.zero not in arrays:
                raise unknown("buffer of the task or the card", launch.zero, sorted(arrays))


def _tensor_map(tensor: CardMap, known: Mapping[str, Any]) -> TensorMap:
    lines, *box = (CardExpression(str(text)).value(known) for text in (tensor.lines, *tensor.box))
    return TensorMap(tensor.argument, lines, tensor.tf32, tuple(box))


def _function(expression: CardExpression, name: str) -> CardFunction:
    def extent(offered: Mapping[str, object]) -> int:
        value = expression.value(offered)
        if value < 0 or value > _LARGEST_SCRATCH:
            raise SpecError(f"{name}: '{expression.text}' is {value} here; it is 0 to {_LARGEST_SCRATCH}")
        return value

    return CardFunction((expression,), extent)


def _checked(dtype: str, name: str) -> str:
    if dtype not in _DTYPES:
        raise unknown(f"type of '{name}'", dtype, _DTYPES)
    return np.dtype(dtype).name
