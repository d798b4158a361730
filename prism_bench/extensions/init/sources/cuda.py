"""`__global__` functions of CUDA C++ files: their parameters, and what their bodies do with them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from keyword import iskeyword

from prism_bench.compilation.host_source.syntax import Node, Tree, first_defect, function_name, line_of, nodes_of
from prism_bench.extensions.init.sources.body import BodyReader, BufferUse, DeviceFunction
from prism_bench.extensions.init.sources.indices import IndexReader, Shapes
from prism_bench.extensions.init.sources.kernels import (
    NOT_IN_SPECS,
    FoundKernel,
    FoundParameter,
    Guess,
    Role,
    TemplateParameter,
    Unread,
    dtype_of,
    lanes_of,
)
from prism_bench.extensions.init.sources.proposals import arithmetic_of, proposed_reference, rounded_outputs
from prism_bench.extensions.init.sources.symbols import Symbols, text_of

# Heads of kernels: name, namespace, template parameters, parameters, launch bounds.

_CONTAINERS = (
    "translation_unit", "namespace_definition", "linkage_specification", "declaration_list", "preproc_if",
    "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
)  # fmt: skip


@dataclass
class WrittenKernel:
    """A kernel in the source: its head, and the body with the names of its file."""

    kernel: FoundKernel
    tree: Tree
    symbols: Symbols
    body: Node | None


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


def kernels_of(tree: Tree, symbols: Symbols) -> tuple[list[WrittenKernel], list[Unread], dict[str, DeviceFunction]]:
    """Return the kernels that the file defines, those that could not be read, and the device functions."""
    kernels: list[WrittenKernel] = []
    unread: list[Unread] = []
    functions: dict[str, DeviceFunction] = {}
    for node, namespace, template in _functions(tree.root, tree):
        specifiers = tree.specifiers(node)
        if b"__global__" in specifiers:
            kernel = _kernel(node, tree, namespace, template, symbols)
            if isinstance(kernel, Unread):
                unread.append(kernel)
            else:
                kernels.append(WrittenKernel(kernel, tree, symbols, node.child_by_field_name("body")))
        elif b"__device__" in specifiers:
            name, function = function_name(node, tree), _device_function(node)
            if name is not None and function is not None:
                functions.setdefault(name.rpartition("::")[2], function)
    return kernels, unread, functions


def _device_function(node: Node) -> DeviceFunction | None:
    listed, body = next(nodes_of(node, "parameter_list"), None), node.child_by_field_name("body")
    if listed is None or body is None:
        return None
    declared = [child for child in listed.named_children if "parameter_declaration" in child.type]
    names = [next(nodes_of(child.child_by_field_name("declarator") or child, "identifier"), None) for child in declared]
    parameters = tuple(text_of(name) if name is not None else "" for name in names)
    changed = tuple(
        name
        for name, child in zip(parameters, declared, strict=True)
        if "&" in text_of(child) and "const" not in text_of(child).split()
    )
    return DeviceFunction(parameters, changed, body)


def _kernel(node: Node, tree: Tree, namespace: str, template: Node | None, symbols: Symbols) -> FoundKernel | Unread:
    name, parameters = function_name(node, tree), next(nodes_of(node, "parameter_list"), None)
    body = node.child_by_field_name("body")
    defect = next((d for part in node.children if part != body and (d := first_defect(part))), None)
    if name is None or parameters is None or defect is not None:
        line = line_of(defect or node)
        return Unread(tree.path, line, f"the head of kernel {name or '?'} cannot be read (a macro in it?)")
    raw = [_parameter(child, tree, symbols) for child in parameters.children if "parameter_declaration" in child.type]
    declarations = nodes_of(body, "declaration") if body is not None else ()
    storage = [tree.text(declaration).partition(";")[0].split("=")[0] for declaration in declarations]
    bounds = next(nodes_of(node, "launch_bounds"), None)
    return FoundKernel(
        "cuda",
        name,
        tree.path,
        line_of(node),
        tuple(raw),
        namespace=namespace,
        template_parameters=_template_parameters(template, tree),
        launch_bounds=tuple(map(tree.text, bounds.named_children)) if bounds is not None else (),
        dynamic_shared=any("extern" in text and "__shared__" in text for text in storage),
    )


def _parameter(node: Node, tree: Tree, symbols: Symbols) -> FoundParameter:
    text, default = tree.text(node), node.child_by_field_name("default_value")
    declarator = node.child_by_field_name("declarator")
    named = next(nodes_of(declarator, "identifier"), None) if declarator else None
    head = text.partition("=")[0] if default else text
    kind = head[: head.rfind(tree.text(named))] if named else head
    written = " ".join(kind.replace("*", " * ").replace("&", " & ").split()).replace(" *", "*").replace(" &", "&")
    plain = symbols.plain_type(kind)
    is_pointer = "*" in plain or "[" in head
    name, dtype = tree.text(named) if named else "", dtype_of(plain)
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
    if dtype is None and "CUtensorMap" in written:
        return Guess("unknown", "name its array, and pass it by maps=(TensorMap(name, box=...),) of the launch")
    if dtype is None:
        return Guess("unknown", "a spec passes buffers, numbers and plain structures")
    if dtype.startswith(("int", "uint")) and lanes_of(written) == 1:
        return Guess("size", "whole number passed by value")
    return Guess("scalar", "number passed by value")


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


# What a body does, once the launch of the kernel is known.


def with_body(
    written: WrittenKernel, project: Symbols, functions: Mapping[str, DeviceFunction], constants: Mapping[str, str]
) -> FoundKernel:
    """Return the kernel with roles and shapes of its buffers, its arithmetic, and a reference if its body shows one.

    `functions` are the device functions of the project, `constants` values of template parameters.
    """
    symbols = written.symbols.with_others(project)
    kernel, body, launch = written.kernel, written.body, written.kernel.launch
    kernel = replace(kernel, parameters=tuple(_with_type(parameter, symbols) for parameter in kernel.parameters))
    kernel = _with_fields(kernel, symbols, constants)
    members = {f"{p.name}.{name}": name for p in kernel.parameters for name, _ in p.fields}
    pointers = [parameter.name for parameter in kernel.parameters if parameter.is_pointer]
    sizes = kernel.sizes
    types = {p.name: p.dtype for p in kernel.parameters if p.is_pointer and p.dtype}
    reader = IndexReader(symbols, sizes, constants, launch, element_types=types, members=members)
    if body is None:
        return kernel
    reader.read(body)
    lanes = {parameter.name: _lanes(parameter, symbols) for parameter in kernel.parameters if parameter.is_pointer}
    bodies = BodyReader(reader, lanes, functions)
    use, shapes = bodies.read(body, pointers), Shapes(reader)
    parameters = [_with_use(parameter, use, shapes, lanes, sizes) for parameter in kernel.parameters]
    reader.bound_labels()
    parameters = _completed(parameters, sizes)
    axes = {axis for parameter in parameters if parameter.shape for axis in parameter.shape.value.split()}
    below = {name: axis for name, axis in reader.index_data.items() if axis in axes or axis in sizes}
    parameters = [replace(parameter, below=below.get(parameter.name, "")) for parameter in parameters]
    outputs = {parameter.name for parameter in parameters if parameter.role.value in ("output", "in_out")}
    kernel = replace(
        kernel,
        parameters=tuple(parameters),
        derived=tuple((name, text) for name, text in shapes.derived.items() if name in axes),
        missing=(*_bounding(kernel, body, use), *_colliding(kernel, use)),
        notes=(*kernel.notes, *_notes(body, symbols)),
    )
    kinds = {p.name: " ".join(kind for _, kind in p.fields) if p.fields else p.dtype or "float" for p in parameters}
    floats = frozenset(name for name, kind in kinds.items() if "float" in kind)
    arithmetic, depth = arithmetic_of(body, reader, functions, {name: use[name] for name in outputs}, floats)
    proposed = proposed_reference(kernel, body, reader, use, functions, symbols)
    whole = {p.name for p in parameters if p.name in outputs and (p.dtype or "").startswith(("int", "uint"))}
    rounded = rounded_outputs(body, {name: use[name] for name in whole}, functions, floats)
    parameters = [replace(parameter, is_rounded=parameter.name in rounded) for parameter in parameters]
    return replace(kernel, parameters=tuple(parameters), arithmetic=arithmetic, depth=depth, proposed=proposed)


def _with_type(parameter: FoundParameter, symbols: Symbols) -> FoundParameter:
    """Return the parameter with the type behind a name that another file defines."""
    plain = symbols.plain_type(parameter.type)
    dtype, is_pointer = dtype_of(plain), parameter.is_pointer or "*" in plain
    if parameter.dtype is not None or dtype is None:
        return parameter
    return replace(parameter, dtype=dtype, is_pointer=is_pointer, role=_role(parameter.type, dtype, is_pointer))


def _with_fields(kernel: FoundKernel, symbols: Symbols, constants: Mapping[str, str]) -> FoundKernel:
    """Return the kernel with the fields of structures that it takes by value, or why a spec cannot pass one."""
    taken = {parameter.name for parameter in kernel.parameters} | set(NOT_IN_SPECS)
    parameters: list[FoundParameter] = []
    for parameter in kernel.parameters:
        words = [word for word in symbols.plain_type(parameter.type).split() if word not in ("const", "struct")]
        name = constants.get(words[-1], words[-1]).rpartition("::")[2] if words else parameter.type
        structure = symbols.structures.get(name) or symbols.structures.get(parameter.type)
        if parameter.role.value == "unknown" and structure is not None:
            kinds = {field: symbols.plain_type(kind) for field, kind in structure.fields}
            odd = [f"{kinds[field]} {field}, which is no number" for field in kinds
                   if not dtype_of(kinds[field]) or lanes_of(kinds[field]) > 1]  # fmt: skip
            odd += [f"{field}, a name that is taken" for field in kinds if field in taken or iskeyword(field)]
            problem = structure.problem or next((f"has the field {text}" for text in odd), "")
            where = f"{name} of {structure.path}:{structure.line}"
            taken |= kinds.keys()
            fields = tuple((field, dtype_of(kind) or "") for field, kind in kinds.items())
            role: Guess[Role] = Guess("unknown", f"{where} {problem}") if problem else Guess("struct", where)
            parameter = replace(parameter, role=role, fields=() if problem else fields)
        parameters.append(parameter)
    return replace(kernel, parameters=tuple(parameters))


def _lanes(parameter: FoundParameter, symbols: Symbols) -> int:
    return lanes_of(symbols.plain_type(parameter.type))


def _with_use(
    parameter: FoundParameter,
    use: Mapping[str, BufferUse],
    shapes: Shapes,
    lanes: Mapping[str, int],
    sizes: list[str],
) -> FoundParameter:
    """Return the parameter with the role and shape that the body shows."""
    if not parameter.is_pointer:
        return parameter
    seen, role = use[parameter.name], parameter.role
    if role.value == "output" and not seen.accesses:
        role = Guess[Role]("input", "pointer that the body does not use")
    elif role.value == "output" and not seen.is_written:
        role = Guess[Role]("input", "pointer that the body only reads")
    elif role.value == "output" and seen.is_passed and not any(a.writes and not a.reads for a in seen.accesses):
        role = Guess[Role]("in_out", "pointer to what is not const, passed on to a function")
    elif role.value == "output" and seen.is_scattered:
        role = Guess[Role]("in_out", "data say which elements the body writes")
    elif role.value == "output" and seen.is_read and not seen.is_written_first:
        role = Guess[Role]("in_out", "pointer to what is not const, and the body reads it")
    shape = shapes.shape(seen.indices, parameter.name)
    if lanes[parameter.name] > 1:
        base = shape.value if shape is not None else "?"
        reason = f"elements of {parameter.type.replace('*', '')}"
        axes = base.split()
        shape = Guess(" ".join([*(axes if axes != ["1"] else []), str(lanes[parameter.name])]), reason)
    return replace(parameter, role=role, shape=shape)


def _completed(parameters: list[FoundParameter], sizes: list[str]) -> list[FoundParameter]:
    """Return the parameters with a shape for every buffer: unknown axes get the size that fits best."""
    outputs = [p for p in parameters if p.role.value in ("output", "in_out")]
    in_outputs = {axis for p in outputs for axis in (p.shape.value.split() if p.shape else ())}
    completed: list[FoundParameter] = []
    for parameter in parameters:
        shape = parameter.shape
        if parameter.is_pointer and shape is None:
            shape = Guess(" ".join(sizes) or "1", "all whole numbers that the kernel takes")
        elif shape is not None and "?" in shape.value.split():
            rest = [axis for axis in shape.value.split() if axis != "?"]
            free = [size for size in sizes if size not in rest]
            before = [size for size in free if rest and rest[0] in sizes and sizes.index(size) < sizes.index(rest[0])]
            summed = [size for size in free if size not in in_outputs] if parameter.role.value == "input" else []
            outer = next(iter([*summed, *before, *free]), "1")
            shape = Guess(shape.value.replace("?", outer), f"{shape.reason}; the first axis is the best that is left")
        completed.append(replace(parameter, shape=shape))
    return completed


def _bounding(kernel: FoundKernel, body: Node, use: Mapping[str, BufferUse]) -> Iterator[str]:
    """Yield the buffers whose elements bound a loop: values at random would lead out of other buffers."""
    for loop in nodes_of(body, "for_statement", "while_statement"):
        condition = loop.child_by_field_name("condition")
        for node in nodes_of(condition, "subscript_expression") if condition is not None else ():
            name = text_of(node.child_by_field_name("argument"))
            kind = next((p.dtype or "" for p in kernel.parameters if p.name == name), "")
            if name in use and kind.startswith(("int", "uint")):
                yield f"{kernel.path}:{line_of(loop)}: elements of {name} bound a loop: give its values by a fill"
                return


def _colliding(kernel: FoundKernel, use: Mapping[str, BufferUse]) -> Iterator[str]:
    """Yield the buffers that are written where data say, not by atomics: equal indices at random would race."""
    for name, seen in use.items():
        for access in seen.accesses:
            held = next((part for names in access.index for part in names if "[" in part), "")
            if held and access.writes and not access.is_atomic and held.partition("[")[0] in use:
                line, array = line_of(access.node), held.partition("[")[0]
                reason = f"{array} decides where {name} is written: give it different values by a fill"
                yield f"{kernel.path}:{line}: {reason}"
                return


def _notes(body: Node, symbols: Symbols) -> Iterator[str]:
    """Yield what a spec has to give in addition: values of `__constant__` memory."""
    names = dict.fromkeys(text_of(node) for node in nodes_of(body, "identifier"))
    for name in names:
        if name in symbols.memory:
            yield f"{name} is {symbols.memory[name]} memory: it holds what the source initialises it with"
