"""Spec skeletons for the kernels and operators in a folder of sources."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.compilation.host_source.syntax import Macro, function_name, macros_of, nodes_of, parse
from prism_bench.errors import UsageError
from prism_bench.extensions.init.sources.allowances import tolerance_for
from prism_bench.extensions.init.sources.body import DeviceFunction
from prism_bench.extensions.init.sources.cuda import WrittenKernel, kernels_of, with_body
from prism_bench.extensions.init.sources.expressions import HostNames, number_of
from prism_bench.extensions.init.sources.kernels import (
    NOT_IN_SPECS,
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
from prism_bench.extensions.init.sources.launches import WrittenLaunch, read_launch, written_launches
from prism_bench.extensions.init.sources.symbols import Macro as MacroText
from prism_bench.extensions.init.sources.symbols import Symbols, macros_in, symbols_of, with_expanded_macros
from prism_bench.extensions.init.sources.torch import OperatorArgument, operators_of, signature_of
from prism_bench.extensions.init.sources.triton import python_file, scan_files
from prism_bench.extensions.init.sources.triton_launch import HostFile

if TYPE_CHECKING:
    from jinja2 import Environment


# Find the kernels and operators in the source files of a folder.

_CUDA = (".cu", ".cuh")
_HEADERS = (".h", ".hpp")
_HOST = (".cpp", ".cc", ".cxx", *_HEADERS)
_LARGEST = 4 << 20  # bytes of a file: generated code beyond this is listed and not read
_SKIPPED = {"__pycache__", "build", "node_modules", "site-packages", "venv"}


def scan(place: Path) -> Scan:
    """Return the kernels and operators of a file, or of the files below a folder; UsageError if `place` is missing."""
    if not place.exists():
        raise UsageError(f"{place} does not exist; name a folder of sources, or a file")
    scanner = _Scanner()
    for path in [place] if place.is_file() else sorted(place.rglob("*")):
        is_skipped = any(part.startswith(".") or part in _SKIPPED for part in path.relative_to(place).parts)
        if path == place or not is_skipped and path.suffix in (*_CUDA, *_HOST, ".py") and path.is_file():
            scanner.read(path)
    return scanner.finished()


class _Scanner:
    """Reader of source files; it assigns launches to kernels once all files are read."""

    def __init__(self) -> None:
        self._scan = Scan()
        self._kernels: list[WrittenKernel] = []
        self._launches: list[WrittenLaunch] = []
        self._python: list[HostFile] = []
        self._functions: dict[str, DeviceFunction] = {}
        self._symbols = Symbols()
        self._macros: dict[Path, tuple[dict[bytes, Macro], dict[str, MacroText]]] = {}

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
            file = python_file(path, text)
            if isinstance(file, Unread):
                self._scan += Scan(unread=(file,))
            else:
                self._python.append(file)
        elif path.suffix in (*_CUDA, *_HEADERS) or "TORCH_LIBRARY" in text or "__global__" in text or "<<<" in text:
            try:
                self._read_cuda(path, text)
            except RecursionError:
                self._scan += Scan(unread=(Unread(path, 1, "brackets are nested too deeply to be read"),))

    def _read_cuda(self, path: Path, text: str) -> None:
        header_macros, header_texts = self._header_macros(path.parent)
        macros = macros_in(text)
        expanded = with_expanded_macros(text, {**header_texts, **macros})
        tree = parse(path, expanded.encode(), header_macros)
        symbols = symbols_of(tree, {**header_texts, **macros})
        kernels, unread_kernels, functions = kernels_of(tree, symbols)
        launches, unread_launches = written_launches(tree, symbols)
        operators, unread_operators = operators_of(tree)
        self._kernels += kernels
        self._launches += launches
        self._functions = {**functions, **self._functions}
        self._symbols = self._symbols.with_others(symbols)
        self._scan += Scan((), tuple(operators), (*unread_kernels, *unread_launches, *unread_operators))

    def finished(self) -> Scan:
        """Return the scan, with the launches of each kernel and what its body does."""
        by_name: dict[str, list[WrittenKernel]] = {}
        for kernel in self._kernels:
            by_name.setdefault(kernel.kernel.name, []).append(kernel)
        unread: list[Unread] = []
        launched: dict[int, list[WrittenLaunch]] = {}
        for written in self._launches:
            candidates = by_name.get(written.kernel, [])
            if candidates:
                kernel = max(candidates, key=lambda kernel: _nearness(kernel.tree.path, written.tree.path))
                launched.setdefault(id(kernel), []).append(written)
            elif not _is_parameter(written):
                reason = f"launches {written.kernel}, which no file here defines"
                unread.append(Unread(written.tree.path, written.line, reason))
        kernels: list[FoundKernel] = []
        for kernel in self._kernels:
            kernels.append(self._finished(kernel, launched.get(id(kernel), [])))
            unread += [part for launch in kernels[-1].launches for part in launch.unread]
        return Scan(tuple(kernels), (), tuple(unread)) + self._scan + scan_files(self._python)

    def _finished(self, written: WrittenKernel, launches: list[WrittenLaunch]) -> FoundKernel:
        """Return a kernel with its launches, and with the roles, shapes and arithmetic that its body shows."""
        kernel = written.kernel
        by_kernels = [name for launch in launches if (name := _kernel_around(launch))]
        if launches and len(by_kernels) == len(launches):
            return replace(kernel, helper_of=by_kernels[0])
        host = [launch for launch in launches if not _kernel_around(launch)]
        parameters = [
            ("" if parameter.is_pointer else parameter.name, parameter.type) for parameter in kernel.parameters
        ]
        template = kernel.template_parameters
        read = [read_launch(launch, parameters, template, self._symbols, self._fields(kernel)) for launch in host]
        kernel = replace(kernel, launches=tuple(read))
        arguments = kernel.launch.template_arguments if kernel.launch else ()
        defaults = {parameter.name: parameter.default for parameter in template if parameter.default}
        constants = defaults | {p.name: text for p, text in zip(template, arguments, strict=False) if text}
        names = HostNames(written.symbols.with_others(self._symbols))
        constants = {name: names.named(text) if text in names.symbols.enumerators else text
                     for name, text in constants.items()}  # fmt: skip
        written.kernel = kernel
        return with_body(written, self._symbols, self._functions, constants)

    def _fields(self, kernel: FoundKernel) -> dict[int, list[str]]:
        """Return the names of the fields of structures that the kernel takes, by their places."""
        types = [[word for word in p.type.split() if word != "const"][-1:] for p in kernel.parameters]
        known = [self._symbols.structures.get("".join(words)) for words in types]
        return {place: [name for name, _ in made.fields] for place, made in enumerate(known) if made}

    def _header_macros(self, folder: Path) -> tuple[dict[bytes, Macro], dict[str, MacroText]]:
        """Return the macros of all headers in a folder, whether a source includes them or not."""
        if folder not in self._macros:
            headers = [path for path in sorted(folder.glob("*")) if path.suffix in (".h", ".cuh", ".hpp")]
            texts = [header.read_bytes() for header in headers if header.is_file() and header.stat().st_size < _LARGEST]
            specifiers = {name: macro for text in texts for name, macro in macros_of(text).items()}
            bodies = [macros_in(text.decode("utf-8", "replace")) for text in texts]
            self._macros[folder] = specifiers, {name: macro for macros in bodies for name, macro in macros.items()}
        return self._macros[folder]


def _nearness(path: Path, other: Path) -> int:
    """Return how many folders two files share, and more for the same file."""
    shared = next((n for n, (a, b) in enumerate(zip(path.parts, other.parts, strict=False)) if a != b), None)
    return len(path.parts) + 1 if shared is None else shared


def _kernel_around(launch: WrittenLaunch) -> str:
    """Return the name of the kernel that launches from the device, empty for launches from the host."""
    function = launch.enclosing
    is_kernel = function is not None and b"__global__" in launch.tree.specifiers(function)
    return function_name(function, launch.tree) or "" if is_kernel else ""


def _is_parameter(launch: WrittenLaunch) -> bool:
    """Return whether what is launched is a parameter of the function around the launch."""
    listed = next(nodes_of(launch.enclosing, "parameter_list"), None) if launch.enclosing is not None else None
    return listed is not None and re.search(rf"\b{re.escape(launch.kernel)}\b", launch.tree.text(listed)) is not None


# Spec skeletons for kernels: text for a person to complete, every guess marked.

_CONFIRM = "# guess: confirm"
_BUFFERS = {"input": "In", "output": "Out", "in_out": "InOut"}
# Small and large workloads by the number of axes: about 64 KiB and 64 MiB of floats. Axes differ, so that no reference
# passes that takes rows for columns; all are powers of two, so that tiles divide them.
_SMALL = {1: (16_384,), 2: (128, 256), 3: (64, 128, 32)}
_LARGE = {1: (16_777_216,), 2: (4096, 2048), 3: (256, 128, 512)}
_LARGE_PRODUCT = (2048, 1024, 4096)  # of matrices: the work grows with all three
_OTHER = (32, 128)  # each of more axes
_FEW = {
    **dict.fromkeys(("b", "batch", "batch_size"), 2), **dict.fromkeys(("nh", "num_heads", "heads", "n_heads"), 4),
    **dict.fromkeys(("r", "ks", "ksize", "kernel_size", "kh", "kw", "filter_size"), 3),
    **dict.fromkeys(("stride", "stride_h", "stride_w", "pad", "padding", "pad_h", "pad_w", "dilation", "groups"), 1),
}  # fmt: skip
_SINGLE = re.compile(
    r"(?i)(?:\w*(?:offset|start|begin|pad|padding|shift|base)|axis|dim|seed|flag|mode|rank|iter|t|it|step)$"
)
_MOST_ELEMENTS = (1 << 16, 1 << 27)  # of a buffer, in a small workload and in a large one
_MOST_TERMS = (1 << 22, 1 << 40)  # that sums of an output have in all
_WORDS = ("min", "max", "int", "bool", "abs")  # functions in expressions of a launch
_METHODS = ("bit_length", "sum", "loosened")  # of expressions in launches and tolerances


@dataclass(frozen=True)
class _SpecLine:
    """A line of a spec's list: the text, and a note with what to confirm."""

    text: str
    note: str = ""


