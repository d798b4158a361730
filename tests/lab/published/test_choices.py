"""Published rules of choice, and what they would have cost."""

import pytest
from lab.published.choices import POLICIES, batch_of, window_of

from prism_bench.workflows.tuning.crossover import CrossoverRow, costs

ERRORS = {"fp32": 1e-6, "tf32": 4e-4, "f16": 5e-4, "wmma": 5e-4}


def row(size, fp32, tf32, f16, wmma):
    seconds = {"fp32": fp32, "tf32": tf32, "f16": f16, "wmma": wmma}
    return CrossoverRow({"m": size, "k": size, "n": size}, seconds, 2.0, 1.0, ERRORS)


ROWS = (row(64, 4.0, 5.0, 3.0, 3.5), row(512, 20.0, 12.0, 8.0, 9.0))
LARGE = dict.fromkeys("mkn", 512)


@pytest.mark.parametrize(
    "policy, forms",
    [
        ("volume", ["fp32", "fp32", "f16", "f16", "wmma"]),
        ("smallest dimension", ["fp32", "fp32", "fp32", "wmma", "wmma"]),
        ("low volume", ["fp32", "wmma", "wmma", "wmma", "wmma"]),
        ("benchmark", ["fp32", "fp32", "fp32", "wmma", "wmma"]),
    ],
)
def test_the_published_rules(policy, forms):
    assert forms == [POLICIES[policy](size, size, size) for size in (100, 255, 256, 512, 1024)]


def test_the_rules_contradict_one_another():
    assert 1 < len({rule(256, 256, 256) for rule in POLICIES.values()})


def test_a_rule_s_cost_is_its_time_over_the_quickest_form_s():
    found = next(one for one in costs(ROWS, POLICIES) if one.policy == "low volume")
    assert ("fp32", "wmma") == found.forms
    assert (1.0 * 11.0 / 10.0) ** 0.5 == pytest.approx(found.mean)
    assert (1.1, LARGE) == (pytest.approx(found.worst), found.worst_at)


@pytest.mark.parametrize("pixels, window", [(50_000, 32), (50_001, 16), (200_000, 16), (200_001, 8), (512 * 512, 8)])
def test_the_window_by_pixels(pixels, window):
    assert window == window_of(pixels)


@pytest.mark.parametrize("latency, batch", [(1e-3, 8), (4.9e-3, 8), (5e-3, 32), (9.9e-3, 32), (10e-3, 64), (1.0, 64)])
def test_the_batch_by_latency(latency, batch):
    assert batch == batch_of(latency)
