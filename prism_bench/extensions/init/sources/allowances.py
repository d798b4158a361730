"""Tolerances that skeletons propose, by what a kernel does to its numbers. Every one is a guess to confirm."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prism_bench.extensions.init.sources.kernels import Arithmetic, FoundKernel, FoundParameter

_HALF = {"float16": 1e-3, "bfloat16": 8e-3}
_ROUNDED_SUM = {"float16": 2e-2, "bfloat16": 1e-1}  # every addition rounds to half precision, too
_DOUBLE, _SINGLE, _BYTE_FLOAT, _TF32 = 1e-12, 1e-5, 1e-1, 1e-3
_MEANING: Mapping[Arithmetic, str] = {
    "elementwise": "few roundings",
    "functions": "functions or several roundings",
    "reduction": "a sum",
    "normalising": "a sum that scales each element",
    "product": "sums of products",
    "tf32_product": "sums of products in TF32",
    "half_product": "sums in half precision",
    "angle": "a function of an angle, which is off by a share of its size",
}
_ROUNDED = "absolute(1, share=1 / 16)"


@dataclass(frozen=True)
class ProposedTolerance:
    """Python text of a tolerance with the reason, and the names that it imports from prism_bench."""

    text: str = ""
    reason: str = ""
    imports: tuple[str, ...] = ()


def tolerance_for(kernel: FoundKernel, dtypes: Mapping[str, str | None]) -> ProposedTolerance:
    """Return the tolerance for what the kernel does; an empty text keeps the default, a few units in the last place.

    `dtypes` are the types of the buffers by name. Integers that hold rounded floats are off by 1 near a cut.
    """
    outputs = [parameter for parameter in kernel.parameters if parameter.role.value in ("output", "in_out")]
    of_floats, reason = _of_floats(kernel, dtypes, outputs), "floats rounded to integers"
    if not any(output.is_rounded for output in outputs):
        return of_floats
    if all(output.is_rounded for output in outputs):
        return ProposedTolerance(_ROUNDED, reason, ("absolute",))
    default = of_floats.text or "elementwise()"
    text = ", ".join(f'"{output.name}": {_ROUNDED if output.is_rounded else default}' for output in outputs)
    imports = {"absolute", *(of_floats.imports or ["elementwise"])}
    return ProposedTolerance(f"{{{text}}}", f"{reason}; {of_floats.reason}".removesuffix("; "), tuple(imports))


def _of_floats(
    kernel: FoundKernel, dtypes: Mapping[str, str | None], outputs: Sequence[FoundParameter]
) -> ProposedTolerance:
    """Return the tolerance of the outputs that are floats."""
    floats = [dtype for output in outputs if (dtype := dtypes.get(output.name) or "").startswith(("float", "bfloat"))]
    if kernel.arithmetic is None or kernel.arithmetic.value == "elementwise" or not floats:
        return ProposedTolerance()
    kind, reason = kernel.arithmetic.value, f"{_MEANING[kernel.arithmetic.value]}: {kernel.arithmetic.reason}"
    limit = max(_limit(dtype, kind) for dtype in floats)
    if kind in ("functions", "angle"):
        text = "elementwise()" if limit == _DOUBLE else f"elementwise(ulps=64, floor={limit:g})"
        if kind == "angle" and limit == _SINGLE:
            text += _loosened_for_angle(kernel)
        return ProposedTolerance(text, reason, ("elementwise",))
    if limit != _SINGLE:
        return ProposedTolerance(f"normwise({limit:g})", reason, ("normwise",))
    if kind == "normalising":
        return ProposedTolerance("normalising()", reason, ("normalising",))
    inputs = [parameter for parameter in kernel.parameters if parameter.role.value == "input" and parameter.shape]
    magnitude = _magnitude(outputs, inputs, kind)
    depth = kernel.depth or _summed(outputs, inputs)
    if magnitude is None and any(_axes(output) in [_axes(array) for array in inputs] for output in outputs):
        return ProposedTolerance("normalising()", reason, ("normalising",))
    if magnitude is None or not depth:
        return ProposedTolerance(f"normwise({limit:g})", reason, ("normwise",))
    asked = _names_of(depth)
    names = ", ".join([*dict.fromkeys(name for name in magnitude[0]), "xp"])
    size = f"magnitude=lambda {names}: {magnitude[1]}"
    head = f"lambda {asked}:" if asked else "lambda:"
    if kind == "product":
        return ProposedTolerance(f"product({size}, depth={head} {depth})", reason, ("product",))
    terms = f"terms={head} 4 * ({depth}) ** 0.5 * 2.0**-24"
    return ProposedTolerance(f"reduction({size}, {terms})", reason, ("reduction",))


def _loosened_for_angle(kernel: FoundKernel) -> str:
    """Return the allowance for an angle of a few roundings: a sine or cosine is off by at most what its angle is."""
    inputs = [p.name for p in kernel.parameters if p.role.value == "input" and (p.dtype or "").startswith("float")]
    peak = " * ".join(f"xp.max(xp.abs({name}))" for name in inputs) or "xp.ones(1)"
    return (
        f".loosened(magnitude=lambda {', '.join([*inputs, 'xp'])}: {peak}, "
        f"terms=lambda {_names_of(kernel.depth)}: 4 * ({kernel.depth}) * 2.0**-24)"
    )


def _names_of(expression: str) -> str:
    return ", ".join(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", expression)))


def _limit(dtype: str, kind: Arithmetic) -> float:
    if dtype.startswith("float8"):
        return _BYTE_FLOAT
    of_half = _ROUNDED_SUM if kind == "half_product" else _HALF
    if kind == "tf32_product" and dtype == "float32":
        return _TF32
    return of_half.get(dtype, _DOUBLE if dtype == "float64" else _SINGLE)


def _axes(parameter: FoundParameter) -> list[str]:
    return parameter.shape.value.split() if parameter.shape else []


def _summed(outputs: Sequence[FoundParameter], inputs: Sequence[FoundParameter]) -> str:
    """Return the product of the axes that the first input has and no output, empty without one."""
    kept = {axis for output in outputs for axis in _axes(output)}
    return " * ".join(axis for axis in (_axes(inputs[0]) if inputs else ()) if axis not in kept)


def _magnitude(
    outputs: Sequence[FoundParameter], inputs: Sequence[FoundParameter], kind: Arithmetic
) -> tuple[list[str], str] | None:
    """Return the inputs and the expression of the sum of absolute terms; None unless the shapes show it."""
    if len(outputs) != 1 or not inputs:
        return None
    result, (first, *others) = _axes(outputs[0]), inputs
    axes, x = _axes(first), first.name
    if kind == "product" and len(others) == 1:
        return _product(result, (x, axes), (others[0].name, _axes(others[0])))
    if kind != "reduction" or any(_axes(other) != axes for other in others):
        return None
    terms = " * ".join(f"xp.abs({parameter.name})" for parameter in inputs)
    terms = f"({terms})" if others else terms
    names = [parameter.name for parameter in inputs]
    if result == ["1"]:
        return names, f"{terms}.sum()"
    kept = [axis for axis in axes if axis in result]
    if kept == result and len(axes) == len(result) + 1:
        place = next(place for place, axis in enumerate(axes) if axis not in result)
        return names, f"{terms}.sum(axis={place})"
    return None


def _product(
    result: list[str], left: tuple[str, list[str]], right: tuple[str, list[str]]
) -> tuple[list[str], str] | None:
    """Return |A| @ |B| for shapes that make a matrix product, a matrix times a vector or a dot product."""
    (a, of_a), (b, of_b) = left, right
    if result == ["1"] and of_a == of_b:
        return [a, b], f"(xp.abs({a}) * xp.abs({b})).sum()"
    if len(of_a) == 2 and len(of_b) == 1 and result == of_a[:1] and of_a[1:] == of_b:
        return [a, b], f"xp.abs({a}) @ xp.abs({b})"
    if len(of_a) != 2 or len(of_b) != 2 or len(result) != 2:
        return None
    for text_a, (rows, inner) in ((f"xp.abs({a})", of_a), (f"xp.abs({a}).T", of_a[::-1])):
        for text_b, (depth, cols) in ((f"xp.abs({b})", of_b), (f"xp.abs({b}).T", of_b[::-1])):
            if inner == depth and [rows, cols] == result:
                return [a, b], f"{text_a} @ {text_b}"
    return None
