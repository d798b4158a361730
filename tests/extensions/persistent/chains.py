"""The persistent stages of all chains, as cases."""

from prism_bench.spec.case import Case, Device
from tests.built_in import CATALOGUE


def chain_cases():
    """Return every chain's persistent stage at S0 by the chain's name, and a case of two kernels with a barrier."""
    cases = {}
    for spec in CATALOGUE.kernels.values():
        for chain in spec.chains:
            if "persistent" in chain.stages:
                cases[chain.name] = at_s0(spec, chain.stages["persistent"])
            if chain.name == "transfer_entropy":
                cases["two kernels"] = at_s0(spec, chain.stages["partial"])
    return cases


def at_s0(spec, variant):
    return Case(spec.with_variant(variant), spec.workloads["S0"], "S0", variant)


CHAINS = chain_cases()
LARGE = Device(sm_count=132, max_shared_bytes=227 << 10)
