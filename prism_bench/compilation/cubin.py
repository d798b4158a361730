"""Machine code in a cubin: its sections, hashes, resources, parameters, symbols and names of kernels."""

import ctypes
import hashlib
import io
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from prism_bench.errors import CompilationFailed, SpecError
from prism_bench.spec.launch import LaunchCard

# Sections, read without pyelftools, which remains the reader of unusual files.
#
# Every process hashes the code of every case of a run. pyelftools spends tens of milliseconds on the hundreds of
# sections of a program, between two cases that are timed.

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_FILE = struct.Struct("<16sHHIQQQIHHHHHH")  # the header of the file
_SECTION = struct.Struct("<IIQQQQIIQQ")  # the header of a section
_NO_BITS, _COMPRESSED = 8, 0x800


class _Unusual(Exception):
    """A file that pyelftools has to read, or to refuse."""


@dataclass(frozen=True)
class CubinSection:
    """A section: its `name`, its `size` in bytes, and its content."""

    name: str
    size: int
    content: memoryview | None  # None for zeros that are not in the file

    def data(self) -> bytes:
        """Return the bytes of the section."""
        return bytes(self.size) if self.content is None else bytes(self.content)


def sections(cubin: bytes) -> list[CubinSection]:
    """Return the sections in the order of the file; raise pyelftools' ELFError if it is no ELF file."""
    try:
        return _sections(memoryview(cubin))
    except (_Unusual, struct.error, IndexError):
        return list(_by_general_reader(cubin))


def _sections(file: memoryview) -> list[CubinSection]:
    header = _FILE.unpack_from(file)
    start, size, count, of_names = header[6], header[11], header[12], header[13]
    if bytes(file[: len(_MAGIC)]) != _MAGIC or size != _SECTION.size or not 0 < of_names < count:
        raise _Unusual
    headers = [_SECTION.unpack_from(file, start + index * size) for index in range(count)]
    names = bytes(_content(file, headers[of_names]) or b"")
    return [CubinSection(_name(names, header[0]), header[5], _content(file, header)) for header in headers]


def _content(file: memoryview, header: tuple[int, ...]) -> memoryview | None:
    kind, flags, offset, size = header[1], header[2], header[4], header[5]
    if kind == _NO_BITS:
        return None
    if flags & _COMPRESSED or offset + size > len(file):
        raise _Unusual
    return file[offset : offset + size]


def _name(names: bytes, begin: int) -> str:
    end = names.find(b"\0", begin)
    if end < 0:
        raise _Unusual
    return names[begin:end].decode("utf-8", "replace")


def _by_general_reader(cubin: bytes) -> Iterable[CubinSection]:
    from elftools.elf.elffile import ELFFile

    for section in ELFFile(io.BytesIO(cubin)).iter_sections():
        yield CubinSection(section.name, section.data_size, memoryview(section.data()))


# Hashes and resources.

