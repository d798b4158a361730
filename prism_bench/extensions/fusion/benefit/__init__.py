"""What fusing a chain of kernels brings: launches, bytes, temporaries and time of every stage, beside the claims."""

from prism_bench.extensions.fusion.benefit.answers import Answer
from prism_bench.extensions.fusion.benefit.ledger import ChainLedger, Sources, chains_of, ledgers, stages_of
from prism_bench.extensions.fusion.benefit.row import StageRow
from prism_bench.extensions.fusion.benefit.table import Compared, compared

__all__ = ["Answer", "ChainLedger", "Compared", "Sources", "StageRow", "chains_of", "compared", "ledgers", "stages_of"]
