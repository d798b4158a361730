"""A verdict's page: one HTML file that needs no other, for whoever the verdict is handed on to."""

from collections.abc import Sequence

from prism_bench.extensions.judge.defences import DEFENCES
from prism_bench.extensions.judge.timed_case import timed_cases
from prism_bench.extensions.judge.verdict import BatchRow, JudgeVerdict, Ruling
from prism_bench.report.templating import environment

RULINGS: dict[Ruling, tuple[str, str]] = {
    "right": ("good", "Every case that counts agrees with the task's reference."),
    "wrong": ("bad", "An output differs from the task's reference, or a launch did not end as it should."),
    "refused": ("bad", "A rule does not let it be launched, so that its outputs were not compared."),
    "unchecked": ("warn", "A case could be launched nowhere, or no output be compared: see what could not be judged."),
}  # class of the style, and what it means


def page_html(verdict: JudgeVerdict) -> str:
    """Return the page of a verdict."""
    wheres = dict.fromkeys(one.where for one in verdict.checked)
    tried = [
        (where, sum(one.right for one in verdict.checked if one.where == where),
         sum(one.where == where for one in verdict.checked))
        for where in wheres
    ]  # fmt: skip
    style, meaning = RULINGS[verdict.ruling]
    return environment().get_template("judge/verdict.html").render(
        verdict=verdict, style=style, meaning=meaning, tried=tried,
        wrong=[one for one in verdict.checked if not one.right],
        cases=len({one.case for one in verdict.checked}), timed=list(timed_cases(verdict)),
        defences=[(name, DEFENCES[name]) for name in DEFENCES if name in verdict.defences],
        absent=[(name, DEFENCES[name]) for name in DEFENCES if name not in verdict.defences],
    )  # fmt: skip


def leaderboard_html(task: str, rows: Sequence[BatchRow]) -> str:
    """Return the page of many submissions to a task, next to whose file the pages of the verdicts are."""
    styled = [(row, RULINGS[row.ruling][0]) for row in rows]
    right = sum(row.ruling == "right" for row in rows)
    return environment().get_template("judge/leaderboard.html").render(task=task, rows=styled, right=right)
