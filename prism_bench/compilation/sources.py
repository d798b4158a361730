"""Sources as hashes count them: CUDA C++ without comments, and Python files with their imports."""

import ast
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from prism_bench.io.files import SHARED, family_folder, first_in, shared_folders
from prism_bench.spec.peer import distributions_of

# CUDA C++.

# A string or character comes first, so that `//` in it begins no comment.
_TOKEN = re.compile(r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')|//[^\n]*|/\*.*?\*/""", re.DOTALL)


@lru_cache(maxsize=1024)  # headers, which most kernels share, in every case of a run
def without_comments(code: str) -> str:
    """Return the code with a blank for each comment, without empty lines and without space at line ends."""
    lines = _TOKEN.sub(lambda match: match[1] or " ", code).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


# Python: a kernel's file and the files of its catalogue or project that it imports.


def python_root(source: Path) -> Path:
    """Return the folder from which a kernel's file is imported: its catalogue, or that above its topmost package."""
    folder = family_folder(source)
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder if folder != family_folder(source) else folder.parent


def python_files(source: Path) -> tuple[Path, ...]:
    """Return a kernel's file, then the files of its catalogue and its project that it imports, directly or not."""
    return tuple(path for path, _ in _files(source))


def python_texts(source: Path) -> tuple[str, ...]:
    """Return the texts of those files."""
    return tuple(text for _, text in _files(source))


def python_hash(source: Path) -> str:
    """Return a hash of those files without their comments."""
    digest = hashlib.sha256()
    for text in python_texts(source):
        digest.update(ast.dump(ast.parse(text)).encode())
    return digest.hexdigest()


def _files(source: Path) -> Iterator[tuple[Path, str]]:
    return _reached(source, python_root(source), set())


def _reached(path: Path, catalogue: Path, seen: set[Path]) -> Iterator[tuple[Path, str]]:
    seen.add(path.resolve())
    text = path.read_text()
    yield path, text
    for level, module in _imported(text):
        if level and not path.is_relative_to(catalogue) and not _is_shared(path, catalogue):
            files = _below(path.parents[level - 1], ".".join(module))
        elif level:
            files = list(filter(None, [_module_file(_package(path, catalogue), level, module, catalogue)]))
        else:
            files = _of_project(path, ".".join(module))
        for file in files:
            if file.suffix == ".py" and file.resolve() not in seen:
                yield from _reached(file, catalogue, seen)


def _is_shared(path: Path, catalogue: Path) -> bool:
    return any(path.is_relative_to(root) for kind in SHARED for root in shared_folders(catalogue, kind))


def _of_project(path: Path, name: str) -> list[Path]:
    """Return the files of the project that run when its file `path` imports `name`; none for other modules."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top == _THIS_PACKAGE:
        return []
    roots = (root for root in project_roots(path) if (root / top).is_dir() or (root / f"{top}.py").is_file())
    return next((files for root in roots if (files := _below(root, name))), [])


def _package(path: Path, catalogue: Path) -> tuple[str, ...]:
    """Return the folders of a file below its catalogue; those of a shared file begin with `include` or `peers`."""
    for kind in SHARED:
        for root in shared_folders(catalogue, kind):
            if path.is_relative_to(root):
                return (kind, *path.relative_to(root).parent.parts)
    return path.relative_to(catalogue).parent.parts


def _module_file(package: tuple[str, ...], level: int, module: tuple[str, ...], catalogue: Path) -> Path | None:
    """Return the file of a module that is imported relatively in `package`, or None."""
    if level > len(package) + 1:
        return None
    top, *rest = (*package[: len(package) + 1 - level], *module)
    roots = next((shared_folders(catalogue, kind) for kind in SHARED if kind == top), (catalogue / top,))
    return first_in(roots, f"{'/'.join(rest)}.py") if rest else first_in((catalogue,), f"{top}.py")


@lru_cache(maxsize=512)
def _imported(text: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Return a file's imports as their level and all names that may be modules."""
    names: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = (f"{node.module or ''}.{alias.name}".lstrip(".") for alias in node.names)
            names += [(node.level, name) for name in (node.module, *parts) if name]
    return tuple((level, tuple(name.split("."))) for level, name in names)


# Imports of Python files from outside of their catalogue: distributions by version, a project's files by content.
#
# A callable has no machine code that can be read: it runs code of packages. Imports anywhere in the files count, also
# those inside functions. Imports of distributions are known only by the version of the distribution.

_THIS_PACKAGE = __name__.partition(".")[0]
_ROOT_MARKS = (".git", "pyproject.toml", "setup.py")


def imported_words(files: Iterable[Path]) -> list[str]:
    """Return `torch==2.11.0` for every distribution that is imported, and a hash of each file of the project."""
    return sorted(_Imports().of(files))


class _Imports:
    """Follows imports from file to file; each file is read once."""

    def __init__(self) -> None:
        self._seen: set[Path] = set()

    def of(self, files: Iterable[Path]) -> set[str]:
        """Return an entry for each import of the files, direct or through the project's modules."""
        return {entry for file in files for name, level in _imports(file) for entry in self._entries(name, level, file)}

    def _entries(self, name: str, level: int, file: Path) -> Iterator[str]:
        if level:
            yield from self._project(_below(file.parents[level - 1], name))
            return
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top == _THIS_PACKAGE:
            return
        roots = (*project_roots(file), *_editable_root(top))
        modules = next((below for root in roots if (below := _below(root, name))), None)
        if modules is None:
            yield distribution_word(top)
        else:
            yield from self._project(modules)

    def _project(self, files: Iterable[Path]) -> Iterator[str]:
        for file in files:
            if file.resolve() in self._seen:
                continue
            self._seen.add(file.resolve())
            yield f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"
            if file.suffix == ".py":
                yield from self.of([file])


@cache
def distribution_word(top: str) -> str:
    """Return `torch==2.11.0` for a top-level module, or a text that no distribution installs it."""
    names = sorted(set(distributions_of(top)))
    versions = [f"{name}=={distribution(name).version}" for name in names]
    return ", ".join(versions) or f"{top}: of no distribution"


def _imports(file: Path) -> Iterator[tuple[str, int]]:
    """Yield the names that a file imports and that may be modules, with the level of relative imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = f"{node.module}." if node.module else ""
            yield from ((f"{module}{alias.name}", node.level) for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node.func) and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, 0


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def _below(root: Path, name: str) -> list[Path]:
    """Return the files that run when `name` is imported from `root`: packages on the way, a module or an extension."""
    files: list[Path] = []
    for part in name.split("."):
        package, module = root / part / "__init__.py", root / f"{part}.py"
        built = sorted(root.glob(f"{part}.*.so")) + sorted(root.glob(f"{part}.so"))
        here = [package] if package.is_file() else [module] if module.is_file() else built
        files += here
        root /= part
        if not here and not root.is_dir():
            break
    return files


@cache
def project_roots(file: Path) -> tuple[Path, ...]:
    """Return the folders up to the project's root, and their `src`, from which its modules are imported."""
    above = list(file.resolve().parents)
    marked = [index for index, folder in enumerate(above) if any((folder / mark).exists() for mark in _ROOT_MARKS)]
    return tuple(root for folder in above[: marked[0] + 1] for root in (folder, folder / "src")) if marked else ()


@cache
def _editable_root(top: str) -> tuple[Path, ...]:
    """Return the folder of a module that is imported from its source tree, not from an installed copy."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):  # a finder that fails
        return ()
    origin = Path(spec.origin) if spec and spec.origin and spec.origin != "frozen" else None
    if origin is None or _is_installed(top, origin):
        return ()
    return (origin.parents[1] if origin.name == "__init__.py" else origin.parent,)


def _is_installed(top: str, origin: Path) -> bool:
    """Return whether a distribution contains the file; an editable distribution only points to it."""
    for name in distributions_of(top):
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:
            continue
        if any(Path(str(file.locate())).resolve() == origin.resolve() for file in files if file.name == origin.name):
            return True
    return False
