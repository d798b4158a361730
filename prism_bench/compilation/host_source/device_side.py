"""Device side of a source that has host code: host functions, launches and host includes are cut out.

The syntax tree decides the cuts. The remaining text keeps its line numbers, and the project's headers replace their
includes, so that NVRTC and the emulator accept it. nvcc needs none of this.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from prism_bench.compilation.host_source.syntax import Item, Macro, Node, Tree, items_of, line_of, nodes_of, parse
from prism_bench.errors import CompilationFailed
from prism_bench.io.files import first_in

# Includes.

# Headers that NVRTC and the emulator can include.
_FOR_DEVICES = re.compile(
    r"cuda_(fp|bf)\d+\.hp?p?$|mma\.h$|cooperative_groups|cuda_pipeline|cuda_awbarrier|math_constants\.h$|cuda/|nv/target|"
    r"cub/|thrust/|cute/|cutlass/|curand_kernel\.h$|curand_[a-z0-9]+\.h$|cuComplex\.h$|vector_types\.h$|sm_\d+_|"
    r"device_launch_parameters\.h$|tensor_cores/tensor_map\.cuh$"
)
# Headers of C++ that libcu++ has for devices, too.
_FOR_BOTH = ("limits", "type_traits", "utility")
# Headers of C with the part that device code uses: NVRTC has none, and libcu++ of CUDA 13.0 has an empty <cfloat>.
C_HEADERS = Path(__file__).with_name("c_headers")
_OF_C = frozenset(path.name for path in C_HEADERS.iterdir())
_MOSTLY_OF_HOSTS = ("stdio.h", "cstdio", "stdlib.h", "cstdlib")  # a file that includes them usually has host code
# Headers for host and device, or without a meaning for the device: no sign that a file has host code.
_NEUTRAL = re.compile(r"(cuda(_runtime(_api)?)?|driver_types|assert|math|string)\.h$|c(assert|math|string)$")
# Headers that only hosts have: of C++, of systems, and of libraries that only hosts call.
_OF_HOSTS = re.compile(
    r"[a-z_0-9]+$|(stdio|stdlib|std\w+|time|errno|signal|locale|setjmp|wchar|ctype|inttypes|limits|float|omp|mpi|unistd|"
    r"pthread|dlfcn|fcntl|malloc|getopt|dirent|sched|windows|[Ww]insock2?|io|conio|process|jni|Python|mex|gdrapi)\.h$|"
    r"(sys|arpa|net|netinet|linux|bits|x86intrin|immintrin|experimental|torch|ATen|c10|pybind11|nanobind|numpy|gtest|gmock|"
    r"benchmark|nvbench|boost|Eigen|absl|folly|glog|gflags|fmt|spdlog|nlohmann|json|opencv2?|catch2|doctest|GL|GLFW|EGL|"
    r"vulkan|nvtx3|hdf5|tbb|rapidjson|xla|tensorflow|jaxlib|onnxruntime|mscclpp|nvshmemx?|rmm|raft)[./]|"
    r"(cublas\w*|cufft\w*|cusolver\w*|cusparse\w*|cudnn\w*|cutensor\w*|curand|cufile|nccl\w*|nvml|cupti\w*|nvrtc|"
    r"nvJitLink|nvjpeg|npp\w*|nvToolsExt\w*|cuda_?[pP]rofiler\w*|cuda_gl_interop|cudaGL|"
    r"helper_(cuda|functions|string|timer|image)\w*)\.h$"
)
_OF_MAPS, _MAP = "cuda.h", "CUtensorMap"  # the driver's header, of which kernels take this type alone
_DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_LAUNCH = re.compile(r"<<<|\bint\s+main\s*\(")
_READY = "__CUDACC_RTC__"  # a header with this macro handles NVRTC itself


@dataclass(frozen=True)
class _Include:
    """An include: its name, and whether it is in quotes."""

    name: str
    quoted: bool

    @property
    def is_for_devices(self) -> bool:
        """Return whether a device's compiler can include it."""
        return bool(_FOR_DEVICES.match(self.name))

    @property
    def twin(self) -> str | None:
        """Return the header of libcu++ that replaces a standard header on a device, or None."""
        return f"cuda/std/{self.name}" if self.name in _FOR_BOTH else None

    @property
    def is_of_c(self) -> bool:
        """Return whether this package has the header of C for NVRTC; the emulator uses the host compiler's."""
        return self.name in _OF_C

    @property
    def is_neutral(self) -> bool:
        """Return whether files for devices include it too, so that it is no sign of host code."""
        return bool(_NEUTRAL.search(self.name)) or (self.is_of_c and self.name not in _MOSTLY_OF_HOSTS)

    @property
    def needs_a_host(self) -> bool:
        """Return whether no device can include it, so that a file that includes it has host code."""
        return not (self.is_for_devices or self.twin or self.is_neutral)

    @property
    def is_cut_unseen(self) -> bool:
        """Return whether its name shows that a device does not need it, or has a replacement."""
        return bool(_OF_HOSTS.match(self.name) or self.twin or self.is_neutral)


