"""Bodies of CUDA kernels: which buffers they read and write, where, and through which pointers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prism_bench.compilation.host_source.syntax import Node, nodes_of, walk
from prism_bench.extensions.init.sources.expressions import arguments_in
from prism_bench.extensions.init.sources.indices import IndexReader, Sum, added, loops_around, multiplied
from prism_bench.extensions.init.sources.kernels import lanes_of
from prism_bench.extensions.init.sources.symbols import text_of

_STORES = re.compile(r"(?:.*::)?(?:__st(?:cs|cg|wt|wb)|store_matrix_sync|store\w*)$")
_LOADS = re.compile(r"(?:.*::)?(?:__ld(?:g|cs|cg|ca|cv|lu)|load_matrix_sync|load\w*)$")
_ATOMIC = re.compile(r"(?:.*::)?(?:atomic\w+|red_\w+|fastAtomicAdd|gpuAtomicAdd\w*)$")
_COPIES = re.compile(r"(?:.*::)?(?:memcpy_async|__pipeline_memcpy_async|memcpy|cp_async\w*)$")
_OUTSIDE = ("field_expression", "parenthesized_expression")
_MOST_DEPTH = 3  # of device functions that hand pointers on


@dataclass
class Access:
    """An access of a buffer: the byte in the source, whether it reads and writes, its index, and the node.

    `is_elsewhere`: a function accesses it, from `index` on.
    """

    place: int
    reads: bool
    writes: bool
    index: Sum
    node: Node
    is_atomic: bool = False
    is_elsewhere: bool = False


@dataclass
class BufferUse:
    """Use of a pointer in a body; `is_passed` if a function gets it whose body is not here."""

    accesses: list[Access] = field(default_factory=list[Access])
    steps: list[Sum] = field(default_factory=list[Sum])
    is_passed: bool = False

    @property
    def is_read(self) -> bool:
        return any(access.reads for access in self.accesses)

    @property
    def is_written(self) -> bool:
        return any(access.writes for access in self.accesses)

    @property
    def is_written_first(self) -> bool:
        """Whether the first access writes without a read, in a branch that holds every read."""
        first = min(self.accesses, key=lambda access: (access.place, access.reads), default=None)
        if first is None or not first.writes or first.reads:
            return False
        branch = first.node
        while branch is not None and branch.type not in ("if_statement", "case_statement"):
            branch = branch.parent
        reads = [access.node for access in self.accesses if access.reads]
        return branch is None or all(branch.start_byte <= n.start_byte < branch.end_byte for n in reads)

    @property
    def is_scattered(self) -> bool:
        """Whether data say which elements are written, so that some may keep what they hold."""
        written = (access.index for access in self.accesses if access.writes)
        return any("[" in name for index in written for names in index for name in names)

    @property
    def indices(self) -> list[Sum]:
        """Every index, and every step of a pointer."""
        return [*(access.index for access in self.accesses if not access.is_elsewhere), *self.steps]


@dataclass(frozen=True)
class _Pointer:
    """A pointer derived from a buffer: its distance in elements of `lanes` of the buffer's type."""

    buffer: str
    distance: Sum
    scale: int = 1


@dataclass(frozen=True)
class DeviceFunction:
    """A `__device__` function: the names of its parameters, those that are pointers or references, and its body."""

    parameters: tuple[str, ...]
    pointers: tuple[str, ...]
    body: Node


