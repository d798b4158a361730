"""CUDA C++ files of a project: kernels, parameters, launches, and how buffers are used."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from prism_bench.compilation.host_source.syntax import Node, Tree, first_defect, function_name, line_of, nodes_of, walk
from prism_bench.extensions.init.sources.kernels import (
    FoundKernel,
    FoundParameter,
    Guess,
    Role,
    TemplateParameter,
    Unread,
    dtype_of,
)

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
