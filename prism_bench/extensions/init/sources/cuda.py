"""CUDA C++ files of a project: kernels, parameters, launches, and how buffers are used."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from prism_bench.compilation.host_source.syntax import Node, Tree, first_defect, function_name, line_of, nodes_of, walk
from prism_bench.extensions.init.sources.kernels import (
    FoundKernel,
    FoundLaunch,
    FoundParameter,
    Guess,
    Role,
    TemplateParameter,
    Unread,
    dtype_of,
)
from prism_bench.units import count_text

# How a kernel's body uses its pointers: what it reads and writes, and which shapes its indices suggest.

_COMPARISONS = ("<", "<=", ">", ">=", "!=")
_Access = tuple[int, bool, bool]  # where it takes place, reads, writes


@dataclass
class _BufferUse:
    """Use of a pointer in a kernel's body."""

    is_read: bool = False
    is_written: bool = False
    is_assigned_first: bool = False
    shape: Guess[str] | None = None
    accesses: list[_Access] = field(default_factory=list[_Access])
    terms: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])


def _buffer_use(body: Node | None, tree: Tree, pointers: Sequence[str], sizes: Sequence[str]) -> dict[str, _BufferUse]:
    """Return the use of each pointer in the body; `sizes` are the whole numbers that the kernel takes."""
    use = {name: _BufferUse() for name in pointers}
    if body is not None:
        reader = _BodyReader(tree, use)
        reader.read(body)
        bounds = _bounds(body, tree, sizes)
        for buffer in use.values():
            buffer.is_read = any(reads for _, reads, _ in buffer.accesses)
            buffer.is_written = any(writes for *_, writes in buffer.accesses)
            buffer.is_assigned_first = min(buffer.accesses, default=(0, True, False))[1:] == (False, True)
            buffer.shape = _shape(buffer.terms, sizes, bounds)
    for buffer in use.values():
        buffer.shape = buffer.shape or Guess(" ".join(sizes) or "1", "all whole numbers that the kernel takes")
    return use


class _BodyReader:
    """Reader of a body: it collects the accesses of each pointer, also through local pointers derived from it."""

    def __init__(self, tree: Tree, use: dict[str, _BufferUse]) -> None:
        self._tree, self._use = tree, use
        self._alias = {name: name for name in use}

    def read(self, body: Node) -> None:
        for node in walk(body):
            if node.type == "init_declarator":
                self._follow(node)
            elif node.type in ("subscript_expression", "pointer_expression"):
                self._add_access(node)

    def _follow(self, node: Node) -> None:
        """Follow `float* row = x + i * cols`."""
        declarator, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if value is None or declarator.type not in ("pointer_declarator", "reference_declarator"):
            return
        pointer, name = self._pointer_in(value), next(nodes_of(declarator, "identifier"), None)
        if pointer is not None and name is not None:
            self._alias[self._tree.text(name)] = pointer
            self._use[pointer].terms += self._terms(value)

    def _add_access(self, node: Node) -> None:
        argument = node.child_by_field_name("argument")
        if argument is None or node.type == "pointer_expression" and self._tree.text(node).startswith("&"):
            return
        pointer = self._pointer_in(argument)
        if pointer is not None:
            self._use[pointer].accesses.append(_access(node))
            index = node.child_by_field_name("indices") if node.type == "subscript_expression" else argument
            self._use[pointer].terms += self._terms(index)

    def _pointer_in(self, node: Node) -> str | None:
        """Return the first pointer of the kernel in an expression, or the pointer behind the first derived pointer."""
        names = map(self._tree.text, nodes_of(node, "identifier"))
        return next((self._alias[name] for name in names if name in self._alias), None)

    def _terms(self, index: Node) -> list[tuple[str, ...]]:
        """Return the names in each product of a sum: `i * cols + j` is (i, cols), (j,)."""
        terms: list[tuple[str, ...]] = []
        for node in _summands(index):
            names = tuple(
                self._tree.text(n)
                for n in nodes_of(node, "identifier", "field_expression")
                if self._tree.text(n) not in self._alias and n.parent.type != "field_expression"
            )
            terms += [names] if names else []
        return terms


