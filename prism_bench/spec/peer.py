"""Peers: library calls that a kernel is raced against, and what a run record keeps of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from prism_bench.errors import SpecError
from prism_bench.spec import byname
from prism_bench.spec.libraries import LIBRARIES, Library

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
class Peer:
    """A library call for the same results as the kernel's.

    Parameters
    ----------
    call : callable
        Asks by parameter name for one library of `libraries.LIBRARIES`, for inputs of the case as arrays of that
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
        asked = [name for name in byname.wanted(self.call) if name in LIBRARIES]
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


def as_peer(given: Peer | Callable[..., Any]) -> Peer:
    """Return what a spec holds as a peer: itself, or the plain call."""
    return given if isinstance(given, Peer) else Peer(given)
