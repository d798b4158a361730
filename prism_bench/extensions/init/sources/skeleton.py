"""Spec skeletons for kernels that were found: text for a person to complete, every guess marked."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from keyword import iskeyword
from typing import TYPE_CHECKING

from prism_bench.extensions.init.sources.c_types import dtype_of
from prism_bench.extensions.init.sources.found import FoundKernel, FoundLaunch, FoundParameter, Guess, Skeleton

if TYPE_CHECKING:
    from jinja2 import Environment

CONFIRM = "# guess: confirm"
_WORDS = {"input": "In", "output": "Out", "in_out": "InOut"}
TAKEN = ("xp", "special", "device", "self")  # what references and launches may ask for
# Small and large workloads by the number of axes: about 64 KiB and 64 MiB of floats.
SMALL = {1: 16_384, 2: 128, 3: 32}
LARGE = {1: 16_777_216, 2: 4096, 3: 256}


@dataclass(frozen=True)
class SpecLine:
    """A line of a spec's list: the text, and what is to be confirmed about it."""

    text: str
    note: str = ""


def skeleton(kernel: FoundKernel, source: str) -> Skeleton:
    """Return the spec of a kernel; `source` is its file, relative to the spec's.

    It loads in a catalogue where the launch and the types of all parameters are known. The reference is always left to
    a person: a spec that nobody confirmed verifies nothing.
    """
    kernel = _with_python_names(kernel)
    launch, types = kernel.launch, _template_types(kernel)
    entry, missing = _entry(kernel, types)
    values = _values(kernel, launch)
    passed = [one for one in kernel.parameters if one.role.value != "constexpr"]
    arguments = [_argument(one, types) for one in passed]
    missing += [f"{one.name} has type {one.type}: a spec passes buffers and numbers" for one in passed
                if _dtype(one, types) is None]  # fmt: skip
    missing += _missing_launch(launch)
    axes = _axes(kernel, values)
    text = environment().get_template("spec.py.jinja").render(
        kernel=kernel, entry=entry, source=source, arguments=arguments, launch=_launch_text(launch, kernel),
        outputs=_names(kernel, "output", "in_out"), inputs=_names(kernel, "input", "in_out"), axes=axes, values=values,
        small=_workload(axes, SMALL), large=_workload(axes, LARGE), confirm=CONFIRM, missing=missing,
        words=_imports(kernel, arguments),
    )  # fmt: skip
    guessed = [f"{one.text} {one.note}" for one in arguments if one.note]
    return Skeleton(f"{module_name(kernel.name)}.py", text, not missing, (*missing, "the reference", *guessed))


def module_name(name: str) -> str:
    """Return the kernel's name as that of a module: `softmaxKernel2` is softmax_kernel2."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _with_python_names(kernel: FoundKernel) -> FoundKernel:
    """Return the kernel with parameters that a Python function can have: `in_` for `in`."""
    odd = [one.name for one in kernel.parameters if iskeyword(one.name) or one.name in TAKEN]
    for name in odd:
        renamed = partial(re.sub, rf"\b{re.escape(name)}\b", f"{name}_")
        kernel = replace(
            kernel, parameters=tuple(_renamed_parameter(one, renamed) for one in kernel.parameters),
            launches=tuple(_renamed_launch(one, renamed) for one in kernel.launches),
        )  # fmt: skip
    return kernel


def _renamed_parameter(parameter: FoundParameter, renamed: Callable[[str], str]) -> FoundParameter:
    shape = parameter.shape and Guess(renamed(parameter.shape.value), parameter.shape.reason)
    return replace(parameter, name=renamed(parameter.name), shape=shape)


def _renamed_launch(launch: FoundLaunch, renamed: Callable[[str], str]) -> FoundLaunch:
    grid, block = (one and tuple(map(renamed, one)) for one in (launch.grid, launch.block))
    return replace(launch, grid=grid, block=block, shared=launch.shared and renamed(launch.shared))


def _template_types(kernel: FoundKernel) -> dict[str, str]:
    """Return what the launch, or a default, gives for each template parameter."""
    given = kernel.launch.template_arguments if kernel.launch else ()
    found = {one.name: one.default for one in kernel.template_parameters if one.default}
    return found | {one.name: text for one, text in zip(kernel.template_parameters, given, strict=False)}


def _entry(kernel: FoundKernel, types: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the entry with its template arguments, and what about them is not known."""
    if not kernel.template_parameters:
        return kernel.qualified_name, []
    given = [types.get(one.name, f"<{one.name}>") for one in kernel.template_parameters]
    unknown = [one.name for one, text in zip(kernel.template_parameters, given, strict=True) if not _is_value(text)]
    missing = [f"template argument {', '.join(unknown)}: no launch here gives a value for it"] if unknown else []
    return f"{kernel.qualified_name}<{', '.join(given)}>", missing


def _is_value(text: str) -> bool:
    """Return whether a template argument means the same in a spec: a type of numbers, a number, true or false."""
    return dtype_of(text) is not None or bool(re.fullmatch(r"-?\d+[uUlL]*|true|false", text))


