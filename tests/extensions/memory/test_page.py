"""The first sentence of the memory page: times of allocations against the base, and gains of programs."""

from prism_bench.extensions.memory.report import _answer


def trace(allocator, verdict, ratio):
    judged = {"verdict": verdict, "ratio": ratio} if verdict else None
    return {"trace": "t", "allocator": allocator, "against_base": judged}


def test_the_first_sentence_has_verdicts_and_ranges():
    traces = [trace("cupy", None, None), trace("async", "slower", 2.5), trace("async", "slower", 2.75),
              trace("async", "inconclusive", 1.1), trace("none", "slower", 31.0)]  # fmt: skip
    programs = [{"verdict": "inconclusive"}, {"verdict": "inconclusive"}, {"verdict": "faster"}]
    assert (
        "An allocation against cupy: async slower on 2 of 3 traces (2.50x to 2.75x), inconclusive on 1 of 3 traces "
        "(1.10x); no pool at all slower on 1 of 1 trace (31.0x). "
        "Whole programs against it: 2 inconclusive, 1 faster."
    ) == _answer(traces, programs, "cupy")


def test_answer_without_other_allocators():
    assert "Only cupy replayed the traces." == _answer([trace("cupy", None, None)], [], "cupy")
    assert "An allocation against cupy: async not compared." == _answer([trace("async", None, None)], [], "cupy")
