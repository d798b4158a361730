"""The order is shuffled per process, and repeatable."""

from prism_bench.measure import shuffled

CASES = [f"case {number}" for number in range(20)]


def test_nothing_is_lost_or_doubled_and_the_list_handed_in_stays():
    before = list(CASES)
    assert sorted(CASES) == sorted(shuffled(CASES, seed=0, process=0))
    assert before == CASES


def test_the_same_seed_and_process_give_the_same_order():
    assert shuffled(CASES, 3, 1) == shuffled(CASES, 3, 1)


def test_another_process_or_seed_gives_another_order():
    orders = {tuple(shuffled(CASES, seed, process)) for seed in range(3) for process in range(3)}
    assert 9 == len(orders)


def test_the_order_is_one_for_every_machine_and_python():
    assert list("acbeghdf") == shuffled(list("abcdefgh"), 0, 0)


def test_an_empty_list_stays_empty():
    assert [] == shuffled([], 0, 0)
