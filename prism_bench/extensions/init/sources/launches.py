"""Launches in CUDA C++ host code, as Python expressions over the parameters of the kernels."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from prism_bench.compilation.host_source.syntax import Node, Tree, function_name, line_of, nodes_of
from prism_bench.extensions.init.sources.expressions import (
    Again,
    HostNames,
    NotSimple,
    Value,
    arguments_in,
    number_of,
    plain_text,
)
from prism_bench.extensions.init.sources.kernels import FoundLaunch, Guess, TemplateParameter, Unread, dtype_of
from prism_bench.extensions.init.sources.symbols import Symbols, text_of

# Launches as they are written: `kernel<<<grid, block, shared, stream>>>(...)` and calls of the runtime.

_RUNTIME = ("cudaLaunchKernel", "cudaLaunchCooperativeKernel", "cudaLaunchKernelEx", "cudaLaunchKernelExC")
_DRIVER = re.compile(r"cuLaunch\w*Kernel\w*")
_KERNEL_NAMES = ("identifier", "template_function", "qualified_identifier")
_ATTRIBUTES = ("gridDim", "blockDim", "dynamicSmemBytes")


@dataclass
class WrittenLaunch:
    """A launch in the source: the kernel's name as written, template arguments, configuration and arguments.

    `configuration` is grid, block and shared memory, without those left out.
    """

    tree: Tree
    symbols: Symbols
    node: Node
    called: Node
    configuration: list[Node]
    arguments: list[Node]
    is_cooperative: bool = False

    @property
    def kernel(self) -> str:
        """The kernel's name without namespace and template arguments."""
        return text_of(self.called).partition("<")[0].rpartition("::")[2].strip("& ")

    @property
    def line(self) -> int:
        return line_of(self.node)

    @property
    def template_arguments(self) -> list[Node]:
        """The template arguments."""
        listed = next(nodes_of(self.called, "template_argument_list"), None)
        return arguments_in(listed)

    @cached_property
    def enclosing(self) -> Node | None:
        """The function around the launch, or None."""
        return function_around(self.node)

    @cached_property
    def values(self) -> dict[str, Value]:
        """The values of variables at the launch."""
        return local_values(self.enclosing, self.node)


def written_launches(tree: Tree, symbols: Symbols) -> tuple[list[WrittenLaunch], list[Unread]]:
    """Return the launches of a file in order, and the places with a launch that names no kernel."""
    launches: list[WrittenLaunch] = []
    unread: list[Unread] = []
    for node in nodes_of(tree.root, "call_expression"):
        called, nodes = node.child_by_field_name("function"), arguments_in(node.child_by_field_name("arguments"))
        configured = next((child for child in node.children if child.type == "kernel_call_syntax"), None)
        if configured is not None:
            launches.append(WrittenLaunch(tree, symbols, node, called, arguments_in(configured)[:3], nodes))
            continue
        name = text_of(called).partition("<")[0]
        if name in _RUNTIME:
            launch = _by_runtime(tree, symbols, node, name, nodes)
            if launch is None:
                reason = f"{name} with arguments that are not followed; taken: {name}(kernel, grid, block, args, ...)"
                unread.append(Unread(tree.path, line_of(node), reason))
            else:
                launches.append(launch)
        elif _DRIVER.fullmatch(name):
            reason = f"{name} launches a module's function by a handle; name the kernel and its launch in a spec"
            unread.append(Unread(tree.path, line_of(node), reason))
    every: list[WrittenLaunch] = []
    for launch in launches:
        chosen = _chosen(launch)
        launch.called = _kernel_behind(launch.called, launch.values)
        every += chosen if len(chosen) > 1 else [launch]
    return every, unread


def _chosen(launch: WrittenLaunch) -> list[WrittenLaunch]:
    """Return a launch of each kernel that the function around assigns to a variable in branches."""
    if launch.called.type != "identifier" or launch.enclosing is None:
        return []
    kernels: list[Node] = []
    for node in nodes_of(launch.enclosing, "assignment_expression"):
        if text_of(node.child_by_field_name("left")) == launch.kernel:
            kernels.append(_unwrapped(node.child_by_field_name("right")))
    return [replace(launch, called=kernel) for kernel in kernels if kernel.type in _KERNEL_NAMES]