def _access(node: Node) -> _Access:
    """Return where an element is accessed, and whether it is read and written there.

    An assignment writes after its right side has been read.
    """
    place, outer = node.start_byte, node.parent
    while outer is not None and outer.type in ("field_expression", "parenthesized_expression"):
        node, outer = outer, outer.parent
    if outer is not None and outer.type == "assignment_expression" and outer.child_by_field_name("left") == node:
        operator = outer.child_by_field_name("operator")
        return outer.end_byte, operator is None or operator.type != "=", True
    changed = outer is not None and outer.type in ("update_expression", "pointer_expression")
    return place, True, changed


def _summands(node: Node) -> list[Node]:
    """Return the parts of a sum, through brackets."""
    if node.type in ("subscript_argument_list", "parenthesized_expression"):
        return [part for child in node.named_children for part in _summands(child)]
    operator = node.child_by_field_name("operator")
    if node.type == "binary_expression" and operator.type in ("+", "-"):
        sides = node.child_by_field_name("left"), node.child_by_field_name("right")
        return [part for side in sides for part in _summands(side)]
    return [node]


def _bounds(body: Node, tree: Tree, sizes: Sequence[str]) -> dict[str, str]:
    """Return the size that each index is compared with: `i < rows` and `i >= rows` bound i by rows."""
    bounds: dict[str, str] = {}
    for node in nodes_of(body, "binary_expression"):
        left, right = tree.text(node.child_by_field_name("left")), tree.text(node.child_by_field_name("right"))
        if node.child_by_field_name("operator").type in _COMPARISONS:
            if right in sizes:
                bounds.setdefault(left, right)
            elif left in sizes:
                bounds.setdefault(right, left)
    return bounds


def _shape(terms: Iterable[tuple[str, ...]], sizes: Sequence[str], bounds: dict[str, str]) -> Guess[str] | None:
    """Return the shape that the index with the most sizes in a product suggests."""
    products = [[name for name in term if name in sizes] for term in terms]
    largest = max(products, key=len, default=[])
    if largest:
        term = next(t for t, p in zip(terms, products, strict=True) if p == largest)
        outer = next((bounds[name] for name in term if name in bounds and bounds[name] not in largest), None)
        free = [size for size in sizes if size not in largest]
        first = outer or next((size for size in free if sizes.index(size) < sizes.index(largest[0])), None)
        axes = [first or next(iter(free), "1"), *largest]
        return Guess(" ".join(axes), f"an index multiplies by {' and '.join(largest)}")
    bound = next((bounds[name] for term in terms for name in term if name in bounds), None)
    return Guess(bound, "the index is compared with it") if bound else None


# `__global__` functions of a CUDA C++ file: name, namespace, template parameters, parameters, launch bounds.

_CONTAINERS = (
    "translation_unit", "namespace_definition", "linkage_specification", "declaration_list", "preproc_if",
    "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
)  # fmt: skip


def _functions(
    node: Node, tree: Tree, namespace: str = "", template: Node | None = None
) -> Iterator[tuple[Node, str, Node | None]]:
    """Yield each function definition outside of classes with its namespace and template, in the source's order."""
    if node.type == "function_definition":
        yield node, namespace, template
    elif node.type == "template_declaration":
        for child in node.children:
            yield from _functions(child, tree, namespace, node)
    elif node.type in _CONTAINERS:
        name = node.child_by_field_name("name") if node.type == "namespace_definition" else None
        inner = "::".join(filter(None, (namespace, tree.text(name) if name else "")))
        for child in node.children:
            yield from _functions(child, tree, inner, template)


def kernels_of(tree: Tree) -> tuple[list[FoundKernel], list[Unread]]:
    """Return the kernels that the file defines, and the kernels that could not be read."""
    kernels: list[FoundKernel] = []
    unread: list[Unread] = []
    for node, namespace, template in _functions(tree.root, tree):
        if b"__global__" in tree.specifiers(node):
            kernel = _kernel(node, tree, namespace, template)
            if isinstance(kernel, Unread):
                unread.append(kernel)
            else:
                kernels.append(kernel)
    return kernels, unread + _generated(tree)


