"""Buffers that one case hands to another: shared, put, taken and fetched, on every backend that is here."""

import numpy as np
import pytest

from prism_bench.backends import open_backend
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.spec.case import Case
from prism_bench.spec.workload import Workload
from tests.built_in import CATALOGUE


@pytest.fixture(params=["numpy_reference", "null", "emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def prepared(request):
    """A function that prepares a kernel of n elements."""
    try:
        backend = open_backend(request.param)
    except BackendUnavailable as error:
        pytest.skip(str(error))

    def prepare(kernel, n=6):
        case = Case(CATALOGUE.kernel(kernel), Workload(n=n), "edge")
        return backend.prepare(case, case.inputs())

    return prepare


def fetched(runnable, name="y"):
    out = np.empty(runnable.case.sizes.shape(name), np.float32)
    runnable.fetch(name, out)
    runnable.arrays([name])  # waits
    return out


X = np.array([-2, -1, 0, 1, 2, 3], np.float32)


def test_what_is_put_is_what_the_kernel_reads(prepared):
    relu = prepared("relu")
    relu.put("x", X)
    relu()
    assert [0, 0, 0, 1, 2, 3] == fetched(relu).tolist()


def test_a_shared_buffer_is_read_as_it_is_then(prepared):
    first, second = prepared("relu"), prepared("axpby")
    second.share("a", first, "y")
    second.share("b", first, "y")
    for sign in (1, -1):
        first.put("x", sign * X)
        first()
        second()
        relu = np.maximum(sign * X, 0)
        assert np.allclose(0.75 * relu, fetched(second, "out"))


def test_a_shared_input_is_the_others_input(prepared):
    first, second = prepared("relu"), prepared("relu")
    second.share("x", first, "x")
    first.put("x", X)
    second()
    assert np.maximum(X, 0).tolist() == fetched(second).tolist()
    assert X.tolist() == fetched(second, "x").tolist()


def test_what_is_taken_is_a_copy(prepared):
    first, second = prepared("relu"), prepared("relu")
    first.put("x", X)
    first()
    second.take("x", first, "y")
    first.put("x", -X)
    first()
    second()
    assert np.maximum(X, 0).tolist() == fetched(second).tolist()


def test_outputs_with_new_memory_are_written_again(prepared):
    relu = prepared("relu")
    relu.put("x", X)
    relu()
    relu.renew(["y"])
    relu()
    assert np.maximum(X, 0).tolist() == fetched(relu).tolist()


def test_other_types_and_sizes_are_refused(prepared):
    with pytest.raises(SpecError, match="x holds 6 float32; 'y' of relu.n=7. holds 7 float32"):
        prepared("relu").share("x", prepared("relu", n=7), "y")
    with pytest.raises(SpecError, match="holds 6 float32; 'y' of fp32_to_fp16.n=6. holds 6 float16"):
        prepared("relu").share("x", prepared("fp32_to_fp16"), "y")