def _by_runtime(tree: Tree, symbols: Symbols, node: Node, name: str, nodes: list[Node]) -> WrittenLaunch | None:
    """Return the launch of `cudaLaunchKernel(f, grid, block, args, shared, stream)` and its relatives."""
    values = local_values(function_around(node), node)
    cooperative = "Cooperative" in name
    if "Ex" not in name:
        if len(nodes) < 4:
            return None
        listed = _listed(nodes[3], values)
        if listed is None:
            return None
        shared = nodes[4:5]
        return WrittenLaunch(tree, symbols, node, _unwrapped(nodes[0]), [*nodes[1:3], *shared], listed, cooperative)
    if len(nodes) < 2:
        return None
    configured = text_of(nodes[0]).lstrip("& ")
    value = values.get(configured)
    parts: dict[int, Node] = {}
    if value is not None and not isinstance(value, str | Again) and value.type == "initializer_list":
        parts = dict(enumerate(arguments_in(value)[:3]))
    for place, attribute in enumerate(_ATTRIBUTES):
        part = values.get(f"{configured}.{attribute}")
        if part is not None and not isinstance(part, str | Again):
            parts[place] = part
    if 0 not in parts or 1 not in parts:
        return None
    configuration = [part for _, part in sorted(parts.items())]
    arguments = nodes[2:]
    if name.endswith("C"):
        listed = _listed(nodes[2], values) if len(nodes) > 2 else None
        if listed is None:
            return None
        arguments = listed
    return WrittenLaunch(tree, symbols, node, _unwrapped(nodes[1]), configuration, arguments, cooperative)


def _listed(node: Node, values: Mapping[str, Value]) -> list[Node] | None:
    """Return the arguments in `void* args[] = {&a, &b}`; None if the list is not there."""
    if text_of(node) in ("nullptr", "NULL", "0"):
        return []
    value = values.get(text_of(_unwrapped(node)))
    if value is None or isinstance(value, str | Again):
        value = node if node.type in ("initializer_list", "compound_literal_expression") else None
    if value is None:
        return None
    listed = next(nodes_of(value, "initializer_list"), None)
    return [_unwrapped(item) for item in arguments_in(listed)] if listed is not None else None


def _unwrapped(node: Node) -> Node:
    """Return what a cast, brackets or `&` are around."""
    while node.type in ("cast_expression", "parenthesized_expression", "pointer_expression", "call_expression"):
        if node.type == "call_expression":
            nodes = arguments_in(node.child_by_field_name("arguments"))
            if "_cast" not in text_of(node.child_by_field_name("function")) or len(nodes) != 1:
                break
            node = nodes[0]
        else:
            inner = node.child_by_field_name("value") or node.child_by_field_name("argument")
            node = inner or node.named_children[-1]
    return node


def _kernel_behind(called: Node, values: Mapping[str, Value]) -> Node:
    """Return the kernel behind a variable, `auto kernel = &f<64>`."""
    for _ in range(4):
        value = values.get(text_of(called))
        if value is None or isinstance(value, str | Again):
            break
        value = _unwrapped(value)
        if value.type == "conditional_expression":
            value = _unwrapped(value.child_by_field_name("consequence"))
        if value.type not in _KERNEL_NAMES:
            break
        called = value
    return called


def function_around(node: Node) -> Node | None:
    """Return the function definition around a node, or None."""
    while node is not None and node.type != "function_definition":
        node = node.parent
    return node


# Values of names before a launch.

_EXTENT_TYPES = ("dim3", "uint3")


