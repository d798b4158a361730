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
    """Return the value of a parameter, which asv writes as its `repr`; the text itself if it is no Python literal."""
    try:
        with catch_warnings(action="ignore"):  # of the escapes in somebody's text
            return ast.literal_eval(cast("str", text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return str(text)
