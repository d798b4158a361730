"""Speed of the catalogue in a committed record, next to an earlier record of the same device and to the goals."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from prism_bench.analysis.run_analysis import Reading, read
from prism_bench.analysis.summary import SummaryRow, number
from prism_bench.record import store

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "reports" / "runs"
BEHIND = 0.98  # of the best peer's speed
# The share of its limit that each of these cases of S1 is to reach.
LIMITED = ("pixel_tda:euler", "pixel_tda:map", "image_segmentation:bytes", "shannon_entropy_corrected")
# The least speed-up of these cases of S1 over compiled PyTorch.
CHAINS = ("linear_algebra_chain:full", "active_inference_chain:full")


@dataclass(frozen=True)
class Figure:
    """A number of a record, and its goal: at least where `more` is better, else at most. None: not in the record."""

    title: str
    value: float | None
    goal: float
    more: bool = False

    @property
    def is_met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.goal if self.more else self.value <= self.goal


def figures(reading: Reading) -> list[Figure]:
    """Return every number of the table for one record."""
    rows = [row for row in reading.rows if row["ceiling"] is None and row["before"] is None]

    def behind(labels: Sequence[str], limit: float) -> float | None:
        ratios = [number(row["peer_ratio"]) for row in rows if row["label"] in labels]
        known = [ratio for ratio in ratios if ratio is not None]
        return sum(ratio < limit for ratio in known) if known else None

    spent = reading.record.spent
    result = [
        Figure("seconds of the run, all GPUs together", sum(spent.values()) if spent else None, 600),
        Figure("cases of S1 and S2 below 0.98 of their best peer", behind(("S1", "S2"), BEHIND), 2),
        Figure("cases of S1 below 1.00", behind(("S1",), 1.0), 12),
        Figure("cases of S0 below 1.00", behind(("S0",), 1.0), 40),
    ]
    result += [Figure(f"{name}, S1, share of its limit", _of(rows, name, "bound_share"), 0.9, True) for name in LIMITED]
    result += [Figure(f"{name}, S1, times its best peer", _of(rows, name, "peer_ratio"), 1.2, True) for name in CHAINS]
    return result


def _of(rows: Sequence[SummaryRow], implementation: str, metric: str) -> float | None:
    """Return the geometric mean of a metric over an implementation's cases of S1."""
    values = [number(row[metric]) for row in rows if row["label"] == "S1" and row["implementation"] == implementation]
    known = [value for value in values if value]
    return geometric_mean(known) if known else None


def records(folder: Path) -> tuple[Path, Path]:
    """Return the first and the last record of the whole catalogue in a folder, the same one twice where it has one.

    A record counts that has at least half as many cases as the largest one.
    """
    sizes = {path: len(store.read(path).cases) for path in sorted(folder.glob("*.json.gz"))}
    whole = [path for path, size in sizes.items() if 2 * size >= max(sizes.values())]
    if not whole:
        raise SystemExit(f"Error: no run record in {folder}; `prism-bench run` writes one.")
    return whole[0], whole[-1]


def main(arguments: Sequence[str] | None = None, echo: Callable[[str], object] = print) -> int:
    """Print the table of every device with records; return 1 where the newest record of one misses a goal."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    folders = [Path(word) for word in words if word != "--json"] or sorted(p for p in RUNS.iterdir() if p.is_dir())
    tables: dict[str, list[dict[str, object]]] = {}
    missed = False
    for folder in folders:
        first, last = records(folder)
        before, now = (figures(read(store.read(path))) for path in (first, last))
        missed |= any(figure.is_met is False for figure in now)
        tables[folder.name] = [
            {"figure": new.title, "before": old.value, "now": new.value, "goal": new.goal, "met": new.is_met}
            for old, new in zip(before, now, strict=True)
        ]
        if not as_json:
            echo(f"{folder.name}: {first.name} and {last.name}")
            for old, new in zip(before, now, strict=True):
                echo(_line(old, new))
    if as_json:
        echo(json.dumps(tables, indent=1))
    return int(missed)


def _line(old: Figure, new: Figure) -> str:
    before, now = ("-" if value is None else f"{value:.4g}" for value in (old.value, new.value))
    end = {True: "", False: "  missed", None: "  not measured"}[new.is_met]
    return f"{new.title:52} {before:>8} {now:>8}  goal {new.goal:g}{end}"
