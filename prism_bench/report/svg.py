"""Matplotlib figures as inline SVG that takes its colours and its font from the page around it.

Figures are drawn in placeholder colours; each becomes a CSS variable here, so one picture serves light, dark and print.
"""

import io
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# Colours that nobody would draw with, by the CSS variable that replaces them.
INK = MappingProxyType({
    "ink": "#010203", "muted": "#010204", "rule": "#010205", "paper": "#010206", "accent": "#010207",
    "second": "#010208", "third": "#010209", "warm": "#01020a",
})  # fmt: skip
_SETTINGS: "Mapping[RcKeyType, Any]" = MappingProxyType({
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 11, "text.color": INK["ink"],
    "axes.edgecolor": INK["rule"], "axes.linewidth": 0.8, "axes.labelcolor": INK["muted"], "axes.labelsize": 11,
    "xtick.color": INK["rule"], "ytick.color": INK["rule"], "xtick.labelcolor": INK["muted"],
    "ytick.labelcolor": INK["muted"], "axes.spines.top": False, "axes.spines.right": False, "axes.facecolor": "none",
    "figure.facecolor": "none", "xtick.minor.size": 0, "ytick.minor.size": 0, "path.simplify": False,
})  # fmt: skip
_NO_METADATA = MappingProxyType(dict.fromkeys(("Creator", "Date", "Format", "Type")))


def canvas(width: float, height: float, name: str) -> tuple[AbstractContextManager[None], "Callable[[], Figure]"]:
    """Return a context to draw in and a maker of figures of that many CSS pixels; `name` makes their ids unique."""
    from matplotlib import rc_context

    return rc_context({**_SETTINGS, "svg.hashsalt": name}), lambda: _figure(width, height)


def _figure(width: float, height: float) -> "Figure":
    """Return a figure; one inch is 72 pixels, as in SVG, and the Agg canvas measures how wide a text is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    return FigureCanvasAgg(Figure((width / 72, height / 72), dpi=72)).figure


def inline(figure: "Figure", label: str, titles: dict[str, str] | None = None, prefix: str = "") -> str:
    """Return the figure as one `<svg>` element that scales with the page; `label` is for screen readers.

    `titles` are tooltips by the gid of the artist they belong to; `prefix` makes every id of the picture its own.
    """
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata=dict(_NO_METADATA))
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    for gid, title in (titles or {}).items():
        text = text.replace(f'<g id="{gid}">', f'<g id="{gid}" class="mark"><title>{escape(title)}</title>')
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text)
    for name, colour in INK.items():
        text = text.replace(colour, f"var(--{name})")
    return _opened(text, label)


def _opened(text: str, label: str) -> str:
    found = re.search(r'viewBox="([^"]+)"', text)
    assert found, "Matplotlib writes the box"
    box = found.group(1)
    body = text[text.index(">") + 1 :]
    opening = f'<svg class="chart" role="img" aria-label="{escape(label, quote=True)}" viewBox="{box}"'
    return f'{opening} xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg">{body}'


def tick(text: str) -> str:
    """Return an axis label for a quantity: `10 µs` for `10.0 us`."""
    return re.sub(r"\.0+(?= |$)", "", text).replace("us", "µs").strip()