def skeleton(kernel: FoundKernel, source: str) -> Skeleton:
    """Return the spec of a kernel; `source` is its file, relative to the spec's.

    It loads in a catalogue if the launch, the types of all parameters and an output are known. A person always writes
    or confirms the reference: an unconfirmed spec verifies nothing.
    """
    kernel = _with_python_names(kernel)
    launch, types = kernel.launch, _template_types(kernel)
    entry, entry_note, missing = _entry(kernel, types)
    values = _values(kernel, launch)
    passed = [parameter for parameter in kernel.parameters if parameter.role.value != "constexpr"]
    arguments = [_argument(parameter, types) for parameter in passed]
    missing = _missing(kernel, passed, types) + missing
    axes = _axes(kernel, values)
    tolerance = tolerance_for(kernel, {parameter.name: _dtype(parameter, types) for parameter in passed})
    proposed = ", ".join(expression for _, expression in kernel.proposed)
    inputs, numbers = _names(kernel, "input", "in_out", "struct"), _names(kernel, "size", "scalar")
    asked = [*inputs, *(name for name in numbers if name in values or re.search(rf"\b{re.escape(name)}\b", proposed))]
    asked += ["special"] if re.search(r"\bspecial\.", proposed) else []
    fills = ("integers",) if any("fill=integers" in line.text for line in arguments) else ()
    classes = {*fills, *(line.text.partition("(")[0] for line in arguments), "KernelSpec", "Launch", "Workload"}
    text = (
        _environment()
        .get_template("spec.py.jinja")
        .render(
            kernel=kernel,
            entry=entry,
            entry_note=entry_note,
            source=source,
            arguments=arguments,
            launch=_launch_text(launch, kernel),
            outputs=_names(kernel, "output", "in_out"),
            asked=asked,
            proposed=proposed,
            tolerance=_SpecLine(tolerance.text, f"{_CONFIRM} ({tolerance.reason})"),
            values=values,
            small=_workload(kernel, axes, values, is_large=False),
            large=_workload(kernel, axes, values, is_large=True),
            derived=_lambdas(_derived(kernel)),
            confirm=_CONFIRM,
            missing=missing,
            imports=sorted({*classes, *tolerance.imports, *_more_imports(kernel)}),
        )
    )
    guessed = [f"{argument.text} {argument.note}" for argument in arguments if argument.note]
    guessed += [f'entry="{entry}" {entry_note}'] if entry_note else []
    guessed += [f"tolerance={tolerance.text} {_CONFIRM}"] if tolerance.text else []
    reference = "confirm the reference" if proposed else "the reference"
    return _made(f"{_module_name(kernel.name)}.py", text, missing, (reference, *guessed))


