"""A submission that is right so far, and the task's own kernel, on the GPU of this machine."""

from collections.abc import Sequence
from functools import cache, partial
from random import Random

from prism_bench.backends import Backend, open_backend
from prism_bench.case import Case
from prism_bench.compilation import compile_source
from prism_bench.errors import CompilationFailed
from prism_bench.extensions.judge.referee.client import RunnerProcess
from prism_bench.extensions.judge.referee.session import Contestant, ContestantCode, RefereeFindings, RefereeSession
from prism_bench.kernel import KernelSpec
from prism_bench.spec_parts import CUDA


class OnGpu:
    """The GPU for one judgement; opened before it, so that what is missing is known at once.

    BackendUnavailable where no GPU answers, or where it is in quarantine.
    """

    def __init__(self, session: RefereeSession | None = None, random: Random | None = None) -> None:
        reference = cache(partial[Backend](open_backend, "cuda"))
        self._session = session or RefereeSession(RunnerProcess, reference, random or Random())

    @property
    def architecture(self) -> str:
        """What a source is compiled for."""
        return str(self._session.facts.compute_capability)

    def judge(self, spec: KernelSpec, task: KernelSpec, cases: Sequence[Case], code: ContestantCode) -> RefereeFindings:
        """Judge the submission's cases, and where it is right time the task's own kernel at the same workloads."""
        session = self._session
        try:
            session.run(Contestant(spec.name, "submission", cases, code))
            if not session.findings.objections:
                own = [Case(task, case.workload, case.label) for case in cases]
                session.run(Contestant(task.name, "kernel", own, self._own_code(task, own)))
        except CompilationFailed as error:
            session.findings.unjudged.append(f"the task's own kernel has no time: {error}")
        finally:
            session.close()
        session.findings.unjudged.append("times of peers and ceilings: `prism-bench run` measures them")
        return session.findings

    def _own_code(self, task: KernelSpec, cases: Sequence[Case]) -> ContestantCode:
        if task.language != CUDA or task.cards or task.callable is not None:
            raise CompilationFailed(f"{task.name} is written in {task.language}")
        entries = sorted({one for case in cases for one in case.plan.entries(self._session.device)})
        made = compile_source(task.source_file, tuple(entries), self.architecture, task.options)
        return ContestantCode(made.cubin, {entry: made.lowered[entry] for entry in entries})
