"""Launches `kernel<<<grid, block, shared, stream>>>(...)` of a file, as expressions over the kernel's parameters."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from prism_bench.compilation.host_source.syntax import Node, Tree, function_name, line_of, nodes_of
from prism_bench.extensions.init.sources.found import FoundLaunch, Guess, Unread
from prism_bench.extensions.init.sources.host_expressions import HostNames, NotSimple

_BY_CALL = re.compile(r"\bcu(?:da)?Launch(?:Cooperative)?Kernel\w*\s*\(")
_NUMBER = re.compile(r"#[ \t]*define[ \t]+(\w+)[ \t]+\(?(\d+)[uU]?\)?[ \t]*(?://.*|/\*.*)?$", re.MULTILINE)
_USUAL_BLOCK, _USUAL_AXIS = 256, 1024


@dataclass(frozen=True)
class WrittenLaunch:
    """A launch as it is written: the kernel's name, and the parts of the call."""

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
        return tuple(self.tree.text(one) for one in listed.named_children) if listed is not None else ()

    @property
    def arguments(self) -> list[Node]:
        """What is passed to the kernel."""
        given = self.node.child_by_field_name("arguments")
        return [one for one in given.named_children if one.type != "comment"] if given is not None else []

    @property
    def configuration(self) -> list[Node]:
        """Grid, block, shared memory and stream, as far as they are written."""
        written = next(one for one in self.node.children if one.type == "kernel_call_syntax")
        return [one for one in written.named_children if one.type != "comment"]

    @property
    def _called(self) -> Node:
        return self.node.child_by_field_name("function")

    @cached_property
    def enclosing(self) -> Node | None:
        """The host function that launches; None where the launch is in none."""
        node = self.node
        while node is not None and node.type != "function_definition":
            node = node.parent
        return node


def written_launches(tree: Tree) -> tuple[list[WrittenLaunch], list[Unread]]:
    """Return the launches of a file in order, and the places that launch in a form that is not read."""
    launches = [
        WrittenLaunch(tree, node) for node in nodes_of(tree.root, "call_expression")
        if any(one.type == "kernel_call_syntax" for one in node.children)
    ]  # fmt: skip
    unread = [Unread(tree.path, line, reason) for line, reason in _other_forms(tree)]
    return launches, unread


def _other_forms(tree: Tree) -> Iterator[tuple[int, str]]:
    for node in nodes_of(tree.root, "call_expression"):
        call = _BY_CALL.match(tree.text(node))
        if call:
            yield line_of(node), f"{call[0].rstrip('( ')} launches by pointers, which are not followed"
    for node in nodes_of(tree.root, "preproc_def", "preproc_function_def"):
        if "<<<" in tree.text(node):
            name = tree.text(node.child_by_field_name("name"))
            yield line_of(node), f"macro {name} holds a launch, which is not read"


def read_launch(written: WrittenLaunch, parameters: Sequence[str]) -> FoundLaunch:
    """Return the launch as expressions over the kernel's `parameters`; what is not simple is listed in it.

    A parameter that no expression may ask for, such as a pointer, is the empty name.
    """
    names = _names(written, parameters)
    unread: list[Unread] = []
    parts = [*written.configuration, None, None, None][:3]
    found: list[tuple[str, ...] | None] = []
    for what, node in zip(("grid", "block", "shared memory"), parts, strict=True):
        found.append(_extents(what, node, names, unread))
    grid, block, shared = found
    in_block = " ".join(block or ())
    free = [(name, _guess_of(name, written, in_block)) for name in names.free if _occurs(name, found)]
    return FoundLaunch(
        written.tree.path, written.line, grid, block, shared[0] if shared else None, written.template_arguments,
        tuple(free), tuple(unread),
    )  # fmt: skip


def _extents(what: str, node: Node | None, names: HostNames, unread: list[Unread]) -> tuple[str, ...] | None:
    if node is None:
        return ("0",)
    try:
        return names.extents(node) if what != "shared memory" else (names.python(node),)
    except NotSimple as error:
        unread.append(Unread(names.tree.path, line_of(node), f"{what}: {error}"))
        return None


def _occurs(name: str, found: Sequence[tuple[str, ...] | None]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", text) for one in found for text in one or ())


def _names(written: WrittenLaunch, parameters: Sequence[str]) -> HostNames:
    """Return what the names mean where the launch is written."""
    tree, passed = written.tree, dict[str, str]()
    for node, parameter in zip(written.arguments, parameters, strict=False):
        while node.type == "cast_expression":
            node = node.child_by_field_name("value")
        if node.type == "identifier" and parameter:
            passed.setdefault(tree.text(node), parameter)
    values = {**_initialisers(tree.root, tree, None), **_initialisers(written.enclosing, tree, written.node)}
    macros = {match[1]: match[2] for match in _NUMBER.finditer(tree.code.decode("utf-8", "replace"))}
    return HostNames(tree, passed, values, macros)


def _initialisers(scope: Node | None, tree: Tree, before: Node | None) -> Mapping[str, Node]:
    """Return the initialisers of variables in a function before a node, or of constants outside of functions."""
    found: dict[str, Node] = {}
    for node in nodes_of(scope, "init_declarator", "function_declarator") if scope is not None else ():
        name = node.child_by_field_name("declarator")
        value = node.child_by_field_name("value") or _of_extents(node, tree)
        late = before is not None and node.start_byte > before.start_byte
        if name is not None and name.type == "identifier" and value is not None and not late:
            if before is not None or _is_outside(node):
                found[tree.text(name)] = value
    return found


def _of_extents(node: Node, tree: Tree) -> Node | None:
    """Return the brackets of `dim3 grid(n)`, which has the form of a function's declaration."""
    kind = node.parent.child_by_field_name("type") if node.parent.type == "declaration" else None
    is_extents = kind is not None and tree.text(kind) in ("dim3", "uint3")
    return node.child_by_field_name("parameters") if is_extents else None


def _is_outside(node: Node) -> bool:
    """Return whether a declaration is outside of every function."""
    while node is not None and node.type != "function_definition":
        node = node.parent
    return node is None


def _guess_of(name: str, written: WrittenLaunch, in_block: str) -> Guess[int]:
    """Return a value for a name that is no parameter of the kernel: what a caller passes, else a usual one."""
    passed = _passed_by_caller(name, written)
    if passed:
        return passed
    if re.search(rf"\b{re.escape(name)}\b", in_block):
        return Guess(_USUAL_BLOCK, "a usual number of threads; the file does not say")
    return Guess(_USUAL_AXIS, "no value in the file")


def _passed_by_caller(name: str, written: WrittenLaunch) -> Guess[int] | None:
    tree, function = written.tree, written.enclosing
    listed = next(nodes_of(function, "parameter_list"), None) if function is not None else None
    if function is None or listed is None:
        return None
    own = [tree.text(one) for one in listed.named_children if "parameter_declaration" in one.type]
    place = next((i for i, text in enumerate(own) if re.search(rf"\b{re.escape(name)}\s*(=|$)", text)), None)
    called = function_name(function, tree)
    if place is None:
        return None
    for call in nodes_of(tree.root, "call_expression"):
        given = call.child_by_field_name("arguments")
        if tree.text(call.child_by_field_name("function")).rpartition("::")[2] != called or given is None:
            continue
        values = [one for one in given.named_children if one.type != "comment"]
        if len(values) > place and tree.text(values[place]).isdigit():
            return Guess(int(tree.text(values[place])), f"passed in line {line_of(call)}")
    return None
