"""What fusing a chain of kernels brings: launches, bytes, temporaries and time of every stage, next to the claims."""

from prism_bench.extensions.fusion.benefit.ledger import (
    ChainAnswer,
    ChainLedger,
    ComparedRow,
    Sources,
    StageRow,
    chains_of,
    compared,
    ledgers,
    stages_of,
)

__all__ = [
    "ChainAnswer", "ChainLedger", "ComparedRow", "Sources", "StageRow", "chains_of", "compared", "ledgers", "stages_of",
]  # fmt: skip
