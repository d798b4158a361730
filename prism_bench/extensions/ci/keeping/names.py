"""Names of the files of a history: a folder of PLACES, and the path in it; records may be in any folder here."""

from collections.abc import Container
from itertools import islice
from pathlib import Path, PurePosixPath

from prism_bench.errors import ResultsError, UsageError
from prism_bench.io.files import ENDING, confined
from prism_bench.record.store.records import in_order, numbered
from prism_bench.record.store.shards import ENDING as SHARD

RECORDS, LEDGERS, ASV, ALERTS = PLACES = ("runs", "nights", "asv-nights", "alerts")


def is_kept(name: str) -> bool:
    """Return whether the name belongs to a history: a file in one of PLACES, by a path that stays there."""
    parts = PurePosixPath(name).parts
    return len(parts) > 1 and parts[0] in PLACES and ".." not in parts and str(PurePosixPath(name)) == name


def is_merged(name: str) -> bool:
    """Return whether two contents of the file become one: ledgers and the state of alerts."""
    return name.startswith((f"{LEDGERS}/", f"{ALERTS}/"))


def is_record(name: str) -> bool:
    """Return whether the file is a run record, which nobody replaces but its writer."""
    return name.startswith(f"{RECORDS}/") and not is_shard(name)


def is_shard(name: str) -> bool:
    """Return whether the file is a shard of records: made of them, so that the last one written counts."""
    return name.startswith(f"{RECORDS}/") and name.endswith(SHARD)


def _folder(runs: Path, place: str) -> Path:
    """Return the folder of a place: that of the records is `runs`, whatever its name; the others are next to it."""
    return runs if place == RECORDS else runs.parent / place


def local_files(runs: Path) -> dict[str, Path]:
    """Return the files that are kept, by name, where the records are below `runs`."""
    found = ((place, folder, path) for place in PLACES for folder in [_folder(runs, place)]
             for path in sorted(folder.rglob("*")))  # fmt: skip
    return {
        f"{place}/{path.relative_to(folder).as_posix()}": path
        for place, folder, path in found
        if path.is_file() and not path.is_symlink() and not path.name.endswith(ENDING)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }  # fmt: skip


def local_path(runs: Path, name: str) -> Path:
    """Return where the file of that name is; raise a ResultsError for a name that is not kept."""
    if not is_kept(name):
        raise ResultsError(f"{name!r:.80} is no name of a history: its folder is one of {', '.join(PLACES)}")
    place, _, rest = name.partition("/")
    return confined(_folder(runs, place), rest)


def require_records(runs: Path) -> None:
    """Raise a UsageError where `runs` is no folder, or holds files and no record of any machine."""
    if not runs.is_dir():
        raise UsageError(f"{runs}: no such folder; name that of the run records, such as --runs reports/runs")
    held = any(path.is_file() for path in runs.rglob("*"))
    if held and not any(runs.glob("*/*.json.gz")) and not any(runs.glob(f"*/**/*{SHARD}")):
        raise UsageError(f"{runs}: no run record is in a folder of it; name the folder above those of the machines")


def family(name: str) -> tuple[str, str]:
    """Return what the names have in common of records that began in one second: the folder, and the first name."""
    path = Path(name)
    return path.parent.as_posix(), in_order(path)[0]


def free_name(name: str, taken: Container[str]) -> str:
    """Return the first free name of a record among -2, -3 and so on, as records of one second have them."""
    return next(path.as_posix() for path in islice(numbered(Path(name)), 1, None) if path.as_posix() not in taken)
