"""The digest of some days, for mail or a channel: what moved and why, what is unmeasured, which promises end soon."""

from prism_bench.extensions.ci.digest.contents import digest
from prism_bench.extensions.ci.digest.forms import html, markdown

__all__ = ["digest", "html", "markdown"]
