"""Libraries that Python code of a spec asks for: peers, which a kernel is raced against, and callable kernels.

A library has the name that functions ask for, how it is imported, named in a record and installed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from typing import Any, Literal, TypedDict

from prism_bench.errors import SpecError
from prism_bench.io.installation import pip_install
from prism_bench.spec import arguments
from prism_bench.spec.kinds import Noun

ArrayPackage = Literal["torch", "cupy", "jax"]


@dataclass(frozen=True)
class Library:
    """A library that a peer asks for by `name`.

    `module` is what is imported, `distribution` the package that installs it, `arrays` the package whose arrays its
    calls take, `extra` the extra of this package that installs it.
    """

    name: str
    module: str
    distribution: str
    arrays: ArrayPackage
    extra: str = "peers-strong"

    @property
    def is_strong(self) -> bool:
        """Whether it is one of the extra libraries, whose results must pass the kernel's own tolerance."""
        return self.extra == "peers-strong"

    def is_installed(self) -> bool:
        """Return whether its module can be found, without importing it."""
        try:
            return find_spec(self.module) is not None
        except (ImportError, ValueError):  # a parent package is missing or broken
            return False

    def installed_version(self) -> str | None:
        """Return the version of the installed package; None where its metadata is missing."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            names = distributions_of(self.module.partition(".")[0])
            return version(names[0]) if names else None

    @property
    def why_absent(self) -> str:
        """Why a peer of it has no time where it is not installed."""
        return f"{self.distribution} is not installed ({pip_install(self.extra, anywhere=True)})"


LIBRARIES: Mapping[str, Library] = {
    library.name: library
    for library in (
        Library("torch", "torch", "torch", "torch", extra="peers"),
        Library("cupy", "cupy", "cupy-cuda12x", "cupy", extra="cuda12"),
        Library("flash_attn", "flash_attn.cute", "flash-attn-4", "torch"),
        Library("flashinfer", "flashinfer", "flashinfer-python", "torch"),
        Library("liger", "liger_kernel.ops", "liger-kernel", "torch"),
        Library("nvmath", "nvmath", "nvmath-python", "torch"),
        # Its products raise Dynamo's recompile limit when they are imported: before a peer's state is remembered.
        Library("quack", "quack.gemm_interface", "quack-kernels", "torch"),
        Library("cub", "cuda.compute", "cuda-cccl", "cupy"),
        Library("cucim", "cucim", "cucim-cu13", "cupy"),
        Library("custatevec", "cuquantum", "custatevec-cu13", "cupy"),
        Library("cuvs", "cuvs", "cuvs-cu13", "cupy"),
        # Its arrays are CuPy's: a peer hands them over in each timed call, and its stream waits for ours there.
        Library("jax", "jax", "jax", "cupy"),
    )
}


def distributions_of(module: str) -> list[str]:
    """Return the names of the distributions that install a top-level module, without importing it."""
    return _distributions().get(module, [])


_distributions = cache(packages_distributions)  # it reads the files of every installed package


Form = Literal["library", "eager", "compiled", "autotuned"]
PeerKind = Literal["library kernel", "compiled", "eager chain"]

AUTOTUNED_LABELS = ("S1", "S2")  # at S0 the launch overhead decides, and an autotuned form takes seconds to compile
COMPILED_FORMS: tuple[Form, ...] = ("compiled", "autotuned")  # of a torch peer, each timed under another name


def form_name(peer: str, form: Form) -> str:
    """Return the name under which a compiled form of a peer is timed."""
    return f"{peer}_{form}"


def is_compiled(name: str) -> bool:
    """Return whether the peer of this name is a compiled form of another one."""
    return any(name.endswith(form_name("", form)) for form in COMPILED_FORMS)


@dataclass(frozen=True)
class Peer(Noun):
    """A library call for the same results as the kernel's.

    Parameters
    ----------
    call : callable
        Asks by parameter name for one library of `LIBRARIES`, for inputs of the case as arrays of that
        library, and for axes and parameters; returns what the reference returns.
    prepares : bool
        Whether `call` is the set-up: it returns a function without arguments that enqueues the work on the current
        stream and returns the results. Only that function is timed.
    poor : str, optional
        Why this is known to be a poor way. It enters no mean while a better peer of the case has a time.
    work : str, optional
        Where it does more or less work than the kernel.
    viewed : mapping, optional
        Inputs that a call of PyTorch takes as another type of the same size, such as bits as `bfloat16`. A view inside
        of the call would be compiled with it, and Inductor's templates for products refuse it.
    """

    call: Callable[..., Any]
    prepares: bool = False
    poor: str | None = None
    work: str | None = None
    viewed: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def library(self) -> Library:
        """The one library that the call asks for; a SpecError if it asks for none or several."""
        asked = [name for name in arguments.wanted(self.call) if name in LIBRARIES]
        if len(asked) != 1:
            raise SpecError(f"a peer asks for one of {', '.join(LIBRARIES)}, not for {' and '.join(asked) or 'none'}")
        return LIBRARIES[asked[0]]


class PeerFacts(TypedDict, total=False):
    """What a run record keeps of a peer next to its times.

    `calls` counts the library's operators in one call, `launches` the work items that one call enqueues on the device.
    `enqueued` is there where a CUDA graph of the call is timed, since a stream does not hold all of its launches.
    `breaks` counts the places where a compiled peer's graph broke, so that Python ran between its parts.
    `precision` describes where its results are less precise than the kernel's tolerance allows.
    """

    library: str
    version: str | None
    form: Form
    kind: PeerKind
    calls: int
    launches: int
    enqueued: str
    breaks: int
    poor: str
    work: str
    precision: str


def as_peer(peer: Peer | Callable[..., Any]) -> Peer:
    """Return what a spec holds as a peer: itself, or the plain call."""
    return peer if isinstance(peer, Peer) else Peer(peer)


@dataclass(frozen=True)
class KernelCall(Noun):
    """Callable that does the work of a kernel on device arrays: a launcher, a custom operator, an exported module.

    Parameters
    ----------
    function : callable
        Asks by parameter name for arguments of the spec and axes, for `stream` (the address of the CUDA stream that is
        timed, which is also the current stream of CuPy and PyTorch), and for at most one library of
        `LIBRARIES`, whose arrays it then takes; without one they are CuPy's, which offer DLPack and the CUDA
        array interface. It writes the outputs that it asks for, and returns those that it does not, in their order.
    prepares : bool
        Whether `function` is the set-up: it returns a function without arguments, and only that function is timed.
    artifacts : callable, optional
        Asks by name for the same, and returns the cubins that a call launches, as bytes: with them a record knows the
        machine code.
    """

    function: Callable[..., Any]
    prepares: bool = False
    artifacts: Callable[..., Iterable[bytes]] | None = None

    @property
    def library(self) -> Library:
        """The library that the function asks for, CuPy without one; a SpecError where it asks for several."""
        asked = [name for name in arguments.wanted(self.function) if name in LIBRARIES]
        if len(asked) > 1:
            raise SpecError(f"a callable asks for one library, not for {' and '.join(asked)}")
        return LIBRARIES[asked[0] if asked else "cupy"]

    def returned(self, outputs: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the outputs that the function does not ask for."""
        asked = arguments.wanted(self.function)
        return tuple(name for name in outputs if name not in asked)


def as_call(call: KernelCall | Callable[..., Any]) -> KernelCall:
    """Return what a spec has as its callable: itself, or the plain function."""
    return call if isinstance(call, KernelCall) else KernelCall(call)
