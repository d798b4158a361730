"""Global state of the libraries around a peer: remembered before it, compared and restored after it."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from prism_bench.backends.cuda.peers.library_flags import ATTRIBUTES, FUNCTIONS, OTHERS, GlobalFlag, first_change
from prism_bench.errors import BackendUnavailable
from prism_bench.spec.peer import LIBRARIES

FLAGS = (*ATTRIBUTES, *FUNCTIONS, *OTHERS)
CONFIGURATIONS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
COMPILERS = ("torch._dynamo", "torch._inductor.compile_fx")
_PASSES = 3  # a flag that shows another one's value may change it when it is written
_MOST_NAMES = 3
_UNREADABLE = object()
_USUAL = object()


@dataclass(frozen=True)
class StateChange:
    """Flags that a peer changed, as reasons name them; those in `lasting` could not be restored."""

    names: Sequence[str] = ()
    lasting: Sequence[str] = ()

    @property
    def reason(self) -> str | None:
        """Why the peer has no time; None where it changed nothing that counts."""
        if not self.names:
            return None
        more = len(self.names) - _MOST_NAMES
        listed = " and ".join([*self.names[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])])
        return f"it changed {listed} and left {'it' if len(self.names) == 1 else 'them'} so"


@dataclass(frozen=True)
class _Change:
    flag: GlobalFlag
    before: Any
    now: Any

    @property
    def name(self) -> str:
        return self.flag.name + (self.flag.detail(self.before, self.now) if self.now is not _UNREADABLE else "")


class LibraryState:
    """The values of all flags of those libraries that are loaded."""

    def __init__(self, values: Sequence[tuple[GlobalFlag, Any]]) -> None:
        self._values = values

    @classmethod
    def now(cls) -> "LibraryState":
        """Return the current state."""
        values = [(flag, _value(flag)) for flag in loaded_flags()]
        return cls([(flag, value) for flag, value in values if value is not _UNREADABLE])

    def restore(self) -> StateChange:
        """Restore what has changed, and return what that was."""
        changed = first = self._changes()
        for _ in range(_PASSES):
            for change in changed:
                _write(change.flag, change.before)
            changed = self._changes() if changed else []
        names = {change.flag.name for change in first}
        findings = [change for change in first if not change.flag.quiet and change.flag.after not in names]
        return StateChange([one.name for one in findings], [one.name for one in changed if not one.flag.quiet])

    def _changes(self) -> list[_Change]:
        pairs = [_Change(flag, before, _value(flag)) for flag, before in self._values]
        return [pair for pair in pairs if not _same(pair.before, pair.now)]


def ready(name: str | None) -> None:
    """Import a library of the registry and set it up as peers find it: no TF32, no gradients, the current stream.

    BackendUnavailable where it is not installed. Without a name nothing happens.
    """
    if name is None:
        return
    import_library(name)
    if LIBRARIES[name].arrays == "torch":
        cupy = sys.modules.get("cupy")
        set_up_torch(sys.modules["torch"], cupy.cuda.get_current_stream().ptr if cupy else None)


def import_library(name: str) -> None:
    """Import a library of the registry, and what its arrays need; BackendUnavailable where it is not installed."""
    library = LIBRARIES[name]
    if not library.is_installed():
        raise BackendUnavailable(library.why_absent)
    import_module(library.arrays)
    import_module(library.module)
    if library.arrays == "torch":
        for module in CONFIGURATIONS:
            import_module(module)


def import_ahead(name: str) -> None:
    """Import a library of the registry with what its first use would import: for torch its compilers."""
    import_library(name)
    if name == "torch":
        for module in COMPILERS:
            import_module(module)


def set_up_torch(torch: Any, stream: int | None) -> None:
    """Set torch as peers find it: no TF32, no gradients, and the stream of that address, if any, as the current one."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    if stream is not None:
        torch.cuda.set_stream(torch.cuda.ExternalStream(stream))
        _settle_attention(torch)


@cache
def _settle_attention(torch: Any) -> None:
    """Call attention once, so that torch orders its kernels as this device wants them.

    The first call of a process does that, once for good. A peer that made it would be found to have changed the order,
    and with the former order restored, later peers would run without cuDNN where torch prefers it.
    """
    some = torch.zeros((1, 1, 64, 64), dtype=torch.float16, device="cuda")
    torch.nn.functional.scaled_dot_product_attention(some, some, some)


