"""Histories that asv measured: commits in any order, and several environments; the commands answer alike."""

import html
import json
import random
import re
import shlex
from dataclasses import replace

import pytest

from prism_bench.record import store
from prism_bench.record.formats.foreign import read_json
from prism_bench.report.asv import results
from tests.record.formats.results import asv

COMMITS, STEP, DAY = 24, 12, 86_400_000
HASHES = [f"{number:02d}" + "abcdef" * 6 + "ab" for number in range(COMMITS)]
STORE = ("--runs", "runs")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def measured(folder, number, rank, python="3.13", seconds=0.010):
    """asv's file of a commit, which was measured as the `rank`-th one; from STEP on it takes 20 % longer."""
    rng = random.Random(f"{number} {python}")
    samples = [seconds * (1.2 if number >= STEP else 1.0) * rng.gauss(1, 0.002) for _ in range(10)]
    started = 1_760_000_000_000 + rank * 120_000
    row = [[sorted(samples)[5]], [["100"], ["'heap'"]], "aa", started, 2.0, *[None] * 6, [samples]]
    path = asv(folder, HASHES[number], {"sorting.time_sort": row}, env_name=f"virtualenv-py{python}", python=python,
               date=1_700_000_000_000 + number * DAY)  # fmt: skip
    path.rename(path.with_name(f"{HASHES[number][:8]}-virtualenv-py{python}.json"))


@pytest.fixture
def imported(shell, tmp_path):
    """A function that imports the commits, measured in this order, each in these versions of Python."""

    def make(order, pythons=("3.13",)):
        for rank, number in enumerate(order):
            for place, python in enumerate(pythons):
                measured(tmp_path / "asv", number, rank * len(pythons) + place, python, 0.010 + 0.002 * place)
        assert 0 == shell("import", "asv", *STORE).code

    return make


NEWEST_FIRST = range(COMMITS - 1, -1, -1)
JUMPING = [0, 23, 12, *(number for number in range(COMMITS) if number not in (0, 23, 12))]


@pytest.mark.parametrize("order", [range(COMMITS), NEWEST_FIRST, JUMPING], ids=["oldest", "newest", "jumping"])
def test_a_step_is_that_of_a_commit_in_whatever_order_they_were_measured(shell, imported, order):
    imported(order)
    found = shell("trend", *STORE, "--json")
    (step,) = found.json["steps"]
    assert (1, True, [HASHES[11], HASHES[12]], "2023-11-26T22:13:20", None) == (
        found.code, step["worse"], step["commits"], step["since"], found.json["order"],
    )  # fmt: skip
    assert pytest.approx(1.2, abs=0.02) == step["ratio"]
    assert (12, 12) == (step["age"], step["nights"])
    gate = shell("check", *STORE)
    assert (1, True, True) == (gate.code, "worse by 20 %" in gate.out, HASHES[23][:8] in gate.out)
    assert HASHES[23][:8] in shell("report", *STORE, "-o", "site", "--json").json["record"]


def test_digest_reports_a_step_that_a_backfill_confirmed(shell, imported, tmp_path):
    imported(NEWEST_FIRST)
    found = shell("comment", *STORE, "--since", "2025-10-01", "--json").json
    assert [HASHES[12][:8]] == [one["message"].rpartition("..")[2].rstrip("]") for one in found["machines"][0]["worse"]]


def test_each_environment_is_a_series(shell, imported):
    imported(range(COMMITS), ("3.9", "3.13"))
    found = shell("trend", *STORE)
    assert (1, True) == (found.code, found.out.startswith("2 steps in 2 series, 48 records"))
    for python in ("3.9", "3.13"):
        assert f"in virtualenv-py{python} since" in found.out


def test_the_last_record_that_compares_is_of_the_same_environment(shell, imported):
    imported(range(3), ("3.9", "3.13"))
    history = store.read_history("runs")
    record = store.read(store.records_in("runs")[-1])
    assert {("bench-1", "asv", "virtualenv-py3.13")} == {one.owner for one in [record, *history.before(record)]}
    assert [HASHES[0], HASHES[1]] == [facts.commit for facts in history.before(record)]


def test_a_site_has_pages_for_each_environment(shell, imported, tmp_path):
    imported(range(COMMITS), ("3.9", "3.13"))
    assert 0 == shell("report", *STORE, "-o", "site").code
    first = (tmp_path / "site" / "index.html").read_text()
    _, *words = shlex.split(html.unescape(re.search(r"prism-bench report [^<\"]*--output [^<\"]*", first)[0]))
    assert 0 == shell(*words).code
    pages = [tmp_path / "site" / "trend.json", *(tmp_path / "site" / "machines").glob("*/trend.json")]
    views = [json.loads(page.read_text()) for page in pages]
    assert [(24, 1), (24, 1)] == [(view["nights"], len(view["steps"])) for view in views]


def test_records_imported_before_environments_are_told_apart_by_their_software(shell, imported, tmp_path):
    imported(range(COMMITS), ("3.9", "3.13"))
    for path in store.records_in("runs"):
        record = store.read(path)
        software = {name: version for name, version in record.software.items() if name != "env_name"}
        store.save(replace(record, software=software, committed=None), path)
    assert 2 == len(shell("trend", *STORE, "--json").json["steps"])
    assert 0 == shell("import", "asv", *STORE).code  # again, with environments: the same runs
    found = shell("trend", *STORE, "--json").json
    assert (48, 2) == (found["records"], found["series"])


def test_what_asv_gets_back_keeps_environment_and_date(shell, imported, tmp_path):
    imported([5])
    record = replace(store.read(store.records_in("runs")[0]), machine={"id": "bench-1", "host": {}})
    found = read_json(results.write(record, tmp_path / "back"))
    assert ("virtualenv-py3.13", 1_700_000_000_000 + 5 * DAY) == (found["env_name"], found["date"])
