"""The ring of the last 10,000 executions, what it adds up to, and the journal that other processes read."""

import json
from itertools import count

import pytest

from prism_bench.monitor.executions import RING, Execution, ExecutionJournal, Executions, _parsed


@pytest.fixture
def ring():
    """Executions whose clock ticks once a look."""
    ticks = count(100.0)
    return Executions(clock=lambda: next(ticks))


def test_the_oldest_make_room():
    ring = Executions()
    for number in range(RING + 5):
        ring.record("relu", float(number))
    assert (RING, 5.0) == (len(ring), next(iter(ring)).seconds)


def test_statistics_by_kernel_the_last_first(ring):
    for kernel, seconds in (("relu", 2e-6), ("softmax", 9e-6), ("relu", 4e-6), ("relu", None)):
        ring.record(kernel, seconds, memory=10)
    relu, softmax = ring.statistics()
    assert ("relu", 4 - 1, 2, 6e-6, 3e-6, 2e-6, 4e-6) == (
        relu.kernel, relu.calls, relu.succeeded, pytest.approx(relu.total), relu.mean, relu.least, relu.most,
    )  # fmt: skip
    assert pytest.approx(2 / 3) == relu.success_rate
    assert ("softmax", 10.0, 102.0) == (softmax.kernel, softmax.memory, softmax.last)


def test_a_kernel_that_only_failed_has_no_times(ring):
    ring.record("relu", None)
    (relu,) = ring.statistics()
    assert (None, None, None, 0.0) == (relu.mean, relu.least, relu.most, relu.success_rate)


def test_failures_are_counted_among_the_last_hundred(ring):
    for number in range(150):
        ring.record("relu", None if number < 60 else 1e-6)
    assert 10 == ring.failures_of_last()


def test_reset_forgets(ring):
    ring.record("relu", 1e-6)
    ring.reset()
    assert (0, 1.0) == (len(ring), ring.uptime())


@pytest.fixture
def journal(tmp_path):
    return ExecutionJournal(tmp_path / "monitor" / "executions.jsonl", largest=400)


ONE, TWO = Execution("relu", 10.0, 1e-6, 8), Execution("softmax", 20.0, None)


def test_a_journal_is_followed(journal):
    followed = journal.follow(0.0)
    assert [] == next(followed)
    journal.append([ONE])
    assert [ONE] == next(followed)
    journal.append([TWO])
    assert [TWO] == next(followed)
    assert [] == next(followed)


def test_what_is_too_old_is_left_out(journal):
    journal.append([ONE, TWO])
    assert [TWO] == next(journal.follow(15.0))


def test_a_journal_is_bounded_and_followed_across_its_turn(journal):
    followed = journal.follow(0.0)
    for number in range(100):
        journal.append([Execution("relu", float(number), 1e-6)])
        assert [float(number)] == [one.at for one in next(followed)]
    kept = [path.stat().st_size for path in journal.path.parent.iterdir()]
    assert 2 == len(kept)
    assert max(kept) < 500


def test_who_looks_rarely_misses_nothing_of_the_last_two_parts(journal):
    followed = journal.follow(0.0)
    journal.append([Execution("relu", 0.0, 1e-6)])
    assert [0.0] == [one.at for one in next(followed)]
    for number in range(1, 12):
        journal.append([Execution("relu", float(number), 1e-6)])
    assert 2 == len(list(journal.path.parent.iterdir()))
    assert [float(number) for number in range(1, 12)] == [one.at for one in next(followed)]
    assert list(range(12)) == [one.at for one in next(journal.follow(0.0))]


def test_half_a_line_is_waited_for_and_a_damaged_one_passed_over(journal):
    journal.append([ONE])
    followed = journal.follow(0.0)
    assert [ONE] == next(followed)
    line = json.dumps({"kernel": "late", "at": 30.0})
    with journal.path.open("a") as file:
        file.write('nonsense\n{"at": 1}\n' + line[:9])
    assert [] == next(followed)
    with journal.path.open("a") as file:
        file.write(line[9:] + "\n")
    assert [Execution("late", 30.0)] == next(followed)


def test_a_journal_that_cannot_be_written_is_nobodys_loss(tmp_path):
    (tmp_path / "file").write_text("")
    journal = ExecutionJournal(tmp_path / "file" / "executions.jsonl")
    journal.append([ONE])
    assert [] == next(journal.follow(0.0))


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "line",
    ['{"kernel": "k", "at": "now"}', '{"kernel": "k", "at": NaN}', '{"kernel": "k", "at": 1, "seconds": -1}', DEEP, "7",
     '{"kernel": "k", "at": 1, "memory": Infinity}', '{"kernel": 5, "at": 1}', '{"kernel": "k", "at": true}', "{}"],
)  # fmt: skip
def test_a_line_of_the_journal_that_is_no_execution_is_passed_over(line):
    good = '{"kernel": "k", "at": 1.0, "seconds": 0.5, "memory": 7}'
    assert [0.5] == [one.seconds for one in _parsed([line, good])]