def _generated(tree: Tree) -> list[Unread]:
    """Return the macros that hold `__global__`: the kernels that they make have no text to read."""
    unread: list[Unread] = []
    for node in nodes_of(tree.root, "preproc_def", "preproc_function_def"):
        name, value = tree.text(node.child_by_field_name("name")), node.child_by_field_name("value")
        if value is not None and "__global__" in tree.text(value) and "(" in tree.text(value):
            unread.append(Unread(tree.path, line_of(node), f"macro {name} makes kernels; name them in a spec by entry"))
    return unread


def _kernel(node: Node, tree: Tree, namespace: str, template: Node | None) -> FoundKernel | Unread:
    name, parameters = function_name(node, tree), next(nodes_of(node, "parameter_list"), None)
    body = node.child_by_field_name("body")
    defect = next((d for part in node.children if part != body and (d := first_defect(part))), None)
    if name is None or parameters is None or defect is not None:
        line = line_of(defect or node)
        return Unread(tree.path, line, f"the head of kernel {name or '?'} cannot be read (a macro in it?)")
    raw = [_parameter(child, tree) for child in parameters.children if "parameter_declaration" in child.type]
    sizes = [parameter.name for parameter in raw if parameter.role.value == "size"]
    use = _buffer_use(body, tree, [parameter.name for parameter in raw if parameter.is_pointer], sizes)
    declarations = nodes_of(body, "declaration") if body is not None else ()
    storage = [tree.text(declaration).partition(";")[0].split("=")[0] for declaration in declarations]
    bounds = next(nodes_of(node, "launch_bounds"), None)
    return FoundKernel(
        "cuda",
        name,
        tree.path,
        line_of(node),
        tuple(_with_use(parameter, use) for parameter in raw),
        namespace=namespace,
        template_parameters=_template_parameters(template, tree),
        launch_bounds=tuple(map(tree.text, bounds.named_children)) if bounds is not None else (),
        dynamic_shared=any("extern" in text and "__shared__" in text for text in storage),
    )


def _parameter(node: Node, tree: Tree) -> FoundParameter:
    text, default = tree.text(node), node.child_by_field_name("default_value")
    declarator = node.child_by_field_name("declarator")
    named = next(nodes_of(declarator, "identifier"), None) if declarator else None
    head = text.partition("=")[0] if default else text
    kind = head[: head.rfind(tree.text(named))] if named else head
    written = " ".join(kind.replace("*", " * ").replace("&", " & ").split()).replace(" *", "*").replace(" &", "&")
    is_pointer = "*" in head or "[" in head
    name, dtype = tree.text(named) if named else "", dtype_of(kind)
    return FoundParameter(
        name,
        written,
        dtype,
        _role(written, dtype, is_pointer),
        is_pointer=is_pointer,
        is_const="const" in kind.partition("*")[0].split(),
        is_restrict="restrict" in head,
        default=tree.text(default) if default else None,
    )


def _role(written: str, dtype: str | None, is_pointer: bool) -> Guess[Role]:
    if is_pointer and "const" in written.partition("*")[0].split():
        return Guess("input", "const pointer")
    if is_pointer:
        return Guess("output", "pointer to what is not const")
    if dtype is None:
        return Guess("unknown", f"{written} is no number")
    if dtype.startswith(("int", "uint")):
        return Guess("size", "whole number passed by value")
    return Guess("scalar", "number passed by value")


def _with_use(parameter: FoundParameter, use: dict[str, _BufferUse]) -> FoundParameter:
    """Return the parameter with the role and shape that the body shows."""
    if not parameter.is_pointer:
        return parameter
    seen, role = use[parameter.name], parameter.role
    if role.value == "output" and seen.is_read and not seen.is_assigned_first:
        role = Guess[Role]("in_out", "pointer to what is not const, and the body reads it")
    elif role.value == "output" and not seen.is_written:
        role = Guess[Role]("in_out", "pointer to what is not const, passed on to a function")
    return replace(parameter, role=role, shape=seen.shape)


