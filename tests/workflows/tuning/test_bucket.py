"""Size classes as documented, and how far two workloads are apart."""

from math import inf

import pytest

from prism_bench.workflows.tuning.choice import bucket, bucket_of, distance


@pytest.mark.parametrize(
    "size, expected",
    [(50, 0), (150, 100), (999, 900), (1000, 1000), (2500, 2000), (25_000, 20_000), (100_000, 100_000),
     (1_234_567, 1_200_000)],
)  # fmt: skip
def test_the_documents_classes(size, expected):
    assert expected == bucket(size)


def test_each_axis_has_its_own_class_and_small_ones_stand_for_themselves():
    workload = {"rows": 2500, "taps": 9, "alpha": 0.5, "form": "wide", "flag": True}
    assert {"rows": 2000, "taps": 9, "alpha": 0.5, "form": "wide", "flag": True} == bucket_of(workload)


@pytest.mark.parametrize(
    "one, other, expected",
    [
        ({"n": 100}, {"n": 100}, 0.0),
        ({"n": 100, "m": 8}, {"n": 400, "m": 4}, 2.0),
        ({"n": 100}, {"m": 100}, inf),
        ({"n": 0}, {"n": 100}, inf),
        ({"n": 100, "form": "a"}, {"n": 100, "form": "b"}, inf),
        ({}, {}, 0.0),
    ],
)
def test_a_distance_is_the_doublings_of_the_worst_axis(one, other, expected):
    assert expected == distance(one, other)
