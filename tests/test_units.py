"""Three significant digits, one unit, a dash for nothing."""

import pytest

from prism_bench.units import bytes_text, duration_text, energy_text, rate_text, ratio_text, share_text, time_text


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