def _includes_in(text: str) -> Iterator[_Include]:
    return (_Include(match[2].strip(), match[1] == '"') for match in _DIRECTIVE.finditer(text))


@dataclass(frozen=True)
class _ProjectFiles:
    """Files of a project: the source, and the files in `folders` below `root` that it includes, directly or not.

    The compiler reads headers of packages for devices, headers that handle NVRTC, and headers that a catalogue shares
    (`shared`). Other headers outside of the project are the host's.
    """

    root: Path
    folders: tuple[Path, ...]
    shared: tuple[Path, ...] = ()

    def find(self, include: _Include, folder: Path) -> Path | None:
        """Return the project's file that a file in `folder` includes; None if it is no file of the project."""
        path = first_in((folder,), include.name) if include.quoted else None
        if path is None and not include.is_for_devices:
            path = first_in(self.folders, include.name)
        if path is None:
            return None
        path = path.resolve()
        is_of_project = path.is_file() and path.is_relative_to(self.root)
        return path if is_of_project and not any(path.is_relative_to(shared) for shared in self.shared) else None

    def is_left(self, include: _Include, folder: Path) -> bool:
        """Return whether the include is left to the compiler.

        So is an unknown header that does not exist: the compiler's error names file and line.
        """
        if include.is_for_devices or self.find(include, folder) or first_in(self.shared, include.name):
            return True
        if first_in((folder, *self.folders), include.name):
            return include.name.endswith(".cuh")
        return not include.is_cut_unseen

    def reached(self, source: Path) -> list[tuple[Path, str]]:
        """Return the source and the project's files that it includes with their texts; included files come first."""
        texts: dict[Path, str] = {}
        self._reach(source.resolve(), texts, set())
        return list(texts.items())

    def _reach(self, path: Path, texts: dict[Path, str], seen: set[Path]) -> None:
        seen.add(path)
        text = path.read_text("utf-8", "replace")
        for include in _includes_in(text):
            inner = self.find(include, path.parent)
            if inner and inner not in seen and _READY not in inner.read_text("utf-8", "replace"):
                self._reach(inner, texts, seen)
        texts[path] = text


@lru_cache(maxsize=256)  # the passes of a verification repeat the question for the same few sources
def _need_a_host(files: _ProjectFiles, texts: tuple[tuple[Path, str], ...]) -> bool:
    """Return whether any of the files has a launch, a main function, or an include that no device has."""
    return any(
        _LAUNCH.search(text)
        or any(include.needs_a_host and not files.is_left(include, path.parent) for include in _includes_in(text))
        for path, text in texts
    )


# Names that nvcc has without any include.

_NAMES = Path(__file__).with_name("implied_names.h")
_UNDEFINED = re.compile(r'(?:identifier|namespace "std" has no member) "(\w+)"')


def with_implied_names(text: str, source: Path, log: str) -> str | None:
    """Return the text with nvcc's names before it where NVRTC's log lacks one of them; None where it lacks none."""
    if _implied_names().isdisjoint(_UNDEFINED.findall(log)):
        return None
    return f'#line 1 "{_NAMES.name}"\n{_NAMES.read_text()}{line_directive(1, source)}\n{text}'


