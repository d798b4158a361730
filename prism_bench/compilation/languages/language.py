"""Interface of kernel languages, their loaders, and placeholders for their modules while the catalogue is read."""

import builtins
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ClassVar, NoReturn

from prism_bench.errors import BackendUnavailable, SpecError, unknown
from prism_bench.io.installation import pip_install
from prism_bench.spec.launch import Constant, Instance, LaunchCard
from prism_bench.spec.peer import Library

_LOADERS = Path(__file__).parent / "loaders"


@dataclass(frozen=True)
class MachineCode:
    """A cubin and the card of the entry to launch in it, with the compiler's output."""

    cubin: bytes
    card: LaunchCard
    log: str = ""


@dataclass(frozen=True)
class InterpretedLaunch:
    """A launch for a language's interpreter: instance, grid and block, and the arguments in order, arrays of NumPy."""

    instance: Instance
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    values: list[Any] = field(default_factory=list[Any])


@dataclass(frozen=True)
class DeviceLaunch(InterpretedLaunch):
    """A launch for a language's own launcher: `values` are PyTorch tensors on the device and NumPy scalars.

    `stream` is the address of the CUDA stream, which is also PyTorch's current one.
    """

    stream: int = 0


@dataclass(frozen=True)
class OwnLaunch:
    """A launch by a language's own launcher: the call, and the cubins that it has launched, if known."""

    call: Callable[[], object]
    cubins: Callable[[], tuple[bytes, ...]] = tuple


