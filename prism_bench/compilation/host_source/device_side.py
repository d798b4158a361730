"""Device side of a source that holds host code: host functions, launches and host includes are cut out.

The syntax tree decides what is cut. What is left has the lines of the file, and the project's own headers in place, so
that NVRTC and the emulator take it. nvcc needs none of this.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from prism_bench.compilation.host_source.includes import Include, ProjectFiles, is_program, need_a_host, project_root
from prism_bench.compilation.host_source.items import Item, items_of
from prism_bench.compilation.host_source.syntax import Macro, Node, Tree, line_of, nodes_of, parse
from prism_bench.errors import CompilationFailed

_PRELUDE = Path(__file__).with_name("implied_by_nvcc.h")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]')
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Cut:
    """Something that was cut out of a file: its first and last line, and what it is."""

    path: Path
    first: int
    last: int
    what: str

    def __str__(self) -> str:
        lines = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.path}:{lines}: {self.what}"


@dataclass(frozen=True)
class DeviceSide:
    """Text for a device's compiler, with `#line` directives that name the user's files, and what was cut."""

    source: Path
    text: str
    cuts: tuple[Cut, ...]
    files: tuple[Path, ...]


def device_side(
    source: Path, folders: Sequence[Path] = (), entries: Iterable[str] = (), shared: Sequence[Path] = ()
) -> DeviceSide | None:
    """Return the device side of a source; None where it holds no host code and is compiled as it is.

    Parameters
    ----------
    source : Path
        The file of CUDA C++.
    folders : sequence of Path
        Where the project's headers are, beyond the folder of the file that includes one.
    entries : iterable of str
        What is launched: names in template arguments (`map<Relu>`) are kept, too.
    shared : sequence of Path
        Folders of headers for devices, which the compiler reads by itself.

    Raises
    ------
    CompilationFailed
        Where the structure of a file is not clear; the message has the line in the way.
    """
    files = ProjectFiles(project_root(source), tuple(folders), tuple(folder.resolve() for folder in shared))
    texts = tuple(files.reached(source))
    if not need_a_host(files, texts):
        return None
    return _cut(source.resolve(), files, texts, tuple(sorted(set(entries))))


@lru_cache(maxsize=64)
def _cut(
    source: Path, files: ProjectFiles, texts: tuple[tuple[Path, str], ...], entries: tuple[str, ...]
) -> DeviceSide:
    cutter = _Cutter(files, is_program(texts))
    for path, text in texts:
        cutter.read(path, text)
    cutter.decide(word for entry in entries for word in _WORD.findall(entry))
    left = {path: cutter.left_of(path) for path, _ in texts}
    joined = _JoinedFiles(files, left)
    prelude = f'#line 1 "{_PRELUDE.name}"\n{_PRELUDE.read_text()}'
    return DeviceSide(source, prelude + joined.text(source) + "\n", tuple(cutter.cuts), tuple(left))


@dataclass
class _Cutter:
    """Decides for each declaration of the project's files whether the device needs it, and blanks the others."""

    files: ProjectFiles
    is_program: bool
    trees: dict[Path, Tree] = field(default_factory=dict[Path, Tree])
    items: dict[Path, list[Item]] = field(default_factory=dict[Path, list[Item]])
    macros: dict[bytes, Macro] = field(default_factory=dict[bytes, Macro])
    cuts: list[Cut] = field(default_factory=list[Cut])

    def read(self, path: Path, text: str) -> None:
        tree = parse(path, text.encode(), self.macros)
        self.macros |= tree.macros
        self.trees[path], self.items[path] = tree, list(items_of(tree, self.is_program))

    def decide(self, entered: Iterable[str]) -> None:
        """Keep what the device names, directly or through what is kept."""
        every = [item for items in self.items.values() for item in items]
        waiting = set(entered).union(*(item.words for item in every if item.side == "keep"))
        open_items = [item for item in every if item.side == "reached"]
        reached: set[str] = set()
        while waiting:
            reached |= waiting
            words = {w.decode() for name in waiting for w in self._macro_words(name)}
            named = [item for item in open_items if item.names & waiting]
            for item in named:
                item.side = "keep"
                words |= item.words
            open_items = [item for item in open_items if item.side == "reached"]
            waiting = words - reached
        for item in open_items:
            item.side = "cut"

    def left_of(self, path: Path) -> str:
        """Return the file's text with blanks in place of what is cut."""
        tree, code = self.trees[path], bytearray(self.trees[path].code)
        for item in self.items[path]:
            for one in (item, *item.parts) if item.side == "keep" else (item,):
                if one.side == "cut":
                    self._blank(code, tree, one.node, one.what)
        for call in tree.calls:
            if not call.is_device and not any(item.holds(call.start) for item in self.items[path]):
                self._blank_bytes(code, tree, (call.start, call.end), f"macro {call.name}")
        for node in reversed(list(nodes_of(tree.root, "preproc_include"))):  # a replacement may be longer
            self._include(code, tree, node)
        self.cuts.sort(key=lambda cut: (str(cut.path), cut.first))
        return code.decode("utf-8", "replace")

    def _macro_words(self, name: str) -> frozenset[bytes]:
        macro = self.macros.get(name.encode())
        return macro.words if macro else frozenset()

    def _blank(self, code: bytearray, tree: Tree, node: Node, what: str) -> None:
        after = node.next_sibling
        end = after.end_byte if after is not None and after.type == ";" else node.end_byte
        self._blank_bytes(code, tree, (tree.first_byte(node), end), what)

    def _blank_bytes(self, code: bytearray, tree: Tree, place: tuple[int, int], what: str) -> None:
        start, end = place
        text = tree.code[start:end]
        first = tree.code.count(b"\n", 0, start) + 1
        code[start:end] = re.sub(rb"[^\r\n]", b" ", text)
        self.cuts.append(Cut(tree.path, first, first + text.rstrip().count(b"\n"), what))

    def _include(self, code: bytearray, tree: Tree, node: Node) -> None:
        """Blank a host's include, or put in its place what a device has instead."""
        if not code[node.start_byte : node.end_byte].strip():
            return  # within something that is cut
        match = _INCLUDE.match(tree.text(node))
        if match is None:
            line = tree.text(node).strip()
            raise CompilationFailed(f"{tree.path}:{line_of(node)}: '{line}' names a macro: write the header's name")
        include = Include(match[2].strip(), match[1] == '"')
        if include.is_of_c or self.files.is_left(include, tree.path.parent):
            return
        instead = f", {include.twin} in its place" if include.twin else ""
        self._blank(code, tree, node, f"include of {include.name}{instead}")
        if include.twin:
            end = node.start_byte + len(tree.text(node).rstrip().encode())
            code[node.start_byte : end] = f"#include <{include.twin}>".encode()


@dataclass
class _JoinedFiles:
    """Puts the project's headers in the place of their includes."""

    files: ProjectFiles
    texts: dict[Path, str]
    once: set[Path] = field(default_factory=set[Path])

    def text(self, path: Path, above: tuple[Path, ...] = ()) -> str:
        lines = [_place(1, path)]
        for number, line in enumerate(self.texts[path].split("\n"), start=1):
            match = _INCLUDE.match(line)
            inner = self.files.find(Include(match[2].strip(), match[1] == '"'), path.parent) if match else None
            if inner in self.texts and inner not in above:
                lines += ["" if inner in self.once else self.text(inner, (*above, path)), _place(number + 1, path)]
            elif _ONCE.match(line):
                self.once.add(path)
                lines.append("")
            else:
                lines.append(line)
        return "\n".join(lines)


def _place(line: int, path: Path) -> str:
    quoted = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{quoted}"'