_ENTRY = re.compile(r"Compiling entry function '(?P<entry>[^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_TEXT, _SHARED_MEMORY = ".text.", ".nv.shared."
_DATA, _ARGUMENTS = (".nv.constant", ".nv.global.init"), ".nv.constant0"
_BARRIERS = re.compile(r"used (\d+) barriers")


@dataclass(frozen=True)
class Resources:
    """Resources of an entry function, as ptxas reports them; bytes per thread for stack and spills."""

    registers: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared_bytes: int = 0
    barriers: int = 0


def sass_hash(cubin: bytes, leaving_out: Collection[str] = ()) -> str:
    """Return a hash of the instructions: names, build times and paths in the file do not change it.

    Functions with the mangled names `leaving_out` do not count.
    """
    digest = hashlib.sha256()
    for section in sorted(sections(cubin), key=lambda section: section.name):
        if section.name.startswith(_TEXT) and section.name.removeprefix(_TEXT) not in leaving_out:
            digest.update(section.data())
    return digest.hexdigest()[:16]


def toolchain(cubin: bytes) -> bytes:
    """Return the note with ptxas's version and options; empty without such a note."""
    from elftools.elf.elffile import ELFFile

    note = ELFFile(io.BytesIO(cubin)).get_section_by_name(".note.nv.tkinfo")
    return note.data() if note else b""


def code_bytes(cubin: bytes, symbols: Collection[str]) -> int:
    """Return the size of the instructions of these entries, in bytes."""
    wanted = {f"{_TEXT}{symbol}" for symbol in symbols}
    return sum(section.size for section in sections(cubin) if section.name in wanted)


def has_shared_memory(cubin: bytes) -> bool:
    """Return whether a function of the cubin declares shared memory, without what the system reserves."""
    declared = (section for section in sections(cubin) if section.name.startswith(_SHARED_MEMORY))
    return any(section.size and not section.name.startswith(f"{_SHARED_MEMORY}reserved.") for section in declared)


def data_hash(cubin: bytes) -> str:
    """Return a hash of the code's constants and initial values, without the space for arguments."""
    digest = hashlib.sha256()
    for section in sorted(sections(cubin), key=lambda section: section.name):
        if section.name.startswith(_DATA) and not section.name.startswith(_ARGUMENTS):
            digest.update(section.name.encode() + section.data())
    return digest.hexdigest()[:16]


def resources(log: str) -> dict[str, Resources]:
    """Return resources by mangled entry name, read from the log of `--ptxas-options=-v`."""
    by_entry = {}
    parts = _ENTRY.split(log)
    for entry, text in zip(parts[1::2], parts[2::2], strict=True):
        stack = _STACK.search(text)
        stack_bytes, stores, loads = (int(number) for number in stack.groups()) if stack else (0, 0, 0)
        by_entry[entry] = Resources(
            _number(_USED, text), stack_bytes, stores, loads, _number(_SHARED, text), _number(_BARRIERS, text)
        )
    return by_entry


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match.group(1)) if match else 0


# Parameters, and checks of launch cards against them.

_SIZED = 4  # a record of .nv.info whose value follows its length; the values of others have two bytes
_LARGEST_BLOCK, _REQUIRED_BLOCK, _PARAMETER = 0x05, 0x10, 0x17  # EIATTR_MAX_THREADS, _REQNTID, _KPARAM_INFO
_REQUIRED_CLUSTER = 0x3D  # EIATTR_CTA_PER_CLUSTER
_PARAMETER_OF_TILES = 0x45  # of code for which the driver makes tensor maps at a launch
_SIZE_SHIFT = 18  # of the word that has a parameter's size


@dataclass(frozen=True)
class ElfEntry:
    """Entry as the ELF file describes it: its parameters as (offset, bytes), in order.

    `block` and `cluster` are the extents that it requires, `most_threads` what its `__launch_bounds__` allow.
    """

    parameters: tuple[tuple[int, int], ...]
    block: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    most_threads: int | None = None


def elf_entries(cubin: bytes) -> dict[str, ElfEntry]:
    """Return the entries of a cubin by symbol; raise SpecError if it is no ELF file."""
    from elftools.common.exceptions import ELFError

    try:
        by_name = {section.name: section for section in sections(cubin)}
        names = [name.removeprefix(_TEXT) for name in by_name if name.startswith(_TEXT)]
        infos = {name: by_name.get(f".nv.info.{name}") for name in names}
        return {name: _entry(section.data()) for name, section in infos.items() if section is not None}
    except (ELFError, struct.error, ValueError) as error:
        raise SpecError(f"the cubin is no ELF file for a GPU: {error}") from error


def check_card(card: LaunchCard, cubin: bytes) -> None:
    """Raise SpecError if a launch card contradicts the ELF file."""
    entries = elf_entries(cubin)
    if card.entry not in entries:
        raise SpecError(f"launch card: the cubin has no entry '{card.entry}'; it has {', '.join(entries) or 'none'}")
    entry = entries[card.entry]
    if card.extents != entry.parameters:
        raise SpecError(
            f"launch card of '{card.entry}': its parameters have {_text(card.extents)}; those of the cubin have "
            f"{_text(entry.parameters)}"
        )
    required = (("block", card.block, "thread", entry.block), ("cluster", card.cluster, "block", entry.cluster))
    for group, extents, noun, required_extents in required:
        if required_extents and any(extents) and extents != required_extents:
            text, required_text = ("x".join(map(str, sizes)) for sizes in (extents, required_extents))
            raise SpecError(
                f"launch card of '{card.entry}': its {group} has {text} {noun}s; the cubin requires {required_text}"
            )


