"""Triton functions and PyTorch operators in the Python files of a project, read from their syntax, never executed."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from prism_bench.extensions.init.sources.kernels import (
    Arithmetic,
    FoundKernel,
    FoundLaunch,
    FoundOperator,
    FoundParameter,
    Guess,
    Role,
    Scan,
    Unread,
)
from prism_bench.extensions.init.sources.other_languages import other_kernels
from prism_bench.extensions.init.sources.triton_body import Access, bare_name, parameters_of, read_body
from prism_bench.extensions.init.sources.triton_launch import (
    OPTIONS,
    Configuration,
    ConfigurationReader,
    Expressions,
    Host,
    HostFile,
    LaunchCall,
    grid_extents,
    launch_calls,
    literals,
    options_of,
    passed_arguments,
)
from prism_bench.extensions.init.sources.triton_shapes import Facts, Shapes, shapes_of

_USUAL_BLOCK, _USUAL_AXIS = 1024, 1024
_NO_VALUE = "no value in the file"
_OPERATORS = ("custom_op", "triton_op")
_DEEPEST, _TOO_DEEP = 250, "expressions are nested too deeply to be read"  # readers go down by Python's own calls
_NUMBERS = ("float", "eps", "alpha", "beta", "scale", "lr", "epsilon", "sm_scale", "weight_decay")
_MOST_IN_BLOCK = 1 << 15  # elements of a row that a program has at once: Triton takes up to 1 << 20, registers fewer
_TYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
_USUAL_NUMBERS = (("p|prob|p_drop|dropout\\w*|rate", 0.5), (r"\w*eps\w*", 1e-5), (r"lr|weight_decay|wd", 0.01))
_Function = ast.FunctionDef | ast.AsyncFunctionDef


# Python files of a project.


def python_file(path: Path, text: str) -> HostFile | Unread:
    """Return a Python file with its syntax tree, or why it has none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        return Unread(path, line, f"no Python: {getattr(error, 'msg', error)}")
    except (RecursionError, MemoryError):  # which of them depends on the version of Python
        return Unread(path, 1, _TOO_DEEP)
    line, level = 1, [*ast.iter_child_nodes(tree)]
    for _ in range(_DEEPEST):
        if not level:
            return HostFile(path, tree)
        line = max(getattr(node, "lineno", line) for node in level)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return Unread(path, line, _TOO_DEEP)


def scan_files(files: Sequence[HostFile]) -> Scan:
    """Return the Triton kernels and custom operators of Python files, which may launch each other's kernels."""
    project = _Project(files)
    kernels = tuple(kernel for file in files for kernel in project.kernels(file))
    operators = tuple(operator for file in files for operator in _operators(file))
    unread = tuple(part for file in files for part in (*_unread_operators(file), *other_kernels(file)))
    return Scan(kernels, operators, unread)


def _operators(file: HostFile) -> Iterator[FoundOperator]:
    for node in ast.walk(file.tree):
        if isinstance(node, _Function):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and bare_name(decorator.func) in _OPERATORS:
                    name = _first_text(decorator)
                    if name is not None:
                        yield _operator(file.path, node, decorator, name)


def _unread_operators(file: HostFile) -> Iterator[Unread]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and bare_name(node.func) in _OPERATORS and _first_text(node) is None:
            yield Unread(file.path, node.lineno, "the custom operator's name is no literal")


