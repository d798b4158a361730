"""Times that a submission is compared with, apart from the task's own kernel: its peers, and the device's ceilings."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from prism_bench.backends import Backend
from prism_bench.backends.base import Runnable
from prism_bench.errors import PrismBenchError
from prism_bench.extensions.judge.judged_time import judged_time, least_time
from prism_bench.extensions.judge.referee.turns import Turn
from prism_bench.extensions.judge.verdict import JudgedTime
from prism_bench.run.peers import PEER_TOLERANCE
from prism_bench.run.verification import compare_outputs, complaint, passed
from prism_bench.spec.case import Case

BUS = "memory bus, by its clock and width"
ARITHMETIC = "arithmetic, tensor cores at their narrowest type"


def ceiling_times(cases: Sequence[Case], bandwidth: float, operations: float) -> Iterator[JudgedTime]:
    """Yield the least times of each case at `bandwidth`, bytes per second, and at `operations`; 0 is not known."""
    for case in cases:
        for subject, work, rate in (
            (BUS, case.sizes.bytes_moved, bandwidth), (ARITHMETIC, case.sizes.flops or 0, operations),
        ):  # fmt: skip
            if work and rate:
                yield least_time(case, subject, work / rate)


class PeerClock:
    """Times the peers of cases in this process, by the backend's clock: they are the task's, not a stranger's.

    Samples are taken within a `turn` on the device.
    """

    def __init__(self, backend: Backend, turn: Turn = nullcontext, samples: int = 20) -> None:
        self._backend, self._turn, self._samples = backend, turn, samples

    def times(self, case: Case, unjudged: list[str]) -> Iterator[JudgedTime]:
        """Yield the time of each peer that runs here and is right; why another has none is added to `unjudged`."""
        names = self._backend.peers(case)
        if not names:
            return
        try:
            with self._backend.prepare(case, case.inputs()) as runnable:
                for name in names:
                    try:
                        yield self._time(case, name, runnable)
                    except Exception as error:  # whatever a library raises is the peer's
                        words = str(error).strip().splitlines() or [""]
                        unjudged.append(f"{case.name}: peer {name} has no time: {type(error).__name__}: {words[0]}")
        except (PrismBenchError, MemoryError) as error:
            unjudged.append(f"{case.name}: peers have no times: {error}")

    def _time(self, case: Case, name: str, runnable: Runnable) -> JudgedTime:
        with self._backend.prepare_peer(case, name, runnable) as peer:
            peer()
            outputs = peer.arrays([one.name for one in case.spec.outputs])
            tolerance = case.spec.peer_tolerance or PEER_TOLERANCE
            entries = compare_outputs(self._backend, case, peer.inputs, outputs, 0, tolerance=tolerance)
            if not passed(entries):
                raise PrismBenchError(complaint(case, name, entries))
            sample = peer.timers()["cold_time"]()
            with self._turn():
                seconds = [sample().seconds for _ in range(self._samples)]
            peer.confirm()
        return judged_time(case, name, "peer", seconds)
