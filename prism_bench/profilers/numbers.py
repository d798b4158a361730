"""Numbers and units as profilers print them, in whatever locale their process had, turned into SI; doubt is an error.

`117.344` is a hundred and seventeen nanoseconds in one locale and a thousand times that in another. A table is read
only when some number in it shows which one it was, or when nothing in it depends on that.
"""

import math
import re
from collections.abc import Iterable

from prism_bench.errors import ResultsError

CURE = "run the profiler with LC_ALL=C"
# Separators of groups as C libraries write them; `\xa0` and `\x92` are those of a Windows code page, once decoded.
_SPACE = re.compile("[\u0020\u00a0\u2007\u2009\u202f]|" + r"\\xa0")
_APOSTROPHE = re.compile("[\u2018\u2019]|" + r"\\x92")
_LOCALES = tuple((group, mark) for mark in ".," for group in ".,' " if group != mark)


def _numbers_of(group: str, mark: str) -> re.Pattern[str]:
    """Return the pattern of a number in the locale; Indian groups (`1,23,45,678.9`) only come with commas."""
    inner = r"\d{2,3}" if group == "," else r"\d{3}"
    grouped = rf"[1-9]\d{{0,2}}({group}{inner})*{group}\d{{3}}".replace(".", r"\.")
    point = re.escape(mark)
    return re.compile(rf"-?(\d+({point}\d+)?(e[+-]?\d+)?|{grouped}({point}\d+)?)", re.IGNORECASE | re.ASCII)


_PATTERNS = {locale: _numbers_of(*locale) for locale in _LOCALES}
_NUMERIC = re.compile(r"-?\d[\d .,'\u066b\u066c\u2212\u00b7]*")  # digits of any script
_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
             "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip
_BASES = {"s": "s", "second": "s", "byte": "B", "hz": "Hz", "Hz": "Hz"}
_UNIT = re.compile(rf"(?P<prefix>[KMGT]i(?=byte)|[numkKMGT]?)(?P<base>{'|'.join(_BASES)})(?P<per>/.+)?")


def is_number(text: str) -> bool:
    """Whether the text is a number in some locale: `12`, `1,234.5`, `2.508.800`, `1\u202f234,5`, `1e-05`."""
    return bool(_locales_of(text))


def looks_numeric(text: str) -> bool:
    """Whether the text has only digits and separators, so that a reader expects a number."""
    return bool(_NUMERIC.fullmatch(_normalised(text)))


def decimal_mark(texts: Iterable[str], origin: str) -> str:
    """`.` or `,`: the decimal mark of the numbers among `texts`, which come from one process and so share it.

    A ResultsError naming `origin` where two numbers contradict each other, or where the mark matters and none shows it.
    """
    possible, deciding, doubtful = frozenset(_LOCALES), "", ""
    for text in texts:
        locales = _locales_of(text)
        if not locales or len(locales) == len(_LOCALES):
            continue
        if not possible & locales:
            raise ResultsError(f"{origin}: '{deciding}' and '{text}' cannot come from one locale; {CURE}")
        if not possible <= locales:
            possible, deciding = possible & locales, text
        if not doubtful and ("." in text or "," in text):
            doubtful = text
    marks = {mark for _, mark in possible}
    if doubtful and len(marks) > 1:
        raise ResultsError(f"{origin}: '{doubtful}' may be a fraction or a thousand times as much, and no other number "
                           f"of the table decides; {CURE}")  # fmt: skip
    return "." if "." in marks else ","


def _locales_of(text: str) -> frozenset[tuple[str, str]]:
    """Return the locales, by separator of groups and decimal mark, in which the text is a number."""
    if text.isascii() and text.isdigit():
        return frozenset(_LOCALES)
    if not any(map(str.isdigit, text[:2])):  # a sign and a digit: most cells of a table with words end here
        return frozenset()
    text = _normalised(text)
    return frozenset(locale for locale, pattern in _PATTERNS.items() if pattern.fullmatch(text))


def _normalised(text: str) -> str:
    """Return the text with each kind of space, apostrophe and minus as the ASCII one."""
    return _APOSTROPHE.sub("'", _SPACE.sub(" ", text)).replace("\u2212", "-")


def number(text: str, mark: str = ".") -> float:
    """Return the number in `text` with the decimal mark `mark`; a ResultsError if it is too large for a float."""
    other = "," if mark == "." else "."
    digits = _normalised(text).translate(str.maketrans("", "", f"{other}' "))
    value = float(digits.replace(mark, "."))
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
