"""Intervals of claims hold on other boards: of the same machine code on two boards of one kind, at least 95 % meet."""

from collections.abc import Iterator

import pytest

from docs.readme import ROOT
from prism_bench.analysis import peers
from prism_bench.errors import ResultsError
from prism_bench.extensions.claims.document import ClaimContest, board_error, ratio_of
from prism_bench.extensions.claims.replaying import meet
from prism_bench.record import store

RECORDS = ROOT / "reports" / "runs" / "nvidia-h200"
PAIR = ("20261123T070904Z-f63d9242", "20261127T141305Z-03a5d1ab")  # of two boards of one host and two of another


def contest(record, case, peer):
    return ClaimContest("cold_time", (record,), (0, case.name, "kernel"), (0, case.name, f"peer:{peer}"))


def ratios(one, other) -> Iterator[tuple]:
    """Yield the ratios in both records of each case of the same machine code against each peer of the same versions."""
    for case in one.cases:
        there = other.case(case.name)
        sass = case.code.get("sass")
        if case.ceiling or there is None or not sass or sass != there.code.get("sass"):
            continue
        for peer in peers.peers(case):
            if case.peers.get(peer.name) != there.peers.get(peer.name):
                continue
            try:
                found = [ratio_of(contest(record, case, peer.name)) for record in (one, other)]
            except ResultsError:  # wrong, unstable or without a time: makes no claim
                continue
            if found[0].low is not None and found[1].low is not None:
                yield case.name, peer.name, *found


def test_intervals_of_two_boards_meet_as_often_as_they_state():
    one, other = (store.read(RECORDS / f"{name}.json.gz") for name in PAIR)
    assert not set(one.uuids) & set(other.uuids), "these are other boards"
    found = list(ratios(one, other))
    missed = [row for row in found if not meet(*row[2:])]
    assert len(found) > 100
    assert len(missed) <= 0.05 * len(found), missed


def test_short_times_differ_more_between_boards():
    errors = [board_error(seconds) for seconds in (1e-6, 1e-5, 1e-3, 1.0)]
    assert errors == sorted(errors, reverse=True)
    assert pytest.approx(board_error(1.0), rel=0.01) == board_error(10.0)
