"""The source page of ncu: samples by line, counted at the instructions, each once; what fits no page is refused."""

import pytest

from prism_bench.errors import ResultsError
from prism_bench.profilers import ncu

HEADER = ["Line No", "Source", "Address", "Source", "Warp Stall Sampling (All Samples)",
          "Warp Stall Sampling (Not-issued Samples)", "# Samples", "stall_long_sb", "stall_selected", "stall_wait",
          "stall_long_sb (Not Issued)"]  # fmt: skip
PAGE = [
    ["==PROF== Disconnected"],
    ["File Path", "/home/somebody/kernels/basic/softmax.cu"],
    ["Function Name", "softmax"],
    HEADER,
    ["11", "  int i = threadIdx.x;", "-", "-", "0", "0", "0", "0", "0", "0", "0"],
    ["", "", "0x7f00", "S2R R0, SR_TID.X", "0", "0", "0", "0", "0", "0", "0"],
    ["12", "  float v = x[i];", "-", "-", "1,250", "1,000", "1,250", "1,000", "200", "50", "900"],
    ["", "", "0x7f10", "LDG.E R2, [R4]", "1,000", "900", "1,000", "900", "90", "10", "800"],
    ["", "", "0x7f20", "FADD R2, R2, R3", "250", "100", "250", "100", "110", "40", "100"],
    ["", "", "...", "...", "-", "-", "-", "-", "-", "-", "-"],
    ["13", "  y[i] = v;", "-", "-", "30", "30", "30", "0", "0", "30", "0"],
    ["", "", "0x7f30", "STG.E [R6], R2", "30", "30", "30", "0", "0", "30", "0"],
    ["File Path", "C:\\include\\reduce.cuh"],
    ["Function Name", "softmax"],
    HEADER,
    ["5", "  return a + b;", "-", "-", "250", "100", "250", "100", "110", "40", "100"],
    ["", "", "0x7f20", "FADD R2, R2, R3", "250", "100", "250", "100", "110", "40", "100"],
]


def page(rows=PAGE):
    return "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)


def test_instructions_are_counted_once_at_their_line():
    lines = ncu.parse_source_page(page(), "p.csv")
    assert [("softmax.cu", 12, 1250), ("softmax.cu", 13, 30)] == [(one.file, one.line, one.samples) for one in lines]


def test_launches_are_added_up_and_the_hottest_line_is_first():
    one, two = ncu.parse_source_page(page(), "p.csv"), ncu.parse_source_page(page(), "p.csv")
    assert [
        {"file": "softmax.cu", "line": 12, "samples": 2500, "text": "float v = x[i];", "stall": "long scoreboard"},
        {"file": "softmax.cu", "line": 13, "samples": 60, "text": "y[i] = v;", "stall": "wait"},
    ] == ncu.together([one, two])


def test_older_titles_of_the_samples_are_known():
    def renamed(title):
        return [
            [title if cell == HEADER[4] else cell for cell in row if cell] if row is HEADER else row for row in PAGE
        ]

    for title in ("Warp Stall Sampling (All Cycles)", "other"):  # without the first one, '# Samples' serves
        assert 1250 == ncu.parse_source_page(page(renamed(title)), "p.csv")[0].samples


def test_a_source_that_ncu_did_not_find_has_lines_without_text():
    rows = [["" if cell.startswith("  ") else cell for cell in row] for row in PAGE]
    assert [None, None] == [one.text for one in ncu.parse_source_page(page(rows), "p.csv")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no header begins with 'Line No'"),
        ("==WARNING== No source available", "compiled with line information"),
        ('"Kernel Name","softmax"\n"Address","Source","# Samples"\n"0x10","NOP","3"', "--print-source cuda,sass"),
        ('"Line No","Source","Source","# Samples"', "no column of an address"),
        ('"Line No","Source","Address","Source","Instructions Executed"', "collect the section SourceCounters"),
        (page().replace('"1,000"', '"1.5"', 1).replace('"1,000","900"', '"1.5","900"'), "'1.5', not a whole number"),
        (page()[:-3], "the page is cut or no CSV"),
        (page([*PAGE[:7], PAGE[7][:4]]), "the row of instruction 0x7f10 is cut"),
    ],
)
def test_what_is_no_page_of_lines_is_refused(text, words):
    with pytest.raises(ResultsError, match=r"^p.csv: ") as refused:
        ncu.parse_source_page(text, "p.csv")
    assert words in str(refused.value)


def test_a_page_without_samples_has_no_lines():
    assert [] == ncu.parse_source_page(page(PAGE[:6]), "p.csv")
