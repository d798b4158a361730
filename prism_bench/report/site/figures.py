"""A figure that was drawn beforehand: its name as a file, and its picture."""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class Figure:
    """`picture` is SVG that takes its colours from the page."""

    name: str
    picture: Markup
