"""`prism-bench store`: shards of records, the parts of a run, and the history of results apart from the sources."""

from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options
from prism_bench.errors import ResultsError, UsageError
from prism_bench.extension import offered
from prism_bench.units import count_text, parsed_since

if TYPE_CHECKING:
    from collections.abc import Generator

NAME = "store"


class StoreAction(StrEnum):
    """What to do with the records."""

    MIGRATE = "migrate"
    COMPACT = "compact"
    VERIFY = "verify"
    PRUNE = "prune"
    MERGE = "merge"
    FETCH = "fetch"
    KEEP = "keep"
    LIST = "list"


_OF_HISTORY = (StoreAction.FETCH, StoreAction.KEEP, StoreAction.LIST)  # and verify with --to


_ActionArgument = Annotated[
    StoreAction,
    typer.Argument(help="Choose what to do: migrate, compact, verify, prune or merge; fetch, keep or list."),
]
_PartsArgument = Annotated[
    list[Path] | None, typer.Argument(help="Merge these run records, one of each part; two or more.")
]
_KeepOption = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Keep raw samples of the last 90d or 12w, or since a day, when pruning."),
]
_DropOption = Annotated[
    bool, typer.Option("--drop", help="Give up raw samples that no history has, too: they are lost.")
]
_ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="ADDRESS",
        help="Use the history branch:NAME, a folder or a URL such as s3://bucket/prefix; default: the configured one.",
    ),
]


def command(
    action: _ActionArgument,
    parts: _PartsArgument = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    keep_raw: _KeepOption = None,
    drop: _DropOption = False,
    dry_run: options.DryRunOption = False,
    to: _ToOption = None,
    catalogue: options.CatalogueOption = None,
    output: options.RecordFileOption = None,
    json: options.JsonOption = False,
) -> None:
    """Keep records in shards and in a history, and merge parts.

    `migrate` adds all records to shards, and later runs add theirs; `compact` puts the small files of runs together;
    `verify` reads everything; `prune` removes records whose raw samples are old and kept elsewhere.

    `merge` makes one record of PARTS that GPUs of one kind measured, each with `run --part I/N --output FILE`. All
    variants of a kernel belong in one part; only ceiling benchmarks are in every part. Parts that differ in machine,
    software, protocol, commit or tuning are refused. The record's duration is the longest part's. No record is
    replaced: the merged one gets a name that is free.

    `fetch`, `keep` and `list` are of the history: records, the ledger of runs, asv's results and the state of alerts,
    on a git branch, in a folder or in a bucket. Fetch them before a nightly run, keep them after it. Two machines may
    keep at the same time. A keep removes nothing, and the checkout stays as it is. `verify --to` reads all of it.

    Ends with 1 where verify or fetch finds damage, and where migrate leaves a record out.
    """
    is_prune, is_merge = action is StoreAction.PRUNE, action is StoreAction.MERGE
    of_history = action in _OF_HISTORY or (action is StoreAction.VERIFY and to is not None)
    pruning = {"--drop": drop, "--dry-run": dry_run, "--keep-raw": keep_raw}
    _refuse(action, "prune", {} if is_prune else pruning)
    _refuse(action, "a history", {} if is_prune or of_history else {"--to": to})
    _refuse(action, "merge", {} if is_merge else {"a run record": parts, "--output": output})
    if is_prune and keep_raw is None:
        raise UsageError("store prune: prune needs --keep-raw, such as --keep-raw 90d")
    if not (is_merge or of_history) and not runs.is_dir():
        raise ResultsError(f"{runs}: no folder of records; 'prism-bench run' makes one, --runs names another")
    if is_prune:
        plain, lines, code = _prune(runs, keep_raw or "", drop=drop, dry_run=dry_run, to=to, catalogue=catalogue)
    elif is_merge:
        plain, lines, code = _merge(parts or [], runs, output, quiet=json)
    elif of_history:
        plain, lines, code = _history(action, to, runs)
    else:
        with _progress() as report:
            plain, lines, code = _ACTIONS[action](runs, report)
    if json:
        options.print_json({"action": action, "runs": str(runs), **plain})
    else:
        for line in lines:
            options.line(line)
    raise SystemExit(code)


def _refuse(action: StoreAction, use: str, values: dict[str, object]) -> None:
    """Raise a UsageError for the first value that is set: it is for another use of the store."""
    if name := next((name for name, value in values.items() if value), None):
        raise UsageError(f"store {action}: {name} is for {use}")


_Answer = tuple[dict[str, object], list[str], int]  # for programs, for people, the exit code
_Report = Callable[[int, int], None]


@contextmanager
def _progress() -> "Generator[_Report]":
    with options.err().status("reading records") as status:
        yield lambda done, total: status.update(f"{done} of {total}")


