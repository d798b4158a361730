"""Which kernels measure the machine in every run."""

from prism_bench.measure.cold_proof import COLD_PROOF_BYTES
from prism_bench.run.ceilings import ceiling_cases
from tests.built_in import CATALOGUE


def test_ceilings_of_memory_are_measured_at_all_sizes_and_in_all_patterns():
    found = {(case.kernel, case.label) for case in ceiling_cases(CATALOGUE)}
    for kernel in ("copy", "read", "read:abreast"):
        assert {(kernel, label) for label in ("S0", "S1", "S2")} <= found
    assert {("copy:streamed", "S1"), ("copy:streamed", "S2")} == {pair for pair in found if pair[0] == "copy:streamed"}
    assert {("null", "S0"), ("fma", "S0"), ("fma", "S2")} <= found
    reading = [case for case in ceiling_cases(CATALOGUE) if case.spec.ceiling == "read_bandwidth"]
    assert 1 << 30 in {case.sizes.nbytes("x") for case in reading}


def test_several_reads_may_prove_cold_caches():
    """On a device whose cache is a large GPU's: more than one pattern, so that a slow one does not cost the run."""
    cache_bytes = 50 << 20
    fitting = {
        case.kernel
        for case in ceiling_cases(CATALOGUE)
        if case.spec.ceiling == "read_bandwidth" and COLD_PROOF_BYTES <= case.sizes.nbytes("x") <= cache_bytes / 2
    }
    assert {"read", "read:abreast"} <= fitting
