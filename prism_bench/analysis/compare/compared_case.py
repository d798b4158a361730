"""One case of a comparison: what was measured on both sides, and the verdict on it."""

from dataclasses import dataclass, field
from typing import Literal

from prism_bench.analysis.build_identity import BuildChange, code_change
from prism_bench.analysis.compare.comparison_views import compared_html, compared_line
from prism_bench.analysis.compare.verdict import Judgement
from prism_bench.analysis.findings import Gravity
from prism_bench.record.run_record import JsonTable

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

    __repr__ = compared_line
    _repr_html_ = compared_html
