"""Comment on a pull request: Markdown made of the JSON that `prism-bench compare --json` prints, and nothing else."""

from prism_bench.extensions.ci.comment.contents import ComparedFile, read_comparison
from prism_bench.extensions.ci.comment.document import MARK, comment

__all__ = ["MARK", "ComparedFile", "comment", "read_comparison"]
