"""Device side of a source that holds host code, with its includes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from prism_bench.compilation.host_source.syntax import Item, Macro, Node, Tree, items_of, line_of, nodes_of, parse
from prism_bench.errors import CompilationFailed
from prism_bench.io.files import first_in

# Includes of a source that holds host code: which are the project's files, which the device has, which it has not.

# What NVRTC and the emulator can include.
_FOR_DEVICES = re.compile(
    r"cuda_(fp|bf)\d+\.hp?p?$|mma\.h$|cooperative_groups|cuda_pipeline|cuda_awbarrier|math_constants\.h$|cuda/|nv/target|"
    r"cub/|thrust/|cute/|cutlass/|curand_kernel\.h$|curand_[a-z0-9]+\.h$|cuComplex\.h$|vector_types\.h$|sm_\d+_|"
    r"device_launch_parameters\.h$|tensor_cores/tensor_map\.cuh$"
)
# Headers of C++ that libcu++ has for devices, too.
_FOR_BOTH = ("limits", "type_traits", "utility")
# Headers of C with what device code uses of them: NVRTC has none, and libcu++ of CUDA 13.0 an empty <cfloat>.
C_HEADERS = Path(__file__).with_name("c_headers")
_OF_C = frozenset(path.name for path in C_HEADERS.iterdir())
_MOSTLY_OF_HOSTS = ("stdio.h", "cstdio", "stdlib.h", "cstdlib")  # what includes them mostly holds host code
# What both worlds take, or what means nothing without a host: no sign that a file holds host code.
_NEUTRAL = re.compile(r"(cuda(_runtime(_api)?)?|driver_types|assert|math|string)\.h$|c(assert|math|string)$")
# What hosts alone have: the headers of C++ and of systems, and those of libraries that only hosts call.
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
_DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_LAUNCH = re.compile(r"<<<|\bint\s+main\s*\(")
_READY = "__CUDACC_RTC__"  # a header that knows NVRTC takes care of itself


@dataclass(frozen=True)
class Include:
    """An include: its name, and whether it is in quotes."""

    name: str
    quoted: bool

    @property
    def is_for_devices(self) -> bool:
        """Whether a device's compiler can include it as it is."""
        return bool(_FOR_DEVICES.match(self.name))

    @property
    def twin(self) -> str | None:
        """The header of libcu++ that a device has in place of a standard one; None where there is none."""
        return f"cuda/std/{self.name}" if self.name in _FOR_BOTH else None

    @property
    def is_of_c(self) -> bool:
        """Whether this package has the header of C for NVRTC; the emulator has that of the host's compiler."""
        return self.name in _OF_C

    @property
    def is_neutral(self) -> bool:
        """Whether files for devices have it as well, so that it is no sign of host code."""
        return bool(_NEUTRAL.search(self.name)) or (self.is_of_c and self.name not in _MOSTLY_OF_HOSTS)

    @property
    def needs_a_host(self) -> bool:
        """Whether no device can include it, so that the file with it holds host code."""
        return not (self.is_for_devices or self.twin or self.is_neutral)

    @property
    def is_cut_unseen(self) -> bool:
        """Whether its name alone shows that a device goes without it, or has something in its place."""
        return bool(_OF_HOSTS.match(self.name) or self.twin or self.is_neutral)


def _includes_in(text: str) -> Iterator[Include]:
    """Yield the includes of a text."""
    return (Include(match[2].strip(), match[1] == '"') for match in _DIRECTIVE.finditer(text))


@dataclass(frozen=True)
class ProjectFiles:
    """Files of a project: the source, and what it includes from `folders` below `root`, directly or not.

    Headers of packages for devices, those that know NVRTC, and what a catalogue shares (`shared`) are left to the
    compiler. Other headers outside of the project are the host's.
    """

    root: Path
    folders: tuple[Path, ...]
    shared: tuple[Path, ...] = ()

    def find(self, include: Include, folder: Path) -> Path | None:
        """Return the project's file that a file in `folder` includes; None where it is no file of the project."""
        beside = first_in((folder,), include.name) if include.quoted else None
        further = None if include.is_for_devices else first_in(self.folders, include.name)
        there = beside or further
        if there is None:
            return None
        found = there.resolve()
        is_own = found.is_file() and found.is_relative_to(self.root)
        return found if is_own and not any(found.is_relative_to(place) for place in self.shared) else None

    def is_left(self, include: Include, folder: Path) -> bool:
        """Return whether the compiler gets the include as it is.

        It does where there is no such file and no host is known to have one: its error names file and line.
        """
        if include.is_for_devices or self.find(include, folder) or first_in(self.shared, include.name):
            return True
        if first_in((folder, *self.folders), include.name):
            return include.name.endswith(".cuh")
        return not include.is_cut_unseen

    def reached(self, source: Path) -> list[tuple[Path, str]]:
        """Return the source and the project's files that it includes with their texts, those before it first."""
        found: dict[Path, str] = {}
        self._reach(source.resolve(), found, set())
        return list(found.items())

    def _reach(self, path: Path, found: dict[Path, str], seen: set[Path]) -> None:
        seen.add(path)
        text = path.read_text("utf-8", "replace")
        for include in _includes_in(text):
            inner = self.find(include, path.parent)
            if inner and inner not in seen and _READY not in inner.read_text("utf-8", "replace"):
                self._reach(inner, found, seen)
        found[path] = text


@lru_cache(maxsize=256)  # the passes of a verification ask about the same few sources again and again
def _need_a_host(files: ProjectFiles, texts: tuple[tuple[Path, str], ...]) -> bool:
    """Return whether any of the files has a launch, a main function, or an include that no device has."""
    return any(
        _LAUNCH.search(text)
        or any(one.needs_a_host and not files.is_left(one, path.parent) for one in _includes_in(text))
        for path, text in texts
    )


def _is_program(texts: Iterable[tuple[Path, str]]) -> bool:
    """Return whether a file launches or has a main function: then a function without `__device__` is the host's."""
    return any(_LAUNCH.search(text) for _, text in texts)


def _project_root(source: Path) -> Path:
    """Return the folder of the repository that a source belongs to; without one, the folder above its own."""
    above = source.resolve().parents
    return next((folder for folder in above if (folder / ".git").exists()), above[min(1, len(above) - 1)])


# Device side of a source that holds host code: host functions, launches and host includes are cut out.
#
# The syntax tree decides what is cut. What is left has the lines of the file, and the project's own headers in place,
# so that NVRTC and the emulator take it. nvcc needs none of this.

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
    files = ProjectFiles(_project_root(source), tuple(folders), tuple(folder.resolve() for folder in shared))
    texts = tuple(files.reached(source))
    if not _need_a_host(files, texts):
        return None
    return _cut(source.resolve(), files, texts, tuple(sorted(set(entries))))


@lru_cache(maxsize=64)
def _cut(
    source: Path, files: ProjectFiles, texts: tuple[tuple[Path, str], ...], entries: tuple[str, ...]
) -> DeviceSide:
    cutter = _Cutter(files, _is_program(texts))
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