def _more_imports(kernel: FoundKernel) -> list[str]:
    """Return the names of prism_bench that a tuning space and a zeroed buffer ask for."""
    zero = ["Zero"] if kernel.launch and kernel.launch.zeroed else []
    rule = ["Rule"] if kernel.tuned_together else []
    return [*zero, *rule, *(["Tune"] if kernel.tune else [])]


def _missing(kernel: FoundKernel, passed: Sequence[FoundParameter], types: Mapping[str, str]) -> list[str]:
    """Return the reasons for which the skeleton is a draft."""
    launch = kernel.launch
    missing = ["the launch: no file here launches it"] if launch is None else []
    missing += kernel.missing
    missing += [
        f"{kernel.path}:{kernel.line}: {parameter.name} has type {parameter.type}: "
        f"{parameter.role.reason if parameter.role.value == 'unknown' else 'a spec passes buffers and numbers'}"
        for parameter in passed
        if _dtype(parameter, types) is None and parameter.role.value != "struct"
    ]
    if launch is not None:
        missing += [f"the launch: {unread}" for unread in launch.unread]
    if not _names(kernel, "output", "in_out"):
        missing.append(f"{kernel.path}:{kernel.line}: no output: the kernel writes no buffer that is a parameter")
    return missing


def _made(file_name: str, text: str, missing: Sequence[str], rest: Sequence[str]) -> Skeleton:
    """Return the skeleton; a draft if parts are missing, or if a text of the source would become code.

    A catalogue runs its specs. A name, type or path with quotes or line ends, which a stranger may have chosen to that
    end, must not add a statement to one.
    """
    odd = () if _is_plain(text) else ("a name or type in the source that Python cannot have: write the spec yourself",)
    reasons = (*missing, *odd)
    return Skeleton(file_name, text, not reasons, (*reasons, *rest))


