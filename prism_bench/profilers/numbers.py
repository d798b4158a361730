"""Numbers and units as profilers print them, in whatever locale their process had, turned into SI; doubt is an error.

`117.344` is a hundred and seventeen nanoseconds in one locale and a thousand times that in another. A table is read
only when some number in it shows which one it was, or when nothing in it depends on that.
"""

import math
import re
from collections.abc import Iterable

from prism_bench.errors import ResultsError

# Digits in threes or not at all, and a fraction behind the other mark.
_NUMBER = re.compile(
    r"-?(\d+([.,]\d+)?|\d{1,3}(,\d{3})+(\.\d+)?|\d{1,3}(\.\d{3})+(,\d+)?)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII
)
_GROUPED = {",": re.compile(r"-?\d{1,3}(,\d{3})+", re.ASCII), ".": re.compile(r"-?\d{1,3}(\.\d{3})+", re.ASCII)}
_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BASES = {"s": "s", "second": "s", "byte": "B", "hz": "Hz", "Hz": "Hz"}
_UNIT = re.compile(rf"(?P<prefix>[numkKMGT]?)(?P<base>{'|'.join(_BASES)})(?P<per>/.+)?")


def is_number(text: str) -> bool:
    """Whether the text is a number in some locale: `12`, `1,234.5`, `2.508.800`, `1e-05`."""
    return bool(_NUMBER.fullmatch(text))


def decimal_mark(texts: Iterable[str], origin: str) -> str:
    """`.` or `,`: the decimal mark of the numbers among `texts`, which come from one process and so share it.

    A ResultsError naming `origin` where two numbers contradict each other, or where the mark matters and none shows it.
    """
    shown, doubtful = {}, None
    for text in filter(is_number, texts):
        mark = _shown_mark(text)
        if mark:
            shown.setdefault(mark, text)
        elif doubtful is None and ("." in text or "," in text):
            doubtful = text
    if len(shown) > 1:
        raise ResultsError(f"{origin}: '{shown['.']}' and '{shown[',']}' cannot come from one locale; "
                           "run the profiler with LC_ALL=C")  # fmt: skip
    if not shown and doubtful:
        raise ResultsError(f"{origin}: '{doubtful}' may be a fraction or a thousand times as much, and no other number "
                           "of the table decides; run the profiler with LC_ALL=C")  # fmt: skip
    return next(iter(shown), ".")


def _shown_mark(text: str) -> str | None:
    """Return the decimal mark that this number proves; None if it has no separator or could be read both ways."""
    body = text.lower().split("e")[0]
    dots, commas = body.count("."), body.count(",")
    if dots and commas:
        return max(".,", key=body.rfind)
    if not dots and not commas:
        return None
    separator = "." if dots else ","
    other = "," if dots else "."
    if body.count(separator) > 1:
        return other
    could_group = _GROUPED[separator].fullmatch(body) and not body.lstrip("-").startswith("0")
    return None if could_group else separator


def number(text: str, mark: str = ".") -> float:
    """Return the number in `text` with the decimal mark `mark`; a ResultsError if it is too large for a float."""
    other = "," if mark == "." else "."
    value = float(text.replace(other, "").replace(mark, "."))
    if not math.isfinite(value):
        raise ResultsError(f"{text!r:.40} is larger than any number that a profiler prints")
    return value


def to_si(value: float, unit: str) -> tuple[float, str]:
    """Return the value in SI and its unit: seconds, bytes, hertz, shares of one; an unknown unit stays as it is."""
    if unit == "%":
        return value / 100, "1"
    found = _UNIT.fullmatch(unit)
    if not found:
        return value, unit
    per = (found["per"] or "").replace("/second", "/s")
    value *= _PREFIXES[found["prefix"]]
    if not math.isfinite(value):
        raise ResultsError(f"a value in {unit} is larger than any number that a profiler prints")
    return value, _BASES[found["base"]] + per