def _migrate(runs: Path, report: _Report) -> _Answer:
    from prism_bench.record.store.history import migrate

    done = migrate(runs, report)
    added, written = count_text(done.records, "record"), count_text(len(done.written), "shard")
    lines = [*done.problems, f"store: {added} added, {written} written below {runs}"]
    plain = {"records": done.records, "written": _names(done.written), "problems": list(done.problems)}
    return plain, lines, int(bool(done.problems))


def _compact(runs: Path, report: _Report) -> _Answer:
    from prism_bench.record.store.history import compact

    written = compact(runs, report)
    line = f"store: {count_text(len(written), 'month')} put together" if written else "store: nothing to put together"
    return {"written": _names(written)}, [line], 0


def _verify(runs: Path, report: _Report) -> _Answer:
    from prism_bench.record.store.history import verify

    result = verify(runs, report)
    holds = (
        f"{count_text(result.records, 'record')} in {count_text(result.shards, 'shard')}, {result.bytes / 1e6:.1f} MB"
    )
    raw = f"raw samples of {count_text(result.raw, 'record')} are here"
    missing = f"{count_text(len(result.missing), 'record')} in no shard: 'prism-bench store migrate' adds them"
    lines = [*result.problems, f"store: {holds}; {raw}", *([f"store: {missing}"] if result.missing else [])]
    plain = {**vars(result), "problems": list(result.problems), "missing": list(result.missing)}
    return plain, lines, int(bool(result.problems))


def _prune(runs: Path, keep_raw: str, *, drop: bool, dry_run: bool, to: str | None, catalogue: Path | None) -> _Answer:
    from prism_bench.analysis.gate.budgets import folder_of, used_by_baselines
    from prism_bench.record.store.history import prune

    before = parsed_since(keep_raw, datetime.now(UTC).date())
    if before is None:
        raise UsageError(f"--keep-raw {keep_raw}: write 90d, 12w, or a day such as 2026-08-01")
    used = used_by_baselines(folder_of(options.open_catalogue(catalogue)))
    opened = offered("raw samples")
    if not drop and opened is None:
        raise UsageError("store prune: no extension that keeps raw samples is installed; --drop gives them up")
    kept = None if drop or opened is None else opened(to)
    with options.err().status("comparing records"):
        pruned = prune(runs, before.isoformat(), used, kept, remove=not dry_run)
    word = "would be removed" if dry_run else "removed"
    reasons = {reason: sum(other == reason for other in pruned.stay.values()) for reason in pruned.stay.values()}
    lines = [f"store: {count_text(count, 'record')} kept: {reason}" for reason, count in reasons.items()]
    lines.append(
        f"store: raw samples of {count_text(len(pruned.removed), 'record')} {word}, {pruned.bytes / 1e6:.1f} MB"
    )
    plain = {
        "before": before.isoformat(),
        "dry_run": dry_run,
        "removed": list(pruned.removed),
        "bytes": pruned.bytes,
        "stay": dict(pruned.stay),
    }
    return plain, lines, 0


def _history(action: StoreAction, to: str | None, runs: Path) -> _Answer:
    acted = offered("history actions")
    if acted is None:
        raise UsageError(f"store {action}: no extension that keeps a history is installed")
    return acted(action.value, to, runs)


def _merge(parts: list[Path], runs: Path, output: Path | None, *, quiet: bool) -> _Answer:
    from prism_bench.record import store
    from prism_bench.run import merge

    target = store.RecordPlace(runs, output)
    records = [(str(path), store.read(path)) for path in parts]
    record = merge(records)
    cut_short = [origin for origin, part in records if not part.complete]
    place = target.save(record)
    options.add_to_shards([place])
    for origin in () if quiet else cut_short:
        options.remark(f"{origin} was cut short, so the merged record is marked incomplete", "yellow")
    kernels = sum(len(part["kernels"]) for part in record.parts)
    counts = (
        f"{count_text(len(record.parts), 'part')}, {count_text(kernels, 'kernel')} and "
        f"the ceilings, {count_text(len(record.cases), 'case')}"
    )
    plain = {
        "record": str(place),
        "complete": record.complete,
        "cut_short": cut_short,
        "cases": len(record.cases),
        "uuids": list(record.uuids),
        "parts": list(record.parts),
    }
    return plain, [f"merged: {counts}", f"record: {place}"], 0


def _names(paths: "list[Path] | tuple[Path, ...]") -> list[str]:
    return [str(path) for path in paths]


_ACTIONS: dict[StoreAction, Callable[[Path, _Report], _Answer]] = {
    StoreAction.MIGRATE: _migrate,
    StoreAction.COMPACT: _compact,
    StoreAction.VERIFY: _verify,
}
