"""Spec skeletons for PyTorch operators that were found: kernels whose spec has a callable."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from keyword import iskeyword

from prism_bench.extensions.init.sources.found import FoundOperator, Skeleton
from prism_bench.extensions.init.sources.operator_signature import OperatorArgument, OperatorSignature, signature_of
from prism_bench.extensions.init.sources.skeleton import CONFIRM, LARGE, SMALL, TAKEN, environment, module_name

_NUMBERS = {"float": "1.0", "int": "1", "bool": "False"}
_RESERVED = (*TAKEN, "torch", "stream", "n")  # what a callable may ask for, and the axis of the workloads


@dataclass(frozen=True)
class _Passed:
    """An argument as the call has it: its `name` in the spec, and the `text` in the call."""

    argument: OperatorArgument
    name: str
    text: str


def operator_skeleton(operator: FoundOperator, source: str) -> Skeleton | None:
    """Return the spec of an operator in the file `source`, relative to the root; None where its arguments are unknown.

    It loads in a catalogue where the types of all arguments are known, and the module that registers the operator. The
    reference is always left to a person.
    """
    signature = signature_of(operator)
    if signature is None:
        return None
    passed = [one for argument in signature.arguments if (one := _passed(argument))]
    module, outputs = _module(operator, source), _outputs(signature, passed)
    missing = _missing(operator, signature, passed, module)
    tensors = [one for one in passed if one.argument.kind == "tensor"]
    text = _rendered(operator, source, passed, tensors=tensors, outputs=outputs, module=module, missing=missing)
    guesses = [f"shape and type of {one.name}" for one in tensors] + [f"shape and type of {one}" for one in outputs]
    name = operator.name.rpartition("::")[2].replace(".", "_")
    return Skeleton(f"{module_name(name)}.py", text, not missing, (*missing, "the reference", *guesses))


def _rendered(
    operator: FoundOperator, source: str, passed: Sequence[_Passed], *, tensors: Sequence[_Passed],
    outputs: Sequence[str], module: str | None, missing: Sequence[str],
) -> str:  # fmt: skip
    numbers = {one.name: _number(one.argument) for one in passed if one.argument.kind in _NUMBERS}
    words = {"InOut" if one.argument.is_written else "In" for one in tensors} | ({"Out"} if outputs else set[str]())
    return environment().get_template("operator.py.jinja").render(
        operator=operator, source=source, module=module, missing=missing, tensors=tensors, outputs=outputs,
        call=f"torch.ops.{operator.name.replace('::', '.')}({', '.join(one.text for one in passed)})",
        asked=["torch", *(one.name for one in tensors), *numbers], numbers=numbers, confirm=CONFIRM,
        results=[*(one.name for one in tensors if one.argument.is_written), *outputs],
        words=sorted({*words, "KernelSpec", "Workload"}), small=SMALL[1], large=LARGE[1],
    )  # fmt: skip


def _passed(argument: OperatorArgument) -> _Passed | None:
    """Return what the call passes for an argument; None where the operator's default is as good."""
    taken = iskeyword(argument.name) or argument.name in _RESERVED
    name = f"{argument.name}_" if taken else argument.name
    if argument.default is not None and argument.kind in ("none", "other"):
        return None
    text = "None" if argument.kind in ("none", "other") else name
    # Whatever follows an argument that is left out needs its own name.
    by_name = argument.is_keyword or argument.default is not None
    return _Passed(argument, name, f"{argument.name}={text}" if by_name and not iskeyword(argument.name) else text)


def _outputs(signature: OperatorSignature, passed: Sequence[_Passed]) -> list[str]:
    """Return names for the tensors that the operator returns, which no argument has."""
    count, taken = signature.returned or 0, {one.name for one in passed}
    names = ["out"] if count == 1 else [f"out{number}" for number in range(count)]
    return [f"{name}_" if name in taken else name for name in names]


def _number(argument: OperatorArgument) -> str:
    default = (argument.default or "").strip()
    if argument.kind == "bool":
        return {"true": "True", "True": "True"}.get(default, _NUMBERS["bool"])
    return default if re.fullmatch(r"-?[\d.]+(e-?\d+)?", default) else _NUMBERS[argument.kind]


def _module(operator: FoundOperator, source: str) -> str | None:
    """Return the module that registers the operator, by the path of its file; None where it is no module of Python."""
    words = source.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").split("/")
    right = operator.language == "python" and all(word.isidentifier() and not iskeyword(word) for word in words)
    return ".".join(words) if right else None


def _missing(
    operator: FoundOperator, signature: OperatorSignature, passed: Sequence[_Passed], module: str | None
) -> list[str]:
    missing = [] if module else [f"the import that registers {operator.name}"]
    missing += [f"the argument {one.name} has type {one.argument.type}: write what the call gives it"
                for one in passed if one.argument.kind == "other"]  # fmt: skip
    is_written = any(one.argument.is_written for one in passed if one.argument.kind == "tensor")
    if signature.returned is None or (signature.returned == 0 and not is_written):
        missing.append("the outputs: the operator returns no tensors")
    return missing
