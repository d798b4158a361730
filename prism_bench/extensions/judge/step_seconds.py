"""The seconds of a verdict's steps, for the tables of studies."""

from collections.abc import Mapping

SHOWN_SECONDS = 0.5  # of a step that is printed


def seconds_of_steps(*verdicts: Mapping[str, float], digits: int, beginning: str = "", ending: str = "") -> float:
    """Return the sum over the steps of all verdicts whose names begin and end so, rounded to these digits."""
    steps = (step for seconds in verdicts for step in seconds.items())
    return round(sum(took for name, took in steps if name.startswith(beginning) and name.endswith(ending)), digits)


def steps_text(seconds: Mapping[str, float]) -> str:
    """Return the seconds of a judgement, and of the steps that take some, in words."""
    long = ", ".join(f"{name} {took:.1f}" for name, took in seconds.items() if took >= SHOWN_SECONDS)
    return f"{sum(seconds.values()):.1f} s ({long})"
