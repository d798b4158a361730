"""Spec skeletons for the kernels and operators that are found in a folder."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.compilation.host_source.syntax import Macro, Tree, macros_of, parse
from prism_bench.errors import UsageError
from prism_bench.extensions.init.sources.cuda import WrittenLaunch, kernels_of, read_launch, written_launches
from prism_bench.extensions.init.sources.found import (
    FoundKernel,
    FoundLaunch,
    FoundOperator,
    FoundParameter,
    Guess,
    Scan,
    Skeleton,
    Unread,
    dtype_of,
)
from prism_bench.extensions.init.sources.torch import OperatorArgument, OperatorSignature, operators_of, signature_of
from prism_bench.extensions.init.sources.triton import scan_python

if TYPE_CHECKING:
    from jinja2 import Environment


# Find the kernels and operators in the source files of a folder.

CUDA = (".cu", ".cuh")
_HOST = (".cpp", ".cc", ".cxx", ".h", ".hpp")
_LARGEST = 4 << 20  # bytes of a file: generated code beyond this is listed and not read
_SKIPPED = {"__pycache__", "build", "node_modules", "site-packages", "venv"}


def scan(place: Path) -> Scan:
    """Return everything found in a file, or in the files below a folder; UsageError if there is neither."""
    if not place.exists():
        raise UsageError(f"{place} does not exist; name a folder of sources, or a file")
    paths = [place] if place.is_file() else sorted(_sources(place))
    reader = _Scanner()
    for path in paths:
        reader.read(path)
    return reader.finished()


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in _SKIPPED for part in parts)
        if not hidden and path.suffix in (*CUDA, *_HOST, ".py") and path.is_file():
            yield path


class _Scanner:
    """Reads file after file; launches find their kernels once all files are read."""

    def __init__(self) -> None:
        self._scan = Scan()
        self._kernels: list[FoundKernel] = []
        self._launches: list[WrittenLaunch] = []
        self._macros: dict[Path, dict[bytes, Macro]] = {}

    def read(self, path: Path) -> None:
        try:
            code = path.read_bytes()
            text = code.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "no UTF-8 text"
            self._scan += Scan(unread=(Unread(path, 1, f"cannot be read: {reason}"),))
            return
        if len(code) > _LARGEST:
            self._scan += Scan(unread=(Unread(path, 1, f"{len(code) >> 20} MiB: too large to be read"),))
        elif path.suffix == ".py":
            self._scan += scan_python(path, text)
        elif path.suffix in CUDA or "TORCH_LIBRARY" in text or "__global__" in text or "<<<" in text:
            self._read_tree(parse(path, code, self._beside(path)))

    def finished(self) -> Scan:
        """Return the scan, with the launches of each kernel."""
        by_name: dict[str, list[FoundKernel]] = {}
        for kernel in self._kernels:
            by_name.setdefault(kernel.name, []).append(kernel)
        unread: list[Unread] = []
        launched: dict[int, list[WrittenLaunch]] = {}
        for written in self._launches:
            known = by_name.get(written.kernel, [])
            own = [one for one in known if one.path == written.tree.path] or known
            if not own:
                reason = f"launches {written.kernel}, which no file here defines"
                unread.append(Unread(written.tree.path, written.line, reason))
            for kernel in own[:1]:
                launched.setdefault(id(kernel), []).append(written)
        kernels = [_with_launches(one, launched.get(id(one), ())) for one in self._kernels]
        unread += [one for kernel in kernels for launch in kernel.launches for one in launch.unread]
        return Scan(tuple(kernels), (), tuple(unread)) + self._scan

    def _read_tree(self, tree: Tree) -> None:
        kernels, heads = kernels_of(tree)
        launches, forms = written_launches(tree)
        operators, definitions = operators_of(tree)
        self._kernels += kernels
        self._launches += launches
        self._scan += Scan((), tuple(operators), (*heads, *forms, *definitions))

    def _beside(self, path: Path) -> dict[bytes, Macro]:
        """Return the macros of the headers in the file's folder: which ones it includes does not matter."""
        if path.parent not in self._macros:
            headers = [one for one in sorted(path.parent.glob("*")) if one.suffix in (".h", ".cuh", ".hpp")]
            texts = [header.read_bytes() for header in headers if header.is_file() and header.stat().st_size < _LARGEST]
            self._macros[path.parent] = {k: v for text in texts for k, v in macros_of(text).items()}
        return self._macros[path.parent]


def _with_launches(kernel: FoundKernel, launches: Iterable[WrittenLaunch]) -> FoundKernel:
    names = ["" if parameter.is_pointer else parameter.name for parameter in kernel.parameters]
    return replace(kernel, launches=tuple(read_launch(launch, names) for launch in launches))


