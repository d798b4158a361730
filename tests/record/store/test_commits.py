"""Order of a history: by commits, however and whenever they were measured."""

import subprocess
from dataclasses import replace

import pytest

from prism_bench.record import store
from prism_bench.record.store.records import CommitOrder
from tests.analysis.trend.histories import night_facts
from tests.report.synthetic import case_result, record_of


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def commits_of(records, order=None):
    order = order or CommitOrder()
    return [records[place].commit for place in order.sorted(records)[0]]


def day(number):
    return f"2026-03-{number:02d}T00:00:00"


def test_newest_commit_measured_first_comes_last():
    records = [night_facts(night, commit=name, committed=day(number))
               for night, (name, number) in enumerate([("c", 3), ("b", 2), ("a", 1)])]  # fmt: skip
    assert ["a", "b", "c"] == commits_of(records)
    assert [] == CommitOrder().sorted(records)[1]


def test_records_of_one_commit_are_in_the_order_of_measuring():
    records = [night_facts(night, commit="a", committed=day(1)) for night in (2, 0, 1)]
    order, _ = CommitOrder().sorted(records)
    assert [1, 2, 0] == order


def test_a_record_without_a_date_follows_what_was_measured_before_it():
    dated = [night_facts(0, commit="c", committed=day(3)), night_facts(2, commit="a", committed=day(1))]
    records = [*dated, night_facts(1, commit=None), night_facts(3, commit="x")]
    order, undated = CommitOrder().sorted(records)
    assert (["a", "x", "c", None], {2, 3}) == ([records[place].commit for place in order], set(undated))


def test_records_from_before_dates_were_kept_stay_first():
    records = [night_facts(0, commit="a"), night_facts(1, commit="b"),
               night_facts(2, commit="c", committed=day(1).replace("2026", "2020"))]  # fmt: skip
    assert ["a", "b", "c"] == commits_of(records)


def test_dates_of_a_commit_count_for_all_of_its_records():
    records = [night_facts(0, commit="b", committed=day(2)), night_facts(1, commit="a", committed=day(1)),
               night_facts(2, commit="b")]  # fmt: skip
    assert ["a", "b", "b"] == commits_of(records)
    assert [] == CommitOrder().sorted(records)[1]


def git(folder, *words, date="2026-01-01T00:00:00Z"):
    environment = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date, "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", "-C", folder, *who, *words], env=environment, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path):
    """A repository, and its commits from the oldest to the newest; the clock of the third one's author was slow."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    made = []
    for date in ("2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z"):
        git(folder, "commit", "-q", "--allow-empty", "-m", date, date=date)
        made.append(git(folder, "rev-parse", "HEAD"))
    return folder, made


def test_ancestry_counts_more_than_the_date_of_a_commit(repository):
    folder, made = repository
    records = [night_facts(night, commit=commit) for night, commit in enumerate([*made[::-1], "f" * 40])]
    order = CommitOrder.around(records, [folder / "runs", folder])
    assert made == [one for one in commits_of(records, order) if one in made]
    assert "2026-01-02T00:00:00" == next(iter(order.dated([records[1]]))).committed


def test_a_commit_that_the_repository_lacks_is_placed_by_its_date(repository):
    folder, made = repository
    foreign = [night_facts(8, commit="e" * 40, committed="2026-01-01T12:00:00"),
               night_facts(9, commit="d" * 40, committed="2026-02-01T00:00:00")]  # fmt: skip
    records = [*(night_facts(night, commit=commit) for night, commit in enumerate(made)), *foreign]
    order = CommitOrder.around(records, [folder])
    assert [made[0], "e" * 40, *made[1:], "d" * 40] == commits_of(records, order)


def test_a_history_below_a_repository_is_in_the_order_of_its_commits(repository):
    folder, made = repository
    for minute, commit in enumerate(made[::-1]):
        record = record_of(case_result("k", times={"cold_time": 1e-5}), commit=commit,
                           created=f"2026-11-05T03:{minute:02d}:00")  # fmt: skip
        store.save(record, store.path_for(record, folder / "runs"))
    history = store.read_history(folder / "runs")
    assert (made, None) == ([facts.commit for facts in history.records], history.unordered)
    assert made[-1][:8] in store.newest_commit(folder / "runs").name
    assert made[0][:8] in store.newest(folder / "runs").name
    newest = replace(record, commit=made[-1], created="2026-11-05T03:00:00")
    elsewhere = replace(record, commit=made[2], created="2026-12-01T00:00:00")
    assert made[:-1] == [facts.commit for facts in history.before(newest)]
    assert made[:3] == [facts.commit for facts in history.before(elsewhere)]


def test_a_history_without_dates_of_commits_says_so(tmp_path):
    for number in (1, 2, 3):
        record = record_of(case_result("k", times={"cold_time": 1e-5}), created=f"2026-11-0{number}T03:00:00",
                           commit="b" * 40 if number == 3 else "a" * 40)  # fmt: skip
        store.save(record, store.path_for(record, tmp_path))
        assert (number < 3) == (store.read_history(tmp_path).unordered is None)
    assert store.read_history(tmp_path).unordered.startswith("all records are in the order of measuring")