def _template_parameters(template: Node | None, tree: Tree) -> tuple[TemplateParameter, ...]:
    parameters: list[TemplateParameter] = []
    listed = template.child_by_field_name("parameters") if template is not None else None
    for node in listed.children if listed is not None else ():
        if node.type.endswith("declaration"):
            default = node.child_by_field_name("default_value") or node.child_by_field_name("default_type")
            *kind_words, name = tree.text(node).partition("=")[0].replace("...", " ").split()
            kind = " ".join(kind_words)
            kind = "typename" if kind == "class" else kind
            parameters.append(TemplateParameter(name, kind, tree.text(default) if default else None))
    return tuple(parameters)


# Host expressions of a launch as Python over axes: names, numbers, sums, products, ceil divisions, dim3 of these.

_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "//", "%": "%", "<<": "<<", ">>": ">>"}
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_CEIL_DIVISION = re.compile(
    r"(?i)^(?:\w+::)*(ceil_?div|cdiv|div_?up|up_?div|div_?ceil|ceil_?divide|div_?round_?up|i?div_?up|"
    r"(int_)?ceil_?div(ision)?|blocks_?for|get_?num_?blocks)$"
)
_EXTENT_TYPES = ("dim3", "uint3")
_LISTS = ("argument_list", "initializer_list", "parameter_list")
_CASTS = ("static_cast", "int", "unsigned", "size_t", "uint32_t", "int64_t", "long")
_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2,
          "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16}  # fmt: skip
_SUFFIX = re.compile(r"(?<=[0-9a-fA-F])[uUlLzZ]+$")
_DEEPEST = 12  # initialisers within initialisers


class NotSimple(Exception):
    """An expression that is no name, number, arithmetic or ceil division; the message has its text."""


