"""Judgements whose sizes on a GPU a study chooses, so that many of them end in minutes; all else is as usual."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench.backends import Backend
from prism_bench.catalogue import Catalogue
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import Workload

SMALL = ("S0",)
MOST_BYTES, MOST_OPERATIONS = 256 << 20, 1 << 32  # of a hidden size, where S0 alone is launched
_HALVINGS = 40


@dataclass
class SizedTrial(SubmissionTrial):
    """A trial with the published sizes of `labels` alone, and hidden ones between them, of S0 alone up to `reduced`."""

    labels: Sequence[str] = SMALL

    def gpu_cases(self, spec: KernelSpec) -> list[Case]:
        timed = [case for case in timed_cases(spec, None) if case.label in self.labels]
        return [*edge_cases(spec, None), *timed, *self.drawn_among(spec, self.span())]

    def span(self) -> list[Case]:
        """Return the task's cases that hidden sizes are between."""
        known = {case.label: case for case in timed_cases(self.task.spec, None)}
        chosen = [case for label, case in known.items() if label in self.labels]
        if tuple(self.labels) == SMALL and chosen and "S1" in known:
            chosen.append(reduced(chosen[0], known["S1"]))
        return chosen


@dataclass(frozen=True)
class SizedJudge:
    """Judges submissions at the sizes of `labels`, on a GPU next to the task's own kernel, and to `peers`.

    `backend` is that of all judgements in this process.
    """

    catalogue: Catalogue
    backend: Callable[[], Backend]
    labels: Sequence[str] = SMALL
    gpu: bool = True
    jailed: bool = True
    peers: bool = False

    def verdict(self, card: Path, task: str, secret: int) -> JudgeVerdict:
        """Return the verdict on a card."""
        taken, judged_by = read_submission(card), JudgeTask(self.catalogue.kernel(task), self.catalogue)
        device = OnGpu(None, secret, self.backend, peers=self.peers) if self.gpu else None
        architectures = (device.architecture if device else "90",)
        return SizedTrial(
            taken, judged_by, architectures, self.jailed, secret=secret, gpu=device, labels=self.labels
        ).verdict()


def reduced(small: Case, large: Case) -> Case:
    """Return the large case with each axis halved, down to the small one's, until it takes at most so much."""
    for halvings in range(_HALVINGS):
        axes = {axis: _halved(value, small.workload.get(axis, 1), halvings) for axis, value in large.workload.items()}
        found = Case(large.spec, Workload(**axes), large.label)
        if found.sizes.allocated_bytes <= MOST_BYTES and (found.sizes.flops or 0) <= MOST_OPERATIONS:
            return found
    return small


def _halved(value: object, least: object, times: int) -> object:
    if type(value) is not int or type(least) is not int:
        return value
    return max(value >> times, min(value, least))