def parameter_sizes(cubin: bytes, entry: str) -> tuple[int, ...] | None:
    """Return the bytes of each parameter of an entry; None if the machine code does not have it."""
    known = elf_entries(cubin).get(entry)
    return tuple(size for _, size in known.parameters) if known else None


def check_sizes(entry: str, passed: Sequence[int], taken: tuple[int, ...] | None, caller: str = "the launch") -> None:
    """Raise SpecError if parameters of these bytes are not those that an entry takes, if these are known."""
    if taken is not None and taken != tuple(passed):
        raise SpecError(f"{entry}: {caller} {sizes_text(passed, taken)}")


def sizes_text(passed: Sequence[int], taken: Sequence[int]) -> str:
    """Return how the bytes of the parameters that a launch passes differ from those that machine code takes."""
    ours, theirs = (", ".join(map(str, sizes)) or "no" for sizes in (passed, taken))
    return f"passes parameters of {ours} bytes; the machine code takes {theirs}"


def _text(parameters: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"{size} bytes at {offset}" for offset, size in parameters) or "no bytes"


def _entry(data: bytes) -> ElfEntry:
    parameters: dict[int, tuple[int, int]] = {}
    extents: dict[int, tuple[int, int, int]] = {}
    for attribute, value in info_records(data):
        if attribute == _PARAMETER:
            _, ordinal, offset, word = struct.unpack("<IHHI", value)
            parameters[ordinal] = offset, word >> _SIZE_SHIFT
        elif attribute == _PARAMETER_OF_TILES:
            _, ordinal, offset, size, _ = struct.unpack("<IHHHH", value)
            parameters[ordinal] = offset, size
        elif attribute in (_LARGEST_BLOCK, _REQUIRED_BLOCK, _REQUIRED_CLUSTER):
            x, y, z = struct.unpack("<III", value)
            extents[attribute] = x, y, z
    sizes = tuple(size for _, size in sorted(parameters.items()))
    largest = extents.get(_LARGEST_BLOCK)
    most_threads = prod(largest) if largest else None
    return ElfEntry(sizes, extents.get(_REQUIRED_BLOCK), extents.get(_REQUIRED_CLUSTER), most_threads)


def info_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield attribute and value of each sized record of a `.nv.info` section."""
    at = 0
    while at + 4 <= len(data):
        kind, attribute, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind == _SIZED:
            yield attribute, data[at : at + length]
            at += length


# Names of C++ functions.

_SUFFIX = re.compile(r"(?<=\d)[uUlL]+\b")


@cache
def _demangled(symbol: str) -> str:
    """Return a mangled symbol as C++ writes it, `void softmax<float, 4>(float*, int)`; other symbols unchanged.

    The C++ runtime's function demangles; without a runtime library symbols stay unchanged.
    """
    library = _runtime() if symbol.startswith("_Z") else None
    if library is None:
        return symbol
    status, length = ctypes.c_int(), ctypes.c_size_t()
    text = library.__cxa_demangle(symbol.encode(), None, ctypes.byref(length), ctypes.byref(status))
    return ctypes.cast(text, ctypes.c_char_p).value.decode() if status.value == 0 and text else symbol  # pyright: ignore[reportOptionalMemberAccess]


def function_of(entry: str) -> str:
    """Return the function that an entry names, without its return type and parameters: `softmax<float, 4>`.

    An entry is a name, a template instance or a mangled symbol.
    """
    return _without_signature(_demangled(entry)) if entry.startswith("_Z") else entry


def _without_signature(text: str) -> str:
    """Remove the return type before the name and the parameters after it, outside of template arguments."""
    text = text.replace("(anonymous namespace)::", "")
    depth, start = 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if not depth and letter == " ":
            start = index + 1
        if not depth and letter == "(":
            return text[start:index]
    return text[start:]


@cache
def _runtime() -> Any:
    for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.__cxa_demangle.restype = ctypes.c_void_p
        return library
    return None


# Symbols.

_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_SYMBOLS_ENTRY = 0x10  # STO_CUDA_ENTRY in st_other
_MOST_NAMES = 20
_WRITABLE = 1  # SHF_WRITE
# Sections whose content a loader of host code calls or runs, by type and by the names that linkers gather.
_CALLED_TYPES = ("SHT_INIT_ARRAY", "SHT_FINI_ARRAY", "SHT_PREINIT_ARRAY")
_CALLED_NAMES = re.compile(r"\.(?:preinit_array|init_array|fini_array|ctors|dtors|init|fini)(?:\.|$)")
_INDIRECT = ("STT_LOOS", "STT_GNU_IFUNC")  # functions that a loader calls to find others
_NOT_KEPT = (_SHARED_MEMORY.rstrip("."), ".nv.merc")  # memory of a block; data of debuggers


def entry_symbols(cubin: bytes) -> tuple[str, ...]:
    """Return the symbols of the kernels in a cubin; an empty tuple if it is no ELF file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(cubin))
        table = file.get_section_by_name(".symtab")
        names = file.get_section_by_name(".strtab").data()
        data = table.data()
    except (ELFError, AttributeError):
        return ()
    symbols: list[str] = []
    for at in range(0, len(data) - _SYMBOL.size + 1, _SYMBOL.size):
        name, _, other, *_ = _SYMBOL.unpack_from(data, at)
        if other & _SYMBOLS_ENTRY:
            symbols.append(names[name : names.index(b"\0", name)].decode())
    return tuple(symbols)


