"""The headline: ratios by class of peer and by label, never one mean over all of them."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_bench.analysis import peers
from prism_bench.analysis.peers import BEST, headline_rows
from prism_bench.record.measurement import Measurement
from tests.report.synthetic import case_result, record_of

LIBRARY = {"library": "cupy", "form": "library", "kind": "library kernel"}
COMPILED = {"library": "torch", "form": "compiled", "kind": "compiled"}
EAGER = {"library": "torch", "form": "eager", "kind": "eager chain"}


def raced(kernel, label="S1", own=1e-3, facts=(), **times):
    """A case with peers: `times` are seconds by peer, one number for each process where it is a tuple."""
    measured = [processes("kernel", own), *(processes(f"peer:{name}", value) for name, value in times.items())]
    return case_result(kernel, label, measurements=tuple(measured), peers=dict(facts))


def processes(subject, seconds, metric="cold_time"):
    values = seconds if isinstance(seconds, tuple) else (seconds,) * 3
    return Measurement(metric, subject, tuple((value,) * 3 for value in values))


def row(rows, kind, *labels):
    """The one row of this class and these labels."""
    (found,) = [one for one in rows if one["peers"] == kind and one["labels"] == list(labels)]
    return found


def test_each_class_has_its_own_mean_and_no_row_has_one_over_all():
    facts = {"cupy": LIBRARY, "torch": EAGER, "torch_compiled": COMPILED}
    cases = [
        raced("a", facts=facts, cupy=0.5e-3, torch=4e-3, torch_compiled=1e-3),
        raced("b", "S2", facts=facts, cupy=2e-3, torch=9e-3),
        raced("c", "S0", facts=facts, cupy=3e-3),
    ]
    rows = headline_rows(cases)
    means = {kind: row(rows, kind, "S1", "S2")["mean"] for kind in ("library kernel", "compiled", "eager chain")}
    assert means == pytest.approx({"library kernel": 1, "compiled": 1, "eager chain": 6})
    assert {one["mean"] for one in rows if one["peers"] == BEST} == {None}
    best = row(rows, BEST, "S1", "S2")
    assert (best["cases"], best["below"], best["worst"]["peer"]) == (2, 1, "cupy")
    assert (best["worst"]["case"], best["worst"]["ratio"]) == ("a[n=100]", pytest.approx(0.5))


def test_s0_is_apart_and_each_label_has_rows():
    rows = headline_rows([raced("a", label, torch_compiled=2e-3) for label in ("S0", "S1", "S2")])
    assert [row["labels"] for row in rows] == [
        labels for labels in (["S1", "S2"], ["S1"], ["S2"], ["S0"]) for _ in ("compiled", BEST)
    ]
    assert [row["cases"] for row in rows if row["peers"] == BEST] == [2, 1, 1, 1]


def test_only_a_compiled_peer_of_an_old_record_has_a_class():
    rows = headline_rows([raced("a", torch=2e-3, torch_compiled=1.5e-3, cupy=3e-3)])
    assert row(rows, "compiled", "S1")["mean"] == pytest.approx(1.5)
    unknown = row(rows, "not recorded", "S1")
    assert (unknown["mean"], unknown["cases"], unknown["worst"]["peer"]) == (None, 1, "torch")


def test_a_class_that_a_newer_version_names_is_not_recorded_here():
    facts = {"torch": {**EAGER, "kind": "quantum"}, "torch_compiled": {"kind": ["x"]}}
    rows = headline_rows([raced("a", facts=facts, torch=2e-3, torch_compiled=1e-3)])
    assert {one["peers"] for one in rows} == {"not recorded", "compiled", BEST}


def test_the_fastest_process_of_an_unstable_peer_counts():
    (found, *_) = headline_rows([raced("a", facts={"torch_compiled": COMPILED}, torch_compiled=(0.5e-3, 4e-3, 5e-3))])
    assert found["worst"]["ratio"] == pytest.approx(0.5)
    assert found["worst"]["unstable"] == "unstable: 500 us to 5.00 ms"
    (stable, *_) = headline_rows([raced("a", torch_compiled=(1.00e-3, 1.02e-3, 1.04e-3))])
    assert (stable["worst"]["ratio"], stable["worst"]["unstable"]) == (pytest.approx(1.02), None)


@pytest.mark.parametrize(("apart", "unstable"), [(1.0499, False), (1.0501, True)])
def test_five_per_cent_make_a_peer_unstable(apart, unstable):
    (found,) = peers.peers(raced("a", torch=(1e-3, 1e-3 * apart)))
    assert found.unstable is unstable


def test_a_poor_peer_counts_only_where_no_better_one_has_a_time():
    poor = {**EAGER, "poor": "cdist with p=inf"}
    both = raced("a", facts={"torch": poor, "cupy": LIBRARY}, torch=90e-3, cupy=2e-3)
    assert {one["peers"] for one in headline_rows([both])} == {"library kernel", BEST}
    alone = headline_rows([raced("a", facts={"torch": poor}, torch=90e-3)])
    large = row(alone, "eager chain", "S1")["large"]
    assert [one["poor"] for one in large] == ["cdist with p=inf"]
    assert row(alone, BEST, "S1")["large"] == large


def test_a_poor_peer_that_is_faster_than_every_other_is_not_left_out():
    facts = {"torch": {**EAGER, "poor": "said so"}, "cupy": LIBRARY}
    rows = headline_rows([raced("a", facts=facts, torch=0.5e-3, cupy=2e-3)])
    assert row(rows, BEST, "S1")["below"] == 1


def test_large_ratios_are_listed_by_name_and_counted():
    facts = {"torch": EAGER}
    cases = [raced("far", facts=facts, torch=90e-3), raced("near", facts=facts, torch=20e-3), raced("b", torch=30e-3)]
    eager = row(headline_rows(cases), "eager chain", "S1")
    assert [(one["implementation"], one["peer"]) for one in eager["large"]] == [("far", "torch")]
    assert eager["mean"] == pytest.approx(math.sqrt(90 * 20))


def test_nothing_is_made_up():
    empty = Measurement("cold_time", "peer:torch", (), reason="torch is not installed")
    wrong = Measurement("cold_time", "peer:torch", ((1e-3,),), valid=False, reason="wrong")
    cases = [
        case_result("a", "S1", times={"cold_time": 1e-3}), raced("copy", torch=1e-3), case_result("b", "S1"),
        case_result("c", "S1", measurements=(processes("kernel", 1e-3), empty)),
        case_result("d", "S1", measurements=(processes("kernel", 1e-3), wrong)),
        case_result("e", "S1", measurements=(processes("peer:torch", 1e-3),)), raced("f", "edge", torch=1e-3),
    ]  # fmt: skip
    cases[1] = replace(cases[1], ceiling="bandwidth")
    assert headline_rows(cases) == headline_rows(record_of().cases) == []


def test_a_form_of_before_is_in_no_mean_and_no_count():
    facts = {"torch": EAGER}
    cases = [raced("slow", facts=facts, torch=0.1e-3), raced("quick", facts=facts, torch=4e-3)]
    assert (2, 1) == tuple(row(headline_rows(cases), BEST, "S1")[name] for name in ("cases", "below"))
    cases[0] = replace(cases[0], before="slow:full")
    eager = row(headline_rows(cases), "eager chain", "S1")
    assert (1, 0, pytest.approx(4)) == (eager["cases"], eager["below"], eager["mean"])
    assert "quick" == eager["worst"]["implementation"]
    assert [] == headline_rows(cases[:1])


@given(st.lists(st.tuples(st.sampled_from(["S1", "S2"]), st.floats(1e-7, 1e3)), min_size=1, max_size=9), st.randoms())
def test_a_mean_lies_between_its_ratios_whatever_the_order_of_the_cases(planted, rng):
    cases = [raced(f"k{n}", label, 1e-3, {"torch": EAGER}, torch=time) for n, (label, time) in enumerate(planted)]
    found = row(headline_rows(cases), "eager chain", "S1", "S2")
    ratios = sorted(time / 1e-3 for _, time in planted)
    rounding = 1e-12
    assert ratios[0] * (1 - rounding) <= found["mean"] <= ratios[-1] * (1 + rounding)
    rng.shuffle(cases)
    again = row(headline_rows(cases), "eager chain", "S1", "S2")
    assert [again[name] for name in ("cases", "mean", "below")] == [found[name] for name in ("cases", "mean", "below")]
    assert again["worst"]["ratio"] == found["worst"]["ratio"]
