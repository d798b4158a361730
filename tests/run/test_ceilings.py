"""Which kernels measure the machine in every run."""

from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.measure.plausibility import COLD_PROOF_BYTES
from prism_bench.record import store
from prism_bench.run.job import Run
from prism_bench.run.settings import Settings, anchor_cases, ceiling_cases
from tests.built_in import CATALOGUE

RUNS = Path(__file__).resolve().parents[2] / "reports" / "runs"
FIRST = "GPU-first"
ANCHORS = {
    "null[blocks=1]", "copy[n=536870912]", "fma[n=16777216,rounds=1024]", "read[n=1073741824]",
    "read[n=4194304]", "read:abreast[n=4194304]",
}  # fmt: skip
UNKNOWN = {"tensor_products[tiles=2,rounds=16]", "tensor_products[tiles=2112,rounds=1024]"}  # to the kept record


def test_ceilings_of_memory_are_measured_at_all_sizes_and_in_all_patterns():
    found = {(case.kernel, case.label) for case in ceiling_cases(CATALOGUE)}
    for kernel in ("copy", "read", "read:abreast"):
        assert {(kernel, label) for label in ("S0", "S1", "S2")} <= found
    assert {("copy:streamed", "S1"), ("copy:streamed", "S2")} == {pair for pair in found if pair[0] == "copy:streamed"}
    assert {("null", "S0"), ("fma", "S0"), ("fma", "S2")} <= found
    reading = [case for case in ceiling_cases(CATALOGUE) if case.spec.ceiling == "read_bandwidth"]
    assert 1 << 30 in {case.sizes.nbytes("x") for case in reading}


def test_several_reads_may_prove_cold_caches():
    """On a device whose cache is a large GPU's: more than one pattern, so that a slow one does not cost the run."""
    cache_bytes = 50 << 20
    fitting = {
        case.kernel
        for case in ceiling_cases(CATALOGUE)
        if case.spec.ceiling == "read_bandwidth" and COLD_PROOF_BYTES <= case.sizes.nbytes("x") <= cache_bytes / 2
    }
    assert {"read", "read:abreast"} <= fitting


@pytest.fixture(scope="module")
def kept():
    return store.read(next((RUNS / "nvidia-h200").glob("20261123T070904Z-*.json.gz")))


def names(cases):
    return {case.name for case in cases}


def changed(record, name, factor, board=None):
    """Return the record with the case's times multiplied; with `board` in further processes, of that board alone."""

    def slowed(one):
        slow = tuple(tuple(time * factor for time in process) for process in one.processes)
        if board is None:
            return replace(one, processes=slow)
        boards = (FIRST,) * len(one.processes) + (board,) * len(slow)
        return replace(one, processes=one.processes + slow, boards=boards)

    found = [
        replace(case, measurements=tuple(slowed(one) for one in case.measurements)) if case.name == name else case
        for case in record.cases
    ]
    return replace(record, cases=tuple(found))


def test_anchors_are_the_quickest_of_their_kind_and_proofs_of_cold_caches(kept):
    assert ANCHORS | UNKNOWN == names(anchor_cases(CATALOGUE, [kept]))
    slow = changed(kept, "copy[n=536870912]", 2.0)
    assert ANCHORS - {"copy[n=536870912]"} | {"copy[n=67108864]"} == names(anchor_cases(CATALOGUE, [slow])) - UNKNOWN


def test_all_ceilings_of_a_kind_are_anchors_where_no_record_has_it(kept):
    every = names(ceiling_cases(CATALOGUE))
    assert every == names(anchor_cases(CATALOGUE, []))
    without = replace(kept, cases=tuple(case for case in kept.cases if case.ceiling != "launch"))
    empty = {case.name for case in ceiling_cases(CATALOGUE) if case.spec.ceiling == "launch"}
    assert ANCHORS | UNKNOWN | empty == names(anchor_cases(CATALOGUE, [without]))
    assert ANCHORS | UNKNOWN == names(anchor_cases(CATALOGUE, [without, kept]))


def test_times_of_one_board_decide_which_is_quickest(kept):
    """A slower board measured only some of them: what it measured is not held against them."""
    both = kept
    for name in ANCHORS:
        both = changed(both, name, 1.5, board="GPU-slow")
    cases = tuple(case if case.name in ANCHORS else replace(case, board=FIRST) for case in both.cases)
    assert ANCHORS | UNKNOWN == names(anchor_cases(CATALOGUE, [replace(both, cases=cases)]))


def test_anchors_are_measured_without_their_edges_and_peers(tmp_path, monkeypatch):
    import json

    from prism_bench.backends.null import SCRIPT
    from prism_bench.catalogue import discover
    from tests.run.conftest import QUICK, TOYS

    (tmp_path / "script.json").write_text(json.dumps({"*": {"peers": {"library": {}}}}))
    monkeypatch.setenv(SCRIPT, str(tmp_path / "script.json"))
    toys = discover(TOYS)
    case, anchor = (toys.anywhere(name) for name in ("double[n=1000]", "triple[n=1000]"))
    driven = Run(toys, "null", Settings(processes=2, criteria=QUICK, timeout=20.0))
    driven.measure([case], anchors=[anchor, case])
    subjects = {
        name: {one.subject for result in results for one in result.measurements}
        for name, results in driven.results.items() if results[0].label != "edge"
    }  # fmt: skip
    assert {"kernel", "peer:library"} == subjects["double[n=1000]"], "an anchor that is a case too is measured as one"
    assert {"kernel"} == subjects["triple[n=1000]"]
    assert {2} == {len(driven.results[one.name]) for one in (case, anchor)}
    assert {"double"} == {results[0].kernel for results in driven.results.values() if results[0].label == "edge"}