def _is_plain(text: str) -> bool:
    """Return whether a spec's text has the statements of the template alone, and calls only what it imports."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    kinds = [type(statement) for statement in module.body]
    if kinds[:2] != [ast.Expr, ast.ImportFrom] or set(kinds[2:-1]) != {ast.FunctionDef} or kinds[-1] is not ast.Assign:
        return False
    (imported,) = (statement for statement in module.body if isinstance(statement, ast.ImportFrom))
    known = {*(alias.name for alias in imported.names), "NotImplementedError", *_WORDS, "xp", "special"}
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and called.attr in _METHODS:
                continue  # of an expression whose parts are walked, too
            while isinstance(called, ast.Attribute):
                called = called.value
            is_known = isinstance(called, ast.Name) and called.id in known
            if not is_known and not ast.unparse(node.func).startswith("torch.ops."):
                return False
        elif isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            return False
    return True


def _module_name(name: str) -> str:
    """Return the kernel's name as that of a module: `softmaxKernel2` is softmax_kernel2."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _with_python_names(kernel: FoundKernel) -> FoundKernel:
    """Return the kernel with parameters that a Python function can have: `in_` for `in`."""
    odd = [
        parameter.name for parameter in kernel.parameters if iskeyword(parameter.name) or parameter.name in NOT_IN_SPECS
    ]
    for name in odd:
        renamed = partial(re.sub, rf"\b{re.escape(name)}\b", f"{name}_")
        parameters = [
            replace(
                parameter,
                name=renamed(parameter.name),
                shape=parameter.shape and Guess(renamed(parameter.shape.value), parameter.shape.reason),
            )
            for parameter in kernel.parameters
        ]
        launches = [
            replace(
                launch,
                grid=launch.grid and tuple(map(renamed, launch.grid)),
                block=launch.block and tuple(map(renamed, launch.block)),
                shared=launch.shared and renamed(launch.shared),
                passed=tuple((renamed(parameter), guess) for parameter, guess in launch.passed),
                derived=tuple((renamed(parameter), renamed(text)) for parameter, text in launch.derived),
            )
            for launch in kernel.launches
        ]
        kernel = replace(
            kernel,
            parameters=tuple(parameters),
            launches=tuple(launches),
            depth=renamed(kernel.depth),
            derived=tuple((axis, renamed(text)) for axis, text in kernel.derived),
            proposed=() if name in NOT_IN_SPECS else tuple((renamed(n), renamed(text)) for n, text in kernel.proposed),
        )
    return kernel


