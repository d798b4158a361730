"""Short texts for counts, seconds, bytes, hertz and operations. Inside, the package uses SI units."""

import math
from datetime import date, timedelta

_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
_ROUNDS_UP = 0.9995  # from here on three digits of the smaller unit read 1000
_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def time_text(seconds: float | None) -> str:
    """Return a text such as `1.18 us`, a dash for None."""
    return _small(seconds, "s")


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """Return a text such as `1 case` or `3 cases`; `plural` is the noun's plural where it is not the noun and an s."""
    return f"{count if count < 10_000 else f'{count:,}'} {noun if count == 1 else plural or f'{noun}s'}"


def duration_text(seconds: float) -> str:
    """Return a text such as `40 s`, `21 min` or `1 h 5 min`, rounded to the last unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def energy_text(joules: float | None) -> str:
    """Return a text such as `12.3 mJ`, a dash for None."""
    return _small(joules, "J")


def rate_text(per_second: float | None, unit: str) -> str:
    """Return a text such as `4.28 TB/s`, for 4.28e12 and the unit `B/s`; a dash for None."""
    return _scaled(per_second, unit)


def bytes_text(count: float | None) -> str:
    """Return a text such as `1.07 GB`, decimal."""
    return _scaled(count, "B")


def share_text(share: float | None) -> str:
    """Return a text such as `87 %`, a dash for None."""
    if share is None or math.isnan(share):
        return "-"
    return f"{share * 100:.0f} %" if abs(share) >= 0.1 else f"{share * 100:.1f} %"


def change_text(ratio: float | None) -> str:
    """Return a new value over the old one as the change in percent, such as `+12.2 %`; a dash for None.

    The sign `x` is for how many times as fast something is.
    """
    return "-" if ratio is None or not 0 <= ratio < 1e6 else f"{(ratio - 1) * 100:+.1f} %".replace("-0.0", "+0.0")


def change_range_text(low: float, high: float) -> str:
    """Return the ends of an interval of such ratios as changes, such as `-0.5 to +0.5 %`."""
    return f"{change_text(low).removesuffix(' %')} to {change_text(high)}"


def ratio_text(ratio: float | None) -> str:
    """Return a text such as `1.25x`, a dash for None."""
    return "-" if ratio is None or math.isnan(ratio) else f"{_three(ratio)}x"


def _small(value: float | None, unit: str) -> str:
    if value is None or math.isnan(value):
        return "-"
    for scale, prefix in _SMALL:
        if abs(value) >= scale * _ROUNDS_UP:
            return f"{_three(value / scale)} {prefix}{unit}"
    return f"{_three(value / 1e-9)} n{unit}"


def _scaled(value: float | None, unit: str) -> str:
    if value is None or math.isnan(value):
        return "-"
    for scale, prefix in _DECIMAL:
        if abs(value) >= scale * _ROUNDS_UP:
            return f"{_three(value / scale)} {prefix}{unit}"
    return f"{_three(value)} {unit}"


def _three(value: float) -> str:
    """Return three significant digits, without an exponent."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")
    digits = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{digits}f}" if digits else f"{value:.0f}"


def parsed_since(text: str, today: date) -> date | None:
    """Return the day that `2026-11-14`, `7d` or `2w` mean; None for any other text."""
    number, unit = text[:-1], text[-1:]
    if number.isdecimal() and unit in ("d", "w") and int(number) < 10_000:
        return today - timedelta(days=int(number) * {"d": 1, "w": 7}[unit])
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
