"""Input regimes follow from the domain that an argument declares, and reach every way through the code."""

from dataclasses import replace

import numpy as np
import pytest

from prism_bench import (
    Edge,
    In,
    KernelSpec,
    Launch,
    Out,
    Requirement,
    Size,
    Workload,
    constant,
    integers,
    normal,
    uniform,
)  # fmt: skip
from prism_bench.catalogue.edge_inputs import ALONE, REGIMES, regime_edges, suited
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import Fill, as_drawn, interval, nonnegative, positive, real, whole

BY_NAME = {regime.name: regime for regime in REGIMES}
FLOATS = ["zeros", "one nonzero", "all equal", "ties", "tiny", "huge", "subnormal", "wide"]
EDGES = (Workload(n=300),)
NOT_FINITE = ["infinity", "minus infinity", "nan"]


def spec(*arrays, edges=EDGES, **more):
    return KernelSpec(
        entry="f", arguments=(*arrays, Out("y", "n"), Size("n")), launch=lambda n: Launch(-(-n // 256), 256),
        reference=lambda x: x, workloads={"S0": Workload(n=3)}, edges=edges, name="toy", family="toys", **more,
    )  # fmt: skip


def names(domain=None, fill=None, dtype="float32"):
    array = In("x", "n", dtype, fill=fill or normal(), domain=domain)
    return [regime.name for regime in REGIMES if suited(array, regime)]


def values(regime, domain=None, fill=None, dtype="float32", seed=0):
    own = spec(In("x", "n", dtype, fill=fill or normal(), domain=domain))
    edge = next(edge for edge in regime_edges(own) if edge.name == regime)
    return Case(own, edge.workload, "edge", edge=edge).inputs(seed)["x"].on(np)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (real(), [*FLOATS, "mixed signs", *NOT_FINITE]),
        (real().with_finite_numbers(), [*FLOATS, "mixed signs"]),
        (replace(real(), finite=True), [*FLOATS, "mixed signs", "nan"]),
        (nonnegative(), [*FLOATS, "infinity", "nan"]),
        (positive(), [name for name in FLOATS if name not in ("zeros", "one nonzero")]),
        (interval(0, 1), ["zeros", "one nonzero", "all equal", "ties", "bounds"]),
        (interval(0.5, 1), ["all equal", "ties", "bounds"]),
        (whole(0, 7), ["zeros", "one nonzero", "all equal", "ties", "bounds"]),
        (as_drawn(), []),
    ],
)
def test_the_regimes_of_a_domain_are_those_whose_values_it_holds(domain, expected):
    assert sorted(expected) == sorted(names(domain))


def test_the_fills_that_there_are_say_their_domain_and_another_fill_says_none():
    assert names(real()) == names(fill=normal())
    assert names(interval(2, 3)) == names(fill=uniform(2, 3))
    assert names(whole(0, "n")) == names(fill=integers(0, "n"), dtype="int32")
    assert [] == names(fill=Fill(lambda rng, count, axes: np.ones(count), "ones"))
    assert [] == names(fill=constant(3))


