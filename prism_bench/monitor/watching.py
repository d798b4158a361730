"""A sampler for a device, or its substitute where there is nothing to watch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from time import perf_counter
from types import ModuleType
from typing import Any

from prism_bench.errors import BackendUnavailable
from prism_bench.monitor import devices as listing
from prism_bench.monitor.devices import NvmlDevice
from prism_bench.monitor.nvml import close, library
from prism_bench.monitor.probe import Probe
from prism_bench.monitor.processes import family
from prism_bench.monitor.sampler import BUDGET, HERTZ, Sampler, Watch
from prism_bench.monitor.xid import XidWatch
from prism_bench.record.measurement import Evidence

_UNHURRIED = 2.0  # hertz: so slow a beat reads everything, for somebody who looks at it


class Blind:
    """Substitute for a sampler: every window has the reason why nothing was seen, if there is one."""

    def __init__(self, reason: str | None = None) -> None:
        self._reason = reason
        self.probes: list[Probe] = []

    def summary(self) -> dict:
        """As `Sampler.summary`."""
        return {"missing": self._reason or "nobody watched"}

    @contextmanager
    def window(self) -> Iterator[Watch]:
        """As `Sampler.window`."""
        watch, begin = Watch(), perf_counter()
        try:
            yield watch
        finally:
            if self._reason:
                watch.evidence = Evidence(perf_counter() - begin, 0, missing={"readings": self._reason})


@contextmanager
def watched(uuid: str | None, hertz: float = HERTZ) -> Iterator[Sampler | Blind]:
    """Yield a sampler of the device with that UUID while the block runs, made for a measuring process.

    It reads what evidence needs, and nothing that blocks. Without a UUID, or at 0 hertz, nothing is seen.
    """
    if not uuid or not hertz:
        yield Blind()
        return
    with ExitStack() as stack:
        try:
            sampler = stack.enter_context(sampling(lambda found: [_found(found, uuid)], hertz=hertz, full=False))
        except BackendUnavailable as error:
            sampler = Blind(str(error))
        yield sampler


@contextmanager
def sampling(
    choose: Callable[[list[NvmlDevice]], Sequence[NvmlDevice]], *, hertz: float, full: bool, threaded: bool = True
) -> Iterator[Sampler]:
    """Yield a sampler of the devices that `choose` picks out of all; BackendUnavailable where NVML cannot be opened.

    With `threaded` it beats by itself, else when `beat` is called.
    """
    pynvml = library()
    try:
        xids = XidWatch(pynvml, list(choose(listing.devices(pynvml)))) if threaded else None
        prepare = _Preparing(pynvml, choose, full=full, budget=BUDGET if threaded and hertz > _UNHURRIED else None)
        sampler = Sampler(prepare, hertz=hertz, xids=xids)
        with sampler if threaded else nullcontext():
            yield sampler
    finally:
        close(pynvml)


class _Preparing:
    """Probes of the chosen devices; by a library opened anew where the one that was open outlived its driver."""

    def __init__(
        self, pynvml: ModuleType, choose: Callable[[list[NvmlDevice]], Sequence[NvmlDevice]], **options: Any
    ) -> None:
        self._pynvml, self._choose, self._options, self._ours = pynvml, choose, options, family()

    def __call__(self) -> list[Probe]:
        try:
            found = listing.devices(self._pynvml)
        except BackendUnavailable:
            close(self._pynvml)
            self._pynvml.nvmlInit()
            found = listing.devices(self._pynvml)
        return [Probe(self._pynvml, one, ours=self._ours, **self._options) for one in self._choose(found)]


def _found(found: Sequence[NvmlDevice], uuid: str) -> NvmlDevice:
    device = listing.by_uuid(found, uuid)
    if device is None:
        raise BackendUnavailable(f"NVML lists no device {uuid}; its measurements carry no evidence")
    return device
