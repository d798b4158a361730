"""Text of strangers in Markdown of GitHub and GitLab: names and reasons stay text, whatever they contain."""

import re
import shlex
from collections.abc import Sequence

from prism_bench.report.gate.markdown import plain_text

_FENCE = re.compile(r"`{3,}")


def text(words: str) -> str:
    """Return words that are no markup, no mention, no link, no reference to another issue, and one line."""
    escaped = plain_text(_printable(words)).replace("!", "\\!")
    return escaped.replace("://", ":&#8203;//").replace("www.", "www&#8203;.")


def _printable(words: str) -> str:
    """Return the words without letters that hide others or turn their order."""
    return "".join(letter if letter.isprintable() or letter.isspace() else "" for letter in words)


def shell_block(words: Sequence[str]) -> str:
    """Return a command as a fenced block, which no word of it can leave."""
    line = " ".join(_printable(shlex.join(words)).split())
    ticks = max((len(run) for run in _FENCE.findall(line)), default=2) + 1
    return f"{'`' * ticks}bash\n{line}\n{'`' * ticks}"
