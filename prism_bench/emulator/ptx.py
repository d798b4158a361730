"""Inline PTX as calls of the emulator's runtime: barriers, and bulk copies by the tensor memory accelerator."""

import re
from functools import partial

_SPACE = r"(?:\s|\\\n|//[^\n]*\n|/\*.*?\*/)*"
_ASM = re.compile(rf"\b(?:asm|__asm__|__asm)\b(?:[\s\\]|volatile\b|__volatile__\b)*\({_SPACE}(?=\")", re.DOTALL)
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|\\\n|.', re.DOTALL)
_STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
_OPERAND = re.compile(r'(?:\[\w+\])?\s*"(?P<kind>[=+]?&?[rlhn])"\s*\((?P<value>.*)\)', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#", re.MULTILINE)
_ADDRESS = re.compile(r"\[\s*(?P<base>[^\s,+\]]+)\s*(?:\+\s*(?P<offset>\d+)\s*)?(?:,\s*\{(?P<places>[^}]*)\}\s*)?\]")
_INSTRUCTION = re.compile(
    r"(?:@(?P<negated>!?)(?P<predicate>[%\w$]+)\s+)?(?P<name>[a-z][\w.:]*)\s*(?P<operands>.*)", re.DOTALL
)
_TYPES = {"r": "uint32_t", "l": "uint64_t", "h": "uint16_t", "n": "int64_t"}
_COUNTED = r"(?:\.(?:release|acquire|relaxed))?(?:\.(?:cta|cluster))?(?:\.shared(?:::cta)?)?\.b64"
_TO_SHARED = r"\.shared::(?:cluster|cta)\.global(?:\.tile)?\.mbarrier::complete_tx::bytes"
_HINT = r"(?:\.L2::cache_hint)?"
_BITS = r"\.[busf]?(?:pred|32|64)"

# What an instruction becomes, by its name and how many operands it takes: {v1} is the value of the operand with the
# number 1, {s1} the pointer to its address in shared memory, {g1} to its generic address, {m1} to whichever its name
# has, {d1} the assignment to it, {b1} a tensor map and coordinates, {parity} whether the name has that word.
_CALLS: tuple[tuple[str, tuple[int, ...], str], ...] = (
    (r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?", (1,), "cpu::block_barrier(SITE)"),
    (r"(?:bar|barrier)(?:\.cta)?\.(?:(?P<sync>sync)|arrive)(?:\.aligned)?", (2,),
     "cpu::named_barrier({v0}, {v1}, {sync}, SITE)"),
    (r"mbarrier\.init(?:\.shared(?:::cta)?)?\.b64", (2,), "cpu::mbarrier_init({m0}, {v1}, SITE)"),
    (rf"mbarrier\.arrive{_COUNTED}", (2, 3), '{d0}cpu::mbarrier_arrive("mbarrier", {m1}, {v2}, 0, SITE)'),
    (rf"mbarrier\.arrive\.expect_tx{_COUNTED}", (3,), '{d0}cpu::mbarrier_arrive("mbarrier", {m1}, 1, {v2}, SITE)'),
    (rf"mbarrier\.expect_tx{_COUNTED}", (2,), 'cpu::mbarrier_arrive("mbarrier", {m0}, 0, {v1}, SITE)'),
    (rf"mbarrier\.(?:(?P<suspends>try)|test)_wait(?P<parity>\.parity)?{_COUNTED}", (3, 4),
     '{d0}cpu::mbarrier_test("mbarrier", {m1}, {v2}, {parity}, {suspends}, SITE)'),
    (rf"cp\.async\.bulk{_TO_SHARED}{_HINT}", (4, 5), "cpu::load_bulk({s0}, {g1}, {v2}, {s3}, SITE)"),
    (rf"cp\.async\.bulk\.global\.shared::cta\.bulk_group{_HINT}", (3, 4), "cpu::store_bulk({g0}, {s1}, {v2}, SITE)"),
    (rf"cp\.async\.bulk\.tensor\.[1-5]d{_TO_SHARED}{_HINT}", (3, 4), "cpu::load_box({s0}, {b1}, {s2}, SITE)"),
    (rf"cp\.async\.bulk\.tensor\.[1-5]d\.global\.shared::cta(?:\.tile)?\.bulk_group{_HINT}", (2, 3),
     "cpu::store_box({b0}, {s1}, SITE)"),
    (r"cp\.async\.bulk\.commit_group", (0,), "cpu::commit_stores()"),
    (r"cp\.async\.bulk\.wait_group(?:\.read)?", (1,), "cpu::wait_for_stores({v0})"),
    (r"mbarrier\.inval(?:\.shared(?:::cta)?)?\.b64|prefetch(?:\.(?:const|param))?\.tensormap", (1,), "void(0)"),
    (r"fence\.mbarrier_init\.release\.cluster", (0,), "void(0)"),
    (r"fence\.proxy\.async(?:\.global|\.shared::(?:cta|cluster))?", (0,), "void(0)"),
    (r"cvta\.to\.shared\.u(?:32|64)", (2,), "{d0}cpu::shared_address(reinterpret_cast<const void*>({v1}))"),
    (rf"cvt\.u32\.u64|mov{_BITS}", (2,), "{d0}uint64_t({v1})"),
    (rf"selp{_BITS}", (4,), "{d0}uint64_t({v3} ? {v1} : {v2})"),
    (r"setp\.ne\.[bus]32", (3,), "{d0}uint64_t(uint32_t({v1}) != uint32_t({v2}))"),
    (r"setp\.eq\.[bus]32", (3,), "{d0}uint64_t(uint32_t({v1}) == uint32_t({v2}))"),
)  # fmt: skip


class _UnknownPtx(Exception):
    """A statement has an instruction or an operand that the emulator does not know."""


def translate(code: str) -> str:
    """Return the source with calls in place of the `asm` statements whose instructions are all known."""
    parts: list[str] = []
    end = 0
    for start in _ASM.finditer(code):
        if start.start() < end:
            continue
        sections, close = _parts(code, ":", start.end())
        statement = code[start.start() : close]
        try:
            call = _Statement([] if _DIRECTIVE.search(statement) else sections).call()
        except _UnknownPtx:
            continue
        parts += [code[end : start.start()], call, *re.findall(r"\\?\n", statement)]
        end = close
    return "".join([*parts, code[end:]])


def _parts(text: str, separator: str, start: int = 0) -> tuple[list[str], int]:
    """Return the parts between separators outside of brackets, and where the bracket around them closes."""
    parts, depth = [""], 0
    for token in _TOKEN.finditer(text, start):
        part = token[0]
        depth += (part in "([{") - (part in ")]}")
        if depth < 0:
            return parts, token.end()
        if part == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += " " if part == "\n" or part.startswith(("//", "/*", "\\\n")) else part
    return parts, len(text)


def _list(text: str, separator: str = ",") -> list[str]:
    return [part.strip() for part in _parts(text, separator)[0] if part.strip()]


class _Statement:
    """One `asm` statement: its instructions, and the C++ variables that hold its operands and registers."""

    def __init__(self, sections: list[str]) -> None:
        if not sections or len(sections) > 4 or _STRING.sub("", sections[0]).strip():
            raise _UnknownPtx
        text = "".join(_STRING.findall(sections[0])).replace("\\n", "\n").replace("\\t", " ")
        # Braces outside of an address only bound the names of registers.
        text = re.sub(r"[{}](?![^\[]*\])", " ", text).replace("%%", "%").replace("%=", "")
        self._instructions = _list(re.sub(r"([A-Za-z_$][\w$]*):(?!:)", r";\1:;", text), ";")
        self._operands = [_OPERAND.fullmatch(operand) for section in sections[1:3] for operand in _list(section)]
        self._variables: dict[str, str] = {}  # by operand or register
        self._labels = [part[:-1] for part in self._instructions if part.endswith(":")]

    def call(self) -> str:
        """Return the statement as an expression in C++; raise _UnknownPtx where it has an unknown part."""
        before = [f"__label__ {', '.join(self._labels)};"] if self._labels else []
        after: list[str] = []
        for number, operand in enumerate(self._operands):
            if operand is None:
                raise _UnknownPtx
            kind, value = operand["kind"], operand["value"].strip()
            name, type_name = self._variable(f"%{number}"), _TYPES[kind[-1]]
            before.append(f"{type_name} {name} = {'0' if kind[0] == '=' else f'({type_name})({value})'};")
            if kind[0] in "=+":
                after.append(f"({value}) = (::std::remove_reference_t<decltype(({value}))>){name};")
        steps: list[str] = []
        for instruction in self._instructions:
            registers = re.fullmatch(r"\.reg\s*\.\w+\s+(.*)", instruction, re.DOTALL)
            if registers:
                before += [f"uint64_t {self._variable(register)} = 0;" for register in _list(registers[1])]
            else:
                steps.append(f"{instruction};" if instruction.endswith(":") else self._step(instruction))
        if not steps:
            raise _UnknownPtx
        return f"({{ {' '.join([*before, *steps, *after])} }})" if before or steps[1:] else steps[0].removesuffix(";")

    def _variable(self, name: str) -> str:
        return self._variables.setdefault(name, f"cuda_cpu_ptx_{len(self._variables)}")

    def _step(self, text: str) -> str:
        """Return an instruction as a statement in C++."""
        instruction = _INSTRUCTION.fullmatch(text)
        if instruction is None:
            raise _UnknownPtx
        operands, condition = _list(instruction["operands"]), ""
        if instruction["predicate"]:
            condition = f"if ({instruction['negated']}{self._value(instruction['predicate'])}) "
        if instruction["name"] in ("bra", "bra.uni") and operands[:1] and operands[0] in self._labels:
            return f"{condition}goto {operands[0]};"
        for name, counts, call in _CALLS:
            match = re.fullmatch(name, instruction["name"]) if len(operands) in counts else None
            if match:
                filled = re.sub(r"\{(\w+)\}", partial(self._filled, match, operands), call)
                return f"{condition}{filled.replace('cpu::', '::cuda_cpu::').replace('SITE', 'CUDA_CPU_SITE')};"
        raise _UnknownPtx

    def _value(self, operand: str) -> str:
        """Return a number, or the variable of an operand or register."""
        if re.fullmatch(r"-?\d+|0[xX][\da-fA-F]+", operand):
            return operand
        if operand not in self._variables:
            raise _UnknownPtx
        return self._variables[operand]

    def _filled(self, instruction: re.Match[str], operands: list[str], key: re.Match[str]) -> str:
        """Return the text for a name in braces of `_CALLS`."""
        kind, number = key[1][0], key[1][1:]
        if not number.isdigit():
            return "true" if instruction[key[1]] else "false"
        operand = operands[int(number)] if int(number) < len(operands) else "1"  # arrivals that are left out
        if kind == "v":
            return self._value(operand)
        if kind == "d":
            return "" if operand == "_" else f"{self._value(operand)} = "
        address = _ADDRESS.fullmatch(operand)
        if address is None or (address["places"] is None) is (kind == "b"):
            raise _UnknownPtx
        place = f"{self._value(address['base'])} + {address['offset'] or 0}"
        if kind == "b":
            places = [f"int32_t({self._value(name)})" for name in _list(address["places"])]
            return f"reinterpret_cast<const void*>({place}), {{{len(places)}, {{{', '.join(places)}}}}}"
        is_shared = kind == "s" or (kind == "m" and ".shared" in instruction[0])
        return f"cpu::shared_pointer({place})" if is_shared else f"reinterpret_cast<void*>({place})"
