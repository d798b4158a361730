"""Operations of a call: which of them the timed stream holds, orders, or knows nothing of."""

import pytest

from prism_bench.backends.cuda.inspection import Observed, Operation, complaint, strays

MAIN, SIDE, THIRD = 11, 22, 33


def work(stream=MAIN, name="cuLaunchKernel"):
    return Operation("work", name, stream)


def record(event, stream):
    return Operation("record", "cuEventRecord", stream, event)


def wait(stream, event):
    return Operation("wait", "cuStreamWaitEvent", stream, event)


@pytest.mark.parametrize(
    "operations",
    [
        [work()] * 3,
        [record(1, MAIN), wait(SIDE, 1), work(SIDE), work(), record(2, SIDE), wait(MAIN, 2)],
        [record(1, MAIN), wait(SIDE, 1), work(SIDE), record(2, SIDE), wait(THIRD, 2), work(THIRD), record(3, THIRD),
         wait(MAIN, 3)],
        [record(1, SIDE), wait(MAIN, 1), work()],
    ],
)  # fmt: skip
def test_work_that_begins_and_ends_on_the_timed_stream_is_its_own(operations):
    assert [] == strays(MAIN, operations)


@pytest.mark.parametrize(
    "operations",
    [
        [work(), work(SIDE)],
        [work(SIDE), record(2, SIDE), wait(MAIN, 2)],  # it began before the clock did
        [record(1, MAIN), wait(SIDE, 1), work(SIDE)],  # and nobody waits
        [record(1, MAIN), wait(SIDE, 1), record(2, SIDE), work(SIDE), wait(MAIN, 2)],  # not for this
        [record(1, MAIN), wait(SIDE, 1), work(SIDE), record(2, SIDE), wait(THIRD, 2)],  # but only a third stream
    ],
)
def test_other_work_is_found(operations):
    assert [SIDE] == [one.stream for one in strays(MAIN, operations)]


def test_streams_that_are_ordered_anyway_are_the_timed_one():
    assert [] == strays(MAIN, [work(0), work(), work(1)], same=(0, 1))
    assert 2 == len(strays(MAIN, [work(0), work(), work(1)]))


def calls(*inside):
    return [Observed(tuple(operations)) for operations in inside]


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        (calls([work(), work(SIDE)]), "uses another stream: 1 of its 2 operations (cuLaunchKernel)"),
        (calls(*[[]] * 9, [work()]), "enqueues nothing in 9 of 10 calls"),
        ([Observed((work(),), (work(SIDE),))], "enqueues work after it has returned (cuLaunchKernel)"),
        (calls([Operation("pin", "cuCtxSetLimit"), work()]), "sets a part of L2 aside (cuCtxSetLimit)"),
    ],
)
def test_each_lie_has_its_sentence(observed, words):
    assert words in complaint(MAIN, observed)


def test_honest_and_empty_calls_have_none():
    assert complaint(MAIN, calls([work()], [work(), work()])) is None
    assert complaint(MAIN, calls([], [])) is None