@cache
def _implied_names() -> frozenset[str]:
    """Return all identifiers of the header and of those that it includes."""
    text = _NAMES.read_text()
    headers = [C_HEADERS / include.name for include in _includes_in(text)]
    texts = [text, _PRELUDE.read_text(), *(header.read_text() for header in headers)]
    return frozenset(name for part in texts for name in _IDENTIFIER.findall(part))


# The device side.

_PRELUDE = Path(__file__).with_name("implied_by_nvcc.h")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]')
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Cut:
    """A part that was cut out of a file: its first and last line, and its description."""

    path: Path
    first: int
    last: int
    what: str

    def __str__(self) -> str:
        lines = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{self.path}:{lines}: {self.what}"


@dataclass(frozen=True)
class DeviceSide:
    """Text for a device's compiler, with `#line` directives that name the user's files, and the cuts."""

    source: Path
    text: str
    cuts: tuple[Cut, ...]
    files: tuple[Path, ...]


def device_side(
    source: Path, folders: Sequence[Path] = (), entries: Iterable[str] = (), shared: Sequence[Path] = ()
) -> DeviceSide | None:
    """Return the device side of a source; None if it has no host code and is compiled unchanged.

    Parameters
    ----------
    source : Path
        The file of CUDA C++.
    folders : sequence of Path
        Folders of the project's headers, in addition to the folder of the file that includes a header.
    entries : iterable of str
        The entries that are launched: names in their template arguments (`map<Relu>`) are kept, too.
    shared : sequence of Path
        Folders of headers for devices, which the compiler reads.

    Raises
    ------
    CompilationFailed
        If the structure of a file is not clear; the message has the line that prevents the separation.
    """
    above = source.resolve().parents  # the project is the repository; without one, the folder above the source's
    root = next((folder for folder in above if (folder / ".git").exists()), above[min(1, len(above) - 1)])
    files = _ProjectFiles(root, tuple(folders), tuple(folder.resolve() for folder in shared))
    texts = tuple(files.reached(source))
    if not _need_a_host(files, texts):
        return None
    return _cut(source.resolve(), files, texts, tuple(sorted(set(entries))))


@lru_cache(maxsize=64)
def _cut(
    source: Path, files: _ProjectFiles, texts: tuple[tuple[Path, str], ...], entries: tuple[str, ...]
) -> DeviceSide:
    # In a program, with a launch or a main function, a function without `__device__` is the host's.
    cutter = _Cutter(files, is_program=any(_LAUNCH.search(text) for _, text in texts))
    for path, text in texts:
        cutter.read(path, text)
    cutter.decide(name for entry in entries for name in _IDENTIFIER.findall(entry))
    remaining = {path: cutter.remaining(path) for path, _ in texts}
    joined = _JoinedFiles(files, remaining)
    prelude = f'#line 1 "{_PRELUDE.name}"\n{_PRELUDE.read_text()}'
    return DeviceSide(source, prelude + joined.text(source) + "\n", tuple(cutter.cuts), tuple(remaining))


