"""Actions of `prism-bench store` on the history: the results of nightly runs, kept apart from the sources."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.units import count_text

if TYPE_CHECKING:
    from prism_bench.extensions.ci.keeping import Checkout, HistoryTarget

_Answer = tuple[dict[str, object], list[str], int]  # for programs, for people, the exit code


def act(action: str, address: str | None, runs: Path) -> _Answer:
    """Fetch, keep, list or verify the history at the address, by default the configured one.

    Return what was done as JSON and as lines, and the exit code: 1 where fetch or verify meets damage.
    """
    from prism_bench.extensions.ci.keeping import checkout_of, history_target

    target = history_target(address)
    plain, lines, code = _ACTIONS[action](target, checkout_of(target, runs))
    return {"history": target.address, **plain}, lines, code


def _fetch(target: "HistoryTarget", checkout: "Checkout") -> _Answer:
    from prism_bench.extensions.ci.keeping import fetch

    fetched = fetch(target, checkout)
    files, count = count_text(fetched.files, "file"), len(fetched.problems)
    written = f"{count_text(len(fetched.written), 'file')} of {fetched.files} written into {checkout.runs.parent}"
    line = f"history: {written}" if fetched.files else f"history: none yet at {target.address}"
    damaged = [f"history: {count} of {files} damaged or missing at {target.address}"] if count else []
    plain = {"files": fetched.files, "written": list(fetched.written), "problems": list(fetched.problems)}
    return plain, [*fetched.problems, line, *damaged], int(bool(count))


def _keep(target: "HistoryTarget", checkout: "Checkout") -> _Answer:
    from prism_bench.extensions.ci.keeping import keep

    kept = keep(target, checkout)
    line = f"history: {count_text(len(kept.written), 'file')} kept at {target.address} as {kept.id}"
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
    counted = f"history: {count_text(files, 'file')} at {target.address}, {len(problems)} damaged or missing"
    return {"files": files, "problems": problems}, [*problems, counted], int(bool(problems))


_ACTIONS: "dict[str, Callable[[HistoryTarget, Checkout], _Answer]]" = {
    "fetch": _fetch,
    "keep": _keep,
    "list": _list,
    "verify": _verify,
}
