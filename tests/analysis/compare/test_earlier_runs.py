"""What earlier runs of a case show: the spread of its processes and of its runs, and which runs count as alike."""

from dataclasses import replace

import numpy as np
import pytest

from prism_bench.analysis.compare.earlier_runs import earlier_runs, spreads, usual
from prism_bench.analysis.compare.estimate import Medians, Spread, estimate, larger, smallest_change
from tests.analysis.measured_pairs import case
from tests.report.synthetic import record_of


def runs_of(count, processes=3, *, between=0.0, within=0.01, runs=5, seed=0):
    """So many cases in runs that differ by `between`, of processes that differ by `within`."""
    rng = np.random.default_rng(seed)
    logs = between * rng.standard_normal((count, runs, 1)) + within * rng.standard_normal((count, runs, processes))
    return [[[Medians(tuple(run), (0.0,) * processes) for run in own]] for own in logs.tolist()]


def known(cases):
    return [spread for spread in spreads(cases) if spread]


def records(*ratios, sass="aa", processes=3, cases=4, spread=0.004, **facts):
    """Records of the same cases, the newest first, whose times are these ratios."""
    return [
        record_of(*(case(f"k{number}", ratio, sass, seed=100 * place + number, processes=processes, spread=spread)
                    for number in range(cases)), **facts)
        for place, ratio in enumerate(ratios)
    ]  # fmt: skip


def test_a_suite_knows_what_its_processes_differ_by():
    found = known(runs_of(200))
    assert 200 == len(found)
    assert 0.01 == pytest.approx(np.mean([one.variance for one in found]) ** 0.5, rel=0.05)
    assert max(one.runs for one in found) < 0.006**2 and min(one.freedom for one in found) >= 10
    # Variances of ten degrees of freedom scatter by 0.45 of the truth.
    assert np.std([one.variance for one in found]) < 0.35 * 0.01**2


def test_what_runs_differ_by_stays_however_many_processes_there_are():
    found = known(runs_of(200, between=0.01, within=0.003))
    assert 0.008 < np.mean([one.runs for one in found]) ** 0.5 < 0.016
    assert all(smallest_change(one, 15, 300) > 0.02 for one in found)


def test_a_case_whose_runs_differ_is_not_hidden_by_a_quiet_suite():
    *_, odd = spreads(runs_of(100, within=0.003) + runs_of(1, between=0.03, within=0.003, seed=3))
    assert odd and odd.runs > 0.01**2 and odd.freedom < 10


def test_a_noisy_case_keeps_its_own_spread():
    *_, noisy = spreads(runs_of(100, within=0.002) + runs_of(1, within=0.05, seed=4))
    assert noisy and noisy.variance > 0.02**2 and 10 == noisy.freedom


@pytest.mark.parametrize("runs", [1, 4])
def test_too_few_runs_show_nothing(runs):
    assert [None] * 30 == spreads(runs_of(30, runs=runs))


def test_runs_of_one_process_show_both_together():
    (found,) = spreads(runs_of(1, processes=1, between=0.02, within=0.0, runs=8))
    assert found and 7 == found.freedom and 0.008 < found.variance**0.5 < 0.04


def test_variances_that_differ_say_little_about_a_case():
    alike = [(1e-4 * value, 10) for value in np.random.default_rng(0).chisquare(10, 300) / 10]
    apart = [(variance * 50 ** (place % 2), freedom) for place, (variance, freedom) in enumerate(alike)]
    assert usual(alike).freedom > 15 > 3 > usual(apart).freedom
    assert 1e-4 == pytest.approx(usual(alike).variance, rel=0.1)


def test_processes_that_taught_the_spread_count_once():
    a, b = (Medians(logs, (0.0,) * len(logs)) for logs in ((0.0, 0.01, 0.02) * 5, (0.1, 0.1, 0.11)))
    spread = Spread(1e-4, 10, runs=4e-6, earlier=5)
    found = estimate(a, b, spread)
    assert 12 == found.freedom
    assert found.error**2 == pytest.approx(1e-4 * (1 / 15 + 1 / 3) + 4e-6 * (1 + 1 / 5))


def test_the_larger_of_a_noise_floor_and_the_history_counts():
    stored, learned = Spread(4e-4, 8), Spread(1e-4, 20, runs=1e-6, earlier=5)
    assert replace(learned, variance=4e-4, freedom=8) == larger(stored, learned)
    assert learned is larger(replace(stored, variance=1e-5), learned)
    assert (stored, learned, None) == (larger(stored, None), larger(None, learned), larger(None, None))


def test_runs_of_the_same_code_are_put_together():
    found = earlier_runs(records(*[1.0] * 6))
    assert {(f"k{number}[n=100]", "cold_time") for number in range(4)} == set(found.known)
    assert {18} == {len(one.measurement("cold_time").processes) for one in found.newest.cases}
    time, in_cycles = found.known["k0[n=100]", "cold_time"]
    assert 6 == time.earlier == in_cycles.earlier
    assert 0 == found.known_apart["k0[n=100]", "cold_time"][0].earlier


def test_a_control_has_the_processes_of_the_runs_of_its_code_however_few_they_are():
    newest, older = records(1.0, 1.0)
    single = [
        replace(one, control="R", measurements=tuple(map(first_process, one.measurements))) for one in newest.cases
    ]
    found = earlier_runs([replace(newest, cases=tuple(single)), older])
    assert {} == found.known
    assert {4} == {len(one.measurement("cold_time").processes) for one in found.newest.cases}
    assert {3} == {len(one.measurement("cold_time").processes) for one in earlier_runs([newest, older]).newest.cases}


def first_process(measurement):
    return replace(measurement, processes=measurement.processes[:1], clocks=measurement.clocks[:1])


def test_a_change_of_the_code_widens_nothing():
    before = records(*[1.0] * 5)
    found = earlier_runs([*records(1.3, sass="bb"), *before])
    time, _ = found.known["k0[n=100]", "cold_time"]
    assert time.variance < 0.012**2 and time.runs < 0.012**2
    assert 1 == time.earlier and {3} == {len(one.measurement("cold_time").processes) for one in found.newest.cases}


def test_a_step_of_the_same_code_widens_nothing_and_is_not_put_together():
    found = earlier_runs(records(1.2, 1.2, 1.2, 1.0, 1.0, 1.0))
    time, _ = found.known["k0[n=100]", "cold_time"]
    assert time.variance < 0.012**2 and time.runs < 0.012**2
    assert 3 == time.earlier


OTHERS = {
    "another board": {"machine": {"id": "h200", "device": "NVIDIA H200", "uuid": "GPU-2"}},
    "another driver": {"software": {"driver": "999.1"}},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_runs_elsewhere_are_not_put_together(changes):
    found = earlier_runs([*records(1.0), *records(*[1.05] * 4, **changes)])
    assert {1} == {spread.earlier for spread, _ in found.known.values()}


def test_runs_of_unknown_code_at_uncommitted_sources_teach_nothing():
    assert {} == earlier_runs(records(*[1.0] * 6, sass=None, dirty=True)).known
    assert earlier_runs(records(*[1.0] * 6, sass=None, dirty=False)).known


def test_four_runs_know_nothing():
    old = records(*[1.0] * 4)
    found = earlier_runs(old)
    assert {} == found.known and old[0] == found.newest