# Spec skeletons for kernels that were found: text for a person to complete, every guess marked.

_CONFIRM = "# guess: confirm"
_WORDS = {"input": "In", "output": "Out", "in_out": "InOut"}
_TAKEN = ("xp", "special", "device", "self")  # what references and launches may ask for
# Small and large workloads by the number of axes: about 64 KiB and 64 MiB of floats.
_SMALL = {1: 16_384, 2: 128, 3: 32}
_LARGE = {1: 16_777_216, 2: 4096, 3: 256}


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
    passed = [parameter for parameter in kernel.parameters if parameter.role.value != "constexpr"]
    arguments = [_argument(one, types) for one in passed]
    missing += [
        f"{one.name} has type {one.type}: a spec passes buffers and numbers"
        for one in passed
        if _dtype(one, types) is None
    ]
    missing += _missing_launch(launch)
    axes = _axes(kernel, values)
    text = (
        environment()
        .get_template("spec.py.jinja")
        .render(
            kernel=kernel,
            entry=entry,
            source=source,
            arguments=arguments,
            launch=_launch_text(launch, kernel),
            outputs=_names(kernel, "output", "in_out"),
            inputs=_names(kernel, "input", "in_out"),
            axes=axes,
            values=values,
            small=_workload(axes, _SMALL),
            large=_workload(axes, _LARGE),
            confirm=_CONFIRM,
            missing=missing,
            words=_imports(kernel, arguments),
        )
    )
    guessed = [f"{argument.text} {argument.note}" for argument in arguments if argument.note]
    return Skeleton(f"{_module_name(kernel.name)}.py", text, not missing, (*missing, "the reference", *guessed))


def _module_name(name: str) -> str:
    """Return the kernel's name as that of a module: `softmaxKernel2` is softmax_kernel2."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _with_python_names(kernel: FoundKernel) -> FoundKernel:
    """Return the kernel with parameters that a Python function can have: `in_` for `in`."""
    odd = [parameter.name for parameter in kernel.parameters if iskeyword(parameter.name) or parameter.name in _TAKEN]
    for name in odd:
        renamed = partial(re.sub, rf"\b{re.escape(name)}\b", f"{name}_")
        kernel = replace(
            kernel,
            parameters=tuple(_renamed_parameter(parameter, renamed) for parameter in kernel.parameters),
            launches=tuple(_renamed_launch(launch, renamed) for launch in kernel.launches),
        )
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
    found = {
        template_parameter.name: template_parameter.default
        for template_parameter in kernel.template_parameters
        if template_parameter.default
    }
    return found | {one.name: text for one, text in zip(kernel.template_parameters, given, strict=False)}


def _entry(kernel: FoundKernel, types: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the entry with its template arguments, and what about them is not known."""
    if not kernel.template_parameters:
        return kernel.qualified_name, []
    given = [
        types.get(template_parameter.name, f"<{template_parameter.name}>")
        for template_parameter in kernel.template_parameters
    ]
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
        return SpecLine(f'{_WORDS[role.value]}("{name}", "{shape}"{more})', f"{_CONFIRM} role and shape")
    if role.value == "size":
        return SpecLine(f'Size("{name}")' if dtype == "int32" else f'Size("{name}", "{dtype}")')
    if dtype is None:
        return SpecLine(f'Scalar("{name}")', f"# {parameter.type}: what a spec cannot pass")
    return SpecLine(f'Scalar("{name}")' if dtype == "float32" else f'Scalar("{name}", "{dtype}")')


def _names(kernel: FoundKernel, *roles: str) -> list[str]:
    return [parameter.name for parameter in kernel.parameters if parameter.role.value in roles]


def _values(kernel: FoundKernel, launch: FoundLaunch | None) -> dict[str, str]:
    """Return the parameters that a workload does not vary: numbers passed by value, and what the launch asks for."""
    numbers = {
        parameter.name: _number(parameter)
        for parameter in kernel.parameters
        if parameter.role.value in ("scalar", "unknown")
    }
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
    shapes = " ".join(parameter.shape.value for parameter in kernel.parameters if parameter.shape)
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
    known = [parameter.name for parameter in kernel.parameters if not parameter.is_pointer] + [
        name for name, _ in read.names
    ]
    written = " ".join([*(read.grid or ()), *(read.block or ()), shared])
    asked = [name for name in dict.fromkeys(known) if re.search(rf"\b{re.escape(name)}\b", written)]
    head = f"lambda {', '.join(asked)}:" if asked else "lambda:"
    if kernel.language == "triton":
        return _triton_launch(read, kernel, asked)
    return f"{head} Launch(grid={_extent_text(read.grid)}, block={_extent_text(read.block)}{more})"