def local_values(scope: Node | None, before: Node) -> dict[str, Value]:
    """Return the last values that variables of a function get before a node, in blocks around it."""
    values: dict[str, Node | str] = {}
    for node in _statements(scope, before) if scope is not None else ():
        if node.type == "assignment_expression":
            name, value = node.child_by_field_name("left"), node.child_by_field_name("right")
            plain = node.child_by_field_name("operator")
            if plain is not None and plain.type != "=" or name.type not in ("identifier", "field_expression"):
                continue
            earlier = values.get(text_of(name))
            is_again = text_of(name) in _names(value)
            if not is_again or earlier is not None:
                values[text_of(name)] = Again(value, earlier) if is_again and earlier is not None else value
            continue
        if node.type == "pointer_expression":
            values.pop(text_of(node.child_by_field_name("argument")), None)  # `&n`: a call sets it
            continue
        name, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if value is None and node.parent.type == "declaration":
            kind = node.parent.child_by_field_name("type")
            if kind is not None and text_of(kind) in _EXTENT_TYPES:  # `dim3 grid(n)` looks like a function's head
                value = node.child_by_field_name("parameters")
        if name is not None and name.type != "identifier":
            name = next(nodes_of(name, "identifier"), None)
        if name is not None and value is not None:
            values[text_of(name)] = value
    node = before
    while node is not None and node is not scope:
        outer = node.parent
        if node.type == "for_statement" and (update := node.child_by_field_name("update")) is not None:
            for name in nodes_of(update, "identifier"):
                values.pop(text_of(name), None)  # it changes between launches
        if node.type == "case_statement" and (chosen := node.child_by_field_name("value")) is not None:
            switch = outer.parent
            condition = switch.child_by_field_name("condition") if switch is not None else None
            if condition is not None:
                values[plain_text(condition)] = chosen
        node = outer
    return values


def _names(node: Node) -> set[str]:
    return {text_of(inner) for inner in nodes_of(node, "identifier")}


def _statements(scope: Node, before: Node) -> Iterator[Node]:
    """Yield declarations and assignments before a node that reach it: not those in other blocks."""
    end = before.start_byte
    waiting = [scope]
    while waiting:
        node = waiting.pop()
        if node.start_byte >= end:
            continue
        is_set = node.type == "pointer_expression" and node.parent.type == "argument_list" and text_of(node)[0] == "&"
        if node.type in ("init_declarator", "function_declarator", "assignment_expression") or is_set:
            if node.end_byte <= end:
                yield node
            if node.type != "init_declarator" or node.end_byte <= end:
                continue
        beside = node.type in ("case_statement", "lambda_expression", "else_clause") and node.end_byte <= end
        if not beside:
            waiting += reversed(node.children)


# A launch as expressions over the kernel's parameters.

_USUAL_BLOCK, _USUAL_AXIS = 256, 1024
_PARTS = ("grid", "block", "shared memory")


def read_launch(
    written: WrittenLaunch,
    parameters: Sequence[tuple[str, str]],
    template: Sequence[TemplateParameter],
    project: Symbols,
    fields: Mapping[int, Sequence[str]],
) -> FoundLaunch:
    """Return the launch as expressions over the kernel's parameters, with a list of expressions that are not simple.

    `parameters` are names and types; a parameter that no expression may ask for, such as a pointer, is the empty name.
    `fields` are the names of the fields of structures by their places among the parameters.
    """
    names = _host_names(written, [name for name, _ in parameters], project)
    for place, members in fields.items():
        for node in written.arguments[place : place + 1]:
            value = names.values.get(plain_text(node))
            value = value if value is not None and not isinstance(value, str | Again) else node
            listed = next(nodes_of(value, "initializer_list"), None)
            names.passed |= {f"{plain_text(node)}.{member}": member for member in members}
            for inner, member in zip(arguments_in(listed), members, strict=False):
                if inner.type == "identifier":
                    names.passed.setdefault(text_of(inner), member)
    unread: list[Unread] = []
    parts: dict[str, tuple[str, ...] | None] = dict.fromkeys(_PARTS, ("0",))
    for part, node in zip(_PARTS, written.configuration, strict=False):
        try:
            parts[part] = names.extents(node) if part != "shared memory" else (names.python(node),)
        except NotSimple as error:
            parts[part] = None
            unread.append(Unread(written.tree.path, line_of(node), f"{part}: {error}"))
    grid, block, shared = parts.values()
    in_block, in_launch = _identifiers(block), _identifiers(grid, block, shared)
    arguments = _template_arguments(written, names, template, [kind for _, kind in parameters])
    free: list[tuple[str, Guess[int]]] = []
    for name in filter(in_launch.__contains__, names.free):
        usual = Guess(_USUAL_AXIS, "no value in the file")
        if name in in_block:
            usual = Guess(_USUAL_BLOCK, "a usual number of threads; the file does not say")
        free.append((name, _passed_by_caller(name, written, names) or usual))
    passed, derived = _passed_values(written, names, [name for name, _ in parameters], in_launch)
    return FoundLaunch(
        written.tree.path,
        written.line,
        grid,
        block,
        shared[0] if shared else None,
        arguments,
        tuple(free),
        passed=tuple(passed),
        derived=tuple(derived),
        is_cooperative=written.is_cooperative,
        unread=tuple(unread),
    )


