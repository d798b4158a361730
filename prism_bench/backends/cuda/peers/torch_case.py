"""Forms of a case's torch peers: which there are, found without running anything on the device."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from prism_bench.backends.cuda.peers.torch_forms import inner
from prism_bench.backends.cuda.peers.torch_trace import Operators, operators_of
from prism_bench.backends.peer_cache import kept_build
from prism_bench.io.files import SHARED
from prism_bench.spec import byname
from prism_bench.spec.case import Case
from prism_bench.spec.peer import AUTOTUNED_LABELS, COMPILED_FORMS, Form, Peer, form_name

_Kept = type(lru_cache(lambda: None))


def peer_names(case: Case) -> tuple[str, ...]:
    """Return the names of the case's peers; each torch peer is followed by its compiled forms.

    The autotuned form is one of S1 and S2 where the peer has a product, a norm or attention.
    """
    names: list[str] = []
    for name in case.spec.peers:
        peer = case.spec.peer(name)
        names += [name, *(form_name(name, form) for form in _forms(case, name, peer))]
    return tuple(dict.fromkeys(names))


def named_peer(case: Case, name: str) -> tuple[Peer, Form | None]:
    """Return the peer of the spec that has this name or is compiled under it, and the form; LookupError without one."""
    if name in case.spec.peers:
        return case.spec.peer(name), None
    for form in COMPILED_FORMS:
        base = name.removesuffix(form_name("", form))
        if base != name and base in case.spec.peers:
            return case.spec.peer(base), form
    raise LookupError(f"{case.name} has no peer called {name}")


def _forms(case: Case, name: str, peer: Peer) -> list[Form]:
    if peer.library.name != "torch" or not peer.library.is_installed():
        return []
    if case.label not in AUTOTUNED_LABELS:
        return ["compiled"]
    return list(COMPILED_FORMS) if _gains_by_autotuning(case, name) else ["compiled"]


@lru_cache(maxsize=64)  # asked for again for each step of the case
def _gains_by_autotuning(case: Case, name: str) -> bool:
    """Return whether the peer has an operator that gains by autotuning, as an earlier process kept it for this code."""
    torch, call = import_module("torch"), inner(case.spec.peer(name).call)
    code = getattr(call, "__code__", None)
    known = code and (code.co_filename, code.co_firstlineno, code.co_code.hex(), code.co_names)
    key = (
        "autotuned",
        torch.__version__,
        case.name,
        name,
        known,
        _sources(Path(code.co_filename).parent) if code else "",
    )

    def look() -> bytes:
        operators = _operators(case, name)
        return b"yes" if operators and operators.gains_by_autotuning else b"no"

    return (kept_build(key, look) if code else look()) == b"yes"


@lru_cache(maxsize=256)
def _sources(folder: Path) -> str:
    """Return a digest of all that a spec in this folder and what it shares with others say."""
    digest = sha256()
    shared = [file for kind in SHARED for file in (folder.parent / kind).rglob("*.py")]
    for file in sorted([*folder.glob("*.py"), *shared]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _operators(case: Case, name: str) -> Operators | None:
    """Return the operators of a peer for tensors that are only shapes; None where they depend on values.

    The set-up of a peer that prepares itself is not run with shapes alone: it may time, or capture a graph.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    torch, peer = import_module("torch"), case.spec.peer(name)
    if peer.prepares:
        return None
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            offered = {**case.axes, **empty_tensors(torch, case), "torch": torch}
            return operators_of(torch, prepared_call(peer, offered, f"{case.spec.name}: peer {name}"))
    except Exception:  # whatever it is, it is raised again where the peer is timed, and reported there
        return None
    finally:
        _forget(inner(peer.call))


def _forget(function: Callable[..., object]) -> None:
    """Clear what the functions of a peer's module keep: a tensor that is only a shape would be used in real calls."""
    for value in getattr(function, "__globals__", {}).values():
        if isinstance(value, _Kept):
            value.cache_clear()


def empty_tensors(torch: ModuleType, case: Case, device: str = "cuda") -> dict[str, Any]:
    """Return tensors like the case's inputs on the device, with any values; within a fake mode, shapes alone."""
    return {
        array.name: torch.empty(case.sizes.shape(array.name), dtype=getattr(torch, str(array.dtype)), device=device)
        for array in case.spec.inputs
    }


def prepared_call(peer: Peer, offered: Mapping[str, Any], where: str) -> Callable[[], object]:
    """Return the call to time, with the names that it asks for bound; set up if the peer prepares itself."""
    make = byname.call if peer.prepares else byname.bind
    return make(peer.call, viewed(peer, offered), where)


def viewed(peer: Peer, offered: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is offered to the call, with the inputs that it takes as another type."""
    if not peer.viewed:
        return offered
    torch = import_module("torch")
    views = {name: offered[name].view(getattr(torch, dtype)) for name, dtype in peer.viewed.items()}
    return {**offered, **views}