def function_variables(library: bytes, section: str) -> dict[str, int]:
    """Return the bytes of variables of functions that are in a section, by function: `softmax<32, 4>`.

    `library` is an ELF file of a host. A variable belongs to the function in which it is declared.
    """
    contents = sections(library)
    names, symbols = (
        next((part.data() for part in contents if part.name == name), b"") for name in (".strtab", ".symtab")
    )
    sizes: dict[str, int] = {}
    for at in range(0, len(symbols) - _SYMBOL.size + 1, _SYMBOL.size):
        name, _, _, place, _, size = _SYMBOL.unpack_from(symbols, at)
        if size and place < len(contents) and contents[place].name == section:
            function = function_of(_name(names, name))
            sizes[function] = sizes.get(function, 0) + size
    return sizes


def undefined_symbols(cubin: bytes) -> tuple[str, ...] | None:
    """Return the functions and variables that a cubin uses and does not define; None if it is no ELF file for a GPU.

    Symbols that the compiler reserves (`.nv.`) are left out.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(cubin))
        table: Any = file.get_section_by_name(".symtab")
        names = [symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"]
    except (ELFError, AttributeError, KeyError, ValueError, AssertionError):
        return None
    return tuple(name for name in names if name and not name.startswith(".nv."))


def variable_symbols(cubin: bytes) -> dict[str, int]:
    """Return the variables of a cubin that keep their content from launch to launch, with their bytes.

    Unnamed content is named like its section. Raise SpecError if it is no ELF file for a GPU.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file: Any = ELFFile(io.BytesIO(cubin))
        kept = {
            number: section
            for number, section in enumerate(file.iter_sections())
            if section["sh_flags"] & _WRITABLE and section["sh_size"] and not section.name.startswith(_NOT_KEPT)
        }
        variables = {
            symbol.name: (symbol["st_shndx"], symbol["st_size"])
            for symbol in file.get_section_by_name(".symtab").iter_symbols()
            if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_size"] and symbol["st_shndx"] in kept
        }
        named = {number for number, _ in variables.values()}
        unnamed = {section.name: section["sh_size"] for number, section in kept.items() if number not in named}
        return {name: size for name, (_, size) in variables.items()} | unnamed
    except (ELFError, AttributeError, KeyError, ValueError) as error:
        raise SpecError(f"the cubin is no ELF file for a GPU: {error}") from error


