"""Find the kernels and operators in the source files of a folder."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from prism_bench.compilation.host_source.syntax import Macro, Tree, macros_of, parse
from prism_bench.errors import UsageError
from prism_bench.extensions.init.sources.cuda_kernels import kernels_of
from prism_bench.extensions.init.sources.found import FoundKernel, Scan, Unread
from prism_bench.extensions.init.sources.launches import WrittenLaunch, read_launch, written_launches
from prism_bench.extensions.init.sources.torch_operators import operators_of
from prism_bench.extensions.init.sources.triton_kernels import scan_python

CUDA = (".cu", ".cuh")
_HOST = (".cpp", ".cc", ".cxx", ".h", ".hpp")
_LARGEST = 4 << 20  # bytes of a file: generated code beyond this is listed and not read
_SKIPPED = {"__pycache__", "build", "node_modules", "site-packages", "venv"}


def scan(place: Path) -> Scan:
    """Return everything found in a file, or in the files below a folder; UsageError where there is neither."""
    if not place.exists():
        raise UsageError(f"{place} does not exist; name a folder of sources, or a file")
    paths = [place] if place.is_file() else sorted(_sources(place))
    reader = _Scanner()
    for path in paths:
        reader.read(path)
    return reader.finished()


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in _SKIPPED for part in parts)
        if not hidden and path.suffix in (*CUDA, *_HOST, ".py") and path.is_file():
            yield path


class _Scanner:
    """Reads file after file; launches find their kernels once all files are read."""

    def __init__(self) -> None:
        self._scan = Scan()
        self._kernels: list[FoundKernel] = []
        self._launches: list[WrittenLaunch] = []
        self._macros: dict[Path, dict[bytes, Macro]] = {}

    def read(self, path: Path) -> None:
        try:
            code = path.read_bytes()
            text = code.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "no UTF-8 text"
            self._scan += Scan(unread=(Unread(path, 1, f"cannot be read: {reason}"),))
            return
        if len(code) > _LARGEST:
            self._scan += Scan(unread=(Unread(path, 1, f"{len(code) >> 20} MiB: too large to be read"),))
        elif path.suffix == ".py":
            self._scan += scan_python(path, text)
        elif path.suffix in CUDA or "TORCH_LIBRARY" in text or "__global__" in text or "<<<" in text:
            self._read_tree(parse(path, code, self._beside(path)))

    def finished(self) -> Scan:
        """Return the scan, with the launches of each kernel."""
        by_name: dict[str, list[FoundKernel]] = {}
        for kernel in self._kernels:
            by_name.setdefault(kernel.name, []).append(kernel)
        unread: list[Unread] = []
        launched: dict[int, list[WrittenLaunch]] = {}
        for written in self._launches:
            known = by_name.get(written.kernel, [])
            own = [one for one in known if one.path == written.tree.path] or known
            if not own:
                reason = f"launches {written.kernel}, which no file here defines"
                unread.append(Unread(written.tree.path, written.line, reason))
            for kernel in own[:1]:
                launched.setdefault(id(kernel), []).append(written)
        kernels = [_with_launches(one, launched.get(id(one), ())) for one in self._kernels]
        unread += [one for kernel in kernels for launch in kernel.launches for one in launch.unread]
        return Scan(tuple(kernels), (), tuple(unread)) + self._scan

    def _read_tree(self, tree: Tree) -> None:
        kernels, heads = kernels_of(tree)
        launches, forms = written_launches(tree)
        operators, definitions = operators_of(tree)
        self._kernels += [kernel for kernel, _ in kernels]
        self._launches += launches
        self._scan += Scan((), tuple(operators), (*heads, *forms, *definitions))

    def _beside(self, path: Path) -> dict[bytes, Macro]:
        """Return the macros of the headers in the file's folder: which ones it includes does not matter."""
        if path.parent not in self._macros:
            headers = [one for one in sorted(path.parent.glob("*")) if one.suffix in (".h", ".cuh", ".hpp")]
            texts = [one.read_bytes() for one in headers if one.is_file() and one.stat().st_size < _LARGEST]
            self._macros[path.parent] = {k: v for text in texts for k, v in macros_of(text).items()}
        return self._macros[path.parent]


def _with_launches(kernel: FoundKernel, launches: Iterable[WrittenLaunch]) -> FoundKernel:
    names = ["" if parameter.is_pointer else parameter.name for parameter in kernel.parameters]
    return replace(kernel, launches=tuple(read_launch(one, names) for one in launches))
