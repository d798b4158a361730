"""The roofline of planted ceilings."""

import pytest

from prism_bench.analysis.bounds.bottleneck import (
    ARITHMETIC,
    PRODUCTS,
    attainable,
    intensity,
    least_times,
    peak_of,
    ridge,
    roofs,
    unmeasured_peaks,
)
from prism_bench.catalogue import of_project
from prism_bench.measure.plausibility import Limits
from tests.report.synthetic import case_result

LIMITS = Limits(floors={"cold_time": 4e-6}, ceilings={"bandwidth": 4e12, "fp32": 60e12, "tensor": 700e12})


def test_intensity_needs_both_operations_and_bytes():
    assert intensity(10, 5) == 2
    assert intensity(None, 5) is None and intensity(10, 0) is None


def test_memory_limits_left_of_the_ridge_and_arithmetic_right_of_it():
    assert ridge(4e12, 60e12) == 15
    assert attainable(1, 4e12, 60e12) == 4e12
    assert attainable(100, 4e12, 60e12) == 60e12


def test_least_times_are_work_over_ceiling():
    times = least_times(case_result("k", bytes=4_000_000, flops=60_000_000), LIMITS)
    assert times == pytest.approx({"memory": 1e-6, "compute": 1e-6, "launch": 4e-6})


def test_tensor_work_stands_under_the_tensor_roof():
    assert peak_of(case_result("matmul"), LIMITS) == 60e12
    assert peak_of(case_result("wmma", arithmetic="tensor"), LIMITS) == 700e12
    assert peak_of(case_result("dot", arithmetic="fp64"), LIMITS) is None, "no FP64 ceiling was measured"
    assert set(roofs(LIMITS)) == {"fp32", "tensor"}


def test_products_of_three_parts_stand_under_a_sixth_of_the_roof_of_bfloat16():
    assert peak_of(case_result("matmul", arithmetic="three_bfloat16"), LIMITS) == pytest.approx(700e12 / 6)
    assert peak_of(case_result("matmul", arithmetic="three_tf32"), LIMITS) is None, "no TF32 ceiling was measured"


def test_every_kind_of_arithmetic_in_the_catalogue_has_words():
    kinds = {case.spec.arithmetic for case in of_project(None).cases()}
    assert {"fp32", "tensor", "tf32", "float8", "three_bfloat16"} <= kinds <= {*ARITHMETIC, *PRODUCTS}


def test_records_that_have_one_kind_of_products_keep_the_peaks_of_all():
    known = {"compute_capability": 90, "sm_count": 132, "highest_sm_clock": 1.83e9}
    assert {"TF32 tensor", "FP16 tensor", "FP8 tensor"} == set(unmeasured_peaks(known, Limits(), {"tensor"}))
    assert ["TF32 tensor"] == list(unmeasured_peaks(known, LIMITS, {"tensor", "tf32"}))