def _first_text(call: ast.Call) -> str | None:
    """Return the string literal that is a call's first argument, or None."""
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _jit_names(tree: ast.Module) -> set[str]:
    """Return the names under which the file has `triton.jit`."""
    names = {"triton.jit", "triton.runtime.jit", "jit"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "triton":
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
        elif isinstance(node, ast.ImportFrom) and any(alias.name == "jit" for alias in node.names):
            names -= {"jit"}  # of another package
        elif isinstance(node, ast.Import):
            names |= {f"{alias.asname}.jit" for alias in node.names if alias.name == "triton" and alias.asname}
    return names


def _decorators(node: _Function) -> tuple[str, ...]:
    return tuple(
        ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
        for decorator in node.decorator_list
    )


# Kernels with their launches, wherever these are.


@dataclass
class _Reading:
    """What is known of a kernel's launch: grid and constants as expressions, values to guess, and what is not read."""

    grid: tuple[str, ...] = ()
    constants: dict[str, str] = field(default_factory=dict[str, str])
    values: dict[str, Guess[int]] = field(default_factory=dict[str, Guess[int]])
    numbers: dict[str, float] = field(default_factory=dict[str, float])  # that the host passes as literals
    dropped: set[str] = field(default_factory=set[str])
    tensors: dict[str, str] = field(default_factory=dict[str, str])
    dtypes: dict[str, str] = field(default_factory=dict[str, str])
    strides: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    zeroed: set[str] = field(default_factory=set[str])
    computed: dict[str, str] = field(default_factory=dict[str, str])  # sizes as expressions over other parameters
    extents: set[str] = field(default_factory=set[str])  # parameters that are facts of a tensor: `x.shape[0]`
    unread: list[Unread] = field(default_factory=list[Unread])
    notes: list[str] = field(default_factory=list[str])


class _Project:
    """The Python files of a project with their Triton functions and launches."""

    def __init__(self, files: Sequence[HostFile]) -> None:
        self._functions: dict[Path, dict[str, ast.FunctionDef]] = {}
        for file in files:
            jit = _jit_names(file.tree)
            self._functions[file.path] = {
                node.name: node
                for node in ast.walk(file.tree)
                if isinstance(node, ast.FunctionDef) and jit.intersection(_decorators(node))
            }
        everywhere = {name: node for functions in self._functions.values() for name, node in functions.items()}
        self._helpers = {path: {**everywhere, **functions} for path, functions in self._functions.items()}
        modules: dict[str, list[ConfigurationReader]] = {}
        self._readers = {file.path: ConfigurationReader(file.tree, modules) for file in files}
        for path, reader in self._readers.items():
            modules.setdefault(path.parent.name if path.stem == "__init__" else path.stem, []).append(reader)
        self._calls: dict[str, list[LaunchCall]] = {}
        for file in files:
            for call in launch_calls(file):
                self._calls.setdefault(call.kernel, []).append(call)
        self._callers = {
            node.id: name
            for functions in self._functions.values()
            for name, function in functions.items()
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id in everywhere and node.id != name
        }
        self._callers |= {
            node.attr: name
            for functions in self._functions.values()
            for name, function in functions.items()
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and node.attr in everywhere and node.attr != name
        }

    def kernels(self, file: HostFile) -> Iterator[FoundKernel]:
        """Yield the kernels of a file, helpers among them."""
        functions = self._functions[file.path]
        for name, node in functions.items():
            calls = self._calls.get(name, [])
            calls = [call for call in calls if call.file.path == file.path] or calls
            if not calls and name in self._callers:
                parameters = tuple(FoundParameter(argument.arg, "", None, Guess("unknown", "of a helper"))
                                   for argument in parameters_of(node))  # fmt: skip
                yield FoundKernel("triton", name, file.path, node.lineno, parameters, helper_of=self._callers[name])
            else:
                yield _Builder(file, node, calls, self._helpers[file.path], self._readers[file.path]).kernel()


class _Builder:
    """Builder of what is known of one kernel, from its body, its decorators and the first launch that is read."""

    def __init__(
        self,
        file: HostFile,
        node: ast.FunctionDef,
        calls: Sequence[LaunchCall],
        helpers: Mapping[str, ast.FunctionDef],
        reader: ConfigurationReader,
    ) -> None:
        self._file, self._node, self._calls = file, node, calls
        self._names = [argument.arg for argument in parameters_of(node)]
        self._annotations = {
            argument.arg: ast.unparse(argument.annotation) if argument.annotation else ""
            for argument in parameters_of(node)
        }
        defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        self._defaults = dict(zip(reversed(self._names), reversed(defaults), strict=False))
        self._body = read_body(node, {name: made for name, made in helpers.items() if made is not node},
                               literals(file.tree))  # fmt: skip
        self._configurations, self._zeroed, self._hooks = self._autotuned(reader)
        self._heuristics = self._decided()
        options = {name for made in self._configurations for name in made} | set(self._heuristics)
        self._constants = [name for name in self._names if "constexpr" in self._annotations[name] or name in options]

    # Decorators.

    def _autotuned(self, reader: ConfigurationReader) -> tuple[list[Configuration], set[str], bool]:
        configurations: list[Configuration] = []
        zeroed: set[str] = set()
        for decorator in self._node.decorator_list:
            if isinstance(decorator, ast.Call) and "autotune" in bare_name(decorator.func):
                keywords = {keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg}
                listed = decorator.args[0] if decorator.args else keywords.get("configs")
                configurations += reader.read(listed) if listed is not None else []
                reset = keywords.get("reset_to_zero")
                if isinstance(reset, ast.List | ast.Tuple):
                    zeroed |= {str(element.value) for element in reset.elts if isinstance(element, ast.Constant)}
        hooked = any("pre_hook" in ast.unparse(decorator) for decorator in self._node.decorator_list)
        return configurations, zeroed, hooked

    def _decided(self) -> dict[str, ast.expr]:
        """Return the body of the heuristic of each name."""
        decided: dict[str, ast.expr] = {}
        for decorator in self._node.decorator_list:
            if isinstance(decorator, ast.Call) and "heuristics" in bare_name(decorator.func):
                values = next(iter([*decorator.args, *(keyword.value for keyword in decorator.keywords)]), None)
                if isinstance(values, ast.Dict):
                    for key, value in zip(values.keys, values.values, strict=True):
                        if isinstance(key, ast.Constant) and isinstance(value, ast.Lambda):
                            decided[str(key.value)] = value.body
        return decided

    # The kernel.

    def kernel(self) -> FoundKernel:
        """Return the kernel with its launch, the shapes of its buffers and what its tolerance has to allow for."""
        readings = [(call, self._read(call)) for call in self._calls]
        chosen = next(((call, made) for call, made in readings if not made.unread), next(iter(readings), None))
        call, reading = chosen or (None, _Reading())
        buffers = self._buffers(reading)
        facts = Facts(
            {name: self._value_of(name, reading) for name in self._constants},
            reading.grid,
            reading.strides,
            reading.tensors,
            reading.extents | reading.computed.keys(),
            self._names,
        )
        shapes = shapes_of(self._body, buffers, facts)
        self._settle_blocks(reading, shapes)
        self._settle_derived(reading, shapes, buffers)
        parameters = self._parameters(buffers, reading, shapes)
        ordered = sorted(readings, key=lambda pair: pair[0] is not call)
        launches = tuple(self._launch(where, made, parameters) for where, made in ordered)
        derived = _ordered({name: text for name, text in shapes.derived.items() if name not in reading.values})
        return FoundKernel(
            "triton", self._node.name, self._file.path, self._node.lineno, tuple(parameters), launches=launches,
            decorators=_decorators(self._node), arithmetic=self._arithmetic(reading),
            depth=self._most_angle(reading), tune=self._tune(reading), tuned_together=self._tuned_together(reading),
            notes=(*self._notes(shapes), *reading.notes), derived=tuple(derived.items()),
            limits=tuple(sorted({(axis, shapes.least.get(axis), shapes.most.get(axis))
                                 for axis in (*shapes.least, *shapes.most)}, key=str)),
            proposed=self._proposed(parameters, reading),
            missing=tuple(self._undecided(call, reading, shapes)) if call else (),
        )  # fmt: skip

    def _undecided(self, call: LaunchCall, reading: _Reading, shapes: Shapes) -> Iterator[str]:
        """Yield what decides the launch or a shape, and is neither in the source nor a size of a buffer."""
        where = f"{call.file.path}:{call.call.lineno}"
        in_grid = _names_in(*reading.grid)
        axes = {axis for guess in shapes.of.values() for axis in guess.value.split()}
        deciding = in_grid | axes | {name for size in self._body.ranges.values() for name in size}
        for name, guess in reading.values.items():
            if guess.reason == _NO_VALUE and name in self._constants and name in deciding:
                yield f"{where}: {name} decides the launch or a shape, and no value of it can be read"
        for name in sorted(in_grid - _with_derived(axes | set(self._names), shapes.derived)):
            yield f"{where}: the grid has {name}, which is no size of a buffer and no parameter of the kernel"

    def _value_of(self, name: str, reading: _Reading) -> int | None:
        if name in reading.values:
            return reading.values[name].value
        default = self._defaults.get(name)
        number = default.value if isinstance(default, ast.Constant) else None
        return number if isinstance(number, int) and not isinstance(number, bool) else None

    def _buffers(self, reading: _Reading) -> list[str]:
        used = {access.pointer for access in self._body.accesses} | self._body.descriptors
        names = [name for name in self._names if name not in self._constants and name not in reading.dropped]
        ends = ("_ptr", "_pointer", "Ptr", "ptr", "_ptrs")
        return [
            name
            for name in names
            if name in used or name.endswith(ends) or name in reading.dtypes and name not in self._body.integers
        ]

    def _parameters(self, buffers: Sequence[str], reading: _Reading, shapes: Shapes) -> list[FoundParameter]:
        made: list[FoundParameter] = []
        floats = {name for name in buffers if "float" in (reading.dtypes.get(name) or self._dtype(name))}
        for name in self._names:
            annotation = self._annotations[name]
            if name in self._constants or name in reading.dropped:
                made.append(FoundParameter(name, annotation, None, Guess("constexpr", "a constant of the launch")))
            elif name in self._body.descriptors:
                kind = "a tensor descriptor of the host; a descriptor that the kernel makes is taken"
                made.append(FoundParameter(name, kind, None, Guess("unknown", "a spec passes buffers and numbers")))
            elif name in buffers:
                role = self._role(name, reading)
                dtype = reading.dtypes.get(name) or self._dtype(name)
                stored = [access.value for access in self._accesses(name) if access.kind == "store" and access.value]
                is_rounded = dtype.startswith(("int", "uint")) and any(
                    value.is_computed and value.loaded & floats for value in stored
                )
                below = (
                    shapes.below.get(name, "") if dtype.startswith("int") and role.value in ("input", "in_out") else ""
                )
                made.append(
                    FoundParameter(
                        name, annotation, dtype, role, shapes.of.get(name), True, below=below, is_rounded=is_rounded
                    )
                )
            else:
                made.append(self._number(name, annotation, reading))
        return made

    def _number(self, name: str, annotation: str, reading: _Reading) -> FoundParameter:
        default = self._defaults.get(name)
        text = ast.unparse(default) if isinstance(default, ast.Constant) else None
        text = repr(reading.numbers[name]) if name in reading.numbers else text
        is_float = (
            annotation == "float" or text is not None and ("." in text or "e-" in text)
            or name not in self._body.integers and (name in self._body.floats or name.lower() in _NUMBERS)
        )  # fmt: skip
        if is_float:
            usual = next((value for word, value in _USUAL_NUMBERS if re.fullmatch(word, name.lower())), None)
            if text is None and usual is not None:
                reading.numbers[name] = usual
            return FoundParameter(
                name, annotation, "float32", Guess("scalar", "a number of the arithmetic"), default=text
            )
        return FoundParameter(
            name, annotation, "int32", Guess("size", "neither loaded from nor stored to"), default=text
        )

    def _accesses(self, name: str) -> list[Access]:
        return [access for access in self._body.accesses if access.pointer == name]

    def _role(self, name: str, reading: _Reading) -> Guess[Role]:
        kinds = [access.kind for access in self._accesses(name)]
        if not kinds:
            return Guess("input", "its name ends like a pointer's")
        if name in reading.zeroed and "atomic" in kinds:
            return Guess("output", "zeroed by the host, then atomic operations")
        reads = (
            "atomic" in kinds
            or "load" in kinds
            and ("store" not in kinds or kinds.index("load") < kinds.index("store"))
        )
        writes = "atomic" in kinds or "store" in kinds
        value: Role = "in_out" if reads and writes else "output" if writes else "input"
        return Guess(value, " and ".join(f"tl.{kind}" for kind in dict.fromkeys(kinds)))

    def _dtype(self, name: str) -> str:
        """Return the type that the body shows: integers for indices, half precision for what is stored so."""
        if name in self._body.indices or name in self._body.labels:
            return "int64"
        if name in self._body.bits:
            return "int32"
        stored = [
            access.value.half for access in self._accesses(name) if access.value is not None and access.value.half
        ]
        return stored[0] if stored else "float32"

    def _notes(self, shapes: Shapes) -> Iterator[str]:
        where = f"{self._file.path}:{self._node.lineno}"
        if self._hooks:
            yield f"{where}: a launch of a spec runs no pre_hook; write what it does as a step, such as Zero('c')"
        for text in shapes.contradictions:
            yield f"{where}: two buffers disagree on a stride: {text}"

    # The launch.

    def _read(self, call: LaunchCall) -> _Reading:
        """Return what a launch gives; what cannot be read is in `unread`."""
        reading, where = _Reading(), call.call.lineno
        try:
            passed = passed_arguments(call, self._names)
        except ValueError as error:
            reading.unread.append(Unread(call.file.path, where, f"passes {error}; name each argument in the spec"))
            return reading
        host = Host.around(call)
        for name, node in passed.items():
            if isinstance(node, ast.Constant) and node.value is None:
                reading.dropped.add(name)
                reading.constants[name] = "None"
        sizes = {name: node for name, node in passed.items() if name not in self._constants and name in self._names}
        for name, node in sizes.items():
            self._read_argument(name, node, host, reading)
        known = {
            name: node
            for name, node in passed.items()
            if name not in reading.tensors and name not in reading.strides and (name in sizes or host.is_fact(node))
        }
        expressions = Expressions(host, known, self._names)
        for name, node in passed.items():
            if isinstance(node, ast.Name) and node.id not in host.values and name in self._bounds():
                expressions.name(node, name)
        chosen = self._configurations[0] if self._configurations else {}
        for name in self._constants:
            self._read_constant(name, passed.get(name), chosen, expressions, reading, call, host)
        self._inline_constants(reading)
        for name in self._constants:
            if name in passed and reading.constants.get(name) == name:
                expressions.name(passed[name], name)
        named = {name: passed[name] for name, text in reading.constants.items() if name in passed and text == name}
        self._read_computed(sizes, {**known, **named}, host, reading)
        self._read_options(call, chosen, host, reading)
        try:
            reading.grid = tuple(expressions.text(extent) for extent in grid_extents(call, host))
        except ValueError as error:
            text = str(error) if str(error).startswith("grid: ") else f"grid: '{error}' is no name, number or division"
            reading.unread.append(Unread(call.file.path, where, text))
        for name in self._missing_names(reading):
            reading.values.setdefault(name, Guess(_USUAL_AXIS, _NO_VALUE))
        return reading

    def _missing_names(self, reading: _Reading) -> list[str]:
        """Return names in the grid that look like constants of a configuration and have no value."""
        texts = " ".join([*reading.grid, *reading.constants.values()])
        names = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", texts))
        return [name for name in names if name.isupper() and name not in self._names and len(name) > 2]

    def _read_argument(self, name: str, node: ast.expr, host: Host, reading: _Reading) -> None:
        canonical = host.canonical(node)
        match = re.fullmatch(r"(.+)\.stride\((-?\d+)\)", canonical)
        if match:
            reading.strides[name] = (match[1], int(match[2]))
            return
        literal = host.literal(node)
        if literal is not None and isinstance(literal.value, int | float):
            reading.numbers[name] = literal.value
            return
        tensor = host.tensor(node)
        is_used = any(access.pointer == name for access in self._body.accesses)
        if tensor is None or not (is_used or tensor in host.created):
            return
        reading.tensors[name] = tensor
        if dtype := host.dtype(tensor):
            reading.dtypes[name] = dtype
        if host.is_zeroed(tensor) or name in self._zeroed:
            reading.zeroed.add(name)

    def _read_computed(
        self, sizes: Mapping[str, ast.expr], known: Mapping[str, ast.expr], host: Host, reading: _Reading
    ) -> None:
        """Read whole numbers that the host computes from other parameters: `group_size = cdiv(C, groups)`."""
        reading.extents |= {name for name, node in sizes.items() if host.is_fact(node)}
        for name in self._body.integers.intersection(sizes).difference(reading.tensors, reading.strides):
            others = {other: node for other, node in known.items() if other != name}
            expressions = Expressions(host, others, self._names)
            with suppress(ValueError):
                text = expressions.text(sizes[name])
                if not expressions.axes and not text.isidentifier() and _names_in(text):
                    reading.computed[name] = text

    def _read_constant(
        self, name: str, node: ast.expr | None, chosen: Configuration, expressions: Expressions, reading: _Reading,
        call: LaunchCall, host: Host,
    ) -> None:  # fmt: skip
        if name in reading.dropped:
            return
        if name in chosen:
            self._set_constant(name, chosen[name], "the first configuration of autotune", reading)
            return
        if node is None and name not in self._heuristics:
            if name not in self._defaults:
                self._guess_constant(name, reading)
            return
        expressions.kernel_names = frozenset() if node is not None else frozenset(self._names)
        node = node if node is not None else _asked(self._heuristics[name])
        literal = host.literal(node)
        if literal is not None:
            self._set_constant(name, literal.value, f"passed in line {call.call.lineno}", reading)
            return
        try:
            text = expressions.text(node)
        except ValueError as error:
            self._guess_unread(name, str(error), reading, call)
            return
        is_unknown = text.isidentifier() and text in expressions.unknown
        if re.fullmatch(r"-?\d+", text):
            self._set_constant(name, int(text), f"passed in line {call.call.lineno}", reading)
        elif is_unknown and name not in self._bounds():
            self._guess_constant(name, reading)
        else:
            reading.constants[name] = name if is_unknown else text

    def _bounds(self) -> set[str]:
        return {*self._body.bounds.values(), *self._body.atom_bounds.values()}

    def _inline_constants(self, reading: _Reading) -> None:
        """Replace names of constants in the expressions of others, as heuristics ask for them, by their expressions."""
        computed = {name: text for name, text in reading.constants.items() if text != name}
        for name, text in list(reading.constants.items()):
            for other, expression in computed.items():
                if other != name and name not in expression:
                    text = re.sub(rf"(?<![\w.'\"]){re.escape(other)}\b", lambda _, by=expression: f"({by})", text)
            reading.constants[name] = text

    def _guess_unread(self, name: str, text: str, reading: _Reading, call: LaunchCall) -> None:
        """Guess a constant whose expression cannot be read: a type by its name, any other one as a number."""
        last = text.rpartition(".")[2]
        if last in _TYPES:
            reading.constants[name] = f"'tl.{last}'"
        elif "dtype" in text.lower() or "type" in name.lower():
            reading.constants[name] = "'tl.float32'"
            where = f"{call.file.path}:{call.call.lineno}"
            reading.notes.append(f"{where}: {name} is '{text}'; 'tl.float32' is a guess: confirm")
        else:
            self._guess_constant(name, reading)

    def _guess_constant(self, name: str, reading: _Reading) -> None:
        usual = _USUAL_BLOCK if "BLOCK" in name.upper() else 1
        reading.values[name] = Guess(usual, _NO_VALUE)
        reading.constants[name] = name

    def _set_constant(self, name: str, value: object, reason: str, reading: _Reading) -> None:
        reading.constants[name] = name
        if isinstance(value, int) and not isinstance(value, bool):
            reading.values[name] = Guess(value, reason)
        else:
            reading.constants[name] = repr(value)

    def _read_options(self, call: LaunchCall, chosen: Configuration, host: Host, reading: _Reading) -> None:
        passed = options_of(call, self._names)
        for name in OPTIONS:
            node = passed.get(name, _asked(self._heuristics[name]) if name in self._heuristics else None)
            if name in chosen:
                self._set_constant(name, chosen[name], "the first configuration of autotune", reading)
            elif node is not None and (literal := host.literal(node)) is not None:
                reading.constants[name] = repr(literal.value)

    def _settle_blocks(self, reading: _Reading, shapes: Shapes) -> None:
        """Let a block whose size no file states cover the axis that it is compared with."""
        for name, guess in list(reading.values.items()):
            axis = next((axis for axis, limit in shapes.most.items() if limit == guess.value), None)
            covers = [
                bound for atom, size in self._body.ranges.items() if size == (name,)
                if (bound := self._body.atom_bounds.get(atom)) is not None
            ]  # fmt: skip
            if guess.reason == _NO_VALUE and axis is not None and axis in covers:
                reading.constants[name] = f"(1 << max({axis} - 1, 0).bit_length())"
                del reading.values[name]
                shapes.most.pop(axis)

    def _settle_derived(self, reading: _Reading, shapes: Shapes, buffers: Sequence[str]) -> None:
        """Add what follows from axes: strides that no offset has, numbers of the host, constants that are extents."""
        of_tensor = {
            tensor: shapes.of[name].value.split() for name, tensor in reading.tensors.items() if name in shapes.of
        }
        for name, (tensor, place) in reading.strides.items():
            axes = of_tensor.get(tensor.partition(".")[0], [])
            inner = axes[place + 1 if place != -1 else len(axes) :]
            shapes.derived.setdefault(name, " * ".join(inner) or "1")
        for name, text in reading.computed.items():
            if name not in _with_derived(_names_in(text), shapes.derived):
                shapes.derived.setdefault(name, text)
        for name, number in reading.numbers.items():
            if name not in self._constants and isinstance(number, int) and not isinstance(number, bool):
                shapes.derived.setdefault(name, str(number))
        for text in reading.constants.values():
            for axis in re.findall(r"1 << max\((\w+) - 1, 0\)\.bit_length", text):
                shapes.most[axis] = min(shapes.most.get(axis, _MOST_IN_BLOCK), _MOST_IN_BLOCK)
        used = {axis for guess in shapes.of.values() for axis in guess.value.split()}
        for name, text in reading.constants.items():
            if name in used and text != name:
                shapes.derived.setdefault(name, text)
        tuned = {name for name, _ in self._tune(reading)}
        for name in OPTIONS:
            if reading.constants.get(name) == name and name not in tuned:
                reading.constants[name] = str(reading.values.pop(name).value)

    def _tune(self, reading: _Reading) -> tuple[tuple[str, tuple[int | float | str | None, ...]], ...]:
        """Return the values of each name in the configurations, those of the first configuration first."""
        if len(self._configurations) < 2:
            return ()
        names = [name for name in self._configurations[0] if reading.constants.get(name) == name]
        choices = {
            name: tuple(dict.fromkeys(made[name] for made in self._configurations if name in made)) for name in names
        }
        return tuple((name, values) for name, values in choices.items() if len(values) > 1)

    def _tuned_together(self, reading: _Reading) -> tuple[tuple[int | float | str | None, ...], ...]:
        """Return the configurations, where they are fewer than all combinations of the values of `_tune`."""
        names = [name for name, _ in self._tune(reading)]
        listed = tuple(dict.fromkeys(tuple(made.get(name) for name in names) for made in self._configurations))
        combinations = prod(len(values) for _, values in self._tune(reading))
        return listed if len(names) > 1 and len(listed) < combinations else ()

    def _launch(self, call: LaunchCall, reading: _Reading, parameters: Sequence[FoundParameter]) -> FoundLaunch:
        passed = {parameter.name for parameter in parameters if parameter.role.value == "output"}
        constants = {name: text for name, text in reading.constants.items() if name in self._names or name in OPTIONS}
        return FoundLaunch(
            call.file.path, call.call.lineno, self._grid(reading) or None, (), names=tuple(reading.values.items()),
            unread=tuple(reading.unread), constants=tuple(constants.items()),
            passed=tuple((name, Guess(value, f"passed in line {call.call.lineno}"))
                         for name, value in reading.numbers.items() if isinstance(value, float)),
            zeroed=tuple(sorted(reading.zeroed & passed)),
        )  # fmt: skip

    def _grid(self, reading: _Reading) -> tuple[str, ...]:
        """Return the grid with the names of blocks where the source divides by their numbers: `cdiv(n, 256)`.

        A block is a constant that the body multiplies by the program's index on that axis of the grid.
        """
        grid = list(reading.grid)
        terms = {term for access in self._body.accesses for term in access.offset or ()}
        for axis, text in enumerate(grid):
            blocks = {name for term in terms if f"%pid{axis}" in term for name in term if name in reading.values}
            for name in sorted(name for name in blocks if reading.constants.get(name) == name):
                number = max(reading.values[name].value, 2)
                text = re.sub(rf"\+ {number - 1}\) // {number}\b", f"+ {name} - 1) // {name}", text)
                text = re.sub(rf"(//|%) {number}\b", rf"\1 {name}", text)
            grid[axis] = text
        return tuple(grid)

    # Arithmetic.

    def _arithmetic(self, reading: _Reading) -> Guess[Arithmetic] | None:
        body = self._body
        half = any(access.value is not None and access.value.half for access in body.accesses)
        if body.products:
            exact = all("ieee" in text or "allow_tf32=False" in text for text in body.products)
            return Guess("product" if exact or half else "tf32_product", "tl.dot")
        if body.reductions or body.summed_in_loop:
            reason = f"tl.{body.reductions[0]}" if body.reductions else "a sum in a loop"
            divides = body.functions or body.selections or "/" in ast.unparse(self._node)
            return Guess("normalising" if divides else "reduction", reason)
        if any(access.kind == "atomic" for access in body.accesses):
            return Guess("reduction", "atomic operations")
        if body.angles and self._most_angle(reading):
            return Guess("angle", "the angle of a sine or cosine has an index")
        if body.functions:
            return Guess("functions", f"tl.{body.functions[0]}")
        if "/" in ast.unparse(self._node):
            return Guess("functions", "divisions")
        texts = [access.value.text for access in body.accesses if access.value is not None]
        several = any(text is None or _rounds_often(text) for text in texts)
        return Guess("functions", "several roundings") if several else Guess("elementwise", "no function")

    def _most_angle(self, reading: _Reading) -> str:
        """Return the most of what multiplies loaded numbers in angles, over axes; empty if there is none or unknown."""
        most: list[str] = []
        for term in dict.fromkeys(term for angle in self._body.angles for term in angle):
            factors: list[str] = []
            for atom in term:
                if atom.startswith("%pid"):
                    factors.append(reading.grid[int(atom[4:])] if int(atom[4:]) < len(reading.grid) else "")
                elif not atom.startswith("%loaded:") and not re.fullmatch(r"-?\d+", atom):
                    factors.append(self._body.atom_bounds.get(atom, "") if atom.startswith("%") else atom)
            if not all(factors):
                return ""
            most += [" * ".join(text if text.isidentifier() else f"({text})" for text in factors)] if factors else []
        return " + ".join(dict.fromkeys(most))

    def _proposed(self, parameters: Sequence[FoundParameter], reading: _Reading) -> tuple[tuple[str, str], ...]:
        """Return NumPy's expression of each output where every element depends on those at the same offset."""
        body = self._body
        if body.reductions or body.products or body.selections or body.summed_in_loop or body.indices:
            return ()
        strides = {name for name in self._names if name in reading.strides or "stride" in name.lower()}
        offsets = {
            frozenset(tuple(factor for factor in term if factor not in strides) for term in access.offset or ())
            for access in body.accesses
        }
        buffers = {parameter.shape.value for parameter in parameters if parameter.shape is not None}
        if len(offsets) != 1 or len(buffers) != 1 or any(access.kind == "atomic" for access in body.accesses):
            return ()
        roles = ("input", "in_out", "size", "scalar")
        known = {parameter.name for parameter in parameters if parameter.role.value in roles} | {"xp", "special"}
        outputs: list[tuple[str, str]] = []
        for name in [parameter.name for parameter in parameters if parameter.role.value in ("output", "in_out")]:
            stores = [access.value for access in self._accesses(name) if access.kind == "store"]
            text = stores[0].text if len(stores) == 1 and stores[0] is not None else None
            if not text or not set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", text)) <= known:
                return ()
            outputs.append((name, text))
        return tuple(outputs)


def _rounds_often(text: str) -> bool:
    """Return whether an expression adds what was rounded before, so that its sum may cancel, or has many roundings."""
    nodes = [node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.BinOp)]
    sums = [node for node in nodes if isinstance(node.op, ast.Add | ast.Sub)]
    inner = [part for node in sums for part in ast.walk(node) if isinstance(part, ast.BinOp) and part is not node]
    return bool(inner) or len(nodes) > 3


