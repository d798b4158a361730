"""Generated pages: each is made from the program when the documentation is built."""

from typing import Any

from docs.generated import (
    attacks,
    bits,
    catalogue,
    commands,
    examples,
    metrics,
    names,
    published,
    python,
    troubleshooting,
)

__all__ = ["navigation", "pages"]


def pages() -> dict[str, str]:
    """Return Markdown by the path of its page."""
    return {
        **catalogue.pages(),
        "reference/commands.md": commands.page(),
        "reference/metrics.md": metrics.page(),
        "reference/python.md": python.page(),
        "reference/examples.md": examples.page(),
        "reference/troubleshooting.md": troubleshooting.page(),
        "reference/attacks.md": attacks.page(),
        bits.PATH: bits.page(),
        published.PATH: published.page(),
        "reference/names.md": names.page(),
    }


def navigation() -> list[dict[str, Any]]:
    """Return an entry of the menu for each of these pages."""
    families = [{path.split("/")[-1][:-3]: path} for path in catalogue.pages() if path != catalogue.PATH]
    return [
        {"Examples": "reference/examples.md"},
        {"Troubleshooting": "reference/troubleshooting.md"},
        {"Catalogue": [catalogue.PATH, *families]},
        {"Commands": "reference/commands.md"},
        {"Metrics": "reference/metrics.md"},
        {"Python": "reference/python.md"},
        {"Attacks on a judge": "reference/attacks.md"},
        {"Bits": bits.PATH},
        {"Published figures": published.PATH},
        {"Index": "reference/names.md"},
    ]
