"""Numbers in any locale, or refused; units in SI."""

import pytest

from prism_bench.errors import ResultsError
from prism_bench.profilers.numbers import decimal_mark, is_number, number, to_si


@pytest.mark.parametrize(
    ("texts", "mark"),
    [
        (["134,221,568", "1,048,576"], "."),
        (["181,216", "13.02"], "."),
        (["2.508.800", "65,77"], ","),
        (["1.234,5"], ","),
        (["0.123", "117.344"], "."),
        (["4963609951.192"], "."),
        (["1e-05", "12"], "."),
        (["12", "n/a", "(256, 1, 1)", "PolicySpread"], "."),
    ],
)
def test_a_table_shows_its_decimal_mark(texts, mark):
    assert mark == decimal_mark(texts, "here")


@pytest.mark.parametrize("texts", [["117.344"], ["181,216", "1,234"], ["-1.000", "n/a"]])
def test_what_may_be_a_fraction_or_a_thousandfold_is_refused(texts):
    with pytest.raises(ResultsError, match="here: .* LC_ALL=C"):
        decimal_mark(texts, "here")


def test_two_locales_in_one_table_are_refused():
    with pytest.raises(ResultsError, match="cannot come from one locale"):
        decimal_mark(["13.02", "65,77"], "here")


def test_numbers_by_their_mark():
    assert 117344.0 == number("117.344", ",")
    assert 117.344 == number("117.344", ".")
    assert 134221568.0 == number("134,221,568", ".")
    assert 2508800.5 == number("2.508.800,5", ",")


def test_words_are_no_numbers():
    assert not any(map(is_number, ["", "n/a", "(9, 32, 1)", "9.0a", "-"]))


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (292_928, "ns", (0.000292928, "s")),
        (293, "usecond", (0.000293, "s")),
        (293, "nsecond", (2.93e-7, "s")),
        (1.5, "Kbyte", (1500, "B")),
        (317.7, "Gbyte/second", (317.7e9, "B/s")),
        (2, "byte/block", (2, "B/block")),
        (585, "Mhz", (585e6, "Hz")),
        (3995313115.4, "hz", (3995313115.4, "Hz")),
        (61.84, "%", (0.6184, "1")),
        (12, "register/thread", (12, "register/thread")),
        (12, "", (12, "")),
    ],
)
def test_units_become_si(value, unit, expected):
    found, name = to_si(value, unit)
    assert expected == (pytest.approx(found), name)
