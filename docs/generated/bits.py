"""What changes the bits of the catalogue's kernels and of its peers, from the table of `scripts/bits`."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from docs.generated.markdown import code, joined, plain, table
from prism_bench.units import count_text

PATH = "reference/bits.md"
TABLE = Path(__file__).parents[2] / "reports" / "bits" / "nvidia-h200.csv"
_NAMES = {
    "repeated": "other launches",
    "configurations": "another configuration of `tune`",
    "batch": "another batch",
    "contention": "another stream at work",
}
_ERROR = re.compile(r"^\w+Error: ")
_Row = dict[str, str]


def page() -> str:
    """Return the whole page."""
    with TABLE.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    kernels = [row for row in rows if row["subject"] == "kernel"]
    peers = [row for row in rows if row["subject"] != "kernel"]
    return joined(
        [
            "# Bits",
            "[`verify --bitwise`](../guides/bitwise.md) of every case at S1 and of its peers on one H200, as "
            "`scripts/bits` wrote it. The same bits in every launch that was made are no proof of them in others.",
            "## Libraries",
            "Whether a row has the same bits whatever the batch around it: other rows, four rows alone, and batches "
            "of 17, of half and of twice as many. A number is how far the first difference is, in units in the last "
            "place. "
            f"Mixed are sums over the axis: the others enter each of them. Not compared: {_reasons(peers)}.",
            _libraries(rows),
            "## Kernels",
            f"{_counted(kernels)} What is called another launch is what the two launches show. Nothing is promised by "
            "a kernel whose spec has neither `bitwise` nor `batch_invariant`.",
            table(
                ("kernel", "other bits with", "ulp", "likely cause"),
                [
                    (_kernel(row["case"]), _differing(row), row["ulps"], plain(row["cause"]))
                    for row in kernels
                    if _differs(row)
                ],
            ),
        ]
    )


def _differs(row: _Row) -> bool:
    return row["class"] not in ("same", "-")


def _differing(row: _Row) -> str:
    return ", ".join(_NAMES[check] for check in row["class"].split())


def _counted(kernels: Sequence[_Row]) -> str:
    """Return how many kernels are in which class."""
    same = sum(row["class"] == "same" for row in kernels)
    counts = {name: sum(check in row["class"].split() for row in kernels) for check, name in _NAMES.items()}
    words = [f"Of {count_text(len(kernels), 'case')} {same} have the same bits throughout"]
    words += [f"{count} other ones with {name}" for name, count in counts.items() if count]
    left_out = sum(row["class"] == "-" for row in kernels)
    return f"{', '.join(words)}. {count_text(left_out, 'case')} could not be launched: {_reasons(kernels)}."


def _reasons(rows: Sequence[_Row]) -> str:
    """Return why nothing was compared, each reason once, without the command that would mend it."""
    causes = {_ERROR.sub("", row["cause"].partition(" (")[0]) for row in rows if row["class"] == "-"}
    return plain("; ".join(sorted(causes)))


def _kernel(case: str) -> str:
    """Return the kernel of a case, which has one at S1; a long name may continue after each of its words."""
    name = re.sub(r"(?<=[_:])", "<wbr>", case.partition("[")[0])
    return f"<code>{name}</code>"


def _libraries(rows: Sequence[_Row]) -> str:
    """Return a table: a row for each case whose batches were compared for a peer, a column for each library."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["batch"] in ("", "-"):
            continue
        name = row["subject"].removeprefix("peer:") if row["subject"] != "kernel" else "ours"
        differs = f"differs, {row['ulps'] or 'other order'}"
        words = {"differs": differs, "mixed": "mixed"}.get(row["batch"], "same")
        cells.setdefault(row["case"], {})[name] = words
    compared = {case: by_library for case, by_library in cells.items() if by_library.keys() - {"ours"}}
    libraries = sorted({name for by_library in compared.values() for name in by_library} - {"ours"})
    axes = {row["case"]: row["axis"] for row in rows if row["axis"]}
    return table(
        ("kernel", "batch", "ours", *libraries),
        [
            (
                _kernel(case),
                code(axes[case]),
                by_library.get("ours", ""),
                *(by_library.get(name, "") for name in libraries),
            )
            for case, by_library in compared.items()
        ],
    )
