"""Bisections of generated histories: each method as it is, rows of the table, and what the stored table promises."""

import csv
import re
from dataclasses import replace
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from lab import REPOSITORY, bisect_methods
from lab.bisect_methods import ENDS, METHODS, SEVERAL, SIDE, GeneratedHistory, version
from lab.bisect_table import COLUMNS, COMMITS, SLOWDOWNS, BisectCell, cells, row

STORED = REPOSITORY / "reports" / "judgement" / "bisect.csv"
HERE = [pytest.param(name, marks=pytest.mark.skipif(not version(name), reason=f"no {name}")) for name in METHODS]


def history(size, place=20, seed=1):
    return GeneratedHistory(64, place, size, np.random.default_rng(seed))


@pytest.mark.parametrize("method", HERE)
@pytest.mark.parametrize("place", [1, 20, 63])
def test_every_method_finds_what_nobody_could_miss(method, place):
    assert place == METHODS[method][0](history(0.5, place))


@pytest.mark.parametrize("processes", [2, 8])
def test_git_measures_the_ends_and_then_a_commit_for_each_halving(processes):
    searched = history(0.5)
    METHODS[f"git bisect run, {processes} processes"][0](searched)
    assert 2 * ENDS + 6 * processes == searched.processes


def test_ours_measures_both_sides():
    searched = history(0.05)
    assert 20 == METHODS["ours"][0](searched)
    assert 0 == searched.processes % (2 * SIDE)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ours"])
def test_nobody_searches_where_the_last_commit_is_faster(method):
    searched = history(-0.5)
    assert None is METHODS[method][0](searched)
    assert 2 * ENDS == searched.processes


def test_a_row_counts_right_wrong_and_nothing():
    planted, clean = (row(BisectCell("git bisect run, 2 processes", 64, size, 20)) for size in (0.02, 0.0))
    shares = [float(planted[name]) for name in ("named_right", "named_wrong", "nothing_named")]
    assert 1 == pytest.approx(sum(shares))
    assert 0.2 < shares[0] < 0.9, "two processes a commit are too few for 2 %"
    assert "" == clean["named_right"]
    assert 1 == pytest.approx(float(clean["named_wrong"]) + float(clean["nothing_named"]))
    assert float(clean["lower"]) < float(clean["named_wrong"]) < float(clean["upper"])


class TwoSteps(GeneratedHistory):
    """A history in which another commit, at two thirds, makes the case longer once more."""

    def logs(self, commit, processes):
        return tuple(log + 0.2 * (commit >= 2 * self.commits // 3) for log in super().logs(commit, processes))


def test_two_named_commits_are_several():
    assert SEVERAL == METHODS["ours"][0](TwoSteps(64, 20, 0.2, np.random.default_rng(1)))


def test_a_search_that_names_a_commit_and_does_not_end_is_not_right(monkeypatch):
    real = bisect_methods.bisected
    monkeypatch.setattr(bisect_methods, "bisected", lambda *words: replace(real(*words), ended="most measurements"))
    assert SEVERAL == METHODS["ours"][0](history(0.5))
    assert None is METHODS["ours"][0](history(0.0))


@pytest.mark.parametrize("slowdown", [0.0, 0.02])
def test_several_named_commits_are_wrong(monkeypatch, slowdown):
    monkeypatch.setitem(METHODS, "several", (lambda history: SEVERAL, ""))
    found = row(BisectCell("several", 64, slowdown, 3))
    assert ("1.0000", "0.0000") == (found["named_wrong"], found["nothing_named"])


def test_all_methods_search_the_same_histories():
    chosen = list(cells(("a", "b"), 10, 20))
    assert {("a", 64, 0.0, 20), ("b", 64, 0.0, 20), ("a", 512, 0.05, 4)} <= {
        (one.method, one.commits, one.slowdown, one.histories) for one in chosen
    }
    assert len(chosen) == 2 * len(COMMITS) * len(SLOWDOWNS)


def test_the_stored_table_keeps_what_is_promised():
    """Right in 95 % at 5 % and in 90 % at 2 %, a commit named in at most 1 % of clean histories."""
    with STORED.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert list(COLUMNS) == list(table[0])
    ours = {(int(line["commits"]), float(line["slowdown"])): line for line in table if line["method"] == "ours"}
    assert {(commits, size) for commits in COMMITS for size in SLOWDOWNS} == set(ours)
    for commits in COMMITS:
        assert float(ours[commits, 0.05]["named_right"]) >= 0.95
        assert float(ours[commits, 0.02]["named_right"]) >= 0.90
        assert float(ours[commits, 0.0]["named_wrong"]) <= 0.01
    assert set(METHODS) == {line["method"] for line in table}


def test_the_guide_has_the_stored_numbers():
    text = (REPOSITORY / "docs" / "pages" / "guides" / "bisect.md").read_text()
    with STORED.open(newline="") as file:
        table = {(one["method"], one["commits"], one["slowdown"]): one for one in csv.DictReader(file)}
    lines = [line for line in text.splitlines() if re.search(r"\| (64|512) \|", line)]
    for line, (method, commits) in zip(lines, product(METHODS, COMMITS), strict=True):
        five, two, none = (table[method, str(commits), size] for size in ("0.05", "0.02", "0.0"))
        shares = [f"{float(share):.1%}".replace("%", " %")
                  for share in (five["named_right"], two["named_right"], none["named_wrong"])]  # fmt: skip
        costs = [f"{float(one['mean_processes']):.0f}" for one in (five, two)]
        cells = [str(commits), shares[0], costs[0], shares[1], costs[1], shares[2]]
        assert cells == [word.strip() for word in line.strip("|").split("|")[1:]], line


def test_a_method_that_is_not_installed_has_no_version():
    assert bool(find_spec("git_bayesect")) == bool(version("git-bayesect"))
    assert "git" == version("git bisect run, 2 processes")
