"""`__global__` functions of a CUDA C++ file: name, namespace, template parameters, parameters, launch bounds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from prism_bench.compilation.host_source.syntax import Node, Tree, first_defect, function_name, line_of, nodes_of
from prism_bench.extensions.init.sources.buffer_use import BufferUse, buffer_use
from prism_bench.extensions.init.sources.c_types import dtype_of
from prism_bench.extensions.init.sources.found import (
    FoundKernel,
    FoundParameter,
    Guess,
    Role,
    TemplateParameter,
    Unread,
)

_CONTAINERS = (
    "translation_unit", "namespace_definition", "linkage_specification", "declaration_list", "preproc_if",
    "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
)  # fmt: skip


@dataclass(frozen=True)
class DeclaredFunction:
    """A function of a file with what surrounds it: its namespace, and the template that it is declared by."""

    node: Node
    namespace: str = ""
    template: Node | None = None


def functions(node: Node, tree: Tree, namespace: str = "", template: Node | None = None) -> Iterator[DeclaredFunction]:
    """Yield every function definition outside of classes, in the order of the source."""
    if node.type == "function_definition":
        yield DeclaredFunction(node, namespace, template)
    elif node.type == "template_declaration":
        for child in node.children:
            yield from functions(child, tree, namespace, node)
    elif node.type in _CONTAINERS:
        name = node.child_by_field_name("name") if node.type == "namespace_definition" else None
        inner = "::".join(filter(None, (namespace, tree.text(name) if name else "")))
        for child in node.children:
            yield from functions(child, tree, inner, template)


def kernels_of(tree: Tree) -> tuple[list[tuple[FoundKernel, Node]], list[Unread]]:
    """Return the kernels that the file defines, each with its node, and those that could not be read."""
    found: list[tuple[FoundKernel, Node]] = []
    unread: list[Unread] = []
    for declared in functions(tree.root, tree):
        if b"__global__" in tree.specifiers(declared.node):
            kernel = _kernel(declared, tree)
            if isinstance(kernel, Unread):
                unread.append(kernel)
            else:
                found.append((kernel, declared.node))
    return found, unread + _generated(tree)


def _generated(tree: Tree) -> list[Unread]:
    """Return the macros that hold `__global__`: the kernels that they make have no text to read."""
    return [
        Unread(tree.path, line_of(node), f"macro {tree.text(name)} makes kernels; name them in a spec by entry")
        for node in nodes_of(tree.root, "preproc_def", "preproc_function_def")
        for name, value in [(node.child_by_field_name("name"), node.child_by_field_name("value"))]
        if value is not None and "__global__" in tree.text(value) and ("(" in tree.text(value))
    ]


def _kernel(declared: DeclaredFunction, tree: Tree) -> FoundKernel | Unread:
    node, name = declared.node, function_name(declared.node, tree)
    parameters = next(nodes_of(node, "parameter_list"), None)
    body = node.child_by_field_name("body")
    defect = next((d for part in node.children if part != body and (d := first_defect(part))), None)
    if name is None or parameters is None or defect is not None:
        line = line_of(defect or node)
        return Unread(tree.path, line, f"the head of kernel {name or '?'} cannot be read (a macro in it?)")
    raw = [_parameter(one, tree) for one in parameters.children if "parameter_declaration" in one.type]
    use = buffer_use(body, tree, [one.name for one in raw if one.is_pointer], _sizes(raw))
    return FoundKernel(
        "cuda", name, tree.path, line_of(node), tuple(_with_use(one, use) for one in raw),
        namespace=declared.namespace, template_parameters=_template_parameters(declared.template, tree),
        launch_bounds=_launch_bounds(node, tree), dynamic_shared=_has_dynamic_shared(body, tree),
    )  # fmt: skip


def _sizes(parameters: list[FoundParameter]) -> list[str]:
    return [one.name for one in parameters if one.role.value == "size"]


def _parameter(node: Node, tree: Tree) -> FoundParameter:
    text, default = tree.text(node), node.child_by_field_name("default_value")
    named = next((n for d in [node.child_by_field_name("declarator")] if d for n in nodes_of(d, "identifier")), None)
    head = text.partition("=")[0] if default else text
    kind = head[: head.rfind(tree.text(named))] if named else head
    written = " ".join(kind.replace("*", " * ").replace("&", " & ").split()).replace(" *", "*").replace(" &", "&")
    is_pointer = "*" in head or "[" in head
    name, dtype = tree.text(named) if named else "", dtype_of(kind)
    return FoundParameter(
        name, written, dtype, _role(written, dtype, is_pointer), is_pointer=is_pointer,
        is_const="const" in kind.partition("*")[0].split(), is_restrict="restrict" in head,
        default=tree.text(default) if default else None,
    )  # fmt: skip


def _role(written: str, dtype: str | None, is_pointer: bool) -> Guess[Role]:
    if is_pointer:
        return (
            Guess("input", "const pointer")
            if "const" in written.partition("*")[0].split()
            else Guess("output", "pointer to what is not const")
        )
    if dtype is None:
        return Guess("unknown", f"{written} is no number")
    if dtype.startswith(("int", "uint")):
        return Guess("size", "whole number passed by value")
    return Guess("scalar", "number passed by value")


def _with_use(parameter: FoundParameter, use: dict[str, BufferUse]) -> FoundParameter:
    """Return the parameter with what the body does with it."""
    if not parameter.is_pointer:
        return parameter
    seen, role = use[parameter.name], parameter.role
    if role.value == "output" and seen.is_read and not seen.is_assigned_first:
        role = Guess[Role]("in_out", "pointer to what is not const, and the body reads it")
    elif role.value == "output" and not seen.is_written:
        role = Guess[Role]("in_out", "pointer to what is not const, passed on to a function")
    return replace(parameter, role=role, shape=seen.shape)


def _template_parameters(template: Node | None, tree: Tree) -> tuple[TemplateParameter, ...]:
    listed = template.child_by_field_name("parameters") if template is not None else None
    kinds = [one for one in listed.children if one.type.endswith("declaration")] if listed is not None else []
    return tuple(_template_parameter(one, tree) for one in kinds)


def _template_parameter(node: Node, tree: Tree) -> TemplateParameter:
    default = node.child_by_field_name("default_value") or node.child_by_field_name("default_type")
    words = tree.text(node).partition("=")[0].replace("...", " ").split()
    kind = " ".join(words[:-1])
    return TemplateParameter(words[-1], "typename" if kind in ("typename", "class") else kind,
                             tree.text(default) if default else None)  # fmt: skip


def _launch_bounds(node: Node, tree: Tree) -> tuple[str, ...]:
    bounds = next((one for one in node.children if one.type == "launch_bounds"), None)
    bounds = bounds or next(nodes_of(node, "launch_bounds"), None)
    return tuple(tree.text(one) for one in bounds.named_children) if bounds is not None else ()


def _has_dynamic_shared(body: Node | None, tree: Tree) -> bool:
    declared = nodes_of(body, "declaration") if body is not None else ()
    heads = (tree.text(one).partition(";")[0].split("=")[0] for one in declared)
    return any("extern" in head and "__shared__" in head for head in heads)
