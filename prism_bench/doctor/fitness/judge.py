"""One answer from all rules, and its exit code."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from prism_bench.doctor.fitness import device_rules, noise_rules
from prism_bench.doctor.fitness.facts import FitnessFacts, FitnessProblem, Severity

FitnessAnswer = Literal["yes", "with care", "no", "unknown"]
RULES: dict[str, Callable[[FitnessFacts], FitnessProblem | None]] = {
    rule.__name__: rule for rule in (*device_rules.RULES, *noise_rules.RULES)
}
_ANSWERS: dict[Severity, FitnessAnswer] = {"no": "no", "unknown": "unknown", "care": "with care"}
_EXIT_CODES: dict[FitnessAnswer, int] = {"yes": 0, "with care": 0, "no": 1, "unknown": 3}


@dataclass(frozen=True)
class Fitness:
    """The facts and what speaks against measuring, by rule, the gravest first."""

    facts: FitnessFacts
    problems: tuple[tuple[str, FitnessProblem], ...]

    @property
    def answer(self) -> FitnessAnswer:
        """The gravest problem's answer; `yes` where there is none."""
        return _ANSWERS[self.problems[0][1].severity] if self.problems else "yes"

    @property
    def exit_code(self) -> int:
        """0 where it is fit, 1 where it is not, 3 where that is unknown."""
        return _EXIT_CODES[self.answer]


def judged_fitness(facts: FitnessFacts) -> Fitness:
    """Return the answer of every rule to the facts."""
    found = [(name, problem) for name, rule in RULES.items() if (problem := rule(facts))]
    return Fitness(facts, tuple(sorted(found, key=lambda one: list(_ANSWERS).index(one[1].severity))))