class Language(ABC):
    """A kernel language. A loader defines an object `LANGUAGE`.

    `title` is its name in text, `library` its package. `modules` are the top-level modules that a kernel's file may
    import and that are not imported while the catalogue is read: there they are placeholders, except for the functions
    in `stand_ins` by dotted name, such as `triton.cdiv`. `variables` are set in the process that compiles; the process
    that interprets has `interpreter_variables` too and takes launches of up to `most_threads`, with arrays of bfloat16
    and 8-bit floats only where it `interprets_narrow` types. `parts` are further distributions whose version decides
    the machine code, by their names in a record. Variables of the environment with one of the `prefixes` may change the
    machine code, too.
    """

    title: ClassVar[str]
    library: ClassVar[Library]
    modules: ClassVar[tuple[str, ...]]
    stand_ins: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    variables: ClassVar[Mapping[str, str]] = {}
    interpreter_variables: ClassVar[Mapping[str, str]] = {}
    most_threads: ClassVar[int | None] = None
    interprets_narrow: ClassVar[bool] = False
    parts: ClassVar[Mapping[str, str]] = {}
    prefixes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def compile(self, module: ModuleType, instance: Instance, architecture: str) -> MachineCode:
        """Compile an instance of a function of `module` for `architecture` (`90`); called in a child process.

        Raise CompilationFailed with the compiler's message, with file and line, or SpecError if the launch does not fit
        the function.
        """

    def not_emulated(self) -> str | None:
        """Return why `emulate` cannot run here, or None."""
        return f"{self.title} has no interpreter"

    def emulate(self, module: ModuleType, launch: InterpretedLaunch) -> None:
        """Run a launch on NumPy arrays, in place; called in a child process."""
        raise BackendUnavailable(self.not_emulated() or "not emulated")

    def own_launch(self, module: ModuleType, launch: DeviceLaunch) -> OwnLaunch:
        """Return a launch by the language's own launcher; raise BackendUnavailable if it cannot make this launch."""
        raise BackendUnavailable(f"{self.title}: its own launcher is not called from here")

    def require_installed(self) -> str:
        """Return the compiler's version, with the versions of its parts: `1.7.0 (tileiras 13.5.37)`.

        Raise BackendUnavailable with the extra to install if it is not installed.
        """
        if not self.library.is_installed():
            raise BackendUnavailable(f"{self.title} is not installed ({self._command})")
        compiler = self.library.installed_version() or "unknown"
        parts = ", ".join(f"{name} {_version_of(distribution)}" for name, distribution in self.parts.items())
        return f"{compiler} ({parts})" if parts else compiler

    def settings(self, variables: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return those of the environment's variables that may change the machine code, without folders of files."""
        read = (item for item in variables.items() if item[0].startswith(self.prefixes))
        return sorted((name, value) for name, value in read if not name.endswith(("_DIR", "_HOME")))

    def incomplete(self, reason: object) -> BackendUnavailable:
        """Return the error of a compiler that lacks a part, which is not the fault of a kernel."""
        return BackendUnavailable(f"{self.title}: a part of the compiler is missing ({self._command}): {reason}")

    @property
    def _command(self) -> str:
        return pip_install(self.library.extra, anywhere=True)

    def function_of(self, module: ModuleType, name: str) -> Any:
        """Return the kernel function called `name`; raise SpecError if the module lacks it."""
        if not hasattr(module, name):
            raise SpecError(f"{module.__file__}: no kernel '{name}', which the spec launches")
        return getattr(module, name)


def _version_of(distribution: str) -> str:
    """Return the version of the wheel; without a wheel, the compiler takes the part from a toolkit."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "of a toolkit"


def with_globals(function: FunctionType, constants: Mapping[str, Constant]) -> FunctionType:
    """Return the function with a launch's constants as globals; raise SpecError if its file lacks such a global."""
    unknown = [name for name in constants if name not in function.__globals__]
    if unknown:
        raise SpecError(
            f"{function.__name__}: its file defines no global {', '.join(unknown)}, a constant of the launch"
        )
    made = FunctionType(
        function.__code__, {**function.__globals__, **constants}, function.__name__, function.__defaults__
    )
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    made.__annotations__ = function.__annotations__
    return made


@cache
def names() -> tuple[str, ...]:
    """Return the suffixes of all languages except CUDA C++."""
    return tuple(sorted(path.stem for path in _LOADERS.glob("*.py") if path.stem != "__init__"))


@cache
def language(name: str) -> Language:
    """Return the language of a suffix; raise UsageError if no loader has this name."""
    if name not in names():
        raise unknown("kernel language", name, names())
    return import_module(f"prism_bench.compilation.languages.loaders.{name}").LANGUAGE


def language_in(path: Path) -> str | None:
    """Return the language in a file's name, `triton` of `softmax.triton.py`; None for other files."""
    parts = path.name.split(".")
    return parts[1] if len(parts) == 3 and parts[2] == "py" and parts[1] in names() else None


# Placeholders of a language's modules: the catalogue reads a kernel's file without importing its compiler.
#
# The catalogue computes only the launch, the tuning space and the budgets. A kernel function is never called: its
# decorator is a placeholder, too.


class Placeholder:
    """An object of a module that was not imported, by its dotted name; it can be named and called, not computed."""

    def __init__(self, name: str, stand_ins: Mapping[str, Callable[..., Any]]) -> None:
        self._name, self._stand_ins = name, stand_ins

    def __repr__(self) -> str:
        return f"{self._name}, of a module that is not imported here"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{self._name} has no {name} while the catalogue is read")
        dotted = f"{self._name}.{name}"
        return self._stand_ins.get(dotted) or Placeholder(dotted, self._stand_ins)

    def __call__(self, *arguments: Any, **options: Any) -> "Placeholder":
        return Placeholder(f"{self._name}()", self._stand_ins)

    def __getitem__(self, key: object) -> "Placeholder":
        return Placeholder(f"{self._name}[]", self._stand_ins)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def _refuse(self, *_: object) -> NoReturn:
        raise SpecError(
            f"'{self._name}' is used where its module is not imported: while the catalogue is read, or because it is "
            "not installed; compute it in Python, or inside a kernel"
        )

    __iter__ = __bool__ = __int__ = __float__ = __index__ = __len__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _refuse
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _refuse


def reading_builtins(language: Language, suffix: str) -> dict[str, object]:
    """Return builtins whose `import` returns placeholders for the language's modules.

    Modules that catalogues share and whose names begin with the suffix, such as `include/languages/triton_rows.py`,
    import the compiler too, so they are placeholders as well.
    """

    def importing(
        name: str, globals: Any = None, locals: Any = None, fromlist: tuple[str, ...] = (), level: int = 0
    ) -> Any:
        is_of_language = not level and name.partition(".")[0] in language.modules
        parts = fromlist if name.endswith(("include", "include.languages")) else (name.rpartition(".")[2],)
        is_shared = level and all(part.startswith(f"{suffix}_") for part in parts)
        if not is_of_language and not is_shared:
            return builtins.__import__(name, globals, locals, fromlist, level)
        return Placeholder(name if fromlist else name.partition(".")[0], language.stand_ins)

    return vars(builtins) | {"__import__": importing}


# PyTorch where it is not installed: files of projects import it for what launches their kernels, which is not run here.

_OPTIONAL = "torch"


class _AbsentModules(MetaPathFinder, Loader):
    """Finder of placeholders for an optional package that is not installed."""

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        is_optional = fullname == _OPTIONAL or fullname.startswith(f"{_OPTIONAL}.")
        return ModuleSpec(fullname, self, is_package=True) if is_optional else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        stand_ins: dict[str, Callable[..., Any]] = {"torch.cuda.is_available": lambda: False}
        placeholder = Placeholder(spec.name, stand_ins)
        setattr(module, "__getattr__", lambda name: getattr(placeholder, name))  # noqa: B010 - no such attribute
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""


@contextmanager
def absent_modules() -> Iterator[None]:
    """Let files import PyTorch where it is not installed; afterwards it is absent again, as compilers expect."""
    finder = _AbsentModules()
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in [*sys.modules.items()]:
            # An attribute of a module that loads lazily would import it now.
            if getattr(module, "__dict__", {}).get("__loader__") is finder:
                del sys.modules[name]
