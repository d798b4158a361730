"""Three significant digits, one unit, a dash for nothing."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from prism_bench import units
from prism_bench.units import (
    bytes_text,
    change_text,
    duration_text,
    energy_text,
    rate_text,
    ratio_text,
    share_text,
    time_text,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.18e-6, "1.18 us"), (2.5e-3, "2.50 ms"), (61.0, "61.0 s"), (5e-10, "0.500 ns"), (0, "0 ns"), (188e-6, "188 us")],
)
def test_times(seconds, text):
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89.4, "89 s"), (90, "2 min"), (1260, "21 min"), (3590, "1 h 0 min"), (3900, "1 h 5 min")],
)
def test_durations(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("rate", "unit", "text"),
    [(4.28e12, "B/s", "4.28 TB/s"), (51.1e12, "FLOP/s", "51.1 TFLOP/s"), (0.5, "Hz", "0.500 Hz")],
)
def test_rates(rate, unit, text):
    assert rate_text(rate, unit) == text


def test_sizes_are_decimal():
    assert bytes_text(1_073_741_824) == "1.07 GB"


@pytest.mark.parametrize(("share", "text"), [(0.874, "87 %"), (0.0312, "3.1 %"), (1.02, "102 %"), (-0.05, "-5.0 %")])
def test_shares(share, text):
    assert share_text(share) == text


def test_energies():
    assert [energy_text(joules) for joules in (2.5, 0.0123, 4.2e-5, 7e-10)] == [
        "2.50 J",
        "12.3 mJ",
        "42.0 uJ",
        "0.700 nJ",
    ]


def test_ratios():
    changes = {1.254: "+25.4 %", 0.5: "-50.0 %", 1.0: "+0.0 %", 0.9999: "+0.0 %", None: "-"}
    assert {ratio: change_text(ratio) for ratio in changes} == changes
    assert [ratio_text(ratio) for ratio in (1.254, 12.0, 0.5)] == ["1.25x", "12.0x", "0.500x"]


@pytest.mark.parametrize(
    ("found", "text"),
    [(time_text(9.996e-7), "1.00 us"), (rate_text(999.9e9, "B/s"), "1.00 TB/s"), (ratio_text(2519), "2519x")],
)
def test_rounding_up_keeps_three_digits(found, text):
    assert found == text


@pytest.mark.parametrize(
    "write", [time_text, energy_text, bytes_text, share_text, ratio_text, lambda value: rate_text(value, "B/s")]
)
@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_nothing_is_a_dash(write, nothing):
    assert write(nothing) == "-"


# Words after a number that are no nouns, the plurals of units, and nouns that are the same in singular and plural.
NO_COUNTS = frozenset("as bits bytes characters does has is series times us was words xmlns".split())
# Verbs as well as nouns: counts where the number before them is a length.
VERBS_TOO = frozenset(
    "afterwards answers arguments asks begins calls clocks comes copies counts decides differs ends feeds forms goes "
    "hides holds interprets kills knows launches makes marks names needs numbers offers operands parameters parts "
    "passes questions reads refuses renews results rounds saves spills starts steps takes tasks traces".split()
)
SINGLE = re.compile(r" ([a-z]+s)\b")
IN_TEMPLATES = re.compile(r"\|length \}\} ([a-z]+s)\b")


def uncounted(text):
    """The nouns that an f-string of the source has in the plural, whatever the number before them is."""
    for string in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr)):
        for value, after in pairwise(string.values):
            if isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant) and not value.format_spec:
                noun = SINGLE.match(after.value)
                if noun and noun[1] not in NO_COUNTS and is_count(value.value, noun[1]):
                    yield f"{string.lineno}: {{{ast.unparse(value.value)}}} {noun[1]}"


def is_count(value, noun):
    if isinstance(value, ast.Call):
        called = value.func
        return getattr(called, "id", None) in ("len", "sum") or getattr(called, "attr", None) == "total"
    name = getattr(value, "id", None) or getattr(value, "attr", "")
    return bool(name) and not name.isupper() and noun not in VERBS_TOO


@pytest.mark.parametrize(
    "text",
    [
        'f"{len(found)} cases"',
        'f"{sum(x)} launches of it"',
        'f"no more than {count} cases"',
        'f"{a.counts.total()} forms"',
    ],
)
def test_a_plural_after_any_number_is_found(text):
    assert 1 == len(list(uncounted(text)))


@pytest.mark.parametrize("text", ['f"{name} takes it"', 'f"{size} bytes"', 'f"{LIMIT} cases"', 'f"{count:,} cases"'])
def test_what_counts_nothing_is_not_found(text):
    assert [] == list(uncounted(text))


def test_numbers_are_followed_by_their_noun_in_singular_or_plural():
    """`1 cases` cannot be written: `count_text` and, in templates, `number_of` choose."""
    package = Path(units.__file__).parent
    # The emulator imports no module but errors and files; its numbers are limits.
    sources = (path for path in package.rglob("*.py") if "emulator" not in path.parts)
    found = [f"{path.relative_to(package)}:{one}" for path in sources for one in uncounted(path.read_text("utf-8"))]
    for path in package.rglob("*.html"):
        found += [f"{path.relative_to(package)}: {one[1]}" for one in IN_TEMPLATES.finditer(path.read_text("utf-8"))]
    assert [] == found
