"""How a kernel's body uses its pointers: what it reads and writes, and which shapes its indices suggest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from prism_bench.compilation.host_source.syntax import Node, Tree, nodes_of, walk
from prism_bench.extensions.init.sources.found import Guess

_COMPARISONS = ("<", "<=", ">", ">=", "!=")
_Access = tuple[int, bool, bool]  # where it takes place, reads, writes


@dataclass
class BufferUse:
    """What a body does with one pointer."""

    is_read: bool = False
    is_written: bool = False
    is_assigned_first: bool = False
    shape: Guess[str] | None = None
    accesses: list[_Access] = field(default_factory=list[_Access])
    terms: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])


def buffer_use(body: Node | None, tree: Tree, pointers: Sequence[str], sizes: Sequence[str]) -> dict[str, BufferUse]:
    """Return by pointer what the body does with it; `sizes` are the whole numbers that the kernel takes."""
    use = {name: BufferUse() for name in pointers}
    if body is not None:
        reader = _BodyReader(tree, use)
        reader.read(body)
        bounds = _bounds(body, tree, sizes)
        for one in use.values():
            one.is_read = any(reads for _, reads, _ in one.accesses)
            one.is_written = any(writes for *_, writes in one.accesses)
            one.is_assigned_first = min(one.accesses, default=(0, True, False))[1:] == (False, True)
            one.shape = _shape(one.terms, sizes, bounds)
    for one in use.values():
        one.shape = one.shape or Guess(" ".join(sizes) or "1", "all whole numbers that the kernel takes")
    return use


class _BodyReader:
    """Collects the accesses of each pointer, through local pointers derived from it, too."""

    def __init__(self, tree: Tree, use: dict[str, BufferUse]) -> None:
        self._tree, self._use = tree, use
        self._alias = {name: name for name in use}

    def read(self, body: Node) -> None:
        for node in walk(body):
            if node.type == "init_declarator":
                self._declared(node)
            elif node.type in ("subscript_expression", "pointer_expression"):
                self._accessed(node)

    def _declared(self, node: Node) -> None:
        """Follow `float* row = x + i * cols`."""
        declarator, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if value is None or declarator.type not in ("pointer_declarator", "reference_declarator"):
            return
        source = next((n for n in nodes_of(value, "identifier") if self._tree.text(n) in self._alias), None)
        name = next(nodes_of(declarator, "identifier"), None)
        if source is not None and name is not None:
            pointer = self._alias[self._tree.text(source)]
            self._alias[self._tree.text(name)] = pointer
            self._use[pointer].terms += self._terms(value)

    def _accessed(self, node: Node) -> None:
        argument = node.child_by_field_name("argument")
        if argument is None or node.type == "pointer_expression" and self._tree.text(node).startswith("&"):
            return
        base = next((n for n in nodes_of(argument, "identifier") if self._tree.text(n) in self._alias), None)
        if base is None:
            return
        use = self._use[self._alias[self._tree.text(base)]]
        use.accesses.append(_access(node))
        index = node.child_by_field_name("indices") if node.type == "subscript_expression" else argument
        use.terms += self._terms(index)

    def _terms(self, index: Node) -> list[tuple[str, ...]]:
        """Return the names in each product of a sum: `i * cols + j` is (i, cols), (j,)."""
        found: list[tuple[str, ...]] = []
        for node in _summands(index):
            names = tuple(
                self._tree.text(n) for n in nodes_of(node, "identifier", "field_expression")
                if self._tree.text(n) not in self._alias and n.parent.type != "field_expression"
            )  # fmt: skip
            found += [names] if names else []
        return found


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
    found: dict[str, str] = {}
    for node in nodes_of(body, "binary_expression"):
        left, right = tree.text(node.child_by_field_name("left")), tree.text(node.child_by_field_name("right"))
        if node.child_by_field_name("operator").type in _COMPARISONS:
            if right in sizes:
                found.setdefault(left, right)
            elif left in sizes:
                found.setdefault(right, left)
    return found


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
