"""Words for peers and for the headline by class, shared by the terminal, the site and the README."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prism_bench.analysis.headline import BEST, LARGE, HeadlineRow, RacedCase
from prism_bench.analysis.peer_rows import PeerRow
from prism_bench.analysis.rivals import NOT_RECORDED, UNSTABLE, UNSTABLE_MARK
from prism_bench.report.cells import times_text
from prism_bench.units import time_text

MEANING = (
    "Time of the best peer of each class over the kernel's, cold: above 1.00 the kernel is faster. Means are geometric."
)
LAUNCHES = "At S0 launch overhead is compared."
UNKNOWN = f"Class {NOT_RECORDED}: the record does not name the class of these peers, so they have no mean."
UNSTABLE_MEANING = (
    f"{UNSTABLE_MARK} marks an unstable peer: the medians of its processes differ by more than {UNSTABLE * 100:.0f} %, "
    "and its fastest process counts"
)
UNSTABLE_TIME = (
    f"{UNSTABLE_MARK} marks an unstable time: the medians of its processes differ by more than {UNSTABLE * 100:.0f} %"
)


def labels_text(row: HeadlineRow) -> str:
    """Return `S1 and S2`."""
    return " and ".join(row["labels"])


def mean_text(row: HeadlineRow) -> str:
    """Return the mean as `1.04x`; a dash where there is none."""
    return "-" if row["mean"] is None else times_text(row["mean"])


def case_text(raced: RacedCase) -> str:
    """Return `matmul S1, torch_compiled~`."""
    return f"{raced['implementation']} {raced['label']}, {peer_text(raced)}"


def peer_text(raced: RacedCase) -> str:
    """Return the peer's name, with the mark of an unstable one and whether it is a poor way."""
    return f"{raced['peer']}{UNSTABLE_MARK if raced['unstable'] else ''}{' (poor way)' if raced['poor'] else ''}"


def has_unstable(rows: Sequence[HeadlineRow]) -> bool:
    """Return whether a text about these rows has the mark of an unstable peer."""
    return any(one["unstable"] for row in rows for one in (row["worst"], *row["large"]))


def shown_rows(rows: Sequence[HeadlineRow]) -> list[HeadlineRow]:
    """Return the rows without a group of two labels where only one of them was measured."""
    single = {row["labels"][0] for row in rows if len(row["labels"]) == 1}
    return [row for row in rows if len(row["labels"]) == 1 or set(row["labels"]) <= single]


@dataclass(frozen=True)
class HeadlineText:
    """The headline in words: the `rows` to show, `notes` on what they mean, the `large` ratios with their title."""

    rows: tuple[HeadlineRow, ...]
    notes: tuple[str, ...]
    large: tuple[str, ...]
    large_title: str = f"Above {LARGE:.0f}x, by name and counted in the table"


def headline_text(rows: Sequence[HeadlineRow], *, brief: bool = False) -> HeadlineText:
    """Return the headline in words, without rows where no peer was timed; a `brief` one has S1 and S2 together only."""
    shown = shown_rows(rows)
    if brief:
        together = {label for row in shown if len(row["labels"]) > 1 for label in row["labels"]}
        shown = [row for row in shown if len(row["labels"]) > 1 or not together.intersection(row["labels"])]
    notes = {
        MEANING: True,
        LAUNCHES: any(row["labels"] == ["S0"] for row in shown),
        UNKNOWN: any(row["peers"] == NOT_RECORDED for row in shown),
        f"{UNSTABLE_MEANING}.": has_unstable(shown),
    }
    return HeadlineText(tuple(shown), tuple(note for note, needed in notes.items() if needed), _large(shown))


def _large(rows: Sequence[HeadlineRow]) -> tuple[str, ...]:
    """Return the ratios above `LARGE`, as `image_segmentation, torch: S2 77.5x, S1 77.0x`, the largest first."""
    found = {(one["case"], one["peer"]): one for row in rows if row["peers"] != BEST for one in row["large"]}
    ratios: dict[str, list[str]] = defaultdict(list)
    for one in sorted(found.values(), key=lambda one: -one["ratio"]):
        ratios[f"{one['implementation']}, {peer_text(one)}"].append(f"{one['label']} {times_text(one['ratio'])}")
    return tuple(f"{name}: {', '.join(each)}" for name, each in ratios.items())


def how_text(row: PeerRow) -> str:
    """Return how the peer was called, and everything that a reader has to know about its time or its absence."""
    return "; ".join(filter(None, [_called(row), *_limits(row), *row["notes"]]))


def _called(row: PeerRow) -> str:
    library = " ".join(str(one) for one in (row["library"], row["version"]) if one)
    counts = [_count(row["calls"], "call"), _count(row["launches"], "launch", "launches")]
    counts += [_count(row["breaks"], "graph break")] if row["breaks"] else []
    return ", ".join(filter(None, [library, row["form"], *counts]))


def _count(count: int | None, one: str, several: str | None = None) -> str | None:
    if count is None:
        return None
    return f"{count} {one if count == 1 else several or one + 's'}"


def _limits(row: PeerRow) -> Iterator[str | None]:
    """Yield why the time is missing, or what a reader has to know about it."""
    yield f"not timed: {row['reason']}" if row["seconds"] is None else unstable_text(row)
    left_out = row["seconds"] is not None and not row["counts"]
    yield f"poor way: {row['poor']}" + (" (not counted)" if left_out else "") if row["poor"] else None
    yield f"enqueued as a {row['enqueued']}" if row["enqueued"] else None
    yield f"work: {row['work']}" if row["work"] else None
    yield f"precision: {row['precision']}" if row["precision"] else None


def unstable_text(row: PeerRow) -> str | None:
    """Return `unstable: 9.90 us to 93.2 us`; None where the peer is stable."""
    return "unstable: {} to {}".format(*map(time_text, row["unstable"])) if row["unstable"] else None
