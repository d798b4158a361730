"""What fusing a chain of kernels brings: launches, bytes, temporaries and time of every stage, next to the claims."""

from prism_bench.extensions.fusion.benefit.answers import ChainAnswer
from prism_bench.extensions.fusion.benefit.ledger import ChainLedger, Sources, chains_of, ledgers, stages_of
from prism_bench.extensions.fusion.benefit.row import StageRow
from prism_bench.extensions.fusion.benefit.table import ComparedRow, compared

__all__ = [
    "ChainAnswer", "ChainLedger", "ComparedRow", "Sources", "StageRow", "chains_of", "compared", "ledgers", "stages_of",
]  # fmt: skip
