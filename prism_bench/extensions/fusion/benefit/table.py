"""The plan's table, Baseline, Partial, Full and Target: what it published beside what we measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prism_bench.extensions.fusion.benefit.figure import Figure, absent
from prism_bench.extensions.fusion.benefit.ledger import ChainLedger
from prism_bench.extensions.fusion.benefit.published import STAGES, PublishedRow, published_rows


@dataclass(frozen=True)
class Ours:
    """Our row beside a published one: of `what`, by stage; `met` is the plan's target asked of our most fused stage
    among the table's, None where that has no figure.
    """

    what: str
    stages: Mapping[str, Figure]
    met: bool | None


@dataclass(frozen=True)
class Compared:
    """One published row and ours beside it, several where a chain is measured at several workloads."""

    published: PublishedRow
    ours: tuple[Ours, ...]


def compared(ledgers: Sequence[ChainLedger]) -> tuple[Compared, ...]:
    """The rows of the plan's table that are about any of the ledgers' chains."""
    known = {one.chain for one in ledgers}
    rows = [row for row in published_rows() if known & set(row.chains)]
    return tuple(Compared(row, tuple(_ours(row, [one for one in ledgers if one.chain in row.chains]))) for row in rows)


def _ours(row, mine):
    if row.quantity == "launches":
        yield _launches(row, [one for one in mine if one.label == "S0"])
        return
    name = "cold_time" if row.quantity == "time" else row.quantity
    found = [Ours(f"{one.chain} {one.label}", stages, row.met(stages["full"].value))
             for one in mine if (stages := {stage: _figure(one, stage, name) for stage in STAGES})]  # fmt: skip
    told = [one for one in found if any(figure.value is not None for figure in one.stages.values())]
    yield from told or [Ours("none of them", found[0].stages, None)]


def _figure(ledger, stage, name):
    row = ledger.row(stage)
    return row.figures[name] if row else absent(f"{ledger.chain} has no stage '{stage}' at {ledger.label}")


def _launches(row, mine):
    """Of all the row's chains together; no sum where one has no such stage."""
    stages = {stage: _sum(stage, mine) for stage in STAGES}
    whole = len(mine) == len(row.chains)
    what = " + ".join(one.chain for one in mine) or "none of them"
    return Ours(f"{what}, S0", stages, row.met(stages["full"].value) if whole else None)


def _sum(stage, mine):
    rows = [one.row(stage) for one in mine]
    if not rows or None in rows:
        return absent(f"not every chain has a stage '{stage}'")
    return Figure(sum(row.plan.launches for row in rows), "launches of the plans")
