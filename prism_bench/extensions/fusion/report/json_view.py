"""The ledger of fusion as plain JSON values."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypedDict

from prism_bench.extensions.fusion.benefit import ChainLedger, ComparedRow, Sources
from prism_bench.extensions.fusion.benefit.published import pass_rule, source
from prism_bench.extensions.fusion.report.words import heading


class FusionJson(TypedDict):
    """`source` is where times are from, `prices` what a launch and a byte cost there.

    `chains` holds a ledger for each chain and workload, `published` the plan's table with our rows, `rule` its pass
    rule. A figure is {value, source, reason}: a null value has its reason.
    """

    source: str
    prices: dict[str, Any]
    chains: list[dict[str, Any]]
    published: dict[str, Any]
    rule: dict[str, Any]


def fusion_json(ledgers: Sequence[ChainLedger], table: Sequence[ComparedRow], sources: Sources) -> FusionJson:
    """Return the ledgers and the plan's table as plain values."""
    return {
        "source": heading(sources), "prices": asdict(sources.prices()), "chains": [asdict(one) for one in ledgers],
        "published": {"source": source(), "rows": [asdict(one) for one in table]}, "rule": asdict(pass_rule()),
    }  # fmt: skip
