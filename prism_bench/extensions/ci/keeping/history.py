"""A history and the files of a checkout: fetch, keep, list and verify.

A keep only adds files and merges state; it removes nothing. What keepers at the same time wrote is all kept:

    records             both; the second under the next number of its name
    ledgers of runs     the lines of both
    state of alerts     the entries of both; what one of them removed is removed
    shards of records   the last writer's; a record that a shard lacks is read from the record
    asv's results       the last writer's; a branch and a bucket keep the former content as well
"""

import time
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import HistoryMoved
from prism_bench.extensions.ci.keeping.base import Base
from prism_bench.extensions.ci.keeping.checks import content_problems
from prism_bench.extensions.ci.keeping.differences import Action, Digests, Remote, action, families, resolved
from prism_bench.extensions.ci.keeping.merging import merged
from prism_bench.extensions.ci.keeping.names import (
    RECORDS,
    family,
    free_name,
    is_merged,
    is_record,
    is_shard,
    local_files,
    local_path,
    require_records,
)
from prism_bench.extensions.ci.keeping.targets import Content, HistoryState, HistoryTarget
from prism_bench.io.files import write_atomically
from prism_bench.record.store.history import listed
from prism_bench.record.store.shards import ShardFolder

TRIES, WAIT = 6, 0.5  # while others keep at the same time; seconds, longer after every try


@dataclass(frozen=True)
class Fetched:
    """Names of the files that a fetch wrote, how many the history has, and a sentence for each that is damaged."""

    written: tuple[str, ...]
    files: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeptHistory:
    """Name of a keep, None where nothing was new, and the names of the files that it wrote."""

    id: str | None
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checkout:
    """The files of a checkout that are kept: records below `runs`, the others next to it; `base` was common last."""

    runs: Path
    base: Base


def fetch(target: HistoryTarget, checkout: Checkout) -> Fetched:
    """Write what the history has here, each file whole or not at all; local changes since the last keep stay.

    A file that is missing there or damaged is left out. Raise a ResultsError for a history that cannot be read.
    """
    state, problems = target.read(), list[str]()
    remote = resolved(target, state, problems)
    actions = _fetch_actions(remote, checkout)
    loaded = remote.load({name for name, what in actions.items() if what or is_merged(name)})
    local = local_files(checkout.runs)
    written: list[str] = []
    held: set[str] | None = None
    # Shards first, since they hold what records need not be fetched for; what is new before what is replaced.
    for name in sorted(actions, key=lambda name: (not is_shard(name), name in local)):
        if held is None and not is_shard(name):
            held = _held(checkout.runs)
        if (what := actions[name]) and name in loaded and not (name in (held or ()) and name not in local):
            written += _write_local(name, what, loaded[name], checkout, {*remote.digests, *local, *written})
    common = {name: digest for name, digest in remote.digests.items()
              if _digest(local_path(checkout.runs, name), target) == digest}  # fmt: skip
    checkout.base.write(common, {name: data for name, data in loaded.items() if is_merged(name)})
    files = sum(map(len, state.files.values())) if problems else len(remote.digests)
    return Fetched(tuple(written), files, tuple(problems))


def _fetch_actions(remote: Remote, checkout: Checkout) -> dict[str, Action | None]:
    """Return what each file of the history needs here."""
    local = local_files(checkout.runs)
    ours = {name: _digest(path, remote.target) for name, path in local.items()}
    here, there = families(ours), families(remote.digests)
    actions: dict[str, Action | None] = {}
    for name, theirs in remote.digests.items():
        mine = _digest(local_path(checkout.runs, name), remote.target)
        what = action(name, Digests(theirs, mine, checkout.base.digest(name)))
        if what == "number" and mine in there[family(name)]:
            what = "write"  # ours has another name in the history
        elif what == "number" and theirs in here[family(name)]:
            what = None  # theirs has another name here
        actions[name] = None if what == "replace" else what  # of asv's results ours is last, with the next keep
    return actions


def _held(runs: Path) -> set[str]:
    """Return the names of the records that shards below `runs` hold: their raw samples are fetched when needed."""
    return {f"{RECORDS}/{file}" for file in listed(ShardFolder(runs)).entries}


def _write_local(name: str, what: Action, theirs: bytes, checkout: Checkout, taken: Container[str]) -> list[str]:
    """Write a file of the history as `what` has it; return the names that changed."""
    wanted = theirs
    if what == "merge":
        ours = local_path(checkout.runs, name).read_bytes()
        wanted = merged(name, checkout.base.content(name), ours, theirs)
        if wanted == ours:
            return []
    elif what == "number":
        name = free_name(name, taken)
    write_atomically(local_path(checkout.runs, name), wanted)
    return [name]


def keep(target: HistoryTarget, checkout: Checkout) -> KeptHistory:
    """Keep the files of the checkout; where another keeper was first, read the history again and merge.

    Raise HistoryMoved where others were first TRIES times in a row, or a UsageError where the folder of the records is
    none; then nothing of this keep is written.
    """
    for attempt in range(TRIES):
        state = target.read()
        require_records(checkout.runs)
        remote = resolved(target, state)
        changes, common = _changes(remote, checkout)
        try:
            made = _write_remote(target, state, changes)
        except HistoryMoved:
            if attempt == TRIES - 1:
                raise
            time.sleep(WAIT * (attempt + 1))
            continue
        files = local_files(checkout.runs)
        checkout.base.write(common, {name: files[name].read_bytes() for name in common if is_merged(name)})
        return KeptHistory(made, tuple(sorted(changes)))
    raise AssertionError("the last try returns or raises")


def _write_remote(target: HistoryTarget, state: HistoryState, changes: Mapping[str, Content]) -> str | None:
    return target.write(state, changes) if changes else None


def _changes(remote: Remote, checkout: Checkout) -> tuple[dict[str, Content], dict[str, str]]:
    """Return what the history gets, by name, and the digests of what is common after that."""
    changes: dict[str, Content] = dict(remote.made)
    digests, common = dict(remote.digests), dict[str, str]()
    files = local_files(checkout.runs)
    theirs, there = remote.load({name for name in files if is_merged(name)}), families(digests)
    for name, path in files.items():
        ours = _digest(path, remote.target)
        what = action(name, Digests(ours, digests.get(name, ""), checkout.base.digest(name)))
        if what and is_record(name) and ours in there[family(name)]:
            continue  # it has another name there
        if what == "number":
            name = free_name(name, {*digests, *files})
            changes[name], digests[name] = path, ours
            continue
        if what == "merge":
            mixed = merged(name, checkout.base.content(name), path.read_bytes(), theirs[name])
            changes |= {name: mixed} if mixed != theirs[name] else {}
        elif what:
            changes[name] = path
        if what or digests.get(name) == ours:
            common[name] = ours
    return changes, common


def verified(target: HistoryTarget) -> tuple[int, list[str]]:
    """Return how many files the history has, and a sentence for each that is missing, damaged or no such file."""
    found = target.problems()
    state = target.read()
    files = [(name, digest) for name, versions in state.files.items() for digest in versions]
    return len(files), [*found, *content_problems(target, files)]


def _digest(path: Path, target: HistoryTarget) -> str:
    """Return the digest of a local file; empty where there is none."""
    return target.digest(path.read_bytes()) if path.is_file() else ""
