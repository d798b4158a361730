"""The ledger of fusion as plain JSON values."""

from collections.abc import Sequence
from dataclasses import asdict

from prism_bench.extensions.fusion.benefit import ChainLedger, Compared, Sources
from prism_bench.extensions.fusion.benefit.published import pass_rule, source
from prism_bench.extensions.fusion.report.words import heading


def fusion_json(ledgers: Sequence[ChainLedger], table: Sequence[Compared], sources: Sources) -> dict:
    """`source` says where times come from, `prices` what a launch and a byte cost there; `chains` holds a ledger per
    chain and workload, `published` the plan's table with ours beside it, `rule` its pass rule. A figure is
    {value, source, reason}: a null value has its reason.
    """
    return {
        "source": heading(sources),
        "prices": asdict(sources.prices()),
        "chains": [asdict(one) for one in ledgers],
        "published": {"source": source(), "rows": [asdict(one) for one in table]},
        "rule": asdict(pass_rule()),
    }
