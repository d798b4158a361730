"""Which kernels measure the machine in every run."""

from prism_bench.run.catalogue_run import ceiling_cases
from tests.built_in import CATALOGUE


def test_ceilings_of_memory_are_measured_at_all_sizes_and_in_all_patterns():
    found = {(case.kernel, case.label) for case in ceiling_cases(CATALOGUE)}
    for kernel in ("copy", "read"):
        assert {(kernel, label) for label in ("S0", "S1", "S2")} <= found
    for kernel in ("copy:streamed", "read:abreast"):
        assert {(kernel, "S1"), (kernel, "S2")} == {pair for pair in found if pair[0] == kernel}
    assert {("null", "S0"), ("fma", "S0"), ("fma", "S2")} <= found
    reading = [case for case in ceiling_cases(CATALOGUE) if case.spec.ceiling == "read_bandwidth"]
    assert 1 << 30 in {case.sizes.nbytes("x") for case in reading}
