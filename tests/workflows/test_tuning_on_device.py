"""Configurations, self-tuning launches and products by form on a device: right in every one, and timed."""

import numpy as np
import pytest

from prism_bench.api.kernels import Matmul, OnlineRunnable
from prism_bench.run.precompile import compile_ahead
from prism_bench.run.verification import complaint, passed, verify
from prism_bench.workflows.tuning.search import OnlineTuner
from prism_bench.workflows.tuning_session import Bench, Trials
from tests.built_in import CATALOGUE

pytestmark = pytest.mark.gpu
TUNABLE = [spec.name for spec in CATALOGUE.kernels.values() if spec.tune]


@pytest.fixture(scope="module")
def backend():
    """The device, with the code of every configuration compiled by all cores."""
    from prism_bench.backends import open_backend

    opened = open_backend("cuda")
    compile_ahead([case for kernel in TUNABLE for case in configured_edges(kernel, opened.device)], opened.device)
    return opened


def configured_edges(kernel, device):
    """The kernel's edges in every configuration but the default, which other tests look at."""
    edges = [edge for edge in CATALOGUE.edges_of(kernel) if not edge.is_regime]
    return [case for edge in edges for case in edge.configurations(device)[1:]]


@pytest.mark.parametrize("kernel", TUNABLE)
def test_every_configuration_is_right_at_the_edges(backend, kernel):
    cases = [case for case in configured_edges(kernel, backend.device) if not case.plan.refusal(backend.device)]
    found = [(case, verify(backend, case, seeds=(0,))) for case in cases]
    assert [] == [complaint(case, "cuda", entries) for case, entries in found if not passed(entries)]


def test_a_trial_is_right_and_has_a_cold_time(backend):
    case = CATALOGUE.case("vector_add[n=100000]")
    with Trials(Bench("cuda", CATALOGUE), [one.task for one in case.configurations(backend.device)]) as trials:
        found = [trials(one) for one in (case, case.configured({"block": 128}))]
    assert [None, None] == [trial.reason for trial in found]
    assert ["cold_time"] * 2 == [trial.measured.metric for trial in found]


def test_a_kernel_tunes_itself(backend):
    tuner, case = OnlineTuner(), CATALOGUE.case("vector_add[n=100000]")
    with OnlineRunnable(backend, case, tuner) as runnable:
        for _ in range(20):
            runnable()
        added = runnable.arrays(["c"])["c"].get()
    inputs = {name: array.on(np) for name, array in case.inputs().items()}
    assert np.array_equal(inputs["a"] + inputs["b"], added)
    assert 20 == tuner.statistics()["executions"]


@pytest.mark.parametrize("dtype, within", [("float32", 1e-4), ("float16", 1e-1)])
def test_a_product_is_right_in_the_form_that_is_picked(backend, dtype, within, tmp_path):
    rng = np.random.default_rng(0)
    a, b = (backend.xp.asarray(rng.standard_normal((96, 96)).astype(dtype)) for _ in range(2))
    with Matmul(backend, folder=tmp_path) as matmul:
        assert "fp32" == matmul.picked(a, b).form
        found = matmul(a, b).get()
    assert np.abs(found - a.get().astype(float) @ b.get().astype(float)).max() < within
