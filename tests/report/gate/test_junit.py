"""The JUnit document: well-formed whatever is in it, and no unmeasured budget among what passed."""

from dataclasses import replace
from xml.etree import ElementTree as Xml

from prism_bench.analysis.gate.checks import GatePart
from prism_bench.report.gate import junit_xml
from tests.report.gate.planted import AWKWARD, BAD, DOUBT, MET, NOTE, gate_of


def suites(gate):
    return list(Xml.fromstring(junit_xml(gate)))


def test_bad_fails_doubt_is_an_error_unmeasured_is_skipped():
    (suite,) = suites(gate_of(BAD, DOUBT, NOTE, MET))
    assert ("4", "1", "1", "1") == tuple(suite.get(name) for name in ("tests", "failures", "errors", "skipped"))
    assert ["failure", "error", "skipped"] == [child.tag for test in suite for child in test]
    assert {"prism-bench.budgets"} == {test.get("classname") for test in suite}
    assert "softmax[n=100] cold time" == suite[0].get("name")


def test_a_failure_says_how_to_see_it_again():
    (suite,) = suites(gate_of(BAD))
    assert "prism-bench run --backend cuda --label S0 --filter 'softmax[n=100]'" in suite[0][0].text
    assert BAD.message == suite[0][0].get("message")


def test_a_part_that_asked_nothing_is_skipped_with_its_reason():
    _, suite = suites(gate_of(MET, more=[GatePart("baseline", silent="no baseline for box")]))
    assert ("1", "1") == (suite.get("tests"), suite.get("skipped"))
    assert "no baseline for box" == suite[0][0].get("message")


def test_any_message_can_be_read_again():
    (suite,) = suites(gate_of(replace(BAD, message=AWKWARD, case="\ud800[n=1]")))
    assert "50 % of <b>" in suite[0][0].text and "\x00" not in suite[0][0].text
    junit_xml(gate_of(replace(BAD, message=AWKWARD, case="\ud800[n=1]"))).encode()