def _dtype(parameter: FoundParameter, types: Mapping[str, str]) -> str | None:
    if parameter.type.count("*") > 1 or "&" in parameter.type:
        return None
    if parameter.dtype:
        return parameter.dtype
    words = re.findall(r"\w+", parameter.type)
    return next((dtype_of(types[word]) for word in words if word in types), None)


def _argument(parameter: FoundParameter, types: Mapping[str, str]) -> SpecLine:
    dtype, name, role = _dtype(parameter, types), parameter.name, parameter.role
    if role.value in _WORDS and dtype is not None:
        shape = parameter.shape.value if parameter.shape else "1"
        more = "" if dtype == "float32" else f', dtype="{dtype}"'
        return SpecLine(f'{_WORDS[role.value]}("{name}", "{shape}"{more})', f"{CONFIRM} role and shape")
    if role.value == "size":
        return SpecLine(f'Size("{name}")' if dtype == "int32" else f'Size("{name}", "{dtype}")')
    if dtype is None:
        return SpecLine(f'Scalar("{name}")', f"# {parameter.type}: what a spec cannot pass")
    return SpecLine(f'Scalar("{name}")' if dtype == "float32" else f'Scalar("{name}", "{dtype}")')


def _names(kernel: FoundKernel, *roles: str) -> list[str]:
    return [one.name for one in kernel.parameters if one.role.value in roles]


def _values(kernel: FoundKernel, launch: FoundLaunch | None) -> dict[str, str]:
    """Return the parameters that a workload does not vary: numbers passed by value, and what the launch asks for."""
    numbers = {one.name: _number(one) for one in kernel.parameters if one.role.value in ("scalar", "unknown")}
    return numbers | {name: str(guess.value) for name, guess in (launch.names if launch else ())}


def _number(parameter: FoundParameter) -> str:
    default = (parameter.default or "").rstrip("fFuUlL")
    if parameter.dtype == "bool":
        return "False" if parameter.default == "false" else "True"
    try:
        return str(float(default))
    except ValueError:
        return "1.0"


def _axes(kernel: FoundKernel, values: Mapping[str, str]) -> list[str]:
    """Return what workloads give: whole numbers that the kernel takes, then other names in shapes."""
    shapes = " ".join(one.shape.value for one in kernel.parameters if one.shape)
    words = [*_names(kernel, "size"), *(word for word in shapes.split() if not word.isdigit())]
    return [word for word in dict.fromkeys(words) if word not in values] or ["n"]


def _workload(axes: list[str], sizes: Mapping[int, int]) -> str:
    return ", ".join(f"{axis}={sizes.get(len(axes), 16)}" for axis in axes)


def _missing_launch(launch: FoundLaunch | None) -> list[str]:
    if launch is None:
        return ["the launch: no file here launches it"]
    return [f"the launch: {one}" for one in launch.unread]


def _launch_text(launch: FoundLaunch | None, kernel: FoundKernel) -> str:
    """Return the function of the axes that gives the Launch."""
    read = launch or FoundLaunch(kernel.path, kernel.line, None, None, None)
    shared = _plain(read.shared or "0")
    more = f", shared={shared}" if shared != "0" or kernel.dynamic_shared else ""
    known = [one.name for one in kernel.parameters if not one.is_pointer] + [name for name, _ in read.names]
    written = " ".join([*(read.grid or ()), *(read.block or ()), shared])
    asked = [name for name in dict.fromkeys(known) if re.search(rf"\b{re.escape(name)}\b", written)]
    head = f"lambda {', '.join(asked)}:" if asked else "lambda:"
    if kernel.language == "triton":
        return _triton_launch(read, kernel, asked)
    return f"{head} Launch(grid={_extent_text(read.grid)}, block={_extent_text(read.block)}{more})"


def _triton_launch(launch: FoundLaunch, kernel: FoundKernel, asked: list[str]) -> str:
    """Return the launch of a Triton kernel: it takes its constants by name, options are as written."""
    constants = [one.name for one in kernel.parameters if one.role.value == "constexpr"]
    named = [f'"{name}": {name}' for name in constants]
    named += [f'"{name}": {value}' for name, _, value in (one.partition("=") for one in launch.template_arguments)]
    more = f", constants={{{', '.join(named)}}}" if named else ""
    words = ", ".join(dict.fromkeys([*asked, *constants]))
    return f"lambda{' ' if words else ''}{words}: Launch(grid={_extent_text(launch.grid)}{more})"


def _extent_text(extents: tuple[str, ...] | None) -> str:
    if extents is None:
        return "1"
    plain = [_plain(one) for one in extents]
    return plain[0] if len(plain) == 1 else f"({', '.join(plain)})"


def _plain(expression: str) -> str:
    """Return an expression without the brackets around all of it."""
    inside = expression[1:-1]
    whole = expression.startswith("(") and expression.endswith(")")
    depth, lowest = 0, 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        lowest = min(lowest, depth)
    return inside if whole and lowest == 0 else expression


def _imports(kernel: FoundKernel, arguments: list[SpecLine]) -> list[str]:
    used = {line.text.partition("(")[0] for line in arguments}
    return sorted({*used, "KernelSpec", "Launch", "Workload"})


@cache
def environment() -> "Environment":
    """Return the templates of specs."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("prism_bench.extensions.init.sources", "templates"), trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, undefined=StrictUndefined, autoescape=False,
    )  # fmt: skip
