"""Arguments and results of a PyTorch operator, from its schema or from the annotations of its Python function."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from prism_bench.extensions.init.sources.found import FoundOperator

ArgumentKind = Literal["tensor", "float", "int", "bool", "none", "other"]
_KINDS: dict[str, ArgumentKind] = {
    "Tensor": "tensor", "float": "float", "double": "float", "Scalar": "float", "int": "int", "SymInt": "int",
    "bool": "bool",
}  # fmt: skip
_TENSOR = re.compile(r"Tensor(\([^)]*\))?")
_ARGUMENT = re.compile(r"(?P<type>.+?)\s+(?P<name>\w+)\s*(=(?P<default>.*))?$", re.DOTALL)


@dataclass(frozen=True)
class OperatorArgument:
    """One argument: its `type` as written, and whether the operator writes it; a tensor that may be None is `none`."""

    name: str
    type: str
    kind: ArgumentKind
    default: str | None = None
    is_written: bool = False
    is_keyword: bool = False


@dataclass(frozen=True)
class OperatorSignature:
    """What an operator takes, and how many tensors it returns; None where it returns anything else."""

    arguments: tuple[OperatorArgument, ...]
    returned: int | None


def signature_of(operator: FoundOperator) -> OperatorSignature | None:
    """Return the operator's signature; None where neither a schema nor annotations give it."""
    if operator.schema:
        return _of_schema(operator.schema)
    if operator.language == "cpp" or not all(text for _, text in operator.arguments):
        return None
    arguments = (
        OperatorArgument(name, text, _annotated(text), operator.defaults.get(name), name in operator.written,
                         name in operator.keywords)
        for name, text in operator.arguments
    )  # fmt: skip
    return OperatorSignature(tuple(arguments), _returned(operator.returns.replace("torch.", "")))


def _of_schema(schema: str) -> OperatorSignature | None:
    before, arrow, after = schema.rpartition("->")
    inside = before[before.find("(") + 1 : before.rfind(")")] if arrow else ""
    arguments, is_keyword = list[OperatorArgument](), False
    for part in _parts(inside):
        if part == "*":
            is_keyword = True
        elif (match := _ARGUMENT.match(part)) is None:
            return None
        else:
            arguments.append(_argument(match, is_keyword))
    return OperatorSignature(tuple(arguments), _returned(after)) if arrow else None


def _argument(match: re.Match[str], is_keyword: bool) -> OperatorArgument:
    written = match["type"].strip()
    plain = re.sub(r"\([^)]*\)", "", written)
    kind: ArgumentKind = "none" if plain == "Tensor?" else _KINDS.get(plain, "other")
    return OperatorArgument(match["name"], written, kind, match["default"], "!" in written, is_keyword)


def _annotated(annotation: str) -> ArgumentKind:
    plain = annotation.replace("torch.", "").replace("typing.", "").replace(" ", "")
    return "none" if plain in ("Tensor|None", "Optional[Tensor]") else _KINDS.get(plain, "other")


def _returned(text: str) -> int | None:
    """Return how many tensors there are in `Tensor`, `(Tensor, Tensor y)`, `tuple[Tensor, Tensor]`, `()` or `None`."""
    plain = text.strip()
    if plain in ("", "()", "None"):
        return 0
    inside = re.fullmatch(r"(?:[Tt]uple\[(.*)\]|\((.*)\))", plain, re.DOTALL)
    parts = list(_parts((inside[1] or inside[2]) if inside else plain))
    return len(parts) if all(_TENSOR.fullmatch(part.split()[0]) for part in parts) else None


def _parts(text: str) -> Iterator[str]:
    """Yield what commas outside of brackets separate."""
    depth, start = 0, 0
    for place, letter in enumerate(f"{text},"):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            if part := text[start:place].strip():
                yield part
            start = place + 1
