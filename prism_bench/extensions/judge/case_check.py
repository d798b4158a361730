"""Check of one case of a submission on the emulator: on which inputs it is launched, and what is compared."""

from prism_bench.catalogue.listing import edge_cases, timed_cases
from prism_bench.extensions.judge.hidden import changed_inputs
from prism_bench.extensions.judge.jailed_emulator import JailedEmulator
from prism_bench.run.verification import Entry, compare_outputs, complaint, passed, verify_prepared
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec


class CaseCheck:
    """Checks cases with the inputs of `seeds`, and then with one element changed at a place that `secret` draws."""

    def __init__(self, seeds: tuple[int, ...], secret: int | None = None) -> None:
        self._seeds, self._secret = seeds, secret

    def complaint(self, backend: JailedEmulator, case: Case) -> str:
        """Return what is wrong with its outputs; nothing where they are right.

        What ends a launch is raised: VerificationFailed for a finding, SpecError for a launch that no device takes.
        """
        found = self.entries(backend, case)
        return "" if passed(found) else complaint(case, backend.name, found)

    def entries(self, backend: JailedEmulator, case: Case) -> list[Entry]:
        """Return an entry for each comparison."""
        with backend.prepare(case, case.inputs(self._seeds[0])) as runnable:
            found = verify_prepared(backend, runnable, self._seeds)
            changed = None if self._secret is None else changed_inputs(case, case.inputs(self._seeds[-1]), self._secret)
            if changed and passed(found):
                runnable.reset(changed)
                runnable()
                outputs = runnable.arrays(output.name for output in case.spec.outputs)
                found += compare_outputs(backend, case, changed, outputs, self._seeds[-1])
        return found


def all_cases(spec: KernelSpec) -> list[Case]:
    """Return what is timed, edges and golden data."""
    return [*timed_cases(spec, None), *edge_cases(spec, None)]


def host_cases(spec: KernelSpec) -> list[Case]:
    """Return what a CPU can run in reasonable time: edges, golden data and S0."""
    return [*(case for case in timed_cases(spec, None) if case.label == "S0"), *edge_cases(spec, None)]
