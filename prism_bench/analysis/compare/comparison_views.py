"""How comparisons show themselves at a prompt and in a notebook: one short line, a small HTML view with intervals.

The functions are methods of `ComparedCase` and `RecordComparison`, which import them.
"""

from typing import TYPE_CHECKING

from prism_bench import display
from prism_bench.units import ratio_text, time_text

if TYPE_CHECKING:
    from prism_bench.analysis.compare.comparison import ComparedCase, RecordComparison

_ORDER = ("slower", "faster", "inconclusive", "same", "not compared")
_MOVED = ("slower", "faster")


def compared_line(self: "ComparedCase") -> str:
    """Return one line: `<ComparedCase softmax[rows=32,cols=1000] slower: 5.00 us against 4.00 us, 1.25x>`."""
    before, after = self.seconds
    times = f": {time_text(after)} against {time_text(before)}" if before and after else ""
    ratio = f", {ratio_text(self.judgement.estimate.ratio)}" if self.judgement else ""
    words = self.reason if not self.judgement else self.machine_words
    reason = f" ({words})" if words else ""
    return f"<ComparedCase {self.case} {self.verdict}{times}{ratio}{reason}>"


def compared_html(self: "ComparedCase") -> str:
    """Return the line over the interval of the ratio; where there is none, with the reason."""
    heading = compared_line(self).removeprefix("<ComparedCase ").removesuffix(">")
    return display.view(heading, display.intervals(_intervals([self])))


def comparison_line(self: "RecordComparison") -> str:
    """Return one line: `<RecordComparison B against A: 2 slower, 1 faster, 276 same>`."""
    return f"<RecordComparison {_words(self)}>"


def comparison_html(self: "RecordComparison") -> str:
    """Return how many cases have each verdict, the intervals of those that moved, and a table of them.

    Where none moved, those that are inconclusive are shown, then the rest.
    """
    cases = sorted(self.cases, key=lambda one: (_ORDER.index(one.verdict), -abs(_log(one))))
    shown = [one for one in cases if one.verdict in _MOVED] or cases
    reasons = ["; ".join(filter(None, (one.machine_words, one.reason))) for one in shown]
    rows = [[one.case, one.verdict, *map(time_text, one.seconds), why] for one, why in zip(shown, reasons, strict=True)]
    table = display.table(["case", "verdict", *self.names, "reason"], rows)
    return display.view(_words(self), display.intervals(_intervals(shown)), table)


def _words(comparison: "RecordComparison") -> str:
    counts = ", ".join(f"{count} {word}" for word, count in comparison.counts().items() if count)
    return f"{comparison.names[1]} against {comparison.names[0]}: {counts or 'no cases'}"


def _intervals(cases: "list[ComparedCase]") -> list[display.Interval]:
    """Return the ratio of each judged case with its interval."""
    estimates = [(one.case, one.judgement.estimate) for one in cases if one.judgement]
    return [
        display.Interval(name, found.ratio, *found.interval(), ratio_text(found.ratio)) for name, found in estimates
    ]


def _log(one: "ComparedCase") -> float:
    return one.judgement.estimate.log if one.judgement else 0.0