@dataclass
class _HostNames:
    """What names mean where a launch is written.

    `passed` are host variables that the launch passes, with the kernel's own parameter for each. `values` are
    initialisers of local variables and constants, `macros` numbers that `#define` names. All other names are `free`:
    axes that the spec has to have.
    """

    tree: Tree
    passed: Mapping[str, str]
    values: Mapping[str, Node]
    macros: Mapping[str, str]
    free: dict[str, None] = field(default_factory=dict[str, None])

    def python(self, node: Node, depth: int = 0) -> str:
        """Return the expression as Python; raise NotSimple if it is not simple."""
        if depth > _DEEPEST:
            raise NotSimple("an initialiser refers to itself")
        reader = getattr(self, f"_{node.type}", None)
        if reader is None:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is no name, number, arithmetic or ceil division")
        return reader(node, depth + 1)

    def extents(self, node: Node, depth: int = 0) -> tuple[str, ...]:
        """Return a grid or block as one to three expressions, from a number, a dim3 or a variable."""
        if node.type == "identifier" and self.tree.text(node) not in self.passed:
            value = self.values.get(self.tree.text(node))
            if value is not None and depth < _DEEPEST and self._is_several(value):
                return self.extents(value, depth + 1)
        if node.type in _LISTS:
            return self._several(node)
        if node.type != "identifier" and self._is_several(node):
            return self._several(node.child_by_field_name("arguments") or node.child_by_field_name("value"))
        return (self.python(node),)

    def _is_several(self, node: Node) -> bool:
        """Return whether a node is a dim3, an initialiser of a dim3, or a variable."""
        called = node.child_by_field_name("function") or node.child_by_field_name("type")
        of_call = node.type in ("call_expression", "compound_literal_expression") and called is not None
        return node.type in (*_LISTS, "identifier") or of_call and self.tree.text(called) in _EXTENT_TYPES

    def _several(self, node: Node) -> tuple[str, ...]:
        parts = tuple(map(self.python, arguments_in(node)))
        if not 1 <= len(parts) <= 3:
            raise NotSimple(f"'{_short(self.tree.text(node))}' has {count_text(len(parts), 'extent')}")
        while len(parts) > 1 and parts[-1] == "1":
            parts = parts[:-1]
        return parts

    def _identifier(self, node: Node, depth: int) -> str:
        name = self.tree.text(node)
        if name in self.passed:
            return self.passed[name]
        if name in self.macros:
            return self.macros[name]
        value = self.values.get(name)
        if value is not None:
            try:
                return self.python(value, depth)
            except NotSimple:
                pass  # a tensor's size, say: the name itself becomes an axis
        self.free[name] = None
        return name

    _type_identifier = _identifier  # `dim3 grid(n)` has the form of a function's declaration

    def _number_literal(self, node: Node, depth: int) -> str:
        text = _SUFFIX.sub("", self.tree.text(node).replace("'", ""))
        try:
            return str(int(text, 0) if not re.fullmatch(r"0[0-7]+", text) else int(text, 8))
        except ValueError:
            pass
        try:
            return str(int(number)) if (number := float(text.rstrip("fF"))).is_integer() else str(number)
        except ValueError as error:
            raise NotSimple(f"'{text}' is no number") from error

    def _parenthesized_expression(self, node: Node, depth: int) -> str:
        return self.python(node.named_children[0], depth)

    _condition_clause = _parenthesized_expression

    def _argument_list(self, node: Node, depth: int) -> str:
        """`const int n(4)` and `int n{4}`."""
        if len(node.named_children) != 1:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is no single value")
        return self.python(node.named_children[0], depth)

    _initializer_list = _parameter_declaration = _argument_list

    def _binary_expression(self, node: Node, depth: int) -> str:
        left, right = (self.python(node.child_by_field_name(side), depth) for side in ("left", "right"))
        operator = node.child_by_field_name("operator").type
        if operator in _COMPARED:
            return f"({left} {operator} {right})"
        if operator not in _OPERATORS:
            raise NotSimple(f"'{_short(self.tree.text(node))}' has the operator {operator}")
        ceiling = _ceil_division(left, right) if operator == "/" else None
        return ceiling or f"({left} {_OPERATORS[operator]} {right})"

    def _unary_expression(self, node: Node, depth: int) -> str:
        if not self.tree.text(node).startswith("-"):
            raise NotSimple(f"'{_short(self.tree.text(node))}' has an operator that Python has not")
        return f"-{self.python(node.child_by_field_name('argument'), depth)}"

    def _conditional_expression(self, node: Node, depth: int) -> str:
        parts = (self.python(node.child_by_field_name(n), depth) for n in ("condition", "consequence", "alternative"))
        condition, yes, no = parts
        return f"({yes} if {condition} else {no})"

    def _cast_expression(self, node: Node, depth: int) -> str:
        return self.python(node.child_by_field_name("value"), depth)

    def _sizeof_expression(self, node: Node, depth: int) -> str:
        kind = node.child_by_field_name("type")
        dtype = dtype_of(self.tree.text(kind)) if kind is not None else None
        if dtype is None:
            raise NotSimple(f"'{_short(self.tree.text(node))}' is not known without a compiler")
        return str(_BYTES[dtype])

    def _call_expression(self, node: Node, depth: int) -> str:
        name = self.tree.text(node.child_by_field_name("function"))
        arguments = arguments_in(node.child_by_field_name("arguments"))
        without_template = name.partition("<")[0]
        plain = without_template.rpartition("::")[2]
        if _CEIL_DIVISION.match(without_template) and len(arguments) == 2:
            return self._rounded_up(arguments, depth)
        if plain in ("min", "max") and len(arguments) == 2:
            left, right = (self.python(argument, depth) for argument in arguments)
            return f"{plain}({left}, {right})"
        if plain in ("ceil", "ceilf") and len(arguments) == 1 and (sides := _divided(arguments[0])):
            return self._rounded_up(sides, depth)
        if without_template in _CASTS and len(arguments) == 1:
            return self.python(arguments[0], depth)
        raise NotSimple(f"'{_short(self.tree.text(node))}' is a call that is not known")

    def _rounded_up(self, sides: Iterable[Node], depth: int) -> str:
        above, below = (self.python(side, depth) for side in sides)
        return f"-(-{above} // {below})"


