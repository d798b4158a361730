"""What the terminal shows, at the width it has."""

import pytest
from rich.console import Console

from prism_bench.analysis.reading import read
from prism_bench.analysis.summary import implementation
from prism_bench.report.terminal.record import summary_view
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of


def shown(record, width=220):
    console = Console(width=width, record=True, file=open("/dev/null", "w"), color_system=None)  # noqa: SIM115
    with console.file:
        console.print(summary_view(record))
        return console.export_text()


def test_every_case_has_a_line_and_every_mishap_its_reason():
    text = shown(gpu_record())
    for case in read(gpu_record()).cases:
        assert f"{implementation(case)} " in text
    for words in ("42 of 46 cases", "above the read ceiling", "it wanted 4.29 GB", "[2] graph capture refused"):
        assert words in text


@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_terminal_drops_columns_and_never_cuts_a_number(width):
    text = shown(gpu_record(), width)
    assert "…" not in text
    assert "no room for" in text
    assert max(map(len, text.splitlines())) <= width


def test_markup_in_names_is_only_text():
    assert "[red]k" in shown(record_of(case_result("[red]k", times={"cold_time": 1e-5})))


def test_cpu_and_empty_records_are_told_plainly():
    assert "no launch overhead and no ceiling" in shown(cpu_record())
    assert "Nothing was measured." in shown(record_of())
