"""Order of records: by the commits that they measured, not by the clock.

asv measures the newest commit first and a backfill jumps, so the time of measuring does not order what was measured.
A commit comes after its ancestors where a repository at hand knows it, else by its date; records of one commit are in
the order in which they were measured. A record whose commit has no known date follows what was measured before it on
its machine.
"""

import os
import re
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from prism_bench.record.identity import Owner, timestamp
from prism_bench.record.store.points import Facts

_HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SECONDS = 60.0  # a repository that takes longer to list its commits is not asked again by one command
_Place = tuple[str | int, ...]  # sorts commits, and with the time of measuring records
_FIRST: _Place = ("", -1, "", "")


@dataclass(frozen=True)
class CommitOrder:
    """What the repositories around `folders` know of commits: `ranks`, ancestors first, and `dates` (UTC, ISO 8601)."""

    folders: tuple[Path, ...] = ()
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])
    dates: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def around(cls, records: Iterable[Facts], folders: Iterable[Path]) -> "CommitOrder":
        """Return what is known of the records' commits by the first repository around `folders` that knows any."""
        places = tuple(folders)
        commits = list(dict.fromkeys(one.commit for one in records if one.commit and _HASH.fullmatch(one.commit)))
        for repository in dict.fromkeys(filter(None, map(_repository, places))) if commits else ():
            dates = _dates(repository, commits)
            if dates:
                return cls(places, _ranks(repository, dates), dates)
        return cls(places)

    def sorted(self, records: Sequence[Facts]) -> tuple[list[int], list[int]]:
        """Return the places of the records in their order, and the places of those whose commit has no known date.

        Without a date, records of one commit alone are in their order all the same. A commit's known date is that of
        the repository, else that of any of its records.
        """
        commits = self._commits(records)
        known: list[_Place | None] = [commits.get(one.commit or "") for one in records]
        measured: dict[Owner, list[tuple[str, str, int]]] = {}
        for place, one in enumerate(records):
            if known[place]:
                measured.setdefault(one.owner, []).append((one.created, one.file, place))
        for owned in measured.values():
            owned.sort()
        keys: list[_Place] = []
        for one, commit in zip(records, known, strict=True):
            within = one.created, one.file
            if commit is None:
                owned = measured.get(one.owner, [])
                before = bisect_right(owned, (*within, len(records)))
                previous = owned[before - 1][2] if before else -1
                last = records[previous]
                commit = (*(known[previous] or ()), last.created, last.file) if before else _first(one, bool(owned))
            keys.append((*commit, *within))
        order = sorted(range(len(records)), key=keys.__getitem__)
        of: dict[Owner, set[str | None]] = {}
        for one in records:
            of.setdefault(one.owner, set()).add(one.commit)
        several = {owner for owner, names in of.items() if len(names) > 1 or None in names}
        return order, [place for place in order if known[place] is None and records[place].owner in several]

    def _commits(self, records: Sequence[Facts]) -> dict[str, _Place]:
        """Return what sorts each commit of a known date: ancestors first, others by date between them."""
        first: dict[str, str] = {}
        dates = dict(self.dates)
        for one in records:
            if one.commit:
                first[one.commit] = min(first.get(one.commit, one.created), one.created)
                if one.committed:
                    dates.setdefault(one.commit, one.committed)
        found: dict[str, _Place] = {}
        newest = ""
        for commit in sorted((one for one in first if one in self.ranks), key=self.ranks.__getitem__):
            newest = max(newest, dates[commit])  # a child whose clock was slow is no older than its parent
            found[commit] = newest, self.ranks[commit], "", commit
        for commit in first:
            if commit in dates and commit not in found:
                found[commit] = dates[commit], -1, first[commit], commit
        return found

    def dated(self, records: Iterable[Facts]) -> Iterator[Facts]:
        """Yield the records, those that do not know the time of their commit with that of the repository."""
        for one in records:
            date = None if one.committed else self.dates.get(one.commit or "")
            yield replace(one, committed=date) if date else one


def _first(one: Facts, others: bool) -> _Place:
    """Return the place of a record without a date that nothing with one precedes: before the `others` of its owner."""
    return _FIRST if others else (one.created, -1, "", "")


def _repository(folder: Path) -> Path | None:
    """Return the folder, or the nearest one around it, that is a checkout."""
    here = folder.resolve()
    return next((one for one in (here, *here.parents) if (one / ".git").exists()), None)


def _dates(repository: Path, commits: Sequence[str]) -> dict[str, str]:
    """Return the dates of those commits that the repository has."""
    rows = _git(repository, commits, "cat-file", "--batch-check=%(objecttype)")
    known = [commit for commit, row in zip(commits, rows, strict=False) if row == "commit"]
    rows = _git(repository, known, "rev-list", "--no-walk=unsorted", "--timestamp", "--stdin") if known else []
    pairs = (row.split() for row in rows)
    return {commit: timestamp(datetime.fromtimestamp(int(seconds), UTC)) for seconds, commit in pairs}


def _ranks(repository: Path, dates: Mapping[str, str]) -> dict[str, int]:
    """Return the number of each commit, ancestors first; nothing older than the oldest commit's parents is listed."""
    oldest = min(dates, key=dates.__getitem__)
    listed = _git(repository, [*dates, f"^{oldest}^@"], "rev-list", "--topo-order", "--reverse", "--stdin")
    ranks = {commit: rank for rank, commit in enumerate(listed) if commit in dates}
    if len(ranks) == len(dates):
        return ranks
    listed = _git(repository, list(dates), "rev-list", "--topo-order", "--reverse", "--stdin")
    return {commit: rank for rank, commit in enumerate(listed) if commit in dates}


def _git(repository: Path, lines: Sequence[str], *words: str) -> list[str]:
    """Return the lines that git prints for the `lines` that it reads; none where it fails.

    Of a clone that has a part of the objects nothing is fetched.
    """
    environment = os.environ | {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *words], input="".join(f"{line}\n" for line in lines), env=environment,
            capture_output=True, text=True, timeout=_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