def _triton_launch(launch: FoundLaunch, kernel: FoundKernel, asked: list[str]) -> str:
    """Return the launch of a Triton kernel: it takes its constants by name, options are as written."""
    constants = [parameter.name for parameter in kernel.parameters if parameter.role.value == "constexpr"]
    named = [f'"{name}": {name}' for name in constants]
    named += [
        f'"{name}": {value}'
        for name, _, value in (template_argument.partition("=") for template_argument in launch.template_arguments)
    ]
    more = f", constants={{{', '.join(named)}}}" if named else ""
    words = ", ".join(dict.fromkeys([*asked, *constants]))
    return f"lambda{' ' if words else ''}{words}: Launch(grid={_extent_text(launch.grid)}{more})"


def _extent_text(extents: tuple[str, ...] | None) -> str:
    if extents is None:
        return "1"
    plain = [_plain(extent) for extent in extents]
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
        loader=PackageLoader("prism_bench.extensions.init.sources", "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,
    )


# Spec skeletons for PyTorch operators that were found: kernels whose spec has a callable.

_NUMBERS = {"float": "1.0", "int": "1", "bool": "False"}
_RESERVED = (*_TAKEN, "torch", "stream", "n")  # what a callable may ask for, and the axis of the workloads


@dataclass(frozen=True)
class _Passed:
    """An argument as the call has it: its `name` in the spec, and the `text` in the call."""

    argument: OperatorArgument
    name: str
    text: str


def operator_skeleton(operator: FoundOperator, source: str) -> Skeleton | None:
    """Return the spec of an operator in the file `source`, relative to the root; None if its arguments are unknown.

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
    guesses = [f"shape and type of {tensor.name}" for tensor in tensors] + [
        f"shape and type of {output}" for output in outputs
    ]
    name = operator.name.rpartition("::")[2].replace(".", "_")
    return Skeleton(f"{_module_name(name)}.py", text, not missing, (*missing, "the reference", *guesses))


def _rendered(
    operator: FoundOperator,
    source: str,
    passed: Sequence[_Passed],
    *,
    tensors: Sequence[_Passed],
    outputs: Sequence[str],
    module: str | None,
    missing: Sequence[str],
) -> str:
    numbers = {one.name: _operator_skeleton_number(one.argument) for one in passed if one.argument.kind in _NUMBERS}
    words = {"InOut" if tensor.argument.is_written else "In" for tensor in tensors} | (
        {"Out"} if outputs else set[str]()
    )
    return (
        environment()
        .get_template("operator.py.jinja")
        .render(
            operator=operator,
            source=source,
            module=module,
            missing=missing,
            tensors=tensors,
            outputs=outputs,
            call=f"torch.ops.{operator.name.replace('::', '.')}({', '.join(one.text for one in passed)})",
            asked=["torch", *(tensor.name for tensor in tensors), *numbers],
            numbers=numbers,
            confirm=_CONFIRM,
            results=[*(tensor.name for tensor in tensors if tensor.argument.is_written), *outputs],
            words=sorted({*words, "KernelSpec", "Workload"}),
            small=_SMALL[1],
            large=_LARGE[1],
        )
    )


def _passed(argument: OperatorArgument) -> _Passed | None:
    """Return what the call passes for an argument; None if the operator's default is as good."""
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


def _operator_skeleton_number(argument: OperatorArgument) -> str:
    default = (argument.default or "").strip()
    if argument.kind == "bool":
        return {"true": "True", "True": "True"}.get(default, _NUMBERS["bool"])
    return default if re.fullmatch(r"-?[\d.]+(e-?\d+)?", default) else _NUMBERS[argument.kind]


def _module(operator: FoundOperator, source: str) -> str | None:
    """Return the module that registers the operator, by the path of its file; None if it is no module of Python."""
    words = source.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").split("/")
    right = operator.language == "python" and all(word.isidentifier() and not iskeyword(word) for word in words)
    return ".".join(words) if right else None


def _missing(
    operator: FoundOperator, signature: OperatorSignature, passed: Sequence[_Passed], module: str | None
) -> list[str]:
    missing = [] if module else [f"the import that registers {operator.name}"]
    missing += [
        f"the argument {one.name} has type {one.argument.type}: write what the call gives it"
        for one in passed
        if one.argument.kind == "other"
    ]
    is_written = any(one.argument.is_written for one in passed if one.argument.kind == "tensor")
    if signature.returned is None or (signature.returned == 0 and not is_written):
        missing.append("the outputs: the operator returns no tensors")
    return missing
