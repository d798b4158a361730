"""Exchange of files between a checkout and its history: fetch, keep and verify."""

import re
import time
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from prism_bench.errors import HistoryMoved, PrismBenchError, ResultsError, UsageError
from prism_bench.extensions.ci import alerts as alert_ledger
from prism_bench.extensions.ci import asv_runs as asv_ledger
from prism_bench.extensions.ci.keeping.branch import Base, Branch
from prism_bench.extensions.ci.keeping.storage import (
    ALERTS,
    ASV,
    BRANCH,
    DEFAULT,
    LEDGERS,
    RECORDS,
    Bucket,
    Content,
    FolderStorage,
    HistoryState,
    HistoryTarget,
    family,
    free_name,
    is_merged,
    is_record,
    is_shard,
    local_files,
    local_path,
    require_records,
    sound_contents,
    url_storage,
)
from prism_bench.io import project
from prism_bench.io.documents import json_of
from prism_bench.io.files import write_atomically
from prism_bench.record import store
from prism_bench.record.store.history import listed
from prism_bench.record.store.parquet import parts_of
from prism_bench.record.store.shards import ShardFolder

# Merging of two contents: ledgers of runs, and the state of alerts.


def merged(name: str, base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """Return the content that has the changes of both since `base`, which is None if nothing was common.

    Raise ResultsError for a state of alerts that cannot be read.
    """
    if ours == theirs or ours == base:
        return theirs
    if theirs == base:
        return ours
    if name.startswith(f"{LEDGERS}/"):
        # The lines of theirs come first: a line keeps its place, and so its commit.
        lines = theirs.splitlines()
        known = set(lines)
        lines += [line for line in ours.splitlines() if line not in known]
        return b"".join(line + b"\n" for line in lines)
    with TemporaryDirectory() as folder:
        ledgers = [_alerts(Path(folder) / str(i), name, text) for i, text in enumerate((base, ours, theirs))]
        path = Path(folder) / "merged"
        alert_ledger.write(alert_ledger.merged(*ledgers), path)
        return path.read_bytes()


def _alerts(path: Path, name: str, text: bytes | None) -> alert_ledger.Ledger:
    if text is not None:
        path.write_bytes(text)
    try:
        return alert_ledger.read(path)
    except ResultsError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise ResultsError(f"{name}: {reason}; correct or remove the file, then try again") from error


# Differences between the versions of a checkout and its history.

# write: the source's; merge: both; number: the source's under another name; replace: the last writer's; None: nothing
Action = Literal["write", "merge", "number", "replace"]


@dataclass(frozen=True)
class _Digests:
    """Digests of a file at its source, at its destination, and when both last agreed; empty: absent."""

    source: str
    destination: str
    base: str


def _action_on(name: str, digests: _Digests) -> Action | None:
    """Return the action that brings the source's version to the destination without loss there."""
    if not digests.destination:
        return "write"
    if digests.source == digests.destination:
        return None
    if is_merged(name):
        return "merge"
    if digests.destination == digests.base:
        return "write"
    if digests.source == digests.base:
        return None
    return "number" if is_record(name) else "replace"


@dataclass(frozen=True)
class _Remote:
    """History with a single version of each file: `digests` by name, and the contents `made` by merging.

    `problems` are sentences on missing or damaged contents; with None such a content is an error.
    """

    target: HistoryTarget
    digests: Mapping[str, str]
    made: Mapping[str, bytes]
    problems: list[str] | None = None

    def load(self, names: Container[str]) -> dict[str, bytes]:
        """Return the contents of the files in `names` that the history has."""
        kept = [(name, digest) for name, digest in self.digests.items() if name in names and name not in self.made]
        loaded = {name: data for (name, _), data in _sound(self.target, kept, self.problems)}
        return {**loaded, **{name: data for name, data in self.made.items() if name in names}}


def _sound(
    target: HistoryTarget, files: Sequence[tuple[str, str]], problems: list[str] | None
) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Yield each file, name and digest, with its content.

    A missing or damaged content is left out, and a sentence is added to `problems`; with None, raise its error.
    """
    for file, data in zip(files, sound_contents(target, files), strict=True):
        if isinstance(data, bytes):
            yield file, data
        elif problems is None:
            raise data
        else:
            problems.append(str(data))


def families(digests: Mapping[str, str]) -> dict[tuple[str, str], set[str]]:
    """Return the digests of records by the common part of their names."""
    by_family: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name, digest in digests.items():
        if is_record(name):
            by_family[family(name)].add(digest)
    return by_family


def _resolved(target: HistoryTarget, state: HistoryState, problems: list[str] | None = None) -> _Remote:
    """Return the history with a single version of each file; simultaneous versions are merged or numbered.

    Versions that are missing or damaged are left out; see `_sound`.
    """
    digests = {name: versions[-1] for name, versions in state.files.items()}
    made: dict[str, bytes] = {}
    for name, versions in state.files.items():
        if len(versions) < 2 or not (is_merged(name) or is_record(name)):
            continue
        contents = {
            digest: data for (_, digest), data in _sound(target, [(name, version) for version in versions], problems)
        }
        if not contents:
            del digests[name]
        elif is_merged(name):
            made[name] = reduce(lambda first, second, name=name: merged(name, None, second, first), contents.values())
            digests[name] = target.digest(made[name])
        else:
            digests[name] = next(iter(contents))
            for digest, data in contents.items():
                if digest not in families(digests)[family(name)]:
                    other = free_name(name, digests)
                    made[other], digests[other] = data, digest
    return _Remote(target, digests, made, problems)


# Fetch, keep and verify.
#
# A keep only adds files and merges state; it removes nothing. All files of simultaneous keeps are kept:
#
#     records             both; the second under the next number of its name
#     ledgers of runs     the lines of both
#     state of alerts     the entries of both, without entries that one of them removed
#     shards of records   the last writer's; a record that a shard lacks is read from the record
#     asv's results       the last writer's; a branch and a bucket keep the former content as well

_TRIES, WAIT = 6, 0.5  # during simultaneous keeps; seconds, longer after every try


@dataclass(frozen=True)
class Fetched:
    """Names of the files that a fetch wrote, the number in the history, and a sentence for each damaged file."""

    written: tuple[str, ...]
    files: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeptHistory:
    """Name of a keep, None if nothing was new, and the names of the files that it wrote."""

    id: str | None
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checkout:
    """Kept files of a checkout: records below `runs`, all other files next to it; `base` is the last common state."""

    runs: Path
    base: Base


def fetch(target: HistoryTarget, checkout: Checkout) -> Fetched:
    """Write the files of the history into the checkout atomically; local changes since the last keep stay.

    A file that is missing or damaged in the history is left out. Raise ResultsError for an unreadable history.
    """
    state, problems = target.read(), list[str]()
    remote = _resolved(target, state, problems)
    actions = _fetch_actions(remote, checkout)
    loaded = remote.load({name for name, action in actions.items() if action or is_merged(name)})
    local = local_files(checkout.runs)
    written: list[str] = []
    held: set[str] | None = None
    # Shards first: records that they hold need not be fetched. New files before replaced ones.
    for name in sorted(actions, key=lambda name: (not is_shard(name), name in local)):
        if held is None and not is_shard(name):
            held = {f"{RECORDS}/{file}" for file in listed(ShardFolder(checkout.runs)).entries}
        if (action := actions[name]) and name in loaded and not (name in (held or ()) and name not in local):
            written += _write_local(name, action, loaded[name], checkout, {*remote.digests, *local, *written})
    common = {
        name: digest
        for name, digest in remote.digests.items()
        if _digest(local_path(checkout.runs, name), target) == digest
    }
    checkout.base.write(common, {name: data for name, data in loaded.items() if is_merged(name)})
    files = sum(map(len, state.files.values())) if problems else len(remote.digests)
    return Fetched(tuple(written), files, tuple(problems))


def _fetch_actions(remote: _Remote, checkout: Checkout) -> dict[str, Action | None]:
    """Return the action that each file of the history needs in the checkout."""
    local = local_files(checkout.runs)
    ours = {name: _digest(path, remote.target) for name, path in local.items()}
    here, there = families(ours), families(remote.digests)
    actions: dict[str, Action | None] = {}
    for name, theirs in remote.digests.items():
        mine = _digest(local_path(checkout.runs, name), remote.target)
        action = _action_on(name, _Digests(theirs, mine, checkout.base.digest(name)))
        if action == "number" and mine in there[family(name)]:
            action = "write"  # ours has another name in the history
        elif action == "number" and theirs in here[family(name)]:
            action = None  # theirs has another name here
        actions[name] = None if action == "replace" else action  # of asv's results ours is last, with the next keep
    return actions


def _write_local(name: str, action: Action, theirs: bytes, checkout: Checkout, taken: Container[str]) -> list[str]:
    """Write a file of the history by the action; return the names that changed."""
    wanted = theirs
    if action == "merge":
        ours = local_path(checkout.runs, name).read_bytes()
        wanted = merged(name, checkout.base.content(name), ours, theirs)
        if wanted == ours:
            return []
    elif action == "number":
        name = free_name(name, taken)
    write_atomically(local_path(checkout.runs, name), wanted)
    return [name]


def keep(target: HistoryTarget, checkout: Checkout) -> KeptHistory:
    """Keep the files of the checkout; if another keeper was faster, read the history again and merge.

    Raise HistoryMoved if other keepers were faster `_TRIES` times in a row, UsageError for an invalid folder of
    records; then nothing of this keep is written.
    """
    for attempt in range(_TRIES):
        state = target.read()
        require_records(checkout.runs)
        remote = _resolved(target, state)
        changes, common = _changes(remote, checkout)
        try:
            name = target.write(state, changes) if changes else None
        except HistoryMoved:
            if attempt == _TRIES - 1:
                raise
            time.sleep(WAIT * (attempt + 1))
            continue
        files = local_files(checkout.runs)
        checkout.base.write(common, {name: files[name].read_bytes() for name in common if is_merged(name)})
        return KeptHistory(name, tuple(sorted(changes)))
    raise AssertionError("the last try returns or raises")


def _changes(remote: _Remote, checkout: Checkout) -> tuple[dict[str, Content], dict[str, str]]:
    """Return the changes of the history by name, and the digests that are common after them."""
    changes: dict[str, Content] = dict(remote.made)
    digests, common = dict(remote.digests), dict[str, str]()
    files = local_files(checkout.runs)
    theirs, there = remote.load({name for name in files if is_merged(name)}), families(digests)
    for name, path in files.items():
        ours = _digest(path, remote.target)
        action = _action_on(name, _Digests(ours, digests.get(name, ""), checkout.base.digest(name)))
        if action and is_record(name) and ours in there[family(name)]:
            continue  # it has another name there
        if action == "number":
            name = free_name(name, {*digests, *files})
            changes[name], digests[name] = path, ours
            continue
        if action == "merge":
            mixed = merged(name, checkout.base.content(name), path.read_bytes(), theirs[name])
            changes |= {name: mixed} if mixed != theirs[name] else {}
        elif action:
            changes[name] = path
        if action or digests.get(name) == ours:
            common[name] = ours
    return changes, common


def verified(target: HistoryTarget) -> tuple[int, list[str]]:
    """Return the number of files in the history, and a sentence for each that is missing, damaged or unreadable."""
    problems = list(target.problems())
    state = target.read()
    files = [(name, digest) for name, versions in state.files.items() for digest in versions]
    with TemporaryDirectory() as folder:
        for (name, _), data in zip(files, sound_contents(target, files), strict=True):
            if not isinstance(data, bytes):
                problems.append(str(data))
                continue
            path = Path(folder) / Path(name).name
            path.write_bytes(data)
            try:
                reader = parts_of if is_shard(name) else _READERS[name.partition("/")[0]]
                reader(path)
            except PrismBenchError as error:
                problems.append(str(error).replace(str(path), name, 1))
            path.unlink()
    return len(files), problems


_READERS = {
    RECORDS: store.read,
    LEDGERS: asv_ledger.read,
    ALERTS: alert_ledger.read,
    ASV: lambda path: json_of(path, "a result of asv"),
}


def _digest(path: Path, target: HistoryTarget) -> str:
    """Return the digest of a local file; empty if the file is missing."""
    return target.digest(path.read_bytes()) if path.is_file() else ""


# The history at an address, or that of the table `history` in the project's configuration.


@dataclass(frozen=True)
class HistoryKeys:
    """Keys of the table: an address, as `--to` takes it, and options for fsspec, such as `endpoint_url`."""

    to: str | None = None
    options: dict[str, object] = field(default_factory=dict[str, object])


def opened(address: str, folder: Path, options: Mapping[str, object] | None = None) -> HistoryTarget:
    """Return the target of an address: `branch:NAME` of the repository around `folder`, an fsspec URL, or a folder.

    `options` go to fsspec. Raise UsageError for an invalid address or a missing package.
    """
    if address.startswith(BRANCH):
        return Branch(address.removeprefix(BRANCH), folder)
    if re.match(r"[a-z][a-z0-9+.-]+://", address):
        return Bucket(url_storage(address, options or {}))
    if re.match(r"[a-z0-9]{2,}:", address):
        raise UsageError(f"--to {address}: write branch:NAME, a folder, or a URL such as s3://bucket/prefix")
    return Bucket(FolderStorage(folder / address))


def root() -> Path:
    """Return the folder of the project's configuration, else the current one."""
    configuration = project.current()
    return configuration.root if configuration else Path.cwd()


def history_keys() -> HistoryKeys:
    """Return the configured keys; raise a UsageError for wrong ones."""
    configuration = project.current()
    return configuration.section("history", HistoryKeys) if configuration else HistoryKeys()


def history_target(to: str | None) -> HistoryTarget:
    """Return the history of the address, else the configured one, else the default branch."""
    keys = history_keys()
    if to and not to.startswith(BRANCH) and "://" not in to:
        return opened(to, Path.cwd())
    return opened(to or keys.to or DEFAULT, root(), keys.options)


def checkout_of(target: HistoryTarget, runs: Path) -> Checkout:
    """Return the checkout whose records are below `runs`."""
    return Checkout(runs, Base(root(), target.address))
