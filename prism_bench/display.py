"""Small HTML views of results for notebooks: a heading, a picture as SVG, a table. Plain values in, text out.

Colours are the page's own (`currentColor`), so that a view is readable in light and dark notebooks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite, log10

WIDTH = 360  # pixels of a picture
_MOST_ROWS = 10  # of a table or of bars: a view is small
_LABEL = 150  # pixels left of a bar
_LINE = 18  # pixels between two rows of a picture
_THIN = 'stroke="currentColor" stroke-dasharray="2" opacity="0.5"'
_STYLE = 'style="font-family:sans-serif;font-size:12px" fill="currentColor"'


def view(heading: str, *parts: str) -> str:
    """Return the parts under a heading; empty parts are left out."""
    return f"<div><strong>{escape(heading)}</strong>{''.join(f'<div>{part}</div>' for part in parts if part)}</div>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table of at most `MOST_ROWS` rows, with the number of those left out; empty without rows."""
    if not rows:
        return ""
    body = "".join(_row("td", row) for row in rows[:_MOST_ROWS])
    left = len(rows) - _MOST_ROWS
    more = f'<tr><td colspan="{len(head)}">and {left} more</td></tr>' if left > 0 else ""
    return f"<table><thead>{_row('th', head)}</thead><tbody>{body}{more}</tbody></table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """Return horizontal bars of (label, value, text of the value), at most `MOST_ROWS`; empty if all values are 0."""
    shown = [row for row in rows if row[1] > 0][:_MOST_ROWS]
    if not shown:
        return ""
    longest = max(value for _, value, _ in shown)
    room = WIDTH - _LABEL - 70
    marks = [
        f'<text x="0" y="{13 + _LINE * line}" {_STYLE}>{escape(_short(label))}</text>'
        f'<rect x="{_LABEL}" y="{4 + _LINE * line}" width="{max(1.0, room * value / longest):.1f}" height="11" '
        f'fill="currentColor" opacity="0.5"/>'
        f'<text x="{_LABEL + 5 + room * value / longest:.1f}" y="{13 + _LINE * line}" {_STYLE}>{escape(text)}</text>'
        for line, (label, value, text) in enumerate(shown)
    ]
    return _picture(len(shown), marks)


def dots(groups: Sequence[tuple[str, Sequence[float]]], ends: tuple[str, str] | None = None) -> str:
    """Return one line of dots per (label, values), all on one axis, logarithmic over more than a factor of 10.

    `ends` labels the smallest and the largest value. Empty where no group has a positive value.
    """
    filled = [(label, [value for value in values if value > 0]) for label, values in groups]
    filled = [(label, values) for label, values in filled if values][:_MOST_ROWS]
    if not filled:
        return ""
    low = min(min(values) for _, values in filled)
    high = max(max(values) for _, values in filled)
    marks = [
        f'<text x="0" y="{13 + _LINE * line}" {_STYLE}>{escape(_short(label))}</text>'
        + "".join(
            f'<circle cx="{_LABEL + (WIDTH - _LABEL - 5) * _place(value, low, high):.1f}" cy="{9 + _LINE * line}" '
            f'r="3" fill="currentColor" opacity="0.35"/>'
            for value in values
        )
        for line, (label, values) in enumerate(filled)
    ]
    if ends:
        y = 13 + _LINE * len(filled)
        marks.append(f'<text x="{_LABEL}" y="{y}" {_STYLE}>{escape(ends[0])}</text>')
        marks.append(f'<text x="{WIDTH}" y="{y}" text-anchor="end" {_STYLE}>{escape(ends[1])}</text>')
    return _picture(len(filled) + bool(ends), marks)


@dataclass(frozen=True)
class Interval:
    """A ratio with the ends of its interval, and the text of the ratio; 1 is no change."""

    label: str
    middle: float
    low: float
    high: float
    text: str


def intervals(rows: Sequence[Interval]) -> str:
    """Return one line per ratio from the low to the high end, with a dot in the middle and a mark at no change (1).

    All are on one logarithmic axis; an end beyond four times the farthest ratio is cut off there. At most `MOST_ROWS`
    are drawn. Empty where no ratio is positive and finite.
    """
    shown = [row for row in rows if row.middle > 0 and isfinite(row.middle)][:_MOST_ROWS]
    if not shown:
        return ""
    farthest = max(4 * max(row.middle, 1 / row.middle) for row in shown)
    ends = [(max(row.low, 1 / farthest), min(row.high, farthest)) for row in shown]
    low, high = min(1.0, *(left for left, _ in ends)), max(1.0, *(right for _, right in ends))
    room = WIDTH - _LABEL - 50

    def across(value: float) -> float:
        return _LABEL + room * (log10(value / low) / log10(high / low) if high > low else 0.5)

    marks = [f'<line x1="{across(1):.1f}" x2="{across(1):.1f}" y1="0" y2="{6 + _LINE * len(shown)}" {_THIN}/>']
    for line, (row, (left, right)) in enumerate(zip(shown, ends, strict=True)):
        y = 9 + _LINE * line
        marks += [
            f'<text x="0" y="{y + 4}" {_STYLE}>{escape(_short(row.label))}</text>',
            f'<line x1="{across(left):.1f}" x2="{across(right):.1f}" y1="{y}" y2="{y}" stroke="currentColor"/>',
            f'<circle cx="{across(row.middle):.1f}" cy="{y}" r="3" fill="currentColor"/>',
            f'<text x="{WIDTH}" y="{y + 4}" text-anchor="end" {_STYLE}>{escape(row.text)}</text>',
        ]
    return _picture(len(shown), marks)


def _place(value: float, low: float, high: float) -> float:
    """Return where a value is between the ends of the axis, 0 to 1; the middle where both ends are the same."""
    if high <= low:
        return 0.5
    if high / low > 10:
        return log10(value / low) / log10(high / low)
    return (value - low) / (high - low)


def _short(label: str) -> str:
    return label if len(label) <= 22 else label[:21] + "…"


def _picture(lines: int, marks: Sequence[str]) -> str:
    height = 6 + _LINE * lines
    return f'<svg width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">{"".join(marks)}</svg>'
