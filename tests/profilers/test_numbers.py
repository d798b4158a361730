"""Numbers in any locale, or refused; units in SI."""

import pytest

from prism_bench.errors import ResultsError
from prism_bench.profilers.metrics import decimal_mark, is_number, number, to_si


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
        (["12 345,67", "71,250"], ","),
        (["12\u202f345", "71,250"], ","),
        (["1\u00a0234", "71.250"], "."),
        ([r"1\xa0234,5"], ","),
        (["12\u2019345.67", "8\u2019388\u2019608"], "."),
        (["1,23,45,678.90", "83,88,608"], "."),
        (["83,88,608", "181,216"], "."),
        (["1.234e+06"], "."),
    ],
)
def test_a_table_shows_its_decimal_mark(texts, mark):
    assert mark == decimal_mark(texts, "here")


@pytest.mark.parametrize("texts", [["117.344"], ["181,216", "1,234"], ["-1.000", "n/a"]])
def test_what_may_be_a_fraction_or_a_thousandfold_is_refused(texts):
    with pytest.raises(ResultsError, match="here: .* LC_ALL=C"):
        decimal_mark(texts, "here")


@pytest.mark.parametrize("texts", [["13.02", "65,77"], ["1 234", "1,234", "1.234"], ["1'234.5", "1 234.5"]])
def test_two_locales_in_one_table_are_refused(texts):
    with pytest.raises(ResultsError, match="cannot come from one locale"):
        decimal_mark(texts, "here")


def test_numbers_by_their_mark():
    assert 117344.0 == number("117.344", ",")
    assert 117.344 == number("117.344", ".")
    assert 134221568.0 == number("134,221,568", ".")
    assert 2508800.5 == number("2.508.800,5", ",")
    assert 12345.67 == number("12 345,67", ",") == number("12\u202f345,67", ",") == number(r"12\xa0345,67", ",")
    assert 12345.67 == number("12\u2019345.67", ".") == number("12'345.67", ".")
    assert (12345678.9, 8388608.0) == (number("1,23,45,678.90", "."), number("83,88,608", "."))


def test_words_are_no_numbers():
    assert not any(map(is_number, ["", "n/a", "(9, 32, 1)", "9.0a", "-"]))


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (292_928, "ns", (0.000292928, "s")),
        (293, "usecond", (0.000293, "s")),
        (293, "nsecond", (2.93e-7, "s")),
        (1.5, "Kbyte", (1500, "B")),
        (8192.5, "Kibyte", (8389120, "B")),
        (2, "Gibyte/s", (2147483648, "B/s")),
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
