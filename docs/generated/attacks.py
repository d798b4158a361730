"""The museum of attacks: what each entry tries, what the judge answers, and which defence catches it."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.generated.markdown import joined, table
from prism_bench.extensions.judge.defences import DEFENCES, ON_A_GPU

FOLDER = Path(__file__).resolve().parent.parent.parent / "tests" / "extensions" / "judge" / "museum"
LEAD = """\
Each entry is a submission below `tests/extensions/judge/museum`: a card, whose lines that begin with `#:` are the facts
of this table, and a source. The tests judge each with all defences, and once without its own: then it passes, or does
its harm. What only a GPU shows is judged by the referee, in the tests that need one. A new attack is a new card with
its source."""


def page() -> str:
    """Return the whole page."""
    facts = {card.stem: _facts(card) for card in sorted(FOLDER.glob("*.toml"))}
    attacks = [
        (f"`{name}`", one["attack"], _answer(one), ", ".join(one["defences"]) or "none needed")
        for name, one in facts.items()
    ]
    defences = [(name, words, "GPU" if name in ON_A_GPU else "") for name, words in DEFENCES.items()]
    return joined(
        [
            "# Attacks on a judge",
            LEAD,
            table(("entry", "what it tries", "answer", "caught by"), attacks),
            "## Defences",
            table(("defence", "what it does", "needs"), defences),
        ]
    )


def _facts(card: Path) -> Mapping[str, Any]:
    lines = [line.removeprefix("#: ") for line in card.read_text().splitlines() if line.startswith("#: ")]
    return tomllib.loads("\n".join(lines))


def _answer(facts: Mapping[str, Any]) -> str:
    ruling, _, words = facts["expected"].partition(": ")
    answer = f"{ruling}: ... {words} ..." if words else ruling
    needs = {"": "", "gpu": " (on a GPU)"}.get(facts.get("needs", ""), f" (on a GPU, with {facts.get('needs')})")
    return f"{answer}{needs}"
