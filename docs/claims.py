"""Parts of pages that show the claims below reports/claims: a table of all, one of chains, and a sentence on peers.

`scripts/readme` writes them and a test compares: a claim whose code has changed is shown as such until it is made anew.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lab.claims.agreement import AnsweredClaim, agreement_lines, answered
from lab.claims.own_files import FOLDER, claim_files

from prism_bench.catalogue import Catalogue
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import Claim, interval_text, read_bytes
from prism_bench.extensions.claims.replaying import SideChecks
from prism_bench.record.run_record import RunRecord
from prism_bench.report.headline import times_text
from prism_bench.units import count_text

PAGE = FOLDER / "README.md"
_HEAD = "| claim | ratio | 95 % interval | against | code | replays |\n|---|---|---|---|---|---|"


@dataclass(frozen=True)
class KeptClaim:
    """A claim of the repository, with the files that the catalogue has no longer, and its answers."""

    path: Path
    claim: Claim
    record: RunRecord
    stale: tuple[str, ...]
    answers: tuple[AnsweredClaim, ...]

    @property
    def row(self) -> str:
        """The claim as a row of a table; its file is named relative to the folder of claims."""
        ratio = self.claim.ratio
        cells = (f"`{self.claim.kernel.case}`", times_text(ratio.value), interval_text(ratio), self.claim.baseline.name)
        return f"| {' | '.join((*cells, self.code, self.replays)).replace('~', chr(92) + '~')} |"

    @property
    def is_of_forms(self) -> bool:
        """Whether both sides are forms of a kernel, and none is a peer."""
        return self.claim.baseline.subject == "kernel"

    @property
    def code(self) -> str:
        """Whether the catalogue still has its code."""
        return f"changed since {(self.record.commit or 'unknown')[:8]}" if self.stale else "current"

    @property
    def replays(self) -> str:
        """By device, how many replays reproduced it."""
        by_device: dict[str, list[AnsweredClaim]] = {}
        for one in self.answers:
            by_device.setdefault(one.replay.device, []).append(one)
        texts = [f"{device}: {_answers_text(found)}" for device, found in sorted(by_device.items())]
        return "; ".join(texts) or "none yet"


def _answers_text(found: Sequence[AnsweredClaim]) -> str:
    words = [one.replay.answer.word for one in found]
    if len(words) == 1:
        return words[0]
    return ", ".join(f"{words.count(word)} of {len(words)} {word}" for word in dict.fromkeys(words))


@dataclass(frozen=True)
class KeptClaims:
    """The claims below the folder of a repository, and the catalogue that they are of."""

    root: Path
    catalogue: Catalogue

    @cached_property
    def all(self) -> tuple[KeptClaim, ...]:
        """Every claim, in the order of its file; a ResultsError where one is unsound."""
        folder = self.root / FOLDER
        answers = list(answered(folder))
        return tuple(self._kept(path, answers) for path in claim_files(folder))

    def _kept(self, path: Path, answers: Sequence[AnsweredClaim]) -> KeptClaim:
        claim, records = checked(read_bytes(path), str(path))
        stale = SideChecks(claim, records).unknown_files(self.catalogue)
        own = tuple(one for one in answers if one.claim.digest == claim.digest)
        return KeptClaim(path, claim, records[claim.kernel.record], tuple(stale), own)

    def page(self) -> str:
        """Return the page of all claims, as Markdown."""
        head = (
            "# Claims\n\nWritten by `scripts/readme` from the files here. The ratio is the baseline's time over the "
            "kernel's.\nAnybody can replay one: `prism-bench claim reports/claims/MACHINE/NAME.json` measures both "
            "sides again.\n"
        )
        parts = [head]
        for machine in dict.fromkeys(one.path.parent.name for one in self.all):
            kept = [one for one in self.all if one.path.parent.name == machine]
            rows = [one.row.replace("| ", f"| [{one.path.stem}]({machine}/{one.path.name}): ", 1) for one in kept]
            parts.append("\n".join([f"## {kept[0].claim.device}\n", _HEAD, *rows]) + "\n")
        agreement = [line for line in agreement_lines(self.root / FOLDER) if not line.startswith(" ")]
        if agreement:
            parts.append("## Agreement\n\n" + "\n".join(f"- On {line}" for line in agreement) + "\n")
        return "\n".join(parts if self.all else [head, "None is kept yet: `scripts/claims` makes them on a GPU.\n"])

    def chains(self) -> str:
        """Return the table of claims about forms of a chain, or a sentence where none is kept."""
        rows = [one.row for one in self.all if "_chain" in one.claim.kernel.case and one.is_of_forms]
        if not rows:
            return "No claim about a chain is kept yet."
        head = "One launch against separate launches, each as a [claim](publish.md) that `prism-bench claim` checks:"
        return "\n".join([head, "", _HEAD, *rows])

    def sentence(self, shown: dict[str, str]) -> str:
        """Return which lines of the table of peers are claims: those whose ratio there is within the claim's interval.

        `shown` has by case the ratio as the table prints it.
        """
        by_case = {one.claim.kernel.case: one for one in self.all if not one.is_of_forms}
        held = [case for case, text in shown.items() if case in by_case and _holds(by_case[case].claim, text)]
        if not held:
            return ""
        names = ", ".join(case.partition("[")[0] for case in held)
        some = f"{count_text(len(held), 'line')} ({names}) {'is' if len(held) == 1 else 'are'} among the"
        whole = "Each line is among the" if len(held) == len(shown) else some
        return f"{whole} claims of `{PAGE.as_posix()}`, with code and samples, which `prism-bench claim` checks."


def _holds(claim: Claim, text: str) -> bool:
    """Return whether a ratio with the digits of `text` is within the claim's interval."""
    number = re.match(r"[\d.]+", text)
    if number is None or claim.ratio.low is None or claim.ratio.high is None:
        return False
    digits = len(number[0].partition(".")[2])
    return round(claim.ratio.low, digits) <= float(number[0]) <= round(claim.ratio.high, digits)
