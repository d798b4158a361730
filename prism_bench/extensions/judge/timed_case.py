"""The times of a verdict by case, as its page and the terminal show them."""

from collections.abc import Iterator
from dataclasses import dataclass

from prism_bench.extensions.judge.verdict import JudgedTime, JudgeVerdict


@dataclass(frozen=True)
class TimedCase:
    """The times of one case, the submission's first; `ratio` is the time of each over the submission's."""

    name: str
    rows: tuple[tuple[JudgedTime, float | None], ...]

    @property
    def hidden(self) -> bool:
        """Whether nobody knew the size before."""
        return any(time.hidden for time, _ in self.rows)

    @property
    def own(self) -> JudgedTime | None:
        """The time of the submission, if it has one."""
        first, _ = self.rows[0]
        return first if first.kind == "submission" else None


def timed_cases(verdict: JudgeVerdict) -> Iterator[TimedCase]:
    """Yield the cases that have times, in the verdict's order."""
    for name in dict.fromkeys(one.case for one in verdict.times):
        rows = sorted((one for one in verdict.times if one.case == name), key=lambda one: one.kind != "submission")
        own = rows[0].seconds if rows[0].kind == "submission" else None
        yield TimedCase(name, tuple((one, one.seconds / own if own else None) for one in rows))