def variable_of(name: str, cubin: bytes) -> tuple[str, int]:
    """Return the symbol of a `__constant__` or `__device__` variable and its bytes; `name` may have its namespace.

    Raise SpecError, with the variables that the cubin has, where it is none of them or could be several.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        table: Any = ELFFile(io.BytesIO(cubin)).get_section_by_name(".symtab")
        sizes = {
            symbol.name: symbol["st_size"]
            for symbol in table.iter_symbols()
            if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_size"]
        }
    except (ELFError, AttributeError, KeyError, ValueError) as error:
        raise SpecError(f"the cubin is no ELF file for a GPU: {error}") from error
    named = {symbol: function_of(symbol) for symbol in sizes if not symbol.startswith(".nv.")}
    wanted = name.removeprefix("::")
    matches = [symbol for symbol, text in named.items() if text == wanted or text.endswith(f"::{wanted}")]
    if len(matches) != 1:
        which = "can be several variables" if matches else "is no variable that the kernels use"
        raise SpecError(f"'{name}' {which}; the machine code has {', '.join(named.values()) or 'none'}")
    return matches[0], sizes[matches[0]]


def called_by_loaders(code: bytes) -> dict[str, int]:
    """Return by section how many functions of a host object file a loader calls: its pointers, or words of code."""
    from elftools.elf.elffile import ELFFile

    file: Any = ELFFile(io.BytesIO(code))
    called: dict[str, int] = {}
    for section in file.iter_sections():
        if section["sh_type"] in _CALLED_TYPES or _CALLED_NAMES.match(section.name):
            pointers = -(-section["sh_size"] * 8 // file.elfclass)
            called[section.name] = called.get(section.name, 0) + pointers
    for table in file.iter_sections("SHT_SYMTAB"):
        if indirect := sum(symbol["st_info"]["type"] in _INDIRECT for symbol in table.iter_symbols()):
            called["indirect functions"] = indirect
    return {name: pointers for name, pointers in called.items() if pointers}


def lowered_names(cubin: bytes, entries: Sequence[str], source: str) -> dict[str, str]:
    """Return the symbol of each entry in the cubin; raise CompilationFailed with the symbols for a missing entry."""
    symbols = entry_symbols(cubin)
    return {entry: symbol_of(entry, symbols, source) for entry in entries}


def symbol_of(entry: str, symbols: Sequence[str], source: str) -> str:
    """Return the symbol of the function that an entry names, by its symbol, its instance or its plain name."""
    if entry in symbols:
        return entry

    def compact(name: str) -> str:
        return _SUFFIX.sub("", "".join(function_of(name).split()).removeprefix("::"))

    def without_template(name: str) -> str:
        return function_of(name).partition("<")[0].strip()

    wanted = compact(entry)
    matches = [symbol for symbol in symbols if compact(symbol) == wanted]
    if not matches:  # a plain name of the only instance, or arguments that are written in another way
        wanted = without_template(entry)
        matches = [symbol for symbol in symbols if without_template(symbol) == wanted]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise CompilationFailed(f"{source}: no kernel '{entry}'; it has {_listed(symbols)}")
    raise CompilationFailed(
        f"{source}: '{entry}' can be {_listed(matches)}: name one of these with its template arguments, or by its "
        f"symbol, such as {matches[0]}"
    )


def _listed(symbols: Sequence[str]) -> str:
    shown = ", ".join(_demangled(symbol) for symbol in symbols[:_MOST_NAMES]) or "no kernel at all"
    return f"{shown} and {len(symbols) - _MOST_NAMES} more" if len(symbols) > _MOST_NAMES else shown


# Names of the kernels that a CUDA source defines, for the error about a missing entry.

_ATTRIBUTE = re.compile(r"__(?:launch_bounds|cluster_dims|maxnreg|block_size)__\s*\((?:[^()]|\([^()]*\))*\)")
_KERNEL = re.compile(r"__global__\s+[\w\s:*&<>,]*?\b(\w+)\s*\(")


def kernels_in(code: str) -> tuple[str, ...]:
    """Return the names of all `__global__` functions in `code`, each once, in the order of the source.

    Kernels whose names a macro makes are not found.
    """
    return tuple(dict.fromkeys(_KERNEL.findall(_ATTRIBUTE.sub("", code))))


def missing_entry(entries: Iterable[str], code: str, source: str) -> str | None:
    """Return an error text for the first entry whose name occurs nowhere in `code`; None if all occur.

    `entries` are names or template instances (`softmax<256, float>`), `source` is the file's name for the text.
    """
    for entry in entries:
        name = entry.partition("<")[0].rpartition("::")[2].strip()
        if not re.search(rf"\b{re.escape(name)}\b", code):
            defined = ", ".join(kernels_in(code)) or "no kernel at all"
            return f"{source}: no kernel '{name}', which the spec launches; the source defines {defined}"
    return None
