"""Host C++ sources from CUDA sources, with their file names and line numbers.

Project includes replace their `#include`, system includes move to the top, and the rest is put into an unnamed
namespace: without it g++ refuses `__shared__` in a template next to `__shared__` in a plain function.
Three things cannot be expressed with macros and are rewritten: `extern __shared__`, `extern "C"`, and `return;`, which
notes that the thread leaves before the end: barriers wait for every thread that has not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from prism_bench.emulator.compiler import INCLUDE
from prism_bench.errors import SpecError
from prism_bench.io.files import first_in

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"][^\n]*$')
_PLACE = re.compile(r'^#line (\d+) "(.*)"$')
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$")
_DYNAMIC_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)\s*)?"
    r"(?P<type>[\w:<>,\s]+?)\s+(?:__align__\s*\([^)]*\)\s*)?(?P<name>\w+)\s*\[\s*\](?P<more>(?:\s*\[[^\]]*\])*)\s*;"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_C_LINKAGE = re.compile(r'\bextern\s+"C"\s*(?P<block>\{)?')
_RETURN = re.compile(r"\breturn\s*;(?!\s*\n\})")  # one before a function's last brace leaves nothing out
_SYMBOL = re.compile(
    r"__(?:constant|device)__\s+(?:[\w:]+(?:<[^;{}()]*?>)?(?:\s*\([\d\s]*\))?[\s*&]+)+(?P<name>\w+)\s*(?:\[[^\]]*\]\s*)*[=;{]"
)


@dataclass(frozen=True)
class HostSource:
    """A translation unit for the host compiler."""

    text: str
    entries: tuple[str, ...]
    symbols: tuple[str, ...]


def host_source(path_or_text: Path | str, include_dirs: tuple[Path, ...], entries: tuple[str, ...]) -> HostSource:
    """Return the host source of a kernel file, or of source text, exporting `entries` and its global variables."""
    body, symbols, system = _body(_flat(path_or_text, include_dirs))
    hoisted = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in system)
    opening = f'#include "cuda_on_cpu.h"\n{hoisted}namespace {{\n#include "cuda_on_cpu/kernel_scope.h"\n'
    return HostSource(f"{opening}{body}\n{_tables(entries, symbols)}", entries, symbols)


def flat_code(path_or_text: Path | str, include_dirs: tuple[Path, ...]) -> str:
    """Return the source with its project includes in place, its system includes at the end, without comments."""
    flat = _flat(path_or_text, include_dirs)
    return without_comments(flat.text + "".join(f"\n#include <{name}>" for name in flat.system))


@dataclass(frozen=True)
class _Flat:
    """A source with its project includes in place, the names of its system includes, and the state of all its files."""

    text: str
    system: tuple[str, ...]
    files: tuple[tuple[Path, int, int], ...]

    @property
    def is_fresh(self) -> bool:
        return all(_state(path) == (path, *state) for path, *state in self.files)


# The passes of a verification read the same few sources again and again.
_KEPT: dict[tuple[Path | str, tuple[Path, ...]], _Flat] = {}


def _flat(path_or_text: Path | str, include_dirs: tuple[Path, ...]) -> _Flat:
    """Return the flat source; a file is read again when it, or a file that it includes, has changed."""
    key = (path_or_text, include_dirs)
    if key not in _KEPT or not _KEPT[key].is_fresh:
        reader = _Flattener(include_dirs)
        text = reader.read(path_or_text)
        _KEPT[key] = _Flat(text, tuple(reader.system), tuple(map(_state, reader.files)))
    return _KEPT[key]


def _state(path: Path) -> tuple[Path, int, int]:
    """Return what differs when a file has changed or is gone."""
    try:
        found = path.stat()
    except OSError:
        return path, 0, -1
    return path, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=256)
def _body(flat: _Flat) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the rewritten text, its global variables, and the system includes."""
    body = _rewrite(flat.text)
    return body, tuple(_symbols(body)), flat.system


@lru_cache(maxsize=256)
def without_comments(code: str) -> str:
    """Return the code without the contents of string literals, and a blank or newlines for each comment."""

    def blank(match: re.Match[str]) -> str:
        return '""' if match[0].startswith('"') else "\n" * match[0].count("\n") or " "

    return _COMMENT.sub(blank, code)