def _names_in(*expressions: str) -> set[str]:
    """Return the names in Python's text, without those of functions."""
    trees = [ast.parse(text, mode="eval") for text in expressions]
    called = {id(node.func) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)}
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}


def _with_derived(names: set[str], derived: Mapping[str, str]) -> set[str]:
    """Return names with all those that they follow from."""
    known = set(names)
    while more := _names_in(*(derived[name] for name in known if name in derived)) - known:
        known |= more
    return known


def _ordered(expressions: Mapping[str, str]) -> dict[str, str]:
    """Return expressions in an order in which each asks only for names before it."""
    ordered: dict[str, str] = {}
    waiting = dict(expressions)
    while waiting:
        ready = [
            name
            for name, text in waiting.items()
            if not set(re.findall(r"[A-Za-z_]\w*", text)) & (waiting.keys() - {name})
        ]
        for name in ready or list(waiting):
            ordered[name] = waiting.pop(name)
    return ordered


def _asked(node: ast.expr) -> ast.expr:
    """Return a heuristic's expression with the arguments by name: `args["N"]` is N."""
    text = re.sub(r"\b\w+\[(['\"])(\w+)\1\]", r"\2", ast.unparse(node))
    return ast.parse(text, mode="eval").body


def _all_arguments(node: _Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _operator(path: Path, node: _Function, decorator: ast.Call, name: str) -> FoundOperator:
    options = {keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg}
    schema, changed = options.get("schema"), options.get("mutates_args")
    elements = changed.elts if isinstance(changed, ast.Tuple | ast.List | ast.Set) else [changed] if changed else []
    plain, keywords = [*node.args.posonlyargs, *node.args.args], node.args.kwonlyargs
    defaults = [
        *zip(plain[len(plain) - len(node.args.defaults) :], node.args.defaults, strict=True),
        *zip(keywords, node.args.kw_defaults, strict=True),
    ]
    return FoundOperator(
        name,
        str(schema.value) if isinstance(schema, ast.Constant) and schema.value is not None else None,
        path,
        node.lineno,
        "python",
        node.name,
        arguments=tuple(
            (argument.arg, ast.unparse(argument.annotation) if argument.annotation else "")
            for argument in _all_arguments(node)
        ),
        returns=ast.unparse(node.returns) if node.returns else "",
        defaults={argument.arg: ast.unparse(default) for argument, default in defaults if default is not None},
        written=tuple(str(element.value) for element in elements if isinstance(element, ast.Constant)),
        keywords=tuple(argument.arg for argument in keywords),
    )
