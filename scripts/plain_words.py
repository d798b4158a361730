"""Find private words: those that readers outside this project do not understand, with the words to use instead."""

import re
from collections.abc import Iterator

# What stands left is searched for as a regular expression, ignoring case; what stands right is the standard word.
PRIVATE = {
    r"\bnights?\b": "run; 'nightly run' where it matters",
    r"\brulers?\b": "ceiling benchmark",
    r"(?<!noise )(?<!noise-)\bfloors?\b(?!\()": "launch overhead, noise floor, or layer",
    r"\b(halls?|houses?|(?<!head)rooms?(?! for\b)|desks?|shelf|shelves|sheds?)\b": (
        "package, module, queue, bucket or environment"
    ),
    r"\b(told|tells?(?! apart)|says|said|(is|are|was|were) asked)\b": "reports, reported, prints or checks",
    r"\b(stands?(?! out\b)|stood(?! out\b)|lies|lives)\b": "is, is in",
    r"\b(comes?|came) to\b": "totals, is",
    r"\bwhat bounds\b": "bottleneck; memory-bound, latency-bound",
    r"\bby hand\b": "hand-written",
    r"\btaken back\b": "reverted",
    r"\bbeside\b": "next to, compared with",
    r"\b(besides|that there is|for who)\b": "also, existing, for callers that",
    r"\bof (its|their) own\b|\bof ours\b": "own",
}
# Names of folders, files, addresses, branches and attributes, which keep their spelling.
_NAMES = re.compile(r"`[^`\n]*`|\S*[/@]\S*|\b\w+\.\w+\b|\.\w+\b|\b\w*_\w*\b|--\w[\w-]*")


def private_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each private word of the text with the standard word; code between backticks and paths are no words."""
    words = _NAMES.sub(lambda name: "." * len(name[0]), " ".join(text.split()))
    for pattern, standard in PRIVATE.items():
        for found in re.finditer(pattern, words, re.IGNORECASE):
            yield found[0], standard
