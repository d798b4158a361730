"""One case of a comparison: what was measured on both sides, and the verdict on it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from prism_bench import display
from prism_bench.analysis.build_identity import BuildChange, code_change
from prism_bench.analysis.compare.verdict import Judgement
from prism_bench.analysis.findings import Gravity
from prism_bench.record.run_record import JsonTable
from prism_bench.units import ratio_text, time_text

ComparedVerdict = Literal["slower", "faster", "same", "inconclusive", "not compared", "same machine code"]
UNMEASURED: ComparedVerdict = "same machine code"


@dataclass(frozen=True, repr=False)
class ComparedCase:
    """One case on both sides.

    `judgement` is that of the times alone, divided by the machine's shift; `verdict` follows it unless the code is
    `identical`, and is `not compared` where a side has no valid times, and `same machine code` where the case was not
    measured for that reason. `seconds` are the paired medians of A and B, of which the ratio is made: the geometric
    means of the processes' medians, as they were measured. `codes` is what each record knows of its machine code and
    launches.
    """

    case: str
    metric: str
    verdict: ComparedVerdict
    reason: str | None = None
    judgement: Judgement | None = None
    seconds: tuple[float | None, float | None] = (None, None)
    identical: bool = False
    gravity: Gravity = "note"
    codes: tuple[JsonTable, JsonTable] = field(default_factory=lambda: ({}, {}))

    @property
    def build_change(self) -> BuildChange | None:
        """Why the machine code differs: another compiler, another source; None where it does not, or is not known."""
        return code_change(*self.codes)

    @property
    def machine(self) -> float | None:
        """By how much the machine took longer in B: the times differ by the ratio times it; None where it is 1.000."""
        ratio = self.judgement.shift.ratio if self.judgement else 1.0
        return ratio if f"{ratio:.3f}" != "1.000" else None

    @property
    def machine_words(self) -> str:
        """`the machine's 0.922x divided out`; empty where the times have the judgement's ratio."""
        return f"the machine's {self.machine:.3f}x divided out" if self.machine else ""

    def __repr__(self) -> str:
        """Return one line: `<ComparedCase softmax[rows=32,cols=1000] slower: 5.00 us against 4.00 us, 1.25x>`."""
        before, after = self.seconds
        times = f": {time_text(after)} against {time_text(before)}" if before and after else ""
        ratio = f", {ratio_text(self.judgement.estimate.ratio)}" if self.judgement else ""
        why = self.reason if not self.judgement else self.machine_words
        reason = f" ({why})" if why else ""
        return f"<ComparedCase {self.case} {self.verdict}{times}{ratio}{reason}>"

    def _repr_html_(self) -> str:
        """Return the line over the interval of the ratio; where there is none, with the reason."""
        heading = repr(self).removeprefix("<ComparedCase ").removesuffix(">")
        return display.view(heading, display.intervals(ratio_intervals([self])))


def ratio_intervals(cases: Iterable[ComparedCase]) -> list[display.Interval]:
    """Return the ratio of each judged case with its interval, for a picture."""
    estimates = [(case.case, case.judgement.estimate) for case in cases if case.judgement]
    return [display.Interval(name, about.ratio, *about.interval(), ratio_text(about.ratio))
            for name, about in estimates]  # fmt: skip
