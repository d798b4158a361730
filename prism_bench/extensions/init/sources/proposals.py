"""What a kernel's body computes: how it sums, and NumPy's expression of outputs that are one expression an element."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prism_bench.compilation.host_source.syntax import Node, nodes_of
from prism_bench.extensions.init.sources.body import Access, BufferUse, DeviceFunction
from prism_bench.extensions.init.sources.expressions import HostNames, NotSimple, arguments_in, number_of
from prism_bench.extensions.init.sources.indices import IndexReader, Sum, key_of, loops_around
from prism_bench.extensions.init.sources.kernels import Arithmetic, FoundKernel, Guess, dtype_of
from prism_bench.extensions.init.sources.symbols import Symbols, text_of

# Sums: loops that accumulate, lanes that exchange, atomic additions, tensor cores.

_TENSOR_CORES = re.compile(r"mma_sync|\bw?g?mma\b|\bmma\.sync|mma_m\d|wgmma|HMMA|hmma", re.IGNORECASE)
_EXCHANGES = re.compile(r"\b__shfl_\w+|\b(?:Block|Warp)(?:Reduce|Scan)\b|\bcg::(?:reduce|inclusive_scan)|__reduce_add")
_FUNCTIONS = re.compile(
    r"\b(?:__)?(?:exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|tanh|sinh|cosh|pow|erf|erfc|rsqrt|cbrt|sigmoid|"
    r"sincos|fdividef|frcp_rn|atan2?|asin|acos|hypot|normcdf)f?(?:_rn)?\s*\(|\bh(?:exp|log|tanh|rsqrt|sin|cos)2?\s*\("
)
_HALF_SUM = re.compile(r"\b__h(?:fma|add|mul)2?(?:_rn)?\s*\(")


def arithmetic_of(
    body: Node,
    reader: IndexReader,
    functions: Mapping[str, DeviceFunction],
    outputs: Mapping[str, BufferUse],
    floats: frozenset[str],
) -> tuple[Guess[Arithmetic] | None, str]:
    """Return what the tolerance of the outputs has to allow for, and the number of terms of a sum if it is known.

    `floats` are the parameters that are floats or buffers of floats.
    """
    bodies = [body, *_called(body, functions)]
    text = "\n".join(_without_comments(part) for part in bodies)
    sums = [total for part in bodies for total in _sums(part)]
    in_half = any(is_half for _, _, is_half in sums)
    depth = next(filter(None, (_depth(node, reader) for node, _, _ in sums)), "")
    if _TENSOR_CORES.search(text):
        return Guess("half_product" if in_half else "product", "tensor cores"), depth or _loop_depth(body, reader)
    for node, is_product, is_half in sums:
        kind: Arithmetic = "half_product" if is_half else "product" if is_product else "reduction"
        if kind != "reduction" or not any(products for _, products, _ in sums):
            return Guess(kind, f"a sum in a loop, line {node.start_point[0] + 1}"), depth
    if _EXCHANGES.search(text):
        return Guess("reduction", "threads add what others hold"), depth
    if any(access.is_atomic for use in outputs.values() for access in use.accesses):
        return Guess("reduction", "atomic additions"), depth
    if _FUNCTIONS.search(text) or _HALF_SUM.search(text):
        return Guess("functions", "functions such as exp" if _FUNCTIONS.search(text) else "half precision"), ""
    kinds = _declared_types(body)
    floats |= {
        name for name, (kind, _) in kinds.items() if re.match(r"float|double|half|__half|auto|T\b|scalar_t", kind)
    }
    expressions = nodes_of(body, "binary_expression", "assignment_expression")
    if any(_rounds_often(node, floats) for node in expressions):
        return Guess("functions", "several roundings in an expression"), ""
    return Guess("elementwise", "no sum of many terms"), ""


def _called(body: Node, functions: Mapping[str, DeviceFunction], depth: int = 0) -> Iterator[Node]:
    """Yield the bodies of device functions that a body calls."""
    for node in nodes_of(body, "call_expression"):
        name = text_of(node.child_by_field_name("function")).partition("<")[0].rpartition("::")[2]
        if name in functions and depth < 3:
            yield functions[name].body
            yield from _called(functions[name].body, functions, depth + 1)


def _without_comments(node: Node) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text_of(node), flags=re.DOTALL)


def _sums(body: Node) -> list[tuple[Node, bool, bool]]:
    """Return the additions to a variable from before a loop: node, whether it adds products, whether in half."""
    types = _declared_types(body)
    sums: list[tuple[Node, bool, bool]] = []
    for node in nodes_of(body, "assignment_expression"):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        base = re.match(r"\w+", text_of(left))
        name = base[0] if base else ""
        kind, place = types.get(name, ("", 0))
        dtype = dtype_of(kind.replace("__shared__", "")) if kind else None
        if dtype is not None and dtype.startswith(("int", "uint", "bool")):
            continue
        places = {text_of(inner) for inner in nodes_of(left, "identifier")}
        loops = [loop for loop in loops_around(node) if loop.start_byte > place and not _variables(loop) & places]
        sign = node.child_by_field_name("operator").type
        text = text_of(right)
        again = re.search(rf"(?<![\w.]){re.escape(text_of(left))}(?![\w.])", text)
        is_fused = re.match(r"(?:std::)?(?:__)?h?fma[fd2]?(?:_r[nzud])?\s*\(", text)
        is_sum = sign in ("+=", "-=") or again and sign == "=" and (is_fused or _adds(right) or "__hadd" in text)
        if not loops or not is_sum or left.type == "identifier" and name not in types:
            continue
        is_half = dtype in ("float16", "bfloat16") or "__hfma" in text or "__hadd" in text
        sums.append((node, bool(is_fused) or "*" in re.sub(r"\[[^\]]*\]", "", text) or "mul" in text, is_half))
    return sums


def _variables(loop: Node) -> set[str]:
    """Return the variables that a loop advances."""
    update = loop.child_by_field_name("update")
    return {text_of(name) for name in nodes_of(update, "identifier")} if update is not None else set[str]()


def _adds(node: Node) -> bool:
    while node.type == "parenthesized_expression":
        node = node.named_children[-1]
    return node.type == "binary_expression" and node.child_by_field_name("operator").type in ("+", "-")


def _declared_types(body: Node) -> dict[str, tuple[str, int]]:
    """Return the type of each variable of a body, and where it is declared."""
    types: dict[str, tuple[str, int]] = {}
    for node in nodes_of(body, "declaration"):
        kind = node.child_by_field_name("type")
        for index, declared in enumerate(node.children):
            if node.field_name_for_child(index) == "declarator" and kind is not None:
                name = next(nodes_of(declared, "identifier"), None)
                if name is not None and "*" not in text_of(declared).partition("=")[0]:
                    types.setdefault(text_of(name), (text_of(kind), node.start_byte))
    return types


def _depth(node: Node, reader: IndexReader) -> str:
    """Return the product of the bounds of the loops around an addition, as far as they name sizes."""
    bounds: list[str] = []
    for loop in loops_around(node):
        condition = loop.child_by_field_name("condition")
        if condition is None or condition.type != "binary_expression":
            continue
        limit = reader.size_text(condition.child_by_field_name("right"))
        names = re.findall(r"[A-Za-z_]\w*", limit or "")
        sizes = [name for name in dict.fromkeys(names) if name in reader.sizes]
        bounds = [*(name for name in sizes if name not in bounds), *bounds]
    return " * ".join(bounds)


def _loop_depth(body: Node, reader: IndexReader) -> str:
    """Return the bound of the first loop that names a size."""
    return next(filter(None, (_depth(loop, reader) for loop in nodes_of(body, "for_statement"))), "")


def _rounds_often(node: Node, floats: frozenset[str]) -> bool:
    """Return whether an expression of floats adds what was rounded before: `a * x + b * y`, `y += a * x`."""
    is_sum = node.child_by_field_name("operator").type in ("+", "-", "+=", "-=")
    if not is_sum or _is_sum(node.parent) or _in_index(node):
        return False  # of a sum of many terms the whole one counts
    waiting = [(child, False) for child in node.children]
    while waiting:
        part, is_rounded = waiting.pop()
        if is_rounded and part.type == "identifier" and text_of(part) in floats:
            return True
        is_rounded |= part.type == "binary_expression" and part.child_by_field_name("operator").type in "+-*/"
        if part.type != "subscript_argument_list":
            waiting += [(child, is_rounded) for child in part.children]
    return False


def _is_sum(node: Node | None) -> bool:
    return (
        node is not None
        and node.type == "binary_expression"
        and node.child_by_field_name("operator").type in ("+", "-")
    )


def _in_index(node: Node) -> bool:
    while node.parent is not None and node.type != "subscript_argument_list":
        node = node.parent
    return node.type == "subscript_argument_list"


def _names_in(node: Node) -> set[str]:
    """Return the names in an expression outside of indices."""
    return {text_of(name) for name in nodes_of(node, "identifier") if not _in_index(name)}


# Integers that hold rounded floats.

_TO_WHOLE = ("rint", "lrint", "llrint", "round", "lround", "llround", "nearbyint", "floor", "ceil", "trunc")
_ROUNDING = re.compile(rf"\b(?:{'|'.join(_TO_WHOLE)})f?\s*\(|\b__(?:float|half|double)2u?(?:int|ll|short|char)_r")
_MOST_STEPS = 3  # from a stored variable to its definition


def rounded_outputs(
    body: Node, use: Mapping[str, BufferUse], functions: Mapping[str, DeviceFunction], floats: frozenset[str]
) -> set[str]:
    """Return the buffers that get a float rounded to an integer: `y[i] = (int8_t)rintf(x[i] * scale)`."""
    made: dict[str, list[Node]] = {}
    for node in nodes_of(body, "init_declarator", "assignment_expression"):
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target.type == "identifier" and value is not None:
            made.setdefault(text_of(target), []).append(value)
    kinds = _declared_types(body)
    numbers = floats | {name for name, (kind, _) in kinds.items() if re.match(r"float|double|half|__half", kind)}

    def is_computed(node: Node) -> bool:
        parts = [node, *(value for name in _names_in(node) for value in made.get(name, ()))]
        return bool(_names_in(node) & numbers) and any(any(nodes_of(part, "binary_expression")) for part in parts)

    def is_rounded(value: Node, steps: int = 0) -> bool:
        names = _names_in(value)
        texts = [text_of(value), *(text_of(functions[name].body) for name in names if name in functions)]
        casts = [(node.child_by_field_name("type"), node) for node in nodes_of(value, "cast_expression")]
        casts += [
            (next(nodes_of(node, "type_descriptor"), None), node) for node in nodes_of(value, "call_expression")
            if text_of(node).startswith("static_cast<")
        ]  # fmt: skip
        return (
            any(map(_ROUNDING.search, texts))
            or any(
                kind is not None and _is_whole(dtype_of(text_of(kind))) and is_computed(node) for kind, node in casts
            )
            or steps < _MOST_STEPS
            and any(is_rounded(part, steps + 1) for name in names for part in made.get(name, ()))
        )

    stored = {
        name: [value for access in buffer.accesses if access.writes and (value := _assigned(access.node)) is not None]
        for name, buffer in use.items()
    }
    return {name for name, values in stored.items() if any(map(is_rounded, values))}


def _is_whole(dtype: str | None) -> bool:
    return (dtype or "").startswith(("int", "uint"))


def _assigned(node: Node) -> Node | None:
    """Return what the assignment around an element assigns."""
    while node.parent is not None and node.type != "assignment_expression":
        node = node.parent
    return node.child_by_field_name("right") if node.type == "assignment_expression" else None


# References: bodies that are one expression an element, in NumPy.

_UNARY = {
    "exp": "xp.exp", "log": "xp.log", "log2": "xp.log2", "log10": "xp.log10", "log1p": "xp.log1p", "exp2": "xp.exp2",
    "expm1": "xp.expm1", "sqrt": "xp.sqrt", "fabs": "xp.abs", "abs": "xp.abs", "sin": "xp.sin", "cos": "xp.cos",
    "tan": "xp.tan", "tanh": "xp.tanh", "sinh": "xp.sinh", "cosh": "xp.cosh", "floor": "xp.floor", "ceil": "xp.ceil",
    "round": "xp.round", "trunc": "xp.trunc", "cbrt": "xp.cbrt", "hexp": "xp.exp", "hlog": "xp.log",
    "hsqrt": "xp.sqrt", "htanh": "xp.tanh", "habs": "xp.abs", "habs2": "xp.abs", "atan": "xp.arctan",
    "asin": "xp.arcsin", "acos": "xp.arccos", "hsin": "xp.sin", "hcos": "xp.cos", "h2exp": "xp.exp",
}  # fmt: skip
_FORMS: Mapping[str, Callable[..., str]] = {
    "max": lambda a, b: f"xp.maximum({a}, {b})", "fmax": lambda a, b: f"xp.maximum({a}, {b})",
    "min": lambda a, b: f"xp.minimum({a}, {b})", "fmin": lambda a, b: f"xp.minimum({a}, {b})",
    "hmax": lambda a, b: f"xp.maximum({a}, {b})", "hmin": lambda a, b: f"xp.minimum({a}, {b})",
    "hmax2": lambda a, b: f"xp.maximum({a}, {b})", "hmin2": lambda a, b: f"xp.minimum({a}, {b})",
    "pow": lambda a, b: f"xp.power({a}, {b})", "rsqrt": lambda a: f"1 / xp.sqrt({a})",
    "hrsqrt": lambda a: f"1 / xp.sqrt({a})", "erf": lambda a: f"special.erf({a})",
    "erfc": lambda a: f"special.erfc({a})", "fma": lambda a, b, c: f"{a} * {b} + {c}",
    "hfma": lambda a, b, c: f"{a} * {b} + {c}", "hfma2": lambda a, b, c: f"{a} * {b} + {c}",
    "hadd": lambda a, b: f"{a} + {b}", "hadd2": lambda a, b: f"{a} + {b}", "hsub": lambda a, b: f"{a} - {b}",
    "hsub2": lambda a, b: f"{a} - {b}", "hmul": lambda a, b: f"{a} * {b}", "hmul2": lambda a, b: f"{a} * {b}",
    "hdiv": lambda a, b: f"{a} / {b}", "h2div": lambda a, b: f"{a} / {b}", "hneg": lambda a: f"-{a}",
    "fdivide": lambda a, b: f"{a} / {b}", "fadd_rn": lambda a, b: f"{a} + {b}", "frcp_rn": lambda a: f"1 / {a}",
    "fmul_rn": lambda a, b: f"{a} * {b}", "fsub_rn": lambda a, b: f"{a} - {b}", "drcp_rn": lambda a: f"1 / {a}",
    "hypot": lambda a, b: f"xp.hypot({a}, {b})", "atan2": lambda a, b: f"xp.arctan2({a}, {b})",
}  # fmt: skip
_SAME = re.compile(
    r"(?:\w+::)*(?:static_cast|float|double|int|half|__half2float|__float2half(?:_r[nz])?|__bfloat162float|"
    r"__float2bfloat16(?:_rn)?|__ldg|__ldcs|__ldcg|half2float|float2half|T|scalar_t|to_float|from_float|"
    r"__half22float2|__float22half2_rn|FLOAT4|HALF2|LDST\w+|FLOAT2|BFLOAT2|INT4|convert|type2float|float2type)$"
)
_OPERATORS = {"+": "+", "-": "-", "*": "*", "/": "/", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "==": "==",
              "!=": "!=", "&&": "&", "||": "|", "&": "&", "|": "|", "^": "^"}  # fmt: skip
_LANES = "xyzw"
_CONSTANTS = {"M_PI": "xp.pi", "INFINITY": "xp.inf", "M_SQRT1_2": "0.5**0.5", "M_SQRT2": "2**0.5", "M_E": "xp.e",
              "M_2_SQRTPI": "2 / xp.pi**0.5", "FLT_MAX": "3.4028234663852886e38", "M_LOG2E": "1 / xp.log(2.0)",
              "FLT_EPSILON": "1.1920928955078125e-07"}  # fmt: skip
_LONGEST = 400


class _NoProposal(Exception):
    """A body that is more than one expression an element."""


@dataclass
class _Translator:
    """Translator of the statements of an element to NumPy: what variables and elements of outputs become.

    `values` are variables, None where they are no part of an element such as an index. `written` are elements that the
    body has written, at `index`.
    """

    kernel: FoundKernel
    reader: IndexReader
    accesses: Mapping[int, tuple[str, Access]]
    functions: Mapping[str, DeviceFunction]
    symbols: Symbols
    output: str
    index: Sum
    values: dict[str, str | None] = field(default_factory=dict[str, str | None])
    written: dict[str, str] = field(default_factory=dict[str, str])
    returned: str = ""
    depth: int = 0

    def run(self, statement: Node) -> None:
        """Follow a statement; raise _NoProposal if it is more than an expression an element."""
        kind = statement.type
        if kind == "compound_statement":
            for inner in statement.named_children:
                self.run(inner)
        elif kind == "declaration":
            self._declare(statement)
        elif kind == "expression_statement" and statement.named_children:
            self._assign(statement.named_children[0])
        elif kind == "if_statement":
            self._choose(statement)
        elif kind in ("for_statement", "while_statement"):
            head = statement.child_by_field_name("update") or statement
            if not re.search(r"gridDim|stride|step", text_of(head)):
                raise _NoProposal
            self.run(statement.child_by_field_name("body"))
        elif kind == "return_statement" and statement.named_children:
            self.returned = self.returned or self.text(statement.named_children[0])
        elif kind not in ("comment", "return_statement", "preproc_call", "using_declaration", "alias_declaration"):
            raise _NoProposal

    def _declare(self, statement: Node) -> None:
        if "__shared__" in text_of(statement):
            raise _NoProposal
        for declared in statement.named_children:
            if declared.type == "init_declarator":
                name, value = declared.child_by_field_name("declarator"), declared.child_by_field_name("value")
                if name.type == "identifier":
                    self._set(text_of(name), value)

    def _set(self, name: str, value: Node) -> None:
        try:
            self.values[name] = self.text(value)
        except _NoProposal:
            self.values[name] = None

    def _assign(self, node: Node) -> None:
        if node.type == "call_expression" and (held := self.accesses.get(node.start_byte)) is not None:
            nodes = arguments_in(node.child_by_field_name("arguments"))
            if not held[1].writes or held[1].reads or len(nodes) != 2:
                raise _NoProposal
            self._write(*held, self.text(nodes[1]))
            return
        if node.type == "update_expression":
            self.values[text_of(node.child_by_field_name("argument"))] = None
            return
        if node.type != "assignment_expression":
            raise _NoProposal
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = node.child_by_field_name("operator").type
        while left.type == "call_expression" and len(arguments_in(left.child_by_field_name("arguments"))) == 1:
            left = arguments_in(left.child_by_field_name("arguments"))[0]
        if left.type == "identifier" or left.type == "field_expression" and left.start_byte not in self.accesses:
            name = text_of(left)
            before = self.values.get(name)
            self._set(name, right)
            value = self.values[name]
            if sign != "=":
                is_known = value is not None and before is not None
                self.values[name] = self._operated(before or "", sign, value or "") if is_known else None
            return
        owner = left.child_by_field_name("argument") if left.type == "field_expression" else left
        held = self.accesses.get(owner.start_byte)
        if held is None:
            raise _NoProposal
        text = self.text(right)
        if sign != "=":
            text = self._operated(self._buffer(*held), sign, text)
        self._write(*held, text)

    def _operated(self, left: str, sign: str, right: str) -> str:
        if sign[:-1] not in ("+", "-", "*", "/"):
            raise _NoProposal
        return f"({left} {sign[:-1]} {right})"

    def _write(self, name: str, access: Access, text: str) -> None:
        if access.index != self.index or name in self.written and not _reads(self.written[name], text):
            raise _NoProposal
        self.written[name] = text

    def _choose(self, statement: Node) -> None:
        """Follow a bounds check; of a choice by data take both sides."""
        consequence = statement.child_by_field_name("consequence")
        alternative = statement.child_by_field_name("alternative")
        leaves = any(True for _ in nodes_of(consequence, "return_statement"))
        if _is_bound(statement, self.reader, leaves=leaves):
            if alternative is not None:
                raise _NoProposal
            if not leaves:
                self.run(consequence)
            return
        chosen = self._decided(statement.child_by_field_name("condition"))
        if chosen is not None:
            branch = consequence if chosen else alternative
            if branch is not None:
                self.run(branch.named_children[-1] if branch.type == "else_clause" else branch)
            return
        condition = _bare(self.text(statement.child_by_field_name("condition")))
        if any(True for _ in nodes_of(statement, "return_statement")):
            raise _NoProposal
        values, written = dict(self.values), dict(self.written)
        self.run(consequence)
        yes = self.values, self.written
        self.values, self.written = dict(values), dict(written)
        if alternative is not None:
            self.run(alternative.named_children[-1] if alternative.type == "else_clause" else alternative)
        for first, second in zip(yes, (self.values, self.written), strict=True):
            for name in {**first, **second}:
                left, right = first.get(name), second.get(name)
                if left == right:
                    continue
                if left is not None and right is not None:
                    second[name] = f"xp.where({condition}, {_bare(left)}, {_bare(right)})"
                elif first is yes[1]:
                    raise _NoProposal
                else:
                    self.values[name] = None

    def text(self, node: Node) -> str:
        """Return NumPy's text of an expression, in brackets where it is a sum or product."""
        self.depth += 1
        try:
            if self.depth > 40:
                raise _NoProposal
            return self._text(node)
        finally:
            self.depth -= 1

    def _text(self, node: Node) -> str:
        kind = node.type
        if node.start_byte in self.accesses and kind in ("subscript_expression", "pointer_expression"):
            return self._buffer(*self.accesses[node.start_byte])
        if kind in ("parenthesized_expression", "cast_expression", "condition_clause"):
            return self.text(node.child_by_field_name("value") or node.named_children[-1])
        if kind == "identifier":
            return self._named(text_of(node))
        if kind == "number_literal":
            return self._number(text_of(node))
        if kind == "field_expression" and text_of(node.child_by_field_name("field")) in _LANES:
            return self._lane(node)
        if kind == "binary_expression":
            return self._binary(node)
        if kind == "unary_expression":
            sign = text_of(node)[0]
            if sign not in "-+!":
                raise _NoProposal
            return f"({'~' if sign == '!' else sign}{self.text(node.child_by_field_name('argument'))})"
        if kind == "conditional_expression":
            condition, *sides = (node.child_by_field_name(name) for name in ("condition", "consequence", "alternative"))
            chosen = self._decided(condition)
            if chosen is not None:
                return self.text(sides[0] if chosen else sides[1])
            parts = (condition, *sides)
            return f"xp.where({', '.join(_bare(self.text(part)) for part in parts)})"
        if kind == "call_expression":
            return self._call(node)
        raise _NoProposal

    def _decided(self, condition: Node) -> bool | None:
        """Return the value of a condition on template arguments; None if it is none."""
        names = HostNames(self.symbols, {}, dict(self.reader.constants))
        try:
            text = names.python(condition)
        except NotSimple:
            return None
        plain = text.replace("true", "True").replace("false", "False")
        if plain in ("True", "False"):
            return plain == "True"
        number = number_of(plain)
        return None if names.free or number is None else bool(number)

    def _number(self, text: str) -> str:
        plain = re.sub(r"(?i)(?<=[\d.])[fl]$", "", text) if not text.startswith("0x") else text
        plain = re.sub(r"(?i)(?<=\d)[ul]+$", "", plain)
        if re.fullmatch(r"\d+\.", plain):
            plain += "0"
        if not re.fullmatch(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|0x[0-9a-fA-F]+", plain):
            raise _NoProposal
        return f"({plain})" if plain.startswith("-") else plain

    def _named(self, name: str) -> str:
        lanes = [value for key, value in self.values.items() if re.fullmatch(rf"{re.escape(name)}\.[xyzw]", key)]
        if lanes or name in self.values:
            value = lanes[0] if lanes else self.values[name]
            if value is None or any(lane != value for lane in lanes):
                raise _NoProposal
            return value
        parameter = next((p for p in self.kernel.parameters if p.name == name and not p.is_pointer), None)
        if parameter is not None and parameter.dtype is not None:
            return name
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        value = self.symbols.value_of(name)
        if value is not None and not isinstance(value, str):
            return self.text(value)
        constant = self.reader.constants.get(name)
        if constant is not None and number_of(constant) is not None:
            return constant
        raise _NoProposal

    def _lane(self, node: Node) -> str:
        """Return what a lane of a vector is: every lane has to be the same expression of its elements."""
        owner = node.child_by_field_name("argument")
        if re.match(r"(?:threadIdx|blockIdx|blockDim|gridDim)\b", text_of(owner)):
            raise _NoProposal
        value = self.values.get(text_of(node))
        return value if value is not None else self.text(owner)

    def _binary(self, node: Node) -> str:
        sign = node.child_by_field_name("operator").type
        if sign not in _OPERATORS:
            raise _NoProposal
        left, right = (self.text(node.child_by_field_name(side)) for side in ("left", "right"))
        if sign == "/" and not re.search(r"\d\.|[A-Za-z_]", left + right):
            raise _NoProposal
        return f"({left} {_OPERATORS[sign]} {right})"

    def _call(self, node: Node) -> str:
        called, nodes = (
            text_of(node.child_by_field_name("function")),
            arguments_in(node.child_by_field_name("arguments")),
        )
        base = called.partition("<")[0]
        name = base.rpartition("::")[2]
        if re.fullmatch(r"make_\w+[234]", name) and len(nodes) in (2, 3, 4):
            lanes = [self.text(argument) for argument in nodes]
            if len(set(lanes)) > 1:
                raise _NoProposal
            return lanes[0]
        if len(nodes) == 1 and dtype_of(self.symbols.plain_type(name.strip("() "))):
            return self.text(nodes[0])  # `(T)(x)` has the form of a call
        function = self.functions.get(name)
        if function is not None and len(function.parameters) == len(nodes):
            return self._inlined(function, nodes)
        if len(nodes) == 1 and (_SAME.fullmatch(base) or _SAME.fullmatch(name)):
            return self.text(nodes[0])
        plain = name.removeprefix("__")
        form = next((key for key in (plain, plain.removesuffix("f")) if key in _FORMS or key in _UNARY), None)
        if form is None:
            short = self.symbols.function(name)
            if short is None or len(short.parameters) != len(nodes):
                raise _NoProposal
            texts = [self.text(argument) for argument in nodes]
            return self._with_values(dict(zip(short.parameters, texts, strict=True)), short.result)
        texts = [self.text(argument) for argument in nodes]
        if form in _UNARY and len(texts) == 1:
            return f"{_UNARY[form]}({_bare(texts[0])})"
        try:
            result = _FORMS[form](*texts)
        except (TypeError, KeyError) as error:
            raise _NoProposal from error
        return result if result.startswith(("xp.", "special.")) else f"({result})"

    def _inlined(self, function: DeviceFunction, nodes: list[Node]) -> str:
        """Return a device function that declares variables and returns an expression, with its arguments."""
        arguments = [self.text(argument) for argument in nodes]
        before, self.returned = (self.values, self.returned), ""
        self.values = dict[str, str | None](zip(function.parameters, arguments, strict=True))
        try:
            self.run(function.body)
            if not self.returned:
                raise _NoProposal
            return self.returned
        finally:
            self.values, self.returned = before

    def _with_values(self, values: Mapping[str, str], node: Node) -> str:
        before, self.values = self.values, dict[str, str | None](values)
        try:
            return self.text(node)
        finally:
            self.values = before

    def _buffer(self, name: str, access: Access) -> str:
        """Return the buffer's name, broadcast or transposed to the shape of the output, or what was written to it."""
        if name in self.written:
            if access.index != self.index:
                raise _NoProposal
            return self.written[name]
        here, there = access.index, self.index
        shapes = {p.name: p.shape.value.split() if p.shape else [] for p in self.kernel.parameters if p.is_pointer}
        mine, output = shapes[name], shapes[self.output]
        if here == there and mine == output:
            return name
        if not key_of(here) and not here.get((), 0) and mine == ["1"]:
            return f"{name}[0]"
        if len(output) == 2 and "?" not in output:
            rows, cols = _digits(there, output[1], self.reader)
            if mine == output[1:] and here == cols:
                return name
            if mine == output[:1] and here == rows:
                return f"{name}[:, None]"
            if mine == output[::-1] and _digits(here, output[0], self.reader) == (cols, rows):
                return f"{name}.T"
        raise _NoProposal


def _digits(index: Sum, size: str, reader: IndexReader) -> tuple[Sum, Sum]:
    """Return the rows and columns of an index by the stride `size`, a name or a number."""
    rows: Sum = {}
    cols: Sum = {}
    for names, factor in index.items():
        if size in names:
            left = list(names)
            left.remove(size)
            rows[tuple(left)] = factor
        elif size.isdigit() and factor % int(size) == 0:
            rows[names] = factor // int(size)
        else:
            cols[names] = factor
    return rows, cols


def _bare(text: str) -> str:
    """Return a text without the brackets around all of it."""
    depth, inside = 0, text[1:-1]
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return text
    return inside if text.startswith("(") and text.endswith(")") else text


def _reads(before: str, text: str) -> bool:
    """Return whether a text continues what was written before, so that a second write loses nothing."""
    return before in text


def proposed_reference(
    kernel: FoundKernel,
    body: Node,
    reader: IndexReader,
    use: Mapping[str, BufferUse],
    functions: Mapping[str, DeviceFunction],
    symbols: Symbols,
) -> tuple[tuple[str, str], ...]:
    """Return NumPy's expression of each output; nothing where an output is more than one expression an element."""
    outputs = [p for p in kernel.parameters if p.role.value in ("output", "in_out")]
    accesses = {a.node.start_byte: (name, a) for name, seen in use.items() for a in seen.accesses}
    writes = [access for output in outputs for access in use[output.name].accesses if access.writes]
    shapes = {output.shape.value if output.shape else "" for output in outputs}
    if not writes or any(access.is_atomic or access.index != writes[0].index for access in writes) or len(shapes) > 1:
        return ()
    if not all(_covers(access, body) for access in writes):
        return ()
    translator = _Translator(kernel, reader, accesses, functions, symbols, outputs[0].name, writes[0].index)
    try:
        translator.run(body)
        proposed = tuple((output.name, _bare(translator.written[output.name])) for output in outputs)
    except (_NoProposal, KeyError, RecursionError):
        return ()
    return proposed if sum(len(text) for _, text in proposed) <= _LONGEST else ()


def _covers(access: Access, body: Node) -> bool:
    """Return whether an index takes every value: a scalar is not written at every fourth place only."""
    names = {name.partition("#")[0] for factors in access.index for name in factors}
    for node in nodes_of(body, "assignment_expression"):
        scales = node.child_by_field_name("operator").type not in ("=", "+=")
        if scales and text_of(node.child_by_field_name("left")) in names:
            return False
    step = math.gcd(*(factor for factors, factor in access.index.items() if factors))
    outer = access.node.parent
    is_wide = access.node.type == "call_expression" or "_cast" in text_of(access.node) or outer.type == "argument_list"
    return step <= 1 or is_wide or "*)" in text_of(access.node)


def _is_bound(statement: Node, reader: IndexReader, *, leaves: bool) -> bool:
    """Return whether a condition only keeps indices below sizes, or leaves (`return`) at indices that are not."""
    parts, below = [statement.child_by_field_name("condition")], (">", ">=") if leaves else ("<", "<=")
    while parts:
        part = parts.pop()
        while part.type in ("condition_clause", "parenthesized_expression"):
            part = part.child_by_field_name("value") or part.named_children[-1]
        if part.type != "binary_expression":
            return False
        left, right = part.child_by_field_name("left"), part.child_by_field_name("right")
        sign = part.child_by_field_name("operator").type
        if sign == ("||" if leaves else "&&"):
            parts += left, right
            continue
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign)
        index, limit = (left, right) if sign in below else (right, left)
        names = {name for factors in reader.sum_of(index) for name in factors}
        is_index = any(re.match(r"(?:thread|block)Idx\.", name) for name in names) or bool(
            names & reader.variables.keys()
        )
        if sign not in below and mirrored not in below or not is_index or not reader.size_text(limit):
            return False
        if not re.search(r"[A-Za-z_]", reader.size_text(limit) or ""):
            return False
    return True
