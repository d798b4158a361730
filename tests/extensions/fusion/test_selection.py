"""A precision is chosen by the error measured on sample data, and by cost among those that are good enough."""

from types import MappingProxyType

import numpy as np
import pytest

from prism_bench.backends.numpy_reference import NumpyBackend
from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.extensions.fusion.keeping import declarations
from prism_bench.extensions.fusion.selection import PrecisionChoice, Question, Tried, read_sample, select
from prism_bench.io.files import default_folder
from prism_bench.record.measurement import Sample
from tests.built_in import CATALOGUE

PROGRAMS = {one.name: one.program for one in declarations(default_folder())}
PRODUCT = "fused_matmul_bias_activation"


def chosen(name, within=None, data=None, backend=None, label="S0"):
    question = Question(label, within, data)
    return select(PROGRAMS[name], CATALOGUE.kernels[name], backend or NumpyBackend(), question)


def operands(scale=1.0, batch=32, inputs=64, outputs=128):
    rng = np.random.default_rng(3)
    shapes = {"x": (batch, inputs), "w": (inputs, outputs), "bias": (outputs,)}
    return {name: scale * rng.normal(size=shape) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("within", "precision"), [(1e-1, "float8"), (1e-2, "float16"), (1e-3, "float16"), (1e-5, "float32"), (1e-12, None)]
)
def test_the_cheapest_within_the_tolerance(within, precision):
    found = chosen(PRODUCT, within).chosen
    assert precision == (found and found.precision)


def test_errors_are_those_of_the_rounding():
    """Normwise, two operands of independent errors: about sqrt(2/3) of half the last place, on average."""
    errors = {one.precision: one.error for one in chosen(PRODUCT).tried}
    assert ["float32", "three_bfloat16", "float16", "tf32", "bfloat16", "float8"] == list(errors)
    assert errors["three_bfloat16"] < 1e-6
    for precision, fraction in (("float16", 10), ("tf32", 10), ("bfloat16", 7), ("float8", 3)):
        assert 0.2 < errors[precision] * 2 ** (fraction + 1) < 0.9


def test_the_program_declares_the_tolerance():
    assert PROGRAMS[PRODUCT].within == chosen(PRODUCT).within
    with pytest.raises(UsageError, match="fused_gemv_operations: its program declares no 'within'; give the"):
        chosen("fused_gemv_operations")


def test_numbers_of_all_stages_are_chosen_alike():
    assert "float32" == chosen("fused_kl_complexity").chosen.precision
    assert "fused_kl_complexity:f64" == chosen("fused_kl_complexity", 1e-12).chosen.kernel


def test_data_decide_not_architectures():
    """What overflows half does not overflow bfloat16."""
    found = chosen(PRODUCT, 1e-2, operands(scale=1e5))
    errors = {one.precision: one.error for one in found.tried}
    assert not errors["float16"] < 1
    assert "bfloat16" == found.chosen.precision
    assert "data of the user" == found.sample


def test_what_a_sample_must_hold(tmp_path):
    with pytest.raises(UsageError, match="the sample gives no 'bias'; fused_matmul_bias_activation reads x, w, bias"):
        chosen(PRODUCT, data={"x": np.zeros((32, 64)), "w": np.zeros((64, 128))})
    with pytest.raises(UsageError, match=r"the sample's 'x' has shape \(1, 64\); .* reads \(32, 64\)"):
        chosen(PRODUCT, data=operands(batch=1))
    np.savez(tmp_path / "data.npz", **operands())
    assert {"x", "w", "bias"} == set(read_sample(tmp_path / "data.npz"))
    (tmp_path / "data.txt").write_text("x")
    with pytest.raises(UsageError, match="no arrays can be read"):
        read_sample(tmp_path / "data.txt")
    with pytest.raises(UsageError, match="unknown label 'S7'"):
        chosen(PRODUCT, label="S7")


class TimedBackend(NumpyBackend):
    """NumPy with a device's clock: what runs how long, by variant; half cannot be had."""

    seconds = MappingProxyType({None: 4.0, "tf32": 1.0, "bfloat16": 0.5, "float8": 2.0})

    def prepare(self, case, inputs):
        if case.variant not in self.seconds:
            raise BackendUnavailable("no such instructions\nhere")
        made = super().prepare(case, inputs)
        made.timers = lambda: {"cold_time": lambda: lambda: Sample(self.seconds[case.variant])}
        return made


def test_times_decide_where_there_are_some():
    found = chosen(PRODUCT, backend=TimedBackend())
    assert "tf32" == found.chosen.precision
    assert found.basis.startswith("cold time on ")
    half = next(one for one in found.tried if one.precision == "float16")
    assert (None, None, "no such instructions") == (half.error, half.seconds, half.reason)


def test_of_equal_cost_the_most_exact():
    tried = tuple(Tried(name, "p", name, 8, error) for name, error in (("a", 0.2), ("b", 0.1), ("c", 0.4)))
    assert "b" == PrecisionChoice("p", "n=1", 0.3, "", "", tried).chosen.precision
