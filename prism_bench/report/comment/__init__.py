"""Comment on a pull request: Markdown made of the JSON that `prism-bench compare --json` prints, and nothing else."""

from prism_bench.report.comment.contents import ComparedFile, read_comparison
from prism_bench.report.comment.document import MARK, comment

__all__ = ["MARK", "ComparedFile", "comment", "read_comparison"]
