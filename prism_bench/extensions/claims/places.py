"""Files that a command about claims writes, checked before it measures anything."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from prism_bench.errors import UsageError


def require_places(places: Mapping[str, Path | None], read: Sequence[str]) -> None:
    """Raise a UsageError where options name a folder, one file twice, or a file that the command reads."""
    inputs = {Path(word).resolve() for word in read if Path(word).is_file()}
    taken: dict[Path, str] = {}
    for option, place in places.items():
        if place is None:
            continue
        if place.is_dir():
            raise UsageError(f"{option} {place}: it is a folder; name a file in it")
        if place.resolve() in inputs:
            raise UsageError(f"{option} {place}: the command reads this file; name another one to write")
        if place.resolve() in taken:
            raise UsageError(f"{option} {place}: {taken[place.resolve()]} writes this file; name another one")
        taken[place.resolve()] = option
