"""`prism-bench history`: the results of nightly runs, kept apart from the sources."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench.cli import options

if TYPE_CHECKING:
    from prism_bench.extensions.ci.keeping import Checkout, HistoryTarget


class Action(StrEnum):
    """What to do with a history."""

    FETCH = "fetch"
    KEEP = "keep"
    LIST = "list"
    VERIFY = "verify"


ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="ADDRESS",
        help="Use branch:NAME, a folder, or a URL such as s3://bucket/prefix; default: the configured one.",
    ),
]


def command(
    action: Annotated[Action, typer.Argument(help="Choose what to do: fetch, keep, list or verify.")],
    to: ToOption = None,
    runs: options.RunsOption = options.DEFAULT_RUNS,
    json: options.JsonOption = False,
) -> None:
    """Keep the results of nightly runs for later runs.

    On a git branch, in a folder or in a bucket.
    Records, the ledger of runs, asv's results and the state of alerts: fetch them before a nightly run, keep them
    after it. Two machines may keep at the same time. A keep removes nothing, and the checkout stays as it is.

    Ends with 1 where verify or fetch finds damage; both go on with the other files.
    """
    from prism_bench.extensions.ci.keeping import checkout_of, history_target

    target = history_target(to)
    plain, lines, code = _ACTIONS[action](target, checkout_of(target, runs))
    if json:
        options.print_json({"action": action, "history": target.address, **plain})
    else:
        for line in lines:
            options.line(line)
    raise SystemExit(code)


_Answer = tuple[dict[str, object], list[str], int]  # for programs, for people, the exit code


def _fetch(target: "HistoryTarget", checkout: "Checkout") -> _Answer:
    from prism_bench.extensions.ci.keeping import fetch

    fetched = fetch(target, checkout)
    written = f"{_files(len(fetched.written))} of {fetched.files} written into {checkout.runs.parent}"
    line = f"history: {written}" if fetched.files else f"history: none yet at {target.address}"
    count = len(fetched.problems)
    damaged = [f"history: {count} of {_files(fetched.files)} damaged or missing at {target.address}"] if count else []
    plain = {"files": fetched.files, "written": list(fetched.written), "problems": list(fetched.problems)}
    return plain, [*fetched.problems, line, *damaged], int(bool(count))


def _keep(target: "HistoryTarget", checkout: "Checkout") -> _Answer:
    from prism_bench.extensions.ci.keeping import keep

    kept = keep(target, checkout)
    line = f"history: {_files(len(kept.written))} kept at {target.address} as {kept.id}"
    line = line if kept.id else f"history: nothing new for {target.address}"
    return {"id": kept.id, "written": list(kept.written)}, [line], 0


def _list(target: "HistoryTarget", checkout: "Checkout") -> _Answer:
    kept = target.keeps()
    rows = [{"id": entry.id, "when": entry.when, "who": entry.who, "files": entry.files} for entry in kept]
    lines = [f"{entry.when[:19]}  {entry.files:5} files  {entry.who}  {entry.id}" for entry in kept]
    return {"keeps": rows}, lines or [f"history: none yet at {target.address}"], 0


def _verify(target: "HistoryTarget", checkout: "Checkout") -> _Answer:
    from prism_bench.extensions.ci.keeping import verified

    files, problems = verified(target)
    lines = [*problems, f"history: {_files(files)} at {target.address}, {len(problems)} damaged or missing"]
    return {"files": files, "problems": problems}, lines, int(bool(problems))


def _files(count: int) -> str:
    return f"{count} file{'s' if count != 1 else ''}"


_ACTIONS: "dict[Action, Callable[[HistoryTarget, Checkout], _Answer]]" = {
    Action.FETCH: _fetch,
    Action.KEEP: _keep,
    Action.LIST: _list,
    Action.VERIFY: _verify,
}
