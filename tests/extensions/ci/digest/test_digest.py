"""The digest: what moved in its days and nothing older, whatever is missing, and only text in both forms."""

import re
from datetime import date
from types import SimpleNamespace

import pytest

from prism_bench.extensions.ci.digest import digest, html, markdown
from prism_bench.record import store
from prism_bench.report.site.context import Places, contexts, newest_of_each
from prism_bench.spec.metric import Budget
from prism_bench.units import parsed_since
from tests.report.site.pages import Page, nights
from tests.report.synthetic import case_result, gpu_record, record_of

TODAY = date(2026, 10, 14)


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A function that gives the digest of records since a day."""
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))

    def make(records, since="7d", catalogue=None):
        for record in records:
            store.save(record, store.path_for(record, tmp_path / "runs"))
        places = Places(tmp_path / "runs")
        history = store.read_history(places.runs)
        found = contexts(newest_of_each(history, places), history, places, catalogue)
        return digest(found, parsed_since(since, TODAY), TODAY)

    return make


@pytest.mark.parametrize(
    ("text", "day"),
    [("7d", date(2026, 10, 7)), ("2w", date(2026, 9, 30)), ("2026-10-01", date(2026, 10, 1)), ("0d", TODAY),
     ("soon", None), ("", None), ("-1d", None), ("99999d", None), ("d", None)],
)  # fmt: skip
def test_since_is_a_day_or_so_long_ago(text, day):
    assert day == parsed_since(text, TODAY)


def test_what_moved_is_told_with_its_cause(told):
    (machine,) = told(nights(gpu_record(), slower="softmax"))["machines"]
    (step,) = machine["worse"]
    assert ("code", pytest.approx(1.2, rel=0.01), False) == (step["cause"], step["ratio"], step["recovered"])
    assert all(case.startswith("softmax[") for case in step["cases"])
    assert 8 == machine["nights"]


def test_a_step_is_news_in_the_days_in_which_it_was_confirmed(told):
    records = nights(gpu_record(), slower="softmax", since=8)
    assert 1 == len(told(records, "2026-10-11")["machines"][0]["worse"])
    assert 0 == len(told(records, "2026-10-12")["machines"][0]["worse"])


def test_what_is_unmeasured_has_its_reason(told, tmp_path):
    known = [SimpleNamespace(name=f"{name}[n=1]", spec=SimpleNamespace(name=name)) for name in ("a", "b")]
    catalogue = SimpleNamespace(kernels={}, cases=lambda *_: known, folder=tmp_path, budgets=None)
    (machine,) = told([gpu_record()], catalogue=catalogue)["machines"]
    found = {one["reason"]: one["kernels"] for one in machine["unmeasured"]}
    assert ["softmax"] == found["skipped: out of memory: it wanted 4.29 GB, and 1.02 GB were free"]
    assert ["a", "b"] == found["not in the newest run"]


def test_budgets_near_their_end_are_told(told, tmp_path):
    ends = {"soon": date(2026, 11, 1), "ended": date(2026, 10, 1), "later": date(2027, 1, 1)}
    budgets = tuple(Budget("cold_time", at_most=1.0, owner=name, expires=day) for name, day in ends.items())
    spec = SimpleNamespace(budgets=budgets, variants={}, family="basic", source=None, chains=(), name="k")
    catalogue = SimpleNamespace(kernels={"k": spec}, folder=tmp_path, budgets=None, cases=lambda *_: [])
    found = told([record_of(case_result("k", times={"cold_time": 1e-5}))], catalogue=catalogue)
    assert [("ended", True), ("soon", False)] == [
        (one["owner"], one["expired"]) for one in found["machines"][0]["ending"]
    ]
    assert "ends 2026-11-01, soon" in markdown(found).replace("\\", "")


def test_days_without_a_night_are_told(told):
    found = told(nights(gpu_record(), 2))
    assert 0 == found["machines"][0]["nights"]
    for text in (markdown(found), Page(html(found)).text):
        assert "Nothing was measured since then" in text


def test_names_are_only_text_in_both_forms(told):
    nasty = "<script>alert(1)</script> [x](y) *b* @all | #"
    wrong = case_result("k", status="wrong", reason=nasty, name=nasty)
    found = told([record_of(wrong, machine={"id": "x", "device": nasty})])
    raw = html(found)
    assert "<script" not in raw and nasty in Page(raw).text
    text = markdown(found)
    assert not re.search(r"(?<!\\)<script", text)
    assert "@all" not in text and "[x](y)" not in text


def test_the_mail_loads_nothing(told):
    raw = html(told(nights(gpu_record(), slower="softmax")))
    page = Page(raw)
    assert [] == page.linked
    assert not re.search(r"<(?:style|link|script|img)\b", raw)
    assert "worse by" in page.text and "Cannot be trusted" in page.text


def test_both_forms_tell_the_same(told):
    found = told(nights(gpu_record(), slower="softmax"))
    text, page = markdown(found), Page(html(found)).text
    for title in re.findall(r"^\*\*(.+)\*\*$", text, re.MULTILINE):
        assert title in page
    assert text.count("\n- ") == html(found).count("<li")