def _template_types(kernel: FoundKernel) -> dict[str, str]:
    """Return the argument of each template parameter, from the launch or from a default; a type without is `float`."""
    arguments = kernel.launch.template_arguments if kernel.launch else ()
    types = {parameter.name: "float" for parameter in kernel.template_parameters if parameter.kind == "typename"}
    types |= {parameter.name: parameter.default for parameter in kernel.template_parameters if parameter.default}
    pairs = zip(kernel.template_parameters, arguments, strict=False)
    return types | {parameter.name: text for parameter, text in pairs if _is_argument(text)}


def _is_argument(text: str) -> bool:
    """Return whether a template argument means the same in a spec as in the source."""
    return bool(text) and not text.startswith("<")


def _entry(kernel: FoundKernel, types: Mapping[str, str]) -> tuple[str, str, list[str]]:
    """Return the entry with its template arguments, a note on guessed types, and a point to do for unknown values."""
    if not kernel.template_parameters:
        return kernel.qualified_name, "", []
    arguments = {
        parameter.name: types.get(parameter.name, f"<{parameter.name}>") for parameter in kernel.template_parameters
    }
    written = kernel.launch.template_arguments if kernel.launch else ()
    guessed: list[str] = []
    for place, parameter in enumerate(kernel.template_parameters):
        is_written = place < len(written) and _is_argument(written[place])
        guessed += [parameter.name] if parameter.kind == "typename" and not (parameter.default or is_written) else []
    unknown = [name for name, text in arguments.items() if not _is_argument(text)]
    where = f"{kernel.path}:{kernel.line}"
    missing = [f"{where}: template argument {', '.join(unknown)}: no launch here gives a value"] if unknown else []
    note = f"{_CONFIRM} {', '.join(guessed)}: no launch here names a type" if guessed else ""
    return f"{kernel.qualified_name}<{', '.join(arguments.values())}>", note, missing


def _dtype(parameter: FoundParameter, types: Mapping[str, str]) -> str | None:
    if parameter.type.count("*") > 1 or "&" in parameter.type:
        return None
    if parameter.dtype:
        return parameter.dtype
    names = re.findall(r"\w+", parameter.type)
    return next((dtype_of(types[name]) for name in names if name in types), None)


def _argument(parameter: FoundParameter, types: Mapping[str, str]) -> _SpecLine:
    dtype, name, role = _dtype(parameter, types), parameter.name, parameter.role
    if role.value in _BUFFERS and dtype is not None:
        shape = parameter.shape.value if parameter.shape else "1"
        dtype_text = "" if dtype == "float32" else f', dtype="{dtype}"'
        if parameter.below and role.value != "output":
            bound = parameter.below if parameter.below.isdigit() else f'"{parameter.below}"'
            dtype_text += f", fill=integers(0, {bound})"
        return _SpecLine(f'{_BUFFERS[role.value]}("{name}", "{shape}"{dtype_text})', f"{_CONFIRM} role and shape")
    if role.value == "struct":
        fields = ", ".join(f'("{field}", "{kind}")' for field, kind in parameter.fields)
        return _SpecLine(
            f'Struct("{name}", [{fields}])' if fields else f'Struct("{name}")', f"{_CONFIRM} {role.reason}"
        )
    if role.value == "size":
        return _SpecLine(f'Size("{name}")' if dtype == "int32" else f'Size("{name}", "{dtype}")')
    if dtype is None:
        return _SpecLine(f'Scalar("{name}")', f"# {parameter.type}: what a spec cannot pass")
    return _SpecLine(f'Scalar("{name}")' if dtype == "float32" else f'Scalar("{name}", "{dtype}")')


def _names(kernel: FoundKernel, *roles: str) -> list[str]:
    return [parameter.name for parameter in kernel.parameters if parameter.role.value in roles]