class _Flattener:
    """Reads a source with its project includes in place; `system` gathers the others in order."""

    def __init__(self, include_dirs: tuple[Path, ...]) -> None:
        self.include_dirs = include_dirs
        self.system: list[str] = []
        self.files: list[Path] = []
        self.read_once: set[Path] = set()

    def read(self, path_or_text: Path | str) -> str:
        if isinstance(path_or_text, str) and "\n" in path_or_text:
            return self._lines(path_or_text, "kernel.cu", Path.cwd())
        path = Path(path_or_text)
        if not path.is_file():
            raise SpecError(f"no kernel source at {path}")
        return self._file(path)

    def _file(self, path: Path) -> str:
        self.files.append(path)
        return self._lines(path.read_text(encoding="utf-8"), str(path), path.parent)

    def _lines(self, text: str, name: str, folder: Path) -> str:
        lines = [f'#line 1 "{name}"']
        number = 0
        for line in text.split("\n"):
            include, place = _INCLUDE.match(line), _PLACE.match(line)
            number = int(place[1]) - 1 if place else number + 1
            name = place[2] if place else name
            if include:
                lines.append(self._include(include[1], include[2].strip(), folder, f'#line {number} "{name}"'))
                lines.append(f'#line {number + 1} "{name}"')
            else:
                lines.append("" if _ONCE.match(line) else line)
        return "\n".join(lines)

    def _include(self, bracket: str, name: str, folder: Path, place: str) -> str:
        beside = [folder] if folder and bracket == '"' else []
        found = first_in([*beside, *self.include_dirs], name)
        if found is None:
            if name not in self.system:
                self.system.append(name)
            if "assert" in name:
                return '#include "cuda_on_cpu/kernel_scope.h"'
            return "" if first_in([INCLUDE], name) else self._missing(name, folder, place)
        if found.resolve() in self.read_once:
            return ""
        if any(_ONCE.match(line) for line in found.read_text(encoding="utf-8").split("\n")):
            self.read_once.add(found.resolve())
        return self._file(found)

    def _missing(self, name: str, folder: Path, place: str) -> str:
        """Return lines that stop the host compiler at `place` unless it has the header itself.

        The compiler decides, not this reader: only it knows which branch of a condition is taken.
        """
        searched = ", ".join(str(one) for one in (folder, *self.include_dirs))
        words = f"'{name}' is neither in {searched} nor a header of the emulator or the host compiler"
        return f"#if !__has_include(<{name}>)\n{place}\n#error {words}\n#endif"


def _rewrite(text: str) -> str:
    """Replace what macros cannot express; every newline stays."""
    return _RETURN.sub(_noted_return, _C_LINKAGE.sub(_plain_linkage, _declare_shared(text)))


def _noted_return(match: re.Match[str]) -> str:
    return "{ ::cuda_cpu::leave_early(); return; }" + "\n" * match[0].count("\n")


def _declare_shared(text: str) -> str:
    """Declare dynamic shared memory as pointers; repeated declarations outside functions are left out."""
    parts: list[str] = []
    seen: set[str] = set()
    end = depth = 0
    for match in _DYNAMIC_SHARED.finditer(text):
        between = text[end : match.start()]
        code = without_comments(between)
        depth += code.count("{") - code.count("}")
        again = depth == 0 and match["name"] in seen
        seen |= {match["name"]} if depth == 0 else set()
        parts += [between, "\n" * match[0].count("\n") if again else _dynamic_shared(match)]
        end = match.end()
    return "".join([*parts, text[end:]])


def _plain_linkage(match: re.Match[str]) -> str:
    newlines = "\n" * match[0].count("\n")
    return newlines + ("namespace {" if match["block"] else "")


def _dynamic_shared(match: re.Match[str]) -> str:
    kind, name, more = " ".join(match["type"].split()), match["name"], match["more"]
    newlines = "\n" * match[0].count("\n")
    return f"{kind} (* const {name}){more} = ({kind} (*){more})::cuda_cpu::dynamic_shared;{newlines}"


def _symbols(text: str) -> Iterator[str]:
    """Yield the names of `__constant__` and `__device__` variables at the outermost level."""
    code = _DIRECTIVE.sub("", without_comments(text))
    seen: set[str] = set()
    for match in _SYMBOL.finditer(code):
        before = code[: match.start()]
        if before.count("{") == before.count("}") and match["name"] not in seen:
            seen.add(match["name"])
            yield match["name"]


def _tables(entries: tuple[str, ...], symbols: tuple[str, ...]) -> str:
    """Return launch table and symbol table; inside the namespace, where a kernel named `fma` hides the host's.

    The launch table is a function, so that nothing of an honest source runs when its library is loaded.
    """
    kernels = "".join(
        f'    case {number}: return ::cuda_cpu::make_entry("{entry}", {entry});\n'
        for number, entry in enumerate(entries)
    )
    variables = "".join(
        f'    {{"{name}", const_cast<void*>(static_cast<const volatile void*>(&{name})), sizeof({name})}},\n'
        for name in symbols
    )
    return (
        '#line 1 "launch table"\nCUDA_CPU_UNCHECKED ::cuda_cpu::Entry cuda_cpu_entry_of(size_t cuda_cpu_number) {\n'
        f"    switch (cuda_cpu_number) {{\n{kernels}    default: return {{}};\n    }}\n}}\n"
        f"const ::cuda_cpu::Symbol cuda_cpu_symbols[] = {{\n{variables}    {{}}}};\n"
        "}  // namespace\n"
        "namespace cuda_cpu {\n"
        "Entry entry_of(size_t number) { return ::cuda_cpu_entry_of(number); }\n"
        f"extern const size_t entry_count = {len(entries)};\n"
        "extern const Symbol* const symbols = ::cuda_cpu_symbols;\n"
        f"extern const size_t symbol_count = {len(symbols)};\n"
        "}\n"
    )