def end_failed_capture(torch: Any) -> None:
    """Give torch's device generator a state that is in no capture: one whose capture failed stays in it for good.

    Every later call that draws numbers, such as a recurrent layer of cuDNN, would raise.
    """
    with suppress(RuntimeError, AttributeError):  # the failure of the capture is what is reported
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        generator.graphsafe_set_state(generator.clone_state())


def loaded_flags() -> Iterator[GlobalFlag]:
    """Yield the flags of the libraries that are loaded, in the order in which they are restored."""
    yield from (flag for flag in FLAGS if flag.module in sys.modules)
    yield from (_configuration(sys.modules[name]) for name in CONFIGURATIONS if name in sys.modules)
    if "jax" in sys.modules:
        yield _jax_flags(sys.modules["jax"])
    if "triton.knobs" in sys.modules:
        yield from _triton_knobs(sys.modules["triton.knobs"])


def _configuration(module: Any) -> GlobalFlag:
    """Return all keys of a configuration of torch's compilers as one flag; an alias is the key of another one."""

    def read() -> dict[str, Any]:
        # The entries' own fields: asking the module for 750 keys takes milliseconds, around each peer.
        return {key: _setting(entry) for key, entry in module._config.items() if entry.alias is None}

    def write(values: dict[str, Any]) -> None:
        now = read()
        for key in [key for key in values if not _same(values[key], now.get(key))]:
            if values[key] is _USUAL:
                module._config[key].user_override = _unset(module._config[key])
                module._is_dirty = True
            else:
                setattr(module, key, _copied(values[key]))

    return GlobalFlag(module.__name__, module.__name__, read, write, detail=_first_key)


def _setting(entry: Any) -> Any:
    """Return what a program set; `_USUAL` where it set nothing, or what the key would be without it.

    PyTorch's own `config.patch` leaves the usual value as one that was set.
    """
    value = entry.user_override
    return _USUAL if value is _unset(entry) or _same(value, _usual(entry)) else _copied(value)


def _usual(entry: Any) -> Any:
    """Return what the key is where no program sets it; what a remote switch would say is left out."""
    return entry.default if entry.env_value_default is _unset(entry) else entry.env_value_default


def _unset(entry: Any) -> Any:
    """Return the mark of an entry that no program has set."""
    return type(entry).user_override


def _jax_flags(jax: Any) -> GlobalFlag:
    def write(values: dict[str, Any]) -> None:
        now = jax.config.values
        for key in [key for key in values if not _same(values[key], now.get(key))]:
            jax.config.update(key, values[key])

    return GlobalFlag("jax.config", "jax", lambda: dict(jax.config.values), write, detail=_first_key)


def _copied(value: Any) -> Any:
    return deepcopy(value) if isinstance(value, list | dict | set) else value


def _first_key(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the first key whose value has changed, as an attribute; how many more there are follows."""
    changed = sorted(key for key in before.keys() | now.keys() if not _same(before.get(key), now.get(key)))
    more = f" ({len(changed) - 1} more keys)" if len(changed) > 1 else ""
    return f".{changed[0]}{more}" if changed else ""


def _triton_knobs(knobs: Any) -> Iterator[GlobalFlag]:
    """Yield each group of Triton's knobs; what is set there by a program is in the attributes of the group."""

    def flag(name: str, group: Any) -> GlobalFlag:
        def write(values: dict[str, Any]) -> None:
            vars(group).clear()
            vars(group).update(values)

        return GlobalFlag(f"triton.knobs.{name}", "triton", lambda: dict(vars(group)), write, detail=first_change)

    yield from (flag(name, group) for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs))


def _value(flag: GlobalFlag) -> Any:
    """Return the flag's value; `_UNREADABLE` where this version has no such flag, or it cannot be read."""
    try:
        return flag.read()
    except Exception:  # a library may raise anything here, and what it raises is part of its state
        return _UNREADABLE


def _write(flag: GlobalFlag, value: Any) -> None:
    try:
        flag.write(value)
    except Exception:  # what could not be restored is noticed when it is read again
        return


def _same(before: Any, now: Any) -> bool:
    try:
        return before is now or bool(before == now)
    except Exception:  # values without a truth of their equality, such as arrays
        return False