def _values(kernel: FoundKernel, launch: FoundLaunch | None) -> dict[str, str]:
    """Return the parameters that a workload does not vary: numbers passed by value, and what the block asks for."""
    values: dict[str, str] = {}
    passed = dict(launch.passed) if launch else {}
    for parameter in kernel.parameters:
        if parameter.role.value in ("scalar", "unknown"):
            number = "1e-05" if "eps" in parameter.name.lower() else "1.0"
            if parameter.dtype == "bool":
                is_false = parameter.default == "false" or parameter.name in passed and not passed[parameter.name].value
                number = "False" if is_false else "True"
            elif parameter.name in passed:
                number = str(float(passed[parameter.name].value))
            elif parameter.default:
                with suppress(ValueError):
                    number = str(float(parameter.default.rstrip("fFuUlL")))
            values[parameter.name] = number
        values |= {name: "1.0" for name, dtype in parameter.fields if dtype.startswith(("float", "bfloat"))}
        values |= {name: "True" for name, dtype in parameter.fields if dtype == "bool"}
    for name in filter(partial(_is_single, kernel), kernel.sizes):
        values[name] = str(int(passed[name].value)) if name in passed else "0"
    in_block = _identifiers(*(launch.block or ())) if launch else set[str]()
    constants = {parameter.name for parameter in kernel.parameters if parameter.role.value == "constexpr"}
    for name, guess in launch.names if launch else ():
        if name in in_block | constants:
            values[name] = str(guess.value)
    varied = {name for name, _ in kernel.tune}
    return {name: value for name, value in values.items() if name not in varied}


def _is_single(kernel: FoundKernel, name: str) -> bool:
    """Return whether a whole number is no extent, by its name and as neither shapes nor the launch ask for it."""
    launch = kernel.launch
    used = {axis for parameter in kernel.parameters if parameter.shape for axis in parameter.shape.value.split()}
    used |= _identifiers(kernel.depth, *(text for _, text in kernel.derived))
    if launch is not None:
        used |= _identifiers(*(launch.grid or ()), *(launch.block or ()), launch.shared or "")
        used |= _identifiers(*(text for _, text in launch.derived))
    return name not in used and _SINGLE.match(name) is not None


def _identifiers(*texts: str) -> set[str]:
    """Return the names in expressions, without those of functions, methods, keywords and strings."""
    plain = (re.sub(r"'[^']*'|\"[^\"]*\"", "", text) for text in texts)
    names = {name for text in plain for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)}
    return {name for name in names if name not in _WORDS and not iskeyword(name)}


def _derived(kernel: FoundKernel) -> dict[str, str]:
    """Return the expressions of names that follow from axes, by name."""
    launch = kernel.launch
    waiting = {name: _plain(text) for name, text in (*(launch.derived if launch else ()), *kernel.derived)}
    ordered: dict[str, str] = {}
    while waiting:  # each after those that it asks for
        name = next(
            (name for name, text in waiting.items() if not _identifiers(text) & waiting.keys()), next(iter(waiting))
        )
        ordered[name] = waiting.pop(name)
    return ordered


def _axes(kernel: FoundKernel, values: Mapping[str, str]) -> list[str]:
    """Return what workloads give: whole numbers that the kernel takes, then other names in shapes and in the launch."""
    shapes = " ".join(parameter.shape.value for parameter in kernel.parameters if parameter.shape)
    derived = _derived(kernel)
    names = [*kernel.sizes, *(name for name in shapes.split() if not name.isdigit())]
    names += [name for name, _ in kernel.launch.names] if kernel.launch else []
    names += sorted(_identifiers(*derived.values()))
    if kernel.language == "triton" and kernel.launch:
        names += sorted(_identifiers(*(kernel.launch.grid or ()), *(text for _, text in kernel.launch.constants)))
    known = {"device", *values, *derived, *(name for name, _ in kernel.tune)}
    return [name for name in dict.fromkeys(names) if name not in known] or ["n"]


