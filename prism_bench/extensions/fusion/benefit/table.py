"""The plan's table, Baseline, Partial, Full and Target: what it published next to what we measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prism_bench.extensions.fusion.benefit.figure import Figure, absent
from prism_bench.extensions.fusion.benefit.ledger import ChainLedger
from prism_bench.extensions.fusion.benefit.published import STAGES, PublishedRow, published_rows


@dataclass(frozen=True)
class OurRow:
    """Our row for a published one: of `what`, by stage.

    `met` is whether our most fused stage among the table's keeps the plan's target, None where that has no figure.
    """

    what: str
    stages: Mapping[str, Figure]
    met: bool | None


@dataclass(frozen=True)
class ComparedRow:
    """One published row and our rows for it, several where a chain is measured at several workloads."""

    published: PublishedRow
    ours: tuple[OurRow, ...]


def compared(ledgers: Sequence[ChainLedger]) -> tuple[ComparedRow, ...]:
    """Return the rows of the plan's table that are about any of the ledgers' chains."""
    known = {one.chain for one in ledgers}
    rows = [row for row in published_rows() if known & set(row.chains)]
    mine = {row.name: [one for one in ledgers if one.chain in row.chains] for row in rows}
    return tuple(ComparedRow(row, tuple(_ours(row, mine[row.name]))) for row in rows)


def _ours(row: PublishedRow, mine: Sequence[ChainLedger]) -> Iterator[OurRow]:
    if row.quantity == "launches":
        yield _launches(row, [one for one in mine if one.label == "S0"])
        return
    name = "cold_time" if row.quantity == "time" else row.quantity
    found = [OurRow(f"{one.chain} {one.label}", stages, row.met(stages["full"].value))
             for one in mine if (stages := {stage: _figure(one, stage, name) for stage in STAGES})]  # fmt: skip
    measured = [one for one in found if any(figure.value is not None for figure in one.stages.values())]
    yield from measured or [OurRow("none of them", found[0].stages, None)]


def _figure(ledger: ChainLedger, stage: str, name: str) -> Figure:
    row = ledger.row(stage)
    return row.figures[name] if row else absent(f"{ledger.chain} has no stage '{stage}' at {ledger.label}")


def _launches(row: PublishedRow, mine: Sequence[ChainLedger]) -> OurRow:
    """Return those of all the row's chains together; no sum where one has no such stage."""
    stages = {stage: _sum(stage, mine) for stage in STAGES}
    whole = len(mine) == len(row.chains)
    what = " + ".join(one.chain for one in mine) or "none of them"
    return OurRow(f"{what}, S0", stages, row.met(stages["full"].value) if whole else None)


def _sum(stage: str, mine: Sequence[ChainLedger]) -> Figure:
    rows = [row for one in mine if (row := one.row(stage))]
    if not rows or len(rows) < len(mine):
        return absent(f"not every chain has a stage '{stage}'")
    return Figure(sum(row.plan.launches for row in rows), "launches of the plans")
