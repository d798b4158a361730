"""Callables of true libraries on a GPU: verified and timed, their machine code known; dishonest ones refused."""

from pathlib import Path

import pytest

from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import MeasurementInvalid, SpecError
from prism_bench.run.verification import passed, verify

CALLED, REFUSED = (Path(__file__).parent / name for name in ("called", "refused"))
NAMES = ("twice:triton", "by_cupy", "by_operator", "by_jax", "by_tvm_ffi", "by_flash_attn")
WITH_CODE = "twice:triton"  # the others offer no cubins


def _case(folder, name):
    (case,) = discover(folder).cases([name], ("S0",))
    return case


def _library(name):
    known = {"twice:triton": "triton", "by_jax": "jax", "by_tvm_ffi": "quack", "by_flash_attn": "flash_attn"}
    return known.get(name, "torch" if name == "by_operator" else "cupy")


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")  # of libraries as they are imported
@pytest.mark.parametrize("name", NAMES)
def test_a_callable_is_verified_and_timed(name):
    pytest.importorskip(_library(name))
    backend, case = open_backend("cuda"), _case(CALLED, name)
    assert passed(verify(backend, case))
    with backend.prepare(case, case.inputs(0)) as runnable:
        runnable()
        timers = runnable.timers()
        assert 0 < timers["cold_time"]()().seconds < 0.1
        evidence = runnable.evidence()
    assert ("sass" in evidence) == (name == WITH_CODE)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "words"),
    [("other_stream", "stream"), ("waits", "wait|synchron"), ("other_shape", "returns 'y'"), ("other_type", "float64")],
)
def test_a_callable_that_is_dishonest_or_breaks_its_declaration_is_refused(name, words):
    backend, case = open_backend("cuda"), _case(REFUSED, name)
    with pytest.raises((MeasurementInvalid, SpecError), match=words):
        verify(backend, case)
        with backend.prepare(case, case.inputs(0)) as runnable:
            runnable()
            timers = runnable.timers()
            for _ in range(3):
                timers["cold_time"]()()


@pytest.mark.parametrize("folder", [CALLED, REFUSED])
def test_they_are_read_without_their_libraries(folder):
    found = discover(folder)
    assert not found.problems
    assert all(case.spec.callable for case in found.cases((), ("S0",)) if case.name != "twice[n=65536]")