def arguments_in(brackets: Node | None) -> list[Node]:
    """Return the expressions in the brackets of a call, a list or a launch, without comments."""
    return [child for child in brackets.named_children if child.type != "comment"] if brackets is not None else []


def _divided(node: Node) -> tuple[Node, Node] | None:
    """Return the two sides of a division, through brackets and casts."""
    while node.type in ("parenthesized_expression", "cast_expression"):
        node = node.child_by_field_name("value") or node.named_children[-1]
    if node.type == "binary_expression" and node.child_by_field_name("operator").type == "/":
        return node.child_by_field_name("left"), node.child_by_field_name("right")
    return None


def _ceil_division(above: str, below: str) -> str | None:
    """Return `(n + 256 - 1) / 256` and `(n + 255) / 256` as a ceil division of Python; None for other divisions."""
    match = re.fullmatch(r"\(\((.+) \+ (.+)\) - 1\)", above)
    if match and match[2] == below:
        return f"-(-{match[1]} // {below})"
    match = re.fullmatch(r"\((.+) \+ (\d+)\)", above)
    if match and below.isdigit() and int(match[2]) == int(below) - 1:
        return f"-(-{match[1]} // {below})"
    return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


# Launches `kernel<<<grid, block, shared, stream>>>(...)` of a file, as expressions over the kernel's parameters.

_BY_CALL = re.compile(r"\bcu(?:da)?Launch(?:Cooperative)?Kernel\w*\s*\(")
_NUMBER = re.compile(r"#[ \t]*define[ \t]+(\w+)[ \t]+\(?(\d+)[uU]?\)?[ \t]*(?://.*|/\*.*)?$", re.MULTILINE)
_USUAL_BLOCK, _USUAL_AXIS = 256, 1024


@dataclass(frozen=True)
class WrittenLaunch:
    """A launch in the source: the kernel's name, and the parts of the call."""

    tree: Tree
    node: Node

    @property
    def kernel(self) -> str:
        """The kernel's name without namespace and template arguments."""
        return self.tree.text(self._called).partition("<")[0].rpartition("::")[2].strip()

    @property
    def line(self) -> int:
        return line_of(self.node)

    @property
    def template_arguments(self) -> tuple[str, ...]:
        """The template arguments, as written."""
        listed = next(nodes_of(self._called, "template_argument_list"), None)
        return tuple(map(self.tree.text, listed.named_children)) if listed is not None else ()

    @property
    def arguments(self) -> list[Node]:
        """The arguments of the kernel."""
        return arguments_in(self.node.child_by_field_name("arguments"))

    @property
    def configuration(self) -> list[Node]:
        """Grid, block, shared memory and stream, without those left out."""
        return arguments_in(next(child for child in self.node.children if child.type == "kernel_call_syntax"))

    @property
    def _called(self) -> Node:
        return self.node.child_by_field_name("function")

    @cached_property
    def enclosing(self) -> Node | None:
        """The host function around the launch, or None."""
        return _function_around(self.node)


def written_launches(tree: Tree) -> tuple[list[WrittenLaunch], list[Unread]]:
    """Return the launches of a file in order, and the places with a launch in another form."""
    launches: list[WrittenLaunch] = []
    unread: list[Unread] = []
    for node in nodes_of(tree.root, "call_expression"):
        if any(child.type == "kernel_call_syntax" for child in node.children):
            launches.append(WrittenLaunch(tree, node))
        if call := _BY_CALL.match(tree.text(node)):
            reason = f"{call[0].rstrip('( ')} launches by pointers, which are not followed"
            unread.append(Unread(tree.path, line_of(node), reason))
    for node in nodes_of(tree.root, "preproc_def", "preproc_function_def"):
        if "<<<" in tree.text(node):
            name = tree.text(node.child_by_field_name("name"))
            unread.append(Unread(tree.path, line_of(node), f"macro {name} holds a launch, which is not read"))
    return launches, unread


