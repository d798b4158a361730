"""Names and texts cut to what a terminal has room for."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

FEW = 5  # lines of one text: more are for --verbose
_NUMBER = re.compile(r"-?\b(?:nan|inf|\d[\d.,]*(?:e[+-]?\d+)?)")
_ERROR = re.compile(r"\berror\b")
CUT = "…"


def middle_cut(text: str, width: int) -> str:
    """Return the text in at most `width` characters; what is too long loses its middle, where names differ least."""
    if len(text) <= width:
        return text
    head = max(width - 1, 0) // 2
    tail = max(width - 1 - head, 0)
    return f"{text[:head]}{CUT}{text[len(text) - tail :]}"


def few_lines(text: str, *, verbose: bool = False, option: str = "--verbose") -> list[str]:
    """Return the lines of a text, or the first few from its first error on, and how many were left out.

    `option` is what shows all of them.
    """
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    if verbose or len(lines) <= FEW:
        return lines
    head, rest = lines[0], lines[1:]
    start = next((place for place, line in enumerate(rest) if _ERROR.search(line)), 0)
    shown = [head, *rest[start : start + FEW - 2]]
    return [*shown, f"{len(lines) - len(shown)} more lines: " + option + " shows them"]


@dataclass
class Alike:
    """Complaints that differ in nothing but numbers and the case: the first one's text, and the cases of all."""

    kind: str
    text: str
    cases: list[str] = field(default_factory=list[str])
    untimed: list[str] = field(default_factory=list[str])


def alike(complaints: Iterable[tuple[str, str, str]], because: str = "") -> list[Alike]:
    """Return complaints (kind, case, text) by what they have in common, in their order.

    One that begins with `because` repeats another one: it belongs to that one's `untimed`.
    """
    groups: dict[str, Alike] = {}
    for kind, case, text in sorted(complaints, key=lambda one: bool(because) and one[2].startswith(because)):
        repeats = bool(because) and text.startswith(because)
        key = _common(text.removeprefix(because) if repeats else text, case)
        group = groups.setdefault(key, Alike(kind, text))
        (group.untimed if repeats and group.text != text else group.cases).append(case)
    return list(groups.values())


def _common(text: str, case: str) -> str:
    """Return what a complaint has in common with those on other workloads of its kernel.

    That is its first line without numbers and without the workload; the whole text where that line only opens it.
    """
    first = text.partition("\n")[0]
    kernel = case.partition("[")[0]
    plain = re.sub(rf"{re.escape(kernel)}\[[^\[\]]*\]", kernel, text if first.endswith(":") else first)
    return _NUMBER.sub("#", plain)


def names_text(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names and the count of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
