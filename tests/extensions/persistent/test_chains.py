"""Every chain's persistent stage is right when served; chains with equal block sizes share a queue kernel."""

from collections import defaultdict

import pytest

from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.extensions.persistent import PERSISTENT, Executor
from prism_bench.extensions.persistent.executor import ServedRunnable
from prism_bench.extensions.persistent.queue import program_of, served
from prism_bench.run.verification import complaint, passed, verify_prepared
from prism_bench.spec.case import Device
from tests.extensions.persistent.chains import CHAINS, LARGE


def by_blocks(device):
    """Return the chains by their block size on the device."""
    groups = defaultdict(dict)
    for name, case in CHAINS.items():
        groups[program_of(name, case, device).steps[0].block][name] = case
    return groups


def test_there_are_chains_to_serve():
    assert {"active_inference", "transfer_entropy", "linear_algebra"} <= set(CHAINS)
    assert 2 == len(program_of("te", CHAINS["two kernels"], LARGE).steps)


@pytest.mark.parametrize("name", CHAINS)
def test_a_large_device_can_serve_it(name):
    programs = [program_of("empty", None, LARGE), program_of(name, CHAINS[name], LARGE)]
    order = served(programs)
    assert {step.block for step in programs[1].steps} == {order.threads}
    assert order.shared <= LARGE.max_shared_bytes
    assert all(step.entry in order.entry for step in programs[1].steps)


@pytest.mark.parametrize("threads", by_blocks(Device()))
def test_served_outputs_equal_the_reference_twice(threads):
    """The second item begins with the workspace of the first."""
    cases = by_blocks(Device())[threads]
    with Executor(cases, "emulator") as executor:
        assert PERSISTENT == executor.form
        for name, case in cases.items():
            entries = verify_prepared(NumpyBackend(), ServedRunnable(executor, name, case), seeds=(0, 1))
            assert passed(entries), complaint(case, "emulator, served", entries)
