"""A kernel that a callable does, on a device that is played: what it is offered and may return, what is refused."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from prism_bench.backends.cuda import runnable as called
from prism_bench.backends.cuda.runnable import CudaCalled
from prism_bench.backends.emulator import refusal
from prism_bench.backends.null import NullBackend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable, MeasurementInvalid, SpecError
from prism_bench.io.installation import pip_install
from prism_bench.run.verification import passed, verify, verify_prepared
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import no_launch
from prism_bench.spec.peer import KernelCall
from prism_bench.workflows.tuning.choice import launched
from tests.run.conftest import TOYS

DOUBLE = discover(TOYS).anywhere("double[n=1000]")


def case_of(call):
    return Case(replace(DOUBLE.spec, callable=call, launch=no_launch, entry=""), DOUBLE.workload, "S0")


def prepared(call, case=None):
    runtime = SimpleNamespace(deviceSynchronize=lambda: None)
    cupy = SimpleNamespace(
        empty=np.empty, asarray=np.asarray, float64=np.float64, cuda=SimpleNamespace(runtime=runtime)
    )
    harness = SimpleNamespace(stream=SimpleNamespace(ptr=7), poison=False)
    case = case or case_of(call)
    return CudaCalled(cupy, Device(), harness, case, case.inputs(0))


@pytest.fixture(autouse=True)
def library(monkeypatch):
    """CuPy as installed, and NumPy in its place."""
    monkeypatch.setattr("prism_bench.spec.peer.Library.is_installed", lambda self: True)
    monkeypatch.setattr(called, "library_module", lambda library, harness: np)


def writes(x, y):
    y[...] = 2 * x


def returns(x):
    return 2 * x


@pytest.mark.parametrize("call", [writes, returns, KernelCall(lambda x, y: lambda: writes(x, y), prepares=True)])
def test_outputs_may_be_written_or_returned(call):
    runnable = prepared(call)
    assert passed(verify_prepared(NullBackend(), runnable))


def test_it_is_offered_axes_the_stream_and_one_library():
    seen = {}

    def call(cupy, x, y, n, stream):
        seen.update(n=n, stream=stream, cupy=cupy)
        writes(x, y)

    prepared(call)()
    assert {"n": 1000, "stream": 7, "cupy": np} == seen


def test_several_libraries_are_refused():
    with pytest.raises(SpecError, match="asks for one library, not for torch and cupy"):
        prepared(lambda torch, cupy, x: x)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x[:-1], r"returns 'y' as float32\[999\]; the spec declares float32\[1000\]"),
        (lambda x: x.astype("float64"), r"returns 'y' as float64\[1000\]; the spec declares float32\[1000\]"),
        (lambda x: None, "the callable returns 0 arrays; it neither asks for y nor returns them"),
        (lambda x, y: x, "the callable returns 1 array; it neither asks for no output nor returns them"),
    ],
)
def test_other_results_than_declared_are_refused(call, text):
    runnable = prepared(call)
    runnable()
    with pytest.raises(SpecError, match=text):
        runnable.arrays(["y"])


def test_a_call_that_cannot_be_timed_honestly_is_refused_with_the_reason(monkeypatch):
    def inspect(self, call):
        raise MeasurementInvalid("the call uses another stream")

    monkeypatch.setattr(called.Inspector, "inspect", inspect)
    with pytest.raises(MeasurementInvalid, match="the call uses another stream"):
        prepared(returns).timers()


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("prism_bench.spec.peer.Library.is_installed", lambda self: False)
    with pytest.raises(
        BackendUnavailable, match=re.escape(f"torch is not installed ({pip_install('peers', anywhere=True)})")
    ):
        prepared(lambda torch, x: x)


def test_its_machine_code_is_known_by_its_artifacts(monkeypatch):
    monkeypatch.setattr(called.CallableTimers, "launches", lambda self: 2)
    monkeypatch.setattr(called, "sass_hash", lambda cubin: cubin.decode())
    facts = prepared(KernelCall(returns, artifacts=lambda n: [f"of {n}".encode()])).evidence()
    assert ("callable", 2, "of 1000", "sm_90") == tuple(
        facts[k] for k in ("language", "launches", "sass", "architecture")
    )
    assert "sass" not in prepared(returns).evidence()


def test_other_backends_take_it_as_any_case():
    assert passed(verify(NullBackend(), case_of(returns)))
    assert "a callable launches its work on a device itself" == refusal(case_of(returns))


def test_another_callable_is_another_identity():
    spec = case_of(returns).spec
    assert launched(spec) == launched(replace(spec, callable=KernelCall(returns)))
    assert launched(spec) != launched(replace(spec, callable=writes))
