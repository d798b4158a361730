"""Pictures of a claim as SVG: both times and the ratios on one axis, and a badge."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from prism_bench.extensions.claims.answers import AnswerWord
from prism_bench.extensions.claims.document import Claim, ClaimRatio, ClaimSide
from prism_bench.extensions.claims.replay_document import Replay
from prism_bench.report.cells import times_text
from prism_bench.report.templating import micro
from prism_bench.units import time_text

_WIDTH, _ROW, _LEFT = 480, 46, 4
_COLOURS: dict[AnswerWord | None, str] = {
    "reproduced": "#1d6b43", "not reproduced": "#a8261b", "partly reproduced": "#8a5a00",
    "cannot be decided here": "#62656b", None: "#1f4e8c",
}  # fmt: skip


@dataclass(frozen=True)
class _Bar:
    """A row of a picture: its text, its value as text, the value with its interval, and its colour."""

    text: str
    value: str
    centre: float
    low: float | None
    high: float | None
    colour: str


def times_picture(claim: Claim) -> str:
    """Return both medians with their intervals, in seconds from 0, as one `<svg>` element."""
    bars = [_time_bar(claim.kernel, "accent"), _time_bar(claim.baseline, "third")]
    return _picture(bars, f"medians of {claim.kernel.name} and {claim.baseline.name}", base=0.0)


def ratios_picture(claim: Claim, replay: Replay | None) -> str:
    """Return the claimed ratio, and the one that was replayed, with a line at 1, as one `<svg>` element."""
    bars = [_ratio_bar("claimed", claim.ratio, "accent")]
    if replay and replay.expected != claim.ratio:
        bars.append(_ratio_bar(f"expected on {replay.device}", replay.expected, "second"))
    if replay and replay.here:
        bars.append(_ratio_bar(f"replayed on {replay.device}", replay.here, "warm"))
    return _picture(bars, "claimed and replayed ratios", base=1.0, mark=True)


def badge(claim: Claim, replay: Replay | None = None) -> str:
    """Return a badge as an SVG file: the kernel, its ratio and, of a replay, the answer."""
    word = replay.answer.word if replay else None
    left = claim.kernel.name
    right = f"{times_text(claim.ratio.value)} of {claim.baseline.name.partition(' (')[0]}: {word or 'claimed'}"
    widths = [round(_width(text)) + 16 for text in (left, right)]
    whole = sum(widths)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" '
        f'aria-label="{escape(f"{left}: {right}", quote=True)}"><title>{escape(claim.sentence)}</title>'
        f'<rect width="{whole}" height="20" rx="3" fill="{_COLOURS[word]}"/>'
        f'<path d="M3 0h{widths[0] - 3}v20h-{widths[0] - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#33363b"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{_badge_text(left, widths[0] / 2, widths[0])}"
        f"{_badge_text(right, widths[0] + widths[1] / 2, widths[1])}</g></svg>\n"
    )


def _width(text: str) -> float:
    """Return about how many pixels a text takes in Verdana of 11 pixels."""
    return sum(4.2 if one in "ijlftr.,:;'|()[] " else 10.2 if one in "mwMW" else 7.0 for one in text)


def _badge_text(text: str, middle: float, width: int) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{width - 16}">{escape(text)}</text>'


def _time_bar(side: ClaimSide, colour: str) -> _Bar:
    return _Bar(side.name, time_text(side.seconds), side.seconds, side.low, side.high, colour)


def _ratio_bar(text: str, ratio: ClaimRatio, colour: str) -> _Bar:
    return _Bar(text, times_text(ratio.value), ratio.value, ratio.low, ratio.high, colour)


def _picture(bars: Sequence[_Bar], label: str, *, base: float, mark: bool = False) -> str:
    """Return bars that begin at `base`, with a line there where it is a `mark`."""
    ends = [base, *(end for bar in bars for end in (bar.centre, bar.low, bar.high) if end is not None)]
    room = (max(ends) - min(ends)) * 0.04 or 1.0
    low, high = min(ends) - room * mark, max(ends) + room
    scale = (_WIDTH - 2 * _LEFT) / (high - low)

    def place(value: float) -> float:
        return round(_LEFT + (value - low) * scale, 1)

    body = "".join(part for number, bar in enumerate(bars) for part in _drawn(bar, number * _ROW, place, base))
    if mark:
        lines = "".join(f"M{place(base)} {number * _ROW + 20}v20" for number in range(len(bars)))
        body += f'<path d="{lines}" stroke="var(--ink)" stroke-dasharray="3 2"/>'
    return (
        f'<svg class="chart" role="img" aria-label="{escape(label, quote=True)}" '
        f'viewBox="0 0 {_WIDTH} {_ROW * len(bars) + 4}">{body}</svg>'
    )


def _drawn(bar: _Bar, top: int, place: Callable[[float], float], base: float) -> Iterator[str]:
    """Yield the elements of a row: its texts, its bar, and its interval."""
    text = 'font-size="14" fill="var(--{})"'
    yield f'<text x="{_LEFT}" y="{top + 16}" {text.format("muted")}>{escape(bar.text)}</text>'
    yield (
        f'<text x="{_WIDTH - _LEFT}" y="{top + 16}" {text.format("ink")} text-anchor="end" font-weight="600">'
        f"{escape(micro(bar.value))}</text>"
    )
    left, right = sorted((place(base), place(bar.centre)))
    yield f'<rect x="{left}" y="{top + 24}" width="{max(right - left, 1):g}" height="12" fill="var(--{bar.colour})"/>'
    if bar.low is not None and bar.high is not None:
        y, first, last = top + 30, place(bar.low), place(bar.high)
        ends = f"M{first} {y}H{last}M{first} {y - 8}v16M{last} {y - 8}v16"
        yield f'<path d="{ends}" stroke="var(--ink)" stroke-width="1.5" fill="none"/>'
