"""A judge on a GPU as public ones are: it checks a launch, and times others on the same buffers and inputs.

No launch that it times is checked, memory is as the last launch left it, the module is loaded once, and the number of
samples follows from how long the first ones took.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

from prism_bench.backends.cuda.backend import CudaBackend
from prism_bench.backends.cuda.backend import open_backend as open_cuda
from prism_bench.backends.cuda.timers import Harness
from prism_bench.backends.numpy_reference import open_backend
from prism_bench.catalogue import Catalogue
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.compilation import compile_source
from prism_bench.extensions.judge.referee.buffers import Arena
from prism_bench.extensions.judge.referee.client import ContestantCode, case_plan
from prism_bench.extensions.judge.referee.cuda_device import CudaRefereeDevice
from prism_bench.extensions.judge.referee.messages import CasePlan
from prism_bench.extensions.judge.referee.session import device_turn
from prism_bench.extensions.judge.submission import judged_spec, read_submission
from prism_bench.run.verification import compare_outputs, passed
from prism_bench.spec.case import Case, Device

WARM_UPS, LAUNCHES = 10, 60
BUDGET_SECONDS = 0.02  # for all samples; as many are taken as it allows, at least three


@dataclass(frozen=True)
class NaiveVerdict:
    """What it answers: `right`, seconds and samples; and what is true: whether timed launches `worked`, and edges do.

    `enqueued` is what a clock names that does not wait for the device, `waited` what one does that waits.
    """

    right: bool
    worked: bool
    edges: bool
    seconds: float
    samples: int
    enqueued: float
    waited: float
    architecture: str = ""


def naive_verdict(card: Path, task: str, tasks: Catalogue) -> NaiveVerdict:
    """Judge a card on the current GPU in this process, at the task's largest size."""
    backend = open_cuda()
    device = CudaRefereeDevice(backend)
    facts = device.facts()
    where = Device(facts.sm_count, facts.max_shared_bytes, facts.compute_capability)
    submission = read_submission(card)
    spec = judged_spec(tasks.kernel(task), submission)
    case, edges = timed_cases(spec, None)[-1], edge_cases(spec, None)
    entries = tuple(sorted({entry for one in (case, *edges) for entry in one.plan.entries(where)}))
    if submission.is_cubin:
        code = ContestantCode(submission.content, {entry: entry for entry in entries})
    else:
        made = compile_source(spec.source_file, entries, str(facts.compute_capability), spec.options)
        code = ContestantCode(made.cubin, made.lowered)
    (_, plan), *others = [(one, case_plan(one, where, code)[0]) for one in (case, *edges)]
    steps = [step for one in (plan, *(other for _, other in others)) for step in one.steps]
    device.load((code.cubin,), list(dict.fromkeys((step.module, step.symbol) for step in steps)))
    with device_turn(facts.uuid):
        found = _Naive.of(device, backend, case, plan).verdict()
    right = all(_Naive.of(device, backend, edge, one).is_right(2) for edge, one in others if one.steps)
    return replace(found, edges=right, architecture=str(facts.compute_capability))


@dataclass(frozen=True)
class _Naive:
    device: CudaRefereeDevice
    harness: Harness
    case: Case
    arena: Arena
    calls: Sequence[Callable[[], None]]
    flushed: int
    l2_bytes: int

    @classmethod
    def of(cls, device: CudaRefereeDevice, backend: CudaBackend, case: Case, plan: CasePlan) -> "_Naive":
        arena, size = Arena(device, plan), backend.device.l2_bytes
        calls = [device.call(one, arena.values(one.parameters)) for one in plan.steps]
        return cls(device, backend.harness, case, arena, calls, device.allocate(size), size)

    def verdict(self) -> NaiveVerdict:
        right = self.is_right(0)
        first = [self._timed() for _ in range(WARM_UPS)]
        samples = max(3, min(LAUNCHES, round(BUDGET_SECONDS / max(median(first), 1e-9))))
        seconds = [self._timed() for _ in range(samples)]
        begin = perf_counter()
        self._launch()
        enqueued = perf_counter() - begin
        self.device.synchronize()
        waited = perf_counter() - begin
        for _ in range(LAUNCHES):
            self._launch()
        return NaiveVerdict(right, self.is_right(1), True, median(seconds), samples, enqueued, waited)

    def is_right(self, seed: int) -> bool:
        inputs = self.case.inputs(seed)
        self.arena.prepare(inputs, 1 + seed)
        self._launch()
        self.device.synchronize()
        return passed(compare_outputs(open_backend(), self.case, inputs, self.arena.outputs(), seed))

    def _timed(self) -> float:
        """Return the seconds of a launch after L2 was written over once; lines that it was asked to keep stay there."""
        self.device.fill(self.flushed, self.l2_bytes, 0)
        return self.harness.timed(self._launch, cold=False).seconds

    def _launch(self) -> None:
        for call in self.calls:
            call()
