"""The page: whole, escaped, self-contained, and never broken by what a record lacks."""

import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from prism_bench.analysis.reading import read
from prism_bench.budget import Budget
from prism_bench.measurement import Measurement
from prism_bench.report.html import quantity, write_report
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of

VOID = {"meta", "link", "input", "br", "wbr", "hr", "img", "path", "use"}


class Page(HTMLParser):
    """Checks that elements nest and ids are unique; collects text by element, and what would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.fetched, self.words, self.rows = [], [], [], [], 0
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if "id" in found else []
        self.fetched += [found[name] for name in ("src", "href", "xlink:href") if name in found]
        self.rows += "data-state" in found
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def page_of(record, tmp_path, catalogue=None):
    return Page(write_report(record, tmp_path / "report.html", catalogue).read_text("utf-8"))


def test_the_page_has_every_case_and_every_section(tmp_path):
    record = gpu_record()
    page = page_of(record, tmp_path)
    assert page.rows == len(read(record).cases)
    for case in record.cases:
        assert case.kernel in page.text
    assert "16 edge and golden cases were verified beside these" in page.text
    assert {"findings", "machine", "cases", "roofline", "rivals", "published", "verification", "method"} <= set(
        page.ids
    )


def test_the_page_fetches_nothing(tmp_path):
    page = page_of(gpu_record(), tmp_path)
    assert {target for target in page.fetched if not target.startswith(("#", "data:"))} == set()


def test_mishaps_stand_on_top_with_their_reasons(tmp_path):
    text = page_of(gpu_record(), tmp_path).text
    top = text[: text.index("The machine")]
    for words in (
        "42 of 46 cases verified and timed",
        "illegal_address",
        "above the read ceiling",
        "it wanted 4.29 gb",
    ):
        assert words.lower() in top.lower()


def test_markup_in_names_is_only_text(tmp_path):
    nasty = "<script>alert(1)</script>&\"'$x$"
    case = case_result(
        nasty, times={"cold_time": 1e-5, "cold_time@peer:<b>": 2e-5}, workload={"<i>": 1}, flops=100, family=nasty,
        label="S1", reason=nasty, verification=({"output": nasty, "passed": False, "place": [0], "error": nasty},),
    )  # fmt: skip
    wrong = case_result(nasty, status="wrong", reason=nasty, name=nasty)
    record = record_of(case, wrong, machine={"id": nasty, "device": {"name": nasty}}, commit=nasty, catalogue=nasty)
    raw = write_report(record, tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert" not in raw and "<b>" not in raw and "<i>=" not in raw
    assert nasty in Page(raw).text


def test_a_cpu_record_explains_its_gaps(tmp_path):
    page = page_of(cpu_record(), tmp_path)
    assert page.rows == len(cpu_record().cases)
    for words in (
        "All 12 cases verified and timed",
        "Not in this record: cold time",
        "No roofline",
        "the wall time of the CPU reference stands alone",
    ):
        assert words in page.text


@pytest.mark.parametrize("record", [record_of(), record_of(complete=False), gpu_record(complete=False)])
def test_empty_and_partial_records_give_a_whole_page(record, tmp_path):
    page = page_of(record, tmp_path)
    assert ("This run was cut short" in page.text) == (not record.complete)
    assert page.rows == len(read(record).cases)


def test_a_gap_points_at_its_reason(tmp_path):
    empty = Measurement("hot_time", "kernel", (), reason="graph capture refused")
    case = case_result("k", measurements=(empty,))
    page = page_of(record_of(case), tmp_path)
    assert "#note-1" in page.fetched and "note-1" in page.ids
    assert "graph capture refused" in page.text


def test_budgets_of_the_catalogue_are_judged(tmp_path):
    spec = SimpleNamespace(budgets=(Budget("cold_time", at_most=1e-9),), variants={})
    record = record_of(case_result("k", times={"cold_time": 1e-5}))
    text = page_of(record, tmp_path, SimpleNamespace(kernels={"k": spec}, folder=tmp_path)).text
    assert "1 budget missed" in text
    assert "the budget is at most 1.00 ns" in text


def test_an_interrupted_report_leaves_the_old_page(tmp_path, monkeypatch):
    path = write_report(cpu_record(), tmp_path / "report.html")
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(gpu_record(), path)
    assert path.read_bytes() == before
    assert [child.name for child in tmp_path.iterdir()] == ["report.html"]


def test_the_same_record_gives_the_same_page(tmp_path):
    pages = [write_report(gpu_record(), tmp_path / name).read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [("1.18 us", "1.18", "µs"), ("99 %", "99", "%"), ("2,519x", "2,519", "x"), ("4.2 TB/s", "4.2", "TB/s")],
)
def test_numbers_and_units_are_set_apart(text, number, unit):
    assert quantity(text) == f'<span class="q">{number}<span class="u">{unit}</span></span>'


@pytest.mark.parametrize(
    ("text", "shown"), [("-", "–"), ("6.2e-08", "6.2e-08"), ("exact", "exact"), ("<b>", "&lt;b&gt;")]
)
def test_what_is_no_quantity_stays_as_it_is(text, shown):
    assert quantity(text) == f'<span class="q">{shown}</span>'