def _workload(kernel: FoundKernel, axes: list[str], values: Mapping[str, str], *, is_large: bool) -> str:
    """Return sizes of the axes that the launch and the buffers allow: tiles divide them, blocks are small enough."""
    by_count = _LARGE if is_large else _SMALL
    usual = by_count.get(len(axes), (_OTHER[is_large],) * len(axes))
    if is_large and len(axes) == 3 and kernel.arithmetic is not None and "product" in kernel.arithmetic.value:
        usual = _LARGE_PRODUCT
    sizes = dict(zip(axes, usual, strict=True))
    if len(axes) > 3:
        few = _FEW | ({"s": 3} if "r" in map(str.lower, axes) else {})
        sizes |= {axis: few[axis.lower()] for axis in axes if axis.lower() in few}
    launch = kernel.launch
    numbers = {name: number for name, text in values.items() if (number := number_of(text)) is not None}
    if launch is not None:
        texts = [*(launch.grid or ()), *(launch.block or ()), launch.shared or ""]
        is_fixed = not _identifiers(*texts)
        fixed = {name: int(guess.value) for name, guess in launch.passed if name in sizes and is_fixed}
        sizes |= fixed
        for axis, tile in _tiles(texts, numbers):
            if axis in sizes and axis not in fixed and sizes[axis] % tile:
                sizes[axis] = -(-sizes[axis] // tile) * tile
        for axis, least, most in kernel.limits:
            if axis in sizes and axis not in fixed:
                sizes[axis] = min(max(sizes[axis], least or 1), most or sizes[axis] + (least or 1))
        _shrink(kernel, launch, {axis for axis in axes if axis not in fixed}, sizes, numbers, is_large=is_large)
    return ", ".join(f"{axis}={sizes[axis]}" for axis in axes)


def _tiles(texts: Sequence[str], numbers: Mapping[str, float]) -> Iterator[tuple[str, int]]:
    """Yield the axes that a launch divides, and by what."""
    for text in texts:
        for axis, number, name, product in re.findall(r"(\w+) // (?:(\d+)|([A-Za-z_]\w*)|(\([^()]*\)))", text):
            tile = number_of(number or name or product, numbers)
            if tile and tile > 1:
                yield axis, int(tile)


def _shrink(
    kernel: FoundKernel,
    launch: FoundLaunch,
    free: set[str],
    sizes: dict[str, int],
    numbers: Mapping[str, float],
    *,
    is_large: bool,
) -> None:
    """Halve axes until a block has at most 1024 threads, a grid fits, and every buffer fits into memory."""

    def extent(text: str) -> float:
        names = {**numbers, **sizes}
        derived = {
            name: number for name, of in _derived(kernel).items() if (number := number_of(of, names)) is not None
        }
        return number_of(text, {**names, **derived}) or 1

    limits: list[tuple[str, float]] = [(" * ".join(f"({part})" for part in launch.block or ("1",)), 1024)]
    limits += [(part, 65_535) for part in (launch.grid or ())[1:]]
    shapes = [parameter.shape.value.split() for parameter in kernel.parameters if parameter.shape]
    limits += [(" * ".join(shape), _MOST_ELEMENTS[is_large]) for shape in shapes]
    if kernel.depth:
        outputs = [p.shape.value.split() for p in kernel.parameters if p.shape and p.role.value in ("output", "in_out")]
        limits += [(" * ".join([*shape, f"({kernel.depth})"]), _MOST_TERMS[is_large]) for shape in outputs]
    for text, most in limits:
        names = _identifiers(text)
        names |= _identifiers(*(of for name, of in _derived(kernel).items() if name in names))
        axes = [axis for axis in sizes if axis in free and axis in names]
        while axes and extent(text) > most and max(sizes[axis] for axis in axes) > 1:
            largest = max(axes, key=lambda axis: sizes[axis])
            sizes[largest] = -(-sizes[largest] // 2)


def _launch_text(launch: FoundLaunch | None, kernel: FoundKernel) -> str:
    """Return the function of the axes that returns the Launch; a Triton kernel takes its constants by name."""
    launch = launch or FoundLaunch(kernel.path, kernel.line, None, None, None)
    shared, arguments = _plain(launch.shared or "0"), [f"grid={_extent_text(launch.grid)}"]
    if kernel.language == "triton":
        items = ", ".join(f'"{name}": {_plain(value)}' for name, value in launch.constants)
        arguments += [f"constants={{{items}}}"] if items else []
    else:
        arguments.append(f"block={_extent_text(launch.block)}")
        arguments += [f"shared={shared}"] if shared != "0" or kernel.dynamic_shared else []
        arguments += ["cooperative=True"] if launch.is_cooperative else []
    constants = [value for _, value in launch.constants]
    expressions = [*(launch.grid or ()), *(launch.block or ()), shared, *constants]
    asked = _identifiers(*expressions)
    numbers = [parameter.name for parameter in kernel.parameters if not parameter.is_pointer]
    names = [*numbers, *kernel.sizes, *(name for name, _ in launch.names), "device"]
    used = [name for name in dict.fromkeys(names) if name in asked]
    if kernel.language == "triton":  # whose launch may ask for axes that no parameter is
        used += sorted(asked.difference(used))
    steps = [*(f'Zero("{name}")' for name in launch.zeroed), f"Launch({', '.join(arguments)})"]
    text = ", ".join(steps)
    head = f"lambda {', '.join(used)}:" if used else "lambda:"
    return f"{head} ({text})" if len(steps) > 1 else f"{head} {text}"


def _lambdas(expressions: Mapping[str, str]) -> dict[str, str]:
    """Return functions of the axes for expressions, by name."""
    asked = {name: ", ".join(sorted(_identifiers(text))) for name, text in expressions.items()}
    return {name: f"lambda{' ' if asked[name] else ''}{asked[name]}: {text}" for name, text in expressions.items()}


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


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("prism_bench.extensions.init.sources", "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,
    )


# Spec skeletons for PyTorch operators: kernels whose spec has a callable.

_NUMBERS = {"float": "1.0", "int": "1", "bool": "False"}
_RESERVED = (*NOT_IN_SPECS, "torch", "stream", "n")  # what a callable may ask for, and the axis of the workloads


@dataclass(frozen=True)
class _CallArgument:
    """An argument of a call: its `name` in the spec, and the `text` in the call."""

    argument: OperatorArgument
    name: str
    text: str


def operator_skeleton(operator: FoundOperator, source: str) -> Skeleton | None:
    """Return the spec of an operator in the file `source`, relative to the root; None if its arguments are unknown.

    It loads in a catalogue if the types of all arguments and the module that registers the operator are known. A person
    always writes the reference.
    """
    signature = signature_of(operator)
    if signature is None:
        return None
    passed = [call_argument for argument in signature.arguments if (call_argument := _passed(argument))]
    tensors = [tensor for tensor in passed if tensor.argument.kind == "tensor"]
    numbers = {number.name: _number(number.argument) for number in passed if number.argument.kind in _NUMBERS}
    outputs = ["out"] if signature.returned == 1 else [f"out{number}" for number in range(signature.returned or 0)]
    outputs = [f"{name}_" if any(name == argument.name for argument in passed) else name for name in outputs]
    results = [*(tensor.name for tensor in tensors if tensor.argument.is_written), *outputs]
    kinds = {"InOut" if tensor.argument.is_written else "In" for tensor in tensors}
    module = _module(operator, source)
    missing = [] if module else [f"the import that registers {operator.name}"]
    missing += [
        f"the argument {argument.name} has type {argument.argument.type}: write what the call gives it"
        for argument in passed
        if argument.argument.kind == "other"
    ]
    if signature.returned is None or not results:
        missing.append("the outputs: the operator returns no tensors")
    template = _environment().get_template("operator.py.jinja")
    text = template.render(
        operator=operator,
        source=source,
        module=module,
        missing=missing,
        tensors=tensors,
        outputs=outputs,
        call=f"torch.ops.{operator.name.replace('::', '.')}({', '.join(argument.text for argument in passed)})",
        asked=["torch", *(tensor.name for tensor in tensors), *numbers],
        numbers=numbers,
        confirm=_CONFIRM,
        results=results,
        imports=sorted({*kinds, *(["Out"] if outputs else []), "KernelSpec", "Workload"}),
        small=_SMALL[1][0],
        large=_LARGE[1][0],
    )
    guesses = [f"shape and type of {name}" for name in (*(tensor.name for tensor in tensors), *outputs)]
    file_name = f"{_module_name(operator.name.rpartition('::')[2].replace('.', '_'))}.py"
    return _made(file_name, text, missing, ("the reference", *guesses))


def _passed(argument: OperatorArgument) -> _CallArgument | None:
    """Return the argument in the call; None if the call leaves it out for the operator's default."""
    is_taken = iskeyword(argument.name) or argument.name in _RESERVED
    name = f"{argument.name}_" if is_taken else argument.name
    if argument.default is not None and argument.kind in ("none", "other"):
        return None
    text = "None" if argument.kind in ("none", "other") else name
    # Arguments after an argument that is left out need their own names.
    by_name = argument.is_keyword or argument.default is not None
    return _CallArgument(
        argument, name, f"{argument.name}={text}" if by_name and not iskeyword(argument.name) else text
    )


def _number(argument: OperatorArgument) -> str:
    default = (argument.default or "").strip()
    if argument.kind == "bool":
        return {"true": "True", "True": "True"}.get(default, _NUMBERS["bool"])
    return default if re.fullmatch(r"-?[\d.]+(e-?\d+)?", default) else _NUMBERS[argument.kind]


def _module(operator: FoundOperator, source: str) -> str | None:
    """Return the module that registers the operator, by the path of its file; None if Python cannot import it."""
    names = source.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").split("/")
    is_module = operator.language == "python" and all(name.isidentifier() and not iskeyword(name) for name in names)
    return ".".join(names) if is_module else None
