"""The table of dishonest kernels and callables says of each test whether it went as it must."""

import pytest
from lab.dishonest import TESTS, Planted, outcomes

from prism_bench.errors import ResultsError
from prism_bench.workflows.compile_table import write_csv
from tests.test_architecture import HOUSE

REPORT = """<testsuites><testsuite>
<testcase name="test_a_lie_is_caught[keeps_flag-cold]"/>
<testcase name="test_a_lie_is_caught[counts]"><failure message="assert 'ok'&#10; == 'wrong'">trace</failure></testcase>
<testcase name="test_compiled"><skipped message="torch is missing"/></testcase>
</testsuite></testsuites>"""


def test_each_test_is_a_line(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)
    found = outcomes(tmp_path / "report.xml")
    assert [
        Planted("a lie is caught", "keeps_flag-cold", "as expected"),
        Planted("a lie is caught", "counts", "otherwise", "assert 'ok' == 'wrong'"),
        Planted("compiled", "", "skipped", "torch is missing"),
    ] == found
    write_csv(sorted(found), tmp_path / "folder" / "table.csv")
    assert "what,of,outcome,reason" == (tmp_path / "folder" / "table.csv").read_text().splitlines()[0]


@pytest.mark.parametrize("text", ["", "<testsuites/>", "no xml"])
def test_a_report_without_tests_is_refused(tmp_path, text):
    (tmp_path / "report.xml").write_text(text)
    with pytest.raises(ResultsError, match="report.xml"):
        outcomes(tmp_path / "report.xml")


def test_the_tests_that_plant_them_are_there():
    assert all((HOUSE / path).is_file() for path in TESTS)