@dataclass
class _Cutter:
    """Cutter of the project's files: replaces declarations that the device does not need by blanks."""

    files: _ProjectFiles
    is_program: bool
    trees: dict[Path, Tree] = field(default_factory=dict[Path, Tree])
    items: dict[Path, list[Item]] = field(default_factory=dict[Path, list[Item]])
    macros: dict[bytes, Macro] = field(default_factory=dict[bytes, Macro])
    cuts: list[Cut] = field(default_factory=list[Cut])
    has_maps: bool = False

    def read(self, path: Path, text: str) -> None:
        tree = parse(path, text.encode(), self.macros)
        self.macros |= tree.macros
        self.trees[path], self.items[path] = tree, list(items_of(tree, self.is_program))

    def decide(self, entered: Iterable[str]) -> None:
        """Keep the declarations that the device names, directly or through kept declarations."""
        every = [item for items in self.items.values() for item in items]
        waiting = set(entered).union(*(item.identifiers for item in every if item.side == "keep"))
        open_items = [item for item in every if item.side == "reached"]
        reached: set[str] = set()
        while waiting:
            reached |= waiting
            macros = [macro for name in waiting if (macro := self.macros.get(name.encode()))]
            used = {identifier.decode() for macro in macros for identifier in macro.identifiers}
            for item in open_items:
                if item.names & waiting:
                    item.side = "keep"
                    used |= item.identifiers
            open_items = [item for item in open_items if item.side == "reached"]
            waiting = used - reached
        for item in open_items:
            item.side = "cut"
        self.has_maps = any(_MAP in item.identifiers for item in every if item.side == "keep")

    def remaining(self, path: Path) -> str:
        """Return the file's text with blanks in place of the cuts."""
        tree, code = self.trees[path], bytearray(self.trees[path].code)
        for item in self.items[path]:
            for part in (item, *item.parts) if item.side == "keep" else (item,):
                if part.side == "cut":
                    self._blank(code, tree, part.node, part.what)
        for call in tree.calls:
            if not call.is_device and not any(item.holds(call.start) for item in self.items[path]):
                self._blank_bytes(code, tree, call.start, call.end, f"macro {call.name}")
        for node in reversed(list(nodes_of(tree.root, "preproc_include"))):  # a replacement may be longer
            self._include(code, tree, node)
        self.cuts.sort(key=lambda cut: (str(cut.path), cut.first))
        return code.decode("utf-8", "replace")

    def _blank(self, code: bytearray, tree: Tree, node: Node, what: str) -> None:
        after = node.next_sibling
        end = after.end_byte if after is not None and after.type == ";" else node.end_byte
        self._blank_bytes(code, tree, tree.first_byte(node), end, what)

    def _blank_bytes(self, code: bytearray, tree: Tree, start: int, end: int, what: str) -> None:
        text = tree.code[start:end]
        line = tree.code.count(b"\n", 0, start) + 1
        code[start:end] = re.sub(rb"[^\r\n]", b" ", text)
        self.cuts.append(Cut(tree.path, line, line + text.rstrip().count(b"\n"), what))

    def _include(self, code: bytearray, tree: Tree, node: Node) -> None:
        """Blank a host's include, or replace it by the device's header."""
        if not code[node.start_byte : node.end_byte].strip():
            return  # within a cut
        match = _INCLUDE.match(tree.text(node))
        if match is None:
            line = tree.text(node).strip()
            raise CompilationFailed(f"{tree.path}:{line_of(node)}: '{line}' names a macro: write the header's name")
        include = _Include(match[2].strip(), match[1] == '"')
        is_of_maps = self.has_maps and include.name == _OF_MAPS
        if include.is_of_c or is_of_maps or self.files.is_left(include, tree.path.parent):
            return
        instead = f", {include.twin} in its place" if include.twin else ""
        self._blank(code, tree, node, f"include of {include.name}{instead}")
        if include.twin:
            end = node.start_byte + len(tree.text(node).rstrip().encode())
            code[node.start_byte : end] = f"#include <{include.twin}>".encode()


@dataclass
class _JoinedFiles:
    """Text of the project's files with headers in the place of their includes."""

    files: _ProjectFiles
    texts: dict[Path, str]
    once: set[Path] = field(default_factory=set[Path])

    def text(self, path: Path, above: tuple[Path, ...] = ()) -> str:
        lines = [line_directive(1, path)]
        for number, line in enumerate(self.texts[path].split("\n"), start=1):
            match = _INCLUDE.match(line)
            inner = self.files.find(_Include(match[2].strip(), match[1] == '"'), path.parent) if match else None
            if inner in self.texts and inner not in above:
                lines += [
                    "" if inner in self.once else self.text(inner, (*above, path)),
                    line_directive(number + 1, path),
                ]
            elif _ONCE.match(line):
                self.once.add(path)
                lines.append("")
            else:
                lines.append(line)
        return "\n".join(lines)


def line_directive(line: int, path: Path) -> str:
    """Return the directive by which the next line is that line of the file."""
    quoted = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{quoted}"'