@dataclass
class BodyReader:
    """Reader of a body: it collects the accesses of each pointer, also through local pointers derived from it."""

    indices: IndexReader
    lanes: Mapping[str, int]
    functions: Mapping[str, DeviceFunction]
    depth: int = 0
    use: dict[str, BufferUse] = field(default_factory=dict[str, BufferUse])
    _alias: dict[str, _Pointer] = field(default_factory=dict[str, _Pointer])

    def read(self, body: Node, pointers: Sequence[str]) -> dict[str, BufferUse]:
        """Return the use of each pointer."""
        self.use = {name: BufferUse() for name in pointers}
        self._alias = {name: _Pointer(name, {}) for name in pointers}
        for node in walk(body):
            if node.type == "init_declarator":
                self._follow(node)
            elif node.type == "assignment_expression":
                self._step(node)
            elif node.type in ("subscript_expression", "pointer_expression"):
                self._add_access(node)
            elif node.type == "call_expression":
                self._add_call(node)
        return self.use

    def _follow(self, node: Node) -> None:
        """Follow `float* row = x + i * cols` and `auto row = x + i * cols`."""
        declarator, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        kind = node.parent.child_by_field_name("type") if node.parent is not None else None
        is_auto = kind is not None and text_of(kind) == "auto"
        if value is None or not is_auto and declarator.type not in ("pointer_declarator", "reference_declarator"):
            return
        if value.type in ("initializer_list", "argument_list") and len(value.named_children) == 1:
            value = value.named_children[0]
        name = next(nodes_of(declarator, "identifier"), None)
        pointer = self._pointer_in(value)
        if pointer is None and declarator.type == "reference_declarator" and value.type == "subscript_expression":
            pointer = self._pointer_in(value.child_by_field_name("argument"))
        if pointer is not None and name is not None:
            if declarator.type == "pointer_declarator" and kind is not None:
                wide = lanes_of(text_of(kind))
                if wide > 1 and self.lanes.get(pointer.buffer, 1) == 1:
                    pointer = _Pointer(pointer.buffer, pointer.distance, wide)
            self._alias[text_of(name)] = pointer
            if pointer.distance:
                self.use[pointer.buffer].steps.append(pointer.distance)

    def _step(self, node: Node) -> None:
        """Follow `A += BK` and `x = x + offset`: in a loop the step goes through the loop's whole range."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        pointer = self._alias.get(text_of(left)) if left.type == "identifier" else None
        if pointer is None:
            return
        if node.child_by_field_name("operator").type == "=":
            target = self._pointer_in(right)
            if target is None:
                return
            if target.buffer != pointer.buffer:
                self._alias[text_of(left)] = target
                return
            step = added(target.distance, pointer.distance, -1)
        else:
            step = self.indices.sum_of(right)
        loop = next(iter(loops_around(node)), None)
        whole = self._through_loop(step, loop) if loop is not None else step
        self.use[pointer.buffer].steps.append(multiplied(whole, {(): pointer.scale}))

    def _through_loop(self, step: Sum, loop: Node) -> Sum:
        """Return the way of a step through a loop, `A += BK` with `k < K; k += BK` goes through K."""
        condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
        if condition is None or update is None or condition.type != "binary_expression":
            return step
        limit = self.indices.size_text(condition.child_by_field_name("right"))
        stride: Sum = {(): 1}
        if update.type == "assignment_expression":
            stride = self.indices.sum_of(update.child_by_field_name("right"))
        if limit is None or set(stride) != {()}:
            return step
        if any(factor % stride[()] for factor in step.values()):
            return step
        return {tuple(sorted((*names, f"loop {limit}"))): factor // stride[()] for names, factor in step.items()}

    def _pointer_in(self, node: Node) -> _Pointer | None:
        """Return the pointer that an expression makes of a buffer; None if it makes none."""
        kind = node.type
        if kind == "identifier":
            return self._alias.get(text_of(node))
        if kind == "binary_expression" and node.child_by_field_name("operator").type in ("+", "-"):
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            for pointer_side, other in ((left, right), (right, left)):
                pointer = self._pointer_in(pointer_side)
                if pointer is not None:
                    return self._moved(pointer, other)
            return None
        if kind in ("parenthesized_expression", "cast_expression"):
            inner = self._pointer_in(node.child_by_field_name("value") or node.named_children[-1])
            return self._as_type(inner, node.child_by_field_name("type"))
        if kind == "call_expression":
            called, nodes = node.child_by_field_name("function"), arguments_in(node.child_by_field_name("arguments"))
            if "_cast" in text_of(called) and len(nodes) == 1:
                listed = next(nodes_of(called, "template_argument_list"), None)
                return self._as_type(self._pointer_in(nodes[0]), listed)
            return None
        if kind == "pointer_expression" and text_of(node).startswith("&"):
            inner = node.child_by_field_name("argument")
            while inner.type == "parenthesized_expression":
                inner = inner.named_children[-1]
            if inner.type == "subscript_expression":
                pointer = self._pointer_in(inner.child_by_field_name("argument"))
                return self._moved(pointer, inner.child_by_field_name("indices")) if pointer is not None else None
            return self._pointer_in(inner)
        if kind == "conditional_expression":
            return self._pointer_in(node.child_by_field_name("consequence"))
        return None

    def _moved(self, pointer: _Pointer, distance: Node) -> _Pointer:
        moved = multiplied(self.indices.sum_of(distance), {(): pointer.scale})
        return _Pointer(pointer.buffer, added(pointer.distance, moved), pointer.scale)

    def _as_type(self, pointer: _Pointer | None, kind: Node | None) -> _Pointer | None:
        """Return the pointer as one to vectors, if a cast makes it one."""
        if pointer is None or kind is None:
            return pointer
        wide = lanes_of(re.sub(r"[<>*&]|\bconst\b", " ", text_of(kind)).strip())
        if wide > 1 and self.lanes.get(pointer.buffer, 1) == 1:
            return _Pointer(pointer.buffer, pointer.distance, wide)
        return pointer

    def _add_access(self, node: Node) -> None:
        argument, outer = node.child_by_field_name("argument"), node.parent
        if argument is None or node.type == "pointer_expression" and text_of(node).startswith("&"):
            return
        while outer is not None and outer.type == "parenthesized_expression":
            outer = outer.parent
        if outer is not None and outer.type == "pointer_expression" and text_of(outer).startswith("&"):
            return
        pointer = self._pointer_in(argument)
        if pointer is None:
            return
        listed = node.child_by_field_name("indices") if node.type == "subscript_expression" else None
        moved = self._moved(pointer, listed) if listed is not None else pointer
        self.use[pointer.buffer].accesses.append(Access(*_kind_of_access(node), moved.distance, node))

    def _add_call(self, node: Node) -> None:
        """Add what a call does with pointers that it gets."""
        name = text_of(node.child_by_field_name("function")).partition("<")[0]
        if "_cast" in name or name == "sizeof":
            return
        nodes = arguments_in(node.child_by_field_name("arguments"))
        for place, argument in enumerate(nodes):
            pointer = self._pointer_in(argument)
            if pointer is None:
                continue
            reads, writes = self._effect(name, place, len(nodes))
            is_element = _ATOMIC.match(name) or _STORES.match(name) or _LOADS.match(name)
            is_element = is_element or self._is_one_element(name, place)
            if reads is None:
                self.use[pointer.buffer].is_passed = True
                reads = writes = True
            place_of_access = node.end_byte if writes else node.start_byte
            is_atomic = _ATOMIC.match(name) is not None
            self.use[pointer.buffer].accesses.append(
                Access(place_of_access, reads, writes, pointer.distance, node, is_atomic, not is_element)
            )

    def _is_one_element(self, name: str, place: int) -> bool:
        """Return whether a device function accesses only what its parameter points to."""
        function = self.functions.get(name.rpartition("::")[2])
        if function is None or place >= len(function.parameters) or self.depth >= _MOST_DEPTH:
            return False
        parameter = function.parameters[place]
        use = BodyReader(self.indices, {}, self.functions, self.depth + 1).read(function.body, [parameter])[parameter]
        return bool(use.accesses) and not use.is_passed and not any(any(index) for index in use.indices)

    def _effect(self, name: str, place: int, count: int) -> tuple[bool | None, bool]:
        """Return whether a function reads and writes what its parameter points to; None where its body is not here."""
        function = self.functions.get(name.rpartition("::")[2])
        if function is not None and place < len(function.parameters) and self.depth < _MOST_DEPTH:
            parameter = function.parameters[place]
            inner = BodyReader(self.indices, {}, self.functions, self.depth + 1)
            use = inner.read(function.body, [parameter])[parameter]
            return use.is_read and not (use.is_written_first and not use.is_passed), use.is_written
        if _ATOMIC.match(name):
            return True, True
        if _STORES.match(name):
            return (False, True) if place == 0 else (True, False)
        if _LOADS.match(name):
            return True, False
        if _COPIES.match(name):
            return (False, True) if place == 0 and count > 2 and name.endswith("memcpy") else (True, False)
        return None, False


def _kind_of_access(node: Node) -> tuple[int, bool, bool]:
    """Return where an element is accessed, and whether it is read and written there.

    An assignment writes after its right side has been read. `FLOAT4(y[i]) = v` writes through a macro.
    """
    place, outer = node.start_byte, node.parent
    while outer is not None:
        if outer.type in _OUTSIDE or outer.type == "subscript_expression" and _field(outer, "argument") == node:
            node, outer = outer, outer.parent
        elif outer.type == "argument_list" and outer.parent.type == "call_expression" and _is_macro(outer.parent):
            node, outer = outer.parent, outer.parent.parent
        else:
            break
    if outer is not None and outer.type == "assignment_expression" and outer.child_by_field_name("left") == node:
        operator = outer.child_by_field_name("operator")
        return outer.end_byte, operator is None or operator.type != "=", True
    changed = outer is not None and outer.type == "update_expression"
    return place, True, changed


def _field(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def _is_macro(call: Node) -> bool:
    """Return whether a call looks like that of a macro for a place: `FLOAT4(x[i])`, in capitals."""
    name = text_of(call.child_by_field_name("function"))
    return name.isupper() and len(arguments_in(call.child_by_field_name("arguments"))) == 1
