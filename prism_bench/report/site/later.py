"""What a page does not show at first: rows and folded details, kept in a script file and made when they are seen.

A long table needs nothing: of one with `data-name` and more than `MOST` rows the page keeps the first `SHOWN`, and
`tables.js` makes the others when they are searched, sorted or asked for. Other markup is put aside by a template:

    <details><summary>Counters</summary>{% call later() %}<table>...</table>{% endcall %}</details>

It is made when the details open; outside of details a script makes it, with `prism.make(element)` for what is inside of
an element. What scripts draw from is `Page.drawn`, which they get as `prism.view()`. Both are in the page's own file
`data/pages/NAME-DIGEST.js`, so that the page is as small as what it shows.

Markup is kept as skeletons with holes and what fills them: rows of one table differ in little.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from markupsafe import Markup

from prism_bench.report.site.packing import giving

MOST, SHOWN = 37, 25  # rows of a table that are in its page: at most; those of a longer one
FOLDER = "data/pages"
_TABLE = re.compile(r"<table\b[^>]*\bdata-name=[^>]*>.*?</table>", re.DOTALL)
_BODY = re.compile(r"(<table\b[^>]*)(>.*?<tbody>)(.*?)(</tbody>\s*</table>)", re.DOTALL)
_PIECE = re.compile(r"(?=<(?:tr|li|h3|div|p|table|figure|details|section)\b)")
_PLACE = '<template data-later="{}"></template>'
_HOLE = re.compile(r'(?<==")([^"]*)(?=")|(?<=>)([^<]+)(?=<)')

Encoded = list[int | str]  # the number of a skeleton, and what fills its holes: a text, or the number of a shared text


@dataclass
class Later:
    """The markup that a page puts aside: `put` takes a template's, `shortened` the rows of long tables."""

    contents: list[str] = field(default_factory=list)

    def put(self, caller: Callable[[], str]) -> Markup:
        """Keep what a template's block would show, and return the place that it is made in."""
        return Markup(_PLACE).format(self._kept(caller()))

    def shortened(self, page: str) -> str:
        """Return the page with the first rows of its long tables, and keep the others."""
        return _TABLE.sub(self._shorter, page)

    def _shorter(self, table: re.Match[str]) -> str:
        found = _BODY.fullmatch(table.group())
        if not found:
            return table.group()
        opening, head, body, end = found.groups()
        first, *rows = re.split(r"(?=<tr\b)", re.sub(r">\s*\n\s*<", "><", body.strip()))
        rows = [first, *rows] if first else rows
        if len(rows) <= MOST:
            return found.group()
        kept, shown = self._kept("".join(rows[SHOWN:])), "".join(rows[:SHOWN])
        opening += f' data-rest="{kept}" data-total="{len(rows)}"'
        return f"{opening}{head}{shown}{end}"

    def _kept(self, content: str) -> int:
        self.contents.append(content)
        return len(self.contents) - 1

    def script(self, page: str, drawn: Mapping[str, object] | None) -> tuple[str, bytes] | None:
        """Return name and content of the page's script file; None where the page needs none."""
        if not self.contents and drawn is None:
            return None
        skeletons, texts, contents = encoded(self.contents)
        kept = {"skeletons": skeletons, "texts": texts, "contents": contents, "view": drawn}
        content = giving("page", 0, kept)
        return f"{FOLDER}/{page}-{hashlib.sha256(content).hexdigest()[:10]}.js", content


def encoded(contents: Sequence[str]) -> tuple[list[list[str]], list[str], list[list[Encoded]]]:
    """Return the skeletons, the texts that fill several holes, and of each content its pieces."""
    cut = [[_cut(piece) for piece in _PIECE.split(content) if piece] for content in contents]
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for skeleton, values in chain.from_iterable(cut):
        found.setdefault(skeleton, []).append(values)
    holes = {skeleton: _varying(fillings) for skeleton, fillings in found.items()}
    numbers = {skeleton: number for number, skeleton in enumerate(found)}
    skeletons = [_closed(skeleton, fillings[0], holes[skeleton]) for skeleton, fillings in found.items()]
    pieces = [[(skeleton, [values[hole] for hole in holes[skeleton]]) for skeleton, values in one] for one in cut]
    texts = _shared(value for one in pieces for _, values in one for value in values)
    places = {text: number for number, text in enumerate(texts)}
    filled = [
        [[numbers[key], *(places.get(value, value) for value in values)] for key, values in one] for one in pieces
    ]
    return skeletons, texts, filled


def _cut(piece: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the markup around the attributes' values and texts of a piece, and these."""
    skeleton, values, end = list[str](), list[str](), 0
    for hole in _HOLE.finditer(piece):
        skeleton.append(piece[end : hole.start()])
        values.append(hole.group())
        end = hole.end()
    return (*skeleton, piece[end:]), values


def _varying(filled: Sequence[Sequence[str]]) -> list[int]:
    """Return the holes that are not always filled alike."""
    return [hole for hole, values in enumerate(zip(*filled, strict=True)) if len(set(values)) > 1]


def _closed(skeleton: Sequence[str], values: Sequence[str], holes: Sequence[int]) -> list[str]:
    """Return the skeleton with the other holes filled."""
    parts = [skeleton[0]]
    for hole, (value, after) in enumerate(zip(values, skeleton[1:], strict=True)):
        if hole in holes:
            parts.append(after)
        else:
            parts[-1] += value + after
    return parts


def _shared(values: Iterable[str]) -> list[str]:
    """Return the texts that are shorter when they are kept once."""
    counts = Counter(value for value in values if len(value) > 3)
    return [value for value, count in counts.most_common() if count > 1]


def decoded(skeletons: Sequence[Sequence[str]], texts: Sequence[str], pieces: Iterable[Encoded]) -> str:
    """Return the markup of the pieces, as `prism.content` does."""
    return "".join(chain.from_iterable(_filled(skeletons, texts, piece) for piece in pieces))


def _filled(skeletons: Sequence[Sequence[str]], texts: Sequence[str], piece: Encoded) -> Iterator[str]:
    number, *values = piece
    assert isinstance(number, int), "a piece begins with the number of its skeleton"
    yield skeletons[number][0]
    for value, after in zip(values, skeletons[number][1:], strict=True):
        yield texts[value] if isinstance(value, int) else value
        yield after
