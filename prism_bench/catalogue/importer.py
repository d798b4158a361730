"""Python packages of catalogues, into which specs are loaded, so that they can import shared Python relatively.

A spec imports shared code of its catalogue as `from ..include.sums.row_sums import shared_rows`. Each catalogue is a
package with its own name, so that two catalogues never share a module:

- The built-in catalogue is `prism_bench_catalogue`, any other catalogue `prism_bench_catalogue_<hash of its folder>`.
- Families are packages in it. `include` has two folders: the catalogue's own `include/`, then the built-in `include/`.
  Headers are searched in the same order. `peers`, the shared code of library peers, has two folders likewise.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from hashlib import sha256
from importlib import invalidate_caches
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from zlib import crc32

from prism_bench.errors import SpecError
from prism_bench.io.files import SHARED, default_folder, shared_folders

BUILT_IN = "prism_bench_catalogue"


class _ContentLoader(SourceFileLoader):
    """Loader whose cached bytecode is valid for one content of the file, not for one time.

    Python compares size and time in whole seconds: it misses an edit of equal size within one second. This loader
    stores the checksum of the content in place of the time.
    """

    def path_stats(self, path: str) -> dict[str, int]:  # pyright: ignore[reportIncompatibleMethodOverride]  # no float
        """Return the checksum and the size of the file; raise OSError if it cannot be read."""
        content = self.get_data(path)
        return {"mtime": crc32(content), "size": len(content)}


class _CatalogueFinder(MetaPathFinder):
    """Finder of the modules in catalogue packages: as Python finds them, with a _ContentLoader."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith(BUILT_IN) else None
        if spec and spec.origin and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _ContentLoader(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, _CatalogueFinder())


def package_name(folder: Path) -> str:
    """Return the name of the package that the specs of a catalogue are loaded into."""
    resolved = folder.resolve()
    if resolved == default_folder().resolve():
        return BUILT_IN
    return f"{BUILT_IN}_{sha256(str(resolved).encode()).hexdigest()[:12]}"


def catalogue_package(folder: Path) -> str:
    """Create the package of a catalogue anew, without its loaded modules, and return its name."""
    name = package_name(folder)
    for module in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
        del sys.modules[module]
    invalidate_caches()
    _create(name, [folder.resolve()])
    for kind in SHARED:
        _create(f"{name}.{kind}", shared_folders(folder, kind))
    return name


def execute(path: Path, module: str, builtins: Mapping[str, object] | None = None) -> ModuleType:
    """Execute a spec file as `module` and return the module; its output goes to stderr.

    `builtins` replace the builtins of the file and its functions, for example to import in another way.
    """
    module_spec = spec_from_file_location(module, path, loader=_ContentLoader(module, str(path)))
    if module_spec is None or module_spec.loader is None:
        raise SpecError("is no Python file")
    loaded = module_from_spec(module_spec)
    if builtins is not None:
        vars(loaded)["__builtins__"] = builtins
    sys.modules[module] = loaded
    with redirect_stdout(sys.stderr):
        module_spec.loader.exec_module(loaded)
    return loaded


def module_name(package: str, folder: Path, path: Path) -> str:
    """Return the name of a spec's module and create the packages above it: one for each folder below the catalogue."""
    name, parent = package, folder
    for part in path.relative_to(folder).parent.parts:
        name, parent = f"{name}.{_identifier(part)}", parent / part
        if name not in sys.modules:
            _create(name, [parent.resolve()])
    return f"{name}.{_identifier(path.stem)}"


def _identifier(part: str) -> str:
    """Return a part of a path without dots, which would separate packages."""
    return part.replace(".", "_")


def _create(name: str, folders: Sequence[Path]) -> None:
    """Create a namespace package whose modules are in `folders`."""
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder) for folder in folders]
    sys.modules[name] = package = module_from_spec(spec)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, package)