def test_an_arguments_own_domain_comes_before_its_fills():
    assert names(real()) == names(real(), fill=uniform(0, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_a_regime_draws_is_what_its_name_says(dtype):
    limits = np.finfo(dtype)
    assert not values("zeros", dtype=dtype).any()
    assert 1 == np.count_nonzero(values("one nonzero", dtype=dtype))
    assert 1 == len(set(values("all equal", dtype=dtype)))
    assert 2 <= len(set(values("ties", dtype=dtype))) <= 3
    subnormal = np.abs(values("subnormal", dtype=dtype))
    assert bool((subnormal < limits.smallest_normal).all())
    assert np.count_nonzero(subnormal) > 200
    tiny, huge = (np.abs(values(name, dtype=dtype).astype("float64")).max() for name in ("tiny", "huge"))
    assert limits.smallest_normal < tiny < 0.1
    assert 100 < huge < limits.max
    assert np.isfinite(values("wide", dtype=dtype)).all()
    mixed = values("mixed signs", dtype=dtype).astype("float64")
    assert 0 == mixed.sum()
    assert mixed.any()


def test_an_infinity_and_a_nan_are_one_value_among_usual_ones():
    assert [1, 0] == [np.isposinf(values("infinity")).sum(), np.isneginf(values("infinity")).sum()]
    assert 1 == np.isneginf(values("minus infinity")).sum()
    assert 1 == np.isnan(values("nan")).sum()
    assert 299 == np.isfinite(values("nan")).sum()


@pytest.mark.parametrize("regime", FLOATS)
def test_no_regime_leaves_the_domain(regime):
    drawn = values(regime, nonnegative(), uniform(0, 1))
    assert bool((drawn >= 0).all())
    drawn = values("bounds", whole(2, "n"), integers(2, "n"), "int32")
    assert {2, 299} == set(drawn)


def test_what_is_huge_or_wide_stays_within_what_the_domain_names():
    assert 2.0**10 == values("huge", real(most=2.0**10)).max() or 2.0**10 == -values("huge", real(most=2.0**10)).min()
    assert np.abs(values("wide", real(most=2.0**10))).max() <= 2.0**10


def test_usual_infinities_stay_what_they_are():
    mask = Fill(
        lambda rng, count, axes: np.where(np.arange(count) % 3, rng.normal(size=count), -np.inf), "mask", real()
    )
    huge = values("huge", fill=mask)
    assert [100, 0] == [np.isneginf(huge).sum(), np.isnan(huge).sum()]
    assert 2.0**40 == np.abs(huge[np.isfinite(huge)]).max()


def test_the_same_seed_draws_the_same_and_another_seed_another():
    for regime in ("one nonzero", "ties", "wide", "nan"):
        assert values(regime).tobytes() == values(regime).tobytes()
        assert values(regime).tobytes() != values(regime, seed=1).tobytes()


def test_every_argument_is_in_the_regime_and_some_regimes_are_each_arguments_alone():
    own = spec(In("x", "n"), In("z", "n", fill=uniform(0, 1)), In("k", "n", "int32", fill=as_fixed()))
    fills = {edge.name: set(edge.fills) for edge in regime_edges(own)}
    assert {"x", "z"} == fills["zeros"]
    assert {"x"} == fills["nan"]
    assert {"x"} == fills["zeros in x"] and {"z"} == fills["zeros in z"]
    assert not [name for name in fills if " in " in name and name.split(" in ")[0] not in ALONE]


def as_fixed():
    return Fill(lambda rng, count, axes: np.arange(count), "in order", as_drawn())


def test_every_way_through_the_code_meets_regimes():
    entries = {n: ("one" if n < 100 else "many") for n in (3, 90, 300, 2000)}
    own = replace(
        spec(In("x", "n"), edges=(*(Workload(n=n) for n in (0, *entries)), Edge("own", Workload(n=7), {}))),
        launch=lambda n: Launch(grid=-(-n // 256), block=256, entry=entries[n] if n else "none"),
    )
    edges = regime_edges(own)
    assert len(edges) == len({(edge.name, edge.workload) for edge in edges})
    assert {2000, 90} == {edge.workload["n"] for edge in edges}, "the largest of each way"
    assert set(names(real())) == {edge.name for edge in edges if edge.workload["n"] == 2000}
    assert all(edge.regime for edge in edges)


def test_edges_that_any_device_runs_have_all_regimes_and_those_of_one_device_some():
    own = replace(
        spec(In("x", "n"), edges=(Workload(n=900), Workload(n=300))),
        launch=lambda n: Launch(grid=1, block=32, entry="special" if n == 900 else "usual"),
        requires=lambda n: Requirement("wgmma", 90) if n == 900 else None,
    )
    edges = regime_edges(own)
    assert set(names(real())) == {edge.name for edge in edges if edge.workload["n"] == 300}
    assert 2 == len([edge for edge in edges if edge.workload["n"] == 900])


def test_a_spec_without_edges_or_domains_has_no_regimes():
    assert [] == regime_edges(spec(In("x", "n"), edges=()))
    assert [] == regime_edges(spec(In("x", "n", fill=constant(1))))
    assert [] == regime_edges(spec(In("x", "n"), edges=(Workload(n=0),)))


def test_a_subnormal_peak_makes_no_infinity_and_no_nan():
    faint = Fill(lambda rng, count, axes: np.r_[np.zeros(count - 1), 5e-324], "faint", real())
    huge = values("huge", fill=faint, dtype="float64")
    assert np.isfinite(huge).all() and 2.0**40 == huge.max()
