"""What is told apart when a record is read."""

from dataclasses import replace

from prism_bench.analysis.run_analysis import compared, middle, read
from tests.report.synthetic import case_result, gpu_record, record_of


def test_edges_are_verified_and_not_counted_among_the_cases():
    edge = case_result("k", "edge", workload={"n": 1})
    timed = case_result("k", times={"cold_time": 1e-5})
    reading = read(record_of(edge, timed))
    assert (reading.edges, reading.cases) == ((edge,), (timed,))
    assert list(reading.frame["case"]) == [timed.name]


def test_a_golden_case_that_has_times_is_a_case():
    golden = case_result("k", "golden", times={"cold_time": 1e-5})
    assert read(record_of(golden)).cases == (golden,)


def test_a_wrong_edge_is_a_finding():
    (finding,) = read(record_of(case_result("k", "edge", status="wrong", reason="differs"))).findings
    assert (finding.kind, finding.gravity) == ("wrong", "bad")


def test_shares_leave_out_launches_and_the_machine():
    reading = read(gpu_record())
    bound = set(reading.frame.loc[reading.frame["bound_share"].notna(), "bound"])
    assert bound == {"memory", "compute", "launch"}
    assert 0 < len(reading.busy_shares) < len(reading.cases)
    assert reading.trusted == 38


def test_shares_leave_out_forms_of_before():
    record = gpu_record()
    kept = replace(record, cases=tuple(replace(case, before="another") for case in record.cases))
    assert read(record).busy_shares
    assert [] == read(kept).busy_shares
    assert len(compared(read(record))) > 0 == len(compared(read(kept)))


def test_the_middle_of_nothing_is_none():
    assert middle([]) is None
    assert middle([1.0, 2.0, 9.0]) == 2.0