def _identifiers(*parts: tuple[str, ...] | None) -> set[str]:
    return {name for expressions in parts for text in expressions or () for name in re.findall(r"[A-Za-z_]\w*", text)}


def _host_names(written: WrittenLaunch, parameters: Sequence[str], project: Symbols) -> HostNames:
    """Return what names mean at the launch."""
    symbols, passed = written.symbols.with_others(project), dict[str, str]()
    values = {**_of_template(written, symbols), **written.values}
    for node, parameter in zip(written.arguments, parameters, strict=False):
        text, inner = plain_text(node), values.get(plain_text(node))
        if not parameter or re.fullmatch(r"[\d.]+\w*|true|false|nullptr|NULL", text):
            continue
        passed.setdefault(text, parameter)
        if inner is not None and not isinstance(inner, str | Again):
            behind = plain_text(inner)
            if not re.fullmatch(r"[-\d.]+\w*|true|false", behind) and not inner.type.endswith("_list"):
                passed.setdefault(behind, parameter)
    types = {name: value for name, value in values.items() if isinstance(value, str) and dtype_of(value)}
    types |= {"scalar_t": "float"}
    return HostNames(symbols, passed, values, types=types)


def _of_template(written: WrittenLaunch, symbols: Symbols) -> dict[str, Value]:
    """Return the values of the host template's parameters: of a call, an explicit instantiation, or the default."""
    function = written.enclosing
    outer = function.parent if function is not None else None
    if function is None or outer is None or outer.type != "template_declaration":
        return {}
    listed = outer.child_by_field_name("parameters")
    declared = [node for node in (listed.named_children if listed is not None else ()) if "declaration" in node.type]
    names = [text_of(node).partition("=")[0].replace("...", " ").split()[-1] for node in declared]
    values: dict[str, Node | str] = {}
    for name, node in zip(names, declared, strict=True):
        default = node.child_by_field_name("default_value") or node.child_by_field_name("default_type")
        if default is not None:
            values[name] = default
    host = (function_name(function, written.tree) or "").rpartition("::")[2]
    instances = [arguments_in(listed) for listed in symbols.instances.get(host, ())]
    for called in nodes_of(written.tree.root, "template_function"):
        if text_of(called.child_by_field_name("name")) == host and called.parent.type == "call_expression":
            instances.append(arguments_in(called.child_by_field_name("arguments")))
    for node, name in zip(instances[0] if instances else (), names, strict=False):
        values[name] = node
    for name, value in values.items():
        plain = "" if isinstance(value, str | Again) else symbols.plain_type(text_of(value))
        values[name] = plain if dtype_of(plain) else value
    return values


def _template_arguments(
    written: WrittenLaunch, names: HostNames, template: Sequence[TemplateParameter], kinds: Sequence[str]
) -> tuple[str, ...]:
    """Return the template arguments as an entry has them, empty where no value is known; deduced ones by types."""
    arguments = [_template_argument(node, names) for node in written.template_arguments]
    for parameter in template[len(arguments) :]:
        deduced = ""
        for kind, node in zip(kinds, written.arguments, strict=False):
            if parameter.kind == "typename" and re.search(rf"\b{re.escape(parameter.name)}\b", kind) and not deduced:
                deduced = _declared_type(node, written, names)
        arguments.append(deduced)
    while arguments and not arguments[-1]:
        arguments.pop()
    return tuple(arguments)


def _template_argument(node: Node, names: HostNames) -> str:
    text = " ".join(text_of(node).split())
    plain = names.symbols.plain_type(names.types.get(text, text))
    if text != "scalar_t" and dtype_of(plain):
        return plain
    if text in names.symbols.enumerators or "::".join(text.split("::")[-2:]) in names.symbols.enumerators:
        return text
    known = HostNames(names.symbols, {}, names.values, types=names.types)
    try:
        value = known.python(node)
    except NotSimple:
        value = ""
    number = number_of(value)
    if value in ("True", "False"):
        return value.lower()
    if number is not None:
        return str(int(number))
    base = re.match(r"[\w:]+", text)
    parts = re.findall(r"[A-Za-z_]\w*", text)
    of_classes = base is not None and parts[-1] not in names.values and all(
        part in names.symbols.classes or part in names.symbols.constants or dtype_of(part) or part in ("std", "cub")
        for part in parts
    )  # fmt: skip
    return text if of_classes and parts else ""


