"""What is cut out of sources, for the terminal and as JSON."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from prism_bench.workflows.source_cuts import SourceCuts


def cut_lines(found: Sequence[SourceCuts]) -> Iterator[tuple[str, str]]:
    """Yield lines with their style: a source with its kernels, then what is cut out of it."""
    for one in found:
        yield f"{_short(one.source)} ({', '.join(one.kernels)})", "bold"
        yield f"  {one.meaning}", "red" if one.how == "refused" else ""
        for cut in one.cuts:
            lines = str(cut.first) if cut.first == cut.last else f"{cut.first}-{cut.last}"
            place = "" if cut.path == one.source.resolve() else f"{_short(cut.path)}:"
            yield f"    {place}{lines}  {cut.what}", "dim"


def cuts_json(found: Sequence[SourceCuts]) -> list[dict[str, Any]]:
    """Return the same as plain values."""
    return [
        {"source": str(one.source), "kernels": list(one.kernels), "how": one.how, "message": one.meaning,
         "cuts": [{"file": str(cut.path), "first": cut.first, "last": cut.last, "what": cut.what} for cut in one.cuts]}
        for one in found
    ]  # fmt: skip


def _short(path: Path) -> str:
    """Return the path relative to the current folder, where that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)