def read_launch(written: WrittenLaunch, parameters: Sequence[str]) -> FoundLaunch:
    """Return the launch as expressions over the kernel's `parameters`, with a list of expressions that are not simple.

    A parameter that no expression may ask for, such as a pointer, is the empty name.
    """
    names = _names(written, parameters)
    unread: list[Unread] = []
    parts: dict[str, tuple[str, ...] | None] = dict.fromkeys(("grid", "block", "shared memory"), ("0",))
    for part, node in zip(parts, written.configuration, strict=False):
        try:
            parts[part] = names.extents(node) if part != "shared memory" else (names.python(node),)
        except NotSimple as error:
            parts[part] = None
            unread.append(Unread(written.tree.path, line_of(node), f"{part}: {error}"))
    grid, block, shared = parts.values()
    in_block, in_launch = _identifiers(block), _identifiers(grid, block, shared)
    free: list[tuple[str, Guess[int]]] = []
    for name in filter(in_launch.__contains__, names.free):
        usual = Guess(_USUAL_AXIS, "no value in the file")
        if name in in_block:
            usual = Guess(_USUAL_BLOCK, "a usual number of threads; the file does not say")
        free.append((name, _passed_by_caller(name, written) or usual))
    return FoundLaunch(
        written.tree.path,
        written.line,
        grid,
        block,
        shared[0] if shared else None,
        written.template_arguments,
        tuple(free),
        tuple(unread),
    )


def _identifiers(*parts: tuple[str, ...] | None) -> set[str]:
    return {name for expressions in parts for text in expressions or () for name in re.findall(r"\w+", text)}


def _names(written: WrittenLaunch, parameters: Sequence[str]) -> _HostNames:
    """Return what names mean at the launch."""
    tree, passed = written.tree, dict[str, str]()
    for node, parameter in zip(written.arguments, parameters, strict=False):
        while node.type == "cast_expression":
            node = node.child_by_field_name("value")
        if node.type == "identifier" and parameter:
            passed.setdefault(tree.text(node), parameter)
    values = {**_initialisers(tree.root, tree, None), **_initialisers(written.enclosing, tree, written.node)}
    macros = {match[1]: match[2] for match in _NUMBER.finditer(tree.code.decode("utf-8", "replace"))}
    return _HostNames(tree, passed, values, macros)


def _initialisers(scope: Node | None, tree: Tree, before: Node | None) -> Mapping[str, Node]:
    """Return the initialisers of variables in a function before a node, or of constants outside of functions."""
    initialisers: dict[str, Node] = {}
    for node in nodes_of(scope, "init_declarator", "function_declarator") if scope is not None else ():
        name, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if value is None and node.parent.type == "declaration":
            kind = node.parent.child_by_field_name("type")
            if kind is not None and tree.text(kind) in _EXTENT_TYPES:  # `dim3 grid(n)` looks like a function's head
                value = node.child_by_field_name("parameters")
        in_scope = node.start_byte <= before.start_byte if before is not None else _function_around(node) is None
        if name is not None and name.type == "identifier" and value is not None and in_scope:
            initialisers[tree.text(name)] = value
    return initialisers


def _function_around(node: Node) -> Node | None:
    while node is not None and node.type != "function_definition":
        node = node.parent
    return node


def _passed_by_caller(name: str, written: WrittenLaunch) -> Guess[int] | None:
    """Return the number that another function of the file passes for this parameter of the launching function."""
    tree, function = written.tree, written.enclosing
    listed = next(nodes_of(function, "parameter_list"), None) if function is not None else None
    if function is None or listed is None:
        return None
    declarations = [tree.text(node) for node in listed.named_children if "parameter_declaration" in node.type]
    ending = re.compile(rf"\b{re.escape(name)}\s*(=|$)")
    place = next((place for place, text in enumerate(declarations) if ending.search(text)), None)
    host_name = function_name(function, tree)
    if place is None:
        return None
    for call in nodes_of(tree.root, "call_expression"):
        called = tree.text(call.child_by_field_name("function")).rpartition("::")[2]
        values = arguments_in(call.child_by_field_name("arguments"))
        if called == host_name and len(values) > place and tree.text(values[place]).isdigit():
            return Guess(int(tree.text(values[place])), f"passed in line {line_of(call)}")
    return None