def _declared_type(node: Node, written: WrittenLaunch, names: HostNames) -> str:
    """Return the type of the elements of a host variable that is passed, empty if the function does not declare it."""
    text = plain_text(node)
    match = re.search(r"data_ptr<(.+?)>\(", text) or re.search(r"_cast<(?:const)?(.+?)\*>\(", text)
    if match is None and written.enclosing is not None and text.isidentifier():
        pattern = (
            r"(?<![\w.>])([\w:]+(?:\s+[\w:]+)?)\s*(?:const\s*)?[*&\s]\s*(?:__restrict__\s*)?(?:\w+\s*,\s*\*?\s*)*"
            rf"{text}\b"
        )
        matches = re.finditer(pattern, text_of(written.enclosing))
        kinds = ((match, names.symbols.plain_type(names.types.get(match[1], match[1]))) for match in matches)
        match = next((match for match, plain in kinds if dtype_of(plain)), None)
    if match is None:
        made = re.fullmatch(r"(\w+)[{(].*[})]", text)  # a functor: `Square{}`
        return made[1] if made is not None and made[1] in names.symbols.structures else ""
    plain = names.symbols.plain_type(names.types.get(match[1], match[1]))
    return " ".join(word for word in plain.split() if word != "const") if dtype_of(plain) else ""


def _passed_values(
    written: WrittenLaunch, names: HostNames, parameters: Sequence[str], in_launch: set[str]
) -> tuple[list[tuple[str, Guess[float]]], list[tuple[str, str]]]:
    """Return the numbers that the launch passes, and expressions of parameters over names of the launch."""
    passed: list[tuple[str, Guess[float]]] = []
    derived: list[tuple[str, str]] = []
    for node, parameter in zip(written.arguments, parameters, strict=False):
        if not parameter:
            continue
        others = {text: name for text, name in names.passed.items() if name != parameter}
        reader = HostNames(names.symbols, others, names.values, types=names.types)
        try:
            text = reader.python(node)
        except NotSimple:
            continue
        number = number_of(text)
        if number is not None:
            is_varied = parameter in in_launch
            if not is_varied:
                passed.append((parameter, Guess(number, f"passed in line {line_of(node)}")))
        elif text in parameters and text != parameter and parameter not in in_launch:
            derived.append((parameter, text))  # the launch passes it twice
        elif not text.isidentifier() and _identifiers((text,)) & (in_launch | set(parameters)):
            derived.append((parameter, text))
    return passed, derived


def _passed_by_caller(name: str, written: WrittenLaunch, names: HostNames) -> Guess[int] | None:
    """Return the number that another function of the file passes for this parameter of the launching function."""
    tree, function = written.tree, written.enclosing
    listed = next(nodes_of(function, "parameter_list"), None) if function is not None else None
    if function is None or listed is None:
        return None
    declared = [node for node in listed.named_children if "parameter_declaration" in node.type]
    ending = re.compile(rf"\b{re.escape(name)}\s*(=|$)")
    place = next((place for place, node in enumerate(declared) if ending.search(text_of(node))), None)
    host_name = function_name(function, tree)
    if place is None:
        return None
    for call in nodes_of(tree.root, "call_expression"):
        called = text_of(call.child_by_field_name("function")).partition("<")[0].rpartition("::")[2]
        nodes = arguments_in(call.child_by_field_name("arguments"))
        if called == host_name and len(nodes) > place:
            reader = HostNames(names.symbols, {}, local_values(function_around(call), call))
            try:
                number = number_of(reader.python(nodes[place]))
            except NotSimple:
                continue
            if isinstance(number, int):
                return Guess(number, f"passed in line {line_of(call)}")
    default = declared[place].child_by_field_name("default_value")
    number = number_of(text_of(default)) if default is not None else None
    return Guess(number, f"the default in line {line_of(declared[place])}") if isinstance(number, int) else None
