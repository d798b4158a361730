"""Names of cases and metrics in asv's results, as `suites/` defines them."""

import ast
from typing import cast
from warnings import catch_warnings

# By metric, as in `suites/times.py`; a test holds the two together.
BENCHMARKS = {
    "cold_time": "times.Cold.track_cold_time",
    "hot_time": "times.Hot.track_hot_time",
    "launch_time": "times.Launch.track_launch_time",
    "end_to_end_time": "times.EndToEnd.track_end_to_end_time",
    "wall_time": "times.Wall.track_wall_time",
}
METRICS = {name: metric for metric, name in BENCHMARKS.items()}


def value_of(text: object) -> object:
    """Return the value of a parameter, which asv writes as its `repr`: a number, a truth, None or a text.

    Anything else stays the text that asv wrote, as does a text that would read like another value without its quotes:
    `'1'` and `1` are two parameters.
    """
    value = _literal(text)
    if isinstance(value, str):
        return value if isinstance(text, str) and _literal(value) is _NO_LITERAL else str(text)
    fits = not isinstance(value, int) or -(2**63) <= value < 2**63
    is_plain = isinstance(value, bool | int | float | None) and fits and str(value) == text
    return value if is_plain and value == value else str(text)  # noqa: PLR0124 - NaN is no value of a record


_NO_LITERAL = object()


def _literal(text: object) -> object:
    """Return the value of a Python literal; _NO_LITERAL for any other text."""
    try:
        with catch_warnings(action="ignore"):  # of the escapes in somebody's text
            return ast.literal_eval(cast("str", text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return _NO_LITERAL
